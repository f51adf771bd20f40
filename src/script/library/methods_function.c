/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of functional interfaces: the one abstract method of each, and the combinators of
   Comparator and Function. */
#include "script/library/method_args.h"

#include "script/run/convert.h"
#include "script/run/invoke.h"

/* The native of apply, test, accept, compare, get and so on: calls the function. */
static bool function_call(struct call *call, struct value *ret)
{
    return run_invoke(call->run, call->self, call->args, call->count, ret);
}

static bool function_test(struct call *call, struct value *ret)
{
    bool holds;
    return invoke_test(call->run, call->self, call->args, call->count, &holds) && give_boolean(ret, holds);
}

static bool function_compare(struct call *call, struct value *ret)
{
    return run_invoke(call->run, call->self, call->args, 2, ret) && convert_site(call->run, *ret, CLASS_INT, ret);
}

/* Calls the function and converts its result to the row's type. */
static bool function_call_as(struct call *call, struct value *ret)
{
    return run_invoke(call->run, call->self, call->args, call->count, ret) &&
           convert_site(call->run, *ret, call->row->result, ret);
}

/* Combinators: held[0] and held[1] are the combined functions */

static bool run_then(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    struct value middle;
    return run_invoke(run, closure->held[0], a, n, &middle) && run_invoke(run, closure->held[1], &middle, 1, ret);
}

struct value function_then(struct run *run, struct value first, struct value second)
{
    return closure_native_new(run, run_then, function_arity(first), first, second);
}

static bool function_and_then(struct call *call, struct value *ret)
{
    *ret = function_then(call->run, call->self, call->args[0]);
    return true;
}

static bool function_compose(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_then, 1, call->args[0], call->self);
    return true;
}

static bool run_identity(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)closure;
    *ret = n > 0 ? a[0] : VALUE_NONE;
    return true;
}

static bool function_identity(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_identity, 1, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool run_negated(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    bool holds;
    return invoke_test(run, closure->held[0], a, n, &holds) && give_boolean(ret, !holds);
}

static bool predicate_negate(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_negated, function_arity(call->self), call->self, VALUE_NONE);
    return true;
}

static bool run_both(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    bool holds;
    if (!invoke_test(run, closure->held[0], a, n, &holds) ||
        (holds && !invoke_test(run, closure->held[1], a, n, &holds)))
        return false;
    return give_boolean(ret, holds);
}

static bool predicate_and(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_both, function_arity(call->self), call->self, call->args[0]);
    return true;
}

static bool run_either(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    bool holds;
    if (!invoke_test(run, closure->held[0], a, n, &holds) ||
        (!holds && !invoke_test(run, closure->held[1], a, n, &holds)))
        return false;
    return give_boolean(ret, holds);
}

static bool predicate_or(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_either, function_arity(call->self), call->self, call->args[0]);
    return true;
}

static bool run_is_equal(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool equal;
    return value_equals(run, a[0], closure->held[0], &equal) && give_boolean(ret, equal);
}

static bool predicate_is_equal(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_is_equal, 1, call->args[0], VALUE_NONE);
    return true;
}

/* Groovy's curry: inserts the arguments in the list held[1] at index held[2] and calls held[0];
   a negative index appends them */

#define CURRIED_MAX 16

static bool run_curried(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *fixed = seq_of(closure->held[1]);
    struct value all[2 * CURRIED_MAX];
    int64_t position = closure->held[2].i < 0 ? n : closure->held[2].i;
    if (n > CURRIED_MAX || position > n)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Can't call a curried closure with %u arguments", n);
    unsigned count = 0;
    for (unsigned i = 0; i <= n; i++) {
        for (size_t k = 0; i == position && k < fixed->count; k++)
            all[count++] = seq_item(fixed, k);
        if (i < n)
            all[count++] = a[i];
    }
    return run_invoke(run, closure->held[0], all, count, ret);
}

static bool curry_at(struct call *call, unsigned first, int64_t position, struct value *ret)
{
    struct run *run = call->run;
    struct seq *fixed = seq_new(run, CLASS_ARRAY_LIST, call->count);
    unsigned arity = function_arity(call->self), given = call->count + 1 - first;
    if (given > CURRIED_MAX || given > arity)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "Can't curry %u arguments for a closure with %u parameters.", given, arity);
    for (unsigned i = first - 1; i < call->count; i++)
        if (!seq_add(run, fixed, call->args[i]))
            return false;
    *ret = closure_native_new(run, run_curried, arity - given, call->self, value_of(fixed));
    ((struct closure *)ret->object)->held[2] = value_int(position);
    return true;
}

static bool closure_curry(struct call *call, struct value *ret)
{
    return curry_at(call, 1, 0, ret);
}

static bool closure_rcurry(struct call *call, struct value *ret)
{
    return curry_at(call, 1, -1, ret);
}

static bool closure_ncurry(struct call *call, struct value *ret)
{
    return curry_at(call, 2, call->args[0].i, ret);
}

static bool closure_parameter_count(struct call *call, struct value *ret)
{
    return give_int(ret, function_arity(call->self));
}

/* Comparators */

static bool order_by(struct run *run, struct value comparator, struct value x, struct value y, struct value *ret)
{
    struct value pair[2] = {x, y};
    int order;
    if (comparator.kind != VALUE_NULL)
        return run_invoke(run, comparator, pair, 2, ret);
    if (!run->groovy && (x.kind == VALUE_NULL || y.kind == VALUE_NULL))
        return run_throw_npe(run, "Comparable.compareTo(Object)");
    return value_order(run, x, y, &order) && give_int(ret, (order > 0) - (order < 0));
}

static bool run_natural(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)closure, (void)n;
    return order_by(run, VALUE_NONE, a[0], a[1], ret);
}

static bool run_reversed(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return order_by(run, closure->held[0], a[1], a[0], ret);
}

/* Compares by key: held[0] gives the key, held[1] is the comparator of keys or null. */
static bool run_by_key(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value x, y;
    return run_invoke(run, closure->held[0], &a[0], 1, &x) && run_invoke(run, closure->held[0], &a[1], 1, &y) &&
           order_by(run, closure->held[1], x, y, ret);
}

static bool run_then_by(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (!order_by(run, closure->held[0], a[0], a[1], ret))
        return false;
    return ret->i != 0 || order_by(run, closure->held[1], a[0], a[1], ret);
}

/* Compares with nulls allowed; held[1]: whether null is less than other values. */
static bool run_nulls(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t side = closure->held[1].i != 0 ? 1 : -1;
    bool x = a[0].kind == VALUE_NULL, y = a[1].kind == VALUE_NULL;
    if (x || y)
        return give_int(ret, x && y ? 0 : x ? -side : side);
    return order_by(run, closure->held[0], a[0], a[1], ret);
}

static bool comparator_natural(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_natural, 2, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool comparator_reverse_order(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_reversed, 2, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool comparator_reversed(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_reversed, 2, call->self, VALUE_NONE);
    return true;
}

static bool comparator_comparing(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_by_key, 2, call->args[0], call->count == 2 ? call->args[1] : VALUE_NONE);
    return true;
}

static bool comparator_then(struct call *call, struct value *ret)
{
    struct value second = call->args[0];
    bool by_key = call->count == 2 || function_arity(call->args[0]) == 1;
    if (by_key)
        second =
            closure_native_new(call->run, run_by_key, 2, call->args[0], call->count == 2 ? call->args[1] : VALUE_NONE);
    *ret = closure_native_new(call->run, run_then_by, 2, call->self, second);
    return true;
}

static bool comparator_then_key(struct call *call, struct value *ret)
{
    struct value second = closure_native_new(call->run, run_by_key, 2, call->args[0], VALUE_NONE);
    *ret = closure_native_new(call->run, run_then_by, 2, call->self, second);
    return true;
}

static bool comparator_nulls_first(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_nulls, 2, call->args[0], value_int(1));
    return true;
}

static bool comparator_nulls_last(struct call *call, struct value *ret)
{
    *ret = closure_native_new(call->run, run_nulls, 2, call->args[0], value_int(0));
    return true;
}

static const struct method_row comparator_methods[] = {
    {"int compare(def, def)", BOTH, function_compare},
    {"static Comparator comparing(Function)", BOTH, comparator_comparing},
    {"static Comparator comparing(Function, Comparator)", BOTH, comparator_comparing},
    {"static Comparator comparingInt(ToIntFunction)", BOTH, comparator_comparing},
    {"static Comparator comparingLong(ToLongFunction)", BOTH, comparator_comparing},
    {"static Comparator comparingDouble(ToDoubleFunction)", BOTH, comparator_comparing},
    {"static Comparator naturalOrder()", BOTH, comparator_natural},
    {"static Comparator reverseOrder()", BOTH, comparator_reverse_order},
    {"static Comparator nullsFirst(Comparator)", BOTH, comparator_nulls_first},
    {"static Comparator nullsLast(Comparator)", BOTH, comparator_nulls_last},
    {"Comparator reversed()", BOTH, comparator_reversed},
    {"Comparator thenComparing(Comparator)", BOTH, comparator_then},
    {"Comparator thenComparing(Function, Comparator)", BOTH, comparator_then},
    {"Comparator thenComparingInt(ToIntFunction)", BOTH, comparator_then_key},
    {"Comparator thenComparingLong(ToLongFunction)", BOTH, comparator_then_key},
    {"Comparator thenComparingDouble(ToDoubleFunction)", BOTH, comparator_then_key},
};

static const struct method_row function_methods[] = {
    {"def apply(def)", BOTH, function_call},
    {"Function andThen(Function)", BOTH, function_and_then},
    {"Function compose(Function)", BOTH, function_compose},
    {"static Function identity()", BOTH, function_identity},
};

static const struct method_row bi_function_methods[] = {
    {"def apply(def, def)", BOTH, function_call},
    {"BiFunction andThen(Function)", BOTH, function_and_then},
};

static const struct method_row predicate_methods[] = {
    {"boolean test(def)", BOTH, function_test},
    {"Predicate and(Predicate)", BOTH, predicate_and},
    {"Predicate or(Predicate)", BOTH, predicate_or},
    {"Predicate negate()", BOTH, predicate_negate},
    {"static Predicate isEqual(def)", BOTH, predicate_is_equal},
};

static const struct method_row bi_predicate_methods[] = {
    {"boolean test(def, def)", BOTH, function_test},
    {"BiPredicate and(BiPredicate)", BOTH, predicate_and},
    {"BiPredicate or(BiPredicate)", BOTH, predicate_or},
    {"BiPredicate negate()", BOTH, predicate_negate},
};

static const struct method_row consumer_methods[] = {
    {"void accept(def)", BOTH, function_call},
};
static const struct method_row bi_consumer_methods[] = {
    {"void accept(def, def)", BOTH, function_call},
};
static const struct method_row supplier_methods[] = {
    {"def get()", BOTH, function_call},
};
static const struct method_row runnable_methods[] = {
    {"void run()", BOTH, function_call},
};

/* Methods of a function in a `def`, whichever functional interface it implements. */
static const struct method_row closure_methods[] = {
    {"def get()", BOTH, function_call},
    {"void run()", BOTH, function_call},
    {"def apply(def)", BOTH, function_call},
    {"def apply(def, def)", BOTH, function_call},
    {"void accept(def)", BOTH, function_call},
    {"void accept(def, def)", BOTH, function_call},
    {"boolean test(def)", BOTH, function_test},
    {"boolean test(def, def)", BOTH, function_test},
    {"int compare(def, def)", BOTH, function_compare},
    {"Comparator reversed()", BOTH, comparator_reversed},
    {"Comparator thenComparing(def)", BOTH, comparator_then},
    {"def andThen(def)", BOTH, function_and_then},
    {"def compose(def)", BOTH, function_compose},
    {"def negate()", BOTH, predicate_negate},
    {"Closure curry(def...)", GROOVY, closure_curry},
    {"Closure rcurry(def...)", GROOVY, closure_rcurry},
    {"Closure ncurry(int, def...)", GROOVY, closure_ncurry},
    {"int getMaximumNumberOfParameters()", GROOVY, closure_parameter_count},
};

static const struct method_row BOOLEAN_SUPPLIER_row[] = {
    {"boolean getAsBoolean()", BOTH, function_test},
};

static const struct method_row INT_SUPPLIER_row[] = {
    {"int getAsInt()", BOTH, function_call_as},
};

static const struct method_row LONG_SUPPLIER_row[] = {
    {"long getAsLong()", BOTH, function_call_as},
};

static const struct method_row DOUBLE_SUPPLIER_row[] = {
    {"double getAsDouble()", BOTH, function_call_as},
};

static const struct method_row INT_FUNCTION_row[] = {
    {"def apply(int)", BOTH, function_call},
};

static const struct method_row LONG_FUNCTION_row[] = {
    {"def apply(long)", BOTH, function_call},
};

static const struct method_row DOUBLE_FUNCTION_row[] = {
    {"def apply(double)", BOTH, function_call},
};

static const struct method_row INT_CONSUMER_row[] = {
    {"void accept(int)", BOTH, function_call},
};

static const struct method_row LONG_CONSUMER_row[] = {
    {"void accept(long)", BOTH, function_call},
};

static const struct method_row DOUBLE_CONSUMER_row[] = {
    {"void accept(double)", BOTH, function_call},
};

static const struct method_row INT_TO_LONG_FUNCTION_row[] = {
    {"long applyAsLong(int)", BOTH, function_call_as},
};

static const struct method_row INT_TO_DOUBLE_FUNCTION_row[] = {
    {"double applyAsDouble(int)", BOTH, function_call_as},
};

static const struct method_row LONG_TO_INT_FUNCTION_row[] = {
    {"int applyAsInt(long)", BOTH, function_call_as},
};

static const struct method_row LONG_TO_DOUBLE_FUNCTION_row[] = {
    {"double applyAsDouble(long)", BOTH, function_call_as},
};

static const struct method_row DOUBLE_TO_INT_FUNCTION_row[] = {
    {"int applyAsInt(double)", BOTH, function_call_as},
};

static const struct method_row DOUBLE_TO_LONG_FUNCTION_row[] = {
    {"long applyAsLong(double)", BOTH, function_call_as},
};

static const struct method_row TO_INT_FUNCTION_row[] = {
    {"int applyAsInt(def)", BOTH, function_call_as},
};

static const struct method_row TO_LONG_FUNCTION_row[] = {
    {"long applyAsLong(def)", BOTH, function_call_as},
};

static const struct method_row TO_DOUBLE_FUNCTION_row[] = {
    {"double applyAsDouble(def)", BOTH, function_call_as},
};

static const struct method_row TO_INT_BI_FUNCTION_row[] = {
    {"int applyAsInt(def, def)", BOTH, function_call_as},
};

static const struct method_row TO_LONG_BI_FUNCTION_row[] = {
    {"long applyAsLong(def, def)", BOTH, function_call_as},
};

static const struct method_row TO_DOUBLE_BI_FUNCTION_row[] = {
    {"double applyAsDouble(def, def)", BOTH, function_call_as},
};

static const struct method_row INT_BINARY_OPERATOR_row[] = {
    {"int applyAsInt(int, int)", BOTH, function_call_as},
};

static const struct method_row LONG_BINARY_OPERATOR_row[] = {
    {"long applyAsLong(long, long)", BOTH, function_call_as},
};

static const struct method_row DOUBLE_BINARY_OPERATOR_row[] = {
    {"double applyAsDouble(double, double)", BOTH, function_call_as},
};

static const struct method_row OBJ_INT_CONSUMER_row[] = {
    {"void accept(def, int)", BOTH, function_call},
};

static const struct method_row INT_PREDICATE_row[] = {
    {"boolean test(int)", BOTH, function_test},
    {"IntPredicate and(IntPredicate)", BOTH, predicate_and},
    {"IntPredicate or(IntPredicate)", BOTH, predicate_or},
    {"IntPredicate negate()", BOTH, predicate_negate},
};

static const struct method_row LONG_PREDICATE_row[] = {
    {"boolean test(long)", BOTH, function_test},
    {"LongPredicate and(LongPredicate)", BOTH, predicate_and},
    {"LongPredicate or(LongPredicate)", BOTH, predicate_or},
    {"LongPredicate negate()", BOTH, predicate_negate},
};

static const struct method_row DOUBLE_PREDICATE_row[] = {
    {"boolean test(double)", BOTH, function_test},
    {"DoublePredicate and(DoublePredicate)", BOTH, predicate_and},
    {"DoublePredicate or(DoublePredicate)", BOTH, predicate_or},
    {"DoublePredicate negate()", BOTH, predicate_negate},
};

static const struct method_row INT_UNARY_OPERATOR_row[] = {
    {"int applyAsInt(int)", BOTH, function_call_as},
    {"IntUnaryOperator andThen(IntUnaryOperator)", BOTH, function_and_then},
    {"IntUnaryOperator compose(IntUnaryOperator)", BOTH, function_compose},
    {"static IntUnaryOperator identity()", BOTH, function_identity},
};

static const struct method_row LONG_UNARY_OPERATOR_row[] = {
    {"long applyAsLong(long)", BOTH, function_call_as},
    {"LongUnaryOperator andThen(LongUnaryOperator)", BOTH, function_and_then},
    {"LongUnaryOperator compose(LongUnaryOperator)", BOTH, function_compose},
    {"static LongUnaryOperator identity()", BOTH, function_identity},
};

static const struct method_row DOUBLE_UNARY_OPERATOR_row[] = {
    {"double applyAsDouble(double)", BOTH, function_call_as},
    {"DoubleUnaryOperator andThen(DoubleUnaryOperator)", BOTH, function_and_then},
    {"DoubleUnaryOperator compose(DoubleUnaryOperator)", BOTH, function_compose},
    {"static DoubleUnaryOperator identity()", BOTH, function_identity},
};

const struct method_table methods_function[] = {
    METHOD_ROWS(COMPARATOR, comparator_methods),
    METHOD_ROWS(FUNCTION, function_methods),
    METHOD_ROWS(BI_FUNCTION, bi_function_methods),
    METHOD_ROWS(PREDICATE, predicate_methods),
    METHOD_ROWS(BI_PREDICATE, bi_predicate_methods),
    METHOD_ROWS(CONSUMER, consumer_methods),
    METHOD_ROWS(BI_CONSUMER, bi_consumer_methods),
    METHOD_ROWS(SUPPLIER, supplier_methods),
    METHOD_ROWS(RUNNABLE, runnable_methods),
    METHOD_ROWS(CLOSURE, closure_methods),
    METHOD_ROWS(BOOLEAN_SUPPLIER, BOOLEAN_SUPPLIER_row),
    METHOD_ROWS(INT_SUPPLIER, INT_SUPPLIER_row),
    METHOD_ROWS(LONG_SUPPLIER, LONG_SUPPLIER_row),
    METHOD_ROWS(DOUBLE_SUPPLIER, DOUBLE_SUPPLIER_row),
    METHOD_ROWS(INT_FUNCTION, INT_FUNCTION_row),
    METHOD_ROWS(LONG_FUNCTION, LONG_FUNCTION_row),
    METHOD_ROWS(DOUBLE_FUNCTION, DOUBLE_FUNCTION_row),
    METHOD_ROWS(INT_CONSUMER, INT_CONSUMER_row),
    METHOD_ROWS(LONG_CONSUMER, LONG_CONSUMER_row),
    METHOD_ROWS(DOUBLE_CONSUMER, DOUBLE_CONSUMER_row),
    METHOD_ROWS(INT_TO_LONG_FUNCTION, INT_TO_LONG_FUNCTION_row),
    METHOD_ROWS(INT_TO_DOUBLE_FUNCTION, INT_TO_DOUBLE_FUNCTION_row),
    METHOD_ROWS(LONG_TO_INT_FUNCTION, LONG_TO_INT_FUNCTION_row),
    METHOD_ROWS(LONG_TO_DOUBLE_FUNCTION, LONG_TO_DOUBLE_FUNCTION_row),
    METHOD_ROWS(DOUBLE_TO_INT_FUNCTION, DOUBLE_TO_INT_FUNCTION_row),
    METHOD_ROWS(DOUBLE_TO_LONG_FUNCTION, DOUBLE_TO_LONG_FUNCTION_row),
    METHOD_ROWS(TO_INT_FUNCTION, TO_INT_FUNCTION_row),
    METHOD_ROWS(TO_LONG_FUNCTION, TO_LONG_FUNCTION_row),
    METHOD_ROWS(TO_DOUBLE_FUNCTION, TO_DOUBLE_FUNCTION_row),
    METHOD_ROWS(TO_INT_BI_FUNCTION, TO_INT_BI_FUNCTION_row),
    METHOD_ROWS(TO_LONG_BI_FUNCTION, TO_LONG_BI_FUNCTION_row),
    METHOD_ROWS(TO_DOUBLE_BI_FUNCTION, TO_DOUBLE_BI_FUNCTION_row),
    METHOD_ROWS(INT_BINARY_OPERATOR, INT_BINARY_OPERATOR_row),
    METHOD_ROWS(LONG_BINARY_OPERATOR, LONG_BINARY_OPERATOR_row),
    METHOD_ROWS(DOUBLE_BINARY_OPERATOR, DOUBLE_BINARY_OPERATOR_row),
    METHOD_ROWS(OBJ_INT_CONSUMER, OBJ_INT_CONSUMER_row),
    METHOD_ROWS(INT_PREDICATE, INT_PREDICATE_row),
    METHOD_ROWS(LONG_PREDICATE, LONG_PREDICATE_row),
    METHOD_ROWS(DOUBLE_PREDICATE, DOUBLE_PREDICATE_row),
    METHOD_ROWS(INT_UNARY_OPERATOR, INT_UNARY_OPERATOR_row),
    METHOD_ROWS(LONG_UNARY_OPERATOR, LONG_UNARY_OPERATOR_row),
    METHOD_ROWS(DOUBLE_UNARY_OPERATOR, DOUBLE_UNARY_OPERATOR_row),
    {0},
};
