/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON from outside: yyjson behind limits.
 *
 * Values are yyjson's (`yyjson_val`), read with yyjson's own accessors; this layer adds what yyjson leaves
 * to its caller: a limit on depth, refusal of duplicate keys, memory from an arena, what Jackson reads and
 * yyjson does not (comments, a byte order mark, lone surrogates), and errors in Jackson's words, with line
 * and column.
 *
 * The happy path is one yyjson read. Only when that fails does the scanner (json/scan.h) walk the text again
 * to find out what Jackson would have said.
 */
#ifndef TL_JSON_JSON_H
#define TL_JSON_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/stack.h"
#include "json/dialect.h"
#include "json/each.h"

#include <yyjson.h>

/* Nesting of arrays and objects, the outermost counted as 1. */
#define JSON_DEPTH_MAX 1000
/*
 * Native stack that those take a level who walk what was parsed: filters, mappings, queries. Whoever parses sees to it that
 * there is enough of it for them, so that they need not look (base/stack.h, 3).
 */
#define JSON_LEVEL_BYTES ((size_t)1024 * STACK_FACTOR)
static inline size_t json_depth_limit(void)
{
    uintptr_t here = stack_here(), floor = stack_floor();
    size_t levels = here > floor ? (here - floor) / JSON_LEVEL_BYTES : 0;
    return levels < JSON_DEPTH_MAX ? levels : JSON_DEPTH_MAX;
}

/* Outcomes. */
enum {
    JSON_INVALID = 1, /* not JSON, too deep, or a duplicate key: the problem says which and where */
};

enum json_flags {
    JSON_DUPLICATES = 1 << 0, /* equal keys are let through; the last counts, as in 5.x (json_get) */
    JSON_DOCUMENT = 1 << 1,   /* must look like an object from its first bytes, else not_x_content_exception */
};

/* A parsed text. Lives as long as the arena it was parsed into. */
struct json_doc {
    yyjson_val *root;
    struct slice source; /* the text as handed in; the caller's bytes */
    const char *pool;    /* yyjson's copy of the text, same offsets as `source`; see json_offset() */
};

/*
 * Parses one JSON text. Numbers too wide for a long or a double stay raw text (yyjson_is_raw).
 *
 * An arena that has a guard (base/budget.h) is asked while a long text is parsed. When its account is over, or memory refused, the text is given
 * up, which is JSON_INVALID with a problem that nobody is to be told: who owns the guard says what it was. What cannot be interrupted is
 * yyjson between two growths of its tree: 2 to 3 ms for each megabyte of the text.
 *
 * Returns: 0; JSON_INVALID with *ret_problem filled: json_parse_exception, json_e_o_f_exception or
 *          not_x_content_exception in the wording of `dialect`.
 * Owns: everything lives in `arena`.
 */
int json_parse(struct arena *arena, struct slice text, enum dialect dialect, unsigned flags, struct json_doc *ret_doc,
               struct problem *ret_problem) TL_MUST_USE;

/*
 * Parses text that json_parse() has taken before, such as a stored document. Never refuses for depth or
 * duplicates.
 * Returns: 0, or TL_ERR_CORRUPT.
 */
int json_parse_stored(struct arena *arena, struct slice text, struct json_doc *ret_doc) TL_MUST_USE;

/* A string value (or a raw number) as a slice that lives with its document; absent for anything else. */
static inline struct slice json_slice(yyjson_val *value)
{
    if (!yyjson_is_str(value) && !yyjson_is_raw(value))
        return SLICE_NONE;
    return (struct slice){unsafe_yyjson_get_str(value), unsafe_yyjson_get_len(value)};
}

/* Returns: the member `key` of an object, the last one where there are several; NULL for anything else. */
yyjson_val *json_get(yyjson_val *object, struct slice key);
#define json_get_lit(object, literal) json_get((object), SLICE_LIT(literal))

/*
 * The place of a string value in the text: the offset of its first byte behind the opening quote, and the
 * length of its escaped form.
 * Requires: `value` is a string of `doc`.
 */
struct slice json_string_raw(const struct json_doc *doc, yyjson_val *value);
static inline size_t json_offset(const struct json_doc *doc, yyjson_val *value)
{
    return (size_t)(unsafe_yyjson_get_str(value) - doc->pool);
}

/*
 * Where a value begins and ends in the text, an object or array at its opening bracket. Walks the text: for
 * errors. Requires: `value` is of `doc`.
 */
void json_locate(const struct json_doc *doc, yyjson_val *value, size_t *ret_start, size_t *ret_end);

/* Line and column of an offset, both from 1. */
void json_line_column(struct slice text, size_t offset, size_t *ret_line, size_t *ret_column);

/* Equal as Java's maps and lists are: objects without order, 1 and 1.0 different, numbers by value. */
bool json_equal(yyjson_val *a, yyjson_val *b);

/* What a value is, as a bit, so that what is allowed somewhere is a sum of them. */
enum json_kind {
    JSON_TEXT = 1,
    JSON_NUMBER = 2,
    JSON_BOOLEAN = 4,
    JSON_NULL = 8,
    JSON_OBJECT = 16,
    JSON_LIST = 32,
};
enum json_kind json_kind(yyjson_val *value);
/* Returns: what Elasticsearch calls the token that a value begins with: "START_OBJECT", "VALUE_NUMBER" … */
const char *json_token(yyjson_val *value);

#endif
