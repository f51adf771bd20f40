/* SPDX-License-Identifier: Apache-2.0 */
/* Where commands pass from waiting to executing, or to their end; see grants.h. */
#include "core/acquire/grants.h"

#include "base/check.h"
#include "base/magic.h"
#include "core/acquire/acquire.h"
#include "core/acquire/ask.h"
#include "core/command/command.h"
#include "core/documents/request_outcome.h"
#include "core/documents/write_command.h"
#include "core/locks/lock.h"
#include "core/session/cost.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/transaction/txn_end.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

/* How long the place of a request is kept for its client after an end of its host. */
#define KEPT_PLACE_US (10 * TL_SECOND)
/*
 * Locks or items of a kept request, and bytes of its sources, for which it counts as one more cancelled request, since
 * its command is copied; and later requests of its session, and locks of theirs, that it is compared with.
 */
enum { KEPT_TARGETS = 20, KEPT_BYTES = 4096, KEPT_LOOKS = 20 };
/* Places in queues, or locks that it has already, and items, for which a request that ends counts as one more. */
enum { CANCELLED_PLACES = 32, CANCELLED_ITEMS = 20 };
/* Work for a name that a LOCK looks at again, twice if it then asks for other locks, with the directories above. */
enum { WORK_NAME_AGAIN = 2 * (WORK_READ + WORK_LOCK_ASKED) + WORK_LEVELS_USUAL * WORK_LEVEL_LOCKED };
/* Changes of aliases in one request that resume whatever others have spent. */
enum { ALIASES_FREE = 100 };

/* --- Cancelled waits ---------------------------------------------------------------------------------------------- */

/* Ends a wait because its session, or that of its transaction, has ended. */
static void end_with_session(struct core *core, struct wait *wait)
{
    REQUIRE(wait->txn != NULL || wait->session != NULL);
    char cause[100];
    if (wait->txn == NULL) {
        wait__end(core, wait, PROBLEM_SESSION_MISSING, "session [%.*s] ended while the request waited",
                  SLICE_ARG(wait->session->id));
        return;
    }
    session__cause_of_end(wait->txn->owner.session, cause, sizeof cause);
    txn__end_waiting(core, wait->txn, slice_from(cause));
}

static void keep_place(struct core *core, struct wait *wait)
{
    wait__keep(core, wait, deadline_after(core, KEPT_PLACE_US));
    if (lock_request_state(wait->request) == LOCK_STATE_GRANTED)
        wait__keep_granted(core, wait);
}

/*
 * Gives the place of a kept wait to a later one, which repeats its request already. A write that has its locks runs
 * in its turn.
 */
static void give_place(struct core *core, struct wait *kept, struct wait *later)
{
    struct command *command = later->command;
    struct txn *txn = command->type == COMMAND_WRITE ? later->txn : NULL; /* in pieces, its own */
    uint64_t until = later->until;
    bool runs = kept->granted_ts != 0 && command->type == COMMAND_WRITE;
    wait__free(core, later);
    if (txn != NULL) {
        command->owner.transaction = SLICE_NONE;
        command->write.attempts = 0; /* of its own transaction */
        txn__drop(core, txn);
    }
    wait__take_over(core, kept, command, until);
    if (!runs)
        return;
    kept->granted_ts = 0;
    wait__enqueue_ready(core, kept);
}

static void end_stopped(struct core *core, struct wait *wait)
{
    wait__end(core, wait, PROBLEM_STOPPING, "%s", wait__cancel_text(wait->cancelled));
}

/*
 * Finds whether a write of its ID has left an outcome before the place of `wait` is kept: any repetition finds that,
 * so none would take the place over. One that comes later ends the place: acquire__end_place(). Adds to *looks as how
 * many comparisons that counts.
 * Returns: 0, it has; REQUEST_OUTCOME_NONE; fatal codes.
 */
static int find_older_outcome(struct core *core, const struct wait *wait, size_t *looks)
{
    if (wait->command->type != COMMAND_WRITE || core->command_version < COMMAND_SINCE_OLDER_OUTCOMES)
        return REQUEST_OUTCOME_NONE;
    *looks += KEPT_LOOKS; /* a read of the store */
    return request_outcome__exists(core, &wait->command->write.request);
}

/*
 * Keeps the place of a write in its turn. It ends instead if no client would take its place over: another request of
 * its ID came earlier, or has locks, or has left an outcome. Adds to *looks with how many requests it was compared.
 */
static int keep_write_in_turn(struct core *core, struct wait *wait, size_t *looks)
{
    bool later;
    struct wait *other = acquire__find_repeated(core, wait, looks, &later);
    bool ends = other != NULL && (!later || other->ready || wait__has_begun(other));
    if (other == NULL) {
        int r = find_older_outcome(core, wait, looks);
        if (r < 0)
            return tl_trace(r);
        ends = r == 0;
    }
    if (ends) {
        end_stopped(core, wait);
        return 0;
    }
    keep_place(core, wait);
    if (other != NULL)
        give_place(core, wait, other);
    return 0;
}

/*
 * Keeps the place of a wait in its turn. A client notices the death of its host before the cluster does, and may have
 * repeated the request by another host by now. If it is `granted`, the session's lock covers that one.
 * Adds to *looks with how many requests and locks it was compared. Returns: 0; fatal codes.
 */
static int keep_in_turn(struct core *core, struct wait *wait, bool granted, size_t *looks)
{
    bool write = wait->command->type == COMMAND_WRITE;
    if (write && core->command_version >= COMMAND_SINCE_PLACES_OF_WRITES)
        return keep_write_in_turn(core, wait, looks);
    bool gone = wait->cancelled == WAIT_PLACE_KEPT_GONE && !granted;
    struct wait *later = gone && !write ? lock__find_repeated(core, wait, looks) : NULL;
    keep_place(core, wait);
    if (later != NULL)
        give_place(core, wait, later);
    return 0;
}

/* Adds to *looks how many comparisons that took. Returns: 0; fatal codes. */
static int end_cancelled(struct core *core, struct wait *wait, bool granted, size_t *looks)
{
    REQUIRE(core->open && MAGIC_VALID(wait, WAIT_MAGIC));
    REQUIRE(wait->cancelled != WAIT_NOT_CANCELLED);
    if (wait__is_to_be_kept(wait))
        return keep_in_turn(core, wait, granted, looks);
    if (granted)
        wait->granted_ts = core->ts;
    if (wait->cancelled == WAIT_SESSION_ENDED)
        end_with_session(core, wait);
    else
        end_stopped(core, wait);
    return 0;
}

int grants__end_cancelled(struct core *core, struct wait *wait, bool granted)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    return end_cancelled(core, wait, granted, &(size_t){0});
}

/* Returns: the places in queues that a wait leaves, and the locks that are released with it. */
static size_t places_of(const struct wait *wait)
{
    size_t places = wait->write_owner == NULL ? 0 : wait->owner->hold_count;
    if (wait->request == NULL)
        return places;
    bool waits = lock_request_state(wait->request) == LOCK_STATE_WAITING;
    return places + (waits ? lock_request_place_count(wait->request) : lock_request_spec_count(wait->request));
}

/* Returns: as how many cancelled requests one counts that ends. */
static size_t count_of_ended(const struct core *core, const struct wait *wait)
{
    if (core->command_version < COMMAND_SINCE_CANCELS_WEIGHED)
        return 1;
    const struct command *command = wait->command;
    size_t items = command->type == COMMAND_WRITE ? command->write.item_count : 0;
    bool in_pieces = wait__is_in_pieces(wait) && wait->txn != NULL && core->command_version < COMMAND_SINCE_ENDS_FIT;
    uint64_t txn = in_pieces ? txn__rollback_cost(core, wait->txn) : 0; /* since then txn__drop() charges it */
    return 1 + places_of(wait) / CANCELLED_PLACES + items / CANCELLED_ITEMS + CANCELS_PER_COST * (size_t)txn;
}

/* Returns: as how many cancelled requests one counts. */
static size_t count_of(const struct core *core, const struct wait *wait)
{
    const struct command *command = wait->command;
    if (!wait__is_to_be_kept(wait))
        return count_of_ended(core, wait);
    if (command->type == COMMAND_LOCK)
        return 1 + command->lock.target_count / KEPT_TARGETS;
    return 1 + command->write.item_count / KEPT_TARGETS + write_source_bytes(&command->write) / KEPT_BYTES;
}

/*
 * Returns: the work of ending a cancelled wait, or of keeping its place, which copies its command. One that ends when
 * the step has no cost left is answered in a later step: wait__end().
 */
static uint64_t work_of_cancelled(const struct core *core, const struct wait *wait)
{
    const struct command *command = wait->command;
    bool keeps = wait__is_to_be_kept(wait);
    bool now = keeps || core->owners->cost_left > 0;
    uint64_t work = (now ? WORK_OWNER : WORK_LOCK) + WORK_RELEASE * (uint64_t)places_of(wait);
    if (command->type == COMMAND_WRITE)
        work += (keeps ? WORK_ITEM : WORK_RESULT) * (uint64_t)command->write.item_count;
    if (keeps)
        return work + (command->type == COMMAND_WRITE ? write_source_bytes(&command->write) / WORK_BYTES
                                                      : WORK_LOCK * (uint64_t)command->lock.target_count);
    bool in_pieces = wait__is_in_pieces(wait) && wait->txn != NULL && core->command_version < COMMAND_SINCE_ENDS_FIT;
    return work + (in_pieces ? txn__rollback_work(wait->txn) : 0);
}

void grants__charge_end(struct core *core, const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->command != NULL);
    cost_charge_work(core, work_of_cancelled(core, wait));
}

/*
 * Ends cancelled waits, at most `max`, of which the last may count as more, and as far as the step's account of work
 * goes. The end of one may free the lock that
 * another one waits for: that is granted only when all have ended, so grants__settle() finds it as granted, and
 * releases it. *ret_count: how many have ended.
 * Returns: 0; fatal codes.
 */
static int end_some_cancelled(struct core *core, size_t max, size_t *ret_count)
{
    struct list *cancelled = &core->owners->cancelled;
    size_t count = 0;
    int r = 0;
    lock_table_suspend_grants(&core->owners->locks);
    while (r == 0 && count < max && !list_empty(cancelled) && (count == 0 || core->owners->work_left > 0)) {
        struct wait *wait = list_entry(cancelled->next, struct wait, of_cancelled);
        size_t looks = 0;
        grants__charge_end(core, wait);
        count += count_of(core, wait);
        r = end_cancelled(core, wait, false, &looks);
        count += looks / KEPT_LOOKS;
    }
    lock_table_resume_grants(&core->owners->locks);
    *ret_count = count;
    return r;
}

/* As end_some_cancelled(), at most a batch; `all`: without that limit. */
static int end_batch(struct core *core, bool all)
{
    size_t max = all ? SIZE_MAX : CANCELS_PER_COST * core->limits.ephemeral_batch;
    return end_some_cancelled(core, max, &(size_t){0});
}

int grants__end_some_cancelled(struct core *core, size_t *left)
{
    REQUIRE(core->open);
    size_t least = core->limits.ephemeral_batch / COST_LEAST_PART + 1, count;
    if (core->command_version < COMMAND_SINCE_STEP_ACCOUNT)
        return end_batch(core, false);
    /* All that cost no more than is left; a part of a point is free. */
    size_t max = CANCELS_PER_COST * ((*left > least ? *left : least) + 1) - 1;
    int r = end_some_cancelled(core, max, &count);
    cost_charge(left, count / CANCELS_PER_COST);
    return r;
}

/*
 * Whether a write can keep its place: its name says which request repeats it, and it has run nothing. Of several that
 * wait by one name, the first can. In commands before version 21 no client has the place that it has asked for by
 * another host before its own one is `gone`, and the transaction of a write in pieces ends.
 */
static bool write_can_be_kept(struct core *core, const struct wait *wait, bool gone)
{
    const struct write_request *request = &wait->command->write.request;
    bool before = core->command_version < COMMAND_SINCE_PLACES_OF_WRITES;
    if (core->command_version < COMMAND_SINCE_KEPT_WRITES || request->id.len == 0)
        return false;
    if (wait->write_owner == NULL && (before || !wait__is_in_pieces(wait)))
        return false;
    if (gone && before)
        return wait__has_place(wait); /* by a CANCEL */
    if (wait__has_begun(wait))
        return false; /* one in pieces: any other named write runs all its items in one unit */
    const struct wait *other = wait__kept_write(core, request);
    return other == NULL || other == wait;
}

/*
 * Whether a wait can keep its place, so that a request that repeats it takes it over. A LOCK that is ready has none:
 * its names changed, and it would ask for others. `gone`: its host is gone.
 */
static bool can_be_kept(struct core *core, const struct wait *wait, bool gone)
{
    bool with_locks = wait->command->type == COMMAND_WRITE && core->command_version >= COMMAND_SINCE_PLACES_OF_WRITES;
    if (wait__state(wait) != WAIT_PARKED && !(wait__state(wait) == WAIT_READY && with_locks))
        return false;
    if (wait->cancelled != WAIT_NOT_CANCELLED && !wait__is_to_be_kept(wait))
        return false;
    return wait->command->type == COMMAND_LOCK    ? wait->session != NULL
           : wait->command->type == COMMAND_WRITE ? write_can_be_kept(core, wait, gone)
                                                  : false;
}

/*
 * Cancels the waits of a host; with `keeps` those that can be kept are, in their turn. Those that are kept already
 * belong to no host any more: the number in their command may be of an earlier life.
 */
static void cancel_host(struct core *core, uint64_t host, enum wait_cancel cause, bool keeps)
{
    bool at_once = core->command_version < COMMAND_SINCE_PLACES_IN_BATCHES;
    enum wait_cancel to_keep = cause == WAIT_HOST_GONE ? WAIT_PLACE_KEPT_GONE : WAIT_PLACE_KEPT;
    list_for_each(link, &core->owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        core__work(core, WORK_LOCK);
        cost_charge_work(core, WORK_LOCK);
        if (wait->command == NULL || wait->ended || host_of_number(wait->command->request) != host)
            continue;
        if (!keeps || !can_be_kept(core, wait, cause == WAIT_HOST_GONE))
            wait__cancel(core, wait, cause);
        else if (at_once)
            keep_place(core, wait);
        else if (!wait->kept && !wait__is_to_be_kept(wait))
            wait__cancel(core, wait, to_keep);
    }
}

int grants__cancel_stopping_host(struct core *core, uint64_t host, bool single_step)
{
    REQUIRE(core->open);
    cancel_host(core, host, WAIT_HOST_STOPS, false);
    return end_batch(core, single_step);
}

int grants__cancel_gone_host(struct core *core, uint64_t host, bool single_step)
{
    REQUIRE(core->open);
    cancel_host(core, host, WAIT_HOST_GONE, core->command_version >= COMMAND_SINCE_PLACES_IN_CLUSTER);
    return end_batch(core, single_step);
}

int grants__cancel_restarted_host(struct core *core, uint64_t host)
{
    REQUIRE(core->open);
    cancel_host(core, host, WAIT_HOST_STOPS, true);
    return end_batch(core, false);
}

int grants__cancel_at_end(struct core *core, struct wait *wait)
{
    REQUIRE(core->open && MAGIC_VALID(wait, WAIT_MAGIC));
    bool kept = can_be_kept(core, wait, false);
    int r = kept ? find_older_outcome(core, wait, &(size_t){0}) : REQUEST_OUTCOME_NONE;
    if (r < 0)
        return tl_trace(r);
    if (kept && r == REQUEST_OUTCOME_NONE)
        keep_place(core, wait);
    else
        wait__fail(core, wait, PROBLEM_STOPPING, "%s", wait__cancel_text(WAIT_HOST_STOPS));
    return 0;
}

/* --- Grants and victims of the lock table ------------------------------------------------------------------------- */

int grants__settle(struct core *core)
{
    struct owners *owners = core->owners;
    struct lock_request *request;
    REQUIRE(core->open);
    for (;;) {
        struct wait *wait;
        if ((request = lock_table_next_victim(&owners->locks)) != NULL) {
            wait = lock_request_user(request);
            INSIST(MAGIC_VALID(wait, WAIT_MAGIC) && wait->request == request);
            wait->ops->on_deadlock(core, wait);
        } else if ((request = lock_table_next_granted(&owners->locks)) != NULL) {
            wait = lock_request_user(request);
            INSIST(MAGIC_VALID(wait, WAIT_MAGIC) && wait->request == request);
            int r = wait->cancelled != WAIT_NOT_CANCELLED ? grants__end_cancelled(core, wait, true)
                                                          : wait->ops->on_grant(core, wait);
            if (r < 0)
                return tl_trace(r);
        } else {
            cost_charge_work(core, 0); /* the grants */
            return 0;
        }
    }
}

void grants__on_deadlock(struct core *core, struct wait *wait)
{
    REQUIRE(wait->cause != NULL && wait->cause->type != PROBLEM_NONE);
    struct command *command = wait->command;
    ask__fail_victim(core, wait);
    core__complete(core, command);
}

/* --- Resuming ----------------------------------------------------------------------------------------------------- */

static int resume_or_answer(struct core *core, struct wait *wait)
{
    REQUIRE(wait->ops != NULL && wait->ops->resume != NULL);
    if (!wait->ended)
        return wait->ops->resume(core, wait);
    if (wait->ops->answer != NULL)
        return wait->ops->answer(core, wait);
    wait__answer(core, wait);
    return 0;
}

/* Returns: what others may have spent of the account where a command resumes that may take a whole step. */
static uint64_t free_part(const struct core *core)
{
    return core->step_account / STEP_ACCOUNT_FREE_PART;
}

/* Records of a unit that its items do not count: numbers, feed. */
enum { UNIT_RECORDS = 3 };

/* Returns: the work of a unit that ends a wait, as far as neither the counters have it nor its grant. */
static uint64_t work_of_unit(const struct wait *wait)
{
    size_t asked = wait->request == NULL ? 0 : lock_request_spec_count(wait->request);
    return WORK_UNIT + UNIT_RECORDS * WORK_WRITE + WORK_LOCK_ASKED * (uint64_t)asked +
           WORK_RELEASE * (uint64_t)places_of(wait);
}

static int resume_one(struct core *core, struct wait *wait)
{
    REQUIRE(core->open && !wait->ready);
    struct command *command = wait->command;
    struct cost_counters before = cost_counters_of(core);
    uint64_t cost = wait__cost(wait), own = work_of_unit(wait);
    if (wait->cancelled != WAIT_NOT_CANCELLED) {
        cost = 1 + count_of(core, wait) / CANCELS_PER_COST;
        cost_charge_work(core, WORK_UNIT + work_of_cancelled(core, wait));
        int ended = grants__end_cancelled(core, wait, false);
        if (core->command_version >= COMMAND_SINCE_CANCELS_WEIGHED)
            cost_charge(&core->owners->cost_left, cost);
        return ended;
    }
    int r = resume_or_answer(core, wait);
    if (r == 0 && command != NULL)
        core__complete(core, command);
    cost_charge(&core->owners->cost_left, cost_since(core, &before, cost));
    cost_charge_work(core, own + cost_work_since(core, &before));
    return r == CORE_WAITS ? 0 : r;
}

/* Whether it is a write of several items in a transaction, its own or a client's. */
static bool writes_in_txn(const struct wait *wait)
{
    return wait->txn != NULL && wait->command->type == COMMAND_WRITE && wait->command->write.item_count > 1;
}

/* Returns: at least as many levels as a path has. */
static uint64_t levels_at_most(struct slice path)
{
    return path.len / 2 + 1;
}

/*
 * Returns: about the work of looking at the names of a LOCK or of reads again, and of asking for other locks. Most
 * paths of documents are not known.
 */
static uint64_t work_of_names(const struct wait *wait)
{
    const struct command *command = wait->command;
    bool lock = command->type == COMMAND_LOCK;
    size_t locks = wait->request == NULL ? 0 : lock_request_spec_count(wait->request);
    size_t names = lock ? command->lock.target_count : command->txn_lock.target_count;
    uint64_t work = (uint64_t)WORK_NAME_AGAIN * (names > locks ? names : locks), deep = 0;
    for (size_t i = 0; lock && i < names; i++)
        deep += levels_at_most(command->lock.targets[i].path);
    return work + deep * (2 * WORK_DEEP_LEVEL + WORK_LEVEL_LOCKED);
}

/*
 * Whether a wait resumes a command that may take most of a step, and does not take into account what others have spent
 * of it: an atomic write in a client's transaction, one whose names mean many locks, and a change of many aliases,
 * which ALIAS_WORK_MAX limits.
 */
static bool needs_step(const struct core *core, const struct wait *wait)
{
    const struct command *command = wait->command;
    if (command == NULL || wait->ended || wait->cancelled != WAIT_NOT_CANCELLED)
        return false;
    switch (command->type) {
    case COMMAND_WRITE:
        return writes_in_txn(wait) && write_command__in_one_step(core, command, wait__is_in_pieces(wait));
    case COMMAND_LOCK:
    case COMMAND_TXN_LOCK:
        return core->command_version >= COMMAND_SINCE_LOCK_TURNS && work_of_names(wait) > free_part(core);
    case COMMAND_ALIASES_UPDATE:
        return core->command_version >= COMMAND_SINCE_ALIAS_TURNS && command->aliases.action_count > ALIASES_FREE;
    default: return false;
    }
}

bool grants__is_left(const struct core *core, const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    return cost_charged_work(core) > free_part(core) && needs_step(core, wait);
}

/*
 * Whether a step that has spent some of its account leaves a wait to the next TICK: one that may take all of it by
 * itself. The `first` write in a transaction that resumes takes what others have spent into account, as other writes
 * do: resumed_acquisition(). What needs a step does not, and is left until it has its turn: grants__has_turn(). In
 * commands before version 25 it is left only if this step has made it ready.
 */
static bool is_left(const struct core *core, const struct wait *wait, bool first)
{
    if (cost_charged_work(core) <= free_part(core))
        return false;
    bool has_turns = core->command_version >= COMMAND_SINCE_TURNS;
    bool recent = wait->ready_number > core->owners->ready_before;
    return (!first && writes_in_txn(wait)) || ((has_turns || recent) && grants__is_left(core, wait));
}

bool grants__has_turn(const struct core *core, bool others)
{
    const struct list *ready = &core->owners->ready;
    bool alone = !others && core->command_version < COMMAND_SINCE_TURNS_OF_TWO;
    bool turn = alone || (others && cost_turn(core) % 2 == 1);
    REQUIRE(!core->open);
    return core->command_version >= COMMAND_SINCE_TURNS && turn && !list_empty(ready) &&
           needs_step(core, list_entry(ready->next, struct wait, link));
}

int grants__resume(struct core *core)
{
    struct owners *owners = core->owners;
    bool first = true;
    REQUIRE(!core->open);
    while (!list_empty(&owners->ready) && owners->cost_left > 0 && owners->work_left > 0) {
        struct wait *wait = list_entry(owners->ready.next, struct wait, link);
        if (is_left(core, wait, first))
            break;
        first = false;
        wait__dequeue_ready(core, wait);
        core__begin(core, core->last_ts + 1);
        int r = resume_one(core, wait);
        if (r >= 0)
            r = grants__settle(core);
        int written = core__commit(core);
        if (r < 0 || written < 0)
            return tl_trace(r < 0 ? r : written);
    }
    return 0;
}

int grants__time_out(struct core *core, struct wait *wait, size_t *left)
{
    REQUIRE(core->open && MAGIC_VALID(wait, WAIT_MAGIC));
    struct cost_counters before = cost_counters_of(core);
    uint64_t cost = wait__cost(wait), own = WORK_OWNER + work_of_unit(wait);
    int r = 0;
    if (wait->cancelled == WAIT_NOT_CANCELLED || wait__is_to_be_kept(wait))
        r = wait->ops->on_timeout(core, wait);
    else
        r = grants__end_cancelled(core, wait, false); /* its items must not be tried once more */
    cost_charge(left, cost_since(core, &before, cost));
    cost_charge_work(core, own + cost_work_since(core, &before));
    return r;
}
