/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the commands that add to the catalog: indices, fields of mappings, settings, aliases, templates, scripts.
 *
 * The catalog is in memory, no owner releases it, and the core does not ask the budget (base/budget.h, invariant 3). A
 * small put may create an index with a thousand fields, some megabytes. So a server whose memory is used as far as that
 * of requests that keep some refuses such commands, and still serves other small writes.
 */
#ifndef TL_API_REQUEST_CATALOG_GROWTH_H
#define TL_API_REQUEST_CATALOG_GROWTH_H

#include "api/request/request.h"

/*
 * Checks that the server has memory for what the command adds to the catalog. Not refused is a command that
 *  - is refused for another reason, or leaves the mapping as it is;
 *  - replaces a template, a script or aliases by others that are not larger, as applications do at each start;
 *  - changes settings by 1 KB or less, whether it adds some or not;
 *  - belongs to a request that has changed something.
 * What a script adds is unknown: it is refused where only the reserve is left. Nor is it known what the cleanup actions
 * of sessions add: they are not checked when they are executed. Concurrent requests are checked by the memory used
 * before any of them is executed.
 * Returns: 0; REQUEST_REFUSED, with request->problem.
 */
int catalog_growth_check(struct request *request, const struct command *command) TL_MUST_USE;

/*
 * The same for each of many commands of a request, also if those before have changed something: no guard counts what
 * they have left, such as the fields of thousands of indices.
 */
int catalog_growth_check_next(struct request *request, const struct command *command) TL_MUST_USE;

/*
 * The same for a write that no request submits, such as a batch of a by-query call. `what` names the call in the
 * problem. Returns: 0; REQUEST_REFUSED, with *ret_problem in `arena`.
 */
int catalog_growth_check_write(const struct api *api, const struct write_command *write, struct slice what,
                               struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

#endif
