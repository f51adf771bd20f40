/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The top_hits aggregation: the best documents of a bucket in a separate order, written as hits of
 * a search.
 *
 * Its options are a search request without a query. Each bucket queues the keys of its best
 * documents, which are read again when results are written.
 */
#include "query/aggregate_internal.h"

#include <stdarg.h>

#include "json/each.h"
#include "json/write.h"
#include "mapping/entry.h"
#include "query/failure.h"
#include "query/fetch.h"
#include "query/request.h"
#include "query/sort.h"

enum { HITS_DEFAULT = 3, HITS_MAX = 100 };

/* --- Options ------------------------------------------------------------------------------------------------------ */

static int check_number(struct query_parser *parser, const struct aggregation *aggregation, const char *name,
                        int32_t number)
{
    if (number >= 0)
        return 0;
    return query__refuse(parser, NULL, false, PROBLEM_ILLEGAL_ARGUMENT,
                         "[%s] must be greater than or equal to 0. Found [%d] in [%.*s]", name, number,
                         SLICE_ARG(aggregation->name));
}

/* Returns: whether a member of a search body concerns its hits, so that top_hits accepts it. */
static bool is_about_hits(struct slice name)
{
    static const char *const names[] = {
        "from",     "size",          "sort",    "_source", "stored_fields",       "docvalue_fields",
        "fields",   "script_fields", "version", "explain", "seq_no_primary_term", "track_scores",
        "highlight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

int aggregation__parse_top_hits(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    struct search_request *hits = aggregation->hits = arena_zalloc(parser->arena, sizeof *hits);
    size_t index, count;
    yyjson_val *key, *member;
    search_request_init(hits);
    hits->from = 0;
    hits->size = HITS_DEFAULT;
    json_obj_foreach (value, index, count, key, member) {
        bool list = !slice_is(json_slice(key), "fields") || yyjson_is_arr(member);
        if (is_about_hits(json_slice(key)) && list)
            continue;
        return query__refuse(parser, member, false, PROBLEM_PARSING, "Unknown key for a %s in [%.*s].",
                             json_token(member), SLICE_ARG(json_slice(key)));
    }
    int r = search_request_parse(parser, value, hits);
    if (r == 0)
        r = check_number(parser, aggregation, "from", hits->from);
    return r == 0 ? check_number(parser, aggregation, "size", hits->size) : r;
}

/* Returns: whether hits are ordered by score or show it. */
static bool has_scores(const struct search_request *hits)
{
    bool scores = hits->sort_count == 0 || hits->track_scores;
    for (size_t i = 0; i < hits->sort_count; i++)
        scores = scores || hits->sort[i].by == SORT_SCORE;
    return scores;
}

bool aggregation_wants_scores(const struct aggregation *list)
{
    for (const struct aggregation *a = list; a != NULL; a = a->next) {
        bool scripted = false; /* a script may read the score */
        for (size_t i = 0; a->hits != NULL && i < a->hits->sort_count; i++)
            scripted = scripted || a->hits->sort[i].by == SORT_SCRIPT;
        if ((a->hits != NULL && (scripted || has_scores(a->hits))) || aggregation_wants_scores(a->children))
            return true;
    }
    return false;
}

bool aggregation_runs_scripts(const struct aggregation *list)
{
    for (const struct aggregation *a = list; a != NULL; a = a->next)
        if ((a->hits != NULL && a->hits->script_field_count > 0) || aggregation_runs_scripts(a->children))
            return true;
    return false;
}

/* --- Binding ------------------------------------------------------------------------------------------------------ */

static int refuse_top_hits(struct binder *binder, const char *format, ...) TL_PRINTF(2, 3);
static int refuse_top_hits(struct binder *binder, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    *binder->problem =
        (struct problem){.type = PROBLEM_ILLEGAL_ARGUMENT, .reason = arena_vprintf(binder->arena, format, arguments)};
    va_end(arguments);
    return QUERY_REFUSED;
}

int aggregation__bind_top_hits(struct binder *binder, const struct aggregation *aggregation,
                               const struct named_list *named, struct bound_aggregation *bound)
{
    const struct search_request *hits = aggregation->hits;
    unsigned max = binder->index->hits_max != 0 ? binder->index->hits_max : HITS_MAX;
    if ((size_t)hits->from + (size_t)hits->size > max)
        return refuse_top_hits(
            binder,
            "Top hits result window is too large, the top hits aggregator [%.*s]'s from + size must be less "
            "than or equal to: "
            "[%u] but was [%zu]. This limit can be set by changing the [index.max_inner_result_window] index "
            "level setting.",
            SLICE_ARG(aggregation->name), max, (size_t)hits->from + (size_t)hits->size);
    if (hits->from + hits->size == 0)
        return refuse_top_hits(
            binder, "numHits must be > 0; please use TotalHitCountCollector if you just need the total hit count");
    bound->fetcher = arena_zalloc(binder->arena, sizeof *bound->fetcher);
    int r = sort_bind(binder, hits, &bound->keys);
    return r == 0 ? fetcher_init(bound->fetcher, binder, hits, named) : r;
}

/* --- Collecting --------------------------------------------------------------------------------------------------- */

size_t aggregator__offer_hit(const struct aggregation *aggregation, struct metric *metric,
                             const struct bound_aggregation *bound, struct match_doc *match_doc, size_t index)
{
    const struct search_request *hits = aggregation->hits;
    struct sort_value *values = arena_zalloc(&match_doc->arena, (hits->sort_count + 1) * sizeof *values);
    char key_bytes[DOC_KEY_BYTES_MAX];
    if (metric->top_hits == NULL) {
        metric->top_hits = mem_zalloc(sizeof *metric->top_hits);
        hit_queue_init(metric->top_hits, hits->sort, hits->sort_count, (size_t)hits->from + (size_t)hits->size);
    }
    size_t before = metric->top_hits->bytes;
    sort_read(bound->keys, hits->sort_count, match_doc, match_doc->score, metric->values, values);
    struct slice key = doc_key(key_bytes, bound->fetcher->index->number, match_doc->type, match_doc->id);
    hit_queue_offer(metric->top_hits, (uint32_t)index, match_doc->score, slice_from_offset(key, 4), values);
    metric->high =
        metric->values == 0 || (double)match_doc->score > metric->high ? (double)match_doc->score : metric->high;
    metric->values++;
    return metric->top_hits->bytes > before ? metric->top_hits->bytes - before : 0;
}

void aggregator__drop_hits(struct metric *metric)
{
    if (metric->top_hits == NULL)
        return;
    hit_queue_deinit(metric->top_hits);
    mem_free(metric->top_hits);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static int fetch_top_hit(const struct aggregator *aggregator, const struct aggregation *aggregation,
                         const struct queued_hit *hit, struct match_doc *match_doc, struct buf *buf)
{
    const struct search_context *context = aggregator->context;
    const struct search_request *hits = aggregation->hits;
    struct fetcher *fetcher = aggregation->bound[hit->index].fetcher;
    struct doc doc;
    uint16_t type;
    struct slice id;
    if (!entry_document_key_parse(hit->key, &type, &id))
        return TL_ERR_CORRUPT;
    int r = doc_get_key(context->view, context->indices[hit->index].number, hit->key, &doc);
    if (r != 0)
        return r == DOC_TOO_OLD ? SEARCH_TOO_OLD : r == DOC_NOT_FOUND ? TL_ERR_CORRUPT : tl_trace(r);
    match_doc_set(match_doc, type, id, &doc);
    (void)account_take(match_doc->account, 500 + doc.source.len);
    r = fetch_hit(fetcher, match_doc, has_scores(hits) ? &hit->score : NULL, hits->sort_count > 0 ? hit->values : NULL,
                  buf);
    doc_release(&doc);
    return r;
}

/* Reads the document of a hit again and writes the hit to `buf`. */
static int write_hit(const struct aggregator *aggregator, const struct aggregation *aggregation,
                     const struct queued_hit *hit, struct buf *buf, struct arena *arena, struct problem *ret_problem)
{
    const struct search_context *context = aggregator->context;
    const struct search_index *index = &context->indices[hit->index];
    struct match_doc match_doc;
    match_doc_init(&match_doc, index, arena);
    match_doc.account = aggregator->account;
    match_doc.gate = context->gate;
    int r = fetch_top_hit(aggregator, aggregation, hit, &match_doc, buf);
    if (r == QUERY_REFUSED && match_doc.problem != NULL)
        failure_wrap(context, index, context->index_count > 1, match_doc.problem, ret_problem);
    match_doc_deinit(&match_doc);
    if (index->fetched != NULL)
        *index->fetched = true;
    return r;
}

static void write_total(struct json_writer *w, const struct search_context *context, uint64_t total)
{
    json_key(w, "total");
    if (context->total_as_int || context->dialect == DIALECT_5) {
        json_u64(w, total);
        return;
    }
    json_begin(w, '{');
    json_key(w, "value");
    json_u64(w, total);
    json_key(w, "relation");
    json_string(w, SLICE_LIT("eq"));
    json_end(w, '}');
}

static void write_score(struct json_writer *w, float score)
{
    struct buf text = BUF_INIT(64);
    json_float_text(&text, score);
    json_raw(w, buf_as_slice(&text));
    buf_deinit(&text);
}

int aggregator__write_top_hits(const struct aggregator *aggregator, const struct aggregation *aggregation,
                               const struct metric *metric, struct json_writer *w, struct arena *arena,
                               struct problem *ret_problem)
{
    const struct search_request *hits = aggregation->hits;
    struct hit_queue *queue = metric->top_hits;
    int r = 0;
    json_key(w, "hits");
    json_begin(w, '{');
    write_total(w, aggregator->context, metric->values);
    json_key(w, "max_score");
    if (metric->values > 0 && (hits->sort_count == 0 || hits->track_scores))
        write_score(w, (float)metric->high);
    else
        json_null(w);
    json_key(w, "hits");
    json_begin(w, '[');
    if (queue != NULL)
        hit_queue_finish(queue);
    for (size_t i = (size_t)hits->from;
         queue != NULL && i < queue->count && r == 0 && !account_ended(aggregator->account); i++) {
        if (i > (size_t)hits->from)
            buf_byte(w->buf, ',');
        r = write_hit(aggregator, aggregation, queue->items[i], w->buf, arena, ret_problem);
    }
    json_end(w, ']');
    json_end(w, '}');
    return r;
}
