/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of etcd's API; see messages.h. Field numbers are those of rpc.proto and kv.proto. */
#include "cmdlog/etcd/messages.h"

#include "base/check.h"
#include "cmdlog/etcd/proto.h"

enum {
    COMPARE_EQUAL = 0,
    COMPARE_LESS = 2,
    TARGET_VERSION = 0,
    TARGET_CREATED = 1,
    TARGET_MODIFIED = 2,
    TARGET_VALUE = 3,
    ORDER_DESCEND = 2,
    BY_MODIFIED = 3,
    EVENT_DELETE = 1
};

void etcd_prefix_end(struct slice prefix, struct buf *buf)
{
    while (prefix.len > 0 && (unsigned char)prefix.data[prefix.len - 1] == 0xff)
        prefix.len--;
    if (prefix.len == 0) {
        buf_byte(buf, 0); /* the end of all keys */
        return;
    }
    buf_append(buf, prefix.data, prefix.len - 1);
    buf_byte(buf, (char)(prefix.data[prefix.len - 1] + 1));
}

void etcd_key_end(struct slice key, struct buf *buf)
{
    REQUIRE(key.len > 0);
    buf_slice(buf, key);
    buf_byte(buf, '\0');
}

void etcd_put_range(struct buf *buf, const struct etcd_range *range)
{
    REQUIRE(range->key.len > 0);
    proto_bytes(buf, 1, range->key);
    proto_bytes(buf, 2, range->end);
    proto_number(buf, 3, range->limit);
    proto_number(buf, 4, range->revision);
    if (range->newest_first) {
        proto_number(buf, 5, ORDER_DESCEND);
        proto_number(buf, 6, BY_MODIFIED);
    }
    proto_number(buf, 7, range->serializable);
    proto_number(buf, 8, range->keys_only);
    proto_number(buf, 9, range->count_only);
}

void etcd_put_put(struct buf *buf, struct slice key, struct slice value, uint64_t lease)
{
    REQUIRE(key.len > 0);
    proto_bytes(buf, 1, key);
    proto_bytes(buf, 2, value);
    proto_number(buf, 3, lease);
}

void etcd_put_compact(struct buf *buf, uint64_t revision)
{
    REQUIRE(revision > 0);
    proto_number(buf, 1, revision);
}

/*
 * Requests fragments: otherwise the first message of a watch that starts far back could have up to
 * a thousand entries.
 */
void etcd_put_watch(struct buf *buf, struct slice key, struct slice end, uint64_t from)
{
    REQUIRE(key.len > 0);
    size_t create = proto_begin(buf, 1);
    proto_bytes(buf, 1, key);
    proto_bytes(buf, 2, end);
    proto_number(buf, 3, from);
    proto_number(buf, 8, true);
    proto_end(buf, create);
}

void etcd_put_lease(struct buf *buf, uint64_t lease)
{
    REQUIRE(lease > 0);
    proto_number(buf, 1, lease);
}

void etcd_put_lease_grant(struct buf *buf, uint64_t lease, uint64_t ttl_s)
{
    REQUIRE(lease > 0 && ttl_s > 0);
    proto_number(buf, 1, ttl_s);
    proto_number(buf, 2, lease);
}

static void put_compare(struct buf *buf, struct slice key, unsigned target, unsigned field, uint64_t value)
{
    REQUIRE(key.len > 0);
    size_t compare = proto_begin(buf, 1);
    proto_number(buf, 1, COMPARE_EQUAL);
    proto_number(buf, 2, target);
    proto_bytes(buf, 3, key);
    proto_number_set(buf, field, value);
    proto_end(buf, compare);
}

void etcd_compare_version(struct buf *buf, struct slice key, uint64_t version)
{
    put_compare(buf, key, TARGET_VERSION, 4, version);
}

void etcd_compare_created(struct buf *buf, struct slice key, uint64_t revision)
{
    put_compare(buf, key, TARGET_CREATED, 5, revision);
}

void etcd_compare_value(struct buf *buf, struct slice key, struct slice value)
{
    REQUIRE(key.len > 0);
    size_t compare = proto_begin(buf, 1);
    proto_number(buf, 1, COMPARE_EQUAL);
    proto_number(buf, 2, TARGET_VALUE);
    proto_bytes(buf, 3, key);
    proto_bytes(buf, 7, value);
    proto_end(buf, compare);
}

void etcd_compare_unmodified(struct buf *buf, struct slice key, struct slice end, uint64_t revision)
{
    REQUIRE(key.len > 0 && end.len > 0); /* without an end it compares one key */
    size_t compare = proto_begin(buf, 1);
    proto_number(buf, 1, COMPARE_LESS);
    proto_number(buf, 2, TARGET_MODIFIED);
    proto_bytes(buf, 3, key);
    proto_number_set(buf, 6, revision + 1);
    proto_bytes(buf, 64, end);
    proto_end(buf, compare);
}

void etcd_branch_range(struct buf *buf, enum etcd_branch branch, const struct etcd_range *range)
{
    size_t operation = proto_begin(buf, branch), request = proto_begin(buf, 1);
    etcd_put_range(buf, range);
    proto_end(buf, request);
    proto_end(buf, operation);
}

/*
 * The offset of the inner message follows from that of the outer, since a message's length is four
 * bytes. So the outer one is enough for etcd_branch_put_end().
 */
size_t etcd_branch_put_begin(struct buf *buf, enum etcd_branch branch, struct slice key, size_t len)
{
    REQUIRE(key.len > 0 && len > 0);
    size_t operation = proto_begin(buf, branch);
    proto_begin(buf, 2);
    proto_bytes(buf, 1, key);
    proto_bytes_header(buf, 2, len);
    return operation;
}

void etcd_branch_put_end(struct buf *buf, size_t begun)
{
    proto_end(buf, begun + 5); /* a tag and the length */
    proto_end(buf, begun);
}

void etcd_branch_put(struct buf *buf, enum etcd_branch branch, struct slice key, struct slice value, uint64_t lease)
{
    size_t operation = proto_begin(buf, branch), request = proto_begin(buf, 2);
    etcd_put_put(buf, key, value, lease);
    proto_end(buf, request);
    proto_end(buf, operation);
}

void etcd_branch_delete(struct buf *buf, enum etcd_branch branch, struct slice key)
{
    REQUIRE(key.len > 0);
    size_t operation = proto_begin(buf, branch), request = proto_begin(buf, 3);
    proto_bytes(buf, 1, key);
    proto_end(buf, request);
    proto_end(buf, operation);
}

/* --- Replies ------------------------------------------------------------------------------------------------------ */

/* Removes fields up to the next message with this number. Returns: 1; 0; TL_ERR_CORRUPT. */
static int take_message(struct slice *message, unsigned number, struct slice *ret_message)
{
    struct proto_field field;
    int r;
    while ((r = proto_take(message, &field)) > 0) {
        if (field.number != number)
            continue;
        if (field.is_number)
            return tl_trace(TL_ERR_CORRUPT);
        *ret_message = field.bytes;
        return 1;
    }
    return r;
}

/* Reads number fields below `count` into values[field number]; skips others. */
static int read_numbers(struct slice message, uint64_t *values, size_t count)
{
    struct proto_field field;
    int r;
    while ((r = proto_take(&message, &field)) > 0)
        if (field.is_number && field.number < count)
            values[field.number] = field.value;
    return r;
}

int etcd_read_header(struct slice reply, struct etcd_header *ret_header)
{
    uint64_t values[4] = {0};
    struct slice header = SLICE_NONE;
    int r = take_message(&reply, 1, &header);
    if (r >= 0)
        r = read_numbers(header, values, 4);
    if (r < 0)
        return tl_trace(r);
    *ret_header = (struct etcd_header){.cluster = values[1], .member = values[2], .revision = values[3]};
    return 0;
}

static int read_kv(struct slice message, struct etcd_kv *ret_kv)
{
    struct etcd_kv kv = {.key = SLICE_LIT(""), .value = SLICE_LIT("")};
    struct proto_field field;
    int r;
    while ((r = proto_take(&message, &field)) > 0) {
        if (field.is_number != (field.number != 1 && field.number != 5) && field.number <= 6)
            return tl_trace(TL_ERR_CORRUPT);
        switch (field.number) {
        case 1: kv.key = field.bytes; break;
        case 2: kv.created = field.value; break;
        case 3: kv.modified = field.value; break;
        case 4: kv.version = field.value; break;
        case 5: kv.value = field.bytes; break;
        case 6: kv.lease = field.value; break;
        default: break;
        }
    }
    if (r == 0)
        *ret_kv = kv;
    return r;
}

int etcd_take_kv(struct slice *reply, struct etcd_kv *ret_kv)
{
    struct slice message;
    int r = take_message(reply, 2, &message);
    if (r <= 0)
        return r;
    r = read_kv(message, ret_kv);
    return r < 0 ? r : 1;
}

int etcd_read_txn(struct slice reply, struct etcd_txn_reply *ret_txn)
{
    uint64_t values[3] = {0};
    int r = read_numbers(reply, values, 3);
    if (r == 0)
        *ret_txn = (struct etcd_txn_reply){.succeeded = values[2] != 0, .responses = reply};
    return r;
}

/* A response is a oneof of messages; the field number depends on the operation. */
int etcd_take_response(struct slice *responses, struct slice *ret_response)
{
    struct slice message;
    struct proto_field field;
    int r = take_message(responses, 3, &message);
    if (r <= 0)
        return r;
    r = proto_take(&message, &field);
    if (r < 0 || (r > 0 && field.is_number))
        return tl_trace(TL_ERR_CORRUPT);
    *ret_response = r > 0 ? field.bytes : SLICE_NONE;
    return 1;
}

int etcd_read_watch(struct slice reply, struct etcd_watch_reply *ret_watch)
{
    struct etcd_watch_reply watch = {.events = reply, .reason = SLICE_LIT("")};
    struct proto_field field;
    int r;
    while ((r = proto_take(&reply, &field)) > 0) {
        if (field.number == 3 && field.is_number)
            watch.created = field.value != 0;
        else if (field.number == 4 && field.is_number)
            watch.canceled = field.value != 0;
        else if (field.number == 5 && field.is_number)
            watch.compacted = field.value;
        else if (field.number == 6 && !field.is_number)
            watch.reason = field.bytes;
    }
    if (r == 0)
        *ret_watch = watch;
    return r;
}

int etcd_take_event(struct slice *events, struct etcd_kv *ret_kv)
{
    struct slice event, message = SLICE_NONE;
    struct proto_field field;
    bool deleted = false;
    int r = take_message(events, 11, &event);
    if (r <= 0)
        return r;
    while ((r = proto_take(&event, &field)) > 0) {
        if (field.number == 1 && field.is_number)
            deleted = field.value == EVENT_DELETE;
        else if (field.number == 2 && !field.is_number)
            message = field.bytes;
    }
    if (r == 0)
        r = read_kv(message, ret_kv);
    if (r < 0)
        return r;
    ret_kv->deleted = deleted;
    return 1;
}

int etcd_read_lease(struct slice reply, struct etcd_lease_reply *ret_lease)
{
    uint64_t values[4] = {0};
    int r = read_numbers(reply, values, 4);
    if (r == 0)
        *ret_lease = (struct etcd_lease_reply){.lease = values[2], .ttl_s = (int64_t)values[3]};
    return r;
}

int etcd_read_status(struct slice reply, struct etcd_status *ret_status)
{
    uint64_t values[13] = {0};
    struct slice rest = reply, error;
    bool alarm = false;
    int r = read_numbers(reply, values, 13);
    while (r == 0 && (r = take_message(&rest, 8, &error)) > 0) {
        alarm = alarm || memmem(error.data, error.len, "NOSPACE", strlen("NOSPACE")) != NULL;
        r = 0;
    }
    if (r == 0)
        *ret_status =
            (struct etcd_status){.size = values[3], .used = values[9], .quota = values[12], .alarm_no_space = alarm};
    return r;
}
