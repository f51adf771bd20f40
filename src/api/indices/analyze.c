/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _analyze: the tokens that an analyzer makes of a text.
 *
 * The analyzer is one by name, that of a field, a normalizer, or one that the request puts together
 * of a tokenizer and filters; the latter is read as if the settings of an index had it
 * (mapping/analysis.h), together with the index's own tokenizers and filters. Parts of
 * Elasticsearch that are missing here are refused by name.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/location.h"
#include "api/request/request_budget.h"
#include "core/catalog/catalog.h"
#include "core/catalog/settings.h"
#include "json/each.h"
#include "json/write.h"
#include "mapping/analysis.h"
#include "mapping/mapping.h"

enum { TOKENS_MAX = 10000, FILTERS_MAX = 16, POSITION_GAP = 100 /* of an index, between two texts */ };

/* Steps of the request's account that a token takes. */
enum { TOKEN_STEPS = 50 };

struct analyze {
    struct request *request;
    struct json_doc doc;
    const struct catalog_index *index; /* NULL: none */
    yyjson_val *text, *analyzer, *tokenizer, *filter, *field, *normalizer;
    yyjson_val *analysis; /* of the index's settings; NULL: none */
    const struct analyzer *chosen;
    bool normalizes; /* chosen is a normalizer: the text is one token */
    uint64_t tokens_max;
};

/* --- The body ----------------------------------------------------------------------------------------------------- */

static int refuse_kind(struct analyze *analyze, yyjson_val *key, yyjson_val *value)
{
    size_t line, column;
    location_line(&analyze->doc, location_of_member(&analyze->doc, key), &line, &column);
    return request_refuse(analyze->request, PROBLEM_X_CONTENT_PARSE,
                          "[%zu:%zu] [analyze_request] %.*s doesn't support values of type: %s", line, column,
                          SLICE_ARG(json_slice(key)), json_token(value));
}

static int take_member(struct analyze *analyze, yyjson_val *key, yyjson_val *value)
{
    struct slice name = json_slice(key);
    struct {
        const char *name;
        yyjson_val **value;
        bool text, list, object;
    } members[] = {
        {"text", &analyze->text, true, true, false},           {"analyzer", &analyze->analyzer, true, false, false},
        {"field", &analyze->field, true, false, false},        {"normalizer", &analyze->normalizer, true, false, false},
        {"tokenizer", &analyze->tokenizer, true, false, true}, {"filter", &analyze->filter, false, true, false},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!slice_is(name, members[i].name))
            continue;
        if (!(members[i].text && yyjson_is_str(value)) && !(members[i].list && yyjson_is_arr(value)) &&
            !(members[i].object && yyjson_is_obj(value)))
            return refuse_kind(analyze, key, value);
        *members[i].value = value;
        return 0;
    }
    bool nothing = yyjson_is_arr(value) && yyjson_arr_size(value) == 0;
    if (slice_is(name, "explain") && (yyjson_is_false(value) || slice_is(json_slice(value), "false")))
        return 0;
    if ((slice_is(name, "char_filter") || slice_is(name, "attributes")) && nothing)
        return 0;
    if (slice_is(name, "explain") || slice_is(name, "char_filter") || slice_is(name, "attributes"))
        return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[%.*s] of [_analyze] is not supported by this server", SLICE_ARG(name));
    size_t line, column;
    location_line(&analyze->doc, location_of_string(&analyze->doc, key), &line, &column);
    return request_refuse(analyze->request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [analyze_request] unknown field [%.*s]",
                          line, column, SLICE_ARG(name));
}

static int refuse_invalid(struct analyze *analyze, const char *reason)
{
    return request_refuse(analyze->request, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: 1: %s;", reason);
}

static bool holds_scalars(yyjson_val *list)
{
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (list, i, max, item)
        if (yyjson_is_ctn(item) || yyjson_is_null(item))
            return false;
    return true;
}

static int read_body(struct analyze *analyze)
{
    struct request *request = analyze->request;
    size_t i, max;
    yyjson_val *key, *value;
    if (location_is_blank(request_body(request)))
        return request_refuse(request, PROBLEM_PARSE, "request body or source parameter is required");
    int r = request_json(request, 0, &analyze->doc);
    if (r != 0)
        return r;
    if (!yyjson_is_obj(analyze->doc.root))
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    json_obj_foreach (analyze->doc.root, i, max, key, value)
        if ((r = take_member(analyze, key, value)) != 0)
            return r;
    if (analyze->text == NULL || (yyjson_is_arr(analyze->text) && yyjson_arr_size(analyze->text) == 0))
        return refuse_invalid(analyze, "text is missing");
    if (!holds_scalars(analyze->text))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[text] must be a text or a list of texts");
    if (analyze->analyzer != NULL && (analyze->tokenizer != NULL || analyze->filter != NULL))
        return refuse_invalid(analyze, "cannot define extra components on a named analyzer");
    if (analyze->normalizer != NULL && request_part(request, PART_INDEX).len == 0)
        return refuse_invalid(analyze, "index is required if normalizer is specified");
    if (analyze->normalizer != NULL && (analyze->tokenizer != NULL || analyze->analyzer != NULL))
        return refuse_invalid(analyze, "tokenizer/analyze should be null if normalizer is specified");
    return 0;
}

/* --- The index ---------------------------------------------------------------------------------------------------- */

static int find_index(struct analyze *analyze)
{
    static const struct catalog_options options = {.allow_closed = true};
    struct request *request = analyze->request;
    struct slice name = request_part(request, PART_INDEX);
    struct catalog_target *targets;
    size_t count = 0;
    if (name.len == 0)
        return 0;
    bool one =
        slice_find_byte(name, ',') == name.len && slice_find_byte(name, '*') == name.len && !slice_is(name, "_all");
    if (one && catalog_resolve(request_catalog(request), name, &options, request->dialect, request->arena, &targets,
                               &count, &request->problem) != 0)
        count = 0;
    if (count > 1)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "unable to return a single index as the index and options provided got resolved to "
                              "multiple indices");
    if (count == 0) {
        catalog_problem_missing(request->arena, name, false, request->dialect, &request->problem);
        return REQUEST_REFUSED;
    }
    analyze->index = targets[0].index;
    return 0;
}

static int read_settings(struct analyze *analyze)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc;
    if (analyze->index == NULL)
        return 0;
    if (!slice_to_u64(settings_get(analyze->index->settings, SLICE_LIT("index.analyze.max_token_count")),
                      &analyze->tokens_max))
        analyze->tokens_max = TOKENS_MAX;
    settings_render(analyze->index->settings, false, &text);
    struct slice copy = arena_copy(analyze->request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    int r = json_parse_stored(analyze->request->arena, copy, &doc);
    if (r != 0)
        return tl_trace(r);
    analyze->analysis = json_get_lit(json_get_lit(doc.root, "index"), "analysis");
    return 0;
}

/* --- Which analyzer ----------------------------------------------------------------------------------------------- */

static bool is_listed(struct slice name, const char *const *names)
{
    while (*names != NULL && !slice_is(name, *names))
        names++;
    return *names != NULL;
}

/* Components of 7.10 that this server lacks. They are refused as unsupported, not as misspelled. */
static const char *const analyzers[] = {
    "arabic",  "armenian", "basque",     "bengali",   "brazilian", "bulgarian", "catalan",     "chinese",
    "cjk",     "czech",    "danish",     "dutch",     "english",   "estonian",  "fingerprint", "finnish",
    "french",  "galician", "german",     "greek",     "hindi",     "hungarian", "indonesian",  "irish",
    "italian", "latvian",  "lithuanian", "norwegian", "pattern",   "persian",   "portuguese",  "romanian",
    "russian", "snowball", "sorani",     "spanish",   "swedish",   "thai",      "turkish",     NULL};
static const char *const tokenizers[] = {
    "PathHierarchy",  "char_group",           "edgeNGram", "edge_ngram",    "nGram", "ngram", "pattern",
    "simple_pattern", "simple_pattern_split", "thai",      "uax_url_email", NULL};
static const char *const filters[] = {"apostrophe",
                                      "arabic_normalization",
                                      "arabic_stem",
                                      "bengali_normalization",
                                      "brazilian_stem",
                                      "cjk_bigram",
                                      "cjk_width",
                                      "classic",
                                      "common_grams",
                                      "condition",
                                      "czech_stem",
                                      "decimal_digit",
                                      "delimited_payload",
                                      "delimited_payload_filter",
                                      "dictionary_decompounder",
                                      "dutch_stem",
                                      "edgeNGram",
                                      "edge_ngram",
                                      "elision",
                                      "fingerprint",
                                      "flatten_graph",
                                      "french_stem",
                                      "german_normalization",
                                      "german_stem",
                                      "hindi_normalization",
                                      "hunspell",
                                      "hyphenation_decompounder",
                                      "indic_normalization",
                                      "keep",
                                      "keep_types",
                                      "keyword_marker",
                                      "keyword_repeat",
                                      "kstem",
                                      "limit",
                                      "min_hash",
                                      "multiplexer",
                                      "nGram",
                                      "ngram",
                                      "pattern_capture",
                                      "pattern_replace",
                                      "persian_normalization",
                                      "porter_stem",
                                      "predicate_token_filter",
                                      "remove_duplicates",
                                      "russian_stem",
                                      "scandinavian_folding",
                                      "scandinavian_normalization",
                                      "serbian_normalization",
                                      "shingle",
                                      "snowball",
                                      "sorani_normalization",
                                      "stemmer",
                                      "stemmer_override",
                                      "synonym",
                                      "synonym_graph",
                                      "type_as_payload",
                                      "unique",
                                      "word_delimiter",
                                      "word_delimiter_graph",
                                      NULL};

static int refuse_component(struct analyze *analyze, const char *what, yyjson_val *component, const char *const *known,
                            const struct problem *problem)
{
    struct slice name = yyjson_is_obj(component) ? json_slice(json_get_lit(component, "type")) : json_slice(component);
    if (is_listed(name, known))
        return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT, "%s [%.*s] is not supported by this server",
                              what, SLICE_ARG(name));
    if (yyjson_is_obj(component)) {
        analyze->request->problem = *problem;
        return REQUEST_REFUSED;
    }
    return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT, "failed to find %s%s under [%.*s]",
                          analyze->index == NULL ? "global " : "", what, SLICE_ARG(name));
}

/* Writes the members of a section of the index, then the component of the request under a name of its own. */
static void write_section(struct json_writer *writer, const char *section, yyjson_val *own, yyjson_val *component)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_key(writer, section);
    json_begin(writer, '{');
    json_obj_foreach (json_get(own, slice_from(section)), i, max, key, value) {
        json_key_slice(writer, json_slice(key));
        json_value(writer, value, DIALECT_7);
    }
    if (yyjson_is_obj(component)) {
        json_key(writer, "__anonymous__");
        json_value(writer, component, DIALECT_7);
    }
    json_end(writer, '}');
}

static void write_name(struct json_writer *writer, yyjson_val *component)
{
    if (yyjson_is_obj(component))
        json_string(writer, SLICE_LIT("__anonymous__"));
    else
        json_value(writer, component, DIALECT_7);
}

/* Reads an analyzer of a tokenizer (NULL: keyword) and one filter (NULL: none). */
static int put_together(struct analyze *analyze, yyjson_val *tokenizer, yyjson_val *filter,
                        const struct analyzer **ret_analyzer, struct problem *ret_problem)
{
    struct arena *arena = analyze->request->arena;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    struct json_doc doc;
    struct analysis *analysis;
    json_writer_init(&writer, &text);
    json_begin(&writer, '{');
    json_key(&writer, "analyzer");
    json_raw(&writer, SLICE_LIT("{\"custom\":{\"type\":\"custom\",\"tokenizer\":"));
    writer.comma = false;
    if (tokenizer == NULL)
        json_string(&writer, SLICE_LIT("keyword"));
    else
        write_name(&writer, tokenizer);
    buf_lit(&text, ",\"filter\":[");
    writer.comma = false;
    if (filter != NULL)
        write_name(&writer, filter);
    buf_lit(&text, "]}}");
    writer.comma = true;
    write_section(&writer, "tokenizer", analyze->analysis, tokenizer);
    write_section(&writer, "filter", analyze->analysis, filter);
    json_end(&writer, '}');
    struct slice copy = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    int r = json_parse_stored(arena, copy, &doc);
    if (r != 0)
        return tl_trace(r);
    if ((r = analysis_new(arena, doc.root, arena, &analysis, ret_problem)) == 0)
        *ret_analyzer = analysis_find(analysis, SLICE_LIT("custom"));
    return r;
}

static int choose_custom(struct analyze *analyze, const struct analyzer **ret_filters, size_t *ret_count)
{
    struct problem problem = {0};
    size_t i, max;
    yyjson_val *filter;
    int r = put_together(analyze, analyze->tokenizer, NULL, &analyze->chosen, &problem);
    if (r == ANALYSIS_REFUSED)
        return refuse_component(analyze, "tokenizer", analyze->tokenizer, tokenizers, &problem);
    if (r != 0)
        return r;
    if (yyjson_arr_size(analyze->filter) > FILTERS_MAX)
        return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT, "an analyzer may have at most %d filters",
                              FILTERS_MAX);
    json_arr_foreach (analyze->filter, i, max, filter) {
        if (!yyjson_is_str(filter) && !yyjson_is_obj(filter))
            return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT, "a filter is a name or an object");
        r = put_together(analyze, NULL, filter, &ret_filters[i], &problem);
        if (r == ANALYSIS_REFUSED)
            return refuse_component(analyze, "filter", filter, filters, &problem);
        if (r != 0)
            return r;
    }
    *ret_count = yyjson_arr_size(analyze->filter);
    return 0;
}

static const struct analyzer *find_named(const struct analyze *analyze, struct slice name)
{
    return analyze->index != NULL ? mapping_analyzer(analyze->index->mapping, name) : analysis_find(NULL, name);
}

static int choose_named(struct analyze *analyze, struct slice name)
{
    analyze->chosen = find_named(analyze, name);
    if (analyze->chosen != NULL)
        return 0;
    if (is_listed(name, analyzers))
        return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "analyzer [%.*s] is not supported by this server", SLICE_ARG(name));
    return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT, "failed to find %sanalyzer [%.*s]",
                          analyze->index == NULL ? "global " : "", SLICE_ARG(name));
}

static void choose_default(struct analyze *analyze)
{
    analyze->chosen = analyze->index == NULL ? NULL : find_named(analyze, SLICE_LIT("default"));
    if (analyze->chosen == NULL)
        analyze->chosen = find_named(analyze, SLICE_LIT("standard"));
}

static int choose_field(struct analyze *analyze)
{
    struct slice name = json_slice(analyze->field);
    if (analyze->index == NULL)
        return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "analysis based on a specific field requires an index");
    const struct mapping_field *field = mapping_field(analyze->index->mapping, name);
    if (field == NULL) {
        choose_default(analyze);
        return 0;
    }
    if (field->type != FIELD_TEXT && field->type != FIELD_KEYWORD)
        return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "Can't process field [%.*s], Analysis requests are only supported on tokenized fields",
                              SLICE_ARG(name));
    analyze->chosen = field->analyzer != NULL ? field->analyzer : find_named(analyze, SLICE_LIT("keyword"));
    analyze->normalizes = field->type == FIELD_KEYWORD && field->analyzer != NULL;
    return 0;
}

/* A normalizer by name, made of the index's settings. */
static int choose_normalizer(struct analyze *analyze)
{
    struct analysis *analysis = NULL;
    struct problem problem = {0};
    int r = analyze->analysis == NULL ? 0
                                      : analysis_new(analyze->request->arena, analyze->analysis,
                                                     analyze->request->arena, &analysis, &problem);
    if (r < 0)
        return r;
    analyze->normalizes = true;
    analyze->chosen = analysis_find_normalizer(analysis, json_slice(analyze->normalizer));
    if (analyze->chosen == NULL)
        return request_refuse(analyze->request, PROBLEM_ILLEGAL_ARGUMENT, "failed to find normalizer under [%.*s]",
                              SLICE_ARG(json_slice(analyze->normalizer)));
    return 0;
}

/* --- Tokens ------------------------------------------------------------------------------------------------------- */

/* Counts characters as Java does, continuing at its last position. */
struct ruler {
    size_t bytes, units;
};

static size_t measure_offset(struct ruler *ruler, struct slice text, size_t offset)
{
    if (offset < ruler->bytes)
        *ruler = (struct ruler){0};
    for (; ruler->bytes < offset; ruler->bytes++) {
        unsigned char byte = (unsigned char)text.data[ruler->bytes];
        ruler->units += (byte & 0xc0) != 0x80 ? 1 : 0;
        ruler->units += byte >= 0xf0 ? 1 : 0;
    }
    return ruler->units;
}

struct output {
    struct analyze *analyze;
    const struct analyzer *const *filters;
    size_t filter_count;
    struct json_writer writer;
    struct slice text;
    struct ruler starts, ends;
    size_t left;      /* analyzer_run_bounded() */
    size_t offset;    /* of the text among all */
    int64_t position; /* the last one; -1 before the first */
    int64_t base;     /* of the text */
    uint64_t count;
    bool too_many;
    bool too_long; /* tokens of path_hierarchy that are filtered */
    bool gap; /* between the positions of two texts */
};

static struct slice type_of(struct slice token)
{
    bool number = token.len > 0;
    for (size_t i = 0; i < token.len; i++)
        number = number && (unsigned char)token.data[i] < 0x80 &&
                 !((token.data[i] | 0x20) >= 'a' && (token.data[i] | 0x20) <= 'z') && token.data[i] != '_';
    if (number)
        return SLICE_LIT("<NUM>");
    return analysis_is_ideograph(token) ? SLICE_LIT("<IDEOGRAPHIC>") : SLICE_LIT("<ALPHANUM>");
}

/* The result of a filter for one token. The analyzer, a keyword tokenizer and the filter, returns at most one. */
struct filtered {
    struct slice text;
    bool there;
};

static bool take_filtered(void *context, const struct analysis_token *token)
{
    struct filtered *filtered = context;
    *filtered = (struct filtered){token->text, true};
    return false;
}

static bool write_token(void *context, const struct analysis_token *token)
{
    struct output *out = context;
    struct request *request = out->analyze->request;
    struct slice text = token->text;
    if (request_budget_stops(request, TOKEN_STEPS + text.len / 8))
        return false;
    struct arena_mark mark = arena_mark(request->arena);
    for (size_t i = 0; i < out->filter_count; i++) {
        struct filtered filtered = {.there = false};
        if (text.len > 0)
            analyzer_run(out->filters[i], text, request->arena, take_filtered, &filtered);
        if (text.len > 0 && !filtered.there) {
            arena_rewind(request->arena, mark);
            return true;
        }
        text = text.len > 0 ? filtered.text : text;
    }
    if (out->count++ == out->analyze->tokens_max) {
        out->too_many = true;
        return false;
    }
    struct json_writer *w = &out->writer;
    size_t start = out->offset + measure_offset(&out->starts, out->text, token->start);
    size_t end = out->offset + measure_offset(&out->ends, out->text, token->end);
    out->position = out->base + token->position;
    json_begin(w, '{');
    json_key(w, "token");
    json_string(w, text);
    json_key(w, "start_offset");
    json_u64(w, start);
    json_key(w, "end_offset");
    json_u64(w, end);
    json_key(w, "type");
    json_string(w, !out->analyze->normalizes && analyzer_is_standard(out->analyze->chosen)
                       ? type_of(slice_make(out->text.data + token->start, token->end - token->start))
                       : SLICE_LIT("word"));
    json_key(w, "position");
    json_i64(w, out->position);
    json_end(w, '}');
    arena_rewind(request->arena, mark);
    return true;
}

static void write_text(struct output *out, struct slice text)
{
    struct analyze *analyze = out->analyze;
    struct arena *arena = analyze->request->arena;
    out->text = text;
    out->starts = out->ends = (struct ruler){0};
    bool whole = analyze->normalizes || (text.len == 0 && analyzer_is_single_token(analyze->chosen));
    struct analysis_token token = {.text = text, .end = (uint32_t)text.len};
    if (analyze->normalizes)
        token.text = analyzer_normalize(analyze->chosen, text, arena);
    if (whole)
        (void)write_token(out, &token);
    else
        out->too_long = !analyzer_run_bounded(analyze->chosen, text, arena, &out->left, write_token, out);
    out->offset += measure_offset(&out->ends, text, text.len) + 1;
    out->base = out->position + 1 + (out->gap ? POSITION_GAP : 0);
}

static int reply_tokens(struct analyze *analyze, const struct analyzer *const *filters_of, size_t filter_count)
{
    struct request *request = analyze->request;
    struct output out = {.analyze = analyze,
                         .gap = !analyze->normalizes && (analyze->index != NULL || filters_of != NULL),
                         .filters = filters_of,
                         .filter_count = filter_count,
                         .left = ANALYSIS_FILTERED_MAX,
                         .position = -1,
                         .base = 0};
    size_t i, max;
    yyjson_val *item;
    reply_begin(request, 200, &out.writer);
    json_begin(&out.writer, '{');
    json_key(&out.writer, "tokens");
    json_begin(&out.writer, '[');
    if (yyjson_is_str(analyze->text))
        write_text(&out, json_slice(analyze->text));
    json_arr_foreach (analyze->text, i, max, item) {
        if (out.too_many || out.too_long || request_budget_refused(request))
            break;
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        if (!yyjson_is_str(item))
            json_write(&text, item, request->dialect);
        write_text(&out, yyjson_is_str(item) ? json_slice(item) : arena_copy(request->arena, buf_as_slice(&text)));
        buf_deinit(&text);
    }
    json_end(&out.writer, ']');
    json_end(&out.writer, '}');
    if (request_budget_refused(request))
        return request_budget_refuse(request);
    if (out.too_long)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "Limit of bytes [%zu] that token filters read after [path_hierarchy] has been exceeded",
                              ANALYSIS_FILTERED_MAX);
    if (out.too_many)
        return request_refuse(
            request, PROBLEM_ILLEGAL_STATE,
            "The number of tokens produced by calling _analyze has exceeded the allowed maximum of [%llu]. "
            "This limit can be set by changing the [index.analyze.max_token_count] index level setting.",
            (unsigned long long)analyze->tokens_max);
    return REQUEST_DONE;
}

int handle_analyze(struct request *request)
{
    struct analyze *analyze = arena_zalloc(request->arena, sizeof *analyze);
    const struct analyzer **chain = arena_zalloc(request->arena, FILTERS_MAX * sizeof(struct analyzer *));
    size_t count = 0;
    bool custom = false;
    *analyze = (struct analyze){.request = request, .tokens_max = TOKENS_MAX};
    int r = request_accept(request);
    if (r != 0 || (r = read_body(analyze)) != 0 || (r = find_index(analyze)) != 0 || (r = read_settings(analyze)) != 0)
        return r;
    if (analyze->analyzer != NULL)
        r = choose_named(analyze, json_slice(analyze->analyzer));
    else if (analyze->normalizer != NULL)
        r = choose_normalizer(analyze);
    else if ((custom = analyze->tokenizer != NULL || yyjson_arr_size(analyze->filter) > 0))
        r = choose_custom(analyze, chain, &count);
    else if (analyze->field != NULL)
        r = choose_field(analyze);
    else
        choose_default(analyze);
    return r != 0 ? r : reply_tokens(analyze, custom ? chain : NULL, count);
}
