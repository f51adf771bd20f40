/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration; see iter.h. */
#include "script/value/iter.h"

#include "base/check.h"

static void init_dict(struct iter *iter, struct dict *dict, enum class_id part)
{
    iter->kind = ITER_DICT;
    iter->part = (uint16_t)part;
    iter->source = value_of(dict);
    iter->expected = dict->changes;
    iter->next = dict_first(dict);
}

static bool init_object(struct iter *iter, struct object *object)
{
    switch (object->class) {
    case CLASS_KEY_SET:
    case CLASS_VALUE_COLLECTION:
    case CLASS_ENTRY_SET: init_dict(iter, ((struct map_view *)object)->dict, (enum class_id)object->class); return true;
    case CLASS_ARRAY: iter->kind = ITER_ARRAY; return true;
    case CLASS_STRING: iter->kind = ITER_TEXT; return iter->run->groovy;
    case CLASS_STREAM: /* a struct seq that scripts do not see as a list; methods_stream.c */
    case CLASS_INT_STREAM:
    case CLASS_LONG_STREAM:
    case CLASS_DOUBLE_STREAM:
        iter->kind = ITER_SEQ;
        iter->expected = ((struct seq *)object)->changes;
        return true;
    case CLASS_LIST_CURSOR:
    case CLASS_CURSOR: *iter = ((struct cursor *)object)->iter; return true;
    default: return false;
    }
}

bool iter_init(struct iter *iter, struct run *run, struct value source)
{
    source = value_plain(source);
    *iter = (struct iter){.run = run, .source = source};
    if (source.kind != VALUE_OBJECT)
        return false;
    if (value_is_seq(source)) {
        iter->kind = ITER_SEQ;
        iter->expected = ((struct seq *)source.object)->changes;
        return true;
    }
    if (value_is_map(source) && run->groovy) {
        init_dict(iter, (struct dict *)source.object, CLASS_ENTRY_SET);
        return true;
    }
    if (value_is_set(source)) {
        init_dict(iter, (struct dict *)source.object, CLASS_KEY_SET);
        return true;
    }
    return init_object(iter, source.object);
}

bool iter_has_next(const struct iter *iter)
{
    const struct object *object = iter->source.kind == VALUE_OBJECT ? iter->source.object : NULL;
    switch (iter->kind) {
    case ITER_SEQ: return iter->index != ((const struct seq *)object)->count;
    case ITER_ARRAY: return iter->index < ((const struct array *)object)->count;
    case ITER_TEXT: return iter->index < ((const struct text *)object)->length;
    case ITER_DICT: return iter->next != NULL;
    case ITER_RANGE: return iter->from != iter->to;
    default: return false;
    }
}

static bool throw_if_changed(struct iter *iter, uint32_t changes)
{
    return changes != iter->expected && !run_throw_null(iter->run, CLASS_CONCURRENT_MODIFICATION_EXCEPTION);
}

static bool next_entry(struct iter *iter, struct value *ret)
{
    struct dict *dict = (struct dict *)iter->source.object;
    if (throw_if_changed(iter, dict->changes))
        return false;
    iter->last = iter->next;
    iter->next = dict_next(dict, iter->last);
    *ret = iter->part == CLASS_KEY_SET     ? iter->last->key
           : iter->part == CLASS_ENTRY_SET ? value_of(iter->last)
                                           : iter->last->value;
    return true;
}

bool iter_next(struct iter *iter, struct value *ret, bool *ret_more)
{
    *ret_more = iter_has_next(iter);
    if (!*ret_more)
        return true;
    if (!run_step(iter->run, 1))
        return false;
    struct text *text;
    switch (iter->kind) {
    case ITER_SEQ:
        if (throw_if_changed(iter, ((struct seq *)iter->source.object)->changes))
            return false;
        iter->back = false;
        return seq_get(iter->run, (struct seq *)iter->source.object, (int64_t)iter->index++, ret);
    case ITER_ARRAY: *ret = ((struct array *)iter->source.object)->items[iter->index++]; return true;
    case ITER_TEXT:
        text = text_substring(iter->run, (struct text *)iter->source.object, iter->index, iter->index + 1);
        iter->index++;
        *ret = value_of(text);
        return text != NULL;
    case ITER_DICT: return next_entry(iter, ret);
    case ITER_RANGE:
        *ret = value_int(iter->from);
        iter->from += iter->from < iter->to ? 1 : -1;
        return true;
    default: UNREACHABLE(); return false;
    }
}

bool iter_remove(struct iter *iter)
{
    if (iter->kind == ITER_SEQ && (iter->back || iter->index > 0)) {
        struct seq *seq = (struct seq *)iter->source.object;
        iter->index -= !iter->back;
        if (throw_if_changed(iter, seq->changes) || !seq_remove(iter->run, seq, (int64_t)iter->index, NULL))
            return false;
        iter->expected = seq->changes;
        return true;
    }
    if (iter->kind == ITER_DICT && iter->last != NULL) {
        struct dict *dict = (struct dict *)iter->source.object;
        if (throw_if_changed(iter, dict->changes) || !dict_remove_entry(iter->run, dict, iter->last))
            return false;
        iter->last = NULL;
        iter->expected = dict->changes;
        return true;
    }
    return run_throw_null(iter->run, iter->kind == ITER_ARRAY ? CLASS_UNSUPPORTED_OPERATION_EXCEPTION
                                                              : CLASS_ILLEGAL_STATE_EXCEPTION);
}

size_t values_count(struct value collection)
{
    collection = value_plain(collection);
    if (collection.kind != VALUE_OBJECT)
        return 0;
    struct object *object = collection.object;
    if (value_is_seq(collection))
        return ((struct seq *)object)->count;
    if (value_is_array(collection))
        return ((struct array *)object)->count;
    if (value_is_map(collection) || value_is_set(collection))
        return ((struct dict *)object)->count;
    if (object->class == CLASS_KEY_SET || object->class == CLASS_VALUE_COLLECTION || object->class == CLASS_ENTRY_SET)
        return ((struct map_view *)object)->dict->count;
    return object->class == CLASS_STRING ? ((struct text *)object)->length : 0;
}

struct seq *values_to_seq(struct run *run, struct value collection, enum class_id id)
{
    struct iter iter;
    struct seq *seq = seq_new(run, id, values_count(collection));
    if (seq == NULL || !iter_init(&iter, run, collection))
        return seq;
    walk(&iter, item)
    {
        if (!seq_add(run, seq, item))
            return NULL;
    }
    return run->thrown == NULL ? seq : NULL;
}
