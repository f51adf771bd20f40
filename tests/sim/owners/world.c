/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/bounded.h"
#include "../../lib/codec_roundtrip.h"
#include "../../lib/feed_replay.h"
#include "../../lib/settle.h"
#include "base/alloc.h"
#include "base/siphash.h"
#include "dirs.h"
#include "core/cleanup/deferred.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/session/txn.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"
#include "core/step/command_group.h"
#include "core/step/save.h"

static const uint64_t start_of_time = (uint64_t)1000 * 1000 * 1000;

static const char *const profile_names[] = {
    [GEN_LOCKS] = "locks", [GEN_TXNS] = "transactions", [GEN_RENAMES] = "renames"};

void world_fail(const struct world *world, const char *format, ...)
{
    char text[2048] = "";
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "owners: seed %llu, step %d: ", (unsigned long long)world->seed, world->step);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (world->op != NULL)
        gen_describe(world->op, text, sizeof(text));
    fprintf(stderr, "\n");
    if (world->traces && world->core != NULL)
        compare_dump(world);
    fprintf(stderr, "  %s\n  again: owners --%s --trace %llu\n", text, profile_names[world->gen.profile],
            (unsigned long long)world->seed);
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

/* --- Hooks of the lock table -------------------------------------------------------------------------------------- */

static uint64_t name_of(const struct lock_request *request)
{
    const struct wait *wait = lock_request_user(request);

    return wait->command != NULL ? wait->command->request : om_deferred_name(wait->deferred->number);
}

static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *steps, size_t count,
                        bool requeued)
{
    struct world *world = context;

    if (world->cycle_count == OM_CYCLES || count > OM_CYCLE_EDGES)
        world_fail(world, "more cycles than the world has room for");
    struct om_cycle *cycle = &world->cycles[world->cycle_count++];
    *cycle = (struct om_cycle){.victim = name_of(victim), .requeued = requeued, .count = (int)count};
    for (size_t i = 0; i < count; i++)
        cycle->steps[i] = name_of(steps[i].request);
    world->hooks.deadlock(world->hooks.context, victim, steps, count, requeued);
}

static void on_changed(void *context, const struct lock_hold *hold, bool gone)
{
    struct world *world = context;

    world->hooks.changed(world->hooks.context, hold, gone);
}

static void on_piece_unused(void *context, uint64_t piece)
{
    struct world *world = context;

    world->hooks.piece_unused(world->hooks.context, piece);
}

static void on_request_moved(void *context, const struct lock_request *request)
{
    struct world *world = context;

    world->hooks.request_moved(world->hooks.context, request);
}

/* --- The host ----------------------------------------------------------------------------------------------------- */

/* Small limits, so that each is reached. */
static const struct om_limits limits = {
    .sessions = 6, .txns = 6, .locks = 12, .waiters = 9, .changes = 5, .ephemeral = 4, .piece = 2, .sweep = 1};
enum { CHUNK_HOLDS = 3 };

static struct core_limits small_limits(void)
{
    struct core_limits core_limits = core_limits_default();

    core_limits.sessions_max = (size_t)limits.sessions;
    core_limits.transactions_max = (size_t)limits.txns;
    core_limits.locks_per_session_max = (size_t)limits.locks;
    core_limits.waiters_max = (size_t)limits.waiters;
    core_limits.transaction_changes_max = (size_t)limits.changes;
    core_limits.ephemeral_max = (size_t)limits.ephemeral;
    core_limits.ephemeral_batch = (size_t)limits.piece;
    core_limits.purge_batch = (size_t)limits.sweep;
    return core_limits;
}

static bool unlocks_one(uint64_t seed)
{
    return seed % 4 == 1;
}

static bool reads_one(uint64_t seed)
{
    return seed % 4 == 0;
}

/*
 * A core has few sessions and waits, so a chunk of theirs has one or two. In two of three seeds single writes of
 * transactions put their entries ahead, from the first on or once the commit has four. In a fourth of them an
 * UNLOCK releases one name, and in another a TXN_LOCK acquires the locks of one target.
 */
static void make_parts_small(const struct world *world, struct core *core)
{
    core->provisional_work = world->seed % 3 == 0 ? ENTRIES_PROVISIONAL_WORK : (world->seed % 3 - 1) * 4 * WORK_ENTRY;
    core->unlock_work = unlocks_one(world->seed) ? 1 : UNLOCK_WORK_PER_COST;
    core->reads_work_max = reads_one(world->seed) ? 1 : LOCK_WORK_MAX;
    core->action_work = UINT64_MAX; /* the model does not know how much an index takes */
    core->owners->locks.chunk_holds = CHUNK_HOLDS;
    core->owners->session_chunks.members_max = 2;
    core->owners->wait_chunks.members_max = 2;
}

/* Puts the world's hooks in front of those of the core. */
static void set_hooks(struct world *world)
{
    struct lock_table *table = &world->core->owners->locks;
    world->hooks = table->hooks;
    table->hooks = (struct lock_hooks){on_deadlock, on_changed, on_piece_unused, on_request_moved, world};
    make_parts_small(world, world->core);
}

static void open_core(struct world *world)
{
    struct core_limits core_limits = small_limits();

    if (core_open(world->store, &core_limits, &world->core) != 0)
        world_fail(world, "the core does not open");
    set_hooks(world);
}

static void free_completed(struct effects *effects)
{
    while (!list_empty(&effects->completed)) {
        struct command *command = list_entry(effects->completed.next, struct command, link);
        list_remove(&command->link);
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
        command_free(command);
    }
}

struct core *world_recover(const struct world *world, struct store *store, struct slice saved, size_t count,
                           struct effects *effects)
{
    struct core_limits core_limits = small_limits();
    struct buf reason = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED);
    struct core *core;

    if (core_load(store, &core_limits, saved, &reason, &core) != 0)
        world_fail(world, "the checkpoint cannot be loaded: %.*s", SLICE_ARG(buf_as_slice(&reason)));
    if (core_save_rest(core, &again) != 0 || !slice_equal(saved, buf_as_slice(&again)))
        world_fail(world, "what was loaded saves other bytes");
    make_parts_small(world, core);
    for (size_t i = 0; i < count; i++) {
        struct list commands = LIST_INIT(commands);
        struct command_group_header head;
        struct slice bytes = slice_make(world->log[i].bytes, world->log[i].len);
        if (command_group_decode(bytes, &head, &commands) != 0 ||
            command_group_apply(core, &head, &commands, effects) != 0)
            world_fail(world, "command %zu since the checkpoint cannot be applied again", i);
        free_completed(effects);
    }
    buf_deinit(&reason);
    buf_deinit(&again);
    return core;
}

static void open_store(struct world *world)
{
    struct store_options options = {.in_memory = world->kind == WORLD_ROCKS_IN_MEMORY,
                                    .directory = slice_from(world->directory)};
    char *reason = NULL;

    if (world->kind == WORLD_MEM)
        world->store = store_open_mem();
    else if (store_open_rocks(&options, &world->store, &reason) != 0)
        world_fail(world, "RocksDB does not open: %s", reason);
}

static int remove_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static uint64_t digest(struct world *world)
{
    uint64_t value;

    if (core_digest(world->core, &value) != 0)
        world_fail(world, "no digest");
    world->chain = (world->chain ^ value) * 0x9e3779b97f4a7c15u;
    return value;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static void keep_copy(struct world *world)
{
    if (world->copy_count == world->copy_capacity) {
        world->copy_capacity = world->copy_capacity == 0 ? 16 : world->copy_capacity * 2;
        world->copies = mem_realloc(world->copies, world->copy_capacity * sizeof(*world->copies));
    }
    world->copies[world->copy_count++] = world->model;
}

static void trace(const struct world *world, const struct om_op *op)
{
    char text[2048];

    gen_describe(op, text, sizeof(text));
    printf("[%d @%llu] %s\n", world->step, (unsigned long long)world->now, text);
}

static void trace_done(const struct om_done *done)
{
    printf("    #%llu @%llu: problem %d", (unsigned long long)done->op->number, (unsigned long long)done->ts,
           done->problem);
    for (int i = 0; done->op->kind == OP_WRITE && i < done->op->count; i++)
        printf(" [%d %d]", done->results[i].outcome, done->results[i].problem);
    printf(done->token != 0 ? " %llu\n" : "\n", (unsigned long long)done->token);
}

static bool is_of_txn(const struct om_version *version)
{
    return version->committed;
}

/* Adds writes outside of transactions to the commit order: each version is a record. */
static void trace_versions(struct world *world, size_t from)
{
    for (size_t i = from; i < world->model.history; i++) {
        const struct om_version *version = &world->history.versions[i];
        if (is_of_txn(version))
            continue;
        size_t record = commit_order_begin(&world->commit_order, 0, (uint64_t)world->step);
        int first = version->number == OM_WHOLE_INDEX ? 0 : version->number;
        int last = version->number == OM_WHOLE_INDEX ? OM_DOCS - 1 : version->number;
        for (int doc = first; doc <= last; doc++)
            commit_order_add(&world->commit_order, record, COMMIT_ORDER_SET, version->index * OM_DOCS + doc,
                             version->doc.live && version->number != OM_WHOLE_INDEX
                                 ? commit_order_value(version->doc.value, version->doc.dir)
                                 : -1);
        commit_order_commit(&world->commit_order, record, version->ts, (uint64_t)world->step);
    }
}

/* Discards records of transactions that ended without a reply to the client. */
static void forget_ended(struct world *world)
{
    for (size_t i = world->commit_order.count; i-- > 0;) {
        const struct commit_order_record *record = &world->commit_order.records[i];
        bool open = false;
        if (record->ended_at != 0)
            continue;
        for (int j = 0; j < OM_TXNS; j++)
            open |= world->model.txns[j].serial == record->txn;
        for (int j = 0; j < WORLD_QUERIES; j++)
            open |= world->queries[j].txn == record->txn;
        if (!open)
            commit_order_rollback(&world->commit_order, i);
    }
}

/* Applies an operation to the model, with the deadlock cycles that the product has reported. */
static void apply_model(struct world *world, const struct om_op *op)
{
    struct om_step *expected = &world->expected;

    expected->cycles = world->cycles;
    expected->cycle_count = world->cycle_count;
    expected->cycles_met = expected->done_count = 0;
    expected->wrong = NULL;
    expected->history = &world->history;
    om_apply(&world->model, op, world->now, expected);
    for (int i = 0; world->traces && i < expected->done_count; i++)
        trace_done(&expected->done[i]);
    if (expected->wrong != NULL)
        world_fail(world, "%s", expected->wrong);
}

/* Each command that the product has completed must be the next one that the model predicts. */
static void compare_all(struct world *world)
{
    int next = 0;

    while (!list_empty(&world->effects.completed)) {
        struct command *command = list_entry(world->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (next == world->expected.done_count)
            world_fail(world, "command %llu completes, the model says none", (unsigned long long)command->request);
        follower_note_reply(world, command);
        compare_done(world, &world->expected.done[next], &world->expected.seen[next], command);
        const struct om_done *done = &world->expected.done[next++];
        if (done->op->kind == OP_LOCK && done->problem == OM_FINE)
            world->gen.tokens[world->gen.token_count++ % 8] = done->token;
        command_free(command);
    }
    if (next < world->expected.done_count)
        world_fail(world, "command %llu does not complete", (unsigned long long)world->expected.done[next].op->number);
}

static void log_command(struct world *world, const struct command *command)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);

    if (world->log_count == world->log_capacity) {
        world->log_capacity = world->log_capacity == 0 ? 16 : world->log_capacity * 2;
        world->log = mem_realloc(world->log, world->log_capacity * sizeof(*world->log));
    }
    const struct command_group_header head = {
        .host = 1, .ts = command->ts, .clock = command->clock, .memory_full = command->memory_full};
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    struct logged_command *entry = &world->log[world->log_count++];
    entry->bytes = buf_detach(&bytes, &entry->len);
}

static void cut_log(struct world *world, size_t count)
{
    while (world->log_count > count)
        mem_free(world->log[--world->log_count].bytes);
}

/* Adds the command to the log and to the follower's entry, and steps the core. */
static void step_core(struct world *world, struct command *command)
{
    command->ts = world->now;
    log_command(world, command);
    follower_add(world, command);
    uint64_t end_work = core_end_work(world->core, command);
    if (core_step(world->core, command, &world->effects) != 0)
        world_fail(world, "the step failed");
    if (end_work != CORE_WORK_UNKNOWN && core_step_work(world->core) > WORK_UNIT + end_work)
        world_fail(world, "it did %" PRIu64 " units of work, its bound was %" PRIu64, core_step_work(world->core),
                   WORK_UNIT + end_work);
    char excess[200];
    if (!bounded(world->core, excess, sizeof excess))
        world_fail(world, "%s", excess);
}

/*
 * Whether the host of an operation has no memory: so it is for several operations in a row. It draws no random number,
 * so that operations of a seed do not depend on it.
 */
static bool is_memory_full(const struct world *world, const struct om_op *op)
{
    enum { ROW = 8, ROWS = 4 };
    uint64_t hash = (op->number / ROW + world->seed) * UINT64_C(0x9e3779b97f4a7c15);

    return (hash >> 32) % ROWS == 0;
}

/*
 * Chooses the clock of the operation, and whether there is memory. A clock that goes back, which no host should send,
 * counts as the highest so far.
 */
static void set_clock(struct world *world, struct om_op *op)
{
    bool begun = world->grouping && world->follower.entry.len > 0;

    op->clock = begun ? world->follower.clock : world->clock;
    op->memory_full = begun ? world->follower.memory_full : is_memory_full(world, op);
    if (op->kind == OP_TICK)
        op->barrier_clock = one_in(world, 4) ? world->clock - rng_below(&world->rng, 2 * OM_SECOND) : world->clock + 1;
    else if (one_in(world, 30) && !world->grouping) /* a group has one time */
        op->clock -= rng_below(&world->rng, OM_SECOND);
}

/* Runs core_inspect(), which must change nothing: the model does not know of it. */
static void look(struct world *world, struct om_op *op)
{
    set_clock(world, op);
    struct command *command = gen_command(op);
    uint64_t before = digest(world), ts = core_last_ts(world->core);

    if (core_inspect(world->core, command, &world->effects) != 0 || world->effects.completed.next != &command->link ||
        world->effects.completed.prev != &command->link ||
        (command->status.body.len == 0 && command->status.what != STATUS_LOCKS &&
         command->status.what != STATUS_OVERVIEW && command->status.what != STATUS_TRANSACTIONS &&
         command->status.what != STATUS_SESSION) ||
        (command->status.what == STATUS_OVERVIEW && command->status.row_count > command->status.rows_max))
        world_fail(world, "a look answers nothing");
    list_remove(&command->link);
    if (command->ts != ts || core_last_ts(world->core) != ts || digest(world) != before)
        world_fail(world, "a look changes something");
    command_free(command);
}

static void give(struct world *world, struct om_op *op)
{
    if (op->kind == OP_STATUS) {
        look(world, op);
        return;
    }
    set_clock(world, op);
    struct command *command = codec_roundtrip(gen_command(op));
    size_t history = world->model.history;

    world->op = op;
    if (world->traces)
        trace(world, op);
    world->cycle_count = 0;
    step_core(world, command);
    apply_model(world, op);
    world->commit_order.now = world->model.last_ts;
    compare_all(world);
    compare_ended(world);
    trace_versions(world, history);
    forget_ended(world);
    compare_counts(world);
    keep_copy(world);
    if (!world->grouping)
        follower_apply(world);
    if (world->now < world->model.last_ts)
        world->now = world->model.last_ts;
}

static struct om_op *new_op(struct world *world)
{
    return arena_zalloc(&world->ops, sizeof(struct om_op));
}

/* Submits a TICK when a deadline is due, or later: only a TICK handles deadlines. */
static void maybe_tick(struct world *world)
{
    if (om_next_deadline(&world->model) > world->clock || one_in(world, 4))
        return;
    struct om_op *op = new_op(world);
    *op = (struct om_op){.number = ++world->gen.last_number, .kind = OP_TICK};
    give(world, op);
    world->now++;
}

static void do_op(struct world *world)
{
    maybe_tick(world);
    struct om_op *op = new_op(world);

    gen_op(&world->gen, &world->model, op);
    give(world, op);
}

/* Moves a horizon up to `us` before now; at times not at all. Returns: the horizon. */
static uint64_t advance_horizon(struct world *world, uint64_t us, uint64_t *from)
{
    uint64_t until = world->now > us ? world->now - us : 0;
    if (one_in(world, 3))
        until = *from; /* the timestamps jumped */
    *from = until > *from ? until : *from;
    return until;
}

static struct core_horizons horizons_of(struct world *world)
{
    struct om *model = &world->model;
    return (struct core_horizons){.history_low = world->history_low,
                                  .tombstones = advance_horizon(world, CORE_TOMBSTONE_US, &model->tombstones_from),
                                  .outcomes = advance_horizon(world, CORE_OUTCOME_US, &model->outcomes_from)};
}

static void do_maintain(struct world *world)
{
    size_t keys_max = one_in(world, 2) ? 3 : 10000;
    struct command *command = NULL;

    world->now = core_last_ts(world->core) + 1;
    struct core_horizons past = horizons_of(world);
    if (core_propose_maintenance(world->core, &past, keys_max, &command) != 0)
        world_fail(world, "no maintenance is proposed");
    command = codec_roundtrip(command);
    step_core(world, command);
    if (world->effects.completed.next != &command->link || world->effects.completed.prev != &command->link)
        world_fail(world, "maintenance completes other commands");
    list_remove(&command->link);
    command_free(command);
    if (!world->grouping)
        follower_apply(world);
    world->model.last_ts = world->now;
    keep_copy(world);
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

/* Begins or ends an entry of the follower's log. */
static void begin_group(struct world *world)
{
    world->grouping = true;
}

static void end_group(struct world *world)
{
    if (!world->grouping)
        return;
    world->grouping = false;
    follower_apply(world);
}

/* Makes a checkpoint: the store, the saved core, and the model. */
static void sync_store(struct world *world)
{
    end_group(world);
    buf_clear(&world->saved);
    if (core_save_rest(world->core, &world->saved) != 0)
        world_fail(world, "the core cannot be saved");
    settle(world->store);
    follower_checkpoint(world);
    world->synced = world->model.last_ts;
    cut_log(world, 0);
    world->copy_count = 0;
    keep_copy(world);
}

static void raise_history(struct world *world)
{
    uint64_t top = world->synced;

    for (int i = 0; i < WORLD_QUERIES; i++)
        if (world->queries[i].txn != 0 && world->queries[i].read_ts < top)
            top = world->queries[i].read_ts;
    if (top <= world->history_low)
        return;
    world->history_low += rng_below(&world->rng, top - world->history_low + 1);
    if (store_set_history_low(world->store, world->history_low) != 0)
        world_fail(world, "the cut-off cannot be raised");
}

/* --- Query transactions ------------------------------------------------------------------------------------------- */

/* Begins, reads in or ends a query transaction of the host. No command concerns it. */
static void do_query(struct world *world)
{
    struct rng *rng = &world->check_rng; /* it changes no operation of a seed */
    struct host_query *query = &world->queries[rng_below(rng, WORLD_QUERIES)];

    if (query->txn == 0) {
        uint64_t low = world->history_low, high = world->synced;
        query->txn = FIRST_QUERY + ++world->last_query;
        query->read_ts = rng_below(rng, 2) == 0 ? high : low + rng_below(rng, high - low + 1);
        size_t record = commit_order_begin(&world->commit_order, query->txn, (uint64_t)world->step);
        world->commit_order.records[record].snapshot = true;
    } else if (rng_below(rng, 3) > 0) {
        compare_query(world, query);
    } else {
        size_t record = commit_order_find(&world->commit_order, query->txn);
        commit_order_commit(&world->commit_order, record, query->read_ts, (uint64_t)world->step);
        query->txn = 0;
    }
}

/* A host ends its query transactions when it stops. */
static void end_queries(struct world *world)
{
    for (int i = 0; i < WORLD_QUERIES; i++) {
        if (world->queries[i].txn != 0)
            commit_order_rollback(&world->commit_order, commit_order_find(&world->commit_order, world->queries[i].txn));
        world->queries[i].txn = 0;
    }
}

/* --- Restarts ----------------------------------------------------------------------------------------------------- */

/* Stops the core: all waiting commands complete with PROBLEM_STOPPING. */
static void stop_core(struct world *world)
{
    core_stop(world->core, &world->effects);
    while (!list_empty(&world->effects.completed)) {
        struct command *command = list_entry(world->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (command->problem.type != PROBLEM_STOPPING)
            world_fail(world, "a command that waited is not notified of the end");
        command_free(command);
    }
    core_close(world->core);
}

/* Sets the model to its copy as of the last command in the log. */
static void go_back(struct world *world, size_t kept)
{
    cut_log(world, kept);
    world->copy_count = kept + 1;
    world->model = world->copies[kept];
    if (core_last_ts(world->core) != world->model.last_ts)
        world_fail(world, "the replay ends at %llu, the model was at %llu",
                   (unsigned long long)core_last_ts(world->core), (unsigned long long)world->model.last_ts);
    commit_order_crash(&world->commit_order, world->model.last_ts);
}

/* Submits TRIED first after a start, for the action in which the process ended. */
static void report_attempt(struct world *world)
{
    if (world->gen.profile != GEN_RENAMES || one_in(world, 3))
        return;
    struct om_op *op = new_op(world);
    gen_op_of(&world->gen, &world->model, OP_TRIED, op);
    world->now++;
    give(world, op);
}

static void give_after_start(struct world *world, enum om_op_kind kind)
{
    struct om_op *op = new_op(world);

    *op = (struct om_op){.number = ++world->gen.last_number, .kind = kind};
    world->now++;
    give(world, op);
}

/*
 * Stops or crashes the server, and starts it again. Requests that waited are cancelled, as their
 * host does, or continue to wait, as do those of another host.
 */
static void restart(struct world *world, bool crash)
{
    bool lossy = crash && world->kind == WORLD_MEM;

    end_group(world);
    if (!lossy)
        sync_store(world);
    end_queries(world);
    uint64_t before = digest(world);
    size_t kept = lossy ? rng_below(&world->rng, world->log_count + 1) : 0;
    bool whole = kept == world->log_count;
    stop_core(world);
    if (lossy)
        store_mem_crash(world->store, 0);
    if (world->kind == WORLD_ROCKS_ON_DISK) {
        store_close(world->store);
        open_store(world);
    }
    world->op = NULL;
    world->core = world_recover(world, world->store, buf_as_slice(&world->saved), kept, &world->effects);
    set_hooks(world);
    follower_restart(world, kept);
    if (world->traces)
        printf("[%d] %s; as of %llu\n", world->step, crash ? "crash" : "restart",
               (unsigned long long)core_last_ts(world->core));
    if (whole && digest(world) != before)
        world_fail(world, "the digest differs after a restart");
    go_back(world, kept);
    report_attempt(world);
    give_after_start(world, OP_RESTART);
    if (one_in(world, 2))
        give_after_start(world, OP_CANCEL); /* all */
    compare_state(world);
    sync_store(world);
}

/* Whether hidden documents remain to be purged: a short state, so it is compared each time. */
static bool any_hidden(const struct world *world)
{
    for (int i = 0; i < OM_INDICES; i++)
        for (int j = 0; j < OM_DOCS; j++)
            if (world->model.docs.at[i][j].hidden)
                return true;
    return false;
}

/*
 * Checks that a reader of the change feed, from any timestamp on, ends with the current documents.
 */
static void check_feed(struct world *world)
{
    struct buf wrong = BUF_INIT(BUF_UNLIMITED);
    tl_ts now = core_last_ts(world->core), low = world->history_low;
    tl_ts since =
        rng_below(&world->check_rng, 3) == 0 || now < low ? 0 : low + rng_below(&world->check_rng, now - low + 1);

    if (!feed_replay_check(world->store, since, now, low, rng_below(&world->check_rng, 2) == 0, &wrong))
        world_fail(world, "followed since %llu: %.*s", (unsigned long long)since, SLICE_ARG(buf_as_slice(&wrong)));
}

/* Writes a part of the state ahead of the next checkpoint. */
static void save_ahead(struct world *world)
{
    bool more;

    if (core_save_ahead(world->core, 1 + rng_below(&world->check_rng, 3000), &more) != 0)
        world_fail(world, "nothing can be written ahead");
}

static void maybe_event(struct world *world)
{
    const char *wrong;

    if (!world->grouping && rng_below(&world->check_rng, 4) == 0)
        save_ahead(world);

    if (one_in(world, 8))
        sync_store(world);
    if (one_in(world, 6) && !world->grouping)
        begin_group(world);
    if (one_in(world, 60))
        do_maintain(world);
    if (one_in(world, 90))
        restart(world, !one_in(world, 4));
    if (one_in(world, 40))
        raise_history(world);
    if (one_in(world, 30))
        compare_past(world, world->history_low + rng_below(&world->rng, world->now - world->history_low + 1));
    if (world->gen.profile != GEN_LOCKS && rng_below(&world->check_rng, 12) == 0)
        do_query(world);
    if (one_in(world, 16) || world->traces || any_hidden(world))
        compare_state(world);
    if (rng_below(&world->check_rng, 6) == 0)
        check_feed(world);
    if ((wrong = om_check(&world->model)) != NULL)
        world_fail(world, "%s", wrong);
}

static void advance_time(struct world *world)
{
    int kind = below(world, 60);

    if (world->grouping && world->follower.entry.len > 0) { /* a group has one time */
        world->now = core_last_ts(world->core) + 1;
        return;
    }
    uint64_t most = kind == 0 ? 70 * OM_SECOND : kind < 4 ? 4 * OM_SECOND : kind < 20 ? 500000 : kind < 40 ? 1000 : 3;

    uint64_t us = 1 + rng_below(&world->rng, most);

    /*
     * Steps the clock of timestamps forward or back; then timestamps nearly stop. Durations are not
     * affected.
     */
    world->clock += us;
    world->now += one_in(world, 50) ? rng_below(&world->rng, 100 * OM_SECOND) + 1 : one_in(world, 20) ? 1 : us;
}

/* --- A seed ------------------------------------------------------------------------------------------------------- */

/* Creates the initial indices, and the template of the one that is created and deleted later. */
static void set_stage(struct world *world)
{
    static const char *const bodies[] = {
        "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"},\"v\":{\"type\":\"long\"}}}}",
        "{\"settings\":{\"gc_deletes\":\"1h\"},\"mappings\":{\"properties\":{\"path\":{\"type\":\"keyword\"},\"v\":{"
        "\"type\":\"long\"}}}}", /* OM_KEPT_INDEX, OM_KEPT_US */
        "{\"index_patterns\":[\"nx\"],\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"},\"v\":{"
        "\"type\":\"long\"}}}}",
    };

    for (int i = 0; i < 3; i++) {
        struct command *command = command_new(i < 2 ? COMMAND_INDEX_CREATE : COMMAND_TEMPLATE_PUT, DIALECT_7);
        world->now++;
        if (i < 2)
            command->index =
                (struct index_command){.name = slice_from(gen_index_names[i]), .body = slice_from(bodies[i])};
        else
            command->object = (struct object_command){.name = SLICE_LIT("nx"), .body = slice_from(bodies[i])};
        step_core(world, command);
        if (command->problem.type != PROBLEM_NONE)
            world_fail(world, "the stage cannot be set: %.*s", SLICE_ARG(command->problem.reason));
        list_remove(&command->link);
        follower_note_reply(world, command);
        follower_apply(world);
        command_free(command);
        world->model.last_ts = world->now;
        if (i < 2)
            world->model.indices[i] = (struct om_index){.there = true, .mapped = i == 0, .generation = 1};
    }
    world->history_low = world->now;
    sync_store(world);
}

static void check_commit_order(struct world *world)
{
    size_t record;
    const char *wrong = commit_order_check(&world->commit_order, &record);

    if (wrong != NULL)
        world_fail(world, "%s (t%u at %llu)", wrong, world->commit_order.records[record].txn,
                   (unsigned long long)world->commit_order.records[record].ts);
}

static bool is_within(int above, int dir)
{
    return dirs_within(dir, above);
}

static void open_world(struct world *world, uint64_t seed, const struct world_options *options)
{
    *world = (struct world){
        .seed = seed, .traces = options->traces, .kind = options->store, .now = start_of_time, .clock = 10 * OM_SECOND};
    world->ops = ARENA_INIT;
    world->saved = BUF_INIT(BUF_UNLIMITED);
    dirs_begin();
    world->commit_order.is_within = is_within;
    world->commit_order.moved = dirs_moved;
    world->commit_order.index_docs = OM_DOCS;
    rng_init(&world->rng, seed * 2 + options->profile);
    rng_init(&world->check_rng, ~seed);
    world->gen = (struct gen){.profile = options->profile, .rng = &world->rng};
    effects_init(&world->effects);
    om_init(&world->model, &limits, world->now);
    world->model.unlocks_one = unlocks_one(world->seed);
    world->model.reads_one = reads_one(world->seed);
    snprintf(world->directory, sizeof(world->directory), "%s", "/tmp/tidelock-owners-XXXXXX");
    if (world->kind == WORLD_ROCKS_ON_DISK && mkdtemp(world->directory) == NULL)
        world_fail(world, "no directory for RocksDB");
    open_store(world);
    open_core(world);
    struct core_limits core_limits = small_limits();
    if (seed % 2 == 0)
        follower_open(world, &core_limits);
    set_stage(world);
}

static void close_world(struct world *world)
{
    stop_core(world);
    follower_close(world);
    store_close(world->store);
    if (world->kind == WORLD_ROCKS_ON_DISK && nftw(world->directory, remove_file, 8, FTW_DEPTH | FTW_PHYS) != 0)
        world_fail(world, "%s cannot be removed", world->directory);
    commit_order_free(&world->commit_order);
    arena_deinit(&world->ops);
    cut_log(world, 0);
    mem_free(world->log);
    buf_deinit(&world->saved);
    mem_free(world->copies);
    free(world->history.versions);
}

uint64_t world_live(uint64_t seed, const struct world_options *options)
{
    static struct world world; /* too large for the stack */

    siphash_set_key(&(struct siphash_key){seed, options->hash_key});
    open_world(&world, seed, options);
    for (world.step = 1; world.step <= options->steps; world.step++) {
        advance_time(&world);
        do_op(&world);
        maybe_event(&world);
    }
    restart(&world, false);
    compare_state(&world);
    check_commit_order(&world);
    (void)digest(&world);
    close_world(&world);
    return world.chain;
}
