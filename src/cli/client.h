/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a server: one request after another on one connection, on libcurl.
 */
#ifndef TL_CLI_CLIENT_H
#define TL_CLI_CLIENT_H

#include <argp.h>
#include <curl/curl.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "json/value.h"

struct client {
    char *url; /* without a slash at its end */
    CURL *curl;
    struct curl_slist *headers;
    struct buf body;    /* of the last reply */
    yyjson_doc *json;   /* of the last reply; NULL: it was none */
    bool raw_numbers;   /* numbers of replies stay as they are written */
    uint64_t timestamp; /* Tidelock-Timestamp of the last reply; 0: it had none */
    bool connected;     /* a new connection was made since the caller cleared it */
    unsigned attempts;  /* to send the last request: each may have come about, though only the last one has a reply */
    bool timed_out;     /* the last request had no reply in its time */
    uint64_t after;     /* Tidelock-After of further requests; 0: none */
    bool in_transaction; /* client_set_transaction() has named one */
    bool of_tidelock;    /* see client_init_tidelock() */
    /* Called each second while a reply is awaited; true ends the request without one. NULL: never. */
    bool (*gives_up)(const struct client *client);
    void *context;             /* of gives_up, and the caller's */
    const _Atomic bool *cancelled; /* of gives_up: the caller needs no more replies; NULL: it does */
    const char *option_prefix; /* of the options that error texts name: "", or "cluster-" between hosts */
    const char *absent_advice; /* of error texts, where no server answers; NULL: none */
    char error[CURL_ERROR_SIZE + 128];
};

/*
 * The TLS options of a client, the same in all commands: rows for a table of options, and their
 * parser. They apply to all requests of this process.
 */
enum { CLIENT_OPTION_CACERT = 900, CLIENT_OPTION_CERT, CLIENT_OPTION_KEY };
#define CLIENT_OPTIONS(group)                                                                                         \
    {"cacert", CLIENT_OPTION_CACERT, "FILE", 0, "The CAs of the server's certificate, as PEM (the system's)", group}, \
        {"cert", CLIENT_OPTION_CERT, "FILE", 0, "The client's certificate, as PEM", group},                           \
    {                                                                                                                 \
        "key", CLIENT_OPTION_KEY, "FILE", 0, "The private key of --cert, as PEM (the same file)", group               \
    }
/* Puts them into the environment, for a command of ours that a child runs. */
void client_export(void);
/* Returns: ARGP_ERR_UNKNOWN for other options. */
error_t client_option(int key, const char *text);

/* Owns: the caller; client_deinit(). */
void client_init(struct client *client, const char *url);
/*
 * The same for a server that must be a Tidelock. A success without Tidelock-Timestamp, which all
 * responses of a Tidelock have, is of another program, and counts as no reply: nothing is done.
 */
void client_init_tidelock(struct client *client, const char *url);
void client_deinit(struct client *client);
/* Sends further requests to another server. */
void client_set_url(struct client *client, const char *url);
/* Adds a header to all further requests. */
void client_header(struct client *client, const char *name, const char *value);

/*
 * Sends a request and waits for the reply. `body` with data NULL: none; `timeout_us` 0: none.
 * Returns: the HTTP status; 0 when there was no reply, client_error() then says why.
 */
long client_request(struct client *client, const char *method, const char *path, struct slice body,
                    uint64_t timeout_us) TL_MUST_USE;

/* What a command ends with that had no reply: EX_UNAVAILABLE of sysexits.h. Else 1. */
enum { CLIENT_EXIT_ABSENT = 69 };
static inline int client_exit(long status)
{
    return status == 0 ? CLIENT_EXIT_ABSENT : 1;
}

/* Returns: why the last request had no reply, or what its error reply says; as it can be shown (escape.h). */
const char *client_error(const struct client *client, long status);

/* Whether the last request had no reply since that was larger than `body` may be. */
bool client_is_too_large(const struct client *client);

/* Returns: the JSON of the last reply; NULL: none. */
yyjson_val *client_json(const struct client *client);

/* Returns: whether the last reply is an error of a type, as "lock_wait_timeout_exception". */
bool client_has_error(const struct client *client, const char *type);

/* Appends `text` as one part of a path. */
void client_escape(struct buf *to, struct slice text);

/* Names the transaction that further requests are part of. `id` NULL: none. */
void client_set_transaction(struct client *client, const char *id);

/* Sets what every request of ours has in common; for handles of others. */
void client_configure(CURL *curl, struct curl_slist *headers);
/*
 * Appends the remedy, if one is known, to what curl says of a request that failed. `option_prefix`,
 * `absent_advice`: as in struct client.
 */
void client_add_advice(CURLcode result, bool tls, const char *option_prefix, const char *absent_advice, char *error,
                       size_t size);
/* A CURLOPT_WRITEFUNCTION that appends to a struct buf. */
size_t client_collect(char *bytes, size_t size, size_t count, void *buf);

#endif
