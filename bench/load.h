/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the load client share: connections, the scenarios they run, and helpers to write requests.
 *
 * A scenario is a number of steps; each is one request that waits for its reply. The first steps run once a connection,
 * the others again and again.
 */
#ifndef TL_BENCH_LOAD_H
#define TL_BENCH_LOAD_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STEPS_MAX = 16,
    CAPTURES_MAX = 4,
    CAPTURE_BYTES_MAX = 256,
    REQUEST_BYTES_MAX = 4096,
};

/* What the command line says. */
struct load {
    int port;
    unsigned clients;
    double seconds;
    double warm;
    uint64_t ids;
    const char *keys;
    const char *index;
    const char *argument;
    char **values; /* lines of --values */
    size_t value_count;
    const struct scenario *scenario;
};

struct load_connection {
    const struct load *load;
    int fd;
    unsigned number;
    unsigned step;
    bool trying;        /* the step is one that must be tried again */
    bool measured;      /* the current iteration began inside the measured window */
    uint64_t iteration; /* rising, never reset: makes fresh keys */
    uint64_t done;      /* iterations inside the window */
    uint64_t rng;
    uint64_t started_ns; /* of the iteration */
    uint64_t step_ns;    /* of the step */
    uint64_t a, b;       /* two random numbers of the iteration */
    char capture[CAPTURES_MAX][CAPTURE_BYTES_MAX];
    char request[REQUEST_BYTES_MAX];
    size_t request_len; /* 0: nothing is sent, and nothing comes back: the connection idles from here on */
    size_t request_sent;
    char *reply;
    size_t reply_len;
    size_t reply_capacity;
};

enum verdict {
    GOES_ON,     /* with the next step */
    TRIES_AGAIN, /* the same step */
    STARTS_OVER, /* with a new iteration; the steps done so far are discarded */
    IS_WRONG,
};

struct reply {
    int status;       /* HTTP status; for Redis 200, or 500 for an error reply */
    const char *body; /* NUL-terminated */
    size_t len;
};

struct scenario {
    const char *name; /* NULL ends a list */
    const char *text;
    unsigned first_steps; /* steps run once a connection, before the loop */
    unsigned steps;       /* in all */
    bool redis;
    void (*write)(struct load_connection *c, unsigned step);
    enum verdict (*read)(struct load_connection *c, unsigned step, const struct reply *reply);
};

extern const struct scenario load_documents[];
extern const struct scenario load_locks[];
extern const struct scenario load_transactions[];
extern const struct scenario load_peers[];

/* Returns: a random number below `bound`. */
uint64_t load_draw(struct load_connection *c, uint64_t bound);
/* Writes a 400-byte document of a file, like those of the data set. */
void load_document(char *to, size_t room, uint64_t id, uint64_t salt);
/* Writes an HTTP request; body NULL: none. */
void load_http(struct load_connection *c, const char *method, const char *body, const char *path_format, ...)
    __attribute__((format(printf, 4, 5)));
/*
 * Copies the text between `before` and the next character of `ends` from a reply. Returns: false if
 * the reply has no `before`.
 */
bool load_capture(const struct reply *reply, const char *before, const char *ends, char *to);

static inline bool load_succeeded(const struct reply *reply)
{
    return reply->status / 100 == 2;
}

/* A reader for steps that only must succeed. */
enum verdict load_ok(struct load_connection *c, unsigned step, const struct reply *reply);

#endif
