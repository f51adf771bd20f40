/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock check`: reads everything of a stopped store and says whether it is sound. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/cluster_options.h"
#include "cli/command.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "cli/durable.h"
#include "cli/escape.h"
#include "cli/relog.h"
#include "cli/replayed.h"
#include "cli/inspect.h"
#include "cli/member.h"
#include "core/step/core.h"

#define MEMBER_REPLAY \
    "the directory is a host's of a cluster, whose log is in etcd: --cluster URL/PREFIX compares it with the log"
#define NO_MEMBER "the directory is no host's of a cluster; --replay and --replay-all compare it with its own log"

enum { OPTION_REPLAY = 256, OPTION_REPLAY_ALL, OPTION_LOG };

struct check_options {
    const char *data;
    bool replay_all;             /* from the first entry of the log */
    struct relog_options replay; /* `from` NULL and not replay_all: no replay */
    struct cluster_options cluster;     /* no URL: not compared */
    struct cluster_options environment; /* until the command line has been parsed */
    bool cluster_is_environments;       /* the URL: it has no effect on other directories than a host's */
};

static const struct argp_option options[] = {
    {"data", 'd', "DIR", 0, "The data directory (./tidelock-data)", 1},
    {"replay", OPTION_REPLAY, "BACKUP", 0,
     "Apply the log since this backup again, and compare the result with the data; needs as much disk space next to "
     "DIR as the backup",
     1},
    {"replay-all", OPTION_REPLAY_ALL, NULL, 0, "The same from the first entry of the log, if the log is complete", 1},
    {"log", OPTION_LOG, "DIR", 0,
     "With --replay and --replay-all: the directory of --log-archive, in addition to `log' of the data directory; "
     "repeatable",
     1},
    {"cluster", CLUSTER_OPTION_URL, "URL/PREFIX", 0,
     "Of a cluster's host: apply the entries of the cluster's log since the host's checkpoint, and "
     "compare the result with the states that the hosts have reported; needs as much disk space next to "
     "DIR as DIR. Only reads etcd",
     2},
    CLUSTER_TLS_OPTIONS(2),
    {0},
};

static const char doc[] =
    "Verify a stopped store: the checksums of all blocks, every document, that index entries and documents match in "
    "both directions, and the counters. After a crash, the entries of the log that follow the last checkpoint are "
    "applied to a copy in DIR.replayed, which is removed, and that is verified.\v"
    "The data is not changed. Exit status 0 if it is sound; 1 if it is not, or cannot be read.\n\n"
    "Examples:\n"
    "  tidelock check --data /var/lib/tidelock\n"
    "  tidelock check --data /var/lib/tidelock \\\n"
    "      --replay backups/nightly --log log-archive\n"
    "  tidelock check --data /var/lib/tidelock \\\n"
    "      --cluster http://10.0.0.1:2379/tidelock\n";

/*
 * Adds the environment's values: those of a host that is checked on its machine. Unlike options on
 * the command line they need not apply: --replay and http:// exclude them.
 */
static void add_environment(struct check_options *o)
{
    const struct cluster_options *environment = &o->environment;
    o->cluster_is_environments = o->cluster.url == NULL && o->replay.from == NULL && !o->replay_all;
    if (o->cluster_is_environments)
        o->cluster.url = environment->url;
    if (!cluster_options_are_tls(&o->cluster))
        return;
    if (o->cluster.ca == NULL)
        o->cluster.ca = environment->ca;
    if (o->cluster.cert == NULL && o->cluster.key == NULL) {
        o->cluster.cert = environment->cert;
        o->cluster.key = environment->key;
    }
}

/* Refuses options of a cluster that have no effect. */
static void check_cluster(const struct argp_state *state, struct check_options *o)
{
    add_environment(o);
    if (o->cluster.url != NULL && (o->replay.from != NULL || o->replay_all))
        arguments_error(state, "--cluster and --replay exclude each other: a host's log is in etcd");
    if (!cluster_options_are_tls(&o->cluster) &&
        (o->cluster.ca != NULL || o->cluster.cert != NULL || o->cluster.key != NULL))
        arguments_error(state, "--cluster-ca, --cluster-cert and --cluster-key need --cluster with https://");
    (void)cluster_options_check_pair(state, &o->cluster);
}

static error_t parse_check_option(int key, char *text, struct argp_state *state)
{
    struct check_options *o = state->input;
    switch (key) {
    case 'd': o->data = text; return 0;
    case OPTION_REPLAY: o->replay.from = text; return 0;
    case OPTION_REPLAY_ALL: o->replay_all = true; return 0;
    case OPTION_LOG:
        if (o->replay.log_count == RELOG_LOGS_MAX - 1)
            arguments_error(state, "--log: %d folders at most", RELOG_LOGS_MAX - 1);
        else
            o->replay.logs[o->replay.log_count++] = text;
        return 0;
    case ARGP_KEY_END:
        check_cluster(state, o);
        if (o->replay.from != NULL && o->replay_all)
            arguments_error(state, "--replay and --replay-all exclude each other");
        if (o->replay.from == NULL && !o->replay_all && o->replay.log_count > 0)
            arguments_error(state, "--log goes with --replay or --replay-all");
        return 0;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is not an option; --data=DIR names the store", text); return 0;
    default:
        return cluster_options_set(arguments_are_environment() ? &o->environment : &o->cluster, key, text)
                   ? 0
                   : ARGP_ERR_UNKNOWN;
    }
}

static int report_failure(const char *what, int code, char *reason)
{
    printf("%s: %s\n", escape_terminal(what), reason != NULL ? escape_terminal(reason) : error_text(code));
    mem_free(reason);
    return 1;
}

static int check_indices(struct inspection *inspection, const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog_index_count(catalog); i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        uint64_t before = inspection->documents;
        int r = inspect_index(inspection, index);
        if (r != 0)
            return r;
        printf("index %s: %" PRIu64 " documents\n", escape_terminal_slice(index->name), inspection->documents - before);
    }
    return 0;
}

/* Returns: the exit status. */
static int check_state(const struct durable *durable)
{
    struct view view = {durable->store, TL_TS_MAX,
                        NULL}; /* of a store that was idle the history may begin above its last change */
    struct inspection inspection = {.view = &view, .report = stdout};
    struct catalog *catalog = core_catalog(durable->core);
    int r = check_indices(&inspection, catalog);
    catalog_unref(catalog);
    if (r != 0)
        return report_failure("reading", r, NULL);
    printf("%" PRIu64 " documents, %" PRIu64 " entries (%" PRIu64 " of superseded versions, to be purged)\n",
           inspection.documents, inspection.entries, inspection.stale);
    if (inspection.faults > 0) {
        printf("%zu faults\n", inspection.faults);
        return 1;
    }
    printf("sound\n");
    return 0;
}

/*
 * Checks that every command after the store's checkpoint can be read, unless the log is that of a
 * cluster. *ret_after: the number of entries that a start applies. Returns: the exit status.
 */
static int check_log(const struct check_options *o, const struct durable *durable, cmdlog_position *ret_after)
{
    *ret_after = 0;
    if (durable->is_member) {
        printf("a host of a cluster, as of entry %" PRIu64 " of the cluster's log%s\n", durable->recovered.checkpoint,
               o->cluster.url != NULL ? "" : ", which is in etcd and is not read (--cluster)");
        return 0;
    }
    char *reason = NULL;
    int r = durable->log == NULL ? 0 : recover_check_log(durable->log, &durable->recovered, ret_after, &reason);
    return r != 0 ? report_failure("the log of commands", r, reason) : 0;
}

/*
 * Compares the store with a replay of the log, if one was requested. The data directory's own log
 * is the last in the list: its entries may be in the archive, too. Returns: the exit status.
 */
static int check_replay(struct check_options *o, const struct durable *durable)
{
    tl_cleanup(buf_deinit) struct buf own = BUF_INIT(BUF_UNLIMITED);
    if (o->replay.from == NULL && !o->replay_all)
        return 0;
    if (durable->is_member)
        return report_failure(o->replay_all ? "--replay-all" : "--replay", TL_ERR_IO,
                              mem_strdup(MEMBER_REPLAY, strlen(MEMBER_REPLAY)));
    buf_printf(&own, "%s/log", o->data);
    buf_byte(&own, '\0');
    o->replay.logs[o->replay.log_count++] = own.data;
    return replayed_compare(o->data, durable, &o->replay);
}

/* Compares a host's directory with the cluster's log, if that was requested. Returns: the exit status. */
static int check_with_cluster(const struct check_options *o, const struct durable *durable)
{
    const struct cmdlog_etcd_options opening = {.url = slice_from(o->cluster.url == NULL ? "" : o->cluster.url),
                                                .name = SLICE_LIT("check"), /* under which nothing is written */
                                                .ca = o->cluster.ca,
                                                .cert = o->cluster.cert,
                                                .key = o->cluster.key};
    struct cmdlog *log;
    cmdlog_position genesis;
    char *reason = NULL;
    if (o->cluster.url == NULL || (!durable->is_member && o->cluster_is_environments))
        return 0;
    if (!durable->is_member)
        return report_failure("--cluster", TL_ERR_IO, mem_strdup(NO_MEMBER, strlen(NO_MEMBER)));
    int r = member_open_log(o->data, &opening, &log, &genesis, &reason);
    if (r != 0)
        return report_failure("--cluster", r, reason);
    int status = replayed_compare_cluster(o->data, durable, log, genesis);
    cmdlog_close(log);
    return status;
}

static int check_all(struct check_options *o, const struct durable *durable)
{
    cmdlog_position after;
    if (check_log(o, durable, &after) != 0 || check_replay(o, durable) != 0 || check_with_cluster(o, durable) != 0)
        return 1;
    return after > 0 ? replayed_check_rest(o->data, durable, check_state) : check_state(durable);
}

int command_check(int argc, char **argv)
{
    static const struct argp argp = {options, parse_check_option, NULL, doc, NULL, NULL, NULL};
    struct check_options o = {.data = "./tidelock-data"};
    struct core_limits limits = core_limits_default();
    struct durable durable = {0};
    char *reason = NULL;
    arguments_parse(&argp, argc, argv, 0, &o);
    durable.is_member = member_is(o.data);
    struct store_options opening = {.directory = slice_from(o.data), .read_only = true};
    int r = durable_open(&opening, &limits, NULL, &durable, &reason);
    int status;
    if (r != 0)
        status = report_failure(o.data, r, reason);
    else if ((r = store_verify(durable.store, &reason)) != 0)
        status = report_failure("checksums", r, reason);
    else
        status = check_all(&o, &durable);
    durable_close(&durable);
    return status;
}
