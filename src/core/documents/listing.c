/* SPDX-License-Identifier: Apache-2.0 */
/* Listing a directory; see listing.h. */
#include "core/documents/listing.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/omap.h"
#include "core/documents/path_lookup.h"
#include "core/tree/tree.h"

/* What an entry names: the key of something born right in the directory, and the document that it is, or that lies below it. */
struct born {
    struct slice key;
    struct slice document_key;
    uint64_t batch;
};

struct listing {
    struct view_cache cache; /* of trees: every document and every name asks for the same records */
    struct view view;
    struct path_lookup path_lookup;
    struct account *account; /* NULL: none */
    uint64_t steps;          /* of it, for each name that is looked at */
    bool renamed; /* something was, in the view */
    struct arena arena;
    struct slice path;
    struct slice prefix; /* what everything right in it is born with */
    bool nowhere;        /* nothing can lie in it */
    struct buf last;     /* the key that is behind us: */
    bool has_last;       /* ... there is one */
    bool met;            /* ... this listing has handed it out */
    bool home;           /* ... it is a file's, which lies where it was born: its entries are its documents */
    struct omap guests;  /* keys that guests of its places may have; where something was renamed */

    struct entry_scan *scan; /* over the entries of what is born in it; NULL: to be begun behind `last` */
    struct arena scan_arena;
    bool ended;
    bool has_born; /* `born` is not used yet */
    struct born born;
    struct buf born_key;
    struct buf born_document;
    struct omap
        run; /* key, zero, document key, batch, to the length of the key: of entries with one value, which was cut */
    bool has_held; /* the entry behind them: */
    struct entry_hit held;
    struct buf held_bytes;

    const struct mapping *mapping;
    struct entry_scan *at; /* over the documents at `last`; NULL: none are left */
    struct slice at_birth;
    struct arena at_arena;
    int r; /* a fatal code that is still to be told */
    bool has_doc;
    struct doc doc;
    struct buf document_key;
};

/* --- The entries of what is born in it ---------------------------------------------------------------------------- */

/*
 * To find where something lies each directory on the way to it is asked for, by all of its path: steps grow with the square of that. On the way to 64 KB
 * they are as many as a hundredth of a second.
 */
enum { NAME_STEPS = 500, SQUARE_PER_STEP = 128 };

static bool goes_on(const struct listing *l)
{
    return account_take(l->account, l->steps);
}

static struct slice delimiter_of(const struct listing *l)
{
    return slice_make(&l->path_lookup.tree.delimiter, 1);
}

/* The key of a thing that has this path, or that lies below it. Requires: it begins with the prefix. */
static struct slice key_of(const struct listing *l, struct slice text)
{
    struct slice rest = slice_from_offset(text, l->prefix.len);
    size_t len = slice_find_byte(rest, l->path_lookup.tree.delimiter);
    return slice_make(rest.data, len < rest.len ? len + 1 : rest.len);
}

static bool is_directory(const struct listing *l, struct slice key)
{
    return key.len > 0 && key.data[key.len - 1] == l->path_lookup.tree.delimiter;
}

/* Begins at the last key: of a directory, behind all that lies in it. */
static void begin_scan(struct listing *l)
{
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
        .field = l->path_lookup.path->number, .kind = FIELD_VALUE_BYTES, .bytes = slice_make(text, l->prefix.len + key.len)};
    struct entry_range range = {.index = l->path_lookup.tree.index, .field = low->field, .low = low};
    l->scan = entry_scan_new(l->path_lookup.tree.view, &range);
}

static void end_scan(struct listing *l)
{
    entry_scan_free(l->scan);
    l->scan = NULL;
    arena_deinit(&l->scan_arena);
    l->scan_arena = ARENA_INIT;
}

static void set_born(struct listing *l, struct slice key, struct slice document_key, uint64_t batch)
{
    buf_clear(&l->born_key);
    buf_slice(&l->born_key, key);
    buf_clear(&l->born_document);
    buf_slice(&l->born_document, document_key);
    l->born = (struct born){buf_as_slice(&l->born_key), buf_as_slice(&l->born_document), batch};
    l->has_born = true;
}

/* Where an entry's value was cut, its document says the rest. They are put in order before any is handed out. */
static int take_cut(struct listing *l, const struct entry_hit *hit)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct doc doc;
    int r = doc_get_key(l->path_lookup.tree.view, l->path_lookup.tree.index, hit->document_key, &doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked && slice_starts_with(doc.origin, l->prefix) &&
        doc_entry_batch(&doc, l->path_lookup.path->number) == hit->batch) {
        struct slice key = key_of(l, doc.origin);
        char len[4] = {(char)(key.len >> 24), (char)(key.len >> 16), (char)(key.len >> 8), (char)key.len};
        buf_slice(&text, key);
        buf_byte(&text, '\0');
        buf_slice(&text, hit->document_key);
        buf_u64be(&text, hit->batch);
        (void)omap_put(&l->run, buf_as_slice(&text), slice_make(len, sizeof len));
    }
    doc_release(&doc);
    return 0;
}

static bool take_from_run(struct listing *l)
{
    struct omap_entry *first = omap_first(&l->run);
    if (first == NULL)
        return false;
    struct slice all = omap_key(first), len = omap_value(first);
    uint32_t key_len = 0;
    uint64_t batch = 0;
    (void)slice_take_u32be(&len, &key_len);
    struct slice tail = slice_make(all.data + all.len - 8, 8);
    (void)slice_take_u64be(&tail, &batch);
    set_born(l, slice_make(all.data, key_len), slice_make(all.data + key_len + 1, all.len - key_len - 9), batch);
    (void)omap_remove(&l->run, all);
    return true;
}

/* Whether an entry's value can tell what is born: the key must stand in it as a whole. */
enum said { SAID, SAID_IN_DOCUMENT, SAID_NOTHING, SAID_ALL };
static enum said says(const struct listing *l, struct slice text, bool cut)
{
    size_t len = text.len < l->prefix.len ? text.len : l->prefix.len;
    int order = slice_compare(slice_make(text.data, len), slice_make(l->prefix.data, len));
    if (order != 0)
        return order < 0 ? SAID_NOTHING : SAID_ALL;
    if (text.len < l->prefix.len)
        return cut ? SAID_IN_DOCUMENT : SAID_NOTHING;
    return cut && !is_directory(l, key_of(l, text)) ? SAID_IN_DOCUMENT : SAID;
}

/* Keeps an entry for later. */
static void hold(struct listing *l, const struct entry_hit *hit)
{
    buf_clear(&l->held_bytes);
    buf_slice(&l->held_bytes, hit->document_key);
    buf_slice(&l->held_bytes, hit->value);
    struct slice bytes = buf_as_slice(&l->held_bytes);
    l->held = *hit;
    l->held.document_key = slice_make(bytes.data, hit->document_key.len);
    l->held.value = slice_from_offset(bytes, hit->document_key.len);
    l->has_held = true;
}

static int next_entry(struct listing *l, struct entry_hit *ret_hit)
{
    *ret_hit = l->held;
    int r = l->has_held ? 0 : entry_scan_next(l->scan, ret_hit);
    l->has_held = false;
    return r;
}

/* Gathers the documents of all entries that have the value of this one. */
static int take_run(struct listing *l, const struct entry_hit *first)
{
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);
    struct entry_hit hit = *first;
    buf_slice(&value, first->value);
    int r = 0;
    while (r == 0 && slice_equal(hit.value, buf_as_slice(&value)) && goes_on(l)) {
        r = take_cut(l, &hit);
        if (r == 0)
            r = next_entry(l, &hit);
    }
    if (r == 0)
        hold(l, &hit);
    return r;
}

/* Takes the next entry, or those of one value. Returns: 0; ENTRY_SCAN_END; fatal codes. */
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
    switch (says(l, value.bytes, hit.cut)) {
    case SAID: set_born(l, key_of(l, value.bytes), hit.document_key, hit.batch); return 0;
    case SAID_IN_DOCUMENT: return take_run(l, &hit);
    case SAID_NOTHING: return 0;
    default: return ENTRY_SCAN_END;
    }
}

/* Finds what is born in it, from the last key on. Returns: 0, and it has_born; LISTING_END; fatal codes. */
static int find_born(struct listing *l)
{
    while (!l->has_born && !take_from_run(l)) {
        if (l->ended || !goes_on(l))
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

/* --- What lies in it ---------------------------------------------------------------------------------------------- */

static void pass(struct listing *l, struct slice key)
{
    buf_clear(&l->last);
    buf_slice(&l->last, key);
    l->has_last = l->met = true;
}

/* What is born below a directory that is behind us is stepped over. */
static void step_over(struct listing *l, bool directory)
{
    l->has_born = false;
    if (directory && l->run.count == 0 && !l->ended && !l->has_held)
        end_scan(l);
}

static struct slice name_of(const struct listing *l, struct slice key)
{
    return slice_make(key.data, key.len - is_directory(l, key));
}

static void hand_out(struct listing *l, struct listing_item *item)
{
    struct slice key = buf_as_slice(&l->last);
    *item = (struct listing_item){.key = key, .name = name_of(l, key), .directory = is_directory(l, key)};
    if (!item->directory) {
        item->document_key = buf_as_slice(&l->document_key);
        item->doc = &l->doc;
    }
}

/* Reads the document of an entry, if it is one still. Returns: 0; DOC_NOT_FOUND; fatal codes. */
static int read_doc(struct listing *l, struct slice document_key, uint64_t batch)
{
    int r = doc_get_key(l->path_lookup.tree.view, l->path_lookup.tree.index, document_key, &l->doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : DOC_NOT_FOUND;
    l->has_doc = true;
    if (!l->doc.path_tracked || doc_entry_batch(&l->doc, l->path_lookup.path->number) != batch)
        return DOC_NOT_FOUND;
    buf_clear(&l->document_key);
    buf_slice(&l->document_key, document_key);
    return 0;
}

static void let_go(struct listing *l)
{
    if (l->has_doc)
        doc_release(&l->doc);
    l->has_doc = false;
}

/* Nothing was renamed: what is born there lies there. Returns: 0; LISTING_END; fatal codes. */
static int next_at_home(struct listing *l)
{
    for (;;) {
        let_go(l);
        int r = find_born(l);
        if (r != 0)
            return r;
        struct slice key = l->born.key;
        bool directory = is_directory(l, key);
        int order = l->has_last ? slice_compare(key, buf_as_slice(&l->last)) : 1;
        if (order < 0 || (order == 0 && (directory || !l->met))) {
            step_over(l, directory && order == 0);
            continue;
        }
        r = read_doc(l, l->born.document_key, l->born.batch);
        if (r < 0)
            return tl_trace(r);
        l->has_born = false;
        if (r != 0)
            continue;
        pass(l, key);
        step_over(l, directory);
        return 0;
    }
}

static bool take_first_range(void *context, const struct entry_range *range)
{
    struct listing *l = context;
    l->at = entry_scan_new(l->path_lookup.tree.view, range);
    l->at_birth = range->low->bytes;
    return false;
}

static void end_at(struct listing *l)
{
    entry_scan_free(l->at);
    l->at = NULL;
    arena_deinit(&l->at_arena);
    l->at_arena = ARENA_INIT;
}

/* The next document at the last key. Returns: 0; LISTING_END; fatal codes. */
static int next_at(struct listing *l)
{
    struct entry_hit hit;
    int r = 0;
    while (l->at != NULL && r == 0 && goes_on(l)) {
        let_go(l);
        r = entry_scan_next(l->at, &hit);
        if (r != 0)
            break;
        r = read_doc(l, hit.document_key, hit.batch);
        if (r == 0 && slice_equal(l->doc.origin, l->at_birth))
            return 0;
        r = r < 0 ? r : 0;
    }
    end_at(l);
    return r < 0 ? tl_trace(r) : LISTING_END;
}

/* Whether the last key's name is that of something which lies where it was born. 0; fatal codes. */
static int is_home(const struct listing *l, bool *ret_home)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice place = tree__join(&arena, l->prefix, name_of(l, buf_as_slice(&l->last))), birth;
    int r = tree__origin_at(&l->path_lookup.tree, place, &arena, &birth);
    *ret_home = r == 0 && slice_equal(birth, place);
    return r < 0 ? tl_trace(r) : 0;
}

/* Whether the document of an entry lies below the last key's directory, and was not renamed out of it. 0; fatal codes. */
static int lies_below(struct listing *l, const struct born *born, struct slice path, bool *ret_below)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree_totals standing;
    struct slice at;
    int r = read_doc(l, born->document_key, born->batch);
    if (r == 0)
        r = tree_locate(&l->path_lookup.tree, l->doc.origin, &arena, &at, &standing);
    *ret_below = r == 0 && at.len > path.len && tree_within(at, path, l->path_lookup.tree.delimiter);
    let_go(l);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * The next document of a file that lies where it was born: by the entries at hand. Returns: 0; LISTING_END: what is at hand is another key's;
 * fatal codes.
 */
static int next_of_home(struct listing *l)
{
    while (l->home && goes_on(l)) {
        let_go(l);
        int r = find_born(l);
        if (r < 0)
            return tl_trace(r);
        l->home = r == 0 && slice_equal(l->born.key, buf_as_slice(&l->last));
        if (!l->home)
            break;
        r = read_doc(l, l->born.document_key, l->born.batch);
        l->has_born = false;
        if (r <= 0)
            return r;
    }
    return LISTING_END;
}

/* The next key that may have something. Returns: 0; LISTING_END; fatal codes. */
static int next_key(struct listing *l)
{
    for (;;) {
        int r = goes_on(l) ? find_born(l) : LISTING_END;
        if (r < 0)
            return tl_trace(r);
        if (l->account != NULL && account_ended(l->account))
            return LISTING_END;
        struct slice last = buf_as_slice(&l->last);
        struct omap_entry *guest = l->has_last ? omap_seek(&l->guests, last) : omap_first(&l->guests);
        if (guest != NULL && l->has_last && slice_equal(omap_key(guest), last))
            guest = omap_next(guest);
        if (r == LISTING_END && guest == NULL)
            return LISTING_END;
        if (r == 0 && l->has_last && slice_compare(l->born.key, last) <= 0) {
            step_over(l, is_directory(l, l->born.key) && slice_equal(l->born.key, last));
            continue;
        }
        bool born = r == 0 && (guest == NULL || slice_compare(l->born.key, omap_key(guest)) <= 0);
        pass(l, born ? l->born.key : omap_key(guest));
        return 0;
    }
}

/* Asks whether something lies at the last key's path. Returns: 0; LISTING_END: no; fatal codes. */
static int ask(struct listing *l)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice key = buf_as_slice(&l->last);
    struct slice path = tree__join(&arena, tree__join(&arena, l->path, delimiter_of(l)), name_of(l, key));
    bool at, below = false, born = l->has_born && slice_equal(l->born.key, key), home = false;
    int r = born ? is_home(l, &home) : 0;
    l->home = home && !is_directory(l, key);
    if (r < 0 || l->home)
        return r < 0 ? tl_trace(r) : next_of_home(l);
    if (home) /* as a rule what was born in a directory is there still */
        r = lies_below(l, &l->born, path, &below);
    if (born)
        step_over(l, is_directory(l, key));
    if (r == 0 && !below && is_directory(l, key))
        r = path_lookup_exists(&l->view, l->path_lookup.tree.index, l->mapping, path, l->account, &at, &below);
    else if (r == 0 && !below)
        r = path_lookup_value(&l->path_lookup, path, false, &l->at_arena, take_first_range, l);
    if (r < 0)
        return tl_trace(r);
    return below ? 0 : next_at(l);
}

/* Something was renamed: each name is asked about. Returns: 0; LISTING_END; fatal codes. */
static int next_asked(struct listing *l)
{
    int r = l->home ? next_of_home(l) : next_at(l);
    while (r == LISTING_END) {
        r = goes_on(l) ? next_key(l) : LISTING_END;
        if (r == LISTING_END)
            return LISTING_END;
        if (r == 0)
            r = ask(l);
    }
    return r < 0 ? tl_trace(r) : r;
}

/* --- Beginning and ending ----------------------------------------------------------------------------------------- */

static int add_guest(void *context, struct slice place)
{
    struct listing *l = context;
    struct slice key = key_of(l, place);
    (void)omap_put(&l->guests, key, SLICE_LIT(""));
    if (!is_directory(l, key)) /* of one that lies deeper, nothing else need be born in the directory on the way */
        (void)omap_put(&l->guests, tree__join(&l->arena, key, delimiter_of(l)), SLICE_LIT(""));
    return 0;
}

static int begin(struct listing *l)
{
    struct slice birth = l->path;
    int r = path_lookup_init(l->path_lookup.tree.view, l->path_lookup.tree.index, l->mapping, &l->path_lookup);
    if (r != 0)
        return tl_trace(r);
    l->renamed = l->path_lookup.path != NULL;
    l->path_lookup.path = mapping_path_field(l->mapping); /* without renames, births are paths */
    if (l->renamed && l->path.len > 0)
        r = tree_resolve(&l->path_lookup.tree, l->path, &l->arena, &birth);
    if (r < 0)
        return tl_trace(r);
    l->nowhere = r != 0;
    l->prefix = tree__join(&l->arena, birth, delimiter_of(l));
    r = l->renamed && !l->nowhere ? tree_each_dirent(&l->path_lookup.tree, l->prefix, add_guest, l) : 0;
    return r < 0 ? tl_trace(r) : 0;
}

struct listing *listing_new(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                            struct slice after)
{
    struct listing *l = mem_zalloc(sizeof *l);
    view_cache_init(&l->cache, SPACE_TREE);
    l->view = *view;
    l->view.cache = &l->cache;
    l->path_lookup.tree = (struct tree){.view = &l->view, .index = index};
    l->mapping = mapping;
    l->arena = l->scan_arena = l->at_arena = ARENA_INIT;
    l->last = l->born_key = l->born_document = l->held_bytes = l->document_key = BUF_INIT(BUF_UNLIMITED);
    omap_init(&l->guests);
    omap_init(&l->run);
    l->path = arena_copy(&l->arena, path);
    buf_slice(&l->last, after);
    l->has_last = after.len > 0;
    l->r = begin(l);
    return l;
}

void listing_set_account(struct listing *l, struct account *account)
{
    l->account = account;
    l->steps = NAME_STEPS + l->path.len * l->path.len / SQUARE_PER_STEP;
}

int listing_next(struct listing *l, struct listing_item *ret_item)
{
    int r = l->r;
    if (r == 0)
        r = l->nowhere ? LISTING_END : l->renamed ? next_asked(l) : next_at_home(l);
    if (r == 0)
        hand_out(l, ret_item);
    return r < 0 ? tl_trace(r) : r;
}

void listing_free(struct listing *l)
{
    if (l == NULL)
        return;
    let_go(l);
    end_scan(l);
    end_at(l);
    omap_deinit(&l->guests);
    omap_deinit(&l->run);
    buf_deinit(&l->last);
    buf_deinit(&l->born_key);
    buf_deinit(&l->born_document);
    buf_deinit(&l->held_bytes);
    buf_deinit(&l->document_key);
    arena_deinit(&l->arena);
    view_cache_deinit(&l->cache);
    mem_free(l);
}
