/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the promises of src/log/README.md, 1 to 6, of both logs, in the cases that a person would try first; and that any bit of a
 * small log may flip, and any sector of it be lost, without a wrong answer. Crashes at random are tests/sim/log_sim.c.
 */
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/disk_sim.h"
#include "base/alloc.h"
#include "base/crc32c.h"
#include "log/log_file.h"
#include "log/log_memory.h"

enum { SEGMENT = 2048 };

static const struct log_file_options options = {.segment_bytes = SEGMENT, .spares_max = 2};

static struct log *open_file(struct disk_sim *sim)
{
    struct log *log;
    char *reason;
    assert_int_equal(log_file_open(disk_sim_disk(sim), &options, &log, &reason), 0);
    return log;
}

/* An entry's bytes follow from its number. */
static struct slice entry_of(unsigned number, size_t len, char *buffer)
{
    for (size_t i = 0; i < len; i++)
        buffer[i] = (char)(number * 31 + i * 7 + i / 251);
    return slice_make(buffer, len);
}

static void append(struct log *log, unsigned number, size_t len)
{
    char *buffer = mem_alloc(len);
    struct slice whole = entry_of(number, len, buffer);
    struct slice parts[3] = {slice_make(whole.data, len / 3), SLICE_NONE, slice_from_offset(whole, len / 3)};
    log_position position;
    assert_int_equal(log_append(log, parts, 3, &position), 0);
    assert_int_equal(position, number);
    mem_free(buffer);
}

/* Entries `from` to `to` are there, of these lengths, and nothing behind them. */
static void expect(struct log *log, unsigned from, unsigned to, size_t (*len_of)(unsigned))
{
    struct log_cursor *cursor;
    struct log_entry entry;
    char *buffer = mem_alloc(100000);
    assert_int_equal(log_follow(log, from, &cursor), 0);
    for (unsigned i = from; i <= to; i++) {
        assert_int_equal(log_next(cursor, &entry), 0);
        assert_int_equal(entry.position, i);
        assert_true(slice_equal(entry.bytes, entry_of(i, len_of(i), buffer)));
    }
    assert_int_equal(log_next(cursor, &entry), LOG_END);
    log_unfollow(cursor);
    mem_free(buffer);
}

static size_t small(unsigned number)
{
    return 1 + number * 37 % 300;
}

static size_t mixed(unsigned number)
{
    return number % 7 == 0 ? 5000 : small(number);
}

/* The sums of RFC 3720, appendix B.4. */
static void test_crc32c(void **state)
{
    char bytes[48];
    (void)state;
    memset(bytes, 0, 32);
    assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (char)i;
    assert_int_equal(crc32c(0, bytes, 32), 0x46dd794e);
    assert_int_equal(crc32c_by_table(0, bytes, 32), 0x46dd794e);
    assert_int_equal(crc32c(crc32c(0, bytes, 13), bytes + 13, 19), 0x46dd794e);
}

static void append_all(struct log *log, unsigned from, unsigned to, size_t (*len_of)(unsigned))
{
    for (unsigned i = from; i <= to; i++)
        append(log, i, len_of(i));
}

static void test_append_and_follow(void **state)
{
    struct disk_sim *sim = disk_sim_new(1);
    struct log *log = open_file(sim);
    struct log_head head;
    (void)state;
    append_all(log, 1, 60, mixed);
    expect(log, 1, 60, mixed);
    expect(log, 35, 60, mixed);
    log_head(log, &head);
    assert_int_equal(head.durable, 0);
    assert_int_equal(log_sync(log, 60), 0);
    log_head(log, &head);
    assert_int_equal(head.durable, 60);
    log_close(log);
    log = open_file(sim);
    expect(log, 1, 60, mixed);
    append_all(log, 61, 80, mixed);
    expect(log, 1, 80, mixed);
    log_close(log);
    disk_sim_free(sim);
}

/* A follower that has come to the end goes on when there is more. */
static void test_follower_waits(void **state)
{
    struct disk_sim *sim = disk_sim_new(2);
    struct log *log = open_file(sim);
    struct log_cursor *cursor;
    struct log_entry entry;
    char buffer[8000];
    (void)state;
    assert_int_equal(log_follow(log, 1, &cursor), 0);
    for (unsigned i = 1; i < 100; i++) {
        assert_int_equal(log_next(cursor, &entry), LOG_END);
        append(log, i, mixed(i));
        assert_int_equal(log_next(cursor, &entry), 0);
        assert_true(slice_equal(entry.bytes, entry_of(i, mixed(i), buffer)));
    }
    log_unfollow(cursor);
    log_close(log);
    disk_sim_free(sim);
}

static void put_checkpoint(struct log *log, log_position position, const char *place)
{
    struct log_checkpoint checkpoint = {position, slice_from(place)};
    assert_int_equal(log_sync(log, position), 0);
    assert_int_equal(log_put_checkpoint(log, &checkpoint), 0);
}

static void test_checkpoints_and_trim(void **state)
{
    struct disk_sim *sim = disk_sim_new(3);
    struct log *log = open_file(sim);
    struct log_checkpoint found;
    struct log_cursor *cursor;
    struct log_head head;
    char place[LOG_PLACE_MAX];
    (void)state;
    append_all(log, 1, 100, mixed);
    assert_int_equal(log_get_checkpoint(log, 0, place, &found), LOG_NOT_FOUND);
    put_checkpoint(log, 40, "forty");
    put_checkpoint(log, 70, "seventy");
    assert_int_equal(log_trim(log, 60), 0);
    log_head(log, &head);
    assert_in_range(head.oldest, 30, 60);
    assert_int_equal(log_follow(log, head.oldest - 1, &cursor), LOG_TRIMMED);
    expect(log, (unsigned)head.oldest, 100, mixed);
    append_all(log, 101, 300, mixed); /* into segments that were used before */
    assert_int_equal(log_sync(log, 300), 0);
    log_close(log);
    log = open_file(sim);
    expect(log, (unsigned)head.oldest, 300, mixed);
    assert_int_equal(log_get_checkpoint(log, 0, place, &found), 0);
    assert_int_equal(found.position, 70);
    assert_slice_equal(found.place, "seventy");
    assert_int_equal(log_get_checkpoint(log, 1, place, &found), 0);
    assert_slice_equal(found.place, "forty");
    log_close(log);
    disk_sim_free(sim);
}

static void test_seal(void **state)
{
    struct disk_sim *sim = disk_sim_new(4);
    struct log *log = open_file(sim);
    struct log_head head;
    (void)state;
    append_all(log, 1, 20, small);
    assert_int_equal(log_seal(log), 0);
    assert_int_equal(log_seal(log), 0);
    log_close(log);
    disk_sim_cut_power(sim);
    log = open_file(sim);
    log_head(log, &head);
    assert_true(head.sealed);
    expect(log, 1, 20, small);
    append_all(log, 21, 30, small);
    log_head(log, &head);
    assert_false(head.sealed);
    log_close(log);
    log = open_file(sim);
    expect(log, 1, 30, small);
    log_close(log);
    disk_sim_free(sim);
}

static void test_prepare_makes_spares(void **state)
{
    struct disk_sim *sim = disk_sim_new(5);
    struct log *log = open_file(sim);
    (void)state;
    assert_int_equal(log_file_prepare(log), 0);
    append_all(log, 1, 60, mixed);
    expect(log, 1, 60, mixed);
    log_close(log);
    disk_sim_free(sim);
}

/* --- Damage ------------------------------------------------------------------------------------------------------- */

static struct disk_sim *durable_log(void)
{
    struct disk_sim *sim = disk_sim_new(6);
    struct log *log = open_file(sim);
    append_all(log, 1, 12, small);
    assert_int_equal(log_sync(log, 12), 0);
    append(log, 13, 3000);
    append_all(log, 14, 20, small);
    put_checkpoint(log, 20, "here");
    append_all(log, 21, 24, small);
    assert_int_equal(log_sync(log, 24), 0);
    log_close(log);
    return sim;
}

static size_t damaged_len(unsigned number)
{
    return number == 13 ? 3000 : small(number);
}

/* Either it is refused with a reason, or all is there: at once, or when it is read. Returns: whether it was refused. */
static bool refused_or_whole(struct disk_sim *sim)
{
    struct log *log;
    struct log_cursor *cursor;
    struct log_entry entry;
    char *reason, buffer[4000];
    int r = log_file_open(disk_sim_disk(sim), &options, &log, &reason);
    if (r < 0) {
        assert_int_equal(r, TL_ERR_CORRUPT);
        assert_non_null(reason);
        mem_free(reason);
        return true;
    }
    assert_int_equal(log_follow(log, 1, &cursor), 0);
    for (unsigned i = 1; i <= 24 && r == 0; i++) {
        r = log_next(cursor, &entry);
        assert_true(r == 0 || r == TL_ERR_CORRUPT);
        if (r == 0)
            assert_true(slice_equal(entry.bytes, entry_of(i, damaged_len(i), buffer)));
    }
    if (r == 0)
        assert_int_equal(log_next(cursor, &entry), LOG_END);
    log_unfollow(cursor);
    log_close(log);
    return r < 0;
}

static void test_every_bit(void **state)
{
    struct disk_sim *sim = durable_log();
    size_t refusals = 0, bits = 0;
    char *bytes;
    size_t len;
    (void)state;
    for (size_t i = 0; disk_sim_file(sim, i, &bytes, &len) != NULL; i++)
        for (size_t bit = 0; bit < len * 8; bit++, bits++) {
            struct disk_sim *copy = disk_sim_copy(sim);
            disk_sim_file(copy, i, &bytes, &len);
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
            refusals += refused_or_whole(copy);
            disk_sim_free(copy);
        }
    assert_true(refusals > bits / 4);
    disk_sim_free(sim);
}

/* A sector that is zeros, or what another sector is: so that old contents turn up. */
static void test_every_sector(void **state)
{
    struct disk_sim *sim = durable_log();
    char *bytes, *from;
    size_t len, from_len;
    (void)state;
    for (size_t i = 0; disk_sim_file(sim, i, &bytes, &len) != NULL; i++)
        for (size_t at = 0; at + DISK_SIM_SECTOR <= len; at += DISK_SIM_SECTOR)
            for (size_t j = 0; disk_sim_file(sim, j, &from, &from_len) != NULL; j++)
                for (size_t with = 0; with + DISK_SIM_SECTOR <= from_len; with += DISK_SIM_SECTOR) {
                    struct disk_sim *copy = disk_sim_copy(sim);
                    disk_sim_file(copy, i, &bytes, &len);
                    memcpy(bytes + at, from + with, DISK_SIM_SECTOR);
                    refused_or_whole(copy);
                    disk_sim_free(copy);
                }
    disk_sim_free(sim);
}

/* --- A real directory --------------------------------------------------------------------------------------------- */

static void test_directory(void **state)
{
    char directory[] = "/tmp/log_test.XXXXXX", command[64];
    struct log_disk *disk;
    struct log *log;
    char *reason;
    (void)state;
    assert_non_null(mkdtemp(directory));
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(log_disk_open(directory, &disk), 0);
        assert_int_equal(log_file_open(disk, &options, &log, &reason), 0);
        expect(log, 1, round * 50, mixed);
        append_all(log, round * 50 + 1, round * 50 + 50, mixed);
        assert_int_equal(log_sync(log, round * 50 + 50), 0);
        expect(log, 1, round * 50 + 50, mixed);
        log_close(log);
    }
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

/* --- The log in memory -------------------------------------------------------------------------------------------- */

static void test_memory(void **state)
{
    struct log_medium *medium = log_medium_new();
    struct log *log = log_memory_open(medium), *other;
    struct log_cursor *cursor;
    struct log_entry entry;
    struct log_head head;
    log_position position;
    struct slice part = SLICE_LIT("forgotten");
    (void)state;
    append_all(log, 1, 30, mixed);
    expect(log, 1, 30, mixed);
    put_checkpoint(log, 20, "twenty");
    assert_int_equal(log_trim(log, 10), 0);
    assert_int_equal(log_follow(log, 9, &cursor), LOG_TRIMMED);
    expect(log, 10, 30, mixed);
    append_all(log, 31, 40, mixed);
    log_close(log);
    log_medium_crash(medium, 3);
    log = log_memory_open(medium);
    log_head(log, &head);
    assert_int_equal(head.appended, 33);
    expect(log, 10, 33, mixed);
    log_medium_forget_answer(medium);
    assert_int_equal(log_append(log, &part, 1, &position), TL_ERR_IO);
    other = log_memory_open(medium);
    assert_int_equal(log_follow(other, 34, &cursor), 0);
    log_medium_show(medium, 33);
    assert_int_equal(log_next(cursor, &entry), LOG_END);
    log_medium_show(medium, LOG_POSITION_MAX);
    assert_int_equal(log_next(cursor, &entry), 0);
    assert_slice_equal(entry.bytes, "forgotten");
    log_unfollow(cursor);
    log_close(other);
    log_close(log);
    log_medium_free(medium);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c),         cmocka_unit_test(test_append_and_follow),
        cmocka_unit_test(test_follower_waits), cmocka_unit_test(test_checkpoints_and_trim),
        cmocka_unit_test(test_seal),           cmocka_unit_test(test_prepare_makes_spares),
        cmocka_unit_test(test_every_bit),      cmocka_unit_test(test_every_sector),
        cmocka_unit_test(test_directory),      cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
