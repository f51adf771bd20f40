/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers as bytes (their third version): fields written one after the other, and read one after the other. */
#ifndef TL_CMDLOG_ETCD_PROTO_H
#define TL_CMDLOG_ETCD_PROTO_H

#include "base/buf.h"

/* Writes a field; the default, 0 and empty, is left out, as receivers take what is missing for it. */
void proto_number(struct buf *buf, unsigned field, uint64_t value);
void proto_bytes(struct buf *buf, unsigned field, struct slice bytes);

/* The same with the default written, where it says which of several fields is set. */
void proto_number_set(struct buf *buf, unsigned field, uint64_t value);

/* Begins a message within the message. Returns: what proto_end() needs, when its fields have been written. Below 256 MiB. */
size_t proto_begin(struct buf *buf, unsigned field);
void proto_end(struct buf *buf, size_t begun);

/* Begins a field of bytes that the caller appends then, `len` of them. */
void proto_bytes_ahead(struct buf *buf, unsigned field, size_t len);

struct proto_field {
    unsigned number;
    bool is_number; /* `value`; else `bytes`, which lie within the message */
    uint64_t value;
    struct slice bytes; /* of a string, bytes, a message, or 4 or 8 bytes as they stand */
};

/* Takes a field off the front of a message. Returns: 1; 0: there is none; TL_ERR_CORRUPT. */
int proto_take(struct slice *message, struct proto_field *ret_field) TL_MUST_USE;

#endif
