/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's padLeft, padRight and center of String. */
#include "script/library/methods_text.h"

/* The share of the padding that precedes the text, in halves. */
enum { PAD_RIGHT, PAD_CENTER, PAD_LEFT };

static bool string_pad(struct call *call, struct value *ret)
{
    int left_share = (int)call->row->datum.number;
    struct run *run = call->run;
    struct text *text = text_of(call->self),
                *fill = call->count == 2 ? value_to_text(run, call->args[1]) : text_new(run, SLICE_LIT(" "));
    int64_t missing = number_to_i64(call->args[0]) - text->length;
    struct text_buf out;
    text_buf_init(&out, run);
    if (fill == NULL || fill->length == 0 || missing <= 0)
        return give(ret, text);
    if (missing > (int64_t)TEXT_LENGTH_MAX || !run_step(run, (uint64_t)missing))
        return run_fail_exhausted(run);
    int64_t left = left_share == PAD_LEFT ? missing : left_share == PAD_RIGHT ? 0 : missing / 2;
    for (int64_t i = 0; i < left; i++)
        text_buf_unit(&out, text_at(fill, (size_t)i % fill->length));
    text_buf_text(&out, text);
    for (int64_t i = 0; i < missing - left; i++)
        text_buf_unit(&out, text_at(fill, (size_t)i % fill->length));
    return give(ret, text_buf_done(&out));
}

static const struct method_row string_methods[] = {
    {"String padLeft(Number)", GROOVY, string_pad, {PAD_LEFT}},
    {"String padLeft(Number, CharSequence)", GROOVY, string_pad, {PAD_LEFT}},
    {"String padRight(Number)", GROOVY, string_pad, {PAD_RIGHT}},
    {"String padRight(Number, CharSequence)", GROOVY, string_pad, {PAD_RIGHT}},
    {"String center(Number)", GROOVY, string_pad, {PAD_CENTER}},
    {"String center(Number, CharSequence)", GROOVY, string_pad, {PAD_CENTER}},
};

const struct method_table methods_groovy_padding[] = {
    METHOD_ROWS(STRING, string_methods),
    {0},
};
