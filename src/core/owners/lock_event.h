/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling who waits for whom: names of owners and locks as text and as JSON, and the stories of the last deadlocks and
 * expiries.
 */
#ifndef TL_CORE_LOCK_EVENT_H
#define TL_CORE_LOCK_EVENT_H

#include "base/buf.h"
#include "core/locks/lock.h"

/*
 * What explanations take is bounded, whatever names clients choose: they are kept, put into replies and written to checkpoints. The
 * name of a resource, and a path, longer than DESCRIBE_NAME_BYTES_MAX is cut and ends with "…". A circle of many names is told up to the step that
 * exceeds DESCRIBE_CYCLE_BYTES_MAX, and how many follow; a story up to the line that exceeds LOCK_EVENT_BYTES_MAX.
 */
enum { LOCK_EVENTS_MAX = 100, DESCRIBE_NAME_BYTES_MAX = 1024, DESCRIBE_CYCLE_BYTES_MAX = 16 * 1024, LOCK_EVENT_BYTES_MAX = 32 * 1024 };

struct lock_event {
    tl_ts ts;
    const char *kind; /* "deadlock", "expiry" */
    char *lines;      /* separated by '\n' */
    size_t lines_len;
};

struct lock_events {
    struct lock_event ring[LOCK_EVENTS_MAX]; /* a ring */
    size_t count;                    /* ever told */
};

/* What stories are about; checkpoints have their numbers. */
enum { LOCK_EVENT_KIND_COUNT = 2 };
extern const char *const lock_event_kinds[LOCK_EVENT_KIND_COUNT];
/* Returns: the number of a kind. */
unsigned lock_event_kind(const char *kind);

void lock_events_deinit(struct lock_events *stories);
/* Keeps a story, in place of the oldest when there are too many; its lines up to LOCK_EVENT_BYTES_MAX. */
void lock_events_add(struct lock_events *stories, tl_ts ts, const char *kind, struct slice lines);
/* Appends them, oldest first, as a JSON object. */
void lock_events_json(const struct lock_events *stories, struct buf *buf);

/*
 * What others are told of an owner: its public number, never its id, which is the key to act for it.
 * "nightly (session #12)", "transaction #34", "write 17 of session #12".
 */
void describe_owner(const struct lock_owner *owner, struct buf *buf);
/* The same as members of a JSON object, without braces: session and name, transaction, write. */
void describe_owner_json(const struct lock_owner *owner, struct buf *buf);
/* The key of a resource: sorted by them, resources stand in the order of the tree (resource_compare()). */
void describe_resource_key(const struct resource *resource, struct buf *key);
/* Members of a JSON object that name a resource, whole; nothing for everything. */
void describe_resource_json(const struct resource *resource, struct buf *buf);
/* Returns: the text, or what is left of it by the cut: its beginning and "…" in `room` (DESCRIBE_NAME_BYTES_MAX). No character is cut in two. */
struct slice describe_truncate(struct slice text, char *room);
/* The name of a resource as text in an explanation, cut at DESCRIBE_NAME_BYTES_MAX. */
void describe_resource(const struct resource *resource, struct buf *buf);
/* Members of a lock: resource, mode, since, fencing_token. */
void describe_lock_json(const struct lock_hold *hold, struct buf *buf);

/* A circle: what each step waits for, with `between` them; the same as a JSON array "cycle", and "more" where steps are left out. */
void describe_cycle(const struct wait_edge *steps, size_t count, const char *between, struct buf *buf);
void describe_cycle_json(const struct wait_edge *steps, size_t count, struct buf *buf);

/* One who is in the way: {"session", "mode", "resource", ...}, names cut as in all explanations. */
void describe_conflict_json(const struct lock_conflict *conflict, struct buf *buf);

/* Holders: {"holders":[...]} without the braces; `conflicts` as lock_request_conflicts() gives them. */
void describe_conflicts_json(const struct lock_conflict *conflicts, size_t count, struct buf *buf);

#endif
