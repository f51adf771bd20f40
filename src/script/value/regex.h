/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions as java.util.regex has them, matched by backtracking under the step budget.
 *
 * Supported: literals and escapes, classes with ranges, negation, intersection and \d \w \s
 * \p{Lower} and the like, groups (capturing, named, not capturing), alternatives, greedy, reluctant
 * and possessive repetition, anchors, word boundaries, back references, look-ahead and look-behind
 * of bounded length, and the flags i m s x u. Anything else is refused when the pattern is
 * compiled.
 */
#ifndef TL_SCRIPT_REGEX_H
#define TL_SCRIPT_REGEX_H

#include "script/value/text.h"

#define REGEX_GROUPS_MAX 32
#define REGEX_NODES_MAX 4096

enum regex_flag {
    REGEX_IGNORE_CASE = 2,
    REGEX_COMMENTS = 4,
    REGEX_MULTILINE = 8,
    REGEX_LITERAL = 16,
    REGEX_DOTALL = 32,
    REGEX_UNICODE_CASE = 64,
};

struct regex_node;

struct regex {
    struct object object; /* CLASS_PATTERN */
    struct text *source;
    int flags;
    const struct regex_node *start;
    unsigned groups; /* capturing ones, the whole match not counted */
    unsigned counters;
    const struct regex_name *names;
};

struct regex_name {
    const struct regex_name *next;
    struct slice name;
    unsigned group;
};

struct regex_matcher {
    struct object object; /* CLASS_MATCHER */
    const struct regex *pattern;
    struct text *input;
    int64_t from, to; /* the region */
    int64_t append;   /* start of the text that appendReplacement copies next */
    int64_t last_end; /* where the last find ended; -1 before the first */
    bool matched;
    int32_t groups[(REGEX_GROUPS_MAX + 1) * 2]; /* begin and end of each; -1: none */
    int32_t open[REGEX_GROUPS_MAX + 1];         /* start of a capture group that is not closed yet */
};

/*
 * Compiles a pattern into `arena`.
 * Returns: NULL if it is malformed or not supported, with *ret_error (a static text) and *ret_index in the pattern.
 */
struct regex *regex_compile(struct arena *arena, struct text *source, int flags, const char **ret_error,
                            size_t *ret_index);

/* Compiles during a run. Returns: NULL with a PatternSyntaxException. */
struct regex *regex_new(struct run *run, struct text *source, int flags);
/* Parses the flags of a Painless literal. Returns: false with an unknown letter in *ret_letter. */
bool regex_flags(struct slice letters, int *ret_flags, char *ret_letter);

struct regex_matcher *regex_matcher_new(struct run *run, const struct regex *pattern, struct text *input);
/*
 * Search from the last match; match at `at`, `whole`: up to the region's end. Set `matched` and the
 * groups. Return: false with a throwable.
 */
bool regex_matcher_find(struct run *run, struct regex_matcher *matcher, bool *ret_found);
bool regex_matcher_match_at(struct run *run, struct regex_matcher *matcher, int64_t at, bool whole, bool *ret_found);

/* Sets the text of a capture group; null without one. Returns: false with a throwable. */
bool regex_matcher_group(struct run *run, const struct regex_matcher *matcher, unsigned group, struct value *ret);

/* Java's split: an array of texts; empty ones at the end are dropped when `limit` is 0. */
struct array *regex_split(struct run *run, const struct regex *pattern, struct text *text, int64_t limit);

#endif
