/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3 (Aumasson and Bernstein, 2012): a hash of bytes under a key, by which whoever does not know the key cannot choose bytes
 * that collide. For tables whose keys others choose.
 *
 * The key is the process's. It is drawn once, before anything is hashed, and nothing that anybody gets to see may depend on it: no
 * order, no result, no byte in the store. Where a hash is stored, compared between processes or shown, slice_hash() is the one.
 */
#ifndef TL_BASE_SIPHASH_H
#define TL_BASE_SIPHASH_H

#include "base/slice.h"

struct siphash_key {
    uint64_t k0, k1;
};

/* Returns: the hash of bytes under a key. */
uint64_t siphash(const struct siphash_key *key, struct slice bytes);

/*
 * Sets the key of the process, which is a constant before. Requires: no table that uses it holds anything, and there is no other
 * thread yet.
 */
void siphash_set_key(const struct siphash_key *key);

/* Returns: the hash of bytes under the key of the process. */
uint64_t siphash_keyed(struct slice bytes);

#endif
