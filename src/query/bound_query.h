/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matchers: a query bound to one index, and the document it looks at. For src/query only.
 *
 * Binding resolves fields, analyses texts and converts values, so that matching a document compares values
 * and nothing else.
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
    BOUND_TERMS, /* has one of these values */
    BOUND_RANGE,
    BOUND_PATTERN, /* has a value that fits a pattern */
    BOUND_EXISTS,  /* has a value in one of these fields */
    BOUND_PHRASE,  /* has these tokens next to each other */
    BOUND_BOOL,
    BOUND_DIS_MAX,
    BOUND_CONSTANT,
    BOUND_BOOSTING,
    BOUND_FUNCTION,
    BOUND_SCRIPT,
    BOUND_KIND_COUNT
};

/* BM25, as far as it is known before the document. */
struct term_weight {
    bool scored;        /* false: constant, the matcher's boost */
    bool norms;         /* the length of the field counts; without: every field is one long */
    bool frequencies;   /* how often the value is there counts; without: a length is of distinct values, too */
    bool lucene6;           /* as Lucene 6 computes it, for 5.6 */
    uint64_t documents; /* that hold the field */
    uint64_t with_term;
    double mean_length;
    float weight; /* boost * (k1 + 1) * idf */
    float idf;    /* of a word of a phrase; 0 where it does not count */
};

struct bound_query_list {
    struct bound_query **items;
    size_t count;
    size_t capacity;
};

struct bound_function {
    struct bound_query *filter; /* NULL: always */
    const struct score_function *spec;
    const struct mapping_field *field;
    const struct metadata_field *metadata; /* instead; NULL: none */
    struct script *script;
};

struct bound_query {
    enum bound_query_kind kind;
    float boost;
    const struct mapping_field *field;
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
            struct slice *keys; /* of the documents that entries name for the one value; NULL: not looked up */
            size_t key_count;
        } terms;
        struct {
            struct field_value low, high;
            bool has_low, has_high, low_exclusive, high_exclusive;
        } range; /* RANGE, SEQ_NO, ROUTING_RANGE */
        struct {
            const struct term_pattern *pattern;
            bool (*fits)(const struct term_pattern *pattern, struct slice text, struct account *account);
            struct slice prefix; /* what every value that fits begins with */
        } pattern; /* PATTERN, ROUTING_PATTERN */
        struct {
            const struct mapping_field **fields;
            size_t count;
        } exists;
        struct {
            struct slice *tokens;
            uint32_t *positions; /* relative */
            struct term_weight *weights;
            size_t count;
            unsigned slop;
            bool last_is_prefix;
            struct slice *words; /* the tokens, sorted, no duplicates; without the last where that is a prefix */
            size_t word_count;
            uint32_t *word_of; /* of each token: its word; of a prefix word_count */
        } phrase;
        struct {
            struct bound_query_list must, filter, should, must_not;
            size_t minimum; /* of should */
        } boolean;
        struct {
            struct bound_query_list queries;
            float number;
        } compound; /* DIS_MAX, CONSTANT, BOOSTING */
        struct {
            struct bound_query *query;
            struct bound_function *functions;
            const struct query *spec;
        } function;
        struct {
            struct script *script;
            struct slice params;
        } script;
    };
};

/* The document at hand. Everything derived from it lives in `arena`, which match_doc_set() resets. */
struct match_doc {
    const struct search_index *index;
    struct arena arena;
    uint16_t type;
    struct slice id;
    const struct doc *doc;
    yyjson_val *root;              /* NULL until asked for */
    struct match_doc_values *values; /* read so far */
    struct match_doc_text *texts;    /* analysed so far, for phrases */
    float score;                   /* of a document that the query found, for aggregations */
    int error;                     /* fatal, of parsing the source */
    struct problem *problem;       /* of a script that failed; in `problems` */
    struct arena *problems;
    struct account *account; /* of the search; NULL: none */
};

/* The values of one field, read once a document. */
struct match_doc_values {
    struct match_doc_values *next;
    const struct mapping_field *field;
    struct field_value *values;
    size_t count;
    struct field_value *sorted; /* the same in order; NULL: not sorted yet */
    size_t lookups;       /* how often terms were looked for among them */
};

/* The tokens of one text field, analysed once a document. */
struct match_doc_text {
    struct match_doc_text *next;
    const struct mapping_field *field;
    struct positioned_token *tokens; /* their positions never decrease */
    size_t count, capacity;
};

void match_doc_init(struct match_doc *match_doc, const struct search_index *index, struct arena *problems);
void match_doc_deinit(struct match_doc *match_doc);
/* Turns to another document, whose slices outlive the use. */
void match_doc_set(struct match_doc *match_doc, uint16_t type, struct slice id, const struct doc *doc);
/* Returns: the parsed source, or NULL where it is corrupt (then subject->error). */
yyjson_val *match_doc_root(struct match_doc *match_doc);
/* Returns: what is read of a field; valid until match_doc_set(). */
struct match_doc_values *match_doc_values(struct match_doc *match_doc, const struct mapping_field *field);
/* Returns: the values of a field of the document. */
size_t match_doc_field(struct match_doc *match_doc, const struct mapping_field *field, struct field_value **ret_values);

/* Returns: where a field's values stand in the source: a multi-field's are its parent's. */
struct slice field_source_path(const struct mapping_field *field);

/* A parameter of the field's mapping that is true or false. */
bool field_parameter_flag(const struct mapping_field *field, const char *name, bool otherwise);

/* Returns: whether the document matches; then its score in *ret_score. Errors are the subject's. */
bool bound_query_match(const struct bound_query *matcher, struct match_doc *match_doc, float *ret_score);

/* Runs a script on the subject for a boolean or a number; failures are the subject's. */
struct script_value;
int match_doc_run_script(struct match_doc *match_doc, const struct script *script, struct slice params, float score,
                       struct script_value *ret_value) TL_MUST_USE;

/* --- Binding ----------------------------------------------------------------------------------------------
 */

struct binder {
    struct arena *arena;
    const struct search_index *index;
    const struct search_context *context;
    bool scores;               /* statistics are wanted */
    struct account *account;   /* of the search; NULL: none. What is bound, or weighed, once it is over means nothing */
    struct problem *problem;   /* filled when refused: what goes into the index's query_shard_exception */
    struct bound_query_list terms; /* matchers whose weights wait for statistics: TERMS and PHRASE */
    struct named_list *named;  /* gets the matchers of queries that have a name; NULL: nobody asks for them */
    struct script **scripts;   /* to be released */
    size_t script_count, script_capacity;
    unsigned depth;
};

/* Binds a tree. Returns: 0; QUERY_REFUSED with binder->problem. */
int query_bind(struct binder *binder, const struct query *query, struct bound_query **ret_matcher) TL_MUST_USE;
/* Returns: how many of the values are others than those before them. */
size_t field_value_distinct(const struct field_value *values, size_t count, struct arena *arena);
/* Fills the weights of binder->terms. Returns: 0 or a fatal code. */
int query_load_term_stats(struct binder *binder, const struct view *view) TL_MUST_USE;
void binder_deinit(struct binder *binder);

/*
 * Takes steps of the search's account, before what they pay for is done. Returns: false: the search is over, or may have no more memory. Whoever
 * is told so ends with QUERY_REFUSED, of which the search then tells nobody.
 */
bool bind__charge(struct binder *binder, uint64_t steps) TL_MUST_USE;
struct bound_query *bind__new(struct binder *binder, enum bound_query_kind kind, double boost);
void bind__list_add(struct binder *binder, struct bound_query_list *list, struct bound_query *matcher);
/* "failed to create query: …" around a cause; the kind of problem that a value which does not fit makes. */
int bind__refuse(struct binder *binder, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);
/* A query_shard_exception with this text and no cause. */
int bind__refuse_plain(struct binder *binder, const char *format, ...) TL_PRINTF(2, 3);
/* One value of one field; text is taken as a token. */
int bind__term(struct binder *binder, const struct mapping_field *field, yyjson_val *scalar, double boost, bool scored,
               struct bound_query **ret_matcher) TL_MUST_USE;
/* A text that is no date of a format. */
int bind__refuse_date(struct binder *binder, struct slice text, struct slice format);
int bind__range(struct binder *binder, const struct query *query, const struct mapping_field *field,
                struct bound_query **ret_matcher) TL_MUST_USE;
int bind__pattern(struct binder *binder, const struct query *query, const struct mapping_field *field,
                  struct bound_query **ret_matcher) TL_MUST_USE;
/* What a value must look like, whatever the field. */
int bind__pattern_text(struct binder *binder, const struct query *query, struct slice text, struct bound_query *matcher)
    TL_MUST_USE;
int bind__match(struct binder *binder, const struct query *query, struct bound_query **ret_matcher) TL_MUST_USE;
int bind__multi_match(struct binder *binder, const struct query *query, struct bound_query **ret_matcher) TL_MUST_USE;
int bind__script(struct binder *binder, const struct query_script *spec, int script_context,
                 struct script **ret_script) TL_MUST_USE;
/* "75%", "2", "-1", "2<75%" of `count` optional clauses. */
int bind__minimum(struct binder *binder, struct slice text, size_t count, size_t *ret_minimum) TL_MUST_USE;

/* Lucene's syntax into nodes, for an index with this mapping (NULL: of no fields). Returns: 0; QUERY_REFUSED with the problem a parse_exception. */
int lucene_parse(struct arena *arena, const struct mapping *mapping, const struct query *query,
                 const struct query_field *fields, size_t field_count, struct query **ret_query,
                 struct problem *ret_problem) TL_MUST_USE;
/* The syntax of simple_query_string, in which nothing is wrong. */
struct query *lucene_parse_simple(struct arena *arena, const struct mapping *mapping, const struct query *query,
                                  const struct query_field *fields, size_t field_count);

/* --- Patterns ---------------------------------------------------------------------------------------------
 */

/* Each draws on the account, which may be NULL; once that is over the result means nothing. */
bool term_pattern_wildcard(const struct term_pattern *pattern, struct slice text, struct account *account);
bool term_pattern_prefix(const struct term_pattern *pattern, struct slice text, struct account *account);
bool term_pattern_fuzzy(const struct term_pattern *pattern, struct slice text, struct account *account);
bool term_pattern_regexp(const struct term_pattern *pattern, struct slice text, struct account *account);
/* `case_insensitive` folds ASCII letters. */
const struct term_pattern *term_pattern_new(struct arena *arena, struct slice text, bool case_insensitive);
const struct term_pattern *term_pattern_new_fuzzy(struct arena *arena, struct slice text, unsigned edits, unsigned prefix_length,
                                        bool transpositions);
/* Returns: NULL and *ret_reason where the expression cannot be followed. */
const struct term_pattern *term_pattern_new_regexp(struct arena *arena, struct slice text, bool case_insensitive,
                                         struct slice *ret_reason);
/* What every text that fits begins with. */
struct slice term_pattern_literal_prefix(const struct term_pattern *pattern, bool wildcard);

#endif
