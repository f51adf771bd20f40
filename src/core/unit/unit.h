/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the core, and units.
 *
 * A step applies one or more units, in this order: everything due, the command itself, and
 * each waiting command that can continue. A unit has one timestamp (core->ts) and one batch.
 * core__begin() opens it; core__commit() writes it; core__rollback() discards its changes.
 * Documents written by the open unit are read through core->pending, everything else through the
 * store.
 */
#ifndef TL_CORE_UNIT_H
#define TL_CORE_UNIT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/magic.h"
#include "base/map.h"
#include "base/omap.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/counter.h"
#include "core/documents/prefetch.h"
#include "core/feed/feed.h"
#include "core/maintenance/sweep.h"
#include "core/step/core.h"
#include "core/unit/core_metrics.h"
#include "core/unit/handler.h"
#include "core/tree/empty_paths.h"
#include "script/script.h"

struct document_owners;
struct mapping;
struct owners; /* sessions, locks, transactions, waiting commands */

/*
 * A module's part in units: functions that core__begin(), core__commit() and core__rollback() call,
 * each of all parts in the order of core->parts. NULL: the module has nothing to do then.
 */
struct unit_part {
    /* The unit was opened. */
    void (*begin)(struct core *core);
    /* The unit will be committed: puts the changes into its batch that were postponed to its end. */
    void (*finish)(struct core *core);
    /* Puts records of what the unit changed into its batch: counts, and the feed. */
    void (*record)(struct core *core);
    /* Reverts the changes in memory. The unit stays open. */
    void (*rollback)(struct core *core);
    /* The unit was committed: frees what belongs to it. */
    void (*end)(struct core *core);
    /* The unit removed an index from the catalog. */
    void (*index_dropped)(struct core *core, uint32_t number);
};

/* Older records no longer count, even if they are still stored. */
struct purge_horizons {
    tl_ts tombstones; /* of deleted documents */
    tl_ts outcomes;   /* of ended transactions */
};

#define CORE_MAGIC MAGIC('C', 'o', 'r', 'e')

struct core {
    uint32_t magic;                       /* CORE_MAGIC */
    const struct unit_part *const *parts; /* ends with NULL */
    core_handler *const *handlers;        /* by type of command */
    struct store *store;
    struct core_limits limits;
    bool limits_recorded;           /* set by a command LIMITS, so the store has them */
    struct effects *effects;        /* of the current step; NULL between steps */
    const struct core_watch *watch; /* NULL: none */
    tl_ts last_ts;                  /* newest timestamp applied, or the ceiling: invariant 1 */
    /* Highest clock of any command since core_open(); deadlines are compared with it */
    uint64_t clock;
    /* Of the newest unit that wrote anything: last_ts after a restart without a ceiling */
    tl_ts written_ts;
    tl_ts found_ts;                /* newest timestamp found in the store by core_open(), without the ceiling */
    tl_ts ts_ceiling;              /* the last ceiling; 0: none */
    struct buf ts_ceiling_payload; /* stored with the ceiling, for the host */
    tl_ts must_sync_ts;            /* newest unit that must be durable before its reply is sent; 0: none */
    unsigned command_version;      /* as in the command of the current step; before the first the newest */
    bool memory_full;              /* as in the command of the current step; false for those before version 25 */
    bool chained;                  /* core_begin_chain() was called; else no chain is computed */
    uint64_t chain;                /* over all batches written since core_begin_chain() */

    /* Work of the current or the last step, in units of work.h. */
    uint64_t work;                                  /* without the work of the lock table */
    uint64_t (*lock_work)(const struct core *core); /* work of the lock table, ever */
    uint64_t lock_work_before;                      /* lock_work() when the step began */
    /* The largest indivisible part of the step: one script, one document or one commit */
    uint64_t indivisible_work;
    uint64_t document_work; /* what core__work_document() has counted for the current document */
    uint64_t unit_work;    /* core_step_work() when the unit began */
    uint64_t script_steps; /* of all scripts in the step; follows from state and commands */
    uint64_t scripts_run;  /* in the step, by updates; without those whose results were kept */
    /* Bytes of sources parsed by writes in the step; follows from state and commands */
    uint64_t source_bytes;
    /* Work of the step for making mappings; follows from state and commands: core__work_mapping() */
    uint64_t mapping_work;
    uint64_t write_work;       /* of the items of writes, which follows from state and commands */
    uint64_t write_work_max;   /* WRITE_WORK_MAX; tests set less, so that small writes are divided */
    uint64_t atomic_work_max;  /* WRITE_WORK_MAX, of an atomic write in one step; tests set less */
    uint64_t whole_work_max;   /* CORE_ATOMIC_WORK, of one before version 12; tests set less */
    uint64_t commit_work_max;  /* CORE_COMMIT_WORK; tests set less */
    uint64_t provisional_work; /* ENTRIES_PROVISIONAL_WORK; tests set less */
    uint64_t unlock_work;      /* UNLOCK_WORK_PER_COST; simulators set less, so that UNLOCKs of few names are divided */
    uint64_t action_work;      /* WRITE_WORK_PER_COST, of cleanup actions; tests set more or less */
    uint64_t step_account;     /* STEP_ACCOUNT_WORK; simulators set less, so that few requests exhaust it */
    uint64_t reads_work_max;   /* LOCK_WORK_MAX, of a TXN_LOCK; simulators set less, so that few targets are divided */
    bool indivisible;          /* the whole unit is indivisible */

    /* The open unit. */
    bool open;
    tl_ts ts;
    /* Newest timestamp that the unit used: its own, or of the last fencing token issued in it */
    tl_ts used_ts;
    /* Newest timestamp in a counter record of the unit, which an opened core finds; 0: none */
    tl_ts recorded_ts;
    bool async_commit;          /* the reply need not wait until the unit is durable */
    bool in_txn;                /* ran a request of an open transaction, which a crash rolls back */
    size_t provisional_changes; /* number of provisional entries and undo records in the batch */
    size_t entry_changes;       /* number of entries and posting lists in the batch, for the work of the step */
    struct store_batch *batch;
    bool state_changed;       /* state outside of the store has changed: core__note_change() */
    uint64_t change_chain;    /* hash over these changes */
    struct arena arena;       /* reset when the unit ends */
    struct arena scratch;     /* reset when the unit ends, and by a write between its items */
    struct omap tree_pending; /* changes of the path hierarchy (core/tree/tree_write.h) */
    /* Number of synthetic origins created, for vacated directory entries */
    uint32_t origins_created;
    /* Document key to struct doc in `arena`: documents written by the unit */
    struct map pending;
    struct catalog *catalog_before; /* the catalog when the unit began, for core__rollback() */
    bool catalog_changed;
    /* Counts changes of the meaning of names: indices and aliases created or removed */
    uint64_t names_epoch;
    /* Numbers of indices in which the unit writes a document's first routing, in `arena`; may repeat */
    uint32_t *routed;
    size_t routed_count;
    size_t routed_capacity;
    /*
     * Script steps left, shared by several writes (update.h); NULL: each command has its own limit
     */
    uint64_t *shared_steps;
    /* Commands made by the core, freed when the unit ends; `pending` may point into them */
    struct list free_at_end;

    /* Across units. */
    struct feed feed;                     /* with the changes recorded by the open unit (core/feed) */
    struct purge_horizons purge_horizons; /* advanced by MAINTAIN; stored if that had an effect */
    bool old_records;                     /* core_open() found records of formats 1 and 2: core_convert() */
    struct catalog *catalog;              /* with the changes of the open unit */
    struct counters counters;             /* documents, sequence numbers, index numbers */
    /* Of documents, to validate optimistic reads of submitters */
    struct recent_writes recent_writes;
    /* Paths known to be empty, or watched; saved (core/tree/empty_paths.h) */
    struct empty_paths empty_paths;
    struct sweep sweep;       /* of stale posting lists; continued by maintenance */
    size_t sweep_batches_max; /* SWEEP_BATCHES_MAX; tests set less */
    struct script_cache *scripts;
    struct owners *owners;
    const struct document_owners *document_owners; /* functions of `owners` for core/documents */
    struct core_metrics metrics;
};

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/*
 * Makes a core from a store, without the state of its owners. core_open() and core_load() add that
 * and call core__loaded().
 * Returns: 0; fatal codes. Owns: the caller; core_close().
 */
int core__open_bare(struct store *store, const struct core_limits *limits, struct core **ret_core) TL_MUST_USE;
/* Sets the limits: those in the store, or `limits` if it has none. Returns: 0; fatal codes. */
int core__open_limits(struct core *core, const struct core_limits *limits) TL_MUST_USE;
enum { CORE_SCRIPTS_CACHED = 1000 };
/* Completes opening, after owners were loaded. */
void core__loaded(struct core *core);

/* --- Units -------------------------------------------------------------------------------------------------------- */

/*
 * Opens a unit at the timestamp `at`, or at last_ts + 1 if that is higher.
 * Requires: no unit is open.
 */
void core__begin(struct core *core, tl_ts at);
/* Writes and closes the unit. Returns: 0; fatal codes, after which the core must not be used. */
int core__commit(struct core *core) TL_MUST_USE;
/*
 * Reverts the unit's changes in memory and clears its batch. The unit stays open. Requires: a unit
 * is open.
 */
void core__rollback(struct core *core);

/*
 * Records that the open unit has changed state outside of the store, which only checkpoints and the
 * command log make durable: the unit must be durable before its reply, and core_chain() covers
 * `digest`, a hash of the change.
 */
static inline void core__note_change(struct core *core, uint64_t digest)
{
    REQUIRE(core->open); /* else no unit would be durable before the reply */
    core->state_changed = true;
    core->change_chain = (core->change_chain ^ digest) * UINT64_C(0x9e3779b97f4a7c15);
    core->change_chain ^= core->change_chain >> 29;
}

/* Returns: whether the open unit has changed persistent state. */
static inline bool core__changed(const struct core *core)
{
    return store_batch_count(core->batch) > 0 || core->state_changed;
}

/* Counts work of the current step (work.h). */
static inline void core__work(struct core *core, uint64_t units)
{
    core->work += units;
}

/*
 * Records that `units` of the step's work are one indivisible operation, which has its own limit.
 */
static inline void core__note_indivisible(struct core *core, uint64_t units)
{
    if (units > core->indivisible_work)
        core->indivisible_work = units;
}

/*
 * Counts work for making a mapping: of templates and mappings parsed and merged, and of fields. It
 * also decides where a write is divided, so it follows from state and commands.
 */
static inline void core__work_mapping(struct core *core, uint64_t units)
{
    core->work += units;
    core->mapping_work += units;
}
/* Returns: the fields of a mapping, each WORK_FIELD; long paths and parameters count as more. */
size_t core__copied_fields(const struct core *core, const struct mapping *mapping);

/*
 * Counts work for changing the catalog, which counts as that for a mapping. Not in commands before
 * COMMAND_SINCE_CATALOG_BOUNDS, in which it would end writes earlier than it did.
 */
void core__work_catalog(struct core *core, uint64_t units);

/* Counts work of one indivisible operation, such as a script. */
static inline void core__work_indivisible(struct core *core, uint64_t units)
{
    core->work += units;
    core__note_indivisible(core, units);
}

/* The next core__work_document() is for another document than those before. */
static inline void core__begin_document(struct core *core)
{
    core->document_work = 0;
}

/*
 * Counts work in proportion to one document, which is read, parsed and written in several passes:
 * together they are one indivisible operation.
 */
static inline void core__work_document(struct core *core, uint64_t units)
{
    core->work += units;
    core->document_work += units;
    core__note_indivisible(core, core->document_work);
}

/* Notifies the parts that the open unit removed an index from the catalog. */
void core__index_dropped(struct core *core, uint32_t number);
/* The key of the newest timestamp that any unit used, where no counter has it. */
#define LAST_TS_KEY "T"
/* Puts a record of SPACE_SYSTEM that is a timestamp (u64be) and `rest` into the unit's batch. */
void core__put_ts(struct core *core, const char *key, tl_ts ts, struct slice rest);

/* Frees a command made by the core when the unit ends. NULL is fine. */
void core__free_at_end(struct core *core, struct command *command);

/* Returns: a view of the newest state without the documents in core->pending. */
static inline struct view core__view(const struct core *core, const struct overlay *overlay)
{
    return (struct view){core->store, TL_TS_MAX, overlay};
}

/*
 * Puts a command on effects->completed, with the timestamp of the open unit, or else of the last
 * one.
 */
void core__complete(struct core *core, struct command *command);

#endif
