/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests with a journal: a command log in memory, from which a core is recovered as at a
 * server's start.
 */
#ifndef TL_TESTS_LIB_CMDLOG_FIXTURE_H
#define TL_TESTS_LIB_CMDLOG_FIXTURE_H

#include <stdio.h>

#include "base/check.h"
#include "core/step/core.h"
#include "journal/journal.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_memory.h"

struct cmdlog_fixture {
    struct cmdlog_medium *medium; /* survives restarts; NULL: created by the first start */
    struct cmdlog *log;           /* NULL: not started */
};

/*
 * Starts a server's core: opens the log, recovers the core from the store and the log, and sets the
 * log's fields of `options`.
 * Owns: the caller; core_close(), then cmdlog_fixture_end().
 */
static inline struct core *cmdlog_fixture_begin(struct cmdlog_fixture *fixture, struct store *store,
                                                struct journal_options *options)
{
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;

    if (fixture->medium == NULL)
        fixture->medium = cmdlog_medium_new();
    fixture->log = cmdlog_memory_open(fixture->medium);
    if (recover_core(store, fixture->log, &limits, NULL, &core, &recovered, &reason) != 0)
        fprintf(stderr, "recovery: %s\n", reason);
    INSIST(reason == NULL && recovered.differs == 0);
    options->log = fixture->log;
    options->cmdlog_position = recovered.position;
    options->log_work_us = recovered.work_us;
    return core;
}

/* Closes the log. Requires: the journal is closed. */
static inline void cmdlog_fixture_end(struct cmdlog_fixture *fixture)
{
    cmdlog_close(fixture->log);
    fixture->log = NULL;
}

/* Frees the medium, after the last cmdlog_fixture_end(). */
static inline void cmdlog_fixture_free(struct cmdlog_fixture *fixture)
{
    cmdlog_medium_free(fixture->medium);
    *fixture = (struct cmdlog_fixture){0};
}

#endif
