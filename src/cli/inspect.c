/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspecting a store; see inspect.h.
 *
 * Entries are compared both ways without a table of all: every entry that a document must have is looked up, and then
 * all entries of current versions are counted. When none was missing and the numbers are equal, there is none too many.
 */
#include "cli/inspect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "core/doc.h"
#include "mapping/document.h"
#include "mapping/entry.h"

enum { FAULTS_TOLD_MAX = 20 };

/* One index while it is inspected. */
struct index_inspection {
    struct inspection *all;
    const struct catalog_index *index;
    struct arena arena;   /* reset for each document */
    int64_t *seq_nos;     /* of all documents */
    size_t seq_no_count;
    size_t seq_no_capacity;
    uint64_t documents;
    uint64_t expected;    /* entries that the documents must have */
};

void inspect_fault(struct inspection *inspection, const char *format, ...)
{
    inspection->faults++;
    if (inspection->faults_told >= FAULTS_TOLD_MAX)
        return;
    inspection->faults_told++;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(inspection->report, format, arguments);
    va_end(arguments);
    fputc('\n', inspection->report);
}

static void note_seq_no(struct index_inspection *in, int64_t seq_no)
{
    if (in->seq_no_count == in->seq_no_capacity) {
        in->seq_no_capacity = in->seq_no_capacity ? in->seq_no_capacity * 2 : 1024;
        in->seq_nos = mem_realloc(in->seq_nos, in->seq_no_capacity * sizeof *in->seq_nos);
    }
    in->seq_nos[in->seq_no_count++] = seq_no;
}

/* Entries as bytes, to drop equal ones: a word that a text has twice has one entry. */
struct expected_entry {
    struct slice bytes; /* field and encoded value */
    const struct value *value;
};

static int compare_expected(const void *a, const void *b)
{
    return slice_compare(((const struct expected_entry *)a)->bytes, ((const struct expected_entry *)b)->bytes);
}

static size_t collect_expected(struct index_inspection *in, const struct document *document, struct expected_entry *to)
{
    size_t count = 0;
    for (size_t i = 0; i < document->value_count; i++) {
        const struct value *value = &document->values[i];
        const struct mapping_field *field = mapping_field_by_number(in->index->mapping, value->field);
        if (field == NULL || !field_has_entries(field))
            continue;
        struct buf bytes = BUF_INIT(BUF_UNLIMITED);
        buf_u32be(&bytes, value->field);
        (void)entry_value_encode(&bytes, value);
        to[count++] = (struct expected_entry){arena_copy(&in->arena, buf_view(&bytes)), value};
        buf_deinit(&bytes);
    }
    qsort(to, count, sizeof *to, compare_expected);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_expected(&to[i - 1], &to[i]) != 0)
            to[kept++] = to[i];
    return kept;
}

static int check_entries(struct index_inspection *in, struct slice document_key, struct slice id, const struct doc *doc,
                         const struct document *document)
{
    struct expected_entry *expected = arena_alloc(&in->arena, (document->value_count + 1) * sizeof *expected);
    size_t count = collect_expected(in, document, expected);
    for (size_t i = 0; i < count; i++) {
        int r = entry_find(in->all->view, in->index->number, document_key, expected[i].value, doc->batch);
        if (r < 0)
            return tl_trace(r);
        if (r == ENTRY_SCAN_END) {
            const struct mapping_field *field = mapping_field_by_number(in->index->mapping, expected[i].value->field);
            inspect_fault(in->all, "index %.*s, document %.*s: an entry of field %.*s is missing", SLICE_ARG(in->index->name),
                          SLICE_ARG(id), SLICE_ARG(field->path));
        }
    }
    in->expected += count;
    return 0;
}

static int check_document(struct index_inspection *in, uint16_t type, struct slice id, const struct doc *doc)
{
    const struct mapping_type *mapped = mapping_type_by_number(in->index->mapping, type);
    arena_reset(&in->arena);
    in->documents++;
    note_seq_no(in, doc->seq_no);
    if (doc->version < 1 || doc->seq_no < 0 || doc->seq_no >= catalog_index_next_seq_no(in->index))
        inspect_fault(in->all, "index %.*s, document %.*s: version %" PRId64 " or sequence number %" PRId64 " cannot be",
                      SLICE_ARG(in->index->name), SLICE_ARG(id), doc->version, doc->seq_no);
    if (mapped == NULL) {
        inspect_fault(in->all, "index %.*s, document %.*s: its type %u is not in the mapping", SLICE_ARG(in->index->name),
                      SLICE_ARG(id), type);
        return 0;
    }
    struct document document;
    int r = document_parse_stored(in->index->mapping, mapped, doc->source, &in->arena, &document);
    if (r == TL_ERR_CORRUPT) {
        inspect_fault(in->all, "index %.*s, document %.*s: its source is no JSON", SLICE_ARG(in->index->name), SLICE_ARG(id));
        return 0;
    }
    if (r != 0)
        return tl_trace(r);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    entry_document_key(&key, type, id);
    r = check_entries(in, buf_view(&key), id, doc, &document);
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
        inspect_fault(in->all, "index %.*s: %" PRIu64 " documents are there, %" PRIu64 " are counted", SLICE_ARG(in->index->name),
                      in->documents, catalog_index_documents(in->index));
    if (in->seq_no_count > 1)
        qsort(in->seq_nos, in->seq_no_count, sizeof *in->seq_nos, compare_numbers);
    for (size_t i = 1; i < in->seq_no_count; i++)
        if (in->seq_nos[i] == in->seq_nos[i - 1])
            inspect_fault(in->all, "index %.*s: two documents have the sequence number %" PRId64, SLICE_ARG(in->index->name),
                          in->seq_nos[i]);
}

/* Says whether an entry speaks of the present version of its document. */
static int judge_entry(struct index_inspection *in, const struct entry_hit *hit, bool *ret_current)
{
    struct doc doc;
    int r = doc_get_key(in->all->view, in->index->number, hit->document_key, &doc);
    if (r < 0)
        return tl_trace(r);
    *ret_current = r == 0 && doc.batch == hit->batch;
    if (!*ret_current && hit->batch == 0)
        inspect_fault(in->all, "index %.*s: an entry is left of a version that is gone", SLICE_ARG(in->index->name));
    if (r == 0)
        doc_release(&doc);
    return 0;
}

static int check_all_entries(struct index_inspection *in)
{
    tl_cleanup(entry_scan_freep) struct entry_scan *walk = entry_walk_new(in->all->view, in->index->number);
    uint64_t current_count = 0;
    for (;;) {
        uint16_t number;
        struct entry_hit hit;
        bool current;
        int r = entry_walk_next(walk, &number, &hit);
        if (r == ENTRY_SCAN_END)
            break;
        if (r != 0 || (r = judge_entry(in, &hit, &current)) != 0)
            return tl_trace(r);
        const struct mapping_field *field = mapping_field_by_number(in->index->mapping, number);
        in->all->entries++;
        in->all->stale += !current;
        current_count += current && field != NULL && field_has_entries(field);
    }
    if (current_count > in->expected)
        inspect_fault(in->all, "index %.*s: %" PRIu64 " entries name values that their documents do not have",
                      SLICE_ARG(in->index->name), current_count - in->expected);
    return 0;
}

int inspect_index(struct inspection *inspection, const struct catalog_index *index)
{
    struct index_inspection in = {.all = inspection, .index = index, .arena = ARENA_INIT};
    int r = check_documents(&in);
    if (r == 0) {
        check_numbers(&in);
        r = check_all_entries(&in);
    }
    inspection->documents += in.documents;
    arena_deinit(&in.arena);
    mem_free(in.seq_nos);
    return r == 0 ? 0 : tl_trace(r);
}
