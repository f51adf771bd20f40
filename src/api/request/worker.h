/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers: threads for what takes longer than an answer may keep the http threads, such as searches.
 */
#ifndef TL_API_WORKER_H
#define TL_API_WORKER_H

#include "api/request/request.h"

#define WORKERS_MAX API_WORKERS_MAX

struct workers;

/* Starts `count` threads. Returns: 0, TL_ERR_IO. Owns: the caller; workers_close. */
int workers_open(unsigned count, struct workers **ret_workers) TL_MUST_USE;
/* Lets what is queued run, then ends the threads. NULL is fine. */
void workers_close(struct workers *workers);

/* Has a worker call request->next and settle the request. */
void workers_add(struct workers *workers, struct request *request);

#endif
