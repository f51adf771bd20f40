/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core alone can do: puts, changes, updates, scripts and bulks through core_step() on RocksDB, with no journal
 * and no sync, on one thread.
 *
 * usage: core_bench [--docs N] [--bulk N] [--dir DIR]
 *
 * Documents of about 400 bytes shaped like the files of a file system; the mapping makes all seven fields and the
 * directories of the path searchable, as that of loads.py, and leaves the filling out. DIR must not exist; it is left
 * there.
 */
#include "../tests/lib/arguments.h"
#include "../tests/lib/settle.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/rand.h"
#include "core/step/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VALUE_BYTES = 400 };

struct bench {
    struct core *core;
    struct effects effects;
    tl_ts ts;
    uint64_t docs;
    size_t bulk;
    struct buf source;
    struct rng rng;
};

static double busy_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what, const char *reason)
{
    fprintf(stderr, "core_bench: %s: %s\n", what, reason != NULL ? reason : "failed");
    exit(1);
}

static const char *word(uint64_t number)
{
    static const char *const words[] = {"projects", "include", "linux",  "share",   "doc",    "python3",
                                        "lib",      "x86_64",  "locale", "LC_TIME", "module", "kernel",
                                        "man",      "driver",  "icons",  "hicolor"};
    return words[number % (sizeof words / sizeof *words)];
}

static uint64_t mixed(uint64_t number)
{
    number *= 0x9e3779b97f4a7c15u;
    return number ^ number >> 29;
}

/* Document `number` in one of its versions, which differ in size and mtime only. */
static struct slice make_source(struct bench *bench, uint64_t number, uint64_t version)
{
    struct buf *buf = &bench->source;
    unsigned long long r = mixed(number ^ 0x5555), v = mixed(version);

    buf_clear(buf);
    buf_printf(buf, "{\"name\":\"%s-%llx.txt\",\"path\":\"/clinton", word(r), r >> 40);
    for (int i = 0; i < 4; i++, r = mixed(r))
        buf_printf(buf, "/%s%llu", word(r), (r >> 16) % 50);
    buf_printf(buf, "\",\"size\":%llu,\"mtime\":\"2026-%02llu-%02lluT%02llu:%02llu:00Z\",\"mode\":\"0644\",",
               v % 1000000, v % 12 + 1, v % 28 + 1, v % 24, v % 60);
    buf_printf(buf, "\"type\":\"file\",\"owner\":\"user%llu\",\"note\":\"", r % 300);
    for (; buf->len < VALUE_BYTES - 2; r = mixed(r + 1))
        buf_printf(buf, "%s %llu ", word(r), r >> 48);
    buf->len = VALUE_BYTES - 2;
    buf_lit(buf, "\"}");
    return buf_as_slice(buf);
}

static struct slice make_id(struct arena *arena, uint64_t number)
{
    return arena_printf(arena, "f%07llu", (unsigned long long)number);
}

static void step(struct bench *bench, struct command *command)
{
    command->ts = ++bench->ts;
    if (core_step(bench->core, command, &bench->effects) != 0)
        die("step", NULL);
    list_remove(bench->effects.completed.next);
    if (command->problem.type != PROBLEM_NONE)
        die(command_name(command->type), command->problem.reason.data);
    if (command->type == COMMAND_WRITE && command->write.results[0].outcome == WRITE_FAILED)
        die("write", command->write.results[0].problem.reason.data);
    command_free(command);
}

static void make_index(struct bench *bench)
{
    struct command *command = command_new(COMMAND_INDEX_CREATE, DIALECT_7);

    command->index.name = SLICE_LIT("fs");
    command->index.body =
        SLICE_LIT("{\"settings\":{\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}},"
                  "\"mappings\":{\"properties\":{\"name\":{\"type\":\"keyword\"},"
                  "\"path\":{\"type\":\"keyword\",\"fields\":{\"tree\":{\"type\":\"text\",\"analyzer\":\"paths\"}}},"
                  "\"size\":{\"type\":\"long\"},\"mtime\":{\"type\":\"date\"},\"mode\":{\"type\":\"keyword\"},"
                  "\"type\":{\"type\":\"keyword\"},\"owner\":{\"type\":\"keyword\"},"
                  "\"note\":{\"type\":\"keyword\",\"index\":false,\"doc_values\":false}}}}");
    step(bench, command);
}

static struct write_item make_item(struct bench *bench, struct arena *arena, enum write_op op, uint64_t number,
                                   uint64_t version)
{
    struct write_item item = {.op = op,
                              .index = SLICE_LIT("fs"),
                              .id = make_id(arena, number),
                              .version = VERSION_ANY,
                              .if_seq_no = SEQ_NO_ANY};
    if (op == WRITE_INDEX)
        item.source = arena_copy(arena, make_source(bench, number, version));
    return item;
}

static struct command *make_write(struct bench *bench, enum write_op op, uint64_t first, uint64_t version, size_t count)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);

    command->write.items = arena_alloc(&command->arena, count * sizeof(struct write_item));
    command->write.item_count = count;
    for (size_t i = 0; i < count; i++)
        command->write.items[i] = make_item(bench, &command->arena, op, first + i, version);
    return command;
}

/* Loads all documents in bulks. */
static void load(struct bench *bench)
{
    double took = 0;

    for (uint64_t first = 0; first < bench->docs; first += bench->bulk) {
        struct command *command = make_write(bench, WRITE_INDEX, first, 0, bench->bulk);
        double start = busy_s();
        step(bench, command);
        took += busy_s() - start;
    }
    printf("%-36s %8.2f us, %.0f documents/s\n", "bulk, a new document", took * 1e6 / (double)bench->docs,
           (double)bench->docs / took);
}

typedef struct command *maker(struct bench *bench, uint64_t turn);

static struct command *put_same(struct bench *bench, uint64_t turn)
{
    (void)turn;
    return make_write(bench, WRITE_INDEX, rng_below(&bench->rng, bench->docs), 0, 1);
}

static struct command *put_changed(struct bench *bench, uint64_t turn)
{
    return make_write(bench, WRITE_INDEX, rng_below(&bench->rng, bench->docs), turn + 1, 1);
}

static struct command *put_hot(struct bench *bench, uint64_t turn)
{
    return make_write(bench, WRITE_INDEX, rng_below(&bench->rng, 1000), turn + 1, 1);
}

static struct command *put_new(struct bench *bench, uint64_t turn)
{
    return make_write(bench, WRITE_INDEX, bench->docs + turn, 0, 1);
}

static struct command *update_with(struct bench *bench, const struct write_update *update)
{
    struct command *command = make_write(bench, WRITE_UPDATE, rng_below(&bench->rng, 1000), 0, 1);

    command->write.items[0].update = update;
    return command;
}

static struct command *update_doc(struct bench *bench, uint64_t turn)
{
    static const struct write_update even = {.doc = SLICE_LIT("{\"size\":1}"), .detect_noop = true};
    static const struct write_update odd = {.doc = SLICE_LIT("{\"size\":2}"), .detect_noop = true};
    return update_with(bench, turn % 2 == 0 ? &even : &odd);
}

static struct command *update_script(struct bench *bench, uint64_t turn)
{
    static const struct write_update update = {.script_source = SLICE_LIT("ctx._source.size++")};
    (void)turn;
    return update_with(bench, &update);
}

static struct command *delete_new(struct bench *bench, uint64_t turn)
{
    return make_write(bench, WRITE_DELETE, bench->docs + turn, 0, 1);
}

static void measure(struct bench *bench, const char *what, maker *make)
{
    enum { TURNS = 50000 };
    double took = 0;

    for (uint64_t turn = 0; turn < TURNS; turn++) {
        struct command *command = make(bench, turn);
        double start = busy_s();
        step(bench, command);
        took += busy_s() - start;
    }
    printf("%-36s %8.2f us\n", what, took * 1e6 / TURNS);
}

int main(int argc, char **argv)
{
    struct bench bench = {.ts = 1000, .docs = 200000, .bulk = 1000, .source = BUF_INIT(BUF_UNLIMITED)};
    struct store_options options = {.directory = SLICE_NONE};
    struct core_limits limits = core_limits_default();
    struct store *store;
    char *reason = NULL;

    const char *directory = "core_bench.data";
    const struct argument arguments[] = {
        {"--docs", .number = &bench.docs}, {"--bulk", .number = &bench.bulk}, {"--dir", .text = &directory}, {0}};

    arguments_take(argc, argv, arguments);
    options.directory = slice_from(directory);
    rng_init(&bench.rng, 1);
    effects_init(&bench.effects);
    if (store_open_rocks(&options, &store, &reason) != 0)
        die("open", reason);
    if (core_open(store, &limits, &bench.core) != 0)
        die("core", NULL);
    make_index(&bench);
    load(&bench);
    settle(store);
    measure(&bench, "put, nothing changed", put_same);
    measure(&bench, "put, two fields changed", put_changed);
    measure(&bench, "put, the same of 1,000 documents", put_hot);
    measure(&bench, "put, a new document", put_new);
    measure(&bench, "delete", delete_new);
    measure(&bench, "update by document", update_doc);
    measure(&bench, "update by script", update_script);
    core_close(bench.core);
    store_close(store);
    buf_deinit(&bench.source);
    return 0;
}
