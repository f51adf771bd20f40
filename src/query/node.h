/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a parsed query, and helpers of the parsers. For src/query only. */
#ifndef TL_QUERY_NODE_H
#define TL_QUERY_NODE_H

#include "query/query.h"

enum query_kind {
    QUERY_MATCH_ALL,
    QUERY_MATCH_NONE,
    QUERY_IDS,
    QUERY_TYPE,
    QUERY_TERM,
    QUERY_TERMS,
    QUERY_PREFIX,
    QUERY_WILDCARD,
    QUERY_REGEXP,
    QUERY_FUZZY,
    QUERY_RANGE,
    QUERY_EXISTS,
    QUERY_BOOL,
    QUERY_CONSTANT_SCORE,
    QUERY_DIS_MAX,
    QUERY_BOOSTING,
    QUERY_NESTED,
    QUERY_FUNCTION_SCORE,
    QUERY_MATCH, /* match, match_phrase, match_phrase_prefix, match_bool_prefix on one field */
    QUERY_MULTI_MATCH,
    QUERY_LUCENE, /* query_string, and q= */
    QUERY_SIMPLE, /* simple_query_string */
    QUERY_SCRIPT,
    QUERY_KIND_COUNT
};

struct query_list {
    struct query **items;
    size_t count;
    size_t capacity;
};

enum match_form { MATCH_BOOLEAN, MATCH_PHRASE, MATCH_PHRASE_PREFIX, MATCH_BOOL_PREFIX };
enum multi_form {
    MULTI_BEST_FIELDS,
    MULTI_MOST_FIELDS,
    MULTI_CROSS_FIELDS,
    MULTI_PHRASE,
    MULTI_PHRASE_PREFIX,
    MULTI_BOOL_PREFIX
};

/* How the words of a text are matched. Shared by match, multi_match and query strings. */
struct match_options {
    struct slice analyzer;             /* empty: the field's */
    struct slice minimum_should_match; /* empty: none */
    struct slice fuzziness;            /* empty: exact */
    bool and_operator;
    bool lenient;
    bool lenient_given;   /* `lenient` was set; false: lenient when all fields are searched */
    bool prefix_anywhere; /* MATCH_PHRASE_PREFIX is allowed on any field type */
    bool zero_terms_all;  /* zero_terms_query: all */
    bool zero_terms_absent; /* a text without tokens, such as stop words, is no clause of its query string */
    unsigned slop;
    unsigned prefix_length;
};

struct query_field { /* "title^3" */
    struct slice name;
    double boost;
};

struct score_function {
    struct query *filter; /* NULL: applies to every document */
    double weight;        /* NAN: not given */
    bool field_factor;    /* field_value_factor: the members up to `modifier` */
    struct slice field;
    double factor;
    double missing; /* NAN: not given */
    struct slice modifier;
    const struct query_script *script; /* NULL: none */
};

struct query {
    enum query_kind kind;
    double boost;
    struct slice field; /* of leaves with one field; also the path of NESTED */
    bool lenient;       /* a failure to bind makes it match nothing */
    struct slice name;  /* `_name`, reported in matched_queries (named.h); data NULL: none */
    union {
        struct {
            yyjson_val **items; /* scalars */
            size_t count;
            const struct terms_lookup *lookup; /* TERMS; NULL: resolved */
            bool looked_up;                    /* `items` come from a lookup */
        } values;                              /* IDS, TYPE (names), TERM (one), TERMS */
        struct {
            yyjson_val *value;
            struct slice fuzziness;
            unsigned prefix_length;
            bool case_insensitive;
            bool no_transpositions;
            bool whole;           /* WILDCARD that is a case-insensitive term */
            bool in_query_string; /* REGEXP written between slashes in a query string */
        } pattern;                /* PREFIX, WILDCARD, REGEXP, FUZZY */
        struct {
            yyjson_val *low; /* NULL: open */
            yyjson_val *high;
            bool low_exclusive;
            bool high_exclusive;
            struct slice format;
            const struct zone *zone; /* NULL: not given */
        } range;
        struct {
            struct query_list must, filter, should, must_not;
            struct slice minimum_should_match;
            bool keep_pure_negative; /* adjust_pure_negative: false */
            bool excludes;           /* of simple_query_string's minus: all documents but those of must_not */
        } boolean;
        struct {
            struct query_list queries; /* BOOSTING: positive, negative */
            double number;             /* DIS_MAX: tie_breaker; BOOSTING: negative_boost */
            bool ignore_unmapped;
        } compound;
        struct {
            struct query *query;
            struct score_function *functions;
            size_t count;
            enum {
                COMBINE_MULTIPLY,
                COMBINE_SUM,
                COMBINE_AVG,
                COMBINE_FIRST,
                COMBINE_MAX,
                COMBINE_MIN,
                COMBINE_REPLACE
            } score_mode,
                boost_mode;
            double max_boost;
            double min_score; /* NAN: none */
        } function;
        struct {
            yyjson_val *value;
            enum match_form form;
            struct match_options options;
        } match;
        struct {
            yyjson_val *value;
            struct query_field *fields;
            size_t field_count;
            enum multi_form form;
            double tie_breaker; /* NAN: default of the form */
            struct match_options options;
        } multi; /* MULTI_MATCH, SIMPLE, LUCENE (value, fields, options) */
        struct {
            struct slice text;
            struct query_field *fields;
            size_t field_count;
            struct lucene_options options;
        } lucene; /* LUCENE, SIMPLE */
        const struct query_script *script;
    };
};

/* Makes a node with boost 1. */
struct query *query__new(struct arena *arena, enum query_kind kind);
void query__list_add(struct arena *arena, struct query_list *list, struct query *query);
/* Makes a JSON string, for values that are not in the request body. */
yyjson_val *query__text(struct arena *arena, struct slice text);
/*
 * Returns: a scalar as Elasticsearch prints it: strings without quotes, numbers and booleans as
 * text.
 */
struct slice query__scalar_text(struct arena *arena, yyjson_val *scalar);
struct buf;
/*
 * Appends a 16-byte IP address as a JSON string; an IPv4-mapped address as "10.0.0.1". Null if it
 * is malformed.
 */
void query__write_ip(struct buf *buf, struct slice address);

/* --- Shared by parse*.c ------------------------------------------------------------------------------------------- */

/*
 * Charges steps to the request's account, before the work is done.
 * Returns: false if the account has ended or the memory budget is refused. The problem set then is
 * never reported: the caller returns QUERY_REFUSED, and the request ends with the account's or
 * budget's outcome.
 */
bool query__charge(struct query_parser *parser, uint64_t steps) TL_MUST_USE;
/*
 * Fills the parser's problem; its location is `at` (NULL: unknown), or with `end` the closing
 * bracket of `at`.
 * Returns: QUERY_REFUSED, as the functions below do.
 */
int query__refuse(struct query_parser *parser, yyjson_val *at, bool end, enum problem_type type, const char *format,
                  ...) TL_PRINTF(5, 6);
/* Refuses with "[term] query does not support [x]". */
int query__refuse_option(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *at);
/* Refuses with "[1:2] [ids] unknown field [x]" and a suggestion from the known names. */
int query__refuse_unknown_of(struct query_parser *parser, struct slice name, yyjson_val *key, const char *const *known,
                             size_t known_count);

/*
 * Wraps the current refusal as Elasticsearch's ObjectParser does: "[bool] failed to parse field
 * [must]", caused by it. query__wrap_leaf_refusal() repeats the reason as a parsing_exception, as
 * leaf queries do.
 * Returns: QUERY_REFUSED.
 */
int query__wrap_leaf_refusal(struct query_parser *parser, yyjson_val *at) TL_MUST_USE;
int query__wrap_refusal(struct query_parser *parser, const char *name, struct slice option) TL_MUST_USE;
typedef int query_parse_function(struct query_parser *parser, struct slice name, yyjson_val *body,
                                 struct query **ret_query);
query_parse_function query__parse_match, query__parse_multi_match, query__parse_lucene, query__parse_function_score;
/*
 * Parses a script: {"source"|"inline"|"id"|"stored"|"file": …, "lang", "params"}, or a string.
 * Returns: 0; QUERY_REFUSED.
 */
int query__parse_script(struct query_parser *parser, yyjson_val *value,
                        const struct query_script **ret_script) TL_MUST_USE;
/* Parse scalar options; numbers may be strings. Return: 0; QUERY_REFUSED. */
int query__take_double(struct query_parser *parser, yyjson_val *value, double *ret_number) TL_MUST_USE;
/* The same for a boost, which 7.x refuses if it is negative. */
int query__take_boost(struct query_parser *parser, yyjson_val *value, double *ret_boost) TL_MUST_USE;
/* Checks a boost that was read from `at`. Returns: 0; QUERY_REFUSED. */
int query__check_boost(struct query_parser *parser, yyjson_val *at, double boost) TL_MUST_USE;
int query__take_u32(struct query_parser *parser, yyjson_val *value, unsigned *ret_number) TL_MUST_USE;
/*
 * Parses a time zone. Returns: 0; QUERY_REFUSED with Java's message. Owns: the zone lives in the
 * parser's arena.
 */
int query__take_zone(struct query_parser *parser, yyjson_val *value, const struct zone **ret_zone) TL_MUST_USE;
int query__take_bool(struct query_parser *parser, yyjson_val *value, bool *ret_flag) TL_MUST_USE;
/* Splits "title^3" into name and boost. */
struct query_field query__field_boost(struct slice text);
/* Returns: whether one of the fields is "*". Values that do not fit a field are ignored then. */
bool query__names_all_fields(const struct query_field *fields, size_t count);

/* Returns: a query as 5.6 prints it in error messages: indented JSON with all defaults. */
struct slice query__render(struct arena *arena, const struct query *query);

#endif
