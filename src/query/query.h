/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries as parsed: a tree that knows names and texts, and no index yet.
 *
 * See README.md. The nodes are in node.h, for this layer only.
 */
#ifndef TL_QUERY_QUERY_H
#define TL_QUERY_QUERY_H

#include "json/json.h"

#define QUERY_CLAUSES_MAX 1024           /* of one bool; indices.query.bool.max_clause_count */
#define QUERY_DEPTH_MAX 200              /* queries within queries, brackets of a query string included */
#define QUERY_TERMS_MAX 65536            /* values of one terms query; index.max_terms_count */
#define QUERY_REGEXP_CHARACTERS_MAX 1000 /* index.max_regex_length */
#define QUERY_STRING_BYTES_MAX (64u << 10)

/* Outcomes. */
enum {
    QUERY_REFUSED = 1, /* *ret_problem says why */
};

struct query;
struct zone;

/* What a parse needs. The tree lives in `arena` and refers to the values of `doc`. */
struct query_parser {
    struct arena *arena;
    enum dialect dialect;
    const struct json_doc *doc; /* the text that values are of, for line and column; NULL: none */
    struct problem *problem;    /* filled when something is refused */
    struct slice zones;         /* the database of time zones; empty: none have names. What is kept of it is copied */
    size_t line;                /* out: where parsing stood when it was refused; 0 unknown */
    size_t column;
    unsigned depth; /* starts at 0 */
    bool too_deep;  /* what was refused was the depth */
};

/*
 * Parses one query clause: an object with one member.
 * Returns: 0, QUERY_REFUSED. Owns: the tree lives in the parser's arena.
 */
int query_parse(struct query_parser *parser, yyjson_val *value, struct query **ret_query) TL_MUST_USE;

/* A script as a request gives it. */
struct query_script {
    struct slice source; /* data NULL: `id` names a stored one, or `file` one in a file */
    struct slice id;
    struct slice file;   /* 5.x */
    struct slice lang;   /* empty: none named */
    struct slice params; /* JSON object; data NULL: none */
};

/* How a query string is read: the parameters beside q=, or the members of query_string. */
struct lucene_options {
    struct slice default_field; /* empty: every field */
    struct slice analyzer;      /* empty: each field's own */
    bool and_operator;          /* words are joined by AND */
    bool lenient;               /* what does not fit a field's type matches nothing */
    bool lenient_given;         /* else it is where all fields are looked at */
    bool analyze_wildcard;
    unsigned phrase_slop;              /* of phrases that say none themselves */
    double tie_breaker;                /* between fields; 0: the best alone */
    struct slice minimum_should_match; /* of the outermost clauses; empty: none */
    const struct zone *zone; /* of the dates in its ranges; NULL: UTC */
};

/* A query in Lucene's syntax, not read yet: that happens at binding, as errors belong to the index. */
struct query *query_from_lucene(struct arena *arena, struct slice text, const struct lucene_options *options);

struct query *query_match_all(struct arena *arena);
/* Documents of one of these types. */
struct query *query_types(struct arena *arena, const struct slice *types, size_t count);
/* `query` (NULL: everything) where `filter` (NULL: no filter) holds too; the filter leaves scores alone. */
struct query *query_filtered(struct arena *arena, struct query *query, struct query *filter);
/* Filters joined: both hold, one of them holds. */
struct query *query_and(struct arena *arena, struct query *a, struct query *b);
struct query *query_or(struct arena *arena, struct query *a, struct query *b);

/*
 * Values that a terms query wants looked up in a document, `{"terms": {"user": {"index": …, "id": …, "path":
 * …}}}`. The caller fetches them with `fetch` before the tree is bound: the source of the document, or data
 * NULL where it is not there.
 */
struct terms_lookup {
    struct slice index;
    struct slice type;
    struct slice id;
    struct slice routing;
    struct slice path;
};
typedef int terms_fetch(void *context, const struct terms_lookup *lookup, struct arena *arena, struct slice *ret_source,
                        struct problem *ret_problem);
/* Returns: 0; QUERY_REFUSED with *ret_problem, or what `fetch` returned. */
int query_resolve_lookups(struct query *query, struct arena *arena, terms_fetch *fetch, void *context,
                          struct problem *ret_problem) TL_MUST_USE;

/* Line and column, from 1, of a value in its text; with `end`, of the bracket that closes an object or array.
 */
void query_location(const struct json_doc *doc, yyjson_val *value, bool end, size_t *ret_line, size_t *ret_column);

/* Elasticsearch's " did you mean [x]?" for a name nobody knows; empty where nothing is near. */
struct slice query_suggest(struct arena *arena, struct slice name, const char *const *candidates, size_t count);

#endif
