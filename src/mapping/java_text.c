/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values in the form in which Java prints maps and lists, which many error texts contain. */
#include "base/buf.h"
#include "json/each.h"
#include "mapping/mapping_internal.h"
#include "json/write.h"

static void object_text(struct buf *buf, yyjson_val *object)
{
    size_t i, max;
    yyjson_val *key, *value;
    buf_byte(buf, '{');
    json_obj_foreach (object, i, max, key, value) {
        if (i > 0)
            buf_lit(buf, ", ");
        buf_slice(buf, json_slice(key));
        buf_byte(buf, '=');
        java_text(buf, value);
    }
    buf_byte(buf, '}');
}

static void array_text(struct buf *buf, yyjson_val *array)
{
    size_t i, max;
    yyjson_val *item;
    buf_byte(buf, '[');
    json_arr_foreach (array, i, max, item) {
        if (i > 0)
            buf_lit(buf, ", ");
        java_text(buf, item);
    }
    buf_byte(buf, ']');
}

void java_text(struct buf *buf, yyjson_val *value)
{
    if (yyjson_is_obj(value)) {
        object_text(buf, value);
    } else if (yyjson_is_arr(value)) {
        array_text(buf, value);
    } else if (yyjson_is_str(value)) {
        buf_slice(buf, json_slice(value));
    } else {
        size_t start = buf->len;
        json_write(buf, value, DIALECT_7);
        /* json_write() quotes Infinity and NaN, Java does not. */
        struct slice text = buf_from(buf, start);
        if (text.len >= 2 && text.data[0] == '"') {
            buf_chop(buf, 1);
            buf_remove(buf, start, 1);
        }
    }
}
