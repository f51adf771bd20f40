/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits a transaction's changes. Its records get the timestamp of the commit, its count changes
 * are added to the current counters, and everything else is moved to the batch unchanged.
 */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/counter.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/prefetch.h"
#include "core/documents/write.h"
#include "core/feed/feed.h"
#include "core/unit/unit.h"
#include "core/tree/empty_paths.h"
#include "core/tree/tree_write.h"

struct commit_state {
    struct core *core;
    uint64_t changes;
    bool keeps_paths; /* known paths stay known, except those of the documents */
    int r;
    uint32_t index; /* of the key before; 0: none */
    bool exists;
};

/* Whether the key's index still exists. Changes of deleted indices are dropped. */
static bool index_exists(struct commit_state *state, struct slice key)
{
    uint32_t index = 0;

    slice_take_u32be(&key, &index);
    if (index != state->index) {
        state->index = index;
        state->exists = catalog_index_by_number(state->core->catalog, index) != NULL;
    }
    return state->exists;
}

/*
 * Removes the known paths that a document makes non-empty. Its path is the one in its source: the
 * transaction has renamed nothing, and its locks keep others from a rename above.
 */
static void invalidate_path(const struct commit_state *state, const struct doc *doc)
{
    struct slice path = slice_make(doc->source.data + doc->path_offset, doc->path_len);

    if (!state->keeps_paths || doc->deleted || !doc->path_tracked)
        return;
    if (slice_find_byte(path, '\\') < path.len)
        empty_paths_clear(&state->core->empty_paths); /* it has escapes */
    else
        empty_paths_invalidate(&state->core->empty_paths, state->index, path);
}

/* Counts a document of the current index, and records its change in the feed. */
static void record_change(const struct commit_state *state, struct slice key, struct slice record)
{
    const struct catalog_index *index = catalog_index_by_number(state->core->catalog, state->index);
    struct doc doc;

    INSIST(index != NULL); /* changes of deleted indices are dropped before */
    if (doc_decode(record, &doc) != 0)
        return;
    invalidate_path(state, &doc);
    if (doc.routing.data != NULL)
        catalog_change__note_routing(state->core, state->index);
    catalog_index_count_stat(index, doc.deleted ? INDEX_STAT_DELETED : INDEX_STAT_INDEXED, 1);
    feed__record_document(state->core, doc.deleted, key, map_get(&state->core->pending, key) != NULL);
}

static void commit_document(void *context, struct slice key, struct slice value)
{
    struct commit_state *state = context;

    if (!index_exists(state, key))
        return;
    INSIST(value.data != NULL); /* a deletion is a tombstone record */
    record_change(state, key, value);
    /* Readers may have a snapshot: the record's memory is not modified. */
    store_batch_put_stamped(state->core->batch, SPACE_DOCUMENTS, key, value);
    recent_writes_record(&state->core->recent_writes, key, state->core->ts);
    state->changes++;
}

static void commit_entry(void *context, struct slice key, struct slice value)
{
    struct commit_state *state = context;

    if (!index_exists(state, key))
        return;
    if (value.data == NULL)
        store_batch_delete(state->core->batch, SPACE_ENTRIES, key);
    else
        store_batch_put_nocopy(state->core->batch, SPACE_ENTRIES, key, value);
    state->core->entry_changes++;
}

static void commit_tree(void *context, struct slice key, struct slice value)
{
    struct commit_state *state = context;

    if (index_exists(state, key))
        tree_commit(state->core->batch, key, value, state->core->ts);
}

/* A rename of the transaction, encoded by do_rename.c. */
static void commit_rename(void *context, struct slice key, struct slice value)
{
    struct commit_state *state = context;
    struct feed_change change;

    (void)key;
    if (!feed_change_take(&value, &change))
        state->r = tl_trace(TL_ERR_CORRUPT);
    else if (catalog_index_by_number(state->core->catalog, change.index) != NULL)
        feed__record_change(state->core, &change, false);
    else
        return;
    state->changes++;
}

static void commit_count(struct commit_state *state, uint32_t index, uint16_t type, struct slice value)
{
    struct counters *counters = &state->core->counters;
    uint64_t delta;

    if (catalog_index_by_number(state->core->catalog, index) == NULL)
        return; /* was deleted meanwhile */
    if (!slice_take_u64be(&value, &delta))
        state->r = tl_trace(TL_ERR_CORRUPT);
    else
        counter__add(counters, counters__of(counters, index), type, (int64_t)delta);
}

static void commit_ephemeral(struct commit_state *state, struct slice key, struct slice value, struct slice document)
{
    int r = value.data != NULL && !index_exists(state, document) ? 0 : ephemeral__commit(state->core, key, value);

    if (r < 0)
        state->r = tl_trace(r);
}

static void commit_system(void *context, struct slice key, struct slice value)
{
    struct commit_state *state = context;
    struct slice session, document;
    uint32_t index;
    uint16_t type;

    if (counter_key_parse(key, &index, &type))
        commit_count(state, index, type, value);
    else if (ephemeral__parse(key, &session, &document))
        commit_ephemeral(state, key, value, document);
    else if (value.data == NULL)
        store_batch_delete(state->core->batch, SPACE_SYSTEM, key);
    else
        store_batch_put(state->core->batch, SPACE_SYSTEM, key, value);
}

/* Documents of a commit above which all known paths are removed, rather than those of each. */
enum { PATHS_MAX = 1000 };

int write__commit_overlay(struct core *core, struct overlay *overlay, uint64_t *ret_changes)
{
    REQUIRE(core->open && overlay != NULL);
    struct commit_state state = {.core = core};

    state.keeps_paths =
        overlay_count_in(overlay, SPACE_TREE) == 0 && overlay_count_in(overlay, SPACE_DOCUMENTS) <= PATHS_MAX;
    if (!state.keeps_paths)
        empty_paths_clear(&core->empty_paths);

    overlay_each(overlay, SPACE_FEED, commit_rename, &state);
    overlay_each(overlay, SPACE_DOCUMENTS, commit_document, &state);
    overlay_each(overlay, SPACE_ENTRIES, commit_entry, &state);
    overlay_each(overlay, SPACE_TREE, commit_tree, &state);
    overlay_each(overlay, SPACE_SYSTEM, commit_system, &state);
    if (overlay_count_in(overlay, SPACE_TREE) > 0)
        recent_writes_invalidate_all(&core->recent_writes, core->ts);
    *ret_changes = state.changes;
    return state.r;
}

uint64_t write__overlay_changes(const struct overlay *overlay)
{
    REQUIRE(overlay != NULL);
    return overlay_count_in(overlay, SPACE_DOCUMENTS) + overlay_count_in(overlay, SPACE_FEED);
}
