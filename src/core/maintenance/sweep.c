/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeping stale chunks out of an index; see sweep.h. */
#include "core/maintenance/sweep.h"

#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/documents/doc.h"
#include "core/step/command.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "mapping/entry.h"

/* Of batches that are remembered. With more, bulks are so small that their chunks are hardly worth it, and none is removed. */
#define SWEEP_BATCHES_MAX 200000
/* Of a batch: the timestamp of the command that wrote it; above it is a count of the command's batches (write.c). */
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

static void end(struct sweep *sweep)
{
    sweep_deinit(sweep);
    sweep_init(sweep);
}

/* One step of a walk over the keys of a range. */
struct walking {
    struct core *core;
    struct command *command; /* which is proposed */
    size_t stale_capacity;
    enum store_space space;
    struct slice lower, upper;
    int (*look)(struct walking *walking, struct slice key, struct slice value); /* 1: it has proposed the key */
    size_t left; /* of looks; a key proposed counts for SWEEP_SCANS_PER_KEY */
};

/* --- Batches ------------------------------------------------------------------------------------------------------ */

static struct slice batch_key(const uint64_t *batch)
{
    return slice_make(batch, sizeof(*batch));
}

/* Remembers the batch that a document names. Returns: 0; TL_ERR_CORRUPT. */
static int look_at_document(struct walking *walking, struct slice key, struct slice record)
{
    struct sweep *sweep = &walking->core->sweep;
    struct doc doc;

    (void)key;
    if (doc_decode(record, &doc) < 0)
        return tl_trace(TL_ERR_CORRUPT);
    if (doc.deleted || doc.batch == 0 || doc.batch == sweep->last_batch)
        return 0;
    sweep->last_batch = doc.batch;
    map_put(&sweep->batches, batch_key(&doc.batch), sweep);
    return 0;
}

/* Proposes an entry that is a stale chunk. Returns: 0, or 1 where it was one. */
static int look_at_entry(struct walking *walking, struct slice key, struct slice value)
{
    struct sweep *sweep = &walking->core->sweep;
    struct maintain_command *maintain = &walking->command->maintain;
    uint64_t batch;

    (void)value;
    if (!entry_is_chunk(key, &batch) || (batch & BATCH_TS_MASK) >= sweep->horizon ||
        map_get(&sweep->batches, batch_key(&batch)) != NULL)
        return 0;
    maintain->stale = arena_grow(&walking->command->arena, maintain->stale, maintain->stale_count,
                                 &walking->stale_capacity, sizeof(*maintain->stale));
    maintain->stale[maintain->stale_count++] = arena_copy(&walking->command->arena, key);
    return 1;
}

/* --- Walks -------------------------------------------------------------------------------------------------------- */

/* Goes on from the position on. Returns: 0; 1 at the end of the range; fatal codes. */
static int walk(struct walking *walking)
{
    struct core *core = walking->core;
    struct sweep *sweep = &core->sweep;
    struct slice from = sweep->position.len > 0 ? buf_as_slice(&sweep->position) : walking->lower;
    struct store_iter *iter = store_iter_new(core->store, walking->space, TL_TS_MAX, from, walking->upper);
    int r = 0;

    store_iter_seek_first(iter);
    for (; r == 0 && walking->left > 0 && store_iter_valid(iter); store_iter_next(iter)) {
        r = walking->look(walking, store_iter_key(iter), store_iter_value(iter));
        size_t cost = r > 0 ? SWEEP_SCANS_PER_KEY : 1;
        walking->left -= cost < walking->left ? cost : walking->left;
        r = r > 0 ? 0 : r;
    }
    bool over = !store_iter_valid(iter);
    if (r == 0 && over)
        r = store_iter_status(iter);
    buf_clear(&sweep->position);
    if (!over)
        buf_slice(&sweep->position, store_iter_key(iter));
    store_iter_free(iter);
    return r != 0 ? r : over;
}

static int walk_documents(struct core *core, size_t *left)
{
    struct sweep *sweep = &core->sweep;
    char lower[DOC_KEY_PREFIX_BYTES], upper[DOC_KEY_PREFIX_BYTES];
    struct walking walking = {.core = core,
                              .space = SPACE_DOCUMENTS,
                              .lower = doc_key(lower, sweep->index, 0, SLICE_LIT("")),
                              .upper = doc_key(upper, sweep->index + 1, 0, SLICE_LIT("")),
                              .look = look_at_document,
                              .left = *left};
    int r = walk(&walking);

    *left = walking.left;
    sweep->batches_known = r == 1;
    if (r >= 0 && sweep->batches.count > SWEEP_BATCHES_MAX)
        end(sweep);
    return r < 0 ? tl_trace(r) : 0;
}

static int walk_entries(struct core *core, struct command *command, size_t *left)
{
    char lower[4], upper[4];

    entry_index_bounds(core->sweep.index, lower, upper);
    struct walking walking = {.core = core,
                              .command = command,
                              .space = SPACE_ENTRIES,
                              .lower = slice_make(lower, sizeof(lower)),
                              .upper = slice_make(upper, sizeof(upper)),
                              .look = look_at_entry,
                              .left = *left};
    int r = walk(&walking);

    *left = walking.left;
    if (r == 1)
        end(&core->sweep);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- What is due -------------------------------------------------------------------------------------------------- */

static bool is_due(const struct core *core, const struct counter *counter)
{
    return counter->posting_list_documents > core->limits.stale_documents_min &&
           counter->posting_list_documents - core->limits.stale_documents_min > counter__documents(counter);
}

/* Begins with the first index that is due, if any is. */
static void begin(struct core *core)
{
    tl_ts oldest = owners__oldest_update(core);

    for (size_t i = 0; i < catalog_index_count(core->catalog) && core->sweep.index == 0; i++) {
        uint32_t number = catalog_index_at(core->catalog, i)->number;
        struct counter *counter = counters__of(&core->counters, number);
        if (!is_due(core, counter))
            continue;
        counter->posting_list_documents = 0;
        core->sweep.index = number;
        core->sweep.horizon = oldest <= core->last_ts ? oldest : core->last_ts + 1;
    }
}

int sweep__continue(struct core *core, size_t keys_max, struct command *command)
{
    struct sweep *sweep = &core->sweep;
    size_t left = keys_max * SWEEP_SCANS_PER_KEY;
    int r = 0;

    if (sweep->index != 0 && catalog_index_by_number(core->catalog, sweep->index) == NULL)
        end(sweep); /* its entries go with it */
    if (sweep->index == 0)
        begin(core);
    if (sweep->index != 0 && !sweep->batches_known)
        r = walk_documents(core, &left);
    if (r == 0 && sweep->index != 0 && sweep->batches_known && left > 0)
        r = walk_entries(core, command, &left);
    command->maintain.scanned = keys_max - left / SWEEP_SCANS_PER_KEY;
    return r;
}
