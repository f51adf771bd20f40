/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of hosts: the key under its lease, who else is in, and how much room there is; README.md, "A life". */
#include <sys/random.h>

#include "base/clock.h"
#include "base/types.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/messages.h"

enum {
    KEEPS = 6,             /* a lease is asked for that often while it lasts */
    KEEP_PAUSE_US = 50000, /* after one that failed */
    LISTS = 3,             /* who is in is asked that often within a lease, should a bell not have rung */
    BELL_PAUSE_US = 200000,
    STATUS_US = 5000000,
};

/* A host counts itself in for nine tenths of what it was given, from before it asked. */
static uint64_t counted(uint64_t asked, uint64_t ttl_us)
{
    return asked + ttl_us / 10 * 9;
}

void lives__over(struct cmdlog_etcd *log)
{
    log->life = 0;
    log->lease_id = 0;
    log->lease_until = 0;
    log->list_next = 0;
    pthread_cond_broadcast(&log->changed);
}

/* --- Keeping it alive ------------------------------------------------------------------------------------------------ */

static void keep_answered(struct call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    struct etcd_lease_reply reply;
    if (!client_knows(log->client, buf_as_slice(message)) || etcd_read_lease(buf_as_slice(message), &reply) != 0)
        return;
    log->keep_ttl_s = reply.ttl_s;
    log->keep_answered = true;
}

static void keep_ended(struct call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    uint64_t now = clock_boot_us();
    if (status != GRPC_OK && status != CALL_LOST)
        client_note(log->client, "etcd says to a lease: %.*s (%d)", SLICE_ARG(text), status);
    pthread_mutex_lock(&log->lock);
    if (!log->keep_answered) {
        log->keep_next = now + KEEP_PAUSE_US;
        if (status == GRPC_UNAVAILABLE)
            client_fail(log->client, WAY_CONTROL, "it is not available");
    } else if (log->keep_lease == log->lease_id && log->keep_ttl_s <= 0) {
        lives__over(log);
    } else if (log->keep_lease == log->lease_id) {
        uint64_t ttl_us = (uint64_t)log->keep_ttl_s * TL_SECOND;
        log->lease_asked = log->keep_asked;
        log->lease_until = counted(log->keep_asked, ttl_us < log->ttl_us ? ttl_us : log->ttl_us);
    }
    pthread_mutex_unlock(&log->lock);
}

static uint64_t run_keep(struct cmdlog_etcd *log, uint64_t now)
{
    if (log->lease_id == 0 || log->life == 0 || log->keep_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->keep_next)
        return log->keep_next;
    buf_clear(&log->keep_request);
    call_frame(&log->keep_request);
    etcd_put_lease(&log->keep_request, log->lease_id);
    call_frame_end(&log->keep_request);
    log->keep_call = (struct call){.path = ETCD_LEASE_KEEP_ALIVE,
                                   .wants_leader = true,
                                   .context = log,
                                   .on_message = keep_answered,
                                   .on_end = keep_ended};
    log->keep_call.request = buf_as_slice(&log->keep_request);
    log->keep_call.deadline = now + log->ttl_us / 4;
    log->keep_answered = false;
    log->keep_lease = log->lease_id;
    log->keep_asked = clock_boot_us();
    log->keep_next = now + log->ttl_us / KEEPS;
    uint64_t retry = log->keep_next;
    if (!client_call(log->client, WAY_CONTROL, &log->keep_call, now, &retry))
        log->keep_next = retry;
    return log->keep_next;
}

/* --- Who is in -------------------------------------------------------------------------------------------------------- */

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

static struct slice keep_bytes(char **room, struct slice bytes)
{
    struct slice kept = slice_make(*room, bytes.len);
    if (bytes.len > 0)
        memcpy(*room, bytes.data, bytes.len);
    *room += bytes.len;
    return kept;
}

static struct cmdlog_hosts *copy_hosts(const struct cmdlog_hosts *from)
{
    size_t bytes = 0;
    for (size_t i = 0; i < from->count; i++)
        bytes += from->hosts[i].name.len + from->hosts[i].about.len;
    struct cmdlog_hosts *hosts = new_hosts(from->count, bytes);
    char *room = (char *)&hosts->hosts[hosts->count];
    hosts->version = from->version;
    for (size_t i = 0; i < from->count; i++)
        hosts->hosts[i] = (struct cmdlog_host){keep_bytes(&room, from->hosts[i].name), from->hosts[i].life,
                                            keep_bytes(&room, from->hosts[i].about)};
    return hosts;
}

/* Reads the answer to a Range of hosts' keys, which come by name. Returns: NULL where it cannot be read. */
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
    char *room = (char *)&hosts->hosts[count];
    for (size_t i = 0; i < count && etcd_take_kv(&reply, &kv) > 0; i++)
        hosts->hosts[i] = (struct cmdlog_host){keep_bytes(&room, slice_from_offset(kv.key, log->hosts.len)), kv.created,
                                            keep_bytes(&room, kv.value)};
    return hosts;
}

static void list_answered(struct call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    buf_clear(&log->list_answer);
    buf_slice(&log->list_answer, buf_as_slice(message));
    log->list_answered = true;
}

static void list_ended(struct call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    struct cmdlog_hosts *hosts = NULL;
    (void)text;
    if (status == GRPC_OK && log->list_answered && client_knows(log->client, buf_as_slice(&log->list_answer)))
        hosts = read_hosts(log, buf_as_slice(&log->list_answer));
    pthread_mutex_lock(&log->lock);
    if (hosts == NULL) {
        log->list_next = clock_boot_us() + BELL_PAUSE_US;
    } else if (same_hosts(log->known, hosts)) {
        mem_free(hosts);
    } else {
        hosts->version = log->known == NULL ? 1 : log->known->version + 1;
        mem_free(log->known);
        log->known = hosts;
        pthread_cond_broadcast(&log->changed);
    }
    pthread_mutex_unlock(&log->lock);
}

static uint64_t run_list(struct cmdlog_etcd *log, uint64_t now)
{
    if (log->list_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->list_next)
        return log->list_next;
    log->list_answered = false;
    log->list_next = now + log->ttl_us / LISTS;
    log->list_call.deadline = now + CONTROL_US;
    uint64_t retry = log->list_next;
    if (!client_call(log->client, WAY_CONTROL, &log->list_call, now, &retry))
        log->list_next = retry;
    return log->list_next;
}

/* A watch of the hosts' keys is only a bell: what it tells is not read, since a member may leave out a delete (etcd #18089, #19179). */
static void bell_rang(struct call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    (void)message;
    pthread_mutex_lock(&log->lock);
    log->list_next = 0;
    pthread_mutex_unlock(&log->lock);
}

static void bell_ended(struct call *call, int status, struct slice text)
{
    struct cmdlog_etcd *log = call->context;
    (void)status;
    (void)text;
    pthread_mutex_lock(&log->lock);
    log->bell_next = clock_boot_us() + BELL_PAUSE_US;
    log->list_next = 0;
    pthread_mutex_unlock(&log->lock);
}

static uint64_t run_bell(struct cmdlog_etcd *log, uint64_t now)
{
    if (log->bell_call.channel != NULL)
        return UINT64_MAX;
    if (now < log->bell_next)
        return log->bell_next;
    log->bell_next = now + BELL_PAUSE_US;
    if (client_call(log->client, WAY_CONTROL, &log->bell_call, now, &log->bell_next))
        log->list_next = 0;
    return log->bell_next;
}

/* --- Room ------------------------------------------------------------------------------------------------------------- */

enum { TIGHT_PERCENT = 80, FULL_PERCENT = 90 };

static void status_answered(struct call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    struct etcd_status status;
    if (!client_knows(log->client, buf_as_slice(message)) || etcd_read_status(buf_as_slice(message), &status) != 0)
        return;
    pthread_mutex_lock(&log->lock);
    struct cmdlog_space space = {.used = status.used > 0 ? status.used : status.size,
                              .size = status.size,
                              .quota =
                                  status.quota > 0 && status.quota < (uint64_t)1 << 60 ? status.quota : log->quota};
    space.full = log->alarmed || space.used / FULL_PERCENT >= space.quota / 100;
    space.tight = space.full || space.used / TIGHT_PERCENT >= space.quota / 100;
    log->space = space;
    pthread_mutex_unlock(&log->lock);
}

static void alarm_answered(struct call *call, struct buf *message)
{
    struct cmdlog_etcd *log = call->context;
    bool alarmed;
    if (!client_knows(log->client, buf_as_slice(message)) || etcd_read_alarms(buf_as_slice(message), &alarmed) != 0)
        return;
    pthread_mutex_lock(&log->lock);
    log->alarmed = alarmed;
    pthread_mutex_unlock(&log->lock);
}

static void look_ended(struct call *call, int status, struct slice text)
{
    (void)call;
    (void)status;
    (void)text;
}

static uint64_t run_status(struct cmdlog_etcd *log, uint64_t now)
{
    uint64_t retry;
    if (now < log->status_next)
        return log->status_next;
    log->status_next = now + STATUS_US;
    log->status_call.deadline = log->alarm_call.deadline = now + CONTROL_US;
    if ((log->alarm_call.channel == NULL && !client_call(log->client, WAY_CONTROL, &log->alarm_call, now, &retry)) ||
        (log->status_call.channel == NULL && !client_call(log->client, WAY_CONTROL, &log->status_call, now, &retry)))
        log->status_next = retry;
    return log->status_next;
}

/* --- The actor -------------------------------------------------------------------------------------------------------- */

static uint64_t run(struct client_actor *actor, uint64_t now)
{
    struct cmdlog_etcd *log = container_of(actor, struct cmdlog_etcd, keeper);
    uint64_t next = UINT64_MAX;
    uint64_t (*const parts[])(struct cmdlog_etcd *, uint64_t) = {run_keep, run_bell, run_list, run_status};
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t wanted = parts[i](log, now);
        next = wanted < next ? wanted : next;
    }
    pthread_mutex_unlock(&log->lock);
    return next;
}

void lives__init(struct cmdlog_etcd *log)
{
    struct buf *requests[] = {&log->keep_request, &log->list_request,   &log->bell_request,
                              &log->list_answer,  &log->status_request, &log->alarm_request};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        *requests[i] = BUF_INIT(BUF_UNLIMITED);
    call_frame(&log->list_request);
    etcd_put_range(&log->list_request, &(struct etcd_range){.key = log->hosts, .end = log->hosts_end});
    call_frame_end(&log->list_request);
    call_frame(&log->bell_request);
    etcd_put_watch(&log->bell_request, log->hosts, log->hosts_end, 0);
    call_frame_end(&log->bell_request);
    call_frame(&log->status_request);
    call_frame_end(&log->status_request);
    call_frame(&log->alarm_request);
    call_frame_end(&log->alarm_request);
    log->list_call = (struct call){.path = ETCD_RANGE,
                                   .request = buf_as_slice(&log->list_request),
                                   .context = log,
                                   .on_message = list_answered,
                                   .on_end = list_ended};
    log->bell_call = (struct call){.path = ETCD_WATCH,
                                   .request = buf_as_slice(&log->bell_request),
                                   .stays_open = true,
                                   .wants_leader = true,
                                   .deadline = UINT64_MAX,
                                   .context = log,
                                   .on_message = bell_rang,
                                   .on_end = bell_ended};
    log->status_call = (struct call){.path = ETCD_STATUS,
                                     .request = buf_as_slice(&log->status_request),
                                     .context = log,
                                     .on_message = status_answered,
                                     .on_end = look_ended};
    log->alarm_call = (struct call){.path = ETCD_ALARM,
                                    .request = buf_as_slice(&log->alarm_request),
                                    .context = log,
                                    .on_message = alarm_answered,
                                    .on_end = look_ended};
    log->keeper.run = run;
    list_append(&log->actors, &log->keeper.link);
}

void lives__deinit(struct cmdlog_etcd *log)
{
    struct buf *requests[] = {&log->keep_request, &log->list_request,   &log->bell_request,
                              &log->list_answer,  &log->status_request, &log->alarm_request};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        buf_deinit(requests[i]);
    mem_free(log->known);
}

/* --- What other threads ask ------------------------------------------------------------------------------------------- */

void lives__lease(struct cmdlog *base, struct cmdlog_lease *ret_lease)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    pthread_mutex_lock(&log->lock);
    *ret_lease = (struct cmdlog_lease){.life = log->life, .until = log->lease_until, .asked = log->lease_asked};
    pthread_mutex_unlock(&log->lock);
}

int lives__list_hosts(struct cmdlog *base, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    int r = 0;
    pthread_mutex_lock(&log->lock);
    while ((log->known == NULL || log->known->version == version) && clock_boot_us() < until && !log->closing)
        (void)clock_wait(&log->changed, &log->lock, until);
    if (log->known == NULL)
        r = CMDLOG_UNREACHABLE;
    else if (log->known->version == version)
        r = CMDLOG_END;
    else
        *ret_hosts = copy_hosts(log->known);
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

/* Ends the life that a key stands for. Done twice it is done once. */
static int end_life(struct cmdlog_etcd *log, struct slice key, uint64_t life, uint64_t until)
{
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    call_frame(&request);
    etcd_compare_created(&request, key, life);
    etcd_branch_delete(&request, ETCD_THEN, key);
    call_frame_end(&request);
    int r = client_ask(log->client, WAY_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, NULL);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

int lives__expel(struct cmdlog *base, struct slice name, uint64_t life, uint64_t until)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    cmdlog_etcd__key(&key, log, "host", name);
    int r = end_life(log, buf_as_slice(&key), life, until);
    buf_deinit(&key);
    return r;
}

int lives__leave(struct cmdlog *base, uint64_t until)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    pthread_mutex_lock(&log->lock);
    uint64_t life = log->life, lease = log->lease_id;
    if (life != 0)
        lives__over(log);
    pthread_mutex_unlock(&log->lock);
    if (life == 0)
        return 0;
    int r = end_life(log, log->key_host, life, until);
    call_frame(&request);
    etcd_put_lease(&request, lease);
    call_frame_end(&request);
    /* The lease holds nothing more, and ends by itself where this fails. */
    if (r == 0)
        (void)!client_ask(log->client, WAY_CONTROL, ETCD_LEASE_REVOKE, buf_as_slice(&request), until, &reply, NULL);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

struct registration {
    bool mine;        /* the key is there under the lease that was given for this */
    uint64_t life;    /* of who has it */
    uint64_t version; /* of the log's key */
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
    ret->mine = txn.succeeded;
    ret->life = txn.succeeded ? header.revision : 0;
    if ((r = etcd_take_response(&txn.responses, &response)) > 0 && !txn.succeeded &&
        (r = etcd_take_kv(&response, &kv)) > 0) {
        ret->mine = kv.lease == lease; /* of an attempt whose answer was lost */
        ret->life = kv.created;
    }
    if (r >= 0 && (r = etcd_take_response(&txn.responses, &response)) > 0 && (r = etcd_take_kv(&response, &kv)) > 0)
        ret->version = kv.version;
    return r < 0 ? r : 0;
}

/* Puts the host's key, if there is none, and reads how far the log's key is, which nobody else puts from then on. */
static int put_key(struct cmdlog_etcd *log, struct slice about, uint64_t lease, uint64_t until, struct registration *ret)
{
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    const struct etcd_range host = {.key = log->key_host, .keys_only = true},
                            own = {.key = log->key_log, .keys_only = true};
    call_frame(&request);
    etcd_compare_created(&request, log->key_host, 0);
    etcd_branch_put(&request, ETCD_THEN, log->key_host, about, lease);
    etcd_branch_range(&request, ETCD_THEN, &own);
    etcd_branch_range(&request, ETCD_ELSE, &host);
    etcd_branch_range(&request, ETCD_ELSE, &own);
    call_frame_end(&request);
    int status, r = client_ask(log->client, WAY_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, &status);
    if (r == TL_ERR_IO && status == GRPC_NOT_FOUND)
        r = CMDLOG_UNREACHABLE; /* the lease is over already */
    if (r == 0)
        r = read_registration(buf_as_slice(&reply), lease, ret);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

static int grant(struct cmdlog_etcd *log, uint64_t lease, uint64_t until)
{
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    int status;
    call_frame(&request);
    etcd_put_lease_grant(&request, lease, log->ttl_us / TL_SECOND);
    call_frame_end(&request);
    int r = client_ask(log->client, WAY_CONTROL, ETCD_LEASE_GRANT, buf_as_slice(&request), until, &reply, &status);
    if (r == TL_ERR_IO && status == GRPC_FAILED_PRECONDITION)
        r = 0; /* there is one of this number: an attempt whose answer was lost */
    buf_deinit(&request);
    buf_deinit(&reply);
    return r;
}

int lives__join(struct cmdlog *base, struct slice about, uint64_t until, uint64_t *ret_life)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    uint64_t lease = new_lease_id();
    struct registration registration;
    int r = lives__leave(base, until);
    uint64_t asked = clock_boot_us();
    if (r == 0)
        r = grant(log, lease, until);
    if (r == 0)
        r = put_key(log, about, lease, until, &registration);
    if (r != 0)
        return r;
    if (!registration.mine)
        return CMDLOG_EXISTS;
    pthread_mutex_lock(&log->lock);
    appender__settle(log, registration.version, registration.revision);
    log->next_number = registration.version + 1;
    log->lease_id = lease;
    log->life = registration.life;
    log->lease_asked = asked;
    log->lease_until = counted(asked, log->ttl_us);
    log->keep_next = 0;
    log->list_next = 0;
    pthread_cond_broadcast(&log->changed);
    pthread_mutex_unlock(&log->lock);
    client_wake(log->client);
    *ret_life = registration.life;
    return 0;
}
