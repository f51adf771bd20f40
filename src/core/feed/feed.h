/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed: what each unit changed, noted by who changes it and put into the unit's batch when it is committed. README.md.
 */
#ifndef TL_CORE_FEED_H
#define TL_CORE_FEED_H

#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"

struct core;
struct store;

/* What happened. The numbers are in the store, and never change. */
enum feed_kind {
    FEED_WRITTEN = 1, /* a document; what it is now its version says */
    FEED_DELETED = 2,
    FEED_INDEX_CREATED = 3,
    FEED_INDEX_DELETED = 4,
    FEED_MAPPING = 5,
    FEED_ALIASES = 6,
    FEED_SETTINGS = 7, /* opened and closed, too */
    FEED_RENAMED = 8,
};

struct feed_change {
    enum feed_kind kind;
    uint32_t index;    /* its number, */
    uint16_t type;     /* a document's, */
    struct slice name; /* its id; of an index made or deleted its name; of a rename where it lay */
    struct slice to;   /* of a rename: where it lies */
};

/* A record has at most so many. */
enum { FEED_RECORD_CHANGES = 1000 };

/* In the core: the unit's changes so far, and what the store says of the feed. */
struct feed {
    bool known; /* the store says where it begins */
    bool off;
    tl_ts from;         /* it has all changes above; while it is off, nothing */
    struct buf changes; /* of the open unit */
    size_t count;
    bool repeats;             /* something may be among them twice */
    struct slice transaction; /* whose they are; in core->arena */
};

/* --- Changes as bytes --------------------------------------------------------------------------------------------- */

void feed_change_put(struct buf *buf, const struct feed_change *change);
/* Takes one off the front of `bytes`, its slices are of them. Returns: false where there is none, or it is damaged. */
bool feed_change_take(struct slice *bytes, struct feed_change *ret_change);

/* The key of a record. */
enum { FEED_KEY_BYTES = 12 };
struct slice feed_key(char bytes[FEED_KEY_BYTES], tl_ts ts, uint32_t part);
/* Returns: false where `key` is none. */
bool feed_key_parse(struct slice key, tl_ts *ret_ts, uint32_t *ret_part);

/* What the store says of the feed, on any thread. Returns: 0; STORE_NOT_FOUND: it has not begun; fatal codes. */
int feed_read_state(struct store *store, bool *ret_off, tl_ts *ret_from) TL_MUST_USE;

/* --- In units ----------------------------------------------------------------------------------------------------- */

/* Returns: 0; fatal codes. */
int feed__open(struct core *core) TL_MUST_USE;
void feed__close(struct core *core);

/* Notes what the open unit changes. `again`: the unit may have noted the same document before. */
void feed__record_change(struct core *core, const struct feed_change *change, bool again);
/* The same of a document, by its key in SPACE_DOCUMENTS. */
void feed__record_document(struct core *core, bool deleted, struct slice key, bool again);
/* What the unit changes is a transaction's. */
void feed__set_transaction(struct core *core, struct slice id);
/* Forgets what was noted. */
void feed__discard(struct core *core);
/* Puts it into the unit's batch. */
void feed__flush(struct core *core);

#endif
