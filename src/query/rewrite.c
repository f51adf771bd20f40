/* SPDX-License-Identifier: Apache-2.0 */
/* Queries as 7.10's QueryBuilder.rewrite() has them; see rewrite.h. */
#include "query/rewrite.h"

#include "mapping/entry_range.h"
#include "query/metadata.h"
#include "query/node.h"
#include "query/search.h"

enum { NODE_STEPS = 10, PROBE_STEPS = 500 }; /* of the account */

struct rewritten {
    bool changed;
    bool none; /* it has become, or is, one that matches nothing */
};

static struct rewritten look(struct binder *binder, const struct query *query);

static struct rewritten to_none(void)
{
    return (struct rewritten){true, true};
}

/* --- Ranges of dates ---------------------------------------------------------------------------------------------- */

/* Whether a field has any entry within bounds. Deleted documents count, as there until a merge. */
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

/* All values lie in it: it becomes one without bounds. None does: nothing matches. */
static struct rewritten look_at_dates(struct binder *binder, const struct query *query,
                                      const struct mapping_field *field)
{
    struct bound_query *matcher;
    if (!field_has_entries(field))
        return (struct rewritten){0};
    if (!has_entry(binder, field, NULL, NULL, false))
        return to_none();
    if (bind__range(binder, query, field, &matcher) != 0 || matcher->kind != BOUND_RANGE)
        return (struct rewritten){0};
    const struct field_value *low = matcher->range.has_low ? &matcher->range.low : NULL;
    const struct field_value *high = matcher->range.has_high ? &matcher->range.high : NULL;
    if ((low != NULL && !has_entry(binder, field, low, NULL, matcher->range.low_exclusive)) ||
        (high != NULL && !has_entry(binder, field, NULL, high, matcher->range.high_exclusive)))
        return to_none();
    bool within = (low == NULL || !has_entry(binder, field, NULL, low, !matcher->range.low_exclusive)) &&
                  (high == NULL || !has_entry(binder, field, high, NULL, !matcher->range.high_exclusive));
    return (struct rewritten){.changed = within};
}

/* --- Queries ------------------------------------------------------------------------------------------------------ */

/* Those of one field, which need it to be mapped. */
static struct rewritten look_at_leaf(struct binder *binder, const struct query *query)
{
    const struct mapping_field *field = mapping_field(binder->index->mapping, query->field);
    bool object = field != NULL && (field->type == FIELD_OBJECT || field->type == FIELD_NESTED);
    if (object) /* the fields in it exist; nothing else is asked of it */
        return query->kind == QUERY_EXISTS ? (struct rewritten){0} : to_none();
    if (field == NULL && slice_is(query->field, "_index"))
        return (struct rewritten){.changed = query->kind != QUERY_RANGE && query->kind != QUERY_EXISTS};
    if (field == NULL)
        return metadata_find(query->field) != NULL || slice_find_byte(query->field, '*') < query->field.len
                   ? (struct rewritten){0}
                   : to_none();
    return query->kind == QUERY_RANGE && field->type == FIELD_DATE ? look_at_dates(binder, query, field)
                                                                   : (struct rewritten){0};
}

/* Returns: whether any of a list is rewritten; how many match nothing. */
static bool look_at_list(struct binder *binder, const struct query_list *list, size_t *none)
{
    bool changed = false;
    for (size_t i = 0; i < list->count; i++) {
        struct rewritten one = look(binder, list->items[i]);
        changed |= one.changed;
        *none += one.none;
    }
    return changed;
}

static struct rewritten look_at_bool(struct binder *binder, const struct query *query)
{
    size_t needed = 0, optional = 0, others = 0;
    const struct query_list *must = &query->boolean.must, *filter = &query->boolean.filter,
                            *should = &query->boolean.should, *must_not = &query->boolean.must_not;
    if (must->count + filter->count + should->count + must_not->count == 0)
        return (struct rewritten){.changed = true}; /* all match */
    bool changed = look_at_list(binder, must, &needed);
    changed |= look_at_list(binder, filter, &needed);
    changed |= look_at_list(binder, should, &optional);
    changed |= look_at_list(binder, must_not, &others);
    if (needed > 0 || (must->count + filter->count == 0 && should->count > 0 && optional == should->count))
        return to_none();
    return (struct rewritten){.changed = changed};
}

static struct rewritten look_at_functions(struct binder *binder, const struct query *query)
{
    struct rewritten inner = query->function.query != NULL ? look(binder, query->function.query) : (struct rewritten){0};
    if (inner.none)
        return to_none();
    for (size_t i = 0; i < query->function.count; i++)
        if (query->function.functions[i].filter != NULL)
            inner.changed |= look(binder, query->function.functions[i].filter).changed;
    return inner;
}

static struct rewritten look(struct binder *binder, const struct query *query)
{
    size_t none = 0;
    bool changed;
    if (!bind__charge(binder, NODE_STEPS))
        return (struct rewritten){0};
    switch (query->kind) {
    case QUERY_MATCH_NONE: return (struct rewritten){.none = true};
    case QUERY_IDS: return query->values.count == 0 ? to_none() : (struct rewritten){0};
    case QUERY_TERMS:
        if (query->values.count > 0 && query->values.looked_up)
            return (struct rewritten){.changed = true};
        return query->values.count == 0 ? to_none() : look_at_leaf(binder, query);
    case QUERY_TERM:
    case QUERY_PREFIX:
    case QUERY_WILDCARD:
    case QUERY_FUZZY:
    case QUERY_RANGE:
    case QUERY_EXISTS: return look_at_leaf(binder, query);
    case QUERY_BOOL: return look_at_bool(binder, query);
    case QUERY_CONSTANT_SCORE:
        changed = look_at_list(binder, &query->compound.queries, &none);
        return none > 0 ? to_none() : (struct rewritten){.changed = changed};
    case QUERY_BOOSTING:
        if (look(binder, query->compound.queries.items[0]).none)
            return to_none();
        return (struct rewritten){.changed = look_at_list(binder, &query->compound.queries, &none)};
    case QUERY_DIS_MAX: return (struct rewritten){.changed = look_at_list(binder, &query->compound.queries, &none)};
    case QUERY_FUNCTION_SCORE: return look_at_functions(binder, query);
    default: return (struct rewritten){0};
    }
}

bool query_is_rewritten(struct binder *binder, const struct query *query)
{
    return look(binder, query).changed;
}
