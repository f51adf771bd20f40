/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of request bodies (Content-Encoding: gzip, deflate). */
#ifndef TL_HTTP_INFLATE_H
#define TL_HTTP_INFLATE_H

#include "base/buf.h"

enum {
    INFLATE_BROKEN = 1,    /* not in zlib or gzip format, or truncated */
    INFLATE_TOO_LARGE = 2, /* the output exceeds the buffer's maximum or its budget */
};

/*
 * Appends the decompressed bytes of `packed` (zlib or gzip format) to `to`.
 * Returns: 0, INFLATE_BROKEN, INFLATE_TOO_LARGE.
 */
int inflate_whole(struct slice packed, struct buf *to) TL_MUST_USE;

#endif
