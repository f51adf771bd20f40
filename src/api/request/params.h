/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a query string.
 *
 * A name given twice counts with its last value. A name without '=' has an empty value, which for
 * booleans means true. The accessors below read one parameter each, in Elasticsearch's notation,
 * and describe what cannot be read in its words.
 */
#ifndef TL_API_PARAMS_H
#define TL_API_PARAMS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/types.h"
#include "json/dialect.h"

#define PARAMS_MAX 64

enum {
    PARAMS_REFUSED = 1, /* *ret_problem says why */
};

struct param {
    struct slice name;
    struct slice value; /* data never NULL */
};

struct params {
    struct param *items;
    size_t count;
    size_t capacity;
};

/*
 * Splits and decodes a query string (data NULL: none).
 * Returns: 0, PARAMS_REFUSED. Owns: names and values live in `arena` or in `query`.
 */
int params_parse(struct arena *arena, struct slice query, struct params *ret_params,
                 struct problem *ret_problem) TL_MUST_USE;

/* Returns: the value, data NULL when it is absent. */
struct slice params_get(const struct params *params, const char *name);

/*
 * Typed reading of a value (data NULL: absent, *ret_value stays as it is).
 * Returns: 0, PARAMS_REFUSED.
 */
int params_bool(const struct params *params, const char *name, enum dialect dialect, struct arena *arena,
                bool *ret_value, struct problem *ret_problem) TL_MUST_USE;
int params_int(const struct params *params, const char *name, struct arena *arena, int32_t *ret_value,
               struct problem *ret_problem) TL_MUST_USE;
int params_long(const struct params *params, const char *name, struct arena *arena, int64_t *ret_value,
                struct problem *ret_problem) TL_MUST_USE;
/*
 * A duration in microseconds, as time_value_parse() has it (json/time_value.h).
 */
int params_time(const struct params *params, const char *name, enum dialect dialect, struct arena *arena,
                int64_t *ret_value, struct problem *ret_problem) TL_MUST_USE;

/* Returns: whether a list of accepted names has this one. */
bool params_listed(const char *accepted, const char *name);

/* Returns: whether a list bars a name that every other call takes. */
bool params_barred(const char *accepted, const char *name);

/*
 * Returns: whether `accepted` lists all that are given, or every call takes them: then
 * params_check() has nothing to say.
 */
bool params_known(const struct params *params, const char *accepted);

/*
 * Refuses parameters that `accepted` does not list (names separated by spaces).
 *
 * A name with a leading '~' is accepted but never proposed: Elasticsearch reads some parameters
 * only when others are present, and proposes only those that it has read. One with a '+' is our
 * own, proposed for a near miss only. Names of the path's parts are proposed, too.
 *
 * Returns: 0, PARAMS_REFUSED: "request [/x] contains unrecognized parameter: [foo] -> did you mean [bar]?".
 */
int params_check(const struct params *params, const char *accepted, struct slice path, struct arena *arena,
                 struct problem *ret_problem) TL_MUST_USE;

#endif
