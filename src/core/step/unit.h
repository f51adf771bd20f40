/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the core, and units.
 *
 * Units. A step applies one or more units, each at a timestamp of its own with a batch of its own: what fell due,
 * the command itself, and each waiting command that may go on. core__begin() opens a unit, core__commit() writes it;
 * core__rollback() forgets all it did. Between the two, core->ts is its timestamp; documents it has written so far are
 * seen through core->pending, everything else through the store.
 */
#ifndef TL_CORE_UNIT_H
#define TL_CORE_UNIT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/omap.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/counter.h"
#include "core/documents/prefetch.h"
#include "core/feed/feed.h"
#include "core/locks/lock_record_buf.h"
#include "core/step/core.h"
#include "core/step/core_metrics.h"
#include "core/tree/empty_paths.h"
#include "core/maintenance/sweep.h"
#include "script/script.h"

struct owners; /* sessions, locks, transactions, waiting commands */

/* A change of how many documents live with a session. */
struct ephemeral_delta {
    struct slice session;
    uint32_t index;
    uint16_t type;
    int delta;
    bool index_deleted; /* its index was deleted; `change` is 0 */
};

/* What was before these timestamps is too long ago to count. */
struct purge_horizons {
    tl_ts tombstones; /* versions of documents deleted then */
    tl_ts outcomes;   /* transactions that ended then */
};

struct core {
    struct store *store;
    struct core_limits limits;
    bool limits_said;               /* by a command LIMITS: they are in the store, and no other build's */
    struct effects *effects;        /* of the step at hand; NULL between steps */
    const struct core_watch *watch; /* NULL: nobody does */
    tl_ts last_ts;                  /* invariant 1 */
    uint64_t clock;    /* the highest that a command has named since core_open(); deadlines are counted by it */
    tl_ts written_ts;  /* of the last unit that wrote anything: what last_ts is after a restart */
    tl_ts found_ts;    /* the newest that the store told when it was opened, the mark apart */
    tl_ts mark;        /* the last one that was left; 0: none */
    struct buf marked; /* what was kept with it */
    tl_ts must_sync_ts;  /* of the last that must be durable before anybody hears of it */
    bool chained;      /* core_begin_chain() was called: nobody pays for a chain that nobody reads */
    uint64_t chain;    /* over all batches written since; core_chain() */
    bool saving;       /* core_begin_saving() was called: core_save() has the locks, they have no records */

    /* Work of the step at hand, or the last one, in units of work.h. */
    uint64_t work;          /* without that of the table of locks, which ... */
    uint64_t walked_before; /* ... had counted so much when the step began */
    uint64_t whole_work;    /* the most that one thing took which cannot be cut: one script, one document, one commit */
    uint64_t unit_work;     /* what it was when the unit at hand began */
    uint64_t script_steps;  /* of all scripts of the step at hand, and ... */
    uint64_t
        source_bytes; /* ... bytes of all sources that its writes took apart: both follow from state and commands */
    bool indivisible;             /* the unit at hand is one such thing */

    /* The unit at hand. */
    bool open;
    tl_ts ts;
    tl_ts recorded_ts; /* newest timestamp that some record in batch or log tells, so that core_open() finds it; 0: none */
    bool async_commit; /* nobody needs to wait until it is durable */
    bool in_txn;    /* a transaction's request ran in it, which a crash takes back with its transaction ... */
    size_t provisional_changes;   /* ... unless there are more changes in the batch than these: entries put ahead, and their notes */
    struct store_batch *batch;
    struct lock_record_buf lock_records;            /* records of locks, not in `batch` yet; empty when `saving` */
    bool locks_changed;             /* the unit has changed locks of which there is no record */
    uint64_t lock_chain;            /* over these changes, when `chained` */
    struct arena arena;             /* reset when the unit ends */
    struct arena scratch;           /* the same, and by a write between its items */
    struct omap tree_pending;       /* what it has put into trees so far (core/tree/tree_write.h) */
    uint32_t origins_created;           /* by it, for vacant places */
    struct map pending;             /* document key to struct doc in `arena`: what the unit has written so far */
    struct catalog *catalog_before; /* of its beginning, for core__rollback() */
    bool catalog_changed;
    uint64_t names_epoch;  /* counts changes of what names mean: indices and aliases that came and went */
    struct ephemeral_delta *ephemeral_deltas; /* what the unit has counted of documents that live with sessions, in `arena` */
    size_t ephemeral_delta_count;
    size_t ephemeral_delta_capacity;
    uint64_t *
        shared_steps; /* what the scripts of the writes at hand share; NULL: each command's share their own (update.h) */
    struct list spent; /* commands of the core's own, whose memory `pending` points into */

    /* What lasts. */
    struct feed feed;            /* with what the unit has noted so far (core/feed) */
    struct purge_horizons purge_horizons;  /* moved on by MAINTAIN; in the store where that made a difference */
    bool grouping;               /* between core_group_begin() and core_group_end() */
    struct catalog *catalog;     /* with the changes of the unit at hand */
    struct counters counters;    /* documents, sequence numbers, index numbers */
    struct recent_writes recent_writes; /* of documents, to tell what submitters have seen that is so no more */
    struct empty_paths empty_paths;   /* that renames need not look through again */
    struct sweep sweep;          /* of stale chunks, that goes on with upkeep */
    struct script_cache *scripts;
    struct owners *owners;
    struct core_metrics metrics;
};

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/*
 * Makes a core of what the store has, but for its owners, who are none: core_open() and core_load() add them, and call core__loaded().
 * Returns: 0; fatal codes. Owns: the caller; core_close().
 */
int core__open_bare(struct store *store, const struct core_limits *limits, struct core **ret_core) TL_MUST_USE;
/* Goes by the limits that the store has, or by `limits`. Returns: 0; fatal codes. */
int core__open_limits(struct core *core, const struct core_limits *limits) TL_MUST_USE;
enum { CORE_SCRIPTS_CACHED = 1000 };
/* All that the core is, is there. */
void core__loaded(struct core *core);

/* --- Units -------------------------------------------------------------------------------------------------------- */

/*
 * Opens a unit at `at`, or one above the last when that is higher.
 * Requires: none is open.
 */
void core__begin(struct core *core, tl_ts at);
/* Writes the unit. Returns: 0; TL_ERR_IO and the like, after which the core must not be used. */
int core__commit(struct core *core) TL_MUST_USE;
/* Takes back all that the unit changed in memory and in its batch; it stays open, empty. */
void core__rollback(struct core *core);

/* Returns: whether the open unit has changed locks that outlive the process. */
static inline bool core__locks_changed(const struct core *core)
{
    return core->locks_changed || lock_record_buf_has_open(&core->lock_records);
}

/* Returns: whether the open unit has changed anything that outlives the process. */
static inline bool core__changed(const struct core *core)
{
    return store_batch_count(core->batch) > 0 || core__locks_changed(core);
}

/* Counts work of the step at hand (work.h). */
static inline void core__work(struct core *core, uint64_t units)
{
    core->work += units;
}

/* Says that so much of the step's work is one thing that cannot be cut, whose limit is its own. */
static inline void core__note_indivisible(struct core *core, uint64_t units)
{
    if (units > core->whole_work)
        core->whole_work = units;
}

/* Counts such work: its limit is that of one script or one document. */
static inline void core__work_indivisible(struct core *core, uint64_t units)
{
    core->work += units;
    core__note_indivisible(core, units);
}

/* Frees a command of the core's own when the unit ends; NULL is fine. */
void core__free_at_end(struct core *core, struct command *command);

/* Changes of the catalog in the open unit. Pointers to indices of the catalog before are no longer good. */
/* `what` of an index has changed: FEED_INDEX_CREATED, FEED_ALIASES, FEED_SETTINGS, FEED_MAPPING. */
void core__put_index(struct core *core, const struct catalog_index_spec *spec, enum feed_kind what);
void core__put_mapping(struct core *core, uint32_t number, const struct mapping *mapping);
void core__drop_index(struct core *core, uint32_t number);
void core__put_object(struct core *core, enum catalog_kind kind, const struct catalog_object *object);
void core__drop_object(struct core *core, enum catalog_kind kind, struct slice name);

/* Returns: a view of the newest state; documents that the unit itself wrote are in core->pending. */
static inline struct view core__view(const struct core *core, const struct overlay *overlay)
{
    return (struct view){core->store, TL_TS_MAX, overlay};
}

/* Puts core->forgotten into the unit's batch. */
void core__put_purge_horizons(struct core *core);

/* Puts a command on effects->completed; its ts becomes that of the unit at hand, or the last one. */
void core__complete(struct core *core, struct command *command);

#endif
