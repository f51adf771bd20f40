/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines about requests: at `info` those that removed, closed or overruled something, with the client; at `debug` every request
 * with its outcome.
 */
#ifndef TL_API_TELL_H
#define TL_API_TELL_H

#include "api/request/request.h"

struct command;

/* A command of a request that works on many indices is done. Requires: before it is freed. */
void tell_index(struct request *request, const struct command *command);

/* Writes the client: "127.0.0.1:4711, session …, opaque id …", as far as known. Returns: `to`. */
enum { TELL_WHO_BYTES = 256 };
const char *tell_who(struct request *request, char to[static TELL_WHO_BYTES]);

/* The request is about to be answered: its status is set. */
void tell_request(struct request *request);

#endif
