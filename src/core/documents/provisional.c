/* SPDX-License-Identifier: Apache-2.0 */
/* Entries put ahead of a commit, and their notes; see provisional.h. */
#include "core/documents/provisional.h"

#include "core/step/hooks.h"
#include "core/step/unit.h"

enum { NOTE_LETTER = 'A', NOTE_NUMBER_BYTES = 4 };

void provisional_add(struct provisional_entries *ahead, struct slice key, struct slice value)
{
    struct provisional_entry *entry = arena_alloc(ahead->arena, sizeof(*entry));

    *entry = (struct provisional_entry){NULL, arena_copy(ahead->arena, key), arena_copy(ahead->arena, value)};
    if (ahead->last != NULL)
        ahead->last->next = entry;
    else
        ahead->first = entry;
    ahead->last = entry;
}

/* --- Notes -------------------------------------------------------------------------------------------------------- */

static struct slice note_key(struct buf *buf, struct slice transaction, uint32_t number)
{
    buf_clear(buf);
    buf_byte(buf, NOTE_LETTER);
    buf_slice(buf, transaction);
    buf_u32be(buf, number);
    return buf_as_slice(buf);
}

/* Returns: the transaction that a note's key names. */
static struct slice note_transaction(struct slice key)
{
    size_t around = 1 + NOTE_NUMBER_BYTES;

    return key.len < around ? SLICE_LIT("") : slice_make(key.data + 1, key.len - around);
}

void provisional__put(struct core *core, const struct provisional_entries *ahead, struct slice transaction, uint32_t *notes)
{
    size_t before = store_batch_count(core->batch);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf note = BUF_INIT(BUF_UNLIMITED);
    size_t count = 0;

    for (const struct provisional_entry *entry = ahead->first; entry != NULL; entry = entry->next) {
        store_batch_put_nocopy(core->batch, SPACE_ENTRIES, entry->key, entry->value);
        buf_varint(&note, entry->key.len);
        buf_slice(&note, entry->key);
        if (++count % UNDO_RECORD_KEYS_MAX != 0 && entry->next != NULL)
            continue;
        store_batch_put(core->batch, SPACE_SYSTEM, note_key(&key, transaction, (*notes)++), buf_as_slice(&note));
        buf_clear(&note);
    }
    core->in_txn = true;
    core->provisional_changes += store_batch_count(core->batch) - before;
}

void provisional__commit(struct core *core, struct slice transaction, uint32_t notes)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);

    for (uint32_t i = 0; i < notes; i++)
        store_batch_delete(core->batch, SPACE_SYSTEM, note_key(&key, transaction, i));
}

/* --- Removing ----------------------------------------------------------------------------------------------------- */

/* Removes what a note names, and the note. Returns: 0, *removed raised; TL_ERR_CORRUPT. */
static int remove_noted(struct core *core, struct slice key, struct slice note, size_t *removed)
{
    struct slice entry;
    uint64_t len;

    while (note.len > 0) {
        if (!slice_take_varint(&note, &len) || !slice_take(&note, (size_t)len, &entry))
            return tl_trace(TL_ERR_CORRUPT);
        store_batch_delete(core->batch, SPACE_ENTRIES, entry);
        (*removed)++;
    }
    store_batch_delete(core->batch, SPACE_SYSTEM, key);
    (*removed)++;
    return 0;
}

/* Goes on behind all notes of an open transaction. */
static void skip_open(struct store_iter *iter, struct slice transaction)
{
    tl_cleanup(buf_deinit) struct buf last = BUF_INIT(BUF_UNLIMITED);

    store_iter_seek(iter, note_key(&last, transaction, UINT32_MAX));
}

int provisional__purge(struct core *core, size_t keys_max, size_t *ret_removed)
{
    char lower = NOTE_LETTER, upper = NOTE_LETTER + 1;
    struct store_iter *iter =
        store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, slice_make(&lower, 1), slice_make(&upper, 1));
    size_t removed = 0;
    int r = 0;

    store_iter_seek_first(iter);
    while (r == 0 && removed < keys_max && store_iter_valid(iter)) {
        struct slice key = store_iter_key(iter);
        if (owners__transaction_is_open(core, note_transaction(key))) {
            skip_open(iter, note_transaction(key));
            continue;
        }
        r = remove_noted(core, key, store_iter_value(iter), &removed);
        store_iter_next(iter);
    }
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    *ret_removed = removed;
    return r;
}
