/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a cluster: writes that are answered only when other hosts have applied them (consistency.h).
 *
 *     command completed ─▶ distribution_hold() ─▶ hosts answer ─▶ request_finish() ─▶ reply
 *
 * A write is committed when its command completes; only its answer is held back. The hosts that are
 * not known to have its timestamp are asked, by GET /_cluster/hosts/{name}/_timestamp with
 * Tidelock-After, one question a host at a time (host_call.h). Each host is asked for the oldest
 * timestamp that a held answer waits for, and answers with its newest, so one question serves many
 * answers. A host that cannot be asked is heard of by its heartbeats in the log, once a second.
 *
 * Held answers end on two threads: the sender's, when a host has answered; and one of this module,
 * which observes heartbeats, hosts that are out, time limits and clients that have left, and asks
 * first. Only the answers that end are touched (held_answers.h).
 *
 * 1. An answer with success is sent only if each host within the write's reach serves reads at its
 *    timestamp, or is out of the cluster: then it serves no reads until it has joined again, which
 *    comes after the write in the log's order (journal/README.md, "In a cluster", invariant 4).
 * 2. No mutex is held and no thread waits while an answer is held back.
 * 3. A held answer ends within 30 s, and within a second once the server stops: with
 *    timestamp_not_reached_exception, the write stays. That of a client that has left ends at once.
 */
#ifndef TL_API_DISTRIBUTION_H
#define TL_API_DISTRIBUTION_H

#include "api/request/request.h"

struct distribution;

/* Returns: 0; TL_ERR_IO. Owns: the caller; distribution_close(). */
int distribution_open(struct api *api, struct distribution **ret_distribution) TL_MUST_USE;
/* Shortens the time limits: the server stops. Idempotent. NULL is allowed. */
void distribution_stop(struct distribution *distribution);
/* Requires: no answer is held back, and none will be. NULL is allowed. */
void distribution_close(struct distribution *distribution);

/* Records that a command of the request concerns other hosts' readers, if it does. */
void distribution_record(struct request *request, const struct command *command);

/*
 * Holds the request's answer back if it has written and not all hosts within reach have that.
 * Returns: true: the request is settled later, by request_finish().
 */
bool distribution_hold(struct request *request);

#endif
