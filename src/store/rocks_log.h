/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RocksDB's log, as far as we touch it beside RocksDB; why that is safe is in README.md, "The log".
 *
 * - rocks_log_ahead.c writes zeros behind the log's end, so that a sync overwrites and need not make the file longer.
 * - rocks_log_hole.c has RocksDB stop at a hole in the log that it would step over.
 */
#ifndef TL_STORE_ROCKS_LOG_H
#define TL_STORE_ROCKS_LOG_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The zeros ahead. But for `syncs` and `lead` only the thread that writes uses it.
 *
 * Invariant: RocksDB never writes to the log `number` at or behind `end` before rocks_log_ahead_batch() is called again, and
 * zeros are written at or behind `end` only.
 */
struct rocks_log_ahead {
    const char *directory;  /* RocksDB's; NULL: off */
    char *zeros;            /* as many as are ever written at once */
    int fd;                 /* of the log; -1: none, or given up */
    uint64_t number;        /* of the newest log at the last look; 0: none */
    uint64_t end;           /* no byte of the log lies at or behind it */
    uint64_t zeroed;        /* zeros have been written up to here; 0: none */
    uint64_t end_if_new;    /* the same for a log that has begun since the last look */
    uint64_t syncs_at_look; /* `syncs` then */
    _Atomic uint64_t syncs;
    _Atomic uint64_t lead; /* bytes of zeros at the end of the log */
};

/* Requires: `directory` outlives it. NULL: it stays off. Owns: the caller; rocks_log_ahead_deinit. */
void rocks_log_ahead_init(struct rocks_log_ahead *ahead, const char *directory);
void rocks_log_ahead_deinit(struct rocks_log_ahead *ahead);

/*
 * Writes zeros behind the log where it is due. It never fails: where they cannot be written, syncs cost what they did.
 * Requires: the thread that writes, before each batch of so many `bytes` is handed to RocksDB.
 */
void rocks_log_ahead_batch(struct rocks_log_ahead *ahead, size_t bytes);

/* Says that the log has been synced. From any thread. */
void rocks_log_ahead_synced(struct rocks_log_ahead *ahead);

/* Returns: how many bytes of the newest log are zeros ahead and no data. From any thread. */
uint64_t rocks_log_ahead_bytes(struct rocks_log_ahead *ahead);

/* Returns: the highest number of a log in a directory that is below `limit`; 0: none, or no directory to read. */
uint64_t rocks_log_newest(const char *directory, uint64_t limit);

enum { ROCKS_LOG_HEADER_BYTES = 7 };

/* A hole. */
struct rocks_log_hole {
    int fd;          /* of the log; -1: it is not marked */
    uint64_t number; /* of the log; 0: there is none */
    uint64_t offset;
    bool synced; /* what is missing had been synced for a flush: nothing is to be cut there */
    unsigned char before[ROCKS_LOG_HEADER_BYTES]; /* what stood where the mark is */
    uint64_t size;                                /* of the log before */
};

/*
 * Looks for the first hole in the logs that RocksDB will read: a place behind which a batch is missing, in the same log (zeros
 * where a record should begin, and more behind them) or before the next one begins. RocksDB would go on behind it, so it is
 * marked with what it takes for a damaged record.
 *
 * Damage in a log that no later one goes on from is a hole, too, where a flush had synced that log: RocksDB overlooks that when
 * a later log is damaged as well.
 *
 * Returns: 0, there is none, or it is marked; TL_ERR_CORRUPT when there is one and `read_only`, or `synced`, or it cannot be
 * marked.
 * Owns: the caller; rocks_log_hole_close.
 */
int rocks_log_mark_hole(const char *directory, bool read_only, struct rocks_log_hole *ret_hole) TL_MUST_USE;

/* Forgets the hole; takes the mark back first where the log is to be left as it was found. */
void rocks_log_hole_close(struct rocks_log_hole *hole, bool unmark);

#endif
