/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State machines as tables.
 *
 * A table has a row for each state of an object: its name and the states that may follow. The
 * module of the object has one function that changes its state; it calls SM_CHECK() first, and its
 * invariant afterwards. A transition that is not in the table is a bug in this program and ends it,
 * with the name of the machine, both states, and the place of the change.
 *
 * States that are read from a checkpoint are input: the reader refuses impossible ones itself.
 */
#ifndef TL_BASE_SM_H
#define TL_BASE_SM_H

#include <stdbool.h>
#include <stdint.h>

enum { SM_STATES_MAX = 32 };

struct sm_state {
    const char *name;
    uint32_t next; /* set of SM_TO(state) of the states that may follow; 0: a final state */
};

struct sm {
    const char *name;
    const struct sm_state *states;
    unsigned count; /* at most SM_STATES_MAX */
};

#define SM_TO(state) (UINT32_C(1) << (state))

/* Returns: whether `to` may follow `from`; false for a number that is no state. */
static inline bool sm_allows(const struct sm *machine, unsigned from, unsigned to)
{
    return from < machine->count && to < machine->count && (machine->states[from].next & SM_TO(to)) != 0;
}

/* Ends the process: the transition is not in the table. */
_Noreturn void sm_refuse(const struct sm *machine, unsigned from, unsigned to, const char *file, int line);

/* Checks that `to` may follow `from`. */
#define SM_CHECK(machine, from, to)                         \
    (sm_allows((machine), (unsigned)(from), (unsigned)(to)) \
         ? (void)0                                          \
         : sm_refuse((machine), (unsigned)(from), (unsigned)(to), __FILE__, __LINE__))

#endif
