/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking of request bodies (Content-Encoding: gzip, deflate). */
#ifndef TL_HTTP_INFLATE_H
#define TL_HTTP_INFLATE_H

#include "base/buf.h"

enum {
    INFLATE_BROKEN = 1,    /* no such format, or cut off */
    INFLATE_TOO_LARGE = 2, /* the buffer's maximum is reached */
};

/*
 * Unpacks all of `packed` (zlib or gzip format) onto the end of `to`.
 * Returns: 0, INFLATE_BROKEN, INFLATE_TOO_LARGE.
 */
int inflate_whole(struct slice packed, struct buf *to) TL_MUST_USE;

#endif
