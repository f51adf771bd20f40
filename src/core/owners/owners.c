/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of owners in a step: expired deadlines, cleanup in batches, grants and deadlock victims
 * of the lock table, and commands that resume. See owners.h and README-locks.md.
 */
#include "base/budget.h"
#include "base/check.h"
#include "base/magic.h"
#include "core/acquire/acquire.h"
#include "core/acquire/grants.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/cleanup/deferred.h"
#include "core/cleanup/session_end.h"
#include "core/command/command.h"
#include "core/documents/document_owners.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/hosts.h"
#include "core/owners/owners_step.h"
#include "core/session/cost.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/save_chunk.h"
#include "core/session/save_pieces.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/transaction/txn_end.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/lock_event.h"
#include "core/wait/lock_history.h"
#include "core/wait/wait.h"

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

/*
 * Gives the victim's command its problem, and adds a lock event. A requeued victim only counts in
 * the metrics.
 */
static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *edges, size_t count,
                        bool requeued)
{
    struct owners *owners = context;
    struct wait *wait = lock_request_user(victim);
    REQUIRE(count > 0 && MAGIC_VALID(wait, WAIT_MAGIC) && (requeued || wait->command != NULL));
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct buf json = BUF_INIT(BUF_UNLIMITED);
    metric_add(requeued ? &owners->core->metrics.deadlocks_requeued : &owners->core->metrics.deadlocks, 1);
    if (requeued)
        return;
    describe_cycle(edges, count, "; ", owners->core, &text);
    describe_cycle_json(edges, count, &json);
    problem_set(wait__cause(wait), &wait->command->arena, PROBLEM_DEADLOCK_DETECTED, "deadlock: %.*s",
                SLICE_ARG(buf_as_slice(&text)));
    problem_details(wait__cause(wait), &wait->command->arena, "%.*s", SLICE_ARG(buf_as_slice(&json)));
    buf_clear(&text);
    describe_cycle(edges, count, "\n", owners->core, &text);
    buf_lit(&text, "\n");
    describe_owner(lock_request_owner(victim), owners->core, &text);
    if (owners->core->command_version >= COMMAND_SINCE_VICTIM_NAMED)
        buf_lit(&text, " is the victim");
    else
        buf_lit(&text, " gives way");
    lock_events_add(&owners->lock_events, owners->core->ts, "deadlock", buf_as_slice(&text));
    buf_deinit(&text);
    buf_deinit(&json);
}

/* Only locks of sessions outlast the requests of their owners, which are in waits and overlays. */
static void on_lock_changed(void *context, const struct lock_hold *hold, bool released)
{
    struct owners *owners = context;
    struct core *core = owners->core;
    lock_history_record_hold(&owners->lock_history, hold, released, core->ts);
    if (owner_of(hold->owner)->kind != OWNER_SESSION)
        return;
    REQUIRE(core->open);
    const uint64_t change[] = {core->ts, hold->number, hold->owner->number, hold->token,
                               (uint64_t)hold->mode << 2 | (uint64_t)hold->auxiliary << 1 | released};
    core__note_change(core, slice_hash(slice_make(change, sizeof change)));
}

static void tally_memory(enum budget_kind kind, size_t held, size_t *tallied)
{
    size_t difference = held > *tallied ? held - *tallied : *tallied - held;
    if (difference < BUDGET_CHUNK && held != 0)
        return;
    budget_tally(kind, (ptrdiff_t)held - (ptrdiff_t)*tallied);
    *tallied = held;
}

static void update_metrics(const struct owners *owners, struct core_metrics *metrics)
{
    INSIST(owners->terminating_count <= owners->sessions.count);
    for (int mode = LOCK_S; mode < LOCK_MODE_COUNT; mode++) {
        metric_set(&metrics->held[mode], owners->locks.held[mode]);
        metric_set(&metrics->requested[mode], owners->locks.requested[mode]);
    }
    metric_set(&metrics->waiting, owners->locks.waiting_count);
    metric_set(&metrics->sessions, owners->sessions.count - owners->terminating_count);
    metric_set(&metrics->transactions, owners->txns.count);
    metric_set(&metrics->deferred_actions, owners->deferred_count);
}

void owners__update_budget(struct core *core)
{
    struct owners *owners = core->owners;
    const struct lock_table *locks = &owners->locks;
    size_t resource_bytes = locks->resources.count == 0 ? 0 : locks->resources.bytes;
    tally_memory(BUDGET_LOCKS, resource_bytes + locks->hold_count * sizeof(struct lock_hold) + owners->wait_bytes,
                 &owners->tallied_locks);
    tally_memory(BUDGET_ACTIONS, owners->action_bytes, &owners->tallied_actions);
    update_metrics(owners, &core->metrics);
}

/* The piece of a waiting request names the directory of each document that it locks. */
static void on_request_moved(void *context, const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID((struct wait *)lock_request_user(request), WAIT_MAGIC));
    struct owners *owners = context;
    save_chunk__touch(&owners->wait_chunks, &((struct wait *)lock_request_user(request))->saved);
}

static void on_piece_unused(void *context, uint64_t piece)
{
    save_pieces__delete(&((struct owners *)context)->pieces, piece);
}

void owners__open(struct core *core)
{
    REQUIRE(core->owners == NULL);
    struct owners *owners = mem_zalloc(sizeof *owners);
    const struct lock_hooks hooks = {on_deadlock, on_lock_changed, on_piece_unused, on_request_moved, owners};
    owners->core = core;
    core->owners = owners;
    owners->wait_ops_of = owners__wait_ops;
    lock_table_init(&owners->locks, &hooks);
    deadlines_init(&owners->leases);
    deadlines_init(&owners->wait_ends);
    deadlines_init(&owners->idles);
    list_init(&owners->open_txns);
    save_pieces__init(core);
    save_chunks__init(&owners->session_chunks);
    save_chunks__init(&owners->wait_chunks);
    list_init(&owners->waits);
    list_init(&owners->cancelled);
    list_init(&owners->ready);
    list_init(&owners->sessions_to_clean);
    list_init(&owners->sessions_to_purge);
    list_init(&owners->cleanup_attempts);
    list_init(&owners->deferred);
    list_init(&owners->unrequested);
    owners->finished_slow_waits = BUF_INIT(BUF_UNLIMITED);
}

static void free_owners(struct core *core)
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
    owners->locks.hooks = (struct lock_hooks){0}; /* no lock is released by a close */
    save_chunks__deinit(&owners->session_chunks);
    save_chunks__deinit(&owners->wait_chunks);
    while (!list_empty(&owners->waits)) {
        struct wait *wait = list_entry(owners->waits.next, struct wait, of_all);
        REQUIRE(wait->command == NULL);
        wait__free(core, wait);
    }
    free_owners(core);
    save_pieces__deinit(core);
    INSIST(owners->terminating_count == 0 && owners->abandoned_count == 0 && owners->deferred_count == 0);
    INSIST(owners->action_bytes == 0 && owners->wait_bytes == 0 && owners->ready_count == 0);
    map_deinit(&owners->sessions);
    map_deinit(&owners->txns);
    map_deinit(&owners->requests);
    map_deinit(&owners->kept_writes);
    map_deinit(&owners->named_writes);
    map_deinit(&owners->deferred_by_number);
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

/* Completes the SESSION_CLOSE commands that wait for the end of these sessions. */
static void complete_closes(struct core *core, struct list *sessions)
{
    list_for_each(link, sessions)
    {
        struct session *session = list_entry(link, struct session, of_terminating);
        struct command *command = tl_steal(session->close_command);
        INSIST(session__state(session) != SESSION_LIVE);
        if (command == NULL)
            continue;
        problem_set(&command->problem, &command->arena, PROBLEM_STOPPING, "the server is shutting down");
        core__complete(core, command);
    }
}

void owners__stop(struct core *core)
{
    REQUIRE(!core->open);
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
    map_deinit(&owners->kept_writes);
    owners->kept_writes = MAP_INIT;
    map_deinit(&owners->named_writes);
    owners->named_writes = MAP_INIT;
    complete_closes(core, &owners->sessions_to_clean);
    complete_closes(core, &owners->sessions_to_purge);
}

/*
 * While `ready` has waits left by an earlier step, only TICK resumes them. While requests wait only because
 * of a quota of grants, only TICK grants them; before version 9 each step granted those of deferred cleanup.
 * TRIED and SKIP run no deferred cleanup: it could end the process again before the next attempt is counted.
 */
void owners__begin_step(struct core *core, enum command_type type)
{
    REQUIRE(!core->open && core->owners->locks.grants_suspended == 0);
    struct owners *owners = core->owners;
    lock_history_begin_step(&owners->lock_history);
    owners->locks.precedes_undo = core->command_version < COMMAND_SINCE_UNDO;
    owners->locks.grants_by_specs = core->command_version < COMMAND_SINCE_GRANTED_PLACES;
    bool cleans = type == COMMAND_TICK || core->command_version < COMMAND_SINCE_TICK_CLEANUP ||
                  !lock_table_has_ready_cleanup(&owners->locks);
    bool no_cleanup = type == COMMAND_TRIED || type == COMMAND_SKIP;
    bool resumes = !no_cleanup && (type == COMMAND_TICK || list_empty(&owners->ready));
    owners->locks.cleanup_quota = no_cleanup || !cleans ? 0 : core->limits.purge_batch;
    owners->cost_left = resumes ? core->limits.ephemeral_batch : 0;
    owners->cost_kept = 0;
    bool grants = type == COMMAND_TICK || !lock_table_has_pending_grants(&owners->locks);
    lock_table_set_grant_quota(&owners->locks, grants ? GRANTS_PER_COST * core->limits.ephemeral_batch : 0);
    cost_begin_step(core);
}

uint64_t owners__lock_work(const struct core *core)
{
    return lock_table_work(&core->owners->locks);
}

/* Locks granted in the unit are granted at its timestamp. */
static void begin_unit(struct core *core)
{
    struct owners *owners = core->owners;
    if (owners == NULL)
        return;
    lock_table_set_ts(&owners->locks, core->ts);
    owners->ephemeral_deltas = NULL;
    owners->ephemeral_delta_count = owners->ephemeral_delta_capacity = 0;
    owners->dropped_indices = NULL;
    owners->dropped_count = owners->dropped_capacity = 0;
}

/* The last fencing token issued in the unit is a timestamp that it used. */
static void finish_unit(struct core *core)
{
    if (core->owners == NULL)
        return;
    session__orphan_dropped(core);
    core->used_ts = lock_table_last_ts(&core->owners->locks);
}

const struct document_owners owners__of_documents = {
    .check_session = session__check_ephemeral,
    .check_count = session__check_ephemeral_count,
    .count = session__count_ephemeral_document,
    .any_terminating = session__any_terminating,
    .transaction_is_open = txn__is_open,
};

const struct unit_part owners__part = {.begin = begin_unit,
                                       .finish = finish_unit,
                                       .rollback = session__rollback_ephemeral_counts,
                                       .index_dropped = session__drop_index};

/* --- Commands that wait ------------------------------------------------------------------------------------------- */

const struct wait_ops *owners__wait_ops(const struct command *command)
{
    return command == NULL ? &deferred__wait_ops : acquire__wait_ops(command->type);
}

/* --- Deadlines ---------------------------------------------------------------------------------------------------- */

/* Whether the next TICK continues terminations or deferred cleanup. */
static bool has_cleanup(const struct owners *owners)
{
    return !list_empty(&owners->sessions_to_clean) || !list_empty(&owners->sessions_to_purge) ||
           lock_table_has_ready_cleanup(&owners->locks);
}

uint64_t core_next_wait_end(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    const struct owners *owners = core->owners;
    bool has_work = has_cleanup(owners) || owners->abandoned_count > 0 || !list_empty(&owners->cancelled) ||
                    !list_empty(&owners->ready) || lock_table_has_pending_grants(&core->owners->locks);
    return has_work ? 0 : deadlines_first(&owners->wait_ends);
}

uint64_t core_next_lease_end(const struct core *core)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
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

/* Returns: whether a deadline of a wait or of an idle transaction is due. */
static bool any_due(const struct core *core, uint64_t barrier_clock)
{
    return deadlines_due(&core->owners->wait_ends, core->clock) != NULL ||
           deadlines_due(&core->owners->idles, barrier_clock) != NULL;
}

/*
 * Handles the requests that the open unit granted or ended, and commits it. `r`: what the unit's own work
 * returned; a fatal code goes first.
 */
static int settle_and_commit(struct core *core, int r)
{
    if (r >= 0)
        r = grants__settle(core);
    int written = core__commit(core);
    return r < 0 ? r : written;
}

/* Handles the earliest due deadline of waits and idle transactions, in a unit. Requires: any_due(). */
static int run_first_due(struct core *core, tl_ts ts, uint64_t barrier_clock, size_t *left)
{
    REQUIRE(*left > 0 && barrier_clock <= core->clock);
    struct owners *owners = core->owners;
    struct deadline *wait = deadlines_due(&owners->wait_ends, core->clock);
    struct deadline *idle = deadlines_due(&owners->idles, barrier_clock);
    int r = 0;

    INSIST(wait != NULL || idle != NULL);
    core__begin(core, ts);
    if (wait != NULL && (idle == NULL || wait->at <= idle->at)) {
        r = grants__time_out(core, container_of(wait, struct wait, deadline), left);
    } else {
        txn__end_idle(core, container_of(idle, struct txn, idle), left);
    }
    return settle_and_commit(core, r);
}

/* Resumes grants after cleanup, which has its part of the step's account. */
static void resume_grants(struct core *core)
{
    cost_charge_spent(core);
    lock_table_resume_grants(&core->owners->locks);
}

/* What the TICK has spent so far is charged before an owner ends, which must fit in the rest: cost_fits(). */
static void cost_charge_before_end(struct core *core)
{
    if (core->command_version >= COMMAND_SINCE_ENDS_FIT)
        cost_charge_spent(core);
}

/*
 * Begins the termination of all sessions whose leases have expired, in one unit, which also ends the
 * first batch of their waits. It resumes grants if no cleanup follows, also for lack of cost `left`.
 */
static int expire_sessions(struct core *core, tl_ts ts, uint64_t barrier_clock, size_t *left)
{
    struct owners *owners = core->owners;
    REQUIRE(owners->locks.grants_suspended > 0); /* invariant 7 */
    struct deadline *due;
    core__begin(core, ts);
    uint64_t before = core->work, work = 0;
    for (; (due = deadlines_due(&owners->leases, barrier_clock)) != NULL; work += WORK_WRITE) /* of its record */
        session__begin_termination(core, container_of(due, struct session, lease), SESSION_END_EXPIRED);
    work += core->work - before; /* a unit for each of their waits */
    if (core->command_version >= COMMAND_SINCE_WORK_ACCOUNT)
        cost_charge(left, work / WRITE_WORK_PER_COST);
    cost_charge_spent(core);
    session__drop_records(core); /* readers do not find them while their cleanup is pending */
    int r = grants__end_some_cancelled(core, left);
    if (*left == 0 || !session__can_clean(core))
        resume_grants(core);
    return settle_and_commit(core, r);
}

/*
 * Continues the cleanup of the first session, in its own unit. The last such unit of the step
 * resumes grants.
 */
static int clean_one(struct core *core, tl_ts ts, size_t *left, size_t all)
{
    REQUIRE(core->owners->locks.grants_suspended > 0 && *left <= all);
    core__begin(core, ts);
    cost_charge_before_end(core);
    int r = session__continue_cleanup(core, left, all);
    if (!session__can_clean(core) || *left == 0)
        resume_grants(core);
    return settle_and_commit(core, r);
}

/*
 * Cancels the waits of all expired sessions first, then cleans up sessions whose waits have ended,
 * while *left > 0; charges the cost to *left. Grants are suspended until the last cleanup of the
 * step: no session that expired at this timestamp is granted a lock (invariant 7), and no other
 * owner sees half a cleanup.
 */
static int clean_sessions(struct core *core, tl_ts ts, bool due, uint64_t barrier_clock, size_t *left)
{
    struct owners *owners = core->owners;
    size_t all = *left;
    due = due && deadlines_due(&owners->leases, barrier_clock) != NULL;
    if (!due && (!session__can_clean(core) || all == 0))
        return 0;
    lock_table_suspend_grants(&owners->locks);
    int r = due ? expire_sessions(core, ts, barrier_clock, left) : 0;
    /*
     * Both resume grants when nothing is left to clean in this step. Not session__can_clean(): a request
     * that is granted then, and has been cancelled, ends, and may be the last one of its session.
     */
    while (r >= 0 && owners->locks.grants_suspended > 0)
        r = clean_one(core, ts, left, all);
    ENSURE(r < 0 || owners->locks.grants_suspended == 0);
    return r;
}

/* Rolls back abandoned transactions, in one unit. */
static int end_abandoned(struct core *core, tl_ts ts, size_t *left)
{
    REQUIRE(core->owners->abandoned_count > 0 && *left > 0);
    core__begin(core, ts);
    cost_charge_before_end(core);
    txn__end_abandoned(core, left);
    return settle_and_commit(core, 0);
}

/* Ends one batch of cancelled waits, in one unit. */
static int end_cancelled(struct core *core, tl_ts ts, size_t *left)
{
    core__begin(core, ts);
    int r = grants__end_some_cancelled(core, left);
    return settle_and_commit(core, r);
}

/*
 * Purges one batch of documents, and grants the deferred cleanup and the requests that were beyond
 * the quotas of the last step.
 */
static int purge_step(struct core *core, tl_ts ts)
{
    struct owners *owners = core->owners;
    int r = 0;
    core__begin(core, ts);
    if (list_empty(&owners->sessions_to_purge)) {
        lock_table_continue_grants(&owners->locks);
    } else {
        lock_table_suspend_grants(&owners->locks);
        r = session__purge_batch(core, &owners->cost_left);
        resume_grants(core);
    }
    r = settle_and_commit(core, r);
    ENSURE(r < 0 || owners->locks.grants_suspended == 0);
    return r;
}

/*
 * Handles one batch of due waits and idle transactions. All other waiting requests may depend on
 * each one that ends, so its cost also grows with their number.
 */
static int run_due_batch(struct core *core, tl_ts ts, uint64_t barrier_clock, size_t *left)
{
    enum { WAITING_PER_COST = 400 };
    int r = 0;
    while (*left > 0 && core->owners->work_left > 0 && r >= 0 && any_due(core, barrier_clock)) {
        size_t cost = core->owners->locks.waiting_count / WAITING_PER_COST;
        r = run_first_due(core, ts, barrier_clock, left);
        cost_charge(left, cost);
    }
    return r;
}

/*
 * The account of a TICK. All of its parts are charged to owners->cost_left, in their order: the purge,
 * cleanup, timeouts, commands that resume. A quarter of it (COST_KEPT_PART) is kept for timeouts, and
 * one for commands that are ready already, so that cleanup does not delay them until its end; the end
 * of one session, which is not divided, may take them. Each kind does a little in any case
 * (COST_LEAST_PART). Steps of commands before version 11 have an account for each.
 */
static bool has_one_account(const struct core *core)
{
    return core->command_version >= COMMAND_SINCE_STEP_ACCOUNT;
}

/* Begins the account. `timeouts`: some are due. */
static void begin_account(struct core *core, bool timeouts)
{
    struct owners *owners = core->owners;
    size_t part = core->limits.ephemeral_batch / COST_KEPT_PART;
    if (!has_one_account(core))
        return;
    INSIST(owners->cost_left == core->limits.ephemeral_batch); /* a TICK resumes commands */
    owners->cost_kept = (timeouts ? part : 0) + (list_empty(&owners->ready) ? 0 : part);
    owners->cost_left -= owners->cost_kept;
}

/*
 * Ends the part of the account that cleanup has: timeouts may take all but the part for ready commands.
 * `timeouts`: some are due.
 */
static void begin_timeouts(struct core *core, bool timeouts)
{
    struct owners *owners = core->owners;
    size_t part = core->limits.ephemeral_batch / COST_KEPT_PART;
    size_t least = core->limits.ephemeral_batch / COST_LEAST_PART + 1;
    size_t rest = owners->cost_left + owners->cost_kept;
    if (!has_one_account(core))
        return;
    INSIST(rest <= core->limits.ephemeral_batch); /* cleanup only charges */
    cost_charge_spent(core);
    part = part < owners->cost_kept ? part : owners->cost_kept;
    owners->cost_kept = list_empty(&owners->ready) ? 0 : part > least ? part : least;
    owners->cost_left = rest > owners->cost_kept ? rest - owners->cost_kept : 0;
    if (timeouts && owners->cost_left < least)
        owners->cost_left = least;
    cost_leave_least(core);
}

/* Ends the part of timeouts: commands that are ready take the rest. */
static void end_timeouts(struct core *core)
{
    core->owners->cost_left += core->owners->cost_kept;
    core->owners->cost_kept = 0;
    cost_leave_least(core);
}

/*
 * Whether a TICK ends abandoned transactions and sessions before it purges documents and continues grants: in every
 * fourth turn, if the first end may need most of a step (cost_fits()).
 */
static bool owners_end_first(struct core *core)
{
    enum { TURNS = 4 };
    if (cost_turn(core) % TURNS != 0)
        return false;
    return cost_is_large(core, txn__next_end_cost(core)) ||
           (session__can_clean(core) && cost_is_large(core, session__next_end_cost(core)));
}

int owners__run_due(struct core *core, tl_ts at, const struct tick_command *tick)
{
    REQUIRE(!core->open);
    REQUIRE(core->effects != NULL);
    if (tick == NULL && core->command_version >= COMMAND_SINCE_TICK_CLEANUP)
        return 0;
    struct owners *owners = core->owners;
    uint64_t barrier_clock = tick == NULL ? 0 : tick->barrier_clock < core->clock ? tick->barrier_clock : core->clock;
    size_t own = core->limits.ephemeral_batch, own_due = own; /* of commands before version 11 */
    size_t *left = has_one_account(core) ? &owners->cost_left : &own;
    bool granting = owners->locks.grant_quota > 0 && lock_table_has_pending_grants(&owners->locks);
    bool terminating = granting || has_cleanup(owners), abandoned = owners->abandoned_count > 0;
    bool cancelling = !list_empty(&owners->cancelled);
    bool expired = tick != NULL &&
                   (deadlines_first(&owners->wait_ends) <= core->clock || core_next_lease_end(core) <= barrier_clock);
    bool has_due = terminating || cancelling || abandoned || expired;
    if (tick != NULL && grants__has_turn(core, has_due)) {
        if (granting) /* the turn of the others continues with them */
            lock_table_set_grant_quota(&owners->locks, 0);
        return grants__resume(core);
    }
    begin_account(core, expired);
    bool ends_first = owners_end_first(core);
    if (ends_first && granting) /* the next turn continues with them */
        lock_table_set_grant_quota(&owners->locks, 0);
    int r = 0;
    if (ends_first && abandoned)
        r = end_abandoned(core, at, left);
    else if (terminating && !ends_first)
        r = purge_step(core, at);
    if (r >= 0)
        r = clean_sessions(core, at, expired, barrier_clock, left);
    if (r >= 0 && cancelling)
        r = end_cancelled(core, at, left);
    if (r >= 0 && owners->abandoned_count > 0 && *left > 0)
        r = end_abandoned(core, at, left);
    begin_timeouts(core, expired);
    if (r >= 0 && expired && !lock_table_has_pending_grants(&owners->locks))
        r = run_due_batch(core, at, barrier_clock, has_one_account(core) ? left : &own_due);
    end_timeouts(core);
    if (r >= 0 && has_due)
        r = grants__resume(core);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

int core__do_cancel(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_CANCEL);
    uint64_t host = host_of_number(command->cancel.request);
    if (command->cancel.request == host << HOST_SHIFT && command->cancel.keeps_places)
        return grants__cancel_restarted_host(core, host);
    if (command->cancel.request == host << HOST_SHIFT)
        return grants__cancel_stopping_host(core, host, command->cancel.single_step);
    struct wait *wait = wait__by_request(core, command->cancel.request);
    if (wait != NULL && wait__is_to_be_kept(wait))
        return 0; /* the number is one of its host's next life by now */
    if (wait != NULL && command->cancel.keeps_places && core->command_version >= COMMAND_SINCE_PLACES_IN_BATCHES)
        return grants__cancel_at_end(core, wait);
    if (wait != NULL) {
        grants__charge_end(core, wait);
        wait__fail(core, wait, PROBLEM_LOCK_WAIT_TIMEOUT, "the connection of the request was closed while it waited");
    }
    return 0;
}

/*
 * Returns: the cost that a command may spend; `single_step`: commands of older versions do
 * everything in one step.
 */
static size_t cost_limit(const struct core *core, const struct restart_command *restart)
{
    return restart->single_step ? SIZE_MAX : core->limits.ephemeral_batch;
}

int core__do_machine_lost(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_MACHINE_LOST);
    size_t all = cost_limit(core, &command->restart), left = all;
    txn__abandon_updates(core, command->restart.single_step);
    txn__end_abandoned(core, &left);
    cost_charge_work(core, WRITE_WORK_PER_COST * (uint64_t)(all - left));
    return 0;
}

/*
 * Transactions in memory continue, except those that the host began for requests: the host lost
 * those requests.
 */
int core__do_restart(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_RESTART);
    uint64_t host = host_of_number(command->request);
    size_t all = cost_limit(core, &command->restart), left = all;
    txn__abandon_host(core, host);
    txn__end_abandoned(core, &left);
    int r = deferred__restart(core, &left);
    cost_charge_work(core, WRITE_WORK_PER_COST * (uint64_t)(all - left));
    command->restart.resubmit = !list_empty(&core->owners->unrequested);
    if (r < 0 || command->restart.resubmit)
        return r < 0 ? tl_trace(r) : 0;
    return session__restart(core, host);
}

/* --- Digest ------------------------------------------------------------------------------------------------------- */

static void fold_number(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *digest ^= *digest >> 29;
}

static uint64_t digest_lock(const struct lock_hold *hold)
{
    REQUIRE(hold->mode > LOCK_NONE && hold->mode < LOCK_MODE_COUNT);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    resource_print(hold->resource, &text);
    uint64_t digest = slice_hash(buf_as_slice(&text));
    fold_number(&digest, hold->mode);
    fold_number(&digest, hold->since);
    fold_number(&digest, hold->token);
    fold_number(&digest, hold->number);
    buf_deinit(&text);
    return digest;
}

/*
 * Covers sessions, their locks and deferred cleanup, but nothing that a restart ends. Adds up
 * hashes because a restart loads them in another order.
 */
int owners__digest(struct core *core, uint64_t *digest)
{
    REQUIRE(!core->open);
    size_t position = 0;
    struct slice id;
    void *value;
    uint64_t sum = 0;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        const struct session *session = value;
        uint64_t one = slice_hash(id);
        fold_number(&one, slice_hash(session->name));
        fold_number(&one, slice_hash(session->on_expire));
        fold_number(&one, session->ttl_us);
        fold_number(&one, session->created);
        fold_number(&one, session->terminating);
        fold_number(&one, session->locks_released);
        fold_number(&one, session->cleanup_pending);
        fold_number(&one, session->cleanup_pending ? session->actions_finished + 2 * session->actions_processed : 0);
        fold_number(&one, session->cleanup_pending ? session->script_steps_left : 0);
        uint64_t locks = 0;
        list_for_each(link, &session->owner.locks.holds)
        {
            const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
            if (hold->mode != LOCK_NONE)
                locks += digest_lock(hold);
        }
        fold_number(&one, locks);
        sum += one;
    }
    list_for_each(link, &core->owners->deferred) sum += deferred__digest(list_entry(link, struct deferred, of_all));
    sum += cleanup_attempt__digest(core);
    fold_number(digest, sum);
    return 0;
}
