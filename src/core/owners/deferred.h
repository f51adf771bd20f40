/* SPDX-License-Identifier: Apache-2.0 */
/* What ended sessions left, and others' locks forbid still. */
#ifndef TL_CORE_DEFERRED_H
#define TL_CORE_DEFERRED_H

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/types.h"

struct write_item;
struct core;
struct session;
struct wait;

/* What an ended session left and somebody else's lock forbids (deferred.c). */
struct deferred {
    struct list of_all; /* in owners->kept, oldest first */
    uint64_t number;    /* of its record; rises */
    bool removal;       /* of a document that lived with the session; else an action of on_expire */
    bool set_aside;         /* it has ended the process, and is done no more until somebody says so (cleanup_attempt.h) */
    tl_ts ended;
    struct slice session; /* mem_free, all three */
    struct slice name;
    struct slice action; /* encoded (action.h), one */
    struct wait *wait;   /* NULL: not asked for yet, between opening the store and RESTART, or put aside */
    struct list of_unrequested; /* in owners->unasked, when it is not asked for yet */
};

/* Returns: a command of the core's own, for what ended sessions left. */
struct command *deferred__command(void);
/* Keeps what a session left, in the open unit. */
int deferred__add(struct core *core, const struct session *session, const struct write_item *item,
               bool removal) TL_MUST_USE;
/* The same of an action that is put aside at once, and why. */
enum set_aside_reason { SET_ASIDE_ENDED_PROCESS, SET_ASIDE_TOO_LONG };
void deferred__add_set_aside(struct core *core, const struct session *session, const struct write_item *item,
                      enum set_aside_reason why);
/* Returns: NULL: there is none of this number. */
struct deferred *deferred__find(const struct core *core, uint64_t number);
/* It waits no more; or waits, behind all that is kept for the same; or goes, undone. In the open unit. */
void deferred__set_aside(struct core *core, struct deferred *kept);
int deferred__retry(struct core *core, struct deferred *kept) TL_MUST_USE;
void deferred__drop(struct core *core, struct deferred *kept);
/* Makes one like another, at the end of those there are. */
struct deferred *deferred__make(struct core *core, const struct deferred *like);
void deferred__free(struct core *core, struct deferred *kept);
int deferred__load_all(struct core *core) TL_MUST_USE;
/* Puts those that wait for nothing, and are not put aside, among those that have not asked, once all are made. */
void deferred__find_unrequested(struct core *core);
/* After a restart: asks for the locks of those that have not asked, while *left things may be done; takes off what it has done. Returns: 0; fatal codes. */
int deferred__restart(struct core *core, size_t *left) TL_MUST_USE;
uint64_t deferred__digest(const struct deferred *kept);
void deferred__describe_session(const struct deferred *kept, struct buf *buf);
/* Fills in what is to be done. The item points into `kept` and `arena`. */
int deferred__item(const struct deferred *kept, struct arena *arena, struct write_item *ret_item) TL_MUST_USE;

#endif
