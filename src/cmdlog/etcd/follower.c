/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors of the log in etcd; README.md, "Following".
 *
 * The client's thread passes the messages of a watch to the cursor, undecoded. The reading thread
 * decodes and checks them, assembles parts, and restarts the watch after the last processed event
 * when it has ended.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/messages.h"

enum {
    QUEUE_BYTES = 16 << 20, /* undecoded messages, before the member is throttled */
    RESTART_US = 20000,     /* before an ended watch is restarted */
    FETCH_US = 1000000,     /* timeout to read parts before the cursor's start */
};

/* A message from the client's thread. */
struct watch_message {
    struct list link;
    char *bytes; /* NULL: the watch has ended */
    size_t len;
};

/* The state of one host's entries. */
struct host_stream {
    struct list link;
    struct slice name; /* allocated by mem_alloc */
    uint64_t version;  /* of its newest put; 0: none yet */
    uint64_t life;     /* of the entry being assembled, as all below */
    uint32_t parts, received;
    struct buf bytes;
};

struct etcd_cursor {
    struct cmdlog_cursor cursor;
    struct cmdlog_etcd *log;
    struct list link; /* cmdlog_etcd.cursors, under its lock */

    pthread_mutex_t lock; /* guards the following, up to `from`: */
    pthread_cond_t arrived;
    struct list messages;
    size_t queued_bytes; /* of `messages` */
    bool interrupted;
    bool closing, closed; /* the caller is done with it; so is the client's thread */
    bool watch_wanted;    /* a watch is to be started at `from` */
    cmdlog_position from;

    /* The client thread's. */
    struct grpc_call call;
    struct buf request;
    uint64_t retry;
    bool full;

    /* The reading thread's. */
    struct watch_message *current;
    struct slice events; /* the rest of current's events */
    struct list streams;
    struct host_stream *returned; /* whose bytes are lent to the caller until the next call */
    struct etcd_kv deferred;      /* waits for earlier parts to be read; version 0: none */
    cmdlog_position position;
    bool trimmed;
    bool damaged;
};

static struct etcd_cursor *cursor_of(struct cmdlog_cursor *base)
{
    return container_of(base, struct etcd_cursor, cursor);
}

/* --- On the client's thread --------------------------------------------------------------------------------------- */

static void enqueue(struct etcd_cursor *cursor, char *bytes, size_t len)
{
    struct watch_message *message = mem_zalloc(sizeof *message);
    message->bytes = bytes;
    message->len = len;
    pthread_mutex_lock(&cursor->lock);
    list_append(&cursor->messages, &message->link);
    cursor->queued_bytes += len;
    cursor->full = cursor->queued_bytes > QUEUE_BYTES;
    pthread_cond_signal(&cursor->arrived);
    pthread_mutex_unlock(&cursor->lock);
}

static void watch_received(struct grpc_call *call, struct buf *message)
{
    struct etcd_cursor *cursor = call->context;
    size_t len;
    if (!etcd_client_same_cluster(cursor->log->client, buf_as_slice(message))) {
        etcd_client_fail_lane(cursor->log->client, LANE_FOLLOW, "it is of another cluster");
        return;
    }
    char *bytes = buf_detach(message, &len);
    enqueue(cursor, bytes, len);
    if (cursor->full)
        channel_throttle(call, true);
}

static void watch_ended(struct grpc_call *call, int status, struct slice text)
{
    struct etcd_cursor *cursor = call->context;
    REQUIRE(call == &cursor->call && call->channel == NULL);
    if (status != GRPC_OK && status != CALL_LOST)
        etcd_client_set_error(cursor->log->client, "etcd says to a watch: %.*s (%d)", SLICE_ARG(text), status);
    if (status == GRPC_UNAVAILABLE)
        etcd_client_fail_lane(cursor->log->client, LANE_FOLLOW, "it is not available");
    cursor->retry = clock_boot_us() + RESTART_US;
    enqueue(cursor, NULL, 0);
}

static uint64_t begin_watch(struct etcd_cursor *cursor, uint64_t now)
{
    REQUIRE(cursor->watch_wanted && cursor->from > 0); /* from 0 a watch begins with the newest entry */
    struct cmdlog_etcd *log = cursor->log;
    if (now < cursor->retry)
        return cursor->retry;
    channel_drop(&cursor->call); /* of a watch that etcd has canceled within the call */
    buf_clear(&cursor->request);
    grpc_frame_begin(&cursor->request);
    etcd_put_watch(&cursor->request, log->logs, log->logs_end, cursor->from);
    grpc_frame_end(&cursor->request);
    cursor->call.request = buf_as_slice(&cursor->request);
    if (!etcd_client_call(log->client, LANE_FOLLOW, &cursor->call, now, &cursor->retry))
        return cursor->retry;
    cursor->watch_wanted = false;
    return UINT64_MAX;
}

static uint64_t run_follower(struct etcd_client_task *task, uint64_t now)
{
    struct cmdlog_etcd *log = container_of(task, struct cmdlog_etcd, follower_task);
    uint64_t next = UINT64_MAX;
    pthread_mutex_lock(&log->lock);
    list_for_each_safe(link, following, &log->cursors)
    {
        struct etcd_cursor *cursor = list_entry(link, struct etcd_cursor, link);
        pthread_mutex_lock(&cursor->lock);
        if (cursor->closing) {
            channel_drop(&cursor->call);
            list_remove(link);
            cursor->closed = true;
            pthread_cond_signal(&cursor->arrived);
            pthread_mutex_unlock(&cursor->lock);
            continue;
        }
        uint64_t again = cursor->watch_wanted ? begin_watch(cursor, now) : UINT64_MAX;
        bool full = cursor->queued_bytes > QUEUE_BYTES;
        pthread_mutex_unlock(&cursor->lock);
        if (cursor->call.channel != NULL && full != cursor->call.throttled)
            channel_throttle(&cursor->call, full);
        next = again < next ? again : next;
    }
    pthread_mutex_unlock(&log->lock);
    return next;
}

void follower__init(struct cmdlog_etcd *log)
{
    list_init(&log->cursors);
    log->follower_task.run = run_follower;
    list_append(&log->tasks, &log->follower_task.link);
}

/* --- On the reading thread: messages ------------------------------------------------------------------------------ */

static void free_message(struct watch_message *message)
{
    if (message == NULL)
        return;
    mem_free(message->bytes);
    mem_free(message);
}

static struct watch_message *dequeue(struct etcd_cursor *cursor, bool *ret_emptied)
{
    struct watch_message *message = NULL;
    pthread_mutex_lock(&cursor->lock);
    if (!list_empty(&cursor->messages)) {
        message = list_entry(cursor->messages.next, struct watch_message, link);
        list_remove(&message->link);
        INSIST(cursor->queued_bytes >= message->len);
        *ret_emptied = cursor->queued_bytes > QUEUE_BYTES && cursor->queued_bytes - message->len <= QUEUE_BYTES;
        cursor->queued_bytes -= message->len;
    }
    pthread_mutex_unlock(&cursor->lock);
    return message;
}

/* Requests a watch that starts after the last processed event. */
static void restart_watch(struct etcd_cursor *cursor)
{
    pthread_mutex_lock(&cursor->lock);
    cursor->from = cursor->position + 1;
    cursor->watch_wanted = true;
    pthread_mutex_unlock(&cursor->lock);
    etcd_client_wake(cursor->log->client);
}

/*
 * Takes the next message. Returns: 0: `events` may have some; CMDLOG_END; CMDLOG_TRIMMED;
 * TL_ERR_CORRUPT.
 */
static int open_message(struct etcd_cursor *cursor)
{
    bool emptied = false;
    struct watch_message *message = dequeue(cursor, &emptied);
    struct etcd_watch_reply watch;
    if (message == NULL)
        return CMDLOG_END;
    if (emptied)
        etcd_client_wake(cursor->log->client);
    free_message(cursor->current);
    cursor->current = message;
    cursor->events = SLICE_NONE;
    if (message->bytes == NULL) {
        restart_watch(cursor);
        return 0;
    }
    int r = etcd_read_watch(slice_make(message->bytes, message->len), &watch);
    if (r < 0)
        return r;
    cursor->events = watch.events;
    if (!watch.canceled)
        return 0;
    if (watch.compacted > 0)
        return CMDLOG_TRIMMED;
    etcd_client_set_error(cursor->log->client, "etcd ended a watch: %.*s", SLICE_ARG(watch.reason));
    restart_watch(cursor); /* which drops this call */
    return 0;
}

/* --- On the reading thread: entries ------------------------------------------------------------------------------- */

static struct host_stream *stream_of(struct etcd_cursor *cursor, struct slice name)
{
    list_for_each(link, &cursor->streams)
    {
        struct host_stream *stream = list_entry(link, struct host_stream, link);
        if (slice_equal(stream->name, name))
            return stream;
    }
    struct host_stream *stream = mem_zalloc(sizeof *stream);
    stream->name = mem_dup_slice(name);
    stream->bytes = BUF_INIT(BUF_UNLIMITED);
    list_append(&cursor->streams, &stream->link);
    return stream;
}

static void discard_parts(struct host_stream *stream)
{
    stream->parts = stream->received = 0;
    buf_deinit(&stream->bytes);
    stream->bytes = BUF_INIT(BUF_UNLIMITED);
}

/* Also logged, since a host that follows the log ends. */
static int report_damage(struct etcd_cursor *cursor, const struct etcd_kv *kv, const char *how)
{
    log_error("the log in etcd is damaged: the entry of %.*s at revision %lu %s", SLICE_ARG(kv->key),
              (unsigned long)kv->modified, how);
    etcd_client_set_error(cursor->log->client, "the log in etcd is damaged: the entry of %.*s at revision %lu %s",
                          SLICE_ARG(kv->key), (unsigned long)kv->modified, how);
    cursor->damaged = true;
    return tl_trace(TL_ERR_CORRUPT);
}

int follower__put_before(struct cmdlog_etcd *log, struct slice key, uint64_t revision, uint64_t until,
                         struct buf *reply, struct etcd_kv *ret_kv)
{
    struct buf request = BUF_INIT(BUF_UNLIMITED);
    int status;
    grpc_frame_begin(&request);
    etcd_put_range(&request, &(struct etcd_range){.key = key, .revision = revision - 1});
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_FOLLOW, ETCD_RANGE, buf_as_slice(&request), until, reply, &status);
    buf_deinit(&request);
    if (r == TL_ERR_IO && status == GRPC_OUT_OF_RANGE)
        return CMDLOG_TRIMMED;
    if (r != 0)
        return r == CMDLOG_UNREACHABLE ? CMDLOG_UNREACHABLE : tl_trace(TL_ERR_CORRUPT);
    struct slice rest = buf_as_slice(reply);
    r = etcd_take_kv(&rest, ret_kv);
    return r == 1 ? 0 : tl_trace(TL_ERR_CORRUPT);
}

/*
 * Reads the parts before an event that precede the cursor's start. Returns: as
 * follower__put_before().
 */
static int fetch_parts(struct etcd_cursor *cursor, struct host_stream *stream, const struct etcd_kv *kv,
                       const struct envelope *envelope)
{
    REQUIRE(envelope->part > 1 && stream->version == 0);
    uint64_t until = clock_boot_us() + FETCH_US, revision = kv->modified;
    struct buf *replies = mem_zalloc(envelope->part * sizeof *replies);
    struct slice *bytes = mem_zalloc(envelope->part * sizeof *bytes);
    int r = 0;
    for (uint32_t part = envelope->part - 1; r == 0 && part > 0; part--) {
        struct etcd_kv before = {0};
        struct envelope other = {0};
        replies[part] = BUF_INIT(BUF_UNLIMITED);
        r = follower__put_before(cursor->log, kv->key, revision, until, &replies[part], &before);
        if (r == 0)
            r = envelope_read(before.value, stream->name, &other, &bytes[part]);
        if (r == 0 && (other.life != envelope->life || other.part != part || other.parts != envelope->parts))
            r = tl_trace(TL_ERR_CORRUPT);
        revision = before.modified;
    }
    discard_parts(stream);
    for (uint32_t part = 1; r == 0 && part < envelope->part; part++) {
        buf_slice(&stream->bytes, bytes[part]);
        stream->received = part;
        stream->parts = envelope->parts;
        stream->life = envelope->life;
    }
    for (uint32_t part = 1; part < envelope->part; part++)
        buf_deinit(&replies[part]);
    mem_free(replies);
    mem_free(bytes);
    return r;
}

/*
 * Processes an event, the put of a host's log key.
 * Returns: 0 and an entry; CMDLOG_END: a part of one, or already processed; CMDLOG_UNREACHABLE:
 * earlier parts could not be read, to be retried; CMDLOG_TRIMMED; TL_ERR_CORRUPT.
 */
static int process_put(struct etcd_cursor *cursor, const struct etcd_kv *kv, struct cmdlog_entry *ret_entry)
{
    struct envelope envelope;
    struct slice bytes;
    if (kv->modified <= cursor->position)
        return CMDLOG_END;
    if (kv->deleted || !slice_starts_with(kv->key, cursor->log->logs))
        return report_damage(cursor, kv, "was deleted");
    struct host_stream *stream = stream_of(cursor, slice_from_offset(kv->key, cursor->log->logs.len));
    int r = envelope_read(kv->value, stream->name, &envelope, &bytes);
    if (r < 0)
        return report_damage(cursor, kv, r == TL_ERR_VERSION ? "is of a newer form" : "is not what was written");
    if (envelope.number != kv->version || (stream->version != 0 && kv->version != stream->version + 1))
        return report_damage(cursor, kv,
                             kv->version > stream->version + 1 ? "comes behind one that is missing" : "comes twice");
    bool continues =
        stream->parts == envelope.parts && stream->life == envelope.life && stream->received + 1 == envelope.part;
    if (envelope.part > 1 && !continues) {
        if (stream->version != 0)
            return report_damage(cursor, kv, "is a part whose beginning is missing");
        r = fetch_parts(cursor, stream, kv, &envelope);
        if (r < 0)
            return report_damage(cursor, kv, "is a part whose beginning is damaged");
        if (r != 0)
            return r;
    }
    stream->version = kv->version;
    cursor->position = kv->modified;
    if (envelope.part == 1)
        discard_parts(stream);
    if (envelope.part < envelope.parts || envelope.parts > 1) {
        buf_slice(&stream->bytes, bytes);
        stream->parts = envelope.parts;
        stream->received = envelope.part;
        stream->life = envelope.life;
        if (envelope.part < envelope.parts)
            return CMDLOG_END;
        bytes = buf_as_slice(&stream->bytes);
        cursor->returned = stream;
        stream->parts = stream->received = 0;
    }
    *ret_entry =
        (struct cmdlog_entry){kv->modified, bytes, stream->name, envelope.life, envelope.number, envelope.submitted};
    return 0;
}

int follower__next(struct cmdlog_cursor *base, struct cmdlog_entry *ret_entry)
{
    struct etcd_cursor *cursor = cursor_of(base);
    cmdlog_position before = cursor->position;
    int r = 0;
    if (cursor->returned != NULL)
        discard_parts(cursor->returned);
    cursor->returned = NULL;
    if (cursor->damaged)
        return tl_trace(TL_ERR_CORRUPT);
    while (r == 0 && !cursor->trimmed) {
        if (cursor->deferred.version == 0 && (r = etcd_take_event(&cursor->events, &cursor->deferred)) == 0) {
            cursor->deferred.version = 0;
            r = open_message(cursor);
            cursor->trimmed = r == CMDLOG_TRIMMED;
            continue;
        }
        if (r >= 0)
            r = process_put(cursor, &cursor->deferred, ret_entry);
        cursor->trimmed = r == CMDLOG_TRIMMED;
        if (r == CMDLOG_UNREACHABLE)
            return CMDLOG_END; /* the deferred event is processed by the next call */
        cursor->deferred.version = 0;
        if (r == 0)
            break;
        r = r == CMDLOG_END ? 0 : r;
    }
    if (cursor->position > before) {
        pthread_mutex_lock(&cursor->log->lock);
        cmdlog_etcd__observe(cursor->log, cursor->position);
        pthread_mutex_unlock(&cursor->log->lock);
    }
    ENSURE(r != 0 || cursor->trimmed || ret_entry->position > before); /* guarantee 1 */
    cursor->damaged = cursor->damaged || r < 0;
    return cursor->trimmed ? CMDLOG_TRIMMED : r;
}

int follower__await(struct cmdlog_cursor *base, uint64_t until)
{
    struct etcd_cursor *cursor = cursor_of(base);
    if (cursor->trimmed || cursor->damaged || cursor->deferred.version != 0 || cursor->events.len > 0)
        return 0;
    pthread_mutex_lock(&cursor->lock);
    while (list_empty(&cursor->messages) && !cursor->interrupted && clock_boot_us() < until)
        (void)clock_wait(&cursor->arrived, &cursor->lock, until);
    int r = list_empty(&cursor->messages) ? CMDLOG_END : 0;
    if (cursor->interrupted)
        r = CMDLOG_END;
    cursor->interrupted = false;
    pthread_mutex_unlock(&cursor->lock);
    return r;
}

void follower__interrupt(struct cmdlog_cursor *base)
{
    struct etcd_cursor *cursor = cursor_of(base);
    pthread_mutex_lock(&cursor->lock);
    cursor->interrupted = true;
    pthread_cond_signal(&cursor->arrived);
    pthread_mutex_unlock(&cursor->lock);
}

cmdlog_position follower__position(const struct cmdlog_cursor *base)
{
    return container_of(base, const struct etcd_cursor, cursor)->position;
}

/* --- Life cycle --------------------------------------------------------------------------------------------------- */

int follower__follow(struct cmdlog *base, cmdlog_position from, struct cmdlog_cursor **ret_cursor)
{
    REQUIRE(from > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct etcd_cursor *cursor = mem_zalloc(sizeof *cursor);
    cursor->cursor = (struct cmdlog_cursor){base->functions, base->shared};
    cursor->log = log;
    cursor->position = from - 1;
    cursor->request = BUF_INIT(BUF_UNLIMITED);
    cursor->call = (struct grpc_call){.path = ETCD_WATCH,
                                      .is_stream = true,
                                      .requires_leader = true,
                                      .deadline = UINT64_MAX,
                                      .context = cursor,
                                      .on_message = watch_received,
                                      .on_end = watch_ended};
    pthread_mutex_init(&cursor->lock, NULL);
    pthread_cond_init(&cursor->arrived, NULL);
    list_init(&cursor->messages);
    list_init(&cursor->streams);
    cursor->from = from;
    cursor->watch_wanted = true;
    pthread_mutex_lock(&log->lock);
    list_append(&log->cursors, &cursor->link);
    pthread_mutex_unlock(&log->lock);
    etcd_client_wake(log->client);
    *ret_cursor = &cursor->cursor;
    return 0;
}

void follower__unfollow(struct cmdlog_cursor *base)
{
    struct etcd_cursor *cursor = cursor_of(base);
    pthread_mutex_lock(&cursor->lock);
    REQUIRE(!cursor->closing);
    cursor->closing = true;
    pthread_mutex_unlock(&cursor->lock);
    etcd_client_wake(cursor->log->client);
    pthread_mutex_lock(&cursor->lock);
    while (!cursor->closed)
        pthread_cond_wait(&cursor->arrived, &cursor->lock);
    pthread_mutex_unlock(&cursor->lock);
    while (!list_empty(&cursor->messages)) {
        struct watch_message *message = list_entry(cursor->messages.next, struct watch_message, link);
        list_remove(&message->link);
        free_message(message);
    }
    while (!list_empty(&cursor->streams)) {
        struct host_stream *stream = list_entry(cursor->streams.next, struct host_stream, link);
        list_remove(&stream->link);
        mem_free((char *)(uintptr_t)stream->name.data);
        buf_deinit(&stream->bytes);
        mem_free(stream);
    }
    free_message(cursor->current);
    buf_deinit(&cursor->request);
    pthread_mutex_destroy(&cursor->lock);
    pthread_cond_destroy(&cursor->arrived);
    mem_free(cursor);
}
