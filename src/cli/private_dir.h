/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory is its owner's alone. */
#ifndef TL_CLI_PRIVATE_DIR_H
#define TL_CLI_PRIVATE_DIR_H

/* From now on nobody but the owner reads or writes what this process makes. */
void private_dir_begin(void);

/*
 * Takes from group and others what they may do with a data directory and what lies in it, and logs that. What a version before
 * this one has made was open to all. Requires: it has been opened as a data directory, so that no other folder is meant.
 */
void private_dir_tighten(const char *path);

#endif
