/* SPDX-License-Identifier: Apache-2.0 */
/* Classes, equality, hashes, order and texts of values; see value.h. */
#include "script/value/statistics.h"
#include "script/value/value.h"

#include "base/check.h"
#include "base/dtoa.h"
#include "script/value/builder.h"
#include "script/value/function.h"
#include "script/value/iter.h"
#include "script/value/temporal.h"
#include "script/value/number.h"
#include "script/value/regex.h"

#include <math.h>
#include <stdio.h>

bool value_number(struct value v)
{
    return value_integral(v) || value_floating(v) || value_is(v, CLASS_BIG_INTEGER) || value_is(v, CLASS_BIG_DECIMAL);
}

type_id value_type(struct value v)
{
    static const uint16_t boxes[] = {
        [VALUE_NULL] = TYPE_NONE,        [VALUE_BOOLEAN] = CLASS_BOOLEAN_BOX, [VALUE_BYTE] = CLASS_BYTE_BOX,
        [VALUE_SHORT] = CLASS_SHORT_BOX, [VALUE_CHAR] = CLASS_CHAR_BOX,       [VALUE_INT] = CLASS_INT_BOX,
        [VALUE_LONG] = CLASS_LONG_BOX,   [VALUE_FLOAT] = CLASS_FLOAT_BOX,     [VALUE_DOUBLE] = CLASS_DOUBLE_BOX};
    if (v.kind != VALUE_OBJECT)
        return boxes[v.kind];
    if (v.object->class == CLASS_ARRAY) {
        type_id element = ((const struct array *)v.object)->element;
        return type_array(type_class(element), type_dims(element) + 1);
    }
    return v.object->class;
}

bool value_instance_of(struct value v, type_id type)
{
    if (v.kind == VALUE_NULL)
        return false;
    type_id boxed = type_boxed(type);
    if (boxed == CLASS_DEF)
        return true;
    if (value_is(v, CLASS_CLOSURE))
        return class_infos[type_class(boxed)].kind == CLASS_KIND_F || boxed == CLASS_CLOSURE || boxed == CLASS_OBJECT;
    return type_assignable(boxed, value_type(v));
}

/* The operations of a shape; the first three may be NULL: the default of any object. */
typedef bool equals_function(struct run *run, struct value a, struct value b, bool *ret_equal);

struct operations {
    equals_function *equals; /* objects are equal only to those that have the same function */
    bool (*hash)(struct run *run, struct value v, int32_t *ret_hash);
    int (*order)(struct run *run, struct value a, struct value b); /* of two of one class */
    bool (*append)(struct run *run, struct value v, struct text_buf *out);
};

static const struct operations all_operations[SHAPE_COUNT];

/* Requires: an object. */
static const struct operations *operations_of(struct value v)
{
    return &all_operations[object_shape(v.object)];
}

/* Equality */

static bool lists_equal(struct run *run, struct value one, struct value two, bool *ret_equal)
{
    const struct seq *a = (struct seq *)one.object, *b = (struct seq *)two.object;
    *ret_equal = a->count == b->count;
    if (!seq_check(run, a) || !seq_check(run, b))
        return false;
    for (size_t i = 0; i < a->count && *ret_equal; i++)
        if (!run_step(run, 1) || !value_equals(run, seq_item(a, i), seq_item(b, i), ret_equal))
            return false;
    return true;
}

static bool dicts_equal(struct run *run, struct dict *a, struct dict *b, bool is_map, bool *ret_equal)
{
    *ret_equal = a->count == b->count;
    for (struct map_entry *entry = dict_first(a); entry != NULL && *ret_equal; entry = dict_next(a, entry)) {
        struct map_entry *other;
        if (!run_step(run, 1) || !dict_find(run, b, entry->key, &other))
            return false;
        *ret_equal = other != NULL;
        if (other != NULL && is_map && !value_equals(run, entry->value, other->value, ret_equal))
            return false;
    }
    return true;
}

static bool entries_equal(struct run *run, struct value one, struct value two, bool *ret_equal)
{
    const struct map_entry *a = (struct map_entry *)one.object, *b = (struct map_entry *)two.object;
    if (!value_equals(run, a->key, b->key, ret_equal))
        return false;
    return !*ret_equal || value_equals(run, a->value, b->value, ret_equal);
}

/* Returns: a view copied to a set, incomplete if the run threw; a set itself. */
static struct dict *set_of(struct run *run, struct value v)
{
    if (value_is_set(v))
        return (struct dict *)v.object;
    struct dict *set = dict_new(run, CLASS_LINKED_HASH_SET);
    struct iter iter;
    iter_init(&iter, run, v);
    walk(&iter, item)
    {
        bool added;
        if (!dict_add(run, set, item, &added))
            break;
    }
    return set;
}

/* For sets and views of maps. */
static bool sets_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    return dicts_equal(run, set_of(run, a), set_of(run, b), false, ret_equal);
}

static bool maps_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    return dicts_equal(run, (struct dict *)a.object, (struct dict *)b.object, true, ret_equal);
}

static bool texts_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    *ret_equal = text_same(run, (struct text *)a.object, (struct text *)b.object);
    return true;
}

static bool gstrings_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    *ret_equal = text_same(run, ((struct gstring *)a.object)->text, ((struct gstring *)b.object)->text);
    return true;
}

static bool bigs_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    (void)run;
    *ret_equal = big_compare((struct big *)a.object, (struct big *)b.object) == 0;
    return true;
}

static bool decimals_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    const struct decimal *one = (struct decimal *)a.object, *two = (struct decimal *)b.object;
    (void)run;
    *ret_equal = one->scale == two->scale && big_compare(one->unscaled, two->unscaled) == 0;
    return true;
}

static bool temporals_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    (void)run;
    *ret_equal = temporal_equal((struct temporal *)a.object, (struct temporal *)b.object);
    return true;
}

static bool enumerators_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    (void)run;
    *ret_equal = a.object->class == b.object->class &&
                 ((struct enumerator *)a.object)->ordinal == ((struct enumerator *)b.object)->ordinal;
    return true;
}

static bool classes_equal(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    (void)run;
    *ret_equal = ((struct class_object *)a.object)->type == ((struct class_object *)b.object)->type;
    return true;
}

bool value_equals(struct run *run, struct value a, struct value b, bool *ret_equal)
{
    *ret_equal = false;
    if (a.kind != b.kind)
        return true;
    if (a.kind != VALUE_OBJECT) {
        *ret_equal = a.kind == VALUE_NULL ||
                     (value_floating(a) ? (a.d == b.d && signbit(a.d) == signbit(b.d)) || (isnan(a.d) && isnan(b.d))
                                        : a.i == b.i);
        return true;
    }
    if (a.object == b.object) {
        *ret_equal = true;
        return true;
    }
    equals_function *equals = operations_of(a)->equals;
    if (equals == NULL || equals != operations_of(b)->equals)
        return true;
    if (!run_enter(run, 3))
        return false;
    bool ok = equals(run, a, b, ret_equal);
    run_leave(run, 3);
    return ok;
}

/* Hashes */

static bool hash_walk(struct run *run, struct value v, int32_t *ret_hash)
{
    struct iter iter;
    bool ordered = value_is_seq(v);
    uint32_t hash = ordered ? 1 : 0;
    struct map_view entries = {.object = {.class = CLASS_ENTRY_SET}};
    if (value_is_map(v)) {
        entries.dict = (struct dict *)v.object;
        v = value_of(&entries);
    }
    if (!iter_init(&iter, run, v)) {
        *ret_hash = (int32_t)((uint32_t)v.object->class * 31u);
        return true;
    }
    walk(&iter, item)
    {
        int32_t item_hash;
        if (!value_hash(run, item, &item_hash))
            return false;
        hash = ordered ? hash * 31 + (uint32_t)item_hash : hash + (uint32_t)item_hash;
    }
    *ret_hash = (int32_t)hash;
    return run->thrown == NULL;
}

static bool hash_entry(struct run *run, struct value v, int32_t *ret_hash)
{
    const struct map_entry *entry = (struct map_entry *)v.object;
    int32_t key, value;
    if (!value_hash(run, entry->key, &key) || !value_hash(run, entry->value, &value))
        return false;
    *ret_hash = key ^ value;
    return true;
}

static bool hash_text(struct run *run, struct value v, int32_t *ret_hash)
{
    *ret_hash = text_hash_of(run, (struct text *)v.object);
    return true;
}

static bool hash_gstring(struct run *run, struct value v, int32_t *ret_hash)
{
    *ret_hash = (int32_t)(37u + (uint32_t)text_hash_of(run, ((struct gstring *)v.object)->text));
    return true;
}

static bool hash_big(struct run *run, struct value v, int32_t *ret_hash)
{
    (void)run;
    *ret_hash = big_hash((struct big *)v.object);
    return true;
}

static bool hash_decimal(struct run *run, struct value v, int32_t *ret_hash)
{
    const struct decimal *decimal = (struct decimal *)v.object;
    (void)run;
    *ret_hash = (int32_t)(31u * (uint32_t)big_hash(decimal->unscaled) + (uint32_t)decimal->scale);
    return true;
}

static bool hash_temporal(struct run *run, struct value v, int32_t *ret_hash)
{
    (void)run;
    *ret_hash = temporal_hash((struct temporal *)v.object);
    return true;
}

static bool hash_enumerator(struct run *run, struct value v, int32_t *ret_hash)
{
    (void)run;
    *ret_hash = ((struct enumerator *)v.object)->ordinal + 1;
    return true;
}

bool value_hash(struct run *run, struct value v, int32_t *ret_hash)
{
    if (v.kind == VALUE_NULL) {
        *ret_hash = 0;
        return true;
    }
    if (v.kind != VALUE_OBJECT) {
        *ret_hash = number_hash(v);
        return true;
    }
    if (v.object->class == CLASS_STRING) /* fast path: most keys are strings, which do not nest */
        return hash_text(run, v, ret_hash);
    const struct operations *operations = operations_of(v);
    if (!run_enter(run, 3))
        return false;
    bool ok = operations->hash == NULL ? hash_walk(run, v, ret_hash) : operations->hash(run, v, ret_hash);
    run_leave(run, 3);
    return ok;
}

/* Order */

static bool compare_fails(struct run *run, struct value a, struct value b)
{
    char one[TYPE_NAME_MAX], two[TYPE_NAME_MAX];
    type_java_name(value_type(b), two);
    type_java_name(value_type(a), one);
    bool comparable = value_instance_of(a, CLASS_COMPARABLE);
    if (!comparable && !run->groovy)
        snprintf(two, sizeof two, "java.lang.Comparable");
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "class %s cannot be cast to class %s", comparable ? two : one,
                     comparable ? one : two);
}

static int order_texts(struct run *run, struct value a, struct value b)
{
    return text_compare(run, (struct text *)a.object, (struct text *)b.object);
}

static int order_temporals(struct run *run, struct value a, struct value b)
{
    (void)run;
    return temporal_compare((struct temporal *)a.object, (struct temporal *)b.object);
}

static int order_enumerators(struct run *run, struct value a, struct value b)
{
    (void)run;
    return ((struct enumerator *)a.object)->ordinal - ((struct enumerator *)b.object)->ordinal;
}

bool value_order(struct run *run, struct value a, struct value b, int *ret_order)
{
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL) {
        *ret_order = (a.kind != VALUE_NULL) - (b.kind != VALUE_NULL);
        return run->groovy || run_throw_npe(run, "Comparable.compareTo(Object)");
    }
    bool same_class = a.kind == VALUE_OBJECT && b.kind == VALUE_OBJECT && a.object->class == b.object->class;
    if (same_class && operations_of(a)->order != NULL)
        *ret_order = operations_of(a)->order(run, a, b);
    else if (value_number(a) && value_number(b) && (run->groovy || value_type(a) == value_type(b)))
        *ret_order = number_compare(run, a, b);
    else if (a.kind == b.kind && (a.kind == VALUE_BOOLEAN || a.kind == VALUE_CHAR))
        *ret_order = (int)(a.i - b.i);
    else
        return compare_fails(run, a, b);
    return run->thrown == NULL;
}

/* Texts */

bool value_append_list(struct run *run, struct value v, value_appender *append, struct text_buf *out)
{
    struct iter iter;
    bool first = true;
    iter_init(&iter, run, v);
    text_buf_unit(out, '[');
    walk(&iter, item)
    {
        if (!first)
            text_buf_ascii(out, ", ");
        first = false;
        if (item.kind == VALUE_OBJECT && item.object == v.object)
            text_buf_ascii(out, "(this Collection)");
        else if (!append(run, item, out))
            return false;
    }
    text_buf_unit(out, ']');
    return run->thrown == NULL;
}

static bool append_list(struct run *run, struct value v, struct text_buf *out)
{
    return value_append_list(run, v, value_append, out);
}

static bool append_map(struct run *run, struct value v, struct text_buf *out)
{
    struct dict *dict = (struct dict *)v.object;
    bool groovy = run->groovy;
    if (groovy && dict->count == 0) {
        text_buf_ascii(out, "[:]");
        return true;
    }
    text_buf_unit(out, groovy ? '[' : '{');
    bool first = true;
    for (struct map_entry *entry = dict_first(dict); entry != NULL; entry = dict_next(dict, entry)) {
        struct value pair[2] = {entry->key, entry->value};
        if (!first)
            text_buf_ascii(out, ", ");
        first = false;
        for (unsigned i = 0; i < 2; i++) {
            if (i == 1)
                text_buf_unit(out, groovy ? ':' : '=');
            if (pair[i].kind == VALUE_OBJECT && pair[i].object == &dict->object)
                text_buf_ascii(out, "(this Map)");
            else if (!run_step(run, 1) || !value_append(run, pair[i], out))
                return false;
        }
    }
    text_buf_unit(out, groovy ? ']' : '}');
    return true;
}

static bool append_throwable(struct run *run, struct value v, struct text_buf *out)
{
    const struct throwable *thrown = (struct throwable *)v.object;
    (void)run;
    text_buf_ascii(out, class_infos[thrown->object.class].java);
    if (thrown->message != NULL) {
        text_buf_ascii(out, ": ");
        text_buf_text(out, thrown->message);
    }
    return true;
}

static bool append_matcher(struct run *run, struct value v, struct text_buf *out)
{
    const struct regex_matcher *matcher = (struct regex_matcher *)v.object;
    (void)run;
    char region[64];
    snprintf(region, sizeof region, " region=%lld,%lld lastmatch=", (long long)matcher->from, (long long)matcher->to);
    text_buf_ascii(out, "java.util.regex.Matcher[pattern=");
    text_buf_text(out, matcher->pattern->source);
    text_buf_ascii(out, region);
    if (matcher->matched)
        text_buf_range(out, matcher->input, (size_t)matcher->groups[0], (size_t)matcher->groups[1]);
    text_buf_unit(out, ']');
    return true;
}

static bool append_builder(struct run *run, struct value v, struct text_buf *out)
{
    (void)run;
    return builder_append_to((struct builder *)v.object, out);
}

static bool append_pattern(struct run *run, struct value v, struct text_buf *out)
{
    (void)run;
    text_buf_text(out, ((struct regex *)v.object)->source);
    return true;
}

static bool append_class(struct run *run, struct value v, struct text_buf *out)
{
    char name[TYPE_NAME_MAX];
    type_id type = ((struct class_object *)v.object)->type;
    (void)run;
    if (!type_primitive(type))
        text_buf_ascii(out, class_infos[type_class(type)].kind == CLASS_KIND_I ? "interface " : "class ");
    text_buf_ascii(out, type_java_name(type, name));
    return true;
}

static bool append_optional(struct run *run, struct value v, struct text_buf *out)
{
    const struct seq *held = (struct seq *)v.object;
    if (held->count == 0) {
        text_buf_ascii(out, "Optional.empty");
        return true;
    }
    text_buf_ascii(out, "Optional[");
    bool ok = value_append(run, seq_item(held, 0), out);
    text_buf_unit(out, ']');
    return ok;
}

/* Java shows an address here; an address would differ from run to run. */
static bool append_object(struct run *run, struct value v, struct text_buf *out)
{
    char name[TYPE_NAME_MAX];
    (void)run;
    text_buf_ascii(out, type_java_name(value_type(v), name));
    text_buf_ascii(out, "@1");
    return true;
}

static bool append_closure(struct run *run, struct value v, struct text_buf *out)
{
    struct slice name = closure_class_name(run, v);
    if (name.len == 0)
        return append_object(run, v, out);
    text_buf_slice(out, name);
    text_buf_ascii(out, "@1");
    return true;
}

static bool append_array(struct run *run, struct value v, struct text_buf *out)
{
    return run->groovy ? append_list(run, v, out) : append_object(run, v, out);
}

static bool append_text(struct run *run, struct value v, struct text_buf *out)
{
    (void)run;
    text_buf_text(out, (struct text *)value_plain(v).object);
    return true;
}

static bool append_big(struct run *run, struct value v, struct text_buf *out)
{
    text_buf_slice(out, big_slice(run, (struct big *)v.object));
    return true;
}

static bool append_decimal(struct run *run, struct value v, struct text_buf *out)
{
    text_buf_slice(out, decimal_slice(run, (struct decimal *)v.object));
    return true;
}

static bool append_temporal(struct run *run, struct value v, struct text_buf *out)
{
    (void)run;
    if (value_is(v, CLASS_DATE))
        temporal_write_date((struct temporal *)v.object, out);
    else
        temporal_write((struct temporal *)v.object, out);
    return true;
}

static bool append_enumerator(struct run *run, struct value v, struct text_buf *out)
{
    (void)run;
    text_buf_ascii(out, enumerator_text((enum class_id)v.object->class, ((struct enumerator *)v.object)->ordinal));
    return true;
}

static bool append_statistics(struct run *run, struct value v, struct text_buf *out)
{
    return statistics_write(run, v.object, out);
}

static bool append_entry(struct run *run, struct value v, struct text_buf *out)
{
    const struct map_entry *entry = (struct map_entry *)v.object;
    if (!value_append(run, entry->key, out))
        return false;
    text_buf_unit(out, '=');
    return value_append(run, entry->value, out);
}

static const struct operations all_operations[SHAPE_COUNT] = {
    [SHAPE_OBJECT] = {NULL, NULL, NULL, append_object},
    [SHAPE_TEXT] = {texts_equal, hash_text, order_texts, append_text},
    [SHAPE_GSTRING] = {gstrings_equal, hash_gstring, NULL, append_text},
    [SHAPE_BIG] = {bigs_equal, hash_big, NULL, append_big}, /* numbers have an order among all of them */
    [SHAPE_DECIMAL] = {decimals_equal, hash_decimal, NULL, append_decimal},
    [SHAPE_TEMPORAL] = {temporals_equal, hash_temporal, order_temporals, append_temporal},
    [SHAPE_ENUM] = {enumerators_equal, hash_enumerator, order_enumerators, append_enumerator},
    [SHAPE_STATISTICS] = {NULL, NULL, NULL, append_statistics},
    [SHAPE_ENTRY] = {entries_equal, hash_entry, NULL, append_entry},
    [SHAPE_LIST] = {lists_equal, NULL, NULL, append_list},
    [SHAPE_MAP] = {maps_equal, NULL, NULL, append_map},
    [SHAPE_SET] = {sets_equal, NULL, NULL, append_list},
    [SHAPE_VIEW] = {sets_equal, NULL, NULL, append_list},
    [SHAPE_COLLECTION] = {NULL, NULL, NULL, append_list},
    [SHAPE_ARRAY] = {NULL, NULL, NULL, append_array},
    [SHAPE_OPTIONAL] = {NULL, NULL, NULL, append_optional},
    [SHAPE_BUILDER] = {NULL, NULL, NULL, append_builder},
    [SHAPE_PATTERN] = {NULL, NULL, NULL, append_pattern},
    [SHAPE_MATCHER] = {NULL, NULL, NULL, append_matcher},
    [SHAPE_CLASS] = {classes_equal, NULL, NULL, append_class},
    [SHAPE_CLOSURE] = {NULL, NULL, NULL, append_closure},
    [SHAPE_THROWABLE] = {NULL, NULL, NULL, append_throwable},
};

bool value_append(struct run *run, struct value v, struct text_buf *out)
{
    char number[DTOA_TEXT_MAX];
    switch (v.kind) {
    case VALUE_NULL: text_buf_ascii(out, "null"); break;
    case VALUE_BOOLEAN: text_buf_ascii(out, v.i ? "true" : "false"); break;
    case VALUE_CHAR: text_buf_unit(out, (uint16_t)v.i); break;
    case VALUE_FLOAT:
        dtoa_float((float)v.d, number);
        text_buf_ascii(out, number);
        break;
    case VALUE_DOUBLE:
        dtoa_double(v.d, number);
        text_buf_ascii(out, number);
        break;
    case VALUE_OBJECT:
        if (v.object->class == CLASS_STRING) { /* fast path: most are strings, which do not nest */
            text_buf_text(out, (struct text *)v.object);
            break;
        }
        if (!run_enter(run, 3))
            return false;
        bool ok = operations_of(v)->append(run, v, out);
        run_leave(run, 3);
        return ok && !out->failed;
    default: snprintf(number, sizeof number, "%lld", (long long)v.i); text_buf_ascii(out, number);
    }
    return !out->failed;
}

struct text *value_to_text(struct run *run, struct value v)
{
    v = value_plain(v);
    if (value_is(v, CLASS_STRING))
        return (struct text *)v.object;
    struct text_buf out;
    text_buf_init(&out, run);
    return value_append(run, v, &out) ? text_buf_done(&out) : NULL;
}
