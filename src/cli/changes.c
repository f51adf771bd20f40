/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock changes`: the feed on a terminal. Each answer says up to when it has everything, which
 * is where the next one begins.
 */
#include <inttypes.h>
#include <signal.h>
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

enum { OPTION_URL = 256, OPTION_JSON, OPTION_SINCE, OPTION_INDEX };

#define SINCE_DEFAULT_US (600 * TL_SECOND)
#define AWAY_US (1000 * TL_MS) /* between two tries to reach a server that is away */

struct changes_options {
    const char *url;
    const char *index; /* NULL: all */
    bool follow;
    bool json;
    uint64_t since;  /* 0: not given */
    uint64_t ago_us; /* 0: not given */
};

static const struct argp_option options[] = {
    {"since", OPTION_SINCE, "T|-TIME", 0,
     "Changes after this timestamp, or since a time ago such as -10m (the default; with --follow: now)", 1},
    {"index", OPTION_INDEX, "NAME,...", 0, "Indices, aliases or patterns (all)", 1},
    {"follow", 'f', NULL, 0, "Continue with new changes until ^C, also after restarts of the server", 1},
    {"json", OPTION_JSON, NULL, 0, "Print the response of the server: one line per commit, with the documents", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] =
    "Print changes in commit order: the time, the operation, the document or index, and the new version. "
    "The changes of one commit are printed together, with the transaction's id.\v"
    "`tidelock serve --feed' limits how far back it reaches. With --json, the timestamp of the last line is the next "
    "--since.\n\n"
    "Examples:\n"
    "  tidelock changes --since -1h --index fs\n"
    "  tidelock changes --follow\n"
    "  tidelock changes --follow --json | my-program\n";

static void parse_since(struct changes_options *o, const char *text, const struct argp_state *state)
{
    char *end;
    o->since = o->ago_us = 0;
    if (text[0] == '-')
        o->ago_us = arguments_duration(state, "since", text + 1);
    else if ((o->since = strtoull(text, &end, 10)) == 0 || *end != '\0')
        arguments_error(state,
                        "--since: '%s' is neither a timestamp in microseconds, as from `curl .../_timestamp', nor a "
                        "time such as -10m",
                        text);
}

static error_t parse_changes_option(int key, char *text, struct argp_state *state)
{
    struct changes_options *o = state->input;
    switch (key) {
    case OPTION_URL: o->url = text; break;
    case OPTION_JSON: o->json = true; break;
    case OPTION_SINCE: parse_since(o, text, state); break;
    case OPTION_INDEX: o->index = text; break;
    case 'f': o->follow = true; break;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is not an option; --index names an index", text); break;
    default: return client_option(key, text);
    }
    return 0;
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

static const char *text_of(yyjson_val *object, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, name));
    return text == NULL ? "" : text;
}

/* The location of a document, in the form of other commands; its type if it is not the usual one. */
static void print_document(yyjson_val *change)
{
    const char *type = text_of(change, "_type");
    bool usual = *type == '\0' || strcmp(type, "_doc") == 0;
    printf("%s/%s%s%s", escape_terminal(text_of(change, "_index")), usual ? "" : escape_terminal(type),
           usual ? "" : "/", escape_terminal(text_of(change, "_id")));
    yyjson_val *version = yyjson_obj_get(change, "_version");
    if (version != NULL)
        printf("  v%" PRIu64, yyjson_get_uint(version));
    if (yyjson_get_bool(yyjson_obj_get(change, "later")))
        printf("  (as it was later)");
}

static void print_change(yyjson_val *change, const char *when)
{
    const char *op = text_of(change, "op");
    printf("%s  %-13s  ", when, escape_terminal(op));
    if (strcmp(op, "index") == 0 || strcmp(op, "delete") == 0)
        print_document(change);
    else if (strcmp(op, "rename") == 0)
        printf("%s: %s -> %s", escape_terminal(text_of(change, "index")), escape_terminal(text_of(change, "from")),
               escape_terminal(text_of(change, "to")));
    else
        printf("%s", escape_terminal(text_of(change, "_index")));
    printf("\n");
}

/* The first change of a commit is printed with its time, the others below it without. */
static void print_commit(yyjson_val *commit)
{
    uint64_t ts = yyjson_get_uint(yyjson_obj_get(commit, "timestamp"));
    const char *transaction = text_of(commit, "transaction");
    time_t seconds = (time_t)(ts / TL_SECOND);
    char when[64], first[80];
    struct tm day;
    size_t i, count;
    yyjson_val *change;
    localtime_r(&seconds, &day);
    strftime(when, sizeof when, "%F %T", &day);
    snprintf(first, sizeof first, "%s.%06" PRIu64, when, ts % TL_SECOND);
    json_arr_foreach (yyjson_obj_get(commit, "changes"), i, count, change)
        print_change(change, i == 0 ? first : "                          ");
    if (*transaction != '\0')
        printf("%26s  by transaction %s\n", "", escape_terminal(transaction));
}

static void print_lines(const struct changes_options *o, struct slice lines)
{
    while (lines.len > 0) {
        size_t len = slice_find_byte(lines, '\n');
        yyjson_doc *line = o->json ? NULL : yyjson_read(lines.data, len, 0);
        if (o->json)
            printf("%.*s\n", (int)len, lines.data);
        else
            print_commit(yyjson_doc_get_root(line));
        yyjson_doc_free(line);
        lines = slice_from_offset(lines, len + 1);
    }
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

/* Asks for what comes after `since`, with 0 only for the present timestamp. Returns: the status. */
static long ask_changes(const struct changes_options *o, struct client *client, uint64_t since, bool waits)
{
    enum { WAIT_SECONDS = 60 };
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&path, "/_changes?");
    if (since != 0)
        buf_printf(&path, "since=%" PRIu64 "&", since);
    if (o->index != NULL) {
        buf_lit(&path, "index=");
        client_escape(&path, slice_from(o->index));
        buf_byte(&path, '&');
    }
    if (waits)
        buf_printf(&path, "wait=%ds&", WAIT_SECONDS);
    buf_printf(&path, "source=%s", o->json ? "true" : "false");
    buf_byte(&path, '\0');
    long status = client_request(client, "GET", path.data, SLICE_NONE, 0);
    buf_deinit(&path);
    return status;
}

/*
 * Where to begin. So long ago there may have been no feed: then where it begins. Returns: the
 * status of the last answer.
 */
static long find_begin(const struct changes_options *o, struct client *client, uint64_t *ret_since)
{
    *ret_since = o->since;
    if (o->since != 0)
        return 200;
    long status = ask_changes(o, client, 0, false);
    if (status != 200)
        return status;
    uint64_t now = client->timestamp, ago = o->ago_us != 0 ? o->ago_us : o->follow ? 0 : SINCE_DEFAULT_US;
    *ret_since = ago == 0 ? now : ago < now ? now - ago : 1;
    if (ago == 0)
        return 200;
    status = ask_changes(o, client, *ret_since, false);
    yyjson_val *oldest = yyjson_obj_get(yyjson_obj_get(client_json(client), "error"), "oldest");
    if (status == 410)
        *ret_since = yyjson_is_uint(oldest) ? yyjson_get_uint(oldest) : now;
    return status == 410 ? 200 : status;
}

/* Until there is nothing more, or for ever. Returns: the status of the last answer. */
static long print_all(const struct changes_options *o, struct client *client, uint64_t since)
{
    bool was_away = false;
    for (;;) {
        long status = ask_changes(o, client, since, o->follow);
        bool away = o->follow && (status == 0 || status == 503);
        if (away && !was_away)
            fprintf(stderr, "tidelock changes: %s; waiting for the server\n", client_error(client, status));
        was_away = away;
        if (away) {
            usleep(AWAY_US);
            continue;
        }
        if (status != 200)
            return status;
        print_lines(o, buf_as_slice(&client->body));
        if ((client->body.len == 0 && !o->follow) || fflush(stdout) != 0)
            return status;
        since = client->timestamp;
    }
}

int command_changes(int argc, char **argv)
{
    static const struct argp argp = {options, parse_changes_option, NULL, doc, NULL, NULL, NULL};
    struct changes_options o = {.url = ARGUMENTS_URL_DEFAULT};
    struct client client;
    uint64_t since;
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    long status = find_begin(&o, &client, &since);
    if (status == 200)
        status = print_all(&o, &client, since);
    if (status != 200)
        fprintf(stderr, "tidelock changes: %s\n", client_error(&client, status));
    client_deinit(&client);
    return status == 200 ? arguments_end_output("tidelock changes", 0) : client_exit(status);
}
