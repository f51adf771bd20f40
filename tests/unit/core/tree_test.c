/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path tree (src/core/tree/README.md): records, paths, and the effect of single renames on
 * everything below. Combinations are in tests/sim/tree.
 */
#include "../../lib/unit.h"

#include "core/tree/empty_paths.h"
#include "core/tree/tree_paths.h"
#include "core/tree/tree_write.h"

#include <stdio.h>

enum { INDEX = 3 };

struct tree_fixture {
    struct store *store;
    struct store_batch *batch;
    struct omap pending;
    struct view view; /* the newest state */
    struct arena arena;
    uint32_t made;
    tl_ts now;
    int64_t seq_no;
    tl_ts history_from; /* for its renames */
};

static void tree_fixture_open(struct tree_fixture *fixture)
{
    *fixture = (struct tree_fixture){.store = store_open_mem(), .arena = ARENA_INIT, .now = 100};
    fixture->batch = store_batch_new(fixture->store);
    fixture->view = (struct view){fixture->store, TL_TS_MAX, NULL};
    omap_init(&fixture->pending);
    store_batch_begin(fixture->batch, fixture->now);
}

static void tree_fixture_close(struct tree_fixture *fixture)
{
    omap_deinit(&fixture->pending);
    store_batch_free(fixture->batch);
    store_close(fixture->store);
    arena_deinit(&fixture->arena);
}

/* Writes the current unit and begins the next one. */
static void next_unit(struct tree_fixture *fixture)
{
    if (store_batch_count(fixture->batch) > 0)
        assert_int_equal(store_write(fixture->store, fixture->batch), 0);
    store_batch_clear(fixture->batch);
    omap_clear(&fixture->pending);
    store_batch_begin(fixture->batch, ++fixture->now);
}

static struct tree_writer writer_of(struct tree_fixture *fixture, const struct view *view)
{
    return (struct tree_writer){.tree = {view, INDEX, '/', &fixture->pending},
                                .overlay = (struct overlay *)(uintptr_t)view->overlay,
                                .batch = fixture->batch,
                                .pending = &fixture->pending,
                                .ts = fixture->now,
                                .origins_created = &fixture->made,
                                .history_from = fixture->history_from};
}

static struct slice resolve_in(struct tree_fixture *fixture, const struct view *view, const char *path)
{
    struct tree_writer writer = writer_of(fixture, view);
    struct slice origin;
    int64_t rename_base;

    assert_int_equal(tree_resolve_or_create(&writer, slice_from(path), &fixture->arena, &origin, &rename_base), 0);
    return origin;
}

static struct slice resolve(struct tree_fixture *fixture, const char *path)
{
    struct slice origin = resolve_in(fixture, &fixture->view, path);

    next_unit(fixture);
    return origin;
}

static int rename_in(struct tree_fixture *fixture, const struct view *view, const char *from, const char *to)
{
    struct tree_writer writer = writer_of(fixture, view);

    return tree_rename(&writer, slice_from(from), slice_from(to), fixture->seq_no++,
                       view->overlay != NULL ? TREE_TS_OPEN : fixture->now);
}

static int rename_now(struct tree_fixture *fixture, const char *from, const char *to)
{
    int r = rename_in(fixture, &fixture->view, from, to);

    next_unit(fixture);
    return r;
}

static struct tree_totals locate(struct tree_fixture *fixture, const struct view *view, struct slice origin,
                                 const char *wanted)
{
    struct tree tree = {view, INDEX, '/', NULL};
    struct tree_totals totals = {0};
    struct slice path;
    int r = tree_locate(&tree, origin, &fixture->arena, &path, &totals);

    assert_int_equal(r, wanted == NULL ? TREE_NOT_FOUND : 0);
    if (wanted != NULL)
        assert_true(slice_is(path, wanted));
    return totals;
}

static void assert_located(struct tree_fixture *fixture, struct slice origin, const char *wanted)
{
    (void)locate(fixture, &fixture->view, origin, wanted);
}

static int find(struct tree_fixture *fixture, const char *path, struct slice *ret_origin)
{
    struct tree tree = {&fixture->view, INDEX, '/', NULL};

    return tree_resolve(&tree, slice_from(path), &fixture->arena, ret_origin);
}

static size_t count_records(struct tree_fixture *fixture)
{
    return store_batch_count(fixture->batch);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static const struct tree_relocation moves[] = {
    {.seq_no = -1},
    {.ts = 17, .state = TREE_RELOCATED, .renames = 1, .seq_no = 0, .dirent = {"a", 1}},
    {.ts = TREE_TS_OPEN, .state = TREE_RELOCATED, .renames = INT64_MIN, .seq_no = INT64_MAX - 1, .dirent = {"a\0b", 3}},
    {.ts = 1, .state = TREE_DETACHED, .renames = INT64_MAX, .seq_no = 5},
};

static void test_tree_records_roundtrip(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        struct tree_relocation relocation;
        tree_relocation_encode(&buf, &moves[i]);
        assert_int_equal(tree_relocation_decode(buf_as_slice(&buf), &relocation), 0);
        assert_true(relocation.ts == moves[i].ts && relocation.state == moves[i].state &&
                    relocation.renames == moves[i].renames);
        assert_true(relocation.seq_no == moves[i].seq_no && slice_equal(relocation.dirent, moves[i].dirent));
        for (size_t len = 0; len < 11; len++)
            assert_int_equal(tree_relocation_decode(slice_make(buf.data, len), &relocation),
                             len < buf.len && (len < 11 || moves[i].dirent.len > 0) ? TL_ERR_CORRUPT : 0);
        buf_deinit(&buf);
    }
}

static void test_tree_history_roundtrip_newest_first(void **state)
{
    struct buf key = BUF_INIT(64), history = BUF_INIT(BUF_UNLIMITED);
    struct tree_relocation relocation;
    struct slice item;
    tl_ts ts;
    (void)state;

    tree_history_encode(&history, TREE_TS_OPEN, &moves[1]);
    tree_history_encode(&history, 9, &moves[0]);
    tree_history_key(&key, INDEX, SLICE_LIT("/a"));
    assert_true(tree_record_is_valid(buf_as_slice(&key), buf_as_slice(&history)));
    assert_true(tree_record_is_open(buf_as_slice(&key), buf_as_slice(&history)));
    for (size_t len = 0; len < history.len; len++) /* a prefix of one whole item is valid */
        assert_int_equal(tree_record_is_valid(buf_as_slice(&key), slice_make(history.data, len)),
                         len == history.len - 20);
    struct slice rest = buf_as_slice(&history);
    for (int i = 1; i >= 0; i--) {
        assert_int_equal(tree_history_take(&rest, &ts, &item), 0);
        assert_int_equal(tree_relocation_decode(item, &relocation), 0);
        assert_true(ts == (i == 1 ? TREE_TS_OPEN : 9) && relocation.ts == moves[i].ts &&
                    relocation.renames == moves[i].renames);
    }
    assert_int_equal(rest.len, 0);
    buf_truncate(&history, 0);
    tree_history_encode(&history, 9, &moves[0]);
    tree_history_encode(&history, 10, &moves[1]);
    assert_false(tree_record_is_valid(buf_as_slice(&key), buf_as_slice(&history)));
    buf_deinit(&key);
    buf_deinit(&history);
}

static void test_tree_damaged_records_are_rejected(void **state)
{
    static const char bad[][16] = {"12345678\3\0\0", "12345678\1\0\0", "12345678\0\0\0x", "12345678\2\0\0x"};
    struct tree_relocation relocation;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tree_relocation_decode(slice_make(bad[i], i < 2 ? 11 : 12), &relocation), TL_ERR_CORRUPT);
}

static void test_tree_commit_sets_ts_of_open_renames_only(void **state)
{
    struct buf key = BUF_INIT(64), value = BUF_INIT(64);
    struct tree_relocation relocation = {.ts = TREE_TS_OPEN, .seq_no = 1};
    (void)state;
    tree_relocation_encode(&value, &relocation);
    assert_true(tree_record_is_open(tree_relocation_key(&key, INDEX, SLICE_LIT("/a")), buf_as_slice(&value)));
    assert_true(tree_record_is_open(tree_last_rename_key(&key, INDEX), buf_as_slice(&value)));
    assert_false(tree_record_is_open(tree_dirent_key(&key, INDEX, SLICE_LIT("/a")), buf_as_slice(&value)));
    relocation.ts = 9;
    buf_clear(&value);
    tree_relocation_encode(&value, &relocation);
    assert_false(tree_record_is_open(tree_relocation_key(&key, INDEX, SLICE_LIT("/a")), buf_as_slice(&value)));
    buf_deinit(&key);
    buf_deinit(&value);
}

/* --- Paths -------------------------------------------------------------------------------------------------------- */

static void test_tree_parent_excludes_last_name(void **state)
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

static void test_resolve_returns_path_before_first_rename(void **state)
{
    struct tree_fixture fixture;
    (void)state;
    tree_fixture_open(&fixture);
    assert_true(slice_is(resolve_in(&fixture, &fixture.view, "/a/b//c"), "/a/b//c"));
    assert_int_equal(count_records(&fixture), 0);
    assert_located(&fixture, SLICE_LIT("/a/b//c"), "/a/b//c");
    tree_fixture_close(&fixture);
}

static void test_rename_moves_descendants_and_counts_once(void **state)
{
    struct tree_fixture fixture;
    struct slice origin;
    (void)state;
    tree_fixture_open(&fixture);
    assert_int_equal(rename_in(&fixture, &fixture.view, "/clinton", "/people/bill"), 0);
    assert_true(count_records(&fixture) <= 4);
    next_unit(&fixture);
    struct tree_totals totals = locate(&fixture, &fixture.view, SLICE_LIT("/clinton/x/y"), "/people/bill/x/y");
    assert_true(totals.renames == 1 && totals.seq_no == 0 && totals.ts == 100);
    assert_located(&fixture, SLICE_LIT("/clintons"), "/clintons");
    assert_int_equal(find(&fixture, "/people/bill/x", &origin), 0);
    assert_true(slice_is(origin, "/clinton/x"));
    assert_int_equal(find(&fixture, "/clinton/x", &origin), TREE_NOT_FOUND);
    tree_fixture_close(&fixture);
}

static void test_rename_frees_its_source_path(void **state)
{
    struct tree_fixture fixture;
    (void)state;
    tree_fixture_open(&fixture);
    assert_int_equal(rename_now(&fixture, "/a", "/b"), 0);
    struct slice fresh = resolve(&fixture, "/a/x"), again = resolve(&fixture, "/a/y");
    assert_int_equal((unsigned char)fresh.data[0], 0xff);
    assert_true(fresh.len == again.len && memcmp(fresh.data, again.data, fresh.len - 1) == 0);
    assert_located(&fixture, fresh, "/a/x");
    assert_located(&fixture, SLICE_LIT("/a/x"), "/b/x");
    assert_int_equal(rename_now(&fixture, "/a", "/c"), 0);
    assert_located(&fixture, fresh, "/c/x");
    assert_int_equal(rename_now(&fixture, "/b", "/a"), 0); /* back to its own path */
    assert_located(&fixture, SLICE_LIT("/a/x"), "/a/x");
    assert_true(slice_is(resolve(&fixture, "/a/z"), "/a/z"));
    assert_int_equal(locate(&fixture, &fixture.view, SLICE_LIT("/a/x"), "/a/x").renames, 2);
    tree_fixture_close(&fixture);
}

static void test_rename_raises_totals_by_one(void **state)
{
    static const char *const ways[][2] = {{"/a", "/b"},   {"/p", "/q"},     {"/q", "/p"}, {"/b", "/p/b"},
                                          {"/p/b", "/c"}, {"/c", "/p/x/c"}, {"/p", "/r"}, {"/r/x/c", "/a"}};
    static const int wanted[] = {1, 1, 1, 2, 3, 4, 5, 6};
    struct tree_fixture fixture;
    (void)state;
    tree_fixture_open(&fixture);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tree tree = {&fixture.view, INDEX, '/', NULL};
        struct tree_totals totals;
        assert_int_equal(rename_now(&fixture, ways[i][0], ways[i][1]), 0);
        assert_int_equal(tree_locate(&tree, SLICE_LIT("/a/f"), &fixture.arena, NULL, &totals), 0);
        assert_int_equal(totals.renames, wanted[i]);
    }
    assert_located(&fixture, SLICE_LIT("/a/f"), "/a/f");
    tree_fixture_close(&fixture);
}

static int count_origin(void *context, struct slice origin)
{
    (void)origin;
    ++*(int *)context;
    return 0;
}

static void test_each_relocated_skips_origins_moved_out(void **state)
{
    struct tree_fixture fixture;
    int count = 0;
    (void)state;
    tree_fixture_open(&fixture);
    assert_int_equal(rename_now(&fixture, "/a/x", "/q"), 0);
    assert_int_equal(rename_now(&fixture, "/a", "/q/z"), 0); /* so "/a" is at the directory entry "/a/x/z" */
    struct tree tree = {&fixture.view, INDEX, '/', NULL};
    assert_int_equal(tree_each_relocated(&tree, SLICE_LIT("/a/"), count_origin, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(tree_each_relocated(&tree, SLICE_LIT("/"), count_origin, &count), 0);
    assert_int_equal(count, 2);
    assert_located(&fixture, SLICE_LIT("/a/x/f"), "/q/f");
    assert_located(&fixture, SLICE_LIT("/a/f"), "/q/z/f");
    tree_fixture_close(&fixture);
}

static void test_rename_rejects_invalid_paths_without_changes(void **state)
{
    struct tree_fixture fixture;
    (void)state;
    tree_fixture_open(&fixture);
    assert_int_equal(rename_in(&fixture, &fixture.view, "/a", "/a"), TREE_INTO_ITSELF);
    assert_int_equal(rename_in(&fixture, &fixture.view, "/a", "/a/b"), TREE_INTO_ITSELF);
    assert_int_equal(count_records(&fixture), 0);
    assert_int_equal(rename_now(&fixture, "/a", "/b"), 0);
    assert_int_equal(rename_in(&fixture, &fixture.view, "/a", "/c"), TREE_NOT_FOUND);
    assert_int_equal(rename_in(&fixture, &fixture.view, "/a/x", "/c"), TREE_NOT_FOUND);
    assert_int_equal(count_records(&fixture), 0);
    tree_fixture_close(&fixture);
}

static void test_tree_past_views_are_unchanged(void **state)
{
    struct tree_fixture fixture;
    (void)state;
    tree_fixture_open(&fixture);
    assert_int_equal(rename_now(&fixture, "/a", "/b"), 0);
    tl_ts between = fixture.now - 1;
    assert_int_equal(rename_now(&fixture, "/b", "/c"), 0);
    struct view then = {fixture.store, between, NULL}, existing = {fixture.store, between - 1, NULL};
    (void)locate(&fixture, &then, SLICE_LIT("/a/f"), "/b/f");
    (void)locate(&fixture, &existing, SLICE_LIT("/a/f"), "/a/f");
    tree_fixture_close(&fixture);
}

static int64_t renames_as_of(struct tree_fixture *fixture, struct slice origin, tl_ts as_of, const char *wanted)
{
    struct tree tree = {.view = &fixture->view, .index = INDEX, .delimiter = '/', .as_of = as_of};
    struct tree_totals totals;
    struct slice path;

    assert_int_equal(tree_locate(&tree, origin, &fixture->arena, &path, &totals), 0);
    assert_true(slice_is(path, wanted));
    return totals.renames;
}

/*
 * The relocation history answers without a read at an old view, which may be below the history
 * limit. Items that no session needs are dropped by the next rename.
 */
static void test_locate_as_of_uses_history(void **state)
{
    struct slice origin = SLICE_LIT("/a/x");
    struct buf key = BUF_INIT(64);
    struct store_value value;
    struct tree_fixture fixture;
    tl_ts from;
    (void)state;

    tree_fixture_open(&fixture);
    assert_int_equal(rename_now(&fixture, "/a", "/b"), 0); /* timestamp 100; no item needed */
    from = fixture.history_from = fixture.now;
    assert_int_equal(rename_now(&fixture, "/b", "/p/b"), 0);
    assert_int_equal(rename_now(&fixture, "/p", "/q"), 0);
    assert_int_equal(rename_now(&fixture, "/q/b", "/a"), 0);
    assert_int_equal(rename_now(&fixture, "/c", "/q"), 0);
    assert_int_equal(store_set_history_low(fixture.store, fixture.now - 1), 0);
    assert_int_equal(renames_as_of(&fixture, origin, from - 1, "/b/x"), 1);
    assert_int_equal(renames_as_of(&fixture, origin, from, "/p/b/x"), 2);
    assert_int_equal(renames_as_of(&fixture, origin, from + 1, "/q/b/x"), 3);
    assert_int_equal(renames_as_of(&fixture, origin, from + 2, "/a/x"), 4);
    assert_int_equal(renames_as_of(&fixture, origin, 0, "/a/x"), 4);
    fixture.history_from = fixture.now;
    assert_int_equal(rename_now(&fixture, "/a", "/z"), 0);
    assert_int_equal(renames_as_of(&fixture, origin, fixture.now - 2, "/a/x"), 4);
    assert_int_equal(
        store_get(fixture.store, SPACE_TREE, TL_TS_MAX, tree_history_key(&key, INDEX, SLICE_LIT("/a")), &value), 0);
    assert_true(value.bytes.len < 40);
    store_value_release(&value);
    buf_deinit(&key);
    tree_fixture_close(&fixture);
}

/* A relocation of a later timestamp than the rename's cannot be written: the store is damaged. */
static void test_rename_reports_damaged_relocation(void **state)
{
    struct tree_relocation later = {.state = TREE_UNMOVED, .renames = 1, .seq_no = 0};
    struct buf key = BUF_INIT(64), value = BUF_INIT(64);
    struct tree_fixture fixture;
    (void)state;

    tree_fixture_open(&fixture);
    assert_int_equal(rename_now(&fixture, "/a", "/b"), 0);
    later.ts = fixture.now + 1000;
    tree_relocation_encode(&value, &later);
    store_batch_put(fixture.batch, SPACE_TREE, tree_relocation_key(&key, INDEX, SLICE_LIT("/c")), buf_as_slice(&value));
    next_unit(&fixture);
    fixture.history_from = 1;
    assert_int_equal(rename_in(&fixture, &fixture.view, "/c", "/d"), TL_ERR_CORRUPT);
    buf_deinit(&key);
    buf_deinit(&value);
    tree_fixture_close(&fixture);
}

static void put_renames(struct tree_fixture *fixture, const char *origin, int64_t renames)
{
    const struct tree_relocation relocation = {.state = TREE_UNMOVED, .renames = renames, .seq_no = 0, .ts = 1};
    struct buf key = BUF_INIT(64), value = BUF_INIT(64);

    tree_relocation_encode(&value, &relocation);
    store_batch_put(fixture->batch, SPACE_TREE, tree_relocation_key(&key, INDEX, slice_from(origin)),
                    buf_as_slice(&value));
    next_unit(fixture);
    buf_deinit(&key);
    buf_deinit(&value);
}

/* No number of renames reaches 64 bits: the store is damaged. */
static void test_rename_reports_overflow(void **state)
{
    static const struct {
        const char *origin, *above;
        int64_t renames, renames_above;
    } damaged[] = {
        {"/c", NULL, INT64_MAX, 0},          /* one more */
        {"/c/x", "/c", INT64_MAX - 1, 2},    /* the sum of two */
        {"/c/x", "/c", INT64_MIN + 1, -2},   /* as above */
        {"/c/x", "/e", INT64_MAX - 5, -100}, /* the difference from the target's directory */
    };
    (void)state;

    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        struct tree_fixture fixture;
        tree_fixture_open(&fixture);
        assert_int_equal(rename_now(&fixture, "/a", "/b"), 0);
        put_renames(&fixture, damaged[i].origin, damaged[i].renames);
        if (damaged[i].above != NULL)
            put_renames(&fixture, damaged[i].above, damaged[i].renames_above);
        assert_int_equal(rename_in(&fixture, &fixture.view, damaged[i].origin, "/e/y"), TL_ERR_CORRUPT);
        tree_fixture_close(&fixture);
    }
}

static void test_transaction_renames_are_private(void **state)
{
    struct overlay *overlay = overlay_new();
    struct tree_fixture fixture;
    tl_ts ts;
    (void)state;
    tree_fixture_open(&fixture);
    struct view own = {fixture.store, TL_TS_MAX, overlay};
    assert_int_equal(rename_in(&fixture, &own, "/a", "/b"), 0);
    struct slice fresh = resolve_in(&fixture, &own, "/a/x");
    assert_int_equal(count_records(&fixture), 0); /* only this transaction sees the entry as vacated */
    (void)locate(&fixture, &own, fresh, "/a/x");
    (void)locate(&fixture, &own, SLICE_LIT("/a/f"), "/b/f");
    assert_located(&fixture, SLICE_LIT("/a/f"), "/a/f");
    struct tree tree = {&own, INDEX, '/', NULL};
    assert_int_equal(tree_last_rename(&tree, &ts, NULL), 0);
    assert_true(ts == TREE_TS_OPEN);
    overlay_free(overlay);
    tree_fixture_close(&fixture);
}

static void test_vacated_entry_gets_synthetic_origin_before_commit(void **state)
{
    struct overlay *overlay = overlay_new();
    struct tree_fixture fixture;
    (void)state;
    tree_fixture_open(&fixture);
    assert_int_equal(rename_now(&fixture, "/a", "/b"), 0);
    struct view own = {fixture.store, TL_TS_MAX, overlay};
    struct slice mine = resolve_in(&fixture, &own, "/a/x");
    next_unit(&fixture); /* the transaction is still open */
    struct slice others = resolve(&fixture, "/a/x");
    assert_true(slice_equal(mine, others));
    overlay_free(overlay);
    tree_fixture_close(&fixture);
}

static void commit_record(void *context, struct slice key, struct slice value)
{
    const struct tree_fixture *fixture = context;

    tree_commit(fixture->batch, key, value, fixture->now);
}

/*
 * If the overlay has a record of a directory entry, it replaces one in the batch at commit. So no
 * synthetic origin is put before the commit, and the transaction's writes there survive it.
 */
static void test_synthetic_origin_survives_commit(void **state)
{
    struct tree_fixture fixture;
    struct overlay *overlay = overlay_new();
    (void)state;
    tree_fixture_open(&fixture);
    resolve(&fixture, "/p/1");
    assert_int_equal(rename_now(&fixture, "/p", "/q"), 0);
    struct view own = {fixture.store, TL_TS_MAX, overlay};
    struct tree_writer writer = writer_of(&fixture, &own);
    assert_int_equal(tree_rename(&writer, SLICE_LIT("/q"), SLICE_LIT("/p"), fixture.seq_no++, TREE_TS_OPEN), 0);
    assert_int_equal(tree_rename(&writer, SLICE_LIT("/p"), SLICE_LIT("/z"), fixture.seq_no++, TREE_TS_OPEN), 0);
    struct slice born = resolve_in(&fixture, &own, "/p/3");
    next_unit(&fixture);
    struct tree tree = {&own, INDEX, '/', NULL};
    struct slice found;
    assert_int_equal(tree_resolve(&tree, SLICE_LIT("/p/3"), &fixture.arena, &found), 0);
    assert_true(slice_equal(found, born));
    overlay_each(overlay, SPACE_TREE, commit_record, &fixture);
    next_unit(&fixture);
    tree.view = &fixture.view;
    assert_int_equal(tree_resolve(&tree, SLICE_LIT("/p/3"), &fixture.arena, &found), 0);
    assert_true(slice_equal(found, born));
    overlay_free(overlay);
    tree_fixture_close(&fixture);
}

/* Locates files of two deep directories in turn, and of a deep directory of each. Returns: the records read. */
static uint64_t locate_files(struct tree_fixture *fixture, const char *from, const char *to, size_t files)
{
    struct tree tree = {&fixture->view, INDEX, '/', NULL};
    struct tree_paths paths;
    struct buf deep = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < 200; i++)
        buf_lit(&deep, "/d");
    tree_paths_init(&paths);
    for (size_t i = 0; i < files; i++) {
        struct slice found, rest = arena_printf(&fixture->arena, "%.*s/%s%zu", SLICE_ARG(buf_as_slice(&deep)),
                                                i % 3 == 0 ? "" : "own/", i);
        const char *top = i % 2 == 0 ? from : "/still";
        struct slice origin = arena_printf(&fixture->arena, "%s%.*s", top, SLICE_ARG(rest));
        struct slice wanted = arena_printf(&fixture->arena, "%s%.*s", i % 2 == 0 ? to : top, SLICE_ARG(rest));
        assert_int_equal(tree_paths_locate(&paths, &tree, origin, &fixture->arena, &found), 0);
        assert_true(slice_equal(found, wanted));
    }
    uint64_t reads = tree_paths_take_reads(&paths);
    tree_paths_deinit(&paths);
    buf_deinit(&deep);
    return reads;
}

/* Many origins are located with a record for each, and one for each of their directories. */
static void test_directories_of_many_origins_are_read_once(void **state)
{
    enum { FILES = 1000, LEVELS = 202 };
    struct tree_fixture fixture;
    struct buf top = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    for (size_t i = 0; i < LEVELS; i++)
        buf_lit(&top, "/t");
    buf_byte(&top, 0);
    tree_fixture_open(&fixture);
    assert_in_range(locate_files(&fixture, "/a", "/a", FILES), FILES, FILES + 3 * LEVELS);
    assert_int_equal(rename_now(&fixture, "/a", top.data), 0);
    assert_in_range(locate_files(&fixture, "/a", top.data, FILES), FILES, FILES + 4 * LEVELS);
    buf_deinit(&top);
    tree_fixture_close(&fixture);
}

static void test_empty_paths_are_removed_when_filled(void **state)
{
    struct empty_paths paths = {0};
    char path[16];
    (void)state;
    assert_false(empty_paths_contains(&paths, INDEX, SLICE_LIT("/a"), '/'));
    empty_paths_add(&paths, INDEX, SLICE_LIT("/a"), '/');
    assert_true(empty_paths_contains(&paths, INDEX, SLICE_LIT("/a"), '/'));
    assert_true(empty_paths_contains(&paths, INDEX, SLICE_LIT("/a/b/c"), '/'));
    assert_false(empty_paths_contains(&paths, INDEX, SLICE_LIT("/ab"), '/'));
    assert_false(empty_paths_contains(&paths, INDEX, SLICE_LIT("/"), '/'));
    assert_false(empty_paths_contains(&paths, INDEX + 1, SLICE_LIT("/a"), '/'));
    empty_paths_invalidate(&paths, INDEX, SLICE_LIT("/ab"));
    empty_paths_invalidate(&paths, INDEX + 1, SLICE_LIT("/a"));
    assert_true(empty_paths_contains(&paths, INDEX, SLICE_LIT("/a"), '/'));
    empty_paths_invalidate(&paths, INDEX, SLICE_LIT("/a/b/c"));
    assert_false(empty_paths_contains(&paths, INDEX, SLICE_LIT("/a"), '/'));
    empty_paths_add(&paths, INDEX, SLICE_LIT("/x/y"), '/');
    empty_paths_invalidate(&paths, INDEX, SLICE_LIT("/x"));
    assert_true(empty_paths_contains(&paths, INDEX, SLICE_LIT("/x/y"), '/'));
    empty_paths_invalidate_subtree(&paths, INDEX, SLICE_LIT("/x")); /* a renamed one may have a document at /x/y */
    assert_false(empty_paths_contains(&paths, INDEX, SLICE_LIT("/x/y"), '/'));
    for (int i = 0; i < 3 * EMPTY_PATHS_MAX; i++) {
        snprintf(path, sizeof path, "/p%d", i);
        empty_paths_add(&paths, INDEX, slice_from(path), '/');
        assert_true(empty_paths_contains(&paths, INDEX, slice_from(path), '/'));
    }
    assert_int_equal(paths.count, EMPTY_PATHS_MAX);
    empty_paths_clear(&paths);
    assert_int_equal(paths.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_records_roundtrip),
        cmocka_unit_test(test_tree_history_roundtrip_newest_first),
        cmocka_unit_test(test_tree_damaged_records_are_rejected),
        cmocka_unit_test(test_tree_commit_sets_ts_of_open_renames_only),
        cmocka_unit_test(test_tree_parent_excludes_last_name),
        cmocka_unit_test(test_resolve_returns_path_before_first_rename),
        cmocka_unit_test(test_rename_moves_descendants_and_counts_once),
        cmocka_unit_test(test_rename_frees_its_source_path),
        cmocka_unit_test(test_rename_raises_totals_by_one),
        cmocka_unit_test(test_each_relocated_skips_origins_moved_out),
        cmocka_unit_test(test_rename_rejects_invalid_paths_without_changes),
        cmocka_unit_test(test_tree_past_views_are_unchanged),
        cmocka_unit_test(test_locate_as_of_uses_history),
        cmocka_unit_test(test_directories_of_many_origins_are_read_once),
        cmocka_unit_test(test_rename_reports_damaged_relocation),
        cmocka_unit_test(test_rename_reports_overflow),
        cmocka_unit_test(test_transaction_renames_are_private),
        cmocka_unit_test(test_vacated_entry_gets_synthetic_origin_before_commit),
        cmocka_unit_test(test_synthetic_origin_survives_commit),
        cmocka_unit_test(test_empty_paths_are_removed_when_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
