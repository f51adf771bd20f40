/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of an etcd cluster: its members, the connections to them, and the thread that serves the
 * connections ("the client's thread").
 *
 * A call uses a *lane*. Each lane has its own connection to one of the members, so that a large
 * append does not delay other calls. If the connection fails, its calls end with CALL_LOST and the
 * lane's next call connects to the next member. A *task* is background work. The client's thread
 * runs all tasks after each event.
 */
#ifndef TL_CMDLOG_ETCD_CLIENT_H
#define TL_CMDLOG_ETCD_CLIENT_H

#include "cmdlog/etcd/channel.h"
#include "cmdlog/etcd/tls.h"

enum etcd_client_lane { LANE_APPEND, LANE_CONTROL, LANE_FOLLOW, LANE_COUNT };

struct etcd_client;

struct etcd_client_task {
    struct list link;
    /*
     * Called on the client's thread. Returns: the latest time of the next run, of clock_boot_us().
     */
    uint64_t (*run)(struct etcd_client_task *task, uint64_t now);
};

/*
 * Creates a client; `url` is http://HOST:PORT,…/PREFIX, or https:// for all members. Names of
 * members are looked up here, once; the files for TLS are read here, and again for each connection.
 * Assumes: the names of files outlive the client.
 * Returns: 0; TL_ERR_IO with *ret_reason (mem_free).
 * Owns: the caller; etcd_client_close(), which ends all calls with CALL_LOST.
 */
int etcd_client_open(struct slice url, const struct etcd_tls_files *files, struct etcd_client **ret_client,
                     char **ret_reason) TL_MUST_USE;

/*
 * Starts the thread with `tasks`, a list of etcd_client_task.link. Requires: not started. Returns:
 * as etcd_client_open().
 */
int etcd_client_start(struct etcd_client *client, struct list *tasks, char **ret_reason) TL_MUST_USE;
void etcd_client_close(struct etcd_client *client);

/* Checks the form of a URL up to its prefix; looks up no name. Returns: 0; TL_ERR_IO with *ret_reason (mem_free). */
int etcd_client_check_members(struct slice url, char **ret_reason) TL_MUST_USE;

/* Finds the prefix in a URL. Returns: 0; TL_ERR_IO with *ret_reason (mem_free): it has none. */
int etcd_client_read_prefix(struct slice url, struct slice *ret_prefix, char **ret_reason) TL_MUST_USE;

/* Makes the client's thread run its tasks. From any thread. */
void etcd_client_wake(struct etcd_client *client);

/*
 * Sends a request, made by grpc_frame_begin() and grpc_frame_end(), and waits for the reply. Sends
 * it again, also to other members, until there is a reply or the time is `until`; so the request
 * must be idempotent. From any other thread.
 * Returns: 0 and the reply, appended to `reply`; CMDLOG_UNREACHABLE: no reply; TL_ERR_IO: refused
 * with the gRPC status *ret_status, for the reason of etcd_client_last_error().
 */
int etcd_client_request(struct etcd_client *client, enum etcd_client_lane lane, const char *path, struct slice request,
                        uint64_t until, struct buf *reply, int *ret_status) TL_MUST_USE;

/* --- On the client's thread --------------------------------------------------------------------------------------- */

/* Starts a call. Returns: false: not possible now; retry at *ret_retry. */
bool etcd_client_call(struct etcd_client *client, enum etcd_client_lane lane, struct grpc_call *call, uint64_t now,
                      uint64_t *ret_retry) TL_MUST_USE;

/*
 * Schedules the lane's connection to be closed, which ends all its calls with CALL_LOST. Allowed in
 * on_message() and on_end(). `why` must stay valid: a literal, or the channel's own error.
 * Requires: `why` is not NULL.
 */
void etcd_client_fail_lane(struct etcd_client *client, enum etcd_client_lane lane, const char *why);

/*
 * Returns: whether a call that ended with this status may succeed if it is repeated, perhaps at
 * another member.
 */
bool etcd_client_may_retry(int status, struct slice text);

/*
 * Returns: whether a reply is from the same etcd cluster as the first reply. Otherwise two logs
 * could get mixed.
 */
bool etcd_client_same_cluster(struct etcd_client *client, struct slice reply);

/* Records a problem as the last error, a text for operators. From any thread. */
void etcd_client_set_error(struct etcd_client *client, const char *format, ...) TL_PRINTF(2, 3);
/* Returns: the last error, or "". From any thread. Owns: the caller; mem_free. */
char *etcd_client_last_error(struct etcd_client *client);

/* Returns: how many connections have been opened. From any thread. */
uint64_t etcd_client_connections(struct etcd_client *client);

#endif
