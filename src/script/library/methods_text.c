/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods of String and CharSequence that Java has: looking into a text, comparing, changing, joining.
 *
 * What takes a regular expression is in methods_text_regex.c, what only one dialect adds in methods_painless_text.c and
 * methods_groovy_text….c.
 */
#include "script/library/methods_text.h"
#include "script/value/text_search.h"

#include "script/value/letter.h"

bool methods_text_check_range(struct run *run, int64_t begin, int64_t end, size_t length)
{
    if (begin >= 0 && begin <= end && end <= (int64_t)length)
        return true;
    return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "begin %lld, end %lld, length %zu",
                     (long long)begin, (long long)end, length);
}

bool methods_text_cut(struct run *run, struct text *text, int64_t begin, int64_t end, struct value *ret)
{
    return methods_text_check_range(run, begin, end, text->length) &&
           give(ret, text_substring(run, text, (size_t)begin, (size_t)end));
}

/* Looking into a text */

bool methods_text_substring(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct text *text = value_to_text(run, a[0]);
    return text != NULL && methods_text_cut(run, text, a[1].i, n == 2 ? a[2].i : text->length, ret);
}

static bool string_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = value_to_text(run, a[0]);
    return text != NULL && give_int(ret, text->length);
}

static bool string_is_empty(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, text_of(a[0])->length == 0);
}

static bool string_char_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = value_to_text(run, a[0]);
    if (text == NULL)
        return false;
    if (a[1].i < 0 || a[1].i >= text->length)
        return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "String index out of range: %lld",
                         (long long)a[1].i);
    *ret = value_char(text_at(text, (size_t)a[1].i));
    return true;
}

static bool string_code_point_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!string_char_at(run, a, n, ret))
        return false;
    struct text *text = value_to_text(run, a[0]);
    int64_t c = ret->i, next = a[1].i + 1;
    if (c >= 0xd800 && c < 0xdc00 && next < text->length) {
        int64_t low = text_at(text, (size_t)next);
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return give_int(ret, c);
}

bool methods_text_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct text *part = value_to_text(run, a[1]);
    return part != NULL && give_int(ret, text_index(run, text_of(a[0]), part, n == 2 ? a[2].i : 0));
}

bool methods_text_last_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct text *part = value_to_text(run, a[1]);
    return part != NULL && give_int(ret, text_last_index(run, text_of(a[0]), part, n == 2 ? a[2].i : INT32_MAX));
}

static bool string_contains(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct text *part = value_to_text(run, a[1]);
    return part != NULL && give_boolean(ret, text_index(run, text_of(a[0]), part, 0) >= 0);
}

static bool string_starts_with(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return give_boolean(ret, text_has_at(run, text_of(a[0]), text_of(a[1]), n == 2 ? a[2].i : 0));
}

static bool string_ends_with(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    const struct text *text = text_of(a[0]), *part = text_of(a[1]);
    return give_boolean(ret, text_has_at(run, text, part, (int64_t)text->length - part->length));
}

/* Comparing */

static bool string_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_int(ret, text_compare(run, text_of(a[0]), text_of(a[1])));
}

static bool string_compare_ignore_case(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_int(ret, letter_compare_texts(run, text_of(a[0]), text_of(a[1])));
}

static bool string_equals_ignore_case(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_boolean(ret, a[1].kind != VALUE_NULL && letter_compare_texts(run, text_of(a[0]), text_of(a[1])) == 0);
}

static bool string_content_equals(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct text *other = value_to_text(run, a[1]);
    return other != NULL && give_boolean(ret, text_same(run, text_of(a[0]), other));
}

static bool native_ignoring_case(struct run *run, struct closure *closure, struct value *a, unsigned n,
                                 struct value *ret)
{
    (void)closure;
    for (unsigned i = 0; i < n; i++)
        if (!value_is(a[i], CLASS_STRING))
            return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a comparison of texts takes texts");
    return give_int(ret, letter_compare_texts(run, text_of(a[0]), text_of(a[1])));
}

static bool string_ignoring_case(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    *ret = closure_native_new(run, native_ignoring_case, 2, VALUE_NONE, VALUE_NONE);
    return true;
}

/* Changing */

static bool map_units(struct run *run, const struct text *text, uint16_t (*map)(uint16_t), struct value *ret)
{
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = 0; i < text->length; i++) {
        uint16_t c = text_at(text, i);
        if (c == 0xdf && map == letter_upper)
            text_buf_ascii(&out, "SS");
        else
            text_buf_unit(&out, map(c));
    }
    run_work(run, text->length);
    return give(ret, text_buf_done(&out));
}

static bool string_upper(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return map_units(run, text_of(a[0]), letter_upper, ret);
}

static bool string_lower(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return map_units(run, text_of(a[0]), letter_lower, ret);
}

static bool trim(struct run *run, struct text *text, bool unicode, struct value *ret)
{
    size_t begin = 0, end = text->length;
    while (begin < end && (unicode ? letter_is_space(text_at(text, begin)) : text_at(text, begin) <= ' '))
        begin++;
    while (begin < end && (unicode ? letter_is_space(text_at(text, end - 1)) : text_at(text, end - 1) <= ' '))
        end--;
    run_work(run, text->length - (end - begin));
    return give(ret, text_substring(run, text, begin, end));
}

static bool string_trim(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return trim(run, text_of(a[0]), false, ret);
}

static bool string_strip(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return trim(run, text_of(a[0]), true, ret);
}

static bool string_is_blank(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return string_strip(run, a, n, ret) && give_boolean(ret, text_of(*ret)->length == 0);
}

static bool string_replace(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    struct text *text = text_of(a[0]), *from = value_to_text(run, a[1]),
                *to = from == NULL ? NULL : value_to_text(run, a[2]);
    struct text_buf out;
    if (to == NULL)
        return false;
    text_buf_init(&out, run);
    struct text_search search;
    text_search_init(&search, run, text, from, 0);
    size_t done = 0;
    for (int64_t at; (at = text_search_next(&search)) >= 0;) {
        if ((size_t)at < done)
            continue; /* in what was replaced */
        text_buf_range(&out, text, done, (size_t)at);
        text_buf_text(&out, to);
        done = (size_t)at + from->length;
        if (!run_step(run, 1) || out.failed)
            return false;
    }
    text_buf_range(&out, text, done, text->length);
    return give(ret, text_buf_done(&out));
}

static bool string_concat(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, text_concat(run, text_of(a[0]), text_of(a[1])));
}

static bool string_repeat(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text_buf out;
    text_buf_init(&out, run);
    if (a[1].i < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "count is negative: %lld", (long long)a[1].i);
    for (int64_t i = 0; i < a[1].i && !out.failed; i++) {
        if (!run_step(run, 1))
            return false;
        text_buf_text(&out, text_of(a[0]));
    }
    return give(ret, text_buf_done(&out));
}

static bool string_intern(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[0];
    return true;
}

/* From and to others */

bool methods_text_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, value_to_text(run, a[1]));
}

static bool string_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return n == 0 ? give_slice(run, ret, SLICE_LIT("")) : give(ret, value_to_text(run, a[1]));
}

static bool string_join(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    NEED(2);
    struct text *separator = value_to_text(run, a[1]);
    struct text_buf out;
    struct iter iter;
    text_buf_init(&out, run);
    if (separator == NULL || !iter_init(&iter, run, a[2]))
        return false;
    bool first = true;
    walk(&iter, item)
    {
        if (!first)
            text_buf_text(&out, separator);
        first = false;
        if (!value_append(run, item, &out))
            return false;
    }
    return run->thrown == NULL && give(ret, text_buf_done(&out));
}

static bool string_format(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    if (n == 2 && value_is_array(a[2])) {
        const struct array *array = (const struct array *)a[2].object;
        return give(ret, format_text(run, text_of(a[1]), array->items, array->count));
    }
    return give(ret, format_text(run, text_of(a[1]), a + 2, n - 1));
}

static bool string_to_char_array(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct text *text = text_of(a[0]);
    struct array *array = array_new(run, CLASS_CHAR, text->length);
    for (size_t i = 0; array != NULL && i < text->length; i++)
        array->items[i] = value_char(text_at(text, i));
    return give(ret, array);
}

static bool string_bytes(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice bytes = text_utf8(run, text_of(a[0]));
    struct array *array = array_new(run, CLASS_BYTE, (int64_t)bytes.len);
    for (size_t i = 0; array != NULL && i < bytes.len; i++)
        array->items[i] = (struct value){.kind = VALUE_BYTE, .i = (int8_t)bytes.data[i]};
    return give(ret, array);
}

static bool string_chars(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = value_to_text(run, a[0]);
    struct seq *seq = text == NULL ? NULL : seq_new(run, CLASS_INT_STREAM, text->length);
    for (size_t i = 0; seq != NULL && i < text->length; i++)
        if (!seq_add(run, seq, value_int(text_at(text, i))))
            return false;
    return give(ret, seq);
}

static const struct method string_methods[] = {
    M0("CASE_INSENSITIVE_ORDER", METHOD_GROOVY | METHOD_STATIC | METHOD_FIELD, COMPARATOR, string_ignoring_case),
    M0("intern", METHOD_GROOVY, STRING, string_intern),
    M0("length", METHOD_BOTH, INT, string_length),
    M1("charAt", METHOD_BOTH, CHAR, INT, string_char_at),
    M1("codePointAt", METHOD_BOTH, INT, INT, string_code_point_at),
    M1("compareTo", METHOD_BOTH, INT, STRING, string_compare_to),
    M1("compareToIgnoreCase", METHOD_BOTH, INT, STRING, string_compare_ignore_case),
    M1("concat", METHOD_BOTH, STRING, STRING, string_concat),
    M1("contains", METHOD_BOTH, BOOLEAN, CHAR_SEQUENCE, string_contains),
    M1("contentEquals", METHOD_BOTH, BOOLEAN, CHAR_SEQUENCE, string_content_equals),
    M1("endsWith", METHOD_BOTH, BOOLEAN, STRING, string_ends_with),
    M1("equalsIgnoreCase", METHOD_BOTH, BOOLEAN, STRING, string_equals_ignore_case),
    M2("format", METHOD_BOTH | METHOD_STATIC, STRING, STRING, DEF_ARRAY, string_format),
    M2("format", METHOD_GROOVY | METHOD_STATIC | METHOD_REST, STRING, STRING, DEF, string_format),
    M1("indexOf", METHOD_BOTH, INT, STRING, methods_text_index_of),
    M2("indexOf", METHOD_BOTH, INT, STRING, INT, methods_text_index_of),
    M1("indexOf", METHOD_GROOVY, INT, CHAR, methods_text_index_of),
    M0("isEmpty", METHOD_BOTH, BOOLEAN, string_is_empty),
    M2("join", METHOD_BOTH | METHOD_STATIC, STRING, CHAR_SEQUENCE, ITERABLE, string_join),
    M1("lastIndexOf", METHOD_BOTH, INT, STRING, methods_text_last_index_of),
    M2("lastIndexOf", METHOD_BOTH, INT, STRING, INT, methods_text_last_index_of),
    M2("replace", METHOD_BOTH, STRING, CHAR_SEQUENCE, CHAR_SEQUENCE, string_replace),
    M1("startsWith", METHOD_BOTH, BOOLEAN, STRING, string_starts_with),
    M2("startsWith", METHOD_BOTH, BOOLEAN, STRING, INT, string_starts_with),
    M1("substring", METHOD_BOTH, STRING, INT, methods_text_substring),
    M2("substring", METHOD_BOTH, STRING, INT, INT, methods_text_substring),
    M0("toCharArray", METHOD_BOTH, CHAR_ARRAY, string_to_char_array),
    M0("getChars", METHOD_GROOVY, CHAR_ARRAY, string_to_char_array),
    M0("toLowerCase", METHOD_BOTH, STRING, string_lower),
    M1("toLowerCase", METHOD_BOTH, STRING, LOCALE, string_lower),
    M0("toUpperCase", METHOD_BOTH, STRING, string_upper),
    M1("toUpperCase", METHOD_BOTH, STRING, LOCALE, string_upper),
    M0("trim", METHOD_BOTH, STRING, string_trim),
    M1("valueOf", METHOD_BOTH | METHOD_STATIC, STRING, DEF, methods_text_value_of),
    M0("new", METHOD_BOTH | METHOD_NEW, STRING, string_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, STRING, OBJECT, string_new),
    M0("strip", METHOD_GROOVY, STRING, string_strip),
    M0("isBlank", METHOD_GROOVY, BOOLEAN, string_is_blank),
    M1("repeat", METHOD_GROOVY, STRING, INT, string_repeat),
    M1("multiply", METHOD_GROOVY, STRING, INT, string_repeat),
    M0("getBytes", METHOD_GROOVY, BYTE_ARRAY, string_bytes),
    M1("getBytes", METHOD_GROOVY, BYTE_ARRAY, STRING, string_bytes),
    M0("size", METHOD_GROOVY, INT, string_length),
};

static const struct method char_sequence_methods[] = {
    M0("length", METHOD_BOTH, INT, string_length),
    M1("charAt", METHOD_BOTH, CHAR, INT, string_char_at),
    M0("chars", METHOD_BOTH, INT_STREAM, string_chars),
    M2("subSequence", METHOD_BOTH, CHAR_SEQUENCE, INT, INT, methods_text_substring),
};

const struct method_table methods_text[] = {
    METHOD_TABLE(STRING, string_methods),
    METHOD_TABLE(CHAR_SEQUENCE, char_sequence_methods),
    {0, 0, NULL},
};
