/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the data directory; README.md, "A copy". */
#include "base/alloc.h"
#include "base/check.h"
#include "base/magic.h"
#include "journal/journal_internal.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_file.h"

static void set_reason(char **ret_reason, const char *text)
{
    if (*ret_reason == NULL)
        *ret_reason = mem_strdup(text, strlen(text));
}

/*
 * Reads the log position of the copied store's checkpoint, which may be newer than the requested
 * one.
 */
static int read_position(const char *directory, cmdlog_position *ret_position, struct cmdlog_lineage *ret_lineage,
                         char **ret_reason)
{
    const struct store_options options = {.directory = slice_from(directory), .read_only = true};
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct store *store;
    int r = store_open_rocks(&options, &store, ret_reason);
    if (r == 0) {
        r = store_checkpoint_record(store, &record);
        store_close(store);
    }
    if (r == 0)
        r = recover_read_position(buf_as_slice(&record), ret_position, ret_lineage);
    else if (r == STORE_NOT_FOUND)
        r = TL_ERR_CORRUPT;
    buf_deinit(&record);
    return r < 0 ? tl_trace(r) : 0;
}

/* Makes an empty log that continues the lineage of the original log. */
static int begin_log(const char *directory, cmdlog_position position, const struct cmdlog_lineage *lineage,
                     char **ret_reason)
{
    const struct cmdlog_file_options options = {
        .segment_bytes = RECOVER_SEGMENT_BYTES, .after = position, .lineage = *lineage};
    const struct cmdlog_checkpoint checkpoint = {.position = position, .locator = SLICE_LIT("store")};
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_disk *disk;
    struct cmdlog *log;
    buf_printf(&path, "%s/log", directory);
    buf_byte(&path, '\0');
    int r = cmdlog_disk_open(path.data, &disk);
    buf_deinit(&path);
    if (r == 0)
        r = cmdlog_file_open(disk, &options, &log, ret_reason);
    if (r < 0)
        return tl_trace(r);
    r = cmdlog_put_checkpoint(log, &checkpoint);
    cmdlog_close(log);
    return r < 0 ? tl_trace(r) : 0;
}

int journal_copy(struct journal *journal, const char *directory, tl_ts *ret_ts, char **ret_reason)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    cmdlog_position wanted = 0, position = 0;
    struct cmdlog_lineage lineage;
    *ret_reason = NULL;
    *ret_ts = journal_stable(journal);
    int r = journal__reach_checkpoint(journal, &wanted);
    if (r == 0)
        r = store_copy(journal->store, directory, ret_reason);
    if (r == 0)
        r = read_position(directory, &position, &lineage, ret_reason);
    if (r < 0)
        return tl_trace(r);
    if (position < wanted) { /* the journal stopped before the checkpoint was durable */
        set_reason(ret_reason, "the server stops");
        return TL_ERR_BUSY;
    }
    return begin_log(directory, position, &lineage, ret_reason);
}
