/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches against an in-memory store.
 *
 * - Examples: a body, and the ids of its hits or its refusal.
 * - Random tests: documents, queries and sorts from a seed. A planned search must return the same
 *   bytes as a full scan (src/query/README.md, invariant 2), and both must find the documents that
 *   a simple model of the query finds.
 * - Cursors: all pages together are the whole search.
 * - Complexity: account steps grow with the sum, not the product, of the sizes of query and text.
 */
#include "search_fixture.h"

#include "base/heap.h"
#include "base/rand.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const properties =
    "{\"properties\": {\"k\": {\"type\": \"keyword\", \"ignore_above\": 20}, \"n\": {\"type\": \"long\"}, "
    "\"f\": {\"type\": \"double\"},"
    " \"t\": {\"type\": \"text\", \"fields\": {\"raw\": {\"type\": \"keyword\"}}}, \"d\": {\"type\": "
    "\"date\"}, \"b\": {\"type\": \"boolean\"},"
    " \"x\": {\"type\": \"keyword\", \"index\": false}, \"o\": {\"properties\": {\"p\": {\"type\": "
    "\"integer\"}}}, \"p\": {\"type\": \"keyword\", \"fields\": {\"tree\": {\"type\": \"text\", "
    "\"analyzer\": \"paths\"}}}, \"q\": {\"type\": \"text\", \"analyzer\": \"paths\", \"fields\": {\"raw\": "
    "{\"type\": \"keyword\"}}}}}";

/* Returns: the ids of the hits in order, as "a b c". */
static struct slice ids_of(struct arena *arena, struct slice text)
{
    struct buf ids = BUF_INIT(1 << 20);
    static const char mark[] = "\"_id\":\"";
    for (size_t i = 0; i + sizeof mark < text.len; i++) {
        if (memcmp(text.data + i, mark, sizeof mark - 1) != 0)
            continue;
        size_t start = i + sizeof mark - 1, end = start;
        while (text.data[end] != '"')
            end++;
        buf_printf(&ids, "%s%.*s", ids.len > 0 ? " " : "", (int)(end - start), text.data + start);
    }
    struct slice copy = arena_copy(arena, buf_as_slice(&ids));
    buf_deinit(&ids);
    return copy;
}

struct example {
    const char *body;
    const char *ids; /* or the begin of a refusal */
};

static const char *const example_ids[] = {"a", "b", "c", "d", "e"};
static const char *const example_sources[] = {
    "{\"k\": \"red\", \"n\": 1, \"f\": 1.5, \"t\": \"the quick brown fox\", \"d\": \"2020-01-01\", \"b\": "
    "true, \"o\": {\"p\": 1}}",
    "{\"k\": [\"red\", \"green\"], \"n\": 2, \"f\": 2.5, \"t\": \"quick fox\", \"d\": "
    "\"2020-06-15T12:00:00Z\", \"b\": false}",
    "{\"k\": \"blue\", \"n\": [3, 30], \"t\": \"a lazy dog\", \"d\": \"2021-01-01\"}",
    "{\"n\": null, \"t\": [\"brown\", \"fox\"]}",
    "{\"k\": \"a value that is longer than its limit\", \"n\": -5}",
};

static const struct example examples[] = {
    {"{}", "a b c d e"},
    {"{\"size\": 2, \"from\": 1}", "b c"},
    {"{\"query\": {\"term\": {\"k\": \"red\"}}, \"sort\": \"_doc\"}", "a b"},
    {"{\"query\": {\"terms\": {\"k\": [\"green\", \"blue\"]}}}", "b c"},
    {"{\"query\": {\"term\": {\"n\": 30}}}", "c"},
    {"{\"query\": {\"term\": {\"n\": \"2\"}}}", "b"},
    {"{\"query\": {\"term\": {\"n\": 1.5}}}", ""},
    {"{\"query\": {\"term\": {\"n\": \"x\"}}}", "refused: failed to create query: For input string: \"x\""},
    {"{\"query\": {\"term\": {\"b\": true}}}", "a"},
    {"{\"query\": {\"term\": {\"zz\": 1}}}", ""},
    {"{\"query\": {\"term\": {\"x\": 1}}}",
     "refused: failed to create query: Cannot search on field [x] since it is not indexed."},
    {"{\"query\": {\"term\": {\"_id\": \"c\"}}}", "c"},
    {"{\"query\": {\"ids\": {\"values\": [\"e\", \"a\", \"q\"]}}}", "a e"},
    {"{\"query\": {\"term\": {\"d\": \"2020\"}}}", "a"},
    {"{\"query\": {\"range\": {\"n\": {\"gte\": 1, \"lt\": 3}}}}", "a b"},
    {"{\"query\": {\"range\": {\"n\": {\"gt\": 1.5}}}}", "b c"},
    {"{\"query\": {\"range\": {\"f\": {\"lte\": 1.5}}}}", "a"},
    {"{\"query\": {\"range\": {\"d\": {\"gt\": \"2020\"}}}}", "b c"},
    {"{\"query\": {\"range\": {\"d\": {\"gte\": \"2020-06-15||/d\", \"lte\": \"2020-06-15\"}}}}", "b"},
    {"{\"query\": {\"range\": {\"k\": {\"from\": \"blue\", \"to\": \"green\", \"include_lower\": false}}}}", "b"},
    {"{\"query\": {\"exists\": {\"field\": \"n\"}}}", "a b c e"},
    {"{\"query\": {\"exists\": {\"field\": \"o\"}}}", "a"},
    {"{\"query\": {\"missing\": {\"field\": \"k\"}}}", "d e"},
    {"{\"query\": {\"prefix\": {\"k\": \"gr\"}}}", "b"},
    {"{\"query\": {\"wildcard\": {\"k\": \"*e*\"}}}", "a b c"},
    {"{\"query\": {\"regexp\": {\"k\": \"(re|blu).\"}}}", "a b c"},
    {"{\"query\": {\"fuzzy\": {\"k\": {\"value\": \"rad\"}}}}", "a b"},
    {"{\"query\": {\"wildcard\": {\"n\": \"1*\"}}}",
     "refused: Can only use wildcard queries on keyword, text and wildcard fields - not on [n]"},
    {"{\"query\": {\"match\": {\"t\": \"brown DOG\"}}, \"sort\": \"_doc\"}", "a c d"},
    {"{\"query\": {\"match\": {\"t\": {\"query\": \"quick fox\", \"operator\": \"and\"}}}, \"sort\": "
     "\"_doc\"}",
     "a b"},
    {"{\"query\": {\"match_phrase\": {\"t\": \"quick fox\"}}}", "b"},
    {"{\"query\": {\"match_phrase\": {\"t\": {\"query\": \"quick fox\", \"slop\": 1}}}, \"sort\": \"_doc\"}", "a b"},
    {"{\"query\": {\"match_phrase\": {\"t\": \"brown fox\"}}}", "a"},
    {"{\"query\": {\"match_phrase_prefix\": {\"t\": \"quick br\"}}}", "a"},
    {"{\"query\": {\"match_bool_prefix\": {\"t\": \"lazy qu\"}}, \"sort\": \"_doc\"}", "a b c"},
    {"{\"query\": {\"multi_match\": {\"query\": \"red\", \"fields\": [\"k\", \"t\"]}}, \"sort\": \"_doc\"}", "a b"},
    {"{\"query\": {\"query_string\": {\"query\": \"k:red AND NOT n:2\"}}}", "a"},
    {"{\"query\": {\"query_string\": {\"query\": \"n:[2 TO 5]\"}}}", "b c"},
    {"{\"query\": {\"query_string\": {\"query\": \"dog\"}}}", "c"},
    {"{\"query\": {\"simple_query_string\": {\"query\": \"quick +brown -lazy\", \"fields\": [\"t\"], "
     "\"default_operator\": \"and\"}}}",
     "a"},
    {"{\"query\": {\"simple_query_string\": {\"query\": \"quick +brown -lazy\", \"fields\": [\"t\"]}}}", "a b d e"},
    /* The byte 0 is a character of a word. */
    {"{\"query\": {\"simple_query_string\": {\"query\": \"\\u0000\", \"fields\": [\"t\"]}}}", ""},
    {"{\"query\": {\"simple_query_string\": {\"query\": \"lazy\\u0000\", \"fields\": [\"t\"]}}}", "c"},
    {"{\"query\": {\"query_string\": {\"query\": \"\\u0000\"}}}", ""},
    {"{\"query\": {\"query_string\": {\"query\": \"t:lazy\\u0000\"}}}", "c"},
    {"{\"query\": {\"regexp\": {\"k\": \"re\\u0000d\"}}}", ""},
    {"{\"query\": {\"bool\": {\"must\": {\"term\": {\"k\": \"red\"}}, \"must_not\": {\"term\": {\"n\": "
     "1}}}}}",
     "b"},
    {"{\"query\": {\"bool\": {\"filter\": [{\"exists\": {\"field\": \"f\"}}, {\"range\": {\"n\": {\"gte\": "
     "2}}}]}}}",
     "b"},
    {"{\"query\": {\"bool\": {\"should\": [{\"term\": {\"n\": 1}}, {\"term\": {\"n\": 3}}]}}}", "a c"},
    {"{\"query\": {\"bool\": {\"should\": [{\"term\": {\"n\": 1}}, {\"term\": {\"k\": \"red\"}}], "
     "\"minimum_should_match\": 2}}}",
     "a"},
    {"{\"query\": {\"bool\": {\"must_not\": {\"exists\": {\"field\": \"k\"}}}}}", "d e"},
    {"{\"query\": {\"filtered\": {\"filter\": {\"and\": [{\"term\": {\"k\": \"red\"}}, {\"not\": {\"term\": "
     "{\"n\": 2}}}]}}}}",
     "a"},
    {"{\"query\": {\"constant_score\": {\"filter\": {\"term\": {\"k\": \"blue\"}}}}}", "c"},
    {"{\"query\": {\"dis_max\": {\"queries\": [{\"term\": {\"n\": 1}}, {\"term\": {\"n\": 2}}]}}}", "a b"},
    {"{\"query\": {\"function_score\": {\"query\": {\"exists\": {\"field\": \"f\"}}, \"field_value_factor\": "
     "{\"field\": \"f\"}}}}",
     "b a"},
    {"{\"sort\": {\"n\": \"desc\"}}", "c b a e d"},
    {"{\"sort\": [{\"n\": {\"order\": \"asc\", \"missing\": \"_first\"}}]}", "d e a b c"},
    {"{\"sort\": [{\"k\": \"asc\"}, {\"n\": \"desc\"}]}", "c b a e d"},
    {"{\"sort\": [{\"n\": {\"order\": \"asc\", \"mode\": \"max\"}}]}", "e a b c d"},
    {"{\"sort\": \"n\", \"search_after\": [1]}", "b c d"},
    {"{\"sort\": \"zz\"}", "refused: No mapping found for [zz] in order to sort on"},
    {"{\"sort\": [{\"zz\": {\"unmapped_type\": \"long\"}}]}", "a b c d e"},
    {"{\"sort\": \"t\"}", "refused: Text fields are not optimised for operations"},
    {"{\"post_filter\": {\"term\": {\"k\": \"red\"}}}", "a b"},
    {"{\"query\": {\"match_none\": {}}}", ""},
};

static void check_example(struct fixture *f, const struct example *example, bool full_scan)
{
    struct arena arena = ARENA_INIT;
    struct slice text = fixture_search(f, &arena, example->body, full_scan);
    struct slice shown = slice_starts_with(text, SLICE_LIT("refused")) ? text : ids_of(&arena, text);
    struct slice expected = slice_from(example->ids);
    bool refusal = slice_starts_with(expected, SLICE_LIT("refused"));
    if (refusal ? !slice_starts_with(shown, expected) : !slice_equal(shown, expected))
        fail_msg("%s %s\n  found '%.*s'\n  expected '%s'", example->body, full_scan ? "(scan)" : "", SLICE_ARG(shown),
                 example->ids);
    arena_deinit(&arena);
}

static void test_search_finds_expected_ids(void **state)
{
    (void)state;
    for (int bulk = 0; bulk < 2; bulk++) {
        struct fixture f;
        fixture_init(&f, properties);
        fixture_write(&f, example_ids, example_sources, 5, bulk == 1);
        for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
            check_example(&f, &examples[i], false);
            check_example(&f, &examples[i], true);
        }
        fixture_deinit(&f);
    }
}

static void assert_search(struct fixture *f, const char *body, const char *expected)
{
    struct arena arena = ARENA_INIT;
    assert_slice_equal(fixture_search(f, &arena, body, false), expected);
    arena_deinit(&arena);
}

static void test_fetch_writes_hits_as_elasticsearch(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, properties);
    fixture_write(&f, example_ids, example_sources, 5, false);
    assert_search(&f, "{\"query\": {\"term\": {\"n\": 2}}, \"_source\": [\"k\", \"n\"]}",
                  "1 "
                  "[{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"b\",\"_score\":1.0,\"_source\":{\"k\":["
                  "\"red\",\"green\"],\"n\":2}}]");
    assert_search(&f,
                  "{\"query\": {\"term\": {\"n\": 2}}, \"_source\": false, \"version\": true, "
                  "\"seq_no_primary_term\": true}",
                  "1 "
                  "[{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"b\",\"_version\":1,\"_seq_no\":1,\"_"
                  "primary_term\":1,\"_score\":1.0}]");
    assert_search(&f,
                  "{\"query\": {\"term\": {\"n\": 1}}, \"_source\": false, \"docvalue_fields\": [\"n\", \"d\", \"b\"]}",
                  "1 [{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"a\",\"_score\":1.0,\"fields\":{\"n\":[1],"
                  "\"d\":[\"2020-01-01T00:00:00.000Z\"],\"b\":[true]}}]");
    assert_search(&f, "{\"query\": {\"term\": {\"n\": 1}}, \"_source\": false, \"fields\": [\"t*\"]}",
                  "1 [{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"a\",\"_score\":1.0,\"fields\":{\"t\":[\"the quick "
                  "brown fox\"],"
                  "\"t.raw\":[\"the quick brown fox\"]}}]");
    assert_search(&f, "{\"size\": 1, \"sort\": [{\"n\": \"desc\"}], \"_source\": false}",
                  "5 [{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"c\",\"_score\":null,\"sort\":[30]}]");
    assert_search(&f, "{\"size\": 0, \"track_total_hits\": 3}", "3+ []");
    assert_search(&f,
                  "{\"size\": 0, \"aggs\": {\"m\": {\"max\": {\"field\": \"n\"}}, \"k\": {\"terms\": {\"field\": "
                  "\"k\", \"size\": 1}}}}",
                  "5 []{\"m\":{\"value\":30.0},\"k\":{\"doc_count_error_upper_bound\":0,\"sum_other_doc_count\":2,"
                  "\"buckets\":[{\"key\":\"red\",\"doc_count\":2}]}}");
    fixture_deinit(&f);
}

/* Returns: whether a search reports that no document matches. */
static bool is_empty(struct fixture *f, const char *body)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct search_request request;
    struct problem problem = {.type = PROBLEM_NONE};
    struct search_result result;
    struct query_parser parser = {.arena = &arena, .dialect = DIALECT_7, .doc = &doc, .problem = &problem};
    fixture_context(f, &arena, false);
    search_request_init(&request);
    assert_int_equal(json_parse(&arena, slice_from(body), DIALECT_7, 0, &doc, &problem), 0);
    assert_int_equal(search_request_parse(&parser, doc.root, &request), 0);
    assert_int_equal(search_run(&f->context, &request, &result, &problem), 0);
    assert_int_equal(result.total, 0);
    bool empty = search_result_is_empty(&result);
    search_result_deinit(&result);
    arena_deinit(&arena);
    return empty;
}

/* Without a total a search with matches is not one without. */
static void test_empty_result_differs_from_uncounted(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, properties);
    fixture_write(&f, example_ids, example_sources, 5, false);
    assert_false(is_empty(&f, "{\"track_total_hits\": false, \"query\": {\"term\": {\"n\": 2}}}"));
    assert_false(is_empty(&f, "{\"track_total_hits\": false}"));
    assert_false(is_empty(&f, "{\"track_total_hits\": false, \"sort\": \"n\"}"));
    assert_true(is_empty(&f, "{\"track_total_hits\": false, \"query\": {\"term\": {\"n\": 4711}}}"));
    assert_true(is_empty(&f, "{\"query\": {\"term\": {\"n\": 4711}}}"));
    fixture_deinit(&f);
}

/*
 * Expected scores are those of Elasticsearch 7.10, such as 0.2876821 for the only document, with
 * the only word.
 */
static void test_scores_equal_elasticsearch(void **state)
{
    (void)state;
    struct fixture f;
    static const char *const ids[] = {"1"}, *const sources[] = {"{\"t\": \"word\", \"k\": \"word\"}"};
    fixture_init(&f, properties);
    fixture_write(&f, ids, sources, 1, false);
    for (int i = 0; i < 2; i++)
        assert_search(&f,
                      i == 0 ? "{\"query\": {\"match\": {\"t\": \"word\"}}, \"_source\": false}"
                             : "{\"query\": {\"term\": {\"k\": \"word\"}}, \"_source\": false}",
                      "1 [{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"1\",\"_score\":0.2876821}]");
    assert_search(&f, "{\"query\": {\"bool\": {\"filter\": {\"term\": {\"k\": \"word\"}}}}, \"_source\": false}",
                  "1 [{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"1\",\"_score\":0.0}]");
    assert_search(&f,
                  "{\"query\": {\"constant_score\": {\"filter\": {\"term\": {\"k\": \"word\"}}, \"boost\": "
                  "2}}, \"_source\": false}",
                  "1 [{\"_index\":\"i\",\"_type\":\"_doc\",\"_id\":\"1\",\"_score\":2.0}]");
    fixture_deinit(&f);
}

/* --- Random tests ------------------------------------------------------------------------------------------------- */

/* A document and the values of its fields. */
struct model_doc {
    char id[16];
    char source[640];
    bool live;
    int k[3]; /* indices into `words` */
    int k_count;
    int n[2];
    int n_count;
    int t[6]; /* indices into `words` */
    int t_count;
    char p[3][16]; /* paths, of both p and q */
    int p_count;
};

static const char *const words[] = {"ant", "antelope", "bee", "cat", "catfish", "dog", "eel", "emu"};
enum { WORDS = 8, DOCUMENTS = 60, ROUNDS = 40, QUERIES = 60 };

/*
 * Makes a random path, often an unusual one: empty, relative, with a double or trailing delimiter.
 */
static void make_path(struct rng *rng, char path[16])
{
    static const char *const parts[] = {"/", "/", "a", "b", ".", "0"};
    size_t count = rng_below(rng, 8);
    path[0] = '\0';
    for (size_t i = 0; i < count; i++)
        strcat(path, parts[rng_below(rng, sizeof parts / sizeof *parts)]);
}

enum directory_query { DIRECTORY_IS, DIRECTORY_BEGINS, DIRECTORY_BETWEEN };

/*
 * Returns: whether one of a path's directories matches. They are its prefixes that end before a
 * delimiter, and itself.
 */
static bool path_has(const char *path, enum directory_query query, const char *text, const char *high)
{
    size_t len = strlen(path);
    for (size_t end = 1; end <= len; end++) {
        char directory[16];
        if (end < len && path[end] != '/')
            continue;
        memcpy(directory, path, end);
        directory[end] = '\0';
        bool fits = query == DIRECTORY_IS       ? strcmp(directory, text) == 0
                    : query == DIRECTORY_BEGINS ? strncmp(directory, text, strlen(text)) == 0
                                                : strcmp(directory, text) >= 0 && strcmp(directory, high) < 0;
        if (fits)
            return true;
    }
    return false;
}

static bool doc_has(const struct model_doc *doc, enum directory_query query, const char *text, const char *high)
{
    for (int i = 0; i < doc->p_count; i++) {
        if (path_has(doc->p[i], query, text, high))
            return true;
    }
    return false;
}

static void make_document(struct rng *rng, struct model_doc *doc)
{
    struct buf text = BUF_INIT(sizeof doc->source);
    doc->k_count = (int)rng_below(rng, 4);
    doc->n_count = (int)rng_below(rng, 3);
    doc->t_count = (int)rng_below(rng, 7);
    buf_lit(&text, "{\"k\":[");
    for (int i = 0; i < doc->k_count; i++) {
        doc->k[i] = (int)rng_below(rng, WORDS);
        buf_printf(&text, "%s\"%s\"", i > 0 ? "," : "", words[doc->k[i]]);
    }
    buf_lit(&text, "],\"n\":[");
    for (int i = 0; i < doc->n_count; i++) {
        doc->n[i] = (int)rng_below(rng, 20) - 10;
        buf_printf(&text, "%s%d", i > 0 ? "," : "", doc->n[i]);
    }
    buf_lit(&text, "],\"t\":\"");
    for (int i = 0; i < doc->t_count; i++) {
        doc->t[i] = (int)rng_below(rng, WORDS);
        buf_printf(&text, "%s%s", i > 0 ? " " : "", words[doc->t[i]]);
    }
    buf_lit(&text, "\"");
    doc->p_count = (int)rng_below(rng, 4);
    for (int i = 0; i < doc->p_count; i++)
        make_path(rng, doc->p[i]);
    for (int field = 0; field < 2; field++) {
        buf_printf(&text, ",\"%c\":[", 'p' + field);
        for (int i = 0; i < doc->p_count; i++)
            buf_printf(&text, "%s\"%s\"", i > 0 ? "," : "", doc->p[i]);
        buf_byte(&text, ']');
    }
    buf_byte(&text, '}');
    memcpy(doc->source, text.data, text.len);
    doc->source[text.len] = '\0';
    doc->live = true;
    buf_deinit(&text);
}

static bool has(const int *items, int count, int item)
{
    for (int i = 0; i < count; i++) {
        if (items[i] == item)
            return true;
    }
    return false;
}

/* As make_query(), for a query on the directories of p or q. */
static void make_directory_query(struct rng *rng, const struct model_doc *docs, struct buf *text, bool found[DOCUMENTS])
{
    const char *field = rng_below(rng, 2) ? "p.tree" : "q";
    char one[16], other[16];
    enum directory_query query = DIRECTORY_IS;
    make_path(rng, one);
    make_path(rng, other);
    uint64_t kind = rng_below(rng, 6);
    if (kind == 0)
        buf_printf(text, "{\"term\":{\"%s\":\"%s\"}}", field, one);
    else if (kind == 1)
        buf_printf(text, "{\"terms\":{\"%s\":[\"%s\",\"%s\"]}}", field, one, other);
    else if (kind == 2)
        buf_printf(text, "{\"prefix\":{\"%s\":\"%s\"}}", field, one);
    else if (kind == 3)
        buf_printf(text, "{\"range\":{\"%s\":{\"gte\":\"%s\",\"lt\":\"%s\"}}}", field, one, other);
    else if (kind == 4)
        buf_printf(text, "{\"exists\":{\"field\":\"p.tree\"}}");
    else
        buf_printf(text, "{\"wildcard\":{\"%s\":\"%s*\"}}", field, one);
    if (kind == 3)
        query = DIRECTORY_BETWEEN;
    else if (kind == 2 || kind > 3)
        query = DIRECTORY_BEGINS;
    if (kind == 4)
        one[0] = '\0';
    for (int i = 0; i < DOCUMENTS; i++)
        found[i] = doc_has(&docs[i], query, one, other) || (kind == 1 && doc_has(&docs[i], query, other, other));
}

/* Writes a random query to `text`, and sets `found` for the documents that the model matches. */
static void make_query(struct rng *rng, const struct model_doc *docs, unsigned depth, struct buf *text,
                       bool found[DOCUMENTS])
{
    int word = (int)rng_below(rng, WORDS), low = (int)rng_below(rng, 20) - 10, high = low + (int)rng_below(rng, 8);
    bool other[DOCUMENTS];
    switch (rng_below(rng, depth < 3 ? 13 : 9)) {
    case 0:
        buf_printf(text, "{\"term\":{\"k\":\"%s\"}}", words[word]);
        for (int i = 0; i < DOCUMENTS; i++)
            found[i] = has(docs[i].k, docs[i].k_count, word);
        break;
    case 1:
        buf_printf(text, "{\"term\":{\"n\":%d}}", low);
        for (int i = 0; i < DOCUMENTS; i++)
            found[i] = has(docs[i].n, docs[i].n_count, low);
        break;
    case 2:
        buf_printf(text, "{\"range\":{\"n\":{\"gte\":%d,\"lt\":%d}}}", low, high);
        for (int i = 0; i < DOCUMENTS; i++) {
            found[i] = false;
            for (int v = 0; v < docs[i].n_count; v++)
                found[i] = found[i] || (docs[i].n[v] >= low && docs[i].n[v] < high);
        }
        break;
    case 3: {
        size_t len = 1 + rng_below(rng, 3);
        buf_printf(text, "{\"prefix\":{\"k\":\"%.*s\"}}", (int)len, words[word]);
        for (int i = 0; i < DOCUMENTS; i++) {
            found[i] = false;
            for (int v = 0; v < docs[i].k_count; v++)
                found[i] = found[i] || strncmp(words[docs[i].k[v]], words[word], len) == 0;
        }
        break;
    }
    case 4:
        buf_printf(text, "{\"match\":{\"t\":\"%s\"}}", words[word]);
        for (int i = 0; i < DOCUMENTS; i++)
            found[i] = has(docs[i].t, docs[i].t_count, word);
        break;
    case 5:
        buf_lit(text, "{\"exists\":{\"field\":\"n\"}}");
        for (int i = 0; i < DOCUMENTS; i++)
            found[i] = docs[i].n_count > 0;
        break;
    case 6: {
        int second = (int)rng_below(rng, WORDS);
        buf_printf(text, "{\"match_phrase\":{\"t\":\"%s %s\"}}", words[word], words[second]);
        for (int i = 0; i < DOCUMENTS; i++) {
            found[i] = false;
            for (int v = 0; v + 1 < docs[i].t_count; v++)
                found[i] = found[i] || (docs[i].t[v] == word && docs[i].t[v + 1] == second);
        }
        break;
    }
    case 7:
        buf_printf(text, "{\"wildcard\":{\"k\":\"%c*%c\"}}", words[word][0], words[word][strlen(words[word]) - 1]);
        for (int i = 0; i < DOCUMENTS; i++) {
            found[i] = false;
            for (int v = 0; v < docs[i].k_count; v++) {
                const char *value = words[docs[i].k[v]];
                found[i] = found[i] || (value[0] == words[word][0] &&
                                        value[strlen(value) - 1] == words[word][strlen(words[word]) - 1]);
            }
        }
        break;
    case 8: make_directory_query(rng, docs, text, found); break;
    default: {
        static const char *const kinds[] = {"must", "should", "filter", "must_not"};
        uint64_t kind = rng_below(rng, 4);
        buf_printf(text, "{\"bool\":{\"must\":[{\"match_all\":{}}],\"%s\":[", kind == 0 ? "filter" : kinds[kind]);
        make_query(rng, docs, depth + 1, text, found);
        buf_lit(text, ",");
        make_query(rng, docs, depth + 1, text, other);
        buf_printf(text, "]%s}}", kind == 1 ? ",\"minimum_should_match\":1" : "");
        for (int i = 0; i < DOCUMENTS; i++)
            found[i] = kind == 1 ? found[i] || other[i] : kind == 3 ? !found[i] && !other[i] : found[i] && other[i];
        break;
    }
    }
}

static void check_random(struct rng *rng, struct fixture *f, const struct model_doc *docs)
{
    static const char *const sorts[] = {"",
                                        ",\"sort\":\"_doc\"",
                                        ",\"sort\":[{\"n\":\"desc\"}]",
                                        ",\"sort\":[{\"k\":\"asc\"},\"_score\"]",
                                        ",\"sort\":\"_id\"",
                                        ",\"size\":5,\"from\":3"};
    struct arena arena = ARENA_INIT;
    struct buf body = BUF_INIT(1 << 16);
    bool found[DOCUMENTS];
    uint64_t sort = rng_below(rng, sizeof sorts / sizeof *sorts), expected = 0;
    buf_lit(&body, "{\"query\":");
    make_query(rng, docs, 0, &body, found);
    buf_printf(&body, "%s%s}", sort == 5 ? "" : ",\"size\":100", sorts[sort]);
    buf_byte(&body, '\0');
    struct slice planned = fixture_search(f, &arena, body.data, false),
                 scanned = fixture_search(f, &arena, body.data, true);
    if (!slice_equal(planned, scanned))
        fail_msg("%s\n planned %.*s\n scanned %.*s", body.data, SLICE_ARG(planned), SLICE_ARG(scanned));
    struct buf ids = BUF_INIT(1 << 16);
    for (int i = 0; i < DOCUMENTS; i++) {
        if (!found[i] || !docs[i].live)
            continue;
        expected++;
        buf_printf(&ids, "%s%s", ids.len > 0 ? " " : "", docs[i].id);
    }
    if (strtoull(planned.data, NULL, 10) != expected)
        fail_msg("%s\n found %.*s\n expected %s", body.data, SLICE_ARG(planned), ids.len > 0 ? ids.data : "nothing");
    if (sort == 1 && !slice_equal(ids_of(&arena, planned), buf_as_slice(&ids)))
        fail_msg("%s\n found %.*s", body.data, SLICE_ARG(planned));
    buf_deinit(&ids);
    buf_deinit(&body);
    arena_deinit(&arena);
}

static void test_planned_search_equals_full_scan_and_model(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct rng rng;
        struct fixture f;
        struct model_doc docs[DOCUMENTS] = {{.live = false}};
        rng_init(&rng, seed);
        fixture_init(&f, properties);
        for (int i = 0; i < DOCUMENTS; i++)
            snprintf(docs[i].id, sizeof docs[i].id, "%03d", i);
        for (int batch = 0; batch < 20; batch++) { /* single or bulk; may write a document again */
            const char *ids[8], *sources[8];
            size_t count = 0, first = rng_below(&rng, DOCUMENTS);
            for (size_t i = first; i < DOCUMENTS && count < 1 + rng_below(&rng, 8); i++, count++) {
                make_document(&rng, &docs[i]);
                ids[count] = docs[i].id;
                sources[count] = docs[i].source;
            }
            fixture_write(&f, ids, sources, count, rng_below(&rng, 2) == 1);
        }
        for (int i = 0; i < QUERIES; i++)
            check_random(&rng, &f, docs);
        fixture_deinit(&f);
    }
}

/* Returns: the value of the first "_score"; -1 without one. */
static double first_score(struct slice text)
{
    static const char mark[] = "\"_score\":";
    for (size_t i = 0; i + sizeof mark < text.len; i++) {
        if (memcmp(text.data + i, mark, sizeof mark - 1) == 0)
            return strtod(text.data + i + sizeof mark - 1, NULL);
    }
    return -1;
}

/*
 * In an index larger than a sample, entries count the documents of a term for its score, and list
 * them for the plan. A document counts once, even if several of its paths are in the directory. The
 * words of t have the same frequencies as the directories of p, so both must have the same score.
 */
static void test_directories_score_as_words_in_large_index(void **state)
{
    (void)state;
    enum { INDEX_DOCUMENTS = 1200, WITH_TWO_PATHS = 40 };
    static const char *const bodies[] = {
        "{\"query\": {\"term\": {\"p.tree\": \"/b\"}}, \"track_total_hits\": true}",
        "{\"query\": {\"term\": {\"p.tree\": \"/a\"}}, \"track_total_hits\": true}",
        "{\"query\": {\"match\": {\"q\": \"/b/1\"}}, \"track_total_hits\": true}",
    };
    static const char *const totals[] = {"40 ", "1160 ", "40 "};
    struct fixture f;
    struct arena arena = ARENA_INIT;
    fixture_init(&f, properties);
    const char **ids = arena_alloc(&arena, INDEX_DOCUMENTS * sizeof *ids),
               **sources = arena_alloc(&arena, INDEX_DOCUMENTS * sizeof *sources);
    for (int i = 0; i < INDEX_DOCUMENTS; i++) {
        ids[i] = arena_printf(&arena, "%04d%c", i, '\0').data;
        sources[i] =
            arena_printf(&arena,
                         i < WITH_TWO_PATHS ? "{\"p\": [\"/b/%d\", \"/b/1/%d\"], \"q\": [\"/b/1\", \"/b/1/2\"], "
                                              "\"t\": \"b c b d e\"}%c"
                                            : "{\"p\": [\"/a/%d\", \"/a\"], \"n\": %d, \"t\": \"a f a\"}%c",
                         i, i, '\0')
                .data;
    }
    fixture_write(&f, ids, sources, INDEX_DOCUMENTS / 2, false);
    fixture_write(&f, ids + INDEX_DOCUMENTS / 2, sources + INDEX_DOCUMENTS / 2, INDEX_DOCUMENTS / 2, true);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct slice planned = fixture_search(&f, &arena, bodies[i], false);
        struct slice scanned = fixture_search(&f, &arena, bodies[i], true);
        if (!slice_equal(planned, scanned) || !slice_starts_with(planned, slice_from(totals[i])))
            fail_msg("%s\n planned %.*s\n scanned %.*s", bodies[i], SLICE_ARG(planned), SLICE_ARG(scanned));
    }
    struct slice by_word = fixture_search(&f, &arena, "{\"query\": {\"term\": {\"t\": \"b\"}}}", false);
    struct slice by_directory = fixture_search(&f, &arena, bodies[0], false);
    assert_true(first_score(by_word) > 0 && first_score(by_word) == first_score(by_directory));
    arena_deinit(&arena);
    fixture_deinit(&f);
}

/*
 * In a large index the mean length is that of a sample. Scores must be within 5% of BM25 over all
 * documents, even if few of them have the field.
 */
static void test_sampled_scores_approximate_exact_scores(void **state)
{
    (void)state;
    enum { INDEX_DOCUMENTS = 4000, LONGEST = 9, EACH_RARE = 400 };
    struct fixture f;
    struct arena arena = ARENA_INIT;
    const char **ids = arena_alloc(&arena, INDEX_DOCUMENTS * sizeof *ids),
               **sources = arena_alloc(&arena, INDEX_DOCUMENTS * sizeof *sources);
    double length = 0, shortest = LONGEST + 2;
    size_t texts = 0, rare = 0;
    fixture_init(&f, properties);
    for (int i = 0; i < INDEX_DOCUMENTS; i++) {
        int count = 1 + (i * 7919) % LONGEST;
        bool has_text = i % 4 == 0, is_rare = i % EACH_RARE == 0;
        ids[i] = arena_printf(&arena, "%04d%c", i, '\0').data;
        sources[i] = has_text ? arena_printf(&arena, "{\"t\": \"%.*s%s\"}%c", 2 * count, "w w w w w w w w w ",
                                             is_rare ? "rare" : "", '\0')
                                    .data
                              : "{}";
        texts += has_text;
        rare += is_rare;
        length += has_text ? count + is_rare : 0;
        if (is_rare && count + 1 < shortest)
            shortest = count + 1;
    }
    fixture_write(&f, ids, sources, INDEX_DOCUMENTS, true);
    double idf = log(1 + ((double)(texts - rare) + 0.5) / ((double)rare + 0.5)), mean = length / (double)texts;
    double expected = 2.2 * idf / (1 + 1.2 * (0.25 + 0.75 * shortest / mean));
    double score = first_score(fixture_search(&f, &arena, "{\"query\": {\"match\": {\"t\": \"rare\"}}}", false));
    if (fabs(score - expected) > expected / 20)
        fail_msg("%f, by definition %f", score, expected);
    arena_deinit(&arena);
    fixture_deinit(&f);
}

/* --- Cursors ------------------------------------------------------------------------------------------------------ */

/* Checks that the pages of a cursor together have the ids of the whole search. */
static void check_cursor(struct fixture *f, const char *body, int32_t size)
{
    struct arena arena = ARENA_INIT;
    struct buf all = BUF_INIT(1 << 20);
    struct search_cursor *cursor = search_cursor_new();
    bool more = true;
    for (int page = 0; more; page++) {
        struct arena page_arena = ARENA_INIT;
        struct json_doc doc;
        struct problem problem = {0};
        struct search_request request;
        struct search_result result;
        struct query_parser parser = {.arena = &page_arena, .dialect = DIALECT_7, .doc = &doc, .problem = &problem};
        fixture_context(f, &page_arena, false);
        search_request_init(&request);
        assert_int_equal(json_parse(&page_arena, slice_from(body), DIALECT_7, 0, &doc, &problem), 0);
        assert_int_equal(search_request_parse(&parser, doc.root, &request), 0);
        request.size = size;
        assert_int_equal(search_next(&f->context, &request, cursor, &result, &problem), 0);
        more = result.hit_count > 0;
        if (all.len > 0 && more)
            buf_lit(&all, ",");
        buf_slice(&all, buf_as_slice(&result.hits));
        search_result_deinit(&result);
        arena_deinit(&page_arena);
    }
    struct slice whole = fixture_search(f, &arena, body, false);
    struct slice pages = arena_printf(&arena, "%.*s [%.*s]", (int)slice_find_byte(whole, ' '), whole.data,
                                      SLICE_ARG(buf_as_slice(&all)));
    if (!slice_equal(ids_of(&arena, whole), ids_of(&arena, pages)))
        fail_msg("%s by %d\n whole %.*s\n pages %.*s", body, size, SLICE_ARG(whole), SLICE_ARG(pages));
    search_cursor_free(cursor);
    buf_deinit(&all);
    arena_deinit(&arena);
}

/*
 * Checks that the first page of a cursor has the aggregations of all documents, and no other has any. Each
 * page has an arena of its own, as in a scroll.
 */
static void check_cursor_aggregations(struct fixture *f, const char *body, int32_t size, const char *expected)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem = {0};
    struct search_request request;
    struct query_parser parser = {.arena = &arena, .dialect = DIALECT_7, .doc = &doc, .problem = &problem};
    struct search_cursor *cursor = search_cursor_new();
    search_request_init(&request);
    assert_int_equal(json_parse(&arena, slice_from(body), DIALECT_7, 0, &doc, &problem), 0);
    assert_int_equal(search_request_parse(&parser, doc.root, &request), 0);
    request.size = size;
    bool more = true;
    for (int page = 0; more; page++) {
        struct arena page_arena = ARENA_INIT;
        struct search_result result;
        fixture_context(f, &page_arena, false);
        assert_int_equal(search_next(&f->context, &request, cursor, &result, &problem), 0);
        more = result.hit_count > 0;
        if (!slice_is(buf_as_slice(&result.aggregations), page == 0 ? expected : ""))
            fail_msg("%s, page %d: %.*s", body, page, SLICE_ARG(buf_as_slice(&result.aggregations)));
        search_result_deinit(&result);
        arena_deinit(&page_arena);
    }
    search_cursor_free(cursor);
    arena_deinit(&arena);
}

/*
 * A search at a timestamp below the history limit reports it, with a plan by entries (which then
 * have no candidates) as with a full scan.
 */
static void test_search_below_history_limit_is_too_old(void **state)
{
    static const char *const bodies[] = {
        "{\"query\": {\"term\": {\"k\": \"red\"}}}", "{\"size\": 0, \"query\": {\"term\": {\"n\": 3}}}",
        "{\"query\": {\"match\": {\"t\": \"fox\"}}}", "{\"query\": {\"range\": {\"n\": {\"gte\": 2}}}}"};
    struct fixture f;
    (void)state;
    fixture_init(&f, properties);
    fixture_write(&f, example_ids, example_sources, sizeof example_ids / sizeof *example_ids, true);
    assert_int_equal(store_set_history_low(f.store, f.ts + 1), 0);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct arena arena = ARENA_INIT;
        assert_slice_equal(fixture_search(&f, &arena, bodies[i], false), "too old");
        assert_slice_equal(fixture_search(&f, &arena, bodies[i], true), "too old");
        arena_deinit(&arena);
    }
    fixture_deinit(&f);
}

static void test_cursor_pages_equal_whole_search(void **state)
{
    (void)state;
    static const char *const bodies[] = {"{\"size\": 1000}",
                                         "{\"size\": 1000, \"sort\": \"_doc\"}",
                                         "{\"size\": 1000, \"sort\": [{\"n\": \"desc\"}]}",
                                         "{\"size\": 1000, \"query\": {\"term\": {\"k\": \"ant\"}}}",
                                         "{\"size\": 1000, \"query\": {\"match\": {\"t\": \"bee dog\"}}}",
                                         "{\"size\": 1000, \"query\": {\"range\": {\"n\": {\"gt\": 0}}}}",
                                         "{\"size\": 1000, \"query\": {\"term\": {\"p.tree\": \"/a\"}}}"};
    struct fixture f;
    struct rng rng;
    rng_init(&rng, 7);
    fixture_init(&f, properties);
    for (int i = 0; i < 200; i++) {
        struct model_doc doc;
        make_document(&rng, &doc);
        snprintf(doc.id, sizeof doc.id, "%03d", i);
        fixture_write(&f, &(const char *){doc.id}, &(const char *){doc.source}, 1, false);
    }
    static const char *const counting[] = {
        "{\"aggs\": {\"c\": {\"value_count\": {\"field\": \"_index\"}}}}",
        "{\"sort\": \"_doc\", \"aggs\": {\"c\": {\"value_count\": {\"field\": \"_index\"}}}}",
        "{\"sort\": \"n\", \"aggs\": {\"c\": {\"value_count\": {\"field\": \"_index\"}}}}"};
    for (size_t i = 0; i < sizeof counting / sizeof *counting; i++) {
        check_cursor_aggregations(&f, counting[i], 7, "{\"c\":{\"value\":200}}");
        check_cursor_aggregations(&f, counting[i], 1000, "{\"c\":{\"value\":200}}");
    }
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        check_cursor(&f, bodies[i], 7);
        check_cursor(&f, bodies[i], 50);
        check_cursor(&f, bodies[i], 1000);
    }
    fixture_deinit(&f);
}

/* --- Complexity --------------------------------------------------------------------------------------------------- */

/* Returns: `count` distinct words, "w0 w1 w2 …". */
static struct slice words_of(struct arena *arena, const char *word, size_t count)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s%zu ", word, i);
    struct slice copy = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    return copy;
}

/* Returns: whether a search takes at most `steps` of its account. */
static bool takes_at_most(struct fixture *f, const char *body, uint64_t steps)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem = {0};
    struct search_request request;
    struct search_result result;
    struct query_parser parser = {.arena = &arena, .dialect = DIALECT_7, .doc = &doc, .problem = &problem};
    fixture_context(f, &arena, false);
    f->context.steps_max = steps;
    search_request_init(&request);
    assert_int_equal(json_parse(&arena, slice_from(body), DIALECT_7, 0, &doc, &problem), 0);
    assert_int_equal(search_request_parse(&parser, doc.root, &request), 0);
    int r = search_run(&f->context, &request, &result, &problem);
    assert_true(r == 0 || r == SEARCH_LONG);
    search_result_deinit(&result);
    arena_deinit(&arena);
    return r == 0;
}

/* Returns: the steps of a search, to within a sixteenth. */
static uint64_t steps_taken(struct fixture *f, const char *body)
{
    uint64_t low = 1 << 12, high = low;
    while (!takes_at_most(f, body, high))
        low = high, high *= 2;
    while (high - low > low / 16) {
        uint64_t middle = low + (high - low) / 2;
        *(takes_at_most(f, body, middle) ? &high : &low) = middle;
    }
    return high;
}

/*
 * Returns: the steps of a query with `count` words over four documents with as many, to within a
 * sixteenth.
 */
static uint64_t steps_of(const char *format, const char *word, size_t count)
{
    static const char *const ids[] = {"1", "2", "3", "4"}, *const document_words[] = {"w", "x", "y", "z"};
    struct fixture f;
    struct arena arena = ARENA_INIT;
    fixture_init(&f, properties);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *source =
            arena_printf(&arena, "{\"t\": \"%.*s\"}", SLICE_ARG(words_of(&arena, document_words[i], count))).data;
        fixture_write(&f, &ids[i], &source, 1, true);
    }
    const char *body =
        arena_printf(&arena, format, (int)words_of(&arena, word, count).len, words_of(&arena, word, count).data).data;
    uint64_t steps = steps_taken(&f, body);
    arena_deinit(&arena);
    fixture_deinit(&f);
    return steps;
}

static void test_steps_are_linear_in_words(void **state)
{
    static const char *const bodies[] = {
        "{\"query\": {\"match_phrase\": {\"t\": \"%.*s\"}}}",
        "{\"query\": {\"match_phrase\": {\"t\": {\"query\": \"%.*s\", \"slop\": 2}}}}",
        "{\"query\": {\"match_phrase_prefix\": {\"t\": \"%.*s\"}}}",
        "{\"query\": {\"match\": {\"t\": \"%.*s\"}}}",
        "{\"query\": {\"multi_match\": {\"query\": \"%.*s\", \"fields\": [\"t\"], \"type\": \"phrase\"}}}",
        "{\"query\": {\"query_string\": {\"query\": \"\\\"%.*s\\\"\", \"default_field\": \"t\"}}}",
        "{\"query\": {\"simple_query_string\": {\"query\": \"\\\"%.*s\\\"\", \"fields\": [\"t\"]}}}"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof bodies / sizeof *bodies;
         i++) { /* words of no document, and words of one document */
        uint64_t few = steps_of(bodies[i / 2], i % 2 == 0 ? "v" : "w", 400);
        uint64_t many = steps_of(bodies[i / 2], i % 2 == 0 ? "v" : "w", 800);
        if (many > 2 * few + few / 4)
            fail_msg("%s takes %llu steps for 400 words, %llu for 800", bodies[i / 2], (unsigned long long)few,
                     (unsigned long long)many);
    }
}

/* Each word of a phrase that is compared at a place of the text counts, where all words are equal, too. */
static void test_phrases_of_equal_words_are_charged(void **state)
{
    enum { PHRASE_WORDS = 200, TEXT_WORDS = 2000 };
    static const char *const id = "1";
    struct fixture f;
    struct buf equal = BUF_INIT(BUF_UNLIMITED), body = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    for (int i = 0; i < TEXT_WORDS; i++)
        buf_lit(&equal, "a ");
    struct slice text = buf_as_slice(&equal);
    buf_printf(&body, "{\"t\": \"%.*s\"}", SLICE_ARG(text));
    buf_byte(&body, '\0');
    const char *document = body.data;
    fixture_init(&f, properties);
    fixture_write(&f, &id, &document, 1, true);
    buf_clear(&body);
    text.len = 2 * PHRASE_WORDS;
    buf_printf(&body, "{\"query\": {\"match_phrase\": {\"t\": \"%.*s\"}}}", SLICE_ARG(text));
    buf_byte(&body, '\0');
    assert_in_range(steps_taken(&f, body.data), 2 * PHRASE_WORDS * (TEXT_WORDS - PHRASE_WORDS),
                    10 * PHRASE_WORDS * TEXT_WORDS);
    buf_deinit(&equal);
    buf_deinit(&body);
    fixture_deinit(&f);
}

/* The steps of a match with slop; meson.build wraps the function. */
static uint64_t heap_pushes;
void __real_heap_push(struct heap *heap, struct heap_node *node);
void __wrap_heap_push(struct heap *heap, struct heap_node *node);
void __wrap_heap_push(struct heap *heap, struct heap_node *node)
{
    heap_pushes++;
    __real_heap_push(heap, node);
}

/* A clock that advances by a microsecond each time that it is read. */
static uint64_t clock_reads;
static uint64_t read_clock(void)
{
    return ++clock_reads;
}

/*
 * Searches by that clock. Returns: the outcome of search_run(); *ret_timed_out is false if it is not
 * 0. `timeout_us`, `deadline_us`: 0: none.
 */
static int search_by_reads(struct fixture *f, const char *body, int64_t timeout_us, uint64_t deadline_us,
                           bool *ret_timed_out, uint64_t *ret_total)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem = {0};
    struct search_request request;
    struct search_result result;
    struct query_parser parser = {.arena = &arena, .dialect = DIALECT_7, .doc = &doc, .problem = &problem};
    const struct account account = {.clock_us = read_clock, .deadline_us = deadline_us};
    fixture_context(f, &arena, false);
    f->context.account = &account;
    search_request_init(&request);
    assert_int_equal(json_parse(&arena, slice_from(body), DIALECT_7, 0, &doc, &problem), 0);
    assert_int_equal(search_request_parse(&parser, doc.root, &request), 0);
    request.timeout_us = timeout_us;
    clock_reads = heap_pushes = 0;
    int r = search_run(&f->context, &request, &result, &problem);
    *ret_timed_out = r == 0 && result.timed_out;
    *ret_total = result.total;
    search_result_deinit(&result);
    arena_deinit(&arena);
    return r;
}

/*
 * A phrase of 8,000 words ends within the one document that it is in, wherever its time is up: by the
 * search's `timeout` without hits and with timed_out, by the request's deadline as a whole. With slop the rest
 * of the text is not matched then.
 */
static void test_long_phrases_end_in_time(void **state)
{
    enum { PHRASE_WORDS = 8000, TIMES = 12, POINTS = 6, CLOCK_LATE = 2 };
    static const char *const id = "1";
    (void)state;
    for (int slop = 0; slop <= 2; slop += 2) {
        struct fixture f;
        struct arena arena = ARENA_INIT;
        bool timed_out;
        uint64_t total;
        struct slice text = words_of(&arena, "w", PHRASE_WORDS);
        struct buf source = BUF_INIT(BUF_UNLIMITED);
        buf_lit(&source, "{\"t\": \"");
        for (int i = 0; i < TIMES; i++) /* else it would be over before the clock is read again */
            buf_slice(&source, text);
        buf_lit(&source, "\"}");
        buf_byte(&source, '\0');
        const char *body =
            arena_printf(&arena, "{\"query\": {\"match_phrase\": {\"t\": {\"query\": \"%.*s\", \"slop\": %d}}}}",
                         SLICE_ARG(text), slop)
                .data;
        fixture_init(&f, "{\"properties\": {\"t\": {\"type\": \"text\"}}}");
        const char *document = source.data;
        fixture_write(&f, &id, &document, 1, true);
        assert_int_equal(search_by_reads(&f, body, INT32_MAX, 0, &timed_out, &total), 0);
        assert_true(!timed_out && total == 1);
        uint64_t reads = clock_reads, pushes = heap_pushes;
        if (reads < CLOCK_LATE + POINTS / 2)
            fail_msg("the clock is read only %llu times", (unsigned long long)reads);
        for (uint64_t i = 1; i <= POINTS; i++) {
            uint64_t at = 1 + (reads - CLOCK_LATE - 1) * i / POINTS;
            assert_int_equal(search_by_reads(&f, body, (int64_t)at, 0, &timed_out, &total), 0);
            if (!timed_out || total != 0 || clock_reads > at + CLOCK_LATE)
                fail_msg("timeout %llu of %llu: timed_out %d, total %llu, read %llu times", (unsigned long long)at,
                         (unsigned long long)reads, timed_out, (unsigned long long)total,
                         (unsigned long long)clock_reads);
            assert_true(slop == 0 || heap_pushes < pushes);
            assert_int_equal(search_by_reads(&f, body, 0, at, &timed_out, &total), SEARCH_CANCELLED);
        }
        buf_deinit(&source);
        fixture_deinit(&f);
        arena_deinit(&arena);
    }
}

/* --- Bounds of aggregations --------------------------------------------------------------------------------------- */

/* Appends an aggregation `a` of `width` filters, with `depth` levels of the same below. */
static void append_filters(struct buf *text, size_t width, unsigned depth)
{
    buf_printf(text, "{\"a\": {\"filters\": {\"filters\": [");
    for (size_t i = 0; i < width; i++)
        buf_printf(text, "%s{\"match_all\": {}}", i > 0 ? ", " : "");
    buf_printf(text, "]}");
    if (depth > 0) {
        buf_printf(text, ", \"aggs\": ");
        append_filters(text, width, depth - 1);
    }
    buf_printf(text, "}}");
}

/* Runs a search with `width` to the power of `levels` filters. Returns: its outcome. */
static int run_filters(struct fixture *f, size_t width, unsigned levels, uint64_t steps, struct arena *arena,
                       struct problem *ret_problem)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc;
    struct search_request request;
    struct search_result result;
    struct query_parser parser = {.arena = arena, .dialect = DIALECT_7, .doc = &doc, .problem = ret_problem};
    buf_printf(&body, "{\"size\": 0, \"aggs\": ");
    append_filters(&body, width, levels - 1);
    buf_printf(&body, "}");
    fixture_context(f, arena, false);
    f->context.steps_max = steps;
    search_request_init(&request);
    assert_int_equal(json_parse(arena, buf_as_slice(&body), DIALECT_7, 0, &doc, ret_problem), 0);
    assert_int_equal(search_request_parse(&parser, doc.root, &request), 0);
    int r = search_run(&f->context, &request, &result, ret_problem);
    search_result_deinit(&result);
    buf_deinit(&body);
    return r;
}

/*
 * 100 filters on each of five levels have 10^10 buckets. Without documents the reply ends at the limit
 * of buckets; with one that falls into all of them, collecting ends with the account.
 */
static void test_aggregations_of_all_levels_are_bounded_together(void **state)
{
    (void)state;
    struct fixture f;
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    fixture_init(&f, properties);
    assert_int_equal(run_filters(&f, 100, 5, 0, &arena, &problem), QUERY_REFUSED);
    assert_int_equal(problem.type, PROBLEM_SEARCH_PHASE_EXECUTION);
    assert_int_equal(problem.caused_by->type, PROBLEM_TOO_MANY_BUCKETS);
    assert_int_equal(run_filters(&f, 255, 2, 0, &arena, &problem), 0);
    fixture_write(&f, &(const char *){"1"}, &(const char *){"{\"t\": \"a\"}"}, 1, false);
    assert_int_equal(run_filters(&f, 100, 5, 10000000, &arena, &problem), SEARCH_LONG);
    arena_deinit(&arena);
    fixture_deinit(&f);
}

/* Writing results is charged: an account that ends in between ends it, though no document is there. */
static void test_writing_of_empty_buckets_ends_with_the_account(void **state)
{
    (void)state;
    struct fixture f;
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    fixture_init(&f, properties);
    assert_int_equal(run_filters(&f, 255, 2, 10000000, &arena, &problem), 0);
    assert_int_equal(run_filters(&f, 255, 2, 1000000, &arena, &problem), SEARCH_LONG);
    arena_deinit(&arena);
    fixture_deinit(&f);
}

/* Appends `count` distinct texts of `len` bytes as members of a JSON array. */
static void append_texts(struct buf *json, char letter, unsigned count, int len)
{
    for (unsigned i = 0; i < count; i++)
        buf_printf(json, "%s\"%c%0*u\"", i > 0 ? ", " : "", letter, len - 1, i);
}

/* Returns: the steps of a terms aggregation with an option. */
static uint64_t steps_of_terms(struct fixture *f, const char *option, const char *value)
{
    struct arena arena = ARENA_INIT;
    const char *body =
        arena_printf(&arena, "{\"size\": 0, \"aggs\": {\"a\": {\"terms\": {\"field\": \"k\", \"%s\": %s}}}}", option,
                     value)
            .data;
    uint64_t steps = steps_taken(f, body);
    arena_deinit(&arena);
    return steps;
}

/*
 * `include` and `exclude` of a terms aggregation are charged for each value of a document: a list by its
 * length, a regular expression by the text that it reads.
 */
static void test_include_and_exclude_are_charged(void **state)
{
    (void)state;
    enum { VALUES = 500, BYTES = 200 };
    static const char *const options[] = {"include", "exclude"};
    struct fixture f;
    struct buf source = BUF_INIT(BUF_UNLIMITED), many = BUF_INIT(BUF_UNLIMITED);
    fixture_init(&f, "{\"properties\": {\"k\": {\"type\": \"keyword\"}}}");
    buf_printf(&source, "{\"k\": [");
    append_texts(&source, 'v', VALUES, BYTES);
    buf_printf(&source, "]}%c", '\0');
    buf_printf(&many, "[");
    append_texts(&many, 'w', VALUES, BYTES);
    buf_printf(&many, "]%c", '\0');
    fixture_write(&f, &(const char *){"1"}, &(const char *){source.data}, 1, false);
    for (size_t i = 0; i < 2; i++) {
        uint64_t least = steps_of_terms(&f, options[i], "[\"w\"]");
        assert_true(steps_of_terms(&f, options[i], many.data) > least + VALUES * VALUES * 3 / 4);
        assert_true(steps_of_terms(&f, options[i], "\"(v|w)[0-9]*\"") > least + VALUES * BYTES);
    }
    buf_deinit(&source);
    buf_deinit(&many);
    fixture_deinit(&f);
}

/* Returns: the steps of a search whose `option` has `count` patterns, each of which names one field. */
static uint64_t steps_of_patterns(struct fixture *f, const char *option, unsigned count)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&body, "{\"%s\": [", option);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&body, "%s\"k%03u*\"", i > 0 ? ", " : "", i);
    buf_printf(&body, "]}%c", '\0');
    uint64_t steps = steps_taken(f, body.data);
    buf_deinit(&body);
    return steps;
}

/*
 * Patterns of fields are charged: each is compared with all fields of the mapping, and a field that it names with all
 * other patterns.
 */
static void test_patterns_of_fields_are_charged(void **state)
{
    (void)state;
    enum { FIELDS = 200, PATTERNS = 500 };
    static const char *const options[] = {"fields", "stored_fields"};
    struct fixture f;
    struct buf mapping = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&mapping, "{\"properties\": {");
    for (unsigned i = 0; i < FIELDS; i++)
        buf_printf(&mapping, "%s\"k%03u\": {\"type\": \"keyword\"}", i > 0 ? ", " : "", i);
    buf_printf(&mapping, "}}%c", '\0');
    fixture_init(&f, mapping.data);
    fixture_write(&f, &(const char *){"1"}, &(const char *){"{\"k000\": \"a\"}"}, 1, false);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        uint64_t least = steps_of_patterns(&f, options[i], 1);
        assert_true(steps_of_patterns(&f, options[i], PATTERNS) > least + FIELDS * PATTERNS);
    }
    buf_deinit(&mapping);
    fixture_deinit(&f);
}

/* Patterns of _source count for each name, so that a search with many of them leaves the thread of its connection. */
static void test_source_patterns_count(void **state)
{
    enum { PATTERNS = 1000, NAME = 1 + 1 + JSON_FILTER_NAME_BYTES };
    static const char *const ids[] = {"1", "2"}, *const sources[] = {"{\"t\": \"a\"}", "{\"t\": \"b\"}"};
    struct fixture f;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    fixture_init(&f, properties);
    fixture_write(&f, ids, sources, 2, true);
    buf_lit(&body, "{\"_source\": {\"excludes\": [\"p\"");
    for (size_t i = 1; i < PATTERNS; i++)
        buf_printf(&body, ", \"p%zu\"", i);
    buf_append(&body, "]}}", sizeof "]}}");
    assert_in_range(steps_taken(&f, body.data), 2 * PATTERNS * NAME, 4 * PATTERNS * NAME);
    assert_in_range(steps_taken(&f, "{\"_source\": {\"excludes\": [\"p\"]}}"), 0, PATTERNS * NAME);
    buf_deinit(&body);
    fixture_deinit(&f);
}

/* Aggregates two documents with `h`. Returns: the reply; "refused: REASON"; "long". */
static struct slice run_histogram(struct fixture *f, const char *body, uint64_t steps, struct arena *arena)
{
    struct json_doc *doc = arena_zalloc(arena, sizeof *doc);
    struct problem problem = {0};
    struct search_request request;
    struct search_result result;
    struct query_parser parser = {.arena = arena, .dialect = DIALECT_7, .doc = doc, .problem = &problem};
    struct slice text = arena_printf(arena, "{\"size\": 0, \"aggs\": {\"h\": %s}}", body);
    fixture_context(f, arena, false);
    f->context.steps_max = steps;
    search_request_init(&request);
    assert_int_equal(json_parse(arena, text, DIALECT_7, 0, doc, &problem), 0);
    assert_int_equal(search_request_parse(&parser, doc->root, &request), 0);
    int r = search_run(&f->context, &request, &result, &problem);
    struct slice reply = r == SEARCH_LONG ? SLICE_LIT("long")
                         : r == QUERY_REFUSED
                             ? arena_printf(arena, "refused: %.*s", SLICE_ARG(problem.caused_by->reason))
                             : arena_copy(arena, buf_as_slice(&result.aggregations));
    search_result_deinit(&result);
    return reply;
}

/*
 * A histogram with too many intervals is refused in a time that does not depend on their number,
 * whatever its keys are. The counts are those of Elasticsearch 7.10 where that ends at all.
 */
static void test_histograms_with_too_many_intervals_are_refused_at_once(void **state)
{
    (void)state;
    enum { STEPS = 2000000 };
    static const struct {
        const char *low, *high, *body, *count;
    } cases[] = {
        {"0", "1e12", "{\"histogram\": {\"field\": \"x\", \"interval\": 1}}", "1000000000001"},
        {"0", "100000", "{\"histogram\": {\"field\": \"x\", \"interval\": 0.5}}", "200001"},
        {"-9e15", "9.1e15", "{\"histogram\": {\"field\": \"x\", \"interval\": 1}}", "9007199254740992"},
        {"-1e300", "1e300", "{\"histogram\": {\"field\": \"x\", \"interval\": 1e-300}}", "9007199254740992"},
        {"0", "1",
         "{\"histogram\": {\"field\": \"x\", \"interval\": 1, \"extended_bounds\": {\"min\": 0, \"max\": 1e9}}}",
         "1000000001"},
        {"0", "1e14", "{\"date_histogram\": {\"field\": \"d\", \"fixed_interval\": \"1ms\", \"offset\": \"3h\"}}",
         "100000000000001"},
        {"946684800000", "13569465600000", "{\"date_histogram\": {\"field\": \"d\", \"calendar_interval\": \"day\"}}",
         "146098"},
        {"946684800000", "13569465600000",
         "{\"date_histogram\": {\"field\": \"d\", \"calendar_interval\": \"second\", \"time_zone\": \"+01:00\"}}",
         "12622780801"},
        {"0", "8.64e15", "{\"date_histogram\": {\"field\": \"d\", \"calendar_interval\": \"month\"}}", "3285489"},
        {"0", "1",
         "{\"date_histogram\": {\"field\": \"d\", \"fixed_interval\": \"1s\", \"extended_bounds\": {\"min\": 0, "
         "\"max\": "
         "8640000000000}}}",
         "8640000001"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct fixture f;
        fixture_init(&f, "{\"properties\": {\"x\": {\"type\": \"double\"}, \"d\": {\"type\": \"date\"}}}");
        bool dates = strstr(cases[i].body, "date_") != NULL;
        for (int j = 0; j < 2; j++) {
            const char *number = j == 0 ? cases[i].low : cases[i].high;
            struct slice source = dates ? arena_printf(&arena, "{\"d\": %lld}", (long long)strtod(number, NULL))
                                        : arena_printf(&arena, "{\"x\": %s}", number);
            fixture_write(&f, &(const char *){j == 0 ? "1" : "2"}, &source.data, 1, false);
        }
        struct slice expected =
            arena_printf(&arena,
                         "refused: Trying to create too many buckets. Must be less than or equal to: [65535] but "
                         "was [%s].",
                         cases[i].count);
        struct slice found = run_histogram(&f, cases[i].body, STEPS, &arena);
        if (!slice_starts_with(found, expected))
            fail_msg("case %zu: %.*s", i, SLICE_ARG(found));
        fixture_deinit(&f);
        arena_deinit(&arena);
    }
}

/* Keys so large that one more is the same number are distinct buckets, as are infinite ones. */
static void test_histogram_of_huge_keys_ends(void **state)
{
    (void)state;
    enum { STEPS = 2000000 };
    struct arena arena = ARENA_INIT;
    struct fixture f;
    static const char *const ids[] = {"1", "2"};
    static const char *const near[] = {"{\"x\": 9007199254740992}", "{\"x\": 9007199254740996}"};
    static const char *const far[] = {"{\"x\": 1e300}", "{\"x\": 2e300}"};
    fixture_init(&f, "{\"properties\": {\"x\": {\"type\": \"double\"}}}");
    fixture_write(&f, ids, near, 2, false);
    struct slice found = run_histogram(&f, "{\"histogram\": {\"field\": \"x\", \"interval\": 1}}", STEPS, &arena);
    assert_slice_equal(
        found, "{\"h\":{\"buckets\":[{\"key\":9.007199254740992E15,\"doc_count\":1},{\"key\":9.007199254740994E15,"
               "\"doc_count\":0},{\"key\":9.007199254740996E15,\"doc_count\":1}]}}");
    fixture_write(&f, ids, far, 2, false);
    found = run_histogram(&f, "{\"histogram\": {\"field\": \"x\", \"interval\": 1e-300}}", STEPS, &arena);
    assert_true(slice_starts_with(found, SLICE_LIT("{\"h\":{\"buckets\":[{")));
    fixture_deinit(&f);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aggregations_of_all_levels_are_bounded_together),
        cmocka_unit_test(test_writing_of_empty_buckets_ends_with_the_account),
        cmocka_unit_test(test_include_and_exclude_are_charged),
        cmocka_unit_test(test_patterns_of_fields_are_charged),
        cmocka_unit_test(test_source_patterns_count),
        cmocka_unit_test(test_histograms_with_too_many_intervals_are_refused_at_once),
        cmocka_unit_test(test_histogram_of_huge_keys_ends),
        cmocka_unit_test(test_search_finds_expected_ids),
        cmocka_unit_test(test_fetch_writes_hits_as_elasticsearch),
        cmocka_unit_test(test_empty_result_differs_from_uncounted),
        cmocka_unit_test(test_scores_equal_elasticsearch),
        cmocka_unit_test(test_planned_search_equals_full_scan_and_model),
        cmocka_unit_test(test_directories_score_as_words_in_large_index),
        cmocka_unit_test(test_sampled_scores_approximate_exact_scores),
        cmocka_unit_test(test_cursor_pages_equal_whole_search),
        cmocka_unit_test(test_search_below_history_limit_is_too_old),
        cmocka_unit_test(test_steps_are_linear_in_words),
        cmocka_unit_test(test_phrases_of_equal_words_are_charged),
        cmocka_unit_test(test_long_phrases_end_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
