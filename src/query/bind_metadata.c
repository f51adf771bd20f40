/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding queries on metadata fields (metadata.def): ids, index and type names, routing, sequence
 * numbers.
 *
 * A field's traits list the operations it supports. Messages that metadata.def does not have are
 * those of 7.10 for any field of the same kind. In the 5.x dialect only operations that 5.x refused
 * are refused; the others match nothing.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "json/each.h"
#include "json/filter.h"
#include "query/metadata.h"

static struct bound_query *bind_all(struct binder *binder, double boost)
{
    return bind__new(binder, BOUND_ALL, boost);
}

/* --- Names: ids, types, routing ----------------------------------------------------------------------------------- */

static struct bound_query *by_names(struct binder *binder, enum bound_query_kind kind, const struct query *query)
{
    struct bound_query *matcher = bind__new(binder, kind, query->boost);
    struct slice *items = arena_alloc(binder->arena, query->values.count * sizeof *items);
    size_t unique = 0;
    for (size_t i = 0; i < query->values.count; i++)
        items[i] = query__scalar_text(binder->arena, query->values.items[i]);
    if (query->values.count > 0)
        qsort(items, query->values.count, sizeof *items, slice_order);
    for (size_t i = 0; i < query->values.count; i++) {
        if (unique == 0 || !slice_equal(items[unique - 1], items[i]))
            items[unique++] = items[i];
    }
    matcher->names.items = items;
    matcher->names.count = unique;
    return unique > 0 ? matcher : bind__none(binder);
}

struct bound_query *bind__ids(struct binder *binder, const struct query *query)
{
    return by_names(binder, BOUND_IDS, query);
}

struct bound_query *bind__types(struct binder *binder, const struct query *query)
{
    struct bound_query *matcher = bind__new(binder, BOUND_TYPES, query->boost);
    matcher->types.numbers = arena_alloc(binder->arena, query->values.count * sizeof(uint16_t));
    for (size_t i = 0; i < query->values.count; i++) {
        struct slice name = query__scalar_text(binder->arena, query->values.items[i]);
        const struct mapping_type *type = mapping_type(binder->index->mapping, name);
        if (type != NULL)
            matcher->types.numbers[matcher->types.count++] = type->number;
    }
    if (matcher->types.count == 0)
        return bind__none(binder);
    return matcher->types.count == mapping_type_count(binder->index->mapping) ? bind_all(binder, query->boost)
                                                                              : matcher;
}

/* Returns: whether `pattern` fits the name of the index or one of its aliases. */
static bool index_name_fits(const struct search_index *index, const void *pattern,
                            bool (*fits)(const void *pattern, struct slice name))
{
    bool found = fits(pattern, index->name);
    for (size_t i = 0; i < index->alias_count && !found; i++)
        found = fits(pattern, index->aliases[i]);
    return found;
}

static bool name_equals(const void *text, struct slice name)
{
    return slice_equal(*(const struct slice *)text, name);
}

static struct bound_query *index_by_name(struct binder *binder, const struct query *query)
{
    for (size_t i = 0; i < query->values.count; i++) {
        struct slice text = query__scalar_text(binder->arena, query->values.items[i]);
        if (index_name_fits(binder->index, &text, name_equals))
            return bind_all(binder, query->boost);
    }
    return bind__none(binder);
}

/* A wildcard pattern as in index expressions: only `*` is special. */
struct name_pattern {
    struct slice text;
    struct arena *arena;
    bool case_insensitive;
};

static struct slice lower_ascii(struct arena *arena, struct slice text)
{
    char *bytes = arena_alloc(arena, text.len + 1);
    for (size_t i = 0; i < text.len; i++)
        bytes[i] = text.data[i] >= 'A' && text.data[i] <= 'Z' ? (char)(text.data[i] + 32) : text.data[i];
    return slice_make(bytes, text.len);
}

static bool name_pattern_fits(const void *context, struct slice name)
{
    const struct name_pattern *pattern = context;
    return pattern->case_insensitive
               ? json_wildcard(lower_ascii(pattern->arena, pattern->text), lower_ascii(pattern->arena, name))
               : json_wildcard(pattern->text, name);
}

/* --- Patterns of names -------------------------------------------------------------------------------------------- */

static struct bound_query *types_by_pattern(struct binder *binder, const struct name_pattern *pattern, double boost)
{
    const struct mapping *mapping = binder->index->mapping;
    size_t count = mapping_type_count(mapping);
    struct bound_query *matcher = bind__new(binder, BOUND_TYPES, boost);
    matcher->types.numbers = arena_alloc(binder->arena, (count + 1) * sizeof(uint16_t));
    for (size_t i = 0; i < count; i++) {
        const struct mapping_type *type = mapping_type_at(mapping, i);
        if (name_pattern_fits(pattern, type->name))
            matcher->types.numbers[matcher->types.count++] = type->number;
    }
    if (matcher->types.count == 0)
        return bind__none(binder);
    return matcher->types.count == count ? bind_all(binder, boost) : matcher;
}

static struct bound_query *by_pattern(struct binder *binder, const struct metadata_field *field,
                                      const struct query *query)
{
    struct slice text = query__scalar_text(binder->arena, query->pattern.value);
    struct name_pattern pattern = {text, binder->arena, query->pattern.case_insensitive};
    if (query->kind == QUERY_PREFIX)
        pattern.text = arena_printf(binder->arena, "%.*s*", SLICE_ARG(text));
    if (field->number == METADATA_TYPE)
        return types_by_pattern(binder, &pattern, query->boost);
    return index_name_fits(binder->index, &pattern, name_pattern_fits) ? bind_all(binder, query->boost)
                                                                       : bind__none(binder);
}

static int refuse_pattern(struct binder *binder, const struct metadata_field *field, const struct query *query)
{
    const char *kind = query->kind == QUERY_PREFIX ? "prefix" : query->kind == QUERY_WILDCARD ? "wildcard" : "regexp";
    if (query->kind == QUERY_FUZZY)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                            "Can only use fuzzy queries on keyword and text fields - not on [%s] which is of type [%s]",
                            field->name, field->name);
    return bind__refuse_plain(binder, "Can only use %s queries on keyword%s fields - not on [%s] which is of type [%s]",
                              kind, query->kind == QUERY_REGEXP ? " and text" : ", text and wildcard", field->name,
                              field->name);
}

/*
 * Binds a case-insensitive term: as a wildcard on fields that take one, otherwise it matches
 * nothing or is refused.
 */
static int bind_case_insensitive(struct binder *binder, const struct metadata_field *field, const struct query *query,
                                 struct bound_query **ret_matcher)
{
    *ret_matcher = bind__none(binder);
    if ((field->traits & METADATA_CONSTANT) != 0)
        *ret_matcher = by_pattern(binder, field, query);
    if ((field->traits & METADATA_REFUSES_CASE) != 0)
        return bind__refuse_plain(binder,
                                  "[%s] field which is of type [%s], does not support case insensitive term queries",
                                  field->name, field->name);
    return 0;
}

static int bind_pattern(struct binder *binder, const struct metadata_field *field, const struct query *query,
                        struct bound_query **ret_matcher)
{
    bool names = (field->traits & METADATA_CONSTANT) != 0;
    if ((field->traits & METADATA_KEYWORD) != 0) {
        *ret_matcher = bind__new(binder, BOUND_ROUTING_PATTERN, query->boost);
        int r =
            bind__pattern_text(binder, query, query__scalar_text(binder->arena, query->pattern.value), *ret_matcher);
        if (r == 0 && field->number != METADATA_ROUTING)
            *ret_matcher = bind__none(binder);
        return r;
    }
    if (query->pattern.whole)
        return bind_case_insensitive(binder, field, query, ret_matcher);
    if (!names || query->kind == QUERY_REGEXP || query->kind == QUERY_FUZZY)
        return refuse_pattern(binder, field, query);
    *ret_matcher = by_pattern(binder, field, query);
    return 0;
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

static bool is_inside(const struct binder *binder, const struct query *query, struct slice text)
{
    int low = query->range.low == NULL ? 1 : slice_compare(text, query__scalar_text(binder->arena, query->range.low));
    int high =
        query->range.high == NULL ? -1 : slice_compare(text, query__scalar_text(binder->arena, query->range.high));
    return (low > 0 || (low == 0 && !query->range.low_exclusive)) &&
           (high < 0 || (high == 0 && !query->range.high_exclusive));
}

static struct bound_query *types_inside(struct binder *binder, const struct query *query)
{
    const struct mapping *mapping = binder->index->mapping;
    size_t count = mapping_type_count(mapping);
    struct bound_query *matcher = bind__new(binder, BOUND_TYPES, query->boost);
    matcher->types.numbers = arena_alloc(binder->arena, (count + 1) * sizeof(uint16_t));
    for (size_t i = 0; i < count; i++) {
        const struct mapping_type *type = mapping_type_at(mapping, i);
        if (is_inside(binder, query, type->name))
            matcher->types.numbers[matcher->types.count++] = type->number;
    }
    return matcher->types.count > 0 ? matcher : bind__none(binder);
}

static struct bound_query *routing_inside(struct binder *binder, const struct query *query)
{
    struct bound_query *matcher = bind__new(binder, BOUND_ROUTING_RANGE, query->boost);
    matcher->range.has_low = query->range.low != NULL;
    matcher->range.has_high = query->range.high != NULL;
    matcher->range.low_exclusive = query->range.low_exclusive;
    matcher->range.high_exclusive = query->range.high_exclusive;
    matcher->range.low.kind = matcher->range.high.kind = FIELD_VALUE_BYTES;
    if (matcher->range.has_low)
        matcher->range.low.bytes = query__scalar_text(binder->arena, query->range.low);
    if (matcher->range.has_high)
        matcher->range.high.bytes = query__scalar_text(binder->arena, query->range.high);
    return matcher;
}

static int bind_exists(struct binder *binder, const struct metadata_field *field, const struct query *query,
                       struct bound_query **ret_matcher);

static int bind_range(struct binder *binder, const struct metadata_field *field, const struct query *query,
                      struct bound_query **ret_matcher)
{
    if (query->range.low == NULL && query->range.high == NULL) /* unbounded: includes every value */
        return bind_exists(binder, field, query, ret_matcher);
    if ((field->traits & METADATA_RANGES) == 0)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "Field [%s] of type [%s] does not support range queries",
                            field->name, field->name);
    if (field->number == METADATA_SEQ_NO)
        return bind__range(binder, query, NULL, ret_matcher);
    *ret_matcher = field->number == METADATA_TYPE      ? types_inside(binder, query)
                   : field->number == METADATA_ROUTING ? routing_inside(binder, query)
                                                       : bind__none(binder);
    return 0;
}

/* --- Terms, exists ------------------------------------------------------------------------------------------------ */

static int refuse_metadata(struct binder *binder, const struct metadata_field *field, const char *words)
{
    return (field->traits & METADATA_NO_CAUSE) != 0 ? bind__refuse_plain(binder, "%s", words)
                                                    : bind__refuse(binder, PROBLEM_UNSUPPORTED_OPERATION, "%s", words);
}

static int bind_exists(struct binder *binder, const struct metadata_field *field, const struct query *query,
                       struct bound_query **ret_matcher)
{
    *ret_matcher = (field->traits & METADATA_ALWAYS_PRESENT) != 0 ? bind_all(binder, query->boost)
                   : field->number == METADATA_ROUTING            ? bind__new(binder, BOUND_ROUTING, query->boost)
                                                                  : bind__none(binder);
    bool refused = field->exists_refusal != NULL && binder->context->dialect == DIALECT_7;
    return refused ? refuse_metadata(binder, field, field->exists_refusal) : 0;
}

static int parse_seq_no(struct binder *binder, yyjson_val *scalar, int64_t *ret_number)
{
    struct slice text = query__scalar_text(binder->arena, scalar);
    double number = yyjson_is_real(scalar) ? yyjson_get_real(scalar) : 0;
    if (yyjson_is_real(scalar) && !(number >= -9223372036854775808.0 && number < 9223372036854775808.0))
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "Value [%.*s] is out of range for a long",
                            SLICE_ARG(text));
    if (number != floor(number))
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "Value [%.*s] has a decimal part", SLICE_ARG(text));
    *ret_number = (int64_t)number;
    if (!yyjson_is_real(scalar) && !slice_to_i64(text, ret_number))
        return bind__refuse(binder, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
    return 0;
}

/* Binds term and terms on _seq_no. */
static int bind_seq_no(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    struct bound_query *any = bind__new(binder, BOUND_BOOL, 1), *constant;
    for (size_t i = 0; i < query->values.count; i++) {
        struct bound_query *one = bind__new(binder, BOUND_SEQ_NO, query->boost);
        int64_t number;
        int r = parse_seq_no(binder, query->values.items[i], &number);
        if (r != 0)
            return r;
        one->range.has_low = one->range.has_high = true;
        one->range.low = one->range.high =
            (struct field_value){.field = FIELD_NUMBER_NONE, .kind = FIELD_VALUE_I64, .i64 = number};
        bind__list_add(binder, &any->boolean.should, one);
    }
    any->boolean.minimum = 1;
    constant = bind__new(binder, BOUND_CONSTANT, query->boost);
    bind__list_add(binder, &constant->compound.queries, any);
    *ret_matcher = query->values.count == 1  ? any->boolean.should.items[0]
                   : query->values.count > 1 ? constant
                                             : bind__none(binder);
    return 0;
}

static int bind_terms(struct binder *binder, const struct metadata_field *field, const struct query *query,
                      struct bound_query **ret_matcher)
{
    *ret_matcher = bind__none(binder);
    if (field->term_refusal != NULL && query->values.count > 0) /* an empty list is not validated */
        return binder->context->dialect == DIALECT_7 || (field->traits & METADATA_NO_CAUSE) != 0
                   ? refuse_metadata(binder, field, field->term_refusal)
                   : 0;
    switch (field->number) {
    case METADATA_ID: *ret_matcher = bind__ids(binder, query); return 0;
    case METADATA_INDEX: *ret_matcher = index_by_name(binder, query); return 0;
    case METADATA_TYPE: *ret_matcher = bind__types(binder, query); return 0;
    case METADATA_ROUTING: *ret_matcher = by_names(binder, BOUND_ROUTING, query); return 0;
    case METADATA_SEQ_NO: return binder->context->dialect == DIALECT_7 ? bind_seq_no(binder, query, ret_matcher) : 0;
    case METADATA_VERSION:
    case METADATA_SOURCE:
    case METADATA_FIELD_NAMES:
    case METADATA_IGNORED:
    case METADATA_FEATURE: return 0;
    case METADATA_COUNT: break;
    }
    UNREACHABLE();
    return 0;
}

int bind__metadata(struct binder *binder, const struct metadata_field *field, const struct query *query,
                   struct bound_query **ret_matcher)
{
    if (query->kind == QUERY_TERM || query->kind == QUERY_TERMS)
        return bind_terms(binder, field, query, ret_matcher);
    if (query->kind == QUERY_EXISTS)
        return bind_exists(binder, field, query, ret_matcher);
    if (binder->context->dialect == DIALECT_5) {
        *ret_matcher = bind__none(binder);
        return query->kind == QUERY_RANGE && field->number == METADATA_SEQ_NO
                   ? bind__range(binder, query, NULL, ret_matcher)
                   : 0;
    }
    return query->kind == QUERY_RANGE ? bind_range(binder, field, query, ret_matcher)
                                      : bind_pattern(binder, field, query, ret_matcher);
}
