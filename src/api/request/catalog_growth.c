/* SPDX-License-Identifier: Apache-2.0 */
/* Reserves memory for the commands that add to the catalog; see catalog_growth.h. */
#include "api/request/catalog_growth.h"

#include "api/request/api_internal.h"
#include "api/request/growth_measure.h"
#include "api/request/request_budget.h"
#include "base/arena.h"
#include "base/budget.h"
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"

/* How often there must be room for the quick measure: it may be many times the addition. */
enum { QUICK_ROOM = 4 };

/* Returns: whether it was promised. */
static bool promise(const struct api *api, const struct growth *growth, enum growth_effort effort, bool scripted,
                    struct growth_promise *ret_promise)
{
    bool quick = effort == GROWTH_QUICK;
    const struct growth_terms terms = {
        .budget = api->options.budget,
        .level = scripted ? BUDGET_TRANSIENT : BUDGET_RETAINED,
        .room = quick ? QUICK_ROOM : 1,
        .alone = quick      ? SIZE_MAX
                 : scripted ? (size_t)BUDGET_CHUNK
                            : (size_t)BUDGET_SMALL,
    };
    return growth_table_promise(api->growth, &terms, growth, ret_promise);
}

/*
 * Measures with the least effort that suffices. `command`: NULL: the write is no command yet. Returns: 0; the bytes for
 * which there is no room.
 */
static size_t reserve(const struct api *api, const struct command *command, const struct write_command *write,
                      struct growth_promise *ret_promise)
{
    static const enum growth_effort efforts[] = {GROWTH_QUICK, GROWTH_EXACT};
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(api->journal);
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct growth growth;
    bool scripted;
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        if (command != NULL)
            growth_measure(catalog, command, efforts[i], &arena, &growth, &scripted);
        else
            growth_measure_write(catalog, write, efforts[i], &arena, &growth, &scripted);
        if (promise(api, &growth, efforts[i], scripted, ret_promise))
            return 0;
    }
    size_t bytes = growth_bytes(&growth);
    ENSURE(bytes > 0);
    return bytes;
}

static int refuse_growth(const struct api *api, size_t bytes, struct slice what, struct arena *arena,
                         struct problem *ret_problem)
{
    struct budget_guard guard;
    budget_guard_init(&guard, api->options.budget, BUDGET_REQUESTS, BUDGET_RETAINED);
    budget_guard_refuse(&guard, growth_table_bytes(api->growth), bytes);
    budget_problem(&guard, what, arena, ret_problem);
    budget_guard_end(&guard);
    return REQUEST_REFUSED;
}

int catalog_growth_reserve(struct request *request, const struct command *command)
{
    REQUIRE(command != NULL);
    const struct api *api = request->api;
    if (api->options.budget == NULL || request->growth.table != NULL)
        return 0;
    size_t missing = reserve(api, command, NULL, &request->growth);
    return missing == 0 ? 0
                        : refuse_growth(api, missing, request_budget_name(request), request->arena, &request->problem);
}

int catalog_growth_reserve_write(const struct api *api, const struct write_command *write, struct slice what,
                                 struct arena *arena, struct growth_promise *ret_promise, struct problem *ret_problem)
{
    REQUIRE(write != NULL && what.len > 0 && ret_promise->table == NULL);
    size_t missing = api->options.budget == NULL ? 0 : reserve(api, NULL, write, ret_promise);
    return missing == 0 ? 0 : refuse_growth(api, missing, what, arena, ret_problem);
}
