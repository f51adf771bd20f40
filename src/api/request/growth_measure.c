/* SPDX-License-Identifier: Apache-2.0 */
/* What a command may add to the catalog; see growth_measure.h. */
#include "api/request/growth_measure.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/map.h"
#include "core/catalog/catalog.h"
#include "core/catalog/settings.h"
#include "core/command/command.h"
#include "json/each.h"
#include "json/filter.h"
#include "json/json.h"
#include "json/write.h"
#include "mapping/document.h"
#include "mapping/mapping.h"

/* Memory of what the catalog has, measured with a thousand of each. */
enum {
    INDEX_BYTES = 8 * 1024,   /* an index without fields */
    FIELD_BYTES = 2 * 1024,   /* a field, or a multi-field */
    TEXT_FACTOR = 5,          /* a byte of a field's path and parameters, which a mapping has several times */
    VALUE_BYTES = 4 * 1024,   /* a value of a document that is a new field: a text has a multi-field, too */
    NAMED_BYTES = 1024,       /* of a ':' in mappings as JSON: a field has two of them at least */
    BODY_FACTOR = 16,         /* a byte of settings, most in those of analysis, and of a template's patterns */
    SCRIPT_FACTOR = 2,        /* a byte of a script */
    ALIAS_BYTES = 128,        /* an alias of an index, without its name and body */
    NEW_INDEX_MOST = 48 << 20 /* an index that is not there, with the most that its templates may have */
};

/*
 * What a command may spend on finding the templates of its indices, some 5 ms: names compared with a pattern.
 * Measured with 30 ns each.
 */
enum {
    COMPARED_MAX = 200000,
    COMPARED_BYTES = 64, /* of a pattern and the name, which count as one more */
    COMPARED_FIND = 8,   /* finding a component by its name */
};

/* Settings replace others, and an operator may have to change one of a full server: small ones add nothing. */
enum {
    SETTINGS_SMALL_BYTES = 1024,    /* of a request */
    SETTINGS_FEW_BYTES = 16 * 1024, /* of those that are there */
};

/* --- Indices ------------------------------------------------------------------------------------------------------ */

static size_t colons(struct slice text)
{
    size_t found = 0;
    for (size_t i = 0; i < text.len; i++)
        found += text.data[i] == ':';
    return found;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t above(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

/* Returns: the most that fields may take, of which some are there. */
static size_t fields_bytes(size_t fields, size_t texts)
{
    return fields * FIELD_BYTES + texts * TEXT_FACTOR;
}

/* Returns: the most that an index may still get by new fields. */
static size_t most_of(const struct catalog_index *index)
{
    return FIELD_BYTES + fields_bytes(above(mapping_fields_max(index->mapping), mapping_path_count(index->mapping)),
                                      above(MAPPING_TEXT_BYTES_MAX, mapping_text_bytes(index->mapping)));
}

/* What the templates that apply to a new index give it, as far as is seen without parsing them. */
struct template_sum {
    size_t colons; /* ':' in them */
    size_t bytes;
    bool limit;   /* one may raise the limit of fields */
    bool dynamic; /* one decides what a document's new field becomes */
};

static void add_template(struct template_sum *sum, const struct catalog_object *template)
{
    REQUIRE(template->matching != NULL); /* the catalog is the core's */
    sum->colons += template->matching->colon_count;
    sum->bytes += template->body.len;
    sum->limit |= template->matching->limits_fields;
    sum->dynamic |= template->matching->dynamic;
}

/* The templates of a command. Finding those of its indices takes bounded work; when it is spent, all of them count. */
struct templates {
    const struct catalog *catalog;
    size_t work;             /* names that may still be compared */
    struct template_sum all; /* set when `work` is spent */
};

static const enum catalog_kind template_kinds[] = {CATALOG_INDEX_TEMPLATES, CATALOG_TEMPLATES, CATALOG_COMPONENTS};
enum { KINDS_WITH_PATTERNS = 2 };

static void sum_all(struct templates *templates)
{
    for (size_t k = 0; k < sizeof template_kinds / sizeof *template_kinds; k++)
        for (size_t i = 0; i < catalog_object_count(templates->catalog, template_kinds[k]); i++)
            add_template(&templates->all, catalog_object_at(templates->catalog, template_kinds[k], i));
}

/* Returns: whether so much work was left. */
static bool spend(struct templates *templates, size_t work)
{
    if (templates->work > work) {
        templates->work -= work;
        return true;
    }
    if (templates->work > 0)
        sum_all(templates);
    templates->work = 0;
    return false;
}

static bool applies(struct templates *templates, const struct catalog_matching *matching, struct slice name)
{
    for (size_t i = 0; i < matching->pattern_count; i++)
        if (!spend(templates, 1 + json_wildcard_bytes(matching->patterns[i], name.len) / COMPARED_BYTES) ||
            json_wildcard(matching->patterns[i], name))
            return true;
    return false;
}

static void add_components(struct template_sum *sum, struct templates *templates,
                           const struct catalog_matching *matching)
{
    for (size_t i = 0; i < matching->component_count && spend(templates, COMPARED_FIND); i++) {
        const struct catalog_object *component =
            catalog_object(templates->catalog, CATALOG_COMPONENTS, matching->components[i]);
        if (component != NULL)
            add_template(sum, component);
    }
}

/* Returns: the sum of the templates that apply to a name, or of all if the work is spent. */
static struct template_sum templates_of(struct templates *templates, struct slice name)
{
    struct template_sum sum = {0};
    for (size_t k = 0; k < KINDS_WITH_PATTERNS; k++)
        for (size_t i = 0; i < catalog_object_count(templates->catalog, template_kinds[k]); i++) {
            const struct catalog_object *template = catalog_object_at(templates->catalog, template_kinds[k], i);
            if (!spend(templates, 1))
                return templates->all;
            if (!applies(templates, template->matching, name))
                continue;
            add_template(&sum, template);
            add_components(&sum, templates, template->matching);
        }
    return templates->work > 0 ? sum : templates->all;
}

/* Returns: the most that all fields of a new index may take. */
static size_t most_of_new(const struct template_sum *sum)
{
    return fields_bytes(sum->limit ? MAPPING_TOTAL_FIELDS_LIMIT_MAX : MAPPING_TOTAL_FIELDS_MAX, MAPPING_TEXT_BYTES_MAX);
}

/* Returns: what a new index takes without fields of documents. */
static size_t new_index_bytes(const struct template_sum *sum)
{
    return INDEX_BYTES + smaller(sum->colons * NAMED_BYTES, most_of_new(sum)) + sum->bytes * BODY_FACTOR;
}

/* --- Writes ------------------------------------------------------------------------------------------------------- */

/* A write that is measured. The indices are found by the names that the items give, which may be aliases. */
struct measure {
    const struct catalog *catalog;
    enum growth_effort effort;
    struct arena *arena;   /* of the result */
    struct arena *scratch; /* of an item */
    struct growth *growth;
    struct map shares; /* by name, if there are several: position in growth->shares + 1 */
    struct templates templates;
    size_t capacity;
    bool known;    /* something is added whatever scripts do */
    bool scripted; /* scripts may add something */
};

/* Returns: the share of an index; NULL: it has none yet. */
static struct growth_share *find_share(struct measure *measure, struct slice index)
{
    struct growth *growth = measure->growth;
    size_t last = growth->share_count;
    if (last > 0 && slice_equal(growth->shares[last - 1].index, index))
        return &growth->shares[last - 1];
    size_t at = (size_t)(uintptr_t)map_get(&measure->shares, index);
    return at > 0 ? &growth->shares[at - 1] : NULL;
}

/* Adds the share of an index that has none. A write has one, as a rule: the map is empty then. */
static struct growth_share *add_share(struct measure *measure, struct slice index, size_t bytes, size_t most)
{
    REQUIRE(find_share(measure, index) == NULL);
    struct growth *growth = measure->growth;
    size_t last = growth->share_count;
    growth->shares = arena_grow(measure->arena, growth->shares, last, &measure->capacity, sizeof *growth->shares);
    growth->shares[last] = (struct growth_share){.index = index, .bytes = bytes, .most = most};
    growth->share_count++;
    for (size_t i = last == 1 ? 0 : last; i <= last && last > 0; i++)
        map_put(&measure->shares, growth->shares[i].index, (void *)(uintptr_t)(i + 1));
    return &growth->shares[last];
}

/* Returns: the bytes of the fields of a document that its mapping lacks. One that will be refused adds nothing. */
static size_t new_fields(struct measure *measure, const struct mapping *mapping, const struct mapping_type *type,
                         const struct write_item *item, struct slice source)
{
    struct document document = {.update = NULL};
    struct problem ignored;
    if (source.len == 0 || document_parse(mapping, type, item->id, source, item->dialect, DOCUMENT_DATES_STRICT,
                                          FIELDS_TEXTS_BOUNDED, measure->scratch, &document, &ignored) != 0)
        return 0;
    size_t bytes =
        document.update == NULL
            ? 0
            : FIELD_BYTES + fields_bytes(above(mapping_path_count(document.update), mapping_path_count(mapping)),
                                         above(mapping_text_bytes(document.update), mapping_text_bytes(mapping)));
    document_release(&document);
    return bytes;
}

static bool is_scripted(const struct write_item *item)
{
    const struct write_update *update = item->update;
    return update != NULL && update->script_source.len + update->script_id.len + update->script_file.len > 0;
}

/* Returns: the most that a path of a document may have: as many names as objects are nested, each the longest text. */
static size_t longest_path(struct slice source)
{
    size_t depth = 0, deepest = 0, longest = 0, begin = 0;
    for (size_t i = 0; i < source.len; i++) {
        char byte = source.data[i];
        if (byte == '{' && ++depth > deepest)
            deepest = depth;
        else if (byte == '}')
            depth -= depth > 0;
        if (byte != '"' || (i > 0 && source.data[i - 1] == '\\'))
            continue;
        if (longest < i - begin)
            longest = i - begin;
        begin = i;
    }
    return smaller(deepest * longest + sizeof ".keyword", source.len + sizeof ".keyword");
}

/* Returns: the bytes of the fields that a document may have in an index that it creates. */
static size_t values_bytes(struct slice source)
{
    size_t values = colons(source);
    return values * VALUE_BYTES + smaller(values * longest_path(source), MAPPING_TEXT_BYTES_MAX) * TEXT_FACTOR;
}

/* Adds the share of an index that is not there, and finds its templates for all of its items. */
static struct growth_share *add_new_index(struct measure *measure, struct slice index)
{
    if (measure->effort == GROWTH_QUICK)
        return add_share(measure, index, NEW_INDEX_MOST, NEW_INDEX_MOST);
    struct template_sum sum = templates_of(&measure->templates, index);
    size_t base = new_index_bytes(&sum), most = base + most_of_new(&sum);
    return add_share(measure, index, sum.dynamic ? most : base, most);
}

/* An item that creates its index, or follows one that does. */
static void measure_creation(struct measure *measure, const struct write_item *item)
{
    struct growth_share *share = find_share(measure, item->index);
    const struct write_update *update = item->update;
    if (share == NULL)
        share = add_new_index(measure, item->index);
    if (measure->effort == GROWTH_QUICK)
        return;
    measure->known = true;
    if (share->bytes == share->most)
        return;
    size_t values =
        update == NULL ? values_bytes(item->source) : values_bytes(update->doc) + values_bytes(update->upsert);
    share->bytes = is_scripted(item) ? share->most : smaller(share->bytes + values, share->most);
}

/* An item of an index that is there. */
static void measure_fields(struct measure *measure, const struct write_item *item, const struct catalog_index *index)
{
    const struct mapping_type *type = mapping_type(index->mapping, item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    struct growth_share *share = find_share(measure, index->name);
    if (share == NULL)
        share = add_share(measure, index->name, 0, most_of(index));
    const struct write_update *update = item->update;
    if (measure->effort == GROWTH_QUICK || type == NULL) {
        share->bytes = share->most;
        measure->known = true;
        return;
    }
    size_t bytes = update == NULL ? new_fields(measure, index->mapping, type, item, item->source)
                                  : new_fields(measure, index->mapping, type, item, update->doc) +
                                        new_fields(measure, index->mapping, type, item, update->upsert);
    measure->known |= bytes > 0;
    measure->scripted |= is_scripted(item);
    share->bytes = is_scripted(item) ? share->most : smaller(share->bytes + bytes, share->most);
}

static void measure_item(struct measure *measure, const struct write_item *item)
{
    const struct catalog_index *index;
    const struct catalog_alias *alias;
    if (item->op == WRITE_DELETE)
        return;
    if (catalog_find_any(measure->catalog, item->index, true, item->dialect, measure->scratch, &index, &alias, NULL) ==
        0)
        measure_fields(measure, item, index);
    else if (!catalog_has_alias(measure->catalog, item->index))
        measure_creation(measure, item);
}

void growth_measure_write(const struct catalog *catalog, const struct write_command *write, enum growth_effort effort,
                          struct arena *arena, struct growth *ret_growth, bool *ret_scripted)
{
    REQUIRE(catalog != NULL && write != NULL);
    struct arena scratch = ARENA_INIT;
    struct measure measure = {.catalog = catalog,
                              .effort = effort,
                              .arena = arena,
                              .scratch = &scratch,
                              .growth = ret_growth,
                              .shares = MAP_INIT,
                              .templates = {.catalog = catalog, .work = COMPARED_MAX}};
    *ret_growth = (struct growth){0};
    for (size_t i = 0; i < write->item_count; i++) {
        measure_item(&measure, &write->items[i]);
        arena_reset(&scratch);
    }
    arena_deinit(&scratch);
    map_deinit(&measure.shares);
    *ret_scripted = measure.scripted && !measure.known;
}

/* --- Changes of the catalog --------------------------------------------------------------------------------------- */

static void set_share(struct growth *growth, struct slice index, size_t bytes, struct arena *arena)
{
    growth->shares = arena_alloc(arena, sizeof *growth->shares);
    growth->shares[0] = (struct growth_share){.index = index, .bytes = bytes, .most = bytes};
    growth->share_count = 1;
}

static bool contains(struct slice text, const char *word)
{
    return text.len > 0 && memmem(text.data, text.len, word, strlen(word)) != NULL;
}

static void measure_index(const struct catalog *catalog, const struct index_command *create, struct arena *arena,
                          struct growth *growth)
{
    if (catalog_index(catalog, create->name) != NULL || catalog_has_alias(catalog, create->name))
        return;
    struct templates templates = {.catalog = catalog, .work = COMPARED_MAX};
    struct template_sum sum = templates_of(&templates, create->name);
    sum.colons += colons(create->body);
    sum.bytes += create->body.len;
    sum.limit |= contains(create->body, "total_fields") || contains(create->body, "\\"); /* a name may be escaped */
    set_share(growth, create->name, new_index_bytes(&sum), arena);
}

/* Returns: whether a mapping changes its index. One that will be refused adds nothing. */
static bool mapping_adds(const struct catalog_index *index, const struct command *command, struct arena *arena)
{
    const struct index_command *put = &command->index;
    tl_cleanup(mapping_unrefp) struct mapping *merged = NULL;
    struct json_doc body;
    struct problem ignored;
    return json_parse(arena, put->body, command->dialect, JSON_DUPLICATES, &body, &ignored) == 0 &&
           mapping_merge(index->mapping, put->type, body.root, command->dialect, false, FIELDS_TEXTS_BOUNDED, arena,
                         &merged, &ignored) == 0 &&
           merged != index->mapping;
}

static void measure_mapping(const struct catalog *catalog, const struct command *command, enum growth_effort effort,
                            struct arena *arena, struct growth *growth)
{
    const struct index_command *put = &command->index;
    const struct catalog_index *index = catalog_index(catalog, put->name);
    if (index == NULL || (effort == GROWTH_EXACT && !mapping_adds(index, command, arena)))
        return;
    size_t bytes = colons(put->body) * NAMED_BYTES + put->body.len * BODY_FACTOR;
    set_share(growth, put->name, FIELD_BYTES + smaller(bytes, most_of(index) + put->body.len * BODY_FACTOR), arena);
}

static void measure_settings(const struct catalog *catalog, const struct index_command *put, struct arena *arena,
                             struct growth *growth)
{
    const struct catalog_index *index = catalog_index(catalog, put->name);
    if (index == NULL ||
        (put->body.len <= SETTINGS_SMALL_BYTES && settings_bytes(index->settings) <= SETTINGS_FEW_BYTES))
        return;
    set_share(growth, put->name, put->body.len * BODY_FACTOR, arena);
}

static size_t cluster_settings_growth(const struct catalog *catalog, struct slice body)
{
    const struct catalog_object *stored = catalog_object(catalog, CATALOG_CLUSTER, SLICE_LIT("settings"));
    bool few = stored == NULL || stored->body.len <= SETTINGS_FEW_BYTES;
    return few && body.len <= SETTINGS_SMALL_BYTES ? 0 : body.len * BODY_FACTOR;
}

static size_t json_bytes(yyjson_val *value)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (value != NULL)
        json_write(&text, value, DIALECT_7);
    return text.len;
}

/* Returns: the bytes of settings as a template has them: nested, whatever their form in the request. */
static size_t settings_bytes_nested(yyjson_val *json, struct arena *arena)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct settings settings;
    struct problem ignored;
    if (settings_parse(json, SLICE_LIT("index."), arena, &settings, &ignored) != 0)
        return 0; /* will be refused */
    settings_render(&settings, false, &text);
    return text.len;
}

/* Returns: the bytes of a template's object, without blanks; `part`: with settings, of which the catalog has a form. */
static size_t part_bytes(yyjson_val *part, struct arena *arena)
{
    yyjson_val *settings = json_get_lit(part, "settings");
    size_t bytes = json_bytes(part);
    return settings == NULL ? bytes : bytes - json_bytes(settings) + settings_bytes_nested(settings, arena);
}

static size_t template_bytes(yyjson_val *body, struct arena *arena)
{
    yyjson_val *inner = json_get_lit(body, "template"); /* of 5.x: its pattern */
    size_t bytes = part_bytes(body, arena);
    return yyjson_is_obj(inner) ? bytes - json_bytes(inner) + part_bytes(inner, arena) : bytes;
}

/* Returns: the bytes of a script's source and options; the source of a search template may be an object. */
static size_t script_bytes(yyjson_val *body, struct arena *arena)
{
    static const char *const names[] = {"source", "code", "inline"};
    yyjson_val *script = json_get_lit(body, "script");
    (void)arena;
    if (script == NULL)
        script = json_get_lit(body, "template");
    size_t bytes = yyjson_is_str(script) ? json_slice(script).len : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        yyjson_val *source = json_get(script, slice_from(names[i]));
        bytes += yyjson_is_str(source) ? json_slice(source).len : json_bytes(source);
    }
    return bytes + json_bytes(json_get_lit(script, "options"));
}

/* Returns: by how many bytes a template or script is larger than the one that it replaces. */
static size_t object_growth(const struct catalog *catalog, enum catalog_kind kind, const struct command *command,
                            size_t (*bytes_of)(yyjson_val *body, struct arena *arena), struct arena *arena)
{
    const struct object_command *put = &command->object;
    const struct catalog_object *stored = catalog_object(catalog, kind, put->name);
    struct json_doc body;
    struct problem ignored;
    if (stored == NULL)
        return put->body.len;
    if (json_parse(arena, put->body, command->dialect, JSON_DUPLICATES, &body, &ignored) != 0)
        return 0;
    return above(bytes_of(body.root, arena), stored->body.len + stored->options.len);
}

/* What a request changes of aliases, in bytes. `counted`: those of before, each once. */
struct alias_change {
    const struct catalog *catalog;
    enum dialect dialect;
    struct map counted;
    size_t added;
    size_t removed;
};

/* Counts an alias that the request replaces or removes, if it is there. */
static void count_removed(struct alias_change *change, const struct alias_action *action, struct arena *arena)
{
    const struct catalog_index *index = catalog_index(change->catalog, action->index);
    const struct catalog_alias *alias = index == NULL ? NULL : catalog_index_alias(index, action->alias);
    if (index == NULL || (alias == NULL && action->op != ALIAS_REMOVE_INDEX))
        return;
    struct slice name = action->op == ALIAS_REMOVE_INDEX ? SLICE_NONE : alias->name;
    if (map_put(&change->counted, arena_printf(arena, "%.*s/%.*s", SLICE_ARG(index->name), SLICE_ARG(name)), change) !=
        NULL)
        return;
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    if (alias != NULL)
        catalog_render_alias(alias, &body);
    change->removed += alias == NULL ? INDEX_BYTES : ALIAS_BYTES + name.len + body.len;
}

static void count_added(struct alias_change *change, const struct alias_action *action, struct arena *arena)
{
    struct json_doc body;
    struct problem ignored;
    bool empty = action->body.len == 0 ||
                 json_parse(arena, action->body, change->dialect, JSON_DUPLICATES, &body, &ignored) != 0;
    change->added += ALIAS_BYTES + action->alias.len + (empty ? 2 : json_bytes(body.root));
}

/* Returns: by how many bytes the aliases that are added exceed those that the same request replaces or removes. */
static size_t aliases_growth(const struct catalog *catalog, const struct command *command, struct arena *arena)
{
    struct alias_change change = {.catalog = catalog, .dialect = command->dialect, .counted = MAP_INIT};
    for (size_t i = 0; i < command->aliases.action_count; i++) {
        const struct alias_action *action = &command->aliases.actions[i];
        count_removed(&change, action, arena);
        if (action->op == ALIAS_ADD)
            count_added(&change, action, arena);
    }
    map_deinit(&change.counted);
    return above(change.added, change.removed);
}

void growth_measure(const struct catalog *catalog, const struct command *command, enum growth_effort effort,
                    struct arena *arena, struct growth *ret_growth, bool *ret_scripted)
{
    REQUIRE(catalog != NULL && command != NULL);
    size_t *other = &ret_growth->other_bytes;
    *ret_growth = (struct growth){0};
    *ret_scripted = false;
    switch (command->type) {
    case COMMAND_WRITE: growth_measure_write(catalog, &command->write, effort, arena, ret_growth, ret_scripted); break;
    case COMMAND_INDEX_CREATE: measure_index(catalog, &command->index, arena, ret_growth); break;
    case COMMAND_MAPPING_PUT: measure_mapping(catalog, command, effort, arena, ret_growth); break;
    case COMMAND_SETTINGS_PUT: measure_settings(catalog, &command->index, arena, ret_growth); break;
    case COMMAND_CLUSTER_SETTINGS_PUT: *other = cluster_settings_growth(catalog, command->object.body); break;
    case COMMAND_TEMPLATE_PUT:
        *other = BODY_FACTOR * object_growth(catalog, CATALOG_TEMPLATES, command, template_bytes, arena);
        break;
    case COMMAND_INDEX_TEMPLATE_PUT:
        *other = BODY_FACTOR * object_growth(catalog, CATALOG_INDEX_TEMPLATES, command, template_bytes, arena);
        break;
    case COMMAND_COMPONENT_PUT:
        *other = BODY_FACTOR * object_growth(catalog, CATALOG_COMPONENTS, command, template_bytes, arena);
        break;
    case COMMAND_SCRIPT_PUT:
        *other = SCRIPT_FACTOR * object_growth(catalog, CATALOG_SCRIPTS, command, script_bytes, arena);
        break;
    case COMMAND_ALIASES_UPDATE: *other = aliases_growth(catalog, command, arena); break;
    default: break;
    }
}
