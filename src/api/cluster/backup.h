/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where backups are made: a folder, in it one data directory a backup, by its name. One that is being made lies in a folder of its own beside
 * them, which is locked meanwhile (flock): so a backup is whole or not there, and what a crash has left of one is known by nobody's holding that.
 */
#ifndef TL_API_BACKUP_H
#define TL_API_BACKUP_H

#include "base/error.h"

/*
 * Makes the folder where it is missing, and removes what was left of backups whose making has ended early.
 * Returns: 0, and its real path; TL_ERR_IO with *ret_reason when it cannot be used, or lies in the data directory. Owns: the caller, both by mem_free.
 */
int backup_folder_open(const char *path, const char *data, char **ret_path, char **ret_reason) TL_MUST_USE;

#endif
