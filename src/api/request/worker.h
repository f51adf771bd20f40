/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers: threads for work that would occupy an http thread for too long.
 *
 * Work is long when its end cannot be predicted: searches, scrolls, lists of a million rows. It is
 * short when it ends within some tenths of a second, by the bytes that it reads: a large body to be
 * parsed, a large response to be built. Each kind has threads of its own; those for short work
 * never run long work, so that no number of searches delays a bulk request, and those for long work
 * run short work when they are idle.
 */
#ifndef TL_API_WORKER_H
#define TL_API_WORKER_H

#include "api/request/request.h"

#define WORKERS_MAX API_WORKERS_MAX

enum work_kind { WORK_SHORT, WORK_LONG, WORK_KIND_COUNT };

struct workers;

/*
 * Starts `count` threads for long work, and half as many for short. Returns: 0, TL_ERR_IO. Owns:
 * the caller; workers_close.
 */
int workers_open(unsigned count, struct workers **ret_workers) TL_MUST_USE;
/* Runs the queued requests, then ends the threads. NULL is fine. */
void workers_close(struct workers *workers);

/* Has a worker call request->next and settle the request. */
void workers_add(struct workers *workers, struct request *request, enum work_kind kind);

/* Whether long work that is added now would have to wait. */
bool workers_busy(struct workers *workers);

#endif
