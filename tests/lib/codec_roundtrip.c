/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_roundtrip.h"

#include "base/check.h"
#include "core/command/command_codec.h"

bool codec_roundtrip_off;

/* For one in so many commands, all truncations are tested. */
enum { CUT_EVERY = 64 };

static void check_cuts(struct slice bytes)
{
    struct command *cut;

    for (size_t len = 0; len < bytes.len; len++)
        INSIST(command_decode(slice_make(bytes.data, len), &cut) == TL_ERR_CORRUPT);
}

struct command *codec_roundtrip(struct command *command)
{
    static unsigned count;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED);
    struct command *decoded;

    if (codec_roundtrip_off || command_opcode(command->type) == 0)
        return command;
    command_encode(command, &bytes);
    INSIST(command_decode(buf_as_slice(&bytes), &decoded) == 0);
    command_encode(decoded, &again);
    INSIST(slice_equal(buf_as_slice(&bytes), buf_as_slice(&again)));
    if (count++ % CUT_EVERY == 0)
        check_cuts(buf_as_slice(&bytes));
    decoded->ts = command->ts;
    decoded->clock = command->clock;
    decoded->memory_full = command->memory_full;
    decoded->context = command->context;
    decoded->on_done = command->on_done;
    command_free(command);
    buf_deinit(&bytes);
    buf_deinit(&again);
    return decoded;
}
