/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock locks`: locks with holders and waiters, and since when; redrawn with --watch. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/lock_table.h"

enum { OPTION_URL = 256, OPTION_INTERVAL, OPTION_JSON };
enum { INTERVAL_US_MIN = 100 * 1000 };

struct locks_options {
    const char *index; /* NULL: all */
    const char *path;  /* NULL: all */
    const char *url;
    uint64_t interval_us;
    bool watch;
    bool json;
};

static const struct argp_option options[] = {
    {"watch", 'w', NULL, 0, "Redraw until interrupted", 1},
    {"interval", OPTION_INTERVAL, "TIME", 0, "Interval of --watch (1s)", 1},
    {"json", OPTION_JSON, NULL, 0, "Print the response of GET /_lock; with --watch one line each time", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] =
    "Show locks, their holders, and the queues of requests that wait for them: all locks, those of INDEX, or those "
    "in and above the directory INDEX:PATH.\v"
    "Examples:\n"
    "  tidelock locks\n"
    "  tidelock locks --watch fs:/clinton\n";

static error_t parse_locks_option(int key, char *text, struct argp_state *state)
{
    struct locks_options *o = state->input;
    switch (key) {
    case 'w': o->watch = true; break;
    case OPTION_INTERVAL:
        o->interval_us = arguments_duration(state, "interval", text);
        if (o->interval_us < INTERVAL_US_MIN)
            arguments_error(state, "--interval: not more often than every 100ms");
        break;
    case OPTION_URL: o->url = text; break;
    case OPTION_JSON: o->json = true; break;
    case ARGP_KEY_ARG:
        if (o->index != NULL)
            arguments_error(state, "too many arguments; expected INDEX[:PATH]");
        o->index = text;
        o->path = arguments_path(text);
        break;
    default: return client_option(key, text);
    }
    return 0;
}

/* A terminal gets a table that fits it, others one with everything in it. */
static void write_path(struct buf *to, const struct locks_options *o, bool terminal)
{
    buf_printf(to, "%s", terminal || o->json ? "/_lock?human=false" : "/_cat/locks?v");
    if (o->index != NULL) {
        buf_lit(to, "&index=");
        client_escape(to, slice_from(o->index));
    }
    if (o->path != NULL) {
        buf_lit(to, "&path=");
        client_escape(to, slice_from(o->path));
    }
    buf_byte(to, '\0');
}

static void print_plain(struct client *client, struct buf *to)
{
    struct slice table = buf_as_slice(&client->body);
    if (slice_find_byte(table, '\n') + 1 >= table.len) {
        buf_lit(to, LOCK_TABLE_EMPTY);
        return;
    }
    for (; table.len > 0;) {
        size_t len = slice_find_byte(table, '\n');
        buf_printf(to, "%s\n", escape_terminal_line(slice_make(table.data, len)));
        table = slice_from_offset(table, len + 1);
    }
}

/*
 * An index that does not exist may be locked, before it is created; if it is not locked, a mistyped
 * name must not look like an unlocked index.
 */
static bool is_missing(struct client *client, const char *index)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    if (index == NULL)
        return false;
    buf_byte(&path, '/');
    client_escape(&path, slice_from(index));
    buf_lit(&path, "/_alias?filter_path=none");
    buf_byte(&path, '\0');
    return client_request(client, "GET", path.data, SLICE_NONE, 10 * TL_SECOND) == 404;
}

/* One look. */
static int show_locks(struct client *client, const struct locks_options *o, const char *path, bool terminal,
                      bool redraw, bool *ret_none)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    long status = client_request(client, "GET", path, SLICE_NONE, 10 * TL_SECOND);
    if (status != 200)
        buf_printf(&text, "tidelock locks: %s\n", client_error(client, status));
    else if (o->json)
        buf_printf(&text, "%.*s\n", SLICE_ARG(buf_as_slice(&client->body)));
    else if (terminal)
        lock_table_print(client_json(client), redraw, &text);
    else
        print_plain(client, &text);
    *ret_none = slice_equal(buf_as_slice(&text), SLICE_LIT(LOCK_TABLE_EMPTY));
    if (redraw)
        terminal_overwrite(buf_as_slice(&text));
    else
        fwrite(text.data, 1, text.len, status == 200 ? stdout : stderr);
    fflush(stdout);
    return status == 200 ? 0 : client_exit(status);
}

int command_locks(int argc, char **argv)
{
    static const struct argp argp = {options, parse_locks_option, "[INDEX[:PATH]]", doc, NULL, NULL, NULL};
    struct locks_options o = {.url = ARGUMENTS_URL_DEFAULT, .interval_us = TL_SECOND};
    struct client client;
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    bool terminal = isatty(STDOUT_FILENO) == 1;
    bool redraw = terminal && o.watch && !o.json;
    write_path(&path, &o, terminal);
    if (redraw)
        fputs("\033[2J", stdout);
    bool none = false;
    int status = show_locks(&client, &o, path.data, terminal, redraw, &none);
    if (status == 0 && none && is_missing(&client, o.index)) {
        fprintf(stderr, "tidelock locks: there is no index '%s'\n", o.index);
        status = o.watch ? 0 : 1;
    }
    while (o.watch) {
        struct timespec pause = {(time_t)(o.interval_us / TL_SECOND), (long)(o.interval_us % TL_SECOND) * 1000};
        nanosleep(&pause, NULL);
        status = show_locks(&client, &o, path.data, terminal, redraw, &none);
    }
    client_deinit(&client);
    return status;
}
