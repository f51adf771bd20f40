/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the file log with a list, on a disk that fails at any operation.
 *
 * Goal: the guarantees of src/cmdlog/README.md.
 *
 * Method: random appends, syncs, trims, seals and checkpoints. The process is killed, or the power
 * fails, after any number of disk operations, also during a recovery; and syncs fail. The log that
 * opens must be a prefix of the appended entries, with all that were ever durable, and without any
 * that an earlier opening had cut off.
 *
 *     cmdlog_sim [--seeds N] [--from SEED]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/arguments.h"
#include "../lib/disk_sim.h"
#include "base/alloc.h"
#include "cmdlog/cmdlog_file.h"

enum { ENTRIES_MAX = 4000, OPS = 300 };

struct world {
    uint64_t seed;
    struct rng rng;
    struct disk_sim *disk;
    struct cmdlog *log;
    struct cmdlog_file_options options;
    /* The expected log: for each entry the seed of its bytes. */
    uint64_t entries[ENTRIES_MAX];
    uint64_t appended;       /* acknowledged, or found by an opening */
    uint64_t unacknowledged; /* 1: entries[appended + 1] was not acknowledged */
    uint64_t durable;        /* acknowledged */
    uint64_t checkpoint;
    uint64_t checkpoint_unacknowledged;
    uint64_t trimmed; /* entries up to here may be trimmed */
    bool syncs_fail;
    bool identical; /* so that a truncated entry fits after its replacement */
};

static _Noreturn void fail(const struct world *world, const char *what, uint64_t found, uint64_t expected)
{
    printf("seed %" PRIu64 ": %s: found %" PRIu64 ", expected %" PRIu64 "\n", world->seed, what, found, expected);
    exit(1);
}

static size_t entry_bytes(uint64_t entry_seed, char *buffer)
{
    struct rng rng;
    rng_init(&rng, entry_seed);
    size_t len = 1 + (size_t)rng_below(&rng, entry_seed % 11 == 0 ? 9000 : 400);
    for (size_t i = 0; i < len; i++)
        buffer[i] = entry_seed % 3 == 0 ? 0 : (char)rng_next(&rng);
    return len;
}

/* Compares entries `from` to `to`. Returns: 0; TL_ERR_IO: the disk has failed. */
static int compare(struct world *world, uint64_t from, uint64_t to)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    static char buffer[10000];
    int r = cmdlog_follow(world->log, from, &cursor);
    if (r == TL_ERR_IO)
        return r;
    if (r != 0)
        fail(world, "following", (uint64_t)r, 0);
    for (uint64_t i = from; i <= to; i++) {
        if ((r = cmdlog_next(cursor, &entry)) == TL_ERR_IO)
            break;
        if (r != 0)
            fail(world, "the next entry of a log that says it has it", i, (uint64_t)-r);
        size_t len = entry_bytes(world->entries[i], buffer);
        if (entry.position != i || !slice_equal(entry.bytes, slice_make(buffer, len)))
            fail(world, "other bytes of an entry", i, entry.position);
    }
    if (r == 0 && cmdlog_next(cursor, &entry) != CMDLOG_END)
        fail(world, "an entry behind the last", entry.position, to);
    cmdlog_unfollow(cursor);
    return r;
}

/* Compares an opened log with the expected one, which from now on is equal to it. */
static void check_opened(struct world *world)
{
    struct cmdlog_head head;
    struct cmdlog_checkpoint checkpoint = {0};
    char place[CMDLOG_LOCATOR_MAX];
    cmdlog_head(world->log, &head);
    if (head.appended < world->durable)
        fail(world, "durable entries are gone; the newest", head.appended, world->durable);
    if (head.appended > world->appended + world->unacknowledged)
        fail(world, "the newest entry was never appended", head.appended, world->appended);
    if (head.oldest > world->trimmed + 1 && head.oldest > 1)
        fail(world, "the oldest entry", head.oldest, world->trimmed + 1);
    if (head.durable != head.appended)
        fail(world, "what was opened is not durable", head.durable, head.appended);
    int r = compare(world, head.oldest, head.appended);
    if (r != 0)
        fail(world, "reading a disk that lives", (uint64_t)-r, 0);
    r = cmdlog_get_checkpoint(world->log, 0, place, &checkpoint);
    if (r < 0 || (checkpoint.position != world->checkpoint && checkpoint.position != world->checkpoint_unacknowledged))
        fail(world, "the newest checkpoint", checkpoint.position, world->checkpoint);
    world->appended = world->durable = head.appended;
    world->unacknowledged = 0;
    world->checkpoint = world->checkpoint_unacknowledged = checkpoint.position;
}

/* Opens the log, repeatedly while the disk fails during the opening. */
static void open_log(struct world *world)
{
    char *reason = NULL;
    for (bool dies = rng_below(&world->rng, 3) == 0;; dies = rng_below(&world->rng, 2) == 0) {
        disk_sim_die_after(world->disk, dies ? rng_below(&world->rng, 12) : UINT64_MAX);
        int r = cmdlog_file_open(disk_sim_disk(world->disk), &world->options, &world->log, &reason);
        if (r == 0)
            break;
        if (r != TL_ERR_IO || (!dies && !world->syncs_fail)) {
            printf("%s\n", reason == NULL ? "no reason" : reason);
            fail(world, "opening", (uint64_t)-r, 0);
        }
        mem_free(reason);
        disk_sim_die_after(world->disk, UINT64_MAX);
        if (rng_below(&world->rng, 2) == 0)
            disk_sim_cut_power(world->disk);
    }
    disk_sim_die_after(world->disk, UINT64_MAX);
    check_opened(world);
}

/* Syncs again, as another thread may after a failed sync. */
static void sync_once_more(struct world *world)
{
    if (cmdlog_sync(world->log, world->appended) == 0)
        world->durable = world->appended;
}

static void crash(struct world *world)
{
    cmdlog_close(world->log);
    disk_sim_die_after(world->disk, UINT64_MAX);
    if (rng_below(&world->rng, 3) > 0)
        disk_sim_cut_power(world->disk);
    open_log(world);
}

/* --- Actions ------------------------------------------------------------------------------------------------------ */

static int append(struct world *world)
{
    static char buffer[10000];
    uint64_t entry_seed = world->identical ? 4 : rng_next(&world->rng);
    size_t len = entry_bytes(entry_seed, buffer);
    size_t first = (size_t)rng_below(&world->rng, len);
    struct slice parts[2] = {slice_make(buffer, first), slice_make(buffer + first, len - first)};
    cmdlog_position position;
    if (world->appended + 2 >= ENTRIES_MAX)
        return 0;
    world->entries[world->appended + 1] = entry_seed;
    world->unacknowledged = 1;
    int r = cmdlog_append(world->log, parts, 2, &position);
    if (r != 0)
        return r;
    if (position != ++world->appended)
        fail(world, "the position of an append", position, world->appended);
    world->unacknowledged = 0;
    return 0;
}

static int sync_some(struct world *world)
{
    uint64_t position = world->durable + rng_below(&world->rng, world->appended - world->durable + 1);
    int r = cmdlog_sync(world->log, position);
    if (r == 0 && position > world->durable)
        world->durable = position;
    return r;
}

static int put_checkpoint(struct world *world)
{
    bool late = rng_below(&world->rng, 4) == 0; /* perhaps below the newest: ignored */
    struct cmdlog_checkpoint checkpoint = {late ? rng_below(&world->rng, world->durable + 1) : world->durable,
                                           SLICE_LIT("some place")};
    if (checkpoint.position == 0)
        return 0;
    if (checkpoint.position > world->checkpoint)
        world->checkpoint_unacknowledged = checkpoint.position;
    int r = cmdlog_put_checkpoint(world->log, &checkpoint);
    if (r == 0)
        world->checkpoint = world->checkpoint_unacknowledged;
    return r;
}

static int trim(struct world *world)
{
    if (world->checkpoint == 0)
        return 0;
    uint64_t before = world->trimmed + rng_below(&world->rng, world->checkpoint + 2 - world->trimmed);
    if (before > world->trimmed + 1)
        world->trimmed = before - 1;
    return cmdlog_trim(world->log, before);
}

static int seal(struct world *world)
{
    int r = cmdlog_seal(world->log);
    if (r == 0)
        world->durable = world->appended;
    return r;
}

static int act(struct world *world)
{
    uint64_t choice = rng_below(&world->rng, 100);
    if (choice < 60)
        return append(world);
    if (choice < 85)
        return sync_some(world);
    if (choice < 90)
        return put_checkpoint(world);
    if (choice < 94)
        return trim(world);
    if (choice < 95)
        return seal(world);
    if (choice < 97)
        return cmdlog_file_preallocate(world->log);
    return compare(world, world->trimmed + 1, world->appended);
}

static void run(uint64_t seed)
{
    struct world world = {.seed = seed};
    rng_init(&world.rng, seed);
    world.disk = disk_sim_new(seed ^ 0x5eed);
    world.options = (struct cmdlog_file_options){
        .segment_bytes = 512 * (2 + rng_below(&world.rng, 20)),
        .spares_max = (unsigned)rng_below(&world.rng, 4),
    };
    world.syncs_fail = rng_below(&world.rng, 2) == 0;
    disk_sim_fail_syncs(world.disk, world.syncs_fail ? 2 + rng_below(&world.rng, 30) : 0);
    world.identical = rng_below(&world.rng, 4) == 0;
    open_log(&world);
    for (int i = 0; i < OPS; i++) {
        if (rng_below(&world.rng, 20) == 0)
            disk_sim_die_after(world.disk, rng_below(&world.rng, 40));
        int r = act(&world);
        if (r != 0 && rng_below(&world.rng, 3) == 0)
            sync_once_more(&world);
        if (r != 0 || rng_below(&world.rng, 40) == 0)
            crash(&world);
    }
    cmdlog_close(world.log);
    disk_sim_free(world.disk);
}

int main(int argc, char **argv)
{
    uint64_t seeds = 300, from = 1;
    const struct argument arguments[] = {{"--seeds", .number = &seeds}, {"--from", .number = &from}, {0}};
    arguments_take(argc, argv, arguments);
    for (uint64_t seed = from; seed < from + seeds; seed++)
        run(seed);
    printf("cmdlog_sim: %" PRIu64 " seeds from %" PRIu64 "\n", seeds, from);
    return 0;
}
