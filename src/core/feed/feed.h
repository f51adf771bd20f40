/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The change feed: the changes of a unit, collected while it runs and put into its batch at its
 * end. README.md.
 */
#ifndef TL_CORE_FEED_H
#define TL_CORE_FEED_H

#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"

struct core;
struct store;

/* The kind of a change. The numbers are stored and never change. */
enum feed_kind {
    FEED_WRITTEN = 1, /* a document; its version at the record's timestamp has the content */
    FEED_DELETED = 2,
    FEED_INDEX_CREATED = 3,
    FEED_INDEX_DELETED = 4,
    FEED_MAPPING = 5,
    FEED_ALIASES = 6,
    FEED_SETTINGS = 7, /* also opened and closed */
    FEED_RENAMED = 8,
};

struct feed_change {
    enum feed_kind kind;
    uint32_t index;    /* its number */
    uint16_t type;     /* of a document */
    struct slice name; /* id of a document; name of a created or deleted index; old path of a rename */
    struct slice to;   /* new path of a rename */
};

/* Changes in one record at most. */
enum { FEED_RECORD_CHANGES = 1000 };

/* The core's state of the feed, and the changes of the open unit. */
struct feed {
    bool has_state; /* the store has the state record */
    bool off;
    tl_ts from;         /* all changes above it are in the feed, unless `off` */
    struct buf changes; /* of the open unit, encoded */
    size_t count;
    bool may_repeat;          /* `changes` may have repeats */
    struct slice transaction; /* id, in core->arena; empty: no transaction */
};

/* --- Binary form -------------------------------------------------------------------------------------------------- */

void feed_change_put(struct buf *buf, const struct feed_change *change);
/*
 * Takes a change from the front of `bytes`; its slices point into them. Returns: false if `bytes`
 * is empty or invalid.
 */
bool feed_change_take(struct slice *bytes, struct feed_change *ret_change);

/* The key of a record. */
enum { FEED_KEY_BYTES = 12 };
struct slice feed_key(char bytes[FEED_KEY_BYTES], tl_ts ts, uint32_t part);
/* Returns: false if `key` is not a record's key. */
bool feed_key_parse(struct slice key, tl_ts *ret_ts, uint32_t *ret_part);

/*
 * Reads the feed's state from the store, on any thread.
 *
 * Returns: 0; STORE_NOT_FOUND: the feed was never written; fatal codes.
 */
int feed_read_state(struct store *store, bool *ret_off, tl_ts *ret_from) TL_MUST_USE;

/* --- In units ----------------------------------------------------------------------------------------------------- */

/* Loads the feed's state. Returns: 0; fatal codes. */
int feed__open(struct core *core) TL_MUST_USE;
void feed__close(struct core *core);

/*
 * Records a change of the open unit. `again`: the unit may have recorded a change of the same
 * document before.
 *
 * Requires: a unit is open.
 */
void feed__record_change(struct core *core, const struct feed_change *change, bool again);
/* Records a change of a document, by its key in SPACE_DOCUMENTS. Requires: an open unit. */
void feed__record_document(struct core *core, bool deleted, struct slice key, bool again);
/* Attributes the unit's changes to a transaction. Requires: the unit has none yet. */
void feed__set_transaction(struct core *core, struct slice id);

/* Puts the recorded changes into the unit's batch when it is committed, or discards them. */
struct unit_part;
extern const struct unit_part feed__part;

#endif
