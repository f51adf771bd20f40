/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup actions of ended sessions, at once or deferred until their locks are free; see acquire.h. */
#include "base/check.h"
#include "core/acquire/acquire.h"
#include "core/acquire/acquire_internal.h"
#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/documents/write.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"

/*
 * Whether another owner than the session holds a conflicting lock. Waiting requests do not count.
 */
static bool is_blocked(struct core *core, struct session *session, const struct lock_spec_list *specs)
{
    REQUIRE(core->open && MAGIC_VALID(session, SESSION_MAGIC));
    struct lock_table *locks = &core->owners->locks;
    struct lock_owner *owner = &session->owner.locks;
    for (size_t i = 0; i < specs->count; i++)
        if (!lock_table_covers(locks, owner, &specs->items[i]) &&
            !lock_table_can_grant_ignoring_waiters(locks, owner, &specs->items[i]))
            return true;
    return false;
}

/* Runs the only item, as a chosen one: later writes of the unit read its changes. */
static int run_only_item(struct acquisition *at)
{
    bool chosen = true;
    return acquisition__run(at, &chosen);
}

static void make_result(struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE && command->write.item_count == 1);
    command->write.results = arena_zalloc(&command->arena, sizeof *command->write.results);
}

/*
 * Replaces an alias in a deferred item by its current index and routing: it may mean another index
 * when the item runs. An alias whose routing contradicts the item's stays; the item fails later.
 */
static void replace_alias(struct core *core, struct arena *arena, const struct write_target *target,
                          struct write_item *item)
{
    const struct catalog_index *index;
    const struct catalog_alias *alias = NULL;
    struct problem problem;
    if (slice_equal(target->index, item->index) ||
        catalog_find_any(core->catalog, item->index, true, item->dialect, arena, &index, &alias, &problem) != 0)
        return;
    struct slice routing = alias == NULL ? SLICE_NONE : alias->index_routing;
    if (item->routing.data != NULL && routing.data != NULL && !slice_equal(item->routing, routing))
        return;
    item->index = arena_copy(arena, target->index);
    item->require_alias = false;
    if (routing.data != NULL)
        item->routing = arena_copy(arena, routing);
}

int acquire__run_cleanup(struct core *core, struct session *session, struct command *command)
{
    struct acquisition at = {.core = core, .command = command, .session = session};
    REQUIRE(core->open && command->write.cleanup && command->write.item_count == 1);
    make_result(command);
    int r = acquisition__find_targets(&at);
    if (r < 0)
        return tl_trace(r);
    acquisition__collect_specs(&at, NULL);
    if (!is_blocked(core, session, &at.specs))
        return run_only_item(&at);
    if (at.targets.count > 0)
        replace_alias(core, &command->arena, &at.targets.items[0], &command->write.items[0]);
    return 1;
}

bool acquire__document_is_blocked(struct core *core, struct session *session, const struct resource_name *document)
{
    REQUIRE(core->open && document->id.len > 0);
    struct lock_spec_list specs = lock_resolve__document(core, document);
    return is_blocked(core, session, &specs);
}

bool acquire__removal_is_blocked(struct core *core, struct session *session, const struct write_item *removal)
{
    REQUIRE(core->open && removal->op == WRITE_DELETE);
    struct lock_spec spec = {{removal->index, SLICE_NONE, removal->type, removal->id}, LOCK_X, false};
    if (lock_table_is_idle(&core->owners->locks) ||
        write__path_of(core, NULL, removal->index, removal->type, removal->id, &spec.on.path) < 0)
        return false;
    return acquire__document_is_blocked(core, session, &spec.on);
}

/*
 * Requests the locks of a deferred action. If a granted action needs further locks, it releases
 * its locks before it waits. It is never chosen as a deadlock victim, so two actions that hold
 * locks while they wait could block each other forever.
 */
static int request_deferred(struct acquisition *at, bool granted_before)
{
    REQUIRE(at->core->open && MAGIC_VALID(at->wait, WAIT_MAGIC) && at->wait->owner != NULL);
    struct lock_table *locks = &at->core->owners->locks;
    int r = acquisition__find_targets(at);
    if (r < 0)
        return tl_trace(r);
    if (at->targets.count == 0)
        return 0;
    acquisition__collect_specs(at, NULL);
    if (granted_before && wait__acquire(at->core, at->wait, at->specs.items, at->specs.count, false) == LOCK_GRANTED)
        return 0;
    lock_table_suspend_grants(locks);
    lock_release_all(locks, at->wait->owner);
    bool granted = wait__acquire(at->core, at->wait, at->specs.items, at->specs.count, true) == LOCK_GRANTED;
    lock_table_resume_grants(locks);
    if (granted)
        return 0;
    wait__park(at->core, at->wait, TL_TS_MAX);
    return CORE_WAITS;
}

int acquire__request_deferred(struct core *core, struct wait *wait, struct command *command)
{
    struct acquisition at = {.core = core, .command = command, .wait = wait};
    REQUIRE(core->open && wait->deferred != NULL && command->write.item_count == 1);
    make_result(command);
    return request_deferred(&at, false);
}

int acquire__resume_deferred(struct core *core, struct wait *wait, struct command *command)
{
    struct acquisition at = {.core = core, .command = command, .wait = wait};
    REQUIRE(core->open && wait->deferred != NULL && command->write.item_count == 1);
    make_result(command);
    int r = request_deferred(&at, true);
    return r == 0 ? run_only_item(&at) : r;
}
