/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory is its owner's alone; see private_dir.h. */
#include "cli/private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

enum { OTHERS = 077, FILES_OPEN = 16 };

void private_dir_begin(void)
{
    (void)umask(OTHERS);
}

/* Links are left alone: what they lead to is not ours. */
static int tighten_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)place;
    if ((kind == FTW_F || kind == FTW_D) && (info->st_mode & OTHERS) != 0)
        (void)chmod(path, info->st_mode & 07777 & ~(mode_t)OTHERS);
    return 0;
}

void private_dir_tighten(const char *path)
{
    struct stat info;
    char *inside;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || (info.st_mode & OTHERS) == 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (fchmod(fd, info.st_mode & 07777 & ~(mode_t)OTHERS) == 0)
        log_info("%s had mode %04o and is its owner's alone now (0700)", path, (unsigned)info.st_mode & 07777);
    else
        log_warning("%s has mode %04o, others than its owner can read it, and that cannot be changed: %s", path,
                    (unsigned)info.st_mode & 07777, strerror(errno));
    close(fd);
    static const char *const folders[] = {"rocks", "log"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (asprintf(&inside, "%s/%s", path, folders[i]) >= 0) {
            (void)nftw(inside, tighten_entry, FILES_OPEN, FTW_PHYS);
            mem_free(inside);
        }
    static const char *const files[] = {"FORMAT", "SYNCED", "boot", "at-work"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (asprintf(&inside, "%s/%s", path, files[i]) >= 0) {
            if (lstat(inside, &info) == 0 && S_ISREG(info.st_mode))
                (void)chmod(inside, info.st_mode & 07777 & ~(mode_t)OTHERS);
            mem_free(inside);
        }
}
