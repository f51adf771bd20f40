/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding values to fields: terms, ranges and patterns, with the conversions and refusals of each
 * type.
 */
#include "query/bound_query.h"

#include "base/check.h"
#include "json/each.h"
#include "mapping/analysis.h"
#include "mapping/date.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static bool is_integer_field(const struct mapping_field *field)
{
    return field->type == FIELD_LONG || field->type == FIELD_INTEGER || field->type == FIELD_SHORT ||
           field->type == FIELD_BYTE;
}

static bool is_text_field(const struct mapping_field *field)
{
    return field->type == FIELD_TEXT || field->type == FIELD_KEYWORD || field->type == FIELD_PATH;
}

/* Refuses fields that are not searchable by value. */
static int check_searchable(struct binder *binder, const struct mapping_field *field)
{
    if (field->type == FIELD_BINARY)
        return bind__refuse_plain(binder, "Binary fields do not support searching");
    if (field->type == FIELD_STORED)
        return bind__refuse_plain(binder, "Field [%.*s] of type [%.*s] does not support searching",
                                  SLICE_ARG(field->path), SLICE_ARG(field->type_name));
    if (!field->indexed)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "Cannot search on field [%.*s] since it is not indexed.",
                            SLICE_ARG(field->path));
    return 0;
}

/* Converts a scalar to a number. Returns: false for booleans and text that is not a number. */
static bool scalar_number(struct binder *binder, yyjson_val *scalar, double *ret_number)
{
    return !yyjson_is_bool(scalar) && slice_to_double(query__scalar_text(binder->arena, scalar), ret_number);
}

static int refuse_value(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar,
                        const struct problem *cause)
{
    struct slice text = query__scalar_text(binder->arena, scalar);
    if (field->type == FIELD_BOOLEAN)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                            "Can't parse boolean value [%.*s], expected [true] or [false]", SLICE_ARG(text));
    if (field->type == FIELD_IP)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "'%.*s' is not an IP string literal.", SLICE_ARG(text));
    bool number = slice_starts_with(cause->reason, SLICE_LIT("For input string"));
    bind__refuse(binder, number ? PROBLEM_NUMBER_FORMAT : cause->type, "%.*s", SLICE_ARG(cause->reason));
    binder->problem->caused_by->name = cause->name;
    return QUERY_REFUSED;
}

/*
 * Parses a value of a query as a field's. An empty text is false in a document, but no value of a
 * query on a boolean. Returns: as field_value_parse().
 */
static int parse_value(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar,
                       struct field_value *ret_value, struct problem *ret_cause)
{
    if (field->type == FIELD_BOOLEAN && binder->context->dialect == DIALECT_7 && yyjson_equals_str(scalar, ""))
        return FIELD_VALUE_REFUSED;
    return field_value_parse(field, scalar, binder->context->dialect, binder->arena, ret_value, ret_cause);
}

/* --- Dates -------------------------------------------------------------------------------------------------------- */

int bind__refuse_date(struct binder *binder, struct slice text, struct slice format)
{
    struct slice inner = arena_printf(binder->arena, "failed to parse date field [%.*s] with format [%.*s]",
                                      SLICE_ARG(text), SLICE_ARG(format));
    if (binder->context->dialect == DIALECT_5) {
        bind__refuse(binder, PROBLEM_PARSE, "%.*s", SLICE_ARG(inner));
        struct problem *position = arena_zalloc(binder->arena, sizeof *position);
        problem_set(position, binder->arena, PROBLEM_ILLEGAL_ARGUMENT, "Parse failure at index [0] of [%.*s]",
                    SLICE_ARG(text));
        binder->problem->caused_by->caused_by = position;
        return QUERY_REFUSED;
    }
    bind__refuse(binder, PROBLEM_PARSE, "%.*s: [%.*s]", SLICE_ARG(inner), SLICE_ARG(inner));
    struct problem *cause = arena_zalloc(binder->arena, 2 * sizeof *cause);
    cause[0] = (struct problem){.type = PROBLEM_ILLEGAL_ARGUMENT, .reason = inner, .caused_by = &cause[1]};
    cause[1] = (struct problem){.type = PROBLEM_ILLEGAL_ARGUMENT,
                                .name = SLICE_LIT("date_time_parse_exception"),
                                .reason = SLICE_LIT("Failed to parse with all enclosed parsers")};
    binder->problem->caused_by->caused_by = cause;
    return QUERY_REFUSED;
}

static int date_value(struct binder *binder, const struct mapping_field *field, const struct query *range,
                      yyjson_val *scalar, bool round_up, int64_t *ret_millis)
{
    const struct date_format *format = field->format != NULL ? field->format : date_format_default(DATE_RULES_7_10);
    const struct zone *zone = range == NULL ? NULL : range->range.zone;
    if (range != NULL && range->range.format.len > 0 &&
        date_format_parse(binder->arena, range->range.format, date_format_rules(format), &format) != 0)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "Invalid format: [%.*s]: Unknown pattern letter",
                            SLICE_ARG(range->range.format));
    struct slice text = query__scalar_text(binder->arena, scalar);
    if (date_parse_math(format, text, binder->context->now_ms, round_up, zone, ret_millis) != 0)
        return bind__refuse_date(binder, text, date_format_text(format));
    return 0;
}

enum { OUT_OF_FIELD = 2 };

/*
 * Checks a number against the range of an integer field. Elasticsearch parses numbers for byte and
 * short as integers: outside the field's own range they match nothing.
 * Returns: 0; OUT_OF_FIELD: no value of the field equals it; QUERY_REFUSED.
 */
static int out_of_range(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, double number)
{
    bool is_long = field->type == FIELD_LONG;
    double limit = is_long ? 9223372036854775808.0 : 2147483648.0;
    if (number < -limit || number >= limit)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "Value [%.*s] is out of range for %s",
                            SLICE_ARG(query__scalar_text(binder->arena, scalar)), is_long ? "a long" : "an integer");
    limit = field->type == FIELD_BYTE ? 128 : field->type == FIELD_SHORT ? 32768 : limit;
    return number < -limit || number >= limit ? OUT_OF_FIELD : 0;
}

/* --- Terms -------------------------------------------------------------------------------------------------------- */

static struct bound_query *single_value(struct binder *binder, const struct mapping_field *field,
                                        const struct field_value *value, double boost, bool scored)
{
    bool is_text = is_text_field(field) || field->type == FIELD_BOOLEAN;
    struct bound_query *matcher = bind__new(binder, BOUND_TERMS, is_text ? boost * field->boost : boost);
    matcher->field = field;
    matcher->terms.values = arena_alloc(binder->arena, sizeof *value);
    matcher->terms.values[0] = *value;
    matcher->terms.count = 1;
    if (scored && is_text && field->scored) {
        matcher->terms.weight.scored = true;
        matcher->terms.weight.norms = field->norms;
        matcher->terms.weight.frequencies = field->frequencies;
        bind__list_add(binder, &binder->terms, matcher);
    }
    return matcher;
}

static int date_term(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, double boost,
                     struct bound_query **ret_matcher)
{
    struct bound_query *matcher = bind__new(binder, BOUND_RANGE, boost * field->boost);
    matcher->field = field;
    matcher->range.has_low = matcher->range.has_high = true;
    matcher->range.low = matcher->range.high = (struct field_value){.field = field->number, .kind = FIELD_VALUE_I64};
    int r = date_value(binder, field, NULL, scalar, false, &matcher->range.low.i64);
    if (r == 0)
        r = date_value(binder, field, NULL, scalar, true, &matcher->range.high.i64);
    *ret_matcher = matcher;
    return r;
}

/*
 * Binds an address block ("10.0.0.0/8") on an ip field. Returns: false if the text is not an
 * address block.
 */
static bool bind_ip_block(struct binder *binder, const struct mapping_field *field, struct slice text, double boost,
                          struct bound_query **ret_matcher)
{
    size_t slash = slice_find_byte(text, '/');
    uint64_t bits;
    struct field_value base;
    struct problem ignored;
    if (slash >= text.len || !slice_to_u64(slice_from_offset(text, slash + 1), &bits))
        return false;
    yyjson_val *address = query__text(binder->arena, (struct slice){text.data, slash});
    if (field_value_parse(field, address, binder->context->dialect, binder->arena, &base, &ignored) != 0 ||
        base.bytes.len != 16)
        return false;
    if (memchr(text.data, ':', slash) == NULL)
        bits += 96;
    if (bits > 128)
        return false;
    char *low = arena_alloc(binder->arena, 32), *high = low + 16;
    for (unsigned i = 0; i < 16; i++) {
        unsigned network_bits = bits >= (i + 1) * 8 ? 8 : bits > i * 8 ? (unsigned)(bits - i * 8) : 0;
        unsigned char mask = (unsigned char)(0xff00u >> network_bits);
        low[i] = (char)((unsigned char)base.bytes.data[i] & mask);
        high[i] = (char)((unsigned char)base.bytes.data[i] | (unsigned char)~mask);
    }
    struct bound_query *matcher = bind__new(binder, BOUND_RANGE, boost * field->boost);
    matcher->field = field;
    matcher->range.has_low = matcher->range.has_high = true;
    matcher->range.low = matcher->range.high = base;
    matcher->range.low.bytes.data = low;
    matcher->range.high.bytes.data = high;
    *ret_matcher = matcher;
    return true;
}

enum { TERM_STEPS = 50 }; /* of the account, to parse and store a value */

int bind__term(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, double boost, bool scored,
               struct bound_query **ret_matcher)
{
    *ret_matcher = bind__none(binder);
    if (!bind__charge(binder, TERM_STEPS))
        return QUERY_REFUSED;
    if (field->type == FIELD_OBJECT || field->type == FIELD_NESTED)
        return 0;
    int r = check_searchable(binder, field);
    if (r != 0)
        return r;
    if (field->type == FIELD_DATE)
        return date_term(binder, field, scalar, boost, ret_matcher);
    if (field->type == FIELD_IP &&
        bind_ip_block(binder, field, query__scalar_text(binder->arena, scalar), boost, ret_matcher))
        return 0;
    double number;
    if (is_integer_field(field) && scalar_number(binder, scalar, &number) && number != floor(number))
        return 0; /* an integer field has no fractions: matches nothing */
    if (is_integer_field(field) && yyjson_is_bool(scalar))
        return bind__refuse(binder, PROBLEM_NUMBER_FORMAT, "For input string: \"%s\"",
                            yyjson_is_true(scalar) ? "true" : "false");
    if (is_integer_field(field) && scalar_number(binder, scalar, &number) &&
        (r = out_of_range(binder, field, scalar, number)) != 0)
        return r == OUT_OF_FIELD ? 0 : r;
    struct field_value value;
    struct problem cause = {0};
    r = parse_value(binder, field, scalar, &value, &cause);
    if (r == FIELD_VALUE_IGNORED)
        return 0;
    if (r == FIELD_VALUE_REFUSED)
        return refuse_value(binder, field, scalar, &cause);
    if (r < 0)
        return tl_trace(r);
    *ret_matcher = single_value(binder, field, &value, boost, scored);
    return 0;
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

/*
 * Binds a bound of an integer field. A fraction, or a number outside int64, moves to the nearest
 * integer inside the range.
 */
static int integer_bound(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, bool high,
                         struct bound_query *matcher)
{
    struct slice text = query__scalar_text(binder->arena, scalar);
    int64_t exact;
    double number;
    if (!slice_to_i64(text, &exact)) {
        if (!scalar_number(binder, scalar, &number))
            return bind__refuse(binder, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
        if (field != NULL && out_of_range(binder, field, scalar, number) == QUERY_REFUSED)
            return QUERY_REFUSED;
        double whole = high ? floor(number) : ceil(number);
        if (whole != number) { /* 1.5 < x means 2 <= x */
            matcher->range.low_exclusive = high ? matcher->range.low_exclusive : false;
            matcher->range.high_exclusive = high ? false : matcher->range.high_exclusive;
        }
        exact = whole >= 9.2233720368547758e18    ? INT64_MAX
                : whole <= -9.2233720368547758e18 ? INT64_MIN
                                                  : (int64_t)whole;
    } else if (field != NULL && field->type != FIELD_LONG &&
               out_of_range(binder, field, scalar, (double)exact) == QUERY_REFUSED) {
        return QUERY_REFUSED;
    }
    (high ? &matcher->range.high : &matcher->range.low)->i64 = exact;
    return 0;
}

static int scaled_bound(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, bool high,
                        struct bound_query *matcher)
{
    double number;
    if (!scalar_number(binder, scalar, &number))
        return bind__refuse(binder, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                            SLICE_ARG(query__scalar_text(binder->arena, scalar)));
    double scaled = number * field->scaling_factor;
    double whole = high ? floor(scaled) : ceil(scaled);
    if (whole != scaled && high)
        matcher->range.high_exclusive = false;
    else if (whole != scaled)
        matcher->range.low_exclusive = false;
    (high ? &matcher->range.high : &matcher->range.low)->i64 = whole >= 9.2233720368547758e18    ? INT64_MAX
                                                               : whole <= -9.2233720368547758e18 ? INT64_MIN
                                                                                                 : (int64_t)whole;
    return 0;
}

static int other_bound(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, bool high,
                       struct bound_query *matcher)
{
    struct field_value *bound = high ? &matcher->range.high : &matcher->range.low;
    struct problem cause = {0};
    if (field->type == FIELD_KEYWORD || field->type == FIELD_TEXT || field->type == FIELD_PATH) {
        bound->bytes = query__scalar_text(binder->arena, scalar);
        if (field->type == FIELD_KEYWORD && field->analyzer != NULL)
            bound->bytes = analyzer_normalize(field->analyzer, bound->bytes, binder->arena);
        return 0;
    }
    int r = parse_value(binder, field, scalar, bound, &cause);
    if (r == FIELD_VALUE_REFUSED)
        return refuse_value(binder, field, scalar, &cause);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Binds a bound of a date field. A range reports a parse error itself, without the "failed to
 * create query" of a term.
 */
static int date_bound(struct binder *binder, const struct mapping_field *field, const struct query *query,
                      yyjson_val *scalar, bool round_up, int64_t *ret_millis)
{
    int r = date_value(binder, field, query, scalar, round_up, ret_millis);
    struct problem *cause = r == QUERY_REFUSED ? binder->problem->caused_by : NULL;
    if (cause != NULL && cause->type == PROBLEM_PARSE)
        *binder->problem = *cause;
    return r;
}

/*
 * Binds one bound of a range. A date may denote a span of time ("2020-01"): an exclusive lower and
 * an inclusive upper bound round up to the end of the span.
 */
static int bind_bound(struct binder *binder, const struct query *query, const struct mapping_field *field, bool high,
                      struct bound_query *matcher)
{
    yyjson_val *scalar = high ? query->range.high : query->range.low;
    struct field_value *bound = high ? &matcher->range.high : &matcher->range.low;
    bool exclusive = high ? query->range.high_exclusive : query->range.low_exclusive;
    if (scalar == NULL)
        return 0;
    *bound = (struct field_value){.field = field != NULL ? field->number : FIELD_NUMBER_NONE,
                                  .kind = field != NULL ? (uint8_t)field_value_kind(field) : FIELD_VALUE_I64};
    *(high ? &matcher->range.has_high : &matcher->range.has_low) = true;
    if (field == NULL || is_integer_field(field))
        return integer_bound(binder, field, scalar, high, matcher);
    if (field->type == FIELD_DATE)
        return date_bound(binder, field, query, scalar, high ? !exclusive : exclusive, &bound->i64);
    if (field->type == FIELD_SCALED_FLOAT)
        return scaled_bound(binder, field, scalar, high, matcher);
    return other_bound(binder, field, scalar, high, matcher);
}

int bind__range(struct binder *binder, const struct query *query, const struct mapping_field *field,
                struct bound_query **ret_matcher)
{
    int r = field != NULL ? check_searchable(binder, field) : 0;
    if (r != 0)
        return r;
    struct bound_query *matcher = bind__new(binder, field != NULL ? BOUND_RANGE : BOUND_SEQ_NO, query->boost);
    matcher->field = field;
    matcher->range.low_exclusive = query->range.low_exclusive;
    matcher->range.high_exclusive = query->range.high_exclusive;
    r = bind_bound(binder, query, field, false, matcher);
    if (r == 0)
        r = bind_bound(binder, query, field, true, matcher);
    if (r != 0)
        return r;
    *ret_matcher = matcher;
    if (matcher->range.has_low || matcher->range.has_high)
        return 0;
    *ret_matcher = bind__new(binder, BOUND_EXISTS, query->boost);
    if (field == NULL) {
        (*ret_matcher)->kind = BOUND_ALL;
        return 0;
    }
    (*ret_matcher)->exists.fields = arena_alloc(binder->arena, sizeof field);
    (*ret_matcher)->exists.fields[0] = field;
    (*ret_matcher)->exists.count = 1;
    return 0;
}

/* --- Patterns ----------------------------------------------------------------------------------------------------- */

static struct slice lower_ascii(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len + 1);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.data[i] >= 'A' && text.data[i] <= 'Z' ? (char)(text.data[i] + 32) : text.data[i];
    return (struct slice){copy, text.len};
}

/* Normalises a wildcard or prefix for matching with tokens, which most analyzers lower-case. */
static struct slice normalized_pattern(struct binder *binder, const struct mapping_field *field, struct slice text)
{
    if (field->type == FIELD_KEYWORD && field->analyzer != NULL)
        return lower_ascii(binder->arena, text);
    if (field->type != FIELD_TEXT || field->search_analyzer == NULL)
        return text;
    struct slice analyzer = analyzer_name(field->search_analyzer);
    return slice_is(analyzer, "keyword") || slice_is(analyzer, "whitespace") ? text : lower_ascii(binder->arena, text);
}

static unsigned edits_of(struct slice fuzziness, struct slice text)
{
    size_t characters = 0;
    for (size_t i = 0; i < text.len; i++)
        characters += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    if (fuzziness.len == 0 || (fuzziness.len >= 4 && strncasecmp(fuzziness.data, "auto", 4) == 0)) {
        uint64_t low = 3, high = 6;
        struct slice bounds = slice_from_offset(fuzziness, 5); /* after "AUTO:" */
        size_t comma = slice_find_byte(bounds, ',');
        (void)slice_to_u64(slice_make(bounds.data, comma), &low);
        (void)slice_to_u64(slice_from_offset(bounds, comma + 1), &high);
        return characters < low ? 0 : characters < high ? 1 : 2;
    }
    unsigned edits = (unsigned)(fuzziness.data[0] - '0');
    return edits > 2 ? 2 : edits;
}

static int refuse_pattern(struct binder *binder, const struct query *query, const struct mapping_field *field)
{
    const char *name = query->kind == QUERY_PREFIX     ? "prefix"
                       : query->kind == QUERY_WILDCARD ? "wildcard"
                       : query->kind == QUERY_REGEXP   ? "regexp"
                                                       : "fuzzy";
    const char *fields = query->kind == QUERY_REGEXP || query->kind == QUERY_FUZZY ? "keyword and text"
                         : binder->context->dialect == DIALECT_5                   ? "keyword and text"
                                                                                   : "keyword, text and wildcard";
    if (query->kind == QUERY_FUZZY)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                            "Can only use %s queries on %s fields - not on [%.*s] which is of type [%.*s]", name,
                            fields, SLICE_ARG(field->path), SLICE_ARG(field->type_name));
    return bind__refuse_plain(binder, "Can only use %s queries on %s fields - not on [%.*s] which is of type [%.*s]",
                              name, fields, SLICE_ARG(field->path), SLICE_ARG(field->type_name));
}

static int bind_regexp(struct binder *binder, const struct query *query, struct slice text, struct bound_query *matcher)
{
    struct slice reason = SLICE_NONE;
    matcher->pattern.pattern = term_pattern_new_regexp(binder->arena, text, query->pattern.case_insensitive, &reason);
    if (matcher->pattern.pattern == NULL)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
    matcher->pattern.fits = term_pattern_regexp;
    matcher->pattern.prefix = SLICE_LIT("");
    return 0;
}

int bind__pattern_text(struct binder *binder, const struct query *query, struct slice text, struct bound_query *matcher)
{
    if (query->kind == QUERY_REGEXP)
        return bind_regexp(binder, query, text, matcher);
    if (query->kind == QUERY_FUZZY) {
        matcher->pattern.pattern =
            term_pattern_new_fuzzy(binder->arena, text, edits_of(query->pattern.fuzziness, text),
                                   query->pattern.prefix_length, !query->pattern.no_transpositions);
        matcher->pattern.fits = term_pattern_fuzzy;
        matcher->pattern.prefix = SLICE_LIT("");
        return 0;
    }
    bool wildcard = query->kind == QUERY_WILDCARD;
    matcher->pattern.pattern = term_pattern_new(binder->arena, text, query->pattern.case_insensitive);
    matcher->pattern.fits = wildcard ? term_pattern_wildcard : term_pattern_prefix;
    matcher->pattern.prefix = term_pattern_literal_prefix(matcher->pattern.pattern, wildcard);
    return 0;
}

int bind__pattern(struct binder *binder, const struct query *query, const struct mapping_field *field,
                  struct bound_query **ret_matcher)
{
    if (!is_text_field(field))
        return refuse_pattern(binder, query, field);
    int r = check_searchable(binder, field);
    if (r != 0)
        return r;
    struct bound_query *matcher = bind__new(binder, BOUND_PATTERN, query->boost);
    struct slice text = query__scalar_text(binder->arena, query->pattern.value);
    bool simple = query->kind == QUERY_WILDCARD ||
                  (query->kind == QUERY_PREFIX && (field->analyzer == NULL || field->type == FIELD_KEYWORD));
    matcher->field = field;
    *ret_matcher = matcher;
    return bind__pattern_text(binder, query, simple ? normalized_pattern(binder, field, text) : text, matcher);
}
