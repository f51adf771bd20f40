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
#include "core/owners/lock_resolve.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/owners/command_owner.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/handler.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "mapping/mapping.h"

static struct lock_spec_list change_of(struct core *core, const struct command *command)
{
    struct lock_spec_list wants = {0};
    lock_resolve__ddl(core, command, &wants);
    return wants;
}

/* Whether a want is of an index that it changes, and not of what goes with that. */
static bool is_index(const struct lock_spec *want)
{
    return want->on.space == RESOURCE_SPACE_TREE && !want->auxiliary;
}

/* Whether its token, if it names one, is that of a lock on all that it changes. */
static bool token_holds(const struct core *core, const struct lock_spec_list *wants, struct command *command,
                        const struct session *session)
{
    const struct owner *who = session == NULL ? NULL : &session->owner;
    for (size_t i = 0; i < wants->count; i++)
        if (is_index(&wants->items[i]) && !command_owner__check_token(core, command, &wants->items[i].on, who, &command->problem))
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
static int run(struct core *core, struct command *command, struct lock_spec_list *wants)
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
            r = lock_resolve__relocate_documents(core, wants->items[i].on.index); /* in directories now, or in none */
    return r;
}

/* Asks for what it changes. Returns: 0 it is done, or refused, and the wait is free; CORE_WAITS; fatal codes. */
static int ask(struct core *core, struct wait *wait, struct lock_spec_list *wants, tl_ts until)
{
    struct command *command = wait->command;
    int r = 0;
    lock_resolve__drop_unheld(core, wait->owner, wait->session, wants);
    if (wants->count == 0) {
        r = run(core, command, wants);
        wait__free(core, wait);
        return r;
    }
    switch (wait__acquire(core, wait, wants->items, wants->count, until > core->clock && !wait__limit_reached(core))) {
    case LOCK_GRANTED: r = run(core, command, wants); break;
    case LOCK_WAITS: wait__park(core, wait, until); return CORE_WAITS;
    case LOCK_CONFLICT: wait__explain_conflict(core, wait, until > core->clock, PROBLEM_LOCK_WAIT_TIMEOUT); break;
    default: /* LOCK_DEADLOCK */ command->problem = *wait__cause(wait); break;
    }
    wait__free(core, wait);
    return r;
}

int owners__run_ddl(struct core *core, struct command *command)
{
    struct session *session;
    if (!owners__any_locks(core) && command->owner.session.len == 0 && command->owner.fencing_token == 0)
        return core__handle(core, command);
    struct lock_spec_list wants = change_of(core, command);
    if (!command_owner__session(core, command, &session) || !token_holds(core, &wants, command, session) ||
        lock_resolve__self_conflict(core, session, &wants, &command->arena, &command->problem))
        return 0;
    if (!owners__any_locks(core) || wants.count == 0)
        return core__handle(core, command);
    struct wait *wait = wait__new(core, command, NULL, session, NULL);
    return ask(core, wait, &wants, deadline_after(core, command->owner.timeout_us));
}

/* Whether what was granted is all that it changes as things are now. */
static bool is_granted(const struct core *core, const struct wait *wait, const struct lock_spec_list *wants)
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
    struct lock_spec_list wants = change_of(core, command);
    struct session *session = wait->session;
    int r = 0;
    if (token_holds(core, &wants, command, session) &&
        !lock_resolve__self_conflict(core, session, &wants, &command->arena, &command->problem)) {
        lock_resolve__drop_unheld(core, wait->owner, session, &wants);
        if (!is_granted(core, wait, &wants)) {
            lock_release_all(&core->owners->locks, wait->owner);
            return ask(core, wait, &wants, wait->until);
        }
        r = run(core, command, &wants);
    }
    wait__free(core, wait);
    return r;
}

const struct wait_ops change__wait_ops = {wait__enqueue_ready, resume, wait__on_timeout, wait__on_deadlock, NULL};
