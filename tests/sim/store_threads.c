/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread writes and begins checkpoints, one waits until they are durable, several read,
 * concurrently; intended for the thread sanitizer.
 *
 * Every batch sets all keys of two spaces to its number and deletes one key of a third. So at
 * timestamp T each of those keys must read T, singly and in scans, unless the history limit has
 * passed T meanwhile. Runs on RocksDB and on the in-memory store.
 *
 * usage: store_threads [--batches N]
 */
#include "../lib/arguments.h"
#include "base/rand.h"
#include "store/view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 12, READERS = 3, HISTORY = 300 };

struct store_thread {
    struct store *store;
    uint64_t batches;
    _Atomic uint64_t newest; /* newest batch that readers may use; its number is its timestamp */
    atomic_bool done;
    atomic_bool on_disk; /* the last checkpoint is durable */
    _Atomic uint64_t reads;
    _Atomic uint64_t refused;
};

struct reader {
    struct store_thread *run;
    uint64_t seed;
};

static _Noreturn void fail(const char *what, uint64_t ts)
{
    fprintf(stderr, "store_threads: %s at %llu\n", what, (unsigned long long)ts);
    abort();
}

static struct slice key_of(uint64_t number, char ret_key[4])
{
    return slice_make(ret_key, (size_t)snprintf(ret_key, 4, "k%02d", (int)number));
}

static void write_batch(struct store_thread *run, struct store_batch *batch, uint64_t number)
{
    char text[24], key[4];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    store_batch_clear(batch);
    store_batch_begin(batch, number);
    for (uint64_t k = 0; k < KEYS; k++) {
        store_batch_put(batch, SPACE_DOCUMENTS, key_of(k, key), slice_from(text));
        store_batch_put(batch, SPACE_TREE, key_of(k, key), slice_from(text));
    }
    store_batch_put(batch, SPACE_SYSTEM, SLICE_LIT("number"), slice_from(text));
    store_batch_delete(batch, SPACE_FEED, key_of(number % KEYS, key));
    if (store_write(run->store, batch) != 0)
        fail("write failed", number);
}

static void *write_all(void *argument)
{
    struct store_thread *run = argument;
    struct store_batch *batch = store_batch_new(run->store);
    for (uint64_t number = 1; number <= run->batches; number++) {
        write_batch(run, batch, number);
        atomic_store(&run->newest, number);
        if (number % 50 == 0 && number > HISTORY && store_set_history_low(run->store, number - HISTORY) != 0)
            fail("history limit failed", number);
        if (number % 100 == 0 && atomic_exchange(&run->on_disk, false) && store_checkpoint(run->store, SLICE_NONE) != 0)
            fail("checkpoint failed", number);
        if (number % 1500 == 0 && store_compact(run->store) != 0)
            fail("compaction failed", number);
    }
    store_batch_free(batch);
    atomic_store(&run->done, true);
    return NULL;
}

/* Waits until a checkpoint is durable, so that the writer may begin the next one. */
static void *watch_checkpoints(void *argument)
{
    struct store_thread *run = argument;
    while (!atomic_load(&run->done)) {
        int r = atomic_load(&run->on_disk) ? 0 : store_checkpointed(run->store);
        if (r < 0)
            fail("a flush failed", 0);
        if (r == 1)
            atomic_store(&run->on_disk, true);
    }
    return NULL;
}

/* Counts a refused read; its timestamp must be below the history limit. */
static void note_refused(struct store_thread *run, tl_ts ts)
{
    if (ts >= store_history_low(run->store))
        fail("refused though above the cut-off", ts);
    atomic_fetch_add(&run->refused, 1);
}

static void check_number(struct slice value, tl_ts ts)
{
    uint64_t number = 0;
    if (!slice_to_u64(value, &number) || number != ts)
        fail("a read sees another batch", ts);
}

static void read_one(struct store_thread *run, const struct view *view, uint64_t number)
{
    char key[4];
    struct store_value value;
    int r = view_get(view, number % 2 ? SPACE_DOCUMENTS : SPACE_TREE, key_of(number % KEYS, key), &value);
    if (r == STORE_TOO_OLD) {
        note_refused(run, view->ts);
        return;
    }
    if (r != 0)
        fail("a key is missing", view->ts);
    check_number(value.bytes, view->ts);
    store_value_release(&value);
}

static void scan_all(struct store_thread *run, const struct view *view, bool backward)
{
    struct view_iter *iter = view_iter_new(view, SPACE_TREE, SLICE_NONE, SLICE_NONE);
    uint64_t count = 0;
    for (backward ? view_iter_seek_last(iter) : view_iter_seek_first(iter); view_iter_valid(iter); count++) {
        check_number(view_iter_value(iter), view->ts);
        if (backward)
            view_iter_prev(iter);
        else
            view_iter_next(iter);
    }
    if (view_iter_status(iter) == STORE_TOO_OLD)
        note_refused(run, view->ts);
    else if (view_iter_status(iter) != 0 || count != KEYS)
        fail("a scan is not whole", view->ts);
    view_iter_free(iter);
}

static void *read_all(void *argument)
{
    struct reader *reader = argument;
    struct store_thread *run = reader->run;
    struct rng rng;
    rng_init(&rng, reader->seed);
    while (!atomic_load(&run->done)) {
        uint64_t newest = atomic_load(&run->newest);
        if (newest == 0)
            continue;
        uint64_t back = rng_below(&rng, HISTORY + HISTORY / 8);
        struct view view = {run->store, newest > back ? newest - back : newest, NULL};
        if (rng_below(&rng, 4) == 0)
            scan_all(run, &view, rng_below(&rng, 2));
        else
            read_one(run, &view, rng_next(&rng));
        atomic_fetch_add(&run->reads, 1);
    }
    return NULL;
}

static void run_threads(struct store *store, const char *name, uint64_t batches)
{
    struct store_thread run = {.store = store, .batches = batches, .on_disk = true};
    pthread_t threads[READERS + 2];
    struct reader readers[READERS];
    pthread_create(&threads[0], NULL, write_all, &run);
    pthread_create(&threads[1], NULL, watch_checkpoints, &run);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){&run, (uint64_t)i};
        pthread_create(&threads[2 + i], NULL, read_all, &readers[i]);
    }
    for (int i = 0; i < READERS + 2; i++)
        pthread_join(threads[i], NULL);
    printf("store_threads: %s: %llu batches, %llu reads, %llu refused as too old\n", name, (unsigned long long)batches,
           (unsigned long long)run.reads, (unsigned long long)run.refused);
    store_close(store);
}

int main(int argc, char **argv)
{
    uint64_t batches = 3000;
    const struct argument arguments[] = {{"--batches", .number = &batches}, {0}};
    arguments_take(argc, argv, arguments);
    char directory[] = "/tmp/store_threads.XXXXXX";
    if (mkdtemp(directory) == NULL)
        fail("no directory", 0);
    struct store_options options = {
        .directory = slice_from(directory), .write_buffer_bytes = 512 << 10, .part_bytes = 100};
    struct store *store = NULL;
    char *reason = NULL;
    if (store_open_rocks(&options, &store, &reason) != 0)
        fail(reason, 0);
    run_threads(store, "RocksDB", batches);
    run_threads(store_open_mem(), "mem", batches);
    char command[64];
    snprintf(command, sizeof command, "rm -rf -- '%s'", directory);
    return system(command) == 0 ? 0 : 1;
}
