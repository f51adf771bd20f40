/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending to etcd's log; README.md, "An append".
 *
 * A put's transaction is: if my host key is of this life, and the version of my log key is the number before this put's, put. Else it reads both,
 * which tells what the matter is. So it can be sent any number of times, by any way, and is in the log once, at its place:
 *
 *     answered, done            it is in
 *     refused, version >= own   an attempt before was answered to nobody: it is in
 *     refused, version lower    the one before it is not in yet: again when that is
 *     refused, host key         the life is over: what is not in will not be
 *     no answer, unavailable    again
 */
#include "base/check.h"
#include "base/clock.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/messages.h"

enum {
    PATIENCE_MIN_US = 500000, /* with an attempt; four times what an answer usually takes, if that is more */
    PATIENCE_MAX_US = 16000000,
    SMALL_BYTES = 64 << 10, /* what costs little to be sent again */
    SMALL_ATTEMPTS = 6,     /* so it is, as often, before patience grows: a leader's election takes a second or so */
    PAUSE_US = 20000,
    PAUSE_LONG_US = 500000, /* when what etcd says is nothing that time will mend soon */
};

static struct put *put_at(struct list *link)
{
    return list_entry(link, struct put, link);
}

/* --- What becomes of entries ---------------------------------------------------------------------------------------- */

/* Entries whose outcome is known are kept for who asks, the newest of them. */
static void forget_old(struct cmdlog_etcd *log)
{
    size_t done = 0;
    for (struct list *link = log->entries.prev; link != &log->entries;) {
        struct entry *entry = list_entry(link, struct entry, link);
        link = link->prev;
        if (entry->done && ++done > ANSWERS_KEPT && entry->waiters == 0) {
            list_remove(&entry->link);
            mem_free(entry);
        }
    }
}

static void entry_done(struct cmdlog_etcd *log, struct entry *entry, int result, cmdlog_position position)
{
    if (entry->done)
        return;
    entry->done = true;
    entry->result = result;
    entry->position = position;
    log->under_way--;
    forget_old(log);
    pthread_cond_broadcast(&log->changed);
}

static void free_put(struct put *put)
{
    list_remove(&put->link);
    channel_drop(&put->call);
    buf_deinit(&put->request);
    buf_deinit(&put->answer);
    mem_free(put);
}

/* A put is in. Its place is told when those of all before it are known: answers may come in any order. */
static void put_is_in(struct cmdlog_etcd *log, struct put *put, cmdlog_position position)
{
    channel_drop(&put->call);
    put->position = position;
    while (!list_empty(&log->puts) && put_at(log->puts.next)->position != 0) {
        struct put *first = put_at(log->puts.next);
        log->counts.appends++;
        log->own_newest = first->position;
        cmdlog_etcd__observe(log, first->position);
        if (first->number == first->entry->last)
            entry_done(log, first->entry, 0, first->position);
        free_put(first);
    }
}

void appender__settle(struct cmdlog_etcd *log, uint64_t version, cmdlog_position position)
{
    while (!list_empty(&log->puts)) {
        struct put *put = put_at(log->puts.next);
        /* Versions beyond may be of another life since; only what was answered is known to be this one's. */
        int result = put->entry->last <= version ? CMDLOG_UNKNOWN : CMDLOG_FENCED;
        entry_done(log, put->entry, result, position);
        free_put(put);
    }
    log->no_room = false;
}

/* --- Attempts ------------------------------------------------------------------------------------------------------- */

static void put_answered(struct call *call, struct buf *message)
{
    struct put *put = call->context;
    buf_clear(&put->answer);
    buf_slice(&put->answer, buf_as_slice(message));
    put->answered = true;
}

struct refusal {
    uint64_t life;    /* of the host's key; 0: there is none */
    uint64_t version; /* of the log's */
    uint64_t modified;
    uint64_t revision; /* of the answer */
};

/* Reads the two keys that a refused transaction answers with. */
static int read_refusal(struct slice reply, const struct etcd_txn_reply *txn, struct refusal *ret)
{
    struct slice responses = txn->responses, response;
    struct etcd_header header;
    struct etcd_kv kv;
    *ret = (struct refusal){0};
    int r = etcd_read_header(reply, &header);
    if (r == 0 && (r = etcd_take_response(&responses, &response)) > 0 && (r = etcd_take_kv(&response, &kv)) > 0)
        ret->life = kv.created;
    if (r >= 0 && (r = etcd_take_response(&responses, &response)) > 0 && (r = etcd_take_kv(&response, &kv)) > 0) {
        ret->version = kv.version;
        ret->modified = kv.modified;
    }
    ret->revision = header.revision;
    return r < 0 ? r : 0;
}

static void refused(struct cmdlog_etcd *log, struct put *put, const struct refusal *refusal)
{
    if (refusal->life != put->life) {
        appender__settle(log, refusal->version, refusal->revision);
        lives__over(log);
    } else if (refusal->version >= put->number) {
        put_is_in(log, put, refusal->modified);
    } else if (put != put_at(log->puts.next) || refusal->revision < log->own_newest) {
        /* Or was not: its own answer was the quicker one. */
        put->disordered = true;
        log->counts.disordered++;
    } else {
        /* Its predecessor was in: etcd has forgotten it. Nothing can be appended to that. */
        client_note(log->client, "etcd has lost an entry that it had: number %lu of %lu",
                    (unsigned long)refusal->version, (unsigned long)put->number);
        appender__settle(log, put->number, refusal->revision);
        lives__over(log);
    }
}

static void again(struct put *put, uint64_t pause)
{
    put->retry = clock_boot_us() + pause;
}

/* Returns: 0; TL_ERR_CORRUPT: the answer cannot be read. */
static int take_answer(struct cmdlog_etcd *log, struct put *put)
{
    struct slice reply = buf_as_slice(&put->answer);
    struct etcd_txn_reply txn;
    struct etcd_header header;
    struct refusal refusal = {0};
    int r = etcd_read_txn(reply, &txn);
    if (r == 0)
        r = etcd_read_header(reply, &header);
    if (r == 0 && !txn.succeeded)
        r = read_refusal(reply, &txn, &refusal);
    if (r < 0)
        return r;
    uint64_t took = clock_boot_us() - put->call.begun;
    log->smoothed_us = log->smoothed_us == 0 ? took : log->smoothed_us - log->smoothed_us / 8 + took / 8;
    if (txn.succeeded)
        put_is_in(log, put, header.revision);
    else
        refused(log, put, &refusal);
    return 0;
}

static void put_ended(struct call *call, int status, struct slice text)
{
    struct put *put = call->context;
    struct cmdlog_etcd *log = put->log;
    pthread_mutex_lock(&log->lock);
    if (status == GRPC_OK && put->answered && client_knows(log->client, buf_as_slice(&put->answer)) &&
        take_answer(log, put) == 0) {
        pthread_mutex_unlock(&log->lock);
        return;
    }
    if (status != GRPC_OK && status != CALL_LOST)
        client_note(log->client, "etcd says to an append: %.*s (%d)", SLICE_ARG(text), status);
    if (status == GRPC_RESOURCE_EXHAUSTED && !client_may_retry(status, text)) {
        /* It may be in all the same: etcd looks at the room once more when it has put it. So it is asked, when nothing else is under way. */
        log->no_room = true;
        log->room_asked = false;
    } else {
        put->lost = true;
        log->counts.lost++;
        again(put, client_may_retry(status, text) ? PAUSE_US : PAUSE_LONG_US);
        if (status == GRPC_UNAVAILABLE)
            client_fail(log->client, WAY_APPEND, "it is not available");
    }
    pthread_mutex_unlock(&log->lock);
}

static uint64_t patience(const struct cmdlog_etcd *log, const struct put *put)
{
    uint64_t us = 4 * log->smoothed_us;
    unsigned spare = put->request.len <= SMALL_BYTES ? SMALL_ATTEMPTS : 0,
             grows = put->attempts > spare ? put->attempts - spare : 0;
    us = us < PATIENCE_MIN_US ? PATIENCE_MIN_US : us;
    us <<= grows > 6 ? 6 : grows;
    return us > PATIENCE_MAX_US ? PATIENCE_MAX_US : us;
}

/* --- No room --------------------------------------------------------------------------------------------------------- */

static void room_answered(struct call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    struct slice reply = buf_as_slice(message);
    struct etcd_kv kv = {0};
    if (!client_knows(log->client, reply) || etcd_take_kv(&reply, &kv) < 0)
        return;
    pthread_mutex_lock(&log->lock);
    while (!list_empty(&log->puts) && put_at(log->puts.next)->number <= kv.version)
        put_is_in(log, put_at(log->puts.next), kv.modified);
    log->room_asked = true;
    pthread_mutex_unlock(&log->lock);
}

static void room_ended(struct call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    (void)status;
    (void)text;
    log->room_retry = clock_boot_us() + PAUSE_US;
}

static uint64_t ask_what_is_in(struct cmdlog_etcd *log, uint64_t now)
{
    if (log->room_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->room_retry)
        return log->room_retry;
    buf_clear(&log->room_request);
    call_frame(&log->room_request);
    etcd_put_range(&log->room_request, &(struct etcd_range){.key = log->key_log, .keys_only = true});
    call_frame_end(&log->room_request);
    log->room_call =
        (struct call){.path = ETCD_RANGE, .context = log, .on_message = room_answered, .on_end = room_ended};
    log->room_call.request = buf_as_slice(&log->room_request);
    log->room_call.deadline = now + CONTROL_US;
    if (!client_call(log->client, WAY_APPEND, &log->room_call, now, &log->room_retry))
        return log->room_retry;
    return UINT64_MAX;
}

/*
 * There is no room. When nothing is under way any more, it is asked what is in. What is not cannot come in, and so ends, and the numbers are given
 * again; but where an answer was lost that is not known, and all stay under way.
 */
static uint64_t end_without_room(struct cmdlog_etcd *log, uint64_t now)
{
    bool sure = true;
    list_for_each(link, &log->puts)
    {
        if (put_at(link)->call.channel != NULL)
            return UINT64_MAX;
        sure = sure && !put_at(link)->lost;
    }
    if (!log->room_asked)
        return ask_what_is_in(log, now);
    log->no_room = false;
    if (!sure) {
        list_for_each(link, &log->puts) again(put_at(link), PAUSE_LONG_US);
        return now;
    }
    if (!list_empty(&log->puts))
        log->next_number = put_at(log->puts.next)->number;
    while (!list_empty(&log->puts)) {
        struct put *put = put_at(log->puts.next);
        entry_done(log, put->entry, TL_ERR_NO_SPACE, 0);
        free_put(put);
    }
    return now;
}

/* --- The actor ------------------------------------------------------------------------------------------------------- */

/* Begins the attempts that are due: of the first two puts, the second when all of the first is on its way, so that it comes behind it. */
static uint64_t run(struct client_actor *actor, uint64_t now)
{
    struct cmdlog_etcd *log = container_of(actor, struct cmdlog_etcd, appender);
    uint64_t next = UINT64_MAX;
    unsigned looked = 0;
    pthread_mutex_lock(&log->lock);
    if (log->no_room)
        next = end_without_room(log, now);
    list_for_each(link, &log->puts)
    {
        struct put *put = put_at(link), *before = link->prev == &log->puts ? NULL : put_at(link->prev);
        if (looked++ == CMDLOG_IN_FLIGHT_MAX || log->no_room)
            break;
        if (put->call.channel != NULL || put->position != 0)
            continue;
        if (before != NULL && (put->disordered || (before->position == 0 &&
                                                   (before->call.channel == NULL || !call_is_sent(&before->call)))))
            break;
        put->disordered = false;
        if (now < put->retry) {
            next = put->retry < next ? put->retry : next;
            break;
        }
        put->answered = false;
        put->call.deadline = now + patience(log, put);
        if (!client_call(log->client, WAY_APPEND, &put->call, now, &put->retry)) {
            next = put->retry < next ? put->retry : next;
            break;
        }
        put->attempts++;
        log->counts.attempts++;
    }
    pthread_mutex_unlock(&log->lock);
    return next;
}

/* --- Submitting ----------------------------------------------------------------------------------------------------- */

/* The part of `parts` from `at` on, `len` bytes, in pieces. Returns: how many pieces. */
static size_t cut(const struct slice *parts, size_t count, size_t at, size_t len, struct slice *pieces)
{
    size_t made = 0;
    for (size_t i = 0; i < count && len > 0; i++) {
        if (at >= parts[i].len) {
            at -= parts[i].len;
            continue;
        }
        size_t here = parts[i].len - at < len ? parts[i].len - at : len;
        pieces[made++] = slice_make(parts[i].data + at, here);
        len -= here;
        at = 0;
    }
    return made;
}

static void write_request(struct cmdlog_etcd *log, const struct envelope *envelope, const struct slice *pieces,
                          size_t count, size_t len, struct buf *request)
{
    char head[ENVELOPE_BYTES];
    const struct etcd_range host = {.key = log->key_host, .keys_only = true},
                            own = {.key = log->key_log, .keys_only = true};
    envelope_write(envelope, log->name, pieces, count, head);
    buf_reserve(request, len + 512 + 4 * log->keys.len);
    call_frame(request);
    etcd_compare_created(request, log->key_host, envelope->life);
    etcd_compare_version(request, log->key_log, envelope->number - 1);
    size_t begun = etcd_branch_put_begin(request, ETCD_THEN, log->key_log, ENVELOPE_BYTES + len);
    buf_append(request, head, ENVELOPE_BYTES);
    for (size_t i = 0; i < count; i++)
        buf_slice(request, pieces[i]);
    etcd_branch_put_end(request, begun);
    etcd_branch_range(request, ETCD_ELSE, &host);
    etcd_branch_range(request, ETCD_ELSE, &own);
    call_frame_end(request);
}

static struct put *new_put(struct cmdlog_etcd *log, struct entry *entry, uint64_t number)
{
    struct put *put = mem_zalloc(sizeof *put);
    put->log = log;
    put->entry = entry;
    put->life = log->life;
    put->number = number;
    put->request = BUF_INIT(BUF_UNLIMITED);
    put->answer = BUF_INIT(BUF_UNLIMITED);
    put->call = (struct call){.path = ETCD_TXN, .context = put, .on_message = put_answered, .on_end = put_ended};
    return put;
}

/* Returns: 0 with the lock held, when there is room for one more; else a code, without. */
static int wait_for_room(struct cmdlog_etcd *log, uint64_t until)
{
    int r = 0;
    pthread_mutex_lock(&log->lock);
    for (;;) {
        if (log->closing)
            r = TL_ERR_STOPPED;
        else if (log->life == 0)
            r = CMDLOG_FENCED;
        else if (log->space.full)
            r = TL_ERR_NO_SPACE;
        else if (log->under_way < CMDLOG_IN_FLIGHT_MAX)
            return 0;
        else if (clock_boot_us() >= until)
            r = CMDLOG_BUSY;
        if (r != 0)
            break;
        (void)clock_wait(&log->changed, &log->lock, until);
    }
    pthread_mutex_unlock(&log->lock);
    return r;
}

static int submit(struct cmdlog_etcd *log, const struct slice *parts, size_t count, uint64_t until, unsigned waiters,
                  struct entry **ret_entry)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    uint64_t submitted = clock_wall_us(), puts = (len + ENVELOPE_PART_BYTES - 1) / ENVELOPE_PART_BYTES;
    int r = wait_for_room(log, until);
    if (r != 0)
        return r;
    struct entry *entry = mem_zalloc(sizeof *entry);
    struct slice *pieces = mem_alloc(count * sizeof *pieces);
    entry->first = log->next_number;
    entry->last = entry->first + puts - 1;
    entry->waiters = waiters;
    list_append(&log->entries, &entry->link);
    log->under_way++;
    log->next_number = entry->last + 1;
    for (uint64_t i = 0; i < puts; i++) {
        size_t at = i * ENVELOPE_PART_BYTES, part_len = len - at < ENVELOPE_PART_BYTES ? len - at : ENVELOPE_PART_BYTES;
        struct put *put = new_put(log, entry, entry->first + i);
        struct envelope envelope = {log->life, put->number, submitted, (uint32_t)(i + 1), (uint32_t)puts};
        size_t made = cut(parts, count, at, part_len, pieces);
        write_request(log, &envelope, pieces, made, part_len, &put->request);
        put->call.request = buf_as_slice(&put->request);
        list_append(&log->puts, &put->link);
    }
    mem_free(pieces);
    *ret_entry = entry;
    return 0;
}

int appender__submit(struct cmdlog *base, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct entry *entry;
    int r = submit(log, parts, count, until, 0, &entry);
    if (r != 0)
        return r;
    *ret_number = entry->last;
    pthread_mutex_unlock(&log->lock);
    client_wake(log->client);
    return 0;
}

/* Under the lock. */
static int wait_for(struct cmdlog_etcd *log, struct entry *entry, uint64_t until, cmdlog_position *ret_position)
{
    while (!entry->done && !log->closing && clock_boot_us() < until)
        (void)clock_wait(&log->changed, &log->lock, until);
    if (entry->done && (entry->result == 0 || entry->result == CMDLOG_UNKNOWN))
        *ret_position = entry->position;
    return entry->done ? entry->result : log->closing ? TL_ERR_STOPPED : CMDLOG_BUSY;
}

int appender__answer(struct cmdlog *base, uint64_t number, uint64_t until, cmdlog_position *ret_position)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    int r = TL_ERR_STOPPED;
    pthread_mutex_lock(&log->lock);
    for (struct list *link = log->entries.prev; link != &log->entries; link = link->prev) {
        struct entry *entry = list_entry(link, struct entry, link);
        if (entry->last != number)
            continue;
        entry->waiters++;
        r = wait_for(log, entry, until, ret_position);
        entry->waiters--;
        break;
    }
    pthread_mutex_unlock(&log->lock);
    return r;
}

int appender__append(struct cmdlog *base, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct entry *entry;
    int r = submit(log, parts, count, CMDLOG_FOREVER, 1, &entry);
    if (r != 0)
        return r;
    client_wake(log->client);
    r = wait_for(log, entry, CMDLOG_FOREVER, ret_position);
    entry->waiters--;
    pthread_mutex_unlock(&log->lock);
    return r;
}

/* --- Life ----------------------------------------------------------------------------------------------------------- */

void appender__init(struct cmdlog_etcd *log)
{
    list_init(&log->entries);
    list_init(&log->puts);
    log->room_request = BUF_INIT(BUF_UNLIMITED);
    log->appender.run = run;
    list_append(&log->actors, &log->appender.link);
}

void appender__deinit(struct cmdlog_etcd *log)
{
    channel_drop(&log->room_call);
    buf_deinit(&log->room_request);
    while (!list_empty(&log->puts))
        free_put(put_at(log->puts.next));
    while (!list_empty(&log->entries)) {
        struct entry *entry = list_entry(log->entries.next, struct entry, link);
        list_remove(&entry->link);
        mem_free(entry);
    }
}
