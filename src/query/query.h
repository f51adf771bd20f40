/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsed queries: trees of field names and texts, not yet bound to an index.
 *
 * See README.md. The nodes are in node.h, for src/query only.
 */
#ifndef TL_QUERY_QUERY_H
#define TL_QUERY_QUERY_H

#include "json/json.h"

#define QUERY_CLAUSES_MAX 1024           /* of one bool; indices.query.bool.max_clause_count */
#define QUERY_DEPTH_MAX 200              /* of nested queries, and brackets of a query string */
#define QUERY_TERMS_MAX 65536            /* values of one terms query; index.max_terms_count */
#define QUERY_REGEXP_CHARACTERS_MAX 1000 /* index.max_regex_length */
#define QUERY_STRING_BYTES_MAX (64u << 10)

/* Outcomes. */
enum {
    QUERY_REFUSED = 1, /* invalid or unsupported; *ret_problem has the reason */
};

struct query;
struct zone;

/* State of a parse. The tree lives in `arena` and refers to values of `doc`. */
struct query_parser {
    struct arena *arena;
    enum dialect dialect;
    const struct json_doc *doc; /* for line and column; NULL: unknown locations */
    struct problem *problem;    /* out: filled on QUERY_REFUSED */
    struct slice zones;         /* time zone database; empty: no named zones */
    size_t line;                /* out: location of the refusal, from 1; 0: unknown */
    size_t column;
    unsigned depth; /* current nesting; 0 at the start */
    bool too_deep;  /* out: refused because of QUERY_DEPTH_MAX */
};

/*
 * Parses one query clause: an object with one member.
 * Returns: 0, QUERY_REFUSED. Owns: the tree lives in the parser's arena.
 */
int query_parse(struct query_parser *parser, yyjson_val *value, struct query **ret_query) TL_MUST_USE;

/* A script as given in a request. */
struct query_script {
    struct slice source; /* data NULL: `id` names a stored script, or `file` a script in a file */
    struct slice id;
    struct slice file;   /* 5.x */
    struct slice lang;   /* empty: none named */
    struct slice params; /* JSON object; data NULL: none */
};

/* Options of a query string: the URL parameters accompanying q=, or the members of query_string. */
struct lucene_options {
    struct slice default_field; /* empty: every field */
    struct slice analyzer;      /* empty: each field's own */
    bool and_operator;          /* words are joined by AND; false: by OR */
    bool lenient;               /* a value that does not fit a field's type matches nothing */
    bool lenient_given;         /* `lenient` was set; false: lenient when all fields are searched */
    bool analyze_wildcard;
    unsigned phrase_slop;              /* of phrases without a slop of their own */
    double tie_breaker;                /* weight of all fields but the best */
    struct slice minimum_should_match; /* of the outermost clauses; empty: none */
    const struct zone *zone;           /* of dates in ranges; NULL: UTC */
};

/*
 * Makes a query in Lucene's syntax. It is parsed at binding, since syntax errors are reported per
 * index.
 */
struct query *query_from_lucene(struct arena *arena, struct slice text, const struct lucene_options *options);

struct query *query_match_all(struct arena *arena);
/* Makes a query for documents of one of these types. */
struct query *query_types(struct arena *arena, const struct slice *types, size_t count);
/*
 * Restricts `query` (NULL: match_all) by `filter` (NULL: none). The filter does not affect scores.
 */
struct query *query_filtered(struct arena *arena, struct query *query, struct query *filter);
/* Combine two filters: documents that match both, or at least one. */
struct query *query_and(struct arena *arena, struct query *a, struct query *b);
struct query *query_or(struct arena *arena, struct query *a, struct query *b);

/*
 * A terms lookup: a terms query that takes its values from a document, as in
 * `{"terms": {"user": {"index": …, "id": …, "path": …}}}`.
 */
struct terms_lookup {
    struct slice index;
    struct slice type;
    struct slice id;
    struct slice routing;
    struct slice path;
};
/*
 * Fetches the document of a lookup. Returns: 0 with its source, data NULL if it does not exist;
 * anything else ends query_resolve_lookups() with that code.
 */
typedef int terms_fetch(void *context, const struct terms_lookup *lookup, struct arena *arena, struct slice *ret_source,
                        struct problem *ret_problem);
/*
 * Replaces all terms lookups in a tree (NULL: none) by the values that `fetch` finds. Assumes:
 * called before binding.
 * Returns: 0; any code of `fetch`; fatal codes.
 */
int query_resolve_lookups(struct query *query, struct arena *arena, terms_fetch *fetch, void *context,
                          struct problem *ret_problem) TL_MUST_USE;

/*
 * Finds line and column, from 1, of a value in its source; with `end`, of the closing bracket of an
 * object or array.
 */
void query_location(const struct json_doc *doc, yyjson_val *value, bool end, size_t *ret_line, size_t *ret_column);

/*
 * Returns: Elasticsearch's " did you mean [x]?" for an unknown name; empty if no candidate is
 * similar.
 */
struct slice query_suggest(struct arena *arena, struct slice name, const char *const *candidates, size_t count);

#endif
