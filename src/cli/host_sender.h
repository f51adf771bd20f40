/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the api's requests to other hosts of the cluster (api/request/host_call.h): one thread with libcurl, which keeps
 * connections open, for any number of calls.
 */
#ifndef TL_CLI_HOST_SENDER_H
#define TL_CLI_HOST_SENDER_H

#include "api/request/host_call.h"
#include "base/error.h"

struct sender;

/* Starts the thread. Returns: 0; TL_ERR_IO. Owns: the caller; host_sender_close(). */
int host_sender_open(struct sender **ret_sender) TL_MUST_USE;
/* Ends it. Requires: every call is done. NULL: no effect. */
void host_sender_close(struct sender *sender);

/* Returns: what the api is opened with. Lives: as the sender. */
const struct host_sender *host_sender_ops(struct sender *sender);

#endif
