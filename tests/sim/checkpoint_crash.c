/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills a process that writes to a store, repeatedly.
 *
 * Each batch writes its number to a key of every space, and a large value to one space. One thread
 * writes the batches, starts checkpoints whose record is the number of the newest batch, and
 * reports those that are durable. The parent kills the child after some reports. The next child
 * checks that the store is exactly at the number in its record, in all spaces and at earlier
 * timestamps, and that this is not older than the last report. Then it continues. Checkpoints are
 * small and large, so that kills hit flushes and compactions.
 *
 * usage: checkpoint_crash [--kills N] [--seed S]
 */
#include "../lib/arguments.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/rand.h"
#include "store/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILLER_BYTES_MAX = 20000, KEYS = 1000, HISTORY_BATCHES = 3000, BATCHES_MAX = 400, RECORD_BYTES_MAX = 300000 };

static _Noreturn void fail(const char *what, uint64_t number, uint64_t found)
{
    fprintf(stderr, "checkpoint_crash: %s: %llu, found %llu\n", what, (unsigned long long)number,
            (unsigned long long)found);
    exit(1);
}

/* Returns: the number in a space as of a batch; 0: none. */
static uint64_t read_number(struct store *store, enum store_space space, tl_ts ts)
{
    struct store_value value;
    int r = store_get(store, space, ts, SLICE_LIT("number"), &value);
    uint64_t number = 0;
    if (r == STORE_NOT_FOUND)
        return 0;
    if (r != 0 || !slice_to_u64(value.bytes, &number))
        fail("reading", (uint64_t)space, (uint64_t)-r);
    store_value_release(&value);
    return number;
}

/* Returns: the number in the checkpoint's record, before its filler; 0: there is no record. */
static uint64_t read_record(struct store *store)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    uint64_t number = 0;
    int r = store_checkpoint_record(store, &record);
    struct slice bytes = buf_as_slice(&record);
    if (r < 0 || (r == 0 && !slice_take_u64be(&bytes, &number)))
        fail("the record", 0, (uint64_t)-r);
    buf_deinit(&record);
    return number;
}

/* Checks the store that the last child left. Returns: its newest batch. */
static uint64_t check_store(struct store *store, uint64_t reported, struct rng *rng)
{
    uint64_t number = read_record(store), low = store_history_low(store);
    if (number < reported)
        fail("a reported checkpoint is missing", reported, number);
    for (int space = 0; space < SPACE_COUNT; space++)
        if (read_number(store, (enum store_space)space, TL_TS_MAX) != number)
            fail("a space stands elsewhere", number, read_number(store, (enum store_space)space, TL_TS_MAX));
    for (int i = 0; i < 50 && number > low; i++) {
        tl_ts ts = low + rng_below(rng, number - low) + 1;
        for (int space = 0; space < SPACE_COUNT; space++)
            if (space != SPACE_SYSTEM && space != SPACE_FEED && read_number(store, (enum store_space)space, ts) != ts)
                fail("the past of a space", ts, read_number(store, (enum store_space)space, ts));
    }
    return number;
}

static void write_batch(struct store *store, struct store_batch *batch, uint64_t number, struct rng *rng)
{
    static char filler[FILLER_BYTES_MAX];
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    memset(filler, (int)rng_below(rng, 256), sizeof filler);
    store_batch_clear(batch);
    store_batch_begin(batch, number);
    for (int space = 0; space < SPACE_COUNT; space++)
        store_batch_put(batch, (enum store_space)space, SLICE_LIT("number"), slice_from(text));
    enum store_space space = (enum store_space)rng_below(rng, SPACE_COUNT);
    snprintf(text, sizeof text, "filler %llu", (unsigned long long)rng_below(rng, KEYS));
    store_batch_put(batch, space, slice_from(text), slice_make(filler, rng_below(rng, sizeof filler)));
    if (store_write(store, batch) != 0)
        fail("writing", number, 0);
    if (number % 200 == 0 && number > HISTORY_BATCHES && store_set_history_low(store, number - HISTORY_BATCHES) != 0)
        fail("history limit", number, 0);
}

static void begin_checkpoint(struct store *store, uint64_t number, struct rng *rng)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    size_t len = (size_t)rng_below(rng, rng_below(rng, 4) == 0 ? RECORD_BYTES_MAX : 100);
    buf_u64be(&record, number);
    while (record.len < len)
        buf_byte(&record, 'x');
    if (store_checkpoint(store, buf_as_slice(&record)) != 0)
        fail("a checkpoint", number, 0);
    buf_deinit(&record);
}

static _Noreturn void run_child(const char *directory, uint64_t reported, uint64_t seed, int reports)
{
    struct store_options options = {.directory = slice_from(directory), .part_bytes = 100};
    struct store *store;
    struct rng rng;
    char *reason = NULL;
    rng_init(&rng, seed);
    if (store_open_rocks(&options, &store, &reason) != 0)
        fail(reason, reported, 0);
    uint64_t number = check_store(store, reported, &rng), begun = number;
    struct store_batch *batch = store_batch_new(store);
    bool open = false;
    for (uint64_t next = number + 1 + rng_below(&rng, BATCHES_MAX);;) {
        write_batch(store, batch, ++number, &rng);
        int r = open ? store_checkpointed(store) : 0;
        if (r < 0)
            fail("a flush", number, (uint64_t)-r);
        if (r == 1) {
            open = false;
            if (write(reports, &begun, sizeof begun) != sizeof begun)
                _exit(0);
        }
        if (!open && number >= next) {
            begin_checkpoint(store, begun = number, &rng);
            next = number + 1 + rng_below(&rng, rng_below(&rng, 3) == 0 ? 10 : BATCHES_MAX);
            open = true;
        }
    }
}

/* Starts a child and kills it after some reports. Returns: the newest number reported. */
static uint64_t run_and_kill(const char *directory, uint64_t reported, struct rng *rng)
{
    int ends[2];
    if (pipe(ends) != 0)
        fail("pipe", 0, 0);
    uint64_t seed = rng_next(rng), reports = 1 + rng_below(rng, 30), number;
    bool failed = false;
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        run_child(directory, reported, seed, ends[1]);
    }
    close(ends[1]);
    for (; reports > 0 && !failed; reports--) {
        failed = read(ends[0], &number, sizeof number) != sizeof number;
        reported = failed ? reported : number;
    }
    usleep((useconds_t)rng_below(rng, 20000));
    kill(pid, SIGKILL);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        reported = number;
    waitpid(pid, NULL, 0);
    close(ends[0]);
    if (failed)
        exit(1);
    return reported;
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/checkpoint_crash.XXXXXX", command[64];
    uint64_t kills = 20, seed = 1, reported = 0;
    const struct argument arguments[] = {{"--kills", .number = &kills}, {"--seed", .number = &seed}, {0}};
    arguments_take(argc, argv, arguments);
    if (mkdtemp(directory) == NULL)
        fail("directory", 0, 0);
    struct rng rng;
    rng_init(&rng, seed);
    for (uint64_t i = 0; i < kills; i++)
        reported = run_and_kill(directory, reported, &rng);
    printf("checkpoint_crash: %llu kills, %llu batches, each time the store of its record\n", (unsigned long long)kills,
           (unsigned long long)reported);
    snprintf(command, sizeof command, "rm -rf -- '%s'", directory);
    return system(command) == 0 ? 0 : 1;
}
