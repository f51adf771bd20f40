/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that writes the reply to a bulk. Others wait for the thread that completes commands, so it replies to
 * small bulks only. Method: the thread is recorded that completes the WRITE of a bulk, and each one that writes a
 * result.
 */
#include <pthread.h>

#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "api/documents/doc_write.h"
#include "base/alloc.h"
#include "core/command/command.h"
#include "journal/journal.h"

static struct api_fixture fixture;
static struct {
    pthread_mutex_t lock;
    void (*on_done)(struct command *command); /* of the WRITE */
    pthread_t completes;
    size_t written, written_there; /* results; by that thread */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void record_completion(struct command *command)
{
    pthread_mutex_lock(&seen.lock);
    seen.completes = pthread_self();
    pthread_mutex_unlock(&seen.lock);
    seen.on_done(command);
}

/* By the linker in the place of the real ones (meson.build). */
void __real_journal_submit(struct journal *journal, struct command *command, bool may_block);
void __wrap_journal_submit(struct journal *journal, struct command *command, bool may_block);
int __real_write_result_write(struct request *request, const struct write_item *item, const struct write_result *result,
                              const struct write_reply_options *reply, struct buf *buf);
int __wrap_write_result_write(struct request *request, const struct write_item *item, const struct write_result *result,
                              const struct write_reply_options *reply, struct buf *buf);

void __wrap_journal_submit(struct journal *journal, struct command *command, bool may_block)
{
    if (command->type == COMMAND_WRITE) {
        seen.on_done = command->on_done;
        command->on_done = record_completion;
    }
    __real_journal_submit(journal, command, may_block);
}

int __wrap_write_result_write(struct request *request, const struct write_item *item, const struct write_result *result,
                              const struct write_reply_options *reply, struct buf *buf)
{
    pthread_mutex_lock(&seen.lock);
    seen.written++;
    seen.written_there += pthread_equal(seen.completes, pthread_self()) != 0;
    pthread_mutex_unlock(&seen.lock);
    return __real_write_result_write(request, item, result, reply, buf);
}

static int setup(void **state)
{
    (void)state;
    api_fixture_open(&fixture);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

/* Sends a bulk of one command, whose results have the sources, with a text of so many bytes each. */
static void send_bulk(size_t items, size_t text_bytes)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < items; i++) {
        buf_printf(&body,
                   "{\"update\":{\"_index\":\"w\",\"_id\":\"%zu\"}}\n{\"_source\":true,\"doc_as_upsert\":true,\"doc\":{"
                   "\"t\":\"",
                   i);
        for (size_t n = 0; n < text_bytes; n++)
            buf_byte(&body, 'x');
        buf_lit(&body, "\"}}\n");
    }
    buf_byte(&body, '\0');
    seen.written = seen.written_there = 0;
    assert_int_equal(api_fixture_ask(&fixture, "POST", "/_bulk", body.data, NULL), 200);
    assert_int_equal(seen.written, items);
    buf_deinit(&body);
}

static void test_small_reply_is_written_at_once(void **state)
{
    (void)state;
    send_bulk(1, 10);
    assert_int_equal(seen.written_there, 1);
    send_bulk(100, 10);
    assert_int_equal(seen.written_there, 100);
}

static void test_reply_of_many_items_is_written_by_a_worker(void **state)
{
    (void)state;
    send_bulk(101, 10);
    assert_int_equal(seen.written_there, 0);
}

static void test_reply_of_large_sources_is_written_by_a_worker(void **state)
{
    (void)state;
    send_bulk(2, 40 << 10);
    assert_int_equal(seen.written_there, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small_reply_is_written_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reply_of_many_items_is_written_by_a_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reply_of_large_sources_is_written_by_a_worker, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
