/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of many origins; see tree_paths.h. */
#include "core/tree/tree_paths.h"

#include "base/check.h"
#include "core/tree/tree.h"
#include "core/tree/tree_record.h"

void tree_paths_init(struct tree_paths *paths)
{
    *paths = (struct tree_paths){.last_rename = 0};
    for (size_t i = 0; i < TREE_PATHS_KEPT; i++)
        paths->kept[i].origin = paths->kept[i].path = (struct buf)BUF_INIT(BUF_UNLIMITED);
}

void tree_paths_deinit(struct tree_paths *paths)
{
    for (size_t i = 0; i < TREE_PATHS_KEPT; i++) {
        buf_deinit(&paths->kept[i].origin);
        buf_deinit(&paths->kept[i].path);
    }
}

int tree_paths_last_rename(struct tree_paths *paths, const struct tree *tree, tl_ts *ret_ts, char *ret_delimiter)
{
    REQUIRE(tree->index != 0);
    if (paths->index != tree->index) {
        paths->index = 0;
        paths->delimiter = *ret_delimiter;
        int r = tree_last_rename(tree, &paths->last_rename, &paths->delimiter);
        if (r != 0)
            return r;
        paths->index = tree->index;
    }
    *ret_ts = paths->last_rename;
    *ret_delimiter = paths->delimiter;
    return 0;
}

/* Returns: the length of the longest directory that `origin` and a kept origin have in common; 0: none. */
static size_t length_in_common(const struct tree_kept_path *kept, const struct tree *tree, struct slice origin)
{
    struct slice other = buf_as_slice(&kept->origin);
    if (other.len == 0 || kept->index != tree->index)
        return 0;
    size_t common = slice_common_prefix(origin, other);
    while (common > 0 && !((common == origin.len || origin.data[common] == tree->delimiter) &&
                           (common == other.len || other.data[common] == tree->delimiter)))
        common--;
    return common < kept->low ? 0 : common;
}

/* Finds the kept origin that has the longest directory in common with `origin`, of *ret_length bytes; 0: none. */
static size_t find_kept(struct tree_paths *paths, const struct tree *tree, struct slice origin, size_t *ret_length)
{
    size_t parent = tree_parent_length(origin, tree->delimiter), best = paths->last;
    size_t longest = length_in_common(&paths->kept[best], tree, origin);
    for (size_t i = 0; i < TREE_PATHS_KEPT && (longest == 0 || longest < parent); i++) {
        size_t length = length_in_common(&paths->kept[i], tree, origin);
        if (length <= longest)
            continue;
        longest = length;
        best = i;
    }
    *ret_length = longest;
    return best;
}

/* Returns: the path of a directory, in which it and a kept origin have their first `length` bytes. */
static struct slice kept_path(const struct tree_kept_path *kept, size_t length)
{
    struct slice path = buf_as_slice(&kept->path);
    REQUIRE(length >= kept->low && length <= kept->origin.len && path.len >= kept->origin.len - length);
    return slice_make(path.data, path.len - (kept->origin.len - length));
}

/* Part of a search: the first `begin` to `end` bytes of a path are origins above each other. */
struct search_part {
    struct slice path;
    size_t begin, end; /* the relocated one, or the first one that needs no record */
};

/* The parts of a search that are kept: those of nested renames beyond are found again. */
enum { PARTS_MAX = 4 };

/* Keeps the finding of a search, for lengths from `low` on, in place of a kept one (TREE_PATHS_KEPT: the oldest). */
static void keep_found(struct tree_paths *paths, const struct tree *tree, const struct search_part *part,
                       struct slice found, size_t low, size_t instead)
{
    size_t rest = part->path.len - part->begin;
    REQUIRE(low > 0 && low <= part->begin && found.len >= rest + (part->begin - low));
    size_t at = instead < TREE_PATHS_KEPT ? instead : paths->next;
    struct tree_kept_path *kept = &paths->kept[at];
    if (instead >= TREE_PATHS_KEPT)
        paths->next = (paths->next + 1) % TREE_PATHS_KEPT;
    kept->index = tree->index;
    kept->low = low;
    buf_clear(&kept->origin);
    buf_clear(&kept->path);
    buf_slice(&kept->origin, slice_make(part->path.data, part->begin));
    buf_slice(&kept->path, slice_make(found.data, found.len - rest));
    paths->last = at;
}

int tree_paths_locate(struct tree_paths *paths, const struct tree *tree, struct slice origin, struct arena *arena,
                      struct slice *ret_path)
{
    REQUIRE(tree->as_of == 0);
    struct search_part parts[PARTS_MAX], part = {origin, origin.len, origin.len};
    size_t part_count = 0, jumps = 0, used = TREE_PATHS_KEPT, known = 0;
    struct slice path = origin;
    while (part.end > 0) {
        struct tree_relocation relocation = {.state = TREE_UNMOVED};
        if (part.end == part.begin) {
            used = find_kept(paths, tree, slice_make(path.data, part.end), &known);
            used = known > 0 ? used : TREE_PATHS_KEPT;
        }
        if (part.end == known) {
            path = tree__join(arena, kept_path(&paths->kept[used], known), slice_from_offset(path, known));
            break;
        }
        paths->reads++;
        int r = tree__read_relocation(tree, slice_make(path.data, part.end), arena, &relocation);
        if (r != 0)
            return r;
        if (relocation.state == TREE_DETACHED)
            return TREE_NOT_FOUND;
        if (relocation.state == TREE_UNMOVED) {
            part.end = tree_parent_length(slice_make(path.data, part.end), tree->delimiter);
            continue;
        }
        if (++jumps > TREE_ORIGINS_MAX)
            return tl_trace(TL_ERR_CORRUPT);
        if (part_count < PARTS_MAX)
            parts[part_count++] = part;
        path = tree__join(arena, relocation.dirent, slice_from_offset(path, part.end));
        size_t above = tree_parent_length(relocation.dirent, tree->delimiter);
        part = (struct search_part){path, above, above};
        known = 0;
    }
    size_t low = known > 0 ? paths->kept[used].low : 1;
    for (size_t i = 0; i < part_count; i++)
        if (i > 0 || parts[i].end < parts[i].begin) /* else no other origin has it */
            keep_found(paths, tree, &parts[i], path, parts[i].end, TREE_PATHS_KEPT);
    /* If only the origin itself was not known, the kept one serves others of its directory as well. */
    bool known_above = known > 0 && jumps == 0 && known == tree_parent_length(origin, tree->delimiter);
    if (part.begin > known && !known_above)
        keep_found(paths, tree, &part, path, low, used);
    *ret_path = path;
    return 0;
}
