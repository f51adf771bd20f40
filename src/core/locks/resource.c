/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of resources; see resource.h. */
#include "core/locks/resource.h"

#include "base/check.h"
#include "base/siphash.h"

static struct resource *new_resource(struct resource_table *table, enum resource_kind kind, struct slice type,
                                     struct slice name)
{
    REQUIRE(kind < RESOURCE_KIND_COUNT);
    struct resource *resource = mem_zalloc(sizeof *resource + type.len + name.len);
    table->bytes += sizeof *resource + type.len + name.len;
    resource->kind = (uint8_t)kind;
    resource->number = ++table->last_number;
    resource->type_len = (uint16_t)type.len;
    resource->name_len = (uint32_t)(type.len + name.len);
    if (type.len > 0)
        memcpy(resource->name, type.data, type.len);
    if (name.len > 0)
        memcpy(resource->name + type.len, name.data, name.len);
    list_init(&resource->holds);
    return resource;
}

void resource_table_init(struct resource_table *table)
{
    *table = (struct resource_table){.bucket_count = RESOURCE_BUCKETS_MIN};
    table->buckets = mem_zalloc(RESOURCE_BUCKETS_MIN * sizeof *table->buckets);
    table->root = new_resource(table, RESOURCE_ALL, SLICE_NONE, SLICE_NONE);
    table->root->refs = 1;
}

void resource_table_deinit(struct resource_table *table)
{
    REQUIRE(table->count == 0 && table->root->refs == 1);
    mem_free(table->root);
    mem_free(table->buckets);
    mem_free(table->ids);
    *table = (struct resource_table){0};
}

/*
 * Identifies a resource: `name` is unique in `home`, which is the parent, or the index of a
 * document.
 */
struct key {
    const struct resource *home;
    enum resource_kind kind;
    struct slice type;
    struct slice name;
};

static uint32_t hash_key(const struct key *key)
{
    uint64_t hash = siphash_keyed(key->name) ^ (key->home->number * 0x9e3779b97f4a7c15u);
    if (key->type.len > 0)
        hash = (hash ^ siphash_keyed(key->type)) * 0xff51afd7ed558ccdu;
    hash = (hash ^ (uint64_t)key->kind) * 0xff51afd7ed558ccdu;
    return (uint32_t)(hash ^ (hash >> 32));
}

static bool is_key(const struct resource *resource, const struct key *key, uint32_t hash)
{
    return resource->hash == hash && resource->kind == key->kind &&
           (resource->kind == RESOURCE_DOCUMENT ? resource->index : resource->parent) == key->home &&
           resource->type_len == key->type.len && resource->name_len == key->type.len + key->name.len &&
           memcmp(resource->name, key->type.len ? key->type.data : "", key->type.len) == 0 &&
           memcmp(resource->name + key->type.len, key->name.len ? key->name.data : "", key->name.len) == 0;
}

static struct resource *find_key(const struct resource_table *table, const struct key *key, uint32_t hash)
{
    struct resource *resource = table->buckets[hash & (table->bucket_count - 1)];
    for (; resource != NULL && !is_key(resource, key, hash); resource = resource->chain)
        resource_count_lookup(table);
    resource_count_lookup(table);
    return resource;
}

static void link_bucket(struct resource_table *table, struct resource *resource)
{
    struct resource **bucket = &table->buckets[resource->hash & (table->bucket_count - 1)];
    resource->chain = *bucket;
    *bucket = resource;
}

static void unlink_bucket(struct resource_table *table, struct resource *resource)
{
    struct resource **at = &table->buckets[resource->hash & (table->bucket_count - 1)];
    for (; *at != resource; at = &(*at)->chain)
        resource_count_lookup(table);
    *at = resource->chain;
}

static void resize_resources(struct resource_table *table, size_t bucket_count)
{
    REQUIRE(bucket_count >= RESOURCE_BUCKETS_MIN && bucket_count >= table->count);
    struct resource **old = table->buckets;
    size_t old_count = table->bucket_count;
    table->bucket_count = bucket_count;
    table->buckets = mem_zalloc(table->bucket_count * sizeof *table->buckets);
    for (size_t i = 0; i < old_count; i++)
        for (struct resource *resource = old[i], *next; resource != NULL; resource = next) {
            next = resource->chain;
            link_bucket(table, resource);
        }
    mem_free(old);
}

/* --- Documents by id ---------------------------------------------------------------------------------------------- */

/* Returns: the bucket of documents with a type, for an index and an id. Requires: there are buckets. */
static struct resource **id_bucket(const struct resource_table *table, const struct resource *index, struct slice id)
{
    REQUIRE(table->id_bucket_count > 0);
    uint32_t hash = hash_key(&(struct key){index, RESOURCE_DOCUMENT, SLICE_NONE, id});
    return &table->ids[hash & (table->id_bucket_count - 1)];
}

static struct slice id_of(const struct resource *document)
{
    REQUIRE(document->kind == RESOURCE_DOCUMENT);
    return slice_make(document->name + document->type_len, document->name_len - document->type_len);
}

static void link_bucket_of_id(struct resource_table *table, struct resource *document)
{
    struct resource **bucket = id_bucket(table, document->index, id_of(document));
    document->id_before = NULL;
    document->id_next = *bucket;
    if (*bucket != NULL)
        (*bucket)->id_before = document;
    *bucket = document;
}

static void resize_ids(struct resource_table *table, size_t bucket_count)
{
    struct resource **old = table->ids;
    size_t old_count = table->id_bucket_count;
    table->id_bucket_count = bucket_count;
    table->ids = mem_zalloc(bucket_count * sizeof *table->ids);
    for (size_t i = 0; i < old_count; i++)
        for (struct resource *document = old[i], *next; document != NULL; document = next) {
            next = document->id_next;
            link_bucket_of_id(table, document);
        }
    mem_free(old);
}

/* Adds a document to those of its id, unless it has no type: that one is found by its key. */
static void link_id(struct resource_table *table, struct resource *resource)
{
    if (resource->type_len == 0)
        return;
    if (++table->id_count > table->id_bucket_count)
        resize_ids(table, table->id_bucket_count == 0 ? RESOURCE_BUCKETS_MIN : 2 * table->id_bucket_count);
    link_bucket_of_id(table, resource);
    ENSURE(table->id_count <= table->id_bucket_count);
}

static void shrink_ids(struct resource_table *table)
{
    size_t needed = resource_buckets_needed(table->id_bucket_count, table->id_count);
    if (needed < table->id_bucket_count)
        resize_ids(table, needed);
}

static void unlink_id(struct resource_table *table, struct resource *resource)
{
    if (resource->type_len == 0)
        return;
    INSIST(table->id_count > 0);
    if (resource->id_next != NULL)
        resource->id_next->id_before = resource->id_before;
    if (resource->id_before != NULL)
        resource->id_before->id_next = resource->id_next;
    else
        *id_bucket(table, resource->index, id_of(resource)) = resource->id_next;
    table->id_count--;
}

/* --- Making ------------------------------------------------------------------------------------------------------- */

/* Makes a resource the child of `parent`, whose reference it takes. */
static void link_child(struct resource *resource, struct resource *parent)
{
    resource->parent = parent;
    resource->before = NULL;
    resource->next = parent->child;
    if (parent->child != NULL)
        parent->child->before = resource;
    parent->child = resource;
}

static void unlink_child(const struct resource *resource)
{
    if (resource->next != NULL)
        resource->next->before = resource->before;
    *(resource->before != NULL ? &resource->before->next : &resource->parent->child) = resource->next;
}

/*
 * Makes a resource below `parent`. Requires: this key is not in the table.
 * Returns: the resource, with no reference for the caller.
 */
static struct resource *make_resource(struct resource_table *table, const struct key *key, uint32_t hash,
                                      struct resource *parent)
{
    struct resource *resource = new_resource(table, key->kind, key->type, key->name);
    resource->hash = hash;
    link_child(resource, resource_ref(parent));
    resource->index = parent->kind == RESOURCE_INDEX ? parent : parent->index;
    if (++table->count > table->bucket_count)
        resize_resources(table, 2 * table->bucket_count);
    INSIST(table->count <= table->bucket_count);
    link_bucket(table, resource);
    link_id(table, resource);
    return resource;
}

/* Finds or makes a resource. Returns: as make(). */
static struct resource *intern_resource(struct resource_table *table, const struct key *key, struct resource *parent)
{
    uint32_t hash = hash_key(key);
    struct resource *resource = find_key(table, key, hash);
    return resource != NULL ? resource : make_resource(table, key, hash, parent);
}

bool resource_path_next(struct resource_path *path, struct slice *ret_segment)
{
    if (path->level == 0) {
        path->level = 1;
        *ret_segment = SLICE_LIT("/");
        return true;
    }
    while (path->left.len > 0 && path->left.data[0] == '/')
        path->left = slice_from_offset(path->left, 1);
    if (path->left.len == 0 || path->level > RESOURCE_LEVELS_MAX)
        return false;
    size_t len = slice_find_byte(path->left, '/');
    *ret_segment = (struct slice){path->left.data, len};
    path->left = slice_from_offset(path->left, len);
    path->level++;
    return true;
}

bool resource_path_fits(struct slice path)
{
    struct resource_path walk = resource_path(path);
    struct slice segment;
    while (resource_path_next(&walk, &segment))
        ;
    return walk.left.len == 0;
}

/* Returns: whether a segment of a path ends at an offset. */
static bool name_ends(struct slice path, size_t at)
{
    return at == path.len || path.data[at] == '/';
}

/*
 * Returns: the length of the longest common prefix of two paths that ends with a segment in both.
 */
static size_t common_path(struct slice a, struct slice b)
{
    size_t len = slice_common_prefix(a, b);
    while (len > 0 && !(name_ends(a, len) && name_ends(b, len)))
        len--;
    return len;
}

/*
 * Returns: the deepest common ancestor of the cached path and `path`. *ret_walk iterates over the
 * rest.
 */
static struct resource *common_ancestor(const struct resource_path_cache *cache, struct slice path,
                                        struct resource_path *ret_walk)
{
    REQUIRE(cache->node != NULL && cache->level > 0);
    size_t common = common_path(cache->path, path);
    struct resource_path gone = {slice_from_offset(cache->path, common), 1};
    struct resource *at = cache->node;
    struct slice segment;
    size_t level = cache->level;
    for (; resource_path_next(&gone, &segment); level--)
        at = at->parent;
    ENSURE(level > 0 && (at == cache->index || at->index == cache->index)); /* not above the index */
    *ret_walk = (struct resource_path){slice_from_offset(path, common), level};
    return at;
}

static struct resource *open_directories(struct resource_table *table, struct resource *index, struct slice path,
                                         struct resource_path_cache *cache)
{
    REQUIRE(index->kind == RESOURCE_INDEX);
    struct resource *at = index;
    struct resource_path walk = resource_path(path);
    struct slice segment;
    if (cache->index == index)
        at = common_ancestor(cache, path, &walk);
    while (resource_path_next(&walk, &segment))
        at = intern_resource(table, &(struct key){at, RESOURCE_DIRECTORY, SLICE_NONE, segment}, at);
    /*
     * A path that was cut at RESOURCE_LEVELS_MAX is not cached: the directory found is not that of
     * the whole path.
     */
    *cache = walk.left.len > 0 ? RESOURCE_PATH_CACHE_INIT : (struct resource_path_cache){index, path, at, walk.level};
    return at;
}

static struct resource *open_directory(struct resource_table *table, struct resource *index, struct slice path,
                                       struct resource_path_cache *cache)
{
    return path.data == NULL ? index : open_directories(table, index, path, cache);
}

static struct slice space_name(enum resource_space space)
{
    REQUIRE(space == RESOURCE_SPACE_NAMES || space == RESOURCE_SPACE_SCRIPTS);
    return space == RESOURCE_SPACE_NAMES ? SLICE_LIT("names") : SLICE_LIT("scripts");
}

static struct resource *open_name(struct resource_table *table, const struct resource_name *name)
{
    struct resource *all = intern_resource(
        table, &(struct key){table->root, RESOURCE_NAMES, SLICE_NONE, space_name(name->space)}, table->root);
    if (name->index.len == 0)
        return resource_ref(all);
    return resource_ref(intern_resource(table, &(struct key){all, RESOURCE_NAME, SLICE_NONE, name->index}, all));
}

struct resource *resource_open(struct resource_table *table, const struct resource_name *name,
                               struct resource_path_cache *cache)
{
    REQUIRE(name->space < RESOURCE_SPACE_COUNT && table->root != NULL);
    if (name->space != RESOURCE_SPACE_TREE)
        return open_name(table, name);
    if (name->index.len == 0)
        return resource_ref(table->root);
    struct resource *index =
        intern_resource(table, &(struct key){table->root, RESOURCE_INDEX, SLICE_NONE, name->index}, table->root);
    if (name->id.data == NULL)
        return resource_ref(open_directory(table, index, name->path, cache));
    const struct key key = {index, RESOURCE_DOCUMENT, name->type, name->id};
    uint32_t hash = hash_key(&key);
    struct resource *document = find_key(table, &key, hash);
    if (document == NULL)
        document = make_resource(table, &key, hash, open_directory(table, index, name->path, cache));
    return resource_ref(document);
}

static bool is_possible(const struct resource *parent, enum resource_kind kind, struct slice type, struct slice name)
{
    bool typed = kind == RESOURCE_DOCUMENT;
    if (!typed && (type.len > 0 || name.len == 0))
        return false;
    switch (kind) {
    case RESOURCE_INDEX: return parent->kind == RESOURCE_ALL;
    case RESOURCE_DIRECTORY:
        if (parent->kind == RESOURCE_INDEX)
            return slice_is(name, "/");
        return parent->kind == RESOURCE_DIRECTORY && slice_find_byte(name, '/') == name.len;
    case RESOURCE_DOCUMENT:
        return (parent->kind == RESOURCE_INDEX || parent->kind == RESOURCE_DIRECTORY) && type.len <= UINT16_MAX &&
               name.len <= UINT16_MAX;
    case RESOURCE_NAMES:
        return parent->kind == RESOURCE_ALL && (slice_equal(name, space_name(RESOURCE_SPACE_NAMES)) ||
                                                slice_equal(name, space_name(RESOURCE_SPACE_SCRIPTS)));
    case RESOURCE_NAME: return parent->kind == RESOURCE_NAMES;
    default: return false;
    }
}

struct resource *resource_restore(struct resource_table *table, struct resource *parent, enum resource_kind kind,
                                  struct slice type, struct slice name, bool may_exist)
{
    REQUIRE(parent != NULL && parent->refs > 0);
    if (!is_possible(parent, kind, type, name) || name.len > UINT32_MAX / 2)
        return NULL;
    const struct resource *home = parent;
    while (kind == RESOURCE_DOCUMENT && home->kind != RESOURCE_INDEX)
        home = home->parent;
    const struct key key = {home, kind, type, name};
    uint32_t hash = hash_key(&key);
    struct resource *found = find_key(table, &key, hash);
    if (found == NULL)
        return resource_ref(make_resource(table, &key, hash, parent));
    return may_exist && found->parent == parent ? resource_ref(found) : NULL;
}

size_t resource_buckets_needed(size_t bucket_count, size_t count)
{
    while (bucket_count > RESOURCE_BUCKETS_MIN && count < bucket_count / RESOURCE_SHRINK_BELOW)
        bucket_count /= 2;
    return bucket_count;
}

void resource_table_shrink(struct resource_table *table)
{
    size_t needed = resource_buckets_needed(table->bucket_count, table->count);
    if (needed < table->bucket_count)
        resize_resources(table, needed);
    shrink_ids(table);
}

void resource_unref(struct resource_table *table, struct resource *resource)
{
    while (resource != NULL) {
        REQUIRE(resource->refs > 0);
        if (--resource->refs > 0)
            return;
        INSIST(resource != table->root && list_empty(&resource->holds) && resource->queue == NULL);
        struct resource *parent = resource->parent;
        INSIST(table->count > 0);
        unlink_bucket(table, resource);
        unlink_id(table, resource);
        unlink_child(resource);
        table->count--;
        table->bytes -= sizeof *resource + resource->name_len;
        resource_free_block(table, resource);
        if (!table->keeps_size)
            resource_table_shrink(table);
        resource = parent;
    }
}

static struct resource *lookup_resource(const struct resource_table *table, const struct key *key)
{
    return find_key(table, key, hash_key(key));
}

struct resource *resource_index(const struct resource_table *table, struct slice index)
{
    return lookup_resource(table, &(struct key){table->root, RESOURCE_INDEX, SLICE_NONE, index});
}

struct resource *resource_document(const struct resource_table *table, const struct resource *index, struct slice type,
                                   struct slice id)
{
    REQUIRE(index->kind == RESOURCE_INDEX);
    return lookup_resource(table, &(struct key){index, RESOURCE_DOCUMENT, type, id});
}

struct resource *resource_child(const struct resource_table *table, const struct resource *parent, struct slice name)
{
    REQUIRE(parent->kind == RESOURCE_INDEX || parent->kind == RESOURCE_DIRECTORY);
    return lookup_resource(table, &(struct key){parent, RESOURCE_DIRECTORY, SLICE_NONE, name});
}

struct resource *resource_of_name(const struct resource_table *table, enum resource_space space, struct slice name)
{
    struct resource *all =
        lookup_resource(table, &(struct key){table->root, RESOURCE_NAMES, SLICE_NONE, space_name(space)});
    return all == NULL || name.len == 0 ? all
                                        : lookup_resource(table, &(struct key){all, RESOURCE_NAME, SLICE_NONE, name});
}

struct resource *resource_with_id(const struct resource_table *table, const struct resource *index, struct slice id,
                                  const struct resource *after)
{
    REQUIRE(index->kind == RESOURCE_INDEX);
    struct resource *at = after == NULL ? resource_document(table, index, SLICE_NONE, id) : NULL;
    if (at != NULL)
        return at;
    if (after != NULL && after->type_len > 0)
        at = after->id_next;
    else if (table->id_count > 0)
        at = *id_bucket(table, index, id);
    for (; at != NULL; at = at->id_next, resource_count_lookup(table))
        if (at->index == index && slice_equal(id_of(at), id))
            return at;
    return NULL;
}

void resource_move(struct resource_table *table, struct resource *document, struct slice path,
                   struct resource_path_cache *cache)
{
    REQUIRE(document->kind == RESOURCE_DOCUMENT);
    REQUIRE(document->refs > 0); /* by the caller: its parent may end */
    struct resource *before = document->parent;
    struct resource *directory = open_directory(table, document->index, path, cache);
    if (path.data == NULL)
        *cache = RESOURCE_PATH_CACHE_INIT; /* the cached directory may end with this move */
    unlink_child(document);
    link_child(document, resource_ref(directory));
    resource_unref(table, before);
}

bool resource_covers(const struct resource *above, const struct resource *resource)
{
    while (resource != NULL && resource != above)
        resource = resource->parent;
    return resource != NULL;
}

void resource_new_epoch(struct resource_table *table)
{
    table->epoch++;
}

bool resource_visit(const struct resource_table *table, struct resource *resource, enum lock_bit bit)
{
    REQUIRE(bit < LOCK_BIT_COUNT);
    if (resource->visit_epoch != table->epoch) {
        resource->visit_epoch = table->epoch;
        resource->visited_bits = 0;
    }
    uint8_t mask = (uint8_t)(1u << bit);
    bool first = (resource->visited_bits & mask) == 0;
    resource->visited_bits |= mask;
    return first;
}

/* --- Order and names ---------------------------------------------------------------------------------------------- */

static size_t depth_of(const struct resource *resource)
{
    size_t depth = 0;
    for (; resource->parent != NULL; resource = resource->parent)
        depth++;
    return depth;
}

static int compare_siblings(const struct resource *a, const struct resource *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int order = slice_compare((struct slice){a->name, a->type_len}, (struct slice){b->name, b->type_len});
    return order != 0 ? order
                      : slice_compare((struct slice){a->name + a->type_len, a->name_len - a->type_len},
                                      (struct slice){b->name + b->type_len, b->name_len - b->type_len});
}

int resource_compare(const struct resource *a, const struct resource *b)
{
    if (a->parent == b->parent && a != b)
        return compare_siblings(a, b); /* at any depth */
    size_t depth_a = depth_of(a);
    size_t depth_b = depth_of(b);
    int deeper = (depth_a > depth_b) - (depth_a < depth_b);
    for (; depth_a > depth_b; depth_a--)
        a = a->parent;
    for (; depth_b > depth_a; depth_b--)
        b = b->parent;
    if (a == b)
        return deeper;
    while (a->parent != b->parent) {
        a = a->parent;
        b = b->parent;
    }
    return compare_siblings(a, b);
}

static struct slice path_of(const struct resource *directory, struct arena *arena)
{
    REQUIRE(directory->kind == RESOURCE_DIRECTORY);
    size_t bytes = 0;
    const struct resource *at = directory;
    for (; at->parent->kind == RESOURCE_DIRECTORY; at = at->parent)
        bytes += at->name_len + 1u;
    if (bytes == 0)
        return SLICE_LIT("/");
    char *path = arena_alloc(arena, bytes);
    size_t end = bytes;
    for (at = directory; at->parent->kind == RESOURCE_DIRECTORY; at = at->parent) {
        end -= at->name_len;
        memcpy(path + end, at->name, at->name_len);
        path[--end] = '/';
    }
    return (struct slice){path, bytes};
}

struct resource_name resource_name(const struct resource *resource, struct arena *arena)
{
    struct resource_name name = {0};
    if (resource_is_name(resource)) {
        const struct resource *all = resource->kind == RESOURCE_NAMES ? resource : resource->parent;
        name.space = slice_equal(slice_make(all->name, all->name_len), space_name(RESOURCE_SPACE_NAMES))
                         ? RESOURCE_SPACE_NAMES
                         : RESOURCE_SPACE_SCRIPTS;
        if (resource != all)
            name.index = slice_make(resource->name, resource->name_len);
        return name;
    }
    if (resource->kind == RESOURCE_DOCUMENT) {
        name.type = resource_type(resource);
        name.id = (struct slice){resource->name + resource->type_len, resource->name_len - resource->type_len};
        resource = resource->parent;
    }
    if (resource->kind == RESOURCE_DIRECTORY) {
        name.path = path_of(resource, arena);
        while (resource->kind == RESOURCE_DIRECTORY)
            resource = resource->parent;
    }
    if (resource->kind == RESOURCE_INDEX)
        name.index = (struct slice){resource->name, resource->name_len};
    return name;
}

static void print_of_space(const struct resource_name *name, struct buf *buf)
{
    REQUIRE(name->space != RESOURCE_SPACE_TREE);
    bool scripts = name->space == RESOURCE_SPACE_SCRIPTS;
    if (name->index.len == 0) {
        buf_slice(buf, scripts ? SLICE_LIT("the stored scripts") : SLICE_LIT("the names of indices"));
        return;
    }
    buf_slice(buf, scripts ? SLICE_LIT("the script ") : SLICE_LIT("the name "));
    buf_escape_line(buf, name->index);
}

void resource_name_print(const struct resource_name *name, struct buf *buf)
{
    if (name->space != RESOURCE_SPACE_TREE) {
        print_of_space(name, buf);
        return;
    }
    if (name->index.len == 0) {
        buf_lit(buf, "everything");
        return;
    }
    buf_escape_line(buf, name->index);
    if (name->id.data != NULL) {
        if (name->type.len > 0 && !slice_is(name->type, "_doc")) {
            buf_byte(buf, '/');
            buf_escape_line(buf, name->type);
        }
        buf_byte(buf, '/');
        buf_escape_line(buf, name->id);
    } else if (name->path.data != NULL) {
        buf_byte(buf, ':');
        buf_escape_line(buf, name->path);
    }
}

void resource_print(const struct resource *resource, struct buf *buf)
{
    struct arena arena = ARENA_INIT;
    struct resource_name name = resource_name(resource, &arena);
    resource_name_print(&name, buf);
    arena_deinit(&arena);
}
