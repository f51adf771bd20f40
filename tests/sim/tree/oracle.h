/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tree of documents must be, written plainly: every document keeps its whole path, and a rename changes the path of one after
 * another. From the words of api.md and docs/locking.md, without knowing of nodes.
 */
#ifndef TL_TESTS_SIM_TREE_ORACLE_H
#define TL_TESTS_SIM_TREE_ORACLE_H

#include "base/rand.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_DOCS = 24, MODEL_PATH_MAX = 400, MODEL_LOCKS = 64, MODEL_OWNERS = 4 };

/* A document, or what is left of one. */
struct model_doc {
    bool live;
    char path[MODEL_PATH_MAX]; /* of a live one */
    int64_t version;           /* counts its changes, deletes and renames above it too; 0: never written */
    int64_t seq_no;
};

/* All documents at one moment. */
struct model {
    struct model_doc docs[MODEL_DOCS];
};

/* A text of the path of `directory` itself, or of something below it. */
bool model_within(const char *path, const char *directory);
/* Whether a document lies at a path or below it. */
bool model_exists(const struct model *model, const char *path);
/* Renames one document after another. */
void model_rename(struct model *model, const char *from, const char *to, int64_t seq_no);

/* Paths that meet often: of few names, some of them awkward. `plain`: with none that a request may not name. */
void model_random_path(struct rng *rng, bool plain, char *ret_path);

/* Exclusive locks: on a path with all below it, or on a document at all places where it may lie. */
struct model_lock {
    int owner;
    int doc; /* -1: on a path */
    char path[MODEL_PATH_MAX];
};

struct model_locks {
    struct model_lock items[MODEL_LOCKS];
    int count;
};

/* Takes a lock unless another owner's stands against it, or there are too many. Returns: whether it was taken. */
bool model_lock_path(struct model_locks *locks, int owner, const char *path);
bool model_lock_doc(struct model_locks *locks, int owner, int doc, const char *path);
void model_unlock(struct model_locks *locks, int owner);
/* Whether anybody holds anything at a path, below or above. */
bool model_locked(const struct model_locks *locks, const char *path);

#endif
