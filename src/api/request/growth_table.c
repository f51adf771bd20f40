/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands in flight may add to the catalog; see growth_table.h. */
#include "api/request/growth_table.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/map.h"

/* An index that commands in flight may add to. */
struct growth_entry {
    struct slice index; /* mem_free */
    size_t promises;    /* more than 0 */
    size_t bytes;       /* of all of them */
    size_t most;        /* that count */
};

struct growth_table {
    pthread_mutex_t lock;
    struct map by_index; /* struct growth_entry */
    size_t bytes;        /* all that counts */
};

struct growth_table *growth_table_new(void)
{
    struct growth_table *table = mem_zalloc(sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    table->by_index = MAP_INIT;
    return table;
}

void growth_table_free(struct growth_table *table)
{
    if (table == NULL)
        return;
    REQUIRE(table->bytes == 0 && table->by_index.count == 0);
    map_deinit(&table->by_index);
    pthread_mutex_destroy(&table->lock);
    mem_free(table);
}

size_t growth_table_bytes(struct growth_table *table)
{
    pthread_mutex_lock(&table->lock);
    size_t bytes = table->bytes;
    pthread_mutex_unlock(&table->lock);
    return bytes;
}

static size_t counted(size_t bytes, size_t most)
{
    return bytes < most ? bytes : most;
}

size_t growth_bytes(const struct growth *growth)
{
    size_t bytes = growth->other_bytes;
    for (size_t i = 0; i < growth->share_count; i++)
        bytes += counted(growth->shares[i].bytes, growth->shares[i].most);
    return bytes;
}

static size_t counted_of(const struct growth_entry *entry)
{
    return entry == NULL ? 0 : counted(entry->bytes, entry->most);
}

/* Returns: what an entry, which may be NULL, would count with a share. */
static size_t counted_with(const struct growth_entry *entry, const struct growth_share *share)
{
    size_t most = entry != NULL && entry->most > share->most ? entry->most : share->most;
    return counted((entry == NULL ? 0 : entry->bytes) + share->bytes, most);
}

/* Returns: whether a growth fits. Called with the lock. */
static bool growth_fits(const struct growth_table *table, const struct growth_terms *terms, const struct growth *growth)
{
    size_t own = 0, with = growth->other_bytes;
    for (size_t i = 0; i < growth->share_count; i++) {
        const struct growth_share *share = &growth->shares[i];
        const struct growth_entry *entry = share->bytes == 0 ? NULL : map_get(&table->by_index, share->index);
        own += counted_of(entry);
        with += share->bytes == 0 ? 0 : counted_with(entry, share);
    }
    INSIST(own <= table->bytes);
    if (with == 0)
        return true;
    return budget_fits(terms->budget, terms->level, (table->bytes - own + with) * terms->room) ||
           (own == table->bytes && budget_fits(terms->budget, terms->level, terms->alone));
}

static struct growth_entry *entry_of(struct growth_table *table, const struct growth_share *share)
{
    struct growth_entry *entry = map_get(&table->by_index, share->index);
    if (entry == NULL) {
        entry = mem_zalloc(sizeof *entry);
        entry->index = mem_dup_slice(share->index);
        map_put(&table->by_index, entry->index, entry);
    }
    if (entry->most < share->most)
        entry->most = share->most;
    return entry;
}

/* Called with the lock. */
static void add_share(struct growth_table *table, const struct growth_share *share, struct growth_promise *promise)
{
    struct growth_entry *entry = map_get(&table->by_index, share->index);
    table->bytes -= counted_of(entry);
    entry = entry_of(table, share);
    entry->promises++;
    entry->bytes += share->bytes;
    table->bytes += counted_of(entry);
    *(promise->count == 0 ? &promise->first : &promise->more[promise->count - 1]) =
        (struct growth_held){entry, share->bytes};
    promise->count++;
}

/* Called with the lock. */
static void make_promise(struct growth_table *table, const struct growth *growth, struct growth_promise *promise)
{
    promise->table = table;
    promise->other_bytes = growth->other_bytes;
    table->bytes += growth->other_bytes;
    if (growth->share_count > 1)
        promise->more = mem_alloc((growth->share_count - 1) * sizeof *promise->more);
    for (size_t i = 0; i < growth->share_count; i++)
        if (growth->shares[i].bytes > 0)
            add_share(table, &growth->shares[i], promise);
}

bool growth_table_promise(struct growth_table *table, const struct growth_terms *terms, const struct growth *growth,
                          struct growth_promise *ret_promise)
{
    REQUIRE(terms->room > 0 && ret_promise->table == NULL);
    pthread_mutex_lock(&table->lock);
    bool made = growth_fits(table, terms, growth);
    if (made)
        make_promise(table, growth, ret_promise);
    pthread_mutex_unlock(&table->lock);
    return made;
}

/* Called with the lock. */
static void take_back(struct growth_table *table, const struct growth_held *held)
{
    struct growth_entry *entry = held->entry;
    INSIST(entry->promises > 0 && entry->bytes >= held->bytes);
    table->bytes -= counted_of(entry);
    entry->bytes -= held->bytes;
    table->bytes += counted_of(entry);
    if (--entry->promises > 0)
        return;
    INSIST(entry->bytes == 0);
    map_remove(&table->by_index, entry->index);
    mem_free((char *)(uintptr_t)entry->index.data);
    mem_free(entry);
}

void growth_promise_end(struct growth_promise *promise)
{
    struct growth_table *table = promise->table;
    if (table == NULL)
        return;
    pthread_mutex_lock(&table->lock);
    INSIST(table->bytes >= promise->other_bytes);
    table->bytes -= promise->other_bytes;
    for (size_t i = 0; i < promise->count; i++)
        take_back(table, i == 0 ? &promise->first : &promise->more[i - 1]);
    pthread_mutex_unlock(&table->lock);
    mem_free(promise->more);
    *promise = (struct growth_promise){0};
}
