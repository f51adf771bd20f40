/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors of the log in etcd; README.md, "Following".
 *
 * The client's thread passes the messages of a watch to the cursor, undecoded. The reading thread
 * decodes them, has entries assembled and checked (assembly.h), and restarts the watch after the last processed event
 * when it has ended.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmdlog/etcd/assembly.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/messages.h"

enum {
    QUEUE_BYTES = 16 << 20, /* undecoded messages, before the member is throttled */
    RESTART_US = 20000,     /* before an ended watch is restarted */
    FETCH_US = 1000000,     /* how long a call reads parts before the cursor's start */
};

/* A message from the client's thread. */
struct watch_message {
    struct list link;
    char *bytes; /* NULL: the watch has ended */
    size_t len;
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
    struct assembly assembly;
    uint64_t fetch_until;    /* boot clock: limit of the reading of earlier parts in this call */
    struct etcd_kv deferred; /* waits for earlier parts to be read; version 0: none */
    bool trimmed;
    bool damaged;
};

static struct etcd_cursor *cursor_of(struct cmdlog_cursor *base)
{
    return container_of(base, struct etcd_cursor, cursor);
}

/* --- On the client's thread --------------------------------------------------------------------------------------- */

static void enqueue_entry(struct etcd_cursor *cursor, char *bytes, size_t len)
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
    enqueue_entry(cursor, bytes, len);
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
    enqueue_entry(cursor, NULL, 0);
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

static struct watch_message *dequeue_entry(struct etcd_cursor *cursor, bool *ret_emptied)
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
    cursor->from = cursor->assembly.position + 1;
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
    struct watch_message *message = dequeue_entry(cursor, &emptied);
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

static int read_before(void *context, struct slice host, cmdlog_position before, struct buf *reply,
                       struct assembly_put *ret_put)
{
    struct etcd_cursor *cursor = context;
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    cmdlog_etcd__key(&key, cursor->log, "log", host);
    int r = follower__put_before(cursor->log, buf_as_slice(&key), before, cursor->fetch_until, reply, &kv);
    if (r == 0)
        *ret_put = (struct assembly_put){host, kv.modified, kv.version, kv.value};
    buf_deinit(&key);
    return r;
}

/*
 * Processes an event, the put of a host's log key.
 * Returns: 0 and an entry; CMDLOG_END: a part of one, or already processed; CMDLOG_UNREACHABLE:
 * not all earlier parts could be read yet, to be retried; CMDLOG_TRIMMED; TL_ERR_CORRUPT.
 */
static int process_put(struct etcd_cursor *cursor, const struct etcd_kv *kv, struct cmdlog_entry *ret_entry)
{
    const char *how = NULL;
    if (kv->modified <= cursor->assembly.position)
        return CMDLOG_END;
    if (kv->deleted || !slice_starts_with(kv->key, cursor->log->logs))
        return report_damage(cursor, kv, "was deleted");
    cursor->fetch_until = clock_boot_us() + FETCH_US;
    struct assembly_put put = {slice_from_offset(kv->key, cursor->log->logs.len), kv->modified, kv->version, kv->value};
    int r = assembly_take(&cursor->assembly, &put, ret_entry, &how);
    return r < 0 ? report_damage(cursor, kv, how) : r;
}

int follower__next(struct cmdlog_cursor *base, struct cmdlog_entry *ret_entry)
{
    struct etcd_cursor *cursor = cursor_of(base);
    cmdlog_position before = cursor->assembly.position;
    int r = 0;
    assembly_release(&cursor->assembly);
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
    if (cursor->assembly.position > before) {
        pthread_mutex_lock(&cursor->log->lock);
        cmdlog_etcd__observe(cursor->log, cursor->assembly.position);
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
    return container_of(base, const struct etcd_cursor, cursor)->assembly.position;
}

/* --- Life cycle --------------------------------------------------------------------------------------------------- */

int follower__follow(struct cmdlog *base, cmdlog_position from, struct cmdlog_cursor **ret_cursor)
{
    REQUIRE(from > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct etcd_cursor *cursor = mem_zalloc(sizeof *cursor);
    cursor->cursor = (struct cmdlog_cursor){base->functions, base->shared};
    cursor->log = log;
    assembly_init(&cursor->assembly, from - 1, read_before, cursor);
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
    assembly_deinit(&cursor->assembly);
    free_message(cursor->current);
    buf_deinit(&cursor->request);
    pthread_mutex_destroy(&cursor->lock);
    pthread_cond_destroy(&cursor->arrived);
    mem_free(cursor);
}
