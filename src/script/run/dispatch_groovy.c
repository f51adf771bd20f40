/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's members and elements: x.name, x[index], ++, in.
 *
 * The members of a map are its entries. A member of another object is read by its getter; a member
 * of a list is the list of that member of its elements.
 */
#include "script/run/dispatch_groovy.h"

#include "script/run/convert.h"
#include "script/library/methods_groovy.h"
#include "script/value/temporal.h"
#include "script/run/operate.h"
#include "script/value/regex.h"

/* Members */

static const struct method *find_accessor(struct run *run, type_id type, const char *prefix, struct slice field,
                                          unsigned count)
{
    char name[METHOD_ACCESSOR_MAX];
    struct slice accessor = method_accessor(name, prefix, field);
    if (accessor.len == 0 || type_dims(type) > 0)
        return NULL;
    struct method_lookup query = {type_class(type), accessor, count, METHOD_GROOVY};
    return run_method(run, &query);
}

static const struct method *find_getter(struct run *run, type_id type, struct slice name)
{
    const struct method *method = find_accessor(run, type, "get", name, 0);
    if (method != NULL || type_dims(type) > 0)
        return method;
    method = find_accessor(run, type, "is", name, 0);
    if (method != NULL && type_unboxed(method->result) == CLASS_BOOLEAN)
        return method;
    struct method_lookup query = {type_class(type), name, 0, METHOD_GROOVY | METHOD_FIELD};
    return run_method(run, &query);
}

static bool throw_missing_property(struct run *run, type_id type, struct slice name)
{
    char class_name[TYPE_NAME_MAX];
    return groovy_missing_property(run, name, slice_from(type_java_name(type, class_name)));
}

/* Throws the list's own error for a member that one of its elements lacks. */
static bool spread_fails(struct run *run, struct value self, struct value name)
{
    char class_name[TYPE_NAME_MAX], error[TYPE_NAME_MAX];
    const struct throwable *thrown = run->thrown;
    if (thrown->object.class != CLASS_MISSING_PROPERTY_EXCEPTION)
        return false;
    struct slice reason = thrown->message == NULL ? SLICE_LIT("null") : text_utf8(run, thrown->message);
    struct slice field = text_utf8(run, (struct text *)name.object);
    run_charge(run, 2 * (reason.len + field.len));
    run->thrown = NULL;
    return run_throw(run, CLASS_MISSING_PROPERTY_EXCEPTION,
                     "Exception evaluating property '%.*s' for %s, Reason: %s: %.*s", SLICE_ARG(field),
                     value_is_array(self) ? class_infos[CLASS_ARRAYS_LIST].java
                                          : type_java_name(value_type(self), class_name),
                     type_java_name(CLASS_MISSING_PROPERTY_EXCEPTION, error), SLICE_ARG(reason));
}

static bool get_each(struct run *run, struct value self, struct value name, struct seq *members)
{
    struct iter iter;
    struct value one;
    iter_init(&iter, run, self);
    walk(&iter, item)
    {
        if (item.kind == VALUE_NULL)
            continue;
        if (!groovy_get(run, item, name, &one))
            return spread_fails(run, self, name);
        if (!seq_add(run, members, one))
            return false;
    }
    return run->thrown == NULL;
}

/* Collects a member of all elements, recursively for lists of lists. */
static bool get_spread(struct run *run, struct value self, struct value name, struct value *ret)
{
    const unsigned frames = 6;
    struct seq *members = seq_new(run, CLASS_ARRAY_LIST, 0);
    *ret = value_of(members);
    if (!run_enter(run, frames))
        return false;
    bool ok = get_each(run, self, name, members);
    run_leave(run, frames);
    return ok;
}

static bool find_enumerator(struct run *run, type_id type, struct slice name, struct value *ret)
{
    enum class_id id = type_class(type);
    for (unsigned i = 0; i < enumerator_count(id); i++)
        if (slice_is(name, enumerator_name(id, (int)i))) {
            *ret = enumerator_value(run, id, (int)i);
            return true;
        }
    return false;
}

static bool get_of_class(struct run *run, struct value self, struct slice name, struct value *ret)
{
    type_id type = ((const struct class_object *)self.object)->type;
    struct method_lookup query = {type_class(type), name, 0, METHOD_GROOVY | METHOD_STATIC | METHOD_FIELD};
    const struct method *method = type_dims(type) > 0 ? NULL : run_method(run, &query);
    if (method == NULL && type != CLASS_ENUM && type_assignable(CLASS_ENUM, type) &&
        find_enumerator(run, type, name, ret))
        return true;
    if (method == NULL)
        method = find_getter(run, CLASS_CLASS, name);
    if (method == NULL)
        return throw_missing_property(run, type, name);
    return method_call(method, run, &self, 0, ret);
}

bool groovy_static_get(struct run *run, type_id type, struct slice name, struct value *ret)
{
    return get_of_class(run, groovy_class_object(run, type), name, ret);
}

static bool get_object(struct run *run, struct value self, struct value name, struct value *ret)
{
    type_id type = value_type(self);
    struct slice field = text_utf8(run, (struct text *)name.object);
    run_charge(run, field.len);
    if (value_is(self, CLASS_CLASS))
        return get_of_class(run, self, field, ret);
    if (slice_is(field, "class")) {
        *ret = groovy_class_object(run, type);
        return true;
    }
    if (slice_is(field, "length") && value_is_array(self)) {
        *ret = value_int(((const struct array *)self.object)->count);
        return true;
    }
    const struct method *getter = find_getter(run, type, field);
    if (getter != NULL)
        return method_call(getter, run, (struct value[2]){self}, 0, ret);
    /* A private field, which Groovy can read. */
    if (slice_is(field, "size") && value_is_seq(self)) {
        *ret = value_int(((const struct seq *)self.object)->count);
        return true;
    }
    bool many = value_instance_of(self, CLASS_COLLECTION) || value_is_array(self);
    return many ? get_spread(run, self, name, ret) : throw_missing_property(run, type, field);
}

static bool get_doc(struct run *run, struct value self, struct value key, struct value *ret)
{
    struct value arguments[2] = {self, key};
    return groovy_call(run, arguments, SLICE_LIT("get"), 1, ret);
}

bool groovy_get(struct run *run, struct value self, struct value name, struct value *ret)
{
    if (self.kind == VALUE_NULL) {
        struct slice field = text_utf8(run, (struct text *)name.object);
        return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot get property '%.*s' on null object",
                         SLICE_ARG(field));
    }
    if (value_is_map(self))
        return groovy_map_get(run, (struct dict *)self.object, name, ret);
    if (value_is(self, CLASS_GSTRING) && !text_is((const struct text *)name.object, "class"))
        self = value_plain(self);
    if (value_is(self, CLASS_DOC))
        return get_doc(run, self, name, ret);
    return get_object(run, self, name, ret);
}

bool groovy_set(struct run *run, struct value self, struct value name, struct value value)
{
    char class_name[TYPE_NAME_MAX];
    struct slice field = text_utf8(run, (struct text *)name.object);
    if (self.kind == VALUE_NULL)
        return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot set property '%.*s' on null object",
                         SLICE_ARG(field));
    if (value_is_map(self))
        return dict_put(run, (struct dict *)self.object, name, value, NULL);
    type_id type = value_type(self);
    const struct method *setter = find_accessor(run, type, "set", field, 1);
    struct value arguments[2] = {self, value}, ignored;
    if (setter != NULL)
        return groovy_apply(run, setter, arguments, 1, &ignored);
    if (find_getter(run, type, field) != NULL || slice_is(field, "class"))
        return run_throw(run, CLASS_READ_ONLY_PROPERTY_EXCEPTION, "Cannot set readonly property: %.*s for class: %s",
                         SLICE_ARG(field), type_java_name(type, class_name));
    return throw_missing_property(run, type, field);
}

/* Elements */

static bool text_element(struct run *run, struct text *text, struct value index, struct value *ret)
{
    int64_t at;
    if (!groovy_index(run, number_to_i32(index), text->length, &at))
        return false;
    if (at >= text->length)
        return run_throw(run, CLASS_STRING_INDEX_OUT_OF_BOUNDS_EXCEPTION, "begin %lld, end %lld, length %u",
                         (long long)at, (long long)at + 1, text->length);
    *ret = value_of(text_substring(run, text, (size_t)at, (size_t)at + 1));
    return ret->kind != VALUE_NULL;
}

static bool array_element(struct run *run, struct array *array, struct value index, struct value *ret)
{
    int64_t at;
    if (!groovy_index(run, number_to_i32(index), array->count, &at) || !array_check(run, array, at))
        return false;
    *ret = array->items[at];
    return true;
}

bool groovy_get_at(struct run *run, struct value self, struct value index, struct value *ret)
{
    int64_t at;
    self = value_plain(self);
    index = value_plain(index);
    if (value_is_map(self))
        return groovy_map_get(run, (struct dict *)self.object, index, ret);
    if (value_is(self, CLASS_DOC))
        return get_doc(run, self, index, ret);
    bool number = value_integral(index);
    if (number && value_is_seq(self)) {
        struct seq *seq = (struct seq *)self.object;
        *ret = VALUE_NONE;
        return groovy_index(run, number_to_i32(index), seq->count, &at) &&
               (at >= seq->count || seq_get(run, seq, at, ret));
    }
    if (number && value_is_array(self))
        return array_element(run, (struct array *)self.object, index, ret);
    if (number && value_is(self, CLASS_STRING))
        return text_element(run, (struct text *)self.object, index, ret);
    if (value_is(index, CLASS_STRING))
        return groovy_get(run, self, index, ret);
    return groovy_call(run, (struct value[]){self, index}, SLICE_LIT("getAt"), 1, ret);
}

/* Assigning beyond the end fills the list with nulls. */
static bool set_element(struct run *run, struct seq *seq, struct value index, struct value value)
{
    int64_t at;
    if (!groovy_index(run, number_to_i32(index), seq->count, &at))
        return false;
    while (at > seq->count)
        if (!run_step(run, 1) || !seq_add(run, seq, VALUE_NONE))
            return false;
    return at == seq->count ? seq_add(run, seq, value) : seq_set(run, seq, at, value, NULL);
}

bool groovy_set_at(struct run *run, struct value self, struct value index, struct value value)
{
    index = value_plain(index);
    struct value arguments[3] = {self, index, value}, ignored;
    int64_t at;
    if (value_is_map(self))
        return dict_put(run, (struct dict *)self.object, index, value, NULL);
    if (value_is(self, CLASS_DOC))
        return run_throw_null(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION);
    if (value_integral(index) && value_is_seq(self))
        return set_element(run, (struct seq *)self.object, index, value);
    if (value_integral(index) && value_is_array(self)) {
        struct array *array = (struct array *)self.object;
        return groovy_index(run, number_to_i32(index), array->count, &at) && array_check(run, array, at) &&
               convert_groovy(run, value, array->element, false, &array->items[at]);
    }
    if (value_is(index, CLASS_STRING))
        return groovy_set(run, self, index, value);
    return groovy_call(run, arguments, SLICE_LIT("putAt"), 2, &ignored);
}

/* Calls next for ++ and previous for --. */
bool groovy_step(struct run *run, enum operator op, struct value v, struct value *ret)
{
    struct value arguments[2] = {v};
    if (value_number(v))
        return number_binary_groovy(run, op, v, value_int(1), ret);
    return groovy_call(run, arguments, op == OP_ADD ? SLICE_LIT("next") : SLICE_LIT("previous"), 0, ret);
}

/* `in`, and the cases of a switch: Groovy's isCase. */
bool groovy_contains(struct run *run, struct value item, struct value collection, bool *ret)
{
    struct value arguments[2] = {collection, item}, answer;
    struct map_entry *entry;
    if (value_is(collection, CLASS_CLASS)) {
        *ret = value_instance_of(item, ((const struct class_object *)collection.object)->type);
        return true;
    }
    if (value_is_map(collection)) {
        bool ok = dict_find(run, (struct dict *)collection.object, item, &entry);
        *ret = false;
        return ok && (entry == NULL || convert_truth(run, entry->value, ret));
    }
    if (value_is(collection, CLASS_CLOSURE))
        return run_invoke(run, collection, &item, 1, &answer) && convert_truth(run, answer, ret);
    if (value_is(collection, CLASS_PATTERN)) {
        struct text *text = value_to_text(run, item);
        struct regex_matcher *matcher =
            text == NULL ? NULL : regex_matcher_new(run, (struct regex *)collection.object, text);
        return matcher != NULL && regex_matcher_match_at(run, matcher, 0, true, ret);
    }
    if (value_instance_of(collection, CLASS_COLLECTION) || value_is_array(collection)) {
        if (value_is_array(collection))
            arguments[0] = value_of(values_to_seq(run, collection, CLASS_ARRAY_LIST));
        return arguments[0].kind != VALUE_NULL && groovy_call(run, arguments, SLICE_LIT("contains"), 1, &answer) &&
               convert_truth(run, answer, ret);
    }
    return operate_equal(run, item, collection, ret);
}
