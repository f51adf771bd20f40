/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second reading of a text that yyjson refused, as Jackson reads it.
 *
 * Jackson is a streaming parser that names what it stumbled over and where; clients see those texts, so
 * they are derived here by walking the text with Jackson's states. It also forgives more than yyjson; what it
 * forgives is replaced by something yyjson takes, of the same length, so that offsets keep their meaning.
 */
#ifndef TL_JSON_SCAN_H
#define TL_JSON_SCAN_H

#include "base/account.h"
#include "json/json.h"

/* Where and why. Line and column count from 1, columns in bytes. */
struct json_error {
    bool end_of_input;    /* json_e_o_f_exception */
    struct slice message; /* without the position */
    size_t line;
    size_t column;
};

/*
 * Walks `text`, which is writable. Bytes are steps of `account`, which may be NULL; once it is over the result means nothing.
 *
 * Returns: 0 when Jackson would take it: `text` is then repaired for yyjson, lengths unchanged;
 *          JSON_INVALID with *ret_error.
 */
int json_scan(struct arena *arena, char *text, size_t len, enum dialect dialect, unsigned flags,
              struct account *account, struct json_error *ret_error) TL_MUST_USE;

/* Appends " at [Source: …; line: L, column: C]" and makes a problem of an error. */
void json_error_problem(struct arena *arena, struct slice text, enum dialect dialect, const struct json_error *error,
                        struct problem *ret_problem);

/* "\n at [Source: …; line: L, column: C]" as the end of a Jackson message about a place in `text`. */
struct slice json_source_location(struct arena *arena, struct slice text, enum dialect dialect, size_t line, size_t column);

#endif
