/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the interpreter computes what Java would.
 * Method: random scripts (script_gen.c), run by the product as updates of a random document, and
 * worked out from their trees by a second, plain evaluator (script_eval.c). The documents must be
 * equal, doubles bit by bit; where one throws, so must the other, the same. A failure prints the
 * seed, the script, and what each made of it.
 *
 * usage: script_sim [--seeds N | SEED [SIZE]]
 */
#include "script_tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/arguments.h"
#include "base/arena.h"
#include "script/script.h"

struct counts {
    unsigned done;
    unsigned threw;
    unsigned skipped;
};

struct sim {
    uint64_t seed;
    struct arena arena;
    struct buf source;
    struct buf document;
    struct result expected;
    struct slice have;  /* the product's document, or NULL */
    struct slice error; /* the exception it threw */
    struct slice place; /* the rest of `have`, not compared yet */
};

static void failed(struct sim *sim, const char *what)
{
    printf("seed %" PRIu64 ": %s\ndocument %.*s\nscript:\n%.*s\nproduct: %.*s%.*s\n", sim->seed, what,
           SLICE_ARG(buf_as_slice(&sim->document)), SLICE_ARG(buf_as_slice(&sim->source)), SLICE_ARG(sim->have),
           SLICE_ARG(sim->error));
    printf("at: %.*s\n", SLICE_ARG(sim->place));
    exit(1);
}

/* --- The product -------------------------------------------------------------------------------------------------- */

static void run_product(struct sim *sim)
{
    struct script *script = NULL;
    struct problem problem = {0};
    struct script_update update = {.ctx = SCRIPT_CTX_UPDATE, .version = 1, .source = buf_as_slice(&sim->document)};
    if (script_compile(SCRIPT_PAINLESS, SCRIPT_FOR_UPDATE, buf_as_slice(&sim->source), SLICE_NONE, &script, &sim->arena,
                       &problem) != 0) {
        sim->error = problem.caused_by->reason;
        failed(sim, "does not compile");
    }
    int r = script_run_update(script, &SCRIPT_LIMITS_DEFAULT, &sim->arena, &update, &problem);
    script_unref(script);
    if (r == 0)
        sim->have = update.source_after;
    else
        sim->error = problem.caused_by == NULL ? problem.reason : problem.caused_by->name;
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

/* What comes next in the product's document. */
static void expect(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void expect(struct sim *sim, const char *format, ...)
{
    char text[2 * TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if ((size_t)len > sim->place.len || memcmp(sim->place.data, text, (size_t)len) != 0) {
        printf("expected next: %s\n", text);
        failed(sim, "another document");
    }
    sim->place = slice_from_offset(sim->place, (size_t)len);
}

static void expect_double(struct sim *sim, double want)
{
    char *end;
    if (isnan(want) || isinf(want)) {
        expect(sim, "%s", isnan(want) ? "\"NaN\"" : "\"inf\"");
        return;
    }
    double have = strtod(sim->place.data, &end);
    if (memcmp(&have, &want, sizeof have) != 0) {
        printf("expected next: %.17g\n", want);
        failed(sim, "another double");
    }
    sim->place = slice_from_offset(sim->place, (size_t)(end - sim->place.data));
}

static void expect_variables(struct sim *sim)
{
    static const char *const names[] = {"i0", "i1", "i2", "j0", "j1", "d0", "d1", "s0", "s1"};
    for (int i = 0; i < VARIABLES; i++) {
        expect(sim, ",\"%s\":", names[i]);
        if (variable_type(i) == TYPE_DOUBLE)
            expect_double(sim, sim->expected.doubles[i]);
        else if (variable_type(i) == TYPE_STRING)
            expect(sim, "\"%s\"", sim->expected.texts[i]);
        else
            expect(sim, "%" PRId64, sim->expected.integers[i]);
    }
}

static void compare_documents(struct sim *sim)
{
    const struct result *r = &sim->expected;
    sim->place = sim->have;
    expect(sim, "{\"f0\":%" PRId64 ",\"f1\":%" PRId64 ",\"g0\":%" PRId64 ",\"g1\":%" PRId64 ",\"l\":[", r->fields[0],
           r->fields[1], r->fields[2], r->fields[3]);
    for (int i = 0; i < r->list_count; i++)
        expect(sim, "%s%" PRId64, i > 0 ? "," : "", r->list[i]);
    expect(sim, "],\"m\":{");
    for (int i = 0; i < r->map_count; i++)
        expect(sim, "%s\"%s\":%" PRId64, i > 0 ? "," : "", r->keys[i], r->values[i]);
    expect(sim, "}");
    expect_variables(sim);
    expect(sim, "}");
    if (sim->place.len > 0)
        failed(sim, "the document goes on");
}

static void compare(struct sim *sim, struct counts *counts)
{
    static const char *const names[] = {[OUTCOME_ARITHMETIC] = "arithmetic_exception",
                                        [OUTCOME_INDEX] = "index_out_of_bounds_exception",
                                        [OUTCOME_TEXT_INDEX] = "string_index_out_of_bounds_exception",
                                        [OUTCOME_THROWN] = "illegal_state_exception"};
    if (sim->expected.outcome == OUTCOME_DONE) {
        counts->done++;
        if (sim->have.data == NULL)
            failed(sim, "threw");
        compare_documents(sim);
        return;
    }
    counts->threw++;
    if (!slice_is(sim->error, names[sim->expected.outcome])) {
        printf("expected: %s\n", names[sim->expected.outcome]);
        failed(sim, "did not throw as it should");
    }
}

static void run(uint64_t seed, int size, struct counts *counts)
{
    struct rng rng;
    struct sim sim = {
        .seed = seed, .arena = ARENA_INIT, .source = BUF_INIT(BUF_UNLIMITED), .document = BUF_INIT(BUF_UNLIMITED)};
    rng_init(&rng, seed);
    struct script_tree *tree = tree_generate(&rng, size, &sim.arena);
    tree_evaluate(tree, &sim.arena, &sim.expected);
    if (sim.expected.outcome == OUTCOME_TOO_LONG) {
        counts->skipped++;
    } else {
        tree_print(tree, &rng, &sim.source);
        tree_print_document(tree, &sim.document);
        run_product(&sim);
        compare(&sim, counts);
    }
    buf_deinit(&sim.source);
    buf_deinit(&sim.document);
    arena_deinit(&sim.arena);
}

int main(int argc, char **argv)
{
    struct counts counts = {0};
    struct argument_numbers named = {.count = 0}; /* a seed, and a size */
    uint64_t first = 1, last = 1000;
    const struct argument arguments[] = {
        {"--seeds", .number = &last}, {"SEED [SIZE]", .numbers = &named, .numbers_max = 2}, {0}};
    arguments_take(argc, argv, arguments);
    if (named.count > 0)
        first = last = named.items[0];
    for (uint64_t seed = first; seed <= last; seed++)
        run(seed, named.count > 1 ? (int)named.items[1] : 1 + (int)(seed % 30), &counts);
    printf("%u equal documents, %u equal exceptions, %u too long to compare\n", counts.done, counts.threw,
           counts.skipped);
    return 0;
}
