/* SPDX-License-Identifier: Apache-2.0 */
/* A data directory, opened; see durable.h. */
#include "cli/durable.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "core/command/command.h"
#include "core/step/core.h"
#include "core/step/save.h"
#include "journal/at_work.h"
#include "cmdlog/cmdlog_file.h"

enum { SPARES = 6 /* segments to reuse: a checkpoint releases those written since the one before */ };

static char *path_in(struct slice directory, const char *name)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    size_t len;
    buf_printf(&path, "%.*s/%s", SLICE_ARG(directory), name);
    return buf_detach(&path, &len);
}

/* Reads a small file. Returns: its bytes in `bytes`; empty if it cannot be read. */
static struct slice read_small(const char *path, char bytes[DURABLE_BOOT_BYTES_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, bytes, DURABLE_BOOT_BYTES_MAX);
    if (fd >= 0)
        close(fd);
    return slice_make(bytes, len < 0 ? 0 : (size_t)len);
}

struct slice durable_boot(char bytes[DURABLE_BOOT_BYTES_MAX])
{
    return read_small("/proc/sys/kernel/random/boot_id", bytes);
}

/* Whether the machine crashed or restarted since durable_settle() was called for the directory. */
static bool machine_was_lost(struct slice directory)
{
    char now_bytes[DURABLE_BOOT_BYTES_MAX], before_bytes[DURABLE_BOOT_BYTES_MAX];
    tl_cleanup(mem_freep) char *path = path_in(directory, "boot");
    struct slice now = durable_boot(now_bytes);
    return now.len == 0 || !slice_equal(now, read_small(path, before_bytes));
}

/* The file is never synced: if its content is lost, the machine has crashed. */
void durable_settle(struct slice directory)
{
    char bytes[DURABLE_BOOT_BYTES_MAX];
    tl_cleanup(mem_freep) char *path = path_in(directory, "boot");
    struct slice now = durable_boot(bytes);
    int fd = machine_was_lost(directory) ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    if (write(fd, now.data, now.len) != (ssize_t)now.len)
        (void)unlink(path); /* then it is taken for lost the next time */
    close(fd);
}

static int open_log(struct slice directory, bool read_only, const struct archive_options *archive,
                    struct durable *durable, char **ret_reason)
{
    tl_cleanup(mem_freep) char *path = path_in(directory, "log");
    struct cmdlog_file_options options = {
        .segment_bytes = RECOVER_SEGMENT_BYTES, .spares_max = SPARES, .read_only = read_only};
    struct cmdlog_disk *disk;
    if (read_only && access(path, F_OK) != 0)
        return 0;
    int r = cmdlog_disk_open(path, &disk);
    if (r == 0 && archive != NULL && (r = archive_open(archive, path, &durable->archive, ret_reason)) < 0)
        disk->functions->free(disk);
    if (r < 0)
        return tl_trace(r);
    options.archive = durable->archive != NULL ? archive_keep : NULL;
    options.archive_context = durable->archive;
    return cmdlog_file_open(disk, &options, &durable->log, ret_reason);
}

/* Loads the core as of the checkpoint; without a checkpoint record, from the store alone. */
static int read_core(struct durable *durable, const struct core_limits *limits, char **ret_reason)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    int r = durable->log == NULL && !durable->is_member ? STORE_NOT_FOUND
                                                        : store_checkpoint_record(durable->store, &record);
    if (r == 0)
        r = recover_read_record(durable->store, buf_as_slice(&record), limits, &durable->core, &durable->recovered,
                                ret_reason);
    else if (r == STORE_NOT_FOUND)
        r = core_open(durable->store, limits, &durable->core);
    buf_deinit(&record);
    return r;
}

/*
 * Records an attempt in the log if the previous process ended while it executed a cleanup action,
 * before the entry is applied again, and clears the crash page. A crash between both counts the
 * attempt twice, which is safe: once too often, never too rarely.
 */
static int record_attempt(struct durable *durable)
{
    struct command *command = command_new(COMMAND_TRIED, DIALECT_7);
    bool found = at_work_found(durable->at_work, command);
    int r = found ? recover_append_annotation(durable->log, command) : 0;
    command_free(command);
    if (r < 0)
        return tl_trace(r);
    (void)at_work_watch(durable->at_work);
    if (found)
        log_warning("the server ended while it executed a cleanup action of an ended session; an action is tried twice "
                    "at most");
    return 0;
}

/* Evaluates the entry in which the previous process ended; afterwards the log can be applied. */
static int settle_ends(struct durable *durable, char **ret_reason)
{
    int r = record_attempt(durable);
    if (r == 0)
        r = poison_settle(durable->store, durable->log, durable->at_work, &durable->choice, ret_reason);
    return r == POISON_REFUSED ? tl_trace(TL_ERR_CORRUPT) : r;
}

int durable_open(const struct store_options *options, const struct core_limits *limits,
                 const struct archive_options *archive, struct durable *ret, char **ret_reason)
{
    REQUIRE(ret->store == NULL && ret->log == NULL && ret->core == NULL && ret->archive == NULL);
    char boot[DURABLE_BOOT_BYTES_MAX];
    struct cmdlog_head head;
    struct core_limits check_limits = *limits;
    struct store_options checked = *options;
    checked.check_older = recover_check_older;
    checked.check_context = &check_limits;
    int r = store_open_rocks(&checked, &ret->store, ret_reason);
    if (r == 0 && !(options->read_only && ret->is_member))
        r = open_log(options->directory, options->read_only, archive, ret, ret_reason);
    if (r == 0 && options->read_only)
        return read_core(ret, limits, ret_reason);
    if (r == 0)
        r = at_work_open(options->directory, durable_boot(boot), &ret->at_work);
    if (r < 0)
        return tl_trace(r);
    cmdlog_head(ret->log, &head);
    ret->machine_lost = machine_was_lost(options->directory) && !head.sealed && head.appended > 0;
    r = settle_ends(ret, ret_reason);
    if (r < 0)
        return tl_trace(r);
    return recover_core_with(ret->store, ret->log, limits,
                             &(struct recover_options){.at_work = ret->at_work, .observer = ret->observer}, &ret->core,
                             &ret->recovered, ret_reason);
}

void durable_close(struct durable *durable)
{
    if (durable->core != NULL)
        recover_close_core(durable->core);
    if (durable->log != NULL)
        cmdlog_close(durable->log);
    archive_close(durable->archive);
    at_work_close(durable->at_work);
    store_close(durable->store);
    *durable = (struct durable){0};
}
