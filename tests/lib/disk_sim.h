/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk in memory that behaves no better than a disk must: what was not synced is kept sector by sector, or not, by chance; names
 * that were not synced are as they were after some of the changes; and it can go dead after any number of operations. A sync that fails has
 * written some sectors; the others are read as they were written until they are evicted from memory or the power is cut, and no later sync writes
 * them, as on Linux.
 */
#ifndef TL_TESTS_LIB_DISK_SIM_H
#define TL_TESTS_LIB_DISK_SIM_H

#include "base/rand.h"
#include "cmdlog/cmdlog_disk.h"

struct disk_sim;

enum { DISK_SIM_SECTOR = 512 };

struct disk_sim *disk_sim_new(uint64_t seed);
void disk_sim_free(struct disk_sim *sim);

/* The disk to give to a log, which frees only this handle. */
struct cmdlog_disk *disk_sim_disk(struct disk_sim *sim);

/* After so many operations more that change it every call fails; UINT64_MAX: never. */
void disk_sim_die_after(struct disk_sim *sim, uint64_t operations);
/* Files may grow to so many bytes together: what would go beyond finds no room. UINT64_MAX: there is always some. */
void disk_sim_set_capacity(struct disk_sim *sim, uint64_t bytes);
/* From now on one in so many syncs of a file fails; 0: none. */
void disk_sim_fail_syncs(struct disk_sim *sim, uint64_t one_in);
/* Returns: how many operations that change it there were. */
uint64_t disk_sim_operations(const struct disk_sim *sim);

/* The power is cut and comes back: everything not synced is there or not. Of a process that dies, nothing is lost: call nothing. */
void disk_sim_cut_power(struct disk_sim *sim);

/* A copy, for trying many kinds of damage. */
struct disk_sim *disk_sim_copy(const struct disk_sim *sim);

/* Files one after the other: their bytes, to be damaged. Returns: NULL behind the last. */
const char *disk_sim_file(struct disk_sim *sim, size_t i, char **ret_bytes, size_t *ret_len);

#endif
