/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated world: the model, a core on the in-memory store and, in some worlds, a second core on
 * RocksDB. All get the same commands at the same timestamps.
 *
 * The in-memory store is synced from time to time, and crashes: writes that were not synced are
 * lost but for a random part, the core is opened again, and the lost commands are submitted again.
 * RocksDB flushes and compacts; on a disk it is closed and opened. After each step what came of the
 * command is compared with the model; from time to time so are digests, documents at past
 * timestamps, counts, and the entries of every live document.
 */
#ifndef TL_TESTS_SIM_WORLD_H
#define TL_TESTS_SIM_WORLD_H

#include "base/buf.h"
#include "core/step/core.h"
#include "gen.h"

/* A command given since the last sync, to be given again after a crash. */
struct logged {
    uint64_t ts;
    struct command *command;
    struct sim_op *op; /* NULL: the command is upkeep */
    struct sim_expected *expected;
    bool applied; /* by a host, so that `unknown` is set, and the model has applied it */
    bool unknown; /* a rename without effect, whose findings were out of date */
    int postponed; /* the last items of a write, which the core did not begin; `op` has them no more */
};

/*
 * What a submitter has found at a path, while the core watched it (core/tree/empty_paths.h).
 */
struct finding {
    char index[SIM_NAME], path[SIM_PATH_MAX];
    struct path_finding found; /* its keys are allocated */
    uint64_t commands;         /* world.commands when it was made */
};

enum { FINDINGS = 24 };

struct host {
    const char *name;
    struct store *store;
    struct core *core;
    struct buf saved; /* the checkpoint, as of the last sync */
};

enum world_rocks { WORLD_MEM_ONLY, WORLD_ROCKS_IN_MEMORY, WORLD_ROCKS_ON_DISK };

struct world {
    uint64_t seed;
    int step;
    bool divides; /* writes, after a few items */
    bool traces;  /* every operation, on standard output */
    struct rng rng;
    struct rng aside; /* for features added later, so that old seeds behave as before */
    struct model model;
    struct host hosts[2]; /* the in-memory store; RocksDB */
    enum world_rocks rocks;
    char directory[64]; /* of RocksDB on a disk */
    int host_count;
    uint64_t now;
    uint64_t history_low;
    uint64_t synced; /* what a crash cannot take back */
    struct logged *log;
    size_t log_count;
    size_t log_capacity;
    uint64_t commands; /* logged so far */
    uint64_t write_work_max; /* of struct core: in worlds that divide writes some items, else its own */
    struct finding findings[FINDINGS];
    struct sim_op *op;
};

/*
 * Lives through a seed. Any difference prints seed and step, and ends the process with status 1.
 * `divides`: writes are divided after the work of a few items, and the world submits the rest again.
 */
void world_live(uint64_t seed, int steps, enum world_rocks rocks, bool divides, bool traces);

/* Prints a failure and ends the process. */
_Noreturn void world_fail(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- check.c ------------------------------------------------------------------------------------------------------ */

/* Compares what came of a command with what must. */
void check_command(struct world *world, const struct host *host, const struct sim_op *op,
                   const struct sim_expected *expected, const struct command *command);
/* Compares everything a host shows as of `ts` with the model: catalog, documents, counts. */
void check_state(struct world *world, const struct host *host, uint64_t ts);
/* Finds every live document by each of its values, and nothing else. */
void check_entries(struct world *world, const struct host *host);

#endif
