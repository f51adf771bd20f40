/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commit-order check. Every commit has a timestamp, so the results that clients saw can be
 * checked without knowledge of the implementation: commits are sorted by timestamp and replayed one
 * by one on a plain map, and every read is compared. Real time is checked separately: a commit
 * acknowledged before another one began must precede it.
 *
 * A record is a transaction or an autocommit write. Its events are in the order of execution:
 * writes as the server acknowledged them, reads with their results. A transaction that reads at a
 * timestamp has that place in the order.
 */
#ifndef TL_TESTS_SIM_OWNERS_COMMIT_ORDER_H
#define TL_TESTS_SIM_OWNERS_COMMIT_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COMMIT_ORDER_DOCS = 12, COMMIT_ORDER_DIRS = 4096 };

enum commit_order_kind {
    COMMIT_ORDER_READ,    /* the document had `value`; -1: it did not exist */
    COMMIT_ORDER_OUTSIDE, /* it was not in the directory `value` */
    COMMIT_ORDER_SET,     /* it has `value` from now on; -1: it is deleted */
    COMMIT_ORDER_CHANGE,  /* the same, but its directory is unchanged */
    COMMIT_ORDER_RENAME,  /* of directories, in `value`; concerns the index that begins at `doc` */
};

/* Returns: value and directory as one number; -1: there is no document. */
static inline int commit_order_value(int value, int dir)
{
    return value * COMMIT_ORDER_DIRS + dir + 1;
}

struct commit_order_event {
    uint64_t at; /* commit_order.now when it was added */
    uint64_t op; /* commit_order.op */
    uint8_t kind;
    uint8_t doc;
    int32_t value;
};

struct commit_order_record {
    uint64_t ts;       /* of its commit; 0: open, or rolled back */
    uint64_t began_at; /* commit_order.now when it began */
    uint64_t ended_at; /* and when it was committed or rolled back; 0: it is open */
    uint64_t began;    /* step of its first command */
    uint64_t answered; /* step in which its end was acknowledged */
    uint32_t txn;      /* 0: an autocommit write */
    bool snapshot;     /* it reads at a timestamp, possibly an old one */
    size_t count;
    size_t capacity;
    struct commit_order_event *events;
};

struct commit_order {
    uint64_t now; /* the last timestamp of the current command */
    uint64_t op;  /* number of the write whose events are being added; 0: none */
    size_t count;
    size_t capacity;
    struct commit_order_record *records;
    bool (*is_within)(int above, int dir); /* dirs_within() */
    int (*moved)(int dir, int from, int to);
    int index_docs; /* documents per index */
};

/* Returns: a new record. */
size_t commit_order_begin(struct commit_order *commit_order, uint32_t txn, uint64_t step);
/* Returns: the record of an open transaction; SIZE_MAX: none. */
size_t commit_order_find(const struct commit_order *commit_order, uint32_t txn);
void commit_order_add(struct commit_order *commit_order, size_t record, enum commit_order_kind kind, int doc,
                      int value);
/* Whether a record has events of a write. */
bool commit_order_has(const struct commit_order *commit_order, size_t record, uint64_t op);
void commit_order_commit(struct commit_order *commit_order, size_t record, uint64_t ts, uint64_t step);
/* Ends a record without a commit: the transaction was rolled back. */
void commit_order_rollback(struct commit_order *commit_order, size_t record);
/* Returns to the state when `now` was at most `ts`: the server lost everything later. */
void commit_order_crash(struct commit_order *commit_order, uint64_t ts);
/*
 * Replays all records.
 * Returns: NULL; or a description of the error, with its record in *ret_record.
 */
const char *commit_order_check(struct commit_order *commit_order, size_t *ret_record);
void commit_order_free(struct commit_order *commit_order);

#endif
