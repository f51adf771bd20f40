/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock restore`: makes a data directory as of a timestamp, from an earlier backup and the log
 * since then (relog.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/relog.h"

enum { OPTION_FROM = 256, OPTION_LOG, OPTION_UNTIL };

struct restore_options {
    const char *data;
    struct relog_options relog;
};

static const struct argp_option options[] = {
    {"from", OPTION_FROM, "BACKUP", 0, "The backup to start from: a directory made by `tidelock backup'", 1},
    {"log", OPTION_LOG, "DIR", 0,
     "The log since the backup: the directory of --log-archive, and `log' of the data directory; repeatable", 1},
    {"until", OPTION_UNTIL, "T", 0,
     "The timestamp of the last change to restore, in microseconds, as printed by `tidelock changes --json' (all "
     "changes)",
     1},
    {"data", 'd', "DIR", 0, "The data directory to create", 1},
    {0},
};

static const char doc[] =
    "Create a data directory with the state at a timestamp, from an earlier backup and the log since "
    "then. The backup and the logs are not changed. "
    "No server may be using the logs.\v"
    "Example:\n"
    "  tidelock restore --from backups/nightly --log log-archive \\\n"
    "      --log old-data/log --until 1795440085045274 --data restored\n"
    "  tidelock serve --data restored\n";

static error_t parse_restore_option(int key, char *text, struct argp_state *state)
{
    struct restore_options *o = state->input;
    char *end;
    switch (key) {
    case 'd': o->data = text; break;
    case OPTION_FROM: o->relog.from = text; break;
    case OPTION_LOG:
        if (o->relog.log_count == RELOG_LOGS_MAX)
            arguments_error(state, "--log: %d folders at most", RELOG_LOGS_MAX);
        else
            o->relog.logs[o->relog.log_count++] = text;
        break;
    case OPTION_UNTIL:
        errno = 0;
        o->relog.until = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || o->relog.until == 0 ||
            o->relog.until >= TL_TS_MAX)
            arguments_error(state, "--until: '%s' is not a timestamp in microseconds", text);
        break;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is not an option; options have the form --name=value", text); break;
    case ARGP_KEY_END:
        if (o->relog.from == NULL || o->data == NULL || o->relog.log_count == 0)
            arguments_error(state, "missing options; --from, --log and --data are required");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int command_restore(int argc, char **argv)
{
    static const struct argp argp = {options, parse_restore_option, NULL, doc, NULL, NULL, NULL};
    struct restore_options o = {.relog = {.until = TL_TS_MAX, .last = UINT64_MAX}};
    struct relogged made;
    arguments_parse(&argp, argc, argv, 0, &o);
    if (access(o.data, F_OK) == 0) {
        fprintf(stderr, "tidelock: %s exists; use the name of a new directory\n", escape_terminal(o.data));
        return 1;
    }
    tl_cleanup(buf_deinit) struct buf part = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&part, "%s.part", o.data);
    buf_byte(&part, '\0');
    if (relog_make(&o.relog, part.data, &made) != 0)
        return 1;
    if (rename(part.data, o.data) != 0) {
        fprintf(stderr, "tidelock: %s: %s\n", escape_terminal(o.data), strerror(errno));
        relog_remove(part.data);
        return 1;
    }
    printf("%s: the backup and %" PRIu64 " entries of the log, up to timestamp %" PRIu64
           "; a server applies them when it starts\n",
           escape_terminal(o.data), made.entries, made.newest);
    return arguments_end_output("tidelock restore", 0);
}
