/* SPDX-License-Identifier: Apache-2.0 */
/* Applies renames to stored documents; core/tree/README.md, "Contract, reader by reader". */
#include "base/alloc.h"
#include "base/check.h"
#include "core/documents/doc.h"
#include "core/tree/tree.h"
#include "core/tree/tree_paths.h"
#include "core/tree/tree_record.h"
#include "json/each.h"
#include "json/json.h"

/*
 * A source with a replaced path, and the pin of the record to which the document's other slices
 * point.
 */
struct rewritten_source {
    struct store_value under;
    char bytes[];
};

static void release_rewritten(struct store_value *value)
{
    REQUIRE(value->pin != NULL);
    struct rewritten_source *rewritten = value->pin;

    store_value_release(&rewritten->under);
    mem_free(rewritten);
}

/* Whether the stored source has this path. A path with escapes is decoded first. */
static bool source_has_path(const struct doc *doc, struct slice path, struct arena *arena)
{
    struct slice raw = slice_make(doc->stored.data + doc->path_offset, doc->path_len);
    struct json_doc json;

    if (slice_find_byte(raw, '\\') == raw.len)
        return slice_equal(raw, path);
    return json_parse_stored(arena, arena_printf(arena, "\"%.*s\"", SLICE_ARG(raw)), &json) == 0 &&
           slice_equal(json_slice(json.root), path);
}

/* Replaces the path in the source. */
static void replace_path(struct doc *doc, struct slice path)
{
    tl_cleanup(buf_deinit) struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    buf_json_string(&quoted, path);
    size_t tail = doc->path_offset + doc->path_len, len = quoted.len - 2;
    INSIST(doc->path_len <= tail && tail <= doc->stored.len);
    INSIST(quoted.len >= 2 && quoted.data[0] == '"');
    size_t size = doc->stored.len - doc->path_len + len;
    struct rewritten_source *rewritten = mem_alloc(sizeof *rewritten + size + 1);
    memcpy(rewritten->bytes, doc->stored.data, doc->path_offset);
    memcpy(rewritten->bytes + doc->path_offset, quoted.data + 1, len);
    memcpy(rewritten->bytes + doc->path_offset + len, doc->stored.data + tail, doc->stored.len - tail);
    rewritten->bytes[size] = '\0';
    rewritten->under = doc->value;
    doc->source = slice_make(rewritten->bytes, size);
    doc->value = (struct store_value){doc->source, rewritten, release_rewritten};
}

static void add_totals(struct doc *doc, const struct tree_totals *totals)
{
    int64_t renames = totals->renames - doc->rename_base;

    /*
     * A client may have given the highest version (external versioning). Then renames do not raise
     * it; a version never decreases.
     */
    if (__builtin_add_overflow(doc->version, renames, &doc->version))
        doc->version = INT64_MAX;
    if (totals->seq_no > doc->seq_no)
        doc->seq_no = totals->seq_no;
    if (totals->ts > doc->ts && totals->ts != TREE_TS_OPEN)
        doc->ts = totals->ts;
}

/* As apply_totals(), of the path alone. */
static int find_path(struct tree *tree, struct tree_paths *paths, const struct doc *doc, struct arena *arena,
                     struct slice *ret_path)
{
    tl_ts last_rename;

    *ret_path = SLICE_NONE;
    if (!doc->path_tracked)
        return 0;
    int r = tree_paths_last_rename(paths, tree, &last_rename, &tree->delimiter);
    if (r == 0 && (last_rename == 0 || (last_rename != TREE_TS_OPEN && doc->ts > last_rename)))
        return 0;
    if (r == 0)
        r = tree_paths_locate(paths, tree, doc->origin, arena, ret_path);
    if (r != 0)
        *ret_path = SLICE_NONE;
    return r == TREE_NOT_FOUND ? 0 : r == TREE_TOO_OLD ? DOC_TOO_OLD : r == 0 ? 0 : tl_trace(r);
}

/*
 * Applies all but the path: version, sequence number, timestamp. Returns: 0 with the current path, in
 * `arena` or a part of the record; data NULL: no rename is newer than the document, or its origin is
 * detached; DOC_TOO_OLD; fatal codes.
 */
static int apply_totals(struct tree *tree, struct doc *doc, struct arena *arena, struct slice *ret_path)
{
    struct tree_totals totals;
    tl_ts last_rename;

    *ret_path = SLICE_NONE;
    if (!doc->path_tracked)
        return 0;
    int r = tree_last_rename(tree, &last_rename, &tree->delimiter);
    if (r == 0 && (last_rename == 0 || (last_rename != TREE_TS_OPEN && doc->ts > last_rename)))
        return 0;
    if (r == 0)
        r = tree_locate(tree, doc->origin, arena, ret_path, &totals);
    if (r == 0)
        add_totals(doc, &totals);
    else
        *ret_path = SLICE_NONE;
    if (r == TREE_NOT_FOUND)
        return 0; /* hidden by a session tombstone; another origin has replaced its own */
    if (r == TREE_TOO_OLD)
        return DOC_TOO_OLD;
    return r == 0 ? 0 : tl_trace(r);
}

int doc_apply_renames_as_of(const struct view *view, const struct omap *pending, uint32_t index, tl_ts as_of,
                            struct doc *doc)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree tree = {.view = view, .index = index, .pending = pending, .as_of = as_of};
    struct slice path;

    REQUIRE(as_of < TL_TS_MAX);
    int r = apply_totals(&tree, doc, &arena, &path);
    if (r == 0 && path.data != NULL && !source_has_path(doc, path, &arena))
        replace_path(doc, path);
    return r;
}

int doc_apply_renames_to_path(const struct view *view, const struct omap *pending, uint32_t index, struct arena *arena,
                              struct doc *doc, struct slice *ret_path)
{
    REQUIRE(arena != NULL && ret_path != NULL);
    struct tree tree = {.view = view, .index = index, .pending = pending};

    return apply_totals(&tree, doc, arena, ret_path);
}

int doc_find_path(const struct view *view, const struct omap *pending, uint32_t index, struct tree_paths *paths,
                  struct arena *arena, const struct doc *doc, struct slice *ret_path)
{
    REQUIRE(paths != NULL && arena != NULL && ret_path != NULL);
    struct tree tree = {.view = view, .index = index, .pending = pending};

    return find_path(&tree, paths, doc, arena, ret_path);
}

int doc_apply_renames(const struct view *view, const struct omap *pending, uint32_t index, struct doc *doc)
{
    return doc_apply_renames_as_of(view, pending, index, 0, doc);
}
