/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of a spec: a core over an in-memory store, simulated time, and actors that execute statements. The trace
 * has a line for each event, with the time in milliseconds since the beginning.
 */
#ifndef TL_TESTS_ISOLATION_DRIVER_H
#define TL_TESTS_ISOLATION_DRIVER_H

#include "base/buf.h"
#include "core/step/core.h"
#include "journal/query_txns.h"

enum { DRIVER_ACTORS_MAX = 10 };

struct actor {
    const char *name;
    struct command *command; /* that waits; NULL: none */
    char statement[512];     /* the statement under way */
    bool waited;             /* the current statement */
    struct buf results;      /* of its statements, without times */
    long value;              /* the last number that it read */
    tl_ts token;             /* of its last grant */
};

enum { DRIVER_NUMBERS_MAX = 10000 };

struct driver {
    struct store *store;
    struct core *core;
    struct effects effects;
    struct query_txns queries; /* of the host */
    tl_ts now;
    uint64_t requests;
    struct actor actors[DRIVER_ACTORS_MAX];
    size_t actor_count;
    size_t events_printed; /* of the core's own */
    struct buf trace;
    char *ids[DRIVER_NUMBERS_MAX]; /* of sessions and transactions by their public numbers; NULL: none yet. mem_free */
};

void driver_open(struct driver *driver);
void driver_close(struct driver *driver);
size_t driver_add_actor(struct driver *driver, const char *name);

/* Lets an actor do a statement, 10 ms after the last one. Requires: it waits for nothing. */
void driver_do(struct driver *driver, size_t actor, const char *statement);

/* Appends the results of all actors' statements, without times and independent of their order. */
void driver_outcome(const struct driver *driver, struct buf *ret_text);

/* Lets time pass until something falls due. Returns: false when nothing ever will. */
bool driver_pass(struct driver *driver);

#endif
