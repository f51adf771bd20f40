/* SPDX-License-Identifier: Apache-2.0 */
/* The command log in etcd: opening, closing, and the tables of functions; README.md. */
#include "cmdlog/cmdlog_etcd.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mutex.h"
#include "base/types.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"

enum { LEASE_MIN_S = 2 /* etcd's minimum with its defaults */ };

void cmdlog_etcd__key(struct buf *buf, const struct cmdlog_etcd *log, const char *kind, struct slice name)
{
    buf_slice(buf, log->prefix);
    buf_printf(buf, "/%s/", kind);
    buf_slice(buf, name);
}

void cmdlog_etcd__observe(struct cmdlog_etcd *log, cmdlog_position position)
{
    REQUIRE(mutex_is_held(&log->lock));
    log->newest = position > log->newest ? position : log->newest;
}

/* --- Calls of log.h ----------------------------------------------------------------------------------------------- */

/* Has nothing to do: an acknowledged entry is durable on a majority of the members. */
static int cmdlog_etcd_sync(struct cmdlog *log, cmdlog_position position)
{
    (void)log;
    (void)position;
    return 0;
}

static void cmdlog_etcd_head(struct cmdlog *base, struct cmdlog_head *ret_head)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    pthread_mutex_lock(&log->lock);
    cmdlog_position newest = log->newest > log->oldest ? log->newest : log->oldest > 0 ? log->oldest - 1 : 0;
    *ret_head =
        (struct cmdlog_head){.oldest = log->oldest == 0 ? 1 : log->oldest, .appended = newest, .durable = newest};
    if (ret_head->oldest > newest + 1)
        ret_head->oldest = newest + 1;
    pthread_mutex_unlock(&log->lock);
}

static int cmdlog_etcd_noop(struct cmdlog *log)
{
    (void)log;
    return 0;
}

static void cmdlog_etcd_space(struct cmdlog *base, struct cmdlog_space *ret_space)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    pthread_mutex_lock(&log->lock);
    *ret_space = membership__space(log);
    pthread_mutex_unlock(&log->lock);
}

void cmdlog_etcd_counts(struct cmdlog *base, struct cmdlog_etcd_counts *ret_counts)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    pthread_mutex_lock(&log->lock);
    *ret_counts = log->counts;
    pthread_mutex_unlock(&log->lock);
    ret_counts->connections = etcd_client_connections(log->client);
}

char *cmdlog_etcd_last_error(struct cmdlog *log)
{
    return etcd_client_last_error(cmdlog_etcd_of(log)->client);
}

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

static void cmdlog_etcd_close(struct cmdlog *base)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    pthread_mutex_lock(&log->lock);
    log->closing = true;
    pthread_cond_broadcast(&log->changed);
    pthread_mutex_unlock(&log->lock);
    etcd_client_close(log->client);
    REQUIRE(list_empty(&log->cursors));
    appender__deinit(log);
    membership__deinit(log);
    pthread_mutex_destroy(&log->lock);
    pthread_cond_destroy(&log->changed);
    buf_deinit(&log->keys);
    mem_free(log->url);
    mem_free(log->name_text);
    mem_free((char *)(uintptr_t)log->files.ca);
    mem_free((char *)(uintptr_t)log->files.cert);
    mem_free((char *)(uintptr_t)log->files.key);
    magic_clear(&log->magic);
    mem_free(log);
}

static const struct cmdlog_functions functions = {
    .append = appender__append,
    .sync = cmdlog_etcd_sync,
    .head = cmdlog_etcd_head,
    .follow = follower__follow,
    .next = follower__next,
    .unfollow = follower__unfollow,
    .trim = metadata__trim,
    .preallocate = cmdlog_etcd_noop,
    .shrink = cmdlog_etcd_noop,
    .put_checkpoint = metadata__put_checkpoint,
    .get_checkpoint = metadata__get_checkpoint,
    .seal = cmdlog_etcd_noop,
    .close = cmdlog_etcd_close,
};

static const struct cmdlog_shared_functions shared = {
    .join = membership__join,
    .leave = membership__leave,
    .expel = membership__expel,
    .lease = membership__lease,
    .list_hosts = membership__list_hosts,
    .submit = appender__submit,
    .await_slot = appender__await_slot,
    .outcome = appender__outcome,
    .await = follower__await,
    .interrupt = follower__interrupt,
    .cursor_position = follower__position,
    .read_head = metadata__read_head,
    .read_genesis = metadata__read_genesis,
    .create_genesis = metadata__create_genesis,
    .list_checkpoints = metadata__list_checkpoints,
    .forget_host = metadata__forget_host,
    .halt = skips__halt,
    .skip = skips__skip,
    .list_skips = skips__list,
    .space = cmdlog_etcd_space,
};

int cmdlog_etcd_check_url(struct slice url, char **ret_reason)
{
    struct slice prefix;
    int r = etcd_client_check_members(url, ret_reason);
    return r == 0 ? etcd_client_read_prefix(url, &prefix, ret_reason) : r;
}

struct slice cmdlog_etcd_reserved_part(struct slice url)
{
    static const char *const kinds[] = {"host", "log", "checkpoint", "halted", "skip"}; /* as in make_keys() */
    struct slice rest;
    char *reason = NULL;
    if (etcd_client_read_prefix(url, &rest, &reason) != 0) {
        mem_free(reason);
        return SLICE_NONE;
    }
    for (size_t at = slice_find_byte(rest, '/'); at < rest.len; at = slice_find_byte(rest, '/')) {
        rest = slice_from_offset(rest, at + 1);
        struct slice part = slice_make(rest.data, slice_find_byte(rest, '/'));
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (slice_is(part, kinds[i]))
                return part;
    }
    return SLICE_NONE;
}

/* Builds the keys in one buffer, reserved in advance because slices point into it. */
static void make_keys(struct cmdlog_etcd *log)
{
    struct {
        const char *kind;
        bool own, end;
        struct slice *key;
    } keys[] = {
        {"host", true, false, &log->key_host},
        {"log", true, false, &log->key_log},
        {"checkpoint", true, false, &log->key_checkpoint},
        {"host", false, false, &log->hosts},
        {"host", false, true, &log->hosts_end},
        {"log", false, false, &log->logs},
        {"log", false, true, &log->logs_end},
        {"checkpoint", false, false, &log->checkpoints},
        {"checkpoint", false, true, &log->checkpoints_end},
        {"halted", true, false, &log->key_halted},
        {"halted", false, false, &log->halted},
        {"halted", false, true, &log->halted_end},
        {"skip", false, false, &log->skips},
        {"skip", false, true, &log->skips_end},
    };
    log->keys = BUF_INIT(BUF_UNLIMITED);
    buf_reserve(&log->keys, 16 * (log->prefix.len + CMDLOG_HOST_NAME_MAX + 16));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t at = log->keys.len;
        if (keys[i].end)
            etcd_prefix_end(*keys[i - 1].key, &log->keys);
        else
            cmdlog_etcd__key(&log->keys, log, keys[i].kind, keys[i].own ? log->name : SLICE_NONE);
        *keys[i].key = slice_make(log->keys.data + at, log->keys.len - at);
    }
    size_t at = log->keys.len;
    buf_slice(&log->keys, log->prefix);
    buf_lit(&log->keys, "/genesis");
    log->key_genesis = slice_make(log->keys.data + at, log->keys.len - at);
    ENSURE(log->key_host.data == log->keys.data); /* the buffer was not moved */
}

static int refuse_options(const char *text, char **ret_reason)
{
    *ret_reason = mem_strdup(text, strlen(text));
    return tl_trace(TL_ERR_IO);
}

static char *copy_text(const char *text)
{
    return text == NULL ? NULL : mem_strdup(text, strlen(text));
}

int cmdlog_etcd_open(const struct cmdlog_etcd_options *options, struct cmdlog **ret_log, char **ret_reason)
{
    if (!cmdlog_is_host_name(options->name))
        return refuse_options("a host's name has letters, digits, dots, hyphens and underscores, 128 at most",
                              ret_reason);
    struct cmdlog_etcd *log = mem_zalloc(sizeof *log);
    uint64_t lease_s = ((options->lease_us > 0 ? options->lease_us : 3 * TL_SECOND) + TL_SECOND - 1) / TL_SECOND;
    log->log = (struct cmdlog){&functions, &shared};
    log->magic = CMDLOG_ETCD_MAGIC;
    log->ttl_us = (lease_s < LEASE_MIN_S ? LEASE_MIN_S : lease_s) * TL_SECOND;
    log->catch_up = options->catch_up > 0 ? options->catch_up : (uint64_t)2 << 30;
    log->quota = options->quota;
    log->url = mem_strdup(options->url.data, options->url.len);
    log->name_text = mem_strdup(options->name.data, options->name.len);
    log->files = (struct etcd_tls_files){copy_text(options->ca), copy_text(options->cert), copy_text(options->key)};
    log->name = slice_make(log->name_text, options->name.len);
    mutex_init(&log->lock);
    pthread_cond_init(&log->changed, NULL);
    list_init(&log->tasks);
    int r = etcd_client_read_prefix(slice_make(log->url, options->url.len), &log->prefix, ret_reason);
    make_keys(log); /* the requests below have keys, even if none is sent */
    appender__init(log);
    membership__init(log);
    follower__init(log);
    if (r == 0)
        r = etcd_client_open(slice_make(log->url, options->url.len), &log->files, &log->client, ret_reason);
    if (r == 0)
        r = etcd_client_start(log->client, &log->tasks, ret_reason);
    if (r == 0)
        *ret_log = &log->log;
    else
        cmdlog_etcd_close(&log->log);
    return r;
}
