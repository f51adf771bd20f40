/* SPDX-License-Identifier: Apache-2.0 */
/* An entry of the log in which the process ended, again and again. README.md, "Poison entries". */
#ifndef TL_JOURNAL_POISON_H
#define TL_JOURNAL_POISON_H

#include "base/buf.h"
#include "cmdlog/cmdlog.h"

struct at_work;
struct store;

/* What an operator has said of an entry, by its position; 0: nothing. */
struct poison_choice {
    cmdlog_position skip;  /* it is never applied */
    cmdlog_position retry; /* it is tried once more */
};

/*
 * Looks at the entry in which the process ended, before anything is applied again: it is tried again, left out by a SKIP that is appended to the log, or the start is
 * refused.
 * Returns: 0; POISON_REFUSED, *ret_reason says which entry and what can be done (mem_free; may be NULL); fatal codes of the log and the store.
 */
enum { POISON_REFUSED = 1 };
int poison_settle(struct store *store, struct cmdlog *log, struct at_work *at_work, const struct poison_choice *choice,
                  char **ret_reason) TL_MUST_USE;

/* Appends what a command of an entry is, for people: "command 2 of 3: write [index] [fs/1]". At most 1 KiB; `number` from 1, 0: the first. */
void poison_describe(struct slice bytes, uint32_t number, struct buf *text);

#endif
