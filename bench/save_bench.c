/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a checkpoint costs while the applying thread is stopped for it, over RocksDB: the longest part
 * that is written ahead (core_save_ahead()), encoding the rest of what the store does not have
 * (core_save_rest()), and handing that to the store; the first time, and again where little has
 * changed since. With large open transactions, many locks held, sessions, and waiting requests. Times
 * are processor time.
 *
 * usage: save_bench [--dir DIRECTORY] [--overlays 4] [--locks 1000000] [--sessions 10000]
 *                   [--waits 10000] [--whole]
 *
 * Overlays have 64 MB of documents each. --whole: nothing is written ahead, and everything each
 * time (core_save()), to compare with.
 */
#include "core/step/core.h"

#include "base/error.h"
#include "core/command/command.h"
#include "core/step/save.h"
#include "index.h"
#include "store/store.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 1000, LOCKS_OF_SESSION = 100000, CHANGES = 60000, SOURCE_BYTES = 1000, RUNS = 5, AHEAD_BYTES = 1 << 20 };
enum { WAITS_OF_DOCUMENT = 100 };

struct bench {
    struct store *store;
    struct core *core;
    struct effects effects;
    bool whole;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "save_bench: %s\n", what);
    exit(1);
}

/* Returns: the processor time of this thread, which other processes of the machine do not change much. */
static double now_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

/* Applies a command, and the TICKs that continue it. */
static void step(struct bench *bench, struct command *command)
{
    command->ts = command->clock = core_last_ts(bench->core) + 1;
    if (core_step(bench->core, command, &bench->effects) != 0)
        die("a step failed");
    while (!list_empty(&bench->effects.completed)) {
        struct command *done = list_entry(bench->effects.completed.next, struct command, link);
        list_remove(&done->link);
        if (done->problem.type != PROBLEM_NONE)
            die(arena_printf(&done->arena, "%s: %.*s", command_name(done->type), SLICE_ARG(done->problem.reason)).data);
        command_free(done);
    }
    if (core_next_deadline(bench->core) == 0)
        step(bench, command_new(COMMAND_TICK, DIALECT_7));
}

static void open_session(struct bench *bench, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    step(bench, command);
}

/* Takes `count` locks of documents, in sessions. */
static void hold(struct bench *bench, size_t count)
{
    char id[32] = "";
    for (size_t first = 0; first < count; first += BATCH) {
        if (first % LOCKS_OF_SESSION == 0) {
            snprintf(id, sizeof id, "s%zu", first / LOCKS_OF_SESSION);
            open_session(bench, id);
        }
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        struct lock_target *targets = arena_zalloc(&command->arena, BATCH * sizeof *targets);
        for (size_t i = 0; i < BATCH; i++)
            targets[i] = (struct lock_target){
                .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "d%07zu", first + i)};
        command->owner.session = slice_from(id);
        command->lock.targets = targets;
        command->lock.target_count = BATCH;
        step(bench, command);
    }
}

static void open_sessions(struct bench *bench, size_t count)
{
    char id[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(id, sizeof id, "only%zu", i);
        open_session(bench, id);
    }
}

/* Requests the lock of a document, which a session has or another one waits for. */
static void lock(struct bench *bench, const char *session, size_t document)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    *target = (struct lock_target){
        .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "w%zu", document)};
    command->owner.session = arena_copy(&command->arena, slice_from(session));
    command->owner.timeout_us = 3600 * TL_SECOND;
    command->lock.targets = target;
    command->lock.target_count = 1;
    step(bench, command);
}

/* Makes `count` requests wait, WAITS_OF_DOCUMENT for each of some documents. */
static void wait_for_locks(struct bench *bench, size_t count)
{
    open_session(bench, "holds");
    open_session(bench, "waits");
    for (size_t i = 0; i < count; i++) {
        if (i % WAITS_OF_DOCUMENT == 0)
            lock(bench, "holds", i / WAITS_OF_DOCUMENT);
        lock(bench, "waits", i / WAITS_OF_DOCUMENT);
    }
}

/* Opens a transaction with 64 MB of changes. */
static void write_overlay(struct bench *bench, size_t number)
{
    static char source[SOURCE_BYTES];
    char id[32];
    snprintf(id, sizeof id, "t%zu", number);
    snprintf(source, sizeof source, "{\"v\":1,\"text\":\"%0*d\"}", SOURCE_BYTES - 40, 7);
    struct command *begin = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    begin->txn.id = slice_from(id);
    begin->txn.mode = TXN_UPDATE;
    begin->txn.idle_us = 3600 * TL_SECOND;
    step(bench, begin);
    for (size_t first = 0; first < CHANGES; first += BATCH) {
        struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
        command->owner.transaction = slice_from(id);
        command->write.items = arena_zalloc(&command->arena, BATCH * sizeof *command->write.items);
        command->write.item_count = BATCH;
        for (size_t i = 0; i < BATCH; i++)
            command->write.items[i] =
                (struct write_item){.op = WRITE_INDEX,
                                    .index = SLICE_LIT("fs"),
                                    .id = arena_printf(&command->arena, "t%zu-%zu", number, first + i),
                                    .source = slice_from(source),
                                    .version = VERSION_ANY,
                                    .if_seq_no = SEQ_NO_ANY};
        step(bench, command);
    }
}

static void await_checkpoint(struct bench *bench)
{
    int r;
    while ((r = store_checkpointed(bench->store)) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (r < 0)
        die("a checkpoint failed");
}

static double longest(double a, double b)
{
    return a > b ? a : b;
}

/* Writes ahead. Returns: the longest part. */
static double save_ahead(struct bench *bench, double *ret_whole)
{
    double most = 0, first = now_ms();
    for (bool more = true; more;) {
        double begun = now_ms();
        if (core_save_ahead(bench->core, AHEAD_BYTES, &more) != 0)
            die("writing ahead failed");
        most = longest(most, now_ms() - begun);
    }
    *ret_whole = now_ms() - first;
    return most;
}

static void write_one(struct bench *bench)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    command->write.items[0] = (struct write_item){.op = WRITE_INDEX,
                                                  .index = SLICE_LIT("fs"),
                                                  .id = SLICE_LIT("one"),
                                                  .source = SLICE_LIT("{\"v\":1}"),
                                                  .version = VERSION_ANY,
                                                  .if_seq_no = SEQ_NO_ANY};
    step(bench, command);
}

/* Saves several times, one document written between two. Prints the longest of each part. */
static void save(struct bench *bench, const char *what)
{
    double part = 0, ahead = 0, encode = 0, hand_over = 0;
    size_t bytes = 0;
    for (int i = 0; i < RUNS; i++) {
        struct buf record = BUF_INIT(BUF_UNLIMITED);
        double whole;
        write_one(bench);
        if (!bench->whole) {
            part = longest(part, save_ahead(bench, &whole));
            ahead = longest(ahead, whole);
        }
        double begun = now_ms();
        if (bench->whole)
            core_save(bench->core, &record);
        else if (core_save_rest(bench->core, &record) != 0)
            die("saving failed");
        double saved = now_ms();
        if (store_checkpoint(bench->store, buf_as_slice(&record)) != 0)
            die("a checkpoint failed");
        double done = now_ms();
        bytes = record.len;
        buf_deinit(&record);
        encode = longest(encode, saved - begun);
        hand_over = longest(hand_over, done - saved);
        await_checkpoint(bench);
    }
    printf("%-20s record of %7.2f MiB: ahead %8.2f ms, in parts of up to %6.2f ms; encoded in %8.2f ms, handed over in "
           "%8.2f ms\n",
           what, (double)bytes / (1 << 20), ahead, part, encode, hand_over);
}

/* What the command line says. */
static struct {
    const char *directory;
    size_t locks, overlays, sessions, waits;
    bool whole;
} arg = {.directory = "save_bench.data", .locks = 1000000, .overlays = 4, .sessions = 10000, .waits = 10000};

static error_t parse(int key, char *text, struct argp_state *state)
{
    (void)state;
    switch (key) {
    case 'd': arg.directory = text; break;
    case 'l': arg.locks = strtoull(text, NULL, 10); break;
    case 'o': arg.overlays = strtoull(text, NULL, 10); break;
    case 's': arg.sessions = strtoull(text, NULL, 10); break;
    case 'w': arg.waits = strtoull(text, NULL, 10); break;
    case 'a': arg.whole = true; break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {"dir", 'd', "DIRECTORY", 0, "of the store; save_bench.data without", 0},
        {"locks", 'l', "N", 0, "locks held; 1000000 without", 0},
        {"overlays", 'o', "N", 0, "open transactions with 64 MB of changes each; 4 without", 0},
        {"sessions", 's', "N", 0, "sessions without locks; 10000 without", 0},
        {"waits", 'w', "N", 0, "requests that wait for locks; 10000 without", 0},
        {"whole", 'a', NULL, 0, "write everything each time, and nothing ahead, to compare with", 0},
        {0},
    };
    static const struct argp argp = {table, parse, NULL, "Measures what a checkpoint costs.", NULL, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    struct bench bench = {.whole = arg.whole};
    struct store_options options = {.directory = slice_from(arg.directory)};
    struct core_limits limits = core_limits_default();
    char *reason = NULL;
    limits.sessions_max = limits.waiters_max = 100000000;
    effects_init(&bench.effects);
    if (store_open_rocks(&options, &bench.store, &reason) != 0)
        die(reason);
    if (core_open(bench.store, &limits, &bench.core) != 0)
        die("the core does not open");
    step(&bench, bench_index("fs", BENCH_INDEX_UUID, "{\"mappings\":{\"properties\":{\"v\":{\"type\":\"long\"}}}}"));
    save(&bench, "nothing");
    for (size_t i = 0; i < arg.overlays; i++)
        write_overlay(&bench, i);
    save(&bench, "open transactions");
    for (size_t i = 0; i < arg.overlays; i++) {
        char id[32];
        struct command *command = command_new(COMMAND_TXN_ROLLBACK, DIALECT_7);
        snprintf(id, sizeof id, "t%zu", i);
        command->txn.id = slice_from(id);
        step(&bench, command);
    }
    hold(&bench, arg.locks);
    save(&bench, "locks");
    open_sessions(&bench, arg.sessions);
    save(&bench, "and sessions");
    wait_for_locks(&bench, arg.waits);
    save(&bench, "and waits");
    core_stop(bench.core, &bench.effects);
    while (!list_empty(&bench.effects.completed)) {
        struct command *done = list_entry(bench.effects.completed.next, struct command, link);
        list_remove(&done->link);
        command_free(done);
    }
    core_close(bench.core);
    store_close(bench.store);
    return 0;
}
