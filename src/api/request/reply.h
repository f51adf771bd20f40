/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: writing exchange->response, and its final form.
 *
 *     struct json_writer w;
 *     reply_begin(request, 200, &w);
 *     json_begin(&w, '{');
 *     …
 *     return REQUEST_DONE;
 */
#ifndef TL_API_REPLY_H
#define TL_API_REPLY_H

#include "api/request/request.h"
#include "json/write.h"

/* Starts a JSON response. */
void reply_begin(struct request *request, int status, struct json_writer *ret_writer);

/* Starts a response of plain text. Returns: the buffer to write it into. */
struct buf *reply_text(struct request *request, int status);

/* Adds a response header. Requires: fewer than RESPONSE_HEADERS_MAX so far. */
void reply_header(struct request *request, const char *name, struct slice value);

/* A response without a body. Returns: REQUEST_DONE. */
int reply_empty(struct request *request, int status);

/* {"acknowledged":true}. Returns: REQUEST_DONE. */
int reply_acknowledged(struct request *request);

/* Returns: whether reply_finish() takes too long for a thread that other requests wait for. */
bool reply_takes_long(const struct request *request);
/*
 * Brings the response into its final form: filter_path, pretty, YAML, content type. Called by request_finish() alone,
 * before the exchange responds.
 */
void reply_finish(struct request *request);

/* "_shards": {"total", "successful", "failed"} as a member of the object being written. */
void reply_shards(struct json_writer *writer, unsigned total, unsigned successful);

#endif
