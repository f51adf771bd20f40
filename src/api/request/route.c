/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The route table.
 *
 * A trie over segments. A node has its fixed children, at most one child for a {part}, and the rows that end at it,
 * by method. Which part a segment is depends on the row (one path may be /{index}/_alias/{name} for one method and
 * /{index}/{type}/{id} for another), so parts are filled in once the row is known.
 */
#include "api/request/route.h"

#include "api/request/handlers.h"
#include "api/request/params.h"
#include "base/alloc.h"
#include "base/check.h"

#define GET (1u << HTTP_GET)
#define HEAD (1u << HTTP_HEAD)
#define POST (1u << HTTP_POST)
#define PUT (1u << HTTP_PUT)
#define DELETE (1u << HTTP_DELETE)

static const struct route route_rows[] = {
#define X(methods, pattern, form, handler, params) {methods, pattern, FORM_##form, handle_##handler, params},
#include "api/request/routes.def"
#undef X
};

struct route_node {
    struct slice segment;           /* of a fixed child */
    struct route_node *first_child; /* fixed ones */
    struct route_node *next_sibling;
    struct route_node *variable; /* the child for a {part} */
    const struct route *rows[HTTP_METHOD_COUNT];
    unsigned methods;
};

enum { ROW_COUNT = sizeof route_rows / sizeof *route_rows };

struct route_table {
    struct route_node root;
    struct arena arena;
    unsigned parts[ROW_COUNT]; /* bit of each enum route_part that a path of the row's call has */
};

/* Takes the next segment off a path. Returns: false at the end. */
static bool next_segment(struct slice *path, struct slice *ret_segment)
{
    if (path->len == 0)
        return false;
    size_t len = slice_find_byte(*path, '/');
    *ret_segment = slice_make(path->data, len);
    *path = slice_from_offset(*path, len + 1);
    return true;
}

static struct slice without_leading_slash(struct slice path)
{
    return path.len > 0 && path.data[0] == '/' ? slice_from_offset(path, 1) : path;
}

static enum route_part part_of(struct slice braced)
{
    struct slice name = slice_make(braced.data + 1, braced.len - 2);
    for (int part = 0; part < PART_COUNT; part++)
        if (slice_is(name, route_part_name((enum route_part)part)))
            return (enum route_part)part;
    UNREACHABLE();
    return PART_COUNT;
}

static struct route_node *node_child(struct route_table *table, struct route_node *node, struct slice segment)
{
    if (segment.data[0] == '{') {
        if (node->variable == NULL)
            node->variable = arena_zalloc(&table->arena, sizeof *node);
        return node->variable;
    }
    for (struct route_node *child = node->first_child; child != NULL; child = child->next_sibling)
        if (slice_equal(child->segment, segment))
            return child;
    struct route_node *child = arena_zalloc(&table->arena, sizeof *child);
    child->segment = segment;
    child->next_sibling = node->first_child;
    node->first_child = child;
    return child;
}

static void table_add(struct route_table *table, const struct route *row)
{
    struct route_node *node = &table->root;
    struct slice path = without_leading_slash(slice_from(row->pattern)), segment;
    while (next_segment(&path, &segment))
        node = node_child(table, node, segment);
    for (int method = 0; method < HTTP_METHOD_COUNT; method++)
        if (row->methods & (1u << method)) {
            INSIST(node->rows[method] == NULL); /* two rows for one call */
            node->rows[method] = row;
        }
    node->methods |= row->methods;
}

static unsigned parts_of(const struct route *row)
{
    unsigned parts = 0;
    struct slice pattern = without_leading_slash(slice_from(row->pattern)), segment;
    while (next_segment(&pattern, &segment))
        if (segment.data[0] == '{')
            parts |= 1u << part_of(segment);
    return parts;
}

/* Whether two rows are paths of one call, of which Elasticsearch reads the parts in the same way. */
static bool is_same_call(const struct route *row, const struct route *other)
{
    return other == row || (row->form != FORM_NATIVE && other->form == row->form && other->handler == row->handler &&
                            (other->methods & row->methods) != 0);
}

static void find_parts(struct route_table *table)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        for (size_t k = 0; k < ROW_COUNT; k++)
            if (is_same_call(&route_rows[i], &route_rows[k]))
                table->parts[i] |= parts_of(&route_rows[k]);
}

struct route_table *route_table_new(void)
{
    struct route_table *table = mem_zalloc(sizeof *table);
    table->arena = ARENA_INIT;
    for (size_t i = 0; i < ROW_COUNT; i++)
        table_add(table, &route_rows[i]);
    find_parts(table);
    return table;
}

void route_table_free(struct route_table *table)
{
    if (table == NULL)
        return;
    arena_deinit(&table->arena);
    mem_free(table);
}

/*
 * `methods`: of which the node must have one. `named`: the last segment must be a fixed one.
 */
static const struct route_node *node_find(const struct route_node *node, const struct slice *segments, size_t count,
                                          unsigned methods, bool named)
{
    if (count == 0)
        return (node->methods & methods) != 0 ? node : NULL;
    for (const struct route_node *child = node->first_child; child != NULL; child = child->next_sibling)
        if (slice_equal(child->segment, *segments)) {
            const struct route_node *found = node_find(child, segments + 1, count - 1, methods, named);
            if (found != NULL)
                return found;
            break;
        }
    if (node->variable == NULL || (named && count == 1))
        return NULL;
    return node_find(node->variable, segments + 1, count - 1, methods, named);
}

/*
 * The node of a path. One whose last segment is the name of a call goes before one that takes it
 * for an id, whatever is fixed in front of it: /fs/_doc/_search is a search. Where the call does
 * not have the method, the other reading may.
 */
static const struct route_node *path_find(const struct route_node *root, const struct slice *segments, size_t count,
                                          unsigned method, bool by_method, unsigned *ret_methods)
{
    unsigned wanted = by_method ? method : ~0u;
    const struct route_node *named = node_find(root, segments, count, wanted, true);
    if (named != NULL && (named->methods & method) != 0) {
        *ret_methods = named->methods;
        return named;
    }
    const struct route_node *any = node_find(root, segments, count, wanted, false);
    if (any == NULL)
        return NULL;
    *ret_methods = any->methods | (named != NULL ? named->methods : 0);
    return named != NULL && (any->methods & method) == 0 ? named : any;
}

static void match_parts(const struct route *row, const struct slice *segments, struct route_match *match)
{
    struct slice pattern = without_leading_slash(slice_from(row->pattern)), segment;
    for (size_t i = 0; next_segment(&pattern, &segment); i++)
        if (segment.data[0] == '{')
            match->parts[part_of(segment)] = segments[i];
}

/* Splits as Java's String.split() does: empty segments count, but not at the end. Returns: false when too many. */
static bool split_path(struct slice path, struct slice *segments, size_t *ret_count)
{
    struct slice rest = without_leading_slash(path), segment;
    size_t count = 0;
    while (next_segment(&rest, &segment)) {
        if (count == ROUTE_SEGMENTS_MAX)
            return false;
        segments[count++] = segment;
    }
    while (count > 0 && segments[count - 1].len == 0)
        count--;
    *ret_count = count;
    return true;
}

int route_find(const struct route_table *table, enum http_method method, struct slice path, bool by_method,
               struct route_match *ret_match)
{
    struct slice segments[ROUTE_SEGMENTS_MAX];
    size_t count;
    if (!split_path(path, segments, &count))
        return ROUTE_NONE;
    unsigned methods;
    const struct route_node *node = path_find(&table->root, segments, count, 1u << method, by_method, &methods);
    if (node == NULL)
        return ROUTE_NONE;
    *ret_match = (struct route_match){.route = node->rows[method], .methods = methods};
    const struct route *row = ret_match->route;
    for (int other = 0; row == NULL && other < HTTP_METHOD_COUNT; other++)
        row = node->rows[other];
    ret_match->form = row->form;
    match_parts(row, segments, ret_match);
    return 0;
}

void route_each(void (*look)(const struct route *row, void *context), void *context)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        look(&route_rows[i], context);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/*
 * Rows have room for each method, so that a line's number is found without a search; lines that are
 * not there cost nothing.
 */
size_t route_line(const struct route *route, enum http_method method)
{
    size_t row = route != NULL ? (size_t)(route - route_rows) : ROW_COUNT;
    REQUIRE(row <= ROW_COUNT);
    return row * HTTP_METHOD_COUNT + method;
}

size_t route_line_count(void)
{
    return (ROW_COUNT + 1) * HTTP_METHOD_COUNT;
}

const char *route_of_line(size_t line, enum http_method *ret_method)
{
    size_t row = line / HTTP_METHOD_COUNT;
    REQUIRE(row <= ROW_COUNT);
    *ret_method = (enum http_method)(line % HTTP_METHOD_COUNT);
    return row < ROW_COUNT ? route_rows[row].pattern : NULL;
}

const char *route_part_name(enum route_part part)
{
    static const char *const names[] = {
#define X(symbol, name) name,
        ROUTE_PARTS(X)
#undef X
    };
    return names[part];
}

/* --- Parts as parameters ------------------------------------------------------------------------------------------ */

const char *route_parameter_name(const struct route_table *table, const struct route *route, enum route_part part)
{
    static const struct {
        request_handler *handler;
        enum route_part part;
        const char *name; /* of Elasticsearch; NULL: it has no such part */
    } others[] = {
        {handle_cat_aliases, PART_NAME, "alias"},     {handle_cluster_state, PART_INDEX, "indices"},
        {handle_nodes, PART_NODE_ID, "nodeId"},       {handle_nodes, PART_METRIC, "metrics"},
        {handle_nodes_stats, PART_NODE_ID, "nodeId"}, {handle_cluster_stats, PART_NODE_ID, "nodeId"},
        {handle_index_get, PART_METRIC, NULL},        {handle_data_stream_get, PART_NAME, NULL},
    };
    REQUIRE(route >= route_rows && route < route_rows + ROW_COUNT && part < PART_COUNT);
    if ((table->parts[route - route_rows] & (1u << part)) == 0)
        return NULL;
    const char *name = route_part_name(part);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].handler == route->handler && others[i].part == part)
            name = others[i].name;
    return name == NULL || params_listed(route->params, name) ? NULL : name;
}
