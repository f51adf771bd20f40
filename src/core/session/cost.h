/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost: how a long operation is divided into batches, one a step (README-locks.md, "Sessions").
 *
 * One point of cost is 10 to 20 us; a batch has limits.ephemeral_batch points. Cost follows from
 * the state and the command alone, so all replicas divide an operation alike. The work of work.h
 * does not: it also counts what depends on caches.
 */
#ifndef TL_CORE_COST_H
#define TL_CORE_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;

enum {
    SCRIPT_STEPS_PER_COST = 500,  /* script steps per point */
    LOCKS_PER_COST = 50,          /* locks requested, or released with their owner, per point */
    SOURCE_BYTES_PER_COST = 4096, /* bytes of document sources per point */
    WRITE_WORK_PER_COST = 400,    /* work of a write's items (WRITE_WORK_MAX) per point, where that is more */
    TXN_RECORDS_PER_COST = 200,   /* records and entries freed with a transaction, per point */
    WRITES_PER_COST = 16,         /* records and entries put or deleted per point, in version 10 of commands */
    WORK_PER_DOCUMENT = 400,      /* work of deleting a usual ephemeral document (ephemeral.h), one point */
    MAPPING_WORK_PER_COST = 200,  /* work of making mappings (core__work_mapping()) per point */
    MAPPING_WORK_FREE = 4000,     /* of each operation, without cost: 0.4 ms, some ten fields under locks */
    ACTION_BYTES_PER_COST = 2000, /* bytes of a deferred action, when it requests its locks again */
    UNLOCK_WORK_PER_COST = 200,   /* work of the locks that one UNLOCK releases by name, per point of its batch */
    GRANTS_PER_COST = 3,          /* grants of waiting requests in one step, per point of its batch */
    CANCELS_PER_COST = 5,         /* cancelled waits that end in one step, per point of its batch */
    DDL_COST = 20,                /* points of a rename or of DDL on an index */
    COST_KEPT_PART = 4,           /* of a TICK's account, kept for timeouts, and for ready commands: owners.c */
    COST_LEAST_PART = 20,         /* of a batch: what cancelled requests, timeouts and commands may do in any case */
};

/*
 * The account of a step's work, in addition to that of its points: begins with STEP_ACCOUNT_WORK, which leaves a step
 * the time of the last operation. An operation may take more than its points say, and some have none; the account has
 * the work of all that a step releases, grants and resumes, as far as it follows from state and commands. When it is
 * spent, the next TICK continues. In commands before version 24 it is unlimited.
 */
void cost_begin_step(struct core *core);
/* Charges work to the account, and that of the grants since the last charge. It limits further grants. */
void cost_charge_work(struct core *core, uint64_t work);
/* Charges the points that were spent of the account of a TICK, and not charged before. */
void cost_charge_spent(struct core *core);
/* Leaves a part of a TICK that comes late in it some work in any case (COST_LEAST_PART). */
void cost_leave_least(struct core *core);
/* Returns: the work charged in this step. */
uint64_t cost_charged_work(const struct core *core);
/*
 * Returns: whether a step may begin the end of an owner that takes `cost` points and is not divided: the account has as
 * much left, or nearly all (STEP_ACCOUNT_FREE_PART), so that one of any size ends in some step. `spent`: points that
 * are not charged to the account yet. In commands before version 26 always.
 */
bool cost_fits(const struct core *core, uint64_t spent, uint64_t cost);
/* Returns: whether cost_fits() may find that as much does not fit. In commands before version 26 never. */
bool cost_is_large(const struct core *core, uint64_t cost);
/*
 * Returns: the number of the turn, by the clock: TURN_US each. Operations that need most of a step take turns with the
 * other work of TICKs, so that neither delays the other for long, however much there is of both.
 */
uint64_t cost_turn(const struct core *core);

/* Charges `cost` points to a batch that has *left points left; *left stops at 0. */
static inline void cost_charge(size_t *left, uint64_t cost)
{
    *left = cost < *left ? *left - (size_t)cost : 0;
}

/*
 * Counters from which the cost of one operation is computed as a difference. They follow from state
 * and commands.
 */
struct cost_counters {
    uint64_t source_bytes, script_steps, mapping_work, write_work; /* of the step */
    size_t writes; /* in the unit's batch; counts in steps of version 10 alone: cost_of_action() */
};

/* Returns: the work of an operation since `before`, by the counters. */
uint64_t cost_work_since(const struct core *core, const struct cost_counters *before);

/* Requires: a unit is open. */
struct cost_counters cost_counters_of(const struct core *core);
/*
 * Returns: the cost of an operation since `before`, in the same unit. `own`: the part of it that the
 * counters do not have, such as its locks.
 */
uint64_t cost_since(const struct core *core, const struct cost_counters *before, uint64_t own);
/*
 * Returns: as cost_since(), of an action of on_expire, without a point for the action itself. No mapping is without
 * cost, since a session may have a thousand actions that make one each; before version 25 of commands as there. Before
 * version 11 it counts the writes in the batch, before version 10 scripts alone.
 */
uint64_t cost_of_action(const struct core *core, const struct cost_counters *before);
/*
 * Returns: the cost that the step of an older command charges for a resumed deferred action once
 * more: its writes, in version 10 of commands alone.
 */
uint64_t cost_of_writes_again(const struct core *core, const struct cost_counters *before);

#endif
