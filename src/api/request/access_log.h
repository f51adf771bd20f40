/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: a line for each request with its client and its status, at level `debug`, or at
 * `info` if the request removed, closed or forced something. Of the ids of sessions and transactions
 * only the first characters are logged, since an id gives access.
 */
#ifndef TL_API_ACCESS_LOG_H
#define TL_API_ACCESS_LOG_H

#include "api/request/request.h"

struct command;

/* Logs the completed command of a request on many indices. Requires: the command is not freed. */
void access_log_index(struct request *request, const struct command *command);

/* Writes the client's address, session and opaque id, as far as they are known. Returns: `to`. */
enum { ACCESS_LOG_CLIENT_BYTES = 256 };
const char *access_log_client(struct request *request, char to[static ACCESS_LOG_CLIENT_BYTES]);

/* Logs a request before its reply is sent. Requires: its status is set. */
void access_log_request(struct request *request);

#endif
