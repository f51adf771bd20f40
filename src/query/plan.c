/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the entries that name the fewest documents. See README.md, "Plans".
 *
 * An access is a set of entry ranges, ids and document keys. A document outside all of them cannot
 * match (invariant 1).
 */
#include "query/plan.h"

#include "mapping/analysis.h"
#include "mapping/entry_range.h"
#include "core/documents/path_lookup.h"

#include <stdlib.h>

enum { ACCESS_RANGES_MAX = 8192, ESTIMATE_FIRST = 256, ESTIMATE_LAST = 20000 };

/*
 * Account steps: to seek to a range in the store; to read one of its entries; to examine a query
 * node or a value.
 */
enum { STEPS_OF_RANGE = 1000, STEPS_OF_ENTRY = 200, STEPS_OF_VALUE = 50 };

struct access_range {
    struct entry_range range;
    const struct bound_query *pattern; /* checked against each value; NULL: all values match */
};

struct access {
    bool usable;
    struct access_range *ranges;
    size_t range_count, range_capacity;
    struct slice *ids; /* document ids, for all types */
    size_t id_count, id_capacity;
    struct slice *keys; /* document keys, if term_stats.c has already read the entries */
    size_t key_count, key_capacity;
};

struct planner {
    const struct search_index *index;
    const struct view *view;
    struct account *account; /* of the search; NULL: unlimited */
    struct arena *arena;     /* of the plan */
    struct path_lookup path_lookup;
    int error;
};

static struct access unusable_access(void)
{
    return (struct access){.usable = false};
}

/* Adds a range. Returns: false: the access has ACCESS_RANGES_MAX already. */
static bool add_range(struct planner *planner, struct access *access, const struct access_range *range)
{
    if (access->range_count >= ACCESS_RANGES_MAX)
        return false;
    access->ranges =
        arena_grow(planner->arena, access->ranges, access->range_count, &access->range_capacity, sizeof *range);
    access->ranges[access->range_count++] = *range;
    return true;
}

static void add_ranges(struct planner *planner, struct access *access, const struct entry_range *ranges, size_t count)
{
    for (size_t i = 0; access->usable && i < count; i++)
        access->usable = add_range(planner, access, &(struct access_range){.range = ranges[i]});
}

static void add_document(struct planner *planner, struct access *access, struct slice key)
{
    access->keys = arena_grow(planner->arena, access->keys, access->key_count, &access->key_capacity, sizeof key);
    access->keys[access->key_count++] = key;
}

/* --- Paths after renames ------------------------------------------------------------------------------------------ */

/* Returns: whether entries name all documents that have a value of a field. */
static bool is_found(const struct planner *planner, const struct mapping_field *field)
{
    return field_is_covered(field) &&
           (!path_lookup_affects(&planner->path_lookup, field) || path_lookup_can_find(&planner->path_lookup, field));
}

struct range_sink {
    struct planner *planner;
    struct access *access;
};

static bool add_origin_range(void *context, const struct entry_range *range)
{
    struct range_sink *range_sink = context;
    return add_range(range_sink->planner, range_sink->access, &(struct access_range){.range = *range});
}

/* Handles the result of a path lookup. An access with too many ranges is unusable. */
static void check_lookup(struct planner *planner, struct access *access, int r)
{
    if (r != 0)
        access->usable = false;
    if (r < 0)
        planner->error = r;
}

/* Adds the ranges of a path's entries that were written under its origin. */
static void add_ranges_of_origin(struct planner *planner, struct access *access, const struct mapping_field *field,
                                 const struct field_value *value)
{
    struct range_sink range_sink = {planner, access};
    if (!access->usable || !path_lookup_affects(&planner->path_lookup, field))
        return;
    check_lookup(planner, access,
                 path_lookup_value(&planner->path_lookup, value->bytes, field->full_path_field != NULL, planner->arena,
                                   add_origin_range, &range_sink));
}

/* Adds the ranges of entries that were written under the origins of all paths with a prefix. */
static void add_ranges_of_origin_prefix(struct planner *planner, struct access *access,
                                        const struct mapping_field *field, struct slice prefix)
{
    struct range_sink range_sink = {planner, access};
    if (!access->usable || !path_lookup_affects(&planner->path_lookup, field) || prefix.len == 0)
        return;
    check_lookup(planner, access,
                 path_lookup_prefix(&planner->path_lookup, prefix, planner->arena, add_origin_range, &range_sink));
}

/* --- Leaves ------------------------------------------------------------------------------------------------------- */

/* Returns: the access by the entries of some values, also under the origins of renamed paths. */
static struct access value_access(struct planner *planner, const struct mapping_field *field,
                                  const struct field_value *values, size_t count)
{
    struct access access = {.usable = is_found(planner, field)};
    for (size_t i = 0; access.usable && i < count && account_take(planner->account, STEPS_OF_VALUE); i++) {
        struct entry_range *ranges;
        size_t more = entry_ranges_of_value(planner->index->number, field, &values[i], planner->arena, &ranges);
        add_ranges(planner, &access, ranges, more);
        add_ranges_of_origin(planner, &access, field, &values[i]);
    }
    return access;
}

static struct access terms_access(struct planner *planner, const struct bound_query *matcher)
{
    struct access access = {.usable = true};
    for (size_t i = 0; i < matcher->terms.key_count; i++)
        add_document(planner, &access, matcher->terms.keys[i]);
    if (matcher->terms.keys != NULL)
        return access;
    return value_access(planner, matcher->field, matcher->terms.values, matcher->terms.count);
}

static struct access range_access(struct planner *planner, const struct bound_query *matcher)
{
    struct access access = {.usable = field_is_covered(matcher->field) &&
                                      !path_lookup_affects(&planner->path_lookup, matcher->field)};
    struct entry_range bounds = {.index = planner->index->number,
                                 .low = matcher->range.has_low ? &matcher->range.low : NULL,
                                 .high = matcher->range.has_high ? &matcher->range.high : NULL,
                                 .low_exclusive = matcher->range.low_exclusive,
                                 .high_exclusive = matcher->range.high_exclusive};
    if (!access.usable)
        return access;
    struct entry_range *ranges;
    size_t count = entry_ranges_between(&bounds, matcher->field, planner->arena, &ranges);
    add_ranges(planner, &access, ranges, count);
    return access;
}

static struct access pattern_access(struct planner *planner, const struct bound_query *matcher)
{
    struct access access = {.usable = is_found(planner, matcher->field)};
    struct field_value *prefix = NULL;
    if (!access.usable)
        return access;
    if (matcher->pattern.prefix.len > 0) {
        prefix = arena_zalloc(planner->arena, sizeof *prefix);
        *prefix = (struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = matcher->pattern.prefix};
    }
    add_range(planner, &access,
              &(struct access_range){entry_range_of_prefix(planner->index->number, matcher->field, prefix),
                                     path_lookup_affects(&planner->path_lookup, matcher->field) ? NULL : matcher});
    add_ranges_of_origin_prefix(planner, &access, matcher->field, matcher->pattern.prefix);
    return access;
}

static struct access exists_access(struct planner *planner, const struct bound_query *matcher)
{
    struct access access = {.usable = true};
    for (size_t i = 0; access.usable && i < matcher->exists.count; i++) {
        const struct mapping_field *field = matcher->exists.fields[i];
        /*
         * An empty text has no token entry, but exists. If its full value is indexed too, that has
         * an entry.
         */
        access.usable = is_found(planner, field) && (field->type != FIELD_TEXT || field->full_path_field != NULL);
        if (access.usable)
            access.usable =
                add_range(planner, &access,
                          &(struct access_range){entry_range_of_prefix(planner->index->number, field, NULL), NULL});
    }
    return access;
}

static struct access id_access(struct planner *planner, const struct bound_query *matcher)
{
    struct access access = {.usable = true};
    for (size_t i = 0; i < matcher->names.count; i++) {
        access.ids = arena_grow(planner->arena, access.ids, access.id_count, &access.id_capacity, sizeof(struct slice));
        access.ids[access.id_count++] = matcher->names.items[i];
    }
    return access;
}

/* --- Costs -------------------------------------------------------------------------------------------------------- */

/*
 * Returns: the number of documents that an access names, counted up to `limit`; SIZE_MAX: unusable.
 */
static size_t access_cost(struct planner *planner, const struct access *access, size_t limit)
{
    size_t total = access->id_count + access->key_count;
    if (!access->usable)
        return SIZE_MAX;
    for (size_t i = 0; i < access->range_count && total < limit; i++) {
        size_t hits = 0;
        int r = entry_estimate(planner->view, &access->ranges[i].range, limit - total, &hits);
        if (r < 0)
            planner->error = r;
        if (!account_take(planner->account, STEPS_OF_RANGE + hits * STEPS_OF_ENTRY))
            break;
        total += hits;
    }
    return total;
}

static struct access access_of(struct planner *planner, const struct bound_query *matcher);

static void append_slices(struct planner *planner, struct slice **items, size_t *count, size_t *capacity,
                          const struct slice *more, size_t more_count)
{
    for (size_t i = 0; i < more_count; i++) {
        *items = arena_grow(planner->arena, *items, *count, capacity, sizeof **items);
        (*items)[(*count)++] = more[i];
    }
}

static size_t access_size(const struct access *access)
{
    return access->range_count + access->id_count + access->key_count;
}

/*
 * Adds the smaller access to the larger one: through many levels of clauses that contain one another nothing is copied
 * more than a few times.
 */
static struct access join_access(struct planner *planner, struct access a, struct access b)
{
    struct access all = access_size(&a) < access_size(&b) ? b : a, more = access_size(&a) < access_size(&b) ? a : b;
    all.usable = a.usable && b.usable;
    for (size_t i = 0; all.usable && i < more.range_count; i++)
        all.usable = add_range(planner, &all, &more.ranges[i]);
    if (all.usable) {
        append_slices(planner, &all.ids, &all.id_count, &all.id_capacity, more.ids, more.id_count);
        append_slices(planner, &all.keys, &all.key_count, &all.key_capacity, more.keys, more.key_count);
    }
    return all;
}

/* Returns: the access to documents of any clause; unusable if the access of one clause is. */
static struct access union_of(struct planner *planner, const struct bound_query_list *list)
{
    struct access all = {.usable = true};
    for (size_t i = 0; all.usable && i < list->count; i++)
        all = join_access(planner, all, access_of(planner, list->items[i]));
    return all;
}

/*
 * Returns: the cheapest of several accesses that must all hold. An access is counted only while it
 * can still be the cheapest.
 */
static struct access cheapest_access(struct planner *planner, struct access *accesses, size_t count)
{
    struct access *best = NULL;
    if (count == 1)
        return accesses[0];
    for (size_t limit = ESTIMATE_FIRST; best == NULL && limit <= ESTIMATE_LAST; limit *= 8) {
        size_t least = limit;
        for (size_t i = 0; i < count; i++) {
            size_t hits = access_cost(planner, &accesses[i], least);
            if (hits < least) {
                least = hits;
                best = &accesses[i];
            }
        }
    }
    for (size_t i = 0; best == NULL && i < count; i++) {
        if (accesses[i].usable)
            best = &accesses[i];
    }
    return best != NULL ? *best : unusable_access();
}

static struct access bool_access(struct planner *planner, const struct bound_query *matcher)
{
    size_t count = 0;
    size_t most = matcher->boolean.must.count + matcher->boolean.filter.count + 1;
    struct access *accesses = arena_alloc(planner->arena, most * sizeof *accesses);
    const struct bound_query_list *lists[] = {&matcher->boolean.must, &matcher->boolean.filter};
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            accesses[count] = access_of(planner, lists[l]->items[i]);
            count += accesses[count].usable;
        }
    }
    if (matcher->boolean.minimum > 0) {
        accesses[count] = union_of(planner, &matcher->boolean.should);
        count += accesses[count].usable;
    }
    return count > 0 ? cheapest_access(planner, accesses, count) : unusable_access();
}

/* Uses the rarest token, which names the fewest documents. A trailing prefix is ignored. */
static struct access phrase_access(struct planner *planner, const struct bound_query *matcher)
{
    size_t count = matcher->phrase.count - matcher->phrase.last_is_prefix;
    struct access *accesses = arena_alloc(planner->arena, (count + 1) * sizeof *accesses);
    struct field_value *values = arena_zalloc(planner->arena, (count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct field_value){
            .field = matcher->field->number, .kind = FIELD_VALUE_BYTES, .bytes = matcher->phrase.tokens[i]};
        accesses[i] = value_access(planner, matcher->field, &values[i], 1);
    }
    return count > 0 ? cheapest_access(planner, accesses, count) : unusable_access();
}

static struct access access_of(struct planner *planner, const struct bound_query *matcher)
{
    if (!account_take(planner->account, STEPS_OF_VALUE))
        return unusable_access();
    switch (matcher->kind) {
    case BOUND_NONE: return (struct access){.usable = true};
    case BOUND_IDS: return id_access(planner, matcher);
    case BOUND_TERMS: return terms_access(planner, matcher);
    case BOUND_RANGE: return range_access(planner, matcher);
    case BOUND_PATTERN: return pattern_access(planner, matcher);
    case BOUND_EXISTS: return exists_access(planner, matcher);
    case BOUND_PHRASE: return phrase_access(planner, matcher);
    case BOUND_BOOL: return bool_access(planner, matcher);
    case BOUND_DIS_MAX: return union_of(planner, &matcher->compound.queries);
    case BOUND_CONSTANT:
    case BOUND_BOOSTING: return access_of(planner, matcher->compound.queries.items[0]);
    case BOUND_FUNCTION: return access_of(planner, matcher->function.query);
    default: return unusable_access();
    }
}

/* --- Candidate documents ------------------------------------------------------------------------------------------ */

struct key_list {
    struct slice *items;
    size_t count, capacity;
    size_t bytes; /* of the keys */
    size_t most;  /* keys; more bytes than PLAN_KEY_BYTES for each of so many are too many, too */
};

static bool has_room(const struct key_list *keys, size_t more)
{
    return keys->count + more <= keys->most && keys->bytes / PLAN_KEY_BYTES < keys->most;
}

static void add_key(struct planner *planner, struct key_list *keys, struct slice key)
{
    keys->items = arena_grow(planner->arena, keys->items, keys->count, &keys->capacity, sizeof *keys->items);
    keys->items[keys->count++] = arena_copy(planner->arena, key);
    keys->bytes += key.len;
}

/*
 * Result of matching a pattern with an entry's value, or with one of the parent directories of the
 * path that the value is.
 */
struct value_match {
    const struct bound_query *pattern;
    struct account *account;
    bool fits;
};

static bool fit_token(void *context, const struct analysis_token *token)
{
    struct value_match *value_match = context;
    value_match->fits =
        value_match->pattern->pattern.fits(value_match->pattern->pattern.pattern, token->text, value_match->account);
    return !value_match->fits;
}

static bool entry_fits(const struct planner *planner, const struct access_range *range, const struct entry_hit *hit,
                       struct arena *scratch)
{
    struct value_match value_match = {.pattern = range->pattern, .account = planner->account};
    struct field_value value;
    if (range->pattern == NULL || hit->cut)
        return true;
    arena_reset(scratch);
    if (!entry_value_decode(hit->value, FIELD_VALUE_BYTES, scratch, &value))
        return true;
    if (range->pattern->field->full_path_field == NULL)
        fit_token(&value_match, &(struct analysis_token){.text = value.bytes});
    else
        analyzer_run(range->pattern->field->analyzer, value.bytes, scratch, fit_token, &value_match);
    return value_match.fits;
}

/*
 * Adds the documents that a range names. Returns: 0; PLAN_CURSOR_END: too many for the list; fatal
 * codes.
 */
static int scan_range(struct planner *planner, const struct access_range *range, struct key_list *keys)
{
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(planner->view, &range->range);
    struct arena scratch = ARENA_INIT;
    struct entry_hit hit;
    int r;
    while ((r = entry_scan_next(scan, &hit)) == 0) {
        if (!account_take(planner->account, STEPS_OF_ENTRY))
            break;
        if (!entry_fits(planner, range, &hit, &scratch))
            continue;
        if (!has_room(keys, 1))
            break;
        add_key(planner, keys, hit.document_key);
    }
    arena_deinit(&scratch);
    if (r < 0)
        return tl_trace(r);
    return r == 0 ? PLAN_CURSOR_END : 0;
}

/* Adds a key for each id and type. Returns: false: too many for the list. */
static bool add_ids(struct planner *planner, const struct access *access, struct key_list *keys)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t types = mapping_type_count(planner->index->mapping);
    bool room = access->id_count == 0 || types <= keys->most / access->id_count;
    for (size_t t = 0; t < types && room; t++) {
        const struct mapping_type *type = mapping_type_at(planner->index->mapping, t);
        room = has_room(keys, access->id_count);
        for (size_t i = 0; i < access->id_count && room && account_take(planner->account, STEPS_OF_VALUE); i++) {
            if (access->ids[i].len > DOC_ID_BYTES_MAX)
                continue;
            buf_clear(&key);
            entry_document_key(&key, type->number, access->ids[i]);
            add_key(planner, keys, buf_as_slice(&key));
        }
    }
    buf_deinit(&key);
    return room;
}

int plan_make(const struct bound_query *matcher, const struct search_index *index, const struct view *view,
              struct account *account, struct arena *arena, size_t candidates_max, struct plan *ret_plan)
{
    struct planner planner = {.index = index, .view = view, .account = account, .arena = arena};
    int outcome = path_lookup_init(view, index->number, index->mapping, &planner.path_lookup);
    if (outcome != 0)
        return tl_trace(outcome);
    struct access access = access_of(&planner, matcher);
    struct key_list keys = {.items = NULL};
    *ret_plan = (struct plan){.kind = PLAN_SCAN};
    if (planner.error != 0)
        return tl_trace(planner.error);
    if (!access.usable)
        return 0;
    if (index->document_count > 3000 && candidates_max > index->document_count / 3)
        candidates_max = index->document_count / 3; /* beyond that a scan in key order is cheaper */
    keys.most = candidates_max;
    for (size_t i = 0; i < access.range_count; i++) {
        if (!account_take(account, STEPS_OF_RANGE))
            return 0;
        int r = scan_range(&planner, &access.ranges[i], &keys);
        if (r != 0)
            return r == PLAN_CURSOR_END ? 0 : r;
    }
    if (!has_room(&keys, access.key_count))
        return 0;
    for (size_t i = 0; i < access.key_count; i++)
        add_key(&planner, &keys, access.keys[i]);
    if (!add_ids(&planner, &access, &keys))
        return 0;
    if (keys.count > 1)
        qsort(keys.items, keys.count, sizeof *keys.items, slice_order);
    size_t unique = 0;
    for (size_t i = 0; i < keys.count; i++) {
        if (unique == 0 || !slice_equal(keys.items[unique - 1], keys.items[i]))
            keys.items[unique++] = keys.items[i];
    }
    *ret_plan = (struct plan){.kind = PLAN_KEYS, .keys = keys.items, .count = unique};
    return 0;
}

/* --- The cursor --------------------------------------------------------------------------------------------------- */

/* Returns: the index of the first key greater than `after`. */
static size_t first_after(const struct plan *plan, struct slice after)
{
    size_t low = 0, high = plan->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (slice_compare(plan->keys[middle], after) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void plan_cursor_init(struct plan_cursor *plan_cursor, const struct plan *plan, const struct view *view, uint32_t index,
                      struct slice after)
{
    *plan_cursor = (struct plan_cursor){.plan = plan, .view = view, .index = index};
    if (plan->kind == PLAN_KEYS) {
        plan_cursor->position = after.data != NULL ? first_after(plan, after) : 0;
        return;
    }
    plan_cursor->scan = doc_scan_new(view, index, DOC_TYPE_ANY);
    if (after.data != NULL)
        doc_scan_seek(plan_cursor->scan, after, true);
}

static int next_key(struct plan_cursor *plan_cursor, uint16_t *ret_type, struct slice *ret_id,
                    const struct doc **ret_doc)
{
    doc_release(&plan_cursor->doc);
    while (plan_cursor->position < plan_cursor->plan->count) {
        struct slice key = plan_cursor->plan->keys[plan_cursor->position++];
        if (!entry_document_key_parse(key, ret_type, ret_id))
            continue;
        int r = doc_get_key(plan_cursor->view, plan_cursor->index, key, &plan_cursor->doc);
        if (r == DOC_NOT_FOUND)
            continue;
        *ret_doc = &plan_cursor->doc;
        return r == DOC_TOO_OLD ? PLAN_CURSOR_TOO_OLD : r;
    }
    return PLAN_CURSOR_END;
}

int plan_cursor_next(struct plan_cursor *plan_cursor, uint16_t *ret_type, struct slice *ret_id,
                     const struct doc **ret_doc)
{
    if (plan_cursor->plan->kind == PLAN_KEYS)
        return next_key(plan_cursor, ret_type, ret_id, ret_doc);
    int r = doc_scan_next(plan_cursor->scan, ret_type, ret_id, &plan_cursor->doc);
    *ret_doc = &plan_cursor->doc;
    return r == DOC_SCAN_END ? PLAN_CURSOR_END : r == DOC_TOO_OLD ? PLAN_CURSOR_TOO_OLD : r;
}

void plan_cursor_deinit(struct plan_cursor *plan_cursor)
{
    if (plan_cursor->plan == NULL)
        return;
    if (plan_cursor->plan->kind == PLAN_KEYS)
        doc_release(&plan_cursor->doc);
    doc_scan_free(plan_cursor->scan);
    plan_cursor->scan = NULL;
}
