/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transaction's writes, ordered by space and key, with savepoints; see view.h.
 *
 * One ordered map per space, whose memory snapshots share (overlay_map.h). A map's entry has the
 * ordinal of its key in `items`. After the first savepoint each change pushes the replaced entry to
 * an undo list; a savepoint is a length of that list.
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

/* A chunk of this weight gets no further key; one of twice the weight is cut. */
enum { CHUNK_WEIGHT = OVERLAY_CHUNK_BYTES, ITEM_WEIGHT = 8 };

/* An undo record. */
struct undo {
    enum store_space space;
    struct overlay_entry *before; /* with a reference; NULL: the key was new, the newest one of its time */
};

#define OVERLAY_MAGIC MAGIC('O', 'v', 'e', 'r')

struct item {
    const struct overlay_entry *entry; /* the current one in the map, which has the reference */
    enum store_space space;
};

struct overlay {
    uint32_t magic; /* OVERLAY_MAGIC */
    struct overlay_map spaces[SPACE_COUNT];
    size_t bytes[SPACE_COUNT]; /* of keys and values */
    bool is_snapshot;          /* has only the fields above */
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
};

struct overlay *overlay_new(void)
{
    struct overlay *overlay = mem_zalloc(sizeof *overlay);
    overlay->magic = OVERLAY_MAGIC;
    return overlay;
}

void overlay_release_savepoints(struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    while (overlay->undo_count > 0)
        overlay_entry_unref(overlay->undo[--overlay->undo_count].before);
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
        overlay_map_clear(&overlay->spaces[space]);
    memset(overlay->bytes, 0, sizeof overlay->bytes);
    overlay->item_count = overlay->chunk_count = overlay->first_changed = overlay->next_to_save = 0;
    overlay_release_savepoints(overlay);
    update_tally(overlay);
}

struct overlay *overlay_snapshot(struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && !overlay->is_snapshot && !overlay->has_savepoint);
    struct overlay *snapshot = overlay_new();
    snapshot->is_snapshot = true;
    memcpy(snapshot->bytes, overlay->bytes, sizeof snapshot->bytes);
    for (int space = 0; space < SPACE_COUNT; space++)
        overlay_map_share(&overlay->spaces[space], &snapshot->spaces[space]);
    return snapshot;
}

uint64_t overlay_nodes_copied(const struct overlay *overlay)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    uint64_t copied = 0;
    for (int space = 0; space < SPACE_COUNT; space++)
        copied += overlay->spaces[space].copied;
    return copied;
}

void overlay_free(struct overlay *overlay)
{
    REQUIRE(overlay == NULL || overlay->magic == OVERLAY_MAGIC);
    if (overlay == NULL)
        return;
    overlay_clear(overlay);
    mem_free(overlay->undo);
    mem_free(overlay->items);
    mem_free(overlay->chunks);
    magic_clear(&overlay->magic);
    mem_free(overlay);
}

static void undo_push(struct overlay *overlay, enum store_space space, struct overlay_entry *before)
{
    REQUIRE(overlay->has_savepoint);
    if (overlay->undo_count == overlay->undo_capacity) {
        overlay->undo_capacity = overlay->undo_capacity ? overlay->undo_capacity * 2 : 16;
        overlay->undo = mem_realloc(overlay->undo, overlay->undo_capacity * sizeof *overlay->undo);
    }
    overlay->undo[overlay->undo_count++] = (struct undo){space, before};
}

/* Returns: the bytes that an entry counts in `bytes`. */
static size_t entry_bytes(const struct overlay_entry *entry)
{
    return entry == NULL ? 0 : entry->key_len + entry->value_len;
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
static void remove_last(struct overlay *overlay, enum store_space space)
{
    REQUIRE(overlay->item_count > 0 && overlay->items[overlay->item_count - 1].space == space);
    const struct overlay_entry *entry = overlay->items[overlay->item_count - 1].entry;
    struct overlay_chunk *last = &overlay->chunks[overlay->chunk_count - 1];
    INSIST(entry->ordinal == overlay->item_count - 1);
    INSIST(overlay->bytes[space] >= entry_bytes(entry));
    overlay->bytes[space] -= entry_bytes(entry);
    count_item_bytes(overlay, entry->ordinal, entry_bytes(entry) + ITEM_WEIGHT, 0);
    overlay_map_remove(&overlay->spaces[space], overlay_entry_key(entry));
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
        visit(context, item->space, overlay_entry_key(item->entry), overlay_entry_value(item->entry));
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

/* Puts an entry, whose reference it takes, in place of `before` (NULL: the key is new). */
static void set_entry(struct overlay *overlay, enum store_space space, const struct overlay_entry *before,
                      struct overlay_entry *entry)
{
    size_t bytes = entry_bytes(before), weight = before == NULL ? 0 : bytes + ITEM_WEIGHT;
    INSIST(overlay->bytes[space] >= bytes);
    overlay_map_put(&overlay->spaces[space], entry);
    overlay->bytes[space] += entry_bytes(entry) - bytes;
    overlay->items[entry->ordinal] = (struct item){entry, space};
    count_item_bytes(overlay, entry->ordinal, weight, entry_bytes(entry) + ITEM_WEIGHT);
    update_tally(overlay);
}

static void change_key(struct overlay *overlay, enum store_space space, struct slice key, struct slice value,
                       bool deleted)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    REQUIRE(!overlay->is_snapshot); /* readers on other threads use it */
    struct overlay_entry *before = overlay_map_get(&overlay->spaces[space], key);
    uint32_t ordinal = before != NULL ? before->ordinal : add_item(overlay);
    struct overlay_entry *entry = overlay_entry_new(key, value, deleted, ordinal);
    if (overlay->has_savepoint) {
        if (before != NULL)
            overlay_entry_ref(before);
        undo_push(overlay, space, before);
    }
    set_entry(overlay, space, before, entry);
}

void overlay_put(struct overlay *overlay, enum store_space space, struct slice key, struct slice value)
{
    change_key(overlay, space, key, value, false);
}

void overlay_delete(struct overlay *overlay, enum store_space space, struct slice key)
{
    change_key(overlay, space, key, SLICE_NONE, true);
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

const struct overlay_map *overlay__space(const struct overlay *overlay, enum store_space space)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    return &overlay->spaces[space];
}

int overlay_get(const struct overlay *overlay, enum store_space space, struct slice key, struct slice *ret_value)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC) && space >= 0 && space < SPACE_COUNT);
    const struct overlay_entry *entry = overlay_map_get(&overlay->spaces[space], key);
    if (entry == NULL)
        return STORE_NOT_FOUND;
    *ret_value = overlay_entry_value(entry);
    return 0;
}

void overlay_each(const struct overlay *overlay, enum store_space space, overlay_visit *visit, void *context)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    REQUIRE(space >= 0 && space < SPACE_COUNT && visit != NULL);
    struct overlay_cursor cursor;
    const struct overlay_entry *entry = overlay_cursor_first(&cursor, &overlay->spaces[space]);
    for (; entry != NULL; entry = overlay_cursor_next(&cursor))
        visit(context, overlay_entry_key(entry), overlay_entry_value(entry));
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
        const struct overlay_map *map = &overlay->spaces[space];
        struct overlay_cursor cursor;
        const struct overlay_entry *entry = overlay_cursor_first(&cursor, map);
        size_t bytes = 0;
        overlay_map_check(map);
        for (; entry != NULL; bytes += entry_bytes(entry), entry = overlay_cursor_next(&cursor)) {
            INSIST(!entry->deleted || entry->value_len == 0);
            INSIST(overlay->is_snapshot ||
                   (entry->ordinal < overlay->item_count && overlay->items[entry->ordinal].entry == entry));
        }
        INSIST(bytes == overlay->bytes[space]);
    }
    INSIST(overlay->has_savepoint || overlay->undo_count == 0);
    check_chunks(overlay);
}

void overlay_apply(const struct overlay *overlay, struct store_batch *batch)
{
    REQUIRE(MAGIC_VALID(overlay, OVERLAY_MAGIC));
    for (int space = 0; space < SPACE_COUNT; space++) {
        struct overlay_cursor cursor;
        const struct overlay_entry *entry = overlay_cursor_first(&cursor, &overlay->spaces[space]);
        for (; entry != NULL; entry = overlay_cursor_next(&cursor)) {
            struct slice value = overlay_entry_value(entry);
            if (value.data == NULL)
                store_batch_delete(batch, space, overlay_entry_key(entry));
            else
                store_batch_put(batch, space, overlay_entry_key(entry), value);
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
        const struct undo undo = overlay->undo[--overlay->undo_count];
        if (undo.before != NULL)
            set_entry(overlay, undo.space, overlay->items[undo.before->ordinal].entry, undo.before);
        else
            remove_last(overlay, undo.space);
    }
}
