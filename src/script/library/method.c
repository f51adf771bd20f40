/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the method tables and looks methods up; see method.h. */
#include "script/library/method.h"

#include "base/check.h"
#include "script/value/seq.h"

#include <ctype.h>

/* The first of several rows that fit a call equally is taken. Therefore the tables of a
   dialect's additions follow Java's. */
static const struct method_table *const method_tables[] = {
    methods_text,
    methods_text_regex,
    methods_painless_text,
    methods_groovy_text_part,
    methods_groovy_padding,
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

/* Parsing of signatures */

/* Hash table from class names in signatures to classes, with open addressing. At least twice as
   large as the number of names. */
#define NAMES_MAX 1024u
static uint16_t names[NAMES_MAX]; /* 1 + enum class_id; 0: free */

static const char *java_simple(enum class_id id)
{
    const char *simple = strrchr(class_infos[id].java, '.');
    return simple == NULL ? class_infos[id].java : simple + 1;
}

/* Returns: whether a class's name equals a name in a signature, where `$` is written as a dot. */
static bool name_same(const char *name, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (name[i] == '\0' || text.data[i] != (name[i] == '$' ? '.' : name[i]))
            return false;
    return name[text.len] == '\0';
}

static uint32_t name_slot(struct slice name)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (uint8_t)(name.data[i] == '$' ? '.' : name.data[i])) * 16777619u;
    return (hash ^ hash >> 15) % NAMES_MAX;
}

static void name_add(const char *name, enum class_id id)
{
    uint32_t slot = name_slot(slice_from(name));
    while (names[slot] != 0 && names[slot] != id + 1u)
        slot = (slot + 1) % NAMES_MAX;
    names[slot] = (uint16_t)(id + 1u);
}

static enum class_id name_find(struct slice name)
{
    for (uint32_t slot = name_slot(name); names[slot] != 0; slot = (slot + 1) % NAMES_MAX) {
        enum class_id id = (enum class_id)(names[slot] - 1u);
        if (name_same(class_infos[id].painless, name) || name_same(java_simple(id), name))
            return id;
    }
    return CLASS_COUNT;
}

static struct slice take_word(const char **at)
{
    const char *begin = *at;
    while (isalnum((unsigned char)**at) || **at == '.' || **at == '_' || **at == '$')
        (*at)++;
    return slice_make(begin, (size_t)(*at - begin));
}

static bool skip_text(const char **at, const char *what)
{
    size_t len = strlen(what);
    bool is = strncmp(*at, what, len) == 0;
    *at += is ? len : 0;
    return is;
}

static bool read_type(const char **at, type_id *ret)
{
    const char *begin = *at;
    struct slice name = take_word(at);
    bool rest = name.len > 3 && strncmp(*at - 3, "...", 3) == 0; /* read by read_parameters */
    *at -= rest ? 3 : 0;
    enum class_id id = name_find(slice_make(begin, (size_t)(*at - begin)));
    unsigned dims = 0;
    while (skip_text(at, "[]"))
        dims++;
    *ret = type_array(id, dims);
    return id != CLASS_COUNT && dims <= TYPE_DIMS_MAX;
}

static bool read_parameters(const char **at, struct method *ret)
{
    if (skip_text(at, ")"))
        return true;
    do {
        if (ret->count == METHOD_PARAMETERS_MAX || !read_type(at, &ret->parameters[ret->count]))
            return false;
        ret->count++;
    } while (skip_text(at, ", "));
    if (skip_text(at, "..."))
        ret->flags |= METHOD_REST;
    return skip_text(at, ")");
}

bool method_read(const char *signature, char **pool, struct method *ret)
{
    const char *at = signature;
    ret->count = 0;
    ret->flags &= (uint8_t) ~(KIND_FLAGS | METHOD_REST);
    if (skip_text(&at, "static "))
        ret->flags |= METHOD_STATIC;
    else if (skip_text(&at, "new "))
        ret->flags |= METHOD_NEW;
    if (!read_type(&at, &ret->result))
        return false;
    struct slice name = SLICE_LIT("new");
    if ((ret->flags & METHOD_NEW) == 0) {
        if (!skip_text(&at, " "))
            return false;
        name = take_word(&at);
    }
    if (name.len == 0)
        return false;
    ret->name = memcpy(*pool, name.data, name.len);
    (*pool)[name.len] = '\0';
    *pool += name.len + 1;
    if (*at == '\0' && (ret->flags & METHOD_NEW) == 0)
        ret->flags |= METHOD_FIELD;
    else if (!skip_text(&at, "(") || !read_parameters(&at, ret))
        return false;
    return *at == '\0';
}

/* All rows, ordered by class, then by table; first[id] is the index of a class's first row. */
#define ALL_MAX 4096u
static struct method all[ALL_MAX];
static uint16_t first[CLASS_COUNT + 2];
static char pool[ALL_MAX * 16u];

static void read_row(const struct method_table *table, unsigned i, unsigned count, char **at)
{
    struct method *method = &all[count];
    REQUIRE(count < ALL_MAX);
    const struct method_row *row = &table->rows[i];
    *method = (struct method){.id = table->id, .flags = row->flags, .native = row->native, .datum = row->datum};
    REQUIRE(*at + strlen(row->signature) < pool + sizeof pool);
    bool is = method_read(row->signature, at, method);
    REQUIRE(is);
}

/* Runs once, before main: no lock is needed, and no thread can see a partial table. */
__attribute__((constructor)) static void read_tables(void)
{
    char *at = pool;
    unsigned count = 0;
    for (unsigned id = 0; id < CLASS_COUNT; id++) {
        if (class_infos[id].painless[0] != '\0')
            name_add(class_infos[id].painless, (enum class_id)id);
        name_add(java_simple((enum class_id)id), (enum class_id)id);
    }
    for (unsigned id = 0; id <= CLASS_COUNT; id++) {
        first[id] = (uint16_t)count;
        for (const struct method_table *const *group = method_tables; *group != NULL; group++)
            for (const struct method_table *table = *group; table->count > 0; table++)
                for (unsigned i = 0; table->id == id && i < table->count; i++)
                    read_row(table, i, count++, &at);
    }
    first[CLASS_COUNT + 1] = (uint16_t)count;
}

const struct method *method_at(unsigned i)
{
    return i < first[CLASS_COUNT + 1] ? &all[i] : NULL;
}

/* Natives */

bool method_constant(struct call *call, struct value *ret)
{
    const union method_datum *datum = &call->row->datum;
    switch (type_unboxed(call->row->result)) {
    case CLASS_BOOLEAN: *ret = value_boolean(datum->number != 0); break;
    case CLASS_BYTE: *ret = (struct value){.kind = VALUE_BYTE, .i = datum->number}; break;
    case CLASS_SHORT: *ret = (struct value){.kind = VALUE_SHORT, .i = datum->number}; break;
    case CLASS_INT: *ret = value_int(datum->number); break;
    case CLASS_LONG: *ret = value_long(datum->number); break;
    case CLASS_FLOAT: *ret = value_float(datum->real); break;
    default: *ret = value_double(datum->real); break;
    }
    return true;
}

/* Lookup */

/* Limit of the classes that a lookup visits; more than the longest chain with all its
   interfaces. */
#define CHAIN_MAX 24

/* Lists the classes that a lookup visits: the class and its supertypes, nearest first, Object
   last. For a constructor, only the class that declares it. Returns: their number. */
static unsigned chain_of(const struct method_lookup *query, uint16_t chain[CHAIN_MAX])
{
    unsigned count = 0;
    chain[count++] = (uint16_t)query->id;
    if (query->flags & METHOD_NEW) {
        if (class_infos[query->id].kind == CLASS_KIND_X)
            chain[0] = CLASS_THROWABLE; /* declares the constructors of all throwables */
        return count;
    }
    for (unsigned i = 0; i < count && chain[i] != CLASS_ARRAY; i++) {
        const uint16_t *supers = class_infos[chain[i]].supers;
        for (unsigned k = 0; k < 3 && count < CHAIN_MAX - 1; k++)
            if (supers[k] != CLASS_OBJECT)
                chain[count++] = supers[k];
    }
    if (query->id != CLASS_OBJECT)
        chain[count++] = CLASS_OBJECT;
    return count;
}

static bool row_fits(const struct method *method, const struct method_lookup *query)
{
    unsigned dialect = query->flags & METHOD_BOTH;
    return (method->flags & dialect) != 0 && (method->flags & KIND_FLAGS) == (query->flags & KIND_FLAGS) &&
           (query->name.data == NULL || slice_is(query->name, method->name));
}

static bool starts_alike(const struct method *method, const struct method_lookup *query)
{
    return query->name.data == NULL || (query->name.len > 0 && method->name[0] == query->name.data[0]);
}

/* Returns: whether a class occurs earlier in the chain; several supertypes may extend it. */
static bool occurs_before(const uint16_t *chain, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (chain[k] == chain[i])
            return true;
    return false;
}

unsigned method_all(const struct method_lookup *query, const struct method **rows, unsigned max)
{
    REQUIRE(max <= METHOD_ROWS_MAX);
    uint16_t chain[CHAIN_MAX];
    unsigned length = chain_of(query, chain), count = 0;
    for (unsigned i = 0; i < length; i++)
        for (unsigned row = first[chain[i]]; row < first[chain[i] + 1] && count < max; row++)
            if (starts_alike(&all[row], query) && row_fits(&all[row], query) && !occurs_before(chain, i))
                rows[count++] = &all[row];
    return count;
}

/* Slots of the cache of lookups. Name, class and flags select a slot; a new result replaces the
   old one. */
#define CACHE_SLOTS 256u
_Static_assert(CACHE_SLOTS * sizeof(void *) <= RUN_SMALL_BYTES, "the table is one small piece");

static uint32_t slot_of(const struct method_lookup *query)
{
    uint32_t hash = 2166136261u ^ (uint32_t)query->id * 40503u ^ query->flags;
    for (size_t i = 0; i < query->name.len; i++)
        hash = (hash ^ (uint8_t)query->name.data[i]) * 16777619u;
    return (hash ^ hash >> 15) % CACHE_SLOTS;
}

static const struct method_rows *look_up(struct run *run, const struct method_lookup *query)
{
    const struct method *rows[METHOD_OVERLOADS_MAX];
    struct method_rows *found = run_alloc(run, sizeof *found);
    found->query = *query;
    found->query.name = arena_copy(run->arena, query->name);
    run_charge(run, query->name.len);
    found->count = method_all(query, rows, METHOD_OVERLOADS_MAX);
    found->rows = run_alloc(run, (found->count + 1) * sizeof *found->rows);
    memcpy(found->rows, rows, found->count * sizeof *found->rows);
    return found;
}

const struct method_rows *run_methods(struct run *run, const struct method_lookup *query)
{
    if (run->methods == NULL) {
        run->methods = run_alloc(run, CACHE_SLOTS * sizeof *run->methods);
        memset(run->methods, 0, CACHE_SLOTS * sizeof *run->methods);
    }
    const struct method_rows **slot = &run->methods[slot_of(query)];
    bool same = *slot != NULL && (*slot)->query.id == query->id && (*slot)->query.flags == query->flags &&
                slice_equal((*slot)->query.name, query->name);
    if (!same)
        *slot = look_up(run, query);
    return *slot;
}

const struct method *run_method(struct run *run, const struct method_lookup *query)
{
    const struct method_rows *found = run_methods(run, query);
    for (unsigned i = 0; i < found->count; i++)
        if (found->rows[i]->count == query->count)
            return found->rows[i];
    return NULL;
}

bool method_exists(struct slice name, unsigned flags)
{
    struct method_lookup query = {.name = name, .flags = flags};
    for (unsigned row = 0; row < first[CLASS_COUNT + 1]; row++)
        if (row_fits(&all[row], &query))
            return true;
    return false;
}

const struct method *method_find(const struct method_lookup *query)
{
    uint16_t chain[CHAIN_MAX];
    unsigned length = chain_of(query, chain);
    for (unsigned i = 0; i < length; i++)
        for (unsigned row = first[chain[i]]; row < first[chain[i] + 1]; row++)
            if (all[row].count == query->count && starts_alike(&all[row], query) && row_fits(&all[row], query))
                return &all[row];
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
    struct method_lookup query = {type_class(type), name, count, METHOD_PAINLESS};
    query.flags |= slice_is(name, "new") ? METHOD_NEW : METHOD_STATIC;
    if (method_find(&query) != NULL)
        return true;
    query.flags = METHOD_PAINLESS;
    query.count = count - 1;
    return count > 0 && method_find(&query) != NULL;
}
