/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of entries for values; see entry_range.h. */
#include "mapping/entry_range.h"

#include "base/check.h"
#include "mapping/analysis.h"

/* Returns: the range of all entries that cover a field. */
static struct entry_range whole_field(uint32_t index, const struct mapping_field *field)
{
    return (struct entry_range){.index = index, .field = field_covering(field)->number};
}

/* Returns: the range of paths below the directory `text`: they begin with it and the delimiter. */
static struct entry_range range_below(struct entry_range range, const struct mapping_field *field, struct slice text,
                                      struct arena *arena)
{
    char delimiter;
    bool is_path = analyzer_is_path(field->analyzer, &delimiter);
    INSIST(is_path);
    struct field_value *prefix = arena_zalloc(arena, sizeof *prefix);
    char *bytes = arena_alloc(arena, text.len + 1);
    memcpy(bytes, text.data, text.len);
    bytes[text.len] = delimiter;
    *prefix = (struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = {bytes, text.len + 1}};
    range.low = prefix;
    range.high = NULL;
    range.prefix = true;
    return range;
}

size_t entry_ranges_of_value(uint32_t index, const struct mapping_field *field, const struct field_value *value,
                             struct arena *arena, struct entry_range **ret_ranges)
{
    REQUIRE(field_is_covered(field));
    struct entry_range *ranges = arena_alloc(arena, 2 * sizeof *ranges);
    ranges[0] = whole_field(index, field);
    ranges[0].low = ranges[0].high = value;
    *ret_ranges = ranges;
    if (field->full_path_field == NULL)
        return 1;
    if (value->bytes.len == 0)
        return 0; /* no token of a path is empty */
    ranges[1] = range_below(whole_field(index, field), field, value->bytes, arena);
    return 2;
}

struct entry_range entry_range_of_prefix(uint32_t index, const struct mapping_field *field,
                                         const struct field_value *prefix)
{
    REQUIRE(field_is_covered(field));
    /* A path has a token with this prefix exactly if the path itself has the prefix. */
    struct entry_range range = whole_field(index, field);
    range.low = prefix;
    range.prefix = prefix != NULL;
    return range;
}

/*
 * Appends the ranges of paths above `high` that have a token inside the bounds. Such a token is a
 * prefix of `high`. In the path a delimiter follows it, which must not sort below the byte that
 * follows the token in `high`.
 * Returns: the number of ranges.
 */
static size_t above_bound(const struct entry_range *bounds, struct entry_range field_range,
                          const struct mapping_field *field, struct arena *arena, struct entry_range *ranges)
{
    struct slice high = bounds->high->bytes;
    size_t count = 0;
    char delimiter = '/';
    (void)analyzer_is_path(field->analyzer, &delimiter);
    for (size_t end = 1; end <= high.len; end++) {
        struct slice directory = slice_make(high.data, end);
        bool too_low = bounds->low != NULL && slice_compare(directory, bounds->low->bytes) < 0;
        if (too_low || (end < high.len && (unsigned char)delimiter < (unsigned char)high.data[end]))
            continue;
        ranges[count++] = range_below(field_range, field, directory, arena);
    }
    return count;
}

size_t entry_ranges_between(const struct entry_range *bounds, const struct mapping_field *field, struct arena *arena,
                            struct entry_range **ret_ranges)
{
    REQUIRE(field_is_covered(field));
    bool bytes = field_value_kind(field) == FIELD_VALUE_BYTES;
    struct entry_range range = whole_field(bounds->index, field);
    size_t most = 1 + (field->full_path_field != NULL && bounds->high != NULL ? bounds->high->bytes.len : 0);
    *ret_ranges = arena_alloc(arena, most * sizeof range);
    (*ret_ranges)[0] = range;
    (*ret_ranges)[0].low = bounds->low;
    (*ret_ranges)[0].high = bounds->high;
    (*ret_ranges)[0].low_exclusive = bounds->low_exclusive && !bytes;
    (*ret_ranges)[0].high_exclusive = bounds->high_exclusive && !bytes;
    return most == 1 ? 1 : 1 + above_bound(bounds, range, field, arena, *ret_ranges + 1);
}
