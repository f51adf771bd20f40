/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the tree of an index; see tree.h. */
#include "core/tree/tree.h"

#include "base/buf.h"

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
    return from + 1 + slice_find_byte(slice_from_offset(path, from + 1), delimiter);
}

struct slice tree__join(struct arena *arena, struct slice birth, struct slice rest)
{
    char *bytes = arena_alloc(arena, birth.len + rest.len + 1);

    if (birth.len > 0)
        memcpy(bytes, birth.data, birth.len);
    if (rest.len > 0)
        memcpy(bytes + birth.len, rest.data, rest.len);
    bytes[birth.len + rest.len] = '\0';
    return slice_make(bytes, birth.len + rest.len);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static int outcome_of(int r)
{
    return r == STORE_NOT_FOUND ? TREE_NOT_FOUND : r == STORE_TOO_OLD ? TREE_TOO_OLD : r;
}

/* Returns: what the unit has put under a key, unless its transaction says something of it; NULL: nothing. */
static const struct omap_entry *find_pending(const struct tree *tree, struct slice key)
{
    struct slice value;

    if (tree->pending == NULL || tree->pending->count == 0 ||
        (tree->view->overlay != NULL && overlay_get(tree->view->overlay, SPACE_TREE, key, &value) != STORE_NOT_FOUND))
        return NULL;
    return omap_get(tree->pending, key);
}

/* Reads a record. Returns: 0, the caller releases *ret_value; TREE_NOT_FOUND; TREE_TOO_OLD; fatal codes. */
static int get(const struct tree *tree, struct slice key, struct store_value *ret_value)
{
    const struct omap_entry *pending = find_pending(tree, key);

    if (pending == NULL)
        return outcome_of(view_get(tree->view, SPACE_TREE, key, ret_value));
    if (omap_value(pending).len == 0)
        return TREE_NOT_FOUND;
    *ret_value = (struct store_value){omap_value(pending), NULL, NULL};
    return 0;
}

int tree__read_dirent(const struct tree *tree, struct slice place, struct arena *arena, struct slice *ret_guest)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = get(tree, tree_dirent_key(&key, tree->index, place), &value);

    if (r != 0)
        return r;
    *ret_guest = arena_copy(arena, value.bytes);
    store_value_release(&value);
    return 0;
}

int tree__read_history(const struct tree *tree, struct slice birth, struct arena *arena, struct slice *ret_past)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = get(tree, tree_history_key(&key, tree->index, birth), &value);

    *ret_past = SLICE_LIT("");
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    *ret_past = arena_copy(arena, value.bytes);
    store_value_release(&value);
    return 0;
}

/*
 * Finds a birth's record as it was at tree->as_of: the first rename behind that has kept it. Returns: 0; TREE_NOT_FOUND: no rename has come
 * since, it is as it was; TREE_TOO_OLD; fatal codes.
 */
static int moved_as_of(const struct tree *tree, struct slice birth, struct arena *arena, struct tree_relocation *ret_moved)
{
    struct slice past, item, found = SLICE_NONE;
    tl_ts ts;
    int r = tree__read_history(tree, birth, arena, &past);

    while (r == 0 && past.len > 0) {
        r = tree_history_take(&past, &ts, &item);
        if (r != 0 || ts <= tree->as_of)
            break;
        found = item;
    }
    if (r != 0)
        return r;
    return found.data == NULL ? TREE_NOT_FOUND : tree_relocation_decode(found, ret_moved);
}

static int moved_by_key(const struct tree *tree, struct slice key, struct arena *arena, struct tree_relocation *ret_moved)
{
    struct store_value value;
    int r = tree->as_of == 0 ? TREE_NOT_FOUND : moved_as_of(tree, tree_key_text(key), arena, ret_moved);

    if (r != TREE_NOT_FOUND)
        return r;
    r = get(tree, key, &value);
    *ret_moved = (struct tree_relocation){.seq_no = -1};
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    r = tree_relocation_decode(arena_copy(arena, value.bytes), ret_moved);
    store_value_release(&value);
    return r;
}

int tree__read_relocation(const struct tree *tree, struct slice birth, struct arena *arena, struct tree_relocation *ret_moved)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);

    return moved_by_key(tree, tree_relocation_key(&key, tree->index, birth), arena, ret_moved);
}

int tree_last_rename(const struct tree *tree, tl_ts *ret_ts, char *ret_delimiter)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(64);
    struct slice key = tree_last_rename_key(&buf, tree->index), bytes, delimiter;
    struct store_value value;
    int r = get(tree, key, &value);

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
    int r = get(tree, key, &value);

    *ret_length = 0;
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    r = tree_length_decode(value.bytes, ret_length);
    store_value_release(&value);
    return r;
}

/* --- From a path to a birth --------------------------------------------------------------------------------------- */

int tree__origin_at(const struct tree *tree, struct slice place, struct arena *arena, struct slice *ret_birth)
{
    struct tree_relocation moved;
    int r = tree__read_dirent(tree, place, arena, ret_birth);

    if (r != TREE_NOT_FOUND)
        return r;
    r = tree__read_relocation(tree, place, arena, &moved);
    *ret_birth = place;
    return r != 0 ? r : moved.state == TREE_UNMOVED ? 0 : TREE_NOT_FOUND;
}

int tree_resolve(const struct tree *tree, struct slice path, struct arena *arena, struct slice *ret_birth)
{
    struct slice birth = SLICE_LIT("");
    size_t begin = 0;
    tl_ts newest;
    int r = tree_last_rename(tree, &newest, NULL);

    *ret_birth = path;
    if (r != 0 || newest == 0)
        return r;
    while (begin < path.len) {
        size_t end = tree__next_end(path, begin, tree->delimiter);
        struct slice place = birth.data == path.data || begin == 0
                                 ? slice_make(path.data, end) /* nothing above has moved */
                                 : tree__join(arena, birth, slice_make(path.data + begin, end - begin));
        r = tree__origin_at(tree, place, arena, &birth);
        if (r != 0)
            return r;
        *ret_birth = birth;
        begin = end;
    }
    return 0;
}

int tree_reach(const struct tree *tree, struct slice path, size_t *ret_below, size_t *ret_birth)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t reach = 0, longest = 0;
    struct slice birth;
    int r = tree_resolve(tree, path, &arena, &birth);

    if (r == 0)
        r = tree__read_length(tree, tree_reach_key(&key, tree->index, birth), &reach);
    if (r == 0)
        r = tree__read_length(tree, tree_longest_key(&key, tree->index), &longest);
    if (r != 0)
        return r;
    longest = longest > TREE_ORIGIN_SHORT ? longest : TREE_ORIGIN_SHORT;
    *ret_birth = birth.len;
    *ret_below = reach > 0 ? reach + longest : longest > birth.len ? longest - birth.len : 0;
    return 0;
}

/* --- From a birth to its path ------------------------------------------------------------------------------------- */

static void count_renames(struct tree_totals *standing, const struct tree_relocation *moved)
{
    standing->renames += moved->renames;
    if (moved->seq_no > standing->seq_no)
        standing->seq_no = moved->seq_no;
    if (moved->ts > standing->ts)
        standing->ts = moved->ts;
}

int tree_locate(const struct tree *tree, struct slice birth, struct arena *arena, struct slice *ret_path,
               struct tree_totals *ret_standing)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct tree_totals standing = {.seq_no = -1};
    struct slice path = birth;
    struct slice key = tree_relocation_key(&buf, tree->index, path);
    size_t len = birth.len, jumps = 0; /* its first `len` bytes are a birth, and what follows is part of the path */

    while (len > 0) {
        struct tree_relocation moved;
        int r = moved_by_key(tree, key, arena, &moved);
        if (r != 0)
            return r;
        count_renames(&standing, &moved);
        if (moved.state == TREE_DETACHED)
            return TREE_NOT_FOUND;
        if (moved.state == TREE_RELOCATED) {
            if (++jumps > TREE_ORIGINS_MAX)
                return tl_trace(TL_ERR_CORRUPT);
            path = tree__join(arena, moved.dirent, slice_from_offset(path, len));
            len = moved.dirent.len;
            key = tree_relocation_key(&buf, tree->index, moved.dirent);
        }
        size_t above = tree_parent_length(slice_make(path.data, len), tree->delimiter);
        key.len -= len - above; /* a directory's key is the beginning of what lies in it */
        len = above;
    }
    if (ret_path != NULL)
        *ret_path = path;
    *ret_standing = standing;
    return 0;
}

/* --- From a birth downwards --------------------------------------------------------------------------------------- */

/* A guest, and where. */
struct guest {
    struct slice place;
    struct slice birth;
};

/* Guests that are read at once: who wants the first few only need not wait for all. */
enum { GUESTS_AT_ONCE = 256 };

/*
 * Collects guests of a range, so that no iterator stays open while those below them are read: at most so many, behind the place `after` (data
 * NULL: from the first).
 */
static int read_guests(const struct tree *tree, struct slice prefix, struct slice after, size_t most,
                       struct arena *arena, struct guest **ret_guests, size_t *ret_count)
{
    tl_cleanup(buf_deinit) struct buf lower = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(BUF_UNLIMITED);
    struct guest *guests = NULL;
    size_t count = 0, capacity = 0;

    tree_dirent_bounds(&lower, &upper, tree->index, prefix);
    if (after.data != NULL) {
        tree_dirent_key(&lower, tree->index, after);
        buf_byte(&lower, '\0');
    }
    struct view_iter *iter = view_iter_new(tree->view, SPACE_TREE, buf_as_slice(&lower), buf_as_slice(&upper));
    for (view_iter_seek_first(iter); count < most && view_iter_valid(iter); view_iter_next(iter)) {
        guests = arena_grow(arena, guests, count, &capacity, sizeof *guests);
        guests[count++] = (struct guest){arena_copy(arena, tree_key_text(view_iter_key(iter))),
                                         arena_copy(arena, view_iter_value(iter))};
    }
    int r = outcome_of(view_iter_status(iter));
    view_iter_free(iter);
    *ret_guests = guests;
    *ret_count = count;
    return r;
}

/*
 * Whether a place lies below the birth that its first bytes are, as its text has it: not when a birth on the way has moved, and took the
 * place along, or is hidden. Returns: 0; TREE_TOO_OLD; fatal codes.
 */
static int is_below(const struct tree *tree, struct slice place, size_t birth_len, struct arena *arena, bool *ret_below)
{
    *ret_below = true;
    for (size_t end = tree_parent_length(place, tree->delimiter); *ret_below && end > birth_len;
         end = tree_parent_length(slice_make(place.data, end), tree->delimiter)) {
        struct slice text = slice_make(place.data, end), birth;
        int r = tree__origin_at(tree, text, arena, &birth);
        if (r != 0 && r != TREE_NOT_FOUND)
            return r;
        *ret_below = r == 0 && slice_equal(birth, text);
    }
    return 0;
}

/* Texts whose guests are still to be visited. */
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

/* Visits the guests right at the places of a prefix, and leaves those below them for later. */
static int visit_some(const struct tree *tree, struct slice prefix, struct prefixes *left, tree_visit *visit,
                      void *context)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    size_t birth_len = tree_parent_length(prefix, tree->delimiter), count = GUESTS_AT_ONCE;
    struct slice after = SLICE_NONE;
    struct guest *guests;
    bool below;
    int r = 0;

    while (r == 0 && count == GUESTS_AT_ONCE) {
        r = read_guests(tree, prefix, after, GUESTS_AT_ONCE, &arena, &guests, &count);
        for (size_t i = 0; r == 0 && i < count; i++) {
            after = guests[i].place;
            r = is_below(tree, guests[i].place, birth_len, &arena, &below);
            if (r != 0 || !below)
                continue;
            r = visit(context, guests[i].birth);
            add_prefix(left, tree__join(left->arena, guests[i].birth, slice_make(&tree->delimiter, 1)));
        }
    }
    return r;
}

int tree_each_relocated(const struct tree *tree, struct slice place_prefix, tree_visit *visit, void *context)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct prefixes left = {.arena = &arena};
    size_t visited = 0;
    int r = 0;

    add_prefix(&left, place_prefix);
    while (r == 0 && left.count > 0) {
        if (++visited > TREE_ORIGINS_MAX)
            return tl_trace(TL_ERR_CORRUPT);
        struct slice prefix = left.items[--left.count];
        r = visit_some(tree, prefix, &left, visit, context);
    }
    return r;
}

int tree_each_dirent(const struct tree *tree, struct slice place_prefix, tree_visit *visit, void *context)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct guest *guests;
    size_t count;
    int r = read_guests(tree, place_prefix, SLICE_NONE, SIZE_MAX, &arena, &guests, &count);

    for (size_t i = 0; r == 0 && i < count; i++)
        r = visit(context, guests[i].place);
    return r;
}
