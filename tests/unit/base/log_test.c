/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the queue of the log keeps its invariants (base/log.h, 1 to 4). Method: the log is written
 * to a small pipe that the test reads at chosen times. The lines read and the number reported as
 * dropped are compared with the lines logged.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"

enum { PIPE_BYTES = 4096, MANY = 5000, THREADS = 4, TEXT_MAX = 4200 };
#define PATIENCE_US ((uint64_t)60000000)

static int begin(void)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) >= PIPE_BYTES);
    assert_int_equal(log_begin_queue(ends[1]), 0);
    return ends[0];
}

/* Returns: the number of write() calls of this thread; 0 if the kernel does not count them. */
static uint64_t own_writes(void)
{
    FILE *io = fopen("/proc/thread-self/io", "re");
    char line[100];
    uint64_t count = 0;

    while (io != NULL && fgets(line, sizeof line, io) != NULL)
        (void)sscanf(line, "syscw: %" SCNu64, &count);
    if (io != NULL)
        fclose(io);
    return count;
}

/*
 * A thread that logs writes nothing itself: what does not write does not wait for a reader. Without
 * this the other tests would wait for ever, so none of them runs then.
 */
static int check_that_log_line_does_not_write(void **state)
{
    int status;
    (void)state;
    pid_t pid = fork();

    if (pid == 0) {
        (void)begin();
        uint64_t before = own_writes();
        for (int i = 0; i < 10; i++)
            log_error("line %d of fewer than fill the pipe", i);
        _exit(own_writes() == before ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* Reads a pipe line by line. */
struct reader {
    FILE *pipe;
    char line[TEXT_MAX];
};

/* Waits for a line. Returns: its text, after time and level. */
static const char *next_line(struct reader *reader)
{
    assert_non_null(fgets(reader->line, sizeof reader->line, reader->pipe));
    size_t len = strlen(reader->line);
    assert_int_equal(reader->line[len - 1], '\n');
    reader->line[len - 1] = '\0';
    const char *text = strstr(reader->line, ": ");
    assert_non_null(text);
    return text + 2;
}

static bool is_report(const char *text, uint64_t *ret_count)
{
    return sscanf(text, "%" SCNu64 " lines of the log were dropped here", ret_count) == 1;
}

/*
 * Logging does not wait for the reader. Dropped lines are counted in their place; no others are
 * lost.
 */
static void test_log_drops_and_counts_lines_when_unread(void **state)
{
    static const char *const rounds[] = {"end of round 0", "end of round 1", "end of round 2"};
    (void)state;
    struct reader reader = {.pipe = fdopen(begin(), "r")};
    for (int round = 0; round < 3; round++) {
        uint64_t expected = 0, dropped;
        unsigned reports = 0;
        for (int i = 0; i < MANY; i++)
            log_error("line %d of a log without a reader", i);
        assert_false(log_flush(1000));
        while (expected < MANY) {
            const char *text = next_line(&reader);
            if (is_report(text, &dropped)) {
                assert_true(dropped > 0);
                expected += dropped;
                reports++;
            } else {
                assert_int_equal(strtoull(text + strlen("line "), NULL, 10), expected);
                expected++;
            }
        }
        assert_int_equal(expected, MANY);
        assert_true(reports > 0);
        log_error("end of round %d", round); /* once all is counted, nothing more is dropped */
        assert_string_equal(next_line(&reader), rounds[round]);
        assert_true(log_flush(PATIENCE_US));
    }
    fclose(reader.pipe);
}

static void *log_some(void *context)
{
    int thread = *(int *)context;
    for (int i = 0; i < MANY / 10; i++)
        log_error("thread %d line %d", thread, i);
    return NULL;
}

static void *drain(void *context)
{
    struct reader *reader = context;
    int next[THREADS] = {0}, left = THREADS * (MANY / 10);
    while (left > 0) {
        int thread, line;
        uint64_t dropped;
        const char *text = next_line(reader);
        if (is_report(text, &dropped)) {
            left -= (int)dropped;
            continue;
        }
        assert_int_equal(sscanf(text, "thread %d line %d", &thread, &line), 2);
        assert_true(line >= next[thread]);
        next[thread] = line + 1;
        left--;
    }
    assert_int_equal(left, 0);
    return NULL;
}

/* Lines are whole, and those of one thread are in order. */
static void test_log_keeps_order_of_each_thread(void **state)
{
    (void)state;
    struct reader reader = {.pipe = fdopen(begin(), "r")};
    pthread_t threads[THREADS], drainer;
    int numbers[THREADS];
    assert_int_equal(pthread_create(&drainer, NULL, drain, &reader), 0);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, log_some, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(drainer, NULL);
    assert_true(log_flush(PATIENCE_US));
    fclose(reader.pipe);
}

/* Lines of the maximum length. */
static void test_log_writes_longest_lines(void **state)
{
    (void)state;
    struct reader reader = {.pipe = fdopen(begin(), "r")};
    char text[3000];
    memset(text, '"', sizeof text);
    text[sizeof text - 1] = '\0';
    log_set_format(LOG_JSON);
    for (int i = 0; i < 3; i++)
        log_error("%s", text);
    log_set_format(LOG_TEXT);
    for (int i = 0; i < 3; i++)
        assert_true(strlen(next_line(&reader)) > 3900);
    assert_true(log_flush(PATIENCE_US));
    fclose(reader.pipe);
}

/*
 * Runs a child process that logs and then ends by `how`. `read_on`: its log is read before it ends.
 * Returns: its exit status. *ret_text: its log. Owns: the caller; mem_free.
 */
static int end_by(void (*how)(void), bool read_on, char **ret_text)
{
    int ends[2], status;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    pid_t pid = fork();
    if (pid == 0) {
        if (log_begin_queue(ends[1]) != 0)
            _exit(99);
        for (int i = 0; i < 100; i++)
            log_error("line %d, which is long enough for a hundred such to fill the pipe more than once "
                      ".......................",
                      i);
        log_error("the last one");
        how();
        _exit(98);
    }
    close(ends[1]);
    char *text = mem_zalloc(1 << 20);
    size_t len = 0;
    ssize_t got = 1;
    if (!read_on)
        assert_int_equal(waitpid(pid, &status, 0), pid);
    while (got > 0) {
        got = read(ends[0], text + len, (1 << 20) - 1 - len);
        len += got > 0 ? (size_t)got : 0;
    }
    if (read_on)
        assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ends[0]);
    *ret_text = text;
    return status;
}

static void by_exit(void)
{
    exit(7);
}

static void by_check(void)
{
    REQUIRE(2 + 2 == 5);
}

/* With a reader, all queued lines are written, followed by the failed check. */
static void test_log_is_flushed_at_process_end(void **state)
{
    char *text;
    (void)state;
    int status = end_by(by_exit, true, &text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_non_null(strstr(text, "the last one\n"));
    mem_free(text);
    status = end_by(by_check, true, &text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "the last one\ntidelock: REQUIRE(2 + 2 == 5) failed at "));
    mem_free(text);
}

/* Without a reader, the process ends nevertheless. */
static void test_log_unread_does_not_block_process_end(void **state)
{
    char *text;
    (void)state;
    int status = end_by(by_exit, false, &text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    mem_free(text);
    status = end_by(by_check, false, &text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    mem_free(text);
}

/* A line to a regular file is written before log_line() returns. */
static void test_log_to_file_is_not_queued(void **state)
{
    char text[100] = {0};
    FILE *file = tmpfile();
    (void)state;
    assert_non_null(file);
    assert_int_equal(log_begin_queue(fileno(file)), 0);
    log_error("in a file");
    assert_true(pread(fileno(file), text, sizeof text - 1, 0) > 0);
    assert_non_null(strstr(text, "error: in a file\n"));
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_is_flushed_at_process_end), /* first: fork() requires a single thread */
        cmocka_unit_test(test_log_unread_does_not_block_process_end),
        cmocka_unit_test(test_log_keeps_order_of_each_thread),
        cmocka_unit_test(test_log_writes_longest_lines),
        cmocka_unit_test(test_log_to_file_is_not_queued),
        cmocka_unit_test(test_log_drops_and_counts_lines_when_unread), /* last: a failure leaves the queue in use */
    };
    return cmocka_run_group_tests(tests, check_that_log_line_does_not_write, NULL);
}
