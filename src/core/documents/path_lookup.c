/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups by origin; see path_lookup.h. */
#include "core/documents/path_lookup.h"

#include "base/check.h"
#include "core/tree/tree_record.h"
#include "mapping/analysis.h"
#include "mapping/entry.h"
#include "mapping/field.h"

int path_lookup_init(const struct view *view, uint32_t index, const struct mapping *mapping,
                     struct path_lookup *ret_lookup)
{
    REQUIRE(view != NULL && mapping != NULL);
    const struct mapping_field *path = mapping_path_field(mapping);
    struct path_lookup lookup = {.tree = {.view = view, .index = index}};
    tl_ts last_rename = 0;
    int r = 0;

    if (path != NULL && mapping_is_tree(mapping)) {
        lookup.tree.delimiter = mapping_path_delimiter(mapping);
        r = tree_last_rename(&lookup.tree, &last_rename, NULL);
    }
    lookup.path = last_rename != 0 ? path : NULL;
    *ret_lookup = lookup;
    return r < 0 ? tl_trace(r) : 0;
}

bool path_lookup_affects(const struct path_lookup *lookup, const struct mapping_field *field)
{
    return lookup->path != NULL && field->in_tree;
}

/*
 * Whether the field divides paths as the tree does. An analyzed field of the multi-field group may
 * use another delimiter.
 */
static bool has_tree_delimiter(const struct path_lookup *lookup, const struct mapping_field *field)
{
    char delimiter = lookup->tree.delimiter;

    return field->type != FIELD_TEXT || field->analyzer == NULL || !analyzer_is_path(field->analyzer, &delimiter) ||
           delimiter == lookup->tree.delimiter;
}

bool path_lookup_can_find(const struct path_lookup *lookup, const struct mapping_field *field)
{
    return path_lookup_affects(lookup, field) && field_is_covered(field) &&
           field_covering(field)->number == lookup->path->number && has_tree_delimiter(lookup, field);
}

/* The receiver of the ranges, and where they are allocated. */
struct range_visitor {
    const struct path_lookup *lookup;
    struct arena *arena;
    path_lookup_visit *visit;
    void *context;
};

static int visit_range(const struct range_visitor *visitor, struct slice text, bool prefix)
{
    REQUIRE(visitor->lookup->path != NULL);
    struct field_value *value = arena_zalloc(visitor->arena, sizeof *value);
    struct entry_range range = {.index = visitor->lookup->tree.index, .field = visitor->lookup->path->number};

    *value = (struct field_value){
        .field = range.field, .kind = FIELD_VALUE_BYTES, .bytes = arena_copy(visitor->arena, text)};
    range.low = value;
    range.high = prefix ? NULL : value;
    range.prefix = prefix;
    return visitor->visit(visitor->context, &range) ? 0 : PATH_LOOKUP_INCOMPLETE;
}

static struct slice directory_prefix(const struct range_visitor *visitor, struct slice origin)
{
    return tree__join(visitor->arena, origin, slice_make(&visitor->lookup->tree.delimiter, 1));
}

/* Visits the ranges of an origin and of all origins below it. */
static int visit_relocated(void *context, struct slice origin)
{
    const struct range_visitor *visitor = context;
    int r = visit_range(visitor, origin, false);

    return r == 0 ? visit_range(visitor, directory_prefix(visitor, origin), true) : r;
}

/* An unresolvable path, or a view below the history limit, yields no ranges and is no error. */
static int outcome_of(int r)
{
    return r == TREE_NOT_FOUND || r == TREE_TOO_OLD ? 0 : r;
}

static int visit_relocated_below(const struct range_visitor *visitor, struct slice prefix)
{
    return outcome_of(tree_each_relocated(&visitor->lookup->tree, prefix, visit_relocated, (void *)(uintptr_t)visitor));
}

int path_lookup_value(const struct path_lookup *lookup, struct slice value, bool below, struct arena *arena,
                      path_lookup_visit *visit, void *context)
{
    REQUIRE(lookup->path != NULL && visit != NULL);
    struct range_visitor visitor = {lookup, arena, visit, context};
    struct slice origin;
    int r = value.len == 0 ? TREE_NOT_FOUND : tree_resolve(&lookup->tree, value, arena, &origin);

    if (r != 0)
        return outcome_of(r);
    r = visit_range(&visitor, origin, false);
    if (r != 0 || !below)
        return r;
    struct slice directory = directory_prefix(&visitor, origin);
    r = visit_range(&visitor, directory, true);
    return r == 0 ? visit_relocated_below(&visitor, directory) : r;
}

int path_lookup_prefix(const struct path_lookup *lookup, struct slice prefix, struct arena *arena,
                       path_lookup_visit *visit, void *context)
{
    REQUIRE(lookup->path != NULL && visit != NULL);
    struct range_visitor visitor = {lookup, arena, visit, context};
    struct slice directory = slice_make(prefix.data, tree_parent_length(prefix, lookup->tree.delimiter)), origin;
    int r = tree_resolve(&lookup->tree, directory, arena, &origin);

    if (r != 0)
        return outcome_of(r);
    struct slice dirent = tree__join(arena, origin, slice_from_offset(prefix, directory.len));
    r = visit_range(&visitor, dirent, true);
    return r == 0 ? visit_relocated_below(&visitor, dirent) : r;
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

/* --- Existence ---------------------------------------------------------------------------------------------------- */

enum { ENTRY_STEPS = 5000 }; /* work of reading an entry and its document */

struct path_search {
    struct path_lookup lookup;
    const struct view *view;
    struct slice path;
    bool at, below; /* found so far */
    bool find_below;
    bool begun; /* the first range was searched: the origin itself */
    struct account *account;
    size_t misses, misses_max; /* documents read that were elsewhere; their limit */
    size_t *reads_left;        /* entries and directory entries that may still be read; NULL: no limit */
    struct arena *keys;        /* for those of the documents found; NULL: not wanted */
    struct slice document_key, below_key;
    struct arena arena; /* of the search */
    struct slice skip;  /* a relocated directory: the scan skips the origins below it; data NULL: none */
    int r;
};

/* Finds the current path of a document; data NULL: its origin is detached. */
static int path_of(const struct path_search *search, const struct doc *doc, struct arena *arena, struct slice *ret_path)
{
    struct tree_totals totals;

    *ret_path = doc->origin;
    if (!doc->path_tracked || search->lookup.tree.view == NULL)
        return 0;
    int r = tree_locate(&search->lookup.tree, doc->origin, arena, ret_path, &totals);
    if (r == TREE_NOT_FOUND)
        *ret_path = SLICE_NONE;
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Reads the document of an entry.
 * Returns: 1, it is path-tracked and still has the entry; release it; 0: no; fatal codes.
 */
static int read_document(const struct path_search *search, uint16_t field, const struct entry_hit *hit,
                         struct doc *ret_doc)
{
    int r = doc_get_key(search->view, search->lookup.tree.index, hit->document_key, ret_doc);

    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (ret_doc->path_tracked && doc_entry_batch(ret_doc, field) == hit->batch)
        return 1;
    doc_release(ret_doc);
    return 0;
}

/*
 * After a document that is elsewhere: finds the topmost origin above it, but below the searched
 * one, that is elsewhere itself. The origins below that one moved along, or are relocated and have
 * their own ranges.
 */
static int find_skip(struct path_search *search, struct slice origin, size_t above)
{
    REQUIRE(above < origin.len);
    const struct tree *tree = &search->lookup.tree;
    size_t last = tree_parent_length(origin, tree->delimiter);

    for (size_t end = tree__next_end(origin, above, tree->delimiter); end <= last;
         end = tree__next_end(origin, end, tree->delimiter)) {
        struct slice directory = slice_make(origin.data, end), path;
        struct tree_totals totals;
        struct tree_relocation relocation;
        int r = tree__read_relocation(tree, directory, &search->arena, &relocation);
        if (r != 0)
            return r < 0 ? tl_trace(r) : 0;
        if (relocation.state == TREE_UNMOVED)
            continue;
        r = tree_locate(tree, directory, &search->arena, &path, &totals);
        if (r < 0)
            return tl_trace(r);
        if (r == TREE_NOT_FOUND || (r == 0 && !tree_within(path, search->path, tree->delimiter))) {
            search->skip = arena_copy(&search->arena, directory);
            return 0;
        }
    }
    return 0;
}

static void record_found(struct path_search *search, bool *which, struct slice *key, struct slice document_key)
{
    if (search->keys != NULL && !*which)
        *key = arena_copy(search->keys, document_key);
    *which = true;
}

/* Counts a read. Returns: whether the limit of reads allows it. */
static bool may_read(struct path_search *search)
{
    if (search->reads_left == NULL)
        return true;
    if (*search->reads_left == 0)
        return false;
    --*search->reads_left;
    return true;
}

/* `above`: length of the origin whose descendants the range contains; 0: another kind of range. */
static int check_entry(struct path_search *search, uint16_t field, const struct entry_hit *hit, size_t above)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice path;
    struct doc doc;
    int r = read_document(search, field, hit, &doc);

    if (r <= 0)
        return r < 0 ? tl_trace(r) : 0;
    r = path_of(search, &doc, &arena, &path);
    if (r == 0 && slice_equal(path, search->path))
        record_found(search, &search->at, &search->document_key, hit->document_key);
    else if (r == 0 && path.data != NULL && tree_within(path, search->path, search->lookup.tree.delimiter))
        record_found(search, &search->below, &search->below_key, hit->document_key);
    else if (r == 0 && ++search->misses > 0 && above > 0 && above < doc.origin.len)
        r = find_skip(search, doc.origin, above);
    doc_release(&doc);
    return r;
}

/* Returns: a value greater than all origins below `origin`. */
static const struct field_value *value_after(struct path_search *search, uint16_t field, struct slice origin)
{
    struct field_value *value = arena_zalloc(&search->arena, sizeof *value);
    char next = (char)(search->lookup.tree.delimiter + 1);

    *value = (struct field_value){
        .field = field, .kind = FIELD_VALUE_BYTES, .bytes = tree__join(&search->arena, origin, slice_make(&next, 1))};
    return value;
}

/* Returns: the part of a range of descendants that follows the directory to skip. */
static struct entry_range range_after_skip(struct path_search *search, const struct entry_range *range, size_t above)
{
    REQUIRE(search->skip.data != NULL && above <= range->low->bytes.len);
    struct slice directory = slice_make(range->low->bytes.data, above);

    return (struct entry_range){.index = range->index,
                                .field = range->field,
                                .low = value_after(search, range->field, search->skip),
                                .high = value_after(search, range->field, directory),
                                .high_exclusive = true};
}

/* Searches a range until it has found what the range can contain. */
static bool search_range(void *context, const struct entry_range *range)
{
    struct path_search *search = context;
    const bool *wanted = search->begun ? &search->below : &search->at;
    struct entry_hit hit;

    search->begun = true;
    if (*wanted)
        return true;
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(search->view, range);
    /* Long values are truncated in entries, and then not sorted. */
    size_t above = range->prefix && range->low->bytes.len > 1 ? range->low->bytes.len - 1 : 0;
    int r = 0;
    while (r == 0 && !*wanted && account_take(search->account, ENTRY_STEPS)) {
        r = may_read(search) ? entry_scan_next(scan, &hit) : PATH_LOOKUP_INCOMPLETE;
        if (r == 0)
            r = check_entry(search, range->field, &hit, above);
        if (r == 0 && search->misses > search->misses_max)
            r = PATH_LOOKUP_INCOMPLETE;
        if (r == 0 && search->skip.data != NULL && search->skip.len < ENTRY_VALUE_CHARACTERS_MAX) {
            struct entry_range rest = range_after_skip(search, range, above);
            entry_scan_free(scan);
            scan = entry_scan_new(search->view, &rest);
        }
        search->skip = SLICE_NONE;
    }
    if (r < 0 || r == PATH_LOOKUP_INCOMPLETE)
        search->r = r;
    bool over = search->account != NULL && account_ended(search->account);
    return r >= 0 && r != PATH_LOOKUP_INCOMPLETE && !over && !(search->at && (search->below || !search->find_below));
}

static int run_search(struct path_search *search, uint32_t index, const struct mapping *mapping)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    int r = path_lookup_init(search->view, index, mapping, &search->lookup);

    if (r != 0)
        return tl_trace(r);
    search->lookup.path = mapping_path_field(mapping); /* without renames, origins equal paths */
    search->lookup.tree.reads_left = search->reads_left;
    r = path_lookup_value(&search->lookup, search->path, search->find_below, &arena, search_range, search);
    arena_deinit(&search->arena);
    if (r == TREE_LIMITED)
        return PATH_LOOKUP_INCOMPLETE;
    return r < 0 || search->r < 0 ? tl_trace(r < 0 ? r : search->r) : search->r;
}

int path_lookup_exists(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                       struct account *account, bool *ret_at, bool *ret_below)
{
    REQUIRE(mapping_is_tree(mapping));
    struct path_search search = {
        .view = view, .path = path, .find_below = ret_below != NULL, .account = account, .misses_max = SIZE_MAX - 1};
    int r = run_search(&search, index, mapping);

    *ret_at = search.at;
    if (ret_below != NULL)
        *ret_below = search.below;
    return r;
}

int path_lookup_exists_within(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                              size_t most, size_t *reads_left, bool *ret_at, bool *ret_below, size_t *ret_misses)
{
    REQUIRE(mapping_is_tree(mapping));
    struct path_search search = {
        .view = view, .path = path, .find_below = true, .misses_max = most, .reads_left = reads_left};
    int r = run_search(&search, index, mapping);

    *ret_at = search.at;
    *ret_below = search.below;
    *ret_misses = search.misses;
    return r;
}

int path_lookup_find(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                     struct account *account, struct arena *arena, struct slice *ret_document, struct slice *ret_below)
{
    REQUIRE(mapping_is_tree(mapping));
    REQUIRE(arena != NULL);
    struct path_search search = {
        .view = view, .path = path, .find_below = true, .account = account, .misses_max = SIZE_MAX - 1, .keys = arena};
    int r = run_search(&search, index, mapping);

    *ret_document = search.document_key;
    *ret_below = search.below_key;
    return r;
}

int path_lookup_exists_limited(const struct view *view, uint32_t index, const struct mapping *mapping,
                               struct slice path, size_t most, bool *ret_at, bool *ret_below, size_t *ret_read)
{
    REQUIRE(mapping_is_tree(mapping));
    size_t left = most;
    struct path_search search = {
        .view = view, .path = path, .find_below = true, .misses_max = SIZE_MAX - 1, .reads_left = &left};
    int r = run_search(&search, index, mapping);

    *ret_at = search.at;
    *ret_below = search.below;
    ENSURE(left <= most);
    *ret_read = most - left;
    return r;
}

int path_lookup_verify(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                       struct slice document_key, bool *ret_at, bool *ret_below)
{
    REQUIRE(mapping_is_tree(mapping));
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct path_search search = {.view = view, .path = path};
    struct slice at = SLICE_NONE;
    struct doc doc;

    *ret_at = *ret_below = false;
    int r = path_lookup_init(view, index, mapping, &search.lookup);
    if (r == 0)
        r = doc_get_key(view, index, document_key, &doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked)
        r = path_of(&search, &doc, &arena, &at);
    if (r == 0 && at.data != NULL && tree_within(at, path, search.lookup.tree.delimiter)) {
        *ret_at = slice_equal(at, path);
        *ret_below = !*ret_at;
    }
    doc_release(&doc);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Highest sequence number, longest path ------------------------------------------------------------------------ */

/* A search that reads all documents of the ranges, up to a limit. */
struct survey {
    struct path_search search;
    size_t read, read_max;     /* documents, and with `counts_ranges` the ranges */
    size_t missed, misses_max; /* entries of which the document is elsewhere, or has another version */
    bool counts_ranges;
    int64_t seq_no;      /* highest of the documents at the path; -1: none */
    size_t longest_path; /* of the documents at or below it */
};

static int survey_entry(struct survey *survey, uint16_t field, const struct entry_hit *hit)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    const struct path_search *search = &survey->search;
    struct slice path;
    struct doc doc;
    int r = read_document(search, field, hit, &doc);

    if (r < 0)
        return tl_trace(r);
    if (r == 0)
        return survey->missed++ >= survey->misses_max ? PATH_LOOKUP_STALE : 0;
    r = survey->read++ >= survey->read_max ? PATH_LOOKUP_INCOMPLETE : path_of(search, &doc, &arena, &path);
    if (r == 0 && slice_equal(path, search->path) && doc.seq_no > survey->seq_no)
        survey->seq_no = doc.seq_no;
    if (r == 0 && path.len > survey->longest_path && tree_within(path, search->path, search->lookup.tree.delimiter))
        survey->longest_path = path.len;
    doc_release(&doc);
    return r;
}

static bool survey_range(void *context, const struct entry_range *range)
{
    struct survey *survey = context;
    struct entry_hit hit;
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(survey->search.view, range);
    int r = survey->counts_ranges && survey->read++ >= survey->read_max ? PATH_LOOKUP_INCOMPLETE : 0;

    while (r == 0) {
        r = entry_scan_next(scan, &hit);
        if (r == 0)
            r = survey_entry(survey, range->field, &hit);
        else if (r == ENTRY_SCAN_END)
            return true;
    }
    survey->search.r = r;
    return false;
}

/* Lowers *misses_left, and returns as path_lookup_max_seq_no(). */
static int run_survey(struct survey *survey, uint32_t index, const struct mapping *mapping, bool below,
                      size_t *misses_left)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct path_search *search = &survey->search;
    int r = path_lookup_init(search->view, index, mapping, &search->lookup);

    search->lookup.path = mapping_path_field(mapping); /* without renames, origins equal paths */
    if (r == 0)
        r = path_lookup_value(&search->lookup, search->path, below, &arena, survey_range, survey);
    *misses_left -= survey->missed < *misses_left ? survey->missed : *misses_left;
    return r < 0 || search->r < 0 ? tl_trace(r < 0 ? r : search->r) : search->r;
}

int path_lookup_max_seq_no(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                           size_t *misses_left, int64_t *ret_seq_no, size_t *ret_read)
{
    REQUIRE(mapping_is_tree(mapping));
    struct survey survey = {.search = {.view = view, .path = path},
                            .read_max = PATH_LOOKUP_SEQ_NO_DOCUMENTS_MAX,
                            .misses_max = *misses_left,
                            .seq_no = -1};
    int r = run_survey(&survey, index, mapping, false, misses_left);

    *ret_read = survey.read;
    if (r >= 0)
        *ret_seq_no = survey.seq_no;
    return r;
}

int path_lookup_longest_path(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                             size_t *misses_left, size_t *ret_longest, size_t *ret_read)
{
    REQUIRE(mapping_is_tree(mapping));
    struct survey survey = {.search = {.view = view, .path = path},
                            .read_max = PATH_LOOKUP_LONGEST_MAX,
                            .misses_max = *misses_left,
                            .counts_ranges = true};
    int r = run_survey(&survey, index, mapping, true, misses_left);

    *ret_read = survey.read;
    if (r >= 0)
        *ret_longest = survey.longest_path;
    return r;
}

/* --- Highest version ---------------------------------------------------------------------------------------------- */

/*
 * Checks whether a document is at or below the path and has the highest version. Returns: 0: no; 1:
 * yes; fatal codes.
 */
static int has_max_version(const struct path_search *search, struct slice document)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice path = SLICE_NONE;
    struct doc doc;
    int r = doc_get_key(search->view, search->lookup.tree.index, document, &doc);

    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (doc.path_tracked && doc.version == INT64_MAX)
        r = path_of(search, &doc, &arena, &path);
    if (r == 0)
        r = path.data != NULL && tree_within(path, search->path, search->lookup.tree.delimiter);
    doc_release(&doc);
    return r;
}

int path_lookup_max_version(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                            struct arena *arena, struct slice *ret_id, size_t *ret_read)
{
    tl_cleanup(buf_deinit) struct buf lower = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(BUF_UNLIMITED);
    REQUIRE(mapping_is_tree(mapping));
    REQUIRE(arena != NULL);
    struct path_search search = {.view = view, .path = path};
    size_t documents_read = 0;
    int r = path_lookup_init(view, index, mapping, &search.lookup);

    *ret_id = SLICE_NONE;
    tree_high_bounds(&lower, &upper, index);
    struct view_iter *iter = view_iter_new(view, SPACE_TREE, buf_as_slice(&lower), buf_as_slice(&upper));
    view_iter_seek_first(iter);
    while (r == 0 && ret_id->data == NULL && view_iter_valid(iter)) {
        struct slice document = tree_key_text(view_iter_key(iter));
        r = ++documents_read > PATH_LOOKUP_HIGH_VERSIONS_MAX ? PATH_LOOKUP_INCOMPLETE
                                                             : has_max_version(&search, document);
        if (r == 1 && documents_read <= PATH_LOOKUP_HIGH_VERSIONS_MAX) {
            *ret_id = arena_copy(arena, slice_from_offset(document, DOC_KEY_PREFIX_BYTES - sizeof(index)));
            r = 0;
        }
        view_iter_next(iter);
    }
    if (r == 0)
        r = view_iter_status(iter);
    view_iter_free(iter);
    *ret_read = documents_read;
    return r < 0 ? tl_trace(r) : r;
}
