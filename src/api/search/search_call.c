/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a search, and making the context it runs in. */
#include "api/request/broken_body.h"
#include "api/request/preference.h"
#include "api/search/search_call.h"

#include <math.h>

#include "api/request/api_internal.h"
#include "api/request/index_set.h"
#include "api/request/location.h"
#include "api/search/search_service.h"
#include "api/request/request_budget.h"
#include "api/request/source_filter.h"
#include "base/clock.h"
#include "core/documents/doc.h"
#include "core/catalog/settings.h"
#include "json/each.h"
#include "mapping/mapping.h"
#include "mapping/shard.h"
#include "query/aggregate.h"
#include "query/failure.h"
#include "script/script.h"

int64_t search_clock_us(void)
{
    return (int64_t)clock_boot_us();
}

static struct slice keep_text(struct search_call *call, struct slice text)
{
    return text.data == NULL ? SLICE_NONE : arena_copy(call->arena, text);
}

int search_call_init(struct request *request, struct arena *arena, struct search_call *ret_call)
{
    bool throttled = false;
    *ret_call = (struct search_call){.arena = arena, .api = request->api, .dialect = request->dialect};
    ret_call->index = keep_text(ret_call, request_part(request, PART_INDEX));
    ret_call->types = keep_text(ret_call, request_part(request, PART_TYPE));
    ret_call->routing = keep_text(ret_call, request_param(request, "routing"));
    search_request_init(&ret_call->search);
    int r = index_options_read(request, &CATALOG_OPTIONS_DEFAULT, &ret_call->options);
    return r == 0 ? request_bool(request, "ignore_throttled", &throttled) : r;
}

/* --- Bodies ------------------------------------------------------------------------------------------------------- */

static struct query_parser parser_of(struct search_call *call, struct request *request, const struct json_doc *doc)
{
    return (struct query_parser){.arena = call->arena,
                                 .dialect = call->dialect,
                                 .doc = doc,
                                 .problem = &request->problem,
                                 .zones = request_zones(request)};
}

/* _count says "Failed to parse" around everything that is not a parsing_exception itself. */
static int wrap_count(struct request *request, struct search_call *call, size_t line, size_t column)
{
    struct problem *cause = arena_alloc(call->arena, sizeof *cause);
    if (request->problem.type == PROBLEM_PARSING)
        return REQUEST_REFUSED;
    *cause = request->problem;
    request_refuse(request, PROBLEM_PARSING, "Failed to parse");
    problem_details(&request->problem, call->arena, "\"line\":%zu,\"col\":%zu", line, column);
    request->problem.caused_by = cause;
    return REQUEST_REFUSED;
}

static int refuse_no_object(struct request *request, struct search_call *call, const struct query_parser *parser,
                            yyjson_val *root)
{
    size_t line, column;
    query_location(parser->doc, root, false, &line, &column);
    request_refuse(request, PROBLEM_PARSING, "Expected [START_OBJECT] but found [%s]", json_token(root));
    problem_details(&request->problem, call->arena, "\"line\":%zu,\"col\":%zu", line, column);
    return REQUEST_REFUSED;
}

static int parse_count(struct request *request, struct search_call *call, struct query_parser *parser, yyjson_val *root)
{
    size_t index, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(root))
        return refuse_no_object(request, call, parser, root);
    json_obj_foreach (root, index, count, key, value) {
        if (!slice_is(json_slice(key), "query")) {
            size_t line, column;
            query_location(parser->doc, key, false, &line, &column);
            request_refuse(request, PROBLEM_PARSING, "request does not support [%.*s]", SLICE_ARG(json_slice(key)));
            problem_details(&request->problem, call->arena, "\"line\":%zu,\"col\":%zu", line, column);
            return REQUEST_REFUSED;
        }
        if (query_parse(parser, value, &call->search.query) != 0)
            return wrap_count(request, call, parser->line, parser->column);
    }
    return 0;
}

static char first_byte(struct slice body)
{
    size_t at = 0;
    while (at < body.len &&
           (body.data[at] == ' ' || body.data[at] == '\n' || body.data[at] == '\r' || body.data[at] == '\t'))
        at++;
    return at < body.len ? body.data[at] : '\0';
}

/* A list is refused where it begins, whatever is wrong in it. */
static int refuse_list(struct request *request, struct search_call *call)
{
    request_refuse(request, PROBLEM_PARSING, "Expected [START_OBJECT] but found [START_ARRAY]");
    request->problem.caused_by = NULL;
    problem_details(&request->problem, call->arena, "\"line\":1,\"col\":1");
    return REQUEST_REFUSED;
}

/* 7.10 reads the first value, then refuses a token that follows it. Returns: 0; REQUEST_REFUSED. */
static int refuse_trailing(struct request *request, struct search_call *call, struct slice body)
{
    size_t at = location_first_value(body).len, line, column;
    while (at < body.len && location_is_blank(slice_make(body.data + at, 1)))
        at++;
    char c = at < body.len ? body.data[at] : '\0';
    const char *token = c == '{' ? "START_OBJECT" : c == '[' ? "START_ARRAY" : c == '"' ? "VALUE_STRING" : NULL;
    if (token == NULL) /* no token of JSON, or a rare one: reported when the whole body is parsed */
        return 0;
    json_line_column(body, at, &line, &column);
    request_refuse(request, PROBLEM_PARSING, "Unexpected token [%s] found after the main object.", token);
    problem_details(&request->problem, call->arena, "\"line\":%zu,\"col\":%zu", line, column);
    return REQUEST_REFUSED;
}

static int refuse_blank(struct request *request, struct search_call *call)
{
    request_refuse(request, PROBLEM_PARSING, "Expected [START_OBJECT] but found [null]");
    problem_details(&request->problem, call->arena, "\"line\":1,\"col\":0");
    return REQUEST_REFUSED;
}

static int parse_root(struct request *request, struct search_call *call, struct query_parser *parser, yyjson_val *root,
                      bool count)
{
    if (count)
        return parse_count(request, call, parser, root);
    return search_request_parse(parser, root, &call->search) == 0 ? 0 : REQUEST_REFUSED;
}

struct root_read {
    struct request *request;
    struct search_call *call;
    bool count;
};

static int read_root(void *context, struct json_doc *doc)
{
    struct root_read *read = context;
    struct query_parser parser = parser_of(read->call, read->request, doc);
    return parse_root(read->request, read->call, &parser, doc->root, read->count);
}

/* Refuses a body that is not JSON, as request->problem says. */
static int refuse_broken_search(struct request *request, struct search_call *call, struct slice body, bool count)
{
    struct root_read read = {request, call, count};
    const struct broken_parser parser = {
        .read = read_root, .context = &read, .arena = call->arena, .dialect = call->dialect, .form = BROKEN_QUERY};
    struct broken_location at;
    int r = broken_body_refuse(request, body, &parser, &at);
    return count ? wrap_count(request, call, at.line, at.column) : r;
}

int search_call_body(struct request *request, struct search_call *call, struct slice body, bool count)
{
    struct json_doc *doc = arena_zalloc(call->arena, sizeof *doc);
    struct query_parser parser = parser_of(call, request, doc);
    bool blank = call->dialect == DIALECT_7 && location_is_blank(body);
    if (body.len == 0 || (blank && count))
        return 0;
    if (blank)
        return refuse_blank(request, call);
    if (count && call->dialect == DIALECT_7)
        body = location_first_value(body);
    int r = json_parse(call->arena, arena_copy(call->arena, body), call->dialect, 0, doc, &request->problem);
    if (r > 0 && call->dialect == DIALECT_7 && !count && refuse_trailing(request, call, body) != 0)
        return REQUEST_REFUSED;
    if (r < 0)
        return tl_trace(r);
    if (r > 0 && call->dialect == DIALECT_7 && first_byte(body) == '[')
        return refuse_list(request, call);
    if (r > 0)
        return refuse_broken_search(request, call, body, count);
    json_references(doc->root, call->arena, &call->refers);
    return parse_root(request, call, &parser, doc->root, count);
}

/* --- Parameters --------------------------------------------------------------------------------------------------- */

int search_call_lucene(struct request *request, struct search_call *call)
{
    struct lucene_options options = {.default_field = keep_text(call, request_param(request, "df")),
                                     .analyzer = keep_text(call, request_param(request, "analyzer"))};
    struct slice operator= request_param(request, "default_operator");
    struct slice q = request_param(request, "q");
    options.lenient_given = request_param(request, "lenient").data != NULL;
    int r = request_bool(request, "lenient", &options.lenient);
    if (r == 0)
        r = request_bool(request, "analyze_wildcard", &options.analyze_wildcard);
    if (r != 0)
        return r;
    options.and_operator = slice_is(operator, "AND") || slice_is(operator, "and");
    if (operator.len> 0 && !options.and_operator && !slice_is(operator, "OR") && !slice_is(operator, "or"))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "No enum constant org.elasticsearch.index.query.Operator.%.*s", SLICE_ARG(operator));
    if (q.len > QUERY_STRING_BYTES_MAX)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "a query string has at most %u bytes",
                              QUERY_STRING_BYTES_MAX);
    if (q.data != NULL)
        call->search.query = query_from_lucene(call->arena, q, &options);
    return 0;
}

int search_call_lucene_or_body(struct request *request, struct search_call *call, struct slice body)
{
    if (location_is_blank(body))
        return search_call_lucene(request, call);
    if (request_param(request, "q").data == NULL)
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "request [%.*s] contains unrecognized parameter: [q]",
                          SLICE_ARG(request->exchange->path));
}

static int read_total(struct request *request, struct search_call *call)
{
    struct slice text = request_param(request, "track_total_hits");
    int32_t number = 0;
    if (slice_is(text, "true") || slice_is(text, "false") || (text.data != NULL && text.len == 0)) {
        call->search.track_total_hits = slice_is(text, "false") ? TOTAL_HITS_NONE : TOTAL_HITS_ALL;
    } else if (text.data != NULL) {
        int r = request_int(request, "track_total_hits", &number);
        if (r != 0)
            return r;
        if (number < -1)
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "[track_total_hits] parameter must be positive or equals to -1, got %d", number);
        call->search.track_total_hits = number;
    }
    int32_t track = call->search.track_total_hits;
    if (call->total_as_int && track != TOTAL_HITS_UNSET && track != TOTAL_HITS_ALL && track != TOTAL_HITS_NONE)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "[rest_total_hits_as_int] cannot be used if the tracking of total hits is not accurate, got %d", track);
    if (call->total_as_int && track == TOTAL_HITS_UNSET)
        call->search.track_total_hits = TOTAL_HITS_ALL;
    return 0;
}

static int read_page(struct request *request, struct search_call *call)
{
    struct search_request *search = &call->search;
    int64_t timeout = 0;
    int r;
    if ((r = request_int(request, "from", &search->from)) != 0 ||
        (r = request_int(request, "size", &search->size)) != 0 ||
        (r = request_int(request, "terminate_after", &search->terminate_after)) != 0 ||
        (r = request_time(request, "timeout", &timeout)) != 0)
        return r;
    if (request_param(request, "from").data != NULL && search->from < (call->dialect == DIALECT_7 ? -1 : 0))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              call->dialect == DIALECT_7 ? "[from] parameter cannot be negative but was [%d]"
                                                         : "[from] parameter cannot be negative",
                              search->from);
    if (request_param(request, "size").data != NULL && search->size < (call->dialect == DIALECT_7 ? -1 : 0))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[size] parameter cannot be negative, found [%d]",
                              search->size);
    if (search->terminate_after < 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "terminateAfter must be > 0");
    if (request_param(request, "timeout").data != NULL)
        search_request_timeout(search, request_param(request, "timeout"), timeout);
    return 0;
}

static int read_flags(struct request *request, struct search_call *call)
{
    struct search_request *search = &call->search;
    bool ignored = false, partial = true;
    int r;
    if ((r = request_bool(request, "version", &search->version)) != 0 ||
        (r = request_bool(request, "seq_no_primary_term", &search->seq_no_primary_term)) != 0 ||
        (r = request_bool(request, "commit_timestamp", &search->commit_timestamp)) != 0 ||
        (r = request_bool(request, "track_scores", &search->track_scores)) != 0 ||
        (r = request_bool(request, "explain", &search->explain)) != 0 ||
        (r = request_bool(request, "rest_total_hits_as_int", &call->total_as_int)) != 0 ||
        (r = request_bool(request, "allow_partial_search_results", &partial)) != 0 ||
        (r = request_bool(request, "typed_keys", &call->typed_keys)) != 0 ||
        (r = request_bool(request, "ccs_minimize_roundtrips", &ignored)) != 0)
        return r;
    call->whole = !partial;
    if (search->explain)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[explain] is not supported: scores are not explained");
    return 0;
}

int search_call_type(struct request *request, struct search_call *call, bool scroll)
{
    struct slice type = request_param(request, "search_type");
    if (type.data == NULL || slice_is(type, "query_then_fetch") || slice_is(type, "dfs_query_then_fetch"))
        return 0;
    if (slice_is(type, "query_and_fetch") || slice_is(type, "dfs_query_and_fetch"))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Unsupported search type [%.*s]", SLICE_ARG(type));
    if (slice_is(type, "count")) {
        call->search.size = 0;
        return 0;
    }
    if (!slice_is(type, "scan") || !scroll)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No search type for [%.*s]", SLICE_ARG(type));
    call->legacy_1x = call->search.scan = true;
    return 0;
}

static const struct slice *keep_all(struct search_call *call, const struct slice *items, size_t count)
{
    struct slice *kept = arena_alloc(call->arena, (count + 1) * sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[i] = keep_text(call, items[i]);
    return kept;
}

static int read_source(struct request *request, struct search_call *call)
{
    struct source_filter filter;
    int r = source_filter_params(request, &filter);
    if (r != 0 || !filter.given)
        return r;
    call->search.source_asked = true;
    call->search.no_source = !filter.fetch;
    call->search.source = filter.filter;
    call->search.source.includes = keep_all(call, filter.filter.includes, filter.filter.include_count);
    call->search.source.excludes = keep_all(call, filter.filter.excludes, filter.filter.exclude_count);
    return 0;
}

static int read_fields(struct request *request, struct search_call *call)
{
    struct search_request *search = &call->search;
    struct slice stored = keep_text(call, request_param(request, "stored_fields"));
    struct slice docvalues = keep_text(call, request_param(request, "docvalue_fields"));
    struct slice *names = NULL;
    if (stored.data != NULL) {
        search->stored_field_count = search_request_split(call->arena, stored, &search->stored_fields);
        search->stored_none = false; /* the body's list is replaced */
        for (size_t i = 0; i < search->stored_field_count; i++) {
            search->stored_none = search->stored_none || slice_is(search->stored_fields[i], "_none_");
        }
    }
    if (docvalues.data != NULL) {
        size_t given = search->docvalue_count, more = search_request_split(call->arena, docvalues, &names);
        struct field_format *all = arena_zalloc(call->arena, (given + more + 1) * sizeof *all);
        if (given > 0)
            memcpy(all, search->docvalue_fields, given * sizeof *all); /* the body's */
        for (size_t i = 0; i < more; i++)
            all[given + i].pattern = names[i];
        search->docvalue_fields = all;
        search->docvalue_count = given + more;
    }
    return 0;
}

int search_call_idle(struct request *request)
{
    static const struct {
        const char *name;
        const char *refusal; /* names it as Elasticsearch does */
        int32_t min;
    } numbers[] = {{"max_concurrent_searches", "maxConcurrentSearchRequests must be positive", 1},
                   {"batched_reduce_size", "batchedReduceSize must be >= 2", 2},
                   {"pre_filter_shard_size", "preFilterShardSize must be >= 1", 1},
                   {"max_concurrent_shard_requests", "maxConcurrentShardRequests must be >= 1", 1}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int32_t number = numbers[i].min;
        int r = request_int(request, numbers[i].name, &number);
        if (r != 0)
            return r;
        if (number < numbers[i].min)
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "%s", numbers[i].refusal);
    }
    return preference_check(request, request->dialect, NULL, PREFERENCE_ANY_SHARD, SLICE_NONE, SLICE_NONE, SLICE_NONE,
                            &request->problem);
}

int search_call_options(struct request *request, struct search_call *call, bool scan)
{
    struct query_parser parser = parser_of(call, request, NULL);
    struct slice sort = keep_text(call, request_param(request, "sort"));
    int r;
    if (call->search.pit_id.data != NULL && call->index.data != NULL)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: [indices] cannot be used with point in time;");
    if ((r = read_page(request, call)) != 0 || (r = read_flags(request, call)) != 0 ||
        (r = read_total(request, call)) != 0 || (r = search_call_lucene(request, call)) != 0 ||
        (r = search_call_type(request, call, scan)) != 0 || (r = read_source(request, call)) != 0 ||
        (r = read_fields(request, call)) != 0 || (r = search_call_idle(request)) != 0)
        return r;
    if (call->dialect == DIALECT_7 && (r = request_bool(request, "request_cache", &call->search.request_cache)) != 0)
        return r;
    return sort.data == NULL || search_request_sort(&parser, sort, &call->search) == 0 ? 0 : REQUEST_REFUSED;
}

int search_call_params(struct request *request, struct search_call *call, bool scroll)
{
    struct query_parser parser = parser_of(call, request, NULL);
    int r = search_call_options(request, call, scroll);
    if (r != 0)
        return r;
    return search_request_check(&parser, &call->search, scroll) == 0 ? 0 : REQUEST_REFUSED;
}

void search_call_combine(struct search_call *call, struct problem *ret_problem)
{
    struct query_parser parser = {.arena = call->arena, .dialect = call->dialect, .problem = ret_problem};
    if (search_request_check(&parser, &call->search, false) == 0)
        *ret_problem = (struct problem){.type = PROBLEM_NONE};
}

/* --- Scripts ------------------------------------------------------------------------------------------------------ */

/* A script in a file, with its source and language. Returns: 0, QUERY_REFUSED. */
static int find_file(const struct search_call *call, struct arena *arena, struct query_script *spec,
                     struct problem *ret_problem)
{
    const struct catalog_object *script;
    if (spec->lang.len == 0)
        spec->lang = SLICE_LIT("painless");
    if (catalog_file_script(call->catalog, spec->lang, spec->file, arena, &script, ret_problem) != 0)
        return QUERY_REFUSED;
    spec->source = script->body;
    return 0;
}

static int find_stored(const struct search_call *call, struct arena *arena, struct query_script *spec,
                       struct problem *ret_problem)
{
    const struct catalog_object *script = catalog_object(call->catalog, CATALOG_SCRIPTS, spec->id);
    if (script == NULL) {
        problem_set(ret_problem, arena, PROBLEM_RESOURCE_NOT_FOUND, "unable to find script [%.*s] in cluster state",
                    SLICE_ARG(spec->id));
        return QUERY_REFUSED;
    }
    spec->lang = script->lang;
    spec->source = script->body;
    return 0;
}

static int compile_script(void *user, const struct query_script *asked, int script_context, struct script **ret_script,
                          struct arena *arena, struct problem *ret_problem)
{
    struct search_call *call = user;
    struct query_script spec = *asked;
    enum script_lang lang = SCRIPT_DEFAULT;
    struct slice name = SLICE_NONE;
    int r = 0;
    if (spec.source.data == NULL) {
        name = spec.id.data != NULL ? spec.id : spec.file;
        r = spec.id.data != NULL ? find_stored(call, arena, &spec, ret_problem)
                                 : find_file(call, arena, &spec, ret_problem);
    }
    if (r != 0)
        return r;
    if (spec.lang.len > 0 && !script_lang_from(spec.lang, &lang)) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "script_lang not supported [%.*s]",
                    SLICE_ARG(spec.lang));
        return QUERY_REFUSED;
    }
    r = search_service_compile(call->api->search_service, (int)lang, script_context, spec.source, name, ret_script,
                               arena, ret_problem);
    return r > 0 ? QUERY_REFUSED : r;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static int parse_filter(struct search_call *call, struct slice json, struct query **ret_query,
                        struct problem *ret_problem)
{
    struct json_doc *doc = arena_zalloc(call->arena, sizeof *doc);
    struct query_parser parser = {.arena = call->arena,
                                  .dialect = call->dialect,
                                  .doc = doc,
                                  .problem = ret_problem,
                                  .zones = catalog_zones(call->catalog)};
    int r = json_parse_stored(call->arena, json, doc);
    if (r < 0)
        return tl_trace(r);
    return query_parse(&parser, doc->root, ret_query) == 0 ? 0 : SEARCH_REFUSED;
}

/* An index reached by several aliases shows what any of them lets through; one without a filter shows
 * everything. */
static int alias_filter(struct search_call *call, const struct catalog_target *target, struct query **ret_query,
                        struct problem *ret_problem)
{
    struct query *any = NULL;
    for (size_t i = 0; i < target->alias_count; i++) {
        struct query *one = NULL;
        if (target->aliases[i]->filter.data == NULL) {
            *ret_query = NULL;
            return 0;
        }
        int r = parse_filter(call, target->aliases[i]->filter, &one, ret_problem);
        if (r != 0)
            return r;
        any = any == NULL ? one : query_or(call->arena, any, one);
    }
    *ret_query = any;
    return 0;
}

static unsigned setting_number(const struct catalog_index *index, const char *key)
{
    uint64_t number;
    struct slice text = settings_get(index->settings, slice_from(key));
    return text.data != NULL && slice_to_u64(text, &number) && number <= UINT32_MAX ? (unsigned)number : 0;
}

/* Returns: one more than what a setting says; 0: nothing. */
static uint64_t setting_end(const struct catalog_index *index, const char *key)
{
    uint64_t number;
    struct slice text = settings_get(index->settings, slice_from(key));
    return text.data != NULL && slice_to_u64(text, &number) && number <= UINT32_MAX ? number + 1 : 0;
}

/* Marks the shards that a comma-separated routing leads to. Returns: how many. */
static unsigned routed_shards(struct search_call *call, const struct catalog_index *index, struct slice routing,
                              const bool **ret_shards)
{
    bool *shards = arena_zalloc(call->arena, index->shard_count + 1);
    unsigned count = 0;
    while (routing.len > 0) {
        size_t comma = slice_find_byte(routing, ',');
        uint32_t shard = shard_of(slice_make(routing.data, comma), index->shard_count);
        count += !shards[shard];
        shards[shard] = true;
        routing = slice_from_offset(routing, comma + 1);
    }
    *ret_shards = shards;
    return count;
}

static struct slice target_routing(const struct search_call *call, const struct catalog_target *target)
{
    if (call->routing.data != NULL || target->alias_count != 1)
        return call->routing;
    return target->aliases[0]->search_routing;
}

/* One member of indices_boost: its name is an expression. `boosts`: of the targets; NAN: none yet; the first counts. */
static int boost_targets(struct search_call *call, yyjson_val *key, yyjson_val *value, uint64_t *io_looks,
                         const struct catalog_target *targets, size_t count, double *boosts,
                         struct problem *ret_problem)
{
    struct catalog_target *named = NULL;
    struct arena_mark mark = arena_mark(call->arena);
    size_t named_count = 0, at = 0;
    int r = catalog_resolve_within(call->catalog, json_slice(key), &call->options, call->dialect, CATALOG_WEIGH_REQUEST,
                                   call->arena, io_looks, &named, &named_count, ret_problem);
    for (size_t i = 0; r == 0 && i < named_count; i++) { /* both are in the order of names */
        while (at < count && slice_compare(targets[at].index->name, named[i].index->name) < 0)
            at++;
        if (at < count && targets[at].index == named[i].index && isnan(boosts[at]))
            boosts[at] = yyjson_get_num(value);
    }
    if (r == 0)
        arena_rewind(call->arena, mark);
    return r;
}

static int boost_all(struct search_call *call, yyjson_val *members, uint64_t *io_looks,
                     const struct catalog_target *targets, size_t count, double *boosts, struct problem *ret_problem)
{
    size_t i, max;
    yyjson_val *key, *value;
    int r = 0;
    json_obj_foreach (members, i, max, key, value)
        if ((r = boost_targets(call, key, value, io_looks, targets, count, boosts, ret_problem)) != 0)
            return r;
    return 0;
}

/* Returns: 0, with the boost of each target; as catalog_resolve(). */
static int read_boosts(struct search_call *call, const struct catalog_target *targets, size_t count,
                       double **ret_boosts, struct problem *ret_problem)
{
    yyjson_val *all = call->search.indices_boost, *item;
    uint64_t looks = CATALOG_LOOKS_MAX;
    double *boosts = arena_alloc(call->arena, (count + 1) * sizeof *boosts);
    size_t i, max;
    for (i = 0; i < count; i++)
        boosts[i] = NAN;
    int r = boost_all(call, yyjson_is_obj(all) ? all : NULL, &looks, targets, count, boosts, ret_problem);
    json_arr_foreach (all, i, max, item) {
        if (r != 0)
            break;
        r = boost_all(call, item, &looks, targets, count, boosts, ret_problem);
    }
    for (i = 0; i < count; i++)
        if (isnan(boosts[i]))
            boosts[i] = 1;
    *ret_boosts = boosts;
    return r;
}

/*
 * How many documents an index has. The newest count, which is in memory, is precise enough for
 * plans and scores; only a view of the past, or of a transaction, has another.
 */
static int count_documents(struct search_call *call, const struct catalog_index *from, struct search_index *index)
{
    if (from->counters != NULL && call->view.overlay == NULL) {
        index->document_count = catalog_index_documents(from);
        return 0;
    }
    index->count_exact = true;
    int r = doc_count(&call->view, from->number, DOC_TYPE_ANY, &index->document_count);
    return r > 0 ? SEARCH_TOO_OLD : r;
}

static const struct slice *alias_names(struct arena *arena, const struct catalog_index *index)
{
    struct slice *names = arena_alloc(arena, (index->alias_count + 1) * sizeof *names);
    for (size_t i = 0; i < index->alias_count; i++)
        names[i] = index->aliases[i].name;
    return names;
}

static int open_index(struct search_call *call, const struct catalog_target *target, double boost,
                      struct search_index *index, struct problem *ret_problem)
{
    const struct catalog_index *from = target->index;
    struct slice routing = target_routing(call, target);
    *index = (struct search_index){.name = from->name,
                                   .uuid = from->uuid,
                                   .aliases = alias_names(call->arena, from),
                                   .alias_count = from->alias_count,
                                   .number = from->number,
                                   .shard_count = from->shard_count,
                                   .mapping = from->mapping,
                                   .zones = catalog_zones(call->catalog),
                                   .fetched = arena_zalloc(call->arena, sizeof(bool)),
                                   .boost = boost,
                                   .window_max = setting_number(from, "index.max_result_window"),
                                   .hits_max = setting_number(from, "index.max_inner_result_window"),
                                   .terms_max = setting_number(from, "index.max_terms_count"),
                                   .regexp_max = setting_number(from, "index.max_regex_length"),
                                   .docvalue_fields_end = setting_end(from, "index.max_docvalue_fields_search"),
                                   .script_fields_end = setting_end(from, "index.max_script_fields")};
    unsigned shards = from->shard_count;
    if (routing.data != NULL)
        shards = routed_shards(call, from, routing, &index->shards);
    call->shard_count += shards;
    if (shards == from->shard_count)
        index->shards = NULL;
    int r = alias_filter(call, target, &index->filter, ret_problem);
    if (r != 0)
        return r;
    if (call->types.len > 0 && !slice_is(call->types, "_all")) {
        struct slice *types = NULL;
        size_t count = search_request_split(call->arena, call->types, &types);
        struct query *filter = query_types(call->arena, types, count);
        index->filter = index->filter == NULL ? filter : query_and(call->arena, index->filter, filter);
    }
    return count_documents(call, from, index);
}

/* Reads the document that a terms query takes its values from. */
static int fetch_lookup(void *user, const struct terms_lookup *lookup, struct arena *arena, struct slice *ret_source,
                        struct problem *ret_problem)
{
    struct search_call *call = user;
    const struct catalog_index *index = NULL;
    const struct catalog_alias *alias = NULL;
    struct doc doc;
    int r = catalog_find(call->catalog, lookup->index, false, call->dialect, arena, &index, &alias, ret_problem);
    if (r != 0)
        return r > 0 ? QUERY_REFUSED : tl_trace(r);
    const struct mapping_type *type =
        mapping_type(index->mapping, lookup->type.len > 0 ? lookup->type : SLICE_LIT("_doc"));
    if (type == NULL)
        return 0;
    r = doc_get(&call->view, index->number, type->number, lookup->id, &doc);
    if (r > 0)
        return 0;
    if (r < 0)
        return tl_trace(r);
    *ret_source = arena_copy(arena, doc.source);
    doc_release(&doc);
    return 0;
}

static int open_queries(struct search_call *call, struct problem *ret_problem)
{
    int r = query_resolve_lookups(call->search.query, call->arena, fetch_lookup, call, ret_problem);
    if (r == 0)
        r = query_resolve_lookups(call->search.post_filter, call->arena, fetch_lookup, call, ret_problem);
    if (r == 0)
        r = aggregation_resolve_lookups(call->search.aggregations, call->arena, fetch_lookup, call, ret_problem);
    for (size_t i = 0; r == 0 && i < call->context.index_count; i++)
        r = query_resolve_lookups(call->context.indices[i].filter, call->arena, fetch_lookup, call, ret_problem);
    return r > 0 ? SEARCH_REFUSED : r;
}

int search_call_open(struct search_call *call, struct problem *ret_problem)
{
    struct catalog_target *targets = NULL;
    size_t count = 0;
    int r = catalog_resolve(call->catalog, call->index, &call->options, call->dialect, call->arena, &targets, &count,
                            ret_problem);
    if (r != 0)
        return r > 0 ? SEARCH_REFUSED : tl_trace(r);
    struct search_index *indices = arena_zalloc(call->arena, (count + 1) * sizeof *indices);
    call->shard_count = 0;
    call->context = (struct search_context){.arena = call->arena,
                                            .view = &call->view,
                                            .indices = indices,
                                            .index_count = count,
                                            .dialect = call->dialect,
                                            .memory = call->arena->guard,
                                            .now_ms = (int64_t)(clock_wall_us() / TL_MS),
                                            .node = slice_from(call->api->node_id),
                                            .account = budget_account(call->arena->guard),
                                            .typed_keys = call->typed_keys,
                                            .total_as_int = call->total_as_int,
                                            .compile = compile_script,
                                            .compile_user = call};
    call->context.index_count = 0;
    double *boosts;
    if ((r = read_boosts(call, targets, count, &boosts, ret_problem)) != 0)
        return r > 0 ? SEARCH_REFUSED : tl_trace(r);
    for (size_t i = 0; i < count; i++) {
        if (targets[i].index->closed && call->options.ignore_unavailable)
            continue;
        if (targets[i].index->closed) { /* a wildcard that expands to closed ones */
            catalog_problem_closed(call->arena, targets[i].index, call->dialect, ret_problem);
            return SEARCH_REFUSED;
        }
        r = open_index(call, &targets[i], boosts[i], &indices[call->context.index_count++], ret_problem);
        if (r != 0)
            return r;
    }
    return open_queries(call, ret_problem);
}

void search_call_note(const struct search_call *call, int64_t begun_us)
{
    uint64_t took_us = (uint64_t)(search_clock_us() - begun_us);
    for (size_t i = 0; i < call->context.index_count; i++) {
        const struct search_index *index = &call->context.indices[i];
        const struct catalog_index *searched = catalog_index_by_number(call->catalog, index->number);
        catalog_index_count_stat(searched, INDEX_STAT_SEARCHES, 1);
        catalog_index_count_stat(searched, INDEX_STAT_SEARCH_US, took_us);
        catalog_index_count_stat(searched, INDEX_STAT_FETCHES, *index->fetched);
        *index->fetched = false;
    }
}

struct lock_target *search_call_locks(const struct search_call *call, struct arena *arena, size_t *ret_count)
{
    struct lock_target *targets = arena_zalloc(arena, (call->refers.count + 1) * sizeof *targets);
    targets[0] = (struct lock_target){.mode = LOCK_S, .index = call->index, .expression = &call->options};
    for (size_t i = 0; i < call->refers.count; i++) {
        const struct json_reference *refer = &call->refers.items[i];
        targets[i + 1] =
            refer->script ? (struct lock_target){.mode = LOCK_S, .index = refer->id, .script = true}
                          : (struct lock_target){LOCK_S, refer->index, SLICE_NONE, refer->type, refer->id, NULL, false};
    }
    *ret_count = call->refers.count + 1;
    return targets;
}

void search_call_targets(struct request *request, const struct search_call *call, struct lock_target **ret_targets,
                         size_t *ret_count)
{
    *ret_targets = NULL;
    *ret_count = 0;
    if (request->transaction.len > 0 && request->query == NULL) /* reads of the past take no locks */
        *ret_targets = search_call_locks(call, request->arena, ret_count);
}

/* As the shards would say it. */
static void wrap_for_shards(const struct search_call *call, const struct problem *cause, struct problem *ret_problem)
{
    if (call != NULL && call->context.index_count > 0)
        failure_wrap(&call->context, &call->context.indices[0], false, cause, ret_problem);
    else
        *ret_problem = *cause;
}

/* The account is over. That it was cancelled is said as by Elasticsearch, whatever else is found out on the way. */
static int refuse_cancelled(struct request *request, const struct search_call *call)
{
    (void)account_poll(&request->account);
    int r = request_budget_refuse(request);
    if (request->account.end == ACCOUNT_CANCELLED) {
        struct problem cause = request->problem;
        wrap_for_shards(call, &cause, &request->problem);
        account_reset(&request->account);
    }
    return r;
}

int search_outcome(struct request *request, const struct search_call *call, int outcome)
{
    if (outcome == SEARCH_TOO_OLD)
        return request_refuse(request, PROBLEM_TIMESTAMP_TOO_OLD, "the history that this search reads is gone");
    if (outcome == SEARCH_CANCELLED)
        return refuse_cancelled(request, call);
    return outcome > 0 ? REQUEST_REFUSED : outcome;
}

int search_call_check(const struct search_call *call, const struct search_result *result, struct problem *ret_problem)
{
    struct problem cause;
    if (!result->timed_out || !call->whole)
        return 0;
    problem_set(&cause, call->arena, PROBLEM_QUERY_PHASE_EXECUTION, "Time exceeded");
    wrap_for_shards(call, &cause, ret_problem);
    return SEARCH_REFUSED;
}
