/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native stack use of scripts that build recursive structures: composed functions, nested lists, sub lists of sub
 * lists, nested sources.
 *
 * Each runs in a thread of the server's size, where the counts of script/run.h must end it, and in one of 256 KiB,
 * where the address of the stack does. A test that fails here dies of SIGSEGV. The result in the large thread is
 * compared with the expected one: there the counts decide, not the stack.
 */
#include "evaluate.h"

#include "base/buf.h"
#include "base/stack.h"

#include <pthread.h>

#define SMALL_STACK_BYTES ((size_t)STACK_FACTOR * 256 << 10)

struct hostile {
    enum script_lang lang;
    const char *source;
    const char *begins; /* prefix of the result in a large thread */
};

#define DEEP "stack_overflow_error"

static const struct hostile hostiles[] = {
    {SCRIPT_PAINLESS,
     "Comparator c = Comparator.naturalOrder(); for (int i = 0; i < 250000; i++) { c = c.reversed(); } "
     "return c.compare(1, 2)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Comparator c = Comparator.reverseOrder(); for (int i = 0; i < 100000; i++) { c = Comparator.nullsFirst(c); } "
     "return c.compare(1, 2)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Comparator c = Comparator.naturalOrder(); for (int i = 0; i < 100000; i++) { c = Comparator.nullsLast(c); } "
     "List l = [3, 1, 2]; l.sort(c); return l",
     DEEP},
    {SCRIPT_PAINLESS,
     "Comparator c = Comparator.naturalOrder(); for (int i = 0; i < 50000; i++) { "
     "c = c.thenComparing(Comparator.naturalOrder()); } return c.compare(1, 1)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Comparator c = Comparator.naturalOrder(); for (int i = 0; i < 50000; i++) { "
     "c = Comparator.comparing(x -> x, c); } return c.compare(1, 1)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Function f = Function.identity(); for (int i = 0; i < 100000; i++) { f = f.andThen(Function.identity()); } "
     "return f.apply(1)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Function f = Function.identity(); for (int i = 0; i < 100000; i++) { f = f.compose(f); } return f.apply(1)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Predicate p = Predicate.isEqual(1); for (int i = 0; i < 100000; i++) { p = p.negate(); } return p.test(1)", DEEP},
    {SCRIPT_PAINLESS,
     "Predicate p = Predicate.isEqual(1); for (int i = 0; i < 100000; i++) { p = p.and(Predicate.isEqual(1)); } return "
     "p.test(1)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Predicate p = Predicate.isEqual(2); for (int i = 0; i < 100000; i++) { p = p.or(Predicate.isEqual(2)); } return "
     "p.test(1)",
     DEEP},
    {SCRIPT_PAINLESS,
     "Comparator c = Comparator.naturalOrder(); for (int i = 0; i < 100000; i++) { c = c.reversed(); } "
     "Map m = new TreeMap(c); m.put(1, 1); m.put(2, 1); return m",
     DEEP},
    {SCRIPT_PAINLESS,
     "List l = [1, 2, 3]; for (int i = 0; i < 100000; i++) { l = l.subList(0, l.size()); } l.add(4); return l",
     "[1,2,3,4]"},
    {SCRIPT_PAINLESS,
     "List all = [1, 2, 3], l = all; for (int i = 0; i < 100000; i++) { l = l.subList(0, l.size()); } "
     "l.remove(0); l.set(0, 9); l.clear(); return all",
     "[]"},
    {SCRIPT_PAINLESS, "List l = []; for (int i = 0; i < 200000; i++) { List m = [l]; l = m; } return l.toString()",
     DEEP},
    {SCRIPT_PAINLESS, "List l = []; for (int i = 0; i < 200000; i++) { List m = [l]; l = m; } return l.hashCode()",
     DEEP},
    {SCRIPT_PAINLESS, "List l = [], n = []; for (int i = 0; i < 100000; i++) { l = [l]; n = [n]; } return l.equals(n)",
     DEEP},
    {SCRIPT_PAINLESS, "List l = []; for (int i = 0; i < 200000; i++) { l = [l]; } return l", DEEP},
    {SCRIPT_PAINLESS, "Map m = [:]; for (int i = 0; i < 100000; i++) { m = ['a': m]; } return m", DEEP},
    {SCRIPT_PAINLESS, "int f(int n) { return f(n + 1) } return f(0)", DEEP},
    {SCRIPT_GROOVY,
     "def e = new RuntimeException('x'); for (int i = 0; i < 50000; i++) { e = new RuntimeException('y', e) }; throw e",
     "runtime_exception: y"},
    {SCRIPT_GROOVY, "def c = { it }; for (int i = 0; i < 50000; i++) { c = c >> { it } }; return c(1)", DEEP},
    {SCRIPT_GROOVY, "def c = { it }; for (int i = 0; i < 50000; i++) { c = c << c }; return c(1)", DEEP},
    {SCRIPT_GROOVY, "def c = { a, b = 1 -> a }; for (int i = 0; i < 50000; i++) { c = c.curry() }; return c(1)", ""},
    {SCRIPT_GROOVY, "def c = { it }; for (int i = 0; i < 50000; i++) { def d = c; c = d.&call }; return c(1)", ""},
    {SCRIPT_GROOVY, "def l = []; for (int i = 0; i < 50000; i++) { l = [l] }; return l.flatten()", DEEP},
    {SCRIPT_GROOVY, "def l = []; for (int i = 0; i < 50000; i++) { l = [l] }; return l.collectNested { it }", DEEP},
    {SCRIPT_GROOVY, "def l = []; for (int i = 0; i < 50000; i++) { l = [l] }; return l.inspect()", DEEP},
    {SCRIPT_GROOVY, "def l = [1]; for (int i = 0; i < 50000; i++) { l = [l] }; return -l", DEEP},
    {SCRIPT_GROOVY, "def l = [1], m = [1]; for (int i = 0; i < 50000; i++) { l = [l]; m = [m] }; return l == m", DEEP},
    {SCRIPT_GROOVY, "def l = [1]; for (int i = 0; i < 50000; i++) { l = [l] }; return l*.x", DEEP},
    {SCRIPT_GROOVY, "def l = [1]; for (int i = 0; i < 50000; i++) { l = [l] }; return \"${l}\"", DEEP},
    {SCRIPT_GROOVY, "def f = { n -> n > 0 ? owner.f(n - 1) : 0 }; f(100000)", ""},
    {SCRIPT_GROOVY, "def f(n) { f(n + 1) }; f(0)", DEEP},
    {SCRIPT_GROOVY, "def t = 'a' * 20000; return t ==~ /(a|b)*/", ""},
};

/* cmocka can end a test only from the thread that runs it. */
static unsigned failures;

static void *run_all(void *context)
{
    bool large = context != NULL;
    for (size_t i = 0; i < sizeof hostiles / sizeof *hostiles; i++) {
        struct arena arena = ARENA_INIT;
        const char *source = hostiles[i].source, *begins = hostiles[i].begins;
        struct slice have = evaluate_in(hostiles[i].lang, EVALUATE_PARAMS, source, &arena);
        if (large && (have.len < strlen(begins) || memcmp(have.data, begins, strlen(begins)) != 0))
            failures++, print_error("%s\n  gives    %.*s\n  expected %s\n", source, SLICE_ARG(have), begins);
        arena_deinit(&arena);
    }
    return NULL;
}

/* Sources with each kind of nesting that the parser counts. */
static const struct {
    enum script_lang lang;
    const char *before, *open, *middle, *close;
} nestings[] = {
    {SCRIPT_PAINLESS, "return ", "(", "1", ")"},
    {SCRIPT_PAINLESS, "return ", "[", "1", "]"},
    {SCRIPT_PAINLESS, "return ", "['a':", "1", "]"},
    {SCRIPT_PAINLESS, "return ", "-", "1", ""},
    {SCRIPT_PAINLESS, "return ", "!", "true", ""},
    {SCRIPT_PAINLESS, "return ", "1+", "1", ""},
    {SCRIPT_PAINLESS, "return 1", "+1", "", ""},
    {SCRIPT_PAINLESS, "def x = 1; return x", ".a", "", ""},
    {SCRIPT_PAINLESS, "def x = 1; return x", "[0]", "", ""},
    {SCRIPT_PAINLESS, "return ", "true?", "1", ":1"},
    {SCRIPT_PAINLESS, "return ", "(int)", "1", ""},
    {SCRIPT_PAINLESS, "", "if(true){", "return 1;", "}"},
    {SCRIPT_PAINLESS, "", "try{", "return 1;", "}catch(Exception e){}"},
    {SCRIPT_PAINLESS, "def f = ", "x->", "1", ""},
    {SCRIPT_PAINLESS, "def x = 1; ", "x=", "1", ""},
    {SCRIPT_PAINLESS, "return ", "Math.abs(", "1", ")"},
    {SCRIPT_PAINLESS, "return ", "(", "", ""},
    {SCRIPT_PAINLESS, "return 'a' ==~ /", "(", "a", ")"},
    {SCRIPT_PAINLESS, "return 'a' ==~ /", "[", "a", "]"},
    {SCRIPT_GROOVY, "", "(", "1", ")"},
    {SCRIPT_GROOVY, "", "[", "1", "]"},
    {SCRIPT_GROOVY, "", "-", "1", ""},
    {SCRIPT_GROOVY, "", "1+", "1", ""},
    {SCRIPT_GROOVY, "1", "+1", "", ""},
    {SCRIPT_GROOVY, "", "{->", "1", "}"},
    {SCRIPT_GROOVY, "", "\"${", "1", "}\""},
    {SCRIPT_GROOVY, "", "if(true)", "1", ""},
    {SCRIPT_GROOVY, "", "true?", "1", ":1"},
    {SCRIPT_GROOVY, "def x;", "x=", "1", ""},
    {SCRIPT_GROOVY, "def x; x", ".a", "", ""},
    {SCRIPT_GROOVY, "def x; x", "(1)", "", ""},
    {SCRIPT_GROOVY, "", "f ", "1", ""},
    {SCRIPT_GROOVY, "", "(int)", "1", ""},
    {SCRIPT_GROOVY, "", "new Integer(", "1", ")"},
    {SCRIPT_GROOVY, "", "switch(1){case 1:", "1", "}"},
    {SCRIPT_GROOVY, "", "while(true){", "1", "}"},
};

static void evaluate_nested(size_t i, size_t depth)
{
    struct arena arena = ARENA_INIT;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&source, slice_from(nestings[i].before));
    for (size_t k = 0; k < depth; k++)
        buf_slice(&source, slice_from(nestings[i].open));
    buf_slice(&source, slice_from(nestings[i].middle));
    for (size_t k = 0; k < depth; k++)
        buf_slice(&source, slice_from(nestings[i].close));
    buf_slice(&source, slice_make("\0", 1));
    (void)evaluate_in(nestings[i].lang, EVALUATE_PARAMS, source.data, &arena);
    buf_deinit(&source);
    arena_deinit(&arena);
}

static void *compile_all(void *context)
{
    static const size_t depths[] = {40, 70, 90, 200, 450, 499, 2000};
    (void)context;
    for (size_t i = 0; i < sizeof nestings / sizeof *nestings; i++)
        for (size_t k = 0; k < sizeof depths / sizeof *depths; k++)
            evaluate_nested(i, depths[k]);
    return NULL;
}

static void in_thread(void *(*function)(void *), size_t stack_bytes, bool large)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
    assert_int_equal(pthread_create(&thread, &attributes, function, large ? &thread : NULL), 0);
    pthread_attr_destroy(&attributes);
    pthread_join(thread, NULL);
    assert_int_equal(failures, 0);
}

static void test_run_in_a_large_stack(void **state)
{
    (void)state;
    in_thread(run_all, STACK_BYTES, true);
}

static void test_run_in_a_small_stack(void **state)
{
    (void)state;
    in_thread(run_all, SMALL_STACK_BYTES, false);
}

static void test_compile_in_a_large_stack(void **state)
{
    (void)state;
    in_thread(compile_all, STACK_BYTES, true);
}

static void test_compile_in_a_small_stack(void **state)
{
    (void)state;
    in_thread(compile_all, SMALL_STACK_BYTES, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_in_a_large_stack),
        cmocka_unit_test(test_run_in_a_small_stack),
        cmocka_unit_test(test_compile_in_a_large_stack),
        cmocka_unit_test(test_compile_in_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
