/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a request; see request_name.h. */
#include "api/request/request_name.h"

#include "api/request/api_internal.h"
#include "api/request/handlers.h"

#define HEADER "Tidelock-Request"

/* Printable ASCII without spaces, so that a log or an error shows it as it was sent. */
static bool is_valid(struct slice id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i] <= ' ' || id.data[i] > '~')
            return false;
    return id.len > 0 && id.len <= WRITE_REQUEST_ID_BYTES_MAX;
}

static bool writes_documents(const struct request *request)
{
    request_handler *handler = request->route->handler;
    return handler == handle_doc_index || handler == handle_doc_create || handler == handle_doc_delete ||
           handler == handle_doc_update || handler == handle_bulk;
}

/* Hashes all that makes two requests equal. */
static uint64_t hash_of(const struct exchange *exchange)
{
    uint64_t hashes[] = {slice_hash(exchange->method_name), slice_hash(exchange->path), slice_hash(exchange->query),
                         slice_hash(exchange->body)};
    return slice_hash(slice_make(hashes, sizeof hashes));
}

int request_name_read(struct request *request)
{
    struct slice id = exchange_header(request->exchange, HEADER);
    if (id.data == NULL)
        return 0;
    if (!writes_documents(request))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[" HEADER "] is for writes of documents and [_bulk]: leave the header out of [%.*s]",
                              SLICE_ARG(request->exchange->path));
    if (!is_valid(id))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[" HEADER "] must be 1 to %d printable ASCII characters without spaces, got [%.*s]",
                              WRITE_REQUEST_ID_BYTES_MAX, SLICE_ARG(id));
    if (request->transaction.len > 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[" HEADER
                              "] is for writes outside of transactions: leave the header out; [GET /_transaction/{id}] "
                              "returns the outcome of a commit, and a commit may be repeated");
    request->named = (struct write_request){.id = id, .hash = hash_of(request->exchange)};
    return 0;
}
