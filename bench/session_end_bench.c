/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the core steps while a session with many ephemeral documents ends, over RocksDB: the
 * processor time of the applying thread for each step, which other load on the machine does not
 * distort. No request is answered during a step, so the longest step is the pause of all clients.
 *
 * usage: session_end_bench [--docs N] [--dir DIRECTORY]
 *
 * Four sessions end one after another, while another session holds: nothing; a directory without
 * documents; a directory with a hundredth of them; the whole index.
 */
#include "core/step/core.h"

#include "../tests/lib/arguments.h"
#include "base/error.h"
#include "core/command/command.h"
#include "index.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BULK = 1000, DIRECTORIES = 100 };

struct bench {
    struct core *core;
    struct effects effects;
    tl_ts ts;
    uint64_t docs;
    double longest_ms, all_ms;
    size_t steps;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "session_end_bench: %s\n", what);
    exit(1);
}

static double busy_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static void drain(struct bench *bench)
{
    while (!list_empty(&bench->effects.completed)) {
        struct command *command = list_entry(bench->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (command->problem.type != PROBLEM_NONE)
            die(problem_name(command->problem.type));
        if (command->type == COMMAND_WRITE && command->write.results->outcome == WRITE_FAILED)
            die("a write failed");
        command_free(command);
    }
}

static void step(struct bench *bench, struct command *command)
{
    command->ts = bench->ts = core_last_ts(bench->core) + 1;
    command->clock = bench->ts;
    double begun = busy_ms();
    if (core_step(bench->core, command, &bench->effects) != 0)
        die("a step failed");
    double took = busy_ms() - begun;
    bench->longest_ms = took > bench->longest_ms ? took : bench->longest_ms;
    bench->all_ms += took;
    bench->steps++;
    drain(bench);
}

static void forget(struct bench *bench)
{
    bench->longest_ms = bench->all_ms = 0;
    bench->steps = 0;
}

static void report(const struct bench *bench, const char *what)
{
    printf("%-58s %7zu steps, the longest %7.2f ms, all %8.0f ms\n", what, bench->steps, bench->longest_ms,
           bench->all_ms);
}

static void open_session(struct bench *bench, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    step(bench, command);
}

static void close_session(struct bench *bench, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
    command->session.id = slice_from(id);
    step(bench, command);
}

static void lock(struct bench *bench, const char *id, const char *path)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    *target = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs")};
    if (path[0] != '\0')
        target->path = slice_from(path);
    command->owner.session = slice_from(id);
    command->lock.targets = target;
    command->lock.target_count = 1;
    step(bench, command);
}

static void load(struct bench *bench, const char *session)
{
    for (uint64_t first = 0; first < bench->docs; first += BULK) {
        struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
        command->write.items = arena_zalloc(&command->arena, BULK * sizeof *command->write.items);
        command->write.item_count = BULK;
        for (uint64_t i = 0; i < BULK; i++)
            command->write.items[i] = (struct write_item){
                .op = WRITE_INDEX,
                .index = SLICE_LIT("fs"),
                .id = arena_printf(&command->arena, "%llu", (unsigned long long)(first + i)),
                .source = arena_printf(&command->arena, "{\"v\":%llu,\"path\":\"/%llu/projects/%llu\"}",
                                       (unsigned long long)i, (unsigned long long)(i % DIRECTORIES),
                                       (unsigned long long)(first + i)),
                .version = VERSION_ANY,
                .if_seq_no = SEQ_NO_ANY,
                .lease = slice_from(session)};
        step(bench, command);
    }
}

/* Ends a session and runs steps until no work is left. */
static void end(struct bench *bench, const char *session, const char *what)
{
    close_session(bench, session);
    double itself_ms = bench->longest_ms;
    while (core_next_deadline(bench->core) == 0)
        step(bench, command_new(COMMAND_TICK, DIALECT_7));
    report(bench, what);
    printf("%-58s    %7.2f ms\n", "    of which the end itself", itself_ms);
}

static void leave(struct bench *bench, const char *what, const char *held)
{
    open_session(bench, "leaving");
    load(bench, "leaving");
    if (held != NULL) {
        open_session(bench, "holder");
        lock(bench, "holder", held);
    }
    forget(bench);
    end(bench, "leaving", what);
    if (held != NULL) {
        forget(bench);
        end(bench, "holder", "  and the end of the holder");
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.docs = 150000};
    struct store_options options = {.directory = SLICE_NONE};
    struct core_limits limits = core_limits_default();
    struct store *store;
    char *reason = NULL;
    const char *directory = "session_end_bench.data";
    const struct argument arguments[] = {{"--docs", .number = &bench.docs}, {"--dir", .text = &directory}, {0}};
    arguments_take(argc, argv, arguments);
    options.directory = slice_from(directory);
    setvbuf(stdout, NULL, _IOLBF, 0);
    limits.ephemeral_max = bench.docs + BULK;
    effects_init(&bench.effects);
    if (store_open_rocks(&options, &store, &reason) != 0)
        die(reason);
    if (core_open(store, &limits, &bench.core) != 0)
        die("the core does not open");
    step(&bench,
         bench_index("fs", BENCH_INDEX_UUID,
                     "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"},\"v\":{\"type\":\"long\"}}}}"));
    leave(&bench, "no locks held", NULL);
    leave(&bench, "another session holds a directory with none of them", "/elsewhere");
    leave(&bench, "another session holds one with a hundredth of them", "/7");
    leave(&bench, "another session holds the index", "");
    core_close(bench.core);
    store_close(store);
    return 0;
}
