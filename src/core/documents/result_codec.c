/* SPDX-License-Identifier: Apache-2.0 */
/* The byte form of results; see result_codec.h. */
#include "core/documents/result_codec.h"

#include "base/check.h"

/* A problem is stored by its symbol, which does not change when rows are added or removed. */
static const char *const symbols[PROBLEM_COUNT] = {
#define X(symbol, status, name) [PROBLEM_##symbol] = #symbol,
#include "base/errors.def"
#undef X
};

static enum problem_type symbol_type(struct slice symbol)
{
    for (int i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++)
        if (symbols[i] != NULL && slice_is(symbol, symbols[i]))
            return (enum problem_type)i;
    return PROBLEM_NONE;
}

enum { CAUSES_MAX = 16 };

static void codec_problem(struct codec *codec, struct problem *problem, int causes)
{
    REQUIRE(codec_reads(codec) || problem->type == PROBLEM_NONE || symbols[problem->type] != NULL);
    struct slice symbol = problem->type == PROBLEM_NONE ? SLICE_NONE : slice_from(symbols[problem->type]);
    int64_t status = problem->status;
    bool caused = problem->caused_by != NULL;

    codec_slice(codec, &symbol);
    if (codec_reads(codec)) {
        problem->type = symbol_type(symbol);
        codec_require(codec, (problem->type == PROBLEM_NONE) == (symbol.data == NULL));
    }
    if (symbol.data == NULL)
        return;
    codec_signed(codec, &status);
    codec_require(codec, status >= 0 && status < 1000);
    problem->status = (int)status;
    codec_slice(codec, &problem->name);
    codec_slice(codec, &problem->reason);
    codec_slice(codec, &problem->details);
    codec_bool(codec, &caused);
    codec_require(codec, !caused || causes < CAUSES_MAX);
    if (!caused || codec->bad)
        return;
    if (codec_reads(codec))
        problem->caused_by = arena_zalloc(codec->arena, sizeof *problem->caused_by);
    codec_problem(codec, problem->caused_by, causes + 1);
}

void result_codec__problem(struct codec *codec, struct problem *problem)
{
    codec_problem(codec, problem, 0);
}

void result_codec__result(struct codec *codec, struct write_result *result)
{
    uint64_t shards = result->shard_count;

    REQUIRE(codec_reads(codec) || codec->version >= 5); /* older forms lack `postponed` */
    result->outcome = (enum write_outcome)codec_enum(codec, result->outcome, WRITE_OUTCOME_COUNT);
    result->conflict = (enum conflict_kind)codec_enum(codec, result->conflict, CONFLICT_KIND_COUNT);
    codec_bool(codec, &result->script_long);
    if (codec->version >= 5)
        codec_bool(codec, &result->postponed);
    codec_slice(codec, &result->index);
    codec_slice(codec, &result->type);
    codec_slice(codec, &result->index_uuid);
    codec_number(codec, &shards);
    codec_require(codec, shards <= UINT32_MAX);
    result->shard_count = (uint32_t)shards;
    codec_signed(codec, &result->version);
    codec_signed(codec, &result->seq_no);
    codec_slice(codec, &result->source);
    codec_slice(codec, &result->routing);
    codec_problem(codec, &result->problem, 0);
}
