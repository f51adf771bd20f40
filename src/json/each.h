/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading parsed values: yyjson's accessors, the texts of strings, and iteration over the members of
 * objects and the elements of arrays. Headers include json/value.h instead, which is short.
 *
 * yyjson's own macros for iteration do pointer arithmetic on NULL and form a pointer beyond the last
 * value, which is undefined behaviour. The macros here do neither. NULL, or a value of another kind,
 * has no members and no elements. tools/check-layers refuses yyjson's macros in this tree.
 */
#ifndef TL_JSON_EACH_H
#define TL_JSON_EACH_H

#include <stddef.h>
#include <yyjson.h>

#include "json/json.h"

/* Returns: the first key of an object or the first element of an array; NULL if `count` is 0. */
static inline yyjson_val *json_first_of(yyjson_val *container, size_t count)
{
    return count == 0 ? NULL : unsafe_yyjson_get_first(container);
}

/*
 * Returns: the value that follows `value` in its container; NULL if `left` is 0. `left` is the
 * number of values that follow.
 */
static inline yyjson_val *json_after(yyjson_val *value, size_t left)
{
    return left == 0 ? NULL : unsafe_yyjson_get_next(value);
}

/* Returns: the value of the member with this key; NULL for NULL. */
static inline yyjson_val *json_value_of(yyjson_val *key)
{
    return key == NULL ? NULL : key + 1;
}

/*
 * Iterates over the members of `object`, as yyjson_obj_foreach() does. `at` is the position of the
 * member from 0, `count` the number of members.
 */
#define json_obj_foreach(object, at, count, key, value)                                         \
    for ((at) = 0, (count) = yyjson_obj_size(object), (key) = json_first_of((object), (count)), \
        (value) = json_value_of(key);                                                           \
         (at) < (count); (at)++, (key) = json_after((value), (count) - (at)), (value) = json_value_of(key))

/* Iterates over the elements of `array`, as yyjson_arr_foreach() does. */
#define json_arr_foreach(array, at, count, value)                                                               \
    for ((at) = 0, (count) = yyjson_arr_size(array), (value) = json_first_of((array), (count)); (at) < (count); \
         (at)++, (value) = json_after((value), (count) - (at)))

/* Returns: the text of a string or a raw number, valid with its document; else SLICE_NONE. */
static inline struct slice json_slice(yyjson_val *value)
{
    if (!yyjson_is_str(value) && !yyjson_is_raw(value))
        return SLICE_NONE;
    return (struct slice){unsafe_yyjson_get_str(value), unsafe_yyjson_get_len(value)};
}

/*
 * Returns: the offset in doc->source of the byte after the opening quote.
 * Assumes: `value` is a string of `doc`.
 */
static inline size_t json_offset(const struct json_doc *doc, yyjson_val *value)
{
    return (size_t)(unsafe_yyjson_get_str(value) - doc->pool);
}

#endif
