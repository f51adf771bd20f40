/* SPDX-License-Identifier: Apache-2.0 */
/* Options without effect; see noop_option.h. */
#include "query/noop_option.h"
#include "json/each.h"

/* Queries that take an option. */
enum {
    OF_MATCH = 1,
    OF_PHRASE = 2,
    OF_PHRASE_PREFIX = 4,
    OF_BOOL_PREFIX = 8,
    OF_MULTI = 16,
    OF_STRING = 32,
    OF_SIMPLE = 64,
    OF_REGEXP = 128,
    OF_PATTERN = 256, /* prefix, wildcard */
    OF_FUZZY = 512,
    OF_FULL_TEXT = OF_MATCH | OF_PHRASE | OF_PHRASE_PREFIX | OF_BOOL_PREFIX | OF_MULTI | OF_STRING | OF_SIMPLE,
    OF_5 = 1024, /* 5.x only: any full-text query; 7.x has no such option */
};

struct noop_option {
    const char *name;
    unsigned queries;      /* set of OF_… */
    const char *values[3]; /* accepted values; empty: any */
};

static const struct noop_option options[] = {
    {"max_expansions", OF_MATCH | OF_PHRASE_PREFIX | OF_BOOL_PREFIX | OF_MULTI | OF_FUZZY, {NULL}},
    {"fuzzy_max_expansions", OF_STRING | OF_SIMPLE, {NULL}},
    {"max_determinized_states", OF_STRING | OF_REGEXP, {NULL}},
    {"auto_generate_synonyms_phrase_query", OF_MATCH | OF_MULTI | OF_STRING | OF_SIMPLE, {NULL}},
    {"rewrite", OF_STRING | OF_REGEXP | OF_PATTERN | OF_FUZZY, {"constant_score", "constant_score_boolean"}},
    {"fuzzy_rewrite", OF_MATCH | OF_BOOL_PREFIX | OF_MULTI | OF_STRING, {"constant_score", "constant_score_boolean"}},
    {"fuzzy_transpositions", OF_MATCH | OF_BOOL_PREFIX | OF_MULTI | OF_STRING | OF_SIMPLE, {"true"}},
    {"fuzzy_prefix_length", OF_STRING | OF_SIMPLE, {"0"}},
    {"fuzziness", OF_STRING, {"AUTO", "auto"}},
    {"type", OF_STRING, {"best_fields"}},
    {"escape", OF_STRING, {"false"}},
    {"allow_leading_wildcard", OF_STRING, {"true"}},
    {"enable_position_increments", OF_STRING, {"true"}},
    {"quote_field_suffix", OF_STRING | OF_SIMPLE, {""}},
    {"quote_analyzer", OF_STRING, {""}},
    {"flags", OF_SIMPLE | OF_REGEXP, {"ALL", "-1"}},
    {"flags_value", OF_REGEXP, {"65535", "255"}},
    {"cutoff_frequency", OF_MATCH | OF_MULTI, {""}},
    {"lowercase_expanded_terms", OF_5, {NULL}},
    {"locale", OF_5, {NULL}},
    {"split_on_whitespace", OF_5, {"true"}},
    {"all_fields", OF_5, {"true"}},
    {"use_dis_max", OF_5, {"true"}},
    {"auto_generate_phrase_queries", OF_5, {"false"}},
};

static unsigned query_bit(struct slice query)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"match", OF_MATCH},
                 {"match_phrase", OF_PHRASE},
                 {"match_phrase_prefix", OF_PHRASE_PREFIX},
                 {"match_bool_prefix", OF_BOOL_PREFIX},
                 {"multi_match", OF_MULTI},
                 {"query_string", OF_STRING},
                 {"simple_query_string", OF_SIMPLE},
                 {"regexp", OF_REGEXP},
                 {"prefix", OF_PATTERN},
                 {"wildcard", OF_PATTERN},
                 {"fuzzy", OF_FUZZY}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(query, names[i].name))
            return names[i].bit;
    return 0;
}

static int check_value(struct query_parser *parser, struct slice query, const struct noop_option *found,
                       yyjson_val *value)
{
    struct slice text = query__scalar_text(parser->arena, value);
    if (found->values[0] == NULL || yyjson_is_null(value))
        return 0;
    for (size_t i = 0; found->values[i] != NULL; i++)
        if (slice_is(text, found->values[i]))
            return 0;
    return query__refuse(parser, value, false, PROBLEM_PARSING,
                         "[%.*s] query does not support [%s] with [%.*s] here: it would have no effect",
                         SLICE_ARG(query), found->name, SLICE_ARG(text));
}

int query__noop_option(struct query_parser *parser, struct slice query, struct slice option, yyjson_val *value)
{
    unsigned bit = query_bit(query);
    if (parser->dialect == DIALECT_5 && (bit & OF_FULL_TEXT) != 0)
        bit = OF_5 | OF_FULL_TEXT; /* 5.x accepts these options in any full-text query */
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (slice_is(option, options[i].name) && (options[i].queries & bit) != 0)
            return check_value(parser, query, &options[i], value);
    return NOOP_OPTION_UNKNOWN;
}
