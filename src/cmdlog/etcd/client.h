/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of etcd: several members, connections to them, and a thread on which all of that happens ("the thread" below).
 *
 * *Ways* are what calls go by: each has a connection of its own to one of the members, so that nothing waits behind a large append. When it fails, its calls end as
 * lost, and the next call goes to the next member. *Actors* do what must go on by itself: the thread runs them whenever something happened.
 */
#ifndef TL_CMDLOG_ETCD_CLIENT_H
#define TL_CMDLOG_ETCD_CLIENT_H

#include "cmdlog/etcd/channel.h"

enum client_way { WAY_APPEND, WAY_CONTROL, WAY_FOLLOW, WAY_COUNT };

struct client;

/* Runs on the thread. Returns: when it wants to run again even if nothing happens, of clock_boot_us(). */
struct client_actor {
    struct list link;
    uint64_t (*run)(struct client_actor *actor, uint64_t now);
};

/*
 * `url` is http://HOST:PORT,…/PREFIX. Returns: 0; TL_ERR_IO with *ret_reason (mem_free). Owns: the caller; client_close(), which ends all calls as lost.
 */
int client_open(struct slice url, struct client **ret_client, char **ret_reason) TL_MUST_USE;

/* Starts the thread, which runs `actors`, a list of client_actor.link. Once. Returns: as client_open(). */
int client_start(struct client *client, struct list *actors, char **ret_reason) TL_MUST_USE;
void client_close(struct client *client);

/* Returns: 0 and the prefix that a URL names, a part of it; TL_ERR_IO with *ret_reason. */
int client_read_prefix(struct slice url, struct slice *ret_prefix, char **ret_reason) TL_MUST_USE;

/* Has the thread run its actors. From any thread. */
void client_wake(struct client *client);

/*
 * Asks and waits for the answer, from any other thread; the request is as call_frame_end() left it. It is sent again, to other members too, until there is an answer or it is
 * `until`: so it must be such that doing it twice is doing it once.
 * Returns: 0 and the answer, appended to `reply`; CMDLOG_UNREACHABLE: none came; TL_ERR_IO: it was refused, *ret_status says by which code, and client_trouble() why.
 */
int client_ask(struct client *client, enum client_way way, const char *path, struct slice request, uint64_t until,
               struct buf *reply, int *ret_status) TL_MUST_USE;

/* --- On the thread ------------------------------------------------------------------------------------------------- */

/* Begins a call. Returns: false: not now, again at *ret_retry. */
bool client_call(struct client *client, enum client_way way, struct call *call, uint64_t now,
                 uint64_t *ret_retry) TL_MUST_USE;

/* Gives the way's connection up: all its calls end as lost, soon. From within on_message() and on_end(), too. */
void client_fail(struct client *client, enum client_way way, const char *why);

/* Whether a status means that the same may be tried again, at another member perhaps. */
bool client_may_retry(int status, struct slice text);

/* Whether an answer is of the cluster that the first was of. A client of another one's answers would mix two logs. */
bool client_knows(struct client *client, struct slice reply);

/* Notes what went wrong, for people; from any thread. */
void client_note(struct client *client, const char *format, ...) TL_PRINTF(2, 3);
/* Owns: the caller; mem_free. */
char *client_trouble(struct client *client);

uint64_t client_connections(struct client *client);

#endif
