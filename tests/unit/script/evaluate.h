/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of scripts and what they come to. */
#ifndef TL_TESTS_SCRIPT_EVALUATE_H
#define TL_TESTS_SCRIPT_EVALUATE_H

#include "../../lib/unit.h"

#include "script/script.h"

#include <stdlib.h>

struct evaluated {
    const char *source;
    const char *expected; /* the value as JSON, or "error_name: reason" of the cause */
};

/* Runs a Painless script for its value. Returns: as struct evaluated has it, in the arena. */
static inline struct slice evaluate(const char *source, struct arena *arena)
{
    struct script *script = NULL;
    struct problem problem = {0};
    struct script_value value = {.params = SLICE_LIT("{\"one\":1,\"word\":\"w\",\"list\":[1,2,3],\"map\":{\"k\":\"v\"}}")};
    int r = script_compile(SCRIPT_PAINLESS, SCRIPT_FOR_TEST, slice_from(source), SLICE_NONE, &script, arena, &problem);
    if (r == 0)
        r = script_run_value(script, &SCRIPT_LIMITS_DEFAULT, arena, &value, &problem);
    script_unref(script);
    if (r == 0)
        return value.json;
    const struct problem *cause = problem.caused_by == NULL ? &problem : problem.caused_by;
    struct slice reason = cause->reason.data == NULL ? SLICE_LIT("null") : cause->reason;
    return arena_printf(arena, "%.*s: %.*s", SLICE_ARG(cause->name), SLICE_ARG(reason));
}

static inline void check_evaluated(const struct evaluated *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = ARENA_INIT;
        struct slice have = evaluate(table[i].source, &arena);
        if (!slice_equal(have, slice_from(table[i].expected)))
            fail_msg("%s\n  gives    %.*s\n  expected %s", table[i].source, SLICE_ARG(have), table[i].expected);
        arena_deinit(&arena);
    }
}

#endif
