/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends entries to the command log and applies them; makes checkpoints. README.md, "The command
 * log".
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/log.h"
#include "base/magic.h"
#include "core/command/command_codec.h"
#include "core/step/command_group.h"
#include "core/step/save.h"
#include "core/unit/work.h"
#include "journal/at_work.h"
#include "journal/journal_internal.h"
#include "journal/recover.h"

enum {
    ENTRY_BYTES = 1 << 20,         /* an entry of this size gets no further command */
    ENTRY_BUF_BYTES_MAX = 4 << 20, /* a larger buffer of entries is freed after use */
    /* Replay work between checkpoints is at least this multiple of the cost of saving one. */
    SAVE_COST_FACTOR = 10,
    STALL_US = 1000,
    /*
     * Bytes of the state that are written ahead of a checkpoint in one hold of core_lock: a few
     * milliseconds.
     */
    SAVE_AHEAD_BYTES = 1 << 20,
    /* A checkpoint is begun at so many times checkpoint_bytes of writes, whatever is left to save. */
    WRITES_FACTOR = 2,
    SPACE_POLL_US = 50 * 1000,       /* polling interval for space in the log */
    STOP_WAIT_US = 10 * 1000 * 1000, /* limit of the wait for a checkpoint while stopping */
};

/*
 * With less free space no entry is applied while a checkpoint is being flushed. If the disk became
 * full, RocksDB would recover by flushing everything in memory, which must then hold nothing beyond
 * the checkpoint. Other processes are assumed not to fill this much during a flush.
 */
#define SCARCE_BYTES ((uint64_t)2 << 30)

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/*
 * Keeps the commands that an entry of the journal's own has completed, a session close in several
 * steps for example, for the next group.
 */
static void add_pending_replies(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    while (!list_empty(group)) {
        struct list *link = group->next;
        list_remove(link);
        list_append(&journal->pending_replies, link);
    }
}

void journal__take_pending_replies(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    while (!list_empty(&journal->pending_replies)) {
        struct list *link = journal->pending_replies.next;
        list_remove(link);
        list_append(group, link);
    }
}

bool journal__is_memory_full(const struct journal *journal)
{
    return !budget_fits(journal->budget, BUDGET_RETAINED, BUDGET_SMALL); /* as api/request/catalog_growth.h */
}

bool journal__log_ts_ceiling(struct journal *journal, uint64_t ahead)
{
    REQUIRE(journal->ceiling_command == NULL);
    REQUIRE(journal__holds(&journal->core_lock));
    struct list mine = LIST_INIT(mine), group = LIST_INIT(group);
    struct command *command = command_new(COMMAND_MARK, DIALECT_7);
    struct buf kept = BUF_INIT(BUF_UNLIMITED);
    ts_history_save(&journal->ts_history, journal__boot(journal) + TS_HISTORY_ORIGIN, &kept);
    command->mark.ceiling = ahead; /* relative to the entry's timestamp, which next_head() adds */
    command->mark.payload = arena_copy(&command->arena, buf_as_slice(&kept));
    command->mark.chain = core_chain(journal->core);
    command->mark.build = slice_from(CORE_BUILD);
    buf_deinit(&kept);
    journal->ceiling_command = command;
    list_append(&mine, &command->link);
    (void)journal__apply_logged(journal, &mine, &group);
    journal->ceiling_command = NULL;
    bool put = command->problem.type == PROBLEM_NONE;
    INSIST(put || command->problem.type == PROBLEM_DISK_FULL);
    if (put) {
        journal->ts_ceiling = core_ts_ceiling(journal->core);
        journal->ts_ceiling_at = command->ts;
    }
    list_remove(&command->link);
    command_free(command);
    add_pending_replies(journal, &group);
    return put;
}

/*
 * Makes the header of the next entry. If its timestamps come close to the ceiling, an entry that
 * raises the ceiling is logged first. The entry of a MARK adds its own timestamp to the new
 * ceiling.
 * Returns: false: the log has no space for a new ceiling.
 */
static bool next_head(struct journal *journal, struct command_group_header *head)
{
    REQUIRE(journal__holds(&journal->core_lock));
    *head = (struct command_group_header){.host = 0, .ts = journal__next_ts(journal)};
    if (journal->ceiling_command != NULL) {
        journal->ceiling_command->mark.ceiling += head->ts;
    } else if (head->ts + TS_CEILING_MARGIN_US > journal->ts_ceiling) {
        if ((journal->serving && !journal__recheck_ready(journal)) ||
            !journal__put_ts_ceiling(journal, TS_CEILING_LEAD_US))
            return false;
        head->ts = journal__next_ts(journal);
    }
    pthread_mutex_lock(&journal->queue_lock);
    head->clock = journal->step_clock = journal__command_clock(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    head->memory_full = journal__is_memory_full(journal);
    return true;
}

/*
 * Moves commands from `taken` to `entry` and encodes them, except those with COMMAND_UNLOGGED;
 * refused ones go to `group`. `alone`: an entry has one command.
 * Returns: whether any command was encoded.
 */
static bool fill_entry(struct journal *journal, const struct command_group_header *head, bool alone, struct list *taken,
                       struct list *entry, struct list *group)
{
    REQUIRE(!list_empty(taken) && list_empty(entry));
    bool any = false;
    buf_clear(&journal->entry);
    command_group_begin(head, &journal->entry);
    while (!list_empty(taken) && journal->entry.len < ENTRY_BYTES && !(any && alone)) {
        struct command *command = list_entry(taken->next, struct command, link);
        list_remove(&command->link);
        if (journal__refuse_oversized(journal, command)) {
            list_append(group, &command->link);
            continue;
        }
        list_append(entry, &command->link);
        if (command_is(command->type, COMMAND_UNLOGGED))
            continue;
        command_group_add(command, &journal->entry);
        any = true;
    }
    return any;
}

/* Returns: whether the journal is not stopping, so that a thread may wait for disk space. */
static bool may_wait(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool may = !journal->stopping;
    pthread_mutex_unlock(&journal->queue_lock);
    return may;
}

/*
 * Appends the encoded entry to the log. During the start it waits for space; later no thread waits
 * with core_lock held.
 * Returns: false: the log has no space.
 */
static bool append_group(struct journal *journal)
{
    struct slice part = buf_as_slice(&journal->entry);
    cmdlog_position before = journal->position;
    int r;
    while ((r = cmdlog_append(journal->log, &part, 1, &journal->position)) == TL_ERR_NO_SPACE && !journal->serving)
        usleep(SPACE_POLL_US);
    if (r < 0 && r != TL_ERR_NO_SPACE)
        journal__store_failed("writing to the log", r);
    if (r == 0)
        journal->log_bytes += part.len;
    INSIST(r != 0 || journal->position > before);
    return r == 0;
}

/*
 * Refuses the first command, or postpones it if it writes nothing, such as a CANCEL: it then leads
 * the next entry that finds space.
 */
static void refuse_first(struct journal *journal, struct list *from, struct list *group)
{
    REQUIRE(!list_empty(from));
    struct command *command = list_entry(from->next, struct command, link);
    list_remove(&command->link);
    if (command_is(command->type, COMMAND_WRITES_NOTHING)) {
        list_append(&journal->postponed, &command->link);
        return;
    }
    journal__refuse_disk_full(journal, command);
    list_append(group, &command->link);
}

static void take_postponed(struct journal *journal, struct list *taken)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct list *first = taken->next;
    while (journal->ceiling_command == NULL && !list_empty(&journal->postponed)) {
        struct list *link = journal->postponed.next;
        list_remove(link);
        list_insert_before(first, link);
    }
}

/* Returns the commands of an entry that could not be appended to the front of `taken`. */
static void return_entry(struct list *entry, struct list *taken)
{
    struct list *first = taken->next;
    while (!list_empty(entry)) {
        struct list *link = entry->next;
        list_remove(link);
        list_insert_before(first, link);
    }
}

void journal__report_unbounded_step(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    const struct core_metrics *metrics = core_metrics(journal->core);
    uint64_t steps = metric_read(&metrics->steps_undivided);
    if (steps == journal->unbounded_steps)
        return;
    bool again = journal->unbounded_steps > 0 && (steps & (steps - 1)) != 0;
    journal->unbounded_steps = steps;
    if (again || metric_read(&metrics->undivided_version) != COMMAND_CODEC_VERSION)
        return;
    log_warning("a step of the writer was not divided, and all others waited for it, which is a fault of tidelock: "
                "a command [%s] took %" PRIu64 " units of work, and the bound is %" PRIu64 "; %" PRIu64
                " such steps since the start",
                command_name((enum command_type)metric_read(&metrics->undivided_command)),
                metric_read(&metrics->undivided_work), (uint64_t)CORE_STEP_WORK, steps);
}

/*
 * Applies the commands of an entry in order, as a replay does. Commands with COMMAND_UNLOGGED among
 * them are answered on this host only.
 * Returns: the work of the steps.
 */
static uint64_t apply_entry(struct journal *journal, const struct command_group_header *head, struct list *entry,
                            struct list *group)
{
    uint64_t work = 0;
    while (!list_empty(entry)) {
        struct command *command = list_entry(entry->next, struct command, link);
        int r;
        list_remove(&command->link);
        if (command_is(command->type, COMMAND_UNLOGGED)) {
            r = core_inspect(journal->core, command, &journal->effects);
        } else {
            command->ts = command_group_next_ts(head, journal->core);
            command->clock = head->clock;
            command->memory_full = head->memory_full;
            r = core_step(journal->core, command, &journal->effects);
            work += core_step_work(journal->core);
        }
        if (r < 0) {
            at_work_fail_entry(journal->at_work); /* a reported failure is not an end within the entry */
            journal__store_failed("applying a command", r);
        }
        journal__take_completed(journal, command, group);
    }
    journal__report_unbounded_step(journal);
    return work;
}

void journal__inspect(struct journal *journal, struct command *command, struct list *group)
{
    REQUIRE(command_is(command->type, COMMAND_UNLOGGED));
    REQUIRE(journal__holds(&journal->core_lock));
    int r = core_inspect(journal->core, command, &journal->effects);
    if (r < 0)
        journal__store_failed("looking at what there is", r);
    journal__take_completed(journal, command, group);
}

/*
 * Answers the first command if it has COMMAND_UNLOGGED. It needs no entry and no ceiling, which may
 * find no space. Returns: whether it did.
 */
static bool inspect_first(struct journal *journal, struct list *taken, struct list *group)
{
    REQUIRE(!list_empty(taken));
    struct command *command = list_entry(taken->next, struct command, link);
    if (!command_is(command->type, COMMAND_UNLOGGED))
        return false;
    list_remove(&command->link);
    journal__inspect(journal, command, group);
    return true;
}

uint64_t journal__apply_logged(struct journal *journal, struct list *taken, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    uint64_t work = 0;
    bool alone = false;
    while (!list_empty(taken)) {
        struct list entry = LIST_INIT(entry);
        struct command_group_header head;
        if (inspect_first(journal, taken, group))
            continue;
        if (!next_head(journal, &head)) {
            refuse_first(journal, taken, group);
            continue;
        }
        if (!alone)
            take_postponed(journal, taken);
        bool any = fill_entry(journal, &head, alone, taken, &entry, group);
        if (any && !append_group(journal)) {
            /* A release may find the space that a write in its entry does not. */
            alone = alone || entry.next != entry.prev;
            if (entry.next == entry.prev)
                refuse_first(journal, &entry, group);
            else
                return_entry(&entry, taken);
            continue;
        }
        uint64_t begun = journal__boot(journal);
        if (any)
            at_work_begin_entry(journal->at_work, journal->position, head.ts, journal->entry.len);
        work += apply_entry(journal, &head, &entry, group);
        at_work_end_entry(journal->at_work);
        journal->work_us += journal__boot(journal) - begun;
    }
    if (journal->ceiling_command == NULL)
        journal__take_pending_replies(journal, group);
    journal__trim_entry_buf(journal);
    return work;
}

void journal__trim_entry_buf(struct journal *journal)
{
    if (journal->entry.capacity > ENTRY_BUF_BYTES_MAX) /* the newest entry may be small and an earlier one large */
        buf_deinit(&journal->entry);
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

/*
 * Reports a durable checkpoint to the log and trims the log before it. On a full disk both wait for
 * the next checkpoint; if the log cannot be reached, or this host was forgotten while it was out of the
 * cluster, journal__advance_checkpoints() tries again, so that it is known when it is a member again; in a
 * cluster whose log has no space, journal__trim_again() does, since the next checkpoint needs writes,
 * which are refused. Runs without core_lock, so a newer checkpoint may have been reported since; then
 * there is nothing to do.
 */
static void report_checkpoint(struct journal *journal, const struct cmdlog_checkpoint *checkpoint)
{
    pthread_mutex_lock(&journal->report_lock);
    bool newer = checkpoint->position > journal->reported;
    int r = newer ? cmdlog_put_checkpoint(journal->log, checkpoint) : 0;
    if (r == 0 && newer)
        r = cmdlog_trim(journal->log, checkpoint->position);
    if (r == 0 && newer)
        journal->reported = checkpoint->position;
    if (newer)
        atomic_store_explicit(&journal->report_pending, r == CMDLOG_UNREACHABLE || r == CMDLOG_FENCED,
                              memory_order_relaxed);
    if (newer)
        journal->report_refused = r == TL_ERR_NO_SPACE;
    pthread_mutex_unlock(&journal->report_lock);
    if (r < 0 && r != TL_ERR_NO_SPACE)
        journal__store_failed("noting a checkpoint", r);
}

void journal__trim_again(struct journal *journal)
{
    pthread_mutex_lock(&journal->report_lock);
    int r = journal->reported == 0 ? 0 : cmdlog_trim(journal->log, journal->reported);
    if (journal->report_refused)
        atomic_store_explicit(&journal->report_pending, true, memory_order_relaxed);
    pthread_mutex_unlock(&journal->report_lock);
    if (r < 0 && r != TL_ERR_NO_SPACE)
        journal__store_failed("trimming the log", r);
}

/* Returns: the newest checkpoint, for the log. Requires: core_lock. */
static struct cmdlog_checkpoint newest_checkpoint(const struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    return (struct cmdlog_checkpoint){
        .position = journal->checkpoint, .locator = SLICE_LIT("store"), .log_bytes = journal->checkpoint_log_bytes};
}

static bool is_on_disk(struct journal *journal)
{
    int r = store_checkpointed(journal->store);
    if (r < 0)
        journal__store_failed("writing a checkpoint", r);
    return r == 1;
}

/*
 * Returns: whether writes are refused for lack of space. Each such period gets one checkpoint of
 *          its own, because trimming the log frees space.
 * Requires: core_lock.
 */
static bool lacks_space(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    bool lacks = journal->directory != NULL && !atomic_load_explicit(&journal->writable, memory_order_relaxed);
    journal->space_checkpoint_begun = journal->space_checkpoint_begun && lacks;
    return lacks;
}

/*
 * Returns: whether the entries since the last checkpoint are so many that one is due. Requires:
 *          core_lock.
 */
static bool is_log_long(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    return journal->work_us >= SAVE_COST_FACTOR * journal->save_us &&
           (journal->work_us >= journal->recovery_us ||
            journal->log_bytes - journal->checkpoint_log_bytes >= journal->log_bytes_max);
}

/*
 * Returns: whether a checkpoint is due: the replay work, the log's size, the store's memory, a full
 *          disk or the space of a cluster's log demands it. Requires: core_lock.
 */
static bool is_due(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    return journal->position > journal->checkpoint && atomic_load_explicit(&journal->ready, memory_order_relaxed) &&
           ((lacks_space(journal) && !journal->space_checkpoint_begun) ||
            (journal->cluster != NULL && cluster__wants_checkpoint(journal)) || is_log_long(journal) ||
            store_uncheckpointed_bytes(journal->store) >= journal->checkpoint_bytes);
}

/* Returns: whether the disk may become full during a flush. */
static bool is_scarce(struct journal *journal)
{
    return journal->directory != NULL && store_free_bytes(journal->store) < SCARCE_BYTES;
}

/*
 * Waits until the checkpoint is durable. While stopping the wait is limited, and ends when the disk
 * is full: RocksDB may wait for more space than there will ever be. The next start then replays
 * from the previous checkpoint.
 */
static void await_disk(struct journal *journal)
{
    uint64_t until = 0;
    while (!is_on_disk(journal)) {
        uint64_t now = journal__boot(journal);
        bool stopping = !may_wait(journal);
        if (stopping && until == 0)
            until = now + STOP_WAIT_US;
        if (stopping && (now >= until || !journal__is_ready(journal)))
            return;
        usleep(STALL_US);
    }
}

/*
 * Begins a checkpoint. Syncs the log first, since the store must never be ahead of the durable log.
 * Requires: core_lock; no checkpoint is in progress, and the core is not unverified.
 */
static void begin_checkpoint(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    REQUIRE(!cluster__is_unverified(journal));
    REQUIRE(!journal->checkpointing && journal->position >= journal->checkpoint);
    REQUIRE(journal->ceiling_command == NULL); /* no entry is being built */
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    uint64_t begun = journal__boot(journal);
    struct cmdlog_lineage lineage;
    int r = cmdlog_sync(journal->log, journal->position);
    if (r == 0)
        r = cmdlog_lineage(journal->log, journal->position, &lineage);
    if (r == 0)
        r = recover_write_record(journal->core, journal->position, &lineage,
                                 journal->cluster != NULL ? journal->log_bytes : 0, &record);
    if (r == 0)
        r = store_checkpoint(journal->store, buf_as_slice(&record));
    buf_deinit(&record);
    if (r < 0)
        journal__store_failed("beginning a checkpoint", r);
    journal->checkpoint = journal->position;
    journal->checkpoint_log_bytes = journal->log_bytes;
    journal->checkpointing = true;
    journal->work_us = 0;
    journal->save_us = journal->ahead_us + journal__boot(journal) - begun;
    journal->ahead_us = 0;
    journal->saving = false;
    journal->paused = is_scarce(journal);
    journal->space_checkpoint_begun = lacks_space(journal);
    if (journal->cluster != NULL)
        cluster__begin_relief(journal);
}

bool journal__is_paused(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    if (!journal->checkpointing)
        return false;
    bool held = journal->paused || store_uncheckpointed_bytes(journal->store) >= journal->checkpoint_bytes;
    return held && !is_on_disk(journal);
}

bool journal__wants_worker(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    return !journal->saving && is_due(journal) && (!journal->checkpointing || is_on_disk(journal));
}

void journal__await_unpaused(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    if (journal__is_paused(journal))
        await_disk(journal);
}

/*
 * Writes the next part of the state ahead of a checkpoint, unless the disk is full. Returns: whether
 * the checkpoint can be begun, since little is left, or so much has changed meanwhile that the store
 * needs it. Requires: core_lock.
 */
static bool save_ahead(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    REQUIRE(!journal->checkpointing && !cluster__is_unverified(journal));
    uint64_t begun = journal__boot(journal);
    bool more;
    journal->saving = false;
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed))
        return false;
    int r = core_save_ahead(journal->core, SAVE_AHEAD_BYTES, &more);
    if (r < 0)
        journal__store_failed("writing ahead of a checkpoint", r);
    journal->saving = more && store_uncheckpointed_bytes(journal->store) < WRITES_FACTOR * journal->checkpoint_bytes;
    journal->ahead_us += journal__boot(journal) - begun;
    return !journal->saving;
}

/*
 * If a checkpoint is due or `wanted`, and none is under way, writes the first part ahead of it, or
 * begins it if little is left to write. The saver writes the other parts.
 * Returns: a checkpoint to report: found durable now, or not reported when the log could not be
 *          reached; position 0: none. Requires: core_lock.
 */
static struct cmdlog_checkpoint advance_checkpoint(struct journal *journal, bool wanted)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct cmdlog_checkpoint done = {.position = 0};
    bool pending = atomic_load_explicit(&journal->report_pending, memory_order_relaxed);
    if (journal->checkpointing ? is_on_disk(journal) : pending) {
        journal->checkpointing = false;
        done = newest_checkpoint(journal);
    }
    bool begins =
        !journal->checkpointing && !journal->saving && !cluster__is_unverified(journal) && (wanted || is_due(journal));
    if (begins && save_ahead(journal))
        begin_checkpoint(journal);
    if (journal->saving)
        pthread_cond_signal(&journal->saving_begun);
    return done;
}

void journal__presync_log(struct journal *journal)
{
    if (pthread_mutex_trylock(&journal->core_lock) != 0)
        return;
    bool soon = journal->saving || (!journal->checkpointing && is_due(journal));
    cmdlog_position position = soon ? journal->position : 0;
    pthread_mutex_unlock(&journal->core_lock);
    int r = position == 0 ? 0 : cmdlog_sync(journal->log, position);
    if (r < 0)
        journal__store_failed("making changes durable", r);
}

/* Waits until there are parts to write ahead. Returns: false: the journal stops. */
static bool await_saving(struct journal *journal)
{
    pthread_mutex_lock(&journal->core_lock);
    bool runs;
    while ((runs = may_wait(journal)) && !journal->saving)
        pthread_cond_wait(&journal->saving_begun, &journal->core_lock);
    pthread_mutex_unlock(&journal->core_lock);
    return runs;
}

/*
 * The saver's thread: writes the next part ahead of a checkpoint, or begins it. Between two parts
 * core_lock is free for long enough that a thread that waits for it gets it.
 */
static void saver_thread(void *context)
{
    struct journal *journal = context;
    while (await_saving(journal)) {
        usleep(STALL_US);
        journal__presync_log(journal);
        pthread_mutex_lock(&journal->core_lock);
        if (journal->saving && !cluster__is_unverified(journal) && save_ahead(journal))
            begin_checkpoint(journal);
        pthread_mutex_unlock(&journal->core_lock);
    }
}

bool journal__begin_saver(struct journal *journal)
{
    REQUIRE(!journal->saver.runs);
    bool begun = thread_start(&journal->saver, "saver", saver_thread, journal) == 0;
    if (!begun)
        log_error("cannot start a thread of the journal");
    return begun;
}

void journal__end_saver(struct journal *journal)
{
    REQUIRE(!may_wait(journal));
    if (!journal->saver.runs)
        return;
    pthread_mutex_lock(&journal->core_lock);
    pthread_cond_signal(&journal->saving_begun);
    pthread_mutex_unlock(&journal->core_lock);
    thread_join(&journal->saver);
}

bool journal__log_wants_space(struct journal *journal)
{
    struct cmdlog_head head;
    cmdlog_head(journal->log, &head);
    return head.wants_space;
}

void journal__prepare_log(struct journal *journal)
{
    int r = cmdlog_preallocate(journal->log);
    if (r < 0)
        journal__store_failed("preparing the log", r);
}

void journal__advance_checkpoints(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC) && journal__holds(&journal->core_lock));
    struct cmdlog_checkpoint done = advance_checkpoint(journal, false);
    bool lacks = lacks_space(journal);
    pthread_mutex_unlock(&journal->core_lock);
    if (done.position != 0)
        report_checkpoint(journal, &done);
    int r = lacks && done.position != 0 ? cmdlog_shrink(journal->log) : 0;
    if (r < 0)
        journal__store_failed("preparing the log", r);
    journal__prepare_log(journal);
}

int journal__reach_checkpoint(struct journal *journal, cmdlog_position *ret_wanted)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->core_lock);
    cmdlog_position wanted = *ret_wanted = journal->position;
    pthread_mutex_unlock(&journal->core_lock);
    for (bool reached = false; !reached; usleep(STALL_US)) {
        if (!may_wait(journal))
            return 0;
        if (!journal__is_ready(journal))
            return TL_ERR_NO_SPACE;
        pthread_mutex_lock(&journal->core_lock);
        struct cmdlog_checkpoint done = advance_checkpoint(journal, journal->checkpoint < wanted);
        reached = !journal->checkpointing && journal->checkpoint >= wanted;
        if (reached) /* the thread that found it durable may not have reported it yet */
            done = newest_checkpoint(journal);
        pthread_mutex_unlock(&journal->core_lock);
        if (done.position != 0)
            report_checkpoint(journal, &done);
    }
    return 0;
}

int journal_checkpoint(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    cmdlog_position wanted;
    int r = journal__reach_checkpoint(journal, &wanted);
    return r == 0 && may_wait(journal) ? cmdlog_shrink(journal->log) : r;
}

/* On a full disk no checkpoint is made, and the next start replays from the previous one. */
void journal__end_checkpoints(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    await_disk(journal); /* of the last checkpoint, or of RocksDB's recovery from a full disk */
    if (!journal__is_ready(journal) || !is_on_disk(journal))
        return;
    journal->checkpointing = false;
    if (journal->position > journal->checkpoint)
        begin_checkpoint(journal);
    await_disk(journal);
    struct cmdlog_checkpoint newest = newest_checkpoint(journal);
    if (is_on_disk(journal))
        report_checkpoint(journal, &newest);
}

/* Refuses the postponed commands; the waits that they would have ended end with the core. */
static void drop_postponed(struct journal *journal)
{
    while (!list_empty(&journal->postponed)) {
        struct command *command = list_entry(journal->postponed.next, struct command, link);
        list_remove(&command->link);
        journal__refuse_disk_full(journal, command);
        list_append(&journal->pending_replies, &command->link);
    }
}

void journal__end_log(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    REQUIRE(journal->cluster == NULL); /* a shared log does not end with this host */
    drop_postponed(journal);
    journal__end_checkpoints(journal);
    journal->checkpointing = false;
    int r = cmdlog_seal(journal->log);
    if (r < 0 && r != TL_ERR_NO_SPACE)
        journal__store_failed("sealing the log", r);
}
