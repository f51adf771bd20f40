/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock hosts`: the hosts of a cluster, how far each has come and how far its clock is off;
 * redrawn when asked to watch.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "json/each.h"

enum { OPTION_URL = 256, OPTION_INTERVAL, OPTION_JSON };
enum { INTERVAL_US_MIN = 100 * 1000 };

#define COLUMNS "name,group,address,live,lag.ms,lag.entries,clock.ms,applied,applied.timestamp,chain,build"

struct hosts_options {
    const char *url;
    uint64_t interval_us;
    bool watch;
    bool json;
};

static const struct argp_option options[] = {
    {"watch", 'w', NULL, 0, "Redraw until interrupted", 1},
    {"interval", OPTION_INTERVAL, "TIME", 0, "Interval of --watch (1s)", 1},
    {"json", OPTION_JSON, NULL, 0, "Print the response of GET /_cluster/hosts; with --watch one line each time", 1},
    {"url", OPTION_URL, "URL", 0, "A server of the cluster (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] =
    "Show the hosts of a cluster: `*` is the keeper, `+` is live, `-` is out; the lag of each, the difference of its "
    "clock from that of the host that answers, and its position in the log with the timestamp and a hash of its "
    "state.\v"
    "Exit status 0 if all hosts are live; 1 if one is not, or if the host that answers cannot reach the log of the "
    "cluster; 69 if no server answers.\n\n"
    "Examples:\n"
    "  tidelock hosts --url http://10.0.0.1:9200\n"
    "  tidelock hosts --watch\n";

static error_t parse_hosts_option(int key, char *text, struct argp_state *state)
{
    struct hosts_options *o = state->input;
    switch (key) {
    case 'w': o->watch = true; break;
    case OPTION_INTERVAL:
        o->interval_us = arguments_duration(state, "interval", text);
        if (o->interval_us < INTERVAL_US_MIN)
            arguments_error(state, "--interval: not more often than every 100ms");
        break;
    case OPTION_URL: o->url = text; break;
    case OPTION_JSON: o->json = true; break;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is not an option; --url names the server", text); break;
    default: return client_option(key, text);
    }
    return 0;
}

/* Whether the cluster is whole, as the host that is asked sees it. */
static bool all_live(yyjson_val *reply)
{
    size_t i, count;
    yyjson_val *host;
    bool live = yyjson_get_bool(yyjson_obj_get(reply, "serves"));
    json_arr_foreach (yyjson_obj_get(reply, "hosts"), i, count, host)
        live = live && yyjson_get_bool(yyjson_obj_get(host, "live"));
    return live;
}

static long write_table(struct client *client, struct buf *to)
{
    long status = client_request(client, "GET", "/_cat/hosts?v&h=" COLUMNS, SLICE_NONE, 10 * TL_SECOND);
    struct slice table = buf_as_slice(&client->body);
    for (; status == 200 && table.len > 0;) {
        size_t len = slice_find_byte(table, '\n');
        buf_printf(to, "%s\n", escape_terminal_line(slice_make(table.data, len)));
        table = slice_from_offset(table, len + 1);
    }
    return status;
}

/* One look. Returns: the exit status. */
static int show_hosts(struct client *client, const struct hosts_options *o, bool redraw)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    long status = client_request(client, "GET", "/_cluster/hosts", SLICE_NONE, 10 * TL_SECOND);
    yyjson_val *reply = client_json(client);
    bool live = status == 200 && all_live(reply), serves = yyjson_get_bool(yyjson_obj_get(reply, "serves"));
    if (status == 200 && yyjson_arr_size(yyjson_obj_get(reply, "hosts")) == 0 && !o->json)
        buf_printf(&text, "the server at %s is in no cluster\n", url_without_password(o->url));
    else if (status == 200 && o->json)
        buf_printf(&text, "%.*s\n", SLICE_ARG(buf_as_slice(&client->body)));
    else if (status == 200) {
        status = write_table(client, &text);
        if (status == 200 && !serves)
            buf_lit(&text, "the host that is asked cannot reach the log of the cluster\n");
    }
    if (status != 200) {
        buf_clear(&text);
        buf_printf(&text, "tidelock hosts: %s: %s\n", url_without_password(o->url), client_error(client, status));
    }
    if (redraw)
        terminal_overwrite(buf_as_slice(&text));
    else
        fwrite(text.data, 1, text.len, status == 200 ? stdout : stderr);
    fflush(stdout);
    if (status != 200)
        return client_exit(status);
    return live ? 0 : 1;
}

int command_hosts(int argc, char **argv)
{
    static const struct argp argp = {options, parse_hosts_option, NULL, doc, NULL, NULL, NULL};
    struct hosts_options o = {.url = ARGUMENTS_URL_DEFAULT, .interval_us = TL_SECOND};
    struct client client;
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    bool redraw = o.watch && !o.json && isatty(STDOUT_FILENO) == 1;
    if (redraw)
        fputs("\033[2J", stdout);
    int status = show_hosts(&client, &o, redraw);
    while (o.watch) {
        struct timespec pause = {(time_t)(o.interval_us / TL_SECOND), (long)(o.interval_us % TL_SECOND) * 1000};
        nanosleep(&pause, NULL);
        status = show_hosts(&client, &o, redraw);
    }
    client_deinit(&client);
    return status;
}
