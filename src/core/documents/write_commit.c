/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Committing what a transaction wrote. Its records get the timestamp of the commit, its changes of counts are folded into
 * the counters as they are now, and everything else moves into the batch as it is.
 */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/prefetch.h"
#include "core/documents/write.h"
#include "core/feed/feed.h"
#include "core/step/unit.h"
#include "core/tree/empty_paths.h"
#include "core/tree/tree_write.h"

struct committing {
    struct core *core;
    uint64_t changes;
    bool shared;       /* a reader has the overlay still: its bytes must stay as they are */
    struct buf record; /* scratch */
    int r;
    uint32_t index; /* of the key seen last; 0: none */
    bool exists;
};

/* Whether the index that a key begins with still exists; what was written to a deleted one is dropped. */
static bool index_exists(struct committing *work, struct slice key)
{
    uint32_t index = 0;

    slice_take_u32be(&key, &index);
    if (index != work->index) {
        work->index = index;
        work->exists = catalog_index_by_number(work->core->catalog, index) != NULL;
    }
    return work->exists;
}

/* Stamps a record and puts it: where it lies, which is the transaction's own memory, or a copy. */
static void put_stamped(struct committing *work, struct slice key, struct slice record)
{
    struct core *core = work->core;

    if (!work->shared) {
        doc_set_ts((char *)(uintptr_t)record.data, core->ts);
        store_batch_put_nocopy(core->batch, SPACE_DOCUMENTS, key, record);
        return;
    }
    buf_clear(&work->record);
    buf_slice(&work->record, record);
    doc_set_ts(work->record.data, core->ts);
    store_batch_put(core->batch, SPACE_DOCUMENTS, key, buf_as_slice(&work->record));
}

/* Counts a document of the index at hand, and tells the feed. */
static void note(const struct committing *work, struct slice key, struct slice record)
{
    const struct catalog_index *index = catalog_index_by_number(work->core->catalog, work->index);
    struct doc doc;

    if (doc_decode(record, &doc) != 0)
        return;
    catalog_index_count_stat(index, doc.deleted ? INDEX_STAT_DELETED : INDEX_STAT_INDEXED, 1);
    feed__record_document(work->core, doc.deleted, key, map_get(&work->core->pending, key) != NULL);
}

static void commit_document(void *context, struct slice key, struct slice value)
{
    struct committing *work = context;

    if (!index_exists(work, key))
        return;
    INSIST(value.data != NULL); /* a delete is a tombstone */
    note(work, key, value);
    put_stamped(work, key, value);
    recent_writes_record(&work->core->recent_writes, key, work->core->ts);
    work->changes++;
}

static void commit_entry(void *context, struct slice key, struct slice value)
{
    struct committing *work = context;

    if (!index_exists(work, key))
        return;
    if (value.data == NULL)
        store_batch_delete(work->core->batch, SPACE_ENTRIES, key);
    else
        store_batch_put_nocopy(work->core->batch, SPACE_ENTRIES, key, value);
}

static void commit_tree(void *context, struct slice key, struct slice value)
{
    struct committing *work = context;

    if (index_exists(work, key))
        tree_commit(work->core->batch, key, value, work->core->ts);
}

/* A rename of the transaction's, as do_rename.c has left it. */
static void commit_rename(void *context, struct slice key, struct slice value)
{
    struct committing *work = context;
    struct feed_change change;

    (void)key;
    if (!feed_change_take(&value, &change))
        work->r = tl_trace(TL_ERR_CORRUPT);
    else if (catalog_index_by_number(work->core->catalog, change.index) != NULL)
        feed__record_change(work->core, &change, false);
    else
        return;
    work->changes++;
}

static void commit_count(struct committing *work, uint32_t index, uint16_t type, struct slice value)
{
    struct counters *counters = &work->core->counters;
    uint64_t delta;

    if (catalog_index_by_number(work->core->catalog, index) == NULL)
        return; /* deleted meanwhile */
    if (!slice_take_u64be(&value, &delta))
        work->r = tl_trace(TL_ERR_CORRUPT);
    else
        counter__add(counters, counters__of(counters, index), type, (int64_t)delta);
}

static void commit_mark(struct committing *work, struct slice key, struct slice value, struct slice document)
{
    int r = value.data != NULL && !index_exists(work, document) ? 0 : ephemeral__commit(work->core, key, value);

    if (r < 0)
        work->r = tl_trace(r);
}

static void commit_system(void *context, struct slice key, struct slice value)
{
    struct committing *work = context;
    struct slice session, document;
    uint32_t index;
    uint16_t type;

    if (counter_key_parse(key, &index, &type))
        commit_count(work, index, type, value);
    else if (ephemeral__parse(key, &session, &document))
        commit_mark(work, key, value, document);
    else if (value.data == NULL)
        store_batch_delete(work->core->batch, SPACE_SYSTEM, key);
    else
        store_batch_put(work->core->batch, SPACE_SYSTEM, key, value);
}

int write__commit_overlay(struct core *core, struct overlay *overlay, uint64_t *ret_changes)
{
    struct committing work = {.core = core, .shared = overlay_is_shared(overlay), .record = BUF_INIT(BUF_UNLIMITED)};

    overlay_each(overlay, SPACE_FEED, commit_rename, &work);
    overlay_each(overlay, SPACE_DOCUMENTS, commit_document, &work);
    overlay_each(overlay, SPACE_ENTRIES, commit_entry, &work);
    overlay_each(overlay, SPACE_TREE, commit_tree, &work);
    overlay_each(overlay, SPACE_SYSTEM, commit_system, &work);
    if (overlay_count_in(overlay, SPACE_TREE) > 0 || overlay_count_in(overlay, SPACE_DOCUMENTS) > 0)
        empty_paths_clear(&core->empty_paths);
    if (overlay_count_in(overlay, SPACE_TREE) > 0)
        recent_writes_invalidate_all(&core->recent_writes, core->ts);
    buf_deinit(&work.record);
    *ret_changes = work.changes;
    return work.r;
}

uint64_t write__overlay_changes(const struct overlay *overlay)
{
    return overlay_count_in(overlay, SPACE_DOCUMENTS) + overlay_count_in(overlay, SPACE_FEED);
}
