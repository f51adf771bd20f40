/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes: how documents change. README.md, "A write, item by item".
 *
 * An executor runs the items in order. It writes to a sink, which is the unit's batch or a
 * transaction's overlay, and reads through the matching view; so one implementation serves both. It
 * keeps no state between two runs of a command: a write that waited for locks starts over at its
 * new timestamp.
 */
#ifndef TL_CORE_WRITE_H
#define TL_CORE_WRITE_H

#include "core/command/command.h"
#include "store/view.h"

struct provisional_entries;
struct catalog_index;
struct core;
struct mapping_type;
struct tree_paths;

/*
 * The destination of changes: the transaction's overlay, or the unit's batch if `overlay` is NULL.
 */
struct change_sink {
    struct store_batch *batch;
    struct overlay *overlay;
};

static inline void sink_put(const struct change_sink *sink, enum store_space space, struct slice key,
                            struct slice value)
{
    if (sink->overlay != NULL)
        overlay_put(sink->overlay, space, key, value);
    else
        store_batch_put(sink->batch, space, key, value);
}

static inline void sink_delete(const struct change_sink *sink, enum store_space space, struct slice key)
{
    if (sink->overlay != NULL)
        overlay_delete(sink->overlay, space, key);
    else
        store_batch_delete(sink->batch, space, key);
}

/*
 * A document that a write will change, for its locks. Slices live in the core's arena or the
 * command.
 */
struct write_target {
    size_t item;        /* its index in the command */
    struct slice index; /* name of the concrete index; as given if the write creates it */
    struct slice type;  /* name as stored */
    struct slice id;
    struct slice old_path;       /* current path; data NULL: the document does not exist or has no path */
    struct slice committed_path; /* without the transaction's own renames, as the lock table has it */
    struct slice new_path;       /* path after the write; data NULL: none, or known only when it runs */
    bool new_path_known;
};

struct update_kept;
struct write_parsed;

/* The items [begin, end) of a command. */
struct write_range {
    size_t begin, end;
};

struct write_targets {
    struct write_target *items;
    size_t count;
    /* By item of the range, for items whose source was parsed; NULL: no item */
    const struct write_parsed *parsed;
    /* By item of `kept_range`: the result of its script or merge, or NULL. NULL: no item has one */
    const struct update_kept **kept;
    struct write_range kept_range;
    size_t kept_bytes;
    uint64_t work; /* of finding them (WRITE_WORK_MAX) */
    bool exceed_step; /* with write_run.one_step: finding and running them takes more than one step may */
};

/* The items whose targets write__targets() determines. */
struct write_choice {
    struct write_range range;
    const bool *pending; /* by item of the command: whether it is still to run; NULL: all are */
    bool cut;            /* postpone and leave out items beyond the script steps and mapping work of one command */
    uint64_t work_before; /* of the write, earlier in this step (WRITE_WORK_MAX) */
    bool in_pieces;       /* one piece of an atomic write: it is divided as any other */
};

/*
 * Determines the documents that the chosen items will change. Invalid items are left out; they fail
 * when they run. A write that has waited for locks is cut again: scripts and mappings may cost more
 * than when it began to wait. The first item of a step is never postponed. *io_targets holds the result of the
 * previous call in this unit, or zero. It is replaced; unchanged paths keep their memory.
 *
 * Returns: 0; fatal codes.
 */
int write__targets(struct core *core, struct command *command, const struct write_choice *choice,
                   const struct overlay *overlay, struct write_targets *io_targets) TL_MUST_USE;

/* Marks an item as postponed: it was not started. */
void write__postpone(struct core *core, struct command *command, size_t item);
/* Marks all items from `first` on as postponed. They are many, and share one text. */
void write__postpone_from(struct core *core, struct command *command, size_t first);

/*
 * Returns: whether the item creates its index if that is missing. Only a delete of 7.x with
 *   internal versioning does not.
 */
bool write__creates_index(const struct write_item *item);

/*
 * Finds the current path of a document in the unit, or in `overlay` if that is not NULL. data NULL:
 * it does not exist or has no path.
 *
 * Returns: 0, the path in the core's arena; fatal codes.
 */
int write__path_of(struct core *core, const struct overlay *overlay, struct slice index, struct slice type,
                   struct slice id, struct slice *ret_path) TL_MUST_USE;
/*
 * As write__path_of(), for many documents in succession, between which the unit writes nothing. `paths`: of these
 * calls alone; NULL: no others follow.
 */
int write__path_near(struct core *core, const struct overlay *overlay, struct tree_paths *paths, struct slice index,
                     struct slice type, struct slice id, struct slice *ret_path) TL_MUST_USE;

/*
 * Checks that locks allow a document to be placed at its new path. The path of a document that an
 * earlier item of the same write changed is known only now. `to`: the document, with new_path (data
 * NULL: no path).
 *
 * Returns: false with *ret_problem in `arena`.
 */
struct write_path_check {
    bool (*allowed)(void *context, const struct write_target *to, struct arena *arena, struct problem *ret_problem);
    void *context;
};

/* The parameters and results of write__run(). */
struct write_run {
    const struct write_item *items;
    size_t count;
    bool atomic;
    bool in_pieces;                            /* one piece of an atomic write: it is divided as any other */
    bool one_step; /* atomic, and refused above WRITE_WORK_MAX: write_command__in_one_step() */
    bool cleanup;                              /* ignores write blocks and closed indices */
    bool purge;                                /* purges documents hidden by a session tombstone; not counted */
    bool last;                                 /* no later read in this unit needs its documents */
    bool alone; /* one item, the only one of its command: finding its locks was work of the same document */
    struct overlay *overlay;                   /* of the transaction; NULL: write to the unit's batch */
    struct provisional_entries *provisional;   /* collects a transaction's posting lists; NULL outside of one */
    const struct write_path_check *path_check; /* NULL: all paths are allowed */
    const struct write_parsed *parsed;         /* by item, from write__targets() in this unit; NULL: none */
    const struct update_kept *const *kept;     /* by item, also from there; NULL: none */
    struct arena *arena;                       /* holds what the results refer to */
    struct write_result *results;
    uint64_t work_before;  /* of the write, earlier in this step: it counts towards WRITE_WORK_MAX */
    size_t result_bytes_before; /* of the write, in earlier runs: they count towards WRITE_RESULT_BYTES_MAX */
    size_t result_bytes;        /* out: of the items that ran */
    uint64_t script_steps; /* out: used by scripts */
    uint64_t work;         /* out: of the items, by which the run was divided (WRITE_WORK_MAX) */
    bool too_long;         /* out: atomic, not done: its scripts exceed their steps */
    bool too_large;        /* out: atomic, not done: exceeds the bytes of a transaction */
    bool results_too_large; /* out: atomic, not done: its results exceed WRITE_ATOMIC_RESULT_BYTES_MAX */
    /* out: atomic, not done: to be carried out in pieces (acquire_pieces.c); with `one_step`, to be refused */
    bool exceeds_step;
};

/*
 * Runs items in the open unit. An item whose result already has a problem fails with it.
 *
 * Requires: `results` has `count` elements, each zero, with a problem, or postponed.
 * Ensures: each item is written completely or not at all. With `atomic`, either all items are
 *   written, or none and *ret_failed or run->too_large is set. Without an overlay the unit is then
 *   rolled back; with an overlay the caller rolls back to its savepoint and clears `provisional`.
 * Returns: 0; fatal codes.
 */
int write__run(struct core *core, struct write_run *run, bool *ret_failed) TL_MUST_USE;

/*
 * Returns: the item that deletes an ephemeral document of a session. It has the document's own
 *   routing, as every delete must. Its slices are copies in `arena`.
 */
struct write_item write__removal_of(struct arena *arena, const struct catalog_index *index,
                                    const struct mapping_type *type, struct slice id, struct slice session,
                                    struct slice routing);

/*
 * Moves a transaction's changes into the open unit's batch: records get the unit's timestamp,
 * counters are updated. The batch refers to the overlay's bytes, which must stay unchanged until
 * the unit ends.
 *
 * Returns: 0, the number of documents written and renames in *ret_changes; fatal codes.
 */
int write__commit_overlay(struct core *core, struct overlay *overlay, uint64_t *ret_changes) TL_MUST_USE;

/* Returns: the number of documents that an overlay writes, plus its renames. */
uint64_t write__overlay_changes(const struct overlay *overlay);

/* Documents and paths written by the open unit are known to later items until it ends. */
struct unit_part;
extern const struct unit_part write__part;

#endif
