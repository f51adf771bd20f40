/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of the store on RocksDB. */
#include "base/alloc.h"
#include "base/check.h"
#include "store/rocks_internal.h"

struct rocks_iter {
    struct store_iter base;
    rocksdb_readoptions_t *options; /* points at `ts` and `bounds` */
    rocksdb_iterator_t *iter;
    char ts[ROCKS_TS_BYTES];
    char bounds[]; /* lower, then upper */
};

static void set_bounds(struct rocks_iter *iter, struct slice lower, struct slice upper)
{
    if (lower.len > 0) {
        memcpy(iter->bounds, lower.data, lower.len);
        rocksdb_readoptions_set_iterate_lower_bound(iter->options, iter->bounds, lower.len);
    }
    if (upper.len > 0) {
        memcpy(iter->bounds + lower.len, upper.data, upper.len);
        rocksdb_readoptions_set_iterate_upper_bound(iter->options, iter->bounds + lower.len, upper.len);
    }
}

struct store_iter *rocks__iter_new(struct store *store, enum store_space space, tl_ts ts, struct slice lower,
                                   struct slice upper)
{
    struct rocks_store *rocks = rocks_of(store);
    REQUIRE(rocks->families[space] != NULL);
    struct rocks_iter *iter = mem_alloc(sizeof *iter + lower.len + upper.len);
    *iter = (struct rocks_iter){.options = rocksdb_readoptions_create()};
    set_bounds(iter, lower, upper);
    if (store__space_is_versioned(space)) {
        rocks_ts_encode(ts, iter->ts);
        rocksdb_readoptions_set_timestamp(iter->options, iter->ts, sizeof iter->ts);
    }
    rocks__quiet();
    iter->iter = rocksdb_create_iterator_cf(rocks->db, iter->options, rocks->families[space]);
    return &iter->base;
}

void rocks__iter_free(struct store_iter *base)
{
    struct rocks_iter *iter = (struct rocks_iter *)base;
    rocksdb_iter_destroy(iter->iter);
    rocksdb_readoptions_destroy(iter->options);
    mem_free(iter);
}

/* Copies RocksDB's position and status after a move. */
static void show_position(struct rocks_iter *iter)
{
    iter->base.valid = rocksdb_iter_valid(iter->iter);
    if (iter->base.valid) {
        iter->base.key.data = rocksdb_iter_key(iter->iter, &iter->base.key.len);
        iter->base.value.data = rocksdb_iter_value(iter->iter, &iter->base.value.len);
        return;
    }
    char *error = NULL;
    rocksdb_iter_get_error(iter->iter, &error);
    iter->base.status = error == NULL ? 0 : rocks__fail(rocks_of(iter->base.store), error);
}

void rocks__iter_seek_first(struct store_iter *base)
{
    struct rocks_iter *iter = (struct rocks_iter *)base;
    rocksdb_iter_seek_to_first(iter->iter);
    show_position(iter);
}

void rocks__iter_seek_last(struct store_iter *base)
{
    struct rocks_iter *iter = (struct rocks_iter *)base;
    rocksdb_iter_seek_to_last(iter->iter);
    show_position(iter);
}

void rocks__iter_seek(struct store_iter *base, struct slice key)
{
    struct rocks_iter *iter = (struct rocks_iter *)base;
    rocksdb_iter_seek(iter->iter, key.data, key.len);
    show_position(iter);
}

void rocks__iter_seek_for_prev(struct store_iter *base, struct slice key)
{
    struct rocks_iter *iter = (struct rocks_iter *)base;
    rocksdb_iter_seek_for_prev(iter->iter, key.data, key.len);
    show_position(iter);
}

void rocks__iter_next(struct store_iter *base)
{
    struct rocks_iter *iter = (struct rocks_iter *)base;
    rocksdb_iter_next(iter->iter);
    show_position(iter);
}

void rocks__iter_prev(struct store_iter *base)
{
    struct rocks_iter *iter = (struct rocks_iter *)base;
    rocksdb_iter_prev(iter->iter);
    show_position(iter);
}
