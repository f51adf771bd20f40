/* SPDX-License-Identifier: Apache-2.0 */
/* A host's data directory; see member.h. */
#include "cli/member.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "api/cluster/hosts.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/client.h"
#include "cli/start_progress.h"
#include "core/step/core.h"
#include "journal/at_work.h"
#include "json/each.h"

enum { ID_BYTES = 33, SECRET_BYTES = 65, TEXT_BYTES_MAX = 512, STALL_US = 1000 };

#define ATTEMPT_US (2 * TL_SECOND)
#define LOG_EACH_US (5 * TL_SECOND)
#define COPY_US (600 * TL_SECOND)
#define COPY_PAUSE_MIN_US (500 * TL_MS)    /* between two attempts to copy a checkpoint */
#define COPY_PAUSE_MAX_US (60 * TL_SECOND) /* the same, if this host cannot store it */

enum state { STATE_NONE, STATE_CREATING, STATE_FOUNDING, STATE_COPYING, STATE_MEMBER };
static const char *const state_names[] = {"none", "creating", "founding", "copying", "member"};

struct identity {
    char cluster[ID_BYTES];
    char directory[ID_BYTES];
    enum state state;
};

static int refuse_data(int code, char **ret_reason, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_data(int code, char **ret_reason, const char *format, ...)
{
    va_list arguments;
    char text[1024];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *ret_reason = mem_strdup(text, strlen(text));
    return code;
}

static char *path_in(const char *data, const char *name)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%s/%s", data, name);
    return buf_detach(&path, &(size_t){0});
}

/* Random hexadecimal digits and a NUL, `size` bytes in all. */
static void draw_digits(char *text, size_t size)
{
    unsigned char bytes[SECRET_BYTES / 2];
    size_t count = (size - 1) / 2;
    if (getrandom(bytes, count, 0) != (ssize_t)count)
        abort();
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static void draw_id(char id[ID_BYTES])
{
    draw_digits(id, ID_BYTES);
}

/* --- DATA/cluster ------------------------------------------------------------------------------------------------- */

static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) != 0 ? tl_trace(TL_ERR_IO) : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

static int write_identity(const char *data, const struct identity *identity, char **ret_reason)
{
    tl_cleanup(mem_freep) char *path = path_in(data, "cluster");
    tl_cleanup(mem_freep) char *part = path_in(data, "cluster.part");
    char text[TEXT_BYTES_MAX];
    int len = snprintf(text, sizeof text, "tidelock-cluster 1\ncluster %s\ndirectory %s\nstate %s\n", identity->cluster,
                       identity->directory, state_names[identity->state]);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int cause = fd < 0 || file_write_all(fd, text, (size_t)len) != 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (cause == 0 && rename(part, path) != 0)
        cause = errno;
    if (cause != 0)
        return refuse_data(TL_ERR_IO, ret_reason, "%s: %s", part, strerror(cause));
    if (sync_folder(data) != 0)
        return refuse_data(TL_ERR_IO, ret_reason, "%s: %s", data, strerror(errno));
    return 0;
}

static int read_identity(const char *data, struct identity *ret, char **ret_reason)
{
    tl_cleanup(mem_freep) char *path = path_in(data, "cluster");
    char state[16] = "";
    *ret = (struct identity){.state = STATE_NONE};
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT ? 0 : refuse_data(TL_ERR_IO, ret_reason, "%s: %s", path, strerror(errno));
    int got = fscanf(file, "tidelock-cluster 1\ncluster %32s\ndirectory %32s\nstate %15s", ret->cluster, ret->directory,
                     state);
    (void)fclose(file);
    for (int i = STATE_CREATING; got == 3 && i <= STATE_MEMBER; i++)
        if (strcmp(state, state_names[i]) == 0)
            ret->state = (enum state)i;
    return ret->state != STATE_NONE
               ? 0
               : refuse_data(TL_ERR_CORRUPT, ret_reason, "%s is damaged, or of a newer version", path);
}

bool member_is(const char *data)
{
    tl_cleanup(mem_freep) char *path = path_in(data, "cluster");
    return access(path, F_OK) == 0;
}

static bool has_file(const char *data, const char *name)
{
    tl_cleanup(mem_freep) char *path = path_in(data, name);
    return access(path, F_OK) == 0;
}

/* --- The genesis -------------------------------------------------------------------------------------------------- */

struct genesis {
    char cluster[ID_BYTES];
    char secret[SECRET_BYTES]; /* empty: the cluster was created by an early version */
    cmdlog_position position;
};

/* A wait of the start for the command log. */
struct log_wait {
    uint64_t since_us; /* boot clock: its begin, or the newest report */
    bool reported;
};

static struct log_wait begin_wait(void)
{
    return (struct log_wait){.since_us = clock_boot_us()};
}

/*
 * Logs that the command log cannot be reached, and why, and reports it to the supervisor; at most once in LOG_EACH_US.
 */
static void report_unreachable(struct cmdlog *log, struct log_wait *wait)
{
    if (clock_boot_us() - wait->since_us < LOG_EACH_US)
        return;
    tl_cleanup(mem_freep) char *trouble = cmdlog_etcd_last_error(log);
    log_warning("the log of the cluster cannot be reached; waiting for it (--cluster names the members of etcd): %s",
                trouble != NULL ? trouble : "");
    start_progress_wait(true);
    *wait = (struct log_wait){.since_us = clock_boot_us(), .reported = true};
}

static void end_wait(const struct log_wait *wait)
{
    if (wait->reported)
        start_progress_wait(false);
}

static int parse_genesis(struct buf *bytes, struct genesis *ret, char **ret_reason)
{
    buf_byte(bytes, '\0');
    ret->secret[0] = '\0';
    if (sscanf(bytes->data, "tidelock-cluster 1\ncluster %32s\nsecret %64s", ret->cluster, ret->secret) < 1)
        return refuse_data(TL_ERR_CORRUPT, ret_reason,
                           "what the log begins with is of another program, or of a newer version of this");
    return 0;
}

static bool is_stopping(const struct member_options *o)
{
    return o->stopping != NULL && atomic_load(o->stopping);
}

/*
 * Waits until the log can be reached. Returns: 0; CMDLOG_NOT_FOUND: there is no cluster yet;
 * TL_ERR_STOPPED; fatal codes.
 */
static int read_genesis(const struct member_options *o, struct cmdlog *log, struct genesis *ret, char **ret_reason)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct log_wait wait = begin_wait();
    int r;
    while ((r = cmdlog_read_genesis(log, clock_boot_us() + ATTEMPT_US, &bytes, &ret->position)) == CMDLOG_UNREACHABLE) {
        if (is_stopping(o)) {
            r = TL_ERR_STOPPED;
            break;
        }
        report_unreachable(log, &wait);
        buf_clear(&bytes);
        usleep(100 * STALL_US);
    }
    end_wait(&wait);
    if (r == 0)
        r = parse_genesis(&bytes, ret, ret_reason);
    buf_deinit(&bytes);
    return r;
}

static int create_genesis(const struct member_options *o, struct cmdlog *log, const char *cluster)
{
    char text[TEXT_BYTES_MAX], secret[SECRET_BYTES];
    draw_digits(secret, sizeof secret);
    int len = snprintf(text, sizeof text, "tidelock-cluster 1\ncluster %s\nsecret %s\n", cluster, secret);
    struct log_wait wait = begin_wait();
    int r;
    while ((r = cmdlog_create_genesis(log, slice_make(text, (size_t)len), clock_boot_us() + ATTEMPT_US)) ==
           CMDLOG_UNREACHABLE) {
        if (is_stopping(o))
            return TL_ERR_STOPPED;
        report_unreachable(log, &wait);
        usleep(100 * STALL_US);
    }
    end_wait(&wait);
    return r;
}

/* --- The first host ----------------------------------------------------------------------------------------------- */

/*
 * Opens the directory as a single host's, makes a checkpoint that contains all of its log, and
 * closes it.
 */
static int settle_alone(const struct member_options *o, char **ret_reason)
{
    struct durable durable = {.observer = &start_progress_replay};
    struct core_limits limits = core_limits_default();
    struct journal_options options = *o->journal;
    struct journal *journal;
    int r = durable_open(o->store, &limits, NULL, &durable, ret_reason);
    if (r == 0) {
        options.cluster = NULL;
        options.log = durable.log;
        options.at_work = durable.at_work;
        options.cmdlog_position = durable.recovered.position;
        options.log_work_us = durable.recovered.work_us;
        options.log_replayed_bytes = durable.recovered.replayed_bytes;
        options.host_crashed = durable.machine_lost;
        r = journal_open_local(durable.core, durable.store, &options, &journal);
        if (r == 0) {
            r = journal_checkpoint(journal);
            journal_close(journal);
        }
    }
    durable_close(&durable);
    return r;
}

/* Makes the directory that of the host of a new cluster. */
static int begin_cluster(const struct member_options *o, struct identity *identity, enum state state, char **ret_reason)
{
    draw_id(identity->cluster);
    draw_id(identity->directory);
    identity->state = state;
    return write_identity(o->data, identity, ret_reason);
}

/*
 * Appends a genesis to the log, unless it has one. An empty directory is marked as `creating` before it
 * gets a store, so that its data is known to be of no use, also after a crash.
 */
static int found_cluster(const struct member_options *o, struct cmdlog *log, struct identity *identity,
                         char **ret_reason)
{
    bool empty = identity->state == STATE_NONE && !has_file(o->data, "rocks") && !has_file(o->data, "log");
    int r = empty ? begin_cluster(o, identity, STATE_CREATING, ret_reason) : 0;
    if (r == 0)
        r = settle_alone(o, ret_reason);
    if (r == 0 && identity->state == STATE_NONE)
        r = begin_cluster(o, identity, STATE_FOUNDING, ret_reason);
    if (r == 0)
        r = create_genesis(o, log, identity->cluster);
    return r == CMDLOG_EXISTS ? 0 : r; /* the caller reads the genesis and compares the cluster's ID */
}

/* Makes the store's checkpoint anew, with a position in the cluster's log. */
static int stand_at(struct cluster_member *member, cmdlog_position position)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    int r = recover_write_record(member->core, position, NULL, 0, &record);
    if (r == 0)
        r = store_checkpoint(member->store, buf_as_slice(&record));
    buf_deinit(&record);
    while (r == 0 && (r = store_checkpointed(member->store)) == 0)
        usleep(STALL_US);
    member->position = position;
    return r < 0 ? r : 0;
}

/* --- One that is new ---------------------------------------------------------------------------------------------- */

/* Creates the folders above a file that do not exist yet. */
static void make_folders(char *path, size_t from)
{
    for (char *slash = path + from; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

/* Why a copy failed; zeros: no host could be asked for it. */
struct copy_failure {
    bool is_named;            /* a live host has this one's name */
    int cause;                /* errno: this host cannot store the checkpoint; 0: it could */
    char why[TEXT_BYTES_MAX]; /* the same as text */
    uint64_t bytes;           /* free space without which the next attempt would fail, too; 0: unknown */
};

/* Notes why a path of this host cannot be written, by errno. Returns: TL_ERR_IO. */
static int note_unwritten(const char *path, struct copy_failure *failure)
{
    failure->cause = errno;
    snprintf(failure->why, sizeof failure->why, "%s: %s", path, strerror(failure->cause));
    return tl_trace(TL_ERR_IO);
}

/* Returns: the free bytes of a folder's disk; UINT64_MAX: unknown. */
static uint64_t free_bytes(const char *folder)
{
    struct statvfs space;
    return statvfs(folder, &space) != 0 ? UINT64_MAX : (uint64_t)space.f_bavail * space.f_frsize;
}

/* A request ends without a reply when the server stops, if `context` has its member_options. */
static bool gives_up(const struct client *client)
{
    return client->context != NULL && is_stopping(client->context);
}

/* Copies a file of a checkpoint. */
static int copy_file(struct client *client, const char *checkpoint, const char *file, uint64_t bytes, const char *into,
                     struct start_copy *copy, struct copy_failure *failure)
{
    tl_cleanup(mem_freep) char *path = path_in(into, file);
    make_folders(path, strlen(into) + 1);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = fd < 0 ? note_unwritten(path, failure) : 0;
    for (uint64_t at = 0; r == 0 && at < bytes;) {
        struct buf ask = BUF_INIT(BUF_UNLIMITED);
        buf_printf(&ask, "/_cluster/_checkpoint/%s?file=", checkpoint);
        client_escape(&ask, slice_from(file));
        buf_printf(&ask, "&from=%" PRIu64, at);
        buf_byte(&ask, '\0');
        long status = client_request(client, "GET", ask.data, SLICE_NONE, COPY_US);
        buf_deinit(&ask);
        size_t len = client->body.len;
        if (status != 200 || len == 0)
            r = tl_trace(TL_ERR_IO);
        else if (file_write_all(fd, client->body.data, len) != 0)
            r = note_unwritten(path, failure);
        else
            start_copy_add(copy, len);
        at += len;
    }
    if (r == 0 && fsync(fd) != 0)
        r = note_unwritten(path, failure);
    if (fd >= 0)
        close(fd);
    return r;
}

/* Returns: whether a file of a checkpoint is of use: its log is not, since a host's is in etcd. */
static bool is_copied(const char *file)
{
    return strncmp(file, "log/", strlen("log/")) != 0;
}

/* Returns: the size of the files to copy. */
static uint64_t bytes_to_copy(yyjson_val *files)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < yyjson_arr_size(files); i++) {
        yyjson_val *one = yyjson_arr_get(files, i);
        const char *file = yyjson_get_str(yyjson_obj_get(one, "file"));
        bytes += file != NULL && is_copied(file) ? yyjson_get_uint(yyjson_obj_get(one, "bytes")) : 0;
    }
    return bytes;
}

/* Refuses a checkpoint that the disk has no space for, before any of it is copied. */
static int check_space(uint64_t bytes, const char *into, struct copy_failure *failure)
{
    uint64_t free = free_bytes(into);
    if (bytes <= free)
        return 0;
    failure->cause = ENOSPC;
    failure->bytes = bytes;
    snprintf(failure->why, sizeof failure->why, "%s: the checkpoint has %" PRIu64 " bytes, and %" PRIu64 " are free",
             into, bytes, free);
    return TL_ERR_NO_SPACE;
}

static int copy_files(struct client *client, yyjson_val *reply, const char *into, struct start_copy *copy,
                      struct copy_failure *failure)
{
    char checkpoint[64] = "";
    yyjson_doc *kept = tl_steal(client->json); /* further replies take its place */
    const char *name = yyjson_get_str(yyjson_obj_get(reply, "checkpoint"));
    if (name != NULL)
        snprintf(checkpoint, sizeof checkpoint, "%s", name);
    yyjson_val *files = yyjson_obj_get(reply, "files");
    uint64_t bytes = bytes_to_copy(files);
    int r = checkpoint[0] == '\0' ? tl_trace(TL_ERR_CORRUPT) : check_space(bytes, into, failure);
    if (r == 0)
        start_copy_begin(copy, bytes);
    for (size_t i = 0; r == 0 && i < yyjson_arr_size(files); i++) {
        yyjson_val *one = yyjson_arr_get(files, i);
        const char *file = yyjson_get_str(yyjson_obj_get(one, "file"));
        if (file == NULL || file[0] == '/' || strstr(file, "..") != NULL)
            r = tl_trace(TL_ERR_CORRUPT);
        else if (is_copied(file))
            r = copy_file(client, checkpoint, file, yyjson_get_uint(yyjson_obj_get(one, "bytes")), into, copy, failure);
    }
    if (r == 0)
        start_copy_end(copy);
    client->context = NULL; /* the other host keeps the checkpoint until it is deleted */
    char path[128];
    snprintf(path, sizeof path, "/_cluster/_checkpoint/%s", checkpoint);
    if (client_request(client, "DELETE", path, SLICE_NONE, ATTEMPT_US) == 0)
        log_warning("a copied checkpoint is left on the other host, which deletes it after ten minutes");
    yyjson_doc_free(kept);
    return r;
}

/*
 * Parsed from a host's `about`: the ID of its directory, a space, its address; with TLS, a space
 * and "https".
 */
struct peer_address {
    struct slice address;
    bool tls;
};

static struct peer_address address_in(struct slice about)
{
    static const struct slice tls = SLICE_LIT(" https");
    size_t at = slice_find_byte(about, ' ');
    struct peer_address peer = {.address = slice_from_offset(about, at < about.len ? at + 1 : about.len)};
    size_t len = peer.address.len;
    peer.tls = len > tls.len && slice_equal(slice_from_offset(peer.address, len - tls.len), tls);
    peer.address.len = peer.tls ? len - tls.len : len;
    return peer;
}

/* Copies a checkpoint of a host. `logs`: why no checkpoint came is logged. Returns: whether the copy is complete. */
static bool copy_from(const struct member_options *o, struct slice about, const char *secret, bool logs,
                      struct start_copy *copy, struct copy_failure *failure)
{
    tl_cleanup(mem_freep) char *incoming = path_in(o->data, "incoming");
    struct peer_address peer = address_in(about);
    struct buf url = BUF_INIT(BUF_UNLIMITED);
    struct client client;
    buf_printf(&url, "%s://%.*s", peer.tls ? "https" : "http", SLICE_ARG(peer.address));
    buf_byte(&url, '\0');
    file_remove_tree(incoming);
    client_init(&client, url.data);
    client.option_prefix = "cluster-";
    client.absent_advice = NULL;
    client.gives_up = gives_up;
    client.context = (void *)(uintptr_t)o;
    client_header(&client, API_CLUSTER_SECRET_HEADER, secret);
    long status = client_request(&client, "POST", "/_cluster/_checkpoint", SLICE_NONE, COPY_US);
    int r = status == 200 && client_json(&client) != NULL ? 0 : TL_ERR_IO;
    if (r == 0 && mkdir(incoming, 0700) != 0)
        r = note_unwritten(incoming, failure);
    if (r == 0)
        r = copy_files(&client, client_json(&client), incoming, copy, failure);
    if (r != 0 && failure->cause == 0 && logs && !is_stopping(o))
        log_warning("no checkpoint came from %s: %s", url.data,
                    status != 200 ? client_error(&client, status) : error_text(r));
    if (r != 0)
        file_remove_tree(incoming); /* which may fill the disk */
    client_deinit(&client);
    buf_deinit(&url);
    return r == 0;
}

/* Returns: whether a copy is complete. */
static bool copy_from_any(const struct member_options *o, struct cmdlog *log, const char *secret, bool logs,
                          struct start_copy *copy, struct copy_failure *ret_failure)
{
    struct cmdlog_hosts *hosts;
    bool done = false;
    *ret_failure = (struct copy_failure){.is_named = false};
    if (cmdlog_list_hosts(log, 0, clock_boot_us() + ATTEMPT_US, &hosts) != 0)
        return false;
    for (size_t i = 0; i < hosts->count && !done && ret_failure->cause == 0 && !is_stopping(o); i++)
        if (slice_equal(hosts->hosts[i].name, o->name))
            ret_failure->is_named = true;
        else
            done = copy_from(o, hosts->hosts[i].about, secret, logs, copy, ret_failure);
    mem_free(hosts);
    return done;
}

/*
 * Moves the copied store to its place in the directory. The command log of the copy is removed: a
 * host's is in etcd.
 */
static int take_copy(const char *data, char **ret_reason)
{
    static const char *const names[] = {"rocks", "FORMAT"};
    tl_cleanup(mem_freep) char *incoming = path_in(data, "incoming");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tl_cleanup(mem_freep) char *from = path_in(incoming, names[i]);
        tl_cleanup(mem_freep) char *to = path_in(data, names[i]);
        file_remove_tree(to);
        if (rename(from, to) != 0 && errno != ENOENT)
            return refuse_data(TL_ERR_IO, ret_reason, "%s: %s", to, strerror(errno));
    }
    file_remove_tree(incoming);
    if (sync_folder(data) != 0)
        return refuse_data(TL_ERR_IO, ret_reason, "%s: %s", data, strerror(errno));
    return 0;
}

/* The attempts to copy a checkpoint. */
struct copy_attempts {
    uint64_t logged_us; /* boot clock: the last line about hosts that cannot be asked */
    int logged_cause;   /* copy_failure.cause of the attempt before this one; it has been logged */
    uint64_t pause_us; /* after this attempt */
};

/* Logs that no checkpoint could be copied: once if this host cannot store it, else each LOG_EACH_US. */
static void warn_no_copy(const struct member_options *o, const struct copy_failure *failure,
                         struct copy_attempts *attempts)
{
    if (failure->cause != 0 && failure->cause != attempts->logged_cause)
        log_warning("this host needs a checkpoint of another one, and cannot store it: %s; trying again", failure->why);
    attempts->logged_cause = failure->cause;
    if (clock_boot_us() - attempts->logged_us < LOG_EACH_US)
        return;
    if (failure->cause == 0)
        log_warning("this host needs a checkpoint of another one, and no host of the cluster could be asked for it; "
                    "waiting for one");
    if (failure->is_named)
        log_warning("a live host has the name of this one, %.*s; if that is not its own previous process, give this "
                    "one another --node-name",
                    SLICE_ARG(o->name));
    attempts->logged_us = clock_boot_us();
}

/*
 * Waits before the next attempt. Each attempt makes the other host write a checkpoint, so pauses grow
 * while this host cannot store one, unless its disk has enough space again.
 */
static void await_attempt(const struct member_options *o, const struct copy_failure *failure,
                          struct copy_attempts *attempts)
{
    uint64_t longer = 2 * attempts->pause_us < COPY_PAUSE_MAX_US ? 2 * attempts->pause_us : COPY_PAUSE_MAX_US;
    attempts->pause_us = failure->cause == 0 || longer == 0 ? COPY_PAUSE_MIN_US : longer;
    uint64_t until = clock_boot_us() + attempts->pause_us;
    while (clock_boot_us() < until && !is_stopping(o) && (failure->bytes == 0 || free_bytes(o->data) < failure->bytes))
        usleep(100 * STALL_US);
}

static int copy_member(const struct member_options *o, struct cmdlog *log, struct identity *identity,
                       const struct genesis *genesis, char **ret_reason)
{
    struct copy_attempts attempts = {.logged_us = 0};
    struct start_copy copy = {.bytes = 0};
    snprintf(identity->cluster, sizeof identity->cluster, "%s", genesis->cluster);
    if (identity->state == STATE_NONE)
        draw_id(identity->directory);
    identity->state = STATE_COPYING;
    int r = write_identity(o->data, identity, ret_reason);
    struct copy_failure failure;
    while (r == 0 && !copy_from_any(o, log, genesis->secret, clock_boot_us() - attempts.logged_us >= LOG_EACH_US, &copy,
                                    &failure)) {
        if (is_stopping(o))
            return TL_ERR_STOPPED;
        warn_no_copy(o, &failure, &attempts);
        await_attempt(o, &failure, &attempts);
    }
    if (r == 0)
        r = take_copy(o->data, ret_reason);
    if (r == 0) {
        identity->state = STATE_MEMBER;
        r = write_identity(o->data, identity, ret_reason);
    }
    return r;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* Opens the store, and reads the position of its checkpoint. */
static int open_store(const struct member_options *o, struct cluster_member *member, char **ret_reason)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_lineage lineage; /* a shared log has none */
    int r = store_open_rocks(o->store, &member->store, ret_reason);
    if (r == 0)
        r = store_checkpoint_record(member->store, &record);
    member->position = 0;
    if (r == 0)
        r = recover_read_position(buf_as_slice(&record), &member->position, &lineage);
    buf_deinit(&record);
    return r == STORE_NOT_FOUND ? 0 : r;
}

static int check_cluster(const struct identity *identity, struct slice url, const char *cluster, char **ret_reason)
{
    if (strcmp(identity->cluster, cluster) == 0)
        return 0;
    return refuse_data(TL_ERR_BUSY, ret_reason, "the directory is of cluster %s, and %.*s of cluster %s",
                       identity->cluster, SLICE_ARG(url), cluster);
}

static int check_identity(const struct member_options *o, const struct identity *identity, const char *cluster,
                          char **ret_reason)
{
    if (identity->state == STATE_NONE)
        return has_file(o->data, "rocks")
                   ? refuse_data(TL_ERR_BUSY, ret_reason,
                                 "the directory has data that is not the cluster's; a new host of a "
                                 "cluster starts with an empty directory")
                   : 0;
    /* Its cluster does not exist: another host's genesis was first, and that one's data is the cluster's. */
    if (identity->state == STATE_FOUNDING && strcmp(identity->cluster, cluster) != 0)
        return refuse_data(TL_ERR_BUSY, ret_reason,
                           "another host has made the cluster at %.*s of its data, before this one could: start this "
                           "host with an empty directory to join that; or, for the data in this directory, give "
                           "--cluster a prefix at which there is no cluster, or remove its file [cluster] and start "
                           "it without --cluster",
                           SLICE_ARG(o->log.url));
    return check_cluster(identity, o->log.url, cluster, ret_reason);
}

/*
 * Finds out whether the log still has the entry of the store's checkpoint, and all after it. Waits
 * until the log can be reached. `genesis`: position of the genesis, the first checkpoint of a
 * cluster; it is not an entry.
 * Returns: 0; CMDLOG_TRIMMED: entries after it are gone; TL_ERR_STOPPED; fatal codes, with
 * *ret_reason if the log ends before it.
 */
static int check_log(const struct member_options *o, struct cluster_member *member, cmdlog_position genesis,
                     char **ret_reason)
{
    cmdlog_position head;
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct log_wait wait = begin_wait();
    int r;
    while ((r = cmdlog_read_head(member->log, clock_boot_us() + ATTEMPT_US, &head)) == CMDLOG_UNREACHABLE) {
        if (is_stopping(o))
            return TL_ERR_STOPPED;
        report_unreachable(member->log, &wait);
        usleep(100 * STALL_US);
    }
    end_wait(&wait);
    if (r == 0 && member->position > head && member->position > genesis)
        return refuse_data(
            TL_ERR_CORRUPT, ret_reason,
            "the log of the cluster ends with entry %" PRIu64 ", before entry %" PRIu64
            ", up to which this directory has applied it: etcd was restored from a copy that is older than "
            "the directory. Give etcd a newer copy, or continue with a backup, or without the entries that "
            "etcd has lost (docs/cluster.md, \"After a restore of etcd\")",
            head, member->position);
    if (r != 0 || head <= member->position) /* nothing is after it */
        return r;
    if ((r = cmdlog_follow(member->log, member->position + 1, &cursor)) != 0)
        return r;
    wait = begin_wait();
    while ((r = cmdlog_next(cursor, &entry)) == CMDLOG_END && !is_stopping(o)) {
        report_unreachable(member->log, &wait);
        (void)!cmdlog_await(cursor, clock_boot_us() + ATTEMPT_US);
    }
    end_wait(&wait);
    cmdlog_unfollow(cursor);
    return r == CMDLOG_END ? TL_ERR_STOPPED : r;
}

/*
 * Opens the store of a member. If the log lacks entries after its checkpoint, another host's
 * checkpoint takes its place first.
 */
static int open_member_store(const struct member_options *o, struct cluster_member *member, struct identity *identity,
                             const struct genesis *genesis, char **ret_reason)
{
    int r;
    while ((r = open_store(o, member, ret_reason)) == 0 &&
           (r = check_log(o, member, genesis->position, ret_reason)) == CMDLOG_TRIMMED) {
        log_warning("the log of the cluster was trimmed beyond what this host has applied (--catch-up); "
                    "copying a checkpoint of another host");
        store_close(member->store);
        member->store = NULL;
        if ((r = copy_member(o, member->log, identity, genesis, ret_reason)) != 0)
            break;
    }
    return r;
}

/* Opens the crash page, and decides about the entry in which the process before this one ended. */
static int settle_ends(const struct member_options *o, struct cluster_member *member, char **ret_reason)
{
    char boot[DURABLE_BOOT_BYTES_MAX];
    const struct poison_host host = {.name = o->name,
                                     .checkpoint = member->position,
                                     .log_bytes = member->log_bytes,
                                     .stopping = o->stopping,
                                     .report_wait = start_progress_wait};
    int r = at_work_open(slice_from(o->data), durable_boot(boot), &member->at_work);
    if (r == 0)
        r = poison_settle_cluster(member->log, &host, member->at_work, &o->poison, &member->skips, ret_reason);
    if (r == TL_ERR_NO_SPACE && *ret_reason == NULL) /* for its checkpoint, or the record that it has resumed */
        return refuse_data(
            r, ret_reason,
            "etcd, which has the log of the cluster, has reached its quota, so this host cannot join: remove "
            "other programs' keys from etcd or raise its --quota-backend-bytes, defragment it, and disarm its "
            "alarm (docs/cluster.md, \"Space in etcd\")");
    return r == POISON_REFUSED ? tl_trace(TL_ERR_CORRUPT) : r;
}

/* The positions in at-work are of the directory's own log: the cluster's log counts anew. */
static int forget_own_log(const struct member_options *o)
{
    char boot[DURABLE_BOOT_BYTES_MAX];
    struct at_work *at_work;
    int r = at_work_open(slice_from(o->data), durable_boot(boot), &at_work);
    if (r != 0)
        return tl_trace(r);
    at_work_begin_log(at_work);
    at_work_close(at_work);
    return 0;
}

/*
 * Continues with a directory of state `creating`, which was empty before found_cluster(): as `founding`, or, if
 * another host made the cluster at the same time, as one into which a checkpoint is copied.
 */
static int settle_creation(const struct member_options *o, struct identity *identity, const struct genesis *genesis,
                           char **ret_reason)
{
    tl_cleanup(mem_freep) char *log = path_in(o->data, "log");
    if (strcmp(identity->cluster, genesis->cluster) == 0) {
        identity->state = STATE_FOUNDING;
        return 0;
    }
    log_info("another host has made the cluster; this one copies a checkpoint");
    file_remove_tree(log);
    snprintf(identity->cluster, sizeof identity->cluster, "%s", genesis->cluster);
    identity->state = STATE_COPYING;
    int r = forget_own_log(o);
    return r == 0 ? write_identity(o->data, identity, ret_reason) : r;
}

/* Warns of keys that a trim harms, and that take of the quota. One attempt: nothing depends on the answer. */
static void warn_of_foreign_keys(struct cmdlog *log)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED), text = BUF_INIT(BUF_UNLIMITED);
    if (cmdlog_etcd_find_foreign_key(log, clock_boot_us() + ATTEMPT_US, &key) != 0)
        return;
    buf_escape_line(&text, buf_as_slice(&key));
    log_warning(
        "etcd has keys that are not of this cluster, such as [%.*s]: a trim of the log compacts all of etcd, so "
        "its revisions are lost to other programs and other clusters, and all keys share its quota. Give each "
        "cluster an etcd of its own",
        SLICE_ARG(buf_as_slice(&text)));
}

/* Of the prefix of a cluster that this host would make. */
static int check_prefix(const struct member_options *o, char **ret_reason)
{
    struct slice part = cmdlog_etcd_reserved_part(o->log.url);
    if (part.len == 0)
        return 0;
    return refuse_data(TL_ERR_BUSY, ret_reason,
                       "no cluster can be made at %.*s: its keys would be among those of a cluster whose prefix ends "
                       "before [/%.*s]; give --cluster a prefix without that part",
                       SLICE_ARG(o->log.url), SLICE_ARG(part));
}

static int become_member(const struct member_options *o, struct cluster_member *member, char **ret_reason)
{
    struct identity identity;
    struct genesis genesis = {.position = 0};
    int r = read_identity(o->data, &identity, ret_reason);
    if (r < 0)
        return r;
    r = read_genesis(o, member->log, &genesis, ret_reason);
    if (r == CMDLOG_NOT_FOUND && (identity.state == STATE_COPYING || identity.state == STATE_MEMBER))
        return refuse_data(
            TL_ERR_BUSY, ret_reason,
            "the directory is of cluster %s, and there is no cluster at %.*s; if etcd has lost its data, continue with "
            "a backup (docs/cluster.md, \"Backup\")",
            identity.cluster, SLICE_ARG(o->log.url));
    if (r == CMDLOG_NOT_FOUND && (r = check_prefix(o, ret_reason)) == 0 &&
        (r = found_cluster(o, member->log, &identity, ret_reason)) == 0)
        r = read_genesis(o, member->log, &genesis, ret_reason);
    if (r == 0)
        warn_of_foreign_keys(member->log);
    if (r == 0 && identity.state == STATE_CREATING)
        r = settle_creation(o, &identity, &genesis, ret_reason);
    if (r == 0)
        r = check_identity(o, &identity, genesis.cluster, ret_reason);
    if (r == 0 && (identity.state == STATE_NONE || identity.state == STATE_COPYING))
        r = copy_member(o, member->log, &identity, &genesis, ret_reason);
    if (r == 0 && identity.state == STATE_FOUNDING)
        r = open_store(o, member, ret_reason);
    else if (r == 0)
        r = open_member_store(o, member, &identity, &genesis, ret_reason);
    struct core_limits limits = core_limits_default();
    if (r == 0)
        r = recover_begin(member->store, &limits, &member->core, &member->position, &member->log_bytes, ret_reason);
    if (r == 0 && identity.state == STATE_FOUNDING) {
        r = stand_at(member, genesis.position);
        identity.state = STATE_MEMBER;
        if (r == 0)
            r = forget_own_log(o);
        if (r == 0)
            r = write_identity(o->data, &identity, ret_reason);
        if (r == 0)
            log_info("this host has made the cluster %s", identity.cluster);
    }
    if (r == 0)
        r = settle_ends(o, member, ret_reason);
    struct buf about = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&about, "%s %.*s%s", identity.directory, SLICE_ARG(o->address), o->tls ? " https" : "");
    member->about = buf_detach(&about, &(size_t){0});
    member->secret = mem_strdup(genesis.secret, strlen(genesis.secret));
    return r;
}

int member_open(const struct member_options *o, struct cluster_member *ret, char **ret_reason)
{
    *ret = (struct cluster_member){0};
    *ret_reason = NULL;
    if (has_file(o->data, "differs"))
        return refuse_data(
            TL_ERR_CORRUPT, ret_reason,
            "this host's state differed from that of the others at the same log position; start it with an "
            "empty directory, "
            "which copies a checkpoint, and keep this one for the investigation");
    if (mkdir(o->data, 0700) != 0 && errno != EEXIST)
        return refuse_data(TL_ERR_IO, ret_reason, "%s: %s", o->data, strerror(errno));
    int r = cmdlog_etcd_open(&o->log, &ret->log, ret_reason);
    return r == 0 ? become_member(o, ret, ret_reason) : r;
}

/* Compares the directory with the log's genesis. Returns: as member_open_log(). */
static int check_genesis(const struct identity *identity, struct cmdlog *log, struct slice url,
                         cmdlog_position *ret_genesis, char **ret_reason)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct genesis genesis = {.position = 0};
    int r = cmdlog_read_genesis(log, clock_boot_us() + ATTEMPT_US, &bytes, &genesis.position);
    if (r == 0)
        r = parse_genesis(&bytes, &genesis, ret_reason);
    if (r == 0)
        r = check_cluster(identity, url, genesis.cluster, ret_reason);
    else if (r == CMDLOG_NOT_FOUND)
        r = refuse_data(TL_ERR_BUSY, ret_reason, "the directory is of cluster %s, and there is no cluster at %.*s",
                        identity->cluster, SLICE_ARG(url));
    else if (r == CMDLOG_UNREACHABLE) {
        tl_cleanup(mem_freep) char *trouble = cmdlog_etcd_last_error(log);
        r = refuse_data(TL_ERR_IO, ret_reason, "the log of the cluster cannot be reached: %s", trouble);
    }
    *ret_genesis = genesis.position;
    buf_deinit(&bytes);
    return r;
}

int member_open_log(const char *data, const struct cmdlog_etcd_options *options, struct cmdlog **ret_log,
                    cmdlog_position *ret_genesis, char **ret_reason)
{
    struct identity identity;
    *ret_reason = NULL;
    int r = read_identity(data, &identity, ret_reason);
    if (r == 0 && identity.state != STATE_MEMBER)
        r = refuse_data(TL_ERR_BUSY, ret_reason,
                        "the directory is not complete: its host has not finished its first start");
    if (r == 0)
        r = cmdlog_etcd_open(options, ret_log, ret_reason);
    if (r != 0)
        return r;
    r = check_genesis(&identity, *ret_log, options->url, ret_genesis, ret_reason);
    if (r != 0)
        cmdlog_close(*ret_log);
    return r;
}

void member_close(struct cluster_member *member)
{
    if (member->core != NULL)
        recover_close_core(member->core);
    if (member->store != NULL)
        store_close(member->store);
    if (member->log != NULL)
        cmdlog_close(member->log);
    at_work_close(member->at_work);
    mem_free(member->skips);
    mem_free(member->about);
    mem_free(member->secret);
    *member = (struct cluster_member){0};
}
