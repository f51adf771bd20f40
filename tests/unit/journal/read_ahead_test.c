/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead.
 *
 * Goal: the applier gets the entries of a log in their order and once, with the commands that it would have decoded
 * itself, up to the end or the error; an entry that a SKIP excludes, or that may have ended a process, is never
 * decoded ahead; a close ends the thread in every state.
 * Method: a log in memory; decoding is observed by command_decode(). Where the thread must have decoded an entry the
 * applier waits until it has. A core that is replayed in place and one that is replayed with the thread are compared.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/unit.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "core/command/command.h"
#include "core/step/core.h"
#include "cmdlog/cmdlog_memory.h"
#include "journal/at_work.h"
#include "journal/read_ahead.h"
#include "journal/recover.h"
#include "store/store.h"

enum { LARGE = READ_AHEAD_DECODED_MIN, SMALL = 100 };

/* --- Decodings ---------------------------------------------------------------------------------------------------- */

static pthread_mutex_t decoded_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t decoded_more = PTHREAD_COND_INITIALIZER;
static size_t decoded_here, decoded_ahead; /* commands decoded by the applier, and by another thread */
static pthread_t applier;
static bool held; /* other threads wait before they decode */
static size_t waiting;

int __real_command_decode(struct slice bytes, struct command **ret_command);
int __wrap_command_decode(struct slice bytes, struct command **ret_command);
int __wrap_command_decode(struct slice bytes, struct command **ret_command)
{
    bool here = pthread_equal(applier, pthread_self()) != 0;
    pthread_mutex_lock(&decoded_lock);
    waiting += !here;
    pthread_cond_broadcast(&decoded_more);
    while (!here && held)
        pthread_cond_wait(&decoded_more, &decoded_lock);
    waiting -= !here;
    *(here ? &decoded_here : &decoded_ahead) += 1;
    pthread_cond_broadcast(&decoded_more);
    pthread_mutex_unlock(&decoded_lock);
    return __real_command_decode(bytes, ret_command);
}

static void await_count(const size_t *count, size_t least)
{
    pthread_mutex_lock(&decoded_lock);
    while (*count < least)
        pthread_cond_wait(&decoded_more, &decoded_lock);
    pthread_mutex_unlock(&decoded_lock);
}

static void hold(bool on)
{
    pthread_mutex_lock(&decoded_lock);
    held = on;
    pthread_cond_broadcast(&decoded_more);
    pthread_mutex_unlock(&decoded_lock);
}

static size_t count_of(const size_t *count)
{
    pthread_mutex_lock(&decoded_lock);
    size_t n = *count;
    pthread_mutex_unlock(&decoded_lock);
    return n;
}

/* --- A log -------------------------------------------------------------------------------------------------------- */

struct world {
    struct cmdlog_medium *medium;
    struct cmdlog *log;
    struct cmdlog_cursor *cursor; /* NULL: not opened yet */
    cmdlog_position last;
};

static void world_init(struct world *world)
{
    *world = (struct world){.medium = cmdlog_medium_new()};
    world->log = cmdlog_memory_open(world->medium);
    applier = pthread_self();
    decoded_here = decoded_ahead = 0;
}

static void world_deinit(struct world *world)
{
    cmdlog_unfollow(world->cursor);
    cmdlog_close(world->log);
    cmdlog_medium_free(world->medium);
}

static void append_bytes(struct world *world, struct slice bytes)
{
    assert_int_equal(cmdlog_append(world->log, &bytes, 1, &world->last), 0);
    assert_int_equal(cmdlog_sync(world->log, world->last), 0);
}

static void append(struct world *world, struct command *command, tl_ts ts)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = ts};
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    command_free(command);
    append_bytes(world, buf_as_slice(&bytes));
    buf_deinit(&bytes);
}

/* A write of a document of `bytes` bytes. `number` is its id, and its value; one of 0 is no JSON. */
static struct command *write_command(unsigned number, size_t bytes)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&source, number == 0 ? "{\"n\":%u,\"t\":\"" : "{\"n%u\":1,\"t\":\"", number % 7);
    while (source.len < bytes)
        buf_byte(&source, (char)('a' + source.len % 26));
    buf_lit(&source, "\"}");
    if (number == 0)
        buf_truncate(&source, source.len - 1);
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    *command->write.items = (struct write_item){.op = WRITE_INDEX,
                                                .index = SLICE_LIT("fs"),
                                                .id = arena_printf(&command->arena, "%u", number),
                                                .source = arena_copy(&command->arena, buf_as_slice(&source)),
                                                .version = VERSION_ANY,
                                                .if_seq_no = SEQ_NO_ANY};
    buf_deinit(&source);
    return command;
}

static void append_writes(struct world *world, unsigned from, unsigned count, size_t bytes)
{
    for (unsigned i = from; i < from + count; i++)
        append(world, write_command(i, bytes), (tl_ts)i + 1000);
}

static void append_skip(struct world *world, cmdlog_position position)
{
    struct command *command = command_new(COMMAND_SKIP, DIALECT_7);
    command->skip.position = position;
    append(world, command, 0);
}

static struct read_ahead *begin_until(struct world *world, struct at_work *at_work, cmdlog_position end)
{
    assert_int_equal(cmdlog_follow(world->log, 1, &world->cursor), 0);
    return read_ahead_open(&(struct read_ahead_options){.cursor = world->cursor, .end = end, .at_work = at_work});
}

static struct read_ahead *begin(struct world *world)
{
    return begin_until(world, NULL, 0);
}

/* Gets the next entry, which must be this one, and decodes it. */
static void expect_write(struct read_ahead *ahead, cmdlog_position position, unsigned number)
{
    char id[16];
    struct read_ahead_entry *entry;
    assert_int_equal(read_ahead_next(ahead, &entry), 0);
    assert_int_equal(entry->entry.position, position);
    assert_int_equal(read_ahead_decode(ahead, entry), 0);
    assert_int_equal(read_ahead_decode(ahead, entry), 0); /* once */
    assert_int_equal(entry->head.ts, number + 1000);
    const struct command *command = list_entry(entry->commands.next, struct command, link);
    snprintf(id, sizeof id, "%u", number);
    assert_true(slice_is(command->write.items[0].id, id));
    assert_true(entry->commands.next->next == &entry->commands);
    read_ahead_entry_free(entry);
}

/* --- Order, end, errors ------------------------------------------------------------------------------------------- */

/* More entries than there is room for, small and large by turns. */
static void test_entries_come_in_order(void **state)
{
    enum { COUNT = 3 * READ_AHEAD_ENTRIES_MAX };
    struct world world;
    struct read_ahead_entry *entry;
    (void)state;
    world_init(&world);
    for (unsigned i = 1; i <= COUNT; i++)
        append_writes(&world, i, 1, i % 3 == 0 ? LARGE : SMALL);
    struct read_ahead *ahead = begin(&world);
    for (unsigned i = 1; i <= COUNT; i++)
        expect_write(ahead, i, i);
    assert_int_equal(read_ahead_next(ahead, &entry), CMDLOG_END);
    assert_int_equal(read_ahead_next(ahead, &entry), CMDLOG_END);
    read_ahead_close(ahead);
    assert_int_equal(decoded_here + decoded_ahead, COUNT);
    assert_true(decoded_here >= COUNT - COUNT / 3); /* the small ones */
    world_deinit(&world);
}

/* The sources are parsed as their submitter would have; one that is no JSON is left to the core. */
static void test_thread_parses_sources(void **state)
{
    struct world world;
    struct read_ahead_entry *entry;
    (void)state;
    world_init(&world);
    append_writes(&world, 0, 3, LARGE);
    struct read_ahead *ahead = begin(&world);
    await_count(&decoded_ahead, 3); /* the last, too: it is known that nothing follows */
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(read_ahead_next(ahead, &entry), 0);
        assert_int_equal(read_ahead_decode(ahead, entry), 0);
        const struct write_item *item = list_entry(entry->commands.next, struct command, link)->write.items;
        assert_true((item->parsed != NULL) == (i != 0));
        read_ahead_entry_free(entry);
    }
    assert_int_equal(decoded_here, 0);
    read_ahead_close(ahead);
    world_deinit(&world);
}

/* What precedes an entry that cannot be decoded is got first; it is the applier's then. */
static void test_error_comes_at_its_position(void **state)
{
    struct world world;
    struct read_ahead_entry *entry;
    struct buf damaged = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = 5};
    (void)state;
    world_init(&world);
    append_writes(&world, 1, 2, LARGE);
    command_group_begin(&head, &damaged);
    for (size_t i = 0; i < LARGE; i++)
        buf_byte(&damaged, '\xff');
    append_bytes(&world, buf_as_slice(&damaged));
    append_writes(&world, 3, 1, LARGE);
    struct read_ahead *ahead = begin(&world);
    expect_write(ahead, 1, 1);
    expect_write(ahead, 2, 2);
    assert_int_equal(read_ahead_next(ahead, &entry), 0);
    assert_int_equal(read_ahead_decode(ahead, entry), TL_ERR_CORRUPT);
    assert_true(list_empty(&entry->commands));
    read_ahead_entry_free(entry);
    expect_write(ahead, 4, 3);
    read_ahead_close(ahead);
    buf_deinit(&damaged);
    world_deinit(&world);
}

/* The entry at the end is the last one that is got, and it is not decoded. */
static void test_nothing_is_decoded_from_the_end_on(void **state)
{
    struct world world;
    struct read_ahead_entry *entry;
    (void)state;
    world_init(&world);
    append_writes(&world, 1, 4, LARGE);
    struct read_ahead *ahead = begin_until(&world, NULL, 3);
    await_count(&decoded_ahead, 2);
    expect_write(ahead, 1, 1);
    expect_write(ahead, 2, 2);
    assert_int_equal(read_ahead_next(ahead, &entry), 0);
    assert_int_equal(entry->entry.position, 3);
    read_ahead_entry_free(entry);
    assert_int_equal(read_ahead_next(ahead, &entry), CMDLOG_END);
    read_ahead_close(ahead);
    assert_int_equal(decoded_here + decoded_ahead, 2);
    world_deinit(&world);
}

/* --- What must not be decoded ahead ------------------------------------------------------------------------------- */

/* The entry that a SKIP names is got undecoded. */
static void test_skipped_entry_is_not_decoded(void **state)
{
    struct world world;
    struct read_ahead_entry *entry;
    (void)state;
    world_init(&world);
    append_writes(&world, 1, 2, LARGE);
    append_skip(&world, 2);
    append_writes(&world, 3, 1, LARGE);
    struct read_ahead *ahead = begin(&world);
    await_count(&decoded_ahead, 2 + 1); /* of 1 and 3, and the annotation, which is read */
    expect_write(ahead, 1, 1);
    assert_int_equal(read_ahead_next(ahead, &entry), 0);
    assert_int_equal(entry->entry.position, 2);
    assert_true(entry->annotation == RECOVER_NO_ANNOTATION && list_empty(&entry->commands));
    read_ahead_entry_free(entry);
    assert_int_equal(read_ahead_next(ahead, &entry), 0);
    assert_true(entry->annotation == RECOVER_SKIP && entry->skipped == 2);
    read_ahead_entry_free(entry);
    expect_write(ahead, 4, 3);
    read_ahead_close(ahead);
    assert_int_equal(decoded_here, 0);
    assert_int_equal(decoded_ahead, 3);
    world_deinit(&world);
}

/*
 * An end while one entry is applied and another one is decoded ahead counts for both. Until the latter is applied no
 * entry is decoded ahead, also none of the others, which may be like the one that ended the process: so a second end
 * counts for one entry alone.
 */
static void test_entries_are_decoded_in_place_after_an_end(void **state)
{
    char directory[] = "/tmp/tidelock-test-XXXXXX", path[sizeof directory + 8];
    struct at_work *at_work;
    struct at_work_entry ended;
    struct world world;
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/at-work", directory);
    world_init(&world);
    append_writes(&world, 1, 4, LARGE);
    assert_int_equal(at_work_open(slice_from(directory), SLICE_LIT("boot"), &at_work), 0);
    at_work_begin_entry(at_work, 2, 1002, 1);
    at_work_begin_ahead(at_work, 3, 1003, 1);
    at_work_close(at_work); /* the process ends */
    assert_int_equal(at_work_open(slice_from(directory), SLICE_LIT("boot"), &at_work), 0);
    struct read_ahead *ahead = begin_until(&world, at_work, 0);
    for (unsigned i = 1; i <= 4; i++)
        expect_write(ahead, i, i);
    read_ahead_close(ahead);
    cmdlog_unfollow(world.cursor);
    assert_int_equal(decoded_here, 4);
    assert_int_equal(decoded_ahead, 0);
    at_work_begin_entry(at_work, 2, 1002, 1);
    at_work_end_entry(at_work);
    assert_false(at_work_may_decode_ahead(at_work, 4));
    assert_true(at_work_ended_in(at_work, &ended));
    assert_int_equal(ended.position, 3);
    assert_int_equal(ended.ends, 1);
    at_work_begin_entry(at_work, 3, 1003, 1);
    at_work_close(at_work);
    assert_int_equal(at_work_open(slice_from(directory), SLICE_LIT("boot"), &at_work), 0);
    assert_true(at_work_ended_in(at_work, &ended));
    assert_int_equal(ended.position, 3);
    assert_int_equal(ended.ends, 2);
    at_work_begin_entry(at_work, 3, 1003, 1);
    at_work_end_entry(at_work);
    assert_false(at_work_ended_in(at_work, &ended));
    assert_true(at_work_may_decode_ahead(at_work, 4));
    at_work_begin_entry(at_work, 4, 1004, 1);
    at_work_close(at_work); /* it was the only one at work: the others are decoded ahead */
    assert_int_equal(at_work_open(slice_from(directory), SLICE_LIT("boot"), &at_work), 0);
    ahead = begin_until(&world, at_work, 0);
    await_count(&decoded_ahead, 3);
    for (unsigned i = 1; i <= 4; i++)
        expect_write(ahead, i, i);
    read_ahead_close(ahead);
    assert_int_equal(decoded_here, 5);
    at_work_close(at_work);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    world_deinit(&world);
}

/* The page names the entry that the thread decodes, while it does. */
static void test_page_names_entry_being_decoded(void **state)
{
    char directory[] = "/tmp/tidelock-test-XXXXXX", path[sizeof directory + 8];
    struct slice boot = SLICE_LIT("boot");
    struct at_work *at_work;
    struct world world;
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/at-work", directory);
    assert_int_equal(at_work_open(slice_from(directory), boot, &at_work), 0);
    world_init(&world);
    append_writes(&world, 1, 2, LARGE);
    hold(true);
    struct read_ahead *ahead = begin_until(&world, at_work, 0);
    await_count(&waiting, 1);
    assert_int_equal(at_work_read_ended_in(slice_from(directory), boot), 1);
    at_work_begin_entry(at_work, 7, 700, 70);
    assert_int_equal(at_work_read_ended_in(slice_from(directory), boot), 7); /* that is applied */
    at_work_fail_entry(at_work);
    hold(false);
    expect_write(ahead, 1, 1);
    expect_write(ahead, 2, 2);
    assert_int_equal(at_work_read_ended_in(slice_from(directory), boot), 0);
    read_ahead_close(ahead);
    at_work_close(at_work);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    world_deinit(&world);
}

/* --- Stops -------------------------------------------------------------------------------------------------------- */

static void release(void *context)
{
    (void)context;
    hold(false);
}

/* A close ends the thread when nothing was got: while there is no room, and while it decodes. */
static void test_close_at_any_time(void **state)
{
    struct world world;
    struct read_ahead *ahead;
    struct thread thread = {0};
    (void)state;
    world_init(&world);
    append_writes(&world, 1, 2 * READ_AHEAD_ENTRIES_MAX, LARGE);
    ahead = begin(&world);
    await_count(&decoded_ahead, READ_AHEAD_ENTRIES_MAX - 1); /* all that there is room for: it waits */
    read_ahead_close(ahead);
    assert_true(decoded_ahead <= READ_AHEAD_ENTRIES_MAX);
    cmdlog_unfollow(world.cursor);
    ahead = begin(&world);
    read_ahead_close(ahead);
    cmdlog_unfollow(world.cursor);
    hold(true);
    ahead = begin(&world);
    await_count(&waiting, 1);
    assert_int_equal(thread_start(&thread, "release", release, NULL), 0);
    read_ahead_close(ahead);
    thread_join(&thread);
    world_deinit(&world);
}

/* --- Without a cursor --------------------------------------------------------------------------------------------- */

/* Puts entry `number` of the log. */
static void put(struct read_ahead *ahead, struct world *world, unsigned number, bool decodes)
{
    struct cmdlog_entry entry;
    if (world->cursor == NULL)
        assert_int_equal(cmdlog_follow(world->log, 1, &world->cursor), 0);
    assert_int_equal(cmdlog_next(world->cursor, &entry), 0);
    assert_int_equal(entry.position, number);
    read_ahead_put(ahead, &entry, decodes);
}

/* One entry alone is the applier's; of several the thread decodes the later ones, if it may. */
static void test_entries_that_are_put(void **state)
{
    struct world world;
    struct read_ahead_entry *entry;
    (void)state;
    world_init(&world);
    append_writes(&world, 1, 3 + READ_AHEAD_ENTRIES_MAX, LARGE);
    struct read_ahead *ahead = read_ahead_open(&(struct read_ahead_options){.end = 0});
    assert_int_equal(read_ahead_next(ahead, &entry), CMDLOG_END);
    assert_true(read_ahead_is_empty(ahead));
    put(ahead, &world, 1, true);
    put(ahead, &world, 2, false);
    put(ahead, &world, 3, true);
    await_count(&decoded_ahead, 1);
    assert_false(read_ahead_is_empty(ahead));
    for (unsigned i = 1; i <= 3; i++)
        expect_write(ahead, i, i);
    assert_int_equal(decoded_here, 2);
    assert_int_equal(count_of(&decoded_ahead), 1);
    assert_int_equal(read_ahead_next(ahead, &entry), CMDLOG_END);
    for (unsigned i = 4; i < 4 + READ_AHEAD_ENTRIES_MAX; i++) {
        assert_true(read_ahead_has_room(ahead));
        put(ahead, &world, i, false);
    }
    assert_false(read_ahead_has_room(ahead));
    expect_write(ahead, 4, 4);
    assert_true(read_ahead_has_room(ahead));
    read_ahead_close(ahead);
    world_deinit(&world);
}

/* --- Replays ------------------------------------------------------------------------------------------------------ */

static void replay(struct world *world, bool in_place, uint64_t *ret_digest, uint64_t *ret_chain)
{
    const struct recover_options options = {.in_place = in_place};
    struct core_limits limits = core_limits_default();
    struct store *store = store_open_mem();
    struct recovered recovered;
    struct core *core;
    assert_int_equal(recover_core_with(store, world->log, &limits, &options, &core, &recovered, NULL), 0);
    assert_int_equal(recovered.position, world->last);
    assert_int_equal(core_digest(core, ret_digest), 0);
    *ret_chain = core_chain(core);
    recover_close_core(core);
    store_close(store);
}

/*
 * A replay ahead makes the same core as one in place, also where a source adds fields to the mapping that the ones
 * after it are parsed with, is refused, or is skipped.
 */
static void test_replay_ahead_and_in_place_are_equal(void **state)
{
    struct world world;
    uint64_t digest, chain, digest_ahead, chain_ahead;
    (void)state;
    world_init(&world);
    for (unsigned i = 0; i < 60; i++)
        append_writes(&world, i, 1, i % 4 == 3 ? SMALL : LARGE);
    append_writes(&world, 0, 1, LARGE);
    append_skip(&world, world.last);
    append_writes(&world, 60, 20, LARGE);
    replay(&world, true, &digest, &chain);
    assert_int_equal(count_of(&decoded_ahead), 0);
    for (int i = 0; i < 5; i++) {
        replay(&world, false, &digest_ahead, &chain_ahead);
        assert_true(digest == digest_ahead && chain == chain_ahead);
    }
    world_deinit(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_come_in_order),
        cmocka_unit_test(test_thread_parses_sources),
        cmocka_unit_test(test_error_comes_at_its_position),
        cmocka_unit_test(test_nothing_is_decoded_from_the_end_on),
        cmocka_unit_test(test_skipped_entry_is_not_decoded),
        cmocka_unit_test(test_entries_are_decoded_in_place_after_an_end),
        cmocka_unit_test(test_page_names_entry_being_decoded),
        cmocka_unit_test(test_close_at_any_time),
        cmocka_unit_test(test_entries_that_are_put),
        cmocka_unit_test(test_replay_ahead_and_in_place_are_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
