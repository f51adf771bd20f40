/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage: a core over an in-memory store, simulated time, and actors that execute statements. The trace has a line for each event,
 * with the time in milliseconds since the beginning.
 */
#ifndef TL_TESTS_ISOLATION_STAGE_H
#define TL_TESTS_ISOLATION_STAGE_H

#include "base/buf.h"
#include "core/step/core.h"
#include "journal/query_txns.h"

enum { STAGE_ACTORS_MAX = 10 };

struct actor {
    const char *name;
    struct command *command; /* that waits; NULL: none */
    char statement[512];     /* the statement under way */
    bool waited;             /* the current statement */
    struct buf results;      /* of its statements, without times */
    long value;              /* the last number that it read */
    tl_ts token;             /* of its last grant */
};

enum { STAGE_NUMBERS_MAX = 10000 };

struct stage {
    struct store *store;
    struct core *core;
    struct effects effects;
    struct query_txns queries; /* of the host */
    tl_ts now;
    uint64_t requests;
    struct actor actors[STAGE_ACTORS_MAX];
    size_t actor_count;
    size_t stories_told; /* of the core's own */
    struct buf story;
    char *ids[STAGE_NUMBERS_MAX]; /* of sessions and transactions by their public numbers; NULL: none yet. mem_free */
};

void stage_open(struct stage *stage);
void stage_close(struct stage *stage);
size_t stage_add_actor(struct stage *stage, const char *name);

/* Lets an actor do a statement, 10 ms after the last one. Requires: it waits for nothing. */
void stage_do(struct stage *stage, size_t actor, const char *statement);

/* Appends the results of all actors' statements, without times and independent of their order. */
void stage_outcome(const struct stage *stage, struct buf *ret_text);

/* Lets time pass until something falls due. Returns: false when nothing ever will. */
bool stage_pass(struct stage *stage);

#endif
