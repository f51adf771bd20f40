/* SPDX-License-Identifier: Apache-2.0 */
/* Binding analysed text: the match queries and multi_match. */
#include "query/bound_query.h"
#include "query/metadata.h"
#include "query/phrase.h"

#include "mapping/analysis.h"

#include <math.h>

struct tokens {
    struct binder *binder;
    struct analysis_token *items;
    size_t count, capacity;
};

/* Account steps: to start analysing a text, and for each token. */
enum { ANALYSE_STEPS = 100, TOKEN_STEPS = 50 };

static bool take_token(void *context, const struct analysis_token *token)
{
    struct tokens *tokens = context;
    tokens->items =
        arena_grow(tokens->binder->arena, tokens->items, tokens->count, &tokens->capacity, sizeof *tokens->items);
    tokens->items[tokens->count] = *token;
    tokens->items[tokens->count++].text = arena_copy(tokens->binder->arena, token->text);
    return tokens->count < QUERY_CLAUSES_MAX * 8 && bind__charge(tokens->binder, TOKEN_STEPS);
}

int bind__check_analyzer(struct binder *binder, const char *query, struct slice analyzer)
{
    if (analyzer.len == 0 || mapping_analyzer(binder->index->mapping, analyzer) != NULL)
        return 0;
    return bind__refuse_plain(binder, "[%s] analyzer [%.*s] not found", query, SLICE_ARG(analyzer));
}

/* Requires: bind__check_analyzer(). */
static int analyse_text(struct binder *binder, const struct mapping_field *field, const struct match_options *options,
                        struct slice text, bool phrase, struct tokens *ret_tokens)
{
    const struct analyzer *analyzer = field->search_analyzer != NULL ? field->search_analyzer : field->analyzer;
    if (phrase && field->quote_analyzer != NULL)
        analyzer = field->quote_analyzer;
    if (options->analyzer.len > 0)
        analyzer = mapping_analyzer(binder->index->mapping, options->analyzer);
    *ret_tokens = (struct tokens){.binder = binder};
    if (!bind__charge(binder, ANALYSE_STEPS + text.len)) /* each field analyses the text again */
        return QUERY_REFUSED;
    size_t left = ANALYSIS_FILTERED_MAX;
    if (!analyzer_run_bounded(analyzer, text, binder->arena, &left, take_token, ret_tokens))
        return bind__refuse_plain(binder,
                                  "Limit of bytes [%zu] that token filters read after [path_hierarchy] in a text has "
                                  "been exceeded",
                                  ANALYSIS_FILTERED_MAX);
    return 0;
}

static struct bound_query *zero_terms(struct binder *binder, const struct match_options *options, double boost)
{
    return options->zero_terms_absent ? bind__absent(binder)
                                      : bind__new(binder, options->zero_terms_all ? BOUND_ALL : BOUND_NONE, boost);
}

static int bind_token(struct binder *binder, const struct query *query, const struct mapping_field *field,
                      const struct match_options *options, struct slice token, bool prefix,
                      struct bound_query **ret_matcher)
{
    if (!prefix && options->fuzziness.len == 0)
        return bind__term(binder, field, query__text(binder->arena, token), query->boost, binder->scores, ret_matcher);
    struct query *pattern = query__new(binder->arena, prefix ? QUERY_PREFIX : QUERY_FUZZY);
    pattern->boost = query->boost;
    pattern->field = field->path;
    pattern->pattern.value = query__text(binder->arena, token);
    pattern->pattern.fuzziness = options->fuzziness;
    pattern->pattern.prefix_length = options->prefix_length;
    return bind__pattern(binder, pattern, field, ret_matcher);
}

/*
 * Binds the tokens at one position as alternatives (synonyms). Starts at token *at and advances *at
 * to the next position.
 * Returns: 0; QUERY_REFUSED; fatal codes.
 */
static int bind_position(struct binder *binder, const struct query *query, const struct mapping_field *field,
                         const struct match_options *options, const struct tokens *tokens, bool prefix_last, size_t *at,
                         struct bound_query **ret_matcher)
{
    struct bound_query *group = bind__new(binder, BOUND_DIS_MAX, 1);
    uint32_t position = tokens->items[*at].position;
    for (; *at < tokens->count && tokens->items[*at].position == position; ++*at) {
        struct bound_query *one;
        bool prefix = prefix_last && *at + 1 == tokens->count;
        int r = bind_token(binder, query, field, options, tokens->items[*at].text, prefix, &one);
        if (r != 0)
            return r;
        bind__list_add(binder, &group->compound.queries, one);
    }
    *ret_matcher = group->compound.queries.count == 1 ? group->compound.queries.items[0] : group;
    return 0;
}

static int match_words(struct binder *binder, const struct query *query, const struct mapping_field *field,
                       const struct match_options *options, const struct tokens *tokens, bool prefix_last,
                       struct bound_query **ret_matcher)
{
    struct bound_query *words = bind__new(binder, BOUND_BOOL, 1);
    for (size_t at = 0; at < tokens->count;) {
        struct bound_query *word;
        int r = bind_position(binder, query, field, options, tokens, prefix_last, &at, &word);
        if (r != 0)
            return r;
        bind__list_add(binder, options->and_operator ? &words->boolean.must : &words->boolean.should, word);
    }
    size_t clauses = words->boolean.must.count + words->boolean.should.count;
    if (clauses > QUERY_CLAUSES_MAX) {
        bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "maxClauseCount is set to %d", QUERY_CLAUSES_MAX);
        binder->problem->caused_by->name = SLICE_LIT("too_many_clauses");
        return QUERY_REFUSED;
    }
    words->boolean.minimum = words->boolean.should.count > 0;
    if (options->minimum_should_match.len > 0 && words->boolean.should.count > 0) {
        int r =
            bind__minimum(binder, options->minimum_should_match, words->boolean.should.count, &words->boolean.minimum);
        if (r != 0)
            return r;
        if (words->boolean.minimum == 0)
            words->boolean.minimum = 1;
    }
    *ret_matcher = clauses > 1                      ? words
                   : words->boolean.must.count == 1 ? words->boolean.must.items[0]
                                                    : words->boolean.should.items[0];
    return 0;
}

static int match_phrase(struct binder *binder, const struct query *query, const struct mapping_field *field,
                        const struct match_options *options, const struct tokens *tokens, bool prefix_last,
                        struct bound_query **ret_matcher)
{
    if (tokens->count == 1) {
        struct match_options exact = *options;
        exact.fuzziness = SLICE_NONE;
        return bind_token(binder, query, field, &exact, tokens->items[0].text, prefix_last, ret_matcher);
    }
    if (!field->positions)
        return bind__refuse(binder, PROBLEM_ILLEGAL_STATE,
                            "field:[%.*s] was indexed without position data; cannot run PhraseQuery",
                            SLICE_ARG(field->path));
    struct bound_query *matcher = bind__new(binder, BOUND_PHRASE, query->boost);
    matcher->field = field;
    matcher->phrase.tokens = arena_alloc(binder->arena, tokens->count * sizeof(struct slice));
    matcher->phrase.positions = arena_alloc(binder->arena, tokens->count * sizeof(uint32_t));
    matcher->phrase.weights = arena_zalloc(binder->arena, tokens->count * sizeof(struct term_weight));
    matcher->phrase.count = tokens->count;
    matcher->phrase.slop = options->slop;
    matcher->phrase.last_is_prefix = prefix_last;
    for (size_t i = 0; i < tokens->count; i++) {
        matcher->phrase.tokens[i] = tokens->items[i].text;
        matcher->phrase.positions[i] = tokens->items[i].position - tokens->items[0].position;
    }
    phrase_bind(matcher, binder->arena);
    if (binder->scores && field->scored) {
        for (size_t i = 0; i < tokens->count; i++)
            matcher->phrase.weights[i] =
                (struct term_weight){.scored = true, .norms = field->norms, .frequencies = true};
        bind__list_add(binder, &binder->terms, matcher);
    }
    *ret_matcher = matcher;
    return 0;
}

static int refuse_phrase_prefix(struct binder *binder, struct slice field, struct slice type)
{
    return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                        "Can only use phrase prefix queries on text fields - not on [%.*s] which is of type [%.*s]",
                        SLICE_ARG(field), SLICE_ARG(type));
}

/* In 7.x a word that may differ is looked for in texts and keywords alone. */
static int refuse_fuzzy(struct binder *binder, struct slice field, struct slice type)
{
    return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT,
                        "Can only use fuzzy queries on keyword and text fields - not on [%.*s] which is of type [%.*s]",
                        SLICE_ARG(field), SLICE_ARG(type));
}

static int match_field(struct binder *binder, const struct query *query, const struct mapping_field *field,
                       enum match_form form, yyjson_val *value, const struct match_options *options,
                       struct bound_query **ret_matcher)
{
    bool prefix_last = form == MATCH_PHRASE_PREFIX || form == MATCH_BOOL_PREFIX;
    if (field->type != FIELD_TEXT) {
        if (form == MATCH_PHRASE_PREFIX && !options->prefix_anywhere && binder->context->dialect == DIALECT_7)
            return refuse_phrase_prefix(binder, field->path, field->type_name);
        if (prefix_last && field->type == FIELD_KEYWORD)
            return bind_token(binder, query, field, options, query__scalar_text(binder->arena, value), true,
                              ret_matcher);
        if (options->fuzziness.len > 0 && field->type == FIELD_KEYWORD)
            return bind_token(binder, query, field, options, query__scalar_text(binder->arena, value), false,
                              ret_matcher);
        if (options->fuzziness.len > 0 && binder->context->dialect == DIALECT_7)
            return refuse_fuzzy(binder, field->path, field->type_name);
        return bind__term(binder, field, value, query->boost, binder->scores, ret_matcher);
    }
    if (!field->indexed)
        return bind__refuse(binder, PROBLEM_ILLEGAL_ARGUMENT, "Cannot search on field [%.*s] since it is not indexed.",
                            SLICE_ARG(field->path));
    struct tokens tokens;
    bool phrase = form == MATCH_PHRASE || form == MATCH_PHRASE_PREFIX;
    int r = analyse_text(binder, field, options, query__scalar_text(binder->arena, value), phrase, &tokens);
    if (r != 0)
        return r;
    *ret_matcher = zero_terms(binder, options, query->boost);
    if (tokens.count == 0)
        return 0;
    if (phrase)
        return match_phrase(binder, query, field, options, &tokens, prefix_last, ret_matcher);
    return match_words(binder, query, field, options, &tokens, prefix_last, ret_matcher);
}

/* As match_field(), but with options->lenient a refusal matches nothing instead. */
static int match_lenient(struct binder *binder, const struct query *query, const struct mapping_field *field,
                         enum match_form form, yyjson_val *value, const struct match_options *options,
                         struct bound_query **ret_matcher)
{
    int r = match_field(binder, query, field, form, value, options, ret_matcher);
    if (r == QUERY_REFUSED && options->lenient && bind__charge(binder, 0)) {
        *ret_matcher = bind__new(binder, BOUND_NONE, 1);
        return 0;
    }
    return r;
}

/* Binds a match on a metadata field as a term, since metadata fields are not analysed. */
static int match_metadata(struct binder *binder, const struct metadata_field *field, enum match_form form,
                          yyjson_val *value, double boost, const struct match_options *options,
                          struct bound_query **ret_matcher)
{
    bool prefix = form == MATCH_BOOL_PREFIX && (field->traits & METADATA_BOOL_PREFIX) != 0;
    struct slice name = slice_from(field->name);
    if (form == MATCH_PHRASE_PREFIX && binder->context->dialect == DIALECT_7 && !options->lenient)
        return refuse_phrase_prefix(binder, name, name);
    static const char *const others[] = {"_id", "_index", "_type", "_seq_no", NULL};
    if (options->fuzziness.len > 0 && slice_is_any(name, others) && binder->context->dialect == DIALECT_7 &&
        !options->lenient)
        return refuse_fuzzy(binder, name, name);
    struct query *query = query__new(binder->arena, prefix ? QUERY_PREFIX : QUERY_TERM);
    query->boost = boost;
    query->field = name;
    query->lenient = options->lenient;
    if (prefix) {
        query->pattern.value = value;
        return query_bind(binder, query, ret_matcher);
    }
    query->values.items = arena_alloc(binder->arena, sizeof value);
    query->values.items[0] = value;
    query->values.count = 1;
    return query_bind(binder, query, ret_matcher);
}

int bind__match(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    static const char *const names[] = {"match", "match_phrase", "match_phrase_prefix", "match_bool_prefix"};
    int r = bind__check_analyzer(binder, names[query->match.form], query->match.options.analyzer);
    if (r != 0)
        return r;
    const struct mapping_field *field = mapping_field(binder->index->mapping, query->field);
    const struct metadata_field *metadata = field == NULL ? metadata_find(query->field) : NULL;
    if (metadata != NULL)
        return match_metadata(binder, metadata, query->match.form, query->match.value, query->boost,
                              &query->match.options, ret_matcher);
    if ((slice_is(query->field, "_all") && binder->context->dialect == DIALECT_5) || slice_is(query->field, "*")) {
        struct query *multi = query__new(binder->arena, QUERY_MULTI_MATCH);
        multi->boost = query->boost;
        multi->multi.value = query->match.value;
        multi->multi.tie_breaker = NAN;
        multi->multi.form = query->match.form == MATCH_PHRASE          ? MULTI_PHRASE
                            : query->match.form == MATCH_PHRASE_PREFIX ? MULTI_PHRASE_PREFIX
                                                                       : MULTI_BEST_FIELDS;
        multi->multi.options = query->match.options;
        multi->multi.options.lenient = true;
        return bind__multi_match(binder, multi, ret_matcher);
    }
    *ret_matcher = bind__new(binder, BOUND_NONE, 1);
    if (field == NULL || field->type == FIELD_OBJECT || field->type == FIELD_NESTED)
        return 0;
    return match_lenient(binder, query, field, query->match.form, query->match.value, &query->match.options,
                         ret_matcher);
}

/* --- Multiple fields ---------------------------------------------------------------------------------------------- */

struct chosen_fields {
    struct binder *binder;
    double boost; /* of the current field pattern */
    struct chosen_field {
        const struct mapping_field *field;     /* NULL: `metadata` instead */
        const struct metadata_field *metadata; /* NULL: `field` instead */
        double boost;
    } * items;
    size_t count, capacity;
};

static void put_chosen(struct chosen_fields *chosen, struct chosen_field item)
{
    chosen->items =
        arena_grow(chosen->binder->arena, chosen->items, chosen->count, &chosen->capacity, sizeof *chosen->items);
    chosen->items[chosen->count++] = item;
}

static void choose_field(void *context, const struct mapping_field *field)
{
    struct chosen_fields *chosen = context;
    bool searchable = field->indexed && field->type != FIELD_OBJECT && field->type != FIELD_NESTED &&
                      field->type != FIELD_BINARY && field->type != FIELD_STORED;
    if (!searchable || chosen->count >= QUERY_CLAUSES_MAX)
        return;
    put_chosen(chosen, (struct chosen_field){.field = field, .boost = chosen->boost});
}

static void choose_fields(struct chosen_fields *chosen, const struct query_field *fields, size_t count)
{
    const struct mapping *mapping = chosen->binder->index->mapping;
    if (count == 0) {
        chosen->boost = 1;
        mapping_fields_matching(mapping, SLICE_LIT("*"), choose_field, chosen);
    }
    for (size_t i = 0; i < count; i++) {
        bool everything = slice_is(fields[i].name, "_all") && chosen->binder->context->dialect == DIALECT_5;
        struct slice name = everything ? SLICE_LIT("*") : fields[i].name;
        const struct mapping_field *field = mapping_field(mapping, name);
        chosen->boost = fields[i].boost;
        if (slice_find_byte(name, '*') < name.len)
            mapping_fields_matching(mapping, name, choose_field, chosen);
        else if (field != NULL)
            choose_field(chosen, field);
        else if (metadata_find(name) != NULL && chosen->count < QUERY_CLAUSES_MAX)
            put_chosen(chosen, (struct chosen_field){.metadata = metadata_find(name), .boost = chosen->boost});
    }
}

static int match_chosen(struct binder *binder, const struct chosen_field *chosen, enum match_form form,
                        yyjson_val *value, const struct match_options *options, struct bound_query **ret_matcher)
{
    struct query part = {.kind = QUERY_MATCH, .boost = chosen->boost};
    return chosen->field == NULL
               ? match_metadata(binder, chosen->metadata, form, value, chosen->boost, options, ret_matcher)
               : match_lenient(binder, &part, chosen->field, form, value, options, ret_matcher);
}

/* Binds cross_fields: each word may be in any of the fields. */
static int match_across(struct binder *binder, const struct query *query, const struct chosen_fields *chosen,
                        const struct match_options *options, struct bound_query **ret_matcher)
{
    struct tokens tokens = {.binder = binder};
    for (size_t i = 0; i < chosen->count && tokens.count == 0; i++) {
        if (chosen->items[i].field != NULL && chosen->items[i].field->type == FIELD_TEXT) {
            int r = analyse_text(binder, chosen->items[i].field, options,
                                 query__scalar_text(binder->arena, query->multi.value), false, &tokens);
            if (r != 0)
                return r;
        }
    }
    struct bound_query *words = bind__new(binder, BOUND_BOOL, query->boost);
    for (size_t t = 0; t < tokens.count; t++) {
        struct bound_query *anywhere = bind__new(binder, BOUND_DIS_MAX, 1);
        for (size_t i = 0; i < chosen->count; i++) {
            struct bound_query *one;
            int r = match_chosen(binder, &chosen->items[i], MATCH_BOOLEAN,
                                 query__text(binder->arena, tokens.items[t].text), options, &one);
            if (r != 0)
                return r;
            bind__list_add(binder, &anywhere->compound.queries, one);
        }
        bind__list_add(binder, options->and_operator ? &words->boolean.must : &words->boolean.should, anywhere);
    }
    words->boolean.minimum = words->boolean.should.count > 0;
    *ret_matcher = tokens.count > 0 ? words : bind__new(binder, BOUND_NONE, 1);
    if (options->minimum_should_match.len > 0 && words->boolean.should.count > 0)
        return bind__minimum(binder, options->minimum_should_match, words->boolean.should.count,
                             &words->boolean.minimum);
    return 0;
}

int bind__multi_match(struct binder *binder, const struct query *query, struct bound_query **ret_matcher)
{
    static const enum match_form forms[] = {MATCH_BOOLEAN, MATCH_BOOLEAN,       MATCH_BOOLEAN,
                                            MATCH_PHRASE,  MATCH_PHRASE_PREFIX, MATCH_BOOL_PREFIX};
    struct chosen_fields chosen = {.binder = binder};
    struct match_options options = query->multi.options;
    int r = bind__check_analyzer(binder, "multi_match", options.analyzer);
    if (r != 0)
        return r;
    bool everywhere =
        query->multi.field_count == 0 || query__names_all_fields(query->multi.fields, query->multi.field_count);
    options.lenient = options.lenient || (everywhere && !options.lenient_given);
    choose_fields(&chosen, query->multi.fields, query->multi.field_count);
    if (query->multi.form == MULTI_CROSS_FIELDS)
        return match_across(binder, query, &chosen, &options, ret_matcher);
    bool sum = query->multi.form == MULTI_MOST_FIELDS || query->multi.form == MULTI_BOOL_PREFIX;
    struct bound_query *matcher = bind__new(binder, BOUND_DIS_MAX, query->boost);
    matcher->compound.number = !isnan(query->multi.tie_breaker) ? (float)query->multi.tie_breaker : sum ? 1.0f : 0.0f;
    for (size_t i = 0; i < chosen.count; i++) {
        struct bound_query *one;
        r = match_chosen(binder, &chosen.items[i], forms[query->multi.form], query->multi.value, &options, &one);
        if (r != 0)
            return r;
        if (!one->absent)
            bind__list_add(binder, &matcher->compound.queries, one);
    }
    *ret_matcher = matcher;
    if (matcher->compound.queries.count == 0)
        *ret_matcher = chosen.count > 0 ? bind__absent(binder) : bind__new(binder, BOUND_NONE, 1);
    return 0;
}
