/* SPDX-License-Identifier: Apache-2.0 */
/* The command LIMITS, and limits in the store. */
#include "base/check.h"
#include "core/command/codec.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/command/limits.h"
#include "core/unit/unit.h"

static const char limits_key[] = "limits";

/* Sets the limits. Cached scripts are discarded, since they were compiled under the old ones. */
static void set_limits(struct core *core, const struct core_limits *limits)
{
    REQUIRE(core_limits_sound(limits));
    core->limits = *limits;
    script_cache_free(core->scripts);
    core->scripts = script_cache_new(CORE_SCRIPTS_CACHED, &core->limits.script);
}

int core__open_limits(struct core *core, const struct core_limits *limits)
{
    REQUIRE(core->store != NULL && !core->open);
    struct store_value value;
    struct core_limits stored = {0};
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, slice_from(limits_key), &value);

    if (r == STORE_NOT_FOUND) {
        set_limits(core, limits);
        return 0;
    }
    if (r != 0)
        return tl_trace(r);
    struct codec codec = codec_from(value.bytes, NULL);
    codec_core_limits(&codec, &stored);
    bool sound = codec_done(&codec) && core_limits_sound(&stored);
    store_value_release(&value);
    if (!sound)
        return tl_trace(TL_ERR_CORRUPT);
    set_limits(core, &stored);
    core->limits_recorded = true;
    return 0;
}

/*
 * Sets the limits. State that exceeds them stays: sessions, locks, transactions and waiting
 * requests continue, but new ones are refused until they fit.
 */
int core__do_limits(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_LIMITS);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    struct codec codec = codec_to(&value, 1);
    struct core_limits limits = command->limits.limits;

    if (!core_limits_sound(&limits)) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "the limits are invalid");
        return 0;
    }
    codec_core_limits(&codec, &limits);
    store_batch_put(core->batch, SPACE_SYSTEM, slice_from(limits_key), buf_as_slice(&value));
    buf_deinit(&value);
    set_limits(core, &limits);
    core->limits_recorded = true;
    return 0;
}
