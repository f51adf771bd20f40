/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweep of stale posting lists of an index. README.md, "Stale posting lists".
 *
 * A bulk that replaces documents leaves the posting lists (mapping/entry.h) of the previous
 * versions in place. Bulks often replace documents that bulks have written, so a batch rarely keeps
 * documents for long, and its posting lists become useless. An index is swept when the number of
 * documents written to posting lists exceeds its number of documents by more than
 * core_limits.stale_documents_min:
 *
 * 1. Scan its documents and collect their batches.
 * 2. Scan its entries and propose to remove the posting lists of other batches, unless the batch is
 *    at or above the horizon.
 *
 * At most SWEEP_BATCHES_MAX batches are remembered. If the documents have more, as after single writes of large
 * transactions, the horizon is lowered, and the next sweep of the index begins where this one ended. So its stale
 * posting lists are removed by several sweeps, each of which later writes pay for.
 *
 * Each maintenance run continues the scans. The horizon is the timestamp at which the sweep began,
 * or that of the oldest update transaction open at that time. No open transaction can commit a
 * batch below the horizon. A document that changes during the sweep keeps its batch or gets one
 * above the horizon. So a batch below it that no document had when it was scanned remains unused.
 *
 * A sweep's state is in memory and belongs to the host: after a restart counting begins anew. So
 * the sweep changes no data. It proposes keys in COMMAND_MAINTAIN, which all hosts apply at the
 * same position of the log. A proposal stays valid, since an unused batch below the horizon remains
 * unused.
 */
#ifndef TL_CORE_SWEEP_H
#define TL_CORE_SWEEP_H

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/types.h"
#include "core/unit/work.h"

struct core;
struct command;

struct sweep {
    uint32_t index;      /* number of the index; 0: no sweep is running */
    tl_ts low;           /* posting lists of batches below it are left to another sweep */
    tl_ts horizon;       /* posting lists of batches at or above it are kept */
    bool narrowed;       /* the horizon was lowered */
    bool batches_known;  /* all documents have been scanned */
    struct map batches;  /* set of the documents' batches from `low` to `horizon`, as bytes of uint64_t */
    uint64_t last_batch; /* the last batch added, to skip repeated lookups */
    struct buf position; /* key at which the current scan continues; empty: at its beginning */
};

void sweep_init(struct sweep *sweep);
void sweep_deinit(struct sweep *sweep);

/*
 * Continues the running sweep, or begins one that is due, between steps. Stops after `keys_max`
 * stale keys, or after scanning SWEEP_SCANS_PER_KEY times as many. Sets maintain.stale of the
 * command, and maintain.scanned to the share of keys_max used.
 * Returns: 0; fatal codes.
 */
#define SWEEP_SCANS_PER_KEY 4
/* Limit of batches remembered, some 15 MB */
#define SWEEP_BATCHES_MAX 200000
/* Bytes of records that are passed, not parsed, for a unit of core/unit/work.h: a gigabyte a second */
#define SWEEP_BYTES_PER_WORK 100
/* Bytes of records that take as long as one scan */
#define SWEEP_BYTES_PER_SCAN (SWEEP_BYTES_PER_WORK * WORK_SCAN)
int sweep__continue(struct core *core, size_t keys_max, struct command *command) TL_MUST_USE;

#endif
