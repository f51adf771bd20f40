/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of request bodies; see inflate.h. */
#include "http/inflate.h"

#include "base/check.h"

#include <zlib.h>

enum {
    BLOCK_BYTES = 64 * 1024,
    EITHER_FORMAT = 15 + 32, /* largest window of zlib; the format is detected from the header */
};

static void *zlib_alloc(void *context, unsigned count, unsigned size)
{
    (void)context;
    return mem_alloc((size_t)count * size);
}

static void zlib_free(void *context, void *pointer)
{
    (void)context;
    mem_free(pointer);
}

/* Inflates block by block until the input ends. Returns: as inflate_whole(). */
static int inflate_blocks(z_stream *stream, struct buf *to)
{
    for (;;) {
        size_t room = to->max - to->len;
        if (room == 0)
            return INFLATE_TOO_LARGE;
        size_t block = room < BLOCK_BYTES ? room : BLOCK_BYTES;
        stream->next_out = (unsigned char *)buf_reserve(to, block);
        if (stream->next_out == NULL)
            return INFLATE_TOO_LARGE; /* of the budget */
        stream->avail_out = (unsigned)block;
        int result = inflate(stream, Z_NO_FLUSH);
        buf_commit(to, block - stream->avail_out);
        if (result == Z_STREAM_END)
            return stream->avail_in == 0 ? 0 : INFLATE_BROKEN;
        if (result != Z_OK)
            return INFLATE_BROKEN;
    }
}

int inflate_whole(struct slice packed, struct buf *to)
{
    if (packed.len > UINT32_MAX)
        return INFLATE_TOO_LARGE;
    z_stream stream = {
        .zalloc = zlib_alloc,
        .zfree = zlib_free,
        .next_in = (unsigned char *)(uintptr_t)packed.data,
        .avail_in = (unsigned)packed.len,
    };
    int result = inflateInit2(&stream, EITHER_FORMAT);
    INSIST(result == Z_OK);
    result = inflate_blocks(&stream, to);
    inflateEnd(&stream);
    return result;
}
