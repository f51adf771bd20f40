/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shard number that Elasticsearch would assign to a document. Some replies contain it and
 * clients compare it; this server has no shards.
 */
#ifndef TL_MAPPING_SHARD_H
#define TL_MAPPING_SHARD_H

#include "base/slice.h"

/*
 * Returns: the shard as of 2.0 and later: floorMod(murmur3_x86_32(seed 0, UTF-16LE of the routing
 *          or id), shards).
 * Requires: shards > 0.
 */
uint32_t shard_of(struct slice routing, uint32_t shards);

/*
 * Returns: the shard as of 1.x, by Bernstein's hash over UTF-16 code units.
 * Requires: shards > 0.
 */
uint32_t shard_of_djb(struct slice routing, uint32_t shards);

/* Returns: MurmurHash3 x86 32 (Appleby) of `len` bytes. */
uint32_t shard_murmur3(const void *bytes, size_t len, uint32_t seed);

#endif
