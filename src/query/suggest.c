/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suggests similar names for "did you mean": those with a Levenshtein similarity above 0.5, the
 * most similar first.
 */
#include "query/query.h"

#include "base/buf.h"

#include <stdlib.h>

enum { NAME_BYTES_MAX = 64, NAMES_MAX = 128 };

struct near_name {
    float similarity;
    const char *name;
};

static float name_similarity(struct slice a, struct slice b)
{
    unsigned row[NAME_BYTES_MAX + 1];
    if (a.len > NAME_BYTES_MAX || b.len > NAME_BYTES_MAX || a.len == 0 || b.len == 0)
        return 0;
    for (size_t j = 0; j <= b.len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned best = diagonal + (a.data[i - 1] != b.data[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    size_t longer = a.len > b.len ? a.len : b.len;
    return 1.0f - (float)row[b.len] / (float)longer;
}

static int compare_near_names(const void *left, const void *right)
{
    const struct near_name *a = left;
    const struct near_name *b = right;
    if (a->similarity != b->similarity)
        return a->similarity > b->similarity ? -1 : 1;
    return strcmp(a->name, b->name);
}

struct slice query_suggest(struct arena *arena, struct slice name, const char *const *candidates, size_t count)
{
    struct near_name found[NAMES_MAX];
    size_t found_count = 0;
    for (size_t i = 0; i < count && found_count < NAMES_MAX; i++) {
        float s = name_similarity(name, slice_from(candidates[i]));
        if (s > 0.5f)
            found[found_count++] = (struct near_name){s, candidates[i]};
    }
    if (found_count == 0)
        return SLICE_LIT("");
    qsort(found, found_count, sizeof *found, compare_near_names);
    if (found_count == 1)
        return arena_printf(arena, " did you mean [%s]?", found[0].name);
    struct slice text = arena_printf(arena, " did you mean any of [%s", found[0].name);
    for (size_t i = 1; i < found_count; i++)
        text = arena_printf(arena, "%.*s, %s", SLICE_ARG(text), found[i].name);
    return arena_printf(arena, "%.*s]?", SLICE_ARG(text));
}
