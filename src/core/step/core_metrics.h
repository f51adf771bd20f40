/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core counts of what it does, for people to look at (src/metrics/README.md): no part of the state, never acted upon, in no
 * checkpoint, back at 0 with each start. The core adds, any thread reads.
 */
#ifndef TL_CORE_CORE_METRICS_H
#define TL_CORE_CORE_METRICS_H

#include "core/step/command.h"
#include "metrics/metrics.h"

/* How a wait for locks ended. */
enum metric_wait_end { WAIT_GRANTED, WAIT_TIMED_OUT, WAIT_DEADLOCKED, WAIT_CANCELLED, METRIC_WAIT_END_COUNT };

/* How a session ended, as enum session_end. */
enum metric_session_end { SESSION_CLOSED, SESSION_EXPIRED, SESSION_FORCED, SESSION_DETACHED, METRIC_SESSION_END_COUNT };

/* How a transaction ended: rolled back when its owner said so, aborted by the server. */
enum metric_txn_end { TXN_COMMITTED, TXN_ROLLED_BACK, TXN_ABORTED, METRIC_TXN_END_COUNT };

enum { METRIC_TXN_MODE_COUNT = 2 };

struct core_metrics {
    /* Work of steps (work.h), by the command of each; what fell due before that is part of the step. */
    metric_value step_work_max[COMMAND_TYPE_COUNT]; /* the most that one took */
    metric_value steps_over;                        /* that took more than CORE_STEP_WORK */
    metric_value
        steps_undivided; /* the same without the largest thing in each that cannot be cut: 0, or the core has a fault */
    metric_value undivided_command; /* of the last such step: its command, ... */
    metric_value undivided_work;    /* ... and its work without that thing */

    /* As they are; set at the end of each step. Locks that go with others are not counted. */
    metric_value held[LOCK_MODE_COUNT];
    metric_value requested[LOCK_MODE_COUNT]; /* by requests that wait */
    metric_value waiting;                 /* such requests */
    metric_value sessions;
    metric_value transactions;
    metric_value deferred_actions; /* of ended sessions, which others' locks forbid */

    metric_value sessions_opened;
    metric_value session_ends[METRIC_SESSION_END_COUNT];
    metric_value txns_begun[METRIC_TXN_MODE_COUNT]; /* by enum txn_mode */
    metric_value txns_ended[METRIC_TXN_MODE_COUNT][METRIC_TXN_END_COUNT];
    metric_value deadlocks;                      /* circles that ended a request */
    metric_value deadlocks_requeued;             /* that sent a write to the end of the queue */
    struct metric_histogram waits[METRIC_WAIT_END_COUNT]; /* how long, in microseconds by the clock of commands */
};

#endif
