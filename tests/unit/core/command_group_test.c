/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command groups, the payload of command log entries. Decoding inverts encoding, damage is
 * rejected without side effects, and two cores that apply the same groups are in the same state.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "../../lib/command_sample.h"
#include "core/command/command_codec.h"
#include "core/step/command_group.h"

static void free_all(struct list *commands)
{
    while (!list_empty(commands)) {
        struct command *command = list_entry(commands->next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

static const enum command_type some_types[] = {COMMAND_WRITE, COMMAND_LOCK, COMMAND_RESTART, COMMAND_MAINTAIN};
enum { SOME = sizeof(some_types) / sizeof(*some_types) };

static const struct command_group_header some_head = {.host = 513, .ts = FIXTURE_START, .clock = 77};
static const struct command_group_header head_in_a_cluster = {
    .host = 2, .ts = FIXTURE_START, .clock = 77, .life = 4711, .number = 300};

static const struct command_group_header head_without_memory = {
    .host = 513, .ts = FIXTURE_START, .clock = 77, .memory_full = true};
static const struct command_group_header head_in_a_cluster_without_memory = {
    .host = 2, .ts = FIXTURE_START, .clock = 77, .life = 4711, .number = 300, .memory_full = true};

static void encode_some(const struct command_group_header *head, struct command **commands, struct buf *buf)
{
    struct rng rng;

    rng_init(&rng, 3);
    command_group_begin(head, buf);
    for (int i = 0; i < SOME; i++) {
        commands[i] = sample_command(some_types[i], i == 0 ? NULL : &rng);
        command_group_add(commands[i], buf);
    }
}

static void check_whole(const struct command_group_header *wanted)
{
    struct command *commands[SOME];
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct list taken = LIST_INIT(taken);
    struct command_group_header head;
    int i = 0;

    encode_some(wanted, commands, &buf);
    assert_int_equal(buf.data[0], (wanted->life == 0 ? 1 : 2) + (wanted->memory_full ? 2 : 0));
    assert_int_equal(command_group_read_header(buf_as_slice(&buf), &head), 0);
    assert_int_equal(head.number, wanted->number);
    assert_int_equal(command_group_decode(buf_as_slice(&buf), &head, &taken), 0);
    assert_int_equal(head.host, wanted->host);
    assert_int_equal(head.ts, wanted->ts);
    assert_int_equal(head.clock, wanted->clock);
    assert_int_equal(head.life, wanted->life);
    assert_int_equal(head.number, wanted->number);
    assert_int_equal(head.memory_full, wanted->memory_full);
    list_for_each(link, &taken)
    {
        assert_true(i < SOME && sample_same(commands[i], list_entry(link, struct command, link), NULL));
        i++;
    }
    assert_int_equal(i, SOME);
    free_all(&taken);
    for (i = 0; i < SOME; i++)
        command_free(commands[i]);
    buf_deinit(&buf);
}

static void test_command_group_roundtrip(void **state)
{
    (void)state;
    check_whole(&some_head);
    check_whole(&head_in_a_cluster);
    check_whole(&head_without_memory);
    check_whole(&head_in_a_cluster_without_memory);
}

/* Begins a group. Returns: its bytes as hexadecimal digits, valid until the next call. */
static const char *header_text(const struct command_group_header *head)
{
    static char text[64];
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    command_group_begin(head, &buf);
    assert_true(2 * buf.len < sizeof text);
    for (size_t i = 0; i < buf.len; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)buf.data[i]);
    buf_deinit(&buf);
    return text;
}

/* Logs of every build have these bytes. Memory that is full adds 2 to the version, and no byte. */
static void test_command_group_headers_have_fixed_bytes(void **state)
{
    (void)state;
    assert_string_equal(header_text(&some_head), "0181048094ebdc034d");
    assert_string_equal(header_text(&head_in_a_cluster), "02028094ebdc034de724ac02");
    assert_string_equal(header_text(&head_without_memory), "0381048094ebdc034d");
    assert_string_equal(header_text(&head_in_a_cluster_without_memory), "04028094ebdc034de724ac02");
}

static void test_command_group_of_newer_version_is_refused(void **state)
{
    struct command_group_header head;
    struct list taken = LIST_INIT(taken);
    char bytes[] = {COMMAND_GROUP_VERSION + 1, 0, 1, 0};
    (void)state;

    assert_int_equal(command_group_read_header(slice_make(bytes, sizeof bytes), &head), COMMAND_CODEC_NEWER);
    assert_int_equal(command_group_decode(slice_make(bytes, sizeof bytes), &head, &taken), COMMAND_CODEC_NEWER);
}

/*
 * Whether they differ first in the version of a command, which was an older one and is the newest
 * one in `again`.
 */
static bool is_version_raised(struct slice bytes, struct slice again)
{
    size_t at = 0;

    while (at < bytes.len && at < again.len && bytes.data[at] == again.data[at])
        at++;
    return at < bytes.len && at < again.len && bytes.data[at] < again.data[at] &&
           again.data[at] == COMMAND_CODEC_VERSION;
}

/* Reading types only finds the commands that decoding finds. */
static void check_types(struct slice bytes, const struct list *decoded)
{
    struct slice commands, command;

    assert_int_equal(command_group_open(bytes, &commands), 0);
    list_for_each(link, decoded)
    {
        assert_true(command_group_take(&commands, &command));
        assert_int_equal(command_read_type(command), list_entry(link, struct command, link)->type);
    }
    assert_false(command_group_take(&commands, &command));
}

/* Reading types of a group that decoding rejects ends, too. */
static void read_types(struct slice bytes)
{
    struct slice commands, command;

    if (command_group_open(bytes, &commands) != 0)
        return;
    while (command_group_take(&commands, &command))
        assert_true(command_read_type(command) <= COMMAND_TYPE_COUNT);
}

/*
 * A damaged group that is accepted must be the canonical encoding of its commands, except for
 * command versions.
 */
static void check_damaged(struct slice bytes)
{
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    struct list taken = LIST_INIT(taken);
    struct command_group_header head;
    int r = command_group_decode(bytes, &head, &taken);

    assert_true(r == 0 || r == TL_ERR_CORRUPT || r == COMMAND_CODEC_NEWER);
    if (r != 0) {
        assert_true(list_empty(&taken));
        read_types(bytes);
        return;
    }
    check_types(bytes, &taken);
    command_group_begin(&head, &again);
    list_for_each(link, &taken) command_group_add(list_entry(link, struct command, link), &again);
    assert_true(slice_equal(buf_as_slice(&again), bytes) || is_version_raised(bytes, buf_as_slice(&again)));
    free_all(&taken);
    buf_deinit(&again);
}

static void check_all_damage(const struct command_group_header *head)
{
    struct command *commands[SOME];
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    encode_some(head, commands, &buf);
    for (size_t len = 0; len < buf.len; len++)
        check_damaged(slice_make(buf.data, len));
    for (size_t bit = 0; bit < 8 * buf.len; bit++) {
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ 1 << bit % 8);
        check_damaged(buf_as_slice(&buf));
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ 1 << bit % 8);
    }
    for (int i = 0; i < SOME; i++)
        command_free(commands[i]);
    buf_deinit(&buf);
}

static void test_command_group_damage_is_rejected_or_canonical(void **state)
{
    (void)state;
    check_all_damage(&some_head);
    check_all_damage(&head_in_a_cluster);
    check_all_damage(&head_without_memory);
    check_all_damage(&head_in_a_cluster_without_memory);
}

/* --- Hosts (README.md, "Hosts") ----------------------------------------------------------------------------------- */

/*
 * Applies one command as a group. Returns: the completed command; NULL: it waits, or was skipped,
 * with *ret_counts false.
 */
static struct command *apply_one(struct core_fixture *fixture, uint16_t host, uint64_t life, uint64_t number,
                                 struct command *command, bool *ret_counts)
{
    struct list commands = LIST_INIT(commands);
    struct command_group_header head = {
        .host = host, .ts = ++fixture->now, .clock = fixture->clock += 10, .life = life, .number = number};

    list_append(&commands, &command->link);
    int r = command_group_apply(fixture->core, &head, &commands, &fixture->effects);
    assert_true(r == 0 || r == COMMAND_GROUP_IGNORED);
    *ret_counts = r == 0;
    free_all(&commands);
    if (list_empty(&fixture->effects.completed))
        return NULL;
    struct list *link = fixture->effects.completed.next;
    list_remove(link);
    return list_entry(link, struct command, link);
}

static struct command *join_of(struct core_fixture *fixture, const char *name, uint64_t life, const char *build)
{
    struct command *command = command_new(COMMAND_JOIN, DIALECT_7);

    command->join = (struct join_command){.name = slice_from(name),
                                          .group = SLICE_LIT("g"),
                                          .address = SLICE_LIT("a:1"),
                                          .build = slice_from(build),
                                          .life = life,
                                          .limits = *core_limits(fixture->core)};
    return command;
}

/* Returns: the host's number; 0: rejected. */
static uint16_t join(struct core_fixture *fixture, const char *name, uint64_t life, const char *build)
{
    bool counts;
    struct command *command = apply_one(fixture, 0, 0, 0, join_of(fixture, name, life, build), &counts);
    uint16_t number = command->problem.type == PROBLEM_NONE ? (uint16_t)command->join.number : 0;

    command_free(command);
    return number;
}

static void remove_host(struct core_fixture *fixture, const char *name, uint64_t life, bool forget)
{
    bool counts;
    struct command *command = command_new(COMMAND_HOST_GONE, DIALECT_7);

    command->gone = (struct gone_command){.name = slice_from(name), .life = life, .forget = forget};
    command_free(apply_one(fixture, 0, 0, 0, command, &counts));
}

static bool send_heartbeat(struct core_fixture *fixture, uint16_t host, uint64_t life, uint64_t number)
{
    bool counts;
    struct command *command = command_new(COMMAND_HEARTBEAT, DIALECT_7);

    command->request = (uint64_t)host << HOST_SHIFT;
    command->heartbeat.barrier_clock = number;
    command_free(apply_one(fixture, host, life, number, command, &counts));
    return counts;
}

static void test_command_group_counts_once_and_in_its_host_life(void **state)
{
    struct core_fixture fixture;
    size_t count;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(join(&fixture, "b", 10, "1"), 1);
    assert_int_equal(join(&fixture, "a", 20, "1"), 2);
    assert_true(send_heartbeat(&fixture, 1, 10, 1));
    assert_false(send_heartbeat(&fixture, 1, 10, 1)); /* repeated */
    assert_true(send_heartbeat(&fixture, 1, 10, 5));
    assert_false(send_heartbeat(&fixture, 1, 10, 4)); /* below the last number: its sender has given it up */
    assert_false(send_heartbeat(&fixture, 1, 11, 6));
    assert_false(send_heartbeat(&fixture, 3, 10, 6));
    assert_true(send_heartbeat(&fixture, 2, 20, 1));
    remove_host(&fixture, "b", 9, false); /* another life */
    assert_true(send_heartbeat(&fixture, 1, 10, 6));
    remove_host(&fixture, "b", 10, false);
    assert_false(send_heartbeat(&fixture, 1, 10, 7));
    assert_int_equal(join(&fixture, "b", 12, "1"), 1);
    assert_false(send_heartbeat(&fixture, 1, 10, 8));
    assert_true(send_heartbeat(&fixture, 1, 12, 1));
    const struct core_host *all = core_hosts(fixture.core, &count);
    assert_int_equal(count, 2);
    assert_true(slice_is(all[0].name, "a") && slice_is(all[1].name, "b"));
    remove_host(&fixture, "b", 12, true);
    assert_null(core_host(fixture.core, 1));
    assert_int_equal(join(&fixture, "b", 13, "1"), 3);
    fixture_close(&fixture);
}

static void test_join_rejects_different_host(void **state)
{
    struct core_fixture fixture;
    bool counts;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(join(&fixture, "a", 1, "1"), 1);
    assert_int_equal(join(&fixture, "b", 2, "2"), 0);
    assert_int_equal(join(&fixture, "b", 0, "1"), 0);
    assert_int_equal(join(&fixture, "", 2, "1"), 0);
    struct command *command = join_of(&fixture, "b", 2, "1");
    command->join.limits.sessions_max++;
    command = apply_one(&fixture, 0, 0, 0, command, &counts);
    assert_int_equal(command->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_non_null(memmem(command->problem.reason.data, command->problem.reason.len, "max-sessions", 12));
    command_free(command);
    assert_int_equal(join(&fixture, "a", 3, "2"), 1); /* the only host may have another build */
    fixture_close(&fixture);
}

static void send_session(struct core_fixture *fixture, enum command_type type, const char *id, uint16_t host)
{
    bool counts;
    struct command *command = command_new(type, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.ttl_us = 5 * TL_SECOND;
    command->session.attachment = (uint64_t)host << HOST_SHIFT | 7;
    command_free(apply_one(fixture, 0, 0, 0, command, &counts));
}

static struct command *send_lock(struct core_fixture *fixture, const char *id, uint16_t host)
{
    bool counts;
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->request = (uint64_t)host << HOST_SHIFT | fixture->now;
    command->owner.session = slice_from(id);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = SLICE_LIT("1")};
    command->lock.target_count = 1;
    return apply_one(fixture, 0, 0, 0, command, &counts);
}

static struct command *send_write(struct core_fixture *fixture, uint16_t host)
{
    bool counts;
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);

    command->request = (uint64_t)host << HOST_SHIFT | fixture->now;
    command->owner.timeout_us = 60 * TL_SECOND;
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    command->write.item_count = 1;
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", NULL, "1", "{}");
    return apply_one(fixture, 0, 0, 0, command, &counts);
}

/*
 * Waiting requests of the host end, but those for locks of sessions keep their places. Sessions that it kept alive
 * continue until their leases expire. Requests of other hosts continue.
 */
static void test_host_removal_ends_only_its_waiting_requests(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(join(&fixture, "a", 1, "1"), 1);
    assert_int_equal(join(&fixture, "b", 2, "1"), 2);
    send_session(&fixture, COMMAND_SESSION_OPEN, "s", 1);
    send_session(&fixture, COMMAND_SESSION_OPEN, "t", 1);
    send_session(&fixture, COMMAND_SESSION_OPEN, "u", 1);
    send_session(&fixture, COMMAND_SESSION_ATTACH, "s", 1);
    command_free(send_lock(&fixture, "s", 1));
    assert_null(send_lock(&fixture, "t", 1));
    assert_null(send_write(&fixture, 1));
    assert_null(send_lock(&fixture, "u", 2));
    fixture.clock += 60 * TL_SECOND;
    remove_host(&fixture, "a", 1, false); /* completes the host's waiting write, the first in the list */
    struct command *ended = list_entry(fixture.effects.completed.next, struct command, link);
    assert_false(list_empty(&fixture.effects.completed));
    assert_int_equal(ended->type, COMMAND_HOST_GONE); /* it is after the write */
    list_remove(&ended->link);
    command_free(ended);
    assert_true(list_empty(&fixture.effects.completed)); /* the others still wait */
    assert_true(core_next_lease_end(fixture.core) != TL_TS_MAX);
    core_stop(fixture.core, &fixture.effects);
    free_all(&fixture.effects.completed);
    fixture_close(&fixture);
}

static void apply(struct core_fixture *fixture, const char *id, tl_ts ts)
{
    struct command *command = fixture_write_command(fixture, 1);
    struct list commands = LIST_INIT(commands);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct command_group_header head = {.ts = ts};

    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", id, "{}");
    command_group_begin(&head, &buf);
    command_group_add(command, &buf);
    command_group_add(command, &buf);
    assert_int_equal(command_group_decode(buf_as_slice(&buf), &head, &commands), 0);
    assert_int_equal(command_group_apply(fixture->core, &head, &commands, &fixture->effects), 0);
    free_all(&fixture->effects.completed);
    command_free(command);
    buf_deinit(&buf);
}

/* If the proposed timestamp is not above the last one, the next free ones are used. */
static void test_command_group_timestamps_increase(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    apply(&fixture, "1", FIXTURE_START);
    assert_int_equal(core_last_ts(fixture.core), FIXTURE_START + 1);
    apply(&fixture, "2", FIXTURE_START - 100);
    assert_int_equal(core_last_ts(fixture.core), FIXTURE_START + 3);
    apply(&fixture, "3", FIXTURE_START + 100);
    assert_int_equal(core_last_ts(fixture.core), FIXTURE_START + 101);
    fixture_close(&fixture);
}

static void test_chain_hashes_match_while_groups_match(void **state)
{
    struct core_fixture a, b;
    (void)state;

    fixture_open(&a);
    fixture_open(&b);
    core_begin_chain(a.core, 5);
    core_begin_chain(b.core, 5);
    apply(&a, "1", FIXTURE_START);
    apply(&b, "1", FIXTURE_START);
    assert_true(core_chain(a.core) == core_chain(b.core) && core_chain(a.core) != 5);
    apply(&a, "1", FIXTURE_START + 10);
    apply(&b, "1", FIXTURE_START + 11);
    assert_true(core_chain(a.core) != core_chain(b.core));
    fixture_close(&a);
    fixture_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_group_roundtrip),
        cmocka_unit_test(test_command_group_headers_have_fixed_bytes),
        cmocka_unit_test(test_command_group_of_newer_version_is_refused),
        cmocka_unit_test(test_command_group_damage_is_rejected_or_canonical),
        cmocka_unit_test(test_command_group_counts_once_and_in_its_host_life),
        cmocka_unit_test(test_join_rejects_different_host),
        cmocka_unit_test(test_host_removal_ends_only_its_waiting_requests),
        cmocka_unit_test(test_command_group_timestamps_increase),
        cmocka_unit_test(test_chain_hashes_match_while_groups_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
