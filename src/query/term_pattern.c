/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns for a single value: prefixes, wildcards and fuzzy terms. Regular expressions are in
 * regexp.c.
 *
 * A character is a code point. A byte that is not valid UTF-8 counts as one character.
 */
#include "query/term_pattern.h"

#include "base/check.h"
#include "json/filter.h"

/* Returns: the code point at *at. Advances *at beyond it. */
static uint32_t next_point(struct slice text, size_t *at)
{
    const unsigned char *s = (const unsigned char *)text.data + *at;
    size_t left = text.len - *at;
    size_t len = s[0] < 0x80                 ? 1
                 : s[0] >= 0xf0 && left >= 4 ? 4
                 : s[0] >= 0xe0 && left >= 3 ? 3
                 : s[0] >= 0xc0 && left >= 2 ? 2
                                             : 1;
    *at += len;
    if (len == 1)
        return s[0];
    uint32_t point = s[0] & (0x7f >> len);
    for (size_t i = 1; i < len; i++)
        point = point << 6 | (s[i] & 0x3f);
    return point;
}

uint32_t term_pattern__next_code_point(struct slice text, size_t *at)
{
    return next_point(text, at);
}

static uint32_t fold(uint32_t point, bool case_insensitive)
{
    return case_insensitive && point >= 'A' && point <= 'Z' ? point + 32 : point;
}

const struct term_pattern *term_pattern_new(struct arena *arena, struct slice text, bool case_insensitive)
{
    struct term_pattern *pattern = arena_zalloc(arena, sizeof *pattern);
    pattern->text = text;
    pattern->case_insensitive = case_insensitive;
    return pattern;
}

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

bool term_pattern_prefix(const struct term_pattern *pattern, struct slice text, struct account *account)
{
    (void)account_take(account, pattern->text.len / 16);
    if (!pattern->case_insensitive)
        return slice_starts_with(text, pattern->text);
    size_t i = 0, j = 0;
    while (i < pattern->text.len) {
        if (j >= text.len || fold(next_point(pattern->text, &i), true) != fold(next_point(text, &j), true))
            return false;
    }
    return true;
}

static bool is_literal(const struct term_pattern *pattern)
{
    struct slice text = pattern->text;
    return !pattern->case_insensitive && memchr(text.data, '?', text.len) == NULL &&
           memchr(text.data, '\\', text.len) == NULL;
}

/*
 * Matches a wildcard pattern: '*' is any characters, '?' is one, '\\' escapes the next. Greedy,
 * with one backtracking point.
 */
bool term_pattern_wildcard(const struct term_pattern *pattern, struct slice text, struct account *account)
{
    if (text.len > 0 && pattern->text.len > 0 && is_literal(pattern)) {
        (void)account_take(account, (text.len + pattern->text.len) / 4);
        return json_wildcard(pattern->text, text);
    }
    struct slice p = pattern->text;
    size_t i = 0, j = 0, star = SIZE_MAX, star_text = 0;
    while (j < text.len) {
        if (!account_take(account, 4))
            return false;
        size_t p_next = i, t_next = j;
        bool literal = false;
        uint32_t want = i < p.len ? next_point(p, &p_next) : 0;
        if (i < p.len && want == '*') {
            star = p_next;
            star_text = j;
            i = p_next;
            continue;
        }
        if (i < p.len && want == '\\' && p_next < p.len) {
            want = next_point(p, &p_next);
            literal = true;
        }
        uint32_t got = next_point(text, &t_next);
        if (i < p.len && ((want == '?' && !literal) ||
                          fold(want, pattern->case_insensitive) == fold(got, pattern->case_insensitive))) {
            i = p_next;
            j = t_next;
        } else if (star != SIZE_MAX) {
            next_point(text, &star_text);
            i = star;
            j = star_text;
        } else {
            return false;
        }
    }
    while (i < p.len && p.data[i] == '*')
        i++;
    return i == p.len;
}

struct slice term_pattern_literal_prefix(const struct term_pattern *pattern, bool wildcard)
{
    if (pattern->case_insensitive)
        return SLICE_LIT("");
    size_t len = 0;
    while (len < pattern->text.len && !(wildcard && strchr("*?\\", pattern->text.data[len]) != NULL))
        len++;
    return (struct slice){pattern->text.data, len};
}

/* --- Fuzzy -------------------------------------------------------------------------------------------------------- */

enum { FUZZY_POINTS_MAX = 256 };

static size_t split_points(struct slice text, uint32_t points[FUZZY_POINTS_MAX])
{
    size_t count = 0;
    for (size_t at = 0; at < text.len && count < FUZZY_POINTS_MAX;)
        points[count++] = next_point(text, &at);
    return count;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/*
 * Returns: the optimal string alignment distance, as Lucene's automata define it; above `limit` any
 * value greater than it. Without `transpositions` the Levenshtein distance.
 */
static unsigned distance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count, bool transpositions,
                         unsigned limit)
{
    unsigned rows[3][FUZZY_POINTS_MAX + 1];
    for (size_t j = 0; j <= b_count; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_count; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        unsigned smallest = row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_count; j++) {
            row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (transpositions && i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
            smallest = least(smallest, row[j]);
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
           distance(a, a_count, b, b_count, pattern->transpositions, pattern->edits) <= pattern->edits;
}
