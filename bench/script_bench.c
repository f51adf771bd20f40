/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of scripts alone: simple statements a second on one core, and nanoseconds for
 * an update.
 *
 * A statement ends with a semicolon; the head of a loop counts as one for each iteration. Each
 * result is the best of five rounds.
 *
 *     ninja -C build bench/script_bench && build/bench/script_bench
 */
#include "script/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 5, UPDATES = 100000 };

struct loop {
    const char *name;
    const char *source;
    double statements; /* of one run */
};

static const struct loop loops[] = {
    {"ints", "int a = 1, b = 2; for (int i = 0; i < 200000; i++) { a = a * 31 + i; b ^= a; b += i; } return b", 800000},
    {"longs, if",
     "long s = 0; for (long i = 0; i < 200000; i++) { if (i % 3 == 0) { s += i; } else { s -= 1; } } return s", 600000},
    {"doubles", "double x = 1; for (int i = 0; i < 200000; i++) { x = x * 1.0000001 + 0.5; x -= 0.25; } return x",
     600000},
    {"def", "def s = 0; for (def i = 0; i < 200000; i++) { s += i; s = s % 1000; } return s", 600000},
    {"calls", "int f(int x) { return x + 1 } int s = 0; for (int i = 0; i < 100000; i++) { s = f(s); } return s",
     300000},
    {"lists",
     "List l = new ArrayList(); for (int i = 0; i < 100000; i++) { l.add(i); } int s = 0; for (x in l) { s += x; } "
     "return s",
     400000},
    {"maps", "def m = new HashMap(); for (int i = 0; i < 100000; i++) { m.k = i; m['j'] = m.k; } return m.j", 300000},
};

static const char *const updates[] = {
    "ctx._source.lock_count++",
    "if (--ctx._source.lock_count == 0) { ctx.op = 'delete' }",
    "if (ctx._source.lock_type == 'exclusive') { assert false }; ctx._source.lock_count++",
    "if ( ctx._source.process_id != process_id ) { assert false }; ctx.op = 'noop';",
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *source, const struct problem *problem)
{
    const struct problem *cause = problem->caused_by == NULL ? problem : problem->caused_by;
    fprintf(stderr, "%s: %.*s\n", source, SLICE_ARG(cause->reason));
    exit(1);
}

static struct script *compile(enum script_lang lang, enum script_context context, const char *source)
{
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    struct script *script = NULL;
    if (script_compile(lang, context, slice_from(source), SLICE_NONE, &script, &arena, &problem) != 0)
        fail(source, &problem);
    arena_deinit(&arena);
    return script;
}

static double run_loop(const struct script *script, const char *source)
{
    struct arena arena = ARENA_INIT;
    struct script_eval value = {.params = SLICE_NONE};
    struct problem problem = {0};
    double begin = now();
    if (script_run_value(script, &SCRIPT_LIMITS_DEFAULT, &arena, &value, &problem) != 0)
        fail(source, &problem);
    double seconds = now() - begin;
    arena_deinit(&arena);
    return seconds;
}

static double run_updates(const struct script *script, const char *source)
{
    struct arena arena = ARENA_INIT;
    double begin = now();
    for (int i = 0; i < UPDATES; i++) {
        struct problem problem = {0};
        struct script_update update = {.source =
                                           SLICE_LIT("{\"lock_type\":\"shared\",\"lock_count\":2,\"process_id\":123}"),
                                       .params = SLICE_LIT("{\"process_id\":123}"),
                                       .index = SLICE_LIT("fs"),
                                       .type = SLICE_LIT("_doc"),
                                       .id = SLICE_LIT("1"),
                                       .version = 1};
        if (script_run_update(script, &SCRIPT_LIMITS_DEFAULT, &arena, &update, &problem) != 0)
            fail(source, &problem);
        arena_reset(&arena);
    }
    double seconds = now() - begin;
    arena_deinit(&arena);
    return seconds;
}

static double best(double (*run)(const struct script *, const char *), const struct script *script, const char *source)
{
    double seconds = run(script, source);
    for (int i = 1; i < ROUNDS; i++) {
        double again = run(script, source);
        seconds = again < seconds ? again : seconds;
    }
    return seconds;
}

int main(void)
{
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        struct script *script = compile(SCRIPT_PAINLESS, SCRIPT_FOR_TEST, loops[i].source);
        printf("%-10s %6.1f million statements a second\n", loops[i].name,
               loops[i].statements / best(run_loop, script, loops[i].source) / 1e6);
        script_unref(script);
    }
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        struct script *script = compile(SCRIPT_DEFAULT, SCRIPT_FOR_UPDATE, updates[i]);
        printf("%6.0f ns   %s\n", best(run_updates, script, updates[i]) / UPDATES * 1e9, updates[i]);
        script_unref(script);
    }
    return 0;
}
