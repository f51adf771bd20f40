/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's account: its part in the budget of memory (base/budget.h), and its time (base/account.h).
 *
 * Admission: when its route is known a request asks for what its body will take when it has been
 * parsed. Requests whose data outlives them (locks, sessions, scrolls, writes of transactions,
 * tasks) are refused first; those that release memory or show the server's state never, as long as
 * they are small; request_budget_level() decides which is which.
 *
 * Growth: the request's arena and its response ask for each chunk. When they are refused the work
 * continues until the next check (request_budget_refused()), and the request is answered with 429 whatever
 * its outcome: by request_submit() before a command is submitted, else by reply_finish(). A request
 * that has changed something gets its real response: from the submission of a command that changes
 * anything its response is not charged any more (request_budget_committed()), so its size is reserved
 * before.
 *
 * Time: the guard has the account, so code that fills an arena or a buffer of the request, or
 * loops, finds it there (budget_account()). It ends a request whose connection broke, that was
 * cancelled, that takes longer than --request-time or that the stopping server cannot wait for. The same
 * functions check and answer this as a refusal of memory.
 */
#ifndef TL_API_REQUEST_BUDGET_H
#define TL_API_REQUEST_BUDGET_H

#include "api/request/request.h"

/* Admits the request. Requires: request->route is set. Returns: 0; REQUEST_REFUSED. */
int request_budget_admit(struct request *request) TL_MUST_USE;

/* Reserves `bytes` for the reply and its parts, which then take them in steps. Returns: 0; REQUEST_REFUSED. */
int request_budget_take(struct request *request, size_t bytes) TL_MUST_USE;

/* Returns: whether the request has exceeded its memory or time. Loops whose length a client determines then end. */
static inline bool request_budget_refused(const struct request *request)
{
    return request->memory.refused || account_ended(&request->account);
}

/* As request_budget_refused(), for a loop that allocates nothing; charges the steps that the loop takes next. */
static inline bool request_budget_stops(struct request *request, uint64_t steps)
{
    return !account_take(&request->account, steps) || request->memory.refused;
}

/*
 * Sets request->problem. Assumes: request_budget_refused(), or a buffer of the request's is full.
 * Returns: REQUEST_REFUSED.
 */
int request_budget_refuse(struct request *request);

/* Returns: method and path, as a refusal names the request. */
struct slice request_budget_name(const struct request *request);

/*
 * Checks that the core may keep more for the request, and its response may double, as for a request
 * that keeps memory beyond its end. Nothing is reserved. Returns: 0; REQUEST_REFUSED, with
 * request->problem.
 */
int request_budget_check_reply(struct request *request) TL_MUST_USE;
/*
 * Reserves `bytes` for work of a request that is submitted, whose own part is not charged any more. The caller calls
 * budget_guard_end() when it has freed them, also after a refusal. Returns: 0; REQUEST_REFUSED, with request->problem.
 */
int request_budget_reserve(struct request *request, size_t bytes, struct budget_guard *ret_guard) TL_MUST_USE;
/*
 * Checks that work outside of a request may take more; `what` names it.
 * Returns: 0; REQUEST_REFUSED, with the problem.
 */
int request_budget_check_growth_for(const struct api *api, struct slice what, struct arena *arena,
                                    struct problem *ret_problem) TL_MUST_USE;

/* The request has changed something: from now on it is not charged, and its reservations are released. */
void request_budget_committed(struct request *request);

/* The request is over. */
void request_budget_end(struct request *request);

/* Returns: the maximum size of a JSON text's tree: yyjson has 16 bytes for each value and name, and grows by halves. */
size_t request_budget_of_json(struct slice text);

#endif
