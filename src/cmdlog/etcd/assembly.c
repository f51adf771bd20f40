/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly of entries from their parts; see assembly.h. */
#include "cmdlog/etcd/assembly.h"

#include "base/alloc.h"
#include "base/check.h"
#include "cmdlog/etcd/envelope.h"

/* The state of one host's entries. */
struct assembly_stream {
    struct list link;
    struct slice name; /* allocated by mem_alloc */
    uint64_t number;   /* of its newest put; 0: none yet */
    uint64_t life;     /* of the entry being assembled, as all below */
    uint32_t parts, received;
    struct buf bytes;
};

static struct assembly_stream *stream_of(struct assembly *assembly, struct slice name)
{
    list_for_each(link, &assembly->streams)
    {
        struct assembly_stream *stream = list_entry(link, struct assembly_stream, link);
        if (slice_equal(stream->name, name))
            return stream;
    }
    struct assembly_stream *stream = mem_zalloc(sizeof *stream);
    stream->name = mem_dup_slice(name);
    stream->bytes = BUF_INIT(BUF_UNLIMITED);
    list_append(&assembly->streams, &stream->link);
    return stream;
}

static void discard_parts(struct assembly_stream *stream)
{
    stream->parts = stream->received = 0;
    buf_deinit(&stream->bytes);
    stream->bytes = BUF_INIT(BUF_UNLIMITED);
}

/* --- Parts that precede the start --------------------------------------------------------------------------------- */

static void forget_earlier(struct assembly_earlier *earlier)
{
    for (uint32_t part = 1; part < earlier->parts; part++)
        buf_deinit(&earlier->replies[part]);
    mem_free(earlier->replies);
    mem_free(earlier->bytes);
    *earlier = (struct assembly_earlier){.put = 0};
}

static void begin_earlier(struct assembly_earlier *earlier, cmdlog_position put, const struct envelope *envelope)
{
    forget_earlier(earlier);
    *earlier =
        (struct assembly_earlier){.put = put, .parts = envelope->part, .missing = envelope->part - 1, .from = put};
    earlier->replies = mem_zalloc(envelope->part * sizeof *earlier->replies);
    earlier->bytes = mem_zalloc(envelope->part * sizeof *earlier->bytes);
    for (uint32_t part = 1; part < envelope->part; part++)
        earlier->replies[part] = BUF_INIT(BUF_UNLIMITED);
}

/* Reads the last part that is missing. Returns: as assembly_read_before. */
static int read_earlier(struct assembly *assembly, struct slice host, const struct envelope *envelope)
{
    struct assembly_earlier *earlier = &assembly->earlier;
    uint32_t part = earlier->missing;
    struct assembly_put before = {.position = 0};
    struct envelope other = {0};
    REQUIRE(part > 0 && part < earlier->parts);
    int r = assembly->read_before(assembly->context, host, earlier->from, &earlier->replies[part], &before);
    if (r == 0)
        r = envelope_read(before.value, host, &other, &earlier->bytes[part]);
    if (r != 0)
        return r;
    if (other.life != envelope->life || other.part != part || other.parts != envelope->parts)
        return tl_trace(TL_ERR_CORRUPT);
    earlier->missing--;
    earlier->from = before.position;
    return 0;
}

/*
 * Reads the parts before a put that precede the assembly's start. Those read are kept if the next one cannot be read
 * now: all of them may take longer than the caller waits in one call. Returns: as assembly_read_before.
 */
static int fetch_parts(struct assembly *assembly, struct assembly_stream *stream, cmdlog_position position,
                       const struct envelope *envelope)
{
    REQUIRE(envelope->part > 1 && stream->number == 0);
    struct assembly_earlier *earlier = &assembly->earlier;
    int r = 0;
    if (earlier->put != position)
        begin_earlier(earlier, position, envelope);
    while (r == 0 && earlier->missing > 0)
        r = read_earlier(assembly, stream->name, envelope);
    if (r == CMDLOG_UNREACHABLE)
        return r;
    discard_parts(stream);
    for (uint32_t part = 1; r == 0 && part < envelope->part; part++) {
        buf_slice(&stream->bytes, earlier->bytes[part]);
        stream->received = part;
        stream->parts = envelope->parts;
        stream->life = envelope->life;
    }
    forget_earlier(earlier);
    return r;
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

static int set_damage(const char **ret_damage, const char *how)
{
    *ret_damage = how;
    return tl_trace(TL_ERR_CORRUPT);
}

/* Makes the stream have the parts before the put's. Returns: as assembly_take(). */
static int find_beginning(struct assembly *assembly, struct assembly_stream *stream, cmdlog_position position,
                          const struct envelope *envelope, const char **ret_damage)
{
    bool continues =
        stream->parts == envelope->parts && stream->life == envelope->life && stream->received + 1 == envelope->part;
    if (envelope->part == 1 || continues)
        return 0;
    if (stream->number != 0)
        return set_damage(ret_damage, "is a part whose beginning is missing");
    int r = fetch_parts(assembly, stream, position, envelope);
    return r < 0 ? set_damage(ret_damage, "is a part whose beginning is damaged") : r;
}

int assembly_take(struct assembly *assembly, const struct assembly_put *put, struct cmdlog_entry *ret_entry,
                  const char **ret_damage)
{
    struct envelope envelope;
    struct slice bytes;
    assembly_release(assembly);
    if (put->position <= assembly->position)
        return CMDLOG_END;
    struct assembly_stream *stream = stream_of(assembly, put->host);
    int r = envelope_read(put->value, stream->name, &envelope, &bytes);
    if (r < 0)
        return set_damage(ret_damage, r == TL_ERR_VERSION ? "is of a newer form" : "is damaged");
    if (envelope.number != put->number || (stream->number != 0 && put->number != stream->number + 1))
        return set_damage(ret_damage, put->number > stream->number + 1 ? "follows one that is missing" : "is repeated");
    r = find_beginning(assembly, stream, put->position, &envelope, ret_damage);
    if (r != 0)
        return r;
    stream->number = put->number;
    assembly->position = put->position;
    if (envelope.part == 1)
        discard_parts(stream);
    if (envelope.parts > 1) {
        buf_slice(&stream->bytes, bytes);
        stream->parts = envelope.parts;
        stream->received = envelope.part;
        stream->life = envelope.life;
        if (envelope.part < envelope.parts)
            return CMDLOG_END;
        bytes = buf_as_slice(&stream->bytes);
        assembly->returned = stream;
        stream->parts = stream->received = 0;
    }
    *ret_entry =
        (struct cmdlog_entry){put->position, bytes, stream->name, envelope.life, envelope.number, envelope.submitted};
    return 0;
}

void assembly_release(struct assembly *assembly)
{
    if (assembly->returned != NULL)
        discard_parts(assembly->returned);
    assembly->returned = NULL;
}

void assembly_init(struct assembly *assembly, cmdlog_position after, assembly_read_before *read_before, void *context)
{
    *assembly = (struct assembly){.position = after, .read_before = read_before, .context = context};
    list_init(&assembly->streams);
}

void assembly_deinit(struct assembly *assembly)
{
    forget_earlier(&assembly->earlier);
    while (!list_empty(&assembly->streams)) {
        struct assembly_stream *stream = list_entry(assembly->streams.next, struct assembly_stream, link);
        list_remove(&stream->link);
        mem_free((char *)(uintptr_t)stream->name.data);
        buf_deinit(&stream->bytes);
        mem_free(stream);
    }
}
