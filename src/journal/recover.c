/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery; see recover.h. */
#include "journal/recover.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/step/core.h"
#include "core/step/command_group.h"
#include "core/step/save.h"
#include "journal/at_work.h"
#include "journal/read_ahead.h"
#include "store/store.h"

/*
 * A checkpoint record: magic, version, position (varint), the log's identity and its chain at the
 * position (not in version 1), bytes of the log (varint, only in version 3, of a cluster's host), the
 * core.
 */
#define RECORD_MAGIC "tidestop"
/*
 * The remedy if store and log do not belong together; which of them is the wrong one is unknown
 * here.
 */
#define REMEDY                                                                                                        \
    "put the folders `rocks' and `log' of one data directory back, as they were at one time, or start with a backup " \
    "(docs/operating.md, \"Backup\")"

enum { RECORD_VERSION = 3, RECORD_WITHOUT_LOG_BYTES = 2, RECORD_WITHOUT_LINEAGE = 1, CHAIN_BEGIN = 1 };

int recover_write_record(struct core *core, cmdlog_position position, const struct cmdlog_lineage *lineage,
                         uint64_t log_bytes, struct buf *record)
{
    static const struct cmdlog_lineage unknown;
    lineage = lineage == NULL ? &unknown : lineage;
    buf_lit(record, RECORD_MAGIC);
    buf_byte(record, log_bytes == 0 ? RECORD_WITHOUT_LOG_BYTES : RECORD_VERSION);
    buf_varint(record, position);
    buf_append(record, lineage->identity, sizeof lineage->identity);
    buf_varint(record, lineage->history_crc);
    if (log_bytes != 0)
        buf_varint(record, log_bytes);
    return core_save_rest(core, record);
}

static int refuse_recovery(int code, char **ret_reason, struct slice reason)
{
    if (ret_reason != NULL)
        *ret_reason = mem_strdup(reason.data, reason.len);
    return tl_trace(code);
}

int recover_refuse_trimmed(char **ret_reason)
{
    return refuse_recovery(
        TL_ERR_CORRUPT, ret_reason,
        SLICE_LIT("the log of the cluster was trimmed beyond what this host has applied (--catch-up) while "
                  "it started: start it again, and it copies a checkpoint of another host"));
}

static bool take_lineage(struct slice *record, struct cmdlog_lineage *ret_lineage)
{
    struct slice identity;
    uint64_t chain;
    if (!slice_take(record, CMDLOG_IDENTITY_BYTES, &identity) || !slice_take_varint(record, &chain) ||
        chain > UINT32_MAX)
        return false;
    memcpy(ret_lineage->identity, identity.data, CMDLOG_IDENTITY_BYTES);
    ret_lineage->history_crc = (uint32_t)chain;
    return true;
}

/* Parses a record. Returns: 0; TL_ERR_VERSION; TL_ERR_CORRUPT. */
static int read_record(struct slice record, cmdlog_position *ret_position, struct cmdlog_lineage *ret_lineage,
                       uint64_t *ret_log_bytes, struct slice *ret_core)
{
    struct slice head;
    *ret_log_bytes = 0;
    *ret_lineage = (struct cmdlog_lineage){.history_crc = 0};
    if (!slice_take(&record, strlen(RECORD_MAGIC) + 1, &head) || !slice_starts_with(head, SLICE_LIT(RECORD_MAGIC)))
        return tl_trace(TL_ERR_CORRUPT);
    unsigned char version = (unsigned char)head.data[head.len - 1];
    if (version > RECORD_VERSION)
        return tl_trace(TL_ERR_VERSION);
    if (!slice_take_varint(&record, ret_position) ||
        (version > RECORD_WITHOUT_LINEAGE && !take_lineage(&record, ret_lineage)) ||
        (version > RECORD_WITHOUT_LOG_BYTES && !slice_take_varint(&record, ret_log_bytes)))
        return tl_trace(TL_ERR_CORRUPT);
    *ret_core = record;
    return 0;
}

int recover_read_position(struct slice record, cmdlog_position *ret_position, struct cmdlog_lineage *ret_lineage)
{
    struct slice core;
    uint64_t log_bytes;
    return read_record(record, ret_position, ret_lineage, &log_bytes, &core);
}

int recover_read_record(struct store *store, struct slice record, const struct core_limits *limits,
                        struct core **ret_core, struct recovered *ret_recovered, char **ret_reason)
{
    REQUIRE(ret_core != NULL && ret_recovered != NULL);
    struct buf reason = BUF_INIT(BUF_UNLIMITED);
    struct slice saved;
    int r = read_record(record, &ret_recovered->checkpoint, &ret_recovered->lineage, &ret_recovered->log_bytes, &saved);
    if (r < 0)
        return refuse_recovery(r, ret_reason,
                               SLICE_LIT("the record of the store's checkpoint is damaged, or of a newer version"));
    r = core_load(store, limits, saved, &reason, ret_core);
    if (r == CORE_SAVE_NEWER)
        r = TL_ERR_VERSION;
    if (r < 0) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        buf_lit(&text, "the state in the store's checkpoint: ");
        buf_slice(&text, buf_as_slice(&reason));
        r = refuse_recovery(r, ret_reason, buf_as_slice(&text));
        buf_deinit(&text);
    }
    buf_deinit(&reason);
    return r;
}

/* Loads the core from a checkpoint record, and records in `at_work` that it does. */
static int load_checkpoint(struct store *store, const struct core_limits *limits, struct slice record,
                           struct at_work *at_work, struct core **ret_core, struct recovered *recovered,
                           char **ret_reason)
{
    cmdlog_position position;
    struct cmdlog_lineage lineage;
    if (recover_read_position(record, &position, &lineage) == 0 && position != 0)
        at_work_begin_entry(at_work, position, AT_WORK_LOADING, record.len);
    int r = recover_read_record(store, record, limits, ret_core, recovered, ret_reason);
    at_work_fail_entry(at_work); /* nothing was applied; recover_core() drops the count of ends */
    return r;
}

int recover_check_older(struct store *store, void *context)
{
    struct core *core;
    int r = core_open(store, context, &core);
    if (r < 0)
        return tl_trace(r);
    r = core_check_conversion(core);
    core_close(core);
    return r < 0 ? tl_trace(r) : 0;
}

/* Opens a new store, or converts one of format 1 or 2. */
static int open_without_checkpoint(struct store *store, const struct core_limits *limits, struct core **ret_core)
{
    int r = core_open(store, limits, ret_core);
    if (r == 0 && (r = core_convert(*ret_core)) < 0)
        core_close(*ret_core);
    return r < 0 ? tl_trace(r) : 0;
}

static int begin_recovery(struct store *store, const struct core_limits *limits, struct at_work *at_work,
                          struct core **ret_core, struct recovered *recovered, char **ret_reason)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    int r = store_checkpoint_record(store, &record);
    if (r == 0)
        r = load_checkpoint(store, limits, buf_as_slice(&record), at_work, ret_core, recovered, ret_reason);
    else if (r == STORE_NOT_FOUND)
        r = open_without_checkpoint(store, limits, ret_core);
    if (r == 0 && core_chain(*ret_core) == 0) /* new store, or of a version without a chain */
        core_begin_chain(*ret_core, CHAIN_BEGIN);
    buf_deinit(&record);
    return r;
}

int recover_begin(struct store *store, const struct core_limits *limits, struct core **ret_core,
                  cmdlog_position *ret_position, uint64_t *ret_log_bytes, char **ret_reason)
{
    REQUIRE(ret_core != NULL && ret_position != NULL && ret_log_bytes != NULL);
    struct recovered recovered = {0};
    int r = begin_recovery(store, limits, NULL, ret_core, &recovered, ret_reason);
    *ret_position = recovered.checkpoint;
    *ret_log_bytes = recovered.log_bytes;
    return r;
}

void recover_free_completed(struct effects *effects)
{
    while (!list_empty(&effects->completed)) {
        struct command *command = list_entry(effects->completed.next, struct command, link);
        list_remove(&command->link);
        /* Its snapshot belongs to the client, which is gone. */
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
        command_free(command);
    }
}

/* Decodes an entry. Returns: 0; TL_ERR_VERSION; TL_ERR_CORRUPT. */
static int decode_entry(struct read_ahead *ahead, struct read_ahead_entry *entry, char **ret_reason)
{
    int r = read_ahead_decode(ahead, entry);
    if (r == COMMAND_CODEC_NEWER)
        return refuse_recovery(TL_ERR_VERSION, ret_reason, SLICE_LIT("the log has commands of a newer version"));
    return r < 0 ? refuse_recovery(r, ret_reason, SLICE_LIT("the log has an invalid entry")) : 0;
}

struct replay {
    struct core *core;   /* NULL: entries are decoded, not applied */
    cmdlog_position end; /* of the entries to replay, which precede it; 0: of the log */
    struct at_work *at_work;
    bool in_place; /* entries are not read ahead */
    struct recovered *recovered;
    struct effects effects;
    struct read_ahead *ahead;
    struct read_ahead_entry *held; /* held back until the next one shows whether to apply it; NULL: none */
    bool of_other_build; /* the newest MARK is of another build, or those after it have no chain */
    const struct recover_observer *observer; /* NULL: none */
    struct recover_progress progress;        /* unset without an observer */
    uint64_t begun_us, reported_us;          /* boot clock: of the first report and of the newest */
    uint64_t beyond_bytes;                   /* size of the log from `end` on; 0: `end` has not been reached */
    char **ret_reason;
};

/*
 * Compares the chain in a MARK, if this is one, with the core's. A MARK is alone in its entry
 * (README.md, "The hash chain"). The chain of another build, and the first one after it, are taken
 * over instead.
 */
static void check_chain(struct replay *replay, const struct list *commands, cmdlog_position position)
{
    REQUIRE(replay->core != NULL && position != 0);
    const struct command *first = list_entry(commands->next, struct command, link);
    if (list_empty(commands) || first->type != COMMAND_MARK)
        return;
    const struct mark_command *mark = &first->mark;
    bool other = !slice_equal(mark->build, slice_from(CORE_BUILD));
    bool compared = !replay->of_other_build && !other;
    if (other)
        replay->recovered->other_build = position;
    replay->of_other_build = other || (replay->of_other_build && mark->chain == 0);
    if (mark->chain == 0)
        return;
    if (!compared)
        core_begin_chain(replay->core, mark->chain);
    else if (replay->recovered->differs == 0 && mark->chain != core_chain(replay->core))
        replay->recovered->differs = position;
}

static int replay_entry(struct replay *replay, struct read_ahead_entry *read)
{
    struct core *core = replay->core;
    const struct cmdlog_entry *entry = &read->entry;
    int r = decode_entry(replay->ahead, read, replay->ret_reason);
    if (r == 0 && core != NULL) {
        check_chain(replay, &read->commands, entry->position);
        at_work_begin_entry(replay->at_work, entry->position, read->head.ts, entry->bytes.len);
        r = command_group_apply(core, &read->head, &read->commands, &replay->effects);
        if (r == 0)
            at_work_end_entry(replay->at_work);
        else
            at_work_fail_entry(replay->at_work);
    }
    INSIST(r != 0 || core == NULL || list_empty(&read->commands));
    recover_free_completed(&replay->effects);
    return r;
}

enum recover_annotation recover_read_annotation(struct slice bytes, cmdlog_position *ret_skipped)
{
    enum { ANNOTATION_BYTES_MAX = 4096 };
    struct slice commands, only;
    struct command *command;
    if (bytes.len > ANNOTATION_BYTES_MAX || command_group_open(bytes, &commands) != 0 ||
        !command_group_take(&commands, &only) || commands.len > 0)
        return RECOVER_NO_ANNOTATION;
    *ret_skipped = 0;
    enum command_type type = command_read_type(only);
    if (type == COMMAND_TRIED)
        return RECOVER_TRIED;
    if (type != COMMAND_SKIP || command_decode(only, &command) != 0)
        return RECOVER_NO_ANNOTATION;
    *ret_skipped = command->skip.position;
    command_free(command);
    return RECOVER_SKIP;
}

static int apply_held(struct replay *replay)
{
    struct read_ahead_entry *held = tl_steal(replay->held);
    int r = held == NULL ? 0 : replay_entry(replay, held);
    read_ahead_entry_free(held);
    return r;
}

/* Applies a SKIP: drops the held entry, which it names. */
static int replay_skip(struct replay *replay, struct read_ahead_entry *entry)
{
    cmdlog_position skipped = entry->skipped;
    if (skipped == 0 || replay->held == NULL || replay->held->entry.position != skipped)
        return refuse_recovery(TL_ERR_CORRUPT, replay->ret_reason,
                               SLICE_LIT("the log skips an entry other than the preceding one"));
    read_ahead_entry_free(tl_steal(replay->held));
    replay->recovered->skipped = skipped;
    return replay_entry(replay, entry);
}

/*
 * Replays an entry. TRIED is applied before its predecessor, SKIP instead of it (README.md, "Poison
 * entries"). Owns: `entry`.
 */
static int replay_next(struct replay *replay, struct read_ahead_entry *entry)
{
    REQUIRE(replay->held == NULL || entry->entry.position > replay->held->entry.position);
    if (entry->annotation == RECOVER_NO_ANNOTATION) {
        int r = apply_held(replay);
        replay->held = entry;
        return r;
    }
    int r = entry->annotation == RECOVER_TRIED ? replay_entry(replay, entry) : replay_skip(replay, entry);
    read_ahead_entry_free(entry);
    return r;
}

static void report_progress(struct replay *replay, enum recover_phase phase, uint64_t left, uint64_t now)
{
    struct recover_progress *progress = &replay->progress;
    progress->phase = phase;
    progress->position = replay->recovered->position;
    progress->entries = progress->position - progress->checkpoint;
    progress->bytes = left < progress->bytes_total ? progress->bytes_total - left : 0;
    progress->us = now - replay->begun_us;
    ENSURE(progress->position <= progress->last && progress->bytes <= progress->bytes_total);
    replay->observer->report(replay->observer->context, progress);
    replay->reported_us = now;
}

/* Begins the reports before the first entry; the log has `left` bytes from it on. */
static void begin_progress(struct replay *replay, struct cmdlog *log, uint64_t left, uint64_t now)
{
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    replay->progress = (struct recover_progress){
        .checkpoint = replay->recovered->checkpoint,
        .last = replay->end != 0 && replay->end <= head.appended ? replay->end - 1 : head.appended,
        .bytes_total = left};
    replay->begun_us = now;
}

/* Reports the progress before `entry`, the newest one that was got, is applied: at the first entry, and when due. */
static void observe_entry(struct replay *replay, struct cmdlog *log, const struct read_ahead_entry *entry)
{
    if (replay->observer == NULL)
        return;
    uint64_t now = clock_boot_us();
    bool first = replay->progress.last == 0;
    if (!first && now - replay->reported_us < replay->observer->period_us)
        return;
    uint64_t left = entry->unread_bytes + entry->entry.bytes.len;
    if (first)
        begin_progress(replay, log, left, now);
    report_progress(replay, first ? RECOVER_BEGINS : RECOVER_REPLAYS, left, now);
}

/* Reports that all entries have been applied, if there was one. */
static void observe_end(struct replay *replay)
{
    if (replay->observer != NULL && replay->progress.last != 0)
        report_progress(replay, RECOVER_ENDED, replay->beyond_bytes, clock_boot_us());
}

/* Gets the next entry to replay. Returns: as read_ahead_next(). */
static int next_entry(struct replay *replay, struct read_ahead_entry **ret_entry)
{
    int r = read_ahead_next(replay->ahead, ret_entry);
    if (r != 0 || replay->end == 0 || (*ret_entry)->entry.position < replay->end)
        return r;
    replay->beyond_bytes = (*ret_entry)->unread_bytes + (*ret_entry)->entry.bytes.len;
    read_ahead_entry_free(*ret_entry);
    return CMDLOG_END;
}

/* Replays what `cursor` reads. */
static int replay_cursor(struct replay *replay, struct cmdlog *log, struct cmdlog_cursor *cursor)
{
    struct recovered *recovered = replay->recovered;
    struct read_ahead_entry *entry;
    int r = 0;
    replay->ahead = read_ahead_open(&(struct read_ahead_options){
        .cursor = cursor, .end = replay->end, .at_work = replay->at_work, .in_place = replay->in_place});
    while (r == 0 && (r = next_entry(replay, &entry)) == 0) {
        cmdlog_position position = entry->entry.position;
        size_t bytes = entry->entry.bytes.len;
        observe_entry(replay, log, entry);
        r = replay_next(replay, entry);
        INSIST(position > recovered->position);
        recovered->position = position;
        recovered->replayed_bytes += bytes;
    }
    if (r == CMDLOG_END)
        r = apply_held(replay);
    else if (r >= 0)
        r = TL_ERR_CORRUPT;
    read_ahead_entry_free(tl_steal(replay->held));
    read_ahead_close(tl_steal(replay->ahead));
    return r;
}

/* Replays all entries after recovered->checkpoint, and sets the other fields of `recovered`. */
static int replay_entries(struct replay *replay, struct cmdlog *log)
{
    struct recovered *recovered = replay->recovered;
    cmdlog_position from = recovered->checkpoint;
    struct cmdlog_cursor *cursor;
    int r = cmdlog_follow(log, from + 1, &cursor);
    if (r == CMDLOG_TRIMMED)
        return refuse_recovery(TL_ERR_CORRUPT, replay->ret_reason,
                               SLICE_LIT("the log begins after the store's checkpoint: " REMEDY));
    if (r < 0)
        return tl_trace(r);
    effects_init(&replay->effects);
    recovered->position = from;
    r = replay_cursor(replay, log, cursor);
    cmdlog_unfollow(cursor);
    if (r == 0)
        observe_end(replay);
    return r < 0 ? tl_trace(r) : 0;
}

/* Checks that the store was made from this log's entries. */
static int check_lineage(struct cmdlog *log, const struct recovered *store, char **ret_reason)
{
    struct cmdlog_lineage lineage;
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    if (store->checkpoint > head.appended)
        return refuse_recovery(TL_ERR_CORRUPT, ret_reason,
                               SLICE_LIT("the store's checkpoint is beyond the end of the log: " REMEDY));
    int r = cmdlog_lineage(log, store->checkpoint, &lineage);
    if (r < 0)
        return tl_trace(r);
    if (cmdlog_lineage_fits(&lineage, &store->lineage))
        return 0;
    bool other = memcmp(lineage.identity, store->lineage.identity, sizeof lineage.identity) != 0;
    return refuse_recovery(TL_ERR_CORRUPT, ret_reason,
                           other ? SLICE_LIT("the store was made from another log than the one next to it: " REMEDY)
                                 : SLICE_LIT("the store was made from other entries than the log next to it has up to "
                                             "the store's checkpoint: " REMEDY));
}

int recover_check_log(struct cmdlog *log, const struct recovered *store, cmdlog_position *ret_later_count,
                      char **ret_reason)
{
    REQUIRE(log != NULL && ret_later_count != NULL);
    struct recovered recovered = *store;
    int r = check_lineage(log, store, ret_reason);
    struct replay looking = {.recovered = &recovered, .in_place = true, .ret_reason = ret_reason};
    if (r == 0)
        r = replay_entries(&looking, log);
    *ret_later_count = r == 0 ? recovered.position - store->checkpoint : 0;
    return r;
}

void recover_close_core(struct core *core)
{
    REQUIRE(core != NULL);
    struct effects effects;
    effects_init(&effects);
    core_stop(core, &effects);
    recover_free_completed(&effects);
    core_close(core);
}

int recover_append_annotation(struct cmdlog *log, const struct command *command)
{
    REQUIRE(command->type == COMMAND_TRIED || command->type == COMMAND_SKIP);
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {0};
    cmdlog_position position;
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    struct slice part = buf_as_slice(&bytes);
    int r = cmdlog_append(log, &part, 1, &position);
    if (r == 0)
        r = cmdlog_sync(log, position);
    buf_deinit(&bytes);
    return r < 0 ? tl_trace(r) : 0;
}

int recover_core_with(struct store *store, struct cmdlog *log, const struct core_limits *limits,
                      const struct recover_options *options, struct core **ret_core, struct recovered *ret_recovered,
                      char **ret_reason)
{
    REQUIRE(options->observer == NULL || options->observer->report != NULL);
    struct at_work *at_work = options->at_work;
    struct recovered recovered = {0};
    struct core *core;
    if (ret_reason != NULL)
        *ret_reason = NULL;
    int r = begin_recovery(store, limits, at_work, &core, &recovered, ret_reason);
    if (r < 0)
        return tl_trace(r);
    core_watch(core, at_work == NULL ? NULL : at_work_watch(at_work));
    uint64_t begun = clock_boot_us();
    r = check_lineage(log, &recovered, ret_reason);
    if (r == 0)
        r = replay_entries(&(struct replay){.core = core,
                                            .end = options->end,
                                            .at_work = at_work,
                                            .in_place = options->in_place,
                                            .recovered = &recovered,
                                            .observer = options->observer,
                                            .ret_reason = ret_reason},
                           log);
    if (r < 0) {
        recover_close_core(core);
        return tl_trace(r);
    }
    at_work_forget_entry(at_work);
    recovered.work_us = clock_boot_us() - begun;
    *ret_core = core;
    *ret_recovered = recovered;
    return 0;
}

int recover_core(struct store *store, struct cmdlog *log, const struct core_limits *limits, struct at_work *at_work,
                 struct core **ret_core, struct recovered *ret_recovered, char **ret_reason)
{
    return recover_core_with(store, log, limits, &(struct recover_options){.at_work = at_work}, ret_core, ret_recovered,
                             ret_reason);
}
