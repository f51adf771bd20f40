/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction of all that there is; README.md, "Checkpoints".
 *
 * RocksDB must not be asked for it: a compaction that is asked for begins with a flush of what is in memory. Its own
 * compactions flush nothing, so they are made to take every file: those of the uppermost level go down as soon as there is one, the others but
 * the last level's are marked to go down, and those that were there when it began are called old, which has them written again where they are.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/rocks_internal.h"

#include <stdio.h>

enum {
    LOOK_US = 100 * 1000,
    ASK_SECONDS = 1,   /* between two times that it is asked */
    IDLE_SECONDS = 10, /* after which it is given up, when nothing has moved */
    TRIGGER_USUAL = 4, /* RocksDB's own: files of the uppermost level */
    NUMBER_BYTES = 24,
};

/* Numbers of files, rising. */
struct files {
    uint64_t *numbers;
    size_t count;
};

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Those of the spaces; the families of checkpoints have no history. */
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

/* Returns: how many of these are still there; the others are dropped. */
static size_t keep_live(struct rocks_store *rocks, struct files *files)
{
    struct files live = live_files(rocks);
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++)
        if (bsearch(&files->numbers[i], live.numbers, live.count, sizeof *live.numbers, compare_numbers) != NULL)
            files->numbers[kept++] = files->numbers[i];
    mem_free(live.numbers);
    return files->count = kept;
}

/* `seconds` 0: none is old. */
static int call_old(struct rocks_store *rocks, uint64_t seconds, unsigned trigger)
{
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

static bool is_cancelled(struct rocks_store *rocks)
{
    return atomic_load_explicit(&rocks->compact_cancelled, memory_order_relaxed);
}

/* RocksDB reckons files' ages in whole seconds of the wall clock, and so do we. */
static int compact_aged(struct rocks_store *rocks)
{
    struct files left = live_files(rocks);
    time_t begun = time(NULL) + 1, asked = 0, moved = begun;
    size_t before = left.count;
    int r = 0;
    while (r == 0 && left.count > 0 && !is_cancelled(rocks)) {
        time_t now = time(NULL);
        if (now > begun && now - asked >= ASK_SECONDS) {
            r = call_old(rocks, (uint64_t)(now - begun), 1);
            asked = now;
        }
        usleep(LOOK_US);
        if (keep_live(rocks, &left) < before || rocks__family_sum(rocks, "rocksdb.num-running-compactions") > 0)
            moved = now;
        before = left.count;
        if (now - moved > IDLE_SECONDS)
            break;
    }
    mem_free(left.numbers);
    int usual = call_old(rocks, 0, TRIGGER_USUAL);
    return r < 0 ? tl_trace(r) : usual;
}

int rocks__compact(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    int r = rocks__follow_history_low(rocks, 1);
    if (r < 0)
        return tl_trace(r);
    return compact_aged(rocks);
}

void rocks__compact_cancel(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    atomic_store_explicit(&rocks->compact_cancelled, true, memory_order_relaxed);
}
