/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An api over a journal, a core and an in-memory store, called through exchanges of the test's own: the fixture of
 * tests of requests. No sockets.
 */
#ifndef TL_TESTS_LIB_API_BOX_H
#define TL_TESTS_LIB_API_BOX_H

#include <pthread.h>

#include "api/request/api.h"

struct cmdlog_fixture;

struct api_box {
    struct store *store;
    struct cmdlog_fixture *kept;
    struct core *core;
    struct journal *journal;
    struct api *api;
    char *data_directory;  /* NULL: none */
    uint64_t history_us;   /* 0: an hour */
    struct budget *budget; /* NULL: none */
};

void api_box_open(struct api_box *box);
void api_box_close(struct api_box *box);

/* A request and what came of it. */
struct box_exchange {
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

/* Makes a request. `body` may be NULL. Owns: the caller; box_exchange_free. */
struct box_exchange *box_exchange_new(const char *method, const char *target, const char *body);
void box_exchange_free(struct box_exchange *sent);
void box_exchange_header(struct box_exchange *sent, const char *name, const char *value);

/* Hands it to the api and returns at once. */
void box_exchange_start(struct api_box *box, struct box_exchange *sent);
/* Waits for the answer, or for the stream's end. */
void box_exchange_wait(struct box_exchange *sent);
/* The same for at most `ms` milliseconds. Returns: whether it came. */
bool box_exchange_wait_ms(struct box_exchange *sent, unsigned ms);
/* Waits until a stream has `lines` lines. */
void box_exchange_wait_lines(struct box_exchange *sent, size_t lines);
/* The connection breaks. */
void box_exchange_break(struct box_exchange *sent);

/* The whole of it: returns the status; *ret_body (may be NULL) is to be freed by mem_free. */
int api_box_ask(struct api_box *box, const char *method, const char *target, const char *body, char **ret_body);

/* Asks, and fails unless status and body are as expected. `expected` may end in "*": only its beginning counts then. */
void api_box_expect(struct api_box *box, const char *method, const char *target, const char *body, int status,
                    const char *expected);

#endif
