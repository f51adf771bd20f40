/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lucene's regular expressions, anchored at both ends: . ? + * {n,m} | ( ) [ ] [^ ] "…" \x @ #
 *
 * An expression is compiled into a list of states (Thompson's construction). Matching advances all
 * states together, so its time is proportional to states times characters for every expression.
 * Complement, intersection and numeric intervals (~ & <>) are refused.
 */
#include "query/term_pattern.h"

#include "base/check.h"

#define REGEXP_STATES_MAX 4096
#define REGEXP_DEPTH_MAX 100
#define REGEXP_PIECES_MAX 100000

enum state_kind { STATE_POINT, STATE_ANY, STATE_CLASS, STATE_SPLIT, STATE_NOTHING, STATE_END };

struct point_range {
    uint32_t low, high;
};

struct state {
    enum state_kind kind;
    uint32_t point;
    bool negated; /* CLASS */
    const struct point_range *ranges;
    size_t range_count;
    uint32_t next, other; /* indices of states; `other`: SPLIT only */
};

struct regexp {
    struct state *states;
    size_t count;
    size_t capacity;
    uint32_t start;
};

struct regexp_parser {
    struct arena *arena;
    struct slice text;
    size_t at;
    struct regexp *regexp;
    struct slice reason; /* of the first error; data NULL: no error */
    unsigned depth;
    size_t built; /* number of pieces built, including those without a state */
};

/*
 * States are built from the end: a piece receives the state that follows it and returns its first
 * state.
 */
static uint32_t add_state(struct regexp_parser *p, struct state state)
{
    struct regexp *regexp = p->regexp;
    if (regexp->count >= REGEXP_STATES_MAX) {
        p->reason = SLICE_LIT("expression needs too many states");
        return 0;
    }
    regexp->states = arena_grow(p->arena, regexp->states, regexp->count, &regexp->capacity, sizeof(struct state));
    regexp->states[regexp->count] = state;
    return (uint32_t)regexp->count++;
}

/* The syntax tree. It is needed because the body of a repetition is built several times. */
enum piece_kind { PIECE_STATE, PIECE_SEQUENCE, PIECE_CHOICE, PIECE_REPEAT, PIECE_EMPTY };

struct piece {
    enum piece_kind kind;
    struct state state;
    struct piece *left, *right;
    unsigned least, most; /* of a repetition; `most` is UINT32_MAX if unbounded */
};

static struct piece *new_piece(struct regexp_parser *p, enum piece_kind kind, struct piece *left, struct piece *right)
{
    struct piece *piece = arena_zalloc(p->arena, sizeof *piece);
    piece->kind = kind;
    piece->left = left;
    piece->right = right;
    return piece;
}

static bool has_more(const struct regexp_parser *p)
{
    return p->reason.data == NULL && p->at < p->text.len;
}

static struct piece *refuse_regexp(struct regexp_parser *p, const char *reason)
{
    if (p->reason.data == NULL)
        p->reason = arena_printf(p->arena, "%s at position %zu", reason, p->at);
    return new_piece(p, PIECE_EMPTY, NULL, NULL);
}

/* Returns: whether another character follows. The expression is refused otherwise. */
static bool expect_more(struct regexp_parser *p)
{
    if (p->reason.data == NULL && p->at >= p->text.len)
        p->reason = SLICE_LIT("unexpected end-of-string");
    return has_more(p);
}

static struct piece *literal_piece(struct regexp_parser *p, uint32_t point)
{
    struct piece *piece = new_piece(p, PIECE_STATE, NULL, NULL);
    piece->state = (struct state){.kind = STATE_POINT, .point = point};
    return piece;
}

static uint32_t class_point(struct regexp_parser *p)
{
    uint32_t point = expect_more(p) ? term_pattern__next_code_point(p->text, &p->at) : 0;
    return point == '\\' && expect_more(p) ? term_pattern__next_code_point(p->text, &p->at) : point;
}

/* Parses the rest of a character class, after '['. */
static struct piece *parse_class(struct regexp_parser *p)
{
    struct piece *piece = new_piece(p, PIECE_STATE, NULL, NULL);
    struct point_range *ranges = NULL;
    size_t count = 0, capacity = 0;
    piece->state.kind = STATE_CLASS;
    if (has_more(p) && p->text.data[p->at] == '^') {
        piece->state.negated = true;
        p->at++;
    }
    do { /* a bracket in the first place, or after a hyphen, is a character of the class */
        struct point_range range;
        range.low = range.high = class_point(p);
        if (has_more(p) && p->text.data[p->at] == '-') {
            p->at++;
            range.high = class_point(p);
        }
        if (p->reason.data == NULL && range.low > range.high)
            p->reason = arena_printf(p->arena, "invalid range: from (%u) cannot be > to (%u)", range.low, range.high);
        ranges = arena_grow(p->arena, ranges, count, &capacity, sizeof *ranges);
        ranges[count++] = range;
    } while (has_more(p) && p->text.data[p->at] != ']');
    if (!has_more(p))
        return refuse_regexp(p, "expected ']'");
    p->at++;
    piece->state.ranges = ranges;
    piece->state.range_count = count;
    return piece;
}

static struct piece *parse_quoted(struct regexp_parser *p)
{
    struct piece *all = new_piece(p, PIECE_EMPTY, NULL, NULL);
    while (has_more(p) && p->text.data[p->at] != '"')
        all = new_piece(p, PIECE_SEQUENCE, all, literal_piece(p, term_pattern__next_code_point(p->text, &p->at)));
    if (!has_more(p))
        return refuse_regexp(p, "expected '\"'");
    p->at++;
    return all;
}

static struct piece *parse_choice(struct regexp_parser *p);

static struct piece *parse_group(struct regexp_parser *p)
{
    if (++p->depth > REGEXP_DEPTH_MAX)
        return refuse_regexp(p, "too deeply nested");
    struct piece *inner =
        has_more(p) && p->text.data[p->at] == ')' ? new_piece(p, PIECE_EMPTY, NULL, NULL) : parse_choice(p);
    p->depth--;
    if (!has_more(p) || p->text.data[p->at] != ')')
        return refuse_regexp(p, "expected ')'");
    p->at++;
    return inner;
}

static struct piece *any_point(struct regexp_parser *p)
{
    struct piece *piece = new_piece(p, PIECE_STATE, NULL, NULL);
    piece->state.kind = STATE_ANY;
    return piece;
}

static struct piece *any_string(struct regexp_parser *p)
{
    struct piece *piece = new_piece(p, PIECE_REPEAT, any_point(p), NULL);
    piece->most = UINT32_MAX;
    return piece;
}

static struct piece *parse_atom(struct regexp_parser *p)
{
    if (!expect_more(p))
        return new_piece(p, PIECE_EMPTY, NULL, NULL);
    uint32_t point = term_pattern__next_code_point(p->text, &p->at);
    switch (point) {
    case '.': return any_point(p);
    case '@': return any_string(p);
    case '#': {
        struct piece *piece = new_piece(p, PIECE_STATE, NULL, NULL);
        piece->state.kind = STATE_NOTHING;
        return piece;
    }
    case '[': return parse_class(p);
    case '(': return parse_group(p);
    case '"': return parse_quoted(p);
    case '\\':
        return expect_more(p) ? literal_piece(p, term_pattern__next_code_point(p->text, &p->at))
                              : new_piece(p, PIECE_EMPTY, NULL, NULL);
    case '~':
    case '<':
    case '&': return refuse_regexp(p, "the operators ~ & < are not supported");
    default: return literal_piece(p, point);
    }
}

static unsigned parse_number(struct regexp_parser *p)
{
    unsigned number = 0;
    size_t digits = 0;
    for (; has_more(p) && p->text.data[p->at] >= '0' && p->text.data[p->at] <= '9' && digits < 5; digits++)
        number = number * 10 + (unsigned)(p->text.data[p->at++] - '0');
    if (digits == 0)
        refuse_regexp(p, "integer expected");
    return number;
}

static void parse_counts(struct regexp_parser *p, struct piece *repeat)
{
    repeat->least = repeat->most = parse_number(p);
    if (has_more(p) && p->text.data[p->at] == ',') {
        p->at++;
        repeat->most = has_more(p) && p->text.data[p->at] != '}' ? parse_number(p) : UINT32_MAX;
    }
    if (!has_more(p) || p->text.data[p->at] != '}')
        refuse_regexp(p, "expected '}'");
    p->at++;
}

static struct piece *parse_repeat(struct regexp_parser *p)
{
    struct piece *piece = parse_atom(p);
    for (unsigned nesting = 0; has_more(p) && byte_is_one_of(p->text.data[p->at], "?*+{"); nesting++) {
        if (nesting >= REGEXP_DEPTH_MAX)
            return refuse_regexp(p, "too many repetitions");
        char sign = p->text.data[p->at++];
        piece = new_piece(p, PIECE_REPEAT, piece, NULL);
        piece->least = sign == '+';
        piece->most = sign == '?' ? 1 : UINT32_MAX;
        if (sign == '{')
            parse_counts(p, piece);
    }
    return piece;
}

/* No alternative is empty: a bar or bracket in the first place is an ordinary character, as in Lucene. */
static struct piece *parse_sequence(struct regexp_parser *p)
{
    struct piece *all = parse_repeat(p);
    while (has_more(p) && p->text.data[p->at] != '|' && p->text.data[p->at] != ')')
        all = new_piece(p, PIECE_SEQUENCE, all, parse_repeat(p));
    return all;
}

static struct piece *parse_choice(struct regexp_parser *p)
{
    struct piece *all = parse_sequence(p);
    while (has_more(p) && p->text.data[p->at] == '|') {
        p->at++;
        all = new_piece(p, PIECE_CHOICE, all, parse_sequence(p));
    }
    return all;
}

static uint32_t build_states(struct regexp_parser *p, const struct piece *piece, uint32_t next);

static uint32_t build_repeat(struct regexp_parser *p, const struct piece *piece, uint32_t next)
{
    uint32_t start = next;
    if (piece->most == UINT32_MAX) {
        uint32_t loop = add_state(p, (struct state){.kind = STATE_SPLIT, .other = next});
        uint32_t body = build_states(p, piece->left, loop);
        if (p->reason.data != NULL)
            return 0;
        p->regexp->states[loop].next = body;
        start = loop;
    } else {
        for (unsigned i = piece->least; i < piece->most && p->reason.data == NULL; i++)
            start = add_state(
                p, (struct state){.kind = STATE_SPLIT, .next = build_states(p, piece->left, start), .other = next});
    }
    for (unsigned i = 0; i < piece->least && p->reason.data == NULL; i++)
        start = build_states(p, piece->left, start);
    return start;
}

static uint32_t build_states(struct regexp_parser *p, const struct piece *piece, uint32_t next)
{
    if (p->built++ > REGEXP_PIECES_MAX)
        refuse_regexp(p, "expression is too large");
    if (p->reason.data != NULL)
        return 0;
    switch (piece->kind) {
    case PIECE_STATE: {
        struct state state = piece->state;
        state.next = next;
        return add_state(p, state);
    }
    case PIECE_SEQUENCE: {
        /* Sequences are left-recursive, so the recursion is only as deep as brackets nest. */
        while (piece->kind == PIECE_SEQUENCE) {
            next = build_states(p, piece->right, next);
            piece = piece->left;
        }
        return build_states(p, piece, next);
    }
    case PIECE_CHOICE: {
        uint32_t start = build_states(p, piece->right, next);
        for (piece = piece->left; piece->kind == PIECE_CHOICE; piece = piece->left)
            start = add_state(
                p, (struct state){.kind = STATE_SPLIT, .next = build_states(p, piece->right, next), .other = start});
        return add_state(p, (struct state){.kind = STATE_SPLIT, .next = build_states(p, piece, next), .other = start});
    }
    case PIECE_REPEAT: return build_repeat(p, piece, next);
    case PIECE_EMPTY: break;
    }
    return next;
}

const struct term_pattern *term_pattern_new_regexp(struct arena *arena, struct slice text, bool case_insensitive,
                                                   struct slice *ret_reason)
{
    struct term_pattern *pattern = arena_zalloc(arena, sizeof *pattern);
    struct regexp *regexp = arena_zalloc(arena, sizeof *regexp);
    struct regexp_parser parser = {.arena = arena, .text = text, .regexp = regexp};
    pattern->text = text;
    pattern->case_insensitive = case_insensitive;
    pattern->regexp = regexp;
    struct piece *all = text.len == 0 ? new_piece(&parser, PIECE_EMPTY, NULL, NULL) : parse_choice(&parser);
    if (has_more(&parser))
        refuse_regexp(&parser, "end-of-string expected");
    uint32_t end = add_state(&parser, (struct state){.kind = STATE_END});
    regexp->start = build_states(&parser, all, end);
    *ret_reason = parser.reason;
    return parser.reason.data == NULL ? pattern : NULL;
}

/* --- Matching ----------------------------------------------------------------------------------------------------- */

struct state_set {
    uint16_t items[REGEXP_STATES_MAX];
    size_t count;
};

struct regexp_run {
    const struct regexp *regexp;
    uint32_t added_in_step[REGEXP_STATES_MAX]; /* by state: the step in which it was added last */
    uint32_t step;
    uint16_t pending[2 * REGEXP_STATES_MAX];
};

/* Adds a state, or the states that it reaches without reading a character. */
static void set_add(struct regexp_run *run, struct state_set *set, uint32_t index)
{
    size_t pending = 0;
    run->pending[pending++] = (uint16_t)index;
    while (pending > 0) {
        uint16_t at = run->pending[--pending];
        if (run->added_in_step[at] == run->step)
            continue;
        run->added_in_step[at] = run->step;
        const struct state *state = &run->regexp->states[at];
        if (state->kind == STATE_SPLIT) {
            run->pending[pending++] = (uint16_t)state->next;
            run->pending[pending++] = (uint16_t)state->other;
        } else {
            set->items[set->count++] = at;
        }
    }
}

static bool in_class(const struct state *state, uint32_t point)
{
    for (size_t i = 0; i < state->range_count; i++) {
        if (point >= state->ranges[i].low && point <= state->ranges[i].high)
            return !state->negated;
    }
    return state->negated;
}

static uint32_t swap_case(uint32_t point)
{
    return (point >= 'a' && point <= 'z') ? point - 32 : (point >= 'A' && point <= 'Z') ? point + 32 : point;
}

static bool state_accepts(const struct state *state, uint32_t point)
{
    return state->kind == STATE_ANY || (state->kind == STATE_POINT && state->point == point) ||
           (state->kind == STATE_CLASS && in_class(state, point));
}

bool term_pattern_regexp(const struct term_pattern *pattern, struct slice text, struct account *account)
{
    struct regexp_run run;
    struct state_set sets[2], *now = &sets[0], *then = &sets[1];
    memset(run.added_in_step, 0, sizeof run.added_in_step);
    run.regexp = pattern->regexp;
    run.step = 1;
    now->count = 0;
    set_add(&run, now, pattern->regexp->start);
    for (size_t at = 0; at < text.len && now->count > 0;) {
        uint32_t point = term_pattern__next_code_point(text, &at);
        run.step++;
        if (!account_take(account, 4 + now->count))
            return false;
        then->count = 0;
        for (size_t i = 0; i < now->count; i++) {
            const struct state *state = &pattern->regexp->states[now->items[i]];
            if (state_accepts(state, point) || (pattern->case_insensitive && state_accepts(state, swap_case(point))))
                set_add(&run, then, state->next);
        }
        struct state_set *swapped = now;
        now = then;
        then = swapped;
    }
    for (size_t i = 0; i < now->count; i++) {
        if (pattern->regexp->states[now->items[i]].kind == STATE_END)
            return true;
    }
    return false;
}
