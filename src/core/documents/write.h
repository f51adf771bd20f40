/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes: how documents change. README.md, "A write, item by item".
 *
 * An executor runs items one after another into a sink, the unit's batch or a transaction's overlay, and reads
 * through the matching view, so the same code serves both. Nothing is kept between two runs of a command: one that
 * waited for its locks starts from the beginning, at its new timestamp.
 */
#ifndef TL_CORE_WRITE_H
#define TL_CORE_WRITE_H

#include "core/step/command.h"
#include "store/view.h"

struct provisional_entries;
struct catalog_index;
struct core;
struct mapping_type;

/* Where changes go: the unit's batch, or a transaction's overlay where `overlay` is set. */
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

/* One document that a write is about to change, for its locks. Slices live in the core's arena or the command. */
struct write_target {
    size_t item;        /* which item of the command */
    struct slice index; /* name of the concrete index, or as given where it is yet to be made */
    struct slice type;  /* name as stored */
    struct slice id;
    struct slice old_path; /* of the tree; data NULL: the document does not exist or has none */
    struct slice committed_path;     /* the same without what the transaction has renamed: where it lies for locks */
    struct slice new_path; /* after the change; data NULL: none, or not known before it runs (scripts) */
    bool new_path_known;
};

struct write_parsed;

struct write_targets {
    struct write_target *items;
    size_t count;
    const struct write_parsed
        *parsed; /* by item of the command, of those whose source was looked into; NULL: of none */
};

/*
 * Finds out what a write will change. Items that cannot be understood are left out; they fail when they run. With `cut`, when no item of it has
 * been begun, those are postponed and left out that follow behind what scripts may take in one command. `io_targets` holds what was found
 * before in this unit, or nothing, and is replaced: paths that are still the same stay where they are.
 * Returns: 0; fatal codes.
 */
int write__targets(struct core *core, struct command *command, const struct overlay *overlay, bool cut,
                   struct write_targets *io_targets) TL_MUST_USE;

/* Says of an item that it was not begun. */
void write__postpone(struct core *core, struct command *command, size_t item);

/* Whether an item whose index is missing makes it: all but a delete of 7.x without a version of the client's own. */
bool write__creates_index(const struct write_item *item);

/*
 * Finds where a document lies in the tree, as the unit or the overlay has it; data NULL: nowhere, or it does not exist.
 * Returns: 0 with the path in the core's arena; fatal codes.
 */
int write__path_of(struct core *core, const struct overlay *overlay, struct slice index, struct slice type,
                 struct slice id, struct slice *ret_path) TL_MUST_USE;

/*
 * Asks whether a document may come to lie where it will: `to` names it, and its new place in new_path (data NULL: right in
 * its index). What an item makes of a document that another item of the same write has changed is known only when it runs.
 * Returns: false with the problem in `arena`.
 */
struct write_path_check {
    bool (*allowed)(void *context, const struct write_target *to, struct arena *arena, struct problem *ret_problem);
    void *context;
};

/* What write__run() is given. */
struct write_run {
    const struct write_item *items;
    size_t count;
    bool atomic;
    bool cleanup;                        /* neither a block nor a closed index stops it */
    bool purge;                      /* what it removes went with its session, and is counted no more (session_tombstone.h) */
    bool last;                           /* nothing else reads documents in the unit after it */
    struct overlay *overlay;             /* of the transaction; NULL: the unit's batch */
    struct provisional_entries *provisional;                 /* takes a transaction's chunk entries; NULL outside of one */
    const struct write_path_check *path_check; /* NULL: everything may lie everywhere */
    const struct write_parsed *parsed;   /* by item: what write__targets() has parsed in this unit; NULL: nothing */
    struct arena *arena;                 /* takes what the results point to */
    struct write_result *results;
    uint64_t script_steps; /* out: that its scripts took */
    bool too_long;         /* told: it is atomic and its scripts would take more than they may; it is not done */
    bool too_large;        /* told: it is atomic and would write more bytes than a transaction may; it is not done */
};

/*
 * Runs items in the open unit. A result that holds a problem already makes its item fail with it.
 *
 * Requires: `results` has `count` elements, zeroed or with problems, or postponed.
 * Ensures: an item is whole or absent. With `atomic`, all are whole or, *ret_failed or run->too_large being set, none is: without an
 *          overlay the whole unit is then abandoned; in an overlay the caller goes back to its savepoint and forgets what
 *          is in `ahead`.
 * Returns: 0; fatal codes.
 */
int write__run(struct core *core, struct write_run *run, bool *ret_failed) TL_MUST_USE;

/* Returns: the item by which a document goes that lived with a session, under its own routing, as whoever deletes it must. */
struct write_item write__removal_of(struct arena *arena, const struct catalog_index *index,
                                    const struct mapping_type *type, struct slice id, struct slice session,
                                    struct slice routing);

/*
 * Moves what a transaction wrote into the open unit's batch: records get the unit's timestamp, counts their changes. The batch
 * refers to what the overlay holds, so that must live, unchanged, until the unit ends.
 * Returns: in *ret_changes how many documents it wrote and how often it renamed.
 */
int write__commit_overlay(struct core *core, struct overlay *overlay, uint64_t *ret_changes) TL_MUST_USE;

/* Returns: how many documents an overlay writes, and renames it has. */
uint64_t write__overlay_changes(const struct overlay *overlay);

#endif
