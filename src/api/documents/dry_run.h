/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dry runs: an update that takes long, by its script or by the size of its document, runs on a worker, and the core
 * takes over its result.
 *
 * The core is one thread, so a script of a tenth of a second would hold up all writes for as long, and so
 * would the merge of a partial document into one of many megabytes. An update therefore grants its script
 * DRY_RUN_STEPS there, and the core does not begin one that reads more than UPDATE_READ_BYTES_MAX, with or
 * without a script. What needs more is run here, for the document as it is; if that fails, so does the
 * request, as if it had been made at that timestamp (invariant 4 of src/script: a script that fails changes
 * nothing). Else the update is submitted once more, with the parsed result (write_update.ready), which the
 * core takes over if the document is still the same. If another write came between, all this is repeated:
 * that is a conflict of Elasticsearch's updates, which get, run and index, and a client sees it only when
 * `timeout` and `retry_on_conflict` are exceeded.
 */
#ifndef TL_API_DRY_RUN_H
#define TL_API_DRY_RUN_H

#include "api/request/request.h"
#include "core/command/command.h"
#include "core/documents/update.h"

/* Steps that an update is granted in the core. */
#define DRY_RUN_STEPS UPDATE_LEFT_STEPS_MAX

/* The repetitions of one update. */
struct dry_runs {
    unsigned count;
    unsigned count_min; /* retry_on_conflict and one: so many in any case */
    uint64_t until_us;  /* boot clock: none is begun later */
};

/* What retry_on_conflict asks for at most. */
enum { DRY_RUNS_MAX = 1000 };

/* Returns: those of an update with that retry_on_conflict; as in Elasticsearch, a negative one asks for none. */
struct dry_runs dry_runs_of(int32_t retries, uint64_t until_us);

/* Returns: whether there may be one more, which is counted. */
bool dry_runs_next(struct dry_runs *runs);

/* A dry run of an item's update. */
struct dry_run {
    const struct write_item *item;
    struct view view;          /* the one to read; a transaction's own has its writes */
    uint64_t steps_max;        /* 0: as many as the core allows */
    struct arena *arena;       /* holds the result */
    uint64_t steps;            /* out */
    struct update_ready ready; /* out */
};

/*
 * Runs it; changes nothing.
 * Assumes: a worker's thread.
 * Returns: 0; REQUEST_REFUSED: the script failed, there is no memory for it, or the request has ended; fatal codes.
 */
int dry_run_script(struct request *request, struct dry_run *run) TL_MUST_USE;

#endif
