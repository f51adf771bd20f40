/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness order. Every commit has a timestamp; so what clients saw can be judged without knowing how it
 * came about: put all that was committed in the order of timestamps, replay it one after another on a plain
 * map, and compare every read. Real time is checked apart: what was acknowledged before something else began
 * must stand before it.
 *
 * A record is a transaction, or a write of its own. What it did is told in the order in which it was done:
 * writes as the server acknowledged them, reads with what they found. A transaction that reads at a timestamp
 * stands at that.
 */
#ifndef TL_TESTS_SIM_OWNERS_COMMIT_ORDER_H
#define TL_TESTS_SIM_OWNERS_COMMIT_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WITNESS_DOCS = 12, WITNESS_DIRS = 4096 };

enum witness_kind {
    WITNESS_READ,    /* it was `value`, -1: it was not there */
    WITNESS_OUTSIDE, /* it did not lie in the directory `value` */
    WITNESS_SET,     /* it is `value` from now on, -1: it is not there */
    WITNESS_CHANGE,  /* the same, but it stays where it lies */
    WITNESS_RENAME,  /* `value`: what lies in a directory, of the documents of the index from `doc` on, lies in another one */
};

/* A document's value and place are one number; -1: there is none. */
static inline int witness_value(int value, int dir)
{
    return value * WITNESS_DIRS + dir + 1;
}

struct witness_event {
    uint8_t kind;
    uint8_t doc;
    int32_t value;
};

struct witness_record {
    uint64_t ts;       /* of its commit; 0: open, or nothing came of it */
    uint64_t began;    /* step in which its first command was given */
    uint64_t answered; /* and the one in which its end was acknowledged */
    uint32_t txn;      /* 0: a write of its own */
    bool snapshot;     /* it reads at a timestamp, which may be of long ago */
    size_t count;
    size_t capacity;
    struct witness_event *events;
};

struct witness {
    size_t count;
    size_t capacity;
    struct witness_record *records;
    bool (*lies_in)(int above, int dir); /* whether a directory is another one or lies below it */
    int (*moved)(int dir, int from, int to);
    int index_docs; /* documents of an index */
};

/* Returns: a new record. */
size_t witness_begin(struct witness *witness, uint32_t txn, uint64_t step);
/* Returns: the record of an open transaction; SIZE_MAX: none. */
size_t witness_find(const struct witness *witness, uint32_t txn);
void witness_tell(struct witness *witness, size_t record, enum witness_kind kind, int doc, int value);
void witness_commit(struct witness *witness, size_t record, uint64_t ts, uint64_t step);
/* It was rolled back: nothing of it ever was. */
void witness_forget(struct witness *witness, size_t record);
/* The server lost all that was committed after `ts`, and all that was open. */
void witness_crash(struct witness *witness, uint64_t ts);
/* Replays. Returns: NULL, or what is wrong, with the record in *ret_record. */
const char *witness_check(struct witness *witness, size_t *ret_record);
void witness_free(struct witness *witness);

#endif
