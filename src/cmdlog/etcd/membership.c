/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives of hosts: the host key under its lease, the members, and etcd's space; README.md, "A life".
 */
#include <sys/random.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/messages.h"

enum {
    KEEPALIVES_PER_LEASE = 6,    /* renewals in the time of a lease */
    KEEPALIVE_PAUSE_US = 50000,  /* after a failed renewal */
    LISTS_PER_LEASE = 3,         /* scheduled listings of members in the time of a lease */
    LIST_PAUSE_MAX_US = 1000000, /* between two of them */
    HOSTS_PAUSE_US = 200000,
    STATUS_US = 1000000,
    STATUS_BUSY_US = 200000, /* while this host appends */
};

/* Returns: until when a host may count on its lease: nine tenths of it, from before the request. */
static uint64_t lease_end(uint64_t asked, uint64_t ttl_us)
{
    return asked + ttl_us / 10 * 9;
}

void membership__record_end(struct cmdlog_etcd *log)
{
    REQUIRE(mutex_is_held(&log->lock));
    log->life = 0;
    log->lease_id = 0;
    log->lease_until = 0;
    log->list_next = 0;
    pthread_cond_broadcast(&log->changed);
}

/* --- Keep-alive --------------------------------------------------------------------------------------------------- */

static void keepalive_answered(struct grpc_call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    struct etcd_lease_reply reply;
    if (!etcd_client_same_cluster(log->client, buf_as_slice(message)) ||
        etcd_read_lease(buf_as_slice(message), &reply) != 0)
        return;
    log->keepalive_ttl_s = reply.ttl_s;
    log->keepalive_answered = true;
}

static void keepalive_ended(struct grpc_call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    REQUIRE(call == &log->keepalive_call && call->channel == NULL);
    uint64_t now = clock_boot_us();
    if (status != GRPC_OK && status != CALL_LOST)
        etcd_client_set_error(log->client, "etcd says to a lease: %.*s (%d)", SLICE_ARG(text), status);
    pthread_mutex_lock(&log->lock);
    if (!log->keepalive_answered) {
        log->keepalive_next = now + KEEPALIVE_PAUSE_US;
        if (status == GRPC_UNAVAILABLE)
            etcd_client_fail_lane(log->client, LANE_CONTROL, "it is not available");
    } else if (log->keepalive_lease == log->lease_id && log->keepalive_ttl_s <= 0) {
        membership__record_end(log);
    } else if (log->keepalive_lease == log->lease_id) {
        uint64_t ttl_us = (uint64_t)log->keepalive_ttl_s * TL_SECOND;
        log->lease_asked = log->keepalive_asked;
        log->lease_until = lease_end(log->keepalive_asked, ttl_us < log->ttl_us ? ttl_us : log->ttl_us);
    }
    pthread_mutex_unlock(&log->lock);
}

static uint64_t run_keepalive(struct cmdlog_etcd *log, uint64_t now)
{
    REQUIRE(mutex_is_held(&log->lock));
    if (log->lease_id == 0 || log->life == 0 || log->keepalive_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->keepalive_next)
        return log->keepalive_next;
    buf_clear(&log->keepalive_request);
    grpc_frame_begin(&log->keepalive_request);
    etcd_put_lease(&log->keepalive_request, log->lease_id);
    grpc_frame_end(&log->keepalive_request);
    log->keepalive_call = (struct grpc_call){.path = ETCD_LEASE_KEEP_ALIVE,
                                             .requires_leader = true,
                                             .context = log,
                                             .on_message = keepalive_answered,
                                             .on_end = keepalive_ended};
    log->keepalive_call.request = buf_as_slice(&log->keepalive_request);
    log->keepalive_call.deadline = now + log->ttl_us / 4;
    log->keepalive_answered = false;
    log->keepalive_lease = log->lease_id;
    log->keepalive_asked = clock_boot_us();
    log->keepalive_next = now + log->ttl_us / KEEPALIVES_PER_LEASE;
    uint64_t retry = log->keepalive_next;
    if (!etcd_client_call(log->client, LANE_CONTROL, &log->keepalive_call, now, &retry))
        log->keepalive_next = retry;
    return log->keepalive_next;
}

/* --- Members ------------------------------------------------------------------------------------------------------ */

static bool same_hosts(const struct cmdlog_hosts *a, const struct cmdlog_hosts *b)
{
    bool same = a != NULL && a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->hosts[i].life == b->hosts[i].life && slice_equal(a->hosts[i].name, b->hosts[i].name);
    return same;
}

static struct cmdlog_hosts *new_hosts(size_t count, size_t bytes)
{
    struct cmdlog_hosts *hosts = mem_zalloc(sizeof *hosts + count * sizeof hosts->hosts[0] + bytes);
    hosts->count = count;
    return hosts;
}

static struct cmdlog_hosts *copy_hosts(const struct cmdlog_hosts *from)
{
    size_t bytes = 0;
    for (size_t i = 0; i < from->count; i++)
        bytes += from->hosts[i].name.len + from->hosts[i].about.len;
    struct cmdlog_hosts *hosts = new_hosts(from->count, bytes);
    char *tail = (char *)&hosts->hosts[hosts->count];
    hosts->version = from->version;
    hosts->asked = from->asked;
    for (size_t i = 0; i < from->count; i++)
        hosts->hosts[i] = (struct cmdlog_host){cmdlog_copy_to_tail(&tail, from->hosts[i].name), from->hosts[i].life,
                                               cmdlog_copy_to_tail(&tail, from->hosts[i].about)};
    ENSURE(tail == (char *)&hosts->hosts[hosts->count] + bytes);
    return hosts;
}

/* Decodes a Range reply with the hosts' keys, which are sorted. Returns: NULL: it is malformed. */
static struct cmdlog_hosts *read_hosts(const struct cmdlog_etcd *log, struct slice reply)
{
    struct slice rest = reply;
    struct etcd_kv kv;
    size_t count = 0, bytes = 0;
    int r;
    while ((r = etcd_take_kv(&rest, &kv)) > 0) {
        if (!slice_starts_with(kv.key, log->hosts))
            return NULL;
        count++;
        bytes += kv.key.len + kv.value.len;
    }
    if (r < 0)
        return NULL;
    struct cmdlog_hosts *hosts = new_hosts(count, bytes);
    char *tail = (char *)&hosts->hosts[count];
    for (size_t i = 0; i < count && etcd_take_kv(&reply, &kv) > 0; i++)
        hosts->hosts[i] = (struct cmdlog_host){cmdlog_copy_to_tail(&tail, slice_from_offset(kv.key, log->hosts.len)),
                                               kv.created, cmdlog_copy_to_tail(&tail, kv.value)};
    return hosts;
}

static void list_answered(struct grpc_call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    buf_clear(&log->list_answer);
    buf_slice(&log->list_answer, buf_as_slice(message));
    log->list_answered = true;
}

static void list_ended(struct grpc_call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    REQUIRE(call == &log->list_call && call->channel == NULL);
    struct cmdlog_hosts *hosts = NULL;
    (void)text;
    if (status == GRPC_OK && log->list_answered &&
        etcd_client_same_cluster(log->client, buf_as_slice(&log->list_answer)))
        hosts = read_hosts(log, buf_as_slice(&log->list_answer));
    pthread_mutex_lock(&log->lock);
    if (hosts == NULL) {
        log->list_next = clock_boot_us() + HOSTS_PAUSE_US;
    } else if (same_hosts(log->live_hosts, hosts)) {
        log->live_hosts->asked = log->list_asked;
        mem_free(hosts);
    } else {
        hosts->version = log->live_hosts == NULL ? 1 : log->live_hosts->version + 1;
        hosts->asked = log->list_asked;
        mem_free(log->live_hosts);
        log->live_hosts = hosts;
        pthread_cond_broadcast(&log->changed);
    }
    pthread_mutex_unlock(&log->lock);
}

static uint64_t run_list(struct cmdlog_etcd *log, uint64_t now)
{
    REQUIRE(mutex_is_held(&log->lock));
    if (log->list_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->list_next)
        return log->list_next;
    uint64_t pause = log->ttl_us / LISTS_PER_LEASE;
    log->list_answered = false;
    log->list_asked = clock_boot_us();
    log->list_next = now + (pause < LIST_PAUSE_MAX_US ? pause : LIST_PAUSE_MAX_US);
    log->list_call.deadline = now + CONTROL_US;
    uint64_t retry = log->list_next;
    if (!etcd_client_call(log->client, LANE_CONTROL, &log->list_call, now, &retry))
        log->list_next = retry;
    return log->list_next;
}

/*
 * A watch of the hosts' keys only triggers a listing. Its events are ignored, since a member may
 * omit a delete (etcd #18089, #19179).
 */
static void hosts_watch_fired(struct grpc_call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    (void)message;
    pthread_mutex_lock(&log->lock);
    log->list_next = 0;
    pthread_mutex_unlock(&log->lock);
}

static void hosts_watch_ended(struct grpc_call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    (void)status;
    (void)text;
    pthread_mutex_lock(&log->lock);
    log->hosts_watch_next = clock_boot_us() + HOSTS_PAUSE_US;
    log->list_next = 0;
    pthread_mutex_unlock(&log->lock);
}

static uint64_t run_hosts_watch(struct cmdlog_etcd *log, uint64_t now)
{
    REQUIRE(mutex_is_held(&log->lock));
    if (log->hosts_watch_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->hosts_watch_next)
        return log->hosts_watch_next;
    log->hosts_watch_next = now + HOSTS_PAUSE_US;
    if (etcd_client_call(log->client, LANE_CONTROL, &log->hosts_watch_call, now, &log->hosts_watch_next))
        log->list_next = 0;
    return log->hosts_watch_next;
}

/* --- Space -------------------------------------------------------------------------------------------------------- */

enum {
    TIGHT_PERCENT = 80,
    FULL_PERCENT = 90,
    FULL_UNTIL_PERCENT = 85, /* once it is full */
    SCARCE_PERCENT = 95,
    SMALL_ENTRY_BYTES = 64 * 1024, /* of heartbeats and the like */
    IN_FLIGHT_BYTES = CMDLOG_IN_FLIGHT_MAX * ENVELOPE_PART_BYTES,
};

#define QUOTA_DEFAULT ((uint64_t)2 << 30)
#define QUOTA_MAX ((uint64_t)1 << 60) /* what etcd reports beyond means that it has none */
/*
 * Counts the file, less half of the free space inside it: large puts may not find free space in one
 * piece, and then make the file grow.
 */
static bool is_over(const struct cmdlog_space *space, unsigned percent)
{
    REQUIRE(percent > 0 && percent <= 100);
    return (space->size + space->used) / 2 / percent >= space->quota / 100;
}

/*
 * Returns: whether etcd will accept an entry of so many bytes. It compares its quota with the size of its
 * file plus that of a put, whatever space is free inside the file; and puts since its report
 * may have made the file grow, as far as they did not fit in the free space.
 */
static bool has_room(const struct cmdlog_etcd *log, const struct cmdlog_space *space, uint64_t bytes)
{
    const struct etcd_status *status = &log->status;
    uint64_t part = bytes < ENVELOPE_PART_BYTES ? bytes : ENVELOPE_PART_BYTES;
    uint64_t usable = status->used > 0 && status->used < status->size ? (status->size - status->used) / 2 : 0;
    uint64_t pending = log->submitted_bytes - log->uncounted_from + bytes;
    uint64_t growth = pending > usable ? pending - usable : 0;
    return space->quota == 0 || (!status->alarm_no_space && status->size + growth + part < space->quota);
}

bool membership__has_room(const struct cmdlog_etcd *log, uint64_t bytes)
{
    REQUIRE(mutex_is_held(&log->lock));
    struct cmdlog_space space = membership__space(log);
    return has_room(log, &space, bytes);
}

struct cmdlog_space membership__space(const struct cmdlog_etcd *log)
{
    REQUIRE(mutex_is_held(&log->lock));
    const struct etcd_status *status = &log->status;
    bool reported = status->quota > 0 && status->quota < QUOTA_MAX;
    struct cmdlog_space space = {0};
    if (status->size == 0)
        return space;
    INSIST(log->uncounted_from <= log->submitted_bytes);
    uint64_t uncounted = log->submitted_bytes - log->uncounted_from;
    space.size = status->size + uncounted;
    space.used = (status->used > 0 ? status->used : status->size) + uncounted;
    space.quota_source = reported && (log->quota == 0 || status->quota <= log->quota) ? QUOTA_REPORTED
                         : log->quota > 0                                             ? QUOTA_OF_OPTION
                                                                                      : QUOTA_ASSUMED;
    space.quota = space.quota_source == QUOTA_REPORTED    ? status->quota
                  : space.quota_source == QUOTA_OF_OPTION ? log->quota
                                                          : QUOTA_DEFAULT;
    space.exhausted = !has_room(log, &space, SMALL_ENTRY_BYTES);
    space.scarce = space.exhausted || is_over(&space, SCARCE_PERCENT);
    space.full = space.scarce || is_over(&space, log->was_full ? FULL_UNTIL_PERCENT : FULL_PERCENT) ||
                 !has_room(log, &space, IN_FLIGHT_BYTES);
    space.tight = space.full || is_over(&space, TIGHT_PERCENT);
    return space;
}

static void status_answered(struct grpc_call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    REQUIRE(call == &log->status_call);
    struct etcd_status status;
    if (!etcd_client_same_cluster(log->client, buf_as_slice(message)) ||
        etcd_read_status(buf_as_slice(message), &status) != 0)
        return;
    pthread_mutex_lock(&log->lock);
    log->status = status;
    log->uncounted_from = log->status_before_bytes;
    log->was_full = membership__space(log).full;
    pthread_mutex_unlock(&log->lock);
}

static void status_ended(struct grpc_call *call, int status, struct slice text)
{
    (void)call;
    (void)status;
    (void)text;
}

/*
 * Asks for a report. etcd commits to its database ten times a second, so the report may lack puts
 * that this host has submitted since the request before it.
 */
static uint64_t run_status(struct cmdlog_etcd *log, uint64_t now)
{
    REQUIRE(mutex_is_held(&log->lock));
    bool appends = log->submitted_bytes != log->status_asked_bytes;
    uint64_t due = log->status_asked + (appends ? STATUS_BUSY_US : STATUS_US);
    if (log->status_call.channel != NULL)
        return UINT64_MAX;
    due = due > log->status_retry ? due : log->status_retry;
    if (now < due)
        return due;
    log->status_call.deadline = now + CONTROL_US;
    if (!etcd_client_call(log->client, LANE_CONTROL, &log->status_call, now, &log->status_retry))
        return log->status_retry;
    log->status_asked = now;
    log->status_before_bytes = log->status_asked_bytes;
    log->status_asked_bytes = log->submitted_bytes;
    return now + STATUS_BUSY_US;
}

/* --- The task ----------------------------------------------------------------------------------------------------- */

static uint64_t run_membership(struct etcd_client_task *task, uint64_t now)
{
    struct cmdlog_etcd *log = container_of(task, struct cmdlog_etcd, membership_task);
    uint64_t next = UINT64_MAX;
    uint64_t (*const parts[])(struct cmdlog_etcd *, uint64_t) = {run_keepalive, run_hosts_watch, run_list, run_status};
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t wanted = parts[i](log, now);
        next = wanted < next ? wanted : next;
    }
    pthread_mutex_unlock(&log->lock);
    return next;
}

void membership__init(struct cmdlog_etcd *log)
{
    struct buf *requests[] = {&log->keepalive_request, &log->list_request, &log->hosts_watch_request, &log->list_answer,
                              &log->status_request};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        *requests[i] = BUF_INIT(BUF_UNLIMITED);
    grpc_frame_begin(&log->list_request);
    etcd_put_range(&log->list_request, &(struct etcd_range){.key = log->hosts, .end = log->hosts_end});
    grpc_frame_end(&log->list_request);
    grpc_frame_begin(&log->hosts_watch_request);
    etcd_put_watch(&log->hosts_watch_request, log->hosts, log->hosts_end, 0);
    grpc_frame_end(&log->hosts_watch_request);
    grpc_frame_begin(&log->status_request);
    grpc_frame_end(&log->status_request);
    log->list_call = (struct grpc_call){.path = ETCD_RANGE,
                                        .request = buf_as_slice(&log->list_request),
                                        .context = log,
                                        .on_message = list_answered,
                                        .on_end = list_ended};
    log->hosts_watch_call = (struct grpc_call){.path = ETCD_WATCH,
                                               .request = buf_as_slice(&log->hosts_watch_request),
                                               .is_stream = true,
                                               .requires_leader = true,
                                               .deadline = UINT64_MAX,
                                               .context = log,
                                               .on_message = hosts_watch_fired,
                                               .on_end = hosts_watch_ended};
    log->status_call = (struct grpc_call){.path = ETCD_STATUS,
                                          .request = buf_as_slice(&log->status_request),
                                          .context = log,
                                          .on_message = status_answered,
                                          .on_end = status_ended};
    log->membership_task.run = run_membership;
    list_append(&log->tasks, &log->membership_task.link);
}

void membership__deinit(struct cmdlog_etcd *log)
{
    struct buf *requests[] = {&log->keepalive_request, &log->list_request, &log->hosts_watch_request, &log->list_answer,
                              &log->status_request};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        buf_deinit(requests[i]);
    mem_free(log->live_hosts);
}

/* --- Calls of other threads --------------------------------------------------------------------------------------- */

void membership__lease(struct cmdlog *base, struct cmdlog_lease *ret_lease)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    pthread_mutex_lock(&log->lock);
    *ret_lease = (struct cmdlog_lease){.life = log->life, .until = log->lease_until, .asked = log->lease_asked};
    pthread_mutex_unlock(&log->lock);
}

int membership__list_hosts(struct cmdlog *base, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    int r = 0;
    pthread_mutex_lock(&log->lock);
    while ((log->live_hosts == NULL || log->live_hosts->version == version) && clock_boot_us() < until && !log->closing)
        (void)clock_wait(&log->changed, &log->lock, until);
    if (log->live_hosts == NULL)
        r = CMDLOG_UNREACHABLE;
    else if (log->live_hosts->version == version)
        r = CMDLOG_END;
    else
        *ret_hosts = copy_hosts(log->live_hosts);
    pthread_mutex_unlock(&log->lock);
    return r;
}

static uint64_t new_lease_id(void)
{
    uint64_t id = 0;
    while (id == 0)
        if (getrandom(&id, sizeof id, 0) != sizeof id || (id &= INT64_MAX) == 0)
            id = 0;
    return id;
}

/* Ends a life by deleting its host key. Idempotent. */
static int delete_host_key(struct cmdlog_etcd *log, struct slice key, uint64_t life, uint64_t until)
{
    REQUIRE(key.len > 0 && life > 0);
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    grpc_frame_begin(&request);
    etcd_compare_created(&request, key, life);
    etcd_branch_delete(&request, ETCD_THEN, key);
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, NULL);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

int membership__expel(struct cmdlog *base, struct slice name, uint64_t life, uint64_t until)
{
    REQUIRE(name.len > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    cmdlog_etcd__key(&key, log, "host", name);
    int r = delete_host_key(log, buf_as_slice(&key), life, until);
    buf_deinit(&key);
    return r;
}

int membership__leave(struct cmdlog *base, uint64_t until)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    pthread_mutex_lock(&log->lock);
    uint64_t life = log->life, lease = log->lease_id;
    if (life != 0)
        membership__record_end(log);
    pthread_mutex_unlock(&log->lock);
    if (life == 0)
        return 0;
    int r = delete_host_key(log, log->key_host, life, until);
    grpc_frame_begin(&request);
    etcd_put_lease(&request, lease);
    grpc_frame_end(&request);
    /* If this fails, the lease expires by itself; no key is attached to it any more. */
    if (r == 0)
        (void)!etcd_client_request(log->client, LANE_CONTROL, ETCD_LEASE_REVOKE, buf_as_slice(&request), until, &reply,
                                   NULL);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

struct registration {
    bool is_own;      /* the host key exists, under the lease of this attempt */
    uint64_t life;    /* of the key's owner */
    uint64_t version; /* of the log key */
    uint64_t revision;
};

static int read_registration(struct slice reply, uint64_t lease, struct registration *ret)
{
    struct etcd_txn_reply txn;
    struct etcd_header header;
    struct etcd_kv kv;
    struct slice response;
    *ret = (struct registration){0};
    int r = etcd_read_txn(reply, &txn);
    if (r == 0)
        r = etcd_read_header(reply, &header);
    if (r < 0)
        return r;
    ret->revision = header.revision;
    ret->is_own = txn.succeeded;
    ret->life = txn.succeeded ? header.revision : 0;
    if ((r = etcd_take_response(&txn.responses, &response)) > 0 && !txn.succeeded &&
        (r = etcd_take_kv(&response, &kv)) > 0) {
        ret->is_own = kv.lease == lease; /* an earlier attempt succeeded, its answer was lost */
        ret->life = kv.created;
    }
    if (r >= 0 && (r = etcd_take_response(&txn.responses, &response)) > 0 && (r = etcd_take_kv(&response, &kv)) > 0)
        ret->version = kv.version;
    return r < 0 ? r : 0;
}

/*
 * Puts the host key if it does not exist, and reads the log key's version. From then on no other
 * life can put the log key.
 */
static int put_host_key(struct cmdlog_etcd *log, struct slice about, uint64_t lease, uint64_t until,
                        struct registration *ret)
{
    REQUIRE(lease > 0); /* 0: the key would never expire */
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    const struct etcd_range host = {.key = log->key_host, .keys_only = true},
                            own = {.key = log->key_log, .keys_only = true};
    grpc_frame_begin(&request);
    etcd_compare_created(&request, log->key_host, 0);
    etcd_branch_put(&request, ETCD_THEN, log->key_host, about, lease);
    etcd_branch_range(&request, ETCD_THEN, &own);
    etcd_branch_range(&request, ETCD_ELSE, &host);
    etcd_branch_range(&request, ETCD_ELSE, &own);
    grpc_frame_end(&request);
    int status,
        r = etcd_client_request(log->client, LANE_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, &status);
    if (r == TL_ERR_IO && status == GRPC_NOT_FOUND)
        r = CMDLOG_UNREACHABLE; /* the lease has expired already */
    if (r == TL_ERR_IO && status == GRPC_RESOURCE_EXHAUSTED)
        r = TL_ERR_NO_SPACE;
    if (r == 0)
        r = read_registration(buf_as_slice(&reply), lease, ret);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

static int grant_lease(struct cmdlog_etcd *log, uint64_t lease, uint64_t until)
{
    REQUIRE(lease > 0); /* 0: etcd chooses one */
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    int status;
    grpc_frame_begin(&request);
    etcd_put_lease_grant(&request, lease, log->ttl_us / TL_SECOND);
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_LEASE_GRANT, buf_as_slice(&request), until, &reply,
                                &status);
    if (r == TL_ERR_IO && status == GRPC_FAILED_PRECONDITION)
        r = 0; /* the lease exists: an earlier attempt succeeded, its answer was lost */
    if (r == TL_ERR_IO && status == GRPC_RESOURCE_EXHAUSTED)
        r = TL_ERR_NO_SPACE;
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

int membership__join(struct cmdlog *base, struct slice about, uint64_t until, uint64_t *ret_life)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    uint64_t lease = new_lease_id();
    struct registration registration;
    int r = membership__leave(base, until);
    uint64_t asked = clock_boot_us();
    if (r == 0)
        r = grant_lease(log, lease, until);
    if (r == 0)
        r = put_host_key(log, about, lease, until, &registration);
    if (r != 0)
        return r;
    if (!registration.is_own)
        return CMDLOG_EXISTS;
    pthread_mutex_lock(&log->lock);
    appender__settle(log, registration.version, registration.revision);
    log->next_number = registration.version + 1;
    log->lease_id = lease;
    log->life = registration.life;
    log->lease_asked = asked;
    log->lease_until = lease_end(asked, log->ttl_us);
    log->keepalive_next = 0;
    log->list_next = 0;
    pthread_cond_broadcast(&log->changed);
    pthread_mutex_unlock(&log->lock);
    etcd_client_wake(log->client);
    *ret_life = registration.life;
    return 0;
}
