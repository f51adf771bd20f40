/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the core; see limits.h. */
#include "core/command/limits.h"

#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "core/command/codec.h"

#define COUNT_MAX ((size_t)1 << 40) /* limit of each limit, so that sums cannot overflow */

enum { NUMBERS = 13, DEPTH_MAX = 1000 };

struct core_limits core_limits_default(void)
{
    struct core_limits limits = {
        .sessions_max = 10000,
        .locks_per_session_max = 100000,
        .ephemeral_max = 10000,
        .ephemeral_batch = 1000,
        .purge_batch = 100,
        .waiters_max = 100000,
        .transactions_max = 10000,
        .transaction_bytes_max = (size_t)64 << 20,
        .transaction_held_max = (size_t)256 << 20,
        .transaction_changes_max = 100000,
        .document_bytes_max = (size_t)100 << 20,
        .script = SCRIPT_LIMITS_DEFAULT,
        .stale_documents_min = 10000,
    };
    ENSURE(core_limits_sound(&limits));
    return limits;
}

/* Lists the limits of type size_t in the order of their byte form. */
static void list_sizes(struct core_limits *limits, size_t *sizes[NUMBERS])
{
    size_t *const all[NUMBERS] = {
        &limits->sessions_max,
        &limits->locks_per_session_max,
        &limits->ephemeral_max,
        &limits->ephemeral_batch,
        &limits->purge_batch,
        &limits->waiters_max,
        &limits->transactions_max,
        &limits->transaction_bytes_max,
        &limits->transaction_held_max,
        &limits->transaction_changes_max,
        &limits->document_bytes_max,
        &limits->stale_documents_min,
        &limits->script.memory_bytes_max,
    };
    for (size_t i = 0; i < NUMBERS; i++)
        sizes[i] = all[i];
}

bool core_limits_sound(const struct core_limits *limits)
{
    struct core_limits copy = *limits;
    size_t *sizes[NUMBERS];

    list_sizes(&copy, sizes);
    for (size_t i = 0; i < NUMBERS; i++)
        if (*sizes[i] == 0 || *sizes[i] > COUNT_MAX)
            return false;
    return limits->script.steps_max > 0 && limits->script.steps_max <= SCRIPT_WRITER_STEPS_MAX &&
           limits->script.depth_max > 0 && limits->script.depth_max <= DEPTH_MAX;
}

/* In the order of list_sizes(). */
static const char *const size_names[NUMBERS] = {
    "max-sessions",
    "locks of a session",
    "ephemeral documents of a session",
    "documents removed with a session",
    "documents removed in a step",
    "max-waiters",
    "max-transactions",
    "transaction-bytes",
    "transaction-held",
    "transaction-changes",
    "max-document-bytes",
    "stale documents",
    "script-memory",
};

const char *core_limits_differ(const struct core_limits *a, const struct core_limits *b)
{
    struct core_limits of_a = *a, of_b = *b;
    size_t *sizes_a[NUMBERS], *sizes_b[NUMBERS];

    list_sizes(&of_a, sizes_a);
    list_sizes(&of_b, sizes_b);
    for (size_t i = 0; i < NUMBERS; i++)
        if (*sizes_a[i] != *sizes_b[i])
            return size_names[i];
    if (a->script.steps_max != b->script.steps_max)
        return "script-steps";
    return a->script.depth_max != b->script.depth_max ? "script-depth" : NULL;
}

uint64_t core_limits_value(const struct core_limits *limits, const char *name)
{
    struct core_limits copy = *limits;
    size_t *sizes[NUMBERS];

    list_sizes(&copy, sizes);
    for (size_t i = 0; i < NUMBERS; i++)
        if (strcmp(name, size_names[i]) == 0)
            return *sizes[i];
    bool steps = strcmp(name, "script-steps") == 0;
    REQUIRE(steps || strcmp(name, "script-depth") == 0);
    return steps ? limits->script.steps_max : limits->script.depth_max;
}

bool core_limits_equal(const struct core_limits *a, const struct core_limits *b)
{
    return core_limits_differ(a, b) == NULL;
}

void codec_core_limits(struct codec *codec, struct core_limits *limits)
{
    size_t *sizes[NUMBERS];
    uint64_t depth = limits->script.depth_max;

    list_sizes(limits, sizes);
    for (size_t i = 0; i < NUMBERS; i++)
        codec_size(codec, sizes[i]);
    codec_number(codec, &limits->script.steps_max);
    codec_number(codec, &depth);
    codec_require(codec, depth <= UINT32_MAX);
    limits->script.depth_max = codec->bad ? 0 : (unsigned)depth;
}
