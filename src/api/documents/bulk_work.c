/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of the work of bulk items; see bulk_work.h. */
#include "api/documents/bulk_work.h"

#include <ctype.h>

#include "api/request/api_internal.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "mapping/mapping.h"

enum {
    /* For a word, an entry is put. About half of those of a bulk are shared by several of its documents. */
    NEW_WORD_WORK = WORK_WRITE / 2,
    ITEM_WORK = WORK_ITEM + WORK_READ + WORK_WRITE,
    FIRST_OF_THREE_BYTES = 0xe0, /* UTF-8: scripts whose characters are words by themselves begin there */
};

/* Returns: whether a byte begins a word after `before`. A slash begins a level of a path. */
static bool begins_word(unsigned char before, unsigned char byte)
{
    bool in_word = isalnum(before) || before >= 0x80;

    return byte >= FIRST_OF_THREE_BYTES || byte == '/' || (!in_word && (isalnum(byte) || byte >= 0x80));
}

size_t bulk_work_words(struct slice source)
{
    size_t words = 0, before_text = 0;
    unsigned char before = 0;
    bool in_text = false, escaped = false;

    for (size_t i = 0; i < source.len; i++) {
        unsigned char byte = (unsigned char)source.data[i];
        if (byte == '"' && !escaped) {
            in_text = !in_text;
            before_text = in_text ? words : before_text;
        } else if (byte == ':' && !in_text) {
            words = before_text; /* the text was a member's name */
        } else if (begins_word(before, byte)) {
            words++;
        }
        escaped = byte == '\\' && !escaped;
        before = byte;
    }
    return words;
}

static uint64_t work_of_bytes(struct slice source)
{
    return source.len / WORK_BYTES;
}

uint64_t bulk_work_of_new(struct slice source)
{
    return work_of_bytes(source) + bulk_work_words(source) * NEW_WORD_WORK;
}

uint64_t bulk_work_of_old(struct slice source, bool single_entries)
{
    return work_of_bytes(source) + (single_entries ? bulk_work_words(source) * WORK_WRITE : 0);
}

/* Returns: the work that a document causes when it is updated, replaced or deleted. */
static uint64_t work_of_old(const struct view *view, uint32_t index, bool updated, struct doc *doc)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct slice path;
    uint64_t work;

    if (doc->deleted)
        return 0;
    work = bulk_work_of_old(doc->source, doc_may_have_single_entries(doc));
    if (updated)
        work += bulk_work_of_new(doc->source);
    if (doc->path_tracked)
        work += bulk_work_words(doc->origin) * WORK_LEVEL;
    if (doc_apply_renames_to_path(view, NULL, index, &arena, doc, &path) == 0)
        work += work_of_bytes(path);
    return work;
}

/* Returns: the work of an item that may find a document; what cannot be read counts nothing. */
static uint64_t work_of_item(const struct view *view, const struct catalog *catalog, const struct write_item *item,
                             struct arena *arena)
{
    struct slice name = item->type.len > 0 ? item->type : SLICE_LIT("_doc");
    uint64_t work = ITEM_WORK + bulk_work_of_new(item->source);
    const struct catalog_index *index;
    const struct catalog_alias *alias;
    struct problem ignored;
    struct doc doc;

    if (item->update != NULL)
        work += bulk_work_of_new(item->update->doc) + bulk_work_of_new(item->update->upsert);
    if (item->id_generated || item->id.len == 0 || item->id.len > DOC_ID_BYTES_MAX ||
        catalog_find(catalog, item->index, true, item->dialect, arena, &index, &alias, &ignored) != 0)
        return work;
    const struct mapping_type *type = mapping_type(index->mapping, name);
    if (type == NULL || doc_get_stored(view, index->number, type->number, item->id, &doc) != 0)
        return work;
    work += work_of_old(view, index->number, item->op == WRITE_UPDATE, &doc);
    doc_release(&doc);
    return work;
}

size_t bulk_work_fitting(const struct request *request, const struct write_item *items, size_t count)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    struct view view = {request->api->store, journal_stable(request->api->journal), NULL};
    struct arena arena = ARENA_INIT;
    uint64_t work = 0;
    size_t fitting = 0;

    while (fitting < count) {
        work += work_of_item(&view, catalog, &items[fitting], &arena);
        if (fitting > 0 && work > BULK_PIECE_WORK_MAX)
            break;
        fitting++;
        arena_reset(&arena);
    }
    arena_deinit(&arena);
    return fitting;
}
