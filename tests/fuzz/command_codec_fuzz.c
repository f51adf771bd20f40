/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded commands, from a log or another host.
 *
 * The input is commands, each preceded by its length in two bytes, low one first. A command that decodes and has the
 * current version encodes to the same bytes, and a core executes it, whatever it is: no contents of a log end the
 * process.
 */
#include "fuzz.h"

#include "core/command/command_codec.h"
#include "core/step/core.h"

enum { COMMANDS_MAX = 50 };

struct codec_fixture {
    struct store *store;
    struct core *core;
    struct effects effects;
    tl_ts now;
};

static void open_fixture(struct codec_fixture *fixture)
{
    struct core_limits limits = core_limits_default();

    limits.script.steps_max = 10000;
    *fixture = (struct codec_fixture){.store = store_open_mem(), .now = 1000 * TL_SECOND};
    effects_init(&fixture->effects);
    MUST(core_open(fixture->store, &limits, &fixture->core) == 0);
}

static void free_completed(struct codec_fixture *fixture)
{
    while (!list_empty(&fixture->effects.completed)) {
        struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
        command_free(command);
    }
}

static void close_box(struct codec_fixture *fixture)
{
    uint64_t digest;

    MUST(core_digest(fixture->core, &digest) == 0);
    core_stop(fixture->core, &fixture->effects);
    free_completed(fixture);
    core_close(fixture->core);
    store_close(fixture->store);
}

static void step(struct codec_fixture *fixture, struct command *command)
{
    fixture->now = (core_last_ts(fixture->core) > fixture->now ? core_last_ts(fixture->core) : fixture->now) + 1000;
    command->ts = fixture->now;
    command->clock = fixture->now;
    MUST(core_step(fixture->core, command, &fixture->effects) == 0);
    free_completed(fixture);
}

static void check(struct codec_fixture *fixture, struct slice bytes)
{
    struct command *command;
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    int r = command_decode(bytes, &command);

    MUST(r == 0 || r == COMMAND_CODEC_NEWER || r == TL_ERR_CORRUPT);
    if (r != 0)
        return;
    command_encode(command, &again);
    MUST(bytes.data[0] != COMMAND_CODEC_VERSION || slice_equal(bytes, buf_as_slice(&again)));
    buf_deinit(&again);
    step(fixture, command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = slice_make(data, size);
    struct codec_fixture fixture;

    open_fixture(&fixture);
    for (int i = 0; i < COMMANDS_MAX && rest.len >= 2; i++) {
        struct slice head, bytes;
        MUST(slice_take(&rest, 2, &head));
        size_t len = (unsigned char)head.data[0] | (size_t)(unsigned char)head.data[1] << 8;
        if (len > rest.len)
            len = rest.len;
        MUST(slice_take(&rest, len, &bytes));
        check(&fixture, bytes);
    }
    close_box(&fixture);
    return 0;
}
