/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspecting a store; see inspect.h.
 *
 * Entries are compared both ways without a table of all: for each field, the entries that documents
 * must have are counted and their hashes added up, and so are those that are there. Equal sums of
 * 128 bits mean equal sets; only for a field where they differ is each entry looked for by itself,
 * to say which one is missing.
 */
#include "cli/inspect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "cli/escape.h"
#include "core/documents/path_lookup.h"
#include "core/documents/doc.h"
#include "mapping/document.h"
#include "mapping/entry.h"

enum { FAULTS_REPORTED_MAX = 20 };

/* A fingerprint of a set of entries: two sets with equal ones are taken for equal. */
struct entry_sum {
    uint64_t count;
    uint64_t hashes[2];
};

struct field_sums {
    struct entry_sum expected;
    struct entry_sum found;
};

/* One index while it is inspected. */
struct index_inspection {
    struct inspection *all;
    const struct catalog_index *index;
    struct arena arena; /* reset for each document */
    int64_t *seq_nos;   /* of all documents */
    size_t seq_no_count;
    size_t seq_no_capacity;
    uint64_t documents;
    struct field_sums *fields; /* by number */
    int naming;                /* the field whose missing entries are being named; -1: none */
};

void inspect_fault(struct inspection *inspection, const char *format, ...)
{
    inspection->faults++;
    if (inspection->faults_reported >= FAULTS_REPORTED_MAX)
        return;
    inspection->faults_reported++;
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) >= 0)
        fprintf(inspection->report, "%s\n", escape_terminal_line(slice_from(text)));
    va_end(arguments);
    free(text);
}

static void note_seq_no(struct index_inspection *in, int64_t seq_no)
{
    if (in->seq_no_count == in->seq_no_capacity) {
        in->seq_no_capacity = in->seq_no_capacity ? in->seq_no_capacity * 2 : 1024;
        in->seq_nos = mem_realloc(in->seq_nos, in->seq_no_capacity * sizeof *in->seq_nos);
    }
    in->seq_nos[in->seq_no_count++] = seq_no;
}

static void sum_add(struct entry_sum *sum, struct slice value, struct slice document_key, uint64_t batch)
{
    uint64_t v = slice_hash(value);
    uint64_t d = slice_hash(document_key);
    uint64_t mixed = (v ^ (d + batch) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    sum->count++;
    sum->hashes[0] += mixed ^ mixed >> 29;
    mixed = (d ^ (v + batch) * 0xd6e8feb86659fd93u) * 0x94d049bb133111ebu;
    sum->hashes[1] += mixed ^ mixed >> 31;
}

/* A value with its encoded form, to drop equal ones: a word that a text has twice has one entry. */
struct expected_entry {
    struct slice bytes;
    const struct field_value *value;
};

static int compare_expected(const void *a, const void *b)
{
    const struct expected_entry *x = a;
    const struct expected_entry *y = b;
    if (x->value->field != y->value->field)
        return x->value->field < y->value->field ? -1 : 1;
    return slice_compare(x->bytes, y->bytes);
}

static size_t collect_expected(struct index_inspection *in, const struct document *document, struct expected_entry *to)
{
    size_t count = 0;
    for (size_t i = 0; i < document->value_count; i++) {
        const struct field_value *value = &document->values[i];
        const struct mapping_field *field = mapping_field_by_number(in->index->mapping, value->field);
        if (field == NULL || !field_has_entries(field))
            continue;
        struct buf bytes = BUF_INIT(BUF_UNLIMITED);
        (void)entry_value_encode(&bytes, value);
        to[count++] = (struct expected_entry){arena_copy(&in->arena, buf_as_slice(&bytes)), value};
        buf_deinit(&bytes);
    }
    qsort(to, count, sizeof *to, compare_expected);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_expected(&to[kept - 1], &to[i]) != 0)
            to[kept++] = to[i];
    return kept;
}

static int name_missing(struct index_inspection *in, struct slice document_key, struct slice id, uint64_t batch,
                        const struct field_value *value)
{
    int r = entry_find(in->all->view, in->index->number, document_key, value, batch);
    if (r == ENTRY_SCAN_END) {
        const struct mapping_field *field = mapping_field_by_number(in->index->mapping, value->field);
        inspect_fault(in->all, "index %.*s, document %.*s: an entry of field %.*s is missing",
                      SLICE_ARG(in->index->name), SLICE_ARG(id), SLICE_ARG(field->path));
    }
    return r < 0 ? tl_trace(r) : 0;
}

static int expect_entries(struct index_inspection *in, struct slice document_key, struct slice id,
                          const struct doc *doc, const struct document *document)
{
    struct expected_entry *expected = arena_alloc(&in->arena, (document->value_count + 1) * sizeof *expected);
    size_t count = collect_expected(in, document, expected);
    for (size_t i = 0; i < count; i++) {
        int field = expected[i].value->field;
        if (in->naming < 0) {
            sum_add(&in->fields[field].expected, expected[i].bytes, document_key,
                    doc_entry_batch(doc, (uint16_t)field));
        } else if (field == in->naming) {
            int r = name_missing(in, document_key, id, doc_entry_batch(doc, (uint16_t)field), expected[i].value);
            if (r != 0)
                return tl_trace(r);
        }
    }
    return 0;
}

static void check_record(struct index_inspection *in, struct slice id, const struct doc *doc)
{
    in->documents++;
    note_seq_no(in, doc->stored_seq_no); /* documents that were renamed together share one */
    if (doc->version < 0 || doc->seq_no < 0 || doc->seq_no >= catalog_index_next_seq_no(in->index))
        inspect_fault(in->all, "index %.*s, document %.*s: impossible version %" PRId64 " or sequence number %" PRId64,
                      SLICE_ARG(in->index->name), SLICE_ARG(id), doc->version, doc->seq_no);
}

static int check_document(struct index_inspection *in, uint16_t type, struct slice id, const struct doc *doc)
{
    const struct mapping_type *mapped = mapping_type_by_number(in->index->mapping, type);
    arena_reset(&in->arena);
    if (in->naming < 0)
        check_record(in, id, doc);
    if (mapped == NULL) {
        inspect_fault(in->all, "index %.*s, document %.*s: its type %u is not in the mapping",
                      SLICE_ARG(in->index->name), SLICE_ARG(id), type);
        return 0;
    }
    struct document document;
    int r = document_parse_stored(in->index->mapping, mapped, doc->stored, &in->arena, &document);
    if (r == TL_ERR_CORRUPT) {
        inspect_fault(in->all, "index %.*s, document %.*s: its source is not JSON", SLICE_ARG(in->index->name),
                      SLICE_ARG(id));
        return 0;
    }
    if (r != 0)
        return tl_trace(r);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    entry_document_key(&key, type, id);
    path_lookup_rewrite_values(in->index->mapping, &document, doc, document.values, document.value_count);
    r = expect_entries(in, buf_as_slice(&key), id, doc, &document);
    buf_deinit(&key);
    document_release(&document);
    return r;
}

static int check_documents(struct index_inspection *in)
{
    tl_cleanup(doc_scan_freep) struct doc_scan *scan = doc_scan_new(in->all->view, in->index->number, DOC_TYPE_ANY);
    for (;;) {
        uint16_t type;
        struct slice id;
        struct doc doc;
        int r = doc_scan_next(scan, &type, &id, &doc);
        if (r == DOC_SCAN_END)
            return 0;
        if (r != 0)
            return r < 0 ? tl_trace(r) : TL_ERR_CORRUPT;
        r = check_document(in, type, id, &doc);
        if (r != 0)
            return tl_trace(r);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void check_numbers(struct index_inspection *in)
{
    if (in->documents != catalog_index_documents(in->index))
        inspect_fault(in->all, "index %.*s: it has %" PRIu64 " documents, and its counter says %" PRIu64,
                      SLICE_ARG(in->index->name), in->documents, catalog_index_documents(in->index));
    if (in->seq_no_count > 1)
        qsort(in->seq_nos, in->seq_no_count, sizeof *in->seq_nos, compare_numbers);
    for (size_t i = 1; i < in->seq_no_count; i++)
        if (in->seq_nos[i] == in->seq_nos[i - 1])
            inspect_fault(in->all, "index %.*s: two documents have the sequence number %" PRId64,
                          SLICE_ARG(in->index->name), in->seq_nos[i]);
}

/*
 * Whether an entry belongs to the current version of its document. A field whose entries no query
 * uses any more may have entries of deleted values (mapping/README.md, invariant 8).
 */
static int judge_entry(struct index_inspection *in, const struct mapping_field *field, const struct entry_hit *hit,
                       bool *ret_current)
{
    struct doc doc;
    *ret_current = false;
    if (field == NULL)
        return 0;
    int r = doc_get_key_any(in->all->view, in->index->number, hit->document_key, &doc);
    if (r < 0)
        return tl_trace(r);
    *ret_current = r == 0 && !doc.deleted && doc_entry_batch(&doc, field->number) == hit->batch;
    if (!*ret_current && hit->batch == 0 && field_has_entries(field))
        inspect_fault(in->all, "index %.*s: it has an entry of a superseded version", SLICE_ARG(in->index->name));
    if (r != 0)
        return 0;
    doc_release(&doc);
    if (!*ret_current)
        return 0;
    r = doc_get_key(in->all->view, in->index->number, hit->document_key, &doc);
    *ret_current = r == 0; /* or it went with its session, and is yet to be swept away */
    if (r == 0)
        doc_release(&doc);
    return r < 0 ? tl_trace(r) : 0;
}

static int sum_entries(struct index_inspection *in)
{
    tl_cleanup(entry_scan_freep) struct entry_scan *walk = entry_walk_new(in->all->view, in->index->number);
    for (;;) {
        uint16_t number;
        struct entry_hit hit;
        bool current;
        int r = entry_walk_next(walk, &number, &hit);
        if (r == ENTRY_SCAN_END)
            return 0;
        const struct mapping_field *field = r == 0 ? mapping_field_by_number(in->index->mapping, number) : NULL;
        if (r != 0 || (r = judge_entry(in, field, &hit, &current)) != 0)
            return tl_trace(r);
        in->all->entries++;
        in->all->stale += !current;
        if (current && field_has_entries(field))
            sum_add(&in->fields[number].found, hit.value, hit.document_key, hit.batch);
    }
}

static int check_field(struct index_inspection *in, uint16_t number)
{
    const struct field_sums *sums = &in->fields[number];
    if (memcmp(&sums->expected, &sums->found, sizeof sums->found) == 0)
        return 0;
    const struct mapping_field *field = mapping_field_by_number(in->index->mapping, number);
    inspect_fault(in->all,
                  "index %.*s, field %.*s: it has %" PRIu64 " entries, which differ from the %" PRIu64
                  " that its documents must have",
                  SLICE_ARG(in->index->name), SLICE_ARG(field->path), sums->found.count, sums->expected.count);
    in->naming = number;
    return check_documents(in);
}

static int inspect_parts(struct index_inspection *in)
{
    int r = check_documents(in);
    if (r != 0)
        return tl_trace(r);
    check_numbers(in);
    r = sum_entries(in);
    for (uint16_t field = 0; r == 0 && field < mapping_field_count(in->index->mapping); field++)
        r = check_field(in, field);
    return r;
}

int inspect_index(struct inspection *inspection, const struct catalog_index *index)
{
    struct index_inspection in = {.all = inspection, .index = index, .arena = ARENA_INIT, .naming = -1};
    in.fields = mem_zalloc(mapping_field_count(index->mapping) * sizeof *in.fields);
    int r = inspect_parts(&in);
    inspection->documents += in.documents;
    arena_deinit(&in.arena);
    mem_free(in.seq_nos);
    mem_free(in.fields);
    return r == 0 ? 0 : tl_trace(r);
}
