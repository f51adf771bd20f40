/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What everything that a client can make the core hold is limited to (README.md, invariant 9).
 *
 * A result may hang on a limit, so limits are in the log like all else: the command LIMITS puts them into the store, where they stay. All of them, each time: what is
 * the default in one build need not be in another, which may apply the same log.
 */
#ifndef TL_CORE_LIMITS_H
#define TL_CORE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "script/script.h"

struct codec;

/* All are above 0, and none is so high that it is none: core_limits_sound(). */
struct core_limits {
    size_t sessions_max;          /* default 10,000 */
    size_t locks_per_session_max; /* default 100,000 */
    size_t ephemeral_max;         /* documents that live with one session; default 10,000 */
    size_t ephemeral_batch; /* how many of them its end removes in its own step; default 1,000, some ten milliseconds */
    size_t purge_batch;     /* the same of each step behind that, and of what was kept; default 100 */
    size_t waiters_max;     /* over all resources; default 100,000 */
    size_t transactions_max;        /* open at once; default 10,000 */
    size_t transaction_bytes_max;   /* of its documents; default 64 MiB */
    size_t transaction_held_max;    /* of all that it holds: documents, entries, locks; default 256 MiB */
    size_t transaction_changes_max; /* default 100,000 */
    size_t document_bytes_max;      /* default 100 MiB */
    struct script_limits script;    /* of each run; the same on all hosts */
    size_t stale_documents_min;     /* of an index, to be worth a sweep (sweep.h); default 10,000 */
};

struct core_limits core_limits_default(void);

/* Whether a core can go by them. */
bool core_limits_sound(const struct core_limits *limits);
bool core_limits_equal(const struct core_limits *a, const struct core_limits *b);
/* Returns: the name of the first that differs, or NULL. */
const char *core_limits_differ(const struct core_limits *a, const struct core_limits *b);

/* Their form as bytes, in commands and in the store: one number after the other. */
void codec_core_limits(struct codec *codec, struct core_limits *limits);

#endif
