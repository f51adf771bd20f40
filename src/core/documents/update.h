/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates: what `_update` makes of a document, by a partial document or by a script.
 *
 * The core is one thread, and a script may run for a tenth of a second and then fail. So those who submit bound it twice:
 *
 * - An update may grant its script few steps (write_update.script_steps). One that wants more is given up with
 *   `script_long`; who submitted it tries it again with update_run() on a thread of its own, and submits it without the bound
 *   only when it has been seen to succeed. A script that fails changes nothing, so its failure may be answered from there.
 * - The scripts of one command share what one script may take, beside UPDATE_STEPS_MIN that each may take anyhow.
 * - Once they have taken UPDATE_COMMAND_STEPS_MAX together, the items that follow are postponed: who submitted them submits them again, as the next command. An atomic
 *   write cannot be cut: its scripts take what one script may, or it is refused.
 */
#ifndef TL_CORE_UPDATE_H
#define TL_CORE_UPDATE_H

#include "core/documents/doc.h"
#include "core/step/command.h"

struct catalog;
struct mapping_type;
struct script_cache;

/* Steps that a script of a command with many has whatever the others took: hundreds of times what people write. */
#define UPDATE_STEPS_MIN ((uint64_t)20000)

/* Returns: what the scripts of a command share at its beginning. */
static inline uint64_t update_steps_shared(const struct script_limits *limits)
{
    return limits->steps_max > UPDATE_STEPS_MIN ? limits->steps_max - UPDATE_STEPS_MIN : 0;
}

/* Steps after which a command begins no further item: some 25 ms. */
#define UPDATE_COMMAND_STEPS_MAX ((uint64_t)1000000)

/* Returns: steps after which the scripts of a command are over. */
static inline uint64_t update_command_steps_max(const struct script_limits *limits, bool atomic)
{
    return atomic || limits->steps_max < UPDATE_COMMAND_STEPS_MAX ? limits->steps_max : UPDATE_COMMAND_STEPS_MAX;
}

enum update_op { UPDATE_INDEX, UPDATE_CREATE, UPDATE_DELETE, UPDATE_NOOP };

/* What an update starts from and what it comes to. */
struct update {
    enum dialect dialect;
    const struct write_item *item;
    struct slice index; /* names, as a script sees them */
    struct slice type;
    const struct doc *old;             /* NULL: the document does not exist */
    const struct mapping_type *mapped; /* says what of the source is there to be updated; NULL: no such type yet */
    const struct catalog *catalog;
    struct script_cache *scripts; /* NULL: scripts are compiled for this run alone */
    struct script_limits limits;
    struct account *account; /* of a rehearsal, which nobody may wait for any more; NULL in the core */
    struct slice zones;      /* for scripts; of the catalog */
    uint64_t *steps;         /* in and out: left to all scripts of the command; NULL: nobody shares them */
    tl_ts ts;                /* what a script takes for the time */
    struct arena *arena;     /* takes the new source, and the problem */
    struct arena *scratch;   /* for as long as this takes */

    struct slice shown;   /* the update's own: what there is of the old source */
    uint64_t steps_taken; /* out: by the script */
    bool script_long;     /* out: refused for more than item->update->script_steps */
    bool script_exhausted;    /* out: refused for more than the core allows */
    enum update_op op;    /* out */
    struct slice source;  /* out: the new source; of a noop and a delete the old one; absent where none is shown */
};

enum {
    UPDATE_REFUSED = 1, /* *ret_problem says why */
    UPDATE_MISSING = 2, /* no document, and nothing to put in its place */
};

/*
 * Computes an update; changes nothing. May run on any thread, where all that it is given may be used.
 * Returns: 0; UPDATE_REFUSED, UPDATE_MISSING; TL_ERR_CORRUPT for a stored source that is no JSON.
 */
int update_run(struct update *update, struct problem *ret_problem) TL_MUST_USE;

#endif
