/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collection and output of entries; see entry.h and entry_key.h.
 *
 * Single entries are resolved by key at the end. Each document adds an item for each old and each
 * new value, and the items are sorted by key and order of arrival. A key is put only if it did not
 * exist before and does now, and removed only in the opposite case. A document may thus be written
 * several times in a command, and values may change position.
 *
 * Posting lists are built in a hash table by field and value, because sorting every value of a
 * bulk load would dominate its cost. Only the finished lists are sorted.
 */
#include "mapping/entry.h"

#include "base/siphash.h"
#include "base/check.h"
#include "mapping/entry_key.h"

#include <stdlib.h>

struct entry_item {
    struct slice document_key;
    struct field_value value;
    bool old;          /* a value of the replaced version: its entry exists */
    bool posting_list; /* a new value that goes to a posting list */
};

void entry_set_init(struct entry_set *set, struct arena *arena, uint32_t index, uint64_t batch)
{
    *set = (struct entry_set){.arena = arena, .index = index, .batch = batch};
}

static bool same_value(const struct field_value *a, const struct field_value *b)
{
    if (a->field != b->field || a->kind != b->kind)
        return false;
    return a->kind == FIELD_VALUE_BYTES ? slice_equal(a->bytes, b->bytes) : a->i64 == b->i64;
}

/* Whether an item follows the same one of the same document, as in a list of equal numbers. */
static bool is_repeated(const struct entry_set *set, struct slice document_key, const struct field_value *value,
                        bool old)
{
    if (set->count == 0)
        return false;
    const struct entry_item *last = &set->items[set->count - 1];
    return last->old == old && last->document_key.data == document_key.data &&
           last->document_key.len == document_key.len && same_value(&last->value, value);
}

/* Adds an item, unless the field has no entries or the item is repeated. */
static void add_entry(struct entry_set *set, struct slice document_key, const struct field_value *value, bool old)
{
    if (value->field == FIELD_NUMBER_NONE || value->kind == FIELD_VALUE_NONE ||
        is_repeated(set, document_key, value, old))
        return;
    set->items = arena_grow(set->arena, set->items, set->count, &set->capacity, sizeof *set->items);
    set->items[set->count++] = (struct entry_item){
        .document_key = document_key, .value = *value, .old = old, .posting_list = !old && set->batch != 0};
}

/* Returns: the highest field number of the values, at least `highest`. */
static size_t highest_field(const struct field_value *values, size_t count, size_t highest)
{
    for (size_t i = 0; i < count; i++)
        highest = values[i].field > highest ? values[i].field : highest;
    return highest;
}

/* Returns: a bit set of the fields whose values differ between two versions, or may differ. */
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

/* Adds the values of the fields in the bit set `changed`; NULL: all values. */
static void add_changed(struct entry_set *set, struct slice document_key, const struct field_value *values,
                        size_t count, bool old, const unsigned char *changed)
{
    for (size_t i = 0; i < count; i++) {
        if (changed == NULL || changed[values[i].field / 8] & (1u << values[i].field % 8))
            add_entry(set, document_key, &values[i], old);
    }
}

static bool all_same(const struct field_value *values, size_t count, const struct field_value *old_values,
                     size_t old_count)
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
        old_count = 0; /* posting lists are not modified: the old entries become stale */
    const unsigned char *changed = NULL;
    if (set->batch == 0 && old_count > 0) {
        /*
         * Most updates change few fields. All values of a changed field are added, because a value
         * may be removed at one position and remain at another.
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
        return; /* posting lists are not modified: the old entries become stale */
    for (size_t i = 0; i < old_count; i++)
        add_entry(set, document_key, &old_values[i], true);
}

/* --- Single entries ------------------------------------------------------------------------------- */

struct single {
    struct slice key;
    size_t order; /* of arrival */
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
        count += !set->items[i].posting_list;
    if (count == 0)
        return 0;
    struct single *singles = arena_alloc(set->arena, count * sizeof *singles);
    count = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].posting_list)
            continue;
        singles[count] = (struct single){single_key(set, &set->items[i], scratch), count, set->items[i].old};
        count++;
    }
    qsort(singles, count, sizeof *singles, single_compare);

    size_t emitted = 0;
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && slice_equal(singles[to].key, singles[from].key); to++)
            ;
        bool existed = singles[from].old;
        bool exists = !singles[to - 1].old;
        if (existed == exists)
            continue;
        if (exists)
            sink->put(sink->context, singles[from].key, SLICE_NONE);
        else
            sink->remove(sink->context, singles[from].key);
        emitted++;
    }
    return emitted;
}

/* --- Posting lists -------------------------------------------------------------------------------- */

/* A document key of a builder, in a linked list in order of arrival. */
struct list_member {
    struct slice document_key;
    struct list_member *next;
};

/* Collects the documents of one value. */
struct posting_list_builder {
    uint64_t hash;      /* of `value` */
    struct slice value; /* the key up to the shape: index, field, encoded value */
    struct list_member *first;
    struct list_member *last;
    size_t count;
    bool unsorted; /* a document key is lower than the one before it */
};

struct builder_table {
    struct posting_list_builder *items;
    size_t count;
    size_t capacity;
    uint32_t *table; /* open addressing: position in `items` + 1; 0: empty slot */
    size_t table_size;
};

static void table_build(struct builder_table *builders, struct arena *arena, size_t size)
{
    builders->table = arena_zalloc(arena, size * sizeof *builders->table);
    builders->table_size = size;
    for (size_t g = 0; g < builders->count; g++) {
        size_t i = builders->items[g].hash & (size - 1);
        while (builders->table[i] != 0)
            i = (i + 1) & (size - 1);
        builders->table[i] = (uint32_t)g + 1;
    }
}

/* Returns: the builder for a value, created if it does not exist. */
static struct posting_list_builder *builder_of(struct builder_table *builders, struct arena *arena, struct slice value)
{
    if ((builders->count + 1) * 2 > builders->table_size)
        table_build(builders, arena, builders->table_size ? builders->table_size * 2 : 256);
    uint64_t hash = siphash_keyed(value);
    size_t mask = builders->table_size - 1;
    size_t i = hash & mask;
    for (; builders->table[i] != 0; i = (i + 1) & mask) {
        struct posting_list_builder *builder = &builders->items[builders->table[i] - 1];
        if (builder->hash == hash && slice_equal(builder->value, value))
            return builder;
    }
    builders->items = arena_grow(arena, builders->items, builders->count, &builders->capacity, sizeof *builders->items);
    struct posting_list_builder *builder = &builders->items[builders->count++];
    *builder = (struct posting_list_builder){.hash = hash, .value = arena_copy(arena, value)};
    builders->table[i] = (uint32_t)builders->count;
    return builder;
}

/* Appends a document key, unless it equals the last one. */
static void builder_add(struct posting_list_builder *builder, struct arena *arena, struct slice document_key)
{
    if (builder->last != NULL) {
        int order = slice_compare(builder->last->document_key, document_key);
        if (order == 0)
            return;
        builder->unsorted |= order > 0;
    }
    struct list_member *member = arena_alloc(arena, sizeof *member);
    *member = (struct list_member){document_key, NULL};
    if (builder->last != NULL)
        builder->last->next = member;
    else
        builder->first = member;
    builder->last = member;
    builder->count++;
}

/* Returns: the document keys of a builder, sorted and distinct; their number in *ret_count. */
static struct slice *builder_members(const struct posting_list_builder *builder, struct arena *arena, size_t *ret_count)
{
    struct slice *keys = arena_alloc(arena, builder->count * sizeof *keys);
    size_t count = 0;
    for (const struct list_member *m = builder->first; m != NULL; m = m->next)
        keys[count++] = m->document_key;
    if (builder->unsorted) {
        qsort(keys, count, sizeof *keys, slice_order);
        size_t unique = 1;
        for (size_t i = 1; i < count; i++)
            if (!slice_equal(keys[i], keys[unique - 1]))
                keys[unique++] = keys[i];
        count = unique;
    }
    *ret_count = count;
    return keys;
}

/* Appends `key` as the length of the prefix shared with `before`, and its suffix (entry_key.h). */
static void front_code(struct buf *buf, struct slice before, struct slice key)
{
    size_t shared = 0;
    while (shared < before.len && shared < key.len && before.data[shared] == key.data[shared])
        shared++;
    buf_varint(buf, shared);
    buf_varint(buf, key.len - shared);
    buf_append(buf, key.data + shared, key.len - shared);
}

/* Writes the posting lists of one value. Returns: their number. */
static size_t emit_builder(struct entry_set *set, const struct posting_list_builder *builder,
                           const struct entry_sink *sink, struct buf *key, struct buf *value)
{
    size_t count;
    struct slice *members = builder_members(builder, set->arena, &count);
    size_t emitted = 0;
    for (size_t from = 0; from < count; from += ENTRY_POSTING_LIST_MAX) {
        size_t to = count - from > ENTRY_POSTING_LIST_MAX ? from + ENTRY_POSTING_LIST_MAX : count;
        buf_clear(key);
        buf_slice(key, builder->value);
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

static int builder_compare(const void *a, const void *b)
{
    return slice_compare(((const struct posting_list_builder *)a)->value,
                         ((const struct posting_list_builder *)b)->value);
}

static size_t emit_posting_lists(struct entry_set *set, const struct entry_sink *sink, struct buf *scratch)
{
    struct builder_table builders = {0};
    for (size_t i = 0; i < set->count; i++) {
        const struct entry_item *item = &set->items[i];
        if (!item->posting_list)
            continue;
        buf_clear(scratch);
        entry_key_field(scratch, set->index, item->value.field);
        entry_value_encode(scratch, &item->value);
        builder_add(builder_of(&builders, set->arena, buf_as_slice(scratch)), set->arena, item->document_key);
    }
    if (builders.count == 0)
        return 0;
    qsort(builders.items, builders.count, sizeof *builders.items, builder_compare);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);
    size_t emitted = 0;
    for (size_t g = 0; g < builders.count; g++)
        emitted += emit_builder(set, &builders.items[g], sink, scratch, &value);
    return emitted;
}

size_t entry_set_emit(struct entry_set *set, const struct entry_sink *sink)
{
    if (set->count == 0)
        return 0;
    tl_cleanup(buf_deinit) struct buf scratch = BUF_INIT(BUF_UNLIMITED);
    size_t emitted = emit_singles(set, sink, &scratch) + emit_posting_lists(set, sink, &scratch);
    set->items = NULL;
    set->count = set->capacity = 0;
    return emitted;
}
