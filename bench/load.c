/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: a closed-loop load client for HTTP and Redis servers on loopback.
 *
 *     load --port P [--clients 64] [--seconds 5] [--warm 1] [--ids 1000000] [--keys PREFIX] SCENARIO
 *
 * One thread drives all connections by epoll, so that the client takes as little as possible of the
 * two cores that it shares with the server. Each connection runs the steps of its scenario one
 * after the other and starts again; a step is one request and its reply. Prints one line of JSON:
 * iterations a second, latency percentiles of the whole iteration and of each step, the fewest and
 * most iterations of any connection, and the number of unexpected replies. A step that is tried
 * again, such as a refused transfer, counts as `retries`, not as an error.
 *
 * SCENARIO is one of load_documents.c, load_locks.c, load_transactions.c, load_peers.c; `load --list` names them.
 */
#include "load.h"

#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 20000,
    REPLY_BYTES_MAX = 1 << 22,
    BUCKET_BITS = 5, /* sub-buckets of a power of two: 3 % resolution */
};

/* --- Latency histogram -------------------------------------------------------------------------------------------- */

struct histogram {
    uint64_t buckets[60 << BUCKET_BITS];
    uint64_t count;
    uint64_t max;
};

static size_t bucket_of(uint64_t ns)
{
    if (ns < (1u << BUCKET_BITS))
        return ns;
    int exponent = 63 - __builtin_clzll(ns);
    return ((size_t)(exponent - BUCKET_BITS + 1) << BUCKET_BITS) +
           ((ns >> (exponent - BUCKET_BITS)) & ((1u << BUCKET_BITS) - 1));
}

static double bucket_us(size_t bucket)
{
    if (bucket < (1u << BUCKET_BITS))
        return (double)bucket / 1000;
    int shift = (int)(bucket >> BUCKET_BITS) - 1;
    uint64_t low = (((uint64_t)1 << BUCKET_BITS) + (bucket & ((1u << BUCKET_BITS) - 1))) << shift;
    return ((double)low + (double)((uint64_t)1 << shift) / 2) / 1000;
}

static void histogram_add(struct histogram *h, uint64_t ns)
{
    h->buckets[bucket_of(ns)]++;
    h->count++;
    if (ns > h->max)
        h->max = ns;
}

static double histogram_us(const struct histogram *h, double quantile)
{
    uint64_t rank = (uint64_t)(quantile * (double)(h->count ? h->count - 1 : 0));
    uint64_t seen = 0;
    for (size_t i = 0; i < sizeof h->buckets / sizeof *h->buckets; i++) {
        seen += h->buckets[i];
        if (seen > rank)
            return bucket_us(i);
    }
    return 0;
}

static const struct scenario *const lists[] = {load_documents, load_locks, load_transactions, load_peers};

static struct load arg = {
    .port = 9200, .clients = 64, .seconds = 5, .warm = 1, .ids = 1000000, .keys = "k", .index = "fs", .argument = ""};

static struct {
    struct histogram all;
    struct histogram steps[STEPS_MAX];
    uint64_t errors;
    uint64_t retries;
    uint64_t window_begins;
    uint64_t window_ends;
    char first_error[512];
} result;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(2);
}

uint64_t load_draw(struct load_connection *c, uint64_t bound)
{
    c->rng ^= c->rng << 13;
    c->rng ^= c->rng >> 7;
    c->rng ^= c->rng << 17;
    return c->rng % bound;
}

void load_document(char *to, size_t room, uint64_t id, uint64_t salt)
{
    int n = snprintf(to, room,
                     "{\"name\":\"f%07" PRIu64 ".dat\",\"path\":\"/put/d%03" PRIu64 "/e%03" PRIu64 "/f%07" PRIu64
                     ".dat\",\"size\":%" PRIu64 ",\"mtime\":\"2026-11-20T10:%02" PRIu64 ":%02" PRIu64
                     "Z\",\"mode\":\"0644\",\"type\":\"file\",\"owner\":\"root\",\"note\":\"",
                     id, id % 997, id % 89, id, salt % 1000000, salt % 60, salt / 60 % 60);
    size_t len = (size_t)n;
    for (; len < 398; len++) {
        salt = salt * 6364136223846793005u + 1442695040888963407u;
        to[len] = "0123456789abcdef"[salt >> 60];
    }
    memcpy(to + len, "\"}", 3);
}

void load_http(struct load_connection *c, const char *method, const char *body, const char *path_format, ...)
{
    char path[1024];
    va_list arguments;
    va_start(arguments, path_format);
    vsnprintf(path, sizeof path, path_format, arguments);
    va_end(arguments);
    int n;
    if (body == NULL)
        n = snprintf(c->request, sizeof c->request, "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path);
    else
        n = snprintf(
            c->request, sizeof c->request,
            "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            method, path, strlen(body), body);
    c->request_len = (size_t)n;
}

bool load_capture(const struct reply *reply, const char *before, const char *ends, char *to)
{
    const char *from = strstr(reply->body, before);
    if (from == NULL)
        return false;
    from += strlen(before);
    size_t len = strcspn(from, ends);
    if (len >= CAPTURE_BYTES_MAX)
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

enum verdict load_ok(struct load_connection *c, unsigned step, const struct reply *reply)
{
    (void)c;
    (void)step;
    return load_succeeded(reply) ? GOES_ON : IS_WRONG;
}

/* --- Replies ------------------------------------------------------------------------------------------------------ */

/* Returns: the bytes of the first whole HTTP reply in the buffer, 0 while it is incomplete. */
static size_t http_frame(struct load_connection *c, struct reply *ret)
{
    char *end = strstr(c->reply, "\r\n\r\n");
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - c->reply) + 4;
    size_t length = 0;
    *end = '\0';
    const char *field = strcasestr(c->reply, "\r\ncontent-length:");
    if (field != NULL)
        length = strtoul(field + 17, NULL, 10);
    *end = '\r';
    if (c->reply_len < head + length)
        return 0;
    *ret = (struct reply){atoi(c->reply + 9), c->reply + head, length};
    return head + length;
}

/* The same for one Redis reply, arrays of bulk strings included. */
static size_t redis_element(const char *from, const char *end)
{
    const char *line = memchr(from, '\n', (size_t)(end - from));
    if (line == NULL)
        return 0;
    size_t used = (size_t)(line - from) + 1;
    long n = strtol(from + 1, NULL, 10);
    if (*from == '$' && n >= 0)
        return (size_t)(end - from) < used + (size_t)n + 2 ? 0 : used + (size_t)n + 2;
    for (long i = 0; *from == '*' && i < n; i++) {
        size_t element = redis_element(from + used, end);
        if (element == 0)
            return 0;
        used += element;
    }
    return used;
}

static size_t redis_frame(struct load_connection *c, struct reply *ret)
{
    size_t len = redis_element(c->reply, c->reply + c->reply_len);
    if (len > 0)
        *ret = (struct reply){c->reply[0] == '-' ? 500 : 200, c->reply, len};
    return len;
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

static void send_rest(struct load_connection *c)
{
    while (c->request_sent < c->request_len) {
        ssize_t n = write(c->fd, c->request + c->request_sent, c->request_len - c->request_sent);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue; /* a request is far smaller than the socket's buffer */
        if (n < 0)
            die("write");
        c->request_sent += (size_t)n;
    }
}

static void begin_step(struct load_connection *c)
{
    c->step_ns = now_ns();
    if (c->step == arg.scenario->first_steps && !c->trying) {
        c->started_ns = c->step_ns;
        c->measured = c->step_ns >= result.window_begins;
    }
    c->request_len = 0;
    arg.scenario->write(c, c->step);
    c->request_sent = 0;
    send_rest(c); /* nothing, when the connection idles */
}

static void end_iteration(struct load_connection *c, uint64_t at)
{
    if (c->measured && at <= result.window_ends) {
        histogram_add(&result.all, at - c->started_ns);
        c->done++;
    }
    c->iteration++;
    c->step = arg.scenario->first_steps;
}

static void note_error(const struct reply *reply)
{
    if (result.errors++ == 0)
        snprintf(result.first_error, sizeof result.first_error, "%d %.400s", reply->status, reply->body);
}

static void handle_reply(struct load_connection *c, const struct reply *reply)
{
    uint64_t at = now_ns();
    if (c->measured && at <= result.window_ends && c->step >= arg.scenario->first_steps)
        histogram_add(&result.steps[c->step], at - c->step_ns);
    enum verdict verdict = arg.scenario->read(c, c->step, reply);
    c->trying = verdict == TRIES_AGAIN;
    switch (verdict) {
    case GOES_ON: c->step++; break;
    case TRIES_AGAIN: result.retries += c->measured; break;
    case STARTS_OVER:
        result.retries += c->measured;
        c->step = arg.scenario->first_steps;
        break;
    case IS_WRONG:
        note_error(reply);
        if (c->step < arg.scenario->first_steps)
            die(result.first_error);
        c->step = arg.scenario->steps;
        c->measured = false;
        break;
    }
    if (c->step == arg.scenario->steps)
        end_iteration(c, at);
    begin_step(c);
}

static void receive(struct load_connection *c)
{
    if (c->reply_capacity - c->reply_len < 65536) {
        c->reply_capacity = c->reply_capacity ? c->reply_capacity * 2 : 131072;
        if (c->reply_capacity > REPLY_BYTES_MAX)
            die("reply too long");
        c->reply = realloc(c->reply, c->reply_capacity);
    }
    ssize_t n = read(c->fd, c->reply + c->reply_len, c->reply_capacity - c->reply_len - 1);
    if (n == 0)
        die("server closed the connection");
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return;
        die("read");
    }
    c->reply_len += (size_t)n;
    c->reply[c->reply_len] = '\0';
    struct reply reply;
    size_t used = arg.scenario->redis ? redis_frame(c, &reply) : http_frame(c, &reply);
    if (used == 0)
        return;
    c->reply_len = 0; /* one request is in flight, so one reply is all there is */
    handle_reply(c, &reply);
}

static void open_connection(struct load_connection *c, unsigned number, int epoll)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)arg.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    c->load = &arg;
    c->number = number;
    c->rng = 0x9e3779b97f4a7c15u * (number + 1) ^ (uint64_t)getpid() << 20;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        die("epoll_ctl");
}

static void run(struct load_connection *connections, int epoll)
{
    uint64_t begin = now_ns();
    result.window_begins = begin + (uint64_t)(arg.warm * 1e9);
    result.window_ends = result.window_begins + (uint64_t)(arg.seconds * 1e9);
    for (unsigned i = 0; i < arg.clients; i++)
        begin_step(&connections[i]);
    struct epoll_event events[256];
    while (now_ns() < result.window_ends) {
        int n = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < n; i++)
            receive(events[i].data.ptr);
    }
}

static void report(const struct load_connection *connections)
{
    uint64_t fewest = UINT64_MAX;
    uint64_t most = 0;
    for (unsigned i = 0; i < arg.clients; i++) {
        fewest = connections[i].done < fewest ? connections[i].done : fewest;
        most = connections[i].done > most ? connections[i].done : most;
    }
    printf("{\"scenario\":\"%s\",\"clients\":%u,\"ops_per_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,"
           "\"errors\":%" PRIu64 ",\"retries\":%" PRIu64 ",\"client_min\":%" PRIu64 ",\"client_max\":%" PRIu64
           ",\"steps\":[",
           arg.scenario->name, arg.clients, (double)result.all.count / arg.seconds, histogram_us(&result.all, .5),
           histogram_us(&result.all, .99), (double)result.all.max / 1000, result.errors, result.retries, fewest, most);
    for (unsigned s = arg.scenario->first_steps; s < arg.scenario->steps; s++)
        printf("%s{\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}", s > arg.scenario->first_steps ? "," : "",
               histogram_us(&result.steps[s], .5), histogram_us(&result.steps[s], .99),
               (double)result.steps[s].max / 1000);
    printf("]}\n");
    if (result.errors > 0)
        fprintf(stderr, "load: first unexpected reply: %s\n", result.first_error);
}

/* --- Command line ------------------------------------------------------------------------------------------------- */

static void read_values(const char *file)
{
    FILE *in = fopen(file, "r");
    char *line = NULL;
    size_t room = 0;
    if (in == NULL)
        die(file);
    for (ssize_t len; (len = getline(&line, &room, in)) > 0;) {
        line[len - 1] = '\0';
        arg.values = realloc(arg.values, (arg.value_count + 1) * sizeof *arg.values);
        arg.values[arg.value_count++] = strdup(line);
    }
    free(line);
    fclose(in);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case 'p': arg.port = atoi(text); break;
    case 'c':
        arg.clients = (unsigned)atoi(text);
        if (arg.clients < 1 || arg.clients > CLIENTS_MAX)
            argp_error(state, "--clients: 1 to %d", CLIENTS_MAX);
        break;
    case 's': arg.seconds = atof(text); break;
    case 'w': arg.warm = atof(text); break;
    case 'n': arg.ids = strtoull(text, NULL, 10); break;
    case 'k': arg.keys = text; break;
    case 'i': arg.index = text; break;
    case 'a': arg.argument = text; break;
    case 'v': read_values(text); break;
    case 'l':
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            for (const struct scenario *s = lists[i]; s->name != NULL; s++)
                printf("%-15s %s\n", s->name, s->text);
        exit(0);
    case ARGP_KEY_ARG:
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            for (const struct scenario *s = lists[i]; s->name != NULL; s++)
                if (strcmp(s->name, text) == 0)
                    arg.scenario = s;
        if (arg.scenario == NULL)
            argp_error(state, "no scenario '%s'; --list names them", text);
        break;
    case ARGP_KEY_END:
        if (arg.scenario == NULL)
            argp_usage(state);
        if (strcmp(arg.scenario->name, "term") == 0 && arg.value_count == 0)
            argp_error(state, "term needs --values FILE, one term a line");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"port", 'p', "PORT", 0, "of the server on 127.0.0.1", 0},
        {"clients", 'c', "N", 0, "connections, each with one request in flight", 0},
        {"seconds", 's', "S", 0, "length of the measured window", 0},
        {"warm", 'w', "S", 0, "time before it", 0},
        {"ids", 'n', "N", 0, "random ids are below this", 0},
        {"keys", 'k', "PREFIX", 0, "prefix of fresh keys", 0},
        {"index", 'i', "NAME", 0, "index to use", 0},
        {"argument", 'a', "TEXT", 0, "of the scenario", 0},
        {"values", 'v', "FILE", 0, "terms to ask for, one a line", 0},
        {"list", 'l', NULL, 0, "list the scenarios", 0},
        {0},
    };
    static const struct argp argp = {options, parse, "SCENARIO", "A closed-loop load client for servers on loopback.",
                                     NULL,    NULL,  NULL};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    int epoll = epoll_create1(0);
    struct load_connection *connections = calloc(arg.clients, sizeof *connections);
    if (epoll < 0 || connections == NULL)
        die("start");
    for (unsigned i = 0; i < arg.clients; i++)
        open_connection(&connections[i], i, epoll);
    run(connections, epoll);
    report(connections);
    return result.errors > 0;
}
