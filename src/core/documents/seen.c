/* SPDX-License-Identifier: Apache-2.0 */
/* What a submitter has seen; see seen.h. */
#include "core/documents/seen.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/siphash.h"
#include "core/documents/vanish.h"

/* Far more than there are changes between a reading and its write; 128 KiB. */
enum { CHANGES_SLOTS = 1 << 14 };

struct seen *seen_read(const struct view *view, uint32_t index, uint16_t type, struct slice id, struct arena *arena)
{
    REQUIRE(view->overlay == NULL);
    if (id.len > DOC_ID_BYTES_MAX)
        return NULL;
    struct seen *seen = arena_zalloc(arena, sizeof(*seen));
    int r = doc_get_any(view, index, type, id, &seen->doc);
    if (r != 0 && r != DOC_NOT_FOUND)
        return NULL;
    seen->ts = view->ts;
    seen->key = doc_key(arena_alloc(arena, DOC_KEY_PREFIX_BYTES + id.len), index, type, id);
    seen->found = r == 0;
    if (r == 0 && !seen->doc.deleted && vanish_hides(view, seen->key, &seen->doc) != 0) {
        doc_release(&seen->doc); /* the core sweeps it first */
        return NULL;
    }
    return seen;
}

void seen_release(struct seen *seen)
{
    if (seen != NULL && seen->found)
        doc_release(&seen->doc);
}

void seen_changes_init(struct seen_changes *changes, tl_ts ts)
{
    *changes = (struct seen_changes){ts, mem_zalloc(CHANGES_SLOTS * sizeof(*changes->last))};
}

void seen_changes_deinit(struct seen_changes *changes)
{
    mem_free(changes->last);
    *changes = (struct seen_changes){0};
}

static tl_ts *slot_of(const struct seen_changes *changes, struct slice key)
{
    return &changes->last[siphash_keyed(key) % CHANGES_SLOTS];
}

void seen_changes_note(struct seen_changes *changes, struct slice key, tl_ts ts)
{
    *slot_of(changes, key) = ts;
}

void seen_changes_note_all(struct seen_changes *changes, tl_ts ts)
{
    changes->floor = ts;
}

bool seen_holds(const struct seen *seen, const struct seen_changes *changes, struct slice key)
{
    return seen->ts >= changes->floor && *slot_of(changes, key) <= seen->ts && slice_equal(seen->key, key);
}
