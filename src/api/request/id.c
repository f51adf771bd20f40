/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids.
 */
#include "api/request/id.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The kernel returns so few bytes at once, except early after boot, when a signal may interrupt. */
static bool draw_random(void *bytes, size_t len)
{
    ssize_t drawn;
    do
        drawn = getrandom(bytes, len, 0);
    while (drawn < 0 && errno == EINTR);
    return drawn == (ssize_t)len;
}

int id_source_init(struct id_source *source)
{
    uint32_t host;
    if (!draw_random(&host, sizeof host))
        return tl_trace(TL_ERR_IO);
    pthread_mutex_init(&source->lock, NULL);
    source->sequence = 0;
    source->last_tick = 0;
    source->host = host;
    return 0;
}

void id_source_deinit(struct id_source *source)
{
    pthread_mutex_destroy(&source->lock);
}

static void id_encode(const unsigned char *bytes, size_t len, char *to)
{
    REQUIRE(len % 3 == 0);
    for (size_t i = 0; i < len; i += 3, to += 4)
        base64_url_encode(bytes + i, to);
}

struct slice id_document(struct id_source *source, uint64_t now, struct arena *arena)
{
    pthread_mutex_lock(&source->lock);
    if (now > source->last_tick)
        source->last_tick = now;
    uint64_t tick = source->last_tick;
    uint64_t sequence = source->sequence++;
    uint32_t host = source->host;
    pthread_mutex_unlock(&source->lock);

    /* Seven bytes of time, four of a counter that makes ids of one microsecond differ, four of this process. */
    unsigned char bytes[15];
    for (int i = 0; i < 7; i++)
        bytes[i] = (unsigned char)(tick >> (48 - 8 * i));
    for (int i = 0; i < 4; i++)
        bytes[7 + i] = (unsigned char)(sequence >> (24 - 8 * i));
    for (int i = 0; i < 4; i++)
        bytes[11 + i] = (unsigned char)(host >> (24 - 8 * i));
    char *text = arena_alloc(arena, ID_DOCUMENT_BYTES + 1);
    id_encode(bytes, sizeof bytes, text);
    text[ID_DOCUMENT_BYTES] = '\0';
    return slice_make(text, ID_DOCUMENT_BYTES);
}

void id_of_name(struct slice name, char id[])
{
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    char text[(ID_BYTES + 3) / 4 * 4];
    unsigned char bytes[sizeof text / 4 * 3] = {0};
    buf_printf(&again, "node %.*s", SLICE_ARG(name));
    const uint64_t halves[] = {slice_hash(name), slice_hash(buf_as_slice(&again))};
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)(halves[i / 8] >> (56 - 8 * (i % 8)));
    buf_deinit(&again);
    id_encode(bytes, sizeof bytes, text);
    memcpy(id, text, ID_BYTES);
    id[ID_BYTES] = '\0';
}

struct slice id_random(struct id_source *source, struct arena *arena)
{
    unsigned char bytes[ID_BYTES];
    char *text = arena_alloc(arena, ID_BYTES + 1);
    (void)source;
    INSIST(draw_random(bytes, sizeof bytes));
    for (int i = 0; i < ID_BYTES; i++)
        text[i] = base64_url_digit(bytes[i]);
    text[ID_BYTES] = '\0';
    return slice_make(text, ID_BYTES);
}

static const struct slice query_txn_prefix = SLICE_LIT("query");

enum { HOST_DIGITS = 4 };

struct slice id_query_txn(struct id_source *source, uint16_t host, struct arena *arena)
{
    struct slice random = id_random(source, arena);
    return host == 0 ? random
                     : arena_printf(arena, "%.*s%04x%.*s", SLICE_ARG(query_txn_prefix), host, SLICE_ARG(random));
}

uint16_t id_query_txn_host(struct slice id)
{
    char digits[HOST_DIGITS + 1] = "";
    char *end;
    if (id.len != query_txn_prefix.len + HOST_DIGITS + ID_BYTES || !slice_starts_with(id, query_txn_prefix))
        return 0;
    memcpy(digits, id.data + query_txn_prefix.len, HOST_DIGITS);
    unsigned long host = strtoul(digits, &end, 16);
    return *end == '\0' ? (uint16_t)host : 0;
}
