/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of functional interfaces: their one method, and Comparator's and Function's combinations. */
#include "script/library/method_args.h"

#include "script/run/convert.h"
#include "script/run/invoke.h"

/* apply, test, accept, compare, get …: all call the function. */
static bool function_call(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return run_invoke(run, a[0], a + 1, n, ret);
}

static bool function_test(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    bool holds;
    return invoke_test(run, a[0], a + 1, n, &holds) && give_boolean(ret, holds);
}

static bool function_compare(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return run_invoke(run, a[0], a + 1, 2, ret) && convert_site(run, *ret, CLASS_INT, ret);
}

#define CALL_AS(name, kind)                                                                        \
    static bool function_##name(struct run *run, struct value *a, unsigned n, struct value *ret)   \
    {                                                                                              \
        return run_invoke(run, a[0], a + 1, n, ret) && convert_site(run, *ret, CLASS_##kind, ret); \
    }

CALL_AS(int, INT)
CALL_AS(long, LONG)
CALL_AS(double, DOUBLE)

/* Combinations: held[0] and held[1] are the functions they are made of */

static bool run_then(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    struct value middle;
    return run_invoke(run, closure->held[0], a, n, &middle) && run_invoke(run, closure->held[1], &middle, 1, ret);
}

struct value function_then(struct run *run, struct value first, struct value second)
{
    return closure_native_new(run, run_then, function_arity(first), first, second);
}

static bool function_and_then(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = function_then(run, a[0], a[1]);
    return true;
}

static bool function_compose(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_then, 1, a[1], a[0]);
    return true;
}

static bool run_identity(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)closure;
    *ret = n > 0 ? a[0] : VALUE_NONE;
    return true;
}

static bool function_identity(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    *ret = closure_native_new(run, run_identity, 1, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool run_negated(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    bool holds;
    return invoke_test(run, closure->held[0], a, n, &holds) && give_boolean(ret, !holds);
}

static bool predicate_negate(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_negated, function_arity(a[0]), a[0], VALUE_NONE);
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

static bool predicate_and(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_both, function_arity(a[0]), a[0], a[1]);
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

static bool predicate_or(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_either, function_arity(a[0]), a[0], a[1]);
    return true;
}

static bool run_is_equal(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool equal;
    return value_equals(run, a[0], closure->held[0], &equal) && give_boolean(ret, equal);
}

static bool predicate_is_equal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_is_equal, 1, a[1], VALUE_NONE);
    return true;
}

/* Groovy's curry: held[0] with the arguments in the list held[1] put at the place held[2], from the end if negative. */

#define CURRIED_MAX 16

static bool run_curried(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    const struct seq *fixed = seq_of(closure->held[1]);
    struct value all[2 * CURRIED_MAX];
    int64_t place = closure->held[2].i < 0 ? n : closure->held[2].i;
    if (n > CURRIED_MAX || place > n)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Can't call a curried closure with %u arguments", n);
    unsigned count = 0;
    for (unsigned i = 0; i <= n; i++) {
        for (size_t k = 0; i == place && k < fixed->count; k++)
            all[count++] = seq_item(fixed, k);
        if (i < n)
            all[count++] = a[i];
    }
    return run_invoke(run, closure->held[0], all, count, ret);
}

static bool curry_at(struct run *run, struct value *a, unsigned first, unsigned n, int64_t place, struct value *ret)
{
    struct seq *fixed = seq_new(run, CLASS_ARRAY_LIST, n);
    unsigned arity = function_arity(a[0]), given = n + 1 - first;
    if (given > CURRIED_MAX || given > arity)
        return run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION,
                         "Can't curry %u arguments for a closure with %u parameters.", given, arity);
    for (unsigned i = first; i <= n; i++)
        if (!seq_add(run, fixed, a[i]))
            return false;
    *ret = closure_native_new(run, run_curried, arity - given, a[0], value_of(fixed));
    ((struct closure *)ret->object)->held[2] = value_int(place);
    return true;
}

static bool closure_curry(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return curry_at(run, a, 1, n, 0, ret);
}

static bool closure_rcurry(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return curry_at(run, a, 1, n, -1, ret);
}

static bool closure_ncurry(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return curry_at(run, a, 2, n, a[1].i, ret);
}

static bool closure_parameter_count(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, function_arity(a[0]));
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

/* By a key: held[0] yields it, held[1] orders keys or is null. */
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

/* held[1] tells whether null goes first. */
static bool run_nulls(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int64_t side = closure->held[1].i != 0 ? 1 : -1;
    bool x = a[0].kind == VALUE_NULL, y = a[1].kind == VALUE_NULL;
    if (x || y)
        return give_int(ret, x && y ? 0 : x ? -side : side);
    return order_by(run, closure->held[0], a[0], a[1], ret);
}

static bool comparator_natural(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    *ret = closure_native_new(run, run_natural, 2, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool comparator_reverse_order(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)a, (void)n;
    *ret = closure_native_new(run, run_reversed, 2, VALUE_NONE, VALUE_NONE);
    return true;
}

static bool comparator_reversed(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_reversed, 2, a[0], VALUE_NONE);
    return true;
}

static bool comparator_comparing(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    *ret = closure_native_new(run, run_by_key, 2, a[1], n == 2 ? a[2] : VALUE_NONE);
    return true;
}

static bool comparator_then(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    struct value second = a[1];
    bool by_key = n == 2 || function_arity(a[1]) == 1;
    if (by_key)
        second = closure_native_new(run, run_by_key, 2, a[1], n == 2 ? a[2] : VALUE_NONE);
    *ret = closure_native_new(run, run_then_by, 2, a[0], second);
    return true;
}

static bool comparator_then_key(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value second = closure_native_new(run, run_by_key, 2, a[1], VALUE_NONE);
    *ret = closure_native_new(run, run_then_by, 2, a[0], second);
    return true;
}

static bool comparator_nulls_first(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_nulls, 2, a[1], value_int(1));
    return true;
}

static bool comparator_nulls_last(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    *ret = closure_native_new(run, run_nulls, 2, a[1], value_int(0));
    return true;
}

static const struct method comparator_methods[] = {
    M2("compare", METHOD_BOTH, INT, DEF, DEF, function_compare),
    M1("comparing", STATIC, COMPARATOR, FUNCTION, comparator_comparing),
    M2("comparing", STATIC, COMPARATOR, FUNCTION, COMPARATOR, comparator_comparing),
    M1("comparingInt", STATIC, COMPARATOR, TO_INT_FUNCTION, comparator_comparing),
    M1("comparingLong", STATIC, COMPARATOR, TO_LONG_FUNCTION, comparator_comparing),
    M1("comparingDouble", STATIC, COMPARATOR, TO_DOUBLE_FUNCTION, comparator_comparing),
    M0("naturalOrder", STATIC, COMPARATOR, comparator_natural),
    M0("reverseOrder", STATIC, COMPARATOR, comparator_reverse_order),
    M1("nullsFirst", STATIC, COMPARATOR, COMPARATOR, comparator_nulls_first),
    M1("nullsLast", STATIC, COMPARATOR, COMPARATOR, comparator_nulls_last),
    M0("reversed", METHOD_BOTH, COMPARATOR, comparator_reversed),
    M1("thenComparing", METHOD_BOTH, COMPARATOR, COMPARATOR, comparator_then),
    M2("thenComparing", METHOD_BOTH, COMPARATOR, FUNCTION, COMPARATOR, comparator_then),
    M1("thenComparingInt", METHOD_BOTH, COMPARATOR, TO_INT_FUNCTION, comparator_then_key),
    M1("thenComparingLong", METHOD_BOTH, COMPARATOR, TO_LONG_FUNCTION, comparator_then_key),
    M1("thenComparingDouble", METHOD_BOTH, COMPARATOR, TO_DOUBLE_FUNCTION, comparator_then_key),
};

static const struct method function_methods[] = {
    M1("apply", METHOD_BOTH, DEF, DEF, function_call),
    M1("andThen", METHOD_BOTH, FUNCTION, FUNCTION, function_and_then),
    M1("compose", METHOD_BOTH, FUNCTION, FUNCTION, function_compose),
    M0("identity", STATIC, FUNCTION, function_identity),
};

static const struct method bi_function_methods[] = {
    M2("apply", METHOD_BOTH, DEF, DEF, DEF, function_call),
    M1("andThen", METHOD_BOTH, BI_FUNCTION, FUNCTION, function_and_then),
};

static const struct method predicate_methods[] = {
    M1("test", METHOD_BOTH, BOOLEAN, DEF, function_test),
    M1("and", METHOD_BOTH, PREDICATE, PREDICATE, predicate_and),
    M1("or", METHOD_BOTH, PREDICATE, PREDICATE, predicate_or),
    M0("negate", METHOD_BOTH, PREDICATE, predicate_negate),
    M1("isEqual", STATIC, PREDICATE, DEF, predicate_is_equal),
};

static const struct method bi_predicate_methods[] = {
    M2("test", METHOD_BOTH, BOOLEAN, DEF, DEF, function_test),
    M1("and", METHOD_BOTH, BI_PREDICATE, BI_PREDICATE, predicate_and),
    M1("or", METHOD_BOTH, BI_PREDICATE, BI_PREDICATE, predicate_or),
    M0("negate", METHOD_BOTH, BI_PREDICATE, predicate_negate),
};

/* Those of primitives: what they are called by, take and give. */
#define ONE(symbol, name, result, parameter, call) \
    static const struct method symbol##_row[] = {M1(name, METHOD_BOTH, result, parameter, call)};
#define TWO(symbol, name, result, one, two, call) \
    static const struct method symbol##_row[] = {M2(name, METHOD_BOTH, result, one, two, call)};
#define NONE(symbol, name, result, call) \
    static const struct method symbol##_row[] = {M0(name, METHOD_BOTH, result, call)};
#define TEST(symbol, parameter)                                     \
    static const struct method symbol##_row[] = {                   \
        M1("test", METHOD_BOTH, BOOLEAN, parameter, function_test), \
        M1("and", METHOD_BOTH, symbol, symbol, predicate_and),      \
        M1("or", METHOD_BOTH, symbol, symbol, predicate_or),        \
        M0("negate", METHOD_BOTH, symbol, predicate_negate),        \
    };
#define UNARY(symbol, name, kind, call)                                \
    static const struct method symbol##_row[] = {                      \
        M1(name, METHOD_BOTH, kind, kind, call),                       \
        M1("andThen", METHOD_BOTH, symbol, symbol, function_and_then), \
        M1("compose", METHOD_BOTH, symbol, symbol, function_compose),  \
        M0("identity", STATIC, symbol, function_identity),             \
    };
#define PRIMITIVE_FUNCTIONS(ONE, TWO, NONE, TEST, UNARY)                                  \
    NONE(BOOLEAN_SUPPLIER, "getAsBoolean", BOOLEAN, function_test)                        \
    NONE(INT_SUPPLIER, "getAsInt", INT, function_int)                                     \
    NONE(LONG_SUPPLIER, "getAsLong", LONG, function_long)                                 \
    NONE(DOUBLE_SUPPLIER, "getAsDouble", DOUBLE, function_double)                         \
    ONE(INT_FUNCTION, "apply", DEF, INT, function_call)                                   \
    ONE(LONG_FUNCTION, "apply", DEF, LONG, function_call)                                 \
    ONE(DOUBLE_FUNCTION, "apply", DEF, DOUBLE, function_call)                             \
    ONE(INT_CONSUMER, "accept", VOID, INT, function_call)                                 \
    ONE(LONG_CONSUMER, "accept", VOID, LONG, function_call)                               \
    ONE(DOUBLE_CONSUMER, "accept", VOID, DOUBLE, function_call)                           \
    ONE(INT_TO_LONG_FUNCTION, "applyAsLong", LONG, INT, function_long)                    \
    ONE(INT_TO_DOUBLE_FUNCTION, "applyAsDouble", DOUBLE, INT, function_double)            \
    ONE(LONG_TO_INT_FUNCTION, "applyAsInt", INT, LONG, function_int)                      \
    ONE(LONG_TO_DOUBLE_FUNCTION, "applyAsDouble", DOUBLE, LONG, function_double)          \
    ONE(DOUBLE_TO_INT_FUNCTION, "applyAsInt", INT, DOUBLE, function_int)                  \
    ONE(DOUBLE_TO_LONG_FUNCTION, "applyAsLong", LONG, DOUBLE, function_long)              \
    ONE(TO_INT_FUNCTION, "applyAsInt", INT, DEF, function_int)                            \
    ONE(TO_LONG_FUNCTION, "applyAsLong", LONG, DEF, function_long)                        \
    ONE(TO_DOUBLE_FUNCTION, "applyAsDouble", DOUBLE, DEF, function_double)                \
    TWO(TO_INT_BI_FUNCTION, "applyAsInt", INT, DEF, DEF, function_int)                    \
    TWO(TO_LONG_BI_FUNCTION, "applyAsLong", LONG, DEF, DEF, function_long)                \
    TWO(TO_DOUBLE_BI_FUNCTION, "applyAsDouble", DOUBLE, DEF, DEF, function_double)        \
    TWO(INT_BINARY_OPERATOR, "applyAsInt", INT, INT, INT, function_int)                   \
    TWO(LONG_BINARY_OPERATOR, "applyAsLong", LONG, LONG, LONG, function_long)             \
    TWO(DOUBLE_BINARY_OPERATOR, "applyAsDouble", DOUBLE, DOUBLE, DOUBLE, function_double) \
    TWO(OBJ_INT_CONSUMER, "accept", VOID, DEF, INT, function_call)                        \
    TEST(INT_PREDICATE, INT)                                                              \
    TEST(LONG_PREDICATE, LONG)                                                            \
    TEST(DOUBLE_PREDICATE, DOUBLE)                                                        \
    UNARY(INT_UNARY_OPERATOR, "applyAsInt", INT, function_int)                            \
    UNARY(LONG_UNARY_OPERATOR, "applyAsLong", LONG, function_long)                        \
    UNARY(DOUBLE_UNARY_OPERATOR, "applyAsDouble", DOUBLE, function_double)

PRIMITIVE_FUNCTIONS(ONE, TWO, NONE, TEST, UNARY)

#define TABLE(symbol, ...) METHOD_TABLE(symbol, symbol##_row),

static const struct method consumer_methods[] = {M1("accept", METHOD_BOTH, VOID, DEF, function_call)};
static const struct method bi_consumer_methods[] = {M2("accept", METHOD_BOTH, VOID, DEF, DEF, function_call)};
static const struct method supplier_methods[] = {M0("get", METHOD_BOTH, DEF, function_call)};
static const struct method runnable_methods[] = {M0("run", METHOD_BOTH, VOID, function_call)};

/* What a `def` that holds a function answers to, whichever interface it stands for. */
static const struct method closure_methods[] = {
    M0("get", METHOD_BOTH, DEF, function_call),
    M0("run", METHOD_BOTH, VOID, function_call),
    M1("apply", METHOD_BOTH, DEF, DEF, function_call),
    M2("apply", METHOD_BOTH, DEF, DEF, DEF, function_call),
    M1("accept", METHOD_BOTH, VOID, DEF, function_call),
    M2("accept", METHOD_BOTH, VOID, DEF, DEF, function_call),
    M1("test", METHOD_BOTH, BOOLEAN, DEF, function_test),
    M2("test", METHOD_BOTH, BOOLEAN, DEF, DEF, function_test),
    M2("compare", METHOD_BOTH, INT, DEF, DEF, function_compare),
    M0("reversed", METHOD_BOTH, COMPARATOR, comparator_reversed),
    M1("thenComparing", METHOD_BOTH, COMPARATOR, DEF, comparator_then),
    M1("andThen", METHOD_BOTH, DEF, DEF, function_and_then),
    M1("compose", METHOD_BOTH, DEF, DEF, function_compose),
    M0("negate", METHOD_BOTH, DEF, predicate_negate),
    M1("curry", METHOD_GROOVY | METHOD_REST, CLOSURE, DEF, closure_curry),
    M1("rcurry", METHOD_GROOVY | METHOD_REST, CLOSURE, DEF, closure_rcurry),
    M2("ncurry", METHOD_GROOVY | METHOD_REST, CLOSURE, INT, DEF, closure_ncurry),
    M0("getMaximumNumberOfParameters", METHOD_GROOVY, INT, closure_parameter_count),
};

const struct method_table methods_function[] = {
    METHOD_TABLE(COMPARATOR, comparator_methods),
    METHOD_TABLE(FUNCTION, function_methods),
    METHOD_TABLE(BI_FUNCTION, bi_function_methods),
    METHOD_TABLE(PREDICATE, predicate_methods),
    METHOD_TABLE(BI_PREDICATE, bi_predicate_methods),
    METHOD_TABLE(CONSUMER, consumer_methods),
    METHOD_TABLE(BI_CONSUMER, bi_consumer_methods),
    METHOD_TABLE(SUPPLIER, supplier_methods),
    METHOD_TABLE(RUNNABLE, runnable_methods),
    METHOD_TABLE(CLOSURE, closure_methods),
    PRIMITIVE_FUNCTIONS(TABLE, TABLE, TABLE, TABLE, TABLE){0, 0, NULL},
};
