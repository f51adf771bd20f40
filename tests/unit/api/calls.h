/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the api with bodies of any size: the route table, and of each handler the cases of
 * complexity_cases.def, asked of a server that holds a little of everything. What tests of all calls share.
 */
#ifndef TL_TESTS_UNIT_API_CALLS_H
#define TL_TESTS_UNIT_API_CALLS_H

#include "../../lib/api_fixture.h"

struct call_row {
    const char *methods, *pattern, *handler, *params;
};

extern const struct call_row call_rows[];
extern const size_t call_row_count;

struct call_names;

size_t calls_part_count(const struct call_row *row);
/*
 * Returns: the row's path with part number `filled` filled; all of them plain for SIZE_MAX. Owns: the caller; mem_free.
 */
char *calls_path(const struct call_row *row, size_t filled, const char *filling, const struct call_names *names);
/* The first method that the row has. */
void calls_method(const struct call_row *row, char *ret_method, size_t room);

enum { CALL_STEPS_MAX = 8 };

struct call_case {
    const char *handler;
    const char *steps[CALL_STEPS_MAX]; /* the last is the call; the others prepare it. None: it reads no body */
    size_t size;                       /* the largest n; 0: any */
    enum { ANSWERED, REFUSED, MULTIPLIES } kind;
    const char *why;
};

extern const struct call_case call_cases[];
extern const size_t call_case_count;

/*
 * In a text, '@…@' is repeated n times with commas between, '^…^' without, and '~…~' n/8 times with commas; '$' is the
 * number of the repetition, n outside of one. A capital between backticks is what an earlier answer named: S a session,
 * T a transaction, C a scroll, P a point in time.
 */
struct call_names {
    char *of[26];
};

void call_names_deinit(struct call_names *names);

/* Appends a text up to the character `until`, within repetition `i` of n. Returns: its position. */
const char *calls_grow_into(struct buf *out, const char *text, char until, size_t n, size_t i,
                            const struct call_names *names);
/* Returns: the text for n. Owns: the caller; mem_free. */
char *calls_grow(const char *text, size_t n, const struct call_names *names);

/* A server with an index of each dialect, documents, a template, a script, a transaction, a session and a lock. */
void calls_open(struct api_fixture *fixture, struct call_names *names);

struct call_header {
    const char *name, *value; /* NULL: none */
};

/*
 * Asks, and notes the names that the answer has. `traced` prints the answer, as does an unexpected status of 500.
 * Streams are broken as soon as they are open. Returns: the status; 0: it was still waiting, and the client left.
 */
int calls_ask(struct api_fixture *fixture, const char *method, const char *target, const char *body,
              struct call_header header, struct call_names *names, bool traced);
/* Sends "METHOD target", with a body if one follows the line's end. */
int calls_ask_text(struct api_fixture *fixture, const char *text, size_t n, struct call_names *names, bool traced);

#endif
