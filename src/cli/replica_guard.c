/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a copy: one replicator of a name at a time. A thread keeps its session alive; see
 * replica.h, invariant 5.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cli/attach_stream.h"
#include "cli/replica.h"
#include "json/each.h"

enum {
    LEASE_PARTS_ASK = 4,   /* of the lease are left: the server is asked */
    LEASE_PARTS_SEND = 6,  /* with less nothing is sent */
    LEASE_PARTS_LOOK = 24, /* how often it is looked at */
    WAIT_US = 20 * 1000,
};

#define TTL_US (30 * TL_SECOND)
#define ANSWER_US (10 * TL_SECOND)
#define PATIENCE_US (60 * TL_SECOND) /* beyond it hosts that do not answer in time are not asked again */

struct guard {
    struct source_hosts *hosts;
    struct client client; /* the thread's, once it runs */
    struct attach_stream stream; /* the thread's */
    char *session;
    uint64_t overlap_until_us; /* see guard_overlap_until_us() */
    struct thread thread;
    bool running;
    _Atomic uint64_t until_us; /* of the boot clock: the lease is certain to hold */
    _Atomic bool lost;
    _Atomic bool ending;
};

/*
 * A host that does not take the session, or is silent for so long that the lease becomes short, is
 * left by all.
 */
static void look_at_host(struct guard *guard)
{
    struct attach_stream *stream = &guard->stream;
    if (stream->failed)
        source_hosts_leave(guard->hosts, stream->server);
    stream->failed = false;
    if (!source_client_aim(&guard->client, TTL_US / LEASE_PARTS_LOOK))
        return;
    attach_stream_move(stream, guard->client.url);
    if (!stream->lost && attach_stream_left(stream) < TTL_US / LEASE_PARTS_ASK &&
        !attach_stream_renew(stream, &guard->client, TTL_US / LEASE_PARTS_LOOK))
        source_hosts_leave(guard->hosts, guard->client.url);
}

static void keep_session(void *context)
{
    struct guard *guard = context;
    while (!atomic_load(&guard->ending)) {
        attach_stream_wait(&guard->stream, -1, TTL_US / LEASE_PARTS_LOOK);
        look_at_host(guard);
        atomic_store(&guard->until_us, clock_boot_us() + attach_stream_left(&guard->stream));
        atomic_store(&guard->lost, guard->stream.lost);
    }
}

/*
 * Asks each host once, until one answers. Returns: as client_request(); *ret_late: whether a host did
 * not answer in time.
 */
static long ask_once(struct guard *guard, const char *method, const char *path, struct slice body, bool *ret_late)
{
    long status = 0;
    *ret_late = false;
    for (size_t i = 0; status == 0 && i < source_hosts_count(guard->hosts); i++) {
        status = source_request(&guard->client, method, path, body, ANSWER_US);
        *ret_late = *ret_late || guard->client.timed_out;
    }
    return status;
}

/*
 * Asks the hosts until one answers. Of a cluster, the answer to what opens a session or takes a lock
 * waits until a host that has died is out, for as long as its lease (`--host-lease`). So hosts that
 * are there and do not answer in time are asked again. The session of an earlier request has no lock,
 * and ends with its lease.
 */
static long ask_hosts(struct guard *guard, const char *method, const char *path, struct slice body)
{
    uint64_t end = clock_boot_us() + PATIENCE_US;
    bool late;
    long status = ask_once(guard, method, path, body, &late);
    if (status == 0 && late && !replica_stopping())
        replica_print("the source has not answered in %d s; asking again for %d s, since a cluster's answer may wait "
                      "until a host that has died is out (--host-lease)",
                      (int)(ANSWER_US / TL_SECOND), (int)(PATIENCE_US / TL_SECOND));
    while (status == 0 && late && !replica_stopping() && clock_boot_us() < end)
        status = ask_once(guard, method, path, body, &late);
    return status;
}

static int open_session(struct guard *guard, const char *name)
{
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf title = BUF_INIT(BUF_UNLIMITED);
    holder_write(name, &title);
    buf_lit(&body, "{\"ttl\":\"30s\",\"name\":");
    buf_json_string(&body, buf_as_slice(&title));
    buf_byte(&body, '}');
    long status = ask_hosts(guard, "POST", "/_session", buf_as_slice(&body));
    const char *session = yyjson_get_str(yyjson_obj_get(client_json(&guard->client), "session"));
    if (status != 201 || session == NULL) {
        replica_print("no session in the source: %s", client_error(&guard->client, status));
        return status == 0 ? CLIENT_EXIT_ABSENT : REPLICA_FAILED;
    }
    guard->session = mem_strdup(session, strlen(session));
    return 0;
}

/*
 * Ends the session that holds the lock, as the last answer shows it, if its process has ended and
 * no connection keeps it alive. A process id is no evidence against a connection: machines resumed
 * from one snapshot of memory have equal ids.
 */
static void end_gone_holder(struct guard *guard, const char *name)
{
    yyjson_val *holders = yyjson_obj_get(yyjson_obj_get(client_json(&guard->client), "error"), "holders");
    yyjson_val *holder = yyjson_arr_get_first(holders), *title = yyjson_obj_get(holder, "name");
    yyjson_val *number = yyjson_obj_get(holder, "session");
    long process;
    if (yyjson_arr_size(holders) != 1 || !yyjson_is_str(title) || !yyjson_is_uint(number) ||
        !holder_is_gone(name, slice_make(yyjson_get_str(title), yyjson_get_len(title)), &process))
        return;
    uint64_t session = yyjson_get_uint(number);
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "/_session/%llu?force=true&if_detached=true", (unsigned long long)session);
    buf_byte(&path, '\0');
    long status = ask_hosts(guard, "DELETE", path.data, SLICE_NONE);
    if (status != 409) /* also without an answer */
        guard->overlap_until_us = clock_boot_us() + TTL_US;
    if (status == 200)
        replica_print("the session of process %ld, which has ended, held the lock, and is ended", process);
}

static int take_lock(struct guard *guard, const char *name)
{
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&body,
               "{\"session\":\"%s\",\"wait\":\"0s\",\"locks\":[{\"mode\":\"exclusive\",\"index\":\".tidelock-"
               "replicate\",\"id\":",
               guard->session);
    buf_json_string(&body, slice_from(name));
    buf_lit(&body, "}]}");
    long status = ask_hosts(guard, "POST", "/_lock", buf_as_slice(&body));
    if (status == 409) {
        end_gone_holder(guard, name);
        status = ask_hosts(guard, "POST", "/_lock", buf_as_slice(&body));
    }
    if (status == 200)
        return 0;
    replica_print("%s%s", status == 409 ? "a copy of this name is being made already: " : "cannot lock in the source: ",
                  client_error(&guard->client, status));
    return status == 409 ? REPLICA_TAKEN : client_exit(status);
}

int guard_new(struct source_hosts *hosts, const char *name, struct guard **ret_guard)
{
    struct guard *guard = *ret_guard = mem_zalloc(sizeof *guard);
    guard->hosts = hosts;
    source_client_init(&guard->client, hosts);
    int status = open_session(guard, name);
    if (status != 0)
        return status;
    attach_stream_init(&guard->stream, guard->client.url, guard->session, TTL_US);
    guard->running = true;
    if (!attach_stream_await(&guard->stream)) {
        long refused = guard->stream.refused;
        if (refused != 0)
            replica_print("the source does not attach the session: it answers %ld", refused);
        else
            replica_print("the source does not attach the session");
        status = client_exit(refused);
    }
    if (status == 0)
        status = take_lock(guard, name);
    atomic_store(&guard->until_us, clock_boot_us() + attach_stream_left(&guard->stream));
    if (thread_start(&guard->thread, "guard", keep_session, guard) != 0)
        abort();
    return status;
}

static bool never_gives_up(const struct client *client)
{
    (void)client;
    return false;
}

/*
 * Closes the session at the first host that answers. The program may have been asked to stop long
 * ago, so replica_gives_up() would end the request at once, and the session would keep the lock
 * until its lease ends.
 */
static void close_session(struct guard *guard)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    long status = 0;
    buf_printf(&path, "/_session/%s", guard->session);
    buf_byte(&path, '\0');
    guard->client.gives_up = never_gives_up;
    for (size_t i = 0; i < source_hosts_count(guard->hosts); i++) {
        if (source_client_aim(&guard->client, TL_SECOND))
            status = client_request(&guard->client, "DELETE", path.data, SLICE_NONE, TL_SECOND);
        if (status != 0 && status < 500)
            return;
        source_hosts_leave(guard->hosts, guard->client.url);
    }
}

void guard_free(struct guard *guard)
{
    if (guard == NULL)
        return;
    if (guard->running) {
        atomic_store(&guard->ending, true);
        attach_stream_wake(&guard->stream);
        thread_join(&guard->thread);
        close_session(guard);
        attach_stream_deinit(&guard->stream);
    }
    client_deinit(&guard->client);
    mem_free(guard->session);
    mem_free(guard);
}

const char *guard_session(const struct guard *guard)
{
    return guard->session;
}

uint64_t guard_overlap_until_us(const struct guard *guard)
{
    return guard->overlap_until_us;
}

bool guard_await(struct guard *guard)
{
    while (!atomic_load(&guard->lost)) {
        if (clock_boot_us() + TTL_US / LEASE_PARTS_SEND < atomic_load(&guard->until_us))
            return true;
        usleep(WAIT_US);
    }
    return false;
}
