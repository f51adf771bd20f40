/* SPDX-License-Identifier: Apache-2.0 */
#include "feed_replay.h"

#include "base/alloc.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/feed/feed.h"
#include "core/feed/feed_read.h"
#include "core/catalog/settings.h"
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
    bool exists; /* while it is compared */
};

struct replay {
    struct store *store;
    struct entry *entries; /* by index, type and id */
    size_t count;
    size_t capacity;
    bool newest;
    tl_ts upto;
    tl_ts readable;
    struct buf *wrong;
    /* Of a follower, which checks indices, too */
    struct feed_follower *follower;
};

/* An index as of the last check. */
struct index_entry {
    uint32_t number;
    unsigned changed; /* kinds of changes that the feed named since */
    const struct mapping *mapping;
    uint64_t settings; /* hash, with the state */
    uint64_t aliases;  /* hash */
};

struct feed_follower {
    struct replay replay;
    tl_ts position;
    struct index_entry *indices;
    size_t index_count;
    struct catalog *catalog; /* of the last check */
    uint64_t records;
};

static void clear_entry(struct entry *entry)
{
    mem_free(entry->id);
    mem_free(entry->path);
}

static void drop(struct replay *replay, size_t i)
{
    clear_entry(&replay->entries[i]);
    memmove(&replay->entries[i], &replay->entries[i + 1], (--replay->count - i) * sizeof *replay->entries);
}

static void clear(struct replay *replay)
{
    while (replay->count > 0)
        drop(replay, replay->count - 1);
}

static int compare_keys(const struct entry *entry, uint32_t index, uint16_t type, struct slice id)
{
    if (entry->index != index)
        return entry->index < index ? -1 : 1;
    if (entry->type != type)
        return entry->type < type ? -1 : 1;
    return slice_compare(slice_make(entry->id, entry->id_len), id);
}

/* Returns: the position of a document, or the one at which it belongs. */
static size_t find(const struct replay *replay, uint32_t index, uint16_t type, struct slice id, bool *ret_found)
{
    size_t low = 0, high = replay->count;

    *ret_found = false;
    while (low < high && !*ret_found) {
        size_t middle = (low + high) / 2;
        int order = compare_keys(&replay->entries[middle], index, type, id);
        *ret_found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return *ret_found ? high : low;
}

static struct slice path_of(const struct doc *doc)
{
    if (!doc->path_tracked)
        return SLICE_NONE;
    /* In simulations the path has no escapes and a fixed offset. */
    struct slice rest = slice_from_offset(doc->source, doc->path_offset);
    return slice_make(rest.data, slice_find_byte(rest, '"'));
}

static void take(struct replay *replay, uint32_t index, uint16_t type, struct slice id, const struct doc *doc,
                 tl_ts as_of)
{
    struct slice path = path_of(doc);
    bool found;
    size_t i = find(replay, index, type, id, &found);
    if (found)
        drop(replay, i);
    if (replay->count == replay->capacity) {
        replay->capacity = replay->capacity == 0 ? 64 : replay->capacity * 2;
        replay->entries = mem_realloc(replay->entries, replay->capacity * sizeof *replay->entries);
    }
    memmove(&replay->entries[i + 1], &replay->entries[i], (replay->count++ - i) * sizeof *replay->entries);
    replay->entries[i] = (struct entry){.index = index,
                                        .type = type,
                                        .id = mem_dup(id.data, id.len),
                                        .id_len = id.len,
                                        .as_of = as_of,
                                        .version = doc->version,
                                        .source = slice_hash(doc->source) | 1};
    if (path.data != NULL) {
        replay->entries[i].path = mem_dup(path.data, path.len);
        replay->entries[i].path_len = path.len;
    }
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
    bool found;
    size_t i = find(replay, change->index, change->type, change->name, &found);
    if (found)
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

static struct index_entry *index_entry(struct feed_follower *follower, uint32_t number)
{
    for (size_t i = 0; i < follower->index_count; i++)
        if (follower->indices[i].number == number)
            return &follower->indices[i];
    return NULL;
}

static void note_index_change(struct feed_follower *follower, const struct feed_change *change)
{
    struct index_entry *entry = index_entry(follower, change->index);
    if (entry == NULL && change->kind == FEED_INDEX_CREATED) {
        follower->indices = mem_realloc(follower->indices, (follower->index_count + 1) * sizeof *follower->indices);
        entry = &follower->indices[follower->index_count++];
        *entry = (struct index_entry){.number = change->index};
    }
    if (entry != NULL)
        entry->changed |= 1u << change->kind;
}

static bool follow_one(struct replay *replay, const struct feed_change *change, tl_ts ts)
{
    if (change->kind <= FEED_DELETED)
        return read_document(replay, change, ts);
    if (replay->follower != NULL)
        note_index_change(replay->follower, change);
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
    if (replay->follower != NULL)
        replay->follower->records += record->part == 0;
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

/* Visits all documents of a catalog's indices as of its timestamp. */
static bool each_of(struct replay *replay, const struct catalog *catalog, tl_ts ts,
                    bool (*visit)(struct replay *replay, uint32_t index, uint16_t type, struct slice id,
                                  const struct doc *doc, tl_ts ts))
{
    struct view view = {replay->store, ts, NULL};
    bool fine = true;
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

/* Visits all documents as of a timestamp. */
static bool each(struct replay *replay, tl_ts ts,
                 bool (*visit)(struct replay *replay, uint32_t index, uint16_t type, struct slice id,
                               const struct doc *doc, tl_ts ts))
{
    struct view view = {replay->store, ts, NULL};
    tl_cleanup(catalog_unrefp) struct catalog *catalog = NULL;
    if (catalog_load(&view, &catalog) == 0)
        return each_of(replay, catalog, ts, visit);
    buf_printf(replay->wrong, "the catalog as of %llu cannot be read", (unsigned long long)ts);
    return false;
}

static bool begin_with(struct replay *replay, uint32_t index, uint16_t type, struct slice id, const struct doc *doc,
                       tl_ts ts)
{
    take(replay, index, type, id, doc, ts);
    return true;
}

static bool same(const struct entry *entry, const struct doc *doc, struct slice path)
{
    return entry->version == doc->version && (entry->path == NULL) == (path.data == NULL) &&
           slice_equal(slice_make(entry->path, entry->path_len), path) &&
           (entry->source == 0 || entry->source == (slice_hash(doc->source) | 1));
}

/* Compares a document with that of the list, and marks it there as one that exists. */
static bool compare(struct replay *replay, uint32_t index, uint16_t type, struct slice id, const struct doc *doc,
                    tl_ts ts)
{
    struct slice path = path_of(doc);
    bool found;
    size_t i = find(replay, index, type, id, &found);
    struct entry *entry = found ? &replay->entries[i] : NULL;
    if (entry != NULL && same(entry, doc, path)) {
        entry->exists = true;
        entry->source = slice_hash(doc->source) | 1; /* of a renamed one, for the next check */
        return true;
    }
    buf_printf(replay->wrong, "%u/%u/%.*s as of %llu: version %lld at %.*s; who follows has %lld at %.*s", index, type,
               SLICE_ARG(id), (unsigned long long)ts, (long long)doc->version, SLICE_ARG(path),
               entry != NULL ? (long long)entry->version : -1LL, entry != NULL ? (int)entry->path_len : 0,
               entry != NULL && entry->path != NULL ? entry->path : "");
    return false;
}

/* Checks that every document of the list has been compared. */
static bool all_exist(struct replay *replay)
{
    for (size_t i = 0; i < replay->count; i++) {
        struct entry *entry = &replay->entries[i];
        if (!entry->exists) {
            buf_printf(replay->wrong, "%u/%u/%.*s is gone, and who follows has it", entry->index, entry->type,
                       (int)entry->id_len, entry->id);
            return false;
        }
        entry->exists = false;
    }
    return true;
}

bool feed_replay_check(struct store *store, tl_ts since, tl_ts upto, tl_ts readable, bool newest, struct buf *ret_wrong)
{
    struct replay replay = {.store = store, .newest = newest, .upto = upto, .readable = readable, .wrong = ret_wrong};
    bool fine = since == 0 || each(&replay, since, begin_with);
    int r = fine ? follow(&replay, since) : -1;
    fine = r == 1 || (r == 0 && each(&replay, upto, compare) && all_exist(&replay));
    clear(&replay);
    mem_free(replay.entries);
    return fine;
}

/* --- Following on ------------------------------------------------------------------------------------------------- */

struct feed_follower *feed_follower_new(struct store *store)
{
    struct feed_follower *follower = mem_zalloc(sizeof *follower);
    follower->replay.store = store;
    follower->replay.follower = follower;
    return follower;
}

void feed_follower_free(struct feed_follower *follower)
{
    clear(&follower->replay);
    mem_free(follower->replay.entries);
    mem_free(follower->indices);
    catalog_unref(follower->catalog);
    mem_free(follower);
}

uint64_t feed_follower_records(const struct feed_follower *follower)
{
    return follower->records;
}

static uint64_t hash_of(struct slice text, uint64_t more)
{
    return (slice_hash(text) ^ more) * 0x9e3779b97f4a7c15;
}

static struct index_entry index_entry_of(const struct catalog_index *index)
{
    struct index_entry entry = {.number = index->number, .mapping = index->mapping};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    settings_render(index->settings, true, &text);
    entry.settings = hash_of(buf_as_slice(&text), index->closed);
    buf_deinit(&text);
    for (size_t i = 0; i < index->alias_count; i++)
        entry.aliases =
            hash_of(index->aliases[i].name, entry.aliases * 4 + (uint64_t)index->aliases[i].write_index + 1);
    return entry;
}

/* Returns: the kind of change of an index that the feed should have; 0: none. */
static enum feed_kind unnamed_change(const struct index_entry *old, const struct index_entry *new)
{
    if (old == NULL || (old->changed & 1u << FEED_INDEX_CREATED) != 0)
        return old == NULL ? FEED_INDEX_CREATED : 0;
    if (old->mapping != new->mapping && (old->changed & 1u << FEED_MAPPING) == 0)
        return FEED_MAPPING;
    if (old->aliases != new->aliases && (old->changed & 1u << FEED_ALIASES) == 0)
        return FEED_ALIASES;
    return old->settings != new->settings && (old->changed & 1u << FEED_SETTINGS) == 0 ? FEED_SETTINGS : 0;
}

/* Checks that the feed has named each change of an index, and takes its state. */
static bool check_indices(struct feed_follower *follower, const struct catalog *catalog, bool begins,
                          struct buf *ret_wrong)
{
    size_t count = catalog_index_count(catalog);
    struct index_entry *now = mem_alloc((count + 1) * sizeof *now);
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++) {
        now[i] = index_entry_of(catalog_index_at(catalog, i));
        enum feed_kind kind = begins ? 0 : unnamed_change(index_entry(follower, now[i].number), &now[i]);
        if (kind != 0)
            buf_printf(ret_wrong, "index %u has changed, and the feed does not say so (%d)", now[i].number, kind);
        fine = kind == 0;
    }
    mem_free(follower->indices);
    follower->indices = now;
    follower->index_count = fine ? count : 0;
    return fine;
}

/* Begins with the documents as of a timestamp, where the feed does not reach back. */
static bool begin_anew(struct feed_follower *follower, const struct catalog *catalog, tl_ts upto)
{
    clear(&follower->replay);
    return each_of(&follower->replay, catalog, upto, begin_with);
}

bool feed_follower_check(struct feed_follower *follower, struct catalog *catalog, tl_ts upto, struct buf *ret_wrong)
{
    struct replay *replay = &follower->replay;
    replay->wrong = ret_wrong;
    replay->upto = upto;
    int r = follow(replay, follower->position);
    bool fine = r == 1 ? begin_anew(follower, catalog, upto) : r == 0;
    follower->position = upto;
    bool news = follower->catalog != catalog;
    struct catalog *before = follower->catalog; /* its mappings are compared */
    follower->catalog = catalog_ref(catalog);
    fine = fine && (!news || check_indices(follower, catalog, r == 1, ret_wrong)) &&
           each_of(replay, catalog, upto, compare) && all_exist(replay);
    catalog_unref(before);
    return fine;
}
