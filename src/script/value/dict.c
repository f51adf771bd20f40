/* SPDX-License-Identifier: Apache-2.0 */
/* Maps and sets; see dict.h. */
#include "script/value/dict.h"

#include "base/check.h"

/* Of java.util.HashMap: TREEIFY_THRESHOLD and MIN_TREEIFY_CAPACITY. */
enum { CHAIN_MAX = 8, CHAIN_SIZE_MAX = 64 };

static bool is_tree(const struct dict *dict)
{
    return dict->object.class == CLASS_TREE_MAP || dict->object.class == CLASS_TREE_SET;
}

/*
 * Returns: whether it iterates in bucket order; all others except trees iterate in insertion order.
 */
static bool is_hashed(const struct dict *dict)
{
    return dict->object.class == CLASS_HASH_MAP || dict->object.class == CLASS_HASH_SET;
}

struct dict *dict_new(struct run *run, enum class_id id)
{
    return run_object(run, sizeof(struct dict), id);
}

void dict_freeze(struct dict *dict)
{
    struct map_entry *before = NULL;
    for (struct map_entry *entry = dict_first(dict); entry != NULL; entry = dict_next(dict, entry)) {
        entry->before = before;
        *(before == NULL ? &dict->head : &before->after) = entry;
        before = entry;
    }
    if (before != NULL)
        before->after = NULL;
    dict->tail = before;
    dict->object.class = CLASS_IMMUTABLE_MAP;
    dict->object.flags |= OBJECT_READONLY;
}

static uint32_t table_size_for(size_t count)
{
    size_t wanted = (size_t)((float)count / 0.75f + 1.0f), size = 1;
    while (size < wanted)
        size *= 2;
    return (uint32_t)(size > DICT_COUNT_MAX * 2 ? DICT_COUNT_MAX * 2 : size);
}

static int32_t spread_hash(int32_t hash)
{
    return (int32_t)((uint32_t)hash ^ (uint32_t)hash >> 16);
}

static bool resize_buckets(struct run *run, struct dict *dict)
{
    uint32_t size = dict->bucket_count > 0 ? dict->bucket_count * 2 : dict->reserve > 0 ? dict->reserve : 16;
    struct map_entry **buckets = run_alloc_large(run, size * sizeof *buckets);
    if (buckets == NULL || !run_step(run, size / 16))
        return false;
    memset(buckets, 0, size * sizeof *buckets);
    /* Each chain splits in two and keeps its order. */
    for (uint32_t b = 0; b < dict->bucket_count; b++) {
        struct map_entry **tails[2] = {&buckets[b], &buckets[b + dict->bucket_count]}, *next;
        for (struct map_entry *entry = dict->buckets[b]; entry != NULL; entry = next) {
            struct map_entry ***tail = &tails[((uint32_t)entry->hash & dict->bucket_count) != 0];
            next = entry->chain;
            entry->chain = NULL;
            **tail = entry;
            *tail = &entry->chain;
        }
    }
    dict->buckets = buckets;
    dict->bucket_count = size;
    return true;
}

bool dict_reserve(struct run *run, struct dict *dict, size_t count)
{
    if (is_tree(dict) || count == 0)
        return true;
    if (dict->bucket_count == 0) {
        uint32_t size = table_size_for(count);
        if (size > dict->reserve)
            dict->reserve = size;
        return true;
    }
    while (count > dict->bucket_count * 3 / 4 && dict->bucket_count < DICT_COUNT_MAX)
        if (!resize_buckets(run, dict))
            return false;
    return true;
}

/* Trees */

static bool compare_keys(struct run *run, const struct dict *dict, struct value a, struct value b, int *ret_order)
{
    if (dict->comparator.kind != VALUE_NULL) {
        struct value arguments[2] = {a, b}, result;
        if (!run_invoke(run, dict->comparator, arguments, 2, &result))
            return false;
        *ret_order = (result.i > 0) - (result.i < 0);
        return true;
    }
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL)
        return run_throw_npe(run, "Object.getClass()");
    return value_order(run, a, b, ret_order);
}

bool dict_search(struct run *run, const struct dict *dict, struct value key, uint32_t *ret_index, bool *ret_found)
{
    uint32_t low = 0, high = dict->count;
    *ret_found = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order;
        if (!run_step(run, 1) || !compare_keys(run, dict, key, dict->sorted[middle]->key, &order))
            return false;
        if (order == 0) {
            *ret_found = true;
            low = middle;
            break;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_index = low;
    return true;
}

static bool tree_insert(struct run *run, struct dict *dict, uint32_t index, struct map_entry *entry)
{
    if (dict->count == dict->capacity) {
        uint32_t capacity = dict->capacity == 0 ? 16 : dict->capacity * 2;
        struct map_entry **sorted = run_alloc_large(run, capacity * sizeof *sorted);
        if (sorted == NULL)
            return false;
        if (dict->count > 0)
            memcpy(sorted, dict->sorted, dict->count * sizeof *sorted);
        dict->sorted = sorted;
        dict->capacity = capacity;
    }
    if (!run_step(run, (dict->count - index) / 16))
        return false;
    memmove(dict->sorted + index + 1, dict->sorted + index, (dict->count - index) * sizeof *dict->sorted);
    dict->sorted[index] = entry;
    return true;
}

/* Finding */

static bool same_key(struct run *run, struct value a, struct value b, bool *ret_same)
{
    if (value_is(a, CLASS_STRING) && value_is(b, CLASS_STRING)) {
        *ret_same = text_same(run, (const struct text *)a.object, (const struct text *)b.object);
        return true;
    }
    return value_equals(run, a, b, ret_same);
}

static bool find_hashed(struct run *run, struct dict *dict, struct value key, int32_t hash,
                        struct map_entry **ret_entry)
{
    *ret_entry = NULL;
    if (dict->bucket_count == 0)
        return true;
    struct map_entry *entry = dict->buckets[(uint32_t)hash & (dict->bucket_count - 1)];
    for (; entry != NULL; entry = entry->chain) {
        bool same = false;
        if (!run_step(run, 1) || (entry->hash == hash && !same_key(run, entry->key, key, &same)))
            return false;
        if (same)
            break;
    }
    *ret_entry = entry;
    return true;
}

bool dict_find(struct run *run, struct dict *dict, struct value key, struct map_entry **ret_entry)
{
    if (is_tree(dict)) {
        uint32_t index;
        bool found;
        if (dict->count == 0) {
            *ret_entry = NULL;
            return true;
        }
        if (!dict_search(run, dict, key, &index, &found))
            return false;
        *ret_entry = found ? dict->sorted[index] : NULL;
        return true;
    }
    int32_t hash;
    return value_hash(run, key, &hash) && find_hashed(run, dict, key, spread_hash(hash), ret_entry);
}

struct map_entry *dict_find_text(struct run *run, const struct dict *dict, struct text *key)
{
    if (dict->bucket_count == 0)
        return NULL;
    int32_t hash = spread_hash(text_hash_of(run, key));
    struct map_entry *entry = dict->buckets[(uint32_t)hash & (dict->bucket_count - 1)];
    for (; entry != NULL; run_work(run, RUN_UNITS_PER_STEP), entry = entry->chain)
        if (entry->hash == hash && value_is(entry->key, CLASS_STRING) &&
            text_same(run, (const struct text *)entry->key.object, key))
            return entry;
    return NULL;
}

struct map_entry *dict_find_ascii(struct run *run, struct dict *dict, const char *key)
{
    struct text *text = text_new(run, slice_from(key));
    return text == NULL ? NULL : dict_find_text(run, dict, text);
}

/* Changing */

struct map_entry *entry_new(struct run *run, struct value key, struct value value)
{
    struct map_entry *entry = run_object(run, sizeof *entry, CLASS_SIMPLE_ENTRY);
    entry->key = key;
    entry->value = value;
    return entry;
}

/* Inserts an entry after `before`; NULL: as the first. */
static void link_after(struct dict *dict, struct map_entry *before, struct map_entry *entry)
{
    entry->before = before;
    entry->after = before != NULL ? before->after : dict->head;
    if (before != NULL)
        before->after = entry;
    else
        dict->head = entry;
    if (entry->after != NULL)
        entry->after->before = entry;
    else
        dict->tail = entry;
}

static bool insert_entry(struct run *run, struct dict *dict, struct value key, struct value value, int32_t hash)
{
    if (dict->count >= DICT_COUNT_MAX) {
        run->exhausted = RUN_EXHAUSTED_MEMORY;
        return run_fail_exhausted(run);
    }
    if (dict->bucket_count == 0 && !resize_buckets(run, dict))
        return false;
    struct map_entry *entry = entry_new(run, key, value);
    entry->object.class = CLASS_ENTRY;
    entry->hash = hash;
    entry->owner = dict;
    struct map_entry **end = &dict->buckets[(uint32_t)hash & (dict->bucket_count - 1)];
    unsigned collisions = 0;
    for (; *end != NULL; collisions++)
        end = &(*end)->chain;
    *end = entry;
    link_after(dict, dict->tail, entry);
    dict->changes++;
    if (collisions >= CHAIN_MAX && dict->bucket_count < CHAIN_SIZE_MAX && !resize_buckets(run, dict))
        return false;
    return ++dict->count <= dict->bucket_count * 3 / 4 || resize_buckets(run, dict);
}

static bool put_entry(struct run *run, struct dict *dict, struct value key, struct value value,
                      struct map_entry **ret_found)
{
    struct map_entry *entry;
    int32_t hash = 0;
    if (!is_tree(dict)) {
        if (!value_hash(run, key, &hash) || !find_hashed(run, dict, key, spread_hash(hash), &entry))
            return false;
        *ret_found = entry;
        return entry != NULL || insert_entry(run, dict, key, value, spread_hash(hash));
    }
    uint32_t index;
    bool found;
    int ignored;
    if (dict->count == 0 && !compare_keys(run, dict, key, key, &ignored))
        return false;
    if (!dict_search(run, dict, key, &index, &found))
        return false;
    *ret_found = found ? dict->sorted[index] : NULL;
    if (found)
        return true;
    entry = entry_new(run, key, value);
    entry->object.class = CLASS_ENTRY;
    entry->owner = dict;
    if (!tree_insert(run, dict, index, entry))
        return false;
    link_after(dict, index > 0 ? dict->sorted[index - 1] : NULL, entry);
    dict->count++;
    dict->changes++;
    return true;
}

bool dict_check_writable(struct run *run, const struct dict *dict)
{
    return (dict->object.flags & OBJECT_READONLY) == 0 || run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
}

bool dict_put(struct run *run, struct dict *dict, struct value key, struct value value, struct value *ret_old)
{
    struct map_entry *found;
    if (!dict_check_writable(run, dict) || !put_entry(run, dict, key, value, &found))
        return false;
    if (ret_old != NULL)
        *ret_old = found == NULL ? VALUE_NONE : found->value;
    if (found != NULL)
        found->value = value;
    return true;
}

bool dict_put_ascii(struct run *run, struct dict *dict, const char *key, struct value value)
{
    struct text *text = text_new(run, slice_from(key));
    return text != NULL && dict_put(run, dict, value_of(text), value, NULL);
}

bool dict_add(struct run *run, struct dict *dict, struct value key, bool *ret_added)
{
    struct map_entry *found;
    if (!dict_check_writable(run, dict) || !put_entry(run, dict, key, VALUE_NONE, &found))
        return false;
    *ret_added = found == NULL;
    return true;
}

static void unlink_chain(struct dict *dict, struct map_entry *entry)
{
    struct map_entry **link = &dict->buckets[(uint32_t)entry->hash & (dict->bucket_count - 1)];
    while (*link != entry)
        link = &(*link)->chain;
    *link = entry->chain;
}

static void unlink_order(struct dict *dict, struct map_entry *entry)
{
    if (entry->before != NULL)
        entry->before->after = entry->after;
    else
        dict->head = entry->after;
    if (entry->after != NULL)
        entry->after->before = entry->before;
    else
        dict->tail = entry->before;
}

bool dict_remove_entry(struct run *run, struct dict *dict, struct map_entry *entry)
{
    if (!dict_check_writable(run, dict))
        return false;
    if (is_tree(dict)) {
        uint32_t index = 0;
        while (index < dict->count && dict->sorted[index] != entry)
            index++;
        INSIST(index < dict->count);
        if (!run_step(run, dict->count / 16))
            return false;
        memmove(dict->sorted + index, dict->sorted + index + 1, (dict->count - index - 1) * sizeof *dict->sorted);
    } else {
        unlink_chain(dict, entry);
    }
    unlink_order(dict, entry);
    dict->count--;
    dict->changes++;
    return true;
}

bool dict_remove(struct run *run, struct dict *dict, struct value key, struct map_entry **ret_entry)
{
    struct map_entry *entry;
    if (!dict_check_writable(run, dict) || !dict_find(run, dict, key, &entry))
        return false;
    *ret_entry = entry;
    return entry == NULL || dict_remove_entry(run, dict, entry);
}

bool dict_clear(struct run *run, struct dict *dict)
{
    if (!dict_check_writable(run, dict))
        return false;
    if (dict->bucket_count > 0)
        memset(dict->buckets, 0, dict->bucket_count * sizeof *dict->buckets);
    dict->head = dict->tail = NULL;
    dict->count = 0;
    dict->changes++;
    return run_step(run, dict->bucket_count / 16);
}

bool dict_put_all(struct run *run, struct dict *to, struct dict *from)
{
    if (!dict_check_writable(run, to) || !dict_reserve(run, to, from->count))
        return false;
    for (struct map_entry *entry = dict_first(from); entry != NULL; entry = dict_next(from, entry)) {
        uint32_t changes = from->changes;
        if (!run_step(run, 1) || !dict_put(run, to, entry->key, entry->value, NULL))
            return false;
        if (changes != from->changes)
            return run_throw_null(run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
    }
    return true;
}

/* Walking */

static struct map_entry *bucket_from(const struct dict *dict, uint32_t bucket)
{
    for (; bucket < dict->bucket_count; bucket++)
        if (dict->buckets[bucket] != NULL)
            return dict->buckets[bucket];
    return NULL;
}

struct map_entry *dict_first(const struct dict *dict)
{
    return is_hashed(dict) ? bucket_from(dict, 0) : dict->head;
}

struct map_entry *dict_next(const struct dict *dict, const struct map_entry *entry)
{
    if (!is_hashed(dict))
        return entry->after;
    if (entry->chain != NULL)
        return entry->chain;
    return bucket_from(dict, ((uint32_t)entry->hash & (dict->bucket_count - 1)) + 1);
}
