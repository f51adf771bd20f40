/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean".
 */
#include "base/suggest.h"

#include <stdlib.h>

struct suggestion {
    double similarity;
    struct slice name;
};

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static size_t edit_distance(struct slice a, struct slice b)
{
    size_t row[SUGGEST_BYTES_MAX + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a.data[i - 1] != b.data[j - 1]));
            diagonal = above;
        }
    }
    return row[b.len];
}

double suggest_similarity(struct slice a, struct slice b)
{
    if (a.len > SUGGEST_BYTES_MAX || b.len > SUGGEST_BYTES_MAX)
        return 0;
    size_t longer = a.len > b.len ? a.len : b.len;
    return longer == 0 ? 1 : 1 - (double)edit_distance(a, b) / (double)longer;
}

static int suggestion_order(const void *left, const void *right)
{
    const struct suggestion *a = left;
    const struct suggestion *b = right;
    if (a->similarity != b->similarity)
        return a->similarity < b->similarity ? 1 : -1;
    return slice_compare(a->name, b->name);
}

void suggest_append(struct buf *buf, const char *lead, struct slice name, const struct slice *candidates, size_t count)
{
    struct suggestion *near = mem_alloc((count + 1) * sizeof *near);
    size_t near_count = 0;
    for (size_t i = 0; i < count; i++) {
        double similarity = suggest_similarity(name, candidates[i]);
        if (similarity > SUGGEST_SIMILARITY_MIN)
            near[near_count++] = (struct suggestion){similarity, candidates[i]};
    }
    qsort(near, near_count, sizeof *near, suggestion_order);
    if (near_count > 0)
        buf_printf(buf, "%s did you mean %s[", lead, near_count == 1 ? "" : "any of ");
    for (size_t i = 0; i < near_count; i++) {
        if (i > 0)
            buf_lit(buf, ", ");
        buf_slice(buf, near[i].name);
    }
    if (near_count > 0)
        buf_lit(buf, "]?");
    mem_free(near);
}
