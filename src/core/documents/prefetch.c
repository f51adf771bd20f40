/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetched documents; see prefetch.h. */
#include "core/documents/prefetch.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/siphash.h"
#include "core/documents/session_tombstone.h"
#include "core/command/command.h"

/* Far more than the writes between a prefetch and its use. 128 KiB. */
enum { RECENT_WRITES_SLOTS = 1 << 14 };

struct prefetch *prefetch_read(const struct view *view, uint32_t index, uint16_t type, struct slice id,
                               struct arena *arena)
{
    REQUIRE(view->overlay == NULL);
    if (id.len > DOC_ID_BYTES_MAX)
        return NULL;
    struct prefetch *prefetch = arena_zalloc(arena, sizeof(*prefetch));
    int r = doc_get_any(view, index, type, id, &prefetch->doc);
    if (r != 0 && r != DOC_NOT_FOUND)
        return NULL;
    prefetch->ts = view->ts;
    prefetch->key = doc_key(arena_alloc(arena, DOC_KEY_PREFIX_BYTES + id.len), index, type, id);
    prefetch->found = r == 0;
    if (r == 0 && !prefetch->doc.deleted && session_tombstone_hides(view, prefetch->key, &prefetch->doc) != 0) {
        doc_release(&prefetch->doc); /* the core purges it before the write */
        return NULL;
    }
    return prefetch;
}

void prefetch_release(struct prefetch *prefetch)
{
    if (prefetch != NULL && prefetch->found)
        doc_release(&prefetch->doc);
}

static void release_attached(struct command *command)
{
    for (size_t i = 0; i < command->write.item_count; i++)
        prefetch_release(command->write.items[i].prefetch);
}

void prefetch_attach(struct command *command, struct write_item *item, struct prefetch *prefetch)
{
    REQUIRE(command->type == COMMAND_WRITE && item->prefetch == NULL);
    item->prefetch = prefetch;
    if (prefetch != NULL)
        command->release_attached = release_attached;
}

void recent_writes_init(struct recent_writes *writes, tl_ts ts)
{
    REQUIRE(writes->last == NULL);
    *writes = (struct recent_writes){ts, mem_zalloc(RECENT_WRITES_SLOTS * sizeof(*writes->last))};
}

void recent_writes_deinit(struct recent_writes *writes)
{
    mem_free(writes->last);
    *writes = (struct recent_writes){0};
}

static tl_ts *slot_of(const struct recent_writes *writes, struct slice key)
{
    return &writes->last[siphash_keyed(key) % RECENT_WRITES_SLOTS];
}

void recent_writes_record(struct recent_writes *writes, struct slice key, tl_ts ts)
{
    tl_ts *slot = slot_of(writes, key);

    REQUIRE(ts >= *slot); /* timestamps rise */
    *slot = ts;
}

void recent_writes_invalidate_all(struct recent_writes *writes, tl_ts ts)
{
    REQUIRE(ts >= writes->floor); /* else earlier reads become valid again */
    writes->floor = ts;
}

bool prefetch_is_valid(const struct prefetch *prefetch, const struct recent_writes *writes, struct slice key)
{
    REQUIRE(writes->last != NULL && prefetch->key.len > 0);
    return prefetch->ts >= writes->floor && *slot_of(writes, key) <= prefetch->ts && slice_equal(prefetch->key, key);
}
