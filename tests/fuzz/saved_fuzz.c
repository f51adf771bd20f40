/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The saved state of a core: the input is sections, each a byte for its kind, its length in two bytes, low one first,
 * and its bytes. They get valid checksums, so that the decoders are tested. A loaded state can be saved, and that is
 * loaded and saved to the same bytes; all requests that wait in it can be ended.
 */
#include "fuzz.h"

#include "base/crc32c.h"
#include "core/step/core.h"
#include "core/step/save.h"

static void put_number(struct buf *buf, size_t len, uint64_t number)
{
    for (size_t i = 0; i < len; i++)
        buf_byte(buf, (char)(number >> 8 * i));
}

/* Frames the sections of an input. */
static void frame(struct slice input, struct buf *saved)
{
    struct slice head, bytes;

    buf_lit(saved, "tidecore\x01");
    uint32_t crc = crc32c(0, saved->data, saved->len);
    while (slice_take(&input, 3, &head)) {
        size_t len = (unsigned char)head.data[1] | (size_t)(unsigned char)head.data[2] << 8, at = saved->len;
        if (!slice_take(&input, len < input.len ? len : input.len, &bytes))
            break;
        buf_byte(saved, head.data[0]);
        put_number(saved, 8, bytes.len);
        buf_slice(saved, bytes);
        crc = crc32c(crc, saved->data + at, saved->len - at);
        put_number(saved, 4, crc);
    }
}

static void end(struct core *core)
{
    struct effects effects;

    effects_init(&effects);
    core_stop(core, &effects);
    while (!list_empty(&effects.completed)) {
        struct command *command = list_entry(effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
    core_close(core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf saved = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    struct core_limits limits = core_limits_default();
    struct store *store = store_open_mem();
    struct core *core;

    frame(slice_make(data, size), &saved);
    int r = core_load(store, &limits, buf_as_slice(&saved), &reason, &core);
    MUST(r == 0 || (r == TL_ERR_CORRUPT && reason.len > 0));
    if (r == 0) {
        core_save(core, &again);
        end(core);
        buf_clear(&saved);
        MUST(core_load(store, &limits, buf_as_slice(&again), NULL, &core) == 0);
        core_save(core, &saved);
        MUST(slice_equal(buf_as_slice(&saved), buf_as_slice(&again)));
        end(core);
    }
    store_close(store);
    buf_deinit(&saved);
    buf_deinit(&again);
    buf_deinit(&reason);
    return 0;
}
