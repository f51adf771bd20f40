/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: guarantee 6 of src/cmdlog/README.md, on real files: appends, syncs, cursors and trims. */
#include "../../lib/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmdlog/cmdlog_file.h"

enum { LEN_MAX = 5000 };

/* Returns: bytes that follow from the entry's number. */
static struct slice entry_of(unsigned number, char *buffer)
{
    size_t len = number % 7 == 0 ? LEN_MAX : 1 + number * 37 % 300;
    memset(buffer, (char)number, len);
    return slice_make(buffer, len);
}

enum { THREADS_ENTRIES = 1000 };

static void *sync_always(void *context)
{
    struct cmdlog_head head = {0};
    while (head.durable < THREADS_ENTRIES) {
        cmdlog_head(context, &head);
        if (cmdlog_sync(context, head.appended) != 0)
            return context;
    }
    return NULL;
}

static void *follow_all(void *context)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    char buffer[LEN_MAX];
    if (cmdlog_follow(context, 1, &cursor) != 0)
        return context;
    for (unsigned next = 1; next <= THREADS_ENTRIES;) {
        int r = cmdlog_next(cursor, &entry);
        if (r == 0 && (entry.position != next || !slice_equal(entry.bytes, entry_of(next, buffer))))
            r = TL_ERR_CORRUPT;
        if (r < 0)
            return context;
        next += r == 0;
    }
    cmdlog_unfollow(cursor);
    return NULL;
}

static void test_append_sync_and_follow_run_concurrently(void **state)
{
    char directory[] = "/tmp/log_test.XXXXXX", command[64];
    struct cmdlog_disk *disk;
    struct cmdlog *log;
    char *reason;
    pthread_t threads[3];
    void *failed;
    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(cmdlog_disk_open(directory, &disk), 0);
    assert_int_equal(cmdlog_file_open(disk, &(struct cmdlog_file_options){.segment_bytes = 128 << 10}, &log, &reason),
                     0);
    pthread_create(&threads[0], NULL, sync_always, log);
    pthread_create(&threads[1], NULL, follow_all, log);
    pthread_create(&threads[2], NULL, follow_all, log);
    for (unsigned i = 1; i <= THREADS_ENTRIES; i++) {
        char buffer[LEN_MAX];
        struct slice entry = entry_of(i, buffer);
        cmdlog_position position;
        assert_int_equal(cmdlog_append(log, &entry, 1, &position), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    cmdlog_close(log);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

/*
 * Makes checkpoints at the durable position, trims, preallocates and shrinks, until all is durable.
 */
static void *trim_always(void *context)
{
    struct cmdlog_head head = {0};
    while (head.durable < THREADS_ENTRIES) {
        cmdlog_head(context, &head);
        struct cmdlog_checkpoint checkpoint = {.position = head.durable, .locator = SLICE_LIT("here")};
        if (head.durable > 0 &&
            (cmdlog_put_checkpoint(context, &checkpoint) != 0 || cmdlog_trim(context, head.durable) != 0 ||
             cmdlog_preallocate(context) != 0 || (head.durable % 5 == 0 && cmdlog_shrink(context) != 0)))
            return context;
    }
    return NULL;
}

/* After concurrent trims, the newest entries are still there when the log is opened again. */
static void test_trim_and_shrink_run_concurrently_with_append(void **state)
{
    char directory[] = "/tmp/log_test.XXXXXX", command[64], buffer[LEN_MAX];
    const struct cmdlog_file_options options = {.segment_bytes = 16 << 10, .spares_max = 3};
    struct cmdlog_disk *disk;
    struct cmdlog *log;
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    struct cmdlog_head head;
    char *reason;
    pthread_t threads[2];
    void *failed;
    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(cmdlog_disk_open(directory, &disk), 0);
    assert_int_equal(cmdlog_file_open(disk, &options, &log, &reason), 0);
    pthread_create(&threads[0], NULL, sync_always, log);
    pthread_create(&threads[1], NULL, trim_always, log);
    for (unsigned i = 1; i <= THREADS_ENTRIES; i++) {
        struct slice bytes = entry_of(i, buffer);
        cmdlog_position position;
        assert_int_equal(cmdlog_append(log, &bytes, 1, &position), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    cmdlog_close(log);
    assert_int_equal(cmdlog_disk_open(directory, &disk), 0);
    assert_int_equal(cmdlog_file_open(disk, &options, &log, &reason), 0);
    cmdlog_head(log, &head);
    assert_int_equal(head.appended, THREADS_ENTRIES);
    assert_true(head.oldest > 1);
    assert_int_equal(cmdlog_follow(log, head.oldest, &cursor), 0);
    for (uint64_t next = head.oldest; next <= THREADS_ENTRIES; next++) {
        assert_int_equal(cmdlog_next(cursor, &entry), 0);
        assert_true(slice_equal(entry.bytes, entry_of((unsigned)next, buffer)));
    }
    cmdlog_unfollow(cursor);
    cmdlog_close(log);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

enum { SEALED_SEGMENTS = 40 };

/* Trims one more segment each time, until only the last is left. */
static void *trim_each(void *context)
{
    struct cmdlog_head head;
    cmdlog_head(context, &head);
    for (cmdlog_position before = head.oldest; before <= head.durable; before++)
        if (cmdlog_trim(context, before) != 0)
            return context;
    return NULL;
}

/* A trim moves the list of segments while the last is sealed. */
static void test_trim_runs_concurrently_with_seal(void **state)
{
    char directory[] = "/tmp/log_test.XXXXXX", command[64], buffer[LEN_MAX];
    const struct cmdlog_file_options options = {.segment_bytes = 16 << 10};
    struct cmdlog_disk *disk;
    struct cmdlog *log;
    struct cmdlog_head head;
    char *reason;
    pthread_t thread;
    void *failed;
    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(cmdlog_disk_open(directory, &disk), 0);
    assert_int_equal(cmdlog_file_open(disk, &options, &log, &reason), 0);
    for (unsigned i = 1; i <= SEALED_SEGMENTS * 3; i++) {
        struct slice bytes = entry_of(7, buffer);
        cmdlog_position position;
        assert_int_equal(cmdlog_append(log, &bytes, 1, &position), 0);
    }
    cmdlog_head(log, &head);
    assert_int_equal(cmdlog_sync(log, head.appended), 0);
    struct cmdlog_checkpoint checkpoint = {.position = head.appended, .locator = SLICE_LIT("here")};
    assert_int_equal(cmdlog_put_checkpoint(log, &checkpoint), 0);
    pthread_create(&thread, NULL, trim_each, log);
    assert_int_equal(cmdlog_seal(log), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    cmdlog_close(log);
    assert_int_equal(cmdlog_disk_open(directory, &disk), 0);
    assert_int_equal(cmdlog_file_open(disk, &options, &log, &reason), 0);
    cmdlog_head(log, &head);
    assert_true(head.sealed);
    assert_int_equal(head.appended, SEALED_SEGMENTS * 3);
    assert_true(head.oldest > 1);
    cmdlog_close(log);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_append_sync_and_follow_run_concurrently),
                                       cmocka_unit_test(test_trim_and_shrink_run_concurrently_with_append),
                                       cmocka_unit_test(test_trim_runs_concurrently_with_seal)};
    return cmocka_run_group_tests_name("log_threads", tests, NULL, NULL);
}
