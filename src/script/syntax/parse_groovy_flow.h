/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by parse_groovy.c and parse_groovy_flow.c. */
#ifndef TL_SCRIPT_PARSE_GROOVY_FLOW_H
#define TL_SCRIPT_PARSE_GROOVY_FLOW_H

#include "script/syntax/parse_groovy.h"

/*
 * Parses statements and their separators up to, but not including, `close` or the end of the
 * source.
 */
void flow__statements(struct groovy_parser *parser, struct node **end, const char *close);
/* Parses a declaration, an expression or a jump. */
struct node *flow__simple(struct groovy_parser *parser, bool after_newline);
/* Returns: whether a statement may end here. */
bool flow__ended(const struct groovy_parser *parser);

#endif
