/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error convention.
 *
 * A function that can fail returns int. 0 is success. A positive value is an outcome documented at
 * that function: its direct caller handles it and does not return it unconverted. A negative value
 * is fatal to the operation: callers do not inspect it and return it unchanged, as `return
 * tl_trace(r);`.
 *
 * An error of a request is a `struct problem`: a row of errors.def and a reason. The row gives the
 * HTTP status and the `type` in Elasticsearch's error envelope. src/api alone renders problems of
 * the handler, src/http its own refusals.
 */
#ifndef TL_BASE_ERROR_H
#define TL_BASE_ERROR_H

#include "base/slice.h"

struct arena;

#define TL_MUST_USE __attribute__((warn_unused_result))
#define TL_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))

/* Fatal codes; error_text() gives their texts. */
enum {
    TL_ERR_IO = -1,       /* storage, network or another system call failed */
    TL_ERR_CORRUPT = -2,  /* stored bytes differ from those written */
    TL_ERR_NO_SPACE = -3, /* the disk is full; reads continue */
    TL_ERR_BUSY = -4,     /* the data directory is in use by another process */
    TL_ERR_VERSION = -5,  /* the data directory has a newer format */
    TL_ERR_STOPPED = -6,  /* the journal is closed or closing */
};

/* Returns: a static string such as "input/output error"; "unknown error" for anything else. */
const char *error_text(int code);

/*
 * Marks the return of a fatal error to the caller; a place for a breakpoint or a trace.
 * Returns: `code`.
 */
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
 * An error reported to a client. Its texts and causes live in the arena they were made in.
 * `details` is a JSON fragment with further members of the error object, without braces and without
 * leading comma ("\"index\":\"fs\",\"shard\":\"0\"").
 */
struct problem {
    enum problem_type type;
    int status;        /* overrides the row's; 0: the row's */
    struct slice name; /* overrides the row's, as for exceptions of scripts; empty: the row's */
    struct slice reason;
    struct slice details;      /* empty: none */
    struct problem *caused_by; /* NULL: none */
};

/* Sets type and reason, formatted into `arena`, and clears all other fields. */
void problem_set(struct problem *ret_problem, struct arena *arena, enum problem_type type, const char *format, ...)
    TL_PRINTF(4, 5);

/* Sets the details, formatted into `arena`. */
void problem_details(struct problem *problem, struct arena *arena, const char *format, ...) TL_PRINTF(3, 4);

/* Copies a problem, its causes and its texts into `arena`. *ret_problem itself is the caller's. */
void problem_copy(struct problem *ret_problem, const struct problem *problem, struct arena *arena);

/* Returns: the HTTP status of a problem. */
int problem_status(const struct problem *problem);

/* Returns: the Elasticsearch name of a row, such as "version_conflict_engine_exception". */
const char *problem_name(enum problem_type type);

#endif
