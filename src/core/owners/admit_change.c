/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of indices and locks. To delete, open or close an index changes all that is in it: it wants X on
 * the index. To make one, and to change its mapping, settings or aliases, wants a place within it: a lock on
 * the index or on everything stands against that, locks on its documents and directories do not.
 * README-locks.md, "Changes of indices".
 *
 * Such a command waits as a write of its own does, and passes the locks of the session that it names.
 */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/deadline.h"
#include "core/owners/names.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/owners/terms.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/handler.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "mapping/mapping.h"

static struct wants change_of(struct core *core, const struct command *command)
{
    struct wants wants = {0};
    names__of_change(core, command, &wants);
    return wants;
}

/* Whether a want is of an index that it changes, and not of what goes with that. */
static bool is_index(const struct lock_spec *want)
{
    return want->on.space == RESOURCE_SPACE_TREE && !want->auxiliary;
}

/* Whether its token, if it names one, is that of a lock on all that it changes. */
static bool token_holds(const struct core *core, const struct wants *wants, struct command *command,
                        const struct session *session)
{
    const struct owner *who = session == NULL ? NULL : &session->owner;
    for (size_t i = 0; i < wants->count; i++)
        if (is_index(&wants->items[i]) && !terms__cover(core, command, &wants->items[i].on, who, &command->problem))
            return false;
    return true;
}

/* Whether the documents of an index lie in directories. */
static bool is_tree(const struct core *core, struct slice index)
{
    const struct catalog_index *found = catalog_index(core->catalog, index);
    return found != NULL && mapping_path_field(found->mapping) != NULL;
}

/* A handler that refuses takes back its whole unit, so that must hold nothing else. */
static int run(struct core *core, struct command *command, struct wants *wants)
{
    if (core__changed(core)) { /* who was let in when it asked anew was let in by this unit */
        int r = owners__before_commit(core);
        int written = core__commit(core);
        if (r < 0 || written < 0)
            return tl_trace(r < 0 ? r : written);
        core__begin(core, core->last_ts + 1);
        *wants = change_of(core, command);
    }
    bool *trees = arena_zalloc(&core->arena, wants->count + 1);
    for (size_t i = 0; i < wants->count; i++)
        trees[i] = is_index(&wants->items[i]) && is_tree(core, wants->items[i].on.index);
    int r = core__handle(core, command);
    for (size_t i = 0; r == 0 && i < wants->count; i++)
        if (is_index(&wants->items[i]) && trees[i] != is_tree(core, wants->items[i].on.index))
            r = names__place_documents(core, wants->items[i].on.index); /* in directories now, or in none */
    return r;
}

/* Asks for what it changes. Returns: 0 it is done, or refused, and the wait is free; CORE_WAITS; fatal codes. */
static int ask(struct core *core, struct wait *wait, struct wants *wants, tl_ts until)
{
    struct command *command = wait->command;
    int r = 0;
    names__drop_free(core, wait->owner, wait->session, wants);
    if (wants->count == 0) {
        r = run(core, command, wants);
        wait__free(core, wait);
        return r;
    }
    switch (wait__ask(core, wait, wants->items, wants->count, until > core->clock && !wait__full(core))) {
    case LOCK_GRANTED: r = run(core, command, wants); break;
    case LOCK_WAITS: wait__park(core, wait, until); return CORE_WAITS;
    case LOCK_CONFLICT: wait__explain_conflict(core, wait, until > core->clock, PROBLEM_LOCK_WAIT_TIMEOUT); break;
    default: /* LOCK_DEADLOCK */ command->problem = *wait__cause(wait); break;
    }
    wait__free(core, wait);
    return r;
}

int owners__change(struct core *core, struct command *command)
{
    struct session *session;
    if (!owners__any_locks(core) && command->terms.session.len == 0 && command->terms.fencing_token == 0)
        return core__handle(core, command);
    struct wants wants = change_of(core, command);
    if (!terms__session(core, command, &session) || !token_holds(core, &wants, command, session) ||
        names__own(core, session, &wants, &command->arena, &command->problem))
        return 0;
    if (!owners__any_locks(core) || wants.count == 0)
        return core__handle(core, command);
    struct wait *wait = wait__new(core, command, NULL, session, NULL);
    return ask(core, wait, &wants, deadline_after(core, command->terms.timeout_us));
}

/* Whether what was granted is all that it changes as things are now. */
static bool is_granted(const struct core *core, const struct wait *wait, const struct wants *wants)
{
    for (size_t i = 0; i < wants->count; i++)
        if (!wants->items[i].insert_intention && !lock_table_holds(&core->owners->locks, wait->owner, &wants->items[i]))
            return false;
    return true;
}

/* It begins anew: a token may have gone meanwhile, and names may mean more. */
static int resume(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    struct wants wants = change_of(core, command);
    struct session *session = wait->session;
    int r = 0;
    if (token_holds(core, &wants, command, session) &&
        !names__own(core, session, &wants, &command->arena, &command->problem)) {
        names__drop_free(core, wait->owner, session, &wants);
        if (!is_granted(core, wait, &wants)) {
            lock_release_all(&core->owners->locks, wait->owner);
            return ask(core, wait, &wants, wait->until);
        }
        r = run(core, command, &wants);
    }
    wait__free(core, wait);
    return r;
}

const struct turns change__turns = {wait__ready, resume, wait__timed_out, wait__gives_way, NULL};
