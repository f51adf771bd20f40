/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes of named requests; see request_outcome.h. */
#include "core/documents/request_outcome.h"

#include "base/check.h"
#include "core/catalog/purge.h"
#include "core/documents/result_codec.h"
#include "core/command/codec.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

/* Of a record: of the results in it, a version of the saved state (section.h); then of the record. */
enum { RESULT_VERSION = 9, RECORD_VERSION = 1 };

/* What a record says of its request, before the results. */
struct record_head {
    uint64_t version;
    uint64_t hash;
    tl_ts ended;
    uint64_t postponed_count;
    uint64_t script_steps;
};

static void codec_head(struct codec *codec, struct record_head *head)
{
    codec_number(codec, &head->version);
    codec_require(codec, head->version == RECORD_VERSION);
    codec_number(codec, &head->hash);
    codec_number(codec, &head->ended);
    codec_number(codec, &head->postponed_count);
    codec_number(codec, &head->script_steps);
}

/* The part that both keys of a record end with. */
static void put_name(struct buf *buf, const struct write_request *request)
{
    REQUIRE(request->id.len <= WRITE_REQUEST_ID_BYTES_MAX && request->part <= UINT32_MAX);
    buf_slice(buf, request->id);
    buf_u32be(buf, (uint32_t)request->part);
}

static struct slice record_key(struct buf *buf, const struct write_request *request)
{
    buf_clear(buf);
    buf_byte(buf, 'Q');
    put_name(buf, request);
    return buf_as_slice(buf);
}

static struct slice end_key(struct buf *buf, tl_ts ended, const struct write_request *request)
{
    purge_key(buf, PURGE_REQUEST, ended, SLICE_NONE);
    put_name(buf, request);
    return buf_as_slice(buf);
}

/* --- Finding ------------------------------------------------------------------------------------------------------ */

bool request_outcome__is_refused(struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE);
    const struct write_request *request = &command->write.request;
    if (request->id.len == 0 || (request->id.len <= WRITE_REQUEST_ID_BYTES_MAX && request->part <= UINT32_MAX &&
                                 command->owner.transaction.len == 0))
        return false;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "a request has an ID of at most [%d] bytes, and is part of no transaction", WRITE_REQUEST_ID_BYTES_MAX);
    return true;
}

static void refuse_other(struct command *command)
{
    const struct slice id = command->write.request.id;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "[Tidelock-Request: %.*s] is the ID of another request, which was executed within the last hour: give "
                "this one an ID of its own; a repetition has the same method, path, parameters and body",
                SLICE_ARG(id));
}

/* Reads the results of the first time. Returns: 0; TL_ERR_CORRUPT. */
static int read_results(struct codec *codec, struct command *command, const struct record_head *head)
{
    REQUIRE(command->write.item_count == 0 || command->write.results != NULL);
    struct write_command *write = &command->write;
    for (size_t i = 0; i < write->item_count; i++) {
        result_codec__result(codec, &write->results[i]);
        codec_slice(codec, &write->results[i].id);
    }
    write->postponed_count = (size_t)head->postponed_count;
    write->script_steps = head->script_steps;
    return codec_done(codec) ? 0 : tl_trace(TL_ERR_CORRUPT);
}

/* Counts the work of coding a record. Its parts are copied as those of any record that is read. */
static void count_record(struct core *core, size_t items, size_t bytes)
{
    core__work(core, items * WORK_RESULT + bytes / WORK_READ_BYTES);
}

static int read_record(struct core *core, struct slice bytes, struct command *command)
{
    struct codec codec = codec_from(arena_copy(&command->arena, bytes), &command->arena);
    struct record_head head;
    uint64_t count;
    codec.version = RESULT_VERSION;
    codec_head(&codec, &head);
    codec_number(&codec, &count);
    if (codec.bad)
        return tl_trace(TL_ERR_CORRUPT);
    if (head.ended < core->purge_horizons.outcomes)
        return REQUEST_OUTCOME_NONE;
    count_record(core, 0, bytes.len);
    if (head.hash == command->write.request.hash && count == command->write.item_count) {
        count_record(core, (size_t)count, 0);
        return read_results(&codec, command, &head);
    }
    refuse_other(command);
    return 0;
}

int request_outcome__find(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE);
    REQUIRE(core->open && !core__changed(core));
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    if (command->write.request.id.len == 0)
        return REQUEST_OUTCOME_NONE;
    core__work(core, WORK_READ);
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, record_key(&key, &command->write.request), &value);
    buf_deinit(&key);
    if (r != 0)
        return r < 0 ? tl_trace(r) : REQUEST_OUTCOME_NONE;
    r = read_record(core, value.bytes, command);
    store_value_release(&value);
    return r;
}

/* --- Recording ---------------------------------------------------------------------------------------------------- */

/*
 * Whether the write had an effect, or divided its request: the items that it postponed may be done
 * by the next command, and a repetition must be divided in the same way to find that.
 */
static bool is_to_be_kept(const struct command *command)
{
    const struct write_command *write = &command->write;
    if (command->problem.type != PROBLEM_NONE || write->rolled_back)
        return false;
    if (write->postponed_count > 0)
        return true;
    for (size_t i = 0; i < write->item_count; i++)
        if (write->results[i].outcome != WRITE_FAILED)
            return true;
    return false;
}

/*
 * Codes one result. The holders of a lock are left out: a description of them may be far larger than
 * its item.
 */
static void put_result(struct codec *codec, const struct write_item *item, struct write_result result)
{
    struct slice id = item->id_generated ? item->id : SLICE_NONE;
    if (result.problem.type == PROBLEM_LOCK_WAIT_TIMEOUT) {
        result.problem.reason = SLICE_LIT(WRITE_LOCK_IS_HELD);
        result.problem.details = SLICE_NONE;
    }
    result_codec__result(codec, &result);
    codec_slice(codec, &id);
}

void request_outcome__put(struct core *core, const struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE && (command->write.item_count == 0 || command->write.results != NULL));
    const struct write_command *write = &command->write;
    REQUIRE(core->open);
    if (write->request.id.len == 0 || !is_to_be_kept(command))
        return;
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    struct codec codec = codec_to(&value, RESULT_VERSION);
    struct record_head head = {RECORD_VERSION, write->request.hash, core->ts, write->postponed_count,
                               write->script_steps};
    uint64_t count = write->item_count;
    codec_head(&codec, &head);
    codec_number(&codec, &count);
    for (size_t i = 0; i < write->item_count; i++)
        put_result(&codec, &write->items[i], write->results[i]);
    count_record(core, write->item_count, value.len);
    store_batch_put(core->batch, SPACE_SYSTEM, record_key(&key, &write->request), buf_as_slice(&value));
    store_batch_put(core->batch, SPACE_SYSTEM, end_key(&key, core->ts, &write->request), SLICE_LIT(""));
    buf_deinit(&key);
    buf_deinit(&value);
}

/* --- Purging ------------------------------------------------------------------------------------------------------ */

/* Bytes of a record that take as long to read as a key takes to remove (work.h). */
enum { BYTES_PER_KEY = (WORK_SCAN + WORK_READ) * WORK_BYTES };

/* Counts the bytes of a record that was read as *io_counted keys. */
static void count_bytes(struct core *core, size_t bytes, size_t *io_counted)
{
    core__work(core, bytes / WORK_READ_BYTES);
    if (core->command_version >= COMMAND_SINCE_PURGED_BYTES)
        *io_counted += bytes / BYTES_PER_KEY;
}

/*
 * Removes a record, unless its request ran again after the record was due. Adds its bytes to
 * *io_counted.
 */
static int remove_record(struct core *core, struct slice name, tl_ts ended, struct buf *key, size_t *io_counted)
{
    struct store_value value;
    struct record_head head = {0};
    buf_clear(key);
    buf_byte(key, 'Q');
    buf_slice(key, name);
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, buf_as_slice(key), &value);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    count_bytes(core, value.bytes.len, io_counted);
    struct codec codec = codec_from(value.bytes, NULL);
    codec_head(&codec, &head);
    if (!codec.bad && head.ended == ended)
        store_batch_delete(core->batch, SPACE_SYSTEM, buf_as_slice(key));
    store_value_release(&value);
    return codec.bad ? tl_trace(TL_ERR_CORRUPT) : 0;
}

int request_outcome__purge(struct core *core, size_t keys_max, size_t *ret_removed)
{
    REQUIRE(core->open);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct slice lower = SLICE_LIT("q"), until;
    size_t removed = 0;
    int r = 0;
    until = purge_key(&upper, PURGE_REQUEST, core->purge_horizons.outcomes, SLICE_NONE);
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, lower, until);
    for (store_iter_seek_first(iter); r == 0 && removed + 2 <= keys_max && store_iter_valid(iter);
         store_iter_next(iter)) {
        struct slice end = store_iter_key(iter), rest = slice_from_offset(end, 1);
        tl_ts ended = 0;
        if (!slice_take_u64be(&rest, &ended))
            r = tl_trace(TL_ERR_CORRUPT);
        else
            r = remove_record(core, rest, ended, &key, &removed);
        store_batch_delete(core->batch, SPACE_SYSTEM, end);
        core__work(core, WORK_SCAN + WORK_READ);
        removed += 2;
    }
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    *ret_removed = removed;
    return r;
}
