/* SPDX-License-Identifier: Apache-2.0 */
/* State machines; see sm.h. */
#include "base/sm.h"

#include "base/check.h"

#include <stdio.h>

static const char *name_of(const struct sm *machine, unsigned state)
{
    return state < machine->count ? machine->states[state].name : "no state";
}

_Noreturn void sm_refuse(const struct sm *machine, unsigned from, unsigned to, const char *file, int line)
{
    char transition[200];
    (void)snprintf(transition, sizeof transition, "%s: %s -> %s", machine->name, name_of(machine, from),
                   name_of(machine, to));
    check_failed("TRANSITION", transition, file, line);
}
