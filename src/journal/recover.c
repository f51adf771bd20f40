/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery from a log; see recover.h. */
#include "journal/recover.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/list.h"
#include "core/step/command.h"
#include "core/step/command_code.h"
#include "core/step/core.h"
#include "core/step/entry.h"
#include "core/step/save.h"
#include "store/store.h"

/* A record: what it is, its version, the position (varint), the core. */
#define RECORD_MAGIC "tidestop"
enum { RECORD_VERSION = 1 };

void recover_write_record(struct core *core, log_position position, struct buf *record)
{
    buf_lit(record, RECORD_MAGIC);
    buf_byte(record, RECORD_VERSION);
    buf_varint(record, position);
    core_save(core, record);
}

static int refuse(int code, char **ret_reason, struct slice reason)
{
    if (ret_reason != NULL)
        *ret_reason = mem_strdup(reason.data, reason.len);
    return tl_trace(code);
}

/* Takes a record apart. Returns: 0; TL_ERR_VERSION, TL_ERR_CORRUPT. */
static int read_record(struct slice record, log_position *ret_position, struct slice *ret_core)
{
    struct slice head;
    if (!slice_take(&record, strlen(RECORD_MAGIC) + 1, &head) || !slice_starts_with(head, SLICE_LIT(RECORD_MAGIC)))
        return tl_trace(TL_ERR_CORRUPT);
    if ((unsigned char)head.data[head.len - 1] > RECORD_VERSION)
        return tl_trace(TL_ERR_VERSION);
    if (!slice_take_varint(&record, ret_position))
        return tl_trace(TL_ERR_CORRUPT);
    *ret_core = record;
    return 0;
}

int recover_read_record(struct store *store, struct slice record, const struct core_limits *limits,
                        struct core **ret_core, log_position *ret_position, char **ret_reason)
{
    struct buf reason = BUF_INIT(BUF_UNLIMITED);
    struct slice saved;
    int r = read_record(record, ret_position, &saved);
    if (r < 0)
        return refuse(r, ret_reason,
                      SLICE_LIT("the record of the store's checkpoint is damaged, or of a newer version"));
    r = core_load(store, limits, saved, &reason, ret_core);
    if (r == CORE_SAVE_NEWER)
        r = TL_ERR_VERSION;
    if (r < 0) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        buf_lit(&text, "the state in the store's checkpoint: ");
        buf_slice(&text, buf_view(&reason));
        r = refuse(r, ret_reason, buf_view(&text));
        buf_deinit(&text);
    }
    buf_deinit(&reason);
    return r;
}

/* The core as of the checkpoint. */
static int begin(struct store *store, const struct core_limits *limits, struct core **ret_core,
                 log_position *ret_position, char **ret_reason)
{
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    int r = store_checkpoint_record(store, &record);
    *ret_position = 0;
    if (r == 0)
        r = recover_read_record(store, buf_view(&record), limits, ret_core, ret_position, ret_reason);
    else if (r == STORE_NOT_FOUND)
        r = core_open(store, limits, ret_core);
    buf_deinit(&record);
    return r;
}

static void free_completed(struct effects *effects)
{
    while (!list_empty(&effects->completed)) {
        struct command *command = list_entry(effects->completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

/* Takes an entry apart. Returns: 0; TL_ERR_VERSION, TL_ERR_CORRUPT. */
static int read_entry(const struct log_entry *entry, struct entry_head *ret_head, struct list *commands,
                      char **ret_reason)
{
    int r = entry_decode(entry->bytes, ret_head, commands);
    if (r == COMMAND_CODE_NEWER)
        return refuse(TL_ERR_VERSION, ret_reason, SLICE_LIT("the log has commands of a newer version"));
    return r < 0 ? refuse(r, ret_reason, SLICE_LIT("the log has an entry that is none")) : 0;
}

/* With `core` NULL it is only looked at. */
static int replay_entry(struct core *core, const struct log_entry *entry, struct effects *effects, char **ret_reason)
{
    struct list commands = LIST_INIT(commands);
    struct entry_head head;
    int r = read_entry(entry, &head, &commands, ret_reason);
    if (r == 0 && core != NULL)
        r = entry_apply(core, &head, &commands, effects);
    while (core == NULL && !list_empty(&commands)) {
        struct command *command = list_entry(commands.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
    free_completed(effects);
    return r;
}

static int replay(struct core *core, struct log *log, log_position from, log_position *ret_position, char **ret_reason)
{
    struct log_cursor *cursor;
    struct log_entry entry;
    struct effects effects;
    int r = log_follow(log, from + 1, &cursor);
    if (r == LOG_TRIMMED)
        return refuse(
            TL_ERR_CORRUPT, ret_reason,
            SLICE_LIT("the log begins behind the checkpoint that the store stands at: they are not of one time"));
    if (r < 0)
        return tl_trace(r);
    effects_init(&effects);
    *ret_position = from;
    while (r == 0 && (r = log_next(cursor, &entry)) == 0) {
        r = replay_entry(core, &entry, &effects, ret_reason);
        *ret_position = entry.position;
    }
    log_unfollow(cursor);
    return r == LOG_END ? 0 : r < 0 ? tl_trace(r) : tl_trace(TL_ERR_CORRUPT);
}

int recover_check_log(struct log *log, log_position checkpoint, log_position *ret_behind, char **ret_reason)
{
    log_position last;
    int r = replay(NULL, log, checkpoint, &last, ret_reason);
    *ret_behind = r == 0 ? last - checkpoint : 0;
    return r;
}

/* Nobody waits for an answer, so that a core which cannot be used can be closed. */
static void give_up(struct core *core)
{
    struct effects effects;
    effects_init(&effects);
    core_stop(core, &effects);
    free_completed(&effects);
    core_close(core);
}

int recover_core(struct store *store, struct log *log, const struct core_limits *limits, struct core **ret_core,
                 struct recovered *ret_recovered, char **ret_reason)
{
    struct recovered recovered = {0};
    struct log_head head;
    struct core *core;
    if (ret_reason != NULL)
        *ret_reason = NULL;
    int r = begin(store, limits, &core, &recovered.checkpoint, ret_reason);
    if (r < 0)
        return tl_trace(r);
    log_head(log, &head);
    if (recovered.checkpoint > head.appended)
        r = refuse(TL_ERR_CORRUPT, ret_reason,
                   SLICE_LIT("the store stands at a checkpoint behind the end of the log: they are not of one time"));
    else
        r = replay(core, log, recovered.checkpoint, &recovered.position, ret_reason);
    if (r < 0) {
        give_up(core);
        return tl_trace(r);
    }
    *ret_core = core;
    *ret_recovered = recovered;
    return 0;
}
