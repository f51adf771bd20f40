/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open data directory: the store in DATA/rocks, the command log in DATA/log, and the core
 * recovered from both (journal/README.md, "The command log").
 */
#ifndef TL_CLI_DURABLE_H
#define TL_CLI_DURABLE_H

#include "cli/archive.h"
#include "journal/poison.h"
#include "journal/recover.h"
#include "store/store.h"

struct durable {
    struct store *store;
    struct cmdlog *log; /* NULL: a directory of an older format, opened read-only */
    struct core *core;
    struct recovered recovered;
    struct at_work *at_work; /* NULL: opened read-only */
    struct archive *archive; /* NULL: no archive */
    bool machine_lost;       /* the machine crashed or restarted since the log was written, without an orderly stop */
    const struct recover_observer *observer; /* in: of the replay; NULL: none */
    struct poison_choice choice; /* in: how to treat an entry that ends the process */
    bool is_member;              /* in: a cluster host's directory, opened read-only; its log is in etcd */
};

/*
 * Opens a data directory and creates missing parts. `archive` (may be NULL) receives the segments
 * that the log no longer needs. Opened read-only (options->read_only), the core is as of the
 * store's checkpoint.
 * Requires: *ret is zeroed, except for its inputs.
 * Returns: 0; a fatal code, with the reason in *ret_reason (mem_free; may be NULL).
 * Owns: the caller owns *ret in both cases, until durable_close().
 */
int durable_open(const struct store_options *options, const struct core_limits *limits,
                 const struct archive_options *archive, struct durable *ret, char **ret_reason) TL_MUST_USE;
enum { DURABLE_BOOT_BYTES_MAX = 64 };
/* Returns: the id of this boot of the machine, in `bytes`; empty if it cannot be read. */
struct slice durable_boot(char bytes[DURABLE_BOOT_BYTES_MAX]);
/*
 * Records the current boot of the machine. Called when the losses of a machine crash have been
 * handled durably: when the journal is open. A start that is killed before that finds machine_lost
 * again.
 */
void durable_settle(struct slice directory);
/* Closes all parts. Requests that wait in the core end: of a checkpoint or a log, which have no clients. */
void durable_close(struct durable *durable);

#endif
