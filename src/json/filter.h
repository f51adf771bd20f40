/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaving parts of JSON out: `_source` includes and excludes, and `filter_path`.
 *
 * A `_source` pattern is a dotted path in which `*` stands for any characters, dots included; it covers
 * everything below what it names. In a `filter_path`, `*` stands for one name or a part of it, `**` for any
 * number of names, and a leading `-` excludes.
 */
#ifndef TL_JSON_FILTER_H
#define TL_JSON_FILTER_H

#include "base/buf.h"
#include "json/json.h"

struct json_filter {
    const struct slice *includes; /* none: everything */
    size_t include_count;
    const struct slice *excludes;
    size_t exclude_count;
};

/* Limits of one request's patterns: names, and bytes of one. */
#define JSON_FILTER_PATTERNS_MAX 1024
#define JSON_FILTER_PATTERN_BYTES_MAX 1024

/* Writes the object `source` with only what the filter lets through. Requires: the limits hold. */
void json_filter_source(struct buf *buf, yyjson_val *source, const struct json_filter *filter, enum dialect dialect);

/* Writes any value as `filter_path=patterns` shows it; an object nothing is left of is written as {}. */
void json_filter_path(struct buf *buf, yyjson_val *value, const struct slice *patterns, size_t count,
                      enum dialect dialect);

/* Returns: whether `text` matches a pattern in which `*` stands for any characters (Elasticsearch's simple
 * match). */
bool json_wildcard(struct slice pattern, struct slice text);

#endif
