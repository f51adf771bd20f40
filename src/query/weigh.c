/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics for scores: how rare a term is, how long a field's texts are. See README.md, "Scores".
 *
 * Nothing here depends on the plan, so that a planned search and a full scan give equal scores (invariant 2).
 */
#include "query/matcher.h"
#include "base/real.h"

#include "mapping/entry_range.h"
#include "core/documents/births.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLE_DOCUMENTS = 1000, TERM_DOCUMENTS_MAX = 10000, TERM_KEYS_MAX = 64 };

/* One term of one matcher. */
struct weighed {
    struct matcher *matcher;
    const struct mapping_field *field;
    struct value value;
    struct term_weight *weight;
    float boost;
    bool found; /* entries say which documents have it */
    uint64_t with_field, with_term, length; /* of the sample */
};

static int by_value(const void *a, const void *b)
{
    return value_compare(a, b);
}

/* How many of the values are others than those before: a field without lengths has each once. */
static size_t distinct(const struct value *values, size_t count, struct arena *arena)
{
    if (count < 2)
        return count;
    struct value *sorted = arena_alloc(arena, count * sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    size_t found = 1;
    for (size_t i = 1; i < count; i++)
        found += value_compare(&sorted[i - 1], &sorted[i]) != 0;
    return found;
}

static void weigh_document(struct weighed *terms, size_t count, struct subject *subject)
{
    for (size_t i = 0; i < count; i++) {
        struct value *values = NULL;
        size_t value_count = subject_field(subject, terms[i].field, &values);
        terms[i].with_field += value_count > 0;
        terms[i].length += terms[i].weight->norms ? value_count : distinct(values, value_count, &subject->arena);
        for (size_t v = 0; v < value_count; v++) {
            if (value_compare(&values[v], &terms[i].value) == 0) {
                terms[i].with_term++;
                break;
            }
        }
    }
}

static int sample(const struct binder *binder, const struct view *view, struct weighed *terms, size_t count,
                  size_t *ret_documents)
{
    tl_cleanup(doc_scan_freep) struct doc_scan *scan = doc_scan_new(view, binder->index->number, DOC_TYPE_ANY);
    struct subject subject;
    struct slice id;
    struct doc doc;
    uint16_t type;
    int r = 0;
    size_t documents = 0;
    subject_init(&subject, binder->index, binder->arena);
    while (documents <= SAMPLE_DOCUMENTS && (r = doc_scan_next(scan, &type, &id, &doc)) == 0) {
        if (documents++ == SAMPLE_DOCUMENTS)
            break;
        subject_set(&subject, type, id, &doc);
        weigh_document(terms, count, &subject);
        if (subject.error != 0)
            r = subject.error;
    }
    subject_deinit(&subject);
    *ret_documents = documents;
    return r == DOC_SCAN_END || r == DOC_TOO_OLD ? 0 : r;
}

/* Document keys, each once. */
struct few_keys {
    struct slice *items; /* holds TERM_KEYS_MAX */
    size_t count;
};

static bool has_key(const struct few_keys *keys, struct slice key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (slice_equal(keys->items[i], key))
            return true;
    }
    return false;
}

/* Adds what entries name in a range. Returns: 0; ENTRY_SCAN_END where there are too many; fatal codes. */
static int few_of_range(const struct binder *binder, const struct view *view, const struct entry_range *range,
                        struct few_keys *keys)
{
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(view, range);
    struct entry_hit hit;
    int r;
    while ((r = entry_scan_next(scan, &hit)) == 0) {
        if (range->prefix &&
            has_key(keys, hit.document_key)) /* one value names a document once, paths below it may not */
            continue;
        if (keys->count == TERM_KEYS_MAX)
            return ENTRY_SCAN_END;
        keys->items[keys->count++] = arena_copy(binder->arena, hit.document_key);
    }
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Reads what entries name for a term. Few documents are kept for the plan, which need not look them up again.
 * Returns: 0 with the count; ENTRY_SCAN_END where there are many; fatal codes.
 */
static int few_documents(const struct binder *binder, const struct view *view, const struct weighed *term,
                         const struct entry_range *ranges, size_t range_count, uint64_t *ret_count)
{
    struct few_keys keys = {arena_alloc(binder->arena, TERM_KEYS_MAX * sizeof *keys.items), 0};
    for (size_t i = 0; i < range_count; i++) {
        int r = few_of_range(binder, view, &ranges[i], &keys);
        if (r != 0)
            return r;
    }
    if (term->matcher->kind == MATCHER_TERMS && view->overlay == NULL) {
        term->matcher->terms.keys = keys.items;
        term->matcher->terms.key_count = keys.count;
    }
    *ret_count = keys.count;
    return 0;
}

static int term_documents(const struct binder *binder, const struct view *view, const struct weighed *term,
                          uint64_t *ret_count)
{
    struct entry_range *ranges;
    size_t count = entry_ranges_of_value(binder->index->number, term->field, &term->value, binder->arena, &ranges);
    size_t total = 0;
    int r = few_documents(binder, view, term, ranges, count, ret_count);
    if (r != ENTRY_SCAN_END)
        return r;
    for (size_t i = 0; i < count; i++) {
        size_t hits;
        r = entry_estimate(view, &ranges[i], TERM_DOCUMENTS_MAX - total, &hits);
        if (r < 0)
            return tl_trace(r);
        total += hits;
    }
    *ret_count = total;
    return 0;
}

/* Estimates from a sample where there are more documents than it holds. */
static int weigh_term(const struct binder *binder, const struct view *view, struct weighed *term, size_t sampled)
{
    double scale = 1;
    uint64_t total = binder->index->document_count;
    if (sampled > SAMPLE_DOCUMENTS && total > SAMPLE_DOCUMENTS)
        scale = (double)total / SAMPLE_DOCUMENTS;
    double with_field = (double)term->with_field * scale, with_term = (double)term->with_term * scale;
    if (sampled > SAMPLE_DOCUMENTS && term->found) {
        uint64_t counted;
        int r = term_documents(binder, view, term, &counted);
        if (r != 0)
            return r;
        with_term = (double)counted;
    }
    if (with_term > with_field)
        with_field = with_term;
    /* 5.6 takes a field without lengths as it is; 7.10 has each for one long, and their mean for what it is. */
    bool known = term->length > 0 && (term->weight->norms || binder->context->dialect == DIALECT_7);
    term->weight->old = binder->context->dialect == DIALECT_5;
    term->weight->mean_length = known ? (double)term->length / (double)term->with_field : 1;
    float idf = (float)real_log(1 + (with_field - with_term + 0.5) / (with_term + 0.5));
    term->weight->idf = idf;
    term->weight->weight = term->boost * 2.2f * idf;
    return 0;
}

static size_t collect(const struct binder *binder, struct weighed *terms)
{
    size_t count = 0;
    for (size_t i = 0; i < binder->terms.count; i++) {
        struct matcher *matcher = binder->terms.items[i];
        bool phrase = matcher->kind == MATCHER_PHRASE;
        for (size_t t = 0; t < (phrase ? matcher->phrase.count : 1); t++) {
            struct weighed term = {.matcher = matcher, .field = matcher->field, .boost = matcher->boost};
            term.weight = phrase ? &matcher->phrase.weights[t] : &matcher->terms.weight;
            term.value = phrase ? (struct value){.field = matcher->field->number,
                                                 .kind = VALUE_BYTES,
                                                 .bytes = matcher->phrase.tokens[t]}
                                : matcher->terms.values[0];
            if (terms != NULL)
                terms[count] = term;
            count++;
        }
    }
    return count;
}

/* Keywords have no length, so their weights need no sample where entries can count them. */
static bool needs_sample(const struct binder *binder, const struct weighed *terms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (terms[i].weight->norms || !terms[i].found)
            return true;
    }
    return binder->index->document_count <= SAMPLE_DOCUMENTS;
}

int query_weigh(struct binder *binder, const struct view *view)
{
    size_t count = collect(binder, NULL), sampled = SAMPLE_DOCUMENTS + 1;
    if (count == 0)
        return 0;
    struct weighed *terms = arena_alloc(binder->arena, count * sizeof *terms);
    collect(binder, terms);
    struct births births;
    int r = births_begin(view, binder->index->number, binder->index->mapping, &births);
    if (r != 0)
        return tl_trace(r);
    for (size_t i = 0; i < count; i++)
        terms[i].found = field_is_found(terms[i].field) && !births_concern(&births, terms[i].field);
    bool sampling = needs_sample(binder, terms, count);
    r = sampling ? sample(binder, view, terms, count, &sampled) : 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!sampling)
            terms[i].with_field = SAMPLE_DOCUMENTS; /* as if every document had the field */
        r = weigh_term(binder, view, &terms[i], sampled);
    }
    return r;
}
