/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates a bound query on one document and computes its score.
 *
 * A query that does not match leaves *ret_score unspecified. An error in the document's source or
 * in a script is recorded in the match_doc; the search then does not count the document.
 */
#include "query/bound_query.h"
#include "json/each.h"
#include "query/metadata.h"

#include "base/check.h"
#include "base/real.h"
#include "mapping/analysis.h"
#include "query/phrase.h"
#include "script/script.h"
#include "json/path.h"
#include "json/write.h"

#include <math.h>
#include <stdlib.h>

static bool matches_unscored(const struct bound_query *matcher, struct match_doc *match_doc)
{
    float ignored;
    return bound_query_match(matcher, match_doc, &ignored);
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static bool has_name(const struct bound_query *matcher, struct slice name)
{
    size_t low = 0, high = matcher->names.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(matcher->names.items[middle], name);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool match_type(const struct bound_query *matcher, const struct match_doc *match_doc)
{
    for (size_t i = 0; i < matcher->types.count; i++) {
        if (matcher->types.numbers[i] == match_doc->type)
            return true;
    }
    return false;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

static bool has_value(const struct bound_query *matcher, const struct field_value *value)
{
    size_t low = 0, high = matcher->terms.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = field_value_compare(&matcher->terms.values[middle], value);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/*
 * Rounds a length as Lucene 8 stores it in a byte: exact below 24, above that four significant bits
 * of the excess.
 */
static float lucene8_length(size_t length)
{
    const size_t exact = 24;
    unsigned shift = 0;
    if (length < exact)
        return (float)length;
    for (size_t above = length - exact; (above >> shift) >= 16;)
        shift++;
    return (float)(exact + (((length - exact) >> shift) << shift));
}

/* Rounds a length as Lucene 6 stores it: 1/sqrt(length) with a three-bit mantissa. */
static float lucene6_length(size_t length)
{
    float root = 1.0f / sqrtf((float)length);
    uint32_t bits;
    memcpy(&bits, &root, sizeof bits);
    bits &= ~((UINT32_C(1) << 21) - 1);
    memcpy(&root, &bits, sizeof root);
    return 1.0f / (root * root);
}

static float bm25_score(const struct term_weight *weight, float frequency, size_t length)
{
    const float k1 = 1.2f, b = 0.75f;
    float count = frequency, stored_length = 1;
    if (weight->norms)
        stored_length = weight->lucene6 ? lucene6_length(length) : lucene8_length(length);
    float norm = weight->mean_length > 0 ? (1 - b) + b * stored_length / (float)weight->mean_length : 1.0f;
    if (weight->lucene6)
        return weight->weight * count / (count + k1 * norm);
    return weight->weight - weight->weight / (1.0f + count * (1.0f / (k1 * norm)));
}

/* Returns: the number of sorted values less than `value`; with `same`, less than or equal to it. */
static size_t count_below(const struct field_value *sorted, size_t count, const struct field_value *value, bool same)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = field_value_compare(&sorted[middle], value);
        if (order < 0 || (same && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Thresholds and costs of looking terms up in a document's values. After SORTED_LOOKUPS_MIN lookups
 * in at least SORTED_VALUES_MIN values, the values are sorted instead of scanned.
 */
enum { SORTED_VALUES_MIN = 32, SORTED_LOOKUPS_MIN = 8, VALUE_STEPS = 2, SORT_STEPS = 40 };

static bool sort_values_if_worthwhile(struct match_doc *match_doc, struct match_doc_values *values)
{
    if (values->sorted != NULL || values->count < SORTED_VALUES_MIN || ++values->lookups < SORTED_LOOKUPS_MIN)
        return values->sorted != NULL;
    if (!account_take(match_doc->account, values->count * SORT_STEPS))
        return false;
    match_doc_sort_values(match_doc, values);
    return true;
}

/*
 * Returns: the number of values that equal one of the terms; at most 1 if the query ignores
 * frequencies.
 */
static size_t term_frequency(const struct bound_query *matcher, struct match_doc *match_doc,
                             struct match_doc_values *values)
{
    bool once = !matcher->terms.weight.frequencies;
    size_t frequency = 0;
    if (matcher->terms.count < values->count / SORTED_LOOKUPS_MIN && sort_values_if_worthwhile(match_doc, values)) {
        for (size_t i = 0; i < matcher->terms.count && !(once && frequency > 0); i++)
            frequency += count_below(values->sorted, values->count, &matcher->terms.values[i], true) -
                         count_below(values->sorted, values->count, &matcher->terms.values[i], false);
        return once && frequency > 1 ? 1 : frequency;
    }
    if (!account_take(match_doc->account, values->count * VALUE_STEPS))
        return 0;
    for (size_t i = 0; i < values->count && !(once && frequency > 0); i++)
        frequency += has_value(matcher, &values->values[i]);
    return frequency;
}

static bool match_terms(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score)
{
    struct match_doc_values *values = match_doc_values(match_doc, matcher->field);
    size_t count = values->count, frequency = term_frequency(matcher, match_doc, values);
    if (frequency == 0)
        return false;
    if (matcher->terms.weight.norms && !matcher->terms.weight.frequencies)
        count = field_value_distinct(values->values, count, &match_doc->arena);
    *ret_score =
        matcher->terms.weight.scored ? bm25_score(&matcher->terms.weight, (float)frequency, count) : matcher->boost;
    return true;
}

static bool in_range(const struct bound_query *matcher, const struct field_value *value)
{
    if (matcher->range.has_low) {
        int order = field_value_compare(value, &matcher->range.low);
        if (order < 0 || (order == 0 && matcher->range.low_exclusive))
            return false;
    }
    if (matcher->range.has_high) {
        int order = field_value_compare(value, &matcher->range.high);
        if (order > 0 || (order == 0 && matcher->range.high_exclusive))
            return false;
    }
    return !(value->kind == FIELD_VALUE_F64 && isnan(value->f64));
}

static bool match_range(const struct bound_query *matcher, struct match_doc *match_doc)
{
    const struct field_value *values = NULL;
    size_t count = match_doc_field(match_doc, matcher->field, &values);
    for (size_t i = 0; i < count && account_take(match_doc->account, VALUE_STEPS); i++) {
        if (in_range(matcher, &values[i]))
            return true;
    }
    return false;
}

static bool match_pattern(const struct bound_query *matcher, struct match_doc *match_doc)
{
    const struct field_value *values = NULL;
    size_t count = match_doc_field(match_doc, matcher->field, &values);
    for (size_t i = 0; i < count && account_take(match_doc->account, VALUE_STEPS); i++) {
        if (values[i].kind == FIELD_VALUE_BYTES &&
            matcher->pattern.fits(matcher->pattern.pattern, values[i].bytes, match_doc->account))
            return true;
    }
    return false;
}

static bool found_leaf(void *context, yyjson_val *leaf)
{
    bool *found = context;
    *found = *found || !yyjson_is_null(leaf);
    return !*found;
}

static bool match_exists(const struct bound_query *matcher, struct match_doc *match_doc)
{
    for (size_t i = 0; i < matcher->exists.count; i++) {
        const struct mapping_field *field = matcher->exists.fields[i];
        const struct field_value *values = NULL;
        bool found = false;
        if (field_value_kind(field) != FIELD_VALUE_NONE && match_doc_field(match_doc, field, &values) > 0)
            return true;
        bool unread = field_value_kind(field) == FIELD_VALUE_NONE ||
                      field->type == FIELD_TEXT; /* a text without tokens exists, too */
        yyjson_val *root = unread ? match_doc_root(match_doc) : NULL;
        if (root != NULL)
            json_path_each(root, field->path, found_leaf, &found);
        if (found)
            return true;
    }
    return false;
}

/* --- Compound queries --------------------------------------------------------------------------------------------- */

static bool match_bool(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score)
{
    float total = 0, score = 0;
    size_t matched = 0;
    for (size_t i = 0; i < matcher->boolean.filter.count; i++) {
        if (!matches_unscored(matcher->boolean.filter.items[i], match_doc))
            return false;
    }
    for (size_t i = 0; i < matcher->boolean.must_not.count; i++) {
        if (matches_unscored(matcher->boolean.must_not.items[i], match_doc))
            return false;
    }
    for (size_t i = 0; i < matcher->boolean.must.count; i++) {
        if (!bound_query_match(matcher->boolean.must.items[i], match_doc, &score))
            return false;
        total += score;
    }
    for (size_t i = 0; i < matcher->boolean.should.count; i++) {
        if (bound_query_match(matcher->boolean.should.items[i], match_doc, &score)) {
            matched++;
            total += score;
        }
    }
    *ret_score = total * matcher->boost;
    return matched >= matcher->boolean.minimum;
}

static bool match_dis_max(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score)
{
    float best = 0, others = 0, score = 0;
    bool any = false;
    for (size_t i = 0; i < matcher->compound.queries.count; i++) {
        if (!bound_query_match(matcher->compound.queries.items[i], match_doc, &score))
            continue;
        if (!any || score > best) {
            others += any ? best : 0;
            best = score;
        } else {
            others += score;
        }
        any = true;
    }
    *ret_score = (best + others * matcher->compound.number) * matcher->boost;
    return any;
}

static bool match_boosting(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score)
{
    if (!bound_query_match(matcher->compound.queries.items[0], match_doc, ret_score))
        return false;
    if (matches_unscored(matcher->compound.queries.items[1], match_doc))
        *ret_score *= matcher->compound.number;
    *ret_score *= matcher->boost;
    return true;
}

static bool match_script(const struct bound_query *matcher, struct match_doc *match_doc)
{
    struct script_eval value;
    return match_doc_run_script(match_doc, matcher->script.script, matcher->script.params, 0, SCRIPT_RESULT_NUMBER,
                                &value) == 0 &&
           value.boolean;
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

static double apply_modifier(struct slice modifier, double x)
{
    if (slice_is(modifier, "log"))
        return real_log10(x);
    if (slice_is(modifier, "log1p"))
        return real_log10(x + 1);
    if (slice_is(modifier, "log2p"))
        return real_log10(x + 2);
    if (slice_is(modifier, "ln"))
        return real_log(x);
    if (slice_is(modifier, "ln1p"))
        return real_log1p(x);
    if (slice_is(modifier, "ln2p"))
        return real_log1p(x + 1);
    if (slice_is(modifier, "square"))
        return x * x;
    if (slice_is(modifier, "sqrt"))
        return sqrt(x);
    return slice_is(modifier, "reciprocal") ? 1 / x : x;
}

/* A negative score of a function, which 7.x refuses: the search ends. `rest`: of the reason. */
static void refuse_score(struct match_doc *match_doc, const char *function, double score, struct slice rest)
{
    if (match_doc->problem != NULL)
        return;
    tl_cleanup(buf_deinit) struct buf number = BUF_INIT(BUF_UNLIMITED);
    json_double_text(&number, score);
    match_doc->problem = arena_zalloc(match_doc->problems, sizeof *match_doc->problem);
    problem_set(match_doc->problem, match_doc->problems, PROBLEM_ILLEGAL_ARGUMENT,
                "%s must not produce negative scores, but got: [%.*s]%.*s", function, SLICE_ARG(buf_as_slice(&number)),
                SLICE_ARG(rest));
}

static void refuse_field_score(struct match_doc *match_doc, struct slice modifier, double score, double value)
{
    tl_cleanup(buf_deinit) struct buf rest = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&rest, " for field value: [");
    json_double_text(&rest, value);
    buf_lit(&rest, "]");
    if (slice_is(modifier, "ln"))
        buf_lit(&rest, "; consider using ln1p or ln2p instead of ln to avoid negative scores");
    if (slice_is(modifier, "log"))
        buf_lit(&rest, "; consider using log1p or log2p instead of log to avoid negative scores");
    refuse_score(match_doc, "field value function", score, buf_as_slice(&rest));
}

/* Of several values the lowest counts. */
static double field_factor(const struct bound_function *function, struct match_doc *match_doc, bool checked)
{
    const struct field_value *values = NULL;
    size_t count = function->field != NULL ? match_doc_sorted(match_doc, function->field, &values) : 0;
    double x = isnan(function->spec->missing) ? 1 : function->spec->missing;
    if (function->metadata != NULL)
        x = (double)metadata_value(function->metadata, match_doc).i64;
    else if (count > 0 && values[0].kind == FIELD_VALUE_F64)
        x = values[0].f64;
    else if (count > 0 && values[0].kind == FIELD_VALUE_I64)
        x = function->field->type == FIELD_SCALED_FLOAT ? (double)values[0].i64 / function->field->scaling_factor
                                                        : (double)values[0].i64;
    double value = apply_modifier(function->spec->modifier, x * function->spec->factor);
    if (checked && value < 0)
        refuse_field_score(match_doc, function->spec->modifier, value, x);
    return value;
}

static double function_value(const struct bound_function *function, struct match_doc *match_doc, float score,
                             bool checked)
{
    double value = 1;
    if (function->spec->field_factor)
        value = field_factor(function, match_doc, checked);
    if (function->script != NULL) {
        struct script_eval result;
        if (match_doc_run_script(match_doc, function->script, function->spec->script->params, score,
                                 SCRIPT_RESULT_NUMBER, &result) == 0)
            value = result.number;
        if (checked && value < 0)
            refuse_score(match_doc, "script score function", value, SLICE_NONE);
    }
    return isnan(function->spec->weight) ? value : value * function->spec->weight;
}

static double combine_scores(int mode, double a, double b)
{
    switch (mode) {
    case COMBINE_SUM:
    case COMBINE_AVG: return a + b;
    case COMBINE_FIRST: return a;
    case COMBINE_MAX: return a > b ? a : b;
    case COMBINE_MIN: return a < b ? a : b;
    case COMBINE_REPLACE: return b;
    default: return a * b;
    }
}

static bool match_function(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score)
{
    const struct query *spec = matcher->function.spec;
    float score;
    if (!bound_query_match(matcher->function.query, match_doc, &score))
        return false;
    double factor = 1, weights = 0;
    size_t applied = 0;
    for (size_t i = 0; i < spec->function.count; i++) {
        const struct bound_function *function = &matcher->function.functions[i];
        if (function->filter != NULL && !matches_unscored(function->filter, match_doc))
            continue;
        double value = function_value(function, match_doc, score, matcher->function.checked);
        factor = applied++ == 0 ? value : combine_scores(spec->function.score_mode, factor, value);
        weights += isnan(function->spec->weight) ? 1 : function->spec->weight;
    }
    if (spec->function.score_mode == COMBINE_AVG && applied > 0 && weights != 0)
        factor /= weights;
    factor = factor > spec->function.max_boost ? spec->function.max_boost : factor;
    double combined = spec->function.boost_mode == COMBINE_AVG
                          ? (score + factor) / 2
                          : combine_scores(spec->function.boost_mode, score, factor);
    if (applied == 0)
        combined = score;
    *ret_score = (float)combined * matcher->boost;
    return isnan(spec->function.min_score) || *ret_score >= (float)spec->function.min_score;
}

/* --- Phrases ------------------------------------------------------------------------------------------------------ */

static bool match_phrase(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score)
{
    size_t length = 0;
    float frequency = phrase_frequency(matcher, match_doc, &length);
    if (frequency == 0)
        return false;
    double idf = 0; /* summed over all words, as in Lucene */
    for (size_t i = 0; i < matcher->phrase.count; i++)
        idf += matcher->phrase.weights[i].idf;
    struct term_weight all = matcher->phrase.weights[0];
    all.weight = matcher->boost * 2.2f * (float)idf;
    *ret_score = all.scored ? bm25_score(&all, frequency, length) : matcher->boost;
    return true;
}

/*
 * Account steps for each query node evaluated. One document may be matched against a million nodes.
 */
enum { MATCH_STEPS = 2 };

bool bound_query_match(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score)
{
    *ret_score = matcher->boost;
    if (!account_take(match_doc->account, MATCH_STEPS))
        return false;
    switch (matcher->kind) {
    case BOUND_ALL: return true;
    case BOUND_NONE: return false;
    case BOUND_IDS: return has_name(matcher, match_doc->id);
    case BOUND_TYPES: return match_type(matcher, match_doc);
    case BOUND_ROUTING:
        return match_doc->doc->routing.data != NULL &&
               (matcher->names.count == 0 || has_name(matcher, match_doc->doc->routing));
    case BOUND_ROUTING_PATTERN:
        return match_doc->doc->routing.data != NULL &&
               matcher->pattern.fits(matcher->pattern.pattern, match_doc->doc->routing, match_doc->account);
    case BOUND_ROUTING_RANGE:
        return match_doc->doc->routing.data != NULL &&
               in_range(matcher, &(struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = match_doc->doc->routing});
    case BOUND_SEQ_NO:
        return in_range(matcher, &(struct field_value){.kind = FIELD_VALUE_I64, .i64 = match_doc->doc->seq_no});
    case BOUND_TERMS: return match_terms(matcher, match_doc, ret_score);
    case BOUND_RANGE: return match_range(matcher, match_doc);
    case BOUND_PATTERN: return match_pattern(matcher, match_doc);
    case BOUND_EXISTS: return match_exists(matcher, match_doc);
    case BOUND_PHRASE: return match_phrase(matcher, match_doc, ret_score);
    case BOUND_BOOL: return match_bool(matcher, match_doc, ret_score);
    case BOUND_DIS_MAX: return match_dis_max(matcher, match_doc, ret_score);
    case BOUND_CONSTANT: return matches_unscored(matcher->compound.queries.items[0], match_doc);
    case BOUND_BOOSTING: return match_boosting(matcher, match_doc, ret_score);
    case BOUND_FUNCTION: return match_function(matcher, match_doc, ret_score);
    case BOUND_SCRIPT: return match_script(matcher, match_doc);
    case BOUND_KIND_COUNT: break;
    }
    UNREACHABLE();
    return false;
}
