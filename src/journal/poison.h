/* SPDX-License-Identifier: Apache-2.0 */
/* A log entry whose application repeatedly ended the process; README.md, "Poison entries". */
#ifndef TL_JOURNAL_POISON_H
#define TL_JOURNAL_POISON_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "cmdlog/cmdlog.h"

struct at_work;
struct cmdlog_skips;
struct store;

/* The operator's decision about an entry, by its position; 0: none. */
struct poison_choice {
    cmdlog_position skip;  /* --skip-entry: never apply it */
    cmdlog_position retry; /* --retry-entry: apply it once more */
};

/*
 * Decides about the entry in which the process ended, before any entry is replayed: it is retried,
 * it is skipped by a SKIP appended to the log, or the start is refused.
 * Returns: 0; POISON_REFUSED, with the entry and the options in *ret_reason (mem_free; may be
 *          NULL); fatal codes of log and store.
 */
enum { POISON_REFUSED = 1 };
int poison_settle(struct store *store, struct cmdlog *log, struct at_work *at_work, const struct poison_choice *choice,
                  char **ret_reason) TL_MUST_USE;

/* A host of a cluster, about to apply its log; README.md, "Poison entries in a cluster". */
struct poison_host {
    struct slice name;
    cmdlog_position checkpoint; /* of its core */
    uint64_t log_bytes;         /* up to there */
    const atomic_bool *stopping; /* ends a wait for the log when it is set; NULL: never */
    /* Called every five seconds while it waits for the log, and once with false afterwards; NULL: not called */
    void (*report_wait)(bool waits);
};

/*
 * As poison_settle(), over the log of a cluster: an entry is skipped for all hosts, if none has
 * applied it. Waits until the log can be reached.
 * Ensures: this host is a known host of the log, and applies nothing in *ret_skips.
 * Returns: as poison_settle(), with the skipped entries in *ret_skips; TL_ERR_STOPPED: `stopping` was set.
 * Owns: the caller; mem_free.
 */
int poison_settle_cluster(struct cmdlog *log, const struct poison_host *host, struct at_work *at_work,
                          const struct poison_choice *choice, struct cmdlog_skips **ret_skips,
                          char **ret_reason) TL_MUST_USE;

/*
 * Appends a description of a command for operators: "command 2 of 3: write [index] [fs/1]", at most
 * 1 KiB. `bytes`: the entry; `number` from 1, 0: the first.
 */
void poison_describe(struct slice bytes, uint32_t number, struct buf *text);

#endif
