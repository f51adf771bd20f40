/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store on RocksDB compared with the in-memory store.
 *
 * One seed drives both through the same random puts, deletes, reads, walks in both directions at
 * random timestamps and through overlays, iterators that stay open meanwhile, checkpoints,
 * compactions, raised history limits and, on disk, reopening. Every result must be equal. A failure
 * prints its seed; `store_diff --first SEED --seeds 1` replays it.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/rand.h"
#include "store/view.h"

#include "../lib/arguments.h"
#include "../lib/settle.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_BYTES_MAX = 4, VALUE_BYTES_MAX = 40, WALKS = 4, STEPS_DEFAULT = 1500 };

/* One iterator of each store, moved together; some views have an overlay. */
struct diff_walk {
    struct view_iter *mem;
    struct view_iter *rocks;
};

struct diff_run {
    uint64_t seed;
    int step;
    struct rng rng;
    bool on_disk;
    char *directory; /* NULL: in memory */
    struct store *mem;
    struct store *rocks;
    struct store_batch *mem_batch;
    struct store_batch *rocks_batch;
    struct overlay *overlay; /* shared by both; constant while a walk uses it */
    struct diff_walk walks[WALKS];
    tl_ts now;
    uint64_t reads;
    bool compacted;
};

static _Noreturn void fail(const struct diff_run *run, const char *what)
{
    fprintf(stderr, "store_diff: seed %llu, step %d: %s differs\n", (unsigned long long)run->seed, run->step, what);
    char *reason = store_reason(run->rocks);
    if (reason != NULL)
        fprintf(stderr, "store_diff: RocksDB says: %s\n", reason);
    exit(1);
}

static void expect(const struct diff_run *run, bool equal, const char *what)
{
    if (!equal)
        fail(run, what);
}

static uint64_t below(struct diff_run *run, uint64_t bound)
{
    return rng_below(&run->rng, bound);
}

static enum store_space random_space(struct diff_run *run)
{
    return (enum store_space)below(run, SPACE_COUNT);
}

/*
 * Short keys of few different bytes, including NUL and 0xff, so that keys repeat and are prefixes
 * of others.
 */
static struct slice random_key(struct diff_run *run, char *ret_bytes)
{
    static const char bytes[] = {'\0', '\1', 'a', 'b', '\x7f', '\x80', '\xff'};
    size_t len = below(run, KEY_BYTES_MAX + 1);
    for (size_t i = 0; i < len; i++)
        ret_bytes[i] = bytes[below(run, sizeof bytes)];
    return slice_make(ret_bytes, len);
}

static struct slice random_value(struct diff_run *run, char *ret_bytes)
{
    size_t len = below(run, VALUE_BYTES_MAX);
    for (size_t i = 0; i < len; i++)
        ret_bytes[i] = (char)below(run, 256);
    return slice_make(ret_bytes, len);
}

/* Mostly readable timestamps; some below the history limit, some in the future. */
static tl_ts random_ts(struct diff_run *run)
{
    tl_ts low = store_history_low(run->mem);
    if (below(run, 20) == 0)
        return TL_TS_MAX;
    if (below(run, 20) == 0)
        return below(run, low + 1);
    return low + below(run, run->now + 3 - low);
}

/* Deletes a range in an unversioned space. */
static void delete_range(struct diff_run *run)
{
    char a_bytes[KEY_BYTES_MAX], b_bytes[KEY_BYTES_MAX];
    enum store_space space = below(run, 2) == 0 ? SPACE_FEED : SPACE_SYSTEM;
    struct slice a = random_key(run, a_bytes), b = random_key(run, b_bytes);
    int order = slice_compare(a, b);
    if (order == 0)
        return;
    store_batch_delete_range(run->mem_batch, space, order < 0 ? a : b, order < 0 ? b : a);
    store_batch_delete_range(run->rocks_batch, space, order < 0 ? a : b, order < 0 ? b : a);
}

static void write_batch(struct diff_run *run)
{
    struct arena kept = ARENA_INIT; /* holds the keys and values that the batch does not copy */
    run->now += 1 + below(run, 5);
    store_batch_clear(run->mem_batch);
    store_batch_clear(run->rocks_batch);
    store_batch_begin(run->mem_batch, run->now);
    store_batch_begin(run->rocks_batch, run->now);
    if (run->now % 8 == 0)
        delete_range(run);
    /* one of 16 has so many that RocksDB's batch does not sort them by insertion */
    for (uint64_t changes = below(run, below(run, 16) == 0 ? 400 : 12); changes > 0; changes--) {
        char key_bytes[KEY_BYTES_MAX], value_bytes[VALUE_BYTES_MAX];
        enum store_space space = random_space(run);
        struct slice key = random_key(run, key_bytes);
        if (below(run, 3) == 0) {
            store_batch_delete(run->mem_batch, space, key);
            store_batch_delete(run->rocks_batch, space, key);
        } else {
            struct slice value = random_value(run, value_bytes);
            uint64_t how = below(run, 3);
            if (how == 2 && value.len >= STORE_STAMP_BYTES) {
                store_batch_put_stamped(run->mem_batch, space, key, value);
                store_batch_put_stamped(run->rocks_batch, space, arena_copy(&kept, key), arena_copy(&kept, value));
                continue;
            }
            store_batch_put(run->mem_batch, space, key, value);
            if (how == 0)
                store_batch_put(run->rocks_batch, space, key, value);
            else
                store_batch_put_nocopy(run->rocks_batch, space, arena_copy(&kept, key), arena_copy(&kept, value));
        }
    }
    expect(run, store_write(run->mem, run->mem_batch) == 0 && store_write(run->rocks, run->rocks_batch) == 0, "write");
    arena_deinit(&kept);
}

static void compare_get(struct diff_run *run)
{
    char key_bytes[KEY_BYTES_MAX];
    enum store_space space = random_space(run);
    struct slice key = random_key(run, key_bytes);
    tl_ts ts = random_ts(run);
    struct store_value a = {SLICE_NONE, NULL, NULL}, b = a;
    expect(run, store_get(run->mem, space, ts, key, &a) == store_get(run->rocks, space, ts, key, &b),
           "outcome of a get");
    expect(run, slice_equal(a.bytes, b.bytes), "value of a get");
    store_value_release(&a);
    store_value_release(&b);
    run->reads++;
}

/* Walks */

static void walk_close(struct diff_walk *walk)
{
    view_iter_free(walk->mem);
    view_iter_free(walk->rocks);
    *walk = (struct diff_walk){NULL, NULL};
}

static void walk_open(struct diff_run *run, struct diff_walk *walk)
{
    char lower_bytes[KEY_BYTES_MAX], upper_bytes[KEY_BYTES_MAX];
    struct slice lower = random_key(run, lower_bytes), upper = random_key(run, upper_bytes);
    lower.len = below(run, 2) ? lower.len : 0;
    upper.len = below(run, 2) ? upper.len : 0;
    enum store_space space = random_space(run);
    struct view view = {run->mem, random_ts(run), below(run, 3) ? NULL : run->overlay};
    walk->mem = view_iter_new(&view, space, lower, upper);
    view.store = run->rocks;
    walk->rocks = view_iter_new(&view, space, lower, upper);
}

static void compare_position(struct diff_run *run, const struct diff_walk *walk)
{
    run->reads++;
    expect(run, view_iter_status(walk->mem) == view_iter_status(walk->rocks), "status of an iterator");
    bool valid = view_iter_valid(walk->mem);
    expect(run, valid == view_iter_valid(walk->rocks), "end of an iterator");
    if (!valid)
        return;
    expect(run, slice_equal(view_iter_key(walk->mem), view_iter_key(walk->rocks)), "key of an iterator");
    expect(run, slice_equal(view_iter_value(walk->mem), view_iter_value(walk->rocks)), "value of an iterator");
}

static void walk_seek(struct diff_run *run, struct diff_walk *walk)
{
    char key_bytes[KEY_BYTES_MAX];
    struct slice key = random_key(run, key_bytes);
    switch (below(run, 4)) {
    case 0:
        view_iter_seek_first(walk->mem);
        view_iter_seek_first(walk->rocks);
        break;
    case 1:
        view_iter_seek_last(walk->mem);
        view_iter_seek_last(walk->rocks);
        break;
    case 2:
        view_iter_seek(walk->mem, key);
        view_iter_seek(walk->rocks, key);
        break;
    default: view_iter_seek_for_prev(walk->mem, key); view_iter_seek_for_prev(walk->rocks, key);
    }
    compare_position(run, walk);
}

static void walk_move(struct diff_run *run, struct diff_walk *walk)
{
    uint64_t forward_of_ten = below(run, 2) ? 9 : 1;
    for (uint64_t moves = below(run, 30); moves > 0 && view_iter_valid(walk->mem); moves--) {
        if (below(run, 10) < forward_of_ten) {
            view_iter_next(walk->mem);
            view_iter_next(walk->rocks);
        } else {
            view_iter_prev(walk->mem);
            view_iter_prev(walk->rocks);
        }
        compare_position(run, walk);
    }
}

static void walk_some(struct diff_run *run)
{
    struct diff_walk *walk = &run->walks[below(run, WALKS)];
    if (walk->mem != NULL && below(run, 3) == 0)
        walk_close(walk);
    if (walk->mem == NULL)
        walk_open(run, walk);
    walk_seek(run, walk);
    walk_move(run, walk);
}

static void close_walks(struct diff_run *run)
{
    for (int i = 0; i < WALKS; i++)
        walk_close(&run->walks[i]);
}

static void change_overlay(struct diff_run *run)
{
    close_walks(run); /* an overlay must not be written while a view of it is in use */
    if (below(run, 4) == 0)
        overlay_clear(run->overlay);
    for (uint64_t changes = below(run, 40); changes > 0; changes--) {
        char key_bytes[KEY_BYTES_MAX], value_bytes[VALUE_BYTES_MAX];
        enum store_space space = random_space(run);
        struct slice key = random_key(run, key_bytes);
        if (below(run, 2) == 0)
            overlay_delete(run->overlay, space, key);
        else
            overlay_put(run->overlay, space, key, random_value(run, value_bytes));
    }
}

/* Maintenance */

static struct store *open_rocks(const struct diff_run *run)
{
    /* small buffers, for more flushes and compactions */
    struct store_options options = {.directory = slice_from(run->directory),
                                    .in_memory = !run->on_disk,
                                    .cache_bytes = 1 << 20,
                                    .write_buffer_bytes = 256 << 10,
                                    .part_bytes = run->seed % 4 == 3 ? 0 : 40 * (run->seed % 4)}; /* most are divided */
    struct store *store = NULL;
    char *reason = NULL;
    if (store_open_rocks(&options, &store, &reason) != 0) {
        fprintf(stderr, "store_diff: seed %llu: cannot open: %s\n", (unsigned long long)run->seed, reason);
        exit(1);
    }
    return store;
}

static void reopen(struct diff_run *run)
{
    if (!run->on_disk)
        return;
    close_walks(run);
    settle(run->rocks);
    store_batch_free(run->rocks_batch);
    store_close(run->rocks);
    run->rocks = open_rocks(run);
    run->rocks_batch = store_batch_new(run->rocks);
    tl_ts low = store_history_low(run->mem);
    expect(run, store_history_low(run->rocks) <= low, "history limit after reopening");
    expect(run, store_set_history_low(run->rocks, low) == 0, "history limit");
}

static void raise_history_low(struct diff_run *run)
{
    tl_ts low = store_history_low(run->mem);
    low += below(run, run->now - low + 1);
    if (low == run->now && low > 0)
        low--; /* the next batch must be above the limit */
    expect(run, store_set_history_low(run->mem, low) == store_set_history_low(run->rocks, low), "history limit");
    expect(run, store_history_low(run->mem) == store_history_low(run->rocks), "history limit");
}

/* Compacts both stores, once in a run: RocksDB takes seconds. */
static void compact(struct diff_run *run)
{
    if (run->compacted || !run->on_disk)
        return;
    run->compacted = true;
    settle(run->rocks);
    expect(run, store_compact(run->mem) == store_compact(run->rocks), "compaction");
}

static void maintain(struct diff_run *run)
{
    switch (below(run, 6)) {
    case 0: settle(run->rocks); break;
    case 1: compact(run); break;
    case 2: raise_history_low(run); break;
    case 3: settle(run->mem); break;
    case 4: reopen(run); break;
    default: expect(run, store_verify(run->rocks, NULL) == 0, "verification");
    }
}

static void step(struct diff_run *run)
{
    uint64_t choice = below(run, 100);
    if (choice < 35)
        write_batch(run);
    else if (choice < 70)
        compare_get(run);
    else if (choice < 94)
        walk_some(run);
    else if (choice < 97)
        change_overlay(run);
    else
        maintain(run);
}

/* Removes the directory and the two levels of files in it. */
static void remove_tree(const char *path)
{
    DIR *listing = opendir(path);
    if (listing != NULL) {
        for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            char child[512];
            snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
            if (entry->d_type == DT_DIR)
                remove_tree(child);
            else
                unlink(child);
        }
        closedir(listing);
    }
    rmdir(path);
}

static uint64_t run_seed(uint64_t seed, int steps, bool on_disk)
{
    char directory[] = "/tmp/store_diff.XXXXXX";
    struct diff_run run = {.seed = seed, .on_disk = on_disk, .now = 1};
    if (on_disk)
        run.directory = mkdtemp(directory);
    rng_init(&run.rng, seed);
    run.mem = store_open_mem();
    run.rocks = open_rocks(&run);
    run.mem_batch = store_batch_new(run.mem);
    run.rocks_batch = store_batch_new(run.rocks);
    run.overlay = overlay_new();
    for (run.step = 0; run.step < steps; run.step++)
        step(&run);
    close_walks(&run);
    overlay_free(run.overlay);
    store_batch_free(run.mem_batch);
    store_batch_free(run.rocks_batch);
    store_close(run.mem);
    store_close(run.rocks);
    if (on_disk)
        remove_tree(directory);
    return run.reads;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, seeds = 20, steps = STEPS_DEFAULT, reads = 0;
    bool on_disk = false;
    const struct argument arguments[] = {{"--disk", .flag = &on_disk},
                                         {"--seeds", .number = &seeds},
                                         {"--first", .number = &first},
                                         {"--steps", .number = &steps},
                                         {0}};
    arguments_take(argc, argv, arguments);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        reads += run_seed(seed, (int)steps, on_disk);
    printf("store_diff: %llu seeds, %llu reads compared, no difference\n", (unsigned long long)seeds,
           (unsigned long long)reads);
    return 0;
}
