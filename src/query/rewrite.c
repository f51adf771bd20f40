/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts whether 7.10's QueryBuilder.rewrite_node() changes a query; see rewrite.h. */
#include "query/rewrite.h"

#include "mapping/entry_range.h"
#include "query/metadata.h"
#include "query/node.h"
#include "query/search.h"

enum { NODE_STEPS = 10, PROBE_STEPS = 500 }; /* of the account */

struct rewrite_result {
    bool changed;
    bool none; /* the query matches nothing, rewritten or not */
};

static struct rewrite_result rewrite_node(struct binder *binder, const struct query *query);

static struct rewrite_result to_none(void)
{
    return (struct rewrite_result){true, true};
}

/* --- Ranges of dates ---------------------------------------------------------------------------------------------- */

/*
 * Returns: whether a field has an entry within bounds. Entries of deleted documents count, as
 * deleted documents do in Lucene before a merge.
 */
static bool has_entry(struct binder *binder, const struct mapping_field *field, const struct field_value *low,
                      const struct field_value *high, bool exclusive)
{
    struct entry_range range = {.index = binder->index->number,
                                .field = field->number,
                                .low = low,
                                .high = high,
                                .low_exclusive = exclusive,
                                .high_exclusive = exclusive};
    struct entry_hit hit;
    if (!bind__charge(binder, PROBE_STEPS))
        return false;
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(binder->context->view, &range);
    return entry_scan_next(scan, &hit) == 0;
}

/*
 * Rewrites a range of dates. If all values are within it, it becomes a range without bounds; if
 * none is, it matches nothing.
 */
static struct rewrite_result rewrite_date_range(struct binder *binder, const struct query *query,
                                                const struct mapping_field *field)
{
    struct bound_query *matcher;
    if (!field_has_entries(field))
        return (struct rewrite_result){0};
    if (!has_entry(binder, field, NULL, NULL, false))
        return to_none();
    if (bind__range(binder, query, field, &matcher) != 0 || matcher->kind != BOUND_RANGE)
        return (struct rewrite_result){0};
    const struct field_value *low = matcher->range.has_low ? &matcher->range.low : NULL;
    const struct field_value *high = matcher->range.has_high ? &matcher->range.high : NULL;
    if ((low != NULL && !has_entry(binder, field, low, NULL, matcher->range.low_exclusive)) ||
        (high != NULL && !has_entry(binder, field, NULL, high, matcher->range.high_exclusive)))
        return to_none();
    bool within = (low == NULL || !has_entry(binder, field, NULL, low, !matcher->range.low_exclusive)) &&
                  (high == NULL || !has_entry(binder, field, high, NULL, !matcher->range.high_exclusive));
    return (struct rewrite_result){.changed = within};
}

/* --- Queries ------------------------------------------------------------------------------------------------------ */

/* Rewrites a leaf query: on an unmapped field it matches nothing. */
static struct rewrite_result rewrite_leaf(struct binder *binder, const struct query *query)
{
    const struct mapping_field *field = mapping_field(binder->index->mapping, query->field);
    bool object = field != NULL && (field->type == FIELD_OBJECT || field->type == FIELD_NESTED);
    if (object) /* `exists` applies to its fields; other queries match nothing */
        return query->kind == QUERY_EXISTS ? (struct rewrite_result){0} : to_none();
    if (field == NULL && slice_is(query->field, "_index"))
        return (struct rewrite_result){.changed = query->kind != QUERY_RANGE && query->kind != QUERY_EXISTS};
    if (field == NULL)
        return metadata_find(query->field) != NULL || slice_find_byte(query->field, '*') < query->field.len
                   ? (struct rewrite_result){0}
                   : to_none();
    return query->kind == QUERY_RANGE && field->type == FIELD_DATE ? rewrite_date_range(binder, query, field)
                                                                   : (struct rewrite_result){0};
}

/*
 * Returns: whether a query of the list is rewritten. Adds to *none the number of queries that match
 * nothing.
 */
static bool rewrite_list(struct binder *binder, const struct query_list *list, size_t *none)
{
    bool changed = false;
    for (size_t i = 0; i < list->count; i++) {
        struct rewrite_result one = rewrite_node(binder, list->items[i]);
        changed |= one.changed;
        *none += one.none;
    }
    return changed;
}

static struct rewrite_result rewrite_bool(struct binder *binder, const struct query *query)
{
    size_t needed = 0, optional = 0, others = 0;
    const struct query_list *must = &query->boolean.must, *filter = &query->boolean.filter,
                            *should = &query->boolean.should, *must_not = &query->boolean.must_not;
    if (must->count + filter->count + should->count + must_not->count == 0)
        return (struct rewrite_result){.changed = true}; /* becomes match_all */
    bool changed = rewrite_list(binder, must, &needed);
    changed |= rewrite_list(binder, filter, &needed);
    changed |= rewrite_list(binder, should, &optional);
    changed |= rewrite_list(binder, must_not, &others);
    if (needed > 0 || (must->count + filter->count == 0 && should->count > 0 && optional == should->count))
        return to_none();
    return (struct rewrite_result){.changed = changed};
}

static struct rewrite_result rewrite_functions(struct binder *binder, const struct query *query)
{
    struct rewrite_result inner =
        query->function.query != NULL ? rewrite_node(binder, query->function.query) : (struct rewrite_result){0};
    if (inner.none)
        return to_none();
    for (size_t i = 0; i < query->function.count; i++)
        if (query->function.functions[i].filter != NULL)
            inner.changed |= rewrite_node(binder, query->function.functions[i].filter).changed;
    return inner;
}

static struct rewrite_result rewrite_node(struct binder *binder, const struct query *query)
{
    size_t none = 0;
    bool changed;
    if (!bind__charge(binder, NODE_STEPS))
        return (struct rewrite_result){0};
    switch (query->kind) {
    case QUERY_MATCH_NONE: return (struct rewrite_result){.none = true};
    case QUERY_IDS: return query->values.count == 0 ? to_none() : (struct rewrite_result){0};
    case QUERY_TERMS:
        if (query->values.count > 0 && query->values.looked_up)
            return (struct rewrite_result){.changed = true};
        return query->values.count == 0 ? to_none() : rewrite_leaf(binder, query);
    case QUERY_TERM:
    case QUERY_PREFIX:
    case QUERY_WILDCARD:
    case QUERY_FUZZY:
    case QUERY_RANGE:
    case QUERY_EXISTS: return rewrite_leaf(binder, query);
    case QUERY_BOOL: return rewrite_bool(binder, query);
    case QUERY_CONSTANT_SCORE:
        changed = rewrite_list(binder, &query->compound.queries, &none);
        return none > 0 ? to_none() : (struct rewrite_result){.changed = changed};
    case QUERY_BOOSTING:
        if (rewrite_node(binder, query->compound.queries.items[0]).none)
            return to_none();
        return (struct rewrite_result){.changed = rewrite_list(binder, &query->compound.queries, &none)};
    case QUERY_DIS_MAX:
        return (struct rewrite_result){.changed = rewrite_list(binder, &query->compound.queries, &none)};
    case QUERY_FUNCTION_SCORE: return rewrite_functions(binder, query);
    default: return (struct rewrite_result){0};
    }
}

bool query_is_rewritten(struct binder *binder, const struct query *query)
{
    return rewrite_node(binder, query).changed;
}
