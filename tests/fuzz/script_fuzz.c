/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script language: compiling, then running for a value and as an update, within small bounds.
 *
 * The input's first byte chooses the language; the rest is the source. Whatever happens, it must happen again: a second
 * run has the same outcome (invariant 1), a refusal has its shape, and what an update leaves is JSON. Whatever is run,
 * it ends within its steps, which are short, within its memory, and within a small stack.
 */
#include "fuzz.h"

#include <pthread.h>

#include "base/stack.h"
#include "json/json.h"
#include "script/script.h"

/* So small that ten thousand runs fit into a second. */
static const struct script_limits limits = {.steps_max = 20000, .memory_bytes_max = 4 << 20, .depth_max = 64};

static const char document[] = "{\"n\":7,\"d\":2.5,\"big\":9223372036854775807,\"s\":\"text\",\"t\":true,\"nul\":null,"
                               "\"l\":[3,1,2],\"m\":{\"x\":1,\"y\":{\"z\":\"deep\"}},\"ls\":[\"a\",\"b\"]}";
static const char params[] = "{\"a\":1,\"b\":\"two\",\"list\":[1,2,3],\"map\":{\"k\":\"v\"}}";

/* The most that a run may take of the processor, under sanitizers and on a loaded machine, and may hold. */
#define SECONDS_MAX 2
#define HELD_BYTES_MAX ((size_t)4 * (4 << 20))

/* Twice as much where frames are larger: stack_is_low() keeps STACK_RESERVE_BYTES of it free. */
#define SMALL_STACK_BYTES (STACK_RESERVE_BYTES * (STACK_FACTOR > 1 ? 2 : 4))

static void check_problem(int r, const struct problem *problem)
{
    MUST(r == SCRIPT_REFUSED || r == SCRIPT_FAILED || r == SCRIPT_UNFIT);
    MUST(problem->type != PROBLEM_NONE);
}

static int run_value(const struct script *script, struct arena *arena, struct slice *ret_shown)
{
    struct script_eval value = {.params = slice_from(params)};
    struct problem problem = {0};
    int r = script_run_value(script, &limits, arena, &value, &problem);
    if (r != 0)
        check_problem(r, &problem);
    *ret_shown = r == 0 ? value.display : problem.caused_by == NULL ? problem.reason : problem.caused_by->reason;
    return r;
}

static int run_update(const struct script *script, struct arena *arena, struct slice *ret_shown)
{
    struct script_update update = {.ctx = SCRIPT_CTX_UPDATE,
                                   .index = SLICE_LIT("i"),
                                   .type = SLICE_LIT("_doc"),
                                   .id = SLICE_LIT("1"),
                                   .version = 3,
                                   .now_ms = 1600000000000,
                                   .source = slice_from(document),
                                   .params = slice_from(params)};
    struct problem problem = {0};
    int r = script_run_update(script, &limits, arena, &update, &problem);
    if (r != 0)
        check_problem(r, &problem);
    *ret_shown = r == 0 ? update.source_after : problem.caused_by == NULL ? problem.reason : problem.caused_by->reason;
    struct json_doc doc;
    if (r == 0 && update.source_after.data != NULL)
        MUST(json_parse_stored(arena, update.source_after, &doc) == 0);
    return r;
}

static void run_twice(const struct script *script, int (*run)(const struct script *, struct arena *, struct slice *))
{
    struct arena first_arena = ARENA_INIT, second_arena = ARENA_INIT;
    struct slice first, second;
    double begin = cpu_seconds();
    int r = run(script, &first_arena, &first);
    check_cpu(begin, SECONDS_MAX);
    MUST(arena_held(&first_arena) < HELD_BYTES_MAX);
    MUST(run(script, &second_arena, &second) == r);
    MUST(slice_equal(first, second));
    arena_deinit(&first_arena);
    arena_deinit(&second_arena);
}

static void try_source(enum script_lang lang, enum script_context context, struct slice source,
                       int (*run)(const struct script *, struct arena *, struct slice *))
{
    struct arena arena = ARENA_INIT;
    struct script *script = NULL;
    struct problem problem = {0};
    int r = script_compile(lang, context, source, SLICE_NONE, &script, &arena, &problem);
    if (r != 0)
        check_problem(r, &problem);
    else
        run_twice(script, run);
    script_unref(script);
    arena_deinit(&arena);
}

static void *try_all(void *context)
{
    const struct slice *input = context;
    enum script_lang lang = (enum script_lang)((unsigned char)input->data[0] % SCRIPT_LANG_COUNT);
    struct slice source = slice_from_offset(*input, 1);
    try_source(lang, SCRIPT_FOR_UPDATE, source, run_update);
    try_source(lang, SCRIPT_FOR_TEST, source, run_value);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_make(data, size);
    pthread_attr_t attributes;
    pthread_t thread;
    if (size == 0)
        return 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SMALL_STACK_BYTES);
    MUST(pthread_create(&thread, &attributes, try_all, &input) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return 0;
}
