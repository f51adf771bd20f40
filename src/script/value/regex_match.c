/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching by backtracking: one step a node, one frame a choice; both are bounded by the run.
 */
#include "script/value/regex_node.h"

#include "base/check.h"
#include "script/value/seq.h"

struct loop_state {
    uint32_t count;
    int64_t at; /* where this iteration began: an empty iteration ends the loop */
};

struct attempt {
    struct run *run;
    struct regex_matcher *matcher;
    struct loop_state *loops;
    bool whole;       /* must end at the region's end */
    int64_t end;      /* where the accepted match ended */
    int64_t must_end; /* -1, or the only index at which a look-behind may end */
};

enum outcome { NO_MATCH, MATCH, THREW };

static enum outcome match_node(struct attempt *attempt, const struct regex_node *node, int64_t at);

static uint16_t unit_at(const struct attempt *attempt, int64_t at)
{
    return text_at(attempt->matcher->input, (size_t)at);
}

static bool is_word(const struct attempt *attempt, int64_t at)
{
    if (at < 0 || at >= attempt->matcher->input->length)
        return false;
    uint16_t c = unit_at(attempt, at);
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_break(uint16_t c)
{
    return c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/* Tests a zero-width assertion. */
static bool holds_at(const struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    const struct regex_matcher *matcher = attempt->matcher;
    switch (node->kind) {
    case REGEX_INPUT_START: return at == matcher->from;
    case REGEX_INPUT_END: return at == matcher->to;
    case REGEX_INPUT_END_LINE:
        return at == matcher->to || (at == matcher->to - 1 && is_break(unit_at(attempt, at))) ||
               (at == matcher->to - 2 && unit_at(attempt, at) == '\r' && unit_at(attempt, at + 1) == '\n');
    case REGEX_LINE_START: return at == matcher->from || (at < matcher->to && is_break(unit_at(attempt, at - 1)));
    case REGEX_LINE_END: return at == matcher->to || is_break(unit_at(attempt, at));
    case REGEX_WORD_EDGE: return is_word(attempt, at - 1) != is_word(attempt, at);
    case REGEX_NOT_WORD_EDGE: return is_word(attempt, at - 1) == is_word(attempt, at);
    default: UNREACHABLE(); return false;
    }
}

static enum outcome match_deeper(struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    if (!run_enter(attempt->run, 1))
        return THREW;
    enum outcome outcome = match_node(attempt, node, at);
    run_leave(attempt->run, 1);
    return outcome;
}

static enum outcome match_group(struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    int32_t *bound = &attempt->matcher->groups[node->index * 2 + (node->kind == REGEX_CLOSE)];
    int32_t *begin = &attempt->matcher->groups[node->index * 2], old_begin = *begin, old = *bound;
    int32_t *open = &attempt->matcher->open[node->index], old_open = *open;
    if (node->kind == REGEX_OPEN) {
        *open = (int32_t)at;
    } else {
        *begin = *open;
        *bound = (int32_t)at;
    }
    enum outcome outcome = match_deeper(attempt, node->next, at);
    if (outcome == NO_MATCH) {
        *open = old_open;
        if (node->kind == REGEX_CLOSE) {
            *bound = old;
            *begin = old_begin;
        }
    }
    return outcome;
}

static enum outcome match_many(struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    int64_t count = 0, most = attempt->matcher->to - at;
    if (node->max < most)
        most = node->max;
    int64_t wanted = node->greed == REGEX_RELUCTANT ? node->min : most;
    while (count < wanted && count < most && regex_unit_matches(node->body, unit_at(attempt, at + count)))
        count++;
    if (!run_step(attempt->run, (uint64_t)count / 4 + 1))
        return THREW;
    if (count < (int64_t)node->min)
        return NO_MATCH;
    for (;;) {
        enum outcome outcome = match_deeper(attempt, node->next, at + count);
        if (outcome != NO_MATCH || node->greed == REGEX_POSSESSIVE)
            return outcome;
        if (!run_step(attempt->run, 1))
            return THREW;
        if (node->greed == REGEX_GREEDY && --count < (int64_t)node->min)
            return NO_MATCH;
        if (node->greed == REGEX_RELUCTANT &&
            (count >= most || !regex_unit_matches(node->body, unit_at(attempt, at + count++))))
            return NO_MATCH;
    }
}

/* At the head of a loop: matches another iteration or what follows, in the order of the quantifier. */
static enum outcome match_iteration(struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    struct loop_state *state = &attempt->loops[node->index], old = *state;
    bool empty = old.count > node->min && at == old.at;
    bool may_repeat = old.count < node->max && !empty;
    enum outcome outcome = NO_MATCH;
    for (unsigned side = 0; side < 2 && outcome == NO_MATCH; side++) {
        bool repeat = (side == 0) == (node->greed == REGEX_GREEDY);
        if (repeat && may_repeat) {
            *state = (struct loop_state){old.count + 1, at};
            outcome = match_deeper(attempt, node->body, at);
        } else if (!repeat && old.count >= node->min) {
            outcome = match_deeper(attempt, node->next, at);
        }
        if (outcome == NO_MATCH)
            *state = old;
    }
    return outcome;
}

static enum outcome match_loop(struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    struct loop_state *state = &attempt->loops[node->index], outer = *state;
    *state = (struct loop_state){0, -1};
    enum outcome outcome = match_iteration(attempt, node, at);
    if (outcome == NO_MATCH)
        *state = outer;
    return outcome;
}

/* Matches a subexpression separately; *ret_end is where it ended. */
static enum outcome match_apart(struct attempt *attempt, const struct regex_node *body, int64_t at, int64_t must_end,
                                int64_t *ret_end)
{
    struct attempt apart = *attempt;
    apart.whole = false;
    apart.must_end = must_end;
    enum outcome outcome = match_deeper(&apart, body, at);
    *ret_end = apart.end;
    return outcome;
}

static enum outcome match_look(struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    int64_t ignored;
    enum outcome outcome = NO_MATCH;
    if (!node->behind)
        outcome = match_apart(attempt, node->body, at, -1, &ignored);
    for (int64_t begin = at; node->behind && begin >= attempt->matcher->from && outcome == NO_MATCH; begin--)
        outcome = match_apart(attempt, node->body, begin, at, &ignored);
    if (outcome == THREW)
        return THREW;
    return (outcome == MATCH) != node->negated ? match_node(attempt, node->next, at) : NO_MATCH;
}

static uint64_t group_length(const struct attempt *attempt, const struct regex_node *node)
{
    const int32_t *group = &attempt->matcher->groups[node->index * 2];
    return group[0] < 0 || group[1] < group[0] ? 0 : (uint64_t)(group[1] - group[0]);
}

static bool back_reference(const struct attempt *attempt, const struct regex_node *node, int64_t *at)
{
    int32_t begin = attempt->matcher->groups[node->index * 2], end = attempt->matcher->groups[node->index * 2 + 1];
    if (begin < 0 || *at + (end - begin) > attempt->matcher->to)
        return false;
    for (int32_t i = begin; i < end; i++, (*at)++) {
        struct regex_node as_char = {.kind = REGEX_CHAR, .unit = unit_at(attempt, i), .ignore_case = node->ignore_case};
        if (!regex_unit_matches(&as_char, unit_at(attempt, *at)))
            return false;
    }
    return true;
}

static enum outcome match_node(struct attempt *attempt, const struct regex_node *node, int64_t at)
{
    enum outcome outcome;
    for (;;) {
        if (!run_step(attempt->run, 1))
            return THREW;
        switch (node->kind) {
        case REGEX_ACCEPT:
            if ((attempt->whole && at != attempt->matcher->to) || (attempt->must_end >= 0 && at != attempt->must_end))
                return NO_MATCH;
            attempt->end = at;
            return MATCH;
        case REGEX_CHAR:
        case REGEX_SET:
            if (at >= attempt->matcher->to || !regex_unit_matches(node, unit_at(attempt, at)))
                return NO_MATCH;
            at++;
            break;
        case REGEX_OPEN:
        case REGEX_CLOSE: return match_group(attempt, node, at);
        case REGEX_BACK:
            if (!run_step(attempt->run, group_length(attempt, node) / 4))
                return THREW;
            if (!back_reference(attempt, node, &at))
                return NO_MATCH;
            break;
        case REGEX_EITHER:
            if (node->body == NULL)
                break;
            outcome = match_deeper(attempt, node->body, at);
            if (outcome != NO_MATCH)
                return outcome;
            node = node->other;
            continue;
        case REGEX_MANY: return match_many(attempt, node, at);
        case REGEX_LOOP: return match_loop(attempt, node, at);
        case REGEX_LOOP_END: return match_iteration(attempt, node->other, at);
        case REGEX_LOOK: return match_look(attempt, node, at);
        case REGEX_ATOMIC:
            outcome = match_apart(attempt, node->body, at, -1, &at);
            if (outcome != MATCH)
                return outcome;
            break;
        default:
            if (!holds_at(attempt, node, at))
                return NO_MATCH;
        }
        node = node->next;
    }
}

struct regex_matcher *regex_matcher_new(struct run *run, const struct regex *pattern, struct text *input)
{
    struct regex_matcher *matcher = run_object(run, sizeof *matcher, CLASS_MATCHER);
    matcher->pattern = pattern;
    matcher->input = input;
    matcher->to = input->length;
    matcher->last_end = -1;
    return matcher;
}

bool regex_matcher_match_at(struct run *run, struct regex_matcher *matcher, int64_t at, bool whole, bool *ret_found)
{
    size_t size = (matcher->pattern->counters + 1) * sizeof(struct loop_state);
    struct loop_state *loops = run_alloc_large(run, size);
    if (loops == NULL)
        return false;
    struct attempt attempt = {.run = run, .matcher = matcher, .loops = loops, .whole = whole, .must_end = -1};
    memset(loops, 0, size);
    memset(matcher->groups, 0xff, sizeof matcher->groups);
    enum outcome outcome = match_node(&attempt, matcher->pattern->start, at);
    matcher->matched = *ret_found = outcome == MATCH;
    matcher->groups[0] = (int32_t)at;
    matcher->groups[1] = (int32_t)attempt.end;
    return outcome != THREW;
}

bool regex_matcher_find(struct run *run, struct regex_matcher *matcher, bool *ret_found)
{
    int64_t at = matcher->last_end < 0 ? matcher->from : matcher->last_end;
    /* After an empty match advance by one. */
    if (matcher->last_end >= 0 && matcher->matched && matcher->groups[0] == matcher->groups[1])
        at++;
    *ret_found = false;
    for (; at <= matcher->to; at++) {
        if (!regex_matcher_match_at(run, matcher, at, false, ret_found))
            return false;
        if (*ret_found) {
            matcher->last_end = matcher->groups[1];
            return true;
        }
    }
    matcher->matched = false;
    matcher->last_end = matcher->to + 1;
    return true;
}

bool regex_matcher_group(struct run *run, const struct regex_matcher *matcher, unsigned group, struct value *ret)
{
    int32_t begin = matcher->groups[group * 2], end = matcher->groups[group * 2 + 1];
    *ret = VALUE_NONE;
    if (begin >= 0)
        *ret = value_of(text_substring(run, matcher->input, (size_t)begin, (size_t)end));
    return begin < 0 || ret->object != NULL;
}

struct array *regex_split(struct run *run, const struct regex *pattern, struct text *text, int64_t limit)
{
    struct regex_matcher *matcher = regex_matcher_new(run, pattern, text);
    struct seq *parts = seq_new(run, CLASS_ARRAY_LIST, 0);
    size_t done = 0;
    for (bool found = true; found && (limit <= 0 || (int64_t)parts->count < limit - 1);) {
        if (!regex_matcher_find(run, matcher, &found))
            return NULL;
        /* An empty match at the start does not split. */
        if (!found || (matcher->groups[1] == 0 && matcher->groups[0] == 0))
            continue;
        struct text *part = text_substring(run, text, done, (size_t)matcher->groups[0]);
        if (part == NULL || !seq_add(run, parts, value_of(part)))
            return NULL;
        done = (size_t)matcher->groups[1];
    }
    struct text *rest = text_substring(run, text, done, text->length);
    if (rest == NULL || !seq_add(run, parts, value_of(rest)))
        return NULL;
    size_t count = parts->count;
    while (limit == 0 && count > 1 && ((struct text *)seq_item(parts, count - 1).object)->length == 0)
        count--;
    if (limit == 0 && count == 1 && text->length > 0 && rest->length == 0 && parts->count > 1 &&
        ((struct text *)seq_item(parts, 0).object)->length == 0)
        count = 0;
    struct array *array = array_new(run, CLASS_STRING, (int64_t)count);
    for (size_t i = 0; array != NULL && i < count; i++)
        array->items[i] = seq_item(parts, i);
    return array;
}
