/* SPDX-License-Identifier: Apache-2.0 */
/* A client of etcd; see client.h. */
#include "cmdlog/etcd/client.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/types.h"
#include "cmdlog/etcd/messages.h"
#include "cmdlog/etcd/transport.h"
#include "cmdlog/cmdlog.h"

enum {
    MEMBERS_MAX = 16,
    CONNECT_US = 1000000, /* until a connection must have said something */
    ASK_US = 1000000,     /* until a question is asked again */
    QUIET_US = 1000000,   /* a way that is waited on must be heard that often, else it is probed */
    PROBE_US = 1500000,   /* and then must answer within this */
    PAUSE_MIN_US = 20000, /* between attempts, when all members have failed once */
    PAUSE_MAX_US = 1000000,
    TROUBLE_MAX = 512,
    PREFIX_MAX = 512,
};

struct member {
    char *authority;
    struct transport_target targets[4];
    size_t target_count, target;
};

struct way {
    struct channel *channel;
    size_t member;     /* index */
    unsigned failures; /* in a row */
    uint64_t retry;    /* no connection before */
    uint64_t opened;
    const char *give_up; /* why, when it is to be closed */
    struct call probe;
    struct buf probe_request;
};

struct client {
    pthread_t thread;
    pthread_mutex_t lock; /* of `asks`, `trouble` */
    pthread_mutex_t trouble_lock;
    int wake_fd;
    bool started;
    atomic_bool stopping;
    struct member members[MEMBERS_MAX];
    size_t member_count;
    struct way ways[WAY_COUNT];
    struct list *actors;
    struct list asks;
    uint64_t cluster; /* the thread's */
    atomic_uint_fast64_t connections;
    struct buf trouble;
};

struct ask {
    struct list link;
    enum client_way way;
    struct call call; /* first of what the thread uses */
    struct client *client;
    uint64_t until;
    uint64_t retry;
    uint64_t patience;
    struct buf answer;
    bool answered;
    bool done;
    int result;
    int status;
    pthread_cond_t settled;
};

/* --- Trouble ------------------------------------------------------------------------------------------------------- */

void client_note(struct client *client, const char *format, ...)
{
    char text[TROUBLE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&client->trouble_lock);
    buf_clear(&client->trouble);
    buf_append(&client->trouble, text, strlen(text));
    pthread_mutex_unlock(&client->trouble_lock);
}

char *client_trouble(struct client *client)
{
    pthread_mutex_lock(&client->trouble_lock);
    char *text = mem_strdup(client->trouble.len > 0 ? client->trouble.data : "", client->trouble.len);
    pthread_mutex_unlock(&client->trouble_lock);
    return text;
}

uint64_t client_connections(struct client *client)
{
    return atomic_load(&client->connections);
}

bool client_may_retry(int status, struct slice text)
{
    switch (status) {
    case CALL_LOST:
    case GRPC_CANCELLED:
    case GRPC_UNKNOWN:
    case GRPC_DEADLINE_EXCEEDED:
    case GRPC_INTERNAL:
    case GRPC_UNAVAILABLE: return true;
    case GRPC_RESOURCE_EXHAUSTED: /* too many requests at once, or no space */
        return memmem(text.data, text.len, "space", 5) == NULL;
    default: return false;
    }
}

bool client_knows(struct client *client, struct slice reply)
{
    struct etcd_header header;
    if (etcd_read_header(reply, &header) != 0) {
        client_note(client, "etcd's answer cannot be read");
        return false;
    }
    if (client->cluster == 0)
        client->cluster = header.cluster;
    if (header.cluster == client->cluster || header.cluster == 0) /* some answers of 3.4 do not say it */
        return true;
    client_note(client, "a member of etcd belongs to another cluster (%lx) than the first (%lx)",
                (unsigned long)header.cluster, (unsigned long)client->cluster);
    return false;
}

/* --- Ways ---------------------------------------------------------------------------------------------------------- */

void client_fail(struct client *client, enum client_way way, const char *why)
{
    if (client->ways[way].give_up == NULL)
        client->ways[way].give_up = why;
}

/* All members are tried at once, one after the other; when all have failed there is a pause, longer each time. */
static void close_way(struct client *client, struct way *way, const char *why, uint64_t now)
{
    struct channel *channel = way->channel;
    struct member *member = &client->members[way->member];
    char text[TROUBLE_MAX];
    snprintf(text, sizeof text, "%s", why); /* it may be the channel's own */
    client_note(client, "etcd at %s: %s", member->authority, text);
    way->channel = NULL;
    way->give_up = NULL;
    way->failures++;
    uint64_t rounds = way->failures / client->member_count, pause = 0;
    if (rounds > 0)
        pause = rounds > 6 ? PAUSE_MAX_US : PAUSE_MIN_US << (rounds - 1);
    way->retry = now + (pause > PAUSE_MAX_US ? PAUSE_MAX_US : pause);
    if (++member->target >= member->target_count)
        member->target = 0;
    way->member = (way->member + 1) % client->member_count;
    channel_close(channel, text);
}

static bool open_way(struct client *client, struct way *way, uint64_t now)
{
    struct member *member = &client->members[way->member];
    struct transport *transport = transport_open(&member->targets[member->target]);
    if (transport == NULL) {
        close_way(client, way, "no socket", now);
        return false;
    }
    way->channel = channel_open(transport, member->authority);
    way->opened = now;
    atomic_fetch_add(&client->connections, 1);
    return true;
}

bool client_call(struct client *client, enum client_way which, struct call *call, uint64_t now, uint64_t *ret_retry)
{
    struct way *way = &client->ways[which];
    *ret_retry = way->retry > now ? way->retry : now + PAUSE_MIN_US;
    if (way->give_up != NULL || (way->channel == NULL && (now < way->retry || !open_way(client, way, now))))
        return false;
    if (channel_call(way->channel, call))
        return true;
    client_fail(client, which, channel_trouble(way->channel));
    return false;
}

static void probe_answered(struct call *call, struct buf *message)
{
    (void)call;
    (void)message;
}

static void probe_ended(struct call *call, int status, struct slice text)
{
    (void)call;
    (void)status;
    (void)text;
}

/*
 * A member that stands still, or cannot be reached any more, says nothing, which a watch that has nothing to tell does, too: so it is asked
 * something. HTTP/2's own ping would do, but etcd's gRPC takes more than one in five seconds for an attack.
 */
static uint64_t probe(struct client *client, struct way *way, uint64_t now)
{
    uint64_t heard = channel_heard(way->channel), quiet = (heard > way->opened ? heard : way->opened) + QUIET_US;
    if (list_empty(channel_calls(way->channel)) || way->probe.channel != NULL)
        return UINT64_MAX;
    if (now < quiet)
        return quiet;
    way->probe.path = ETCD_RANGE;
    way->probe.request = buf_as_slice(&way->probe_request);
    way->probe.deadline = now + PROBE_US;
    way->probe.on_message = probe_answered;
    way->probe.on_end = probe_ended;
    if (!channel_call(way->channel, &way->probe))
        client_fail(client, (enum client_way)(way - client->ways), channel_trouble(way->channel));
    return way->probe.deadline;
}

/* A call that has no answer in time, or a connection that says nothing, gives its way up. Returns: when to look again. */
static uint64_t watch_way(struct client *client, struct way *way, uint64_t now)
{
    uint64_t next = UINT64_MAX, connected;
    if (way->channel == NULL)
        return next;
    if (way->give_up != NULL) {
        close_way(client, way, way->give_up, now);
        return now;
    }
    if (channel_heard(way->channel) == 0) {
        connected = way->opened + CONNECT_US;
        if (now >= connected)
            client_fail(client, (enum client_way)(way - client->ways), "it says nothing");
        next = connected;
    } else {
        way->failures = 0;
        next = probe(client, way, now);
    }
    list_for_each(link, channel_calls(way->channel))
    {
        struct call *call = list_entry(link, struct call, link);
        if (now >= call->deadline)
            client_fail(client, (enum client_way)(way - client->ways), "no answer in time");
        next = call->deadline < next ? call->deadline : next;
    }
    return way->give_up != NULL ? now : next;
}

/* --- Questions of other threads ---------------------------------------------------------------------------------------- */

/* Under the lock. */
static void settle(struct ask *ask, int result)
{
    ask->done = true;
    ask->result = result;
    if (list_linked(&ask->link))
        list_remove(&ask->link);
    pthread_cond_signal(&ask->settled);
}

static void ask_answered(struct call *call, struct buf *message)
{
    struct ask *ask = call->context;
    buf_clear(&ask->answer);
    buf_slice(&ask->answer, buf_as_slice(message));
    ask->answered = true;
}

static void ask_ended(struct call *call, int status, struct slice text)
{
    struct ask *ask = call->context;
    struct client *client = ask->client;
    uint64_t now = clock_boot_us();
    if (status == GRPC_OK && (!ask->answered || !client_knows(client, buf_as_slice(&ask->answer))))
        status = GRPC_UNKNOWN;
    else if (status != GRPC_OK)
        client_note(client, "etcd says to %s: %.*s (%d)", call->path, SLICE_ARG(text), status);
    pthread_mutex_lock(&client->lock);
    ask->status = status;
    if (status == GRPC_OK)
        settle(ask, 0);
    else if (!client_may_retry(status, text))
        settle(ask, TL_ERR_IO);
    else if (status == GRPC_UNAVAILABLE) /* the member may be cut off from the others */
        client_fail(client, ask->way, "it is not available");
    ask->retry = now + PAUSE_MIN_US;
    pthread_mutex_unlock(&client->lock);
}

/* Begins what is to be asked now. Returns: when to look again. */
static uint64_t run_asks(struct client *client, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    pthread_mutex_lock(&client->lock);
    list_for_each_safe(link, following, &client->asks)
    {
        struct ask *ask = list_entry(link, struct ask, link);
        uint64_t again = ask->until;
        if (now >= ask->until) {
            channel_drop(&ask->call);
            settle(ask, CMDLOG_UNREACHABLE);
            continue;
        }
        if (ask->call.channel == NULL && now >= ask->retry) {
            ask->answered = false;
            ask->call.deadline = now + ask->patience;
            if (client_call(client, ask->way, &ask->call, now, &again))
                ask->patience *= 2;
            else
                ask->retry = again;
        } else if (ask->call.channel == NULL) {
            again = ask->retry;
        }
        next = again < next ? again : next;
        next = ask->until < next ? ask->until : next;
    }
    pthread_mutex_unlock(&client->lock);
    return next;
}

int client_ask(struct client *client, enum client_way way, const char *path, struct slice request, uint64_t until,
               struct buf *reply, int *ret_status)
{
    struct ask ask = {.way = way,
                      .client = client,
                      .until = until,
                      .patience = ASK_US,
                      .answer = BUF_INIT(CHANNEL_MESSAGE_MAX),
                      .call = {.path = path, .request = request, .on_message = ask_answered, .on_end = ask_ended}};
    ask.call.context = &ask;
    pthread_cond_init(&ask.settled, NULL);
    pthread_mutex_lock(&client->lock);
    list_append(&client->asks, &ask.link);
    pthread_mutex_unlock(&client->lock);
    client_wake(client);
    pthread_mutex_lock(&client->lock);
    while (!ask.done)
        pthread_cond_wait(&ask.settled, &client->lock);
    pthread_mutex_unlock(&client->lock);
    pthread_cond_destroy(&ask.settled);
    if (ask.result == 0)
        buf_slice(reply, buf_as_slice(&ask.answer));
    buf_deinit(&ask.answer);
    if (ret_status != NULL)
        *ret_status = ask.status;
    return ask.result;
}

/* --- The thread ----------------------------------------------------------------------------------------------------- */

void client_wake(struct client *client)
{
    uint64_t one = 1;
    if (write(client->wake_fd, &one, sizeof one) < 0)
        return; /* it is awake: the counter is full */
}

static uint64_t run_all(struct client *client, uint64_t now)
{
    uint64_t next = run_asks(client, now);
    list_for_each_safe(link, following, client->actors)
    {
        struct client_actor *actor = list_entry(link, struct client_actor, link);
        uint64_t wanted = actor->run(actor, now);
        next = wanted < next ? wanted : next;
    }
    for (int i = 0; i < WAY_COUNT; i++) {
        uint64_t wanted = watch_way(client, &client->ways[i], now);
        next = wanted < next ? wanted : next;
    }
    return next;
}

static void work(struct client *client, int i, short events, uint64_t now)
{
    struct way *way = &client->ways[i];
    if (way->channel != NULL && channel_work(way->channel, events) != 0)
        close_way(client, way, channel_trouble(way->channel), now);
}

static int timeout_until(uint64_t next, uint64_t now)
{
    if (next <= now)
        return 0;
    return next - now > 60 * TL_SECOND ? 60000 : (int)((next - now + 999) / 1000);
}

static void wait_for_events(struct client *client, uint64_t next, uint64_t now)
{
    struct pollfd fds[WAY_COUNT + 1] = {{.fd = client->wake_fd, .events = POLLIN}};
    int ways[WAY_COUNT + 1];
    nfds_t count = 1;
    uint64_t woken;
    for (int i = 0; i < WAY_COUNT; i++)
        if (client->ways[i].channel != NULL) {
            fds[count] = (struct pollfd){.fd = channel_fd(client->ways[i].channel),
                                         .events = channel_wants(client->ways[i].channel)};
            ways[count++] = i;
        }
    if (poll(fds, count, timeout_until(next, now)) <= 0)
        return;
    if (fds[0].revents != 0 && read(client->wake_fd, &woken, sizeof woken) < 0)
        return;
    now = clock_boot_us();
    for (nfds_t i = 1; i < count; i++)
        if (fds[i].revents != 0)
            work(client, ways[i], fds[i].revents, now);
}

static void *run(void *context)
{
    struct client *client = context;
    while (!atomic_load(&client->stopping)) {
        uint64_t now = clock_boot_us(), next = run_all(client, now);
        for (int i = 0; i < WAY_COUNT; i++)
            work(client, i, 0, now);
        wait_for_events(client, next, now);
    }
    mem_thread_end();
    return NULL;
}

/* --- Opening -------------------------------------------------------------------------------------------------------- */

static int fail(char **ret_reason, const char *format, ...) TL_PRINTF(2, 3);
static int fail(char **ret_reason, const char *format, ...)
{
    char text[TROUBLE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *ret_reason = mem_strdup(text, strlen(text));
    return tl_trace(TL_ERR_IO);
}

/* Names are looked up here, once: on the thread that would hold up leases. */
static int add_member(struct client *client, struct slice authority, char **ret_reason)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    size_t colon = authority.len;
    while (colon > 0 && authority.data[colon - 1] != ':')
        colon--;
    if (colon <= 1 || colon == authority.len || memchr(authority.data, '@', authority.len) != NULL)
        return fail(ret_reason, "[%.*s] is not HOST:PORT", SLICE_ARG(authority));
    if (client->member_count == MEMBERS_MAX)
        return fail(ret_reason, "more than %d members of etcd", MEMBERS_MAX);
    struct slice host = slice_make(authority.data, colon - 1);
    if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
        host = slice_make(host.data + 1, host.len - 2);
    tl_cleanup(mem_freep) char *name = mem_strdup(host.data, host.len),
                               *port = mem_strdup(authority.data + colon, authority.len - colon);
    int r = getaddrinfo(name, port, &hints, &found);
    if (r != 0)
        return fail(ret_reason, "[%.*s] is not found: %s", SLICE_ARG(authority), gai_strerror(r));
    struct member *member = &client->members[client->member_count++];
    member->authority = mem_strdup(authority.data, authority.len);
    for (struct addrinfo *at = found; at != NULL && member->target_count < 4; at = at->ai_next) {
        struct transport_target *target = &member->targets[member->target_count++];
        memcpy(&target->address, at->ai_addr, at->ai_addrlen);
        target->len = at->ai_addrlen;
    }
    freeaddrinfo(found);
    return 0;
}

int client_read_prefix(struct slice url, struct slice *ret_prefix, char **ret_reason)
{
    struct slice rest = slice_from_offset(url, slice_find_byte(url, '/'));
    while (slice_starts_with(rest, SLICE_LIT("//")))
        rest = slice_from_offset(slice_from_offset(rest, 2), slice_find_byte(slice_from_offset(rest, 2), '/'));
    *ret_prefix = slice_from_offset(rest, 1);
    if (ret_prefix->len == 0 || ret_prefix->len > PREFIX_MAX || ret_prefix->data[ret_prefix->len - 1] == '/')
        return fail(ret_reason, "[%.*s] names no prefix, as in http://HOST:PORT/tidelock", SLICE_ARG(url));
    return 0;
}

static int read_members(struct client *client, struct slice url, char **ret_reason)
{
    static const struct slice scheme = SLICE_LIT("http://");
    struct slice rest = url;
    for (;;) {
        if (!slice_starts_with(rest, scheme))
            return fail(ret_reason, "[%.*s] is not http://HOST:PORT,http://HOST:PORT/PREFIX", SLICE_ARG(url));
        rest = slice_from_offset(rest, scheme.len);
        size_t len = 0;
        while (len < rest.len && rest.data[len] != ',' && rest.data[len] != '/')
            len++;
        int r = add_member(client, slice_make(rest.data, len), ret_reason);
        if (r < 0)
            return r;
        rest = slice_from_offset(rest, len);
        if (!slice_take_byte(&rest, ','))
            break;
    }
    return 0;
}

static void free_client(struct client *client)
{
    for (size_t i = 0; i < client->member_count; i++)
        mem_free(client->members[i].authority);
    for (int i = 0; i < WAY_COUNT; i++)
        buf_deinit(&client->ways[i].probe_request);
    if (client->wake_fd >= 0)
        close(client->wake_fd);
    buf_deinit(&client->trouble);
    pthread_mutex_destroy(&client->lock);
    pthread_mutex_destroy(&client->trouble_lock);
    mem_free(client);
}

int client_open(struct slice url, struct client **ret_client, char **ret_reason)
{
    struct client *client = mem_zalloc(sizeof *client);
    pthread_mutex_init(&client->lock, NULL);
    pthread_mutex_init(&client->trouble_lock, NULL);
    client->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    client->trouble = BUF_INIT(TROUBLE_MAX);
    list_init(&client->asks);
    for (int i = 0; i < WAY_COUNT; i++) {
        client->ways[i].probe_request = BUF_INIT(BUF_UNLIMITED);
        call_frame(&client->ways[i].probe_request);
        etcd_put_range(&client->ways[i].probe_request,
                       &(struct etcd_range){.key = SLICE_LIT("\0"), .serializable = true, .count_only = true});
        call_frame_end(&client->ways[i].probe_request);
    }
    int r = read_members(client, url, ret_reason);
    if (r == 0 && client->wake_fd < 0)
        r = fail(ret_reason, "no descriptor is free");
    if (r == 0)
        *ret_client = client;
    else
        free_client(client);
    return r;
}

int client_start(struct client *client, struct list *actors, char **ret_reason)
{
    client->actors = actors;
    client->started = pthread_create(&client->thread, NULL, run, client) == 0;
    return client->started ? 0 : fail(ret_reason, "no thread can be made");
}

void client_close(struct client *client)
{
    if (client == NULL)
        return;
    atomic_store(&client->stopping, true);
    client_wake(client);
    if (client->started)
        pthread_join(client->thread, NULL);
    REQUIRE(list_empty(&client->asks));
    for (int i = 0; i < WAY_COUNT; i++) {
        struct channel *channel = client->ways[i].channel;
        client->ways[i].channel = NULL;
        channel_close(channel, "closing");
    }
    free_client(client);
}
