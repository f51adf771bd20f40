/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's rules, and whether tokens follow them.
 *
 * The parser (syntax/parse_painless….c) and these rules are two descriptions of one language: the one makes trees fast, the other
 * knows the words of refusals. tests/unit/script/grammar_test.c holds them together: what it makes up, both take or neither.
 */
#ifndef TL_SCRIPT_PAINLESS_H
#define TL_SCRIPT_PAINLESS_H

#include "script/explain/grammar.h"
#include "script/syntax/compile.h"

extern const struct grammar_language painless_language;

/* Whether the tokens, all of which are known, follow the rules; if not, sets compiler->error as explain_painless does. */
bool painless_follows(struct compiler *compiler);

#endif
