/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pseudo-random numbers from a seed (xoshiro256++ seeded by splitmix64, Blackman and Vigna).
 *
 * For tests, simulations and ids that need not be secret. There is no global state, so equal seeds
 * give equal runs.
 */
#ifndef TL_BASE_RAND_H
#define TL_BASE_RAND_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);

/* Returns: a uniformly distributed number below `bound`. Requires: bound != 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

#endif
