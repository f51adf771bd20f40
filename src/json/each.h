/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking members and elements.
 *
 * yyjson's own macros count on from the value that they are given, also where that is NULL, and point one behind the last; these look
 * at nothing that is not there. NULL, or a value of another kind, has no members and no elements. tools/check-layers sees to it that nothing else is used.
 */
#ifndef TL_JSON_EACH_H
#define TL_JSON_EACH_H

#include <stddef.h>
#include <yyjson.h>

/* Returns: the first key of an object, or the first element of an array; NULL where `count` says that there is none. */
static inline yyjson_val *json_first_of(yyjson_val *container, size_t count)
{
    return count == 0 ? NULL : unsafe_yyjson_get_first(container);
}

/* Returns: what comes behind a value; NULL behind the last one, of which `left` are to come. */
static inline yyjson_val *json_after(yyjson_val *value, size_t left)
{
    return left == 0 ? NULL : unsafe_yyjson_get_next(value);
}

static inline yyjson_val *json_value_of(yyjson_val *key)
{
    return key == NULL ? NULL : key + 1;
}

/* As yyjson_obj_foreach(): `at` is the number of the member, `count` how many there are. */
#define json_obj_foreach(object, at, count, key, value)                                         \
    for ((at) = 0, (count) = yyjson_obj_size(object), (key) = json_first_of((object), (count)), \
        (value) = json_value_of(key);                                                           \
         (at) < (count); (at)++, (key) = json_after((value), (count) - (at)), (value) = json_value_of(key))

/* As yyjson_arr_foreach(). */
#define json_arr_foreach(array, at, count, value)                                                               \
    for ((at) = 0, (count) = yyjson_arr_size(array), (value) = json_first_of((array), (count)); (at) < (count); \
         (at)++, (value) = json_after((value), (count) - (at)))

#endif
