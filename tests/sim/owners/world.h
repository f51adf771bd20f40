/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world of sessions, locks and transactions: the product's core over a store, the model beside it, and a
 * generator that gives both the same operations at the same timestamps.
 *
 * After each step what completed must be what the model says, in its order, at its timestamps; from time to
 * time everything that is held, awaited, open and stored is compared. The server is restarted and crashes in
 * every state: what was not synced is lost but for a random part, and the model goes back to the copy it kept
 * of the last unit that is still there. In half of the worlds another host follows, by entries of the log (follower.h).
 */
#ifndef TL_TESTS_SIM_OWNERS_WORLD_H
#define TL_TESTS_SIM_OWNERS_WORLD_H

#include "core/step/core.h"
#include "core/locks/lock.h"
#include "gen.h"
#include "follower.h"
#include "commit_order.h"

enum world_store { WORLD_TWIN, WORLD_ROCKS_IN_MEMORY, WORLD_ROCKS_ON_DISK };

struct world {
    uint64_t seed;
    int step;
    bool tells;
    enum world_store kind;
    char directory[64];
    struct rng rng;
    struct rng aside; /* of what was added later, so that old seeds live as they did */
    struct gen gen;
    uint64_t now;    /* timestamps */
    uint64_t clock;  /* durations; of another origin in each life of the server */
    uint64_t synced; /* what a crash cannot take back */
    bool grouping;   /* between core_group_begin() and core_group_end() */
    uint64_t history_low;
    struct store *store;
    struct core *core;
    struct effects effects;
    struct lock_hooks hooks; /* of the core; the world's own stand before them */
    struct om model;
    struct om_history history;
    struct om_step told; /* of the step at hand */
    struct other other;
    struct om *copies; /* of the model, as of the last sync and each unit since */
    size_t copy_count, copy_capacity;
    struct arena ops; /* all operations of the seed */
    const struct om_op *op;
    int circle_count;
    struct om_circle circles[OM_CIRCLES];
    struct witness witness;
    uint64_t chain; /* of the digests so far */
};

struct world_options {
    enum gen_profile profile;
    int steps;
    enum world_store store;
    bool tells;
    uint64_t hash_key; /* of the process: no result depends on it */
};

/*
 * Lives through a seed. Any difference prints seed and step, and ends the process with status 1.
 * Returns: a hash over the digests of the state on the way.
 */
uint64_t world_live(uint64_t seed, const struct world_options *options);
_Noreturn void world_fail(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- compare.c ---------------------------------------------------------------------------------------------------- */

/* Compares what came of a command with what must. */
void compare_done(struct world *world, const struct om_done *expected, const struct om_docs *seen,
                  const struct command *command);
/* Compares all that is held, awaited, open and stored. */
void compare_state(struct world *world);
/* Prints what is held and awaited, for who looks for a difference. */
void compare_dump(const struct world *world);
/* Compares what can be counted quickly. */
void compare_counts(struct world *world);
/* Compares documents as of a timestamp, and every version that is kept of them. */
void compare_past(struct world *world, uint64_t ts);

#endif
