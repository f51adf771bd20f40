/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's activity, for viewers: GET /_events, and the page (README.md, "page").
 *
 * A *frame* has the changes since the previous one: rows of locks, sessions, transactions and lock
 * events, and the numbers of the bar. One thread makes them, for all viewers at once: at most four
 * a second; only the numbers, once a second, while nothing changes; and none without a viewer. A
 * new viewer first gets a *snapshot*, all rows.
 *
 *   {"snapshot": true,                          only where all previous frames are void
 *    "timestamp", "server": {...},              with a snapshot: facts that are constant while the server runs
 *    "locks": {"put": [row], "drop": [N]},      rows have "row": N, by which a later one takes their place; so have
 *    "sessions", "transactions", "events",      ... these; left out where nothing changed
 *    "bar": {...},                              numbers, once a second
 *    "samples": [[writes, reads, commits, waiters]]}    of each second; with a snapshot those of
 *                                               the last five minutes, else the last one
 *
 * Invariants:
 *  1. A question to the writer costs it a few milliseconds, however many rows exist
 *     (STATUS_OVERVIEW); the next one follows after
 *     twenty times the time that the answer took.
 *  2. Viewers get public numbers and no ids: nothing in a frame gives access to anything.
 *  3. A viewer that does not read holds at most one frame, and delays no other: it gets a snapshot
 *     in place of the frames it missed.
 *  4. A viewer costs no thread.
 */
#ifndef TL_API_EVENTS_H
#define TL_API_EVENTS_H

#include "api/request/request.h"

struct events;

/* Returns: 0, TL_ERR_IO. Owns: the caller; events_close(). */
int events_open(struct api *api, struct events **ret_events) TL_MUST_USE;
/* Ends all responses and refuses new viewers. From any thread, any number of times. */
void events_stop(struct events *events);
/* Requires: no request enters any more. NULL is fine. */
void events_close(struct events *events);

#endif
