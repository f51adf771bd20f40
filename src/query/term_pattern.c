/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns for a single value, and prefixes. Wildcards are in wildcard.c, fuzzy terms in fuzzy.c,
 * regular expressions in regexp.c.
 */
#include "query/term_pattern.h"

const struct term_pattern *term_pattern_new(struct arena *arena, struct slice text, bool case_insensitive)
{
    struct term_pattern *pattern = arena_zalloc(arena, sizeof *pattern);
    pattern->text = text;
    pattern->case_insensitive = case_insensitive;
    return pattern;
}

bool term_pattern_prefix(const struct term_pattern *pattern, struct slice text, struct account *account)
{
    (void)account_take(account, pattern->text.len / 16);
    if (!pattern->case_insensitive)
        return slice_starts_with(text, pattern->text);
    size_t i = 0, j = 0;
    while (i < pattern->text.len) {
        if (j >= text.len || term_pattern__fold(term_pattern__next_code_point(pattern->text, &i), true) !=
                                 term_pattern__fold(term_pattern__next_code_point(text, &j), true))
            return false;
    }
    return true;
}

struct slice term_pattern_literal_prefix(const struct term_pattern *pattern, bool wildcard)
{
    if (pattern->case_insensitive)
        return SLICE_LIT("");
    size_t len = 0;
    while (len < pattern->text.len && !(wildcard && byte_is_one_of(pattern->text.data[len], "*?\\")))
        len++;
    return (struct slice){pattern->text.data, len};
}
