/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /{index}/_tree: the directories and documents that lie right in a directory, and in those
 * below it down to a depth.
 */
#include <inttypes.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/request_budget.h"
#include "api/request/source_filter.h"
#include "core/documents/path_lookup.h"
#include "core/documents/listing.h"
#include "core/catalog/catalog.h"

enum {
    DEPTH_MAX = 16, /* an iterator is open on each level */
    SIZE_DEFAULT = 1000,
    PAGE_MAX = 10000,
    PAGE_BYTES_MAX = 4 << 20, /* a page ends early after so much */
};

struct tree_ask {
    struct slice path; /* without a delimiter at its end: the root is empty */
    int32_t depth;
    int32_t size;
    struct slice after;
    struct source_filter source;
    const struct catalog_index *index;
    int32_t listed;
};

static int read_ask(struct request *request, struct tree_ask *ask)
{
    int r;
    *ask = (struct tree_ask){.path = request_param(request, "path"),
                             .depth = 1,
                             .size = SIZE_DEFAULT,
                             .after = request_param(request, "after")};
    if ((r = request_int(request, "depth", &ask->depth)) != 0 || (r = request_int(request, "size", &ask->size)) != 0 ||
        (r = source_filter_params(request, &ask->source)) != 0 || (r = request_accept(request)) != 0)
        return r;
    if (!ask->source.given)
        ask->source.fetch = false;
    if (ask->path.len > 0 && ask->path.data[0] != '/')
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "a path begins with [/], but [%.*s] does not",
                              SLICE_ARG(ask->path));
    if (ask->path.len > 0 && ask->path.data[ask->path.len - 1] == '/')
        ask->path.len--;
    if (ask->depth < 1 || ask->depth > DEPTH_MAX)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[depth] must be from 1 to %d, got [%" PRId32 "]",
                              DEPTH_MAX, ask->depth);
    if (ask->size < 1 || ask->size > PAGE_MAX)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[size] must be from 1 to %d, got [%" PRId32 "]",
                              PAGE_MAX, ask->size);
    if (ask->after.len > 0 && ask->depth > 1)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[after] continues the listing of one directory: it is allowed only with a [depth] of 1");
    return 0;
}

static int find_index(struct request *request, struct tree_ask *ask)
{
    const struct catalog_alias *alias;
    int r = catalog_find(request->catalog, request_part(request, PART_INDEX), false, request->dialect, request->arena,
                         &ask->index, &alias, &request->problem);
    if (r != 0)
        return r > 0 ? REQUEST_REFUSED : r;
    const struct mapping *mapping = ask->index->mapping;
    const struct mapping_field *path = mapping_path_field(mapping);
    if (path == NULL || !mapping_is_tree(mapping) || !field_has_entries(path) || mapping_path_delimiter(mapping) != '/')
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[%.*s] has no tree: a path field, such as [path] of type [path], must be mapped "
                              "before the first document; [_reindex] its documents into an index with such a field",
                              SLICE_ARG(ask->index->name));
    return 0;
}

/* --- The response ------------------------------------------------------------------------------------------------- */

static int write_document(struct request *request, const struct tree_ask *ask, const struct listing_item *item,
                          struct buf *to)
{
    struct slice key = item->document_key;
    uint16_t number = (uint16_t)((uint8_t)key.data[0] << 8 | (uint8_t)key.data[1]);
    const struct mapping_type *type = mapping_type_by_number(ask->index->mapping, number);
    buf_lit(to, "{\"name\":");
    buf_json_string(to, item->name);
    if (request->dialect == DIALECT_5 && type != NULL) {
        buf_lit(to, ",\"_type\":");
        buf_json_string(to, type->name);
    }
    buf_lit(to, ",\"_id\":");
    buf_json_string(to, slice_from_offset(key, 2));
    buf_printf(to, ",\"_version\":%" PRId64 ",\"_seq_no\":%" PRId64 ",\"_primary_term\":1", item->doc->version,
               item->doc->seq_no);
    struct slice shown = SLICE_NONE;
    int r = 0;
    if (ask->source.fetch && type != NULL)
        r = mapping_filter_source(type, item->doc->source, request->dialect, request->arena, &shown);
    if (r == 0 && shown.data != NULL) {
        buf_lit(to, ",\"_source\":");
        r = source_filter_write(to, shown, &ask->source, request->arena, request->dialect);
    }
    buf_byte(to, '}');
    return r;
}

static int write_level(struct request *request, struct tree_ask *ask, struct slice path, int32_t depth, struct buf *to);

static int write_directory(struct request *request, struct tree_ask *ask, struct slice path,
                           const struct listing_item *item, int32_t depth, struct buf *to)
{
    buf_lit(to, "{\"name\":");
    buf_json_string(to, item->name);
    int r = 0;
    if (depth > 1) {
        struct slice below = arena_printf(request->arena, "%.*s/%.*s", SLICE_ARG(path), SLICE_ARG(item->name));
        buf_byte(to, ',');
        r = write_level(request, ask, below, depth - 1, to);
    }
    buf_byte(to, '}');
    return r;
}

/* Whether the page is full, so that the next item must not be listed. Documents of one name are on one page. */
static bool is_full(const struct tree_ask *ask, const struct listing_item *item, struct slice last, size_t bytes)
{
    bool same = last.data != NULL && !item->directory && slice_equal(item->key, last) && ask->listed < 2 * PAGE_MAX;
    return (ask->listed >= ask->size || bytes >= PAGE_BYTES_MAX) && !same;
}

static int refuse_more(struct request *request, const struct tree_ask *ask, struct slice path, bool one_name)
{
    if (one_name)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "more than [%d] documents have the same name in [%.*s/]: search for them by [term]",
                              PAGE_MAX, SLICE_ARG(path));
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "more than [%" PRId32 "] are in [%.*s/] down to a [depth] of [%" PRId32
                          "], or more than a reply holds; list one level after another, which [after] pages through",
                          ask->size, SLICE_ARG(ask->path), ask->depth);
}

static int write_level(struct request *request, struct tree_ask *ask, struct slice path, int32_t depth, struct buf *to)
{
    tl_cleanup(buf_deinit) struct buf documents = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf last = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(listing_freep) struct listing *listing =
        listing_new(&request->view, ask->index->number, ask->index->mapping, path, ask->after);
    struct listing_item item;
    bool full = false, any_directory = false;
    int r;
    listing_set_account(listing, &request->account);
    buf_lit(to, "\"directories\":[");
    while ((r = listing_next(listing, &item)) == 0) {
        if (request_budget_refused(request))
            return request_budget_refuse(request);
        struct slice before = last.len > 0 ? buf_as_slice(&last) : SLICE_NONE;
        full = is_full(ask, &item, before, to->len + documents.len);
        if (full && (ask->depth > 1 || slice_equal(before, item.key)))
            return refuse_more(request, ask, path, slice_equal(before, item.key));
        if (full)
            break;
        buf_clear(&last);
        buf_slice(&last, item.key);
        ask->listed++;
        struct buf *in = item.directory ? to : &documents;
        if (item.directory ? any_directory : documents.len > 0)
            buf_byte(in, ',');
        any_directory |= item.directory;
        r = item.directory ? write_directory(request, ask, path, &item, depth, to)
                           : write_document(request, ask, &item, &documents);
        if (r != 0)
            return r;
    }
    if (r < 0)
        return r;
    if (request_budget_refused(request))
        return request_budget_refuse(request);
    buf_lit(to, "],\"documents\":[");
    buf_slice(to, buf_as_slice(&documents));
    buf_byte(to, ']');
    if (full) {
        buf_lit(to, ",\"after\":");
        buf_json_string(to, buf_as_slice(&last));
    }
    return 0;
}

/* An empty directory is there where a document says so. */
static int check_there(struct request *request, const struct tree_ask *ask)
{
    bool at = ask->listed > 0 || ask->path.len == 0 || ask->after.len > 0;
    int r = at ? 0
               : path_lookup_exists(&request->view, ask->index->number, ask->index->mapping, ask->path,
                                    &request->account, &at, NULL);
    if (r < 0)
        return r;
    return at ? 0
              : request_refuse(request, PROBLEM_PATH_MISSING, "nothing is at [%.*s] in [%.*s], nor below it",
                               SLICE_ARG(ask->path), SLICE_ARG(ask->index->name));
}

static int tree_run(struct request *request)
{
    struct tree_ask *ask = request->context;
    int r = find_index(request, ask);
    if (r != 0)
        return r;
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    struct buf *to = writer.buf;
    buf_printf(to, "{\"timestamp\":%" PRIu64 ",\"path\":", request->view.ts);
    buf_json_string(to, ask->path.len > 0 ? ask->path : SLICE_LIT("/"));
    buf_byte(to, ',');
    r = write_level(request, ask, ask->path, ask->depth, to);
    if (r == 0)
        r = check_there(request, ask);
    buf_byte(to, '}');
    return r == 0 ? REQUEST_DONE : r;
}

static int tree_begin(struct request *request)
{
    return request_work(request, tree_run);
}

int handle_tree(struct request *request)
{
    struct tree_ask *ask = arena_zalloc(request->arena, sizeof *ask);
    int r = read_ask(request, ask);
    if (r != 0)
        return r;
    request->context = ask;
    struct lock_target *target = arena_zalloc(request->arena, sizeof *target);
    *target = (struct lock_target){.mode = LOCK_S, .index = request_part(request, PART_INDEX)};
    if (ask->path.len > 0)
        target->path = ask->path;
    return request_read(request, target, 1, tree_begin);
}
