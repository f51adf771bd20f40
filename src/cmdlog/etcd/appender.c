/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending to the log in etcd; README.md, "An append".
 *
 * A put's transaction: if the host key was created by this life, and the version of the log key is
 * the put's number - 1, put. Otherwise it reads both keys, which identifies the reason. So it is
 * idempotent: it may be sent any number of times, to any member, and the put is in the log at most
 * once, after its predecessor.
 *
 *     succeeded                    in the log
 *     refused, version >= number   in the log: an earlier attempt succeeded, its answer was lost
 *     refused, version < number    its predecessor is not in yet: send again after that
 *     refused, other host key      the life has ended: if it is not in the log, it never will be
 *     no answer, unavailable       send again
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/messages.h"

enum {
    ATTEMPT_MIN_US = 500000, /* least timeout of an attempt; four round trips, if that is longer */
    ATTEMPT_MAX_US = 16000000,
    SMALL_BYTES = 64 << 10, /* a request up to this size is cheap to repeat */
    SMALL_ATTEMPTS = 6,     /* attempts of it before its timeout grows; an election takes 1 s */
    RETRY_US = 20000,
    RETRY_SLOW_US = 500000, /* after an error that may last */
};

static struct put *put_at(struct list *link)
{
    return list_entry(link, struct put, link);
}

/* --- Outcomes ----------------------------------------------------------------------------------------------------- */

/* Frees finished submissions except the newest OUTCOMES_KEPT and those with waiters. */
static void drop_old_entries(struct cmdlog_etcd *log)
{
    REQUIRE(mutex_is_held(&log->lock));
    size_t done = 0;
    for (struct list *link = log->entries.prev; link != &log->entries;) {
        struct submission *entry = list_entry(link, struct submission, link);
        link = link->prev;
        if (entry->done && ++done > OUTCOMES_KEPT && entry->waiters == 0) {
            list_remove(&entry->link);
            mem_free(entry);
        }
    }
}

/* Requires: the lock. */
static void finish_entry(struct cmdlog_etcd *log, struct submission *entry, int result, cmdlog_position position)
{
    REQUIRE(mutex_is_held(&log->lock));
    REQUIRE(result != 0 || position != 0);
    if (entry->done)
        return;
    INSIST(log->in_flight > 0);
    entry->done = true;
    entry->result = result;
    entry->position = position;
    log->in_flight--;
    drop_old_entries(log);
    pthread_cond_broadcast(&log->changed);
}

static void free_put(struct put *put)
{
    REQUIRE(list_linked(&put->link));
    list_remove(&put->link);
    channel_drop(&put->call);
    buf_deinit(&put->request);
    buf_deinit(&put->answer);
    mem_free(put);
}

/*
 * Records that a put is in the log. Answers arrive in any order; puts are finished by number.
 * Requires: the lock.
 */
static void put_committed(struct cmdlog_etcd *log, struct put *put, cmdlog_position position)
{
    REQUIRE(mutex_is_held(&log->lock));
    channel_drop(&put->call);
    put->position = position;
    while (!list_empty(&log->puts) && put_at(log->puts.next)->position != 0) {
        struct put *first = put_at(log->puts.next);
        log->counts.appends++;
        log->own_newest = first->position;
        cmdlog_etcd__observe(log, first->position);
        if (first->number == first->entry->last)
            finish_entry(log, first->entry, 0, first->position);
        free_put(first);
    }
}

void appender__settle(struct cmdlog_etcd *log, uint64_t version, cmdlog_position position)
{
    REQUIRE(mutex_is_held(&log->lock));
    while (!list_empty(&log->puts)) {
        struct put *put = put_at(log->puts.next);
        /* The version may be a later life's, so even these entries may not be in the log. */
        int result = put->entry->last <= version ? CMDLOG_UNKNOWN : CMDLOG_FENCED;
        finish_entry(log, put->entry, result, position);
        put->entry = NULL;
        list_remove(&put->link);
        list_append(&log->settled, &put->link);
    }
    log->out_of_space = false;
}

static void free_puts(struct list *puts)
{
    while (!list_empty(puts))
        free_put(put_at(puts->next));
}

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

static void put_answered(struct grpc_call *call, struct buf *message)
{
    struct put *put = call->context;
    buf_clear(&put->answer);
    buf_slice(&put->answer, buf_as_slice(message));
    put->answered = true;
}

struct refusal {
    uint64_t life;    /* create revision of the host key; 0: it does not exist */
    uint64_t version; /* of the log key */
    uint64_t modified;
    uint64_t revision; /* of the reply */
};

/* Reads the two keys from the reply to a refused transaction. */
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

static void retry_after(struct put *put, uint64_t pause)
{
    put->retry = clock_boot_us() + pause;
}

/*
 * Logs, once, that etcd was set back: a transaction that began when an entry was in the log has found it without that.
 * The put is repeated all the same, since the newer data may come back.
 */
static void report_loss(struct cmdlog_etcd *log, struct put *put, uint64_t revision)
{
    REQUIRE(mutex_is_held(&log->lock) && revision < put->known_in);
    retry_after(put, RETRY_SLOW_US);
    if (log->loss_logged)
        return;
    log->loss_logged = true;
    log_error("etcd has lost entries of the log of the cluster: it is at revision %lu, and had entry %lu. If it was "
              "restored from a copy, stop all hosts (docs/cluster.md, \"After a restore of etcd\"); until then nothing "
              "is written",
              (unsigned long)revision, (unsigned long)put->known_in);
}

static void handle_refusal(struct cmdlog_etcd *log, struct put *put, const struct refusal *refusal)
{
    REQUIRE(mutex_is_held(&log->lock));
    if (refusal->life != put->life) {
        appender__settle(log, refusal->version, refusal->revision);
        membership__record_end(log);
    } else if (refusal->version >= put->number) {
        put_committed(log, put, refusal->modified);
    } else if (refusal->revision < put->known_in) {
        report_loss(log, put, refusal->revision);
    } else if (put != put_at(log->puts.next) || refusal->revision < log->own_newest) {
        /*
         * Its predecessor was not in when this attempt ran, even if that is known to be in by now.
         */
        put->disordered = true;
        log->counts.disordered++;
    } else {
        /* The predecessor was in the log: etcd has lost it. Nothing can be appended after that. */
        etcd_client_set_error(log->client, "etcd has lost an entry that it had: number %lu of %lu",
                              (unsigned long)refusal->version, (unsigned long)put->number);
        appender__settle(log, put->number, refusal->revision);
        membership__record_end(log);
    }
}

/* Returns: 0; TL_ERR_CORRUPT: the answer is malformed. */
static int take_answer(struct cmdlog_etcd *log, struct put *put)
{
    REQUIRE(mutex_is_held(&log->lock));
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
    uint64_t took = clock_boot_us() - put->call.started;
    log->smoothed_rtt_us =
        log->smoothed_rtt_us == 0 ? took : log->smoothed_rtt_us - log->smoothed_rtt_us / 8 + took / 8;
    if (txn.succeeded)
        put_committed(log, put, header.revision);
    else
        handle_refusal(log, put, &refusal);
    return 0;
}

static void put_ended(struct grpc_call *call, int status, struct slice text)
{
    struct put *put = call->context;
    REQUIRE(call == &put->call && call->channel == NULL);
    struct cmdlog_etcd *log = put->log;
    pthread_mutex_lock(&log->lock);
    if (put->entry == NULL) { /* settled */
        pthread_mutex_unlock(&log->lock);
        return;
    }
    if (status == GRPC_OK && put->answered && etcd_client_same_cluster(log->client, buf_as_slice(&put->answer)) &&
        take_answer(log, put) == 0) {
        pthread_mutex_unlock(&log->lock);
        return;
    }
    if (status != GRPC_OK && status != CALL_LOST)
        etcd_client_set_error(log->client, "etcd says to an append: %.*s (%d)", SLICE_ARG(text), status);
    if (status == GRPC_RESOURCE_EXHAUSTED && !etcd_client_may_retry(status, text)) {
        /*
         * The put may be in the log nevertheless, since etcd checks its quota once more after the
         * put. So the version is read when no attempt is in flight.
         */
        log->out_of_space = true;
        log->version_known = false;
    } else {
        put->lost = true;
        log->counts.lost++;
        retry_after(put, etcd_client_may_retry(status, text) ? RETRY_US : RETRY_SLOW_US);
        if (status == GRPC_UNAVAILABLE)
            etcd_client_fail_lane(log->client, LANE_APPEND, "it is not available");
    }
    pthread_mutex_unlock(&log->lock);
}

static uint64_t attempt_timeout(const struct cmdlog_etcd *log, const struct put *put)
{
    REQUIRE(mutex_is_held(&log->lock) && put->request.len > 0);
    uint64_t us = 4 * log->smoothed_rtt_us;
    unsigned spare = put->request.len <= SMALL_BYTES ? SMALL_ATTEMPTS : 0,
             grows = put->attempts > spare ? put->attempts - spare : 0;
    us = us < ATTEMPT_MIN_US ? ATTEMPT_MIN_US : us;
    us <<= grows > 6 ? 6 : grows;
    return us > ATTEMPT_MAX_US ? ATTEMPT_MAX_US : us;
}

/* --- Out of space ------------------------------------------------------------------------------------------------- */

/* Reads the host key and the log key from the reply to read_version(). */
static int read_keys(const struct cmdlog_etcd *log, struct slice reply, struct refusal *ret)
{
    struct etcd_header header;
    struct etcd_kv kv;
    *ret = (struct refusal){0};
    int r = etcd_read_header(reply, &header);
    while (r == 0 && (r = etcd_take_kv(&reply, &kv)) == 1) {
        if (slice_equal(kv.key, log->key_host)) {
            ret->life = kv.created;
        } else if (slice_equal(kv.key, log->key_log)) {
            ret->version = kv.version;
            ret->modified = kv.modified;
        }
        r = 0;
    }
    if (r == 0)
        ret->revision = header.revision;
    return r;
}

/*
 * etcd refuses a put for lack of space before it compares the host key, so the life may have ended, and the
 * version may be of another one, whose puts have these numbers.
 */
static void version_answered(struct grpc_call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    struct slice reply = buf_as_slice(message);
    struct refusal found;
    if (!etcd_client_same_cluster(log->client, reply) || read_keys(log, reply, &found) < 0 ||
        (found.version > 0 && found.modified == 0)) /* then no put below would be finished */
        return;
    pthread_mutex_lock(&log->lock);
    if (list_empty(&log->puts) || put_at(log->puts.next)->life != log->version_life) { /* settled meanwhile */
        pthread_mutex_unlock(&log->lock);
        return;
    }
    if (found.life != log->version_life) {
        appender__settle(log, found.version, found.revision);
        membership__record_end(log);
    }
    while (!list_empty(&log->puts) && put_at(log->puts.next)->number <= found.version)
        put_committed(log, put_at(log->puts.next), found.modified);
    log->version_known = true;
    pthread_mutex_unlock(&log->lock);
}

static void version_ended(struct grpc_call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    REQUIRE(call == &log->version_call && call->channel == NULL);
    (void)status;
    (void)text;
    log->version_retry = clock_boot_us() + RETRY_US;
}

/*
 * Reads both keys at one revision by a range that has other hosts' between them: etcd before 3.5 refuses
 * any transaction when it is out of space.
 */
static uint64_t read_version(struct cmdlog_etcd *log, uint64_t now)
{
    REQUIRE(mutex_is_held(&log->lock) && !list_empty(&log->puts));
    if (log->version_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->version_retry)
        return log->version_retry;
    tl_cleanup(buf_deinit) struct buf end = BUF_INIT(BUF_UNLIMITED);
    etcd_key_end(log->key_log, &end);
    log->version_life = put_at(log->puts.next)->life;
    buf_clear(&log->version_request);
    grpc_frame_begin(&log->version_request);
    etcd_put_range(&log->version_request,
                   &(struct etcd_range){.key = log->key_host, .end = buf_as_slice(&end), .keys_only = true});
    grpc_frame_end(&log->version_request);
    log->version_call =
        (struct grpc_call){.path = ETCD_RANGE, .context = log, .on_message = version_answered, .on_end = version_ended};
    log->version_call.request = buf_as_slice(&log->version_request);
    log->version_call.deadline = now + CONTROL_US;
    if (!etcd_client_call(log->client, LANE_APPEND, &log->version_call, now, &log->version_retry))
        return log->version_retry;
    return UINT64_MAX;
}

/*
 * Resolves a report that etcd is out of space. Waits for the attempts in flight, then reads the host key
 * and the log key's version. Puts beyond that can no longer get in: they fail, and their numbers are reused. If
 * an answer was lost, one of them may still get in, so all are retried instead.
 */
static uint64_t finish_out_of_space(struct cmdlog_etcd *log, uint64_t now)
{
    REQUIRE(mutex_is_held(&log->lock) && log->out_of_space);
    bool sure = true;
    list_for_each(link, &log->puts)
    {
        if (put_at(link)->call.channel != NULL)
            return UINT64_MAX;
        sure = sure && !put_at(link)->lost;
    }
    if (!log->version_known && !list_empty(&log->puts))
        return read_version(log, now);
    log->out_of_space = false;
    if (!sure) {
        list_for_each(link, &log->puts) retry_after(put_at(link), RETRY_SLOW_US);
        return now;
    }
    if (!list_empty(&log->puts))
        log->next_number = put_at(log->puts.next)->number;
    while (!list_empty(&log->puts)) {
        struct put *put = put_at(log->puts.next);
        finish_entry(log, put->entry, TL_ERR_NO_SPACE, 0);
        free_put(put);
    }
    return now;
}

/* --- The task ----------------------------------------------------------------------------------------------------- */

/*
 * Starts the attempts that are due, among the first two puts. The second starts when all of the
 * first has been sent, so that it arrives after it.
 */
static uint64_t run_appender(struct etcd_client_task *task, uint64_t now)
{
    struct cmdlog_etcd *log = container_of(task, struct cmdlog_etcd, appender_task);
    uint64_t next = UINT64_MAX;
    unsigned looked = 0;
    pthread_mutex_lock(&log->lock);
    free_puts(&log->settled);
    if (log->out_of_space)
        next = finish_out_of_space(log, now);
    list_for_each(link, &log->puts)
    {
        struct put *put = put_at(link), *before = link->prev == &log->puts ? NULL : put_at(link->prev);
        if (looked++ == CMDLOG_IN_FLIGHT_MAX || log->out_of_space)
            break;
        if (put->call.channel != NULL || put->position != 0)
            continue;
        if (before != NULL && (put->disordered || (before->position == 0 && (before->call.channel == NULL ||
                                                                             !grpc_call_is_sent(&before->call)))))
            break;
        put->disordered = false;
        if (now < put->retry) {
            next = put->retry < next ? put->retry : next;
            break;
        }
        put->answered = false;
        put->known_in = log->own_newest;
        put->call.deadline = now + attempt_timeout(log, put);
        if (!etcd_client_call(log->client, LANE_APPEND, &put->call, now, &put->retry)) {
            next = put->retry < next ? put->retry : next;
            break;
        }
        put->attempts++;
        log->counts.attempts++;
    }
    pthread_mutex_unlock(&log->lock);
    return next;
}

/* --- Submitting --------------------------------------------------------------------------------------------------- */

static void write_request(struct cmdlog_etcd *log, const struct envelope *envelope, const struct slice *slices,
                          size_t count, size_t len, struct buf *request)
{
    char head[ENVELOPE_BYTES];
    const struct etcd_range host = {.key = log->key_host, .keys_only = true},
                            own = {.key = log->key_log, .keys_only = true};
    REQUIRE(envelope->life > 0 && envelope->part <= envelope->parts && envelope->number >= envelope->part);
    envelope_write(envelope, log->name, slices, count, head);
    buf_reserve(request, len + 512 + 4 * log->keys.len);
    grpc_frame_begin(request);
    etcd_compare_created(request, log->key_host, envelope->life);
    etcd_compare_version(request, log->key_log, envelope->number - 1);
    size_t begun = etcd_branch_put_begin(request, ETCD_THEN, log->key_log, ENVELOPE_BYTES + len);
    buf_append(request, head, ENVELOPE_BYTES);
    for (size_t i = 0; i < count; i++)
        buf_slice(request, slices[i]);
    etcd_branch_put_end(request, begun);
    etcd_branch_range(request, ETCD_ELSE, &host);
    etcd_branch_range(request, ETCD_ELSE, &own);
    grpc_frame_end(request);
}

static struct put *new_put(struct cmdlog_etcd *log, struct submission *entry, uint64_t number)
{
    REQUIRE(mutex_is_held(&log->lock) && log->life != 0 && number != 0);
    struct put *put = mem_zalloc(sizeof *put);
    put->log = log;
    put->entry = entry;
    put->life = log->life;
    put->number = number;
    put->request = BUF_INIT(BUF_UNLIMITED);
    put->answer = BUF_INIT(BUF_UNLIMITED);
    put->call = (struct grpc_call){.path = ETCD_TXN, .context = put, .on_message = put_answered, .on_end = put_ended};
    return put;
}

/* Waits for a slot for an entry of so many bytes. Returns: 0 with the lock held; otherwise a code, without it. */
static int wait_for_slot(struct cmdlog_etcd *log, uint64_t bytes, uint64_t until)
{
    int r = 0;
    pthread_mutex_lock(&log->lock);
    for (;;) {
        if (log->closing)
            r = TL_ERR_STOPPED;
        else if (log->life == 0)
            r = CMDLOG_FENCED;
        else if (!membership__has_room(log, bytes))
            r = TL_ERR_NO_SPACE;
        else if (log->in_flight < CMDLOG_IN_FLIGHT_MAX)
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

static int begin_submission(struct cmdlog_etcd *log, const struct slice *parts, size_t count, uint64_t until,
                            unsigned waiters, struct submission **ret_entry)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    uint64_t submitted = clock_wall_us(), puts = envelope_count_parts(len, ENVELOPE_PART_BYTES);
    REQUIRE(puts > 0 && puts <= ENVELOPE_PARTS_MAX); /* readers take more as damage */
    int r = wait_for_slot(log, len, until);
    if (r != 0)
        return r;
    struct submission *entry = mem_zalloc(sizeof *entry);
    struct slice *slices = mem_alloc(count * sizeof *slices);
    entry->first = log->next_number;
    entry->last = entry->first + puts - 1;
    entry->waiters = waiters;
    list_append(&log->entries, &entry->link);
    log->in_flight++;
    INSIST(log->in_flight <= CMDLOG_IN_FLIGHT_MAX);
    log->next_number = entry->last + 1;
    log->submitted_bytes += len;
    for (uint64_t i = 0; i < puts; i++) {
        struct put *put = new_put(log, entry, entry->first + i);
        struct envelope envelope = {log->life, put->number, submitted, (uint32_t)(i + 1), (uint32_t)puts};
        size_t part_len, made = envelope_cut(parts, count, envelope.part, ENVELOPE_PART_BYTES, slices, &part_len);
        write_request(log, &envelope, slices, made, part_len, &put->request);
        put->call.request = buf_as_slice(&put->request);
        INSIST(list_empty(&log->puts) || put_at(log->puts.prev)->number + 1 == put->number); /* guarantee 9 */
        list_append(&log->puts, &put->link);
    }
    mem_free(slices);
    *ret_entry = entry;
    return 0;
}

int appender__submit(struct cmdlog *base, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number)
{
    REQUIRE(count > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct submission *entry;
    int r = begin_submission(log, parts, count, until, 0, &entry);
    if (r != 0)
        return r;
    *ret_number = entry->last;
    pthread_mutex_unlock(&log->lock);
    etcd_client_wake(log->client);
    return 0;
}

/* Requires: the lock. */
static int wait_for_outcome(struct cmdlog_etcd *log, struct submission *entry, uint64_t until,
                            cmdlog_position *ret_position)
{
    REQUIRE(mutex_is_held(&log->lock));
    while (!entry->done && !log->closing && clock_boot_us() < until)
        (void)clock_wait(&log->changed, &log->lock, until);
    if (entry->done && (entry->result == 0 || entry->result == CMDLOG_UNKNOWN))
        *ret_position = entry->position;
    return entry->done ? entry->result : log->closing ? TL_ERR_STOPPED : CMDLOG_BUSY;
}

int appender__await_slot(struct cmdlog *base, uint64_t until)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    bool in_time = true;
    pthread_mutex_lock(&log->lock);
    while (in_time && !log->closing && log->life != 0 && log->in_flight > 0)
        in_time = clock_wait(&log->changed, &log->lock, until);
    int r = !log->closing && log->life != 0 && log->in_flight > 0 ? CMDLOG_BUSY : 0;
    pthread_mutex_unlock(&log->lock);
    return r;
}

int appender__outcome(struct cmdlog *base, uint64_t number, uint64_t until, cmdlog_position *ret_position)
{
    REQUIRE(number != 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    int r = TL_ERR_STOPPED;
    pthread_mutex_lock(&log->lock);
    for (struct list *link = log->entries.prev; link != &log->entries; link = link->prev) {
        struct submission *entry = list_entry(link, struct submission, link);
        if (entry->last != number)
            continue;
        entry->waiters++;
        r = wait_for_outcome(log, entry, until, ret_position);
        entry->waiters--;
        break;
    }
    pthread_mutex_unlock(&log->lock);
    return r;
}

int appender__append(struct cmdlog *base, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    REQUIRE(count > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct submission *entry;
    int r = begin_submission(log, parts, count, CMDLOG_FOREVER, 1, &entry);
    if (r != 0)
        return r;
    etcd_client_wake(log->client);
    r = wait_for_outcome(log, entry, CMDLOG_FOREVER, ret_position);
    entry->waiters--;
    pthread_mutex_unlock(&log->lock);
    return r;
}

/* --- Life cycle --------------------------------------------------------------------------------------------------- */

void appender__init(struct cmdlog_etcd *log)
{
    list_init(&log->entries);
    list_init(&log->puts);
    list_init(&log->settled);
    log->version_request = BUF_INIT(BUF_UNLIMITED);
    log->appender_task.run = run_appender;
    list_append(&log->tasks, &log->appender_task.link);
}

void appender__deinit(struct cmdlog_etcd *log)
{
    channel_drop(&log->version_call);
    buf_deinit(&log->version_request);
    free_puts(&log->puts);
    free_puts(&log->settled);
    while (!list_empty(&log->entries)) {
        struct submission *entry = list_entry(log->entries.next, struct submission, link);
        REQUIRE(entry->waiters == 0);
        list_remove(&entry->link);
        mem_free(entry);
    }
}
