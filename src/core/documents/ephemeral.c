/* SPDX-License-Identifier: Apache-2.0 */
/* Ephemeral documents: their index by session, and their deletion. */
#include "core/documents/ephemeral.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/documents/doc.h"
#include "core/documents/document_owners.h"
#include "core/documents/session_tombstone.h"
#include "core/feed/feed.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/document.h"
#include "mapping/mapping.h"

static struct slice index_key(struct buf *buf, struct slice session, struct slice key)
{
    buf_byte(buf, 'e');
    buf_varint(buf, session.len);
    buf_slice(buf, session);
    buf_slice(buf, key);
    return buf_as_slice(buf);
}

/* Encodes a key above all index keys of a session. */
static struct slice index_key_end(struct buf *buf, struct slice session)
{
    return index_key(buf, session, SLICE_LIT("\xff\xff\xff\xff\xff\xff\xff"));
}

bool ephemeral__parse(struct slice key, struct slice *ret_session, struct slice *ret_document)
{
    uint64_t len;

    if (key.len == 0 || key.data[0] != 'e')
        return false;
    *ret_document = slice_from_offset(key, 1);
    return slice_take_varint(ret_document, &len) && slice_take(ret_document, (size_t)len, ret_session);
}

void ephemeral__add(struct core *core, const struct change_sink *sink, struct slice session, struct slice key)
{
    REQUIRE(core->open && session.len > 0);
    REQUIRE(sink->overlay != NULL || sink->batch == core->batch); /* else it is counted without the key */
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    sink_put(sink, SPACE_SYSTEM, index_key(&buf, session, key), SLICE_LIT(""));
    if (sink->overlay == NULL)
        core->document_owners->count(core, session, key, 1);
    buf_deinit(&buf);
}

void ephemeral__remove(struct core *core, const struct change_sink *sink, struct slice session, struct slice key)
{
    REQUIRE(core->open && session.len > 0);
    REQUIRE(sink->overlay != NULL || sink->batch == core->batch);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    sink_delete(sink, SPACE_SYSTEM, index_key(&buf, session, key));
    if (sink->overlay == NULL)
        core->document_owners->count(core, session, key, -1);
    buf_deinit(&buf);
}

/*
 * A transaction may add a key that exists, or remove one that does not. The session's count changes
 * by the difference between the store before and after.
 */
int ephemeral__commit(struct core *core, struct slice key, struct slice value)
{
    REQUIRE(core->open);
    struct slice session, document;
    struct store_value before;
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, key, &before);

    core__work(core, WORK_READ);
    if (r < 0 || !ephemeral__parse(key, &session, &document))
        return r < 0 ? tl_trace(r) : tl_trace(TL_ERR_CORRUPT);
    if (r == 0)
        store_value_release(&before);
    if (value.data == NULL)
        store_batch_delete(core->batch, SPACE_SYSTEM, key);
    else
        store_batch_put(core->batch, SPACE_SYSTEM, key, value);
    core->document_owners->count(core, session, document, (value.data != NULL) - (r == 0));
    return 0;
}

/* --- Walking the index -------------------------------------------------------------------------------------------- */

/* A walk over the index keys of a session, in order. */
struct session_walk {
    bool skips_deleted; /* the keys of deleted indices, which may be very many; MAINTAIN removes them */
    /*
     * Visits the key of a document, which is valid until it returns. Returns: 0, to continue; WALK_END;
     * fatal codes.
     */
    int (*visit)(void *context, struct slice key);
    void *context;
};
enum { WALK_END = 1 };

/* Moves on to the next index if that of the key is deleted. Returns: whether it has. */
static bool skip_deleted(struct core *core, struct store_iter *iter, struct slice prefix, struct slice key)
{
    tl_cleanup(buf_deinit) struct buf next = BUF_INIT(BUF_UNLIMITED);
    char bytes[DOC_KEY_PREFIX_BYTES];
    uint32_t index;

    if (!slice_take_u32be(&key, &index) || catalog_index_by_number(core->catalog, index) != NULL)
        return false;
    core__work(core, WORK_SCAN);
    INSIST(index < UINT32_MAX);
    buf_slice(&next, prefix);
    buf_slice(&next, doc_key(bytes, index + 1, 0, SLICE_LIT("")));
    store_iter_seek(iter, buf_as_slice(&next));
    return true;
}

/* Returns: 0; fatal codes. */
static int walk_session(struct core *core, struct slice session, const struct session_walk *walk)
{
    REQUIRE(session.len > 0); /* else it visits the keys of all sessions */
    struct buf lower = BUF_INIT(BUF_UNLIMITED), upper = BUF_INIT(BUF_UNLIMITED);
    struct slice from = index_key(&lower, session, SLICE_LIT(""));
    struct store_iter *iter =
        store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, from, index_key_end(&upper, session));
    int r = 0;

    store_iter_seek_first(iter);
    while (r == 0 && store_iter_valid(iter)) {
        struct slice key = slice_from_offset(store_iter_key(iter), from.len);
        if (walk->skips_deleted && skip_deleted(core, iter, from, key))
            continue;
        core__work(core, WORK_SCAN);
        r = walk->visit(walk->context, key);
        if (r == 0)
            store_iter_next(iter);
    }
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&lower);
    buf_deinit(&upper);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Work of a deletion ------------------------------------------------------------------------------------------- */

/* Returns: the work of a document's deletion without its writes. Follows from the state alone. */
static uint64_t work_to_read(const struct catalog_index *index, const struct doc *doc)
{
    uint64_t levels = doc_path_levels(doc, mapping_path_delimiter(index->mapping));

    return WORK_SCAN + WORK_ITEM + 2 * WORK_READ + doc->stored.len / WORK_BYTES + levels * WORK_LEVEL;
}

/* Counts the writes of a document's deletion: those of its records, and one for each single entry. */
static int count_writes(struct core *core, const struct catalog_index *index, const struct mapping_type *type,
                        const struct doc *doc, size_t *ret_count)
{
    enum { RECORDS = 4 }; /* the tombstone, its key in the purge queue, the index key, a counter */
    struct arena_mark mark = arena_mark(&core->scratch);
    struct document document;

    *ret_count = RECORDS;
    if (!doc_may_have_single_entries(doc))
        return 0;
    core__work_indivisible(core, doc->stored.len / WORK_BYTES);
    int r = document_parse_stored(index->mapping, type, doc->stored, &core->scratch, &document);
    if (r < 0)
        return tl_trace(r);
    *ret_count += document.value_count;
    document_release(&document);
    arena_rewind(&core->scratch, mark);
    return 0;
}

/* --- Deletion ----------------------------------------------------------------------------------------------------- */

/* Items of a write. */
struct deletions {
    struct write_item *items;
    size_t count;
};

/* The deletion of a session's documents. Those locked by other owners are deferred. */
struct purge_state {
    struct core *core;
    struct slice session;
    ephemeral_defer *defer;
    void *context;
    struct deletions visible; /* visible documents, not yet deleted */
    struct deletions hidden;  /* hidden by a session tombstone, to be purged */
    size_t removed;           /* visible documents deleted */
    size_t count;             /* visible, hidden and deferred documents; at most `max.count` */
    uint64_t work;            /* of these, counted if `max.work` is a limit */
    struct ephemeral_batch_max max;
    bool more; /* the session owns another document */
};

/* Reads a document as the unit has it. Returns: 0; DOC_NOT_FOUND; fatal codes. */
static int read_current(struct core *core, struct slice key, struct doc *ret_doc)
{
    const struct doc *pending = map_get(&core->pending, key);
    struct view view = core__view(core, NULL);
    uint32_t index;
    uint16_t type;
    struct slice id;

    if (!doc_key_parse(key, &index, &type, &id))
        return tl_trace(TL_ERR_CORRUPT);
    if (pending != NULL) {
        *ret_doc = *pending;
        return pending->deleted ? DOC_NOT_FOUND : 0;
    }
    int r = doc_get_any(&view, index, type, id, ret_doc);
    if (r != 0 || !ret_doc->deleted)
        return r;
    doc_release(ret_doc);
    return DOC_NOT_FOUND;
}

struct write_item write__removal_of(struct arena *arena, const struct catalog_index *index,
                                    const struct mapping_type *type, struct slice id, struct slice session,
                                    struct slice routing)
{
    REQUIRE(session.len > 0 && index != NULL && type != NULL);
    return (struct write_item){
        .op = WRITE_DELETE,
        .index = arena_copy(arena, index->name),
        .type = arena_copy(arena, type->name),
        .id = arena_copy(arena, id),
        .routing = arena_copy(arena, routing),
        .only_session = arena_copy(arena, session),
        .version = VERSION_ANY,
        .if_seq_no = SEQ_NO_ANY,
    };
}

static bool is_full(const struct purge_state *purge)
{
    return purge->count == purge->max.count || purge->work >= purge->max.work;
}

void ephemeral__keep_highest_version(const struct core *core, const struct doc *doc, struct write_item *removal)
{
    REQUIRE(removal->op == WRITE_DELETE);
    if (doc->version != INT64_MAX || core->command_version < COMMAND_SINCE_WORK_BATCHES)
        return;
    removal->version_type = VERSION_EXTERNAL_GTE;
    removal->version = INT64_MAX;
}

/*
 * Takes a document for deletion, or defers it. Returns: 0: the write will remove its index key; 1:
 * the caller must remove it; fatal codes.
 */
static int take_document(struct purge_state *purge, struct slice key, const struct doc *doc,
                         const struct catalog_index *index, const struct mapping_type *type, struct slice id)
{
    struct write_item item = write__removal_of(&purge->core->arena, index, type, id, purge->session, doc->routing);
    tl_ts hidden_ts = TL_TS_MAX;
    int r = map_get(&purge->core->pending, key) != NULL
                ? 0
                : session_tombstone_ts(purge->core->store, key, doc, &hidden_ts);

    if (r < 0)
        return tl_trace(r);
    bool hidden = hidden_ts != TL_TS_MAX;
    INSIST(purge->count < purge->max.count);
    purge->count++;
    purge->work += work_to_read(index, doc);
    ephemeral__keep_highest_version(purge->core, doc, &item);
    if (purge->defer(purge->context, &item, hidden))
        return 1;
    struct deletions *deletions = hidden ? &purge->hidden : &purge->visible;
    deletions->items[deletions->count++] = item;
    return 0;
}

/*
 * Handles one index key. The key is removed in every case: by the write if it deletes the document;
 * here if the index was deleted, the document belongs to another session now, or its deletion is
 * deferred.
 */
static int purge_one(struct purge_state *purge, struct slice key)
{
    struct core *core = purge->core;
    const struct change_sink sink = {core->batch, NULL};
    uint32_t number;
    uint16_t type_number;
    struct slice id;
    struct doc doc;
    int r = read_current(core, key, &doc);

    core__work(core, WORK_READ);
    if (r < 0)
        return tl_trace(r);
    doc_key_parse(key, &number, &type_number, &id);
    const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
    const struct mapping_type *type = index == NULL ? NULL : mapping_type_by_number(index->mapping, type_number);
    bool owned = r == 0 && type != NULL && slice_equal(doc.lease, purge->session);
    int outcome = 1;
    purge->more = owned && is_full(purge);
    if (owned && !purge->more)
        outcome = take_document(purge, key, &doc, index, type, id);
    else if (!owned && map_get(&core->pending, key) != NULL) /* rewritten: its key is removed */
        outcome = 0;
    if (outcome == 1 && !purge->more)
        ephemeral__remove(core, &sink, purge->session, key);
    if (r == 0)
        doc_release(&doc);
    return outcome < 0 ? tl_trace(outcome) : 0;
}

static int run_deletions(struct core *core, const struct deletions *deletions, bool hidden)
{
    REQUIRE(core->open);
    struct write_run run = {
        .items = deletions->items, .count = deletions->count, .cleanup = true, .purge = hidden, .arena = &core->arena};
    bool failed;

    if (deletions->count == 0)
        return 0;
    run.results = arena_zalloc(&core->arena, deletions->count * sizeof(*run.results));
    int r = write__run(core, &run, &failed);
    core->write_work += run.work;
    return r;
}

/* Deletes the collected documents. */
static int run_collected(struct purge_state *purge)
{
    int r = run_deletions(purge->core, &purge->visible, false);

    if (r == 0)
        r = run_deletions(purge->core, &purge->hidden, true);
    purge->removed += purge->visible.count;
    purge->visible.count = purge->hidden.count = 0;
    return r;
}

static int purge_document(void *context, struct slice key)
{
    struct purge_state *purge = context;
    struct core *core = purge->core;
    size_t writes = store_batch_count(core->batch);
    int r = purge_one(purge, arena_copy(&core->arena, key));

    if (r == 0 && purge->max.work != EPHEMERAL_WORK_ANY) {
        r = run_collected(purge);
        purge->work += WORK_WRITE * (uint64_t)(store_batch_count(core->batch) - writes);
    }
    return r < 0 ? tl_trace(r) : purge->more ? WALK_END : 0;
}

/*
 * Collects documents of a session for one batch, and removes stale index keys before them. If work
 * is limited, each document is deleted before the next one, so that its writes are known.
 */
static int collect_batch(struct purge_state *purge)
{
    const struct session_walk walk = {true, purge_document, purge};
    struct arena *arena = &purge->core->arena;

    purge->visible.items = arena_zalloc(arena, purge->max.count * sizeof(*purge->visible.items));
    purge->hidden.items = arena_zalloc(arena, purge->max.count * sizeof(*purge->hidden.items));
    return walk_session(purge->core, purge->session, &walk);
}

int ephemeral__purge_batch(struct core *core, struct slice session, const struct ephemeral_batch_max *max,
                           ephemeral_defer *defer, void *context, size_t *removed, bool *ret_more)
{
    REQUIRE(core->open && session.len > 0 && defer != NULL);
    struct purge_state purge = {.core = core, .session = session, .defer = defer, .context = context, .max = *max};
    int r = collect_batch(&purge);

    ENSURE(purge.visible.count + purge.hidden.count <= purge.count && purge.count <= max->count);
    *ret_more = purge.more;
    if (r == 0)
        r = run_collected(&purge);
    *removed += purge.removed;
    return r;
}

int ephemeral__defer(struct core *core, struct slice session, struct slice key, ephemeral_defer *defer, void *context)
{
    REQUIRE(session.len > 0);
    REQUIRE(core->open && defer != NULL);
    struct write_item none;
    struct purge_state purge = {.core = core,
                                .session = session,
                                .defer = defer,
                                .context = context,
                                .visible = {&none, 0},
                                .max = {1, EPHEMERAL_WORK_ANY}};

    return purge_one(&purge, key);
}

int ephemeral__find_highest_version(struct core *core, struct write_item *removal)
{
    REQUIRE(core->open && removal->op == WRITE_DELETE);
    char bytes[DOC_KEY_BYTES_MAX];
    const struct catalog_index *index = catalog_index(core->catalog, removal->index);
    const struct mapping_type *type = index == NULL ? NULL : mapping_type(index->mapping, removal->type);
    struct doc doc;

    if (type == NULL || removal->id.len > DOC_ID_BYTES_MAX)
        return 0;
    int r = read_current(core, doc_key(bytes, index->number, type->number, removal->id), &doc);
    core__work(core, WORK_READ);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    ephemeral__keep_highest_version(core, &doc, removal);
    doc_release(&doc);
    return 0;
}

/* An estimate of the work of deleting a session's documents. */
struct estimate {
    struct core *core;
    struct slice session;
    uint64_t work, enough;
};

/* Adds the work of deleting one document, unless it belongs to another session now. */
static int estimate_one(void *context, struct slice key)
{
    struct estimate *estimate = context;
    struct core *core = estimate->core;
    uint32_t number;
    uint16_t type_number;
    struct slice id;
    struct doc doc;
    size_t writes = 0;
    int r = read_current(core, key, &doc);

    core__work(core, WORK_READ);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    doc_key_parse(key, &number, &type_number, &id);
    const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
    const struct mapping_type *type = index == NULL ? NULL : mapping_type_by_number(index->mapping, type_number);
    if (type != NULL && slice_equal(doc.lease, estimate->session)) {
        r = count_writes(core, index, type, &doc, &writes);
        estimate->work += work_to_read(index, &doc) + writes * WORK_WRITE;
    }
    doc_release(&doc);
    return r < 0 ? tl_trace(r) : estimate->work > estimate->enough ? WALK_END : 0;
}

int ephemeral__estimate_work(struct core *core, struct slice session, uint64_t enough, uint64_t *ret_work)
{
    REQUIRE(core->open);
    struct estimate estimate = {core, session, 0, enough};
    int r = walk_session(core, session, &(struct session_walk){true, estimate_one, &estimate});

    *ret_work = estimate.work;
    return r;
}

static int record_delete(void *context, struct slice key)
{
    struct core *core = context;
    struct slice rest = key;
    uint32_t index;

    if (slice_take_u32be(&rest, &index) && catalog_index_by_number(core->catalog, index) != NULL &&
        rest.len >= sizeof(uint16_t))
        feed__record_document(core, true, key, true);
    return 0;
}

/*
 * Uses index keys only and reads no document. So the feed may name a document that was not deleted,
 * which is allowed.
 */
int ephemeral__record_deletes(struct core *core, struct slice session)
{
    REQUIRE(core->open);
    return walk_session(core, session, &(struct session_walk){false, record_delete, core});
}

struct key_list {
    struct arena *arena;
    struct slice *keys;
    size_t count, capacity;
};

static int list_key(void *context, struct slice key)
{
    struct key_list *list = context;

    list->keys = arena_grow(list->arena, list->keys, list->count, &list->capacity, sizeof *list->keys);
    list->keys[list->count++] = arena_copy(list->arena, key);
    return 0;
}

int ephemeral__list(struct core *core, struct slice session, struct slice **ret_keys, size_t *ret_count)
{
    REQUIRE(session.len > 0);
    struct key_list list = {.arena = &core->arena};
    int r = walk_session(core, session, &(struct session_walk){false, list_key, &list});

    *ret_keys = list.keys;
    *ret_count = list.count;
    return r;
}

int ephemeral__remove_session(struct core *core, struct slice session, size_t max, size_t *removed)
{
    REQUIRE(session.len > 0); /* else the keys of all sessions are removed */
    REQUIRE(core->open);
    struct buf lower = BUF_INIT(BUF_UNLIMITED), upper = BUF_INIT(BUF_UNLIMITED);
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX,
                                             index_key(&lower, session, SLICE_LIT("")), index_key_end(&upper, session));

    for (store_iter_seek_first(iter); max > 0 && store_iter_valid(iter); store_iter_next(iter), max--) {
        core__work(core, WORK_SCAN + WORK_WRITE);
        store_batch_delete(core->batch, SPACE_SYSTEM, store_iter_key(iter));
        ++*removed;
    }
    int r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&lower);
    buf_deinit(&upper);
    return r;
}

int ephemeral__remove_index(struct core *core, struct slice session, uint32_t index, size_t max, size_t *removed)
{
    REQUIRE(session.len > 0 && index < UINT32_MAX);
    REQUIRE(core->open);
    const struct change_sink sink = {core->batch, NULL};
    struct buf lower = BUF_INIT(BUF_UNLIMITED), upper = BUF_INIT(BUF_UNLIMITED);
    char from[DOC_KEY_PREFIX_BYTES], to[DOC_KEY_PREFIX_BYTES];
    struct slice first = index_key(&lower, session, doc_key(from, index, 0, SLICE_LIT("")));
    struct slice end = index_key(&upper, session, doc_key(to, index + 1, 0, SLICE_LIT("")));
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, first, end);
    size_t skipped = first.len - DOC_KEY_PREFIX_BYTES;

    for (store_iter_seek_first(iter); max > 0 && store_iter_valid(iter); store_iter_next(iter), max--) {
        core__work(core, WORK_SCAN + WORK_WRITE);
        ephemeral__remove(core, &sink, session, slice_from_offset(store_iter_key(iter), skipped));
        ++*removed;
    }
    int r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&lower);
    buf_deinit(&upper);
    return r;
}

/* --- Enumeration -------------------------------------------------------------------------------------------------- */

/*
 * The index keys of a session are adjacent. Sessions are sorted by length and bytes of their ids.
 */
int ephemeral__next(struct core *core, struct slice after, struct arena *arena, struct slice *ret_session)
{
    REQUIRE(arena != NULL && ret_session != NULL);
    struct buf from = BUF_INIT(BUF_UNLIMITED);
    struct slice session, document;
    int r = STORE_NOT_FOUND;

    if (after.len > 0)
        index_key_end(&from, after);
    else
        buf_byte(&from, 'e');
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, buf_as_slice(&from), SLICE_LIT("f"));
    store_iter_seek_first(iter);
    if (store_iter_valid(iter)) {
        r = ephemeral__parse(store_iter_key(iter), &session, &document) ? 0 : tl_trace(TL_ERR_CORRUPT);
        if (r == 0)
            *ret_session = arena_copy(arena, session);
    }
    int status = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&from);
    return status != 0 ? status : r;
}

struct each {
    void (*visit)(void *context, struct slice session, struct slice document);
    void *context;
};

static int visit_key(void *context, struct slice key, struct slice value)
{
    struct each *each = context;
    struct slice session, document;

    (void)value;
    if (!ephemeral__parse(key, &session, &document))
        return tl_trace(TL_ERR_CORRUPT);
    each->visit(each->context, session, document);
    return 0;
}

int ephemeral__each(struct core *core, void (*visit)(void *context, struct slice session, struct slice document),
                    void *context)
{
    REQUIRE(visit != NULL);
    struct each each = {visit, context};

    return store_each(core->store, SPACE_SYSTEM, TL_TS_MAX, SLICE_LIT("e"), SLICE_LIT("f"), visit_key, &each);
}
