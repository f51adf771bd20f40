/* SPDX-License-Identifier: Apache-2.0 */
/* java.util.StringTokenizer: the tokens of a string between delimiter characters. */
#include "script/library/method_args.h"

struct java_tokenizer {
    struct object object;
    const struct text *text;
    struct text_set delimiters;
    bool gives_delimiters; /* delimiters are tokens, too */
    size_t at;
};

static bool tokenizer_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    if (call->count > 1)
        NOT_NULL(1);
    struct java_tokenizer *tokenizer = run_object(run, sizeof *tokenizer, CLASS_STRING_TOKENIZER);
    tokenizer->text = text_of(call->args[0]);
    const struct text *delimiters = call->count > 1 ? text_of(call->args[1]) : text_new(run, SLICE_LIT(" \t\n\r\f"));
    tokenizer->gives_delimiters = call->count > 2 && call->args[2].i != 0;
    return delimiters != NULL && text_set_init(&tokenizer->delimiters, run, delimiters) && give(ret, tokenizer);
}

static bool is_delimiter(const struct java_tokenizer *tokenizer, size_t at)
{
    return text_set_has(&tokenizer->delimiters, text_at(tokenizer->text, at));
}

/* Finds the next token from `at` on; it is empty at the end of the text. */
static void find_token(const struct java_tokenizer *tokenizer, size_t at, size_t *ret_begin, size_t *ret_end)
{
    size_t length = tokenizer->text->length;
    while (!tokenizer->gives_delimiters && at < length && is_delimiter(tokenizer, at))
        at++;
    *ret_begin = at;
    if (tokenizer->gives_delimiters && at < length && is_delimiter(tokenizer, at))
        at++;
    else
        while (at < length && !is_delimiter(tokenizer, at))
            at++;
    *ret_end = at;
}

/* Charges the run for scanning from `begin` to `end`. */
static bool pay_scan(struct run *run, size_t begin, size_t end)
{
    run_work(run, end - begin);
    return run_step(run, 1);
}

static bool has_more_tokens(struct call *call, struct value *ret)
{
    const struct java_tokenizer *tokenizer = (const struct java_tokenizer *)call->self.object;
    size_t begin, end;
    find_token(tokenizer, tokenizer->at, &begin, &end);
    return pay_scan(call->run, tokenizer->at, end) && give_boolean(ret, begin < end);
}

static bool next_token(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct java_tokenizer *tokenizer = (struct java_tokenizer *)call->self.object;
    size_t begin, end, from = tokenizer->at;
    if (call->count == 1) {
        NOT_NULL(0);
        if (!text_set_init(&tokenizer->delimiters, run, text_of(call->args[0])))
            return false;
    }
    find_token(tokenizer, from, &begin, &end);
    if (begin == end)
        return run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    tokenizer->at = end;
    return pay_scan(run, from, end) &&
           give(ret, text_substring(run, (struct text *)(uintptr_t)tokenizer->text, begin, end));
}

static bool count_tokens(struct call *call, struct value *ret)
{
    const struct java_tokenizer *tokenizer = (const struct java_tokenizer *)call->self.object;
    int64_t count = 0;
    size_t begin, end = tokenizer->at;
    for (find_token(tokenizer, end, &begin, &end); begin < end; find_token(tokenizer, end, &begin, &end))
        count++;
    return pay_scan(call->run, tokenizer->at, end) && give_int(ret, count);
}

static const struct method_row tokenizer_methods[] = {
    {"new StringTokenizer(String)", BOTH, tokenizer_new},
    {"new StringTokenizer(String, String)", BOTH, tokenizer_new},
    {"new StringTokenizer(String, String, boolean)", BOTH, tokenizer_new},
    {"int countTokens()", BOTH, count_tokens},
    {"boolean hasMoreTokens()", BOTH, has_more_tokens},
    {"String nextToken()", BOTH, next_token},
    {"String nextToken(String)", BOTH, next_token},
};

const struct method_table methods_tokenizer[] = {
    METHOD_ROWS(STRING_TOKENIZER, tokenizer_methods),
    {0},
};
