/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of memory; see budget.h. */
#include "base/budget.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/check.h"

static _Atomic ptrdiff_t tallies[BUDGET_KIND_COUNT];

static const char *const kind_names[BUDGET_KIND_COUNT] = {
    [BUDGET_REQUESTS] = "request",          [BUDGET_BODIES] = "in_flight_requests",
    [BUDGET_TRANSACTIONS] = "transactions", [BUDGET_LOCKS] = "locks",
    [BUDGET_CONTEXTS] = "search_contexts",  [BUDGET_SCRIPTS] = "scripts",
    [BUDGET_ACTIONS] = "session_actions",   [BUDGET_STREAMS] = "streams",
};

void budget_init(struct budget *budget, size_t limit)
{
    REQUIRE(limit >= BUDGET_LIMIT_MIN);
    *budget = (struct budget){.limit = limit, .chunk = BUDGET_CHUNK};
}

size_t budget_share(const struct budget *budget, enum budget_level level)
{
    switch (level) {
    case BUDGET_RETAINED: return budget->limit - budget->limit / 4;
    case BUDGET_TRANSIENT: return budget->limit - budget->limit / 16;
    default: return budget->limit;
    }
}

size_t budget_reserve(const struct budget *budget)
{
    return budget->limit / 16;
}

size_t budget_used(const struct budget *budget)
{
    return mem_used() + atomic_load_explicit(&budget->promised, memory_order_relaxed);
}

static bool fits_share(size_t used, size_t share, size_t bytes)
{
    return used <= share && bytes <= share - used;
}

bool budget_fits(const struct budget *budget, enum budget_level level, size_t bytes)
{
    return budget == NULL || fits_share(budget_used(budget), budget_share(budget, level), bytes);
}

void budget_tally(enum budget_kind kind, ptrdiff_t bytes)
{
    if (bytes != 0)
        atomic_fetch_add_explicit(&tallies[kind], bytes, memory_order_relaxed);
}

size_t budget_tallied(enum budget_kind kind)
{
    ptrdiff_t bytes = atomic_load_explicit(&tallies[kind], memory_order_relaxed);
    return bytes > 0 ? (size_t)bytes : 0;
}

const char *budget_kind_name(enum budget_kind kind)
{
    REQUIRE(kind >= 0 && kind < BUDGET_KIND_COUNT);
    return kind_names[kind];
}

/* --- Guards ------------------------------------------------------------------------------------------------------- */

void budget_guard_init(struct budget_guard *guard, struct budget *budget, enum budget_kind kind,
                       enum budget_level level)
{
    *guard = (struct budget_guard){.budget = budget, .kind = kind, .level = level};
}

static size_t own_limit(const struct budget *budget)
{
    return budget->limit / 2;
}

static bool refuse_bytes(struct budget_guard *guard, size_t held, size_t asked, size_t limit)
{
    guard->refused = true;
    guard->asked = asked;
    guard->wanted = held + asked < held ? SIZE_MAX : held + asked;
    guard->limit = limit;
    atomic_fetch_add_explicit(&guard->budget->refusals[guard->kind], 1, memory_order_relaxed);
    return false;
}

/*
 * Counts down the injected fault (struct budget_fault). Returns: whether it happens at this
 * question: then the guard has been refused, or its account ended.
 */
static bool fails_here(struct budget_guard *guard, size_t asked)
{
    struct budget_fault *fault = &guard->budget->fault;
    uint64_t left = atomic_load_explicit(&fault->in, memory_order_relaxed);
    do {
        if (left == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&fault->in, &left, left - 1));
    if (left > 1)
        return false;
    if (fault->end == ACCOUNT_RUNNING)
        (void)refuse_bytes(guard, guard->budget->limit, asked, guard->budget->limit);
    else if (guard->account != NULL)
        guard->account->end = fault->end;
    return true;
}

/* Draws from the reserve (invariant 2). Returns: false when the reserve is exhausted. */
static bool draw_reserve(struct budget_guard *guard, size_t bytes)
{
    struct budget *budget = guard->budget;
    size_t more = guard->drawn == 0 && bytes < BUDGET_DRAW ? BUDGET_DRAW : bytes;
    if (!fits_share(atomic_fetch_add_explicit(&budget->drawn, more, memory_order_relaxed), budget_reserve(budget),
                    more)) {
        atomic_fetch_sub_explicit(&budget->drawn, more, memory_order_relaxed);
        return false;
    }
    guard->drawn += more;
    return true;
}

/*
 * Grants or refuses `bytes`, and counts them for the guard; mem_used() counts them for the process.
 */
static bool admit_bytes(struct budget_guard *guard, size_t bytes)
{
    struct budget *budget = guard->budget;
    if (!fits_share(guard->taken, own_limit(budget), bytes))
        return refuse_bytes(guard, guard->taken, bytes, own_limit(budget));
    enum budget_level level = fits_share(guard->taken, BUDGET_SMALL, bytes) ? guard->level : BUDGET_RETAINED;
    size_t share = budget_share(budget, level), used = budget_used(budget);
    if (level != BUDGET_ESSENTIAL && !fits_share(used, share, bytes) &&
        (level != BUDGET_TRANSIENT || !draw_reserve(guard, bytes)))
        return refuse_bytes(guard, used, bytes, share);
    guard->taken += bytes;
    return true;
}

static void drop_promise(struct budget_guard *guard, size_t bytes)
{
    guard->promised -= bytes;
    atomic_fetch_sub_explicit(&guard->budget->promised, bytes, memory_order_relaxed);
}

bool budget_guard_take(struct budget_guard *guard, size_t bytes)
{
    if (guard->account != NULL && !account_poll(guard->account))
        return false;
    if (guard->budget == NULL)
        return true;
    if (guard->refused || fails_here(guard, bytes))
        return false;
    if (guard->promised > 0) {
        size_t kept = bytes < guard->promised ? bytes : guard->promised;
        drop_promise(guard, kept);
        bytes -= kept;
        if (bytes == 0)
            return true;
    }
    return admit_bytes(guard, bytes);
}

bool budget_guard_promise(struct budget_guard *guard, size_t bytes)
{
    if (guard->budget == NULL)
        return true;
    if (guard->refused || fails_here(guard, bytes) || !admit_bytes(guard, bytes))
        return false;
    guard->promised += bytes;
    atomic_fetch_add_explicit(&guard->budget->promised, bytes, memory_order_relaxed);
    return true;
}

void budget_guard_refuse(struct budget_guard *guard, size_t about_to_take, size_t asked)
{
    REQUIRE(guard->budget != NULL && !guard->refused);
    (void)refuse_bytes(guard, budget_used(guard->budget) + about_to_take, asked,
                       budget_share(guard->budget, BUDGET_RETAINED));
}

void budget_guard_end(struct budget_guard *guard)
{
    if (guard->promised > 0)
        drop_promise(guard, guard->promised);
    if (guard->drawn > 0)
        atomic_fetch_sub_explicit(&guard->budget->drawn, guard->drawn, memory_order_relaxed);
    *guard = (struct budget_guard){.account = guard->account};
}

struct slice budget_human_size(struct arena *arena, size_t bytes)
{
    static const char *const units[] = {"b", "kb", "mb", "gb", "tb"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    if (unit == 0)
        return arena_printf(arena, "%zub", bytes);
    size_t tenths = (size_t)(size * 10);
    if (tenths % 10 == 0)
        return arena_printf(arena, "%zu%s", tenths / 10, units[unit]);
    return arena_printf(arena, "%zu.%zu%s", tenths / 10, tenths % 10, units[unit]);
}

void budget_problem(const struct budget_guard *guard, struct slice what, struct arena *arena,
                    struct problem *ret_problem)
{
    REQUIRE(guard->refused);
    bool alone = guard->limit == own_limit(guard->budget);
    problem_set(
        ret_problem, arena, PROBLEM_CIRCUIT_BREAKING,
        "[%s] Data too large, data for [<%.*s>] would be [%zu/%s], which is larger than the limit of [%zu/%s]: %zu "
        "bytes more were asked for; %s",
        alone ? kind_names[guard->kind] : "parent", SLICE_ARG(what), guard->wanted,
        budget_human_size(arena, guard->wanted).data, guard->limit, budget_human_size(arena, guard->limit).data,
        guard->asked,
        alone ? "ask for less at once, or raise --memory" : "try again when others have ended, or raise --memory");
    problem_details(ret_problem, arena, "\"bytes_wanted\":%zu,\"bytes_limit\":%zu,\"durability\":\"%s\"", guard->wanted,
                    guard->limit, alone || guard->asked > guard->limit ? "PERMANENT" : "TRANSIENT");
}
