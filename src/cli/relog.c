/* SPDX-License-Identifier: Apache-2.0 */
/* Rolls a backup forward; see relog.h. */
#include "cli/relog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/durable.h"
#include "cli/escape.h"
#include "core/command/command.h"
#include "core/step/core.h"
#include "core/step/command_group.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_file.h"

/* --- Folders ------------------------------------------------------------------------------------------------------ */

static char *path_of(const char *folder, const char *name)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%s/%s", folder, name);
    return buf_detach(&path, &(size_t){0});
}

static int fail_path(const char *path)
{
    fprintf(stderr, "tidelock: %s: %s\n", escape_terminal(path), strerror(errno));
    return -1;
}

static int copy_file(const char *from, const char *to)
{
    char bytes[65536];
    ssize_t len = 0;
    int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), out = -1;
    int r = in < 0 || (out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0
                ? fail_path(in < 0 ? from : to)
                : 0;
    while (r == 0 && (len = read(in, bytes, sizeof bytes)) > 0)
        r = file_write_all(out, bytes, (size_t)len) == 0 ? 0 : fail_path(to);
    if (r == 0 && (len < 0 || fsync(out) != 0))
        r = fail_path(len < 0 ? from : to);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return r;
}

static bool is_table(const char *path)
{
    size_t len = strlen(path);
    return len > 4 && strcmp(path + len - 4, ".sst") == 0;
}

/* Links a table of RocksDB, which is never changed after it was written; copies the rest. */
static int link_or_copy_file(const char *from, const char *to)
{
    return is_table(from) && link(from, to) == 0 ? 0 : copy_file(from, to);
}

/* Copies a folder with its content, each file by `copy`; `to` NULL: removes it. */
static int copy_folder(const char *from, const char *to, int (*copy)(const char *from, const char *to))
{
    char *paths[] = {(char *)(uintptr_t)from, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int r = walk == NULL ? fail_path(from) : 0;
    for (FTSENT *entry; r == 0 && (entry = fts_read(walk)) != NULL;) {
        if (to == NULL) {
            if (entry->fts_info != FTS_D)
                (void)remove(entry->fts_path);
            continue;
        }
        struct buf target = BUF_INIT(BUF_UNLIMITED);
        buf_printf(&target, "%s%s", to, entry->fts_path + strlen(from));
        buf_byte(&target, '\0');
        if (entry->fts_info == FTS_D)
            r = mkdir(target.data, 0700) == 0 ? 0 : fail_path(target.data);
        else if (entry->fts_info == FTS_F)
            r = copy(entry->fts_path, target.data);
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
            r = fail_path(entry->fts_path);
        buf_deinit(&target);
    }
    if (walk != NULL)
        (void)fts_close(walk);
    return r;
}

/*
 * Links or copies the segments of a log's folder into another. Two folders may have the same
 * segment.
 */
static int gather_segments(const char *folder, const char *into)
{
    DIR *listing = opendir(folder);
    int r = listing == NULL ? fail_path(folder) : 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(listing)) != NULL;) {
        if (strstr(entry->d_name, ".segment") == NULL && strcmp(entry->d_name, "durable") != 0)
            continue;
        tl_cleanup(mem_freep) char *from = path_of(folder, entry->d_name);
        tl_cleanup(mem_freep) char *to = path_of(into, entry->d_name);
        if (access(to, F_OK) == 0 || link(from, to) == 0)
            continue;
        r = copy_file(from, to);
    }
    if (listing != NULL)
        closedir(listing);
    return r;
}

/* --- Logs --------------------------------------------------------------------------------------------------------- */

static int relog_failed(const char *what, int code, char *reason)
{
    fprintf(stderr, "tidelock: %s: %s\n", escape_terminal(what),
            reason != NULL ? escape_terminal(reason) : error_text(code));
    mem_free(reason);
    return -1;
}

static int open_log(const char *path, bool read_only, struct cmdlog **ret_log)
{
    const struct cmdlog_file_options opening = {.segment_bytes = RECOVER_SEGMENT_BYTES, .read_only = read_only};
    struct cmdlog_disk *disk;
    char *reason = NULL;
    int r = cmdlog_disk_open(path, &disk);
    if (r == 0)
        r = cmdlog_file_open(disk, &opening, ret_log, &reason);
    return r == 0 ? 0 : relog_failed(path, r, reason);
}

/* Checks, before it is copied, that a directory may be a backup. Returns: 0; -1, with the reason printed. */
static int check_backup(const char *from)
{
    tl_cleanup(mem_freep) char *format = path_of(from, "FORMAT");
    if (access(format, F_OK) == 0)
        return 0;
    fprintf(stderr, "tidelock: %s is not a backup: FORMAT: %s; name a directory that `tidelock backup' has made\n",
            escape_terminal(from), strerror(errno));
    return -1;
}

/* Returns: a text with `from` in place of each `path`; mem_free(), which it does to `text`. NULL for NULL. */
static char *with_path(char *text, const char *path, const char *from)
{
    struct buf named = BUF_INIT(BUF_UNLIMITED);
    const char *rest = text, *found;
    if (text == NULL)
        return NULL;
    while ((found = strstr(rest, path)) != NULL) {
        buf_append(&named, rest, (size_t)(found - rest));
        buf_printf(&named, "%s", from);
        rest = found + strlen(path);
    }
    buf_printf(&named, "%s", rest);
    mem_free(text);
    text = mem_strdup(named.data, named.len);
    buf_deinit(&named);
    return text;
}

/* Reads the position and timestamp of the store in `path`, a copy of the backup `from`, which a failure names. */
static int read_backup(const char *path, const char *from, struct recovered *ret_store, tl_ts *ret_ts)
{
    const struct store_options opening = {.directory = slice_from(path), .read_only = true};
    const struct core_limits limits = core_limits_default();
    struct durable durable = {0};
    char *reason = NULL;
    int r = durable_open(&opening, &limits, NULL, &durable, &reason);
    if (r == 0) {
        *ret_store = durable.recovered;
        *ret_ts = core_last_ts(durable.core);
    }
    durable_close(&durable);
    return r == 0 ? 0 : relog_failed(from, r, with_path(reason, path, from));
}

/*
 * Reads the timestamp at which an entry was proposed, and the length of its part with the commands that may have
 * timestamps up to `until`. Each command has at least one timestamp, so those that certainly follow are cut off. A
 * command may have more (a LOCK has one for each lock): how many, only its step knows.
 * Returns: 0; fatal codes.
 */
static int read_entry(struct slice bytes, tl_ts until, tl_ts *ret_ts, size_t *ret_len)
{
    struct list commands = LIST_INIT(commands);
    struct command_group_header head;
    struct slice rest, command;
    int r = command_group_decode(bytes, &head, &commands);
    while (!list_empty(&commands)) {
        struct command *decoded = list_entry(commands.next, struct command, link);
        list_remove(&decoded->link);
        command_free(decoded);
    }
    if (r != 0 || (r = command_group_open(bytes, &rest)) != 0)
        return r;
    for (tl_ts ts = head.ts; ts <= until && command_group_take(&rest, &command); ts++)
        ;
    *ret_ts = head.ts;
    *ret_len = bytes.len - rest.len;
    return 0;
}

/* Appends the entries after the backup, up to the timestamp or the position. */
static int append_entries(const struct relog_options *o, struct cmdlog *from, struct cmdlog *to,
                          struct relogged *restored)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    cmdlog_position position = 0;
    int r = cmdlog_follow(from, restored->first, &cursor);
    if (r != 0)
        return r;
    while ((r = cmdlog_next(cursor, &entry)) == 0) {
        tl_ts ts;
        size_t len;
        if (entry.position > o->last || (r = read_entry(entry.bytes, o->until, &ts, &len)) != 0 || ts > o->until)
            break;
        struct slice kept = slice_make(entry.bytes.data, len);
        if ((r = cmdlog_append(to, &kept, 1, &position)) != 0)
            break;
        restored->entries++;
        restored->newest = ts > restored->newest ? ts : restored->newest;
        if (len < entry.bytes.len)
            break;
    }
    cmdlog_unfollow(cursor);
    if (r == 0 || r == CMDLOG_END)
        r = position == 0 ? 0 : cmdlog_sync(to, position);
    return r;
}

/*
 * Compares the entries of both logs from `first` to `last`. Returns: 0: equal; 1: different; fatal
 * codes.
 */
static int compare_entries(struct cmdlog *from, struct cmdlog *to, cmdlog_position first, cmdlog_position last)
{
    struct cmdlog_cursor *left, *right = NULL;
    struct cmdlog_entry entry, other;
    int r = first > last ? 0 : cmdlog_follow(from, first, &left);
    if (r != 0 || first > last)
        return r;
    r = cmdlog_follow(to, first, &right);
    for (cmdlog_position i = first; r == 0 && i <= last; i++)
        if ((r = cmdlog_next(left, &entry)) == 0 && (r = cmdlog_next(right, &other)) == 0)
            r = slice_equal(entry.bytes, other.bytes) ? 0 : 1;
    cmdlog_unfollow(left);
    cmdlog_unfollow(right);
    return r < 0 ? r : r != 0;
}

/*
 * Checks that the backup was made from this log: by the record in the backup's store, and by the
 * entries of the backup's own log, if it has any. A backup that was served since has other entries.
 * Requires: the log reaches `last`, as `to` does. Returns: 0; -1, with the reason printed.
 */
static int check_lineage(const struct relog_options *o, struct cmdlog *from, struct cmdlog *to,
                         const struct recovered *store, cmdlog_position last)
{
    struct cmdlog_lineage lineage;
    struct cmdlog_head head;
    cmdlog_head(from, &head);
    REQUIRE(last <= head.appended);
    cmdlog_position first = store->checkpoint + 1 > head.oldest ? store->checkpoint + 1 : head.oldest;
    int r = cmdlog_lineage(from, store->checkpoint, &lineage);
    if (r == 0)
        r = cmdlog_lineage_fits(&lineage, &store->lineage) ? compare_entries(from, to, first, last) : 1;
    if (r < 0)
        return relog_failed("the log", r, NULL);
    if (r > 0)
        fprintf(
            stderr,
            "tidelock: %s does not belong to the log: their entries differ; use the log of the server that made the "
            "backup, and a backup that was not served since\n",
            escape_terminal(o->from));
    return r == 0 ? 0 : -1;
}

static int join_logs(const struct relog_options *o, struct cmdlog *from, struct cmdlog *to,
                     const struct recovered *store, struct relogged *restored)
{
    struct cmdlog_head have, head;
    cmdlog_head(to, &have);
    cmdlog_head(from, &head);
    restored->first = store->checkpoint + 1;
    if (have.appended + 1 < restored->first) {
        fprintf(stderr, "tidelock: %s is not a complete backup: its log ends before the state of its store\n",
                escape_terminal(o->from));
        return -1;
    }
    restored->first = have.appended + 1;
    if (o->from == NULL && head.oldest > restored->first) {
        fprintf(stderr,
                "tidelock: the log begins at entry %" PRIu64
                ": add --log with the directory of --log-archive that has the earlier entries, or use a backup\n",
                head.oldest);
        return -1;
    }
    if (head.oldest > restored->first || head.appended + 1 < restored->first) {
        fprintf(stderr,
                "tidelock: the backup ends at entry %" PRIu64 " of the log, and the log has entries %" PRIu64
                " to %" PRIu64 ": add --log with its other directories, or use another backup\n",
                restored->first - 1, head.oldest, head.appended);
        return -1;
    }
    if (o->from != NULL && check_lineage(o, from, to, store, have.appended) != 0)
        return -1;
    int r = append_entries(o, from, to, restored);
    return r == 0 ? 0 : relog_failed("the log", r == CMDLOG_TRIMMED ? TL_ERR_CORRUPT : r, NULL);
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static int fill_part(const struct relog_options *o, const char *part, const char *merged, struct relogged *restored)
{
    tl_cleanup(mem_freep) char *own = path_of(part, "log");
    struct cmdlog *from = NULL, *to = NULL;
    struct recovered store = {0};
    int r = o->from != NULL ? check_backup(o->from) : 0;
    if (r == 0)
        r = mkdir(merged, 0700) == 0 ? 0 : fail_path(merged);
    for (int i = 0; r == 0 && i < o->log_count; i++)
        r = gather_segments(o->logs[i], merged);
    if (r == 0 && o->from == NULL)
        r = mkdir(part, 0700) == 0 ? 0 : fail_path(part);
    if (r == 0 && o->from != NULL)
        r = copy_folder(o->from, part, copy_file);
    if (r == 0 && o->from != NULL)
        r = read_backup(part, o->from, &store, &restored->newest);
    if (r == 0 && restored->newest > o->until) {
        fprintf(stderr, "tidelock: the backup is newer than --until: it goes up to timestamp %" PRIu64 "\n",
                restored->newest);
        r = -1;
    }
    if (r == 0)
        r = open_log(merged, true, &from);
    if (r == 0)
        r = open_log(own, false, &to);
    if (r == 0)
        r = join_logs(o, from, to, &store, restored);
    cmdlog_close(from);
    cmdlog_close(to);
    return r;
}

int relog_make(const struct relog_options *o, const char *directory, struct relogged *ret)
{
    tl_cleanup(buf_deinit) struct buf merged = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&merged, "%s.log", directory);
    buf_byte(&merged, '\0');
    *ret = (struct relogged){0};
    int r = fill_part(o, directory, merged.data, ret);
    (void)copy_folder(merged.data, NULL, NULL);
    if (r != 0)
        (void)copy_folder(directory, NULL, NULL);
    return r;
}

int relog_copy_store(const char *data, const char *directory)
{
    tl_cleanup(mem_freep) char *store = path_of(data, "rocks"), *format = path_of(data, "FORMAT");
    tl_cleanup(mem_freep) char *to_store = path_of(directory, "rocks"), *to_format = path_of(directory, "FORMAT");
    int r = mkdir(directory, 0700) == 0 ? 0 : fail_path(directory);
    if (r != 0)
        return r;
    r = copy_folder(store, to_store, link_or_copy_file);
    if (r == 0 && access(format, F_OK) == 0)
        r = copy_file(format, to_format);
    if (r != 0)
        (void)copy_folder(directory, NULL, NULL);
    return r;
}

void relog_remove(const char *directory)
{
    (void)copy_folder(directory, NULL, NULL);
}
