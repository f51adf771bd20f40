/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the tree of an index; see tree_write.h. */
#include "core/tree/tree_write.h"

#include "base/buf.h"
#include "base/check.h"
#include "core/tree/tree_record.h"

/* --- Records ------------------------------------------------------------------------------------------------------ */

static void put(struct tree_writer *writer, bool own, struct slice key, struct slice value)
{
    if (own) {
        overlay_put(writer->overlay, SPACE_TREE, key, value);
        return;
    }
    store_batch_put(writer->batch, SPACE_TREE, key, value);
    omap_put(writer->pending, key, value);
}

static void put_name(struct tree_writer *writer, bool own, uint64_t parent, struct slice text,
                     const struct tree_name *name)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(64);

    tree_name_key(&key, writer->tree.index, parent, text);
    tree_name_encode(&value, name);
    if (name->here != 0 || name->born != 0) {
        put(writer, own, buf_view(&key), buf_view(&value));
    } else if (own) {
        overlay_delete(writer->overlay, SPACE_TREE, buf_view(&key));
    } else {
        store_batch_delete(writer->batch, SPACE_TREE, buf_view(&key));
        omap_put(writer->pending, buf_view(&key), SLICE_NONE);
    }
}

static void put_node(struct tree_writer *writer, bool own, uint64_t number, const struct tree_node *node)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(64);
    tl_cleanup(buf_deinit) struct buf value = BUF_INIT(BUF_UNLIMITED);

    tree_node_key(&key, writer->tree.index, number);
    tree_node_encode(&value, node);
    put(writer, own, buf_view(&key), buf_view(&value));
}

static bool overlay_says(const struct tree_writer *writer, struct slice key)
{
    struct slice value;

    return overlay_get(writer->overlay, SPACE_TREE, key, &value) != STORE_NOT_FOUND;
}

/*
 * Whether a new node at a name belongs into the transaction's overlay: it has renamed what was there, or made the directory for
 * itself alone. Everything else is made ahead, for everybody (invariant 6).
 */
static bool is_own(const struct tree_writer *writer, uint64_t parent, struct slice text)
{
    tl_cleanup(buf_deinit) struct buf name_key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf node_key = BUF_INIT(64);

    return writer->overlay != NULL &&
           (overlay_says(writer, tree_name_key(&name_key, writer->tree.index, parent, text)) ||
            overlay_says(writer, tree_node_key(&node_key, writer->tree.index, parent)));
}

/* --- Numbers for names -------------------------------------------------------------------------------------------- */

/* Gives a name a node. Documents that are stored at the name are the first one's there (invariant 3). Returns: its number. */
static uint64_t number_name(struct tree_writer *writer, bool own, uint64_t parent, struct slice text,
                            struct tree_name name)
{
    uint64_t number = (*writer->next_node)++;
    struct tree_node node = {.parent = parent, .seq_no = -1, .name = text};

    REQUIRE(name.here == 0);
    if (name.born == 0) {
        name.born = number;
        node.has_born = true;
        node.born_parent = parent;
        node.born_name = text;
    }
    name.here = number;
    put_node(writer, own, number, &node);
    put_name(writer, own, parent, text, &name);
    return number;
}

/* The directories of a path, made where they are missing. Returns: 0, *ret_last its last name; fatal codes. */
static int make_directories(struct tree_writer *writer, struct slice path, uint64_t *ret_directory,
                            struct slice *ret_last)
{
    struct tree_path names = tree_path_begin(path, writer->tree.delimiter);
    uint64_t directory = names.root;
    struct slice text = path;
    bool last = false;

    while (tree_path_next(&names, &text, &last) && !last) {
        struct tree_name name;
        int r = tree__name(&writer->tree, directory, text, &name);
        if (r != 0)
            return tl_trace(r);
        directory =
            name.here != 0 ? name.here : number_name(writer, is_own(writer, directory, text), directory, text, name);
    }
    *ret_directory = directory;
    *ret_last = text;
    return 0;
}

/* What the renames of a numbered node and of all above come to. */
static int total_of(const struct tree *tree, uint64_t node, int64_t *ret_total)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree_place place = {.node = node};
    struct tree_standing standing;
    tl_ts newest;
    int r = tree_newest(tree, &newest, NULL);

    *ret_total = 0;
    if (r == 0 && newest == 0)
        return 0;
    if (r == 0)
        r = tree_stand(tree, &place, &arena, NULL, &standing);
    if (r != 0)
        return r > 0 ? tl_trace(TL_ERR_CORRUPT) : r;
    *ret_total = standing.renames;
    return 0;
}

int tree_make(struct tree_writer *writer, struct slice path, struct tree_place *ret_place, int64_t *ret_stamp)
{
    struct slice text;
    struct tree_name name;
    uint64_t directory;
    int r = make_directories(writer, path, &directory, &text);

    if (r == 0)
        r = tree__name(&writer->tree, directory, text, &name);
    if (r != 0)
        return tl_trace(r);
    struct tree_place place = {directory, true, text};
    if (name.here != 0)
        place = (struct tree_place){.node = name.here};
    else if (name.born != 0)
        place =
            (struct tree_place){.node = number_name(writer, is_own(writer, directory, text), directory, text, name)};
    r = total_of(&writer->tree, place.node, ret_stamp);
    if (r == 0)
        *ret_place = place;
    return r;
}

/* --- Renaming ----------------------------------------------------------------------------------------------------- */

static bool is_within(struct slice path, struct slice directory, char delimiter)
{
    return slice_equal(path, directory) ||
           (slice_starts_with(path, directory) && path.data[directory.len] == delimiter);
}

/* An empty node gives way to another, and lies nowhere from now on. Documents of the past know it still by where it was born. */
static int give_way(struct tree_writer *writer, uint64_t number)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree_node node;
    int r = tree__node(&writer->tree, number, &arena, &node);

    if (r != 0)
        return r > 0 ? tl_trace(TL_ERR_CORRUPT) : r;
    node.parent = TREE_NOWHERE;
    put_node(writer, writer->overlay != NULL, number, &node);
    return 0;
}

/* Takes a node away from its name. */
static int leave(struct tree_writer *writer, const struct tree_node *node)
{
    struct tree_name name;
    int r = tree__name(&writer->tree, node->parent, node->name, &name);

    if (r != 0)
        return tl_trace(r);
    name.here = 0;
    put_name(writer, writer->overlay != NULL, node->parent, node->name, &name);
    return 0;
}

/* Gives a node a name; what had it and is empty gives way. */
static int arrive(struct tree_writer *writer, uint64_t number, uint64_t parent, struct slice text)
{
    struct tree_name name;
    int r = tree__name(&writer->tree, parent, text, &name);

    if (r == 0 && name.here != 0)
        r = give_way(writer, name.here);
    if (r != 0)
        return tl_trace(r);
    name.here = number;
    put_name(writer, writer->overlay != NULL, parent, text, &name);
    return 0;
}

/* Moves a numbered node to a name in another directory. All below it counts one change more: README.md, "Counting a rename". */
static int move(struct tree_writer *writer, uint64_t number, uint64_t parent, struct slice text, int64_t seq_no,
                tl_ts ts)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    int64_t before, after;
    struct tree_node node;
    int r = tree__node(&writer->tree, number, &arena, &node);

    if (r == 0)
        r = total_of(&writer->tree, node.parent, &before);
    if (r == 0)
        r = total_of(&writer->tree, parent, &after);
    if (r == 0)
        r = leave(writer, &node);
    if (r == 0)
        r = arrive(writer, number, parent, text);
    if (r != 0)
        return r > 0 ? tl_trace(TL_ERR_CORRUPT) : r;
    node.parent = parent;
    node.name = text;
    node.renames += before - after + 1;
    node.seq_no = seq_no;
    node.ts = ts;
    put_node(writer, writer->overlay != NULL, number, &node);
    return 0;
}

int tree_rename(struct tree_writer *writer, struct slice from, struct slice to, int64_t seq_no, tl_ts ts)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(64);
    tl_cleanup(buf_deinit) struct buf newest = BUF_INIT(64);
    struct tree_place place;
    uint64_t directory;
    struct slice last;

    REQUIRE((writer->overlay != NULL) == (ts == TREE_TS_OPEN));
    if (is_within(to, from, writer->tree.delimiter))
        return TREE_INTO_ITSELF;
    int r = tree_find(&writer->tree, from, &place);
    if (r == 0)
        r = make_directories(writer, to, &directory, &last);
    if (r != 0)
        return r;
    if (place.named)
        place.node = number_name(writer, writer->overlay != NULL, place.node, place.name, (struct tree_name){0, 0});
    r = move(writer, place.node, directory, last, seq_no, ts);
    if (r != 0)
        return tl_trace(r);
    buf_u64be(&newest, ts);
    buf_byte(&newest, writer->tree.delimiter);
    put(writer, writer->overlay != NULL, tree_newest_key(&key, writer->tree.index), buf_view(&newest));
    return 0;
}

/* --- Removing ----------------------------------------------------------------------------------------------------- */

/* Whether any name in a node has a record, be it only of a node that was born there. */
static int check_unused(const struct tree *tree, uint64_t node)
{
    tl_cleanup(buf_deinit) struct buf lower = BUF_INIT(64);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(64);
    struct view_iter *iter = view_iter_new(tree->view, SPACE_TREE, tree_name_key(&lower, tree->index, node, SLICE_NONE),
                                           tree_names_end(&upper, tree->index, node));

    view_iter_seek_first(iter);
    int r = view_iter_valid(iter) ? TREE_IN_USE : view_iter_status(iter);
    view_iter_free(iter);
    return r;
}

/* Forgets that a node has a name, or was born there. */
static int forget_name(struct tree_writer *writer, uint64_t parent, struct slice text, uint64_t node)
{
    struct tree_name name;
    int r = tree__name(&writer->tree, parent, text, &name);

    if (r != 0)
        return tl_trace(r);
    if (name.here == node)
        name.here = 0;
    if (name.born == node)
        name.born = 0;
    put_name(writer, false, parent, text, &name);
    return 0;
}

int tree_remove(struct tree_writer *writer, uint64_t number)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(64);
    struct tree_node node;

    REQUIRE(writer->overlay == NULL);
    int r = tree__node(&writer->tree, number, &arena, &node);
    if (r == 0)
        r = check_unused(&writer->tree, number);
    if (r == 0 && node.parent != TREE_NOWHERE)
        r = forget_name(writer, node.parent, node.name, number);
    if (r == 0 && node.has_born)
        r = forget_name(writer, node.born_parent, node.born_name, number);
    if (r != 0)
        return r;
    tree_node_key(&key, writer->tree.index, number);
    store_batch_delete(writer->batch, SPACE_TREE, buf_view(&key));
    omap_put(writer->pending, buf_view(&key), SLICE_NONE);
    return 0;
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
        value = buf_view(&stamped);
    }
    store_batch_put(batch, SPACE_TREE, key, value);
}
