/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices: creating them from templates and a request, changing, closing and deleting them.
 *
 * Deleting removes an index from the catalog at once. Its documents and entries stay for readers of
 * earlier timestamps. A record in the purge queue makes maintain.c remove them once they are below
 * the history limit.
 */
#include "core/catalog/index.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/rand.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/cluster_settings.h"
#include "core/catalog/counter.h"
#include "core/catalog/index_settings.h"
#include "core/catalog/purge.h"
#include "core/catalog/setting_kind.h"
#include "core/catalog/settings.h"
#include "core/command/command.h"
#include "core/feed/feed.h"
#include "core/step/core.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/each.h"
#include "json/merge.h"
#include "json/write.h"
#include "mapping/mapping.h"

/* --- Drafts ------------------------------------------------------------------------------------------------------- */

/*
 * Returns: whether a key is a parameter of a mapping's root. A mapping without such keys is keyed
 *   by type.
 */
static bool is_root_parameter(struct slice key)
{
    static const char *const names[] = {"properties",
                                        "dynamic",
                                        "dynamic_templates",
                                        "date_detection",
                                        "runtime",
                                        "numeric_detection",
                                        "dynamic_date_formats",
                                        "_source",
                                        "_routing",
                                        "_meta",
                                        "_all",
                                        "_field_names",
                                        "_size",
                                        "_parent",
                                        "_index",
                                        "enabled"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (slice_is(key, names[i]))
            return true;
    return false;
}

static bool names_types(yyjson_val *mappings)
{
    size_t i, max;
    yyjson_val *key, *value, *object = mappings;

    json_obj_foreach (object, i, max, key, value)
        if (is_root_parameter(json_slice(key)) || !yyjson_is_obj(value))
            return false;
    return yyjson_obj_size(mappings) > 0;
}

/*
 * Returns: the only type in the mappings, or else the type of the draft's document, or else `_doc`.
 */
static struct slice type_for(const struct index_draft *draft)
{
    if (draft->document_type.len > 0)
        return draft->document_type;
    if (draft->mappings != NULL && yyjson_obj_size(draft->mappings) == 1) /* before COMMAND_SINCE_TEMPLATES_MERGED */
        return json_slice(unsafe_yyjson_get_first(draft->mappings));
    return draft->type.data != NULL && !draft->types ? draft->type : SLICE_LIT("_doc");
}

/* Appends a template's mappings, converted to the draft's form. */
static void write_in_form(struct buf *buf, const struct index_draft *draft, yyjson_val *mappings)
{
    bool typed = names_types(mappings);
    yyjson_val *inside = json_get_lit(mappings, "_doc");

    if (typed == draft->typed || yyjson_obj_size(mappings) == 0) {
        json_write(buf, mappings, draft->dialect);
    } else if (typed) {
        if (inside == NULL)
            inside = unsafe_yyjson_get_next(unsafe_yyjson_get_first(mappings));
        json_write(buf, inside, draft->dialect);
    } else {
        buf_byte(buf, '{');
        buf_json_string(buf, type_for(draft));
        buf_byte(buf, ':');
        json_write(buf, mappings, draft->dialect);
        buf_byte(buf, '}');
    }
}

static int parse_again(struct core *core, struct index_draft *draft, struct buf *json, struct arena *arena,
                       yyjson_val **ret_root, struct problem *ret_problem)
{
    core__work_mapping(core, json->len / WORK_MAPPING_BYTES);
    struct slice text = arena_copy(arena, buf_as_slice(json));
    struct json_doc doc;
    int r = json_parse(arena, text, draft->dialect, JSON_DUPLICATES, &doc, ret_problem);

    buf_deinit(json);
    if (r == 0)
        *ret_root = doc.root;
    return r == 0 ? 0 : INDEX_REFUSED;
}

/* Levels at which mappings of composable templates are merged. */
enum { MERGE_TYPES, MERGE_DEFINITION, MERGE_FIELDS, MERGE_ALL };

static bool is_object_field(yyjson_val *field)
{
    yyjson_val *type = json_get_lit(field, "type");

    return yyjson_is_obj(field) && (type == NULL || slice_is(json_slice(type), "object"));
}

/* Refuses a field that is an object in only one of both mappings; *context: its name. */
static int merge_composed(void *context, int how, struct slice key, yyjson_val *base, yyjson_val *patch)
{
    struct slice *clash = context;

    if (how == MERGE_FIELDS && is_object_field(base) != is_object_field(patch))
        *clash = key;
    switch (how) {
    case MERGE_TYPES: return MERGE_DEFINITION;
    case MERGE_DEFINITION:
        return slice_is(key, "properties")          ? MERGE_FIELDS
               : slice_is(key, "_meta")             ? MERGE_ALL
               : slice_is(key, "dynamic_templates") ? JSON_MERGE_NAMED
                                                    : JSON_MERGE_REPLACE;
    case MERGE_FIELDS: return is_object_field(base) && is_object_field(patch) ? MERGE_DEFINITION : JSON_MERGE_REPLACE;
    default: return MERGE_ALL;
    }
}

/* As add_mappings() before COMMAND_SINCE_TEMPLATES_MERGED: writes and parses all that was added before. */
static int merge_mappings(struct core *core, struct index_draft *draft, yyjson_val *mappings, bool from_template,
                          struct arena *arena, struct problem *ret_problem)
{
    struct buf formed = BUF_INIT(MAPPING_BYTES_MAX), merged = BUF_INIT(MAPPING_BYTES_MAX);
    struct slice clash = SLICE_NONE;
    int r = 0;

    if (from_template) {
        write_in_form(&formed, draft, mappings);
        r = parse_again(core, draft, &formed, arena, &mappings, ret_problem);
    }
    if (r == 0 && draft->mappings != NULL) {
        if (draft->composed)
            json_merge_by(&merged, draft->mappings, mappings, draft->dialect, merge_composed, &clash,
                          draft->typed ? MERGE_TYPES : MERGE_DEFINITION);
        else
            json_merge(&merged, draft->mappings, mappings, draft->dialect);
        r = parse_again(core, draft, &merged, arena, &mappings, ret_problem);
    }
    if (r == 0 && clash.data != NULL) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "can't merge a non object mapping [%.*s] with an object mapping", SLICE_ARG(clash));
        r = INDEX_REFUSED;
    }
    if (r == 0)
        draft->mappings = mappings;
    return r;
}

/* Notes the types that the mappings of a draft name; type_for(). */
static void note_types(struct index_draft *draft, yyjson_val *mappings)
{
    size_t i, max;
    yyjson_val *key, *value;

    json_obj_foreach (mappings, i, max, key, value) {
        if (draft->type.data == NULL)
            draft->type = json_slice(key);
        draft->types |= !slice_equal(draft->type, json_slice(key));
    }
}

/* Returns: the mappings of a template in the draft's form; NULL: the problem is set. */
static yyjson_val *in_form(struct core *core, struct index_draft *draft, yyjson_val *mappings, struct arena *arena,
                           struct problem *ret_problem)
{
    bool typed = names_types(mappings);
    yyjson_val *inside = json_get_lit(mappings, "_doc"), *formed;

    if (typed == draft->typed || yyjson_obj_size(mappings) == 0)
        return mappings;
    if (typed)
        return inside != NULL ? inside : json_value_of(unsafe_yyjson_get_first(mappings));
    struct buf text = BUF_INIT(MAPPING_BYTES_MAX);
    write_in_form(&text, draft, mappings);
    return parse_again(core, draft, &text, arena, &formed, ret_problem) == 0 ? formed : NULL;
}

/* Adds mappings to a draft, which merge_parts() merges with those before. */
static int add_mappings(struct core *core, struct index_draft *draft, yyjson_val *mappings, bool from_template,
                        struct arena *arena, struct problem *ret_problem)
{
    if (core->command_version < COMMAND_SINCE_TEMPLATES_MERGED)
        return merge_mappings(core, draft, mappings, from_template, arena, ret_problem);
    if (from_template && (mappings = in_form(core, draft, mappings, arena, ret_problem)) == NULL)
        return INDEX_REFUSED;
    if (draft->typed)
        note_types(draft, mappings);
    draft->parts = arena_grow(arena, draft->parts, draft->part_count, &draft->part_capacity, sizeof(*draft->parts));
    draft->parts[draft->part_count++] = mappings;
    return 0;
}

/*
 * Merges the mappings of a draft's templates and of the request. All at once, so that the cost is in proportion to
 * them. Returns: 0; INDEX_REFUSED.
 */
static int merge_parts(struct core *core, struct index_draft *draft, struct arena *arena, struct problem *ret_problem)
{
    struct buf merged = BUF_INIT(MAPPING_BYTES_MAX);
    struct slice clash = SLICE_NONE;
    size_t count = draft->part_count;

    if (count == 0)
        return 0;
    draft->part_count = 0;
    draft->mappings = draft->parts[0];
    if (count == 1)
        return 0;
    json_merge_list(&merged, draft->parts, count, draft->dialect, draft->composed ? merge_composed : NULL, &clash,
                    draft->typed ? MERGE_TYPES : MERGE_DEFINITION);
    if (parse_again(core, draft, &merged, arena, &draft->mappings, ret_problem) != 0)
        return INDEX_REFUSED;
    if (clash.data == NULL)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "can't merge a non object mapping [%.*s] with an object mapping", SLICE_ARG(clash));
    return INDEX_REFUSED;
}

/* Flattens and checks the settings of a request. Returns: 0; INDEX_REFUSED. */
static int parse_settings(yyjson_val *json, enum setting_rules rules, struct arena *arena,
                          struct settings *ret_settings, struct problem *ret_problem)
{
    if (settings_parse(json, SLICE_LIT("index."), arena, ret_settings, ret_problem) != 0)
        return INDEX_REFUSED;
    return index_settings__check(ret_settings, false, rules, arena, ret_problem) == 0 ? 0 : INDEX_REFUSED;
}

static int refuse_settings(struct slice index, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "index [%.*s] would have more than [%d] settings, with those of its templates: leave some out, or "
                "remove some with null",
                SLICE_ARG(index), SETTINGS_KEYS_MAX);
    return INDEX_REFUSED;
}

/* Returns: whether settings have more bytes than those of an index may; not in commands before version 23. */
static bool settings_too_large(const struct core *core, const struct settings *settings)
{
    return core->command_version >= COMMAND_SINCE_CATALOG_WEIGHED &&
           settings_bytes(settings) > CATALOG_SETTING_BYTES_MAX;
}

static int refuse_settings_bytes(struct slice index, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the settings of index [%.*s] would have more than [%d] bytes, with those of its templates, and are "
                "written with each change of it",
                SLICE_ARG(index), CATALOG_SETTING_BYTES_MAX);
    return INDEX_REFUSED;
}

int index__draft_add(struct core *core, struct index_draft *draft, yyjson_val *json, bool from_template,
                     struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(core->open);
    yyjson_val *mappings = json_get_lit(json, "mappings");
    struct settings added;

    enum setting_rules rules = from_template ? SETTING_RULES_FIRST : setting__rules(core->command_version);
    if (parse_settings(json_get_lit(json, "settings"), rules, arena, &added, ret_problem) != 0)
        return INDEX_REFUSED;
    if (draft->dialect != DIALECT_5 && index_settings__check_removed(&added, rules, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    bool copied = core->command_version >= COMMAND_SINCE_ALIASES_CHECKED; /* then those of the templates before were */
    bool weighed = core->command_version >= COMMAND_SINCE_VALUES_WEIGHED;
    core__work_mapping(core, copied && !weighed ? draft->settings.count / WORK_SETTINGS_COPIED : 0);
    size_t moved = settings_apply(&draft->settings, &draft->settings_memory, &added, arena);
    core__work_mapping(core, weighed ? WORK_SETTING * added.count + moved / WORK_SETTINGS_MOVED : 0);
    if (draft->settings.count > SETTINGS_KEYS_MAX && core->command_version >= COMMAND_SINCE_TEMPLATES_MERGED)
        return refuse_settings(draft->name, arena, ret_problem);
    if (added.count > 0 && settings_too_large(core, &draft->settings))
        return refuse_settings_bytes(draft->name, arena, ret_problem);
    if (yyjson_is_obj(mappings) && add_mappings(core, draft, mappings, from_template, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    bool named = from_template && core->command_version >= COMMAND_SINCE_SETTING_LISTS;
    return alias__parse_all(core->catalog, json_get_lit(json, "aliases"), named ? draft->name : SLICE_NONE,
                            draft->dialect, arena, &draft->aliases, ret_problem);
}

/* --- Creating ----------------------------------------------------------------------------------------------------- */

static int refuse_existing(const struct catalog_index *index, enum dialect dialect, struct arena *arena,
                           struct problem *ret_problem)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);

    problem_set(ret_problem, arena, PROBLEM_RESOURCE_ALREADY_EXISTS, "%s", "");
    buf_lit(&reason, "index ["); /* in parts, since a name may contain NUL */
    buf_slice(&reason, index->name);
    buf_printf(&reason, "/%.*s] already exists", SLICE_ARG(index->uuid));
    ret_problem->reason = arena_copy(arena, buf_as_slice(&reason));
    buf_deinit(&reason);
    if (dialect == DIALECT_5)
        ret_problem->name = SLICE_LIT("index_already_exists_exception");
    buf_json_string(&quoted, index->name);
    problem_details(ret_problem, arena, "\"index_uuid\":\"%.*s\",\"index\":%.*s", SLICE_ARG(index->uuid),
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return INDEX_REFUSED;
}

static int check_free(struct core *core, const struct index_draft *draft, struct arena *arena,
                      struct problem *ret_problem)
{
    const struct catalog_index *existing = catalog_index(core->catalog, draft->name);

    if (existing != NULL)
        return refuse_existing(existing, draft->dialect, arena, ret_problem);
    if (catalog_check_index_name(draft->name, draft->dialect, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    if (alias__exists(core, draft->name)) {
        problem_set(ret_problem, arena, PROBLEM_INVALID_INDEX_NAME,
                    "Invalid index name [%.*s], already exists as alias", SLICE_ARG(draft->name));
        return INDEX_REFUSED;
    }
    if (catalog_index_count(core->catalog) >= CATALOG_INDICES_MAX) {
        problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED, "there are %d indices, the most there may be",
                    CATALOG_INDICES_MAX);
        return INDEX_REFUSED;
    }
    return 0;
}

/* Returns: a unique uuid of 22 characters, derived from timestamp and index number. */
static struct slice make_uuid(tl_ts ts, uint32_t number, struct arena *arena)
{
    REQUIRE(number != 0);
    char uuid[22];
    struct rng rng;

    rng_init(&rng, ts ^ (uint64_t)number << 53);
    for (size_t i = 0; i < sizeof(uuid); i++)
        uuid[i] = base64_url_digit(rng_below(&rng, 64));
    return arena_copy(arena, slice_make(uuid, sizeof(uuid)));
}

static void set_default(struct settings *settings, struct arena *arena, struct slice key, const char *text)
{
    if (settings_get(settings, key).data == NULL)
        settings_set(settings, arena, key, slice_from(text));
}

/* Returns: how many shards an index has, with copies. */
static uint64_t shards_of(const struct catalog_index *index)
{
    return (uint64_t)index->shard_count * (1 + (uint64_t)index->replica_count);
}

static uint64_t shards_of_settings(const struct settings *settings)
{
    uint64_t shards, replicas;

    return slice_to_u64(settings_get_lit(settings, "index.number_of_shards"), &shards) &&
                   slice_to_u64(settings_get_lit(settings, "index.number_of_replicas"), &replicas)
               ? shards * (1 + replicas)
               : 0;
}

static void complete_settings(struct index_draft *draft, uint64_t created_ms, struct arena *arena)
{
    REQUIRE(draft->uuid.len > 0);
    bool five = draft->dialect == DIALECT_5;
    struct settings *settings = &draft->settings;

    set_default(settings, arena, SLICE_LIT("index.number_of_shards"), five ? "5" : "1");
    set_default(settings, arena, SLICE_LIT("index.number_of_replicas"), "1");
    settings_set(settings, arena, SLICE_LIT("index.creation_date"),
                 arena_printf(arena, "%llu", (unsigned long long)created_ms));
    settings_set(settings, arena, SLICE_LIT("index.uuid"), draft->uuid);
    settings_set(settings, arena, SLICE_LIT("index.version.created"),
                 five ? SLICE_LIT("5061699") : SLICE_LIT("7100299"));
    settings_set(settings, arena, SLICE_LIT("index.provided_name"), draft->name);
}

/*
 * Checks cluster.max_shards_per_node, as Elasticsearch does before it creates or opens an index or
 * adds replicas; without the setting there is no such limit. Returns: 0; INDEX_REFUSED.
 */
static int check_shards(struct core *core, uint64_t adds, struct arena *arena, struct problem *ret_problem)
{
    size_t known, count = catalog_index_count(core->catalog);
    uint64_t limit, most, hosts = 0, open = 0;

    if (setting__rules(core->command_version) < SETTING_RULES_FIXED ||
        !slice_to_u64(cluster_setting(core->catalog, "cluster.max_shards_per_node", arena), &limit))
        return 0;
    const struct core_host *host = core_hosts(core, &known);
    for (size_t i = 0; i < known; i++)
        hosts += host[i].life != 0;
    if (__builtin_mul_overflow(limit, hosts > 0 ? hosts : 1, &most))
        most = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct catalog_index *index = catalog_index_at(core->catalog, i);
        if (!index->closed)
            open += shards_of(index);
    }
    core__work_mapping(core, count * WORK_LOCK);
    if (adds == 0 || open + adds <= most)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_VALIDATION,
                "Validation Failed: 1: this action would add [%llu] total shards, but this cluster currently has "
                "[%llu]/[%llu] maximum shards open;",
                (unsigned long long)adds, (unsigned long long)open, (unsigned long long)most);
    return INDEX_REFUSED;
}

/* Returns: settings without index.mapping.* if they have analyzers: those did not count in old commands. */
static struct settings without_limits(const struct settings *settings, struct arena *arena)
{
    struct settings rest = {arena_alloc(arena, (settings->count + 1) * sizeof *rest.items), 0};
    bool analysis = false;

    for (size_t i = 0; i < settings->count; i++) {
        analysis |= slice_starts_with(settings->items[i].key, SLICE_LIT("index.analysis."));
        if (!slice_starts_with(settings->items[i].key, SLICE_LIT("index.mapping.")))
            rest.items[rest.count++] = settings->items[i];
    }
    return analysis ? rest : *settings;
}

/* Returns: settings as JSON, for the mapping layer. */
static yyjson_val *settings_json(const struct core *core, const struct settings *settings, struct arena *arena)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc = {0};
    struct settings rest;

    if (core->command_version < COMMAND_SINCE_LIMITS_OF_ANALYSED) {
        rest = without_limits(settings, arena);
        settings = &rest;
    }
    settings_render(settings, false, &buf);
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return json_parse_stored(arena, text, &doc) == 0 ? doc.root : NULL;
}

static enum field_counting counting_of(const struct core *core)
{
    return core->command_version >= COMMAND_SINCE_TEXTS_BOUNDED        ? FIELDS_TEXTS_BOUNDED
           : core->command_version >= COMMAND_SINCE_DYNAMIC_BOUNDED    ? FIELDS_BOUNDED
           : core->command_version >= COMMAND_SINCE_COUNTED_PROPERTIES ? FIELDS_COUNTED_FIRST
                                                                       : FIELDS_COUNTED_LAST;
}

static int make_mapping(struct core *core, struct index_draft *draft, struct arena *arena, struct mapping **ret_mapping,
                        struct problem *ret_problem)
{
    bool first = core->command_version < COMMAND_SINCE_DATE_RULES || draft->dialect == DIALECT_5;
    enum date_rules dates = first ? DATE_RULES_FIRST : DATE_RULES_7_10;
    tl_cleanup(mapping_unrefp) struct mapping *empty = NULL;

    if (merge_parts(core, draft, arena, ret_problem) != 0 ||
        mapping_new(settings_json(core, &draft->settings, arena), dates, arena, &empty, ret_problem) != 0)
        return INDEX_REFUSED;
    if (draft->mappings == NULL) {
        *ret_mapping = tl_steal(empty);
        return 0;
    }
    if (mapping_merge_all(empty, draft->mappings, draft->dialect, draft->typed, counting_of(core), arena, ret_mapping,
                          ret_problem) != 0)
        return INDEX_REFUSED;
    core__work_mapping(core, core__copied_fields(core, *ret_mapping) * WORK_FIELD);
    return 0;
}

int index__draft_check(struct core *core, struct index_draft *draft, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(core->open);
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;

    return make_mapping(core, draft, arena, &mapping, ret_problem);
}

/*
 * Creates an index in the open unit.
 * Returns: 0; INDEX_REFUSED, nothing was created.
 */
static int create_index(struct core *core, struct index_draft *draft, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(core->open);
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    struct catalog_index_spec spec = {.name = draft->name,
                                      .dialect = draft->dialect,
                                      .created_ms = core->ts / TL_MS,
                                      .may_have_routings = core->command_version < COMMAND_SINCE_NO_ROUTING_MARK};

    if (check_free(core, draft, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    spec.number = counters__take_index(&core->counters);
    if (draft->uuid.len == 0)
        draft->uuid = make_uuid(core->ts, spec.number, arena);
    complete_settings(draft, spec.created_ms, arena);
    if (setting__rules(core->command_version) >= SETTING_RULES_FIXED) {
        index_settings__expand(&draft->settings, arena);
        if (index_settings__check_routing(&draft->settings, arena, ret_problem) != 0)
            return INDEX_REFUSED;
    }
    if (check_shards(core, shards_of_settings(&draft->settings), arena, ret_problem) != 0)
        return INDEX_REFUSED;
    if (draft->aliases.count > 0 && (alias__check_count(core, draft->aliases.count, arena, ret_problem) != 0 ||
                                     alias__check_bytes(core, draft->name, &draft->aliases, arena, ret_problem) != 0))
        return INDEX_REFUSED;
    if (make_mapping(core, draft, arena, &mapping, ret_problem) != 0 ||
        alias__check_new(core, draft->name, &draft->aliases, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    spec.uuid = draft->uuid;
    spec.settings = &draft->settings;
    spec.mapping = mapping;
    spec.aliases = draft->aliases.items;
    spec.alias_count = draft->aliases.count;
    spec.counters = counters__of(&core->counters, spec.number)->shared;
    catalog_change__put_index(core, &spec, FEED_INDEX_CREATED);
    return 0;
}

int index__auto_create(struct core *core, struct slice name, struct slice type, enum dialect dialect,
                       struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(core->open && arena != &core->scratch); /* that is rewound */
    struct index_draft draft = {.name = name, .dialect = dialect, .typed = dialect == DIALECT_5, .document_type = type};
    struct arena_mark mark = arena_mark(&core->scratch);
    uint64_t before = core->mapping_work;
    struct problem problem;
    int r = catalog_check_index_name(name, dialect, &core->scratch, &problem);

    if (r == 0)
        r = template__apply(core, &draft, &core->scratch, &problem);
    if (r == 0)
        r = create_index(core, &draft, &core->scratch, &problem);
    if (r != 0)
        problem_copy(ret_problem, &problem, arena);
    arena_rewind(&core->scratch, mark);
    core__note_indivisible(core, core->mapping_work - before);
    return r == 0 ? 0 : INDEX_REFUSED;
}

int index__auto_mapping(struct core *core, struct slice name, struct slice type, enum dialect dialect,
                        struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem)
{
    REQUIRE(*ret_mapping == NULL); /* else a reference is lost */
    struct index_draft draft = {.name = name, .dialect = dialect, .typed = dialect == DIALECT_5, .document_type = type};

    if (template__apply(core, &draft, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    return make_mapping(core, &draft, arena, ret_mapping, ret_problem);
}

void index__put_mapping(struct core *core, const struct catalog_index *index, const struct mapping *mapping,
                        enum dialect dialect)
{
    REQUIRE(core->open && mapping != NULL);
    if (dialect == index->dialect || mapping_type_count(index->mapping) > 0 || mapping_type_count(mapping) == 0) {
        catalog_change__put_mapping(core, index->number, mapping);
        return;
    }
    struct catalog_index_spec spec = catalog__spec(index);
    spec.dialect = dialect;
    spec.mapping = mapping;
    catalog_change__put_index(core, &spec, FEED_MAPPING);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static int parse_body(struct slice body, enum dialect dialect, struct arena *arena, struct json_doc *ret_doc,
                      struct problem *ret_problem)
{
    *ret_doc = (struct json_doc){0};
    if (body.data == NULL || json_parse(arena, body, dialect, JSON_DUPLICATES, ret_doc, ret_problem) == 0)
        return 0;

    struct problem *cause = arena_alloc(arena, sizeof(*cause));
    *cause = *ret_problem;
    problem_set(ret_problem, arena, PROBLEM_PARSE, "Failed to parse content to map");
    ret_problem->caused_by = cause;
    return INDEX_REFUSED;
}

/*
 * Returns: whether the body of a create has any of its three sections; in 5.x one without them is
 *   all settings.
 */
static bool has_sections(yyjson_val *body)
{
    return json_get_lit(body, "settings") != NULL || json_get_lit(body, "mappings") != NULL ||
           json_get_lit(body, "aliases") != NULL;
}

/*
 * Refuses a section that is not an object. 7.10 has its own text for settings; for others Java's.
 */
static int refuse_section(struct slice name, enum dialect dialect, struct arena *arena, struct problem *ret_problem)
{
    if (slice_is(name, "settings") && dialect != DIALECT_5) {
        problem_set(ret_problem, arena, PROBLEM_PARSE, "key [settings] must be an object");
        return INDEX_REFUSED;
    }
    problem_set(ret_problem, arena, PROBLEM_CLASS_CAST, "[%.*s] must be an object", SLICE_ARG(name));
    ret_problem->status = 500;
    return INDEX_REFUSED;
}

/* Returns: whether a member of the section is not an object: {"name": 5}. */
static bool holds_no_objects(yyjson_val *section)
{
    size_t i, max;
    yyjson_val *key, *value;

    json_obj_foreach (section, i, max, key, value) {
        if (!yyjson_is_obj(value))
            return true;
    }
    return false;
}

static int check_sections(const struct index_command *index, enum dialect dialect, yyjson_val *body,
                          struct arena *arena, struct problem *ret_problem)
{
    size_t i, max;
    yyjson_val *key, *value, *mappings = json_get_lit(body, "mappings");

    json_obj_foreach (body, i, max, key, value) {
        struct slice name = json_slice(key);
        bool known = slice_is(name, "settings") || slice_is(name, "mappings") || slice_is(name, "aliases");
        bool null = yyjson_is_null(value) && (dialect == DIALECT_5 || !slice_is(name, "settings"));
        if (known && !yyjson_is_obj(value) && !null)
            return refuse_section(name, dialect, arena, ret_problem);
        if (slice_is(name, "aliases") && holds_no_objects(value)) {
            problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "No alias is specified");
            return INDEX_REFUSED;
        }
        if (known || dialect == DIALECT_5)
            continue;
        problem_set(ret_problem, arena, PROBLEM_PARSE, "unknown key [%.*s] for create index", SLICE_ARG(name));
        return INDEX_REFUSED;
    }
    if (dialect != DIALECT_5 && !index->include_type_name && yyjson_obj_size(mappings) == 1 &&
        yyjson_is_obj(json_get_lit(mappings, "_doc"))) {
        problem_set(
            ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
            "The mapping definition cannot be nested under a type [_doc] unless include_type_name is set to true.");
        return INDEX_REFUSED;
    }
    return 0;
}

/* Adds a body of 5.x without sections as settings. */
static int add_bare_settings(const struct core *core, struct index_draft *draft, yyjson_val *body, struct arena *arena,
                             struct problem *ret_problem)
{
    struct settings added;

    if (parse_settings(body, setting__rules(core->command_version), arena, &added, ret_problem) != 0)
        return INDEX_REFUSED;
    draft->settings = settings_merge(&draft->settings, &added, false, arena);
    return 0;
}

/* Checks the settings before the name, as 7.10 does. */
static int check_settings(const struct core *core, yyjson_val *body, struct arena *arena, bool *ret_hidden,
                          struct problem *ret_problem)
{
    struct settings requested;
    int r = parse_settings(json_get_lit(body, "settings"), setting__rules(core->command_version), arena, &requested,
                           ret_problem);

    *ret_hidden = r == 0 && slice_is(settings_get(&requested, SLICE_LIT("index.hidden")), "true");
    return r;
}

/* Builds the draft of an INDEX_CREATE: the matching templates, then the request. */
static int draft_command(struct core *core, const struct command *command, struct arena *arena,
                         struct index_draft *draft, struct problem *problem)
{
    const struct index_command *index = &command->index;
    struct json_doc body;
    int r = parse_body(index->body, command->dialect, arena, &body, problem);

    core__work_mapping(core, index->body.len / WORK_MAPPING_BYTES);
    *draft = (struct index_draft){.name = index->name,
                                  .uuid = index->uuid,
                                  .dialect = command->dialect,
                                  .typed = command->dialect == DIALECT_5 || index->include_type_name};
    if (r == 0)
        r = check_sections(index, command->dialect, body.root, arena, problem);
    if (r == 0 && command->dialect != DIALECT_5)
        r = check_settings(core, body.root, arena, &draft->hidden, problem);
    if (r == 0)
        r = check_free(core, draft, arena, problem);
    if (r == 0)
        r = template__apply(core, draft, arena, problem);
    if (r == 0 && command->dialect == DIALECT_5 && !has_sections(body.root))
        r = add_bare_settings(core, draft, body.root, arena, problem);
    else if (r == 0)
        r = index__draft_add(core, draft, body.root, false, arena, problem);
    return r;
}

static struct index_plan plan_of(struct core *core, struct index_draft *draft, struct arena *arena)
{
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    struct index_plan plan = {.alias_count = draft->aliases.count};
    struct problem problem;

    plan.aliases = arena_alloc(arena, (plan.alias_count + 1) * sizeof(*plan.aliases));
    for (size_t i = 0; i < plan.alias_count; i++)
        plan.aliases[i] = arena_copy(arena, draft->aliases.items[i].name);
    if (make_mapping(core, draft, &core->scratch, &mapping, &problem) == 0)
        plan.tree = mapping_path_field(mapping) != NULL;
    return plan;
}

struct index_plan index__plan(struct core *core, const struct command *command)
{
    REQUIRE(core->open && command->type == COMMAND_INDEX_CREATE);
    struct index_draft draft;
    struct problem problem;

    if (draft_command(core, command, &core->arena, &draft, &problem) != 0)
        return (struct index_plan){0};
    return plan_of(core, &draft, &core->arena);
}

struct index_plan index__plan_auto(struct core *core, struct slice name, struct slice type, enum dialect dialect)
{
    REQUIRE(core->open);
    struct index_draft draft = {.name = name, .dialect = dialect, .typed = dialect == DIALECT_5, .document_type = type};
    struct arena_mark mark = arena_mark(&core->scratch);
    uint64_t before = core->mapping_work;
    struct index_plan plan = {0};
    struct problem problem;

    if (catalog_check_index_name(name, dialect, &core->scratch, &problem) == 0 &&
        template__apply(core, &draft, &core->scratch, &problem) == 0)
        plan = plan_of(core, &draft, &core->arena);
    arena_rewind(&core->scratch, mark);
    core__note_indivisible(core, core->mapping_work - before);
    return plan;
}

int core__do_index_create(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_INDEX_CREATE);
    const struct index_command *index = &command->index;
    struct index_draft draft;
    struct arena *arena = &command->arena;
    struct problem *problem = &command->problem;
    int r = draft_command(core, command, arena, &draft, problem);

    if (r == 0)
        r = create_index(core, &draft, arena, problem);
    if (r == 0 && core->command_version < COMMAND_SINCE_ALIASES_CHECKED)
        r = alias__check(core, catalog_index(core->catalog, index->name), NULL, arena, problem);
    if (r != 0)
        core__rollback(core);
    core__note_indivisible(core, core->mapping_work); /* with that of its plan */
    return 0;
}

void index__delete(struct core *core, const struct catalog_index *index)
{
    REQUIRE(core->open && index != NULL);
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    uint32_t number = index->number;

    buf_u32be(&bytes, number);
    store_batch_put(core->batch, SPACE_SYSTEM, purge_key(&key, PURGE_INDEX, core->ts, buf_as_slice(&bytes)),
                    SLICE_LIT(""));
    catalog_change__drop_index(core, number);
}

/* Returns: the index that the command names; NULL: the problem is set. */
static const struct catalog_index *named_index(struct core *core, struct command *command)
{
    const struct catalog_index *index = catalog_index(core->catalog, command->index.name);

    if (index == NULL)
        catalog_problem_missing(&command->arena, command->index.name, true, command->dialect, &command->problem);
    return index;
}

int index__check_block(const struct catalog_index *index, bool removal, struct arena *arena,
                       struct problem *ret_problem)
{
    REQUIRE(arena != NULL && ret_problem != NULL);
    const struct catalog_block *block = index->metadata_block;

    if (block == NULL || (removal && block->spares_removal))
        return 0;
    catalog_problem_blocked(arena, index->name, block, ret_problem);
    return INDEX_REFUSED;
}

int core__do_index_delete(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_INDEX_DELETE);
    const struct catalog_index *index = named_index(core, command);

    if (index != NULL && index__check_block(index, true, &command->arena, &command->problem) == 0)
        index__delete(core, index);
    return 0;
}

/*
 * Returns: the settings after closing or opening an index. 7.10 adds index.verified_before_close to
 *   those of a closed one.
 */
static struct settings settings_with_close(const struct settings *before, struct command *command)
{
    static const struct slice key = {"index.verified_before_close", sizeof("index.verified_before_close") - 1};
    struct setting none = {.key = key};
    struct settings changes = {&none, 1};
    struct settings settings = settings_merge(before, &changes, false, &command->arena);

    if (command->index.close && command->dialect == DIALECT_7)
        settings_set(&settings, &command->arena, key, SLICE_LIT("true"));
    return settings;
}

int core__do_index_state(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_INDEX_STATE);
    const struct catalog_index *index = named_index(core, command);

    if (index == NULL || index__check_block(index, false, &command->arena, &command->problem) != 0)
        return 0;
    if (index->closed && !command->index.close &&
        check_shards(core, shards_of(index), &command->arena, &command->problem) != 0)
        return 0;
    if (index->closed != command->index.close) {
        struct catalog_index_spec spec = catalog__spec(index);
        struct settings settings = settings_with_close(index->settings, command);
        spec.closed = command->index.close;
        spec.settings = &settings;
        catalog_change__put_index(core, &spec, FEED_SETTINGS);
    }
    return 0;
}

/* Returns: the dialect of the sender of a mapping: a type given only in the path is 5.x. */
static enum dialect client_of(const struct index_command *put)
{
    return put->include_type_name || put->type.len == 0 || slice_is(put->type, "_doc") ? DIALECT_7 : DIALECT_5;
}

int index__check_type(const struct catalog_index *index, struct slice type, struct arena *arena,
                      struct problem *ret_problem)
{
    REQUIRE(index->mapping != NULL);
    if (index->dialect == DIALECT_5 || mapping_type_count(index->mapping) == 0 ||
        mapping_type(index->mapping, type) != NULL)
        return 0;
    struct slice first = mapping_type_at(index->mapping, 0)->name;
    bool in_order = slice_compare(first, type) < 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Rejecting mapping update to [%.*s] as the final mapping would have more than 1 type: [%.*s, %.*s]",
                SLICE_ARG(index->name), SLICE_ARG(in_order ? first : type), SLICE_ARG(in_order ? type : first));
    return INDEX_REFUSED;
}

int core__do_mapping_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_MAPPING_PUT);
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    const struct catalog_index *index = named_index(core, command);
    const struct index_command *put = &command->index;
    struct json_doc body;

    core__work_indivisible(core, put->body.len / WORK_MAPPING_BYTES);
    if (index == NULL || index__check_block(index, false, &command->arena, &command->problem) != 0 ||
        parse_body(put->body, command->dialect, &command->arena, &body, &command->problem) != 0)
        return 0;
    if (command->dialect == DIALECT_7 && !put->include_type_name && yyjson_obj_size(body.root) == 1 &&
        yyjson_is_obj(json_get_lit(body.root, "_doc"))) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Types cannot be provided in put mapping requests, unless the include_type_name parameter is set "
                    "to true.");
        return 0;
    }
    if (put->type.len > 0 && index__check_type(index, put->type, &command->arena, &command->problem) != 0)
        return 0;
    if (mapping_merge(index->mapping, put->type, body.root, command->dialect, false, counting_of(core), &command->arena,
                      &mapping, &command->problem) == 0 &&
        mapping != index->mapping)
        index__put_mapping(core, index, mapping, client_of(put));
    return 0;
}

static bool static_change(const struct catalog_index *index, const struct settings *changes, bool keep_existing,
                          struct command *command)
{
    struct slice key = index_settings__static(changes);

    if (key.data == NULL || (keep_existing && settings_find(index->settings, key) != NULL))
        return false;
    if (index->closed && !slice_is(key, "index.number_of_shards"))
        return false;
    if (index->closed)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "final %.*s setting [%.*s], not updateable", SLICE_ARG(index->name), SLICE_ARG(key));
    else
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Can't update non dynamic settings [[%.*s]] for open indices [[%.*s/%.*s]]", SLICE_ARG(key),
                    SLICE_ARG(index->name), SLICE_ARG(index->uuid));
    return true;
}

/* Flattens the settings of a SETTINGS_PUT. Returns: 0; else *ret_problem has the reason. */
static int parse_changes(const struct command *command, struct arena *arena, struct settings *ret_changes,
                         struct problem *ret_problem)
{
    struct json_doc body;

    if (parse_body(command->index.body, command->dialect, arena, &body, ret_problem) != 0)
        return SETTINGS_REFUSED;
    yyjson_val *inner = json_get_lit(body.root, "settings");
    return settings_parse(yyjson_is_obj(inner) ? inner : body.root, SLICE_LIT("index."), arena, ret_changes,
                          ret_problem);
}

bool index__blocks_writes(struct core *core, const struct command *command)
{
    struct settings changes;
    struct problem problem = {0};

    return command->type == COMMAND_SETTINGS_PUT && parse_changes(command, &core->arena, &changes, &problem) == 0 &&
           catalog_block_of(&changes, false) != NULL;
}

/*
 * Returns: whether the settings include a block, which a blocked index accepts so that the block
 *   can be removed.
 */
static bool changes_the_block(const struct settings *changes)
{
    return settings_find(changes, SLICE_LIT("index.blocks.read_only")) != NULL ||
           settings_find(changes, SLICE_LIT("index.blocks.read_only_allow_delete")) != NULL;
}

/*
 * The default of 60 s is measured by the monotonic clock, since maintenance gives the timestamp of
 * that age. A longer time is at least that, and a shorter one at most; otherwise they are measured
 * by timestamps, which a step of the system clock may advance.
 */
tl_ts index__deletes_horizon(const struct core *core, const struct catalog_index *index, tl_ts ts)
{
    tl_ts tombstones = core->purge_horizons.tombstones;

    if (index == NULL || index->gc_deletes_us == (int64_t)CORE_TOMBSTONE_US)
        return index != NULL && index->deletes_forgotten > tombstones ? index->deletes_forgotten : tombstones;
    if (index->gc_deletes_us < 0)
        return TL_TS_MAX;
    uint64_t age = (uint64_t)index->gc_deletes_us;
    tl_ts horizon = ts > age ? ts - age : 0;
    if (age > CORE_TOMBSTONE_US ? horizon > tombstones : horizon < tombstones)
        horizon = tombstones;
    return horizon > index->deletes_forgotten ? horizon : index->deletes_forgotten;
}

/* Returns: the horizon that stays when index.gc_deletes changes, so that no delete counts again. */
static tl_ts forgotten_by(const struct core *core, const struct catalog_index *index, const struct settings *merged)
{
    if (core->command_version < COMMAND_SINCE_GC_DELETES ||
        index_settings__gc_deletes_us(merged) == index->gc_deletes_us)
        return index->deletes_forgotten;
    tl_ts horizon = index__deletes_horizon(core, index, core->ts);
    return horizon < core->ts ? horizon : core->ts;
}

int core__do_settings_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SETTINGS_PUT);
    const struct catalog_index *index = named_index(core, command);
    struct arena *arena = &command->arena;
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    struct settings changes, merged;

    core__work_indivisible(core, command->index.body.len / WORK_BYTES);
    if (index == NULL || parse_changes(command, arena, &changes, &command->problem) != 0 ||
        (!changes_the_block(&changes) && index__check_block(index, false, arena, &command->problem) != 0) ||
        index_settings__check(&changes, true, setting__rules(core->command_version), arena, &command->problem) != 0 ||
        static_change(index, &changes, command->index.preserve_existing, command))
        return 0;
    merged = settings_merge(index->settings, &changes, command->index.preserve_existing, arena);
    if (merged.count > SETTINGS_KEYS_MAX && merged.count > index->settings->count &&
        core->command_version >= COMMAND_SINCE_TEMPLATES_MERGED) {
        (void)refuse_settings(index->name, arena, &command->problem);
        return 0;
    }
    if (settings_too_large(core, &merged) && settings_bytes(&merged) > settings_bytes(index->settings)) {
        (void)refuse_settings_bytes(index->name, arena, &command->problem);
        return 0;
    }
    set_default(&merged, arena, SLICE_LIT("index.number_of_replicas"), "1");
    if (setting__rules(core->command_version) >= SETTING_RULES_FIXED)
        index_settings__expand(&merged, arena);
    uint64_t shards = shards_of_settings(&merged);
    if (!index->closed && shards > shards_of(index) &&
        check_shards(core, shards - shards_of(index), arena, &command->problem) != 0)
        return 0;
    if (mapping_apply_settings(index->mapping, settings_json(core, &merged, arena), arena, &mapping,
                               &command->problem) != 0)
        return 0;
    struct catalog_index_spec spec = catalog__spec(index);
    spec.settings = &merged;
    spec.mapping = mapping;
    spec.deletes_forgotten = forgotten_by(core, index, &merged);
    catalog_change__put_index(core, &spec, FEED_SETTINGS);
    return 0;
}
