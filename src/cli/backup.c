/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock backup`: has a running server make a copy of all that it has, on its own disk. */
#include <inttypes.h>
#include <stdio.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "json/each.h"

enum { OPTION_URL = 256, OPTION_JSON };

struct backup_options {
    const char *name;
    const char *url;
    bool json;
};

static const struct argp_option options[] = {
    {"json", OPTION_JSON, NULL, 0, "Print the response of the server", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] =
    "Make a backup NAME in the directory that the running server was started with (`tidelock serve --backups DIR'). "
    "It contains all changes that were acknowledged before. DIR/NAME is a data directory: it can be copied "
    "elsewhere, checked, and served.\v"
    "If DIR is on the file system of the data, files are linked, and only later changes need disk space. Remove a "
    "backup with rm -r.\n\n"
    "Examples:\n"
    "  tidelock backup before-the-upgrade\n"
    "  tidelock check --data DIR/before-the-upgrade\n"
    "  tidelock serve --data DIR/before-the-upgrade --listen 127.0.0.1:9201\n";

static error_t parse_backup_option(int key, char *text, struct argp_state *state)
{
    struct backup_options *o = state->input;
    switch (key) {
    case OPTION_URL: o->url = text; break;
    case OPTION_JSON: o->json = true; break;
    case ARGP_KEY_ARG:
        if (o->name != NULL)
            arguments_error(state, "too many arguments; expected NAME");
        o->name = text;
        break;
    case ARGP_KEY_END:
        if (o->name == NULL)
            arguments_error(state, "missing argument; expected NAME");
        break;
    default: return client_option(key, text);
    }
    return 0;
}

static uint64_t reply_number(yyjson_val *reply, const char *name)
{
    return yyjson_get_uint(yyjson_obj_get(reply, name));
}

static void print_done(const struct backup_options *o, const struct client *client)
{
    yyjson_val *reply = client_json(client);
    if (o->json)
        printf("%.*s\n", SLICE_ARG(buf_as_slice(&client->body)));
    else
        printf("%s: everything up to timestamp %" PRIu64 ", %.1f MB, in %.1f s\n", escape_terminal(o->name),
               reply_number(reply, "timestamp"), (double)reply_number(reply, "size_in_bytes") / 1e6,
               (double)reply_number(reply, "took") / 1e3);
}

int command_backup(int argc, char **argv)
{
    static const struct argp argp = {options, parse_backup_option, "NAME", doc, NULL, NULL, NULL};
    struct backup_options o = {.url = ARGUMENTS_URL_DEFAULT};
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct client client;
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    buf_lit(&path, "/_backup/");
    client_escape(&path, slice_from(o.name));
    buf_byte(&path, '\0');
    long status = client_request(&client, "POST", path.data, SLICE_NONE, 0);
    if (status == 200)
        print_done(&o, &client);
    else
        fprintf(stderr, "tidelock backup: %s\n", client_error(&client, status));
    client_deinit(&client);
    return status == 200 ? arguments_end_output("tidelock backup", 0) : client_exit(status);
}
