/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting and writing entries; see entry.h and entry_key.h.
 *
 * Singles are worked out per key at the end: each document handed in adds "it had this" for its old values and "it has
 * this" for its new ones, the whole is sorted by key, and a key is put only where it was not there and is now, removed
 * only where it was there and is not. So a document that comes twice, or values that move about, need no care.
 *
 * Chunks are grouped by field and value in a hash table, since sorting every value of a bulk load would cost more than
 * anything else about it. Only the groups are sorted.
 */
#include "mapping/entry.h"

#include "base/siphash.h"
#include "base/check.h"
#include "mapping/entry_key.h"

#include <stdlib.h>

struct entry_item {
    struct slice document_key;
    struct field_value value;
    bool old;   /* of the version replaced: it is there now */
    bool chunk; /* new, and goes to a chunk */
};

void entry_set_init(struct entry_set *set, struct arena *arena, uint32_t index, uint64_t batch)
{
    *set = (struct entry_set){.arena = arena, .index = index, .batch = batch};
}

static void add(struct entry_set *set, struct slice document_key, const struct field_value *value, bool old)
{
    if (value->field == FIELD_NUMBER_NONE || value->kind == FIELD_VALUE_NONE)
        return;
    set->items = arena_grow(set->arena, set->items, set->count, &set->capacity, sizeof *set->items);
    set->items[set->count++] = (struct entry_item){
        .document_key = document_key, .value = *value, .old = old, .chunk = !old && set->batch != 0};
}

static bool same_value(const struct field_value *a, const struct field_value *b)
{
    if (a->field != b->field || a->kind != b->kind)
        return false;
    return a->kind == FIELD_VALUE_BYTES ? slice_equal(a->bytes, b->bytes) : a->i64 == b->i64;
}

static size_t highest_field(const struct field_value *values, size_t count, size_t highest)
{
    for (size_t i = 0; i < count; i++)
        highest = values[i].field > highest ? values[i].field : highest;
    return highest;
}

/* Fields in which a value stands in another place, or is of one version only: a bit each. */
static unsigned char *changed_fields(struct arena *arena, const struct field_value *values, size_t count,
                                     const struct field_value *old_values, size_t old_count)
{
    size_t highest = highest_field(old_values, old_count, highest_field(values, count, 0));
    unsigned char *bits = arena_zalloc(arena, highest / 8 + 1);
    for (size_t i = 0; i < count || i < old_count; i++) {
        if (i < count && i < old_count && same_value(&values[i], &old_values[i]))
            continue;
        if (i < count)
            bits[values[i].field / 8] |= (unsigned char)(1u << values[i].field % 8);
        if (i < old_count)
            bits[old_values[i].field / 8] |= (unsigned char)(1u << old_values[i].field % 8);
    }
    return bits;
}

static void add_changed(struct entry_set *set, struct slice document_key, const struct field_value *values, size_t count,
                        bool old, const unsigned char *changed)
{
    for (size_t i = 0; i < count; i++) {
        if (changed == NULL || changed[values[i].field / 8] & (1u << values[i].field % 8))
            add(set, document_key, &values[i], old);
    }
}

static bool all_same(const struct field_value *values, size_t count, const struct field_value *old_values, size_t old_count)
{
    if (count != old_count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!same_value(&values[i], &old_values[i]))
            return false;
    }
    return true;
}

void entry_set_write(struct entry_set *set, struct slice document_key, const struct field_value *values, size_t count,
                     const struct field_value *old_values, size_t old_count, uint64_t old_batch)
{
    if (old_batch != 0)
        old_count = 0; /* left behind as stale */
    const unsigned char *changed = NULL;
    if (set->batch == 0 && old_count > 0) {
        /*
         * Most updates change few fields. A field counts as a whole: one of its values may leave one place and stay in
         * another.
         */
        if (all_same(values, count, old_values, old_count))
            return;
        changed = changed_fields(set->arena, values, count, old_values, old_count);
    }
    add_changed(set, document_key, old_values, old_count, true, changed);
    add_changed(set, document_key, values, count, false, changed);
}

void entry_set_delete(struct entry_set *set, struct slice document_key, const struct field_value *old_values,
                      size_t old_count, uint64_t old_batch)
{
    if (old_batch != 0)
        return; /* left behind as stale */
    for (size_t i = 0; i < old_count; i++)
        add(set, document_key, &old_values[i], true);
}

/* --- Singles ------------------------------------------------------------------------------------------------------ */

struct single {
    struct slice key;
    size_t order; /* in which it was handed in */
    bool old;
};

static int single_compare(const void *left, const void *right)
{
    const struct single *a = left;
    const struct single *b = right;
    int order = slice_compare(a->key, b->key);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

static struct slice single_key(struct entry_set *set, const struct entry_item *item, struct buf *scratch)
{
    buf_clear(scratch);
    entry_key_field(scratch, set->index, item->value.field);
    entry_value_encode(scratch, &item->value);
    buf_byte(scratch, ENTRY_SINGLE);
    buf_slice(scratch, item->document_key);
    return arena_copy(set->arena, buf_as_slice(scratch));
}

static size_t emit_singles(struct entry_set *set, const struct entry_sink *sink, struct buf *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        count += !set->items[i].chunk;
    if (count == 0)
        return 0;
    struct single *singles = arena_alloc(set->arena, count * sizeof *singles);
    count = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].chunk)
            continue;
        singles[count] = (struct single){single_key(set, &set->items[i], scratch), count, set->items[i].old};
        count++;
    }
    qsort(singles, count, sizeof *singles, single_compare);

    size_t emitted = 0;
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && slice_equal(singles[to].key, singles[from].key); to++)
            ;
        bool was_there = singles[from].old;
        bool is_there = !singles[to - 1].old;
        if (was_there == is_there)
            continue;
        if (is_there)
            sink->put(sink->context, singles[from].key, SLICE_NONE);
        else
            sink->remove(sink->context, singles[from].key);
        emitted++;
    }
    return emitted;
}

/* --- Chunks ------------------------------------------------------------------------------------------------------- */

struct group_member {
    struct slice document_key;
    struct group_member *next;
};

struct group {
    uint64_t hash;
    struct slice value; /* key up to the shape: index, field, encoded value */
    struct group_member *first;
    struct group_member *last;
    size_t count;
    bool unsorted; /* some member is not above the one before */
};

struct grouping {
    struct group *groups;
    size_t count;
    size_t capacity;
    uint32_t *table; /* open addressing: group number + 1 */
    size_t table_size;
};

static void table_build(struct grouping *grouping, struct arena *arena, size_t size)
{
    grouping->table = arena_zalloc(arena, size * sizeof *grouping->table);
    grouping->table_size = size;
    for (size_t g = 0; g < grouping->count; g++) {
        size_t i = grouping->groups[g].hash & (size - 1);
        while (grouping->table[i] != 0)
            i = (i + 1) & (size - 1);
        grouping->table[i] = (uint32_t)g + 1;
    }
}

static struct group *group_of(struct grouping *grouping, struct arena *arena, struct slice value)
{
    if ((grouping->count + 1) * 2 > grouping->table_size)
        table_build(grouping, arena, grouping->table_size ? grouping->table_size * 2 : 256);
    uint64_t hash = siphash_keyed(value);
    size_t mask = grouping->table_size - 1;
    size_t i = hash & mask;
    for (; grouping->table[i] != 0; i = (i + 1) & mask) {
        struct group *group = &grouping->groups[grouping->table[i] - 1];
        if (group->hash == hash && slice_equal(group->value, value))
            return group;
    }
    grouping->groups =
        arena_grow(arena, grouping->groups, grouping->count, &grouping->capacity, sizeof *grouping->groups);
    struct group *group = &grouping->groups[grouping->count++];
    *group = (struct group){.hash = hash, .value = arena_copy(arena, value)};
    grouping->table[i] = (uint32_t)grouping->count;
    return group;
}

static void group_add(struct group *group, struct arena *arena, struct slice document_key)
{
    if (group->last != NULL) {
        int order = slice_compare(group->last->document_key, document_key);
        if (order == 0)
            return;
        group->unsorted |= order > 0;
    }
    struct group_member *member = arena_alloc(arena, sizeof *member);
    *member = (struct group_member){document_key, NULL};
    if (group->last != NULL)
        group->last->next = member;
    else
        group->first = member;
    group->last = member;
    group->count++;
}

static int slice_pointer_compare(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Returns: the group's document keys in order, each once; their number in *ret_count. */
static struct slice *group_members(const struct group *group, struct arena *arena, size_t *ret_count)
{
    struct slice *keys = arena_alloc(arena, group->count * sizeof *keys);
    size_t count = 0;
    for (const struct group_member *m = group->first; m != NULL; m = m->next)
        keys[count++] = m->document_key;
    if (group->unsorted) {
        qsort(keys, count, sizeof *keys, slice_pointer_compare);
        size_t unique = 1;
        for (size_t i = 1; i < count; i++)
            if (!slice_equal(keys[i], keys[unique - 1]))
                keys[unique++] = keys[i];
        count = unique;
    }
    *ret_count = count;
    return keys;
}

static void front_code(struct buf *buf, struct slice before, struct slice key)
{
    size_t shared = 0;
    while (shared < before.len && shared < key.len && before.data[shared] == key.data[shared])
        shared++;
    buf_varint(buf, shared);
    buf_varint(buf, key.len - shared);
    buf_append(buf, key.data + shared, key.len - shared);
}

static size_t emit_group(struct entry_set *set, const struct group *group, const struct entry_sink *sink,
                         struct buf *key, struct buf *value)
{
    size_t count;
    struct slice *members = group_members(group, set->arena, &count);
    size_t emitted = 0;
    for (size_t from = 0; from < count; from += ENTRY_POSTING_LIST_MAX) {
        size_t to = count - from > ENTRY_POSTING_LIST_MAX ? from + ENTRY_POSTING_LIST_MAX : count;
        buf_clear(key);
        buf_slice(key, group->value);
        buf_byte(key, ENTRY_POSTING_LIST);
        buf_u64be(key, set->batch);
        buf_slice(key, members[from]);
        buf_clear(value);
        buf_varint(value, to - from - 1);
        for (size_t i = from + 1; i < to; i++)
            front_code(value, members[i - 1], members[i]);
        sink->put(sink->context, buf_as_slice(key), buf_as_slice(value));
        emitted++;
    }
    return emitted;
}

static int group_compare(const void *a, const void *b)
{
    return slice_compare(((const struct group *)a)->value, ((const struct group *)b)->value);
}

static size_t emit_chunks(struct entry_set *set, const struct entry_sink *sink, struct buf *scratch)
{
    struct grouping grouping = {0};
    for (size_t i = 0; i < set->count; i++) {
        const struct entry_item *item = &set->items[i];
        if (!item->chunk)
            continue;
        buf_clear(scratch);
        entry_key_field(scratch, set->index, item->value.field);
        entry_value_encode(scratch, &item->value);
        group_add(group_of(&grouping, set->arena, buf_as_slice(scratch)), set->arena, item->document_key);
    }
    if (grouping.count == 0)
        return 0;
    qsort(grouping.groups, grouping.count, sizeof *grouping.groups, group_compare);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);
    size_t emitted = 0;
    for (size_t g = 0; g < grouping.count; g++)
        emitted += emit_group(set, &grouping.groups[g], sink, scratch, &value);
    return emitted;
}

size_t entry_set_emit(struct entry_set *set, const struct entry_sink *sink)
{
    if (set->count == 0)
        return 0;
    tl_cleanup(buf_deinit) struct buf scratch = BUF_INIT(BUF_UNLIMITED);
    size_t emitted = emit_singles(set, sink, &scratch) + emit_chunks(set, sink, &scratch);
    set->items = NULL;
    set->count = set->capacity = 0;
    return emitted;
}
