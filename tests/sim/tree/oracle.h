/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle of the tree simulator: each document keeps its full path, and a rename changes the
 * paths one by one. Written from docs/api.md and docs/locking.md, without the data structures of
 * the core.
 */
#ifndef TL_TESTS_SIM_TREE_ORACLE_H
#define TL_TESTS_SIM_TREE_ORACLE_H

#include "base/rand.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { ORACLE_DOCS = 24, ORACLE_PATH_MAX = 400, ORACLE_LOCKS = 64, ORACLE_OWNERS = 4 };

/* A document, or its state after deletion. */
struct oracle_doc {
    bool live;
    char path[ORACLE_PATH_MAX]; /* of a live document */
    int64_t version;            /* changes, deletions and renames of it or above it; 0: never written */
    int64_t seq_no;
};

/* All documents at one timestamp. */
struct oracle {
    struct oracle_doc docs[ORACLE_DOCS];
};

/* Returns: whether `path` is `directory` or below it. */
bool oracle_within(const char *path, const char *directory);
/* Returns: whether a document exists at or below a path. */
bool oracle_exists(const struct oracle *oracle, const char *path);
/* Renames the documents one by one. */
void oracle_rename(struct oracle *oracle, const char *from, const char *to, int64_t seq_no);

/*
 * Generates paths of few names, some unusual, so that they often collide. `plain`: only names that
 * a rename request allows.
 */
void oracle_random_path(struct rng *rng, bool plain, char *ret_path);

/* Exclusive locks: on a path and everything below it, or on a document wherever it is. */
struct oracle_lock {
    int owner;
    int doc; /* -1: on a path */
    char path[ORACLE_PATH_MAX];
};

struct oracle_locks {
    struct oracle_lock items[ORACLE_LOCKS];
    int count;
};

/* Acquires a lock. Returns: false: another owner's conflicts, or there are too many. */
bool oracle_lock_path(struct oracle_locks *locks, int owner, const char *path);
bool oracle_lock_doc(struct oracle_locks *locks, int owner, int doc, const char *path);
void oracle_unlock(struct oracle_locks *locks, int owner);
/* Returns: whether any lock is held at, above or below a path. */
bool oracle_locked(const struct oracle_locks *locks, const char *path);

#endif
