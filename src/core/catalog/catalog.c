/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Catalog snapshots: sharing, lookup, and building the next one.
 *
 * Shared by reference count are the body of an index (its rarely changed names, settings and
 * aliases), its mapping, and its counters. A node ties the three together. A catalog is two sorted
 * arrays of nodes, a table of aliases, and a table of named objects for each kind.
 */
#include "core/catalog/catalog.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/cluster_settings.h"
#include "core/catalog/counter.h"
#include "core/catalog/index_settings.h"
#include "core/unit/work.h"
#include "json/each.h"
#include "mapping/mapping.h"

/* --- Counters ----------------------------------------------------------------------------------------------------- */

struct catalog_counters *catalog__counters_new(void)
{
    struct catalog_counters *counters = mem_zalloc(sizeof(*counters));

    atomic_init(&counters->refs, 1);
    return counters;
}

struct catalog_counters *catalog__counters_ref(struct catalog_counters *counters)
{
    if (counters == NULL)
        return NULL;
    size_t before = atomic_fetch_add_explicit(&counters->refs, 1, memory_order_relaxed);
    REQUIRE(before > 0);
    return counters;
}

/* Returns: whether this was the last reference. */
static bool drop_ref(atomic_size_t *refs)
{
    size_t before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);
    INSIST(before > 0);
    return before == 1;
}

void catalog__counters_unref(struct catalog_counters *counters)
{
    if (counters != NULL && drop_ref(&counters->refs))
        mem_free(counters);
}

void catalog__counters_add(struct catalog_counters *counters, enum index_stat stat, uint64_t more)
{
    REQUIRE(stat < INDEX_STAT_COUNT);
    if (counters != NULL && more > 0)
        atomic_fetch_add_explicit(&counters->stats[stat], more, memory_order_relaxed);
}

void catalog_index_count_stat(const struct catalog_index *index, enum index_stat stat, uint64_t more)
{
    catalog__counters_add(index->counters, stat, more);
}

uint64_t catalog_index_stat(const struct catalog_index *index, enum index_stat stat)
{
    REQUIRE(stat < INDEX_STAT_COUNT);
    return index->counters == NULL ? 0 : atomic_load_explicit(&index->counters->stats[stat], memory_order_relaxed);
}

uint64_t catalog_index_documents(const struct catalog_index *index)
{
    return index->counters == NULL ? 0 : atomic_load_explicit(&index->counters->documents, memory_order_relaxed);
}

int64_t catalog_index_next_seq_no(const struct catalog_index *index)
{
    return index->counters == NULL ? 0 : atomic_load_explicit(&index->counters->next_seq_no, memory_order_relaxed);
}

/* --- Nodes -------------------------------------------------------------------------------------------------------- */

static struct catalog_body *body_unref(struct catalog_body *body)
{
    if (body == NULL || !drop_ref(&body->refs))
        return NULL;
    arena_deinit(&body->arena);
    mem_free(body);
    return NULL;
}

static struct catalog_node *node_ref(struct catalog_node *node)
{
    REQUIRE(node->index.mapping == node->mapping); /* readers use the one, the reference is the other */
    size_t before = atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    REQUIRE(before > 0);
    return node;
}

static struct catalog_node *node_unref(struct catalog_node *node)
{
    if (node == NULL || !drop_ref(&node->refs))
        return NULL;
    body_unref(node->body);
    mapping_unref(node->mapping);
    catalog__counters_unref(node->index.counters);
    mem_free(node);
    return NULL;
}

static struct settings *copy_settings(struct arena *arena, const struct settings *from)
{
    struct settings *to = arena_alloc(arena, sizeof(*to));

    to->count = from->count;
    to->items = arena_alloc(arena, (from->count + 1) * sizeof(*to->items));
    for (size_t i = 0; i < from->count; i++) {
        const struct setting *setting = &from->items[i];
        struct slice *values = arena_alloc(arena, (setting->value_count + 1) * sizeof(*values));
        for (size_t j = 0; j < setting->value_count; j++)
            values[j] = arena_copy(arena, setting->values[j]);
        to->items[i] = (struct setting){arena_copy(arena, setting->key), values, setting->value_count, setting->list};
    }
    return to;
}

/* Copies a text; an absent one stays absent, unlike an empty one. */
static struct slice copy_text(struct arena *arena, struct slice text)
{
    return text.data == NULL ? SLICE_NONE : arena_copy(arena, text);
}

static int compare_aliases(const void *a, const void *b)
{
    return slice_compare(((const struct catalog_alias *)a)->name, ((const struct catalog_alias *)b)->name);
}

static struct catalog_alias *copy_aliases(struct arena *arena, const struct catalog_alias *from, size_t count)
{
    struct catalog_alias *to = arena_alloc(arena, (count + 1) * sizeof(*to));

    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].name = arena_copy(arena, from[i].name);
        to[i].filter = copy_text(arena, from[i].filter);
        to[i].index_routing = copy_text(arena, from[i].index_routing);
        to[i].search_routing = copy_text(arena, from[i].search_routing);
    }
    qsort(to, count, sizeof(*to), compare_aliases);
    return to;
}

static uint32_t number_setting(const struct settings *settings, struct slice key, uint32_t otherwise)
{
    uint64_t value;
    struct slice text = settings_get(settings, key);

    return text.data != NULL && slice_to_u64(text, &value) && value <= UINT32_MAX ? (uint32_t)value : otherwise;
}

static bool is_true(const struct settings *settings, struct slice key)
{
    return slice_is(settings_get(settings, key), "true");
}

const struct catalog_block *catalog_block_of(const struct settings *settings, bool metadata)
{
    static const struct catalog_block blocks[] = {
        {"index.blocks.read_only", "FORBIDDEN/5/index read-only (api)", 403, .metadata = true},
        {"index.blocks.write", "FORBIDDEN/8/index write (api)", 403},
        {"index.blocks.read_only_allow_delete",
         "TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block", 429,
         .metadata = true, .spares_removal = true},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (is_true(settings, slice_from(blocks[i].setting)) && (blocks[i].metadata || !metadata))
            return &blocks[i];
    return NULL;
}

void catalog_problem_blocked(struct arena *arena, struct slice index, const struct catalog_block *block,
                             struct problem *ret_problem)
{
    REQUIRE(block != NULL && block->status >= 400 && arena != NULL);
    problem_set(ret_problem, arena, PROBLEM_CLUSTER_BLOCK, "index [%.*s] blocked by: [%s];", SLICE_ARG(index),
                block->name);
    ret_problem->status = block->status;
}

static struct catalog_node *node_new(const struct catalog_index_spec *spec)
{
    REQUIRE(spec->mapping != NULL && spec->settings != NULL && (spec->alias_count == 0 || spec->aliases != NULL));
    struct catalog_body *body = mem_zalloc(sizeof(*body));
    struct catalog_node *node = mem_zalloc(sizeof(*node));
    struct catalog_index *index = &node->index;

    atomic_init(&body->refs, 1);
    body->arena = ARENA_INIT;
    atomic_init(&node->refs, 1);
    node->body = body;
    node->mapping = mapping_ref(spec->mapping);
    index->number = spec->number;
    index->name = arena_copy(&body->arena, spec->name);
    index->uuid = arena_copy(&body->arena, spec->uuid);
    index->created_ms = spec->created_ms;
    index->closed = spec->closed;
    index->may_have_routings = spec->may_have_routings;
    index->deletes_forgotten = spec->deletes_forgotten;
    index->dialect = spec->dialect;
    index->settings = copy_settings(&body->arena, spec->settings);
    index->mapping = node->mapping;
    index->aliases = copy_aliases(&body->arena, spec->aliases, spec->alias_count);
    index->alias_count = spec->alias_count;
    index->counters = catalog__counters_ref(spec->counters);
    index->shard_count = number_setting(index->settings, SLICE_LIT("index.number_of_shards"), 1);
    index->replica_count = number_setting(index->settings, SLICE_LIT("index.number_of_replicas"), 1);
    index->hidden = is_true(index->settings, SLICE_LIT("index.hidden"));
    index->gc_deletes_us = index_settings__gc_deletes_us(index->settings);
    index->write_block = catalog_block_of(index->settings, false);
    index->metadata_block = catalog_block_of(index->settings, true);
    return node;
}

/* Returns: a copy of the node with another mapping; the rest is shared. */
static struct catalog_node *node_with_mapping(const struct catalog_node *old, const struct mapping *mapping)
{
    REQUIRE(mapping != NULL && old->index.mapping == old->mapping);
    struct catalog_node *node = mem_zalloc(sizeof(*node));

    atomic_init(&node->refs, 1);
    atomic_fetch_add_explicit(&old->body->refs, 1, memory_order_relaxed);
    node->body = old->body;
    node->mapping = mapping_ref(mapping);
    node->index = old->index;
    node->index.mapping = node->mapping;
    catalog__counters_ref(node->index.counters);
    return node;
}

struct catalog_index_spec catalog__spec(const struct catalog_index *index)
{
    return (struct catalog_index_spec){
        .number = index->number,
        .name = index->name,
        .uuid = index->uuid,
        .created_ms = index->created_ms,
        .closed = index->closed,
        .may_have_routings = index->may_have_routings,
        .deletes_forgotten = index->deletes_forgotten,
        .dialect = index->dialect,
        .settings = index->settings,
        .mapping = index->mapping,
        .aliases = index->aliases,
        .alias_count = index->alias_count,
        .counters = index->counters,
    };
}

/* --- Table of aliases --------------------------------------------------------------------------------------------- */

static struct alias_table *alias_table_unref(struct alias_table *table)
{
    if (table == NULL || !drop_ref(&table->refs))
        return NULL;
    for (size_t i = 0; i < table->count; i++)
        body_unref(table->uses[i].body);
    mem_free(table->uses);
    mem_free(table);
    return NULL;
}

static int compare_uses(const void *a, const void *b)
{
    const struct alias_use *x = a, *y = b;
    int order = slice_compare(x->alias, y->alias);

    return order != 0 ? order : slice_compare(x->index, y->index);
}

/* Returns: an empty table with capacity for `capacity` uses. */
static struct alias_table *alias_table_new(size_t capacity)
{
    struct alias_table *table = mem_zalloc(sizeof(*table));

    atomic_init(&table->refs, 1);
    table->capacity = capacity;
    table->uses = mem_alloc((capacity + 1) * sizeof(*table->uses));
    return table;
}

static void alias_table_append(struct alias_table *table, const struct alias_use *use)
{
    REQUIRE(table->count < table->capacity);
    REQUIRE(atomic_load_explicit(&table->refs, memory_order_relaxed) == 1); /* no catalog has it yet */
    atomic_fetch_add_explicit(&use->body->refs, 1, memory_order_relaxed);
    table->uses[table->count++] = *use;
}

/* Appends the uses of an index, in order of alias. */
static void append_uses(struct alias_table *table, const struct catalog_node *node)
{
    const struct catalog_index *index = &node->index;

    for (size_t i = 0; i < index->alias_count; i++)
        alias_table_append(table, &(struct alias_use){
                                      index->aliases[i].name, index->name, index->number, index->aliases[i].write_index,
                                      index->aliases[i].hidden == CATALOG_FLAG_TRUE, .body = node->body});
}

/*
 * Completes the first use of each alias, so that requests that name an alias do not visit all of its indices: there
 * may be thousands of both.
 */
static void number_uses(struct alias_table *table)
{
    for (size_t first = 0, end; first < table->count; first = end) {
        struct alias_use *uses = &table->uses[first];
        size_t write = SIZE_MAX;
        uses->writes = uses->hiddens = 0;
        for (end = first; end < table->count && slice_equal(table->uses[end].alias, uses->alias); end++) {
            uses->hiddens += table->uses[end].hidden;
            if (table->uses[end].write_index != CATALOG_FLAG_TRUE)
                continue;
            uses->writes++;
            if (write == SIZE_MAX)
                write = end - first;
        }
        uses->same = end - first;
        uses->write = write < uses->same ? write : uses->same;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Orders the numbers, each once. */
static void alias_changes_sort(struct alias_changes *changes)
{
    size_t count = 0;

    qsort(changes->numbers, changes->count, sizeof(*changes->numbers), compare_numbers);
    for (size_t i = 0; i < changes->count; i++)
        if (i == 0 || changes->numbers[i] != changes->numbers[i - 1])
            changes->numbers[count++] = changes->numbers[i];
    changes->count = count;
}

/* Assumes: they are sorted. */
static bool alias_changes_have(const struct alias_changes *changes, uint32_t number)
{
    return bsearch(&number, changes->numbers, changes->count, sizeof(number), compare_numbers) != NULL;
}

static void alias_changes_add(struct alias_changes *changes, uint32_t number, size_t uses)
{
    if (changes->count == changes->capacity) {
        changes->capacity = changes->capacity * 2 + 8;
        changes->numbers = mem_realloc(changes->numbers, changes->capacity * sizeof(*changes->numbers));
    }
    changes->numbers[changes->count++] = number;
    changes->uses += uses;
    ENSURE(changes->count <= changes->capacity);
}

static void alias_changes_deinit(struct alias_changes *changes)
{
    mem_free(changes->numbers);
    *changes = (struct alias_changes){0};
}

static const struct catalog_node *node_by_number(const struct catalog *catalog, uint32_t number);

/* Returns: the uses of the changed indices. */
static struct alias_table *table_of_changed(const struct catalog *catalog)
{
    const struct alias_changes *changes = &catalog->alias_changes;
    size_t total = 0;

    for (size_t i = 0; i < changes->count; i++) {
        const struct catalog_node *node = node_by_number(catalog, changes->numbers[i]);
        total += node == NULL ? 0 : node->index.alias_count;
    }
    struct alias_table *table = alias_table_new(total);
    for (size_t i = 0; i < changes->count; i++) {
        const struct catalog_node *node = node_by_number(catalog, changes->numbers[i]);
        if (node != NULL)
            append_uses(table, node);
    }
    ENSURE(table->count == total);
    qsort(table->uses, table->count, sizeof(*table->uses), compare_uses);
    return table;
}

/*
 * Returns: the catalog's table with the uses of the changed indices replaced. That of the others are
 *   in order already, and share their names, so it takes one pass whatever has changed.
 */
static struct alias_table *table_with_changes(const struct catalog *catalog)
{
    const struct alias_table *before = catalog->aliases;
    struct alias_table *changed = table_of_changed(catalog);
    struct alias_table *table = alias_table_new(before->count + changed->count);
    size_t next = 0;

    for (size_t i = 0; i < before->count; i++) {
        const struct alias_use *use = &before->uses[i];
        if (alias_changes_have(&catalog->alias_changes, use->number))
            continue;
        while (next < changed->count && compare_uses(&changed->uses[next], use) < 0)
            alias_table_append(table, &changed->uses[next++]);
        alias_table_append(table, use);
    }
    while (next < changed->count)
        alias_table_append(table, &changed->uses[next++]);
    INSIST(atomic_load_explicit(&changed->refs, memory_order_relaxed) == 1); /* freed next */
    alias_table_unref(changed);
    number_uses(table);
    return table;
}

/*
 * Renews the table of aliases after changes. This happens on demand, not at each of many changes, and
 * at the latest when a second reference is taken: before that no other thread reads the catalog.
 */
static void renew_aliases(const struct catalog *catalog)
{
    struct catalog *own_catalog = (struct catalog *)(uintptr_t)catalog;

    if (catalog->alias_changes.count == 0)
        return;
    INSIST(atomic_load_explicit(&catalog->refs, memory_order_relaxed) == 1);
    alias_changes_sort(&own_catalog->alias_changes);
    struct alias_table *table = table_with_changes(catalog);
    alias_table_unref(own_catalog->aliases);
    own_catalog->aliases = table;
    alias_changes_deinit(&own_catalog->alias_changes);
    ENSURE(atomic_load_explicit(&table->refs, memory_order_relaxed) == 1);
}

uint64_t catalog__alias_work(const struct catalog *catalog)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    const struct alias_changes *changes = &catalog->alias_changes;

    return changes->count == 0 ? 0 : 1 + catalog->aliases->count / WORK_ALIAS_USES + WORK_ALIAS_SORTED * changes->uses;
}

size_t catalog__alias_uses(const struct catalog *catalog, struct slice alias, const struct alias_use **ret_uses)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    renew_aliases(catalog);
    const struct alias_table *table = catalog->aliases;
    size_t low = 0, high = table->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(table->uses[middle].alias, alias) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_uses = table->uses + low;
    return low < table->count && slice_equal((*ret_uses)->alias, alias) ? (*ret_uses)->same : 0;
}

const struct alias_use *catalog__write_use(const struct alias_use *uses, size_t count)
{
    REQUIRE(count == 0 || uses->same == count);
    return count == 0 || uses->write == count ? NULL : &uses[uses->write];
}

bool catalog_has_alias(const struct catalog *catalog, struct slice name)
{
    const struct alias_use *uses;

    return catalog__alias_uses(catalog, name, &uses) > 0;
}

const struct catalog_index *catalog_alias_index(const struct catalog *catalog, struct slice alias, size_t position)
{
    const struct alias_use *uses;

    return position < catalog__alias_uses(catalog, alias, &uses) ? catalog_index(catalog, uses[position].index) : NULL;
}

/* --- Objects ------------------------------------------------------------------------------------------------------ */

static struct object_node *object_unref(struct object_node *node)
{
    if (!drop_ref(&node->refs))
        return NULL;
    arena_deinit(&node->arena);
    mem_free(node);
    return NULL;
}

static struct object_node *object_new(const struct catalog_object *object)
{
    struct object_node *node = mem_zalloc(sizeof(*node));

    atomic_init(&node->refs, 1);
    node->arena = ARENA_INIT;
    node->object.name = arena_copy(&node->arena, object->name);
    node->object.lang = copy_text(&node->arena, object->lang);
    node->object.body = copy_text(&node->arena, object->body);
    node->object.options = copy_text(&node->arena, object->options);
    return node;
}

static struct object_table *table_unref(struct object_table *table)
{
    if (table == NULL || !drop_ref(&table->refs))
        return NULL;
    for (size_t i = 0; i < table->count; i++)
        object_unref(table->nodes[i]);
    mem_free(table->nodes);
    mem_free(table);
    return NULL;
}

/* Returns: the position of the object with this name, or the position to insert it. */
static size_t table_position(const struct object_table *table, struct slice name)
{
    size_t low = 0, high = table == NULL ? 0 : table->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(table->nodes[middle]->object.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Returns: a copy of the table without the object of this name, and with `added` (may be NULL) in
 *   its position.
 */
static struct object_table *table_replace(const struct object_table *old, struct slice name,
                                          const struct catalog_object *added)
{
    struct object_table *table = mem_zalloc(sizeof(*table));
    size_t old_count = old == NULL ? 0 : old->count;
    size_t position = table_position(old, name);

    atomic_init(&table->refs, 1);
    table->nodes = mem_alloc((old_count + 1) * sizeof(struct object_node *));
    for (size_t i = 0; i <= old_count; i++) {
        if (i == position && added != NULL)
            table->nodes[table->count++] = object_new(added);
        if (i == old_count || (i == position && slice_equal(old->nodes[i]->object.name, name)))
            continue;
        atomic_fetch_add_explicit(&old->nodes[i]->refs, 1, memory_order_relaxed);
        table->nodes[table->count++] = old->nodes[i];
    }
    ENSURE(table->count + 1 >= old_count && table->count <= old_count + (added != NULL));
    ENSURE(added == NULL || slice_equal(table->nodes[position]->object.name, name));
    return table;
}

const struct catalog_object *catalog_object(const struct catalog *catalog, enum catalog_kind kind, struct slice name)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC) && kind < CATALOG_KIND_COUNT);
    const struct object_table *table = catalog->objects[kind];
    size_t position = table_position(table, name);

    return table != NULL && position < table->count && slice_equal(table->nodes[position]->object.name, name)
               ? &table->nodes[position]->object
               : NULL;
}

int catalog_file_script(const struct catalog *catalog, struct slice lang, struct slice file, struct arena *arena,
                        const struct catalog_object **ret_script, struct problem *ret_problem)
{
    struct slice name = arena_printf(arena, "%.*s/%.*s", SLICE_ARG(lang), SLICE_ARG(file));

    *ret_script = catalog_object(catalog, CATALOG_FILE_SCRIPTS, name);
    if (*ret_script != NULL)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "unable to find file script [%.*s] using lang [%.*s]",
                SLICE_ARG(file), SLICE_ARG(lang));
    return CATALOG_REFUSED;
}

struct slice catalog_zones(const struct catalog *catalog)
{
    const struct catalog_object *zones = catalog_object(catalog, CATALOG_CLUSTER, SLICE_LIT("zones"));
    return zones == NULL ? SLICE_LIT("") : zones->body;
}

size_t catalog_object_count(const struct catalog *catalog, enum catalog_kind kind)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC) && kind < CATALOG_KIND_COUNT);
    return catalog->objects[kind] == NULL ? 0 : catalog->objects[kind]->count;
}

const struct catalog_object *catalog_object_at(const struct catalog *catalog, enum catalog_kind kind, size_t position)
{
    REQUIRE(position < catalog_object_count(catalog, kind));
    return &catalog->objects[kind]->nodes[position]->object;
}

/* Returns: the texts of a list, copied. */
static const struct slice *copy_list(yyjson_val *list, struct arena *arena, size_t *ret_count)
{
    struct slice *texts = arena_alloc(arena, (yyjson_arr_size(list) + 1) * sizeof(*texts));
    size_t i, max, count = 0;
    yyjson_val *text;

    json_arr_foreach (list, i, max, text)
        if (yyjson_is_str(text))
            texts[count++] = arena_copy(arena, json_slice(text));
    *ret_count = count;
    return texts;
}

static size_t count_colons(struct slice text)
{
    size_t found = 0;
    for (size_t i = 0; i < text.len; i++)
        found += text.data[i] == ':';
    return found;
}

static bool contains(struct slice text, struct slice word)
{
    return text.len > 0 && memmem(text.data, text.len, word.data, word.len) != NULL;
}

/* Returns: the matching of a template or component, of its stored body. */
static const struct catalog_matching *matching_of(enum catalog_kind kind, struct slice body, struct arena *arena)
{
    struct catalog_matching *matching = arena_zalloc(arena, sizeof(*matching));
    struct arena parsed = ARENA_INIT;
    struct json_doc doc;

    matching->colon_count = count_colons(body);
    matching->limits_fields = contains(body, SLICE_LIT("total_fields"));
    matching->dynamic = contains(body, SLICE_LIT("dynamic_templates"));
    if (kind != CATALOG_COMPONENTS && json_parse_stored(&parsed, body, &doc) == 0) {
        yyjson_val *rank = json_get(doc.root, kind == CATALOG_TEMPLATES ? SLICE_LIT("order") : SLICE_LIT("priority"));
        matching->patterns = copy_list(json_get_lit(doc.root, "index_patterns"), arena, &matching->pattern_count);
        matching->components = copy_list(json_get_lit(doc.root, "composed_of"), arena, &matching->component_count);
        for (size_t i = 0; i < matching->pattern_count; i++)
            matching->compared += json_wildcard_bytes(matching->patterns[i], CATALOG_NAME_BYTES_MAX);
        matching->rank = yyjson_is_int(rank) ? yyjson_get_sint(rank) : 0;
    }
    arena_deinit(&parsed);
    return matching;
}

void catalog__parse_objects(struct catalog *catalog)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    static const enum catalog_kind kinds[] = {CATALOG_TEMPLATES, CATALOG_INDEX_TEMPLATES, CATALOG_COMPONENTS};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t j = 0; j < catalog_object_count(catalog, kinds[i]); j++) {
            struct object_node *node = catalog->objects[kinds[i]]->nodes[j];
            if (node->object.matching == NULL) /* new, so no other catalog has it */
                node->object.matching = matching_of(kinds[i], node->object.body, &node->arena);
        }
    for (size_t i = 0; i < catalog_object_count(catalog, CATALOG_CLUSTER); i++) {
        struct object_node *node = catalog->objects[CATALOG_CLUSTER]->nodes[i];
        if (node->object.values == NULL && slice_is(node->object.name, "settings"))
            node->object.values = cluster_settings__parse(node->object.body, &node->arena);
    }
}

/* --- Catalogs ----------------------------------------------------------------------------------------------------- */

struct catalog *catalog__new(void)
{
    struct catalog *catalog = mem_zalloc(sizeof(*catalog));

    catalog->magic = CATALOG_MAGIC;
    atomic_init(&catalog->refs, 1);
    catalog->aliases = alias_table_new(0);
    return catalog;
}

struct catalog *catalog_ref(struct catalog *catalog)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    renew_aliases(catalog);
    size_t before = atomic_fetch_add_explicit(&catalog->refs, 1, memory_order_relaxed);
    REQUIRE(before > 0);
    return catalog;
}

void catalog_unref(struct catalog *catalog)
{
    REQUIRE(catalog == NULL || catalog->magic == CATALOG_MAGIC);
    if (catalog == NULL || !drop_ref(&catalog->refs))
        return;
    magic_clear(&catalog->magic);
    for (size_t i = 0; i < catalog->count; i++)
        node_unref(catalog->by_name[i]);
    mem_free(catalog->by_name);
    mem_free(catalog->by_number);
    alias_table_unref(catalog->aliases);
    alias_changes_deinit(&catalog->alias_changes);
    for (int kind = 0; kind < CATALOG_KIND_COUNT; kind++)
        table_unref(catalog->objects[kind]);
    mem_free(catalog);
}

/* Returns: a copy that shares all parts, with capacity for one more index. */
static struct catalog *share_all(const struct catalog *old)
{
    REQUIRE(old->alias_changes.count == 0); /* the copy has the table of aliases of the old one */
    struct catalog *catalog = mem_zalloc(sizeof(*catalog));
    size_t bytes = old->count * sizeof(struct catalog_node *);

    catalog->magic = CATALOG_MAGIC;
    atomic_init(&catalog->refs, 1);
    catalog->count = old->count;
    catalog->capacity = old->count + 1;
    catalog->by_name = mem_alloc(bytes + sizeof(struct catalog_node *));
    catalog->by_number = mem_alloc(bytes + sizeof(struct catalog_node *));
    for (size_t i = 0; i < old->count; i++) {
        catalog->by_name[i] = node_ref(old->by_name[i]);
        catalog->by_number[i] = old->by_number[i];
    }
    atomic_fetch_add_explicit(&old->aliases->refs, 1, memory_order_relaxed);
    catalog->aliases = old->aliases;
    catalog->alias_count = old->alias_count;
    for (int kind = 0; kind < CATALOG_KIND_COUNT; kind++) {
        catalog->objects[kind] = old->objects[kind];
        if (catalog->objects[kind] != NULL)
            atomic_fetch_add_explicit(&catalog->objects[kind]->refs, 1, memory_order_relaxed);
    }
    return catalog;
}

static size_t position_by_name(const struct catalog *catalog, struct slice name)
{
    size_t low = 0, high = catalog->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(catalog->by_name[middle]->index.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t position_by_number(const struct catalog *catalog, uint32_t number)
{
    size_t low = 0, high = catalog->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (catalog->by_number[middle]->index.number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct catalog_index *catalog_index(const struct catalog *catalog, struct slice name)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    size_t position = position_by_name(catalog, name);

    return position < catalog->count && slice_equal(catalog->by_name[position]->index.name, name)
               ? &catalog->by_name[position]->index
               : NULL;
}

static const struct catalog_node *node_by_number(const struct catalog *catalog, uint32_t number)
{
    size_t position = position_by_number(catalog, number);

    return position < catalog->count && catalog->by_number[position]->index.number == number
               ? catalog->by_number[position]
               : NULL;
}

const struct catalog_index *catalog_index_by_number(const struct catalog *catalog, uint32_t number)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    const struct catalog_node *node = node_by_number(catalog, number);

    return node == NULL ? NULL : &node->index;
}

size_t catalog_index_count(const struct catalog *catalog)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    return catalog->count;
}

size_t catalog_alias_use_count(const struct catalog *catalog)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    return catalog->alias_count;
}

const struct catalog_index *catalog_index_at(const struct catalog *catalog, size_t position)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC) && position < catalog->count);
    return &catalog->by_name[position]->index;
}

const struct catalog_alias *catalog_index_alias(const struct catalog_index *index, struct slice name)
{
    struct catalog_alias key = {.name = name};

    return index->alias_count == 0 ? NULL
                                   : bsearch(&key, index->aliases, index->alias_count, sizeof(key), compare_aliases);
}

bool catalog_same_objects(const struct catalog *a, const struct catalog *b, enum catalog_kind kind)
{
    REQUIRE(MAGIC_VALID(a, CATALOG_MAGIC) && MAGIC_VALID(b, CATALOG_MAGIC) && kind < CATALOG_KIND_COUNT);
    return a->objects[kind] == b->objects[kind];
}

/*
 * Returns: the uses of the indices that a filtered catalog has, of a table of the whole catalog,
 * in their order.
 */
static struct alias_table *table_of_visible(const struct catalog *filtered, const struct alias_table *all)
{
    REQUIRE(filtered->alias_changes.count == 0); /* `all` has the uses of its indices */
    struct alias_table *table = alias_table_new(all->count);

    for (size_t i = 0; i < all->count; i++)
        if (node_by_number(filtered, all->uses[i].number) != NULL)
            alias_table_append(table, &all->uses[i]);
    number_uses(table);
    return table;
}

struct catalog *catalog_filter(struct catalog *catalog, bool (*is_visible)(const void *context, struct slice name),
                               const void *context)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC) && is_visible != NULL);
    size_t first = 0;
    while (first < catalog->count && is_visible(context, catalog->by_name[first]->index.name))
        first++;
    if (first == catalog->count)
        return catalog_ref(catalog);
    renew_aliases(catalog);
    struct catalog *filtered = share_all(catalog);
    size_t by_name_count = 0, numbered = 0;
    for (size_t i = 0; i < filtered->count; i++)
        if (is_visible(context, filtered->by_number[i]->index.name))
            filtered->by_number[numbered++] = filtered->by_number[i];
    for (size_t i = 0; i < filtered->count; i++) {
        struct catalog_node *node = filtered->by_name[i];
        if (is_visible(context, node->index.name))
            filtered->by_name[by_name_count++] = node;
        else
            node_unref(node);
    }
    INSIST(by_name_count == numbered);
    filtered->count = by_name_count;
    struct alias_table *all = filtered->aliases;
    filtered->aliases = table_of_visible(filtered, all);
    filtered->alias_count = filtered->aliases->count;
    alias_table_unref(all);
    ENSURE(filtered->count < catalog->count); /* else `catalog` itself is returned */
    return filtered;
}

/* Makes capacity for one more index. */
static void grow_indices(struct catalog *catalog)
{
    if (catalog->count < catalog->capacity)
        return;
    catalog->capacity = catalog->capacity * 2 + 1;
    catalog->by_name = mem_realloc(catalog->by_name, catalog->capacity * sizeof(struct catalog_node *));
    catalog->by_number = mem_realloc(catalog->by_number, catalog->capacity * sizeof(struct catalog_node *));
    ENSURE(catalog->count < catalog->capacity);
}

static void insert_at(struct catalog_node **nodes, size_t count, size_t position, struct catalog_node *node)
{
    REQUIRE(position <= count);
    memmove(nodes + position + 1, nodes + position, (count - position) * sizeof(struct catalog_node *));
    nodes[position] = node;
}

static void remove_at(struct catalog_node **nodes, size_t count, size_t position)
{
    REQUIRE(position < count);
    memmove(nodes + position, nodes + position + 1, (count - position - 1) * sizeof(struct catalog_node *));
}

/*
 * Puts a node into a catalog with one reference, replacing a node of its number. Owns: the catalog,
 * the reference to `node`.
 */
static void put_node(struct catalog *catalog, struct catalog_node *node)
{
    REQUIRE(atomic_load_explicit(&catalog->refs, memory_order_relaxed) == 1);
    size_t by_number = position_by_number(catalog, node->index.number);
    size_t by_name = position_by_name(catalog, node->index.name);

    if (by_number < catalog->count && catalog->by_number[by_number]->index.number == node->index.number) {
        INSIST(catalog->by_name[by_name] == catalog->by_number[by_number]);
        catalog->by_number[by_number] = node;
        node_unref(catalog->by_name[by_name]);
        catalog->by_name[by_name] = node;
        return;
    }
    INSIST(by_name == catalog->count || !slice_equal(catalog->by_name[by_name]->index.name, node->index.name));
    grow_indices(catalog);
    insert_at(catalog->by_number, catalog->count, by_number, node);
    insert_at(catalog->by_name, catalog->count, by_name, node);
    catalog->count++;
}

/*
 * Returns: *catalog, after replacing it by a copy if it has other references. So many changes in
 *   one step copy once.
 */
static struct catalog *own_copy(struct catalog **catalog)
{
    if (atomic_load_explicit(&(*catalog)->refs, memory_order_acquire) != 1) {
        REQUIRE((*catalog)->alias_changes.count == 0); /* renewed when the second reference was taken */
        struct catalog *copy = share_all(*catalog);
        catalog_unref(*catalog);
        *catalog = copy;
    }
    ENSURE(MAGIC_VALID(*catalog, CATALOG_MAGIC) && (*catalog)->count <= (*catalog)->capacity);
    return *catalog;
}

void catalog__set_index(struct catalog **catalog, const struct catalog_index_spec *spec)
{
    struct catalog *own_catalog = own_copy(catalog);
    const struct catalog_index *before = catalog_index_by_number(own_catalog, spec->number);
    size_t uses = spec->alias_count + (before == NULL ? 0 : before->alias_count);

    REQUIRE(before == NULL || slice_equal(before->name, spec->name)); /* an index keeps its name */
    own_catalog->alias_count += spec->alias_count - (before == NULL ? 0 : before->alias_count);
    put_node(own_catalog, node_new(spec));
    if (uses > 0)
        alias_changes_add(&own_catalog->alias_changes, spec->number, uses);
}

void catalog__set_mapping(struct catalog **catalog, uint32_t number, const struct mapping *mapping)
{
    struct catalog *own_catalog = own_copy(catalog);
    size_t position = position_by_number(own_catalog, number);

    REQUIRE(position < own_catalog->count && own_catalog->by_number[position]->index.number == number);
    put_node(own_catalog, node_with_mapping(own_catalog->by_number[position], mapping));
}

void catalog__remove_index(struct catalog **catalog, uint32_t number)
{
    struct catalog *own_catalog = own_copy(catalog);
    size_t by_number = position_by_number(own_catalog, number);

    REQUIRE(by_number < own_catalog->count && own_catalog->by_number[by_number]->index.number == number);
    struct catalog_node *node = own_catalog->by_number[by_number];
    own_catalog->alias_count -= node->index.alias_count;
    if (node->index.alias_count > 0)
        alias_changes_add(&own_catalog->alias_changes, number, node->index.alias_count);
    size_t by_name = position_by_name(own_catalog, node->index.name);
    INSIST(by_name < own_catalog->count && own_catalog->by_name[by_name] == node);
    remove_at(own_catalog->by_name, own_catalog->count, by_name);
    remove_at(own_catalog->by_number, own_catalog->count, by_number);
    own_catalog->count--;
    node_unref(node);
}

void catalog__set_object(struct catalog **catalog, enum catalog_kind kind, struct slice name,
                         const struct catalog_object *object)
{
    REQUIRE(kind < CATALOG_KIND_COUNT && name.len > 0);
    struct catalog *own_catalog = own_copy(catalog);
    struct object_table *table = table_replace(own_catalog->objects[kind], name, object);

    table_unref(own_catalog->objects[kind]);
    own_catalog->objects[kind] = table;
}

void catalog__attach_counters(struct catalog *catalog, struct catalog_counters *(*counters_of)(void *, uint32_t),
                              void *context)
{
    REQUIRE(atomic_load_explicit(&catalog->refs, memory_order_relaxed) == 1);
    for (size_t i = 0; i < catalog->count; i++) {
        struct catalog_index *index = &catalog->by_name[i]->index;
        REQUIRE(index->counters == NULL);
        index->counters = catalog__counters_ref(counters_of(context, index->number));
        ENSURE(index->counters != NULL); /* only a catalog of an earlier timestamp has none */
    }
}

/* --- Checks ------------------------------------------------------------------------------------------------------- */

static void check_indices(const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->count; i++) {
        const struct catalog_index *index = &catalog->by_name[i]->index;
        INSIST(i == 0 || slice_compare(catalog->by_name[i - 1]->index.name, index->name) < 0);
        INSIST(i == 0 || catalog->by_number[i - 1]->index.number < catalog->by_number[i]->index.number);
        INSIST(node_by_number(catalog, index->number) == catalog->by_name[i]);
        INSIST(index->mapping == catalog->by_name[i]->mapping);
        for (size_t j = 1; j < index->alias_count; j++)
            INSIST(slice_compare(index->aliases[j - 1].name, index->aliases[j].name) < 0);
    }
}

static void check_aliases(const struct catalog *catalog)
{
    const struct alias_table *table = catalog->aliases;
    size_t total = 0;
    for (size_t i = 0; i < catalog->count; i++)
        total += catalog->by_name[i]->index.alias_count;
    INSIST(table->count == total && catalog->alias_count == total);
    for (size_t i = 0; i < table->count; i++) {
        const struct alias_use *use = &table->uses[i];
        const struct catalog_index *index = catalog_index_by_number(catalog, use->number);
        INSIST(i == 0 || compare_uses(&table->uses[i - 1], use) < 0);
        INSIST(index != NULL && slice_equal(index->name, use->index));
        INSIST(catalog_index_alias(index, use->alias) != NULL);
    }
}

void catalog__check(const struct catalog *catalog)
{
    check_indices(catalog);
    renew_aliases(catalog);
    check_aliases(catalog);
    for (int kind = 0; kind < CATALOG_KIND_COUNT; kind++)
        for (size_t i = 1; i < catalog_object_count(catalog, (enum catalog_kind)kind); i++)
            INSIST(slice_compare(catalog->objects[kind]->nodes[i - 1]->object.name,
                                 catalog->objects[kind]->nodes[i]->object.name) < 0);
}
