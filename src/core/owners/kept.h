/* SPDX-License-Identifier: Apache-2.0 */
/* What ended sessions left, and others' locks forbid still. */
#ifndef TL_CORE_KEPT_H
#define TL_CORE_KEPT_H

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/types.h"

struct write_item;
struct core;
struct session;
struct wait;

/* What an ended session left and somebody else's lock forbids (kept.c). */
struct kept {
    struct list of_all; /* in owners->kept, oldest first */
    uint64_t number;    /* of its record; rises */
    bool removal;       /* of a document that lived with the session; else an action of on_expire */
    bool aside;         /* it has ended the process, and is done no more until somebody says so (tried.h) */
    tl_ts ended;
    struct slice session; /* mem_free, all three */
    struct slice name;
    struct slice action; /* encoded (action.h), one */
    struct wait *wait;   /* NULL: not asked for yet, between opening the store and RESTART, or put aside */
    struct list of_unasked; /* in owners->unasked, when it is not asked for yet */
};

/* Returns: a command of the core's own, for what ended sessions left. */
struct command *kept__command(void);
/* Keeps what a session left, in the open unit. */
int kept__keep(struct core *core, const struct session *session, const struct write_item *item,
               bool removal) TL_MUST_USE;
/* The same of an action that is put aside at once, and why. */
enum kept_aside { KEPT_ENDED_PROCESS, KEPT_TOO_LONG };
void kept__keep_aside(struct core *core, const struct session *session, const struct write_item *item,
                      enum kept_aside why);
/* Returns: NULL: there is none of this number. */
struct kept *kept__find(const struct core *core, uint64_t number);
/* It waits no more; or waits, behind all that is kept for the same; or goes, undone. In the open unit. */
void kept__put_aside(struct core *core, struct kept *kept);
int kept__try_again(struct core *core, struct kept *kept) TL_MUST_USE;
void kept__drop(struct core *core, struct kept *kept);
/* Makes one like another, at the end of those there are. */
struct kept *kept__make(struct core *core, const struct kept *like);
void kept__free(struct core *core, struct kept *kept);
int kept__load_all(struct core *core) TL_MUST_USE;
/* Puts those that wait for nothing, and are not put aside, among those that have not asked, once all are made. */
void kept__find_unasked(struct core *core);
/* After a restart: asks for the locks of those that have not asked, while *left things may be done; takes off what it has done. Returns: 0; fatal codes. */
int kept__restart(struct core *core, size_t *left) TL_MUST_USE;
uint64_t kept__digest(const struct kept *kept);
void kept__owner_text(const struct kept *kept, struct buf *buf);
/* Fills in what is to be done. The item points into `kept` and `arena`. */
int kept__item(const struct kept *kept, struct arena *arena, struct write_item *ret_item) TL_MUST_USE;

#endif
