/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ended sessions left to be done and others' locks forbid: kept until it can be. README-locks.md, "Kept actions".
 *
 * Each is a record in SPACE_SYSTEM, 'K' and its number (u64be): what it is (a byte, large when it was put aside), when its session ended, the session's id and
 * name, the action's bytes. Beside it waits a request that stands ahead of all others. Granted, it runs in a unit of its own, which
 * takes the record away.
 */
#include "core/owners/deferred.h"

#include "base/check.h"
#include "core/documents/action.h"
#include "core/owners/acquire.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/owners/lock_event.h"
#include "core/owners/cost.h"
#include "core/owners/cleanup_attempt.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/handler.h"
#include "core/step/unit.h"
#include "core/step/work.h"

static struct slice kept_key(struct buf *buf, uint64_t number)
{
    buf_byte(buf, 'K');
    buf_u64be(buf, number);
    return buf_as_slice(buf);
}

static struct slice duplicate(struct slice text)
{
    return slice_make(mem_strdup(text.data, text.len), text.len);
}

struct deferred *deferred__make(struct core *core, const struct deferred *like)
{
    struct deferred *kept = mem_zalloc(sizeof *kept);
    kept->number = like->number;
    kept->removal = like->removal;
    kept->set_aside = like->set_aside;
    kept->ended = like->ended;
    kept->session = duplicate(like->session);
    kept->name = duplicate(like->name);
    kept->action = duplicate(like->action);
    list_append(&core->owners->deferred, &kept->of_all);
    core->owners->deferred_count++;
    core->owners->action_bytes += kept->action.len;
    if (kept->number > core->owners->last_deferred)
        core->owners->last_deferred = kept->number;
    return kept;
}

void deferred__free(struct core *core, struct deferred *kept)
{
    list_remove(&kept->of_all);
    if (list_linked(&kept->of_unrequested))
        list_remove(&kept->of_unrequested);
    core->owners->deferred_count--;
    core->owners->action_bytes -= kept->action.len;
    mem_free((char *)(uintptr_t)kept->session.data);
    mem_free((char *)(uintptr_t)kept->name.data);
    mem_free((char *)(uintptr_t)kept->action.data);
    mem_free(kept);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static void encode(struct buf *value, const struct deferred *kept)
{
    buf_byte(value, kept->removal ? (kept->set_aside ? 'R' : 'r') : (kept->set_aside ? 'A' : 'a'));
    buf_varint(value, kept->ended);
    action_put_slice(value, kept->session);
    action_put_slice(value, kept->name);
    action_put_slice(value, kept->action);
}

static int load(void *context, struct slice key, struct slice value)
{
    struct core *core = context;
    struct deferred kept = {0};
    struct slice what;
    key = slice_from_offset(key, 1);
    if (!slice_take_u64be(&key, &kept.number) || !slice_take(&value, 1, &what) ||
        !slice_take_varint(&value, &kept.ended) || !action_take_slice(&value, &kept.session) ||
        !action_take_slice(&value, &kept.name) || !action_take_slice(&value, &kept.action))
        return tl_trace(TL_ERR_CORRUPT);
    kept.removal = what.data[0] == 'r' || what.data[0] == 'R';
    kept.set_aside = what.data[0] == 'R' || what.data[0] == 'A';
    deferred__make(core, &kept);
    return 0;
}

int deferred__load_all(struct core *core)
{
    int r = store_each(core->store, SPACE_SYSTEM, TL_TS_MAX, SLICE_LIT("K"), SLICE_LIT("L"), load, core);
    deferred__find_unrequested(core);
    return r;
}

void deferred__find_unrequested(struct core *core)
{
    list_for_each(link, &core->owners->deferred)
    {
        struct deferred *kept = list_entry(link, struct deferred, of_all);
        if (kept->wait == NULL && !kept->set_aside)
            list_append(&core->owners->unrequested, &kept->of_unrequested);
    }
}

uint64_t deferred__digest(const struct deferred *kept)
{
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    encode(&value, kept);
    uint64_t digest = slice_hash(buf_as_slice(&value)) + kept->number;
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

/* The action as a write. Its bytes must live as long as the unit, and so does the command. */
static int decode(struct core *core, const struct deferred *kept, struct command **ret_command)
{
    struct command *command = deferred__command();
    core__free_at_end(core, command);
    int r = action_decode_all(arena_copy(&command->arena, kept->action), &command->arena, &command->write.items,
                              &command->write.item_count);
    if (r < 0 || command->write.item_count != 1)
        return tl_trace(r < 0 ? r : TL_ERR_CORRUPT);
    if (kept->removal)
        command->write.items[0].only_session = arena_copy(&command->arena, kept->session);
    *ret_command = command;
    return 0;
}

/* Has its request wait ahead of all others. */
static int await(struct core *core, struct deferred *kept)
{
    struct command *command;
    int r = decode(core, kept, &command);
    if (r < 0)
        return tl_trace(r);
    if (list_linked(&kept->of_unrequested))
        list_remove(&kept->of_unrequested);
    struct wait *wait = wait__new(core, NULL, NULL, NULL, NULL);
    wait->owner->cleanup = true;
    wait->deferred = kept;
    kept->wait = wait;
    r = acquire__request_deferred(core, wait, command);
    if (r < 0)
        return tl_trace(r);
    if (r != 0)
        return 0;
    wait__restore(core, wait, false); /* what stood against it has gone with the session, or needs no lock */
    wait__enqueue_ready(core, wait);
    return 0;
}

static void put_record(struct core *core, const struct deferred *kept)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED), value = BUF_INIT(BUF_UNLIMITED);
    encode(&value, kept);
    store_batch_put(core->batch, SPACE_SYSTEM, kept_key(&key, kept->number), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
}

static void drop_record(struct core *core, const struct deferred *kept)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    store_batch_delete(core->batch, SPACE_SYSTEM, kept_key(&key, kept->number));
    buf_deinit(&key);
}

static struct deferred *keep(struct core *core, const struct session *session, const struct write_item *item, bool removal,
                         bool aside)
{
    struct buf action = BUF_INIT(BUF_UNLIMITED);
    action_encode_all(&action, item, 1);
    struct deferred like = {.number = core->owners->last_deferred + 1,
                        .removal = removal,
                        .set_aside = aside,
                        .ended = core->ts,
                        .session = session->id,
                        .name = session->name,
                        .action = buf_as_slice(&action)};
    struct deferred *kept = deferred__make(core, &like);
    put_record(core, kept);
    buf_deinit(&action);
    return kept;
}

int deferred__add(struct core *core, const struct session *session, const struct write_item *item, bool removal)
{
    return await(core, keep(core, session, item, removal, false));
}

static void tell_run(struct core *core, const struct deferred *kept, const struct write_command *write)
{
    const struct write_item *item = &write->items[0];
    const struct write_result *result = &write->results[0];
    struct buf story = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&story, "what ");
    deferred__describe_session(kept, &story);
    buf_lit(&story, " left");
    buf_printf(&story, "\n%s [%.*s/%.*s]: ", kept->removal ? "ephemeral document" : "action on", SLICE_ARG(item->index),
               SLICE_ARG(item->id));
    if (result->outcome == WRITE_FAILED)
        buf_slice(&story, result->problem.reason);
    else if (kept->removal)
        buf_printf(&story, result->outcome == WRITE_NOOP ? "it is somebody else's by now" : "removed");
    else
        buf_lit(&story, "done");
    lock_events_add(&core->owners->lock_events, core->ts, "expiry", buf_as_slice(&story));
    buf_deinit(&story);
}

void deferred__drop(struct core *core, struct deferred *kept)
{
    drop_record(core, kept);
    cleanup_attempt__forget_deferred(core, kept->number);
    deferred__free(core, kept);
}

static void tell_aside(struct core *core, const struct deferred *kept, enum set_aside_reason why)
{
    struct buf story = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&story, "what ");
    deferred__describe_session(kept, &story);
    if (why == SET_ASIDE_ENDED_PROCESS)
        buf_printf(&story, " left\nwas under way when the server ended, %d times", CLEANUP_ATTEMPTS_MAX);
    else
        buf_printf(&story, " left\nwants more than the [%llu] script steps that it may take [--script-steps]",
                   (unsigned long long)core->limits.script.steps_max);
    buf_printf(&story, "; it is put aside as number %llu", (unsigned long long)kept->number);
    lock_events_add(&core->owners->lock_events, core->ts, "expiry", buf_as_slice(&story));
    buf_deinit(&story);
}

static void put_aside(struct core *core, struct deferred *kept, enum set_aside_reason why)
{
    kept->set_aside = true;
    put_record(core, kept);
    if (list_linked(&kept->of_unrequested))
        list_remove(&kept->of_unrequested);
    if (kept->wait != NULL)
        wait__free(core, kept->wait);
    kept->wait = NULL;
    tell_aside(core, kept, why);
}

static int resume(struct core *core, struct wait *wait)
{
    struct deferred *kept = wait->deferred;
    struct command *command;
    int r = decode(core, kept, &command);
    cleanup_attempt__begin(core, kept->session, kept->number, 0);
    if (r == 0)
        r = acquire__resume_deferred(core, wait, command);
    cleanup_attempt__end(core);
    if (r != 0)
        return r < 0 ? tl_trace(r) : CORE_WAITS;
    if (command->write.results[0].outcome == WRITE_FAILED && command->write.results[0].script_exhausted) {
        put_aside(core, kept, SET_ASIDE_TOO_LONG);
        return 0;
    }
    tell_run(core, kept, &command->write);
    wait__free(core, wait);
    deferred__drop(core, kept);
    return 0;
}

/* It waits for as long as it takes, and gives way to nobody. */
const struct wait_ops deferred__wait_ops = {wait__enqueue_ready, resume, NULL, NULL, NULL};

int deferred__restart(struct core *core, size_t *left)
{
    struct list *unasked = &core->owners->unrequested;
    int r = 0;
    while (r == 0 && *left > 0 && !list_empty(unasked)) {
        struct deferred *kept = list_entry(unasked->next, struct deferred, of_unrequested);
        uint64_t steps = core->script_steps, bytes = kept->action.len;
        core__work(core, WORK_ITEM + bytes / WORK_BYTES);
        r = await(core, kept);
        cost_charge(left, 1 + (core->script_steps - steps) / SCRIPT_STEPS_PER_COST + bytes / ACTION_BYTES_PER_COST);
    }
    return r;
}

/* --- Putting aside ------------------------------------------------------------------------------------------------ */

struct deferred *deferred__find(const struct core *core, uint64_t number)
{
    list_for_each(link, &core->owners->deferred)
    {
        struct deferred *kept = list_entry(link, struct deferred, of_all);
        if (kept->number == number)
            return kept;
    }
    return NULL;
}

void deferred__add_set_aside(struct core *core, const struct session *session, const struct write_item *item,
                      enum set_aside_reason why)
{
    tell_aside(core, keep(core, session, item, false, true), why);
}

void deferred__set_aside(struct core *core, struct deferred *kept)
{
    if (!kept->set_aside)
        put_aside(core, kept, SET_ASIDE_ENDED_PROCESS);
}

int deferred__retry(struct core *core, struct deferred *kept)
{
    kept->set_aside = false;
    put_record(core, kept);
    return await(core, kept);
}

/* --- Telling ------------------------------------------------------------------------------------------------------ */

void deferred__describe_session(const struct deferred *kept, struct buf *buf)
{
    if (kept->name.len == 0) {
        buf_slice(buf, kept->session);
        return;
    }
    buf_escape_line(buf, kept->name);
    buf_printf(buf, " (%.*s)", SLICE_ARG(kept->session));
}

int deferred__item(const struct deferred *kept, struct arena *arena, struct write_item *ret_item)
{
    struct write_item *items;
    size_t count;
    int r = action_decode_all(kept->action, arena, &items, &count);
    if (r < 0 || count != 1)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_item = items[0];
    return 0;
}
