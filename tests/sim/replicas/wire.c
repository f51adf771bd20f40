/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a cluster as its hosts write and read it; see wire.h. */
#include "wire.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "cmdlog/etcd/envelope.h"

/* A put that is not in the log. */
struct waiting_put {
    struct list link;
    struct buf value;
    uint64_t number;
    bool first;             /* the first part of an entry, or all of it */
    struct sent *completes; /* the entry whose last part it is; NULL: another part */
};

static const char *const names[WIRE_SENDERS] = {"a", "b", "c"};

/* --- Sending ------------------------------------------------------------------------------------------------------ */

static void begin_life(struct sender *sender)
{
    int r = cmdlog_join(sender->log, SLICE_LIT("replicas"), CMDLOG_FOREVER, &sender->life);
    INSIST(r == 0);
}

void wire_init(struct wire *wire, uint64_t seed)
{
    *wire = (struct wire){.medium = cmdlog_medium_new()};
    rng_init(&wire->rng, seed);
    for (int i = 0; i < WIRE_SENDERS; i++) {
        struct sender *sender = &wire->senders[i];
        sender->log = cmdlog_memory_open_as(wire->medium, slice_from(names[i]));
        list_init(&sender->puts);
        list_init(&sender->unfinished);
        begin_life(sender);
    }
}

static void free_sent(struct sent *sent)
{
    mem_free((char *)(uintptr_t)sent->bytes.data);
    mem_free(sent);
}

static void free_put(struct waiting_put *put)
{
    list_remove(&put->link);
    buf_deinit(&put->value);
    mem_free(put);
}

/* Loses the puts that wait, and the entries that they belong to. */
static void lose_puts(struct sender *sender)
{
    while (!list_empty(&sender->puts))
        free_put(list_entry(sender->puts.next, struct waiting_put, link));
    while (!list_empty(&sender->unfinished)) {
        struct sent *sent = list_entry(sender->unfinished.next, struct sent, link);
        list_remove(&sent->link);
        free_sent(sent);
    }
}

void wire_deinit(struct wire *wire)
{
    for (int i = 0; i < WIRE_SENDERS; i++) {
        lose_puts(&wire->senders[i]);
        cmdlog_close(wire->senders[i].log);
    }
    for (size_t i = 0; i < wire->count; i++)
        free_sent(wire->entries[i]);
    mem_free(wire->entries);
    cmdlog_medium_free(wire->medium);
}

struct sent *wire_send(struct wire *wire, unsigned sender_at, struct slice bytes, unsigned parts, struct sent *repeats)
{
    struct sender *sender = &wire->senders[sender_at];
    struct sent *sent = mem_zalloc(sizeof *sent);
    size_t part_bytes = (bytes.len + parts - 1) / parts;
    uint32_t count = (uint32_t)envelope_count_parts(bytes.len, part_bytes);

    sent->bytes = mem_dup_slice(bytes);
    sent->repeats = repeats;
    list_append(&sender->unfinished, &sent->link);
    wire->cut += count > 1;
    for (uint32_t part = 1; part <= count; part++) {
        struct waiting_put *put = mem_zalloc(sizeof *put);
        struct slice selected;
        size_t len;
        char head[ENVELOPE_BYTES];
        put->number = ++sender->number;
        put->first = part == 1;
        put->completes = part == count ? sent : NULL;
        struct envelope envelope = {sender->life, put->number, 0, part, count};
        size_t slices = envelope_cut(&sent->bytes, 1, part, part_bytes, &selected, &len);
        envelope_write(&envelope, slice_from(names[sender_at]), &selected, slices, head);
        put->value = BUF_INIT(BUF_UNLIMITED);
        buf_append(&put->value, head, ENVELOPE_BYTES);
        buf_slice(&put->value, selected);
        list_append(&sender->puts, &put->link);
    }
    return sent;
}

static void complete(struct wire *wire, struct sent *sent, cmdlog_position position)
{
    if (wire->count == wire->capacity) {
        wire->capacity = 2 * wire->capacity + 64;
        wire->entries = mem_realloc(wire->entries, wire->capacity * sizeof(struct sent *));
    }
    list_remove(&sent->link);
    sent->position = position;
    wire->entries[wire->count++] = sent;
}

bool wire_flow(struct wire *wire)
{
    unsigned at = (unsigned)rng_below(&wire->rng, WIRE_SENDERS);
    uint64_t number;
    cmdlog_position position;

    for (int i = 0; i < WIRE_SENDERS && list_empty(&wire->senders[at].puts); i++)
        at = (at + 1) % WIRE_SENDERS;
    struct sender *sender = &wire->senders[at];
    if (list_empty(&sender->puts))
        return false;
    struct waiting_put *put = list_entry(sender->puts.next, struct waiting_put, link);
    struct slice value = buf_as_slice(&put->value);
    int r = cmdlog_submit(sender->log, &value, 1, CMDLOG_FOREVER, &number);
    if (r == 0)
        r = cmdlog_outcome(sender->log, number, CMDLOG_FOREVER, &position);
    INSIST(r == 0 && number == put->number);
    if (put->completes != NULL)
        complete(wire, put->completes, position);
    free_put(put);
    return true;
}

void wire_interrupt(struct wire *wire, unsigned at, bool dies)
{
    struct sender *sender = &wire->senders[at];

    if (list_empty(&sender->puts))
        return;
    struct waiting_put *first = list_entry(sender->puts.next, struct waiting_put, link);
    struct sent *oldest = list_entry(sender->unfinished.next, struct sent, link);
    struct slice bytes = mem_dup_slice(oldest->bytes);
    struct sent *repeats = oldest->repeats;
    wire->interrupted += !first->first;
    sender->number = first->number - 1;
    lose_puts(sender);
    if (dies) {
        cmdlog_medium_end_life(wire->medium, slice_from(names[at]));
        begin_life(sender);
    }
    wire_send(wire, at, bytes, 1 + (unsigned)rng_below(&wire->rng, 4), repeats);
    mem_free((char *)(uintptr_t)bytes.data);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static struct assembly_put put_of(const struct cmdlog_entry *entry)
{
    return (struct assembly_put){entry->host, entry->position, entry->number, entry->bytes};
}

/*
 * The host's last put before a position: looks at one position after the other, of which few are others'. Each second
 * call is in vain.
 */
static int read_before(void *context, struct slice host, cmdlog_position before, struct buf *reply,
                       struct assembly_put *ret_put)
{
    struct wire_reader *reader = context;
    bool found = false;

    reader->unreachable = !reader->unreachable;
    if (reader->unreachable)
        return CMDLOG_UNREACHABLE;
    while (!found && --before > 0) {
        struct cmdlog_cursor *cursor;
        struct cmdlog_entry entry;
        int r = cmdlog_follow(reader->log, before, &cursor);
        INSIST(r == 0);
        r = cmdlog_next(cursor, &entry);
        INSIST(r == 0);
        found = slice_equal(entry.host, host);
        if (found) {
            *ret_put = put_of(&entry);
            buf_slice(reply, entry.bytes);
            ret_put->value = buf_as_slice(reply);
        }
        cmdlog_unfollow(cursor);
    }
    return found ? 0 : tl_trace(TL_ERR_CORRUPT);
}

static void follow_from(struct wire_reader *reader, cmdlog_position from)
{
    cmdlog_unfollow(reader->cursor);
    int r = cmdlog_follow(reader->log, from, &reader->cursor);
    INSIST(r == 0);
}

void wire_begin(struct wire_reader *reader, struct wire *wire, cmdlog_position after)
{
    *reader = (struct wire_reader){.wire = wire, .log = cmdlog_memory_open(wire->medium)};
    assembly_init(&reader->assembly, after, read_before, reader);
    follow_from(reader, after + 1);
}

void wire_end(struct wire_reader *reader)
{
    if (reader->log == NULL)
        return;
    assembly_deinit(&reader->assembly);
    cmdlog_unfollow(reader->cursor);
    cmdlog_close(reader->log);
    reader->log = NULL;
}

void wire_go_back(struct wire_reader *reader)
{
    uint64_t back = rng_below(&reader->wire->rng, 6);
    cmdlog_position next = reader->assembly.position + 1;

    follow_from(reader, back < next ? next - back : 1);
}

int wire_read(struct wire_reader *reader, size_t *budget, struct cmdlog_entry *ret_entry)
{
    struct cmdlog_entry entry;
    int r = CMDLOG_END;

    for (; r == CMDLOG_END && *budget > 0 && cmdlog_next(reader->cursor, &entry) == 0; --*budget) {
        struct assembly_put put = put_of(&entry);
        r = assembly_take(&reader->assembly, &put, ret_entry, &reader->damage);
        if (r == CMDLOG_UNREACHABLE) { /* it takes the put again */
            follow_from(reader, put.position);
            r = CMDLOG_END;
        }
    }
    return r;
}
