/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of what stands on a journal: a log in memory, from which a core is recovered, as a server's start does. */
#ifndef TL_TESTS_LIB_CMDLOG_FIXTURE_H
#define TL_TESTS_LIB_CMDLOG_FIXTURE_H

#include <stdio.h>

#include "base/check.h"
#include "core/step/core.h"
#include "journal/journal.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_memory.h"

struct cmdlog_fixture {
    struct cmdlog_medium *medium; /* what stays over all lives; NULL: it is made by the first */
    struct cmdlog *log;           /* of this one */
};

/* Begins a life: the core as of the store and the log, and what the journal has to know of it in `options`. Owns: the caller; core_close(), cmdlog_fixture_end(). */
static inline struct core *cmdlog_fixture_begin(struct cmdlog_fixture *kept, struct store *store, struct journal_options *options)
{
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;

    if (kept->medium == NULL)
        kept->medium = cmdlog_medium_new();
    kept->log = cmdlog_memory_open(kept->medium);
    if (recover_core(store, kept->log, &limits, NULL, &core, &recovered, &reason) != 0)
        fprintf(stderr, "recovery: %s\n", reason);
    INSIST(reason == NULL && recovered.differs == 0);
    options->log = kept->log;
    options->cmdlog_position = recovered.position;
    options->log_work_us = recovered.work_us;
    return core;
}

/* Requires: the journal is closed. */
static inline void cmdlog_fixture_end(struct cmdlog_fixture *kept)
{
    cmdlog_close(kept->log);
    kept->log = NULL;
}

/* After the last life. */
static inline void cmdlog_fixture_free(struct cmdlog_fixture *kept)
{
    cmdlog_medium_free(kept->medium);
    *kept = (struct cmdlog_fixture){0};
}

#endif
