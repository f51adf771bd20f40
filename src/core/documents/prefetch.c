/* SPDX-License-Identifier: Apache-2.0 */
/* What a submitter has seen; see prefetch.h. */
#include "core/documents/prefetch.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/siphash.h"
#include "core/documents/session_tombstone.h"

/* Far more than there are changes between a reading and its write; 128 KiB. */
enum { CHANGES_SLOTS = 1 << 14 };

struct prefetch *prefetch_read(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct arena *arena)
{
    REQUIRE(view->overlay == NULL);
    if (id.len > DOC_ID_BYTES_MAX)
        return NULL;
    struct prefetch *seen = arena_zalloc(arena, sizeof(*seen));
    int r = doc_get_any(view, index, type, id, &seen->doc);
    if (r != 0 && r != DOC_NOT_FOUND)
        return NULL;
    seen->ts = view->ts;
    seen->key = doc_key(arena_alloc(arena, DOC_KEY_PREFIX_BYTES + id.len), index, type, id);
    seen->found = r == 0;
    if (r == 0 && !seen->doc.deleted && session_tombstone_hides(view, seen->key, &seen->doc) != 0) {
        doc_release(&seen->doc); /* the core sweeps it first */
        return NULL;
    }
    return seen;
}

void prefetch_release(struct prefetch *seen)
{
    if (seen != NULL && seen->found)
        doc_release(&seen->doc);
}

void recent_writes_init(struct recent_writes *changes, tl_ts ts)
{
    *changes = (struct recent_writes){ts, mem_zalloc(CHANGES_SLOTS * sizeof(*changes->last))};
}

void recent_writes_deinit(struct recent_writes *changes)
{
    mem_free(changes->last);
    *changes = (struct recent_writes){0};
}

static tl_ts *slot_of(const struct recent_writes *changes, struct slice key)
{
    return &changes->last[siphash_keyed(key) % CHANGES_SLOTS];
}

void recent_writes_record(struct recent_writes *changes, struct slice key, tl_ts ts)
{
    *slot_of(changes, key) = ts;
}

void recent_writes_invalidate_all(struct recent_writes *changes, tl_ts ts)
{
    changes->floor = ts;
}

bool prefetch_is_valid(const struct prefetch *seen, const struct recent_writes *changes, struct slice key)
{
    return seen->ts >= changes->floor && *slot_of(changes, key) <= seen->ts && slice_equal(seen->key, key);
}
