/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: threads that send one batch after another, each repeated until its outcome is known; see
 * replica.h, invariants 1, 4 and 5.
 *
 * The caller fills a batch for each lane; the lane takes a full one when it has sent the previous
 * one. A mark follows all documents put before it, in all lanes, and is passed when the lanes have
 * sent those.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/siphash.h"
#include "base/thread.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

enum {
    MARKS_MAX = 1024, /* not passed yet; a further one replaces the newest */
    BATCH_ITEMS_MAX = 2000,
    REFUSED_ID_BYTES = 480, /* of a record's id without the hash, of 512 that Elasticsearch takes */
};

#define ANSWER_US (120 * TL_SECOND)

/* Of a batch: its lines from `at` on. */
struct item {
    size_t at;
    size_t len;
    size_t key; /* in `keys` */
    bool gone;
};

struct batch {
    struct buf lines;
    struct map indices; /* the names of those in the target */
    struct buf keys; /* of the documents, in the source: parts with their lengths before them */
    struct item *items;
    size_t count;
    size_t capacity;
};

struct mark {
    tl_ts covered;
    uint64_t number; /* of batches given to lanes: all below it are to be done */
};

struct lane {
    struct lanes *lanes;
    struct thread thread;
    struct client client;
    struct batch filling; /* the caller's */
    struct batch sending; /* the thread's, while `busy` */
    bool busy;
    bool unrecorded; /* a refused document has no record, and the lanes have failed */
    uint64_t number; /* of the batch being sent */
};

struct lanes {
    const struct replica_options *options;
    const struct target *target;
    struct guard *guard;
    struct suspects *suspects;
    struct identities *identities;
    struct lane *lane;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ending;
    int state;
    uint64_t given; /* batches */
    struct mark marks[MARKS_MAX];
    size_t mark_count;
    struct lanes_counts counts;
};

/* --- One batch ---------------------------------------------------------------------------------------------------- */

static void batch_clear(struct batch *batch)
{
    buf_clear(&batch->lines);
    buf_clear(&batch->keys);
    map_deinit(&batch->indices);
    batch->indices = MAP_INIT;
    batch->count = 0;
}

static void batch_deinit(struct batch *batch)
{
    buf_deinit(&batch->lines);
    buf_deinit(&batch->keys);
    map_deinit(&batch->indices);
    mem_free(batch->items);
}

/* Source in one line: between the values of JSON a line's end is white space. */
static void put_source(struct buf *to, struct slice source)
{
    size_t begin = to->len;
    buf_slice(to, source);
    for (size_t i = begin; i < to->len; i++)
        if (to->data[i] == '\n' || to->data[i] == '\r')
            buf_overwrite(to, i, " ", 1);
    buf_byte(to, '\n');
}

static void put_key_part(struct buf *to, struct slice part)
{
    size_t len = part.data == NULL ? SIZE_MAX : part.len;
    buf_append(to, (const char *)&len, sizeof len);
    buf_slice(to, part);
}

static struct slice take_key_part(const char **at)
{
    size_t len;
    memcpy(&len, *at, sizeof len);
    *at += sizeof len;
    if (len == SIZE_MAX)
        return SLICE_NONE;
    struct slice part = slice_make(*at, len);
    *at += len;
    return part;
}

static void batch_add(struct batch *batch, const struct lanes_document *document)
{
    struct buf *lines = &batch->lines;
    if (batch->count == batch->capacity) {
        batch->capacity = batch->capacity == 0 ? 64 : 2 * batch->capacity;
        batch->items = mem_realloc(batch->items, batch->capacity * sizeof *batch->items);
    }
    if (map_get(&batch->indices, document->index) == NULL)
        (void)map_put(&batch->indices, document->index, batch);
    struct item *item = &batch->items[batch->count++];
    *item = (struct item){.at = lines->len, .key = batch->keys.len, .gone = document->source.data == NULL};
    buf_printf(lines, "{\"%s\":{\"_index\":", item->gone ? "delete" : "index");
    buf_json_string(lines, document->index);
    if (document->type != NULL) {
        buf_lit(lines, ",\"_type\":");
        buf_json_string(lines, slice_from(document->type));
    }
    buf_lit(lines, ",\"_id\":");
    buf_json_string(lines, document->id);
    if (document->routing.data != NULL) {
        buf_lit(lines, ",\"routing\":");
        buf_json_string(lines, document->routing);
    }
    /*
     * The version before may be as new as one below the document's: so that one suffices where a
     * place is vacated.
     */
    buf_printf(lines, ",\"version\":%llu,\"version_type\":\"external%s\"}}\n",
               (unsigned long long)document->version - document->vacates, document->vacates ? "_gte" : "");
    if (!item->gone)
        put_source(lines, document->source);
    item->len = lines->len - item->at;
    put_key_part(&batch->keys, document->key->index);
    put_key_part(&batch->keys, document->key->type);
    put_key_part(&batch->keys, document->key->id);
    put_key_part(&batch->keys, document->routing);
}

/* --- Outcomes ----------------------------------------------------------------------------------------------------- */

enum outcome { DONE, AGAIN, REFUSED, FORBIDDEN };

static yyjson_val *result_of(yyjson_val *item)
{
    return json_value_of(json_first_of(item, yyjson_obj_size(item)));
}

static struct slice id_of(const struct lane *lane, const struct item *item)
{
    const char *at = lane->sending.keys.data + item->key;
    (void)take_key_part(&at);
    (void)take_key_part(&at);
    return take_key_part(&at);
}

/* Makes items whose outcome is unknown suspects; see replica.h, invariant 6. */
static void suspect_items(struct lane *lane, const struct item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = lane->sending.keys.data + items[i].key;
        struct replica_key key;
        key.index = take_key_part(&at);
        key.type = take_key_part(&at);
        key.id = take_key_part(&at);
        key.routing = take_key_part(&at);
        suspects_add(lane->lanes->suspects, &key);
    }
}

/*
 * Whether a status leaves the outcome of a request open: no answer, or a proxy's for lack of the
 * server's.
 */
static bool is_unknown(long status)
{
    return status == 0 || status == 502 || status == 503 || status == 504;
}

/*
 * An index that is missing was there when the batch was begun: send_batch() finds that out. One that
 * is closed was closed by another program: the copy has sent all documents before it closes one.
 */
static enum outcome outcome_of(const struct item *item, yyjson_val *result)
{
    long status = (long)yyjson_get_int(yyjson_obj_get(result, "status"));
    yyjson_val *error = yyjson_obj_get(result, "error");
    if ((status >= 200 && status < 300) || status == 409 || (status == 404 && item->gone && error == NULL))
        return DONE;
    yyjson_val *type = yyjson_obj_get(error, "type");
    if (yyjson_equals_str(type, "index_not_found_exception") || yyjson_equals_str(type, "index_closed_exception"))
        return AGAIN;
    if (replica_is_passing(status) || replica_is_blocked(error))
        return AGAIN;
    return replica_is_forbidden(status) ? FORBIDDEN : REFUSED;
}

/*
 * Appends the id of a record: NAME:INDEX:ID, so copies with different names do not overwrite each
 * other's records. NAME is escaped as in a URL, INDEX has no colon. One that is too long for
 * Elasticsearch ends with a hash of all of it in place of its end. Earlier versions wrote INDEX:ID,
 * which stays.
 */
static void write_record_id(const char *name, const char *index, struct slice id, struct buf *to)
{
    static const struct siphash_key key = {0}; /* the same in all programs */
    client_escape(to, slice_from(name));
    buf_printf(to, ":%s:", index);
    buf_slice(to, id);
    if (to->len <= REFUSED_ID_BYTES)
        return;
    uint64_t hash = siphash(&key, buf_as_slice(to));
    buf_truncate(to, slice_utf8_valid_prefix(slice_make(to->data, REFUSED_ID_BYTES)));
    buf_printf(to, "~%016llx", (unsigned long long)hash);
}

static bool is_ending(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    bool ending = lanes->ending || lanes->state != 0;
    pthread_mutex_unlock(&lanes->lock);
    return ending;
}

static void fail_lanes(struct lanes *lanes, int state)
{
    pthread_mutex_lock(&lanes->lock);
    if (lanes->state == 0)
        lanes->state = state;
    pthread_cond_broadcast(&lanes->changed);
    pthread_mutex_unlock(&lanes->lock);
}

/* Whether a lane repeats a request; otherwise the lanes have failed, or are ending. */
static bool lane_goes_on(void *context)
{
    struct lanes *lanes = ((struct lane *)context)->lanes;
    if (replica_stopping())
        fail_lanes(lanes, REPLICA_STOPPED);
    else if (!guard_await(lanes->guard))
        fail_lanes(lanes, REPLICA_LOST);
    return !is_ending(lanes);
}

/*
 * Puts a record of a refused document, and repeats it while the target takes nothing. Returns:
 * whether it has answered; otherwise the lanes have failed, and the document is sent again.
 */
static bool put_record(struct lane *lane, const char *path, struct slice body)
{
    long status = replica_ask_while(&lane->client, "target", "PUT", path, body, lane_goes_on, lane);
    if (status != 0 && status != 200 && status != 201)
        replica_print("the target does not keep the record of it: %s", client_error(&lane->client, status));
    return status != 0;
}

/* Records in the target a document that it permanently refuses, and the reason. */
static void put_aside(struct lane *lane, const struct item *item, const char *error)
{
    const struct target *target = lane->lanes->target;
    struct slice action = slice_make(lane->sending.lines.data + item->at, item->len), id = id_of(lane, item);
    yyjson_doc *doc = yyjson_read(action.data, slice_find_byte(action, '\n'), 0);
    const char *index =
        yyjson_get_str(yyjson_obj_get(result_of(yyjson_doc_get_root(doc)), "_index")); /* in the target */
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED), key = BUF_INIT(BUF_UNLIMITED),
                                      path = BUF_INIT(BUF_UNLIMITED);
    write_record_id(lane->lanes->options->name, index == NULL ? "" : index, id, &key);
    const char *type = target_type(target, "_doc");
    buf_printf(&path, "/.tidelock-replicate-refused/%s/", type == NULL ? "_doc" : type);
    client_escape(&path, buf_as_slice(&key));
    buf_byte(&path, '\0');
    buf_lit(&body, "{\"name\":");
    buf_json_string(&body, slice_from(lane->lanes->options->name));
    buf_lit(&body, ",\"index\":");
    buf_json_string(&body, slice_from(index == NULL ? "" : index));
    buf_lit(&body, ",\"id\":");
    buf_json_string(&body, id);
    buf_printf(&body, ",\"time\":%llu,\"error\":", (unsigned long long)clock_wall_us());
    buf_json_string(&body, slice_from(error == NULL ? "" : error)); /* as text: its fields are another each time */
    buf_byte(&body, '}');
    replica_print("the target refuses %s/%s: %s", escape_terminal(index == NULL ? "" : index),
                  escape_terminal_slice(id), escape_terminal(error == NULL ? "" : error));
    yyjson_doc_free(doc);
    lane->unrecorded = !put_record(lane, path.data, buf_as_slice(&body)) || lane->unrecorded;
}

/* Whether the answer is of these documents, each of them; see replica.h, invariant 8. */
static bool is_answered(const struct lane *lane, size_t sent)
{
    yyjson_val *items = yyjson_obj_get(client_json(&lane->client), "items"), *item;
    size_t i, count;
    if (yyjson_arr_size(items) != sent)
        return false;
    json_arr_foreach (items, i, count, item) {
        yyjson_val *result = result_of(item), *id = yyjson_obj_get(result, "_id");
        if (!yyjson_is_int(yyjson_obj_get(result, "status")) || !yyjson_is_str(id) ||
            !slice_equal(slice_make(yyjson_get_str(id), yyjson_get_len(id)), id_of(lane, &lane->sending.items[i])))
            return false;
    }
    return true;
}

/*
 * Assumes: is_answered(). Whether the target denies a document for lack of a privilege, which is
 * no property of the document: it is to be sent when the user of --to has the privilege again.
 */
static bool is_denied(const struct lane *lane)
{
    size_t i, count;
    yyjson_val *item;
    json_arr_foreach (yyjson_obj_get(client_json(&lane->client), "items"), i, count, item) {
        yyjson_val *result = result_of(item);
        if (outcome_of(&lane->sending.items[i], result) != FORBIDDEN)
            continue;
        const char *index = yyjson_get_str(yyjson_obj_get(result, "_index"));
        const char *reason = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(result, "error"), "reason"));
        replica_print("the target does not let the copy write to %s: %s" FORBIDDEN_ADVICE,
                      escape_terminal(index == NULL ? "" : index),
                      escape_terminal(reason == NULL ? "it gives no reason" : reason));
        return true;
    }
    return false;
}

/*
 * Assumes: is_answered(), not is_denied(). Keeps in the batch the items to be sent again. Returns: the numbers of
 * documents that the target has permanently refused, and of which it has kept its own version.
 */
static struct lanes_counts take_reply(struct lane *lane)
{
    struct batch *batch = &lane->sending;
    yyjson_doc *reply = tl_steal(lane->client.json); /* the refused ones have requests of their own */
    struct lanes_counts taken = {0};
    size_t i, count, left = 0;
    yyjson_val *value;
    json_arr_foreach (yyjson_obj_get(yyjson_doc_get_root(reply), "items"), i, count, value) {
        struct item item = batch->items[i];
        enum outcome outcome = outcome_of(&item, result_of(value));
        long status = (long)yyjson_get_int(yyjson_obj_get(result_of(value), "status"));
        if (outcome == AGAIN && is_unknown(status))
            suspect_items(lane, &item, 1);
        if (outcome == AGAIN)
            batch->items[left++] = item;
        taken.kept += status == 409;
        taken.refused += outcome == REFUSED;
        if (outcome == REFUSED) {
            char *error = yyjson_val_write(yyjson_obj_get(result_of(value), "error"), 0, NULL);
            put_aside(lane, &item, error);
            free(error);
        }
    }
    batch->count = left;
    yyjson_doc_free(reply);
    return taken;
}

/* --- Sending ------------------------------------------------------------------------------------------------------ */

/* The first `count` items that are left. */
static long send_some(struct lane *lane, size_t count)
{
    static const char path[] =
        "/_bulk?filter_path=items.*._index,items.*._id,items.*.status,items.*.error.type,items.*.error.reason,"
        "items.*.error.caused_by,error";
    struct batch *batch = &lane->sending;
    struct item first = batch->items[0], last = batch->items[count - 1];
    bool whole = last.at + last.len - first.at == batch->lines.len;
    if (whole)
        return client_request(&lane->client, "POST", path, buf_as_slice(&batch->lines), ANSWER_US);
    tl_cleanup(buf_deinit) struct buf some = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < count; i++)
        buf_append(&some, batch->lines.data + batch->items[i].at, batch->items[i].len);
    return client_request(&lane->client, "POST", path, buf_as_slice(&some), ANSWER_US);
}

/*
 * Whether a request is refused as a whole for what some of it is: it is too large, or one document
 * cannot be at all.
 */
static bool is_for_some(const struct lane *lane, long status)
{
    return status == 413 || (status == 400 && (client_has_error(&lane->client, "action_request_validation_exception") ||
                                               client_has_error(&lane->client, "illegal_argument_exception")));
}

/* Records the first remaining item as permanently refused. */
static void refuse_first(struct lane *lane, long status)
{
    struct batch *batch = &lane->sending;
    char *error = mem_strdup(client_error(&lane->client, status), strlen(client_error(&lane->client, status)));
    put_aside(lane, &batch->items[0], error);
    mem_free(error);
    batch->count--;
    memmove(batch->items, batch->items + 1, batch->count * sizeof *batch->items);
}

/* Returns: whether the target has the indices of the batch; otherwise the lanes have failed. */
static bool has_indices(struct lane *lane)
{
    int r = identities_check(lane->lanes->identities, &lane->client, &lane->sending.indices);
    if (r != 0)
        fail_lanes(lane->lanes, r);
    return r == 0;
}

/*
 * Sends a batch until the outcome of all that is in it is known. Returns: whether it is, and the
 * target has the batch in the copy's indices.
 */
static bool send_batch(struct lane *lane)
{
    struct lanes *lanes = lane->lanes;
    size_t most = lane->sending.count;
    for (unsigned tries = 0; lane->sending.count > 0 && !is_ending(lanes);) {
        if (!guard_await(lanes->guard)) {
            fail_lanes(lanes, REPLICA_LOST);
            return false;
        }
        if (!has_indices(lane))
            return false;
        size_t before = lane->sending.count, count = before < most ? before : most;
        struct lanes_counts taken = {0};
        long status = send_some(lane, count);
        bool answered = status == 200 && is_answered(lane, count);
        if (lane->client.attempts > (is_unknown(status) || (status == 200 && !answered) ? 0 : 1))
            suspect_items(lane, lane->sending.items, count);
        if (answered && is_denied(lane)) {
            fail_lanes(lanes, REPLICA_FAILED);
            return false;
        } else if (answered) {
            lane->sending.count = count;
            struct item *rest = lane->sending.items + count;
            taken = take_reply(lane);
            memmove(lane->sending.items + lane->sending.count, rest, (before - count) * sizeof *rest);
            lane->sending.count += before - count;
        } else if (is_for_some(lane, status)) {
            most = count / 2 > 0 ? count / 2 : 1;
            if (count > 1)
                continue;
            refuse_first(lane, status);
            taken.refused = 1;
        } else if (status != 200 && !replica_is_passing(status) && !replica_is_page(&lane->client, status) &&
                   !replica_is_blocked(yyjson_obj_get(client_json(&lane->client), "error"))) {
            replica_print("the target refuses a batch: %s%s", client_error(&lane->client, status),
                          replica_is_forbidden(status) ? FORBIDDEN_ADVICE : "");
            fail_lanes(lanes, REPLICA_FAILED);
            return false;
        }
        size_t sent = before - lane->sending.count;
        pthread_mutex_lock(&lanes->lock);
        lanes->counts.sent += sent - taken.refused;
        lanes->counts.kept += taken.kept;
        lanes->counts.refused += taken.refused;
        pthread_mutex_unlock(&lanes->lock);
        tries = sent > 0 ? 0 : tries + 1;
        if (tries == 1)
            replica_print("the target does not take documents now (%s); trying again",
                          answered        ? "an index is closed or read-only, or it is overloaded"
                          : status == 200 ? "its response does not match the request"
                                          : client_error(&lane->client, status));
        if (tries > 0 && replica_stopping())
            fail_lanes(lanes, REPLICA_STOPPED);
        else if (tries > 0)
            replica_pause(tries);
    }
    return lane->sending.count == 0 && !lane->unrecorded && has_indices(lane);
}

static void run_lane(void *context)
{
    struct lane *lane = context;
    struct lanes *lanes = lane->lanes;
    pthread_mutex_lock(&lanes->lock);
    while (!lanes->ending) {
        if (!lane->busy) {
            pthread_cond_wait(&lanes->changed, &lanes->lock);
            continue;
        }
        pthread_mutex_unlock(&lanes->lock);
        bool sent = send_batch(lane);
        pthread_mutex_lock(&lanes->lock);
        if (!sent) /* nothing may follow items that were not sent */
            break;
        batch_clear(&lane->sending);
        lane->busy = false;
        pthread_cond_broadcast(&lanes->changed);
    }
    pthread_mutex_unlock(&lanes->lock);
}

static void start_threads(struct lanes *lanes)
{
    for (unsigned i = 0; i < lanes->options->lanes; i++)
        if (thread_start(&lanes->lane[i].thread, "lane", run_lane, &lanes->lane[i]) != 0)
            abort();
}

static void end_threads(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    lanes->ending = true;
    pthread_cond_broadcast(&lanes->changed);
    pthread_mutex_unlock(&lanes->lock);
    for (unsigned i = 0; i < lanes->options->lanes; i++)
        thread_join(&lanes->lane[i].thread);
}

struct lanes *lanes_new(const struct replica_options *options, const struct target *target, struct guard *guard,
                        struct suspects *suspects, struct identities *identities)
{
    struct lanes *lanes = mem_zalloc(sizeof *lanes);
    *lanes = (struct lanes){
        .options = options, .target = target, .guard = guard, .suspects = suspects, .identities = identities};
    mutex_init(&lanes->lock);
    pthread_cond_init(&lanes->changed, NULL);
    lanes->lane = mem_zalloc(options->lanes * sizeof *lanes->lane);
    for (unsigned i = 0; i < options->lanes; i++) {
        struct lane *lane = &lanes->lane[i];
        lane->lanes = lanes;
        lane->filling.lines = lane->sending.lines = lane->filling.keys = lane->sending.keys = BUF_INIT(BUF_UNLIMITED);
        lane->filling.indices = lane->sending.indices = MAP_INIT;
        client_init(&lane->client, options->to);
        lane->client.gives_up = replica_gives_up;
        lane->client.body.max = REPLICA_ANSWER_BYTES;
    }
    start_threads(lanes);
    return lanes;
}

void lanes_restart(struct lanes *lanes)
{
    end_threads(lanes);
    for (unsigned i = 0; i < lanes->options->lanes; i++) {
        struct lane *lane = &lanes->lane[i];
        batch_clear(&lane->filling);
        batch_clear(&lane->sending);
        lane->busy = false;
    }
    lanes->mark_count = 0;
    lanes->state = 0;
    lanes->ending = false;
    start_threads(lanes);
}

void lanes_free(struct lanes *lanes)
{
    if (lanes == NULL)
        return;
    end_threads(lanes);
    for (unsigned i = 0; i < lanes->options->lanes; i++) {
        struct lane *lane = &lanes->lane[i];
        client_deinit(&lane->client);
        batch_deinit(&lane->filling);
        batch_deinit(&lane->sending);
    }
    pthread_mutex_destroy(&lanes->lock);
    pthread_cond_destroy(&lanes->changed);
    mem_free(lanes->lane);
    mem_free(lanes);
}

/* --- The caller's side -------------------------------------------------------------------------------------------- */

/* Hands the filled batch to its lane, after the lane has sent the previous one. */
static void give_batch(struct lane *lane)
{
    struct lanes *lanes = lane->lanes;
    pthread_mutex_lock(&lanes->lock);
    while (lane->busy && lanes->state == 0)
        pthread_cond_wait(&lanes->changed, &lanes->lock);
    if (lanes->state == 0) {
        struct batch sent = lane->sending;
        lane->sending = lane->filling;
        lane->filling = sent;
        lane->busy = true;
        lane->number = lanes->given++;
        pthread_cond_broadcast(&lanes->changed);
    }
    pthread_mutex_unlock(&lanes->lock);
    batch_clear(&lane->filling);
}

void lanes_put(struct lanes *lanes, const struct lanes_document *document)
{
    uint64_t hash = siphash_keyed(document->index) ^ siphash_keyed(document->id);
    struct lane *lane = &lanes->lane[hash % lanes->options->lanes];
    batch_add(&lane->filling, document);
    if (lane->filling.lines.len >= lanes->options->batch_bytes || lane->filling.count >= BATCH_ITEMS_MAX)
        give_batch(lane);
}

static void give_all(struct lanes *lanes)
{
    for (unsigned i = 0; i < lanes->options->lanes; i++)
        if (lanes->lane[i].filling.count > 0)
            give_batch(&lanes->lane[i]);
}

void lanes_mark(struct lanes *lanes, tl_ts covered)
{
    give_all(lanes);
    pthread_mutex_lock(&lanes->lock);
    if (lanes->mark_count == MARKS_MAX)
        lanes->mark_count--; /* the newest is passed together with this one */
    lanes->marks[lanes->mark_count++] = (struct mark){covered, lanes->given};
    pthread_mutex_unlock(&lanes->lock);
}

/* Requires: lock. Returns: the number of the oldest batch that is not done. */
static uint64_t oldest_batch(const struct lanes *lanes)
{
    REQUIRE(mutex_is_held(&lanes->lock));
    uint64_t number = lanes->given;
    for (unsigned i = 0; i < lanes->options->lanes; i++)
        if (lanes->lane[i].busy && lanes->lane[i].number < number)
            number = lanes->lane[i].number;
    return number;
}

tl_ts lanes_covered(struct lanes *lanes, tl_ts place)
{
    pthread_mutex_lock(&lanes->lock);
    uint64_t undone = oldest_batch(lanes);
    size_t passed = 0;
    while (passed < lanes->mark_count && lanes->marks[passed].number <= undone)
        place = lanes->marks[passed++].covered;
    memmove(lanes->marks, lanes->marks + passed, (lanes->mark_count - passed) * sizeof *lanes->marks);
    lanes->mark_count -= passed;
    pthread_mutex_unlock(&lanes->lock);
    return place;
}

int lanes_drain(struct lanes *lanes)
{
    give_all(lanes);
    pthread_mutex_lock(&lanes->lock);
    while (oldest_batch(lanes) < lanes->given && lanes->state == 0)
        pthread_cond_wait(&lanes->changed, &lanes->lock);
    int state = lanes->state;
    pthread_mutex_unlock(&lanes->lock);
    return state;
}

int lanes_state(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    int state = lanes->state;
    pthread_mutex_unlock(&lanes->lock);
    return state;
}

struct lanes_counts lanes_counts(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->lock);
    struct lanes_counts counts = lanes->counts;
    pthread_mutex_unlock(&lanes->lock);
    return counts;
}
