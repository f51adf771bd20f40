/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of a log; see archive.h. */
#include "cli/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

static const char suffix[] = ".segment";
static const char part_name[] = "part"; /* file name of a segment during its copy; one at a time */

struct archive {
    struct archive_options options;
    char *path;
    int log;       /* the folder that segments come from */
    int directory; /* ... and go to */
    bool failing;
};

static int refuse_archive(char **ret_reason, const char *path, const char *what)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&text, "--log-archive %s: %s", path, what);
    *ret_reason = buf_detach(&text, &(size_t){0});
    return TL_ERR_IO;
}

int archive_open(const struct archive_options *options, const char *log, struct archive **ret_archive,
                 char **ret_reason)
{
    struct stat here, there;
    const char *path = options->directory;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return refuse_archive(ret_reason, path, strerror(errno));
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        from = open(log, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || from < 0 || faccessat(directory, ".", W_OK | X_OK, 0) != 0 || fstat(directory, &there) != 0 ||
        fstat(from, &here) != 0) {
        int r = refuse_archive(ret_reason, path, strerror(errno));
        if (directory >= 0)
            close(directory);
        if (from >= 0)
            close(from);
        return r;
    }
    if (here.st_dev == there.st_dev && here.st_ino == there.st_ino) {
        close(directory);
        close(from);
        return refuse_archive(ret_reason, path, "it is the folder of the log itself");
    }
    struct archive *archive = mem_zalloc(sizeof *archive);
    *archive = (struct archive){
        .options = *options, .path = mem_strdup(path, strlen(path)), .log = from, .directory = directory};
    *ret_archive = archive;
    return 0;
}

void archive_close(struct archive *archive)
{
    if (archive == NULL)
        return;
    close(archive->log);
    close(archive->directory);
    mem_free(archive->path);
    mem_free(archive);
}

/* --- Taking one over ---------------------------------------------------------------------------------------------- */

static int copy_bytes(int from, int to)
{
    char bytes[65536];
    ssize_t len;
    while ((len = read(from, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0, done; at < len; at += done)
            if ((done = write(to, bytes + at, (size_t)(len - at))) < 0)
                return -1;
    return len < 0 || fsync(to) != 0 ? -1 : 0;
}

/* Copies a segment to another file system. Returns: 0; -1 with errno. */
static int copy_segment(const struct archive *archive, const char *name)
{
    int from = openat(archive->log, name, O_RDONLY | O_CLOEXEC);
    int to = openat(archive->directory, part_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = from < 0 || to < 0 ? -1 : copy_bytes(from, to);
    if (r == 0)
        r = renameat(archive->directory, part_name, archive->directory, name);
    int error = errno;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    errno = error;
    return r;
}

/* --- Letting go of the oldest ------------------------------------------------------------------------------------- */

static int keep_segments(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name), end = strlen(suffix);
    return len > end && strcmp(entry->d_name + len - end, suffix) == 0;
}

static bool is_old(const struct archive *archive, const struct stat *status, uint64_t bytes)
{
    const struct archive_options *o = &archive->options;
    uint64_t now = clock_wall_us(), written = (uint64_t)status->st_mtim.tv_sec * TL_SECOND;
    return (o->keep_us > 0 && written + o->keep_us < now) || (o->keep_bytes > 0 && bytes > o->keep_bytes);
}

/*
 * Removes the oldest segments only, so that the archive has no gap. Names are numbers of equal
 * length.
 */
static void prune_segments(const struct archive *archive)
{
    struct dirent **entries;
    struct stat status;
    uint64_t bytes = 0;
    int count = scandir(archive->path, &entries, keep_segments, alphasort);
    bool going = archive->options.keep_us > 0 || archive->options.keep_bytes > 0;
    for (int i = 0; i < count; i++)
        bytes += fstatat(archive->directory, entries[i]->d_name, &status, 0) == 0 ? (uint64_t)status.st_size : 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        going = going && fstatat(archive->directory, name, &status, 0) == 0 && is_old(archive, &status, bytes) &&
                unlinkat(archive->directory, name, 0) == 0;
        bytes -= going ? (uint64_t)status.st_size : 0;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

int archive_keep(void *context, const char *name)
{
    struct archive *archive = context;
    bool moved =
        renameat(archive->log, name, archive->directory, name) == 0 ||
        (errno == ENOENT && faccessat(archive->directory, name, F_OK, 0) == 0); /* it is there, and the sync failed */
    bool done = moved || (errno == EXDEV && copy_segment(archive, name) == 0);
    done = done && fsync(archive->directory) == 0;
    if (!done && !archive->failing)
        log_error("the archive of the log takes nothing: %s: %s; the log grows until it does", archive->path,
                  strerror(errno));
    else if (done && archive->failing)
        log_info("the archive of the log takes segments again");
    archive->failing = !done;
    if (!done)
        return TL_ERR_IO;
    prune_segments(archive);
    return moved;
}
