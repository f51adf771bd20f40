/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every method of the script library with n and with 2n: all work must be charged.
 *
 * Generated from the library's own tables. The library is compiled once more with the compiler's coverage hook, which
 * counts each basic block that runs: the real work. The test compares, for receivers and arguments of n and 2n units,
 * elements or digits, of several fillings (all alike, all different, alike but for the end):
 *
 *  1. additional work is charged: blocks grow by at most BLOCKS_PER_STEP per step of the run;
 *  2. steps and bytes grow by at most GROWTH; exceptions are in `more`, each with its reason.
 *
 * No time is measured.
 */
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "script/value/big.h"
#include "script/value/builder.h"
#include "script/run/script_error.h"
#include "script/value/function.h"
#include "script/run/interp.h"
#include "script/value/iter.h"
#include "script/library/method.h"
#include "script/value/regex.h"

static uint64_t blocks;
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    blocks++;
}

#define SIZE 512
#define LARGE 8192
#define BLOCKS_PER_STEP 450
#define BLOCKS_SLACK 6000
#define GROWTH 2.5
#define STEPS_SLACK 200
#define BYTES_SLACK ((size_t)8192)

static const struct {
    const char *class, *name, *why;
} more[] = {
    {"BigInteger", "*", "long multiplication and division are of all digits with all"},
    {"BigDecimal", "*", "the same"},
    {"*", "toBigInteger", "from a text: digits times what is there already"},
    {"*", "toBigDecimal", "the same"},
    {"*", "multiply", "n times a text of n units"},
    {"*", "repeat", "the same"},
    {"*", "removeAll", "Java's: each element is looked for in the other list"},
    {"*", "retainAll", "the same"},
    {"*", "containsAll", "the same"},
    {"*", "disjoint", "the same"},
    {"*", "intersect", "the same"},
    {"*", "minus", "the same"},
    {"*", "plus", "the same"},
    {"*", "nCopies", "the same"},
    {"*", "combinations", "all with all"},
    {"*", "permutations", "all orders"},
    {"*", "subsequences", "all subsets"},
    {"*", "eachPermutation", "all orders"},
    {"*", "join", "n texts of n units"},
    {"*", "format", "the same"},
    {"*", "replaceAll", "a pattern is tried at each place, and goes back there as far as it likes"},
    {"*", "replaceFirst", "the same"},
    {"*", "split", "the same"},
    {"*", "find", "the same"},
    {"*", "findAll", "the same"},
    {"*", "matches", "the same"},
    {"*", "grep", "the same"},
    {"*", "splitAsStream", "the same"},
    {"*", "removeIf", "each removal moves what is behind it"},
    {"*", "addAll", "each insertion moves what is behind it"},
    {"TreeMap", "new", "the same"},
    {"TreeSet", "new", "the same"},
    {"*", "sum", "of lists and texts: each sum is a new one"},
    {"*", "eachMatch", "a pattern, as above"},
    {"*", "sort", "comparing texts of n units n log n times"},
    {"*", "toUnique", "as unique"},
    {"*", "unique", "Groovy's: each element is looked for among those before it"},
};

static bool is_more(const char *class, const char *name)
{
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if ((strcmp(more[i].class, "*") == 0 || strcmp(more[i].class, class) == 0) &&
            (strcmp(more[i].name, "*") == 0 || strcmp(more[i].name, name) == 0))
            return true;
    return false;
}

/* Values of a size. */

enum filling { ALIKE, DIFFERENT, LAST_DIFFERS, DIGITS, FILLINGS };

static struct value make_text(struct run *run, size_t size, enum filling filling)
{
    struct text_buf out;
    text_buf_init(&out, run);
    for (size_t i = 0; i < size; i++)
        text_buf_unit(&out, filling == DIGITS                          ? '7'
                            : filling == DIFFERENT                     ? (uint16_t)(0x4e00 + i % 20000)
                            : filling == LAST_DIFFERS && i + 1 == size ? 'b'
                                                                       : 'a');
    return value_of(text_buf_done(&out));
}

static struct value make_item(struct run *run, size_t i, size_t size, enum filling filling)
{
    if (filling == DIGITS)
        return value_of(text_new(run, run_printf(run, "t%zu", i)));
    return value_int(filling == DIFFERENT || (filling == LAST_DIFFERS && i + 1 == size) ? (int64_t)i : 1);
}

static struct value make_list(struct run *run, size_t size, enum filling filling, enum class_id id)
{
    struct seq *seq = seq_new(run, id, 0);
    for (size_t i = 0; i < size; i++)
        assert_true(seq_add(run, seq, make_item(run, i, size, filling)));
    return value_of(seq);
}

static struct value make_dict(struct run *run, size_t size, enum filling filling, enum class_id id)
{
    struct dict *dict = dict_new(run, id);
    bool set = class_extends(id, CLASS_SET), added;
    for (size_t i = 0; i < size; i++) {
        struct value key = filling == DIGITS ? make_item(run, i, size, DIGITS) : value_int((int64_t)i);
        assert_true(set ? dict_add(run, dict, key, &added) : dict_put(run, dict, key, value_int(1), NULL));
    }
    return value_of(dict);
}

static bool give_first(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)closure;
    *ret = n > 0 ? a[0] : VALUE_NONE;
    return run_step(run, 1);
}

static bool give_true(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    (void)closure, (void)a, (void)n;
    *ret = value_boolean(true);
    return run_step(run, 1);
}

static bool give_order(struct run *run, struct closure *closure, struct value *a, unsigned n, struct value *ret)
{
    int order = 0;
    (void)closure;
    if (n == 2 && !value_order(run, a[0], a[1], &order))
        return false;
    *ret = value_int(order);
    return run_step(run, 1);
}

static struct value make_big(struct run *run, size_t size)
{
    char *digits = arena_alloc(run->arena, size);
    memset(digits, '7', size);
    return value_of(big_from_digits(run, slice_make(digits, size)));
}

static struct value make_array(struct run *run, size_t size, enum filling filling, type_id element)
{
    struct array *array = array_new(run, element, (int64_t)size);
    for (size_t i = 0; i < size; i++)
        if (!class_extends(type_class(element), CLASS_NUMBER) && element != CLASS_INT && element != CLASS_LONG)
            array->items[i] = element == CLASS_STRING                           ? make_text(run, 3, filling)
                              : element == CLASS_DEF || element == CLASS_OBJECT ? make_item(run, i, size, filling)
                                                                                : array->items[i];
    return value_of(array);
}

/* Returns: false where there is no value of that type to try. */
static bool make(struct run *run, type_id type, size_t size, enum filling filling, struct value *ret)
{
    if (type_dims(type) > 0) {
        *ret = make_array(run, size, filling, type_element(type));
        return true;
    }
    enum class_id id = type_class(type);
    switch (id) {
    case CLASS_BOOLEAN: *ret = value_boolean(true); return true;
    case CLASS_INT: *ret = value_int((int64_t)size / 2); return true;
    case CLASS_LONG: *ret = value_long((int64_t)size / 2); return true;
    case CLASS_CHAR: *ret = value_char('a'); return true;
    case CLASS_NUMBER: *ret = value_int(7); return true;
    case CLASS_DOUBLE: *ret = value_double(7.5); return true;
    case CLASS_FLOAT: *ret = value_float(7.5); return true;
    case CLASS_STRING:
    case CLASS_CHAR_SEQUENCE:
    case CLASS_COMPARABLE: *ret = make_text(run, size, filling); return true;
    case CLASS_DEF:
    case CLASS_OBJECT: *ret = make_list(run, size, filling, CLASS_ARRAY_LIST); return true;
    case CLASS_BIG_INTEGER: *ret = make_big(run, size / 4 < 9000 ? size / 4 : 9000); return true;
    case CLASS_BIG_DECIMAL:
        *ret = value_of(decimal_new(run, (struct big *)make_big(run, size / 4).object, 5));
        return true;
    case CLASS_LIST:
    case CLASS_COLLECTION:
    case CLASS_ITERABLE: *ret = make_list(run, size, filling, CLASS_ARRAY_LIST); return true;
    case CLASS_MAP: *ret = make_dict(run, size, filling, CLASS_HASH_MAP); return true;
    case CLASS_SET: *ret = make_dict(run, size, filling, CLASS_HASH_SET); return true;
    case CLASS_SORTED_MAP: *ret = make_dict(run, size, filling, CLASS_TREE_MAP); return true;
    case CLASS_SORTED_SET: *ret = make_dict(run, size, filling, CLASS_TREE_SET); return true;
    case CLASS_COMPARATOR: *ret = closure_native_new(run, give_order, 2, VALUE_NONE, VALUE_NONE); return true;
    case CLASS_PREDICATE:
    case CLASS_BI_PREDICATE: *ret = closure_native_new(run, give_true, 1, VALUE_NONE, VALUE_NONE); return true;
    case CLASS_FUNCTION:
    case CLASS_BI_FUNCTION:
    case CLASS_CLOSURE:
    case CLASS_CONSUMER:
    case CLASS_BI_CONSUMER:
    case CLASS_UNARY_OPERATOR:
    case CLASS_BINARY_OPERATOR:
    case CLASS_SUPPLIER: *ret = closure_native_new(run, give_first, 1, VALUE_NONE, VALUE_NONE); return true;
    case CLASS_PATTERN: *ret = value_of(regex_new(run, text_new(run, SLICE_LIT("a*b")), 0)); return true;
    case CLASS_MATCHER: {
        struct value text = make_text(run, size, filling);
        *ret = value_of(
            regex_matcher_new(run, regex_new(run, text_new(run, SLICE_LIT("(a)")), 0), (struct text *)text.object));
        return true;
    }
    case CLASS_STRING_BUILDER: {
        struct builder *builder = run_object(run, sizeof *builder, CLASS_STRING_BUILDER);
        text_buf_init(&builder->buf, run);
        text_buf_text(&builder->buf, (struct text *)make_text(run, size, filling).object);
        *ret = value_of(builder);
        return true;
    }
    default: break;
    }
    if (class_extends(id, CLASS_MAP) && class_infos[id].kind == CLASS_KIND_C && id != CLASS_DOC)
        *ret = make_dict(run, size, filling, id);
    else if (class_extends(id, CLASS_SET) && class_infos[id].kind == CLASS_KIND_C)
        *ret = make_dict(run, size, filling, id);
    else if (id == CLASS_ARRAY_LIST || id == CLASS_LINKED_LIST || id == CLASS_STACK || id == CLASS_STREAM ||
             id == CLASS_INT_STREAM || id == CLASS_LONG_STREAM || id == CLASS_DOUBLE_STREAM || id == CLASS_ARRAY_DEQUE)
        *ret = make_list(run, size, filling == DIGITS ? DIFFERENT : filling, id);
    else
        return false;
    return true;
}

/* What a parameter that takes anything may be given. */
enum kind {
    KIND_NULL,
    KIND_INT,
    KIND_DOUBLE,
    KIND_BOOLEAN,
    KIND_CHAR,
    KIND_TEXT,
    KIND_LIST,
    KIND_MAP,
    KIND_SET,
    KIND_ARRAY,
    KIND_INTS,
    KIND_BIG,
    KIND_CLOSURE,
    KIND_BUILDER,
    KIND_PATTERN,
    KIND_CLASS,
    KINDS
};

static struct value make_kind(struct run *run, enum kind kind)
{
    struct value made = VALUE_NONE;
    struct class_object *class = run_object(run, sizeof *class, CLASS_CLASS);
    class->type = CLASS_STRING;
    switch (kind) {
    case KIND_INT: return value_int(3);
    case KIND_DOUBLE: return value_double(-1.5);
    case KIND_BOOLEAN: return value_boolean(true);
    case KIND_CHAR: return value_char('x');
    case KIND_TEXT: return make_text(run, 5, DIFFERENT);
    case KIND_LIST: return make_list(run, 4, DIGITS, CLASS_ARRAY_LIST);
    case KIND_MAP: return make_dict(run, 4, DIGITS, CLASS_HASH_MAP);
    case KIND_SET: return make_dict(run, 4, DIFFERENT, CLASS_HASH_SET);
    case KIND_ARRAY: return make_array(run, 4, DIGITS, CLASS_STRING);
    case KIND_INTS: return make_array(run, 4, DIGITS, CLASS_INT);
    case KIND_BIG: return make_big(run, 30);
    case KIND_CLOSURE: return closure_native_new(run, give_first, 1, VALUE_NONE, VALUE_NONE);
    case KIND_BUILDER: assert_true(make(run, CLASS_STRING_BUILDER, 4, ALIKE, &made)); return made;
    case KIND_PATTERN: assert_true(make(run, CLASS_PATTERN, 4, ALIKE, &made)); return made;
    case KIND_CLASS: return value_of(class);
    default: return VALUE_NONE;
    }
}

struct cost {
    uint64_t blocks, steps;
    size_t bytes;
};

static struct script script;

static void begin(struct run *run, struct arena *arena, bool groovy, const struct script_limits *limits)
{
    script.lang = groovy ? SCRIPT_GROOVY : SCRIPT_PAINLESS;
    *run = (struct run){.script = &script,
                        .arena = arena,
                        .limits = limits,
                        .steps_left = limits->steps_max,
                        .memory_left = limits->memory_bytes_max,
                        .stack_floor = stack_floor(),
                        .groovy = groovy};
    run->caches = arena_zalloc(arena, sizeof *run->caches);
    run->binding = dict_new(run, CLASS_LINKED_HASH_MAP);
    run->params = dict_new(run, CLASS_LINKED_HASH_MAP);
}

/* Returns: false where a type of the row has no value here. */
static bool cost_of(uint16_t class, const struct method *method, size_t size, enum filling filling, struct cost *ret)
{
    static const struct script_limits limits = {(uint64_t)1 << 40, (size_t)1 << 30, 256};
    struct arena arena = ARENA_INIT;
    struct run run;
    struct value arguments[METHOD_PARAMETERS_MAX + 1] = {VALUE_NONE}, result;
    bool made = true;
    begin(&run, &arena, (method->flags & METHOD_PAINLESS) == 0, &limits);
    bool instance = (method->flags & (METHOD_STATIC | METHOD_NEW)) == 0;
    struct class_object *of = run_object(&run, sizeof *of, CLASS_CLASS);
    of->type = class;
    arguments[0] = value_of(of);
    if (instance)
        made = class == CLASS_COUNT ? make(&run, type_array(CLASS_DEF, 1), size, filling, &arguments[0])
                                    : make(&run, class, size, filling, &arguments[0]);
    /* The last argument differs in its fill from the receiver where it is a part to be found late. */
    for (unsigned i = 0; i < method->count && made; i++)
        made = make(&run, method->parameters[i], i == 0 && instance ? size / 2 : size, filling, &arguments[i + 1]);
    if (made) {
        uint64_t steps = run.steps_left;
        size_t bytes = run.memory_left;
        blocks = 0;
        (void)method_call(method, &run, arguments, method->count, &result);
        *ret = (struct cost){blocks, steps - run.steps_left, bytes - run.memory_left};
    }
    arena_deinit(&arena);
    return made;
}

static unsigned tried, failed;

static void complain(const char *class, const struct method *method, enum filling filling, const char *what,
                     const struct cost *one, const struct cost *two)
{
    failed++;
    print_error("%s.%s/%u, filling %d: %s: blocks %llu, %llu; steps %llu, %llu; bytes %zu, %zu\n", class, method->name,
                method->count, (int)filling, what, (unsigned long long)one->blocks, (unsigned long long)two->blocks,
                (unsigned long long)one->steps, (unsigned long long)two->steps, one->bytes, two->bytes);
}

/* Large enough that a loop of one block per unit is detected if it is charged only in part or not at all. */
static void try_large(uint16_t id, const struct method *method, const char *class)
{
    struct cost one, two;
    if (cost_of(id, method, LARGE, LAST_DIFFERS, &one) && cost_of(id, method, 2 * LARGE, LAST_DIFFERS, &two) &&
        two.blocks > one.blocks + BLOCKS_SLACK &&
        two.blocks - one.blocks > BLOCKS_PER_STEP * (two.steps - one.steps + 1))
        complain(class, method, LAST_DIFFERS, "not charged, of much", &one, &two);
}

static void try_method(uint16_t id, const struct method *method)
{
    const char *class = id == CLASS_COUNT ? "array" : class_infos[id].painless;
    bool any = false;
    if (getenv("COMPLEXITY_TRACE") != NULL)
        fprintf(stderr, "%s.%s/%u\n", class, method->name, method->count);
    for (enum filling filling = 0; filling < FILLINGS; filling++) {
        struct cost one, two;
        size_t size = is_more(class, method->name) ? SIZE / 8 : SIZE;
        if (!cost_of(id, method, size, filling, &one) || !cost_of(id, method, 2 * size, filling, &two))
            continue;
        any = true;
        if (two.blocks > one.blocks + BLOCKS_SLACK &&
            two.blocks - one.blocks > BLOCKS_PER_STEP * (two.steps - one.steps + 1))
            complain(class, method, filling, "not charged", &one, &two);
        else if (!is_more(class, method->name) && ((double)two.steps > GROWTH * (double)one.steps + STEPS_SLACK ||
                                                   (double)two.bytes > GROWTH * (double)one.bytes + BYTES_SLACK))
            complain(class, method, filling, "grows", &one, &two);
    }
    if (any && !is_more(class, method->name))
        try_large(id, method, class);
    tried += any;
}

static void test_natives(void **state)
{
    unsigned rows = 0;
    (void)state;
    for (const struct method *method; (method = method_at(rows)) != NULL; rows++)
        try_method(method->id, method);
    print_message("%u of %u rows were called\n", tried, rows);
    assert_int_equal(failed, 0);
    assert_true(tried > 700);
}

/* The row with parameters that take anything, or any text or collection, given a value of one kind; null, too. */
static void call_with(uint16_t class, const struct method *method, enum kind kind, bool groovy)
{
    static const struct script_limits limits = {1000000, (size_t)64 << 20, 256};
    struct arena arena = ARENA_INIT;
    struct run run;
    struct value arguments[METHOD_PARAMETERS_MAX + 1] = {VALUE_NONE}, result;
    begin(&run, &arena, groovy, &limits);
    bool instance = (method->flags & (METHOD_STATIC | METHOD_NEW)) == 0, made = true;
    arguments[0] = make_kind(&run, KIND_CLASS);
    if (instance && class == CLASS_OBJECT)
        arguments[0] = make_kind(&run, kind);
    else if (instance)
        made = make(&run, class == CLASS_COUNT ? type_array(CLASS_DEF, 1) : class, 5, (enum filling)(kind % FILLINGS),
                    &arguments[0]);
    for (unsigned i = 0; i < method->count && made; i++) {
        type_id type = method->parameters[i];
        bool any = type == CLASS_DEF || type == CLASS_OBJECT;
        bool reference = type_dims(type) > 0 || (class_infos[type_class(type)].kind != CLASS_KIND_P && !any);
        if (any)
            arguments[i + 1] = make_kind(&run, (enum kind)((kind + i) % KINDS));
        else if (reference && kind == KIND_NULL && (method->flags & (METHOD_PAINLESS | METHOD_TAKES_NULL)) != 0)
            arguments[i + 1] = VALUE_NONE;
        else
            made = make(&run, type, 5, (enum filling)(kind % FILLINGS), &arguments[i + 1]);
    }
    bool on_null = instance && arguments[0].kind == VALUE_NULL && (method->flags & METHOD_NULL) == 0;
    if (made && !on_null)
        (void)method_call(method, &run, arguments, method->count, &result);
    arena_deinit(&arena);
}

static void test_any_values(void **state)
{
    (void)state;
    const struct method *method;
    for (unsigned i = 0; (method = method_at(i)) != NULL; i++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            if (getenv("COMPLEXITY_TRACE") != NULL)
                fprintf(stderr, "kind %d %s.%s/%u\n", (int)kind,
                        method->id == CLASS_COUNT ? "" : class_infos[method->id].painless, method->name, method->count);
            call_with(method->id, method, kind, (method->flags & METHOD_PAINLESS) == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_natives), cmocka_unit_test(test_any_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
