/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes of named requests; see request_outcome.h. */
#include "core/documents/request_outcome.h"

#include "base/check.h"
#include "core/catalog/purge.h"
#include "core/documents/result_codec.h"
#include "core/command/codec.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

/* Of the results in a record, a version of the saved state (section.h). */
enum { RESULT_VERSION = 9 };
/* Of a record; the first is that of RECORD_FINAL, and does not say its kind. */
enum { RECORD_VERSION_FINAL = 1, RECORD_VERSION_OTHER = 2 };

/* Values are permanent. */
enum outcome_kind {
    RECORD_FINAL,     /* of a command that had an effect, or postponed items */
    RECORD_NO_EFFECT, /* of one of which all items failed: it counts if another one of its request had an effect */
    RECORD_EFFECT,    /* which command of a divided request had an effect, of those the last in the request */
    RECORD_KIND_COUNT
};

/* The part of RECORD_EFFECT: no item has this position. */
#define EFFECT_PART UINT32_MAX

/* What a record says of its request, before the results. */
struct record_head {
    uint64_t version;
    uint64_t hash;
    tl_ts ended;
    uint64_t postponed_count;
    uint64_t script_steps;
    uint64_t kind; /* enum outcome_kind */
    uint64_t part; /* RECORD_EFFECT: of the command that had an effect; else 0 */
};

static void codec_head(struct codec *codec, struct record_head *head)
{
    codec_number(codec, &head->version);
    codec_require(codec, head->version == RECORD_VERSION_FINAL || head->version == RECORD_VERSION_OTHER);
    codec_number(codec, &head->hash);
    codec_number(codec, &head->ended);
    codec_number(codec, &head->postponed_count);
    codec_number(codec, &head->script_steps);
    if (head->version < RECORD_VERSION_OTHER)
        return;
    codec_number(codec, &head->kind);
    codec_number(codec, &head->part);
    codec_require(codec, head->kind > RECORD_FINAL && head->kind < RECORD_KIND_COUNT);
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

/* Returns: 0, and the head of a record, and its size; 1: the request has no record; fatal codes. */
static int read_head(struct core *core, const struct write_request *request, struct record_head *ret_head,
                     size_t *ret_bytes)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct record_head head = {0};
    struct store_value value;
    core__work(core, WORK_READ);
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, record_key(&key, request), &value);
    buf_deinit(&key);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 1;
    struct codec codec = codec_from(value.bytes, NULL);
    codec_head(&codec, &head);
    *ret_bytes = value.bytes.len;
    store_value_release(&value);
    if (codec.bad)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_head = head;
    return 0;
}

/*
 * Finds whether the request had an effect when a command of it had none, which ended at `ended`. The commands of a
 * request run in the order of its items. So if the one that had an effect is before this one in the request and ended
 * later, that was when the request was sent again as a whole, and this one has not run since then.
 * Returns: 0, it had; REQUEST_OUTCOME_NONE; fatal codes.
 */
static int find_effect(struct core *core, const struct write_request *request, tl_ts ended)
{
    struct write_request other = {.id = request->id, .part = EFFECT_PART};
    struct record_head head;
    int r = read_head(core, &other, &head, &(size_t){0});
    if (r != 0)
        return r < 0 ? tl_trace(r) : REQUEST_OUTCOME_NONE;
    if (head.kind != RECORD_EFFECT || head.ended < core->purge_horizons.outcomes)
        return REQUEST_OUTCOME_NONE;
    return head.part > request->part || head.ended < ended ? 0 : REQUEST_OUTCOME_NONE;
}

int request_outcome__exists(struct core *core, const struct write_request *request)
{
    REQUIRE(core->open && request->id.len > 0);
    struct record_head head;
    size_t bytes;
    int r = read_head(core, request, &head, &bytes);
    if (r != 0)
        return r < 0 ? tl_trace(r) : REQUEST_OUTCOME_NONE;
    count_record(core, 0, bytes);
    if (head.ended < core->purge_horizons.outcomes)
        return REQUEST_OUTCOME_NONE;
    return head.kind == RECORD_NO_EFFECT ? find_effect(core, request, head.ended) : 0;
}

static int read_record(struct core *core, struct slice bytes, struct command *command)
{
    struct codec codec = codec_from(arena_copy(&command->arena, bytes), &command->arena);
    struct record_head head = {0};
    uint64_t count;
    codec.version = RESULT_VERSION;
    codec_head(&codec, &head);
    codec_number(&codec, &count);
    if (codec.bad)
        return tl_trace(TL_ERR_CORRUPT);
    if (head.ended < core->purge_horizons.outcomes)
        return REQUEST_OUTCOME_NONE;
    if (head.kind == RECORD_NO_EFFECT) {
        int r = find_effect(core, &command->write.request, head.ended);
        if (r != 0)
            return r;
    }
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

/* Whether a write has run as a whole, and may have had an effect. */
static bool has_run(const struct command *command)
{
    return command->problem.type == PROBLEM_NONE && !command->write.rolled_back;
}

static bool has_effect(const struct write_command *write)
{
    for (size_t i = 0; i < write->item_count; i++)
        if (!write->results[i].postponed && write->results[i].outcome != WRITE_FAILED)
            return true;
    return false;
}

/*
 * An outcome is final if the write had an effect, or divided its request: the items that it postponed may be done
 * by the next command, and a repetition must be divided in the same way to find that.
 */
bool request_outcome__is_final(const struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE);
    const struct write_command *write = &command->write;
    return write->request.id.len > 0 && has_run(command) && (write->postponed_count > 0 || has_effect(write));
}

/* Whether the request of a write has other commands. By itself the first one of a version before 22 does not say so. */
static bool is_divided(const struct core *core, const struct write_command *write)
{
    return core->command_version >= COMMAND_SINCE_DIVIDED_OUTCOMES &&
           (write->request.divided || write->request.part > 0 || write->postponed_count > 0);
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

/* Puts a record, and the key by which it is purged. Its results are those of `write`; NULL: it has none. */
static void put_record(struct core *core, const struct write_request *request, struct record_head *head,
                       const struct write_command *write)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    struct codec codec = codec_to(&value, RESULT_VERSION);
    uint64_t count = write == NULL ? 0 : write->item_count;
    codec_head(&codec, head);
    codec_number(&codec, &count);
    for (size_t i = 0; i < count; i++)
        put_result(&codec, &write->items[i], write->results[i]);
    count_record(core, (size_t)count, value.len);
    store_batch_put(core->batch, SPACE_SYSTEM, record_key(&key, request), buf_as_slice(&value));
    store_batch_put(core->batch, SPACE_SYSTEM, end_key(&key, core->ts, request), SLICE_LIT(""));
    buf_deinit(&key);
    buf_deinit(&value);
}

/* Puts which command of the request had an effect. */
static void put_effect(struct core *core, const struct write_request *request)
{
    struct write_request other = {.id = request->id, .part = EFFECT_PART};
    struct record_head head = {
        .version = RECORD_VERSION_OTHER, .ended = core->ts, .kind = RECORD_EFFECT, .part = request->part};
    put_record(core, &other, &head, NULL);
}

void request_outcome__put(struct core *core, const struct command *command)
{
    REQUIRE(command->type == COMMAND_WRITE && (command->write.item_count == 0 || command->write.results != NULL));
    const struct write_command *write = &command->write;
    bool final = request_outcome__is_final(command), divided = is_divided(core, write);
    REQUIRE(core->open);
    if (write->request.id.len == 0 || !has_run(command) || (!final && !divided))
        return;
    struct record_head head = {.version = final ? RECORD_VERSION_FINAL : RECORD_VERSION_OTHER,
                               .hash = write->request.hash,
                               .ended = core->ts,
                               .postponed_count = write->postponed_count,
                               .script_steps = write->script_steps,
                               .kind = final ? RECORD_FINAL : RECORD_NO_EFFECT};
    put_record(core, &write->request, &head, write);
    if (divided && has_effect(write))
        put_effect(core, &write->request);
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
