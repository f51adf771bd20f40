/* SPDX-License-Identifier: Apache-2.0 */
#include "feed_replay.h"

#include "base/alloc.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/feed/feed.h"
#include "core/feed/feed_read.h"
#include "mapping/mapping.h"

/* A document in the list. Owns its texts. */
struct entry {
    uint32_t index;
    uint16_t type;
    char *id;
    size_t id_len;
    tl_ts as_of; /* timestamp at which it was read */
    int64_t version;
    uint64_t source; /* hash; 0: renamed since */
    char *path;      /* NULL: not path-tracked */
    size_t path_len;
};

struct replay {
    struct store *store;
    struct entry *entries;
    size_t count;
    size_t capacity;
    bool newest;
    tl_ts upto;
    tl_ts readable;
    struct buf *wrong;
};

static void clear_entry(struct entry *entry)
{
    mem_free(entry->id);
    mem_free(entry->path);
}

static void drop(struct replay *replay, size_t i)
{
    clear_entry(&replay->entries[i]);
    replay->entries[i] = replay->entries[--replay->count];
}

static size_t find(const struct replay *replay, uint32_t index, uint16_t type, struct slice id)
{
    size_t i = 0;
    for (; i < replay->count; i++) {
        const struct entry *at = &replay->entries[i];
        if (at->index == index && at->type == type && slice_equal(slice_make(at->id, at->id_len), id))
            break;
    }
    return i;
}

/* Converts a document to a list entry. */
static struct entry entry_of(uint32_t index, uint16_t type, struct slice id, const struct doc *doc, tl_ts as_of)
{
    struct entry entry = {.index = index,
                          .type = type,
                          .id = mem_dup(id.data, id.len),
                          .id_len = id.len,
                          .as_of = as_of,
                          .version = doc->version,
                          .source = slice_hash(doc->source) | 1};
    if (doc->path_tracked) {
        /* In simulations the path has no escapes and a fixed offset. */
        struct slice rest = slice_from_offset(doc->source, doc->path_offset);
        entry.path_len = slice_find_byte(rest, '"');
        entry.path = mem_dup(rest.data, entry.path_len);
    }
    return entry;
}

static void take(struct replay *replay, uint32_t index, uint16_t type, struct slice id, const struct doc *doc,
                 tl_ts as_of)
{
    size_t i = find(replay, index, type, id);
    if (i < replay->count)
        drop(replay, i);
    if (replay->count == replay->capacity) {
        replay->capacity = replay->capacity == 0 ? 64 : replay->capacity * 2;
        replay->entries = mem_realloc(replay->entries, replay->capacity * sizeof *replay->entries);
    }
    replay->entries[replay->count++] = entry_of(index, type, id, doc, as_of);
}

static bool read_document(struct replay *replay, const struct feed_change *change, tl_ts ts)
{
    struct doc doc;
    tl_ts as_of = replay->newest || ts < replay->readable ? replay->upto : ts;
    struct view view = {replay->store, as_of, NULL};
    int r = doc_get(&view, change->index, change->type, change->name, &doc);
    if (r == DOC_TOO_OLD) {
        view.ts = as_of = replay->upto;
        r = doc_get(&view, change->index, change->type, change->name, &doc);
    }
    if (r < 0 || r == DOC_TOO_OLD) {
        buf_printf(replay->wrong, "%.*s cannot be read: %d", SLICE_ARG(change->name), r);
        return false;
    }
    if (r == 0 && change->kind == FEED_WRITTEN && as_of == ts && doc.ts != ts) {
        buf_printf(replay->wrong, "%.*s of %llu is said to be written at %llu", SLICE_ARG(change->name),
                   (unsigned long long)doc.ts, (unsigned long long)ts);
        return false;
    }
    if (r == 0) {
        take(replay, change->index, change->type, change->name, &doc, as_of);
        doc_release(&doc);
        return true;
    }
    size_t i = find(replay, change->index, change->type, change->name);
    if (i < replay->count)
        drop(replay, i);
    return true;
}

static void move(struct entry *entry, struct slice from, struct slice to)
{
    struct slice path = slice_make(entry->path, entry->path_len);
    if (!slice_starts_with(path, from) || (path.len > from.len && path.data[from.len] != '/'))
        return;
    struct slice rest = slice_from_offset(path, from.len);
    char *moved = mem_alloc(to.len + rest.len + 1);
    memcpy(moved, to.data, to.len);
    memcpy(moved + to.len, rest.data, rest.len);
    mem_free(entry->path);
    entry->path = moved;
    entry->path_len = to.len + rest.len;
    if (entry->version < INT64_MAX) /* a rename does not raise the maximum version */
        entry->version++;
    entry->source = 0;
}

static bool follow_one(struct replay *replay, const struct feed_change *change, tl_ts ts)
{
    if (change->kind <= FEED_DELETED)
        return read_document(replay, change, ts);
    for (size_t i = replay->count; i-- > 0;) {
        struct entry *entry = &replay->entries[i];
        if (entry->index != change->index)
            continue;
        if (change->kind == FEED_INDEX_DELETED)
            drop(replay, i);
        else if (change->kind == FEED_RENAMED && entry->path != NULL && entry->as_of < ts)
            move(entry, change->name, change->to);
    }
    return true;
}

static bool follow_record(struct replay *replay, const struct feed_record *record)
{
    struct slice rest = record->changes;
    struct feed_change change;
    size_t count = 0;
    while (rest.len > 0) {
        if (!feed_change_take(&rest, &change) || ++count > FEED_RECORD_CHANGES) {
            buf_printf(replay->wrong, "the record of %llu is not sound", (unsigned long long)record->ts);
            return false;
        }
        if (!follow_one(replay, &change, record->ts))
            return false;
    }
    return true;
}

/* Returns: 0; 1: the feed rejects `since`, as expected; -1: *wrong is set. */
static int follow(struct replay *replay, tl_ts since)
{
    struct feed_scan *scan = NULL;
    struct feed_record record;
    bool off = false, fine = true;
    tl_ts from = 0, reported = 0;
    int r = feed_scan_new(replay->store, since, replay->upto, &scan, &reported);
    int begun = feed_read_state(replay->store, &off, &from);
    int must = begun == STORE_NOT_FOUND ? FEED_TOO_OLD : off ? FEED_OFF : since < from ? FEED_TOO_OLD : 0;
    if (begun < 0 || r != must) {
        buf_printf(replay->wrong, "the feed since %llu: %d, and not %d", (unsigned long long)since, r, must);
        feed_scan_free(scan);
        return -1;
    }
    if (r != 0)
        return 1;
    while (fine && (r = feed_scan_next(scan, &record)) == 0)
        fine = follow_record(replay, &record);
    feed_scan_free(scan);
    if (fine && r != FEED_END)
        buf_printf(replay->wrong, "the feed cannot be read: %d", r);
    return fine && r == FEED_END ? 0 : -1;
}

/* Visits all documents as of a timestamp. */
static bool each(struct replay *replay, tl_ts ts,
                 bool (*visit)(struct replay *replay, uint32_t index, uint16_t type, struct slice id,
                               const struct doc *doc, tl_ts ts))
{
    struct view view = {replay->store, ts, NULL};
    tl_cleanup(catalog_unrefp) struct catalog *catalog = NULL;
    bool fine = catalog_load(&view, &catalog) == 0;
    for (size_t i = 0; fine && i < catalog_index_count(catalog); i++) {
        uint32_t index = catalog_index_at(catalog, i)->number;
        struct doc_scan *scan = doc_scan_new(&view, index, DOC_TYPE_ANY);
        struct slice id;
        struct doc doc;
        uint16_t type;
        int r = 0;
        while (fine && (r = doc_scan_next(scan, &type, &id, &doc)) == 0)
            fine = visit(replay, index, type, id, &doc, ts);
        fine = fine && r == DOC_SCAN_END;
        doc_scan_free(scan);
    }
    if (!fine && replay->wrong->len == 0)
        buf_printf(replay->wrong, "the documents as of %llu cannot be read", (unsigned long long)ts);
    return fine;
}

static bool begin_with(struct replay *replay, uint32_t index, uint16_t type, struct slice id, const struct doc *doc,
                       tl_ts ts)
{
    take(replay, index, type, id, doc, ts);
    return true;
}

static bool same(const struct entry *a, const struct entry *b)
{
    return a->version == b->version && (a->path == NULL) == (b->path == NULL) &&
           slice_equal(slice_make(a->path, a->path_len), slice_make(b->path, b->path_len)) &&
           (a->source == 0 || b->source == 0 || a->source == b->source);
}

/* Removes a document from the list if it is there with the same content. */
static bool compare(struct replay *replay, uint32_t index, uint16_t type, struct slice id, const struct doc *doc,
                    tl_ts ts)
{
    size_t i = find(replay, index, type, id);
    struct entry entry = entry_of(index, type, id, doc, ts);
    bool fine = i < replay->count && same(&replay->entries[i], &entry);
    if (!fine)
        buf_printf(replay->wrong, "%u/%u/%.*s as of %llu: version %lld at %.*s; who follows has %lld at %.*s", index,
                   type, SLICE_ARG(id), (unsigned long long)ts, (long long)entry.version, (int)entry.path_len,
                   entry.path == NULL ? "" : entry.path,
                   i < replay->count ? (long long)replay->entries[i].version : -1LL,
                   i < replay->count ? (int)replay->entries[i].path_len : 0,
                   i < replay->count && replay->entries[i].path != NULL ? replay->entries[i].path : "");
    else
        drop(replay, i);
    clear_entry(&entry);
    return fine;
}

bool feed_replay_check(struct store *store, tl_ts since, tl_ts upto, tl_ts readable, bool newest, struct buf *ret_wrong)
{
    struct replay replay = {.store = store, .newest = newest, .upto = upto, .readable = readable, .wrong = ret_wrong};
    bool fine = since == 0 || each(&replay, since, begin_with);
    int r = fine ? follow(&replay, since) : -1;
    fine = r == 1 || (r == 0 && each(&replay, upto, compare));
    if (fine && r == 0 && replay.count > 0) {
        buf_printf(ret_wrong, "%u/%u/%.*s is gone, and who follows has it", replay.entries[0].index,
                   replay.entries[0].type, (int)replay.entries[0].id_len, replay.entries[0].id);
        fine = false;
    }
    while (replay.count > 0)
        drop(&replay, replay.count - 1);
    mem_free(replay.entries);
    return fine;
}
