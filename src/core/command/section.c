/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of a checkpoint; see section.h. */
#include "core/command/section.h"

#include "base/check.h"
#include "base/crc32c.h"
#include "base/little_endian.h"

static const char magic[8] = {'t', 'i', 'd', 'e', 'c', 'o', 'r', 'e'};

/*
 * File header: magic, version. Section: kind, length (u64, little-endian), content, CRC32C (u32,
 * little-endian).
 */
enum { HEAD_BYTES = sizeof(magic) + 1, LENGTH_BYTES = 8, FRAME_BYTES = 1 + LENGTH_BYTES, CRC_BYTES = 4 };

struct sections sections_to(struct buf *out)
{
    REQUIRE(out != NULL && !out->overflow);
    struct sections sections = {.out = out, .version = SECTIONS_VERSION, .at = out->len};

    buf_append(out, magic, sizeof(magic));
    buf_byte(out, SECTIONS_VERSION);
    struct slice head = buf_from(out, sections.at);
    INSIST(head.len == HEAD_BYTES);
    sections.crc = crc32c(0, head.data, head.len);
    return sections;
}

struct sections sections_from(struct slice in, struct arena *arena)
{
    REQUIRE(arena != NULL);
    struct sections sections = {.in = in, .all = in, .arena = arena};
    struct slice head = SLICE_NONE;

    if (!slice_take(&sections.in, HEAD_BYTES, &head) || memcmp(head.data, magic, sizeof(magic)) != 0) {
        sections.bad = true;
        return sections;
    }
    sections.version = (unsigned char)head.data[sizeof(magic)];
    sections.newer = sections.version > SECTIONS_VERSION;
    sections.bad = sections.newer || sections.version == 0;
    sections.crc = crc32c(0, head.data, HEAD_BYTES);
    return sections;
}

/* Takes the content of the next section. Returns: false if kind, length or checksum is invalid. */
static bool take_section(struct sections *sections, enum section_kind kind, struct slice *ret_bytes)
{
    struct slice frame, crc;

    sections->kind = kind;
    sections->at = sections->all.len - sections->in.len;
    if (!slice_take(&sections->in, FRAME_BYTES, &frame) || frame.data[0] != (char)kind)
        return false;
    uint64_t length = little_endian_get(frame.data + 1, LENGTH_BYTES);
    if (length > sections->in.len || !slice_take(&sections->in, (size_t)length, ret_bytes) ||
        !slice_take(&sections->in, CRC_BYTES, &crc))
        return false;
    sections->crc = crc32c(sections->crc, frame.data, FRAME_BYTES + (size_t)length);
    return little_endian_get(crc.data, CRC_BYTES) == sections->crc;
}

struct codec section_begin(struct sections *sections, enum section_kind kind)
{
    REQUIRE(kind < SECTION_KIND_COUNT);
    struct slice bytes = SLICE_NONE;
    struct codec codec;

    if (!sections_are_read(sections)) {
        char frame[FRAME_BYTES] = {(char)kind};
        sections->kind = kind;
        sections->at = sections->out->len;
        buf_append(sections->out, frame, FRAME_BYTES);
        return codec_to(sections->out, sections->version);
    }
    if (!sections->bad)
        sections->bad = !take_section(sections, kind, &bytes);
    codec = codec_from(sections->bad ? SLICE_NONE : bytes, sections->arena);
    codec.version = sections->version;
    codec.bad = sections->bad;
    return codec;
}

void section_end(struct sections *sections, struct codec *codec)
{
    REQUIRE(codec->out == sections->out);
    if (sections_are_read(sections)) {
        sections_require(sections, codec_done(codec));
        return;
    }
    struct buf *out = sections->out;
    char crc[CRC_BYTES];
    char length[LENGTH_BYTES];

    INSIST(!out->overflow);
    INSIST(out->len >= sections->at + FRAME_BYTES);
    little_endian_put(length, LENGTH_BYTES, out->len - sections->at - FRAME_BYTES);
    buf_overwrite(out, sections->at + 1, length, LENGTH_BYTES);
    struct slice section = buf_from(out, sections->at);
    sections->crc = crc32c(sections->crc, section.data, section.len);
    little_endian_put(crc, CRC_BYTES, sections->crc);
    buf_append(out, crc, CRC_BYTES);
}

void sections_require(struct sections *sections, bool so)
{
    if (so || sections->bad)
        return;
    REQUIRE(sections_are_read(sections));
    sections->bad = sections->unsound = true;
}

void sections_finish(struct sections *sections)
{
    struct codec codec = section_begin(sections, SECTION_END);

    section_end(sections, &codec);
    sections_require(sections, !sections_are_read(sections) || sections->in.len == 0);
}

void sections_fail_at(struct sections *sections, size_t offset)
{
    struct slice left = slice_from_offset(sections->all, HEAD_BYTES), frame;

    REQUIRE(sections_are_read(sections) && !sections->bad);
    sections->bad = sections->unsound = true;
    while (slice_take(&left, FRAME_BYTES, &frame)) {
        sections->kind = (enum section_kind)frame.data[0];
        sections->at = (size_t)(frame.data - sections->all.data);
        left = slice_from_offset(left, (size_t)little_endian_get(frame.data + 1, LENGTH_BYTES) + CRC_BYTES);
        if (offset < sections->all.len - left.len)
            return;
    }
}

void sections_describe_error(const struct sections *sections, struct buf *buf)
{
    REQUIRE(sections->bad && sections->kind < SECTION_KIND_COUNT);
    static const char *const names[SECTION_KIND_COUNT] = {
        [SECTION_END] = "end",
        [SECTION_NUMBERS] = "numbers",
        [SECTION_OWNERS] = "owners",
        [SECTION_SESSION] = "sessions",
        [SECTION_TRANSACTION] = "transactions",
        [SECTION_DEFERRED] = "deferred actions",
        [SECTION_WAIT] = "waiting requests",
        [SECTION_LOCKS] = "locks",
        [SECTION_LOCK_EVENTS] = "lock events",
        [SECTION_TERMINATING] = "ends of sessions",
        [SECTION_HOSTS] = "hosts",
        [SECTION_PATHS] = "known paths",
    };

    if (sections->newer)
        buf_printf(buf, "it has version %u, and up to %d are known here", sections->version, SECTIONS_VERSION);
    else if (sections->at == 0)
        buf_lit(buf, "its head, at byte 0, is damaged");
    else
        buf_printf(buf, "its part [%s], at byte %zu, %s", names[sections->kind], sections->at,
                   sections->unsound ? "has an impossible value" : "is damaged");
}
