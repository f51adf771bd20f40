/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends a program at a chosen change of files: preloaded (LD_PRELOAD), it counts the calls that change files of the
 * folder TIDELOCK_TEST_KILL_FOLDER, and ends the process as kill -9 does before the one with the number
 * TIDELOCK_TEST_KILL_AT, counted from 1. Bytes written before stay, as the kernel keeps them.
 *
 * At an end in good order it writes the number of calls into the file TIDELOCK_TEST_KILL_COUNT.
 *
 * Counted are: a file created, cut, extended, written, synced, renamed, linked or removed, and a folder made. RocksDB's
 * log of messages is left out, since it is never read. The kernel is asked by system call, so that the interceptors of
 * sanitizers are bypassed.
 */
#undef _FILE_OFFSET_BITS /* else `open' in this file were open64(); both are replaced */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REPLACES __attribute__((visibility("default")))

enum { PATH_BYTES_MAX = 4096 };

static _Atomic long calls;

static int is_of_folder(const char *path)
{
    const char *folder = getenv("TIDELOCK_TEST_KILL_FOLDER");
    const char *name = strrchr(path, '/');
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0 && (name == NULL || strcmp(name, "/LOG") != 0);
}

static void count(void)
{
    const char *at = getenv("TIDELOCK_TEST_KILL_AT");
    if (at != NULL && atomic_fetch_add(&calls, 1) + 1 == atol(at))
        (void)syscall(SYS_kill, getpid(), SIGKILL);
}

__attribute__((destructor)) static void write_count(void)
{
    const char *name = getenv("TIDELOCK_TEST_KILL_COUNT");
    FILE *file = name == NULL ? NULL : fopen(name, "w");
    if (file == NULL)
        return;
    (void)fprintf(file, "%ld\n", atomic_load(&calls));
    (void)fclose(file);
}

static void count_path(const char *path)
{
    if (path != NULL && is_of_folder(path))
        count();
}

static void count_file(int file)
{
    char link[64], path[PATH_BYTES_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long len = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (len <= 0)
        return;
    path[len] = 0;
    count_path(path);
}

/* By system call, since the program's sanitizer makes folders before its own stat() can be called. */
static int is_missing(int folder, const char *path)
{
    struct stat status;
    return syscall(SYS_newfstatat, folder, path, &status, 0) != 0;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* Only an open that makes a file or cuts one changes anything. */
static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    if ((flags & O_TRUNC) != 0 || ((flags & O_CREAT) != 0 && is_missing(AT_FDCWD, path)))
        count_path(path);
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

static mode_t mode_of(int flags, va_list more)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

REPLACES int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...);
REPLACES int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_at(AT_FDCWD, path, flags, mode);
}

REPLACES int rename(const char *from, const char *to)
{
    count_path(to);
    return (int)syscall(SYS_rename, from, to);
}

REPLACES int link(const char *from, const char *to)
{
    count_path(to);
    return (int)syscall(SYS_link, from, to);
}

REPLACES int unlink(const char *path)
{
    count_path(path);
    return (int)syscall(SYS_unlink, path);
}

REPLACES int mkdir(const char *path, mode_t mode)
{
    if (is_missing(AT_FDCWD, path))
        count_path(path);
    return (int)syscall(SYS_mkdir, path, mode);
}

/* Relative to an open folder. */
static void count_at(int folder, const char *path)
{
    if (folder == AT_FDCWD || path[0] == '/')
        count_path(path);
    else
        count_file(folder);
}

REPLACES int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    if ((flags & O_TRUNC) != 0 || ((flags & O_CREAT) != 0 && is_missing(folder, path)))
        count_at(folder, path);
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

REPLACES int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    count_at(to_folder, to);
    return (int)syscall(SYS_renameat, from_folder, from, to_folder, to);
}

REPLACES int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    count_at(to_folder, to);
    return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

REPLACES int unlinkat(int folder, const char *path, int flags)
{
    count_at(folder, path);
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

REPLACES int mkdirat(int folder, const char *path, mode_t mode)
{
    count_at(folder, path);
    return (int)syscall(SYS_mkdirat, folder, path, mode);
}

/* --- Contents ----------------------------------------------------------------------------------------------------- */

REPLACES ssize_t write(int file, const void *bytes, size_t len)
{
    count_file(file);
    return syscall(SYS_write, file, bytes, len);
}

REPLACES ssize_t pwrite(int file, const void *bytes, size_t len, off_t at)
{
    count_file(file);
    return syscall(SYS_pwrite64, file, bytes, len, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t len, off64_t at);
REPLACES ssize_t pwrite64(int file, const void *bytes, size_t len, off64_t at)
{
    return pwrite(file, bytes, len, at);
}

REPLACES ssize_t pwritev(int file, const struct iovec *parts, int part_count, off_t at)
{
    count_file(file);
    return syscall(SYS_pwritev, file, parts, part_count, at, 0);
}

ssize_t pwritev64(int file, const struct iovec *parts, int part_count, off64_t at);
REPLACES ssize_t pwritev64(int file, const struct iovec *parts, int part_count, off64_t at)
{
    return pwritev(file, parts, part_count, at);
}

REPLACES int ftruncate(int file, off_t len)
{
    count_file(file);
    return (int)syscall(SYS_ftruncate, file, len);
}

int ftruncate64(int file, off64_t len);
REPLACES int ftruncate64(int file, off64_t len)
{
    return ftruncate(file, len);
}

REPLACES int fallocate(int file, int mode, off_t at, off_t len)
{
    count_file(file);
    return (int)syscall(SYS_fallocate, file, mode, at, len);
}

int fallocate64(int file, int mode, off64_t at, off64_t len);
REPLACES int fallocate64(int file, int mode, off64_t at, off64_t len)
{
    return fallocate(file, mode, at, len);
}

REPLACES int posix_fallocate(int file, off_t at, off_t len)
{
    count_file(file);
    return syscall(SYS_fallocate, file, 0, at, len) == 0 ? 0 : errno;
}

REPLACES int fsync(int file)
{
    count_file(file);
    return (int)syscall(SYS_fsync, file);
}

REPLACES int fdatasync(int file)
{
    count_file(file);
    return (int)syscall(SYS_fdatasync, file);
}
