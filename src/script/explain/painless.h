/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's grammar, and a check whether tokens follow it.
 *
 * The parser (syntax/parse_painless….c) and these rules describe the same language twice: the
 * parser builds trees fast, the rules yield the wording of syntax errors.
 * tests/unit/script/grammar_test.c checks that both accept and reject the same generated texts.
 */
#ifndef TL_SCRIPT_PAINLESS_H
#define TL_SCRIPT_PAINLESS_H

#include "script/explain/grammar.h"
#include "script/syntax/compile.h"

extern const struct grammar_language painless_language;

/* Returns: whether the tokens follow the grammar; if not, sets compiler->error as
   explain_painless does. Assumes: no token of an unknown kind. */
bool painless_follows(struct compiler *compiler);

#endif
