/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of yyjson's types, for headers that only pass pointers to them. yyjson.h has 8,000
 * lines, most of them inline functions, which cost 50 ms in each file that includes it; a file that
 * looks into values includes json/each.h, which includes it.
 */
#ifndef TL_JSON_VALUE_H
#define TL_JSON_VALUE_H

typedef struct yyjson_doc yyjson_doc;
typedef struct yyjson_val yyjson_val;
typedef struct yyjson_mut_doc yyjson_mut_doc;
typedef struct yyjson_mut_val yyjson_mut_val;

#endif
