/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated disk with the weakest guarantees of a real one. After a power failure, each sector
 * that was not synced is old or new at random, and an unsynced directory has a prefix of its
 * changes. The disk can fail after any number of operations.
 *
 * A failed sync writes some sectors. The others stay readable as written until they are evicted or
 * the power fails, and no later sync writes them, as on Linux.
 */
#ifndef TL_TESTS_LIB_DISK_SIM_H
#define TL_TESTS_LIB_DISK_SIM_H

#include "base/rand.h"
#include "cmdlog/cmdlog_disk.h"

struct disk_sim;

enum { DISK_SIM_SECTOR = 512 };

struct disk_sim *disk_sim_new(uint64_t seed);
void disk_sim_free(struct disk_sim *sim);

/* Returns: a disk for a log to own; freeing it does not free `sim`. */
struct cmdlog_disk *disk_sim_disk(struct disk_sim *sim);

/*
 * Makes every call fail after `operations` more operations that change the disk; UINT64_MAX: never.
 */
void disk_sim_die_after(struct disk_sim *sim, uint64_t operations);
/* Limits the total size of the files, then TL_ERR_NO_SPACE. UINT64_MAX: no limit. */
void disk_sim_set_capacity(struct disk_sim *sim, uint64_t bytes);
/* Makes one of `one_in` syncs of files fail, at random; 0: none. */
void disk_sim_fail_syncs(struct disk_sim *sim, uint64_t one_in);
/* Returns: how many operations have changed the disk. */
uint64_t disk_sim_operations(const struct disk_sim *sim);

/* Simulates a power failure and a restart. The end of a process needs no call: it loses nothing. */
void disk_sim_cut_power(struct disk_sim *sim);

/* Copies the disk, to try different damages. Owns: the caller; disk_sim_free(). */
struct disk_sim *disk_sim_copy(const struct disk_sim *sim);

/* Returns: the i-th file's name, and its bytes, which may be modified; NULL: there are no more. */
const char *disk_sim_file(struct disk_sim *sim, size_t i, char **ret_bytes, size_t *ret_len);

#endif
