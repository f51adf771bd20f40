/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open data directory: the store in DATA/rocks, the log of commands in DATA/log, and the core made of both
 * (journal/README.md, "The command log").
 */
#ifndef TL_CLI_DURABLE_H
#define TL_CLI_DURABLE_H

#include "cli/archive.h"
#include "journal/poison.h"
#include "journal/recover.h"
#include "store/store.h"

struct durable {
    struct store *store;
    struct cmdlog *log; /* NULL: of a directory of an older format, opened to read only */
    struct core *core;
    struct recovered recovered;
    struct at_work *at_work; /* NULL: to read only */
    struct archive *archive; /* NULL: no archive */
    bool machine_lost;       /* the machine has gone down since, and the log did not end in order */
    struct poison_choice choice; /* in: how to treat an entry that ends the process */
    bool is_member;              /* in: a host's of a cluster, to read only: its log is not in the directory */
};

/*
 * Opens all of it, and makes missing parts; `archive` (may be NULL) gets the segments that the log no longer needs. To read only (options->read_only), the core is as of the store's checkpoint.
 * Requires: *ret is zeroed, but for its inputs. Returns: 0, or a fatal code, and why in *ret_reason (mem_free; may be NULL). Owns: the caller; durable_close() in
 * both cases.
 */
int durable_open(const struct store_options *options, const struct core_limits *limits,
                 const struct archive_options *archive, struct durable *ret, char **ret_reason) TL_MUST_USE;
enum { DURABLE_BOOT_BYTES_MAX = 64 };
/* Returns: what identifies this boot of the machine, in `bytes`; empty if it cannot be read. */
struct slice durable_boot(char bytes[DURABLE_BOOT_BYTES_MAX]);
/*
 * Records that the machine has not gone down since now. Called when its losses have been handled, durably: when the journal is open. A start that is
 * killed before that finds the machine lost again.
 */
void durable_settle(struct slice directory);
/* Requires: no request waits in the core. */
void durable_close(struct durable *durable);

#endif
