/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feed records: binary form, parts, and no repeats. Simulators check that a follower of the feed
 * has the current documents (feed_replay.h).
 */
#include "../../lib/unit.h"

#include "core/catalog/catalog.h"
#include "core/feed/feed.h"
#include "core/feed/feed_read.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/step/core.h"
#include "store/store.h"
#include "store/view.h"

struct fixture {
    struct store *store;
    struct core *core;
    struct effects effects;
    tl_ts now;
};

static int setup(void **state)
{
    static struct fixture fixture;
    struct core_limits limits = core_limits_default();
    fixture = (struct fixture){.store = store_open_mem(), .now = 1000};
    effects_init(&fixture.effects);
    *state = &fixture;
    return core_open(fixture.store, &limits, &fixture.core);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    core_close(f->core);
    store_close(f->store);
    return 0;
}

static void step(struct fixture *f, struct command *command)
{
    command->ts = ++f->now;
    assert_int_equal(core_step(f->core, command, &f->effects), 0);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    list_remove(&command->link);
    command_free(command);
}

/* Writes or deletes documents 0 .. count - 1, each `times` times, in one command. */
static void put(struct fixture *f, size_t count, size_t times, bool deletes)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct write_item *items = arena_zalloc(&command->arena, count * times * sizeof *items);
    for (size_t i = 0; i < count * times; i++)
        items[i] = (struct write_item){.op = deletes && i >= count ? WRITE_DELETE : WRITE_INDEX,
                                       .index = SLICE_LIT("x"),
                                       .id = arena_printf(&command->arena, "%zu", i % count),
                                       .source = SLICE_LIT("{}"),
                                       .version = VERSION_ANY,
                                       .if_seq_no = SEQ_NO_ANY};
    command->write.items = items;
    command->write.item_count = count * times;
    step(f, command);
}

/* Writes a document under a routing; SLICE_NONE: without one. */
static void put_routed(struct fixture *f, struct slice index, struct slice routing)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    *item = (struct write_item){.op = WRITE_INDEX,
                                .index = index,
                                .id = SLICE_LIT("r"),
                                .routing = routing,
                                .source = SLICE_LIT("{}"),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    command->write.items = item;
    command->write.item_count = 1;
    step(f, command);
}

/* Returns: the mark of an index, by the catalog that the store has as of now. */
static bool may_have_routings(struct fixture *f, const char *name)
{
    tl_cleanup(catalog_unrefp) struct catalog *stored = NULL, *present = core_catalog(f->core);
    assert_int_equal(catalog_load(&(struct view){f->store, f->now, NULL}, &stored), 0);
    bool mark = catalog_index(present, slice_from(name))->may_have_routings;
    assert_int_equal(catalog_index(stored, slice_from(name))->may_have_routings, mark);
    return mark;
}

/* Scans the feed. Returns: changes of documents; *ret_parts: records, *ret_deleted: deletions. */
static size_t read_feed(struct fixture *f, tl_ts since, size_t *ret_parts, size_t *ret_deleted)
{
    struct feed_scan *scan;
    struct feed_record record;
    struct feed_change change;
    tl_ts from, before = 0;
    uint32_t last = 0;
    size_t documents = 0;
    int r;
    *ret_parts = *ret_deleted = 0;
    assert_int_equal(feed_scan_new(f->store, since, f->now, &scan, &from), 0);
    while ((r = feed_scan_next(scan, &record)) == 0) {
        size_t count = 0;
        assert_int_equal(record.part, record.ts == before ? last + 1 : 0);
        before = record.ts;
        last = record.part;
        ++*ret_parts;
        for (struct slice rest = record.changes; rest.len > 0; count++) {
            assert_true(feed_change_take(&rest, &change));
            documents += change.kind <= FEED_DELETED;
            *ret_deleted += change.kind == FEED_DELETED;
        }
        assert_true(count <= FEED_RECORD_CHANGES);
    }
    assert_int_equal(r, FEED_END);
    feed_scan_free(scan);
    return documents;
}

static void test_feed_splits_large_unit_into_parts(void **state)
{
    struct fixture *f = *state;
    size_t parts, deleted;
    put(f, 1, 1, false);
    tl_ts since = f->now;
    put(f, 2500, 1, false);
    assert_int_equal(read_feed(f, since, &parts, &deleted), 2500);
    assert_int_equal(parts, 3);
    assert_int_equal(read_feed(f, f->now, &parts, &deleted), 0);
    assert_int_equal(parts, 0);
}

/* Returns: the bytes of the keys and values that the feed has above `since`; *ret_keys: their number. */
static size_t feed_bytes(struct fixture *f, tl_ts since, size_t *ret_keys)
{
    char lower[FEED_KEY_BYTES], upper[FEED_KEY_BYTES];
    size_t bytes = 0;
    *ret_keys = 0;
    struct store_iter *iter =
        store_iter_new(f->store, SPACE_FEED, TL_TS_MAX, feed_key(lower, since + 1, 0), feed_key(upper, f->now + 1, 0));
    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter)) {
        bytes += store_iter_key(iter).len + store_iter_value(iter).len;
        ++*ret_keys;
    }
    store_iter_free(iter);
    return bytes;
}

/* Puts a document, whose id has as many characters as those that Elasticsearch generates. */
static void put_in(struct fixture *f, size_t index)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    *item = (struct write_item){.op = WRITE_INDEX,
                                .index = arena_printf(&command->arena, "x%zu", index),
                                .id = SLICE_LIT("AVx0B2fTqD3mJr9kLw8P"),
                                .source = SLICE_LIT("{\"title\":\"longer than what the feed has of it\"}"),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    command->write.items = item;
    command->write.item_count = 1;
    step(f, command);
}

/* Numbers of indices above 127 have two bytes. */
static void test_feed_put_costs_one_key_of_forty_bytes(void **state)
{
    struct fixture *f = *state;
    size_t keys;
    for (size_t index = 0; index < 300; index++) {
        put_in(f, index); /* creates the index */
        tl_ts since = f->now;
        put_in(f, index);
        assert_in_range(feed_bytes(f, since, &keys), 1, 40);
        assert_int_equal(keys, 1);
    }
}

static void test_feed_names_document_once_per_unit(void **state)
{
    struct fixture *f = *state;
    size_t parts, deleted;
    put(f, 1, 1, false);
    tl_ts since = f->now;
    put(f, 40, 3, false);
    assert_int_equal(read_feed(f, since, &parts, &deleted), 40);
    since = f->now;
    put(f, 40, 2, true);
    assert_int_equal(read_feed(f, since, &parts, &deleted), 40);
    assert_int_equal(deleted, 40);
}

static void feed_command(struct fixture *f, bool off, tl_ts cut)
{
    struct command *command = command_new(COMMAND_FEED, DIALECT_7);
    command->feed = (struct feed_command){.off = off, .cut = cut};
    step(f, command);
}

static int begins_at(struct fixture *f, tl_ts since, tl_ts *ret_from)
{
    struct feed_scan *scan = NULL;
    int r = feed_scan_new(f->store, since, f->now, &scan, ret_from);
    feed_scan_free(scan);
    return r;
}

static void test_feed_rejects_reads_below_its_start(void **state)
{
    struct fixture *f = *state;
    size_t parts, deleted;
    tl_ts from;
    assert_int_equal(begins_at(f, 0, &from), FEED_TOO_OLD);
    for (int i = 0; i < 10; i++)
        put(f, 1, 1, false);
    assert_int_equal(begins_at(f, 0, &from), 0);
    tl_ts cut = f->now - 5;
    feed_command(f, false, cut);
    assert_int_equal(begins_at(f, cut - 1, &from), FEED_TOO_OLD);
    assert_int_equal(from, cut);
    assert_int_equal(read_feed(f, cut, &parts, &deleted), 5);
    feed_command(f, false, cut - 1); /* a trim never moves the start back */
    assert_int_equal(begins_at(f, cut - 1, &from), FEED_TOO_OLD);
    feed_command(f, true, 0);
    put(f, 1, 1, false);
    assert_int_equal(begins_at(f, f->now, &from), FEED_OFF);
    feed_command(f, false, 0);
    tl_ts on = f->now;
    put(f, 1, 1, false);
    assert_int_equal(begins_at(f, on - 2, &from), FEED_TOO_OLD);
    assert_int_equal(read_feed(f, on, &parts, &deleted), 1);
}

static size_t count_changes(struct fixture *f, tl_ts since)
{
    struct feed_scan *scan;
    struct feed_record record;
    struct feed_change change;
    tl_ts from;
    size_t count = 0;
    assert_int_equal(feed_scan_new(f->store, since, f->now, &scan, &from), 0);
    while (feed_scan_next(scan, &record) == 0)
        while (feed_change_take(&record.changes, &change))
            count++;
    feed_scan_free(scan);
    return count;
}

static void test_feed_first_routing_marks_index(void **state)
{
    struct fixture *f = *state;
    put_routed(f, SLICE_LIT("x"), SLICE_NONE);
    put_routed(f, SLICE_LIT("y"), SLICE_NONE);
    assert_false(may_have_routings(f, "x"));
    tl_ts since = f->now;
    put_routed(f, SLICE_LIT("x"), SLICE_LIT("a"));
    assert_int_equal(count_changes(f, since), 1); /* the document alone */
    assert_true(may_have_routings(f, "x"));
    assert_false(may_have_routings(f, "y"));
    put_routed(f, SLICE_LIT("x"), SLICE_NONE);
    assert_true(may_have_routings(f, "x"));
    put_routed(f, SLICE_LIT("z"), SLICE_LIT("a")); /* the unit makes the index, too */
    assert_true(may_have_routings(f, "z"));
}

/* An index that a command of an older version creates may have routings, as in a store that its build made. */
static void test_feed_index_of_older_command_is_marked(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7), *older;
    command->write.items = arena_zalloc(&command->arena, sizeof *command->write.items);
    *command->write.items = (struct write_item){.op = WRITE_INDEX,
                                                .index = SLICE_LIT("x"),
                                                .id = SLICE_LIT("1"),
                                                .source = SLICE_LIT("{}"),
                                                .version = VERSION_ANY,
                                                .if_seq_no = SEQ_NO_ANY};
    command->write.item_count = 1;
    command_encode(command, &bytes);
    command_free(command);
    bytes.data[0] = 6;
    assert_int_equal(command_decode(buf_as_slice(&bytes), &older), 0);
    buf_deinit(&bytes);
    step(f, older);
    assert_true(may_have_routings(f, "x"));
    put_routed(f, SLICE_LIT("y"), SLICE_NONE);
    assert_false(may_have_routings(f, "y"));
}

/* An index's record of version 1 has no mark: its documents may have routings. */
static void test_feed_index_of_older_store_is_marked(void **state)
{
    struct fixture *f = *state;
    struct buf old = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    tl_cleanup(catalog_unrefp) struct catalog *catalog = NULL;
    put_routed(f, SLICE_LIT("x"), SLICE_NONE);
    struct catalog *present = core_catalog(f->core);
    char key[5] = {'i', 0, 0, 0, (char)catalog_index(present, SLICE_LIT("x"))->number};
    catalog_unref(present);
    assert_int_equal(store_get(f->store, SPACE_CATALOG, TL_TS_MAX, slice_make(key, sizeof key), &value), 0);
    assert_int_equal(value.bytes.data[0], 2);
    assert_int_equal(value.bytes.data[value.bytes.len - 1], 0);
    buf_byte(&old, 1);
    buf_slice(&old, slice_make(value.bytes.data + 1, value.bytes.len - 2));
    store_value_release(&value);
    struct store_batch *batch = store_batch_new(f->store);
    store_batch_begin(batch, f->now + 100);
    store_batch_put(batch, SPACE_CATALOG, slice_make(key, sizeof key), buf_as_slice(&old));
    assert_int_equal(store_write(f->store, batch), 0);
    store_batch_free(batch);
    assert_int_equal(catalog_load(&(struct view){f->store, f->now + 100, NULL}, &catalog), 0);
    assert_true(catalog_index(catalog, SLICE_LIT("x"))->may_have_routings);
    buf_deinit(&old);
}

static void test_feed_change_roundtrip(void **state)
{
    (void)state;
    for (int what = FEED_WRITTEN; what <= FEED_RENAMED; what++) {
        struct feed_change change = {(enum feed_kind)what, 70000, 300, SLICE_LIT("a\0\xff"), SLICE_LIT("to")}, back;
        struct buf bytes = BUF_INIT(BUF_UNLIMITED);
        feed_change_put(&bytes, &change);
        struct slice rest = buf_as_slice(&bytes);
        assert_true(feed_change_take(&rest, &back));
        assert_int_equal(rest.len, 0);
        assert_int_equal(back.index, 70000);
        assert_true(what > FEED_DELETED || (back.type == 300 && slice_equal(back.name, change.name)));
        for (size_t len = 0; len < bytes.len; len++) {
            rest = slice_make(bytes.data, len);
            assert_false(feed_change_take(&rest, &back));
        }
        buf_deinit(&bytes);
    }
    struct slice wrong = SLICE_LIT("\x09\x01");
    struct feed_change none;
    assert_false(feed_change_take(&wrong, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_feed_splits_large_unit_into_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_feed_put_costs_one_key_of_forty_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_feed_names_document_once_per_unit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_feed_rejects_reads_below_its_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_feed_first_routing_marks_index, setup, teardown),
        cmocka_unit_test_setup_teardown(test_feed_index_of_older_command_is_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_feed_index_of_older_store_is_marked, setup, teardown),
        cmocka_unit_test(test_feed_change_roundtrip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
