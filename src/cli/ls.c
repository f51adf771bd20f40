/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock ls`: the documents right below a directory, sorted by name, like ls(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/directory.h"
#include "cli/escape.h"
#include "json/each.h"

enum { OPTION_URL = 256, OPTION_TIMESTAMP, OPTION_JSON, PAGE = 1000 };

struct ls_options {
    const char *index;
    struct slice path; /* without a slash at its end */
    const char *url;
    const char *as_of; /* NULL: now */
    bool full;
    bool json;
};

static const struct argp_option options[] = {
    {"long", 'l', NULL, 0, "Also print mode, owner, size and time", 1},
    {"as-of", OPTION_TIMESTAMP, "TIME", 0, "The state at that time, such as 2026-11-20T10:00:00Z", 1},
    {"json", OPTION_JSON, NULL, 0, "Print one line of JSON per document", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] = "List the directory PATH of INDEX.\v"
                          "Examples:\n"
                          "  tidelock ls fs:/usr/share\n"
                          "  tidelock ls -l fs:/usr --as-of 2026-11-20T10:00:00Z\n";

static void take_target(struct ls_options *o, char *text)
{
    const char *path = arguments_path(text);
    o->index = text;
    o->path = path != NULL ? slice_from(path) : SLICE_LIT("");
    while (o->path.len > 0 && o->path.data[o->path.len - 1] == '/')
        o->path.len--;
}

static error_t parse_ls_option(int key, char *text, struct argp_state *state)
{
    struct ls_options *o = state->input;
    switch (key) {
    case 'l': o->full = true; break;
    case OPTION_TIMESTAMP: o->as_of = text; break;
    case OPTION_URL: o->url = text; break;
    case OPTION_JSON: o->json = true; break;
    case ARGP_KEY_ARG:
        if (o->index != NULL)
            arguments_error(state, "too many arguments; expected INDEX:PATH");
        take_target(o, text);
        break;
    case ARGP_KEY_END:
        if (o->index == NULL)
            arguments_error(state, "missing argument; expected INDEX:PATH");
        break;
    default: return client_option(key, text);
    }
    return 0;
}

/* The document as it is; of a directory that has none its name. */
static void print_json(yyjson_val *source, struct slice name)
{
    tl_cleanup(buf_deinit) struct buf line = BUF_INIT(BUF_UNLIMITED);
    char *text = source == NULL ? NULL : yyjson_val_write(source, 0, NULL);
    if (text != NULL) {
        buf_slice(&line, slice_from(text));
    } else {
        buf_lit(&line, "{\"name\":");
        buf_json_string(&line, name);
        buf_lit(&line, ",\"type\":\"directory\"}");
    }
    free(text);
    printf("%.*s\n", SLICE_ARG(buf_as_slice(&line)));
}

static void print_doc(const struct ls_options *o, yyjson_val *source, struct slice name, bool directory)
{
    if (o->json) {
        print_json(source, name);
        return;
    }
    if (o->full) {
        const char *mode = yyjson_get_str(yyjson_obj_get(source, "mode"));
        const char *owner = yyjson_get_str(yyjson_obj_get(source, "owner"));
        const char *mtime = yyjson_get_str(yyjson_obj_get(source, "mtime"));
        printf("%4s %-10s %12lld %-20s ", mode != NULL ? escape_terminal(mode) : "?",
               owner != NULL ? escape_terminal(owner) : "?", (long long)yyjson_get_sint(yyjson_obj_get(source, "size")),
               mtime != NULL ? escape_terminal(mtime) : "?");
    }
    printf("%s%s\n", escape_terminal_slice(name), directory ? "/" : "");
}

/* --- Where the index has no tree ---------------------------------------------------------------------------------- */

/*
 * Direct entries have the directory's path, a slash and a name. A regular expression over the
 * path's hierarchy would find them, but names may contain any character; so pages are read in order
 * of path, and deeper entries are skipped by a query for paths after them.
 */
static void write_query(struct buf *to, const struct ls_options *o, struct slice after, struct slice skip)
{
    buf_clear(to);
    buf_printf(
        to, "{\"size\":%d,\"sort\":[{\"path\":\"asc\"}],\"query\":{\"bool\":{\"filter\":[{\"prefix\":{\"path\":", PAGE);
    tl_cleanup(buf_deinit) struct buf below = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&below, o->path);
    buf_byte(&below, '/');
    buf_json_string(to, buf_as_slice(&below));
    buf_lit(to, "}}");
    if (after.len > 0 || skip.len > 0) {
        buf_lit(to, ",{\"range\":{\"path\":{\"");
        buf_printf(to, "%s\":", skip.len > 0 ? "gte" : "gt");
        buf_json_string(to, skip.len > 0 ? skip : after);
        buf_lit(to, "}}}");
    }
    buf_lit(to, "]}}}");
}

/*
 * Prints the direct entries among the hits. At the first deeper one the page ends: the next one begins after that
 * directory ('0' is the character after '/').
 * Returns: false when this was the last page.
 */
static bool print_page(const struct ls_options *o, yyjson_val *hits, struct buf *after, struct buf *skip,
                       size_t *printed)
{
    size_t i;
    size_t max;
    yyjson_val *hit;
    buf_clear(skip);
    json_arr_foreach (hits, i, max, hit) {
        yyjson_val *source = yyjson_obj_get(hit, "_source");
        const char *text = yyjson_get_str(yyjson_obj_get(source, "path"));
        struct slice path = slice_from(text != NULL ? text : "");
        struct slice name = slice_from_offset(path, o->path.len + 1);
        size_t slash = slice_find_byte(name, '/');
        if (slash < name.len) {
            buf_append(skip, path.data, o->path.len + 1 + slash);
            buf_byte(skip, '0');
            return true;
        }
        const char *type = yyjson_get_str(yyjson_obj_get(source, "type"));
        print_doc(o, source, name, type != NULL && strcmp(type, "directory") == 0);
        ++*printed;
        buf_clear(after);
        buf_slice(after, path);
    }
    return yyjson_arr_size(hits) == PAGE;
}

static int list_by_search(const struct ls_options *o, struct client *client, size_t *printed)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf query = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf after = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf skip = BUF_INIT(BUF_UNLIMITED);
    buf_byte(&path, '/');
    client_escape(&path, slice_from(o->index));
    buf_lit(&path, "/_search?filter_path=hits.hits._source");
    if (o->as_of != NULL) {
        buf_lit(&path, "&as_of=");
        client_escape(&path, slice_from(o->as_of));
    }
    buf_byte(&path, '\0');
    for (;;) {
        write_query(&query, o, buf_as_slice(&after), buf_as_slice(&skip));
        long status = client_request(client, "POST", path.data, buf_as_slice(&query), 60 * TL_SECOND);
        if (status != 200) {
            fprintf(stderr, "tidelock ls: %s\n", client_error(client, status));
            return client_exit(status);
        }
        yyjson_val *hits = yyjson_obj_get(yyjson_obj_get(client_json(client), "hits"), "hits");
        if (!print_page(o, hits, &after, &skip, printed))
            return 0;
    }
}

/* --- By the tree -------------------------------------------------------------------------------------------------- */

static int list_tree(const struct ls_options *o, struct client *client, size_t *printed)
{
    tl_cleanup(directory_deinit) struct directory directory;
    struct directory_ask ask = {
        .index = o->index, .source = o->json ? "true" : "type,mode,owner,mtime,size", .as_of = o->as_of};
    long status = directory_read(client, &ask, o->path, &directory);
    if (status == 400 && ask.ts == 0)
        return list_by_search(o, client, printed);
    if (status != 200) {
        fprintf(stderr, "tidelock ls: %s\n", client_error(client, status));
        return client_exit(status);
    }
    for (size_t i = 0; i < directory.count; i++)
        print_doc(o, directory.items[i].source, directory.items[i].name, directory.items[i].directory);
    *printed = directory.count;
    return 0;
}

int command_ls(int argc, char **argv)
{
    static const struct argp argp = {options, parse_ls_option, "INDEX[:PATH]", doc, NULL, NULL, NULL};
    struct ls_options o = {.url = ARGUMENTS_URL_DEFAULT};
    struct client client;
    size_t printed = 0;
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    int status = list_tree(&o, &client, &printed);
    if (status == 0 && printed == 0) {
        fprintf(stderr, "tidelock ls: '%s' has no directory '%s/'\n", escape_terminal(o.index),
                escape_terminal_slice(o.path));
        status = 1;
    }
    client_deinit(&client);
    return status;
}
