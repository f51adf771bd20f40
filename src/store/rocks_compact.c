/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full compaction; README.md, "Checkpoints".
 *
 * A manual compaction of RocksDB first flushes the memtables, so it must not be used. Automatic
 * compactions flush nothing, so they are made to cover every file. Files of level 0 are compacted
 * as soon as there is one. Files of the other levels except the last are marked for compaction.
 * Files that existed at the beginning are declared old, so that RocksDB rewrites them in place.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "store/rocks_internal.h"

#include <stdio.h>

enum {
    POLL_US = 100 * 1000,
    REQUEST_SECONDS = 1, /* interval between requests to RocksDB */
    IDLE_SECONDS = 10,   /* limit of the time without progress */
    TRIGGER_USUAL = 4,   /* RocksDB's default: number of files in level 0 */
    NUMBER_BYTES = 24,
};

/* File numbers, ascending. */
struct files {
    uint64_t *numbers;
    size_t count;
};

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Returns: the live files of the spaces; the families of checkpoints have no history. */
static struct files live_files(struct rocks_store *rocks)
{
    const rocksdb_livefiles_t *live = rocksdb_livefiles(rocks->db);
    int count = rocksdb_livefiles_count(live);
    struct files files = {mem_alloc((size_t)(count + 1) * sizeof *files.numbers), 0};
    for (int i = 0; i < count; i++) {
        const char *family = rocksdb_livefiles_column_family_name(live, i);
        for (int space = 0; space < SPACE_COUNT; space++)
            if (strcmp(family, rocks->options.family_names[space]) == 0)
                files.numbers[files.count++] = strtoull(rocksdb_livefiles_name(live, i) + 1, NULL, 10);
    }
    rocksdb_livefiles_destroy(live);
    qsort(files.numbers, files.count, sizeof *files.numbers, compare_numbers);
    return files;
}

/* Drops the files that do not exist any more. Returns: the number of the rest. */
static size_t retain_live(struct rocks_store *rocks, struct files *files)
{
    struct files live = live_files(rocks);
    size_t live_count = 0;
    for (size_t i = 0; i < files->count; i++)
        if (bsearch(&files->numbers[i], live.numbers, live.count, sizeof *live.numbers, compare_numbers) != NULL)
            files->numbers[live_count++] = files->numbers[i];
    mem_free(live.numbers);
    return files->count = live_count;
}

/*
 * Declares files older than `seconds` due for compaction (0: none), and sets the level 0 trigger.
 */
static int set_compaction_age(struct rocks_store *rocks, uint64_t seconds, unsigned trigger)
{
    REQUIRE(trigger > 0);
    char age[NUMBER_BYTES], files[NUMBER_BYTES];
    const char *const names[] = {"periodic_compaction_seconds", "level0_file_num_compaction_trigger"};
    const char *const values[] = {age, files};
    char *error = NULL;
    snprintf(age, sizeof age, "%llu", (unsigned long long)seconds);
    snprintf(files, sizeof files, "%u", trigger);
    for (int space = 0; space < SPACE_COUNT && error == NULL; space++) {
        rocksdb_set_options_cf(rocks->db, rocks->families[space], 2, names, values, &error);
        if (error == NULL && seconds > 0)
            rocksdb_suggest_compact_range_cf(rocks->db, rocks->families[space], NULL, 0, NULL, 0, &error);
    }
    return error == NULL ? 0 : rocks__fail(rocks, error);
}

/*
 * Waits until all files of the beginning have been rewritten. RocksDB computes ages in whole
 * seconds of the wall clock, and so does this function.
 */
static int compact_aged(struct rocks_store *rocks)
{
    struct files left = live_files(rocks);
    time_t begun = time(NULL) + 1, asked = 0, moved = begun;
    size_t before = left.count;
    int r = 0;
    while (r == 0 && left.count > 0 && !atomic_load_explicit(&rocks->compact_cancelled, memory_order_relaxed)) {
        time_t now = time(NULL);
        if (now > begun && now - asked >= REQUEST_SECONDS) {
            r = set_compaction_age(rocks, (uint64_t)(now - begun), 1);
            asked = now;
        }
        usleep(POLL_US);
        if (retain_live(rocks, &left) < before || rocks__family_sum(rocks, "rocksdb.num-running-compactions") > 0)
            moved = now;
        before = left.count;
        if (now - moved > IDLE_SECONDS)
            break;
    }
    mem_free(left.numbers);
    int usual = set_compaction_age(rocks, 0, TRIGGER_USUAL);
    return r < 0 ? tl_trace(r) : usual;
}

int rocks__compact(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    int r = rocks__push_history_low(rocks, 1);
    if (r < 0)
        return tl_trace(r);
    return compact_aged(rocks);
}

void rocks__compact_cancel(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    atomic_store_explicit(&rocks->compact_cancelled, true, memory_order_relaxed);
}
