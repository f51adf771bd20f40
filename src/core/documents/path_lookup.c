/* SPDX-License-Identifier: Apache-2.0 */
/* Entries by birth; see path_lookup.h. */
#include "core/documents/path_lookup.h"

#include "core/tree/tree_record.h"
#include "mapping/analysis.h"
#include "mapping/entry.h"
#include "mapping/field.h"

int path_lookup_init(const struct view *view, uint32_t index, const struct mapping *mapping, struct path_lookup *ret_births)
{
    const struct mapping_field *path = mapping_path_field(mapping);
    struct path_lookup path_lookup = {.tree = {.view = view, .index = index}};
    tl_ts newest = 0;
    int r = 0;

    if (path != NULL && mapping_is_tree(mapping)) {
        path_lookup.tree.delimiter = mapping_path_delimiter(mapping);
        r = tree_last_rename(&path_lookup.tree, &newest, NULL);
    }
    path_lookup.path = newest != 0 ? path : NULL;
    *ret_births = path_lookup;
    return r < 0 ? tl_trace(r) : 0;
}

bool path_lookup_affects(const struct path_lookup *path_lookup, const struct mapping_field *field)
{
    return path_lookup->path != NULL && field->in_tree;
}

/* Whether a field's directories, if it has such, are those of the tree: a family may be cut in more ways than one. */
static bool cuts_alike(const struct path_lookup *path_lookup, const struct mapping_field *field)
{
    char delimiter = path_lookup->tree.delimiter;

    return field->type != FIELD_TEXT || field->analyzer == NULL || !analyzer_is_path(field->analyzer, &delimiter) ||
           delimiter == path_lookup->tree.delimiter;
}

bool path_lookup_can_find(const struct path_lookup *path_lookup, const struct mapping_field *field)
{
    return path_lookup_affects(path_lookup, field) && field_is_found(field) &&
           field_found_by(field)->number == path_lookup->path->number && cuts_alike(path_lookup, field);
}

/* Where ranges go. */
struct naming {
    const struct path_lookup *path_lookup;
    struct arena *arena;
    path_lookup_visit *visit;
    void *context;
};

static int name_range(const struct naming *naming, struct slice text, bool prefix)
{
    struct field_value *value = arena_zalloc(naming->arena, sizeof *value);
    struct entry_range range = {.index = naming->path_lookup->tree.index, .field = naming->path_lookup->path->number};

    *value = (struct field_value){.field = range.field, .kind = FIELD_VALUE_BYTES, .bytes = arena_copy(naming->arena, text)};
    range.low = value;
    range.high = prefix ? NULL : value;
    range.prefix = prefix;
    return naming->visit(naming->context, &range) ? 0 : PATH_LOOKUP_INCOMPLETE;
}

static struct slice directory_of(const struct naming *naming, struct slice birth)
{
    return tree__join(naming->arena, birth, slice_make(&naming->path_lookup->tree.delimiter, 1));
}

/* A birth, and all births below it. */
static int name_guest(void *context, struct slice birth)
{
    const struct naming *naming = context;
    int r = name_range(naming, birth, false);

    return r == 0 ? name_range(naming, directory_of(naming, birth), true) : r;
}

/* Finding nothing is no error: then nobody is there, or the view is too old. */
static int outcome_of(int r)
{
    return r == TREE_NOT_FOUND || r == TREE_TOO_OLD ? 0 : r;
}

/* tree_each_relocated() has outcomes of its own, which the visitor's must not be taken for. */
static int name_below(const struct naming *naming, struct slice prefix)
{
    int r = tree_each_relocated(&naming->path_lookup->tree, prefix, name_guest, (void *)(uintptr_t)naming);

    return r == TREE_TOO_OLD ? 0 : r;
}

int path_lookup_value(const struct path_lookup *path_lookup, struct slice value, bool below, struct arena *arena,
                    path_lookup_visit *visit, void *context)
{
    struct naming naming = {path_lookup, arena, visit, context};
    struct slice birth;
    int r = value.len == 0 ? TREE_NOT_FOUND : tree_resolve(&path_lookup->tree, value, arena, &birth);

    if (r != 0)
        return outcome_of(r);
    r = name_range(&naming, birth, false);
    if (r != 0 || !below)
        return r;
    struct slice directory = directory_of(&naming, birth);
    r = name_range(&naming, directory, true);
    return r == 0 ? name_below(&naming, directory) : r;
}

int path_lookup_prefix(const struct path_lookup *path_lookup, struct slice prefix, struct arena *arena, path_lookup_visit *visit,
                     void *context)
{
    struct naming naming = {path_lookup, arena, visit, context};
    struct slice directory = slice_make(prefix.data, tree_parent_length(prefix, path_lookup->tree.delimiter)), birth;
    int r = tree_resolve(&path_lookup->tree, directory, arena, &birth);

    if (r != 0)
        return outcome_of(r);
    struct slice place = tree__join(arena, birth, slice_from_offset(prefix, directory.len));
    r = name_range(&naming, place, true);
    return r == 0 ? name_below(&naming, place) : r;
}

/* --- Entries of a document ---------------------------------------------------------------------------------------- */

void path_lookup_rewrite_values(const struct mapping *mapping, const struct document *document, const struct doc *doc,
                struct field_value *values, size_t count)
{
    const struct mapping_field *field = mapping_path_field(mapping);

    if (!doc->path_tracked || field == NULL || slice_equal(document->path, doc->origin))
        return;
    for (size_t i = 0; i < count; i++)
        if (values[i].field == field->number && values[i].kind == FIELD_VALUE_BYTES &&
            slice_equal(values[i].bytes, document->path))
            values[i].bytes = doc->origin;
}

/* --- Whether anything lies there ---------------------------------------------------------------------------------- */

enum { STEPS_OF_ENTRY = 5000 }; /* and the document that it names */

struct looking {
    struct path_lookup path_lookup;
    const struct view *view;
    struct slice path;
    bool at, below; /* found */
    bool wants_below;
    bool begun; /* the first range, what was born right there, is behind it */
    struct account *account;
    size_t vain, most;  /* documents that lay elsewhere; how many may */
    struct arena arena; /* of the look */
    struct slice skip;  /* what is born below this lies elsewhere with it; data NULL: go on */
    int r;
};

/* Where a document lies, if renames can move it; data NULL: it cannot be said. */
static int path_of(const struct looking *look, const struct doc *doc, struct arena *arena, struct slice *ret_path)
{
    struct tree_totals standing;

    *ret_path = doc->origin;
    if (!doc->path_tracked || look->path_lookup.tree.view == NULL)
        return 0;
    int r = tree_locate(&look->path_lookup.tree, doc->origin, arena, ret_path, &standing);
    if (r == TREE_NOT_FOUND)
        *ret_path = SLICE_NONE;
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * A document lies elsewhere: finds the highest birth above it, below the path that is looked at, that lies elsewhere itself. All that is born below
 * that went along, or was renamed for itself, and is a guest then.
 */
static int find_skip(struct looking *look, struct slice birth, size_t above)
{
    const struct tree *tree = &look->path_lookup.tree;
    size_t last = tree_parent_length(birth, tree->delimiter);

    for (size_t end = tree__next_end(birth, above, tree->delimiter); end <= last;
         end = tree__next_end(birth, end, tree->delimiter)) {
        struct slice directory = slice_make(birth.data, end), path;
        struct tree_totals standing;
        struct tree_relocation moved;
        int r = tree__read_relocation(tree, directory, &look->arena, &moved);
        if (r != 0)
            return r < 0 ? tl_trace(r) : 0;
        if (moved.state == TREE_UNMOVED)
            continue;
        r = tree_locate(tree, directory, &look->arena, &path, &standing);
        if (r < 0)
            return tl_trace(r);
        if (r == TREE_NOT_FOUND || (r == 0 && !tree_within(path, look->path, tree->delimiter))) {
            look->skip = arena_copy(&look->arena, directory);
            return 0;
        }
    }
    return 0;
}

/* `above`: the length of the birth below which the range is; 0: it is no such range. */
static int look_at(struct looking *look, uint16_t field, const struct entry_hit *hit, size_t above)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice path;
    struct doc doc;
    int r = doc_get_key(look->view, look->path_lookup.tree.index, hit->document_key, &doc);

    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked && doc_entry_batch(&doc, field) == hit->batch) {
        r = path_of(look, &doc, &arena, &path);
        if (r == 0 && slice_equal(path, look->path))
            look->at = true;
        else if (r == 0 && path.data != NULL && tree_within(path, look->path, look->path_lookup.tree.delimiter))
            look->below = true;
        else if (r == 0 && ++look->vain > 0 && above > 0 && above < doc.origin.len)
            r = find_skip(look, doc.origin, above);
    }
    doc_release(&doc);
    return r;
}

/* A value beyond all that are born below a birth. */
static const struct field_value *value_beyond(struct looking *look, uint16_t field, struct slice birth)
{
    struct field_value *value = arena_zalloc(&look->arena, sizeof *value);
    char next = (char)(look->path_lookup.tree.delimiter + 1);

    *value = (struct field_value){
        .field = field, .kind = FIELD_VALUE_BYTES, .bytes = tree__join(&look->arena, birth, slice_make(&next, 1))};
    return value;
}

/* The rest of a range of all below a birth, behind what is to be passed over. */
static struct entry_range range_behind(struct looking *look, const struct entry_range *range, size_t above)
{
    struct slice directory = slice_make(range->low->bytes.data, above);

    return (struct entry_range){.index = range->index,
                                .field = range->field,
                                .low = value_beyond(look, range->field, look->skip),
                                .high = value_beyond(look, range->field, directory),
                                .high_exclusive = true};
}

/* Looks through a range until it has what that range can have. */
static bool look_through(void *context, const struct entry_range *range)
{
    struct looking *look = context;
    const bool *found = look->begun ? &look->below : &look->at;
    struct entry_hit hit;

    look->begun = true;
    if (*found)
        return true;
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(look->view, range);
    /* Values are cut beyond some length, and in no order there. */
    size_t above = range->prefix && range->low->bytes.len > 1 ? range->low->bytes.len - 1 : 0;
    int r = 0;
    while (r == 0 && !*found && account_take(look->account, STEPS_OF_ENTRY)) {
        r = entry_scan_next(scan, &hit);
        if (r == 0)
            r = look_at(look, range->field, &hit, above);
        if (r == 0 && look->vain > look->most)
            r = PATH_LOOKUP_INCOMPLETE;
        if (r == 0 && look->skip.data != NULL && look->skip.len < ENTRY_VALUE_CHARACTERS_MAX) {
            struct entry_range rest = range_behind(look, range, above);
            entry_scan_free(scan);
            scan = entry_scan_new(look->view, &rest);
        }
        look->skip = SLICE_NONE;
    }
    if (r < 0 || look->vain > look->most)
        look->r = r;
    bool over = look->account != NULL && account_ended(look->account);
    return r >= 0 && look->vain <= look->most && !over && !(look->at && (look->below || !look->wants_below));
}

static int look_for(struct looking *look, uint32_t index, const struct mapping *mapping)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    int r = path_lookup_init(look->view, index, mapping, &look->path_lookup);

    if (r != 0)
        return tl_trace(r);
    look->path_lookup.path = mapping_path_field(mapping); /* without renames, births are paths */
    r = path_lookup_value(&look->path_lookup, look->path, look->wants_below, &arena, look_through, look);
    arena_deinit(&look->arena);
    return r < 0 || look->r < 0 ? tl_trace(r < 0 ? r : look->r) : look->r;
}

int path_lookup_exists(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
               struct account *account, bool *ret_at, bool *ret_below)
{
    struct looking look = {
        .view = view, .path = path, .wants_below = ret_below != NULL, .account = account, .most = SIZE_MAX - 1};
    int r = look_for(&look, index, mapping);

    *ret_at = look.at;
    if (ret_below != NULL)
        *ret_below = look.below;
    return r;
}

int path_lookup_exists_within(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                      size_t most, bool *ret_at, bool *ret_below, size_t *ret_vain)
{
    struct looking look = {.view = view, .path = path, .wants_below = true, .most = most};
    int r = look_for(&look, index, mapping);

    *ret_at = look.at;
    *ret_below = look.below;
    *ret_vain = look.vain;
    return r;
}

/* --- What changed last -------------------------------------------------------------------------------------------- */

struct newest {
    struct looking look;
    size_t seen;
    int64_t seq_no;
};

static int count_at(struct newest *newest, uint16_t field, const struct entry_hit *hit)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    const struct looking *look = &newest->look;
    struct slice path;
    struct doc doc;
    int r = doc_get_key(look->view, look->path_lookup.tree.index, hit->document_key, &doc);

    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked && doc_entry_batch(&doc, field) == hit->batch) {
        r = newest->seen++ >= PATH_LOOKUP_SEQ_NO_DOCUMENTS_MAX ? PATH_LOOKUP_INCOMPLETE : path_of(look, &doc, &arena, &path);
        if (r == 0 && slice_equal(path, look->path) && doc.seq_no > newest->seq_no)
            newest->seq_no = doc.seq_no;
    }
    doc_release(&doc);
    return r;
}

static bool count_range(void *context, const struct entry_range *range)
{
    struct newest *newest = context;
    struct entry_hit hit;
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(newest->look.view, range);
    int r = 0;

    while (r == 0) {
        r = entry_scan_next(scan, &hit);
        if (r == 0)
            r = count_at(newest, range->field, &hit);
        else if (r == ENTRY_SCAN_END)
            return true;
    }
    newest->look.r = r;
    return false;
}

int path_lookup_max_seq_no(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                  int64_t *ret_seq_no)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct newest newest = {.look = {.view = view, .path = path}, .seq_no = -1};
    struct path_lookup *path_lookup = &newest.look.path_lookup;
    int r = path_lookup_init(view, index, mapping, path_lookup);

    path_lookup->path = mapping_path_field(mapping); /* without renames, births are paths */
    if (r == 0)
        r = path_lookup_value(path_lookup, path, false, &arena, count_range, &newest);
    if (r < 0 || newest.look.r < 0)
        return tl_trace(r < 0 ? r : newest.look.r);
    *ret_seq_no = newest.seq_no;
    return newest.look.r;
}

/* --- How long paths are ------------------------------------------------------------------------------------------- */

struct longest {
    struct looking look;
    size_t seen;
    size_t bytes;
};

static int measure(struct longest *longest, uint16_t field, const struct entry_hit *hit)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    const struct looking *look = &longest->look;
    struct slice path;
    struct doc doc;
    int r = doc_get_key(look->view, look->path_lookup.tree.index, hit->document_key, &doc);

    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked && doc_entry_batch(&doc, field) == hit->batch) {
        r = longest->seen++ >= PATH_LOOKUP_LONGEST_MAX ? PATH_LOOKUP_INCOMPLETE : path_of(look, &doc, &arena, &path);
        if (r == 0 && path.len > longest->bytes && tree_within(path, look->path, look->path_lookup.tree.delimiter))
            longest->bytes = path.len;
    }
    doc_release(&doc);
    return r;
}

static bool measure_range(void *context, const struct entry_range *range)
{
    struct longest *longest = context;
    struct entry_hit hit;
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(longest->look.view, range);
    int r = longest->seen++ >= PATH_LOOKUP_LONGEST_MAX ? PATH_LOOKUP_INCOMPLETE : 0;

    while (r == 0) {
        r = entry_scan_next(scan, &hit);
        if (r == 0)
            r = measure(longest, range->field, &hit);
        else if (r == ENTRY_SCAN_END)
            return true;
    }
    longest->look.r = r;
    return false;
}

int path_lookup_longest_path(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                   size_t *ret_longest)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct longest longest = {.look = {.view = view, .path = path}};
    struct path_lookup *path_lookup = &longest.look.path_lookup;
    int r = path_lookup_init(view, index, mapping, path_lookup);

    path_lookup->path = mapping_path_field(mapping); /* without renames, births are paths */
    if (r == 0)
        r = path_lookup_value(path_lookup, path, true, &arena, measure_range, &longest);
    if (r < 0 || longest.look.r < 0)
        return tl_trace(r < 0 ? r : longest.look.r);
    *ret_longest = longest.bytes;
    return longest.look.r;
}

/* --- Versions that no rename can raise ---------------------------------------------------------------------------- */

/* Whether a document lies there and has the highest version; 0, 1, fatal codes. */
static int is_highest(const struct looking *look, struct slice document)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice path = SLICE_NONE;
    struct doc doc;
    int r = doc_get_key(look->view, look->path_lookup.tree.index, document, &doc);

    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked && doc.version == INT64_MAX)
        r = path_of(look, &doc, &arena, &path);
    if (r == 0)
        r = path.data != NULL && tree_within(path, look->path, look->path_lookup.tree.delimiter);
    doc_release(&doc);
    return r;
}

int path_lookup_max_version(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                   struct arena *arena, struct slice *ret_id)
{
    tl_cleanup(buf_deinit) struct buf lower = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(BUF_UNLIMITED);
    struct looking look = {.view = view, .path = path};
    size_t seen = 0;
    int r = path_lookup_init(view, index, mapping, &look.path_lookup);

    *ret_id = SLICE_NONE;
    tree_high_bounds(&lower, &upper, index);
    struct view_iter *iter = view_iter_new(view, SPACE_TREE, buf_as_slice(&lower), buf_as_slice(&upper));
    view_iter_seek_first(iter);
    while (r == 0 && ret_id->data == NULL && view_iter_valid(iter)) {
        struct slice document = tree_key_text(view_iter_key(iter));
        r = ++seen > PATH_LOOKUP_HIGH_VERSIONS_MAX ? PATH_LOOKUP_INCOMPLETE : is_highest(&look, document);
        if (r == 1 && seen <= PATH_LOOKUP_HIGH_VERSIONS_MAX) {
            *ret_id = arena_copy(arena, slice_from_offset(document, DOC_KEY_PREFIX_BYTES - sizeof(index)));
            r = 0;
        }
        view_iter_next(iter);
    }
    if (r == 0)
        r = view_iter_status(iter);
    view_iter_free(iter);
    return r < 0 ? tl_trace(r) : r;
}
