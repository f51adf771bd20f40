/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries that a transaction puts into the store ahead of its commit. README.md, "Entries of a transaction".
 *
 * What a request puts is gathered first, so that one which fails leaves nothing, and then put and noted. The notes lie in
 * SPACE_SYSTEM:
 *
 *   'A', transaction, number (u32be)   keys of entries, each a length (varint) and its bytes
 *
 * A commit takes the notes of its transaction away, and what they name is there to stay. Notes of a transaction that is not
 * open any more, whatever ended it, name what is to be removed.
 */
#ifndef TL_CORE_PROVISIONAL_H
#define TL_CORE_PROVISIONAL_H

#include "base/arena.h"
#include "base/error.h"

struct core;

#define UNDO_RECORD_KEYS_MAX 500 /* keys of one note, which are removed together */

struct provisional_entry {
    struct provisional_entry *next;
    struct slice key;
    struct slice value;
};

/* What one request wants to put. */
struct provisional_entries {
    struct arena *arena; /* of the unit */
    struct provisional_entry *first;
    struct provisional_entry *last;
};

/* Keeps a copy of an entry. */
void provisional_add(struct provisional_entries *ahead, struct slice key, struct slice value);
/* Forgets them: the request has failed. */
static inline void provisional_clear(struct provisional_entries *ahead)
{
    ahead->first = ahead->last = NULL;
}

/*
 * Puts the entries in the open unit, with notes that are numbered from *notes on. With nothing else in its batch, the unit need
 * not be durable before the request is answered.
 */
void provisional__put(struct core *core, const struct provisional_entries *ahead, struct slice transaction, uint32_t *notes);
/* Takes away the notes of a transaction that commits in the open unit. */
void provisional__commit(struct core *core, struct slice transaction, uint32_t notes);
/*
 * Removes, in the open unit, what transactions have put that are not open any more: until it has removed `keys_max` keys,
 * or UNDO_RECORD_KEYS_MAX more.
 * Returns: 0 and how many; fatal codes.
 */
int provisional__purge(struct core *core, size_t keys_max, size_t *ret_removed) TL_MUST_USE;

#endif
