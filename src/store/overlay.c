/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transaction's writes, ordered by space and key, with savepoints; see view.h.
 *
 * One ordered map per space. A map's value is a tag byte, which distinguishes a deletion from an
 * empty value, the ordinal of the key in `items`, and the value. After the first savepoint each
 * change pushes the replaced value to an undo list; a savepoint is a length of that list.
 *
 * `items` has all keys in the order in which they were first written, and a chunk is a range of it.
 * A rollback removes keys in the reverse of that order, so ordinals never change.
 */
#include "base/alloc.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/magic.h"
#include "store/overlay_internal.h"
#include "store/view.h"

#include <stdatomic.h>

enum { TAGGED_KEPT_MAX = 64 * 1024 }; /* a larger scratch buffer is freed after a change */

/* A chunk of this weight gets no further key; one of twice the weight is cut. */
enum { CHUNK_WEIGHT = OVERLAY_CHUNK_BYTES, ITEM_WEIGHT = 8 };

enum { TAG_BYTES = 1, ORDINAL_BYTES = 4, HEAD_BYTES = TAG_BYTES + ORDINAL_BYTES };

enum { TAG_DELETED = 'd', TAG_PUT = 'p' };

/* An undo record: the key and its previous tagged value; data NULL: there was none. */
struct undo {
    enum store_space space;
    struct slice key; /* points into the map entry, which only undoing this change can remove */
    struct slice before;
};

#define OVERLAY_MAGIC MAGIC('O', 'v', 'e', 'r')

struct item {
    const struct omap_entry *entry;
    enum store_space space;
};

struct overlay {
    uint32_t magic; /* OVERLAY_MAGIC */
    struct omap spaces[SPACE_COUNT];
    size_t bytes[SPACE_COUNT]; /* of keys and values without their heads */
    struct item *items;
    size_t item_count;
    size_t item_capacity;
    struct overlay_chunk *chunks; /* in order of their first items */
    size_t chunk_count;
    size_t chunk_capacity;
    uint32_t next_chunk;       /* number of the next new chunk */
    size_t first_changed;      /* no chunk before this one is changed */
    size_t next_to_save;       /* chunks from this one on are saved before those before it */
    bool reads_chunk;          /* the last chunk is being read: it gets all further keys */
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
    overlay->item_count = overlay->chunk_count = overlay->first_changed = overlay->next_to_save = 0;
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

static uint32_t ordinal_of(const struct omap_entry *entry)
{
    uint32_t ordinal;
    memcpy(&ordinal, omap_value(entry).data + TAG_BYTES, sizeof ordinal);
    return ordinal;
}

struct overlay *overlay_copy(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    REQUIRE(!overlay->has_savepoint); /* the copy could not be rolled back to it */
    struct overlay *copy = overlay_new();
    copy->items = mem_alloc((overlay->item_count + 1) * sizeof *copy->items);
    copy->item_count = overlay->item_count;
    copy->item_capacity = overlay->item_count + 1;
    copy->chunks = mem_dup(overlay->chunks, overlay->chunk_count * sizeof *copy->chunks);
    copy->chunk_count = copy->chunk_capacity = overlay->chunk_count;
    copy->next_chunk = overlay->next_chunk;
    copy->first_changed = overlay->first_changed;
    copy->next_to_save = overlay->next_to_save;
    for (int space = 0; space < SPACE_COUNT; space++)
        for (const struct omap_entry *entry = omap_first(&overlay->spaces[space]); entry != NULL;
             entry = omap_next(entry))
            copy->items[ordinal_of(entry)] = (struct item){
                omap_put(&copy->spaces[space], omap_key(entry), omap_value(entry)), (enum store_space)space};
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
    mem_free(overlay->items);
    mem_free(overlay->chunks);
    buf_deinit(&overlay->tagged);
    magic_clear(&overlay->magic);
    mem_free(overlay);
}

static void undo_push(struct overlay *overlay, enum store_space space, struct slice key, struct slice before)
{
    REQUIRE(overlay->has_savepoint);
    if (overlay->undo_count == overlay->undo_capacity) {
        overlay->undo_capacity = overlay->undo_capacity ? overlay->undo_capacity * 2 : 16;
        overlay->undo = mem_realloc(overlay->undo, overlay->undo_capacity * sizeof *overlay->undo);
    }
    overlay->undo[overlay->undo_count++] = (struct undo){space, key, before};
}

/* Returns: the bytes that an entry counts in `bytes`. */
static size_t entry_bytes(const struct omap_entry *entry)
{
    return entry == NULL ? 0 : omap_key(entry).len + omap_value(entry).len - HEAD_BYTES;
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

/* Returns: the index of the chunk that has this item. */
static size_t chunk_of(const struct overlay *overlay, uint32_t ordinal)
{
    REQUIRE(overlay->chunk_count > 0 && ordinal < overlay->item_count);
    size_t low = 0, high = overlay->chunk_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (overlay->chunks[middle].first <= ordinal)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Makes room for `count` chunks after the first `index`; the caller sets them. */
static struct overlay_chunk *insert_chunks(struct overlay *overlay, size_t index, size_t count)
{
    REQUIRE(index <= overlay->chunk_count);
    if (overlay->chunk_count + count > overlay->chunk_capacity) {
        overlay->chunk_capacity = 2 * overlay->chunk_capacity + count;
        overlay->chunks = mem_realloc(overlay->chunks, overlay->chunk_capacity * sizeof *overlay->chunks);
    }
    struct overlay_chunk *at = &overlay->chunks[index];
    memmove(at + count, at, (overlay->chunk_count - index) * sizeof *at);
    overlay->chunk_count += count;
    return at;
}

/* Returns: the ordinal of a new item, whose entry the caller sets. */
static uint32_t add_item(struct overlay *overlay)
{
    size_t count = overlay->chunk_count;
    INSIST(overlay->item_count < UINT32_MAX);
    if (overlay->item_count == overlay->item_capacity) {
        overlay->item_capacity = overlay->item_capacity ? overlay->item_capacity * 2 : 16;
        overlay->items = mem_realloc(overlay->items, overlay->item_capacity * sizeof *overlay->items);
    }
    if (count == 0 || (!overlay->reads_chunk && overlay->chunks[count - 1].weight >= CHUNK_WEIGHT))
        *insert_chunks(overlay, count, 1) =
            (struct overlay_chunk){.number = overlay->next_chunk++, .first = (uint32_t)overlay->item_count};
    return (uint32_t)overlay->item_count++;
}

/* Counts a changed value, or with ITEM_WEIGHT a new key, in the chunk of an item. */
static void count_item_bytes(struct overlay *overlay, uint32_t ordinal, size_t before, size_t after)
{
    size_t index = chunk_of(overlay, ordinal);
    INSIST(index < overlay->chunk_count && overlay->chunks[index].weight + after >= before);
    overlay->chunks[index].weight += after - before;
    overlay->chunks[index].changed = true;
    overlay->first_changed = index < overlay->first_changed ? index : overlay->first_changed;
}

/* Removes the newest key. */
static void remove_last(struct overlay *overlay, enum store_space space, struct slice key)
{
    const struct omap_entry *entry = omap_get(&overlay->spaces[space], key);
    struct overlay_chunk *last = &overlay->chunks[overlay->chunk_count - 1];
    INSIST(ordinal_of(entry) == overlay->item_count - 1);
    INSIST(overlay->bytes[space] >= entry_bytes(entry));
    overlay->bytes[space] -= entry_bytes(entry);
    count_item_bytes(overlay, ordinal_of(entry), entry_bytes(entry) + ITEM_WEIGHT, 0);
    omap_remove(&overlay->spaces[space], key);
    overlay->item_count--;
    overlay->chunk_count -= last->first == overlay->item_count;
}

static size_t items_end(const struct overlay *overlay, size_t index)
{
    REQUIRE(index < overlay->chunk_count);
    return index + 1 == overlay->chunk_count ? overlay->item_count : overlay->chunks[index + 1].first;
}

/* Returns: whether an item begins a new chunk, after items of `weight` in the one before; counts the item. */
static bool item_begins_chunk(const struct overlay *overlay, size_t ordinal, size_t *weight)
{
    bool begins = *weight >= CHUNK_WEIGHT;
    *weight = (begins ? 0 : *weight) + entry_bytes(overlay->items[ordinal].entry) + ITEM_WEIGHT;
    return begins;
}

/* Cuts a chunk that has become too large. All new chunks are inserted at once. */
static void cut_chunk(struct overlay *overlay, size_t index)
{
    size_t first = overlay->chunks[index].first, end = items_end(overlay, index), weight = 0, count = 0;
    for (size_t i = first; i < end; i++)
        count += item_begins_chunk(overlay, i, &weight);
    struct overlay_chunk *chunk = insert_chunks(overlay, index + 1, count) - 1;
    weight = 0;
    for (size_t i = first; i < end; i++) {
        size_t before = weight;
        if (!item_begins_chunk(overlay, i, &weight))
            continue;
        chunk[1] = (struct overlay_chunk){
            .number = overlay->next_chunk++, .first = (uint32_t)i, .weight = chunk->weight - before, .changed = true};
        chunk->weight = before;
        chunk++;
    }
}

size_t overlay_chunk_count(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    return overlay->chunk_count;
}

const struct overlay_chunk *overlay_chunk(const struct overlay *overlay, size_t index)
{
    REQUIRE(index < overlay->chunk_count);
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    return &overlay->chunks[index];
}

/* Returns: the first changed chunk from `index` on, or the number of chunks. */
static size_t find_changed(const struct overlay *overlay, size_t index)
{
    while (index < overlay->chunk_count && !overlay->chunks[index].changed)
        index++;
    return index < overlay->chunk_count ? index : overlay->chunk_count;
}

bool overlay_changed_chunk(struct overlay *overlay, size_t *ret_index)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && !overlay->has_savepoint);
    size_t first = overlay->first_changed, next = overlay->next_to_save;
    size_t index = find_changed(overlay, next > first ? next : first);
    if (index == overlay->chunk_count)
        overlay->first_changed = index = find_changed(overlay, first);
    overlay->next_to_save = index;
    if (index == overlay->chunk_count)
        return false;
    if (overlay->chunks[index].weight >= (size_t)2 * CHUNK_WEIGHT)
        cut_chunk(overlay, index);
    *ret_index = index;
    return true;
}

void overlay_each_of_chunk(const struct overlay *overlay, size_t index, overlay_chunk_visit *visit, void *context)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && index < overlay->chunk_count);
    for (size_t i = overlay->chunks[index].first, end = items_end(overlay, index); i < end; i++) {
        const struct item *item = &overlay->items[i];
        visit(context, item->space, omap_key(item->entry), overlay__value(item->entry));
    }
}

void overlay_chunk_saved(struct overlay *overlay, size_t index, uint32_t len, uint32_t crc)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && index < overlay->chunk_count);
    struct overlay_chunk *chunk = &overlay->chunks[index];
    chunk->changed = false;
    chunk->saved_len = len;
    chunk->saved_crc = crc;
    overlay->next_to_save = index + 1;
    overlay->reads_chunk = false;
}

size_t overlay_begin_chunk(struct overlay *overlay, uint32_t number)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && !overlay->reads_chunk && number < UINT32_MAX);
    size_t index = overlay->chunk_count;
    *insert_chunks(overlay, index, 1) =
        (struct overlay_chunk){.number = number, .first = (uint32_t)overlay->item_count, .changed = true};
    overlay->next_chunk = number >= overlay->next_chunk ? number + 1 : overlay->next_chunk;
    overlay->reads_chunk = true;
    return index;
}

/* --- Changes ------------------------------------------------------------------------------------------------------ */

/* Sets a key whose current entry is `before` (NULL: none). */
static struct omap_entry *set_tagged(struct overlay *overlay, enum store_space space, struct slice key,
                                     const struct omap_entry *before, struct slice tagged)
{
    size_t bytes = entry_bytes(before), weight = before == NULL ? 0 : bytes + ITEM_WEIGHT;
    INSIST(overlay->bytes[space] >= bytes);
    struct omap_entry *entry = omap_put(&overlay->spaces[space], key, tagged);
    uint32_t ordinal = ordinal_of(entry);
    overlay->bytes[space] += entry_bytes(entry) - bytes;
    overlay->items[ordinal] = (struct item){entry, space};
    count_item_bytes(overlay, ordinal, weight, entry_bytes(entry) + ITEM_WEIGHT);
    update_tally(overlay);
    return entry;
}

static void change_key(struct overlay *overlay, enum store_space space, struct slice key, char tag, struct slice value)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    REQUIRE(!overlay_is_shared(overlay)); /* readers on other threads use it */
    const struct omap_entry *before = omap_get(&overlay->spaces[space], key);
    struct slice kept = overlay->has_savepoint && before != NULL ? mem_dup_slice(omap_value(before)) : SLICE_NONE;
    uint32_t ordinal = before != NULL ? ordinal_of(before) : add_item(overlay);
    buf_clear(&overlay->tagged);
    buf_byte(&overlay->tagged, tag);
    buf_append(&overlay->tagged, &ordinal, sizeof ordinal);
    buf_slice(&overlay->tagged, value);
    const struct omap_entry *entry = set_tagged(overlay, space, key, before, buf_as_slice(&overlay->tagged));
    if (overlay->tagged.capacity > TAGGED_KEPT_MAX)
        buf_deinit(&overlay->tagged);
    if (overlay->has_savepoint)
        undo_push(overlay, space, omap_key(entry), kept);
}

void overlay_put(struct overlay *overlay, enum store_space space, struct slice key, struct slice value)
{
    change_key(overlay, space, key, TAG_PUT, value);
}

void overlay_delete(struct overlay *overlay, enum store_space space, struct slice key)
{
    change_key(overlay, space, key, TAG_DELETED, SLICE_NONE);
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
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
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
    INSIST(tagged.len >= HEAD_BYTES && (tagged.data[0] == TAG_DELETED || tagged.data[0] == TAG_PUT));
    return tagged.data[0] == TAG_DELETED ? SLICE_NONE : slice_from_offset(tagged, HEAD_BYTES);
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
    REQUIRE(space >= 0 && space < SPACE_COUNT && visit != NULL);
    const struct omap_entry *next;
    for (const struct omap_entry *entry = omap_first(&overlay->spaces[space]); entry != NULL; entry = next) {
        next = omap_next(entry);
        if (next != NULL)
            omap_prefetch(next); /* while this one is visited: entries and values are scattered */
        visit(context, omap_key(entry), overlay__value(entry));
    }
}

static void check_chunks(const struct overlay *overlay)
{
    for (size_t i = 0; i < overlay->chunk_count; i++) {
        const struct overlay_chunk *chunk = &overlay->chunks[i];
        size_t weight = 0;
        INSIST(i == 0 ? chunk->first == 0 : chunk->first > overlay->chunks[i - 1].first);
        INSIST(chunk->first < overlay->item_count && chunk->number < overlay->next_chunk);
        INSIST(!chunk->changed || i >= overlay->first_changed);
        for (size_t k = chunk->first, end = items_end(overlay, i); k < end; k++)
            weight += entry_bytes(overlay->items[k].entry) + ITEM_WEIGHT;
        INSIST(weight == chunk->weight);
    }
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
            INSIST(tagged.len >= HEAD_BYTES && (tagged.len == HEAD_BYTES || tagged.data[0] == TAG_PUT));
            INSIST(ordinal_of(entry) < overlay->item_count && overlay->items[ordinal_of(entry)].entry == entry);
            bytes += entry_bytes(entry);
            count++;
        }
        INSIST(count == overlay->spaces[space].count && bytes == overlay->bytes[space]);
    }
    INSIST(overlay->has_savepoint || overlay->undo_count == 0);
    check_chunks(overlay);
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
        if (undo->before.data != NULL)
            set_tagged(overlay, undo->space, undo->key, omap_get(&overlay->spaces[undo->space], undo->key),
                       undo->before);
        else
            remove_last(overlay, undo->space, undo->key);
        undo_free(undo);
    }
}
