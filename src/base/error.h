/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error law.
 *
 * A function that can fail returns int. 0 is done. A positive value is an outcome documented at that
 * function; its direct caller handles it and never passes it on raw. A negative value is fatal to the
 * operation, nobody inspects it, everybody hands it up unchanged as `return tl_trace(r);`.
 *
 * What a client did wrong is described by a `struct problem`: a row of errors.def plus a reason. The row
 * gives the HTTP status and the `type` of Elasticsearch's error envelope; src/api renders it, in that one
 * place.
 */
#ifndef TL_BASE_ERROR_H
#define TL_BASE_ERROR_H

#include "base/slice.h"

struct arena;

#define TL_MUST_USE __attribute__((warn_unused_result))
#define TL_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))

/* Fatal codes. The text of each is error_text(). */
enum {
    TL_ERR_IO = -1,       /* the storage or the network failed underneath */
    TL_ERR_CORRUPT = -2,  /* stored bytes are not what was written */
    TL_ERR_NO_SPACE = -3, /* the disk is full; reads go on */
    TL_ERR_BUSY = -4,     /* a data directory in use by another process */
    TL_ERR_VERSION = -5,  /* a data directory of a newer format */
    TL_ERR_STOPPED = -6,  /* the journal is closed or closing */
};

/* Returns: a static string such as "input/output error"; "unknown error" for anything else. */
const char *error_text(int code);

/* A hook for tracing fatal errors on their way up; the identity unless TL_TRACE is defined. */
static inline int tl_trace(int code)
{
    return code;
}

/* The rows of errors.def. PROBLEM_NONE is 0. */
enum problem_type {
    PROBLEM_NONE = 0,
#define X(symbol, status, name) PROBLEM_##symbol,
#include "base/errors.def"
#undef X
    PROBLEM_COUNT
};

/*
 * What a client is told. Lives as long as the arena it was made in.
 * `details` is a JSON fragment of further members of the error object, without braces and with no
 * leading comma ("\"index\":\"fs\",\"shard\":\"0\""), or empty; `caused_by` may be NULL.
 * `status` is 0 unless it departs from the row's.
 */
struct problem {
    enum problem_type type;
    int status;
    struct slice name; /* of the error where it is not the row's, as for exceptions of scripts; else empty */
    struct slice reason;
    struct slice details;
    struct problem *caused_by;
};

/* Fills *ret_problem with a row and a formatted reason that lives in `arena`; clears the rest. */
void problem_set(struct problem *ret_problem, struct arena *arena, enum problem_type type, const char *format, ...)
    TL_PRINTF(4, 5);

/* Sets the JSON fragment `details` of a problem, formatted into `arena`. */
void problem_details(struct problem *problem, struct arena *arena, const char *format, ...) TL_PRINTF(3, 4);

/* Copies a problem, its causes and its texts into `arena`. */
void problem_copy(struct problem *ret_problem, const struct problem *problem, struct arena *arena);

/* Returns: the HTTP status of a problem, its own or its row's. */
int problem_status(const struct problem *problem);

/* Returns: the Elasticsearch name of a row, such as "version_conflict_engine_exception". */
const char *problem_name(enum problem_type type);

#endif
