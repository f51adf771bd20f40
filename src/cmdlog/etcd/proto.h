/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of Protocol Buffers (proto3) messages, field by field. */
#ifndef TL_CMDLOG_ETCD_PROTO_H
#define TL_CMDLOG_ETCD_PROTO_H

#include "base/buf.h"

/* Write a field. The default (0, empty) is omitted, as proto3 permits. */
void proto_number(struct buf *buf, unsigned field, uint64_t value);
void proto_bytes(struct buf *buf, unsigned field, struct slice bytes);

/* Writes a number even if it is 0, for a field of a oneof. */
void proto_number_set(struct buf *buf, unsigned field, uint64_t value);

/*
 * Starts a nested message. Returns: the argument for proto_end(), which is called after its fields.
 * Below 256 MiB.
 */
size_t proto_begin(struct buf *buf, unsigned field);
void proto_end(struct buf *buf, size_t begun);

/* Writes the tag and length of a field whose `len` bytes the caller appends. */
void proto_bytes_header(struct buf *buf, unsigned field, size_t len);

struct proto_field {
    unsigned number;
    bool is_number; /* whether `value` is set; otherwise `bytes` is */
    uint64_t value;
    struct slice bytes; /* points into the message; of a fixed32 or fixed64, its encoding */
};

/* Removes the first field of a message. Returns: 1; 0: the message is empty; TL_ERR_CORRUPT. */
int proto_take(struct slice *message, struct proto_field *ret_field) TL_MUST_USE;

#endif
