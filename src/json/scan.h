/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scanner with Jackson's grammar, for texts that yyjson refused.
 *
 * Clients see Jackson's error messages, which name the offending token and its position. The
 * scanner follows the states of Jackson's streaming parser to produce the same messages. Jackson
 * also accepts texts that yyjson refuses; the scanner replaces such parts in place by equivalents
 * of the same length that yyjson accepts, so offsets stay valid.
 */
#ifndef TL_JSON_SCAN_H
#define TL_JSON_SCAN_H

#include "base/account.h"
#include "json/json.h"

/* A syntax error. Line and column count from 1; columns are in bytes. */
struct json_error {
    bool end_of_input;    /* its type is json_e_o_f_exception */
    struct slice message; /* without the position */
    size_t line;
    size_t column;
};

/*
 * Scans `text` and repairs it in place. Each byte is charged to `account` (NULL: not counted); once
 * the account has ended, the result is meaningless.
 *
 * Returns: 0: Jackson accepts the text, which is now readable by yyjson, at the same length;
 *          JSON_INVALID with *ret_error.
 */
int json_scan(struct arena *arena, char *text, size_t len, enum dialect dialect, unsigned flags,
              struct account *account, struct json_error *ret_error) TL_MUST_USE;

/* Converts an error to a problem, with the position appended to its message. */
void json_error_problem(struct arena *arena, struct slice text, enum dialect dialect, const struct json_error *error,
                        struct problem *ret_problem);

/* Returns: "\n at [Source: …; line: L, column: C]", the end of Jackson's messages; in `arena`. */
struct slice json_source_location(struct arena *arena, struct slice text, enum dialect dialect, size_t line,
                                  size_t column);

#endif
