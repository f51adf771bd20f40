/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step. README.md, "One command, step by step":
 *
 * - first, everything due happens, each in a unit;
 * - the command runs in a unit at its timestamp, and completes or waits;
 * - then granted waiting commands run, each in a unit.
 */
#include "core/step/core.h"

#include "base/check.h"
#include "base/magic.h"
#include "core/acquire/acquire.h"
#include "core/acquire/grants.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/counter.h"
#include "core/command/command_codec.h"
#include "core/command/limits.h"
#include "core/documents/prefetch.h"
#include "core/documents/write.h"
#include "core/feed/feed.h"
#include "core/maintenance/maintain.h"
#include "core/maintenance/sweep.h"
#include "core/owners/owners_step.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/tree/empty_paths.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

static const char ts_ceiling_key[] = "U"; /* the timestamp ceiling and its payload */

static core_handler *const handlers[COMMAND_TYPE_COUNT] = {
#define X(symbol, name, code, member, flags, turns) [COMMAND_##symbol] = core__do_##name,
#include "core/command/commands.def"
#undef X
};

/*
 * What a module does in its function may depend on what those before it did: the feed notes that the
 * unit wrote anything.
 */
static const struct unit_part *const parts[] = {&catalog__part, &write__part, &feed__part, &owners__part, NULL};

void effects_init(struct effects *effects)
{
    *effects = (struct effects){0};
    list_init(&effects->completed);
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* Reads the timestamp in a record; 0: no record. `rest` (may be NULL) gets the bytes after it. */
static int open_ts(struct core *core, const char *key, tl_ts *ret_ts, struct buf *rest)
{
    struct store_value value;
    tl_ts written = 0;
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, slice_from(key), &value);

    if (r < 0)
        return tl_trace(r);
    if (r == 0) {
        struct slice bytes = value.bytes;
        bool sound = slice_take_u64be(&bytes, &written);
        if (rest != NULL)
            buf_slice(rest, bytes);
        store_value_release(&value);
        if (!sound || written >= TL_TS_MAX)
            return tl_trace(TL_ERR_CORRUPT);
    }
    *ret_ts = written;
    return 0;
}

static int open_last_ts(struct core *core, tl_ts counted)
{
    tl_ts named = 0;
    int r = open_ts(core, LAST_TS_KEY, &named, NULL);
    if (r == 0)
        r = open_ts(core, ts_ceiling_key, &core->ts_ceiling, &core->ts_ceiling_payload);
    core->found_ts = counted > named ? counted : named;
    core->last_ts = core->ts_ceiling > core->found_ts ? core->ts_ceiling : core->found_ts;
    return r;
}

static struct catalog_counters *shared_counters(void *context, uint32_t number)
{
    return counters__of(context, number)->shared;
}

static int open_state(struct core *core)
{
    struct view view = core__view(core, NULL);
    tl_ts counted;
    int r = counters__open(&core->counters, core->store, &counted);

    if (r == 0)
        r = open_last_ts(core, counted);
    if (r == 0)
        r = purge_horizons__open(core);
    if (r == 0)
        r = feed__open(core);
    if (r == 0)
        r = catalog_load(&view, &core->catalog);
    if (r != 0)
        return r > 0 ? tl_trace(TL_ERR_CORRUPT) : tl_trace(r);
    catalog__attach_counters(core->catalog, shared_counters, &core->counters);
    catalog__parse_objects(core->catalog);
    owners__open(core);
    ENSURE(core->last_ts >= core->found_ts && core->last_ts < TL_TS_MAX);
    return 0;
}

int core__open_bare(struct store *store, const struct core_limits *limits, struct core **ret_core)
{
    REQUIRE(store != NULL && limits != NULL && core_limits_sound(limits));
    struct core *core = mem_zalloc(sizeof(*core));
    int r;

    core->magic = CORE_MAGIC;
    core->parts = parts;
    core->handlers = handlers;
    core->command_version = COMMAND_CODEC_VERSION;
    core->write_work_max = WRITE_WORK_MAX;
    core->atomic_work_max = WRITE_WORK_MAX;
    core->whole_work_max = CORE_ATOMIC_WORK;
    core->commit_work_max = CORE_COMMIT_WORK;
    core->provisional_work = ENTRIES_PROVISIONAL_WORK;
    core->unlock_work = UNLOCK_WORK_PER_COST;
    core->action_work = WRITE_WORK_PER_COST;
    core->step_account = STEP_ACCOUNT_WORK;
    core->reads_work_max = LOCK_WORK_MAX;
    core->lock_work = owners__lock_work;
    core->document_owners = &owners__of_documents;
    core->store = store;
    core->ts_ceiling_payload = BUF_INIT(BUF_UNLIMITED);
    list_init(&core->free_at_end);
    omap_init(&core->tree_pending);
    core->arena = core->scratch = ARENA_INIT;
    core->batch = store_batch_new(store);
    sweep_init(&core->sweep);
    core->sweep_batches_max = SWEEP_BATCHES_MAX;
    r = core__open_limits(core, limits);
    if (r == 0)
        r = open_state(core);
    if (r != 0) {
        core_close(core);
        return tl_trace(r);
    }
    *ret_core = core;
    return 0;
}

void core__loaded(struct core *core)
{
    REQUIRE(core->owners != NULL && core->scripts != NULL && !core->open);
    if (core->chained)
        store_batch_track_digest(core->batch);
    recent_writes_init(&core->recent_writes, core->last_ts);
}

int core_open(struct store *store, const struct core_limits *limits, struct core **ret_core)
{
    struct core *core;
    int r = core__open_bare(store, limits, &core);

    if (r < 0)
        return tl_trace(r);
    r = owners__load_old(core);
    if (r < 0) {
        core_close(core);
        return tl_trace(r);
    }
    core->written_ts = core->must_sync_ts = core->last_ts;
    core__loaded(core);
    *ret_core = core;
    return 0;
}

void core_close(struct core *core)
{
    if (core == NULL)
        return;
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open && core->effects == NULL);
    owners__close(core);
    script_cache_free(core->scripts);
    catalog_unref(core->catalog);
    counters__deinit(&core->counters);
    recent_writes_deinit(&core->recent_writes);
    empty_paths_clear(&core->empty_paths);
    feed__close(core);
    sweep_deinit(&core->sweep);
    map_deinit(&core->pending);
    omap_deinit(&core->tree_pending);
    arena_deinit(&core->arena);
    arena_deinit(&core->scratch);
    store_batch_free(core->batch);
    buf_deinit(&core->ts_ceiling_payload);
    magic_clear(&core->magic);
    mem_free(core);
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

/* Runs the command in its unit. A write is charged to the step before the commands that resume after it. */
static int run_command(struct core *core, struct command *command)
{
    size_t items = command->type == COMMAND_WRITE ? command->write.item_count : 0;
    int r, written;

    core__begin(core, command->ts);
    struct cost_counters before = cost_counters_of(core);
    r = command_is(command->type, COMMAND_DDL) ? acquire__ddl(core, command) : core__handle(core, command);
    if (r == 0)
        core__complete(core, command);
    if (r >= 0)
        r = grants__settle(core);
    written = core__commit(core);
    if (items > 0 && core->command_version >= COMMAND_SINCE_WRITE_CHARGED)
        cost_charge(&core->owners->cost_left, cost_since(core, &(struct cost_counters){0}, items));
    cost_charge_work(core, WORK_UNIT + cost_work_since(core, &before));
    return r < 0 ? r : written;
}

static void begin_work(struct core *core)
{
    core->work = core->indivisible_work = core->script_steps = core->scripts_run = core->source_bytes = 0;
    core->mapping_work = core->write_work = 0;
    core->lock_work_before = core->lock_work(core);
}

static void end_work(struct core *core, enum command_type type)
{
    struct core_metrics *metrics = &core->metrics;
    uint64_t work = core_step_work(core);
    if (work > metric_read(&metrics->step_work_max[type]))
        metric_set(&metrics->step_work_max[type], work);
    if (work > CORE_STEP_WORK)
        metric_add(&metrics->steps_over, 1);
    if (work > core->indivisible_work + CORE_STEP_WORK) {
        metric_add(&metrics->steps_undivided, 1);
        metric_set(&metrics->undivided_command, type);
        metric_set(&metrics->undivided_version, core->command_version);
        metric_set(&metrics->undivided_work, work - core->indivisible_work);
    }
}

int core_step(struct core *core, struct command *command, struct effects *effects)
{
    enum command_type type = command->type;
    tl_ts ts = command->ts;
    int r;

    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open && core->effects == NULL);
    REQUIRE(type < COMMAND_TYPE_COUNT && !list_linked(&command->link));
    REQUIRE(command->ts > core->last_ts && command->ts < TL_TS_MAX);
    REQUIRE(effects != NULL && command->problem.type == PROBLEM_NONE);
    REQUIRE(!command_is(command->type, COMMAND_UNLOGGED));
    REQUIRE(command->version > 0 && command->version <= COMMAND_CODEC_VERSION);
    core->effects = effects;
    core->command_version = command->version;
    core->memory_full = command->memory_full && command->version >= COMMAND_SINCE_MEMORY_GIVEN;
    begin_work(core);
    if (core->watch != NULL)
        core->watch->step(core->watch->context);
    if (command->clock > core->clock)
        core->clock = command->clock;
    /*
     * They refer to another log entry. Nothing that could end the process again may run before
     * them.
     */
    bool about_entry = type == COMMAND_TRIED || type == COMMAND_SKIP;
    owners__begin_step(core, type);
    r = about_entry || command->type == COMMAND_MAINTAIN /* purging delays no client */
            ? 0
            : owners__run_due(core, command->ts, command->type == COMMAND_TICK ? &command->tick : NULL);
    if (r >= 0)
        r = run_command(core, command);
    if (r >= 0)
        r = grants__resume(core);
    core->effects = NULL;
    ENSURE(r < 0 || (!core->open && core->last_ts >= ts && effects->last_ts == core->last_ts));
    end_work(core, type);
    owners__update_budget(core);
    if (STEP_CHECKS_OWNERS && r >= 0)
        owners__check(core);
    return r < 0 ? tl_trace(r) : 0;
}

int core_inspect(struct core *core, struct command *command, struct effects *effects)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open && core->effects == NULL);
    REQUIRE(command_is(command->type, COMMAND_UNLOGGED));
    REQUIRE(effects != NULL && !list_linked(&command->link));
    core->effects = effects;
    core->ts = core->last_ts;
    int r = core__handle(core, command);
    if (r == 0)
        core__complete(core, command);
    INSIST(r <= 0);
    ENSURE(r < 0 || (!core->open && !list_empty(&effects->completed)));
    arena_reset(&core->arena);
    arena_reset(&core->scratch);
    core->effects = NULL;
    return r < 0 ? tl_trace(r) : 0;
}

void core_stop(struct core *core, struct effects *effects)
{
    REQUIRE(effects != NULL);
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open && core->effects == NULL);
    core->effects = effects;
    owners__stop(core);
    core->effects = NULL;
}

uint64_t core_chain(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return core->chain;
}

void core_begin_chain(struct core *core, uint64_t chain)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open);
    if (!core->chained) {
        store_batch_clear(core->batch); /* it has the last unit's changes, as after core_convert() */
        store_batch_track_digest(core->batch);
    }
    core->chain = chain;
    core->chained = true;
}

/* Converts the records of an older format in a unit, if there are any. */
static int convert_records(struct core *core, bool keeps)
{
    if (!core->old_records)
        return 0;
    core__begin(core, core->last_ts + 1);
    int r = owners__convert(core);
    if (!keeps)
        core__rollback(core);
    int ended = core__commit(core);
    return r < 0 ? tl_trace(r) : ended;
}

int core_convert(struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open && !core->chained);
    int r = convert_records(core, true);
    core->old_records = false;
    return r;
}

int core_check_conversion(struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open && !core->chained);
    return convert_records(core, false);
}

const struct core_limits *core_limits(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return &core->limits;
}

bool core_limits_recorded(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return core->limits_recorded;
}

tl_ts core_last_ts(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return core->last_ts;
}

tl_ts core_written_ts(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return core->written_ts;
}

tl_ts core_must_sync_ts(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return core->must_sync_ts;
}

const struct core_metrics *core_metrics(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return &core->metrics;
}

void core_reset_metrics(struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    memset(&core->metrics, 0, sizeof core->metrics);
    owners__update_budget(core);
}

struct catalog *core_catalog(struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return catalog_ref(core->catalog);
}

struct slice core_ts_ceiling_payload(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return buf_as_slice(&core->ts_ceiling_payload);
}

tl_ts core_ts_ceiling(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return core->ts_ceiling;
}

uint64_t core_clock(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    return core->clock;
}

static void put_ts_ceiling(struct core *core, tl_ts ceiling, struct slice payload)
{
    REQUIRE(core->open && ceiling >= core->ts && ceiling < TL_TS_MAX);
    core__put_ts(core, ts_ceiling_key, ceiling, payload);
    core->async_commit = true;
    core->ts_ceiling = ceiling;
    buf_clear(&core->ts_ceiling_payload);
    buf_slice(&core->ts_ceiling_payload, payload);
}

/*
 * Sets the timestamp ceiling, which may decrease: after an orderly stop there are no timestamps to
 * skip. It is at least the timestamp of the unit. The proposer did not know that one, since units
 * before this one may have used timestamps.
 */
int core__do_mark(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_MARK);
    tl_ts ceiling = command->mark.ceiling > core->ts ? command->mark.ceiling : core->ts;
    if (ceiling >= TL_TS_MAX)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "the timestamp ceiling is invalid");
    else
        put_ts_ceiling(core, ceiling, command->mark.payload);
    return 0;
}

/* owners__run_due() has already done the work. */
int core__do_tick(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TICK);
    (void)core;
    (void)command;
    return 0;
}
