/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bound queries: a parsed query resolved against the mapping of one index, and the document being
 * matched. For src/query only.
 *
 * Binding resolves fields, analyses text and converts values once, so that matching a document only
 * compares values.
 */
#ifndef TL_QUERY_BOUND_QUERY_H
#define TL_QUERY_BOUND_QUERY_H

#include "base/account.h"
#include "core/documents/doc.h"
#include "mapping/mapping.h"
#include "query/node.h"
#include "query/search.h"

struct metadata_field;
struct named_list;
struct term_pattern;
struct script;

enum bound_query_kind {
    BOUND_ALL,
    BOUND_NONE,
    BOUND_IDS,
    BOUND_TYPES,
    BOUND_ROUTING,
    BOUND_ROUTING_PATTERN,
    BOUND_ROUTING_RANGE,
    BOUND_SEQ_NO,
    BOUND_TERMS, /* the field has one of these values */
    BOUND_RANGE,
    BOUND_PATTERN, /* the field has a value that the pattern matches */
    BOUND_EXISTS,  /* one of these fields has a value */
    BOUND_PHRASE,  /* the field has these tokens in order, within slop */
    BOUND_BOOL,
    BOUND_DIS_MAX,
    BOUND_CONSTANT,
    BOUND_BOOSTING,
    BOUND_FUNCTION,
    BOUND_SCRIPT,
    BOUND_KIND_COUNT
};

/*
 * The part of a term's BM25 score that does not depend on the document. Filled by
 * query_load_term_stats().
 */
struct term_weight {
    bool scored;        /* false: the score is constant, the boost of the bound query */
    bool norms;         /* field length counts; false: every field has length 1 */
    bool frequencies;   /* term frequency counts; false: it is 1, and values are a set */
    bool lucene6;       /* as Lucene 6 computes it, for the 5.x dialect */
    double mean_length; /* of the field, in tokens */
    float weight;       /* boost * (k1 + 1) * idf */
    float idf;          /* inverse document frequency of the term */
};

struct bound_query_list {
    struct bound_query **items;
    size_t count;
    size_t capacity;
};

struct bound_function {
    struct bound_query *filter; /* NULL: applies to every document */
    const struct score_function *spec;
    const struct mapping_field *field;     /* field_value_factor; NULL: none or unmapped */
    const struct metadata_field *metadata; /* field_value_factor on it; NULL: none */
    struct script *script;                 /* NULL: none; released by the binder */
};

struct bound_query {
    enum bound_query_kind kind;
    float boost;
    bool absent;                       /* NONE: no clause of the bool or dis_max query around it (zero_terms_absent) */
    const struct mapping_field *field; /* NULL: the kind has no field, or it is unmapped */
    union {
        struct {
            struct slice *items; /* sorted bytewise, no duplicates */
            size_t count;
        } names; /* IDS, ROUTING */
        struct {
            uint16_t *numbers;
            size_t count;
        } types;
        struct {
            struct field_value *values; /* sorted, no duplicates */
            size_t count;
            struct term_weight weight;
            struct slice *keys; /* of the documents with the value; NULL: not looked up */
            size_t key_count;
        } terms;
        struct {
            struct field_value low, high;
            bool has_low, has_high, low_exclusive, high_exclusive;
        } range; /* RANGE, SEQ_NO, ROUTING_RANGE */
        struct {
            const struct term_pattern *pattern;
            bool (*fits)(const struct term_pattern *pattern, struct slice text, struct account *account);
            struct slice prefix; /* common prefix of all matching values; may be empty */
        } pattern;               /* PATTERN, ROUTING_PATTERN */
        struct {
            const struct mapping_field **fields;
            size_t count;
        } exists;
        struct {
            struct slice *tokens;
            uint32_t *positions; /* one a token, relative to the first */
            struct term_weight *weights;
            size_t count;
            unsigned slop;
            bool last_is_prefix;
            struct slice *words; /* distinct tokens, sorted; without a prefix token */
            size_t word_count;
            uint32_t *word_of; /* for each token its index in `words`; word_count for the prefix */
        } phrase;
        struct {
            struct bound_query_list must, filter, should, must_not;
            size_t minimum; /* number of `should` clauses that must match */
        } boolean;
        struct {
            struct bound_query_list queries;
            float number;
        } compound; /* DIS_MAX, CONSTANT, BOOSTING */
        struct {
            struct bound_query *query;
            struct bound_function *functions;
            const struct query *spec;
            bool checked; /* 7.x: negative scores end the search */
        } function;
        struct {
            struct script *script;
            struct slice params;
        } script;
    };
};

/*
 * The document being matched. Everything derived from it lives in `arena`, which match_doc_set()
 * resets.
 */
struct match_doc {
    const struct search_index *index;
    struct arena arena;
    struct arena scratch; /* of aggregations and scripts, which rewind it: there may be many for one document */
    uint16_t type;
    struct slice id;
    const struct doc *doc;
    yyjson_val *root;                /* parsed source; NULL until first requested, or if corrupt */
    struct match_doc_values *values; /* list of the fields read already */
    struct match_doc_text *texts;    /* list of the text fields analysed already, for phrases */
    float score;                     /* of the query, for aggregations; valid after a match */
    int error;                       /* fatal code of parsing the source; 0: none */
    struct problem *problem;         /* first script failure, allocated in `problems`; NULL: none */
    struct arena *problems;          /* outlives the documents */
    struct account *account;         /* of the search; NULL: unlimited */
    const struct search_script_gate *gate; /* of the search; NULL: none */
    size_t kept;                     /* bytes of results of scripts that the document keeps */
    size_t charged;                  /* the most that a document kept, as charged to the guard of `problems` */
};

/* The values of one field, read once per document. */
struct match_doc_values {
    struct match_doc_values *next;
    const struct mapping_field *field;
    struct field_value *values;
    size_t count;
    struct field_value *sorted; /* `values` in ascending order; NULL: not sorted yet */
    size_t lookups;             /* number of term lookups; after several the values are sorted */
};

/* The tokens of one text field, analysed once per document. */
struct match_doc_text {
    struct match_doc_text *next;
    const struct mapping_field *field;
    struct positioned_token *tokens; /* positions never decrease */
    size_t count, capacity;
};

/*
 * Initialises for documents of one index. Problems of failed scripts are allocated in `problems`.
 */
void match_doc_init(struct match_doc *match_doc, const struct search_index *index, struct arena *problems);
void match_doc_deinit(struct match_doc *match_doc);
/*
 * Frees the values and texts read from the document, and the chunks that its arenas retain: for a search of many
 * indices, each of which has a match_doc. Assumes: match_doc_set() is called before the next use.
 */
void match_doc_clear(struct match_doc *match_doc);
/* Returns: a mark of match_doc->scratch, to be rewound. Its first chunk stays: few bytes take no allocation. */
struct arena_mark match_doc_mark(struct match_doc *match_doc);
/*
 * Switches to another document. Assumes: `id` and `doc` stay valid until the next call or
 * match_doc_deinit().
 */
void match_doc_set(struct match_doc *match_doc, uint16_t type, struct slice id, const struct doc *doc);
/*
 * Parses the source on first use. Returns: its root; NULL if it is corrupt, with match_doc->error
 * set.
 */
yyjson_val *match_doc_root(struct match_doc *match_doc);
/*
 * Reads a field on first use. Returns: its values, never NULL, empty if the source is corrupt; valid
 * until match_doc_set().
 */
struct match_doc_values *match_doc_values(struct match_doc *match_doc, const struct mapping_field *field);
/*
 * As match_doc_values(). Returns: the number of values. match_doc_field() gives them in the order of
 * the source, match_doc_sorted() in ascending order, which is that of doc values.
 */
size_t match_doc_field(struct match_doc *match_doc, const struct mapping_field *field,
                       const struct field_value **ret_values);
size_t match_doc_sorted(struct match_doc *match_doc, const struct mapping_field *field,
                        const struct field_value **ret_values);
/* Sorts values on first use. Ensures: values->sorted has all values; NULL if the count is 0. */
void match_doc_sort_values(struct match_doc *match_doc, struct match_doc_values *values);

/*
 * Returns: the path at which the source has the field's values; for a multi-field that is its
 * parent's path.
 */
struct slice field_source_path(const struct mapping_field *field);

/*
 * Returns: a boolean parameter of the field's mapping; `otherwise` if the mapping does not set it.
 */
bool field_parameter_flag(const struct mapping_field *field, const char *name, bool otherwise);

/*
 * Matches a document. Returns: whether it matches; if so, its score in *ret_score.
 * Ensures: a failure is in match_doc->error or match_doc->problem, and the result is then
 * meaningless.
 */
bool bound_query_match(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score);

struct script_eval;
/* The part of a script's result that stays until match_doc_set(); a boolean and a number are in the result itself. */
enum script_result { SCRIPT_RESULT_NUMBER, SCRIPT_RESULT_TEXT, SCRIPT_RESULT_JSON };

/*
 * Runs a script on the document. All that the run allocates is free afterwards, except `part`.
 * Returns: 0; a positive code if the script failed, with match_doc->problem; fatal codes. A short
 * search (SEARCH_SHORT_STEPS) runs no script: it ends its account and returns SCRIPT_FAILED without
 * a problem; so it does if the guard of the search has been refused, or is, or if the account ends at the gate.
 */
int match_doc_run_script(struct match_doc *match_doc, const struct script *script, struct slice params, float score,
                         enum script_result part, struct script_eval *ret_value) TL_MUST_USE;

/* --- Binding ------------------------------------------------------------------------------------------------------ */

struct binder {
    struct arena *arena;
    const struct search_index *index;
    const struct search_context *context;
    bool scores;                   /* the current node contributes to scores */
    struct account *account;       /* of the search; once ended, results are meaningless */
    struct problem *problem;       /* filled when refused: the index's query_shard_exception */
    struct bound_query_list terms; /* input of query_load_term_stats() */
    struct named_list *named;      /* receives the queries that have a `_name`; NULL: not needed */
    struct script **scripts;       /* compiled by this binder; binder_deinit() releases them */
    size_t script_count, script_capacity;
    unsigned depth; /* of query_bind() calls, limited to twice QUERY_DEPTH_MAX */
};

/*
 * Binds a query tree to the binder's index.
 * Returns: 0; QUERY_REFUSED with binder->problem; fatal codes. Owns: the bound tree lives in the
 * binder's arena.
 */
int query_bind(struct binder *binder, const struct query *query, struct bound_query **ret_matcher) TL_MUST_USE;
/* Returns: the number of distinct values. */
size_t field_value_distinct(const struct field_value *values, size_t count, struct arena *arena);
/*
 * Reads the term statistics of the index and fills the weights of binder->terms.
 * Returns: 0; fatal codes. For a view below the history limit it fills no usable weights and
 * returns 0: the search then ends with SEARCH_TOO_OLD by itself.
 */
int query_load_term_stats(struct binder *binder, const struct view *view) TL_MUST_USE;
void binder_deinit(struct binder *binder);

/*
 * Charges steps to the search's account, before the work is done.
 * Returns: false if the account has ended or the memory budget is refused. The caller then returns
 * QUERY_REFUSED, and the search reports the account's or budget's outcome instead of a problem.
 */
bool bind__charge(struct binder *binder, uint64_t steps) TL_MUST_USE;
/* Allocates a zeroed node in the binder's arena. */
struct bound_query *bind__new(struct binder *binder, enum bound_query_kind kind, double boost);
/* Makes the NONE of a text without tokens, see zero_terms_absent. */
struct bound_query *bind__absent(struct binder *binder);
/* Returns: one that matches no document. */
struct bound_query *bind__none(struct binder *binder);
void bind__list_add(struct binder *binder, struct bound_query_list *list, struct bound_query *matcher);
/*
 * Refuses with a query_shard_exception "failed to create query: …", caused by this problem.
 * Returns: QUERY_REFUSED.
 */
int bind__refuse(struct binder *binder, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);
/* Refuses with a query_shard_exception that has this text and no cause. Returns: QUERY_REFUSED. */
int bind__refuse_plain(struct binder *binder, const char *format, ...) TL_PRINTF(2, 3);
/*
 * Binds one value of one field; text is one token, not analysed. `scored`: the weight is filled
 * from statistics.
 * Returns: 0; QUERY_REFUSED. *ret_matcher is TERMS, RANGE (dates, address blocks) or NONE (a value
 * the type cannot hold).
 */
int bind__term(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, double boost, bool scored,
               struct bound_query **ret_matcher) TL_MUST_USE;
/* Refuses a text that does not parse as a date in this format. Returns: QUERY_REFUSED. */
int bind__refuse_date(struct binder *binder, struct slice text, struct slice format);
int bind__range(struct binder *binder, const struct query *query, const struct mapping_field *field,
                struct bound_query **ret_matcher) TL_MUST_USE;
int bind__pattern(struct binder *binder, const struct query *query, const struct mapping_field *field,
                  struct bound_query **ret_matcher) TL_MUST_USE;
/* Fills the `pattern` of a PATTERN or ROUTING_PATTERN, which does not depend on the field. */
int bind__pattern_text(struct binder *binder, const struct query *query, struct slice text,
                       struct bound_query *matcher) TL_MUST_USE;
/*
 * Refuses the analyzer of a query if the index has none of this name (empty: none given), also if the
 * query is lenient. Returns: 0; QUERY_REFUSED.
 */
int bind__check_analyzer(struct binder *binder, const char *query, struct slice analyzer) TL_MUST_USE;
int bind__match(struct binder *binder, const struct query *query, struct bound_query **ret_matcher) TL_MUST_USE;
int bind__multi_match(struct binder *binder, const struct query *query, struct bound_query **ret_matcher) TL_MUST_USE;
int bind__script(struct binder *binder, const struct query_script *spec, int script_context,
                 struct script **ret_script) TL_MUST_USE;
/*
 * Evaluates minimum_should_match ("75%", "2", "-1", "2<75%") for `count` optional clauses.
 * Returns: 0; QUERY_REFUSED if it is malformed. *ret_minimum may exceed `count`.
 */
int bind__minimum(struct binder *binder, struct slice text, size_t count, size_t *ret_minimum) TL_MUST_USE;

/*
 * Parses Lucene's query syntax into nodes, for an index with this mapping (NULL: no fields).
 * Returns: 0; QUERY_REFUSED with a parse_exception in *ret_problem.
 */
int lucene_parse(struct arena *arena, const struct mapping *mapping, const struct query *query,
                 const struct query_field *fields, size_t field_count, struct query **ret_query,
                 struct problem *ret_problem) TL_MUST_USE;
/* Parses the syntax of simple_query_string, which accepts any text. */
struct query *lucene_parse_simple(struct arena *arena, const struct mapping *mapping, const struct query *query,
                                  const struct query_field *fields, size_t field_count);

/* --- Patterns ----------------------------------------------------------------------------------------------------- */

/*
 * Match a text against a pattern of the function's kind. Each charges the account (NULL:
 * unlimited); once it has ended the result is meaningless.
 */
bool term_pattern_wildcard(const struct term_pattern *pattern, struct slice text, struct account *account);
bool term_pattern_prefix(const struct term_pattern *pattern, struct slice text, struct account *account);
bool term_pattern_fuzzy(const struct term_pattern *pattern, struct slice text, struct account *account);
bool term_pattern_regexp(const struct term_pattern *pattern, struct slice text, struct account *account);
/* Makes a wildcard or prefix pattern. `case_insensitive` folds ASCII letters. */
const struct term_pattern *term_pattern_new(struct arena *arena, struct slice text, bool case_insensitive);
const struct term_pattern *term_pattern_new_fuzzy(struct arena *arena, struct slice text, unsigned edits,
                                                  unsigned prefix_length, bool transpositions);
/* Compiles a regular expression. Returns: NULL with *ret_reason if it is malformed or too large. */
const struct term_pattern *term_pattern_new_regexp(struct arena *arena, struct slice text, bool case_insensitive,
                                                   struct slice *ret_reason);
/*
 * Returns: the literal prefix that every matching text begins with; `wildcard`: it ends before the
 * first `*`, `?` or `\`.
 */
struct slice term_pattern_literal_prefix(const struct term_pattern *pattern, bool wildcard);

#endif
