/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world of sessions, locks and transactions: the product's core over a store, the model, and a
 * generator that gives both the same operations at the same timestamps.
 *
 * After each step the completed commands must be those that the model predicts, in its order, at
 * its timestamps. Periodically all locks, requests, transactions and documents are compared. The
 * server is restarted and crashes in every state: it returns to its last checkpoint and replays the
 * command log. A crash loses a random part of the unsynced log, and the model returns to its copy as
 * of the last command that is still there. In half of the worlds another host follows, by entries
 * of the command log (follower.h).
 */
#ifndef TL_TESTS_SIM_OWNERS_WORLD_H
#define TL_TESTS_SIM_OWNERS_WORLD_H

#include "core/step/core.h"
#include "core/locks/lock.h"
#include "gen.h"
#include "follower.h"
#include "commit_order.h"

enum world_store { WORLD_MEM, WORLD_ROCKS_IN_MEMORY, WORLD_ROCKS_ON_DISK };

/* A query transaction of the host: a pinned timestamp, of which the core knows nothing. */
struct host_query {
    uint32_t txn; /* its number in the commit order; 0: the row is free */
    uint64_t read_ts;
};

enum { WORLD_QUERIES = 4, FIRST_QUERY = 1 << 24 };

/* A command as a group of its own, encoded. */
struct logged_command {
    char *bytes; /* mem_free */
    size_t len;
};

struct world {
    uint64_t seed;
    int step;
    bool traces;
    enum world_store kind;
    char directory[64];
    struct rng rng;
    struct rng check_rng; /* for checks, so that they change no operation of a seed */
    struct gen gen;
    uint64_t now;    /* the timestamp clock */
    uint64_t clock;  /* the clock of durations */
    uint64_t synced; /* timestamp up to which a crash loses nothing */
    bool grouping;   /* the commands make one entry of the follower's log */
    uint64_t history_low; /* not above any of `queries` */
    struct host_query queries[WORLD_QUERIES];
    uint32_t last_query;
    struct store *store;
    struct core *core;
    struct effects effects;
    struct lock_hooks hooks; /* of the core; the world's hooks call them */
    struct om model;
    struct om_history history;
    struct om_step expected; /* of the current step */
    struct sim_follower follower;
    struct buf saved;           /* the checkpoint, as of the last sync */
    struct logged_command *log; /* the commands since */
    size_t log_count, log_capacity;
    struct om *copies; /* of the model: one as of the last sync, one after each command since */
    size_t copy_count, copy_capacity;
    struct arena ops; /* all operations of the seed */
    const struct om_op *op;
    int cycle_count;
    struct om_cycle cycles[OM_CYCLES];
    struct commit_order commit_order;
    uint64_t chain; /* a hash over the digests */
};

struct world_options {
    enum gen_profile profile;
    int steps;
    enum world_store store;
    bool traces;
    uint64_t hash_key; /* of hash tables; no result depends on it */
};

/*
 * Runs a seed. Any difference prints seed and step, and exits with status 1.
 * Returns: a hash over the digests of the states.
 */
uint64_t world_live(uint64_t seed, const struct world_options *options);
_Noreturn void world_fail(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Loads a core from its checkpoint and applies the first `count` commands of the world's log; frees
 * the replies.
 */
struct core *world_recover(const struct world *world, struct store *store, struct slice saved, size_t count,
                           struct effects *effects);

/* --- compare.c ---------------------------------------------------------------------------------------------------- */

/* Compares the result of a command with the expected one. */
void compare_done(struct world *world, const struct om_done *expected, const struct om_docs *seen,
                  const struct command *command);
/*
 * Adds what bulks of transactions did before they were cancelled to the commit order. Their replies
 * are of later steps, and the transactions may commit before them.
 */
void compare_ended(struct world *world);
/* Compares all locks, requests, transactions and documents. */
void compare_state(struct world *world);
/* Prints all locks and requests, to find a difference. */
void compare_dump(const struct world *world);
/* Compares counters; cheap enough for each step. */
void compare_counts(struct world *world);
/* Compares what a query transaction reads, and adds it to the commit order. */
void compare_query(struct world *world, const struct host_query *query);
/* Compares documents as of a timestamp, and all stored versions of them. */
void compare_past(struct world *world, uint64_t ts);

#endif
