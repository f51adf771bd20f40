/* SPDX-License-Identifier: Apache-2.0 */
/* A loop over whatever iter.h walks, for library functions. */
#ifndef TL_SCRIPT_WALK_H
#define TL_SCRIPT_WALK_H

#include "script/iter.h"

/* Runs its body for each element. Ends early on a throwable: the caller asks `run->thrown` after it. */
#define walk(iter, item) \
    for (struct value item = VALUE_NONE, *more_ = &item; more_ != NULL && walk_next(run, iter, &item, &more_);)

static inline bool walk_next(struct run *run, struct iter *iter, struct value *item, struct value **more)
{
    bool has;
    (void)run;
    if (iter_next(iter, item, &has) && has)
        return true;
    *more = NULL;
    return false;
}

#endif
