/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be removed for good later: tombstones, and documents and entries of deleted indices.
 *
 * Marks lie in SPACE_SYSTEM, in the order in which they fall due: 'g', timestamp (u64be), document key: a tombstone;
 * 'd', timestamp (u64be), index (u32be): a deleted index.
 */
#ifndef TL_CORE_MAINTAIN_H
#define TL_CORE_MAINTAIN_H

#include "core/documents/write.h"

/* Marks a tombstone that is being written into `sink`. */
void maintain__mark_tombstone(const struct change_sink *sink, tl_ts ts, struct slice key);
/* Marks an index that the open unit deletes. */
void maintain__mark_index(struct core *core, uint32_t index);

#endif
