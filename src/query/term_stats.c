/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics for scores: the document frequency of terms and the mean length of fields. See
 * README.md, "Scores".
 *
 * They do not depend on the plan, so a planned search and a full scan have equal scores (invariant
 * 2).
 */
#include "query/bound_query.h"
#include "base/real.h"

#include "mapping/entry_range.h"
#include "core/documents/path_lookup.h"

#include <math.h>
#include <stdlib.h>

enum {
    SAMPLE_DOCUMENTS = 1000,
    SAMPLE_TEXTS = 256,
    TERM_DOCUMENTS_MAX = 10000,
    TERM_KEYS_MAX = 64,
    TERM_RANGES_MAX = 64
};

/*
 * Account steps: to read a document; to seek to a range in the store; to read one of its entries;
 * to examine a value.
 */
enum { STEPS_OF_DOCUMENT = 500, STEPS_OF_RANGE = 1000, STEPS_OF_ENTRY = 200, STEPS_OF_VALUE = 20 };

/* Statistics of a value of one or more terms in a sample. */
struct value_count {
    struct field_value value;
    uint64_t documents; /* number of documents that have it */
    size_t last;        /* the last of them, numbered from 1; 0: none */
};

/* Statistics of a field of the terms in a sample. */
struct field_count {
    const struct mapping_field *field;
    bool frequencies;           /* `length` counts all values, not only distinct ones */
    uint64_t documents;         /* number of documents that have it */
    uint64_t length;            /* sum of its lengths in these documents, in values */
    struct value_count *values; /* sorted, no duplicates */
    size_t value_count;
};

/* A term of a bound query, with the statistics that its weight needs. */
struct scored_term {
    struct bound_query *matcher;
    const struct mapping_field *field;
    struct field_value value;
    struct term_weight *weight;
    float boost;
    bool found;                       /* entries name the documents that have the term */
    bool moves;                       /* renames affect the field: a document with an entry may not have the term now */
    const struct field_count *counts; /* statistics of its field in the sample */
    const struct value_count *count;  /* statistics of its value in the sample */
};

/*
 * Statistics of the documents read. Each value of a document is looked up among the terms' values,
 * so that a document's cost is proportional to its size, independent of the number of terms.
 */
struct sample {
    size_t documents;
    bool more;      /* the index has more documents */
    bool all_found; /* entries name the documents of every term */
    struct field_count *fields;
    size_t field_count;
};

static int by_value(const void *a, const void *b)
{
    return field_value_compare(a, b);
}

size_t field_value_distinct(const struct field_value *values, size_t count, struct arena *arena)
{
    if (count < 2)
        return count;
    struct field_value *sorted = arena_alloc(arena, count * sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    size_t found = 1;
    for (size_t i = 1; i < count; i++)
        found += field_value_compare(&sorted[i - 1], &sorted[i]) != 0;
    return found;
}

/* Counts the terms' values that the current document has. */
static void count_values(struct field_count *counts, const struct field_value *values, size_t count, size_t document)
{
    for (size_t i = 0; i < count; i++) {
        size_t low = 0, high = counts->value_count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (field_value_compare(&counts->values[middle].value, &values[i]) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        struct value_count *found = low < counts->value_count ? &counts->values[low] : NULL;
        if (found == NULL || found->last == document || field_value_compare(&found->value, &values[i]) != 0)
            continue;
        found->last = document;
        found->documents++;
    }
}

static void sample_document(struct sample *sample, struct match_doc *match_doc)
{
    sample->documents++;
    for (size_t i = 0; i < sample->field_count; i++) {
        struct field_count *counts = &sample->fields[i];
        const struct field_value *values = NULL;
        size_t value_count = match_doc_field(match_doc, counts->field, &values);
        if (!account_take(match_doc->account, (1 + value_count) * STEPS_OF_VALUE))
            return;
        counts->documents += value_count > 0;
        counts->length +=
            counts->frequencies ? value_count : field_value_distinct(values, value_count, &match_doc->arena);
        count_values(counts, values, value_count, sample->documents);
    }
}

/*
 * Returns: whether the sample is large enough. Mean lengths need fewer documents than document
 * frequencies, which are usually counted from entries.
 */
static bool is_sample_sufficient(const struct binder *binder, const struct sample *sample)
{
    if (binder->index->document_count <= 2 * SAMPLE_DOCUMENTS) /* small indices are counted exactly */
        return false;
    for (size_t i = 0; sample->all_found && i < sample->field_count; i++)
        if (sample->fields[i].documents < SAMPLE_TEXTS)
            return false;
    return sample->all_found;
}

static bool same_field(const struct scored_term *a, const struct scored_term *b)
{
    return a->field == b->field && a->weight->frequencies == b->weight->frequencies;
}

/* Orders terms by field, in an arbitrary order, then by value. */
static int by_field(const void *a, const void *b)
{
    const struct scored_term *one = *(struct scored_term *const *)a, *other = *(struct scored_term *const *)b;
    if (one->field != other->field)
        return (uintptr_t)one->field < (uintptr_t)other->field ? -1 : 1;
    if (one->weight->frequencies != other->weight->frequencies)
        return one->weight->frequencies ? 1 : -1;
    return field_value_compare(&one->value, &other->value);
}

/* Makes an empty sample with the fields and values of the terms. */
static void sample_init(struct sample *sample, struct arena *arena, struct scored_term *terms, size_t count)
{
    struct scored_term **sorted = arena_alloc(arena, count * sizeof(struct scored_term *));
    struct value_count *values = arena_zalloc(arena, count * sizeof *values);
    *sample = (struct sample){.all_found = true, .fields = arena_zalloc(arena, count * sizeof *sample->fields)};
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &terms[i];
        sample->all_found = sample->all_found && terms[i].found;
    }
    qsort(sorted, count, sizeof *sorted, by_field);
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0 || !same_field(sorted[i - 1], sorted[i]);
        if (first)
            sample->fields[sample->field_count++] = (struct field_count){
                .field = sorted[i]->field, .frequencies = sorted[i]->weight->frequencies, .values = values};
        struct field_count *counts = &sample->fields[sample->field_count - 1];
        if (first || field_value_compare(&sorted[i - 1]->value, &sorted[i]->value) != 0) {
            values++->value = sorted[i]->value;
            counts->value_count++;
        }
        sorted[i]->counts = counts;
        sorted[i]->count = &counts->values[counts->value_count - 1];
    }
}

static int take_sample(const struct binder *binder, const struct view *view, struct sample *sample)
{
    tl_cleanup(doc_scan_freep) struct doc_scan *scan = doc_scan_new(view, binder->index->number, DOC_TYPE_ANY);
    struct match_doc match_doc;
    struct slice id;
    struct doc doc;
    uint16_t type;
    int r = 0;
    match_doc_init(&match_doc, binder->index, binder->arena);
    match_doc.account = binder->account;
    while (r == 0 && (r = doc_scan_next(scan, &type, &id, &doc)) == 0) {
        if (sample->documents == SAMPLE_DOCUMENTS || is_sample_sufficient(binder, sample)) {
            sample->more = true;
            break;
        }
        if (!account_take(binder->account, STEPS_OF_DOCUMENT + doc.source.len))
            break;
        match_doc_set(&match_doc, type, id, &doc);
        sample_document(sample, &match_doc);
        r = match_doc.error;
    }
    match_doc_deinit(&match_doc);
    return r == DOC_SCAN_END || r == DOC_TOO_OLD ? 0 : r;
}

/* A set of document keys. */
struct key_set {
    struct slice *items; /* capacity TERM_KEYS_MAX */
    size_t count;
};

static bool has_key(const struct key_set *keys, struct slice key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (slice_equal(keys->items[i], key))
            return true;
    }
    return false;
}

/* The entry ranges that name the documents of a term; incomplete if `cut`. */
struct term_ranges {
    struct arena *arena;
    struct entry_range *items;
    size_t count, capacity;
    bool cut;
};

static bool same_range(const struct entry_range *a, const struct entry_range *b)
{
    return a->field == b->field && a->prefix == b->prefix && field_value_compare(a->low, b->low) == 0;
}

/* Adds a range once: the origin of an unmoved path is the path itself, whose range was added already. */
static bool add_range(void *context, const struct entry_range *range)
{
    struct term_ranges *ranges = context;
    for (size_t i = 0; i < ranges->count; i++)
        if (same_range(&ranges->items[i], range))
            return true;
    ranges->cut = ranges->count == TERM_RANGES_MAX;
    if (ranges->cut)
        return false;
    ranges->items = arena_grow(ranges->arena, ranges->items, ranges->count, &ranges->capacity, sizeof *range);
    ranges->items[ranges->count++] = *range;
    return true;
}

static int find_ranges(const struct binder *binder, const struct path_lookup *path_lookup,
                       const struct scored_term *term, struct term_ranges *ranges)
{
    struct entry_range *plain;
    size_t count = entry_ranges_of_value(binder->index->number, term->field, &term->value, binder->arena, &plain);
    *ranges = (struct term_ranges){.arena = binder->arena};
    for (size_t i = 0; i < count; i++)
        add_range(ranges, &plain[i]);
    int r = !term->moves ? 0
                         : path_lookup_value(path_lookup, term->value.bytes, term->field->full_path_field != NULL,
                                             binder->arena, add_range, ranges);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Adds the documents that the entries of a range name.
 * Returns: 0; ENTRY_SCAN_END: too many documents, or the account has ended; fatal codes.
 */
static int add_documents_of_range(const struct binder *binder, const struct view *view, const struct entry_range *range,
                                  bool repeat, struct key_set *keys)
{
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(view, range);
    struct entry_hit hit;
    int r;
    while ((r = entry_scan_next(scan, &hit)) == 0) {
        if ((range->prefix || repeat) &&
            has_key(keys, hit.document_key)) /* a value names a document once, a path prefix may not */
            continue;
        if (keys->count == TERM_KEYS_MAX || !account_take(binder->account, STEPS_OF_ENTRY))
            return ENTRY_SCAN_END;
        keys->items[keys->count++] = arena_copy(binder->arena, hit.document_key);
    }
    return r < 0 ? tl_trace(r) : 0;
}

/* Counts the documents that still have the term at their current path. Returns: 0; fatal codes. */
static int count_at_current_path(const struct binder *binder, const struct view *view, const struct scored_term *term,
                                 const struct key_set *keys, uint64_t *ret_count)
{
    struct scored_term counted = *term;
    struct sample sample;
    struct match_doc match_doc;
    struct slice id;
    uint16_t type;
    int r = 0;
    sample_init(&sample, binder->arena, &counted, 1);
    match_doc_init(&match_doc, binder->index, binder->arena);
    match_doc.account = binder->account;
    for (size_t i = 0; r == 0 && i < keys->count && account_take(binder->account, STEPS_OF_DOCUMENT); i++) {
        struct doc doc;
        r = doc_get_key(view, binder->index->number, keys->items[i], &doc);
        if (r != 0) { /* deleted, or the view is too old, which the search detects */
            r = r < 0 ? tl_trace(r) : 0;
            continue;
        }
        if (entry_document_key_parse(keys->items[i], &type, &id)) {
            match_doc_set(&match_doc, type, id, &doc);
            sample_document(&sample, &match_doc);
            r = match_doc.error;
        }
        doc_release(&doc);
    }
    match_doc_deinit(&match_doc);
    *ret_count = counted.count->documents;
    return r;
}

/*
 * Counts a term's documents exactly, if there are few. Their keys are retained for the plan, which
 * need not read the entries again.
 * Returns: 0 with the count; ENTRY_SCAN_END: there are too many; fatal codes.
 */
static int count_documents_exactly(const struct binder *binder, const struct view *view, const struct scored_term *term,
                                   const struct term_ranges *ranges, uint64_t *ret_count)
{
    struct key_set keys = {arena_alloc(binder->arena, TERM_KEYS_MAX * sizeof *keys.items), 0};
    for (size_t i = 0; i < ranges->count; i++) {
        int r = add_documents_of_range(binder, view, &ranges->items[i], term->moves, &keys);
        if (r != 0)
            return r;
    }
    if (term->matcher->kind == BOUND_TERMS && view->overlay == NULL) {
        term->matcher->terms.keys = keys.items;
        term->matcher->terms.key_count = keys.count;
    }
    *ret_count = keys.count;
    return term->moves ? count_at_current_path(binder, view, term, &keys, ret_count) : 0;
}

static int term_documents(const struct binder *binder, const struct view *view, const struct path_lookup *path_lookup,
                          const struct scored_term *term, uint64_t *ret_count)
{
    struct term_ranges ranges;
    size_t total = 0;
    int r = find_ranges(binder, path_lookup, term, &ranges);
    if (r == 0)
        r = ranges.cut ? ENTRY_SCAN_END : count_documents_exactly(binder, view, term, &ranges, ret_count);
    if (r != ENTRY_SCAN_END)
        return r;
    for (size_t i = 0; i < ranges.count; i++) {
        size_t hits;
        r = entry_estimate(view, &ranges.items[i], TERM_DOCUMENTS_MAX - total, &hits);
        if (r < 0)
            return tl_trace(r);
        total += hits;
        if (!account_take(binder->account, STEPS_OF_RANGE + hits * STEPS_OF_ENTRY))
            break;
    }
    *ret_count = total;
    return 0;
}

/* Computes the weight of a term. Extrapolates from the sample if it is not the whole index. */
static int compute_weight(const struct binder *binder, const struct view *view, const struct path_lookup *path_lookup,
                          struct scored_term *term, const struct sample *sample)
{
    double scale = 1;
    uint64_t total = binder->index->document_count;
    if (sample->more && total > sample->documents)
        scale = (double)total / (double)sample->documents;
    double with_field = (double)term->counts->documents * scale, with_term = (double)term->count->documents * scale;
    if (sample->more && term->found) {
        uint64_t counted = 0;
        int r = term_documents(binder, view, path_lookup, term, &counted);
        if (r != 0)
            return r;
        with_term = (double)counted;
    }
    if (with_term > with_field)
        with_field = with_term;
    /* Without norms, 5.6 takes the mean length as 1; 7.10 uses the real mean. */
    bool known = term->counts->length > 0 && (term->weight->norms || binder->context->dialect == DIALECT_7);
    term->weight->lucene6 = binder->context->dialect == DIALECT_5;
    term->weight->mean_length = known ? (double)term->counts->length / (double)term->counts->documents : 1;
    float idf = (float)real_log(1 + (with_field - with_term + 0.5) / (with_term + 0.5));
    term->weight->idf = idf;
    term->weight->weight = term->boost * 2.2f * idf;
    return 0;
}

static size_t collect_terms(const struct binder *binder, struct scored_term *terms)
{
    size_t count = 0;
    for (size_t i = 0; i < binder->terms.count; i++) {
        struct bound_query *matcher = binder->terms.items[i];
        bool phrase = matcher->kind == BOUND_PHRASE;
        for (size_t t = 0; t < (phrase ? matcher->phrase.count : 1); t++) {
            struct scored_term term = {.matcher = matcher, .field = matcher->field, .boost = matcher->boost};
            term.weight = phrase ? &matcher->phrase.weights[t] : &matcher->terms.weight;
            term.value = phrase ? (struct field_value){.field = matcher->field->number,
                                                       .kind = FIELD_VALUE_BYTES,
                                                       .bytes = matcher->phrase.tokens[t]}
                                : matcher->terms.values[0];
            if (terms != NULL)
                terms[count] = term;
            count++;
        }
    }
    return count;
}

/*
 * Returns: whether a sample must be read. Keywords have no length, so entries suffice for their
 * weights.
 */
static bool needs_sample(const struct binder *binder, const struct scored_term *terms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (terms[i].weight->norms || terms[i].weight->frequencies || !terms[i].found)
            return true;
    }
    return binder->index->document_count <= SAMPLE_DOCUMENTS;
}

int query_load_term_stats(struct binder *binder, const struct view *view)
{
    struct sample sample;
    size_t count = collect_terms(binder, NULL);
    if (count == 0)
        return 0;
    struct scored_term *terms = arena_alloc(binder->arena, count * sizeof *terms);
    collect_terms(binder, terms);
    struct path_lookup path_lookup;
    int r = path_lookup_init(view, binder->index->number, binder->index->mapping, &path_lookup);
    if (r != 0)
        return tl_trace(r);
    for (size_t i = 0; i < count; i++) {
        terms[i].moves = path_lookup_can_find(&path_lookup, terms[i].field);
        terms[i].found =
            field_is_covered(terms[i].field) && (terms[i].moves || !path_lookup_affects(&path_lookup, terms[i].field));
    }
    bool sampling = needs_sample(binder, terms, count);
    sample_init(&sample, binder->arena, terms, count);
    if (sampling) {
        r = take_sample(binder, view, &sample);
    } else { /* assume that every document has the field */
        sample.documents = SAMPLE_DOCUMENTS;
        sample.more = true;
        for (size_t i = 0; i < sample.field_count; i++)
            sample.fields[i].documents = SAMPLE_DOCUMENTS;
    }
    for (size_t i = 0; r == 0 && i < count && account_take(binder->account, STEPS_OF_VALUE); i++)
        r = compute_weight(binder, view, &path_lookup, &terms[i], &sample);
    return r;
}
