/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps of stale posting lists; see sweep.h. */
#include "core/maintenance/sweep.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/command/command.h"
#include "core/documents/doc.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "mapping/entry.h"

/*
 * In a batch number: the timestamp of the command that wrote it; the upper bits count its batches
 * (write.c).
 */
#define BATCH_TS_MASK ((UINT64_C(1) << 53) - 1)

void sweep_init(struct sweep *sweep)
{
    *sweep = (struct sweep){.batches = MAP_INIT, .position = BUF_INIT(BUF_UNLIMITED)};
}

void sweep_deinit(struct sweep *sweep)
{
    map_deinit(&sweep->batches);
    buf_deinit(&sweep->position);
}

static void end_sweep(struct sweep *sweep)
{
    REQUIRE(sweep->index != 0);
    sweep_deinit(sweep);
    sweep_init(sweep);
}

/* Scan of a range of keys, in parts. */
struct sweep_scan {
    struct core *core;
    struct command *command; /* the command to be proposed */
    size_t stale_capacity;
    enum store_space space;
    struct slice lower, upper;
    /* Returns 1: it has proposed the key */
    int (*visit)(struct sweep_scan *scan, struct slice key, struct slice value);
    /* Scans left; a proposed key counts as SWEEP_SCANS_PER_KEY, and SWEEP_BYTES_PER_SCAN bytes as one */
    size_t left;
};

/* --- Batches ------------------------------------------------------------------------------------------------------ */

static struct slice batch_key(const uint64_t *batch)
{
    return slice_make(batch, sizeof(*batch));
}

/* Whether this sweep removes the posting lists of a batch if no document has it. */
static bool is_in_range(const struct sweep *sweep, uint64_t batch)
{
    tl_ts ts = batch & BATCH_TS_MASK;
    return ts >= sweep->low && ts < sweep->horizon;
}

static int compare_ts(const void *a, const void *b)
{
    const tl_ts *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Returns: about the middle of the timestamps of the batches remembered, from a sample of them. */
static tl_ts middle_of(const struct map *batches)
{
    enum { SAMPLES_MAX = 1000 };
    tl_ts samples[SAMPLES_MAX];
    size_t count = 0, position = 0, each = batches->count / SAMPLES_MAX + 1;
    struct slice key;
    void *value;

    REQUIRE(batches->count > 0);
    for (size_t i = 0; map_next(batches, &position, &key, &value); i++) {
        uint64_t batch;
        memcpy(&batch, key.data, sizeof(batch));
        if (i % each == 0)
            samples[count++] = batch & BATCH_TS_MASK;
    }
    ENSURE(count > 0 && count <= SAMPLES_MAX);
    qsort(samples, count, sizeof(*samples), compare_ts);
    return samples[count / 2];
}

/* Lowers the horizon, so that about half of the batches are still remembered. It puts those into a new map. */
static void lower_horizon(struct sweep *sweep)
{
    REQUIRE(sweep->low < sweep->horizon);
    struct map batches = sweep->batches;
    tl_ts middle = middle_of(&batches);
    size_t position = 0;
    struct slice key;
    void *value;

    sweep->narrowed = true;
    sweep->horizon = middle > sweep->low ? middle : sweep->low + 1;
    sweep->batches = MAP_INIT;
    while (map_next(&batches, &position, &key, &value)) {
        uint64_t batch;
        memcpy(&batch, key.data, sizeof(batch));
        if (is_in_range(sweep, batch))
            map_put(&sweep->batches, key, sweep);
    }
    map_deinit(&batches);
}

/* Remembers the batch of a document. Returns: 0; TL_ERR_CORRUPT. */
static int scan_document(struct sweep_scan *scan, struct slice key, struct slice record)
{
    struct sweep *sweep = &scan->core->sweep;
    struct doc doc;

    (void)key;
    if (doc_decode(record, &doc) < 0)
        return tl_trace(TL_ERR_CORRUPT);
    if (doc.deleted || doc.batch == 0 || doc.batch == sweep->last_batch || !is_in_range(sweep, doc.batch))
        return 0;
    sweep->last_batch = doc.batch;
    map_put(&sweep->batches, batch_key(&doc.batch), sweep);
    if (sweep->batches.count > scan->core->sweep_batches_max)
        lower_horizon(sweep);
    return 0;
}

/* Proposes an entry that is a stale posting list. Returns: 0; 1: proposed; fatal codes. */
static int scan_entry(struct sweep_scan *scan, struct slice key, struct slice value)
{
    struct sweep *sweep = &scan->core->sweep;
    struct maintain_command *maintain = &scan->command->maintain;
    uint64_t batch;

    (void)value;
    if (!entry_is_posting_list(key, &batch) || !is_in_range(sweep, batch) ||
        map_get(&sweep->batches, batch_key(&batch)) != NULL)
        return 0;
    maintain->stale = arena_grow(&scan->command->arena, maintain->stale, maintain->stale_count, &scan->stale_capacity,
                                 sizeof(*maintain->stale));
    maintain->stale[maintain->stale_count++] = arena_copy(&scan->command->arena, key);
    return 1;
}

/* --- Scans -------------------------------------------------------------------------------------------------------- */

/* Continues the scan at its position. Returns: 0; 1: the range is done; fatal codes. */
static int run_scan(struct sweep_scan *scan)
{
    struct core *core = scan->core;
    struct sweep *sweep = &core->sweep;
    struct slice from = sweep->position.len > 0 ? buf_as_slice(&sweep->position) : scan->lower;
    struct store_iter *iter = store_iter_new(core->store, scan->space, TL_TS_MAX, from, scan->upper);
    int r = 0;

    store_iter_seek_first(iter);
    for (; r == 0 && scan->left > 0 && store_iter_valid(iter); store_iter_next(iter)) {
        r = scan->visit(scan, store_iter_key(iter), store_iter_value(iter));
        size_t cost = r > 0 ? SWEEP_SCANS_PER_KEY : 1 + store_iter_value(iter).len / SWEEP_BYTES_PER_SCAN;
        scan->left -= cost < scan->left ? cost : scan->left;
        r = r > 0 ? 0 : r;
    }
    bool at_end = !store_iter_valid(iter);
    if (r == 0 && at_end)
        r = store_iter_status(iter);
    buf_clear(&sweep->position);
    if (!at_end)
        buf_slice(&sweep->position, store_iter_key(iter));
    ENSURE(at_end || slice_compare(buf_as_slice(&sweep->position), scan->upper) < 0);
    store_iter_free(iter);
    return r != 0 ? r : at_end;
}

static int scan_documents(struct core *core, size_t *left)
{
    struct sweep *sweep = &core->sweep;
    REQUIRE(sweep->index != 0 && !sweep->batches_known);
    char lower[DOC_KEY_PREFIX_BYTES], upper[DOC_KEY_PREFIX_BYTES];
    struct sweep_scan scan = {.core = core,
                              .space = SPACE_DOCUMENTS,
                              .lower = doc_key(lower, sweep->index, 0, SLICE_LIT("")),
                              .upper = doc_key(upper, sweep->index + 1, 0, SLICE_LIT("")),
                              .visit = scan_document,
                              .left = *left};
    int r = run_scan(&scan);

    *left = scan.left;
    sweep->batches_known = r == 1;
    return r < 0 ? tl_trace(r) : 0;
}

static int scan_entries(struct core *core, struct command *command, size_t *left)
{
    REQUIRE(core->sweep.index != 0 && core->sweep.batches_known); /* else it would propose those of documents */
    char lower[4], upper[4];

    entry_index_bounds(core->sweep.index, lower, upper);
    struct sweep_scan scan = {.core = core,
                              .command = command,
                              .space = SPACE_ENTRIES,
                              .lower = slice_make(lower, sizeof(lower)),
                              .upper = slice_make(upper, sizeof(upper)),
                              .visit = scan_entry,
                              .left = *left};
    int r = run_scan(&scan);

    *left = scan.left;
    if (r == 1) {
        counters__of(&core->counters, core->sweep.index)->swept_to = core->sweep.narrowed ? core->sweep.horizon : 0;
        end_sweep(&core->sweep);
    }
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Scheduling --------------------------------------------------------------------------------------------------- */

static bool is_due(const struct core *core, const struct counter *counter)
{
    return counter->posting_list_documents > core->limits.stale_documents_min &&
           counter->posting_list_documents - core->limits.stale_documents_min > counter__documents(counter);
}

/* Begins to sweep the first index that is due, if any. */
static void begin_sweep(struct core *core)
{
    REQUIRE(!core->sweep.batches_known && core->sweep.batches.count == 0 && core->sweep.position.len == 0);
    tl_ts oldest = txn__oldest_update(core);

    for (size_t i = 0; i < catalog_index_count(core->catalog) && core->sweep.index == 0; i++) {
        uint32_t number = catalog_index_at(core->catalog, i)->number;
        struct counter *counter = counters__of(&core->counters, number);
        if (!is_due(core, counter))
            continue;
        counter->posting_list_documents = 0;
        core->sweep.index = number;
        core->sweep.horizon = oldest <= core->last_ts ? oldest : core->last_ts + 1;
        core->sweep.low = counter->swept_to < core->sweep.horizon ? counter->swept_to : 0;
    }
}

int sweep__continue(struct core *core, size_t keys_max, struct command *command)
{
    REQUIRE(command->type == COMMAND_MAINTAIN && !core->open);
    struct sweep *sweep = &core->sweep;
    size_t left = keys_max * SWEEP_SCANS_PER_KEY;
    int r = 0;

    if (sweep->index != 0 && catalog_index_by_number(core->catalog, sweep->index) == NULL)
        end_sweep(sweep); /* its entries are purged with it */
    if (sweep->index == 0)
        begin_sweep(core);
    if (sweep->index != 0 && !sweep->batches_known)
        r = scan_documents(core, &left);
    if (r == 0 && sweep->index != 0 && sweep->batches_known && left > 0)
        r = scan_entries(core, command, &left);
    ENSURE(left <= keys_max * SWEEP_SCANS_PER_KEY);
    command->maintain.scanned = keys_max - left / SWEEP_SCANS_PER_KEY;
    return r;
}
