/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the tree of an index; see tree_write.h. */
#include "core/tree/tree_write.h"

#include "base/buf.h"
#include "base/check.h"
#include "core/tree/tree_record.h"

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* Puts a record into the overlay if `own`, else into the batch. An empty value deletes. */
static void put_record(struct tree_writer *writer, bool own, struct slice key, struct slice value)
{
    REQUIRE(!own || writer->overlay != NULL);
    REQUIRE(own || !tree_record_is_open(key, value)); /* the batch is committed as it is */
    REQUIRE(writer->pending == writer->tree.pending); /* later reads of the unit see the record */
    if (own) {
        if (value.len > 0)
            overlay_put(writer->overlay, SPACE_TREE, key, value);
        else
            overlay_delete(writer->overlay, SPACE_TREE, key);
        return;
    }
    if (value.len > 0)
        store_batch_put(writer->batch, SPACE_TREE, key, value);
    else
        store_batch_delete(writer->batch, SPACE_TREE, key);
    omap_put(writer->pending, key, value);
}

/* An empty `origin` deletes. */
static void put_dirent(struct tree_writer *writer, bool own, struct slice dirent, struct slice origin)
{
    REQUIRE(dirent.len > 0);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);

    put_record(writer, own, tree_dirent_key(&key, writer->tree.index, dirent), origin);
}

static void put_relocation(struct tree_writer *writer, bool own, struct slice origin,
                           const struct tree_relocation *relocation)
{
    REQUIRE(origin.len > 0);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);

    tree_relocation_encode(&value, relocation);
    put_record(writer, own, tree_relocation_key(&key, writer->tree.index, origin), buf_as_slice(&value));
}

/*
 * Saves an origin's record before a rename at `ts` changes it, and drops items of the history that
 * no session needs any more.
 */
static int save_history(struct tree_writer *writer, struct slice origin, const struct tree_relocation *before, tl_ts ts,
                        struct arena *arena)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);
    struct slice history, item;
    tl_ts item_ts;

    if (writer->history_from == 0 || before->ts == ts) /* the state before this timestamp is saved */
        return 0;
    if (before->ts > ts) /* newest items are first; only a damaged record is of later */
        return tl_trace(TL_ERR_CORRUPT);
    int r = tree__read_history(&writer->tree, origin, arena, &history);
    tree_history_encode(&value, ts, before);
    while (r == 0 && history.len > 0) {
        struct slice whole = history;
        r = tree_history_take(&history, &item_ts, &item);
        if (r != 0 || item_ts < writer->history_from)
            break;
        buf_slice(&value, slice_make(whole.data, whole.len - history.len));
    }
    if (r == 0)
        put_record(writer, writer->overlay != NULL, tree_history_key(&key, writer->tree.index, origin),
                   buf_as_slice(&value));
    return r;
}

/* In the batch, even in a transaction: a length that is too high does no harm. */
static void put_length(struct tree_writer *writer, struct slice key, size_t length)
{
    REQUIRE(length > 0); /* which says that there is no record */
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(64);

    tree_length_encode(&value, length);
    put_record(writer, false, key, buf_as_slice(&value));
}

/* --- Origins ------------------------------------------------------------------------------------------------------ */

/* Converts "not found" of a record that must exist: the store is corrupt. */
static int fatal_if_missing(int r)
{
    return r > 0 ? tl_trace(TL_ERR_CORRUPT) : r;
}

/* Whether the transaction's overlay has a record of the directory entry, possibly a deletion. */
static bool has_own_record(const struct tree_writer *writer, struct slice dirent)
{
    REQUIRE(writer->overlay != NULL);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct slice value;

    return overlay_get(writer->overlay, SPACE_TREE, tree_dirent_key(&key, writer->tree.index, dirent), &value) !=
           STORE_NOT_FOUND;
}

/*
 * Decides whether a synthetic origin for a vacated directory entry is private to the transaction.
 * It is if the transaction vacated the entry, or has a record of it that its commit would put over
 * another one; it then holds a lock on it. Otherwise it is put into the batch and is visible to all
 * (invariant 6).
 */
static int is_private(const struct tree_writer *writer, struct slice dirent, struct arena *arena, bool *ret_own)
{
    struct view view = *writer->tree.view;
    struct tree tree = writer->tree;
    struct slice origin;

    *ret_own = writer->overlay != NULL && has_own_record(writer, dirent);
    if (writer->overlay == NULL || *ret_own)
        return 0;
    view.overlay = NULL;
    tree.view = &view;
    int r = tree__origin_at(&tree, dirent, arena, &origin);
    *ret_own = r == 0;
    return r == TREE_NOT_FOUND ? 0 : fatal_if_missing(r);
}

/* --- Length of paths: README.md ----------------------------------------------------------------------------------- */

static int record_length(struct tree_writer *writer, struct slice origin)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t longest;

    if (origin.len <= TREE_ORIGIN_SHORT)
        return 0;
    int r = tree__read_length(&writer->tree, tree_longest_key(&key, writer->tree.index), &longest);
    if (r != 0)
        return fatal_if_missing(r);
    if (origin.len > longest)
        put_length(writer, buf_as_slice(&key), origin.len);
    return 0;
}

/* Reaches are rounded up, so that most additions to a directory change nothing. */
enum { REACH_STEP = 64 };

static int raise_reach(struct tree_writer *writer, struct slice origin, size_t reach)
{
    REQUIRE(origin.len > 0 && reach > 0);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t known;
    int r = tree__read_length(&writer->tree, tree_reach_key(&key, writer->tree.index, origin), &known);

    if (r == 0 && reach > known)
        put_length(writer, buf_as_slice(&key), (reach / REACH_STEP + 1) * REACH_STEP);
    return fatal_if_missing(r);
}

/*
 * Raises the reaches above a directory entry to which an origin was relocated. An unmoved origin
 * without a reach of its own changes nothing.
 */
static int raise_reaches(struct tree_writer *writer, struct slice dirent, struct slice origin, struct arena *arena)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t reach, len = dirent.len, jumps = 0;
    int r = tree__read_length(&writer->tree, tree_reach_key(&key, writer->tree.index, origin), &reach);

    while (r == 0 && (reach > 0 || !slice_equal(dirent, origin))) {
        size_t above = tree_parent_length(slice_make(dirent.data, len), writer->tree.delimiter);
        struct tree_relocation relocation = {0};
        reach += len - above;
        len = above;
        if (len == 0)
            break;
        struct slice directory = slice_make(dirent.data, len);
        r = raise_reach(writer, directory, reach);
        if (r == 0)
            r = tree__read_relocation(&writer->tree, directory, arena, &relocation);
        if (r == 0 && relocation.state == TREE_RELOCATED) {
            dirent = relocation.dirent;
            len = dirent.len;
            if (++jumps > TREE_ORIGINS_MAX)
                return tl_trace(TL_ERR_CORRUPT);
        }
    }
    return fatal_if_missing(r);
}

/* Creates a synthetic origin for a vacated directory entry. */
static int create_synthetic(struct tree_writer *writer, struct slice dirent, struct arena *arena,
                            struct slice *ret_origin)
{
    REQUIRE(writer->ts < TREE_TS_OPEN && dirent.len > 0);
    tl_cleanup(buf_deinit) struct buf origin = BUF_INIT(64);
    struct tree_relocation relocation = {.state = TREE_RELOCATED, .seq_no = -1, .dirent = dirent};
    bool own;
    int r = is_private(writer, dirent, arena, &own);

    if (r != 0)
        return r;
    INSIST(*writer->origins_created < UINT32_MAX); /* invariant 3 */
    tree_new_origin(&origin, writer->ts, (*writer->origins_created)++);
    put_dirent(writer, own, dirent, buf_as_slice(&origin));
    put_relocation(writer, own, buf_as_slice(&origin), &relocation);
    *ret_origin = arena_copy(arena, buf_as_slice(&origin));
    return raise_reaches(writer, dirent, buf_as_slice(&origin), arena);
}

/* Like tree_resolve(), but creates synthetic origins for vacated directory entries. */
static int resolve_or_create(struct tree_writer *writer, struct slice path, struct arena *arena,
                             struct slice *ret_origin)
{
    struct slice origin = SLICE_LIT("");
    size_t begin = 0;

    *ret_origin = path;
    while (begin < path.len) {
        size_t end = tree__next_end(path, begin, writer->tree.delimiter);
        struct slice dirent = origin.data == path.data || begin == 0
                                  ? slice_make(path.data, end)
                                  : tree__join(arena, origin, slice_make(path.data + begin, end - begin));
        int r = tree__origin_at(&writer->tree, dirent, arena, &origin);
        if (r == TREE_NOT_FOUND)
            r = create_synthetic(writer, dirent, arena, &origin);
        if (r != 0)
            return fatal_if_missing(r);
        *ret_origin = origin;
        begin = end;
    }
    return 0;
}

/* Computes the total of the renames of an origin and of all above it. */
static int total_of(const struct tree *tree, struct slice origin, struct arena *arena, int64_t *ret_total)
{
    struct tree_totals totals;
    int r = tree_locate(tree, origin, arena, NULL, &totals);

    if (r != 0)
        return fatal_if_missing(r);
    *ret_total = totals.renames;
    return 0;
}

int tree_resolve_or_create(struct tree_writer *writer, struct slice path, struct arena *arena, struct slice *ret_origin,
                           int64_t *ret_rename_base)
{
    tl_ts last_rename;
    int r = tree_last_rename(&writer->tree, &last_rename, NULL);

    *ret_origin = path;
    *ret_rename_base = 0;
    if (r == 0 && last_rename != 0)
        r = resolve_or_create(writer, path, arena, ret_origin);
    if (r == 0)
        r = record_length(writer, *ret_origin);
    if (r == 0 && last_rename != 0)
        r = total_of(&writer->tree, *ret_origin, arena, ret_rename_base);
    return fatal_if_missing(r);
}

void tree_set_version_high(struct tree_writer *writer, struct slice document, bool high)
{
    REQUIRE(document.len > 0);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);

    put_record(writer, writer->overlay != NULL, tree_high_key(&key, writer->tree.index, document),
               high ? SLICE_LIT("+") : SLICE_LIT(""));
}

/* --- Renaming ----------------------------------------------------------------------------------------------------- */

/* A directory entry, and the origin of its directory. */
struct dirent_location {
    struct slice directory; /* empty: the entry is at the root */
    struct slice dirent;
};

/*
 * Finds a path's directory entry. Returns: 0; TREE_NOT_FOUND: nothing can exist there; fatal codes.
 */
static int find_dirent(struct tree_writer *writer, struct slice path, bool make, struct arena *arena,
                       struct dirent_location *ret_location)
{
    REQUIRE(path.len > 0);
    struct slice parent = slice_make(path.data, tree_parent_length(path, writer->tree.delimiter));
    int r = make ? resolve_or_create(writer, parent, arena, &ret_location->directory)
                 : tree_resolve(&writer->tree, parent, arena, &ret_location->directory);

    if (r == 0)
        ret_location->dirent = tree__join(arena, ret_location->directory, slice_from_offset(path, parent.len));
    return r;
}

/*
 * Detaches the origin relocated to an entry, which is empty. An unmoved one is hidden and has no
 * record to change.
 */
static int detach_existing(struct tree_writer *writer, struct slice dirent, tl_ts ts, struct arena *arena)
{
    struct tree_relocation relocation;
    struct slice origin;
    int r = tree__read_dirent(&writer->tree, dirent, arena, &origin);

    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : fatal_if_missing(r);
    r = tree__read_relocation(&writer->tree, origin, arena, &relocation);
    if (r == 0)
        r = save_history(writer, origin, &relocation, ts, arena);
    if (r != 0)
        return fatal_if_missing(r);
    relocation.state = TREE_DETACHED;
    put_relocation(writer, writer->overlay != NULL, origin, &relocation);
    return 0;
}

/*
 * Changes a relocation's renames so that the origin's total becomes `before` + renames + 1 below a
 * directory with the total `after`. Returns: 0; TL_ERR_CORRUPT: beyond 64 bits, the store is damaged.
 */
static int raise_renames(struct tree_relocation *relocation, int64_t before, int64_t after)
{
    int64_t total;

    if (__builtin_add_overflow(before, relocation->renames, &total) || __builtin_add_overflow(total, 1, &total) ||
        __builtin_sub_overflow(total, after, &relocation->renames))
        return tl_trace(TL_ERR_CORRUPT);
    return 0;
}

/*
 * Moves an origin to another directory entry. The total of everything below rises by one:
 * README.md, "Versions and renames".
 */
static int move_origin(struct tree_writer *writer, struct slice origin, const struct dirent_location *from,
                       const struct dirent_location *to, int64_t seq_no, tl_ts ts, struct arena *arena)
{
    bool own = writer->overlay != NULL;
    struct tree_relocation relocation;
    int64_t before, after;
    int r = tree__read_relocation(&writer->tree, origin, arena, &relocation);

    if (r == 0)
        r = total_of(&writer->tree, from->directory, arena, &before);
    if (r == 0)
        r = total_of(&writer->tree, to->directory, arena, &after);
    if (r == 0)
        r = detach_existing(writer, to->dirent, ts, arena);
    if (r == 0)
        r = save_history(writer, origin, &relocation, ts, arena);
    if (r == 0)
        r = raise_renames(&relocation, before, after);
    if (r != 0)
        return fatal_if_missing(r);
    bool home = slice_equal(origin, to->dirent);
    if (!slice_equal(origin, from->dirent))
        put_dirent(writer, own, from->dirent, SLICE_LIT(""));
    put_dirent(writer, own, to->dirent, home ? SLICE_LIT("") : origin);
    relocation.state = home ? TREE_UNMOVED : TREE_RELOCATED;
    relocation.dirent = to->dirent;
    relocation.seq_no = seq_no;
    relocation.ts = ts;
    put_relocation(writer, own, origin, &relocation);
    return raise_reaches(writer, to->dirent, origin, arena);
}

static void put_last_rename(struct tree_writer *writer, tl_ts ts)
{
    REQUIRE((writer->overlay != NULL) == (ts == TREE_TS_OPEN));
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(64);
    tl_cleanup(buf_deinit) struct buf last_rename = BUF_INIT(64);

    buf_u64be(&last_rename, ts);
    buf_byte(&last_rename, writer->tree.delimiter);
    put_record(writer, writer->overlay != NULL, tree_last_rename_key(&key, writer->tree.index),
               buf_as_slice(&last_rename));
}

#ifdef TIDELOCK_CHECK_COSTLY /* builds of developers, in which the tests run */
enum { CHECKS_RENAMES = 1 };
#else
enum { CHECKS_RENAMES = 0 };
#endif

/* Whether an origin is at a path, and the path resolves to it (invariants 1 and 2), with this total. */
static bool is_at(const struct tree *tree, struct slice origin, struct slice path, int64_t total, struct arena *arena)
{
    struct tree_totals totals = {0};
    struct slice located, resolved;
    int r = tree_locate(tree, origin, arena, &located, &totals);

    if (r == 0)
        r = tree_resolve(tree, path, arena, &resolved);
    return r < 0 || (r == 0 && totals.renames == total && slice_equal(located, path) && slice_equal(resolved, origin));
}

int tree_rename(struct tree_writer *writer, struct slice from, struct slice to, int64_t seq_no, tl_ts ts)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct dirent_location source, target;
    struct slice origin;
    int64_t total = 0;

    REQUIRE((writer->overlay != NULL) == (ts == TREE_TS_OPEN) && from.len > 0 && to.len > 0);
    REQUIRE(seq_no >= 0 && (ts == TREE_TS_OPEN || ts == writer->ts));
    if (tree_within(to, from, writer->tree.delimiter))
        return TREE_INTO_ITSELF;
    int r = find_dirent(writer, from, false, &arena, &source);
    if (r == 0)
        r = tree__origin_at(&writer->tree, source.dirent, &arena, &origin);
    if (r == 0)
        r = fatal_if_missing(find_dirent(writer, to, true, &arena, &target));
    if (r == 0 && CHECKS_RENAMES)
        r = total_of(&writer->tree, origin, &arena, &total);
    if (r == 0)
        r = move_origin(writer, origin, &source, &target, seq_no, ts, &arena);
    if (r == 0)
        put_last_rename(writer, ts);
    if (r == 0 && CHECKS_RENAMES)
        ENSURE(is_at(&writer->tree, origin, to, total + 1, &arena)); /* invariants 1, 2 and 5 */
    return r;
}

/* --- Committing --------------------------------------------------------------------------------------------------- */

void tree_commit(struct store_batch *batch, struct slice key, struct slice value, tl_ts ts)
{
    REQUIRE(key.len > 0 && ts != TREE_TS_OPEN);
    tl_cleanup(buf_deinit) struct buf stamped = BUF_INIT(BUF_UNLIMITED);

    if (value.data == NULL) {
        store_batch_delete(batch, SPACE_TREE, key);
        return;
    }
    if (tree_record_is_open(key, value)) {
        buf_u64be(&stamped, ts);
        buf_slice(&stamped, slice_from_offset(value, sizeof(uint64_t)));
        value = buf_as_slice(&stamped);
    }
    store_batch_put(batch, SPACE_TREE, key, value);
}
