/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching: indices, a request, and what comes of it. See README.md.
 *
 *     struct search_context context = {.view = &view, .indices = …, .dialect = …, .now_ms = …};
 *     r = search_run(&context, &request, NULL, &result);
 *
 * A search writes its hits as JSON into a buffer and leaves the envelope around them to its caller.
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
#define SEARCH_SORT_BYTES_MAX (256u << 20)     /* sort values held at once */
#define SEARCH_SHORT_DOCUMENTS 1000            /* what a short search may read at most */
#define SEARCH_SHORT_STEPS ((uint64_t)4 << 20) /* and take of an account: some ms (base/account.h) */
#define SEARCH_CURSOR_WINDOW 100000            /* hits of a sorted cursor found in one pass */
#define SEARCH_RESPONSE_BYTES_MAX (2ul << 30)
#define SEARCH_SCRIPT_FIELDS_MAX 32    /* index.max_script_fields */
#define SEARCH_DOCVALUE_FIELDS_MAX 100 /* index.max_docvalue_fields_search */

/* One index to search. Slices and pointers outlive the search. */
struct search_index {
    struct slice name;
    struct slice uuid;
    const struct slice *aliases; /* all that the index has: queries on `_index` know it by those, too */
    size_t alias_count;
    uint32_t number;      /* in keys of documents and entries */
    uint32_t shard_count; /* as replies show it */
    const struct mapping *mapping;
    struct slice zones;      /* the database of time zones, for scripts; empty: none have names */
    uint64_t document_count; /* as of the view, where count_exact; else near it */
    bool count_exact;
    struct query *filter; /* of the aliases it was reached by, and the types of the path; NULL: none */
    double boost;         /* indices_boost; 1 */
    const bool *shards;   /* which of shard_count are asked, by ?routing=; NULL: all */
    bool *fetched;        /* set when a hit of it is read; NULL: nobody asks */
    unsigned window_max;  /* index.max_result_window; 0: SEARCH_WINDOW_MAX */
    unsigned hits_max;    /* index.max_inner_result_window, of top_hits; 0: its default */
    unsigned terms_max;   /* index.max_terms_count; 0: QUERY_TERMS_MAX */
    unsigned regexp_max;  /* index.max_regex_length; 0: QUERY_REGEXP_CHARACTERS_MAX */
    unsigned clauses_max; /* 0: QUERY_CLAUSES_MAX */
    /* One more than what these settings say, since none may be asked for at all; 0: their defaults. */
    uint64_t docvalue_fields_end; /* index.max_docvalue_fields_search */
    uint64_t script_fields_end;   /* index.max_script_fields */
};

/* Compiles a script of a search, from a cache. As script_compile(); stored scripts are found by the owner. */
typedef int search_compile(void *user, const struct query_script *spec, int script_context, struct script **ret_script,
                           struct arena *arena, struct problem *ret_problem);

/* What a search runs in. */
struct search_context {
    struct arena *arena; /* of the request */
    const struct view *view;
    const struct search_index *indices;
    size_t index_count;
    enum dialect dialect;
    int64_t now_ms;              /* for date math */
    struct slice node;           /* a node id, for failed shards */
    struct budget_guard *memory; /* asked for what the response takes; NULL: nobody is (base/budget.h) */
    const bool *end_page; /* search_next_each(): set by the visitor after a hit, the page ends with it; NULL: no */
    /*
     * Of the one who asks: by what, and when, its searches are ended, and the clock for `timeout`. A search has an account of its
     * own that is made like it. NULL: nothing ends a search, and it has no timeout.
     */
    const struct account *account;
    bool full_scan;     /* never use entries: for tests */
    uint64_t steps_max; /* of its account: SEARCH_LONG instead of a search that takes more; 0: as many as it takes */
    bool short_only;    /* SEARCH_LONG instead of a search that takes long: reads much, or runs scripts */
    bool typed_keys;    /* results of aggregations are named with their kind */
    bool total_as_int;  /* totals of hits in aggregations are numbers */
    bool no_types;      /* hits have no _type, as in 8.x */
    search_compile *compile; /* NULL: scripts are refused */
    void *compile_user;
};

/* Outcomes. */
enum {
    SEARCH_REFUSED = 1,   /* the problem says why */
    SEARCH_CANCELLED = 2, /* context->account is over, or will be when it is looked at */
    SEARCH_TOO_OLD = 3,   /* the view's timestamp is below the history cut-off */
    SEARCH_LONG = 4,      /* context->short_only or steps_max, and it is not short: nothing has been done */
};

enum search_relation { RELATION_EQ, RELATION_GTE };

struct search_result {
    uint64_t total;
    enum search_relation relation;
    bool has_max_score;
    float max_score;
    bool terminated_early;
    bool timed_out; /* the request's timeout passed: what was found by then */
    size_t hit_count;
    struct buf hits;         /* JSON objects, apart by commas. Owns: the caller; buf_deinit */
    struct buf aggregations; /* a JSON object, or empty. The same */
    bool more;               /* a cursor was used up to its page, and has more */
};
void search_result_deinit(struct search_result *result);

/*
 * Searches.
 * Returns: 0; SEARCH_REFUSED with *ret_problem (a search_phase_execution_exception where an index refused);
 *          SEARCH_CANCELLED; SEARCH_TOO_OLD; SEARCH_LONG; TL_ERR_IO, TL_ERR_CORRUPT.
 * Owns: the caller; search_result_deinit, also after failures.
 */
int search_run(const struct search_context *context, const struct search_request *request,
               struct search_result *ret_result, struct problem *ret_problem) TL_MUST_USE;

/*
 * Binds a query to an index and does no more, to find out what a search with it would say. Nothing is read; scripts are taken
 * as they are.
 * Returns: 0; SEARCH_REFUSED, where *ret_problem is what is wrong, without a search's words around it.
 */
int search_check(const struct search_index *index, const struct query *query, enum dialect dialect, int64_t now_ms,
                 struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* The same; then what has become of the query, in Lucene's notation (describe.h), of one with scripts in a word. */
int search_explain(const struct search_index *index, const struct query *query, enum dialect dialect, int64_t now_ms,
                   struct arena *arena, struct slice *ret_text, struct problem *ret_problem) TL_MUST_USE;

/* Counts. *ret_early: terminate_after (0: none) cut it short. Returns: as search_run(). */
int search_count(const struct search_context *context, const struct query *query, uint64_t terminate_after,
                 double min_score, uint64_t *ret_count, bool *ret_early, struct problem *ret_problem) TL_MUST_USE;

/*
 * Cursors: a search that is read page by page, as scrolls and the by-query calls do. A cursor keeps where it
 * stands, not what it has read; context and request outlive it, and may be made anew for each page when they
 * say the same.
 */
struct search_cursor;
struct search_cursor *search_cursor_new(void);
void search_cursor_free(struct search_cursor *cursor);
TL_DEFINE_FREEP(struct search_cursor, search_cursor_free)
/* Bytes it holds, for limits. */
size_t search_cursor_bytes(const struct search_cursor *cursor);

/* The last page did not reach its reader: the next one is that page once more. Requires: a page was read, by a call of search_next(). */
void search_cursor_repeat(struct search_cursor *cursor);

/* As search_run() for the next request->size hits; the total is that of the first page. */
int search_next(const struct search_context *context, const struct search_request *request,
                struct search_cursor *cursor, struct search_result *ret_result,
                struct problem *ret_problem) TL_MUST_USE;

/*
 * The same for callers that want documents and not JSON. Slices live until the next call of `visit`.
 * `visit` returns 0 to go on, anything else to stop with that.
 */
struct search_hit {
    const struct search_index *index;
    struct slice type;
    struct slice id;
    struct slice routing; /* data NULL: none */
    int64_t version;
    int64_t seq_no;
    struct slice source;
};
typedef int search_visit(void *user, const struct search_hit *hit);
int search_next_each(const struct search_context *context, const struct search_request *request,
                     struct search_cursor *cursor, search_visit *visit, void *user, struct search_result *ret_result,
                     struct problem *ret_problem) TL_MUST_USE;

#endif
