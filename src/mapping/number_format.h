/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in the notation of java.text.DecimalFormat, which is what `format` of a numeric field means to Elasticsearch: "0.00",
 * "#,##0.#", "0.##E0", "0%", "0;(0)". The symbols are those of no country: a point, a comma for groups, a hyphen.
 *
 *  1. What is shown is rounded half to even, by the number itself and not by its shortest digits; digits beyond the shortest are zeros.
 *  2. A pattern without any place for a digit shows the whole part: "yyyy" of 5 is "yyyy5".
 */
#ifndef TL_MAPPING_NUMBER_FORMAT_H
#define TL_MAPPING_NUMBER_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define NUMBER_FORMAT_BYTES_MAX 256

enum { NUMBER_FORMAT_MALFORMED = 1 };

struct number_format;

/* Returns: 0; NUMBER_FORMAT_MALFORMED with what is wrong with the pattern. Both live in `arena`. */
int number_format_parse(struct arena *arena, struct slice pattern, const struct number_format **ret_format,
                        struct slice *ret_why) TL_MUST_USE;

void number_print_double(struct buf *buf, const struct number_format *format, double number);
void number_print_i64(struct buf *buf, const struct number_format *format, int64_t number);

#endif
