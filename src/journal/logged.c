/* SPDX-License-Identifier: Apache-2.0 */
/* The journal on a log: entries are appended and applied, checkpoints are made. README.md, "On a log". */
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "core/step/entry.h"
#include "journal/journal_internal.h"
#include "journal/recover.h"

enum {
    ENTRY_BYTES = 1 << 20, /* an entry that has come to so many gets no further command */
    KEPT_BYTES = 4 << 20,  /* larger ones are not kept for the next */
    SAVE_TIMES = 10,       /* work between checkpoints is so many times what the saving takes */
    STALL_US = 1000,
};

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

tl_ts journal__log_mark(struct journal *journal, tl_ts mark)
{
    struct list mine = LIST_INIT(mine), group = LIST_INIT(group);
    struct command *command = command_new(COMMAND_MARK, DIALECT_7);
    struct buf kept = BUF_INIT(BUF_UNLIMITED);
    past_save(&journal->past, journal__boot(journal) + PAST_ORIGIN, &kept);
    command->mark.mark = mark;
    command->mark.kept = arena_copy(&command->arena, buf_view(&kept));
    buf_deinit(&kept);
    journal->marking = true;
    list_append(&mine, &command->link);
    journal__apply_logged(journal, &mine, &group);
    journal->marking = false;
    INSIST(command->problem.type == PROBLEM_NONE);
    tl_ts at = command->ts;
    list_remove(&command->link);
    command_free(command);
    set_aside(journal, &group);
    return at;
}

/* What stands before the commands of the next entry. A mark above its timestamps comes before it. */
static struct entry_head next_head(struct journal *journal)
{
    struct entry_head head = {.host = 0, .ts = journal__next_ts(journal)};
    if (!journal->marking && head.ts + MARK_ROOM_US > journal->mark) {
        journal__put_mark(journal, MARK_AHEAD_US);
        head.ts = journal__next_ts(journal);
    }
    pthread_mutex_lock(&journal->queue_lock);
    head.clock = journal->step_clock = journal__read_pace(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    return head;
}

/* Moves commands over to be one entry, whose bytes are written; refused ones are completed. Returns: whether there are any bytes. */
static bool gather_entry(struct journal *journal, const struct entry_head *head, struct list *taken, struct list *entry,
                         struct list *group)
{
    bool any = false;
    buf_clear(&journal->entry);
    entry_begin(head, &journal->entry);
    while (!list_empty(taken) && journal->entry.len < ENTRY_BYTES) {
        struct command *command = list_entry(taken->next, struct command, link);
        list_remove(&command->link);
        if (journal__refuse_too_much(journal, command)) {
            list_append(group, &command->link);
            continue;
        }
        list_append(entry, &command->link);
        if (command_is(command->type, COMMAND_LOOKS))
            continue;
        entry_add(command, &journal->entry);
        any = true;
    }
    return any;
}

static void append(struct journal *journal)
{
    struct slice part = buf_view(&journal->entry);
    int r = log_append(journal->log, &part, 1, &journal->position);
    if (r < 0)
        journal__store_failed("writing to the log", r);
}

/* One after the other, as whoever replays the entry does; those that only look in between are on this host alone. */
static void apply_entry(struct journal *journal, const struct entry_head *head, struct list *entry, struct list *group)
{
    core_group_begin(journal->core);
    while (!list_empty(entry)) {
        struct command *command = list_entry(entry->next, struct command, link);
        int r;
        list_remove(&command->link);
        if (command_is(command->type, COMMAND_LOOKS)) {
            r = core_look(journal->core, command, &journal->effects);
        } else {
            command->ts = entry_ts(head, journal->core);
            command->clock = head->clock;
            r = core_step(journal->core, command, &journal->effects);
        }
        if (r < 0)
            journal__store_failed("applying a command", r);
        journal__take_completed(journal, command, group);
    }
    int r = core_group_end(journal->core);
    if (r < 0)
        journal__store_failed("writing the records of locks", r);
}

void journal__apply_logged(struct journal *journal, struct list *taken, struct list *group)
{
    while (!list_empty(taken)) {
        struct list entry = LIST_INIT(entry);
        struct entry_head head = next_head(journal);
        if (gather_entry(journal, &head, taken, &entry, group))
            append(journal);
        uint64_t begun = journal__boot(journal);
        apply_entry(journal, &head, &entry, group);
        journal->work_us += journal__boot(journal) - begun;
    }
    if (!journal->marking)
        journal__take_aside(journal, group);
    if (journal->entry.len > KEPT_BYTES) {
        buf_deinit(&journal->entry);
        journal->entry = BUF_INIT(BUF_UNLIMITED);
    }
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

/* The checkpoint under way is on the disk: the log before it may go. */
static void note_checkpoint(struct journal *journal, log_position position)
{
    struct log_checkpoint checkpoint = {.position = position, .place = SLICE_LIT("store")};
    int r = log_put_checkpoint(journal->log, &checkpoint);
    if (r == 0)
        r = log_trim(journal->log, position);
    if (r < 0)
        journal__store_failed("noting a checkpoint", r);
}

static bool is_on_disk(struct journal *journal)
{
    int r = store_checkpointed(journal->store);
    if (r < 0)
        journal__store_failed("writing a checkpoint", r);
    return r == 1;
}

/* Whether there is as much to be done again, after a crash, as may be. Requires: core_lock. */
static bool is_due(const struct journal *journal)
{
    uint64_t work = journal->recovery_us;
    work = work > SAVE_TIMES * journal->save_us ? work : SAVE_TIMES * journal->save_us;
    return journal->position > journal->checkpoint && atomic_load_explicit(&journal->ready, memory_order_relaxed) &&
           (journal->work_us >= work || store_unsaved_bytes(journal->store) >= journal->checkpoint_bytes);
}

/*
 * What the store stands at must be in the log, whatever crashes then: so the log is synced first.
 * Requires: core_lock; none is under way.
 */
static void begin_checkpoint(struct journal *journal)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    uint64_t begun = journal__boot(journal);
    int r = log_sync(journal->log, journal->position);
    if (r == 0) {
        recover_write_record(journal->core, journal->position, &record);
        r = store_checkpoint(journal->store, buf_view(&record));
    }
    buf_deinit(&record);
    if (r < 0)
        journal__store_failed("beginning a checkpoint", r);
    journal->checkpoint = journal->position;
    journal->checkpointing = true;
    journal->work_us = 0;
    journal->save_us = journal__boot(journal) - begun;
}

/* Returns: the position of a checkpoint that has come to the disk; 0: none has. Requires: core_lock. */
static log_position look_after(struct journal *journal)
{
    log_position done = 0;
    if (journal->checkpointing && is_on_disk(journal)) {
        journal->checkpointing = false;
        done = journal->checkpoint;
    }
    if (!journal->checkpointing && is_due(journal))
        begin_checkpoint(journal);
    return done;
}

void journal__keep_checkpoints(struct journal *journal)
{
    if (journal->log == NULL || pthread_mutex_trylock(&journal->core_lock) != 0)
        return;
    log_position done = look_after(journal);
    pthread_mutex_unlock(&journal->core_lock);
    if (done != 0)
        note_checkpoint(journal, done);
}

/* Memory is bounded: who has written so much waits until what was before is on the disk. */
void journal__stall(struct journal *journal)
{
    if (journal->log == NULL)
        return;
    while (journal->checkpointing && store_unsaved_bytes(journal->store) >= journal->checkpoint_bytes &&
           !is_on_disk(journal))
        usleep(STALL_US);
}

void journal__end_log(struct journal *journal)
{
    while (journal->checkpointing && !is_on_disk(journal))
        usleep(STALL_US);
    journal->checkpointing = false;
    if (journal->position > journal->checkpoint)
        begin_checkpoint(journal);
    while (!is_on_disk(journal))
        usleep(STALL_US);
    journal->checkpointing = false;
    note_checkpoint(journal, journal->checkpoint);
    int r = log_seal(journal->log);
    if (r < 0)
        journal__store_failed("sealing the log", r);
}
