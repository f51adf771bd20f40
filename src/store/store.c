/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's interface: checks, the history limit, dispatch to the implementations; see store.h.
 */
#include "store/store.h"

#include "base/alloc.h"
#include "base/big_endian.h"
#include "base/check.h"
#include "base/magic.h"
#include "store/store_internal.h"

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    magic_clear(&store->magic);
    store->ops->close(store);
}

char *store_reason(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->reason(store);
}

struct store_batch *store_batch_new(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    struct store_batch *batch = store->ops->batch_new(store);
    batch->magic = STORE_BATCH_MAGIC;
    batch->store = store;
    return batch;
}

void store_batch_free(struct store_batch *batch)
{
    if (batch == NULL)
        return;
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC));
    magic_clear(&batch->magic);
    batch->store->ops->batch_free(batch);
}

void store_batch_clear(struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC));
    batch->store->ops->batch_clear(batch);
    batch->ts = TL_TS_NONE;
    batch->begun = false;
    batch->count = batch->bytes = 0;
    batch->digest = 0;
}

void store_batch_begin(struct store_batch *batch, tl_ts ts)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && !batch->begun && batch->count == 0);
    REQUIRE(ts > TL_TS_NONE && ts < TL_TS_MAX);
    batch->ts = ts;
    batch->begun = true;
}

/* A change with the value `head` and `rest`, one after the other. */
static void digest_joined(struct store_batch *batch, uint64_t what, struct slice key, struct slice head,
                          struct slice rest)
{
    if (!batch->tracks_digest)
        return;
    uint64_t words[] = {batch->digest, what, slice_hash(key), slice_hash_joined(head, rest)};
    batch->digest = slice_hash(slice_make(words, sizeof(words)));
}

static void digest_change(struct store_batch *batch, uint64_t what, struct slice key, struct slice value)
{
    digest_joined(batch, what, key, SLICE_NONE, value);
}

void store_batch_put(struct store_batch *batch, enum store_space space, struct slice key, struct slice value)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && batch->begun);
    REQUIRE(space >= 0 && space < SPACE_COUNT);
    batch->store->ops->batch_put(batch, space, key, value);
    batch->count++;
    batch->bytes += key.len + value.len;
    digest_change(batch, space, key, value);
}

void store_batch_put_nocopy(struct store_batch *batch, enum store_space space, struct slice key, struct slice value)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && batch->begun);
    const struct store_ops *ops = batch->store->ops;
    REQUIRE(space >= 0 && space < SPACE_COUNT);
    (ops->batch_put_nocopy != NULL ? ops->batch_put_nocopy : ops->batch_put)(batch, space, key, value);
    batch->count++;
    batch->bytes += key.len + value.len;
    digest_change(batch, space, key, value);
}

void store_batch_put_stamped(struct store_batch *batch, enum store_space space, struct slice key, struct slice value)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && batch->begun);
    REQUIRE(space >= 0 && space < SPACE_COUNT && value.len >= STORE_STAMP_BYTES);
    const struct store_ops *ops = batch->store->ops;
    char stamp[STORE_STAMP_BYTES];
    big_endian_put_u64(stamp, batch->ts);
    if (ops->batch_put_stamped != NULL) {
        ops->batch_put_stamped(batch, space, key, value);
    } else {
        char *stamped = mem_alloc(value.len);
        store__stamp(stamped, batch->ts, value);
        ops->batch_put(batch, space, key, slice_make(stamped, value.len));
        mem_free(stamped);
    }
    digest_joined(batch, space, key, slice_make(stamp, sizeof stamp), slice_from_offset(value, STORE_STAMP_BYTES));
    batch->count++;
    batch->bytes += key.len + value.len;
}

void store_batch_delete(struct store_batch *batch, enum store_space space, struct slice key)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && batch->begun);
    REQUIRE(space >= 0 && space < SPACE_COUNT);
    batch->store->ops->batch_delete(batch, space, key);
    batch->count++;
    batch->bytes += key.len;
    digest_change(batch, (uint64_t)space + SPACE_COUNT, key, SLICE_NONE);
}

void store_batch_delete_range(struct store_batch *batch, enum store_space space, struct slice lower, struct slice upper)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && batch->begun);
    REQUIRE(space >= 0 && space < SPACE_COUNT && !store__space_is_versioned(space));
    REQUIRE(slice_compare(lower, upper) < 0);
    batch->store->ops->batch_delete_range(batch, space, lower, upper);
    batch->count++;
    batch->bytes += lower.len + upper.len;
    digest_change(batch, (uint64_t)space + 2 * (uint64_t)SPACE_COUNT, lower, upper);
}

size_t store_batch_count(const struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC));
    return batch->count;
}

size_t store_batch_bytes(const struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC));
    return batch->bytes;
}

void store_batch_track_digest(struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && batch->count == 0);
    batch->tracks_digest = true;
}

uint64_t store_batch_digest(const struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(batch, STORE_BATCH_MAGIC) && batch->tracks_digest);
    uint64_t words[] = {batch->digest, batch->ts};
    return slice_hash(slice_make(words, sizeof(words)));
}

int store_write(struct store *store, struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && MAGIC_VALID(batch, STORE_BATCH_MAGIC));
    REQUIRE(batch->store == store && batch->begun);
    REQUIRE(batch->ts > store->last_ts && batch->ts > atomic_load(&store->history_low));
    int r = store->ops->write(store, batch);
    batch->begun = false; /* its changes are no longer in the order in which they were added */
    if (r == 0)
        store->last_ts = batch->ts;
    return r;
}

int store_checkpoint(struct store *store, struct slice record)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->checkpoint(store, record);
}

int store_checkpointed(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->checkpointed(store);
}

int store_checkpoint_record(struct store *store, struct buf *ret_record)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->checkpoint_record(store, ret_record);
}

int store_put_piece(struct store *store, struct store_piece piece, struct slice bytes)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    REQUIRE(piece.owner < UINT64_MAX);
    return store->ops->put_piece(store, piece, bytes);
}

int store_delete_pieces(struct store *store, uint64_t first, uint64_t last)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    REQUIRE(first <= last && last < UINT64_MAX);
    return store->ops->delete_pieces(store, first, last);
}

int store_get_piece(struct store *store, struct store_piece piece, struct buf *ret_bytes)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && ret_bytes != NULL);
    return store->ops->get_piece(store, piece, ret_bytes);
}

int store_count_pieces(struct store *store, size_t *ret_count)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->count_pieces(store, ret_count);
}

size_t store_uncheckpointed_bytes(const struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->uncheckpointed_bytes(store);
}

/*
 * Checks the history limit after the read, too: versions are dropped only after it was raised. So a
 * read that ends with its timestamp still not below it has missed no version (invariant 4).
 */
int store_get(struct store *store, enum store_space space, tl_ts ts, struct slice key, struct store_value *ret_value)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && space >= 0 && space < SPACE_COUNT);
    if (store__is_too_old(store, space, ts))
        return STORE_TOO_OLD;
    int r = store->ops->get(store, space, ts, key, ret_value);
    if (!store__is_too_old(store, space, ts))
        return r;
    if (r == 0)
        store_value_release(ret_value);
    return STORE_TOO_OLD;
}

/*
 * An iterator's content is fixed at its creation, so one check of the history limit after that
 * suffices.
 */
struct store_iter *store_iter_new(struct store *store, enum store_space space, tl_ts ts, struct slice lower,
                                  struct slice upper)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && space >= 0 && space < SPACE_COUNT);
    struct store_iter *iter = store->ops->iter_new(store, space, ts, lower, upper);
    iter->magic = STORE_ITER_MAGIC;
    iter->store = store;
    iter->space = space;
    iter->ts = ts;
    if (store__is_too_old(store, space, ts))
        iter->status = STORE_TOO_OLD;
    return iter;
}

void store_iter_free(struct store_iter *iter)
{
    if (iter == NULL)
        return;
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC));
    magic_clear(&iter->magic);
    iter->store->ops->iter_free(iter);
}

/* Returns: whether the iterator was refused; it then never gets a position. */
static bool is_refused(const struct store_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC));
    return iter->status == STORE_TOO_OLD;
}

void store_iter_seek_first(struct store_iter *iter)
{
    if (!is_refused(iter))
        iter->store->ops->iter_seek_first(iter);
}

void store_iter_seek_last(struct store_iter *iter)
{
    if (!is_refused(iter))
        iter->store->ops->iter_seek_last(iter);
}

void store_iter_seek(struct store_iter *iter, struct slice key)
{
    if (!is_refused(iter))
        iter->store->ops->iter_seek(iter, key);
}

void store_iter_seek_for_prev(struct store_iter *iter, struct slice key)
{
    if (!is_refused(iter))
        iter->store->ops->iter_seek_for_prev(iter, key);
}

void store_iter_next(struct store_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC) && iter->valid);
    iter->store->ops->iter_next(iter);
}

void store_iter_prev(struct store_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC) && iter->valid);
    iter->store->ops->iter_prev(iter);
}

bool store_iter_valid(const struct store_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC));
    return iter->valid;
}

struct slice store_iter_key(const struct store_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC) && iter->valid);
    return iter->key;
}

struct slice store_iter_value(const struct store_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC) && iter->valid);
    return iter->value;
}

int store_iter_status(const struct store_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, STORE_ITER_MAGIC));
    return iter->status;
}

int store_each(struct store *store, enum store_space space, tl_ts ts, struct slice lower, struct slice upper,
               store_visit *visit, void *context)
{
    REQUIRE(visit != NULL);
    struct store_iter *iter = store_iter_new(store, space, ts, lower, upper);
    int r = 0;

    for (store_iter_seek_first(iter); r == 0 && store_iter_valid(iter); store_iter_next(iter))
        r = visit(context, store_iter_key(iter), store_iter_value(iter));
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    return r;
}

int store_set_history_low(struct store *store, tl_ts ts)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    REQUIRE(ts < TL_TS_MAX);
    tl_ts before = atomic_load(&store->history_low);
    do
        if (ts <= before)
            return 0;
    while (!atomic_compare_exchange_weak(&store->history_low, &before, ts));
    return store->ops->history_low_raised(store);
}

tl_ts store_history_low(const struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return atomic_load(&store->history_low);
}

int store_copy(struct store *store, const char *directory, char **ret_reason)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    REQUIRE(directory != NULL && ret_reason != NULL);
    *ret_reason = NULL;
    REQUIRE(store->ops->copy != NULL);
    return store->ops->copy(store, directory, ret_reason);
}

int store_compact(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->compact(store);
}

void store_give_up(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    if (store->ops->give_up != NULL)
        store->ops->give_up(store);
}

void store_compact_cancel(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    if (store->ops->compact_cancel != NULL)
        store->ops->compact_cancel(store);
}

int store_verify(struct store *store, char **ret_reason)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    if (ret_reason != NULL)
        *ret_reason = NULL;
    return store->ops->verify(store, ret_reason);
}

void store_stats(struct store *store, struct store_stats *ret_stats)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    *ret_stats = (struct store_stats){0};
    store->ops->stats(store, ret_stats);
}

uint64_t store_range_bytes(struct store *store, enum store_space space, struct slice lower, struct slice upper)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && space >= 0 && space < SPACE_COUNT);
    return store->ops->range_bytes(store, space, lower, upper);
}

uint64_t store_free_bytes(const struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->free_bytes(store);
}

bool store_is_ready(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC));
    return store->ops->is_ready(store);
}
