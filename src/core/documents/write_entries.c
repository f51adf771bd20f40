/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which entries a changed document writes and removes, and in which shape they are (mapping/entry.h).
 *
 * A bulk writes its documents' entries in chunks, anything else writes singles. A single write to a document of a bulk
 * leaves what did not change in its chunks: the record keeps the chunks' batch and names the fields that have gone over to
 * singles, so that a change of two fields writes the entries of two fields. Beyond WRITE_SINGLE_FIELDS_MAX fields all go over.
 * A document that comes twice in one bulk is written in singles from the second time on, since a chunk of the same batch
 * would not tell its versions apart.
 */
#include <stdlib.h>

#include "core/catalog/counter.h"
#include "core/documents/provisional.h"
#include "core/documents/path_lookup.h"
#include "core/documents/doc.h"
#include "core/documents/write.h"
#include "core/documents/write_internal.h"
#include "core/step/unit.h"

/* --- The entries of a run ----------------------------------------------------------------------------------------- */

static struct entry_set *entries_of(struct write_executor *work, uint32_t index, uint64_t batch)
{
    struct write_entries *entries = work->entries;

    while (entries != NULL && (entries->set.index != index || entries->set.batch != batch))
        entries = entries->next;
    if (entries == NULL) {
        entries = arena_zalloc(&work->core->scratch, sizeof(*entries));
        entry_set_init(&entries->set, &work->core->scratch, index, batch);
        entries->next = work->entries;
        work->entries = entries;
    }
    return &entries->set;
}

static void put_entry(void *context, struct slice key, struct slice value)
{
    sink_put(context, SPACE_ENTRIES, key, value);
}

static void remove_entry(void *context, struct slice key)
{
    sink_delete(context, SPACE_ENTRIES, key);
}

/* Chunks of a transaction, which are no more than put (provisional.h). */
static void put_ahead(void *context, struct slice key, struct slice value)
{
    provisional_add(context, key, value);
}

void write_executor__flush_entries(struct write_executor *work)
{
    struct entry_sink sink = {put_entry, remove_entry, &work->sink};
    struct entry_sink ahead = {put_ahead, NULL, work->run->provisional};

    for (struct write_entries *entries = work->entries; entries != NULL; entries = entries->next)
        entry_set_emit(&entries->set, entries->set.batch != 0 && work->run->provisional != NULL ? &ahead : &sink);
    work->entries = NULL;
    arena_reset(&work->core->scratch);
    work->taken_apart = 0;
    if (work->batch != 0)
        work->batch = work->core->ts | ++work->flushes << 53;
}

/* --- Values by field ---------------------------------------------------------------------------------------------- */

/* Values of a document, those of one field together and in their order. */
struct values {
    struct field_value *items;
    size_t count;
};

struct placed_value {
    struct field_value value;
    size_t place;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed_value *x = a, *y = b;

    if (x->value.field != y->value.field)
        return x->value.field < y->value.field ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

/* A copy by field. Few values, the usual case, are put in order by insertion. */
static struct values by_field(const struct document *document, struct arena *arena)
{
    enum { FEW = 64 };
    size_t count = document->value_count;
    struct values sorted = {arena_alloc(arena, (count + 1) * sizeof(*sorted.items)), count};

    if (count <= FEW) {
        for (size_t i = 0; i < count; i++) {
            size_t at = i;
            for (; at > 0 && sorted.items[at - 1].field > document->values[i].field; at--)
                sorted.items[at] = sorted.items[at - 1];
            sorted.items[at] = document->values[i];
        }
        return sorted;
    }
    struct placed_value *placed = arena_alloc(arena, count * sizeof(*placed));
    for (size_t i = 0; i < count; i++)
        placed[i] = (struct placed_value){document->values[i], i};
    qsort(placed, count, sizeof(*placed), compare_placed);
    for (size_t i = 0; i < count; i++)
        sorted.items[i] = placed[i].value;
    return sorted;
}

/* Where the values of the field at `from` end. */
static size_t field_end(const struct values *values, size_t from)
{
    size_t end = from;

    while (end < values->count && values->items[end].field == values->items[from].field)
        end++;
    return end;
}

static bool same_value(const struct field_value *a, const struct field_value *b)
{
    return a->kind == b->kind && (a->kind == FIELD_VALUE_BYTES ? slice_equal(a->bytes, b->bytes) : a->i64 == b->i64);
}

/* --- From chunks to singles --------------------------------------------------------------------------------------- */

/* What of a document's values has to be written when it leaves a chunk. */
struct leaving {
    struct values fresh; /* to be put, unless they are among `stale` too */
    struct values stale; /* singles of before */
    uint16_t *singles;   /* fields in singles from now on, in order */
    size_t single_count;
};

static void append(struct values *to, const struct values *from, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        to->items[to->count++] = from->items[i];
}

static bool range_equal(const struct values *a, size_t a_from, size_t a_end, const struct values *b, size_t b_from,
                        size_t b_end)
{
    if (a_end - a_from != b_end - b_from)
        return false;
    for (size_t i = 0; i < a_end - a_from; i++)
        if (!same_value(&a->items[a_from + i], &b->items[b_from + i]))
            return false;
    return true;
}

/* Walks the fields of both versions side by side. With `all`, every field goes over to singles. */
static void leave_chunk(const struct values *now, const struct values *before, const struct doc *old, bool all,
                        struct leaving *leaving)
{
    size_t n = 0, b = 0;

    while (n < now->count || b < before->count) {
        uint16_t field = n < now->count ? now->items[n].field : UINT16_MAX;
        if (b < before->count && before->items[b].field < field)
            field = before->items[b].field;
        size_t n_end = n < now->count && now->items[n].field == field ? field_end(now, n) : n;
        size_t b_end = b < before->count && before->items[b].field == field ? field_end(before, b) : b;
        bool was_single = doc_has_single_entries(old, field);
        bool changed = !range_equal(now, n, n_end, before, b, b_end);
        if (was_single && (changed || all))
            append(&leaving->stale, before, b, b_end);
        if (changed || all)
            append(&leaving->fresh, now, n, n_end);
        if (changed || was_single)
            leaving->singles[leaving->single_count++] = field;
        n = n_end;
        b = b_end;
    }
}

/* Fields that were in singles and have no value any more stay named: their chunk entries are stale. */
static void keep_named(const struct doc *old, struct leaving *leaving)
{
    for (size_t i = 0; i < old->single_fields.len; i += 2) {
        uint16_t field = (uint16_t)((unsigned char)old->single_fields.data[i] << 8 | (unsigned char)old->single_fields.data[i + 1]);
        size_t at = 0;
        while (at < leaving->single_count && leaving->singles[at] < field)
            at++;
        if (at < leaving->single_count && leaving->singles[at] == field)
            continue;
        memmove(leaving->singles + at + 1, leaving->singles + at,
                (leaving->single_count - at) * sizeof(*leaving->singles));
        leaving->singles[at] = field;
        leaving->single_count++;
    }
}

static struct slice encode_singles(const struct leaving *leaving, struct arena *arena)
{
    char *bytes = arena_alloc(arena, leaving->single_count * 2 + 1);

    for (size_t i = 0; i < leaving->single_count; i++) {
        bytes[2 * i] = (char)(leaving->singles[i] >> 8);
        bytes[2 * i + 1] = (char)leaving->singles[i];
    }
    return slice_make(bytes, leaving->single_count * 2);
}

static struct leaving make_leaving(const struct values *now, const struct values *before, const struct doc *old,
                                   bool all, struct arena *arena)
{
    size_t fields = now->count + before->count + old->single_fields.len / 2 + 1;
    struct leaving leaving = {
        .fresh = {arena_alloc(arena, (now->count + 1) * sizeof(struct field_value)), 0},
        .stale = {arena_alloc(arena, (before->count + 1) * sizeof(struct field_value)), 0},
        .singles = arena_alloc(arena, fields * sizeof(uint16_t)),
    };

    leave_chunk(now, before, old, all, &leaving);
    keep_named(old, &leaving);
    return leaving;
}

/* --- What is called ----------------------------------------------------------------------------------------------- */

static struct slice document_key(const struct write_item_state *at)
{
    return slice_from_offset(at->key, DOC_KEY_PREFIX_BYTES - sizeof(uint16_t));
}

/* The values of the version before. */
static int old_values(struct write_executor *work, struct write_item_state *at, struct values *ret_values)
{
    struct document document;
    int r = document_parse_stored(at->index->mapping, at->type, at->old.stored, &work->core->scratch, &document);

    if (r < 0)
        return tl_trace(r);
    write_executor__count_source(work, at->old.stored, document.value_count);
    *ret_values = by_field(&document, &work->core->scratch);
    struct doc old = at->old; /* entries are written when it has been released */
    if (old.path_tracked)
        old.origin = arena_copy(&work->core->scratch, old.origin);
    path_lookup_rewrite_values(at->index->mapping, &document, &old, ret_values->items, ret_values->count);
    document_release(&document);
    return 0;
}

/* Those of the values before that are in singles. */
static int old_singles(struct write_executor *work, struct write_item_state *at, struct values *ret_values)
{
    struct values all;
    size_t kept = 0;
    int r;

    *ret_values = (struct values){NULL, 0};
    if (!at->state.live || (at->old.batch != 0 && at->old.single_fields.len == 0))
        return 0;
    r = old_values(work, at, &all);
    if (r != 0)
        return tl_trace(r);
    for (size_t i = 0; i < all.count; i++)
        if (at->old.batch == 0 || doc_has_single_entries(&at->old, all.items[i].field))
            all.items[kept++] = all.items[i];
    *ret_values = (struct values){all.items, kept};
    return 0;
}

/* A document that has chunks is changed by a single write. */
static int change_chunked(struct write_executor *work, struct write_item_state *at, const struct document *document,
                          struct doc *doc)
{
    struct arena *scratch = &work->core->scratch;
    struct values now = by_field(document, scratch), before;
    int r = old_values(work, at, &before);

    if (r != 0)
        return tl_trace(r);
    path_lookup_rewrite_values(at->index->mapping, document, doc, now.items, now.count);
    struct leaving leaving = make_leaving(&now, &before, &at->old, false, scratch);
    if (leaving.single_count > WRITE_SINGLE_FIELDS_MAX) {
        leaving = make_leaving(&now, &before, &at->old, true, scratch);
    } else {
        doc->batch = at->old.batch;
        doc->single_fields = encode_singles(&leaving, &work->core->arena);
    }
    entry_set_write(entries_of(work, at->index->number, 0), document_key(at), leaving.fresh.items, leaving.fresh.count,
                    leaving.stale.items, leaving.stale.count, 0);
    return 0;
}

/* Whether a document has the entries that it had. */
static bool same_entries(const struct doc *old, const struct doc *doc)
{
    return slice_equal(old->stored, doc->source) && old->path_tracked == doc->path_tracked &&
           (!doc->path_tracked || slice_equal(old->origin, doc->origin));
}

int write_executor__change_entries(struct write_executor *work, struct write_item_state *at, const struct document *document,
                            struct doc *doc)
{
    bool twice = work->batch != 0 && at->has_old && at->old.ts == doc->ts;
    write_executor__count_source(work, doc->source, document->value_count);
    uint64_t batch = twice ? 0 : work->batch;
    struct values singles;
    int r;

    if (at->state.live && same_entries(&at->old, doc)) {
        doc->batch = at->old.batch;
        doc->single_fields = at->old.single_fields.len == 0 ? SLICE_NONE : arena_copy(&work->core->arena, at->old.single_fields);
        return 0;
    }
    if (batch == 0 && !twice && at->state.live && at->old.batch != 0)
        return change_chunked(work, at, document, doc);
    r = old_singles(work, at, &singles);
    if (r != 0)
        return tl_trace(r);
    doc->batch = batch;
    if (batch != 0)
        counters__of(&work->core->counters, at->index->number)->posting_list_documents++;
    if (batch != 0 && singles.count > 0) { /* all singles of the run are in one set, which knows their order */
        entry_set_delete(entries_of(work, at->index->number, 0), document_key(at), singles.items, singles.count, 0);
        singles.count = 0;
    }
    path_lookup_rewrite_values(at->index->mapping, document, doc, document->values, document->value_count);
    entry_set_write(entries_of(work, at->index->number, batch), document_key(at), document->values,
                    document->value_count, singles.items, singles.count, 0);
    return 0;
}

int write_executor__remove_entries(struct write_executor *work, struct write_item_state *at)
{
    struct values singles;
    int r = old_singles(work, at, &singles);

    if (r == 0 && singles.count > 0)
        entry_set_delete(entries_of(work, at->index->number, 0), document_key(at), singles.items, singles.count, 0);
    return r;
}
