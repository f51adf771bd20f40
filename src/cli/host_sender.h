/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the api's calls to other hosts of the cluster (api/request/host_call.h): the one client that
 * hosts have for each other while they run.
 *
 * One thread with libcurl's multi interface has all calls: send() puts a call into a list and wakes
 * it. A call takes an idle connection to its host, or a new one; connections without a call stay
 * open for later ones.
 *
 * 1. *Calls reach the host that is meant.* Where a call is by https, the other host's certificate
 *    is for the name or address that it advertises, and of a CA in --cluster-ca (or of the
 *    system's); --cluster-cert is shown to it. The files are read for each new connection
 *    (client_configure()). Calls by http are for hosts without --tls-cert.
 * 2. *Calls and connections are bounded.* CALLS_MAX calls of clients are under way at a time; a
 *    further one ends at once, without a reply. A reply grows as its buffer permits.
 * 3. *A call ends*: with its reply; when connecting, or all of it, takes too long; when it gives up.
 * 4. `done` is called without a lock, after the sender has forgotten the call, which may then be
 *    sent again.
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
