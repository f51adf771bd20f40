/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of one step, counted (README.md, "The work of a step").
 *
 * Each loop of the core whose length follows from what clients have sent adds what its turns cost: core__work() of unit.h, lock_table.walked in
 * the table of locks. The count begins at 0 with each step. It is no clock, and no part of the state: where it is a budget, only work is counted in it
 * that follows from state and command alone.
 *
 * A unit is about a tenth of a microsecond of processor time in the release build on the reference machine (two cores at 2 to 3 GHz, RocksDB on a local disk);
 * the weights are rounded up from what bench/step_bench measures there: its last column is to stay at 100 ns or below.
 */
#ifndef TL_CORE_WORK_H
#define TL_CORE_WORK_H

#include <stdint.h>

/* Units of work: */
enum {
    WORK_LOCK = 1,    /* a lock, a waiting request or a resource that is looked at; three for one that is released */
    WORK_SCAN = 10,   /* a key that an iterator passes */
    WORK_READ = 30,   /* a record that is looked up by its key */
    WORK_WRITE = 20,  /* a record that is put or deleted */
    WORK_ITEM = 20,   /* an item of a write, whatever becomes of it */
    WORK_UNIT = 50,   /* a unit: its batch is begun and written */
    WORK_OWNER = 100, /* a session, transaction or waiting request that ends */
    WORK_LOCK_ASKED = 14, /* a lock that a request asks for, looks and all, where nothing is in the way */
};

/* One unit of work each: */
enum {
    WORK_BYTES = 16,       /* bytes of sources, parsed and written */
    WORK_SCRIPT_STEPS = 4, /* steps of scripts (script.h): 8 to 40 ns each */
};

/* The most that one step may take: 50 ms. */
#define CORE_STEP_WORK UINT64_C(500000)

#endif
