/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's metadata in etcd: genesis, checkpoints; and trimming; README.md, "Trimming". */
#include "base/check.h"
#include "base/clock.h"
#include "base/types.h"
#include "cmdlog/cmdlog_etcd.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"

enum { TIMEOUT_US = 5 * TL_SECOND /* of calls that have no `until` */ };

/*
 * A host's checkpoint key has its newest checkpoint, then the one before. Each is encoded as
 * position, log_bytes and length of the locator (8 bytes each, big-endian), then the locator.
 */

/* --- Requests ----------------------------------------------------------------------------------------------------- */

static int read_range(struct cmdlog_etcd *log, const struct etcd_range *range, uint64_t until, struct buf *reply)
{
    REQUIRE(range->key.len > 0);
    struct buf request = BUF_INIT(BUF_UNLIMITED);
    int status;
    grpc_frame_begin(&request);
    etcd_put_range(&request, range);
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_RANGE, buf_as_slice(&request), until, reply, &status);
    buf_deinit(&request);
    return r == TL_ERR_IO && status == GRPC_OUT_OF_RANGE ? CMDLOG_TRIMMED : r;
}

int metadata__read_head(struct cmdlog *base, uint64_t until, cmdlog_position *ret_position)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv = {0};
    cmdlog_position position = 0;
    int r = read_range(log,
                       &(struct etcd_range){
                           .key = log->logs, .end = log->logs_end, .keys_only = true, .newest_first = true, .limit = 1},
                       until, &reply);
    struct slice rest = buf_as_slice(&reply);
    if (r == 0 && (r = etcd_take_kv(&rest, &kv)) >= 0) {
        position = kv.modified;
        r = 0;
    }
    buf_deinit(&reply);
    if (r == 0) {
        pthread_mutex_lock(&log->lock);
        cmdlog_etcd__observe(log, position);
        pthread_mutex_unlock(&log->lock);
        *ret_position = position;
    }
    return r;
}

/* Appends the first key of a range to `key`. Returns: as cmdlog_etcd_find_foreign_key(). */
static int first_key(struct cmdlog_etcd *log, struct slice from, struct slice end, uint64_t until, struct buf *key)
{
    struct etcd_range first = {.key = from, .end = end, .keys_only = true, .serializable = true, .limit = 1};
    tl_cleanup(buf_deinit) struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    int r = read_range(log, &first, until, &reply);
    struct slice rest = buf_as_slice(&reply);
    if (r != 0 || (r = etcd_take_kv(&rest, &kv)) < 0)
        return r;
    if (r == 1)
        buf_slice(key, kv.key);
    return r == 1 ? 0 : CMDLOG_NOT_FOUND;
}

int cmdlog_etcd_find_foreign_key(struct cmdlog *base, uint64_t until, struct buf *key)
{
    static const struct slice lowest = {"", 1}; /* as an end: that of all keys */
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    tl_cleanup(buf_deinit) struct buf own = BUF_INIT(BUF_UNLIMITED), end = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&own, log->prefix);
    buf_byte(&own, '/');
    etcd_prefix_end(buf_as_slice(&own), &end);
    int r = first_key(log, lowest, buf_as_slice(&own), until, key);
    return r == CMDLOG_NOT_FOUND ? first_key(log, buf_as_slice(&end), lowest, until, key) : r;
}

/* --- Genesis ------------------------------------------------------------------------------------------------------ */

int metadata__read_genesis(struct cmdlog *base, uint64_t until, struct buf *bytes, cmdlog_position *ret_position)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    int r = read_range(log, &(struct etcd_range){.key = log->key_genesis}, until, &reply);
    struct slice rest = buf_as_slice(&reply);
    if (r == 0 && (r = etcd_take_kv(&rest, &kv)) == 1) {
        buf_slice(bytes, kv.value);
        *ret_position = kv.modified;
        r = 0;
    } else if (r == 0) {
        r = CMDLOG_NOT_FOUND;
    }
    buf_deinit(&reply);
    return r;
}

int metadata__create_genesis(struct cmdlog *base, struct slice bytes, uint64_t until)
{
    REQUIRE(bytes.len > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_txn_reply txn = {0};
    grpc_frame_begin(&request);
    etcd_compare_created(&request, log->key_genesis, 0);
    etcd_branch_put(&request, ETCD_THEN, log->key_genesis, bytes, 0);
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, NULL);
    if (r == 0)
        r = etcd_read_txn(buf_as_slice(&reply), &txn);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r != 0 ? r : txn.succeeded ? 0 : CMDLOG_EXISTS;
}

/* --- Checkpoints -------------------------------------------------------------------------------------------------- */

static void append_checkpoint(const struct cmdlog_checkpoint *checkpoint, struct buf *buf)
{
    REQUIRE(checkpoint->locator.len <= CMDLOG_LOCATOR_MAX); /* what a reader demands */
    buf_u64be(buf, checkpoint->position);
    buf_u64be(buf, checkpoint->log_bytes);
    buf_u64be(buf, checkpoint->locator.len);
    buf_slice(buf, checkpoint->locator);
}

/* Removes the first checkpoint from a key's value. Returns: 1; 0: no more; TL_ERR_CORRUPT. */
static int take_checkpoint(struct slice *value, struct cmdlog_checkpoint *ret)
{
    struct cmdlog_checkpoint found;
    uint64_t len;
    if (value->len == 0)
        return 0;
    if (!slice_take_u64be(value, &found.position) || !slice_take_u64be(value, &found.log_bytes) ||
        !slice_take_u64be(value, &len) || len > CMDLOG_LOCATOR_MAX || !slice_take(value, (size_t)len, &found.locator))
        return tl_trace(TL_ERR_CORRUPT);
    *ret = found;
    return 1;
}

/*
 * Reads this host's newest checkpoint (`back` 0) or the one before. Returns: 0, *ret pointing into
 * `reply`; CMDLOG_NOT_FOUND; CMDLOG_UNREACHABLE; fatal codes.
 */
static int read_own(struct cmdlog_etcd *log, unsigned back, struct buf *reply, struct cmdlog_checkpoint *ret)
{
    REQUIRE(back < 2);
    struct etcd_kv kv = {0};
    int r = read_range(log, &(struct etcd_range){.key = log->key_checkpoint}, clock_boot_us() + TIMEOUT_US, reply);
    struct slice rest = buf_as_slice(reply);
    if (r != 0 || (r = etcd_take_kv(&rest, &kv)) < 0)
        return r;
    r = r == 0 ? 0 : take_checkpoint(&kv.value, ret);
    if (r == 1 && back == 1)
        r = take_checkpoint(&kv.value, ret);
    return r < 0 ? r : r == 1 ? 0 : CMDLOG_NOT_FOUND;
}

int metadata__get_checkpoint(struct cmdlog *base, unsigned back, char *buffer, struct cmdlog_checkpoint *ret_checkpoint)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct cmdlog_checkpoint found;
    int r = read_own(log, back, &reply, &found);
    if (r == 0) {
        memcpy(buffer, found.locator.data, found.locator.len);
        found.locator.data = buffer;
        *ret_checkpoint = found;
    }
    buf_deinit(&reply);
    return r;
}

/*
 * This host's checkpoint key as of a read: a put that follows from it is a transaction on condition that the key is
 * still the same. So a put that etcd executes late neither replaces a newer checkpoint nor restores a deleted key.
 */
struct own_key {
    uint64_t created; /* 0: it does not exist */
    uint64_t version;
    struct cmdlog_checkpoint newest; /* if it exists */
    struct slice second;             /* the second newest, encoded; empty: none */
};

static int read_key(struct cmdlog_etcd *log, uint64_t until, struct buf *reply, struct own_key *ret)
{
    struct etcd_kv kv = {0};
    int r = read_range(log, &(struct etcd_range){.key = log->key_checkpoint}, until, reply);
    struct slice rest = buf_as_slice(reply);
    *ret = (struct own_key){0};
    if (r != 0 || (r = etcd_take_kv(&rest, &kv)) <= 0)
        return r;
    ret->created = kv.created;
    ret->version = kv.version;
    r = take_checkpoint(&kv.value, &ret->newest);
    ret->second = kv.value;
    return r == 1 ? 0 : r == 0 ? tl_trace(TL_ERR_CORRUPT) : r;
}

/*
 * Puts this host's checkpoint key if it is as it was read. A key that does not exist is created in the life `life`
 * only; 0: in none. Returns: 0; CMDLOG_BUSY: it is not, or that life has ended; CMDLOG_UNREACHABLE; fatal codes.
 */
static int put_key(struct cmdlog_etcd *log, const struct own_key *key, struct slice value, uint64_t life,
                   uint64_t until)
{
    REQUIRE(value.len > 0);
    tl_cleanup(buf_deinit) struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_txn_reply txn = {0};
    int status;
    grpc_frame_begin(&request);
    etcd_compare_created(&request, log->key_checkpoint, key->created);
    if (key->created != 0)
        etcd_compare_version(&request, log->key_checkpoint, key->version);
    else if (life != 0)
        etcd_compare_created(&request, log->key_host, life);
    etcd_branch_put(&request, ETCD_THEN, log->key_checkpoint, value, 0);
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, &status);
    if (r == TL_ERR_IO && status == GRPC_RESOURCE_EXHAUSTED)
        return TL_ERR_NO_SPACE;
    if (r == 0)
        r = etcd_read_txn(buf_as_slice(&reply), &txn);
    return r != 0 ? r : txn.succeeded ? 0 : CMDLOG_BUSY;
}

static bool is_same(const struct cmdlog_checkpoint *a, const struct cmdlog_checkpoint *b)
{
    return a->position == b->position && a->log_bytes == b->log_bytes && slice_equal(a->locator, b->locator);
}

static int try_put_checkpoint(struct cmdlog_etcd *log, const struct cmdlog_checkpoint *checkpoint, uint64_t until)
{
    tl_cleanup(buf_deinit) struct buf reply = BUF_INIT(BUF_UNLIMITED), value = BUF_INIT(BUF_UNLIMITED);
    struct own_key key;
    pthread_mutex_lock(&log->lock);
    uint64_t life = log->life;
    bool was_known = log->was_known;
    pthread_mutex_unlock(&log->lock);
    int r = read_key(log, until, &reply, &key);
    if (r != 0)
        return r;
    if (key.created != 0 && (key.newest.position > checkpoint->position || is_same(&key.newest, checkpoint)))
        return 0;
    if (key.created == 0 && was_known && life == 0)
        return CMDLOG_FENCED;
    append_checkpoint(checkpoint, &value);
    if (key.created != 0 && key.newest.position != checkpoint->position)
        append_checkpoint(&key.newest, &value);
    else
        buf_slice(&value, key.second); /* one at the newest's position replaces only that */
    r = put_key(log, &key, buf_as_slice(&value), was_known ? life : 0, until);
    return r == CMDLOG_BUSY && key.created == 0 && was_known ? CMDLOG_FENCED : r;
}

int metadata__put_checkpoint(struct cmdlog *base, const struct cmdlog_checkpoint *checkpoint)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    uint64_t until = clock_boot_us() + TIMEOUT_US; /* of all attempts: the caller has other work, with limits */
    int r;
    while ((r = try_put_checkpoint(log, checkpoint, until)) == CMDLOG_BUSY && clock_boot_us() < until)
        continue;
    if (r == 0) {
        pthread_mutex_lock(&log->lock);
        log->was_known = true;
        pthread_mutex_unlock(&log->lock);
    }
    return r == CMDLOG_BUSY ? CMDLOG_UNREACHABLE : r;
}

int metadata__list_checkpoints(struct cmdlog *base, uint64_t until, struct cmdlog_known_hosts **ret_hosts)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    size_t count = 0;
    int r = read_range(log, &(struct etcd_range){.key = log->checkpoints, .end = log->checkpoints_end}, until, &reply);
    struct slice rest = buf_as_slice(&reply);
    while (r == 0 && (r = etcd_take_kv(&rest, &kv)) == 1) {
        count++;
        r = 0;
    }
    if (r != 0) {
        buf_deinit(&reply);
        return r;
    }
    struct cmdlog_known_hosts *hosts = mem_zalloc(sizeof *hosts + count * sizeof hosts->hosts[0] + reply.len);
    char *tail = (char *)&hosts->hosts[count];
    rest = buf_as_slice(&reply);
    if (reply.len > 0)
        rest.data = memcpy(tail, reply.data, reply.len);
    while (r == 0 && hosts->count < count && etcd_take_kv(&rest, &kv) == 1) {
        struct cmdlog_known_host *host = &hosts->hosts[hosts->count++];
        host->name = slice_from_offset(kv.key, log->checkpoints.len);
        r = take_checkpoint(&kv.value, &host->newest) == 1 ? 0 : tl_trace(TL_ERR_CORRUPT);
    }
    buf_deinit(&reply);
    if (r == 0)
        *ret_hosts = hosts;
    else
        mem_free(hosts);
    return r;
}

/*
 * One transaction: if the host is no member, its checkpoints are deleted. A caller's list of members may be older
 * than a life that has just begun.
 */
int metadata__forget_host(struct cmdlog *base, struct slice name, uint64_t until)
{
    REQUIRE(name.len > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    tl_cleanup(buf_deinit) struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf host = BUF_INIT(BUF_UNLIMITED), checkpoint = BUF_INIT(BUF_UNLIMITED);
    struct etcd_txn_reply txn = {0};
    cmdlog_etcd__key(&host, log, "host", name);
    cmdlog_etcd__key(&checkpoint, log, "checkpoint", name);
    grpc_frame_begin(&request);
    etcd_compare_created(&request, buf_as_slice(&host), 0);
    etcd_branch_delete(&request, ETCD_THEN, buf_as_slice(&checkpoint));
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, NULL);
    if (r == 0)
        r = etcd_read_txn(buf_as_slice(&reply), &txn);
    return r != 0 ? r : txn.succeeded ? 0 : CMDLOG_EXISTS;
}

/* --- Trimming ----------------------------------------------------------------------------------------------------- */

/*
 * Finds whether a put that is a part of an entry will never be continued: it is still the newest of
 * its key, and its life has ended.
 */
static int is_abandoned(struct cmdlog_etcd *log, const struct etcd_kv *kv, const struct envelope *envelope,
                        uint64_t until, bool *ret_left)
{
    REQUIRE(envelope->part < envelope->parts);
    struct buf reply = BUF_INIT(BUF_UNLIMITED), key = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv now = {0}, host = {0};
    cmdlog_etcd__key(&key, log, "host", slice_from_offset(kv->key, log->logs.len));
    int r = read_range(log, &(struct etcd_range){.key = buf_as_slice(&key), .keys_only = true}, until, &reply);
    struct slice rest = buf_as_slice(&reply);
    if (r == 0 && (r = etcd_take_kv(&rest, &host)) >= 0) {
        buf_clear(&reply);
        r = read_range(log, &(struct etcd_range){.key = kv->key, .keys_only = true}, until, &reply);
        rest = buf_as_slice(&reply);
        if (r == 0)
            r = etcd_take_kv(&rest, &now);
    }
    *ret_left = r >= 0 && host.created != envelope->life && now.version == kv->version;
    buf_deinit(&reply);
    buf_deinit(&key);
    return r < 0 || r == CMDLOG_UNREACHABLE ? r : 0;
}

/* Lowers the bound below the first part of an entry whose last part follows the bound. */
static int retain_parts(struct cmdlog_etcd *log, const struct etcd_kv *kv, uint64_t until, cmdlog_position *bound)
{
    struct envelope envelope;
    struct slice bytes;
    bool left;
    int r = envelope_read(kv->value, slice_from_offset(kv->key, log->logs.len), &envelope, &bytes);
    if (r < 0)
        return r;
    if (envelope.part == envelope.parts)
        return 0;
    r = is_abandoned(log, kv, &envelope, until, &left);
    if (r != 0 || left)
        return r;
    cmdlog_position first = kv->modified;
    for (uint32_t part = envelope.part; r == 0 && part > 1; part--) {
        struct buf reply = BUF_INIT(BUF_UNLIMITED);
        struct etcd_kv before = {0};
        r = follower__put_before(log, kv->key, first, until, &reply, &before);
        first = before.modified;
        buf_deinit(&reply);
    }
    if (r == 0 && first <= *bound)
        *bound = first - 1;
    return r;
}

static int retain_all_parts(struct cmdlog_etcd *log, uint64_t until, cmdlog_position *bound)
{
    REQUIRE(*bound > 0);
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    int r = read_range(log, &(struct etcd_range){.key = log->logs, .end = log->logs_end, .revision = *bound}, until,
                       &reply);
    struct slice rest = buf_as_slice(&reply);
    while (r == 0 && (r = etcd_take_kv(&rest, &kv)) == 1)
        r = retain_parts(log, &kv, until, bound);
    buf_deinit(&reply);
    return r;
}

static int compact_log(struct cmdlog_etcd *log, cmdlog_position up_to, uint64_t until)
{
    REQUIRE(up_to > 0);
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    int status;
    grpc_frame_begin(&request);
    etcd_put_compact(&request, up_to);
    grpc_frame_end(&request);
    int r =
        etcd_client_request(log->client, LANE_CONTROL, ETCD_COMPACT, buf_as_slice(&request), until, &reply, &status);
    buf_deinit(&request);
    buf_deinit(&reply);
    return r == TL_ERR_IO && status == GRPC_OUT_OF_RANGE ? 0 : r; /* it has been trimmed already */
}

static bool is_known(const struct cmdlog_known_hosts *known, struct slice name)
{
    for (size_t i = 0; i < known->count; i++)
        if (slice_equal(known->hosts[i].name, name))
            return true;
    return false;
}

/* Deletes the record of a halt if it is the one that was read, and its host is neither known nor a member. */
static int drop_halt(struct cmdlog_etcd *log, struct slice name, uint64_t revision, uint64_t until)
{
    tl_cleanup(buf_deinit) struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf host = BUF_INIT(BUF_UNLIMITED), checkpoint = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf halted = BUF_INIT(BUF_UNLIMITED), end = BUF_INIT(BUF_UNLIMITED);
    cmdlog_etcd__key(&host, log, "host", name);
    cmdlog_etcd__key(&checkpoint, log, "checkpoint", name);
    cmdlog_etcd__key(&halted, log, "halted", name);
    etcd_key_end(buf_as_slice(&halted), &end);
    grpc_frame_begin(&request);
    etcd_compare_created(&request, buf_as_slice(&host), 0);
    etcd_compare_created(&request, buf_as_slice(&checkpoint), 0);
    etcd_compare_unmodified(&request, buf_as_slice(&halted), buf_as_slice(&end), revision);
    etcd_branch_delete(&request, ETCD_THEN, buf_as_slice(&halted));
    grpc_frame_end(&request);
    return etcd_client_request(log->client, LANE_CONTROL, ETCD_TXN, buf_as_slice(&request), until, &reply, NULL);
}

/*
 * Deletes the records of halts of forgotten hosts, once the log is trimmed beyond them. An attempt to halt that etcd
 * executes after that concerns an entry before the record, so one that is trimmed, too: no host can apply or skip it.
 */
static int drop_halts(struct cmdlog_etcd *log, const struct cmdlog_known_hosts *known, cmdlog_position bound,
                      uint64_t until)
{
    REQUIRE(bound > 0);
    tl_cleanup(buf_deinit) struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    int r = read_range(log, &(struct etcd_range){.key = log->halted, .end = log->halted_end, .keys_only = true}, until,
                       &reply);
    struct slice rest = buf_as_slice(&reply);
    while (r == 0 && (r = etcd_take_kv(&rest, &kv)) == 1) {
        struct slice name = slice_from_offset(kv.key, log->halted.len);
        r = kv.modified > bound || is_known(known, name) ? 0 : drop_halt(log, name, kv.modified, until);
    }
    return r;
}

int metadata__trim(struct cmdlog *base, cmdlog_position before)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct cmdlog_known_hosts *known;
    uint64_t until = clock_boot_us() + 2 * TIMEOUT_US;
    pthread_mutex_lock(&log->lock);
    bool tight = membership__space(log).tight;
    pthread_mutex_unlock(&log->lock);
    int r = metadata__list_checkpoints(base, until, &known);
    if (r != 0)
        return r;
    cmdlog_position bound = cmdlog_trim_bound(known, log->catch_up, tight);
    if (before == 0 || bound > before - 1)
        bound = before == 0 ? 0 : before - 1;
    r = bound == 0 ? 0 : retain_all_parts(log, until, &bound);
    bool trims = r == 0 && bound > 0; /* else another host may have trimmed beyond it: CMDLOG_TRIMMED */
    if (trims)
        r = compact_log(log, bound, until);
    if (r == 0) {
        pthread_mutex_lock(&log->lock);
        log->oldest = bound + 1 > log->oldest ? bound + 1 : log->oldest;
        pthread_mutex_unlock(&log->lock);
    }
    if (trims && r == 0)
        r = drop_halts(log, known, bound, until);
    mem_free(known);
    return r == CMDLOG_TRIMMED ? 0 : r;
}
