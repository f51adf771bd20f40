/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: a closed-loop load client for HTTP and Redis servers on loopback.
 *
 *     load --port P [--clients 64] [--seconds 5] [--warm 1] [--ids 1000000] [--keys PREFIX] SCENARIO
 *
 * One thread drives all connections by epoll, so that the client takes as little as it can of the two cores that it
 * shares with the server. Each connection runs the steps of its scenario one after the other and starts again; a
 * step is one request and waits for its reply. Prints one line of JSON: iterations a second, latency percentiles of
 * the whole iteration and of each step, the fewest and most iterations of any connection, and how often a reply was
 * not the expected one (a refused transfer that is retried counts as `retries`, not as an error).
 *
 * SCENARIO is one of the rows of `scenarios` below; `load --list` names them.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 20000,
    STEPS_MAX = 8,
    REQUEST_BYTES_MAX = 4096,
    REPLY_BYTES_MAX = 1 << 22,
    CAPTURE_BYTES_MAX = 256,
    BUCKET_BITS = 5, /* sub-buckets of a power of two: 3 % resolution */
};

/* --- Latency histogram --------------------------------------------------------------------------------- */

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

/* --- Connections ------------------------------------------------------------------------------------------ */

struct connection {
    int fd;
    unsigned number;
    unsigned step;
    bool measured;          /* the current iteration began inside the measured window */
    uint64_t iteration;     /* rising, never reset: makes fresh keys */
    uint64_t done;          /* iterations inside the window */
    uint64_t rng;
    uint64_t started_ns;    /* of the iteration */
    uint64_t step_ns;       /* of the step */
    uint64_t a, b;          /* two random numbers of the iteration */
    char capture[4][CAPTURE_BYTES_MAX];
    char request[REQUEST_BYTES_MAX];
    size_t request_len;
    size_t request_sent;
    char *reply;
    size_t reply_len;
    size_t reply_capacity;
};

enum verdict { GOES_ON, STARTS_OVER, IS_WRONG };

struct reply {
    int status;       /* HTTP status; for Redis 200, or 500 for an error reply */
    const char *body; /* NUL-terminated */
    size_t len;
};

struct scenario {
    const char *name;
    const char *text;
    unsigned first_steps; /* steps run once a connection, before the loop */
    unsigned steps;       /* in all */
    bool redis;
    void (*write)(struct connection *c, unsigned step);
    enum verdict (*read)(struct connection *c, unsigned step, const struct reply *reply);
};

static struct {
    int port;
    unsigned clients;
    double seconds;
    double warm;
    uint64_t ids;
    uint64_t iterations_max;
    const char *keys;
    const char *index;
    const char *argument;
    const struct scenario *scenario;
} arg = {.port = 9200, .clients = 64, .seconds = 5, .warm = 1, .ids = 1000000, .keys = "k", .index = "fs", .argument = ""};

/* Lines of --values. */
static struct {
    char **lines;
    size_t count;
} values;

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

static uint64_t draw(struct connection *c, uint64_t bound)
{
    c->rng ^= c->rng << 13;
    c->rng ^= c->rng >> 7;
    c->rng ^= c->rng << 17;
    return c->rng % bound;
}

/* A 400-byte file document, like those of the loads. */
static size_t document(char *to, size_t room, uint64_t id, uint64_t salt)
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
    return len + 2;
}

__attribute__((format(printf, 4, 5))) static void http(struct connection *c, const char *method, const char *body,
                                                       const char *path_format, ...)
{
    char path[1024];
    va_list arguments;
    va_start(arguments, path_format);
    vsnprintf(path, sizeof path, path_format, arguments);
    va_end(arguments);
    int n;
    if (body == NULL)
        n = snprintf(c->request, sizeof c->request, "%s %s HTTP/1.1\r\nHost: l\r\n\r\n", method, path);
    else
        n = snprintf(c->request, sizeof c->request,
                     "%s %s HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", method,
                     path, strlen(body), body);
    c->request_len = (size_t)n;
}

/* Copies the text between `before` and the next of `ends` out of a reply. */
static bool capture(const struct reply *reply, const char *before, const char *ends, char *to)
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

static bool succeeded(const struct reply *reply)
{
    return reply->status / 100 == 2;
}

static enum verdict ok(struct connection *c, unsigned step, const struct reply *reply)
{
    (void)c;
    (void)step;
    return succeeded(reply) ? GOES_ON : IS_WRONG;
}

/* --- Scenarios: documents -------------------------------------------------------------------------------------- */

static void put_write(struct connection *c, unsigned step)
{
    (void)step;
    char body[512];
    uint64_t id = draw(c, arg.ids);
    document(body, sizeof body, id, c->rng);
    http(c, "PUT", body, "/%s/_doc/f%07" PRIu64, arg.index, id);
}

static void get_write(struct connection *c, unsigned step)
{
    (void)step;
    http(c, "GET", NULL, "/%s/_doc/f%07" PRIu64 "%s", arg.index, draw(c, arg.ids), arg.argument);
}

static void root_write(struct connection *c, unsigned step)
{
    (void)step;
    http(c, "GET", NULL, "%s", arg.argument[0] ? arg.argument : "/");
}

/* Ten gets inside one query transaction. */
static void query_txn_write(struct connection *c, unsigned step)
{
    if (step == 0)
        http(c, "POST", "{\"mode\":\"query\"}", "/_transaction");
    else if (step == 6)
        http(c, "POST", NULL, "/_transaction/%s/_rollback", c->capture[0]);
    else
        http(c, "GET", NULL, "/%s/_doc/f%07" PRIu64 "?transaction=%s", arg.index, draw(c, arg.ids), c->capture[0]);
}

static enum verdict query_txn_read(struct connection *c, unsigned step, const struct reply *reply)
{
    if (!succeeded(reply))
        return IS_WRONG;
    if (step == 0 && !capture(reply, "\"transaction\":\"", "\"", c->capture[0]))
        return IS_WRONG;
    return GOES_ON;
}

static void script_write(struct connection *c, unsigned step)
{
    (void)step;
    http(c, "POST", "{\"script\":{\"source\":\"ctx._source.lock_count++\"},\"upsert\":{\"lock_count\":1}}",
         "/%s/_update/c%" PRIu64, arg.index, draw(c, arg.ids));
}

static void term_write(struct connection *c, unsigned step)
{
    (void)step;
    char body[1024];
    snprintf(body, sizeof body, "{\"query\":{\"term\":{\"name\":\"%s\"}}}", values.lines[draw(c, values.count)]);
    http(c, "POST", body, "/%s/_search", arg.index);
}

/* The seeds' document lock: create, delete. */
static void recipe_write(struct connection *c, unsigned step)
{
    http(c, step == 0 ? "PUT" : "DELETE", step == 0 ? "{\"process_id\":1}" : NULL, "/%s/_%s/%s-%u-%" PRIu64, arg.index,
         step == 0 ? "create" : "doc", arg.keys, c->number, c->iteration);
}

/* --- Scenarios: locks -------------------------------------------------------------------------------------------- */

static void lock_session_or(struct connection *c, unsigned step, const char *target, const char *wait)
{
    char body[1024];
    if (step == 0) {
        http(c, "POST", "{\"ttl\":\"10m\"}", "/_session");
    } else if (step == 1) {
        snprintf(body, sizeof body, "{\"session\":\"%s\",\"wait\":\"%s\",\"locks\":[{\"mode\":\"exclusive\",\"index\":\"%s\",%s}]}",
                 c->capture[0], wait, arg.index, target);
        http(c, "POST", body, "/_lock");
    } else {
        snprintf(body, sizeof body, "{\"session\":\"%s\"}", c->capture[0]);
        http(c, "POST", body, "/_unlock");
    }
}

static void lock_write(struct connection *c, unsigned step)
{
    char target[128];
    snprintf(target, sizeof target, "\"id\":\"%s-%u-%" PRIu64 "\"", arg.keys, c->number, c->iteration);
    lock_session_or(c, step, target, "0s");
}

static void lock_tree_write(struct connection *c, unsigned step)
{
    char target[192];
    snprintf(target, sizeof target, "\"path\":\"/clinton/projects/%s/d%u/e%" PRIu64 "/f%" PRIu64 "\"", arg.keys, c->number,
             c->iteration % 100, c->iteration);
    lock_session_or(c, step, target, "0s");
}

static void lock_one_write(struct connection *c, unsigned step)
{
    lock_session_or(c, step, "\"id\":\"one\"", "60s");
}

static enum verdict lock_read(struct connection *c, unsigned step, const struct reply *reply)
{
    if (!succeeded(reply))
        return IS_WRONG;
    if (step == 0)
        return capture(reply, "\"session\":\"", "\"", c->capture[0]) ? GOES_ON : IS_WRONG;
    return GOES_ON;
}

/* --- Scenarios: transfers between two of `--ids` accounts {"balance": n} with ids a0, a1, ... ------------------------ */

static void draw_accounts(struct connection *c)
{
    c->a = draw(c, arg.ids);
    c->b = (c->a + 1 + draw(c, arg.ids - 1)) % arg.ids;
}

static void transfer_write(struct connection *c, unsigned step)
{
    char body[1024];
    if (step == 0) {
        draw_accounts(c);
        snprintf(body, sizeof body, "{\"ids\":[\"a%" PRIu64 "\",\"a%" PRIu64 "\"]}", c->a, c->b);
        http(c, "POST", body, "/%s/_mget", arg.index);
        return;
    }
    long from = atol(c->capture[1]);
    long to = atol(c->capture[3]);
    snprintf(body, sizeof body,
             "{\"index\":{\"_id\":\"a%" PRIu64 "\",\"if_seq_no\":%s,\"if_primary_term\":1}}\n{\"balance\":%ld}\n"
             "{\"index\":{\"_id\":\"a%" PRIu64 "\",\"if_seq_no\":%s,\"if_primary_term\":1}}\n{\"balance\":%ld}\n",
             c->a, c->capture[0], from - 1, c->b, c->capture[2], to + 1);
    http(c, "POST", body, "/%s/_bulk?atomic=true", arg.index);
}

static enum verdict transfer_read(struct connection *c, unsigned step, const struct reply *reply)
{
    if (step == 1)
        return reply->status == 409 ? STARTS_OVER : succeeded(reply) ? GOES_ON : IS_WRONG;
    if (!succeeded(reply) || !capture(reply, "\"_seq_no\":", ",}", c->capture[0]) ||
        !capture(reply, "\"balance\":", ",}", c->capture[1]))
        return IS_WRONG;
    struct reply second = {200, strstr(reply->body, "\"balance\":") + 1, 0};
    return capture(&second, "\"_seq_no\":", ",}", c->capture[2]) && capture(&second, "\"balance\":", ",}", c->capture[3])
               ? GOES_ON
               : IS_WRONG;
}

/* begin, 2 gets, 2 puts, commit */
static void interactive_write(struct connection *c, unsigned step)
{
    char body[64];
    switch (step) {
    case 0:
        draw_accounts(c);
        http(c, "POST", "{}", "/_transaction");
        break;
    case 1:
    case 2:
        http(c, "GET", NULL, "/%s/_doc/a%" PRIu64 "?transaction=%s", arg.index, step == 1 ? c->a : c->b, c->capture[0]);
        break;
    case 3:
    case 4:
        snprintf(body, sizeof body, "{\"balance\":%ld}", atol(c->capture[step - 2]) + (step == 3 ? -1 : 1));
        http(c, "PUT", body, "/%s/_doc/a%" PRIu64 "?transaction=%s", arg.index, step == 3 ? c->a : c->b, c->capture[0]);
        break;
    default:
        http(c, "POST", NULL, "/_transaction/%s/_commit", c->capture[0]);
    }
}

static enum verdict interactive_read(struct connection *c, unsigned step, const struct reply *reply)
{
    if (reply->status == 409)
        return STARTS_OVER;
    if (!succeeded(reply))
        return IS_WRONG;
    if (step == 0)
        return capture(reply, "\"transaction\":\"", "\"", c->capture[0]) ? GOES_ON : IS_WRONG;
    if (step <= 2)
        return capture(reply, "\"balance\":", ",}", c->capture[step]) ? GOES_ON : IS_WRONG;
    return GOES_ON;
}

/* --- Scenarios: Redis ------------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void redis_argument(struct connection *c, size_t count, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (count > 0)
        c->request_len = (size_t)snprintf(c->request, sizeof c->request, "*%zu\r\n", count);
    c->request_len += (size_t)snprintf(c->request + c->request_len, sizeof c->request - c->request_len, "$%d\r\n%s\r\n", len,
                                       text);
}

static void redis_put_write(struct connection *c, unsigned step)
{
    (void)step;
    char body[512];
    uint64_t id = draw(c, arg.ids);
    document(body, sizeof body, id, c->rng);
    redis_argument(c, 3, "SET");
    redis_argument(c, 0, "f%07" PRIu64, id);
    redis_argument(c, 0, "%s", body);
}

static void redis_get_write(struct connection *c, unsigned step)
{
    (void)step;
    redis_argument(c, 2, "GET");
    redis_argument(c, 0, "f%07" PRIu64, draw(c, arg.ids));
}

static void redis_lock_write(struct connection *c, unsigned step)
{
    if (step == 0) {
        redis_argument(c, 6, "SET");
        redis_argument(c, 0, "%s-%u-%" PRIu64, arg.keys, c->number, c->iteration);
        redis_argument(c, 0, "owner-%u", c->number);
        redis_argument(c, 0, "NX");
        redis_argument(c, 0, "PX");
        redis_argument(c, 0, "30000");
    } else {
        redis_argument(c, 5, "EVAL");
        redis_argument(c, 0,
                       "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end");
        redis_argument(c, 0, "1");
        redis_argument(c, 0, "%s-%u-%" PRIu64, arg.keys, c->number, c->iteration);
        redis_argument(c, 0, "owner-%u", c->number);
    }
}

/* A token in a list: BLPOP waits in order; the first connection puts it there. */
static void redis_one_write(struct connection *c, unsigned step)
{
    if (step == 0 && c->number == 0) {
        redis_argument(c, 3, "RPUSH");
        redis_argument(c, 0, "%s", arg.keys);
        redis_argument(c, 0, "token");
    } else if (step == 0) {
        redis_argument(c, 1, "PING");
    } else if (step == 1) {
        redis_argument(c, 3, "BLPOP");
        redis_argument(c, 0, "%s", arg.keys);
        redis_argument(c, 0, "60");
    } else {
        redis_argument(c, 3, "RPUSH");
        redis_argument(c, 0, "%s", arg.keys);
        redis_argument(c, 0, "token");
    }
}

static const struct scenario scenarios[] = {
    {"root", "GET of --argument PATH, / by default", 0, 1, false, root_write, ok},
    {"put", "durable put of 400 bytes at a random id", 0, 1, false, put_write, ok},
    {"get", "get of a random id; --argument '?timestamp=T'", 0, 1, false, get_write, ok},
    {"query-txn", "begin a query transaction, 5 gets, end it", 0, 7, false, query_txn_write, query_txn_read},
    {"script", "_update with ctx._source.lock_count++", 0, 1, false, script_write, ok},
    {"term", "term query on the field name; --values FILE names the terms", 0, 1, false, term_write, ok},
    {"recipe", "the seeds' document lock: _create, DELETE", 0, 2, false, recipe_write, ok},
    {"lock", "lock and unlock a document of one's own", 1, 3, false, lock_write, lock_read},
    {"lock-tree", "lock and unlock a subtree six levels deep", 1, 3, false, lock_tree_write, lock_read},
    {"lock-one", "lock and unlock one document, waiting in order", 1, 3, false, lock_one_write, lock_read},
    {"transfer", "mget, then _bulk?atomic=true with if_seq_no", 0, 2, false, transfer_write, transfer_read},
    {"interactive", "begin, 2 gets, 2 puts, commit", 0, 6, false, interactive_write, interactive_read},
    {"redis-put", "SET", 0, 1, true, redis_put_write, ok},
    {"redis-get", "GET", 0, 1, true, redis_get_write, ok},
    {"redis-lock", "SET NX PX, then compare and delete in Lua", 0, 2, true, redis_lock_write, ok},
    {"redis-one", "BLPOP of one token, RPUSH", 1, 3, true, redis_one_write, ok},
};

/* --- Replies ------------------------------------------------------------------------------------------------------------ */

/* Returns: the bytes of the first whole HTTP reply in the buffer, 0 while it is incomplete. */
static size_t http_frame(struct connection *c, struct reply *ret)
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

static size_t redis_frame(struct connection *c, struct reply *ret)
{
    size_t len = redis_element(c->reply, c->reply + c->reply_len);
    if (len > 0)
        *ret = (struct reply){c->reply[0] == '-' ? 500 : 200, c->reply, len};
    return len;
}

/* --- The loop ------------------------------------------------------------------------------------------------------------- */

static void send_rest(struct connection *c)
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

static void begin_step(struct connection *c)
{
    c->step_ns = now_ns();
    if (c->step == arg.scenario->first_steps) {
        c->started_ns = c->step_ns;
        c->measured = c->step_ns >= result.window_begins;
    }
    arg.scenario->write(c, c->step);
    c->request_sent = 0;
    send_rest(c);
}

static void end_iteration(struct connection *c, uint64_t at)
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

static void handle_reply(struct connection *c, const struct reply *reply)
{
    uint64_t at = now_ns();
    if (c->measured && at <= result.window_ends && c->step >= arg.scenario->first_steps)
        histogram_add(&result.steps[c->step], at - c->step_ns);
    switch (arg.scenario->read(c, c->step, reply)) {
    case GOES_ON:
        c->step++;
        break;
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

static void receive(struct connection *c)
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

static void open_connection(struct connection *c, unsigned number, int epoll)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)arg.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
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

static void run(struct connection *connections, int epoll)
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

static void report(const struct connection *connections)
{
    uint64_t fewest = UINT64_MAX;
    uint64_t most = 0;
    for (unsigned i = 0; i < arg.clients; i++) {
        fewest = connections[i].done < fewest ? connections[i].done : fewest;
        most = connections[i].done > most ? connections[i].done : most;
    }
    printf("{\"scenario\":\"%s\",\"clients\":%u,\"ops_per_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,"
           "\"errors\":%" PRIu64 ",\"retries\":%" PRIu64 ",\"client_min\":%" PRIu64 ",\"client_max\":%" PRIu64 ",\"steps\":[",
           arg.scenario->name, arg.clients, (double)result.all.count / arg.seconds, histogram_us(&result.all, .5),
           histogram_us(&result.all, .99), (double)result.all.max / 1000, result.errors, result.retries, fewest, most);
    for (unsigned s = arg.scenario->first_steps; s < arg.scenario->steps; s++)
        printf("%s{\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}", s > arg.scenario->first_steps ? "," : "",
               histogram_us(&result.steps[s], .5), histogram_us(&result.steps[s], .99), (double)result.steps[s].max / 1000);
    printf("]}\n");
    if (result.errors > 0)
        fprintf(stderr, "load: first unexpected reply: %s\n", result.first_error);
}

/* --- Command line ------------------------------------------------------------------------------------------------------------ */

static void read_values(const char *file)
{
    FILE *in = fopen(file, "r");
    char *line = NULL;
    size_t room = 0;
    if (in == NULL)
        die(file);
    for (ssize_t len; (len = getline(&line, &room, in)) > 0;) {
        line[len - 1] = '\0';
        values.lines = realloc(values.lines, (values.count + 1) * sizeof *values.lines);
        values.lines[values.count++] = strdup(line);
    }
    free(line);
    fclose(in);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case 'p':
        arg.port = atoi(text);
        break;
    case 'c':
        arg.clients = (unsigned)atoi(text);
        if (arg.clients < 1 || arg.clients > CLIENTS_MAX)
            argp_error(state, "--clients: 1 to %d", CLIENTS_MAX);
        break;
    case 's':
        arg.seconds = atof(text);
        break;
    case 'w':
        arg.warm = atof(text);
        break;
    case 'n':
        arg.ids = strtoull(text, NULL, 10);
        break;
    case 'k':
        arg.keys = text;
        break;
    case 'i':
        arg.index = text;
        break;
    case 'a':
        arg.argument = text;
        break;
    case 'v':
        read_values(text);
        break;
    case 'l':
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
            printf("%-12s %s\n", scenarios[i].name, scenarios[i].text);
        exit(0);
    case ARGP_KEY_ARG:
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
            if (strcmp(scenarios[i].name, text) == 0)
                arg.scenario = &scenarios[i];
        if (arg.scenario == NULL)
            argp_error(state, "no scenario '%s'; --list names them", text);
        break;
    case ARGP_KEY_END:
        if (arg.scenario == NULL)
            argp_usage(state);
        if (arg.scenario->write == term_write && values.count == 0)
            argp_error(state, "term needs --values FILE, one term a line");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
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
    static const struct argp argp = {options, parse, "SCENARIO", "A closed-loop load client for servers on loopback.", NULL,
                                     NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);

    int epoll = epoll_create1(0);
    struct connection *connections = calloc(arg.clients, sizeof *connections);
    if (epoll < 0 || connections == NULL)
        die("start");
    for (unsigned i = 0; i < arg.clients; i++)
        open_connection(&connections[i], i, epoll);
    run(connections, epoll);
    report(connections);
    return result.errors > 0;
}
