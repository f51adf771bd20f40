/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core over a twin store, driven one command after another: what unit tests of the core share.
 *
 * Each call makes a command, steps the core at the next timestamp and leaves the result in box->last, which lives until
 * the next call.
 */
#ifndef TL_TESTS_LIB_CORE_FIXTURE_H
#define TL_TESTS_LIB_CORE_FIXTURE_H

#include "core/catalog/catalog.h"
#include "core/step/core.h"
#include "core/documents/doc.h"
#include "json/dialect.h"

struct core_fixture {
    struct store *store;
    struct core *core;
    struct effects effects;
    struct core_limits limits;
    tl_ts now;
    uint64_t clock;       /* of the commands; starts elsewhere than timestamps do */
    enum dialect dialect; /* of the commands that are made; DIALECT_7 at first */
    bool unbounded;       /* steps may take more than src/core/README.md, invariant 9, says; false at first */
    struct command *last;
};

#define FIXTURE_START ((tl_ts)1000 * TL_SECOND)
#define FIXTURE_CLOCK ((uint64_t)7 * TL_SECOND)

void fixture_open(struct core_fixture *box);
void fixture_close(struct core_fixture *box);
/* Closes and opens the core again over the same store. */
void fixture_reopen(struct core_fixture *box);

/*
 * Steps a command, after `us` microseconds, by the clock and in timestamps alike. What had run out by then does so first, by a TICK. The
 * command becomes box->last.
 */
struct command *fixture_run(struct core_fixture *box, struct command *command, uint64_t us);

/* A write of one item whose fields are as a plain request has them; to be changed before it runs. */
struct command *fixture_write_command(struct core_fixture *box, size_t count);
struct write_item fixture_item(enum write_op op, const char *index, const char *type, const char *id, const char *source);
/* Runs one item. Returns: its result. */
struct write_result *fixture_write_one(struct core_fixture *box, struct write_item item);

struct write_result *fixture_index(struct core_fixture *box, const char *index, const char *id, const char *source);
struct write_result *fixture_delete(struct core_fixture *box, const char *index, const char *id);
struct write_result *fixture_update(struct core_fixture *box, const char *index, const char *id, struct write_update update);

/* Catalog commands. */
struct command *fixture_index_command(struct core_fixture *box, enum command_type type, const char *name, const char *body);
struct command *fixture_object_command(struct core_fixture *box, enum command_type type, const char *name, const char *body);

/* Returns: the source of a document as of `ts`, NULL where there is none; lives until the next call. */
const char *fixture_source_at(struct core_fixture *box, const char *index, const char *id, tl_ts ts);
const char *fixture_source(struct core_fixture *box, const char *index, const char *id);
uint64_t fixture_digest(struct core_fixture *box);
uint64_t fixture_count(struct core_fixture *box, const char *index);

/* Begins, commits or rolls back a transaction, which must work. */
void fixture_txn(struct core_fixture *box, enum command_type type, const char *id);
/* Returns: how many keys a range of the store has now. */
size_t fixture_count_keys(struct core_fixture *box, enum store_space space, struct slice from, struct slice to);
/* Returns: how many documents have a number in a field, as the entries say and the documents confirm, as of `ts`. */
size_t fixture_find_at(struct core_fixture *box, const char *index, const char *field, int wanted, tl_ts ts);
size_t fixture_find(struct core_fixture *box, const char *index, const char *field, int wanted);

#endif
