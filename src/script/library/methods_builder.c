/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of StringBuilder, StringBuffer and StringJoiner: texts under construction. */
#include "script/library/methods_text.h"

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
    if (!methods_text_check_range(run, begin, end, text->length))
        return false;
    text_buf_range(&builder->buf, text, (size_t)begin, (size_t)end);
    return !builder->buf.failed && run_step(run, (uint64_t)(end - begin) / 64);
}

/* Puts `text` in place of what is between begin and end. */
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
    return builder_text_call(run, a, n, ret, methods_text_index_of);
}

static bool builder_last_index_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return builder_text_call(run, a, n, ret, methods_text_last_index_of);
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
    M1("substring", METHOD_BOTH, STRING, INT, methods_text_substring),
    M2("substring", METHOD_BOTH, STRING, INT, INT, methods_text_substring),
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

static bool joiner_length(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return joiner_to_string(run, a, n, ret) && give_int(ret, (int64_t)text_of(*ret)->length);
}

static const struct method joiner_methods[] = {
    M1("new", METHOD_BOTH | METHOD_NEW, STRING_JOINER, CHAR_SEQUENCE, joiner_new),
    M3("new", METHOD_BOTH | METHOD_NEW, STRING_JOINER, CHAR_SEQUENCE, CHAR_SEQUENCE, CHAR_SEQUENCE, joiner_new),
    M1("add", METHOD_BOTH, STRING_JOINER, CHAR_SEQUENCE, joiner_add),
    M0("toString", METHOD_BOTH, STRING, joiner_to_string),
    M0("length", METHOD_BOTH, INT, joiner_length),
};

const struct method_table methods_builder[] = {
    METHOD_TABLE(STRING_BUILDER, builder_methods),
    METHOD_TABLE(STRING_BUFFER, builder_methods),
    METHOD_TABLE(STRING_JOINER, joiner_methods),
    {0, 0, NULL},
};
