/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of a member of etcd, and entries of its log. The first byte chooses the kind of answer. Every slice taken
 * from an answer is within it; an envelope that is decoded encodes to the same bytes. And the input's bytes as fields
 * of a message are decoded as they were encoded.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/little_endian.h"
#include "cmdlog/etcd/envelope.h"
#include "cmdlog/etcd/messages.h"
#include "cmdlog/etcd/proto.h"

static void within(struct slice part, struct slice whole)
{
    MUST(part.len == 0 || (part.data >= whole.data && part.data + part.len <= whole.data + whole.len));
    volatile char sum = 0;
    for (size_t i = 0; i < part.len; i++)
        sum = (char)(sum + part.data[i]);
}

static void read_entry(struct slice value, struct slice host)
{
    struct envelope envelope;
    struct slice bytes;
    char again[ENVELOPE_BYTES];
    if (envelope_read(value, host, &envelope, &bytes) != 0)
        return;
    within(bytes, value);
    envelope_write(&envelope, host, &bytes, 1, again);
    MUST(memcmp(again, value.data, ENVELOPE_BYTES) == 0);
}

static void read_kvs(struct slice reply)
{
    struct etcd_kv kv;
    struct slice rest = reply;
    while (etcd_take_kv(&rest, &kv) > 0) {
        within(kv.key, reply);
        within(kv.value, reply);
        read_entry(kv.value, kv.key);
    }
}

static void read_txn(struct slice reply)
{
    struct etcd_txn_reply txn;
    struct slice response;
    if (etcd_read_txn(reply, &txn) != 0)
        return;
    while (etcd_take_response(&txn.responses, &response) > 0)
        read_kvs(response);
}

static void read_watch(struct slice reply)
{
    struct etcd_watch_reply watch;
    struct etcd_kv kv;
    if (etcd_read_watch(reply, &watch) != 0)
        return;
    within(watch.reason, reply);
    while (etcd_take_event(&watch.events, &kv) > 0) {
        within(kv.value, reply);
        read_entry(kv.value, kv.key);
    }
}

/*
 * An entry with a valid checksum, so that the bytes after it are decoded. Its number of parts may be invalid:
 * envelope_write() makes no such entry, but a host with a fault may.
 */
static void read_framed(struct slice input)
{
    enum { CHECKSUM_AT = 0, CHECKED_FROM = 4, PARTS_AT = 36 };
    const struct envelope envelope = {.life = 1 + input.len, .number = 7, .part = 2, .parts = 2};
    uint32_t parts = (uint32_t)(input.len % 4);
    char value[ENVELOPE_BYTES + 64];
    struct slice bytes = slice_make(input.data, input.len < 64 ? input.len : 64), host = SLICE_LIT("host"), read;
    struct envelope found;
    envelope_write(&envelope, host, &bytes, 1, value);
    if (bytes.len > 0)
        memcpy(value + ENVELOPE_BYTES, bytes.data, bytes.len);
    size_t len = ENVELOPE_BYTES + bytes.len;
    little_endian_put(value + PARTS_AT, 4, parts);
    little_endian_put(value + CHECKSUM_AT, 4,
                      crc32c(crc32c(0, host.data, host.len), value + CHECKED_FROM, len - CHECKED_FROM));
    int r = envelope_read(slice_make(value, len), host, &found, &read);
    MUST((r == 0) == (bytes.len > 0 && parts >= 2));
    MUST(r != 0 ||
         (found.life == envelope.life && found.part == 2 && found.parts == parts && slice_equal(read, bytes)));
}

static void write_and_read(struct slice input)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct proto_field field;
    size_t begun = proto_begin(&buf, 7);
    for (size_t i = 0; i + 8 <= input.len; i += 8) {
        uint64_t number;
        memcpy(&number, input.data + i, 8);
        proto_number_set(&buf, 1 + (unsigned)(number % 1000), number);
    }
    proto_bytes(&buf, 12, input);
    proto_end(&buf, begun);
    struct slice all = buf_as_slice(&buf);
    MUST(proto_take(&all, &field) == 1 && field.number == 7 && all.len == 0);
    struct slice inner = field.bytes;
    for (size_t i = 0; i + 8 <= input.len; i += 8) {
        uint64_t number;
        memcpy(&number, input.data + i, 8);
        MUST(proto_take(&inner, &field) == 1 && field.is_number && field.value == number &&
             field.number == 1 + number % 1000);
    }
    MUST(proto_take(&inner, &field) == (input.len > 0) && inner.len == 0);
    MUST(input.len == 0 || slice_equal(field.bytes, input));
    buf_deinit(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_make(data, size);
    struct etcd_header header;
    struct etcd_lease_reply lease;
    struct etcd_status status;
    if (size == 0)
        return 0;
    struct slice reply = slice_from_offset(input, 1);
    switch (data[0] % 7) {
    case 0: read_kvs(reply); break;
    case 1: read_txn(reply); break;
    case 2: read_watch(reply); break;
    case 3:
        (void)!etcd_read_header(reply, &header);
        (void)!etcd_read_lease(reply, &lease);
        (void)!etcd_read_status(reply, &status);
        break;
    case 4: read_entry(reply, SLICE_LIT("host")); break;
    case 5: read_framed(reply); break;
    default: write_and_read(reply); break;
    }
    return 0;
}
