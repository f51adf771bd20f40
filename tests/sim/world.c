/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/bounded.h"
#include "../lib/codec_roundtrip.h"
#include "../lib/feed_replay.h"
#include "../lib/settle.h"
#include "base/alloc.h"
#include "core/catalog/catalog.h"
#include "core/documents/path_lookup.h"
#include "core/step/save.h"
#include "core/unit/unit.h"
#include "mapping/mapping.h"

enum { MEM, ROCKS };

static const uint64_t start_of_time = (uint64_t)1000 * 1000 * 1000;

void world_fail(const struct world *world, const char *format, ...)
{
    char text[8192] = "";
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "sim: seed %llu, step %d: ", (unsigned long long)world->seed, world->step);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (world->op != NULL)
        gen_describe(world->op, text, sizeof(text));
    fprintf(stderr, "\n  %s\n  again: sim --trace %llu\n", text, (unsigned long long)world->seed);
    exit(1);
}

static int below(struct world *world, int bound)
{
    return (int)rng_below(&world->rng, (uint64_t)bound);
}

static bool one_in(struct world *world, int n)
{
    return below(world, n) == 0;
}

/* --- Hosts -------------------------------------------------------------------------------------------------------- */

static struct core_limits limits_of_hosts(void)
{
    struct core_limits limits = core_limits_default();

    limits.stale_documents_min = 10; /* so that sweeps run all the time */
    return limits;
}

static void checkpoint(struct host *host)
{
    settle(host->store);
    buf_clear(&host->saved);
    core_save(host->core, &host->saved);
}

static void open_core(struct world *world, struct host *host)
{
    struct core_limits limits = limits_of_hosts();

    host->saved = BUF_INIT(BUF_UNLIMITED);
    if (core_open(host->store, &limits, &host->core) != 0)
        world_fail(world, "%s: the core does not open", host->name);
    host->core->write_work_max = world->write_work_max;
    checkpoint(host);
}

/* Loads the core from a checkpoint. */
static void load_core(struct world *world, struct host *host, struct slice saved)
{
    struct core_limits limits = limits_of_hosts();

    if (core_load(host->store, &limits, saved, NULL, &host->core) != 0)
        world_fail(world, "%s: what was saved cannot be loaded", host->name);
    host->core->write_work_max = world->write_work_max;
}

static void open_rocks(struct world *world, struct host *host)
{
    struct store_options options = {.in_memory = world->rocks == WORLD_ROCKS_IN_MEMORY,
                                    .directory = slice_from(world->directory),
                                    .part_bytes = 100}; /* so that most batches are divided */
    char *reason = NULL;

    if (store_open_rocks(&options, &host->store, &reason) != 0)
        world_fail(world, "RocksDB does not open: %s", reason);
}

static void open_hosts(struct world *world)
{
    world->host_count = world->rocks == WORLD_MEM_ONLY ? 1 : 2;
    world->hosts[MEM] = (struct host){.name = "mem", .store = store_open_mem()};
    open_core(world, &world->hosts[MEM]);
    if (world->host_count == 1)
        return;
    snprintf(world->directory, sizeof(world->directory), "%s", "/tmp/tidelock-sim-XXXXXX");
    if (world->rocks == WORLD_ROCKS_ON_DISK && mkdtemp(world->directory) == NULL)
        world_fail(world, "no directory for RocksDB");
    world->hosts[ROCKS].name = "rocks";
    open_rocks(world, &world->hosts[ROCKS]);
    open_core(world, &world->hosts[ROCKS]);
}

static int remove_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void close_hosts(struct world *world)
{
    for (int i = 0; i < world->host_count; i++) {
        core_close(world->hosts[i].core);
        store_close(world->hosts[i].store);
        buf_deinit(&world->hosts[i].saved);
    }
    if (world->rocks == WORLD_ROCKS_ON_DISK && nftw(world->directory, remove_file, 8, FTW_DEPTH | FTW_PHYS) != 0)
        world_fail(world, "%s cannot be removed", world->directory);
}

static uint64_t digest(struct world *world, struct host *host)
{
    uint64_t value;

    if (core_digest(host->core, &value) != 0)
        world_fail(world, "%s: no digest", host->name);
    return value;
}

static void compare_digests(struct world *world)
{
    if (world->host_count == 2 && digest(world, &world->hosts[MEM]) != digest(world, &world->hosts[ROCKS]))
        world_fail(world, "the digests of the in-memory store and RocksDB differ");
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

/*
 * Takes the items that the core has postponed off the operation of a write: the last ones, but not
 * all. A host that applies the command later postpones as many.
 */
static void take_postponed(struct world *world, const struct host *host, struct logged *logged)
{
    struct sim_op *op = logged->op;
    const struct write_command *write = &logged->command->write;
    int count = (int)write->item_count, begun = count - (int)write->postponed_count;

    if (op->kind != SIM_WRITE || logged->command->problem.type != PROBLEM_NONE)
        return;
    if (logged->applied && (int)write->postponed_count != logged->postponed)
        world_fail(world, "%s: %d items are postponed, and %d elsewhere", host->name, (int)write->postponed_count,
                   logged->postponed);
    if (write->postponed_count > 0 && (op->atomic || begun == 0))
        world_fail(world, "%s: %s", host->name, op->atomic ? "an atomic write is divided" : "no item is begun");
    for (int i = 0; i < count; i++)
        if (write->results[i].postponed != (i >= begun))
            world_fail(world, "%s: %d items are postponed, and item %d is %s", host->name, (int)write->postponed_count,
                       i, i < begun ? "one of them" : "not");
    logged->postponed = (int)write->postponed_count;
    op->item_count = begun;
}

/*
 * Gives a command to a host. The outputs of an earlier time are cleared: the inputs never change.
 */
static void give(struct world *world, struct host *host, struct logged *logged)
{
    struct command *command = logged->command;
    struct effects effects;

    effects_init(&effects);
    if (command->type == COMMAND_RENAME)
        command->rename.unknown = false;
    command->ts = logged->ts;
    command->memory_full = logged->ts % 3 == 0; /* on all hosts; without effect, since no session has cleanup actions */
    command->problem = (struct problem){0};
    if (core_step(host->core, command, &effects) != 0)
        world_fail(world, "%s: the step failed", host->name);
    char excess[200];
    if (!bounded(host->core, excess, sizeof excess))
        world_fail(world, "%s: %s", host->name, excess);
    if (effects.completed.next != &command->link || effects.completed.prev != &command->link)
        world_fail(world, "%s: the command did not complete, or others did", host->name);
    list_remove(&command->link);
    if (command->ts != logged->ts || core_last_ts(host->core) != logged->ts)
        world_fail(world, "%s: the command took effect at another timestamp", host->name);
    bool unknown = command->type == COMMAND_RENAME && command->rename.unknown;
    take_postponed(world, host, logged);
    if (!logged->applied && !unknown)
        model_apply(&world->model, logged->op, logged->ts, logged->expected);
    if (logged->applied && logged->unknown != unknown)
        world_fail(world, "%s: whether findings of a rename are out of date differs", host->name);
    logged->applied = true;
    logged->unknown = unknown;
    if (!unknown)
        check_command(world, host, logged->op, logged->expected, command);
}

static void maintain(struct world *world, struct host *host, const struct logged *logged)
{
    struct effects effects;

    effects_init(&effects);
    logged->command->ts = logged->ts;
    if (core_step(host->core, logged->command, &effects) != 0 || effects.completed.next != &logged->command->link ||
        effects.completed.prev != &logged->command->link || core_last_ts(host->core) != logged->ts)
        world_fail(world, "%s: [%s] failed", host->name, command_name(logged->command->type));
    bounded_check(host->core);
    list_remove(&logged->command->link);
}

static void apply(struct world *world, struct host *host, struct logged *logged)
{
    if (logged->op == NULL)
        maintain(world, host, logged);
    else
        give(world, host, logged);
}

static struct logged *cmdlog_next(struct world *world)
{
    if (world->log_count == world->log_capacity) {
        world->log_capacity = world->log_capacity == 0 ? 16 : world->log_capacity * 2;
        world->log = mem_realloc(world->log, world->log_capacity * sizeof(*world->log));
    }
    struct logged *logged = &world->log[world->log_count++];
    *logged = (struct logged){.ts = world->now};
    world->commands++;
    return logged;
}

static void apply_everywhere(struct world *world, struct logged *logged)
{
    for (int i = 0; i < world->host_count; i++)
        apply(world, &world->hosts[i], logged);
}

static void forget_log(struct world *world)
{
    for (size_t i = 0; i < world->log_count; i++) {
        command_free(world->log[i].command);
        mem_free(world->log[i].op);
        mem_free(world->log[i].expected);
    }
    world->log_count = 0;
    world->op = NULL;
}

static void trace(struct world *world, const char *what)
{
    char text[8192];

    if (!world->traces)
        return;
    gen_describe(world->op, text, sizeof(text));
    printf("[%d @%llu] %s %s\n", world->step, (unsigned long long)world->now, what, text);
}

/* --- Findings ----------------------------------------------------------------------------------------------------- */

/* Chooses a path at which something is about to be written, or one above it; or any. */
static void choose_path(struct world *world, const struct sim_op *op, struct finding *finding)
{
    static const char *const names[] = {"/a", "/b", "/A", "/ab"};
    const struct sim_item *item = op == NULL ? NULL : &op->items[0];

    snprintf(finding->index, SIM_NAME, "%s", rng_below(&world->aside, 4) == 0 ? "ix1" : "ix0");
    snprintf(finding->path, SIM_PATH_MAX, "%s%s", names[rng_below(&world->aside, 4)],
             rng_below(&world->aside, 2) == 0 ? "" : names[rng_below(&world->aside, 2)]);
    if (op == NULL || rng_below(&world->aside, 4) == 0)
        return;
    if (op->kind == SIM_WRITE && op->item_count > 0 && item->source.path[0] == '/') {
        snprintf(finding->index, SIM_NAME, "%s", item->index);
        snprintf(finding->path, SIM_PATH_MAX, "%s", item->source.path);
        for (char *end; rng_below(&world->aside, 2) == 0 && (end = strrchr(finding->path, '/')) != finding->path;)
            *end = '\0';
    } else if (op->kind == SIM_RENAME) {
        snprintf(finding->index, SIM_NAME, "%s", op->name);
        snprintf(finding->path, SIM_PATH_MAX, "%s", rng_below(&world->aside, 3) > 0 ? op->to : op->from);
        size_t len = strlen(finding->path);
        if (len > 1 && finding->path[len - 1] == '/')
            finding->path[len - 1] = '\0';
    }
}

static void free_finding(struct finding *finding)
{
    mem_free((void *)(uintptr_t)finding->found.document.data);
    mem_free((void *)(uintptr_t)finding->found.below.data);
    *finding = (struct finding){0};
}

static struct slice key_copy(struct slice key)
{
    return key.data == NULL ? SLICE_NONE : slice_make(mem_dup(key.data, key.len), key.len);
}

/* Searches a path on a host, as a submitter does. */
static void search(struct world *world, struct host *host, struct finding *finding)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct view view = {.store = host->store, .ts = core_last_ts(host->core)};
    struct catalog *catalog = core_catalog(host->core);
    const struct catalog_index *index = catalog_index(catalog, slice_from(finding->index));
    struct slice document, below;

    if (index != NULL && mapping_is_tree(index->mapping)) {
        if (path_lookup_find(&view, index->number, index->mapping, slice_from(finding->path), NULL, &arena, &document,
                             &below) != 0)
            world_fail(world, "%s: [%s] cannot be searched", host->name, finding->path);
        finding->found = (struct path_finding){view.ts, key_copy(document), key_copy(below)};
    }
    catalog_unref(catalog);
    finding->commands = world->commands;
}

/* Has a path watched, and searches it. */
static void do_watch(struct world *world, const struct sim_op *op)
{
    struct finding *finding = &world->findings[rng_below(&world->aside, FINDINGS)];
    struct logged *logged = cmdlog_next(world);

    free_finding(finding);
    choose_path(world, op, finding);
    logged->command = command_new(COMMAND_PLACES_WATCH, DIALECT_7);
    logged->command->places =
        (struct places_command){slice_from(finding->index), {slice_from(finding->path), SLICE_LIT("/b")}};
    logged->command = codec_roundtrip(logged->command);
    apply_everywhere(world, logged);
    search(world, &world->hosts[rng_below(&world->aside, (uint64_t)world->host_count)], finding);
}

static const struct finding *finding_of(const struct world *world, struct slice index, struct slice path)
{
    for (int i = 0; i < FINDINGS; i++)
        if (slice_equal(index, slice_from(world->findings[i].index)) &&
            slice_equal(path, slice_from(world->findings[i].path)))
            return &world->findings[i];
    return NULL;
}

/* Adds findings to a rename, new ones and those of before. Returns: whether all are new. */
static bool add_findings(struct world *world, struct command *command)
{
    struct rename_command *rename = &command->rename;
    const struct finding *from = finding_of(world, rename->index, rename->from);
    const struct finding *to = finding_of(world, rename->index, rename->to);

    if (from != NULL)
        rename->found_from = from->found;
    if (to != NULL)
        rename->found_to = to->found;
    return (from == NULL || from->commands == world->commands) && (to == NULL || to->commands == world->commands);
}

/* Submits the postponed items of the last write, which may postpone some again. */
static void do_postponed(struct world *world)
{
    while (world->log[world->log_count - 1].postponed > 0) {
        const struct logged *before = &world->log[world->log_count - 1];
        struct sim_op *op = mem_dup(before->op, sizeof *op);

        op->item_count = before->postponed;
        memmove(op->items, op->items + before->op->item_count, (size_t)op->item_count * sizeof *op->items);
        world->now++;
        struct logged *logged = cmdlog_next(world);
        logged->op = world->op = op;
        logged->expected = mem_alloc(sizeof *logged->expected);
        trace(world, "again");
        logged->command = codec_roundtrip(gen_command(op));
        apply_everywhere(world, logged);
    }
}

static void do_command(struct world *world)
{
    struct sim_op *op = mem_alloc(sizeof *op);
    bool exact = true;

    gen_op(&world->rng, &world->model, op);
    gen_gc_deletes(&world->aside, op);
    if (world->divides)
        op->request = 0; /* the model knows no outcome of a named write that is divided */
    if (rng_below(&world->aside, 4) == 0) {
        do_watch(world, op);
        world->now++;
    }
    struct command *command = gen_command(op);
    if (command->type == COMMAND_RENAME)
        exact = add_findings(world, command);
    struct logged *logged = cmdlog_next(world);
    logged->op = world->op = op;
    logged->expected = mem_alloc(sizeof(*logged->expected));
    trace(world, "");
    logged->command = codec_roundtrip(command);
    apply_everywhere(world, logged);
    if (exact && logged->unknown)
        world_fail(world, "a rename is unknown whose findings were not out of date");
    do_postponed(world);
}

static void do_maintain(struct world *world)
{
    struct logged *logged = cmdlog_next(world);

    if (world->traces)
        printf("[%d @%llu] maintain\n", world->step, (unsigned long long)world->now);
    /* Entries that one host has found stale are removed on all hosts. */
    struct host *host = &world->hosts[below(world, world->host_count)];
    size_t keys_max = one_in(world, 2) ? 3 : 10000;
    struct core_horizons past = {.history_low = world->history_low};
    if (world->now > SIM_TOMBSTONE_US && one_in(world, 2))
        past.tombstones = world->now - SIM_TOMBSTONE_US;
    world->model.forgotten = past.tombstones > world->model.forgotten ? past.tombstones : world->model.forgotten;
    if (world->now > SIM_TOMBSTONE_US && one_in(world, 2))
        past.outcomes = world->now - SIM_TOMBSTONE_US;
    if (past.outcomes > world->model.outcomes_from)
        world->model.outcomes_from = past.outcomes;
    if (core_propose_maintenance(host->core, &past, keys_max, &logged->command) != 0)
        world_fail(world, "%s: no upkeep is proposed", host->name);
    logged->command = codec_roundtrip(logged->command);
    apply_everywhere(world, logged);
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static void sync_all(struct world *world)
{
    for (int i = 0; i < world->host_count; i++)
        checkpoint(&world->hosts[i]);
    forget_log(world);
    world->synced = world->now;
}

/*
 * Crashes the in-memory host: it returns to its checkpoint and replays the log, in two parts with a
 * checkpoint in between.
 */
static void crash_memory_host(struct world *world)
{
    struct host *host = &world->hosts[MEM];
    uint64_t before = digest(world, host);
    size_t first = rng_below(&world->rng, world->log_count + 1);
    struct buf saved = BUF_INIT(BUF_UNLIMITED);

    core_close(host->core);
    store_mem_crash(host->store, 0);
    load_core(world, host, buf_as_slice(&host->saved));
    if (world->traces)
        printf("[%d] crash; %zu commands given again\n", world->step, world->log_count);
    for (size_t i = 0; i < first; i++)
        apply(world, host, &world->log[i]);
    core_save(host->core, &saved);
    core_close(host->core);
    load_core(world, host, buf_as_slice(&saved));
    for (size_t i = first; i < world->log_count; i++)
        apply(world, host, &world->log[i]);
    if (digest(world, host) != before)
        world_fail(world, "the digest differs after a crash and giving %zu commands again", world->log_count);
    buf_deinit(&saved);
}

static void reopen(struct world *world, struct host *host, bool store_too)
{
    uint64_t before = digest(world, host);
    struct buf saved = BUF_INIT(BUF_UNLIMITED);

    core_save(host->core, &saved);
    core_close(host->core);
    if (store_too) {
        settle(host->store);
        store_close(host->store);
        open_rocks(world, host);
    }
    load_core(world, host, buf_as_slice(&saved));
    buf_deinit(&saved);
    if (digest(world, host) != before)
        world_fail(world, "%s: the digest differs after opening again", host->name);
}

static void tidy_rocks(struct world *world)
{
    struct store *store = world->hosts[ROCKS].store;

    settle(store);
    if (world->rocks == WORLD_ROCKS_ON_DISK && one_in(world, 8) && store_compact(store) != 0)
        world_fail(world, "RocksDB does not compact");
}

static void raise_history(struct world *world)
{
    if (world->synced <= world->history_low)
        return;
    world->history_low += rng_below(&world->rng, world->synced - world->history_low + 1);
    for (int i = 0; i < world->host_count; i++)
        if (store_set_history_low(world->hosts[i].store, world->history_low) != 0)
            world_fail(world, "%s: the cut-off cannot be raised", world->hosts[i].name);
}

static void look_at_past(struct world *world)
{
    uint64_t ts = world->history_low + rng_below(&world->rng, world->now - world->history_low + 1);

    check_state(world, &world->hosts[below(world, world->host_count)], ts);
}

/* A consumer of any host's feed, from any timestamp, gets the complete state. */
static void check_feed(struct world *world)
{
    struct buf wrong = BUF_INIT(BUF_UNLIMITED);
    const struct host *host = &world->hosts[rng_below(&world->aside, (uint64_t)world->host_count)];
    tl_ts now = core_last_ts(host->core), low = world->history_low;
    tl_ts since = rng_below(&world->aside, 3) == 0 || now < low ? 0 : low + rng_below(&world->aside, now - low + 1);

    if (!feed_replay_check(host->store, since, now, low, rng_below(&world->aside, 2) == 0, &wrong))
        world_fail(world, "%s, followed since %llu: %.*s", host->name, (unsigned long long)since,
                   SLICE_ARG(buf_as_slice(&wrong)));
}

/* Cuts the feed, or turns it on or off. */
static void do_feed(struct world *world)
{
    struct logged *logged = cmdlog_next(world);

    logged->command = command_new(COMMAND_FEED, DIALECT_7);
    logged->command->feed.off = rng_below(&world->aside, 6) == 0;
    logged->command->feed.cut = world->now - rng_below(&world->aside, 200000);
    logged->command = codec_roundtrip(logged->command);
    apply_everywhere(world, logged);
}

/* What happens between commands. */
static void maybe_event(struct world *world)
{
    if (one_in(world, 8))
        sync_all(world);
    if (one_in(world, 25))
        crash_memory_host(world);
    if (one_in(world, 40))
        reopen(world, &world->hosts[below(world, world->host_count)], false);
    if (world->rocks == WORLD_ROCKS_ON_DISK && one_in(world, 30))
        reopen(world, &world->hosts[ROCKS], true);
    if (world->host_count == 2 && one_in(world, 60))
        tidy_rocks(world);
    if (one_in(world, 15))
        look_at_past(world);
    if (one_in(world, 40))
        raise_history(world);
    if (one_in(world, 30))
        check_entries(world, &world->hosts[below(world, world->host_count)]);
    if (one_in(world, 30))
        compare_digests(world);
}

static void advance_time(struct world *world)
{
    int kind = below(world, 40);

    world->now +=
        1 + (kind == 0 ? rng_below(&world->rng, 2 * SIM_TOMBSTONE_US) : rng_below(&world->rng, kind < 20 ? 3 : 100000));
}

static void check_all(struct world *world)
{
    compare_digests(world);
    for (int i = 0; i < world->host_count; i++) {
        reopen(world, &world->hosts[i], i == ROCKS && world->rocks == WORLD_ROCKS_ON_DISK);
        check_state(world, &world->hosts[i], world->now);
        check_entries(world, &world->hosts[i]);
    }
}

void world_live(uint64_t seed, int steps, enum world_rocks rocks, bool divides, bool traces)
{
    struct world world = {
        .seed = seed, .rocks = rocks, .traces = traces, .now = start_of_time, .history_low = start_of_time};

    rng_init(&world.rng, seed);
    rng_init(&world.aside, ~seed);
    world.divides = divides;
    world.write_work_max = divides ? 100 + rng_below(&world.aside, 1500) : WRITE_WORK_MAX;
    model_init(&world.model);
    open_hosts(&world);
    for (world.step = 1; world.step <= steps; world.step++) {
        advance_time(&world);
        if (one_in(&world, 25))
            do_maintain(&world);
        else
            do_command(&world);
        if (rng_below(&world.aside, 60) == 0) {
            world.now++;
            do_feed(&world);
        }
        maybe_event(&world);
        check_feed(&world);
    }
    check_all(&world);
    forget_log(&world);
    for (int i = 0; i < FINDINGS; i++)
        free_finding(&world.findings[i]);
    mem_free(world.log);
    close_hosts(&world);
    model_deinit(&world.model);
}
