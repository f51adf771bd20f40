/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of a cluster, and checkpoints for those that are new:
 *
 *     GET /_cluster/hosts, /_cat/hosts, DELETE /_cluster/hosts/{name}
 *     POST /_cluster/_checkpoint ─▶ its files
 *     GET /_cluster/_checkpoint/{name}?file=F&from=N ─▶ bytes; DELETE when they are there
 *
 * A checkpoint is in DATA/copies/NAME, most of it as links, until it is deleted, no host has read it for
 * CHECKPOINT_UNUSED_S, or the server starts again. Its name begins with a dot while it is made.
 */
#include "api/cluster/hosts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/request/api_internal.h"
#include "api/request/cat_table.h"
#include "api/request/handlers.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

enum { CHUNK_BYTES = 8 << 20, PATH_BYTES_MAX = 256 };

enum { CHECKPOINT_UNUSED_S = 600 /* a host that copies it reads it all the time */ };

/* --- Hosts -------------------------------------------------------------------------------------------------------- */

/* null before the host's first heartbeat. */
static void write_reported(struct json_writer *writer, const char *name, const struct journal_host *host, int64_t value)
{
    json_key(writer, name);
    if (host->silent_us != UINT64_MAX)
        json_i64(writer, value);
    else
        json_null(writer);
}

static void write_host(struct json_writer *writer, const struct journal_host *host)
{
    char chain[17], id[ID_BYTES + 1];
    snprintf(chain, sizeof chain, "%016llx", (unsigned long long)host->chain);
    id_of_name(host->name, id);
    json_begin(writer, '{');
    json_key(writer, "node");
    json_string(writer, slice_from(id));
    json_key(writer, "name");
    json_string(writer, host->name);
    json_key(writer, "number");
    json_u64(writer, host->number);
    json_key(writer, "group");
    json_string(writer, host->group);
    json_key(writer, "address");
    json_string(writer, host->address);
    json_key(writer, "live");
    json_bool(writer, host->live);
    json_key(writer, "keeper");
    json_bool(writer, host->keeper);
    json_key(writer, "self");
    json_bool(writer, host->self);
    json_key(writer, "applied_timestamp");
    json_u64(writer, host->applied);
    json_key(writer, "applied_position");
    json_u64(writer, host->position);
    write_reported(writer, "lag_entries", host, (int64_t)host->lag_entries);
    write_reported(writer, "lag_ms", host, (int64_t)(host->lag_us / TL_MS));
    write_reported(writer, "clock_offset_ms", host, host->clock_offset_us / (int64_t)TL_MS);
    write_reported(writer, "reported_ms_ago", host, (int64_t)(host->silent_us / TL_MS));
    json_key(writer, "chain");
    json_string(writer, slice_from(chain));
    json_key(writer, "build");
    json_string(writer, host->build);
    json_end(writer, '}');
}

int handle_hosts(struct request *request)
{
    struct journal_host *hosts;
    struct json_writer writer;
    int r = request_accept(request);
    if (r != 0)
        return r;
    size_t count = journal_hosts(request->api->journal, &hosts);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "serves");
    json_bool(&writer, journal_serves(request->api->journal));
    json_key(&writer, "hosts");
    json_begin(&writer, '[');
    for (size_t i = 0; i < count; i++)
        write_host(&writer, &hosts[i]);
    json_end(&writer, ']');
    json_end(&writer, '}');
    mem_free(hosts);
    return REQUEST_DONE;
}

static int host_forgotten(struct request *request, struct command *command)
{
    (void)command;
    return reply_acknowledged(request);
}

static int forget_run(struct request *request)
{
    struct slice name = request_part(request, PART_NAME);
    struct command *command;
    switch (journal_forget_host(request->api->journal, name, &command)) {
    case 0: break;
    case JOURNAL_HOST_LIVES:
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "host [%.*s] is in the cluster: stop it first",
                              SLICE_ARG(name));
    case JOURNAL_LOG_UNREACHABLE:
        return request_refuse(request, PROBLEM_LOG_UNAVAILABLE, "the log of the cluster cannot be reached");
    default: return request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND, "there is no host [%.*s]", SLICE_ARG(name));
    }
    return request_submit(request, command, host_forgotten);
}

int handle_host_forget(struct request *request)
{
    int r = request_accept(request);
    return r != 0 ? r : request_work(request, forget_run);
}

static const struct cat_column columns[] = {
    {"name", "n", "name of the host", false, false},
    {"group", "g", "its group", false, false},
    {"address", "a", "where others reach it", false, false},
    {"live", "l", "* keeper, + live, - out", false, false},
    {"lag.ms", "lm", "time by which it lags the log", true, false},
    {"lag.entries", "le", "entries by which it lagged the log at its last report", true, false},
    {"clock.ms", "cl", "its clock minus that of the host that is asked", true, false},
    {"applied", "ap", "position in the log that it had applied then", true, false},
    {"applied.timestamp", "at", "timestamp that it had applied then", true, false},
    {"chain", "c", "hash of all writes up to that position", false, false},
    {"build", "b", "its version", false, false},
    {"number", "nu", "its number", true, true},
    {"node", "no", "its node id", false, true},
    {"reported.ms", "r", "since its last report", true, true},
};

/* Empty before the host's first heartbeat. */
static struct cat_cell cat_reported(const struct journal_host *host, int64_t value)
{
    return host->silent_us != UINT64_MAX ? cat_number(value) : (struct cat_cell){0};
}

int handle_cat_hosts(struct request *request)
{
    struct journal_host *hosts;
    struct cat_table table;
    char id[ID_BYTES + 1];
    int r = cat_table_begin(request, columns, sizeof columns / sizeof *columns);
    if (r != 0)
        return r;
    size_t count = journal_hosts(request->api->journal, &hosts);
    cat_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++) {
        struct cat_cell *row = cat_table_row(&table, request->arena);
        row[0] = cat_text(arena_copy(request->arena, hosts[i].name));
        row[1] = cat_text(arena_copy(request->arena, hosts[i].group));
        row[2] = cat_text(arena_copy(request->arena, hosts[i].address));
        row[3] = cat_text(slice_from(hosts[i].keeper ? "*" : hosts[i].live ? "+" : "-"));
        row[4] = cat_reported(&hosts[i], (int64_t)(hosts[i].lag_us / TL_MS));
        row[5] = cat_reported(&hosts[i], (int64_t)hosts[i].lag_entries);
        row[6] = cat_reported(&hosts[i], hosts[i].clock_offset_us / (int64_t)TL_MS);
        row[7] = cat_number((int64_t)hosts[i].position);
        row[8] = cat_number((int64_t)hosts[i].applied);
        row[9] = cat_text(arena_printf(request->arena, "%016llx", (unsigned long long)hosts[i].chain));
        row[10] = cat_text(arena_copy(request->arena, hosts[i].build));
        row[11] = cat_number(hosts[i].number);
        id_of_name(hosts[i].name, id);
        row[12] = cat_text(arena_copy(request->arena, slice_from(id)));
        row[13] = cat_reported(&hosts[i], (int64_t)(hosts[i].silent_us / TL_MS));
    }
    mem_free(hosts);
    return cat_table_reply(request, &table);
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

void hosts_clear_checkpoints(struct slice data)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/copies", SLICE_ARG(data));
    file_remove_tree(path);
}

/*
 * The time of a folder's last change is that of the last read of its checkpoint, by the clock of this boot: one that
 * is set neither deletes a checkpoint that is being read nor keeps an unused one. No folder is older than this process
 * (hosts_clear_checkpoints()).
 */
static void note_use(const char *folder)
{
    uint64_t now = clock_boot_us();
    struct timespec use = {.tv_sec = (time_t)(now / TL_SECOND), .tv_nsec = (long)(now % TL_SECOND * 1000)};
    struct timespec times[2] = {use, use};
    (void)utimensat(AT_FDCWD, folder, times, 0);
}

void hosts_drop_unused_checkpoints(struct slice data)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/copies", SLICE_ARG(data));
    DIR *copies = data.len > 0 ? opendir(path) : NULL;
    time_t now = (time_t)(clock_boot_us() / TL_SECOND);
    for (struct dirent *entry; copies != NULL && (entry = readdir(copies)) != NULL;) {
        struct stat status;
        snprintf(path, sizeof path, "%.*s/copies/%s", SLICE_ARG(data), entry->d_name);
        if (entry->d_name[0] == '.' || stat(path, &status) != 0 || now - status.st_mtime < CHECKPOINT_UNUSED_S)
            continue;
        log_info("the checkpoint %s, which another host asked for, has not been read for %d minutes: it is deleted",
                 entry->d_name, CHECKPOINT_UNUSED_S / 60);
        file_remove_tree(path);
    }
    if (copies != NULL)
        (void)closedir(copies);
}

static void write_files(struct json_writer *writer, const char *path)
{
    char *paths[] = {(char *)(uintptr_t)path, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    size_t prefix = strlen(path) + 1;
    for (FTSENT *entry; walk != NULL && (entry = fts_read(walk)) != NULL;) {
        if (entry->fts_info != FTS_F)
            continue;
        json_begin(writer, '{');
        json_key(writer, "file");
        json_string(writer, slice_from(entry->fts_path + prefix));
        json_key(writer, "bytes");
        json_u64(writer, (uint64_t)entry->fts_statp->st_size);
        json_end(writer, '}');
    }
    if (walk != NULL)
        (void)fts_close(walk);
}

static int make_run(struct request *request)
{
    struct slice data = request->api->options.data_directory;
    char folder[PATH_MAX], made[PATH_MAX], *reason = NULL;
    struct json_writer writer;
    tl_ts ts;
    snprintf(folder, sizeof folder, "%.*s/copies", SLICE_ARG(data));
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return request_refuse(request, PROBLEM_ILLEGAL_STATE, "no checkpoint was made: %s", strerror(errno));
    snprintf(folder, sizeof folder, "%.*s/copies/.XXXXXX", SLICE_ARG(data));
    if (mkdtemp(folder) == NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_STATE, "no checkpoint was made: %s", strerror(errno));
    int r = journal_copy(request->api->journal, folder, &ts, &reason);
    if (r != 0) {
        r = request_refuse(request, PROBLEM_UNAVAILABLE, "no checkpoint was made: %s",
                           reason != NULL ? reason : error_text(r));
        mem_free(reason);
        file_remove_tree(folder);
        return r;
    }
    if (atomic_load(&request->abandoned)) { /* no host has its name: none would delete it */
        file_remove_tree(folder);
        return request_refuse(request, PROBLEM_UNAVAILABLE, "the host that asked for the checkpoint is gone");
    }
    const char *name = strrchr(folder, '/') + 2;
    snprintf(made, sizeof made, "%.*s/copies/%s", SLICE_ARG(data), name);
    note_use(folder); /* before it has a name by which it could be deleted as unused */
    if (rename(folder, made) != 0) {
        r = request_refuse(request, PROBLEM_ILLEGAL_STATE, "no checkpoint was made: %s", strerror(errno));
        file_remove_tree(folder);
        return r;
    }
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "checkpoint");
    json_string(&writer, slice_from(name));
    json_key(&writer, "timestamp");
    json_u64(&writer, ts);
    json_key(&writer, "files");
    json_begin(&writer, '[');
    write_files(&writer, made);
    json_end(&writer, ']');
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* Compares in a time that does not depend on where the texts differ. */
static bool is_secret(struct slice given, struct slice secret)
{
    unsigned char differs = 0;
    if (given.len != secret.len)
        return false;
    for (size_t i = 0; i < secret.len; i++)
        differs |= (unsigned char)(given.data[i] ^ secret.data[i]);
    return differs == 0;
}

static int accept_in_cluster(struct request *request)
{
    int r = request_accept(request);
    if (r == 0 && journal_host_number(request->api->journal) == 0)
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "this server is in no cluster");
    return r;
}

/* A checkpoint is given to hosts of the cluster only: it has all data, and transactions and sessions with their ids. */
static int accept_host(struct request *request)
{
    struct slice secret = request->api->options.cluster_secret;
    int r = accept_in_cluster(request);
    if (r != 0)
        return r;
    if (secret.len == 0)
        return request_refuse(request, PROBLEM_SECURITY,
                              "the cluster was made by an early version, without a secret of its hosts, and gives no "
                              "checkpoints: make it again, from a backup");
    if (!is_secret(exchange_header(request->exchange, API_CLUSTER_SECRET_HEADER), secret))
        return request_refuse(request, PROBLEM_SECURITY,
                              "checkpoints are for hosts of the cluster, which have its secret from etcd; `tidelock "
                              "backup' is for others");
    return 0;
}

/*
 * Asked by the other hosts before they answer writes (request/distribution.h), with Tidelock-After.
 * The answer must be of the host that is meant: an address may have become another server's.
 */
int handle_host_timestamp(struct request *request)
{
    struct slice name = request_part(request, PART_NAME);
    uint64_t life = 0;
    int r = accept_in_cluster(request);
    if (r != 0)
        return r;
    if (!slice_to_u64(request_param(request, "life"), &life) || !journal_is_self(request->api->journal, name, life) ||
        !slice_is(request_param(request, "cluster_uuid"), request->api->cluster_uuid))
        return request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND,
                              "this is not host [%.*s] in its life [%llu] of cluster [%.*s]", SLICE_ARG(name),
                              (unsigned long long)life, SLICE_ARG(request_param(request, "cluster_uuid")));
    tl_ts stable = journal_stable(request->api->journal);
    request->exchange->timestamp = stable;
    buf_printf(reply_text(request, 200), "%llu\n", (unsigned long long)stable);
    return REQUEST_DONE;
}

int handle_checkpoint_make(struct request *request)
{
    int r = accept_host(request);
    if (r != 0)
        return r;
    request_watch(request);
    return request_work(request, make_run);
}

static bool is_plain(struct slice text, bool slashes)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        bool inner = i > 0 && text.data[i - 1] != '/' && text.data[i - 1] != '.';
        if (!letter && !(inner && (c == '.' || (slashes && c == '/'))))
            return false;
    }
    return text.len > 0 && text.len <= PATH_BYTES_MAX;
}

static int refuse_name(struct request *request)
{
    return request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND, "there is no such checkpoint, or no such file in it");
}

static int read_run(struct request *request)
{
    struct slice name = request_part(request, PART_NAME), file = request_param(request, "file");
    uint64_t from = 0;
    char path[PATH_MAX];
    if (!is_plain(name, false) || !is_plain(file, true) || !slice_to_u64(request_param(request, "from"), &from) ||
        from > INT64_MAX)
        return refuse_name(request);
    snprintf(path, sizeof path, "%.*s/copies/%.*s/%.*s", SLICE_ARG(request->api->options.data_directory),
             SLICE_ARG(name), SLICE_ARG(file));
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return refuse_name(request);
    snprintf(path, sizeof path, "%.*s/copies/%.*s", SLICE_ARG(request->api->options.data_directory), SLICE_ARG(name));
    note_use(path);
    struct buf *bytes = reply_text(request, 200);
    char *chunk = mem_alloc(CHUNK_BYTES);
    ssize_t len = pread(fd, chunk, CHUNK_BYTES, (off_t)from);
    if (len > 0)
        buf_append(bytes, chunk, (size_t)len);
    mem_free(chunk);
    close(fd);
    request->exchange->content_type = "application/octet-stream";
    return len < 0 ? tl_trace(TL_ERR_IO) : REQUEST_DONE;
}

int handle_checkpoint_read(struct request *request)
{
    int r = accept_host(request);
    return r != 0 ? r : request_work(request, read_run);
}

static int drop_run(struct request *request)
{
    struct slice name = request_part(request, PART_NAME);
    char path[PATH_MAX];
    if (!is_plain(name, false))
        return refuse_name(request);
    snprintf(path, sizeof path, "%.*s/copies/%.*s", SLICE_ARG(request->api->options.data_directory), SLICE_ARG(name));
    file_remove_tree(path);
    return reply_acknowledged(request);
}

int handle_checkpoint_drop(struct request *request)
{
    int r = accept_host(request);
    return r != 0 ? r : request_work(request, drop_run);
}
