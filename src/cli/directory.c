/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of directories; see directory.h. */
#include "cli/directory.h"

#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "json/each.h"

enum { PAGE = 10000 };

static void add_entries(struct directory *directory, yyjson_val *list, bool below)
{
    size_t i;
    size_t max;
    yyjson_val *item;
    json_arr_foreach (list, i, max, item) {
        const char *name = yyjson_get_str(yyjson_obj_get(item, "name"));
        yyjson_val *source = yyjson_obj_get(item, "_source");
        const char *type = yyjson_get_str(yyjson_obj_get(source, "type"));
        directory->items = arena_grow(&directory->arena, directory->items, directory->count, &directory->capacity,
                                      sizeof *directory->items);
        directory->items[directory->count++] = (struct directory_entry){
            .name = slice_from(name != NULL ? name : ""),
            .source = source,
            .directory = below || (type != NULL && strcmp(type, "directory") == 0),
            .below = below,
        };
    }
}

/* By name, and a directory after the documents of its name. */
static int compare_entries(const void *a, const void *b)
{
    const struct directory_entry *left = a, *right = b;
    int order = slice_compare(left->name, right->name);
    return order != 0 ? order : (int)left->below - (int)right->below;
}

/* A directory and its own document are one entry. */
static void merge_entries(struct directory *directory)
{
    size_t count = 0;
    if (directory->count > 1)
        qsort(directory->items, directory->count, sizeof *directory->items, compare_entries);
    for (size_t i = 0; i < directory->count; i++) {
        struct directory_entry entry = directory->items[i];
        if (!entry.below || count == 0 || !slice_equal(directory->items[count - 1].name, entry.name)) {
            directory->items[count++] = entry;
            continue;
        }
        directory->items[count - 1].below = true;
        for (size_t k = count; k > 0 && slice_equal(directory->items[k - 1].name, entry.name); k--)
            directory->items[k - 1].directory = true;
    }
    directory->count = count;
}

static void write_path(struct buf *to, const struct directory_ask *ask, struct slice path, struct slice after)
{
    buf_clear(to);
    buf_byte(to, '/');
    client_escape(to, slice_from(ask->index));
    buf_printf(to, "/_tree?_source=%s&size=%d&path=", ask->source, PAGE);
    client_escape(to, path);
    if (after.len > 0) {
        buf_lit(to, "&after=");
        client_escape(to, after);
    }
    if (ask->ts != 0) {
        buf_printf(to, "&timestamp=%lld", ask->ts);
    } else if (ask->as_of != NULL) {
        buf_lit(to, "&as_of=");
        client_escape(to, slice_from(ask->as_of));
    }
    buf_byte(to, '\0');
}

/* Keeps a page as long as its entries. Returns: where the next one begins; empty: it was the last. */
static struct slice take_page(struct directory_ask *ask, struct client *client, struct directory *directory)
{
    yyjson_val *page = client_json(client);
    add_entries(directory, yyjson_obj_get(page, "directories"), true);
    add_entries(directory, yyjson_obj_get(page, "documents"), false);
    ask->ts = (long long)yyjson_get_uint(yyjson_obj_get(page, "timestamp"));
    const char *after = yyjson_get_str(yyjson_obj_get(page, "after"));
    directory->pages = arena_grow(&directory->arena, directory->pages, directory->page_count, &directory->page_capacity,
                                  sizeof *directory->pages);
    directory->pages[directory->page_count++] = client->json;
    client->json = NULL;
    return after != NULL ? slice_from(after) : SLICE_NONE;
}

long directory_read(struct client *client, struct directory_ask *ask, struct slice path,
                    struct directory *ret_directory)
{
    tl_cleanup(buf_deinit) struct buf url = BUF_INIT(BUF_UNLIMITED);
    struct slice after = SLICE_NONE;
    *ret_directory = (struct directory){.arena = ARENA_INIT};
    do {
        write_path(&url, ask, path, after);
        long status = client_request(client, "GET", url.data, SLICE_NONE, 60 * TL_SECOND);
        if (status == 404 && client_has_error(client, "path_missing_exception"))
            return 200;
        if (status != 200)
            return status;
        after = take_page(ask, client, ret_directory);
    } while (after.len > 0);
    merge_entries(ret_directory);
    return 200;
}

void directory_deinit(struct directory *directory)
{
    for (size_t i = 0; i < directory->page_count; i++)
        yyjson_doc_free(directory->pages[i]);
    arena_deinit(&directory->arena);
}
