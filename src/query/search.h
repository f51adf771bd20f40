/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching: runs a request over a list of indices. See README.md.
 *
 *     struct search_context context = {.view = &view, .indices = …, .dialect = …, .now_ms = …};
 *     r = search_run(&context, &request, NULL, &result);
 *
 * A search writes its hits as JSON objects into a buffer; the caller writes the envelope around
 * them.
 */
#ifndef TL_QUERY_SEARCH_H
#define TL_QUERY_SEARCH_H

#include "base/account.h"
#include "base/buf.h"
#include "query/query.h"
#include "query/request.h"
#include "store/view.h"

struct mapping;
struct script;
struct query_script;

#define SEARCH_WINDOW_MAX 10000    /* from + size; index.max_result_window */
#define SEARCH_TOTAL_DEFAULT 10000 /* track_total_hits of 7.x */
#define SEARCH_INDICES_MAX 10000
#define SEARCH_SORT_BYTES_MAX (256u << 20)     /* hits and their sort values in memory at once */
#define SEARCH_SHORT_DOCUMENTS 1000            /* documents that a short search may read */
#define SEARCH_SHORT_STEPS ((uint64_t)4 << 20) /* account steps, some ms of CPU (base/account.h) */
#define SEARCH_CURSOR_WINDOW 100000            /* hits that a sorted cursor collects in one pass */
#define SEARCH_RESPONSE_BYTES_MAX (2ul << 30)
#define SEARCH_SCRIPT_FIELDS_MAX 32    /* index.max_script_fields */
#define SEARCH_DOCVALUE_FIELDS_MAX 100 /* index.max_docvalue_fields_search */

/* One index to search. Slices and pointers outlive the search. */
struct search_index {
    struct slice name;
    struct slice uuid;
    const struct slice *aliases; /* all aliases of the index; queries on `_index` match them, too */
    size_t alias_count;
    uint32_t number;      /* prefix of document and entry keys */
    uint32_t shard_count; /* as reported in replies */
    const struct mapping *mapping;
    struct slice zones;      /* time zone database, for scripts; empty: no named zones */
    uint64_t document_count; /* in the view if count_exact; otherwise approximate */
    bool count_exact;
    struct query *filter; /* of the request's aliases and types; NULL: none */
    double boost;         /* indices_boost; default 1 */
    const bool *shards;   /* for each of shard_count whether ?routing= selects it; NULL: all */
    bool *fetched;        /* out: set when a hit of the index is fetched; NULL: not needed */
    unsigned window_max;  /* index.max_result_window; 0: SEARCH_WINDOW_MAX */
    unsigned hits_max;    /* index.max_inner_result_window, of top_hits; 0: its default */
    unsigned terms_max;   /* index.max_terms_count; 0: QUERY_TERMS_MAX */
    unsigned regexp_max;  /* index.max_regex_length; 0: QUERY_REGEXP_CHARACTERS_MAX */
    unsigned clauses_max; /* 0: QUERY_CLAUSES_MAX */
    /* The setting plus one, since the setting may be 0; 0: the default. */
    uint64_t docvalue_fields_end; /* index.max_docvalue_fields_search */
    uint64_t script_fields_end;   /* index.max_script_fields */
};

/*
 * Compiles a script of a search, like script_compile(). The implementation caches, and resolves
 * stored scripts.
 */
typedef int search_compile(void *user, const struct query_script *spec, int script_context, struct script **ret_script,
                           struct arena *arena, struct problem *ret_problem);

/*
 * Limits how many scripts of searches run at the same time: the memory of a run is not charged to a guard, but has a
 * limit of its own.
 */
struct search_script_gate {
    /* Called before each run. Returns: false: the account has ended; the script is not run. */
    bool (*begin)(void *user, struct account *account);
    /* Called after a run, when its memory is free. */
    void (*end)(void *user);
    void *user;
};

/* The environment of a search, common to all its indices. */
struct search_context {
    struct arena *arena; /* of the request */
    const struct view *view;
    const struct search_index *indices;
    size_t index_count;
    enum dialect dialect;
    int64_t now_ms;              /* for date math */
    struct slice node;           /* node id reported in shard failures */
    struct budget_guard *memory; /* for response and aggregations; NULL: unlimited */
    const bool *end_page;        /* search_next_each(): set by the visitor to end the page; NULL: never */
    /*
     * Account of the request: its deadline, its cancellation and the clock for `timeout`. Each
     * search copies it into an account of its own. NULL: searches cannot be cancelled and have no
     * timeout.
     */
    const struct account *account;
    bool full_scan;     /* never plan with index entries; for tests */
    uint64_t steps_max; /* a search that needs more steps ends with SEARCH_LONG; 0: unlimited */
    bool short_only;    /* SEARCH_LONG if it reads many documents or runs scripts */
    bool typed_keys;    /* names of aggregation results are prefixed by their kind: "sterms#name" */
    bool total_as_int;  /* hits.total in top_hits is a number */
    bool no_types;      /* hits have no _type, as in 8.x */
    search_compile *compile; /* NULL: scripts are refused */
    void *compile_user;
    const struct search_script_gate *gate; /* NULL: no limit */
};

/* Outcomes. */
enum {
    SEARCH_REFUSED = 1,   /* invalid, or an index refused it; the reason is in *ret_problem */
    SEARCH_CANCELLED = 2, /* context->account has ended, or will at its next poll */
    SEARCH_TOO_OLD = 3,   /* the view's timestamp is below the history limit */
    SEARCH_LONG = 4,      /* exceeds context->short_only or steps_max; may be run again */
};

enum search_relation { RELATION_EQ, RELATION_GTE };

struct search_result {
    uint64_t total;
    enum search_relation relation;
    bool has_max_score;
    float max_score;
    bool terminated_early;
    bool timed_out; /* the request's timeout passed; the result has the hits found before */
    size_t hit_count;
    struct buf hits;         /* JSON objects, separated by commas */
    struct buf aggregations; /* a JSON object, or empty */
    bool more;               /* of a cursor: there may be further pages */
};
/* Releases the buffers. */
void search_result_deinit(struct search_result *result);

/*
 * Returns: whether no document matches. A total of 0 does not say so: with `track_total_hits`
 * false it is the limit up to which matches are counted.
 */
static inline bool search_result_is_empty(const struct search_result *result)
{
    return result->total == 0 && result->relation == RELATION_EQ;
}

/*
 * Runs a search.
 * Returns: 0; SEARCH_REFUSED with *ret_problem (a search_phase_execution_exception if an index
 * refused); SEARCH_CANCELLED; SEARCH_TOO_OLD; SEARCH_LONG; TL_ERR_IO; TL_ERR_CORRUPT.
 * Owns: the caller; search_result_deinit, also after failures.
 */
int search_run(const struct search_context *context, const struct search_request *request,
               struct search_result *ret_result, struct problem *ret_problem) TL_MUST_USE;

/*
 * Validates a query by binding it to an index. It reads no documents and compiles no scripts: a
 * query with a script is valid. Ends when the guard of `arena` is refused, or its account has ended.
 * Returns: 0; SEARCH_REFUSED, where *ret_problem is the plain cause, not wrapped as a search
 * failure.
 */
int search_check(const struct search_index *index, const struct query *query, enum dialect dialect, int64_t now_ms,
                 struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/*
 * Like search_check(), and describes the bound query in Lucene's notation (describe.h) in
 * *ret_text, which lives in `arena`. A query with a script is "ScriptQuery".
 */
int search_explain(const struct search_index *index, const struct query *query, enum dialect dialect, int64_t now_ms,
                   struct arena *arena, struct slice *ret_text, struct problem *ret_problem) TL_MUST_USE;

/*
 * Counts the documents that match, with at least `min_score` (NAN: any). *ret_early: stopped at
 * `terminate_after` (0: none).
 * Returns: as search_run().
 */
int search_count(const struct search_context *context, const struct query *query, uint64_t terminate_after,
                 double min_score, uint64_t *ret_count, bool *ret_early, struct problem *ret_problem) TL_MUST_USE;

/*
 * A cursor reads a search page by page, for scrolls and by-query calls. It keeps its position, not
 * the hits it returned. Each page may use a new context and request with the same contents.
 */
struct search_cursor;
struct search_cursor *search_cursor_new(void);
void search_cursor_free(struct search_cursor *cursor);
TL_DEFINE_FREEP(struct search_cursor, search_cursor_free)
/* Returns: the bytes of memory it holds, for limits. */
size_t search_cursor_bytes(const struct search_cursor *cursor);

/*
 * Rewinds by one page, for a page that was not delivered. Assumes: a page was read by
 * search_next().
 */
void search_cursor_repeat(struct search_cursor *cursor);

/*
 * Reads the next request->size hits. The total is the one counted for the first page.
 * Returns: as search_run().
 */
int search_next(const struct search_context *context, const struct search_request *request,
                struct search_cursor *cursor, struct search_result *ret_result,
                struct problem *ret_problem) TL_MUST_USE;

/* A hit as a document instead of JSON. Its slices are valid during the call of `visit`. */
struct search_hit {
    const struct search_index *index;
    struct slice type;
    struct slice id;
    struct slice routing; /* data NULL: none */
    int64_t version;
    int64_t seq_no;
    struct slice source;
};
/* Returns: 0 to continue; any other code ends search_next_each() with that code. */
typedef int search_visit(void *user, const struct search_hit *hit);
/* As search_next(), but calls `visit` for each hit instead of writing JSON. */
int search_next_each(const struct search_context *context, const struct search_request *request,
                     struct search_cursor *cursor, search_visit *visit, void *user, struct search_result *ret_result,
                     struct problem *ret_problem) TL_MUST_USE;

#endif
