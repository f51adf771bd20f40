/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dry runs: a script that takes long is tried on a worker before the core runs it.
 *
 * The core is one thread, so a script that loops for ever would hold up all writes until its steps
 * are used up. An update therefore grants its script DRY_RUN_STEPS at first. What needs more is
 * run again here, against the current document: if that fails, so does the request, as if it had
 * been made at that timestamp (invariant 4 of src/script: a script that fails changes nothing).
 * Only one that succeeds is submitted with all the steps there are.
 */
#ifndef TL_API_DRY_RUN_H
#define TL_API_DRY_RUN_H

#include "api/request/request.h"
#include "core/command/command.h"

/* Steps that take the core some milliseconds at most; what people write takes tens. */
#define DRY_RUN_STEPS ((uint64_t)50000)

/*
 * Runs the script of an update of the newest committed document; changes nothing.
 * Requires: no transaction, a worker's thread.
 * Returns: 0 when it succeeded, and when only the core can decide; REQUEST_REFUSED; fatal codes.
 */
int dry_run_script(struct request *request, const struct write_item *item) TL_MUST_USE;

#endif
