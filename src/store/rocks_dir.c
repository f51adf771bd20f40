/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory of a store; see rocks_dir.h. */
#include "store/rocks_dir.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "store/rocks_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/*
 * Formats of a data directory. A version opens all formats up to its own and converts them to its
 * own.
 *   1: fields of directories have entries of their own, and the catalog calls them complete
 *   2: new documents have no such entries (mapping/README.md, invariant 8); otherwise as 1
 *   3: RocksDB has no WAL; durable are the command log and the store as of a checkpoint
 */
enum { FORMAT_BYTES_MAX = 64 };

#define FORMAT_WORD "tidelock "

static char *path_join(const char *directory, const char *name)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%s/%s", directory, name);
    size_t len;
    return buf_detach(&path, &len);
}

static int fail_errno(char **ret_reason, const char *what, const char *path)
{
    int error = errno;
    rocks__set_reason(ret_reason, "cannot %s %s: %s", what, path, strerror(error));
    return error == ENOSPC ? TL_ERR_NO_SPACE : TL_ERR_IO;
}

/*
 * Checks that a directory has nothing except the leftovers of an interrupted creation, and a folder
 * of scripts, which may be put there before the first start. Returns: 1: so; 0; TL_ERR_IO.
 */
static int is_vacant(const char *path, char **ret_reason)
{
    static const char *const ours[] = {".",   "..",   "lost+found", "FORMAT.new", "SYNCED",  "rocks",
                                       "log", "boot", "at-work",    "scripts",    "cluster", "cluster.part"};
    DIR *listing = opendir(path);
    if (listing == NULL)
        return fail_errno(ret_reason, "list", path);
    int vacant = 1;
    for (struct dirent *entry; vacant == 1 && (entry = readdir(listing)) != NULL;) {
        bool known = false;
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            known |= strcmp(entry->d_name, ours[i]) == 0;
        vacant = known;
    }
    closedir(listing);
    return vacant;
}

/* Writes FORMAT under another name and renames it, so that it is complete or missing. */
static int create_format(const char *new_path, const char *path, char **ret_reason)
{
    int fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(ret_reason, "create", new_path);
    char text[FORMAT_BYTES_MAX];
    int len = snprintf(text, sizeof text, FORMAT_WORD "%d\n", ROCKS_FORMAT);
    INSIST(len > 0 && (size_t)len < sizeof text);
    bool written = write(fd, text, (size_t)len) == len && fsync(fd) == 0;
    int r = written ? 0 : fail_errno(ret_reason, "write", new_path);
    close(fd);
    if (r == 0 && rename(new_path, path) != 0)
        r = fail_errno(ret_reason, "create", path);
    return r;
}

int rocks_dir_write_format(const char *directory, char **ret_reason)
{
    tl_cleanup(mem_freep) char *new_path = path_join(directory, "FORMAT.new");
    tl_cleanup(mem_freep) char *path = path_join(directory, "FORMAT");
    return create_format(new_path, path, ret_reason);
}

int rocks_dir_finish(struct rocks_dir *dir, char **ret_reason)
{
    REQUIRE(dir->lock_fd >= 0 && dir->path != NULL);
    if (!dir->fresh && dir->format == ROCKS_FORMAT)
        return 0;
    int r = rocks_dir_write_format(dir->path, ret_reason);
    if (r == 0 && fsync(dir->lock_fd) != 0)
        r = fail_errno(ret_reason, "sync", dir->path);
    if (r < 0)
        return tl_trace(r);
    if (!dir->fresh)
        log_info("%s was of format %u and is of format %d now: programs that do not know that refuse it", dir->path,
                 dir->format, ROCKS_FORMAT);
    dir->fresh = false;
    dir->format = ROCKS_FORMAT;
    return 0;
}

/* Opens and locks the directory; creates it first unless `read_only`. */
static int lock_directory(struct rocks_dir *dir, bool read_only, char **ret_reason)
{
    REQUIRE(dir->lock_fd < 0);
    if (!read_only && mkdir(dir->path, 0700) != 0 && errno != EEXIST)
        return fail_errno(ret_reason, "create the data directory", dir->path);
    dir->lock_fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->lock_fd < 0)
        return fail_errno(ret_reason, "open the data directory", dir->path);
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return fail_errno(ret_reason, "lock the data directory", dir->path);
    rocks__set_reason(ret_reason, "the data directory %s is in use by another process: a server, or a check",
                      dir->path);
    return TL_ERR_BUSY;
}

static int check_format_number(struct slice text, const char *path, uint64_t *ret_number, char **ret_reason)
{
    text.len = slice_find_byte(text, '\n');
    uint64_t number = 0;
    bool known = slice_starts_with(text, SLICE_LIT(FORMAT_WORD)) &&
                 slice_to_u64(slice_from_offset(text, strlen(FORMAT_WORD)), &number) && number > 0;
    if (!known) {
        rocks__set_reason(ret_reason, "%s does not hold a format number", path);
        return TL_ERR_CORRUPT;
    }
    if (number > ROCKS_FORMAT) {
        rocks__set_reason(
            ret_reason,
            "%s says format %llu, and this program knows formats up to %d: a newer one wrote it; start the "
            "newer one, or restore a backup from before the upgrade",
            path, (unsigned long long)number, ROCKS_FORMAT);
        return TL_ERR_VERSION;
    }
    *ret_number = number;
    return 0;
}

/*
 * Returns: advice about a directory without FORMAT. Elasticsearch keeps its data in nodes/0, 8.x in
 *          _state and indices.
 */
static const char *guess_owner(const char *path)
{
    tl_cleanup(mem_freep) char *nodes = path_join(path, "nodes");
    tl_cleanup(mem_freep) char *state = path_join(path, "_state");
    bool elastic = access(nodes, F_OK) == 0 || access(state, F_OK) == 0;
    return elastic ? "it looks like Elasticsearch's, whose files are not read here: "
                     "copy documents over HTTP, by its own _reindex or a scroll and _bulk"
                   : "name an empty directory, or one that does not exist yet";
}

static int missing_format(struct rocks_dir *dir, bool read_only, char **ret_reason)
{
    int r = read_only ? 0 : is_vacant(dir->path, ret_reason);
    if (r == 0) {
        rocks__set_reason(ret_reason, "%s is not a data directory (it has no file FORMAT): %s", dir->path,
                          read_only ? "name one that a server has made" : guess_owner(dir->path));
        return TL_ERR_IO;
    }
    dir->fresh = r > 0;
    return r < 0 ? tl_trace(r) : 0;
}

/* Refuses an older format with `read_only`, since it cannot be converted. */
static int check_older(const struct rocks_dir *dir, bool read_only, char **ret_reason)
{
    if (!read_only || dir->format == ROCKS_FORMAT)
        return 0;
    rocks__set_reason(
        ret_reason,
        "%s is of format %u, and this program reads format %d: a server that is started on it converts it, once",
        dir->path, dir->format, ROCKS_FORMAT);
    return TL_ERR_VERSION;
}

static int read_format(struct rocks_dir *dir, bool read_only, char **ret_reason)
{
    tl_cleanup(mem_freep) char *path = path_join(dir->path, "FORMAT");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
    if (fd < 0 && errno == ENOENT)
        return missing_format(dir, read_only, ret_reason);
    if (fd < 0)
        return fail_errno(ret_reason, "open", path);
    char text[FORMAT_BYTES_MAX];
    ssize_t len = pread(fd, text, sizeof text, 0);
    uint64_t number = ROCKS_FORMAT;
    int r = len < 0 ? fail_errno(ret_reason, "read", path)
                    : check_format_number(slice_make(text, (size_t)len), path, &number, ret_reason);
    close(fd);
    dir->format = (unsigned)number;
    return r < 0 ? tl_trace(r) : check_older(dir, read_only, ret_reason);
}

int rocks_dir_open(struct slice directory, bool read_only, struct rocks_dir *ret_dir, char **ret_reason)
{
    struct rocks_dir dir = ROCKS_DIR_NONE;
    dir.format = ROCKS_FORMAT;
    dir.path = mem_strdup(directory.data, directory.len);
    dir.rocks_path = path_join(dir.path, "rocks");
    int r = lock_directory(&dir, read_only, ret_reason);
    if (r == 0)
        r = read_format(&dir, read_only, ret_reason);
    if (r < 0) {
        rocks_dir_close(&dir);
        return tl_trace(r);
    }
    *ret_dir = dir;
    return 0;
}

void rocks_dir_close(struct rocks_dir *dir)
{
    if (dir->lock_fd >= 0)
        close(dir->lock_fd); /* unlocks */
    mem_free(dir->path);
    mem_free(dir->rocks_path);
    *dir = ROCKS_DIR_NONE;
}

/* SYNCED holds the number and its complement, which detects damage. */
uint64_t rocks_dir_synced(const struct rocks_dir *dir)
{
    REQUIRE(dir->path != NULL);
    uint64_t words[2] = {0};
    tl_cleanup(mem_freep) char *path = path_join(dir->path, "SYNCED");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t len = fd < 0 ? 0 : pread(fd, words, sizeof words, 0);
    if (fd >= 0)
        close(fd);
    return len == sizeof words && words[0] == ~words[1] ? words[0] : 0;
}

uint64_t rocks_dir_free_bytes(const struct rocks_dir *dir)
{
    struct statvfs status;
    if (dir->lock_fd < 0 || fstatvfs(dir->lock_fd, &status) != 0)
        return UINT64_MAX;
    return (uint64_t)status.f_bavail * status.f_frsize;
}

bool rocks_dir_is_table(const char *name)
{
    const char *end = strrchr(name, '.');
    return end != NULL && strcmp(end, ".sst") == 0;
}

uint64_t rocks_dir_disk_bytes(const struct rocks_dir *dir)
{
    DIR *listing = dir->rocks_path == NULL ? NULL : opendir(dir->rocks_path);
    if (listing == NULL)
        return 0;
    uint64_t bytes = 0;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        struct stat status;
        if (rocks_dir_is_table(entry->d_name) && fstatat(dirfd(listing), entry->d_name, &status, 0) == 0)
            bytes += (uint64_t)status.st_size;
    }
    closedir(listing);
    return bytes;
}
