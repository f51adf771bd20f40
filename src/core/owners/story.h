/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling who waits for whom: names of owners and locks as text and as JSON, and the stories of the last deadlocks and
 * expiries.
 */
#ifndef TL_CORE_STORY_H
#define TL_CORE_STORY_H

#include "base/buf.h"
#include "core/locks/lock.h"

/*
 * What explanations take is bounded, whatever names clients choose: they are kept, put into replies and written to checkpoints. The
 * name of a resource, and a path, longer than STORY_NAME_BYTES is cut and ends with "…". A circle of many names is told up to the step that
 * exceeds STORY_CIRCLE_BYTES, and how many follow; a story up to the line that exceeds STORY_BYTES.
 */
enum { STORIES_KEPT = 100, STORY_NAME_BYTES = 1024, STORY_CIRCLE_BYTES = 16 * 1024, STORY_BYTES = 32 * 1024 };

struct story {
    tl_ts ts;
    const char *kind; /* "deadlock", "expiry" */
    char *lines;      /* separated by '\n' */
    size_t lines_len;
};

struct stories {
    struct story kept[STORIES_KEPT]; /* a ring */
    size_t count;                    /* ever told */
};

/* What stories are about; checkpoints have their numbers. */
enum { STORY_KINDS = 2 };
extern const char *const story_kinds[STORY_KINDS];
/* Returns: the number of a kind. */
unsigned story_kind(const char *kind);

void stories_deinit(struct stories *stories);
/* Keeps a story, in place of the oldest when there are too many; its lines up to STORY_BYTES. */
void stories_tell(struct stories *stories, tl_ts ts, const char *kind, struct slice lines);
/* Appends them, oldest first, as a JSON object. */
void stories_json(const struct stories *stories, struct buf *buf);

/*
 * What others are told of an owner: its public number, never its id, which is the key to act for it.
 * "nightly (session #12)", "transaction #34", "write 17 of session #12".
 */
void story_owner(const struct lock_owner *owner, struct buf *buf);
/* The same as members of a JSON object, without braces: session and name, transaction, write. */
void story_owner_json(const struct lock_owner *owner, struct buf *buf);
/* The key of a resource: sorted by them, resources stand in the order of the tree (resource_compare()). */
void story_resource_key(const struct resource *resource, struct buf *key);
/* Members of a JSON object that name a resource, whole; nothing for everything. */
void story_resource_json(const struct resource *resource, struct buf *buf);
/* Returns: the text, or what is left of it by the cut: its beginning and "…" in `room` (STORY_NAME_BYTES). No character is cut in two. */
struct slice story_cut(struct slice text, char *room);
/* The name of a resource as text in an explanation, cut at STORY_NAME_BYTES. */
void story_resource(const struct resource *resource, struct buf *buf);
/* Members of a lock: resource, mode, since, fencing_token. */
void story_lock_json(const struct lock_hold *hold, struct buf *buf);

/* A circle: what each step waits for, with `between` them; the same as a JSON array "cycle", and "more" where steps are left out. */
void story_circle(const struct wait_edge *steps, size_t count, const char *between, struct buf *buf);
void story_circle_json(const struct wait_edge *steps, size_t count, struct buf *buf);

/* One who is in the way: {"session", "mode", "resource", ...}, names cut as in all explanations. */
void story_conflict_json(const struct lock_conflict *conflict, struct buf *buf);

/* Holders: {"holders":[...]} without the braces; `conflicts` as lock_request_conflicts() gives them. */
void story_conflicts_json(const struct lock_conflict *conflicts, size_t count, struct buf *buf);

#endif
