/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of births (src/core/tree/README.md): what records say, what a path is, and, case by case, what a rename makes of what lies below;
 * tests/sim/tree has the combinations.
 */
#include "../../lib/unit.h"

#include "core/tree/empty_paths.h"
#include "core/tree/tree_write.h"

#include <stdio.h>

enum { INDEX = 3 };

struct box {
    struct store *store;
    struct store_batch *batch;
    struct omap pending;
    struct view view; /* the newest state */
    struct arena arena;
    uint32_t made;
    tl_ts now;
    int64_t seq_no;
    tl_ts past_from; /* of its renames */
};

static void open_box(struct box *box)
{
    *box = (struct box){.store = store_open_mem(), .arena = ARENA_INIT, .now = 100};
    box->batch = store_batch_new(box->store);
    box->view = (struct view){box->store, TL_TS_MAX, NULL};
    omap_init(&box->pending);
    store_batch_begin(box->batch, box->now);
}

static void close_box(struct box *box)
{
    omap_deinit(&box->pending);
    store_batch_free(box->batch);
    store_close(box->store);
    arena_deinit(&box->arena);
}

/* Writes the unit at hand, and begins the next one. */
static void next_unit(struct box *box)
{
    if (store_batch_count(box->batch) > 0)
        assert_int_equal(store_write(box->store, box->batch), 0);
    store_batch_clear(box->batch);
    omap_clear(&box->pending);
    store_batch_begin(box->batch, ++box->now);
}

static struct tree_writer writer_of(struct box *box, const struct view *view)
{
    return (struct tree_writer){.tree = {view, INDEX, '/', &box->pending},
                                .overlay = (struct overlay *)(uintptr_t)view->overlay,
                                .batch = box->batch,
                                .pending = &box->pending,
                                .ts = box->now,
                                .origins_created = &box->made,
                                .history_from = box->past_from};
}

static struct slice make_in(struct box *box, const struct view *view, const char *path)
{
    struct tree_writer writer = writer_of(box, view);
    struct slice birth;
    int64_t stamp;

    assert_int_equal(tree_resolve_or_create(&writer, slice_from(path), &box->arena, &birth, &stamp), 0);
    return birth;
}

static struct slice make(struct box *box, const char *path)
{
    struct slice birth = make_in(box, &box->view, path);

    next_unit(box);
    return birth;
}

static int rename_in(struct box *box, const struct view *view, const char *from, const char *to)
{
    struct tree_writer writer = writer_of(box, view);

    return tree_rename(&writer, slice_from(from), slice_from(to), box->seq_no++,
                       view->overlay != NULL ? TREE_TS_OPEN : box->now);
}

static int rename_now(struct box *box, const char *from, const char *to)
{
    int r = rename_in(box, &box->view, from, to);

    next_unit(box);
    return r;
}

static struct tree_totals stand(struct box *box, const struct view *view, struct slice birth, const char *wanted)
{
    struct tree tree = {view, INDEX, '/', NULL};
    struct tree_totals standing = {0};
    struct slice path;
    int r = tree_locate(&tree, birth, &box->arena, &path, &standing);

    assert_int_equal(r, wanted == NULL ? TREE_NOT_FOUND : 0);
    if (wanted != NULL)
        assert_true(slice_is(path, wanted));
    return standing;
}

static void assert_lies(struct box *box, struct slice birth, const char *wanted)
{
    (void)stand(box, &box->view, birth, wanted);
}

static int find(struct box *box, const char *path, struct slice *ret_birth)
{
    struct tree tree = {&box->view, INDEX, '/', NULL};

    return tree_resolve(&tree, slice_from(path), &box->arena, ret_birth);
}

static size_t records(struct box *box)
{
    return store_batch_count(box->batch);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static const struct tree_relocation moves[] = {
    {.seq_no = -1},
    {.ts = 17, .state = TREE_RELOCATED, .renames = 1, .seq_no = 0, .dirent = {"a", 1}},
    {.ts = TREE_TS_OPEN, .state = TREE_RELOCATED, .renames = INT64_MIN, .seq_no = INT64_MAX - 1, .dirent = {"a\0b", 3}},
    {.ts = 1, .state = TREE_DETACHED, .renames = INT64_MAX, .seq_no = 5},
};

static void records_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        struct tree_relocation moved;
        tree_relocation_encode(&buf, &moves[i]);
        assert_int_equal(tree_relocation_decode(buf_as_slice(&buf), &moved), 0);
        assert_true(moved.ts == moves[i].ts && moved.state == moves[i].state && moved.renames == moves[i].renames);
        assert_true(moved.seq_no == moves[i].seq_no && slice_equal(moved.dirent, moves[i].dirent));
        for (size_t len = 0; len < 11; len++)
            assert_int_equal(tree_relocation_decode(slice_make(buf.data, len), &moved),
                             len < buf.len && (len < 11 || moves[i].dirent.len > 0) ? TL_ERR_CORRUPT : 0);
        buf_deinit(&buf);
    }
}

static void a_past_comes_back_the_newest_first(void **state)
{
    struct buf key = BUF_INIT(64), past = BUF_INIT(BUF_UNLIMITED);
    struct tree_relocation moved;
    struct slice item;
    tl_ts ts;
    (void)state;

    tree_history_encode(&past, TREE_TS_OPEN, &moves[1]);
    tree_history_encode(&past, 9, &moves[0]);
    tree_history_key(&key, INDEX, SLICE_LIT("/a"));
    assert_true(tree_record_is_valid(buf_as_slice(&key), buf_as_slice(&past)));
    assert_true(tree_record_is_open(buf_as_slice(&key), buf_as_slice(&past)));
    for (size_t len = 0; len < past.len; len++) /* as long as the first item is, it is one */
        assert_int_equal(tree_record_is_valid(buf_as_slice(&key), slice_make(past.data, len)), len == past.len - 20);
    struct slice rest = buf_as_slice(&past);
    for (int i = 1; i >= 0; i--) {
        assert_int_equal(tree_history_take(&rest, &ts, &item), 0);
        assert_int_equal(tree_relocation_decode(item, &moved), 0);
        assert_true(ts == (i == 1 ? TREE_TS_OPEN : 9) && moved.ts == moves[i].ts && moved.renames == moves[i].renames);
    }
    assert_int_equal(rest.len, 0);
    buf_truncate(&past, 0);
    tree_history_encode(&past, 9, &moves[0]);
    tree_history_encode(&past, 10, &moves[1]);
    assert_false(tree_record_is_valid(buf_as_slice(&key), buf_as_slice(&past)));
    buf_deinit(&key);
    buf_deinit(&past);
}

static void damaged_records_are_refused(void **state)
{
    static const char bad[][16] = {"12345678\3\0\0", "12345678\1\0\0", "12345678\0\0\0x", "12345678\2\0\0x"};
    struct tree_relocation moved;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tree_relocation_decode(slice_make(bad[i], i < 2 ? 11 : 12), &moved), TL_ERR_CORRUPT);
}

static void only_renames_of_open_transactions_are_stamped(void **state)
{
    struct buf key = BUF_INIT(64), value = BUF_INIT(64);
    struct tree_relocation moved = {.ts = TREE_TS_OPEN, .seq_no = 1};
    (void)state;
    tree_relocation_encode(&value, &moved);
    assert_true(tree_record_is_open(tree_relocation_key(&key, INDEX, SLICE_LIT("/a")), buf_as_slice(&value)));
    assert_true(tree_record_is_open(tree_last_rename_key(&key, INDEX), buf_as_slice(&value)));
    assert_false(tree_record_is_open(tree_dirent_key(&key, INDEX, SLICE_LIT("/a")), buf_as_slice(&value)));
    moved.ts = 9;
    buf_clear(&value);
    tree_relocation_encode(&value, &moved);
    assert_false(tree_record_is_open(tree_relocation_key(&key, INDEX, SLICE_LIT("/a")), buf_as_slice(&value)));
    buf_deinit(&key);
    buf_deinit(&value);
}

/* --- Paths -------------------------------------------------------------------------------------------------------- */

static void parents_are_what_stands_in_front_of_the_last_name(void **state)
{
    static const struct {
        const char *path;
        size_t parent;
    } cases[] = {{"", 0},    {"/", 0},    {"a", 0},   {"/a", 0},  {"a/", 1},
                 {"a/b", 1}, {"/a/b", 2}, {"//b", 1}, {"/a/", 2}, {"//", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tree_parent_length(slice_from(cases[i].path), '/'), cases[i].parent);
    assert_true(tree_within(SLICE_LIT("/a/b"), SLICE_LIT("/a"), '/'));
    assert_true(tree_within(SLICE_LIT("/a"), SLICE_LIT("/a"), '/'));
    assert_false(tree_within(SLICE_LIT("/ab"), SLICE_LIT("/a"), '/'));
}

/* --- Renames ------------------------------------------------------------------------------------------------------ */

static void a_path_is_its_own_birth_before_any_rename(void **state)
{
    struct box box;
    (void)state;
    open_box(&box);
    assert_true(slice_is(make_in(&box, &box.view, "/a/b//c"), "/a/b//c"));
    assert_int_equal(records(&box), 0);
    assert_lies(&box, SLICE_LIT("/a/b//c"), "/a/b//c");
    close_box(&box);
}

static void what_lies_below_goes_along_and_counts_it(void **state)
{
    struct box box;
    struct slice birth;
    (void)state;
    open_box(&box);
    assert_int_equal(rename_in(&box, &box.view, "/clinton", "/people/bill"), 0);
    assert_true(records(&box) <= 4);
    next_unit(&box);
    struct tree_totals standing = stand(&box, &box.view, SLICE_LIT("/clinton/x/y"), "/people/bill/x/y");
    assert_true(standing.renames == 1 && standing.seq_no == 0 && standing.ts == 100);
    assert_lies(&box, SLICE_LIT("/clintons"), "/clintons");
    assert_int_equal(find(&box, "/people/bill/x", &birth), 0);
    assert_true(slice_is(birth, "/clinton/x"));
    assert_int_equal(find(&box, "/clinton/x", &birth), TREE_NOT_FOUND);
    close_box(&box);
}

static void a_name_that_was_left_is_free_for_others(void **state)
{
    struct box box;
    (void)state;
    open_box(&box);
    assert_int_equal(rename_now(&box, "/a", "/b"), 0);
    struct slice fresh = make(&box, "/a/x"), again = make(&box, "/a/y");
    assert_int_equal((unsigned char)fresh.data[0], 0xff);
    assert_true(fresh.len == again.len && memcmp(fresh.data, again.data, fresh.len - 1) == 0);
    assert_lies(&box, fresh, "/a/x");
    assert_lies(&box, SLICE_LIT("/a/x"), "/b/x");
    assert_int_equal(rename_now(&box, "/a", "/c"), 0);
    assert_lies(&box, fresh, "/c/x");
    assert_int_equal(rename_now(&box, "/b", "/a"), 0); /* home */
    assert_lies(&box, SLICE_LIT("/a/x"), "/a/x");
    assert_true(slice_is(make(&box, "/a/z"), "/a/z"));
    assert_int_equal(stand(&box, &box.view, SLICE_LIT("/a/x"), "/a/x").renames, 2);
    close_box(&box);
}

static void the_total_rises_by_one_wherever_it_goes(void **state)
{
    static const char *const ways[][2] = {{"/a", "/b"},   {"/p", "/q"},     {"/q", "/p"}, {"/b", "/p/b"},
                                          {"/p/b", "/c"}, {"/c", "/p/x/c"}, {"/p", "/r"}, {"/r/x/c", "/a"}};
    static const int wanted[] = {1, 1, 1, 2, 3, 4, 5, 6};
    struct box box;
    (void)state;
    open_box(&box);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tree tree = {&box.view, INDEX, '/', NULL};
        struct tree_totals standing;
        assert_int_equal(rename_now(&box, ways[i][0], ways[i][1]), 0);
        assert_int_equal(tree_locate(&tree, SLICE_LIT("/a/f"), &box.arena, NULL, &standing), 0);
        assert_int_equal(standing.renames, wanted[i]);
    }
    assert_lies(&box, SLICE_LIT("/a/f"), "/a/f");
    close_box(&box);
}

static int count_guest(void *context, struct slice birth)
{
    (void)birth;
    ++*(int *)context;
    return 0;
}

static void what_was_taken_out_is_not_found_below(void **state)
{
    struct box box;
    int count = 0;
    (void)state;
    open_box(&box);
    assert_int_equal(rename_now(&box, "/a/x", "/q"), 0);
    assert_int_equal(rename_now(&box, "/a", "/q/z"), 0); /* so the place "/a/x/z" has "/a" */
    struct tree tree = {&box.view, INDEX, '/', NULL};
    assert_int_equal(tree_each_relocated(&tree, SLICE_LIT("/a/"), count_guest, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(tree_each_relocated(&tree, SLICE_LIT("/"), count_guest, &count), 0);
    assert_int_equal(count, 2);
    assert_lies(&box, SLICE_LIT("/a/x/f"), "/q/f");
    assert_lies(&box, SLICE_LIT("/a/f"), "/q/z/f");
    close_box(&box);
}

static void what_cannot_be_is_refused_and_changes_nothing(void **state)
{
    struct box box;
    (void)state;
    open_box(&box);
    assert_int_equal(rename_in(&box, &box.view, "/a", "/a"), TREE_INTO_ITSELF);
    assert_int_equal(rename_in(&box, &box.view, "/a", "/a/b"), TREE_INTO_ITSELF);
    assert_int_equal(records(&box), 0);
    assert_int_equal(rename_now(&box, "/a", "/b"), 0);
    assert_int_equal(rename_in(&box, &box.view, "/a", "/c"), TREE_NOT_FOUND);
    assert_int_equal(rename_in(&box, &box.view, "/a/x", "/c"), TREE_NOT_FOUND);
    assert_int_equal(records(&box), 0);
    close_box(&box);
}

static void the_past_is_as_it_was(void **state)
{
    struct box box;
    (void)state;
    open_box(&box);
    assert_int_equal(rename_now(&box, "/a", "/b"), 0);
    tl_ts between = box.now - 1;
    assert_int_equal(rename_now(&box, "/b", "/c"), 0);
    struct view then = {box.store, between, NULL}, before = {box.store, between - 1, NULL};
    (void)stand(&box, &then, SLICE_LIT("/a/f"), "/b/f");
    (void)stand(&box, &before, SLICE_LIT("/a/f"), "/a/f");
    close_box(&box);
}

static int64_t renames_as_of(struct box *box, struct slice birth, tl_ts as_of, const char *wanted)
{
    struct tree tree = {.view = &box->view, .index = INDEX, .delimiter = '/', .as_of = as_of};
    struct tree_totals standing;
    struct slice path;

    assert_int_equal(tree_locate(&tree, birth, &box->arena, &path, &standing), 0);
    assert_true(slice_is(path, wanted));
    return standing.renames;
}

/* Without a look at old views, which may be too old by then. What is too old for anybody is forgotten with the next rename. */
static void what_went_stands_as_it_did_then(void **state)
{
    struct slice birth = SLICE_LIT("/a/x");
    struct buf key = BUF_INIT(64);
    struct store_value value;
    struct box box;
    tl_ts from;
    (void)state;

    open_box(&box);
    assert_int_equal(rename_now(&box, "/a", "/b"), 0); /* 100; nothing is kept of it */
    from = box.past_from = box.now;
    assert_int_equal(rename_now(&box, "/b", "/p/b"), 0);
    assert_int_equal(rename_now(&box, "/p", "/q"), 0);
    assert_int_equal(rename_now(&box, "/q/b", "/a"), 0);
    assert_int_equal(rename_now(&box, "/c", "/q"), 0);
    assert_int_equal(store_set_history_low(box.store, box.now - 1), 0);
    assert_int_equal(renames_as_of(&box, birth, from - 1, "/b/x"), 1);
    assert_int_equal(renames_as_of(&box, birth, from, "/p/b/x"), 2);
    assert_int_equal(renames_as_of(&box, birth, from + 1, "/q/b/x"), 3);
    assert_int_equal(renames_as_of(&box, birth, from + 2, "/a/x"), 4);
    assert_int_equal(renames_as_of(&box, birth, 0, "/a/x"), 4);
    box.past_from = box.now;
    assert_int_equal(rename_now(&box, "/a", "/z"), 0);
    assert_int_equal(renames_as_of(&box, birth, box.now - 2, "/a/x"), 4);
    assert_int_equal(store_get(box.store, SPACE_TREE, TL_TS_MAX, tree_history_key(&key, INDEX, SLICE_LIT("/a")), &value),
                     0);
    assert_true(value.bytes.len < 40);
    store_value_release(&value);
    buf_deinit(&key);
    close_box(&box);
}

static void a_transaction_sees_its_own_renames_alone(void **state)
{
    struct overlay *overlay = overlay_new();
    struct box box;
    tl_ts ts;
    (void)state;
    open_box(&box);
    struct view own = {box.store, TL_TS_MAX, overlay};
    assert_int_equal(rename_in(&box, &own, "/a", "/b"), 0);
    struct slice fresh = make_in(&box, &own, "/a/x");
    assert_int_equal(records(&box), 0); /* it alone sees that the place is vacant */
    (void)stand(&box, &own, fresh, "/a/x");
    (void)stand(&box, &own, SLICE_LIT("/a/f"), "/b/f");
    assert_lies(&box, SLICE_LIT("/a/f"), "/a/f");
    struct tree tree = {&own, INDEX, '/', NULL};
    assert_int_equal(tree_last_rename(&tree, &ts, NULL), 0);
    assert_true(ts == TREE_TS_OPEN);
    overlay_free(overlay);
    close_box(&box);
}

static void vacant_places_get_guests_ahead(void **state)
{
    struct overlay *overlay = overlay_new();
    struct box box;
    (void)state;
    open_box(&box);
    assert_int_equal(rename_now(&box, "/a", "/b"), 0);
    struct view own = {box.store, TL_TS_MAX, overlay};
    struct slice mine = make_in(&box, &own, "/a/x");
    next_unit(&box); /* the transaction is still open */
    struct slice others = make(&box, "/a/x");
    assert_true(slice_equal(mine, others));
    overlay_free(overlay);
    close_box(&box);
}

static void commit_record(void *context, struct slice key, struct slice value)
{
    const struct box *box = context;

    tree_commit(box->batch, key, value, box->now);
}

/* A record that a transaction has of a place goes over what was made ahead: so nothing is, and what it writes there stays. */
static void a_guest_outlives_the_commit_of_its_transaction(void **state)
{
    struct box box;
    struct overlay *overlay = overlay_new();
    (void)state;
    open_box(&box);
    make(&box, "/p/1");
    assert_int_equal(rename_now(&box, "/p", "/q"), 0);
    struct view own = {box.store, TL_TS_MAX, overlay};
    struct tree_writer writer = writer_of(&box, &own);
    assert_int_equal(tree_rename(&writer, SLICE_LIT("/q"), SLICE_LIT("/p"), box.seq_no++, TREE_TS_OPEN), 0);
    assert_int_equal(tree_rename(&writer, SLICE_LIT("/p"), SLICE_LIT("/z"), box.seq_no++, TREE_TS_OPEN), 0);
    struct slice born = make_in(&box, &own, "/p/3");
    next_unit(&box);
    struct tree tree = {&own, INDEX, '/', NULL};
    struct slice found;
    assert_int_equal(tree_resolve(&tree, SLICE_LIT("/p/3"), &box.arena, &found), 0);
    assert_true(slice_equal(found, born));
    overlay_each(overlay, SPACE_TREE, commit_record, &box);
    next_unit(&box);
    tree.view = &box.view;
    assert_int_equal(tree_resolve(&tree, SLICE_LIT("/p/3"), &box.arena, &found), 0);
    assert_true(slice_equal(found, born));
    overlay_free(overlay);
    close_box(&box);
}

static void empty_places_are_forgotten_when_something_comes(void **state)
{
    struct empty_paths places = {0};
    char path[16];
    (void)state;
    assert_false(empty_paths_contains(&places, INDEX, SLICE_LIT("/a"), '/'));
    empty_paths_add(&places, INDEX, SLICE_LIT("/a"), '/');
    assert_true(empty_paths_contains(&places, INDEX, SLICE_LIT("/a"), '/'));
    assert_true(empty_paths_contains(&places, INDEX, SLICE_LIT("/a/b/c"), '/'));
    assert_false(empty_paths_contains(&places, INDEX, SLICE_LIT("/ab"), '/'));
    assert_false(empty_paths_contains(&places, INDEX, SLICE_LIT("/"), '/'));
    assert_false(empty_paths_contains(&places, INDEX + 1, SLICE_LIT("/a"), '/'));
    empty_paths_invalidate(&places, INDEX, SLICE_LIT("/ab"));
    empty_paths_invalidate(&places, INDEX + 1, SLICE_LIT("/a"));
    assert_true(empty_paths_contains(&places, INDEX, SLICE_LIT("/a"), '/'));
    empty_paths_invalidate(&places, INDEX, SLICE_LIT("/a/b/c"));
    assert_false(empty_paths_contains(&places, INDEX, SLICE_LIT("/a"), '/'));
    empty_paths_add(&places, INDEX, SLICE_LIT("/x/y"), '/');
    empty_paths_invalidate(&places, INDEX, SLICE_LIT("/x")); /* a directory that has come may have something at /x/y */
    assert_false(empty_paths_contains(&places, INDEX, SLICE_LIT("/x/y"), '/'));
    for (int i = 0; i < 3 * EMPTY_PATHS_MAX; i++) {
        snprintf(path, sizeof path, "/p%d", i);
        empty_paths_add(&places, INDEX, slice_from(path), '/');
        assert_true(empty_paths_contains(&places, INDEX, slice_from(path), '/'));
    }
    assert_int_equal(places.count, EMPTY_PATHS_MAX);
    empty_paths_clear(&places);
    assert_int_equal(places.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(a_past_comes_back_the_newest_first),
        cmocka_unit_test(damaged_records_are_refused),
        cmocka_unit_test(only_renames_of_open_transactions_are_stamped),
        cmocka_unit_test(parents_are_what_stands_in_front_of_the_last_name),
        cmocka_unit_test(a_path_is_its_own_birth_before_any_rename),
        cmocka_unit_test(what_lies_below_goes_along_and_counts_it),
        cmocka_unit_test(a_name_that_was_left_is_free_for_others),
        cmocka_unit_test(the_total_rises_by_one_wherever_it_goes),
        cmocka_unit_test(what_was_taken_out_is_not_found_below),
        cmocka_unit_test(what_cannot_be_is_refused_and_changes_nothing),
        cmocka_unit_test(the_past_is_as_it_was),
        cmocka_unit_test(what_went_stands_as_it_did_then),
        cmocka_unit_test(a_transaction_sees_its_own_renames_alone),
        cmocka_unit_test(vacant_places_get_guests_ahead),
        cmocka_unit_test(a_guest_outlives_the_commit_of_its_transaction),
        cmocka_unit_test(empty_places_are_forgotten_when_something_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
