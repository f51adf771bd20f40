/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composable templates of 7.8 and later: index templates, and their component templates.
 *
 *     index template {"index_patterns", "template", "composed_of", "priority", "version", "_meta"}
 *     component      {"template", "version", "_meta"}
 *     template       {"settings", "mappings", "aliases"}
 *
 * Only the matching index template with the highest priority applies; other ones and older
 * templates (template.c) do not. When one is put, no other of its priority may match the same name.
 * Both are stored as JSON as GET renders it. The api validates bodies; commands from a log are
 * validated again, so that no input is harmful.
 */
#include <stdarg.h>

#include "base/check.h"
#include "base/map.h"
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

static int refuse_template(struct command *command, const char *reason)
{
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "%s", reason);
    return INDEX_REFUSED;
}

static int refuse_invalid(struct command *command, struct slice why)
{
    problem_set(&command->problem, &command->arena, PROBLEM_INVALID_INDEX_TEMPLATE,
                "index_template [%.*s] invalid, cause [%.*s]", SLICE_ARG(command->object.name), SLICE_ARG(why));
    return INDEX_REFUSED;
}

/* Replaces a problem by one that names the template, with the original reason. */
static int wrap_problem(struct command *command, struct slice reason)
{
    REQUIRE(command->problem.type != PROBLEM_NONE); /* the cause */
    struct problem *cause = arena_alloc(&command->arena, sizeof(*cause));

    *cause = command->problem;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
    command->problem.caused_by = cause;
    return INDEX_REFUSED;
}

/* Returns: a number, given as number or text; 0: missing. */
static int64_t number_of(yyjson_val *body, const char *name)
{
    yyjson_val *number = json_get(body, slice_from(name));
    int64_t value;

    if (yyjson_is_num(number))
        return yyjson_is_int(number) ? yyjson_get_sint(number) : (int64_t)yyjson_get_real(number);
    return yyjson_is_str(number) && slice_to_i64(json_slice(number), &value) ? value : 0;
}

/* Returns: the text at a position of a list, or a single text at 0; data NULL: no more texts. */
static struct slice text_at(yyjson_val *list, size_t position)
{
    if (yyjson_is_str(list))
        return position == 0 ? json_slice(list) : SLICE_NONE;
    yyjson_val *item = yyjson_is_arr(list) ? yyjson_arr_get(list, position) : NULL;
    return json_slice(item);
}

/* --- Patterns ----------------------------------------------------------------------------------------------------- */

/* Returns: whether the texts before the first `*` of two patterns, or those after the last, exclude each other. */
static bool ends_differ(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;

    for (size_t i = 0; i < shorter && a.data[i] != '*' && b.data[i] != '*'; i++)
        if (a.data[i] != b.data[i])
            return true;
    for (size_t i = 1; i <= shorter && a.data[a.len - i] != '*' && b.data[b.len - i] != '*'; i++)
        if (a.data[a.len - i] != b.data[b.len - i])
            return true;
    return false;
}

/*
 * Returns: whether a name matches both patterns. Only `*` is special. If both have one, the texts between their ends
 * decide nothing: a name that has those of one after those of the other matches both.
 */
static bool patterns_overlap(struct slice a, struct slice b)
{
    bool any_a = slice_find_byte(a, '*') < a.len, any_b = slice_find_byte(b, '*') < b.len;

    if (!any_a && !any_b)
        return slice_equal(a, b);
    if (ends_differ(a, b))
        return false;
    return (any_a && any_b) || (any_a ? json_wildcard(a, b) : json_wildcard(b, a));
}

/* Counts the comparisons in *pairs, up to CATALOG_PATTERN_PAIRS_MAX in commands with that limit. */
static bool any_overlap(const struct core *core, yyjson_val *mine, const struct catalog_matching *theirs, size_t *pairs)
{
    bool limited = core->command_version >= COMMAND_SINCE_CATALOG_BOUNDS;
    size_t i, max;
    yyjson_val *pattern;

    json_arr_foreach (mine, i, max, pattern) {
        *pairs += theirs->pattern_count;
        if (limited && *pairs > CATALOG_PATTERN_PAIRS_MAX)
            return false;
        for (size_t j = 0; j < theirs->pattern_count; j++)
            if (patterns_overlap(json_slice(pattern), theirs->patterns[j]))
                return true;
    }
    return false;
}

static size_t pattern_bytes(yyjson_val *patterns)
{
    size_t bytes = 0, i, max;
    yyjson_val *pattern;

    json_arr_foreach (patterns, i, max, pattern)
        bytes += json_slice(pattern).len + 1;
    return bytes;
}

static size_t pattern_bytes_of(const struct catalog_matching *matching)
{
    size_t bytes = 0;

    for (size_t i = 0; i < matching->pattern_count; i++)
        bytes += matching->patterns[i].len + 1;
    return bytes;
}

static void write_patterns(struct buf *buf, const struct catalog_matching *matching)
{
    buf_byte(buf, '[');
    for (size_t i = 0; i < matching->pattern_count; i++) {
        if (i > 0)
            buf_lit(buf, ", ");
        buf_slice(buf, matching->patterns[i]);
    }
    buf_byte(buf, ']');
}

static void write_list(struct buf *buf, yyjson_val *texts)
{
    size_t i, max;
    yyjson_val *text;

    buf_byte(buf, '[');
    json_arr_foreach (texts, i, max, text) {
        if (i > 0)
            buf_lit(buf, ", ");
        buf_slice(buf, json_slice(text));
    }
    buf_byte(buf, ']');
}

/*
 * Checks that no index template of the same priority overlaps with the patterns of `body`, in its
 * stored form.
 */
static int check_overlaps(struct core *core, struct command *command, yyjson_val *body)
{
    yyjson_val *patterns = json_get_lit(body, "index_patterns");
    struct buf names = BUF_INIT(BUF_UNLIMITED), shown = BUF_INIT(BUF_UNLIMITED);
    size_t bytes = pattern_bytes(patterns);
    size_t pairs = 0;
    int r = 0;

    for (size_t i = 0; i < catalog_object_count(core->catalog, CATALOG_INDEX_TEMPLATES); i++) {
        const struct catalog_object *object = catalog_object_at(core->catalog, CATALOG_INDEX_TEMPLATES, i);
        const struct catalog_matching *theirs = object->matching;
        if (slice_equal(object->name, command->object.name))
            continue;
        bytes += pattern_bytes_of(theirs);
        if (theirs->rank != number_of(body, "priority") || !any_overlap(core, patterns, theirs, &pairs))
            continue;
        if (names.len > 0) {
            buf_lit(&names, ", ");
            buf_byte(&shown, ',');
        }
        buf_slice(&names, object->name);
        buf_slice(&shown, object->name);
        buf_lit(&shown, " => ");
        write_patterns(&shown, theirs);
    }
    core__work(core, pairs / WORK_PATTERN_PAIRS);
    if (pairs > CATALOG_PATTERN_PAIRS_MAX && core->command_version >= COMMAND_SINCE_CATALOG_BOUNDS) {
        problem_set(
            &command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
            "index template [%.*s] and the others of priority [%lld] have so many patterns that comparing them takes "
            "too long: use fewer patterns, or another priority",
            SLICE_ARG(command->object.name), (long long)number_of(body, "priority"));
        r = INDEX_REFUSED;
    } else if (names.len > 0) {
        struct buf own = BUF_INIT(BUF_UNLIMITED);
        write_list(&own, patterns);
        problem_set(
            &command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
            "index template [%.*s] has index patterns %.*s matching patterns from existing templates [%.*s] with "
            "patterns (%.*s) that have the same priority [%lld], multiple index templates may not match during "
            "index creation, please use a different priority",
            SLICE_ARG(command->object.name), SLICE_ARG(buf_as_slice(&own)), SLICE_ARG(buf_as_slice(&names)),
            SLICE_ARG(buf_as_slice(&shown)), (long long)number_of(body, "priority"));
        buf_deinit(&own);
        r = INDEX_REFUSED;
    } else if (bytes > CATALOG_PATTERNS_BYTES_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "all patterns of index templates together have at most %d bytes", CATALOG_PATTERNS_BYTES_MAX);
        r = INDEX_REFUSED;
    }
    buf_deinit(&names);
    buf_deinit(&shown);
    return r;
}

/* --- Validation --------------------------------------------------------------------------------------------------- */

/* Validation errors of a template, numbered as in Elasticsearch. */
struct faults {
    struct buf text;
    int count;
};

static void add_fault(struct faults *faults, struct arena *arena, const char *format, ...) TL_PRINTF(3, 4);
static void add_fault(struct faults *faults, struct arena *arena, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    struct slice text = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    buf_printf(&faults->text, "%s%d: ", faults->count == 0 ? "Validation Failed: " : "", faults->count + 1);
    buf_slice(&faults->text, text);
    buf_byte(&faults->text, ';');
    faults->count++;
}

static bool has_upper_case(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] >= 'A' && name.data[i] <= 'Z')
            return true;
    return false;
}

static bool has_byte(struct slice text, char byte)
{
    return slice_find_byte(text, byte) < text.len;
}

static void check_one_name(struct faults *faults, struct arena *arena, struct slice name)
{
    if (has_byte(name, ' '))
        add_fault(faults, arena, "name must not contain a space");
    if (has_byte(name, ','))
        add_fault(faults, arena, "name must not contain a ','");
    if (has_byte(name, '#'))
        add_fault(faults, arena, "name must not contain a '#'");
    if (name.len > 0 && name.data[0] == '_')
        add_fault(faults, arena, "name must not start with '_'");
    if (has_upper_case(name))
        add_fault(faults, arena, "name must be lower cased");
}

static bool names_no_file(struct slice pattern)
{
    static const char wrong[] = "\\/?\"<>| ,";

    for (size_t i = 0; i < sizeof(wrong) - 1; i++)
        if (has_byte(pattern, wrong[i]))
            return true;
    return false;
}

static void check_pattern(struct faults *faults, struct arena *arena, struct slice pattern)
{
    if (has_byte(pattern, ' '))
        add_fault(faults, arena, "index_patterns [%.*s] must not contain a space", SLICE_ARG(pattern));
    if (has_byte(pattern, ','))
        add_fault(faults, arena, "index_pattern [%.*s] must not contain a ','", SLICE_ARG(pattern));
    if (has_byte(pattern, '#'))
        add_fault(faults, arena, "index_pattern [%.*s] must not contain a '#'", SLICE_ARG(pattern));
    if (pattern.len > 0 && pattern.data[0] == '_')
        add_fault(faults, arena, "index_pattern [%.*s] must not start with '_'", SLICE_ARG(pattern));
    if (names_no_file(pattern))
        add_fault(faults, arena,
                  "index_pattern [%.*s] must not contain the following characters [ , \", *, \\, <, |, ,, >, /, ?]",
                  SLICE_ARG(pattern));
}

static int check_names(struct command *command, yyjson_val *patterns, const struct problem *settings)
{
    struct faults faults = {.text = BUF_INIT(BUF_UNLIMITED)};
    size_t i, max;
    yyjson_val *pattern;
    int r = 0;

    if (settings != NULL && settings->type == PROBLEM_VALIDATION)
        return refuse_invalid(command, settings->reason);
    check_one_name(&faults, &command->arena, command->object.name);
    json_arr_foreach (patterns, i, max, pattern)
        check_pattern(&faults, &command->arena, json_slice(pattern));
    if (settings != NULL)
        add_fault(&faults, &command->arena, "%.*s", SLICE_ARG(settings->reason));
    if (faults.count > 0)
        r = refuse_invalid(command, buf_as_slice(&faults.text));
    buf_deinit(&faults.text);
    return r;
}

static int check_can_put(struct core *core, struct command *command, enum catalog_kind kind, const char *what,
                         size_t limit)
{
    REQUIRE(kind == CATALOG_COMPONENTS || kind == CATALOG_INDEX_TEMPLATES);
    const struct object_command *object = &command->object;
    bool exists = catalog_object(core->catalog, kind, object->name) != NULL;

    if (exists && object->create) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "%s template [%.*s] already exists",
                    what, SLICE_ARG(object->name));
        return INDEX_REFUSED;
    }
    if (object->name.len == 0 || object->name.len > CATALOG_NAME_BYTES_MAX)
        return refuse_template(command, "the name of a template has from 1 to 255 bytes");
    if (!exists && catalog_object_count(core->catalog, kind) >= limit) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "there are %zu %s templates, the most there may be", limit, what);
        return INDEX_REFUSED;
    }
    return 0;
}

/* Checks that all component templates exist; the problem names all that are missing. */
static int check_components(struct core *core, struct command *command, yyjson_val *composed_of)
{
    struct buf missing = BUF_INIT(BUF_UNLIMITED);
    struct slice name;
    int r = 0;

    for (size_t i = 0; r == 0 && (name = text_at(composed_of, i)).data != NULL; i++) {
        if (i == CATALOG_COMPOSED_MAX) {
            problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                        "an index template is composed of at most %d component templates", CATALOG_COMPOSED_MAX);
            r = INDEX_REFUSED;
        } else if (catalog_object(core->catalog, CATALOG_COMPONENTS, name) == NULL) {
            if (missing.len > 0)
                buf_lit(&missing, ", ");
            buf_slice(&missing, name);
        }
    }
    if (r == 0 && missing.len > 0)
        r = refuse_invalid(command, arena_printf(&command->arena,
                                                 "index template [%.*s] specifies component templates [%.*s] that do "
                                                 "not exist",
                                                 SLICE_ARG(command->object.name), SLICE_ARG(buf_as_slice(&missing))));
    buf_deinit(&missing);
    return r;
}

/* --- Stored form -------------------------------------------------------------------------------------------------- */

static void write_texts(struct json_writer *writer, const char *key, yyjson_val *texts)
{
    struct slice text;

    json_key(writer, key);
    json_begin(writer, '[');
    for (size_t i = 0; (text = text_at(texts, i)).data != NULL; i++)
        json_string(writer, text);
    json_end(writer, ']');
}

static void write_number(struct json_writer *writer, yyjson_val *body, const char *name)
{
    if (json_get(body, slice_from(name)) == NULL)
        return;
    json_key(writer, name);
    json_i64(writer, number_of(body, name));
}

static void write_aliases(struct json_writer *writer, const struct alias_set *aliases)
{
    struct buf piece = BUF_INIT(BUF_UNLIMITED);

    json_key(writer, "aliases");
    json_begin(writer, '{');
    for (size_t i = 0; i < aliases->count; i++) {
        buf_clear(&piece);
        catalog_render_alias(&aliases->items[i], &piece);
        json_key_slice(writer, aliases->items[i].name);
        json_raw(writer, buf_as_slice(&piece));
    }
    json_end(writer, '}');
    buf_deinit(&piece);
}

/* Writes {"settings", "mappings", "aliases"} with the members that were given. */
static void write_template(struct json_writer *writer, yyjson_val *template, const struct settings *settings,
                           const struct alias_set *aliases)
{
    yyjson_val *mappings = json_get_lit(template, "mappings");
    struct buf piece = BUF_INIT(BUF_UNLIMITED);

    json_key(writer, "template");
    json_begin(writer, '{');
    if (json_get_lit(template, "settings") != NULL) {
        settings_render(settings, false, &piece);
        json_key(writer, "settings");
        json_raw(writer, buf_as_slice(&piece));
    }
    if (yyjson_is_obj(mappings)) {
        json_key(writer, "mappings");
        json_value(writer, mappings, DIALECT_7);
    }
    if (json_get_lit(template, "aliases") != NULL)
        write_aliases(writer, aliases);
    json_end(writer, '}');
    buf_deinit(&piece);
}

static void write_meta(struct json_writer *writer, yyjson_val *body)
{
    yyjson_val *meta = json_get_lit(body, "_meta");

    write_number(writer, body, "version");
    if (yyjson_is_obj(meta)) {
        json_key(writer, "_meta");
        json_value(writer, meta, DIALECT_7);
    }
}

/* The parsed contents of "template". */
struct parts {
    struct settings settings;
    struct alias_set aliases;
    const struct problem *bad_settings; /* NULL: the settings are valid */
};

static int read_parts(struct core *core, struct command *command, yyjson_val *template, struct parts *ret_parts)
{
    *ret_parts = (struct parts){0};
    if (settings_parse(json_get_lit(template, "settings"), SLICE_LIT("index."), &core->arena, &ret_parts->settings,
                       &command->problem) != 0 ||
        index_settings__check(&ret_parts->settings, false, setting__rules(core->command_version), &command->arena,
                              &command->problem) != 0) {
        struct problem *bad = arena_alloc(&command->arena, sizeof(*bad));
        *bad = command->problem;
        command->problem = (struct problem){0};
        ret_parts->bad_settings = bad;
        return 0;
    }
    return alias__parse_all(core->catalog, json_get_lit(template, "aliases"), SLICE_NONE, DIALECT_7, &core->arena,
                            &ret_parts->aliases, &command->problem);
}

static void put_template(struct core *core, struct command *command, enum catalog_kind kind, struct buf *rendered)
{
    REQUIRE(core->open && rendered->len > 0);
    catalog_change__put_object(core, kind,
                               &(struct catalog_object){.name = command->object.name, .body = buf_as_slice(rendered)});
}

/* --- Applying ----------------------------------------------------------------------------------------------------- */

static int add_component(struct core *core, struct index_draft *draft, const struct catalog_object *object,
                         struct arena *arena, struct problem *ret_problem)
{
    struct json_doc doc;

    if (object == NULL || json_parse_stored(arena, object->body, &doc) != 0)
        return 0;
    if (core->command_version < COMMAND_SINCE_TEMPLATES_MERGED) /* else counted before */
        core__work_mapping(core, object->body.len / WORK_MAPPING_BYTES);
    return index__draft_add(core, draft, json_get_lit(doc.root, "template"), true, arena, ret_problem);
}

/* Returns: the bytes of the components of an index template. */
static size_t component_bytes(const struct core *core, yyjson_val *body)
{
    size_t bytes = 0;
    struct slice name;

    for (size_t i = 0; (name = text_at(json_get_lit(body, "composed_of"), i)).data != NULL; i++) {
        const struct catalog_object *component = catalog_object(core->catalog, CATALOG_COMPONENTS, name);
        bytes += component == NULL ? 0 : component->body.len;
    }
    return bytes;
}

/* Applies an index template of so many bytes to a draft: its components, then its own parts. */
static int compose_template(struct core *core, struct index_draft *draft, yyjson_val *body, size_t bytes,
                            struct arena *arena, struct problem *ret_problem)
{
    struct slice component;

    if (template__count(core, draft, bytes + component_bytes(core, body), arena, ret_problem) != 0)
        return INDEX_REFUSED;
    draft->composed = true;
    for (size_t i = 0; (component = text_at(json_get_lit(body, "composed_of"), i)).data != NULL; i++)
        if (add_component(core, draft, catalog_object(core->catalog, CATALOG_COMPONENTS, component), arena,
                          ret_problem) != 0)
            return INDEX_REFUSED;
    return index__draft_add(core, draft, json_get_lit(body, "template"), true, arena, ret_problem);
}

int composable__apply(struct core *core, struct index_draft *draft, struct arena *arena, bool *ret_found,
                      struct problem *ret_problem)
{
    REQUIRE(core->open);
    const struct catalog_object *best = NULL;
    struct json_doc doc;

    for (size_t i = 0; i < catalog_object_count(core->catalog, CATALOG_INDEX_TEMPLATES); i++) {
        const struct catalog_object *object = catalog_object_at(core->catalog, CATALOG_INDEX_TEMPLATES, i);
        if (template__matches(core, draft, object) && (best == NULL || object->matching->rank > best->matching->rank))
            best = object;
    }
    *ret_found = best != NULL;
    if (best == NULL)
        return 0;
    if (best->body.len > CATALOG_APPLIED_BYTES_MAX && /* before it is parsed */
        template__count(core, draft, best->body.len, arena, ret_problem) != 0)
        return INDEX_REFUSED;
    return json_parse_stored(arena, best->body, &doc) != 0
               ? 0
               : compose_template(core, draft, doc.root, best->body.len, arena, ret_problem);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

/*
 * Checks that mappings have no type: they belong to `_doc`, so a type would be an unknown
 * parameter. How many fields they may have is checked with the settings of the template and its components.
 */
static int check_typeless(struct core *core, struct command *command, yyjson_val *mappings)
{
    struct index_draft draft = {.name = command->object.name, .dialect = DIALECT_7, .typed = true};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc;

    if (!yyjson_is_obj(mappings))
        return 0;
    if (yyjson_obj_size(mappings) == 1 && yyjson_is_obj(json_get_lit(mappings, "_doc"))) {
        problem_set(&command->problem, &command->arena, PROBLEM_MAPPER_PARSING,
                    "Failed to parse mapping [_doc]: Root mapping definition has unsupported parameters:  [_doc]");
        return INDEX_REFUSED;
    }
    buf_lit(&text, "{");
    if (core->command_version >= COMMAND_SINCE_TYPELESS_UNLIMITED)
        buf_printf(&text, "\"settings\":{\"index.mapping\":{\"total_fields.limit\":%d,\"depth.limit\":%d}},",
                   MAPPING_TOTAL_FIELDS_LIMIT_MAX, INT32_MAX);
    buf_lit(&text, "\"mappings\":{\"_doc\":");
    json_write(&text, mappings, DIALECT_7);
    buf_lit(&text, "}}");
    struct slice copy = arena_copy(&command->arena, buf_as_slice(&text));
    buf_deinit(&text);
    if (json_parse_stored(&command->arena, copy, &doc) != 0 ||
        index__draft_add(core, &draft, doc.root, false, &command->arena, &command->problem) != 0)
        return INDEX_REFUSED;
    return index__draft_check(core, &draft, &command->arena, &command->problem);
}

/* Returns: " with component templates [a, b]", or nothing. */
static struct slice with_components(struct command *command, yyjson_val *body)
{
    yyjson_val *composed_of = json_get_lit(body, "composed_of");
    struct buf text = BUF_INIT(BUF_UNLIMITED);

    if (yyjson_arr_size(composed_of) == 0)
        return SLICE_LIT("");
    buf_lit(&text, " with component templates ");
    write_list(&text, composed_of);
    struct slice with = arena_copy(&command->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return with;
}

/*
 * Checks that an index could be created from the template, whose stored form has so many bytes, and whose own settings
 * are `settings`.
 */
static int check_composed(struct core *core, struct command *command, yyjson_val *body, size_t bytes,
                          const struct settings *settings)
{
    struct index_draft draft = {.name = command->object.name, .dialect = DIALECT_7};
    yyjson_val *own = json_get_lit(json_get_lit(body, "template"), "mappings");
    struct slice reason =
        arena_printf(&command->arena, "composable template [%.*s] template after composition%.*s is invalid",
                     SLICE_ARG(command->object.name), SLICE_ARG(with_components(command, body)));

    if (index_settings__check_removed(settings, setting__rules(core->command_version), &command->arena,
                                      &command->problem) != 0)
        return wrap_problem(command, reason);
    if (check_typeless(core, command, own) == 0 &&
        compose_template(core, &draft, body, bytes, &command->arena, &command->problem) == 0 &&
        index__draft_check(core, &draft, &command->arena, &command->problem) == 0)
        return 0;
    wrap_problem(command, arena_printf(&command->arena, "invalid composite mappings for [%.*s]",
                                       SLICE_ARG(command->object.name)));
    return wrap_problem(command, reason);
}

/* Checks that a template that matches all names does not hide its indices. */
static int check_global(struct command *command, yyjson_val *patterns, const struct parts *parts)
{
    size_t i, max;
    yyjson_val *pattern;

    json_arr_foreach (patterns, i, max, pattern) {
        if (!slice_is(json_slice(pattern), "*") ||
            settings_get(&parts->settings, SLICE_LIT("index.hidden")).data == NULL)
            continue;
        problem_set(&command->problem, &command->arena, PROBLEM_ACTION_REQUEST_VALIDATION,
                    "Validation Failed: 1: global composable templates may not specify the setting index.hidden;");
        return INDEX_REFUSED;
    }
    return 0;
}

static int check_template(struct core *core, struct command *command, yyjson_val *body, struct parts *parts)
{
    yyjson_val *patterns = json_get_lit(body, "index_patterns");

    if (!yyjson_is_arr(patterns) || yyjson_arr_size(patterns) == 0)
        return refuse_template(command, "There must be at least one pattern, zero given");
    if (pattern_bytes(patterns) > CATALOG_PATTERN_BYTES_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "the patterns of an index template have at most %d bytes", CATALOG_PATTERN_BYTES_MAX);
        return INDEX_REFUSED;
    }
    if (check_components(core, command, json_get_lit(body, "composed_of")) != 0 ||
        check_can_put(core, command, CATALOG_INDEX_TEMPLATES, "index", CATALOG_TEMPLATES_MAX) != 0 ||
        read_parts(core, command, json_get_lit(body, "template"), parts) != 0 ||
        check_global(command, patterns, parts) != 0 || check_names(command, patterns, parts->bad_settings) != 0 ||
        check_overlaps(core, command, body) != 0)
        return INDEX_REFUSED;
    return 0;
}

/* Parses a body, and makes its patterns a list. */
static int read_body(struct core *core, struct command *command, yyjson_val **ret_body)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    struct json_doc doc;
    size_t i, max;
    yyjson_val *key, *value;

    core__work_indivisible(core, 2 * command->object.body.len / WORK_BYTES);
    if (json_parse(&core->arena, command->object.body, DIALECT_7, JSON_DUPLICATES, &doc, &command->problem) != 0)
        return INDEX_REFUSED;
    json_writer_init(&writer, &text);
    json_begin(&writer, '{');
    json_obj_foreach (doc.root, i, max, key, value) {
        if (slice_is(json_slice(key), "index_patterns")) {
            write_texts(&writer, "index_patterns", value);
            continue;
        }
        json_key_slice(&writer, json_slice(key));
        json_value(&writer, value, DIALECT_7);
    }
    json_end(&writer, '}');
    struct slice copy = arena_copy(&core->arena, buf_as_slice(&text));
    buf_deinit(&text);
    if (json_parse(&core->arena, copy, DIALECT_7, JSON_DUPLICATES, &doc, &command->problem) != 0)
        return INDEX_REFUSED;
    *ret_body = doc.root;
    return 0;
}

/* Writes an index template in its stored form. */
static void render_index_template(struct buf *buf, yyjson_val *body, const struct parts *parts)
{
    yyjson_val *template = json_get_lit(body, "template"), *composed_of = json_get_lit(body, "composed_of");
    struct json_writer writer;

    json_writer_init(&writer, buf);
    json_begin(&writer, '{');
    write_texts(&writer, "index_patterns", json_get_lit(body, "index_patterns"));
    if (yyjson_is_obj(template))
        write_template(&writer, template, &parts->settings, &parts->aliases);
    if (composed_of != NULL || yyjson_is_obj(template))
        write_texts(&writer, "composed_of", composed_of);
    write_number(&writer, body, "priority");
    write_meta(&writer, body);
    json_end(&writer, '}');
}

int core__do_index_template_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_INDEX_TEMPLATE_PUT);
    struct buf rendered = BUF_INIT(BUF_UNLIMITED);
    struct parts parts;
    yyjson_val *body;

    int r = read_body(core, command, &body);
    if (r == 0)
        r = check_template(core, command, body, &parts);
    if (r == 0) {
        bool sent = core->command_version < COMMAND_SINCE_CATALOG_BOUNDS; /* what counted was the body that was sent */
        render_index_template(&rendered, body, &parts);
        r = check_composed(core, command, body, sent ? command->object.body.len : rendered.len, &parts.settings);
    }
    core__note_indivisible(core, core->mapping_work);
    if (r == 0)
        put_template(core, command, CATALOG_INDEX_TEMPLATES, &rendered);
    buf_deinit(&rendered);
    return 0;
}

/* Checks the mappings of a component by themselves. */
static int check_component(struct core *core, struct command *command, yyjson_val *body, struct parts *parts)
{
    struct index_draft draft = {.name = command->object.name, .dialect = DIALECT_7, .composed = true};

    if (check_can_put(core, command, CATALOG_COMPONENTS, "component", CATALOG_COMPONENTS_MAX) != 0 ||
        read_parts(core, command, json_get_lit(body, "template"), parts) != 0)
        return INDEX_REFUSED;
    if (parts->bad_settings != NULL) {
        if (parts->bad_settings->type == PROBLEM_VALIDATION)
            return refuse_invalid(command, parts->bad_settings->reason);
        command->problem = *parts->bad_settings;
        return INDEX_REFUSED;
    }
    if (index_settings__check_removed(&parts->settings, setting__rules(core->command_version), &command->arena,
                                      &command->problem) != 0)
        return INDEX_REFUSED;
    yyjson_val *mappings = json_get_lit(json_get_lit(body, "template"), "mappings");
    if (check_names(command, NULL, NULL) != 0 || check_typeless(core, command, mappings) != 0 ||
        index__draft_add(core, &draft, json_get_lit(body, "template"), true, &command->arena, &command->problem) != 0)
        return INDEX_REFUSED;
    return index__draft_check(core, &draft, &command->arena, &command->problem);
}

int core__do_component_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_COMPONENT_PUT);
    struct buf rendered = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    struct parts parts;
    yyjson_val *body;

    int r = read_body(core, command, &body);
    if (r == 0)
        r = check_component(core, command, body, &parts);
    core__note_indivisible(core, core->mapping_work);
    if (r != 0)
        return 0;
    json_writer_init(&writer, &rendered);
    json_begin(&writer, '{');
    write_template(&writer, json_get_lit(body, "template"), &parts.settings, &parts.aliases);
    write_meta(&writer, body);
    json_end(&writer, '}');
    if (template__check_bytes(core, command, rendered.len) == 0)
        put_template(core, command, CATALOG_COMPONENTS, &rendered);
    buf_deinit(&rendered);
    return 0;
}

/*
 * Removes all objects of a kind whose names match. Returns: whether there was one, or the pattern
 * matches all.
 */
static bool drop_matching(struct core *core, struct command *command, enum catalog_kind kind)
{
    struct slice name = command->object.name;
    bool found = slice_is(name, "*");

    /* Backwards, since removing an object shifts those after it. */
    for (size_t i = catalog_object_count(core->catalog, kind); i > 0; i--) {
        const struct catalog_object *object = catalog_object_at(core->catalog, kind, i - 1);
        if (!json_wildcard(name, object->name))
            continue;
        found = true;
        catalog_change__drop_object(core, kind, arena_copy(&command->arena, object->name));
    }
    return found;
}

static void refuse_missing(struct command *command)
{
    problem_set(&command->problem, &command->arena, PROBLEM_INDEX_TEMPLATE_MISSING, "index_template [%.*s] missing",
                SLICE_ARG(command->object.name));
}

int core__do_index_template_delete(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_INDEX_TEMPLATE_DELETE);
    if (!drop_matching(core, command, CATALOG_INDEX_TEMPLATES))
        refuse_missing(command);
    return 0;
}

/*
 * Returns: whether a template uses a component that matches `pattern`; adds such components to
 *   `used`.
 */
static bool uses_component(const struct catalog_object *template, struct slice pattern, struct map *used)
{
    const struct catalog_matching *matching = template->matching;
    bool found = false;

    for (size_t i = 0; i < matching->component_count; i++) {
        if (!json_wildcard(pattern, matching->components[i]))
            continue;
        found = true;
        map_put(used, matching->components[i], used);
    }
    return found;
}

int core__do_component_delete(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_COMPONENT_DELETE);
    struct buf templates = BUF_INIT(BUF_UNLIMITED), components = BUF_INIT(BUF_UNLIMITED);
    struct map used = MAP_INIT;
    size_t position = 0;
    struct slice name;
    void *value;

    for (size_t i = 0; i < catalog_object_count(core->catalog, CATALOG_INDEX_TEMPLATES); i++) {
        const struct catalog_object *object = catalog_object_at(core->catalog, CATALOG_INDEX_TEMPLATES, i);
        if (!uses_component(object, command->object.name, &used))
            continue;
        if (templates.len > 0)
            buf_lit(&templates, ", ");
        buf_slice(&templates, object->name);
    }
    while (map_next(&used, &position, &name, &value)) {
        if (components.len > 0)
            buf_lit(&components, ", ");
        buf_slice(&components, name);
    }
    if (used.count > 0)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "component templates [%.*s] cannot be removed as they are still in use by index templates [%.*s]",
                    SLICE_ARG(buf_as_slice(&components)), SLICE_ARG(buf_as_slice(&templates)));
    else if (!drop_matching(core, command, CATALOG_COMPONENTS))
        refuse_missing(command);
    map_deinit(&used);
    buf_deinit(&templates);
    buf_deinit(&components);
    return 0;
}
