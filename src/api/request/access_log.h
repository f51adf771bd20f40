/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines about requests: at `info` requests that removed, closed or overruled something, with
 * the client; at `debug` every request with its outcome.
 */
#ifndef TL_API_ACCESS_LOG_H
#define TL_API_ACCESS_LOG_H

#include "api/request/request.h"

struct command;

/*
 * Logs the outcome of one command of a request that works on many indices.
 * Assumes: the command is complete and not freed yet.
 */
void access_log_index(struct request *request, const struct command *command);

/* Writes the client, as far as known: "127.0.0.1:4711, session …, opaque id …". Returns: `to`. */
enum { ACCESS_LOG_CLIENT_BYTES = 256 };
const char *access_log_client(struct request *request, char to[static ACCESS_LOG_CLIENT_BYTES]);

/* Logs a request. Requires: its status is set; the response has not been sent yet. */
void access_log_request(struct request *request);

#endif
