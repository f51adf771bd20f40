/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower: a second core over its own store, which receives commands only as entries of the
 * command log. At the end of each entry both cores must have the same chain, the same last
 * timestamp, and the same replies.
 */
#ifndef TL_TESTS_SIM_OWNERS_FOLLOWER_H
#define TL_TESTS_SIM_OWNERS_FOLLOWER_H

#include "base/buf.h"
#include "core/step/core.h"

struct world;

struct sim_follower {
    struct store *store;
    struct core *core; /* NULL: this world has no follower */
    struct core_limits limits;
    struct effects effects;
    struct buf saved;      /* the checkpoint */
    struct buf entry;      /* commands so far */
    uint64_t clock;        /* of the entry and all its commands */
    bool memory_full;      /* as well */
    struct buf replies[2]; /* to the commands of the entry: of the world, of the follower */
};

void follower_open(struct world *world, const struct core_limits *limits);
void follower_close(struct world *world);
/* Adds a command to the entry, before the world runs it at world->now. */
void follower_add(struct world *world, const struct command *command);
/* Records the reply of a command that the world has completed. */
void follower_note_reply(struct world *world, const struct command *command);
/* Applies the entry and compares. */
void follower_apply(struct world *world);
/* Makes a checkpoint, to which follower_restart() returns. Requires: no entry has begun. */
void follower_checkpoint(struct world *world);
/*
 * Restarts the follower from its checkpoint and the first `kept` commands of the world's log, and
 * compares.
 */
void follower_restart(struct world *world, size_t kept);

#endif
