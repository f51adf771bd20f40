/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories; see file.h. */
#include "base/file.h"

#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int file_write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, bytes, len);
        if (done < 0)
            return -1;
        bytes += done;
        len -= (size_t)done;
    }
    return 0;
}

void file_remove_tree(const char *path)
{
    char *paths[] = {(char *)(uintptr_t)path, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    for (FTSENT *entry; walk != NULL && (entry = fts_read(walk)) != NULL;)
        if (entry->fts_info != FTS_D)
            (void)remove(entry->fts_path);
    if (walk != NULL)
        (void)fts_close(walk);
}
