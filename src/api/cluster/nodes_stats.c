/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _nodes/stats: the measured ones of the metrics that clients read. Metrics that do not exist here
 * are refused by name: invented numbers of a Java machine would be believed.
 */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "api/cluster/cluster_state.h"
#include "api/request/api_internal.h"
#include "api/request/forward.h"
#include "api/request/handlers.h"
#include "api/request/name_list.h"
#include "json/each.h"

static void write_indices(struct request *request, struct json_writer *writer)
{
    static const char *const names[METRIC_COUNT] = {"docs", "store", "indexing", "get", "search"};
    const struct catalog *catalog = request_catalog(request);
    struct index_stats all = {0};
    for (size_t i = 0; i < catalog_index_count(catalog); i++)
        index_stats_add(request, catalog_index_at(catalog, i), &all);
    json_key(writer, "indices");
    json_begin(writer, '{');
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        json_key(writer, names[metric]);
        index_stats_write(writer, (enum index_stats_metric)metric, &all);
    }
    stats_write_zeros(writer, SLICE_NONE);
    json_end(writer, '}');
}

uint64_t cluster_open_descriptors(void)
{
    struct stat folder;
    if (stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0)
        return (uint64_t)folder.st_size; /* kernels from 6.2 on say so; others are counted through */

    DIR *descriptors = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (descriptors == NULL)
        return 0;
    for (const struct dirent *entry = readdir(descriptors); entry != NULL; entry = readdir(descriptors))
        count += entry->d_name[0] != '.';
    closedir(descriptors);
    return count - 1; /* that of the folder itself */
}

static uint64_t virtual_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_process(struct request *request, struct json_writer *writer)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    json_key(writer, "process");
    json_begin(writer, '{');
    json_key(writer, "timestamp");
    json_u64(writer, journal_stable(request->api->journal) / TL_MS);
    json_key(writer, "open_file_descriptors");
    json_u64(writer, cluster_open_descriptors());
    json_key(writer, "max_file_descriptors");
    json_u64(writer, limit.rlim_cur);
    json_key(writer, "cpu");
    json_begin(writer, '{');
    json_key(writer, "percent");
    json_i64(writer, -1); /* as there, where it is not known */
    json_key(writer, "total_in_millis");
    json_u64(writer, cluster_processor_us() / TL_MS);
    json_end(writer, '}');
    json_key(writer, "mem");
    json_begin(writer, '{');
    json_key(writer, "total_virtual_in_bytes");
    json_u64(writer, virtual_bytes());
    json_end(writer, '}');
    json_end(writer, '}');
}

struct disk {
    uint64_t total, free, available; /* bytes */
};

/* Reads all numbers at once: others write meanwhile, and no more is available than is free. */
static struct disk read_disk(struct request *request)
{
    struct statvfs status = {0};
    struct slice folder = request->api->options.data_directory;
    if (folder.len == 0 || statvfs(arena_printf(request->arena, "%.*s", SLICE_ARG(folder)).data, &status) != 0)
        return (struct disk){0, 0, store_free_bytes(request->api->store)};
    return (struct disk){.total = (uint64_t)status.f_blocks * status.f_frsize,
                         .free = (uint64_t)status.f_bfree * status.f_frsize,
                         .available = (uint64_t)status.f_bavail * status.f_frsize};
}

void cluster_write_disk(struct request *request, struct json_writer *writer)
{
    const struct disk disk = read_disk(request);
    json_key(writer, "total_in_bytes");
    json_u64(writer, disk.total);
    json_key(writer, "free_in_bytes");
    json_u64(writer, disk.free);
    json_key(writer, "available_in_bytes");
    json_u64(writer, disk.available);
}

/* A mounted file system. */
struct mount {
    struct slice folder, source, type;
};

/* Takes a word of a line of mountinfo, in which blanks of names are written as "\040". */
static struct slice next_word(struct arena *arena, struct slice *line)
{
    size_t len = slice_find_byte(*line, ' '), count = 0;
    char *word = arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++) {
        const char *at = line->data + i;
        bool escaped = *at == '\\' && i + 3 < len && at[1] >= '0' && at[1] <= '3';
        int octal = escaped ? (at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0') : 0;
        word[count++] = (char)(escaped ? octal : *at);
        i += escaped ? 3 : 0;
    }
    *line = slice_from_offset(*line, len + 1);
    return slice_make(word, count);
}

/* Reads "36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/root rw". */
static struct mount read_mount(struct arena *arena, struct slice line)
{
    struct mount mount = {SLICE_NONE, SLICE_NONE, SLICE_NONE};
    for (int i = 0; i < 5; i++)
        mount.folder = next_word(arena, &line);
    while (line.len > 0 && !slice_is(next_word(arena, &line), "-"))
        ;
    mount.type = next_word(arena, &line);
    mount.source = next_word(arena, &line);
    return mount;
}

static bool is_below(struct slice path, struct slice folder)
{
    return slice_starts_with(path, folder) &&
           (folder.len == 1 || path.len == folder.len || path.data[folder.len] == '/');
}

/* Returns: the file system that a folder is in, in `arena`. */
static struct mount mount_of(struct arena *arena, struct slice folder)
{
    struct mount found = {SLICE_LIT("/"), SLICE_LIT("unknown"), SLICE_LIT("unknown")};
    char path[PATH_MAX], line[2 * PATH_MAX];
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (file == NULL || realpath(arena_printf(arena, "%.*s", SLICE_ARG(folder)).data, path) == NULL)
        path[0] = '\0';
    bool whole = true; /* the line begins here; of a longer one, such as of many layers, the rest is ignored */
    while (file != NULL && path[0] != '\0' && fgets(line, sizeof line, file) != NULL) {
        struct mount mount = read_mount(arena, slice_make(line, strcspn(line, "\n")));
        bool begins = whole;
        whole = strchr(line, '\n') != NULL;
        if (begins && mount.folder.len >= found.folder.len && is_below(slice_from(path), mount.folder))
            found = mount;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Usage of the disk of the one folder that there is: the least and the most of all. */
static void write_estimate(struct request *request, const char *name, struct json_writer *writer)
{
    const struct disk disk = read_disk(request);
    double free_share = disk.total == 0 ? 1 : (double)disk.available / (double)disk.total;
    json_key(writer, name);
    json_begin(writer, '{');
    json_key(writer, "path");
    json_string(writer, request->api->options.data_directory);
    json_key(writer, "total_in_bytes");
    json_u64(writer, disk.total);
    json_key(writer, "available_in_bytes");
    json_u64(writer, disk.available);
    json_key(writer, "used_disk_percent");
    json_double(writer, 100.0 - 100.0 * free_share);
    json_end(writer, '}');
}

static void write_fs(struct request *request, struct json_writer *writer)
{
    struct store_stats stats;
    const struct mount mount = mount_of(request->arena, request->api->options.data_directory);
    store_stats(request->api->store, &stats);
    json_key(writer, "fs");
    json_begin(writer, '{');
    json_key(writer, "timestamp");
    json_u64(writer, journal_stable(request->api->journal) / TL_MS);
    json_key(writer, "total");
    json_begin(writer, '{');
    cluster_write_disk(request, writer);
    json_end(writer, '}');
    write_estimate(request, "least_usage_estimate", writer);
    write_estimate(request, "most_usage_estimate", writer);
    json_key(writer, "data");
    json_begin(writer, '[');
    json_begin(writer, '{');
    json_key(writer, "path");
    json_string(writer, request->api->options.data_directory);
    json_key(writer, "mount");
    json_string(writer, arena_printf(request->arena, "%.*s (%.*s)", SLICE_ARG(mount.folder), SLICE_ARG(mount.source)));
    json_key(writer, "type");
    json_string(writer, mount.type);
    cluster_write_disk(request, writer);
    json_end(writer, '}');
    json_end(writer, ']');
    json_key(writer, "io_stats"); /* of a disk that others use, too */
    json_raw(writer, SLICE_LIT("{}"));
    json_key(writer, "data_in_bytes"); /* our own: files of the store and its log */
    json_u64(writer, stats.disk_bytes);
    json_end(writer, '}');
}

/* Connections, of all clients. */
static void write_http(struct request *request, struct json_writer *writer)
{
    struct server_stats server = {0};
    struct exchange *exchange = request->exchange;
    if (exchange->ops->server != NULL)
        exchange->ops->server(exchange, &server);
    json_key(writer, "http");
    json_begin(writer, '{');
    json_key(writer, "current_open");
    json_u64(writer, server.connections);
    json_key(writer, "total_opened");
    json_u64(writer, server.accepted);
    json_end(writer, '}');
}

static const struct {
    const char *name;
    void (*write)(struct request *request, struct json_writer *writer);
} metrics[] = {
    {"indices", write_indices},
    {"process", write_process},
    {"fs", write_fs},
    {"breaker", breakers_write},
    {"http", write_http},
};

#define METRICS (sizeof metrics / sizeof *metrics)

static int check_metrics(struct request *request)
{
    struct slice rest = request_part(request, PART_METRIC);
    while (rest.len > 0) {
        size_t len = slice_find_byte(rest, ','), i;
        struct slice name = slice_make(rest.data, len);
        for (i = 0; i < METRICS && !slice_is(name, metrics[i].name); i++)
            ;
        if (i == METRICS && !slice_is(name, "_all"))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "request [%.*s] contains the metric [%.*s], which this server does not have; it has "
                                  "[indices, process, fs, breaker, http]",
                                  SLICE_ARG(request->exchange->path), SLICE_ARG(name));
        rest = slice_from_offset(rest, len + 1);
    }
    return 0;
}

static void write_own(struct request *request, const struct cluster_node *self, struct json_writer *writer)
{
    struct slice wanted = request_part(request, PART_METRIC);
    json_key_slice(writer, self->id);
    json_begin(writer, '{');
    json_key(writer, "timestamp");
    json_u64(writer, journal_stable(request->api->journal) / TL_MS);
    cluster_write_node(self, writer);
    for (size_t i = 0; i < METRICS; i++)
        if (name_list_match(wanted, slice_from(metrics[i].name)))
            metrics[i].write(request, writer);
    json_end(writer, '}');
}

struct stats_job {
    bool own; /* this host is asked for */
    struct host_ask *asks;
    size_t ask_count;
};

static int reply_stats(struct request *request)
{
    const struct stats_job *job = request->context;
    size_t total = job->own + job->ask_count, failed = 0, at, max;
    yyjson_val *key, *node;
    struct json_writer writer;
    for (size_t i = 0; i < job->ask_count; i++)
        failed += host_ask_json(request, &job->asks[i]) == NULL;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "_nodes");
    json_begin(&writer, '{');
    json_key(&writer, "total");
    json_u64(&writer, total);
    json_key(&writer, "successful");
    json_u64(&writer, total - failed);
    json_key(&writer, "failed");
    json_u64(&writer, failed);
    host_asks_write_failures(request, "failures", job->asks, job->ask_count, &writer);
    json_end(&writer, '}');
    json_key(&writer, "cluster_name");
    json_string(&writer, request->api->options.cluster_name);
    json_key(&writer, "nodes");
    json_begin(&writer, '{');
    if (job->own)
        write_own(request, nodes_list(request)->self, &writer);
    for (size_t i = 0; i < job->ask_count; i++)
        json_obj_foreach (json_get_lit(host_ask_json(request, &job->asks[i]), "nodes"), at, max, key, node) {
            json_key_slice(&writer, json_slice(key));
            json_value(&writer, node, DIALECT_7);
        }
    json_end(&writer, '}');
    json_end(&writer, '}');
    return REQUEST_DONE;
}

int handle_nodes_stats(struct request *request)
{
    struct stats_job *job = arena_zalloc(request->arena, sizeof *job);
    struct slice wanted = request_part(request, PART_METRIC), named = request_part(request, PART_NODE_ID);
    int64_t ignored = 0;
    int r = request_time(request, "timeout", &ignored);
    if (r != 0 || (r = request_accept(request)) != 0 || (r = check_metrics(request)) != 0)
        return r;
    job->own = node_is_named(nodes_list(request)->self, named);
    job->asks = request_asks(request, named, &job->ask_count);
    for (size_t i = 0; i < job->ask_count; i++) /* the metrics are names, which need no escapes */
        job->asks[i].target =
            arena_printf(request->arena, "/_nodes/_local/stats%s%.*s", wanted.len > 0 ? "/" : "", SLICE_ARG(wanted));
    request->context = job;
    return request_ask_hosts(request, job->asks, job->ask_count, reply_stats);
}
