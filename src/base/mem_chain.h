/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are freed together later, by any thread. Where very many are released at once,
 * freeing them takes as long as all else.
 */
#ifndef TL_BASE_MEM_CHAIN_H
#define TL_BASE_MEM_CHAIN_H

#include "base/alloc.h"

struct mem_chain {
    struct mem_chain *next;
};

/* Owns: the chain has a block of mem_alloc(), at least of the size of a pointer. */
static inline void mem_chain_add(struct mem_chain **chain, void *block)
{
    struct mem_chain *link = block;
    link->next = *chain;
    *chain = link;
}

static inline void mem_chain_free(struct mem_chain *chain)
{
    while (chain != NULL) {
        struct mem_chain *next = chain->next;
        mem_free(chain);
        chain = next;
    }
}

#endif
