/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters that leave out parts of JSON: `_source` includes and excludes, and `filter_path`.
 *
 * A `_source` pattern is a dotted path in which `*` matches any characters, dots included. It
 * covers the values it names and everything below them. In a `filter_path`, `*` matches one name
 * or a part of one, `**` matches any number of names, and a leading `-` makes the pattern an
 * exclude.
 */
#ifndef TL_JSON_FILTER_H
#define TL_JSON_FILTER_H

#include "base/buf.h"
#include "json/json.h"

struct json_filter {
    const struct slice *includes; /* include_count 0: everything is included */
    size_t include_count;
    const struct slice *excludes;
    size_t exclude_count;
    /*
     * An included array without any item left is dropped. False: it is written, as by 7.10. True for the
     * filters of mappings, since updates store their results, which a replay must repeat.
     */
    bool drops_empty_arrays;
};

/* Limits on the patterns of one request: their number, and the bytes of each. */
#define JSON_FILTER_PATTERNS_MAX 1024
#define JSON_FILTER_PATTERN_BYTES_MAX 1024

/*
 * Writes the object `source`, without the members that the filter leaves out.
 * Requires: the patterns are within the limits above.
 */
void json_filter_source(struct buf *buf, yyjson_val *source, const struct json_filter *filter, enum dialect dialect);

/*
 * Returns: what json_filter_source() compares at most: for each name and pattern, the bytes of the path of the name and
 *          JSON_FILTER_NAME_BYTES. More than `most` is not counted to its end.
 */
uint64_t json_filter_work(yyjson_val *source, const struct json_filter *filter, uint64_t most);
#define JSON_FILTER_NAME_BYTES 16

/*
 * Writes `value` filtered by the `filter_path` patterns. Scalars are written unfiltered; if nothing
 * is left, {} is written.
 */
void json_filter_path(struct buf *buf, yyjson_val *value, const struct slice *patterns, size_t count,
                      enum dialect dialect);

/*
 * Returns: whether `text` matches `pattern`, in which `*` matches any characters ("simple match"). Each
 *          pattern of names matches by this function. Only the wildcards of a query have `?` and `\`:
 *          term_pattern_wildcard() (query/bound_query.h), which calls it for all others.
 */
bool json_wildcard(struct slice pattern, struct slice text);
/*
 * Returns: the bytes that json_wildcard() looks at, at most, with a text of `text_len` bytes, and some for the call: a
 * measure of its time.
 */
size_t json_wildcard_bytes(struct slice pattern, size_t text_len);

#endif
