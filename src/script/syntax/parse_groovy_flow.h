/* SPDX-License-Identifier: Apache-2.0 */
/* What parse_groovy.c and parse_groovy_flow.c ask of each other. */
#ifndef TL_SCRIPT_PARSE_GROOVY_FLOW_H
#define TL_SCRIPT_PARSE_GROOVY_FLOW_H

#include "script/syntax/parse_groovy.h"

/* Statements and what separates them, up to `close` or the end of the source, which stays. */
void flow__statements(struct parser *parser, struct node **end, const char *close);
/* A declaration, an expression, a jump. */
struct node *flow__simple(struct parser *parser, bool after_newline);
/* A statement may end here. */
bool flow__ended(const struct parser *parser);

#endif
