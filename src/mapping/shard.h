/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which shard Elasticsearch would have put a document on: replies of its time name it, and clients
 * compare. There are no shards here.
 */
#ifndef TL_MAPPING_SHARD_H
#define TL_MAPPING_SHARD_H

#include "base/slice.h"

/*
 * Returns: floorMod(murmur3_x86_32(seed 0, UTF-16LE of the routing or id), shards), as from 2.0 on.
 * Requires: shards > 0.
 */
uint32_t shard_of(struct slice routing, uint32_t shards);

/* Returns: the shard by the hash of 1.x (Bernstein's, over UTF-16 units). */
uint32_t shard_of_djb(struct slice routing, uint32_t shards);

/* MurmurHash3 x86 32 (Appleby). */
uint32_t shard_murmur3(const void *bytes, size_t len, uint32_t seed);

#endif
