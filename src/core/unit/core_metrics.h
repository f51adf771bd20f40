/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the core, for operators (src/metrics/README.md). They are not part of the state and
 * not saved; no decision depends on them. They start at 0 with the process. The core writes them;
 * any thread may read them.
 */
#ifndef TL_CORE_CORE_METRICS_H
#define TL_CORE_CORE_METRICS_H

#include "core/command/command.h"
#include "metrics/metrics.h"

/* Ends of a wait for locks. */
enum metric_wait_end { WAIT_GRANTED, WAIT_TIMED_OUT, WAIT_DEADLOCKED, WAIT_CANCELLED, METRIC_WAIT_END_COUNT };

/* Ends of a session, in the order of enum session_end. */
enum metric_session_end { SESSION_CLOSED, SESSION_EXPIRED, SESSION_FORCED, SESSION_DETACHED, METRIC_SESSION_END_COUNT };

/* Ends of a transaction: rolled back by its owner, aborted by the server. */
enum metric_txn_end { TXN_COMMITTED, TXN_ROLLED_BACK, TXN_ABORTED, METRIC_TXN_END_COUNT };

struct core_metrics {
    /*
     * Work of steps (work.h), by the type of the command; includes work that was due before the
     * command.
     */
    metric_value step_work_max[COMMAND_TYPE_COUNT]; /* of one step */
    metric_value steps_over;                        /* steps above CORE_STEP_WORK */
    /* Steps above it even without their largest indivisible operation; 0 but for commands of earlier versions */
    metric_value steps_undivided;
    metric_value undivided_command; /* command type of the last such step */
    metric_value undivided_version; /* version of that command */
    /* Work of that step without its largest indivisible operation */
    metric_value undivided_work;

    /* Current values, set at the end of each step. Auxiliary locks are not counted. */
    metric_value held[LOCK_MODE_COUNT];
    metric_value requested[LOCK_MODE_COUNT]; /* by waiting requests */
    metric_value waiting;                    /* waiting requests */
    metric_value sessions;
    metric_value transactions;
    metric_value deferred_actions; /* of ended sessions, deferred because of other owners' locks */

    metric_value pieces_written; /* of overlays and holds, for checkpoints (README.md, "Pieces") */
    metric_value piece_bytes;

    metric_value sessions_opened;
    metric_value session_ends[METRIC_SESSION_END_COUNT];
    metric_value txns_begun;
    metric_value txns_ended[METRIC_TXN_END_COUNT];
    metric_value deadlocks;          /* cycles resolved by ending a request */
    metric_value deadlocks_requeued; /* cycles resolved by requeueing a write */
    /* Duration in microseconds of the command clock */
    struct metric_histogram waits[METRIC_WAIT_END_COUNT];
};

#endif
