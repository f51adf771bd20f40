/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: guarantees 1 to 7 of src/cmdlog/README.md for the file log and the memory log, in the basic
 * cases; and that no flipped bit or misplaced sector of a small log yields a wrong entry. Random
 * crashes are in tests/sim/cmdlog_sim.c.
 */
#include "../../lib/dies.h"
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/cmdlog_conformance.h"
#include "../../lib/disk_sim.h"
#include "base/alloc.h"
#include "base/crc32c.h"
#include "cmdlog/cmdlog_file.h"
#include "cmdlog/cmdlog_file_internal.h"
#include "cmdlog/cmdlog_memory.h"
#include "cmdlog/segment.h"

enum { SEGMENT = 2048 };

static const struct cmdlog_file_options options = {.segment_bytes = SEGMENT, .spares_max = 2};

static struct cmdlog *open_file(struct disk_sim *sim)
{
    struct cmdlog *log;
    char *reason;
    assert_int_equal(cmdlog_file_open(disk_sim_disk(sim), &options, &log, &reason), 0);
    return log;
}

/* Returns: bytes that follow from the entry's number. */
static struct slice entry_of(unsigned number, size_t len, char *buffer)
{
    for (size_t i = 0; i < len; i++)
        buffer[i] = (char)(number * 31 + i * 7 + i / 251);
    return slice_make(buffer, len);
}

static void append(struct cmdlog *log, unsigned number, size_t len)
{
    char *buffer = mem_alloc(len);
    struct slice whole = entry_of(number, len, buffer);
    struct slice parts[3] = {slice_make(whole.data, len / 3), SLICE_NONE, slice_from_offset(whole, len / 3)};
    cmdlog_position position;
    assert_int_equal(cmdlog_append(log, parts, 3, &position), 0);
    assert_int_equal(position, number);
    mem_free(buffer);
}

/* Checks that the log has entries `from` to `to`, of these lengths, and no more. */
static void expect(struct cmdlog *log, unsigned from, unsigned to, size_t (*len_of)(unsigned))
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    char *buffer = mem_alloc(100000);
    assert_int_equal(cmdlog_follow(log, from, &cursor), 0);
    for (unsigned i = from; i <= to; i++) {
        assert_int_equal(cmdlog_next(cursor, &entry), 0);
        assert_int_equal(entry.position, i);
        assert_true(slice_equal(entry.bytes, entry_of(i, len_of(i), buffer)));
    }
    assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
    cmdlog_unfollow(cursor);
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

/* The checksums of RFC 3720, appendix B.4. */
static void test_crc32c_matches_rfc_3720(void **state)
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

static void append_all(struct cmdlog *log, unsigned from, unsigned to, size_t (*len_of)(unsigned))
{
    for (unsigned i = from; i <= to; i++)
        append(log, i, len_of(i));
}

static void test_append_is_read_back_after_reopen(void **state)
{
    struct disk_sim *sim = disk_sim_new(1);
    struct cmdlog *log = open_file(sim);
    struct cmdlog_head head;
    (void)state;
    append_all(log, 1, 60, mixed);
    expect(log, 1, 60, mixed);
    expect(log, 35, 60, mixed);
    cmdlog_head(log, &head);
    assert_int_equal(head.durable, 0);
    assert_int_equal(cmdlog_sync(log, 60), 0);
    cmdlog_head(log, &head);
    assert_int_equal(head.durable, 60);
    cmdlog_close(log);
    log = open_file(sim);
    expect(log, 1, 60, mixed);
    append_all(log, 61, 80, mixed);
    expect(log, 1, 80, mixed);
    cmdlog_close(log);
    disk_sim_free(sim);
}

/* A cursor at the end of the log returns an entry that is appended later. */
static void test_cursor_continues_after_end(void **state)
{
    struct disk_sim *sim = disk_sim_new(2);
    struct cmdlog *log = open_file(sim);
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    char buffer[8000];
    (void)state;
    assert_int_equal(cmdlog_follow(log, 1, &cursor), 0);
    for (unsigned i = 1; i < 100; i++) {
        assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
        append(log, i, mixed(i));
        assert_int_equal(cmdlog_next(cursor, &entry), 0);
        assert_true(slice_equal(entry.bytes, entry_of(i, mixed(i), buffer)));
    }
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
    disk_sim_free(sim);
}

static void put_checkpoint(struct cmdlog *log, cmdlog_position position, const char *place)
{
    struct cmdlog_checkpoint checkpoint = {position, slice_from(place)};
    assert_int_equal(cmdlog_sync(log, position), 0);
    assert_int_equal(cmdlog_put_checkpoint(log, &checkpoint), 0);
}

static void test_trim_keeps_entries_since_checkpoint(void **state)
{
    struct disk_sim *sim = disk_sim_new(3);
    struct cmdlog *log = open_file(sim);
    struct cmdlog_checkpoint found;
    struct cmdlog_cursor *cursor;
    struct cmdlog_head head;
    char place[CMDLOG_LOCATOR_MAX];
    (void)state;
    append_all(log, 1, 100, mixed);
    assert_int_equal(cmdlog_get_checkpoint(log, 0, place, &found), CMDLOG_NOT_FOUND);
    put_checkpoint(log, 40, "forty");
    put_checkpoint(log, 70, "seventy");
    assert_int_equal(cmdlog_trim(log, 60), 0);
    cmdlog_head(log, &head);
    assert_in_range(head.oldest, 30, 60);
    put_checkpoint(log, 20, "noted late: what is behind it is gone");
    put_checkpoint(log, 70, "seventy, once more");
    assert_int_equal(cmdlog_follow(log, head.oldest - 1, &cursor), CMDLOG_TRIMMED);
    expect(log, (unsigned)head.oldest, 100, mixed);
    append_all(log, 101, 300, mixed); /* into reused segments */
    assert_int_equal(cmdlog_sync(log, 300), 0);
    cmdlog_close(log);
    log = open_file(sim);
    expect(log, (unsigned)head.oldest, 300, mixed);
    assert_int_equal(cmdlog_get_checkpoint(log, 0, place, &found), 0);
    assert_int_equal(found.position, 70);
    assert_slice_equal(found.locator, "seventy, once more");
    assert_int_equal(cmdlog_get_checkpoint(log, 1, place, &found), 0);
    assert_slice_equal(found.locator, "forty");
    cmdlog_close(log);
    disk_sim_free(sim);
}

/* cmdlog_etcd_test.c has the same for etcd. */
static void test_checkpoints_conform(void **state)
{
    static const cmdlog_position positions[3] = {3, 5, 8};
    struct disk_sim *sim = disk_sim_new(1);
    struct cmdlog_medium *medium = cmdlog_medium_new(), *shared = cmdlog_medium_new();
    struct cmdlog *logs[3] = {open_file(sim), cmdlog_memory_open(medium),
                              cmdlog_memory_open_as(shared, SLICE_LIT("a"))};
    uint64_t life;
    (void)state;
    assert_int_equal(cmdlog_join(logs[2], SLICE_NONE, 0, &life), 0);
    for (int i = 0; i < 3; i++) {
        append_all(logs[i], 1, 10, small);
        assert_int_equal(cmdlog_sync(logs[i], 10), 0);
        check_checkpoints(logs[i], positions);
        cmdlog_close(logs[i]);
    }
    cmdlog_medium_free(medium);
    cmdlog_medium_free(shared);
    disk_sim_free(sim);
}

static void test_seal_survives_power_failure(void **state)
{
    struct disk_sim *sim = disk_sim_new(4);
    struct cmdlog *log = open_file(sim);
    struct cmdlog_head head;
    (void)state;
    append_all(log, 1, 20, small);
    assert_int_equal(cmdlog_seal(log), 0);
    assert_int_equal(cmdlog_seal(log), 0);
    cmdlog_close(log);
    disk_sim_cut_power(sim);
    log = open_file(sim);
    cmdlog_head(log, &head);
    assert_true(head.sealed);
    expect(log, 1, 20, small);
    append_all(log, 21, 30, small);
    cmdlog_head(log, &head);
    assert_false(head.sealed);
    cmdlog_close(log);
    log = open_file(sim);
    expect(log, 1, 30, small);
    cmdlog_close(log);
    disk_sim_free(sim);
}

/* Reads the entries from `from` on. Each decreases the unread bytes by its own; at the end they are 0. */
static void expect_unread_bytes(struct cmdlog *log, unsigned from, unsigned to, size_t overhead_max)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    assert_int_equal(cmdlog_follow(log, from, &cursor), 0);
    uint64_t left = cmdlog_unread_bytes(cursor);
    for (unsigned i = from; i <= to; i++) {
        assert_int_equal(cmdlog_next(cursor, &entry), 0);
        uint64_t now = cmdlog_unread_bytes(cursor);
        assert_true(now + entry.bytes.len <= left);
        if (i > from) /* its first reading may skip earlier entries */
            assert_true(left <= now + entry.bytes.len + overhead_max);
        left = now;
    }
    assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
    assert_int_equal(cmdlog_unread_bytes(cursor), 0);
    cmdlog_unfollow(cursor);
}

static void test_unread_bytes_decrease_to_zero(void **state)
{
    /* An entry of 5,000 bytes is in five segments at most, each with a header and a record; a rest may be unused. */
    enum { LAST = 60, OVERHEAD_MAX = 5 * (SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + RECORD_SPACE_MIN) };
    struct disk_sim *sim = disk_sim_new(1);
    struct cmdlog_medium *medium = cmdlog_medium_new();
    struct cmdlog *logs[] = {open_file(sim), cmdlog_memory_open(medium)};
    (void)state;
    for (int i = 0; i < 2; i++) {
        append_all(logs[i], 1, LAST, mixed);
        expect_unread_bytes(logs[i], 1, LAST, i == 0 ? OVERHEAD_MAX : 0);
        expect_unread_bytes(logs[i], 35, LAST, i == 0 ? OVERHEAD_MAX : 0);
        expect_unread_bytes(logs[i], LAST + 1, LAST, 0);
        cmdlog_close(logs[i]);
    }
    cmdlog_medium_free(medium);
    disk_sim_free(sim);
}

static size_t ten(unsigned number)
{
    (void)number;
    return 10;
}

/* For a store that includes entries already: a new log starts after them, also when reopened. */
static void test_new_log_starts_after_entry(void **state)
{
    enum { AFTER = 41 };
    struct disk_sim *sim = disk_sim_new(1);
    const struct cmdlog_file_options behind = {.segment_bytes = SEGMENT, .spares_max = 2, .after = AFTER};
    struct cmdlog *log;
    struct cmdlog_head head;
    struct cmdlog_cursor *cursor;
    char *reason;
    (void)state;
    assert_int_equal(cmdlog_file_open(disk_sim_disk(sim), &behind, &log, &reason), 0);
    const struct cmdlog_checkpoint checkpoint = {.position = AFTER, .locator = SLICE_LIT("store")};
    assert_int_equal(cmdlog_put_checkpoint(log, &checkpoint), 0);
    for (unsigned to = AFTER; to < AFTER + 3; to++) {
        cmdlog_head(log, &head);
        assert_int_equal(head.oldest, AFTER + 1);
        assert_int_equal(head.appended, to);
        assert_int_equal(head.durable, to);
        assert_false(head.sealed);
        assert_int_equal(cmdlog_follow(log, AFTER, &cursor), CMDLOG_TRIMMED);
        expect(log, AFTER + 1, to, ten);
        append(log, to + 1, 10);
        assert_int_equal(cmdlog_sync(log, to + 1), 0);
        cmdlog_close(log);
        log = open_file(sim);
    }
    /* An existing log ignores the option. */
    cmdlog_close(log);
    assert_int_equal(cmdlog_file_open(disk_sim_disk(sim), &(struct cmdlog_file_options){.after = 7}, &log, &reason), 0);
    expect(log, AFTER + 1, AFTER + 3, ten);
    cmdlog_close(log);
    disk_sim_free(sim);
}

/* A disk that calls a hook once, before a write, a rename or a sync, and counts open files. */
static struct cmdlog_disk_functions intercepted;
static const struct cmdlog_disk_functions *original;
static void (*before_write)(struct cmdlog *log), (*before_rename)(struct cmdlog *log);
static void (*before_sync)(struct cmdlog *log);
static struct cmdlog *intercepted_log;
static int open_files; /* opened and not closed */

static void call(void (**hook)(struct cmdlog *log))
{
    void (*once)(struct cmdlog * log) = *hook;
    *hook = NULL;
    if (once != NULL)
        once(intercepted_log);
}

static int intercepted_write(struct cmdlog_disk *disk, int file, uint64_t offset, const struct slice *parts,
                             size_t count)
{
    call(&before_write);
    return original->write(disk, file, offset, parts, count);
}

static int intercepted_rename(struct cmdlog_disk *disk, const char *from, const char *to)
{
    call(&before_rename);
    return original->rename(disk, from, to);
}

static int intercepted_sync(struct cmdlog_disk *disk, int file)
{
    call(&before_sync);
    return original->sync(disk, file);
}

static int intercepted_open(struct cmdlog_disk *disk, const char *name, bool create, int *ret_file)
{
    int r = original->open(disk, name, create, ret_file);
    open_files += r == 0;
    return r;
}

static void intercepted_close(struct cmdlog_disk *disk, int file)
{
    open_files--;
    original->close(disk, file);
}

static struct cmdlog *open_intercepted(struct disk_sim *sim, unsigned spares_max)
{
    const struct cmdlog_file_options opening = {.segment_bytes = SEGMENT, .spares_max = spares_max};
    struct cmdlog_disk *disk = disk_sim_disk(sim);
    char *reason;
    original = disk->functions;
    intercepted = *original;
    intercepted.write = intercepted_write;
    intercepted.rename = intercepted_rename;
    intercepted.sync = intercepted_sync;
    intercepted.open = intercepted_open;
    intercepted.close = intercepted_close;
    open_files = 0;
    disk->functions = &intercepted;
    assert_int_equal(cmdlog_file_open(disk, &opening, &intercepted_log, &reason), 0);
    return intercepted_log;
}

static unsigned count_spares(struct disk_sim *sim)
{
    unsigned count = 0;
    char *bytes;
    size_t len;
    const char *name;
    for (size_t i = 0; (name = disk_sim_file(sim, i, &bytes, &len)) != NULL; i++)
        count += strncmp(name, "spare-", 6) == 0;
    return count;
}

static void shrink(struct cmdlog *log)
{
    assert_int_equal(cmdlog_shrink(log), 0);
}

static void preallocate(struct cmdlog *log)
{
    assert_int_equal(cmdlog_file_preallocate(log), 0);
}

/*
 * On a full disk an append uses the spares that it has reserved, although another thread shrinks
 * the log meanwhile.
 */
static void test_shrink_leaves_reserved_spares(void **state)
{
    struct disk_sim *sim = disk_sim_new(9);
    struct cmdlog *log = open_intercepted(sim, 6);
    (void)state;
    append(log, 1, 10);
    preallocate(log);
    disk_sim_set_capacity(sim, 1); /* no file may grow */
    before_write = shrink;
    append(log, 2, 5000);
    assert_null(before_write);
    assert_int_equal(cmdlog_shrink(log), 0);
    assert_int_equal(count_spares(sim), 0);
    cmdlog_close(log);
    disk_sim_free(sim);
}

/*
 * The limit holds for a trim concurrent with a preallocation, and for an earlier process's spares.
 */
static void test_spares_never_exceed_maximum(void **state)
{
    enum { KEPT = 2, LEFT = 20 };
    struct disk_sim *sim = disk_sim_new(10);
    struct cmdlog *log = open_intercepted(sim, KEPT);
    struct cmdlog_disk *disk = disk_sim_disk(sim);
    (void)state;
    append_all(log, 1, 60, mixed);
    put_checkpoint(log, 60, "here");
    shrink(log);
    before_rename = preallocate;
    assert_int_equal(cmdlog_trim(log, 60), 0);
    assert_null(before_rename);
    assert_int_equal(count_spares(sim), KEPT);
    cmdlog_close(log);
    for (int i = 0; i < LEFT; i++) {
        char name[32];
        int file;
        snprintf(name, sizeof name, "spare-%016x", 0x1000 + i);
        assert_int_equal(disk->functions->open(disk, name, true, &file), 0);
        disk->functions->close(disk, file);
    }
    disk->functions->free(disk);
    log = open_intercepted(sim, KEPT);
    assert_int_equal(count_spares(sim), KEPT);
    append_all(log, 61, 80, mixed);
    cmdlog_close(log);
    disk_sim_free(sim);
}

enum { FULL_BYTES = SEGMENT - SEGMENT_HEADER_BYTES - RECORD_HEADER_BYTES }; /* fill a segment exactly */

static void append_full(struct cmdlog *log)
{
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    append(log, (unsigned)head.appended + 1, FULL_BYTES);
}

static size_t full(unsigned number)
{
    (void)number;
    return FULL_BYTES;
}

/*
 * Segments that become full exactly, synced after it, during the sync of the one before, or two at
 * once: at most the last one's file and that of `durable` stay open.
 */
static void test_full_segments_are_closed(void **state)
{
    enum { SEGMENTS = 60 };
    struct disk_sim *sim = disk_sim_new(13);
    struct cmdlog *log = open_intercepted(sim, 2);
    struct cmdlog_head head;
    (void)state;
    int before = open_files;
    do {
        append_full(log);
        cmdlog_head(log, &head);
        if (head.appended % 5 == 0)
            append_full(log);
        before_sync = head.appended % 3 == 0 ? append_full : NULL;
        cmdlog_head(log, &head);
        assert_int_equal(cmdlog_sync(log, head.appended), 0);
        assert_null(before_sync);
        cmdlog_head(log, &head);
        assert_int_equal(cmdlog_sync(log, head.appended), 0);
        assert_in_range(open_files, 0, before);
    } while (head.appended < SEGMENTS);
    expect(log, 1, (unsigned)head.appended, full);
    put_checkpoint(log, head.appended, "here");
    assert_int_equal(cmdlog_trim(log, head.appended), 0);
    cmdlog_close(log);
    assert_int_equal(open_files, 0);
    disk_sim_free(sim);
}

/*
 * Bytes that a failed sync did not write are still read as if written. Nothing after them may be
 * acknowledged, and the next process writes them again.
 */
static void test_failed_sync_is_repaired_by_reopen(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct disk_sim *sim = disk_sim_new(seed);
        struct cmdlog *log = open_file(sim);
        struct slice part = SLICE_LIT("more");
        struct cmdlog_head head;
        cmdlog_position position;
        append_all(log, 1, 10, mixed);
        disk_sim_fail_syncs(sim, 1);
        assert_int_equal(cmdlog_sync(log, 10), TL_ERR_IO);
        disk_sim_fail_syncs(sim, 0);
        assert_int_equal(cmdlog_sync(log, 10), TL_ERR_IO);
        assert_int_equal(cmdlog_append(log, &part, 1, &position), TL_ERR_IO);
        assert_int_equal(cmdlog_seal(log), TL_ERR_IO);
        cmdlog_close(log);
        log = open_file(sim);
        cmdlog_head(log, &head);
        unsigned next = (unsigned)head.appended + 1; /* some may have been evicted before */
        append_all(log, next, next, mixed);
        assert_int_equal(cmdlog_sync(log, next), 0);
        cmdlog_close(log);
        disk_sim_cut_power(sim);
        log = open_file(sim);
        expect(log, 1, next, mixed);
        cmdlog_close(log);
        disk_sim_free(sim);
    }
}

static size_t sector(unsigned number)
{
    (void)number;
    return DISK_SIM_SECTOR - 32; /* a whole sector with its header */
}

/*
 * A record after a torn end is overwritten with zeros, but that sync fails: it reads as zeros, and
 * may still be on the disk. The torn entry is appended again, so that the old record would fit
 * after it.
 */
static void test_truncated_entries_never_reappear(void **state)
{
    unsigned torn = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct disk_sim *sim = disk_sim_new(seed);
        struct cmdlog *log = open_file(sim);
        struct cmdlog_head head;
        char *reason = NULL;
        append_all(log, 1, 1, sector);
        assert_int_equal(cmdlog_sync(log, 1), 0);
        append_all(log, 2, 3, sector);
        cmdlog_close(log);
        disk_sim_cut_power(sim);
        disk_sim_fail_syncs(sim, 1);
        assert_int_equal(cmdlog_file_open(disk_sim_disk(sim), &options, &log, &reason), TL_ERR_IO);
        disk_sim_fail_syncs(sim, 0);
        log = open_file(sim);
        cmdlog_head(log, &head);
        if (head.appended == 1) {
            torn++;
            append_all(log, 2, 2, sector);
            assert_int_equal(cmdlog_sync(log, 2), 0);
            cmdlog_close(log);
            disk_sim_cut_power(sim);
            log = open_file(sim);
            expect(log, 1, 2, sector);
        }
        cmdlog_close(log);
        disk_sim_free(sim);
    }
    assert_true(torn > 10);
}

static struct cmdlog_lineage lineage_of(struct cmdlog *log, cmdlog_position position)
{
    struct cmdlog_lineage lineage;
    assert_int_equal(cmdlog_lineage(log, position, &lineage), 0);
    return lineage;
}

static void assert_same(const struct cmdlog_lineage *a, const struct cmdlog_lineage *b)
{
    assert_memory_equal(a->identity, b->identity, CMDLOG_IDENTITY_BYTES);
    assert_int_equal(a->history_crc, b->history_crc);
}

/* Opens a log on `sim` that continues after an entry of `lineage`; 0, zeros: no entry. */
static struct cmdlog *open_after(struct disk_sim *sim, cmdlog_position after, struct cmdlog_lineage lineage)
{
    const struct cmdlog_file_options behind = {.segment_bytes = SEGMENT, .after = after, .lineage = lineage};
    struct cmdlog *log;
    char *reason;
    assert_int_equal(cmdlog_file_open(disk_sim_disk(sim), &behind, &log, &reason), 0);
    return log;
}

/*
 * An entry's lineage is the same whether it is the newest, and after appends, a seal, a trim and an
 * opening. Another log's differs.
 */
static void test_lineage_identifies_history(void **state)
{
    enum { COUNT = 100, TRIMMED = 60 };
    struct disk_sim *sim = disk_sim_new(6), *copied = disk_sim_new(7), *strange = disk_sim_new(8);
    struct cmdlog_lineage of[COUNT + 1];
    struct cmdlog *log = open_file(sim), *copy, *other;
    struct cmdlog_head head;
    (void)state;
    for (unsigned i = 1; i <= COUNT; i++) {
        append_all(log, i, i, mixed);
        of[i] = lineage_of(log, i);
        assert_true(i == 1 || of[i].history_crc != of[i - 1].history_crc);
    }
    put_checkpoint(log, TRIMMED, "here");
    assert_int_equal(cmdlog_trim(log, TRIMMED), 0);
    assert_int_equal(cmdlog_seal(log), 0);
    for (int times = 0; times < 3; times++) {
        cmdlog_head(log, &head);
        for (cmdlog_position i = head.oldest; i <= COUNT; i++) {
            struct cmdlog_lineage now = lineage_of(log, i);
            assert_same(&now, &of[i]);
        }
        assert_int_equal(lineage_of(log, head.oldest - 1).history_crc, 0);
        assert_int_equal(lineage_of(log, head.appended + 1).history_crc, 0);
        append(log, (unsigned)head.appended + 1, 10);
        cmdlog_close(log);
        log = open_file(sim);
    }
    copy = open_after(copied, TRIMMED, of[TRIMMED]);
    for (unsigned i = 0; i < 3; i++) {
        struct cmdlog_lineage now = lineage_of(copy, TRIMMED);
        assert_same(&now, &of[TRIMMED]);
        append(copy, TRIMMED + 1 + i, mixed(TRIMMED + 1 + i));
        now = lineage_of(copy, TRIMMED + 1 + i);
        assert_memory_equal(now.identity, of[1].identity, CMDLOG_IDENTITY_BYTES);
        assert_false(cmdlog_lineage_fits(&now, &of[TRIMMED + 1 + i])); /* it has diverged */
        cmdlog_close(copy);
        copy = open_after(copied, 0, (struct cmdlog_lineage){.history_crc = 0});
        struct cmdlog_lineage again = lineage_of(copy, TRIMMED + 1 + i);
        assert_same(&again, &now);
    }
    other = open_file(strange);
    append_all(other, 1, COUNT, mixed);
    for (unsigned i = 1; i <= COUNT; i++) {
        struct cmdlog_lineage now = lineage_of(other, i);
        assert_false(cmdlog_lineage_fits(&now, &of[i]));
        /* A state of an old version has no identity. */
        assert_true(cmdlog_lineage_fits(&now, &(struct cmdlog_lineage){.history_crc = 7}));
    }
    cmdlog_close(log);
    cmdlog_close(copy);
    cmdlog_close(other);
    disk_sim_free(sim);
    disk_sim_free(copied);
    disk_sim_free(strange);
}

static void test_preallocate_creates_spares(void **state)
{
    struct disk_sim *sim = disk_sim_new(5);
    struct cmdlog *log = open_file(sim);
    (void)state;
    assert_int_equal(cmdlog_file_preallocate(log), 0);
    append_all(log, 1, 60, mixed);
    expect(log, 1, 60, mixed);
    cmdlog_close(log);
    disk_sim_free(sim);
}

static bool wants_space(struct cmdlog *log)
{
    struct cmdlog_head head;
    cmdlog_head(log, &head);
    return head.wants_space;
}

/*
 * A thread that prepares the log when it wants space is in time: no append makes a spare. Nor is one wanted before
 * half of a segment is full.
 */
static void test_no_append_makes_a_spare_that_was_asked_for(void **state)
{
    struct disk_sim *sim = disk_sim_new(11);
    struct cmdlog *log = open_file(sim);
    const struct cmdlog_file *file = (const struct cmdlog_file *)log;
    unsigned wanted = 0;
    (void)state;
    assert_false(wants_space(log));
    for (unsigned i = 1; i <= 400; i++) {
        append(log, i, small(i));
        if (!wants_space(log))
            continue;
        wanted++;
        assert_true(file->end.offset > SEGMENT / 2);
        assert_int_equal(cmdlog_preallocate(log), 0);
        assert_false(wants_space(log));
    }
    assert_true(wanted > 20);
    assert_int_equal(file->spares_late, 0);
    append(log, 401, 2 * SEGMENT); /* more than a segment: no notice was given */
    assert_true(file->spares_late > 0);
    cmdlog_close(log);
    disk_sim_free(sim);
}

static unsigned opened; /* open calls, also those that failed */

static int full_open(struct cmdlog_disk *disk, const char *name, bool create, int *ret_file)
{
    opened++;
    return original->open(disk, name, create, ret_file);
}

/* A spare for which the disk has no space is tried again after a while, not by each thread that prepares the log. */
static void test_full_disk_is_not_tried_again_at_once(void **state)
{
    struct disk_sim *sim = disk_sim_new(12);
    struct cmdlog *log = open_intercepted(sim, 2);
    struct cmdlog_file *file = (struct cmdlog_file *)log;
    (void)state;
    intercepted.open = full_open;
    unsigned number = 0;
    while (!wants_space(log))
        append(log, ++number, small(1));
    disk_sim_set_capacity(sim, 1);
    opened = 0;
    assert_int_equal(cmdlog_preallocate(log), 0);
    assert_int_equal(opened, 1);
    assert_true(file->prepare_after > 0);
    file->prepare_after = UINT64_MAX; /* the clock does not reach it in this test */
    assert_false(wants_space(log));
    assert_int_equal(cmdlog_preallocate(log), 0);
    assert_int_equal(opened, 1);
    disk_sim_set_capacity(sim, UINT64_MAX);
    file->prepare_after = 1; /* it has passed */
    assert_true(wants_space(log));
    assert_int_equal(cmdlog_preallocate(log), 0);
    assert_int_equal(opened, 2);
    assert_int_equal(file->prepare_after, 0);
    assert_int_equal(count_spares(sim), 1);
    cmdlog_close(log);
    disk_sim_free(sim);
}

static void assert_wants_no_space(struct cmdlog *log)
{
    assert_false(wants_space(log));
    assert_int_equal(cmdlog_preallocate(log), 0); /* does not wait for the thread that makes it */
}

/* While a thread makes a spare no other one is asked for it. */
static void test_no_space_is_wanted_while_a_spare_is_made(void **state)
{
    struct disk_sim *sim = disk_sim_new(13);
    struct cmdlog *log = open_intercepted(sim, 2);
    unsigned number = 0;
    (void)state;
    while (!wants_space(log))
        append(log, ++number, small(1));
    before_sync = assert_wants_no_space;
    assert_int_equal(cmdlog_preallocate(log), 0);
    assert_null(before_sync); /* it was called */
    assert_int_equal(count_spares(sim), 1);
    cmdlog_close(log);
    disk_sim_free(sim);
}

/* Guarantee 7: an append without space has written nothing, and succeeds later. */
static void test_append_on_full_disk_writes_nothing(void **state)
{
    struct disk_sim *sim = disk_sim_new(15);
    struct cmdlog *log = open_file(sim);
    char buffer[20000];
    cmdlog_position position;
    (void)state;
    append_all(log, 1, 3, small);
    disk_sim_set_capacity(sim, 1);
    for (int i = 0; i < 3; i++) {
        struct slice large = entry_of(4, sizeof buffer, buffer);
        assert_int_equal(cmdlog_append(log, &large, 1, &position), TL_ERR_NO_SPACE);
    }
    expect(log, 1, 3, small);
    append(log, 4, small(4)); /* it fits into the segment */
    assert_int_equal(cmdlog_sync(log, 4), 0);
    disk_sim_set_capacity(sim, UINT64_MAX);
    append_all(log, 5, 60, mixed);
    assert_int_equal(cmdlog_sync(log, 60), 0);
    assert_int_equal(cmdlog_preallocate(log), 0);
    assert_int_equal(cmdlog_shrink(log), 0);
    cmdlog_close(log);
    disk_sim_cut_power(sim);
    log = open_file(sim);
    append_all(log, 61, 70, mixed);
    cmdlog_close(log);
    disk_sim_free(sim);
}

/* --- Damage ------------------------------------------------------------------------------------------------------- */

static struct disk_sim *durable_log(void)
{
    struct disk_sim *sim = disk_sim_new(6);
    struct cmdlog *log = open_file(sim);
    append_all(log, 1, 12, small);
    assert_int_equal(cmdlog_sync(log, 12), 0);
    append(log, 13, 3000);
    append_all(log, 14, 20, small);
    put_checkpoint(log, 20, "here");
    append_all(log, 21, 24, small);
    assert_int_equal(cmdlog_sync(log, 24), 0);
    cmdlog_close(log);
    return sim;
}

static size_t damaged_len(unsigned number)
{
    return number == 13 ? 3000 : small(number);
}

/*
 * Checks that the damaged log is refused with a reason, at once or when read, or has all entries.
 * Returns: whether it was refused.
 */
static bool open_is_refused(struct disk_sim *sim)
{
    struct cmdlog *log;
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    char *reason, buffer[4000];
    int r = cmdlog_file_open(disk_sim_disk(sim), &options, &log, &reason);
    if (r < 0) {
        assert_int_equal(r, TL_ERR_CORRUPT);
        assert_non_null(reason);
        mem_free(reason);
        return true;
    }
    assert_int_equal(cmdlog_follow(log, 1, &cursor), 0);
    for (unsigned i = 1; i <= 24 && r == 0; i++) {
        r = cmdlog_next(cursor, &entry);
        assert_true(r == 0 || r == TL_ERR_CORRUPT);
        if (r == 0)
            assert_true(slice_equal(entry.bytes, entry_of(i, damaged_len(i), buffer)));
    }
    if (r == 0)
        assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
    return r < 0;
}

/*
 * All bits take a minute under a sanitizer (make test-long). Otherwise every BIT_STRIDEth is
 * tested, with another start for each commit.
 */
enum { BIT_STRIDE = 11 };

static size_t bit_stride(size_t *ret_first)
{
    const char *seed = getenv("TIDELOCK_FIRST_SEED");
    size_t stride = getenv("TIDELOCK_TEST_LONG") != NULL ? 1 : BIT_STRIDE;
    *ret_first = seed == NULL ? 0 : strtoull(seed, NULL, 10) % stride;
    return stride;
}

static void test_bit_flip_is_detected(void **state)
{
    struct disk_sim *sim = durable_log();
    size_t refusals = 0, bits = 0, first;
    size_t stride = bit_stride(&first);
    char *bytes;
    size_t len;
    (void)state;
    for (size_t i = 0; disk_sim_file(sim, i, &bytes, &len) != NULL; i++)
        for (size_t bit = first; bit < len * 8; bit += stride, bits++) {
            struct disk_sim *copy = disk_sim_copy(sim);
            disk_sim_file(copy, i, &bytes, &len);
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
            refusals += open_is_refused(copy);
            disk_sim_free(copy);
        }
    assert_true(refusals > bits / 4);
    disk_sim_free(sim);
}

/* Each sector is replaced by each other sector, among them zeros and old contents. */
static void test_misplaced_sector_is_detected(void **state)
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
                    open_is_refused(copy);
                    disk_sim_free(copy);
                }
    disk_sim_free(sim);
}

/* --- A real directory --------------------------------------------------------------------------------------------- */

static void test_log_in_directory_survives_reopen(void **state)
{
    char directory[] = "/tmp/log_test.XXXXXX", command[64];
    struct cmdlog_disk *disk;
    struct cmdlog *log;
    char *reason;
    (void)state;
    assert_non_null(mkdtemp(directory));
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(cmdlog_disk_open(directory, &disk), 0);
        assert_int_equal(cmdlog_file_open(disk, &options, &log, &reason), 0);
        expect(log, 1, round * 50, mixed);
        append_all(log, round * 50 + 1, round * 50 + 50, mixed);
        assert_int_equal(cmdlog_sync(log, round * 50 + 50), 0);
        expect(log, 1, round * 50 + 50, mixed);
        cmdlog_close(log);
    }
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

/* --- The log in memory -------------------------------------------------------------------------------------------- */

static void test_memory_log_injects_faults(void **state)
{
    struct cmdlog_medium *medium = cmdlog_medium_new();
    struct cmdlog *log = cmdlog_memory_open(medium), *other;
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct cmdlog_head head;
    cmdlog_position position;
    struct slice part = SLICE_LIT("forgotten");
    (void)state;
    append_all(log, 1, 30, mixed);
    expect(log, 1, 30, mixed);
    put_checkpoint(log, 20, "twenty");
    assert_int_equal(cmdlog_trim(log, 10), 0);
    assert_int_equal(cmdlog_follow(log, 9, &cursor), CMDLOG_TRIMMED);
    expect(log, 10, 30, mixed);
    append_all(log, 31, 40, mixed);
    cmdlog_close(log);
    cmdlog_medium_crash(medium, 3);
    log = cmdlog_memory_open(medium);
    cmdlog_head(log, &head);
    assert_int_equal(head.appended, 33);
    expect(log, 10, 33, mixed);
    cmdlog_medium_lose_reply(medium);
    assert_int_equal(cmdlog_append(log, &part, 1, &position), TL_ERR_IO);
    other = cmdlog_memory_open(medium);
    assert_int_equal(cmdlog_follow(other, 34, &cursor), 0);
    cmdlog_medium_set_visible(medium, 33);
    assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
    cmdlog_medium_set_visible(medium, CMDLOG_POSITION_MAX);
    assert_int_equal(cmdlog_next(cursor, &entry), 0);
    assert_slice_equal(entry.bytes, "forgotten");
    cmdlog_unfollow(cursor);
    cmdlog_close(other);
    cmdlog_close(log);
    cmdlog_medium_free(medium);
}

/* The shared memory log has the guarantees of etcd's; faults are injected. */
static void test_memory_shared_log_keeps_guarantees(void **state)
{
    struct cmdlog_medium *medium = cmdlog_medium_new();
    struct cmdlog *a = cmdlog_memory_open_as(medium, SLICE_LIT("a")),
                  *b = cmdlog_memory_open_as(medium, SLICE_LIT("b"));
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct cmdlog_hosts *hosts;
    struct cmdlog_lease lease;
    cmdlog_position position;
    uint64_t life_a, life_b, number;
    struct slice part = SLICE_LIT("x");
    (void)state;
    assert_int_equal(cmdlog_submit(a, &part, 1, 0, &number), CMDLOG_FENCED);
    assert_int_equal(cmdlog_join(a, SLICE_LIT("A"), 0, &life_a), 0);
    assert_int_equal(cmdlog_join(b, SLICE_LIT("B"), 0, &life_b), 0);
    assert_true(life_b > life_a);
    assert_int_equal(cmdlog_list_hosts(a, 0, 0, &hosts), 0);
    assert_int_equal(hosts->count, 2);
    assert_slice_equal(hosts->hosts[1].about, "B");
    assert_int_equal(cmdlog_list_hosts(a, hosts->version, 0, &(struct cmdlog_hosts *){NULL}), CMDLOG_END);
    mem_free(hosts);
    assert_int_equal(cmdlog_follow(b, 1, &cursor), 0);
    assert_int_equal(cmdlog_await(cursor, 0), CMDLOG_END);
    assert_int_equal(cmdlog_submit(a, &part, 1, 0, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(cmdlog_outcome(a, number, 0, &position), 0);
    assert_int_equal(cmdlog_await(cursor, 0), 0);
    assert_int_equal(cmdlog_next(cursor, &entry), 0);
    assert_slice_equal(entry.host, "a");
    assert_true(entry.life == life_a && entry.number == 1 && entry.position == position &&
                cmdlog_cursor_position(cursor) == position);

    /*
     * After its life has ended, a host's appends are rejected. A new life continues the numbers. A
     * lost reply ends the life.
     */
    cmdlog_medium_end_life(medium, SLICE_LIT("a"));
    cmdlog_lease(a, &lease);
    assert_int_equal(lease.life, 0);
    assert_int_equal(cmdlog_append(a, &part, 1, &position), CMDLOG_FENCED);
    assert_int_equal(cmdlog_join(a, SLICE_NONE, 0, &life_a), 0);
    assert_true(life_a > life_b);
    cmdlog_medium_lose_reply(medium);
    assert_int_equal(cmdlog_append(a, &part, 1, &position), CMDLOG_UNKNOWN);
    assert_int_equal(cmdlog_append(a, &part, 1, &position), CMDLOG_FENCED);
    assert_int_equal(cmdlog_next(cursor, &entry), 0);
    assert_true(entry.life == life_a && entry.number == 2 && entry.position == position);

    /*
     * A partitioned host reads and appends nothing until reconnected. A full log accepts nothing.
     */
    assert_int_equal(cmdlog_append(b, &part, 1, &position), 0);
    cmdlog_medium_partition(medium, SLICE_LIT("b"), true);
    assert_int_equal(cmdlog_read_head(b, 0, &position), CMDLOG_UNREACHABLE);
    assert_int_equal(cmdlog_submit(b, &part, 1, 0, &number), CMDLOG_BUSY);
    assert_int_equal(cmdlog_next(cursor, &entry), CMDLOG_END);
    cmdlog_medium_partition(medium, SLICE_LIT("b"), false);
    assert_int_equal(cmdlog_next(cursor, &entry), 0);
    cmdlog_medium_set_full(medium, true);
    assert_int_equal(cmdlog_append(b, &part, 1, &position), TL_ERR_NO_SPACE);
    cmdlog_medium_set_full(medium, false);
    cmdlog_interrupt(cursor);
    assert_int_equal(cmdlog_await(cursor, CMDLOG_FOREVER), CMDLOG_END);
    cmdlog_unfollow(cursor);

    /* Each host has checkpoints; the log is retained from the second newest host's on. */
    put_checkpoint(a, 3, "three");
    put_checkpoint(b, 1, "one");
    assert_int_equal(cmdlog_trim(a, 3), 0);
    assert_int_equal(cmdlog_follow(a, 1, &cursor), CMDLOG_TRIMMED);
    assert_int_equal(cmdlog_follow(a, 2, &cursor), 0);
    cmdlog_unfollow(cursor);
    cmdlog_close(a);
    cmdlog_close(b);
    cmdlog_medium_free(medium);
}

/* As on etcd (cmdlog_etcd_test.c): a forgotten host's checkpoint makes it known again only while it is a member. */
static void test_memory_forgotten_host_is_not_known_again(void **state)
{
    struct cmdlog_medium *medium = cmdlog_medium_new();
    struct cmdlog *a = cmdlog_memory_open_as(medium, SLICE_LIT("a")),
                  *b = cmdlog_memory_open_as(medium, SLICE_LIT("b"));
    const struct cmdlog_checkpoint first = {1, SLICE_LIT("b"), 1};
    struct cmdlog_known_hosts *known;
    struct slice part = SLICE_LIT("x");
    cmdlog_position position;
    uint64_t life;
    (void)state;
    assert_int_equal(cmdlog_join(a, SLICE_NONE, 0, &life), 0);
    assert_int_equal(cmdlog_append(a, &part, 1, &position), 0);
    assert_int_equal(cmdlog_put_checkpoint(b, &first), 0); /* before it joins: it is known */
    assert_int_equal(cmdlog_join(b, SLICE_NONE, 0, &life), 0);
    assert_int_equal(cmdlog_leave(b, 0), 0);
    assert_int_equal(cmdlog_forget_host(a, SLICE_LIT("b"), 0), 0);
    assert_int_equal(cmdlog_put_checkpoint(b, &first), CMDLOG_FENCED);
    assert_int_equal(cmdlog_trim(b, 1), 0);
    assert_int_equal(cmdlog_list_checkpoints(a, 0, &known), 0);
    assert_int_equal(known->count, 0);
    mem_free(known);
    assert_int_equal(cmdlog_join(b, SLICE_NONE, 0, &life), 0);
    assert_int_equal(cmdlog_put_checkpoint(b, &first), 0);
    assert_int_equal(cmdlog_list_checkpoints(a, 0, &known), 0);
    assert_int_equal(known->count, 1);
    mem_free(known);
    cmdlog_close(a);
    cmdlog_close(b);
    cmdlog_medium_free(medium);
}

/* The retention rule of src/cmdlog/README.md, "Trimming". */
static void test_trim_bound_follows_retention_rule(void **state)
{
    struct cmdlog_known_hosts *known = mem_zalloc(sizeof *known + 3 * sizeof known->hosts[0]);
    static const cmdlog_position positions[3] = {900, 500, 100};
    (void)state;
    assert_int_equal(cmdlog_trim_bound(known, 1000, false), 0);
    for (unsigned i = 0; i < 3; i++)
        known->hosts[i].newest = (struct cmdlog_checkpoint){.position = positions[i], .log_bytes = positions[i] * 10};
    known->count = 1;
    assert_int_equal(cmdlog_trim_bound(known, 1000, false), 900);
    known->count = 2;
    assert_int_equal(cmdlog_trim_bound(known, 1000, false), 500);
    known->count = 3;
    assert_int_equal(cmdlog_trim_bound(known, 8000, false), 100);
    assert_int_equal(cmdlog_trim_bound(known, 7999, false), 500);
    assert_int_equal(cmdlog_trim_bound(known, 8000, true), 500);
    known->hosts[2].newest.log_bytes = 9001; /* more than the newest has: that one began to count later */
    assert_int_equal(cmdlog_trim_bound(known, 0, false), 100);
    mem_free(known);
}

static void sync_second(void *log)
{
    (void)!cmdlog_sync(log, 2);
}

static void encode(void *record)
{
    char bytes[RECORD_HEADER_BYTES];
    struct slice payload = SLICE_LIT("four");
    record_encode(0, record, &payload, 1, bytes);
}

static void preallocate_other(void *log)
{
    (void)!cmdlog_file_preallocate(log);
}

/*
 * Goal: the log cannot be asked to wait for an entry that was never appended, and cannot write a
 * record that a reader takes for damage; a log of another kind is recognized.
 */
static void test_wrong_calls_end_the_process(void **state)
{
    struct disk_sim *sim = disk_sim_new(1);
    struct cmdlog *log = open_file(sim);
    struct record record = {.len = 5, .position = 7, .kind = RECORD_WHOLE, .durable = 6};
    (void)state;
    append(log, 1, 10);
    assert_dies(sync_second, log, "REQUIRE(is_appended(log, position)) failed at ");
    assert_dies(encode, &record, "REQUIRE(len == record->len) failed at ");
    record.len = 4;
    encode(&record);
    record.durable = 7;
    assert_dies(encode, &record, "REQUIRE(record->durable < record->position) failed at ");
    struct cmdlog_medium *medium = cmdlog_medium_new();
    struct cmdlog *other = cmdlog_memory_open(medium);
    assert_dies(preallocate_other, other, "REQUIRE(MAGIC_VALID(log, CMDLOG_FILE_MAGIC)) failed at ");
    cmdlog_close(other);
    cmdlog_medium_free(medium);
    cmdlog_close(log);
    disk_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_shared_log_keeps_guarantees),
        cmocka_unit_test(test_memory_forgotten_host_is_not_known_again),
        cmocka_unit_test(test_trim_bound_follows_retention_rule),
        cmocka_unit_test(test_new_log_starts_after_entry),
        cmocka_unit_test(test_crc32c_matches_rfc_3720),
        cmocka_unit_test(test_append_is_read_back_after_reopen),
        cmocka_unit_test(test_cursor_continues_after_end),
        cmocka_unit_test(test_unread_bytes_decrease_to_zero),
        cmocka_unit_test(test_trim_keeps_entries_since_checkpoint),
        cmocka_unit_test(test_checkpoints_conform),
        cmocka_unit_test(test_seal_survives_power_failure),
        cmocka_unit_test(test_lineage_identifies_history),
        cmocka_unit_test(test_shrink_leaves_reserved_spares),
        cmocka_unit_test(test_spares_never_exceed_maximum),
        cmocka_unit_test(test_full_segments_are_closed),
        cmocka_unit_test(test_failed_sync_is_repaired_by_reopen),
        cmocka_unit_test(test_truncated_entries_never_reappear),
        cmocka_unit_test(test_preallocate_creates_spares),
        cmocka_unit_test(test_no_append_makes_a_spare_that_was_asked_for),
        cmocka_unit_test(test_full_disk_is_not_tried_again_at_once),
        cmocka_unit_test(test_no_space_is_wanted_while_a_spare_is_made),
        cmocka_unit_test(test_append_on_full_disk_writes_nothing),
        cmocka_unit_test(test_bit_flip_is_detected),
        cmocka_unit_test(test_misplaced_sector_is_detected),
        cmocka_unit_test(test_log_in_directory_survives_reopen),
        cmocka_unit_test(test_memory_log_injects_faults),
        cmocka_unit_test(test_wrong_calls_end_the_process),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
