/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates: computes the new source of a document from a partial document or a script.
 *
 * The core is a single thread, and a script may run for a tenth of a second and then fail. So the steps of scripts
 * in the core are limited in three ways:
 *
 * 1. One script: write_update.script_steps, which the submitter grants, and UPDATE_COMMAND_STEPS_MAX for any
 *    submitter. The grant is for scripts that can run elsewhere: one that exceeds it is stopped with `script_long`,
 *    and the submitter runs the update with update_run() on another thread and submits its result
 *    (write_update.ready). That is valid for the document that the script read: if another write came between, the
 *    item fails with `script_long` again, and the submitter repeats this with the new document. A failed script
 *    changes nothing, so the submitter may report that failure itself. With write_update.script_postpones such an
 *    item, and those after it, are postponed rather than failed. The limit is for the others: actions of ended
 *    sessions, which have no submitter, and what ../../api/documents/bulk_scripts.h names. They fail beyond it, with
 *    `script_exhausted` unless it was granted.
 * 2. The scripts of one command share the steps allowed for one script (`script.steps_max`, --script-steps), and so do
 *    those of the actions of one session. In addition each may use UPDATE_STEPS_MIN. It bounds what a client gets for
 *    one request.
 * 3. When the scripts of a command have used UPDATE_COMMAND_STEPS_MAX, its remaining items are postponed: the submitter
 *    sends them again as the next command. An atomic write continues in pieces, each of which has these steps; all of
 *    them fail together where they exceed the shared ones. In a transaction it is one step, and fails.
 *
 * An update also takes time in proportion to the stored document, which is read, and to its result, which is parsed. So
 * one that reads more than UPDATE_READ_BYTES_MAX, by a script or a merge, or an upsert as large, is left to its
 * submitter in the same way if that grants UPDATE_LEFT_STEPS_MAX at most: it fails with `script_long` before it is
 * begun (update_is_left(); not in commands before version 26).
 *
 * Before version 17 of commands a script had `script.steps_max` in the core, and so had those of an atomic write in a
 * transaction together.
 */
#ifndef TL_CORE_UPDATE_H
#define TL_CORE_UPDATE_H

#include "core/documents/doc.h"
#include "core/command/command.h"

struct catalog;
struct mapping_type;
struct script_cache;

/*
 * Steps that each script of a command may use, whatever the others used; hundreds of times a usual
 * script.
 */
#define UPDATE_STEPS_MIN ((uint64_t)20000)

/* Returns: whether the update is by a script. */
static inline bool update_has_script(const struct write_update *update)
{
    return update->script_source.data != NULL || update->script_id.data != NULL || update->script_file.data != NULL;
}

/* Returns: the steps that all scripts of a command share. */
static inline uint64_t update_steps_shared(const struct script_limits *limits)
{
    return limits->steps_max > UPDATE_STEPS_MIN ? limits->steps_max - UPDATE_STEPS_MIN : 0;
}

/*
 * Bytes of the stored document and of the request that an update reads in the core if its submitter can run it. They
 * take 10 ms with 25,000 members, at 0.4 us each, and 20 ms at most. If the update runs outside, the log, in a cluster
 * etcd, has the whole document.
 */
#define UPDATE_READ_BYTES_MAX ((size_t)512 << 10)

/*
 * Script steps that a submitter grants at most if it runs longer updates itself; some milliseconds, and what people
 * write takes tens. One that does not run them grants more.
 */
#define UPDATE_LEFT_STEPS_MAX ((uint64_t)50000)

/* Script steps after which a command starts no further item, and those of one script; 8 to 40 ms. */
#define UPDATE_COMMAND_STEPS_MAX ((uint64_t)1000000)

/* Returns: that limit for a command; an atomic one may use all the steps of one script. */
static inline uint64_t update_command_steps_max(const struct script_limits *limits, bool atomic)
{
    return atomic || limits->steps_max < UPDATE_COMMAND_STEPS_MAX ? limits->steps_max : UPDATE_COMMAND_STEPS_MAX;
}

/* Returns: the steps of one script in the core, in a step of that version of commands. */
static inline uint64_t update_script_steps_max(const struct script_limits *limits, unsigned version)
{
    bool bounded = version >= COMMAND_SINCE_SCRIPT_LIMIT && limits->steps_max > UPDATE_COMMAND_STEPS_MAX;
    return bounded ? UPDATE_COMMAND_STEPS_MAX : limits->steps_max;
}

/*
 * The result of a script or a merge, for another update_run() of the same item in the same unit. That
 * takes it over if everything that it depends on is still the same: the document, the names of its index, and the type
 * that filters its source. Time, scripts and time zones do not change within a unit. Its steps count once;
 * with update.old_counts they count again, and then the limit of steps must be the same, too.
 */
struct update_kept {
    struct update_ready ready; /* its operation and source if status is 0 */
    const struct mapping_type
        *mapped; /* only compared: it exists for as long as the unit; NULL: there was no document */
    struct slice index;
    uint64_t steps_max; /* of the script */
    uint64_t steps_taken;
    int status;     /* that update_run() returned */
    bool shows_old; /* the source is that of the old document, and ready.source is not set */
    bool script_long;
    bool script_exhausted;
    struct problem problem; /* if status is not 0 */
};

/* The input and result of an update. Fields are inputs unless marked. */
struct update {
    enum dialect dialect;
    const struct write_item *item;
    struct slice index; /* names of index and type, as scripts see them */
    struct slice type;
    const struct doc *old;             /* NULL: the document does not exist */
    const struct mapping_type *mapped; /* filters the old source; NULL: no such type yet */
    const struct catalog *catalog;
    struct script_cache *scripts; /* NULL: compile without a cache */
    struct script_limits limits;
    struct account *account; /* of a dry run, which may be cancelled; NULL in the core */
    struct slice zones;      /* the catalog's time zones, for scripts */
    bool old_library;        /* script_update.old_library, for a command before COMMAND_SINCE_JAVA_FORMATS */
    bool old_formats;        /* script_update.old_formats, for a command before COMMAND_SINCE_SCRIPT_FORMATS */
    bool leaves_large;       /* update_is_left() applies; not in a run outside of the core */
    bool old_counts;         /* the steps of `kept` count again, for a command before COMMAND_SINCE_SCRIPTS_ONCE */
    bool old_filters; /* filters of the mapping have no limit, for a command before COMMAND_SINCE_PATTERNS_BOUNDED */
    uint64_t *steps;         /* in, out: steps left to the command's scripts; NULL: not shared */
    const struct update_kept *kept; /* of an earlier run in this unit, taken over if it is valid; NULL: none */
    tl_ts ts;                /* current time of scripts */
    struct arena *arena;     /* holds the new source and the problem */
    struct arena *scratch;   /* released by the caller after the update */

    struct slice visible_source; /* internal: the old source as the mapping shows it; data NULL: none */
    uint64_t steps_max;          /* out: limit of the script that ran; 0: none did */
    bool took_kept;              /* out: `kept` was valid */
    uint64_t steps_taken;        /* out: by the script, or by that of `kept` */
    bool script_long;            /* out: failed, needs more than item->update->script_steps, or is left */
    bool script_exhausted;       /* out: failed, needs more than the core allows */
    size_t values;               /* out: of JSON, that were read to merge it or for the script */
    uint64_t filtered;           /* out: what the filter of the mapping compares: mapping_filter_work() */
    enum update_op op;           /* out */
    struct slice source;         /* out: new source; no-op, delete: the old one; data NULL: not visible */
};

enum {
    UPDATE_REFUSED = 1, /* *ret_problem is set */
    UPDATE_MISSING = 2, /* no document, and no upsert to create it from */
    UPDATE_STALE = 3,   /* item->update->ready is of another version of the document */
};

/*
 * Returns: whether the core leaves an update to its submitter for the bytes that it would read. One whose document has
 *   no visible source is refused at once. Follows from state and command.
 */
bool update_is_left(const struct update *update);

/*
 * Computes an update and changes nothing. Runs on any thread that may use its inputs.
 *
 * Returns: 0; UPDATE_REFUSED, UPDATE_MISSING, UPDATE_STALE; TL_ERR_CORRUPT: the stored source is not valid JSON.
 */
int update_run(struct update *update, struct problem *ret_problem) TL_MUST_USE;

/* Returns: what an update returned, with the version of the document that it read. Assumes: it has not failed. */
struct update_ready update_result(const struct update *update);

/* Returns: the bytes that update_keep() takes, about: they decide how often a script runs. Requires: as that. */
size_t update_kept_bytes(const struct update *update, int status, const struct problem *problem);
/*
 * Keeps what update_run() computed in `arena`. `status`, `problem`: its results.
 *
 * Requires: update->steps_max > 0 or update->values > 0; status is not an error; update->mapped exists for as
 *   long as the result is used.
 */
struct update_kept *update_keep(const struct update *update, int status, const struct problem *problem,
                                struct arena *arena);

#endif
