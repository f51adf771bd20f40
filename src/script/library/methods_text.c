/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java's methods of String and CharSequence: search, comparison, change, conversion.
 *
 * Methods that take a regular expression are in methods_text_regex.c. The additions of each dialect
 * are in methods_painless_text.c and methods_groovy_text….c.
 */
#include "script/library/methods_text.h"
#include "script/value/text_search.h"

#include "script/value/character.h"

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

/* Search */

bool methods_text_substring(struct call *call, struct value *ret)
{
    struct text *text = value_to_text(call->run, call->self);
    return text != NULL &&
           methods_text_cut(call->run, text, call->args[0].i, call->count == 2 ? call->args[1].i : text->length, ret);
}

static bool string_length(struct call *call, struct value *ret)
{
    struct text *text = value_to_text(call->run, call->self);
    return text != NULL && give_int(ret, text->length);
}

static bool string_is_empty(struct call *call, struct value *ret)
{
    return give_boolean(ret, text_of(call->self)->length == 0);
}

static bool string_char_at(struct call *call, struct value *ret)
{
    struct text *text = value_to_text(call->run, call->self);
    if (text == NULL)
        return false;
    if (call->args[0].i < 0 || call->args[0].i >= text->length)
        return run_throw(call->run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "String index out of range: %lld",
                         (long long)call->args[0].i);
    *ret = value_char(text_at(text, (size_t)call->args[0].i));
    return true;
}

static bool string_code_point_at(struct call *call, struct value *ret)
{
    if (!string_char_at(call, ret))
        return false;
    struct text *text = value_to_text(call->run, call->self);
    int64_t c = ret->i, next = call->args[0].i + 1;
    if (c >= 0xd800 && c < 0xdc00 && next < text->length) {
        int64_t low = text_at(text, (size_t)next);
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return give_int(ret, c);
}

bool methods_text_index_of(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct text *part = value_to_text(call->run, call->args[0]);
    return part != NULL &&
           give_int(ret, text_index(call->run, text_of(call->self), part, call->count == 2 ? call->args[1].i : 0));
}

bool methods_text_last_index_of(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct text *part = value_to_text(call->run, call->args[0]);
    return part != NULL && give_int(ret, text_last_index(call->run, text_of(call->self), part,
                                                         call->count == 2 ? call->args[1].i : INT32_MAX));
}

static bool string_contains(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct text *part = value_to_text(call->run, call->args[0]);
    return part != NULL && give_boolean(ret, text_index(call->run, text_of(call->self), part, 0) >= 0);
}

static bool string_starts_with(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give_boolean(ret, text_has_at(call->run, text_of(call->self), text_of(call->args[0]),
                                         call->count == 2 ? call->args[1].i : 0));
}

static bool string_ends_with(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    const struct text *text = text_of(call->self), *part = text_of(call->args[0]);
    return give_boolean(ret, text_has_at(call->run, text, part, (int64_t)text->length - part->length));
}

/* Comparison */

static bool string_compare_to(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give_int(ret, text_compare(call->run, text_of(call->self), text_of(call->args[0])));
}

static bool string_compare_ignore_case(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give_int(ret, char_compare_ignore_case(call->run, text_of(call->self), text_of(call->args[0])));
}

static bool string_equals_ignore_case(struct call *call, struct value *ret)
{
    return give_boolean(ret, call->args[0].kind != VALUE_NULL &&
                                 char_compare_ignore_case(call->run, text_of(call->self), text_of(call->args[0])) == 0);
}

static bool string_content_equals(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    struct text *other = value_to_text(call->run, call->args[0]);
    return other != NULL && give_boolean(ret, text_same(call->run, text_of(call->self), other));
}

static bool native_ignoring_case(struct run *run, struct closure *closure, struct value *a, unsigned n,
                                 struct value *ret)
{
    (void)closure;
    for (unsigned i = 0; i < n; i++)
        if (!value_is(a[i], CLASS_STRING))
            return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a comparison of texts takes texts");
    return give_int(ret, char_compare_ignore_case(run, text_of(a[0]), text_of(a[1])));
}

static bool string_ignoring_case(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, native_ignoring_case, 2, VALUE_NONE, VALUE_NONE);
    return true;
}

/* Change */

static bool map_units(struct run *run, const struct text *text, uint16_t (*map)(uint16_t), struct value *ret)
{
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = 0; i < text->length; i++) {
        uint16_t c = text_at(text, i);
        if (c == 0xdf && map == char_upper)
            text_buf_ascii(&out, "SS");
        else
            text_buf_unit(&out, map(c));
    }
    run_work(run, text->length);
    return give(ret, text_buf_done(&out));
}

static bool string_upper(struct call *call, struct value *ret)
{
    return map_units(call->run, text_of(call->self), char_upper, ret);
}

static bool string_lower(struct call *call, struct value *ret)
{
    return map_units(call->run, text_of(call->self), char_lower, ret);
}

static bool trim_text(struct run *run, struct text *text, bool unicode, struct value *ret)
{
    size_t begin = 0, end = text->length;
    while (begin < end && (unicode ? char_is_space(text_at(text, begin)) : text_at(text, begin) <= ' '))
        begin++;
    while (begin < end && (unicode ? char_is_space(text_at(text, end - 1)) : text_at(text, end - 1) <= ' '))
        end--;
    run_work(run, text->length - (end - begin));
    return give(ret, text_substring(run, text, begin, end));
}

static bool string_trim(struct call *call, struct value *ret)
{
    return trim_text(call->run, text_of(call->self), false, ret);
}

static bool string_strip(struct call *call, struct value *ret)
{
    return trim_text(call->run, text_of(call->self), true, ret);
}

static bool string_is_blank(struct call *call, struct value *ret)
{
    return string_strip(call, ret) && give_boolean(ret, text_of(*ret)->length == 0);
}

static bool string_replace(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    NOT_NULL(1);
    struct text *text = text_of(call->self), *from = value_to_text(run, call->args[0]),
                *to = from == NULL ? NULL : value_to_text(run, call->args[1]);
    struct text_buf out;
    if (to == NULL)
        return false;
    text_buf_init(&out, run);
    struct text_search search;
    text_search_init(&search, run, text, from, 0);
    size_t done = 0;
    for (int64_t at; (at = text_search_next(&search)) >= 0;) {
        if ((size_t)at < done)
            continue; /* overlaps the previous match */
        text_buf_range(&out, text, done, (size_t)at);
        text_buf_text(&out, to);
        done = (size_t)at + from->length;
        if (!run_step(run, 1) || out.failed)
            return false;
    }
    text_buf_range(&out, text, done, text->length);
    return give(ret, text_buf_done(&out));
}

static bool string_concat(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, text_concat(call->run, text_of(call->self), text_of(call->args[0])));
}

static bool string_repeat(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct text_buf out;
    text_buf_init(&out, run);
    if (call->args[0].i < 0)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "count is negative: %lld", (long long)call->args[0].i);
    for (int64_t i = 0; i < call->args[0].i && !out.failed; i++) {
        if (!run_step(run, 1))
            return false;
        text_buf_text(&out, text_of(call->self));
    }
    return give(ret, text_buf_done(&out));
}

static bool string_intern(struct call *call, struct value *ret)
{
    *ret = call->self;
    return true;
}

/* Conversion from and to other classes */

bool methods_text_value_of(struct call *call, struct value *ret)
{
    return give(ret, value_to_text(call->run, call->args[0]));
}

static bool string_new(struct call *call, struct value *ret)
{
    return call->count == 0 ? give_slice(call->run, ret, SLICE_LIT(""))
                            : give(ret, value_to_text(call->run, call->args[0]));
}

static bool string_join(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    NOT_NULL(1);
    struct text *separator = value_to_text(run, call->args[0]);
    struct text_buf out;
    struct iter iter;
    text_buf_init(&out, run);
    if (separator == NULL || !iter_init(&iter, run, call->args[1]))
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

static bool string_format(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    if (call->count == 2 && value_is_array(call->args[1])) {
        const struct array *array = (const struct array *)call->args[1].object;
        return give(ret, format_text(call->run, text_of(call->args[0]), array->items, array->count));
    }
    return give(ret, format_text(call->run, text_of(call->args[0]), call->args + 1, call->count - 1));
}

static bool string_to_char_array(struct call *call, struct value *ret)
{
    const struct text *text = text_of(call->self);
    struct array *array = array_new(call->run, CLASS_CHAR, text->length);
    for (size_t i = 0; array != NULL && i < text->length; i++)
        array->items[i] = value_char(text_at(text, i));
    return give(ret, array);
}

static bool string_bytes(struct call *call, struct value *ret)
{
    struct slice bytes = text_utf8(call->run, text_of(call->self));
    struct array *array = array_new(call->run, CLASS_BYTE, (int64_t)bytes.len);
    for (size_t i = 0; array != NULL && i < bytes.len; i++)
        array->items[i] = (struct value){.kind = VALUE_BYTE, .i = (int8_t)bytes.data[i]};
    return give(ret, array);
}

static bool string_chars(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct text *text = value_to_text(run, call->self);
    struct seq *seq = text == NULL ? NULL : seq_new(run, CLASS_INT_STREAM, text->length);
    for (size_t i = 0; seq != NULL && i < text->length; i++)
        if (!seq_add(run, seq, value_int(text_at(text, i))))
            return false;
    return give(ret, seq);
}

static const struct method_row string_methods[] = {
    {"static Comparator CASE_INSENSITIVE_ORDER", GROOVY, string_ignoring_case},
    {"String intern()", GROOVY, string_intern},
    {"int length()", BOTH, string_length},
    {"char charAt(int)", BOTH, string_char_at},
    {"int codePointAt(int)", BOTH, string_code_point_at},
    {"int compareTo(String)", BOTH, string_compare_to},
    {"int compareToIgnoreCase(String)", BOTH, string_compare_ignore_case},
    {"String concat(String)", BOTH, string_concat},
    {"boolean contains(CharSequence)", BOTH, string_contains},
    {"boolean contentEquals(CharSequence)", BOTH, string_content_equals},
    {"boolean endsWith(String)", BOTH, string_ends_with},
    {"boolean equalsIgnoreCase(String)", BOTH, string_equals_ignore_case},
    {"static String format(String, def[])", BOTH, string_format},
    {"static String format(String, def...)", GROOVY, string_format},
    {"int indexOf(String)", BOTH, methods_text_index_of},
    {"int indexOf(String, int)", BOTH, methods_text_index_of},
    {"int indexOf(char)", GROOVY, methods_text_index_of},
    {"boolean isEmpty()", BOTH, string_is_empty},
    {"static String join(CharSequence, Iterable)", BOTH, string_join},
    {"int lastIndexOf(String)", BOTH, methods_text_last_index_of},
    {"int lastIndexOf(String, int)", BOTH, methods_text_last_index_of},
    {"String replace(CharSequence, CharSequence)", BOTH, string_replace},
    {"boolean startsWith(String)", BOTH, string_starts_with},
    {"boolean startsWith(String, int)", BOTH, string_starts_with},
    {"String substring(int)", BOTH, methods_text_substring},
    {"String substring(int, int)", BOTH, methods_text_substring},
    {"char[] toCharArray()", BOTH, string_to_char_array},
    {"char[] getChars()", GROOVY, string_to_char_array},
    {"String toLowerCase()", BOTH, string_lower},
    {"String toLowerCase(Locale)", BOTH, string_lower},
    {"String toUpperCase()", BOTH, string_upper},
    {"String toUpperCase(Locale)", BOTH, string_upper},
    {"String trim()", BOTH, string_trim},
    {"static String valueOf(def)", BOTH, methods_text_value_of},
    {"new String()", BOTH, string_new},
    {"new String(Object)", GROOVY, string_new},
    {"String strip()", GROOVY, string_strip},
    {"boolean isBlank()", GROOVY, string_is_blank},
    {"String repeat(int)", GROOVY, string_repeat},
    {"String multiply(int)", GROOVY, string_repeat},
    {"byte[] getBytes()", GROOVY, string_bytes},
    {"byte[] getBytes(String)", GROOVY, string_bytes},
    {"int size()", GROOVY, string_length},
};

static const struct method_row char_sequence_methods[] = {
    {"int length()", BOTH, string_length},
    {"char charAt(int)", BOTH, string_char_at},
    {"IntStream chars()", BOTH, string_chars},
    {"CharSequence subSequence(int, int)", BOTH, methods_text_substring},
};

const struct method_table methods_text[] = {
    METHOD_ROWS(STRING, string_methods),
    METHOD_ROWS(CHAR_SEQUENCE, char_sequence_methods),
    {0},
};
