/* SPDX-License-Identifier: Apache-2.0 */
/* Paths known to be empty; see empty_paths.h. */
#include "core/tree/empty_paths.h"

#include "base/alloc.h"
#include "core/tree/tree.h"

bool empty_paths_contains(const struct empty_paths *paths, uint32_t index, struct slice path, char delimiter)
{
    for (size_t i = 0; i < paths->count; i++)
        if (paths->items[i].index == index && paths->items[i].watched == TL_TS_NONE &&
            tree_within(path, paths->items[i].path, delimiter))
            return true;
    return false;
}

/* Returns: the element of exactly this path; NULL: none. */
static const struct empty_path *find(const struct empty_paths *paths, uint32_t index, struct slice path)
{
    for (size_t i = 0; i < paths->count; i++)
        if (paths->items[i].index == index && slice_equal(paths->items[i].path, path))
            return &paths->items[i];
    return NULL;
}

static void drop(struct empty_paths *paths, size_t i)
{
    mem_free((void *)(uintptr_t)paths->items[i].path.data);
    paths->items[i] = paths->items[--paths->count];
}

static void put(struct empty_paths *paths, const struct empty_path *element)
{
    const struct empty_path *existing = find(paths, element->index, element->path);
    if (existing != NULL)
        drop(paths, (size_t)(existing - paths->items));
    if (paths->count == EMPTY_PATHS_MAX)
        drop(paths, paths->next_replaced++);
    paths->next_replaced %= EMPTY_PATHS_MAX;
    struct empty_path *put = &paths->items[paths->count++];
    *put = *element;
    put->path = slice_make(mem_dup(element->path.data, element->path.len), element->path.len);
}

void empty_paths_add(struct empty_paths *paths, uint32_t index, struct slice path, char delimiter)
{
    if (path.len > 0 && !empty_paths_contains(paths, index, path, delimiter))
        put(paths, &(struct empty_path){index, delimiter, path, TL_TS_NONE});
}

void empty_paths_watch(struct empty_paths *paths, uint32_t index, struct slice path, char delimiter, tl_ts ts)
{
    if (path.len > 0 && ts != TL_TS_NONE && find(paths, index, path) == NULL) /* an earlier watch is better */
        put(paths, &(struct empty_path){index, delimiter, path, ts});
}

bool empty_paths_unchanged_since(const struct empty_paths *paths, uint32_t index, struct slice path, tl_ts ts)
{
    const struct empty_path *element = find(paths, index, path);
    return element != NULL && element->watched <= ts;
}

void empty_paths_invalidate(struct empty_paths *paths, uint32_t index, struct slice path)
{
    for (size_t i = paths->count; i-- > 0;) {
        const struct empty_path *element = &paths->items[i];
        if (element->index == index && (tree_within(path, element->path, element->delimiter) ||
                                        tree_within(element->path, path, element->delimiter)))
            drop(paths, i);
    }
}

void empty_paths_clear(struct empty_paths *paths)
{
    while (paths->count > 0)
        drop(paths, paths->count - 1);
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

enum { ELEMENT_BYTES_MIN = 5 }; /* index, delimiter, a path of one byte, the time of its watch */

static void codec_element(struct codec *codec, struct empty_path *element)
{
    uint64_t index = element->index;
    uint8_t delimiter = (uint8_t)element->delimiter;

    codec_number(codec, &index);
    codec_require(codec, index <= UINT32_MAX);
    codec_byte(codec, &delimiter);
    codec_bytes(codec, &element->path);
    codec_number(codec, &element->watched);
    codec_require(codec, codec->bad || element->path.len > 0);
    if (!codec_reads(codec))
        return;
    element->index = (uint32_t)index;
    element->delimiter = (char)delimiter;
}

void empty_paths__codec(struct codec *codec, struct empty_paths *paths)
{
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
        codec_require(codec, find(paths, element.index, element.path) == NULL);
        element.path = slice_make(mem_dup(element.path.data, element.path.len), element.path.len);
        paths->items[paths->count++] = element;
    }
}
