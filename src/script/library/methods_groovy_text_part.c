/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of String that cut it, pad it, or turn it around. */
#include "script/value/letter.h"
#include "script/value/text_search.h"
#include "script/library/methods_text.h"

static bool string_reverse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct text *text = text_of(a[0]);
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = text->length; i-- > 0;)
        text_buf_unit(&out, text_at(text, i));
    return give(ret, text_buf_done(&out));
}

static bool string_capitalize(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct text *text = text_of(a[0]);
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = 0; i < text->length; i++)
        text_buf_unit(&out, i == 0 ? letter_upper(text_at(text, i)) : text_at(text, i));
    return give(ret, text_buf_done(&out));
}

static bool string_tokenize(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct text *text = text_of(a[0]);
    struct text *delimiters = n == 0 ? text_new(run, SLICE_LIT(" \t\n\r\f")) : value_to_text(run, a[1]);
    struct seq *parts = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct text_set set;
    size_t begin = 0;
    if (delimiters == NULL || !text_set_init(&set, run, delimiters))
        return false;
    run_work(run, text->length);
    for (size_t i = 0; i <= text->length; i++) {
        if (i < text->length && !text_set_has(&set, text_at(text, i)))
            continue;
        if (i > begin) {
            struct text *part = text_substring(run, text_of(a[0]), begin, i);
            if (part == NULL || !run_step(run, 1) || !seq_add(run, parts, value_of(part)))
                return false;
        }
        begin = i + 1;
    }
    return give(ret, parts);
}

/* As tokenize, but an array. */
static bool string_split_words(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct value tokens;
    if (!string_tokenize(run, a, n, &tokens))
        return false;
    const struct seq *seq = seq_of(tokens);
    struct array *array = array_new(run, CLASS_STRING, seq->count);
    for (size_t i = 0; array != NULL && i < seq->count; i++)
        array->items[i] = seq_item(seq, i);
    return give(ret, array);
}

static bool pad(struct run *run, struct value *a, unsigned n, int left_share, struct value *ret)
{
    struct text *text = text_of(a[0]), *fill = n == 2 ? value_to_text(run, a[2]) : text_new(run, SLICE_LIT(" "));
    int64_t missing = number_to_i64(a[1]) - text->length;
    struct text_buf out;
    text_buf_init(&out, run);
    if (fill == NULL || fill->length == 0 || missing <= 0)
        return give(ret, text);
    if (missing > (int64_t)TEXT_LENGTH_MAX || !run_step(run, (uint64_t)missing))
        return run_spent(run);
    int64_t left = left_share == 2 ? missing : left_share == 0 ? 0 : missing / 2;
    for (int64_t i = 0; i < left; i++)
        text_buf_unit(&out, text_at(fill, (size_t)i % fill->length));
    text_buf_text(&out, text);
    for (int64_t i = 0; i < missing - left; i++)
        text_buf_unit(&out, text_at(fill, (size_t)i % fill->length));
    return give(ret, text_buf_done(&out));
}

static bool string_pad_left(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return pad(run, a, n, 2, ret);
}

static bool string_pad_right(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return pad(run, a, n, 0, ret);
}

static bool string_center(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return pad(run, a, n, 1, ret);
}

static bool string_to_list(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, values_to_seq(run, a[0], CLASS_ARRAY_LIST));
}

static bool string_take(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t count = a[1].i < 0 ? 0 : a[1].i, length = text_of(a[0])->length;
    return methods_text_cut(run, text_of(a[0]), 0, count < length ? count : length, ret);
}

static bool string_drop(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t count = a[1].i < 0 ? 0 : a[1].i, length = text_of(a[0])->length;
    return methods_text_cut(run, text_of(a[0]), count < length ? count : length, length, ret);
}

static bool string_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t count = 0;
    struct text *part = text_of(a[1]);
    if (part->length == 0)
        return give_int(ret, text_of(a[0])->length + 1);
    struct text_search search;
    for (text_search_init(&search, run, text_of(a[0]), part, 0); text_search_next(&search) >= 0; count++)
        if (!run_step(run, 1))
            return false;
    return give_int(ret, count);
}

static const struct method string_methods[] = {
    M0("reverse", METHOD_GROOVY, STRING, string_reverse),
    M0("capitalize", METHOD_GROOVY, STRING, string_capitalize),
    M0("tokenize", METHOD_GROOVY, LIST, string_tokenize),
    M1("tokenize", METHOD_GROOVY, LIST, STRING, string_tokenize),
    M1("padLeft", METHOD_GROOVY, STRING, NUMBER, string_pad_left),
    M2("padLeft", METHOD_GROOVY, STRING, NUMBER, CHAR_SEQUENCE, string_pad_left),
    M1("padRight", METHOD_GROOVY, STRING, NUMBER, string_pad_right),
    M2("padRight", METHOD_GROOVY, STRING, NUMBER, CHAR_SEQUENCE, string_pad_right),
    M1("center", METHOD_GROOVY, STRING, NUMBER, string_center),
    M2("center", METHOD_GROOVY, STRING, NUMBER, CHAR_SEQUENCE, string_center),
    M0("toList", METHOD_GROOVY, LIST, string_to_list),
    M1("take", METHOD_GROOVY, STRING, INT, string_take),
    M1("drop", METHOD_GROOVY, STRING, INT, string_drop),
    M1("count", METHOD_GROOVY, INT, STRING, string_count),
    M0("split", METHOD_GROOVY, STRING_ARRAY, string_split_words),
};

const struct method_table methods_groovy_text_part[] = {
    METHOD_TABLE(STRING, string_methods),
    {0, 0, NULL},
};
