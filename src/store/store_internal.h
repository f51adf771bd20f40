/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the implementations of a store. Only files of src/store include this.
 *
 * Each implementation embeds these structs as the first member of its own and fills in a table of
 * operations. store.c checks the callers' obligations, implements the common parts, and dispatches.
 */
#ifndef TL_STORE_STORE_INTERNAL_H
#define TL_STORE_STORE_INTERNAL_H

#include "store/store.h"

#include <stdatomic.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/check.h"
#include "base/magic.h"

#define STORE_MAGIC MAGIC('S', 't', 'o', 'r')
#define STORE_BATCH_MAGIC MAGIC('S', 'B', 'a', 't')
#define STORE_ITER_MAGIC MAGIC('S', 'I', 't', 'e')

/* The magic numbers are set and cleared by store.c, that of a store by its implementation's constructor. */
struct store {
    uint32_t magic; /* STORE_MAGIC */
    const struct store_ops *ops;
    _Atomic tl_ts history_low; /* reads below are refused (invariant 4); never decreases */
    tl_ts last_ts;             /* newest batch since the store was opened; the writer's */
};

struct store_batch {
    uint32_t magic; /* STORE_BATCH_MAGIC */
    struct store *store;
    tl_ts ts;
    bool begun;
    size_t count;
    size_t bytes;       /* of keys and values */
    bool tracks_digest; /* `digest` is computed */
    uint64_t digest;
};

/* Copies a value to `bytes`, with the timestamp in place of its first bytes: store_batch_put_stamped(). */
static inline void store__stamp(char *bytes, tl_ts ts, struct slice value)
{
    REQUIRE(value.len >= STORE_STAMP_BYTES);
    big_endian_put_u64(bytes, ts);
    memcpy(bytes + STORE_STAMP_BYTES, value.data + STORE_STAMP_BYTES, value.len - STORE_STAMP_BYTES);
}

struct store_iter {
    uint32_t magic; /* STORE_ITER_MAGIC */
    struct store *store;
    enum store_space space;
    tl_ts ts;
    /* Set by the implementation at each move; key and value if `valid`. */
    bool valid;
    int status; /* why the iterator is invalid; 0 at the end of the range */
    struct slice key;
    struct slice value;
};

struct store_ops {
    void (*close)(struct store *store);
    char *(*reason)(struct store *store);
    struct store_batch *(*batch_new)(struct store *store);
    void (*batch_free)(struct store_batch *batch);
    void (*batch_clear)(struct store_batch *batch);
    void (*batch_put)(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
    /* batch_put() of a key and a value that stay unchanged until the write; NULL: use batch_put(). */
    void (*batch_put_nocopy)(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
    /* As batch_put_nocopy() of the value as it is with the stamp; NULL: use batch_put(). */
    void (*batch_put_stamped)(struct store_batch *batch, enum store_space space, struct slice key, struct slice value);
    void (*batch_delete)(struct store_batch *batch, enum store_space space, struct slice key);
    void (*batch_delete_range)(struct store_batch *batch, enum store_space space, struct slice lower,
                               struct slice upper);
    int (*write)(struct store *store, struct store_batch *batch);
    int (*checkpoint)(struct store *store, struct slice record);
    int (*checkpointed)(struct store *store);
    int (*checkpoint_record)(struct store *store, struct buf *ret_record);
    /* The last owner is below UINT64_MAX. */
    int (*put_piece)(struct store *store, struct store_piece piece, struct slice bytes);
    int (*delete_pieces)(struct store *store, uint64_t first, uint64_t last);
    int (*get_piece)(struct store *store, struct store_piece piece, struct buf *ret_bytes);
    int (*count_pieces)(struct store *store, size_t *ret_count);
    void (*give_up)(struct store *store); /* NULL: it never blocks */
    size_t (*uncheckpointed_bytes)(const struct store *store);
    int (*get)(struct store *store, enum store_space space, tl_ts ts, struct slice key, struct store_value *ret_value);
    struct store_iter *(*iter_new)(struct store *store, enum store_space space, tl_ts ts, struct slice lower,
                                   struct slice upper);
    void (*iter_free)(struct store_iter *iter);
    void (*iter_seek_first)(struct store_iter *iter);
    void (*iter_seek_last)(struct store_iter *iter);
    void (*iter_seek)(struct store_iter *iter, struct slice key);
    void (*iter_seek_for_prev)(struct store_iter *iter, struct slice key);
    void (*iter_next)(struct store_iter *iter);
    void (*iter_prev)(struct store_iter *iter);
    int (*history_low_raised)(struct store *store);
    int (*compact)(struct store *store);
    void (*compact_cancel)(struct store *store); /* NULL: not cancellable */
    /* NULL: not supported. */
    int (*copy)(struct store *store, const char *directory, char **ret_reason);
    int (*verify)(struct store *store, char **ret_reason);
    void (*stats)(struct store *store, struct store_stats *ret_stats);
    uint64_t (*range_bytes)(struct store *store, enum store_space space, struct slice lower, struct slice upper);
    uint64_t (*free_bytes)(const struct store *store);
    bool (*is_ready)(struct store *store);
};

static inline bool store__space_is_versioned(enum store_space space)
{
    return space != SPACE_SYSTEM && space != SPACE_FEED;
}

/* Returns: whether a read at `ts` must be refused. */
static inline bool store__is_too_old(const struct store *store, enum store_space space, tl_ts ts)
{
    return store__space_is_versioned(space) && ts < atomic_load(&store->history_low);
}

#endif
