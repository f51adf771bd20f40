/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories: calls that POSIX has no single function for. */
#ifndef TL_BASE_FILE_H
#define TL_BASE_FILE_H

#include <stddef.h>

#include "base/error.h"

/*
 * Writes all bytes, also if a nearly full disk first accepts only a part.
 * Returns: 0; -1 with errno.
 */
int file_write_all(int fd, const char *bytes, size_t len) TL_MUST_USE;

/*
 * Removes a file or a directory with its contents. Follows no links and enters no other file
 * system. Entries that cannot be removed stay; a missing path is no error.
 */
void file_remove_tree(const char *path);

#endif
