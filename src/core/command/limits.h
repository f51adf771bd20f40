/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of everything that clients can make the core hold (README.md, invariant 9).
 *
 * Results may depend on limits, so they are logged: the command LIMITS puts them into the store. It
 * always has all of them, since another build that applies the same log may have other defaults.
 */
#ifndef TL_CORE_LIMITS_H
#define TL_CORE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "script/script.h"

struct codec;

/* Each is above 0 and below a maximum: core_limits_sound(). */
struct core_limits {
    size_t sessions_max;          /* default 10,000 */
    size_t locks_per_session_max; /* default 100,000 */
    size_t ephemeral_max;         /* ephemeral documents of one session; default 10,000 */
    /* Of these, the number removed in the step that ends the session, some 10 ms; default 1,000 */
    size_t ephemeral_batch;
    /* Documents removed by each later step, also by deferred removals; default 100 */
    size_t purge_batch;
    size_t waiters_max;           /* in all queues; default 100,000 */
    size_t transactions_max;      /* open at once; default 10,000 */
    size_t transaction_bytes_max; /* of its documents; default 64 MiB */
    /* Memory of its documents, entries and locks; default 256 MiB */
    size_t transaction_held_max;
    size_t transaction_changes_max; /* default 100,000 */
    size_t document_bytes_max;      /* default 100 MiB */
    struct script_limits script;    /* of each script run; equal on all hosts */
    /* Stale documents of an index from which a sweep is worth it (sweep.h); default 10,000 */
    size_t stale_documents_min;
};

/* Ensures: they are sound. */
struct core_limits core_limits_default(void);

/* Returns: whether the limits are valid, or equal. */
bool core_limits_sound(const struct core_limits *limits);
bool core_limits_equal(const struct core_limits *a, const struct core_limits *b);
/* Returns: the name of the first limit that differs; NULL: none. */
const char *core_limits_differ(const struct core_limits *a, const struct core_limits *b);

/* Returns: a limit by its name. Requires: core_limits_differ() may return the name. */
uint64_t core_limits_value(const struct core_limits *limits, const char *name);

/* Codes the limits as numbers in a fixed order, in commands and in the store. */
void codec_core_limits(struct codec *codec, struct core_limits *limits);

#endif
