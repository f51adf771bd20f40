/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provisional entries: posting lists that a transaction writes to the store before it commits, all those of its
 * bulks, and of its single writes those beyond ENTRIES_PROVISIONAL_WORK.
 * README.md, "Entries of a transaction".
 *
 * The entries of one request are collected first, so that a failed request writes nothing. They are
 * then put together with undo records, which list their keys. In SPACE_SYSTEM:
 *
 *   'A', transaction, number (u32be)   entry keys, each a length (varint) and its bytes
 *
 * A commit deletes the transaction's undo records, and the entries stay. Maintenance applies the
 * undo records of a transaction that is no longer open, for whatever reason: it deletes the entries
 * they list.
 *
 * Conversions are put with them, but are not provisional, and no undo record lists them: a committed version that the
 * transaction replaces gets posting lists instead of its single entries, which the commit would have to delete. The
 * version itself is unchanged, so readers see no difference, however the transaction ends.
 */
#ifndef TL_CORE_PROVISIONAL_H
#define TL_CORE_PROVISIONAL_H

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"

struct core;

#define UNDO_RECORD_KEYS_MAX 500 /* of one undo record; they are deleted together */
/* Records that a commit deletes one by one; more it deletes as a range, since each single write may have one. */
#define UNDO_RECORDS_SINGLY 32

struct provisional_entry {
    struct provisional_entry *next;
    struct slice key;
    struct slice value;
};

/* A change of a conversion. */
struct provisional_change {
    struct provisional_change *next;
    enum store_space space;
    struct slice key;
    struct slice value; /* data NULL: the key is deleted */
};

/* The entries that one request writes, in insertion order. */
struct provisional_entries {
    struct arena *arena; /* the unit's arena */
    struct provisional_entry *first;
    struct provisional_entry *last;
    struct provisional_change *conversions; /* of different keys; the newest first */
};

/* Appends a copy of an entry. */
void provisional_add(struct provisional_entries *entries, struct slice key, struct slice value);
/* Adds a copy of a change of a conversion. `value.data` NULL: the key is deleted. */
void provisional_convert(struct provisional_entries *entries, enum store_space space, struct slice key,
                         struct slice value);
/* Removes all entries and conversions, after the request has failed. */
static inline void provisional_clear(struct provisional_entries *entries)
{
    entries->first = entries->last = NULL;
    entries->conversions = NULL;
}

/*
 * Puts the entries and their undo records, and the conversions, into the open unit's batch. Undo records are numbered
 * from *undo_count, which is advanced. If the batch contains nothing else, the reply need not wait
 * for a sync.
 */
void provisional__put(struct core *core, const struct provisional_entries *entries, struct slice transaction,
                      uint32_t *undo_count);
/*
 * Deletes the first `undo_count` undo records of a transaction that commits in the open unit: all that it has. Ids of
 * transactions are text, so the keys of no other lie between them.
 */
void provisional__commit(struct core *core, struct slice transaction, uint32_t undo_count);
/*
 * Deletes, in the open unit, provisional entries of transactions that are no longer open. Stops
 * after `keys_max` keys; the last undo record may exceed that by up to UNDO_RECORD_KEYS_MAX.
 *
 * Returns: 0 and the number of deleted keys, undo records included; fatal codes.
 */
int provisional__purge(struct core *core, size_t keys_max, size_t *ret_removed) TL_MUST_USE;

#endif
