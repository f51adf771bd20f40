/* SPDX-License-Identifier: Apache-2.0 */
/* Provisional entries and their undo records; see provisional.h. */
#include "core/documents/provisional.h"

#include "base/check.h"
#include "core/command/command.h"
#include "core/documents/document_owners.h"
#include "core/documents/prefetch.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

enum { UNDO_LETTER = 'A', UNDO_NUMBER_BYTES = 4 };

void provisional_add(struct provisional_entries *entries, struct slice key, struct slice value)
{
    REQUIRE(entries->arena != NULL && (entries->first == NULL) == (entries->last == NULL));
    struct provisional_entry *entry = arena_alloc(entries->arena, sizeof(*entry));

    *entry = (struct provisional_entry){NULL, arena_copy(entries->arena, key), arena_copy(entries->arena, value)};
    if (entries->last != NULL)
        entries->last->next = entry;
    else
        entries->first = entry;
    entries->last = entry;
}

void provisional_convert(struct provisional_entries *entries, enum store_space space, struct slice key,
                         struct slice value)
{
    REQUIRE(entries->arena != NULL && (space == SPACE_ENTRIES || space == SPACE_DOCUMENTS));
    struct provisional_change *change = arena_alloc(entries->arena, sizeof(*change));

    *change = (struct provisional_change){entries->conversions, space, arena_copy(entries->arena, key),
                                          value.data == NULL ? SLICE_NONE : arena_copy(entries->arena, value)};
    entries->conversions = change;
}

/* Puts the changes of all conversions. Returns: how many are of entries. */
static size_t put_conversions(struct core *core, const struct provisional_entries *entries)
{
    size_t count = 0;

    for (const struct provisional_change *change = entries->conversions; change != NULL; change = change->next) {
        count += change->space == SPACE_ENTRIES;
        if (change->value.data == NULL)
            store_batch_delete(core->batch, change->space, change->key);
        else
            store_batch_put_nocopy(core->batch, change->space, change->key, change->value);
        if (change->space == SPACE_DOCUMENTS) /* a submitter that has read it has its single entries */
            recent_writes_record(&core->recent_writes, change->key, core->ts);
    }
    return count;
}

/* --- Undo records ------------------------------------------------------------------------------------------------- */

static struct slice undo_key(struct buf *buf, struct slice transaction, uint32_t number)
{
    REQUIRE(transaction.len > 0); /* else it is the key of another transaction's record */
    buf_clear(buf);
    buf_byte(buf, UNDO_LETTER);
    buf_slice(buf, transaction);
    buf_u32be(buf, number);
    return buf_as_slice(buf);
}

/* Returns: the transaction in the key of an undo record; empty: the key is invalid. */
static struct slice undo_key_transaction(struct slice key)
{
    size_t around = 1 + UNDO_NUMBER_BYTES;

    return key.len < around ? SLICE_LIT("") : slice_make(key.data + 1, key.len - around);
}

void provisional__put(struct core *core, const struct provisional_entries *entries, struct slice transaction,
                      uint32_t *undo_count)
{
    REQUIRE(core->open && transaction.len > 0);
    size_t before = store_batch_count(core->batch);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf record = BUF_INIT(BUF_UNLIMITED);
    size_t count = 0;

    for (const struct provisional_entry *entry = entries->first; entry != NULL; entry = entry->next) {
        store_batch_put_nocopy(core->batch, SPACE_ENTRIES, entry->key, entry->value);
        buf_varint(&record, entry->key.len);
        buf_slice(&record, entry->key);
        if (++count % UNDO_RECORD_KEYS_MAX != 0 && entry->next != NULL)
            continue;
        store_batch_put(core->batch, SPACE_SYSTEM, undo_key(&key, transaction, (*undo_count)++), buf_as_slice(&record));
        buf_clear(&record);
    }
    count += put_conversions(core, entries);
    core->in_txn = true;
    core->provisional_changes += store_batch_count(core->batch) - before;
    core->entry_changes += count;
}

void provisional__commit(struct core *core, struct slice transaction, uint32_t undo_count)
{
    REQUIRE(core->open && transaction.len > 0);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(BUF_UNLIMITED);

    if (undo_count > UNDO_RECORDS_SINGLY && core->command_version >= COMMAND_SINCE_ENTRIES_AHEAD) {
        store_batch_delete_range(core->batch, SPACE_SYSTEM, undo_key(&key, transaction, 0),
                                 undo_key(&upper, transaction, undo_count));
        return;
    }
    for (uint32_t i = 0; i < undo_count; i++)
        store_batch_delete(core->batch, SPACE_SYSTEM, undo_key(&key, transaction, i));
}

/* --- Purging ------------------------------------------------------------------------------------------------------ */

/*
 * Deletes the entries that an undo record lists, and the record; adds their number to *removed.
 * Returns: 0; TL_ERR_CORRUPT.
 */
static int apply_undo_record(struct core *core, struct slice key, struct slice record, size_t *removed)
{
    struct slice entry;
    uint64_t len;

    while (record.len > 0) {
        if (!slice_take_varint(&record, &len) || !slice_take(&record, (size_t)len, &entry))
            return tl_trace(TL_ERR_CORRUPT);
        store_batch_delete(core->batch, SPACE_ENTRIES, entry);
        (*removed)++;
    }
    store_batch_delete(core->batch, SPACE_SYSTEM, key);
    (*removed)++;
    return 0;
}

/* Moves past all undo records of a transaction. */
static void skip_transaction(struct store_iter *iter, struct slice transaction)
{
    tl_cleanup(buf_deinit) struct buf last = BUF_INIT(BUF_UNLIMITED);

    store_iter_seek(iter, undo_key(&last, transaction, UINT32_MAX));
}

int provisional__purge(struct core *core, size_t keys_max, size_t *ret_removed)
{
    REQUIRE(core->open);
    char lower = UNDO_LETTER, upper = UNDO_LETTER + 1;
    struct store_iter *iter =
        store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, slice_make(&lower, 1), slice_make(&upper, 1));
    size_t removed = 0;
    int r = 0;

    store_iter_seek_first(iter);
    while (r == 0 && removed < keys_max && store_iter_valid(iter)) {
        struct slice key = store_iter_key(iter);
        if (core->document_owners->transaction_is_open(core, undo_key_transaction(key))) {
            core__work(core, WORK_READ);
            skip_transaction(iter, undo_key_transaction(key));
            continue;
        }
        r = apply_undo_record(core, key, store_iter_value(iter), &removed);
        store_iter_next(iter);
    }
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    *ret_removed = removed;
    return r;
}
