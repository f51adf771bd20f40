/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands in flight may add to the catalog, in bytes.
 *
 * The memory that a command takes is used when the command has been applied. Until then others are asked about
 * that see none of it: a thousand requests sent at once, each of which creates an index, would all be accepted.
 * So each command has a *promise*, the bytes that it may add, from its check until it is done.
 *
 * Invariants
 *  1. The commands of one index together count as no more than the index may get: a mapping has a limit of fields.
 *  2. A command is refused only if promises do not fit together, or the memory is used: one alone, or with others of
 *     the same indices, may be larger than the memory left. The additions of one step are bounded (core/README.md).
 */
#ifndef TL_API_REQUEST_GROWTH_TABLE_H
#define TL_API_REQUEST_GROWTH_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/slice.h"

struct growth_table;
struct growth_entry;

/* What a command may add. */
struct growth {
    struct growth_share {
        struct slice index; /* its name */
        size_t bytes;
        size_t most; /* of all commands of the index together */
    } * shares;      /* of different indices */
    size_t share_count;
    size_t other_bytes; /* without an index, such as templates */
};

/* Returns: all of it. */
size_t growth_bytes(const struct growth *growth);

/* All zero: none. Of one command at a time. */
struct growth_promise {
    struct growth_table *table;
    struct growth_held {
        struct growth_entry *entry;
        size_t bytes;
    } first, *more; /* `count` of them; mem_free */
    size_t count;
    size_t other_bytes;
};

/* Owns: the caller; growth_table_free(), when all promises have ended. `table` may be NULL. */
struct growth_table *growth_table_new(void);
void growth_table_free(struct growth_table *table);

/* Returns: the bytes of all promises. */
size_t growth_table_bytes(struct growth_table *table);

/* When there is room for a promise. */
struct growth_terms {
    const struct budget *budget;
    enum budget_level level;
    unsigned room; /* how often it must have room for all promises: more than once where they are a coarse measure */
    size_t alone;  /* bytes that must be left for a command alone (invariant 2); SIZE_MAX: that does not suffice */
};

/*
 * Makes a promise if the memory that is used leaves room for it and all others. One that adds nothing is always made.
 * May be called from any thread. Returns: false: nothing was promised.
 * Requires: terms->room > 0, and *ret_promise is all zero. Owns: the caller, *ret_promise; growth_promise_end().
 */
bool growth_table_promise(struct growth_table *table, const struct growth_terms *terms, const struct growth *growth,
                          struct growth_promise *ret_promise) TL_MUST_USE;
/* Ends a promise, if there is one. */
void growth_promise_end(struct growth_promise *promise);

#endif
