/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of holds, in which a lock table is saved; see struct lock_chunk. */
#include "base/alloc.h"
#include "base/check.h"
#include "base/magic.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"

struct lock_chunk *lock__chunk_begin(struct lock_table *table, struct lock_owner *owner)
{
    struct lock_chunk *chunk = mem_zalloc(sizeof *chunk);
    chunk->owner = owner;
    list_append(&owner->chunks, &chunk->of_owner);
    lock__chunk_touch(table, chunk);
    return chunk;
}

static void forget_change(struct lock_table *table, struct lock_chunk *chunk)
{
    if (!list_linked(&chunk->changed))
        return;
    INSIST(table->changed_chunk_count > 0);
    list_remove(&chunk->changed);
    table->changed_chunk_count--;
}

void lock__chunk_end(struct lock_table *table, struct lock_chunk *chunk)
{
    REQUIRE(chunk->count == 0);
    forget_change(table, chunk);
    list_remove(&chunk->of_owner);
    if (chunk->piece != 0 && table->hooks.piece_unused != NULL)
        table->hooks.piece_unused(table->hooks.context, chunk->piece);
    mem_free(chunk);
}

void lock__chunk_add(struct lock_table *table, struct lock_hold *hold)
{
    struct lock_owner *owner = hold->owner;
    struct lock_chunk *chunk =
        list_empty(&owner->chunks) ? NULL : list_entry(owner->chunks.prev, struct lock_chunk, of_owner);
    REQUIRE(owner->holds.prev == &hold->of_owner && hold->chunk == NULL);
    if (chunk == NULL || chunk->added >= table->chunk_holds)
        chunk = lock__chunk_begin(table, owner);
    if (chunk->count == 0)
        chunk->first = hold;
    chunk->count++;
    chunk->added++;
    hold->chunk = chunk;
    lock__chunk_touch(table, chunk);
}

void lock__chunk_remove(struct lock_table *table, struct lock_hold *hold)
{
    struct lock_chunk *chunk = hold->chunk;
    REQUIRE(chunk->count > 0);
    hold->chunk = NULL;
    if (--chunk->count == 0) {
        lock__chunk_end(table, chunk);
        return;
    }
    if (chunk->first == hold)
        chunk->first = list_entry(hold->of_owner.next, struct lock_hold, of_owner);
    lock__chunk_touch(table, chunk);
}

struct lock_chunk *lock_table_changed_chunk(const struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return list_empty(&table->changed_chunks) ? NULL
                                              : list_entry(table->changed_chunks.next, struct lock_chunk, changed);
}

void lock_chunk_saved(struct lock_table *table, struct lock_chunk *chunk, uint64_t piece, uint32_t len, uint32_t crc)
{
    REQUIRE(piece != 0 && len > 0);
    forget_change(table, chunk);
    chunk->piece = piece;
    chunk->saved_len = len;
    chunk->saved_crc = crc;
}
