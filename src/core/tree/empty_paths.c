/* SPDX-License-Identifier: Apache-2.0 */
/* Paths at which nothing lies; see empty_paths.h. */
#include "core/tree/empty_paths.h"

#include "base/alloc.h"
#include "core/tree/tree.h"

bool empty_paths_contains(const struct empty_paths *places, uint32_t index, struct slice path, char delimiter)
{
    for (size_t i = 0; i < places->count; i++)
        if (places->items[i].index == index && places->items[i].watched == TL_TS_NONE &&
            tree_within(path, places->items[i].path, delimiter))
            return true;
    return false;
}

/* Returns: where a path is told of; NULL: nowhere. */
static const struct empty_path *find(const struct empty_paths *places, uint32_t index, struct slice path)
{
    for (size_t i = 0; i < places->count; i++)
        if (places->items[i].index == index && slice_equal(places->items[i].path, path))
            return &places->items[i];
    return NULL;
}

static void drop(struct empty_paths *places, size_t i)
{
    mem_free((void *)(uintptr_t)places->items[i].path.data);
    places->items[i] = places->items[--places->count];
}

static void put(struct empty_paths *places, const struct empty_path *place)
{
    const struct empty_path *before = find(places, place->index, place->path);
    if (before != NULL)
        drop(places, (size_t)(before - places->items));
    if (places->count == EMPTY_PATHS_MAX)
        drop(places, places->turn++ % EMPTY_PATHS_MAX);
    struct empty_path *put = &places->items[places->count++];
    *put = *place;
    put->path = slice_make(mem_dup(place->path.data, place->path.len), place->path.len);
}

void empty_paths_add(struct empty_paths *places, uint32_t index, struct slice path, char delimiter)
{
    if (path.len > 0 && !empty_paths_contains(places, index, path, delimiter))
        put(places, &(struct empty_path){index, delimiter, path, TL_TS_NONE});
}

void empty_paths_watch(struct empty_paths *places, uint32_t index, struct slice path, char delimiter, tl_ts ts)
{
    if (path.len > 0 && ts != TL_TS_NONE && find(places, index, path) == NULL) /* since earlier is better */
        put(places, &(struct empty_path){index, delimiter, path, ts});
}

bool empty_paths_unchanged_since(const struct empty_paths *places, uint32_t index, struct slice path, tl_ts ts)
{
    const struct empty_path *place = find(places, index, path);
    return place != NULL && place->watched <= ts;
}

void empty_paths_invalidate(struct empty_paths *places, uint32_t index, struct slice path)
{
    for (size_t i = places->count; i-- > 0;) {
        const struct empty_path *place = &places->items[i];
        if (place->index == index &&
            (tree_within(path, place->path, place->delimiter) || tree_within(place->path, path, place->delimiter)))
            drop(places, i);
    }
}

void empty_paths_clear(struct empty_paths *places)
{
    while (places->count > 0)
        drop(places, places->count - 1);
}
