/* SPDX-License-Identifier: Apache-2.0 */
/* Poison entries; see poison.h. */
#include "journal/poison.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/types.h"
#include "cmdlog/cmdlog_shared.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/step/command_group.h"
#include "journal/at_work.h"
#include "journal/recover.h"
#include "store/store.h"

/* --- Describing a command ----------------------------------------------------------------------------------------- */

enum { NAME_BYTES_MAX = 300, DESCRIPTION_BYTES_MAX = 1024 };

static bool is_plain(unsigned char c)
{
    return c >= ' ' && c < 0x7f && c != '[' && c != ']' && c != '\\';
}

/*
 * Appends a name supplied by a client: escapes control characters, which a terminal could
 * interpret, and truncates it.
 */
static void describe_name(struct buf *text, struct slice name)
{
    for (size_t i = 0; i < name.len && i < NAME_BYTES_MAX; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (is_plain(c))
            buf_byte(text, (char)c);
        else
            buf_printf(text, "\\%03o", c);
    }
    if (name.len > NAME_BYTES_MAX)
        buf_lit(text, "...");
}

static void describe_target(struct buf *text, struct slice index, struct slice rest)
{
    buf_lit(text, " [");
    describe_name(text, index);
    if (rest.len > 0) {
        buf_byte(text, '/');
        describe_name(text, rest);
    }
    buf_byte(text, ']');
}

static void describe_more(struct buf *text, size_t count, const char *what)
{
    if (count > 1)
        buf_printf(text, " and %zu more %s", count - 1, what);
}

static void describe_write(struct buf *text, const void *member)
{
    static const char *const ops[] = {
        [WRITE_INDEX] = "index", [WRITE_CREATE] = "create", [WRITE_UPDATE] = "update", [WRITE_DELETE] = "delete"};
    const struct write_command *write = member;
    if (write->item_count == 0)
        return;
    REQUIRE((size_t)write->items->op < sizeof ops / sizeof *ops);
    buf_printf(text, " (%s)", ops[write->items->op]);
    describe_target(text, write->items->index, write->items->id);
    describe_more(text, write->item_count, "documents");
}

static void describe_index(struct buf *text, const void *member)
{
    describe_target(text, ((const struct index_command *)member)->name, SLICE_NONE);
}

static void describe_aliases(struct buf *text, const void *member)
{
    const struct aliases_command *aliases = member;
    if (aliases->action_count == 0)
        return;
    describe_target(text, aliases->actions->index, aliases->actions->alias);
    describe_more(text, aliases->action_count, "actions");
}

static void describe_object(struct buf *text, const void *member)
{
    describe_target(text, ((const struct object_command *)member)->name, SLICE_NONE);
}

static void describe_lock(struct buf *text, const void *member)
{
    const struct lock_command *lock = member;
    if (lock->target_count == 0)
        return;
    const struct lock_target *target = lock->targets;
    describe_target(text, target->index, target->id.len > 0 ? target->id : target->path);
    describe_more(text, lock->target_count, "locks");
}

static void describe_rename(struct buf *text, const void *member)
{
    const struct rename_command *rename = member;
    describe_target(text, rename->index, rename->from);
    buf_lit(text, " to");
    describe_target(text, rename->index, rename->to);
}

/*
 * The ids of sessions and transactions are secrets; the other commands have nothing worth
 * describing.
 */
static void describe_nothing(struct buf *text, const void *member)
{
    (void)text;
    (void)member;
}

#define DESCRIBE_MEMBER(member) \
    _Generic((member),                             \
        const struct write_command *: describe_write, \
        const struct index_command *: describe_index, \
        const struct aliases_command *: describe_aliases, \
        const struct object_command *: describe_object, \
        const struct lock_command *: describe_lock, \
        const struct rename_command *: describe_rename, \
        default: describe_nothing)

static void describe_command(struct buf *text, const struct command *command)
{
    buf_printf(text, "%s", command_name(command->type));
    switch (command->type) {
#define X(symbol, name, code, member, flags, turns)                 \
    case COMMAND_##symbol:                                          \
        DESCRIBE_MEMBER (&command->member)(text, &command->member); \
        break;
#include "core/command/commands.def"
#undef X
    case COMMAND_TYPE_COUNT: break;
    }
}

void poison_describe(struct slice bytes, uint32_t number, struct buf *text)
{
    struct list commands = LIST_INIT(commands);
    struct command_group_header head;
    size_t begin = text->len;
    uint32_t wanted = number == 0 ? 1 : number;
    if (command_group_decode(bytes, &head, &commands) != 0) {
        buf_lit(text, "it cannot be read");
        return;
    }
    size_t count = list_length(&commands);
    for (uint32_t i = 1; !list_empty(&commands); i++) {
        struct command *command = list_entry(commands.next, struct command, link);
        if (i == wanted) {
            buf_printf(text, "command %" PRIu32 " of %zu: ", i, count);
            describe_command(text, command);
        }
        list_remove(&command->link);
        command_free(command);
    }
    if (text->len - begin > DESCRIPTION_BYTES_MAX)
        buf_truncate(text, begin + DESCRIPTION_BYTES_MAX);
}

/* --- The entry ---------------------------------------------------------------------------------------------------- */

struct poison {
    struct at_work_entry found;
    bool in_log;     /* the log has it, and it is not skipped */
    bool last;       /* only annotations follow it */
    bool loading;    /* the process ended while it loaded the checkpoint; then not in_log */
    struct buf text; /* description of the command */
};

/*
 * Describes the entry to operators. One whose first command had not begun is not decoded: that may
 * be what ended the process.
 */
static void describe_found(struct poison *poison, struct slice bytes)
{
    if (poison->found.command == 0)
        buf_printf(&poison->text, "%zu bytes, of which no command had begun; decoding it may be what ends the server",
                   bytes.len);
    else
        poison_describe(bytes, poison->found.command, &poison->text);
}

/* Reads the entries that follow: they may skip it already, or show that it is not the last. */
static int inspect_following(struct cmdlog_cursor *cursor, struct poison *poison)
{
    struct cmdlog_entry entry;
    int r;
    while ((r = cmdlog_next(cursor, &entry)) == 0) {
        cmdlog_position skipped = 0;
        enum recover_annotation annotation = recover_read_annotation(entry.bytes, &skipped);
        if (annotation == RECOVER_NO_ANNOTATION) {
            poison->last = false;
            return 0;
        }
        if (annotation == RECOVER_SKIP && skipped == poison->found.position)
            poison->in_log = false;
    }
    return r == CMDLOG_END ? 0 : r;
}

/* Returns: whether it is the recorded entry. */
static bool is_noted(const struct cmdlog_entry *entry, const struct at_work_entry *found)
{
    struct command_group_header head;
    return entry->position == found->position && entry->bytes.len == found->bytes &&
           command_group_read_header(entry->bytes, &head) == 0 && head.ts == found->ts;
}

/* Looks the recorded entry up in the log. */
static int find_in_log(struct cmdlog *log, struct poison *poison)
{
    REQUIRE(poison->found.position != 0);
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    int r = cmdlog_follow(log, poison->found.position, &cursor);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if ((r = cmdlog_next(cursor, &entry)) == 0 && is_noted(&entry, &poison->found)) {
        poison->in_log = poison->last = true;
        describe_found(poison, entry.bytes);
        r = inspect_following(cursor, poison);
    }
    cmdlog_unfollow(cursor);
    return r < 0 ? tl_trace(r) : 0;
}

/* Reads the log position of the store's checkpoint and the size of its record; 0: it has none. */
static int read_checkpoint(struct store *store, cmdlog_position *ret_position, size_t *ret_bytes)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_lineage lineage; /* unused; recover_core() checks it */
    int r = store_checkpoint_record(store, &record);
    *ret_position = 0;
    if (r == 0)
        r = recover_read_position(buf_as_slice(&record), ret_position, &lineage);
    else if (r == STORE_NOT_FOUND)
        r = 0;
    *ret_bytes = record.len;
    buf_deinit(&record);
    return r;
}

/*
 * Finds out whether the process ended in an entry that this start would apply. Another entry is
 * dropped from the page.
 */
static int find_end(struct store *store, struct cmdlog *log, struct at_work *at_work, struct poison *poison)
{
    cmdlog_position checkpoint;
    size_t bytes;
    if (!at_work_ended_in(at_work, &poison->found))
        return 0;
    int r = read_checkpoint(store, &checkpoint, &bytes);
    if (r == 0 && poison->found.ts == AT_WORK_LOADING)
        poison->loading = poison->found.position == checkpoint && poison->found.bytes == bytes;
    else if (r == 0 && poison->found.position > checkpoint)
        r = find_in_log(log, poison);
    if (r == 0 && !poison->in_log && !poison->loading)
        at_work_forget_entry(at_work);
    return r;
}

/* --- The decision ------------------------------------------------------------------------------------------------- */

static int refuse_entry(const struct poison *poison, char **ret_reason)
{
    REQUIRE(poison->in_log);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    uint64_t position = poison->found.position;
    buf_printf(&text,
               "the server has ended %" PRIu32 " times while it decoded or applied entry %" PRIu64
               " of the log, and does not start again. ",
               poison->found.ends, position);
    if (poison->last)
        buf_printf(&text, "No client was answered for it. --skip-entry %" PRIu64 " leaves it out permanently; ",
                   position);
    else
        buf_lit(&text, "Other entries follow it, so it has been applied before, and cannot be left out: start the "
                       "version of the server that applied it, or restore a backup; ");
    buf_printf(
        &text,
        "--retry-entry %" PRIu64
        " tries it once more, if the server was killed from outside or had too little memory. Keep a copy of the data "
        "directory and report this (docs/operating.md, \"An entry that ends the server\"). The entry: ",
        position);
    buf_slice(&text, buf_as_slice(&poison->text));
    if (ret_reason != NULL)
        *ret_reason = mem_strdup(text.data, text.len);
    buf_deinit(&text);
    return POISON_REFUSED;
}

static int refuse_loading(const struct poison *poison, char **ret_reason)
{
    REQUIRE(poison->loading && !poison->in_log);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    uint64_t position = poison->found.position;
    buf_printf(
        &text,
        "the server has ended %" PRIu32 " times while it loaded the checkpoint of its store (the folder `rocks') at "
        "entry %" PRIu64 " of the log, and does not start again. Start the version of the server that made it, or "
        "`tidelock restore' a backup; --retry-entry %" PRIu64
        " loads it once more, if the server was killed from outside or had too little memory. Keep a copy of the "
        "data directory and report this (docs/operating.md, \"An entry that ends the server\")",
        poison->found.ends, position, position);
    if (ret_reason != NULL)
        *ret_reason = mem_strdup(text.data, text.len);
    buf_deinit(&text);
    return POISON_REFUSED;
}

static int skip_entry(const struct poison *poison, struct cmdlog *log, struct at_work *at_work)
{
    REQUIRE(poison->in_log && poison->last);
    struct command *command = command_new(COMMAND_SKIP, DIALECT_7);
    command->skip.position = poison->found.position;
    int r = recover_append_annotation(log, command);
    command_free(command);
    if (r < 0)
        return tl_trace(r);
    at_work_forget_entry(at_work);
    log_warning("--skip-entry: entry %" PRIu64 " of the log is left out from now on: %.*s", poison->found.position,
                SLICE_ARG(buf_as_slice(&poison->text)));
    return 0;
}

static void warn_unused_options(const struct poison *poison, const struct poison_choice *choice)
{
    cmdlog_position position = poison->in_log || poison->loading ? poison->found.position : 0;
    if (choice->skip != 0 && (choice->skip != position || poison->loading))
        log_warning("--skip-entry: the server did not end in entry %" PRIu64
                    ", or it is left out already; the option can go",
                    choice->skip);
    if (choice->retry != 0 && choice->retry != position)
        log_warning("--retry-entry: the server did not end in entry %" PRIu64
                    ", or has applied it since; the option can go",
                    choice->retry);
}

/*
 * Logs that the start applies the entry after all. One that was only decoded ahead is not applied "again", and the
 * cause of the end may have been another one.
 */
static void warn_next_attempt(const struct poison *poison, const char *log)
{
    REQUIRE(poison->in_log);
    bool ahead = poison->found.ahead;
    log_warning("the server ended while it %s entry %" PRIu64
                " of %s, and applies it %s. If it ends once more, the next start is refused, and says what can be "
                "done. The entry: %.*s",
                ahead ? "decoded" : "applied", poison->found.position, log, ahead ? "now" : "again now",
                SLICE_ARG(buf_as_slice(&poison->text)));
}

static int decide_alone(const struct poison *poison, struct cmdlog *log, struct at_work *at_work,
                        const struct poison_choice *choice, char **ret_reason)
{
    REQUIRE(poison->in_log && poison->found.position != 0);
    if (choice->skip == poison->found.position)
        return poison->last ? skip_entry(poison, log, at_work) : refuse_entry(poison, ret_reason);
    if (choice->retry == poison->found.position)
        at_work_retry_entry(at_work);
    else if (poison->found.ends >= AT_WORK_ENDS_MAX)
        return refuse_entry(poison, ret_reason);
    warn_next_attempt(poison, "the log");
    return 0;
}

/* A checkpoint cannot be skipped: no earlier one is kept, and the log before it is gone. */
static int decide_loading(const struct poison *poison, struct at_work *at_work, const struct poison_choice *choice,
                          char **ret_reason)
{
    REQUIRE(poison->loading && !poison->in_log);
    if (choice->retry == poison->found.position)
        at_work_retry_entry(at_work);
    else if (poison->found.ends >= AT_WORK_ENDS_MAX)
        return refuse_loading(poison, ret_reason);
    log_warning("the server ended while it loaded the checkpoint of its store at entry %" PRIu64
                " of the log, and loads it again now. If it ends once more, the next start is refused",
                poison->found.position);
    return 0;
}

int poison_settle(struct store *store, struct cmdlog *log, struct at_work *at_work, const struct poison_choice *choice,
                  char **ret_reason)
{
    struct poison poison = {.text = BUF_INIT(BUF_UNLIMITED)};
    int r = find_end(store, log, at_work, &poison);
    if (r == 0) {
        warn_unused_options(&poison, choice);
        if (poison.in_log)
            r = decide_alone(&poison, log, at_work, choice, ret_reason);
        else if (poison.loading)
            r = decide_loading(&poison, at_work, choice, ret_reason);
    }
    buf_deinit(&poison.text);
    return r;
}

/* --- In a cluster ------------------------------------------------------------------------------------------------- */

#define ATTEMPT_US (2 * TL_SECOND)
#define RETRY_US (100 * TL_MS)
#define WARN_US (5 * TL_SECOND)

/* A wait for the log. */
struct log_wait {
    uint64_t since_us; /* boot clock: its begin, or the newest report */
    bool reported;
};

static struct log_wait begin_wait(void)
{
    return (struct log_wait){.since_us = clock_boot_us()};
}

/*
 * Waits before the next attempt to reach the log. Logs and reports that it waits, each WARN_US.
 * Returns: 0; TL_ERR_STOPPED: the start is to end.
 */
static int await_log(const struct poison_host *host, struct log_wait *wait)
{
    if (host->stopping != NULL && atomic_load(host->stopping))
        return TL_ERR_STOPPED;
    if (clock_boot_us() - wait->since_us >= WARN_US) {
        log_warning("the log of the cluster cannot be reached; this start waits for it");
        if (host->report_wait != NULL)
            host->report_wait(true);
        *wait = (struct log_wait){.since_us = clock_boot_us(), .reported = true};
    }
    usleep((useconds_t)RETRY_US);
    return 0;
}

static void end_wait(const struct poison_host *host, const struct log_wait *wait)
{
    if (wait->reported && host->report_wait != NULL)
        host->report_wait(false);
}

/* Repeats a call of the log until it can be reached, or the start of `host` is to end. */
#define UNTIL_REACHED(r, host, call)                                                           \
    do {                                                                                       \
        struct log_wait wait_ = begin_wait();                                                  \
        while (((r) = (call)) == CMDLOG_UNREACHABLE && ((r) = await_log((host), &wait_)) == 0) \
            ;                                                                                  \
        end_wait((host), &wait_);                                                              \
    } while (0)

/* Reads the next entry up to `head`. Returns: as cmdlog_next(); CMDLOG_END: none is left; TL_ERR_STOPPED. */
static int next_up_to(const struct poison_host *host, struct cmdlog_cursor *cursor, cmdlog_position head,
                      struct cmdlog_entry *ret)
{
    struct log_wait wait = begin_wait();
    int r;
    while ((r = cmdlog_next(cursor, ret)) == CMDLOG_END && cmdlog_cursor_position(cursor) < head)
        if (cmdlog_await(cursor, clock_boot_us() + ATTEMPT_US) != 0 && (r = await_log(host, &wait)) != 0)
            break;
    end_wait(host, &wait);
    return r == 0 && ret->position > head ? CMDLOG_END : r;
}

/* Returns: whether the entry has a HEARTBEAT of a host that has applied `position`. */
static bool shows_application(const struct cmdlog_entry *entry, cmdlog_position position)
{
    struct slice commands, bytes;
    bool shows = false;
    if (command_group_open(entry->bytes, &commands) != 0)
        return false;
    while (!shows && command_group_take(&commands, &bytes)) {
        struct command *command;
        if (command_read_type(bytes) != COMMAND_HEARTBEAT || command_decode(bytes, &command) != 0)
            continue;
        shows = command->heartbeat.position >= position;
        command_free(command);
    }
    return shows;
}

/* Appends to `applied_by` the name of a host that has applied the entry, as the log shows. */
static int find_application(const struct poison_host *host, struct cmdlog_cursor *cursor, cmdlog_position head,
                            const struct poison *poison, struct buf *applied_by)
{
    REQUIRE(applied_by->len == 0);
    struct cmdlog_entry entry;
    int r;
    while ((r = next_up_to(host, cursor, head, &entry)) == 0 && applied_by->len == 0)
        if (shows_application(&entry, poison->found.position))
            buf_slice(applied_by, entry.host);
    return r < 0 ? tl_trace(r) : 0;
}

/* As find_in_log(), of a shared log. */
static int find_in_shared_log(struct cmdlog *log, const struct poison_host *host, struct poison *poison,
                              struct buf *applied_by)
{
    REQUIRE(poison->found.position != 0);
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    cmdlog_position head;
    int r;
    UNTIL_REACHED(r, host, cmdlog_read_head(log, clock_boot_us() + ATTEMPT_US, &head));
    if (r != 0 || poison->found.position > head)
        return r;
    r = cmdlog_follow(log, poison->found.position, &cursor);
    if (r != 0)
        return r;
    r = next_up_to(host, cursor, head, &entry);
    if (r == 0 && is_noted(&entry, &poison->found)) {
        poison->in_log = true;
        describe_found(poison, entry.bytes);
        r = find_application(host, cursor, head, poison, applied_by);
    }
    cmdlog_unfollow(cursor);
    return r == CMDLOG_END ? 0 : r;
}

/* Makes this host a known one, with its checkpoint, before it applies anything. */
static int become_known(struct cmdlog *log, const struct poison_host *host)
{
    const struct cmdlog_checkpoint checkpoint = {
        .position = host->checkpoint, .locator = SLICE_LIT("store"), .log_bytes = host->log_bytes};
    int r;
    UNTIL_REACHED(r, host, cmdlog_put_checkpoint(log, &checkpoint));
    return r;
}

static int give_reason(struct buf *text, const struct poison *poison, char **ret_reason)
{
    buf_lit(text, ". Keep a copy of the data directory and report this (docs/operating.md, \"An entry that ends the "
                  "server\"). The entry: ");
    buf_slice(text, buf_as_slice(&poison->text));
    if (ret_reason != NULL)
        *ret_reason = mem_strdup(text->data, text->len);
    return POISON_REFUSED;
}

static int refuse_in_cluster(const struct poison *poison, struct slice applied_by, char **ret_reason)
{
    REQUIRE(poison->in_log);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    uint64_t position = poison->found.position;
    buf_printf(&text,
               "the server has ended %" PRIu32 " times while it decoded or applied entry %" PRIu64
               " of the log of the cluster, and does not start again. ",
               poison->found.ends, position);
    if (applied_by.len > 0)
        buf_printf(&text,
                   "Host %.*s has applied it, so it cannot be left out: start the version of the server that applied "
                   "it, or start with an empty data directory, which copies a checkpoint of a live host; ",
                   SLICE_ARG(applied_by));
    else
        buf_printf(&text,
                   "It is not known to have been applied anywhere. --skip-entry %" PRIu64
                   " on one host leaves it out permanently on all, when every host has stopped here; if another host "
                   "has applied it, start with an empty data directory, which copies a checkpoint of that host; ",
                   position);
    buf_printf(&text,
               "--retry-entry %" PRIu64
               " tries it once more, if the server was killed from outside or had too little memory",
               position);
    int r = give_reason(&text, poison, ret_reason);
    buf_deinit(&text);
    return r;
}

static int refuse_skip(const struct poison *poison, const struct cmdlog_skip_refusal *refusal, char **ret_reason)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    uint64_t position = poison->found.position;
    buf_printf(&text, "--skip-entry %" PRIu64 ": not left out, since these hosts ", position);
    if (refusal->applied)
        buf_printf(
            &text,
            "have applied it: %.*s. Start this host with an empty data directory, which copies a checkpoint of a "
            "live host",
            SLICE_ARG(buf_as_slice(&refusal->hosts)));
    else
        buf_printf(
            &text,
            "may have applied it, or may apply it: %.*s. Start each of them: one that this entry ends refuses its "
            "next start and reports that, and then the entry can be left out. For a host that no longer exists, "
            "delete the key PREFIX/checkpoint/NAME in etcd",
            SLICE_ARG(buf_as_slice(&refusal->hosts)));
    int r = give_reason(&text, poison, ret_reason);
    buf_deinit(&text);
    return r;
}

/* Skips the entry for all hosts. Returns: 0; POISON_REFUSED; fatal codes. */
static int skip_in_cluster(const struct poison_host *host, const struct poison *poison, struct cmdlog *log,
                           char **ret_reason)
{
    REQUIRE(poison->in_log && poison->found.position != 0);
    struct cmdlog_skip_refusal refusal = {.hosts = BUF_INIT(BUF_UNLIMITED)};
    int r;
    UNTIL_REACHED(r, host, cmdlog_skip(log, poison->found.position, clock_boot_us() + ATTEMPT_US, &refusal));
    if (r == CMDLOG_REFUSED)
        r = refuse_skip(poison, &refusal, ret_reason);
    else if (r == 0)
        log_warning("--skip-entry: entry %" PRIu64 " of the log is left out by all hosts from now on: %.*s",
                    poison->found.position, SLICE_ARG(buf_as_slice(&poison->text)));
    buf_deinit(&refusal.hosts);
    return r == CMDLOG_EXISTS ? 0 : r;
}

/* Records that this host has stopped before the entry. Assumes: it has never applied it. */
static int halt_at_entry(const struct poison_host *host, const struct poison *poison, struct cmdlog *log)
{
    int r;
    UNTIL_REACHED(r, host, cmdlog_halt(log, poison->found.position, clock_boot_us() + ATTEMPT_US));
    return r;
}

/* Decides about an entry that is not skipped yet. Returns: 0: the log can be applied; as above. */
static int decide_in_cluster(const struct poison_host *host, const struct poison *poison, struct cmdlog *log,
                             struct at_work *at_work, const struct poison_choice *choice, struct slice applied_by,
                             char **ret_reason)
{
    REQUIRE(poison->in_log);
    bool skips = choice->skip == poison->found.position;
    int r = 0;
    if (choice->retry == poison->found.position) {
        at_work_retry_entry(at_work);
    } else if (skips || poison->found.ends >= AT_WORK_ENDS_MAX) {
        if (applied_by.len > 0 || (r = halt_at_entry(host, poison, log)) != 0)
            return r != 0 ? r : refuse_in_cluster(poison, applied_by, ret_reason);
        return skips ? skip_in_cluster(host, poison, log, ret_reason)
                     : refuse_in_cluster(poison, applied_by, ret_reason);
    }
    warn_next_attempt(poison, "the log of the cluster");
    return 0;
}

/*
 * Reads the skips, after this host is known and has resumed: from then on no further entry can be
 * skipped while it runs (cmdlog README.md, guarantee 15).
 */
static int resume_and_read_skips(const struct poison_host *host, struct cmdlog *log, struct cmdlog_skips **ret_skips)
{
    int r;
    UNTIL_REACHED(r, host, cmdlog_resume(log, clock_boot_us() + ATTEMPT_US));
    if (r == 0)
        UNTIL_REACHED(r, host, cmdlog_list_skips(log, clock_boot_us() + ATTEMPT_US, ret_skips));
    return r;
}

/* Finds the entry in which this host ended, unless it is skipped, or was applied since. */
static int find_in_cluster(struct cmdlog *log, const struct poison_host *host, struct at_work *at_work,
                           struct poison *poison, struct buf *applied_by)
{
    struct cmdlog_skips *skips;
    int r;
    if (!at_work_ended_in(at_work, &poison->found))
        return 0;
    UNTIL_REACHED(r, host, cmdlog_list_skips(log, clock_boot_us() + ATTEMPT_US, &skips));
    if (r != 0)
        return r;
    if (poison->found.position > host->checkpoint && !cmdlog_is_skipped(skips, poison->found.position))
        r = find_in_shared_log(log, host, poison, applied_by);
    if (r == 0 && poison->in_log && applied_by->len == 0 && at_work_applied(at_work) >= poison->found.position)
        buf_slice(applied_by, host->name);
    if (r == 0 && !poison->in_log)
        at_work_forget_entry(at_work);
    mem_free(skips);
    return r;
}

int poison_settle_cluster(struct cmdlog *log, const struct poison_host *host, struct at_work *at_work,
                          const struct poison_choice *choice, struct cmdlog_skips **ret_skips, char **ret_reason)
{
    struct poison poison = {.text = BUF_INIT(BUF_UNLIMITED)};
    struct buf applied_by = BUF_INIT(BUF_UNLIMITED);
    int r = become_known(log, host);
    if (r == 0)
        r = find_in_cluster(log, host, at_work, &poison, &applied_by);
    if (r == 0) {
        warn_unused_options(&poison, choice);
        if (poison.in_log)
            r = decide_in_cluster(host, &poison, log, at_work, choice, buf_as_slice(&applied_by), ret_reason);
    }
    if (r == 0)
        r = resume_and_read_skips(host, log, ret_skips);
    if (r == 0 && cmdlog_is_skipped(*ret_skips, poison.found.position))
        at_work_forget_entry(at_work);
    buf_deinit(&poison.text);
    buf_deinit(&applied_by);
    return r == CMDLOG_TRIMMED ? recover_refuse_trimmed(ret_reason) : r;
}
