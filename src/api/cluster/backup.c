/* SPDX-License-Identifier: Apache-2.0 */
/* POST /_backup/{name}: a copy of all that there is, which a server can be started on; backup.h. */
#include "api/cluster/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "base/clock.h"
#include "base/file.h"

static const char part_prefix[] = ".part-";

enum { NAME_BYTES_MAX = 200 };

static char *path_of(struct slice folder, struct slice name)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%.*s/%.*s", SLICE_ARG(folder), SLICE_ARG(name));
    return buf_detach(&path, &(size_t){0});
}

/* --- Folders ------------------------------------------------------------------------------------------------------ */

/* Removes a folder with all in it, or counts the bytes of its files; links are not followed. Returns: the bytes. */
static uint64_t walk_folder(const char *path, bool remove_it)
{
    char *paths[] = {(char *)(uintptr_t)path, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    uint64_t bytes = 0;
    for (FTSENT *entry; walk != NULL && (entry = fts_read(walk)) != NULL;) {
        bytes += entry->fts_info == FTS_F ? (uint64_t)entry->fts_statp->st_size : 0;
        if (remove_it && entry->fts_info != FTS_D)
            (void)remove(entry->fts_path);
    }
    if (walk != NULL)
        (void)fts_close(walk);
    return bytes;
}

static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) != 0 ? TL_ERR_IO : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

/* One that is being made is locked. */
static void remove_leftover(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)walk_folder(path, true);
    if (fd >= 0)
        close(fd);
}

static void remove_leftovers(const char *folder)
{
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        if (strncmp(entry->d_name, part_prefix, strlen(part_prefix)) != 0)
            continue;
        tl_cleanup(mem_freep) char *path = path_of(slice_from(folder), slice_from(entry->d_name));
        remove_leftover(path);
    }
    if (listing != NULL)
        closedir(listing);
}

static int refuse_folder(char **ret_reason, const char *path, const char *what)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&text, "--backups %s: %s", path, what);
    *ret_reason = buf_detach(&text, &(size_t){0});
    return TL_ERR_IO;
}

int backup_folder_open(const char *path, const char *data, char **ret_path, char **ret_reason)
{
    char *real = NULL, *real_data = NULL;
    int r = 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return refuse_folder(ret_reason, path, strerror(errno));
    if ((real = realpath(path, NULL)) == NULL || access(real, W_OK | X_OK) != 0)
        r = refuse_folder(ret_reason, path, strerror(errno));
    real_data = realpath(data, NULL);
    size_t len = real_data == NULL ? 0 : strlen(real_data);
    if (r == 0 && len > 0 && strncmp(real, real_data, len) == 0 && (real[len] == '/' || real[len] == '\0'))
        r = refuse_folder(ret_reason, path,
                          "it is in the data directory: a backup must not be lost together with its data");
    if (r == 0) {
        remove_leftovers(real);
        *ret_path = mem_strdup(real, strlen(real));
    }
    free(real);
    free(real_data);
    return r;
}

/* --- One backup --------------------------------------------------------------------------------------------------- */

struct backup {
    struct slice name;
    char *part; /* a folder that goes with the making; empty: it is not there yet */
    char *copy; /* in it, where it is made; it has locks of its own, as a data directory */
    char *path; /* where it is then */
    int lock;   /* on `part` */
    tl_ts ts;
    char *reason;
};

static int refuse_existing(struct request *request, struct slice name)
{
    return request_refuse(request, PROBLEM_RESOURCE_ALREADY_EXISTS, "backup [%.*s] already exists", SLICE_ARG(name));
}

static int fail_backup(struct backup *backup, const char *what)
{
    int error = errno;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&text, "%s: %s", what, strerror(error));
    backup->reason = buf_detach(&text, &(size_t){0});
    return error == ENOSPC || error == EDQUOT ? TL_ERR_NO_SPACE : TL_ERR_IO;
}

static int begin_part(struct backup *backup)
{
    if (mkdtemp(backup->part) == NULL) {
        backup->part[0] = '\0'; /* it may be another backup's */
        return fail_backup(backup, "making its folder");
    }
    backup->lock = open(backup->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (backup->lock < 0 || flock(backup->lock, LOCK_EX | LOCK_NB) != 0)
        return fail_backup(backup, "locking its folder");
    backup->copy = path_of(slice_from(backup->part), SLICE_LIT("copy"));
    return mkdir(backup->copy, 0700) == 0 ? 0 : fail_backup(backup, "making its folder");
}

static int copy_file(const char *from, const char *to)
{
    char bytes[16384];
    ssize_t len = 0;
    int in = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), out = -1;
    int r = in < 0 || (out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0 ? -1 : 0;
    while (r == 0 && (len = read(in, bytes, sizeof bytes)) > 0)
        r = file_write_all(out, bytes, (size_t)len);
    if (r == 0 && (len < 0 || fsync(out) != 0))
        r = -1;
    int error = errno;
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    errno = error;
    return r;
}

/*
 * DATA/scripts, which is the administrator's; a script that was run is in the log in any case.
 * Returns: 0; -1 with errno.
 */
static int copy_scripts(struct slice data, const char *copy)
{
    tl_cleanup(mem_freep) char *from = path_of(data, SLICE_LIT("scripts"));
    tl_cleanup(mem_freep) char *to = path_of(slice_from(copy), SLICE_LIT("scripts"));
    DIR *listing = opendir(from);
    int r = 0;
    if (listing == NULL)
        return 0;
    if (mkdir(to, 0700) != 0)
        r = -1;
    for (struct dirent *entry; r == 0 && (entry = readdir(listing)) != NULL;) {
        tl_cleanup(mem_freep) char *one = path_of(slice_from(from), slice_from(entry->d_name));
        tl_cleanup(mem_freep) char *other = path_of(slice_from(to), slice_from(entry->d_name));
        struct stat status;
        if (lstat(one, &status) == 0 && S_ISREG(status.st_mode))
            r = copy_file(one, other);
    }
    int error = errno;
    closedir(listing);
    errno = error;
    return r == 0 && sync_folder(to) != 0 ? -1 : r;
}

static int fill_backup(struct api *api, struct backup *backup)
{
    int r = journal_copy(api->journal, backup->copy, &backup->ts, &backup->reason);
    if (r == 0 && copy_scripts(api->options.data_directory, backup->copy) != 0)
        r = fail_backup(backup, "copying scripts");
    if (r == 0 && sync_folder(backup->copy) != 0)
        r = fail_backup(backup, "syncing its folder");
    return r;
}

static void end_backup(struct backup *backup)
{
    if (backup->part[0] != '\0')
        (void)walk_folder(backup->part, true);
    if (backup->lock >= 0)
        close(backup->lock);
    mem_free(backup->part);
    mem_free(backup->copy);
    mem_free(backup->path);
    mem_free(backup->reason);
}

static int answer_backup(struct request *request, const struct backup *backup)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "acknowledged");
    json_bool(&writer, true);
    json_key(&writer, "backup");
    json_string(&writer, backup->name);
    json_key(&writer, "timestamp");
    json_u64(&writer, backup->ts);
    json_key(&writer, "size_in_bytes");
    json_u64(&writer, walk_folder(backup->path, false));
    json_key(&writer, "took");
    json_u64(&writer, (clock_boot_us() - request->begun_us) / TL_MS);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int explain_failure(struct request *request, int code, const struct backup *backup)
{
    const char *why = backup->reason != NULL ? backup->reason : error_text(code);
    if (code == TL_ERR_BUSY)
        return request_refuse(request, PROBLEM_STOPPING, "no backup was made: %s", why);
    if (code == TL_ERR_NO_SPACE)
        return request_refuse(request, PROBLEM_DISK_FULL, "no backup was made, the disk has no room for it: %s", why);
    return request_refuse(request, PROBLEM_ILLEGAL_STATE, "no backup was made: %s", why);
}

static int make_backup(struct request *request)
{
    struct api *api = request->api;
    struct slice folder = api->options.backups;
    struct backup backup = {.name = request_part(request, PART_NAME), .lock = -1};
    backup.part = path_of(folder, SLICE_LIT(".part-XXXXXX"));
    backup.path = path_of(folder, backup.name);
    int r = begin_part(&backup);
    if (r == 0)
        r = fill_backup(api, &backup);
    bool there = false;
    if (r == 0 && renameat2(AT_FDCWD, backup.copy, AT_FDCWD, backup.path, RENAME_NOREPLACE) != 0) {
        there = errno == EEXIST;
        r = fail_backup(&backup, "giving it its name");
    } else if (r == 0 && sync_folder(folder.data) != 0) {
        r = fail_backup(&backup, "syncing its name");
    }
    if (there)
        r = refuse_existing(request, backup.name);
    else
        r = r == 0 ? answer_backup(request, &backup) : explain_failure(request, r, &backup);
    end_backup(&backup);
    return r;
}

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '_' && c != '.')))
            return false;
    }
    return name.len > 0 && name.len <= NAME_BYTES_MAX;
}

int handle_backup(struct request *request)
{
    struct slice name = request_part(request, PART_NAME), folder = request->api->options.backups;
    int r = request_accept(request);
    if (r != 0)
        return r;
    if (folder.len == 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "there is no directory for backups: the server was started without [--backups DIR]");
    if (!is_name(name))
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "[%.*s] is not a valid name of a backup: letters, digits, '-', '_' and '.', a letter or digit "
            "first, %d bytes at most",
            SLICE_ARG(name), NAME_BYTES_MAX);
    tl_cleanup(mem_freep) char *path = path_of(folder, name);
    struct stat status;
    if (lstat(path, &status) == 0)
        return refuse_existing(request, name);
    return request_work(request, make_backup);
}
