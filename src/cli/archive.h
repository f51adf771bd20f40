/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archive of a log: segments that the server no longer needs, kept in a folder of their own under the names that they had, so that a backup can be
 * brought to any timestamp after it was made (restore.c). A segment is complete there or absent. The oldest are removed by age, or when the archive is too large.
 */
#ifndef TL_CLI_ARCHIVE_H
#define TL_CLI_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/types.h"

struct archive_options {
    const char *directory; /* NULL: there is no archive */
    uint64_t keep_us;      /* 0: for ever, as far as time goes */
    uint64_t keep_bytes;   /* 0: as much as there is */
};

struct archive;

/*
 * `log`: the folder of the log's segments. Makes the archive where it is missing.
 * Returns: 0; TL_ERR_IO with *ret_reason (mem_free), also if it is in the data directory's log. Owns: the caller; archive_close(), NULL is fine.
 */
int archive_open(const struct archive_options *options, const char *log, struct archive **ret_archive,
                 char **ret_reason) TL_MUST_USE;
void archive_close(struct archive *archive);

/* For cmdlog_file_options.archive. A failure is logged, the first of several in a row. */
int archive_keep(void *archive, const char *name);

#endif
