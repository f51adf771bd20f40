/* SPDX-License-Identifier: Apache-2.0 */
/* Locks and fencing tokens of the renames in a transaction; see txn_renames.h. */
#include "core/transaction/txn_renames.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/feed/feed.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/command_owner.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/document.h"

/* The check of a fencing token against each rename of a transaction. */
struct token_check {
    struct core *core;
    struct command *command;
    const struct owner *owner;
    bool stale;
    int r; /* 0; TL_ERR_CORRUPT */
};

static void check_rename_token(void *context, struct slice key, struct slice value)
{
    struct token_check *work = context;
    struct feed_change change;
    (void)key;
    if (!feed_change_take(&value, &change)) {
        work->r = tl_trace(TL_ERR_CORRUPT);
        return;
    }
    const struct catalog_index *index = catalog_index_by_number(work->core->catalog, change.index);
    if (index == NULL)
        return;
    struct resource_name from = {.index = index->name, .path = change.name};
    struct resource_name to = {.index = index->name, .path = change.to};
    work->stale = work->stale ||
                  !command_owner__check_token(work->core, work->command, &from, work->owner, &work->command->problem) ||
                  !command_owner__check_token(work->core, work->command, &to, work->owner, &work->command->problem);
}

int txn_renames__check_token(struct core *core, struct command *command, const struct txn *txn)
{
    REQUIRE(txn->overlay != NULL && command->owner.fencing_token != 0);
    struct token_check work = {.core = core, .command = command, .owner = &txn->owner};
    overlay_each(txn->overlay, SPACE_FEED, check_rename_token, &work);
    return work.r < 0 ? work.r : work.stale;
}

/* The renames of a transaction in one index. */
struct renamed {
    uint32_t index;
    struct slice *paths; /* old and new paths */
    size_t count, capacity;
};

struct all_renamed {
    struct renamed *indices;
    size_t count, capacity;
    struct arena *arena;
};

static void add_path(struct arena *arena, struct renamed *renamed, struct slice path)
{
    renamed->paths = arena_grow(arena, renamed->paths, renamed->count, &renamed->capacity, sizeof *renamed->paths);
    renamed->paths[renamed->count++] = path;
}

static void collect_rename(void *context, struct slice key, struct slice value)
{
    struct all_renamed *all = context;
    struct feed_change change;
    size_t i = 0;
    (void)key;
    if (!feed_change_take(&value, &change))
        return; /* txn_renames__check_token() and the commit report it */
    while (i < all->count && all->indices[i].index != change.index)
        i++;
    if (i == all->count) {
        all->indices = arena_grow(all->arena, all->indices, all->count, &all->capacity, sizeof *all->indices);
        all->indices[all->count++] = (struct renamed){.index = change.index};
    }
    add_path(all->arena, &all->indices[i], change.name);
    add_path(all->arena, &all->indices[i], change.to);
}

struct resource_name *txn_renames__locked_documents(struct core *core, const struct txn *txn, size_t *ret_count)
{
    const struct overlay *overlay = txn->overlay;
    REQUIRE(core->open && overlay != NULL);
    struct all_renamed all = {.arena = &core->arena};
    struct resource_name *names = NULL;
    size_t capacity = 0, count;
    /* Before, the commit moves those that the transaction alone has locked, too. */
    const struct lock_owner *except = core->command_version >= COMMAND_SINCE_MOVES_BOUNDED ? &txn->owner.locks : NULL;
    *ret_count = 0;
    if (overlay_count_in(overlay, SPACE_FEED) == 0)
        return NULL;
    overlay_each(overlay, SPACE_FEED, collect_rename, &all);
    for (size_t i = 0; i < all.count; i++) {
        const struct renamed *renamed = &all.indices[i];
        const struct catalog_index *index = catalog_index_by_number(core->catalog, renamed->index);
        if (index == NULL)
            continue;
        const struct resource_name *documents = lock_table_documents_below(
            &core->owners->locks, index->name, renamed->paths, renamed->count, except, &core->arena, &count);
        for (size_t k = 0; k < count; k++) {
            core__work(core, WORK_READ);
            names = arena_grow(&core->arena, names, *ret_count, &capacity, sizeof *names);
            names[(*ret_count)++] = documents[k];
        }
    }
    return names;
}
