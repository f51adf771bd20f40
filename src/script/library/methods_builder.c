/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of StringBuilder, StringBuffer and StringJoiner. */
#include "script/library/methods_text.h"

static struct builder *builder_of(struct value v)
{
    return (struct builder *)v.object;
}

static bool builder_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    enum class_id id = type_class(((struct class_object *)call->self.object)->type);
    struct builder *builder = run_object(run, sizeof *builder, id);
    text_buf_init(&builder->buf, run);
    *ret = value_of(builder);
    return call->count == 0 || value_integral(call->args[0]) || value_append(run, call->args[0], &builder->buf);
}

static bool builder_append(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct builder *builder = builder_of(call->self);
    struct text *text = value_to_text(run, call->args[0]);
    *ret = call->self;
    if (text == NULL)
        return false;
    int64_t begin = call->count == 3 ? call->args[1].i : 0, end = call->count == 3 ? call->args[2].i : text->length;
    if (!methods_text_check_range(run, begin, end, text->length))
        return false;
    text_buf_range(&builder->buf, text, (size_t)begin, (size_t)end);
    return !builder->buf.failed && run_step(run, (uint64_t)(end - begin) / 64);
}

/* Replaces the units from `begin` to `end`, exclusive, by `text`; NULL deletes them. */
static bool builder_splice(struct run *run, struct builder *builder, int64_t begin, int64_t end,
                           const struct text *text)
{
    struct text_buf tail = builder->buf;
    if (!methods_text_check_range(run, begin, end, tail.length))
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

static bool builder_insert(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct text *text = value_to_text(run, call->args[1]);
    *ret = call->self;
    if (text == NULL)
        return false;
    if (call->args[0].i < 0 || call->args[0].i > (int64_t)builder_of(call->self)->buf.length)
        return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "offset %lld, length %zu",
                         (long long)call->args[0].i, builder_of(call->self)->buf.length);
    return builder_splice(run, builder_of(call->self), call->args[0].i, call->args[0].i, text);
}

static bool builder_delete(struct call *call, struct value *ret)
{
    int64_t length = (int64_t)builder_of(call->self)->buf.length,
            end = call->count == 2 ? call->args[1].i : call->args[0].i + 1;
    *ret = call->self;
    if (call->count == 1 && (call->args[0].i < 0 || call->args[0].i >= length))
        return run_throw(call->run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "index %lld,length %lld",
                         (long long)call->args[0].i, (long long)length);
    return builder_splice(call->run, builder_of(call->self), call->args[0].i, end < length ? end : length, NULL);
}

static bool builder_replace(struct call *call, struct value *ret)
{
    NOT_NULL(2);
    int64_t length = (int64_t)builder_of(call->self)->buf.length;
    *ret = call->self;
    return builder_splice(call->run, builder_of(call->self), call->args[0].i,
                          call->args[1].i < length ? call->args[1].i : length, text_of(call->args[2]));
}

static bool builder_reverse(struct call *call, struct value *ret)
{
    struct text_buf *buf = &builder_of(call->self)->buf;
    for (size_t i = 0; i < buf->length / 2; i++) {
        uint16_t swap = buf->units[i];
        buf->units[i] = buf->units[buf->length - 1 - i];
        buf->units[buf->length - 1 - i] = swap;
    }
    *ret = call->self;
    return run_step(call->run, buf->length / 64);
}

static bool builder_length(struct call *call, struct value *ret)
{
    return give_int(ret, (int64_t)builder_of(call->self)->buf.length);
}

static bool builder_set_length(struct call *call, struct value *ret)
{
    struct text_buf *buf = &builder_of(call->self)->buf;
    if (call->args[0].i < 0 || call->args[0].i > (int64_t)TEXT_LENGTH_MAX)
        return run_throw(call->run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "String index out of range: %lld",
                         (long long)call->args[0].i);
    while (buf->length < (size_t)call->args[0].i && !buf->failed)
        text_buf_unit(buf, 0);
    buf->length = buf->failed ? buf->length : (size_t)call->args[0].i;
    return !buf->failed && give_nothing(ret);
}

static bool builder_char_at(struct call *call, struct value *ret)
{
    const struct text_buf *buf = &builder_of(call->self)->buf;
    if (call->args[0].i < 0 || call->args[0].i >= (int64_t)buf->length)
        return run_throw(call->run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "index %lld,length %zu",
                         (long long)call->args[0].i, buf->length);
    if (call->count == 2) {
        buf->units[call->args[0].i] = (uint16_t)call->args[1].i;
        builder_of(call->self)->buf.all |= (uint16_t)call->args[1].i;
        return give_nothing(ret);
    }
    *ret = value_char(buf->units[call->args[0].i]);
    return true;
}

/* Calls a native of String with the builder's content as the receiver. */
static bool builder_text_call(struct call *call, method_native *native, struct value *ret)
{
    struct text *text = value_to_text(call->run, call->self);
    return text != NULL && native(&(struct call){call->run, call->row, value_of(text), call->args, call->count}, ret);
}

static bool builder_index_of(struct call *call, struct value *ret)
{
    return builder_text_call(call, methods_text_index_of, ret);
}

static bool builder_last_index_of(struct call *call, struct value *ret)
{
    return builder_text_call(call, methods_text_last_index_of, ret);
}

static const struct method_row builder_methods[] = {
    {"new StringBuilder()", BOTH, builder_new},
    {"new StringBuilder(CharSequence)", BOTH, builder_new},
    {"new StringBuilder(int)", GROOVY, builder_new},
    {"StringBuilder append(def)", BOTH, builder_append},
    {"StringBuilder append(CharSequence, int, int)", BOTH, builder_append},
    {"StringBuilder insert(int, def)", BOTH, builder_insert},
    {"StringBuilder delete(int, int)", BOTH, builder_delete},
    {"StringBuilder deleteCharAt(int)", BOTH, builder_delete},
    {"StringBuilder replace(int, int, String)", BOTH, builder_replace},
    {"StringBuilder reverse()", BOTH, builder_reverse},
    {"int length()", BOTH, builder_length},
    {"int size()", GROOVY, builder_length},
    {"void setLength(int)", BOTH, builder_set_length},
    {"char charAt(int)", BOTH, builder_char_at},
    {"void setCharAt(int, char)", BOTH, builder_char_at},
    {"int indexOf(String)", BOTH, builder_index_of},
    {"int indexOf(String, int)", BOTH, builder_index_of},
    {"int lastIndexOf(String)", BOTH, builder_last_index_of},
    {"int lastIndexOf(String, int)", BOTH, builder_last_index_of},
    {"String substring(int)", BOTH, methods_text_substring},
    {"String substring(int, int)", BOTH, methods_text_substring},
};

/* StringJoiner: a list of separator, prefix, suffix, and the elements added */

static bool joiner_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    struct seq *seq = seq_new(run, CLASS_STRING_JOINER, 0);
    *ret = value_of(seq);
    for (unsigned i = 0; i < 3; i++) {
        struct text *text = i < call->count ? value_to_text(run, call->args[i]) : text_new(run, SLICE_LIT(""));
        if (text == NULL || !seq_add(run, seq, value_of(text)))
            return false;
    }
    return true;
}

static bool joiner_add(struct call *call, struct value *ret)
{
    struct text *text = value_to_text(call->run, call->args[0]);
    *ret = call->self;
    return text != NULL && seq_add(call->run, seq_of(call->self), value_of(text));
}

static bool joiner_to_string(struct call *call, struct value *ret)
{
    const struct seq *seq = seq_of(call->self);
    struct text_buf out;
    text_buf_init(&out, call->run);
    text_buf_text(&out, text_of(seq_item(seq, 1)));
    for (size_t i = 3; i < seq->count; i++) {
        if (i > 3)
            text_buf_text(&out, text_of(seq_item(seq, 0)));
        text_buf_text(&out, text_of(seq_item(seq, i)));
    }
    text_buf_text(&out, text_of(seq_item(seq, 2)));
    return run_step(call->run, seq->count) && give(ret, text_buf_done(&out));
}

static bool joiner_length(struct call *call, struct value *ret)
{
    return joiner_to_string(call, ret) && give_int(ret, (int64_t)text_of(*ret)->length);
}

static const struct method_row joiner_methods[] = {
    {"new StringJoiner(CharSequence)", BOTH, joiner_new},
    {"new StringJoiner(CharSequence, CharSequence, CharSequence)", BOTH, joiner_new},
    {"StringJoiner add(CharSequence)", BOTH, joiner_add},
    {"String toString()", BOTH, joiner_to_string},
    {"int length()", BOTH, joiner_length},
};

const struct method_table methods_builder[] = {
    METHOD_ROWS(STRING_BUILDER, builder_methods),
    METHOD_ROWS(STRING_BUFFER, builder_methods),
    METHOD_ROWS(STRING_JOINER, joiner_methods),
    {0},
};
