/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of backups: each is a data directory in it, by its name. One that is being made is in
 * a folder of its own there, locked meanwhile (flock): so a backup is complete or does not exist,
 * and the remains of a crash are those that no process has locked.
 */
#ifndef TL_API_BACKUP_H
#define TL_API_BACKUP_H

#include "base/error.h"

/*
 * Makes the folder where it is missing, and removes the remains of backups that were not completed.
 * Returns: 0, and its real path; TL_ERR_IO with *ret_reason when it cannot be used, or is in the
 * data directory. Owns: the caller, both by mem_free.
 */
int backup_folder_open(const char *path, const char *data, char **ret_path, char **ret_reason) TL_MUST_USE;

#endif
