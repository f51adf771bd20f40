/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things: what the pieces of long steps are measured by (README-locks.md, "Pieces of ends", "Pieces of what goes on"). One is some 10 to 20 us, and a piece
 * has limits.ephemeral_piece of them. They follow from the state and the command alone, as work (work.h) does not.
 */
#ifndef TL_CORE_COST_H
#define TL_CORE_COST_H

#include <stddef.h>
#include <stdint.h>

enum {
    SCRIPT_STEPS_PER_COST = 500,         /* steps of scripts: one thing */
    LOCKS_PER_COST = 50,          /* locks that are asked for, or go with their owner: one thing */
    SOURCE_BYTES_PER_COST = 4096,        /* of sources: one thing */
    ACTION_BYTES_PER_COST = 2000, /* of a kept action that asks for its locks again: one thing */
    DDL_COST = 20,        /* a rename, or a change of an index */
};

/* Things that have been done are taken off what a piece may do. */
static inline void cost_charge(size_t *left, uint64_t things)
{
    *left = things < *left ? *left - (size_t)things : 0;
}

#endif
