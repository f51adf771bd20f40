/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock check`: reads everything of a stopped store and says whether it is sound. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
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

enum {
    OPTION_REPLAY = 256,
    OPTION_REPLAY_ALL,
    OPTION_LOG,
    OPTION_CLUSTER,
    OPTION_CLUSTER_CA,
    OPTION_CLUSTER_CERT,
    OPTION_CLUSTER_KEY
};

struct check_options {
    const char *data;
    bool replay_all;             /* from the first entry of the log */
    struct relog_options replay; /* `from` NULL and not replay_all: no replay */
    const char *cluster;         /* etcd's endpoints; NULL: not compared */
    const char *cluster_ca, *cluster_cert, *cluster_key;
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
    {"cluster", OPTION_CLUSTER, "URL/PREFIX", 0,
     "Of a cluster's host: apply the entries of the cluster's log since the host's checkpoint, and compare the result "
     "with the states that the hosts have reported; needs as much disk space next to DIR as DIR. Only reads etcd",
     2},
    {"cluster-ca", OPTION_CLUSTER_CA, "FILE", 0, "The CAs of the certificates of etcd, as PEM (the system's)", 2},
    {"cluster-cert", OPTION_CLUSTER_CERT, "FILE", 0, "The client certificate for etcd, as PEM", 2},
    {"cluster-key", OPTION_CLUSTER_KEY, "FILE", 0, "The private key of --cluster-cert, as PEM", 2},
    {0},
};

static const char doc[] =
    "Verify a stopped store: the checksums of all blocks, every document, that index entries and documents match in "
    "both directions, and the counters.\v"
    "The data is not changed. Exit status 0 if it is sound; 1 if it is not, or cannot be read.\n\n"
    "Examples:\n"
    "  tidelock check --data /var/lib/tidelock\n"
    "  tidelock check --data /var/lib/tidelock --replay backups/nightly --log log-archive\n"
    "  tidelock check --data /var/lib/tidelock --cluster http://10.0.0.1:2379/tidelock\n";

/* Refuses options of a cluster that have no effect. */
static void check_cluster(const struct argp_state *state, const struct check_options *o)
{
    bool tls = o->cluster != NULL && strncmp(o->cluster, "https://", strlen("https://")) == 0;
    if (o->cluster != NULL && (o->replay.from != NULL || o->replay_all))
        arguments_error(state, "--cluster and --replay exclude each other: a host's log is in etcd");
    if (!tls && (o->cluster_ca != NULL || o->cluster_cert != NULL || o->cluster_key != NULL))
        arguments_error(state, "--cluster-ca, --cluster-cert and --cluster-key need --cluster with https://");
    if ((o->cluster_cert == NULL) != (o->cluster_key == NULL))
        arguments_error(state, "--cluster-cert and --cluster-key need each other");
}

static error_t parse(int key, char *text, struct argp_state *state)
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
    case OPTION_CLUSTER: o->cluster = text; return 0;
    case OPTION_CLUSTER_CA: o->cluster_ca = text; return 0;
    case OPTION_CLUSTER_CERT: o->cluster_cert = text; return 0;
    case OPTION_CLUSTER_KEY: o->cluster_key = text; return 0;
    case ARGP_KEY_END:
        check_cluster(state, o);
        if (o->replay.from != NULL && o->replay_all)
            arguments_error(state, "--replay and --replay-all exclude each other");
        if (o->replay.from == NULL && !o->replay_all && o->replay.log_count > 0)
            arguments_error(state, "--log goes with --replay or --replay-all");
        return 0;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is not an option; --data=DIR names the store", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int complain(const char *what, int code, char *reason)
{
    printf("%s: %s\n", escape_terminal(what), reason != NULL ? reason : error_text(code));
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
        return complain("reading", r, NULL);
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
 * cluster. Returns: the exit status.
 */
static int check_log(const struct check_options *o, const struct durable *durable)
{
    if (durable->is_member) {
        printf("a host of a cluster, as of entry %" PRIu64 " of the cluster's log%s\n", durable->recovered.checkpoint,
               o->cluster != NULL ? "" : ", which is in etcd and is not read (--cluster)");
        return 0;
    }
    cmdlog_position behind = 0;
    char *reason = NULL;
    int r = durable->log == NULL ? 0 : recover_check_log(durable->log, &durable->recovered, &behind, &reason);
    if (r != 0)
        return complain("the log of commands", r, reason);
    if (behind > 0)
        printf("%" PRIu64 " entries of the log follow the checkpoint; a start applies them\n", behind);
    return 0;
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
        return complain(o->replay_all ? "--replay-all" : "--replay", TL_ERR_IO,
                        mem_strdup(MEMBER_REPLAY, strlen(MEMBER_REPLAY)));
    buf_printf(&own, "%s/log", o->data);
    buf_byte(&own, '\0');
    o->replay.logs[o->replay.log_count++] = own.data;
    return replayed_compare(o->data, durable, &o->replay);
}

/* Compares a host's directory with the cluster's log, if that was requested. Returns: the exit status. */
static int check_with_cluster(const struct check_options *o, const struct durable *durable)
{
    const struct cmdlog_etcd_options opening = {.url = slice_from(o->cluster == NULL ? "" : o->cluster),
                                                .name = SLICE_LIT("check"), /* under which nothing is written */
                                                .ca = o->cluster_ca,
                                                .cert = o->cluster_cert,
                                                .key = o->cluster_key};
    struct cmdlog *log;
    char *reason = NULL;
    if (o->cluster == NULL)
        return 0;
    if (!durable->is_member)
        return complain("--cluster", TL_ERR_IO, mem_strdup(NO_MEMBER, strlen(NO_MEMBER)));
    int r = member_open_log(o->data, &opening, &log, &reason);
    if (r != 0)
        return complain("--cluster", r, reason);
    int status = replayed_compare_cluster(o->data, durable, log);
    cmdlog_close(log);
    return status;
}

int command_check(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
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
        status = complain(o.data, r, reason);
    else if ((r = store_verify(durable.store, &reason)) != 0)
        status = complain("checksums", r, reason);
    else
        status =
            check_log(&o, &durable) != 0 || check_replay(&o, &durable) != 0 || check_with_cluster(&o, &durable) != 0
                ? 1
                : check_state(&durable);
    durable_close(&durable);
    return status;
}
