/* SPDX-License-Identifier: Apache-2.0 */
/* An in-memory store with one index. Documents and entries are written as the core writes them. */
#ifndef TL_TESTS_QUERY_SEARCH_FIXTURE_H
#define TL_TESTS_QUERY_SEARCH_FIXTURE_H

#include "../../lib/unit.h"

#include "core/documents/doc.h"
#include "mapping/document.h"
#include "mapping/entry.h"
#include "query/search.h"
#include "store/view.h"

struct fixture {
    struct store *store; /* in memory */
    struct mapping *mapping;
    struct arena arena;
    tl_ts ts;
    int64_t seq_no;
    uint64_t documents;
    struct search_index index;
    struct view view;
    struct search_context context;
};

static void fixture_put(void *user, struct slice key, struct slice value)
{
    store_batch_put(user, SPACE_ENTRIES, key, value);
}

static void fixture_remove(void *user, struct slice key)
{
    store_batch_delete(user, SPACE_ENTRIES, key);
}

/* Index settings with a path_hierarchy analyzer. */
static const char fixture_settings[] = "{\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}}";

static inline void fixture_init(struct fixture *f, const char *properties)
{
    struct json_doc doc, settings;
    struct problem problem = {0};
    struct mapping *unmapped = NULL;
    *f = (struct fixture){.store = store_open_mem(), .arena = ARENA_INIT, .ts = 1000};
    assert_int_equal(json_parse(&f->arena, slice_from(fixture_settings), DIALECT_7, 0, &settings, &problem), 0);
    assert_int_equal(mapping_new(settings.root, DATE_RULES_7_10, &f->arena, &unmapped, &problem), 0);
    assert_int_equal(json_parse(&f->arena, slice_from(properties), DIALECT_7, 0, &doc, &problem), 0);
    if (mapping_merge(unmapped, SLICE_LIT("_doc"), doc.root, DIALECT_7, true, FIELDS_COUNTED_FIRST, &f->arena,
                      &f->mapping, &problem) != 0)
        fail_msg("%.*s", SLICE_ARG(problem.reason));
    mapping_unref(unmapped);
}

static inline void fixture_deinit(struct fixture *f)
{
    mapping_unref(f->mapping);
    arena_deinit(&f->arena);
    store_close(f->store);
}

/*
 * Writes documents in one store batch: as single writes (batch number 0), or with `bulk` as one
 * bulk request.
 */
static inline void fixture_write(struct fixture *f, const char *const *ids, const char *const *sources, size_t count,
                                 bool bulk)
{
    struct arena arena = ARENA_INIT;
    struct store_batch *batch = store_batch_new(f->store);
    struct entry_set entries;
    struct buf record = BUF_INIT(1 << 20);
    uint64_t number = bulk ? f->ts + 1 : 0;
    store_batch_begin(batch, ++f->ts);
    entry_set_init(&entries, &arena, 1, number);
    for (size_t i = 0; i < count; i++) {
        const struct mapping_type *type = mapping_type(f->mapping, SLICE_LIT("_doc"));
        struct document document, old_document = {.value_count = 0};
        struct problem problem = {0};
        struct buf *key = arena_zalloc(&arena, sizeof *key);
        struct view view = {f->store, f->ts - 1, NULL};
        struct doc old = {.batch = 0};
        char key_bytes[DOC_KEY_BYTES_MAX];
        *key = BUF_INIT(1024);
        if (document_parse(f->mapping, type, slice_from(ids[i]), slice_from(sources[i]), DIALECT_7,
                           DOCUMENT_DATES_STRICT, FIELDS_COUNTED_FIRST, &arena, &document, &problem) != 0)
            fail_msg("%s: %.*s", sources[i], SLICE_ARG(problem.reason));
        bool replaces = doc_get(&view, 1, type->number, slice_from(ids[i]), &old) == 0;
        if (replaces) {
            struct slice source = arena_copy(&arena, old.source);
            assert_int_equal(document_parse_stored(f->mapping, type, source, &arena, &old_document), 0);
            doc_release(&old);
        }
        f->documents += !replaces;
        entry_document_key(key, type->number, slice_from(ids[i]));
        entry_set_write(&entries, arena_copy(&arena, buf_as_slice(key)), document.values, document.value_count,
                        old_document.values, old_document.value_count, old.batch);
        buf_deinit(key);
        struct doc doc = {
            .ts = f->ts, .version = 1, .seq_no = f->seq_no++, .batch = number, .source = slice_from(sources[i])};
        buf_clear(&record);
        doc_encode(&record, &doc);
        store_batch_put(batch, SPACE_DOCUMENTS, doc_key(key_bytes, 1, type->number, slice_from(ids[i])),
                        buf_as_slice(&record));
        document_release(&document);
    }
    entry_set_emit(&entries, &(struct entry_sink){fixture_put, fixture_remove, batch});
    assert_int_equal(store_write(f->store, batch), 0);
    store_batch_free(batch);
    buf_deinit(&record);
    arena_deinit(&arena);
}

/*
 * Sets f->context to search everything written before. Results of parsing and binding live in
 * `arena`.
 */
static inline void fixture_context(struct fixture *f, struct arena *arena, bool full_scan)
{
    f->view = (struct view){f->store, f->ts, NULL};
    f->index = (struct search_index){.name = SLICE_LIT("i"),
                                     .uuid = SLICE_LIT("u"),
                                     .number = 1,
                                     .shard_count = 1,
                                     .mapping = f->mapping,
                                     .document_count = f->documents,
                                     .count_exact = true,
                                     .boost = 1};
    f->context = (struct search_context){.arena = arena,
                                         .view = &f->view,
                                         .indices = &f->index,
                                         .index_count = 1,
                                         .dialect = DIALECT_7,
                                         .now_ms = 1600000000000,
                                         .node = SLICE_LIT("n"),
                                         .full_scan = full_scan};
}

/*
 * Runs a search. Returns: "TOTAL [HITS]AGGREGATIONS", with "+" after a total that is a lower bound;
 * "refused: REASON"; "too old". Owns: the text lives in `arena`.
 */
static inline struct slice fixture_search(struct fixture *f, struct arena *arena, const char *body, bool full_scan)
{
    struct json_doc *doc = arena_zalloc(arena, sizeof *doc);
    struct problem problem = {0};
    struct search_request request;
    struct search_result result;
    struct query_parser parser = {.arena = arena, .dialect = DIALECT_7, .doc = doc, .problem = &problem};
    fixture_context(f, arena, full_scan);
    search_request_init(&request);
    assert_int_equal(json_parse(arena, slice_from(body), DIALECT_7, 0, doc, &problem), 0);
    if (search_request_parse(&parser, doc->root, &request) != 0)
        return arena_printf(arena, "refused: %.*s", SLICE_ARG(problem.reason));
    int r = search_run(&f->context, &request, &result, &problem);
    struct slice text =
        r == SEARCH_TOO_OLD ? SLICE_LIT("too old")
        : r == SEARCH_REFUSED
            ? arena_printf(arena, "refused: %.*s", SLICE_ARG(problem.caused_by->reason))
            : arena_printf(arena, "%llu%s [%.*s]%.*s", (unsigned long long)result.total,
                           result.relation == RELATION_GTE ? "+" : "", SLICE_ARG(buf_as_slice(&result.hits)),
                           SLICE_ARG(buf_as_slice(&result.aggregations)));
    assert_true(r >= 0);
    search_result_deinit(&result);
    return text;
}

#endif
