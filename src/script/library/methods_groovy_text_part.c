/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of String that cut, split, count or reverse it. */
#include "script/value/character.h"
#include "script/value/text_search.h"
#include "script/library/methods_text.h"

static bool string_reverse(struct call *call, struct value *ret)
{
    const struct text *text = text_of(call->self);
    struct text_buf out;
    text_buf_init(&out, call->run);
    for (size_t i = text->length; i-- > 0;)
        text_buf_unit(&out, text_at(text, i));
    return give(ret, text_buf_done(&out));
}

static bool string_capitalize(struct call *call, struct value *ret)
{
    const struct text *text = text_of(call->self);
    struct text_buf out;
    text_buf_init(&out, call->run);
    for (size_t i = 0; i < text->length; i++)
        text_buf_unit(&out, i == 0 ? char_upper(text_at(text, i)) : text_at(text, i));
    return give(ret, text_buf_done(&out));
}

static bool string_tokenize(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct text *text = text_of(call->self);
    struct text *delimiters =
        call->count == 0 ? text_new(run, SLICE_LIT(" \t\n\r\f")) : value_to_text(run, call->args[0]);
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
            struct text *part = text_substring(run, text_of(call->self), begin, i);
            if (part == NULL || !run_step(run, 1) || !seq_add(run, parts, value_of(part)))
                return false;
        }
        begin = i + 1;
    }
    return give(ret, parts);
}

/* As tokenize, but gives an array. */
static bool string_split_words(struct call *call, struct value *ret)
{
    struct value tokens;
    if (!string_tokenize(call, &tokens))
        return false;
    const struct seq *seq = seq_of(tokens);
    struct array *array = array_new(call->run, CLASS_STRING, seq->count);
    for (size_t i = 0; array != NULL && i < seq->count; i++)
        array->items[i] = seq_item(seq, i);
    return give(ret, array);
}

static bool string_to_list(struct call *call, struct value *ret)
{
    return give(ret, values_to_seq(call->run, call->self, CLASS_ARRAY_LIST));
}

static bool string_take(struct call *call, struct value *ret)
{
    int64_t count = call->args[0].i < 0 ? 0 : call->args[0].i, length = text_of(call->self)->length;
    return methods_text_cut(call->run, text_of(call->self), 0, count < length ? count : length, ret);
}

static bool string_drop(struct call *call, struct value *ret)
{
    int64_t count = call->args[0].i < 0 ? 0 : call->args[0].i, length = text_of(call->self)->length;
    return methods_text_cut(call->run, text_of(call->self), count < length ? count : length, length, ret);
}

static bool string_count(struct call *call, struct value *ret)
{
    int64_t count = 0;
    struct text *part = text_of(call->args[0]);
    if (part->length == 0)
        return give_int(ret, text_of(call->self)->length + 1);
    struct text_search search;
    for (text_search_init(&search, call->run, text_of(call->self), part, 0); text_search_next(&search) >= 0; count++)
        if (!run_step(call->run, 1))
            return false;
    return give_int(ret, count);
}

static const struct method_row string_methods[] = {
    {"String reverse()", GROOVY, string_reverse},     {"String capitalize()", GROOVY, string_capitalize},
    {"List tokenize()", GROOVY, string_tokenize},     {"List tokenize(String)", GROOVY, string_tokenize},
    {"List toList()", GROOVY, string_to_list},        {"String take(int)", GROOVY, string_take},
    {"String drop(int)", GROOVY, string_drop},        {"int count(String)", GROOVY, string_count},
    {"String[] split()", GROOVY, string_split_words},
};

const struct method_table methods_groovy_text_part[] = {
    METHOD_ROWS(STRING, string_methods),
    {0},
};
