/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the tree of an index; see tree.h. */
#include "core/tree/tree.h"

#include "base/alloc.h"
#include "base/buf.h"

enum { NODES_WALKED_MAX = 100000000 }; /* beyond, the store is damaged: a node lies below itself */

/* --- Paths -------------------------------------------------------------------------------------------------------- */

struct tree_path tree_path_begin(struct slice text, char delimiter)
{
    bool absolute = text.len > 0 && text.data[0] == delimiter;

    return (struct tree_path){.root = absolute ? TREE_ROOT_ABSOLUTE : TREE_ROOT_RELATIVE,
                              .rest = slice_from_offset(text, absolute ? 1 : 0),
                              .delimiter = delimiter};
}

bool tree_path_next(struct tree_path *path, struct slice *ret_name, bool *ret_last)
{
    if (path->ended)
        return false;
    size_t end = slice_find_byte(path->rest, path->delimiter);
    *ret_name = slice_make(path->rest.data, end);
    *ret_last = path->ended = end == path->rest.len;
    path->rest = slice_from_offset(path->rest, end + 1);
    return true;
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

int tree__get(const struct tree *tree, struct slice key, struct store_value *ret_value)
{
    const struct omap_entry *pending = find_pending(tree, key);

    if (pending == NULL)
        return outcome_of(view_get(tree->view, SPACE_TREE, key, ret_value));
    if (omap_value(pending).len == 0)
        return TREE_NOT_FOUND;
    *ret_value = (struct store_value){omap_value(pending), NULL, NULL};
    return 0;
}

int tree__name(const struct tree *tree, uint64_t parent, struct slice name, struct tree_name *ret_name)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = tree__get(tree, tree_name_key(&key, tree->index, parent, name), &value);

    *ret_name = (struct tree_name){0, 0};
    if (r != 0)
        return r == TREE_NOT_FOUND ? 0 : r;
    r = tree_name_decode(value.bytes, ret_name);
    store_value_release(&value);
    return r;
}

int tree__node(const struct tree *tree, uint64_t node, struct arena *arena, struct tree_node *ret_node)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(64);
    struct store_value value;
    int r = tree__get(tree, tree_node_key(&key, tree->index, node), &value);

    if (r != 0)
        return r;
    r = tree_node_decode(arena_copy(arena, value.bytes), ret_node);
    store_value_release(&value);
    return r;
}

int tree_newest(const struct tree *tree, tl_ts *ret_ts, char *ret_delimiter)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(64);
    struct slice key = tree_newest_key(&buf, tree->index), bytes, delimiter;
    struct store_value value;
    int r = tree__get(tree, key, &value);

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

/* --- From a path to a place --------------------------------------------------------------------------------------- */

int tree_find(const struct tree *tree, struct slice path, struct tree_place *ret_place)
{
    struct tree_path names = tree_path_begin(path, tree->delimiter);
    uint64_t directory = names.root;
    struct slice text = path;
    bool last = false;

    while (tree_path_next(&names, &text, &last)) {
        struct tree_name name;
        int r = tree__name(tree, directory, text, &name);
        if (r != 0)
            return r;
        if (name.here != 0) {
            directory = name.here;
            continue;
        }
        if (!last || name.born != 0) /* its documents have gone with the node that was born there (invariant 3) */
            return TREE_NOT_FOUND;
        *ret_place = (struct tree_place){directory, true, text};
        return 0;
    }
    *ret_place = (struct tree_place){.node = directory};
    return 0;
}

/* --- From a place to a path --------------------------------------------------------------------------------------- */

/* The names on a way up, the lowest first. */
struct way {
    struct arena *arena;
    struct slice *names;
    size_t count;
    size_t capacity;
    uint64_t node; /* how far it is */
    struct tree_standing standing;
};

static void add_name(struct way *way, struct slice name)
{
    way->names = arena_grow(way->arena, way->names, way->count, &way->capacity, sizeof(*way->names));
    way->names[way->count++] = name;
}

static void count_renames(struct tree_standing *standing, const struct tree_node *node)
{
    standing->renames += node->renames;
    if (node->seq_no > standing->seq_no)
        standing->seq_no = node->seq_no;
    if (node->ts > standing->ts)
        standing->ts = node->ts;
}

static int go_up(const struct tree *tree, struct way *way)
{
    while (!tree__is_root(way->node)) {
        struct tree_node node;
        if (way->node == TREE_NOWHERE)
            return TREE_NOT_FOUND;
        int r = tree__node(tree, way->node, way->arena, &node);
        if (r != 0)
            return r;
        if (way->count >= TREE_DEPTH_MAX)
            return tl_trace(TL_ERR_CORRUPT);
        add_name(way, node.name);
        count_renames(&way->standing, &node);
        way->node = node.parent;
    }
    return 0;
}

/* A delimiter in front of each name, but of the first one of a relative path. */
static struct slice join(const struct way *way, char delimiter)
{
    size_t first = way->node == TREE_ROOT_ABSOLUTE ? way->count : way->count - 1, len = 0;

    for (size_t i = 0; i < way->count; i++)
        len += way->names[i].len + 1;
    char *text = arena_alloc(way->arena, len + 1), *at = text;
    for (size_t i = way->count; i-- > 0;) {
        if (i < first)
            *at++ = delimiter;
        if (way->names[i].len > 0)
            memcpy(at, way->names[i].data, way->names[i].len);
        at += way->names[i].len;
    }
    *at = '\0';
    return slice_make(text, (size_t)(at - text));
}

int tree_stand(const struct tree *tree, const struct tree_place *place, struct arena *arena, struct slice *ret_path,
               struct tree_standing *ret_standing)
{
    struct way way = {.arena = arena, .node = place->node, .standing = {.seq_no = -1}};
    struct tree_name name = {0, 0};
    int r = place->named ? tree__name(tree, place->node, place->name, &name) : 0;

    if (r != 0)
        return r;
    if (name.born != 0)
        way.node = name.born;
    else if (place->named)
        add_name(&way, place->name);
    r = go_up(tree, &way);
    if (r != 0)
        return r;
    if (ret_path != NULL)
        *ret_path = join(&way, tree->delimiter);
    *ret_standing = way.standing;
    return 0;
}

/* --- From a node downwards ---------------------------------------------------------------------------------------- */

int tree_children(const struct tree *tree, uint64_t node, struct slice from, tree_visit_child *visit, void *context)
{
    tl_cleanup(buf_deinit) struct buf lower = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf upper = BUF_INIT(64);
    struct view_iter *iter = view_iter_new(tree->view, SPACE_TREE, tree_name_key(&lower, tree->index, node, from),
                                           tree_names_end(&upper, tree->index, node));
    int r = 0;

    for (view_iter_seek_first(iter); r == 0 && view_iter_valid(iter); view_iter_next(iter)) {
        struct tree_name name;
        r = tree_name_decode(view_iter_value(iter), &name);
        if (r == 0 && name.here != 0)
            r = visit(context, tree_key_name(view_iter_key(iter)), name.here);
    }
    if (r == 0)
        r = outcome_of(view_iter_status(iter));
    view_iter_free(iter);
    return r;
}

/* Visits the name where a node was born, if documents are stored there. */
static int visit_born(const struct tree_node *node, tree_visit_place *visit, void *context)
{
    struct tree_place born = {node->born_parent, true, node->born_name};

    return node->has_born ? visit(context, TREE_AT, &born) : 0;
}

int tree_sources(const struct tree *tree, const struct tree_place *place, tree_visit_place *visit, void *context)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree_node node = {0};
    int r = place->named || tree__is_root(place->node) ? 0 : tree__node(tree, place->node, &arena, &node);

    if (r == 0)
        r = visit_born(&node, visit, context);
    return r == 0 ? visit(context, TREE_AT, place) : r;
}

/* Nodes that are still to be visited. */
struct walk {
    uint64_t *nodes;
    size_t count;
    size_t capacity;
};

static int push(void *context, struct slice name, uint64_t node)
{
    struct walk *walk = context;

    (void)name;
    if (walk->count == walk->capacity) {
        walk->capacity = walk->capacity == 0 ? 64 : walk->capacity * 2;
        walk->nodes = mem_realloc(walk->nodes, walk->capacity * sizeof(*walk->nodes));
    }
    walk->nodes[walk->count++] = node;
    return 0;
}

/* Visits one node of a walk that began at `top`, and puts those below it among those to come. */
static int visit_node(const struct tree *tree, struct walk *walk, uint64_t number, uint64_t top,
                      tree_visit_place *visit, void *context)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct tree_place place = {.node = number};
    struct tree_node node = {0};
    int r = tree__is_root(number) ? 0 : tree__node(tree, number, &arena, &node);

    if (r == TREE_NOT_FOUND)
        return tl_trace(TL_ERR_CORRUPT);
    if (r == 0 && (number == top || node.born_parent != node.parent)) /* else its parent's names were visited */
        r = visit_born(&node, visit, context);
    if (r == 0)
        r = visit(context, TREE_UNDER, &place);
    return r == 0 ? tree_children(tree, number, SLICE_NONE, push, walk) : r;
}

int tree_walk(const struct tree *tree, const struct tree_place *place, tree_visit_place *visit, void *context)
{
    struct walk walk = {0};
    size_t walked = 0;
    int r = place->named ? visit(context, TREE_AT, place) : push(&walk, SLICE_NONE, place->node);

    while (r == 0 && walk.count > 0) {
        uint64_t node = walk.nodes[--walk.count];
        r = ++walked > NODES_WALKED_MAX ? tl_trace(TL_ERR_CORRUPT)
                                        : visit_node(tree, &walk, node, place->node, visit, context);
    }
    mem_free(walk.nodes);
    return r;
}
