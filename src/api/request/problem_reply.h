/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From problems to error envelopes: the only place that knows what an error looks like (README.md, invariant 2).
 */
#ifndef TL_API_PROBLEM_REPLY_H
#define TL_API_PROBLEM_REPLY_H

#include "api/request/reply.h"

/* Makes the whole response {"error": …, "status": n} of a problem. */
void problem_reply(struct request *request, const struct problem *problem);

/* The error object with `root_cause`, as items of _mget and _msearch have it. */
void problem_write(struct json_writer *writer, const struct problem *problem, enum dialect dialect);

/* The same without `root_cause`, as items of _bulk have it. */
void problem_write_item(struct json_writer *writer, const struct problem *problem);

/* Makes the whole response {"error": "text", "status": n}; `status_member` false leaves the second out. */
void problem_reply_text(struct request *request, int status, struct slice text, bool status_member);

/* Describes a fatal code as a problem of status 500, 503 or 507. */
void problem_from_code(struct problem *ret_problem, struct arena *arena, int code);

#endif
