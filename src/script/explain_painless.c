/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says why the tokens of a Painless script do not parse, in Elasticsearch's words and at its place.
 */
#include "script/compile.h"

void explain_painless(struct compiler *compiler)
{
    const struct token *token = compiler->stopped;
    if (token == NULL)
        return;
    struct slice text = token->kind == TOKEN_EOF ? SLICE_LIT("<EOF>") : token->text;
    compile_fail(compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, token->start, "invalid sequence of tokens near ['%.*s'].",
                 SLICE_ARG(text));
}
