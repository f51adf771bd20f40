/* SPDX-License-Identifier: Apache-2.0 */
/* What renames have made of a document; core/tree/README.md, "Contract, reader by reader". */
#include "base/alloc.h"
#include "core/documents/doc.h"
#include "core/tree/tree.h"
#include "core/tree/tree_record.h"
#include "json/json.h"

/* A source with another path in it, and the record that everything else of the document lives in. */
struct moved_source {
    struct store_value under;
    char bytes[];
};

static void release_moved(struct store_value *value)
{
    struct moved_source *moved = value->pin;

    store_value_release(&moved->under);
    mem_free(moved);
}

/* Whether a document's source has this path as it stands: what is written with escapes is read first. */
static bool says(const struct doc *doc, struct slice path, struct arena *arena)
{
    struct slice raw = slice_make(doc->stored.data + doc->path_offset, doc->path_len);
    struct json_doc json;

    if (slice_find_byte(raw, '\\') == raw.len)
        return slice_equal(raw, path);
    return json_parse_stored(arena, arena_printf(arena, "\"%.*s\"", SLICE_ARG(raw)), &json) == 0 &&
           slice_equal(json_slice(json.root), path);
}

/* Puts a path in place of the one that stands in the source. */
static void put_path(struct doc *doc, struct slice path)
{
    tl_cleanup(buf_deinit) struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    buf_json_string(&quoted, path);
    size_t tail = doc->path_offset + doc->path_len, len = quoted.len - 2;
    size_t size = doc->stored.len - doc->path_len + len;
    struct moved_source *moved = mem_alloc(sizeof *moved + size + 1);
    memcpy(moved->bytes, doc->stored.data, doc->path_offset);
    memcpy(moved->bytes + doc->path_offset, quoted.data + 1, len);
    memcpy(moved->bytes + doc->path_offset + len, doc->stored.data + tail, doc->stored.len - tail);
    moved->bytes[size] = '\0';
    moved->under = doc->value;
    doc->source = slice_make(moved->bytes, size);
    doc->value = (struct store_value){doc->source, moved, release_moved};
}

static void count(struct doc *doc, const struct tree_totals *standing)
{
    int64_t renames = standing->renames - doc->rename_base;

    /* A client may have given the highest version there is: a rename counts no further than that, and nothing sinks. */
    if (__builtin_add_overflow(doc->version, renames, &doc->version))
        doc->version = INT64_MAX;
    if (standing->seq_no > doc->seq_no)
        doc->seq_no = standing->seq_no;
    if (standing->ts > doc->ts && standing->ts != TREE_TS_OPEN)
        doc->ts = standing->ts;
}

int doc_apply_renames_as_of(const struct view *view, const struct omap *pending, uint32_t index, tl_ts as_of, struct doc *doc)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree tree = {.view = view, .index = index, .pending = pending, .as_of = as_of};
    struct tree_totals standing;
    struct slice path;
    tl_ts newest;

    if (!doc->path_tracked)
        return 0;
    int r = tree_last_rename(&tree, &newest, &tree.delimiter);
    if (r == 0 && (newest == 0 || (newest != TREE_TS_OPEN && doc->ts > newest)))
        return 0;
    if (r == 0)
        r = tree_locate(&tree, doc->origin, &arena, &path, &standing);
    if (r == TREE_NOT_FOUND)
        return 0; /* it went with its session, and something gave way where it lay */
    if (r != 0)
        return r == TREE_TOO_OLD ? DOC_TOO_OLD : tl_trace(r);
    count(doc, &standing);
    if (!says(doc, path, &arena))
        put_path(doc, path);
    return 0;
}

int doc_apply_renames(const struct view *view, const struct omap *pending, uint32_t index, struct doc *doc)
{
    return doc_apply_renames_as_of(view, pending, index, 0, doc);
}
