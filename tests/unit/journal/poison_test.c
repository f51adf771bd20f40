/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poison entries.
 *
 * Goal: the page counts an end in the entry during which the process ended, and in no other. The
 * second end refuses a start. A skipped entry is never applied by any replay.
 * Method: a process ends when its page is closed while an entry is recorded, as a kill leaves it.
 * The log is in memory.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/step/core.h"
#include "core/step/command_group.h"
#include "journal/at_work.h"
#include "journal/journal.h"
#include "journal/poison.h"
#include "journal/read_ahead.h"
#include "journal/recover.h"
#include "cmdlog/cmdlog_memory.h"
#include "cmdlog/cmdlog_shared.h"
#include "store/store.h"

#define BOOT SLICE_LIT("this boot")

struct fixture {
    char directory[26];
    char path[40]; /* of the page */
    struct at_work *at_work;
};

static int set_up(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    memcpy(f->directory, "/tmp/tidelock-test-XXXXXX", sizeof f->directory);
    *state = f;
    if (mkdtemp(f->directory) == NULL)
        return 1;
    memcpy(f->path, f->directory, sizeof f->directory);
    strcat(f->path, "/at-work");
    return at_work_open(slice_from(f->directory), BOOT, &f->at_work);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    at_work_close(f->at_work);
    (void)unlink(f->path);
    (void)rmdir(f->directory);
    mem_free(f);
    return 0;
}

/* Ends the process and starts another one. */
static void end_at(struct fixture *f, struct slice boot)
{
    at_work_close(f->at_work);
    assert_int_equal(at_work_open(slice_from(f->directory), boot, &f->at_work), 0);
}

static void end(struct fixture *f)
{
    end_at(f, BOOT);
}

static void begin_commands(struct fixture *f, int count)
{
    const struct core_watch *watch = at_work_watch(f->at_work);
    for (int i = 0; i < count; i++)
        watch->step(watch->context);
}

/* Returns: the number of ends in this entry. */
static uint32_t ends_in(const struct fixture *f, uint64_t position)
{
    struct at_work_entry entry;
    return at_work_ended_in(f->at_work, &entry) && entry.position == position ? entry.ends : 0;
}

static uint64_t read_ended_in(const struct fixture *f, struct slice boot)
{
    return at_work_read_ended_in(slice_from(f->directory), boot);
}

static bool ended_in_none(const struct fixture *f)
{
    struct at_work_entry entry;
    assert_int_equal(read_ended_in(f, BOOT), 0);
    return !at_work_ended_in(f->at_work, &entry);
}

/* --- The page ----------------------------------------------------------------------------------------------------- */

static void test_end_in_entry_is_counted(void **state)
{
    struct fixture *f = *state;
    struct at_work_entry entry;
    assert_true(ended_in_none(f));
    begin_commands(f, 5);
    at_work_begin_entry(f->at_work, 7, 700, 70);
    begin_commands(f, 2);
    assert_int_equal(read_ended_in(f, BOOT), 7); /* not counted yet, as before the next start */
    assert_int_equal(read_ended_in(f, SLICE_LIT("another boot")), 0);
    end(f);
    assert_true(at_work_ended_in(f->at_work, &entry));
    assert_int_equal(entry.position, 7);
    assert_int_equal(entry.ts, 700);
    assert_int_equal(entry.bytes, 70);
    assert_int_equal(entry.command, 2);
    assert_int_equal(entry.ends, 1);
    assert_int_equal(read_ended_in(f, BOOT), 7);
    assert_int_equal(read_ended_in(f, SLICE_LIT("another boot")), 0);
    end(f); /* before it applied an entry */
    assert_int_equal(ends_in(f, 7), 1);
    at_work_begin_entry(f->at_work, 6, 600, 60); /* not affected by the entries before it */
    at_work_end_entry(f->at_work);
    at_work_begin_entry(f->at_work, 7, 700, 70);
    end(f);
    assert_int_equal(ends_in(f, 7), 2);
    at_work_retry_entry(f->at_work);
    end(f);
    assert_int_equal(ends_in(f, 7), 1);
    at_work_forget_entry(f->at_work);
    end(f);
    assert_true(ended_in_none(f));
}

static void test_other_ends_are_not_counted(void **state)
{
    struct fixture *f = *state;
    at_work_begin_entry(f->at_work, 7, 700, 70);
    at_work_end_entry(f->at_work);
    end(f);
    assert_true(ended_in_none(f));
    at_work_begin_entry(f->at_work, 7, 700, 70);
    const struct core_watch *watch = at_work_watch(f->at_work);
    watch->begin(watch->context, SLICE_LIT("session"), 0, 1); /* TRIED handles that */
    end(f);
    assert_true(ended_in_none(f));
    struct command *command = command_new(COMMAND_TRIED, DIALECT_7);
    assert_true(at_work_found(f->at_work, command));
    command_free(command);
    (void)at_work_watch(f->at_work);
    at_work_begin_entry(f->at_work, 7, 700, 70);
    end_at(f, SLICE_LIT("another boot"));
    assert_true(ended_in_none(f));
    at_work_begin_entry(f->at_work, 7, 700, 70);
    end_at(f, SLICE_NONE); /* the boot is unknown */
    assert_true(ended_in_none(f));
}

static void test_ends_are_counted_per_entry(void **state)
{
    struct fixture *f = *state;
    at_work_begin_entry(f->at_work, 7, 700, 70);
    end(f);
    at_work_begin_entry(f->at_work, 8, 800, 80);
    end(f);
    assert_int_equal(ends_in(f, 8), 1);
    at_work_begin_entry(f->at_work, 8, 801, 80);
    end(f);
    assert_int_equal(ends_in(f, 8), 1);
    at_work_begin_entry(f->at_work, 8, 801, 81);
    end(f);
    assert_int_equal(ends_in(f, 8), 1);
}

/* No content of the page makes a start fail. */
static void test_damaged_page_counts_as_empty(void **state)
{
    struct fixture *f = *state;
    char bytes[4096];
    for (size_t len = 0; len <= sizeof bytes; len += 512) {
        at_work_begin_entry(f->at_work, 7, 700, 70);
        at_work_close(f->at_work);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(i * 31 + len);
        int file = open(f->path, O_WRONLY | O_TRUNC);
        assert_int_equal(write(file, bytes, len), (ssize_t)len);
        assert_int_equal(close(file), 0);
        assert_int_equal(at_work_open(slice_from(f->directory), BOOT, &f->at_work), 0);
        assert_true(ended_in_none(f));
    }
}

/* Decoding an entry is recorded, but is no application of it. */
static void test_end_while_decoding_is_counted(void **state)
{
    struct fixture *f = *state;
    struct at_work_entry entry;
    at_work_begin_entry(f->at_work, 7, 700, 70);
    at_work_fail_entry(f->at_work);
    end(f);
    assert_true(ended_in_none(f));
    assert_int_equal(at_work_applied(f->at_work), 0);
    at_work_begin_entry(f->at_work, 7, 700, 70);
    end(f);
    assert_true(at_work_ended_in(f->at_work, &entry));
    assert_int_equal(entry.command, 0);
    assert_int_equal(entry.ends, 1);
}

/* --- In a log ----------------------------------------------------------------------------------------------------- */

struct world {
    struct fixture *f;
    struct store *store;
    struct cmdlog_medium *medium;
    struct cmdlog *log;
    struct core *core;
    struct recovered recovered;
    cmdlog_position last;
};

static struct command *write_command(enum write_op op, const char *id)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    *command->write.items = (struct write_item){.op = op,
                                                .index = SLICE_LIT("fs"),
                                                .id = arena_printf(&command->arena, "%s", id),
                                                .source = SLICE_LIT("{\"v\":1}"),
                                                .version = VERSION_ANY,
                                                .if_seq_no = SEQ_NO_ANY};
    return command;
}

static struct command *skip_command(cmdlog_position position)
{
    struct command *command = command_new(COMMAND_SKIP, DIALECT_7);
    command->skip.position = position;
    return command;
}

/* Appends an entry of one command to the log. */
static cmdlog_position append(struct world *world, struct command *command, tl_ts ts)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = ts};
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    command_free(command);
    struct slice part = buf_as_slice(&bytes);
    assert_int_equal(cmdlog_append(world->log, &part, 1, &world->last), 0);
    assert_int_equal(cmdlog_sync(world->log, world->last), 0);
    buf_deinit(&bytes);
    return world->last;
}

static struct world world_new(struct fixture *f)
{
    struct world world = {.f = f, .store = store_open_mem(), .medium = cmdlog_medium_new()};
    world.log = cmdlog_memory_open(world.medium);
    append(&world, write_command(WRITE_INDEX, "1"), 1000);
    append(&world, write_command(WRITE_INDEX, "2"), 2000);
    return world;
}

static void world_free(struct world *world)
{
    cmdlog_close(world->log);
    store_close(world->store);
    cmdlog_medium_free(world->medium);
}

static struct slice bytes_at(struct world *world, cmdlog_position position, struct buf *bytes)
{
    struct cmdlog_cursor *cursor;
    struct cmdlog_entry entry;
    assert_int_equal(cmdlog_follow(world->log, position, &cursor), 0);
    assert_int_equal(cmdlog_next(cursor, &entry), 0);
    assert_int_equal(entry.position, position);
    buf_slice(bytes, entry.bytes);
    cmdlog_unfollow(cursor);
    return buf_as_slice(bytes);
}

/* Ends the process while it applies this entry. */
static void end_in(struct world *world, cmdlog_position position)
{
    tl_cleanup(buf_deinit) struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head;
    struct slice entry = bytes_at(world, position, &bytes);
    assert_int_equal(command_group_read_header(entry, &head), 0);
    at_work_begin_entry(world->f->at_work, position, head.ts, entry.len);
    begin_commands(world->f, 1);
    end(world->f);
}

static int settle(struct world *world, cmdlog_position skip, cmdlog_position retry, char **ret_reason)
{
    const struct poison_choice choice = {.skip = skip, .retry = retry};
    return poison_settle(world->store, world->log, world->f->at_work, &choice, ret_reason);
}

static void assert_refused(struct world *world, cmdlog_position skip, const char *why)
{
    char *reason = NULL;
    assert_int_equal(settle(world, skip, 0, &reason), POISON_REFUSED);
    assert_non_null(strstr(reason, why));
    mem_free(reason);
}

static uint64_t recover(struct world *world, struct store *store, struct core **ret_core)
{
    struct core_limits limits = core_limits_default();
    char *reason = NULL;
    uint64_t digest = 0;
    if (recover_core(store, world->log, &limits, world->f->at_work, ret_core, &world->recovered, &reason) != 0)
        fail_msg("recovery: %s", reason);
    assert_int_equal(core_digest(*ret_core, &digest), 0);
    return digest;
}

/*
 * Replays the log over an empty store. Returns: the digest; *ret_chain: the chain over all batches.
 */
static uint64_t replayed(struct world *world, uint64_t *ret_chain)
{
    struct store *store = store_open_mem();
    struct core *core;
    uint64_t digest = recover(world, store, &core);
    *ret_chain = core_chain(core);
    core_close(core);
    store_close(store);
    return digest;
}

static cmdlog_position appended(const struct world *world)
{
    struct cmdlog_head head;
    cmdlog_head(world->log, &head);
    return head.appended;
}

/* The newest line that was logged. */
static char logged[2000];

void __real_log_line(enum log_level level, const char *format, ...);
void __wrap_log_line(enum log_level level, const char *format, ...) TL_PRINTF(2, 3);
void __wrap_log_line(enum log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(logged, sizeof logged, format, arguments);
    va_end(arguments);
    __real_log_line(level, "%s", logged);
}

static void assert_logged(const char *text)
{
    if (strstr(logged, text) == NULL)
        fail_msg("not \"%s\": %s", text, logged);
}

enum { UNDECODABLE_AT = 3 };
static const char *undecodable; /* decoding a command with these bytes ends the process */
static struct slice in_child;   /* the directory of the process's page; data NULL: it is not the child process */

/*
 * Waits until no entry is being applied: the child may be applying an earlier one while it decodes ahead, and an end
 * would be reported for that one.
 */
static void await_nothing_applied(cmdlog_position decoded)
{
    while (at_work_read_ended_in(in_child, BOOT) != decoded)
        usleep(100);
}

int __real_command_decode(struct slice bytes, struct command **ret_command);
int __wrap_command_decode(struct slice bytes, struct command **ret_command);
int __wrap_command_decode(struct slice bytes, struct command **ret_command)
{
    if (undecodable != NULL && memmem(bytes.data, bytes.len, undecodable, strlen(undecodable)) != NULL) {
        if (in_child.data != NULL) {
            await_nothing_applied(UNDECODABLE_AT);
            _exit(0);
        }
        fail_msg("decoded a command that ends the process");
    }
    return __real_command_decode(bytes, ret_command);
}

/* A start in a child process, which ends while it decodes an entry. */
static void end_in_decoding(struct world *world)
{
    struct core *core;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        in_child = slice_from(world->f->directory);
        (void)recover(world, world->store, &core);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    end(world->f);
}

/* No start decodes the entry again once it is skipped, nor does the start that skips it. `first`: its first end. */
static void expect_undecodable_entry_is_skipped(struct fixture *f, struct command *command, const char *first)
{
    struct world world = world_new(f);
    uint64_t chain_before, chain;
    uint64_t before = replayed(&world, &chain_before);
    cmdlog_position bad = append(&world, command, 3000);
    assert_int_equal(bad, UNDECODABLE_AT);
    undecodable = "bad";
    end_in_decoding(&world);
    assert_int_equal(settle(&world, 0, 0, NULL), 0);
    assert_logged(first);
    end_in_decoding(&world);
    assert_refused(&world, 0, "has ended 2 times while it decoded or applied entry 3 of the log,");
    assert_refused(&world, 0, "of which no command had begun");
    assert_int_equal(settle(&world, bad, 0, NULL), 0);
    assert_true(replayed(&world, &chain) == before);
    assert_true(chain == chain_before);
    assert_int_equal(world.recovered.skipped, bad);
    undecodable = NULL;
    world_free(&world);
}

static void test_entry_whose_decoding_ends_the_process_is_skipped(void **state)
{
    expect_undecodable_entry_is_skipped(*state, write_command(WRITE_INDEX, "bad"),
                                        "ended while it applied entry 3 of the log, and applies it again now");
}

/* Also where the first end is while it is decoded ahead, and another entry may be applied. */
static void test_entry_whose_decoding_ahead_ends_the_process_is_skipped(void **state)
{
    struct command *command = write_command(WRITE_INDEX, "bad");
    char *source = arena_alloc(&command->arena, READ_AHEAD_DECODED_MIN);
    memset(source, ' ', READ_AHEAD_DECODED_MIN);
    command->write.items->source = slice_make(source, READ_AHEAD_DECODED_MIN);
    expect_undecodable_entry_is_skipped(*state, command,
                                        "ended while it decoded entry 3 of the log, and applies it now");
}

static void test_second_end_refuses_start_then_skip(void **state)
{
    struct world world = world_new(*state);
    uint64_t chain_before, chain, chain_again;
    uint64_t before = replayed(&world, &chain_before);
    cmdlog_position bad = append(&world, write_command(WRITE_INDEX, "bad"), 3000);
    end_in(&world, bad);
    assert_int_equal(settle(&world, 0, 0, NULL), 0);
    end_in(&world, bad);
    assert_refused(&world, 0, "command 1 of 1: write (index) [fs/bad]");
    assert_refused(&world, 0, "No client was answered");
    assert_refused(&world, bad - 1, "--retry-entry");
    assert_int_equal(appended(&world), bad);
    assert_int_equal(settle(&world, 0, bad, NULL), 0);
    end_in(&world, bad);
    assert_refused(&world, 0, "--skip-entry");
    assert_int_equal(settle(&world, bad, 0, NULL), 0);
    assert_int_equal(appended(&world), bad + 1);
    assert_true(ended_in_none(world.f));
    assert_true(replayed(&world, &chain) == before);
    assert_true(chain == chain_before);
    assert_int_equal(world.recovered.skipped, bad);
    assert_int_equal(world.recovered.position, bad + 1);
    /* As a client repeats a request that got no reply. */
    append(&world, write_command(WRITE_CREATE, "bad"), 4000);
    uint64_t after = replayed(&world, &chain);
    assert_true(after != before);
    assert_true(replayed(&world, &chain_again) == after);
    assert_true(chain == chain_again);
    world_free(&world);
}

/* The process ends between appending SKIP and clearing the page. */
static void test_skip_is_appended_once(void **state)
{
    struct world world = world_new(*state);
    cmdlog_position bad = append(&world, write_command(WRITE_INDEX, "bad"), 3000);
    end_in(&world, bad);
    append(&world, skip_command(bad), 0);
    assert_int_equal(settle(&world, bad, 0, NULL), 0);
    assert_int_equal(appended(&world), bad + 1);
    assert_true(ended_in_none(world.f));
    world_free(&world);
}

/* TRIED may be between the entry and its SKIP. */
static void test_skip_after_tried(void **state)
{
    struct world world = world_new(*state);
    uint64_t chain;
    cmdlog_position bad = append(&world, write_command(WRITE_INDEX, "bad"), 3000);
    struct command *tried = command_new(COMMAND_TRIED, DIALECT_7);
    tried->tried.session = SLICE_LIT("gone");
    end_in(&world, bad);
    append(&world, tried, 0);
    assert_int_equal(settle(&world, bad, 0, NULL), 0);
    assert_int_equal(appended(&world), bad + 2);
    (void)replayed(&world, &chain);
    assert_int_equal(world.recovered.skipped, bad);
    world_free(&world);
}

static void test_entry_with_successors_is_not_skipped(void **state)
{
    struct world world = world_new(*state);
    cmdlog_position bad = append(&world, write_command(WRITE_INDEX, "bad"), 3000);
    append(&world, write_command(WRITE_INDEX, "3"), 4000);
    end_in(&world, bad);
    assert_refused(&world, bad, "cannot be left out");
    assert_int_equal(appended(&world), bad + 1);
    assert_int_equal(settle(&world, 0, bad, NULL), 0);
    world_free(&world);
}

static void test_entry_not_in_log_is_dropped(void **state)
{
    struct world world = world_new(*state);
    struct fixture *f = world.f;
    cmdlog_position last = world.last;
    const struct {
        cmdlog_position position;
        tl_ts ts;
        uint64_t bytes;
    } pages[] = {{last + 5, 2000, 60}, {last, 1, 60}, {last, 2000, 1}, {UINT64_MAX, 1, 1}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        for (int ends = 0; ends < AT_WORK_ENDS_MAX; ends++) {
            at_work_begin_entry(f->at_work, pages[i].position, pages[i].ts, pages[i].bytes);
            end(f);
        }
        assert_int_equal(settle(&world, pages[i].position, 0, NULL), 0);
        assert_true(ended_in_none(f));
    }
    assert_int_equal(appended(&world), last);
    world_free(&world);
}

/* A start does not apply entries before the checkpoint. */
static void test_entry_before_checkpoint_is_dropped(void **state)
{
    struct world world = world_new(*state);
    struct core *core;
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    (void)recover(&world, world.store, &core);
    assert_int_equal(recover_write_record(core, world.recovered.position, NULL, 0, &record), 0);
    assert_int_equal(store_checkpoint(world.store, buf_as_slice(&record)), 0);
    buf_deinit(&record);
    core_close(core);
    end_in(&world, world.last);
    end_in(&world, world.last);
    assert_int_equal(settle(&world, 0, 0, NULL), 0);
    assert_true(ended_in_none(world.f));
    world_free(&world);
}

static bool ends_in_loading; /* the next core_load() ends the process */

int __real_core_load(struct store *store, const struct core_limits *limits, struct slice saved, struct buf *reason,
                     struct core **ret_core);
int __wrap_core_load(struct store *store, const struct core_limits *limits, struct slice saved, struct buf *reason,
                     struct core **ret_core);
int __wrap_core_load(struct store *store, const struct core_limits *limits, struct slice saved, struct buf *reason,
                     struct core **ret_core)
{
    if (ends_in_loading)
        _exit(0);
    return __real_core_load(store, limits, saved, reason, ret_core);
}

/* Replaces the checkpoint, as an earlier start did: the page is unchanged. */
static void make_checkpoint(struct world *world)
{
    struct core *core;
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct at_work *at_work = world->f->at_work;
    world->f->at_work = NULL;
    (void)recover(world, world->store, &core);
    world->f->at_work = at_work;
    assert_int_equal(recover_write_record(core, world->recovered.position, NULL, 0, &record), 0);
    assert_int_equal(store_checkpoint(world->store, buf_as_slice(&record)), 0);
    buf_deinit(&record);
    core_close(core);
}

/* A start in a child process, which ends while it loads the checkpoint. */
static void end_in_loading(struct world *world)
{
    struct core *core;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ends_in_loading = true;
        (void)recover(world, world->store, &core);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    end(world->f);
}

/*
 * The second end in the loading of a checkpoint refuses a start. A complete load, or another
 * checkpoint, drops the count.
 */
static void test_second_end_in_loading_refuses_start(void **state)
{
    struct world world = world_new(*state);
    struct core *core;
    make_checkpoint(&world);
    cmdlog_position checkpoint = world.last;
    end_in_loading(&world);
    assert_int_equal(settle(&world, 0, 0, NULL), 0);
    end_in_loading(&world);
    assert_refused(&world, 0, "tidelock restore");
    assert_refused(&world, checkpoint, "--retry-entry");
    assert_int_equal(settle(&world, 0, checkpoint, NULL), 0);
    end_in_loading(&world);
    assert_refused(&world, 0, "2 times");
    assert_int_equal(settle(&world, 0, checkpoint, NULL), 0);
    (void)recover(&world, world.store, &core);
    core_close(core);
    assert_true(ended_in_none(world.f));
    end_in_loading(&world);
    end_in_loading(&world);
    append(&world, write_command(WRITE_INDEX, "3"), 3000);
    make_checkpoint(&world);
    assert_int_equal(settle(&world, 0, 0, NULL), 0);
    assert_true(ended_in_none(world.f));
    world_free(&world);
}

/* A SKIP that does not directly follow its entry is rejected. */
static void test_skip_of_another_entry_is_corrupt(void **state)
{
    struct world world = world_new(*state);
    struct core_limits limits = core_limits_default();
    struct core *core;
    char *reason = NULL;
    append(&world, skip_command(world.last - 1), 0);
    assert_int_equal(recover_core(world.store, world.log, &limits, NULL, &core, &world.recovered, &reason),
                     TL_ERR_CORRUPT);
    assert_non_null(strstr(reason, "skips an entry other than the preceding one"));
    mem_free(reason);
    world_free(&world);
}

/* A second SKIP after the same entry has nothing to name. */
static void test_skip_without_entry_is_corrupt(void **state)
{
    struct world world = world_new(*state);
    struct core_limits limits = core_limits_default();
    struct core *core;
    append(&world, skip_command(world.last), 0);
    append(&world, skip_command(0), 0);
    assert_int_equal(recover_core(world.store, world.log, &limits, NULL, &core, &world.recovered, NULL),
                     TL_ERR_CORRUPT);
    world_free(&world);
}

/* A complete replay drops the recorded entry. */
static void test_complete_replay_drops_the_count(void **state)
{
    struct world world = world_new(*state);
    struct core *core;
    end_in(&world, world.last);
    assert_int_equal(settle(&world, 0, 0, NULL), 0);
    (void)recover(&world, world.store, &core);
    core_close(core);
    assert_true(ended_in_none(world.f));
    end(world.f);
    assert_true(ended_in_none(world.f));
    world_free(&world);
}

static void assert_described(struct command *command, const char *expected)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED), text = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = 1};
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    command_free(command);
    poison_describe(buf_as_slice(&bytes), 1, &text);
    buf_byte(&text, '\0');
    assert_string_equal(text.data, expected);
    buf_deinit(&bytes);
    buf_deinit(&text);
}

/*
 * Client-supplied names cannot harm the terminal of a reader of the log, and secrets are not
 * printed.
 */
static void test_description_escapes_names_and_hides_secrets(void **state)
{
    (void)state;
    assert_described(write_command(WRITE_DELETE, "a]\n\x1b[2J\xc3\xa4"),
                     "command 1 of 1: write (delete) [fs/a\\135\\012\\033\\1332J\\303\\244]");
    struct command *session = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    session->session.id = SLICE_LIT("secret");
    assert_described(session, "command 1 of 1: session_open");
    char name[2000];
    memset(name, 0x01, sizeof name);
    struct command *rename = command_new(COMMAND_RENAME, DIALECT_7);
    rename->rename.index = rename->rename.from = rename->rename.to = slice_make(name, sizeof name);
    rename->rename.if_seq_no = SEQ_NO_ANY;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED), text = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = 1};
    command_group_begin(&head, &bytes);
    command_group_add(rename, &bytes);
    command_free(rename);
    poison_describe(buf_as_slice(&bytes), 0, &text);
    assert_int_equal(text.len, 1024);
    buf_clear(&text);
    poison_describe(SLICE_LIT("nonsense"), 1, &text);
    assert_true(text.len > 0);
    buf_deinit(&bytes);
    buf_deinit(&text);
}

/* --- In a cluster ------------------------------------------------------------------------------------------------- */

/* Two known hosts. The page is that of host a. */
struct cluster_world {
    struct fixture *f;
    struct cmdlog_medium *medium;
    struct cmdlog *a, *b;
};

static cmdlog_position append_as(struct cmdlog *log, struct command *command, tl_ts ts)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = ts};
    cmdlog_position position;
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    command_free(command);
    struct slice part = buf_as_slice(&bytes);
    assert_int_equal(cmdlog_append(log, &part, 1, &position), 0);
    buf_deinit(&bytes);
    return position;
}

static int settle_as(struct cluster_world *world, struct cmdlog *log, cmdlog_position checkpoint,
                     const struct poison_choice *choice, struct cmdlog_skips **ret_skips, char **ret_reason)
{
    const struct poison_host host = {.name = SLICE_LIT("a"), .checkpoint = checkpoint};
    return poison_settle_cluster(log, &host, world->f->at_work, choice, ret_skips, ret_reason);
}

static struct cluster_world cluster_new(struct fixture *f)
{
    struct cluster_world world = {.f = f, .medium = cmdlog_medium_new()};
    const struct cmdlog_checkpoint first = {.position = 1, .locator = SLICE_LIT("store")};
    uint64_t life;
    world.a = cmdlog_memory_open_as(world.medium, SLICE_LIT("a"));
    world.b = cmdlog_memory_open_as(world.medium, SLICE_LIT("b"));
    assert_int_equal(cmdlog_join(world.b, SLICE_NONE, CMDLOG_FOREVER, &life), 0);
    assert_int_equal(append_as(world.b, write_command(WRITE_INDEX, "1"), 1000), 1);
    assert_int_equal(cmdlog_put_checkpoint(world.b, &first), 0);
    return world;
}

static void cluster_free(struct cluster_world *world)
{
    cmdlog_close(world->a);
    cmdlog_close(world->b);
    cmdlog_medium_free(world->medium);
}

enum { AHEAD = -1 };

/*
 * Appends an entry, other entries after it, and ends host a's process in it `ends` times, after
 * `commands` of its commands had begun; AHEAD: while it was decoded ahead.
 */
static cmdlog_position end_in_shared(struct cluster_world *world, int ends, int commands)
{
    struct command *command = write_command(WRITE_INDEX, "bad");
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = 3000};
    command_group_begin(&head, &bytes);
    command_group_add(command, &bytes);
    cmdlog_position bad = append_as(world->b, command, head.ts);
    (void)append_as(world->b, write_command(WRITE_INDEX, "next"), 4000);
    for (int i = 0; i < ends; i++) {
        if (commands == AHEAD) {
            at_work_begin_ahead(world->f->at_work, bad, head.ts, bytes.len);
        } else {
            at_work_begin_entry(world->f->at_work, bad, head.ts, bytes.len);
            begin_commands(world->f, commands);
        }
        end(world->f);
    }
    buf_deinit(&bytes);
    return bad;
}

static void assert_cluster_refuses(struct cluster_world *world, const struct poison_choice *choice, const char *why)
{
    struct cmdlog_skips *skips;
    char *reason = NULL;
    assert_int_equal(settle_as(world, world->a, 1, choice, &skips, &reason), POISON_REFUSED);
    if (strstr(reason, why) == NULL)
        fail_msg("not \"%s\": %s", why, reason);
    mem_free(reason);
}

/* Returns: whether an entry is skipped in a start that is not refused. */
static bool starts_with_skip(struct cluster_world *world, struct cmdlog *log, const struct poison_choice *choice,
                             cmdlog_position position)
{
    struct cmdlog_skips *skips;
    assert_int_equal(settle_as(world, log, 1, choice, &skips, NULL), 0);
    bool skipped = cmdlog_is_skipped(skips, position);
    mem_free(skips);
    return skipped;
}

enum log_call { CALL_NONE, CALL_PUT_CHECKPOINT, CALL_LIST_SKIPS, CALL_READ_HEAD, CALL_RESUME, CALLS };

/*
 * The call in which the log cannot be reached: so many times, of which each takes six seconds; 0: until a signal, which
 * comes during it.
 */
static struct {
    enum log_call call;
    int times;
    atomic_bool stopping;
} unreachable;

static uint64_t clock_advance_us;

uint64_t __real_clock_boot_us(void);
uint64_t __wrap_clock_boot_us(void);
uint64_t __wrap_clock_boot_us(void)
{
    return __real_clock_boot_us() + clock_advance_us;
}

static int reach(enum log_call call)
{
    if (unreachable.call != call)
        return 0;
    if (unreachable.times > 0) {
        clock_advance_us += 6 * TL_SECOND;
        if (--unreachable.times == 0)
            unreachable.call = CALL_NONE;
    } else {
        atomic_store(&unreachable.stopping, true);
    }
    return CMDLOG_UNREACHABLE;
}

int __real_cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);
int __wrap_cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);
int __wrap_cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint)
{
    int r = reach(CALL_PUT_CHECKPOINT);
    return r != 0 ? r : __real_cmdlog_put_checkpoint(log, checkpoint);
}

int __real_cmdlog_list_skips(struct cmdlog *log, uint64_t until, struct cmdlog_skips **ret_skips);
int __wrap_cmdlog_list_skips(struct cmdlog *log, uint64_t until, struct cmdlog_skips **ret_skips);
int __wrap_cmdlog_list_skips(struct cmdlog *log, uint64_t until, struct cmdlog_skips **ret_skips)
{
    int r = reach(CALL_LIST_SKIPS);
    return r != 0 ? r : __real_cmdlog_list_skips(log, until, ret_skips);
}

int __real_cmdlog_read_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position);
int __wrap_cmdlog_read_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position);
int __wrap_cmdlog_read_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position)
{
    int r = reach(CALL_READ_HEAD);
    return r != 0 ? r : __real_cmdlog_read_head(log, until, ret_position);
}

int __real_cmdlog_resume(struct cmdlog *log, uint64_t until);
int __wrap_cmdlog_resume(struct cmdlog *log, uint64_t until);
int __wrap_cmdlog_resume(struct cmdlog *log, uint64_t until)
{
    int r = reach(CALL_RESUME);
    return r != 0 ? r : __real_cmdlog_resume(log, until);
}

static void test_start_that_waits_for_log_of_cluster_ends_by_signal(void **state)
{
    struct cluster_world world = cluster_new(*state);
    const struct poison_choice none = {0};
    const struct poison_host host = {.name = SLICE_LIT("a"), .checkpoint = 1, .stopping = &unreachable.stopping};
    (void)end_in_shared(&world, 1, 1);
    for (unreachable.call = CALL_PUT_CHECKPOINT; unreachable.call < CALLS; unreachable.call++) {
        struct cmdlog_skips *skips = NULL;
        atomic_store(&unreachable.stopping, false);
        assert_int_equal(poison_settle_cluster(world.a, &host, world.f->at_work, &none, &skips, NULL), TL_ERR_STOPPED);
        assert_null(skips);
    }
    unreachable.call = CALL_NONE;
    cluster_free(&world);
}

/* Reports of a wait for the log: "w" it waits, "e" it waits no longer. */
static char waits[16];

static void note_wait(bool is_waiting)
{
    assert_true(strlen(waits) + 1 < sizeof waits);
    strcat(waits, is_waiting ? "w" : "e");
}

/* Each time that it logs the wait, and when it is over. */
static void test_start_reports_that_it_waits_for_log_of_cluster(void **state)
{
    const struct poison_choice none = {0};
    const struct poison_host host = {.name = SLICE_LIT("a"), .checkpoint = 1, .report_wait = note_wait};
    for (enum log_call call = CALL_PUT_CHECKPOINT; call < CALLS; call++) {
        struct cluster_world world = cluster_new(*state);
        struct cmdlog_skips *skips;
        (void)end_in_shared(&world, 1, 1);
        unreachable.call = call;
        unreachable.times = 2;
        waits[0] = '\0';
        assert_int_equal(poison_settle_cluster(world.a, &host, world.f->at_work, &none, &skips, NULL), 0);
        assert_string_equal(waits, "wwe");
        at_work_forget_entry(world.f->at_work);
        mem_free(skips);
        cluster_free(&world);
    }
}

/* A start that tries the entry once more says what the process did with it when it ended. */
static void test_cluster_warns_of_an_entry_that_was_decoded_ahead(void **state)
{
    const struct poison_choice none = {0};
    struct cluster_world world = cluster_new(*state);
    assert_false(starts_with_skip(&world, world.a, &none, end_in_shared(&world, 1, AHEAD)));
    assert_logged("while it decoded entry 2 of the log of the cluster, and applies it now");
    at_work_forget_entry(world.f->at_work);
    cluster_free(&world);

    world = cluster_new(*state);
    assert_false(starts_with_skip(&world, world.a, &none, end_in_shared(&world, 1, 1)));
    assert_logged("while it applied entry 2 of the log of the cluster, and applies it again now");
    cluster_free(&world);
}

/* Decoding it again would end this start, too. */
static void test_cluster_does_not_decode_entry_whose_decoding_ended_it(void **state)
{
    struct cluster_world world = cluster_new(*state);
    const struct poison_choice none = {0};
    (void)end_in_shared(&world, 2, 0);
    assert_cluster_refuses(&world, &none, "of which no command had begun");
    cluster_free(&world);
}

/* Nor does it decode later entries, except for heartbeats. */
static void test_cluster_does_not_decode_entries_that_follow(void **state)
{
    struct cluster_world world = cluster_new(*state);
    const struct poison_choice none = {0};
    cmdlog_position bad = end_in_shared(&world, 2, 1);
    undecodable = "next";
    assert_cluster_refuses(&world, &none, "not known to have been applied");
    struct command *beat = command_new(COMMAND_HEARTBEAT, DIALECT_7);
    beat->heartbeat.position = bad;
    (void)append_as(world.b, beat, 5000);
    assert_cluster_refuses(&world, &none, "Host b has applied it");
    undecodable = NULL;
    cluster_free(&world);
}

static void test_cluster_reports_log_that_was_trimmed_meanwhile(void **state)
{
    struct cluster_world world = cluster_new(*state);
    const struct poison_choice none = {0};
    const struct cmdlog_checkpoint newest = {.position = 3, .locator = SLICE_LIT("store")};
    struct cmdlog_skips *skips;
    char *reason = NULL;
    (void)end_in_shared(&world, 1, 1);
    assert_int_equal(cmdlog_put_checkpoint(world.b, &newest), 0);
    assert_int_equal(cmdlog_trim(world.b, 4), 0);
    assert_int_equal(settle_as(&world, world.a, 1, &none, &skips, &reason), TL_ERR_CORRUPT);
    assert_non_null(reason);
    assert_non_null(strstr(reason, "start it again"));
    mem_free(reason);
    cluster_free(&world);
}

static void test_cluster_skips_entry_once_all_hosts_have_halted(void **state)
{
    struct cluster_world world = cluster_new(*state);
    const struct poison_choice none = {0};
    cmdlog_position bad = end_in_shared(&world, 1, 1);
    const struct poison_choice skip = {.skip = bad};
    assert_false(starts_with_skip(&world, world.a, &none, bad)); /* one end: it is applied again */
    at_work_begin_entry(world.f->at_work, bad, 3000, 1);         /* an entry of another length */
    end(world.f);
    assert_false(starts_with_skip(&world, world.a, &skip, bad));
    assert_true(ended_in_none(world.f));
    cluster_free(&world);

    world = cluster_new(*state);
    bad = end_in_shared(&world, 2, 1);
    assert_cluster_refuses(&world, &none, "write (index) [fs/bad]");
    assert_cluster_refuses(&world, &skip, "may apply it: b ."); /* although its entry 1 precedes it */
    assert_int_equal(cmdlog_halt(world.b, bad + 1, CMDLOG_FOREVER), 0);
    assert_cluster_refuses(&world, &skip, "may apply it: b .");
    assert_int_equal(cmdlog_halt(world.b, bad, CMDLOG_FOREVER), 0);
    assert_true(starts_with_skip(&world, world.a, &skip, bad));
    assert_true(ended_in_none(world.f));
    assert_true(starts_with_skip(&world, world.b, &none, bad));
    cluster_free(&world);
}

/* A host that has resumed may apply the entry at any time. */
static void test_cluster_does_not_skip_entry_that_a_host_retries(void **state)
{
    struct cluster_world world = cluster_new(*state);
    cmdlog_position bad = end_in_shared(&world, 2, 1);
    const struct poison_choice none = {0}, retry = {.retry = bad};
    struct cmdlog_skip_refusal refusal = {.hosts = BUF_INIT(BUF_UNLIMITED)};
    assert_cluster_refuses(&world, &none, "--skip-entry");
    assert_int_equal(cmdlog_halt(world.b, bad, CMDLOG_FOREVER), 0);
    assert_false(starts_with_skip(&world, world.a, &retry, bad));
    assert_int_equal(cmdlog_skip(world.b, bad, CMDLOG_FOREVER, &refusal), CMDLOG_REFUSED);
    assert_false(refusal.applied);
    assert_slice_equal(buf_as_slice(&refusal.hosts), "a ");
    buf_deinit(&refusal.hosts);
    cluster_free(&world);
}

static void test_cluster_does_not_skip_applied_entry(void **state)
{
    struct cluster_world world = cluster_new(*state);
    cmdlog_position bad = end_in_shared(&world, 2, 1);
    const struct poison_choice skip = {.skip = bad};
    const struct cmdlog_checkpoint later = {.position = bad, .locator = SLICE_LIT("store")};
    assert_int_equal(cmdlog_halt(world.b, bad, CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_put_checkpoint(world.b, &later), 0);
    assert_cluster_refuses(&world, &skip, "have applied it: b .");

    /* A heartbeat shows it before any checkpoint does. */
    struct command *beat = command_new(COMMAND_HEARTBEAT, DIALECT_7);
    beat->heartbeat.position = bad;
    (void)append_as(world.b, beat, 5000);
    assert_cluster_refuses(&world, &skip, "Host b has applied it");
    cluster_free(&world);

    /* This host has, before it was stopped. */
    world = cluster_new(*state);
    at_work_forget_entry(world.f->at_work);
    bad = end_in_shared(&world, 0, 1);
    at_work_begin_entry(world.f->at_work, bad, 3000, 1);
    at_work_end_entry(world.f->at_work);
    end(world.f);
    cluster_free(&world);
    world = cluster_new(*state);
    bad = end_in_shared(&world, 2, 1);
    assert_int_equal(cmdlog_halt(world.b, bad, CMDLOG_FOREVER), 0);
    assert_cluster_refuses(&world, &skip, "Host a has applied it");
    cluster_free(&world);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_end_while_decoding_is_counted),
        IN_FOLDER(test_end_in_entry_is_counted),
        IN_FOLDER(test_other_ends_are_not_counted),
        IN_FOLDER(test_ends_are_counted_per_entry),
        IN_FOLDER(test_damaged_page_counts_as_empty),
        IN_FOLDER(test_second_end_refuses_start_then_skip),
        IN_FOLDER(test_entry_whose_decoding_ends_the_process_is_skipped),
        IN_FOLDER(test_entry_whose_decoding_ahead_ends_the_process_is_skipped),
        IN_FOLDER(test_skip_is_appended_once),
        IN_FOLDER(test_skip_after_tried),
        IN_FOLDER(test_entry_with_successors_is_not_skipped),
        IN_FOLDER(test_entry_not_in_log_is_dropped),
        IN_FOLDER(test_entry_before_checkpoint_is_dropped),
        IN_FOLDER(test_second_end_in_loading_refuses_start),
        IN_FOLDER(test_skip_of_another_entry_is_corrupt),
        IN_FOLDER(test_skip_without_entry_is_corrupt),
        IN_FOLDER(test_complete_replay_drops_the_count),
        IN_FOLDER(test_start_that_waits_for_log_of_cluster_ends_by_signal),
        IN_FOLDER(test_start_reports_that_it_waits_for_log_of_cluster),
        IN_FOLDER(test_cluster_warns_of_an_entry_that_was_decoded_ahead),
        IN_FOLDER(test_cluster_does_not_decode_entry_whose_decoding_ended_it),
        IN_FOLDER(test_cluster_does_not_decode_entries_that_follow),
        IN_FOLDER(test_cluster_reports_log_that_was_trimmed_meanwhile),
        IN_FOLDER(test_cluster_skips_entry_once_all_hosts_have_halted),
        IN_FOLDER(test_cluster_does_not_skip_entry_that_a_host_retries),
        IN_FOLDER(test_cluster_does_not_skip_applied_entry),
        cmocka_unit_test(test_description_escapes_names_and_hides_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
