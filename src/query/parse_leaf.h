/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of leaf queries: those that contain no other queries. For src/query only. */
#ifndef TL_QUERY_PARSE_LEAF_H
#define TL_QUERY_PARSE_LEAF_H

#include "query/node.h"

query_parse_function query__parse_match_all; /* and match_none */
query_parse_function query__parse_ids;
query_parse_function query__parse_type;
query_parse_function query__parse_exists;
query_parse_function query__parse_term;
query_parse_function query__parse_terms;
query_parse_function query__parse_pattern; /* prefix, wildcard, regexp, fuzzy */
query_parse_function query__parse_range;
query_parse_function query__parse_script_query;

/*
 * Parses the form that most leaves share: {"FIELD": scalar} or {"FIELD": {options}}. `boost` and
 * `_name` are options; clients of 5.x may also write them next to the field. `take` gets each other
 * option; a scalar is an option with an empty name.
 */
typedef int query_take_option(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                              struct query *query);
int query__parse_field(struct query_parser *parser, struct slice name, yyjson_val *body, query_take_option *take,
                       struct query *query) TL_MUST_USE;

#endif
