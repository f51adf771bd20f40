/* SPDX-License-Identifier: Apache-2.0 */
/* Command groups; see command_group.h. */
#include "core/step/command_group.h"

#include "base/check.h"
#include "core/command/codec.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/owners/owners_step.h"

enum {
    LENGTH_RESERVED = 10,    /* the longest varint */
    VERSION_OWN_LOG = 1,     /* a host with its own log */
    VERSION_CLUSTER = 2,     /* a host in a cluster */
    VERSION_MEMORY_FULL = 2, /* added to one of these: the proposer's memory was full */
};

static bool is_of_cluster(unsigned version)
{
    return version == VERSION_CLUSTER || version == VERSION_CLUSTER + VERSION_MEMORY_FULL;
}

static void codec_head(struct codec *codec, struct command_group_header *head)
{
    uint64_t host = head->host;

    codec_number(codec, &host);
    codec_require(codec, host <= UINT16_MAX);
    head->host = (uint16_t)host;
    codec_number(codec, &head->ts);
    codec_require(codec, codec->bad || head->ts < TL_TS_MAX);
    codec_number(codec, &head->clock);
    head->memory_full = codec->version > VERSION_MEMORY_FULL;
    if (!is_of_cluster(codec->version))
        return;
    codec_number(codec, &head->life);
    codec_number(codec, &head->number);
    /* Else the group has the version of one without them */
    codec_require(codec, codec->bad || (head->life != 0 && head->number != 0));
}

void command_group_begin(const struct command_group_header *head, struct buf *buf)
{
    uint8_t version = (uint8_t)((head->life == 0 ? VERSION_OWN_LOG : VERSION_CLUSTER) +
                                (head->memory_full ? VERSION_MEMORY_FULL : 0));
    ENSURE(version <= COMMAND_GROUP_VERSION);
    struct codec codec = codec_to(buf, version);
    struct command_group_header copy = *head;

    REQUIRE(buf->len == 0 && head->ts < TL_TS_MAX);
    REQUIRE((head->life == 0) == (head->number == 0)); /* else it cannot be read */
    codec_byte(&codec, &version);
    codec_head(&codec, &copy);
}

void command_group_add(const struct command *command, struct buf *buf)
{
    char reserved[LENGTH_RESERVED] = {0};
    size_t at = buf->len;

    REQUIRE(at > 0);
    buf_append(buf, reserved, LENGTH_RESERVED);
    command_encode(command, buf);
    INSIST(!buf->overflow);
    size_t end = buf->len;
    buf_varint(buf, end - at - LENGTH_RESERVED);
    struct slice length = buf_from(buf, end);
    memcpy(reserved, length.data, length.len);
    buf_truncate(buf, end);
    buf_overwrite(buf, at, reserved, length.len);
    /* Moves the command next to its length */
    buf_remove(buf, at + length.len, LENGTH_RESERVED - length.len);
}

/* Takes the bytes of the next command. Returns: false, with a bad codec, at the end or if it is damaged. */
static bool take_command(struct codec *codec, struct slice *ret_bytes)
{
    uint64_t length;

    codec_number(codec, &length);
    codec_require(codec, codec->bad || length <= codec->in.len);
    return !codec->bad && slice_take(&codec->in, (size_t)length, ret_bytes);
}

/*
 * Decodes commands up to the end. Returns: as command_group_decode(), with the commands made before
 * an error.
 */
static int decode_commands(struct codec *codec, struct list *commands)
{
    while (!codec->bad && codec->in.len > 0) {
        struct command *command;
        struct slice bytes;
        if (!take_command(codec, &bytes))
            return tl_trace(TL_ERR_CORRUPT);
        int r = command_decode(bytes, &command);
        if (r != 0)
            return r;
        list_append(commands, &command->link);
    }
    return codec->bad ? tl_trace(TL_ERR_CORRUPT) : 0;
}

/* Returns: 0; COMMAND_CODEC_NEWER. The codec is bad if the header is invalid. */
static int read_head(struct codec *codec, struct command_group_header *head)
{
    uint8_t version;

    codec_byte(codec, &version);
    if (version > COMMAND_GROUP_VERSION)
        return COMMAND_CODEC_NEWER;
    codec_require(codec, version != 0);
    codec->version = version;
    codec_head(codec, head);
    return 0;
}

/* Returns: as command_group_read_header(). */
static int open_group(struct codec *codec, struct command_group_header *ret_head)
{
    *ret_head = (struct command_group_header){0};
    int r = read_head(codec, ret_head);
    return r == 0 && codec->bad ? tl_trace(TL_ERR_CORRUPT) : r;
}

int command_group_read_header(struct slice bytes, struct command_group_header *ret_head)
{
    struct codec codec = codec_from(bytes, NULL);
    return open_group(&codec, ret_head);
}

int command_group_open(struct slice bytes, struct slice *ret_commands)
{
    struct codec codec = codec_from(bytes, NULL);
    struct command_group_header head;
    int r = open_group(&codec, &head);
    *ret_commands = r == 0 ? codec.in : SLICE_NONE;
    return r;
}

bool command_group_take(struct slice *commands, struct slice *ret_command)
{
    struct codec codec = codec_from(*commands, NULL);
    bool taken = commands->len > 0 && take_command(&codec, ret_command);
    *commands = codec.in;
    return taken;
}

int command_group_decode(struct slice bytes, struct command_group_header *ret_head, struct list *commands)
{
    struct codec codec = codec_from(bytes, NULL);
    struct command_group_header head = {0};
    struct list made = LIST_INIT(made);

    int r = read_head(&codec, &head);
    if (r == 0)
        r = decode_commands(&codec, &made);
    if (r != 0) {
        command_free_all(&made);
        return r;
    }
    while (!list_empty(&made)) {
        struct list *link = made.next;
        list_remove(link);
        list_append(commands, link);
    }
    *ret_head = head;
    return 0;
}

tl_ts command_group_next_ts(const struct command_group_header *head, const struct core *core)
{
    tl_ts next = head->ts > core_last_ts(core) ? head->ts : core_last_ts(core) + 1;
    ENSURE(next > core_last_ts(core));
    return next;
}

int command_group_apply(struct core *core, const struct command_group_header *head, struct list *commands,
                        struct effects *effects)
{
    REQUIRE(effects != NULL && head->ts < TL_TS_MAX);
    int r = 0;

    if (!owners__accept_group(core, head->host, head->life, head->number))
        return COMMAND_GROUP_IGNORED;
    while (r == 0 && !list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command->ts = command_group_next_ts(head, core);
        command->clock = head->clock;
        command->memory_full = head->memory_full;
        r = core_step(core, command, effects);
    }
    return r < 0 ? tl_trace(r) : 0;
}
