/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response that keeps a session: that of GET /_session/{id}/_attach, which stays open.
 *
 * While it is open the session does not end, and each line that arrives renews its lease. When the
 * connection breaks the client attaches again at once: a server that was restarted has kept the
 * session, one that saw the connection break has ended it.
 */
#ifndef TL_CLI_ATTACH_STREAM_H
#define TL_CLI_ATTACH_STREAM_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct client;

/* A response that is open, or on its way. */
struct attach_stream_response {
    struct attach_stream *stream;
    CURL *curl;
    bool alive; /* a line has arrived */
};

struct attach_stream {
    CURLM *multi;
    struct attach_stream_response *now;
    struct attach_stream_response *former; /* before attach_stream_move(), until `now` has a line; NULL: none */
    char *server;                          /* where `now` is */
    const char *session;                   /* the caller's */
    uint64_t ttl_us;
    /* Times of a clock that runs while the host sleeps. */
    uint64_t alive_us;  /* not after the newest line was sent: the lease holds ttl from here */
    uint64_t newest_us; /* not after the newest line arrived; before the first: when it was asked for */
    uint64_t before_us; /* the same, of the newest line that the last look found, see on_bytes() */
    uint64_t looked_us; /* all bytes that had arrived by then have been read */
    bool attached;      /* the response of `now` is open, or on its way */
    bool failed;        /* the last attempt to attach had no answer */
    bool alive;         /* a line has arrived: the server knows whose end ends the session */
    bool lost;          /* the session has ended */
    long refused;       /* status of a reply before the first line that a repetition would not change; 0: none */
};

void attach_stream_init(struct attach_stream *stream, const char *url, const char *session, uint64_t ttl_us);
void attach_stream_deinit(struct attach_stream *stream);

/*
 * Waits for the first line, for half of the time to live at most. Until it has arrived the server
 * does not notice the end of this process, and the session lives to the end of its lease.
 * Returns: whether it has arrived; false at once if the session is `lost` or the request `refused`.
 */
bool attach_stream_await(struct attach_stream *stream);

/* Waits until the stream or `fd` has an event, or for `wait_us`; then processes the stream's events. */
void attach_stream_wait(struct attach_stream *stream, int fd, uint64_t wait_us);

/*
 * Attaches at another server of the same cluster. The attachment at the server before is kept until the new one has a
 * line, so the session is attached all the time. Does nothing where `url` is the current server.
 */
void attach_stream_move(struct attach_stream *stream, const char *url);

/* Ends the wait of another thread, or its next one. From any thread. */
void attach_stream_wake(struct attach_stream *stream);

/*
 * Renews by a request of its own, when no line has arrived, or none has been read. Assumes: `client` is idle.
 * Ensures: when the server answers within `wait_us`, attach_stream_left() counts from the question.
 * Returns: whether it has answered.
 */
bool attach_stream_renew(struct attach_stream *stream, struct client *client, uint64_t wait_us);

/* Returns: microseconds for which the lease certainly still holds; 0: none. */
uint64_t attach_stream_left(const struct attach_stream *stream);

#endif
