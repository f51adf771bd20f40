/* SPDX-License-Identifier: Apache-2.0 */
/* Operators at run time; see operate.h. */
#include "script/run/operate.h"

#include "base/check.h"
#include "script/run/convert.h"
#include "script/value/dict.h"
#include "script/value/iter.h"
#include "script/value/regex.h"

static const char *const comparisons[] = {"==", "!=", "<", "<=", ">", ">=", "===", "!=="};

static bool is_primitive(struct value v)
{
    return v.kind >= VALUE_BOOLEAN && v.kind <= VALUE_DOUBLE;
}

static bool throw_null_pointer(struct run *run, const char *side)
{
    return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot invoke \"Object.getClass()\" because \"%s\" is null",
                     side);
}

static bool does_not_apply(struct run *run, const char *symbol, struct value a, struct value b)
{
    char left[TYPE_NAME_MAX], right[TYPE_NAME_MAX];
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL)
        return throw_null_pointer(run, a.kind == VALUE_NULL ? "left" : "right");
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply [%s] operation to types [%s] and [%s].", symbol,
                     type_name(value_type(a), left), type_name(value_type(b), right));
}

static bool boolean_meets_number(struct run *run, struct value a, struct value b)
{
    static const char *const names[] = {
        [VALUE_INT] = "Integer", [VALUE_LONG] = "Long", [VALUE_FLOAT] = "Float", [VALUE_DOUBLE] = "Double"};
    /* Java promotes a number narrower than int; its kind is above that of a boolean. */
    enum value_kind wider = a.kind > b.kind ? a.kind : b.kind;
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot cast java.lang.Boolean to java.lang.%s",
                     names[wider < VALUE_INT && wider != VALUE_BOOLEAN ? VALUE_INT : wider]);
}

bool operate__concat(struct run *run, struct value a, struct value b, struct value *ret)
{
    struct text *left = value_to_text(run, a), *right = left == NULL ? NULL : value_to_text(run, b);
    struct text *both =
        right == NULL || !run_step(run, (left->length + right->length) / 64) ? NULL : text_concat(run, left, right);
    *ret = value_of(both);
    return both != NULL;
}

static bool is_bitwise(enum operator op)
{
    return op >= OP_SHL && op <= OP_XOR;
}

static bool is_shift(enum operator op)
{
    return op >= OP_SHL && op <= OP_USHR;
}

static bool painless_booleans(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    if (op != OP_AND && op != OP_OR && op != OP_XOR)
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply [%s] operation to type [boolean]",
                         operator_symbol(op));
    *ret = value_boolean(op == OP_AND ? a.i & b.i : op == OP_OR ? a.i | b.i : a.i ^ b.i);
    return true;
}

static bool painless_primitives(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    if (a.kind == VALUE_BOOLEAN && b.kind == VALUE_BOOLEAN)
        return painless_booleans(run, op, a, b, ret);
    if (a.kind == VALUE_BOOLEAN || b.kind == VALUE_BOOLEAN)
        return boolean_meets_number(run, a, b);
    if (is_shift(op) && value_floating(a))
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply [%s] operation to type [%s]",
                         operator_symbol(op), a.kind == VALUE_FLOAT ? "float" : "double");
    if (is_shift(op) && value_floating(b))
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot cast java.lang.%s to java.lang.Long",
                         b.kind == VALUE_FLOAT ? "Float" : "Double");
    if (is_bitwise(op) && (value_floating(a) || value_floating(b)))
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply [%s] operation to type [float]",
                         operator_symbol(op));
    return number_binary(run, op, a, b, ret);
}

static bool painless_integral(struct run *run, struct value v, const char *side, struct value *ret)
{
    char name[TYPE_NAME_MAX];
    *ret = v;
    if (v.kind == VALUE_NULL)
        return throw_null_pointer(run, side);
    if (value_integral(v) || v.kind == VALUE_CHAR || value_is(v, CLASS_BIG_INTEGER))
        return true;
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot convert [%s] to an integral value.",
                     type_name(value_type(v), name));
}

static bool painless_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    if (is_primitive(a) && is_primitive(b))
        return painless_primitives(run, op, a, b, ret);
    if (op == OP_ADD && (value_is(a, CLASS_STRING) || value_is(b, CLASS_STRING)))
        return operate__concat(run, a, b, ret);
    if (is_bitwise(op)) {
        if (!painless_integral(run, a, "value", &a) || !painless_integral(run, b, "value", &b))
            return false;
        return number_binary(run, op, a, b, ret);
    }
    bool numbers = (value_number(a) || a.kind == VALUE_CHAR) && (value_number(b) || b.kind == VALUE_CHAR);
    if (!numbers)
        return does_not_apply(run, operator_symbol(op), a, b);
    return number_binary(run, op, a, b, ret);
}

bool operate_binary(struct run *run, enum operator op, struct value a, struct value b, struct value *ret)
{
    /* Fast path for the most frequent case. */
    if (a.kind == VALUE_INT && b.kind == VALUE_INT && op <= OP_MUL) {
        uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
        *ret = value_int((int64_t)(op == OP_ADD ? x + y : op == OP_SUB ? x - y : x * y));
        return true;
    }
    return run->groovy ? operate__groovy(run, op, a, b, ret) : painless_binary(run, op, a, b, ret);
}

static bool unary_fails(struct run *run, const char *symbol, struct value v, bool primitive)
{
    char name[TYPE_NAME_MAX];
    if (v.kind == VALUE_NULL)
        return throw_null_pointer(run, "unary");
    if (primitive)
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply [%s] operation to type [boolean]", symbol);
    return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply [%s] operation to type [%s].", symbol,
                     type_name(value_type(v), name));
}

static bool groovy_unary_fails(struct run *run, const char *method, struct value v)
{
    char name[TYPE_NAME_MAX];
    if (v.kind == VALUE_NULL)
        return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot invoke method %s() on null object", method);
    /* Groovy's runtime resolves this operator differently from the others. */
    bool negative = strcmp(method, "positive") != 0;
    return run_throw(run, negative ? CLASS_MISSING_METHOD_EXCEPTION_NO_STACK : CLASS_MISSING_METHOD_EXCEPTION,
                     "No signature of method: %s.%s() is applicable for argument types: () values: []",
                     type_java_name(value_type(v), name), method);
}

/* Groovy applies - + ~ to the elements of a list. */
static bool each_element(struct run *run, bool (*operate)(struct run *, struct value, struct value *), struct value v,
                         struct value *ret)
{
    const struct seq *from = (const struct seq *)v.object;
    struct seq *to = seq_new(run, CLASS_ARRAY_LIST, from->count);
    *ret = value_of(to);
    if (to == NULL || !run_enter(run, 3))
        return false;
    bool ok = true;
    for (size_t i = 0; i < from->count && ok; i++) {
        struct value item;
        ok = run_step(run, 1) && operate(run, seq_item(from, i), &item) && seq_add(run, to, item);
    }
    run_leave(run, 3);
    return ok;
}

static bool maps_over(const struct run *run, struct value v)
{
    return run->groovy && value_is(v, CLASS_ARRAY_LIST);
}

bool operate_negate(struct run *run, struct value v, struct value *ret)
{
    if (maps_over(run, v))
        return each_element(run, operate_negate, v, ret);
    if (value_is(v, CLASS_BIG_INTEGER)) {
        struct big *big = big_negate(run, (const struct big *)v.object);
        *ret = value_of(big);
        return big != NULL;
    }
    if (value_is(v, CLASS_BIG_DECIMAL)) {
        const struct decimal *decimal = (const struct decimal *)v.object;
        *ret = value_of(decimal_new(run, big_negate(run, decimal->unscaled), decimal->scale));
        return ret->kind != VALUE_NULL;
    }
    if (!value_is_numeric(v))
        return run->groovy ? groovy_unary_fails(run, "negative", v) : unary_fails(run, "-", v, v.kind == VALUE_BOOLEAN);
    if (value_floating(v)) {
        *ret = v;
        ret->d = -v.d;
        return true;
    }
    return number_binary(run, OP_SUB, value_int(0), v, ret);
}

bool operate_plus(struct run *run, struct value v, struct value *ret)
{
    if (maps_over(run, v))
        return each_element(run, operate_plus, v, ret);
    if (!value_is_numeric(v) && !value_number(v))
        return run->groovy ? groovy_unary_fails(run, "positive", v) : unary_fails(run, "+", v, v.kind == VALUE_BOOLEAN);
    *ret = v.kind < VALUE_INT ? number_cast(run, v, VALUE_INT) : v;
    return true;
}

bool operate_invert(struct run *run, struct value v, struct value *ret)
{
    v = value_plain(v);
    if (maps_over(run, v))
        return each_element(run, operate_invert, v, ret);
    if (run->groovy && value_floating(v))
        return number_not_on_fractions(run, "bitwiseNegate", v);
    if (value_floating(v))
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply not [~] to type [%s]",
                         v.kind == VALUE_FLOAT ? "float" : "double");
    if (run->groovy && value_is(v, CLASS_STRING)) {
        *ret = value_of(regex_new(run, (struct text *)v.object, 0));
        return ret->kind != VALUE_NULL;
    }
    if (!value_is_numeric(v))
        return run->groovy ? groovy_unary_fails(run, "bitwiseNegate", v)
                           : unary_fails(run, "~", v, v.kind == VALUE_BOOLEAN);
    *ret = v.kind == VALUE_LONG ? value_long(~v.i) : value_int(~v.i);
    return true;
}

/* Comparing */

static bool groovy_equal_walk(struct run *run, struct value a, struct value b, bool *ret)
{
    const struct seq *x = (const struct seq *)a.object, *y = (const struct seq *)b.object;
    *ret = x->count == y->count;
    if (!seq_check(run, x) || !seq_check(run, y) || !run_enter(run, 3))
        return false;
    bool ok = true;
    for (size_t i = 0; i < x->count && *ret && ok; i++)
        ok = run_step(run, 1) && operate_equal(run, seq_item(x, i), seq_item(y, i), ret);
    run_leave(run, 3);
    return ok;
}

static bool groovy_equal_maps(struct run *run, struct value a, struct value b, bool *ret)
{
    struct dict *x = (struct dict *)a.object, *y = (struct dict *)b.object;
    *ret = x->count == y->count;
    if (!run_enter(run, 3))
        return false;
    bool ok = true;
    for (struct map_entry *entry = dict_first(x); entry != NULL && *ret && ok; entry = dict_next(x, entry)) {
        struct map_entry *other = NULL;
        ok = run_step(run, 1) && dict_find(run, y, entry->key, &other);
        *ret = other != NULL;
        if (ok && other != NULL)
            ok = operate_equal(run, entry->value, other->value, ret);
    }
    run_leave(run, 3);
    return ok;
}

bool operate_equal(struct run *run, struct value a, struct value b, bool *ret)
{
    a = value_plain(a);
    b = value_plain(b);
    if (a.kind == VALUE_NULL || b.kind == VALUE_NULL) {
        *ret = a.kind == b.kind;
        return true;
    }
    bool a_number = value_is_numeric(a) || value_number(a), b_number = value_is_numeric(b) || value_number(b);
    if (a_number && b_number) {
        *ret = number_equal(run, a, b);
        return run->thrown == NULL;
    }
    if (run->groovy && (value_is_array(a) || value_is_array(b))) {
        bool lists = (value_is_array(a) || value_is_seq(a)) && (value_is_array(b) || value_is_seq(b));
        struct value x = lists ? value_of(values_to_seq(run, a, CLASS_ARRAY_LIST)) : VALUE_NONE;
        struct value y = lists ? value_of(values_to_seq(run, b, CLASS_ARRAY_LIST)) : VALUE_NONE;
        *ret = false;
        return !lists || (run->thrown == NULL && groovy_equal_walk(run, x, y, ret));
    }
    if (run->groovy && a.kind == VALUE_OBJECT && b.kind == VALUE_OBJECT) {
        if (value_is_seq(a) && value_is_seq(b))
            return groovy_equal_walk(run, a, b, ret);
        if (value_is_map(a) && value_is_map(b))
            return groovy_equal_maps(run, a, b, ret);
    }
    /* A text of one character is that character. */
    bool text_and_number =
        run->groovy && ((a_number && value_is(b, CLASS_STRING)) || (b_number && value_is(a, CLASS_STRING)));
    if (text_and_number && ((const struct text *)(a_number ? b : a).object)->length == 1) {
        int order;
        bool ok = operate_order(run, a, b, &order);
        *ret = order == 0;
        return ok;
    }
    return value_equals(run, a, b, ret);
}

static bool order_to_bool(enum comparison op, int order)
{
    switch (op) {
    case COMPARE_LT: return order < 0;
    case COMPARE_LE: return order <= 0;
    case COMPARE_GT: return order > 0;
    case COMPARE_GE: return order >= 0;
    default: UNREACHABLE(); return false;
    }
}

static bool painless_order(struct run *run, enum comparison op, struct value a, struct value b, bool *ret)
{
    if (a.kind == VALUE_BOOLEAN && b.kind == VALUE_BOOLEAN)
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "Cannot apply [%s] operation to type [boolean]",
                         comparisons[op]);
    if (is_primitive(a) && is_primitive(b) && (a.kind == VALUE_BOOLEAN || b.kind == VALUE_BOOLEAN))
        return boolean_meets_number(run, a, b);
    bool numbers = (value_is_numeric(a) || value_number(a)) && (value_is_numeric(b) || value_number(b));
    if (!numbers)
        return does_not_apply(run, comparisons[op], a, b);
    bool nan = (value_floating(a) && a.d != a.d) || (value_floating(b) && b.d != b.d);
    *ret = !nan && order_to_bool(op, number_compare(run, a, b));
    return true;
}

static bool cannot_compare(struct run *run, struct value a, struct value b)
{
    char left[TYPE_NAME_MAX], right[TYPE_NAME_MAX];
    struct text *x = value_to_text(run, a), *y = x == NULL ? NULL : value_to_text(run, b);
    return y != NULL && run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION,
                                  "Cannot compare %s with value '%.*s' and %s with value '%.*s'",
                                  type_java_name(value_type(a), left), SLICE_ARG(text_utf8(run, x)),
                                  type_java_name(value_type(b), right), SLICE_ARG(text_utf8(run, y)));
}

bool operate_order(struct run *run, struct value a, struct value b, int *ret_order)
{
    a = value_plain(a);
    b = value_plain(b);
    bool a_number = value_is_numeric(a) || value_number(a), b_number = value_is_numeric(b) || value_number(b);
    *ret_order = 0;
    if (a.kind == VALUE_OBJECT && b.kind == VALUE_OBJECT && a.object == b.object)
        return true;
    if (a_number && b_number) {
        *ret_order = number_compare(run, a, b);
        return run->thrown == NULL;
    }
    /* Compared with a number, a text of one character is that character. */
    if (a_number && value_is(b, CLASS_STRING) && ((struct text *)b.object)->length == 1)
        return operate_order(run, a, value_char(text_at((struct text *)b.object, 0)), ret_order);
    if (b_number && value_is(a, CLASS_STRING) && ((struct text *)a.object)->length == 1)
        return operate_order(run, value_char(text_at((struct text *)a.object, 0)), b, ret_order);
    bool comparable = a.kind == VALUE_NULL || b.kind == VALUE_NULL || value_instance_of(a, CLASS_COMPARABLE);
    return comparable || !run->groovy ? value_order(run, a, b, ret_order) : cannot_compare(run, a, b);
}

bool operate_compare(struct run *run, enum comparison op, struct value a, struct value b, bool *ret)
{
    if (a.kind == VALUE_INT && b.kind == VALUE_INT && op <= COMPARE_GE) {
        *ret = op == COMPARE_EQ   ? a.i == b.i
               : op == COMPARE_NE ? a.i != b.i
                                  : order_to_bool(op, (a.i > b.i) - (a.i < b.i));
        return true;
    }
    int order;
    switch (op) {
    case COMPARE_EQ:
    case COMPARE_NE:
        if (!operate_equal(run, a, b, ret))
            return false;
        *ret = *ret == (op == COMPARE_EQ);
        return true;
    case COMPARE_SAME:
    case COMPARE_NOT_SAME:
        *ret = a.kind == b.kind && (a.kind == VALUE_OBJECT ? a.object == b.object
                                    : value_floating(a)    ? a.d == b.d
                                                           : a.i == b.i);
        *ret = (*ret || (a.kind == VALUE_NULL && b.kind == VALUE_NULL)) == (op == COMPARE_SAME);
        return true;
    default:
        if (!run->groovy)
            return painless_order(run, op, a, b, ret);
        if (!operate_order(run, a, b, &order))
            return false;
        *ret = order_to_bool(op, order);
        return true;
    }
}
