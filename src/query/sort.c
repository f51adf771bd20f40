/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sort values of documents: the choice among several values, the substitute for a missing one,
 * their order and their JSON.
 */
#include "query/sort.h"

#include "json/each.h"
#include "query/metadata.h"
#include "mapping/analysis.h"
#include "mapping/date.h"
#include "script/script.h"
#include "json/write.h"

#include <math.h>
#include <stdlib.h>

/* --- Binding ------------------------------------------------------------------------------------------------------ */

static int refuse_text(struct binder *binder, const struct mapping_field *field)
{
    bool old = binder->context->dialect == DIALECT_5;
    *binder->problem = (struct problem){.type = PROBLEM_ILLEGAL_ARGUMENT,
                                        .reason = script_doc_refusal(binder->arena, old, field->path)};
    return QUERY_REFUSED;
}

int sort__check_doc_values(struct binder *binder, const struct mapping_field *field)
{
    if (field->type == FIELD_TEXT && !field_parameter_flag(field, "fielddata", false))
        return refuse_text(binder, field);
    if (field_parameter_flag(field, "doc_values", true))
        return 0;
    problem_set(
        binder->problem, binder->arena, PROBLEM_ILLEGAL_ARGUMENT,
        "Can't load fielddata on [%.*s] because fielddata is unsupported on fields of type [%.*s]. Use doc values "
        "instead.",
        SLICE_ARG(field->path), SLICE_ARG(field->type_name));
    return QUERY_REFUSED;
}

static enum sort_kind kind_of(const struct mapping_field *field)
{
    switch (field_value_kind(field)) {
    case FIELD_VALUE_I64: return field->type == FIELD_SCALED_FLOAT ? SORT_F64 : SORT_I64;
    case FIELD_VALUE_F64: return SORT_F64;
    default: return field->type == FIELD_IP ? SORT_IP : SORT_BYTES;
    }
}

/* Returns: whether `unmapped_type` accepts a type. */
static bool is_known_type(struct slice type)
{
    static const char *const types[] = {
        "long",    "integer", "short",   "byte", "double", "float",        "half_float",    "date",   "date_nanos",
        "boolean", "ip",      "keyword", "text", "string", "scaled_float", "unsigned_long", "binary", "geo_point"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (slice_is(type, types[i]))
            return true;
    return false;
}

static enum sort_kind kind_of_unmapped(struct slice type)
{
    if (slice_is(type, "keyword") || slice_is(type, "string") || slice_is(type, "text"))
        return SORT_BYTES;
    return slice_is(type, "double") || slice_is(type, "float") ? SORT_F64 : SORT_I64;
}

static struct sort_value from_value(const struct mapping_field *field, const struct field_value *value);

/*
 * Sets the address that replaces a missing value. If it is not an address, missing values are
 * sorted as by default.
 */
static void set_missing_address(struct binder *binder, struct bound_key *bound)
{
    struct field_value value;
    struct problem ignored;
    if (field_value_parse(bound->field, bound->key->missing, binder->context->dialect, binder->arena, &value,
                          &ignored) == 0)
        bound->missing = from_value(bound->field, &value);
    else
        bound->has_missing = false;
}

/* Parses an integer and truncates a fraction: "12.9" is 12. */
static bool parse_truncated(struct slice text, int64_t *ret_number)
{
    double number;
    if (slice_to_i64(text, ret_number))
        return true;
    if (!slice_to_double(text, &number) || !(number > -9.2e18 && number < 9.2e18))
        return false;
    *ret_number = (int64_t)number;
    return true;
}

static int set_missing(struct binder *binder, struct bound_key *bound)
{
    bool ok = true;
    struct slice text = arena_copy(binder->arena, query__scalar_text(binder->arena, bound->key->missing));
    bound->has_missing = true;
    bound->missing.kind = bound->kind;
    if (bound->kind == SORT_IP)
        set_missing_address(binder, bound);
    else if (bound->kind == SORT_BYTES)
        bound->missing.bytes = text;
    else if (bound->kind == SORT_F64)
        ok = slice_to_double(text, &bound->missing.f64);
    else
        ok = parse_truncated(text, &bound->missing.i64);
    if (ok || (yyjson_is_bool(bound->key->missing) && binder->context->dialect == DIALECT_5))
        return 0;
    problem_set(binder->problem, binder->arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
    return QUERY_REFUSED;
}

/* Applies `numeric_type`, by which a long of one index is comparable to a double of another. */
static int set_numbers(struct binder *binder, struct bound_key *bound)
{
    enum sort_numbers numbers = bound->key->numbers;
    if (numbers == SORT_AS_MAPPED || bound->field == NULL)
        return 0;
    if (bound->kind == SORT_BYTES || bound->kind == SORT_IP)
        return bind__refuse_plain(binder, "[numeric_type] option cannot be set on a non-numeric field, got %.*s",
                                  SLICE_ARG(bound->field->type_name));
    if (numbers == SORT_AS_DATE && bound->kind == SORT_F64)
        return bind__refuse_plain(binder, "[numeric_type] of [date] is not supported for fields of type [%.*s]",
                                  SLICE_ARG(bound->field->type_name));
    if (numbers == SORT_AS_NANOS && bound->kind == SORT_F64) {
        problem_set(binder->problem, binder->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "trying to convert a known date time formatter to a nanosecond one, wrong field used?");
        return QUERY_REFUSED;
    }
    bound->kind = numbers == SORT_AS_DOUBLE ? SORT_F64 : SORT_I64;
    return 0;
}

static int bind_metadata(struct binder *binder, struct bound_key *bound)
{
    bound->kind = (bound->metadata->traits & METADATA_NUMERIC) != 0 ? SORT_I64 : SORT_BYTES;
    if (metadata_has_values(bound->metadata))
        return 0;
    *binder->problem = (struct problem){.type = PROBLEM_ILLEGAL_ARGUMENT,
                                        .reason = metadata_refusal(binder->arena, bound->metadata)};
    return QUERY_REFUSED;
}

static int bind_field(struct binder *binder, struct bound_key *bound)
{
    const struct sort_key *key = bound->key;
    int r;
    bound->field = mapping_field(binder->index->mapping, key->field);
    if (key->nested.len > 0)
        return bind__refuse_plain(binder, "[nested] failed to find nested object under path [%.*s]",
                                  SLICE_ARG(key->nested));
    bound->metadata = bound->field == NULL ? metadata_find(key->field) : NULL;
    if (bound->metadata != NULL)
        return bind_metadata(binder, bound);
    if (bound->field == NULL && key->unmapped_type.len > 0 && !is_known_type(key->unmapped_type)) {
        problem_set(binder->problem, binder->arena, PROBLEM_ILLEGAL_ARGUMENT, "No mapper found for type [%.*s]",
                    SLICE_ARG(key->unmapped_type));
        return QUERY_REFUSED;
    }
    if (bound->field == NULL && key->unmapped_type.len == 0)
        return bind__refuse_plain(binder, "No mapping found for [%.*s] in order to sort on", SLICE_ARG(key->field));
    if (bound->field != NULL && (r = sort__check_doc_values(binder, bound->field)) != 0)
        return r;
    if (bound->field != NULL && field_value_kind(bound->field) == FIELD_VALUE_NONE)
        return bind__refuse_plain(binder, "can't sort on field [%.*s] of type [%.*s]", SLICE_ARG(bound->field->path),
                                  SLICE_ARG(bound->field->type_name));
    bound->kind = bound->field != NULL ? kind_of(bound->field) : kind_of_unmapped(key->unmapped_type);
    bool counts = key->mode == SORT_SUM || key->mode == SORT_AVG || key->mode == SORT_MEDIAN;
    if (counts && (bound->kind == SORT_BYTES || bound->kind == SORT_IP))
        return bind__refuse_plain(binder, "we only support AVG, MEDIAN and SUM on number based fields");
    r = set_numbers(binder, bound);
    return r == 0 && key->missing != NULL ? set_missing(binder, bound) : r;
}

int sort_bind(struct binder *binder, const struct search_request *request, struct bound_key **ret_keys)
{
    struct bound_key *keys = arena_zalloc(binder->arena, request->sort_count * sizeof *keys);
    *ret_keys = keys;
    for (size_t i = 0; i < request->sort_count; i++) {
        int r = 0;
        keys[i].key = &request->sort[i];
        keys[i].kind = keys[i].key->by == SORT_ID ? SORT_BYTES : keys[i].key->by == SORT_DOC ? SORT_I64 : SORT_F64;
        if (keys[i].key->by == SORT_FIELD)
            r = bind_field(binder, &keys[i]);
        else if (keys[i].key->by == SORT_SCRIPT)
            r = bind__script(binder, keys[i].key->script,
                             keys[i].key->script_number ? SCRIPT_FOR_NUMBER_SORT : SCRIPT_FOR_STRING_SORT,
                             &keys[i].script);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- Sort values -------------------------------------------------------------------------------------------------- */

static struct sort_value missing_value(const struct bound_key *bound)
{
    bool high = bound->key->descending == bound->key->missing_first; /* missing values are sorted with the highest */
    if (bound->has_missing)
        return bound->missing;
    if (bound->kind == SORT_I64)
        return (struct sort_value){.kind = SORT_I64, .i64 = high ? INT64_MAX : INT64_MIN};
    if (bound->kind == SORT_F64)
        return (struct sort_value){.kind = SORT_F64, .f64 = high ? INFINITY : -INFINITY};
    return (struct sort_value){.kind = SORT_NULL};
}

static struct sort_value from_value(const struct mapping_field *field, const struct field_value *value)
{
    if (value->kind == FIELD_VALUE_BYTES)
        return (struct sort_value){.kind = kind_of(field), .bytes = value->bytes};
    if (value->kind == FIELD_VALUE_F64)
        return (struct sort_value){.kind = SORT_F64, .f64 = value->f64};
    if (field->type == FIELD_SCALED_FLOAT)
        return (struct sort_value){.kind = SORT_F64, .f64 = (double)value->i64 / field->scaling_factor};
    return (struct sort_value){.kind = SORT_I64, .i64 = value->i64};
}

/*
 * Converts a date to the unit of the sort value. Values of date_nanos are sorted and shown in
 * nanoseconds, though stored in milliseconds: clients pass them back in search_after, also to other
 * servers.
 */
static struct sort_value in_unit(const struct bound_key *bound, struct sort_value value)
{
    enum sort_numbers numbers = bound->key->numbers;
    bool nanos = bound->field->type == FIELD_DATE &&
                 (numbers == SORT_AS_NANOS || (slice_is(bound->field->type_name, "date_nanos") &&
                                               (numbers == SORT_AS_MAPPED || numbers == SORT_AS_LONG)));
    int64_t given = value.i64;
    if (nanos && value.kind == SORT_I64 && __builtin_mul_overflow(given, (int64_t)1000000, &value.i64))
        value.i64 = given > 0 ? INT64_MAX : INT64_MIN;
    return value;
}

/* Returns: the sum, average or median of several numbers. Requires: they are sorted. */
static struct sort_value reduce_values(const struct bound_key *bound, const struct field_value *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i].kind == FIELD_VALUE_F64 ? values[i].f64 : (double)values[i].i64;
    if (bound->key->mode == SORT_AVG)
        sum /= (double)count;
    if (bound->key->mode == SORT_MEDIAN) {
        struct sort_value low = from_value(bound->field, &values[(count - 1) / 2]),
                          high = from_value(bound->field, &values[count / 2]);
        sum = low.kind == SORT_F64 ? (low.f64 + high.f64) / 2 : ((double)low.i64 + (double)high.i64) / 2;
    } else if (bound->field->type == FIELD_SCALED_FLOAT) {
        sum /= bound->field->scaling_factor;
    }
    if (bound->kind == SORT_F64)
        return (struct sort_value){.kind = SORT_F64, .f64 = sum};
    return (struct sort_value){.kind = SORT_I64, .i64 = llround(sum)};
}

static struct sort_value field_value(const struct bound_key *bound, struct match_doc *match_doc)
{
    const struct field_value *values = NULL;
    size_t count = bound->field != NULL ? match_doc_sorted(match_doc, bound->field, &values) : 0;
    enum sort_mode mode = bound->key->mode;
    if (count == 0)
        return missing_value(bound);
    if (mode == SORT_SUM || mode == SORT_AVG || mode == SORT_MEDIAN)
        return values[0].kind == FIELD_VALUE_BYTES ? from_value(bound->field, &values[0])
                                                   : in_unit(bound, reduce_values(bound, values, count));
    bool highest = mode == SORT_MAX || (mode == SORT_MODE_DEFAULT && bound->key->descending);
    const struct field_value *best = &values[0];
    for (size_t i = 1; i < count; i++) {
        int order = field_value_compare(&values[i], best);
        if (highest ? order > 0 : order < 0)
            best = &values[i];
    }
    return in_unit(bound, from_value(bound->field, best));
}

static struct sort_value as_numbers(const struct bound_key *bound, struct sort_value value)
{
    if (bound->key->numbers == SORT_AS_DOUBLE && value.kind == SORT_I64)
        return (struct sort_value){.kind = SORT_F64, .f64 = (double)value.i64};
    if (bound->key->numbers == SORT_AS_LONG && value.kind == SORT_F64 && value.f64 > -9.2e18 && value.f64 < 9.2e18)
        return (struct sort_value){.kind = SORT_I64, .i64 = (int64_t)value.f64};
    return value;
}

static struct sort_value own_value(const struct bound_key *bound, const struct match_doc *match_doc)
{
    struct field_value value = metadata_value(bound->metadata, match_doc);
    return value.kind == FIELD_VALUE_I64 ? (struct sort_value){.kind = SORT_I64, .i64 = value.i64}
                                         : (struct sort_value){.kind = SORT_BYTES, .bytes = value.bytes};
}

static struct sort_value script_value(const struct bound_key *bound, struct match_doc *match_doc, float score)
{
    struct script_eval value;
    if (match_doc_run_script(match_doc, bound->script, bound->key->script->params, score, SCRIPT_RESULT_TEXT, &value) !=
        0)
        return (struct sort_value){.kind = SORT_NULL};
    return bound->key->script_number ? (struct sort_value){.kind = SORT_F64, .f64 = value.number}
                                     : (struct sort_value){.kind = SORT_BYTES, .bytes = value.string};
}

void sort_read(const struct bound_key *keys, size_t count, struct match_doc *match_doc, float score, uint64_t ordinal,
               struct sort_value *ret_values)
{
    for (size_t i = 0; i < count; i++) {
        switch (keys[i].key->by) {
        case SORT_SCORE: ret_values[i] = (struct sort_value){.kind = SORT_F64, .f64 = score}; break;
        case SORT_DOC: ret_values[i] = (struct sort_value){.kind = SORT_I64, .i64 = (int64_t)ordinal}; break;
        case SORT_ID: ret_values[i] = (struct sort_value){.kind = SORT_BYTES, .bytes = match_doc->id}; break;
        case SORT_SCRIPT: ret_values[i] = script_value(&keys[i], match_doc, score); break;
        case SORT_FIELD:
            ret_values[i] = keys[i].metadata != NULL ? own_value(&keys[i], match_doc)
                                                     : as_numbers(&keys[i], field_value(&keys[i], match_doc));
            break;
        }
    }
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

static int compare_doubles(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a > b) - (a < b);
}

static double as_double(const struct sort_value *value)
{
    return value->kind == SORT_I64 ? (double)value->i64 : value->f64;
}

/*
 * Compares two values of one key. The key determines the order of nulls; numbers precede texts of
 * another index.
 */
static int compare_one(const struct sort_key *key, const struct sort_value *a, const struct sort_value *b)
{
    if (a->kind == SORT_NULL || b->kind == SORT_NULL) {
        int order = (a->kind == SORT_NULL) - (b->kind == SORT_NULL);
        return key->missing_first ? -order : order;
    }
    int order;
    bool a_bytes = sort_kind_is_bytes(a->kind), b_bytes = sort_kind_is_bytes(b->kind);
    if (a_bytes || b_bytes)
        order = a_bytes != b_bytes ? (a_bytes ? 1 : -1) : slice_compare(a->bytes, b->bytes);
    else if (a->kind == SORT_I64 && b->kind == SORT_I64)
        order = (a->i64 > b->i64) - (a->i64 < b->i64);
    else
        order = compare_doubles(as_double(a), as_double(b));
    return key->descending ? -order : order;
}

int sort_compare(const struct sort_key *keys, size_t count, const struct sort_value *a, const struct sort_value *b)
{
    for (size_t i = 0; i < count; i++) {
        int order = compare_one(&keys[i], &a[i], &b[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

/* --- Writing, search_after ---------------------------------------------------------------------------------------- */

void sort_write(struct buf *buf, const struct sort_key *keys, size_t count, const struct sort_value *values)
{
    buf_lit(buf, "\"sort\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(buf, ',');
        if (values[i].kind == SORT_NULL)
            buf_lit(buf, "null");
        else if (values[i].kind == SORT_BYTES)
            buf_json_string(buf, values[i].bytes);
        else if (values[i].kind == SORT_IP)
            query__write_ip(buf, values[i].bytes);
        else if (values[i].kind == SORT_I64)
            buf_i64(buf, values[i].i64);
        else if (keys[i].by == SORT_SCORE)
            json_float_text(buf, (float)values[i].f64);
        else
            json_write_double(buf, values[i].f64);
    }
    buf_byte(buf, ']');
}

/*
 * Converts a value of search_after to the kind of its key. Returns: false: the value is invalid for
 * it.
 */
static bool parse_after_value(struct arena *arena, const struct bound_key *bound, yyjson_val *item,
                              enum dialect dialect, struct sort_value *ret_value)
{
    struct problem ignored;
    struct field_value value;
    bool of_field = bound != NULL && bound->key->by == SORT_FIELD && bound->field != NULL;
    *ret_value = (struct sort_value){.kind = SORT_NULL};
    if (yyjson_is_null(item))
        return true;
    if (of_field && yyjson_is_str(item) && bound->kind != SORT_BYTES) {
        if (field_value_parse(bound->field, item, dialect, arena, &value, &ignored) != 0)
            return false;
        *ret_value = in_unit(bound, from_value(bound->field, &value));
    } else if (yyjson_is_int(item)) {
        *ret_value = (struct sort_value){.kind = SORT_I64, .i64 = yyjson_get_sint(item)};
    } else if (yyjson_is_real(item)) {
        *ret_value = (struct sort_value){.kind = SORT_F64, .f64 = yyjson_get_real(item)};
        if (of_field && bound->kind == SORT_I64)
            ret_value->f64 = trunc(ret_value->f64); /* as Elasticsearch parses it as a long */
    } else if (yyjson_is_bool(item)) {
        *ret_value = (struct sort_value){.kind = SORT_I64, .i64 = yyjson_is_true(item)};
    } else {
        *ret_value = (struct sort_value){.kind = SORT_BYTES, .bytes = query__scalar_text(arena, item)};
    }
    return true;
}

int sort_parse_search_after(struct arena *arena, const struct search_request *request, const struct bound_key *keys,
                            enum dialect dialect, struct sort_value **ret_values, struct problem *ret_problem)
{
    size_t count = unsafe_yyjson_get_len(request->search_after);
    if (request->sort_count == 0) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Sort must contain at least one field.");
        return QUERY_REFUSED;
    }
    if (count != request->sort_count) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "search_after has %zu value(s) but sort has %zu.",
                    count, request->sort_count);
        return QUERY_REFUSED;
    }
    struct sort_value *values = arena_zalloc(arena, count * sizeof *values);
    yyjson_val *item = unsafe_yyjson_get_first(request->search_after);
    for (size_t i = 0; i < count; i++, item = unsafe_yyjson_get_next(item)) {
        if (parse_after_value(arena, keys == NULL ? NULL : &keys[i], item, dialect, &values[i]))
            continue;
        if (keys != NULL && keys[i].kind == SORT_IP) {
            problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "'%.*s' is not an IP string literal.",
                        SLICE_ARG(query__scalar_text(arena, item)));
            return QUERY_REFUSED;
        }
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Failed to parse search_after value for field [%.*s].", SLICE_ARG(request->sort[i].field));
        ret_problem->caused_by = arena_zalloc(arena, sizeof *ret_problem->caused_by);
        problem_set(ret_problem->caused_by, arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                    SLICE_ARG(query__scalar_text(arena, item)));
        return QUERY_REFUSED;
    }
    *ret_values = values;
    return 0;
}
