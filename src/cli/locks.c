/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock locks`: who holds what, who waits for whom and since when; redrawn when asked to watch. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"

enum { OPTION_URL = 256, OPTION_INTERVAL };
enum { INTERVAL_US_MIN = 100 * 1000 };

struct locks_options {
    const char *index; /* NULL: all */
    const char *path;  /* NULL: all */
    const char *url;
    uint64_t interval_us;
    bool watch;
};

static const struct argp_option options[] = {
    {"watch", 'w', NULL, 0, "Show it again and again, until interrupted", 1},
    {"interval", OPTION_INTERVAL, "TIME", 0, "How often (1s)", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    {0},
};

static const char doc[] =
    "Show locks, their holders, and who waits for them in which order; all of them, or those of INDEX, or those\n"
    "in and above the directory INDEX:PATH.\v"
    "Examples:\n"
    "  tidelock locks\n"
    "  tidelock locks --watch fs:/clinton\n";

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct locks_options *o = state->input;
    switch (key) {
    case 'w': o->watch = true; break;
    case OPTION_INTERVAL:
        o->interval_us = arguments_duration(state, "interval", text);
        if (o->interval_us < INTERVAL_US_MIN)
            argp_error(state, "--interval: not more often than every 100ms");
        break;
    case OPTION_URL: o->url = text; break;
    case ARGP_KEY_ARG:
        if (o->index != NULL)
            argp_error(state, "one INDEX at a time, please");
        o->index = text;
        o->path = arguments_path(text);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void write_path(struct buf *to, const struct locks_options *o)
{
    buf_lit(to, "/_cat/locks?v");
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

/* One look. The table is printed at once, so that a redrawn screen does not flicker. */
static int show(struct client *client, const char *path, bool redraw)
{
    long status = client_request(client, "GET", path, SLICE_NONE, 10 * TL_SECOND);
    if (redraw)
        fputs("\033[H\033[2J", stdout);
    if (status != 200) {
        fprintf(stderr, "tidelock locks: %s\n", client_error(client, status));
        return 1;
    }
    const char *end = memchr(client->body.data, '\n', client->body.len);
    bool none = end == NULL || end + 1 == client->body.data + client->body.len;
    if (none)
        printf("nobody holds or awaits a lock\n");
    else
        printf("%.*s", (int)client->body.len, client->body.data);
    fflush(stdout);
    return 0;
}

int command_locks(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "[INDEX[:PATH]]", doc, NULL, NULL, NULL};
    struct locks_options o = {.url = ARGUMENTS_URL_DEFAULT, .interval_us = TL_SECOND};
    struct client client;
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init(&client, o.url);
    write_path(&path, &o);
    bool redraw = o.watch && isatty(STDOUT_FILENO) == 1;
    int status = show(&client, path.data, redraw);
    while (o.watch) {
        struct timespec pause = {(time_t)(o.interval_us / TL_SECOND), (long)(o.interval_us % TL_SECOND) * 1000};
        nanosleep(&pause, NULL);
        status = show(&client, path.data, redraw);
    }
    client_deinit(&client);
    return status;
}
