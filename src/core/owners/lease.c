/* SPDX-License-Identifier: Apache-2.0 */
/* Ephemeral documents: marks that say which live with which session, and their end. */
#include <stdlib.h>

#include "core/documents/write_internal.h"

static struct slice lease_key(struct buf *buf, struct slice session, struct slice key)
{
    buf_byte(buf, 'e');
    buf_varint(buf, session.len);
    buf_slice(buf, session);
    buf_slice(buf, key);
    return buf_view(buf);
}

void lease__mark(const struct change_sink *sink, struct slice session, struct slice key)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    sink_put(sink, SPACE_SYSTEM, lease_key(&buf, session, key), SLICE_LIT(""));
    buf_deinit(&buf);
}

void lease__unmark(const struct change_sink *sink, struct slice session, struct slice key)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    sink_delete(sink, SPACE_SYSTEM, lease_key(&buf, session, key));
    buf_deinit(&buf);
}

/* The keys of a session's ephemeral documents, in the core's arena; those that the unit has just written as well. */
struct marked {
    struct slice *keys;
    size_t count;
    size_t capacity;
};

static void add(struct marked *marked, struct arena *arena, struct slice key)
{
    marked->keys = arena_grow(arena, marked->keys, marked->count, &marked->capacity, sizeof(*marked->keys));
    marked->keys[marked->count++] = arena_copy(arena, key);
}

static int find_marked(struct core *core, struct slice session, struct marked *marked)
{
    struct buf lower = BUF_INIT(BUF_UNLIMITED), upper = BUF_INIT(BUF_UNLIMITED);
    struct slice from = lease_key(&lower, session, SLICE_LIT(""));
    int r;

    lease_key(&upper, session, SLICE_LIT("\xff\xff\xff\xff\xff\xff\xff"));
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, from, buf_view(&upper));
    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter))
        add(marked, &core->arena, slice_from_offset(store_iter_key(iter), from.len));
    r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&lower);
    buf_deinit(&upper);
    return r;
}

static int compare_keys(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* What the unit has just written, but for what was marked before; all in order of key. */
static void find_pending(struct core *core, struct slice session, struct marked *marked)
{
    struct map known = MAP_INIT;
    size_t position = 0;
    struct slice key;
    void *value;

    if (core->pending.count == 0)
        return;
    for (size_t i = 0; i < marked->count; i++)
        map_put(&known, marked->keys[i], marked);
    while (map_next(&core->pending, &position, &key, &value)) {
        const struct doc *doc = value;
        if (!doc->deleted && doc->lease.data != NULL && slice_equal(doc->lease, session) &&
            map_get(&known, key) == NULL)
            add(marked, &core->arena, key);
    }
    map_deinit(&known);
    if (marked->count > 1)
        qsort(marked->keys, marked->count, sizeof(*marked->keys), compare_keys);
}

/* What is to be deleted, as items of a write. */
struct ending {
    struct write_item *items;
    size_t count;
};

/* The document of a key as the unit sees it. Returns: 0; DOC_NOT_FOUND; fatal codes. */
static int look(struct core *core, struct slice key, struct doc *ret_doc)
{
    const struct doc *pending = map_get(&core->pending, key);
    struct view view = core__view(core, NULL);
    uint32_t index;
    uint16_t type;
    struct slice id;

    if (!doc_key_parse(key, &index, &type, &id))
        return tl_trace(TL_ERR_CORRUPT);
    if (pending == NULL)
        return doc_get(&view, index, type, id, ret_doc);
    *ret_doc = *pending;
    return pending->deleted ? DOC_NOT_FOUND : 0;
}

/* The item that deletes a document; it names the document's own routing, as whoever deletes it must. */
static void add_item(struct core *core, const struct catalog_index *index, const struct mapping_type *type,
                     struct slice id, struct slice routing, struct ending *ending)
{
    ending->items[ending->count++] = (struct write_item){
        .op = WRITE_DELETE,
        .index = arena_copy(&core->arena, index->name),
        .type = arena_copy(&core->arena, type->name),
        .id = id,
        .routing = arena_copy(&core->arena, routing),
        .version = VERSION_ANY,
        .if_seq_no = SEQ_NO_ANY,
    };
}

/* Adds a marked document, unless it is gone, lives with another session by now, or is spared. */
static int add_marked(struct core *core, struct slice session, struct slice key, write_spare *spare, void *context,
                      struct ending *ending)
{
    uint32_t number;
    uint16_t type_number;
    struct slice id;
    struct doc doc;
    int r = look(core, key, &doc);

    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    doc_key_parse(key, &number, &type_number, &id);
    const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
    const struct mapping_type *type = index == NULL ? NULL : mapping_type_by_number(index->mapping, type_number);
    if (type != NULL && !index->closed && slice_equal(doc.lease, session) &&
        (spare == NULL || !spare(context, number, type_number, id)))
        add_item(core, index, type, id, doc.routing, ending);
    doc_release(&doc);
    return 0;
}

int write__end_lease(struct core *core, struct slice session, write_spare *spare, void *context)
{
    struct marked marked = {0};
    struct ending ending = {0};
    bool failed;
    int r = find_marked(core, session, &marked);

    if (r != 0)
        return tl_trace(r);
    find_pending(core, session, &marked);
    if (marked.count == 0)
        return 0;
    ending.items = arena_zalloc(&core->arena, marked.count * sizeof(*ending.items));
    for (size_t i = 0; i < marked.count && r == 0; i++)
        r = add_marked(core, session, marked.keys[i], spare, context, &ending);
    if (r != 0)
        return tl_trace(r);
    struct write_run run = {.dialect = DIALECT_5, .items = ending.items, .count = ending.count, .arena = &core->arena};
    run.results = arena_zalloc(&core->arena, (ending.count + 1) * sizeof(*run.results));
    return write__run(core, &run, &failed);
}

/* The keys of one session follow each other; the sessions follow by length and bytes of their ids. */
int lease__next(struct core *core, struct slice after, struct arena *arena, struct slice *ret_session)
{
    struct buf from = BUF_INIT(BUF_UNLIMITED);
    struct slice key, session;
    uint64_t len;
    int r = STORE_NOT_FOUND;

    buf_byte(&from, 'e');
    if (after.len > 0) {
        buf_clear(&from);
        lease_key(&from, after, SLICE_LIT("\xff\xff\xff\xff\xff\xff\xff"));
    }
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, buf_view(&from), SLICE_LIT("f"));
    store_iter_seek_first(iter);
    if (store_iter_valid(iter)) {
        key = slice_from_offset(store_iter_key(iter), 1);
        r = slice_take_varint(&key, &len) && slice_take(&key, (size_t)len, &session) ? 0 : tl_trace(TL_ERR_CORRUPT);
        if (r == 0)
            *ret_session = arena_copy(arena, session);
    }
    int status = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&from);
    return status != 0 ? status : r;
}

int lease__count(struct core *core, struct slice session, size_t *ret_count)
{
    struct marked marked = {0};
    int r = find_marked(core, session, &marked);

    *ret_count = marked.count;
    return r;
}
