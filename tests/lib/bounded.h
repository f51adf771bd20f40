/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step is bounded (src/core/README.md, invariant 9): every harness that steps a core looks after each step, or
 * group of steps, whether one took more than that, and stops.
 */
#ifndef TL_TESTS_LIB_BOUNDED_H
#define TL_TESTS_LIB_BOUNDED_H

#include <stdio.h>
#include <stdlib.h>

#include "core/step/core.h"
#include "core/unit/work.h"

/* Returns: whether all steps of the core so far were bounded; else what to say is in `text`. */
static inline bool bounded(const struct core *core, char *text, size_t size)
{
    const struct core_metrics *metrics = core_metrics(core);

    if (metric_read(&metrics->steps_undivided) == 0)
        return true;
    (void)snprintf(text, size, "a step is not bounded: one with [%s] took %llu units of work, the most is %llu",
                   command_name((enum command_type)metric_read(&metrics->undivided_command)),
                   (unsigned long long)metric_read(&metrics->undivided_work), (unsigned long long)CORE_STEP_WORK);
    return false;
}

/* Stops where one was not. */
static inline void bounded_check(const struct core *core)
{
    char text[200];

    if (bounded(core, text, sizeof text))
        return;
    (void)fprintf(stderr, "%s\n", text);
    abort();
}

#endif
