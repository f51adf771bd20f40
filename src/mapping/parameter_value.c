/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation of parameter values: those that must be a word of a list or have a certain structure,
 * and those that would have no effect in this server. The latter are refused, so that clients do
 * not rely on them. Stored mappings are not checked.
 */
#include "base/buf.h"
#include "json/each.h"
#include "json/write.h"
#include "mapping/mapping_internal.h"

#include <strings.h>

enum { META_ENTRIES_MAX = 5, META_KEY_MAX = 20, META_VALUE_MAX = 50, PREFIX_CHARS_END = 20 };

/* A parameter to be checked. */
struct parameter_at {
    struct merge *merge;
    struct slice field; /* name of the field */
    bool text;          /* the field has type text */
    yyjson_val *value;
    struct slice shown; /* the value as Java prints it */
};

static bool in_7(const struct parameter_at *at)
{
    return at->merge->dialect == DIALECT_7;
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

static int refuse_word(const struct parameter_at *at, const char *name, const char *accepted)
{
    return mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                           "Unknown value [%.*s] for field [%s] - accepted values are [%s]", SLICE_ARG(at->shown), name,
                           accepted);
}

/* Returns: whether the value is in a list that ends with NULL. */
static bool is_word(const struct parameter_at *at, const char *const *words)
{
    while (*words != NULL && !slice_is(at->shown, *words))
        words++;
    return *words != NULL;
}

static int check_index_options(const struct parameter_at *at)
{
    static const char *const of_text[] = {"positions", "docs", "freqs", "offsets", NULL};
    static const char *const of_keyword[] = {"docs", "freqs", NULL};
    if (is_word(at, at->text ? of_text : of_keyword))
        return 0;
    return refuse_word(at, "index_options", at->text ? "positions, docs, freqs, offsets" : "docs, freqs");
}

static int check_term_vector(const struct parameter_at *at)
{
    static const char *const words[] = {"no",
                                        "yes",
                                        "with_positions",
                                        "with_offsets",
                                        "with_positions_offsets",
                                        "with_positions_payloads",
                                        "with_positions_offsets_payloads",
                                        NULL};
    return is_word(at, words) ? 0
                              : refuse_word(at, "term_vector",
                                            "no, yes, with_positions, with_offsets, with_positions_offsets, "
                                            "with_positions_payloads, with_positions_offsets_payloads");
}

static int check_similarity(const struct parameter_at *at)
{
    static const char *const words[] = {"BM25", "boolean", NULL};
    if (is_word(at, words))
        return 0;
    if (slice_is(at->shown, "classic") && in_7(at))
        return mapping__refuse(
            at->merge, PROBLEM_ILLEGAL_ARGUMENT,
            "The [classic] similarity may not be used anymore. Please use the [BM25] similarity or build a "
            "custom [scripted] similarity instead.");
    return mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING, "Unknown Similarity type [%.*s] for field [%.*s]",
                           SLICE_ARG(at->shown), SLICE_ARG(at->field));
}

/* --- Objects ------------------------------------------------------------------------------------------------------ */

/* Returns: the Java class that Jackson parses a value into. */
static const char *java_class(yyjson_val *value)
{
    if (yyjson_is_obj(value))
        return "HashMap";
    return yyjson_is_arr(value)                                           ? "ArrayList"
           : yyjson_is_str(value)                                         ? "String"
           : yyjson_is_bool(value)                                        ? "Boolean"
           : yyjson_is_real(value)                                        ? "Double"
           : yyjson_is_sint(value) || yyjson_get_uint(value) <= INT32_MAX ? "Integer"
                                                                          : "Long";
}

/* Returns: the length in UTF-16 code units, as Java counts. */
static size_t java_length(struct slice text)
{
    size_t length = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        length += (byte & 0xc0) != 0x80;
        length += byte >= 0xf0;
    }
    return length;
}

static int refuse_meta_value(const struct parameter_at *at, yyjson_val *value)
{
    if (yyjson_is_null(value))
        return mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING, "[meta] values can't be null (field [%.*s])",
                               SLICE_ARG(at->field));
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    java_text(&text, value);
    bool string = yyjson_is_str(value);
    int r = string ? mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                                     "[meta] values can't be longer than %d chars, but got [%.*s] for field [%.*s]",
                                     META_VALUE_MAX, SLICE_ARG(buf_as_slice(&text)), SLICE_ARG(at->field))
                   : mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                                     "[meta] values can only be strings, but got %s[%.*s] for field [%.*s]",
                                     java_class(value), SLICE_ARG(buf_as_slice(&text)), SLICE_ARG(at->field));
    buf_deinit(&text);
    return r;
}

static int check_meta(const struct parameter_at *at)
{
    size_t index, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(at->value))
        return mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                               "[meta] must be an object, got %s[%.*s] for field [%.*s]", java_class(at->value),
                               SLICE_ARG(at->shown), SLICE_ARG(at->field));
    if (yyjson_obj_size(at->value) > META_ENTRIES_MAX)
        return mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                               "[meta] can't have more than %d entries, but got %zu on field [%.*s]", META_ENTRIES_MAX,
                               yyjson_obj_size(at->value), SLICE_ARG(at->field));
    json_obj_foreach (at->value, index, count, key, value) {
        if (java_length(json_slice(key)) > META_KEY_MAX)
            return mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                                   "[meta] keys can't be longer than %d chars, but got [%.*s] for field [%.*s]",
                                   META_KEY_MAX, SLICE_ARG(json_slice(key)), SLICE_ARG(at->field));
    }
    json_obj_foreach (at->value, index, count, key, value) {
        if (!yyjson_is_str(value) || java_length(json_slice(value)) > META_VALUE_MAX)
            return refuse_meta_value(at, value);
    }
    return 0;
}

static int refuse_no_map(const struct parameter_at *at)
{
    return mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING, "[%.*s] is no object, for field [%.*s]",
                           SLICE_ARG(at->shown), SLICE_ARG(at->field));
}

static int check_index_prefixes(const struct parameter_at *at)
{
    size_t index, count;
    yyjson_val *key, *value;
    int64_t least = 2, most = 5;
    if (!yyjson_is_obj(at->value))
        return refuse_no_map(at);
    json_obj_foreach (at->value, index, count, key, value) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        java_text(&text, value);
        bool low = slice_is(json_slice(key), "min_chars"), high = slice_is(json_slice(key), "max_chars");
        int64_t number = 0;
        int r = 0;
        if (!low && !high)
            r = mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                                "Mapping definition for [%.*s] has unsupported parameters:  [%.*s : %.*s]",
                                SLICE_ARG(at->field), SLICE_ARG(json_slice(key)), SLICE_ARG(buf_as_slice(&text)));
        else if (!slice_to_i64(buf_as_slice(&text), &number))
            r = mapping__refuse(at->merge, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                                SLICE_ARG(buf_as_slice(&text)));
        buf_deinit(&text);
        if (r != 0)
            return r;
        *(low ? &least : &most) = number;
    }
    if (least > most)
        return mapping__refuse(at->merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "min_chars [%lld] must be less than max_chars [%lld]", (long long)least,
                               (long long)most);
    if (least < 1)
        return mapping__refuse(at->merge, PROBLEM_ILLEGAL_ARGUMENT, "min_chars [%lld] must be greater than zero",
                               (long long)least);
    return most < PREFIX_CHARS_END ? 0
                                   : mapping__refuse(at->merge, PROBLEM_ILLEGAL_ARGUMENT,
                                                     "max_chars [%lld] must be less than 20", (long long)most);
}

/* --- Parameters without effect -------------------------------------------------------------------- */

static int check_frequency_filter(const struct parameter_at *at)
{
    if (!yyjson_is_obj(at->value))
        return refuse_no_map(at);
    return yyjson_obj_size(at->value) == 0
               ? 0
               : mapping__refuse(at->merge, PROBLEM_ILLEGAL_ARGUMENT,
                                 "[fielddata_frequency_filter] is not supported here: it would have no effect");
}

static int check_split(const struct parameter_at *at)
{
    return !slice_is(at->shown, "true")
               ? 0
               : mapping__refuse(at->merge, PROBLEM_ILLEGAL_ARGUMENT,
                                 "[split_queries_on_whitespace] is not supported here: it would have no effect");
}

/* Refuses locales other than English: names of days and months are always English. */
static int check_locale(const struct parameter_at *at)
{
    bool english = at->shown.len == 0 || slice_is(at->shown, "root") || slice_is(at->shown, "ROOT") ||
                   (at->shown.len >= 2 && strncasecmp(at->shown.data, "en", 2) == 0 &&
                    (at->shown.len == 2 || at->shown.data[2] == '-' || at->shown.data[2] == '_'));
    return english ? 0
                   : mapping__refuse(at->merge, PROBLEM_ILLEGAL_ARGUMENT,
                                     "[locale] [%.*s] is not supported here: names in dates are English",
                                     SLICE_ARG(at->shown));
}

/* Refuses a parameter of 5.x and before, which 7.x does not know. */
static int check_legacy(const struct parameter_at *at, const struct mapping_field *field, const char *name)
{
    return !in_7(at) ? 0
                     : mapping__refuse(at->merge, PROBLEM_MAPPER_PARSING,
                                       "unknown parameter [%s] on mapper [%.*s] of type [%.*s]", name,
                                       SLICE_ARG(field->name), SLICE_ARG(field->type_name));
}

int field__check_parameter(struct merge *merge, const struct mapping_field *field, const char *name, yyjson_val *value)
{
    static const struct {
        const char *name;
        int (*check)(const struct parameter_at *at);
    } checks[] = {{"index_options", check_index_options},
                  {"term_vector", check_term_vector},
                  {"similarity", check_similarity},
                  {"meta", check_meta},
                  {"index_prefixes", check_index_prefixes},
                  {"fielddata_frequency_filter", check_frequency_filter},
                  {"split_queries_on_whitespace", check_split},
                  {"locale", check_locale}};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct parameter_at at = {merge, field->name, field->type == FIELD_TEXT, value, SLICE_NONE};
    struct slice called = slice_from(name);
    int r = 0;
    if (merge->stored || yyjson_is_null(value))
        return 0;
    java_text(&text, value);
    at.shown = buf_as_slice(&text);
    for (size_t i = 0; i < sizeof checks / sizeof *checks && r == 0; i++)
        if (slice_is(called, checks[i].name))
            r = checks[i].check(&at);
    if (r == 0 && (slice_is(called, "include_in_all") || slice_is(called, "precision_step")))
        r = check_legacy(&at, field, name);
    buf_deinit(&text);
    return r;
}
