/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleanup actions of ended sessions, deferred while another owner holds a conflicting lock.
 * README-locks.md, "Sessions".
 *
 * A lock request waits for each, with priority over all but earlier ones. When it is granted the
 * action runs in its own unit.
 */
#include "core/cleanup/deferred.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "core/documents/action.h"
#include "core/documents/update.h"
#include "core/documents/ephemeral.h"
#include "core/acquire/acquire.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/wait/lock_event.h"
#include "core/session/cost.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/wait/wait.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

static struct slice number_key(uint64_t number, char bytes[8])
{
    big_endian_put_u64(bytes, number);
    return slice_make(bytes, 8);
}

struct deferred *deferred__make(struct core *core, const struct deferred *like)
{
    const struct list *all = &core->owners->deferred;
    REQUIRE(list_empty(all) || list_entry(all->prev, struct deferred, of_all)->number < like->number);
    struct deferred *deferred = mem_zalloc(sizeof *deferred);
    deferred->number = like->number;
    deferred->removal = like->removal;
    deferred->set_aside = like->set_aside;
    deferred->ended = like->ended;
    deferred->session = mem_dup_slice(like->session);
    deferred->name = mem_dup_slice(like->name);
    deferred->action = mem_dup_slice(like->action);
    char key[8];
    list_append(&core->owners->deferred, &deferred->of_all);
    map_put(&core->owners->deferred_by_number, number_key(deferred->number, key), deferred);
    core->owners->deferred_count++;
    core->owners->action_bytes += deferred->action.len;
    if (deferred->number > core->owners->last_deferred)
        core->owners->last_deferred = deferred->number;
    return deferred;
}

void deferred__free(struct core *core, struct deferred *deferred)
{
    REQUIRE(core->owners->deferred_count > 0 && core->owners->action_bytes >= deferred->action.len);
    char key[8];
    list_remove(&deferred->of_all);
    map_remove(&core->owners->deferred_by_number, number_key(deferred->number, key));
    if (list_linked(&deferred->of_unrequested))
        list_remove(&deferred->of_unrequested);
    core->owners->deferred_count--;
    core->owners->action_bytes -= deferred->action.len;
    mem_free((char *)(uintptr_t)deferred->session.data);
    mem_free((char *)(uintptr_t)deferred->name.data);
    mem_free((char *)(uintptr_t)deferred->action.data);
    mem_free(deferred);
}

/* --- Digest ------------------------------------------------------------------------------------------------------- */

static void encode_deferred(struct buf *value, const struct deferred *deferred)
{
    buf_byte(value, deferred->removal ? (deferred->set_aside ? 'R' : 'r') : (deferred->set_aside ? 'A' : 'a'));
    buf_varint(value, deferred->ended);
    action_put_slice(value, deferred->session);
    action_put_slice(value, deferred->name);
    action_put_slice(value, deferred->action);
}

void deferred__find_unrequested(struct core *core)
{
    REQUIRE(list_empty(&core->owners->unrequested)); /* else an action is linked twice */
    list_for_each(link, &core->owners->deferred)
    {
        struct deferred *deferred = list_entry(link, struct deferred, of_all);
        if (deferred->wait == NULL && !deferred->set_aside)
            list_append(&core->owners->unrequested, &deferred->of_unrequested);
    }
}

uint64_t deferred__digest(const struct deferred *deferred)
{
    REQUIRE(deferred->number > 0);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    encode_deferred(&value, deferred);
    uint64_t digest = slice_hash(buf_as_slice(&value)) + deferred->number;
    buf_deinit(&value);
    return digest;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

struct command *deferred__command(void)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.cleanup = true;
    return command;
}

/*
 * Decodes the action into a WRITE that lives until the unit ends: the unit may point into its
 * bytes.
 */
static int decode_action(struct core *core, const struct deferred *deferred, struct command **ret_command)
{
    struct command *command = deferred__command();
    core__free_at_end(core, command);
    int r = action_decode_all(arena_copy(&command->arena, deferred->action), &command->arena, &command->write.items,
                              &command->write.item_count);
    if (r < 0 || command->write.item_count != 1)
        return tl_trace(r < 0 ? r : TL_ERR_CORRUPT);
    if (deferred->removal)
        command->write.items[0].only_session = arena_copy(&command->arena, deferred->session);
    *ret_command = command;
    return 0;
}

/*
 * Requests its locks as a cleanup request; makes the wait ready if none is needed or all are
 * granted.
 */
static int request_locks(struct core *core, struct deferred *deferred)
{
    REQUIRE(deferred->wait == NULL && !deferred->set_aside);
    struct command *command;
    int r = decode_action(core, deferred, &command);
    if (r < 0)
        return tl_trace(r);
    if (list_linked(&deferred->of_unrequested))
        list_remove(&deferred->of_unrequested);
    struct wait *wait = wait__new(core, NULL, NULL, NULL, NULL);
    wait->owner->cleanup = true;
    wait->deferred = deferred;
    deferred->wait = wait;
    r = acquire__request_deferred(core, wait, command);
    if (r < 0)
        return tl_trace(r);
    if (r != 0)
        return 0;
    wait__restore(core, wait, false); /* nothing blocks it any more, or it needs no lock */
    wait__enqueue_ready(core, wait);
    return 0;
}

/* Records in the open unit that it was added, changed or dropped. */
static void note_change(struct core *core, const struct deferred *deferred)
{
    core__note_change(core, deferred__digest(deferred));
}

static struct deferred *add_deferred(struct core *core, const struct session *session, const struct write_item *item,
                                     bool removal, bool is_set_aside)
{
    REQUIRE(core->open && session->terminating);
    REQUIRE(!removal || item->op == WRITE_DELETE);
    struct buf action = BUF_INIT(BUF_UNLIMITED);
    action_encode_all(&action, item, 1);
    struct deferred like = {.number = core->owners->last_deferred + 1,
                            .removal = removal,
                            .set_aside = is_set_aside,
                            .ended = core->ts,
                            .session = session->id,
                            .name = session->name,
                            .action = buf_as_slice(&action)};
    struct deferred *deferred = deferred__make(core, &like);
    note_change(core, deferred);
    buf_deinit(&action);
    return deferred;
}

int deferred__add(struct core *core, const struct session *session, const struct write_item *item, bool removal)
{
    return request_locks(core, add_deferred(core, session, item, removal, false));
}

static void report_run(struct core *core, const struct deferred *deferred, const struct write_command *write)
{
    REQUIRE(write->item_count == 1 && write->results != NULL);
    const struct write_item *item = &write->items[0];
    const struct write_result *result = &write->results[0];
    struct buf report = BUF_INIT(BUF_UNLIMITED);
    describe_deferred(deferred, core, &report);
    buf_printf(&report, "\n%s [%.*s/%.*s]: ", deferred->removal ? "ephemeral document" : "action on",
               SLICE_ARG(item->index), SLICE_ARG(item->id));
    if (result->outcome == WRITE_FAILED)
        buf_slice(&report, result->problem.reason);
    else if (deferred->removal)
        buf_printf(&report, result->outcome != WRITE_NOOP ? "removed"
                            : core->command_version >= COMMAND_SINCE_PLAIN_TEXTS
                                ? "not removed: no longer the session's"
                                : "it is somebody else's by now");
    else
        buf_lit(&report, "done");
    lock_events_add(&core->owners->lock_events, core->ts, "expiry", buf_as_slice(&report));
    buf_deinit(&report);
}

void deferred__drop(struct core *core, struct deferred *deferred)
{
    REQUIRE(core->open && deferred->wait == NULL);
    note_change(core, deferred);
    cleanup_attempt__forget_deferred(core, deferred->number);
    deferred__free(core, deferred);
}

static void describe_too_long(const struct core *core, struct buf *report)
{
    unsigned long long all = core->limits.script.steps_max;
    unsigned long long each = update_script_steps_max(&core->limits.script, core->command_version);
    bool plain = core->command_version >= COMMAND_SINCE_PLAIN_TEXTS;

    if (each < all)
        buf_printf(report,
                   plain ? "\nneeds more script steps than the limits: [%llu] of an action, [%llu] of all actions of "
                           "a session [--script-steps]"
                         : "\nwants more script steps than it may take: [%llu], and all actions of a session "
                           "together [%llu] [--script-steps]",
                   each, all);
    else
        buf_printf(report,
                   plain ? "\nneeds more script steps than the limit of [%llu] [--script-steps]"
                         : "\nwants more than the [%llu] script steps that it may take [--script-steps]",
                   all);
}

static void report_set_aside(struct core *core, const struct deferred *deferred, enum set_aside_reason reason)
{
    REQUIRE(deferred->set_aside && deferred->wait == NULL);
    struct buf report = BUF_INIT(BUF_UNLIMITED);
    describe_deferred(deferred, core, &report);
    if (reason == SET_ASIDE_ENDED_PROCESS)
        buf_printf(&report,
                   core->command_version >= COMMAND_SINCE_PLAIN_TEXTS
                       ? "\nwas being executed when the server ended, %d times"
                       : "\nwas under way when the server ended, %d times",
                   CLEANUP_ATTEMPTS_MAX);
    else if (reason == SET_ASIDE_TOO_LONG)
        describe_too_long(core, &report);
    else
        buf_lit(&report, "\nneeds memory for indices or fields, and the limit is reached [--memory]");
    buf_printf(&report, "; it is put aside as number %llu", (unsigned long long)deferred->number);
    lock_events_add(&core->owners->lock_events, core->ts, "expiry", buf_as_slice(&report));
    buf_deinit(&report);
}

static void mark_set_aside(struct core *core, struct deferred *deferred, enum set_aside_reason reason)
{
    REQUIRE(!deferred->set_aside);
    deferred->set_aside = true;
    note_change(core, deferred);
    if (list_linked(&deferred->of_unrequested))
        list_remove(&deferred->of_unrequested);
    if (deferred->wait != NULL)
        wait__free(core, deferred->wait);
    deferred->wait = NULL;
    report_set_aside(core, deferred, reason);
}

static int run_granted(struct core *core, struct wait *wait)
{
    REQUIRE(wait->deferred != NULL && wait->deferred->wait == wait && !wait->deferred->set_aside);
    struct deferred *deferred = wait->deferred;
    struct command *command;
    struct cost_counters before = cost_counters_of(core);
    int r = decode_action(core, deferred, &command);
    if (r == 0 && deferred->removal)
        r = ephemeral__find_highest_version(core, &command->write.items[0]);
    cleanup_attempt__begin(core, deferred->session, deferred->number, 0);
    if (r == 0)
        r = acquire__resume_deferred(core, wait, command);
    cleanup_attempt__end(core);
    cost_charge(&core->owners->cost_left, cost_of_writes_again(core, &before)); /* grants__resume() charges all */
    if (r != 0)
        return r < 0 ? tl_trace(r) : CORE_WAITS;
    enum set_aside_reason reason;
    if (deferred__is_set_aside(&command->write.results[0], &reason)) {
        mark_set_aside(core, deferred, reason);
        return 0;
    }
    report_run(core, deferred, &command->write);
    wait__free(core, wait);
    deferred->wait = NULL;
    deferred__drop(core, deferred);
    return 0;
}

/* It has no timeout, and is never the deadlock victim. */
const struct wait_ops deferred__wait_ops = {wait__on_grant, run_granted, NULL, NULL, NULL};

int deferred__restart(struct core *core, size_t *left)
{
    REQUIRE(core->open);
    struct list *unrequested = &core->owners->unrequested;
    int r = 0;
    while (r == 0 && *left > 0 && !list_empty(unrequested)) {
        struct deferred *deferred = list_entry(unrequested->next, struct deferred, of_unrequested);
        uint64_t steps = core->script_steps, bytes = deferred->action.len, cost;
        struct cost_counters before = cost_counters_of(core);
        core__work(core, WORK_ITEM + bytes / WORK_BYTES);
        r = request_locks(core, deferred);
        if (core->command_version < COMMAND_SINCE_RESTART_CHARGED)
            cost = 1 + (core->script_steps - steps) / SCRIPT_STEPS_PER_COST + bytes / ACTION_BYTES_PER_COST;
        else
            cost = cost_since(core, &before, 1 + bytes / ACTION_BYTES_PER_COST); /* its targets, too */
        cost_charge(left, cost);
    }
    return r;
}

/* --- Setting aside ------------------------------------------------------------------------------------------------ */

struct deferred *deferred__find(const struct core *core, uint64_t number)
{
    char key[8];
    return map_get(&core->owners->deferred_by_number, number_key(number, key));
}

bool deferred__is_set_aside(const struct write_result *result, enum set_aside_reason *ret_reason)
{
    REQUIRE(!(result->script_exhausted && result->lacks_memory)); /* a script that failed adds nothing */
    if (result->outcome != WRITE_FAILED || !(result->script_exhausted || result->lacks_memory))
        return false;
    *ret_reason = result->lacks_memory ? SET_ASIDE_MEMORY : SET_ASIDE_TOO_LONG;
    return true;
}

void deferred__add_set_aside(struct core *core, const struct session *session, const struct write_item *item,
                             enum set_aside_reason reason)
{
    report_set_aside(core, add_deferred(core, session, item, false, true), reason);
}

void deferred__set_aside(struct core *core, struct deferred *deferred)
{
    REQUIRE(core->open && deferred->number > 0);
    if (!deferred->set_aside)
        mark_set_aside(core, deferred, SET_ASIDE_ENDED_PROCESS);
}

int deferred__retry(struct core *core, struct deferred *deferred)
{
    REQUIRE(deferred->set_aside);
    deferred->set_aside = false;
    note_change(core, deferred);
    return request_locks(core, deferred);
}

/* --- Describing --------------------------------------------------------------------------------------------------- */

int deferred__item(const struct deferred *deferred, struct arena *arena, struct write_item *ret_item)
{
    struct write_item *items;
    size_t count;
    int r = action_decode_all(deferred->action, arena, &items, &count);
    if (r < 0 || count != 1)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_item = items[0];
    return 0;
}
