/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attachments: connections that keep a session.
 *
 * The response of GET /_session/{id}/_attach stays open. Every third of the session's ttl its lease
 * is renewed and a line of JSON is written; when the connection breaks the session ends at once,
 * and when the session ends the response does. A connection whose other side does not confirm the
 * lines any more (the client's host is gone) is broken after a ttl.
 *
 * One thread serves all attachments. An attachment is owned by that thread, by a keepalive command
 * under way, or is idle; it is freed by its current owner (struct attachment, `busy`).
 */
#ifndef TL_API_ATTACHMENT_H
#define TL_API_ATTACHMENT_H

#include "api/request/request.h"

struct attachments;

/* Returns: 0, TL_ERR_IO. Owns: the caller; attachments_close(). `journal` outlives it. */
int attachments_open(struct journal *journal, struct attachments **ret_attachments) TL_MUST_USE;

/* Ends all responses and leaves the sessions to their leases; new attachments are refused. */
void attachments_stop(struct attachments *attachments);
void attachments_close(struct attachments *attachments);

/* Keepalives that are due are submitted now, rather than when the thread gets to it. */
void attachments_beat(struct attachments *attachments);

/* The session has ended, as far as the caller knows: its attachments see for themselves, and end if so. */
void attachments_look(struct attachments *attachments, struct slice session);

/* Returns: a number for a new attachment, as SESSION_ATTACH wants it. */
uint64_t attachments_number(struct attachments *attachments);

/*
 * Opens the request's response and keeps the session alive from now on.
 * Assumes: the session was attached under `number`. Returns: REQUEST_PENDING.
 */
int attachments_add(struct attachments *attachments, struct request *request, struct slice session, uint64_t number,
                    tl_ts now, tl_ts expires_at) TL_MUST_USE;

#endif
