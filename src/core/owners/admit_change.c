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
#include "core/owners/owners_internal.h"
#include "mapping/mapping.h"

struct change {
    struct lock_want *wants; /* in the core's arena */
    size_t want_count;
};

/* A name that is none is refused by the handler. */
static void want(struct change *change, struct slice index, bool whole)
{
    if (index.len == 0)
        return;
    change->wants[change->want_count++] = (struct lock_want){{.index = index}, LOCK_X, !whole};
}

static struct change change_of(struct core *core, const struct command *command)
{
    const struct index_command *index = &command->index;
    const struct aliases_command *aliases = &command->aliases;
    size_t count = command->type == COMMAND_ALIASES_UPDATE ? aliases->action_count : 1;
    struct change change = {.wants = arena_alloc(&core->arena, (count + 1) * sizeof *change.wants)};
    if (command->type == COMMAND_ALIASES_UPDATE) {
        for (size_t i = 0; i < count; i++)
            want(&change, aliases->actions[i].index, aliases->actions[i].op == ALIAS_REMOVE_INDEX);
        return change;
    }
    want(&change, index->name, command_is(command->type, COMMAND_WHOLE_INDEX));
    return change;
}

/* Whether its token, if it names one, is that of a lock on all that it changes. */
static bool token_holds(const struct core *core, const struct change *change, struct command *command,
                        struct session **session)
{
    for (size_t i = 0; i < change->want_count; i++)
        if (!terms__cover(core, command, &change->wants[i].on, session, &command->problem))
            return false;
    return true;
}

/* Whether the documents of an index lie in directories. */
static bool is_tree(const struct core *core, struct slice index)
{
    const struct catalog_index *found = catalog_index(core->catalog, index);
    return found != NULL && mapping_path_field(found->mapping) != NULL;
}

/* Its documents lie elsewhere from now on: in directories since it has a path field, or nowhere since it is
 * no more. */
static int move_documents(struct core *core, struct slice index)
{
    struct lock_table *locks = &core->owners->locks;
    size_t count;
    const struct resource **resources = lock_table_documents(locks, index, &core->arena, &count);
    for (size_t i = 0; i < count; i++) {
        struct resource_name name = resource_name(resources[i], &core->arena);
        struct slice path;
        int r = write__place(core, NULL, name.index, name.type, name.id, &path);
        if (r < 0)
            return tl_trace(r);
        lock_table_move(locks, &name, path);
    }
    return 0;
}

/* A handler that refuses takes back its whole unit, so that must hold nothing else. */
static int run(struct core *core, struct command *command, struct change *change)
{
    if (core__changed(core)) {
        int r = core__commit(core);
        if (r < 0)
            return tl_trace(r);
        core__begin(core, core->last_ts + 1);
        *change = change_of(core, command);
    }
    bool *trees = arena_alloc(&core->arena, change->want_count + 1);
    for (size_t i = 0; i < change->want_count; i++)
        trees[i] = is_tree(core, change->wants[i].on.index);
    int r = core__handle(core, command);
    for (size_t i = 0; r == 0 && i < change->want_count; i++)
        if (trees[i] != is_tree(core, change->wants[i].on.index))
            r = move_documents(core, change->wants[i].on.index);
    return r;
}

/* It may not wait, or not any more. */
static void explain_conflict(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    if (command->terms.timeout_us > 0)
        wait__explain_full(core, &command->arena, &command->problem);
    else
        wait__explain(wait, PROBLEM_LOCK_WAIT_TIMEOUT, HOLDERS_TOLD_MAX, &command->arena, &command->problem);
}

int owners__change(struct core *core, struct command *command)
{
    struct change change = change_of(core, command);
    uint64_t timeout_us = command->terms.timeout_us;
    struct session *session;
    int r = 0;
    if (!terms__session(core, command, &session) || !token_holds(core, &change, command, &session))
        return 0;
    if (!owners__any(core) || change.want_count == 0)
        return core__handle(core, command);
    bool may_wait = timeout_us > 0 && !wait__full(core);
    struct wait *wait = wait__new(core, command, NULL, session, NULL);
    switch (wait__ask(core, wait, change.wants, change.want_count, may_wait)) {
    case LOCK_GRANTED: r = run(core, command, &change); break;
    case LOCK_WAITS: wait__park(core, wait, deadline_after(core, timeout_us)); return CORE_WAITS;
    case LOCK_CONFLICT: explain_conflict(core, wait); break;
    default: /* LOCK_DEADLOCK */ command->problem = *wait__cause(wait); break;
    }
    wait__free(core, wait);
    return r;
}

static int resume(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    struct change change = change_of(core, command);
    struct session *session = wait->session;
    int r = 0;
    if (token_holds(core, &change, command, &session)) /* it may have gone meanwhile */
        r = run(core, command, &change);
    wait__free(core, wait);
    return r;
}

const struct turns change__turns = {wait__ready, resume, wait__timed_out, wait__gives_way};
