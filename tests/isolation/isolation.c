/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the effects of several owners on each other are those of docs/locking.md and README-locks.md, in every order of
 * their steps.
 * Method: each spec is run in every interleaving of its actors, each on a fresh core with simulated time, and its trace
 * is compared with the recorded one. Of few interleavings all are printed; of many, one for each outcome, with the
 * number of interleavings that had it.
 *
 * usage: isolation SPEC OUT            compare
 *        isolation --write SPEC OUT    write the trace
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "spec.h"
#include "driver.h"

enum { STEPS_MAX = SPEC_ACTORS_MAX * SPEC_LINES_MAX, TOLD_WHOLE = 12, OUTCOMES_MAX = 400 };

/* One interleaving of a spec: at each step, which of the runnable actors ran. */
struct path {
    size_t choices[STEPS_MAX];
    size_t widths[STEPS_MAX];
    size_t length;
};

struct outcome {
    char *text;
    char *trace;
    size_t count;
};

struct report {
    struct outcome outcomes[OUTCOMES_MAX];
    size_t outcome_count;
    size_t run_count;
    struct buf traces;
};

static void do_lines(struct driver *driver, size_t actor, const struct spec_actor *lines)
{
    for (size_t i = 0; i < lines->line_count; i++) {
        driver_do(driver, actor, lines->lines[i]);
        while (driver->actors[actor].command != NULL && driver_pass(driver))
            ;
    }
}

/* The actors that have something left to do and do not wait. Returns: how many. */
static size_t runnable(const struct spec *spec, const struct driver *driver, const size_t *done, size_t *ret_actors)
{
    size_t count = 0;
    for (size_t i = 0; i < spec->actor_count; i++)
        if (done[i] < spec->actors[i].line_count && driver->actors[i].command == NULL)
            ret_actors[count++] = i;
    return count;
}

static bool anyone_waits(const struct driver *driver)
{
    for (size_t i = 0; i < driver->actor_count; i++)
        if (driver->actors[i].command != NULL)
            return true;
    return false;
}

static void note_order(struct buf *order, const char *name)
{
    buf_printf(order, "%s%s", order->len == 0 ? "" : " ", name);
}

/* Follows `path`, and after its end always takes the first choice; the path is then that of this run. */
static void play(const struct spec *spec, struct driver *driver, struct path *path, struct buf *order)
{
    size_t done[SPEC_ACTORS_MAX] = {0};
    size_t actors[SPEC_ACTORS_MAX];
    size_t depth = 0;
    for (;;) {
        size_t count = runnable(spec, driver, done, actors);
        if (count == 0) {
            if (!anyone_waits(driver))
                break;
            if (!driver_pass(driver))
                check_failed("an actor waits for ever", driver->trace.data, __FILE__, __LINE__);
            continue;
        }
        if (depth >= path->length)
            path->choices[depth] = 0;
        INSIST(path->choices[depth] < count);
        path->widths[depth] = count;
        size_t actor = actors[path->choices[depth++]];
        note_order(order, spec->actors[actor].name);
        driver_do(driver, actor, spec->actors[actor].lines[done[actor]++]);
    }
    path->length = depth;
}

/* Turns a run line into choices as it goes. */
static void play_named(const struct spec *spec, struct driver *driver, const char *names, struct buf *order)
{
    size_t done[SPEC_ACTORS_MAX] = {0};
    char *copy = strdup(names);
    for (char *rest = copy, *name; (name = strtok_r(rest, " ", &rest)) != NULL;) {
        int actor = spec_actor(spec, name);
        INSIST(actor >= 0 && done[actor] < spec->actors[actor].line_count);
        while (driver->actors[actor].command != NULL && driver_pass(driver))
            ;
        note_order(order, name);
        driver_do(driver, (size_t)actor, spec->actors[actor].lines[done[actor]++]);
    }
    while (anyone_waits(driver) && driver_pass(driver))
        ;
    free(copy);
}

static void add_outcome(struct report *report, const struct driver *driver, const struct buf *order)
{
    struct buf trace = BUF_INIT(BUF_UNLIMITED);
    struct buf outcome = BUF_INIT(BUF_UNLIMITED);
    size_t i = 0;
    driver_outcome(driver, &outcome);
    buf_printf(&trace, "\n--- %.*s\n", SLICE_ARG(buf_as_slice(order)));
    buf_slice(&trace, buf_as_slice(&driver->trace));
    buf_slice(&report->traces, buf_as_slice(&trace));
    while (i < report->outcome_count && !slice_is(buf_as_slice(&outcome), report->outcomes[i].text))
        i++;
    INSIST(i < OUTCOMES_MAX);
    if (i == report->outcome_count) {
        report->outcomes[i] =
            (struct outcome){mem_strdup(outcome.data, outcome.len), mem_strdup(trace.data, trace.len), 0};
        report->outcome_count++;
    }
    report->outcomes[i].count++;
    report->run_count++;
    buf_deinit(&trace);
    buf_deinit(&outcome);
}

static void run_once(const struct spec *spec, struct path *path, const char *names, struct report *report)
{
    struct driver driver;
    struct buf order = BUF_INIT(BUF_UNLIMITED);
    driver_open(&driver);
    for (size_t i = 0; i < spec->actor_count; i++)
        driver_add_actor(&driver, spec->actors[i].name);
    size_t setup = driver_add_actor(&driver, "setup");
    size_t end = driver_add_actor(&driver, "end");
    do_lines(&driver, setup, &spec->setup);
    buf_clear(&driver.trace);
    if (names != NULL)
        play_named(spec, &driver, names, &order);
    else
        play(spec, &driver, path, &order);
    do_lines(&driver, end, &spec->end);
    add_outcome(report, &driver, &order);
    buf_deinit(&order);
    driver_close(&driver);
}

/* The next path in order. Returns: false after the last. */
static bool advance(struct path *path)
{
    while (path->length > 0) {
        if (++path->choices[path->length - 1] < path->widths[path->length - 1])
            return true;
        path->length--;
    }
    return false;
}

static void run_all(const struct spec *spec, struct report *report)
{
    struct path path = {.length = 0};
    for (size_t i = 0; i < spec->run_count; i++)
        run_once(spec, NULL, spec->runs[i], report);
    if (spec->run_count > 0)
        return;
    do
        run_once(spec, &path, NULL, report);
    while (advance(&path));
}

static void write_report(const struct spec *spec, struct report *report, struct buf *out)
{
    buf_printf(out, "%s", spec->title);
    if (report->run_count <= TOLD_WHOLE || spec->run_count > 0) {
        buf_slice(out, buf_as_slice(&report->traces));
    } else {
        buf_printf(out, "#\n# %zu interleavings come to %zu outcome%s.\n", report->run_count, report->outcome_count,
                   report->outcome_count == 1 ? "" : "s");
        for (size_t i = 0; i < report->outcome_count; i++)
            buf_printf(out, "\n=== %zu like this:%s", report->outcomes[i].count, report->outcomes[i].trace);
    }
    for (size_t i = 0; i < report->outcome_count; i++) {
        mem_free(report->outcomes[i].text);
        mem_free(report->outcomes[i].trace);
    }
    buf_deinit(&report->traces);
}

/* Returns: whether the file holds just this; shows the first line that differs. */
static bool compare(const char *path, struct slice expected)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    bool same = file != NULL;
    for (int number = 1; same && expected.len > 0; number++) {
        size_t len = slice_find_byte(expected, '\n');
        ssize_t got = getline(&line, &capacity, file);
        struct slice in_file = slice_make(line, got <= 0 ? 0 : (size_t)got - 1);
        same = got > 0 && slice_equal(in_file, slice_make(expected.data, len));
        if (!same)
            fprintf(stderr, "%s:%d:\n  is now   %.*s\n  expected %.*s\n", path, number, (int)len, expected.data,
                    SLICE_ARG(in_file));
        expected = slice_from_offset(expected, len + 1);
    }
    same = same && getline(&line, &capacity, file) < 0;
    free(line);
    if (file != NULL)
        fclose(file);
    return same;
}

int main(int argc, char **argv)
{
    bool write = argc == 4 && strcmp(argv[1], "--write") == 0;
    struct spec spec;
    struct report report = {.traces = BUF_INIT(BUF_UNLIMITED)};
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    if (argc != 3 && !write) {
        fprintf(stderr, "usage: isolation [--write] SPEC OUT\n");
        return 2;
    }
    spec_read(argv[argc - 2], &spec);
    run_all(&spec, &report);
    write_report(&spec, &report, &out);
    bool good = true;
    if (write) {
        FILE *file = fopen(argv[3], "w");
        good = file != NULL && fwrite(out.data, 1, out.len, file) == out.len && fclose(file) == 0;
    } else {
        good = compare(argv[2], buf_as_slice(&out));
    }
    buf_deinit(&out);
    spec_deinit(&spec);
    return good ? 0 : 1;
}
