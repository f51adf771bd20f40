/* SPDX-License-Identifier: Apache-2.0 */
/* Lists a directory; see listing.h. */
#include "core/documents/listing.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/omap.h"
#include "core/documents/path_lookup.h"
#include "core/tree/tree.h"

/*
 * A candidate item found by an entry: its key, and a document at it or, if the key is a directory,
 * below it.
 */
struct candidate {
    struct slice key;
    struct slice document_key;
    uint64_t batch;
};

struct listing {
    struct view_cache cache; /* of SPACE_TREE: each document and each name reads the same records */
    struct view view;
    struct path_lookup lookup;
    struct account *account; /* NULL: unlimited */
    uint64_t steps;          /* charged for each name */
    bool renamed;            /* the view has renames */
    struct arena arena;
    struct slice path;
    struct slice prefix; /* prefix of the origins in the directory */
    bool unresolved;     /* the path cannot be resolved: no items */
    struct buf last;     /* the current key: */
    bool has_last;       /* ... it is set */
    bool returned;       /* ... it was returned by this listing */
    bool unmoved;        /* ... it is a document's and unmoved: its entries are its documents */
    struct omap dirents; /* possible keys of relocated directory entries; empty without renames */

    struct entry_scan *scan; /* over entries of origins in the directory; NULL: to be opened after `last` */
    struct arena scan_arena;
    bool ended;
    bool has_candidate; /* `candidate` was not consumed yet */
    struct candidate candidate;
    struct buf candidate_key;
    struct buf candidate_document;
    struct omap truncated; /* key, zero, document key, batch → length of key; entries with one truncated value */
    bool has_pushed_back;  /* the entry that follows them */
    struct entry_hit pushed_back;
    struct buf pushed_back_bytes;

    const struct mapping *mapping;
    struct entry_scan *at; /* over the documents at `last`; NULL: none left */
    struct slice at_origin;
    struct arena at_arena;
    int r; /* an error to be reported by the next call */
    bool has_doc;
    struct doc doc;
    struct buf document_key;
};

/* --- Entries of origins in the directory -------------------------------------------------------------------------- */

/*
 * Locating a document reads every directory of its path by its full path, so its cost grows with
 * the square of the path's length. A path of 64 KB takes about 10 ms.
 */
enum { NAME_STEPS = 500, SQUARE_PER_STEP = 128 };

static bool may_continue(const struct listing *l)
{
    return account_take(l->account, l->steps);
}

static struct slice delimiter_of(const struct listing *l)
{
    return slice_make(&l->lookup.tree.delimiter, 1);
}

/*
 * Returns: the key of the item at this origin or above it. Requires: `text` begins with the prefix.
 */
static struct slice key_of(const struct listing *l, struct slice text)
{
    REQUIRE(text.len >= l->prefix.len);
    struct slice rest = slice_from_offset(text, l->prefix.len);
    size_t len = slice_find_byte(rest, l->lookup.tree.delimiter);
    return slice_make(rest.data, len < rest.len ? len + 1 : rest.len);
}

static bool is_directory(const struct listing *l, struct slice key)
{
    return key.len > 0 && key.data[key.len - 1] == l->lookup.tree.delimiter;
}

/* Opens the scan at the last key; if that is a directory, after everything below it. */
static void begin_scan(struct listing *l)
{
    REQUIRE(l->scan == NULL && l->lookup.path != NULL);
    struct field_value *low = arena_zalloc(&l->scan_arena, sizeof *low);
    struct slice key = buf_as_slice(&l->last);
    bool directory = is_directory(l, key);
    char *text = arena_alloc(&l->scan_arena, l->prefix.len + key.len + 1);
    memcpy(text, l->prefix.data, l->prefix.len);
    if (key.len > 0)
        memcpy(text + l->prefix.len, key.data, key.len);
    if (directory)
        text[l->prefix.len + key.len - 1]++; /* no delimiter is the highest byte */
    *low = (struct field_value){
        .field = l->lookup.path->number, .kind = FIELD_VALUE_BYTES, .bytes = slice_make(text, l->prefix.len + key.len)};
    struct entry_range range = {.index = l->lookup.tree.index, .field = low->field, .low = low};
    l->scan = entry_scan_new(l->lookup.tree.view, &range);
}

static void end_scan(struct listing *l)
{
    entry_scan_free(l->scan);
    l->scan = NULL;
    arena_deinit(&l->scan_arena);
    l->scan_arena = ARENA_INIT;
}

static void set_candidate(struct listing *l, struct slice key, struct slice document_key, uint64_t batch)
{
    REQUIRE(!l->has_candidate); /* else a name is lost */
    buf_clear(&l->candidate_key);
    buf_slice(&l->candidate_key, key);
    buf_clear(&l->candidate_document);
    buf_slice(&l->candidate_document, document_key);
    l->candidate = (struct candidate){buf_as_slice(&l->candidate_key), buf_as_slice(&l->candidate_document), batch};
    l->has_candidate = true;
}

/* Completes a truncated entry from its document and adds it to the group, which sorts them. */
static int complete_truncated(struct listing *l, const struct entry_hit *hit)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct doc doc;
    int r = doc_get_key(l->lookup.tree.view, l->lookup.tree.index, hit->document_key, &doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked && slice_starts_with(doc.origin, l->prefix) &&
        doc_entry_batch(&doc, l->lookup.path->number) == hit->batch) {
        struct slice key = key_of(l, doc.origin);
        char len[4] = {(char)(key.len >> 24), (char)(key.len >> 16), (char)(key.len >> 8), (char)key.len};
        buf_slice(&text, key);
        buf_byte(&text, '\0');
        buf_slice(&text, hit->document_key);
        buf_u64be(&text, hit->batch);
        (void)omap_put(&l->truncated, buf_as_slice(&text), slice_make(len, sizeof len));
    }
    doc_release(&doc);
    return 0;
}

static bool take_from_group(struct listing *l)
{
    struct omap_entry *first = omap_first(&l->truncated);
    if (first == NULL)
        return false;
    struct slice all = omap_key(first), len = omap_value(first);
    uint32_t key_len = 0;
    uint64_t batch = 0;
    (void)slice_take_u32be(&len, &key_len);
    struct slice tail = slice_make(all.data + all.len - 8, 8);
    (void)slice_take_u64be(&tail, &batch);
    INSIST(key_len + 9 <= all.len && !l->has_candidate);
    set_candidate(l, slice_make(all.data, key_len), slice_make(all.data + key_len + 1, all.len - key_len - 9), batch);
    (void)omap_remove(&l->truncated, all);
    return true;
}

/*
 * Classifies an entry's value: it has the complete key; its document has the rest; it is before the
 * directory; it is after the directory.
 */
enum entry_class { ENTRY_COMPLETE, ENTRY_TRUNCATED, ENTRY_BEFORE, ENTRY_AFTER };
static enum entry_class classify_path(const struct listing *l, struct slice text, bool cut)
{
    size_t len = text.len < l->prefix.len ? text.len : l->prefix.len;
    int order = slice_compare(slice_make(text.data, len), slice_make(l->prefix.data, len));
    if (order != 0)
        return order < 0 ? ENTRY_BEFORE : ENTRY_AFTER;
    if (text.len < l->prefix.len)
        return cut ? ENTRY_TRUNCATED : ENTRY_BEFORE;
    return cut && !is_directory(l, key_of(l, text)) ? ENTRY_TRUNCATED : ENTRY_COMPLETE;
}

/* Pushes an entry back, to be returned by next_entry(). */
static void push_back(struct listing *l, const struct entry_hit *hit)
{
    REQUIRE(!l->has_pushed_back); /* else an entry is lost */
    buf_clear(&l->pushed_back_bytes);
    buf_slice(&l->pushed_back_bytes, hit->document_key);
    buf_slice(&l->pushed_back_bytes, hit->value);
    struct slice bytes = buf_as_slice(&l->pushed_back_bytes);
    l->pushed_back = *hit;
    l->pushed_back.document_key = slice_make(bytes.data, hit->document_key.len);
    l->pushed_back.value = slice_from_offset(bytes, hit->document_key.len);
    l->has_pushed_back = true;
}

static int next_entry(struct listing *l, struct entry_hit *ret_hit)
{
    REQUIRE(l->has_pushed_back || l->scan != NULL);
    *ret_hit = l->pushed_back;
    int r = l->has_pushed_back ? 0 : entry_scan_next(l->scan, ret_hit);
    l->has_pushed_back = false;
    return r;
}

/* Collects all entries that share this truncated value. */
static int take_truncated_group(struct listing *l, const struct entry_hit *first)
{
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);
    struct entry_hit hit = *first;
    buf_slice(&value, first->value);
    int r = 0;
    while (r == 0 && slice_equal(hit.value, buf_as_slice(&value)) && may_continue(l)) {
        r = complete_truncated(l, &hit);
        if (r == 0)
            r = next_entry(l, &hit);
    }
    if (r == 0)
        push_back(l, &hit);
    return r;
}

/* Takes the next entry, or group of truncated ones. Returns: 0; ENTRY_SCAN_END; fatal codes. */
static int take_entry(struct listing *l)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct entry_hit hit;
    struct field_value value;
    int r = next_entry(l, &hit);
    if (r != 0)
        return r;
    if (!entry_value_decode(hit.value, FIELD_VALUE_BYTES, &arena, &value))
        return tl_trace(TL_ERR_CORRUPT);
    switch (classify_path(l, value.bytes, hit.cut)) {
    case ENTRY_COMPLETE: set_candidate(l, key_of(l, value.bytes), hit.document_key, hit.batch); return 0;
    case ENTRY_TRUNCATED: return take_truncated_group(l, &hit);
    case ENTRY_BEFORE: return 0;
    default: return ENTRY_SCAN_END;
    }
}

/* Finds the next candidate. Returns: 0, has_candidate is set; LISTING_END; fatal codes. */
static int find_candidate(struct listing *l)
{
    while (!l->has_candidate && !take_from_group(l)) {
        if (l->ended || !may_continue(l))
            return LISTING_END;
        if (l->scan == NULL)
            begin_scan(l);
        int r = take_entry(l);
        if (r < 0)
            return tl_trace(r);
        l->ended = r == ENTRY_SCAN_END;
    }
    return 0;
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

static void advance_beyond(struct listing *l, struct slice key)
{
    buf_clear(&l->last);
    buf_slice(&l->last, key);
    l->has_last = l->returned = true;
}

/* Consumes the candidate. If it is in a directory already passed, the scan skips that directory. */
static void consume_candidate(struct listing *l, bool directory)
{
    l->has_candidate = false;
    if (directory && l->truncated.count == 0 && !l->ended && !l->has_pushed_back)
        end_scan(l);
}

static struct slice name_of(const struct listing *l, struct slice key)
{
    return slice_make(key.data, key.len - is_directory(l, key));
}

static void fill_item(struct listing *l, struct listing_item *item)
{
    struct slice key = buf_as_slice(&l->last);
    INSIST(l->has_last && (is_directory(l, key) || l->has_doc));
    *item = (struct listing_item){.key = key, .name = name_of(l, key), .directory = is_directory(l, key)};
    if (!item->directory) {
        item->document_key = buf_as_slice(&l->document_key);
        item->doc = &l->doc;
    }
}

/* Reads the document of an entry. Returns: 0; DOC_NOT_FOUND: the entry is stale; fatal codes. */
static int read_doc(struct listing *l, struct slice document_key, uint64_t batch)
{
    REQUIRE(!l->has_doc); /* else it is never released */
    int r = doc_get_key(l->lookup.tree.view, l->lookup.tree.index, document_key, &l->doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : DOC_NOT_FOUND;
    l->has_doc = true;
    if (!l->doc.path_tracked || doc_entry_batch(&l->doc, l->lookup.path->number) != batch)
        return DOC_NOT_FOUND;
    buf_clear(&l->document_key);
    buf_slice(&l->document_key, document_key);
    return 0;
}

static void release_doc(struct listing *l)
{
    if (l->has_doc)
        doc_release(&l->doc);
    l->has_doc = false;
}

/* The next item without renames: origins equal paths. Returns: 0; LISTING_END; fatal codes. */
static int next_unrenamed(struct listing *l)
{
    for (;;) {
        release_doc(l);
        int r = find_candidate(l);
        if (r != 0)
            return r;
        struct slice key = l->candidate.key;
        bool directory = is_directory(l, key);
        int order = l->has_last ? slice_compare(key, buf_as_slice(&l->last)) : 1;
        if (order < 0 || (order == 0 && (directory || !l->returned))) {
            consume_candidate(l, directory && order == 0);
            continue;
        }
        r = read_doc(l, l->candidate.document_key, l->candidate.batch);
        if (r < 0)
            return tl_trace(r);
        l->has_candidate = false;
        if (r != 0)
            continue;
        advance_beyond(l, key);
        consume_candidate(l, directory);
        return 0;
    }
}

static bool take_first_range(void *context, const struct entry_range *range)
{
    struct listing *l = context;
    REQUIRE(l->at == NULL && range->low != NULL);
    l->at = entry_scan_new(l->lookup.tree.view, range);
    l->at_origin = range->low->bytes;
    return false;
}

static void end_at(struct listing *l)
{
    entry_scan_free(l->at);
    l->at = NULL;
    arena_deinit(&l->at_arena);
    l->at_arena = ARENA_INIT;
}

/* Finds the next document at the last key. Returns: 0; LISTING_END; fatal codes. */
static int next_at(struct listing *l)
{
    struct entry_hit hit;
    int r = 0;
    while (l->at != NULL && r == 0 && may_continue(l)) {
        release_doc(l);
        r = entry_scan_next(l->at, &hit);
        if (r != 0)
            break;
        r = read_doc(l, hit.document_key, hit.batch);
        if (r == 0 && slice_equal(l->doc.origin, l->at_origin))
            return 0;
        r = r < 0 ? r : 0;
    }
    end_at(l);
    return r < 0 ? tl_trace(r) : LISTING_END;
}

/* Finds whether the last key's name belongs to an unmoved origin. Returns: 0; fatal codes. */
static int is_unmoved(const struct listing *l, bool *ret_unmoved)
{
    REQUIRE(l->has_last);
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice dirent = tree__join(&arena, l->prefix, name_of(l, buf_as_slice(&l->last))), origin;
    int r = tree__origin_at(&l->lookup.tree, dirent, &arena, &origin);
    *ret_unmoved = r == 0 && slice_equal(origin, dirent);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Finds whether a candidate's document is still below the last key's directory. Returns: 0; fatal
 * codes.
 */
static int is_still_below(struct listing *l, const struct candidate *candidate, struct slice path, bool *ret_below)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree_totals totals;
    struct slice at;
    int r = read_doc(l, candidate->document_key, candidate->batch);
    if (r == 0)
        r = tree_locate(&l->lookup.tree, l->doc.origin, &arena, &at, &totals);
    *ret_below = r == 0 && at.len > path.len && tree_within(at, path, l->lookup.tree.delimiter);
    release_doc(l);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Finds the next document at the last key, which is unmoved, from the entries of the scan. Returns:
 * 0; LISTING_END: the next entry has another key; fatal codes.
 */
static int next_unmoved(struct listing *l)
{
    while (l->unmoved && may_continue(l)) {
        release_doc(l);
        int r = find_candidate(l);
        if (r < 0)
            return tl_trace(r);
        l->unmoved = r == 0 && slice_equal(l->candidate.key, buf_as_slice(&l->last));
        if (!l->unmoved)
            break;
        r = read_doc(l, l->candidate.document_key, l->candidate.batch);
        l->has_candidate = false;
        if (r <= 0)
            return r;
    }
    return LISTING_END;
}

/* Advances to the next key that may have an item. Returns: 0; LISTING_END; fatal codes. */
static int next_key(struct listing *l)
{
    for (;;) {
        int r = may_continue(l) ? find_candidate(l) : LISTING_END;
        if (r < 0)
            return tl_trace(r);
        if (l->account != NULL && account_ended(l->account))
            return LISTING_END;
        struct slice last = buf_as_slice(&l->last);
        struct omap_entry *dirent = l->has_last ? omap_seek(&l->dirents, last) : omap_first(&l->dirents);
        if (dirent != NULL && l->has_last && slice_equal(omap_key(dirent), last))
            dirent = omap_next(dirent);
        if (r == LISTING_END && dirent == NULL)
            return LISTING_END;
        if (r == 0 && l->has_last && slice_compare(l->candidate.key, last) <= 0) {
            consume_candidate(l, is_directory(l, l->candidate.key) && slice_equal(l->candidate.key, last));
            continue;
        }
        bool candidate = r == 0 && (dirent == NULL || slice_compare(l->candidate.key, omap_key(dirent)) <= 0);
        advance_beyond(l, candidate ? l->candidate.key : omap_key(dirent));
        return 0;
    }
}

/* Checks whether an item exists at the last key. Returns: 0; LISTING_END: no; fatal codes. */
static int check_key(struct listing *l)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice key = buf_as_slice(&l->last);
    struct slice path = tree__join(&arena, tree__join(&arena, l->path, delimiter_of(l)), name_of(l, key));
    bool at, below = false, candidate = l->has_candidate && slice_equal(l->candidate.key, key), unmoved = false;
    int r = candidate ? is_unmoved(l, &unmoved) : 0;
    l->unmoved = unmoved && !is_directory(l, key);
    if (r < 0 || l->unmoved)
        return r < 0 ? tl_trace(r) : next_unmoved(l);
    if (unmoved) /* usually the first document is still below it */
        r = is_still_below(l, &l->candidate, path, &below);
    if (candidate)
        consume_candidate(l, is_directory(l, key));
    if (r == 0 && !below && is_directory(l, key))
        r = path_lookup_exists(&l->view, l->lookup.tree.index, l->mapping, path, l->account, &at, &below);
    else if (r == 0 && !below)
        r = path_lookup_value(&l->lookup, path, false, &l->at_arena, take_first_range, l);
    if (r < 0)
        return tl_trace(r);
    return below ? 0 : next_at(l);
}

/* The next item with renames: checks key after key. Returns: 0; LISTING_END; fatal codes. */
static int next_checked(struct listing *l)
{
    int r = l->unmoved ? next_unmoved(l) : next_at(l);
    while (r == LISTING_END) {
        r = may_continue(l) ? next_key(l) : LISTING_END;
        if (r == LISTING_END)
            return LISTING_END;
        if (r == 0)
            r = check_key(l);
    }
    return r < 0 ? tl_trace(r) : r;
}

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

static int add_dirent(void *context, struct slice dirent)
{
    struct listing *l = context;
    struct slice key = key_of(l, dirent);
    (void)omap_put(&l->dirents, key, SLICE_LIT(""));
    if (!is_directory(l, key)) /* the directory may exist only by documents below the relocated entry */
        (void)omap_put(&l->dirents, tree__join(&l->arena, key, delimiter_of(l)), SLICE_LIT(""));
    return 0;
}

static int begin_listing(struct listing *l)
{
    struct slice origin = l->path;
    int r = path_lookup_init(l->lookup.tree.view, l->lookup.tree.index, l->mapping, &l->lookup);
    if (r != 0)
        return tl_trace(r);
    l->renamed = l->lookup.path != NULL;
    l->lookup.path = mapping_path_field(l->mapping); /* without renames, origins equal paths */
    if (l->renamed && l->path.len > 0)
        r = tree_resolve(&l->lookup.tree, l->path, &l->arena, &origin);
    if (r < 0)
        return tl_trace(r);
    l->unresolved = r != 0;
    l->prefix = tree__join(&l->arena, origin, delimiter_of(l));
    r = l->renamed && !l->unresolved ? tree_each_dirent(&l->lookup.tree, l->prefix, add_dirent, l) : 0;
    return r < 0 ? tl_trace(r) : 0;
}

struct listing *listing_new(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                            struct slice after)
{
    REQUIRE(mapping_is_tree(mapping) && mapping_path_field(mapping) != NULL);
    struct listing *l = mem_zalloc(sizeof *l);
    view_cache_init(&l->cache, SPACE_TREE);
    l->view = *view;
    l->view.cache = &l->cache;
    l->lookup.tree = (struct tree){.view = &l->view, .index = index};
    l->mapping = mapping;
    l->arena = l->scan_arena = l->at_arena = ARENA_INIT;
    l->last = l->candidate_key = l->candidate_document = l->pushed_back_bytes = l->document_key =
        BUF_INIT(BUF_UNLIMITED);
    omap_init(&l->dirents);
    omap_init(&l->truncated);
    l->path = arena_copy(&l->arena, path);
    buf_slice(&l->last, after);
    l->has_last = after.len > 0;
    l->r = begin_listing(l);
    return l;
}

void listing_set_account(struct listing *l, struct account *account)
{
    REQUIRE(account != NULL && l->account == NULL);
    l->account = account;
    l->steps = NAME_STEPS + l->path.len * l->path.len / SQUARE_PER_STEP;
}

int listing_next(struct listing *l, struct listing_item *ret_item)
{
    REQUIRE(ret_item != NULL);
    int r = l->r;
    if (r == 0)
        r = l->unresolved ? LISTING_END : l->renamed ? next_checked(l) : next_unrenamed(l);
    if (r == 0)
        fill_item(l, ret_item);
    return r < 0 ? tl_trace(r) : r;
}

void listing_free(struct listing *l)
{
    if (l == NULL)
        return;
    release_doc(l);
    end_scan(l);
    end_at(l);
    omap_deinit(&l->dirents);
    omap_deinit(&l->truncated);
    buf_deinit(&l->last);
    buf_deinit(&l->candidate_key);
    buf_deinit(&l->candidate_document);
    buf_deinit(&l->pushed_back_bytes);
    buf_deinit(&l->document_key);
    arena_deinit(&l->arena);
    view_cache_deinit(&l->cache);
    mem_free(l);
}
