/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File scripts: the files in DATA/scripts, which scripts of 5.x call by name.
 *
 * A thread looks at the folder once a second. When names, sizes or times of its files have changed,
 * all of them are read and handed to the core in one command, so that a script runs as it was at
 * its command's timestamp.
 */
#ifndef TL_API_FILE_SCRIPTS_H
#define TL_API_FILE_SCRIPTS_H

#include "base/error.h"
#include "base/slice.h"

#define FILE_SCRIPTS_MAX 1000
#define FILE_SCRIPT_BYTES_MAX ((size_t)65535)

struct journal;
struct file_scripts;

/*
 * Reads the folder `directory`/scripts, logs each script that differs from that of the log, waits until the core has
 * the folder, then watches it. A folder that is not there is an empty one.
 * Returns: 0, TL_ERR_IO. Owns: the caller; file_scripts_close(). `journal` outlives it.
 */
int file_scripts_open(struct journal *journal, struct slice directory, struct file_scripts **ret_scripts) TL_MUST_USE;
void file_scripts_close(struct file_scripts *scripts);

#endif
