/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of untrusted JSON: yyjson with limits.
 *
 * Values are yyjson's (`yyjson_val`) and are read with yyjson's own accessors. This layer adds
 *
 *  - a limit on depth, the refusal of duplicate names, and memory from an arena;
 *  - the extensions that Jackson accepts and yyjson refuses: comments, a byte order mark, lone
 *    surrogates;
 *  - errors in Jackson's wording, with line and column.
 *
 * The fast path is one read by yyjson. Only if that fails does the scanner (json/scan.h) walk the
 * text again to determine Jackson's verdict.
 */
#ifndef TL_JSON_JSON_H
#define TL_JSON_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/stack.h"
#include "json/dialect.h"
#include "json/value.h"

/* Maximum nesting of arrays and objects; the outermost counts as 1. */
#define JSON_DEPTH_MAX 1000
/*
 * Native stack, in bytes, that one level of nesting may cost a recursive walk over a parsed tree:
 * filters, mappings, queries. Parsing refuses deeper texts, so the walks need no check of their own
 * (base/stack.h, 3).
 */
#define JSON_LEVEL_BYTES ((size_t)1024 * STACK_FACTOR)
/* Returns: JSON_DEPTH_MAX, or less if the calling thread has a small stack. */
static inline size_t json_depth_limit(void)
{
    uintptr_t here = stack_here(), floor = stack_floor();
    size_t levels = here > floor ? (here - floor) / JSON_LEVEL_BYTES : 0;
    return levels < JSON_DEPTH_MAX ? levels : JSON_DEPTH_MAX;
}

/* Outcomes. */
enum {
    JSON_INVALID = 1, /* not JSON, too deep, or a duplicate name; the problem has the position */
};

enum json_flags {
    JSON_DUPLICATES = 1 << 0, /* accept duplicate names; the last one counts (json_get), as in 5.x */
    JSON_DOCUMENT = 1 << 1,   /* refuse with not_x_content_exception unless it looks like an object */
};

/* A parsed text. Valid as long as the arena it was parsed into. */
struct json_doc {
    yyjson_val *root;
    struct slice source; /* the text as passed in; owned by the caller */
    const char *pool;    /* yyjson's copy of the text, with the offsets of `source` (json_offset) */
};

/*
 * Parses one JSON text. Numbers too wide for a long or a double stay raw text (yyjson_is_raw).
 *
 * If the arena has a guard (base/budget.h), parsing stops early once the guard's account has ended
 * or the guard has refused memory. The result is then JSON_INVALID with a placeholder problem,
 * which must not be reported: the owner of the guard reports the actual reason. yyjson itself
 * cannot be interrupted between two growths of its tree, which takes 2 to 3 ms for each megabyte
 * of text.
 *
 * Returns: 0; JSON_INVALID with *ret_problem set: json_parse_exception, json_e_o_f_exception or
 *          not_x_content_exception in the wording of `dialect`.
 * Owns: everything is allocated in `arena`.
 */
int json_parse(struct arena *arena, struct slice text, enum dialect dialect, unsigned flags, struct json_doc *ret_doc,
               struct problem *ret_problem) TL_MUST_USE;

/*
 * Parses a text that json_parse() accepted earlier, such as a stored document. Neither depth nor
 * duplicate names are a reason to refuse it.
 * Returns: 0; TL_ERR_CORRUPT: the text is not JSON.
 */
int json_parse_stored(struct arena *arena, struct slice text, struct json_doc *ret_doc) TL_MUST_USE;

/*
 * Returns: the number of values of a parsed text, names of members included. It follows from the text alone.
 */
size_t json_value_count(const struct json_doc *doc);

/*
 * Returns: the value of the member `key`, the last one if the name repeats; NULL if it is
 *          missing, or `object` is NULL or not an object. Linear in the number of members.
 */
yyjson_val *json_get(yyjson_val *object, struct slice key);
#define json_get_lit(object, literal) json_get((object), SLICE_LIT(literal))

/*
 * Returns: the bytes of a string value in doc->source: between its quotes, with escapes as written.
 * Requires: `value` is a string of `doc`.
 */
struct slice json_string_raw(const struct json_doc *doc, yyjson_val *value);

/*
 * Finds the offsets in doc->source at which a value begins and ends; an object or array is located
 * by its opening bracket. Scans the text from its start, so it is meant for errors only.
 * Assumes: `value` is a value of `doc`.
 */
void json_locate(const struct json_doc *doc, yyjson_val *value, size_t *ret_start, size_t *ret_end);

/* Converts an offset to line and column, both from 1; columns are in bytes. */
void json_line_column(struct slice text, size_t offset, size_t *ret_line, size_t *ret_column);

/*
 * Returns: whether two values are equal as Java's maps and lists are: the order of members does not
 * matter, numbers compare by value, and an integer never equals a floating-point number (1, 1.0).
 */
bool json_equal(yyjson_val *a, yyjson_val *b);

/* The kind of a value, one bit each, so that a set of accepted kinds is a bit mask. */
enum json_kind {
    JSON_TEXT = 1,
    JSON_NUMBER = 2,
    JSON_BOOLEAN = 4,
    JSON_NULL = 8,
    JSON_OBJECT = 16,
    JSON_LIST = 32,
};
enum json_kind json_kind(yyjson_val *value);
/* Returns: the name in Elasticsearch's errors of the token that begins a value: "START_OBJECT" … */
const char *json_token(yyjson_val *value);

#endif
