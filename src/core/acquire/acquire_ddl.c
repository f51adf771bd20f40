/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock acquisition of DDL: commands that change indices, aliases or stored scripts.
 * README-locks.md, "Requests".
 *
 * - Deleting, opening or closing an index acquires X on it, since it concerns all documents.
 * - Creating an index, or changing its mapping, settings or aliases, acquires an insert intention
 *   on it. A lock on the index or on everything blocks that; locks on documents and directories
 *   do not.
 *
 * A DDL command waits as an autocommit write does. Locks of the session that it names do not block
 * it.
 */
#include "base/check.h"
#include "core/acquire/acquire.h"
#include "core/acquire/ask.h"
#include "core/acquire/grants.h"
#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/command_owner.h"
#include "core/session/deadline.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/step/core.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"
#include "mapping/mapping.h"

static struct lock_spec_list specs_of(struct core *core, const struct command *command)
{
    struct lock_spec_list specs = {0};
    lock_resolve__ddl(core, command, &specs);
    return specs;
}

/* Whether a spec is for an index that the command changes; not for a name, nor auxiliary. */
static bool is_index(const struct lock_spec *spec)
{
    return spec->on.space == RESOURCE_SPACE_TREE && !spec->auxiliary;
}

/*
 * Whether the names that a command changes mean more locks than one request may have; then it is refused, before any
 * change. Not by commands before version 23.
 */
static bool refuse_names(const struct core *core, struct command *command, const struct lock_spec_list *specs)
{
    if (core->command_version < COMMAND_SINCE_NAMES_BOUNDED || !lock_specs__exceed(specs))
        return false;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the request changes so many indices and aliases that finding the locks on them takes longer than one "
                "step may: divide it");
    return true;
}

/* Whether the fencing token of a command, if any, covers every index that it changes. */
static bool token_is_valid(const struct core *core, const struct lock_spec_list *specs, struct command *command,
                           const struct session *session)
{
    const struct owner *requester = session == NULL ? NULL : &session->owner;
    for (size_t i = 0; i < specs->count; i++)
        if (is_index(&specs->items[i]) &&
            !command_owner__check_token(core, command, &specs->items[i].on, requester, &command->problem))
            return false;
    return true;
}

/* Whether an index exists and has a path field, so that its documents are in directories. */
static bool has_path_field(const struct core *core, struct slice index)
{
    const struct catalog_index *found = catalog_index(core->catalog, index);
    return found != NULL && mapping_path_field(found->mapping) != NULL;
}

/* An index whose documents get or lose their directories. */
struct changed_index {
    struct slice name;
    bool has_path_field; /* now */
};

/* Counts the locks on documents of all of them that get directories; more than RELOCATED_MAX: too many. */
static int count_locked(struct core *core, const struct changed_index *changed, size_t count, size_t *ret_locked)
{
    size_t of_index;
    int r = 0;
    *ret_locked = 0;
    for (size_t i = 0; i < count && *ret_locked <= RELOCATED_MAX && r == 0; i++)
        if (changed[i].has_path_field) {
            r = lock_resolve__count_placed(core, changed[i].name, &of_index);
            *ret_locked += of_index;
        }
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Undoes the whole unit, and refuses the command. Locks of its own session the client can release; for those of others
 * the request is to be repeated, as one that they block.
 */
static void refuse_moves(struct core *core, struct command *command, const struct session *session,
                         const struct changed_index *changed, size_t count)
{
    const struct lock_owner *own = session == NULL ? NULL : &session->owner.locks;
    bool others = false;
    for (size_t i = 0; i < count && !others; i++)
        others =
            changed[i].has_path_field && lock_table_others_hold_documents(&core->owners->locks, changed[i].name, own);
    core__rollback(core);
    if (others)
        problem_set(&command->problem, &command->arena, PROBLEM_LOCK_CONFLICT,
                    "more than [%d] locks, or fewer with long paths, are held on documents that the path field would "
                    "move into directories, some of them by other sessions: repeat the request when these are "
                    "released, or lock the index first",
                    RELOCATED_MAX);
    else
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "more than [%d] locks, or fewer with long paths, are held on documents that the path field would "
                    "move into directories: release them first, or lock the index instead",
                    RELOCATED_MAX);
}

/*
 * Moves the locks on documents of the indices that have got or lost their path field. If these are too many, undoes the
 * whole unit instead, and refuses the command; the lock table, which a rollback does not restore, is unchanged then.
 * Documents that lose their directories are not read, and have no limit. Returns: 0; fatal codes.
 */
static int relocate_documents(struct core *core, struct command *command, const struct session *session,
                              const struct changed_index *changed, size_t count)
{
    size_t locked;
    int r = count_locked(core, changed, count, &locked);
    if (r < 0)
        return tl_trace(r);
    if (locked > RELOCATED_MAX) {
        refuse_moves(core, command, session, changed, count);
        return 0;
    }
    uint64_t before = core_step_work(core);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = lock_resolve__relocate_documents(core, changed[i].name);
    if (count > 1) /* indices that are gone: README.md, "The work of a step" */
        core__note_indivisible(core, core_step_work(core) - before);
    return r;
}

/*
 * Runs the handler in a unit without other changes, since a handler that refuses rolls back its
 * whole unit. Then moves the locks on documents, if the path field was added or removed.
 * Returns: 0; fatal codes.
 */
static int run_handler(struct core *core, struct command *command, const struct session *session,
                       struct lock_spec_list *specs)
{
    if (core__changed(core)) { /* locks were released, and others granted */
        int r = grants__settle(core);
        int written = core__commit(core);
        if (r < 0 || written < 0)
            return tl_trace(r < 0 ? r : written);
        core__begin(core, core->last_ts + 1);
        *specs = specs_of(core, command);
    }
    bool *had_path_field = arena_zalloc(&core->arena, specs->count + 1);
    for (size_t i = 0; i < specs->count; i++)
        had_path_field[i] = is_index(&specs->items[i]) && has_path_field(core, specs->items[i].on.index);
    int r = core__handle(core, command);
    if (r != 0 || command->problem.type != PROBLEM_NONE)
        return r;
    struct changed_index *changed = arena_alloc(&core->arena, (specs->count + 1) * sizeof *changed);
    size_t count = 0;
    for (size_t i = 0; i < specs->count; i++) {
        bool has = is_index(&specs->items[i]) && has_path_field(core, specs->items[i].on.index);
        if (has != had_path_field[i])
            changed[count++] = (struct changed_index){specs->items[i].on.index, has};
    }
    return relocate_documents(core, command, session, changed, count);
}

/*
 * Requests the locks, and runs or parks the command.
 * Returns: 0, done or refused, and the wait freed; CORE_WAITS; fatal codes.
 */
static int acquire_ddl_locks(struct core *core, struct wait *wait, struct lock_spec_list *specs, tl_ts until)
{
    struct command *command = wait->command;
    int r = 0;
    lock_resolve__drop_unheld(core, wait->owner, wait->session, specs);
    if (specs->count == 0) {
        r = run_handler(core, command, wait->session, specs);
        wait__free(core, wait);
        return r;
    }
    enum ask_outcome outcome = ask__locks(core, wait, specs->items, specs->count, until);
    switch (outcome) {
    case ASK_GRANTED: r = run_handler(core, command, wait->session, specs); break;
    case ASK_PARKED: return CORE_WAITS;
    case ASK_BLOCKED:
    case ASK_FULL: ask__explain(core, wait, outcome, PROBLEM_LOCK_WAIT_TIMEOUT); break;
    case ASK_VICTIM: ask__fail_victim(core, wait); return 0;
    }
    wait__free(core, wait);
    return r;
}

int acquire__ddl(struct core *core, struct command *command)
{
    REQUIRE(core->open && command_is(command->type, COMMAND_DDL));
    struct session *session;
    if (!owners_any_locks(core->owners) && command->owner.session.len == 0 && command->owner.fencing_token == 0)
        return core__handle(core, command);
    struct lock_spec_list specs = specs_of(core, command);
    if (refuse_names(core, command, &specs) || !command_owner__session(core, command, &session) ||
        !token_is_valid(core, &specs, command, session) ||
        lock_resolve__self_conflict(core, session, &specs, &command->arena, &command->problem))
        return 0;
    if (!owners_any_locks(core->owners) || specs.count == 0)
        return core__handle(core, command);
    struct wait *wait = wait__new(core, command, NULL, session, NULL);
    return acquire_ddl_locks(core, wait, &specs, deadline_after(core, command->owner.timeout_us));
}

/* Whether the granted locks include every one that the command needs in the current state. */
static bool is_still_granted(const struct core *core, const struct wait *wait, const struct lock_spec_list *specs)
{
    for (size_t i = 0; i < specs->count; i++)
        if (!specs->items[i].insert_intention && !lock_table_holds(&core->owners->locks, wait->owner, &specs->items[i]))
            return false;
    return true;
}

/* Starts again: the token may have become invalid meanwhile, and names may mean more. */
static int resume_ddl(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    struct lock_spec_list specs = specs_of(core, command);
    struct session *session = wait->session;
    int r = 0;
    if (!refuse_names(core, command, &specs) && token_is_valid(core, &specs, command, session) &&
        !lock_resolve__self_conflict(core, session, &specs, &command->arena, &command->problem)) {
        lock_resolve__drop_unheld(core, wait->owner, session, &specs);
        if (!is_still_granted(core, wait, &specs)) {
            lock_release_all(&core->owners->locks, wait->owner);
            return acquire_ddl_locks(core, wait, &specs, wait->until);
        }
        r = run_handler(core, command, session, &specs);
    }
    wait__free(core, wait);
    return r;
}

const struct wait_ops change__wait_ops = {wait__on_grant, resume_ddl, wait__on_timeout, grants__on_deadlock, NULL};
