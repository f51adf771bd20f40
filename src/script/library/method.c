/* SPDX-License-Identifier: Apache-2.0 */
/* Finding methods; see method.h. */
#include "script/library/method.h"

#include "base/check.h"
#include "script/value/seq.h"

#include <ctype.h>

/* Of rows that fit a call alike, the first is taken: a dialect's additions stand behind what Java has. */
const struct method_table *const method_tables[] = {
    methods_text,
    methods_text_regex,
    methods_painless_text,
    methods_groovy_text_part,
    methods_groovy_margin,
    methods_groovy_text_number,
    methods_builder,
    methods_character,
    methods_collection,
    methods_list,
    methods_utility,
    methods_painless_iterable,
    methods_painless_path,
    methods_map,
    methods_sorted,
    methods_list_iterator,
    methods_tokenizer,
    methods_statistics,
    methods_doc,
    methods_decimal_format,
    methods_math,
    methods_number,
    methods_integer,
    methods_float,
    methods_boolean,
    methods_big,
    methods_stream,
    methods_regex,
    methods_time,
    methods_date,
    methods_calendar,
    methods_adjuster,
    methods_duration,
    methods_enum,
    methods_object,
    methods_function,
    methods_groovy_object,
    methods_groovy_walk,
    methods_groovy_iterable,
    methods_groovy_list,
    methods_groovy_map,
    methods_groovy_text,
    methods_groovy_number,
    NULL,
};

#define KIND_FLAGS (METHOD_STATIC | METHOD_FIELD | METHOD_NEW)
/* Classes a lookup may pass through: the deepest chain with all its interfaces is well below. */
#define CHAIN_MAX 24

/* The class, what it extends, nearest first, Object last. Returns: how many. */
static unsigned chain_of(enum class_id id, uint16_t chain[CHAIN_MAX])
{
    unsigned count = 0;
    chain[count++] = (uint16_t)id;
    for (unsigned i = 0; i < count && chain[i] != CLASS_ARRAY; i++) {
        const uint16_t *supers = class_infos[chain[i]].supers;
        for (unsigned k = 0; k < 3 && count < CHAIN_MAX - 1; k++)
            if (supers[k] != CLASS_OBJECT)
                chain[count++] = supers[k];
    }
    if (id != CLASS_OBJECT)
        chain[count++] = CLASS_OBJECT;
    return count;
}

static bool row_fits(const struct method *method, const struct method_query *query)
{
    unsigned dialect = query->flags & METHOD_BOTH;
    return (method->flags & dialect) != 0 && (method->flags & KIND_FLAGS) == (query->flags & KIND_FLAGS) &&
           (query->name.data == NULL || slice_is(query->name, method->name));
}

/*
 * Walks all rows of that name in the class and what it extends, nearest first, whatever the number of arguments; of any
 * name where the query has none.
 * Returns: NULL at the end. Start with *position = 0.
 */
static const struct method *next_row(const struct method_query *query, size_t *position)
{
    uint16_t chain[CHAIN_MAX];
    unsigned count = chain_of(query->id, chain);
    size_t seen = 0;
    bool is_new = (query->flags & METHOD_NEW) != 0;
    /* All throwables are made alike. */
    if (is_new && class_infos[query->id].kind == CLASS_KIND_X)
        chain[0] = CLASS_THROWABLE;
    for (unsigned i = 0; i < (is_new ? 1 : count); i++)
        for (const struct method_table *const *group = method_tables; *group != NULL; group++)
            for (const struct method_table *table = *group; table->methods != NULL; table++) {
                if (table->id != chain[i])
                    continue;
                for (unsigned row = 0; row < table->count; row++)
                    if (seen++ >= *position && row_fits(&table->methods[row], query)) {
                        *position = seen;
                        return &table->methods[row];
                    }
            }
    return NULL;
}

static bool starts_alike(const struct method *method, const struct method_query *query)
{
    return query->name.data == NULL || (query->name.len > 0 && method->name[0] == query->name.data[0]);
}

unsigned method_all(const struct method_query *query, const struct method **rows, unsigned max)
{
    REQUIRE(max <= METHOD_ROWS_MAX);
    uint16_t chain[CHAIN_MAX];
    uint8_t ranks[CLASS_COUNT + 1], found[METHOD_ROWS_MAX];
    const struct method *unsorted[METHOD_ROWS_MAX];
    bool is_new = (query->flags & METHOD_NEW) != 0;
    unsigned length = is_new ? 1 : chain_of(query->id, chain), count = 0, sorted = 0;
    if (is_new) /* all throwables are made alike */
        chain[0] = class_infos[query->id].kind == CLASS_KIND_X ? (uint16_t)CLASS_THROWABLE : (uint16_t)query->id;
    memset(ranks, 0xff, sizeof ranks);
    for (unsigned i = length; i-- > 0;)
        ranks[chain[i]] = (uint8_t)i;
    for (const struct method_table *const *group = method_tables; *group != NULL; group++)
        for (const struct method_table *table = *group; table->methods != NULL; table++)
            for (unsigned row = 0; ranks[table->id] != 0xff && row < table->count && count < max; row++)
                if (starts_alike(&table->methods[row], query) && row_fits(&table->methods[row], query)) {
                    found[count] = ranks[table->id];
                    unsorted[count++] = &table->methods[row];
                }
    for (unsigned rank = 0; rank < length && sorted < count; rank++)
        for (unsigned i = 0; i < count; i++)
            if (found[i] == rank)
                rows[sorted++] = unsorted[i];
    return sorted;
}

/* One slot a name and class, the newest wins. */
#define KEPT 256u
_Static_assert(KEPT * sizeof(void *) <= RUN_SMALL_BYTES, "the table is one small piece");

static uint32_t slot_of(const struct method_query *query)
{
    uint32_t hash = 2166136261u ^ (uint32_t)query->id * 40503u ^ query->flags;
    for (size_t i = 0; i < query->name.len; i++)
        hash = (hash ^ (uint8_t)query->name.data[i]) * 16777619u;
    return (hash ^ hash >> 15) % KEPT;
}

static const struct method_rows *look_up(struct run *run, const struct method_query *query)
{
    const struct method *rows[METHOD_OVERLOADS_MAX];
    struct method_rows *kept = run_alloc(run, sizeof *kept);
    kept->query = *query;
    kept->query.name = arena_copy(run->arena, query->name);
    run_charge(run, query->name.len);
    kept->count = method_all(query, rows, METHOD_OVERLOADS_MAX);
    kept->rows = run_alloc(run, (kept->count + 1) * sizeof *kept->rows);
    memcpy(kept->rows, rows, kept->count * sizeof *kept->rows);
    return kept;
}

const struct method_rows *run_methods(struct run *run, const struct method_query *query)
{
    if (run->methods == NULL) {
        run->methods = run_alloc(run, KEPT * sizeof *run->methods);
        memset(run->methods, 0, KEPT * sizeof *run->methods);
    }
    const struct method_rows **slot = &run->methods[slot_of(query)];
    bool same = *slot != NULL && (*slot)->query.id == query->id && (*slot)->query.flags == query->flags &&
                slice_equal((*slot)->query.name, query->name);
    if (!same)
        *slot = look_up(run, query);
    return *slot;
}

const struct method *run_method(struct run *run, const struct method_query *query)
{
    const struct method_rows *found = run_methods(run, query);
    for (unsigned i = 0; i < found->count; i++)
        if (found->rows[i]->count == query->count)
            return found->rows[i];
    return NULL;
}

bool method_exists(struct slice name, unsigned flags)
{
    struct method_query query = {.name = name, .flags = flags};
    for (const struct method_table *const *group = method_tables; *group != NULL; group++)
        for (const struct method_table *table = *group; table->methods != NULL; table++)
            for (unsigned row = 0; row < table->count; row++)
                if (row_fits(&table->methods[row], &query))
                    return true;
    return false;
}

const struct method *method_find(const struct method_query *query)
{
    size_t position = 0;
    const struct method *method;
    while ((method = next_row(query, &position)) != NULL)
        if (method->count == query->count)
            return method;
    return NULL;
}

struct slice method_accessor(char to[METHOD_ACCESSOR_MAX], const char *prefix, struct slice field)
{
    size_t len = strlen(prefix);
    if (field.len == 0 || len + field.len >= METHOD_ACCESSOR_MAX)
        return SLICE_NONE;
    memcpy(to, prefix, len);
    memcpy(to + len, field.data, field.len);
    to[len] = (char)toupper((unsigned char)to[len]);
    return slice_make(to, len + field.len);
}

bool method_referred(type_id type, struct slice name, unsigned count)
{
    if (type_dims(type) > 0)
        return slice_is(name, "new") && count == 1;
    struct method_query query = {type_class(type), name, count, METHOD_PAINLESS};
    query.flags |= slice_is(name, "new") ? METHOD_NEW : METHOD_STATIC;
    if (method_find(&query) != NULL)
        return true;
    query.flags = METHOD_PAINLESS;
    query.count = count - 1;
    return count > 0 && method_find(&query) != NULL;
}
