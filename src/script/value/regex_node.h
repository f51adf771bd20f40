/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled form of a regex: nodes linked to their successors; shared by regex.c and
 * regex_match.c.
 */
#ifndef TL_SCRIPT_REGEX_NODE_H
#define TL_SCRIPT_REGEX_NODE_H

#include "script/value/regex.h"

enum regex_kind {
    REGEX_ACCEPT,
    REGEX_CHAR,
    REGEX_SET,
    REGEX_LINE_START,
    REGEX_LINE_END,
    REGEX_INPUT_START,
    REGEX_INPUT_END,
    REGEX_INPUT_END_LINE, /* \Z: before a last line break, too */
    REGEX_WORD_EDGE,
    REGEX_NOT_WORD_EDGE,
    REGEX_OPEN, /* group `index` begins */
    REGEX_CLOSE,
    REGEX_BACK,     /* back reference to capture group `index` */
    REGEX_EITHER,   /* body, or `other` */
    REGEX_MANY,     /* body (one unit wide) min to max times */
    REGEX_LOOP,     /* body min to max times; counter `index` */
    REGEX_LOOP_END, /* back to `other`, the loop */
    REGEX_LOOK,     /* body must match at this position (look-ahead) or end at it (look-behind); negated */
    REGEX_ATOMIC,   /* body, without backtracking into it */
};

enum regex_greed { REGEX_GREEDY, REGEX_RELUCTANT, REGEX_POSSESSIVE };

struct regex_range {
    uint16_t low, high;
};

/* Sorted and neither overlapping nor adjacent, so that a binary search finds a unit. */
struct regex_set {
    unsigned count;
    const struct regex_range *ranges;
};

struct regex_node {
    enum regex_kind kind;
    uint16_t unit;
    bool ignore_case, multiline, negated, behind;
    enum regex_greed greed;
    unsigned index;
    uint32_t min, max; /* max UINT32_MAX: no bound */
    const struct regex_set *set;
    struct regex_node *body;
    struct regex_node *other;
    struct regex_node *next;
};

bool regex_unit_matches(const struct regex_node *node, uint16_t unit);

#endif
