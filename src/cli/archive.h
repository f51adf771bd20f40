/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archive of a command log: segments that the server no longer needs, kept in a folder under
 * their names, so that a backup can be rolled forward to any later timestamp (restore.c). A segment
 * there is complete. The oldest ones are removed by age, or when the archive is too large.
 */
#ifndef TL_CLI_ARCHIVE_H
#define TL_CLI_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/types.h"

struct archive_options {
    const char *directory; /* NULL: no archive */
    uint64_t keep_us;      /* maximum age of a segment; 0: no limit */
    uint64_t keep_bytes;   /* maximum size of the archive; 0: no limit */
};

struct archive;

/*
 * Opens the archive, and creates its folder if it does not exist. `log`: the folder of the log's
 * segments.
 * Returns: 0; TL_ERR_IO with *ret_reason (mem_free), also if the archive is in the log's folder.
 * Owns: the caller; archive_close(), which accepts NULL.
 */
int archive_open(const struct archive_options *options, const char *log, struct archive **ret_archive,
                 char **ret_reason) TL_MUST_USE;
void archive_close(struct archive *archive);

/*
 * Archives a segment, for cmdlog_file_options.archive. Logs the first of several consecutive
 * failures.
 */
int archive_keep(void *archive, const char *name);

#endif
