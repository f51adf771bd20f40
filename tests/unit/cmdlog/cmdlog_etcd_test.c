/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the guarantees of src/cmdlog/README.md, "A shared log", on a real etcd, while members are
 * killed or stopped and connections are cut.
 *
 * Method: each entry has a number and bytes derived from it, so that missing, duplicate and
 * misplaced entries are detected.
 */
#include "../../lib/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../lib/cmdlog_conformance.h"
#include "../../lib/etcd_fixture.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"
#include "cmdlog/etcd/client.h"
#include "cmdlog/etcd/cmdlog_etcd_internal.h"
#include "cmdlog/etcd/envelope.h"
#include "cmdlog/etcd/messages.h"
#include "cmdlog/etcd/proto.h"
#include "cmdlog/cmdlog_etcd.h"

/*
 * Lease of tests that are not about its end: longer than any stall of the machine. Waits are
 * limited by the test's own time limit only.
 */
enum { LONG_S = 60 };

/* A transaction that is sent late: after the call that made it has ended without a reply. */
static struct {
    _Atomic(struct cmdlog *) awaited; /* of this log; NULL: none is caught */
    struct etcd_client *client;       /* NULL: none was caught */
    struct buf request;
    uint64_t until;
} late;

int __real_etcd_client_request(struct etcd_client *client, enum etcd_client_lane lane, const char *path,
                               struct slice request, uint64_t until, struct buf *reply, int *ret_status);
int __wrap_etcd_client_request(struct etcd_client *client, enum etcd_client_lane lane, const char *path,
                               struct slice request, uint64_t until, struct buf *reply, int *ret_status);

int __wrap_etcd_client_request(struct etcd_client *client, enum etcd_client_lane lane, const char *path,
                               struct slice request, uint64_t until, struct buf *reply, int *ret_status)
{
    struct cmdlog *log = atomic_load(&late.awaited);
    if (log == NULL || cmdlog_etcd_of(log)->client != client || strcmp(path, ETCD_TXN) != 0)
        return __real_etcd_client_request(client, lane, path, request, until, reply, ret_status);
    atomic_store(&late.awaited, NULL);
    late.client = client;
    buf_slice(&late.request, request);
    late.until = until;
    return CMDLOG_UNREACHABLE;
}

static void send_late(void)
{
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    assert_non_null(late.client);
    assert_int_equal(__real_etcd_client_request(late.client, LANE_CONTROL, ETCD_TXN, buf_as_slice(&late.request),
                                                CMDLOG_FOREVER, &reply, NULL),
                     0);
    late.client = NULL;
    buf_deinit(&late.request);
    buf_deinit(&reply);
}

static struct cmdlog *open_with(const char *url, const char *name, uint64_t lease_us)
{
    struct cmdlog *log;
    char *reason = NULL;
    const struct cmdlog_etcd_options options = {.url = slice_from(url), .name = slice_from(name), .lease_us = lease_us};
    int r = cmdlog_etcd_open(&options, &log, &reason);
    if (r != 0)
        fail_msg("%s", reason);
    return log;
}

/* Opens a log with a lease so long that load on the machine does not end it. */
static struct cmdlog *open_at(const char *url, const char *name)
{
    return open_with(url, name, LONG_S * TL_SECOND);
}

static uint64_t join(struct cmdlog *log)
{
    uint64_t life = 0;
    int r;
    while ((r = cmdlog_join(log, SLICE_LIT("about"), CMDLOG_FOREVER, &life)) == CMDLOG_EXISTS)
        usleep(50000);
    if (r != 0) {
        char *error = cmdlog_etcd_last_error(log);
        fail_msg("join: %d, %s", r, error);
    }
    return life;
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/*
 * Returns: the n-th entry of a writer, `len` bytes that follow from the arguments. Owns: the
 * caller; mem_free.
 */
static char *entry_of(const char *writer, unsigned number, size_t len)
{
    char *bytes = mem_alloc(len + 64);
    int at = snprintf(bytes, 64, "%s %u %zu ", writer, number, len);
    for (size_t i = (size_t)at; i < len; i++)
        bytes[i] = (char)('a' + (i * 7 + number) % 26);
    return bytes;
}

static int append_entry(struct cmdlog *log, const char *writer, unsigned number, size_t len,
                        cmdlog_position *ret_position)
{
    char *bytes = entry_of(writer, number, len);
    const struct slice parts[2] = {slice_make(bytes, len / 3), slice_make(bytes + len / 3, len - len / 3)};
    int r = cmdlog_append(log, parts, 2, ret_position);
    mem_free(bytes);
    return r;
}

/* Checks that an entry is whole. Returns: its number. */
static unsigned check_entry(const struct cmdlog_entry *entry, const char *writer)
{
    unsigned number = 0;
    size_t len = 0;
    char name[64] = "", head[64] = "";
    memcpy(head, entry->bytes.data, entry->bytes.len < 63 ? entry->bytes.len : 63);
    assert_int_equal(sscanf(head, "%63s %u %zu", name, &number, &len), 3);
    assert_string_equal(name, writer);
    assert_int_equal(len, entry->bytes.len);
    char *bytes = entry_of(writer, number, len);
    assert_int_equal(memcmp(bytes, entry->bytes.data, len), 0);
    mem_free(bytes);
    return number;
}

static int next_entry(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry, uint64_t until)
{
    for (;;) {
        int r = cmdlog_next(cursor, ret_entry);
        if (r != CMDLOG_END || clock_boot_us() >= until)
            return r;
        (void)!cmdlog_await(cursor, until);
    }
}

/*
 * Checks that the entries from position `from` on are `first` to `last` of the writer, each once.
 */
static void expect_entries(struct cmdlog *log, cmdlog_position from, const char *writer, unsigned first, unsigned last)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    cmdlog_position position = from - 1;
    assert_int_equal(cmdlog_follow(log, from, &cursor), 0);
    for (unsigned i = first; i <= last; i++) {
        int r = next_entry(cursor, &entry, CMDLOG_FOREVER);
        if (r != 0)
            fail_msg("entry %u: %d", i, r);
        assert_int_equal(check_entry(&entry, writer), i);
        assert_true(entry.position > position);
        position = entry.position;
    }
    assert_int_equal(next_entry(cursor, &entry, 0), CMDLOG_END);
    assert_true(cmdlog_cursor_position(cursor) >= position);
    cmdlog_unfollow(cursor);
}

/* Creates the genesis. Returns: the position after it; earlier revisions may be compacted. */
static cmdlog_position begin(struct cmdlog *log)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    cmdlog_position position = 0;
    int r = cmdlog_create_genesis(log, SLICE_LIT("genesis"), CMDLOG_FOREVER);
    assert_true(r == 0 || r == CMDLOG_EXISTS);
    assert_int_equal(cmdlog_read_genesis(log, CMDLOG_FOREVER, &bytes, &position), 0);
    buf_deinit(&bytes);
    return position + 1;
}

/* --- One member --------------------------------------------------------------------------------------------------- */

static struct etcd_fixture *one;

static int start_one(void **state)
{
    (void)state;
    one = etcd_fixture_start(1, NULL);
    return 0;
}

static int stop_one(void **state)
{
    (void)state;
    etcd_fixture_stop(one);
    return 0;
}

static const char *url_of(const char *prefix)
{
    return etcd_fixture_url(one, prefix);
}

static void test_genesis_is_created_once(void **state)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    cmdlog_position position;
    (void)state;
    struct cmdlog *log = open_at(url_of("genesis"), "a"), *other = open_at(url_of("genesis"), "b");
    assert_int_equal(cmdlog_read_genesis(log, CMDLOG_FOREVER, &bytes, &position), CMDLOG_NOT_FOUND);
    assert_int_equal(cmdlog_create_genesis(log, SLICE_LIT("first"), CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_create_genesis(other, SLICE_LIT("second"), CMDLOG_FOREVER), CMDLOG_EXISTS);
    assert_int_equal(cmdlog_read_genesis(other, CMDLOG_FOREVER, &bytes, &position), 0);
    assert_slice_equal(buf_as_slice(&bytes), "first");
    assert_true(position > 0);
    buf_deinit(&bytes);
    cmdlog_close(log);
    cmdlog_close(other);
}

static void test_append_accepts_any_size(void **state)
{
    static const size_t lens[] = {500, 1, 40000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20, 500, 3 << 20, 16384};
    enum { COUNT = sizeof lens / sizeof lens[0] };
    cmdlog_position position, before = 0;
    (void)state;
    struct cmdlog *log = open_at(url_of("sizes"), "a");
    cmdlog_position first = begin(log);
    join(log);
    for (unsigned i = 0; i < COUNT; i++) {
        size_t len = lens[i] < 16 ? 16 : lens[i];
        assert_int_equal(append_entry(log, "w", i, len, &position), 0);
        assert_true(position > before);
        before = position;
        assert_int_equal(cmdlog_read_head(log, CMDLOG_FOREVER, &position), 0);
        assert_int_equal(position, before);
    }
    expect_entries(log, first, "w", 0, COUNT - 1);
    cmdlog_close(log);
}

/* The host whose entry is the newest need not be the one that appended its first entry last. */
static void test_head_is_newest_entry_of_any_host(void **state)
{
    cmdlog_position position, head;
    (void)state;
    struct cmdlog *a = open_at(url_of("head"), "a"), *b = open_at(url_of("head"), "b");
    join(a);
    join(b);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(append_entry(i % 2 == 0 ? a : b, "w", i, 100, &position), 0);
        assert_int_equal(cmdlog_read_head(a, CMDLOG_FOREVER, &head), 0);
        assert_int_equal(head, position);
        assert_int_equal(cmdlog_read_head(b, CMDLOG_FOREVER, &head), 0);
        assert_int_equal(head, position);
    }
    cmdlog_close(a);
    cmdlog_close(b);
}

static int position_compare(const void *a, const void *b)
{
    cmdlog_position x = *(const cmdlog_position *)a, y = *(const cmdlog_position *)b;
    return (x > y) - (x < y);
}

/*
 * A cursor may start at any position: one without an entry, or one between the parts of an entry.
 */
static void test_cursor_starts_at_any_position(void **state)
{
    enum { COUNT = 6 };
    cmdlog_position positions[COUNT];
    (void)state;
    struct cmdlog *log = open_at(url_of("anywhere"), "a");
    join(log);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(append_entry(log, "w", i, i == 3 ? 5 << 19 : 100, &positions[i]), 0);
    for (cmdlog_position from = positions[0] - 1; from <= positions[COUNT - 1] + 1; from++) {
        unsigned first = 0;
        while (first < COUNT && positions[first] < from)
            first++;
        if (first < COUNT)
            expect_entries(log, from, "w", first, COUNT - 1);
    }
    cmdlog_close(log);
}

struct writer {
    pthread_t thread;
    struct cmdlog *log;
    const char *name;
    unsigned first, count;
    size_t len_max;
    cmdlog_position *positions;
};

static void *write_all(void *context)
{
    struct writer *writer = context;
    for (unsigned i = 0; i < writer->count; i++) {
        size_t len = 64 + (i * 7919u) % writer->len_max;
        if (append_entry(writer->log, writer->name, writer->first + i, len, &writer->positions[i]) != 0)
            return context;
    }
    return NULL;
}

/*
 * Two hosts with two appending threads each, and a cursor on each host: both see the same order,
 * which keeps each writer's.
 */
static void test_two_hosts_read_the_same_order(void **state)
{
    enum { WRITERS = 4, COUNT = 40, ALL = WRITERS * COUNT };
    static const char *const names[WRITERS] = {"a0", "a1", "b0", "b1"};
    struct cmdlog *logs[2] = {open_at(url_of("two"), "a"), open_at(url_of("two"), "b")};
    struct writer writers[WRITERS];
    cmdlog_position positions[WRITERS][COUNT], seen[2][ALL], flat[ALL];
    (void)state;
    cmdlog_position first = begin(logs[0]);
    for (int i = 0; i < 2; i++)
        join(logs[i]);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.log = logs[i / 2],
                                     .name = names[i],
                                     .count = COUNT,
                                     .len_max = i == 1 ? 2 << 20 : 3000,
                                     .positions = positions[i]};
        pthread_create(&writers[i].thread, NULL, write_all, &writers[i]);
    }
    for (int f = 0; f < 2; f++) {
        struct cmdlog_cursor *cursor;
        uint64_t numbers[2] = {0};
        unsigned next[WRITERS] = {0};
        assert_int_equal(cmdlog_follow(logs[f], first, &cursor), 0);
        for (unsigned i = 0; i < ALL; i++) {
            struct cmdlog_entry entry;
            assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), 0);
            int host = entry.host.data[0] - 'a', writer = 2 * host + entry.bytes.data[1] - '0';
            assert_int_equal(check_entry(&entry, names[writer]), next[writer]++);
            assert_true(entry.number > numbers[host]);
            numbers[host] = entry.number;
            seen[f][i] = entry.position;
        }
        cmdlog_unfollow(cursor);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        void *failed;
        pthread_join(writers[i].thread, &failed);
        assert_null(failed);
        memcpy(flat + i * COUNT, positions[i], sizeof positions[i]);
    }
    qsort(flat, ALL, sizeof flat[0], position_compare);
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
    assert_memory_equal(seen[0], flat, sizeof flat);
    for (int i = 0; i < 2; i++)
        cmdlog_close(logs[i]);
}

/* Submitting waits for a free slot only. Outcomes may be read later. */
static void test_submit_does_not_wait_for_outcome(void **state)
{
    enum { COUNT = 50 };
    uint64_t numbers[COUNT];
    cmdlog_position position, before = 0;
    (void)state;
    struct cmdlog *log = open_at(url_of("submit"), "a");
    struct slice part = SLICE_LIT("some bytes");
    assert_int_equal(cmdlog_submit(log, &part, 1, CMDLOG_FOREVER, &numbers[0]), CMDLOG_FENCED);
    join(log);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(cmdlog_submit(log, &part, 1, CMDLOG_FOREVER, &numbers[i]), 0);
        assert_true(i == 0 || numbers[i] == numbers[i - 1] + 1);
    }
    for (int i = 0; i < COUNT; i++) {
        struct cmdlog_etcd_counts counts;
        assert_int_equal(cmdlog_outcome(log, numbers[i], CMDLOG_FOREVER, &position), 0);
        cmdlog_etcd_counts(log, &counts);
        /* Of an entry whose reply was lost a later position is known: that of the host's newest entry. */
        assert_true(position > before || (position == before && counts.lost > 0));
        before = position;
    }
    assert_int_equal(cmdlog_outcome(log, numbers[COUNT - 1] + 1, 0, &position), TL_ERR_STOPPED);
    cmdlog_close(log);
}

static void test_many_cursors_read_all_entries(void **state)
{
    enum { CURSORS = 100, COUNT = 20 };
    struct cmdlog_cursor *cursors[CURSORS];
    cmdlog_position position, first = 0;
    (void)state;
    struct cmdlog *log = open_at(url_of("many"), "a");
    join(log);
    for (unsigned i = 0; i < COUNT; i++) {
        if (i == COUNT / 2)
            for (int c = 0; c < CURSORS; c++)
                assert_int_equal(cmdlog_follow(log, first, &cursors[c]), 0);
        assert_int_equal(append_entry(log, "w", i, 20000, &position), 0);
        first = first == 0 ? position : first;
    }
    for (int c = 0; c < CURSORS; c++) {
        for (unsigned i = 0; i < COUNT; i++) {
            struct cmdlog_entry entry;
            assert_int_equal(next_entry(cursors[c], &entry, CMDLOG_FOREVER), 0);
            assert_int_equal(check_entry(&entry, "w"), i);
        }
        cmdlog_unfollow(cursors[c]);
    }
    cmdlog_close(log);
}

static void *interrupt_soon(void *context)
{
    usleep(20000);
    cmdlog_interrupt(context);
    return NULL;
}

static void test_interrupt_ends_await(void **state)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    pthread_t thread;
    (void)state;
    struct cmdlog *log = open_at(url_of("interrupt"), "a");
    assert_int_equal(cmdlog_follow(log, begin(log), &cursor), 0);
    while (cmdlog_await(cursor, clock_boot_us() + 300000) == 0) /* the watch's own messages */
        assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
    pthread_create(&thread, NULL, interrupt_soon, cursor);
    while (cmdlog_await(cursor, CMDLOG_FOREVER) == 0)
        assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
    pthread_join(thread, NULL);
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
}

/* --- Lives -------------------------------------------------------------------------------------------------------- */

/* Waits until there are `count` members. Returns: the first one's life, or 0. */
static uint64_t expect_hosts(struct cmdlog *log, size_t count)
{
    struct cmdlog_hosts *hosts = NULL;
    uint64_t version = 0, life;
    do {
        mem_free(hosts);
        hosts = NULL;
        int r = cmdlog_list_hosts(log, version, CMDLOG_FOREVER, &hosts);
        if (r != 0)
            fail_msg("hosts: %d", r);
        version = hosts->version;
    } while (hosts->count != count);
    life = count > 0 ? hosts->hosts[0].life : 0;
    if (count > 0)
        assert_slice_equal(hosts->hosts[0].about, "about");
    mem_free(hosts);
    return life;
}

static void test_life_end_rejects_appends(void **state)
{
    struct cmdlog_lease lease;
    cmdlog_position position;
    uint64_t life, other_life;
    (void)state;
    struct cmdlog *log = open_at(url_of("lives"), "a"), *other = open_at(url_of("lives"), "b"),
                  *same = open_at(url_of("lives"), "a");
    cmdlog_position first = begin(log);
    cmdlog_lease(log, &lease);
    assert_int_equal(lease.life, 0);
    assert_int_equal(append_entry(log, "w", 0, 100, &position), CMDLOG_FENCED);
    life = join(log);
    cmdlog_lease(log, &lease);
    assert_int_equal(lease.life, life);
    assert_true(lease.until > clock_boot_us() && lease.until <= lease.asked + LONG_S * TL_SECOND / 10 * 9);
    assert_int_equal(expect_hosts(other, 1), life);
    assert_int_equal(cmdlog_join(same, SLICE_LIT("about"), CMDLOG_FOREVER, &other_life), CMDLOG_EXISTS);
    other_life = join(other);
    assert_true(other_life > life);
    expect_hosts(log, 2);
    assert_int_equal(append_entry(log, "w", 1, 100, &position), 0);

    /* After an expulsion, appends of the life are rejected. A new life continues the numbers. */
    assert_int_equal(cmdlog_expel(other, SLICE_LIT("a"), life, CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_expel(other, SLICE_LIT("a"), life, CMDLOG_FOREVER), 0);
    assert_int_equal(append_entry(log, "w", 2, 100, &position), CMDLOG_FENCED);
    cmdlog_lease(log, &lease);
    assert_int_equal(lease.life, 0);
    expect_hosts(other, 1);
    assert_true(join(log) > other_life);
    assert_int_equal(append_entry(log, "w", 2, 100, &position), 0);

    /* After a leave, the name is free at once. */
    assert_int_equal(cmdlog_leave(log, CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_join(same, SLICE_LIT("about"), CMDLOG_FOREVER, &life), 0);
    assert_int_equal(append_entry(log, "w", 3, 100, &position), CMDLOG_FENCED);
    assert_int_equal(append_entry(same, "w", 3, 2 << 20, &position), 0);
    expect_entries(other, first, "w", 1, 3);
    cmdlog_close(log);
    cmdlog_close(other);
    cmdlog_close(same);
}

/*
 * A new life begins while a put of the one before is in flight, to a member that does not answer. It
 * is fenced, and the call belongs to the client's thread meanwhile.
 */
static void test_life_begins_beside_put_in_flight(void **state)
{
    char url[96];
    struct cmdlog_etcd_counts counts;
    cmdlog_position position;
    uint64_t number;
    int r;
    struct slice part = SLICE_LIT("of the life before");
    (void)state;
    struct relay *silent = relay_start(etcd_fixture_port(one, 0));
    relay_hold(silent, true);
    snprintf(url, sizeof url, "http://127.0.0.1:%d,http://127.0.0.1:%d/beside", relay_port(silent),
             etcd_fixture_port(one, 0));
    do {
        struct cmdlog *log = open_at(url, "a");
        join(log); /* whose connection is to the second member by now; that for appends is not made yet */
        assert_int_equal(cmdlog_submit(log, &part, 1, CMDLOG_FOREVER, &number), 0);
        do {
            cmdlog_etcd_counts(log, &counts);
        } while (counts.attempts == 0);
        join(log);
        r = cmdlog_outcome(log, number, CMDLOG_FOREVER, &position);
        assert_int_equal(append_entry(log, "w", 1, 100, &position), 0);
        assert_int_equal(cmdlog_leave(log, CMDLOG_FOREVER), 0);
        cmdlog_close(log);
    } while (r == 0 || r == CMDLOG_UNKNOWN); /* the join took longer than the attempt, which was repeated */
    assert_int_equal(r, CMDLOG_FENCED);
    relay_stop(silent);
}

/*
 * Joins, and waits until the life has outlasted its first lease. Joins again if a stall of the
 * machine ends the life.
 */
static void join_until_renewed(struct cmdlog *log)
{
    struct cmdlog_lease lease, first;
    do {
        join(log);
        cmdlog_lease(log, &first);
        do {
            usleep(50000);
            cmdlog_lease(log, &lease);
        } while (lease.life != 0 && lease.life == first.life && lease.asked < first.until);
    } while (lease.life == 0 || lease.life != first.life);
}

/*
 * A life is renewed while etcd can be reached, and then expires. The host stops counting on it
 * before the others see its end.
 */
static void test_lease_expires_without_etcd(void **state)
{
    char url[64];
    struct cmdlog_lease lease;
    cmdlog_position position;
    uint64_t number;
    int r;
    struct slice part = SLICE_LIT("this is not read");
    (void)state;
    struct relay *relay = relay_start(etcd_fixture_port(one, 0));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/lease", relay_port(relay));
    struct cmdlog *log = open_with(url, "a", 2 * TL_SECOND), *other = open_with(url_of("lease"), "b", 2 * TL_SECOND);
    do {
        join_until_renewed(log);
    } while ((r = append_entry(log, "w", 0, 100, &position)) == CMDLOG_FENCED);
    assert_int_equal(r, 0);
    relay_hold(relay, true);
    assert_int_equal(cmdlog_submit(log, &part, 1, CMDLOG_FOREVER, &number), 0);
    assert_int_equal(cmdlog_outcome(log, number, 0, &position), CMDLOG_BUSY);
    expect_hosts(other, 0);
    cmdlog_lease(log, &lease);
    assert_true(lease.until <= clock_boot_us());
    relay_hold(relay, false);
    r = cmdlog_outcome(log, number, CMDLOG_FOREVER, &position);
    /* The relay may have held a put that got in before the lease expired, or its reply. */
    assert_true(r == CMDLOG_FENCED || r == CMDLOG_UNKNOWN);
    assert_int_equal(append_entry(log, "w", 1, 100, &position), CMDLOG_FENCED);
    do {
        join(log);
    } while ((r = append_entry(log, "w", 1, 100, &position)) == CMDLOG_FENCED);
    assert_int_equal(r, 0);
    cmdlog_close(log);
    cmdlog_close(other);
    relay_stop(relay);
}

/* --- Checkpoints and trimming ------------------------------------------------------------------------------------- */

static void put_checkpoint(struct cmdlog *log, cmdlog_position position, uint64_t log_bytes, const char *place)
{
    const struct cmdlog_checkpoint checkpoint = {position, slice_from(place), log_bytes};
    assert_int_equal(cmdlog_put_checkpoint(log, &checkpoint), 0);
}

/* These two have time limits of their own, which the test must outlast. */
static int get_checkpoint(struct cmdlog *log, unsigned back, char *place, struct cmdlog_checkpoint *ret_checkpoint)
{
    int r;
    while ((r = cmdlog_get_checkpoint(log, back, place, ret_checkpoint)) == CMDLOG_UNREACHABLE)
        continue;
    return r;
}

static int trim(struct cmdlog *log, cmdlog_position before)
{
    int r;
    while ((r = cmdlog_trim(log, before)) == CMDLOG_UNREACHABLE)
        continue;
    return r;
}

static int follow_first(struct cmdlog *log, cmdlog_position from, struct cmdlog_entry *ret_entry)
{
    struct cmdlog_cursor *cursor;
    assert_int_equal(cmdlog_follow(log, from, &cursor), 0);
    int r = next_entry(cursor, ret_entry, CMDLOG_FOREVER);
    cmdlog_unfollow(cursor);
    return r;
}

/* cmdlog_test.c has the same for the other logs. */
static void test_checkpoints_conform(void **state)
{
    cmdlog_position positions[3];
    (void)state;
    struct cmdlog *log = open_at(url_of("checkpoints"), "a");
    join(log);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(append_entry(log, "w", i, 1000, &positions[i]), 0);
    check_checkpoints(log, positions);
    cmdlog_close(log);
}

static void test_trim_retains_second_newest_checkpoint(void **state)
{
    char place[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint found;
    struct cmdlog_known_hosts *known;
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    cmdlog_position positions[10];
    (void)state;
    struct cmdlog *a = open_at(url_of("trim"), "a"), *b = open_at(url_of("trim"), "b"),
                  *c = open_at(url_of("trim"), "c");
    join(a);
    assert_int_equal(get_checkpoint(a, 0, place, &found), CMDLOG_NOT_FOUND);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(append_entry(a, "w", i, 1000, &positions[i]), 0);
    put_checkpoint(a, positions[6], 7000, "a1");
    assert_int_equal(get_checkpoint(a, 1, place, &found), CMDLOG_NOT_FOUND);
    put_checkpoint(a, positions[8], 9000, "a2");
    assert_int_equal(get_checkpoint(a, 0, place, &found), 0);
    assert_slice_equal(found.locator, "a2");
    assert_int_equal(get_checkpoint(a, 1, place, &found), 0);
    assert_int_equal(found.position, positions[6]);
    assert_int_equal(found.log_bytes, 7000);

    /* The second newest host's checkpoint is retained, and a lagging host delays trimming. */
    put_checkpoint(b, positions[5], 6000, "b");
    put_checkpoint(c, positions[2], 3000, "c");
    assert_int_equal(cmdlog_list_checkpoints(b, CMDLOG_FOREVER, &known), 0);
    assert_int_equal(known->count, 3);
    assert_slice_equal(known->hosts[2].name, "c");
    assert_slice_equal(known->hosts[2].newest.locator, "c");
    mem_free(known);
    assert_int_equal(cmdlog_follow(b, positions[1], &cursor), 0);
    assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), 0);
    assert_int_equal(trim(a, positions[8]), 0);
    assert_int_equal(follow_first(b, positions[2] + 1, &entry), 0);
    assert_int_equal(entry.position, positions[3]);
    assert_int_equal(follow_first(b, positions[1], &entry), CMDLOG_TRIMMED);
    assert_int_equal(cmdlog_forget_host(a, SLICE_LIT("c"), CMDLOG_FOREVER), 0);
    assert_int_equal(trim(a, positions[8]), 0);
    assert_int_equal(follow_first(b, positions[5] + 1, &entry), 0);
    assert_int_equal(entry.position, positions[6]);
    assert_int_equal(follow_first(b, positions[4], &entry), CMDLOG_TRIMMED);
    assert_int_equal(trim(a, positions[3]), 0); /* trimmed before */

    /* A cursor that is already open continues. */
    for (unsigned i = 2; i < 10; i++) {
        assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), 0);
        assert_int_equal(entry.position, positions[i]);
    }
    assert_int_equal(append_entry(a, "w", 10, 1000, &positions[0]), 0);
    assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), 0);
    assert_int_equal(entry.position, positions[0]);
    cmdlog_unfollow(cursor);
    cmdlog_close(a);
    cmdlog_close(b);
    cmdlog_close(c);
}

/* Returns: whether etcd has the key PREFIX/kind/name. */
static bool has_key(struct cmdlog *base, const char *kind, const char *name)
{
    struct cmdlog_etcd *log = cmdlog_etcd_of(base);
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED), key = BUF_INIT(BUF_UNLIMITED);
    struct etcd_kv kv;
    cmdlog_etcd__key(&key, log, kind, slice_from(name));
    grpc_frame_begin(&request);
    etcd_put_range(&request, &(struct etcd_range){.key = buf_as_slice(&key), .keys_only = true});
    grpc_frame_end(&request);
    assert_int_equal(etcd_client_request(log->client, LANE_CONTROL, ETCD_RANGE, buf_as_slice(&request), CMDLOG_FOREVER,
                                         &reply, NULL),
                     0);
    struct slice rest = buf_as_slice(&reply);
    bool found = etcd_take_kv(&rest, &kv) == 1;
    buf_deinit(&request);
    buf_deinit(&reply);
    buf_deinit(&key);
    return found;
}

static void test_member_is_not_forgotten(void **state)
{
    cmdlog_position position;
    (void)state;
    struct cmdlog *a = open_at(url_of("member"), "a"), *b = open_at(url_of("member"), "b");
    join(b);
    assert_int_equal(append_entry(b, "w", 0, 100, &position), 0);
    put_checkpoint(b, position, 1, "b");
    assert_int_equal(cmdlog_forget_host(a, SLICE_LIT("b"), CMDLOG_FOREVER), CMDLOG_EXISTS);
    assert_true(has_key(a, "checkpoint", "b"));
    assert_int_equal(cmdlog_leave(b, CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_forget_host(a, SLICE_LIT("b"), CMDLOG_FOREVER), 0);
    assert_false(has_key(a, "checkpoint", "b"));
    assert_true(has_key(a, "log", "b")); /* its revisions are entries */
    cmdlog_close(a);
    cmdlog_close(b);
}

/* Puts a checkpoint by a request that etcd executes late: send_late(). */
static void put_checkpoint_late(struct cmdlog *log, cmdlog_position position)
{
    const struct cmdlog_checkpoint checkpoint = {position, SLICE_LIT("late"), 0};
    late.request = (struct buf)BUF_INIT(BUF_UNLIMITED);
    atomic_store(&late.awaited, log);
    assert_int_equal(cmdlog_put_checkpoint(log, &checkpoint), CMDLOG_UNREACHABLE);
    /* The journal's thread that makes it also expires commands and joins again: a silent etcd must not hold it long. */
    assert_true(late.until <= clock_boot_us() + 5 * TL_SECOND);
}

static void leave_and_forget(struct cmdlog *log, struct cmdlog *other, const char *name)
{
    assert_int_equal(cmdlog_leave(log, CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_forget_host(other, slice_from(name), CMDLOG_FOREVER), 0);
    assert_false(has_key(other, "checkpoint", name));
}

/*
 * A host that was forgotten is known again when it is a member again and puts a checkpoint, and not by one that etcd
 * executes late, nor by its process, which may be out of the cluster.
 */
static void test_late_checkpoint_does_not_make_forgotten_host_known(void **state)
{
    char place[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint found;
    cmdlog_position positions[3];
    (void)state;
    struct cmdlog *a = open_at(url_of("late_checkpoint"), "a"), *b = open_at(url_of("late_checkpoint"), "b");
    join(a);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(append_entry(a, "w", i, 100, &positions[i]), 0);
    put_checkpoint(a, positions[0], 1, "a");
    put_checkpoint(b, positions[0], 1, "b"); /* before it joins: it is known */
    assert_true(has_key(a, "checkpoint", "b"));
    join(b);

    put_checkpoint_late(b, positions[1]); /* of a known host */
    leave_and_forget(b, a, "b");
    send_late();
    assert_false(has_key(a, "checkpoint", "b"));
    const struct cmdlog_checkpoint next = {positions[1], SLICE_LIT("b"), 2};
    assert_int_equal(cmdlog_put_checkpoint(b, &next), CMDLOG_FENCED);
    assert_int_equal(trim(b, positions[1]), 0);
    assert_false(has_key(a, "checkpoint", "b"));

    join(b);
    put_checkpoint_late(b, positions[1]); /* of a member that is not known */
    leave_and_forget(b, a, "b");
    send_late();
    assert_false(has_key(a, "checkpoint", "b"));

    join(b);
    put_checkpoint(b, positions[0], 1, "b");
    put_checkpoint_late(b, positions[1]); /* a newer one has been put when it arrives */
    put_checkpoint(b, positions[2], 3, "b");
    send_late();
    assert_int_equal(get_checkpoint(b, 0, place, &found), 0);
    assert_int_equal(found.position, positions[2]);
    put_checkpoint(b, positions[2], 3, "b"); /* as after a lost reply */
    assert_int_equal(get_checkpoint(b, 1, place, &found), 0);
    assert_int_equal(found.position, positions[0]);
    cmdlog_close(a);
    cmdlog_close(b);
}

/*
 * The record of a halt of a forgotten host goes when the log is trimmed beyond it, and not before: an attempt to halt
 * that etcd executes late would put it again. That of a known host or of a member stays.
 */
static void test_halt_of_forgotten_host_is_deleted_when_log_is_trimmed(void **state)
{
    cmdlog_position positions[4];
    (void)state;
    struct cmdlog *a = open_at(url_of("old_halt"), "a"), *b = open_at(url_of("old_halt"), "b"),
                  *c = open_at(url_of("old_halt"), "c"), *d = open_at(url_of("old_halt"), "d");
    join(a);
    join(d);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(append_entry(a, "w", i, 100, &positions[i]), 0);
    put_checkpoint(a, positions[0], 1, "a");
    put_checkpoint(b, positions[0], 1, "b");
    put_checkpoint(c, positions[0], 1, "c");
    assert_int_equal(cmdlog_halt(b, positions[1], CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_halt(c, positions[1], CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_halt(d, positions[1], CMDLOG_FOREVER), 0);
    for (unsigned i = 2; i < 4; i++)
        assert_int_equal(append_entry(a, "w", i, 100, &positions[i]), 0);

    assert_int_equal(cmdlog_forget_host(a, SLICE_LIT("c"), CMDLOG_FOREVER), 0);
    assert_true(has_key(a, "halted", "c"));
    assert_int_equal(trim(a, positions[1]), 0);
    assert_true(has_key(a, "halted", "c"));
    put_checkpoint(a, positions[3], 4, "a");
    put_checkpoint(b, positions[3], 4, "b");
    assert_int_equal(trim(a, positions[3]), 0);
    assert_false(has_key(a, "halted", "c"));
    assert_true(has_key(a, "halted", "b"));
    assert_true(has_key(a, "halted", "d"));
    cmdlog_close(a);
    cmdlog_close(b);
    cmdlog_close(c);
    cmdlog_close(d);
}

static void assert_skip_refused(struct cmdlog *log, cmdlog_position position, bool applied, const char *hosts)
{
    struct cmdlog_skip_refusal refusal = {.hosts = BUF_INIT(BUF_UNLIMITED)};
    assert_int_equal(cmdlog_skip(log, position, CMDLOG_FOREVER, &refusal), CMDLOG_REFUSED);
    assert_int_equal(refusal.applied, applied);
    assert_slice_equal(buf_as_slice(&refusal.hosts), hosts);
    buf_deinit(&refusal.hosts);
}

static void test_entry_is_skipped_only_if_all_hosts_have_halted(void **state)
{
    struct cmdlog_skip_refusal refusal = {.hosts = BUF_INIT(BUF_UNLIMITED)};
    struct cmdlog_skips *skips;
    cmdlog_position positions[4];
    (void)state;
    struct cmdlog *a = open_at(url_of("skip"), "a"), *ab = open_at(url_of("skip"), "ab"),
                  *c = open_at(url_of("skip"), "c");
    join(a);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(append_entry(a, "w", i, 100, &positions[i]), 0);
    put_checkpoint(ab, positions[0], 1, "ab");
    assert_int_equal(cmdlog_list_skips(a, CMDLOG_FOREVER, &skips), 0);
    assert_int_equal(skips->count, 0);
    mem_free(skips);

    /* A member without a checkpoint and a known host that is no member must both halt. */
    assert_skip_refused(c, positions[2], false, "ab a ");
    assert_int_equal(cmdlog_halt(ab, positions[2], CMDLOG_FOREVER), 0);
    assert_skip_refused(c, positions[2], false, "a ");
    assert_int_equal(cmdlog_halt(a, positions[1], CMDLOG_FOREVER), 0);
    assert_skip_refused(ab, positions[2], false, "a ");
    assert_int_equal(cmdlog_halt(a, positions[2], CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_resume(ab, CMDLOG_FOREVER), 0);
    assert_skip_refused(a, positions[2], false, "ab ");
    assert_int_equal(cmdlog_halt(ab, positions[2], CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_skip(a, positions[2], CMDLOG_FOREVER, &refusal), 0);
    assert_int_equal(cmdlog_skip(ab, positions[2], CMDLOG_FOREVER, &refusal), CMDLOG_EXISTS);

    /* A checkpoint shows that its host has applied an entry, whatever it has recorded. */
    put_checkpoint(ab, positions[1], 2, "ab");
    assert_int_equal(cmdlog_halt(a, positions[1], CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_halt(ab, positions[1], CMDLOG_FOREVER), 0);
    assert_skip_refused(a, positions[1], true, "ab ");

    assert_int_equal(cmdlog_list_skips(c, CMDLOG_FOREVER, &skips), 0);
    assert_int_equal(skips->count, 1);
    assert_true(cmdlog_is_skipped(skips, positions[2]));
    assert_false(cmdlog_is_skipped(skips, positions[1]));
    mem_free(skips);
    buf_deinit(&refusal.hosts);
    cmdlog_close(a);
    cmdlog_close(ab);
    cmdlog_close(c);
}

/*
 * etcd executes an attempt to halt after the host has resumed, and may have applied the entry: it has no effect.
 */
static void test_attempt_to_halt_has_no_effect_after_resume(void **state)
{
    struct cmdlog_skip_refusal refusal = {.hosts = BUF_INIT(BUF_UNLIMITED)};
    cmdlog_position position;
    (void)state;
    struct cmdlog *a = open_at(url_of("late_halt"), "a"), *b = open_at(url_of("late_halt"), "b");
    join(a);
    assert_int_equal(append_entry(a, "w", 0, 100, &position), 0);
    put_checkpoint(b, position - 1, 1, "b");
    assert_int_equal(cmdlog_halt(a, position, CMDLOG_FOREVER), 0);
    for (int i = 0; i < 3; i++) { /* without a record, after a resume, after a halt elsewhere */
        late.request = (struct buf)BUF_INIT(BUF_UNLIMITED);
        atomic_store(&late.awaited, b);
        assert_int_equal(cmdlog_halt(b, position, CMDLOG_FOREVER), CMDLOG_UNREACHABLE);
        assert_int_equal(cmdlog_resume(b, CMDLOG_FOREVER), 0);
        send_late();
        assert_skip_refused(a, position, false, "b ");
        if (i == 1)
            assert_int_equal(cmdlog_halt(b, position - 1, CMDLOG_FOREVER), 0);
    }
    assert_int_equal(cmdlog_halt(b, position, CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_halt(b, position, CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_skip(a, position, CMDLOG_FOREVER, &refusal), 0);
    buf_deinit(&refusal.hosts);
    cmdlog_close(a);
    cmdlog_close(b);
}

/* If a checkpoint is between the parts of another host's entry, the first parts are retained. */
static void test_trim_retains_parts_of_incomplete_entry(void **state)
{
    struct cmdlog_entry entry;
    cmdlog_position position, middle = 0;
    uint64_t number;
    (void)state;
    struct cmdlog *a = open_at(url_of("parts"), "a"), *b = open_at(url_of("parts"), "b");
    join(a);
    join(b);
    char *bytes = entry_of("w", 0, 5 << 20);
    struct slice part = slice_make(bytes, 5 << 20);
    while (middle == 0) {
        cmdlog_position head;
        assert_int_equal(cmdlog_submit(a, &part, 1, CMDLOG_FOREVER, &number), 0);
        assert_int_equal(append_entry(b, "other", 0, 20, &head), 0);
        assert_int_equal(cmdlog_outcome(a, number, CMDLOG_FOREVER, &position), 0);
        middle = position > head && head > position - 5 ? head : 0; /* it is between the parts */
    }
    put_checkpoint(a, middle, 0, "");
    assert_int_equal(trim(a, middle + 1), 0);
    assert_int_equal(follow_first(b, middle + 1, &entry), 0);
    assert_int_equal(entry.position, position);
    put_checkpoint(a, position, 0, "");
    assert_int_equal(trim(a, position + 1), 0);
    assert_int_equal(follow_first(b, middle - 1, &entry), CMDLOG_TRIMMED);
    mem_free(bytes);
    cmdlog_close(a);
    cmdlog_close(b);
}

/* --- Faults ------------------------------------------------------------------------------------------------------- */

/* Replies are lost during appends. Each entry is in the log once, and its append succeeds. */
static void test_append_is_exactly_once_when_replies_are_lost(void **state)
{
    enum { COUNT = 12 };
    char url[64];
    struct cmdlog_etcd_counts counts;
    cmdlog_position position;
    (void)state;
    struct relay *relay = relay_start(etcd_fixture_port(one, 0));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/lost", relay_port(relay));
    struct cmdlog *log = open_at(url, "a"), *other = open_at(url_of("lost"), "b");
    cmdlog_position first = begin(other);
    join(log);
    for (unsigned i = 0; i < COUNT; i++) {
        relay_drop_replies(relay, 1 + i * 13);
        assert_int_equal(append_entry(log, "w", i, i % 3 == 2 ? 2500000 : 500, &position), 0);
    }
    cmdlog_etcd_counts(log, &counts);
    assert_true(counts.lost > 0 && counts.attempts > counts.appends);
    expect_entries(other, first, "w", 0, COUNT - 1);
    cmdlog_close(log);
    cmdlog_close(other);
    relay_stop(relay);
}

/* A connection is cut repeatedly while one thread appends and another reads through it. */
static void test_append_and_follow_survive_cut_connections(void **state)
{
    enum { COUNT = 60 };
    char url[64];
    cmdlog_position positions[COUNT];
    struct cmdlog_cursor *cursor;
    (void)state;
    struct relay *relay = relay_start(etcd_fixture_port(one, 0));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/cut", relay_port(relay));
    struct cmdlog *log = open_at(url, "a");
    struct writer writer = {.log = log, .name = "w", .count = COUNT, .len_max = 200000, .positions = positions};
    join(log);
    assert_int_equal(cmdlog_follow(log, begin(log), &cursor), 0);
    pthread_create(&writer.thread, NULL, write_all, &writer);
    for (unsigned i = 0; i < COUNT; i++) {
        struct cmdlog_entry entry;
        assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), 0);
        assert_int_equal(check_entry(&entry, "w"), i);
        if (i % 10 == 5) {
            relay_cut(relay);
            usleep(20000);
            relay_mend(relay);
        }
    }
    void *failed;
    pthread_join(writer.thread, &failed);
    assert_null(failed);
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
    relay_stop(relay);
}

/* Puts a value as a host's entry, without the log's checks. */
static void put_raw(const char *prefix, const char *key, struct slice value)
{
    struct etcd_client *client;
    char *reason, path[128];
    struct list tasks;
    struct buf request = BUF_INIT(BUF_UNLIMITED), reply = BUF_INIT(BUF_UNLIMITED);
    list_init(&tasks);
    snprintf(path, sizeof path, "%s/log/%s", prefix, key);
    assert_int_equal(etcd_client_open(slice_from(url_of(prefix)), &(struct etcd_tls_files){0}, &client, &reason), 0);
    assert_int_equal(etcd_client_start(client, &tasks, &reason), 0);
    grpc_frame_begin(&request);
    etcd_put_put(&request, slice_from(path), value, 0);
    grpc_frame_end(&request);
    assert_int_equal(
        etcd_client_request(client, LANE_CONTROL, ETCD_PUT, buf_as_slice(&request), CMDLOG_FOREVER, &reply, NULL), 0);
    etcd_client_close(client);
    buf_deinit(&request);
    buf_deinit(&reply);
}

static struct slice raw_put(char *bytes, uint64_t number, uint32_t part, uint32_t parts)
{
    const struct envelope envelope = {.life = 5, .number = number, .part = part, .parts = parts};
    struct slice body = SLICE_LIT("w 0 5 x");
    envelope_write(&envelope, SLICE_LIT("a"), &body, 1, bytes);
    memcpy(bytes + ENVELOPE_BYTES, body.data, body.len);
    return slice_make(bytes, ENVELOPE_BYTES + body.len);
}

static void test_cursor_detects_damage(void **state)
{
    static const struct {
        const char *prefix;
        uint64_t number;
        uint32_t part, parts;
        const char *host;
        bool flip;
    } cases[] = {
        {"gap", 3, 1, 1, "a", false},  {"twice", 1, 1, 1, "a", false},     {"flip", 2, 1, 1, "a", true},
        {"part", 2, 2, 3, "a", false}, {"elsewhere", 1, 1, 1, "b", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bytes[128];
        struct cmdlog_cursor *cursor;
        struct cmdlog_entry entry;
        struct cmdlog *log = open_at(url_of(cases[i].prefix), "x");
        cmdlog_position first = begin(log);
        put_raw(cases[i].prefix, "a", raw_put(bytes, 1, 1, 1));
        struct slice second = raw_put(bytes, cases[i].number, cases[i].part, cases[i].parts);
        bytes[ENVELOPE_BYTES + 3] ^= (char)cases[i].flip;
        put_raw(cases[i].prefix, cases[i].host, second);
        assert_int_equal(cmdlog_follow(log, first, &cursor), 0);
        assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), 0);
        assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), TL_ERR_CORRUPT);
        assert_int_equal(cmdlog_next(cursor, &entry), TL_ERR_CORRUPT);
        char *error = cmdlog_etcd_last_error(log);
        assert_non_null(strstr(error, "damaged"));
        mem_free(error);
        cmdlog_unfollow(cursor);
        cmdlog_close(log);
    }
}

static void test_unreachable_etcd_is_reported(void **state)
{
    struct cmdlog *log;
    char *reason;
    uint64_t life;
    cmdlog_position position;
    (void)state;
    static const char *const wrong[] = {"",
                                        "http://127.0.0.1:1",
                                        "http://127.0.0.1:1/",
                                        "http://127.0.0.1/p",
                                        "ftp://127.0.0.1:1/p",
                                        "http://:1/p",
                                        "http://127.0.0.1:1,/p"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct cmdlog_etcd_options options = {.url = slice_from(wrong[i]), .name = SLICE_LIT("a")};
        assert_int_equal(cmdlog_etcd_open(&options, &log, &reason), TL_ERR_IO);
        mem_free(reason);
    }
    log = open_at("http://127.0.0.1:1,http://[::1]:1/p", "a");
    bool reported = false;
    while (!reported) { /* the client connects in the background */
        assert_int_equal(cmdlog_join(log, SLICE_NONE, clock_boot_us() + 100000, &life), CMDLOG_UNREACHABLE);
        assert_int_equal(cmdlog_read_head(log, clock_boot_us() + 100000, &position), CMDLOG_UNREACHABLE);
        char *error = cmdlog_etcd_last_error(log);
        reported = error != NULL && strstr(error, "cannot connect") != NULL;
        mem_free(error);
    }
    cmdlog_close(log);
}

static void test_append_fails_when_etcd_is_full(void **state)
{
    static const char *const arguments[] = {"--quota-backend-bytes", "6000000", NULL};
    enum { COUNT = 30 };
    struct etcd_fixture *small = etcd_fixture_start(1, arguments);
    cmdlog_position position;
    unsigned in = 0;
    int r = 0;
    (void)state;
    struct cmdlog *log = open_at(etcd_fixture_url(small, "room"), "a");
    join(log);
    while (r == 0 && in < COUNT) {
        r = append_entry(log, "w", in, 700000, &position);
        in += r == 0;
    }
    assert_int_equal(r, TL_ERR_NO_SPACE);
    assert_int_equal(append_entry(log, "w", in, 700000, &position), TL_ERR_NO_SPACE);
    expect_entries(log, 1, "w", 0, in - 1);
    struct cmdlog_space space;
    while (cmdlog_space(log, &space), !space.full)
        usleep(50000);
    assert_true(space.tight && space.size > 0);
    cmdlog_close(log);
    etcd_fixture_stop(small);
}

/*
 * etcd refuses a put for lack of space before it compares the host key. A life that is over learns of its end
 * nevertheless: what the next life of its name has put under these numbers are not its entries.
 */
static void test_put_of_ended_life_is_not_taken_for_one_of_the_next(void **state)
{
    static const char *const arguments[] = {"--quota-backend-bytes", "6000000", NULL};
    struct etcd_fixture *small = etcd_fixture_start(1, arguments);
    struct relay *relay = relay_start(etcd_fixture_port(small, 0));
    const struct slice part = SLICE_LIT("of the life before");
    char url[96];
    cmdlog_position position;
    uint64_t number;
    unsigned in = 0;
    (void)state;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/ended", relay_port(relay));
    struct cmdlog *log = open_at(url, "a"), *next = open_at(etcd_fixture_url(small, "ended"), "a");
    uint64_t life = join(log);
    assert_int_equal(append_entry(log, "w", 0, 100, &position), 0);
    relay_hold(relay, true);
    while (cmdlog_read_head(log, clock_boot_us() + TL_SECOND / 10, &position) != CMDLOG_UNREACHABLE) {
    }
    assert_int_equal(cmdlog_submit(log, &part, 1, CMDLOG_FOREVER, &number), 0);
    assert_int_equal(cmdlog_expel(next, SLICE_LIT("a"), life, CMDLOG_FOREVER), 0);
    join(next);
    while (append_entry(next, "w", in, 700000, &position) == 0)
        in++;
    assert_true(in > 1);
    relay_hold(relay, false);
    assert_int_equal(cmdlog_outcome(log, number, CMDLOG_FOREVER, &position), CMDLOG_UNKNOWN);
    assert_int_equal(cmdlog_submit(log, &part, 1, CMDLOG_FOREVER, &number), CMDLOG_FENCED);
    cmdlog_close(log);
    cmdlog_close(next);
    relay_stop(relay);
    etcd_fixture_stop(small);
}

/* Returns: the space of an etcd whose file has `percent` % of its quota in use. */
static struct cmdlog_space space_at(unsigned percent, bool was_full, bool alarm)
{
    uint64_t size = (uint64_t)percent << 24;
    struct cmdlog_etcd log = {.status = {.size = size, .used = size, .quota = 100 << 24, .alarm_no_space = alarm},
                              .was_full = was_full};
    mutex_init(&log.lock);
    pthread_mutex_lock(&log.lock);
    struct cmdlog_space space = membership__space(&log);
    pthread_mutex_unlock(&log.lock);
    pthread_mutex_destroy(&log.lock);
    return space;
}

static void test_space_has_levels(void **state)
{
    (void)state;
    assert_false(space_at(79, false, false).tight);
    assert_true(space_at(81, false, false).tight);
    assert_false(space_at(89, false, false).full);
    assert_true(space_at(91, false, false).full);
    assert_true(space_at(86, true, false).full);
    assert_false(space_at(84, true, false).full);
    assert_false(space_at(94, false, false).scarce);
    assert_true(space_at(96, false, false).scarce);
    assert_false(space_at(96, false, false).exhausted);
    assert_true(space_at(100, false, false).exhausted);
    assert_true(space_at(10, false, true).exhausted && space_at(10, false, true).full);
}

/*
 * etcd's file never shrinks: a trim leaves it as large as it was, and nearly empty. Only an entry with
 * which the file would reach the quota is refused then.
 */
static void test_large_file_that_is_empty_has_space(void **state)
{
    enum { QUOTA = 32 << 20, LARGEST = CMDLOG_IN_FLIGHT_MAX * ENVELOPE_PART_BYTES };
    struct cmdlog_etcd log = {.status = {.size = QUOTA - (QUOTA >> 4) + 1000, .used = 1 << 20, .quota = QUOTA},
                              .was_full = true};
    (void)state;
    mutex_init(&log.lock);
    pthread_mutex_lock(&log.lock);
    assert_false(membership__space(&log).tight);
    assert_true(membership__has_room(&log, LARGEST));
    log.status.size = QUOTA - ENVELOPE_PART_BYTES / 2;
    assert_true(membership__space(&log).full && !membership__space(&log).scarce);
    assert_false(membership__has_room(&log, LARGEST));
    assert_true(membership__has_room(&log, 1000));
    log.status.size = QUOTA - 1000;
    assert_true(membership__space(&log).exhausted);
    assert_false(membership__has_room(&log, 1000));
    log.status.size = QUOTA - ENVELOPE_PART_BYTES / 2;
    log.status.used = log.status.size; /* no free space: the file grows by each entry */
    log.submitted_bytes = ENVELOPE_PART_BYTES / 2;
    assert_false(membership__has_room(&log, 1000));
    pthread_mutex_unlock(&log.lock);
    pthread_mutex_destroy(&log.lock);
}

static void test_status_reports_alarm(void **state)
{
    struct buf reply = BUF_INIT(BUF_UNLIMITED);
    struct etcd_status status;
    (void)state;
    proto_number(&reply, 3, 4096);
    proto_bytes(&reply, 8, SLICE_LIT("etcdserver: no leader"));
    proto_bytes(&reply, 8, SLICE_LIT("memberID:1 alarm:CORRUPT "));
    proto_number(&reply, 9, 1024);
    assert_int_equal(etcd_read_status(buf_as_slice(&reply), &status), 0);
    assert_true(status.size == 4096 && status.used == 1024 && !status.alarm_no_space);
    proto_bytes(&reply, 8, SLICE_LIT("memberID:1 alarm:NOSPACE "));
    assert_int_equal(etcd_read_status(buf_as_slice(&reply), &status), 0);
    assert_true(status.alarm_no_space);
    proto_number(&reply, 8, 1);
    assert_int_equal(etcd_read_status(buf_as_slice(&reply), &status), TL_ERR_CORRUPT);
    buf_deinit(&reply);
}

/* --- Three members ------------------------------------------------------------------------------------------------ */

/*
 * Each member, and so the leader too, is killed and restarted, or stopped and continued. No entry
 * is lost, duplicated or misplaced.
 */
static void three_members(bool kill_them)
{
    enum { EACH = 15, COUNT = 3 * EACH };
    struct etcd_fixture *fixture = etcd_fixture_start(3, NULL);
    cmdlog_position positions[COUNT];
    struct cmdlog_cursor *cursor;
    struct cmdlog *log = open_at(etcd_fixture_url(fixture, "three"), "a");
    struct writer writer = {.log = log, .name = "w", .count = EACH, .len_max = 100000};
    unsigned next = 0;
    cmdlog_position head = 0;
    join(log);
    assert_int_equal(cmdlog_follow(log, 1, &cursor), 0);
    for (int member = 0; member < 3; member++) {
        if (kill_them)
            etcd_fixture_kill(fixture, member);
        else
            etcd_fixture_signal(fixture, member, SIGSTOP);
        writer.first = (unsigned)member * EACH;
        writer.positions = positions + writer.first;
        if (write_all(&writer) != NULL)
            fail_msg("the life ended: %s", cmdlog_etcd_last_error(log));
        for (unsigned i = 0; i < EACH; i++) {
            struct cmdlog_entry entry;
            assert_int_equal(next_entry(cursor, &entry, CMDLOG_FOREVER), 0);
            assert_int_equal(check_entry(&entry, "w"), next++);
        }
        assert_int_equal(cmdlog_read_head(log, CMDLOG_FOREVER, &head), 0);
        assert_int_equal(head, positions[next - 1]);
        if (kill_them)
            etcd_fixture_restart(fixture, member);
        else
            etcd_fixture_signal(fixture, member, SIGCONT);
    }
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
    etcd_fixture_stop(fixture);
}

static void test_entries_survive_killed_members(void **state)
{
    (void)state;
    three_members(true);
}

static void test_entries_survive_stopped_members(void **state)
{
    (void)state;
    three_members(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_genesis_is_created_once),
        cmocka_unit_test(test_append_accepts_any_size),
        cmocka_unit_test(test_head_is_newest_entry_of_any_host),
        cmocka_unit_test(test_cursor_starts_at_any_position),
        cmocka_unit_test(test_two_hosts_read_the_same_order),
        cmocka_unit_test(test_submit_does_not_wait_for_outcome),
        cmocka_unit_test(test_many_cursors_read_all_entries),
        cmocka_unit_test(test_interrupt_ends_await),
        cmocka_unit_test(test_life_end_rejects_appends),
        cmocka_unit_test(test_life_begins_beside_put_in_flight),
        cmocka_unit_test(test_lease_expires_without_etcd),
        cmocka_unit_test(test_checkpoints_conform),
        cmocka_unit_test(test_trim_retains_second_newest_checkpoint),
        cmocka_unit_test(test_member_is_not_forgotten),
        cmocka_unit_test(test_late_checkpoint_does_not_make_forgotten_host_known),
        cmocka_unit_test(test_halt_of_forgotten_host_is_deleted_when_log_is_trimmed),
        cmocka_unit_test(test_entry_is_skipped_only_if_all_hosts_have_halted),
        cmocka_unit_test(test_attempt_to_halt_has_no_effect_after_resume),
        cmocka_unit_test(test_trim_retains_parts_of_incomplete_entry),
        cmocka_unit_test(test_append_is_exactly_once_when_replies_are_lost),
        cmocka_unit_test(test_append_and_follow_survive_cut_connections),
        cmocka_unit_test(test_cursor_detects_damage),
        cmocka_unit_test(test_unreachable_etcd_is_reported),
        cmocka_unit_test(test_append_fails_when_etcd_is_full),
        cmocka_unit_test(test_put_of_ended_life_is_not_taken_for_one_of_the_next),
        cmocka_unit_test(test_space_has_levels),
        cmocka_unit_test(test_large_file_that_is_empty_has_space),
        cmocka_unit_test(test_status_reports_alarm),
        cmocka_unit_test(test_entries_survive_killed_members),
        cmocka_unit_test(test_entries_survive_stopped_members),
    };
    return cmocka_run_group_tests(tests, start_one, stop_one);
}
