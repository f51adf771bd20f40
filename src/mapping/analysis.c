/* SPDX-License-Identifier: Apache-2.0 */
/* Analyzers: the built-in ones, and those defined by index settings; see analysis.h. */
#include "mapping/analysis.h"

#include "base/map.h"
#include "json/each.h"
#include "mapping/analysis_internal.h"

#include <stdarg.h>

#define LIMITS .token_characters_max = ANALYSIS_TOKEN_CHARACTERS_MAX
#define LOWER .filters = {{.kind = FILTER_LOWERCASE}}, .filter_count = 1

static const struct analyzer built_in[] = {
    {.name = {"standard", 8}, .tokenizer = {TOKENIZER_STANDARD, LIMITS}, LOWER},
    {.name = {"default", 7}, .tokenizer = {TOKENIZER_STANDARD, LIMITS}, LOWER},
    {.name = {"simple", 6}, .tokenizer = {TOKENIZER_LETTER, LIMITS}, LOWER},
    {.name = {"whitespace", 10}, .tokenizer = {TOKENIZER_WHITESPACE, LIMITS}},
    {.name = {"keyword", 7}, .tokenizer = {TOKENIZER_KEYWORD, LIMITS}},
    {.name = {"stop", 4},
     .tokenizer = {TOKENIZER_LETTER, LIMITS},
     .filters = {{.kind = FILTER_LOWERCASE}, {.kind = FILTER_STOP, .stopwords = &analysis__english_stopwords}},
     .filter_count = 2},
};

static const struct analyzer lowercase_normalizer = {
    .name = {"lowercase", 9}, .tokenizer = {TOKENIZER_KEYWORD, LIMITS}, LOWER};

/* The analyzers and normalizers defined by the settings of an index, in their order. */
struct analyzer_list {
    struct analyzer *items;
    const struct analyzer **by_name; /* sorted: each of thousands of fields may name some */
    size_t count;
};

struct analysis {
    struct analyzer_list analyzers;
    struct analyzer_list normalizers;
};

/* The state of reading settings. */
struct reader {
    struct arena *arena;   /* for the analyzers */
    struct arena *scratch; /* for problems */
    yyjson_val *settings;
    struct problem *problem;
    struct map filters; /* those that were read, by name: a thousand analyzers may use one with thousands of words */
};

static int refuse_analysis(struct reader *reader, const char *format, ...) TL_PRINTF(2, 3);
static int refuse_analysis(struct reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(reader->scratch, format, arguments);
    va_end(arguments);
    problem_set(reader->problem, reader->scratch, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
    return ANALYSIS_REFUSED;
}

/* Reads a number, which settings may give as a string; `otherwise` if it is absent. */
static int take_number(struct reader *reader, yyjson_val *object, const char *key, size_t otherwise, size_t *ret_number)
{
    yyjson_val *value = json_get(object, slice_from(key));
    uint64_t number = otherwise;
    if (yyjson_is_uint(value))
        number = yyjson_get_uint(value);
    else if (value != NULL && !slice_to_u64(json_slice(value), &number))
        return refuse_analysis(reader, "Failed to parse value for setting [%s]", key);
    *ret_number = (size_t)number;
    return 0;
}

static bool is_true(yyjson_val *value)
{
    return yyjson_is_true(value) || slice_is(json_slice(value), "true");
}

static int take_character(struct reader *reader, yyjson_val *object, const char *key, char otherwise,
                          char *ret_character)
{
    yyjson_val *value = json_get(object, slice_from(key));
    *ret_character = otherwise;
    if (value == NULL)
        return 0;
    struct slice text = json_slice(value);
    if (text.len != 1)
        return refuse_analysis(reader, "%s must be a one char value", key);
    *ret_character = text.data[0];
    return 0;
}

/* Reads a tokenizer of a type, with the settings of its definition (NULL: defaults). */
static int read_tokenizer_type(struct reader *reader, struct slice type, struct slice name, yyjson_val *settings,
                               struct tokenizer *ret_tokenizer)
{
    static const struct {
        const char *type;
        enum tokenizer_kind kind;
    } kinds[] = {
        {"standard", TOKENIZER_STANDARD},   {"classic", TOKENIZER_STANDARD},   {"letter", TOKENIZER_LETTER},
        {"lowercase", TOKENIZER_LETTER},    {"keyword", TOKENIZER_KEYWORD},    {"whitespace", TOKENIZER_WHITESPACE},
        {"path_hierarchy", TOKENIZER_PATH}, {"PathHierarchy", TOKENIZER_PATH},
    };
    struct tokenizer tokenizer = {
        .token_characters_max = ANALYSIS_TOKEN_CHARACTERS_MAX, .delimiter = '/', .replacement = '/'};
    size_t i = 0;
    size_t count = sizeof kinds / sizeof *kinds;
    while (i < count && !slice_is(type, kinds[i].type))
        i++;
    if (i == count)
        return refuse_analysis(reader, "Unknown tokenizer type [%.*s] for [%.*s]", SLICE_ARG(type), SLICE_ARG(name));
    tokenizer.kind = kinds[i].kind;
    size_t longest;
    int r = take_number(reader, settings, "max_token_length", ANALYSIS_TOKEN_CHARACTERS_MAX, &longest);
    if (r == 0 && (longest == 0 || longest > 1 << 20))
        r = refuse_analysis(reader, "max_token_length must be greater than zero and at most 1048576");
    if (r == 0 && tokenizer.kind == TOKENIZER_PATH) {
        r = take_character(reader, settings, "delimiter", '/', &tokenizer.delimiter);
        r = r == 0 ? take_character(reader, settings, "replacement", tokenizer.delimiter, &tokenizer.replacement) : r;
        r = r == 0 ? take_number(reader, settings, "skip", 0, &tokenizer.skip) : r;
        tokenizer.reverse = is_true(json_get_lit(settings, "reverse"));
    }
    tokenizer.token_characters_max = (uint32_t)longest;
    *ret_tokenizer = tokenizer;
    return r;
}

/*
 * Reads the tokenizer that an analyzer names: one defined in the settings, or a built-in type.
 * *ret_lowercases: its type is `lowercase`, so the analyzer gets a lowercase filter.
 */
static int read_tokenizer(struct reader *reader, struct slice analyzer, yyjson_val *value,
                          struct tokenizer *ret_tokenizer, bool *ret_lowercases)
{
    struct slice name = json_slice(value);
    if (name.data == NULL)
        return refuse_analysis(reader, "analyzer [%.*s] must specify either an analyzer type, or a tokenizer",
                               SLICE_ARG(analyzer));
    yyjson_val *own = json_get(json_get_lit(reader->settings, "tokenizer"), name);
    struct slice type = own == NULL ? name : json_slice(json_get_lit(own, "type"));
    if (own != NULL && type.data == NULL)
        return refuse_analysis(reader, "tokenizer [%.*s] must specify either an analyzer type, or a tokenizer",
                               SLICE_ARG(name));
    *ret_lowercases = slice_is(type, "lowercase");
    struct problem ignored = {0};
    struct problem *outer = reader->problem;
    reader->problem = own == NULL ? &ignored : outer;
    int r = read_tokenizer_type(reader, type, name, own, ret_tokenizer);
    reader->problem = outer;
    if (r != 0 && own == NULL)
        return refuse_analysis(reader, "Custom Analyzer [%.*s] failed to find tokenizer under name [%.*s]",
                               SLICE_ARG(analyzer), SLICE_ARG(name));
    return r;
}

/* Reads stop words: a list, "_english_" (the default) or "_none_". */
static int read_stopwords(struct reader *reader, yyjson_val *settings, struct token_filter *filter)
{
    yyjson_val *list = json_get_lit(settings, "stopwords");
    filter->ignore_case = is_true(json_get_lit(settings, "ignore_case"));
    struct slice name = json_slice(list);
    if (list == NULL || slice_is(name, "_english_")) {
        filter->stopwords = &analysis__english_stopwords;
        return 0;
    }
    if (yyjson_is_arr(list) && yyjson_arr_size(list) > ANALYSIS_STOPWORDS_MAX)
        return refuse_analysis(reader, "stopwords may have at most %d entries", ANALYSIS_STOPWORDS_MAX);
    filter->stopwords = stopwords__new(reader->arena, slice_is(name, "_none_") ? NULL : list);
    return 0;
}

static int read_filter(struct reader *reader, struct slice analyzer, struct slice name, struct token_filter *ret_filter)
{
    struct token_filter *known = map_get(&reader->filters, name);
    if (known != NULL) {
        *ret_filter = *known;
        return 0;
    }
    static const struct {
        const char *type;
        enum token_filter_kind kind;
    } kinds[] = {
        {"lowercase", FILTER_LOWERCASE}, {"uppercase", FILTER_UPPERCASE}, {"asciifolding", FILTER_ASCIIFOLDING},
        {"trim", FILTER_TRIM},           {"stop", FILTER_STOP},           {"length", FILTER_LENGTH},
        {"reverse", FILTER_REVERSE},     {"truncate", FILTER_TRUNCATE},   {"standard", FILTER_NONE},
    };
    yyjson_val *own = json_get(json_get_lit(reader->settings, "filter"), name);
    struct slice type = own == NULL ? name : json_slice(json_get_lit(own, "type"));
    struct token_filter filter = {.kind = FILTER_NONE};
    size_t i = 0;
    size_t count = sizeof kinds / sizeof *kinds;
    while (i < count && !slice_is(type, kinds[i].type))
        i++;
    if (i == count && own != NULL)
        return refuse_analysis(reader, "Unknown filter type [%.*s] for [%.*s]", SLICE_ARG(type), SLICE_ARG(name));
    if (i == count)
        return refuse_analysis(reader, "Custom Analyzer [%.*s] failed to find filter under name [%.*s]",
                               SLICE_ARG(analyzer), SLICE_ARG(name));
    filter.kind = kinds[i].kind;
    int r = 0;
    if (filter.kind == FILTER_STOP)
        r = read_stopwords(reader, own, &filter);
    if (filter.kind == FILTER_LENGTH) {
        r = take_number(reader, own, "min", 0, &filter.min);
        r = r == 0 ? take_number(reader, own, "max", INT32_MAX, &filter.max) : r;
    }
    if (filter.kind == FILTER_TRUNCATE)
        r = take_number(reader, own, "length", 10, &filter.max);
    if (r != 0)
        return r;
    known = arena_alloc(reader->scratch, sizeof *known);
    *known = *ret_filter = filter;
    map_put(&reader->filters, name, known);
    return 0;
}

static int read_filters(struct reader *reader, yyjson_val *value, struct analyzer *analyzer)
{
    size_t count = yyjson_is_arr(value) ? yyjson_arr_size(value) : value != NULL;
    if (count + analyzer->filter_count > ANALYSIS_FILTERS_MAX)
        return refuse_analysis(reader, "analyzer [%.*s] may have at most %d filters", SLICE_ARG(analyzer->name),
                               ANALYSIS_FILTERS_MAX);
    yyjson_val *item = yyjson_is_arr(value) ? yyjson_arr_get_first(value) : value;
    for (size_t i = 0; i < count; i++) {
        int r = read_filter(reader, analyzer->name, json_slice(item), &analyzer->filters[analyzer->filter_count]);
        if (r != 0)
            return r;
        analyzer->filter_count++;
        item = unsafe_yyjson_get_next(item);
    }
    return 0;
}

static bool has_members(yyjson_val *value)
{
    return value != NULL && !(yyjson_is_arr(value) && yyjson_arr_size(value) == 0);
}

/* Reads an analyzer that names its tokenizer and filters. */
static int read_custom(struct reader *reader, yyjson_val *settings, struct analyzer *analyzer)
{
    bool lowercases = false;
    int r =
        read_tokenizer(reader, analyzer->name, json_get_lit(settings, "tokenizer"), &analyzer->tokenizer, &lowercases);
    if (r != 0)
        return r;
    if (lowercases)
        analyzer->filters[analyzer->filter_count++] = (struct token_filter){.kind = FILTER_LOWERCASE};
    if (has_members(json_get_lit(settings, "char_filter")))
        return refuse_analysis(reader, "analyzer [%.*s]: char_filter is not supported", SLICE_ARG(analyzer->name));
    return read_filters(reader, json_get_lit(settings, "filter"), analyzer);
}

/* Reads an analyzer of a built-in type, with the settings of that type. */
static int read_configured(struct reader *reader, struct slice type, yyjson_val *settings, struct analyzer *analyzer)
{
    const struct analyzer *base = analysis_find(NULL, type);
    if (base == NULL)
        return refuse_analysis(reader, "Unknown analyzer type [%.*s] for [%.*s]", SLICE_ARG(type),
                               SLICE_ARG(analyzer->name));
    struct slice name = analyzer->name;
    *analyzer = *base;
    analyzer->name = name;
    size_t longest;
    int r = take_number(reader, settings, "max_token_length", ANALYSIS_TOKEN_CHARACTERS_MAX, &longest);
    if (r != 0 || longest == 0 || longest > 1 << 20)
        return r != 0 ? r : refuse_analysis(reader, "max_token_length must be greater than zero and at most 1048576");
    analyzer->tokenizer.token_characters_max = (uint32_t)longest;
    if (json_get_lit(settings, "stopwords") == NULL)
        return 0;
    if (!slice_is(type, "stop"))
        analyzer->filter_count++;
    struct token_filter *stop = &analyzer->filters[analyzer->filter_count - 1];
    *stop = (struct token_filter){.kind = FILTER_STOP};
    return read_stopwords(reader, settings, stop);
}

static int read_analyzer(struct reader *reader, struct slice name, yyjson_val *settings, struct analyzer *ret_analyzer)
{
    *ret_analyzer = (struct analyzer){.name = arena_copy(reader->arena, name)};
    struct slice type = json_slice(json_get_lit(settings, "type"));
    if (type.data == NULL ? json_get_lit(settings, "tokenizer") != NULL : slice_is(type, "custom"))
        return read_custom(reader, settings, ret_analyzer);
    if (type.data == NULL)
        return refuse_analysis(reader, "analyzer [%.*s] must specify either an analyzer type, or a tokenizer",
                               SLICE_ARG(name));
    return read_configured(reader, type, settings, ret_analyzer);
}

static int read_normalizer(struct reader *reader, struct slice name, yyjson_val *settings,
                           struct analyzer *ret_normalizer)
{
    *ret_normalizer =
        (struct analyzer){.name = arena_copy(reader->arena, name), .tokenizer = {TOKENIZER_KEYWORD, LIMITS}};
    struct slice type = json_slice(json_get_lit(settings, "type"));
    if (type.data != NULL && !slice_is(type, "custom"))
        return refuse_analysis(reader, "Unknown normalizer type [%.*s] for [%.*s]", SLICE_ARG(type), SLICE_ARG(name));
    if (json_get_lit(settings, "tokenizer") != NULL)
        return refuse_analysis(reader, "Custom normalizer [%.*s] cannot configure a tokenizer", SLICE_ARG(name));
    if (has_members(json_get_lit(settings, "char_filter")))
        return refuse_analysis(reader, "normalizer [%.*s]: char_filter is not supported", SLICE_ARG(name));
    return read_filters(reader, json_get_lit(settings, "filter"), ret_normalizer);
}

typedef int read_function(struct reader *, struct slice, yyjson_val *, struct analyzer *);

/* Reads all members of an object into a list, each with `read`. */
static int compare_names(const void *one, const void *other)
{
    const struct analyzer *a = *(const struct analyzer *const *)one, *b = *(const struct analyzer *const *)other;
    int order = slice_compare(a->name, b->name);
    return order != 0 ? order : (a > b) - (a < b); /* of equal names the first is found */
}

static int read_all(struct reader *reader, yyjson_val *object, read_function *read, struct analyzer_list *ret_list)
{
    size_t i, max, most = yyjson_obj_size(object);
    yyjson_val *key, *value;
    *ret_list = (struct analyzer_list){
        .items = arena_zalloc(reader->arena, (most + 1) * sizeof *ret_list->items),
        .by_name = arena_alloc(reader->arena, (most + 1) * sizeof(const struct analyzer *)),
    };
    json_obj_foreach (object, i, max, key, value) {
        struct analyzer *item = &ret_list->items[ret_list->count];
        int r = read(reader, json_slice(key), value, item);
        if (r != 0)
            return r;
        ret_list->by_name[ret_list->count++] = item;
    }
    qsort(ret_list->by_name, ret_list->count, sizeof(const struct analyzer *), compare_names);
    return 0;
}

int analysis_new(struct arena *arena, yyjson_val *settings, struct arena *scratch, struct analysis **ret_analysis,
                 struct problem *ret_problem)
{
    struct analysis *analysis = arena_zalloc(arena, sizeof *analysis);
    struct reader reader = {arena, scratch, settings, ret_problem, MAP_INIT};
    int r = read_all(&reader, json_get_lit(settings, "analyzer"), read_analyzer, &analysis->analyzers);
    if (r == 0)
        r = read_all(&reader, json_get_lit(settings, "normalizer"), read_normalizer, &analysis->normalizers);
    map_deinit(&reader.filters);
    if (r == 0)
        *ret_analysis = analysis;
    return r;
}

/* Returns: the first analyzer of a list that has this name; NULL: none. */
static const struct analyzer *find_own(const struct analyzer_list *list, struct slice name)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(list->by_name[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->count && slice_equal(list->by_name[low]->name, name) ? list->by_name[low] : NULL;
}

static const struct analyzer *find_built_in(struct slice name)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (slice_equal(built_in[i].name, name))
            return &built_in[i];
    return NULL;
}

const struct analyzer *analysis_find(const struct analysis *analysis, struct slice name)
{
    const struct analyzer *own = analysis == NULL ? NULL : find_own(&analysis->analyzers, name);
    return own != NULL ? own : find_built_in(name);
}

const struct analyzer *analysis_find_normalizer(const struct analysis *analysis, struct slice name)
{
    const struct analyzer *own = analysis == NULL ? NULL : find_own(&analysis->normalizers, name);
    return own != NULL || !slice_is(name, "lowercase") ? own : &lowercase_normalizer;
}

struct slice analyzer_name(const struct analyzer *analyzer)
{
    return analyzer->name;
}

size_t analyzer_filter_count(const struct analyzer *analyzer)
{
    return analyzer->filter_count;
}

bool analyzer_is_path(const struct analyzer *analyzer, char *ret_delimiter)
{
    const struct tokenizer *tokenizer = &analyzer->tokenizer;
    if (tokenizer->kind != TOKENIZER_PATH || tokenizer->reverse || tokenizer->skip != 0 ||
        tokenizer->replacement != tokenizer->delimiter || analyzer->filter_count != 0)
        return false;
    *ret_delimiter = tokenizer->delimiter;
    return true;
}

bool analyzer_is_standard(const struct analyzer *analyzer)
{
    return analyzer->tokenizer.kind == TOKENIZER_STANDARD;
}

bool analyzer_is_single_token(const struct analyzer *analyzer)
{
    return analyzer->tokenizer.kind == TOKENIZER_KEYWORD;
}

/* Applies an analyzer's filters to the tokens of its tokenizer. */
struct filter_chain {
    const struct analyzer *analyzer;
    size_t applied; /* number of filters that the tokenizer has applied */
    bool quadratic; /* tokens are parts of one another: *left counts */
    size_t *left;
    bool exceeded;
    struct arena *arena;
    struct arena scratch[2]; /* of one token, in turn; the last text is copied */
    analysis_visit *visit;
    void *context;
};

/* Counts a filter of a token. Returns: false if the tokens are too long together. */
static bool count_filter(struct filter_chain *chain, struct slice token)
{
    if (!chain->quadratic)
        return true;
    chain->exceeded = token.len > *chain->left;
    *chain->left -= chain->exceeded ? 0 : token.len;
    return !chain->exceeded;
}

static bool filter_token(void *context, const struct analysis_token *token)
{
    struct filter_chain *chain = context;
    const struct analyzer *analyzer = chain->analyzer;
    struct analysis_token changed = *token;
    struct arena *used = &chain->scratch[0], *next = &chain->scratch[1];
    bool several = analyzer->filter_count - chain->applied > 1;
    arena_reset(used);
    arena_reset(next);
    for (size_t i = chain->applied; i < analyzer->filter_count; i++) {
        if (!count_filter(chain, changed.text))
            return false;
        if (!token_filter__run(&analyzer->filters[i], &changed.text, several ? next : chain->arena))
            return true;
        if (next->used > 0) { /* the token was copied */
            struct arena *free = used;
            used = next;
            next = free;
            arena_reset(next);
        }
    }
    if (used->used > 0)
        changed.text = arena_copy(chain->arena, changed.text);
    return chain->visit(chain->context, &changed);
}

bool analyzer_run_bounded(const struct analyzer *analyzer, struct slice text, struct arena *arena, size_t *left,
                          analysis_visit *visit, void *context)
{
    struct filter_chain chain = {.analyzer = analyzer,
                                 .applied = tokenizer__applied_filters(analyzer),
                                 .quadratic = analyzer->tokenizer.kind == TOKENIZER_PATH,
                                 .left = left,
                                 .arena = arena,
                                 .scratch = {ARENA_INIT, ARENA_INIT},
                                 .visit = visit,
                                 .context = context};
    tokenizer__run(analyzer, text, arena, filter_token, &chain);
    arena_deinit(&chain.scratch[0]);
    arena_deinit(&chain.scratch[1]);
    return !chain.exceeded;
}

void analyzer_run(const struct analyzer *analyzer, struct slice text, struct arena *arena, analysis_visit *visit,
                  void *context)
{
    size_t left = SIZE_MAX;
    (void)analyzer_run_bounded(analyzer, text, arena, &left, visit, context);
}

struct slice analyzer_normalize(const struct analyzer *normalizer, struct slice text, struct arena *arena)
{
    for (size_t i = 0; i < normalizer->filter_count; i++)
        token_filter__run(&normalizer->filters[i], &text, arena);
    return text;
}
