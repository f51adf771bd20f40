/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock mv`: gives the documents at a path, and all below it, another path, like mv(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "json/each.h"

enum { OPTION_URL = 256, OPTION_WAIT, EXIT_LOCKED = 75 };

struct mv_options {
    const char *words[3]; /* index, from, to */
    int word_count;
    const char *url;
    const char *wait;        /* NULL: as long as a write */
    const char *session;     /* NULL: none */
    const char *transaction; /* NULL: none */
};

static const struct argp_option options[] = {
    {"wait", OPTION_WAIT, "TIME", 0, "How long to wait for conflicting locks (10s)", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] = "Rename a directory with all of its content, or a file, from the path FROM to the path TO. "
                          "The rename is atomic, and takes as long for a million files as for one. TO must not exist; "
                          "directories above it need not exist. Under `tidelock lock` it uses that session's locks and "
                          "transaction. Exit status 75 if a lock was not granted in time.\v"
                          "Examples:\n"
                          "  tidelock mv fs /clinton /bill\n"
                          "  tidelock lock fs:/clinton -- tidelock mv fs /clinton /bill\n";

static error_t parse_mv_option(int key, char *text, struct argp_state *state)
{
    struct mv_options *o = state->input;
    switch (key) {
    case OPTION_WAIT: o->wait = text; break;
    case OPTION_URL: o->url = text; break;
    case ARGP_KEY_ARG:
        if (o->word_count == 3)
            arguments_error(state, "too many arguments; expected INDEX FROM TO");
        else
            o->words[o->word_count++] = text;
        break;
    case ARGP_KEY_END:
        if (o->word_count < 3)
            arguments_error(state, "missing arguments; expected INDEX FROM TO");
        break;
    default: return client_option(key, text);
    }
    return 0;
}

static void add_param(struct buf *path, char *before, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    buf_printf(path, "%c%s=", *before, name);
    client_escape(path, slice_from(value));
    *before = '&';
}

int command_mv(int argc, char **argv)
{
    static const struct argp argp = {options, parse_mv_option, "INDEX FROM TO", doc, NULL, NULL, NULL};
    struct mv_options o = {.url = ARGUMENTS_URL_DEFAULT,
                           .session = getenv("TIDELOCK_SESSION"),
                           .transaction = getenv("TIDELOCK_TRANSACTION")};
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    struct client client;
    char before = '?';
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    buf_byte(&path, '/');
    client_escape(&path, slice_from(o.words[0]));
    buf_lit(&path, "/_rename");
    add_param(&path, &before, "timeout", o.wait);
    add_param(&path, &before, "session", o.session);
    add_param(&path, &before, "transaction", o.transaction);
    buf_byte(&path, '\0');
    buf_lit(&body, "{\"from\":");
    buf_json_string(&body, slice_from(o.words[1]));
    buf_lit(&body, ",\"to\":");
    buf_json_string(&body, slice_from(o.words[2]));
    buf_byte(&body, '}');
    long status = client_request(&client, "POST", path.data, buf_as_slice(&body), 0);
    if (status != 200)
        fprintf(stderr, "tidelock mv: %s\n", client_error(&client, status));
    bool locked = client_has_error(&client, "lock_wait_timeout_exception");
    client_deinit(&client);
    return status == 200 ? 0 : locked ? EXIT_LOCKED : client_exit(status);
}
