/* SPDX-License-Identifier: Apache-2.0 */
/* Compilation of regular expressions; see regex.h. */
#include "script/value/regex_node.h"

#include "base/check.h"

#include <ctype.h>
#include <stdlib.h>

struct regex_parser {
    struct arena *arena;
    struct text *source;
    size_t at;
    int flags;
    unsigned groups, counters, nodes, depth;
    const struct regex_name *names;
    const char *error;
    size_t error_at;
};

/* A fragment under construction: its first node, and the `next` to fill in. */
struct fragment {
    struct regex_node *first;
    struct regex_node *last;
};

static struct fragment parse_choice(struct regex_parser *parser);

static void *refuse_pattern(struct regex_parser *parser, const char *why)
{
    if (parser->error == NULL) {
        parser->error = why;
        parser->error_at = parser->at > 0 ? parser->at - 1 : 0;
    }
    return NULL;
}

static int32_t peek_unit(const struct regex_parser *parser)
{
    return parser->at < parser->source->length ? text_at(parser->source, parser->at) : -1;
}

static bool accept_unit(struct regex_parser *parser, char c)
{
    if (peek_unit(parser) != c)
        return false;
    parser->at++;
    return true;
}

static struct regex_node *make_node(struct regex_parser *parser, enum regex_kind kind)
{
    struct regex_node *node = arena_zalloc(parser->arena, sizeof *node);
    node->kind = kind;
    node->ignore_case = (parser->flags & REGEX_IGNORE_CASE) != 0;
    node->multiline = (parser->flags & REGEX_MULTILINE) != 0;
    if (++parser->nodes > REGEX_NODES_MAX)
        refuse_pattern(parser, "the pattern is too large");
    return node;
}

static struct fragment single_node(struct regex_node *node)
{
    return (struct fragment){node, node};
}

/* Sets: ranges are collected as parsed, then sorted once; later operations merge sorted lists. */

#define UNIT_MAX 0xffffu

struct ranges {
    struct regex_range *items;
    size_t count;
    size_t capacity;
};

static void add_range(struct regex_parser *parser, struct ranges *ranges, uint32_t low, uint32_t high)
{
    ranges->items = arena_grow(parser->arena, ranges->items, ranges->count, &ranges->capacity, sizeof *ranges->items);
    ranges->items[ranges->count++] = (struct regex_range){(uint16_t)low, (uint16_t)high};
}

static void add_set(struct regex_parser *parser, struct ranges *ranges, const struct regex_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        add_range(parser, ranges, set->ranges[i].low, set->ranges[i].high);
}

static int compare_ranges(const void *a, const void *b)
{
    return (int)((const struct regex_range *)a)->low - (int)((const struct regex_range *)b)->low;
}

/* Sorts the ranges and joins overlapping and adjacent ones, in place. */
static void bring_in_order(struct ranges *ranges)
{
    size_t count = 0;
    if (ranges->count == 0)
        return;
    qsort(ranges->items, ranges->count, sizeof *ranges->items, compare_ranges);
    for (size_t i = 1; i < ranges->count; i++) {
        struct regex_range *last = &ranges->items[count], next = ranges->items[i];
        if (next.low > last->high + 1u)
            ranges->items[++count] = next;
        else if (next.high > last->high)
            last->high = next.high;
    }
    ranges->count = count + 1;
}

/* Returns: the complement. Requires: sorted ranges. */
static struct ranges complement_ranges(struct regex_parser *parser, const struct ranges *ranges)
{
    struct ranges others = {NULL, 0, 0};
    uint32_t from = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        if (ranges->items[i].low > from)
            add_range(parser, &others, from, ranges->items[i].low - 1u);
        from = ranges->items[i].high + 1u;
    }
    if (from <= UNIT_MAX)
        add_range(parser, &others, from, UNIT_MAX);
    return others;
}

/* Returns: the intersection. Requires: sorted ranges. */
static struct ranges intersect_ranges(struct regex_parser *parser, const struct ranges *a, const struct ranges *b)
{
    struct ranges both = {NULL, 0, 0};
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        uint16_t low = a->items[i].low > b->items[k].low ? a->items[i].low : b->items[k].low;
        bool first_ends = a->items[i].high < b->items[k].high;
        uint16_t high = first_ends ? a->items[i].high : b->items[k].high;
        if (low <= high)
            add_range(parser, &both, low, high);
        i += first_ends;
        k += !first_ends;
    }
    return both;
}

static struct regex_set *seal_set(struct regex_parser *parser, struct ranges *ranges, bool negated)
{
    struct regex_set *set = arena_zalloc(parser->arena, sizeof *set);
    bring_in_order(ranges);
    struct ranges all = negated ? complement_ranges(parser, ranges) : *ranges;
    set->ranges = all.items;
    set->count = (unsigned)all.count;
    return set;
}

static struct regex_set *set_of(struct regex_parser *parser, const char *pairs, bool negated)
{
    struct ranges ranges = {NULL, 0, 0};
    for (; pairs[0] != '\0'; pairs += 2)
        add_range(parser, &ranges, (uint8_t)pairs[0], (uint8_t)pairs[1]);
    return seal_set(parser, &ranges, negated);
}

static const struct {
    const char *name, *pairs;
} properties[] = {
    {"Lower", "az"},
    {"Upper", "AZ"},
    {"Alpha", "azAZ"},
    {"Digit", "09"},
    {"Alnum", "azAZ09"},
    {"Punct", "!/:@[`{~"},
    {"Graph", "!~"},
    {"Print", " ~"},
    {"Blank", "  \t\t"},
    {"XDigit", "09afAF"},
    {"Space", "  \t\r"},
    {"ASCII", "\001\177"},
    {"L", "azAZ\xc0\xd6\xd8\xf6\xf8\xff"},
    {"IsAlphabetic", "azAZ\xc0\xd6\xd8\xf6\xf8\xff"},
    {"Lu", "AZ\xc0\xd6\xd8\xde"},
    {"Ll", "az\xdf\xf6\xf8\xff"},
    {"N", "09"},
    {"Nd", "09"},
    {"IsDigit", "09"},
    {"P", "!#%*,/:;?@[]__{{}}"},
};

static struct regex_set *parse_property(struct regex_parser *parser, bool negated)
{
    char name[24];
    size_t len = 0;
    bool braces = accept_unit(parser, '{');
    do {
        int32_t c = peek_unit(parser);
        if (c < 0 || c > 127 || len + 1 == sizeof name)
            return refuse_pattern(parser, "Unknown character property");
        parser->at++;
        if (c == '}')
            break;
        name[len++] = (char)c;
    } while (braces);
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (slice_is(slice_make(name, len), properties[i].name)) {
            struct ranges ranges = {NULL, 0, 0};
            for (const char *pairs = properties[i].pairs; pairs[0] != '\0'; pairs += 2)
                add_range(parser, &ranges, (uint8_t)pairs[0], (uint8_t)pairs[1]);
            bool letters = slice_is(slice_make(name, len), "L") || slice_is(slice_make(name, len), "IsAlphabetic");
            if (letters)
                add_range(parser, &ranges, 0x100, 0x2af), add_range(parser, &ranges, 0x370, 0x52f),
                    add_range(parser, &ranges, 0x3040, 0x9fff);
            return seal_set(parser, &ranges, negated);
        }
    return refuse_pattern(parser, "Unknown character property");
}

/* Returns: the predefined class of an escape's letter; NULL if it has none. */
static struct regex_set *parse_class_escape(struct regex_parser *parser, int32_t c)
{
    switch (c) {
    case 'd':
    case 'D': return set_of(parser, "09", c == 'D');
    case 'w':
    case 'W': return set_of(parser, "azAZ09__", c == 'W');
    case 's':
    case 'S': return set_of(parser, "  \t\r", c == 'S');
    case 'h': return set_of(parser, "  \t\t\xa0\xa0", false);
    case 'p':
    case 'P': return parse_property(parser, c == 'P');
    default: return NULL;
    }
}

static int32_t parse_hex(struct regex_parser *parser, unsigned digits)
{
    int32_t value = 0;
    for (unsigned i = 0; i < digits; i++) {
        int32_t c = peek_unit(parser);
        if (c < 0 || c > 127 || !isxdigit(c)) {
            refuse_pattern(parser, "Illegal hexadecimal escape sequence");
            return 0;
        }
        parser->at++;
        value = value * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return value;
}

/* Reads the code unit of an escape; the backslash is already consumed. */
static int32_t parse_unit_escape(struct regex_parser *parser)
{
    int32_t c = peek_unit(parser);
    if (c < 0) {
        refuse_pattern(parser, "Unexpected internal error");
        return 0;
    }
    parser->at++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'a': return 7;
    case 'e': return 27;
    case 'x': return parse_hex(parser, 2);
    case 'u': return parse_hex(parser, 4);
    default:
        if (c < 128 && isalpha(c))
            refuse_pattern(parser, "Illegal/unsupported escape sequence");
        return c;
    }
}

static const struct regex_set *parse_set(struct regex_parser *parser);

/* Parses one member of a set: a unit, a range, a class, a nested set. */
static void parse_member(struct regex_parser *parser, struct ranges *ranges)
{
    int32_t low = peek_unit(parser), high;
    struct regex_set *class;
    parser->at++;
    if (low == '[') {
        const struct regex_set *inner = parse_set(parser);
        if (inner != NULL)
            add_set(parser, ranges, inner);
        return;
    }
    if (low == '\\') {
        class = parse_class_escape(parser, peek_unit(parser));
        if (class != NULL || parser->error != NULL) {
            int32_t letter = peek_unit(parser);
            parser->at += letter != '}' && strchr("dDwWsSh", letter) != NULL;
            if (class != NULL)
                add_set(parser, ranges, class);
            return;
        }
        low = parse_unit_escape(parser);
    }
    high = low;
    bool range = peek_unit(parser) == '-' && parser->at + 1 < parser->source->length &&
                 text_at(parser->source, parser->at + 1) != ']' && text_at(parser->source, parser->at + 1) != '[';
    if (range) {
        parser->at++;
        high = peek_unit(parser);
        parser->at++;
        if (high == '\\')
            high = parse_unit_escape(parser);
        if (high < low) {
            refuse_pattern(parser, "Illegal character range");
            return;
        }
    }
    add_range(parser, ranges, (uint32_t)low, (uint32_t)high);
}

/* Parses a set after its opening bracket, including the closing one. */
static const struct regex_set *parse_set(struct regex_parser *parser)
{
    struct ranges all = {NULL, 0, 0}, rest;
    bool meets = false, negated;
    if (++parser->depth > 50)
        return refuse_pattern(parser, "nested too deep");
    negated = accept_unit(parser, '^');
    for (bool first = true; parser->error == NULL; first = false) {
        if (peek_unit(parser) < 0)
            return refuse_pattern(parser, "Unclosed character class");
        if (!first && accept_unit(parser, ']'))
            break;
        bool intersects = peek_unit(parser) == '&' && parser->at + 1 < parser->source->length &&
                          text_at(parser->source, parser->at + 1) == '&';
        if (intersects) {
            parser->at += 2;
            meets = true;
            rest = (struct ranges){NULL, 0, 0};
            while (parser->error == NULL && peek_unit(parser) >= 0 && peek_unit(parser) != ']')
                parse_member(parser, &rest);
        } else {
            parse_member(parser, &all);
        }
    }
    parser->depth--;
    if (parser->error != NULL)
        return NULL;
    if (meets) {
        bring_in_order(&all);
        bring_in_order(&rest);
        all = intersect_ranges(parser, &all, &rest);
    }
    return seal_set(parser, &all, negated);
}

static uint16_t fold_case(uint16_t c)
{
    return c < 128 ? (uint16_t)tolower(c) : c;
}

static bool set_has_one(const struct regex_set *set, uint16_t unit)
{
    unsigned low = 0, high = set->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (unit > set->ranges[middle].high)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && unit >= set->ranges[low].low;
}

static bool set_has(const struct regex_set *set, uint16_t unit, bool ignore_case)
{
    if (set_has_one(set, unit))
        return true;
    if (!ignore_case || unit > 127)
        return false;
    return set_has_one(set, (uint16_t)tolower(unit)) || set_has_one(set, (uint16_t)toupper(unit));
}

bool regex_unit_matches(const struct regex_node *node, uint16_t unit)
{
    if (node->kind == REGEX_CHAR)
        return unit == node->unit || (node->ignore_case && fold_case(unit) == fold_case(node->unit));
    return set_has(node->set, unit, node->ignore_case);
}

/* Atoms */

static struct fragment unit_node(struct regex_parser *parser, int32_t unit)
{
    struct regex_node *node = make_node(parser, REGEX_CHAR);
    node->unit = (uint16_t)unit;
    return single_node(node);
}

static struct fragment set_node(struct regex_parser *parser, const struct regex_set *set)
{
    struct regex_node *node = make_node(parser, REGEX_SET);
    node->set = set;
    return single_node(node);
}

static struct slice parse_name(struct regex_parser *parser)
{
    size_t begin = parser->at;
    char *name = arena_alloc(parser->arena, 64);
    size_t len = 0;
    while (peek_unit(parser) > 0 && peek_unit(parser) < 128 && isalnum(peek_unit(parser)) && len < 63)
        name[len++] = (char)text_at(parser->source, parser->at++);
    if (parser->at == begin || !accept_unit(parser, '>'))
        refuse_pattern(parser, "named capturing group is missing trailing '>'");
    return slice_make(name, len);
}

static struct fragment group_node(struct regex_parser *parser, unsigned group)
{
    struct regex_node *open = make_node(parser, REGEX_OPEN), *close = make_node(parser, REGEX_CLOSE);
    struct fragment inner = parse_choice(parser);
    open->index = close->index = group;
    open->next = inner.first;
    if (inner.last != NULL)
        inner.last->next = close;
    return (struct fragment){open, close};
}

static struct fragment body_node(struct regex_parser *parser, enum regex_kind kind, bool behind, bool negated)
{
    struct regex_node *node = make_node(parser, kind), *end = make_node(parser, REGEX_ACCEPT);
    struct fragment inner = parse_choice(parser);
    node->behind = behind;
    node->negated = negated;
    node->body = inner.first;
    if (inner.last != NULL)
        inner.last->next = end;
    return single_node(node);
}

static void parse_flags(struct regex_parser *parser)
{
    bool on = true;
    for (;; parser->at++) {
        int32_t c = peek_unit(parser);
        int flag = c == 'i'   ? REGEX_IGNORE_CASE
                   : c == 'm' ? REGEX_MULTILINE
                   : c == 's' ? REGEX_DOTALL
                   : c == 'x' ? REGEX_COMMENTS
                   : c == 'u' ? REGEX_UNICODE_CASE
                              : 0;
        if (c == '-')
            on = false;
        else if (flag == 0)
            return;
        else
            parser->flags = on ? parser->flags | flag : parser->flags & ~flag;
    }
}

/* Parses a group after its opening parenthesis; the caller consumes the closing one. */
static struct fragment parse_group(struct regex_parser *parser)
{
    int flags = parser->flags;
    if (!accept_unit(parser, '?')) {
        if (++parser->groups > REGEX_GROUPS_MAX)
            refuse_pattern(parser, "too many groups");
        return group_node(parser, parser->groups);
    }
    if (accept_unit(parser, ':'))
        return parse_choice(parser);
    if (accept_unit(parser, '='))
        return body_node(parser, REGEX_LOOK, false, false);
    if (accept_unit(parser, '!'))
        return body_node(parser, REGEX_LOOK, false, true);
    if (accept_unit(parser, '>'))
        return body_node(parser, REGEX_ATOMIC, false, false);
    if (accept_unit(parser, '<')) {
        if (accept_unit(parser, '='))
            return body_node(parser, REGEX_LOOK, true, false);
        if (accept_unit(parser, '!'))
            return body_node(parser, REGEX_LOOK, true, true);
        struct regex_name *name = arena_zalloc(parser->arena, sizeof *name);
        name->name = parse_name(parser);
        name->group = ++parser->groups;
        name->next = parser->names;
        parser->names = name;
        if (parser->groups > REGEX_GROUPS_MAX)
            refuse_pattern(parser, "too many groups");
        return group_node(parser, name->group);
    }
    parse_flags(parser);
    if (peek_unit(parser) == ')') {
        /* Flags for the rest of the enclosing group: an empty fragment; the flags stay set. */
        struct regex_node *empty = make_node(parser, REGEX_EITHER);
        return single_node(empty);
    }
    if (!accept_unit(parser, ':'))
        refuse_pattern(parser, "Unknown inline modifier");
    struct fragment inner = parse_choice(parser);
    parser->flags = flags;
    return inner;
}

static struct fragment parse_escape(struct regex_parser *parser)
{
    int32_t c = peek_unit(parser);
    static const struct {
        char letter;
        enum regex_kind kind;
    } edges[] = {{'b', REGEX_WORD_EDGE},
                 {'B', REGEX_NOT_WORD_EDGE},
                 {'A', REGEX_INPUT_START},
                 {'z', REGEX_INPUT_END},
                 {'Z', REGEX_INPUT_END_LINE}};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        if (c == edges[i].letter) {
            parser->at++;
            return single_node(make_node(parser, edges[i].kind));
        }
    if (c >= '1' && c <= '9') {
        struct regex_node *node = make_node(parser, REGEX_BACK);
        node->index = (unsigned)(c - '0');
        parser->at++;
        if (node->index > parser->groups)
            refuse_pattern(parser, "Illegal back reference");
        return single_node(node);
    }
    if (c == 'p' || c == 'P')
        parser->at++;
    struct regex_set *set = parse_class_escape(parser, c);
    if (set != NULL || parser->error != NULL) {
        parser->at += c != 'p' && c != 'P';
        return set_node(parser, set);
    }
    return unit_node(parser, parse_unit_escape(parser));
}

static struct fragment parse_atom(struct regex_parser *parser)
{
    int32_t c = peek_unit(parser);
    struct fragment inner;
    parser->at++;
    switch (c) {
    case '.':
        return set_node(parser,
                        parser->flags & REGEX_DOTALL ? set_of(parser, "", true) : set_of(parser, "\n\n\r\r", true));
    case '^':
        return single_node(make_node(parser, parser->flags & REGEX_MULTILINE ? REGEX_LINE_START : REGEX_INPUT_START));
    case '$':
        return single_node(make_node(parser, parser->flags & REGEX_MULTILINE ? REGEX_LINE_END : REGEX_INPUT_END_LINE));
    case '[': return set_node(parser, parse_set(parser));
    case '\\': return parse_escape(parser);
    case '(':
        if (++parser->depth > 50)
            refuse_pattern(parser, "nested too deep");
        inner = parser->error == NULL ? parse_group(parser) : (struct fragment){NULL, NULL};
        if (!accept_unit(parser, ')'))
            refuse_pattern(parser, "Unclosed group");
        parser->depth--;
        return inner;
    case '*':
    case '+':
    case '?': refuse_pattern(parser, "Dangling meta character"); return (struct fragment){NULL, NULL};
    default: return unit_node(parser, c);
    }
}

static bool parse_number(struct regex_parser *parser, uint32_t *ret)
{
    uint32_t value = 0;
    size_t begin = parser->at;
    while (peek_unit(parser) >= '0' && peek_unit(parser) <= '9' && value < 100000)
        value = value * 10 + (uint32_t)(text_at(parser->source, parser->at++) - '0');
    *ret = value;
    return parser->at > begin;
}

/* Parses a quantifier after an atom: "*", "+", "?", "{2,3}". */
static bool parse_bounds(struct regex_parser *parser, uint32_t *min, uint32_t *max)
{
    int32_t c = peek_unit(parser);
    *min = c == '+';
    *max = c == '?' ? 1 : UINT32_MAX;
    if (c == '*' || c == '+' || c == '?') {
        parser->at++;
        return true;
    }
    if (c != '{')
        return false;
    parser->at++;
    if (!parse_number(parser, min))
        refuse_pattern(parser, "Illegal repetition");
    *max = *min;
    if (accept_unit(parser, ',') && !parse_number(parser, max))
        *max = UINT32_MAX;
    if (!accept_unit(parser, '}'))
        refuse_pattern(parser, "Unclosed counted closure");
    if (*max < *min)
        refuse_pattern(parser, "Illegal repetition range");
    return true;
}

static struct fragment repeat_atom(struct regex_parser *parser, struct fragment atom)
{
    uint32_t min, max;
    if (parser->error != NULL || !parse_bounds(parser, &min, &max))
        return atom;
    enum regex_greed greed = accept_unit(parser, '?')   ? REGEX_RELUCTANT
                             : accept_unit(parser, '+') ? REGEX_POSSESSIVE
                                                        : REGEX_GREEDY;
    bool narrow = atom.first == atom.last && (atom.first->kind == REGEX_CHAR || atom.first->kind == REGEX_SET);
    struct regex_node *node = make_node(parser, narrow ? REGEX_MANY : REGEX_LOOP);
    node->min = min;
    node->max = max;
    node->greed = greed;
    node->body = atom.first;
    if (!narrow) {
        struct regex_node *end = make_node(parser, REGEX_LOOP_END);
        node->index = end->index = parser->counters++;
        end->other = node;
        atom.last->next = end;
        if (greed == REGEX_POSSESSIVE) {
            struct regex_node *atomic = make_node(parser, REGEX_ATOMIC), *accepts = make_node(parser, REGEX_ACCEPT);
            node->greed = REGEX_GREEDY;
            node->next = accepts;
            atomic->body = node;
            return single_node(atomic);
        }
    }
    return single_node(node);
}

static void skip_comments(struct regex_parser *parser)
{
    while ((parser->flags & REGEX_COMMENTS) && peek_unit(parser) >= 0) {
        int32_t c = peek_unit(parser);
        if (c == '#')
            while (peek_unit(parser) >= 0 && peek_unit(parser) != '\n')
                parser->at++;
        else if (c > 127 || !isspace(c))
            return;
        else
            parser->at++;
    }
}

static struct fragment parse_sequence(struct regex_parser *parser)
{
    struct regex_node *empty = make_node(parser, REGEX_EITHER);
    struct fragment all = single_node(empty);
    for (;;) {
        skip_comments(parser);
        int32_t c = peek_unit(parser);
        if (parser->error != NULL || c < 0 || c == '|' || c == ')')
            return all;
        struct fragment atom = parse_atom(parser);
        skip_comments(parser);
        if (parser->error != NULL || atom.first == NULL)
            return all;
        atom = repeat_atom(parser, atom);
        all.last->next = atom.first;
        all.last = atom.last;
    }
}

/* All alternatives continue at an empty node at the end. */
static struct fragment parse_choice(struct regex_parser *parser)
{
    struct fragment first = parse_sequence(parser);
    if (peek_unit(parser) != '|' || parser->error != NULL)
        return first;
    struct regex_node *end = make_node(parser, REGEX_EITHER), *choice = make_node(parser, REGEX_EITHER), *at = choice;
    choice->body = first.first;
    first.last->next = end;
    while (accept_unit(parser, '|') && parser->error == NULL) {
        struct fragment more = parse_sequence(parser);
        more.last->next = end;
        if (peek_unit(parser) != '|') {
            at->other = more.first;
            break;
        }
        struct regex_node *next = make_node(parser, REGEX_EITHER);
        next->body = more.first;
        at->other = next;
        at = next;
    }
    return (struct fragment){choice, end};
}

bool regex_flags(struct slice letters, int *ret_flags, char *ret_letter)
{
    int flags = 0;
    for (size_t i = 0; i < letters.len; i++) {
        switch (letters.data[i]) {
        case 'i': flags |= REGEX_IGNORE_CASE; break;
        case 'l': flags |= REGEX_LITERAL; break;
        case 'm': flags |= REGEX_MULTILINE; break;
        case 's': flags |= REGEX_DOTALL; break;
        case 'U':
        case 'u': flags |= REGEX_UNICODE_CASE; break;
        case 'x': flags |= REGEX_COMMENTS; break;
        case 'c': break;
        default: *ret_letter = letters.data[i]; return false;
        }
    }
    *ret_flags = flags;
    return true;
}

static struct fragment parse_literal(struct regex_parser *parser)
{
    struct fragment all = single_node(make_node(parser, REGEX_EITHER));
    for (; peek_unit(parser) >= 0; parser->at++) {
        struct fragment one = unit_node(parser, peek_unit(parser));
        all.last->next = one.first;
        all.last = one.last;
    }
    return all;
}

struct regex *regex_compile(struct arena *arena, struct text *source, int flags, const char **ret_error,
                            size_t *ret_index)
{
    struct regex_parser parser = {.arena = arena, .source = source, .flags = flags};
    struct fragment all = flags & REGEX_LITERAL ? parse_literal(&parser) : parse_choice(&parser);
    if (parser.error == NULL && peek_unit(&parser) == ')') {
        parser.at++;
        refuse_pattern(&parser, "Unmatched closing ')'");
    }
    if (parser.error != NULL) {
        *ret_error = parser.error;
        *ret_index = parser.error_at;
        return NULL;
    }
    all.last->next = make_node(&parser, REGEX_ACCEPT);
    struct regex *pattern = arena_zalloc(arena, sizeof *pattern);
    pattern->object.class = CLASS_PATTERN;
    pattern->source = source;
    pattern->flags = flags;
    pattern->start = all.first;
    pattern->groups = parser.groups;
    pattern->counters = parser.counters;
    pattern->names = parser.names;
    return pattern;
}

struct regex *regex_new(struct run *run, struct text *source, int flags)
{
    const char *error;
    size_t index;
    run_charge(run, (size_t)source->length * 200 + 500);
    if (source->length > REGEX_NODES_MAX || !run_step(run, source->length)) {
        run_throw(run, CLASS_PATTERN_SYNTAX_EXCEPTION, "the pattern is too large");
        return NULL;
    }
    struct regex *pattern = regex_compile(run->arena, source, flags, &error, &index);
    if (pattern == NULL)
        run_throw(run, CLASS_PATTERN_SYNTAX_EXCEPTION, "%s near index %zu\n%.*s", error, index,
                  SLICE_ARG(text_utf8(run, source)));
    return pattern;
}
