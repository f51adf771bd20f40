/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids that the server generates: of documents, indices, sessions and transactions.
 *
 * Made outside the core and fixed in the command before the core sees it. A document's id has 20
 * characters and begins with the part that changes slowest, so that ids made in sequence are
 * adjacent in the store; the others are 22 characters from the kernel's randomness (getrandom(2)):
 * the next cannot be guessed from previous ones.
 *
 * They have the digits of URLs, `-` and `_`, without padding; the Base64 of scripts
 * (base/base64.h) has `+` and `/`, and pads.
 */
#ifndef TL_API_ID_H
#define TL_API_ID_H

#include <pthread.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/types.h"

enum { ID_DOCUMENT_BYTES = 20, ID_BYTES = 22 };

struct id_source {
    pthread_mutex_t lock;
    uint64_t sequence;  /* rises with each document id */
    uint64_t last_tick; /* of the clock, in microseconds */
    uint32_t host;      /* random, this process's part of document ids */
};

/* Returns: 0; TL_ERR_IO when the kernel has no randomness to give. */
int id_source_init(struct id_source *source) TL_MUST_USE;
void id_source_deinit(struct id_source *source);

/* Returns: a new document id in `arena`; `now` is the clock in microseconds. From any thread. */
struct slice id_document(struct id_source *source, uint64_t now, struct arena *arena);

/*
 * Writes the id of ID_BYTES characters that belongs to a name, the same on all hosts and in all runs, and a
 * terminating NUL. Different names have different ids, unless they were chosen to collide.
 */
void id_of_name(struct slice name, char id[]);

/* Returns: a new random id of ID_BYTES characters in `arena`. From any thread. */
struct slice id_random(struct id_source *source, struct arena *arena);

/*
 * Query transactions are one host's, so in a cluster their ids name it: "query", the host's number as
 * four hexadecimal digits, ID_BYTES random characters. Alone (`host` 0) they are as id_random() makes
 * them.
 *
 * Returns: a new id in `arena`. From any thread.
 */
struct slice id_query_txn(struct id_source *source, uint16_t host, struct arena *arena);
/* Returns: the number of the host that the id of a query transaction names; 0: it names none. */
uint16_t id_query_txn_host(struct slice id);

#endif
