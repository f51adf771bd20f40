/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The route table: from a method and a path to a row of routes.def.
 *
 * A path is split at '/' as sent; a segment is compared with the patterns before it is decoded, so
 * "%2F" stays inside an id. A pattern's fixed segment goes before its {part}; when what follows the
 * fixed one leads nowhere, the {part} is tried, as in Elasticsearch's path trie. But a path whose
 * last segment is fixed goes before one where it is a {part}: the name of a call, as in
 * /fs/_doc/_search, is never an id with a method that the call has.
 */
#ifndef TL_API_ROUTE_H
#define TL_API_ROUTE_H

#include "api/request/exchange.h"
#include "base/error.h"

struct request;

/* The variable parts a path may have: enum symbol and name in patterns. */
#define ROUTE_PARTS(X)        \
    X(INDEX, "index")         \
    X(TYPE, "type")           \
    X(ID, "id")               \
    X(NAME, "name")           \
    X(METRIC, "metric")       \
    X(LANG, "lang")           \
    X(CONTEXT, "context")     \
    X(FIELDS, "fields")       \
    X(SCROLL_ID, "scroll_id") \
    X(TASK_ID, "task_id")     \
    X(NODE_ID, "node_id")     \
    X(TRANSACTION, "transaction") /* whose requests go one after another, see txn_queue.h */

enum route_part {
#define X(symbol, name) PART_##symbol,
    ROUTE_PARTS(X)
#undef X
        PART_COUNT
};

/* Whose dialect the calls of a row are in. */
enum route_form {
    FORM_TYPELESS, /* 7.10, or 8 when the client asks for it */
    FORM_TYPED,    /* 5.6 */
    FORM_SHARED,   /* same path in all versions: 7.10's replies, unless the handler knows better */
    FORM_NATIVE,   /* Tidelock's own */
};

typedef int request_handler(struct request *request);

struct route {
    unsigned methods; /* bit of each enum http_method */
    const char *pattern;
    enum route_form form;
    request_handler *handler;
    const char *params; /* accepted parameters, as params_check() reads them */
};

#define ROUTE_SEGMENTS_MAX 12

/* What a path leads to. */
struct route_match {
    const struct route *route;      /* of the method; NULL: the path exists, not with this method */
    unsigned methods;               /* of the path */
    enum route_form form;           /* of the row, or of any other of the path */
    struct slice parts[PART_COUNT]; /* as sent; data NULL: not in this path */
};

enum {
    ROUTE_NONE = 1, /* no row has this path */
};

struct route_table;

/* Builds the search structure over routes.def. Owns: the caller; route_table_free. */
struct route_table *route_table_new(void);
void route_table_free(struct route_table *table);

/*
 * Finds the row for a path. `method` may be HTTP_OTHER, which no row has. With `by_method` only patterns that have the
 * method count, as in 5.6; else a path is found by its segments alone.
 * Returns: 0, with ret_match->route NULL where only other methods lead somewhere; ROUTE_NONE.
 */
int route_find(const struct route_table *table, enum http_method method, struct slice path, bool by_method,
               struct route_match *ret_match) TL_MUST_USE;

/* Shows every row to `look`. */
void route_each(void (*look)(const struct route *row, void *context), void *context);

/*
 * Lines, for counting: each method of each row has one, and each method has one for requests that match no row (`route`
 * NULL), after all others. Numbered from 0 to route_line_count().
 */
size_t route_line(const struct route *route, enum http_method method);
size_t route_line_count(void);
/* What a line is about. Returns: the pattern of its row, with the method; NULL for those without a row. */
const char *route_of_line(size_t line, enum http_method *ret_method);

/* Returns: the name of a part in patterns. */
const char *route_part_name(enum route_part part);

/*
 * Returns: the name by which a part of a row's paths is given as a parameter, as Elasticsearch reads it: it does not
 * distinguish the two. A part that is in the path has the value from there. NULL: `part` is in no path of this call, or
 * the row reads the parameter itself, or takes the part from the path only.
 */
const char *route_parameter_name(const struct route_table *table, const struct route *route, enum route_part part);

#endif
