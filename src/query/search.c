/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs searches. There are two ways to produce hits:
 *
 * - *Streaming*, where any order will do (a constant score, or sorted by _doc): each hit is written
 *   when it is found. The scan stops when the page is full and the total is counted far enough.
 * - *Collecting*: each match is offered to a heap that keeps the best. Their documents are read
 *   again to be written.
 */
#include "query/search.h"

#include "base/budget.h"
#include "base/check.h"
#include "mapping/entry.h"
#include "mapping/shard.h"
#include "query/aggregate.h"
#include "query/collapse.h"
#include "query/describe.h"
#include "query/failure.h"
#include "query/fetch.h"
#include "query/named.h"
#include "query/plan.h"
#include "query/sort.h"

#include <math.h>

/*
 * Documents read between checks of the cancel flag and the clock, whatever their cost: each may
 * come from a slow disk.
 */
enum { POLL_EVERY_DOCUMENTS = 8 };

/* Account steps to begin an index. */
enum { BEGIN_STEPS = 1000 };

/* An index of a search, with the request bound to its mapping. */
struct search_part {
    const struct search_index *index;
    struct binder binder;
    struct bound_query *matcher;
    struct bound_query *post_filter; /* NULL: none */
    struct bound_query *visible;     /* documents visible to the caller, for global aggregations; NULL: none */
    struct named_list named;         /* named queries of matcher and post_filter */
    struct bound_key *keys;
    const struct mapping_field *collapse; /* NULL: hits are not collapsed */
    const struct mapping_field *sliced;   /* slice.field; NULL: slices are of ids */
    struct fetcher fetcher;
    struct match_doc match_doc;
    uint32_t *collected; /* matches by shard, for terminate_after; NULL: not requested */
    bool begun;          /* match_doc is initialised */
};

/* Consumes a hit of a search. */
typedef int search_emit(void *user, struct search_part *part, const float *score, const struct sort_value *values);

struct search {
    const struct search_context *context;
    const struct search_request *request;
    struct search_part *parts;
    size_t part_count;
    struct sort_value *after; /* search_after; NULL: none */
    struct aggregator *aggregator;
    struct search_result *result;
    struct problem *problem;
    uint64_t timeout_us;    /* time at which the request's timeout expires, by the account's clock; 0: no timeout */
    uint64_t ordinal;       /* number of the next match, its value of _doc */
    uint64_t count_to;      /* the total is counted up to this */
    size_t documents_read;  /* since the search began */
    struct account account; /* charged for planning, statistics and matching */
    bool scored;
};

static int refuse_search(struct search *search, enum problem_type type, const char *text)
{
    problem_set(search->problem, search->context->arena, type, "%s", text);
    return SEARCH_REFUSED;
}

/* --- The account -------------------------------------------------------------------------------------------------- */

/*
 * Returns: the deadline for finding hits, the earlier of the request's timeout and the account's
 * own deadline. The timeout does not apply to writing the hits found, so it replaces the account's
 * deadline only while a document is matched.
 */
static uint64_t finding_deadline(const struct search *search, uint64_t deadline_us)
{
    bool earlier = search->timeout_us != 0 && (deadline_us == 0 || search->timeout_us < deadline_us);
    return earlier ? search->timeout_us : deadline_us;
}

/*
 * Returns: whether the account ended only because the request's timeout expired. Then the account
 * runs again, the result is flagged, and a problem of the current document is dropped: it may be
 * due to the timeout.
 */
static bool timed_out(struct search *search, struct search_part *part, uint64_t deadline_us)
{
    struct account *account = &search->account;
    if (account->end != ACCOUNT_LATE || account->deadline_us == deadline_us)
        return false;
    account->end = ACCOUNT_RUNNING;
    search->result->timed_out = true;
    part->match_doc.problem = NULL;
    return true;
}

/* Returns: whether the response has exceeded its memory. More hits are useless then. */
static bool is_too_large(const struct search *search)
{
    const struct budget_guard *memory = search->context->memory;
    return search->result->hits.overflow || (memory != NULL && memory->refused);
}

/*
 * Returns: the outcome of a search whose account ended; 0: it has not. After the end, the result
 * for the current document may be wrong.
 */
static int account_outcome(const struct search *search)
{
    switch (search->account.end) {
    case ACCOUNT_RUNNING: return 0;
    case ACCOUNT_SPENT: return SEARCH_LONG;
    default: return SEARCH_CANCELLED;
    }
}

/* --- Begin and end ------------------------------------------------------------------------------------------------ */

static int refuse_part(struct search *search, struct search_part *part, const struct problem *problem, bool partial)
{
    failure_wrap(search->context, part->index, partial || search->part_count > 1, problem, search->problem);
    return SEARCH_REFUSED;
}

/* Returns: whether a request needs scores. */
static bool wants_scores(const struct search_request *request)
{
    bool wanted = request->sort_count == 0 || request->track_scores || !isnan(request->min_score);
    for (size_t i = 0; i < request->sort_count; i++)
        wanted = wanted || request->sort[i].by == SORT_SCORE || request->sort[i].by == SORT_SCRIPT;
    return wanted || aggregation_wants_scores(request->aggregations);
}

/* Finds the field whose values are divided into slices, which has doc values that are numbers. */
static int bind_slice(struct search *search, struct search_part *part)
{
    struct slice name = search->request->slice_field;
    if (name.data == NULL || slice_is(name, "_id") || slice_is(name, "_uid"))
        return 0;
    const struct mapping_field *field = mapping_field(part->index->mapping, name);
    enum field_value_kind kind = field != NULL ? field_value_kind(field) : FIELD_VALUE_NONE;
    part->sliced = field;
    if (field != NULL && (kind == FIELD_VALUE_I64 || kind == FIELD_VALUE_F64) &&
        field_parameter_flag(field, "doc_values", true))
        return 0;
    problem_set(part->binder.problem, part->binder.arena, PROBLEM_ILLEGAL_ARGUMENT,
                field != NULL ? "cannot load numeric doc values on %.*s" : "field %.*s not found", SLICE_ARG(name));
    return QUERY_REFUSED;
}

static int bind_part(struct search *search, struct search_part *part)
{
    const struct search_request *request = search->request;
    struct query *query = query_filtered(search->context->arena, request->query, part->index->filter);
    part->binder.named = &part->named;
    int r = query_bind(&part->binder, query, &part->matcher);
    if (r == 0 && request->post_filter != NULL) {
        part->binder.scores = false;
        r = query_bind(&part->binder, request->post_filter, &part->post_filter);
    }
    part->binder.named = NULL; /* matched_queries does not include queries of aggregations */
    if (r == 0)
        r = sort_bind(&part->binder, request, &part->keys);
    if (r == 0)
        r = collapse_bind(&part->binder, request, &part->collapse);
    if (r == 0)
        r = bind_slice(search, part);
    if (r == 0)
        r = aggregation_bind(&part->binder, request->aggregations, &part->named);
    part->binder.scores = false;
    if (r == 0 && aggregation_is_global(request->aggregations))
        r = query_bind(&part->binder, query_filtered(search->context->arena, NULL, part->index->filter),
                       &part->visible);
    if (r == 0)
        r = fetcher_init(&part->fetcher, &part->binder, request, &part->named);
    return r;
}

/* Adds the rendered query to a problem, as 5.6 does where 7.10 shows the cause. */
static void add_query_text(const struct search *search, struct problem *problem)
{
    struct slice prefix = SLICE_LIT("failed to create query: ");
    if (search->context->dialect != DIALECT_5 || search->request->query == NULL ||
        !slice_starts_with(problem->reason, prefix))
        return;
    problem->reason = arena_printf(search->context->arena, "%s%.*s", prefix.data,
                                   SLICE_ARG(query__render(search->context->arena, search->request->query)));
}

/*
 * Reads the term statistics of an index. The request's timeout includes this. If it expires
 * meanwhile, the result has no hits and is flagged `timed_out`.
 */
static int load_part_term_stats(struct search *search, struct search_part *part)
{
    struct account *account = &search->account;
    uint64_t deadline_us = account->deadline_us;
    account->deadline_us = finding_deadline(search, deadline_us);
    int r = query_load_term_stats(&part->binder, search->context->view);
    (void)timed_out(search, part, deadline_us);
    account->deadline_us = deadline_us;
    return r >= 0 && account_ended(account) ? account_outcome(search) : r;
}

static int begin_part(struct search *search, struct search_part *part, const struct search_index *index)
{
    struct problem problem = {0};
    part->index = index;
    part->binder = (struct binder){.arena = search->context->arena,
                                   .index = index,
                                   .context = search->context,
                                   .scores = search->scored,
                                   .account = &search->account,
                                   .problem = &problem};
    (void)account_take(&search->account, BEGIN_STEPS);
    int r = bind_part(search, part);
    if (r >= 0 && account_ended(&search->account))
        return account_outcome(search);
    if (r >= 0 && is_too_large(search))
        return refuse_search(search, PROBLEM_CONTENT_TOO_LARGE, "the query of this search is too large");
    if (r == QUERY_REFUSED) {
        add_query_text(search, &problem);
        return refuse_part(search, part, &problem, false);
    }
    if (r == 0)
        r = load_part_term_stats(search, part);
    if (r != 0)
        return r < 0 ? tl_trace(r) : r;
    match_doc_init(&part->match_doc, index, search->context->arena);
    part->match_doc.account = &search->account;
    part->match_doc.gate = search->context->gate;
    part->begun = true;
    if (search->request->terminate_after > 0)
        part->collected = arena_zalloc(search->context->arena, (index->shard_count + 1) * sizeof(uint32_t));
    return 0;
}

/* Parses search_after. An error in it is reported as a shard failure of the first index. */
static int read_after(struct search *search)
{
    const struct search_context *context = search->context;
    struct problem problem;
    struct search_part *part = search->part_count > 0 ? &search->parts[0] : NULL;
    int r = sort_parse_search_after(context->arena, search->request, part == NULL ? NULL : part->keys, context->dialect,
                                    &search->after, &problem);
    if (r == 0)
        return 0;
    if (part != NULL)
        return refuse_part(search, part, &problem, false);
    *search->problem = problem;
    return SEARCH_REFUSED;
}

static void account_open(struct search *search)
{
    const struct search_context *context = search->context;
    search->account = (struct account){.end = ACCOUNT_RUNNING};
    if (context->account != NULL) {
        search->account.clock_us = context->account->clock_us;
        search->account.deadline_us = context->account->deadline_us;
        memcpy(search->account.flags, context->account->flags, sizeof search->account.flags);
    }
    search->account.steps_max = context->short_only ? SEARCH_SHORT_STEPS : context->steps_max;
    if (search->request->timeout_us > 0 && search->account.clock_us != NULL)
        search->timeout_us = search->account.clock_us() + (uint64_t)search->request->timeout_us;
}

/* Prepares a search: binds it to each index and reads the term statistics. */
static int search_begin(struct search *search)
{
    const struct search_context *context = search->context;
    account_open(search);
    if (context->short_only &&
        (search->request->script_field_count > 0 || aggregation_runs_scripts(search->request->aggregations)))
        return SEARCH_LONG;
    search->scored = wants_scores(search->request);
    search->parts = arena_zalloc(context->arena, (context->index_count + 1) * sizeof *search->parts);
    search->part_count = context->index_count;
    for (size_t i = 0; i < search->part_count; i++) {
        int r = begin_part(search, &search->parts[i], &context->indices[i]);
        if (r != 0)
            return r;
    }
    if (search->request->aggregations != NULL)
        search->aggregator = aggregator_new(context, search->request->aggregations, &search->account);
    return search->request->search_after != NULL ? read_after(search) : 0;
}

static void search_end(struct search *search)
{
    for (size_t i = 0; search->parts != NULL && i < search->part_count; i++) {
        binder_deinit(&search->parts[i].binder);
        if (search->parts[i].begun)
            match_doc_deinit(&search->parts[i].match_doc);
    }
    aggregator_free(search->aggregator);
}

void search_result_deinit(struct search_result *result)
{
    buf_deinit(&result->hits);
    buf_deinit(&result->aggregations);
}

static void result_init(const struct search_context *context, struct search_result *result)
{
    *result = (struct search_result){.hits = BUF_INIT(SEARCH_RESPONSE_BYTES_MAX),
                                     .aggregations = BUF_INIT(SEARCH_RESPONSE_BYTES_MAX)};
    result->hits.guard = result->aggregations.guard = context->memory;
}

/* --- Totals ------------------------------------------------------------------------------------------------------- */

/* Returns: the limit up to which the total is counted. 5.6 counts all matches. */
static uint64_t count_to(const struct search_context *context, const struct search_request *request, bool cursor)
{
    if (cursor || request->track_total_hits == TOTAL_HITS_ALL || request->aggregations != NULL)
        return UINT64_MAX;
    if (request->track_total_hits == TOTAL_HITS_NONE)
        return 0;
    if (request->track_total_hits == TOTAL_HITS_UNSET)
        return context->dialect == DIALECT_5 ? UINT64_MAX : SEARCH_TOTAL_DEFAULT;
    return (uint64_t)request->track_total_hits;
}

static void settle_total(const struct search *search)
{
    struct search_result *result = search->result;
    if (search->request->aggregations != NULL && search->request->track_total_hits == TOTAL_HITS_UNSET &&
        search->context->dialect == DIALECT_7 && result->total > SEARCH_TOTAL_DEFAULT) {
        result->total = SEARCH_TOTAL_DEFAULT;
        result->relation = RELATION_GTE;
    } else if (search->request->aggregations != NULL && search->request->track_total_hits > 0 &&
               result->total > (uint64_t)search->request->track_total_hits) {
        result->total = (uint64_t)search->request->track_total_hits; /* counted fully, reported as a lower bound */
        result->relation = RELATION_GTE;
    } else if (result->total > search->count_to) {
        result->total = search->count_to;
        result->relation = RELATION_GTE;
    }
}

/* --- One document ------------------------------------------------------------------------------------------------- */

enum { STEP_TAKEN = 0, STEP_PASSED = 1, STEP_STOP = 2 };

static uint32_t shard_number(const struct search_part *part)
{
    struct slice routing =
        part->match_doc.doc->routing.data != NULL ? part->match_doc.doc->routing : part->match_doc.id;
    return shard_of(routing, part->index->shard_count > 0 ? part->index->shard_count : 1);
}

/* Each document is in one slice: by its id, or by the first value of the field; without a value in the first slice. */
static bool in_slice(const struct search_request *request, struct search_part *part)
{
    const struct field_value *values = NULL;
    if (request->slice_max == 0)
        return true;
    if (part->sliced == NULL)
        return slice_hash(part->match_doc.id) % request->slice_max == request->slice_id;
    if (match_doc_field(&part->match_doc, part->sliced, &values) == 0)
        return request->slice_id == 0;
    struct slice bytes = values[0].kind == FIELD_VALUE_F64
                             ? slice_make((const char *)&values[0].f64, sizeof values[0].f64)
                             : slice_make((const char *)&values[0].i64, sizeof values[0].i64);
    return slice_hash(bytes) % request->slice_max == request->slice_id;
}

/*
 * Counts a match for terminate_after, which applies to each shard separately: it ends with the first match beyond the
 * limit. `shown`: it passed the post_filter, without which it does not count.
 * Returns: whether the shard has ended.
 */
static bool count_terminated(struct search *search, struct search_part *part, bool shown)
{
    if (part->collected == NULL)
        return false;
    uint32_t *collected = &part->collected[shard_number(part)], limit = (uint32_t)search->request->terminate_after;
    bool beyond = *collected > limit || (shown && *collected == limit);
    *collected += *collected <= limit && shown;
    search->result->terminated_early =
        search->result->terminated_early || beyond || (search->context->dialect == DIALECT_5 && *collected >= limit);
    return beyond;
}

static int match_doc_failure(struct search *search, struct search_part *part)
{
    if (part->match_doc.error != 0)
        return tl_trace(part->match_doc.error);
    return refuse_part(search, part, part->match_doc.problem, part->index->shard_count > 1);
}

/*
 * Charges the account for one document: to find, to parse and to scan it. If renames can move it, its
 * path is resolved directory by directory, each by its full path. core/documents/listing.c charges the
 * same. Polls the account periodically.
 */
static void charge_document(struct search *search, const struct match_doc *match_doc)
{
    const struct doc *doc = match_doc->doc;
    uint64_t path_len = doc->path_tracked ? doc->path_len + doc->source.len - doc->stored.len : 0;
    (void)account_take(&search->account, 500 + doc->source.len + path_len * path_len / 128);
    if (++search->documents_read % POLL_EVERY_DOCUMENTS == 0)
        (void)account_poll(&search->account);
}

static int look_at(struct search *search, struct search_part *part, float *ret_score, int *ret_error)
{
    struct match_doc *match_doc = &part->match_doc;
    bool taken = (part->index->shards == NULL || part->index->shards[shard_number(part)]) &&
                 in_slice(search->request, part) && bound_query_match(part->matcher, match_doc, ret_score);
    if (taken) {
        *ret_score *= (float)part->index->boost;
        taken = isnan(search->request->min_score) || *ret_score >= (float)search->request->min_score;
    }
    float ignored;
    bool shown = taken && (part->post_filter == NULL || bound_query_match(part->post_filter, match_doc, &ignored));
    if (taken && count_terminated(search, part, shown))
        return part->index->shard_count <= 1 ? STEP_STOP : STEP_PASSED;
    match_doc->score = *ret_score;
    if (taken && search->aggregator != NULL && match_doc->error == 0 && match_doc->problem == NULL)
        aggregator_add(search->aggregator, match_doc);
    if (account_ended(&search->account))
        return STEP_STOP;
    if (match_doc->error != 0 || match_doc->problem != NULL) {
        *ret_error = match_doc_failure(search, part);
        return STEP_STOP;
    }
    return shown ? STEP_TAKEN : STEP_PASSED;
}

/*
 * Matches the current document. Returns: STEP_TAKEN with a score; STEP_PASSED: no match; STEP_STOP:
 * the search ends, with *ret_error 0 or its outcome.
 */
static int match_current(struct search *search, struct search_part *part, float *ret_score, int *ret_error)
{
    struct account *account = &search->account;
    uint64_t deadline_us = account->deadline_us;
    *ret_error = 0;
    if (is_too_large(search)) {
        *ret_error = refuse_search(search, PROBLEM_CONTENT_TOO_LARGE, "the response of this search is too large");
        return STEP_STOP;
    }
    account->deadline_us = finding_deadline(search, deadline_us);
    charge_document(search, &part->match_doc);
    int outcome = account_ended(account) ? STEP_STOP : look_at(search, part, ret_score, ret_error);
    if (account_ended(account) && *ret_error >= 0)
        *ret_error = timed_out(search, part, deadline_us) ? 0 : account_outcome(search);
    account->deadline_us = deadline_us;
    return outcome;
}

static int cursor_outcome(int r)
{
    return r == PLAN_CURSOR_END ? 0 : r == PLAN_CURSOR_TOO_OLD ? SEARCH_TOO_OLD : r;
}

/* Plans the search of an index. `reads` is the number of documents that a scan would read. */
static int make_plan(struct search *search, struct search_part *part, struct arena *arena, size_t candidates_max,
                     uint64_t reads, struct plan *ret_plan)
{
    *ret_plan = (struct plan){.kind = PLAN_SCAN};
    if (search->context->full_scan)
        return 0;
    if (search->context->short_only && candidates_max > SEARCH_SHORT_DOCUMENTS)
        candidates_max = SEARCH_SHORT_DOCUMENTS;
    int r =
        plan_make(part->matcher, part->index, search->context->view, &search->account, arena, candidates_max, ret_plan);
    if (r >= 0 && account_ended(&search->account))
        return 0; /* the caller checks the account */
    if (r == 0 && view_is_too_old(search->context->view))
        return SEARCH_TOO_OLD; /* the entries read may be incomplete */
    bool scan = ret_plan->kind == PLAN_SCAN && reads > SEARCH_SHORT_DOCUMENTS;
    return r == 0 && scan && search->context->short_only ? SEARCH_LONG : r;
}

/* Plans the search for hits. If the request's timeout expires meanwhile, the plan is empty. */
static int plan_hits(struct search *search, struct search_part *part, struct arena *arena, size_t candidates_max,
                     uint64_t reads, struct plan *ret_plan)
{
    struct account *account = &search->account;
    uint64_t deadline_us = account->deadline_us;
    account->deadline_us = finding_deadline(search, deadline_us);
    int r = make_plan(search, part, arena, candidates_max, reads, ret_plan);
    if (timed_out(search, part, deadline_us))
        *ret_plan = (struct plan){.kind = PLAN_KEYS};
    account->deadline_us = deadline_us;
    return r == 0 ? account_outcome(search) : r;
}

/* --- Collecting --------------------------------------------------------------------------------------------------- */

/* Offers the current match to the queue, unless search_after excludes it. */
static void offer_match(struct search *search, struct search_part *part, float score, struct hit_queue *queue)
{
    struct sort_value values[64];
    size_t count = search->request->sort_count;
    char key_bytes[DOC_KEY_BYTES_MAX];
    INSIST(count <= sizeof values / sizeof *values);
    sort_read(part->keys, count, &part->match_doc, score, search->ordinal, values);
    if (search->after != NULL && sort_compare(search->request->sort, count, values, search->after) <= 0)
        return;
    struct slice key = doc_key(key_bytes, part->index->number, part->match_doc.type, part->match_doc.id);
    uint32_t index = (uint32_t)(part - search->parts);
    struct slice group;
    if (part->collapse == NULL)
        hit_queue_offer(queue, index, score, slice_from_offset(key, 4), values);
    else if (collapse_read(&part->match_doc, part->collapse, search->ordinal, &group) == 0)
        hit_queue_offer_group(queue, index, score, slice_from_offset(key, 4), values, group);
}

/*
 * Asks the search's budget for what the queue has grown by since it was asked. The queue of a cursor outlives the
 * request: later requests find its memory used.
 */
static void charge_queue(const struct search *search, struct hit_queue *queue)
{
    struct budget_guard *memory = search->context->memory;
    if (queue->bytes <= queue->asked || !budget_guard_asks(memory, queue->bytes - queue->asked))
        return;
    (void)budget_guard_take(memory, queue->bytes - queue->asked);
    queue->asked = queue->bytes;
}

/*
 * Offers all matches of an index to the queue, counts them, and keeps the maximum score.
 * Returns: 0; outcomes of the search; fatal codes.
 */
static int collect_part(struct search *search, struct search_part *part, struct hit_queue *queue)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct plan_cursor plan_cursor = {.plan = NULL};
    const struct doc *doc;
    struct slice id;
    uint16_t type;
    float score = 0;
    int error = plan_hits(search, part, &arena, PLAN_CANDIDATES_MAX, part->index->document_count, &plan), r = error;
    if (r == 0)
        plan_cursor_init(&plan_cursor, &plan, search->context->view, part->index->number, SLICE_NONE);
    while (r == 0 && (r = plan_cursor_next(&plan_cursor, &type, &id, &doc)) == 0) {
        match_doc_set(&part->match_doc, type, id, doc);
        int outcome = match_current(search, part, &score, &error);
        if (outcome == STEP_STOP)
            break;
        if (outcome == STEP_PASSED)
            continue;
        search->result->total++;
        if (search->scored && (!search->result->has_max_score || score > search->result->max_score)) {
            search->result->has_max_score = true;
            search->result->max_score = score;
        }
        offer_match(search, part, score, queue);
        charge_queue(search, queue);
        search->ordinal++;
        if (part->match_doc.problem != NULL) {
            error = match_doc_failure(search, part);
            break;
        }
        if (queue->bytes > SEARCH_SORT_BYTES_MAX) {
            error = refuse_search(search, PROBLEM_LIMIT_EXCEEDED,
                                  "the sort values of this search are too large to be held");
            break;
        }
    }
    match_doc_clear(&part->match_doc);
    plan_cursor_deinit(&plan_cursor);
    arena_deinit(&arena);
    return error != 0 ? error : cursor_outcome(r);
}

static int collect_parts(struct search *search, struct hit_queue *queue)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < search->part_count && !search->result->timed_out; i++)
        r = collect_part(search, &search->parts[i], queue);
    hit_queue_finish(queue);
    return r;
}

/* Reads the document of a queued hit again and passes it to `emit`. */
static int emit_queued(struct search *search, const struct queued_hit *hit, search_emit *emit, void *user)
{
    struct search_part *part = &search->parts[hit->index];
    struct doc doc;
    uint16_t type;
    struct slice id;
    if (is_too_large(search))
        return refuse_search(search, PROBLEM_CONTENT_TOO_LARGE, "the response of this search is too large");
    if (account_ended(&search->account))
        return account_outcome(search);
    if (!entry_document_key_parse(hit->key, &type, &id))
        return TL_ERR_CORRUPT;
    int r = doc_get_key(search->context->view, part->index->number, hit->key, &doc);
    if (r != 0)
        return r == DOC_TOO_OLD ? SEARCH_TOO_OLD : r == DOC_NOT_FOUND ? TL_ERR_CORRUPT : tl_trace(r);
    match_doc_set(&part->match_doc, type, id, &doc);
    charge_document(search, &part->match_doc);
    bool score = search->request->sort_count == 0 || search->request->track_scores;
    for (size_t i = 0; i < search->request->sort_count; i++)
        score = score || search->request->sort[i].by == SORT_SCORE;
    r = emit(user, part, score ? &hit->score : NULL, search->request->sort_count > 0 ? hit->values : NULL);
    if (r == QUERY_REFUSED && part->match_doc.problem != NULL)
        r = match_doc_failure(search, part);
    if (search->part_count > 1)
        match_doc_clear(&part->match_doc);
    doc_release(&doc);
    return r;
}

/* --- Streaming ---------------------------------------------------------------------------------------------------- */

/* Returns: whether all matches of a query have the same score. */
static bool is_constant(const struct bound_query *matcher)
{
    switch (matcher->kind) {
    case BOUND_TERMS:
        return !matcher->terms.weight.norms &&
               !matcher->terms.weight.frequencies; /* a keyword's score depends only on the index */
    case BOUND_PHRASE: return !matcher->phrase.weights[0].scored;
    case BOUND_BOOL:
        for (size_t i = 0; i < matcher->boolean.must.count; i++) {
            if (!is_constant(matcher->boolean.must.items[i]))
                return false;
        }
        return matcher->boolean.should.count == 0 ||
               (matcher->boolean.should.count == 1 && matcher->boolean.minimum == 1 &&
                is_constant(matcher->boolean.should.items[0]));
    case BOUND_DIS_MAX: return matcher->compound.queries.count == 1 && is_constant(matcher->compound.queries.items[0]);
    case BOUND_BOOSTING:
    case BOUND_FUNCTION: return false;
    default: return true;
    }
}

/* Returns: whether scores depend on term statistics, which differ between indices. */
static bool has_term_stats(const struct search *search)
{
    for (size_t i = 0; i < search->part_count; i++) {
        if (search->parts[i].binder.terms.count > 0)
            return true;
    }
    return false;
}

static bool can_stream(const struct search *search)
{
    const struct search_request *request = search->request;
    if (request->search_after != NULL || request->collapse.data != NULL || request->aggregations != NULL)
        return false;
    if (request->sort_count > 0)
        return request->sort_count == 1 && request->sort[0].by == SORT_DOC && !request->sort[0].descending;
    for (size_t i = 0; i < search->part_count; i++) {
        if (!is_constant(search->parts[i].matcher) || search->parts[i].index->boost != 1.0 ||
            search->parts[i].matcher->boost != search->parts[0].matcher->boost ||
            search->parts[i].matcher->kind != search->parts[0].matcher->kind)
            return false;
    }
    return !search->scored || search->part_count == 1 || !has_term_stats(search);
}

/* The position of a streaming search and the remaining work. */
struct stream {
    size_t part;      /* index of the current part */
    struct buf key;   /* key of the last document emitted; empty: none of this part */
    struct plan plan; /* of the current part; valid if `planned` */
    bool planned;
    struct arena arena; /* memory of the plan */
    size_t candidates_max;
    size_t skip;     /* hits still to be skipped */
    size_t want;     /* hits still to be emitted */
    bool count_rest; /* the total is not yet known, so matches are counted to the end */
    search_emit *emit;
    void *user;
};

/* Records the key of the current document, after which the stream continues. */
static void record_key(struct stream *stream, const struct match_doc *match_doc)
{
    char bytes[DOC_KEY_BYTES_MAX];
    buf_clear(&stream->key);
    buf_slice(&stream->key, slice_from_offset(doc_key(bytes, 0, match_doc->type, match_doc->id), 4));
}

/* Returns: whether the consumer of the hits ends the page before it is full. */
static bool ends_page(const struct search *search)
{
    return search->context->end_page != NULL && *search->context->end_page;
}

/* Counts a match, and emits it unless it is skipped or the page is full. */
static int stream_hit(struct search *search, struct stream *stream, struct search_part *part, float score)
{
    if (stream->count_rest)
        search->result->total++;
    if (search->scored && search->request->sort_count == 0 && !search->result->has_max_score) {
        search->result->has_max_score = true;
        search->result->max_score = score;
    }
    if (stream->skip > 0) {
        stream->skip--;
        search->ordinal++;
        return 0;
    }
    if (stream->want == 0)
        return 0;
    stream->want--;
    struct sort_value value = {.kind = SORT_I64, .i64 = (int64_t)search->ordinal++};
    bool sorted = search->request->sort_count > 0;
    int r = stream->emit(stream->user, part, sorted && !search->request->track_scores ? NULL : &score,
                         sorted ? &value : NULL);
    if (ends_page(search))
        stream->want = 0;
    return r;
}

/* Returns: whether the page is full and the total needs no more counting. */
static bool stream_full(const struct search *search, const struct stream *stream)
{
    return stream->want == 0 && (!stream->count_rest || search->result->total > search->count_to);
}

/*
 * Continues the stream in one index.
 * Returns: 0: the end of the index, the timeout, or a full page; outcomes of the search; fatal codes.
 */
static int stream_part(struct search *search, struct stream *stream, struct search_part *part,
                       struct plan_cursor *plan_cursor)
{
    const struct doc *doc;
    struct slice id;
    uint16_t type;
    float score = 0;
    int error = 0, r;
    while (!stream_full(search, stream) && (r = plan_cursor_next(plan_cursor, &type, &id, &doc)) != PLAN_CURSOR_END) {
        if (r != 0)
            return cursor_outcome(r);
        match_doc_set(&part->match_doc, type, id, doc);
        int outcome = match_current(search, part, &score, &error);
        if (outcome == STEP_STOP)
            return error;
        bool wanted = stream->want > 0;
        if (outcome == STEP_TAKEN)
            error = stream_hit(search, stream, part, score);
        if (error == QUERY_REFUSED && part->match_doc.problem != NULL)
            return match_doc_failure(search, part);
        if (error != 0)
            return error;
        bool emitted = wanted && outcome == STEP_TAKEN;
        if (wanted && (stream->want == 0 || (emitted && search->timeout_us != 0)))
            record_key(stream, &part->match_doc); /* a page that times out ends after any hit */
    }
    return 0;
}

/*
 * Runs a stream until its page is full. Returns: 0, with stream->want > 0 only at the end of all
 * hits; outcomes of the search; fatal codes.
 */
static int stream_run(struct search *search, struct stream *stream)
{
    for (; stream->part < search->part_count; stream->part++) {
        struct search_part *part = &search->parts[stream->part];
        struct plan_cursor plan_cursor;
        uint64_t reads = part->matcher->kind == BOUND_ALL && !stream->count_rest ? stream->skip + stream->want
                                                                                 : part->index->document_count;
        int r =
            stream->planned ? 0 : plan_hits(search, part, &stream->arena, stream->candidates_max, reads, &stream->plan);
        if (r != 0)
            return r;
        stream->planned = true;
        plan_cursor_init(&plan_cursor, &stream->plan, search->context->view, part->index->number,
                         stream->key.len > 0 ? buf_as_slice(&stream->key) : SLICE_NONE);
        r = stream_part(search, stream, part, &plan_cursor);
        match_doc_clear(&part->match_doc);
        plan_cursor_deinit(&plan_cursor);
        if (r != 0 || stream_full(search, stream) || search->result->timed_out)
            return r;
        stream->planned = false;
        buf_clear(&stream->key);
        arena_reset(&stream->arena);
    }
    return 0;
}

static void stream_init(struct stream *stream, search_emit *emit, void *user)
{
    *stream = (struct stream){.key = BUF_INIT(DOC_KEY_BYTES_MAX),
                              .arena = ARENA_INIT,
                              .candidates_max = PLAN_CANDIDATES_MAX,
                              .emit = emit,
                              .user = user};
}

static void stream_deinit(struct stream *stream)
{
    buf_deinit(&stream->key);
    arena_deinit(&stream->arena);
}

/*
 * Reads the total from the indices' document counts if every document matches. *ret_known is false
 * if the total has to be counted.
 */
static int known_total(struct search *search, bool *ret_known)
{
    uint64_t total = 0;
    *ret_known = false;
    if (search->request->slice_max > 0 || search->request->terminate_after > 0 ||
        (search->aggregator != NULL && !search->request->overdue) || !isnan(search->request->min_score))
        return 0;
    for (size_t i = 0; i < search->part_count; i++) {
        const struct search_part *part = &search->parts[i];
        uint64_t documents = part->index->document_count;
        if (part->matcher->kind != BOUND_ALL || part->post_filter != NULL || part->index->shards != NULL)
            return 0;
        if (!part->index->count_exact) {
            int r = doc_count(search->context->view, part->index->number, DOC_TYPE_ANY, &documents);
            if (r != 0)
                return r == DOC_TOO_OLD ? SEARCH_TOO_OLD : tl_trace(r);
        }
        total += documents;
    }
    search->result->total = total;
    *ret_known = true;
    return 0;
}

/* --- Pages -------------------------------------------------------------------------------------------------------- */

static int emit_json(void *user, struct search_part *part, const float *score, const struct sort_value *values)
{
    struct search_result *result = user;
    if (result->hit_count++ > 0)
        buf_byte(&result->hits, ',');
    if (part->index->fetched != NULL)
        *part->index->fetched = true;
    return fetch_hit(&part->fetcher, &part->match_doc, score, values, &result->hits);
}

static int run_streaming(struct search *search, size_t from, size_t size)
{
    struct stream stream;
    bool known;
    int r = known_total(search, &known);
    if (r != 0)
        return r;
    stream_init(&stream, emit_json, search->result);
    stream.skip = from;
    stream.want = size;
    stream.count_rest = !known;
    if (size > 0 || !known)
        r = stream_run(search, &stream);
    stream_deinit(&stream);
    return r;
}

/*
 * Finishes a search whose timeout expired before it began. It has no hits, and a total only if that
 * needs no counting.
 */
static int run_overdue(struct search *search)
{
    bool known;
    search->result->timed_out = true;
    return known_total(search, &known);
}

/*
 * Returns: whether the maximum score is requested. A stream that stops after its page does not know
 * it.
 */
static bool wants_best(const struct search *search)
{
    return search->request->track_scores && search->request->sort_count > 0;
}

/* Returns: whether the reply has the maximum score. */
static bool shows_max_score(const struct search_request *request)
{
    return (request->sort_count == 0 || request->track_scores) && request->collapse.data == NULL;
}

static int run_collecting(struct search *search, size_t from, size_t size)
{
    struct hit_queue queue;
    hit_queue_init(&queue, search->request->sort, search->request->sort_count, from + size);
    int r = collect_parts(search, &queue);
    for (size_t i = from; r == 0 && i < queue.count; i++)
        r = emit_queued(search, queue.items[i], emit_json, search->result);
    hit_queue_deinit(&queue);
    return r;
}

/* Checks the number of fields of one kind requested per hit against an index setting. */
static int check_field_count(struct search *search, const struct search_index *index, const char *what,
                             const char *setting, size_t count, uint64_t most)
{
    struct problem problem;
    if (count <= most)
        return 0;
    problem_set(
        &problem, search->context->arena, PROBLEM_ILLEGAL_ARGUMENT,
        "Trying to retrieve too many %s. Must be less than or equal to: [%llu] but was [%zu]. This limit can be "
        "set by changing the [index.%s] index level setting.",
        what, (unsigned long long)most, count, setting);
    failure_wrap(search->context, index, false, &problem, search->problem);
    return SEARCH_REFUSED;
}

static int check_fields(struct search *search)
{
    for (size_t i = 0; i < search->context->index_count; i++) {
        const struct search_index *index = &search->context->indices[i];
        uint64_t docvalues = index->docvalue_fields_end, scripts = index->script_fields_end;
        if (check_field_count(search, index, "docvalue_fields", "max_docvalue_fields_search",
                              search->request->docvalue_count,
                              docvalues != 0 ? docvalues - 1 : SEARCH_DOCVALUE_FIELDS_MAX) != 0 ||
            check_field_count(search, index, "script_fields", "max_script_fields", search->request->script_field_count,
                              scripts != 0 ? scripts - 1 : SEARCH_SCRIPT_FIELDS_MAX) != 0)
            return SEARCH_REFUSED;
    }
    return 0;
}

static int check_window(struct search *search, size_t from, size_t size)
{
    for (size_t i = 0; i < search->context->index_count; i++) {
        unsigned window =
            search->context->indices[i].window_max != 0 ? search->context->indices[i].window_max : SEARCH_WINDOW_MAX;
        if (from + size <= window)
            continue;
        struct problem problem;
        problem_set(&problem, search->context->arena,
                    search->context->dialect == DIALECT_7 ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_QUERY_PHASE_EXECUTION,
                    "Result window is too large, from + size must be less than or equal to: [%u] but was [%zu]. "
                    "See the scroll api for a more efficient way to request large data sets. "
                    "This limit can be set by changing the [index.max_result_window] index level setting.",
                    window, from + size);
        failure_wrap(search->context, &search->context->indices[i], false, &problem, search->problem);
        return SEARCH_REFUSED;
    }
    return 0;
}

static size_t page_size(const struct search_request *request)
{
    return request->size >= 0 ? (size_t)request->size : 10;
}

/*
 * Adds all documents of the slice that are visible to the caller to the global aggregations, independently of the
 * query.
 */
static int add_visible(struct search *search, struct search_part *part)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct plan_cursor plan_cursor = {.plan = NULL};
    const struct doc *doc;
    struct slice id;
    uint16_t type;
    float ignored;
    struct bound_query *query = part->matcher;
    part->matcher = part->visible; /* make_plan() uses part->matcher */
    int outcome = make_plan(search, part, &arena, PLAN_CANDIDATES_MAX, part->index->document_count, &plan), r;
    part->matcher = query;
    if (outcome == 0)
        outcome = account_outcome(search);
    if ((r = outcome) == 0)
        plan_cursor_init(&plan_cursor, &plan, search->context->view, part->index->number, SLICE_NONE);
    while (r == 0 && outcome == 0 && (r = plan_cursor_next(&plan_cursor, &type, &id, &doc)) == 0) {
        struct match_doc *match_doc = &part->match_doc;
        match_doc_set(match_doc, type, id, doc);
        charge_document(search, match_doc);
        bool taken = (part->index->shards == NULL || part->index->shards[shard_number(part)]) &&
                     in_slice(search->request, part) && bound_query_match(part->visible, match_doc, &ignored);
        match_doc->score = 1;
        if (taken)
            aggregator_add_global(search->aggregator, match_doc);
        if (account_ended(&search->account))
            outcome = account_outcome(search);
        else if (match_doc->error != 0 || match_doc->problem != NULL)
            outcome = match_doc_failure(search, part);
        else if (is_too_large(search))
            outcome = refuse_search(search, PROBLEM_CONTENT_TOO_LARGE, "the response of this search is too large");
    }
    match_doc_clear(&part->match_doc);
    plan_cursor_deinit(&plan_cursor);
    arena_deinit(&arena);
    return outcome != 0 ? outcome : cursor_outcome(r);
}

static int aggregate_parts(struct search *search)
{
    int r = 0;
    for (size_t i = 0; i < search->part_count && search->parts[i].visible != NULL && r == 0; i++)
        r = add_visible(search, &search->parts[i]);
    if (r == 0)
        r = aggregator_write(search->aggregator, &search->result->aggregations, search->context->arena,
                             search->problem);
    return r >= 0 && account_ended(&search->account) ? account_outcome(search) : r;
}

/*
 * A context whose view caches the tree records read. Documents older than a rename need the same
 * ones.
 */
struct cached_context {
    struct view_cache cache;
    struct view view;
    struct search_context context;
};

static const struct search_context *cached_context_init(struct cached_context *cached_context,
                                                        const struct search_context *context)
{
    view_cache_init(&cached_context->cache, SPACE_TREE);
    cached_context->view = *context->view;
    cached_context->view.cache = &cached_context->cache;
    cached_context->context = *context;
    cached_context->context.view = &cached_context->view;
    return &cached_context->context;
}

static void cached_context_deinit(struct cached_context *cached_context)
{
    view_cache_deinit(&cached_context->cache);
}

/* Ends a search with outcome `r`: writes its aggregations and releases it. Returns: its outcome. */
static int finish_search(struct search *search, int r)
{
    if (r >= 0 && account_ended(&search->account))
        r = account_outcome(search);
    if (r == 0 && search->aggregator != NULL && search->part_count > 0)
        r = aggregate_parts(search);
    if (r == 0 && search->result->hits.overflow)
        r = refuse_search(search, PROBLEM_CONTENT_TOO_LARGE, "the response of this search is too large");
    settle_total(search);
    search_end(search);
    return r;
}

int search_run(const struct search_context *context, const struct search_request *request,
               struct search_result *ret_result, struct problem *ret_problem)
{
    tl_cleanup(cached_context_deinit) struct cached_context cached_context;
    struct search search = {.context = cached_context_init(&cached_context, context),
                            .request = request,
                            .result = ret_result,
                            .problem = ret_problem};
    size_t from = request->from > 0 ? (size_t)request->from : 0, size = page_size(request);
    result_init(context, ret_result);
    search.count_to = count_to(context, request, false);
    int r = check_fields(&search);
    if (r == 0)
        r = check_window(&search, from, size);
    if (r == 0)
        r = search_begin(&search);
    if (r == 0 && (request->overdue || ret_result->timed_out))
        r = run_overdue(&search);
    else if (r == 0)
        r = can_stream(&search) && !wants_best(&search) ? run_streaming(&search, from, size)
                                                        : run_collecting(&search, from, size);
    ret_result->has_max_score = ret_result->has_max_score && shows_max_score(request);
    return finish_search(&search, r);
}

int search_count(const struct search_context *context, const struct query *query, uint64_t terminate_after,
                 double min_score, uint64_t *ret_count, bool *ret_early, struct problem *ret_problem)
{
    struct search_request request;
    struct search_result result;
    search_request_init(&request);
    request.query = (struct query *)(uintptr_t)query;
    request.size = 0;
    request.track_total_hits = TOTAL_HITS_ALL;
    request.terminate_after = terminate_after > INT32_MAX ? INT32_MAX : (int32_t)terminate_after;
    request.min_score = min_score;
    struct sort_key by_doc = {.by = SORT_DOC};
    request.sort = &by_doc;
    request.sort_count = 1;
    int r = search_run(context, &request, &result, ret_problem);
    *ret_count = result.total;
    *ret_early = result.terminated_early;
    search_result_deinit(&result);
    return r;
}

/* --- Cursors ------------------------------------------------------------------------------------------------------ */

/* The state at the start of a page, restored by search_cursor_repeat(). */
struct page_start {
    bool begun;
    bool ended;
    uint64_t ordinal;
    size_t part;             /* streaming: index of the part */
    struct buf key;          /* streaming: key of the last document emitted */
    size_t position;         /* collecting: position in the window */
    bool replaced;           /* collecting: a later window has replaced that window */
    struct queued_hit *last; /* collecting, if replaced: last hit of the window before that one; NULL: none */
};

struct search_cursor {
    bool begun;
    bool streaming;
    bool ended;
    uint64_t total;
    uint64_t ordinal;
    bool has_max_score;
    float max_score;
    struct stream stream;
    struct hit_queue queue;  /* collecting: the current window */
    size_t position;         /* in the current window */
    struct queued_hit *last; /* last hit of the preceding window; NULL: this is the first */
    bool refill;             /* the current window must be found again */
    struct page_start start;
};

struct search_cursor *search_cursor_new(void)
{
    struct search_cursor *cursor = mem_zalloc(sizeof *cursor);
    stream_init(&cursor->stream, NULL, NULL);
    cursor->stream.candidates_max = PLAN_CURSOR_CANDIDATES_MAX;
    cursor->start.key = BUF_INIT(DOC_KEY_BYTES_MAX);
    return cursor;
}

void search_cursor_free(struct search_cursor *cursor)
{
    if (cursor == NULL)
        return;
    stream_deinit(&cursor->stream);
    hit_queue_deinit(&cursor->queue);
    mem_free(cursor->last);
    mem_free(cursor->start.last);
    buf_deinit(&cursor->start.key);
    mem_free(cursor);
}

static void record_page_start(struct search_cursor *cursor)
{
    struct page_start *start = &cursor->start;
    start->begun = cursor->begun;
    start->ended = cursor->ended;
    start->ordinal = cursor->ordinal;
    start->part = cursor->stream.part;
    buf_clear(&start->key);
    buf_slice(&start->key, buf_as_slice(&cursor->stream.key));
    start->position = cursor->position;
    start->replaced = false;
    mem_free(tl_steal(start->last));
}

static void repeat_stream(struct search_cursor *cursor)
{
    struct stream *stream = &cursor->stream;
    stream->part = cursor->start.part;
    buf_clear(&stream->key);
    buf_slice(&stream->key, buf_as_slice(&cursor->start.key));
    stream->planned = false;
    arena_reset(&stream->arena);
}

/*
 * Restores the window in which the page started. If it was replaced, it is found again after the
 * last hit of the preceding window.
 */
static void repeat_window(struct search_cursor *cursor)
{
    struct page_start *start = &cursor->start;
    cursor->position = start->position;
    if (start->begun && !start->replaced)
        return;
    hit_queue_deinit(&cursor->queue);
    if (start->replaced) {
        mem_free(cursor->last);
        cursor->last = tl_steal(start->last);
        start->replaced = false;
    }
    cursor->refill = true;
}

void search_cursor_repeat(struct search_cursor *cursor)
{
    cursor->begun = cursor->start.begun;
    cursor->ended = cursor->start.ended;
    cursor->ordinal = cursor->start.ordinal;
    if (cursor->streaming)
        repeat_stream(cursor);
    else
        repeat_window(cursor);
}

size_t search_cursor_bytes(const struct search_cursor *cursor)
{
    return sizeof *cursor + cursor->stream.arena.used + cursor->queue.bytes;
}

/*
 * Counts the total of a stream in a separate scan unless it is known, since the stream stops at the
 * end of its page.
 */
static int count_stream(struct search *search)
{
    bool known;
    int r = known_total(search, &known);
    if (r != 0 || known)
        return r;
    struct stream stream;
    bool scored = search->scored;
    stream_init(&stream, NULL, NULL);
    stream.count_rest = true;
    search->scored = scored;
    r = stream_run(search, &stream);
    stream_deinit(&stream);
    search->ordinal = 0;
    return r;
}

static int next_streaming(struct search *search, struct search_cursor *cursor, search_emit *emit, void *user)
{
    size_t size = search->request->scan && !cursor->begun ? 0 : page_size(search->request);
    int r = cursor->begun ? 0 : count_stream(search);
    if (r != 0)
        return r;
    cursor->stream.emit = emit;
    cursor->stream.user = user;
    cursor->stream.want = size;
    search->ordinal = cursor->ordinal;
    if (size > 0)
        r = stream_run(search, &cursor->stream);
    cursor->ordinal = search->ordinal;
    cursor->ended = cursor->stream.want > 0 && !search->result->timed_out;
    if (search->result->timed_out) { /* the next page continues after the last hit; the plan may be incomplete */
        cursor->stream.planned = false;
        arena_reset(&cursor->stream.arena);
    }
    cursor->stream.emit = NULL;
    cursor->stream.user = NULL;
    return r;
}

/* Finds the next window of a sorted search, after the last hit of the preceding one. */
static int fill_window(struct search *search, struct search_cursor *cursor)
{
    if (cursor->queue.count > 0) {
        struct queued_hit *last = cursor->queue.items[cursor->queue.count - 1];
        if (!cursor->start.replaced) {
            cursor->start.replaced = true;
            cursor->start.last = tl_steal(cursor->last);
        }
        mem_free(cursor->last);
        cursor->last =
            queued_hit_copy(last->index, last->score, last->key, last->values, last->value_count, SLICE_NONE);
    }
    hit_queue_deinit(&cursor->queue);
    hit_queue_init(&cursor->queue, search->request->sort, search->request->sort_count, SEARCH_CURSOR_WINDOW);
    cursor->queue.after = cursor->last;
    cursor->position = 0;
    search->ordinal = 0;
    struct aggregator *aggregator = search->aggregator;
    if (cursor->last != NULL)
        search->aggregator = NULL; /* it has all documents from the first window */
    int r = collect_parts(search, &cursor->queue);
    search->aggregator = aggregator;
    return r;
}

static int next_collecting(struct search *search, struct search_cursor *cursor, search_emit *emit, void *user)
{
    size_t size = page_size(search->request);
    int r = 0;
    cursor->queue.keys = search->request->sort; /* owned by this page's request; the previous request may be freed */
    if (!cursor->begun || cursor->refill) {
        size_t position = cursor->position;
        r = fill_window(search, cursor);
        cursor->position = position;
        cursor->refill = false;
    }
    if (!cursor->begun)
        cursor->total = search->result->total;
    while (r == 0 && size > 0) {
        if (cursor->position == cursor->queue.count) {
            cursor->ended = cursor->queue.count < SEARCH_CURSOR_WINDOW;
            if (cursor->ended)
                break;
            r = fill_window(search, cursor);
            continue;
        }
        r = emit_queued(search, cursor->queue.items[cursor->position++], emit, user);
        size = ends_page(search) ? 0 : size - 1;
    }
    search->result->total = cursor->total;
    return r;
}

static int next_page(const struct search_context *context, const struct search_request *request,
                     struct search_cursor *cursor, search_emit *emit, void *user, struct search_result *result,
                     struct problem *ret_problem)
{
    tl_cleanup(cached_context_deinit) struct cached_context cached_context;
    /* Only the first page has aggregations: they are bound to its arena, which is gone afterwards. */
    struct search_request following = *request;
    following.aggregations = NULL;
    struct search search = {.context = cached_context_init(&cached_context, context),
                            .request = cursor->begun ? &following : request,
                            .result = result,
                            .problem = ret_problem};
    search.count_to = UINT64_MAX;
    record_page_start(cursor);
    int r = cursor->begun ? 0 : check_fields(&search);
    if (r == 0)
        r = search_begin(&search);
    if (r == 0 && !cursor->begun) /* a stream would count the documents for terminate_after anew on each page */
        cursor->streaming = can_stream(&search) && !wants_best(&search) && request->terminate_after == 0;
    if (r == 0 && !cursor->ended)
        r = cursor->streaming ? next_streaming(&search, cursor, emit, user)
                              : next_collecting(&search, cursor, emit, user);
    if (r == 0 && !cursor->begun) {
        cursor->begun = true;
        cursor->total = result->total;
        cursor->has_max_score = result->has_max_score && shows_max_score(request);
        cursor->max_score = result->max_score;
    }
    result->total = cursor->total;
    result->has_max_score = cursor->has_max_score;
    result->max_score = cursor->max_score;
    result->more = !cursor->ended;
    return finish_search(&search, r);
}

int search_next(const struct search_context *context, const struct search_request *request,
                struct search_cursor *cursor, struct search_result *ret_result, struct problem *ret_problem)
{
    result_init(context, ret_result);
    return next_page(context, request, cursor, emit_json, ret_result, ret_result, ret_problem);
}

/* --- Visiting ----------------------------------------------------------------------------------------------------- */

struct visitor {
    search_visit *visit;
    void *user;
    struct search_result *result;
};

static int emit_visit(void *user, struct search_part *part, const float *score, const struct sort_value *values)
{
    struct visitor *visitor = user;
    const struct match_doc *match_doc = &part->match_doc;
    const struct mapping_type *type = mapping_type_by_number(part->index->mapping, match_doc->type);
    (void)score;
    (void)values;
    struct search_hit hit = {.index = part->index,
                             .type = type != NULL ? type->name : SLICE_LIT("_doc"),
                             .id = match_doc->id,
                             .routing = match_doc->doc->routing,
                             .version = match_doc->doc->version,
                             .seq_no = match_doc->doc->seq_no,
                             .source = match_doc->doc->source};
    visitor->result->hit_count++;
    return visitor->visit(visitor->user, &hit);
}

int search_next_each(const struct search_context *context, const struct search_request *request,
                     struct search_cursor *cursor, search_visit *visit, void *user, struct search_result *ret_result,
                     struct problem *ret_problem)
{
    struct visitor visitor = {visit, user, ret_result};
    result_init(context, ret_result);
    return next_page(context, request, cursor, emit_visit, &visitor, ret_result, ret_problem);
}

/* --- Checking ----------------------------------------------------------------------------------------------------- */

/*
 * Replaces the script compiler, which is not available here. Records that the query has a script.
 */
static int record_script(void *user, const struct query_script *spec, int script_context, struct script **ret_script,
                         struct arena *arena, struct problem *ret_problem)
{
    (void)spec, (void)script_context, (void)ret_script;
    *(bool *)user = true;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "a script");
    return QUERY_REFUSED;
}

int search_explain(const struct search_index *index, const struct query *query, enum dialect dialect, int64_t now_ms,
                   struct arena *arena, struct slice *ret_text, struct problem *ret_problem)
{
    bool met = false;
    struct problem problem = {0};
    struct bound_query *matcher;
    struct search_context context = {
        .arena = arena,
        .dialect = dialect,
        .now_ms = now_ms,
        .memory = arena->guard,
        .compile = record_script,
        .compile_user = &met,
    };
    struct binder binder = {.arena = arena,
                            .index = index,
                            .context = &context,
                            .account = budget_account(arena->guard),
                            .problem = &problem};
    int r = query_bind(&binder, query, &matcher);
    binder_deinit(&binder);
    *ret_text = SLICE_LIT("ScriptQuery");
    if (met)
        return 0;
    if (r == 0)
        *ret_text = bound_query_describe(arena, matcher);
    if (r != QUERY_REFUSED)
        return r;
    if (problem.type == PROBLEM_NONE)
        problem_set(&problem, arena, PROBLEM_LIMIT_EXCEEDED, "the query takes more memory or time than it may");
    bool around = problem.caused_by != NULL && slice_starts_with(problem.reason, SLICE_LIT("failed to create query: "));
    *ret_problem = around ? *problem.caused_by : problem;
    return SEARCH_REFUSED;
}

int search_check(const struct search_index *index, const struct query *query, enum dialect dialect, int64_t now_ms,
                 struct arena *arena, struct problem *ret_problem)
{
    struct slice text;
    return search_explain(index, query, dialect, now_ms, arena, &text, ret_problem);
}
