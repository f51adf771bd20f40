/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the lock of a fencing token. README-locks.md, "Fencing tokens".
 *
 * The hash table is keyed by token and resource together, because a hundred thousand locks can
 * share either one: a token if one request acquired them, a directory if it has many readers. A
 * write with a token looks it up at its document and at each ancestor.
 */
#include "base/check.h"
#include "base/magic.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"

/*
 * As in lock.c, resources made in succession get adjacent buckets: here, the locks of one request.
 */
static struct lock_hold **bucket_of(const struct lock_table *table, tl_ts token, const struct resource *resource)
{
    uint64_t hash = (token * 0x9e3779b97f4a7c15u >> 32) + resource->number;
    return &table->tokens[hash & (table->bucket_count - 1)];
}

static void file_hold(struct lock_table *table, struct lock_hold *hold)
{
    REQUIRE(hold->token != TL_TS_NONE);
    struct lock_hold **bucket = bucket_of(table, hold->token, hold->resource);
    hold->token_chain = *bucket;
    *bucket = hold;
}

void lock__token_set(struct lock_table *table, struct lock_hold *hold, tl_ts token)
{
    if (hold->token == token)
        return;
    if (hold->token != TL_TS_NONE) {
        struct lock_hold **at = bucket_of(table, hold->token, hold->resource);
        for (; *at != hold; at = &(*at)->token_chain)
            resource_count_lookup(&table->resources);
        *at = hold->token_chain;
    }
    hold->token = token;
    lock__chunk_touch(table, hold->chunk);
    if (token != TL_TS_NONE)
        file_hold(table, hold);
}

void lock__tokens_resize(struct lock_table *table, size_t old_count)
{
    REQUIRE(table->bucket_count != old_count && (table->bucket_count & (table->bucket_count - 1)) == 0);
    struct lock_hold **old = table->tokens;
    table->tokens = mem_zalloc(table->bucket_count * sizeof *table->tokens);
    for (size_t i = 0; i < old_count; i++)
        for (struct lock_hold *hold = old[i], *next; hold != NULL; hold = next) {
            next = hold->token_chain;
            file_hold(table, hold);
        }
    mem_free(old);
}

/* Returns: the owner of the lock with this token on exactly this resource, or NULL. */
static struct lock_owner *token_at(const struct lock_table *table, const struct resource *resource, tl_ts token)
{
    struct lock_hold *hold = token == TL_TS_NONE ? NULL : *bucket_of(table, token, resource);
    for (; hold != NULL && (hold->token != token || hold->resource != resource); hold = hold->token_chain)
        resource_count_lookup(&table->resources);
    return hold == NULL ? NULL : hold->owner;
}

/*
 * Returns: the owner of the lock with this token on a document, named with its type or without, or
 * NULL.
 */
static struct lock_owner *token_at_document(const struct lock_table *table, const struct resource *index,
                                            const struct resource_name *name, tl_ts token)
{
    const struct resource_table *resources = &table->resources;
    struct lock_owner *owner = NULL;
    const struct resource *at = resource_with_id(resources, index, name->id, NULL);
    for (; at != NULL && owner == NULL; at = resource_with_id(resources, index, name->id, at))
        if (at->type_len == 0 || name->type.len == 0 || slice_equal(resource_type(at), name->type))
            owner = token_at(table, at, token);
    return owner;
}

bool lock_table_find_token(const struct lock_table *table, tl_ts token, const struct resource_name *name,
                           struct lock_owner **ret_owner)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    struct lock_owner *owner = token_at(table, table->resources.root, token);
    struct resource *at = name->index.len == 0 ? NULL : resource_index(&table->resources, name->index);
    const struct resource *index = at;
    struct resource_path walk = resource_path(name->path);
    struct slice segment;
    while (owner == NULL && at != NULL) {
        owner = token_at(table, at, token);
        bool more = name->path.data != NULL && resource_path_next(&walk, &segment);
        at = more ? resource_child(&table->resources, at, segment) : NULL;
    }
    if (owner == NULL && index != NULL && name->id.data != NULL)
        owner = token_at_document(table, index, name, token);
    if (owner != NULL && ret_owner != NULL)
        *ret_owner = owner;
    return owner != NULL;
}
