/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of sessions and of waits; see save_chunk.h. */
#include "core/session/save_chunk.h"

#include "base/alloc.h"
#include "base/check.h"

void save_chunks__init(struct save_chunks *chunks)
{
    *chunks = (struct save_chunks){.members_max = SAVE_CHUNK_MEMBERS};
    list_init(&chunks->all);
    list_init(&chunks->changed);
}

static void forget_change(struct save_chunk *chunk)
{
    if (list_linked(&chunk->changed))
        list_remove(&chunk->changed);
}

static void touch_chunk(struct save_chunks *chunks, struct save_chunk *chunk)
{
    REQUIRE(list_linked(&chunk->of_all)); /* it has not ended */
    if (!list_linked(&chunk->changed))
        list_append(&chunks->changed, &chunk->changed);
}

static void end_chunk(struct save_chunks *chunks, struct save_chunk *chunk)
{
    INSIST(list_empty(&chunk->members));
    if (chunks->open == chunk)
        chunks->open = NULL;
    forget_change(chunk);
    list_remove(&chunk->of_all);
    mem_free(chunk);
}

void save_chunks__deinit(struct save_chunks *chunks)
{
    while (!list_empty(&chunks->all)) {
        struct save_chunk *chunk = list_entry(chunks->all.next, struct save_chunk, of_all);
        while (!list_empty(&chunk->members)) {
            struct save_member *member = list_entry(chunk->members.next, struct save_member, of_chunk);
            list_remove(&member->of_chunk);
            member->chunk = NULL;
            INSIST(chunks->count > 0);
            chunks->count--;
        }
        end_chunk(chunks, chunk);
    }
    ENSURE(chunks->count == 0 && list_empty(&chunks->changed));
}

struct save_chunk *save_chunk__begin(struct save_chunks *chunks)
{
    REQUIRE(chunks->open == NULL); /* one is read at a time */
    struct save_chunk *chunk = mem_zalloc(sizeof *chunk);
    list_init(&chunk->members);
    list_append(&chunks->all, &chunk->of_all);
    touch_chunk(chunks, chunk);
    chunks->open = chunk;
    return chunk;
}

void save_chunk__add(struct save_chunks *chunks, struct save_member *member, uint64_t bytes)
{
    struct save_chunk *chunk =
        list_empty(&chunks->all) ? NULL : list_entry(chunks->all.prev, struct save_chunk, of_all);
    REQUIRE(member->chunk == NULL);
    if (chunk == NULL ||
        (chunk != chunks->open && (chunk->added >= chunks->members_max || chunk->bytes + bytes > SAVE_CHUNK_BYTES))) {
        chunk = save_chunk__begin(chunks);
        chunks->open = NULL;
    }
    REQUIRE(chunks->members_max > 0 && !list_linked(&member->of_chunk));
    chunk->added++;
    chunks->count++;
    chunk->bytes += bytes;
    member->chunk = chunk;
    member->bytes = bytes;
    list_append(&chunk->members, &member->of_chunk);
    touch_chunk(chunks, chunk);
}

void save_chunk__touch(struct save_chunks *chunks, struct save_member *member)
{
    REQUIRE((member->chunk != NULL) == list_linked(&member->of_chunk));
    if (member->chunk != NULL)
        touch_chunk(chunks, member->chunk);
}

void save_chunk__touch_all(struct save_chunks *chunks)
{
    list_for_each(link, &chunks->all) touch_chunk(chunks, list_entry(link, struct save_chunk, of_all));
}

uint64_t save_chunk__remove(struct save_chunks *chunks, struct save_member *member)
{
    struct save_chunk *chunk = member->chunk;
    if (chunk == NULL)
        return 0;
    INSIST(chunk->bytes >= member->bytes);
    INSIST(chunks->count > 0 && list_linked(&member->of_chunk));
    chunk->bytes -= member->bytes;
    list_remove(&member->of_chunk);
    member->chunk = NULL;
    chunks->count--;
    touch_chunk(chunks, chunk);
    if (!list_empty(&chunk->members))
        return 0;
    uint64_t piece = chunk->piece;
    end_chunk(chunks, chunk);
    return piece;
}

void save_chunk__saved(struct save_chunks *chunks, struct save_chunk *chunk, uint64_t piece, uint32_t len, uint32_t crc)
{
    REQUIRE(piece != 0 && len > 0);
    if (chunks->open == chunk)
        chunks->open = NULL;
    forget_change(chunk);
    chunk->piece = piece;
    chunk->saved_len = len;
    chunk->saved_crc = crc;
}

struct save_chunk *save_chunk__changed(const struct save_chunks *chunks)
{
    return list_empty(&chunks->changed) ? NULL : list_entry(chunks->changed.next, struct save_chunk, changed);
}
