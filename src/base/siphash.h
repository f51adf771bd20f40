/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3 (Aumasson and Bernstein, 2012): a keyed hash. Without the key, colliding inputs
 * cannot be chosen. For hash tables whose keys come from clients.
 *
 * The process draws its key once, before anything is hashed. Nothing visible may depend on it: no
 * order, no result, no stored byte. For hashes that are stored, shown, or compared between
 * processes there is slice_hash().
 */
#ifndef TL_BASE_SIPHASH_H
#define TL_BASE_SIPHASH_H

#include "base/slice.h"

struct siphash_key {
    uint64_t k0, k1;
};

/* Returns: the hash of the bytes with a key. */
uint64_t siphash(const struct siphash_key *key, struct slice bytes);

/*
 * Sets the key of the process; the initial one is a constant.
 * Assumes: all hash tables are empty, and the process has a single thread.
 */
void siphash_set_key(const struct siphash_key *key);

/* Returns: the hash of the bytes with the key of the process. */
uint64_t siphash_keyed(struct slice bytes);

#endif
