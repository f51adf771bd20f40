/* SPDX-License-Identifier: Apache-2.0 */
/* The file log's disk as a directory of the file system; see cmdlog_disk.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "cmdlog/cmdlog_disk.h"

struct posix_disk {
    struct cmdlog_disk disk;
    int directory;
};

enum { PARTS_MAX = 64 };

static int directory_of(const struct cmdlog_disk *disk)
{
    return ((const struct posix_disk *)disk)->directory;
}

static int io_failed(void)
{
    return errno == ENOSPC || errno == EDQUOT ? TL_ERR_NO_SPACE : TL_ERR_IO;
}

static int posix_open(struct cmdlog_disk *disk, const char *name, bool create, int *ret_file)
{
    int file = openat(directory_of(disk), name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
    if (file < 0)
        return errno == ENOENT ? DISK_NO_FILE : tl_trace(io_failed());
    *ret_file = file;
    return 0;
}

static void posix_close(struct cmdlog_disk *disk, int file)
{
    REQUIRE(file >= 0); /* -1: a segment whose file is closed */
    (void)disk;
    close(file);
}

static int posix_read(struct cmdlog_disk *disk, int file, uint64_t offset, void *bytes, size_t len, size_t *ret_len)
{
    REQUIRE(file >= 0);
    size_t done = 0;
    (void)disk;
    while (done < len) {
        ssize_t got = pread(file, (char *)bytes + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tl_trace(TL_ERR_IO);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_len = done;
    return 0;
}

/* Writes all of `run`, in as many calls as that takes. Modifies `run`. */
static int write_run(int file, uint64_t offset, struct iovec *run, int count)
{
    while (count > 0) {
        ssize_t written = pwritev(file, run, count, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return tl_trace(io_failed());
        offset += (uint64_t)written;
        while (count > 0 && (size_t)written >= run->iov_len) {
            written -= (ssize_t)run->iov_len;
            run++;
            count--;
        }
        if (count > 0) {
            run->iov_base = (char *)run->iov_base + written;
            run->iov_len -= (size_t)written;
        }
    }
    return 0;
}

static int posix_write(struct cmdlog_disk *disk, int file, uint64_t offset, const struct slice *parts, size_t count)
{
    REQUIRE(file >= 0);
    (void)disk;
    while (count > 0) {
        struct iovec run[PARTS_MAX];
        uint64_t bytes = 0;
        size_t taken = count < PARTS_MAX ? count : PARTS_MAX;
        for (size_t i = 0; i < taken; i++) {
            run[i] = (struct iovec){(void *)(uintptr_t)parts[i].data, parts[i].len};
            bytes += parts[i].len;
        }
        int r = write_run(file, offset, run, (int)taken);
        if (r < 0)
            return tl_trace(r);
        offset += bytes;
        parts += taken;
        count -= taken;
    }
    return 0;
}

static int posix_size(struct cmdlog_disk *disk, int file, uint64_t *ret_size)
{
    REQUIRE(file >= 0);
    struct stat stat;
    (void)disk;
    if (fstat(file, &stat) != 0)
        return tl_trace(TL_ERR_IO);
    *ret_size = (uint64_t)stat.st_size;
    return 0;
}

static int posix_sync(struct cmdlog_disk *disk, int file)
{
    REQUIRE(file >= 0);
    (void)disk;
    return fdatasync(file) == 0 ? 0 : tl_trace(TL_ERR_IO);
}

static int posix_rename(struct cmdlog_disk *disk, const char *from, const char *to)
{
    return renameat(directory_of(disk), from, directory_of(disk), to) == 0 ? 0 : tl_trace(io_failed());
}

static int posix_remove(struct cmdlog_disk *disk, const char *name)
{
    return unlinkat(directory_of(disk), name, 0) == 0 || errno == ENOENT ? 0 : tl_trace(TL_ERR_IO);
}

static int posix_sync_directory(struct cmdlog_disk *disk)
{
    return fsync(directory_of(disk)) == 0 ? 0 : tl_trace(TL_ERR_IO);
}

static int posix_list(struct cmdlog_disk *disk, void (*visit)(void *context, const char *name), void *context)
{
    int copy = openat(directory_of(disk), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    if (directory == NULL) {
        if (copy >= 0)
            close(copy);
        return tl_trace(TL_ERR_IO);
    }
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.')
            visit(context, entry->d_name);
    closedir(directory);
    return 0;
}

static int posix_random(struct cmdlog_disk *disk, void *bytes, size_t len)
{
    (void)disk;
    return getrandom(bytes, len, 0) == (ssize_t)len ? 0 : tl_trace(TL_ERR_IO);
}

static void posix_free(struct cmdlog_disk *disk)
{
    close(directory_of(disk));
    mem_free(disk);
}

static const struct cmdlog_disk_functions functions = {
    .open = posix_open,
    .close = posix_close,
    .read = posix_read,
    .write = posix_write,
    .size = posix_size,
    .sync = posix_sync,
    .rename = posix_rename,
    .remove = posix_remove,
    .sync_directory = posix_sync_directory,
    .list = posix_list,
    .random = posix_random,
    .free = posix_free,
};

int cmdlog_disk_open(const char *directory, struct cmdlog_disk **ret_disk)
{
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return tl_trace(io_failed());
    int opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        return tl_trace(TL_ERR_IO);
    struct posix_disk *disk = mem_zalloc(sizeof *disk);
    *disk = (struct posix_disk){{&functions}, opened};
    *ret_disk = &disk->disk;
    return 0;
}
