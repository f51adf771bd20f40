/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead: a thread decodes the entries of a log, and parses the sources in them, while earlier
 * entries are applied. README.md, "Reading ahead".
 *
 *     read_ahead_next() ─▶ an entry ─▶ read_ahead_decode() ─▶ its commands ─▶ read_ahead_entry_free()
 *
 * One thread, the *applier*, makes all calls. It gets each entry in the order of the log, decoded or not:
 * read_ahead_decode() decodes one that was not. So the thread may be late, or absent, and the commands
 * are the same.
 */
#ifndef TL_JOURNAL_READ_AHEAD_H
#define TL_JOURNAL_READ_AHEAD_H

#include "base/buf.h"
#include "base/list.h"
#include "cmdlog/cmdlog.h"
#include "core/step/command_group.h"
#include "journal/recover.h"

struct at_work;
struct read_ahead;

enum {
    /* Limits of the entries that wait to be applied: one more is read while both are below. */
    READ_AHEAD_BYTES_MAX = 4 << 20,
    READ_AHEAD_ENTRIES_MAX = 64,
    /* The thread decodes entries of that size: to hand a smaller one over takes longer than to decode it. */
    READ_AHEAD_DECODED_MIN = 32 << 10,
    READ_AHEAD_DECODED_MAX = 4 << 20, /* the parsed form of a source may have ten times its bytes */
};

struct read_ahead_options {
    /*
     * The thread reads these entries, up to CMDLOG_END, an error, or the first entry at or after `end` (0: none),
     * which it does not decode. It may decode an entry when it has read the next one and that is no annotation
     * (recover_read_annotation()), since a SKIP would exclude it. NULL: the applier reads, read_ahead_put().
     */
    struct cmdlog_cursor *cursor;
    cmdlog_position end;
    struct at_work *at_work; /* records the entry being decoded; NULL: nowhere */
    bool in_place;           /* without a thread: read and decoded by the applier */
};

/* An entry of the log. The applier owns one that it has got. */
struct read_ahead_entry {
    struct cmdlog_entry entry; /* its slices are in `bytes` */
    uint64_t unread_bytes;     /* cmdlog_unread_bytes() after it; 0 without a cursor */
    /* Of an entry of a cursor, as recover_read_annotation() has it; else none */
    enum recover_annotation annotation;
    cmdlog_position skipped;
    /* Set by read_ahead_decode(): */
    struct command_group_header head;
    struct list commands; /* by command.link */

    /* Private. */
    enum { ENTRY_READ, ENTRY_BEING_DECODED, ENTRY_DECODED } state;
    int result; /* of the decoding */
    struct buf bytes;
    struct list link;
    struct list undecoded_link; /* among the entries that the thread may decode */
};

/*
 * Begins to read ahead; without a thread if the system has none left.
 * Requires: of the cursor nothing else is used until read_ahead_close(); cmdlog_interrupt() excepted.
 * Owns: the caller; read_ahead_close().
 */
struct read_ahead *read_ahead_open(const struct read_ahead_options *options);
/* Ends the thread and frees the entries that were not got; NULL is allowed. */
void read_ahead_close(struct read_ahead *ahead);

/*
 * Gets the next entry, after a wait for the thread that reads or decodes it.
 * Returns: 0; after the last entry, and at each later call, CMDLOG_END or the error of cmdlog_next(). Without a
 * cursor CMDLOG_END: no entry waits.
 * Owns: the caller; read_ahead_entry_free().
 */
int read_ahead_next(struct read_ahead *ahead, struct read_ahead_entry **ret_entry) TL_MUST_USE;
/*
 * Decodes the commands of an entry, unless they are decoded. Call it only for an entry that is to be applied.
 * Returns: as command_group_decode(). Ensures: entry->head and entry->commands are set if it returns 0.
 */
int read_ahead_decode(struct read_ahead *ahead, struct read_ahead_entry *entry) TL_MUST_USE;
/* Frees an entry and the commands that are left in it; NULL is allowed. */
void read_ahead_entry_free(struct read_ahead_entry *entry);

/* --- Without a cursor --------------------------------------------------------------------------------------------- */

/* Returns: whether another entry should be put. */
bool read_ahead_has_room(struct read_ahead *ahead);
/* Returns: whether all entries that were put have been got. */
bool read_ahead_is_empty(struct read_ahead *ahead);
/*
 * Puts a copy of the log's next entry. `decodes`: the thread may decode it.
 * Requires: the options had no cursor.
 */
void read_ahead_put(struct read_ahead *ahead, const struct cmdlog_entry *entry, bool decodes);

#endif
