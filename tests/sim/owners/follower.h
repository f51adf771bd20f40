/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another host: a second core over a store of its own, that hears of commands only what stands in the entries of the log. At the
 * end of each entry both have the same chain, the same last timestamp, and have given the same replies.
 */
#ifndef TL_TESTS_SIM_OWNERS_FOLLOWER_H
#define TL_TESTS_SIM_OWNERS_FOLLOWER_H

#include "base/buf.h"
#include "core/step/core.h"

struct world;

struct other {
    struct store *store;
    struct core *core; /* NULL: there is none, or no more */
    struct core_limits limits;
    struct effects effects;
    struct buf entry;      /* as far as it goes */
    uint64_t clock;        /* the entry's, and so of all its commands */
    struct buf replies[2]; /* of the entry: the world's, its own */
};

void other_open(struct world *world, const struct core_limits *limits);
void other_close(struct world *world);
/* A command is about to be given at world->now: it goes into the entry. */
void other_add(struct world *world, const struct command *command);
/* A command has come back to the world. */
void other_note(struct world *world, const struct command *command);
/* The entry is whole. */
void other_apply(struct world *world);
/* The host's end and start, which has lost all unsynced batches but the first `kept`; SIZE_MAX: none is lost. */
void other_restart(struct world *world, size_t kept);
/* The world has lost part of an entry: the other can follow no more. */
void other_leave(struct world *world);

#endif
