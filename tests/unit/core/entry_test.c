/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the log: what is taken apart is what was put together, damage leaves nothing behind, and two cores that apply the same are the same. */
#include "../../lib/core_box.h"
#include "../../lib/unit.h"

#include "../../lib/command_sample.h"
#include "core/step/command_code.h"
#include "core/step/entry.h"

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

static const struct entry_head some_head = {.host = 513, .ts = BOX_START, .clock = 77};

static void put_together(struct command **commands, struct buf *buf)
{
    struct rng rng;

    rng_init(&rng, 3);
    entry_begin(&some_head, buf);
    for (int i = 0; i < SOME; i++) {
        commands[i] = sample_command(some_types[i], i == 0 ? NULL : &rng);
        entry_add(commands[i], buf);
    }
}

static void an_entry_is_what_it_was(void **state)
{
    struct command *commands[SOME];
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct list taken = LIST_INIT(taken);
    struct entry_head head;
    int i = 0;
    (void)state;

    put_together(commands, &buf);
    assert_int_equal(entry_decode(buf_view(&buf), &head, &taken), 0);
    assert_int_equal(head.host, some_head.host);
    assert_int_equal(head.ts, some_head.ts);
    assert_int_equal(head.clock, some_head.clock);
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

/* What is not refused is the one form of what it says. */
static void check_damaged(struct slice bytes)
{
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    struct list taken = LIST_INIT(taken);
    struct entry_head head;
    int r = entry_decode(bytes, &head, &taken);

    assert_true(r == 0 || r == TL_ERR_CORRUPT || r == COMMAND_CODE_NEWER);
    if (r != 0) {
        assert_true(list_empty(&taken));
        return;
    }
    entry_begin(&head, &again);
    list_for_each(link, &taken) entry_add(list_entry(link, struct command, link), &again);
    assert_true(slice_equal(buf_view(&again), bytes));
    free_all(&taken);
    buf_deinit(&again);
}

static void damage_is_refused_or_another_entry(void **state)
{
    struct command *commands[SOME];
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    put_together(commands, &buf);
    for (size_t len = 0; len < buf.len; len++)
        check_damaged(slice_make(buf.data, len));
    for (size_t bit = 0; bit < 8 * buf.len; bit++) {
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ 1 << bit % 8);
        check_damaged(buf_view(&buf));
        buf.data[bit / 8] = (char)(buf.data[bit / 8] ^ 1 << bit % 8);
    }
    for (int i = 0; i < SOME; i++)
        command_free(commands[i]);
    buf_deinit(&buf);
}

static void apply(struct core_box *box, const char *id, tl_ts ts)
{
    struct command *command = box_write(box, 1);
    struct list commands = LIST_INIT(commands);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct entry_head head = {.ts = ts};

    command->write.items[0] = box_item(WRITE_INDEX, "fs", "", id, "{}");
    entry_begin(&head, &buf);
    entry_add(command, &buf);
    entry_add(command, &buf);
    assert_int_equal(entry_decode(buf_view(&buf), &head, &commands), 0);
    assert_int_equal(entry_apply(box->core, &head, &commands, &box->effects), 0);
    free_all(&box->effects.completed);
    command_free(command);
    buf_deinit(&buf);
}

/* A proposer's clock may be behind: then the next timestamps are taken. */
static void timestamps_rise_whatever_is_proposed(void **state)
{
    struct core_box box;
    (void)state;

    box_open(&box);
    apply(&box, "1", BOX_START);
    assert_int_equal(core_last_ts(box.core), BOX_START + 1);
    apply(&box, "2", BOX_START - 100);
    assert_int_equal(core_last_ts(box.core), BOX_START + 3);
    apply(&box, "3", BOX_START + 100);
    assert_int_equal(core_last_ts(box.core), BOX_START + 101);
    box_close(&box);
}

static void chains_are_equal_while_entries_are(void **state)
{
    struct core_box a, b;
    (void)state;

    box_open(&a);
    box_open(&b);
    core_begin_chain(a.core, 5);
    core_begin_chain(b.core, 5);
    apply(&a, "1", BOX_START);
    apply(&b, "1", BOX_START);
    assert_true(core_chain(a.core) == core_chain(b.core) && core_chain(a.core) != 5);
    apply(&a, "1", BOX_START + 10);
    apply(&b, "1", BOX_START + 11);
    assert_true(core_chain(a.core) != core_chain(b.core));
    box_close(&a);
    box_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_what_it_was),
        cmocka_unit_test(damage_is_refused_or_another_entry),
        cmocka_unit_test(timestamps_rise_whatever_is_proposed),
        cmocka_unit_test(chains_are_equal_while_entries_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
