/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the log; see entry.h. */
#include "core/step/entry.h"

#include "base/check.h"
#include "core/step/coder.h"
#include "core/step/command.h"
#include "core/step/command_code.h"
#include "core/step/hooks.h"

enum { LENGTH_ROOM = 10 }; /* the longest varint */

static void code_head(struct coder *coder, struct entry_head *head)
{
    uint64_t host = head->host;

    code_number(coder, &host);
    coder_demand(coder, host <= UINT16_MAX);
    head->host = (uint16_t)host;
    code_number(coder, &head->ts);
    coder_demand(coder, coder->bad || head->ts < TL_TS_MAX);
    code_number(coder, &head->clock);
    if (coder->version < 2)
        return;
    code_number(coder, &head->life);
    code_number(coder, &head->number);
    coder_demand(coder, coder->bad || (head->life != 0 && head->number != 0)); /* else it is of version 1 */
}

void entry_begin(const struct entry_head *head, struct buf *buf)
{
    uint8_t version = head->life == 0 ? 1 : ENTRY_VERSION;
    struct coder coder = coder_to(buf, version);
    struct entry_head copy = *head;

    REQUIRE(buf->len == 0 && head->ts < TL_TS_MAX);
    code_byte(&coder, &version);
    code_head(&coder, &copy);
}

void entry_add(const struct command *command, struct buf *buf)
{
    char room[LENGTH_ROOM] = {0};
    size_t at = buf->len;

    REQUIRE(at > 0);
    buf_append(buf, room, LENGTH_ROOM);
    command_encode(command, buf);
    INSIST(!buf->overflow);
    size_t end = buf->len;
    buf_varint(buf, end - at - LENGTH_ROOM);
    struct slice length = buf_from(buf, end);
    memcpy(room, length.data, length.len);
    buf_truncate(buf, end);
    buf_overwrite(buf, at, room, length.len);
    buf_remove(buf, at + length.len, LENGTH_ROOM - length.len); /* the command follows its length */
}

static void free_all(struct list *commands)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

/* The commands of an entry, as long as there are some. Returns: as entry_decode(), with what was made so far in `commands`. */
static int decode_commands(struct coder *coder, struct list *commands)
{
    while (!coder->bad && coder->in.len > 0) {
        struct command *command;
        struct slice bytes;
        uint64_t length;
        code_number(coder, &length);
        if (coder->bad || length > coder->in.len || !slice_take(&coder->in, (size_t)length, &bytes))
            return tl_trace(TL_ERR_CORRUPT);
        int r = command_decode(bytes, &command);
        if (r != 0)
            return r;
        list_append(commands, &command->link);
    }
    return coder->bad ? tl_trace(TL_ERR_CORRUPT) : 0;
}

/* Returns: 0; COMMAND_CODE_NEWER. What is damaged shows in the coder. */
static int read_head(struct coder *coder, struct entry_head *head)
{
    uint8_t version;

    code_byte(coder, &version);
    if (version > ENTRY_VERSION)
        return COMMAND_CODE_NEWER;
    coder_demand(coder, version != 0);
    coder->version = version;
    code_head(coder, head);
    return 0;
}

int entry_read_head(struct slice bytes, struct entry_head *ret_head)
{
    struct coder coder = coder_from(bytes, NULL);
    struct entry_head head = {0};
    int r = read_head(&coder, &head);

    if (r == 0 && coder.bad)
        r = tl_trace(TL_ERR_CORRUPT);
    *ret_head = head;
    return r;
}

int entry_decode(struct slice bytes, struct entry_head *ret_head, struct list *commands)
{
    struct coder coder = coder_from(bytes, NULL);
    struct entry_head head = {0};
    struct list made = LIST_INIT(made);

    int r = read_head(&coder, &head);
    if (r == 0)
        r = decode_commands(&coder, &made);
    if (r != 0) {
        free_all(&made);
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

tl_ts entry_ts(const struct entry_head *head, const struct core *core)
{
    return head->ts > core_last_ts(core) ? head->ts : core_last_ts(core) + 1;
}

int entry_apply(struct core *core, const struct entry_head *head, struct list *commands, struct effects *effects)
{
    int r = 0;

    if (!owners__take_entry(core, head->host, head->life, head->number))
        return ENTRY_PASSED_OVER;
    core_group_begin(core);
    while (r == 0 && !list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command->ts = entry_ts(head, core);
        command->clock = head->clock;
        r = core_step(core, command, effects);
    }
    int ended = core_group_end(core);
    return r < 0 ? tl_trace(r) : ended;
}
