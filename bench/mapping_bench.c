/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of parsing documents and collecting their entries, without a store: nanoseconds
 * a document.
 *
 * The documents resemble those of bench/dataset.py: 400 bytes, seven searched fields and a note.
 * The path is mapped first as a plain keyword, then as one with its directories, as in loads.py.
 * Each result is the best of five rounds over 20,000 documents.
 *
 *     ninja -C build bench/mapping_bench && build/bench/mapping_bench
 */
#include "base/buf.h"
#include "mapping/document.h"
#include "mapping/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DOCUMENTS = 20000, ROUNDS = 5, BATCH = 1000 };

static const char flat[] =
    "{\"properties\":{\"name\":{\"type\":\"keyword\"},\"path\":{\"type\":\"keyword\"},\"size\":{\"type\":"
    "\"long\"},"
    "\"mtime\":{\"type\":\"date\"},\"mode\":{\"type\":\"keyword\"},\"type\":{\"type\":\"keyword\"},"
    "\"owner\":{\"type\":\"keyword\"},\"note\":{\"type\":\"keyword\",\"index\":false}}}";
static const char tree[] =
    "{\"properties\":{\"name\":{\"type\":\"keyword\"},\"path\":{\"type\":\"keyword\",\"fields\":{\"tree\":{\"type\":"
    "\"text\",\"analyzer\":\"paths\"}}},\"size\":{\"type\":\"long\"},"
    "\"mtime\":{\"type\":\"date\"},\"mode\":{\"type\":\"keyword\"},\"type\":{\"type\":\"keyword\"},"
    "\"owner\":{\"type\":\"keyword\"},\"note\":{\"type\":\"keyword\",\"index\":false}}}";

static const char settings[] = "{\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}}";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct mapping *make_mapping(const char *body)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc = {0}, analysis = {0};
    struct problem problem;
    struct mapping *empty = NULL, *mapping = NULL;
    int r = json_parse_stored(&arena, slice_from(body), &doc);
    r = r == 0 ? json_parse_stored(&arena, slice_from(settings), &analysis) : r;
    r = r == 0 ? mapping_new(analysis.root, DATE_RULES_7_10, &arena, &empty, &problem) : r;
    r = r == 0 ? mapping_merge_all(empty, doc.root, DIALECT_7, false, FIELDS_TEXTS_BOUNDED, &arena, &mapping, &problem)
               : r;
    if (r != 0)
        exit(1);
    mapping_unref(empty);
    arena_deinit(&arena);
    return mapping;
}

static struct slice *make_documents(struct arena *arena)
{
    static const char *const owners[] = {"root", "daemon", "www-data"};
    struct slice *documents = arena_alloc(arena, DOCUMENTS * sizeof *documents);
    for (int i = 0; i < DOCUMENTS; i++) {
        struct slice head = arena_printf(arena,
                                         "{\"name\":\"file%06d.html\",\"path\":\"/clinton/copy%d/share/doc/"
                                         "package%d/html/file%06d.html\",\"size\":%d,"
                                         "\"mtime\":\"2023-%02d-%02dT%02d:15:20Z\",\"mode\":\"0644\","
                                         "\"type\":\"%s\",\"owner\":\"%s\",\"note\":\"",
                                         i, i / 5000, i / 40, i, i * 37 % 100000, i % 12 + 1, i % 28 + 1, i % 24,
                                         i % 11 ? "file" : "directory", owners[i % 3]);
        documents[i] = arena_printf(arena, "%.*s%0*d\"}", SLICE_ARG(head), (int)(398 - head.len), i);
    }
    return documents;
}

struct sink_count {
    size_t keys;
    size_t bytes;
};

static void count_put(void *context, struct slice key, struct slice value)
{
    struct sink_count *count = context;
    count->keys++;
    count->bytes += key.len + value.len;
}

static void count_remove(void *context, struct slice key)
{
    count_put(context, key, SLICE_NONE);
}

/* Parses all documents; with `batch`, also collects and emits their entries, BATCH at a time. */
static struct sink_count run(const struct mapping *mapping, const struct slice *documents, bool entries, uint64_t batch)
{
    struct arena arena = ARENA_INIT;
    struct sink_count count = {0};
    struct entry_sink sink = {count_put, count_remove, &count};
    const struct mapping_type *type = mapping_type_at(mapping, 0);
    for (int start = 0; start < DOCUMENTS; start += BATCH) {
        struct entry_set set;
        entry_set_init(&set, &arena, 1, batch == 0 ? 0 : batch + (uint64_t)start);
        for (int i = start; i < start + BATCH; i++) {
            struct document document;
            struct problem problem;
            struct buf key = BUF_INIT(ENTRY_DOCUMENT_KEY_MAX);
            struct slice id = arena_printf(&arena, "f%07d", i);
            if (document_parse(mapping, type, id, documents[i], DIALECT_7, DOCUMENT_DATES_STRICT, FIELDS_TEXTS_BOUNDED,
                               &arena, &document, &problem) != 0)
                exit(1);
            if (entries) {
                entry_document_key(&key, type->number, id);
                entry_set_write(&set, arena_copy(&arena, buf_as_slice(&key)), document.values, document.value_count,
                                NULL, 0, 0);
            } else if (i % 64 == 0) {
                arena_reset(&arena);
            }
            buf_deinit(&key);
        }
        if (entries)
            entry_set_emit(&set, &sink);
        arena_reset(&arena);
    }
    arena_deinit(&arena);
    return count;
}

static void measure(const char *name, const struct mapping *mapping, const struct slice *documents, bool entries,
                    uint64_t batch)
{
    double best = 1e18;
    struct sink_count count = {0};
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        count = run(mapping, documents, entries, batch);
        double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%-36s %7.0f ns a document", name, best / DOCUMENTS);
    if (entries)
        printf("  %5.2f keys, %5.0f bytes a document", (double)count.keys / DOCUMENTS, (double)count.bytes / DOCUMENTS);
    printf("\n");
}

static void measure_json(const struct slice *documents)
{
    struct arena arena = ARENA_INIT;
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < DOCUMENTS; i++) {
            struct json_doc doc;
            struct problem problem;
            if (json_parse(&arena, documents[i], DIALECT_7, JSON_DOCUMENT, &doc, &problem) != 0)
                exit(1);
            arena_reset(&arena);
        }
        double took = now() - start;
        best = took < best ? took : best;
    }
    arena_deinit(&arena);
    printf("%-36s %7.0f ns a document\n", "json_parse", best / DOCUMENTS);
}

int main(void)
{
    struct arena arena = ARENA_INIT;
    struct slice *documents = make_documents(&arena);
    struct mapping *plain = make_mapping(flat);
    struct mapping *path = make_mapping(tree);
    measure_json(documents);
    measure("document_parse", plain, documents, false, 0);
    measure("document_parse, with directories", path, documents, false, 0);
    measure("parse and entries as singles", plain, documents, true, 0);
    measure("parse and singles, with directories", path, documents, true, 0);
    measure("parse and entries as chunks", plain, documents, true, 1000000);
    measure("parse and chunks, with directories", path, documents, true, 1000000);
    mapping_unref(plain);
    mapping_unref(path);
    arena_deinit(&arena);
    return 0;
}
