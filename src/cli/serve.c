/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock serve`: opens the layers from the store upward, and closes them in an order in which
 * nothing acknowledged is lost and each waiting request is answered.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/cluster/backup.h"
#include "api/cluster/hosts.h"
#include "api/request/api.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/reclaim.h"
#include "base/stack.h"
#include "base/thread.h"
#include "cli/archive.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/cluster_options.h"
#include "cli/command.h"
#include "cli/cluster_options.h"
#include "cli/config.h"
#include "cli/durable.h"
#include "cli/escape.h"
#include "cli/host_sender.h"
#include "cli/host_tls.h"
#include "cli/member.h"
#include "cli/private_dir.h"
#include "cli/start_progress.h"
#include "cli/supervisor.h"
#include "cmdlog/cmdlog_etcd.h"
#include "http/http.h"
#include "http/tls.h"

static const char *const level_names[LOG_LEVEL_COUNT] = {"debug", "info", "warning", "error"};

enum {
    TRIM_SECONDS = 10,
    HELD_PART = 4, /* of the memory is what one transaction, or the locks of one session, may hold at most */
    FREE_BYTES_KEPT = 32 << 20, /* free heap memory that is not returned to the system */
    HEAPS = 4,
    HEAP_END_PART = 64, /* of the memory budget: free memory at the end of a heap that is not returned at once */
    HEAP_END_KEPT_MIN = 4 << 20,
    HEAP_END_KEPT_MAX = 64 << 20,
};

struct serve_options {
    const char *data;
    const char *backups; /* folder of backups; NULL: backups are refused */
    struct archive_options archive;
    char *host;
    const char **host_names; /* accepted Host names; texts of the command line and the environment */
    const char *node_name;
    const char *zoneinfo;
    const char *cluster_name;
    struct cluster_options cluster; /* no URL: a single host */
    const char *advertise; /* address for the other hosts; NULL: the address of --listen */
    char *advertised_host; /* of `advertise`, without the port; NULL: none */
    const char *group;
    uint64_t host_lease_us, clock_skew_us;
    uint64_t catch_up, cluster_quota;
    struct store_options store;
    struct core_limits limits;
    struct journal_options journal;
    struct api_options api;
    struct http_options http;
    struct poison_choice poison;
    uint64_t grace_us;
    uint64_t stop_us;     /* limit for the whole stop; 0: derived from grace_us */
    size_t memory_bytes;  /* 0: a quarter of the available memory */
    struct config config; /* the file at the start; option texts point into it */
    struct config latest; /* the file when it was last reloaded; empty: never reloaded */
    bool level_given;     /* the log level is set by the environment or the command line, not by the file */
    bool check;           /* only check the configuration, then exit */
    bool insecure;        /* listening beyond loopback is permitted without client certificates */
};

struct server {
    struct budget budget; /* limit on the memory that all clients together make the server hold */
    struct durable durable;
    struct cluster_member member; /* in a cluster, used instead of `durable` */
    const atomic_bool *stopping;  /* set when a signal has come */
    char *address;                /* address at which the other hosts reach this one */
    struct journal *journal;
    struct sender *sender; /* of requests to the other hosts; NULL: not in a cluster */
    struct api *api;
    char *backups; /* the folder's real path */
    struct http *http;
    bool tls; /* clients connect with TLS */
    struct serve_options *options;
};

/* Time that an idle server needs to stop on a slow disk. */
#define STOP_US_MIN TL_SECOND
#define CLOCK_SKEW_US_MIN (10 * TL_MS)
/* The documented defaults of options of a cluster, which a single host accepts. */
#define GROUP_DEFAULT "default"
#define HOST_LEASE_DEFAULT_US (3 * TL_SECOND)
#define CLOCK_SKEW_DEFAULT_US (500 * TL_MS)
#define CATCH_UP_DEFAULT ((uint64_t)2 << 30)
#define CLUSTER_QUOTA_MIN ((uint64_t)32 << 20)
#define CHECKPOINT_MIN ((uint64_t)1 << 20)
#define RECOVERY_MIN_US (10 * TL_MS)

/* Memory that a script needs for the smallest documents. */
#define SCRIPT_MEMORY_MIN ((size_t)64 << 10)

enum {
    OPTION_HISTORY = 256,
    OPTION_FEED,
    OPTION_FEED_MAX,
    OPTION_HOST_NAME,
    OPTION_CACHE,
    OPTION_WRITE_BUFFER,
    OPTION_MEMORY,
    OPTION_MAX_BODY,
    OPTION_MAX_CONNECTIONS,
    OPTION_MAX_CONNECTIONS_PER_ADDRESS,
    OPTION_MAX_SESSIONS,
    OPTION_MAX_EPHEMERAL,
    OPTION_SCRIPT_STEPS,
    OPTION_SCRIPT_MEMORY,
    OPTION_SCRIPT_DEPTH,
    OPTION_THREADS,
    OPTION_WORKERS,
    OPTION_IDLE_TIMEOUT,
    OPTION_RESERVE,
    OPTION_CHECKPOINT,
    OPTION_RECOVERY_TIME,
    OPTION_REQUEST_TIME,
    OPTION_GRACE,
    OPTION_STOP_TIME,
    OPTION_CLUSTER_NAME,
    OPTION_ADVERTISE,
    OPTION_GROUP,
    OPTION_HOST_LEASE,
    OPTION_CLOCK_SKEW,
    OPTION_CATCH_UP,
    OPTION_CLUSTER_QUOTA,
    OPTION_NODE_NAME,
    OPTION_ZONEINFO,
    OPTION_LOG_LEVEL,
    OPTION_LOG_FORMAT,
    OPTION_BACKUPS,
    OPTION_LOG_ARCHIVE,
    OPTION_LOG_KEEP,
    OPTION_CONFIG,
    OPTION_CHECK_CONFIG,
    OPTION_TLS_CERT,
    OPTION_TLS_KEY,
    OPTION_TLS_CA,
    OPTION_INSECURE,
    OPTION_SKIP_ENTRY,
    OPTION_RETRY_ENTRY,
};

static const struct argp_option options[] = {
    {"config", OPTION_CONFIG, "FILE", 0,
     "A file with options, one per line: NAME = VALUE. The environment and the command line take precedence; SIGHUP "
     "reads it again",
     1},
    {"check-config", OPTION_CHECK_CONFIG, NULL, 0, "Check all options, and end", 1},
    {"data", 'd', "DIR", 0, "The data directory; created if missing (./tidelock-data)", 1},
    {"backups", OPTION_BACKUPS, "DIR", 0, "The directory of backups made by `tidelock backup' (none)", 1},
    {"log-archive", OPTION_LOG_ARCHIVE, "DIR", 0,
     "Archive of log segments that are no longer needed, for `tidelock restore' (none)", 1},
    {"log-keep", OPTION_LOG_KEEP, "TIME|SIZE", 0, "Retention of the archive: 7d, or 10gb (all)", 1},
    {"listen", 'l', "HOST:PORT", 0, "The address of the server (127.0.0.1:9200); port 0 selects a free port", 1},
    {"host-name", OPTION_HOST_NAME, "NAME", 0,
     "A name by which clients may call this host, besides localhost and addresses; repeatable, or separated by commas",
     1},
    {"tls-cert", OPTION_TLS_CERT, "FILE", 0,
     "Use TLS 1.2 or 1.3 with this certificate and its chain, as PEM; SIGHUP reads it again", 1},
    {"tls-key", OPTION_TLS_KEY, "FILE", 0, "The certificate's private key, as PEM", 1},
    {"tls-ca", OPTION_TLS_CA, "FILE", 0, "Accept only clients with a certificate signed by one of these CAs, as PEM",
     1},
    {"insecure", OPTION_INSECURE, "yes|no", OPTION_ARG_OPTIONAL,
     "Accept connections from other machines without client certificates: every client that reaches the port may do "
     "everything (no)",
     1},
    {"history", OPTION_HISTORY, "TIME", 0, "How long superseded versions stay readable (1h)", 2},
    {"feed", OPTION_FEED, "TIME|off", 0, "Retention of the feed of changes (as --history); off: no feed", 2},
    {"feed-max", OPTION_FEED_MAX, "SIZE", 0,
     "Limit of the feed's disk space; the oldest changes are removed first (1g)", 2},
    {"cache", OPTION_CACHE, "SIZE", 0, "Block cache of the store (64m)", 2},
    {"write-buffer", OPTION_WRITE_BUFFER, "SIZE", 0, "Memory for writes that are not in table files yet (64m)", 2},
    {"checkpoint", OPTION_CHECKPOINT, "SIZE", 0,
     "Make a checkpoint after this much log (64m), or earlier: see --recovery-time", 2},
    {"recovery-time", OPTION_RECOVERY_TIME, "TIME", 0,
     "Make a checkpoint when a start would take this long to apply the log since the last one (1s)", 2},
    {"reserve", OPTION_RESERVE, "SIZE", 0, "Refuse writes while less disk space than this is free (256m)", 2},
    {"memory", OPTION_MEMORY, "SIZE", 0,
     "Limit of the memory that all clients make the server hold: requests, replies, transactions, locks (a quarter of "
     "the machine's)",
     3},
    {"max-body", OPTION_MAX_BODY, "SIZE", 0, "Limit of a request's body (100m)", 3},
    {"max-connections", OPTION_MAX_CONNECTIONS, "N", 0, "Limit of open connections (16384)", 3},
    {"max-connections-per-address", OPTION_MAX_CONNECTIONS_PER_ADDRESS, "N", 0,
     "Limit of open connections from one address (half of all; no limit for loopback)", 3},
    {"max-sessions", OPTION_MAX_SESSIONS, "N", 0, "Limit of open sessions (10000)", 3},
    {"max-ephemeral", OPTION_MAX_EPHEMERAL, "N", 0, "Limit of ephemeral documents of one session (10000)", 3},
    {"script-steps", OPTION_SCRIPT_STEPS, "N", 0,
     "Limit of statements, iterations and calls of one run of a script (5000000); for scripts that change documents, "
     "50000000 at most",
     3},
    {"script-memory", OPTION_SCRIPT_MEMORY, "SIZE", 0, "Limit of the values of one run of a script (64m)", 3},
    {"script-depth", OPTION_SCRIPT_DEPTH, "N", 0, "Limit of nested calls of a script (256)", 3},
    {"idle-timeout", OPTION_IDLE_TIMEOUT, "TIME", 0, "Close a connection after this time without a request (10m)", 3},
    {"threads", OPTION_THREADS, "N", 0, "Threads for connections (one per processor)", 3},
    {"workers", OPTION_WORKERS, "N", 0,
     "Threads for searches and other long reads (2), in addition to those reserved for short work", 3},
    {"request-time", OPTION_REQUEST_TIME, "TIME", 0,
     "Limit of the work on one request, without waits for locks; 0: no limit (10m)", 3},
    {"grace", OPTION_GRACE, "TIME", 0, "Time for requests in flight to finish when the server is stopped (10s)", 4},
    {"stop-time", OPTION_STOP_TIME, "TIME", 0,
     "Limit from SIGTERM to the end of the process; then it ends as in a crash (20s more than --grace)", 4},
    {"skip-entry", OPTION_SKIP_ENTRY, "N", 0,
     "Leave out an entry of the log that ends the server at each start, in a cluster on all hosts; the error of the "
     "refused start has its number",
     4},
    {"retry-entry", OPTION_RETRY_ENTRY, "N", 0, "Apply that entry once more", 4},
    {"cluster-name", OPTION_CLUSTER_NAME, "NAME", 0, "The cluster's name in GET / (tidelock)", 4},
    {"node-name", OPTION_NODE_NAME, "NAME", 0, "The node's name in GET / and in a cluster (the host's)", 4},
    {"cluster", CLUSTER_OPTION_URL, "URL/PREFIX", 0,
     "Be a host of the cluster whose log is in etcd under PREFIX; several members as "
     "http://A:2379,http://B:2379/PREFIX, or with https:// in each (no cluster)",
     5},
    CLUSTER_TLS_OPTIONS(5),
    {"advertise", OPTION_ADVERTISE, "HOST:PORT", 0,
     "The address at which the other hosts reach this one; needed if --listen is for all addresses (as --listen)", 5},
    {"group", OPTION_GROUP, "NAME", 0, "The group of hosts that this one belongs to (default)", 5},
    {"clock-skew", OPTION_CLOCK_SKEW, "TIME", 0,
     "A host whose clock is further than this above the median of the live hosts' clocks proposes the median's time "
     "(500ms)",
     5},
    {"host-lease", OPTION_HOST_LEASE, "TIME", 0, "A host without a heartbeat for this time is out (3s)", 5},
    {"catch-up", OPTION_CATCH_UP, "SIZE", 0, "Size of the log that etcd retains for hosts that are away (2g)", 5},
    {"cluster-quota", OPTION_CLUSTER_QUOTA, "SIZE", 0,
     "etcd's --quota-backend-bytes (as etcd reports, from 3.6 on; else 2g, its default)", 5},
    {"zoneinfo", OPTION_ZONEINFO, "DIR", 0, "Time zones, as TZif files (/usr/share/zoneinfo)", 4},
    {"log-level", OPTION_LOG_LEVEL, "LEVEL", 0, "debug, info, warning or error (info)", 4},
    {"log-format", OPTION_LOG_FORMAT, "FORMAT", 0, "text, or json: one object per line (text)", 4},
    {0},
};

static bool try_log_level(const char *text)
{
    for (int level = 0; level < LOG_LEVEL_COUNT; level++)
        if (strcmp(text, level_names[level]) == 0) {
            log_set_level((enum log_level)level);
            return true;
        }
    return false;
}

static void set_log_level(const struct argp_state *state, const char *text)
{
    if (!try_log_level(text))
        arguments_error(state, "--log-level: '%s' is not one of debug, info, warning, error", text);
}

static void set_log_format(const struct argp_state *state, const char *text)
{
    bool json = strcmp(text, "json") == 0;
    if (!json && strcmp(text, "text") != 0)
        arguments_error(state, "--log-format: '%s' is neither text nor json", text);
    log_set_format(json ? LOG_JSON : LOG_TEXT);
}

static void add_host_name(struct serve_options *o, const char *name)
{
    size_t count = o->http.host_name_count;
    o->host_names = mem_realloc(o->host_names, (count + 1) * sizeof *o->host_names);
    o->host_names[count] = name;
    o->http.host_name_count = count + 1;
}

/*
 * Adds the names of a comma-separated list, which is split in place. A name consists of letters,
 * digits, '-', '_' and '.', as a Host header without its port.
 */
static void add_host_names(const struct argp_state *state, struct serve_options *o, char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    for (char *name = strsep(&text, ","); name != NULL; name = strsep(&text, ",")) {
        name += strspn(name, " \t"); /* after a comma */
        if (*name == '\0' || name[strspn(name, allowed)] != '\0')
            arguments_error(state, "--host-name: '%s' is not a host name; write it as in a URL, without a port", name);
        add_host_name(o, name);
    }
}

/*
 * Parses --log-keep. A text that ends with a unit of bytes is a size, any other a duration: 5m are
 * minutes.
 */
static void set_log_keep(const struct argp_state *state, struct archive_options *archive, const char *text)
{
    size_t len = strlen(text);
    bool bytes = len > 0 && strchr("bBkKgGtT", text[len - 1]) != NULL;
    archive->keep_bytes = bytes ? arguments_size(state, "log-keep", text) : 0;
    archive->keep_us = bytes ? 0 : arguments_duration(state, "log-keep", text);
    if (archive->keep_bytes == 0 && archive->keep_us == 0)
        arguments_error(state, "--log-keep: must be more than 0; without the option everything is kept");
}

/*
 * Refuses incomplete TLS options: ignored, they would leave a server unprotected that was meant to
 * use TLS.
 */
static void check_tls(const struct argp_state *state, const struct tls_files *tls)
{
    if (tls->cert != NULL && tls->key == NULL)
        arguments_error(state, "--tls-cert needs --tls-key, the certificate's private key");
    else if (tls->cert == NULL && (tls->key != NULL || tls->ca != NULL))
        arguments_error(state, "--%s needs --tls-cert; without a certificate there is no TLS",
                        tls->key != NULL ? "tls-key" : "tls-ca");
}

static void set_insecure(const struct argp_state *state, struct serve_options *o, const char *text)
{
    bool no = text != NULL && strcmp(text, "no") == 0;
    if (!no && text != NULL && strcmp(text, "yes") != 0)
        arguments_error(state, "--insecure: '%s' is neither yes nor no", text);
    o->insecure = !no;
}

/* Names other than localhost may resolve to any address, so they are not loopback. */
static bool is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    return strcmp(host, "localhost") == 0 || (inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
}

/*
 * Refuses to listen beyond loopback unless clients are authenticated by certificates or --insecure
 * is given.
 */
static void check_reach(const struct argp_state *state, const struct serve_options *o)
{
    if (o->insecure || is_loopback(o->host) || (o->http.tls.cert != NULL && o->http.tls.ca != NULL))
        return;
    fprintf(
        stderr,
        "Require client certificates:\n"
        "  tidelock cert --dir tls --host-name NAME\n"
        "  tidelock serve --listen %s:%u --tls-cert tls/server.pem --tls-key tls/server-key.pem --tls-ca tls/ca.pem\n"
        "  tidelock status --url https://NAME:%u --cacert tls/ca.pem --cert tls/client.pem --key tls/client-key.pem\n",
        escape_terminal(o->host), o->http.port, o->http.port);
    arguments_error(state,
                    "--listen: '%s' is reachable from other machines, and every client that reaches it could do "
                    "everything; use --tls-ca, or confirm it with --insecure",
                    o->host);
}

/* Returns: an option of hosts of a cluster that differs from its default; NULL: none. */
static const char *option_of_cluster(const struct serve_options *o)
{
    const struct {
        const char *name;
        bool given;
    } all[] = {
        {"cluster-ca", o->cluster.ca != NULL},
        {"cluster-cert", o->cluster.cert != NULL},
        {"cluster-key", o->cluster.key != NULL},
        {"advertise", o->advertise != NULL},
        {"group", strcmp(o->group, GROUP_DEFAULT) != 0},
        {"host-lease", o->host_lease_us != 0 && o->host_lease_us != HOST_LEASE_DEFAULT_US},
        {"clock-skew", o->clock_skew_us != 0 && o->clock_skew_us != CLOCK_SKEW_DEFAULT_US},
        {"catch-up", o->catch_up != 0 && o->catch_up != CATCH_UP_DEFAULT},
        {"cluster-quota", o->cluster_quota != 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].given)
            return all[i].name;
    return NULL;
}

/*
 * Returns: whether a host is an address that means all addresses of a machine, in any form that
 *          http_open() accepts (0.0.0.0, 0, ::, ::ffff:0.0.0.0), rather than one that can be called.
 */
static bool is_unspecified(const char *host)
{
    const struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(host, NULL, &numeric, &found) != 0)
        return false;
    static const struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    const struct sockaddr *address = found->ai_addr;
    bool is = false;
    if (address->sa_family == AF_INET)
        is = ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
    else if (address->sa_family == AF_INET6)
        is = IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr) ||
             memcmp(&((const struct sockaddr_in6 *)address)->sin6_addr, &mapped, sizeof mapped) == 0;
    freeaddrinfo(found);
    return is;
}

/* Refuses an --advertise that no other host could call. */
static void check_advertised(const struct argp_state *state, const char *address)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon == address)
        arguments_error(state, "--advertise: '%s' is not HOST:PORT", address);
    else
        (void)arguments_number(state, "advertise", colon + 1, 1, UINT16_MAX);
    tl_cleanup(mem_freep) char *host = arguments_host_of(address);
    if (is_unspecified(host))
        arguments_error(state,
                        "--advertise: '%s' means all addresses of a machine; name one at which the other hosts "
                        "reach this one",
                        address);
}

/* Returns: whether all members of etcd are on this machine. `url`: of --cluster; it may be malformed. */
static bool is_etcd_local(const char *url)
{
    bool local = true;
    while (local && *url != '\0' && *url != '/') {
        const char *scheme = strstr(url, "://");
        url = scheme != NULL ? scheme + strlen("://") : url;
        size_t len = strcspn(url, ",/");
        tl_cleanup(mem_freep) char *authority = mem_strdup(url, len);
        tl_cleanup(mem_freep) char *host = arguments_host_of(authority);
        local = is_loopback(host);
        url += len + (url[len] == ',');
    }
    return local;
}

/* The default --listen is what the hosts of a test on one machine need, and on several of no use. */
static void warn_of_loopback(const struct serve_options *o, const char *address)
{
    if (o->advertise == NULL && is_loopback(o->host) && !is_etcd_local(o->cluster.url))
        log_warning(
            "the address published to the other hosts is %s, by which each reaches only itself: give --advertise "
            "HOST:PORT, or a --listen that they can reach",
            address);
}

static void check_cluster(const struct argp_state *state, const struct serve_options *o)
{
    const char *option = o->cluster.url == NULL ? option_of_cluster(o) : NULL;
    tl_cleanup(mem_freep) char *reason = NULL;
    if (option != NULL)
        arguments_error(state, "--%s needs --cluster: without it the option has no effect", option);
    else if (o->cluster.url != NULL && cmdlog_etcd_check_url(slice_from(o->cluster.url), &reason) != 0)
        arguments_error(state, "--cluster: %s", reason);
    else if (o->cluster.url != NULL && o->archive.directory != NULL)
        arguments_error(state, "--log-archive: a host of a cluster has no log of its own; leave it out");
    else if (o->cluster.url != NULL && o->http.port == 0 && o->advertise == NULL)
        arguments_error(state, "--listen with port 0 needs --advertise in a cluster: the other hosts reach this one at "
                               "that address");
    else if (o->cluster.url != NULL && o->advertise == NULL && is_unspecified(o->host))
        arguments_error(state,
                        "--listen: '%s' means all addresses of this machine, so a cluster needs --advertise HOST:PORT, "
                        "the one at which the other hosts reach this one",
                        o->host);
    else
        (void)cluster_options_check_pair(state, &o->cluster);
}

static error_t parse_serve_option(int key, char *text, struct argp_state *state)
{
    struct serve_options *o = state->input;
    switch (key) {
    case 'd': o->data = text; break;
    case 'l':
        mem_free(o->host);
        arguments_address(state, text, &o->host, &o->http.port);
        break;
    case OPTION_HOST_NAME: add_host_names(state, o, text); break;
    case OPTION_HISTORY: o->journal.history_us = arguments_duration(state, "history", text); break;
    case OPTION_FEED:
        o->journal.feed_off = strcmp(text, "off") == 0;
        o->journal.feed_us = o->journal.feed_off ? 0 : arguments_duration(state, "feed", text);
        break;
    case OPTION_FEED_MAX: o->journal.feed_bytes_max = arguments_size(state, "feed-max", text); break;
    case OPTION_CACHE: o->store.cache_bytes = arguments_size(state, "cache", text); break;
    case OPTION_WRITE_BUFFER: o->store.write_buffer_bytes = arguments_size(state, "write-buffer", text); break;
    case OPTION_CHECKPOINT:
        o->journal.checkpoint_log_bytes = arguments_size(state, "checkpoint", text);
        if (o->journal.checkpoint_log_bytes < CHECKPOINT_MIN)
            arguments_error(state, "--checkpoint: at least 1m");
        break;
    case OPTION_RECOVERY_TIME:
        o->journal.recovery_us = arguments_duration(state, "recovery-time", text);
        if (o->journal.recovery_us < RECOVERY_MIN_US)
            arguments_error(state, "--recovery-time: at least 10ms");
        break;
    case OPTION_RESERVE: o->journal.reserve_bytes = arguments_size(state, "reserve", text); break;
    case OPTION_MEMORY:
        o->memory_bytes = arguments_size(state, "memory", text);
        if (o->memory_bytes < BUDGET_LIMIT_MIN)
            arguments_error(state, "--memory: at least 32m");
        break;
    case OPTION_MAX_BODY:
        o->http.body_bytes_max = arguments_size(state, "max-body", text);
        if (o->http.body_bytes_max == 0)
            arguments_error(state, "--max-body: at least 1 byte");
        break;
    case OPTION_MAX_CONNECTIONS:
        o->http.connections_max = (unsigned)arguments_number(state, "max-connections", text, 1, 1000000);
        break;
    case OPTION_MAX_CONNECTIONS_PER_ADDRESS:
        o->http.address_connections_max =
            (unsigned)arguments_number(state, "max-connections-per-address", text, 1, 1000000);
        break;
    case OPTION_MAX_SESSIONS:
        o->limits.sessions_max = arguments_number(state, "max-sessions", text, 1, 10000000);
        break;
    case OPTION_MAX_EPHEMERAL:
        o->limits.ephemeral_max = arguments_number(state, "max-ephemeral", text, 1, 10000000);
        break;
    case OPTION_SCRIPT_STEPS:
        o->limits.script.steps_max = arguments_number(state, "script-steps", text, 1000, 1000000000);
        break;
    case OPTION_SCRIPT_MEMORY:
        o->limits.script.memory_bytes_max = arguments_size(state, "script-memory", text);
        if (o->limits.script.memory_bytes_max < SCRIPT_MEMORY_MIN)
            arguments_error(state, "--script-memory: at least 64k");
        break;
    case OPTION_SCRIPT_DEPTH:
        o->limits.script.depth_max = (unsigned)arguments_number(state, "script-depth", text, 1, 1000);
        break;
    case OPTION_IDLE_TIMEOUT: o->http.idle_us = arguments_duration(state, "idle-timeout", text); break;
    case OPTION_THREADS: o->http.thread_count = (unsigned)arguments_number(state, "threads", text, 1, 256); break;
    case OPTION_WORKERS:
        o->api.worker_count = (unsigned)arguments_number(state, "workers", text, 1, API_WORKERS_MAX);
        break;
    case OPTION_REQUEST_TIME: o->api.request_us = arguments_duration(state, "request-time", text); break;
    case OPTION_GRACE: o->grace_us = arguments_duration(state, "grace", text); break;
    case OPTION_STOP_TIME:
        o->stop_us = arguments_duration(state, "stop-time", text);
        if (o->stop_us < STOP_US_MIN)
            arguments_error(state, "--stop-time: at least 1s");
        break;
    case OPTION_SKIP_ENTRY: o->poison.skip = arguments_number(state, "skip-entry", text, 1, UINT64_MAX - 1); break;
    case OPTION_RETRY_ENTRY: o->poison.retry = arguments_number(state, "retry-entry", text, 1, UINT64_MAX - 1); break;
    case OPTION_CLUSTER_NAME: o->cluster_name = text; break;
    case OPTION_NODE_NAME: o->node_name = text; break;
    case OPTION_ADVERTISE:
        check_advertised(state, text);
        o->advertise = text;
        mem_free(o->advertised_host);
        o->advertised_host = arguments_host_of(text);
        break;
    case OPTION_GROUP: o->group = text; break;
    case OPTION_CLOCK_SKEW:
        o->clock_skew_us = arguments_duration(state, "clock-skew", text);
        if (o->clock_skew_us < CLOCK_SKEW_US_MIN)
            arguments_error(state, "--clock-skew: at least 10ms");
        break;
    case OPTION_HOST_LEASE:
        o->host_lease_us = arguments_duration(state, "host-lease", text);
        if (o->host_lease_us < TL_SECOND)
            arguments_error(state, "--host-lease: at least 1s");
        break;
    case OPTION_CATCH_UP:
        o->catch_up = arguments_size(state, "catch-up", text);
        if (o->catch_up == 0)
            arguments_error(state, "--catch-up: at least 1 byte");
        break;
    case OPTION_CLUSTER_QUOTA:
        o->cluster_quota = arguments_size(state, "cluster-quota", text);
        if (o->cluster_quota < CLUSTER_QUOTA_MIN)
            arguments_error(state, "--cluster-quota: at least 32m");
        break;
    case OPTION_ZONEINFO: o->zoneinfo = text; break;
    case OPTION_LOG_LEVEL: set_log_level(state, text); break;
    case OPTION_LOG_FORMAT: set_log_format(state, text); break;
    case OPTION_BACKUPS: o->backups = text; break;
    case OPTION_LOG_ARCHIVE: o->archive.directory = text; break;
    case OPTION_LOG_KEEP: set_log_keep(state, &o->archive, text); break;
    case OPTION_CONFIG: break; /* read before all other options */
    case OPTION_CHECK_CONFIG: o->check = true; break;
    case OPTION_TLS_CERT: o->http.tls.cert = text; break;
    case OPTION_TLS_KEY: o->http.tls.key = text; break;
    case OPTION_TLS_CA: o->http.tls.ca = text; break;
    case OPTION_INSECURE: set_insecure(state, o, text); break;
    case ARGP_KEY_END:
        check_tls(state, &o->http.tls);
        if (o->cluster.url != NULL && !cmdlog_is_host_name(slice_from(o->node_name)))
            arguments_error(state, "--node-name: in a cluster, of letters, digits, '.', '_' and '-'");
        check_cluster(state, o);
        if (o->poison.skip != 0 && o->poison.retry != 0)
            arguments_error(state, "--skip-entry and --retry-entry: one or the other");
        check_reach(state, o);
        if (o->archive.directory == NULL && (o->archive.keep_us != 0 || o->archive.keep_bytes != 0))
            arguments_error(state, "--log-keep needs --log-archive");
        break;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is not an option; options have the form --name=value", text); break;
    default: return cluster_options_set(&o->cluster, key, text) ? 0 : ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const char doc[] =
    "Run the server until SIGTERM or SIGINT, which let requests in flight end.\v"
    "Once it answers, one line goes to standard output: ready on http://HOST:PORT (https:// with --tls-cert). "
    "The log goes to standard error. SIGHUP has it read the files of TLS and the configuration again.\n\n"
    "Examples:\n"
    "  tidelock serve --data /var/lib/tidelock --listen 127.0.0.1:9200\n"
    "  TIDELOCK_HISTORY=1d tidelock serve --listen 0.0.0.0:9200 --insecure\n"
    "  tidelock serve --config /etc/tidelock/tidelock.conf --check-config\n"
    "  tidelock cert --dir tls\n"
    "  tidelock serve --tls-cert tls/server.pem --tls-key tls/server-key.pem\n";

/* Raises the limit on open files to the hard limit: ten thousand connections are a normal load. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/*
 * Lowers connections_max to the limit on open files, minus those of the store: accept() would fail
 * beyond it.
 */
static void fit_connections(struct http_options *http)
{
    enum { OTHER_FILES = 1024 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    rlim_t room = limit.rlim_cur > 2 * OTHER_FILES ? limit.rlim_cur - OTHER_FILES : limit.rlim_cur / 2;
    if (http->connections_max <= room)
        return;
    log_warning("at most %lu connections, since this process may open %lu files (ulimit -n)", (unsigned long)room,
                (unsigned long)limit.rlim_cur);
    http->connections_max = (unsigned)room;
}

/*
 * Limits the memory that malloc retains. By default it keeps a heap for each of many threads and
 * returns freed memory late, so that bodies of bulk requests would accumulate.
 */
static void tune_allocator(void)
{
    (void)mallopt(M_ARENA_MAX, HEAPS);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_END_KEPT_MIN);
}

/*
 * Lets each heap keep more free memory at its end where the budget is large. A large transaction frees
 * tens of MB, which would all be returned to the system at once, and the next one would wait for page
 * faults; give_back_memory() returns it later.
 */
static void keep_heap_ends(size_t budget)
{
    size_t bytes = budget / HEAP_END_PART;
    if (bytes > HEAP_END_KEPT_MIN)
        (void)mallopt(M_TRIM_THRESHOLD, bytes < HEAP_END_KEPT_MAX ? (int)bytes : HEAP_END_KEPT_MAX);
}

/*
 * Returns free memory between used blocks to the system when there is much of it, as after a bulk
 * load.
 */
static void give_back_memory(void)
{
    struct mallinfo2 heap = mallinfo2();
    if (heap.fordblks > FREE_BYTES_KEPT)
        (void)malloc_trim(0);
}

/*
 * Returns: the memory available to this process: the machine's, or the limit of its container if
 * lower.
 */
static size_t memory_there(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)1 << 30;
    char text[32] = "";
    uint64_t limit;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (file == NULL)
        return bytes;
    if (fgets(text, sizeof text, file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
        if (slice_to_u64(slice_from(text), &limit) && limit < bytes)
            bytes = (size_t)limit;
    }
    (void)fclose(file);
    return bytes;
}

/*
 * Sets the memory budget. Request bodies take at most half of it, so that large ones leave memory
 * for the rest.
 */
static void share_memory(struct server *server, struct serve_options *o)
{
    size_t bytes = o->memory_bytes != 0 ? o->memory_bytes : memory_there() / 4;
    budget_init(&server->budget, bytes < BUDGET_LIMIT_MIN ? BUDGET_LIMIT_MIN : bytes);
    keep_heap_ends(server->budget.limit);
    o->http.budget = o->api.budget = &server->budget;
    o->journal.budget = &server->budget;
    if (o->http.bodies_bytes_max > bytes / 2)
        o->http.bodies_bytes_max = bytes / 2;
    /* One owner must not fill the memory. All hosts of a cluster have the same limits, whatever memory each has. */
    if (o->cluster.url == NULL && o->limits.transaction_held_max > server->budget.limit / HELD_PART)
        o->limits.transaction_held_max = server->budget.limit / HELD_PART;
}

static int serve_failed(int code, const char *what, char *reason)
{
    log_error("%s: %s", what, reason != NULL ? reason : error_text(code));
    mem_free(reason);
    return code;
}

static void handle_exchange(void *context, struct exchange *exchange)
{
    const struct server *server = context;
    api_handle(server->api, exchange);
}

static tl_ts stable_timestamp(void *context)
{
    const struct server *server = context;
    return journal_stable(server->journal);
}

static void barrier_passed(void *context)
{
    const struct server *server = context;
    journal_barrier_passed(server->journal);
}

/*
 * Starts the input barrier. Before a lease expires, all input that arrived earlier is handled: on
 * attach streams, and requests that have been received.
 */
static void start_input_barrier(void *context)
{
    struct server *server = context;
    api_beat(server->api);
    http_input_barrier(server->http, barrier_passed, server);
}

static int open_http(struct server *server, const struct http_options *http)
{
    char *reason = NULL;
    struct http_handler handler = {.handle = handle_exchange, .timestamp = stable_timestamp, .context = server};
    int r = http_open(http, &handler, &server->http, &reason);
    server->tls = http->tls.cert != NULL;
    return r == 0 ? 0 : serve_failed(r, "cannot start", reason);
}

static char *address_of(const struct serve_options *o)
{
    struct buf address = BUF_INIT(BUF_UNLIMITED);
    bool v6 = strchr(o->host, ':') != NULL;
    if (o->advertise != NULL)
        buf_printf(&address, "%s", o->advertise);
    else
        buf_printf(&address, "%s%s%s:%u", v6 ? "[" : "", o->host, v6 ? "]" : "", o->http.port);
    return buf_detach(&address, &(size_t){0});
}

/*
 * Sets the certificates of outgoing connections. This process is a client only of the other hosts
 * of its cluster (member.h, host_sender.h), which all use the same certificates.
 */
static void be_client_of_hosts(const struct serve_options *o)
{
    (void)client_option(CLIENT_OPTION_CACERT, o->cluster.ca);
    (void)client_option(CLIENT_OPTION_CERT, o->cluster.cert);
    (void)client_option(CLIENT_OPTION_KEY, o->cluster.key);
}

/*
 * Opens the store and the journal as a host of a cluster.
 * Returns: 0; TL_ERR_STOPPED: a signal came while it waited; a fatal code that has been logged.
 */
static int open_member(struct server *server, struct serve_options *o)
{
    char *reason = NULL;
    struct cluster_member *member = &server->member;
    bool etcd_tls = cluster_options_are_tls(&o->cluster);
    server->address = address_of(o);
    struct journal_cluster cluster = {.name = slice_from(o->node_name),
                                      .group = slice_from(o->group),
                                      .address = slice_from(server->address),
                                      .tls = o->http.tls.cert != NULL,
                                      .build = slice_from(CORE_BUILD),
                                      .stopping = server->stopping,
                                      .observer = &start_progress_replay,
                                      .clock_skew_us = o->clock_skew_us};
    const struct member_options wanted = {.data = o->data,
                                          .log = {.url = slice_from(o->cluster.url),
                                                  .name = cluster.name,
                                                  .ca = etcd_tls ? o->cluster.ca : NULL,
                                                  .cert = etcd_tls ? o->cluster.cert : NULL,
                                                  .key = etcd_tls ? o->cluster.key : NULL,
                                                  .lease_us = o->host_lease_us,
                                                  .catch_up = o->catch_up,
                                                  .quota = o->cluster_quota},
                                          .tls = cluster.tls,
                                          .name = cluster.name,
                                          .group = cluster.group,
                                          .address = cluster.address,
                                          .build = cluster.build,
                                          .stopping = server->stopping,
                                          .limits = &o->limits,
                                          .store = &o->store,
                                          .journal = &o->journal,
                                          .poison = o->poison};
    if ((!etcd_tls && host_tls_check_client(o->cluster.ca, o->cluster.cert, o->cluster.key, &reason) != 0) ||
        (cluster.tls && host_tls_check(o->http.tls.cert, o->cluster.ca, server->address, &reason) != 0))
        return serve_failed(TL_ERR_IO, "cannot start", reason);
    be_client_of_hosts(o);
    warn_of_loopback(o, server->address);
    int r = member_open(&wanted, member, &reason);
    if (r != 0)
        return r == TL_ERR_STOPPED ? r : serve_failed(r, o->data, reason);
    private_dir_tighten(o->data);
    hosts_clear_checkpoints(slice_from(o->data));
    cluster.about = slice_from(member->about);
    o->journal.cluster = &cluster;
    o->journal.log = member->log;
    o->journal.checkpoint_bytes = o->store.write_buffer_bytes / 2;
    o->journal.cmdlog_position = member->position;
    o->journal.log_bytes = member->log_bytes;
    o->journal.at_work = member->at_work;
    o->journal.skips = member->skips;
    r = journal_open_cluster(member->core, member->store, &o->journal, &server->journal, &reason);
    o->journal.cluster = NULL;
    return r == 0 || r == TL_ERR_STOPPED ? r : serve_failed(r, "the cluster refuses this host", reason);
}

/*
 * Opens the store and the journal of a single host. Returns: 0, or a fatal code that has been
 * logged.
 */
static int open_alone(struct server *server, struct serve_options *o)
{
    char *reason = NULL;
    struct durable *durable = &server->durable;
    struct core_limits limits = core_limits_default(); /* until the log has a command with other ones */
    if (member_is(o->data))
        return serve_failed(TL_ERR_BUSY, o->data,
                            mem_strdup("the directory is a host's of a cluster: give --cluster", 54));
    durable->choice = o->poison;
    durable->observer = &start_progress_replay;
    int r = durable_open(&o->store, &limits, o->archive.directory != NULL ? &o->archive : NULL, durable, &reason);
    if (r != 0)
        return serve_failed(r, o->data, reason);
    private_dir_tighten(o->data);
    if (durable->recovered.differs != 0)
        log_error("the state differs from the one that was recorded at entry %" PRIu64
                  " of the log: replies since then may differ from the present state. "
                  "Keep a copy of the data directory, and report this",
                  durable->recovered.differs);
    if (durable->recovered.skipped != 0)
        log_info("entry %" PRIu64 " of the log is left out (--skip-entry)", durable->recovered.skipped);
    o->journal.log = durable->log;
    o->journal.at_work = durable->at_work;
    o->journal.checkpoint_bytes = o->store.write_buffer_bytes / 2; /* while those are written, others come */
    o->journal.cmdlog_position = durable->recovered.position;
    o->journal.log_work_us = durable->recovered.work_us;
    o->journal.log_replayed_bytes = durable->recovered.replayed_bytes;
    o->journal.host_crashed = durable->machine_lost;
    if ((r = journal_open_local(durable->core, durable->store, &o->journal, &server->journal)) != 0)
        return serve_failed(r, "cannot start the journal", NULL);
    durable_settle(o->store.directory);
    return 0;
}

/*
 * Requires: `server` is zeroed but for its options and `stopping`. Returns: 0; TL_ERR_STOPPED; or a
 * fatal code that has been logged; server_close() and server_close_store() in all cases.
 */
static int server_open(struct server *server, struct serve_options *o)
{
    REQUIRE(server->journal == NULL && server->api == NULL && server->http == NULL);
    char *reason = NULL;
    int r = o->cluster.url != NULL ? open_member(server, o) : open_alone(server, o);
    struct store *store = o->cluster.url != NULL ? server->member.store : server->durable.store;
    if (r != 0)
        return r;
    if (o->backups != NULL && (r = backup_folder_open(o->backups, o->data, &server->backups, &reason)) != 0)
        return serve_failed(r, "cannot start", reason);
    if (o->cluster.url != NULL) {
        if ((r = host_sender_open(&server->sender)) != 0)
            return serve_failed(r, "cannot start", NULL);
        o->api.hosts = host_sender_ops(server->sender);
    }
    o->api.cluster_secret = o->cluster.url != NULL ? slice_from(server->member.secret) : SLICE_NONE;
    o->api.backups = server->backups == NULL ? SLICE_NONE : slice_from(server->backups);
    if ((r = api_open(server->journal, store, &o->api, &server->api)) != 0)
        return serve_failed(r, "cannot start the api", NULL);
    if ((r = open_http(server, &o->http)) == 0)
        journal_set_input_barrier(server->journal,
                                  &(struct journal_input_barrier){.start = start_input_barrier, .context = server});
    return r;
}

/* Time within which cancelled requests end. */
#define CANCELLED_US (2 * TL_SECOND)
/* Interval at which requests that have begun to wait meanwhile are notified of the stop. */
#define STOP_AGAIN_US (100 * TL_MS)
/* Interval of the warning that requests are still executed. */
#define SETTLE_WARN_US (10 * TL_SECOND)

/*
 * Waits for the requests in flight, at most grace_us. Returns: false if some are still in flight.
 */
static bool drain_requests(struct server *server, uint64_t grace_us)
{
    while (grace_us > STOP_AGAIN_US) {
        if (http_drain(server->http, STOP_AGAIN_US))
            return true;
        api_stop(server->api);
        grace_us -= STOP_AGAIN_US;
    }
    return http_drain(server->http, grace_us);
}

/* Returns: whether nothing uses the api any more: no request, and no task. */
static bool is_settled(struct server *server)
{
    return http_settled(server->http, STOP_AGAIN_US) && api_settled(server->api, STOP_AGAIN_US);
}

/* Time in which the log accepted nothing at any look: at a single one a CANCEL may be on its way. */
#define STUCK_US TL_SECOND

/*
 * Waits without limit until nothing uses the api. Each request and task ends by itself, on a loaded machine
 * after a delay. Some may wait for the log, which accepts nothing: the journal's end completes them, too.
 */
static void wait_for_requests(struct server *server)
{
    uint64_t stuck_since = 0; /* first look since the log accepted something last; 0: it does */
    for (unsigned tries = 1; !is_settled(server); tries++) {
        uint64_t now = clock_boot_us();
        if (journal_accepts(server->journal))
            stuck_since = 0;
        else if (stuck_since == 0)
            stuck_since = now;
        else if (now - stuck_since >= STUCK_US)
            journal_stop(server->journal);
        api_stop(server->api);
        if (tries % (SETTLE_WARN_US / STOP_AGAIN_US) == 0)
            log_warning("requests are still in progress");
    }
}

/*
 * Stops serving. Streams end, and requests that wait for a lock are answered that the server stops.
 * Other requests in flight get grace_us to complete. Then the remaining ones are cancelled and
 * connections are closed.
 */
static void server_close(struct server *server, uint64_t grace_us)
{
    if (server->http != NULL) {
        http_quiesce(server->http);
        api_stop(server->api);
        if (!drain_requests(server, grace_us))
            log_warning("some requests did not finish in time; they are refused");
        api_cancel(server->api);
        (void)http_drain(server->http, CANCELLED_US);
        wait_for_requests(server);
    }
    if (server->journal != NULL)
        journal_stop(server->journal);
    api_close(server->api);
    host_sender_close(server->sender);
    http_close(server->http);
    journal_close(server->journal);
}

/* Closes the store, the last layer that is open. */
static void server_close_store(struct server *server)
{
    durable_close(&server->durable);
    member_close(&server->member);
    mem_free(server->address);
    mem_free(server->backups);
}

static sigset_t stop_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP); /* reloads files; its default action would end the process */
    return signals;
}

/*
 * The stopper: a thread that waits for the signal to stop, notifies the main thread, and enforces
 * --stop-time. If the stop takes longer (a start that reads a long log, a script in the writer, a
 * disk that does not respond), the process exits as in a crash: nothing acknowledged is lost, and
 * the next start recovers from the log.
 */
struct stopper {
    const sigset_t *signals;
    uint64_t stop_us;
    struct thread thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int signal;            /* the received signal; 0: none yet */
    bool ended;            /* the server has been closed, or could not be opened */
    bool closing;          /* the log is closed and durable: only RocksDB is still being closed */
    atomic_bool stopping;  /* `signal` is set: a start that waits gives up */
    struct server *server; /* the server that SIGHUP reloads; NULL: not open yet, or closing */
    bool missed;           /* a SIGHUP arrived while `server` was NULL */
};

static bool has_ended(struct stopper *stopper)
{
    pthread_mutex_lock(&stopper->lock);
    bool ended = stopper->ended;
    pthread_mutex_unlock(&stopper->lock);
    return ended;
}

/* Applies the log level of the file. `line` NULL: the file has none, so the default is set. */
static void change_level(const struct serve_options *o, const struct config_line *line)
{
    if (o->level_given)
        log_info("SIGHUP: log-level is set by the environment or the command line");
    else if (!try_log_level(line == NULL ? level_names[LOG_INFO] : line->value))
        log_error("SIGHUP: %s:%u: log-level: '%s' is not one of debug, info, warning, error", o->config.path,
                  line->number, line->value);
}

/*
 * Applies or logs the change of an option. A NULL line: the option is not in that version of the
 * file.
 */
static void apply_change(const struct serve_options *o, const struct config_line *before, const struct config_line *now)
{
    const char *name = now != NULL ? now->name : before->name;
    if (before != NULL && now != NULL && strcmp(before->value, now->value) == 0)
        return;
    if (strcmp(name, "log-level") == 0)
        change_level(o, now);
    else
        log_warning("SIGHUP: %s in %s takes effect at the next start", name, o->config.path);
}

/*
 * Reads the configuration file again. Options that can change at runtime are applied; for each
 * other change a warning says that it needs a restart. The next reload compares with the file read
 * now.
 */
static void reload_config(struct serve_options *o)
{
    struct config now;
    char *reason = NULL;
    if (config_read(o->config.path, &now, &reason) != 0) {
        log_error("SIGHUP: the configuration is unchanged: %s", reason);
        mem_free(reason);
        return;
    }
    const struct config *before = o->latest.path != NULL ? &o->latest : &o->config;
    for (size_t i = 0; i < now.count; i++)
        apply_change(o, config_find(before, now.lines[i].name), &now.lines[i]);
    for (size_t i = 0; i < before->count; i++)
        if (config_find(&now, before->lines[i].name) == NULL)
            apply_change(o, &before->lines[i], NULL);
    config_free(&o->latest);
    o->latest = now;
    log_info("SIGHUP: %s has been read again", o->config.path);
}

/* In a cluster the new certificate must be one that the other hosts can verify, as at the start. */
static int reload_tls(struct server *server, char **ret_reason)
{
    const struct serve_options *o = server->options;
    if (o->cluster.url != NULL && host_tls_check(o->http.tls.cert, o->cluster.ca, server->address, ret_reason) != 0)
        return TL_ERR_IO;
    return http_reload_tls(server->http, ret_reason);
}

/*
 * Reads the configuration and TLS files again. The server continues in any case; an invalid file
 * changes nothing.
 */
static void reload_files(struct server *server)
{
    char *reason = NULL;
    if (server->options->config.path != NULL)
        reload_config(server->options);
    else if (!server->tls)
        log_info("SIGHUP: there is no file to read again; nothing changes");
    if (server->tls && reload_tls(server, &reason) == 0)
        log_info("SIGHUP: the TLS files have been read again; new connections use them");
    else if (server->tls)
        log_error("SIGHUP: the TLS files are unchanged: %s", reason != NULL ? reason : "no memory");
    mem_free(reason);
}

static void read_again(struct stopper *stopper)
{
    pthread_mutex_lock(&stopper->lock);
    stopper->missed = stopper->server == NULL;
    if (stopper->server != NULL)
        reload_files(stopper->server);
    pthread_mutex_unlock(&stopper->lock);
}

/* Sets the server that SIGHUP reloads; NULL: none. */
static void stopper_serve(struct stopper *stopper, struct server *server)
{
    pthread_mutex_lock(&stopper->lock);
    stopper->server = server;
    if (server != NULL && stopper->missed)
        reload_files(server);
    pthread_mutex_unlock(&stopper->lock);
}

/* Returns: the signal that ends the server; 0: the server ended without a signal. */
static int wait_for_signal(struct stopper *stopper)
{
    const struct timespec period = {.tv_sec = TRIM_SECONDS};
    for (;;) {
        int got = sigtimedwait(stopper->signals, NULL, &period);
        if (has_ended(stopper))
            return 0;
        if (got == SIGHUP)
            read_again(stopper);
        else if (got > 0)
            return got;
        give_back_memory();
    }
}

static void stopper_main(void *context)
{
    struct stopper *stopper = context;
    int got = wait_for_signal(stopper);
    uint64_t until = clock_boot_us() + stopper->stop_us;
    bool in_time = true;
    pthread_mutex_lock(&stopper->lock);
    stopper->signal = got;
    atomic_store(&stopper->stopping, got != 0);
    pthread_cond_broadcast(&stopper->changed);
    while (!stopper->ended && in_time)
        in_time = clock_wait(&stopper->changed, &stopper->lock, until);
    bool ended = stopper->ended, closing = stopper->closing;
    pthread_mutex_unlock(&stopper->lock);
    if (ended)
        return;
    if (closing)
        log_warning("RocksDB does not close within --stop-time; all of its data is durable");
    else
        log_error("stopping takes longer than --stop-time; the process ends as in a crash");
    (void)log_flush(LOG_END_US);
    _exit(closing ? 0 : 1);
}

static int stopper_begin(struct stopper *stopper)
{
    pthread_mutex_init(&stopper->lock, NULL);
    pthread_cond_init(&stopper->changed, NULL);
    return thread_start(&stopper->thread, "stopper", stopper_main, stopper);
}

/* Marks the rest of the stop as safe to abort: at --stop-time the exit status is 0 from now on. */
static void stopper_closes(struct stopper *stopper)
{
    pthread_mutex_lock(&stopper->lock);
    stopper->closing = true;
    pthread_mutex_unlock(&stopper->lock);
}

/* Returns: the signal that ends the server. */
static int stopper_wait(struct stopper *stopper)
{
    pthread_mutex_lock(&stopper->lock);
    while (stopper->signal == 0)
        pthread_cond_wait(&stopper->changed, &stopper->lock);
    pthread_mutex_unlock(&stopper->lock);
    return stopper->signal;
}

static void stopper_end(struct stopper *stopper)
{
    pthread_mutex_lock(&stopper->lock);
    stopper->ended = true;
    pthread_cond_broadcast(&stopper->changed);
    pthread_mutex_unlock(&stopper->lock);
    (void)pthread_kill(stopper->thread.id, SIGHUP); /* blocked in all threads: it only ends sigtimedwait() */
    thread_join(&stopper->thread);
    pthread_cond_destroy(&stopper->changed);
    pthread_mutex_destroy(&stopper->lock);
}

static void announce_ready(const struct server *server, const char *host)
{
    bool v6 = strchr(host, ':') != NULL;
    printf("ready on %s://%s%s%s:%u\n", server->tls ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "",
           http_port(server->http));
    if (fflush(stdout) == 0)
        return;
    log_warning("cannot write to standard output that port %u is ready: %s", http_port(server->http), strerror(errno));
    clearerr(stdout);
}

static void set_defaults(struct serve_options *o, char host_name[static 65])
{
    *o = (struct serve_options){
        .data = "./tidelock-data",
        .cluster_name = "tidelock",
        .group = GROUP_DEFAULT,
        .limits = core_limits_default(),
        .http = http_options_default(),
        .grace_us = 10 * TL_SECOND,
    };
    o->host = mem_strdup("127.0.0.1", 9);
    o->store.cache_bytes = o->store.write_buffer_bytes = (size_t)64 << 20;
    o->journal.history_us = 3600 * TL_SECOND;
    o->journal.reserve_bytes = (uint64_t)256 << 20;
    o->api.worker_count = 2;
    o->api.request_us = 600 * TL_SECOND;
    if (gethostname(host_name, 64) != 0 || *host_name == '\0')
        strcpy(host_name, "tidelock");
    o->node_name = host_name;
    o->zoneinfo = "/usr/share/zoneinfo";
}

/*
 * Copies options that several layers use to each of them, and derives the defaults that depend on
 * others.
 */
static void share_options(struct serve_options *o)
{
    if (o->stop_us == 0)
        o->stop_us = o->grace_us + 20 * TL_SECOND;
    o->http.host = o->host;
    add_host_name(o, o->host);
    if (o->advertised_host != NULL)
        add_host_name(o, o->advertised_host); /* by which the other hosts call this one */
    o->http.host_names = o->host_names;
    o->store.directory = o->journal.directory = o->api.data_directory = slice_from(o->data);
    o->journal.limits = &o->limits;
    o->api.script = o->limits.script;
    if (o->limits.script.steps_max > SCRIPT_WRITER_STEPS_MAX)
        o->limits.script.steps_max = SCRIPT_WRITER_STEPS_MAX;
    o->api.body_bytes_max = o->http.body_bytes_max;
    o->api.cluster_name = slice_from(o->cluster_name);
    o->api.node_name = slice_from(o->node_name);
    o->api.zoneinfo = slice_from(o->zoneinfo);
}

struct serving {
    struct serve_options *options;
    const sigset_t *signals;
};

/* Opens the server, serves until a signal, and closes it. Returns: the exit status. */
static int serve_until_signal(void *context)
{
    const struct serving *serving = context;
    struct serve_options *o = serving->options;
    struct stopper stopper = {.signals = serving->signals, .stop_us = o->stop_us};
    struct server server = {.options = o, .stopping = &stopper.stopping};
    share_memory(&server, o);
    if (stopper_begin(&stopper) != 0)
        return serve_failed(TL_ERR_IO, "cannot start a thread", NULL);
    int r = server_open(&server, o);
    if (r == 0) {
        stopper_serve(&stopper, &server);
        announce_ready(&server, o->host);
        supervisor_notify("READY=1");
        log_info("stopping: %s", strsignal(stopper_wait(&stopper)));
        supervisor_notify("STOPPING=1");
    } else if (r == TL_ERR_STOPPED) {
        log_info("stopping before the start was complete: %s", strsignal(stopper_wait(&stopper)));
    }
    stopper_serve(&stopper, NULL);
    uint64_t grace_us_max = o->stop_us / 2; /* so that the rest of the stop has enough time */
    server_close(&server, o->grace_us < grace_us_max ? o->grace_us : grace_us_max);
    stopper_closes(&stopper);
    server_close_store(&server);
    stopper_end(&stopper);
    return r == 0 || r == TL_ERR_STOPPED ? 0 : 1;
}

static void free_options(struct serve_options *o)
{
    mem_free(o->host_names);
    mem_free(o->host);
    mem_free(o->advertised_host);
    config_free(&o->config);
    config_free(&o->latest);
}

/*
 * Ends --check-config: all values have been parsed; validates the TLS files, too. Returns: the
 * exit status.
 */
static int end_check(struct serve_options *o)
{
    char *reason = NULL;
    struct tls *tls = NULL;
    int r = o->http.tls.cert == NULL ? 0 : tls_open(&o->http.tls, &tls, &reason);
    if (r != 0)
        fprintf(stderr, "tidelock serve: %s\n", reason != NULL ? escape_terminal(reason) : error_text(r));
    else
        printf("all options are valid\n");
    mem_free(reason);
    if (tls != NULL)
        tls_close(tls);
    free_options(o);
    return arguments_end_output("tidelock serve", r == 0 ? 0 : 1);
}

int command_serve(int argc, char **argv)
{
    static const struct argp argp = {options, parse_serve_option, NULL, doc, NULL, NULL, NULL};
    struct serve_options o;
    char host_name[65] = {0};
    set_defaults(&o, host_name);
    arguments_parse_config(&argp, argc, argv, 0, &o, &o.config);
    o.level_given = arguments_given(&argp, argc, argv, "log-level");
    share_options(&o);
    if (o.check)
        return end_check(&o);

    /* Blocked before any thread starts, so that all threads inherit it and only wait_for_stop() sees them. */
    sigset_t signals = stop_signals();
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (log_begin_queue(STDERR_FILENO) != 0 || reclaim_begin() != 0)
        return serve_failed(TL_ERR_IO, "cannot start a thread", NULL);
    private_dir_begin();
    raise_file_limit();
    fit_connections(&o.http);
    tune_allocator();

    /*
     * The start replays commands, which may run scripts; they need the stack size of the other
     * threads.
     */
    stack_prepare();
    struct serving serving = {&o, &signals};
    int status = stack_run(serve_until_signal, &serving);
    if (status < 0)
        log_error("cannot start a thread");
    reclaim_end();
    free_options(&o);
    return status == 0 ? 0 : 1;
}
