/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock status`: a server at a glance: version, timestamp, indices, sessions and transactions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/lock_table.h"
#include "json/each.h"

enum { OPTION_URL = 256, OPTION_JSON };

struct status_options {
    const char *url;
    bool json;
};

static const struct argp_option options[] = {
    {"json", OPTION_JSON, NULL, 0, "Print one object with the responses of the server for each part", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] =
    "Show the state of a server: time, indices, sessions, transactions and locks.\v"
    "Exit status 0 if the server answers, 69 if no server answers, 1 for an unexpected response.\n\n"
    "Example:\n"
    "  tidelock status --url http://127.0.0.1:9200\n";

static error_t parse_status_option(int key, char *text, struct argp_state *state)
{
    struct status_options *o = state->input;
    switch (key) {
    case OPTION_URL: o->url = text; return 0;
    case OPTION_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is not an option; --url names the server", text); return 0;
    default: return client_option(key, text);
    }
}

static const char *text_of(yyjson_val *object, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    return text != NULL ? escape_terminal(text) : "?";
}

/* Returns: 0, or the exit status. */
static int show_server(struct client *client, const char *url)
{
    long status = client_request(client, "GET", "/", SLICE_NONE, 10 * TL_SECOND);
    if (status != 200) {
        fprintf(stderr, "tidelock status: %s: %s\n", url_without_password(url), client_error(client, status));
        return client_exit(status);
    }
    yyjson_val *root = client_json(client);
    printf("%s at %s, cluster %s\n", text_of(root, "name"), url_without_password(url), text_of(root, "cluster_name"));
    status = client_request(client, "GET", "/_timestamp", SLICE_NONE, 10 * TL_SECOND);
    root = client_json(client);
    if (status == 200)
        printf("time %s (%llu), readable since %llu\n", text_of(root, "time"),
               (unsigned long long)yyjson_get_uint(yyjson_obj_get(root, "timestamp")),
               (unsigned long long)yyjson_get_uint(yyjson_obj_get(root, "oldest")));
    yyjson_val *steps = status == 200 ? yyjson_obj_get(root, "clock_steps") : NULL;
    if (steps != NULL)
        printf("the clock of its machine was set %llu times since the start, most recently by %.1f s\n",
               (unsigned long long)yyjson_get_uint(yyjson_obj_get(steps, "count")),
               (double)yyjson_get_sint(yyjson_obj_get(steps, "last_ms")) / 1000);
    status = client_request(client, "GET", "/_cluster/health", SLICE_NONE, 10 * TL_SECOND);
    if (status == 200 && yyjson_get_bool(yyjson_obj_get(client_json(client), "disk_full")))
        printf("WRITES ARE REFUSED: the disk is full (less than --reserve is free); free disk space, and writes "
               "continue\n");
    return 0;
}

/* Line by line, escaped: the server escapes its cells, but the answer may come from another program. */
static void print_lines(struct slice lines)
{
    for (; lines.len > 0;) {
        size_t len = slice_find_byte(lines, '\n');
        puts(escape_terminal_line(slice_make(lines.data, len)));
        lines = slice_from_offset(lines, len + 1);
    }
}

/* A table of the server's, under a title; one that has no rows is a word. */
static void show_table(struct client *client, const char *title, const char *path)
{
    long status = client_request(client, "GET", path, SLICE_NONE, 10 * TL_SECOND);
    if (status != 200)
        return;
    const char *end = client->body.len > 0 ? memchr(client->body.data, '\n', client->body.len) : NULL;
    bool empty = end == NULL || end + 1 == client->body.data + client->body.len;
    printf("\n%s%s\n", title, empty ? ": none" : "");
    if (!empty)
        print_lines(buf_as_slice(&client->body));
}

/* What ended sessions left to be done, and others' locks keep. */
static void show_deferred(struct client *client)
{
    size_t i, count;
    yyjson_val *kept;
    if (client_request(client, "GET", "/_session", SLICE_NONE, 10 * TL_SECOND) != 200)
        return;
    yyjson_val *all = yyjson_obj_get(client_json(client), "deferred");
    if (yyjson_arr_size(all) > 0)
        printf("\nDeferred cleanup actions of ended sessions, until the locks on their documents are released\n");
    bool any_aside = false;
    json_arr_foreach (all, i, count, kept) {
        yyjson_val *name = yyjson_obj_get(kept, "name");
        printf("%s ", text_of(kept, "action"));
        printf("%s/%s", text_of(kept, "index"), text_of(kept, "id"));
        printf(", cleanup of %s", text_of(kept, name != NULL ? "name" : "session"));
        bool aside = yyjson_get_bool(yyjson_obj_get(kept, "aside"));
        any_aside |= aside;
        if (aside)
            printf(", deferred as %" PRIu64, yyjson_get_uint(yyjson_obj_get(kept, "number")));
        printf("\n");
    }
    if (any_aside)
        printf("Actions deferred with a number are put aside: the server ended in them twice, their scripts took too "
               "long, or they needed more memory than was left; GET /_lock/_events says which. "
               "POST /_session/_deferred/NUMBER/_retry does it, DELETE /_session/_deferred/NUMBER drops it.\n");
}

/* On a terminal as `tidelock locks` shows them. */
static void show_locks(struct client *client)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (isatty(STDOUT_FILENO) != 1) {
        show_table(client, "Locks", "/_cat/locks?v");
        return;
    }
    if (client_request(client, "GET", "/_lock", SLICE_NONE, 10 * TL_SECOND) != 200)
        return;
    bool none = yyjson_arr_size(yyjson_obj_get(client_json(client), "locks")) == 0;
    if (!none)
        lock_table_print(client_json(client), false, &text);
    printf("\nLocks%s\n%.*s", none ? ": none" : "", SLICE_ARG(buf_as_slice(&text)));
}

/* A server without copies prints nothing. */
static void show_copies(struct client *client)
{
    if (client_request(client, "GET", "/_cat/copies", SLICE_NONE, 10 * TL_SECOND) == 200 && client->body.len > 0)
        show_table(client, "Copies", "/_cat/copies?v");
}

/* The unchanged answers, each under the name of its call. */
static int show_json(struct client *client, const char *url)
{
    static const struct {
        const char *name;
        const char *path;
    } parts[] = {
        {"server", "/"},
        {"time", "/_timestamp"},
        {"health", "/_cluster/health"},
        {"indices", "/_cat/indices?format=json&bytes=b"},
        {"sessions", "/_session"},
        {"transactions", "/_transaction"},
        {"locks", "/_lock"},
        {"copies", "/_changes/_consumers"},
        {"memory", "/_cat/memory?format=json&bytes=b"},
    };
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        long status = client_request(client, "GET", parts[i].path, SLICE_NONE, 10 * TL_SECOND);
        if (status == 404)
            continue; /* of an older version, which has no such part */
        if (status != 200) {
            fprintf(stderr, "tidelock status: %s: %s\n", url_without_password(url), client_error(client, status));
            return client_exit(status);
        }
        buf_printf(&text, "%s\"%s\":", i == 0 ? "{" : ",", parts[i].name);
        buf_slice(&text, buf_as_slice(&client->body));
    }
    printf("%.*s}\n", SLICE_ARG(buf_as_slice(&text)));
    return 0;
}

int command_status(int argc, char **argv)
{
    static const struct argp argp = {options, parse_status_option, NULL, doc, NULL, NULL, NULL};
    struct status_options o = {.url = ARGUMENTS_URL_DEFAULT};
    struct client client;
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    int status = o.json ? show_json(&client, o.url) : show_server(&client, o.url);
    if (status == 0 && !o.json) {
        show_table(&client, "Indices", "/_cat/indices?v&h=index,docs.count,store.size");
        show_table(&client, "Sessions", "/_cat/sessions?v");
        show_deferred(&client);
        show_table(&client, "Transactions", "/_cat/transactions?v");
        show_locks(&client);
        show_copies(&client);
        show_table(&client, "Memory", "/_cat/memory?v");
    }
    client_deinit(&client);
    return status;
}
