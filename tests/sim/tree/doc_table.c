/* SPDX-License-Identifier: Apache-2.0 */
/* A document table on the core's path tree; see doc_table.h. */
#include "doc_table.h"

#include "base/check.h"

enum { INDEX = 7, KEY_BYTES = 4 };

static void must(int r)
{
    INSIST(r == 0);
}

struct tree doc_table_tree(const struct doc_table *table, const struct view *view)
{
    return (struct tree){.view = view, .index = INDEX, .delimiter = '/', .pending = &table->pending};
}

struct tree_writer doc_table_writer(struct doc_table *table, const struct view *view, struct overlay *overlay, tl_ts ts)
{
    return (struct tree_writer){.tree = doc_table_tree(table, view),
                                .overlay = overlay,
                                .batch = table->batch,
                                .pending = &table->pending,
                                .ts = ts,
                                .origins_created = &table->made};
}

static void put(struct doc_table *table, struct overlay *overlay, enum store_space space, struct slice key,
                struct slice value)
{
    if (overlay != NULL)
        overlay_put(overlay, space, key, value);
    else
        store_batch_put(table->batch, space, key, value);
}

static void drop(struct doc_table *table, struct overlay *overlay, enum store_space space, struct slice key)
{
    if (overlay != NULL)
        overlay_delete(overlay, space, key);
    else
        store_batch_delete(table->batch, space, key);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* ts · live · version · seq_no · rename base · length of the origin · origin · source path. */
static void encode(struct buf *buf, const struct stored_doc *doc)
{
    buf_u64be(buf, doc->ts);
    buf_byte(buf, doc->live);
    buf_u64be(buf, (uint64_t)doc->version);
    buf_u64be(buf, (uint64_t)doc->seq_no);
    buf_u64be(buf, (uint64_t)doc->rename_base);
    buf_u64be(buf, doc->origin.len);
    buf_slice(buf, doc->origin);
    buf_slice(buf, doc->path);
}

static int64_t take_number(struct slice *bytes)
{
    uint64_t value;

    INSIST(slice_take_u64be(bytes, &value));
    return (int64_t)value;
}

static bool take_bool(struct slice *bytes)
{
    struct slice byte;

    INSIST(slice_take(bytes, 1, &byte));
    return byte.data[0] != 0;
}

static struct stored_doc decode(struct slice value)
{
    struct stored_doc doc = {0};

    doc.ts = (tl_ts)take_number(&value);
    doc.live = take_bool(&value);
    doc.version = take_number(&value);
    doc.seq_no = take_number(&value);
    doc.rename_base = take_number(&value);
    size_t len = (size_t)take_number(&value);
    INSIST(slice_take(&value, len, &doc.origin));
    doc.path = value;
    return doc;
}

/* --- Reads -------------------------------------------------------------------------------------------------------- */

static struct slice doc_key_of(char *bytes, uint32_t id)
{
    for (int i = 0; i < KEY_BYTES; i++)
        bytes[i] = (char)(id >> (24 - 8 * i));
    return slice_make(bytes, KEY_BYTES);
}

/* Reads a document as stored; all zero if it was never written. */
static struct stored_doc read_stored(struct doc_table *table, const struct view *view, uint32_t id)
{
    char key[KEY_BYTES];
    struct store_value value;
    int r = view_get(view, SPACE_DOCUMENTS, doc_key_of(key, id), &value);

    if (r == STORE_NOT_FOUND)
        return (struct stored_doc){0};
    must(r);
    struct stored_doc doc = decode(arena_copy(&table->arena, value.bytes));
    store_value_release(&value);
    return doc;
}

struct stored_doc doc_table_get(struct doc_table *table, const struct view *view, uint32_t id)
{
    struct tree tree = doc_table_tree(table, view);
    struct stored_doc doc = read_stored(table, view, id);
    struct tree_totals totals;
    struct slice path;
    tl_ts last_rename;

    if (!doc.live)
        return doc;
    must(tree_last_rename(&tree, &last_rename, NULL));
    must(tree_locate(&tree, doc.origin, &table->arena, &path, &totals));
    if (doc.ts > last_rename) /* newer than the last rename: current as stored */
        INSIST(slice_equal(path, doc.path) && totals.renames == doc.rename_base && totals.seq_no < doc.seq_no);
    doc.path = path;
    doc.version += totals.renames - doc.rename_base;
    if (totals.seq_no > doc.seq_no)
        doc.seq_no = totals.seq_no;
    return doc;
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/* origin · 0 · id. */
static void entry_key(struct buf *buf, struct slice origin, uint32_t id)
{
    buf_clear(buf);
    buf_slice(buf, origin);
    buf_byte(buf, '\0');
    buf_u32be(buf, id);
}

struct searching {
    struct doc_table *table;
    const struct view *view;
    struct slice path; /* data NULL: below the absolute root */
    bool below;
    bool *found; /* NULL: stop at the first hit */
    bool any;
};

static bool is_hit(struct searching *search, uint32_t id)
{
    struct stored_doc doc = doc_table_get(search->table, search->view, id);
    size_t len = search->path.len;

    if (!doc.live || search->path.data == NULL)
        return doc.live && doc.path.len > 0 && doc.path.data[0] == '/';
    if (!slice_starts_with(doc.path, search->path))
        return false;
    return doc.path.len == len || (search->below && doc.path.data[len] == '/');
}

static int search_entries(struct searching *search, struct slice origin, char next)
{
    tl_cleanup(buf_deinit) struct buf prefix = BUF_INIT(BUF_UNLIMITED);
    struct view_iter *iter;
    int r = 0;

    buf_slice(&prefix, origin);
    buf_byte(&prefix, next);
    iter = view_iter_new(search->view, SPACE_ENTRIES, buf_as_slice(&prefix), SLICE_NONE);
    for (view_iter_seek_first(iter); r == 0 && view_iter_valid(iter); view_iter_next(iter)) {
        struct slice key = view_iter_key(iter), id_bytes = slice_from_offset(key, key.len - KEY_BYTES);
        uint32_t id;
        if (!slice_starts_with(key, buf_as_slice(&prefix)))
            break;
        INSIST(slice_take_u32be(&id_bytes, &id));
        if (!is_hit(search, id))
            continue;
        search->any = true;
        if (search->found != NULL)
            search->found[id] = true;
        else
            r = 1;
    }
    view_iter_free(iter);
    return r;
}

static int search_below(void *context, struct slice origin)
{
    int r = search_entries(context, origin, '\0');

    return r == 0 ? search_entries(context, origin, '/') : r;
}

static void run_search(struct searching *search)
{
    struct tree tree = doc_table_tree(search->table, search->view);
    struct arena *arena = &search->table->arena;
    struct slice origin = SLICE_LIT("");
    int r = search->path.data == NULL ? 0 : tree_resolve(&tree, search->path, arena, &origin);

    if (r == TREE_NOT_FOUND)
        return;
    must(r);
    origin = arena_copy(arena, origin);
    r = search_entries(search, origin, '\0');
    if (r == 0 && search->below)
        r = search_entries(search, origin, '/');
    if (r == 0 && search->below)
        r = tree_each_relocated(&tree, tree__join(arena, origin, SLICE_LIT("/")), search_below, search);
    INSIST(r == 0 || (r == 1 && search->found == NULL));
}

void doc_table_search(struct doc_table *table, const struct view *view, struct slice path, bool below, bool *ret_found,
                      size_t count)
{
    struct searching search = {table, view, path, below, ret_found, false};

    memset(ret_found, 0, count * sizeof *ret_found);
    run_search(&search);
}

bool doc_table_exists(struct doc_table *table, const struct view *view, struct slice path)
{
    struct searching search = {table, view, path, true, NULL, false};

    run_search(&search);
    return search.any;
}

/* --- Writes ------------------------------------------------------------------------------------------------------- */

void doc_table_put(struct doc_table *table, const struct view *view, struct overlay *overlay, uint32_t id,
                   struct slice path, int64_t seq_no, tl_ts ts)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct stored_doc stored = read_stored(table, view, id), old = doc_table_get(table, view, id);
    struct stored_doc doc = {
        .live = path.data != NULL, .ts = ts, .version = old.version + 1, .seq_no = seq_no, .path = path};
    char key[KEY_BYTES];

    if (stored.live) {
        entry_key(&buf, stored.origin, id);
        drop(table, overlay, SPACE_ENTRIES, buf_as_slice(&buf));
    }
    if (doc.live) {
        struct tree_writer writer = doc_table_writer(table, view, overlay, ts);
        must(tree_resolve_or_create(&writer, path, &table->arena, &doc.origin, &doc.rename_base));
        entry_key(&buf, doc.origin, id);
        put(table, overlay, SPACE_ENTRIES, buf_as_slice(&buf), SLICE_LIT(""));
    }
    buf_clear(&buf);
    encode(&buf, &doc);
    put(table, overlay, SPACE_DOCUMENTS, doc_key_of(key, id), buf_as_slice(&buf));
}

/* --- Commit ------------------------------------------------------------------------------------------------------- */

struct committing {
    struct doc_table *table;
    tl_ts ts;
};

static void commit_doc(void *context, struct slice key, struct slice value)
{
    struct committing *state = context;
    tl_cleanup(buf_deinit) struct buf stamped = BUF_INIT(BUF_UNLIMITED);

    buf_u64be(&stamped, state->ts);
    buf_slice(&stamped, slice_from_offset(value, sizeof(uint64_t)));
    store_batch_put(state->table->batch, SPACE_DOCUMENTS, key, buf_as_slice(&stamped));
}

static void commit_entry(void *context, struct slice key, struct slice value)
{
    struct committing *state = context;

    if (value.data == NULL)
        store_batch_delete(state->table->batch, SPACE_ENTRIES, key);
    else
        store_batch_put(state->table->batch, SPACE_ENTRIES, key, value);
}

static void commit_record(void *context, struct slice key, struct slice value)
{
    struct committing *state = context;

    tree_commit(state->table->batch, key, value, state->ts);
}

void doc_table_commit(struct doc_table *table, const struct overlay *overlay, tl_ts ts)
{
    struct committing state = {table, ts};

    overlay_each(overlay, SPACE_DOCUMENTS, commit_doc, &state);
    overlay_each(overlay, SPACE_ENTRIES, commit_entry, &state);
    overlay_each(overlay, SPACE_TREE, commit_record, &state);
}
