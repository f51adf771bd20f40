/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of scripts and their results. */
#ifndef TL_TESTS_SCRIPT_EVALUATE_H
#define TL_TESTS_SCRIPT_EVALUATE_H

#include "../../lib/unit.h"

#include "script/script.h"

#include <stdlib.h>

struct evaluated {
    const char *source;
    const char *expected; /* the value as JSON, or "error_name: reason" of the cause */
};

/* Runs a script. Returns: its result in the form of struct evaluated, in the arena. */
static inline struct slice evaluate_in(enum script_lang lang, const char *params, const char *source,
                                       struct arena *arena)
{
    struct script *script = NULL;
    struct problem problem = {0};
    struct script_eval value = {.params = slice_from(params)};
    int r = script_compile(lang, SCRIPT_FOR_TEST, slice_from(source), SLICE_NONE, &script, arena, &problem);
    if (r == 0)
        r = script_run_value(script, &SCRIPT_LIMITS_DEFAULT, arena, &value, &problem);
    script_unref(script);
    if (r == 0)
        return value.json;
    const struct problem *cause = problem.caused_by == NULL ? &problem : problem.caused_by;
    struct slice reason = cause->reason.data == NULL ? SLICE_LIT("null") : cause->reason;
    /* Which methods may have been meant is a guess: groovy_library_test.c has a test of its own. */
    const char *guess = memmem(reason.data, reason.len, "\nPossible solutions", 19);
    if (guess != NULL)
        reason.len = (size_t)(guess - reason.data);
    return arena_printf(arena, "%.*s: %.*s", SLICE_ARG(cause->name), SLICE_ARG(reason));
}

#define EVALUATE_PARAMS "{\"one\":1,\"word\":\"w\",\"list\":[1,2,3],\"map\":{\"k\":\"v\"}}"

/* A Painless script. */
static inline struct slice evaluate(const char *source, struct arena *arena)
{
    return evaluate_in(SCRIPT_PAINLESS, EVALUATE_PARAMS, source, arena);
}

static inline void check_in(enum script_lang lang, const char *params, const struct evaluated *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = ARENA_INIT;
        struct slice have = evaluate_in(lang, params, table[i].source, &arena);
        if (!slice_equal(have, slice_from(table[i].expected)))
            fail_msg("%s\n  gives    %.*s\n  expected %s", table[i].source, SLICE_ARG(have), table[i].expected);
        arena_deinit(&arena);
    }
}

static inline void check_evaluated(const struct evaluated *table, size_t count)
{
    check_in(SCRIPT_PAINLESS, EVALUATE_PARAMS, table, count);
}

/*
 * The document of the recorded scripts, as CS. Here it is a parameter, so its maps are HashMaps: the
 * order of their keys, and the name of their class, are those of parameters.
 */
static inline void check_groovy(const struct evaluated *table, size_t count)
{
    check_in(SCRIPT_GROOVY,
             "{\"CS\":{\"i\":7,\"n\":-3,\"big\":9223372036854775807,\"d\":2.5,\"s\":\"hello\",\"e\":\"\",\"t\":true,"
             "\"f\":false,\"nul\":null,\"l\":[1,2,3],\"ls\":[\"a\",\"b\",\"c\"],\"m\":{\"x\":1,\"y\":{\"z\":\"deep\"}},"
             "\"lm\":[{\"k\":\"a\",\"v\":1},{\"k\":\"b\",\"v\":2}],\"tags\":[\"red\",\"blue\"],\"el\":[],\"em\":{}}}",
             table, count);
}

#endif
