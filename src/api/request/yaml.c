/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values as YAML.
 */
#include "api/request/yaml.h"

#include "base/account.h"
#include "base/budget.h"
#include "json/each.h"
#include "json/write.h"

/* Keys that need no quotes: letters, digits and a few signs. */
static bool plain_key(struct slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.data[i];
        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && strchr("_-./", c) == NULL)
            return false;
    }
    return key.len > 0 && key.data[0] != '-';
}

static void yaml_indent(struct buf *buf, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        buf_lit(buf, "  ");
}

/* As of what json_write() writes. */
static bool is_wanted(const struct buf *buf, unsigned depth)
{
    return !buf->overflow && account_take(budget_account(buf->guard), 8 + (uint64_t)depth);
}

static void yaml_value(struct buf *buf, yyjson_val *value, unsigned depth, bool after_dash, enum dialect dialect);

static void yaml_object(struct buf *buf, yyjson_val *object, unsigned depth, bool after_dash, enum dialect dialect)
{
    size_t i, count;
    yyjson_val *key, *member;
    json_obj_foreach (object, i, count, key, member) {
        if (!is_wanted(buf, depth))
            return;
        if (i > 0 || !after_dash)
            yaml_indent(buf, depth);
        struct slice name = json_slice(key);
        if (plain_key(name))
            buf_slice(buf, name);
        else
            buf_json_string(buf, name);
        buf_byte(buf, ':');
        bool nested = (yyjson_is_obj(member) && yyjson_obj_size(member) > 0);
        bool list = yyjson_is_arr(member) && yyjson_arr_size(member) > 0;
        buf_byte(buf, nested || list ? '\n' : ' ');
        yaml_value(buf, member, nested ? depth + 1 : depth, false, dialect);
    }
}

static void yaml_list(struct buf *buf, yyjson_val *list, unsigned depth, bool after_dash, enum dialect dialect)
{
    size_t i, count;
    yyjson_val *item;
    json_arr_foreach (list, i, count, item) {
        if (!is_wanted(buf, depth))
            return;
        if (i > 0 || !after_dash)
            yaml_indent(buf, depth);
        buf_lit(buf, "- ");
        yaml_value(buf, item, depth + 1, true, dialect);
    }
}

static void yaml_value(struct buf *buf, yyjson_val *value, unsigned depth, bool after_dash, enum dialect dialect)
{
    if (yyjson_is_obj(value) && yyjson_obj_size(value) > 0) {
        yaml_object(buf, value, depth, after_dash, dialect);
    } else if (yyjson_is_arr(value) && yyjson_arr_size(value) > 0) {
        yaml_list(buf, value, depth, after_dash, dialect);
    } else {
        json_write(buf, value, dialect);
        buf_byte(buf, '\n');
    }
}

void yaml_write(struct buf *buf, yyjson_val *value, enum dialect dialect)
{
    buf_lit(buf, "---");
    bool nested =
        (yyjson_is_obj(value) && yyjson_obj_size(value) > 0) || (yyjson_is_arr(value) && yyjson_arr_size(value) > 0);
    buf_byte(buf, nested ? '\n' : ' ');
    yaml_value(buf, value, 0, false, dialect);
}
