/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the tree of an index; see tree_write.h. */
#include "core/tree/tree_write.h"

#include "base/buf.h"
#include "base/check.h"
#include "core/tree/tree_record.h"

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* An empty value deletes. */
static void put(struct tree_writer *writer, bool own, struct slice key, struct slice value)
{
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

/* An empty guest: there is none. */
static void put_guest(struct tree_writer *writer, bool own, struct slice place, struct slice guest)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);

    put(writer, own, tree_dirent_key(&key, writer->tree.index, place), guest);
}

static void put_moved(struct tree_writer *writer, bool own, struct slice birth, const struct tree_relocation *moved)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);

    tree_relocation_encode(&value, moved);
    put(writer, own, tree_relocation_key(&key, writer->tree.index, birth), buf_as_slice(&value));
}

/* Keeps what a rename at `ts` is about to change of a birth, and forgets what was kept that is too old for anybody. */
static int keep_past(struct tree_writer *writer, struct slice birth, const struct tree_relocation *before, tl_ts ts,
                     struct arena *arena)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);
    struct slice past, item;
    tl_ts kept_ts;

    if (writer->history_from == 0 || before->ts == ts) /* what was before this moment is kept */
        return 0;
    int r = tree__read_history(&writer->tree, birth, arena, &past);
    tree_history_encode(&value, ts, before);
    while (r == 0 && past.len > 0) {
        struct slice whole = past;
        r = tree_history_take(&past, &kept_ts, &item);
        if (r != 0 || kept_ts < writer->history_from)
            break;
        buf_slice(&value, slice_make(whole.data, whole.len - past.len));
    }
    if (r == 0)
        put(writer, writer->overlay != NULL, tree_history_key(&key, writer->tree.index, birth), buf_as_slice(&value));
    return r;
}

/* Ahead, as it does no harm where nothing comes of it. */
static void put_length(struct tree_writer *writer, struct slice key, size_t length)
{
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(64);

    tree_length_encode(&value, length);
    put(writer, false, key, buf_as_slice(&value));
}

/* --- Births ------------------------------------------------------------------------------------------------------- */

/* Nobody but a damaged store says "not found" of what is known to be there. */
static int fatal(int r)
{
    return r > 0 ? tl_trace(TL_ERR_CORRUPT) : r;
}

/* Whether the transaction has a record of what lies at a place, be it that nothing does. */
static bool has_said(const struct tree_writer *writer, struct slice place)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct slice value;

    return overlay_get(writer->overlay, SPACE_TREE, tree_dirent_key(&key, writer->tree.index, place), &value) !=
           STORE_NOT_FOUND;
}

/*
 * Whether a guest of a vacant place is the transaction's own: it has renamed what others see there, or has a record of the place, which
 * its commit would put over one made ahead. It holds the place then. Any other guest is made ahead, for everybody (invariant 6).
 */
static int is_own(const struct tree_writer *writer, struct slice place, struct arena *arena, bool *ret_own)
{
    struct view view = *writer->tree.view;
    struct tree tree = writer->tree;
    struct slice birth;

    *ret_own = writer->overlay != NULL && has_said(writer, place);
    if (writer->overlay == NULL || *ret_own)
        return 0;
    view.overlay = NULL;
    tree.view = &view;
    int r = tree__origin_at(&tree, place, arena, &birth);
    *ret_own = r == 0;
    return r == TREE_NOT_FOUND ? 0 : fatal(r);
}

/* --- How long paths may be: README.md, "Bounds" -------------------------------------------------------------------- */

static int note_birth(struct tree_writer *writer, struct slice birth)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t longest;

    if (birth.len <= TREE_ORIGIN_SHORT)
        return 0;
    int r = tree__read_length(&writer->tree, tree_longest_key(&key, writer->tree.index), &longest);
    if (r != 0)
        return fatal(r);
    if (birth.len > longest)
        put_length(writer, buf_as_slice(&key), birth.len);
    return 0;
}

/* Reaches are rounded up, so that most of what comes next into a directory changes nothing. */
enum { REACH_STEP = 64 };

static int raise_reach(struct tree_writer *writer, struct slice birth, size_t reach)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t known;
    int r = tree__read_length(&writer->tree, tree_reach_key(&key, writer->tree.index, birth), &known);

    if (r == 0 && reach > known)
        put_length(writer, buf_as_slice(&key), (reach / REACH_STEP + 1) * REACH_STEP);
    return fatal(r);
}

/* A birth comes to lie at a place: what is above reaches as far as it does, unless it is at home and nothing was renamed to below it. */
static int reach_up(struct tree_writer *writer, struct slice place, struct slice birth, struct arena *arena)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t reach, len = place.len, jumps = 0;
    int r = tree__read_length(&writer->tree, tree_reach_key(&key, writer->tree.index, birth), &reach);

    while (r == 0 && (reach > 0 || !slice_equal(place, birth))) {
        size_t above = tree_parent_length(slice_make(place.data, len), writer->tree.delimiter);
        struct tree_relocation moved = {0};
        reach += len - above;
        len = above;
        if (len == 0)
            break;
        struct slice directory = slice_make(place.data, len);
        r = raise_reach(writer, directory, reach);
        if (r == 0)
            r = tree__read_relocation(&writer->tree, directory, arena, &moved);
        if (r == 0 && moved.state == TREE_RELOCATED) {
            place = moved.dirent;
            len = place.len;
            if (++jumps > TREE_ORIGINS_MAX)
                return tl_trace(TL_ERR_CORRUPT);
        }
    }
    return fatal(r);
}

/* Makes a guest for a vacant place. */
static int make_guest(struct tree_writer *writer, struct slice place, struct arena *arena, struct slice *ret_birth)
{
    tl_cleanup(buf_deinit) struct buf birth = BUF_INIT(64);
    struct tree_relocation moved = {.state = TREE_RELOCATED, .seq_no = -1, .dirent = place};
    bool own;
    int r = is_own(writer, place, arena, &own);

    if (r != 0)
        return r;
    tree_new_origin(&birth, writer->ts, (*writer->origins_created)++);
    put_guest(writer, own, place, buf_as_slice(&birth));
    put_moved(writer, own, buf_as_slice(&birth), &moved);
    *ret_birth = arena_copy(arena, buf_as_slice(&birth));
    return reach_up(writer, place, buf_as_slice(&birth), arena);
}

/* As tree_resolve(), with guests for vacant places. */
static int find_or_make(struct tree_writer *writer, struct slice path, struct arena *arena, struct slice *ret_birth)
{
    struct slice birth = SLICE_LIT("");
    size_t begin = 0;

    *ret_birth = path;
    while (begin < path.len) {
        size_t end = tree__next_end(path, begin, writer->tree.delimiter);
        struct slice place = birth.data == path.data || begin == 0
                                 ? slice_make(path.data, end)
                                 : tree__join(arena, birth, slice_make(path.data + begin, end - begin));
        int r = tree__origin_at(&writer->tree, place, arena, &birth);
        if (r == TREE_NOT_FOUND)
            r = make_guest(writer, place, arena, &birth);
        if (r != 0)
            return fatal(r);
        *ret_birth = birth;
        begin = end;
    }
    return 0;
}

/* What the renames of a birth and of all above come to. */
static int total_of(const struct tree *tree, struct slice birth, struct arena *arena, int64_t *ret_total)
{
    struct tree_totals standing;
    int r = tree_locate(tree, birth, arena, NULL, &standing);

    if (r != 0)
        return fatal(r);
    *ret_total = standing.renames;
    return 0;
}

int tree_resolve_or_create(struct tree_writer *writer, struct slice path, struct arena *arena, struct slice *ret_birth,
              int64_t *ret_stamp)
{
    tl_ts newest;
    int r = tree_last_rename(&writer->tree, &newest, NULL);

    *ret_birth = path;
    *ret_stamp = 0;
    if (r == 0 && newest != 0)
        r = find_or_make(writer, path, arena, ret_birth);
    if (r == 0)
        r = note_birth(writer, *ret_birth);
    if (r == 0 && newest != 0)
        r = total_of(&writer->tree, *ret_birth, arena, ret_stamp);
    return fatal(r);
}

void tree_set_version_high(struct tree_writer *writer, struct slice document, bool high)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);

    put(writer, writer->overlay != NULL, tree_high_key(&key, writer->tree.index, document),
        high ? SLICE_LIT("+") : SLICE_LIT(""));
}

/* --- Renaming ----------------------------------------------------------------------------------------------------- */

/* Where a path is, in the directory that its parent is. */
struct spot {
    struct slice directory; /* a birth; empty: a root */
    struct slice place;
};

/* The place of a path. Returns: 0; TREE_NOT_FOUND: nothing can lie there; fatal codes. */
static int find_spot(struct tree_writer *writer, struct slice path, bool make, struct arena *arena,
                     struct spot *ret_spot)
{
    struct slice parent = slice_make(path.data, tree_parent_length(path, writer->tree.delimiter));
    int r = make ? find_or_make(writer, parent, arena, &ret_spot->directory)
                 : tree_resolve(&writer->tree, parent, arena, &ret_spot->directory);

    if (r == 0)
        ret_spot->place = tree__join(arena, ret_spot->directory, slice_from_offset(path, parent.len));
    return r;
}

/* What is empty at a place gives way: a guest lies nowhere from now on, what is at home is hidden. */
static int give_way(struct tree_writer *writer, struct slice place, tl_ts ts, struct arena *arena)
{
    struct tree_relocation moved;
    struct slice guest;
    int r = tree__read_dirent(&writer->tree, place, arena, &guest);

    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : fatal(r);
    r = tree__read_relocation(&writer->tree, guest, arena, &moved);
    if (r == 0)
        r = keep_past(writer, guest, &moved, ts, arena);
    if (r != 0)
        return fatal(r);
    moved.state = TREE_DETACHED;
    put_moved(writer, writer->overlay != NULL, guest, &moved);
    return 0;
}

/* Moves a birth between two places. All below it counts one change more: README.md, "Counting a rename as a change". */
static int move(struct tree_writer *writer, struct slice birth, const struct spot *from, const struct spot *to,
                int64_t seq_no, tl_ts ts, struct arena *arena)
{
    bool own = writer->overlay != NULL;
    struct tree_relocation moved;
    int64_t before, after;
    int r = tree__read_relocation(&writer->tree, birth, arena, &moved);

    if (r == 0)
        r = total_of(&writer->tree, from->directory, arena, &before);
    if (r == 0)
        r = total_of(&writer->tree, to->directory, arena, &after);
    if (r == 0)
        r = give_way(writer, to->place, ts, arena);
    if (r == 0)
        r = keep_past(writer, birth, &moved, ts, arena);
    if (r != 0)
        return fatal(r);
    bool home = slice_equal(birth, to->place);
    if (!slice_equal(birth, from->place))
        put_guest(writer, own, from->place, SLICE_LIT(""));
    put_guest(writer, own, to->place, home ? SLICE_LIT("") : birth);
    moved.state = home ? TREE_UNMOVED : TREE_RELOCATED;
    moved.dirent = to->place;
    moved.renames += before - after + 1;
    moved.seq_no = seq_no;
    moved.ts = ts;
    put_moved(writer, own, birth, &moved);
    return reach_up(writer, to->place, birth, arena);
}

static void put_newest(struct tree_writer *writer, tl_ts ts)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(64);
    tl_cleanup(buf_deinit) struct buf newest = BUF_INIT(64);

    buf_u64be(&newest, ts);
    buf_byte(&newest, writer->tree.delimiter);
    put(writer, writer->overlay != NULL, tree_last_rename_key(&key, writer->tree.index), buf_as_slice(&newest));
}

int tree_rename(struct tree_writer *writer, struct slice from, struct slice to, int64_t seq_no, tl_ts ts)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct spot source, target;
    struct slice birth;

    REQUIRE((writer->overlay != NULL) == (ts == TREE_TS_OPEN) && from.len > 0 && to.len > 0);
    if (tree_within(to, from, writer->tree.delimiter))
        return TREE_INTO_ITSELF;
    int r = find_spot(writer, from, false, &arena, &source);
    if (r == 0)
        r = tree__origin_at(&writer->tree, source.place, &arena, &birth);
    if (r == 0)
        r = fatal(find_spot(writer, to, true, &arena, &target));
    if (r == 0)
        r = move(writer, birth, &source, &target, seq_no, ts, &arena);
    if (r == 0)
        put_newest(writer, ts);
    return r;
}

/* --- Committing --------------------------------------------------------------------------------------------------- */

void tree_commit(struct store_batch *batch, struct slice key, struct slice value, tl_ts ts)
{
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
