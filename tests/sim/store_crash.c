/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills a process that writes to the store on disk, again and again.
 *
 * Each batch writes its number to a key of every space. One thread writes, another syncs and then reports
 * what was written before the sync. The parent kills the child after some reports; the next child finds that
 * nothing reported is missing, that all spaces stand at the same batch, also for reads in the past, and goes
 * on from there. Memtables are small, so kills hit flushes and compactions too.
 *
 * usage: store_crash [--kills N] [--seed S]
 */
#include "base/rand.h"
#include "store/store.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILLER_BYTES_MAX = 3000, HISTORY_BATCHES = 5000 };

struct child {
    struct store *store;
    int reports;             /* a pipe to the parent */
    _Atomic uint64_t number; /* of the newest batch; its timestamp too */
};

static _Noreturn void fail(const char *what, uint64_t number, uint64_t found)
{
    fprintf(stderr, "store_crash: %s: %llu, found %llu\n", what, (unsigned long long)number, (unsigned long long)found);
    exit(1);
}

/* The number a space holds as of a batch, 0 where it holds none. */
static uint64_t read_number(struct store *store, enum store_space space, tl_ts ts)
{
    struct store_value value;
    int r = store_get(store, space, ts, SLICE_LIT("number"), &value);
    if (r == STORE_NOT_FOUND)
        return 0;
    uint64_t number = 0;
    if (r != 0 || !slice_to_u64(value.bytes, &number))
        fail("reading", (uint64_t)space, (uint64_t)-r);
    store_value_release(&value);
    return number;
}

/* Checks what the last child left. Returns: the newest batch. */
static uint64_t check_store(struct store *store, uint64_t reported, struct rng *rng)
{
    uint64_t number = read_number(store, SPACE_SYSTEM, 0);
    if (number < reported)
        fail("a reported batch is missing", reported, number);
    uint64_t low = store_history_low(store);
    for (int i = 0; i < 20 && number > 0; i++) {
        tl_ts ts = i == 0 || low >= number ? number : low + rng_below(rng, number - low) + 1;
        for (int space = 0; space < SPACE_COUNT; space++) {
            uint64_t found = read_number(store, space, ts);
            if (space != SPACE_SYSTEM && found != ts)
                fail("a space stands elsewhere", ts, found);
        }
    }
    char *reason = NULL;
    if (store_verify(store, &reason) != 0)
        fail(reason, number, 0);
    return number;
}

static void write_batch(struct child *child, struct store_batch *batch, uint64_t number, struct rng *rng)
{
    char text[24], filler[FILLER_BYTES_MAX];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    memset(filler, (int)rng_below(rng, 256), sizeof filler);
    store_batch_clear(batch);
    store_batch_begin(batch, number);
    for (int space = 0; space < SPACE_COUNT; space++)
        store_batch_put(batch, space, SLICE_LIT("number"), slice_from(text));
    enum store_space space = (enum store_space)rng_below(rng, SPACE_COUNT);
    snprintf(text, sizeof text, "filler %llu", (unsigned long long)rng_below(rng, 1000));
    store_batch_put(batch, space, slice_from(text), slice_make(filler, rng_below(rng, sizeof filler)));
    if (store_write(child->store, batch) != 0)
        fail("writing", number, 0);
}

static void *write_for_ever(void *argument)
{
    struct child *child = argument;
    struct store_batch *batch = store_batch_new(child->store);
    struct rng rng;
    rng_init(&rng, atomic_load(&child->number));
    for (;;) {
        uint64_t number = atomic_load(&child->number) + 1;
        write_batch(child, batch, number, &rng);
        atomic_store(&child->number, number);
        if (number % 200 == 0 && number > HISTORY_BATCHES &&
            store_set_history_low(child->store, number - HISTORY_BATCHES) != 0)
            fail("cut-off", number, 0);
    }
    return NULL;
}

static _Noreturn void run_child(const char *directory, uint64_t reported, uint64_t seed, int reports)
{
    struct store_options options = {.directory = slice_from(directory), .write_buffer_bytes = 512 << 10};
    struct child child = {.reports = reports};
    struct rng rng;
    char *reason = NULL;
    rng_init(&rng, seed);
    if (store_open_rocks(&options, &child.store, &reason) != 0)
        fail(reason, reported, 0);
    atomic_store(&child.number, check_store(child.store, reported, &rng));
    pthread_t writer;
    if (pthread_create(&writer, NULL, write_for_ever, &child) != 0)
        fail("thread", 0, 0);
    for (;;) {
        uint64_t number = atomic_load(&child.number);
        if (store_sync(child.store) != 0)
            fail("sync", number, 0);
        if (write(reports, &number, sizeof number) != sizeof number)
            _exit(0);
    }
}

/* Starts a child and kills it after some reports. Returns: the newest number reported. */
static uint64_t run_and_kill(const char *directory, uint64_t reported, struct rng *rng)
{
    int ends[2];
    if (pipe(ends) != 0)
        fail("pipe", 0, 0);
    uint64_t seed = rng_next(rng), reports = 1 + rng_below(rng, 200);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_child(directory, reported, seed, ends[1]);
    }
    close(ends[1]);
    uint64_t number;
    bool failed = false;
    while (reports > 0 && !failed) {
        failed = read(ends[0], &number, sizeof number) != sizeof number;
        reported = failed ? reported : number;
        reports--;
    }
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
    char directory[] = "/tmp/store_crash.XXXXXX";
    uint64_t kills = 20, seed = 1, reported = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--kills") == 0)
            kills = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
    }
    if (mkdtemp(directory) == NULL)
        fail("directory", 0, 0);
    struct rng rng;
    rng_init(&rng, seed);
    for (uint64_t i = 0; i < kills; i++)
        reported = run_and_kill(directory, reported, &rng);
    printf("store_crash: %llu kills, %llu batches, none lost\n", (unsigned long long)kills,
           (unsigned long long)reported);
    char command[64];
    snprintf(command, sizeof command, "rm -rf -- '%s'", directory);
    return system(command) == 0 ? 0 : 1;
}
