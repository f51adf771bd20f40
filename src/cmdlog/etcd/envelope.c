/* SPDX-License-Identifier: Apache-2.0 */
/* The header of an entry in etcd; see envelope.h. */
#include "cmdlog/etcd/envelope.h"

#include "base/check.h"
#include "base/crc32c.h"
#include "base/little_endian.h"

enum { FORM = 1 };

size_t envelope_cut(const struct slice *entry, size_t count, uint32_t part, size_t part_bytes, struct slice *ret_slices,
                    size_t *ret_len)
{
    REQUIRE(part > 0 && part_bytes > 0);
    size_t at = (part - 1) * part_bytes, left = part_bytes, made = 0;
    for (size_t i = 0; i < count && left > 0; i++) {
        if (at >= entry[i].len) {
            at -= entry[i].len;
            continue;
        }
        size_t here = entry[i].len - at < left ? entry[i].len - at : left;
        ret_slices[made++] = slice_make(entry[i].data + at, here);
        left -= here;
        at = 0;
    }
    *ret_len = part_bytes - left;
    ENSURE(*ret_len > 0);
    return made;
}

void envelope_write(const struct envelope *envelope, struct slice host, const struct slice *slices, size_t count,
                    char ret_bytes[ENVELOPE_BYTES])
{
    REQUIRE(envelope->life > 0 && envelope->part > 0 && envelope->part <= envelope->parts); /* as a reader demands */
    REQUIRE(envelope->parts <= ENVELOPE_PARTS_MAX && envelope->number >= envelope->part);
    memset(ret_bytes, 0, ENVELOPE_BYTES);
    ret_bytes[4] = FORM;
    little_endian_put(ret_bytes + 8, 8, envelope->life);
    little_endian_put(ret_bytes + 16, 8, envelope->number);
    little_endian_put(ret_bytes + 24, 8, envelope->submitted);
    little_endian_put(ret_bytes + 32, 4, envelope->part);
    little_endian_put(ret_bytes + 36, 4, envelope->parts);
    uint32_t crc = crc32c(crc32c(0, host.data, host.len), ret_bytes + 4, ENVELOPE_BYTES - 4);
    for (size_t i = 0; i < count; i++)
        crc = crc32c(crc, slices[i].data, slices[i].len);
    little_endian_put(ret_bytes, 4, crc);
}

int envelope_read(struct slice value, struct slice host, struct envelope *ret_envelope, struct slice *ret_bytes)
{
    if (value.len <= ENVELOPE_BYTES)
        return tl_trace(TL_ERR_CORRUPT);
    if (crc32c(crc32c(0, host.data, host.len), value.data + 4, value.len - 4) !=
        (uint32_t)little_endian_get(value.data, 4))
        return tl_trace(TL_ERR_CORRUPT);
    if (little_endian_get(value.data + 4, 4) != FORM)
        return tl_trace(TL_ERR_VERSION);
    struct envelope envelope = {
        .life = little_endian_get(value.data + 8, 8),
        .number = little_endian_get(value.data + 16, 8),
        .submitted = little_endian_get(value.data + 24, 8),
        .part = (uint32_t)little_endian_get(value.data + 32, 4),
        .parts = (uint32_t)little_endian_get(value.data + 36, 4),
    };
    if (envelope.life == 0 || envelope.number == 0 || envelope.part == 0 || envelope.part > envelope.parts ||
        envelope.parts > ENVELOPE_PARTS_MAX || envelope.number < envelope.part)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_envelope = envelope;
    *ret_bytes = slice_from_offset(value, ENVELOPE_BYTES);
    return 0;
}
