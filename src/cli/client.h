/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a server: one request after another on one connection, on libcurl.
 */
#ifndef TL_CLI_CLIENT_H
#define TL_CLI_CLIENT_H

#include <curl/curl.h>
#include <yyjson.h>

#include "base/alloc.h"
#include "base/buf.h"

struct client {
    char *url; /* without a slash at its end */
    CURL *curl;
    struct curl_slist *headers;
    struct buf body;  /* of the last reply */
    yyjson_doc *json; /* of the last reply; NULL: it was none */
    char error[CURL_ERROR_SIZE];
};

/* Owns: the caller; client_deinit(). */
void client_init(struct client *client, const char *url);
void client_deinit(struct client *client);

/*
 * Sends a request and waits for the reply. `body` with data NULL: none; `timeout_us` 0: none.
 * Returns: the HTTP status; 0 when there was no reply, client_error() then says why.
 */
long client_request(struct client *client, const char *method, const char *path, struct slice body,
                    uint64_t timeout_us) TL_MUST_USE;

/* Returns: why the last request had no reply, or what its error reply says; as it can be shown (shown.h). */
const char *client_error(const struct client *client, long status);

/* Returns: the JSON of the last reply; NULL: none. */
yyjson_val *client_json(const struct client *client);

/* Appends `text` as one part of a path. */
void client_escape(struct buf *to, struct slice text);

/* Sets what every request of ours has in common; for handles of others. */
void client_configure(CURL *curl, struct curl_slist *headers);
/* A CURLOPT_WRITEFUNCTION that appends to a struct buf. */
size_t client_collect(char *bytes, size_t size, size_t count, void *buf);

#endif
