/* SPDX-License-Identifier: Apache-2.0 */
/* Skipped entries, and hosts that have halted before one; README.md, "Skipping an entry". */
#include <inttypes.h>

#include "base/check.h"
#include "base/clock.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"

enum { DIGITS = 20 };

static void append_position(cmdlog_position position, struct buf *buf)
{
    buf_printf(buf, "%0*" PRIu64, DIGITS, position);
}

static int run_txn(struct cmdlog_etcd *log, struct buf *request, uint64_t until, struct buf *reply,
                   struct etcd_txn_reply *ret_txn)
{
    int status;
    grpc_frame_end(request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_TXN, buf_as_slice(request), until, reply, &status);
    if (r == TL_ERR_IO && status == GRPC_RESOURCE_EXHAUSTED)
        return TL_ERR_NO_SPACE;
    return r == 0 ? etcd_read_txn(buf_as_slice(reply), ret_txn) : r;
}

/* --- Halting ------------------------------------------------------------------------------------------------------ */

/*
 * A record of position 0: the host has resumed. It is put, not deleted, since an attempt to halt may be executed
 * late, even after the end of the process that made it: it puts nothing if the record was put meanwhile.
 */
static int put_resumed(struct cmdlog_etcd *log, struct slice digits, uint64_t until)
{
    REQUIRE(digits.len == DIGITS);
    tl_cleanup(buf_deinit) struct buf request = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_txn_reply txn;
    grpc_frame_begin(&request);
    etcd_branch_put(&request, ETCD_THEN, log->key_halted, digits, 0);
    return run_txn(log, &request, until, &reply, &txn);
}

/* Reads this host's record. Returns: 0 with the revision at which it was read; CMDLOG_EXISTS: it has `digits`. */
static int read_halt(struct cmdlog_etcd *log, struct slice digits, uint64_t until, uint64_t *ret_revision)
{
    tl_cleanup(buf_deinit) struct buf request = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_header header = {0};
    struct etcd_kv kv;
    grpc_frame_begin(&request);
    etcd_put_range(&request, &(struct etcd_range){.key = log->key_halted});
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_RANGE, buf_as_slice(&request), until, &reply, NULL);
    struct slice rest = buf_as_slice(&reply);
    if (r == 0)
        r = etcd_read_header(buf_as_slice(&reply), &header);
    if (r == 0)
        r = etcd_take_kv(&rest, &kv);
    *ret_revision = header.revision;
    return r == 1 && slice_equal(kv.value, digits) ? CMDLOG_EXISTS : r < 0 ? r : 0;
}

/* Returns: as cmdlog_halt(); CMDLOG_BUSY: the record has changed meanwhile. */
static int try_halt(struct cmdlog_etcd *log, struct slice digits, uint64_t until)
{
    REQUIRE(digits.len == DIGITS);
    tl_cleanup(buf_deinit) struct buf request = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf reply = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf end = BUF_INIT(BUF_UNLIMITED);
    struct etcd_txn_reply txn = {0};
    uint64_t revision;
    int r = read_halt(log, digits, until, &revision);
    if (r != 0)
        return r == CMDLOG_EXISTS ? 0 : r;
    etcd_key_end(log->key_halted, &end);
    grpc_frame_begin(&request);
    etcd_compare_unmodified(&request, log->key_halted, buf_as_slice(&end), revision);
    etcd_branch_put(&request, ETCD_THEN, log->key_halted, digits, 0);
    r = run_txn(log, &request, until, &reply, &txn);
    return r == 0 && !txn.succeeded ? CMDLOG_BUSY : r;
}

int skips__halt(struct cmdlog *base, cmdlog_position position, uint64_t until)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    tl_cleanup(buf_deinit) struct buf digits = BUF_INIT(BUF_UNLIMITED);
    append_position(position, &digits);
    if (position == 0)
        return put_resumed(log, buf_as_slice(&digits), until);
    int r;
    while ((r = try_halt(log, buf_as_slice(&digits), until)) == CMDLOG_BUSY)
        if (clock_boot_us() >= until)
            return CMDLOG_UNREACHABLE;
    return r;
}

/* --- Skipping ----------------------------------------------------------------------------------------------------- */

/* What an attempt to skip an entry has read, at one revision. Slices point into `reply`. */
struct reading {
    struct buf reply;
    uint64_t revision;
    struct slice checkpoints, hosts, halted, skip; /* replies to Range */
};

static int read_all(struct cmdlog_etcd *log, struct slice key_skip, uint64_t until, struct reading *ret)
{
    struct buf request = BUF_INIT(BUF_UNLIMITED);
    struct etcd_txn_reply txn;
    struct etcd_header header = {0};
    struct slice *parts[] = {&ret->checkpoints, &ret->hosts, &ret->halted, &ret->skip};
    const struct etcd_range ranges[] = {
        {.key = log->checkpoints, .end = log->checkpoints_end},
        {.key = log->hosts, .end = log->hosts_end, .keys_only = true},
        {.key = log->halted, .end = log->halted_end},
        {.key = key_skip, .keys_only = true},
    };
    grpc_frame_begin(&request);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        etcd_branch_range(&request, ETCD_THEN, &ranges[i]);
    int r = run_txn(log, &request, until, &ret->reply, &txn);
    for (size_t i = 0; r == 0 && i < sizeof parts / sizeof *parts; i++)
        r = etcd_take_response(&txn.responses, parts[i]) == 1 ? 0 : tl_trace(TL_ERR_CORRUPT);
    if (r == 0)
        r = etcd_read_header(buf_as_slice(&ret->reply), &header);
    ret->revision = header.revision;
    buf_deinit(&request);
    return r;
}

/* Finds a host's key in the reply to a Range over `prefix`. */
static bool find_host(struct slice reply, struct slice prefix, struct slice name, struct etcd_kv *ret)
{
    while (etcd_take_kv(&reply, ret) == 1)
        if (slice_equal(slice_from_offset(ret->key, prefix.len), name))
            return true;
    return false;
}

static bool is_halted(const struct cmdlog_etcd *log, const struct reading *reading, struct slice name, struct slice at)
{
    struct etcd_kv kv;
    return find_host(reading->halted, log->halted, name, &kv) && slice_equal(kv.value, at);
}

/* Adds the comparison that a host is still halted. */
static void compare_halted(const struct cmdlog_etcd *log, struct slice name, struct slice position, struct buf *request)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    cmdlog_etcd__key(&key, log, "halted", name);
    etcd_compare_value(request, buf_as_slice(&key), position);
    buf_deinit(&key);
}

static void add_name(struct slice name, struct buf *names)
{
    buf_slice(names, name);
    buf_byte(names, ' ');
}

/*
 * Collects the hosts that prevent a skip, and adds the others' comparisons to `request`.
 * Returns: 0; TL_ERR_CORRUPT.
 */
static int examine_hosts(const struct cmdlog_etcd *log, const struct reading *reading, cmdlog_position position,
                         struct slice digits, struct buf *request, struct cmdlog_skip_refusal *refusal)
{
    REQUIRE(digits.len == DIGITS);
    struct buf applied = BUF_INIT(BUF_UNLIMITED), running = BUF_INIT(BUF_UNLIMITED);
    struct slice checkpoints = reading->checkpoints, hosts = reading->hosts;
    struct etcd_kv kv;
    int r;
    while ((r = etcd_take_kv(&checkpoints, &kv)) == 1) {
        struct slice name = slice_from_offset(kv.key, log->checkpoints.len);
        uint64_t newest;
        if (!slice_take_u64be(&kv.value, &newest)) {
            r = tl_trace(TL_ERR_CORRUPT);
            break;
        }
        if (newest >= position)
            add_name(name, &applied);
        else if (!is_halted(log, reading, name, digits))
            add_name(name, &running);
        else
            compare_halted(log, name, digits, request);
    }
    while (r == 0 && (r = etcd_take_kv(&hosts, &kv)) == 1) {
        struct slice name = slice_from_offset(kv.key, log->hosts.len);
        struct etcd_kv known;
        if (!find_host(reading->checkpoints, log->checkpoints, name, &known) && !is_halted(log, reading, name, digits))
            add_name(name, &running);
        r = 0;
    }
    refusal->applied = applied.len > 0;
    buf_clear(&refusal->hosts);
    buf_slice(&refusal->hosts, buf_as_slice(refusal->applied ? &applied : &running));
    buf_deinit(&applied);
    buf_deinit(&running);
    return r < 0 ? r : 0;
}

/* Returns: as cmdlog_skip(); CMDLOG_BUSY: something has changed meanwhile. */
static int try_skip(struct cmdlog_etcd *log, cmdlog_position position, struct slice key, uint64_t until,
                    struct cmdlog_skip_refusal *refusal)
{
    REQUIRE(position > 0);
    struct reading reading = {.reply = BUF_INIT(BUF_UNLIMITED)};
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED), digits = BUF_INIT(BUF_UNLIMITED);
    struct etcd_txn_reply txn = {0};
    struct etcd_kv kv;
    append_position(position, &digits);
    grpc_frame_begin(&request);
    int r = read_all(log, key, until, &reading);
    struct slice skip = reading.skip;
    if (r == 0 && etcd_take_kv(&skip, &kv) == 1)
        r = CMDLOG_EXISTS;
    if (r == 0)
        r = examine_hosts(log, &reading, position, buf_as_slice(&digits), &request, refusal);
    if (r == 0 && refusal->hosts.len > 0)
        r = CMDLOG_REFUSED;
    if (r == 0) {
        etcd_compare_unmodified(&request, log->checkpoints, log->checkpoints_end, reading.revision);
        etcd_compare_unmodified(&request, log->hosts, log->hosts_end, reading.revision);
        compare_halted(log, log->name, buf_as_slice(&digits), &request);
        etcd_branch_put(&request, ETCD_THEN, key, log->name, 0);
        r = run_txn(log, &request, until, &reply, &txn);
        if (r == 0 && !txn.succeeded)
            r = CMDLOG_BUSY;
    }
    buf_deinit(&reading.reply);
    buf_deinit(&request);
    buf_deinit(&reply);
    buf_deinit(&digits);
    return r;
}

int skips__skip(struct cmdlog *base, cmdlog_position position, uint64_t until, struct cmdlog_skip_refusal *ret_refusal)
{
    REQUIRE(position > 0);
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    int r;
    buf_slice(&key, log->skips);
    append_position(position, &key);
    while ((r = try_skip(log, position, buf_as_slice(&key), until, ret_refusal)) == CMDLOG_BUSY)
        if (clock_boot_us() >= until) {
            r = CMDLOG_UNREACHABLE;
            break;
        }
    buf_deinit(&key);
    return r;
}

/* --- Listing ------------------------------------------------------------------------------------------------------ */

int skips__list(struct cmdlog *base, uint64_t until, struct cmdlog_skips **ret_skips)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    grpc_frame_begin(&request);
    etcd_put_range(&request, &(struct etcd_range){.key = log->skips, .end = log->skips_end, .keys_only = true});
    grpc_frame_end(&request);
    int r = etcd_client_request(log->client, LANE_CONTROL, ETCD_RANGE, buf_as_slice(&request), until, &reply, NULL);
    struct slice rest = buf_as_slice(&reply);
    struct cmdlog_skips *skips = mem_zalloc(sizeof *skips);
    while (r == 0 && (r = etcd_take_kv(&rest, &kv)) == 1) { /* in order of the keys, so of the positions */
        skips = mem_realloc(skips, sizeof *skips + (skips->count + 1) * sizeof skips->positions[0]);
        r = slice_to_u64(slice_from_offset(kv.key, log->skips.len), &skips->positions[skips->count])
                ? 0
                : tl_trace(TL_ERR_CORRUPT);
        skips->count++;
    }
    buf_deinit(&request);
    buf_deinit(&reply);
    if (r == 0)
        *ret_skips = skips;
    else
        mem_free(skips);
    return r;
}
