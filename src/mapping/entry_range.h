/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranges of entries name the documents that may have certain values of a field.
 *
 * For most fields that is plain. The documents of a field of directories (README.md, invariant 8) are found by whole paths,
 * in the entries of another field: what lies in the directory D has the path D, or one that begins with D and the
 * delimiter. Such ranges may name a document more than once, and some that do not have the value; never too few.
 *
 * What is returned lives in `arena` and refers to the values handed in.
 */
#ifndef TL_MAPPING_ENTRY_RANGE_H
#define TL_MAPPING_ENTRY_RANGE_H

#include "mapping/entry.h"

/*
 * The documents with one value.
 * Requires: field_is_covered(field).
 * Returns: how many ranges there are.
 */
size_t entry_ranges_of_value(uint32_t index, const struct mapping_field *field, const struct field_value *value,
                             struct arena *arena, struct entry_range **ret_ranges);

/* Those with a value that begins with the bytes `prefix`; NULL: with any value. Requires: as above. */
struct entry_range entry_range_of_prefix(uint32_t index, const struct mapping_field *field, const struct field_value *prefix);

/*
 * Those with a value between the low and the high of `bounds`, of which nothing else but the index is looked at. Bytes are
 * taken as inclusive: long ones are cut, so a bound may hide longer values.
 * Requires: as above.
 * Returns: how many ranges there are.
 */
size_t entry_ranges_between(const struct entry_range *bounds, const struct mapping_field *field, struct arena *arena,
                            struct entry_range **ret_ranges);

#endif
