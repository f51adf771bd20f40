/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzy terms: texts within an edit distance of a term, in code points. */
#include "query/term_pattern.h"

const struct term_pattern *term_pattern_new_fuzzy(struct arena *arena, struct slice text, unsigned edits,
                                                  unsigned prefix_length, bool transpositions)
{
    struct term_pattern *pattern = arena_zalloc(arena, sizeof *pattern);
    pattern->text = text;
    pattern->edits = edits;
    pattern->prefix_length = prefix_length;
    pattern->transpositions = transpositions;
    return pattern;
}

enum { FUZZY_POINTS_MAX = 256 };

static size_t split_points(struct slice text, uint32_t points[FUZZY_POINTS_MAX])
{
    size_t count = 0;
    for (size_t at = 0; at < text.len && count < FUZZY_POINTS_MAX;)
        points[count++] = term_pattern__next_code_point(text, &at);
    return count;
}

static unsigned lesser(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/*
 * Returns: the optimal string alignment distance, as Lucene's automata define it; above `limit` any
 * value greater than it. Without `transpositions` the Levenshtein distance.
 */
static unsigned edit_distance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count, bool transpositions,
                              unsigned limit)
{
    unsigned rows[3][FUZZY_POINTS_MAX + 1];
    for (size_t j = 0; j <= b_count; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_count; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        unsigned smallest = row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_count; j++) {
            row[j] = lesser(lesser(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (transpositions && i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = lesser(row[j], before[j - 2] + 1);
            smallest = lesser(smallest, row[j]);
        }
        if (smallest > limit)
            return smallest;
    }
    return rows[a_count % 3][b_count];
}

bool term_pattern_fuzzy(const struct term_pattern *pattern, struct slice text, struct account *account)
{
    uint32_t a[FUZZY_POINTS_MAX], b[FUZZY_POINTS_MAX];
    if (pattern->text.len > FUZZY_POINTS_MAX || text.len > FUZZY_POINTS_MAX * 4u)
        return slice_equal(pattern->text, text);
    size_t a_count = split_points(pattern->text, a), b_count = split_points(text, b);
    for (size_t i = 0; i < pattern->prefix_length && i < a_count; i++) {
        if (i >= b_count || a[i] != b[i])
            return false;
    }
    (void)account_take(account, a_count * b_count);
    size_t apart = a_count > b_count ? a_count - b_count : b_count - a_count;
    return apart <= pattern->edits &&
           edit_distance(a, a_count, b, b_count, pattern->transpositions, pattern->edits) <= pattern->edits;
}
