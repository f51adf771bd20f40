/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An api over a journal, a core and an in-memory store, called through exchanges of the test's own: the fixture of
 * tests of requests. No sockets.
 */
#ifndef TL_TESTS_LIB_API_FIXTURE_H
#define TL_TESTS_LIB_API_FIXTURE_H

#include <pthread.h>

#include "api/request/api.h"

struct cmdlog_fixture;

struct api_fixture {
    struct store *store;
    struct cmdlog_fixture *kept;
    struct core *core;
    struct journal *journal;
    struct api *api;
    char *data_directory;  /* NULL: none */
    uint64_t history_us;   /* 0: an hour */
    struct budget *budget; /* NULL: none */
};

void api_fixture_open(struct api_fixture *fixture);
void api_fixture_close(struct api_fixture *fixture);

/* A request and what came of it. */
struct fixture_exchange {
    struct exchange exchange;
    struct response_header sent[8]; /* request headers */
    size_t sent_count;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool answered;
    bool streaming;
    bool closed; /* the stream */
    struct buf stream;
};

/* Makes a request. `body` may be NULL. Owns: the caller; fixture_exchange_free. */
struct fixture_exchange *fixture_exchange_new(const char *method, const char *target, const char *body);
void fixture_exchange_free(struct fixture_exchange *sent);
void fixture_exchange_header(struct fixture_exchange *sent, const char *name, const char *value);

/* Hands it to the api and returns at once. */
void fixture_exchange_start(struct api_fixture *fixture, struct fixture_exchange *sent);
/* Waits for the answer, or for the stream's end. */
void fixture_exchange_wait(struct fixture_exchange *sent);
/* The same for at most `ms` milliseconds. Returns: whether it came. */
bool fixture_exchange_wait_ms(struct fixture_exchange *sent, unsigned ms);
/* Waits until a stream has `lines` lines. */
void fixture_exchange_wait_lines(struct fixture_exchange *sent, size_t lines);
/* The connection breaks. */
void fixture_exchange_break(struct fixture_exchange *sent);

/* The whole of it: returns the status; *ret_body (may be NULL) is to be freed by mem_free. */
int api_fixture_ask(struct api_fixture *fixture, const char *method, const char *target, const char *body,
                    char **ret_body);

/* Asks, and fails unless status and body are as expected. `expected` may end in "*": only its beginning counts then. */
void api_fixture_expect(struct api_fixture *fixture, const char *method, const char *target, const char *body,
                        int status, const char *expected);

#endif
