/* SPDX-License-Identifier: Apache-2.0 */
/* What a write will change, and the locks that it needs for that; see acquire_internal.h. */
#include "base/check.h"
#include "core/acquire/acquire_internal.h"
#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/documents/write.h"
#include "core/locks/resource.h"
#include "core/session/command_owner.h"
#include "core/session/cost.h"
#include "core/session/owner.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

struct lock_spec_list acquisition__specs_of(const struct acquisition *at, const struct write_target *target)
{
    REQUIRE(at->core->open && target->item >= at->range.begin && target->item < at->range.end);
    struct lock_spec_list specs = {0};
    lock_resolve__write(at->core, &acquisition__write(at)->items[target->item], target, at->txn, &specs);
    if (at->txn == NULL)
        lock_resolve__drop_unheld(at->core, at->wait == NULL ? NULL : at->wait->owner, at->session, &specs);
    return specs;
}

/* Checks the fencing token for one document; an invalid one fails its item. */
static bool token_is_valid(struct acquisition *at, const struct write_target *target)
{
    struct slice place = target->old_path.data != NULL ? target->old_path : target->new_path;
    struct resource_name name = {target->index, place, target->type, target->id};
    const struct owner *requester = at->txn != NULL       ? &at->txn->owner
                                    : at->session != NULL ? &at->session->owner
                                                          : NULL;
    return command_owner__check_token(at->core, at->command, &name, requester,
                                      &acquisition__write(at)->results[target->item].problem);
}

void acquisition__choose_range(struct acquisition *at)
{
    const struct write_command *write = acquisition__write(at);
    const struct wait *wait = at->wait;
    size_t batch = at->core->limits.ephemeral_batch, bytes = 0;
    at->range = (struct write_range){0, write->item_count};
    if (at->txn == NULL || (write->atomic && !at->in_pieces))
        return;
    while (wait != NULL && wait->pending_items != NULL && at->range.begin < write->item_count &&
           !wait->pending_items[at->range.begin])
        at->range.begin++;
    /* A wait has items to run, except one of which only the commit is left. */
    INSIST(at->range.begin < write->item_count || write->item_count == 0 || at->in_pieces);
    at->range.end = at->range.begin;
    while (at->range.end < write->item_count && at->range.end - at->range.begin + bytes / SOURCE_BYTES_PER_COST < batch)
        bytes += write_item_source_bytes(&write->items[at->range.end++]);
}

/*
 * Whether an item would create an index and change the meaning of a name locked by its own session.
 */
static bool has_self_conflict(struct acquisition *at, const struct write_target *target)
{
    struct problem *problem = &acquisition__write(at)->results[target->item].problem;
    if (at->session == NULL || catalog_index(at->core->catalog, target->index) != NULL)
        return false;
    struct lock_spec_list specs = {0};
    lock_resolve__write(at->core, &acquisition__write(at)->items[target->item], target, NULL, &specs);
    return lock_resolve__self_conflict(at->core, at->session, &specs, &at->command->arena, problem);
}

/*
 * Whether items may be postponed for the scripts and mappings that determine their targets. Before
 * version 9 only if no item of the range has run, and no lock was requested for one.
 */
static bool may_postpone(const struct acquisition *at)
{
    return at->core->command_version >= COMMAND_SINCE_RESUMED_LIMIT || at->wait == NULL ||
           (at->txn != NULL && at->wait->until == 0);
}

/* Returns: by item, whether it is still to run; NULL: all are, or a command before version 9 computes all. */
static const bool *pending_items(const struct acquisition *at)
{
    return at->core->command_version < COMMAND_SINCE_RESUMED_LIMIT || at->wait == NULL ? NULL : at->wait->pending_items;
}

/* Work of comparing documents with those of other types, as of finding locks: WRITE_WORK_MAX. */
#define TYPES_WORK_MAX (WRITE_WORK_MAX / 8 * 3)

/*
 * Counts the comparison of a target with documents of other types in the lock table. Returns: whether it is left to a
 * later command, since the earlier ones take long enough; that has the items after it, too, to keep their order. An
 * atomic write of a transaction is refused by the locks that it asks for.
 */
static bool postpone_for_types(struct acquisition *at, const struct write_target *target, uint64_t work,
                               uint64_t *io_work)
{
    bool divisible = !at->one_step && !acquisition__write(at)->cleanup && may_postpone(at);
    if (divisible && *io_work > 0 && *io_work + work > TYPES_WORK_MAX) {
        for (size_t i = target->item; i < at->range.end; i++)
            if (acquisition__is_pending(at, i))
                write__postpone(at->core, at->command, i);
        return true;
    }
    *io_work += work;
    at->work += work;
    return false;
}

/*
 * Refuses an item whose document is known by so many types that one step cannot ask for all: those of LOCKs of earlier
 * commands, or of indices that were deleted. A write that cleans up must be done. Returns: whether it is refused.
 */
static bool has_too_many_types(struct acquisition *at, const struct write_target *target, uint64_t work)
{
    struct problem *problem = &acquisition__write(at)->results[target->item].problem;
    if (work <= WRITE_WORK_MAX || acquisition__write(at)->cleanup)
        return false;
    problem_set(problem, &at->command->arena, PROBLEM_LIMIT_EXCEEDED,
                "the document [%.*s] of [%.*s] is locked or requested by more types than one write may compare: "
                "repeat it when some of these locks are released",
                SLICE_ARG(target->id), SLICE_ARG(target->index));
    return true;
}

int acquisition__find_targets(struct acquisition *at)
{
    size_t kept = 0;
    uint64_t types_work = 0;
    REQUIRE(at->core->open);
    acquisition__choose_range(at);
    struct write_choice choice = {at->range, pending_items(at), may_postpone(at), at->work, at->in_pieces};
    struct overlay *overlay = at->txn == NULL ? NULL : at->txn->overlay;
    int r = write__targets(at->core, at->command, &choice, overlay, &at->targets);
    if (r < 0)
        return tl_trace(r);
    at->work += at->targets.work;
    if (at->in_pieces) /* only runs count towards the steps of an atomic write */
        at->command->write.script_steps = at->steps_before;
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        INSIST(target->item >= at->range.begin && target->item < at->range.end); /* acquire_internal.h, 2 */
        if (!acquisition__is_pending(at, target->item) || target->index.len == 0)
            continue;
        uint64_t work = lock_resolve__types_work(at->core, target, at->txn != NULL);
        if (has_too_many_types(at, target, work))
            continue;
        if (postpone_for_types(at, target, work, &types_work))
            break;
        if (!token_is_valid(at, target) || has_self_conflict(at, target))
            continue;
        at->targets.items[kept++] = *target;
    }
    at->targets.count = kept;
    at->paths = (struct path_set){0};
    return 0;
}

void acquisition__collect_specs(struct acquisition *at, const bool *blocked)
{
    REQUIRE(at->core->open);
    const struct write_command *write = acquisition__write(at);
    at->specs = (struct lock_spec_list){0};
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        uint64_t mapping_work = at->core->mapping_work;
        if (at->one_step && at->specs.work > at->core->atomic_work_max)
            break; /* it will be refused */
        if (blocked == NULL || blocked[i])
            lock_resolve__write(at->core, &write->items[target->item], target, at->txn, &at->specs);
        if (at->one_step)
            at->specs.work += at->core->mapping_work - mapping_work;
    }
    if (at->txn == NULL)
        lock_resolve__drop_unheld(at->core, at->wait == NULL ? NULL : at->wait->owner, at->session, &at->specs);
}
