/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners' part in a step: what falls due, what the table of locks did, which waiting commands go on.
 * See owners.h and README-locks.md.
 */
#include "core/owners/owners.h"

#include "base/budget.h"
#include "base/check.h"
#include "core/locks/resource.h"
#include "core/owners/deferred.h"
#include "core/owners/lock_history.h"
#include "core/owners/cost.h"
#include "core/owners/cleanup_attempt.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/core.h"
#include "core/step/handler.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

/* A circle was found: the victim is told, and the story is kept. */
static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *steps, size_t count,
                        bool requeued)
{
    struct owners *owners = context;
    struct wait *wait = lock_request_user(victim);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct buf json = BUF_INIT(BUF_UNLIMITED);
    metric_add(requeued ? &owners->core->metrics.deadlocks_requeued : &owners->core->metrics.deadlocks, 1);
    if (requeued)
        return;
    describe_cycle(steps, count, "; ", &text);
    describe_cycle_json(steps, count, &json);
    problem_set(wait__cause(wait), &wait->command->arena, PROBLEM_DEADLOCK_DETECTED, "deadlock: %.*s",
                SLICE_ARG(buf_as_slice(&text)));
    problem_details(wait__cause(wait), &wait->command->arena, "%.*s", SLICE_ARG(buf_as_slice(&json)));
    buf_clear(&text);
    describe_cycle(steps, count, "\n", &text);
    buf_lit(&text, "\n");
    describe_owner(lock_request_owner(victim), &text);
    buf_lit(&text, " gives way");
    lock_events_add(&owners->lock_events, owners->core->ts, "deadlock", buf_as_slice(&text));
    buf_deinit(&text);
    buf_deinit(&json);
}

static void tally(enum budget_kind kind, size_t held, size_t *told)
{
    size_t apart = held > *told ? held - *told : *told - held;
    if (apart < BUDGET_CHUNK && held != 0)
        return;
    budget_tally(kind, (ptrdiff_t)held - (ptrdiff_t)*told);
    *told = held;
}

static void tell_figures(const struct owners *owners, struct core_metrics *figures)
{
    for (int mode = LOCK_S; mode < LOCK_MODE_COUNT; mode++) {
        metric_set(&figures->held[mode], owners->locks.held[mode]);
        metric_set(&figures->requested[mode], owners->locks.requested[mode]);
    }
    metric_set(&figures->waiting, owners->locks.waiting_count);
    metric_set(&figures->sessions, owners->sessions.count - owners->terminating_count);
    metric_set(&figures->transactions, owners->txns.count);
    metric_set(&figures->deferred_actions, owners->deferred_count);
}

void owners__update_budget(struct core *core)
{
    struct owners *owners = core->owners;
    const struct lock_table *locks = &owners->locks;
    size_t places = locks->resources.count == 0 ? 0 : locks->resources.bytes;
    tally(BUDGET_LOCKS, places + locks->hold_count * sizeof(struct lock_hold) + owners->wait_bytes,
          &owners->tallied_locks);
    tally(BUDGET_ACTIONS, owners->action_bytes, &owners->tallied_actions);
    tell_figures(owners, &core->metrics);
}

void owners__open(struct core *core)
{
    struct owners *owners = mem_zalloc(sizeof *owners);
    const struct lock_hooks hooks = {on_deadlock, session__lock_changed, owners};
    owners->core = core;
    core->owners = owners;
    lock_table_init(&owners->locks, &hooks);
    deadlines_init(&owners->leases);
    deadlines_init(&owners->wait_ends);
    deadlines_init(&owners->idles);
    list_init(&owners->open_txns);
    list_init(&owners->unrecorded_txns);
    list_init(&owners->waits);
    list_init(&owners->ready);
    list_init(&owners->sessions_to_clean);
    list_init(&owners->sessions_to_purge);
    list_init(&owners->cleanup_attempts);
    list_init(&owners->deferred);
    list_init(&owners->unrequested);
    owners->finished_slow_waits = BUF_INIT(BUF_UNLIMITED);
}

int owners__load_stored(struct core *core)
{
    return session__load_all(core);
}

static void free_parties(struct core *core)
{
    struct owners *owners = core->owners;
    size_t position = 0;
    struct slice id;
    void *value;
    while (!list_empty(&owners->open_txns))
        txn__free(core, list_entry(owners->open_txns.next, struct txn, of_all));
    while (map_next(&owners->sessions, &position, &id, &value))
        session__free(core, value);
    while (!list_empty(&owners->deferred))
        deferred__free(core, list_entry(owners->deferred.next, struct deferred, of_all));
    cleanup_attempt__free_all(core);
    hosts__free(&core->owners->hosts);
}

void owners__close(struct core *core)
{
    struct owners *owners = core->owners;
    if (owners == NULL)
        return;
    owners->locks.hooks = (struct lock_hooks){0}; /* what is held stays in the store */
    while (!list_empty(&owners->waits)) {
        struct wait *wait = list_entry(owners->waits.next, struct wait, of_all);
        REQUIRE(wait->command == NULL);
        wait__free(core, wait);
    }
    free_parties(core);
    map_deinit(&owners->sessions);
    map_deinit(&owners->txns);
    map_deinit(&owners->requests);
    owners__update_budget(core);
    lock_table_deinit(&owners->locks);
    deadlines_deinit(&owners->leases);
    deadlines_deinit(&owners->wait_ends);
    deadlines_deinit(&owners->idles);
    lock_events_deinit(&owners->lock_events);
    lock_history_deinit(&owners->lock_history);
    buf_deinit(&owners->finished_slow_waits);
    mem_free(owners);
    core->owners = NULL;
}

/* Who closed one of these sessions hears no more of it. */
static void stop_closing(struct core *core, struct list *sessions)
{
    list_for_each(link, sessions)
    {
        struct command *command = tl_steal(list_entry(link, struct session, of_terminating)->close_command);
        if (command == NULL)
            continue;
        problem_set(&command->problem, &command->arena, PROBLEM_STOPPING, "the server is shutting down");
        core__complete(core, command);
    }
}

void owners__stop(struct core *core)
{
    struct owners *owners = core->owners;
    list_for_each_safe(link, following, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        struct command *command = wait->command;
        if (command == NULL)
            continue;
        wait->command = NULL;
        problem_set(&command->problem, &command->arena, PROBLEM_STOPPING, "the server is shutting down");
        core__complete(core, command);
    }
    map_deinit(&owners->requests);
    owners->requests = MAP_INIT;
    stop_closing(core, &owners->sessions_to_clean);
    stop_closing(core, &owners->sessions_to_purge);
}

/*
 * While something is left of what goes on only a TICK goes on with it. TRIED and SKIP do nothing that was left, which could end the process again before the
 * next is counted.
 */
void owners__begin_step(struct core *core, enum command_type type)
{
    struct owners *owners = core->owners;
    bool tells = type == COMMAND_TRIED || type == COMMAND_SKIP;
    bool goes_on = !tells && (type == COMMAND_TICK || list_empty(&owners->ready));
    owners->locks.cleanup_quota = tells ? 0 : core->limits.purge_batch;
    owners->cost_left = goes_on ? core->limits.ephemeral_batch : 0;
}

uint64_t owners__lock_work(const struct core *core)
{
    return lock_table_work(&core->owners->locks);
}

void owners__begin(struct core *core)
{
    if (core->owners != NULL)
        lock_table_set_ts(&core->owners->locks, core->ts);
}

tl_ts owners__last_ts(const struct core *core)
{
    return core->owners == NULL ? core->ts : lock_table_last_ts(&core->owners->locks);
}

bool owners__any_locks(const struct core *core)
{
    return !lock_table_is_idle(&core->owners->locks);
}

bool owners__index_is_unlocked(const struct core *core, struct slice index)
{
    return lock_table_index_is_unlocked(&core->owners->locks, index);
}

/* --- What the table did ------------------------------------------------------------------------------------------- */

static const struct wait_ops *const turns_of_rows[COMMAND_TYPE_COUNT] = {
#define NEVER NULL
#define WAITS(noun) &noun##__wait_ops
#define X(symbol, name, code, member, flags, turns) [COMMAND_##symbol] = turns,
#include "core/step/commands.def"
#undef X
#undef WAITS
#undef NEVER
};

const struct wait_ops *owners__wait_ops(const struct command *command)
{
    return command == NULL ? &deferred__wait_ops : turns_of_rows[command->type];
}

int owners__before_commit(struct core *core)
{
    struct owners *owners = core->owners;
    struct lock_request *request;
    REQUIRE(core->open);
    for (;;) {
        struct wait *wait;
        if ((request = lock_table_next_victim(&owners->locks)) != NULL) {
            wait = lock_request_user(request);
            wait->ops->on_deadlock(core, wait);
        } else if ((request = lock_table_next_granted(&owners->locks)) != NULL) {
            wait = lock_request_user(request);
            wait->ops->on_grant(core, wait);
        } else {
            return 0;
        }
    }
}

/* --- Going on ----------------------------------------------------------------------------------------------------- */

/* What writes of the step have taken so far, for the things that it counts as. */
struct taken {
    uint64_t bytes, steps;
};

static struct taken taken_by(const struct core *core)
{
    return (struct taken){core->source_bytes, core->script_steps};
}

static uint64_t things_since(const struct core *core, const struct taken *before)
{
    return (core->source_bytes - before->bytes) / SOURCE_BYTES_PER_COST + (core->script_steps - before->steps) / SCRIPT_STEPS_PER_COST;
}

static int turn(struct core *core, struct wait *wait)
{
    if (!wait->ended)
        return wait->ops->resume(core, wait);
    if (wait->ops->answer != NULL)
        return wait->ops->answer(core, wait);
    wait__answer(core, wait);
    return 0;
}

static int resume_one(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    struct taken before = taken_by(core);
    uint64_t things = wait__cost(wait);
    int r = turn(core, wait);
    if (r == 0 && command != NULL)
        core__complete(core, command);
    cost_charge(&core->owners->cost_left, things + things_since(core, &before));
    return r == CORE_WAITS ? 0 : r;
}

int owners__resume(struct core *core)
{
    struct owners *owners = core->owners;
    while (!list_empty(&owners->ready) && owners->cost_left > 0) {
        struct wait *wait = list_entry(owners->ready.next, struct wait, link);
        wait__dequeue_ready(core, wait);
        core__begin(core, core->last_ts + 1);
        int r = resume_one(core, wait);
        if (r >= 0)
            r = owners__before_commit(core);
        int written = core__commit(core);
        if (r < 0 || written < 0)
            return tl_trace(r < 0 ? r : written);
    }
    return 0;
}

/* --- Falling due -------------------------------------------------------------------------------------------------- */

/* Whether ends of sessions go on with each step. */
static bool any_ending(const struct owners *owners)
{
    return !list_empty(&owners->sessions_to_clean) || !list_empty(&owners->sessions_to_purge) || lock_table_has_ready_cleanup(&owners->locks);
}

uint64_t core_next_wait_end(const struct core *core)
{
    const struct owners *owners = core->owners;
    bool goes_on = any_ending(owners) || owners->abandoned_count > 0 || !list_empty(&owners->ready);
    return goes_on ? 0 : deadlines_first(&owners->wait_ends);
}

uint64_t core_next_lease_end(const struct core *core)
{
    uint64_t lease = deadlines_first(&core->owners->leases);
    uint64_t idle = deadlines_first(&core->owners->idles);
    return idle < lease ? idle : lease;
}

uint64_t core_next_deadline(const struct core *core)
{
    uint64_t wait = core_next_wait_end(core);
    uint64_t lease = core_next_lease_end(core);
    return lease < wait ? lease : wait;
}

static void idle_out(struct core *core, struct txn *txn)
{
    txn__abort(core, txn, "nothing was done with it for %llu ms", (unsigned long long)(txn->timeout_us / TL_MS));
}

/* Its time is over. */
static int time_out(struct core *core, struct wait *wait, size_t *left)
{
    struct taken before = taken_by(core);
    uint64_t things = wait__cost(wait);
    int r = wait->ops->on_timeout(core, wait);
    cost_charge(left, things + things_since(core, &before));
    return r;
}

/* What falls due first of waits and idle transactions; one unit. Nothing is left when there is none. */
static int fall_due(struct core *core, tl_ts ts, uint64_t heard, size_t *left)
{
    struct owners *owners = core->owners;
    struct deadline *wait = deadlines_due(&owners->wait_ends, core->clock);
    struct deadline *idle = deadlines_due(&owners->idles, heard);
    int r = 0;

    if (wait == NULL && idle == NULL) {
        *left = 0;
        return 0;
    }
    core__begin(core, ts);
    if (wait != NULL && (idle == NULL || wait->at <= idle->at)) {
        r = time_out(core, container_of(wait, struct wait, deadline), left);
    } else {
        struct txn *txn = container_of(idle, struct txn, idle);
        cost_charge(left, 1 + txn->owner.locks.lock_count / LOCKS_PER_COST);
        idle_out(core, txn);
    }
    if (r >= 0)
        r = owners__before_commit(core);
    int written = core__commit(core);
    return r < 0 ? r : written;
}

/* Those whose leases are over leave: nothing of them waits any more, and no command finds them. One unit. */
static int let_leave(struct core *core, tl_ts ts, uint64_t heard)
{
    struct owners *owners = core->owners;
    struct deadline *due;
    core__begin(core, ts);
    while ((due = deadlines_due(&owners->leases, heard)) != NULL)
        session__begin_termination(core, container_of(due, struct session, lease), SESSION_END_EXPIRED);
    session__store_progress(core); /* before any of them is cleaned up: a crash brings none of them back */
    int r = owners__before_commit(core);
    int written = core__commit(core);
    return r < 0 ? r : written;
}

/* Goes on with the first whose end is not whole, in a unit of its own. Who waits is let in with the last one of the step. */
static int end_one(struct core *core, tl_ts ts, size_t *left)
{
    core__begin(core, ts);
    int r = session__continue_cleanup(core, left);
    if (list_empty(&core->owners->sessions_to_clean) || *left == 0)
        lock_table_resume_grants(&core->owners->locks);
    if (r >= 0)
        r = owners__before_commit(core);
    int written = core__commit(core);
    return r < 0 ? r : written;
}

/*
 * Sessions whose lease is over wait for nothing any more, before anything else happens, and nobody is granted anything before all
 * are cleaned up that go with this step: not who is dead at that very timestamp (invariant 7), nor others behind whom there is work to be done. So
 * many things are done with one step, the others with later ones. Takes off *left what it has done.
 */
static int end_sessions(struct core *core, tl_ts ts, bool due, uint64_t heard, size_t *left)
{
    struct owners *owners = core->owners;
    due = due && deadlines_due(&owners->leases, heard) != NULL;
    if (!due && list_empty(&owners->sessions_to_clean))
        return 0;
    lock_table_suspend_grants(&owners->locks);
    int r = due ? let_leave(core, ts, heard) : 0;
    while (r >= 0 && !list_empty(&owners->sessions_to_clean) && *left > 0)
        r = end_one(core, ts, left);
    return r;
}

/* Goes on with transactions that are going to be rolled back. One unit. */
static int end_abandoned(struct core *core, tl_ts ts, size_t left)
{
    core__begin(core, ts);
    txn__end_abandoned(core, &left);
    int r = owners__before_commit(core);
    int written = core__commit(core);
    return r < 0 ? r : written;
}

/*
 * A session that has much to remove goes piece by piece, one with each step, and what was kept is granted so, that no step is
 * long.
 */
static int sweep_on(struct core *core, tl_ts ts)
{
    core__begin(core, ts);
    lock_table_suspend_grants(&core->owners->locks);
    int r = list_empty(&core->owners->sessions_to_purge) ? 0 : session__purge_batch(core);
    lock_table_resume_grants(&core->owners->locks);
    if (r >= 0)
        r = owners__before_commit(core);
    int written = core__commit(core);
    return r < 0 ? r : written;
}

/*
 * Waits and idle transactions whose time is over, as many as go with one step. Whoever waits may have waited for the one that goes, and then for the next:
 * each counts for more things where very many wait.
 */
static int run_out(struct core *core, tl_ts ts, uint64_t heard)
{
    enum { WAITING_PER_THING = 400 };
    size_t left = core->limits.ephemeral_batch;
    int r = 0;
    while (left > 0 && r >= 0) {
        size_t things = core->owners->locks.waiting_count / WAITING_PER_THING;
        r = fall_due(core, ts, heard, &left);
        cost_charge(&left, things);
    }
    return r;
}

int owners__run_due(struct core *core, tl_ts at, const struct tick_command *tick)
{
    uint64_t heard = tick == NULL ? 0 : tick->barrier_clock < core->clock ? tick->barrier_clock : core->clock;
    size_t left = core->limits.ephemeral_batch;
    bool ending = any_ending(core->owners), abandoned = core->owners->abandoned_count > 0;
    bool over = tick != NULL &&
                (deadlines_first(&core->owners->wait_ends) <= core->clock || core_next_lease_end(core) <= heard);
    int r = ending ? sweep_on(core, at) : 0;
    if (r >= 0)
        r = end_sessions(core, at, over, heard, &left);
    if (r >= 0 && core->owners->abandoned_count > 0 && left > 0)
        r = end_abandoned(core, at, left);
    if (r >= 0 && over)
        r = run_out(core, at, heard);
    if (r >= 0 && (ending || abandoned || over))
        r = owners__resume(core);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

/* Nobody of this host can give back a lock any more: whoever waits there is told now. */
void owners__cancel_host(struct core *core, uint64_t host, const char *why)
{
    list_for_each_safe(link, following, &core->owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->command != NULL && !wait->ended && host_of_number(wait->command->request) == host)
            wait__end(core, wait, PROBLEM_STOPPING, "%s", why);
    }
}

int core__do_cancel(struct core *core, struct command *command)
{
    uint64_t host = host_of_number(command->cancel.request);
    if (command->cancel.request == host << HOST_SHIFT) {
        owners__cancel_host(core, host, "the server is shutting down");
        return 0;
    }
    struct wait *wait = wait__by_request(core, command->cancel.request);
    if (wait != NULL)
        wait__fail(core, wait, PROBLEM_LOCK_WAIT_TIMEOUT, "the connection of the request was closed while it waited");
    return 0;
}

/* How much of what ends with a command is done with it, and not with the steps behind it. */
static size_t piece_of(const struct core *core, const struct restart_command *restart)
{
    return restart->single_step ? SIZE_MAX : core->limits.ephemeral_batch;
}

int core__do_machine_lost(struct core *core, struct command *command)
{
    size_t left = piece_of(core, &command->restart);
    txn__abandon_updates(core, command->restart.single_step);
    txn__end_abandoned(core, &left);
    return 0;
}

/* What is open here was not lost with the host, or was loaded (core_load()): it goes on, but for what was the host's own. */
int core__do_restart(struct core *core, struct command *command)
{
    uint64_t host = host_of_number(command->request);
    size_t left = piece_of(core, &command->restart);
    int r = txn__end_lost(core, &left);
    if (r < 0)
        return tl_trace(r);
    txn__abandon_host(core, host);
    txn__end_abandoned(core, &left);
    command->restart.resubmit = r > 0;
    r = deferred__restart(core, &left);
    command->restart.resubmit |= !list_empty(&core->owners->unrequested);
    if (r < 0 || command->restart.resubmit)
        return r < 0 ? tl_trace(r) : 0;
    return session__restart(core, host);
}

/* --- Digest ------------------------------------------------------------------------------------------------------- */

static void fold(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *digest ^= *digest >> 29;
}

static uint64_t digest_lock(const struct lock_hold *hold)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    resource_print(hold->resource, &text);
    uint64_t digest = slice_hash(buf_as_slice(&text));
    fold(&digest, hold->mode);
    fold(&digest, hold->since);
    fold(&digest, hold->token);
    fold(&digest, hold->number);
    buf_deinit(&text);
    return digest;
}

/* Sessions and their locks; what a restart ends is not part of it. Sums, since a restart loads them in another order. */
int owners__digest(struct core *core, uint64_t *digest)
{
    size_t position = 0;
    struct slice id;
    void *value;
    uint64_t sum = 0;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        const struct session *session = value;
        uint64_t one = slice_hash(id);
        fold(&one, slice_hash(session->name));
        fold(&one, slice_hash(session->on_expire));
        fold(&one, session->ttl_us);
        fold(&one, session->created);
        fold(&one, session->terminating);
        fold(&one, session->locks_released);
        fold(&one, session->cleanup_pending);
        fold(&one, session->cleanup_pending ? session->actions_finished + 2 * session->actions_processed : 0);
        fold(&one, session->cleanup_pending ? session->script_steps_left : 0);
        uint64_t locks = 0;
        list_for_each(link, &session->owner.locks.holds)
        {
            const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
            if (hold->mode != LOCK_NONE)
                locks += digest_lock(hold);
        }
        fold(&one, locks);
        sum += one;
    }
    list_for_each(link, &core->owners->deferred) sum += deferred__digest(list_entry(link, struct deferred, of_all));
    sum += cleanup_attempt__digest(core);
    fold(digest, sum);
    return 0;
}
