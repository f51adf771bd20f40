/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of entries that together name every document with given values of a field.
 *
 * Most fields have one range in their own entries. A path-hierarchy field (README.md, invariant 8)
 * has no entries; its ranges are in the entries of its full-path field: a document in directory D
 * has the path D, or a path that begins with D and the delimiter. Ranges may name a document
 * twice, or documents without the value, but never miss one.
 *
 * Returned ranges are allocated in `arena` and refer to the values passed in.
 */
#ifndef TL_MAPPING_ENTRY_RANGE_H
#define TL_MAPPING_ENTRY_RANGE_H

#include "mapping/entry.h"

/*
 * Finds the ranges of documents with one value of a field.
 * Requires: field_is_covered(field).
 * Returns: the number of ranges, at most 2.
 */
size_t entry_ranges_of_value(uint32_t index, const struct mapping_field *field, const struct field_value *value,
                             struct arena *arena, struct entry_range **ret_ranges);

/*
 * Returns: the range of documents with a value that begins with the bytes `prefix`; NULL: with any
 *          value.
 * Requires: field_is_covered(field).
 */
struct entry_range entry_range_of_prefix(uint32_t index, const struct mapping_field *field,
                                         const struct field_value *prefix);

/*
 * Finds the ranges of documents with a value between the bounds of `bounds`, whose index, bounds
 * and exclusiveness are used. Bounds of bytes are always inclusive, because a truncated value
 * equals the truncated bound although the value itself may be inside.
 * Requires: field_is_covered(field).
 * Returns: the number of ranges.
 */
size_t entry_ranges_between(const struct entry_range *bounds, const struct mapping_field *field, struct arena *arena,
                            struct entry_range **ret_ranges);

#endif
