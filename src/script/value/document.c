/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to values and back; see document.h. */
#include "script/value/document.h"

#include "base/base64.h"
#include "base/dtoa.h"
#include "json/each.h"
#include "script/value/builder.h"
#include "script/value/function.h"
#include "script/value/iter.h"
#include "script/value/temporal.h"
#include "script/value/number.h"

#include <math.h>

/* Reading */

static bool read_value(struct run *run, yyjson_val *json, enum class_id map, unsigned depth, struct value *ret);

static bool read_number(struct run *run, yyjson_val *json, struct value *ret)
{
    if (yyjson_is_real(json)) {
        *ret = value_double(yyjson_get_real(json));
        return true;
    }
    if (yyjson_is_raw(json)) {
        struct slice digits = slice_make(yyjson_get_raw(json), yyjson_get_len(json));
        double d;
        *ret = value_of(big_from_digits(run, digits));
        if (ret->kind == VALUE_NULL && run->thrown == NULL && number_parse_double(digits, &d))
            *ret = value_double(d);
        return run->thrown == NULL;
    }
    if (yyjson_is_uint(json) && yyjson_get_uint(json) > INT64_MAX) {
        char digits[24];
        int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)yyjson_get_uint(json));
        *ret = value_of(big_from_digits(run, slice_make(digits, (size_t)len)));
        return run->thrown == NULL;
    }
    int64_t i = yyjson_get_sint(json);
    *ret = i >= INT32_MIN && i <= INT32_MAX ? value_int(i) : value_long(i);
    return true;
}

static bool read_array(struct run *run, yyjson_val *json, enum class_id map, unsigned depth, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_ARRAY_LIST, yyjson_arr_size(json));
    if (seq == NULL)
        return false;
    *ret = value_of(seq);
    yyjson_arr_iter iter = yyjson_arr_iter_with(json);
    for (yyjson_val *item; (item = yyjson_arr_iter_next(&iter)) != NULL;) {
        struct value value;
        if (!read_value(run, item, map, depth, &value) || !seq_add(run, seq, value))
            return false;
    }
    return true;
}

static bool read_object(struct run *run, yyjson_val *json, enum class_id map, unsigned depth, struct value *ret)
{
    struct dict *dict = dict_new(run, map);
    *ret = value_of(dict);
    yyjson_obj_iter iter = yyjson_obj_iter_with(json);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter)) != NULL;) {
        struct text *name = text_new(run, slice_make(yyjson_get_str(key), yyjson_get_len(key)));
        struct value value;
        if (name == NULL || !read_value(run, yyjson_obj_iter_get_val(key), map, depth, &value) ||
            !dict_put(run, dict, value_of(name), value, NULL))
            return false;
    }
    return true;
}

static bool read_value(struct run *run, yyjson_val *json, enum class_id map, unsigned depth, struct value *ret)
{
    struct text *text;
    if (depth > DOCUMENT_DEPTH_MAX)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "the document is nested deeper than %u",
                         DOCUMENT_DEPTH_MAX);
    switch (yyjson_get_type(json)) {
    case YYJSON_TYPE_BOOL: *ret = value_boolean(yyjson_get_bool(json)); return true;
    case YYJSON_TYPE_NUM:
    case YYJSON_TYPE_RAW: return read_number(run, json, ret);
    case YYJSON_TYPE_STR:
        text = text_new(run, slice_make(yyjson_get_str(json), yyjson_get_len(json)));
        *ret = value_of(text);
        return text != NULL;
    case YYJSON_TYPE_ARR: return read_array(run, json, map, depth + 1, ret);
    case YYJSON_TYPE_OBJ: return read_object(run, json, map, depth + 1, ret);
    default: *ret = VALUE_NONE; return true;
    }
}

static void free_doc(yyjson_doc **doc)
{
    yyjson_doc_free(*doc);
}

struct dict *document_read(struct run *run, struct slice json, enum document_order order)
{
    enum class_id map = order == DOCUMENT_HASHED ? CLASS_HASH_MAP : CLASS_LINKED_HASH_MAP;
    struct value value;
    if (json.len == 0)
        return dict_new(run, map);
    tl_cleanup(free_doc) yyjson_doc *doc =
        yyjson_read_opts((char *)(uintptr_t)json.data, json.len, YYJSON_READ_BIGNUM_AS_RAW, NULL, NULL);
    if (doc == NULL || !yyjson_is_obj(yyjson_doc_get_root(doc))) {
        run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "a document must be a JSON object");
        return NULL;
    }
    run->values_read += yyjson_doc_get_val_count(doc);
    return read_value(run, yyjson_doc_get_root(doc), map, 0, &value) ? (struct dict *)value.object : NULL;
}

/* Cycles */

struct path {
    const struct path *outer;
    const struct object *object;
};

static bool check_path(struct run *run, struct value value, const struct path *outer, unsigned depth)
{
    struct iter iter;
    bool container = value.kind == VALUE_OBJECT && (value_is_map(value) || value_instance_of(value, CLASS_ITERABLE));
    if (!container)
        return true;
    for (const struct path *path = outer; path != NULL; path = path->outer)
        if (path->object == value.object)
            return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Iterable object is self-referencing itself");
    if (depth > DOCUMENT_DEPTH_MAX)
        return run_throw_null(run, CLASS_STACK_OVERFLOW_ERROR);
    struct path here = {outer, value.object};
    struct map_view values = {.object = {.class = CLASS_VALUE_COLLECTION}, .dict = (struct dict *)value.object};
    iter_init(&iter, run, value_is_map(value) ? value_of(&values) : value);
    walk(&iter, item)
    {
        if (item.kind == VALUE_OBJECT && !check_path(run, item, &here, depth + 1))
            return false;
    }
    return run->thrown == NULL;
}

bool document_check_cycles(struct run *run, struct value value)
{
    return check_path(run, value, NULL, 0);
}

/* Writing */

static bool write_text(struct run *run, struct text *text, struct buf *out)
{
    if (text == NULL)
        return false;
    struct slice utf8 = text_slice(run->arena, text); /* uncharged, at most the size of the output, which is bounded */
    run_work(run, text->length);
    run_charge(run, utf8.len);
    buf_json_string(out, utf8);
    return true;
}

static bool write_key(struct run *run, struct value key, struct buf *out)
{
    char name[TYPE_NAME_MAX];
    if (value_is(key, CLASS_STRING))
        return write_text(run, (struct text *)key.object, out);
    if (key.kind == VALUE_NULL)
        return run_throw_npe(run, "String.length()");
    return run_throw(
        run, CLASS_CLASS_CAST_EXCEPTION,
        "class %s cannot be cast to class java.lang.String (%s and java.lang.String are in module java.base of "
        "loader 'bootstrap')",
        type_java_name(value_type(key), name), name);
}

static bool write_map(struct run *run, struct dict *dict, struct buf *out)
{
    bool first = true;
    buf_byte(out, '{');
    for (struct map_entry *entry = dict_first(dict); entry != NULL; entry = dict_next(dict, entry)) {
        if (!first)
            buf_byte(out, ',');
        first = false;
        if (!run_step(run, 1) || !write_key(run, entry->key, out))
            return false;
        buf_byte(out, ':');
        if (!document_write(run, entry->value, out))
            return false;
    }
    buf_byte(out, '}');
    return true;
}

static bool write_items(struct run *run, struct value value, struct buf *out)
{
    struct iter iter;
    bool first = true;
    iter_init(&iter, run, value);
    buf_byte(out, '[');
    walk(&iter, item)
    {
        if (!first)
            buf_byte(out, ',');
        first = false;
        if (!document_write(run, item, out))
            return false;
    }
    buf_byte(out, ']');
    return run->thrown == NULL;
}

static void write_base64(const struct array *bytes, struct buf *out)
{
    buf_byte(out, '"');
    for (size_t i = 0; i < bytes->count; i += 3) {
        size_t count = bytes->count - i < 3 ? bytes->count - i : 3;
        uint8_t group[3];
        char digits[4];
        for (size_t k = 0; k < count; k++)
            group[k] = (uint8_t)bytes->items[i + k].i;
        base64_encode(group, count, digits);
        buf_slice(out, slice_make(digits, sizeof digits));
    }
    buf_byte(out, '"');
}

static bool write_unknown(struct run *run, struct value value, struct buf *out)
{
    char name[TYPE_NAME_MAX];
    if (run->groovy)
        return write_text(run, value_to_text(run, value), out);
    type_id type = value_type(value);
    type_java_name(type, name);
    return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "cannot write xcontent for unknown value of type class %s",
                     name);
}

static bool write_temporal(struct run *run, struct value value, struct buf *out)
{
    struct text_buf text;
    text_buf_init(&text, run);
    temporal_write_json((struct temporal *)value.object, &text);
    return write_text(run, text_buf_done(&text), out);
}

static bool write_object(struct run *run, struct value value, struct buf *out)
{
    if (value_is(value, CLASS_STRING) || value_is(value, CLASS_GSTRING))
        return write_text(run, (struct text *)value_plain(value).object, out);
    if (value_is_map(value))
        return write_map(run, (struct dict *)value.object, out);
    if (value_is_array(value) && ((struct array *)value.object)->element == CLASS_BYTE) {
        write_base64((struct array *)value.object, out);
        return true;
    }
    if (value_is_array(value) || value_instance_of(value, CLASS_ITERABLE))
        return write_items(run, value, out);
    if (!run->groovy && (value_is(value, CLASS_BIG_INTEGER) || value_is(value, CLASS_BIG_DECIMAL))) {
        struct slice digits = value_is(value, CLASS_BIG_INTEGER) ? big_slice(run, (struct big *)value.object)
                                                                 : decimal_slice(run, (struct decimal *)value.object);
        buf_slice(out, digits);
        return true;
    }
    bool dated =
        value_is(value, CLASS_DATE) || value_is(value, CLASS_ZONED_DATE_TIME) || value_is(value, CLASS_DOC_DATE_TIME);
    if (dated || (!run->groovy && value_is_temporal(value) && !value_is(value, CLASS_ZONE_ID) &&
                  !value_is(value, CLASS_TIME_ZONE) && !value_is(value, CLASS_DURATION)))
        return write_temporal(run, value, out);
    if (value_is_enumerator(value))
        return write_text(run, value_to_text(run, value), out);
    return write_unknown(run, value, out);
}

bool document_write(struct run *run, struct value value, struct buf *out)
{
    char number[DTOA_TEXT_MAX];
    size_t len;
    switch (value.kind) {
    case VALUE_NULL: buf_lit(out, "null"); return true;
    case VALUE_BOOLEAN: buf_slice(out, value.i ? SLICE_LIT("true") : SLICE_LIT("false")); return true;
    case VALUE_CHAR:
        return run->groovy ? write_text(run, value_to_text(run, value), out) : write_unknown(run, value, out);
    case VALUE_FLOAT:
    case VALUE_DOUBLE:
        len = value.kind == VALUE_FLOAT ? dtoa_float((float)value.d, number) : dtoa_double(value.d, number);
        if (isfinite(value.d))
            buf_append(out, number, len);
        else
            buf_json_string(out, slice_make(number, len));
        return true;
    case VALUE_OBJECT:
        if (!run_enter(run, 3))
            return false;
        bool ok = write_object(run, value, out);
        run_leave(run, 3);
        return ok;
    default: buf_i64(out, value.i); return true;
    }
}
