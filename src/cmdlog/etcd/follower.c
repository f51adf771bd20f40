/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following etcd's log; README.md, "Following".
 *
 * The thread hands whole messages of a watch to the cursor, as bytes. All else is done by who follows: taking them apart, checking them, putting parts
 * together, and beginning the watch anew behind what was given, when it has ended.
 */
#include "base/check.h"
#include "base/clock.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/messages.h"

enum {
    QUEUE_BYTES = 16 << 20, /* that wait for who follows, before the member is told to wait */
    PAUSE_US = 20000,       /* before a watch that ended is begun again */
    FETCH_US = 1000000,     /* for a part that came before the beginning, in one call */
};

/* What the thread hands over. */
struct message {
    struct list link;
    char *bytes; /* NULL: the watch ended */
    size_t len;
};

/* What is known of a host whose entries came. */
struct source {
    struct list link;
    struct slice name; /* mem_free's */
    uint64_t version;  /* of its newest put */
    uint64_t life;     /* of the entry whose parts come, with how many there are of it, and all of them so far */
    uint32_t parts, got;
    struct buf bytes;
};

struct cursor {
    struct cmdlog_cursor cursor;
    struct cmdlog_etcd *log;
    struct list link; /* cmdlog_etcd.cursors, under its lock */

    pthread_mutex_t lock; /* of these: */
    pthread_cond_t arrived;
    struct list messages;
    size_t queued; /* bytes */
    bool interrupted;
    bool leaving, gone; /* the caller is done with it; so is the thread */
    bool wanted;        /* a watch is to be begun, from `from` on */
    cmdlog_position from;

    /* The thread's. */
    struct call call;
    struct buf request;
    uint64_t retry;
    bool full;

    /* Of who follows. */
    struct message *current;
    struct slice events; /* what is left of it */
    struct list sources;
    struct source *given; /* whose bytes are the caller's until the next call */
    struct etcd_kv held;  /* an event that waits for parts before it; held.version 0: none */
    cmdlog_position passed;
    bool trimmed;
    bool damaged;
};

static struct cursor *cursor_of(struct cmdlog_cursor *base)
{
    return container_of(base, struct cursor, cursor);
}

/* --- On the thread ---------------------------------------------------------------------------------------------------- */

static void hand_over(struct cursor *cursor, char *bytes, size_t len)
{
    struct message *message = mem_zalloc(sizeof *message);
    message->bytes = bytes;
    message->len = len;
    pthread_mutex_lock(&cursor->lock);
    list_append(&cursor->messages, &message->link);
    cursor->queued += len;
    cursor->full = cursor->queued > QUEUE_BYTES;
    pthread_cond_signal(&cursor->arrived);
    pthread_mutex_unlock(&cursor->lock);
}

static void watch_told(struct call *call, struct buf *message)
{
    struct cursor *cursor = call->context;
    size_t len;
    if (!client_knows(cursor->log->client, buf_as_slice(message))) {
        client_fail(cursor->log->client, WAY_FOLLOW, "it is of another cluster");
        return;
    }
    char *bytes = buf_detach(message, &len);
    hand_over(cursor, bytes, len);
    if (cursor->full)
        channel_throttle(call, true);
}

static void watch_ended(struct call *call, int status, struct slice text)
{
    struct cursor *cursor = call->context;
    if (status != GRPC_OK && status != CALL_LOST)
        client_note(cursor->log->client, "etcd says to a watch: %.*s (%d)", SLICE_ARG(text), status);
    if (status == GRPC_UNAVAILABLE)
        client_fail(cursor->log->client, WAY_FOLLOW, "it is not available");
    cursor->retry = clock_boot_us() + PAUSE_US;
    hand_over(cursor, NULL, 0);
}

static uint64_t begin_watch(struct cursor *cursor, uint64_t now)
{
    struct cmdlog_etcd *log = cursor->log;
    if (now < cursor->retry)
        return cursor->retry;
    channel_drop(&cursor->call); /* of a watch that etcd ended within its call */
    buf_clear(&cursor->request);
    call_frame(&cursor->request);
    etcd_put_watch(&cursor->request, log->logs, log->logs_end, cursor->from);
    call_frame_end(&cursor->request);
    cursor->call.request = buf_as_slice(&cursor->request);
    if (!client_call(log->client, WAY_FOLLOW, &cursor->call, now, &cursor->retry))
        return cursor->retry;
    cursor->wanted = false;
    return UINT64_MAX;
}

static uint64_t run(struct client_actor *actor, uint64_t now)
{
    struct cmdlog_etcd *log = container_of(actor, struct cmdlog_etcd, follower);
    uint64_t next = UINT64_MAX;
    pthread_mutex_lock(&log->lock);
    list_for_each_safe(link, following, &log->cursors)
    {
        struct cursor *cursor = list_entry(link, struct cursor, link);
        pthread_mutex_lock(&cursor->lock);
        if (cursor->leaving) {
            channel_drop(&cursor->call);
            list_remove(link);
            cursor->gone = true;
            pthread_cond_signal(&cursor->arrived);
            pthread_mutex_unlock(&cursor->lock);
            continue;
        }
        uint64_t again = cursor->wanted ? begin_watch(cursor, now) : UINT64_MAX;
        bool full = cursor->queued > QUEUE_BYTES;
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
    log->follower.run = run;
    list_append(&log->actors, &log->follower.link);
}

/* --- Of who follows: messages ------------------------------------------------------------------------------------------- */

static void free_message(struct message *message)
{
    if (message == NULL)
        return;
    mem_free(message->bytes);
    mem_free(message);
}

static struct message *take_message(struct cursor *cursor, bool *ret_emptied)
{
    struct message *message = NULL;
    pthread_mutex_lock(&cursor->lock);
    if (!list_empty(&cursor->messages)) {
        message = list_entry(cursor->messages.next, struct message, link);
        list_remove(&message->link);
        *ret_emptied = cursor->queued > QUEUE_BYTES && cursor->queued - message->len <= QUEUE_BYTES;
        cursor->queued -= message->len;
    }
    pthread_mutex_unlock(&cursor->lock);
    return message;
}

/* Has the watch begin behind what was given. */
static void want_watch(struct cursor *cursor)
{
    pthread_mutex_lock(&cursor->lock);
    cursor->from = cursor->passed + 1;
    cursor->wanted = true;
    pthread_mutex_unlock(&cursor->lock);
    client_wake(cursor->log->client);
}

/* Returns: 0: there are events, perhaps; CMDLOG_END; CMDLOG_TRIMMED; TL_ERR_CORRUPT. */
static int open_message(struct cursor *cursor)
{
    bool emptied = false;
    struct message *message = take_message(cursor, &emptied);
    struct etcd_watch_reply watch;
    if (message == NULL)
        return CMDLOG_END;
    if (emptied)
        client_wake(cursor->log->client);
    free_message(cursor->current);
    cursor->current = message;
    cursor->events = SLICE_NONE;
    if (message->bytes == NULL) {
        want_watch(cursor);
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
    client_note(cursor->log->client, "etcd ended a watch: %.*s", SLICE_ARG(watch.reason));
    want_watch(cursor); /* the call is dropped when the next is begun */
    return 0;
}

/* --- Of who follows: entries --------------------------------------------------------------------------------------------- */

static struct source *source_of(struct cursor *cursor, struct slice name)
{
    list_for_each(link, &cursor->sources)
    {
        struct source *source = list_entry(link, struct source, link);
        if (slice_equal(source->name, name))
            return source;
    }
    struct source *source = mem_zalloc(sizeof *source);
    source->name = slice_make(mem_strdup(name.data, name.len), name.len);
    source->bytes = BUF_INIT(BUF_UNLIMITED);
    list_append(&cursor->sources, &source->link);
    return source;
}

static void forget_parts(struct source *source)
{
    source->parts = source->got = 0;
    buf_deinit(&source->bytes);
    source->bytes = BUF_INIT(BUF_UNLIMITED);
}

static int damaged(struct cursor *cursor, const struct etcd_kv *kv, const char *how)
{
    client_note(cursor->log->client, "the log in etcd is damaged: the entry of %.*s at revision %lu %s",
                SLICE_ARG(kv->key), (unsigned long)kv->modified, how);
    cursor->damaged = true;
    return tl_trace(TL_ERR_CORRUPT);
}

/* The put of a key before a revision. Returns: 0, in `reply`; CMDLOG_UNREACHABLE; CMDLOG_TRIMMED; TL_ERR_CORRUPT. */
int follower__put_before(struct cmdlog_etcd *log, struct slice key, uint64_t revision, uint64_t until, struct buf *reply,
                         struct etcd_kv *ret_kv)
{
    struct buf request = BUF_INIT(BUF_UNLIMITED);
    int status;
    call_frame(&request);
    etcd_put_range(&request, &(struct etcd_range){.key = key, .revision = revision - 1});
    call_frame_end(&request);
    int r = client_ask(log->client, WAY_FOLLOW, ETCD_RANGE, buf_as_slice(&request), until, reply, &status);
    buf_deinit(&request);
    if (r == TL_ERR_IO && status == GRPC_OUT_OF_RANGE)
        return CMDLOG_TRIMMED;
    if (r != 0)
        return r == CMDLOG_UNREACHABLE ? CMDLOG_UNREACHABLE : tl_trace(TL_ERR_CORRUPT);
    struct slice rest = buf_as_slice(reply);
    r = etcd_take_kv(&rest, ret_kv);
    return r == 1 ? 0 : tl_trace(TL_ERR_CORRUPT);
}

/* The parts before an event's, which came before the cursor's beginning. Returns: as follower__put_before(). */
static int fetch_parts(struct cursor *cursor, struct source *source, const struct etcd_kv *kv,
                       const struct envelope *envelope)
{
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
            r = envelope_read(before.value, source->name, &other, &bytes[part]);
        if (r == 0 && (other.life != envelope->life || other.part != part || other.parts != envelope->parts))
            r = tl_trace(TL_ERR_CORRUPT);
        revision = before.modified;
    }
    forget_parts(source);
    for (uint32_t part = 1; r == 0 && part < envelope->part; part++) {
        buf_slice(&source->bytes, bytes[part]);
        source->got = part;
        source->parts = envelope->parts;
        source->life = envelope->life;
    }
    for (uint32_t part = 1; part < envelope->part; part++)
        buf_deinit(&replies[part]);
    mem_free(replies);
    mem_free(bytes);
    return r;
}

/*
 * An event, which is a put of a host's log key. Returns: 0 and an entry; CMDLOG_END: it was a part, or came before, and the next may be taken; CMDLOG_UNREACHABLE: it must wait; CMDLOG_TRIMMED;
 * TL_ERR_CORRUPT.
 */
static int take_put(struct cursor *cursor, const struct etcd_kv *kv, struct cmdlog_entry *ret_entry)
{
    struct envelope envelope;
    struct slice bytes;
    if (kv->modified <= cursor->passed)
        return CMDLOG_END;
    if (kv->deleted || !slice_starts_with(kv->key, cursor->log->logs))
        return damaged(cursor, kv, "was deleted");
    struct source *source = source_of(cursor, slice_from_offset(kv->key, cursor->log->logs.len));
    int r = envelope_read(kv->value, source->name, &envelope, &bytes);
    if (r < 0)
        return damaged(cursor, kv, r == TL_ERR_VERSION ? "is of a newer form" : "is not what was written");
    if (envelope.number != kv->version || (source->version != 0 && kv->version != source->version + 1))
        return damaged(cursor, kv,
                       kv->version > source->version + 1 ? "comes behind one that is missing" : "comes twice");
    bool goes_on = source->parts == envelope.parts && source->life == envelope.life && source->got + 1 == envelope.part;
    if (envelope.part > 1 && !goes_on) {
        if (source->version != 0)
            return damaged(cursor, kv, "is a part whose beginning is missing");
        r = fetch_parts(cursor, source, kv, &envelope);
        if (r < 0)
            return damaged(cursor, kv, "is a part whose beginning is damaged");
        if (r != 0)
            return r;
    }
    source->version = kv->version;
    cursor->passed = kv->modified;
    if (envelope.part == 1)
        forget_parts(source);
    if (envelope.part < envelope.parts || envelope.parts > 1) {
        buf_slice(&source->bytes, bytes);
        source->parts = envelope.parts;
        source->got = envelope.part;
        source->life = envelope.life;
        if (envelope.part < envelope.parts)
            return CMDLOG_END;
        bytes = buf_as_slice(&source->bytes);
        cursor->given = source;
        source->parts = source->got = 0;
    }
    *ret_entry =
        (struct cmdlog_entry){kv->modified, bytes, source->name, envelope.life, envelope.number, envelope.submitted};
    return 0;
}

int follower__next(struct cmdlog_cursor *base, struct cmdlog_entry *ret_entry)
{
    struct cursor *cursor = cursor_of(base);
    cmdlog_position before = cursor->passed;
    int r = 0;
    if (cursor->given != NULL)
        forget_parts(cursor->given);
    cursor->given = NULL;
    if (cursor->damaged)
        return tl_trace(TL_ERR_CORRUPT);
    while (r == 0 && !cursor->trimmed) {
        if (cursor->held.version == 0 && (r = etcd_take_event(&cursor->events, &cursor->held)) == 0) {
            cursor->held.version = 0;
            r = open_message(cursor);
            cursor->trimmed = r == CMDLOG_TRIMMED;
            continue;
        }
        if (r >= 0)
            r = take_put(cursor, &cursor->held, ret_entry);
        cursor->trimmed = r == CMDLOG_TRIMMED;
        if (r == CMDLOG_UNREACHABLE)
            return CMDLOG_END; /* `held` is taken the next time */
        cursor->held.version = 0;
        if (r == 0)
            break;
        r = r == CMDLOG_END ? 0 : r;
    }
    if (cursor->passed > before) {
        pthread_mutex_lock(&cursor->log->lock);
        cmdlog_etcd__observe(cursor->log, cursor->passed);
        pthread_mutex_unlock(&cursor->log->lock);
    }
    cursor->damaged = cursor->damaged || r < 0;
    return cursor->trimmed ? CMDLOG_TRIMMED : r;
}

int follower__await(struct cmdlog_cursor *base, uint64_t until)
{
    struct cursor *cursor = cursor_of(base);
    if (cursor->trimmed || cursor->damaged || cursor->held.version != 0 || cursor->events.len > 0)
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
    struct cursor *cursor = cursor_of(base);
    pthread_mutex_lock(&cursor->lock);
    cursor->interrupted = true;
    pthread_cond_signal(&cursor->arrived);
    pthread_mutex_unlock(&cursor->lock);
}

cmdlog_position follower__passed(const struct cmdlog_cursor *base)
{
    return container_of(base, const struct cursor, cursor)->passed;
}

/* --- Life ---------------------------------------------------------------------------------------------------------------- */

int follower__follow(struct cmdlog *base, cmdlog_position from, struct cmdlog_cursor **ret_cursor)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct cursor *cursor = mem_zalloc(sizeof *cursor);
    cursor->cursor = (struct cmdlog_cursor){base->functions, base->shared};
    cursor->log = log;
    cursor->passed = from - 1;
    cursor->request = BUF_INIT(BUF_UNLIMITED);
    cursor->call = (struct call){.path = ETCD_WATCH,
                                 .stays_open = true,
                                 .wants_leader = true,
                                 .deadline = UINT64_MAX,
                                 .context = cursor,
                                 .on_message = watch_told,
                                 .on_end = watch_ended};
    pthread_mutex_init(&cursor->lock, NULL);
    pthread_cond_init(&cursor->arrived, NULL);
    list_init(&cursor->messages);
    list_init(&cursor->sources);
    cursor->from = from;
    cursor->wanted = true;
    pthread_mutex_lock(&log->lock);
    list_append(&log->cursors, &cursor->link);
    pthread_mutex_unlock(&log->lock);
    client_wake(log->client);
    *ret_cursor = &cursor->cursor;
    return 0;
}

void follower__unfollow(struct cmdlog_cursor *base)
{
    struct cursor *cursor = cursor_of(base);
    pthread_mutex_lock(&cursor->lock);
    cursor->leaving = true;
    pthread_mutex_unlock(&cursor->lock);
    client_wake(cursor->log->client);
    pthread_mutex_lock(&cursor->lock);
    while (!cursor->gone)
        pthread_cond_wait(&cursor->arrived, &cursor->lock);
    pthread_mutex_unlock(&cursor->lock);
    while (!list_empty(&cursor->messages)) {
        struct message *message = list_entry(cursor->messages.next, struct message, link);
        list_remove(&message->link);
        free_message(message);
    }
    while (!list_empty(&cursor->sources)) {
        struct source *source = list_entry(cursor->sources.next, struct source, link);
        list_remove(&source->link);
        mem_free((char *)(uintptr_t)source->name.data);
        buf_deinit(&source->bytes);
        mem_free(source);
    }
    free_message(cursor->current);
    buf_deinit(&cursor->request);
    pthread_mutex_destroy(&cursor->lock);
    pthread_cond_destroy(&cursor->arrived);
    mem_free(cursor);
}
