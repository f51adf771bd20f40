/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of what stands on a journal: a log in memory, from which a core is recovered, as a server's start does. */
#ifndef TL_TESTS_LIB_KEPT_LOG_H
#define TL_TESTS_LIB_KEPT_LOG_H

#include <stdio.h>

#include "base/check.h"
#include "core/step/core.h"
#include "journal/journal.h"
#include "journal/recover.h"
#include "log/log_memory.h"

struct kept_log {
    struct log_medium *medium; /* what stays over all lives; NULL: it is made by the first */
    struct log *log;           /* of this one */
};

/* Begins a life: the core as of the store and the log, and what the journal has to know of it in `options`. Owns: the caller; core_close(), kept_log_end(). */
static inline struct core *kept_log_begin(struct kept_log *kept, struct store *store, struct journal_options *options)
{
    struct core_limits limits = core_limits_default();
    struct recovered recovered;
    struct core *core;
    char *reason = NULL;

    if (kept->medium == NULL)
        kept->medium = log_medium_new();
    kept->log = log_memory_open(kept->medium);
    if (recover_core(store, kept->log, &limits, NULL, &core, &recovered, &reason) != 0)
        fprintf(stderr, "recovery: %s\n", reason);
    INSIST(reason == NULL && recovered.differs == 0);
    options->log = kept->log;
    options->log_position = recovered.position;
    options->log_work_us = recovered.work_us;
    return core;
}

/* Requires: the journal is closed. */
static inline void kept_log_end(struct kept_log *kept)
{
    log_close(kept->log);
    kept->log = NULL;
}

/* After the last life. */
static inline void kept_log_free(struct kept_log *kept)
{
    log_medium_free(kept->medium);
    *kept = (struct kept_log){0};
}

#endif
