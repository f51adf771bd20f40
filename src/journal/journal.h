/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: who gives commands their order, their timestamp and their durability.
 *
 * The local journal takes what connections submit, in order of arrival, applies a group of commands to the core, syncs
 * the store once for all of them while the next group is being applied, and then hands each command back with on_done.
 * Nothing is handed back before it is durable. A failed sync ends the process. See README.md.
 *
 * Readers ask for the stable timestamp, the newest at which everything is durable, and never wait.
 */
#ifndef TL_JOURNAL_JOURNAL_H
#define TL_JOURNAL_JOURNAL_H

#include "core/step/core.h"

struct journal;
struct log;

/* The clocks that it goes by (base/clock.h), for tests that set them. From any thread. */
struct journal_clocks {
    uint64_t (*wall)(void *context);
    uint64_t (*boot)(void *context);
    void *context;
};

struct journal_options {
    uint64_t history_us;                 /* how far back reads may go; 0: the default of one hour */
    size_t group_max;                    /* commands applied before a sync at most; 0: the default of 256 */
    struct slice directory;              /* of the data, whose free space is watched; empty: not watched */
    uint64_t reserve_bytes;              /* writes are refused with disk_full_exception below this much free space */
    const struct journal_clocks *clocks; /* NULL: the machine's */
    struct log
        *log; /* commands go there, and are durable when they are there (README.md, "On a log"); NULL: there is none */
    uint64_t log_position; /* with it: up to where it is in the core, as recover_core() says */
    uint64_t
        recovery_us; /* with it: what a start may take to apply again what is behind a checkpoint; 0: the default of 1 s */
    size_t
        checkpoint_bytes; /* with it: what the store may have in memory before there is a checkpoint; 0: the default of 32 MiB */
    bool machine_lost; /* with it: what was written to it last may be missing, since the machine went down */
    const struct core_limits *limits; /* that the core is to go by, and the log says so; NULL: those it has */
};

/*
 * Starts the journal over an opened core, beginning with the commands RESTART and, where its limits are to be others, LIMITS.
 * Returns: 0 or a fatal code. Owns: the caller; journal_close(), which leaves core and store for the caller to close.
 */
int journal_open_local(struct core *core, struct store *store, const struct journal_options *options,
                       struct journal **ret_journal) TL_MUST_USE;
/*
 * Ends the taking of commands: what waits in the core is completed with PROBLEM_STOPPING, and so is what is submitted from now
 * on. Reads, pins and unpins still work, so those who hold pins can let go of them. Called again it does nothing.
 */
void journal_stop(struct journal *journal);

/* Stops it and frees it. Requires: nothing is pinned. NULL is fine. */
void journal_close(struct journal *journal);

/*
 * Submits a command; from any thread. on_done is called once, before or after this returns, on this thread or on one
 * of the journal's; it must not block. `lone` says that nobody waits for the calling thread, so that it can afford to
 * wait for the disk: the command may then be applied and synced on it, which saves two hand-overs. What begins and ends query
 * transactions needs no disk, and is applied on the calling thread where the core is free.
 */
void journal_submit(struct journal *journal, struct command *command, bool lone);

/*
 * Returns: a number for command->request, above all before; for submitters that may want to CANCEL the command. One
 * that has none when it is submitted gets its own.
 */
uint64_t journal_request_number(struct journal *journal);

/* Returns: the newest timestamp that readers may use. From any thread, without waiting. */
tl_ts journal_stable(struct journal *journal);

/* Returns: the oldest timestamp that can still be read. */
tl_ts journal_oldest(struct journal *journal);

/* Returns: the catalog as of the stable timestamp or a little later, with a reference for the caller. */
struct catalog *journal_catalog(struct journal *journal);

/*
 * Returns: the catalog as of `ts`, which must not be above journal_stable(), with a reference for the caller; NULL when it
 * has changed since: catalog_load() knows.
 */
struct catalog *journal_catalog_at(struct journal *journal, tl_ts ts);

/*
 * Query transactions, for readers on any thread.
 *
 * journal_query_use() returns an open one, or NULL where there is none of this id. What it reads at stays readable until it is
 * given back, also when it ends in between.
 * Owns: the caller; journal_query_leave().
 */
struct query;
struct query *journal_query_use(struct journal *journal, struct slice id);
void journal_query_leave(struct journal *journal, struct query *query);
/*
 * Returns: whether it was used of late; then *ret_ts is what it reads at. Others have to ask with a TXN_LOCK, by which its
 * lease is kept alive.
 */
bool journal_query_fresh(struct journal *journal, const struct query *query, tl_ts *ret_ts);
/* Gets the catalog as of what it reads at, with a reference for the caller. Returns: as catalog_load(). */
int journal_query_catalog(struct journal *journal, struct query *query, struct catalog **ret_catalog) TL_MUST_USE;

/*
 * Keeps the history from `ts` on readable until unpinned; for scrolls, points in time and query transactions.
 * Returns: 0; JOURNAL_TOO_OLD when it is gone already.
 */
enum { JOURNAL_TOO_OLD = 1 };
int journal_pin(struct journal *journal, tl_ts ts) TL_MUST_USE;
void journal_unpin(struct journal *journal, tl_ts ts);

/*
 * Who hears what is sent to the server. Before a lease or an idle transaction runs out, whoever could have prolonged it is heard:
 * `listen` is called, on a thread of the journal's, and must see to it, on another thread, that all that was sent before has been
 * submitted; then it calls journal_heard(). Until it does nothing of the kind runs out. With `listen` NULL, as at first, nobody is asked.
 */
struct journal_ears {
    void (*listen)(void *context);
    void *context;
};
void journal_listen(struct journal *journal, const struct journal_ears *ears);
void journal_heard(struct journal *journal);

/* How often the clock of the machine was set by more than a second since the start, and by how much the last time (below 0: back). */
struct journal_steps {
    size_t count;
    int64_t last_us;
};
void journal_clock_steps(struct journal *journal, struct journal_steps *ret_steps);

/* Returns: false while writes are refused for want of disk space. */
bool journal_writable(struct journal *journal);

#endif
