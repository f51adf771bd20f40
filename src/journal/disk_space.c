/* SPDX-License-Identifier: Apache-2.0 */
/* Free space on the disk, and the commands that a full disk refuses. */
#include <sys/statvfs.h>

#include "base/log.h"
#include "base/check.h"
#include "base/magic.h"
#include "journal/journal_internal.h"

/*
 * The last quarter of the reserve is never used: a log that meets the end of the disk cannot
 * continue.
 */
#define FLOOR_PART 4
/*
 * A write temporarily takes twice its size: in the log, and in the table that a checkpoint flushes.
 */
#define WRITTEN_TIMES 2
#define SPACE_INTERVAL_US (100 * TL_MS)
#define LARGE_BYTES (1 << 20)

static void measure_space(struct journal *journal)
{
    REQUIRE(journal->directory != NULL);
    struct statvfs space;
    atomic_store_explicit(&journal->space_checked_at, journal__boot(journal), memory_order_relaxed);
    if (statvfs(journal->directory, &space) != 0)
        return;
    uint64_t free = (uint64_t)space.f_bavail * space.f_frsize;
    atomic_store_explicit(&journal->writable_bytes, (int64_t)free - (int64_t)(journal->reserve_bytes / FLOOR_PART),
                          memory_order_relaxed);
    bool enough = free >= journal->reserve_bytes;
    /* After the disk was full RocksDB must have recovered; before that there is nothing to ask. */
    bool ready = free >= journal->reserve_bytes / FLOOR_PART &&
                 ((enough && atomic_load(&journal->writable)) || store_is_ready(journal->store));
    bool writable = enough && ready;
    atomic_store_explicit(&journal->ready, ready, memory_order_relaxed);
    if (atomic_exchange(&journal->writable, writable) == writable)
        return;
    atomic_fetch_add_explicit(&journal->state_version, 1, memory_order_acq_rel);
    if (writable)
        log_info("there is room on the disk again: writes are accepted");
    else
        log_error("less than %llu bytes are free for '%s': writes are refused until there is room",
                  (unsigned long long)journal->reserve_bytes, journal->directory);
}

void journal__check_space(struct journal *journal)
{
    if (journal->directory == NULL)
        return;
    uint64_t checked = atomic_load_explicit(&journal->space_checked_at, memory_order_relaxed);
    if (checked == 0 || journal__boot(journal) - checked >= SPACE_INTERVAL_US)
        measure_space(journal);
}

bool journal__is_ready(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    journal__check_space(journal);
    return atomic_load_explicit(&journal->ready, memory_order_relaxed);
}

bool journal__recheck_ready(struct journal *journal)
{
    if (journal->directory != NULL)
        measure_space(journal);
    return atomic_load_explicit(&journal->ready, memory_order_relaxed);
}

/*
 * Claims space for a command's bytes. Large claims measure the disk anew, since other processes use
 * it, too. Returns: whether there was enough.
 */
static bool claim_bytes(struct journal *journal, int64_t bytes)
{
    REQUIRE(bytes > 0);
    if (bytes <= LARGE_BYTES &&
        atomic_fetch_sub_explicit(&journal->writable_bytes, bytes, memory_order_relaxed) >= bytes)
        return true;
    measure_space(journal);
    return atomic_fetch_sub_explicit(&journal->writable_bytes, bytes, memory_order_relaxed) >= bytes;
}

bool journal__refuse_oversized(struct journal *journal, struct command *command)
{
    REQUIRE(journal__holds(&journal->core_lock));
    if (journal->directory == NULL || !command_is(command->type, COMMAND_ADDS_DATA))
        return false;
    size_t bytes = core_bytes_to_write(journal->core, command);
    if (bytes == 0 || claim_bytes(journal, (int64_t)bytes * WRITTEN_TIMES))
        return false;
    problem_set(
        &command->problem, &command->arena, PROBLEM_DISK_FULL,
        "the request writes [%zu] bytes, which need [%zu] on disk, and the disk of the data directory has less space; "
        "nothing was done, a transaction stays open: write less, or try again when there is space",
        bytes, bytes * WRITTEN_TIMES);
    return true;
}

void journal__refuse_disk_full(struct journal *journal, struct command *command)
{
    problem_set(&command->problem, &command->arena, PROBLEM_DISK_FULL,
                "less than [%llu] bytes are free on the disk of the data directory; writes are refused until there is "
                "room, reads are served",
                (unsigned long long)journal->reserve_bytes);
}

bool journal__refuse_if_full(struct journal *journal, struct command *command)
{
    bool adds_data = command_is(command->type, COMMAND_ADDS_DATA);
    if (command_is(command->type, COMMAND_WRITES_NOTHING) ||
        (!adds_data && atomic_load_explicit(&journal->writable, memory_order_relaxed)))
        return false;
    journal__check_space(journal);
    if (atomic_load_explicit(adds_data ? &journal->writable : &journal->ready, memory_order_relaxed))
        return false;
    journal__refuse_disk_full(journal, command);
    return true;
}

bool journal_writable(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    journal__check_space(journal);
    return atomic_load_explicit(&journal->writable, memory_order_relaxed) &&
           (journal->cluster == NULL || !cluster__is_log_full(journal));
}
