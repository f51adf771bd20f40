/* SPDX-License-Identifier: Apache-2.0 */
/* A client of an etcd cluster; see client.h. */
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
#include "base/mutex.h"
#include "base/thread.h"
#include "base/types.h"
#include "cmdlog/etcd/messages.h"
#include "cmdlog/etcd/transport.h"
#include "cmdlog/cmdlog.h"

enum {
    MEMBERS_MAX = 16,
    CONNECT_US = 1000000, /* a new connection must deliver its first bytes within this */
    REQUEST_US = 1000000, /* a request is sent again after this, doubled each time */
    IDLE_US = 1000000,    /* a lane with calls is probed after this time without input */
    PROBE_US = 1500000,   /* timeout of a probe */
    RETRY_MIN_US = 20000, /* pause after all members have failed once */
    RETRY_MAX_US = 1000000,
    ERROR_TEXT_MAX = 512,
    PREFIX_MAX = 512,
};

struct etcd_member {
    char *authority, *host;
    struct transport_target targets[4];
    size_t target_count, target;
};

struct lane {
    struct channel *channel;
    size_t member;     /* index into client->members */
    unsigned failures; /* consecutive */
    uint64_t retry;    /* no connection attempt before this time */
    uint64_t opened;
    const char *failure; /* why the connection is to be closed; NULL: it is not */
    struct grpc_call probe;
    struct buf probe_request;
};

struct etcd_client {
    struct thread thread;
    pthread_t self;       /* the thread's own; set by it */
    pthread_mutex_t lock; /* guards `requests` */
    pthread_mutex_t error_lock;
    int wake_fd;
    atomic_bool stopping;
    struct etcd_member members[MEMBERS_MAX];
    size_t member_count;
    bool uses_tls; /* for all members */
    struct etcd_tls_files files;
    struct lane lanes[LANE_COUNT];
    struct list *tasks;
    struct list requests;
    uint64_t cluster; /* identity of the etcd cluster; 0: unknown; the client thread's */
    atomic_uint_fast64_t connections;
    struct buf last_error;
};

struct pending_request {
    struct list link;
    enum etcd_client_lane lane;
    struct grpc_call call; /* with all below, the client thread's until `done` */
    struct etcd_client *client;
    uint64_t until;
    uint64_t retry;
    uint64_t timeout;
    struct buf answer;
    bool answered;
    bool done;
    int result;
    int status;
    pthread_cond_t finished;
};

/* --- The last error ----------------------------------------------------------------------------------------------- */

void etcd_client_set_error(struct etcd_client *client, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&client->error_lock);
    buf_clear(&client->last_error);
    buf_append(&client->last_error, text, strlen(text));
    pthread_mutex_unlock(&client->error_lock);
}

char *etcd_client_last_error(struct etcd_client *client)
{
    pthread_mutex_lock(&client->error_lock);
    char *text = mem_strdup(client->last_error.len > 0 ? client->last_error.data : "", client->last_error.len);
    pthread_mutex_unlock(&client->error_lock);
    return text;
}

uint64_t etcd_client_connections(struct etcd_client *client)
{
    return atomic_load(&client->connections);
}

bool etcd_client_may_retry(int status, struct slice text)
{
    switch (status) {
    case CALL_LOST:
    case GRPC_CANCELLED:
    case GRPC_UNKNOWN:
    case GRPC_DEADLINE_EXCEEDED:
    case GRPC_INTERNAL:
    case GRPC_UNAVAILABLE: return true;
    case GRPC_RESOURCE_EXHAUSTED: /* rate limit, or no space */ return memmem(text.data, text.len, "space", 5) == NULL;
    default: return false;
    }
}

bool etcd_client_same_cluster(struct etcd_client *client, struct slice reply)
{
    struct etcd_header header;
    if (etcd_read_header(reply, &header) != 0) {
        etcd_client_set_error(client, "etcd's answer cannot be read");
        return false;
    }
    if (client->cluster == 0)
        client->cluster = header.cluster;
    if (header.cluster == client->cluster || header.cluster == 0) /* some replies of 3.4 omit it */
        return true;
    etcd_client_set_error(client, "a member of etcd belongs to another cluster (%lx) than the first (%lx)",
                          (unsigned long)header.cluster, (unsigned long)client->cluster);
    return false;
}

/* Lanes, connections and calls are the thread's alone. */
static bool is_own_thread(const struct etcd_client *client)
{
    return pthread_equal(client->self, pthread_self());
}

/* --- Lanes -------------------------------------------------------------------------------------------------------- */

void etcd_client_fail_lane(struct etcd_client *client, enum etcd_client_lane lane, const char *why)
{
    REQUIRE(lane < LANE_COUNT && why != NULL); /* NULL: it has not failed */
    if (client->lanes[lane].failure == NULL)
        client->lanes[lane].failure = why;
}

/*
 * Closes the lane's connection and selects the next member. Members are tried without a pause until
 * all have failed; then pauses grow with each round.
 */
static void close_lane(struct etcd_client *client, struct lane *lane, const char *why, uint64_t now)
{
    REQUIRE(is_own_thread(client) && lane->channel != NULL && why != NULL);
    struct channel *channel = lane->channel;
    struct etcd_member *member = &client->members[lane->member];
    char text[ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", why); /* a copy: `why` may be the channel's own text */
    etcd_client_set_error(client, "etcd at %s: %s", member->authority, text);
    lane->channel = NULL;
    lane->failure = NULL;
    lane->failures++;
    uint64_t rounds = lane->failures / client->member_count, pause = 0;
    if (rounds > 0)
        pause = rounds > 6 ? RETRY_MAX_US : RETRY_MIN_US << (rounds - 1);
    lane->retry = now + (pause > RETRY_MAX_US ? RETRY_MAX_US : pause);
    if (++member->target >= member->target_count)
        member->target = 0;
    lane->member = (lane->member + 1) % client->member_count;
    channel_close(channel, text);
}

static void open_lane(struct etcd_client *client, struct lane *lane, uint64_t now)
{
    REQUIRE(is_own_thread(client) && lane->channel == NULL && lane->failure == NULL);
    struct etcd_member *member = &client->members[lane->member];
    struct transport *transport =
        transport_open(&member->targets[member->target], client->uses_tls ? &client->files : NULL);
    lane->channel = channel_open(transport, member->authority);
    lane->opened = now;
    atomic_fetch_add(&client->connections, 1);
}

bool etcd_client_call(struct etcd_client *client, enum etcd_client_lane which, struct grpc_call *call, uint64_t now,
                      uint64_t *ret_retry)
{
    REQUIRE(is_own_thread(client) && which < LANE_COUNT);
    struct lane *lane = &client->lanes[which];
    *ret_retry = lane->retry > now ? lane->retry : now + RETRY_MIN_US;
    if (lane->failure != NULL || (lane->channel == NULL && now < lane->retry))
        return false;
    if (lane->channel == NULL)
        open_lane(client, lane, now);
    if (channel_call(lane->channel, call))
        return true;
    etcd_client_fail_lane(client, which, channel_error(lane->channel));
    return false;
}

static void probe_answered(struct grpc_call *call, struct buf *message)
{
    (void)call;
    (void)message;
}

static void probe_ended(struct grpc_call *call, int status, struct slice text)
{
    (void)call;
    (void)status;
    (void)text;
}

/*
 * Probes a silent connection with a request. A stalled or unreachable member is silent, but so is a
 * watch without events. HTTP/2's ping would serve, but etcd's gRPC takes more than one in five
 * seconds as an attack.
 */
static uint64_t probe_lane(struct etcd_client *client, struct lane *lane, uint64_t now)
{
    REQUIRE(is_own_thread(client) && lane->channel != NULL);
    uint64_t last_received = channel_last_received(lane->channel),
             quiet = (last_received > lane->opened ? last_received : lane->opened) + IDLE_US;
    if (list_empty(channel_calls(lane->channel)) || lane->probe.channel != NULL)
        return UINT64_MAX;
    if (now < quiet)
        return quiet;
    lane->probe.path = ETCD_RANGE;
    lane->probe.request = buf_as_slice(&lane->probe_request);
    lane->probe.deadline = now + PROBE_US;
    lane->probe.on_message = probe_answered;
    lane->probe.on_end = probe_ended;
    if (!channel_call(lane->channel, &lane->probe))
        etcd_client_fail_lane(client, (enum etcd_client_lane)(lane - client->lanes), channel_error(lane->channel));
    return lane->probe.deadline;
}

/* Fails the lane if a call or the connection has timed out. Returns: when to check again. */
static uint64_t check_lane(struct etcd_client *client, struct lane *lane, uint64_t now)
{
    REQUIRE(is_own_thread(client));
    uint64_t next = UINT64_MAX, connected;
    if (lane->channel == NULL)
        return next;
    if (lane->failure != NULL) {
        close_lane(client, lane, lane->failure, now);
        return now;
    }
    if (channel_last_received(lane->channel) == 0) {
        connected = lane->opened + CONNECT_US;
        if (now >= connected)
            etcd_client_fail_lane(client, (enum etcd_client_lane)(lane - client->lanes), "it says nothing");
        next = connected;
    } else {
        lane->failures = 0;
        next = probe_lane(client, lane, now);
    }
    list_for_each(link, channel_calls(lane->channel))
    {
        struct grpc_call *call = list_entry(link, struct grpc_call, link);
        if (now >= call->deadline)
            etcd_client_fail_lane(client, (enum etcd_client_lane)(lane - client->lanes), "no answer in time");
        next = call->deadline < next ? call->deadline : next;
    }
    return lane->failure != NULL ? now : next;
}

/* --- Requests of other threads ------------------------------------------------------------------------------------ */

/* Requires: the lock. */
static void finish_request(struct pending_request *pending, int result)
{
    REQUIRE(mutex_is_held(&pending->client->lock));
    INSIST(!pending->done); /* its thread has returned */
    pending->done = true;
    pending->result = result;
    if (list_linked(&pending->link))
        list_remove(&pending->link);
    pthread_cond_signal(&pending->finished);
}

static void request_answered(struct grpc_call *call, struct buf *message)
{
    struct pending_request *pending = call->context;
    REQUIRE(pending->call.channel != NULL && !pending->done);
    buf_clear(&pending->answer);
    buf_slice(&pending->answer, buf_as_slice(message));
    pending->answered = true;
}

static void request_ended(struct grpc_call *call, int status, struct slice text)
{
    struct pending_request *pending = call->context;
    struct etcd_client *client = pending->client;
    REQUIRE(call->channel == NULL && !pending->done);
    uint64_t now = clock_boot_us();
    if (status == GRPC_OK && (!pending->answered || !etcd_client_same_cluster(client, buf_as_slice(&pending->answer))))
        status = GRPC_UNKNOWN;
    else if (status != GRPC_OK)
        etcd_client_set_error(client, "etcd says to %s: %.*s (%d)", call->path, SLICE_ARG(text), status);
    pthread_mutex_lock(&client->lock);
    pending->status = status;
    if (status == GRPC_OK)
        finish_request(pending, 0);
    else if (!etcd_client_may_retry(status, text))
        finish_request(pending, TL_ERR_IO);
    else if (status == GRPC_UNAVAILABLE) /* the member may be partitioned from the others */
        etcd_client_fail_lane(client, pending->lane, "it is not available");
    pending->retry = now + RETRY_MIN_US;
    pthread_mutex_unlock(&client->lock);
}

/* Starts the requests that are due and finishes those out of time. Returns: when to run again. */
static uint64_t run_requests(struct etcd_client *client, uint64_t now)
{
    REQUIRE(is_own_thread(client));
    uint64_t next = UINT64_MAX;
    pthread_mutex_lock(&client->lock);
    list_for_each_safe(link, following, &client->requests)
    {
        struct pending_request *pending = list_entry(link, struct pending_request, link);
        uint64_t again = pending->until;
        if (now >= pending->until) {
            channel_drop(&pending->call);
            finish_request(pending, CMDLOG_UNREACHABLE);
            continue;
        }
        if (pending->call.channel == NULL && now >= pending->retry) {
            pending->answered = false;
            pending->call.deadline = now + pending->timeout;
            if (etcd_client_call(client, pending->lane, &pending->call, now, &again))
                pending->timeout *= 2;
            else
                pending->retry = again;
        } else if (pending->call.channel == NULL) {
            again = pending->retry;
        }
        next = again < next ? again : next;
        next = pending->until < next ? pending->until : next;
    }
    pthread_mutex_unlock(&client->lock);
    return next;
}

int etcd_client_request(struct etcd_client *client, enum etcd_client_lane lane, const char *path, struct slice request,
                        uint64_t until, struct buf *reply, int *ret_status)
{
    REQUIRE(lane < LANE_COUNT && request.len >= 5); /* framed by grpc_frame_begin() and grpc_frame_end() */
    struct pending_request pending = {
        .lane = lane,
        .client = client,
        .until = until,
        .timeout = REQUEST_US,
        .answer = BUF_INIT(CHANNEL_MESSAGE_MAX),
        .call = {.path = path, .request = request, .on_message = request_answered, .on_end = request_ended}};
    pending.call.context = &pending;
    pthread_cond_init(&pending.finished, NULL);
    pthread_mutex_lock(&client->lock);
    list_append(&client->requests, &pending.link);
    pthread_mutex_unlock(&client->lock);
    etcd_client_wake(client);
    pthread_mutex_lock(&client->lock);
    while (!pending.done)
        pthread_cond_wait(&pending.finished, &client->lock);
    pthread_mutex_unlock(&client->lock);
    pthread_cond_destroy(&pending.finished);
    if (pending.result == 0)
        buf_slice(reply, buf_as_slice(&pending.answer));
    buf_deinit(&pending.answer);
    if (ret_status != NULL)
        *ret_status = pending.status;
    return pending.result;
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

void etcd_client_wake(struct etcd_client *client)
{
    uint64_t one = 1;
    if (write(client->wake_fd, &one, sizeof one) < 0)
        return; /* the counter is full, so the thread is awake */
}

static uint64_t run_all(struct etcd_client *client, uint64_t now)
{
    REQUIRE(is_own_thread(client));
    uint64_t next = run_requests(client, now);
    list_for_each_safe(link, following, client->tasks)
    {
        struct etcd_client_task *task = list_entry(link, struct etcd_client_task, link);
        uint64_t wanted = task->run(task, now);
        next = wanted < next ? wanted : next;
    }
    for (int i = 0; i < LANE_COUNT; i++) {
        uint64_t wanted = check_lane(client, &client->lanes[i], now);
        next = wanted < next ? wanted : next;
    }
    return next;
}

static void work_lane(struct etcd_client *client, int i, short events, uint64_t now)
{
    REQUIRE(is_own_thread(client) && i < LANE_COUNT);
    struct lane *lane = &client->lanes[i];
    if (lane->channel != NULL && channel_work(lane->channel, events) != 0)
        close_lane(client, lane, channel_error(lane->channel), now);
}

static int timeout_until(uint64_t next, uint64_t now)
{
    if (next <= now)
        return 0;
    return next - now > 60 * TL_SECOND ? 60000 : (int)((next - now + 999) / 1000);
}

static void wait_for_events(struct etcd_client *client, uint64_t next, uint64_t now)
{
    REQUIRE(is_own_thread(client));
    struct pollfd fds[LANE_COUNT + 1] = {{.fd = client->wake_fd, .events = POLLIN}};
    int lanes[LANE_COUNT + 1];
    nfds_t count = 1;
    uint64_t woken;
    for (int i = 0; i < LANE_COUNT; i++)
        if (client->lanes[i].channel != NULL) {
            fds[count] = (struct pollfd){.fd = channel_fd(client->lanes[i].channel),
                                         .events = channel_poll_events(client->lanes[i].channel)};
            lanes[count++] = i;
        }
    if (poll(fds, count, timeout_until(next, now)) <= 0)
        return;
    if (fds[0].revents != 0 && read(client->wake_fd, &woken, sizeof woken) < 0)
        return;
    now = clock_boot_us();
    for (nfds_t i = 1; i < count; i++)
        if (fds[i].revents != 0)
            work_lane(client, lanes[i], fds[i].revents, now);
}

static void run_client(void *context)
{
    struct etcd_client *client = context;
    client->self = pthread_self();
    while (!atomic_load(&client->stopping)) {
        uint64_t now = clock_boot_us(), next = run_all(client, now);
        for (int i = 0; i < LANE_COUNT; i++)
            work_lane(client, i, 0, now);
        wait_for_events(client, next, now);
    }
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static int fail_with_reason(char **ret_reason, const char *format, ...) TL_PRINTF(2, 3);
static int fail_with_reason(char **ret_reason, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *ret_reason = mem_strdup(text, strlen(text));
    return tl_trace(TL_ERR_IO);
}

/* Returns: the length of `authority`, HOST:PORT, up to the colon; 0: it is not of that form. */
static size_t host_len_of(struct slice authority)
{
    size_t colon = authority.len;
    while (colon > 0 && authority.data[colon - 1] != ':')
        colon--;
    if (colon <= 1 || colon == authority.len || memchr(authority.data, '@', authority.len) != NULL)
        return 0;
    return colon - 1;
}

/*
 * Resolves a member's address. Done at the opening: on the client's thread a lookup would delay
 * lease renewals.
 */
static int add_member(struct etcd_client *client, struct slice authority, char **ret_reason)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    REQUIRE(client->tasks == NULL && host_len_of(authority) > 0);
    if (client->member_count == MEMBERS_MAX)
        return fail_with_reason(ret_reason, "more than %d members of etcd", MEMBERS_MAX);
    struct slice host = slice_make(authority.data, host_len_of(authority)),
                 port_text = slice_from_offset(authority, host.len + 1);
    if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
        host = slice_make(host.data + 1, host.len - 2);
    tl_cleanup(mem_freep) char *name = mem_strdup(host.data, host.len),
                               *port = mem_strdup(port_text.data, port_text.len);
    int r = getaddrinfo(name, port, &hints, &found);
    if (r != 0)
        return fail_with_reason(ret_reason, "[%.*s] is not found: %s", SLICE_ARG(authority), gai_strerror(r));
    struct etcd_member *member = &client->members[client->member_count++];
    member->authority = mem_strdup(authority.data, authority.len);
    member->host = tl_steal(name);
    for (struct addrinfo *at = found; at != NULL && member->target_count < 4; at = at->ai_next) {
        struct transport_target *target = &member->targets[member->target_count++];
        target->host = member->host;
        memcpy(&target->address, at->ai_addr, at->ai_addrlen);
        target->len = at->ai_addrlen;
    }
    freeaddrinfo(found);
    return 0;
}

int etcd_client_read_prefix(struct slice url, struct slice *ret_prefix, char **ret_reason)
{
    struct slice rest = slice_from_offset(url, slice_find_byte(url, '/'));
    while (slice_starts_with(rest, SLICE_LIT("//")))
        rest = slice_from_offset(slice_from_offset(rest, 2), slice_find_byte(slice_from_offset(rest, 2), '/'));
    *ret_prefix = slice_from_offset(rest, 1);
    if (ret_prefix->len == 0 || ret_prefix->len > PREFIX_MAX || ret_prefix->data[ret_prefix->len - 1] == '/')
        return fail_with_reason(ret_reason, "[%.*s] names no prefix, as in http://HOST:PORT/tidelock", SLICE_ARG(url));
    return 0;
}

/* Checks the form of `url` up to its prefix, and adds the members to `client`, if that is not NULL. */
static int read_members(struct etcd_client *client, struct slice url, char **ret_reason)
{
    const struct slice plain = SLICE_LIT("http://"), tls = SLICE_LIT("https://");
    bool uses_tls = slice_starts_with(url, tls);
    const struct slice scheme = uses_tls ? tls : plain;
    struct slice rest = url;
    if (client != NULL)
        client->uses_tls = uses_tls;
    for (;;) {
        if (slice_starts_with(rest, uses_tls ? plain : tls))
            return fail_with_reason(ret_reason,
                                    "[%.*s] has members with http:// and others with https://; give all the same",
                                    SLICE_ARG(url));
        if (!slice_starts_with(rest, scheme))
            return fail_with_reason(ret_reason,
                                    "[%.*s] is not http://HOST:PORT,http://HOST:PORT/PREFIX, or https:// in each",
                                    SLICE_ARG(url));
        rest = slice_from_offset(rest, scheme.len);
        size_t len = 0;
        while (len < rest.len && rest.data[len] != ',' && rest.data[len] != '/')
            len++;
        struct slice authority = slice_make(rest.data, len);
        if (host_len_of(authority) == 0)
            return fail_with_reason(ret_reason, "[%.*s] is not HOST:PORT", SLICE_ARG(authority));
        int r = client != NULL ? add_member(client, authority, ret_reason) : 0;
        if (r < 0)
            return r;
        rest = slice_from_offset(rest, len);
        if (!slice_take_byte(&rest, ','))
            break;
    }
    return 0;
}

int etcd_client_check_members(struct slice url, char **ret_reason)
{
    return read_members(NULL, url, ret_reason);
}

static int check_tls(const struct etcd_client *client, char **ret_reason)
{
    const struct etcd_tls_files *files = &client->files;
    gnutls_certificate_credentials_t credentials;
    if (!client->uses_tls && (files->ca != NULL || files->cert != NULL || files->key != NULL))
        return fail_with_reason(ret_reason, "--cluster-%s needs https:// in --cluster",
                                files->ca != NULL     ? "ca"
                                : files->cert != NULL ? "cert"
                                                      : "key");
    if ((files->cert == NULL) != (files->key == NULL))
        return fail_with_reason(ret_reason, files->cert != NULL
                                                ? "--cluster-cert needs --cluster-key, the certificate's private key"
                                                : "--cluster-key needs --cluster-cert, the key's certificate");
    if (!client->uses_tls)
        return 0;
    int r = etcd_tls_read(files, &credentials, ret_reason);
    if (r == 0)
        gnutls_certificate_free_credentials(credentials);
    return r;
}

static void free_client(struct etcd_client *client)
{
    for (size_t i = 0; i < client->member_count; i++) {
        mem_free(client->members[i].authority);
        mem_free(client->members[i].host);
    }
    for (int i = 0; i < LANE_COUNT; i++)
        buf_deinit(&client->lanes[i].probe_request);
    if (client->wake_fd >= 0)
        close(client->wake_fd);
    buf_deinit(&client->last_error);
    pthread_mutex_destroy(&client->lock);
    pthread_mutex_destroy(&client->error_lock);
    mem_free(client);
}

int etcd_client_open(struct slice url, const struct etcd_tls_files *files, struct etcd_client **ret_client,
                     char **ret_reason)
{
    struct etcd_client *client = mem_zalloc(sizeof *client);
    client->files = *files;
    mutex_init(&client->lock);
    pthread_mutex_init(&client->error_lock, NULL);
    client->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    client->last_error = BUF_INIT(ERROR_TEXT_MAX);
    list_init(&client->requests);
    for (int i = 0; i < LANE_COUNT; i++) {
        client->lanes[i].probe_request = BUF_INIT(BUF_UNLIMITED);
        grpc_frame_begin(&client->lanes[i].probe_request);
        etcd_put_range(&client->lanes[i].probe_request,
                       &(struct etcd_range){.key = SLICE_LIT("\0"), .serializable = true, .count_only = true});
        grpc_frame_end(&client->lanes[i].probe_request);
    }
    int r = read_members(client, url, ret_reason);
    if (r == 0)
        r = check_tls(client, ret_reason);
    if (r == 0 && client->wake_fd < 0)
        r = fail_with_reason(ret_reason, "no descriptor is free");
    if (r == 0)
        *ret_client = client;
    else
        free_client(client);
    return r;
}

int etcd_client_start(struct etcd_client *client, struct list *tasks, char **ret_reason)
{
    REQUIRE(client->tasks == NULL);
    client->tasks = tasks;
    return thread_start(&client->thread, "etcd", run_client, client) == 0
               ? 0
               : fail_with_reason(ret_reason, "no thread can be made");
}

void etcd_client_close(struct etcd_client *client)
{
    if (client == NULL)
        return;
    atomic_store(&client->stopping, true);
    etcd_client_wake(client);
    thread_join(&client->thread);
    REQUIRE(list_empty(&client->requests));
    for (int i = 0; i < LANE_COUNT; i++) {
        struct channel *channel = client->lanes[i].channel;
        client->lanes[i].channel = NULL;
        channel_close(channel, "closing");
    }
    free_client(client);
}
