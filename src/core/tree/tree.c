/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tree of an index; see tree.h. */
#include "core/tree/tree.h"

#include "base/buf.h"
#include "base/check.h"

/* --- Paths -------------------------------------------------------------------------------------------------------- */

bool tree_within(struct slice path, struct slice directory, char delimiter)
{
    return slice_equal(path, directory) ||
           (slice_starts_with(path, directory) && path.data[directory.len] == delimiter);
}

size_t tree_parent_length(struct slice path, char delimiter)
{
    size_t end = path.len;

    while (end > 1 && path.data[end - 1] != delimiter)
        end--;
    return end > 1 ? end - 1 : 0;
}

size_t tree__next_end(struct slice path, size_t from, char delimiter)
{
    REQUIRE(from < path.len);
    size_t end = from + 1 + slice_find_byte(slice_from_offset(path, from + 1), delimiter);
    ENSURE(from < end && end <= path.len); /* a caller's loop over the names ends */
    return end;
}

struct slice tree__join(struct arena *arena, struct slice origin, struct slice rest)
{
    char *bytes = arena_alloc(arena, origin.len + rest.len + 1);

    if (origin.len > 0)
        memcpy(bytes, origin.data, origin.len);
    if (rest.len > 0)
        memcpy(bytes + origin.len, rest.data, rest.len);
    bytes[origin.len + rest.len] = '\0';
    return slice_make(bytes, origin.len + rest.len);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static int outcome_of(int r)
{
    return r == STORE_NOT_FOUND ? TREE_NOT_FOUND : r == STORE_TOO_OLD ? TREE_TOO_OLD : r;
}

/*
 * Returns: what the unit has put under a key, unless its transaction has its own record; NULL:
 *   nothing.
 */
static const struct omap_entry *find_pending(const struct tree *tree, struct slice key)
{
    struct slice value;

    if (tree->pending == NULL || tree->pending->count == 0 ||
        (tree->view->overlay != NULL && overlay_get(tree->view->overlay, SPACE_TREE, key, &value) != STORE_NOT_FOUND))
        return NULL;
    return omap_get(tree->pending, key);
}

/*
 * Reads a record. Returns: 0, the caller releases *ret_value; TREE_NOT_FOUND; TREE_TOO_OLD; fatal
 * codes.
 */
static int get_record(const struct tree *tree, struct slice key, struct store_value *ret_value)
{
    const struct omap_entry *pending = find_pending(tree, key);

    if (pending == NULL)
        return outcome_of(view_get(tree->view, SPACE_TREE, key, ret_value));
    if (omap_value(pending).len == 0)
        return TREE_NOT_FOUND;
    *ret_value = (struct store_value){omap_value(pending), NULL, NULL};
    return 0;
}

int tree__read_dirent(const struct tree *tree, struct slice dirent, struct arena *arena, struct slice *ret_origin)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = get_record(tree, tree_dirent_key(&key, tree->index, dirent), &value);

    if (r != 0)
        return r;
    *ret_origin = arena_copy(arena, value.bytes);
    store_value_release(&value);
    return 0;
}

int tree__read_history(const struct tree *tree, struct slice origin, struct arena *arena, struct slice *ret_history)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = get_record(tree, tree_history_key(&key, tree->index, origin), &value);

    *ret_history = SLICE_LIT("");
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    *ret_history = arena_copy(arena, value.bytes);
    store_value_release(&value);
    return 0;
}

/*
 * Reads an origin's relocation record as of tree->as_of, from its history: the oldest item saved
 * after that.
 *
 * Returns: 0; TREE_NOT_FOUND: no rename since, so the current record applies; TREE_TOO_OLD; fatal
 *   codes.
 */
static int relocation_as_of(const struct tree *tree, struct slice origin, struct arena *arena,
                            struct tree_relocation *ret_relocation)
{
    REQUIRE(tree->as_of > 0);
    struct slice history, item, found = SLICE_NONE;
    tl_ts ts;
    int r = tree__read_history(tree, origin, arena, &history);

    while (r == 0 && history.len > 0) {
        r = tree_history_take(&history, &ts, &item);
        if (r != 0 || ts <= tree->as_of)
            break;
        found = item;
    }
    if (r != 0)
        return r;
    return found.data == NULL ? TREE_NOT_FOUND : tree_relocation_decode(found, ret_relocation);
}

static int read_relocation(const struct tree *tree, struct slice key, struct arena *arena,
                           struct tree_relocation *ret_relocation)
{
    struct store_value value;
    int r = tree->as_of == 0 ? TREE_NOT_FOUND : relocation_as_of(tree, tree_key_text(key), arena, ret_relocation);

    if (r != TREE_NOT_FOUND)
        return r;
    r = get_record(tree, key, &value);
    *ret_relocation = (struct tree_relocation){.seq_no = -1};
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    r = tree_relocation_decode(arena_copy(arena, value.bytes), ret_relocation);
    store_value_release(&value);
    return r;
}

int tree__read_relocation(const struct tree *tree, struct slice origin, struct arena *arena,
                          struct tree_relocation *ret_relocation)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);

    return read_relocation(tree, tree_relocation_key(&key, tree->index, origin), arena, ret_relocation);
}

int tree_last_rename(const struct tree *tree, tl_ts *ret_ts, char *ret_delimiter)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(64);
    struct slice key = tree_last_rename_key(&buf, tree->index), bytes, delimiter;
    struct store_value value;
    int r = get_record(tree, key, &value);

    *ret_ts = 0;
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    bytes = value.bytes;
    r = slice_take_u64be(&bytes, ret_ts) && slice_take(&bytes, 1, &delimiter) ? 0 : tl_trace(TL_ERR_CORRUPT);
    if (r == 0 && ret_delimiter != NULL)
        *ret_delimiter = delimiter.data[0];
    store_value_release(&value);
    return r;
}

int tree__read_length(const struct tree *tree, struct slice key, size_t *ret_length)
{
    struct store_value value;
    int r = get_record(tree, key, &value);

    *ret_length = 0;
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    r = tree_length_decode(value.bytes, ret_length);
    store_value_release(&value);
    return r;
}

/* --- From path to origin ------------------------------------------------------------------------------------------ */

int tree__origin_at(const struct tree *tree, struct slice dirent, struct arena *arena, struct slice *ret_origin)
{
    REQUIRE(dirent.len > 0); /* the root is not renamed */
    struct tree_relocation relocation;
    int r = tree__read_dirent(tree, dirent, arena, ret_origin);

    if (r != TREE_NOT_FOUND)
        return r;
    r = tree__read_relocation(tree, dirent, arena, &relocation);
    *ret_origin = dirent;
    return r != 0 ? r : relocation.state == TREE_UNMOVED ? 0 : TREE_NOT_FOUND;
}

int tree_resolve(const struct tree *tree, struct slice path, struct arena *arena, struct slice *ret_origin)
{
    struct slice origin = SLICE_LIT("");
    size_t begin = 0;
    tl_ts last_rename;
    int r = tree_last_rename(tree, &last_rename, NULL);

    *ret_origin = path;
    if (r != 0 || last_rename == 0)
        return r;
    while (begin < path.len) {
        size_t end = tree__next_end(path, begin, tree->delimiter);
        struct slice dirent = origin.data == path.data || begin == 0
                                  ? slice_make(path.data, end) /* nothing above was renamed */
                                  : tree__join(arena, origin, slice_make(path.data + begin, end - begin));
        r = tree__origin_at(tree, dirent, arena, &origin);
        if (r != 0)
            return r;
        *ret_origin = origin;
        begin = end;
    }
    return 0;
}

int tree_reach(const struct tree *tree, struct slice path, size_t *ret_below, size_t *ret_origin)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t reach = 0, longest = 0;
    struct slice origin;
    int r = tree_resolve(tree, path, &arena, &origin);

    if (r == 0)
        r = tree__read_length(tree, tree_reach_key(&key, tree->index, origin), &reach);
    if (r == 0)
        r = tree__read_length(tree, tree_longest_key(&key, tree->index), &longest);
    if (r != 0)
        return r;
    longest = longest > TREE_ORIGIN_SHORT ? longest : TREE_ORIGIN_SHORT;
    *ret_origin = origin.len;
    *ret_below = reach > 0 ? reach + longest : longest > origin.len ? longest - origin.len : 0;
    return 0;
}

/* --- From origin to path ------------------------------------------------------------------------------------------ */

/* Returns: 0; TL_ERR_CORRUPT: the sum of the renames is beyond 64 bits, which no renames reach. */
static int add_renames(struct tree_totals *totals, const struct tree_relocation *relocation)
{
    if (__builtin_add_overflow(totals->renames, relocation->renames, &totals->renames))
        return tl_trace(TL_ERR_CORRUPT);
    if (relocation->seq_no > totals->seq_no)
        totals->seq_no = relocation->seq_no;
    if (relocation->ts > totals->ts)
        totals->ts = relocation->ts;
    return 0;
}

int tree_locate(const struct tree *tree, struct slice origin, struct arena *arena, struct slice *ret_path,
                struct tree_totals *ret_totals)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct tree_totals totals = {.seq_no = -1};
    struct slice path = origin;
    struct slice key = tree_relocation_key(&buf, tree->index, path);
    size_t len = origin.len, jumps = 0; /* the first `len` bytes of `path` are an origin; the rest is final */

    while (len > 0) {
        struct tree_relocation relocation;
        int r = read_relocation(tree, key, arena, &relocation);
        if (r == 0)
            r = add_renames(&totals, &relocation);
        if (r != 0)
            return r;
        if (relocation.state == TREE_DETACHED)
            return TREE_NOT_FOUND;
        if (relocation.state == TREE_RELOCATED) {
            if (++jumps > TREE_ORIGINS_MAX)
                return tl_trace(TL_ERR_CORRUPT);
            path = tree__join(arena, relocation.dirent, slice_from_offset(path, len));
            len = relocation.dirent.len;
            key = tree_relocation_key(&buf, tree->index, relocation.dirent);
        }
        size_t above = tree_parent_length(slice_make(path.data, len), tree->delimiter);
        INSIST(above < len && key.len > len); /* each step is one name further up */
        key.len -= len - above; /* the directory's key is a prefix of the key */
        len = above;
    }
    if (ret_path != NULL)
        *ret_path = path;
    *ret_totals = totals;
    return 0;
}

/* --- Origins below an origin -------------------------------------------------------------------------------------- */

/* A relocated directory entry and its origin. */
struct relocated_dirent {
    struct slice dirent;
    struct slice origin;
};

/* Entries read at once. A visitor that needs only the first need not wait for all. */
enum { DIRENT_BATCH = 256 };

/*
 * Reads relocated directory entries into an array, so that no iterator stays open while those below
 * them are visited. Reads at most `most`, after the entry `after` (data NULL: from the first).
 */
static int read_dirents(const struct tree *tree, struct slice prefix, struct slice after, size_t most,
                        struct arena *arena, struct relocated_dirent **ret_dirents, size_t *ret_count)
{
    REQUIRE(tree->pending == NULL || tree->pending->count == 0); /* an iterator does not see them */
    tl_cleanup(buf_deinit) struct buf lower = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(BUF_UNLIMITED);
    struct relocated_dirent *dirents = NULL;
    size_t count = 0, capacity = 0;

    tree_dirent_bounds(&lower, &upper, tree->index, prefix);
    if (after.data != NULL) {
        tree_dirent_key(&lower, tree->index, after);
        buf_byte(&lower, '\0');
    }
    struct view_iter *iter = view_iter_new(tree->view, SPACE_TREE, buf_as_slice(&lower), buf_as_slice(&upper));
    for (view_iter_seek_first(iter); count < most && view_iter_valid(iter); view_iter_next(iter)) {
        dirents = arena_grow(arena, dirents, count, &capacity, sizeof *dirents);
        dirents[count++] = (struct relocated_dirent){arena_copy(arena, tree_key_text(view_iter_key(iter))),
                                                     arena_copy(arena, view_iter_value(iter))};
    }
    int r = outcome_of(view_iter_status(iter));
    view_iter_free(iter);
    *ret_dirents = dirents;
    *ret_count = count;
    return r;
}

/*
 * Finds whether a directory entry is still below the origin that is its prefix. It is not if an
 * origin on the way was renamed, and has taken the entry along, or is hidden. Returns: 0;
 * TREE_TOO_OLD; fatal codes.
 */
static int is_below(const struct tree *tree, struct slice dirent, size_t origin_len, struct arena *arena,
                    bool *ret_below)
{
    REQUIRE(origin_len < dirent.len);
    *ret_below = true;
    for (size_t end = tree_parent_length(dirent, tree->delimiter); *ret_below && end > origin_len;
         end = tree_parent_length(slice_make(dirent.data, end), tree->delimiter)) {
        struct slice text = slice_make(dirent.data, end), origin;
        int r = tree__origin_at(tree, text, arena, &origin);
        if (r != 0 && r != TREE_NOT_FOUND)
            return r;
        *ret_below = r == 0 && slice_equal(origin, text);
    }
    return 0;
}

/* Prefixes still to be visited. */
struct prefixes {
    struct arena *arena;
    struct slice *items;
    size_t count, capacity;
};

static void add_prefix(struct prefixes *prefixes, struct slice prefix)
{
    prefixes->items =
        arena_grow(prefixes->arena, prefixes->items, prefixes->count, &prefixes->capacity, sizeof *prefixes->items);
    prefixes->items[prefixes->count++] = prefix;
}

/* Visits the origins relocated to entries with a prefix; queues the prefixes below them. */
static int visit_prefix(const struct tree *tree, struct slice prefix, struct prefixes *left, tree_visit *visit,
                        void *context)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    size_t origin_len = tree_parent_length(prefix, tree->delimiter), count = DIRENT_BATCH;
    struct slice after = SLICE_NONE;
    struct relocated_dirent *dirents;
    bool below;
    int r = 0;

    while (r == 0 && count == DIRENT_BATCH) {
        r = read_dirents(tree, prefix, after, DIRENT_BATCH, &arena, &dirents, &count);
        for (size_t i = 0; r == 0 && i < count; i++) {
            after = dirents[i].dirent;
            if (tree->reads_left != NULL && *tree->reads_left == 0)
                return TREE_LIMITED;
            if (tree->reads_left != NULL)
                --*tree->reads_left;
            r = is_below(tree, dirents[i].dirent, origin_len, &arena, &below);
            if (r != 0 || !below)
                continue;
            r = visit(context, dirents[i].origin);
            add_prefix(left, tree__join(left->arena, dirents[i].origin, slice_make(&tree->delimiter, 1)));
        }
    }
    return r;
}

int tree_each_relocated(const struct tree *tree, struct slice dirent_prefix, tree_visit *visit, void *context)
{
    REQUIRE(visit != NULL && (tree->pending == NULL || tree->pending->count == 0));
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct prefixes left = {.arena = &arena};
    size_t visited = 0;
    int r = 0;

    add_prefix(&left, dirent_prefix);
    while (r == 0 && left.count > 0) {
        if (++visited > TREE_ORIGINS_MAX)
            return tl_trace(TL_ERR_CORRUPT);
        struct slice prefix = left.items[--left.count];
        r = visit_prefix(tree, prefix, &left, visit, context);
    }
    return r;
}

int tree_each_dirent(const struct tree *tree, struct slice dirent_prefix, tree_visit *visit, void *context)
{
    REQUIRE(visit != NULL);
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct relocated_dirent *dirents;
    size_t count;
    int r = read_dirents(tree, dirent_prefix, SLICE_NONE, SIZE_MAX, &arena, &dirents, &count);

    for (size_t i = 0; r == 0 && i < count; i++)
        r = visit(context, dirents[i].dirent);
    return r;
}
