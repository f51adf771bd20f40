/* SPDX-License-Identifier: Apache-2.0 */
/* Finding methods; see method.h. */
#include "script/method.h"

#include "script/seq.h"

const struct method_table *const method_tables[] = {
    methods_text,  methods_collection, methods_map,  methods_number,   methods_stream, methods_regex,
    methods_time,   methods_date,   methods_duration, methods_enum,
    methods_object, methods_function,
    methods_groovy_object, methods_groovy_walk, methods_groovy_iterable, methods_groovy_list, methods_groovy_map,
    methods_groovy_text, methods_groovy_number, NULL};

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

const struct method *method_next(const struct method_query *query, size_t *position)
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
    while ((method = method_next(query, &position)) != NULL)
        if (method->count == query->count)
            return method;
    return NULL;
}
