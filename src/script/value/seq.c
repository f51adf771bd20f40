/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and arrays; see seq.h. */
#include "script/value/seq.h"

#include "base/check.h"
#include "script/run/convert.h"
#include "script/value/number.h"

struct seq *seq_new(struct run *run, enum class_id id, size_t capacity)
{
    struct seq *seq = run_object(run, sizeof *seq, id);
    if (capacity == 0)
        return seq;
    if (capacity > SEQ_COUNT_MAX) {
        run->exhausted = RUN_EXHAUSTED_MEMORY;
        run_fail_exhausted(run);
        return NULL;
    }
    seq->items = run_alloc_large(run, capacity * sizeof *seq->items);
    seq->capacity = (uint32_t)capacity;
    return seq->items == NULL ? NULL : seq;
}

static struct value *seq_slot(const struct seq *seq, size_t index)
{
    if (seq->root != NULL) {
        index += seq->offset;
        seq = seq->root;
    }
    return index < seq->count ? &seq->items[index] : NULL;
}

struct value seq_item(const struct seq *seq, size_t index)
{
    const struct value *slot = seq_slot(seq, index);
    return slot == NULL ? VALUE_NONE : *slot;
}

static bool check_index(struct run *run, int64_t index, size_t count)
{
    if (index >= 0 && (uint64_t)index < count)
        return true;
    return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Index %lld out of bounds for length %zu",
                     (long long)index, count);
}

static bool has_flags(const struct seq *seq, unsigned flags)
{
    return (seq->object.flags & flags) != 0 || (seq->root != NULL && (seq->root->object.flags & flags) != 0);
}

bool seq_check_writable(struct run *run, const struct seq *seq)
{
    return !has_flags(seq, OBJECT_READONLY) || run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
}

static bool check_resizable(struct run *run, const struct seq *seq)
{
    return !has_flags(seq, OBJECT_READONLY | OBJECT_FIXED) ||
           run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
}

bool seq_check(struct run *run, const struct seq *seq)
{
    return seq->root == NULL || seq->changes == seq->root->changes ||
           run_throw_null(run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
}

bool seq_get(struct run *run, const struct seq *seq, int64_t index, struct value *ret)
{
    if (!check_index(run, index, seq->count) || !seq_check(run, seq))
        return false;
    *ret = seq_item(seq, (size_t)index);
    return true;
}

bool seq_set(struct run *run, struct seq *seq, int64_t index, struct value value, struct value *ret_old)
{
    if (!seq_check_writable(run, seq) || !check_index(run, index, seq->count) || !seq_check(run, seq))
        return false;
    struct value *slot = seq_slot(seq, (size_t)index);
    INSIST(slot != NULL);
    if (ret_old != NULL)
        *ret_old = *slot;
    *slot = value;
    return true;
}

static bool seq_grow(struct run *run, struct seq *seq)
{
    size_t capacity = seq->capacity < 10 ? 10 : (size_t)seq->capacity + seq->capacity / 2;
    struct value *items = capacity > SEQ_COUNT_MAX ? NULL : run_alloc_large(run, capacity * sizeof *items);
    if (items == NULL) {
        run->exhausted = RUN_EXHAUSTED_MEMORY;
        return run_fail_exhausted(run);
    }
    if (seq->count > 0)
        memcpy(items, seq->items, seq->count * sizeof *items);
    seq->items = items;
    seq->capacity = (uint32_t)capacity;
    return true;
}

/* Moving elements is cheap: this many take one step. */
#define MOVED_PER_STEP 16

/* Adjusts a sub list and its parents after their root grew by `more` (negative: shrank). */
static void spread_change(struct seq *seq, int64_t more)
{
    for (; seq->parent != NULL; seq = seq->parent) {
        seq->changes = seq->root->changes;
        seq->count = (uint32_t)(seq->count + more);
    }
}

static bool insert_at(struct run *run, struct seq *seq, size_t index, struct value value)
{
    struct seq *root = seq->root == NULL ? seq : seq->root;
    index += seq->offset;
    if (root->count == root->capacity && !seq_grow(run, root))
        return false;
    if (!run_step(run, (root->count - index) / MOVED_PER_STEP + seq->level))
        return false;
    memmove(root->items + index + 1, root->items + index, (root->count - index) * sizeof *root->items);
    root->items[index] = value;
    root->count++;
    root->changes++;
    spread_change(seq, 1);
    return true;
}

bool seq_insert(struct run *run, struct seq *seq, int64_t index, struct value value)
{
    if (!check_resizable(run, seq) || !seq_check(run, seq))
        return false;
    if (index < 0 || index > (int64_t)seq->count)
        return run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Index: %lld, Size: %u", (long long)index,
                         seq->count);
    return insert_at(run, seq, (size_t)index, value);
}

bool seq_add(struct run *run, struct seq *seq, struct value value)
{
    return seq_insert(run, seq, seq->count, value);
}

/* Removes `count` elements from `index` on. */
static bool remove_at(struct run *run, struct seq *seq, size_t index, size_t count)
{
    struct seq *root = seq->root == NULL ? seq : seq->root;
    index += seq->offset;
    if (!run_step(run, (root->count - index) / MOVED_PER_STEP + seq->level))
        return false;
    memmove(root->items + index, root->items + index + count, (root->count - index - count) * sizeof *root->items);
    root->count -= (uint32_t)count;
    root->changes++;
    spread_change(seq, -(int64_t)count);
    return true;
}

bool seq_remove(struct run *run, struct seq *seq, int64_t index, struct value *ret_old)
{
    if (!check_resizable(run, seq) || !check_index(run, index, seq->count) || !seq_check(run, seq))
        return false;
    if (ret_old != NULL)
        *ret_old = seq_item(seq, (size_t)index);
    return remove_at(run, seq, (size_t)index, 1);
}

bool seq_clear(struct run *run, struct seq *seq)
{
    if (!check_resizable(run, seq) || !seq_check(run, seq))
        return false;
    if (seq->count > 0)
        return remove_at(run, seq, 0, seq->count);
    seq->changes += seq->root == NULL;
    return true;
}

struct seq *seq_sub(struct run *run, struct seq *parent, int64_t from, int64_t to)
{
    if (from < 0)
        run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "fromIndex = %lld", (long long)from);
    else if (to > (int64_t)parent->count)
        run_throw(run, CLASS_INDEX_OUT_OF_BOUNDS_EXCEPTION, "toIndex = %lld", (long long)to);
    else if (from > to)
        run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "fromIndex(%lld) > toIndex(%lld)", (long long)from,
                  (long long)to);
    else {
        struct seq *sub = run_object(run, sizeof *sub, CLASS_SUB_LIST);
        sub->parent = parent;
        sub->root = parent->root == NULL ? parent : parent->root;
        sub->level = parent->level + 1;
        sub->offset = parent->offset + (uint32_t)from;
        sub->count = (uint32_t)(to - from);
        sub->object.flags = parent->object.flags & (OBJECT_READONLY | OBJECT_FIXED);
        sub->changes = parent->changes;
        return sub;
    }
    return NULL;
}

struct value value_default(type_id type)
{
    if (type_dims(type) > 0)
        return VALUE_NONE;
    switch (type_class(type)) {
    case CLASS_BOOLEAN: return value_boolean(false);
    case CLASS_BYTE: return (struct value){.kind = VALUE_BYTE};
    case CLASS_SHORT: return (struct value){.kind = VALUE_SHORT};
    case CLASS_CHAR: return value_char(0);
    case CLASS_INT: return value_int(0);
    case CLASS_LONG: return value_long(0);
    case CLASS_FLOAT: return value_float(0);
    case CLASS_DOUBLE: return value_double(0);
    default: return VALUE_NONE;
    }
}

struct array *array_new(struct run *run, type_id element, int64_t count)
{
    if (count < 0) {
        run_throw(run, CLASS_NEGATIVE_ARRAY_SIZE_EXCEPTION, "%lld", (long long)count);
        return NULL;
    }
    struct array *array = NULL;
    if (count <= SEQ_COUNT_MAX)
        array = run_alloc_large(run, sizeof *array + (size_t)count * sizeof *array->items);
    else
        run->exhausted = RUN_EXHAUSTED_MEMORY, run_fail_exhausted(run);
    if (array == NULL)
        return NULL;
    *array = (struct array){.object = {.class = CLASS_ARRAY}, .element = element, .count = (uint32_t)count};
    for (size_t i = 0; i < array->count; i++)
        array->items[i] = value_default(element);
    return array;
}

bool array_check(struct run *run, const struct array *array, int64_t index)
{
    if (index >= 0 && index < (int64_t)array->count)
        return true;
    return run_throw(run, CLASS_ARRAY_INDEX_OUT_OF_BOUNDS_EXCEPTION, "Index %lld out of bounds for length %u",
                     (long long)index, array->count);
}

/* Sorting: a bottom-up merge sort; stable, and the same comparisons on every machine. */

static bool compare_with(struct run *run, struct value comparator, struct value a, struct value b, int *ret_order)
{
    if (comparator.kind == VALUE_NULL) {
        if (a.kind == VALUE_NULL || b.kind == VALUE_NULL)
            return run->groovy ? value_order(run, a, b, ret_order) : run_throw_npe(run, "Comparable.compareTo(Object)");
        return value_order(run, a, b, ret_order);
    }
    struct value arguments[2] = {a, b}, result;
    if (!run_invoke(run, comparator, arguments, 2, &result))
        return false;
    if (!run->groovy && !convert_site(run, result, CLASS_INT, &result))
        return false;
    if (result.kind == VALUE_OBJECT || result.kind == VALUE_NULL)
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "a comparator returns a number");
    /* Groovy truncates the comparator's result to an integer. */
    int64_t order = value_floating(result) ? (int32_t)double_to_i64(result.d) : result.i;
    *ret_order = (order > 0) - (order < 0);
    return true;
}

static bool merge_halves(struct run *run, const struct value *from, struct value *to, size_t begin, size_t middle,
                         size_t end, struct value comparator)
{
    size_t left = begin, right = middle;
    for (size_t i = begin; i < end; i++) {
        int order = 0;
        if (left < middle && right < end) {
            if (!run_step(run, 1) || !compare_with(run, comparator, from[left], from[right], &order))
                return false;
        } else {
            order = left < middle ? 0 : 1;
        }
        to[i] = order <= 0 ? from[left++] : from[right++];
    }
    return true;
}

bool values_sort(struct run *run, struct value *items, size_t count, struct value comparator)
{
    if (count < 2)
        return true;
    struct value *from = run_alloc_large(run, count * sizeof *from), *to = run_alloc_large(run, count * sizeof *to);
    if (from == NULL || to == NULL)
        return false;
    memcpy(from, items, count * sizeof *from);
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = begin + width < count ? begin + width : count;
            size_t end = begin + 2 * width < count ? begin + 2 * width : count;
            if (!merge_halves(run, from, to, begin, middle, end, comparator))
                return false;
        }
        struct value *swap = from;
        from = to;
        to = swap;
    }
    memcpy(items, from, count * sizeof *from);
    return true;
}
