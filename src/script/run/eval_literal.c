/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions that create a value: lists, maps, arrays, interpolated texts, ranges, functions. */
#include "script/run/eval.h"

#include "script/library/methods_groovy.h"
#include "script/run/operate.h"
#include "script/value/range.h"

bool eval__list(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct seq *seq = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(seq);
    for (const struct node *item = node->list; item != NULL; item = item->next) {
        struct value value;
        bool spread = item->kind == NODE_SPREAD_ARGUMENT;
        if (!run_step(run, 1) || !eval(run, frame, spread ? item->a : item, &value))
            return false;
        if (!spread && !seq_add(run, seq, value))
            return eval__fail(run, node);
        if (spread && (!operate_binary(run, OP_ADD, *ret, value, ret) || (seq = (struct seq *)ret->object) == NULL))
            return eval__fail(run, node);
    }
    return true;
}

/* Groovy's [*:map], which accepts null. */
static bool put_spread(struct run *run, struct frame *frame, const struct node *node, struct dict *dict)
{
    struct value from;
    if (!eval(run, frame, node, &from))
        return false;
    if (from.kind == VALUE_NULL)
        return true;
    if (!value_is_map(from))
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "a map is expected behind *:");
    return dict_put_all(run, dict, (struct dict *)from.object);
}

bool eval__map(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct dict *dict = dict_new(run, run->groovy ? CLASS_LINKED_HASH_MAP : CLASS_HASH_MAP);
    *ret = value_of(dict);
    for (const struct node *key = node->list; key != NULL; key = key->next->next) {
        struct value k, v;
        if (key->kind == NODE_SPREAD_ARGUMENT) {
            if (!put_spread(run, frame, key->next, dict))
                return eval__fail(run, node);
            continue;
        }
        if (!run_step(run, 1) || !eval(run, frame, key, &k) || !eval(run, frame, key->next, &v))
            return false;
        if (!dict_put(run, dict, k, v, NULL))
            return eval__fail(run, node);
    }
    return true;
}

static bool fill_array(struct run *run, struct frame *frame, const struct node *node, struct array *array)
{
    size_t i = 0;
    for (const struct node *item = node->list; item != NULL; item = item->next)
        if (!run_step(run, 1) || !eval(run, frame, item, &array->items[i++]))
            return false;
    return true;
}

static struct array *nested_array(struct run *run, type_id type, const struct value *counts, unsigned dims)
{
    struct array *array = run_step(run, 1) ? array_new(run, type_element(type), number_to_i64(counts[0])) : NULL;
    if (array == NULL || dims == 1 || !run_step(run, array->count / 16))
        return run->thrown == NULL ? array : NULL;
    for (size_t i = 0; i < array->count; i++) {
        struct array *inner = nested_array(run, type_element(type), counts + 1, dims - 1);
        if (inner == NULL)
            return NULL;
        array->items[i] = value_of(inner);
    }
    return array;
}

bool eval__new_array(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value counts[TYPE_DIMS_MAX];
    unsigned dims = 0;
    if (node->kind == NODE_ARRAY_INIT) {
        int64_t count = 0;
        for (const struct node *item = node->list; item != NULL; item = item->next)
            count++;
        struct array *array = array_new(run, type_element(node->target), count);
        *ret = value_of(array);
        return (array != NULL || eval__fail(run, node)) && fill_array(run, frame, node, array);
    }
    for (const struct node *count = node->list; count != NULL && dims < TYPE_DIMS_MAX; count = count->next)
        if (!eval(run, frame, count, &counts[dims++]))
            return false;
    struct array *array = nested_array(run, node->target, counts, dims);
    *ret = value_of(array);
    return array != NULL || eval__fail(run, node);
}

bool eval__concat(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct text_buf out;
    text_buf_init(&out, run);
    for (const struct node *part = node->list; part != NULL; part = part->next) {
        struct value value;
        if (!eval(run, frame, part, &value))
            return false;
        bool calls = value_is(value, CLASS_CLOSURE) && function_arity(value) == 0;
        if (calls && !run_invoke(run, value, NULL, 0, &value))
            return eval__fail(run, node);
        if (!value_append(run, value, &out) || !run_step(run, out.length / 256))
            return eval__fail(run, node);
    }
    struct text *text = text_buf_done(&out);
    *ret = value_of(text);
    if (text != NULL && node->kind == NODE_GSTRING) {
        struct gstring *gstring = run_object(run, sizeof *gstring, CLASS_GSTRING);
        gstring->text = text;
        *ret = value_of(gstring);
    }
    return text != NULL || eval__fail(run, node);
}

bool eval__range(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct value from, to;
    if (!eval(run, frame, node->a, &from) || !eval(run, frame, node->b, &to))
        return false;
    return range_new(run, value_plain(from), value_plain(to), (node->flags & NODE_EXCLUSIVE) != 0, ret) ||
           eval__fail(run, node);
}

/* Functions as values */

bool eval__lambda(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    const struct function *function = node->function;
    struct closure *closure = run_object(run, sizeof *closure, CLASS_CLOSURE);
    closure->kind = CLOSURE_BODY;
    closure->body = function;
    closure->arity = function->parameter_count;
    closure->delegate = frame->delegate;
    *ret = value_of(closure);
    if (function->capture_count == 0)
        return true;
    closure->captured = run_alloc_large(run, function->capture_count * sizeof *closure->captured);
    if (closure->captured == NULL)
        return eval__fail(run, node);
    for (unsigned i = 0; i < function->capture_count; i++)
        closure->captured[i] = frame->slots[function->captures[i].outer];
    return true;
}

bool eval__reference(struct run *run, struct frame *frame, const struct node *node, struct value *ret)
{
    struct closure *closure = run_object(run, sizeof *closure, CLASS_CLOSURE);
    *ret = value_of(closure);
    closure->arity = 1;
    if (node->function != NULL) {
        closure->kind = CLOSURE_BODY;
        closure->body = node->function;
        closure->arity = node->function->parameter_count;
        return true;
    }
    closure->kind = CLOSURE_CALLER;
    closure->name = text_new(run, node->text);
    if (node->a != NULL)
        return eval(run, frame, node->a, &closure->held[0]);
    struct class_object *owner = run_object(run, sizeof *owner, CLASS_CLASS);
    owner->type = node->target;
    closure->held[1] = value_of(owner);
    return true;
}
