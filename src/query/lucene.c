/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses query strings with the grammar of Lucene's classic parser:
 *
 *     query  := clause { [AND | OR | && | "||"] clause }
 *     clause := [+ | - | ! | NOT] [FIELD ':'] value [^BOOST]
 *     value  := term | "phrase"[~N] | range | /regexp/ | '(' query ')'
 *     range  := ('[' | '{') bound TO bound (']' | '}') | ('<' | '>' | '<=' | '>=') term
 *
 * The result is a tree of ordinary query nodes. Terms become match queries, so each field's
 * analyzer processes them. The second parser reads simple_query_string, which never fails.
 */
#include "query/bound_query.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>

struct lucene {
    struct arena *arena;
    const struct mapping *mapping;
    const struct query *query;
    const struct query_field *fields; /* searched by clauses without a field; NULL: all fields */
    size_t field_count;
    struct query_field single; /* default_field */
    bool lenient;              /* a value that a field cannot parse matches nothing */
    struct slice text;
    size_t at;
    unsigned depth;
    struct problem *problem;
    bool failed;
    /* simple_query_string: */
    uint32_t *closing;  /* offsets of closing brackets, see find_closing() */
    size_t unquoted_to; /* no phrase that starts at `at` or later ends before this offset */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ends_term(char c)
{
    return is_space(c) || byte_is_one_of(c, "():^[]\"{}~");
}

static void skip_space(struct lucene *p)
{
    while (p->at < p->text.len && is_space(p->text.data[p->at]))
        p->at++;
}

static bool at_end(struct lucene *p)
{
    skip_space(p);
    return p->at >= p->text.len;
}

static bool take_char(struct lucene *p, char c)
{
    if (p->at >= p->text.len || p->text.data[p->at] != c)
        return false;
    p->at++;
    return true;
}

/*
 * The tokenizer takes the longest match: a keyword followed by a term character is part of a term.
 */
static bool ends_word(char c)
{
    return is_space(c) || byte_is_one_of(c, "!():^[]\"{}~/");
}

/*
 * Consumes a separate keyword: AND, OR, NOT, TO, && or ||. Returns: false: none here, only space
 * consumed.
 */
static bool take_word(struct lucene *p, const char *word)
{
    size_t len = strlen(word);
    skip_space(p);
    if (p->text.len - p->at < len || memcmp(p->text.data + p->at, word, len) != 0)
        return false;
    if (p->text.len - p->at > len && !ends_word(p->text.data[p->at + len]))
        return false;
    p->at += len;
    return true;
}

#define EXPECTING_CLAUSE                                                                                 \
    "    <NOT> ...\n    \"+\" ...\n    \"-\" ...\n    <BAREOPER> ...\n    \"(\" ...\n    \"*\" ...\n"    \
    "    <QUOTED> ...\n    <TERM> ...\n    <PREFIXTERM> ...\n    <WILDTERM> ...\n    <REGEXPTERM> ...\n" \
    "    \"[\" ...\n    \"{\" ...\n    <NUMBER> ...\n    <TERM> ...\n    "
#define EXPECTING_MORE                                                                                      \
    "    <AND> ...\n    <OR> ...\n    <NOT> ...\n    \"+\" ...\n    \"-\" ...\n    <BAREOPER> ...\n    "    \
    "\"(\" ...\n"                                                                                           \
    "    \")\" ...\n    \"*\" ...\n    \"^\" ...\n    <QUOTED> ...\n    <TERM> ...\n    <FUZZY_SLOP> ...\n" \
    "    <PREFIXTERM> ...\n    <WILDTERM> ...\n    <REGEXPTERM> ...\n    \"[\" ...\n    \"{\" ...\n    "    \
    "<NUMBER> ...\n    "

/* Returns: all bytes of the current UTF-8 character. Requires: the text has not ended. */
static struct slice char_at(const struct lucene *p)
{
    size_t len = 1;
    while (p->at + len < p->text.len && ((unsigned char)p->text.data[p->at + len] & 0xc0) == 0x80)
        len++;
    return slice_make(p->text.data + p->at, len);
}

static struct query *fail_because(struct lucene *p, struct problem *cause)
{
    REQUIRE(!p->failed);
    p->failed = true;
    *p->problem = (struct problem){.type = PROBLEM_PARSE, .name = SLICE_LIT("parse_exception"), .caused_by = cause};
    p->problem->reason =
        arena_printf(p->arena, "Cannot parse '%.*s': %.*s", SLICE_ARG(p->text), SLICE_ARG(cause->reason));
    return query_match_all(p->arena);
}

static struct query *fail_lucene(struct lucene *p, const char *expecting)
{
    if (p->failed)
        return query_match_all(p->arena);
    struct slice found = p->at >= p->text.len ? SLICE_LIT("<EOF>") : char_at(p);
    const char *form = p->at >= p->text.len
                           ? "Encountered \"%.*s\" at line 1, column %zu.\nWas expecting one of:\n%s"
                           : "Encountered \" \"%.*s\" \"%.*s \"\" at line 1, column %zu.\nWas expecting one of:\n%s";
    struct problem *cause = arena_zalloc(p->arena, sizeof *cause);
    cause->type = PROBLEM_PARSE;
    cause->name = SLICE_LIT("parse_exception"); /* from Lucene, so not reported as a root cause */
    if (p->at >= p->text.len)
        cause->reason =
            arena_printf(p->arena, "Encountered \"<EOF>\" at line 1, column %zu.\nWas expecting one of:\n%s",
                         p->text.len, expecting);
    else
        cause->reason = arena_printf(p->arena, form, SLICE_ARG(found), SLICE_ARG(found), p->at, expecting);
    return fail_because(p, cause);
}

/* --- Making nodes ------------------------------------------------------------------------------------------------- */

typedef struct query *make_on_field(struct lucene *p, struct slice field, struct query *model);

/* Collects one query per field; each is boosted by the field's boost. */
struct field_queries {
    struct lucene *p;
    make_on_field *make;
    struct query *model, *any;
    double boost;
};

static void add_field(struct field_queries *queries, struct slice name)
{
    struct query *one = queries->make(queries->p, name, queries->model);
    one->boost *= queries->boost;
    query__list_add(queries->p->arena, &queries->any->compound.queries, one);
}

static void add_matching(void *context, const struct mapping_field *field)
{
    if (field->type != FIELD_OBJECT && field->type != FIELD_NESTED)
        add_field(context, field->path);
}

/* Adds the named field, or every field that the name's wildcards match. */
static void add_fields(struct field_queries *queries, struct slice name)
{
    const struct mapping *mapping = queries->p->mapping;
    if (mapping != NULL && slice_find_byte(name, '*') < name.len)
        mapping_fields_matching(mapping, name, add_matching, queries);
    else
        add_field(queries, name);
}

static struct query *each_field(struct lucene *p, struct slice field, make_on_field *make, struct query *model)
{
    struct query *any = query__new(p->arena, QUERY_DIS_MAX);
    struct field_queries queries = {p, make, model, any, 1.0};
    any->compound.number = p->query->lucene.options.tie_breaker;
    if (field.data != NULL)
        add_fields(&queries, field);
    for (size_t i = 0; field.data == NULL && i < p->field_count; i++) {
        queries.boost = p->fields[i].boost;
        add_fields(&queries, p->fields[i].name);
    }
    if (any->compound.queries.count == 0)
        return query__new(p->arena, QUERY_MATCH_NONE);
    return any->compound.queries.count == 1 ? any->compound.queries.items[0] : any;
}

static struct query *on_field(struct lucene *p, struct slice field, struct query *model)
{
    struct query *query = query__new(p->arena, model->kind);
    *query = *model;
    query->field = field;
    query->lenient = p->lenient && model->kind != QUERY_EXISTS; /* exists only fails for metadata fields */
    return query;
}

/*
 * Makes a match query for one field, or a multi_match query for a wildcard name or all default
 * fields.
 */
static struct query *make_words(struct lucene *p, struct slice field, struct slice text, enum match_form form,
                                unsigned slop)
{
    struct match_options options = {.slop = slop,
                                    .and_operator = p->query->lucene.options.and_operator,
                                    .lenient = p->lenient,
                                    .lenient_given = true,
                                    .zero_terms_absent = true,
                                    .analyzer = p->query->lucene.options.analyzer};
    if (field.data != NULL && slice_find_byte(field, '*') == field.len) {
        struct query *query = query__new(p->arena, QUERY_MATCH);
        query->field = field;
        query->match.value = query__text(p->arena, text);
        query->match.form = form;
        query->match.options = options;
        return query;
    }
    struct query *query = query__new(p->arena, QUERY_MULTI_MATCH);
    struct query_field *named = arena_zalloc(p->arena, sizeof *named);
    *named = (struct query_field){field, 1.0};
    query->multi.value = query__text(p->arena, text);
    query->multi.fields = field.data != NULL ? named : (struct query_field *)(uintptr_t)p->fields;
    query->multi.field_count = field.data != NULL ? 1 : p->field_count;
    query->multi.form = form == MATCH_PHRASE          ? MULTI_PHRASE
                        : form == MATCH_PHRASE_PREFIX ? MULTI_PHRASE_PREFIX
                                                      : MULTI_BEST_FIELDS;
    query->multi.tie_breaker = p->query->lucene.options.tie_breaker;
    query->multi.options = options;
    return query;
}

static struct query *make_pattern(struct lucene *p, struct slice field, enum query_kind kind, struct slice text,
                                  struct slice fuzziness)
{
    struct query model = {.kind = kind, .boost = 1.0};
    model.pattern.value = query__text(p->arena, text);
    model.pattern.fuzziness = fuzziness;
    model.pattern.in_query_string = true;
    if (field.data == NULL && p->field_count == 0 && (kind == QUERY_WILDCARD || kind == QUERY_REGEXP))
        return each_field(p, SLICE_LIT("*"), on_field, &model);
    if (field.data == NULL && p->field_count == 0) { /* as the former `_all`: match the words of every text field */
        struct query *words = make_words(p, field, text, kind == QUERY_PREFIX ? MATCH_PHRASE_PREFIX : MATCH_BOOLEAN, 0);
        words->multi.options.fuzziness = fuzziness;
        words->multi.options.prefix_anywhere = true;
        return words;
    }
    return each_field(p, field, on_field, &model);
}

static struct query *make_exists(struct lucene *p, struct slice field)
{
    struct query model = {.kind = QUERY_EXISTS, .boost = 1.0};
    if (slice_is(field, "*") || (field.data == NULL && p->field_count == 0))
        return query_match_all(p->arena);
    return each_field(p, field, on_field, &model);
}

/* --- Terms -------------------------------------------------------------------------------------------------------- */

static double take_number(struct lucene *p, double missing)
{
    char digits[32] = "";
    size_t len = 0;
    while (p->at < p->text.len && len < sizeof digits - 1 && byte_is_one_of(p->text.data[p->at], "0123456789."))
        digits[len++] = p->text.data[p->at++];
    double number = missing; /* unchanged if the digits do not parse, such as "." */
    (void)slice_to_double(slice_make(digits, len), &number);
    return number;
}

struct lucene_term {
    struct slice text;    /* escapes removed */
    struct slice pattern; /* escapes retained */
    bool wildcard;        /* has * or ? */
    bool prefix;          /* its only wildcard is a * at the end */
};

/* Consumes a term. Returns: false: there is no term at this offset. */
static bool take_term(struct lucene *p, struct lucene_term *ret_term)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    size_t start = p->at, stars = 0;
    bool question = false;
    while (p->at < p->text.len && !ends_term(p->text.data[p->at])) {
        char c = p->text.data[p->at++];
        if (c == '\\' && p->at < p->text.len)
            c = p->text.data[p->at++];
        else if (c == '*')
            stars++;
        else if (c == '?')
            question = true;
        buf_byte(&text, c);
    }
    ret_term->pattern = (struct slice){p->text.data + start, p->at - start};
    ret_term->text = arena_copy(p->arena, buf_as_slice(&text));
    ret_term->wildcard = stars > 0 || question;
    ret_term->prefix =
        stars == 1 && !question && ret_term->text.len > 1 && ret_term->text.data[ret_term->text.len - 1] == '*';
    buf_deinit(&text);
    return p->at > start;
}

static struct query *parse_phrase(struct lucene *p, struct slice field)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    while (p->at < p->text.len && p->text.data[p->at] != '"') {
        if (p->text.data[p->at] == '\\' && p->at + 1 < p->text.len)
            p->at++;
        buf_byte(&text, p->text.data[p->at++]);
    }
    struct slice copy = arena_copy(p->arena, buf_as_slice(&text));
    buf_deinit(&text);
    if (!take_char(p, '"'))
        return fail_lucene(p, EXPECTING_CLAUSE);
    double slop = take_char(p, '~') ? take_number(p, 0) : p->query->lucene.options.phrase_slop;
    return make_words(p, field, copy, MATCH_PHRASE, slop > 1e6 ? 1000000u : (unsigned)slop);
}

static struct slice take_bound(struct lucene *p)
{
    skip_space(p);
    size_t start = p->at;
    if (take_char(p, '"')) {
        start++;
        while (p->at < p->text.len && p->text.data[p->at] != '"')
            p->at++;
        struct slice quoted = {p->text.data + start, p->at - start};
        take_char(p, '"');
        return quoted;
    }
    while (p->at < p->text.len && !is_space(p->text.data[p->at]) && p->text.data[p->at] != ']' &&
           p->text.data[p->at] != '}')
        p->at++;
    return (struct slice){p->text.data + start, p->at - start};
}

static void set_bound(struct lucene *p, struct query *range, struct slice text, bool high)
{
    if (slice_is(text, "*"))
        return;
    *(high ? &range->range.high : &range->range.low) = query__text(p->arena, text);
}

/* Parses the rest of a range, after '[' or '{'. */
static struct query *parse_range(struct lucene *p, struct slice field, bool exclusive)
{
    struct query model = {.kind = QUERY_RANGE, .boost = 1.0};
    model.range.zone = p->query->lucene.options.zone;
    model.range.low_exclusive = exclusive;
    set_bound(p, &model, take_bound(p), false);
    if (!take_word(p, "TO"))
        return fail_lucene(p, "    \"TO\" ...\n    ");
    set_bound(p, &model, take_bound(p), true);
    skip_space(p);
    model.range.high_exclusive = p->at < p->text.len && p->text.data[p->at] == '}';
    if (!take_char(p, ']') && !take_char(p, '}'))
        return fail_lucene(p, "    \"]\" ...\n    \"}\" ...\n    ");
    if (field.data == NULL && p->field_count == 0)
        return query__new(p->arena, QUERY_MATCH_NONE);
    return each_field(p, field, on_field, &model);
}

/* Parses a comparison such as age:>=10. Returns: NULL: no comparison here, nothing consumed. */
static struct query *parse_comparison(struct lucene *p, struct slice field)
{
    if (field.data == NULL || p->at >= p->text.len || (p->text.data[p->at] != '<' && p->text.data[p->at] != '>'))
        return NULL;
    bool high = p->text.data[p->at++] == '<';
    bool exclusive = !take_char(p, '=');
    struct query *range = query__new(p->arena, QUERY_RANGE);
    struct lucene_term term;
    skip_space(p);
    if (!take_term(p, &term))
        return fail_lucene(p, EXPECTING_CLAUSE);
    range->field = field;
    range->lenient = p->lenient;
    range->range.zone = p->query->lucene.options.zone;
    range->range.low_exclusive = range->range.high_exclusive = exclusive;
    set_bound(p, range, term.text, high);
    return range;
}

static struct query *parse_regexp(struct lucene *p, struct slice field)
{
    size_t start = p->at;
    while (p->at < p->text.len && p->text.data[p->at] != '/')
        p->at += p->text.data[p->at] == '\\' && p->at + 1 < p->text.len ? 2 : 1;
    struct slice text = {p->text.data + start, p->at - start};
    if (!take_char(p, '/'))
        return fail_lucene(p, EXPECTING_CLAUSE);
    return make_pattern(p, field, QUERY_REGEXP, text, SLICE_NONE);
}

static struct query *make_term(struct lucene *p, struct slice field, const struct lucene_term *term)
{
    if (take_char(p, '~')) {
        double edits = take_number(p, 2);
        struct slice fuzziness = edits >= 2   ? SLICE_LIT("2")
                                 : edits >= 1 ? SLICE_LIT("1")
                                 : edits > 0  ? SLICE_LIT("auto")
                                              : SLICE_LIT("0");
        return make_pattern(p, field, QUERY_FUZZY, term->text, fuzziness);
    }
    if (!term->wildcard)
        return make_words(p, field, term->text, MATCH_BOOLEAN, 0);
    if (slice_is(term->text, "*"))
        return make_exists(p, field);
    if (term->prefix)
        return make_pattern(p, field, QUERY_PREFIX, (struct slice){term->text.data, term->text.len - 1}, SLICE_NONE);
    return make_pattern(p, field, QUERY_WILDCARD, term->pattern, SLICE_NONE);
}

/* --- Clauses ------------------------------------------------------------------------------------------------------ */

static struct query *parse_query(struct lucene *p, struct slice field);

static struct query *parse_group(struct lucene *p, struct slice field)
{
    if (++p->depth > QUERY_DEPTH_MAX)
        return fail_lucene(p, "    fewer brackets\n    ");
    struct query *inner = parse_query(p, field);
    p->depth--;
    skip_space(p);
    return take_char(p, ')') ? inner : fail_lucene(p, EXPECTING_MORE);
}

/* Consumes a field name and its colon. Returns: data NULL: no field name here, nothing consumed. */
static struct slice take_field(struct lucene *p)
{
    size_t start = p->at;
    struct lucene_term name;
    if (p->at < p->text.len && p->text.data[p->at] == '/') /* starts a regular expression, which may contain colons */
        return SLICE_NONE;
    if (take_term(p, &name) && (!name.wildcard || slice_is(name.text, "*")) && take_char(p, ':'))
        return name.text; /* wildcards in field names are escaped */
    p->at = start;
    return SLICE_NONE;
}

static struct query *parse_value(struct lucene *p, struct slice field)
{
    struct lucene_term term;
    skip_space(p);
    if (take_char(p, '('))
        return parse_group(p, field);
    if (take_char(p, '"'))
        return parse_phrase(p, field);
    if (take_char(p, '['))
        return parse_range(p, field, false);
    if (take_char(p, '{'))
        return parse_range(p, field, true);
    if (take_char(p, '/'))
        return parse_regexp(p, field);
    struct query *comparison = parse_comparison(p, field);
    if (comparison != NULL)
        return comparison;
    return take_term(p, &term) ? make_term(p, field, &term) : fail_lucene(p, EXPECTING_CLAUSE);
}

/* Refuses what follows a '^' and is no number. */
static struct query *fail_boost(struct lucene *p)
{
    struct problem *cause = arena_zalloc(p->arena, sizeof *cause);
    bool at_end = p->at >= p->text.len;
    if (p->failed)
        return query_match_all(p->arena);
    cause->type = PROBLEM_PARSE;
    cause->name = at_end ? SLICE_LIT("parse_exception") : SLICE_LIT("token_mgr_error");
    cause->reason =
        at_end
            ? arena_printf(p->arena,
                           "Encountered \"<EOF>\" at line 1, column %zu.\nWas expecting:\n    <NUMBER> ...\n    ",
                           p->text.len)
            : arena_printf(p->arena, "Lexical error at line 1, column %zu.  Encountered: \"%.*s\" (%d), after : \"\"",
                           p->at + 1, SLICE_ARG(char_at(p)), p->text.data[p->at]);
    return fail_because(p, cause);
}

/* Applies an optional ^BOOST suffix to `query`. A sign is no part of a boost. */
static struct query *take_boost(struct lucene *p, struct query *query)
{
    if (!take_char(p, '^'))
        return query;
    if (p->at >= p->text.len || !byte_is_one_of(p->text.data[p->at], "0123456789"))
        return fail_boost(p);
    struct query *times = query__new(p->arena, QUERY_BOOL);
    times->boost = take_number(p, 1);
    query__list_add(p->arena, &times->boolean.must, query);
    return times;
}

static struct query *parse_clause(struct lucene *p, struct slice field)
{
    struct slice named = take_field(p);
    if (slice_is(named, "_exists_")) {
        struct lucene_term term = {.text = SLICE_NONE};
        skip_space(p);
        if (take_term(p, &term) && term.wildcard && !slice_is(term.text, "*"))
            return take_boost(p, query__new(p->arena, QUERY_MATCH_NONE)); /* wildcards do not apply to this name */
        return term.text.len > 0 ? take_boost(p, make_exists(p, term.text)) : fail_lucene(p, EXPECTING_CLAUSE);
    }
    return take_boost(p, parse_value(p, named.data != NULL ? named : field));
}

enum occur { OCCUR_SHOULD, OCCUR_MUST, OCCUR_MUST_NOT };

struct lucene_clause {
    struct query *query;
    enum occur occur;
};

/*
 * Applies Lucene's rule: AND also makes the preceding clause required. OR makes the preceding
 * clause optional if the default operator is AND.
 */
static enum occur occur_of(struct lucene *p, bool and_before, bool or_before, char sign, struct lucene_clause *previous)
{
    if (previous != NULL && and_before && previous->occur == OCCUR_SHOULD)
        previous->occur = OCCUR_MUST;
    if (previous != NULL && or_before && p->query->lucene.options.and_operator && previous->occur == OCCUR_MUST)
        previous->occur = OCCUR_SHOULD;
    if (sign == '-')
        return OCCUR_MUST_NOT;
    if (p->query->lucene.options.and_operator)
        return or_before ? OCCUR_SHOULD : OCCUR_MUST; /* even with a plus */
    return sign == '+' || and_before ? OCCUR_MUST : OCCUR_SHOULD;
}

static char take_sign(struct lucene *p)
{
    if (take_word(p, "NOT") || take_char(p, '-') || take_char(p, '!'))
        return '-';
    return take_char(p, '+') ? '+' : ' ';
}

static struct query *combine_clauses(struct lucene *p, const struct lucene_clause *clauses, size_t count)
{
    if (count == 1 && clauses[0].occur != OCCUR_MUST_NOT)
        return clauses[0].query;
    struct query *all = query__new(p->arena, QUERY_BOOL);
    for (size_t i = 0; i < count; i++)
        query__list_add(p->arena,
                        clauses[i].occur == OCCUR_MUST       ? &all->boolean.must
                        : clauses[i].occur == OCCUR_MUST_NOT ? &all->boolean.must_not
                                                             : &all->boolean.should,
                        clauses[i].query);
    return all;
}

/* Returns: whether an operator that joins clauses is next. Consumes nothing. */
static bool at_conjunction(struct lucene *p)
{
    size_t start = p->at;
    bool found = take_word(p, "AND") || take_word(p, "OR") || take_word(p, "&&") || take_word(p, "||");
    p->at = start;
    return found;
}

/*
 * Consumes a plain term: no sign, field, wildcard, fuzziness or boost. Unless it is the first of
 * several, no operator may follow it.
 * Returns: false: no plain term here, nothing consumed.
 */
static bool take_plain(struct lucene *p, bool first, struct lucene_term *ret_term)
{
    skip_space(p);
    size_t start = p->at;
    bool found = p->at < p->text.len && !byte_is_one_of(p->text.data[p->at], "+-!/<>*?") && !at_conjunction(p) &&
                 !take_word(p, "NOT") && take_term(p, ret_term) && !ret_term->wildcard;
    size_t end = p->at;
    skip_space(p);
    bool special = p->at < p->text.len && byte_is_one_of(p->text.data[p->at], ":^~");
    bool star = p->at < p->text.len && p->text.data[p->at] == '*' &&
                (p->at + 1 == p->text.len || is_space(p->text.data[p->at + 1]));
    if (!found || special || (!first && (star || at_conjunction(p)))) {
        p->at = start;
        return false;
    }
    p->at = end;
    return true;
}

/* Returns: whether words go to a single text field. There each word is a separate clause. */
static bool splits_words(const struct lucene *p, struct slice field)
{
    struct slice only = field.data == NULL && p->field_count == 1 ? p->fields[0].name : field;
    bool known = only.data != NULL && p->mapping != NULL;
    const struct mapping_field *found = known ? mapping_field(p->mapping, only) : NULL;
    return found != NULL && found->type == FIELD_TEXT;
}

/*
 * Joins adjacent plain terms into one text, which each field analyzes as a whole.
 * Returns: NULL: fewer than two plain terms, nothing consumed.
 */
static struct query *parse_words(struct lucene *p, struct slice field)
{
    struct lucene_term term;
    size_t start = p->at;
    if (splits_words(p, field) || !take_plain(p, true, &term))
        return NULL;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    size_t count = 1;
    for (buf_slice(&text, term.text); take_plain(p, false, &term); count++) {
        buf_byte(&text, ' ');
        buf_slice(&text, term.text);
    }
    struct slice words = arena_copy(p->arena, buf_as_slice(&text));
    buf_deinit(&text);
    if (count > 1)
        return make_words(p, field, words, MATCH_BOOLEAN, 0);
    p->at = start;
    return NULL;
}

static struct query *parse_query(struct lucene *p, struct slice field)
{
    struct lucene_clause *clauses = NULL;
    size_t count = 0, capacity = 0;
    do {
        bool and_before = count > 0 && (take_word(p, "AND") || take_word(p, "&&"));
        bool or_before = count > 0 && !and_before && (take_word(p, "OR") || take_word(p, "||"));
        skip_space(p);
        char sign = take_sign(p);
        skip_space(p);
        clauses = arena_grow(p->arena, clauses, count, &capacity, sizeof *clauses);
        struct query *query = and_before || or_before || sign != ' ' ? NULL : parse_words(p, field);
        if (query == NULL)
            query = parse_clause(p, field);
        enum occur occur = occur_of(p, and_before, or_before, sign, count > 0 ? &clauses[count - 1] : NULL);
        clauses[count++] = (struct lucene_clause){query, occur};
    } while (!p->failed && !at_end(p) && p->text.data[p->at] != ')');
    return combine_clauses(p, clauses, count);
}

static struct query *with_boost(struct query *parsed, double boost)
{
    parsed->boost *= boost;
    return parsed;
}

/* Sets minimum_should_match of the outermost bool query. A single clause is no bool query. */
static struct query *with_minimum(struct query *parsed, const struct query *query)
{
    struct slice minimum = query->lucene.options.minimum_should_match;
    if (parsed->kind == QUERY_BOOL && minimum.len > 0)
        parsed->boolean.minimum_should_match = minimum;
    return parsed;
}

static void lucene_init(struct lucene *p, struct arena *arena, const struct query *query,
                        const struct query_field *fields, size_t field_count, struct problem *problem)
{
    *p = (struct lucene){
        .arena = arena, .query = query, .fields = fields, .field_count = field_count, .problem = problem};
    p->text = query->lucene.text;
    if (query->lucene.options.default_field.len > 0 && !slice_is(query->lucene.options.default_field, "*") &&
        !slice_is(query->lucene.options.default_field, "_all") && field_count == 0) {
        struct query_field *single = arena_alloc(arena, sizeof *single);
        *single = (struct query_field){query->lucene.options.default_field, 1.0};
        p->fields = single;
        p->field_count = 1;
    }
    if (p->field_count == 1 && slice_is(p->fields[0].name, "*"))
        p->field_count = 0;
    bool everywhere = p->field_count == 0 || query__names_all_fields(p->fields, p->field_count);
    p->lenient = query->lucene.options.lenient_given ? query->lucene.options.lenient : everywhere;
}

int lucene_parse(struct arena *arena, const struct mapping *mapping, const struct query *query,
                 const struct query_field *fields, size_t field_count, struct query **ret_query,
                 struct problem *ret_problem)
{
    struct lucene p;
    lucene_init(&p, arena, query, fields, field_count, ret_problem);
    p.mapping = mapping;
    if (at_end(&p)) {
        *ret_query = query__new(arena, QUERY_MATCH_NONE);
        return 0;
    }
    *ret_query = with_minimum(with_boost(parse_query(&p, SLICE_NONE), query->boost), query);
    if (!p.failed && !at_end(&p))
        fail_lucene(&p, EXPECTING_MORE);
    return p.failed ? QUERY_REFUSED : 0;
}

/* --- simple_query_string ------------------------------------------------------------------------------------------ */

/*
 * The syntax of Lucene's SimpleQueryParser, which accepts any text:
 *
 *     query := { [+ | "|"] {-} clause }
 *     clause := word[*] | word~[N] | "phrase"[~N] | '(' query ')'
 *
 * A backslash before a character makes it an ordinary one. Characters that are no operator where
 * they are, such as a bracket that is never closed, are passed over.
 */
enum simple_operator { SIMPLE_NONE, SIMPLE_AND, SIMPLE_OR };

/* One query of the grammar, while it is read. */
struct simple {
    struct query *top;             /* the clauses so far; NULL: none yet */
    enum simple_operator previous; /* joins the clauses of `top`, a bool query; NONE: there is one clause */
    enum simple_operator next;     /* read since the last clause; NONE: the default operator */
};

static void simple_query(struct lucene *p, struct simple *ret_simple);

static bool ends_simple_word(char c)
{
    return is_space(c) || byte_is_one_of(c, "\"|+()");
}

/* Finds the closing bracket of each opening one in a single pass; 0: it has none. */
static void find_closing(struct lucene *p)
{
    size_t depth = 0;
    uint32_t *open = arena_alloc(p->arena, (p->text.len + 1) * sizeof *open);
    p->closing = arena_zalloc(p->arena, (p->text.len + 1) * sizeof *p->closing);
    for (size_t i = 0; i < p->text.len; i++) {
        if (p->text.data[i] == '\\')
            i++;
        else if (p->text.data[i] == '(')
            open[depth++] = (uint32_t)i;
        else if (p->text.data[i] == ')' && depth > 0)
            p->closing[open[--depth]] = (uint32_t)i;
    }
}

/* Makes a query that matches all documents which a clause does not match. */
static struct query *excluding_clause(struct lucene *p, struct query *clause)
{
    struct query *others = query__new(p->arena, QUERY_BOOL);
    others->boolean.excludes = true;
    query__list_add(p->arena, &others->boolean.must_not, clause);
    query__list_add(p->arena, &others->boolean.should, query_match_all(p->arena));
    return others;
}

static void add_simple_operand(struct lucene *p, struct query *query, enum simple_operator operator,
                               struct query * clause)
{
    query__list_add(p->arena, operator== SIMPLE_AND ? &query->boolean.must : & query->boolean.should, clause);
}

/*
 * Adds a clause. If another operator joins it than those before, the query so far becomes the first
 * operand: operators apply from left to right.
 */
static void add_simple(struct lucene *p, struct simple *simple, struct query *clause, bool negated)
{
    enum simple_operator by_default = p->query->lucene.options.and_operator ? SIMPLE_AND : SIMPLE_OR;
    enum simple_operator operator= simple->next != SIMPLE_NONE ? simple->next : by_default;
    simple->next = SIMPLE_NONE;
    if (clause == NULL)
        return;
    if (negated)
        clause = excluding_clause(p, clause);
    if (simple->top == NULL) {
        simple->top = clause;
        return;
    }
    if (simple->previous != operator) {
        struct query *both = query__new(p->arena, QUERY_BOOL);
        add_simple_operand(p, both, operator, simple->top);
        simple->top = both;
        simple->previous = operator;
    }
    add_simple_operand(p, simple->top, operator, clause);
}

/*
 * Consumes "~N" up to the end of the word.
 * Returns: N; 2: no number follows; 0: what follows is no number, or it is negative.
 */
static unsigned take_distance(struct lucene *p)
{
    int64_t number = 2;
    size_t start = ++p->at;
    while (p->at < p->text.len && !ends_simple_word(p->text.data[p->at]))
        p->at++;
    if (p->at > start && (!slice_to_i64((struct slice){p->text.data + start, p->at - start}, &number) || number < 0))
        return 0;
    return number > 1000000 ? 1000000u : (unsigned)number;
}

static void simple_brackets(struct lucene *p, struct simple *simple, bool negated)
{
    size_t close = p->closing[p->at], end = p->text.len;
    p->at++;
    if (close == 0 || p->depth >= QUERY_DEPTH_MAX)
        return;
    if (close == p->at) { /* "()" takes the operator before it along */
        simple->next = SIMPLE_NONE;
    } else {
        struct simple inner;
        p->depth++;
        p->text.len = close;
        simple_query(p, &inner);
        p->text.len = end;
        p->depth--;
        add_simple(p, simple, inner.top, negated);
    }
    p->at = close + 1;
}

static void simple_phrase(struct lucene *p, struct simple *simple, bool negated)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    size_t start = ++p->at;
    bool escaped = false;
    if (p->text.len <= p->unquoted_to)
        return;
    while (p->at < p->text.len && (escaped || p->text.data[p->at] != '"')) {
        escaped = !escaped && p->text.data[p->at] == '\\';
        if (!escaped)
            buf_byte(&text, p->text.data[p->at]);
        p->at++;
    }
    struct slice phrase = arena_copy(p->arena, buf_as_slice(&text));
    buf_deinit(&text);
    if (p->at >= p->text.len) { /* never closed: not searched again, which would be quadratic */
        p->unquoted_to = p->text.len;
        p->at = start;
        return;
    }
    size_t close = p->at++;
    if (close == start) {
        simple->next = SIMPLE_NONE;
        return;
    }
    unsigned slop = 0;
    if (p->at + 1 < p->text.len && p->text.data[p->at] == '~')
        slop = take_distance(p);
    add_simple(p, simple, make_words(p, SLICE_NONE, phrase, MATCH_PHRASE, slop), negated);
}

static void simple_word(struct lucene *p, struct simple *simple, bool negated)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    bool escaped = false, prefix = false, similar = false;
    while (p->at < p->text.len) {
        char c = p->text.data[p->at];
        if (!escaped && ends_simple_word(c))
            break;
        similar = !escaped && c == '~' && text.len > 0;
        if (similar)
            break;
        prefix = !escaped && c == '*' && text.len > 0;
        escaped = !escaped && c == '\\';
        if (!escaped)
            buf_byte(&text, c);
        p->at++;
    }
    struct slice word = arena_copy(p->arena, buf_as_slice(&text));
    buf_deinit(&text);
    unsigned edits = similar ? take_distance(p) : 0;
    if (word.len == 0) /* a backslash at the end */
        return;
    if (edits > 0)
        add_simple(p, simple,
                   make_pattern(p, SLICE_NONE, QUERY_FUZZY, word, edits == 1 ? SLICE_LIT("1") : SLICE_LIT("2")),
                   negated);
    else if (prefix && !similar)
        add_simple(p, simple,
                   make_pattern(p, SLICE_NONE, QUERY_PREFIX, (struct slice){word.data, word.len - 1}, SLICE_NONE),
                   negated);
    else
        add_simple(p, simple, make_words(p, SLICE_NONE, word, MATCH_BOOLEAN, 0), negated);
}

/* Reads a query up to the end of p->text. */
static void simple_query(struct lucene *p, struct simple *ret_simple)
{
    unsigned minuses = 0; /* directly before the clause; two negate each other */
    *ret_simple = (struct simple){0};
    while (p->at < p->text.len) {
        char c = p->text.data[p->at];
        bool negated = minuses % 2 == 1;
        minuses = c == '-' ? minuses + 1 : 0;
        if (c == '(') {
            simple_brackets(p, ret_simple, negated);
        } else if (c == '"') {
            simple_phrase(p, ret_simple, negated);
        } else if (c == '+' || c == '|') { /* the first of several applies, and none before the first clause */
            if (ret_simple->next == SIMPLE_NONE && ret_simple->top != NULL)
                ret_simple->next = c == '+' ? SIMPLE_AND : SIMPLE_OR;
            p->at++;
        } else if (c == ')' || c == '-' || is_space(c)) {
            p->at++;
        } else {
            simple_word(p, ret_simple, negated);
        }
    }
}

struct query *lucene_parse_simple(struct arena *arena, const struct mapping *mapping, const struct query *query,
                                  const struct query_field *fields, size_t field_count)
{
    struct problem ignored;
    struct lucene p;
    struct simple simple;
    lucene_init(&p, arena, query, fields, field_count, &ignored);
    p.mapping = mapping;
    skip_space(&p);
    if (take_char(&p, '*') && at_end(&p))
        return with_boost(query_match_all(arena), query->boost);
    p.at = 0;
    find_closing(&p);
    simple_query(&p, &simple);
    if (simple.top == NULL)
        return query__new(arena, QUERY_MATCH_NONE);
    return with_minimum(with_boost(simple.top, query->boost), query);
}
