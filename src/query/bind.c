/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding a query to an index: compound queries, terms, exists, scripts, query strings, and the
 * dispatch.
 *
 * Single values are bound in bind_value.c, analysed text in bind_text.c, metadata fields in
 * bind_metadata.c.
 */
#include "query/bound_query.h"
#include "query/metadata.h"
#include "query/named.h"

#include "base/budget.h"
#include "base/check.h"
#include "script/script.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

/* --- Making and refusing ------------------------------------------------------------------------------------------ */

struct bound_query *bind__new(struct binder *binder, enum bound_query_kind kind, double boost)
{
    struct bound_query *matcher = arena_zalloc(binder->arena, sizeof *matcher);
    matcher->kind = kind;
    matcher->boost = (float)boost;
    return matcher;
}

void bind__list_add(struct binder *binder, struct bound_query_list *list, struct bound_query *matcher)
{
    list->items = arena_grow(binder->arena, list->items, list->count, &list->capacity, sizeof(struct bound_query *));
    list->items[list->count++] = matcher;
}

int bind__refuse(struct binder *binder, enum problem_type type, const char *format, ...)
{
    struct problem *cause = arena_zalloc(binder->arena, sizeof *cause);
    va_list arguments;
    va_start(arguments, format);
    cause->type = type;
    cause->reason = arena_vprintf(binder->arena, format, arguments);
    va_end(arguments);
    problem_set(binder->problem, binder->arena, PROBLEM_QUERY_SHARD, "failed to create query: %.*s",
                SLICE_ARG(cause->reason));
    binder->problem->caused_by = cause;
    return QUERY_REFUSED;
}

int bind__refuse_plain(struct binder *binder, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(binder->arena, format, arguments);
    va_end(arguments);
    *binder->problem = (struct problem){.type = PROBLEM_QUERY_SHARD, .reason = reason};
    return QUERY_REFUSED;
}

bool bind__charge(struct binder *binder, uint64_t steps)
{
    const struct budget_guard *memory = binder->context->memory;
    return account_take(binder->account, steps) && (memory == NULL || !memory->refused);
}

void binder_deinit(struct binder *binder)
{
    for (size_t i = 0; i < binder->script_count; i++)
        script_unref(binder->scripts[i]);
    binder->script_count = 0;
}

static struct bound_query *bind_all(struct binder *binder, double boost)
{
    return bind__new(binder, BOUND_ALL, boost);
}

struct bound_query *bind__absent(struct binder *binder)
{
    struct bound_query *matcher = bind__new(binder, BOUND_NONE, 1);
    matcher->absent = true;
    return matcher;
}

struct bound_query *bind__none(struct binder *binder)
{
    return bind__new(binder, BOUND_NONE, 1);
}

/* --- term, terms -------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    return field_value_compare(a, b);
}

static int bind_terms(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    size_t limit = binder->index->terms_max != 0 ? binder->index->terms_max : QUERY_TERMS_MAX;
    if (query->values.count > limit)
        return bind__refuse(
            binder, PROBLEM_ILLEGAL_ARGUMENT,
            "The number of terms [%zu] used in the Terms Query request has exceeded the allowed maximum of "
            "[%zu]. This maximum can be set by changing the [index.max_terms_count] index level setting.",
            query->values.count, limit);
    const struct mapping_field *field = mapping_field(binder->index->mapping, query->field);
    const struct metadata_field *metadata = field == NULL ? metadata_find(query->field) : NULL;
    if (metadata != NULL)
        return bind__metadata(binder, metadata, query, ret_matcher);
    struct bound_query *ranges = bind__new(binder, BOUND_BOOL, query->boost);
    struct bound_query *terms = bind__new(binder, BOUND_TERMS, query->boost);
    terms->field = field;
    terms->terms.values = arena_alloc(binder->arena, query->values.count * sizeof(struct field_value));
    for (size_t i = 0; field != NULL && i < query->values.count; i++) {
        struct bound_query *one;
        int r = bind__term(binder, field, query->values.items[i], 1.0, false, &one);
        if (r != 0)
            return r;
        if (one->kind == BOUND_TERMS)
            terms->terms.values[terms->terms.count++] = one->terms.values[0];
        else if (one->kind != BOUND_NONE)
            bind__list_add(binder, &ranges->boolean.should, one);
    }
    size_t unique = 0;
    if (terms->terms.count > 0)
        qsort(terms->terms.values, terms->terms.count, sizeof(struct field_value), by_value);
    for (size_t i = 0; i < terms->terms.count; i++) {
        if (unique == 0 || field_value_compare(&terms->terms.values[unique - 1], &terms->terms.values[i]) != 0)
            terms->terms.values[unique++] = terms->terms.values[i];
    }
    terms->terms.count = unique;
    *ret_matcher = unique > 0 ? terms : bind__none(binder);
    if (ranges->boolean.should.count > 0) { /* dates and address blocks */
        struct bound_query *constant = bind__new(binder, BOUND_CONSTANT, query->boost);
        ranges->boolean.minimum = 1;
        bind__list_add(binder, &ranges->boolean.should, *ret_matcher);
        bind__list_add(binder, &constant->compound.queries, ranges);
        *ret_matcher = constant;
    }
    return 0;
}

/* --- exists ------------------------------------------------------------------------------------------------------- */

struct field_collector {
    struct binder *binder;
    const struct mapping_field **fields;
    size_t count, capacity;
};

static void collect_field(void *context, const struct mapping_field *field)
{
    struct field_collector *found = context;
    found->fields =
        arena_grow(found->binder->arena, found->fields, found->count, &found->capacity, sizeof *found->fields);
    found->fields[found->count++] = field;
}

static bool keeps_values(const struct mapping_field *field)
{
    return field->indexed || field->doc_values || field->type == FIELD_BINARY || field->type == FIELD_STORED;
}

static int bind_exists(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    struct field_collector found = {.binder = binder};
    const struct mapping_field *field = mapping_field(binder->index->mapping, query->field);
    const struct metadata_field *metadata = field == NULL ? metadata_find(query->field) : NULL;
    if (metadata != NULL)
        return bind__metadata(binder, metadata, query, ret_matcher);
    if (field != NULL && field->type != FIELD_OBJECT && field->type != FIELD_NESTED)
        collect_field(&found, field);
    else if (field != NULL)
        mapping_fields_matching(binder->index->mapping, arena_printf(binder->arena, "%.*s.*", SLICE_ARG(query->field)),
                                collect_field, &found);
    else if (slice_find_byte(query->field, '*') < query->field.len)
        mapping_fields_matching(binder->index->mapping, query->field, collect_field, &found);
    struct bound_query *matcher = bind__new(binder, BOUND_EXISTS, query->boost);
    for (size_t i = 0; i < found.count; i++) {
        if (keeps_values(found.fields[i]))
            found.fields[matcher->exists.count++] = found.fields[i];
    }
    matcher->exists.fields = found.fields;
    *ret_matcher = matcher->exists.count > 0 ? matcher : bind__none(binder);
    return 0;
}

/* --- bool and friends --------------------------------------------------------------------------------------------- */

static int bind_list(struct binder *binder, const struct query_list *list, bool scores,
                     struct bound_query_list *ret_list)
{
    bool parent_scores = binder->scores;
    int r = 0;
    binder->scores = parent_scores && scores;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        struct bound_query *matcher = NULL;
        r = query_bind(binder, list->items[i], &matcher);
        if (r == 0 && !matcher->absent)
            bind__list_add(binder, ret_list, matcher);
    }
    binder->scores = parent_scores;
    return r;
}

static bool take_count(struct slice text, long *ret_number, bool *ret_percent)
{
    char digits[24] = "";
    if (text.len == 0 || text.len >= sizeof digits)
        return false;
    memcpy(digits, text.data, text.len);
    char *end;
    *ret_number = strtol(digits, &end, 10);
    *ret_percent = *end == '%';
    return end != digits && (*end == '\0' || (*end == '%' && end[1] == '\0'));
}

int bind__minimum(struct binder *binder, struct slice text, size_t count, size_t *ret_minimum)
{
    struct slice chosen = text;
    if (slice_find_byte(text, '<') < text.len) {
        chosen = SLICE_NONE;
        for (struct slice rest = text; rest.len > 0;) { /* "2<-25% 9<-3": the last that holds */
            size_t space = slice_find_byte(rest, ' ');
            struct slice condition = {rest.data, space};
            size_t sign = slice_find_byte(condition, '<');
            long above;
            bool percent;
            if (sign < condition.len && take_count((struct slice){condition.data, sign}, &above, &percent) &&
                (long)count > above)
                chosen = slice_from_offset(condition, sign + 1);
            rest = slice_from_offset(rest, space + 1);
        }
        if (chosen.data == NULL) {
            *ret_minimum = count;
            return 0;
        }
    }
    long number;
    bool percent;
    if (!take_count(chosen, &number, &percent))
        return bind__refuse(binder, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(chosen));
    if (percent)
        number = (long)((double)count * (double)number / 100.0);
    long minimum = number < 0 ? (long)count + number : number;
    *ret_minimum = minimum < 0 ? 0 : (size_t)minimum;
    return 0;
}

static bool cannot_match(const struct query *query);

static bool any_cannot_match(const struct query_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (cannot_match(list->items[i]))
            return true;
    return false;
}

/*
 * Returns: whether a query matches nothing in any index. Then 7.10 does not validate its other
 * clauses; clients often build `terms: []`. Recursion is bounded by the parser's depth limit.
 */
static bool cannot_match(const struct query *query)
{
    switch (query->kind) {
    case QUERY_MATCH_NONE: return true;
    case QUERY_IDS: return query->values.count == 0;
    case QUERY_TERMS: return query->values.lookup == NULL && query->values.count == 0;
    case QUERY_CONSTANT_SCORE: return any_cannot_match(&query->compound.queries);
    case QUERY_BOOL: return any_cannot_match(&query->boolean.must) || any_cannot_match(&query->boolean.filter);
    default: return false;
    }
}

static int bind_bool(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    if (binder->context->dialect == DIALECT_7 && cannot_match(query)) {
        *ret_matcher = bind__none(binder);
        return 0;
    }
    size_t limit = binder->index->clauses_max != 0 ? binder->index->clauses_max : QUERY_CLAUSES_MAX;
    size_t clauses = query->boolean.must.count + query->boolean.filter.count + query->boolean.should.count +
                     query->boolean.must_not.count;
    if (clauses > limit) {
        bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "maxClauseCount is set to %zu", limit);
        binder->problem->caused_by->name = SLICE_LIT("too_many_clauses");
        return QUERY_REFUSED;
    }
    struct bound_query *matcher = bind__new(binder, BOUND_BOOL, query->boost);
    int r = bind_list(binder, &query->boolean.must, true, &matcher->boolean.must);
    if (r == 0)
        r = bind_list(binder, &query->boolean.must_not, false, &matcher->boolean.must_not);
    if (r == 0)
        r = bind_list(binder, &query->boolean.should, true, &matcher->boolean.should);
    if (r == 0)
        r = bind_list(binder, &query->boolean.filter, false, &matcher->boolean.filter);
    if (r != 0)
        return r;
    bool excluding = matcher->boolean.must_not.count > 0;
    bool required = matcher->boolean.must.count > 0 || matcher->boolean.filter.count > 0;
    size_t optional = matcher->boolean.should.count;
    if (clauses > 0 && !excluding && (query->boolean.excludes || (!required && optional == 0))) {
        *ret_matcher = bind__absent(binder);
        return 0;
    }
    matcher->boolean.minimum = !required && optional > 0;
    bool negative = !required && optional == 0; /* only must_not: the minimum is ignored */
    if (query->boolean.minimum_should_match.len > 0 && !negative) {
        r = bind__minimum(binder, query->boolean.minimum_should_match, optional, &matcher->boolean.minimum);
        if (r == 0 && matcher->boolean.minimum == 0 && !required && optional > 0)
            matcher->boolean.minimum = 1; /* without required clauses one optional must match */
    }
    *ret_matcher = matcher;
    if (clauses == 0)
        *ret_matcher = bind_all(binder, query->boost);
    else if (negative && query->boolean.keep_pure_negative)
        *ret_matcher = bind__none(binder);
    return r;
}

static int bind_compound(struct binder *binder, const struct query *query, enum bound_query_kind kind, bool scores,
                         struct bound_query **ret_matcher)
{
    struct bound_query *matcher = bind__new(binder, kind, query->boost);
    matcher->compound.number = isnan(query->compound.number) ? 0.0f : (float)query->compound.number;
    int r = bind_list(binder, &query->compound.queries, scores, &matcher->compound.queries);
    bool absent = r == 0 && query->compound.queries.count > 0 && matcher->compound.queries.count == 0;
    *ret_matcher = absent ? bind__absent(binder) : matcher;
    return r;
}

static int bind_nested(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    const struct mapping_field *field = mapping_field(binder->index->mapping, query->field);
    if (field != NULL && field->type == FIELD_NESTED)
        return query_bind(binder, query->compound.queries.items[0], ret_matcher);
    *ret_matcher = bind__none(binder);
    if (query->compound.ignore_unmapped)
        return 0;
    bind__refuse(binder, PROBLEM_ILLEGAL_STATE, "[nested] %s [%.*s] is not of nested type",
                 field == NULL ? "failed to find nested object under path" : "nested object under path",
                 SLICE_ARG(query->field));
    if (field == NULL) {
        struct slice reason = arena_printf(binder->arena, "[nested] failed to find nested object under path [%.*s]",
                                           SLICE_ARG(query->field));
        binder->problem->caused_by->reason = reason;
        binder->problem->reason = arena_printf(binder->arena, "failed to create query: %.*s", SLICE_ARG(reason));
    }
    return QUERY_REFUSED;
}

/* --- Scripts ------------------------------------------------------------------------------------------------------ */

int bind__script(struct binder *binder, const struct query_script *spec, int script_context, struct script **ret_script)
{
    if (binder->context->compile == NULL)
        return bind__refuse_plain(binder, "scripts are not available here");
    struct script *script = NULL;
    int r = binder->context->compile(binder->context->compile_user, spec, script_context, &script, binder->arena,
                                     binder->problem);
    if (r > 0)
        return QUERY_REFUSED;
    if (r < 0)
        return tl_trace(r);
    binder->scripts = arena_grow(binder->arena, binder->scripts, binder->script_count, &binder->script_capacity,
                                 sizeof *binder->scripts);
    binder->scripts[binder->script_count++] = script;
    *ret_script = script;
    return 0;
}

/* Wraps a compile error of a script in "failed to create query". */
static int refuse_script(struct binder *binder)
{
    struct problem *cause = arena_alloc(binder->arena, sizeof *cause);
    *cause = *binder->problem;
    problem_set(binder->problem, binder->arena, PROBLEM_QUERY_SHARD, "failed to create query: %.*s",
                SLICE_ARG(cause->reason));
    binder->problem->caused_by = cause;
    return QUERY_REFUSED;
}

static int bind_script_query(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    struct bound_query *matcher = bind__new(binder, BOUND_SCRIPT, query->boost);
    matcher->script.params = query->script->params;
    *ret_matcher = matcher;
    int r = bind__script(binder, query->script, SCRIPT_FOR_FILTER, &matcher->script.script);
    return r == QUERY_REFUSED ? refuse_script(binder) : r;
}

static int bind_function(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    struct bound_query *matcher = bind__new(binder, BOUND_FUNCTION, query->boost);
    matcher->function.spec = query;
    matcher->function.checked = binder->context->dialect == DIALECT_7;
    matcher->function.functions = arena_zalloc(binder->arena, query->function.count * sizeof(struct bound_function));
    int r = query_bind(binder, query->function.query, &matcher->function.query);
    for (size_t i = 0; r == 0 && i < query->function.count; i++) {
        struct bound_function *function = &matcher->function.functions[i];
        function->spec = &query->function.functions[i];
        if (function->spec->filter != NULL)
            r = query_bind(binder, function->spec->filter, &function->filter);
        if (r == 0 && function->spec->script != NULL)
            r = bind__script(binder, function->spec->script, SCRIPT_FOR_SCORE, &function->script);
        if (r == 0 && function->spec->field_factor) {
            const struct metadata_field *metadata = metadata_find(function->spec->field);
            function->field = mapping_field(binder->index->mapping, function->spec->field);
            function->metadata =
                function->field == NULL && metadata_has_values(metadata) && (metadata->traits & METADATA_NUMERIC) != 0
                    ? metadata
                    : NULL;
            if (function->field == NULL && metadata != NULL && binder->context->dialect == DIALECT_7 &&
                !metadata_has_values(metadata))
                r = bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "%.*s",
                                 SLICE_ARG(metadata_refusal(binder->arena, metadata)));
            else if (function->field == NULL && function->metadata == NULL && isnan(function->spec->missing))
                r = bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                                 "Unable to find a field mapper for field [%.*s]. No 'missing' value defined.",
                                 SLICE_ARG(function->spec->field));
        }
    }
    *ret_matcher = matcher;
    return r;
}

/* --- Query strings ------------------------------------------------------------------------------------------------ */

static int bind_lucene(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    struct query *parsed = NULL;
    bool simple = query->kind == QUERY_SIMPLE;
    int r =
        bind__check_analyzer(binder, simple ? "simple_query_string" : "query_string", query->lucene.options.analyzer);
    if (r != 0)
        return r;
    if (!simple && query->lucene.options.default_field.len > 0 && query->lucene.field_count > 0 &&
        binder->context->dialect == DIALECT_7) {
        r = bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                         "Validation Failed: 1: [query_string] cannot use [fields] parameter in conjunction with "
                         "[default_field];");
        binder->problem->caused_by->name = SLICE_LIT("query_validation_exception");
        return r;
    }
    if (simple) {
        parsed = lucene_parse_simple(binder->arena, binder->index->mapping, query, query->lucene.fields,
                                     query->lucene.field_count);
    } else {
        struct problem problem = {0};
        r = lucene_parse(binder->arena, binder->index->mapping, query, query->lucene.fields, query->lucene.field_count,
                         &parsed, &problem);
        if (r != 0) {
            bind__refuse_plain(binder, "Failed to parse query [%.*s]", SLICE_ARG(query->lucene.text));
            binder->problem->caused_by = arena_alloc(binder->arena, sizeof problem);
            *binder->problem->caused_by = problem;
            return QUERY_REFUSED;
        }
    }
    r = query_bind(binder, parsed, ret_matcher);
    if (r == 0)
        (*ret_matcher)->absent = false; /* a query string of stop words alone matches nothing */
    return r;
}

/* --- Dispatch ----------------------------------------------------------------------------------------------------- */

/* Binds a leaf on one field. An unmapped field matches nothing. */
static int bind_field(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    const struct mapping_field *field = mapping_field(binder->index->mapping, query->field);
    const struct metadata_field *metadata = field == NULL ? metadata_find(query->field) : NULL;
    if (metadata != NULL)
        return bind__metadata(binder, metadata, query, ret_matcher);
    *ret_matcher = bind__none(binder);
    if (field == NULL || field->type == FIELD_OBJECT || field->type == FIELD_NESTED)
        return 0;
    if (query->kind == QUERY_TERM)
        return bind__term(binder, field, query->values.items[0], query->boost, binder->scores, ret_matcher);
    return query->kind == QUERY_RANGE ? bind__range(binder, query, field, ret_matcher)
                                      : bind__pattern(binder, query, field, ret_matcher);
}

static int bind_node(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    switch (query->kind) {
    case QUERY_MATCH_ALL: *ret_matcher = bind_all(binder, query->boost); return 0;
    case QUERY_MATCH_NONE: *ret_matcher = bind__none(binder); return 0;
    case QUERY_IDS: *ret_matcher = bind__ids(binder, query); return 0;
    case QUERY_TYPE: *ret_matcher = bind__types(binder, query); return 0;
    case QUERY_TERMS: return bind_terms(binder, query, ret_matcher);
    case QUERY_TERM:
    case QUERY_PREFIX:
    case QUERY_WILDCARD:
    case QUERY_REGEXP:
    case QUERY_FUZZY:
    case QUERY_RANGE: return bind_field(binder, query, ret_matcher);
    case QUERY_EXISTS: return bind_exists(binder, query, ret_matcher);
    case QUERY_BOOL: return bind_bool(binder, query, ret_matcher);
    case QUERY_CONSTANT_SCORE: return bind_compound(binder, query, BOUND_CONSTANT, false, ret_matcher);
    case QUERY_DIS_MAX: return bind_compound(binder, query, BOUND_DIS_MAX, true, ret_matcher);
    case QUERY_BOOSTING: return bind_compound(binder, query, BOUND_BOOSTING, true, ret_matcher);
    case QUERY_NESTED: return bind_nested(binder, query, ret_matcher);
    case QUERY_FUNCTION_SCORE: return bind_function(binder, query, ret_matcher);
    case QUERY_MATCH: return bind__match(binder, query, ret_matcher);
    case QUERY_MULTI_MATCH: return bind__multi_match(binder, query, ret_matcher);
    case QUERY_LUCENE:
    case QUERY_SIMPLE: return bind_lucene(binder, query, ret_matcher);
    case QUERY_SCRIPT: return bind_script_query(binder, query, ret_matcher);
    case QUERY_KIND_COUNT: break;
    }
    UNREACHABLE();
    return 0;
}

/* Returns: the length in UTF-16 code units, as Java counts it. */
static size_t characters_of(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        count += (byte & 0xc0) != 0x80 ? (byte >= 0xf0 ? 2 : 1) : 0;
    }
    return count;
}

/* Checks the length of a regular expression, on any field: compiling a long one is expensive. */
static int check_regexp(struct binder *binder, const struct query *query)
{
    size_t most = binder->index->regexp_max != 0 ? binder->index->regexp_max : QUERY_REGEXP_CHARACTERS_MAX;
    struct slice text = query__scalar_text(binder->arena, query->pattern.value);
    size_t length = characters_of(text);
    if (length <= most)
        return 0;
    return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                        "The length of regex [%zu] used in the %s has exceeded the allowed maximum of [%zu]. This "
                        "maximum can be set by changing the [index.max_regex_length] index level setting.",
                        length, query->pattern.in_query_string ? "[query_string]" : "Regexp Query request", most);
}

/* Account steps for each node, which may look up names or build a table of letters. */
enum { BIND_STEPS = 100 };

int query_bind(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    if (!bind__charge(binder, BIND_STEPS))
        return QUERY_REFUSED;
    if (query->kind == QUERY_REGEXP && check_regexp(binder, query) != 0)
        return QUERY_REFUSED;
    if (binder->depth >= 2 * QUERY_DEPTH_MAX)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "The nested depth of the query exceeds the maximum of %d",
                            QUERY_DEPTH_MAX);
    binder->depth++;
    int r = bind_node(binder, query, ret_matcher);
    binder->depth--;
    if (r == QUERY_REFUSED && query->lenient && bind__charge(binder, 0)) {
        *binder->problem = (struct problem){0};
        *ret_matcher = bind__none(binder);
        r = 0;
    }
    if (r == 0 && query->name.data != NULL && binder->named != NULL)
        named_put(binder->named, binder->arena, query->name, *ret_matcher);
    return r;
}
