/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting commands; see wait.h. */
#include "core/wait/wait.h"

#include <stdarg.h>

#include "base/big_endian.h"
#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/command/command_codec.h"
#include "core/session/cost.h"
#include "core/wait/lock_event.h"
#include "core/wait/lock_history.h"
#include "core/session/owners.h"
#include "core/session/save_pieces.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/core_metrics.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

static const struct sm_state states[WAIT_STATE_COUNT] = {
    [WAIT_NEW] = {"new", SM_TO(WAIT_PARKED) | SM_TO(WAIT_FREED)},
    [WAIT_PARKED] = {"parked", SM_TO(WAIT_READY) | SM_TO(WAIT_ENDED) | SM_TO(WAIT_FREED)},
    [WAIT_READY] = {"ready", SM_TO(WAIT_PARKED) | SM_TO(WAIT_ENDED) | SM_TO(WAIT_FREED)},
    [WAIT_ENDED] = {"ended", SM_TO(WAIT_FREED)},
    [WAIT_FREED] = {"freed", 0},
};

static const struct sm machine = {"wait", states, WAIT_STATE_COUNT};

enum wait_state wait__state(const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    return wait->ended ? WAIT_ENDED : wait->ready ? WAIT_READY : !list_linked(&wait->of_all) ? WAIT_NEW : WAIT_PARKED;
}

/* Records that the state of a wait, of its command or of its request has changed. */
static void touch_wait(struct core *core, struct wait *wait)
{
    save_chunk__touch(&core->owners->wait_chunks, &wait->saved);
}

static void check_may_enter(const struct wait *wait, enum wait_state state)
{
    SM_CHECK(&machine, wait__state(wait), state);
}

static struct slice request_key(uint64_t number, char bytes[8])
{
    big_endian_put_u64(bytes, number);
    return slice_make(bytes, 8);
}

struct wait *wait__new(struct core *core, struct command *command, struct lock_owner *owner, struct session *session,
                       struct txn *txn)
{
    REQUIRE(txn == NULL || owner == &txn->owner.locks);
    REQUIRE(owner == NULL || owner->user != NULL);
    REQUIRE(session == NULL || MAGIC_VALID(session, SESSION_MAGIC));
    struct wait *wait = mem_zalloc(owner == NULL ? sizeof(struct write_wait) : sizeof *wait);
    wait->magic = WAIT_MAGIC;
    wait->ops = core->owners->wait_ops_of(command);
    wait->command = command;
    wait->session = session;
    wait->txn = txn;
    wait->owner = owner;
    wait->since = core->clock;
    wait->since_ts = core->ts;
    wait->deadline.at = TL_TS_MAX;
    if (owner == NULL) {
        wait->write_owner = &container_of(wait, struct write_wait, wait)->owner;
        *wait->write_owner = (struct owner){.kind = OWNER_WRITE, .session = session};
        wait->owner = &wait->write_owner->locks;
        lock_owner_init(&core->owners->locks, wait->owner, session == NULL ? NULL : &session->owner.locks,
                        wait->write_owner);
        wait->owner->autocommit = true;
    }
    return wait;
}

struct wait *wait__restore_ended(struct core *core, struct command *command)
{
    REQUIRE(command != NULL);
    struct wait *wait = mem_zalloc(sizeof *wait);
    wait->magic = WAIT_MAGIC;
    wait->ops = core->owners->wait_ops_of(command);
    wait->command = command;
    wait->deadline.at = TL_TS_MAX;
    wait->ended = true;
    wait__restore(core, wait, false);
    return wait;
}

int wait__acquire(struct core *core, struct wait *wait, const struct lock_spec *specs, size_t count, bool may_wait)
{
    REQUIRE(wait__state(wait) <= WAIT_PARKED && wait->owner != NULL);
    touch_wait(core, wait);
    lock_request_free(wait->request);
    wait->request = lock_request_new(&core->owners->locks, wait->owner, specs, count, wait);
    return lock_request_start(wait->request, may_wait);
}

struct wait *wait__by_request(const struct core *core, uint64_t number)
{
    char key[8];
    struct wait *wait = map_get(&core->owners->requests, request_key(number, key));
    ENSURE(wait == NULL ||
           (MAGIC_VALID(wait, WAIT_MAGIC) && wait->command != NULL && wait->command->request == number));
    return wait;
}

/* Of a wait and its command. */
static size_t bytes_of(const struct wait *wait)
{
    return sizeof(struct write_wait) + (wait->command == NULL ? 0 : arena_held(&wait->command->arena));
}

/* --- Named writes ------------------------------------------------------------------------------------------------- */

/* The name of a write: its ID, and the position of its part of the request. Valid until `buf` is changed. */
static struct slice write_name(const struct write_request *request, struct buf *buf)
{
    REQUIRE(request->id.len > 0);
    buf_slice(buf, request->id);
    buf_u64be(buf, request->part);
    return buf_as_slice(buf);
}

struct wait *wait__named_write(const struct core *core, const struct write_request *request)
{
    struct buf name = BUF_INIT(BUF_UNLIMITED);
    if (request->id.len == 0)
        return NULL;
    struct wait *first = map_get(&core->owners->named_writes, write_name(request, &name));
    buf_deinit(&name);
    ENSURE(first == NULL || (MAGIC_VALID(first, WAIT_MAGIC) && list_linked(&first->of_name)));
    return first;
}

static bool is_named_write(const struct wait *wait)
{
    return wait->command != NULL && wait->command->type == COMMAND_WRITE && wait->command->write.request.id.len > 0;
}

static void enter_name(struct core *core, struct wait *wait)
{
    struct buf name = BUF_INIT(BUF_UNLIMITED);
    if (!is_named_write(wait) || wait->ended)
        return;
    struct wait *first = wait__named_write(core, &wait->command->write.request);
    if (first != NULL) {
        list_append(&first->of_name, &wait->of_name);
        return;
    }
    list_init(&wait->of_name);
    map_put(&core->owners->named_writes, write_name(&wait->command->write.request, &name), wait);
    buf_deinit(&name);
}

static void leave_name(struct core *core, struct wait *wait)
{
    struct map *named = &core->owners->named_writes;
    struct buf name = BUF_INIT(BUF_UNLIMITED);
    if (!is_named_write(wait) || !list_linked(&wait->of_name))
        return;
    struct slice key = write_name(&wait->command->write.request, &name);
    if (list_empty(&wait->of_name))
        map_remove(named, key);
    else if (map_get(named, key) == wait)
        map_put(named, key, list_entry(wait->of_name.next, struct wait, of_name));
    list_remove(&wait->of_name);
    buf_deinit(&name);
}

/* --- Parking ------------------------------------------------------------------------------------------------------ */

void wait__restore(struct core *core, struct wait *wait, bool named)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->saved.chunk == NULL);
    struct owners *owners = core->owners;
    char key[8];
    if (!wait->ended) /* else it was read as an ended one */
        check_may_enter(wait, WAIT_PARKED);
    REQUIRE(!named || (wait->command != NULL && !wait->ended));
    wait->bytes = bytes_of(wait);
    owners->wait_bytes += wait->bytes;
    list_append(&owners->waits, &wait->of_all);
    enter_name(core, wait);
    save_chunk__add(&owners->wait_chunks, &wait->saved, wait->bytes);
    if (wait->session != NULL)
        list_append(&wait->session->waits, &wait->of_session);
    wait__names_resolved(wait);
    if (wait->txn != NULL)
        txn__begin_wait(wait->txn, wait);
    struct wait *before = named ? map_put(&owners->requests, request_key(wait->command->request, key), wait) : NULL;
    if (before != NULL)
        touch_wait(core, before); /* a cancelled wait, which CANCEL no longer finds */
}

/* Begins the wait of a later batch of a bulk. The command's deadline stays the same. */
static void begin_again(const struct core *core, struct wait *wait)
{
    REQUIRE(wait->command != NULL && wait->command->type == COMMAND_WRITE);
    uint64_t *timeout_us = &wait->command->owner.timeout_us, elapsed = core->clock - wait->since;
    *timeout_us -= elapsed < *timeout_us ? elapsed : *timeout_us;
    wait->since = core->clock;
    wait->since_ts = core->ts;
}

void wait__park(struct core *core, struct wait *wait, uint64_t deadline)
{
    struct owners *owners = core->owners;
    bool again = wait->until != 0; /* a resumed command waits for further locks */
    REQUIRE(wait__state(wait) <= WAIT_PARKED && deadline > 0);
    REQUIRE(wait->request != NULL && lock_request_state(wait->request) == LOCK_STATE_WAITING);
    touch_wait(core, wait);
    wait->until = deadline;
    deadline_set(&owners->wait_ends, &wait->deadline, deadline);
    if (again)
        return;
    if (wait->pending_items != NULL && list_linked(&wait->of_all))
        begin_again(core, wait);
    wait->queue_position = lock_request_queue_position(wait->request);
    if (!list_linked(&wait->of_all))
        wait__restore(core, wait, wait->command != NULL && wait->command->request != 0);
    if (wait->txn != NULL)
        deadline_set(&owners->idles, &wait->txn->idle, TL_TS_MAX);
}

static void forget_number(struct core *core, struct wait *wait)
{
    char key[8];
    if (wait->command != NULL && wait__by_request(core, wait->command->request) == wait)
        map_remove(&core->owners->requests, request_key(wait->command->request, key));
}

/* --- Kept places -------------------------------------------------------------------------------------------------- */

bool wait__has_begun(const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->command->type == COMMAND_WRITE);
    return wait->pending_items != NULL && !(wait__is_in_pieces(wait) && wait->pending_items[0] && wait->until != 0);
}

struct session *wait__session(const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    return wait->txn != NULL ? wait->txn->owner.session : wait->session;
}

/* Whether a write of no client's transaction has run nothing. */
static bool is_unbegun_write(const struct wait *wait)
{
    return wait->command->type == COMMAND_WRITE && (wait->write_owner != NULL || wait__is_in_pieces(wait)) &&
           !wait__has_begun(wait);
}

bool wait__has_place(const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    return wait__is_to_be_kept(wait) || (wait->kept && wait->cancelled == WAIT_NOT_CANCELLED);
}

struct wait *wait__kept_write(struct core *core, const struct write_request *request)
{
    struct buf name = BUF_INIT(BUF_UNLIMITED);
    if (request->id.len == 0 || core->owners->kept_writes.count == 0)
        return NULL;
    core__work(core, WORK_LOCK);
    struct wait *wait = map_get(&core->owners->kept_writes, write_name(request, &name));
    buf_deinit(&name);
    ENSURE(wait == NULL || (MAGIC_VALID(wait, WAIT_MAGIC) && wait__has_place(wait)));
    return wait;
}

void wait__note_place(struct core *core, struct wait *wait)
{
    struct map *kept = &core->owners->kept_writes;
    struct buf name = BUF_INIT(BUF_UNLIMITED);
    if (!is_named_write(wait))
        return;
    struct slice key = write_name(&wait->command->write.request, &name);
    if (wait__has_place(wait)) {
        struct wait *other = map_put(kept, key, wait);
        INSIST(other == NULL || other == wait); /* grants.c: the first one has the place */
    } else if (map_get(kept, key) == wait) {
        map_remove(kept, key);
    }
    buf_deinit(&name);
}

static void leave_kept(struct core *core, struct wait *wait)
{
    if (!wait->kept)
        return;
    INSIST(core->owners->kept_count > 0);
    touch_wait(core, wait);
    wait->kept = false;
    core->owners->kept_count--;
    wait__note_place(core, wait);
}

void wait__names_resolved(struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    if (list_linked(&wait->of_session) && wait->command != NULL && wait->command->type == COMMAND_LOCK &&
        !list_linked(&wait->of_resolved))
        list_append(&wait->session->resolved_waits, &wait->of_resolved);
}

void wait__resolve_again(struct core *core, struct session *session)
{
    REQUIRE(session == NULL || MAGIC_VALID(session, SESSION_MAGIC));
    if (session == NULL || core->command_version < COMMAND_SINCE_NAMES_AGAIN)
        return;
    while (!list_empty(&session->resolved_waits)) {
        struct wait *wait = list_entry(session->resolved_waits.next, struct wait, of_resolved);
        core__work(core, WORK_LOCK);
        list_remove(&wait->of_resolved);
        touch_wait(core, wait);
        wait->names_epoch = WAIT_NAMES_AGAIN;
    }
}

static void leave_cancelled(struct core *core, struct wait *wait)
{
    if (wait->cancelled == WAIT_NOT_CANCELLED)
        return;
    touch_wait(core, wait);
    wait->cancelled = WAIT_NOT_CANCELLED;
    wait->cancel_number = 0;
    if (list_linked(&wait->of_cancelled)) /* else read from a damaged checkpoint */
        list_remove(&wait->of_cancelled);
    if (list_empty(&core->owners->cancelled))
        core->owners->last_cancelled = 0;
    wait__note_place(core, wait);
}

void wait__undo(struct core *core, struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->owner != NULL);
    size_t auxiliary = wait->owner->auxiliary_count;
    lock_request_undo(wait->request, wait->granted_ts);
    if (wait->owner->auxiliary_count < auxiliary)
        wait__resolve_again(core, wait->session);
}

/* Gives a wait another command. The caller completes the one of before. */
static void replace_command(struct core *core, struct wait *wait, struct command *command)
{
    REQUIRE(wait->command->type == command->type && wait->cause == NULL); /* the cause is in the arena of the command */
    wait->command = command;
    size_t bytes = bytes_of(wait);
    INSIST(core->owners->wait_bytes >= wait->bytes);
    core->owners->wait_bytes += bytes - wait->bytes;
    wait->bytes = bytes;
}

const char *wait__cancel_text(enum wait_cancel cause)
{
    static const char stops[] = "the server is shutting down";
    static const char gone[] = "the host that this request came by was out of the cluster";
    static const char *const texts[WAIT_CANCEL_COUNT] = {
        [WAIT_HOST_STOPS] = stops, [WAIT_HOST_GONE] = gone, [WAIT_PLACE_KEPT] = stops, [WAIT_PLACE_KEPT_GONE] = gone};
    REQUIRE(cause < WAIT_CANCEL_COUNT);
    return texts[cause];
}

bool wait__is_to_be_kept(const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    return wait->cancelled == WAIT_PLACE_KEPT || wait->cancelled == WAIT_PLACE_KEPT_GONE;
}

/* A write that keeps its place has run nothing. Its results are as in a loaded core. */
static void reset_results(struct command *command)
{
    if (command->type != COMMAND_WRITE)
        return;
    struct write_command *write = &command->write;
    write->results = arena_zalloc(&command->arena, (write->item_count + 1) * sizeof *write->results);
    write->script_steps = 0;
    write->result_bytes = 0;
    write->postponed_count = 0;
    write->exceeds_step = false;
}

/* Returns: the work of copying a command that keeps its place. */
static uint64_t copy_work(const struct command *command)
{
    if (command->type == COMMAND_LOCK)
        return WORK_LOCK * (uint64_t)command->lock.target_count;
    return WORK_ITEM * (uint64_t)command->write.item_count + write_source_bytes(&command->write) / WORK_BYTES;
}

/*
 * Makes `command` continue a wait instead of its own one, also if that is an atomic write in pieces, which returns to
 * its submitter as a write of no transaction.
 */
static void continue_pieces(struct wait *wait, struct command *command)
{
    struct command *before = wait->command;
    struct write_command *write = &command->write;
    if (command->type != COMMAND_WRITE || wait->pending_items == NULL)
        return;
    INSIST(wait->txn != NULL && write->item_count == before->write.item_count);
    command->owner.transaction = arena_copy(&command->arena, wait->txn->id);
    before->owner.transaction = SLICE_NONE;
    write->attempts = before->write.attempts;
    wait->pending_items = arena_alloc(&command->arena, write->item_count + 1);
    memset(wait->pending_items, true, write->item_count);
}

/*
 * Answers the client of a wait that keeps its place with `text`, and gives the wait a copy of the command. Without a
 * submitter, as in a replay and in other hosts' cores, no client waits for a reply. State and further replies are the
 * same: the copy is as that in a loaded core.
 */
static void answer_kept(struct core *core, struct wait *wait, const char *text)
{
    struct command *command = wait->command, *copy;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    if (command->on_done == NULL)
        return;
    command_encode(command, &bytes);
    int r = command_decode(buf_as_slice(&bytes), &copy);
    INSIST(r == 0);
    buf_deinit(&bytes);
    continue_pieces(wait, copy);
    reset_results(copy);
    replace_command(core, wait, copy);
    problem_set(&command->problem, &command->arena, PROBLEM_STOPPING, "%s", text);
    core__complete(core, command);
}

void wait__keep(struct core *core, struct wait *wait, uint64_t until)
{
    REQUIRE(wait->command != NULL && wait->until != 0);
    REQUIRE(wait__state(wait) == WAIT_PARKED || (wait__state(wait) == WAIT_READY && is_unbegun_write(wait)));
    REQUIRE(wait->command->type == COMMAND_LOCK ? wait->session != NULL : is_unbegun_write(wait));
    REQUIRE(wait->cancelled == WAIT_NOT_CANCELLED || wait__is_to_be_kept(wait));
    enum wait_cancel cause = wait__is_to_be_kept(wait) ? wait->cancelled : WAIT_PLACE_KEPT;
    leave_cancelled(core, wait);
    if (wait->kept)
        return; /* by an earlier restart */
    if (wait->ready)
        wait__dequeue_ready(core, wait);
    uint64_t work = copy_work(wait->command);
    core__work(core, WORK_OWNER + work);
    if (wait->command->type == COMMAND_WRITE)
        core__note_indivisible(core, work); /* less than to run it */
    touch_wait(core, wait);
    forget_number(core, wait);
    wait->kept = true;
    core->owners->kept_count++;
    wait__note_place(core, wait);
    reset_results(wait->command);
    answer_kept(core, wait, wait__cancel_text(cause));
    if (until >= wait->until && wait->deadline.at < TL_TS_MAX)
        return; /* one that was ready has no deadline any more */
    wait->until = until;
    deadline_set(&core->owners->wait_ends, &wait->deadline, until);
}

void wait__keep_granted(struct core *core, struct wait *wait)
{
    REQUIRE(wait->kept && lock_request_state(wait->request) == LOCK_STATE_GRANTED);
    touch_wait(core, wait);
    wait->granted_ts = core->ts;
}

void wait__take_over(struct core *core, struct wait *wait, struct command *command, uint64_t until)
{
    struct command *before = wait->command;
    char key[8];
    REQUIRE(wait->kept && wait__state(wait) == WAIT_PARKED && wait->cause == NULL && before->type == command->type);
    leave_kept(core, wait);
    continue_pieces(wait, command);
    if (wait->pending_items != NULL) /* its deadline, whatever it does until then: wait__deadline() */
        command->owner.timeout_us = until > wait->since ? until - wait->since : 0;
    replace_command(core, wait, command);
    wait->until = until;
    deadline_set(&core->owners->wait_ends, &wait->deadline, until);
    struct wait *other =
        command->request == 0 ? NULL : map_put(&core->owners->requests, request_key(command->request, key), wait);
    if (other != NULL)
        touch_wait(core, other); /* as in wait__restore() */
    problem_set(&before->problem, &before->arena, PROBLEM_STOPPING, "the request was repeated after a restart");
    core__complete(core, before);
}

/* Adds a wait that ends to the metrics, by its outcome. */
static void observe_end(struct core *core, const struct wait *wait)
{
    enum lock_state state = wait->request == NULL ? LOCK_STATE_NEW : lock_request_state(wait->request);
    enum metric_wait_end outcome = state == LOCK_STATE_GRANTED      ? WAIT_GRANTED
                                   : state == LOCK_STATE_DEADLOCKED ? WAIT_DEADLOCKED
                                   : core->clock >= wait->until     ? WAIT_TIMED_OUT
                                                                    : WAIT_CANCELLED;
    metric_observe(&core->metrics.waits[outcome], metric_times_us, core->clock - wait->since);
}

/* Reports the end of a wait for locks, if it has waited, to metrics and history. */
static void report_wait(struct core *core, const struct wait *wait)
{
    if (wait->until == 0)
        return;
    wait__report_end(core, wait);
    observe_end(core, wait);
    lock_history_record_wait(&core->owners->lock_history, wait, core->ts);
}

/*
 * Removes a wait from every index of waits, and reports its end to metrics and history. The number
 * of a cancelled wait may name a request of its host's next life by now.
 */
static void unregister_wait(struct core *core, struct wait *wait)
{
    struct owners *owners = core->owners;
    leave_kept(core, wait); /* before: one that is cancelled has no place */
    leave_cancelled(core, wait);
    if (!list_linked(&wait->of_all) || wait->ended)
        return;
    report_wait(core, wait);
    deadline_set(&owners->wait_ends, &wait->deadline, TL_TS_MAX);
    if (wait->session != NULL)
        list_remove(&wait->of_session);
    if (list_linked(&wait->of_resolved))
        list_remove(&wait->of_resolved);
    if (wait->txn != NULL)
        txn__end_wait(wait->txn);
    forget_number(core, wait);
    leave_name(core, wait);
}

/* Frees the request of a wait, and the locks of a write_wait. */
static void drop_locks(struct core *core, struct wait *wait)
{
    lock_request_free(tl_steal(wait->request));
    if (wait->write_owner != NULL) {
        lock_release_all(&core->owners->locks, wait->owner);
        lock_owner_deinit(wait->owner);
    }
    INSIST(wait->write_owner == NULL || wait->write_owner->locks.hold_count == 0);
    wait->write_owner = NULL;
    wait->owner = NULL;
}

void wait__dequeue_ready(struct core *core, struct wait *wait)
{
    struct owners *owners = core->owners;
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->ready && owners->ready_count > 0);
    if (!wait->ended)
        check_may_enter(wait, WAIT_PARKED);
    touch_wait(core, wait);
    list_remove(&wait->link);
    wait->ready = false;
    if (--owners->ready_count == 0)
        owners->last_ready = 0;
}

void wait__free(struct core *core, struct wait *wait)
{
    struct owners *owners = core->owners;
    check_may_enter(wait, WAIT_FREED);
    core__work(core, WORK_OWNER);
    unregister_wait(core, wait);
    uint64_t piece = save_chunk__remove(&owners->wait_chunks, &wait->saved);
    if (piece != 0)
        save_pieces__delete(&owners->pieces, piece);
    if (list_linked(&wait->of_all)) {
        INSIST(owners->wait_bytes >= wait->bytes);
        list_remove(&wait->of_all);
        owners->wait_bytes -= wait->bytes;
    }
    if (wait->deadline.at < TL_TS_MAX) /* read from a damaged checkpoint */
        deadline_set(&owners->wait_ends, &wait->deadline, TL_TS_MAX);
    if (wait->ready)
        wait__dequeue_ready(core, wait);
    drop_locks(core, wait);
    magic_clear(&wait->magic);
    mem_free(wait);
}

struct problem *wait__cause(struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->command != NULL);
    if (wait->cause == NULL)
        wait->cause = arena_zalloc(&wait->command->arena, sizeof *wait->cause);
    return wait->cause;
}

void wait__end_later(struct core *core, struct wait *wait)
{
    check_may_enter(wait, WAIT_ENDED);
    REQUIRE(wait->command != NULL && wait->cause != NULL);
    core__work(core, WORK_LOCK);
    touch_wait(core, wait);
    unregister_wait(core, wait);
    drop_locks(core, wait);
    wait->session = NULL;
    wait->txn = NULL;
    wait->ended = true;
    wait__enqueue_ready(core, wait);
}

static void fail_pending_items(struct core *core, struct wait *wait)
{
    REQUIRE(wait->command->type == COMMAND_WRITE && wait->command->write.results != NULL);
    struct write_command *write = &wait->command->write;
    core__work(core, write->item_count * WORK_LOCK);
    for (size_t i = 0; i < write->item_count; i++)
        if (wait->pending_items[i])
            write->results[i] = (struct write_result){
                .outcome = WRITE_FAILED, .index = write->items[i].index, .problem = *wait__cause(wait)};
}

void wait__answer(struct core *core, struct wait *wait)
{
    REQUIRE(wait->command != NULL && wait->cause != NULL && wait->cause->type != PROBLEM_NONE);
    if (wait->pending_items != NULL)
        fail_pending_items(core, wait);
    else
        wait->command->problem = *wait__cause(wait);
    wait__free(core, wait);
}

/* Whether items of an autocommit bulk have run, so that the failing ones need a unit of their own. */
static bool has_results(const struct wait *wait)
{
    REQUIRE(wait->pending_items == NULL || wait->command->type == COMMAND_WRITE);
    return wait->pending_items != NULL && wait->command->owner.transaction.len == 0;
}

/* Fails a wait for its cause; `now`: answers at once, unless it has results. */
static void end_wait(struct core *core, struct wait *wait, bool now)
{
    struct command *command = wait->command;
    struct txn *txn = wait->txn;
    bool in_pieces = wait__is_in_pieces(wait);
    INSIST(wait->cause != NULL && wait->cause->type != PROBLEM_NONE);
    if (in_pieces)
        wait->pending_items = NULL; /* it fails as a whole */
    /* The end of a transaction undoes what batches of the bulk have done. */
    if (command->owner.transaction.len > 0 && txn == NULL)
        wait->pending_items = NULL;
    /* The client gets no reply with these locks, so the session must not keep them. */
    if (wait->granted_ts != 0 && wait->command->type == COMMAND_LOCK)
        wait__undo(core, wait);
    if (now && !has_results(wait)) {
        wait__answer(core, wait);
        core__complete(core, command);
    } else {
        wait__end_later(core, wait); /* the items that have not run get the cause then */
    }
    if (txn != NULL && in_pieces)
        txn__drop(core, txn);
    else if (txn != NULL)
        txn__touch(core, txn);
}

static void set_cause(struct wait *wait, enum problem_type type, const char *format, va_list arguments)
{
    struct arena *arena = &wait->command->arena;
    struct slice reason = arena_vprintf(arena, format, arguments);
    problem_set(wait__cause(wait), arena, type, "%.*s", SLICE_ARG(reason));
}

void wait__fail(struct core *core, struct wait *wait, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    REQUIRE(wait->command != NULL && wait__state(wait) != WAIT_ENDED);
    va_start(arguments, format);
    set_cause(wait, type, format, arguments);
    va_end(arguments);
    end_wait(core, wait, true);
}

void wait__end(struct core *core, struct wait *wait, enum problem_type type, const char *format, ...)
{
    struct owners *owners = core->owners;
    bool now = owners->cost_left > 0;
    va_list arguments;
    REQUIRE(wait->command != NULL && wait__state(wait) != WAIT_ENDED);
    va_start(arguments, format);
    set_cause(wait, type, format, arguments);
    va_end(arguments);
    cost_charge(&owners->cost_left, now);
    end_wait(core, wait, now);
}

void wait__cancel(struct core *core, struct wait *wait, enum wait_cancel cause)
{
    struct owners *owners = core->owners;
    REQUIRE(wait->command != NULL && wait__state(wait) != WAIT_ENDED);
    REQUIRE(cause != WAIT_NOT_CANCELLED && cause < WAIT_CANCEL_COUNT);
    bool again = wait->cancelled != WAIT_NOT_CANCELLED;
    touch_wait(core, wait);
    if (!again || cause == WAIT_SESSION_ENDED || wait__is_to_be_kept(wait))
        wait->cancelled = cause;
    wait__note_place(core, wait);
    if (again)
        return;
    wait->cancel_number = ++owners->last_cancelled;
    list_append(&owners->cancelled, &wait->of_cancelled);
}

void wait__enqueue_ready(struct core *core, struct wait *wait)
{
    struct owners *owners = core->owners;
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    if (wait->ready)
        return;
    touch_wait(core, wait);
    if (!wait->ended)
        check_may_enter(wait, WAIT_READY);
    wait->ready = true;
    wait->ready_number = ++owners->last_ready;
    owners->ready_count++;
    deadline_set(&owners->wait_ends, &wait->deadline, TL_TS_MAX);
    list_append(&owners->ready, &wait->link);
}

void wait__continue_later(struct core *core, struct wait *wait)
{
    REQUIRE(wait->txn != NULL && wait->pending_items != NULL);
    REQUIRE(wait__state(wait) <= WAIT_PARKED && wait->command->type == COMMAND_WRITE);
    if (list_linked(&wait->of_all))
        report_wait(core, wait);
    else
        wait__restore(core, wait, wait->command->request != 0);
    touch_wait(core, wait);
    wait->until = 0;
    wait->reported = false;
    lock_request_free(tl_steal(wait->request));
    deadline_set(&core->owners->idles, &wait->txn->idle, TL_TS_MAX);
    wait__enqueue_ready(core, wait);
}

bool wait__is_in_pieces(const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    return wait->command != NULL && wait->command->type == COMMAND_WRITE && wait->command->write.atomic &&
           wait->pending_items != NULL;
}

uint64_t wait__deadline(const struct wait *wait)
{
    REQUIRE(wait->command != NULL);
    uint64_t us = wait->command->owner.timeout_us;
    if (wait->until != 0)
        return wait->until;
    return wait->since >= TL_TS_MAX || us >= TL_TS_MAX - wait->since ? TL_TS_MAX : wait->since + us;
}

int wait__on_grant(struct core *core, struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    wait__enqueue_ready(core, wait);
    return 0;
}

/* Returns: how many items of a write are still to run, at least one. */
static size_t pending_item_count(const struct wait *wait)
{
    REQUIRE(wait->command->type == COMMAND_WRITE);
    const struct write_command *write = &wait->command->write;
    size_t count = wait->pending_items == NULL ? write->item_count : 0;
    for (size_t i = 0; wait->pending_items != NULL && i < write->item_count; i++)
        count += wait->pending_items[i];
    return count > 0 ? count : 1;
}

size_t wait__cost(const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && (wait->command != NULL || wait->deferred != NULL));
    const struct command *command = wait->command;
    size_t things = 1;
    if (command != NULL && command->type == COMMAND_WRITE)
        things = pending_item_count(wait);
    else if (command != NULL && (command->type == COMMAND_RENAME || command_is(command->type, COMMAND_DDL)))
        things = DDL_COST;
    return things + (wait->request == NULL ? 0 : lock_request_spec_count(wait->request) / LOCKS_PER_COST);
}

int wait__on_timeout(struct core *core, struct wait *wait)
{
    REQUIRE(core->open && wait->command != NULL);
    struct command *command = wait->command;
    struct txn *txn = wait->txn;
    (void)wait__explain(core, wait, PROBLEM_LOCK_WAIT_TIMEOUT, HOLDERS_REPORTED_MAX, &command->arena,
                        &command->problem);
    wait__free(core, wait);
    core__complete(core, command);
    if (txn != NULL)
        txn__touch(core, txn);
    return 0;
}

/* Levels of all resources that one explanation names. Each is walked several times for its text. */
enum { LEVELS_EXPLAINED_MAX = 16384 };

/* Returns: how many of the conflicts are described, at least one; *ret_levels: of their resources. */
static size_t explainable_count(const struct lock_conflict *conflicts, size_t count, size_t *ret_levels)
{
    size_t levels = 0, kept = 0;
    for (; kept < count && (kept == 0 || levels < LEVELS_EXPLAINED_MAX); kept++)
        for (const struct resource *at = conflicts[kept].resource; at != NULL; at = at->parent)
            levels++;
    *ret_levels = levels;
    return kept;
}

uint64_t wait__explain(struct core *core, struct wait *wait, enum problem_type type, size_t holders_max,
                       struct arena *arena, struct problem *ret_problem)
{
    struct lock_conflict conflicts[HOLDERS_REPORTED_MAX];
    REQUIRE(holders_max <= HOLDERS_REPORTED_MAX);
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->request != NULL && type != PROBLEM_NONE);
    bool bounded = core->command_version >= COMMAND_SINCE_EXPLAINED_WEIGHED;
    uint64_t looks;
    size_t count = lock_request_conflicts_counted(wait->request, conflicts, holders_max, &looks), levels = 0;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct buf details = BUF_INIT(BUF_UNLIMITED);
    if (bounded)
        count = explainable_count(conflicts, count, &levels);
    if (count > 0) {
        describe_resource(conflicts[0].resource, &text);
        buf_printf(&text, " is %s ", describe_relation(conflicts[0].waiting, core));
        describe_owner(conflicts[0].owner, core, &text);
    } else {
        buf_lit(&text, "the lock is held by another owner");
    }
    describe_conflicts_json(conflicts, count, &details);
    problem_set(ret_problem, arena, type, "%.*s", SLICE_ARG(buf_as_slice(&text)));
    problem_details(ret_problem, arena, "%.*s", SLICE_ARG(buf_as_slice(&details)));
    uint64_t work =
        WORK_EXPLAINED * (uint64_t)count + levels / WORK_EXPLAINED_LEVELS + (text.len + details.len) / WORK_BYTES;
    buf_deinit(&text);
    buf_deinit(&details);
    if (!bounded)
        return 0;
    core__work(core, work);
    core->write_work += work + looks * WORK_LOCK; /* the lock table counts its looks in the step itself */
    return work + looks * WORK_LOCK;
}

void wait__explain_briefly(struct arena *arena, enum problem_type type, struct problem *ret_problem)
{
    REQUIRE(type != PROBLEM_NONE);
    problem_set(ret_problem, arena, type, WRITE_LOCK_IS_HELD);
}

bool wait__limit_reached(const struct core *core)
{
    return core->owners->locks.waiting_count + core->owners->ready_count >= core->limits.waiters_max;
}

void wait__explain_limit(const struct core *core, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED, "[%zu] requests wait for locks already",
                core->limits.waiters_max);
}
