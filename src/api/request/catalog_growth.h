/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserves memory for the commands that add to the catalog: indices, fields of mappings, settings, aliases, templates,
 * scripts.
 *
 * The catalog is in memory, no owner releases it, and the core does not ask the budget (base/budget.h, invariant 3). A
 * small put may create an index with a thousand fields, some megabytes. So a server whose memory is used as far as that
 * of requests that keep some refuses such commands, and still serves other small writes. Those that are in flight
 * together are counted together, until they are done (growth_table.h).
 *
 * Additions by cleanup actions of sessions, which no request submits, are bounded by the core: the actions are put
 * aside if the host has no memory for them (core/README-locks.md, "Actions that are put aside").
 */
#ifndef TL_API_REQUEST_CATALOG_GROWTH_H
#define TL_API_REQUEST_CATALOG_GROWTH_H

#include "api/request/growth_table.h"
#include "api/request/request.h"

/*
 * Reserves memory for what a command adds to the catalog, until it is done: request->growth. Does nothing if the
 * request has reserved some, for a command that it did not submit. Not refused is a command that
 *  - is refused for another reason, or adds nothing;
 *  - replaces a template, a script or aliases by others that are not larger, as applications do at each start;
 *  - changes settings by 1 KB or less, of an index or cluster that has few.
 * What a script adds is unknown: its update is refused where only the reserve is left.
 * Returns: 0; REQUEST_REFUSED, with request->problem.
 */
int catalog_growth_reserve(struct request *request, const struct command *command) TL_MUST_USE;

/*
 * The same for a write that no request submits, such as a batch of a by-query call. `what` names the call in the
 * problem. Returns: 0; REQUEST_REFUSED, with *ret_problem in `arena`. Owns: the caller, *ret_promise.
 */
int catalog_growth_reserve_write(const struct api *api, const struct write_command *write, struct slice what,
                                 struct arena *arena, struct growth_promise *ret_promise,
                                 struct problem *ret_problem) TL_MUST_USE;

#endif
