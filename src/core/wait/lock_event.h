/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes owners, locks and deadlock cycles as text and as JSON; keeps the last lock events:
 * deadlocks and session expiries.
 */
#ifndef TL_CORE_LOCK_EVENT_H
#define TL_CORE_LOCK_EVENT_H

#include "base/buf.h"
#include "core/locks/lock.h"

struct core;
struct deferred;

/*
 * Descriptions are kept in memory, sent in replies and written to checkpoints, so their size is
 * bounded whatever names clients choose. The name of a resource, or a path, is truncated to
 * DESCRIBE_NAME_BYTES_MAX and ends with "…". A cycle ends after the edge that exceeds
 * DESCRIBE_CYCLE_BYTES_MAX, with the number of edges left out. An event keeps whole lines up to
 * LOCK_EVENT_BYTES_MAX.
 */
enum {
    LOCK_EVENTS_MAX = 100,
    DESCRIBE_NAME_BYTES_MAX = 1024,
    DESCRIBE_CYCLE_BYTES_MAX = 16 * 1024,
    LOCK_EVENT_BYTES_MAX = 32 * 1024
};

struct lock_event {
    tl_ts ts;
    const char *kind; /* "deadlock", "expiry" */
    char *lines;      /* separated by '\n'; mem_free */
    size_t lines_len;
};

struct lock_events {
    struct lock_event ring[LOCK_EVENTS_MAX]; /* by number modulo LOCK_EVENTS_MAX */
    size_t count;                            /* ever added */
};

/* The kinds of events; checkpoints have their indices. */
enum { LOCK_EVENT_KIND_COUNT = 2 };
extern const char *const lock_event_kinds[LOCK_EVENT_KIND_COUNT];
/* Returns: the index of a kind. Requires: it is one of lock_event_kinds. */
unsigned lock_event_kind(const char *kind);

void lock_events_deinit(struct lock_events *events);
/* Adds an event, in place of the oldest when the ring is full. `kind`: one of lock_event_kinds. */
void lock_events_add(struct lock_events *events, tl_ts ts, const char *kind, struct slice lines);
/* Appends the events, oldest first, as a JSON object. */
void lock_events_json(const struct lock_events *events, struct buf *buf);

/*
 * Appends the name of an owner: "nightly (session #12)", "transaction #34", "write 17 of session
 * #12". Other clients see its public number, never its id, which grants access.
 */
void describe_owner(const struct lock_owner *lock_owner, const struct core *core, struct buf *buf);
/* Appends "cleanup of" and the name and id of the session whose cleanup was deferred. */
void describe_deferred(const struct deferred *deferred, const struct core *core, struct buf *buf);
/*
 * Appends the same as members of a JSON object, without braces: session and name, transaction,
 * write.
 */
void describe_owner_json(const struct lock_owner *lock_owner, struct buf *buf);
/*
 * Appends the sort key of a resource: bytewise order of keys is the order of the tree
 * (resource_compare()).
 */
void describe_resource_key(const struct resource *resource, struct buf *key);
/* Appends members of a JSON object that name a resource, not truncated; nothing for the root. */
void describe_resource_json(const struct resource *resource, struct buf *buf);
/*
 * Truncates a text to DESCRIBE_NAME_BYTES_MAX, between two UTF-8 characters.
 * Returns: `text` if it is short enough; else its beginning and "…", in `buffer` of
 * DESCRIBE_NAME_BYTES_MAX.
 */
struct slice describe_truncate(struct slice text, char *buffer);
/* Appends the name of a resource, truncated. */
void describe_resource(const struct resource *resource, struct buf *buf);
/* Appends members of a JSON object: those that name the resource, mode, since, fencing_token. */
void describe_lock_json(const struct lock_hold *hold, struct buf *buf);

/*
 * Appends a deadlock cycle: each edge of the wait-for graph, separated by `between`; or as JSON
 * members, an array "cycle", and "more" with the number of edges left out.
 */
void describe_cycle(const struct wait_edge *edges, size_t count, const char *between, const struct core *core,
                    struct buf *buf);
/* Returns: the words between a resource and the owner whose lock, or earlier request, blocks a request for it. */
const char *describe_relation(bool waiting, const struct core *core);
void describe_cycle_json(const struct wait_edge *edges, size_t count, struct buf *buf);

/*
 * Appends a blocking owner and its lock: {"session", "mode", "resource", ...}, names truncated.
 * Requires: a conflict with a lock has its hold.
 */
void describe_conflict_json(const struct lock_conflict *conflict, struct buf *buf);

/* Appends "holders":[...] from the result of lock_request_conflicts(). */
void describe_conflicts_json(const struct lock_conflict *conflicts, size_t count, struct buf *buf);

#endif
