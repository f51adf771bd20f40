/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transaction's writes, ordered by space and key, with savepoints; see view.h.
 *
 * One ordered map per space. A map's value is a tag byte and the value, to distinguish a deletion
 * from an empty value. After the first savepoint each change pushes the replaced value to an undo
 * list; a savepoint is a length of that list.
 */
#include "base/alloc.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/magic.h"
#include "store/overlay_internal.h"
#include "store/view.h"

#include <stdatomic.h>

enum { TAGGED_KEPT_MAX = 64 * 1024 }; /* a larger scratch buffer is freed after a change */

enum { TAG_DELETED = 'd', TAG_PUT = 'p' };

/* An undo record: the key and its previous tagged value; data NULL: there was none. */
struct undo {
    enum store_space space;
    struct slice key; /* points into the map entry, which only undoing this change can remove */
    struct slice before;
};

#define OVERLAY_MAGIC MAGIC('O', 'v', 'e', 'r')

struct overlay {
    uint32_t magic; /* OVERLAY_MAGIC */
    struct omap spaces[SPACE_COUNT];
    size_t bytes[SPACE_COUNT]; /* of keys and values without tags */
    size_t tallied;            /* value of overlay_memory_bytes() last reported to the budget */
    bool has_savepoint;        /* changes are pushed to `undo` */
    struct undo *undo;
    size_t undo_count;
    size_t undo_capacity;
    struct buf tagged;     /* scratch */
    atomic_uint more_refs; /* references besides the owner's */
};

struct overlay *overlay_new(void)
{
    struct overlay *overlay = mem_zalloc(sizeof *overlay);
    overlay->magic = OVERLAY_MAGIC;
    for (int space = 0; space < SPACE_COUNT; space++)
        omap_init(&overlay->spaces[space]);
    overlay->tagged = BUF_INIT(BUF_UNLIMITED);
    return overlay;
}

static void undo_free(struct undo *undo)
{
    mem_free((char *)undo->before.data);
}

void overlay_release_savepoints(struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    while (overlay->undo_count > 0)
        undo_free(&overlay->undo[--overlay->undo_count]);
    overlay->has_savepoint = false;
}

/* Updates the budget's tally, at coarse steps only, which is cheaper. */
static void update_tally(struct overlay *overlay)
{
    size_t held = overlay_memory_bytes(overlay);
    size_t apart = held > overlay->tallied ? held - overlay->tallied : overlay->tallied - held;
    if (apart < BUDGET_CHUNK && held != 0)
        return;
    budget_tally(BUDGET_TRANSACTIONS, (ptrdiff_t)held - (ptrdiff_t)overlay->tallied);
    overlay->tallied = held;
}

void overlay_clear(struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    for (int space = 0; space < SPACE_COUNT; space++)
        omap_clear(&overlay->spaces[space]);
    memset(overlay->bytes, 0, sizeof overlay->bytes);
    overlay_release_savepoints(overlay);
    update_tally(overlay);
}

struct overlay *overlay_ref(struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    atomic_fetch_add_explicit(&overlay->more_refs, 1, memory_order_relaxed);
    return overlay;
}

bool overlay_is_shared(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    return atomic_load_explicit(&overlay->more_refs, memory_order_acquire) > 0;
}

struct overlay *overlay_copy(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    struct overlay *copy = overlay_new();
    for (int space = 0; space < SPACE_COUNT; space++)
        for (const struct omap_entry *entry = omap_first(&overlay->spaces[space]); entry != NULL;
             entry = omap_next(entry))
            omap_put(&copy->spaces[space], omap_key(entry), omap_value(entry));
    memcpy(copy->bytes, overlay->bytes, sizeof copy->bytes);
    update_tally(copy);
    return copy;
}

void overlay_free(struct overlay *overlay)
{
    REQUIRE(overlay == NULL || overlay->magic == OVERLAY_MAGIC);
    if (overlay == NULL || atomic_fetch_sub_explicit(&overlay->more_refs, 1, memory_order_acq_rel) > 0)
        return;
    overlay_clear(overlay);
    mem_free(overlay->undo);
    buf_deinit(&overlay->tagged);
    magic_clear(&overlay->magic);
    mem_free(overlay);
}

static struct slice slice_dup(struct slice bytes)
{
    return (struct slice){mem_dup(bytes.data, bytes.len), bytes.len};
}

static void undo_push(struct overlay *overlay, enum store_space space, struct slice key, struct slice before)
{
    if (overlay->undo_count == overlay->undo_capacity) {
        overlay->undo_capacity = overlay->undo_capacity ? overlay->undo_capacity * 2 : 16;
        overlay->undo = mem_realloc(overlay->undo, overlay->undo_capacity * sizeof *overlay->undo);
    }
    overlay->undo[overlay->undo_count++] = (struct undo){space, key, before};
}

/* Returns: the bytes that an entry counts in `bytes`. */
static size_t entry_bytes(const struct omap_entry *entry)
{
    return entry == NULL ? 0 : omap_key(entry).len + omap_value(entry).len - 1;
}

/* Sets a key whose current entry is `before` (NULL: none). */
static struct omap_entry *set_tagged(struct overlay *overlay, enum store_space space, struct slice key,
                                     const struct omap_entry *before, struct slice tagged)
{
    INSIST(overlay->bytes[space] >= entry_bytes(before));
    overlay->bytes[space] -= entry_bytes(before);
    struct omap_entry *entry = omap_put(&overlay->spaces[space], key, tagged);
    overlay->bytes[space] += entry_bytes(entry);
    update_tally(overlay);
    return entry;
}

static void change(struct overlay *overlay, enum store_space space, struct slice key, char tag, struct slice value)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    REQUIRE(!overlay_is_shared(overlay)); /* readers on other threads use it */
    const struct omap_entry *before = omap_get(&overlay->spaces[space], key);
    struct slice kept = overlay->has_savepoint && before != NULL ? slice_dup(omap_value(before)) : SLICE_NONE;
    buf_clear(&overlay->tagged);
    buf_byte(&overlay->tagged, tag);
    buf_slice(&overlay->tagged, value);
    const struct omap_entry *entry = set_tagged(overlay, space, key, before, buf_as_slice(&overlay->tagged));
    if (overlay->tagged.capacity > TAGGED_KEPT_MAX)
        buf_deinit(&overlay->tagged);
    if (overlay->has_savepoint)
        undo_push(overlay, space, omap_key(entry), kept);
}

void overlay_put(struct overlay *overlay, enum store_space space, struct slice key, struct slice value)
{
    change(overlay, space, key, TAG_PUT, value);
}

void overlay_delete(struct overlay *overlay, enum store_space space, struct slice key)
{
    change(overlay, space, key, TAG_DELETED, SLICE_NONE);
}

size_t overlay_bytes(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    size_t bytes = 0;
    for (int space = 0; space < SPACE_COUNT; space++)
        bytes += overlay->bytes[space];
    return bytes;
}

size_t overlay_memory_bytes(const struct overlay *overlay)
{
    size_t bytes = 0;
    for (int space = 0; space < SPACE_COUNT; space++)
        bytes += overlay->bytes[space] + overlay->spaces[space].count * OVERLAY_ENTRY_BYTES;
    return bytes;
}

size_t overlay_bytes_in(const struct overlay *overlay, enum store_space space)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    return overlay->bytes[space];
}

size_t overlay_count_in(const struct overlay *overlay, enum store_space space)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    return overlay->spaces[space].count;
}

size_t overlay_count(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    size_t count = 0;
    for (int space = 0; space < SPACE_COUNT; space++)
        count += overlay->spaces[space].count;
    return count;
}

const struct omap *overlay__space(const struct overlay *overlay, enum store_space space)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    return &overlay->spaces[space];
}

struct slice overlay__value(const struct omap_entry *entry)
{
    struct slice tagged = omap_value(entry);
    INSIST(tagged.len > 0 && (tagged.data[0] == TAG_DELETED || tagged.data[0] == TAG_PUT));
    return tagged.data[0] == TAG_DELETED ? SLICE_NONE : slice_from_offset(tagged, 1);
}

int overlay_get(const struct overlay *overlay, enum store_space space, struct slice key, struct slice *ret_value)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    const struct omap_entry *entry = omap_get(&overlay->spaces[space], key);
    if (entry == NULL)
        return STORE_NOT_FOUND;
    *ret_value = overlay__value(entry);
    return 0;
}

void overlay_each(const struct overlay *overlay, enum store_space space, overlay_visit *visit, void *context)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    for (const struct omap_entry *entry = omap_first(&overlay->spaces[space]); entry != NULL; entry = omap_next(entry))
        visit(context, omap_key(entry), overlay__value(entry));
}

void overlay_check(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    for (int space = 0; space < SPACE_COUNT; space++) {
        const struct omap_entry *before = NULL, *entry = omap_first(&overlay->spaces[space]);
        size_t count = 0, bytes = 0;
        for (; entry != NULL; before = entry, entry = omap_next(entry)) {
            struct slice tagged = omap_value(entry);
            INSIST(before == NULL || slice_compare(omap_key(before), omap_key(entry)) < 0);
            INSIST(tagged.len > 0 && (tagged.data[0] == TAG_PUT || (tagged.data[0] == TAG_DELETED && tagged.len == 1)));
            bytes += entry_bytes(entry);
            count++;
        }
        INSIST(count == overlay->spaces[space].count && bytes == overlay->bytes[space]);
    }
    INSIST(overlay->has_savepoint || overlay->undo_count == 0);
}

void overlay_apply(const struct overlay *overlay, struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    for (int space = 0; space < SPACE_COUNT; space++) {
        const struct omap_entry *entry = omap_first(&overlay->spaces[space]);
        for (; entry != NULL; entry = omap_next(entry)) {
            struct slice value = overlay__value(entry);
            if (value.data == NULL)
                store_batch_delete(batch, space, omap_key(entry));
            else
                store_batch_put(batch, space, omap_key(entry), value);
        }
    }
}

size_t overlay_savepoint(struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    overlay->has_savepoint = true;
    return overlay->undo_count;
}

void overlay_rollback_to(struct overlay *overlay, size_t savepoint)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && overlay->has_savepoint && savepoint <= overlay->undo_count);
    while (overlay->undo_count > savepoint) {
        struct undo *undo = &overlay->undo[--overlay->undo_count];
        struct omap *map = &overlay->spaces[undo->space];
        const struct omap_entry *entry = omap_get(map, undo->key);
        if (undo->before.data != NULL) {
            set_tagged(overlay, undo->space, undo->key, entry, undo->before);
        } else {
            overlay->bytes[undo->space] -= entry_bytes(entry);
            omap_remove(map, undo->key);
        }
        undo_free(undo);
    }
}
