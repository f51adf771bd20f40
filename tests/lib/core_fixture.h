/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for unit tests of the core: a core over an in-memory store, to which commands are applied
 * one after another.
 *
 * Each call makes a command, steps the core at the next timestamp and leaves the command in `last`,
 * where it is valid until the next call. Tests of commands that wait use fixture_give() instead, and
 * fixture_completed() for those that have completed.
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
    uint64_t clock;       /* of the commands; its origin differs from that of timestamps */
    enum dialect dialect; /* of new commands; initially DIALECT_7 */
    /* Allow steps above the bound of src/core/README.md, invariant 9; initially false */
    bool unbounded;
    struct command *last;
    /* Of fixture_give(): */
    uint64_t last_request; /* number of its last command */
    unsigned version;      /* of its commands; 0: their own */
    bool memory_full;      /* of all commands, as the journal gives it; initially false */
    bool checks_locks;     /* it checks the lock table after each step */
};

#define FIXTURE_START ((tl_ts)1000 * TL_SECOND)
#define FIXTURE_CLOCK ((uint64_t)7 * TL_SECOND)

void fixture_open(struct core_fixture *fixture);
void fixture_close(struct core_fixture *fixture);
/*
 * Saves the core, closes it and loads it again over the same store, with `limits`. Waiting commands
 * continue to wait, in memory of their own.
 */
void fixture_reopen(struct core_fixture *fixture);

/*
 * Steps a command `us` microseconds later, by both clock and timestamp. If something has expired by
 * then, a TICK is stepped first.
 * Returns: the command, which becomes `last`.
 */
struct command *fixture_run(struct core_fixture *fixture, struct command *command, uint64_t us);

/*
 * Step a command, which gets the next number if it has none, `us` microseconds or 10 later by its
 * clock. It may wait. Pieces and expiries that are due are left to further TICKs.
 */
void fixture_give_after(struct core_fixture *fixture, struct command *command, uint64_t us);
void fixture_give(struct core_fixture *fixture, struct command *command);
void fixture_tick(struct core_fixture *fixture);
/* Returns: the first command that has completed since, NULL: none has. Owns: the caller. */
struct command *fixture_completed(struct core_fixture *fixture);
/*
 * Returns: the completed command with a number, NULL if it has not completed. Frees those before it.
 * Owns: the caller.
 */
struct command *fixture_completed_as(struct core_fixture *fixture, uint64_t request);
/* Frees the commands that have completed since. Returns: how many. */
size_t fixture_free_completed(struct core_fixture *fixture);

/* Return a write of `count` empty items, and an item with defaults, for the caller to change. */
struct command *fixture_write_command(struct core_fixture *fixture, size_t count);
struct write_item fixture_item(enum write_op op, const char *index, const char *type, const char *id,
                               const char *source);
/* Runs a write of one item. Returns: its result. */
struct write_result *fixture_write_one(struct core_fixture *fixture, struct write_item item);

struct write_result *fixture_index(struct core_fixture *fixture, const char *index, const char *id, const char *source);
struct write_result *fixture_delete(struct core_fixture *fixture, const char *index, const char *id);
struct write_result *fixture_update(struct core_fixture *fixture, const char *index, const char *id,
                                    struct write_update update);

/* Run DDL and other commands of the catalog. Return: the command. */
struct command *fixture_index_command(struct core_fixture *fixture, enum command_type type, const char *name,
                                      const char *body);
struct command *fixture_object_command(struct core_fixture *fixture, enum command_type type, const char *name,
                                       const char *body);

/*
 * Return the source of a document, as of `ts` or now; NULL: no document. Valid until the next call.
 */
const char *fixture_source_at(struct core_fixture *fixture, const char *index, const char *id, tl_ts ts);
const char *fixture_source(struct core_fixture *fixture, const char *index, const char *id);
uint64_t fixture_digest(struct core_fixture *fixture);
uint64_t fixture_count(struct core_fixture *fixture, const char *index);

/* Begins, commits or rolls back a transaction, which must succeed. */
void fixture_txn(struct core_fixture *fixture, enum command_type type, const char *id);
/* Returns: the number of keys in a range of the store. */
size_t fixture_count_keys(struct core_fixture *fixture, enum store_space space, struct slice from, struct slice to);
/*
 * Return the number of documents with a number in a field, by entries that the documents confirm,
 * as of `ts` or now.
 */
size_t fixture_find_at(struct core_fixture *fixture, const char *index, const char *field, int number, tl_ts ts);
size_t fixture_find(struct core_fixture *fixture, const char *index, const char *field, int number);

#endif
