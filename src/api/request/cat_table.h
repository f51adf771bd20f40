/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the _cat calls: columns, cells, and how ?v, ?h=, ?s=, ?help, ?bytes= and ?format=json show them.
 */
#ifndef TL_API_CAT_TABLE_H
#define TL_API_CAT_TABLE_H

#include "api/request/reply.h"

/* Accepted parameters of every _cat call, for routes.def. */
#define CAT_PARAMS "v h s help bytes time size pri local master_timeout ts "

struct cat_column {
    const char *name;
    const char *aliases; /* apart by commas; "" for none */
    const char *description;
    bool right;  /* aligned to the right */
    bool hidden; /* shown only when ?h= names it */
};

enum cat_kind { CAT_NULL, CAT_TEXT, CAT_NUMBER, CAT_BYTES };

struct cat_cell {
    enum cat_kind kind;
    struct slice text; /* CAT_TEXT */
    int64_t number;    /* CAT_NUMBER, CAT_BYTES */
};

struct cat_table {
    const struct cat_column *columns;
    size_t column_count;
    struct cat_cell *cells; /* row after row */
    size_t row_count;
    size_t row_capacity;
};

void cat_table_init(struct cat_table *table, const struct cat_column *columns, size_t column_count);

/* Adds a row of empty cells. Returns: its first cell, valid until the next row. */
struct cat_cell *cat_table_row(struct cat_table *table, struct arena *arena);

static inline struct cat_cell cat_text(struct slice text)
{
    return (struct cat_cell){CAT_TEXT, text, 0};
}

static inline struct cat_cell cat_number(int64_t number)
{
    return (struct cat_cell){CAT_NUMBER, {NULL, 0}, number};
}

static inline struct cat_cell cat_bytes(int64_t bytes)
{
    return (struct cat_cell){CAT_BYTES, {NULL, 0}, bytes};
}

/* Makes the response. Returns: REQUEST_DONE, REQUEST_REFUSED. */
int cat_table_reply(struct request *request, struct cat_table *table) TL_MUST_USE;

/*
 * What every _cat call does first: reads the parameters and, with ?help, replies with the columns.
 * Returns: 0, REQUEST_ANSWERED, REQUEST_REFUSED.
 */
int cat_table_begin(struct request *request, const struct cat_column *columns, size_t column_count) TL_MUST_USE;

/* With ?help: replies with the columns instead. Returns: whether it did. */
bool cat_table_help(struct request *request, const struct cat_column *columns, size_t column_count);

#endif
