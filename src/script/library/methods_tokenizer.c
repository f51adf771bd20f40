/* SPDX-License-Identifier: Apache-2.0 */
/* java.util.StringTokenizer: the words of a text between the units of another. */
#include "script/library/method_args.h"

struct tokenizer {
    struct object object;
    const struct text *text;
    struct text_set delimiters;
    bool gives_delimiters; /* each as a word of its own */
    size_t at;
};

static bool tokenizer_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    if (n > 1)
        NEED(2);
    struct tokenizer *tokenizer = run_object(run, sizeof *tokenizer, CLASS_STRING_TOKENIZER);
    tokenizer->text = text_of(a[1]);
    const struct text *delimiters = n > 1 ? text_of(a[2]) : text_new(run, SLICE_LIT(" \t\n\r\f"));
    tokenizer->gives_delimiters = n > 2 && a[3].i != 0;
    return delimiters != NULL && text_set_init(&tokenizer->delimiters, run, delimiters) && give(ret, tokenizer);
}

static bool is_delimiter(const struct tokenizer *tokenizer, size_t at)
{
    return text_set_has(&tokenizer->delimiters, text_at(tokenizer->text, at));
}

/* The next word from `at` on; an empty one at the end. */
static void find_token(const struct tokenizer *tokenizer, size_t at, size_t *ret_begin, size_t *ret_end)
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

/* What a walk from `begin` to `end` costs. */
static bool pay(struct run *run, size_t begin, size_t end)
{
    run_work(run, end - begin);
    return run_step(run, 1);
}

static bool has_more_tokens(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct tokenizer *tokenizer = (const struct tokenizer *)a[0].object;
    size_t begin, end;
    find_token(tokenizer, tokenizer->at, &begin, &end);
    return pay(run, tokenizer->at, end) && give_boolean(ret, begin < end);
}

static bool next_token(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct tokenizer *tokenizer = (struct tokenizer *)a[0].object;
    size_t begin, end, from = tokenizer->at;
    if (n == 1) {
        NEED(1);
        if (!text_set_init(&tokenizer->delimiters, run, text_of(a[1])))
            return false;
    }
    find_token(tokenizer, from, &begin, &end);
    if (begin == end)
        return run_throw_null(run, CLASS_NO_SUCH_ELEMENT_EXCEPTION);
    tokenizer->at = end;
    return pay(run, from, end) && give(ret, text_substring(run, (struct text *)(uintptr_t)tokenizer->text, begin, end));
}

static bool count_tokens(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct tokenizer *tokenizer = (const struct tokenizer *)a[0].object;
    int64_t count = 0;
    size_t begin, end = tokenizer->at;
    for (find_token(tokenizer, end, &begin, &end); begin < end; find_token(tokenizer, end, &begin, &end))
        count++;
    return pay(run, tokenizer->at, end) && give_int(ret, count);
}

static const struct method tokenizer_methods[] = {
    M1("new", METHOD_BOTH | METHOD_NEW, STRING_TOKENIZER, STRING, tokenizer_new),
    M2("new", METHOD_BOTH | METHOD_NEW, STRING_TOKENIZER, STRING, STRING, tokenizer_new),
    M3("new", METHOD_BOTH | METHOD_NEW, STRING_TOKENIZER, STRING, STRING, BOOLEAN, tokenizer_new),
    M0("countTokens", METHOD_BOTH, INT, count_tokens),
    M0("hasMoreTokens", METHOD_BOTH, BOOLEAN, has_more_tokens),
    M0("nextToken", METHOD_BOTH, STRING, next_token),
    M1("nextToken", METHOD_BOTH, STRING, STRING, next_token),
};

const struct method_table methods_tokenizer[] = {
    METHOD_TABLE(STRING_TOKENIZER, tokenizer_methods),
    {0, 0, NULL},
};
