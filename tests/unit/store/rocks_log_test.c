/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zeros ahead of RocksDB's log, and its holes, on files that the tests write as RocksDB would. That RocksDB takes such logs
 * as it should is tested in store_rocks_test.c and tests/sim/store_crash.c.
 */
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/rand.h"
#include "store/rocks_log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 32 << 10, HEADER = 7, LEAD_MAX = 320 << 10 };

struct fixture {
    char directory[64];
    struct rocks_log_ahead ahead;
    uint64_t number; /* of the log written to */
    int fd;
    uint64_t end; /* of what was written to it */
};

static void name_log(const struct fixture *f, uint64_t number, char ret_path[128])
{
    snprintf(ret_path, 128, "%s/%06llu.log", f->directory, (unsigned long long)number);
}

static void begin_log(struct fixture *f, uint64_t number)
{
    char path[128];
    if (f->fd >= 0)
        close(f->fd);
    name_log(f, number, path);
    f->number = number;
    f->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    assert_true(f->fd >= 0);
    f->end = 0;
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    strcpy(f->directory, "/tmp/rocks_log_test.XXXXXX");
    f->fd = -1;
    *state = f;
    if (mkdtemp(f->directory) == NULL)
        return 1;
    rocks_log_ahead_init(&f->ahead, f->directory);
    begin_log(f, 4);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char path[128];
    rocks_log_ahead_deinit(&f->ahead);
    close(f->fd);
    for (uint64_t number = UINT64_MAX; (number = rocks_log_newest(f->directory, number)) != 0;) {
        name_log(f, number, path);
        remove(path);
    }
    assert_int_equal(rmdir(f->directory), 0);
    mem_free(f);
    return 0;
}

static void write_ones(struct fixture *f, size_t len)
{
    char ones[4096];
    memset(ones, 0xff, sizeof ones);
    for (size_t part; len > 0; len -= part, f->end += part) {
        part = len < sizeof ones ? len : sizeof ones;
        assert_int_equal(pwrite(f->fd, ones, part, (off_t)f->end), part);
    }
}

/* A record of `len` bytes as the log's format has it, but that every byte of it is 255. */
static void write_record(struct fixture *f, size_t len)
{
    bool more = true;
    while (more) {
        size_t left = BLOCK - f->end % BLOCK;
        if (left < HEADER) {
            write_ones(f, left);
            left = BLOCK;
        }
        size_t part = len < left - HEADER ? len : left - HEADER;
        write_ones(f, HEADER + part);
        len -= part;
        more = len > 0;
    }
}

/* Asserts that nothing of the log was overwritten, and that what lies behind it is zeros. */
static void check_log(const struct fixture *f)
{
    unsigned char bytes[4096];
    uint64_t at = 0;
    for (ssize_t len; (len = pread(f->fd, bytes, sizeof bytes, (off_t)at)) > 0; at += (uint64_t)len)
        for (ssize_t i = 0; i < len; i++)
            if (bytes[i] != (at + (uint64_t)i < f->end ? 0xff : 0))
                fail_msg("log %llu of %llu bytes: wrong at %llu", (unsigned long long)f->number,
                         (unsigned long long)f->end, (unsigned long long)(at + (uint64_t)i));
}

static uint64_t file_bytes(const struct fixture *f)
{
    struct stat status;
    assert_int_equal(fstat(f->fd, &status), 0);
    return (uint64_t)status.st_size;
}

/* Writes batches of 500 bytes, each synced. */
static void write_small(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++) {
        rocks_log_ahead_batch(&f->ahead, 500);
        write_record(f, 500);
        rocks_log_ahead_synced(&f->ahead);
    }
}

/* Goal: small writes, each synced, soon find the log written ahead of them, and nothing of it is counted as data. */
static void small_syncs_find_zeros(void **state)
{
    struct fixture *f = *state;
    write_small(f, 200);
    assert_int_equal(file_bytes(f), f->end);
    assert_int_equal(rocks_log_ahead_bytes(&f->ahead), 0);
    write_small(f, 200);
    for (int i = 0; i < 5000; i++) {
        uint64_t before = file_bytes(f);
        assert_in_range(before, f->end + 32768, f->end + LEAD_MAX);
        assert_in_range(rocks_log_ahead_bytes(&f->ahead), 32768, before - f->end);
        write_small(f, 1);
    }
    check_log(f);
}

/* Goal: where much is written between two syncs, or none come, nothing is added; nor in a store in memory. */
static void large_syncs_find_none(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2000; i++) {
        rocks_log_ahead_batch(&f->ahead, 5000);
        write_record(f, 5000);
        if (i % 10 == 0 && i < 1000)
            rocks_log_ahead_synced(&f->ahead);
    }
    assert_int_equal(file_bytes(f), f->end);
    struct rocks_log_ahead off;
    rocks_log_ahead_init(&off, NULL);
    rocks_log_ahead_batch(&off, 1 << 20);
    rocks_log_ahead_synced(&off);
    assert_int_equal(rocks_log_ahead_bytes(&off), 0);
    rocks_log_ahead_deinit(&off);
}

/* Goal: a new log is found and written ahead, too; the zeros of the old one do not count any more. */
static void new_logs_are_followed(void **state)
{
    struct fixture *f = *state;
    for (uint64_t number = 5; number < 12; number++) {
        write_small(f, 2000);
        assert_true(file_bytes(f) > f->end);
        check_log(f);
        begin_log(f, number);
    }
}

/* Goal: a log that cannot be opened, or does not take the zeros, is left alone, and the next one is tried again. */
static void logs_that_refuse_are_left(void **state)
{
    struct fixture *f = *state;
    char path[128];
    name_log(f, 9, path);
    assert_int_equal(mkdir(path, 0777), 0);
    write_small(f, 2000);
    assert_int_equal(file_bytes(f), f->end);
    struct rlimit unlimited, full = {600 << 10, RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
    full.rlim_max = unlimited.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    begin_log(f, 10);
    write_small(f, 1100); /* nearly up to where the disk is full */
    check_log(f);
    assert_int_equal(rocks_log_ahead_bytes(&f->ahead), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
    write_small(f, 1500);
    check_log(f);
    begin_log(f, 11);
    write_small(f, 1500);
    assert_true(file_bytes(f) > f->end);
    check_log(f);
}

static size_t draw_size(struct rng *rng)
{
    size_t sizes[] = {64, 600, 5000, BLOCK - HEADER, 100000, 500000};
    size_t size = sizes[rng_below(rng, 2)];
    if (rng_below(rng, 40) == 0)
        size = sizes[rng_below(rng, sizeof sizes / sizeof *sizes)];
    return 12 + (size_t)rng_below(rng, size);
}

/*
 * Goal: whatever sizes batches have, whenever they are synced and a new log begins, also between the call and the batch and with
 * records of RocksDB's own at its beginning, no byte of a log is ever overwritten.
 */
static void no_byte_is_overwritten(void **state)
{
    struct fixture *f = *state;
    uint64_t extended = 0, number = 4;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        for (int i = 0; i < 1500; i++) {
            size_t size = draw_size(&rng);
            bool before = rng_below(&rng, 600) == 0, between = rng_below(&rng, 600) == 0;
            if (before || between)
                check_log(f);
            if (before)
                begin_log(f, number += 1 + rng_below(&rng, 3));
            rocks_log_ahead_batch(&f->ahead, size);
            if (between)
                begin_log(f, number += 1 + rng_below(&rng, 3));
            if (f->end == 0)
                write_record(f, (size_t)rng_below(&rng, 1000));
            write_record(f, size);
            if (rng_below(&rng, 1 + seed % 4) == 0)
                rocks_log_ahead_synced(&f->ahead);
        }
        check_log(f);
        extended += file_bytes(f) > f->end;
    }
    assert_in_range(extended, 3, 30);
}

/* Goal: where RocksDB has written more than its batches, nothing is added. */
static void surprises_end_it(void **state)
{
    struct fixture *f = *state;
    write_small(f, 1000);
    assert_true(file_bytes(f) > f->end);
    write_record(f, 40000);
    write_small(f, 5000);
    check_log(f);
    assert_int_equal(file_bytes(f), f->end);
    begin_log(f, 5);
    write_small(f, 100);
    write_record(f, 200000);
    write_small(f, 1000);
    check_log(f);
    assert_int_equal(file_bytes(f), f->end);
}

/* Gives a fragment its checksum. Requires: its type, and its bytes behind it. */
static void seal(unsigned char *fragment, size_t bytes)
{
    uint32_t sum = crc32c(0, fragment + 6, 1 + bytes);
    sum = ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
    for (int i = 0; i < 4; i++)
        fragment[i] = (unsigned char)(sum >> 8 * i);
}

/* Fills a log with blocks of whole records: 'r' as many as fit, 'z' zeros, '1' one record and zeros behind it. */
static void fill_log(struct fixture *f, const char *blocks)
{
    enum { RECORD = 4096 };
    unsigned char record[RECORD] = {0, 0, 0, 0, (RECORD - HEADER) & 0xff, (RECORD - HEADER) >> 8, 1, 'r'};
    seal(record, RECORD - HEADER);
    assert_int_equal(ftruncate(f->fd, 0), 0);
    for (size_t i = 0; blocks[i] != '\0'; i++)
        for (size_t n = 0; n < (blocks[i] == 'r' ? BLOCK / RECORD : blocks[i] == '1' ? 1 : 0); n++)
            assert_int_equal(pwrite(f->fd, record, RECORD, (off_t)(i * BLOCK + n * RECORD)), RECORD);
    assert_int_equal(ftruncate(f->fd, (off_t)(strlen(blocks) * BLOCK)), 0);
}

static int byte_at(const struct fixture *f, uint64_t offset)
{
    unsigned char byte;
    assert_int_equal(pread(f->fd, &byte, 1, (off_t)offset), 1);
    return byte;
}

/* Goal: a hole is found where it begins and marked, and the mark is taken back where that is asked for. */
static void holes_are_marked(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *blocks;
        uint64_t hole;
    } cases[] = {{"", 0},   {"r", 0},       {"rr1", 0},       {"rr1zz", 0},      {"zzz", 0},
                 {"zr", 0}, {"r1r", 36864}, {"rzr1z", 32768}, {"r1zzz1", 36864}, {"rzzzzzr", 32768}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rocks_log_hole hole;
        bool found = cases[i].hole > 0 || strcmp(cases[i].blocks, "zr") == 0;
        fill_log(f, cases[i].blocks);
        assert_int_equal(rocks_log_mark_hole(f->directory, true, &hole), found ? TL_ERR_CORRUPT : 0);
        assert_int_equal(hole.fd, -1);
        for (int unmark = 1; unmark >= 0; unmark--) {
            assert_int_equal(rocks_log_mark_hole(f->directory, false, &hole), 0);
            assert_int_equal(hole.fd >= 0, found);
            if (found) {
                assert_int_equal(hole.offset, cases[i].hole);
                assert_int_equal(byte_at(f, hole.offset + 6), 1);
            }
            rocks_log_hole_close(&hole, unmark);
            if (found)
                assert_int_equal(byte_at(f, cases[i].hole + 6), !unmark);
        }
    }
}

/* Appends a batch of so many changes as a record of RocksDB, but for the checksum. */
static void write_batch(struct fixture *f, uint64_t sequence, uint32_t count, size_t bytes)
{
    unsigned char *batch = mem_zalloc(bytes);
    for (int i = 0; i < 8; i++)
        batch[i] = (unsigned char)(sequence >> 8 * i);
    for (int i = 0; i < 4; i++)
        batch[8 + i] = (unsigned char)(count >> 8 * i);
    for (size_t at = 0, part; at < bytes; at += part) {
        size_t left = BLOCK - f->end % BLOCK;
        if (left < HEADER) {
            f->end += left;
            left = BLOCK;
        }
        part = bytes - at < left - HEADER ? bytes - at : left - HEADER;
        bool first = at == 0, last = at + part == bytes;
        unsigned char *fragment = mem_zalloc(HEADER + part);
        fragment[4] = (unsigned char)part;
        fragment[5] = (unsigned char)(part >> 8);
        fragment[6] = first && last ? 1 : first ? 2 : last ? 4 : 3;
        memcpy(fragment + HEADER, batch + at, part);
        seal(fragment, part);
        assert_int_equal(pwrite(f->fd, fragment, HEADER + part, (off_t)f->end), HEADER + part);
        mem_free(fragment);
        f->end += HEADER + part;
    }
    mem_free(batch);
}

static void expect_hole(const struct fixture *f, uint64_t number, uint64_t offset)
{
    struct rocks_log_hole hole;
    assert_int_equal(rocks_log_mark_hole(f->directory, true, &hole), number == 0 ? 0 : TL_ERR_CORRUPT);
    assert_int_equal(hole.number, number);
    assert_int_equal(hole.offset, offset);
    assert_int_equal(hole.fd, -1);
}

/* Goal: each log goes on where the one before ended, whatever becomes of its end; else the hole is where that is. */
static void logs_follow_one_another(void **state)
{
    struct fixture *f = *state;
    write_batch(f, 1, 3, 100);
    write_batch(f, 4, 1, 70000); /* over three blocks */
    uint64_t middle = f->end;
    write_batch(f, 5, 2, 5000);
    uint64_t end = f->end;
    int first = dup(f->fd);
    begin_log(f, 6);
    expect_hole(f, 0, 0);
    write_batch(f, 7, 0, 12); /* as RocksDB begins one after a recovery */
    write_batch(f, 7, 1, 200);
    expect_hole(f, 0, 0);
    assert_int_equal(ftruncate(first, (off_t)(end + 9000)), 0); /* zeros ahead */
    expect_hole(f, 0, 0);
    /* what is lost of the last batch of the log before: all of it, its end, its beginning */
    assert_int_equal(ftruncate(first, (off_t)middle), 0);
    expect_hole(f, 4, middle);
    assert_int_equal(ftruncate(first, (off_t)end), 0); /* to zeros */
    expect_hole(f, 4, middle);
    f->fd = (close(f->fd), dup(first));
    f->end = middle;
    write_batch(f, 5, 2, 5000);
    expect_hole(f, 0, 0);
    assert_int_equal(ftruncate(first, (off_t)end - 1), 0);
    expect_hole(f, 4, middle);
    assert_int_equal(ftruncate(first, (off_t)middle + 3), 0);
    expect_hole(f, 4, middle);
    assert_int_equal(ftruncate(first, 0), 0);
    close(first);
    expect_hole(f, 0, 0); /* nothing says that there was anything: no manifest is here */
}

/* Goal: a batch that does not follow the one before it in the same log is a hole. */
static void batches_follow_one_another(void **state)
{
    struct fixture *f = *state;
    write_batch(f, 10, 5, 4000);
    write_batch(f, 15, 5, 4000);
    uint64_t end = f->end;
    expect_hole(f, 0, 0);
    write_batch(f, 21, 1, 40);
    expect_hole(f, 4, end);
}

/* Goal: the mark is taken back to the byte, in zeros, behind the end, and over what is torn. */
static void marks_are_taken_back(void **state)
{
    struct fixture *f = *state;
    struct rocks_log_hole hole;
    for (size_t left = 0; left < 12; left++) {
        begin_log(f, 4);
        write_batch(f, 1, 1, 100);
        uint64_t end = f->end;
        write_batch(f, 2, 1, 12);
        assert_int_equal(ftruncate(f->fd, (off_t)(end + left)), 0);
        int first = dup(f->fd);
        begin_log(f, 5);
        write_batch(f, 9, 1, 50);
        unsigned char before[16] = {0}, after[16] = {0}, marked[HEADER];
        assert_int_equal(pread(first, before, sizeof before, (off_t)end), left);
        assert_int_equal(rocks_log_mark_hole(f->directory, false, &hole), 0);
        assert_int_equal(hole.number, 4);
        assert_int_equal(pread(first, marked, HEADER, (off_t)end), HEADER);
        assert_int_equal(marked[6], 1);
        rocks_log_hole_close(&hole, true);
        assert_int_equal(pread(first, after, sizeof after, (off_t)end), left);
        assert_memory_equal(before, after, sizeof before);
        close(first);
    }
}

/* Goal: a hole counts in whatever log it is, and logs without anything in them are passed over. */
static void the_first_hole_counts(void **state)
{
    struct fixture *f = *state;
    fill_log(f, "rzr");
    begin_log(f, 7);
    begin_log(f, 8);
    fill_log(f, "zz");
    expect_hole(f, 4, BLOCK);
    begin_log(f, 11);
    fill_log(f, "1");
    expect_hole(f, 4, BLOCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_syncs_find_zeros, setup, teardown),
        cmocka_unit_test_setup_teardown(large_syncs_find_none, setup, teardown),
        cmocka_unit_test_setup_teardown(new_logs_are_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(logs_that_refuse_are_left, setup, teardown),
        cmocka_unit_test_setup_teardown(no_byte_is_overwritten, setup, teardown),
        cmocka_unit_test_setup_teardown(surprises_end_it, setup, teardown),
        cmocka_unit_test_setup_teardown(holes_are_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(logs_follow_one_another, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_follow_one_another, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_are_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_hole_counts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
