/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock serve`: puts the layers together, from the store up, and takes them apart in an order in which nothing that
 * was acknowledged is lost and everything that waits is answered.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/request/api.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stack.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/private_dir.h"
#include "http/http.h"

static const char *const level_names[LOG_LEVEL_COUNT] = {"debug", "info", "warning", "error"};

enum {
    TRIM_SECONDS = 10,
    FREE_BYTES_KEPT = 32 << 20, /* of the heap, for what comes next */
};

struct serve_options {
    const char *data;
    char *host;
    const char **host_names; /* texts are the command line's and the environment's */
    const char *node_name;
    const char *zoneinfo;
    const char *cluster_name;
    struct store_options store;
    struct core_limits limits;
    struct journal_options journal;
    struct api_options api;
    struct http_options http;
    uint64_t grace_us;
    uint64_t stop_us;    /* 0: by the grace */
    size_t memory_bytes; /* 0: a quarter of what there is */
};

struct server {
    struct budget budget; /* shared by all that clients make the server hold */
    struct store *store;
    struct core *core;
    struct journal *journal;
    struct api *api;
    struct http *http;
};

/* What an orderly end takes of an idle server, on a slow disk. */
#define STOP_US_MIN TL_SECOND

/* What the smallest documents take. */
#define SCRIPT_MEMORY_MIN ((size_t)64 << 10)

enum {
    OPTION_HISTORY = 256,
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
    OPTION_REQUEST_TIME,
    OPTION_GRACE,
    OPTION_STOP_TIME,
    OPTION_CLUSTER_NAME,
    OPTION_NODE_NAME,
    OPTION_ZONEINFO,
    OPTION_LOG_LEVEL,
};

static const struct argp_option options[] = {
    {"data", 'd', "DIR", 0, "Where the data is kept; made when missing (./tidelock-data)", 1},
    {"listen", 'l', "HOST:PORT", 0, "Where to listen (127.0.0.1:9200); port 0 takes a free one", 1},
    {"host-name", OPTION_HOST_NAME, "NAME", 0,
     "What clients may call this host, besides localhost and addresses; repeatable, or with commas between", 1},
    {"history", OPTION_HISTORY, "TIME", 0, "How far back reads may go (1h)", 2},
    {"cache", OPTION_CACHE, "SIZE", 0, "Memory for blocks of the store (64m)", 2},
    {"write-buffer", OPTION_WRITE_BUFFER, "SIZE", 0, "Memory for writes not yet in files (64m)", 2},
    {"reserve", OPTION_RESERVE, "SIZE", 0, "Refuse writes below this much free disk space (256m)", 2},
    {"memory", OPTION_MEMORY, "SIZE", 0,
     "For all that clients make the server hold: requests, replies, transactions, locks (a quarter of the machine's)",
     3},
    {"max-body", OPTION_MAX_BODY, "SIZE", 0, "Of one request (100m)", 3},
    {"max-connections", OPTION_MAX_CONNECTIONS, "N", 0, "Open at once (16384)", 3},
    {"max-connections-per-address", OPTION_MAX_CONNECTIONS_PER_ADDRESS, "N", 0,
     "Open at once from one address (half of all; no limit for loopback)", 3},
    {"max-sessions", OPTION_MAX_SESSIONS, "N", 0, "Open at once (10000)", 3},
    {"max-ephemeral", OPTION_MAX_EPHEMERAL, "N", 0, "Documents that live with one session (10000)", 3},
    {"script-steps", OPTION_SCRIPT_STEPS, "N", 0, "Statements, turns and calls of a script's run (5000000); of those that change, 50000000 at most", 3},
    {"script-memory", OPTION_SCRIPT_MEMORY, "SIZE", 0, "Of a script's values (64m)", 3},
    {"script-depth", OPTION_SCRIPT_DEPTH, "N", 0, "Of a script's calls (256)", 3},
    {"idle-timeout", OPTION_IDLE_TIMEOUT, "TIME", 0, "Close a connection with no request for so long (10m)", 3},
    {"threads", OPTION_THREADS, "N", 0, "For connections (one a processor)", 3},
    {"workers", OPTION_WORKERS, "N", 0, "For searches and other long reads (2), besides those that are kept for short work", 3},
    {"request-time", OPTION_REQUEST_TIME, "TIME", 0,
     "How long the work at one request may take, waits for locks apart; 0: as long as it likes (10m)", 3},
    {"grace", OPTION_GRACE, "TIME", 0, "How long requests in flight may take to end when stopped (10s)", 4},
    {"stop-time", OPTION_STOP_TIME, "TIME", 0,
     "When stopped, end within this time whatever is at work, and be it as in a crash (20s more than --grace)", 4},
    {"cluster-name", OPTION_CLUSTER_NAME, "NAME", 0, "As GET / shows it (tidelock)", 4},
    {"node-name", OPTION_NODE_NAME, "NAME", 0, "As GET / shows it (the host's)", 4},
    {"zoneinfo", OPTION_ZONEINFO, "DIR", 0, "Time zones, as TZif files (/usr/share/zoneinfo)", 4},
    {"log-level", OPTION_LOG_LEVEL, "LEVEL", 0, "debug, info, warning or error (info)", 4},
    {0},
};

static void set_log_level(const struct argp_state *state, const char *text)
{
    for (int level = 0; level < LOG_LEVEL_COUNT; level++)
        if (strcmp(text, level_names[level]) == 0) {
            log_set_level((enum log_level)level);
            return;
        }
    arguments_error(state, "--log-level: '%s' is none of debug, info, warning, error", text);
}

static void add_host_name(struct serve_options *o, const char *name)
{
    size_t count = o->http.host_name_count;
    o->host_names = mem_realloc(o->host_names, (count + 1) * sizeof *o->host_names);
    o->host_names[count] = name;
    o->http.host_name_count = count + 1;
}

/* Letters, digits, '-', '_' and '.', as in a request's Host without its port; the names are cut apart where they stand. */
static void add_host_names(const struct argp_state *state, struct serve_options *o, char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    for (char *name = strsep(&text, ","); name != NULL; name = strsep(&text, ",")) {
        if (*name == '\0' || name[strspn(name, allowed)] != '\0')
            arguments_error(state, "--host-name: '%s' is no name of a host; give it as in a URL, without a port", name);
        add_host_name(o, name);
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
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
    case OPTION_CACHE: o->store.cache_bytes = arguments_size(state, "cache", text); break;
    case OPTION_WRITE_BUFFER: o->store.write_buffer_bytes = arguments_size(state, "write-buffer", text); break;
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
    case OPTION_CLUSTER_NAME: o->cluster_name = text; break;
    case OPTION_NODE_NAME: o->node_name = text; break;
    case OPTION_ZONEINFO: o->zoneinfo = text; break;
    case OPTION_LOG_LEVEL: set_log_level(state, text); break;
    case ARGP_KEY_ARG:
        arguments_error(state, "'%s' is no option; everything here has the form --name=value", text);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const char doc[] =
    "Run the server until SIGTERM or SIGINT, which let requests in flight end.\v"
    "Once it answers, one line goes to standard output: ready on http://HOST:PORT. The log goes to standard error.\n\n"
    "Examples:\n"
    "  tidelock serve --data /var/lib/tidelock --listen 127.0.0.1:9200\n"
    "  TIDELOCK_HISTORY=1d tidelock serve --listen 0.0.0.0:9200 --cache 1g\n";

/* As many files and sockets as the system lets us have: ten thousand connections are nothing special. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Connections beyond what the limit on files allows would fail at accept; files of the store need some too. */
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
 * The allocator's defaults keep a heap for each of many threads, and give freed memory back late; bodies of bulk
 * requests would add up.
 */
static void tune_allocator(void)
{
    (void)mallopt(M_ARENA_MAX, 4);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 4 << 20);
}

/* Gives memory that was freed in pieces back to the system, when there is much of it: after a bulk load, say. */
static void give_back_memory(void)
{
    struct mallinfo2 heap = mallinfo2();
    if (heap.fordblks > FREE_BYTES_KEPT)
        (void)malloc_trim(0);
}

/* What this process may have: the machine's memory, or less by the limit of a container. */
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

/* The bodies of all requests together take half of it at most, so that large ones do not keep the rest out. */
static void share_memory(struct server *server, struct serve_options *o)
{
    size_t bytes = o->memory_bytes != 0 ? o->memory_bytes : memory_there() / 4;
    budget_init(&server->budget, bytes < BUDGET_LIMIT_MIN ? BUDGET_LIMIT_MIN : bytes);
    o->http.budget = o->api.budget = &server->budget;
    if (o->http.bodies_bytes_max > bytes / 2)
        o->http.bodies_bytes_max = bytes / 2;
}

static int complain(int code, const char *what, char *reason)
{
    log_error("%s: %s", what, reason != NULL ? reason : error_text(code));
    mem_free(reason);
    return code;
}

static void handle(void *context, struct exchange *exchange)
{
    const struct server *server = context;
    api_handle(server->api, exchange);
}

static tl_ts timestamp(void *context)
{
    const struct server *server = context;
    return journal_stable(server->journal);
}

static void heard(void *context)
{
    const struct server *server = context;
    journal_heard(server->journal);
}

/* Those who hold a lease are heard before it runs out: on connections that stay open, and in requests that have come in. */
static void listen(void *context)
{
    struct server *server = context;
    api_beat(server->api);
    http_hear(server->http, heard, server);
}

static int open_http(struct server *server, const struct http_options *http)
{
    char *reason = NULL;
    struct http_handler handler = {.handle = handle, .timestamp = timestamp, .context = server};
    int r = http_open(http, &handler, &server->http, &reason);
    return r == 0 ? 0 : complain(r, "cannot start", reason);
}

/* Requires: `server` is zeroed. Returns: 0, or a fatal code that has been logged; server_close() in both cases. */
static int server_open(struct server *server, struct serve_options *o)
{
    char *reason = NULL;
    int r = store_open_rocks(&o->store, &server->store, &reason);
    if (r != 0)
        return complain(r, o->data, reason);
    private_dir_tighten(o->data);
    struct core_limits limits = core_limits_default(); /* until the log says which: those of the options */
    if ((r = core_open(server->store, &limits, &server->core)) != 0)
        return complain(r, "cannot read the state", NULL);
    if ((r = journal_open_local(server->core, server->store, &o->journal, &server->journal)) != 0)
        return complain(r, "cannot start the journal", NULL);
    if ((r = api_open(server->journal, server->store, &o->api, &server->api)) != 0)
        return complain(r, "cannot start the api", NULL);
    if ((r = open_http(server, &o->http)) == 0)
        journal_listen(server->journal, &(struct journal_ears){.listen = listen, .context = server});
    return r;
}

/* What has been cancelled ends within this time. */
#define CANCELLED_US (2 * TL_SECOND)
/* How often those are told of the stop that have begun to wait in the meantime. */
#define STOP_AGAIN_US (100 * TL_MS)
/* How often it is said that the end still waits. */
#define SETTLE_WARN_US (10 * TL_SECOND)

/* Returns: false when `grace_us` was too short. */
static bool drain(struct server *server, uint64_t grace_us)
{
    while (grace_us > STOP_AGAIN_US) {
        if (http_drain(server->http, STOP_AGAIN_US))
            return true;
        api_stop(server->api);
        grace_us -= STOP_AGAIN_US;
    }
    return http_drain(server->http, grace_us);
}

/* The api goes only when nobody is inside: each request there ends by itself, on a loaded machine after a while. */
static void settle(struct server *server)
{
    for (unsigned tries = 1; !http_settled(server->http, STOP_AGAIN_US); tries++) {
        api_stop(server->api);
        if (tries % (SETTLE_WARN_US / STOP_AGAIN_US) == 0)
            log_warning("requests are still being worked at");
    }
}

/*
 * Streams end and who waits for a lock is told that the server stops; other requests in flight get their grace; then what is
 * still at work is cancelled, and connections go.
 */
static void server_close(struct server *server, uint64_t grace_us)
{
    if (server->http != NULL) {
        http_quiesce(server->http);
        api_stop(server->api);
        if (!drain(server, grace_us))
            log_warning("some requests did not end in time; they are refused");
        api_cancel(server->api);
        (void)http_drain(server->http, CANCELLED_US);
        settle(server);
    }
    if (server->journal != NULL)
        journal_stop(server->journal);
    api_close(server->api);
    http_close(server->http);
    journal_close(server->journal);
    if (server->core != NULL)
        core_close(server->core);
    store_close(server->store);
}

static sigset_t stop_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP); /* not to stop: its default would */
    return signals;
}

/*
 * The stopper: a thread that waits for the signal to stop, tells the main thread, and sees to it that the end comes in time. What takes
 * longer (a start that reads a long log, a script in the writer, a disk that does not answer) is cut off as a crash would: nothing that
 * was acknowledged is lost, and the next start does what this end has not.
 */
struct stopper {
    const sigset_t *signals;
    uint64_t stop_us;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int signal; /* that was got; 0: none yet */
    bool ended; /* the server has, or never was */
};

static bool has_ended(struct stopper *stopper)
{
    pthread_mutex_lock(&stopper->lock);
    bool ended = stopper->ended;
    pthread_mutex_unlock(&stopper->lock);
    return ended;
}

/* Returns: the signal that ends the server; 0: it has ended without. */
static int wait_for_signal(struct stopper *stopper)
{
    const struct timespec period = {.tv_sec = TRIM_SECONDS};
    for (;;) {
        int got = sigtimedwait(stopper->signals, NULL, &period);
        if (has_ended(stopper))
            return 0;
        if (got == SIGHUP)
            log_info("SIGHUP: there is nothing to be read again; the server goes on");
        else if (got > 0)
            return got;
        give_back_memory();
    }
}

static void *stopper_main(void *context)
{
    struct stopper *stopper = context;
    int got = wait_for_signal(stopper);
    uint64_t until = clock_boot_us() + stopper->stop_us;
    bool in_time = true;
    pthread_mutex_lock(&stopper->lock);
    stopper->signal = got;
    pthread_cond_broadcast(&stopper->changed);
    while (!stopper->ended && in_time)
        in_time = clock_wait(&stopper->changed, &stopper->lock, until);
    bool ended = stopper->ended;
    pthread_mutex_unlock(&stopper->lock);
    if (!ended) {
        log_error("the end takes longer than --stop-time: it is made as in a crash");
        _exit(1);
    }
    return NULL;
}

static int stopper_begin(struct stopper *stopper)
{
    pthread_mutex_init(&stopper->lock, NULL);
    pthread_cond_init(&stopper->changed, NULL);
    return pthread_create(&stopper->thread, NULL, stopper_main, stopper);
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
    (void)pthread_kill(stopper->thread, SIGHUP); /* blocked everywhere: it is only waited for */
    pthread_join(stopper->thread, NULL);
    pthread_cond_destroy(&stopper->changed);
    pthread_mutex_destroy(&stopper->lock);
}

static void announce(const struct server *server, const char *host)
{
    bool v6 = strchr(host, ':') != NULL;
    printf("ready on http://%s%s%s:%u\n", v6 ? "[" : "", host, v6 ? "]" : "", http_port(server->http));
    if (fflush(stdout) == 0)
        return;
    log_warning("cannot say on standard output that port %u is ready: %s", http_port(server->http), strerror(errno));
    clearerr(stdout);
}

static void defaults(struct serve_options *o, char host_name[static 65])
{
    *o = (struct serve_options){
        .data = "./tidelock-data",
        .cluster_name = "tidelock",
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

/* What several layers are told alike. */
static void share(struct serve_options *o)
{
    if (o->stop_us == 0)
        o->stop_us = o->grace_us + 20 * TL_SECOND;
    o->http.host = o->host;
    add_host_name(o, o->host);
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

/* Requests in flight get no more of the time to stop than leaves enough for the rest. */
static uint64_t grace_within(const struct serve_options *o)
{
    uint64_t most = o->stop_us / 2;
    return o->grace_us < most ? o->grace_us : most;
}

struct serving {
    struct serve_options *options;
    const sigset_t *signals;
};

/* The whole life of a server. Returns: the exit status. */
static int serve(void *context)
{
    const struct serving *serving = context;
    struct serve_options *o = serving->options;
    struct server server = {0};
    struct stopper stopper = {.signals = serving->signals, .stop_us = o->stop_us};
    share_memory(&server, o);
    if (stopper_begin(&stopper) != 0)
        return complain(TL_ERR_IO, "cannot start a thread", NULL);
    int r = server_open(&server, o);
    if (r == 0) {
        announce(&server, o->host);
        log_info("stopping: %s", strsignal(stopper_wait(&stopper)));
    }
    server_close(&server, grace_within(o));
    stopper_end(&stopper);
    return r == 0 ? 0 : 1;
}

int command_serve(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct serve_options o;
    char host_name[65] = {0};
    defaults(&o, host_name);
    arguments_parse(&argp, argc, argv, 0, &o);
    share(&o);

    /* Blocked before any thread starts, so that all threads inherit it and only wait_for_stop() sees them. */
    sigset_t signals = stop_signals();
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    private_dir_begin();
    raise_file_limit();
    fit_connections(&o.http);
    tune_allocator();

    /* The start replays commands, which may run scripts: in a stack of the size that all threads have. */
    stack_prepare();
    struct serving serving = {&o, &signals};
    int status = stack_run(serve, &serving);
    if (status < 0)
        log_error("cannot start a thread");
    mem_free(o.host_names);
    mem_free(o.host);
    return status == 0 ? 0 : 1;
}
