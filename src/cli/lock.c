/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock lock`: runs a command while it holds a lock, as flock(1) does for files.
 *
 * A session of our own holds the lock, and an open response (attach_stream.h) keeps it. If the lease
 * may be about to run out, because the server cannot be reached, the command is stopped before:
 * SIGTERM first, SIGKILL when time is short. Should we die, the connection breaks and the session
 * with it; the command dies with us (child.h).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/attach_stream.h"
#include "cli/child.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "json/each.h"

/* The rest of the lease, as a part of it, at which actions are due. */
enum {
    LEASE_PARTS_ASK = 4,   /* the server is asked, since its stream is silent */
    LEASE_PARTS_TERM = 6,  /* SIGTERM */
    LEASE_PARTS_KILL = 12, /* SIGKILL */
    LEASE_PARTS_LOOK = 24, /* how often it is looked at */
};

/* How long an answer is awaited, as a part of the lease: while the command runs, and while it is stopped. */
enum { ANSWER_PARTS = 48, ANSWER_PARTS_STOPPED = 2 };

#define COMMIT_US (60 * TL_SECOND)     /* for an answer to a commit */
enum { COMMIT_PAUSE_US = 200 * 1000 }; /* before it is asked again */

enum { EXIT_FAILED = 1, EXIT_NOT_GRANTED = 75 /* EX_TEMPFAIL */, EXIT_LOST = 76 };

struct lock_options {
    const char *mode;   /* NULL: not said yet */
    const char *target; /* "/", INDEX or INDEX:PATH */
    const char *url;
    const char *name;
    char **command; /* NULL-terminated */
    uint64_t wait_us;
    uint64_t ttl_us;
    bool transaction;
};

/* What the server has given us. */
struct held {
    char *session;
    char *transaction; /* NULL: none */
    uint64_t token;
};

enum { OPTION_UPDATE = 256, OPTION_WAIT, OPTION_TTL, OPTION_URL, OPTION_TRANSACTION, OPTION_NAME };

static const struct argp_option options[] = {
    {"exclusive", 'x', NULL, 0, "An exclusive lock (the default)", 1},
    {"shared", 's', NULL, 0, "A shared lock: others may hold shared and update locks", 1},
    {"update", OPTION_UPDATE, NULL, 0, "An update lock: others may hold shared locks only", 1},
    {"wait", 'w', "TIME", 0, "How long to wait for the lock (10s)", 1},
    {"ttl", OPTION_TTL, "TIME", 0,
     "The lease of the session: how long the lock is kept while the server cannot be reached (30s)", 1},
    {"transaction", OPTION_TRANSACTION, NULL, 0,
     "Run COMMAND in a transaction: committed if it exits with 0, else rolled back", 1},
    {"name", OPTION_NAME, "NAME", 0, "The name of the session, shown to others (the COMMAND)", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] =
    "Run COMMAND while holding a lock on INDEX, on the subtree INDEX:PATH, or on everything (/).\v"
    "The environment of COMMAND has TIDELOCK_SESSION, TIDELOCK_FENCING_TOKEN and TIDELOCK_URL; requests with the "
    "session are not blocked by the lock. COMMAND does not outlive the lock: it ends with its parent, and is stopped "
    "if the session is lost. Signals are forwarded to it. While it is stopped on a terminal, the lock is kept.\n\n"
    "With --transaction the environment also has TIDELOCK_TRANSACTION. The changes of requests with it are committed "
    "together if COMMAND exits with 0, and rolled back if COMMAND fails or is killed, or if this program is killed.\n\n"
    "Exit status: that of COMMAND; 126 if it cannot be run, 127 if it is not found; 75 if the lock was not "
    "granted in time; 76 if it was lost before COMMAND ended, whatever COMMAND's status; 69 if no server "
    "answers; 1 if the request failed or the transaction could not be committed.\n\n"
    "Examples:\n"
    "  tidelock lock fs:/clinton -- ./rename-everything\n"
    "  tidelock lock --shared --wait 1m fs -- ./report\n"
    "  tidelock lock --transaction fs:/clinton -- ./rename-everything\n";

static void take_command(struct lock_options *o, struct argp_state *state)
{
    int first = state->next - 1;
    int count = state->argc - first;
    o->command = mem_zalloc((size_t)(count + 1) * sizeof *o->command);
    for (int i = 0; i < count; i++)
        o->command[i] = state->argv[first + i];
    state->next = state->argc;
}

static void take_mode(struct lock_options *o, const char *mode, struct argp_state *state)
{
    if (o->mode != NULL && strcmp(o->mode, mode) != 0)
        arguments_error(state, "%s and %s exclude each other", o->mode, mode);
    o->mode = mode;
}

static error_t parse_lock_option(int key, char *text, struct argp_state *state)
{
    struct lock_options *o = state->input;
    switch (key) {
    case 'x': take_mode(o, "exclusive", state); break;
    case 's': take_mode(o, "shared", state); break;
    case OPTION_UPDATE: take_mode(o, "update", state); break;
    case 'w': o->wait_us = arguments_duration(state, "wait", text); break;
    case OPTION_TTL:
        o->ttl_us = arguments_duration(state, "ttl", text);
        if (o->ttl_us < TL_SECOND)
            arguments_error(state, "--ttl: a lease has at least 1s");
        break;
    case OPTION_TRANSACTION: o->transaction = true; break;
    case OPTION_NAME: o->name = text; break;
    case OPTION_URL: o->url = text; break;
    case ARGP_KEY_ARG:
        if (o->target == NULL && state->quoted > 0)
            arguments_error(state, "missing argument; expected INDEX, INDEX:PATH or / before the --");
        if (o->target == NULL)
            o->target = text;
        else
            take_command(o, state);
        break;
    case ARGP_KEY_END:
        if (o->target == NULL)
            arguments_error(state, "missing argument; expected INDEX, INDEX:PATH or /");
        if (o->command == NULL)
            arguments_error(state, "missing argument; expected COMMAND");
        if (o->mode == NULL)
            o->mode = "exclusive";
        break;
    default: return client_option(key, text);
    }
    return 0;
}

static int lock_failed(const struct client *client, long status, const char *what)
{
    fprintf(stderr, "tidelock lock: %s: %s\n", what, client_error(client, status));
    return client_exit(status);
}

static int open_session(struct client *client, const struct lock_options *o, struct held *held)
{
    char ttl[32];
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&body, "{\"ttl\":\"%s\",\"name\":", arguments_duration_text(o->ttl_us, ttl));
    buf_json_string(&body, slice_from(o->name != NULL ? o->name : o->command[0]));
    buf_byte(&body, '}');
    long status = client_request(client, "POST", "/_session", buf_as_slice(&body), o->ttl_us);
    const char *session = yyjson_get_str(yyjson_obj_get(client_json(client), "session"));
    if (status != 201 || session == NULL)
        return lock_failed(client, status, "no session");
    held->session = mem_strdup(session, strlen(session));
    return 0;
}

static void write_target(struct buf *to, const char *target)
{
    struct slice all = slice_from(target);
    size_t colon = slice_find_byte(all, ':');
    if (slice_is(all, "/"))
        return;
    buf_lit(to, ",\"index\":");
    buf_json_string(to, (struct slice){all.data, colon});
    if (colon == all.len)
        return;
    buf_lit(to, ",\"path\":");
    buf_json_string(to, slice_from_offset(all, colon + 1));
}

static void print_holders(yyjson_val *error)
{
    size_t i;
    size_t max;
    yyjson_val *holder;
    json_arr_foreach (yyjson_obj_get(error, "holders"), i, max, holder) {
        const char *name = yyjson_get_str(yyjson_obj_get(holder, "name"));
        uint64_t session = yyjson_get_uint(yyjson_obj_get(holder, "session"));
        const char *mode = yyjson_get_str(yyjson_obj_get(holder, "mode"));
        fprintf(stderr, "  held by %s (session #%llu, %s)\n",
                name != NULL ? escape_terminal(name) : "an unnamed session", (unsigned long long)session,
                mode != NULL ? escape_terminal(mode) : "?");
    }
}

static int take_lock(struct client *client, const struct lock_options *o, struct held *held)
{
    char wait[32];
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&body, "{\"session\":\"%s\",\"wait\":\"%s\",\"locks\":[{\"mode\":\"%s\"", held->session,
               arguments_duration_text(o->wait_us, wait), o->mode);
    write_target(&body, o->target);
    buf_lit(&body, "}]}");
    long status = client_request(client, "POST", "/_lock", buf_as_slice(&body), o->wait_us + 30 * TL_SECOND);
    if (status == 409) {
        fprintf(stderr, "tidelock lock: %s\n", client_error(client, status));
        print_holders(yyjson_obj_get(client_json(client), "error"));
        return EXIT_NOT_GRANTED;
    }
    if (status != 200)
        return lock_failed(client, status, "cannot lock");
    held->token = yyjson_get_uint(yyjson_obj_get(client_json(client), "fencing_token"));
    if (yyjson_get_bool(yyjson_obj_get(client_json(client), "index_missing")))
        fprintf(stderr, "tidelock lock: there is no index [%.*s]; the lock guards it if it is created\n",
                (int)strcspn(o->target, ":"), o->target);
    return 0;
}

static int begin_transaction(struct client *client, const struct lock_options *o, struct held *held)
{
    if (!o->transaction)
        return 0;
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&body, "{\"mode\":\"update\",\"session\":\"%s\",\"timeout\":\"24h\"}", held->session);
    long status = client_request(client, "POST", "/_transaction", buf_as_slice(&body), o->ttl_us);
    const char *transaction = yyjson_get_str(yyjson_obj_get(client_json(client), "transaction"));
    if (status != 201 || transaction == NULL)
        return lock_failed(client, status, "no transaction");
    held->transaction = mem_strdup(transaction, strlen(transaction));
    return 0;
}

/*
 * A commit whose answer was lost may have happened. It is asked again, which the server answers as
 * it did the first time, after a restart too.
 */
static long commit_transaction(struct client *client, const char *path, uint64_t patience_us)
{
    const struct timespec pause = {.tv_nsec = COMMIT_PAUSE_US * 1000};
    long answer = client_request(client, "POST", path, SLICE_LIT(""), COMMIT_US);
    for (uint64_t waited = 0; (answer == 0 || answer == 503) && waited < patience_us; waited += COMMIT_PAUSE_US) {
        nanosleep(&pause, NULL);
        answer = client_request(client, "POST", path, SLICE_LIT(""), COMMIT_US);
    }
    return answer;
}

/* Commits or rolls back. Returns: the exit status that is left of `status`. */
static int end_transaction(struct client *client, const struct lock_options *o, const struct held *held, int status)
{
    if (held->transaction == NULL)
        return status;
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "/_transaction/%s/%s", held->transaction, status == 0 ? "_commit" : "_rollback");
    buf_byte(&path, '\0');
    if (status != 0) {
        (void)!client_request(client, "POST", path.data, SLICE_LIT(""), o->ttl_us);
        return status;
    }
    long answer = commit_transaction(client, path.data, o->ttl_us);
    if (answer == 200)
        return 0;
    (void)lock_failed(client, answer, "the transaction is not committed");
    return EXIT_FAILED; /* COMMAND has run: 69, no server, would be wrong */
}

static void set_environment(const struct lock_options *o, const struct held *held)
{
    char token[24];
    snprintf(token, sizeof token, "%llu", (unsigned long long)held->token);
    setenv("TIDELOCK_SESSION", held->session, 1);
    setenv("TIDELOCK_FENCING_TOKEN", token, 1);
    setenv("TIDELOCK_URL", o->url, 1);
    client_export();
    if (held->transaction != NULL)
        setenv("TIDELOCK_TRANSACTION", held->transaction, 1);
}

/* Those that mean the command; SIGCHLD is ours. */
static sigset_t passed_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,  SIGUSR1,
                                  SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH, SIGCHLD};
    sigset_t signals;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&signals, numbers[i]);
    return signals;
}

static void pass_signals(struct child *child, int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGCONT)
            child_continue(child);
        else if (info.ssi_signo != SIGCHLD)
            child_signal(child, (int)info.ssi_signo);
    child_reap(child);
}

/* A command, and how far the end of its lease has been heeded. */
struct job {
    struct client *client;
    struct attach_stream *stream;
    struct child child;
    enum { JOB_RUNS, JOB_TERMINATED, JOB_KILLED } stage;
};

static void stop_command(struct job *job, int stage)
{
    const char *why = job->stream->lost ? "lost" : "about to run out, and the server does not answer";
    if (job->stage == JOB_RUNS)
        fprintf(stderr, "tidelock lock: the session is %s; stopping the command\n", why);
    child_signal(&job->child, stage == JOB_KILLED ? SIGKILL : SIGTERM);
    job->stage = stage;
}

/* Stops the command in time. */
static void guard_lease(struct job *job)
{
    struct attach_stream *stream = job->stream;
    if (job->stage == JOB_RUNS && !stream->lost && attach_stream_left(stream) < stream->ttl_us / LEASE_PARTS_ASK)
        (void)attach_stream_renew(stream, job->client, stream->ttl_us / ANSWER_PARTS);
    uint64_t left = attach_stream_left(stream);
    if (job->stage == JOB_RUNS && left < stream->ttl_us / LEASE_PARTS_TERM)
        stop_command(job, JOB_TERMINATED);
    else if (job->stage == JOB_TERMINATED && left < stream->ttl_us / LEASE_PARTS_KILL)
        stop_command(job, JOB_KILLED);
}

/*
 * The command was stopped on our terminal. We stop too; when continued, the command continues only
 * if the lease still holds.
 */
static void stop_too(struct job *job)
{
    struct attach_stream *stream = job->stream;
    if (!child_stop_too(&job->child))
        return;
    (void)attach_stream_renew(stream, job->client, stream->ttl_us / ANSWER_PARTS_STOPPED);
    if (attach_stream_left(stream) < stream->ttl_us / LEASE_PARTS_TERM)
        stop_command(job, JOB_KILLED); /* at once */
    else
        child_continue(&job->child);
}

/* Returns: the command's exit status, or EXIT_LOST. */
static int run_command(struct client *client, struct attach_stream *stream, char **command)
{
    struct job job = {.client = client, .stream = stream};
    sigset_t signals = passed_signals();
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    int failed = fd < 0 ? 1 : child_start(&job.child, command);
    if (failed != 0) {
        fprintf(stderr, "tidelock lock: cannot start %s: %s\n", escape_terminal(command[0]), strerror(failed));
        return EXIT_FAILED;
    }
    while (!job.child.ended) {
        attach_stream_wait(stream, fd, stream->ttl_us / LEASE_PARTS_LOOK);
        pass_signals(&job.child, fd);
        if (job.child.stopped_by != 0)
            stop_too(&job);
        guard_lease(&job);
    }
    child_finish(&job.child);
    close(fd);
    return stream->lost || job.stage != JOB_RUNS ? EXIT_LOST : job.child.status;
}

/*
 * In good order; not when the server is silent, and the lease about to run out by itself.
 * Returns: false when the session was gone before.
 */
static bool close_session(struct client *client, const struct held *held, const struct attach_stream *stream)
{
    uint64_t left_us = attach_stream_left(stream);
    if (left_us < stream->ttl_us / LEASE_PARTS_TERM)
        return !stream->lost;
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "/_session/%s", held->session);
    buf_byte(&path, '\0');
    return client_request(client, "DELETE", path.data, SLICE_NONE, left_us) != 404;
}

/* Waits until the server notices the end of this process; no lock is requested before. */
static int await_stream(struct attach_stream *stream)
{
    if (attach_stream_await(stream))
        return 0;
    fprintf(stderr, "tidelock lock: the server does not attach the session");
    if (stream->lost)
        fprintf(stderr, ": it is lost\n");
    else if (stream->refused != 0)
        fprintf(stderr, ": the answer to GET /_session/{id}/_attach is %ld\n", stream->refused);
    else
        fprintf(stderr, ": no answer to GET /_session/{id}/_attach\n");
    return EXIT_FAILED;
}

/* The session is open; from here on its connection is watched. */
static int lock_and_run(struct client *client, const struct lock_options *o, struct held *held)
{
    struct attach_stream stream;
    attach_stream_init(&stream, client->url, held->session, o->ttl_us);
    bool ran = false;
    int status = await_stream(&stream);
    if (status == 0)
        status = take_lock(client, o, held);
    if (status == 0)
        status = begin_transaction(client, o, held);
    if (status == 0) {
        set_environment(o, held);
        status = end_transaction(client, o, held, run_command(client, &stream, o->command));
        ran = held->transaction == NULL; /* else the commit has shown whether the lock was held */
    }
    if (!close_session(client, held, &stream) && ran && status != EXIT_LOST) {
        fprintf(stderr, "tidelock lock: the session was lost before the command ended\n");
        status = EXIT_LOST;
    }
    attach_stream_deinit(&stream);
    return status;
}

int command_lock(int argc, char **argv)
{
    static const struct argp argp = {
        options, parse_lock_option, "INDEX[:PATH] -- COMMAND [ARGUMENT...]", doc, NULL, NULL, NULL};
    struct lock_options o = {.url = ARGUMENTS_URL_DEFAULT, .wait_us = 10 * TL_SECOND, .ttl_us = 30 * TL_SECOND};
    struct client client;
    struct held held = {0};
    arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &o);
    client_init_tidelock(&client, o.url);
    int status = open_session(&client, &o, &held);
    if (status == 0)
        status = lock_and_run(&client, &o, &held);
    client_deinit(&client);
    mem_free(held.session);
    mem_free(held.transaction);
    mem_free(o.command);
    return status;
}
