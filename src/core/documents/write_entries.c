/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the entries that a changed document adds and removes, and their form
 * (mapping/entry.h).
 *
 * A bulk writes its documents' entries as posting lists, any other write as single entries. A
 * single write to a document of a bulk keeps the posting lists of fields that did not change: the
 * record keeps their batch and lists the fields that now have single entries. So changing two
 * fields writes the entries of two fields. Beyond WRITE_SINGLE_FIELDS_MAX fields, all fields get
 * single entries.
 *
 * In a transaction a single write also has posting lists once the single entries that the commit would
 * write take more than ENTRIES_PROVISIONAL_WORK: each of one document, in the store before the commit. Beyond that, the
 * committed version of a document that it replaces or deletes is converted to posting lists, by any write of it, so
 * that the commit need not delete its single entries.
 *
 * A document that occurs twice in a bulk gets single entries from its second occurrence on, because
 * posting lists of the same batch cannot distinguish its versions. In a transaction it gets posting lists of another
 * batch instead, so that the commit has no entries of it: further_batch().
 */
#include <stdlib.h>

#include "base/check.h"
#include "core/catalog/counter.h"
#include "core/command/command.h"
#include "core/documents/doc.h"
#include "core/documents/path_lookup.h"
#include "core/documents/provisional.h"
#include "core/documents/write.h"
#include "core/documents/write_internal.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

/*
 * Batch numbers of a unit: its timestamp, and above it the number of the batch. Numbers up to FURTHER_BATCHES_MAX are
 * given to further versions of a document, so that flushes have others left.
 */
enum { BATCH_NUMBER_SHIFT = 53, FURTHER_BATCHES_MAX = 500 };

/* --- The entries of a run ----------------------------------------------------------------------------------------- */

/* The sets that are passed count: a bulk has one for each of its indices, or for each version of a document. */
static struct entry_set *entries_of(struct write_executor *exec, uint32_t index, uint64_t batch)
{
    struct write_entries *entries = exec->entries;
    size_t passed = 0;

    for (; entries != NULL && (entries->set.index != index || entries->set.batch != batch); entries = entries->next)
        passed++;
    if (exec->core->command_version >= COMMAND_SINCE_ENTRY_SETS_COUNTED)
        write_executor__work(exec, passed / WORK_ENTRY_SETS);
    if (entries == NULL) {
        entries = arena_zalloc(&exec->core->scratch, sizeof(*entries));
        entry_set_init(&entries->set, &exec->core->scratch, index, batch);
        entries->next = exec->entries;
        exec->entries = entries;
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

/* Posting lists of a transaction, which are only ever put (provisional.h). */
static void put_provisional(void *context, struct slice key, struct slice value)
{
    provisional_add(context, key, value);
}

void write_executor__flush_entries(struct write_executor *exec)
{
    REQUIRE(exec->core->open && exec->run != NULL);
    struct entry_sink sink = {put_entry, remove_entry, &exec->sink};
    struct entry_sink provisional = {put_provisional, NULL, exec->run->provisional};

    size_t before = store_batch_count(exec->core->batch);
    size_t collected = 0, emitted = 0;

    for (struct write_entries *entries = exec->entries; entries != NULL; entries = entries->next) {
        bool ahead = entries->set.batch != 0 && exec->run->provisional != NULL;
        collected += entries->set.count;
        emitted += entry_set_emit(&entries->set, ahead ? &provisional : &sink);
    }
    exec->core->entry_changes += store_batch_count(exec->core->batch) - before;
    INSIST(emitted <= collected);
    if (write_executor__counts_values(exec))
        core__work(exec->core, WORK_ENTRY_SHARED * (uint64_t)(collected - emitted));
    exec->entries = NULL;
    exec->item_json.root = NULL; /* in the scratch arena */
    arena_reset(&exec->core->scratch);
    exec->parsed_bytes = 0;
    exec->singles = 0;
    if (exec->batch != 0)
        exec->batch = exec->core->ts | ++exec->flushes << BATCH_NUMBER_SHIFT;
}

/* --- Values by field ---------------------------------------------------------------------------------------------- */

/* Values of a document, grouped by field and in order. */
struct values {
    struct field_value *items;
    size_t count;
};

struct ordered_value {
    struct field_value value;
    size_t position;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered_value *x = a, *y = b;

    if (x->value.field != y->value.field)
        return x->value.field < y->value.field ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

/* Returns: a copy sorted by field. Up to FEW values, the usual case, are sorted by insertion. */
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
    struct ordered_value *ordered = arena_alloc(arena, count * sizeof(*ordered));
    for (size_t i = 0; i < count; i++)
        ordered[i] = (struct ordered_value){document->values[i], i};
    qsort(ordered, count, sizeof(*ordered), compare_ordered);
    for (size_t i = 0; i < count; i++)
        sorted.items[i] = ordered[i].value;
    return sorted;
}

/* Returns: the end of the values of the field at `from`. */
static size_t field_end(const struct values *values, size_t from)
{
    REQUIRE(from < values->count);
    size_t end = from;

    while (end < values->count && values->items[end].field == values->items[from].field)
        end++;
    return end;
}

static bool same_value(const struct field_value *a, const struct field_value *b)
{
    return a->kind == b->kind && (a->kind == FIELD_VALUE_BYTES ? slice_equal(a->bytes, b->bytes) : a->i64 == b->i64);
}

/* --- From posting lists to single entries ------------------------------------------------------------------------- */

/* The changes of single entries when fields leave the posting lists. */
struct field_changes {
    struct values fresh; /* to add, unless `stale` has them too */
    struct values stale; /* existing ones */
    uint16_t *fields;    /* fields with single entries afterwards, ascending */
    size_t field_count;
};

static void append_values(struct values *to, const struct values *from, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        to->items[to->count++] = from->items[i];
}

static bool range_equal(const struct values *a, size_t a_from, size_t a_end, const struct values *b, size_t b_from,
                        size_t b_end)
{
    REQUIRE(a_from <= a_end && a_end <= a->count && b_from <= b_end && b_end <= b->count);
    if (a_end - a_from != b_end - b_from)
        return false;
    for (size_t i = 0; i < a_end - a_from; i++)
        if (!same_value(&a->items[a_from + i], &b->items[b_from + i]))
            return false;
    return true;
}

/* Compares both versions field by field. `all`: every field gets single entries. */
static void compare_fields(const struct values *now, const struct values *before, const struct doc *old, bool all,
                           struct field_changes *changes)
{
    size_t n = 0, b = 0;

    while (n < now->count || b < before->count) {
        uint16_t field = n < now->count ? now->items[n].field : UINT16_MAX;
        if (b < before->count && before->items[b].field < field)
            field = before->items[b].field;
        size_t n_end = n < now->count && now->items[n].field == field ? field_end(now, n) : n;
        size_t b_end = b < before->count && before->items[b].field == field ? field_end(before, b) : b;
        INSIST(n_end > n || b_end > b); /* each turn takes a field of one version at least */
        bool was_single = doc_has_single_entries(old, field);
        bool changed = !range_equal(now, n, n_end, before, b, b_end);
        if (was_single && (changed || all))
            append_values(&changes->stale, before, b, b_end);
        if (changed || all)
            append_values(&changes->fresh, now, n, n_end);
        if (changed || was_single)
            changes->fields[changes->field_count++] = field;
        n = n_end;
        b = b_end;
    }
}

/*
 * Keeps fields that had single entries and no longer have a value: their posting lists remain
 * stale.
 */
static void keep_single_fields(const struct doc *old, struct field_changes *changes)
{
    REQUIRE(old->single_fields.len % 2 == 0); /* doc_decode() refuses others */
    for (size_t i = 0; i < old->single_fields.len; i += 2) {
        uint16_t field =
            (uint16_t)((unsigned char)old->single_fields.data[i] << 8 | (unsigned char)old->single_fields.data[i + 1]);
        size_t at = 0;
        while (at < changes->field_count && changes->fields[at] < field)
            at++;
        if (at < changes->field_count && changes->fields[at] == field)
            continue;
        memmove(changes->fields + at + 1, changes->fields + at, (changes->field_count - at) * sizeof(*changes->fields));
        changes->fields[at] = field;
        changes->field_count++;
    }
}

static struct slice encode_single_fields(const struct field_changes *changes, struct arena *arena)
{
    char *bytes = arena_alloc(arena, changes->field_count * 2 + 1);

    for (size_t i = 0; i < changes->field_count; i++) {
        INSIST(i == 0 || changes->fields[i - 1] < changes->fields[i]);
        bytes[2 * i] = (char)(changes->fields[i] >> 8);
        bytes[2 * i + 1] = (char)changes->fields[i];
    }
    return slice_make(bytes, changes->field_count * 2);
}

static struct field_changes make_changes(const struct values *now, const struct values *before, const struct doc *old,
                                         bool all, struct arena *arena)
{
    size_t fields = now->count + before->count + old->single_fields.len / 2 + 1;
    struct field_changes changes = {
        .fresh = {arena_alloc(arena, (now->count + 1) * sizeof(struct field_value)), 0},
        .stale = {arena_alloc(arena, (before->count + 1) * sizeof(struct field_value)), 0},
        .fields = arena_alloc(arena, fields * sizeof(uint16_t)),
    };

    compare_fields(now, before, old, all, &changes);
    keep_single_fields(old, &changes);
    ENSURE(changes.field_count <= fields); /* the array has room for each */
    return changes;
}

/* --- Interface ---------------------------------------------------------------------------------------------------- */

static struct slice document_key(const struct write_item_state *at)
{
    REQUIRE(at->key.len >= DOC_KEY_PREFIX_BYTES);
    return slice_from_offset(at->key, DOC_KEY_PREFIX_BYTES - sizeof(uint16_t));
}

/* Parses the values of the previous version. */
static int old_values(struct write_executor *exec, struct write_item_state *at, struct values *ret_values)
{
    REQUIRE(at->has_old && at->state.live); /* a tombstone has no values */
    struct document document;
    int r = document_parse_stored(at->index->mapping, at->type, at->old.stored, &exec->core->scratch, &document);

    if (r < 0)
        return tl_trace(r);
    write_executor__count_source(exec, at->old.stored, document.value_count);
    write_executor__count_document(exec, &document);
    *ret_values = by_field(&document, &exec->core->scratch);
    struct doc old = at->old; /* entries are written after at->old was released */
    if (old.path_tracked)
        old.origin = arena_copy(&exec->core->scratch, old.origin);
    path_lookup_rewrite_values(at->index->mapping, &document, &old, ret_values->items, ret_values->count);
    document_release(&document);
    return 0;
}

/* Whether a value of the previous version has a single entry. */
static bool is_single(const struct write_item_state *at, const struct field_value *value)
{
    return at->old.batch == 0 || doc_has_single_entries(&at->old, value->field);
}

/*
 * Whether a transaction's commit would write too many single entries with `more` of them. Follows from state and
 * command.
 */
static bool commit_is_full(const struct write_executor *exec, size_t more)
{
    uint64_t singles = (uint64_t)overlay_count_in(exec->run->overlay, SPACE_ENTRIES) + exec->singles + more;

    return WORK_ENTRY * singles > exec->core->provisional_work;
}

/* A record with more bytes for each single entry is not put again to save the removal of so few in the commit. */
enum { CONVERTED_BYTES_PER_ENTRY = 4096 };

/*
 * Whether the previous version, which has `singles` single entries, is to be converted: it is committed, since all
 * entries of one that the transaction has written are in its overlay or provisional.
 */
static bool is_to_be_converted(const struct write_executor *exec, const struct write_item_state *at, size_t singles)
{
    const struct write_run *run = exec->run;
    struct slice value;

    return run->provisional != NULL && exec->core->command_version >= COMMAND_SINCE_ENTRIES_CONVERTED &&
           at->old.stored.len / CONVERTED_BYTES_PER_ENTRY < singles && commit_is_full(exec, singles) &&
           overlay_get(run->overlay, SPACE_DOCUMENTS, at->key, &value) == STORE_NOT_FOUND;
}

static void put_converted(void *context, struct slice key, struct slice value)
{
    provisional_convert(context, SPACE_ENTRIES, key, value);
}

static void remove_converted(void *context, struct slice key)
{
    provisional_convert(context, SPACE_ENTRIES, key, SLICE_NONE);
}

/* In the batch number of conversions, which differs from that of the run's own posting lists. */
#define CONVERTED_BATCH (UINT64_C(1) << 63)

/*
 * Gives the committed version of a document posting lists of its own for all its values, instead of its single entries
 * for `singles`. Only its form changes. The lock of the transaction keeps all others from changing it before the unit's
 * batch is written.
 */
static int convert_committed(struct write_executor *exec, const struct write_item_state *at, const struct values *all,
                             const struct values *singles)
{
    struct provisional_entries *ahead = exec->run->provisional;
    struct entry_sink sink = {put_converted, remove_converted, ahead};
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct entry_set set;
    struct doc doc;
    INSIST(exec->batch != 0 && (exec->batch & CONVERTED_BATCH) == 0);
    int r = doc_get_stored(&exec->committed_view, at->index->number, at->type->number, at->item->id, &doc);

    if (r != 0)
        return tl_trace(r < 0 ? r : TL_ERR_CORRUPT);
    INSIST(doc.batch == at->old.batch && !doc.deleted);
    entry_set_init(&set, &exec->core->scratch, at->index->number, exec->batch | CONVERTED_BATCH);
    entry_set_write(&set, document_key(at), all->items, all->count, NULL, 0, 0);
    entry_set_emit(&set, &sink);
    entry_set_init(&set, &exec->core->scratch, at->index->number, 0);
    entry_set_delete(&set, document_key(at), singles->items, singles->count, 0);
    entry_set_emit(&set, &sink);
    doc.batch = exec->batch | CONVERTED_BATCH;
    doc.single_fields = SLICE_NONE;
    doc_encode(&record, &doc);
    provisional_convert(ahead, SPACE_DOCUMENTS, at->key, buf_as_slice(&record));
    write_executor__work(exec, WORK_READ + record.len / WORK_READ_BYTES);
    uint64_t entries = WORK_ENTRY * (uint64_t)(all->count + singles->count); /* the step counts them with its batch */
    exec->work += WORK_WRITE + entries;
    core__note_indivisible(exec->core, entries);
    counters__of(&exec->core->counters, at->index->number)->posting_list_documents++;
    buf_deinit(&record);
    doc_release(&doc);
    return 0;
}

/*
 * Finds the values of the previous version whose single entries are to be removed with the change: not those of a
 * version that is converted.
 */
static int old_single_values(struct write_executor *exec, struct write_item_state *at, struct values *ret_values)
{
    struct arena *scratch = &exec->core->scratch;
    struct values all, singles;
    int r;

    *ret_values = (struct values){NULL, 0};
    if (!at->state.live || !doc_may_have_single_entries(&at->old))
        return 0;
    r = old_values(exec, at, &all);
    if (r != 0)
        return tl_trace(r);
    singles = (struct values){arena_alloc(scratch, (all.count + 1) * sizeof(*singles.items)), 0};
    for (size_t i = 0; i < all.count; i++)
        if (is_single(at, &all.items[i]))
            singles.items[singles.count++] = all.items[i];
    if (is_to_be_converted(exec, at, singles.count))
        return convert_committed(exec, at, &all, &singles);
    *ret_values = singles;
    return 0;
}

/* Changes a document with posting lists by a single write. */
static int change_posting_lists(struct write_executor *exec, struct write_item_state *at,
                                const struct document *document, struct doc *doc)
{
    REQUIRE(at->state.live && at->old.batch != 0);
    struct arena *scratch = &exec->core->scratch;
    struct values now = by_field(document, scratch), before;
    int r = old_values(exec, at, &before);

    if (r != 0)
        return tl_trace(r);
    path_lookup_rewrite_values(at->index->mapping, document, doc, now.items, now.count);
    struct field_changes changes = make_changes(&now, &before, &at->old, false, scratch);
    if (changes.field_count > WRITE_SINGLE_FIELDS_MAX) {
        changes = make_changes(&now, &before, &at->old, true, scratch);
    } else {
        doc->batch = at->old.batch;
        doc->single_fields = encode_single_fields(&changes, &exec->core->arena);
    }
    exec->work += WORK_ENTRY * (uint64_t)(changes.fresh.count + changes.stale.count);
    exec->singles += changes.fresh.count + changes.stale.count;
    entry_set_write(entries_of(exec, at->index->number, 0), document_key(at), changes.fresh.items, changes.fresh.count,
                    changes.stale.items, changes.stale.count, 0);
    return 0;
}

/*
 * Returns: the batch for a further version of a document that the unit has written, above those of its earlier
 *   versions; 0: it gets single entries, since the run is not of a transaction, or it is not known which lists of the
 *   unit have the document: a deleted version has no batch, and one that a single write has changed that of another
 *   unit.
 */
static uint64_t further_batch(const struct write_executor *exec, const struct write_item_state *at)
{
    REQUIRE(at->in_unit);
    uint64_t number = at->old.batch >> BATCH_NUMBER_SHIFT, next = exec->core->ts | (number + 1) << BATCH_NUMBER_SHIFT;
    bool of_unit = at->old.batch == (exec->core->ts | number << BATCH_NUMBER_SHIFT);

    if (exec->run->provisional == NULL || exec->core->command_version < COMMAND_SINCE_VALUES_WEIGHED)
        return 0;
    if (!at->state.live || !of_unit || number >= FURTHER_BATCHES_MAX)
        return 0;
    return exec->batch > next ? exec->batch : next;
}

/* Whether the new version has the same entries. */
static bool same_entries(const struct doc *old, const struct doc *doc)
{
    return slice_equal(old->stored, doc->source) && old->path_tracked == doc->path_tracked &&
           (!doc->path_tracked || slice_equal(old->origin, doc->origin));
}

/*
 * Whether the entries of a document go into the store before the commit of the transaction (provisional.h), so that a
 * commit has few. Follows from state and command.
 */
static bool goes_ahead(const struct write_executor *exec, size_t value_count)
{
    const struct write_run *run = exec->run;

    if (run->provisional == NULL || exec->core->command_version < COMMAND_SINCE_ENTRIES_AHEAD)
        return false;
    return commit_is_full(exec, value_count);
}

int write_executor__change_entries(struct write_executor *exec, struct write_item_state *at,
                                   const struct document *document, struct doc *doc)
{
    REQUIRE(doc->ts == exec->core->ts && doc->source.data != NULL);
    bool posts = exec->posts || goes_ahead(exec, document->value_count);
    bool again = exec->core->command_version < COMMAND_SINCE_DELETES_IN_UNIT ? at->has_old && at->old.ts == doc->ts
                                                                             : at->in_unit;
    bool twice = posts && again; /* the posting lists of the unit may have it, with other values */
    write_executor__count_source(exec, doc->source, document->value_count);
    uint64_t batch = twice ? further_batch(exec, at) : posts ? exec->batch : 0;
    struct values single_values;
    int r;

    if (at->state.live && same_entries(&at->old, doc)) {
        doc->batch = at->old.batch;
        doc->single_fields =
            at->old.single_fields.len == 0 ? SLICE_NONE : arena_copy(&exec->core->arena, at->old.single_fields);
        return 0;
    }
    if (batch == 0 && !twice && at->state.live && at->old.batch != 0)
        return change_posting_lists(exec, at, document, doc);
    r = old_single_values(exec, at, &single_values);
    if (r != 0)
        return tl_trace(r);
    doc->batch = batch;
    exec->work += (batch != 0 && exec->posts ? WRITE_POSTING_WORK : WORK_ENTRY) * (uint64_t)document->value_count +
                  WORK_ENTRY * (uint64_t)single_values.count;
    exec->singles += single_values.count + (batch == 0 ? document->value_count : 0);
    if (batch != 0)
        counters__of(&exec->core->counters, at->index->number)->posting_list_documents++;
    if (batch != 0 && single_values.count > 0) { /* one set has all single entries of a run */
        entry_set_delete(entries_of(exec, at->index->number, 0), document_key(at), single_values.items,
                         single_values.count, 0);
        single_values.count = 0;
    }
    path_lookup_rewrite_values(at->index->mapping, document, doc, document->values, document->value_count);
    entry_set_write(entries_of(exec, at->index->number, batch), document_key(at), document->values,
                    document->value_count, single_values.items, single_values.count, 0);
    return 0;
}

int write_executor__remove_entries(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index != NULL && at->key.len > 0);
    struct values single_values;
    int r = old_single_values(exec, at, &single_values);

    if (r != 0 || single_values.count == 0)
        return r;
    exec->work += WORK_ENTRY * (uint64_t)single_values.count;
    exec->singles += single_values.count;
    entry_set_delete(entries_of(exec, at->index->number, 0), document_key(at), single_values.items, single_values.count,
                     0);
    return 0;
}
