/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeping stale chunks out of an index. README.md, "Stale chunks".
 *
 * A bulk that replaces documents leaves the chunks behind that name them (mapping/entry.h). Since bulks replace what bulks wrote,
 * a batch seldom keeps a document for long, and from then on nobody believes its chunks. So an index is swept when more
 * documents have gone into chunks than it has and core_limits.stale_documents_min besides:
 *
 * - its documents are walked, and the batches gathered that they name;
 * - its entries are walked, and the chunks of other batches removed, but for those at or above the horizon.
 *
 * Both in steps, a part with each upkeep. Below the horizon are batches that no open transaction can bring to life: it is where
 * the sweep began, or the oldest of the update transactions that were open then. A document that is changed meanwhile keeps its
 * batch or gets one above the horizon; so what no document named when it was walked is named by none later.
 *
 * All of this is in memory and a host's own: after a restart, counting begins anew. So the sweep changes nothing itself: it proposes
 * the chunks that are to go (COMMAND_MAINTAIN), which are then removed everywhere, at one place in the order of commands. What it
 * proposes holds wherever that is, since a batch below the horizon that no document names is named by none later.
 */
#ifndef TL_CORE_SWEEP_H
#define TL_CORE_SWEEP_H

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/types.h"

struct core;
struct command;

struct sweep {
    uint32_t index;      /* number of the one that is swept; 0: none is */
    tl_ts horizon;       /* batches at or above it are left alone */
    bool batches_known;  /* all documents have been walked */
    struct map batches;  /* that documents name, as they lie in memory */
    uint64_t last_batch; /* of them, the one met last */
    struct buf position; /* the walk at hand goes on at this key; empty: it begins */
};

void sweep_init(struct sweep *sweep);
void sweep_deinit(struct sweep *sweep);

/*
 * Goes on with the sweep at hand, or begins one that is due, between steps: until it has found `keys_max` keys, or looked at
 * SWEEP_SCANS_PER_KEY times as many. They go into maintain.stale of the command, and into maintain.looked how much of keys_max it has used.
 * Returns: 0; fatal codes.
 */
#define SWEEP_SCANS_PER_KEY 4
int sweep__continue(struct core *core, size_t keys_max, struct command *command) TL_MUST_USE;

#endif
