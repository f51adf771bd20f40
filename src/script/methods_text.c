/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of String, CharSequence, StringBuilder, StringJoiner and Character. */
#include "script/method_args.h"

#include "script/regex.h"

#include <stdio.h>

/* Letters: ASCII, Latin-1, and the plain pairs of Latin Extended-A, Greek and Cyrillic. */

static uint16_t upper_of(uint16_t c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 0xe0 && c <= 0xfe && c != 0xf7) || (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2) ||
        (c >= 0x430 && c <= 0x44f))
        return (uint16_t)(c - 32);
    if (c == 0xff)
        return 0x178;
    if (c >= 0x450 && c <= 0x45f)
        return (uint16_t)(c - 80);
    bool odd_pairs = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
    if (c >= 0x100 && c <= 0x17f && c != 0x131 && c != 0x138 && c != 0x149 && c != 0x17f)
        return (uint16_t)(c - ((c & 1) != odd_pairs));
    return c;
}

static uint16_t lower_of(uint16_t c)
{
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3a9) ||
        (c >= 0x410 && c <= 0x42f))
        return (uint16_t)(c + 32);
    if (c >= 0x400 && c <= 0x40f)
        return (uint16_t)(c + 80);
    if (c >= 0x100 && c <= 0x17f && c != 0x130 && c != 0x178) {
        bool odd_pairs = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
        uint16_t lower = (uint16_t)(c + ((c & 1) == odd_pairs));
        return upper_of(lower) == c ? lower : c;
    }
    return c;
}

static bool is_letter(uint16_t c)
{
    return upper_of(c) != c || lower_of(c) != c || c == 0xdf || c == 0xaa || c == 0xba ||
           (c >= 0x3400 && c <= 0x9fff) || (c >= 0x5d0 && c <= 0x5ea) || (c >= 0x620 && c <= 0x64a) ||
           (c >= 0x3040 && c <= 0x30ff) || (c >= 0xac00 && c <= 0xd7a3);
}

static bool is_digit(uint16_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(uint16_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x1680 || (c >= 0x2000 && c <= 0x200a && c != 0x2007) ||
           c == 0x2028 || c == 0x2029 || c == 0x205f || c == 0x3000;
}

static bool map_units(struct run *run, const struct text *text, uint16_t (*map)(uint16_t), struct value *ret)
{
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = 0; i < text->length; i++) {
        uint16_t c = text_at(text, i);
        if (c == 0xdf && map == upper_of)
            text_buf_ascii(&out, "SS");
        else
            text_buf_unit(&out, map(c));
    }
    return run_step(run, text->length / 64) && give(ret, text_buf_done(&out));
}

/* Bounds */

static bool check_range(struct run *run, int64_t begin, int64_t end, size_t length)
{
    if (begin >= 0 && begin <= end && end <= (int64_t)length)
        return true;
    return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "begin %lld, end %lld, length %zu",
                     (long long)begin, (long long)end, length);
}

static bool substring(struct run *run, struct text *text, int64_t begin, int64_t end, struct value *ret)
{
    return check_range(run, begin, end, text->length) &&
           give(ret, text_substring(run, text, (size_t)begin, (size_t)end));
}

static struct text *as_text(struct run *run, struct value v)
{
    return value_to_text(run, v);
}

/* String */

static bool string_substring(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct text *text = as_text(run, a[0]);
    return text != NULL && substring(run, text, a[1].i, n == 2 ? a[2].i : text->length, ret);
}

static bool string_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = as_text(run, a[0]);
    return text != NULL && give_int(ret, text->length);
}

static bool string_char_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = as_text(run, a[0]);
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
    struct text *text = as_text(run, a[0]);
    int64_t c = ret->i, next = a[1].i + 1;
    if (c >= 0xd800 && c < 0xdc00 && next < text->length) {
        int64_t low = text_at(text, (size_t)next);
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return give_int(ret, c);
}

static bool string_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct text *part = as_text(run, a[1]);
    return part != NULL && run_step(run, text_of(a[0])->length / 64) &&
           give_int(ret, text_index(text_of(a[0]), part, n == 2 ? a[2].i : 0));
}

static bool string_last_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct text *part = as_text(run, a[1]);
    return part != NULL && run_step(run, text_of(a[0])->length / 64) &&
           give_int(ret, text_last_index(text_of(a[0]), part, n == 2 ? a[2].i : INT32_MAX));
}

static bool string_contains(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct text *part = as_text(run, a[1]);
    return part != NULL && run_step(run, text_of(a[0])->length / 64) &&
           give_boolean(ret, text_index(text_of(a[0]), part, 0) >= 0);
}

static bool matches_at(const struct text *text, const struct text *part, int64_t at)
{
    if (at < 0 || at + (int64_t)part->length > (int64_t)text->length)
        return false;
    for (size_t i = 0; i < part->length; i++)
        if (text_at(text, (size_t)at + i) != text_at(part, i))
            return false;
    return true;
}

static bool string_starts_with(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    return give_boolean(ret, matches_at(text_of(a[0]), text_of(a[1]), n == 2 ? a[2].i : 0));
}

static bool string_ends_with(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    const struct text *text = text_of(a[0]), *part = text_of(a[1]);
    return give_boolean(ret, matches_at(text, part, (int64_t)text->length - part->length));
}

static bool string_is_empty(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, text_of(a[0])->length == 0);
}

static bool string_concat(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, text_concat(run, text_of(a[0]), text_of(a[1])));
}

static bool string_compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_int(ret, text_compare(text_of(a[0]), text_of(a[1])));
}

static int compare_ignoring_case(const struct text *a, const struct text *b)
{
    size_t common = a->length < b->length ? a->length : b->length;
    for (size_t i = 0; i < common; i++) {
        int x = lower_of(upper_of(text_at(a, i))), y = lower_of(upper_of(text_at(b, i)));
        if (x != y)
            return x - y;
    }
    return (int)a->length - (int)b->length;
}

static bool string_compare_ignore_case(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give_int(ret, compare_ignoring_case(text_of(a[0]), text_of(a[1])));
}

static bool string_equals_ignore_case(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, a[1].kind != VALUE_NULL && compare_ignoring_case(text_of(a[0]), text_of(a[1])) == 0);
}

static bool string_content_equals(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct text *other = as_text(run, a[1]);
    return other != NULL && give_boolean(ret, text_equal(text_of(a[0]), other));
}

static bool string_upper(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return map_units(run, text_of(a[0]), upper_of, ret);
}

static bool string_lower(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return map_units(run, text_of(a[0]), lower_of, ret);
}

static bool trim(struct run *run, struct text *text, bool unicode, struct value *ret)
{
    size_t begin = 0, end = text->length;
    while (begin < end && (unicode ? is_space(text_at(text, begin)) : text_at(text, begin) <= ' '))
        begin++;
    while (begin < end && (unicode ? is_space(text_at(text, end - 1)) : text_at(text, end - 1) <= ' '))
        end--;
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
    struct text *text = text_of(a[0]), *from = as_text(run, a[1]), *to = from == NULL ? NULL : as_text(run, a[2]);
    struct text_buf out;
    if (to == NULL)
        return false;
    text_buf_init(&out, run);
    size_t done = 0;
    for (int64_t at = 0; at <= (int64_t)text->length && (at = text_index(text, from, at)) >= 0;) {
        text_buf_range(&out, text, done, (size_t)at);
        text_buf_text(&out, to);
        done = (size_t)at + from->length;
        at = (int64_t)done + (from->length == 0);
        if (from->length == 0 && done < text->length)
            text_buf_unit(&out, text_at(text, done++));
        else if (from->length == 0)
            break;
        if (!run_step(run, 1) || out.failed)
            return false;
    }
    text_buf_range(&out, text, done, text->length);
    return give(ret, text_buf_done(&out));
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

static bool string_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
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
    struct text *separator = as_text(run, a[1]);
    struct text_buf out;
    struct iter iter;
    text_buf_init(&out, run);
    if (separator == NULL || !iter_init(&iter, run, a[2]))
        return false;
    bool more = true;
    for (bool first = true; more; first = false) {
        struct value item;
        if (!iter_next(&iter, &item, &more))
            return false;
        if (!more)
            break;
        if (!first)
            text_buf_text(&out, separator);
        if (!value_append(run, item, &out))
            return false;
    }
    return give(ret, text_buf_done(&out));
}

static bool string_split_on_token(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    struct text *text = text_of(a[0]), *token = text_of(a[1]);
    struct seq *parts = seq_new(run, CLASS_ARRAY_LIST, 0);
    size_t done = 0;
    int64_t limit = n == 2 ? a[2].i : -1;
    while (token->length > 0 && (limit <= 0 || (int64_t)parts->count < limit - 1)) {
        int64_t at = text_index(text, token, (int64_t)done);
        if (at < 0)
            break;
        struct text *part = text_substring(run, text, done, (size_t)at);
        if (part == NULL || !run_step(run, 1) || !seq_add(run, parts, value_of(part)))
            return false;
        done = (size_t)at + token->length;
    }
    struct text *rest = text_substring(run, text, done, text->length);
    struct array *array =
        rest == NULL || !seq_add(run, parts, value_of(rest)) ? NULL : array_new(run, CLASS_STRING, parts->count);
    for (size_t i = 0; array != NULL && i < parts->count; i++)
        array->items[i] = seq_item(parts, i);
    return give(ret, array);
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

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static bool string_encode_base64(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice bytes = text_slice(run->arena, text_of(a[0]));
    struct text_buf out;
    text_buf_init(&out, run);
    run_charge(run, bytes.len);
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < bytes.len ? (uint8_t)bytes.data[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            text_buf_unit(&out, i + k <= bytes.len ? (uint8_t)base64_digits[bits >> (18 - 6 * k) & 63] : '=');
    }
    return run_step(run, bytes.len / 64) && give(ret, text_buf_done(&out));
}

static bool string_decode_base64(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct text *text = text_of(a[0]);
    struct buf bytes = BUF_INIT(TEXT_LENGTH_MAX);
    uint32_t bits = 0;
    unsigned have = 0;
    bool ok = true;
    for (size_t i = 0; i < text->length && ok; i++) {
        uint16_t c = text_at(text, i);
        const char *digit = c > 0 && c < 128 ? strchr(base64_digits, c) : NULL;
        if (c == '=')
            break;
        ok = digit != NULL;
        bits = bits << 6 | (ok ? (uint32_t)(digit - base64_digits) : 0);
        have += 6;
        if (have >= 8) {
            have -= 8;
            buf_byte(&bytes, (char)(bits >> have & 0xff));
        }
    }
    ok = ok ? give_slice(run, ret, buf_view(&bytes))
            : run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Illegal base64 character");
    buf_deinit(&bytes);
    return ok;
}

static bool string_chars(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = as_text(run, a[0]);
    struct seq *seq = text == NULL ? NULL : seq_new(run, CLASS_INT_STREAM, text->length);
    for (size_t i = 0; seq != NULL && i < text->length; i++)
        if (!seq_add(run, seq, value_int(text_at(text, i))))
            return false;
    return give(ret, seq);
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

static bool string_bytes(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice bytes = text_slice(run->arena, text_of(a[0]));
    struct array *array = array_new(run, CLASS_BYTE, (int64_t)bytes.len);
    for (size_t i = 0; array != NULL && i < bytes.len; i++)
        array->items[i] = (struct value){.kind = VALUE_BYTE, .i = (int8_t)bytes.data[i]};
    return give(ret, array);
}

/* Groovy's additions to String */

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
        text_buf_unit(&out, i == 0 ? upper_of(text_at(text, i)) : text_at(text, i));
    return give(ret, text_buf_done(&out));
}

static bool string_tokenize(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct text *text = text_of(a[0]);
    struct text *delimiters = n == 0 ? text_new(run, SLICE_LIT(" \t\n\r\f")) : as_text(run, a[1]);
    struct seq *parts = seq_new(run, CLASS_ARRAY_LIST, 0);
    size_t begin = 0;
    for (size_t i = 0; delimiters != NULL && i <= text->length; i++) {
        bool cut = i == text->length;
        for (size_t k = 0; !cut && k < delimiters->length; k++)
            cut = text_at(text, i) == text_at(delimiters, k);
        if (!cut)
            continue;
        if (i > begin) {
            struct text *part = text_substring(run, text_of(a[0]), begin, i);
            if (part == NULL || !run_step(run, 1) || !seq_add(run, parts, value_of(part)))
                return false;
        }
        begin = i + 1;
    }
    return delimiters != NULL && give(ret, parts);
}

static bool pad(struct run *run, struct value *a, unsigned n, int left_share, struct value *ret)
{
    struct text *text = text_of(a[0]), *fill = n == 2 ? as_text(run, a[2]) : text_new(run, SLICE_LIT(" "));
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

static struct slice trimmed(struct run *run, struct value v)
{
    struct slice text = text_slice(run->arena, text_of(v));
    run_charge(run, text.len);
    while (text.len > 0 && (unsigned char)text.data[0] <= ' ')
        text = slice_from_offset(text, 1);
    while (text.len > 0 && (unsigned char)text.data[text.len - 1] <= ' ')
        text.len--;
    return text;
}

static bool not_a_number(struct run *run, struct slice text)
{
    return run_throw(run, CLASS_NUMBER_FORMAT_EXCEPTION, "For input string: \"%.*s\"", SLICE_ARG(text));
}

static bool to_integral(struct run *run, struct value *a, int64_t min, int64_t max, enum value_kind kind,
                        struct value *ret)
{
    struct slice text = trimmed(run, a[0]);
    int64_t i;
    if (!number_parse_i64(text, 10, min, max, &i))
        return not_a_number(run, text);
    *ret = (struct value){.kind = kind, .i = i};
    return true;
}

static bool string_to_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_integral(run, a, INT32_MIN, INT32_MAX, VALUE_INT, ret);
}

static bool string_to_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_integral(run, a, INT64_MIN, INT64_MAX, VALUE_LONG, ret);
}

static bool string_to_double(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    double d;
    return number_parse_double(text, &d) ? give_double(ret, d) : not_a_number(run, text);
}

static bool string_to_float(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (!string_to_double(run, a, n, ret))
        return false;
    *ret = value_float(ret->d);
    return true;
}

static bool string_to_big_decimal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    struct decimal *decimal = decimal_from_slice(run, text);
    return decimal == NULL && run->thrown == NULL ? decimal_refuse(run, text) : give(ret, decimal);
}

static bool string_to_big_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    struct big *big = big_from_digits(run, text);
    return big == NULL && run->thrown == NULL ? not_a_number(run, text) : give(ret, big);
}

static bool string_is_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t i;
    return give_boolean(ret, number_parse_i64(trimmed(run, a[0]), 10, INT32_MIN, INT32_MAX, &i));
}

static bool string_is_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t i;
    return give_boolean(ret, number_parse_i64(trimmed(run, a[0]), 10, INT64_MIN, INT64_MAX, &i));
}

static bool string_is_number(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    double d;
    struct slice text = trimmed(run, a[0]);
    bool letters = text.len > 0 && strchr("dDfFNI", text.data[text.len - 1]) != NULL;
    return give_boolean(ret, !letters && number_parse_double(text, &d));
}

static bool string_to_boolean(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct slice text = trimmed(run, a[0]);
    bool yes = slice_is(text, "y") || slice_is(text, "1") || (text.len == 4 && strncasecmp(text.data, "true", 4) == 0);
    return give_boolean(ret, yes);
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
    return substring(run, text_of(a[0]), 0, count < length ? count : length, ret);
}

static bool string_drop(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t count = a[1].i < 0 ? 0 : a[1].i, length = text_of(a[0])->length;
    return substring(run, text_of(a[0]), count < length ? count : length, length, ret);
}

static bool string_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t count = 0;
    struct text *part = text_of(a[1]);
    if (part->length == 0)
        return give_int(ret, text_of(a[0])->length + 1);
    for (int64_t at = 0; (at = text_index(text_of(a[0]), part, at)) >= 0; at++) {
        count++;
        if (!run_step(run, 1))
            return false;
    }
    return give_int(ret, count);
}

/* Regular expressions */

static struct pattern *pattern_of(struct run *run, struct value v)
{
    return value_is(v, CLASS_PATTERN) ? (struct pattern *)v.object : regex_new(run, text_of(v), 0);
}

/* "$1" and "${name}" stand for groups, a backslash for what follows it. */
static bool append_replacement(struct run *run, struct text_buf *out, const struct matcher *matcher,
                               const struct text *by)
{
    for (size_t i = 0; i < by->length; i++) {
        uint16_t c = text_at(by, i);
        if (c == '\\' && i + 1 < by->length) {
            text_buf_unit(out, text_at(by, ++i));
        } else if (c == '$') {
            unsigned group = i + 1 < by->length && is_digit(text_at(by, i + 1)) ? (unsigned)(text_at(by, i + 1) - '0')
                                                                                : REGEX_GROUPS_MAX + 1u;
            if (group > REGEX_GROUPS_MAX)
                return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Illegal group reference%s",
                                 i + 1 == by->length ? ": group index is missing" : "");
            if (group > matcher->pattern->groups)
                return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "No group %u", group);
            i++;
            if (matcher->groups[group * 2] >= 0)
                text_buf_range(out, matcher->input, (size_t)matcher->groups[group * 2],
                               (size_t)matcher->groups[group * 2 + 1]);
        } else {
            text_buf_unit(out, c);
        }
    }
    return true;
}

static bool group_value(struct run *run, const struct matcher *matcher, unsigned group, struct value *ret)
{
    int32_t begin = matcher->groups[group * 2], end = matcher->groups[group * 2 + 1];
    *ret = VALUE_NONE;
    return begin < 0 || give(ret, text_substring(run, matcher->input, (size_t)begin, (size_t)end));
}

static struct value groups_of(struct run *run, const struct matcher *matcher)
{
    struct seq *groups = seq_new(run, CLASS_ARRAY_LIST, 0);
    for (unsigned i = 0; i <= matcher->pattern->groups; i++) {
        struct value group;
        if (!group_value(run, matcher, i, &group) || !seq_add(run, groups, group))
            return VALUE_NONE;
    }
    return value_of(groups);
}

/* Painless hands the matcher to a function, Groovy the match or, where the pattern has groups, a list of them all. */
static bool append_computed(struct run *run, struct text_buf *out, struct matcher *matcher, struct value function)
{
    struct value argument = value_of(matcher), result;
    if (run->groovy && matcher->pattern->groups > 0)
        argument = groups_of(run, matcher);
    else if (run->groovy && !group_value(run, matcher, 0, &argument))
        return false;
    return argument.kind != VALUE_NULL && run_invoke(run, function, &argument, 1, &result) &&
           value_append(run, result, out);
}

static bool replace_regex(struct run *run, struct value *a, bool all, struct value *ret)
{
    struct text *text = as_text(run, a[0]);
    struct pattern *pattern = text == NULL || a[1].kind == VALUE_NULL ? NULL : pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text);
    struct text_buf out;
    size_t done = 0;
    NEED(1);
    NEED(2);
    if (matcher == NULL)
        return false;
    text_buf_init(&out, run);
    for (bool found = true; found;) {
        if (!matcher_find(run, matcher, &found))
            return false;
        if (!found)
            break;
        text_buf_range(&out, text, done, (size_t)matcher->groups[0]);
        bool ok = value_is(a[2], CLASS_CLOSURE) ? append_computed(run, &out, matcher, a[2])
                                                : append_replacement(run, &out, matcher, as_text(run, a[2]));
        if (!ok)
            return false;
        done = (size_t)matcher->groups[1];
        found = all;
    }
    text_buf_range(&out, text, done, text->length);
    return give(ret, text_buf_done(&out));
}

static bool string_replace_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return replace_regex(run, a, true, ret);
}

static bool string_replace_first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return replace_regex(run, a, false, ret);
}

static bool string_matches(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    bool found;
    struct pattern *pattern = pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text_of(a[0]));
    return matcher != NULL && matcher_match_at(run, matcher, 0, true, &found) && give_boolean(ret, found);
}

static bool string_split(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    if (n == 0) {
        struct value tokens;
        if (!string_tokenize(run, a, 0, &tokens))
            return false;
        const struct seq *seq = seq_of(tokens);
        struct array *array = array_new(run, CLASS_STRING, seq->count);
        for (size_t i = 0; array != NULL && i < seq->count; i++)
            array->items[i] = seq_item(seq, i);
        return give(ret, array);
    }
    NEED(1);
    struct pattern *pattern = pattern_of(run, a[1]);
    return pattern != NULL && give(ret, regex_split(run, pattern, text_of(a[0]), n == 2 ? a[2].i : 0));
}

static bool string_find_all(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct seq *found_all = seq_new(run, CLASS_ARRAY_LIST, 0);
    struct pattern *pattern = pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text_of(a[0]));
    if (matcher == NULL)
        return false;
    for (;;) {
        struct value item;
        bool found;
        if (!matcher_find(run, matcher, &found))
            return false;
        if (!found)
            return give(ret, found_all);
        if (!group_value(run, matcher, 0, &item))
            return false;
        if (!seq_add(run, found_all, item))
            return false;
    }
}

static bool string_find(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool found;
    struct pattern *pattern = pattern_of(run, a[1]);
    struct matcher *matcher = pattern == NULL ? NULL : matcher_new(run, pattern, text_of(a[0]));
    if (matcher == NULL || !matcher_find(run, matcher, &found))
        return false;
    *ret = VALUE_NONE;
    return !found || group_value(run, matcher, 0, ret);
}

static bool native_ignoring_case(struct run *run, struct closure *closure, struct value *a, unsigned n,
                                 struct value *ret)
{
    (void)closure;
    for (unsigned i = 0; i < n; i++)
        if (!value_is(a[i], CLASS_STRING))
            return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a comparison of texts takes texts");
    return give_int(ret, compare_ignoring_case(text_of(a[0]), text_of(a[1])));
}

static bool string_ignoring_case(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    *ret = closure_native_new(run, native_ignoring_case, 2, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool string_intern(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[0];
    return true;
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
    M0("decodeBase64", METHOD_PAINLESS, STRING, string_decode_base64),
    M0("encodeBase64", METHOD_PAINLESS, STRING, string_encode_base64),
    M1("splitOnToken", METHOD_PAINLESS, STRING_ARRAY, STRING, string_split_on_token),
    M2("splitOnToken", METHOD_PAINLESS, STRING_ARRAY, STRING, INT, string_split_on_token),
    M1("endsWith", METHOD_BOTH, BOOLEAN, STRING, string_ends_with),
    M1("equalsIgnoreCase", METHOD_BOTH, BOOLEAN, STRING, string_equals_ignore_case),
    M2("format", METHOD_BOTH | METHOD_STATIC, STRING, STRING, DEF_ARRAY, string_format),
    M2("format", METHOD_GROOVY | METHOD_STATIC | METHOD_REST, STRING, STRING, DEF, string_format),
    M1("indexOf", METHOD_BOTH, INT, STRING, string_index_of),
    M2("indexOf", METHOD_BOTH, INT, STRING, INT, string_index_of),
    M1("indexOf", METHOD_GROOVY, INT, CHAR, string_index_of),
    M0("isEmpty", METHOD_BOTH, BOOLEAN, string_is_empty),
    M2("join", METHOD_BOTH | METHOD_STATIC, STRING, CHAR_SEQUENCE, ITERABLE, string_join),
    M1("lastIndexOf", METHOD_BOTH, INT, STRING, string_last_index_of),
    M2("lastIndexOf", METHOD_BOTH, INT, STRING, INT, string_last_index_of),
    M2("replace", METHOD_BOTH, STRING, CHAR_SEQUENCE, CHAR_SEQUENCE, string_replace),
    M1("startsWith", METHOD_BOTH, BOOLEAN, STRING, string_starts_with),
    M2("startsWith", METHOD_BOTH, BOOLEAN, STRING, INT, string_starts_with),
    M1("substring", METHOD_BOTH, STRING, INT, string_substring),
    M2("substring", METHOD_BOTH, STRING, INT, INT, string_substring),
    M0("toCharArray", METHOD_BOTH, CHAR_ARRAY, string_to_char_array),
    M0("toLowerCase", METHOD_BOTH, STRING, string_lower),
    M1("toLowerCase", METHOD_BOTH, STRING, LOCALE, string_lower),
    M0("toUpperCase", METHOD_BOTH, STRING, string_upper),
    M1("toUpperCase", METHOD_BOTH, STRING, LOCALE, string_upper),
    M0("trim", METHOD_BOTH, STRING, string_trim),
    M1("valueOf", METHOD_BOTH | METHOD_STATIC, STRING, DEF, string_value_of),
    M0("new", METHOD_BOTH | METHOD_NEW, STRING, string_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, STRING, OBJECT, string_new),
    M0("strip", METHOD_GROOVY, STRING, string_strip),
    M0("isBlank", METHOD_GROOVY, BOOLEAN, string_is_blank),
    M1("repeat", METHOD_GROOVY, STRING, INT, string_repeat),
    M1("multiply", METHOD_GROOVY, STRING, INT, string_repeat),
    M0("getBytes", METHOD_GROOVY, BYTE_ARRAY, string_bytes),
    M1("getBytes", METHOD_GROOVY, BYTE_ARRAY, STRING, string_bytes),
    M0("size", METHOD_GROOVY, INT, string_length),
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
    M0("toInteger", METHOD_GROOVY, INT_BOX, string_to_integer),
    M0("toLong", METHOD_GROOVY, LONG_BOX, string_to_long),
    M0("toDouble", METHOD_GROOVY, DOUBLE_BOX, string_to_double),
    M0("toFloat", METHOD_GROOVY, FLOAT_BOX, string_to_float),
    M0("toBigDecimal", METHOD_GROOVY, BIG_DECIMAL, string_to_big_decimal),
    M0("toBigInteger", METHOD_GROOVY, BIG_INTEGER, string_to_big_integer),
    M0("toBoolean", METHOD_GROOVY, BOOLEAN_BOX, string_to_boolean),
    M0("isInteger", METHOD_GROOVY, BOOLEAN, string_is_integer),
    M0("isLong", METHOD_GROOVY, BOOLEAN, string_is_long),
    M0("isNumber", METHOD_GROOVY, BOOLEAN, string_is_number),
    M0("isDouble", METHOD_GROOVY, BOOLEAN, string_is_number),
    M0("isFloat", METHOD_GROOVY, BOOLEAN, string_is_number),
    M0("isBigDecimal", METHOD_GROOVY, BOOLEAN, string_is_number),
    M0("toList", METHOD_GROOVY, LIST, string_to_list),
    M1("take", METHOD_GROOVY, STRING, INT, string_take),
    M1("drop", METHOD_GROOVY, STRING, INT, string_drop),
    M1("count", METHOD_GROOVY, INT, STRING, string_count),
    M2("replaceAll", METHOD_GROOVY, STRING, STRING, CHAR_SEQUENCE, string_replace_all),
    M2("replaceAll", METHOD_GROOVY, STRING, STRING, CLOSURE, string_replace_all),
    M2("replaceFirst", METHOD_GROOVY, STRING, STRING, CHAR_SEQUENCE, string_replace_first),
    M2("replaceFirst", METHOD_GROOVY, STRING, STRING, CLOSURE, string_replace_first),
    M1("matches", METHOD_GROOVY, BOOLEAN, STRING, string_matches),
    M1("matches", METHOD_GROOVY, BOOLEAN, PATTERN, string_matches),
    M0("split", METHOD_GROOVY, STRING_ARRAY, string_split),
    M1("split", METHOD_GROOVY, STRING_ARRAY, STRING, string_split),
    M2("split", METHOD_GROOVY, STRING_ARRAY, STRING, INT, string_split),
    M1("findAll", METHOD_GROOVY, LIST, STRING, string_find_all),
    M1("findAll", METHOD_GROOVY, LIST, PATTERN, string_find_all),
    M1("find", METHOD_GROOVY, STRING, STRING, string_find),
    M1("find", METHOD_GROOVY, STRING, PATTERN, string_find),
};

static const struct method char_sequence_methods[] = {
    M0("length", METHOD_BOTH, INT, string_length),
    M1("charAt", METHOD_BOTH, CHAR, INT, string_char_at),
    M0("chars", METHOD_BOTH, INT_STREAM, string_chars),
    M2("subSequence", METHOD_BOTH, CHAR_SEQUENCE, INT, INT, string_substring),
    M2("replaceAll", METHOD_BOTH, STRING, PATTERN, FUNCTION, string_replace_all),
    M2("replaceAll", METHOD_GROOVY, STRING, PATTERN, CHAR_SEQUENCE, string_replace_all),
    M2("replaceFirst", METHOD_BOTH, STRING, PATTERN, FUNCTION, string_replace_first),
    M2("replaceFirst", METHOD_GROOVY, STRING, PATTERN, CHAR_SEQUENCE, string_replace_first),
};

/* StringBuilder and StringBuffer */

static struct builder *builder_of(struct value v)
{
    return (struct builder *)v.object;
}

static bool builder_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    enum class_id id = type_class(((struct class_object *)a[0].object)->type);
    struct builder *builder = run_object(run, sizeof *builder, id);
    text_buf_init(&builder->buf, run);
    *ret = value_of(builder);
    return n == 0 || value_integral(a[1]) || value_append(run, a[1], &builder->buf);
}

static bool builder_append(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct builder *builder = builder_of(a[0]);
    struct text *text = value_to_text(run, a[1]);
    *ret = a[0];
    if (text == NULL)
        return false;
    int64_t begin = n == 3 ? a[2].i : 0, end = n == 3 ? a[3].i : text->length;
    if (!check_range(run, begin, end, text->length))
        return false;
    text_buf_range(&builder->buf, text, (size_t)begin, (size_t)end);
    return !builder->buf.failed && run_step(run, (uint64_t)(end - begin) / 64);
}

/* Puts `text` in place of what is between begin and end. */
static bool builder_splice(struct run *run, struct builder *builder, int64_t begin, int64_t end,
                           const struct text *text)
{
    struct text_buf tail = builder->buf;
    if (!check_range(run, begin, end, tail.length))
        return false;
    size_t rest = tail.length - (size_t)end;
    uint16_t *copy = run_alloc_large(run, (rest + 1) * sizeof *copy);
    if (copy == NULL || !run_step(run, rest / 64))
        return false;
    memcpy(copy, builder->buf.units + end, rest * sizeof *copy);
    builder->buf.length = (size_t)begin;
    if (text != NULL)
        text_buf_text(&builder->buf, text);
    for (size_t i = 0; i < rest; i++)
        text_buf_unit(&builder->buf, copy[i]);
    return !builder->buf.failed;
}

static bool builder_insert(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = value_to_text(run, a[2]);
    *ret = a[0];
    if (text == NULL)
        return false;
    if (a[1].i < 0 || a[1].i > (int64_t)builder_of(a[0])->buf.length)
        return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "offset %lld, length %zu", (long long)a[1].i,
                         builder_of(a[0])->buf.length);
    return builder_splice(run, builder_of(a[0]), a[1].i, a[1].i, text);
}

static bool builder_delete(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int64_t length = (int64_t)builder_of(a[0])->buf.length, end = n == 2 ? a[2].i : a[1].i + 1;
    *ret = a[0];
    if (n == 1 && (a[1].i < 0 || a[1].i >= length))
        return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "index %lld,length %lld", (long long)a[1].i,
                         (long long)length);
    return builder_splice(run, builder_of(a[0]), a[1].i, end < length ? end : length, NULL);
}

static bool builder_replace(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(3);
    int64_t length = (int64_t)builder_of(a[0])->buf.length;
    *ret = a[0];
    return builder_splice(run, builder_of(a[0]), a[1].i, a[2].i < length ? a[2].i : length, text_of(a[3]));
}

static bool builder_reverse(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text_buf *buf = &builder_of(a[0])->buf;
    for (size_t i = 0; i < buf->length / 2; i++) {
        uint16_t swap = buf->units[i];
        buf->units[i] = buf->units[buf->length - 1 - i];
        buf->units[buf->length - 1 - i] = swap;
    }
    *ret = a[0];
    return run_step(run, buf->length / 64);
}

static bool builder_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (int64_t)builder_of(a[0])->buf.length);
}

static bool builder_set_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text_buf *buf = &builder_of(a[0])->buf;
    if (a[1].i < 0 || a[1].i > (int64_t)TEXT_LENGTH_MAX)
        return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "String index out of range: %lld",
                         (long long)a[1].i);
    while (buf->length < (size_t)a[1].i && !buf->failed)
        text_buf_unit(buf, 0);
    buf->length = buf->failed ? buf->length : (size_t)a[1].i;
    return !buf->failed && give_nothing(ret);
}

static bool builder_char_at(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    const struct text_buf *buf = &builder_of(a[0])->buf;
    if (a[1].i < 0 || a[1].i >= (int64_t)buf->length)
        return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "index %lld,length %zu", (long long)a[1].i,
                         buf->length);
    if (n == 2) {
        buf->units[a[1].i] = (uint16_t)a[2].i;
        builder_of(a[0])->buf.all |= (uint16_t)a[2].i;
        return give_nothing(ret);
    }
    *ret = value_char(buf->units[a[1].i]);
    return true;
}

static bool builder_text_call(struct run *run, struct value *a, unsigned n, struct value *ret, method_call *call)
{
    struct value copy[4] = {value_of(value_to_text(run, a[0]))};
    for (unsigned i = 1; i <= n && i < 4; i++)
        copy[i] = a[i];
    return copy[0].kind != VALUE_NULL && call(run, copy, n, ret);
}

static bool builder_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return builder_text_call(run, a, n, ret, string_index_of);
}

static bool builder_last_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return builder_text_call(run, a, n, ret, string_last_index_of);
}

static const struct method builder_methods[] = {
    M0("new", METHOD_BOTH | METHOD_NEW, STRING_BUILDER, builder_new),
    M1("new", METHOD_BOTH | METHOD_NEW, STRING_BUILDER, CHAR_SEQUENCE, builder_new),
    M1("new", METHOD_GROOVY | METHOD_NEW, STRING_BUILDER, INT, builder_new),
    M1("append", METHOD_BOTH, STRING_BUILDER, DEF, builder_append),
    M3("append", METHOD_BOTH, STRING_BUILDER, CHAR_SEQUENCE, INT, INT, builder_append),
    M2("insert", METHOD_BOTH, STRING_BUILDER, INT, DEF, builder_insert),
    M2("delete", METHOD_BOTH, STRING_BUILDER, INT, INT, builder_delete),
    M1("deleteCharAt", METHOD_BOTH, STRING_BUILDER, INT, builder_delete),
    M3("replace", METHOD_BOTH, STRING_BUILDER, INT, INT, STRING, builder_replace),
    M0("reverse", METHOD_BOTH, STRING_BUILDER, builder_reverse),
    M0("length", METHOD_BOTH, INT, builder_length),
    M0("size", METHOD_GROOVY, INT, builder_length),
    M1("setLength", METHOD_BOTH, VOID, INT, builder_set_length),
    M1("charAt", METHOD_BOTH, CHAR, INT, builder_char_at),
    M2("setCharAt", METHOD_BOTH, VOID, INT, CHAR, builder_char_at),
    M1("indexOf", METHOD_BOTH, INT, STRING, builder_index_of),
    M2("indexOf", METHOD_BOTH, INT, STRING, INT, builder_index_of),
    M1("lastIndexOf", METHOD_BOTH, INT, STRING, builder_last_index_of),
    M2("lastIndexOf", METHOD_BOTH, INT, STRING, INT, builder_last_index_of),
    M1("substring", METHOD_BOTH, STRING, INT, string_substring),
    M2("substring", METHOD_BOTH, STRING, INT, INT, string_substring),
};

/* StringJoiner: a list of separator, prefix, suffix and what was added. */

static bool joiner_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_STRING_JOINER, 0);
    *ret = value_of(seq);
    for (unsigned i = 1; i <= 3; i++) {
        struct text *text = i <= n ? value_to_text(run, a[i]) : text_new(run, SLICE_LIT(""));
        if (text == NULL || !seq_add(run, seq, value_of(text)))
            return false;
    }
    return true;
}

static bool joiner_add(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct text *text = value_to_text(run, a[1]);
    *ret = a[0];
    return text != NULL && seq_add(run, seq_of(a[0]), value_of(text));
}

static bool joiner_to_string(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    const struct seq *seq = seq_of(a[0]);
    struct text_buf out;
    text_buf_init(&out, run);
    text_buf_text(&out, text_of(seq_item(seq, 1)));
    for (size_t i = 3; i < seq->count; i++) {
        if (i > 3)
            text_buf_text(&out, text_of(seq_item(seq, 0)));
        text_buf_text(&out, text_of(seq_item(seq, i)));
    }
    text_buf_text(&out, text_of(seq_item(seq, 2)));
    return run_step(run, seq->count) && give(ret, text_buf_done(&out));
}

static const struct method joiner_methods[] = {
    M1("new", METHOD_BOTH | METHOD_NEW, STRING_JOINER, CHAR_SEQUENCE, joiner_new),
    M3("new", METHOD_BOTH | METHOD_NEW, STRING_JOINER, CHAR_SEQUENCE, CHAR_SEQUENCE, CHAR_SEQUENCE, joiner_new),
    M1("add", METHOD_BOTH, STRING_JOINER, CHAR_SEQUENCE, joiner_add),
    M0("toString", METHOD_BOTH, STRING, joiner_to_string),
};

/* Character */

static bool character_is_digit(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, is_digit((uint16_t)a[1].i));
}

static bool character_is_letter(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, is_letter((uint16_t)a[1].i));
}

static bool character_is_letter_or_digit(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, is_letter((uint16_t)a[1].i) || is_digit((uint16_t)a[1].i));
}

static bool character_is_upper(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, lower_of((uint16_t)a[1].i) != (uint16_t)a[1].i);
}

static bool character_is_lower(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, upper_of((uint16_t)a[1].i) != (uint16_t)a[1].i || a[1].i == 0xdf);
}

static bool character_is_whitespace(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_boolean(ret, is_space((uint16_t)a[1].i));
}

static bool character_to_upper(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = value_char(upper_of((uint16_t)a[1].i));
    return true;
}

static bool character_to_lower(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = value_char(lower_of((uint16_t)a[1].i));
    return true;
}

static int64_t digit_value(uint16_t c)
{
    if (is_digit(c))
        return c - '0';
    c = lower_of(c);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : -1;
}

static bool character_numeric_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run;
    int64_t value = digit_value((uint16_t)a[1].i);
    return give_int(ret, n == 2 && value >= a[2].i ? -1 : value);
}

static bool character_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[1];
    return true;
}

static bool character_compare(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, a[1].i - a[2].i);
}

static bool character_char_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    *ret = a[0];
    return true;
}

static bool character_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)a, (void)n;
    *ret = value_char(0xffff);
    return true;
}

static const struct method character_methods[] = {
    M0("MAX_VALUE", METHOD_BOTH | METHOD_STATIC | METHOD_FIELD, CHAR, character_max),
    M1("isDigit", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_digit),
    M1("isLetter", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_letter),
    M1("isAlphabetic", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_letter),
    M1("isLetterOrDigit", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_letter_or_digit),
    M1("isUpperCase", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_upper),
    M1("isLowerCase", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_lower),
    M1("isWhitespace", METHOD_BOTH | METHOD_STATIC, BOOLEAN, INT, character_is_whitespace),
    M1("toUpperCase", METHOD_BOTH | METHOD_STATIC, CHAR, CHAR, character_to_upper),
    M1("toLowerCase", METHOD_BOTH | METHOD_STATIC, CHAR, CHAR, character_to_lower),
    M1("toString", METHOD_BOTH | METHOD_STATIC, STRING, CHAR, string_value_of),
    M1("valueOf", METHOD_BOTH | METHOD_STATIC, CHAR_BOX, CHAR, character_value_of),
    M1("getNumericValue", METHOD_BOTH | METHOD_STATIC, INT, INT, character_numeric_value),
    M2("digit", METHOD_BOTH | METHOD_STATIC, INT, INT, INT, character_numeric_value),
    M2("compare", METHOD_BOTH | METHOD_STATIC, INT, CHAR, CHAR, character_compare),
    M0("charValue", METHOD_BOTH, CHAR, character_char_value),
};

const struct method_table methods_text[] = {
    METHOD_TABLE(STRING, string_methods),
    METHOD_TABLE(CHAR_SEQUENCE, char_sequence_methods),
    METHOD_TABLE(STRING_BUILDER, builder_methods),
    METHOD_TABLE(STRING_BUFFER, builder_methods),
    METHOD_TABLE(STRING_JOINER, joiner_methods),
    METHOD_TABLE(CHAR_BOX, character_methods),
    {0, 0, NULL},
};
