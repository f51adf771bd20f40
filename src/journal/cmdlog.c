/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are appended to the log and applied, checkpoints are made. README.md, "The log". */
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "core/step/command_group.h"
#include "journal/at_work.h"
#include "journal/journal_internal.h"
#include "journal/recover.h"

enum {
    ENTRY_BYTES = 1 << 20, /* an entry that has come to so many gets no further command */
    KEPT_BYTES = 4 << 20,  /* larger ones are not kept for the next */
    SAVE_TIMES = 10,       /* work between checkpoints is so many times what the saving takes */
    STALL_US = 1000,
    ROOM_US = 50 * 1000, /* between two looks whether there is room on the disk */
    END_US = 10 * 1000 * 1000, /* that who stops waits for a checkpoint */
};

/*
 * With less than this free nothing is applied while a checkpoint is on its way to the disk. Were that full meanwhile, RocksDB would write all
 * that it has in memory to get over it, and there must be nothing that is not the checkpoint's. As much is not filled in the time of a flush.
 */
#define SCARCE_BYTES ((uint64_t)2 << 30)

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/* What else an entry of the journal's own completes, a session that leaves in pieces say, is not lost. */
static void set_aside(struct journal *journal, struct list *group)
{
    while (!list_empty(group)) {
        struct list *link = group->next;
        list_remove(link);
        list_append(&journal->aside, link);
    }
}

void journal__take_aside(struct journal *journal, struct list *group)
{
    while (!list_empty(&journal->aside)) {
        struct list *link = journal->aside.next;
        list_remove(link);
        list_append(group, link);
    }
}

bool journal__log_mark(struct journal *journal, uint64_t ahead)
{
    struct list mine = LIST_INIT(mine), group = LIST_INIT(group);
    struct command *command = command_new(COMMAND_MARK, DIALECT_7);
    struct buf kept = BUF_INIT(BUF_UNLIMITED);
    past_save(&journal->past, journal__boot(journal) + PAST_ORIGIN, &kept);
    command->mark.ceiling = ahead; /* of the timestamp that it will have, which is known when its entry is begun */
    command->mark.payload = arena_copy(&command->arena, buf_as_slice(&kept));
    command->mark.chain = core_chain(journal->core);
    buf_deinit(&kept);
    journal->marking = command;
    list_append(&mine, &command->link);
    journal__apply_logged(journal, &mine, &group);
    journal->marking = NULL;
    bool put = command->problem.type == PROBLEM_NONE;
    INSIST(put || command->problem.type == PROBLEM_DISK_FULL);
    if (put) {
        journal->mark = core_ts_ceiling(journal->core);
        journal->mark_at = command->ts;
    }
    list_remove(&command->link);
    command_free(command);
    set_aside(journal, &group);
    return put;
}

/*
 * What stands before the commands of the next entry. A mark above its timestamps comes before it. A mark is of the timestamp of its own.
 * Returns: false where there is no room for the mark.
 */
static bool next_head(struct journal *journal, struct command_group_header *head)
{
    *head = (struct command_group_header){.host = 0, .ts = journal__next_ts(journal)};
    if (journal->marking != NULL) {
        journal->marking->mark.ceiling += head->ts;
    } else if (head->ts + TS_CEILING_MARGIN_US > journal->mark) {
        if ((journal->serving && !journal__is_ready_now(journal)) || !journal__put_mark(journal, TS_CEILING_LEAD_US))
            return false;
        head->ts = journal__next_ts(journal);
    }
    pthread_mutex_lock(&journal->queue_lock);
    head->clock = journal->step_clock = journal__read_pace(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    return true;
}

/* Moves commands over to be one entry, whose bytes are written; refused ones are completed. Returns: whether there are any bytes. */
static bool gather_entry(struct journal *journal, const struct command_group_header *head, struct list *taken, struct list *entry,
                         struct list *group)
{
    bool any = false;
    buf_clear(&journal->entry);
    command_group_begin(head, &journal->entry);
    while (!list_empty(taken) && journal->entry.len < ENTRY_BYTES) {
        struct command *command = list_entry(taken->next, struct command, link);
        list_remove(&command->link);
        if (journal__refuse_too_much(journal, command)) {
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

/* Once the server stops nobody waits for room. */
static bool may_wait(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool may = !journal->stopping;
    pthread_mutex_unlock(&journal->queue_lock);
    return may;
}

/* What a start does waits for room. Later nobody does, with the core in hand. Returns: false where the entry finds none. */
static bool append(struct journal *journal)
{
    struct slice part = buf_as_slice(&journal->entry);
    int r;
    while ((r = cmdlog_append(journal->log, &part, 1, &journal->position)) == TL_ERR_NO_SPACE && !journal->serving)
        usleep(ROOM_US);
    if (r < 0 && r != TL_ERR_NO_SPACE)
        journal__store_failed("writing to the log", r);
    return r == 0;
}

/* What ends the wait of somebody who has left is not lost: it comes before the next that has room. */
static void refuse_first(struct journal *journal, struct list *from, struct list *group)
{
    struct command *command = list_entry(from->next, struct command, link);
    list_remove(&command->link);
    if (command_is(command->type, COMMAND_WRITES_NOTHING)) {
        list_append(&journal->postponed, &command->link);
        return;
    }
    journal__refuse_for_room(journal, command);
    list_append(group, &command->link);
}

static void take_postponed(struct journal *journal, struct list *taken)
{
    struct list *first = taken->next;
    while (journal->marking == NULL && !list_empty(&journal->postponed)) {
        struct list *link = journal->postponed.next;
        list_remove(link);
        list_insert_before(first, link);
    }
}

/* Nothing of the entry was done. */
static void refuse_entry(struct journal *journal, struct list *entry, struct list *group)
{
    while (!list_empty(entry))
        refuse_first(journal, entry, group);
}

/* It says so, so it is none of the ends that are counted against an entry. */
static _Noreturn void apply_failed(struct journal *journal, const char *what, int code)
{
    at_work_end_entry(journal->at_work);
    journal__store_failed(what, code);
}

/* One after the other, as whoever replays the entry does; those that only look in between are on this host alone. */
static void apply_entry(struct journal *journal, const struct command_group_header *head, struct list *entry, struct list *group)
{
    core_group_begin(journal->core);
    while (!list_empty(entry)) {
        struct command *command = list_entry(entry->next, struct command, link);
        int r;
        list_remove(&command->link);
        if (command_is(command->type, COMMAND_UNLOGGED)) {
            r = core_inspect(journal->core, command, &journal->effects);
        } else {
            command->ts = command_group_next_ts(head, journal->core);
            command->clock = head->clock;
            r = core_step(journal->core, command, &journal->effects);
        }
        if (r < 0)
            apply_failed(journal, "applying a command", r);
        journal__take_completed(journal, command, group);
    }
    int r = core_group_end(journal->core);
    if (r < 0)
        apply_failed(journal, "writing the records of locks", r);
}

void journal__look(struct journal *journal, struct command *command, struct list *group)
{
    int r = core_inspect(journal->core, command, &journal->effects);
    if (r < 0)
        journal__store_failed("looking at what there is", r);
    journal__take_completed(journal, command, group);
}

/* Needs no entry, and no mark before it, for which there may be no room. Returns: whether that was the first of them. */
static bool look_first(struct journal *journal, struct list *taken, struct list *group)
{
    struct command *command = list_entry(taken->next, struct command, link);
    if (!command_is(command->type, COMMAND_UNLOGGED))
        return false;
    list_remove(&command->link);
    journal__look(journal, command, group);
    return true;
}

void journal__apply_logged(struct journal *journal, struct list *taken, struct list *group)
{
    while (!list_empty(taken)) {
        struct list entry = LIST_INIT(entry);
        struct command_group_header head;
        if (look_first(journal, taken, group))
            continue;
        if (!next_head(journal, &head)) {
            refuse_first(journal, taken, group);
            continue;
        }
        take_postponed(journal, taken);
        bool any = gather_entry(journal, &head, taken, &entry, group);
        if (any && !append(journal)) {
            refuse_entry(journal, &entry, group);
            continue;
        }
        uint64_t begun = journal__boot(journal);
        if (any)
            at_work_begin_entry(journal->at_work, journal->position, head.ts, journal->entry.len);
        apply_entry(journal, &head, &entry, group);
        at_work_end_entry(journal->at_work);
        journal->work_us += journal__boot(journal) - begun;
    }
    if (journal->marking == NULL)
        journal__take_aside(journal, group);
    if (journal->entry.len > KEPT_BYTES) {
        buf_deinit(&journal->entry);
        journal->entry = BUF_INIT(BUF_UNLIMITED);
    }
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

/*
 * The checkpoint under way is on the disk: the log before it may go. On a full disk it stays, until the next. Whoever saw that it is there has given the
 * core up since, and a newer one may have been noted: then there is nothing left to do.
 */
static void note_checkpoint(struct journal *journal, cmdlog_position position)
{
    struct cmdlog_checkpoint checkpoint = {.position = position, .locator = SLICE_LIT("store")};
    pthread_mutex_lock(&journal->note_lock);
    int r = position <= journal->noted ? 0 : cmdlog_put_checkpoint(journal->log, &checkpoint);
    if (r == 0 && position > journal->noted) {
        journal->noted = position;
        r = cmdlog_trim(journal->log, position);
    }
    pthread_mutex_unlock(&journal->note_lock);
    if (r < 0 && r != TL_ERR_NO_SPACE)
        journal__store_failed("noting a checkpoint", r);
}

static bool is_on_disk(struct journal *journal)
{
    int r = store_checkpointed(journal->store);
    if (r < 0)
        journal__store_failed("writing a checkpoint", r);
    return r == 1;
}

/*
 * While writes are refused for want of room, the log is what gives some back: once each time a checkpoint is made for that alone. Requires:
 * core_lock.
 */
static bool lacks_room(struct journal *journal)
{
    bool lacks = journal->directory != NULL && !atomic_load_explicit(&journal->writable, memory_order_relaxed);
    journal->made_room = journal->made_room && lacks;
    return lacks;
}

/* Whether there is as much to be done again, after a crash, as may be. Requires: core_lock. */
static bool is_due(struct journal *journal)
{
    uint64_t work = journal->recovery_us;
    work = work > SAVE_TIMES * journal->save_us ? work : SAVE_TIMES * journal->save_us;
    return journal->position > journal->checkpoint && atomic_load_explicit(&journal->ready, memory_order_relaxed) &&
           ((lacks_room(journal) && !journal->made_room) || journal->work_us >= work || store_uncheckpointed_bytes(journal->store) >= journal->checkpoint_bytes);
}

/* Whether the disk could be full before a flush is over. */
static bool is_scarce(struct journal *journal)
{
    return journal->directory != NULL && store_free_bytes(journal->store) < SCARCE_BYTES;
}

/*
 * Until it is on the disk; who stops waits as long as there is room for it, and not for ever: RocksDB may wait for more of that than there will be. The next
 * start does again what is behind the checkpoint before.
 */
static void await_disk(struct journal *journal)
{
    uint64_t until = 0;
    while (!is_on_disk(journal)) {
        uint64_t now = journal__boot(journal);
        bool stopping = !may_wait(journal);
        if (stopping && until == 0)
            until = now + END_US;
        if (stopping && (now >= until || !journal__is_ready(journal)))
            return;
        usleep(STALL_US);
    }
}

/*
 * What the store stands at must be in the log, whatever crashes then: so the log is synced first.
 * Requires: core_lock; none is under way.
 */
static void begin_checkpoint(struct journal *journal)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    uint64_t begun = journal__boot(journal);
    struct cmdlog_lineage lineage;
    int r = cmdlog_sync(journal->log, journal->position);
    if (r == 0)
        r = cmdlog_lineage(journal->log, journal->position, &lineage);
    if (r == 0) {
        recover_write_record(journal->core, journal->position, &lineage, &record);
        r = store_checkpoint(journal->store, buf_as_slice(&record));
    }
    buf_deinit(&record);
    if (r < 0)
        journal__store_failed("beginning a checkpoint", r);
    journal->checkpoint = journal->position;
    journal->checkpointing = true;
    journal->work_us = 0;
    journal->save_us = journal__boot(journal) - begun;
    journal->held = is_scarce(journal);
    journal->made_room = lacks_room(journal);
}

bool journal__is_held(struct journal *journal)
{
    if (!journal->checkpointing)
        return false;
    bool held = journal->held || store_uncheckpointed_bytes(journal->store) >= journal->checkpoint_bytes;
    return held && !is_on_disk(journal);
}

void journal__await_held(struct journal *journal)
{
    if (journal__is_held(journal))
        await_disk(journal);
}

/* Returns: the position of a checkpoint that has come to the disk; 0: none has. Requires: core_lock. */
static cmdlog_position look_after(struct journal *journal, bool wanted)
{
    cmdlog_position done = 0;
    if (journal->checkpointing && is_on_disk(journal)) {
        journal->checkpointing = false;
        done = journal->checkpoint;
    }
    if (!journal->checkpointing && (wanted || is_due(journal)))
        begin_checkpoint(journal);
    return done;
}

/* A checkpoint has the log synced; of what there is by now it is, before anybody has to wait for it. */
static void sync_ahead(struct journal *journal)
{
    if (pthread_mutex_trylock(&journal->core_lock) != 0)
        return;
    cmdlog_position position = !journal->checkpointing && is_due(journal) ? journal->position : 0;
    pthread_mutex_unlock(&journal->core_lock);
    int r = position == 0 ? 0 : cmdlog_sync(journal->log, position);
    if (r < 0)
        journal__store_failed("making changes durable", r);
}

void journal__keep_checkpoints(struct journal *journal)
{
    sync_ahead(journal);
    if (pthread_mutex_trylock(&journal->core_lock) != 0)
        return;
    cmdlog_position done = look_after(journal, false);
    bool lacks = lacks_room(journal);
    pthread_mutex_unlock(&journal->core_lock);
    if (done != 0)
        note_checkpoint(journal, done);
    int r = lacks && done != 0 ? cmdlog_shrink(journal->log) : 0;
    if (r == 0)
        r = cmdlog_preallocate(journal->log);
    if (r < 0)
        journal__store_failed("preparing the log", r);
}

int journal__reach_checkpoint(struct journal *journal, cmdlog_position *ret_wanted)
{
    pthread_mutex_lock(&journal->core_lock);
    cmdlog_position wanted = *ret_wanted = journal->position;
    pthread_mutex_unlock(&journal->core_lock);
    for (bool reached = false; !reached; usleep(STALL_US)) {
        if (!may_wait(journal))
            return 0;
        if (!journal__is_ready(journal))
            return TL_ERR_NO_SPACE;
        pthread_mutex_lock(&journal->core_lock);
        cmdlog_position done = look_after(journal, journal->checkpoint < wanted);
        reached = !journal->checkpointing && journal->checkpoint >= wanted;
        pthread_mutex_unlock(&journal->core_lock);
        if (done != 0)
            note_checkpoint(journal, done);
    }
    return 0;
}

int journal_checkpoint(struct journal *journal)
{
    cmdlog_position wanted;
    int r = journal__reach_checkpoint(journal, &wanted);
    return r == 0 ? cmdlog_shrink(journal->log) : r;
}

/* On a full disk there is no checkpoint, and the next start does what is behind the last one again. */
void journal__end_checkpoints(struct journal *journal)
{
    await_disk(journal); /* of the last one, or of what RocksDB writes to get over a full disk */
    if (!journal__is_ready(journal) || !is_on_disk(journal))
        return;
    journal->checkpointing = false;
    if (journal->position > journal->checkpoint)
        begin_checkpoint(journal);
    await_disk(journal);
    if (is_on_disk(journal))
        note_checkpoint(journal, journal->checkpoint);
}

/* Those whom it would have ended end with the core. */
static void drop_postponed(struct journal *journal)
{
    while (!list_empty(&journal->postponed)) {
        struct command *command = list_entry(journal->postponed.next, struct command, link);
        list_remove(&command->link);
        journal__refuse_for_room(journal, command);
        list_append(&journal->aside, &command->link);
    }
}

void journal__end_log(struct journal *journal)
{
    drop_postponed(journal);
    journal__end_checkpoints(journal);
    journal->checkpointing = false;
    int r = cmdlog_seal(journal->log);
    if (r < 0 && r != TL_ERR_NO_SPACE)
        journal__store_failed("sealing the log", r);
}
