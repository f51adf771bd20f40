/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server is doing, for who looks on: GET /_events, and the page (README.md, "page").
 *
 * A *frame* says what has changed since the one before: rows of locks, sessions, transactions and stories, and the figures of the bar. One thread makes
 * them, for all viewers at once: at most four a second, none while nothing changes but for the figures once a second, and none at all while nobody looks.
 * Who comes gets a *snapshot* first, all rows there are.
 *
 *   {"snapshot": true,                          only where all that was told before is void
 *    "timestamp", "server": {...},              with a snapshot: what stays as it is while the server runs
 *    "locks": {"put": [row], "drop": [N]},      rows have "row": N, by which a later one takes their place; so have
 *    "sessions", "transactions", "stories",     ... these; left out where nothing changed
 *    "bar": {...},                              figures, once a second
 *    "samples": [[writes, reads, commits, waiters]]}    of each second; with a snapshot those of the last five minutes, else the last one
 *
 * Invariants:
 *  1. The writer is asked for what costs it some milliseconds, whatever there is (STATUS_OVERVIEW), and then left alone for twenty times as long as the answer took.
 *  2. Who looks on gets public numbers and no ids: nothing in a frame is a key to anything.
 *  3. A viewer that does not read holds no more than a frame, and nobody else up: what it has missed it gets as a snapshot.
 *  4. A viewer costs no thread.
 */
#ifndef TL_API_EVENTS_H
#define TL_API_EVENTS_H

#include "api/request/request.h"

struct events;

/* Returns: 0, TL_ERR_IO. Owns: the caller; events_close(). */
int events_open(struct api *api, struct events **ret_events) TL_MUST_USE;
/* Ends all responses; who comes is turned away. From any thread, again and again. */
void events_stop(struct events *events);
/* Requires: nobody comes any more. NULL is fine. */
void events_close(struct events *events);

#endif
