/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index templates of the kind that 5.x and 7.x share: patterns, an order, settings, mappings,
 * aliases.
 *
 * A template is stored as JSON as GET renders it: {"order", "version", "index_patterns",
 * "settings", "mappings", "aliases"}.
 */
#include <stdlib.h>

#include "base/check.h"
#include "core/catalog/alias.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/index.h"
#include "core/catalog/index_settings.h"
#include "core/catalog/setting_kind.h"
#include "core/catalog/settings.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/each.h"
#include "json/filter.h"
#include "json/write.h"
#include "mapping/mapping.h"

enum { PATTERNS_MAX = 1000 };

static int refuse_template(struct command *command, const char *reason)
{
    problem_set(&command->problem, &command->arena, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: 1: %s;",
                reason);
    return INDEX_REFUSED;
}

/* Returns: the patterns of a body: "index_patterns", or "template" in 5.x; a text or a list. */
static yyjson_val *patterns_of(yyjson_val *body)
{
    yyjson_val *patterns = json_get_lit(body, "index_patterns");

    return patterns != NULL ? patterns : json_get_lit(body, "template");
}

static void write_patterns(struct json_writer *writer, yyjson_val *patterns)
{
    json_key(writer, "index_patterns");
    if (yyjson_is_arr(patterns)) {
        json_value(writer, patterns, DIALECT_7);
        return;
    }
    json_begin(writer, '[');
    json_string(writer, json_slice(patterns));
    json_end(writer, ']');
}

static int64_t order_of(yyjson_val *body)
{
    yyjson_val *order = json_get_lit(body, "order");
    int64_t value;

    if (yyjson_is_int(order))
        return yyjson_get_sint(order);
    return yyjson_is_str(order) && slice_to_i64(json_slice(order), &value) ? value : 0;
}

/* Settings and aliases of a body, validated as for an index. */
struct template_parts {
    struct settings settings;
    struct alias_set aliases;
};

/* Checks a type of a template, or its mappings without a type, for what a mapping refuses when an index is made. */
static int check_dynamic(struct command *command, yyjson_val *type)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    yyjson_val *templates = json_get_lit(type, "dynamic_templates");
    size_t formats = yyjson_arr_size(json_get_lit(type, "dynamic_date_formats"));
    size_t other = yyjson_arr_size(json_get_lit(type, "date_formats")); /* its other name in a mapping */

    if (templates != NULL)
        json_write(&buf, templates, command->dialect);
    bool few = buf.len <= MAPPING_DYNAMIC_TEMPLATES_BYTES_MAX && formats <= MAPPING_DYNAMIC_FORMATS_MAX &&
               other <= MAPPING_DYNAMIC_FORMATS_MAX;
    buf_deinit(&buf);
    if (few)
        return 0;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "template [%.*s] has more than [%d] bytes of [dynamic_templates] or [%d] [dynamic_date_formats], with "
                "which each new field of a document is compared: give fewer, and map those fields in [properties] "
                "whose names are known",
                SLICE_ARG(command->object.name), MAPPING_DYNAMIC_TEMPLATES_BYTES_MAX, MAPPING_DYNAMIC_FORMATS_MAX);
    return INDEX_REFUSED;
}

static int check_mappings(struct core *core, struct command *command, yyjson_val *mappings)
{
    size_t i, max;
    yyjson_val *key, *type;

    if (core->command_version < COMMAND_SINCE_DYNAMIC_BOUNDED || !yyjson_is_obj(mappings))
        return 0;
    if (check_dynamic(command, mappings) != 0)
        return INDEX_REFUSED;
    json_obj_foreach (mappings, i, max, key, type)
        if (check_dynamic(command, type) != 0)
            return INDEX_REFUSED;
    return 0;
}

static size_t compared_bytes(yyjson_val *patterns)
{
    size_t bytes = 0, i, max;
    yyjson_val *pattern;

    if (yyjson_is_str(patterns))
        return json_wildcard_bytes(json_slice(patterns), CATALOG_NAME_BYTES_MAX);
    json_arr_foreach (patterns, i, max, pattern)
        bytes += json_wildcard_bytes(json_slice(pattern), CATALOG_NAME_BYTES_MAX);
    return bytes;
}

/* The name of each new index is compared with the patterns of all templates: together they take a part of a step. */
static int check_all_patterns(struct core *core, struct command *command, yyjson_val *patterns)
{
    const struct catalog_object *before = catalog_object(core->catalog, CATALOG_TEMPLATES, command->object.name);
    size_t all = 0, own = before == NULL ? 0 : before->matching->compared, now = compared_bytes(patterns);

    if (core->command_version < COMMAND_SINCE_PATTERNS_WEIGHED || now <= own)
        return 0;
    for (size_t i = 0; i < catalog_object_count(core->catalog, CATALOG_TEMPLATES); i++)
        all += catalog_object_at(core->catalog, CATALOG_TEMPLATES, i)->matching->compared;
    if (all - own + now <= CATALOG_COMPARED_BYTES_MAX)
        return 0;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the index patterns of all templates would be so many that comparing the name of each new index with "
                "them takes too long: use fewer, or such as have one [*]");
    return INDEX_REFUSED;
}

static int check_parts(struct core *core, struct command *command, yyjson_val *body, struct template_parts *parts)
{
    yyjson_val *patterns = patterns_of(body);
    size_t i, max;
    yyjson_val *pattern;

    if (!(yyjson_is_str(patterns) || (yyjson_is_arr(patterns) && yyjson_arr_size(patterns) > 0)) ||
        yyjson_arr_size(patterns) > PATTERNS_MAX)
        return refuse_template(command,
                               command->dialect == DIALECT_5 ? "template is missing" : "index patterns are missing");
    json_arr_foreach (patterns, i, max, pattern)
        if (!yyjson_is_str(pattern))
            return refuse_template(command, "index patterns are missing");
    if (check_all_patterns(core, command, patterns) != 0 ||
        check_mappings(core, command, json_get_lit(body, "mappings")) != 0)
        return INDEX_REFUSED;
    if (settings_parse(json_get_lit(body, "settings"), SLICE_LIT("index."), &core->arena, &parts->settings,
                       &command->problem) != 0 ||
        index_settings__check(&parts->settings, false, setting__rules(core->command_version), &command->arena,
                              &command->problem) != 0) {
        if (command->problem.type == PROBLEM_VALIDATION)
            problem_set(&command->problem, &command->arena, PROBLEM_INVALID_INDEX_TEMPLATE,
                        "index_template [%.*s] invalid, cause [%.*s]", SLICE_ARG(command->object.name),
                        SLICE_ARG(command->problem.reason));
        return INDEX_REFUSED;
    }
    if (command->dialect != DIALECT_5 &&
        index_settings__check_removed(&parts->settings, setting__rules(core->command_version), &command->arena,
                                      &command->problem) != 0)
        return INDEX_REFUSED;
    return alias__parse_all(core->catalog, json_get_lit(body, "aliases"), SLICE_NONE, command->dialect, &core->arena,
                            &parts->aliases, &command->problem);
}

static void render_template(struct buf *buf, yyjson_val *body, const struct template_parts *parts)
{
    yyjson_val *mappings = json_get_lit(body, "mappings"), *version = json_get_lit(body, "version");
    struct buf part = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;

    json_writer_init(&writer, buf);
    json_begin(&writer, '{');
    json_key(&writer, "order");
    json_i64(&writer, order_of(body));
    if (version != NULL) {
        json_key(&writer, "version");
        json_value(&writer, version, DIALECT_7);
    }
    write_patterns(&writer, patterns_of(body));
    settings_render(&parts->settings, false, &part);
    json_key(&writer, "settings");
    json_raw(&writer, buf_as_slice(&part));
    json_key(&writer, "mappings");
    if (yyjson_is_obj(mappings))
        json_value(&writer, mappings, DIALECT_7);
    else
        json_raw(&writer, SLICE_LIT("{}"));
    json_key(&writer, "aliases");
    json_begin(&writer, '{');
    for (size_t i = 0; i < parts->aliases.count; i++) {
        buf_clear(&part);
        catalog_render_alias(&parts->aliases.items[i], &part);
        json_key_slice(&writer, parts->aliases.items[i].name);
        json_raw(&writer, buf_as_slice(&part));
    }
    json_end(&writer, '}');
    json_end(&writer, '}');
    buf_deinit(&part);
}

static int check_name(struct core *core, struct command *command)
{
    const struct object_command *object = &command->object;
    bool exists = catalog_object(core->catalog, CATALOG_TEMPLATES, object->name) != NULL;

    if (exists && object->create) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "index_template [%.*s] already exists", SLICE_ARG(object->name));
        return INDEX_REFUSED;
    }
    if (object->name.len == 0 || object->name.len > CATALOG_NAME_BYTES_MAX)
        return refuse_template(command, "name is missing");
    if (!exists && catalog_object_count(core->catalog, CATALOG_TEMPLATES) >= CATALOG_TEMPLATES_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "there are %d templates, the most there may be", CATALOG_TEMPLATES_MAX);
        return INDEX_REFUSED;
    }
    return 0;
}

int core__do_template_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TEMPLATE_PUT);
    struct buf rendered = BUF_INIT(BUF_UNLIMITED);
    struct catalog_object object = {.name = command->object.name};
    struct template_parts parts = {0};
    struct json_doc body;

    core__work_indivisible(core, command->object.body.len / WORK_BYTES);
    if (check_name(core, command) != 0 ||
        json_parse(&core->arena, command->object.body, command->dialect, JSON_DUPLICATES, &body, &command->problem) !=
            0 ||
        check_parts(core, command, body.root, &parts) != 0)
        return 0;
    render_template(&rendered, body.root, &parts);
    object.body = buf_as_slice(&rendered);
    if (template__check_bytes(core, command, rendered.len) == 0)
        catalog_change__put_object(core, CATALOG_TEMPLATES, &object);
    buf_deinit(&rendered);
    return 0;
}

int core__do_template_delete(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TEMPLATE_DELETE);
    struct slice name = command->object.name;
    bool found = false;

    /* Backwards, since removing an object shifts those after it. */
    for (size_t i = catalog_object_count(core->catalog, CATALOG_TEMPLATES); i > 0; i--) {
        const struct catalog_object *object = catalog_object_at(core->catalog, CATALOG_TEMPLATES, i - 1);
        if (!json_wildcard(name, object->name))
            continue;
        found = true;
        catalog_change__drop_object(core, CATALOG_TEMPLATES, arena_copy(&command->arena, object->name));
    }
    if (!found && !slice_is(name, "*"))
        problem_set(&command->problem, &command->arena, PROBLEM_INDEX_TEMPLATE_MISSING, "index_template [%.*s] missing",
                    SLICE_ARG(name));
    return 0;
}

/* --- Applying ----------------------------------------------------------------------------------------------------- */

bool template__matches(struct core *core, const struct index_draft *draft, const struct catalog_object *template)
{
    const struct catalog_matching *matching = template->matching;
    bool parsed = core->command_version < COMMAND_SINCE_TEMPLATES_MERGED; /* as it was then, to be matched */
    bool weighed = core->command_version >= COMMAND_SINCE_PATTERNS_WEIGHED;

    REQUIRE(matching != NULL); /* the catalog is the core's */
    core__work_mapping(core, parsed ? template->body.len / WORK_MAPPING_BYTES : 1);
    for (size_t i = 0; i < matching->pattern_count; i++) {
        struct slice pattern = matching->patterns[i];
        if (weighed)
            core__work_mapping(core, 1 + json_wildcard_bytes(pattern, draft->name.len) / WORK_COMPARED_BYTES);
        else
            core__work_mapping(core, parsed ? 0 : 1 + pattern.len / WORK_PATTERN_BYTES);
        if (json_wildcard(pattern, draft->name) && !(draft->hidden && slice_is(pattern, "*")))
            return true;
    }
    return false;
}

int template__check_bytes(const struct core *core, struct command *command, size_t bytes)
{
    if (core->command_version < COMMAND_SINCE_CATALOG_BOUNDS || bytes <= CATALOG_APPLIED_BYTES_MAX)
        return 0;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "template [%.*s] has [%zu] bytes, and the templates that apply to an index have at most [%d] together: "
                "leave out what its indices do not need, or divide it among templates of different indices",
                SLICE_ARG(command->object.name), bytes, CATALOG_APPLIED_BYTES_MAX);
    return INDEX_REFUSED;
}

int template__count(struct core *core, const struct index_draft *draft, size_t bytes, struct arena *arena,
                    struct problem *ret_problem)
{
    REQUIRE(core->open);
    if (core->command_version < COMMAND_SINCE_TEMPLATES_MERGED)
        return 0;
    if (bytes > CATALOG_APPLIED_BYTES_MAX) {
        problem_set(
            ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
            "the templates that apply to index [%.*s] have more than [%d] bytes together, the most they may have: "
            "give templates patterns that match fewer indices, or delete those that are not needed",
            SLICE_ARG(draft->name), CATALOG_APPLIED_BYTES_MAX);
        return INDEX_REFUSED;
    }
    core__work_mapping(core, bytes / WORK_MAPPING_BYTES);
    return 0;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct catalog_object *one = *(const struct catalog_object *const *)a;
    const struct catalog_object *other = *(const struct catalog_object *const *)b;

    if (one->matching->rank != other->matching->rank)
        return one->matching->rank < other->matching->rank ? -1 : 1;
    return slice_compare(one->name, other->name);
}

/*
 * Returns: the number of matching templates, lowest order first, so that later ones win; of equal
 *   order by name.
 */
static size_t find_matching(struct core *core, const struct index_draft *draft, const struct catalog_object **templates)
{
    size_t count = 0;

    for (size_t i = 0; i < catalog_object_count(core->catalog, CATALOG_TEMPLATES); i++) {
        const struct catalog_object *object = catalog_object_at(core->catalog, CATALOG_TEMPLATES, i);
        if (template__matches(core, draft, object))
            templates[count++] = object;
    }
    qsort(templates, count, sizeof(*templates), compare_ranks);
    return count;
}

static int add_matching(struct core *core, struct index_draft *draft, struct arena *arena, struct problem *ret_problem)
{
    size_t all = catalog_object_count(core->catalog, CATALOG_TEMPLATES);
    const struct catalog_object **templates = arena_alloc(arena, (all + 1) * sizeof(*templates));
    size_t count = find_matching(core, draft, templates);
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += templates[i]->body.len;
    if (template__count(core, draft, bytes, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    for (size_t i = 0; i < count; i++) {
        struct json_doc doc;
        if (json_parse_stored(arena, templates[i]->body, &doc) == 0 &&
            index__draft_add(core, draft, doc.root, true, arena, ret_problem) != 0)
            return INDEX_REFUSED;
    }
    return 0;
}

int template__apply(struct core *core, struct index_draft *draft, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(core->open);
    bool composed;
    int r = composable__apply(core, draft, arena, &composed, ret_problem);

    return r != 0 || composed ? r : add_matching(core, draft, arena, ret_problem);
}
