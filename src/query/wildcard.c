/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wildcard queries: '*' is any characters, '?' is one, '\\' escapes the next. A character is a code
 * point. Patterns of names have '*' only, see json_wildcard() (json/filter.h).
 */
#include "json/filter.h"
#include "query/term_pattern.h"

/* Returns: whether json_wildcard() matches as this pattern does. */
static bool has_only_stars(const struct term_pattern *pattern)
{
    struct slice text = pattern->text;
    return !pattern->case_insensitive && memchr(text.data, '?', text.len) == NULL &&
           memchr(text.data, '\\', text.len) == NULL;
}

/* Greedy, with one backtracking point. */
bool term_pattern_wildcard(const struct term_pattern *pattern, struct slice text, struct account *account)
{
    if (text.len > 0 && pattern->text.len > 0 && has_only_stars(pattern)) {
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
        uint32_t want = i < p.len ? term_pattern__next_code_point(p, &p_next) : 0;
        if (i < p.len && want == '*') {
            star = p_next;
            star_text = j;
            i = p_next;
            continue;
        }
        if (i < p.len && want == '\\' && p_next < p.len) {
            want = term_pattern__next_code_point(p, &p_next);
            literal = true;
        }
        uint32_t got = term_pattern__next_code_point(text, &t_next);
        if (i < p.len && ((want == '?' && !literal) || term_pattern__fold(want, pattern->case_insensitive) ==
                                                           term_pattern__fold(got, pattern->case_insensitive))) {
            i = p_next;
            j = t_next;
        } else if (star != SIZE_MAX) {
            term_pattern__next_code_point(text, &star_text);
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
