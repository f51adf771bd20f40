/* SPDX-License-Identifier: Apache-2.0 */
/* Painless's additions to String: Base64, and splitting without a regular expression. */
#include "base/base64.h"
#include "script/library/method_args.h"
#include "script/value/text_search.h"

static bool string_encode_base64(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct slice bytes = text_utf8(run, text_of(call->self));
    struct text_buf out;
    text_buf_init(&out, run);
    run_charge(run, bytes.len);
    for (size_t i = 0; i < bytes.len; i += 3) {
        char digits[4];
        base64_encode((const uint8_t *)bytes.data + i, bytes.len - i < 3 ? bytes.len - i : 3, digits);
        for (size_t k = 0; k < 4; k++)
            text_buf_unit(&out, (uint8_t)digits[k]);
    }
    return run_step(run, bytes.len / 64) && give(ret, text_buf_done(&out));
}

static bool string_decode_base64(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct text *text = text_of(call->self);
    struct buf bytes = BUF_INIT(TEXT_LENGTH_MAX);
    uint32_t bits = 0;
    unsigned have = 0;
    bool ok = true;
    run_work(run, (size_t)text->length * 4);
    for (size_t i = 0; i < text->length && ok; i++) {
        uint16_t c = text_at(text, i);
        int value = base64_value(c);
        if (c == '=')
            break;
        ok = value >= 0;
        bits = bits << 6 | (ok ? (uint32_t)value : 0);
        have += 6;
        if (have >= 8) {
            have -= 8;
            buf_byte(&bytes, (char)(bits >> have & 0xff));
        }
    }
    ok = ok ? give_slice(run, ret, buf_as_slice(&bytes))
            : run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Illegal base64 character");
    buf_deinit(&bytes);
    return ok;
}

static bool string_split_on_token(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct text *text = text_of(call->self), *token = text_of(call->args[0]);
    struct seq *parts = seq_new(run, CLASS_ARRAY_LIST, 0);
    size_t done = 0;
    int64_t limit = call->count == 2 ? call->args[1].i : -1;
    struct text_search search;
    text_search_init(&search, run, text, token, 0);
    while (token->length > 0 && (limit <= 0 || (int64_t)parts->count < limit - 1)) {
        int64_t at = text_search_next(&search);
        if (at < 0)
            break;
        if ((size_t)at < done)
            continue; /* overlaps the previous token */
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

static const struct method_row string_methods[] = {
    {"String decodeBase64()", PAINLESS, string_decode_base64},
    {"String encodeBase64()", PAINLESS, string_encode_base64},
    {"String[] splitOnToken(String)", PAINLESS, string_split_on_token},
    {"String[] splitOnToken(String, int)", PAINLESS, string_split_on_token},
};

const struct method_table methods_painless_text[] = {
    METHOD_ROWS(STRING, string_methods),
    {0},
};
