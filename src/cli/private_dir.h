/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory is its owner's alone. */
#ifndef TL_CLI_PRIVATE_DIR_H
#define TL_CLI_PRIVATE_DIR_H

/* From now on only the owner can read or write files that this process makes. */
void private_dir_begin(void);

/*
 * Removes the permissions of group and others from a data directory and its files, and logs that.
 * Directories of earlier versions were accessible to all. Assumes: it has been opened as a data
 * directory, so that no other folder is meant.
 */
void private_dir_tighten(const char *path);

#endif
