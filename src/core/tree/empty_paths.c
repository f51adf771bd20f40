/* SPDX-License-Identifier: Apache-2.0 */
/* Paths known to be empty; see empty_paths.h. */
#include "core/tree/empty_paths.h"

#include "base/alloc.h"
#include "base/check.h"
#include "core/tree/tree.h"

/* Whether the path is known to be empty. */
static bool is_known(const struct empty_path *element)
{
    return element->watched_at == TL_TS_NONE;
}

bool empty_paths_contains(const struct empty_paths *paths, uint32_t index, struct slice path, char delimiter)
{
    for (size_t i = 0; i < paths->count; i++)
        if (paths->items[i].index == index && is_known(&paths->items[i]) &&
            tree_within(path, paths->items[i].path, delimiter))
            return true;
    return false;
}

/* Returns: the position of exactly this path; paths->count: it is not there. */
static size_t find_path(const struct empty_paths *paths, uint32_t index, struct slice path)
{
    REQUIRE(paths->count <= EMPTY_PATHS_MAX && paths->next_replaced < EMPTY_PATHS_MAX);
    size_t i = 0;
    while (i < paths->count && (paths->items[i].index != index || !slice_equal(paths->items[i].path, path)))
        i++;
    return i;
}

static void drop_path(struct empty_paths *paths, size_t i)
{
    REQUIRE(i < paths->count);
    mem_free_slice(&paths->items[i].path);
    paths->items[i] = paths->items[--paths->count];
}

static void put_path(struct empty_paths *paths, const struct empty_path *element)
{
    REQUIRE(element->path.len > 0 && (element->watched_at == TL_TS_NONE) == (element->watched_below == TL_TS_NONE));
    size_t existing = find_path(paths, element->index, element->path);
    if (existing < paths->count)
        drop_path(paths, existing);
    if (paths->count == EMPTY_PATHS_MAX)
        drop_path(paths, paths->next_replaced++);
    paths->next_replaced %= EMPTY_PATHS_MAX;
    INSIST(paths->count < EMPTY_PATHS_MAX);
    struct empty_path *put = &paths->items[paths->count++];
    *put = *element;
    put->path = mem_dup_slice(element->path);
}

void empty_paths_add(struct empty_paths *paths, uint32_t index, struct slice path, char delimiter)
{
    if (path.len > 0 && !empty_paths_contains(paths, index, path, delimiter))
        put_path(paths, &(struct empty_path){index, delimiter, path, TL_TS_NONE, TL_TS_NONE});
}

void empty_paths_watch(struct empty_paths *paths, uint32_t index, struct slice path, char delimiter, tl_ts ts)
{
    REQUIRE(ts < TL_TS_MAX); /* that says that a watch has ended */
    size_t i = find_path(paths, index, path);
    if (path.len == 0 || ts == TL_TS_NONE)
        return;
    if (i == paths->count) {
        put_path(paths, &(struct empty_path){index, delimiter, path, ts, ts});
        return;
    }
    /* an earlier watch is better */
    if (paths->items[i].watched_at == TL_TS_MAX)
        paths->items[i].watched_at = ts;
    if (paths->items[i].watched_below == TL_TS_MAX)
        paths->items[i].watched_below = ts;
}

/* Whether a watch began at `ts` at the latest, and has not ended; `ts` may be of a damaged log. */
static bool is_watched(tl_ts since, tl_ts ts)
{
    return since <= ts && since != TL_TS_MAX;
}

void empty_paths_unchanged_since(const struct empty_paths *paths, uint32_t index, struct slice path, tl_ts ts,
                                 bool *ret_at, bool *ret_below)
{
    REQUIRE(ts < TL_TS_MAX);
    size_t i = find_path(paths, index, path);
    *ret_at = i < paths->count && is_watched(paths->items[i].watched_at, ts);
    *ret_below = i < paths->count && is_watched(paths->items[i].watched_below, ts);
}

static void invalidate_path(struct empty_paths *paths, uint32_t index, struct slice path, bool subtree)
{
    for (size_t i = paths->count; i-- > 0;) {
        struct empty_path *element = &paths->items[i];
        INSIST(is_known(element) == (element->watched_below == TL_TS_NONE));
        bool contains = element->index == index && tree_within(path, element->path, element->delimiter);
        bool below = contains && path.len > element->path.len, at = contains && !below;
        if (subtree && element->index == index && tree_within(element->path, path, element->delimiter))
            drop_path(paths, i);
        else if (contains && is_known(element))
            drop_path(paths, i);
        else if (at)
            element->watched_at = TL_TS_MAX;
        else if (below)
            element->watched_below = TL_TS_MAX;
    }
}

void empty_paths_invalidate(struct empty_paths *paths, uint32_t index, struct slice path)
{
    invalidate_path(paths, index, path, false);
}

void empty_paths_invalidate_subtree(struct empty_paths *paths, uint32_t index, struct slice path)
{
    invalidate_path(paths, index, path, true);
}

void empty_paths_clear(struct empty_paths *paths)
{
    while (paths->count > 0)
        drop_path(paths, paths->count - 1);
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

enum { ELEMENT_BYTES_MIN = 6 }; /* index, delimiter, a path of one byte, the times of its watches */

static void codec_element(struct codec *codec, struct empty_path *element)
{
    uint64_t index = element->index;
    uint8_t delimiter = (uint8_t)element->delimiter;

    codec_number(codec, &index);
    codec_require(codec, index <= UINT32_MAX);
    codec_byte(codec, &delimiter);
    codec_bytes(codec, &element->path);
    codec_number(codec, &element->watched_at);
    codec_number(codec, &element->watched_below);
    codec_require(codec,
                  codec->bad || (element->path.len > 0 && is_known(element) == (element->watched_below == TL_TS_NONE)));
    if (!codec_reads(codec))
        return;
    element->index = (uint32_t)index;
    element->delimiter = (char)delimiter;
}

void empty_paths__codec(struct codec *codec, struct empty_paths *paths)
{
    REQUIRE(!codec_reads(codec) || paths->count == 0);
    size_t count = paths->count;

    codec_size(codec, &paths->next_replaced);
    codec_require(codec, paths->next_replaced < EMPTY_PATHS_MAX);
    codec_array(codec, NULL, &count, 0, ELEMENT_BYTES_MIN);
    codec_require(codec, count <= EMPTY_PATHS_MAX);
    for (size_t i = 0; i < count && !codec->bad; i++) {
        struct empty_path element = codec_reads(codec) ? (struct empty_path){0} : paths->items[i];
        codec_element(codec, &element);
        if (!codec_reads(codec) || codec->bad)
            continue;
        codec_require(codec, find_path(paths, element.index, element.path) == paths->count);
        element.path = mem_dup_slice(element.path);
        paths->items[paths->count++] = element;
    }
}
