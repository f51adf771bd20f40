/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts of the items of a _bulk: the steps that the core grants them, and the runs outside of the core of those
 * that need more (dry_run.h). Updates that read much are as scripts that take long here, whether or not they have a
 * script.
 *
 * - Items by themselves: an item whose script takes long is postponed, and so are those after it. They are sent
 *   again with its result.
 * - In a transaction: the same. The run reads in the transaction, whose lock on the document keeps the result valid.
 * - Atomic: the item fails, and with it the attempt, which has no effect. The next attempt has the results of all
 *   such items. A failure after the first of them says nothing, since that one has written nothing, unless it is a
 *   conflict about another document. If an earlier item of the request writes the document of one, only the core sees
 *   the document that its script reads:
 *   the next attempt grants that script UPDATE_COMMAND_STEPS_MAX, and it is refused beyond; its reads have no limit
 *   then. So are all scripts for a document after one that takes long, whatever they took: they may take long after it,
 *   and each attempt would show one more.
 * - Atomic in a transaction: partial documents are merged in the core, whatever they read. The core refuses such a
 *   write by the bytes of its sources, and the merged ones would count.
 * - Named (`Tidelock-Request`), by themselves: the same grant. A script is not run outside: a repetition has to find
 *   its result, or its failure, in the outcome of the request, and only the core makes outcomes.
 */
#ifndef TL_API_BULK_SCRIPTS_H
#define TL_API_BULK_SCRIPTS_H

#include "api/documents/dry_run.h"

/* Bytes that the scripts of an atomic request return together: as many as it may write. */
#define SCRIPT_RUNS_BYTES_MAX ((size_t)64 << 20)

/* An item whose script takes long. In the request's arena. */
struct script_run {
    struct script_run *next;
    struct dry_runs runs;
    uint64_t steps;            /* of the last run; only those of the one that counts are in steps_taken */
    bool in_core;              /* atomic: an earlier item writes its document */
    struct update_ready ready; /* what the script returned; given false: nothing, or not yet */
    struct arena made;         /* its source */
    struct arena kept_texts;   /* of the result that bulk_scripts_stop() has kept */
};

/* All of one request. */
struct bulk_scripts {
    bool atomic, named;
    bool in_one_step;     /* atomic in a transaction */
    uint64_t steps_taken; /* by scripts so far; atomic: by those outside */
    struct script_run *first;
};

/* Starts anew. */
void bulk_scripts_init(struct bulk_scripts *scripts, const struct request *request, bool atomic);
/* Frees what the scripts have returned. */
void bulk_scripts_deinit(struct bulk_scripts *scripts);

/*
 * Limits the script of an item in the core, or gives it what its run returned. `run` NULL: none.
 * The update is made in `arena`, and refers to run->made.
 */
void bulk_scripts_limit(const struct request *request, const struct bulk_scripts *scripts, const struct script_run *run,
                        struct arena *arena, struct write_item *item);

/* Returns: *io_run, which is made if it is NULL, for an item with that retry_on_conflict. */
struct script_run *bulk_scripts_run_of(struct request *request, struct bulk_scripts *scripts,
                                       struct script_run **io_run, int32_t retries, uint64_t until_us);

/*
 * Runs the script of an item. *result, which says that it takes long, becomes a failure; or stays postponed, to be
 * sent again.
 * Assumes: a worker's thread.
 * Returns: 0, also when the script failed; REQUEST_REFUSED: the request has ended, or is too large; fatal codes.
 */
int bulk_scripts_run(struct request *request, struct bulk_scripts *scripts, struct script_run *run,
                     const struct write_item *item, struct view view, struct write_result *result) TL_MUST_USE;

/*
 * Whether an item of an attempt of an atomic write failed only since its script takes long: the next attempt may
 * have its result.
 */
bool bulk_scripts_takes_long(const struct write_item *item, const struct write_result *result);

/* Says why scripts that had to run in the core, and took too long for that, have failed, and what to do. */
void bulk_scripts_explain_limit(const struct bulk_scripts *scripts, struct command *command);

/*
 * Keeps the result of an item whose script takes long, and is to be run, until the request ends or the next call:
 * there may be many. Assumes: *result is not the one that an earlier call has kept.
 */
void bulk_scripts_stop(struct script_run *run, struct write_result *result);

#endif
