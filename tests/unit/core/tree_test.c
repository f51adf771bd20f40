/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of nodes (src/core/tree/README.md): what records say, what a path is, and, case by case, what a rename makes of the places below;
 * tests/sim/tree has the combinations.
 */
#include "../../lib/unit.h"

#include "core/tree/tree_write.h"

#include <stdio.h>

enum { INDEX = 3 };

struct box {
    struct store *store;
    struct store_batch *batch;
    struct omap pending;
    struct view view; /* the newest state */
    struct arena arena;
    uint64_t next_node;
    tl_ts now;
    int64_t seq_no;
};

static void open_box(struct box *box)
{
    *box = (struct box){.store = store_open_mem(), .arena = ARENA_INIT, .next_node = TREE_NODE_FIRST, .now = 100};
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
                                .next_node = &box->next_node};
}

static struct tree_place make_in(struct box *box, const struct view *view, const char *path)
{
    struct tree_writer writer = writer_of(box, view);
    struct tree_place place;
    int64_t stamp;

    assert_int_equal(tree_make(&writer, slice_from(path), &place, &stamp), 0);
    return place;
}

static struct tree_place make(struct box *box, const char *path)
{
    struct tree_place place = make_in(box, &box->view, path);

    next_unit(box);
    return place;
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

static const char *path_in(struct box *box, const struct view *view, struct tree_place place,
                           struct tree_standing *ret_standing)
{
    struct tree tree = {view, INDEX, '/', NULL};
    struct slice path;
    int r = tree_stand(&tree, &place, &box->arena, &path, ret_standing);

    return r == TREE_NOT_FOUND ? NULL : path.data;
}

static const char *path_of(struct box *box, struct tree_place place)
{
    struct tree_standing standing;

    return path_in(box, &box->view, place, &standing);
}

static int64_t renames_of(struct box *box, struct tree_place place)
{
    struct tree_standing standing;

    assert_non_null(path_in(box, &box->view, place, &standing));
    return standing.renames;
}

static int find(struct box *box, const char *path, struct tree_place *ret_place)
{
    struct tree tree = {&box->view, INDEX, '/', NULL};

    return tree_find(&tree, slice_from(path), ret_place);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static const struct tree_node nodes[] = {
    {.seq_no = -1},
    {.ts = 17, .parent = 1, .renames = 1, .seq_no = 0, .name = {"a", 1}},
    {.ts = TREE_TS_OPEN, .parent = UINT64_MAX, .renames = INT64_MIN, .seq_no = INT64_MAX - 1, .name = {"a\0b", 3}},
    {.parent = 16, .renames = INT64_MAX, .name = {"x", 1}, .has_born = true, .born_parent = 16, .born_name = {"x", 1}},
    {.parent = 16, .renames = -5, .name = {"x", 1}, .has_born = true, .born_parent = 16, .born_name = {"", 0}},
    {.parent = 0, .name = {"", 0}, .has_born = true, .born_parent = 99, .born_name = {"longer than", 11}},
};

static void node_records_come_back(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        struct tree_node node;
        const struct tree_node *wanted = &nodes[i];
        tree_node_encode(&buf, wanted);
        assert_int_equal(tree_node_decode(buf_view(&buf), &node), 0);
        assert_true(node.ts == wanted->ts && node.parent == wanted->parent && node.renames == wanted->renames);
        assert_true(node.seq_no == wanted->seq_no && node.has_born == wanted->has_born);
        assert_true(slice_equal(node.name, wanted->name));
        if (node.has_born)
            assert_true(node.born_parent == wanted->born_parent && slice_equal(node.born_name, wanted->born_name));
        for (size_t len = 0; len + wanted->name.len < buf.len; len++)
            assert_int_equal(tree_node_decode(slice_make(buf.data, len), &node), TL_ERR_CORRUPT);
        buf_deinit(&buf);
    }
}

static void damaged_records_are_refused(void **state)
{
    struct tree_node node;
    struct tree_name name;
    (void)state;

    assert_int_equal(tree_node_decode(SLICE_LIT("\0\0\0\0\0\0\0\1\3\1\0\0"), &node), TL_ERR_CORRUPT);
    assert_int_equal(tree_node_decode(SLICE_LIT("\0\0\0\0\0\0\0\1\2\1\0\0\1\77x"), &node), TL_ERR_CORRUPT);
    assert_int_equal(tree_name_decode(SLICE_LIT(""), &name), TL_ERR_CORRUPT);
    assert_int_equal(tree_name_decode(SLICE_LIT("\1"), &name), TL_ERR_CORRUPT);
    assert_int_equal(tree_name_decode(SLICE_LIT("\1\1\1"), &name), TL_ERR_CORRUPT);
    assert_int_equal(tree_name_decode(SLICE_LIT("\x11\0"), &name), 0);
    assert_true(name.here == 17 && name.born == 0);
}

/* --- Paths -------------------------------------------------------------------------------------------------------- */

static void a_path_is_its_names(void **state)
{
    static const struct {
        const char *text;
        uint64_t root;
        const char *names; /* each in brackets */
    } cases[] = {
        {"/a/b", TREE_ROOT_ABSOLUTE, "[a][b]"},   {"a/b", TREE_ROOT_RELATIVE, "[a][b]"},
        {"", TREE_ROOT_RELATIVE, "[]"},           {"/", TREE_ROOT_ABSOLUTE, "[]"},
        {"//", TREE_ROOT_ABSOLUTE, "[][]"},       {"/a/", TREE_ROOT_ABSOLUTE, "[a][]"},
        {"a//b", TREE_ROOT_RELATIVE, "[a][][b]"}, {"/../.", TREE_ROOT_ABSOLUTE, "[..][.]"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree_path path = tree_path_begin(slice_from(cases[i].text), '/');
        struct buf names = BUF_INIT(100);
        struct slice name;
        bool last = false;
        assert_int_equal(path.root, cases[i].root);
        while (tree_path_next(&path, &name, &last))
            buf_printf(&names, "[%.*s]", SLICE_ARG(name));
        assert_true(last);
        assert_slice_equal(buf_view(&names), cases[i].names);
        buf_deinit(&names);
    }
}

/* What is made at a path has that path, whatever the text. */
static void every_text_is_a_path(void **state)
{
    static const char *const texts[] = {"/a/b",           "a/b", "", "/", "//", "/a/", "/a//", "a", "/a", "./..",
                                        "/\xff\x01/\x80", "//a"};
    struct box box;
    (void)state;

    open_box(&box);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(path_of(&box, make(&box, texts[i])), texts[i]);
    assert_string_equal(path_of(&box, (struct tree_place){.node = TREE_ROOT_ABSOLUTE}), "");
    assert_string_equal(path_of(&box, (struct tree_place){.node = TREE_ROOT_RELATIVE}), "");
    close_box(&box);
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static void a_name_needs_no_record_before_something_lies_below(void **state)
{
    struct tree_place file, again, below, directory;
    struct box box;
    (void)state;

    open_box(&box);
    file = make(&box, "/a/x");
    assert_true(file.named && slice_equal(file.name, SLICE_LIT("x")));
    again = make(&box, "/a/x");
    assert_true(tree_place_equal(&file, &again));
    below = make(&box, "/a/x/y");
    assert_int_equal(find(&box, "/a/x", &directory), 0);
    assert_true(!directory.named && directory.node == below.node);
    assert_string_equal(path_of(&box, file), "/a/x"); /* by the name that it was stored at, as by the node */
    assert_int_equal(find(&box, "/b/x", &directory), TREE_NOT_FOUND);
    close_box(&box);
}

static void a_rename_takes_all_below_along(void **state)
{
    struct tree_place file, deep, other, found;
    struct box box;
    (void)state;

    open_box(&box);
    file = make(&box, "/clinton/README");
    deep = make(&box, "/clinton/projects/x/y");
    other = make(&box, "/clintons/README");
    assert_int_equal(rename_now(&box, "/clinton", "/bill"), 0);
    assert_string_equal(path_of(&box, file), "/bill/README");
    assert_string_equal(path_of(&box, deep), "/bill/projects/x/y");
    assert_string_equal(path_of(&box, other), "/clintons/README");
    assert_int_equal(renames_of(&box, file), 1);
    assert_int_equal(renames_of(&box, other), 0);
    assert_int_equal(find(&box, "/clinton", &found), TREE_NOT_FOUND);
    assert_int_equal(rename_now(&box, "/clinton", "/x"), TREE_NOT_FOUND);
    assert_int_equal(find(&box, "/bill/projects/x/y", &found), 0);
    assert_true(tree_place_equal(&found, &deep));
    close_box(&box);
}

static void a_file_is_renamed_without_its_document(void **state)
{
    struct tree_place file, newcomer, back;
    struct box box;
    (void)state;

    open_box(&box);
    file = make(&box, "/a/x");
    assert_int_equal(rename_now(&box, "/a/x", "/b/y"), 0);
    assert_string_equal(path_of(&box, file), "/b/y");
    newcomer = make(&box, "/a/x");
    assert_false(newcomer.named); /* the name means the one that has gone */
    assert_string_equal(path_of(&box, newcomer), "/a/x");
    assert_int_equal(rename_now(&box, "/a/x", "/c"), 0);
    assert_int_equal(rename_now(&box, "/b/y", "/a/x"), 0);
    assert_string_equal(path_of(&box, file), "/a/x");
    assert_string_equal(path_of(&box, newcomer), "/c");
    back = make(&box, "/a/x");
    assert_false(back.named);
    assert_string_equal(path_of(&box, back), "/a/x");
    assert_int_equal(renames_of(&box, file), 2);
    close_box(&box);
}

/* From a directory that was renamed often into one that never was, and back: one change each. */
static void each_rename_counts_once(void **state)
{
    struct tree_place file, other;
    struct box box;
    char from[16], to[16];
    (void)state;

    open_box(&box);
    file = make(&box, "/often0/sub/x");
    other = make(&box, "/never/x");
    for (int i = 0; i < 10; i++) {
        snprintf(from, sizeof from, "/often%d", i);
        snprintf(to, sizeof to, "/often%d", i + 1);
        assert_int_equal(rename_now(&box, from, to), 0);
    }
    assert_int_equal(renames_of(&box, file), 10);
    assert_int_equal(rename_now(&box, "/often10/sub", "/never/sub"), 0);
    assert_int_equal(renames_of(&box, file), 11);
    assert_int_equal(rename_now(&box, "/never", "/once"), 0);
    assert_int_equal(renames_of(&box, file), 12);
    assert_int_equal(renames_of(&box, other), 1);
    assert_int_equal(rename_now(&box, "/once/sub", "/often10/sub"), 0);
    assert_int_equal(renames_of(&box, file), 13);
    close_box(&box);
}

static void nothing_is_moved_into_itself(void **state)
{
    struct box box;
    (void)state;

    open_box(&box);
    (void)make(&box, "/a/x");
    assert_int_equal(rename_now(&box, "/a", "/a"), TREE_INTO_ITSELF);
    assert_int_equal(rename_now(&box, "/a", "/a/b"), TREE_INTO_ITSELF);
    assert_int_equal(rename_now(&box, "/a/x", "/a/x/y/z"), TREE_INTO_ITSELF);
    assert_int_equal(rename_now(&box, "/a", "/ab"), 0);
    close_box(&box);
}

/* An empty directory is none, so its name is free; a view of before has it still. */
static void an_empty_node_gives_way(void **state)
{
    struct tree_place old, file;
    struct tree_standing standing;
    struct box box;
    (void)state;

    open_box(&box);
    old = make(&box, "/to/x");
    file = make(&box, "/from/y");
    struct view before = {box.store, box.now - 1, NULL};
    assert_int_equal(rename_now(&box, "/from", "/to"), 0);
    assert_string_equal(path_of(&box, file), "/to/y");
    assert_null(path_of(&box, old));
    assert_string_equal(path_in(&box, &before, old, &standing), "/to/x");
    assert_string_equal(path_in(&box, &before, file, &standing), "/from/y");
    close_box(&box);
}

/* --- Transactions ------------------------------------------------------------------------------------------------- */

struct commit {
    struct store_batch *batch;
    tl_ts ts;
};

static void commit_one(void *context, struct slice key, struct slice value)
{
    struct commit *commit = context;

    tree_commit(commit->batch, key, value, commit->ts);
}

static void a_transaction_sees_its_rename_before_others_do(void **state)
{
    struct tree_standing standing;
    struct tree_place file, fresh;
    struct box box;
    (void)state;

    open_box(&box);
    file = make(&box, "/a/x");
    struct overlay *overlay = overlay_new();
    struct view own = {box.store, TL_TS_MAX, overlay};
    struct tree tree = {&own, INDEX, '/', NULL};
    tl_ts newest;
    assert_int_equal(rename_in(&box, &own, "/a", "/b"), 0);
    fresh = make_in(&box, &own, "/a/z"); /* in the place of what it moved away: nobody else's business */
    next_unit(&box);
    assert_string_equal(path_in(&box, &own, file, &standing), "/b/x");
    assert_int_equal(tree_newest(&tree, &newest, NULL), 0);
    assert_true(newest == TREE_TS_OPEN);
    assert_string_equal(path_of(&box, file), "/a/x");
    assert_null(path_of(&box, fresh));

    struct commit commit = {box.batch, box.now};
    overlay_each(overlay, SPACE_TREE, commit_one, &commit);
    next_unit(&box);
    overlay_free(overlay);
    assert_string_equal(path_in(&box, &box.view, file, &standing), "/b/x");
    assert_true(standing.ts == commit.ts && standing.renames == 1);
    assert_string_equal(path_of(&box, fresh), "/a/z");
    tree.view = &box.view;
    assert_int_equal(tree_newest(&tree, &newest, NULL), 0);
    assert_true(newest == commit.ts);
    close_box(&box);
}

static void two_transactions_make_one_directory(void **state)
{
    struct tree_place first, second;
    struct box box;
    (void)state;

    open_box(&box);
    struct overlay *overlays[] = {overlay_new(), overlay_new()};
    struct view views[] = {{box.store, TL_TS_MAX, overlays[0]}, {box.store, TL_TS_MAX, overlays[1]}};
    first = make_in(&box, &views[0], "/new/dir/x");
    next_unit(&box);
    second = make_in(&box, &views[1], "/new/dir/y");
    next_unit(&box);
    assert_int_equal(first.node, second.node);
    assert_int_equal(overlay_count(overlays[0]) + overlay_count(overlays[1]), 0);
    overlay_free(overlays[0]);
    overlay_free(overlays[1]);
    close_box(&box);
}

/* --- Walking ------------------------------------------------------------------------------------------------------ */

static int print_place(void *context, enum tree_reach reach, const struct tree_place *place)
{
    buf_printf(context, reach == TREE_UNDER ? "%llu* " : "%llu", (unsigned long long)place->node);
    if (reach == TREE_AT)
        buf_printf(context, place->named ? "/%.*s " : " ", SLICE_ARG(place->name));
    return 0;
}

static void assert_walk(struct box *box, const char *path, bool below, const char *wanted)
{
    struct tree tree = {&box->view, INDEX, '/', NULL};
    struct buf text = BUF_INIT(1000);
    struct tree_place place;

    assert_int_equal(find(box, path, &place), 0);
    assert_int_equal((below ? tree_walk : tree_sources)(&tree, &place, print_place, &text), 0);
    assert_slice_equal(buf_view(&text), wanted);
    buf_deinit(&text);
}

static void a_walk_names_all_places(void **state)
{
    struct box box;
    (void)state;

    open_box(&box);
    (void)make(&box, "/a/b/c/x"); /* a: 16, b: 17, c: 18 */
    (void)make(&box, "/a/d/x");   /* d: 19 */
    assert_walk(&box, "/a", true, "1/a 16* 19* 17* 18* ");
    assert_walk(&box, "/a/b", true, "16/b 17* 18* ");
    assert_walk(&box, "/a/b", false, "16/b 17 ");
    assert_walk(&box, "/a/d/x", true, "19/x ");
    assert_int_equal(rename_now(&box, "/a/b", "/e/f"), 0); /* e: 20 */
    assert_walk(&box, "/a", true, "1/a 16* 19* ");
    assert_walk(&box, "/e", true, "1/e 20* 16/b 17* 18* ");
    assert_int_equal(rename_now(&box, "/a/d/x", "/g"), 0); /* 21 */
    assert_walk(&box, "/g", true, "19/x 21* ");
    assert_walk(&box, "/g", false, "19/x 21 ");
    close_box(&box);
}

static int print_child(void *context, struct slice name, uint64_t node)
{
    buf_printf(context, "%.*s:%llu ", SLICE_ARG(name), (unsigned long long)node);
    return slice_is(name, "stop") ? 7 : 0;
}

static void children_come_in_order_of_name(void **state)
{
    struct box box;
    struct buf text = BUF_INIT(1000);
    (void)state;

    open_box(&box);
    struct tree tree = {&box.view, INDEX, '/', NULL};
    (void)make(&box, "/b/x");
    (void)make(&box, "/a/x");
    (void)make(&box, "/file");
    (void)make(&box, "relative/x");
    (void)make(&box, "/stop/x");
    (void)make(&box, "/t/x");
    assert_int_equal(rename_now(&box, "/a", "/c"), 0);
    assert_int_equal(tree_children(&tree, TREE_ROOT_ABSOLUTE, SLICE_NONE, print_child, &text), 7);
    assert_slice_equal(buf_view(&text), "b:16 c:17 stop:19 ");
    buf_clear(&text);
    assert_int_equal(tree_children(&tree, TREE_ROOT_ABSOLUTE, SLICE_LIT("sto\xff"), print_child, &text), 0);
    assert_slice_equal(buf_view(&text), "t:20 ");
    buf_deinit(&text);
    close_box(&box);
}

/* --- Removing ----------------------------------------------------------------------------------------------------- */

static int remove_now(struct box *box, uint64_t node)
{
    struct tree_writer writer = writer_of(box, &box->view);
    int r = tree_remove(&writer, node);

    next_unit(box);
    return r;
}

static size_t records(struct box *box)
{
    struct view_iter *iter = view_iter_new(&box->view, SPACE_TREE, SLICE_NONE, SLICE_NONE);
    size_t count = 0;

    for (view_iter_seek_first(iter); view_iter_valid(iter); view_iter_next(iter))
        count++;
    view_iter_free(iter);
    return count;
}

static void what_nobody_needs_leaves_nothing(void **state)
{
    struct box box;
    (void)state;

    open_box(&box);
    (void)make(&box, "/a/b/x"); /* a: 16, b: 17 */
    assert_int_equal(remove_now(&box, 16), TREE_IN_USE);
    assert_int_equal(rename_now(&box, "/a/b", "/c"), 0);
    assert_int_equal(remove_now(&box, 16), TREE_IN_USE); /* what was stored at its name b may live in c */
    assert_int_equal(remove_now(&box, 17), 0);
    assert_int_equal(remove_now(&box, 16), 0);
    assert_int_equal(remove_now(&box, 16), TREE_NOT_FOUND);
    assert_int_equal(records(&box), 1); /* when the newest rename was */
    assert_true(make(&box, "/c").named);
    close_box(&box);
}

/* --- Bounds ------------------------------------------------------------------------------------------------------- */

static void a_way_may_be_long(void **state)
{
    enum { DEPTH = 4096 };
    static char path[2 * DEPTH + 1];
    struct tree_place file;
    struct box box;
    (void)state;

    open_box(&box);
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(path + 2 * i, "/a", 2);
    file = make(&box, path);
    assert_string_equal(path_of(&box, file), path);
    assert_int_equal(rename_now(&box, "/a", "/b"), 0);
    path[1] = 'b';
    assert_string_equal(path_of(&box, file), path);
    assert_int_equal(renames_of(&box, file), 1);
    close_box(&box);
}

/* What a rename writes does not depend on what lies below, nor on how often it was done. */
static void a_rename_writes_a_handful_of_records(void **state)
{
    struct box box;
    char path[32];
    (void)state;

    open_box(&box);
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "/a/d%d/x", i);
        (void)make(&box, path);
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rename_in(&box, &box.view, i % 2 == 0 ? "/a" : "/b", i % 2 == 0 ? "/b" : "/a"), 0);
        assert_true(store_batch_count(box.batch) <= 5 && store_batch_bytes(box.batch) < 300);
        next_unit(&box);
    }
    close_box(&box);
}

/* A store that says a node lies below itself is damaged; nobody walks for ever. */
static void a_circle_is_damage(void **state)
{
    struct tree_node one = {.parent = 17, .seq_no = -1, .name = SLICE_LIT("x")}, two = one;
    struct tree_place place = {.node = 16};
    struct tree_standing standing;
    struct buf key = BUF_INIT(100), value = BUF_INIT(100);
    struct box box;
    (void)state;

    open_box(&box);
    two.parent = 16;
    tree_node_encode(&value, &one);
    store_batch_put(box.batch, SPACE_TREE, tree_node_key(&key, INDEX, 16), buf_view(&value));
    buf_clear(&value);
    tree_node_encode(&value, &two);
    store_batch_put(box.batch, SPACE_TREE, tree_node_key(&key, INDEX, 17), buf_view(&value));
    next_unit(&box);
    struct tree tree = {&box.view, INDEX, '/', NULL};
    assert_int_equal(tree_stand(&tree, &place, &box.arena, NULL, &standing), TL_ERR_CORRUPT);
    buf_deinit(&key);
    buf_deinit(&value);
    close_box(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_records_come_back),
        cmocka_unit_test(damaged_records_are_refused),
        cmocka_unit_test(a_path_is_its_names),
        cmocka_unit_test(every_text_is_a_path),
        cmocka_unit_test(a_name_needs_no_record_before_something_lies_below),
        cmocka_unit_test(a_rename_takes_all_below_along),
        cmocka_unit_test(a_file_is_renamed_without_its_document),
        cmocka_unit_test(each_rename_counts_once),
        cmocka_unit_test(nothing_is_moved_into_itself),
        cmocka_unit_test(an_empty_node_gives_way),
        cmocka_unit_test(a_transaction_sees_its_rename_before_others_do),
        cmocka_unit_test(two_transactions_make_one_directory),
        cmocka_unit_test(a_walk_names_all_places),
        cmocka_unit_test(children_come_in_order_of_name),
        cmocka_unit_test(what_nobody_needs_leaves_nothing),
        cmocka_unit_test(a_way_may_be_long),
        cmocka_unit_test(a_rename_writes_a_handful_of_records),
        cmocka_unit_test(a_circle_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
