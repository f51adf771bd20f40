/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings: creation, copying, sealing, lookup; see mapping.h and README.md. */
#include "mapping/mapping.h"

#include "base/check.h"
#include "json/each.h"
#include "mapping/mapping_internal.h"
#include "json/filter.h"
#include "json/write.h"

#include <stdarg.h>

static struct mapping *mapping_alloc(void)
{
    struct mapping *mapping = mem_zalloc(sizeof *mapping);
    atomic_init(&mapping->references, 1);
    mapping->arena = ARENA_INIT;
    mapping->by_path = MAP_INIT;
    mapping->by_number_path = MAP_INIT;
    mapping->path_delimiter = '/';
    mapping->total_fields_max = MAPPING_TOTAL_FIELDS_MAX;
    mapping->depth_max = MAPPING_DEPTH_MAX;
    return mapping;
}

struct mapping *mapping_ref(const struct mapping *mapping)
{
    struct mapping *shared = (struct mapping *)mapping; /* only the reference count is modified */
    atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

void mapping_unref(struct mapping *mapping)
{
    if (mapping == NULL || atomic_fetch_sub_explicit(&mapping->references, 1, memory_order_acq_rel) != 1)
        return;
    map_deinit(&mapping->by_path);
    map_deinit(&mapping->by_number_path);
    arena_deinit(&mapping->arena);
    mem_free(mapping);
}

int mapping__refuse(struct merge *merge, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(merge->arena, format, arguments);
    va_end(arguments);
    problem_set(merge->problem, merge->arena, type, "%.*s", SLICE_ARG(reason));
    return MAPPING_REFUSED;
}

/* Sets a limit from the settings; unchanged if they do not have it. */
static void read_limit(yyjson_val *section, const char *name, size_t *limit)
{
    yyjson_val *value = json_get_lit(json_get(section, slice_from(name)), "limit");
    uint64_t number;
    if (yyjson_is_uint(value))
        *limit = (size_t)yyjson_get_uint(value);
    else if (slice_to_u64(json_slice(value), &number))
        *limit = (size_t)number;
}

/* Applies nested settings to a new mapping, which keeps a copy of them. */
static int take_settings(struct mapping *mapping, yyjson_val *settings, struct arena *arena,
                         struct problem *ret_problem)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    if (settings != NULL)
        json_write(&buf, settings, DIALECT_7);
    mapping->settings = arena_copy(&mapping->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    yyjson_val *limits = json_get_lit(settings, "mapping");
    read_limit(limits, "total_fields", &mapping->total_fields_max);
    read_limit(limits, "depth", &mapping->depth_max);
    return analysis_new(&mapping->arena, json_get_lit(settings, "analysis"), arena, &mapping->analysis, ret_problem);
}

/* Completes a new mapping by nested settings. Owns: takes over the reference to `made`. */
static int finish_new(struct mapping *made, yyjson_val *nested, struct arena *arena, struct mapping **ret_mapping,
                      struct problem *ret_problem)
{
    tl_cleanup(mapping_unrefp) struct mapping *mapping = made;
    if (take_settings(mapping, nested, arena, ret_problem) != 0)
        return MAPPING_REFUSED;
    mapping->sealed = true;
    *ret_mapping = tl_steal(mapping);
    return 0;
}

int mapping_new(yyjson_val *settings, enum date_rules dates, struct arena *arena, struct mapping **ret_mapping,
                struct problem *ret_problem)
{
    struct mapping *mapping = mapping_alloc();
    mapping->dates = dates;
    return finish_new(mapping, settings__nest(&mapping->arena, settings), arena, ret_mapping, ret_problem);
}

int mapping__new_nested(yyjson_val *settings, struct arena *arena, struct mapping **ret_mapping,
                        struct problem *ret_problem)
{
    return finish_new(mapping_alloc(), settings, arena, ret_mapping, ret_problem);
}

/*
 * Returns: a deep copy of a field and all fields below it, texts included. Members that are set by
 *          field__resolve() still point into the old mapping; resolve_all() replaces them.
 */
static struct mapping_field *copy_field(struct arena *arena, const struct mapping_field *field,
                                        struct mapping_field *parent);

static void copy_list(struct arena *arena, struct mapping_field *const *from, size_t count,
                      struct mapping_field *parent, struct mapping_field ***list, size_t *ret_count)
{
    *list = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < count; i++)
        field__insert(arena, list, ret_count, copy_field(arena, from[i], parent));
}

static struct slice copy_text(struct arena *arena, struct slice text)
{
    return text.data == NULL ? SLICE_NONE : arena_copy(arena, text);
}

static struct mapping_field *copy_field(struct arena *arena, const struct mapping_field *field,
                                        struct mapping_field *parent)
{
    struct mapping_field *copy = arena_alloc(arena, sizeof *copy);
    *copy = *field;
    copy->path = copy_text(arena, field->path);
    copy->name = copy_text(arena, field->name);
    copy->type_name = copy_text(arena, field->type_name);
    copy->parent = parent;
    copy->in_tree = false;
    copy->full_path_field = NULL;
    struct field_parameter *parameters = arena_alloc(arena, field->parameter_count * sizeof *parameters);
    for (size_t i = 0; i < field->parameter_count; i++)
        parameters[i] = (struct field_parameter){copy_text(arena, field->parameters[i].name),
                                                 copy_text(arena, field->parameters[i].json)};
    copy->parameters = parameters;
    copy->copy_to = arena_alloc(arena, field->copy_to_count * sizeof *copy->copy_to);
    for (size_t i = 0; i < field->copy_to_count; i++)
        copy->copy_to[i] = copy_text(arena, field->copy_to[i]);
    copy_list(arena, field->children, field->child_count, copy, &copy->children, &copy->child_count);
    copy_list(arena, field->multi, field->multi_count, copy, &copy->multi, &copy->multi_count);
    return copy;
}

/*
 * Sets the members that are derived from parameters again, since they must belong to this mapping.
 */
static void resolve_all(struct merge *merge, struct mapping_field *field)
{
    if (!field__is_object(field)) {
        int r = field__resolve(merge, field);
        INSIST(r == 0); /* the parameters were accepted in the mapping that was copied */
    }
    for (size_t i = 0; i < field->child_count; i++)
        resolve_all(merge, field->children[i]);
    for (size_t i = 0; i < field->multi_count; i++)
        resolve_all(merge, field->multi[i]);
}

/* Returns: the parsed form of JSON text that a mapping stores; NULL if it has none. */
static yyjson_val *parse_kept(struct arena *arena, struct slice text)
{
    struct json_doc doc;
    if (text.data == NULL)
        return NULL;
    int r = json_parse_stored(arena, text, &doc);
    INSIST(r == 0);
    return doc.root;
}

static const struct slice *copy_texts(struct arena *arena, const struct slice *texts, size_t count)
{
    struct slice *copies = arena_alloc(arena, (count + 1) * sizeof *copies);
    for (size_t i = 0; i < count; i++)
        copies[i] = copy_text(arena, texts[i]);
    return copies;
}

static const struct json_filter *copy_filter(struct arena *arena, const struct json_filter *filter)
{
    if (filter == NULL)
        return NULL;
    struct json_filter *copy = arena_alloc(arena, sizeof *copy);
    *copy = *filter;
    copy->includes = copy_texts(arena, filter->includes, filter->include_count);
    copy->excludes = copy_texts(arena, filter->excludes, filter->exclude_count);
    return copy;
}

static void copy_type(struct mapping *mapping, const struct type_record *from)
{
    struct arena *arena = &mapping->arena;
    struct type_record *record = mapping__add_type(mapping, from->type.name);
    struct mapping_type type = record->type;
    *record = *from;
    record->type.name = type.name;
    record->type.root = copy_field(arena, from->type.root, NULL);
    record->meta = copy_text(arena, from->meta);
    record->source = copy_text(arena, from->source);
    record->all = copy_text(arena, from->all);
    record->field_names = copy_text(arena, from->field_names);
    record->parent = copy_text(arena, from->parent);
    record->date_formats = copy_text(arena, from->date_formats);
    record->templates = copy_text(arena, from->templates);
    record->templates_value = parse_kept(arena, record->templates);
    record->date_formats_value = parse_kept(arena, record->date_formats);
    record->type.source_filter = copy_filter(arena, from->type.source_filter);
    struct arena scratch = ARENA_INIT;
    struct problem ignored;
    resolve_all(&(struct merge){.mapping = mapping, .record = record, .arena = &scratch, .problem = &ignored},
                record->type.root);
    arena_deinit(&scratch);
}

struct mapping *mapping__copy(const struct mapping *base)
{
    struct mapping *mapping = mapping_alloc();
    struct arena scratch = ARENA_INIT;
    struct problem ignored;
    yyjson_val *settings = base->settings.len == 0 ? NULL : parse_kept(&mapping->arena, base->settings);
    int r = take_settings(mapping, settings, &scratch, &ignored);
    INSIST(r == 0);
    arena_deinit(&scratch);
    for (size_t i = 0; i < base->number_count; i++) {
        mapping->numbers =
            arena_grow(&mapping->arena, mapping->numbers, i, &mapping->number_capacity, sizeof *mapping->numbers);
        mapping->numbers[i] =
            (struct numbered_field){copy_text(&mapping->arena, base->numbers[i].path), base->numbers[i].complete, NULL};
    }
    mapping->number_count = base->number_count;
    mapping->path_name = copy_text(&mapping->arena, base->path_name);
    mapping->is_tree = base->is_tree;
    mapping->dates = base->dates;
    mapping->text_bytes = base->text_bytes;
    for (size_t i = 0; i < base->type_count; i++)
        copy_type(mapping, base->types[i]);
    return mapping;
}

struct type_record *mapping__add_type(struct mapping *mapping, struct slice name)
{
    REQUIRE(!mapping->sealed);
    struct type_record *record = arena_zalloc(&mapping->arena, sizeof *record);
    record->type.name = arena_copy(&mapping->arena, name);
    record->type.number = (uint16_t)mapping->type_count;
    record->type.root = field__new(&mapping->arena, NULL, SLICE_LIT(""), false);
    record->type.root->type = FIELD_OBJECT;
    record->type.source_enabled = true;
    record->type.date_detection = true;
    mapping->types = arena_grow(&mapping->arena, mapping->types, mapping->type_count, &mapping->type_capacity,
                                sizeof *mapping->types);
    mapping->types[mapping->type_count++] = record;
    return record;
}

/* --- Sealing -------------------------------------------------------------------------------------- */

struct seal_state {
    struct mapping *mapping;
    struct arena *arena;
    struct problem *problem;
    size_t field_count;
};

static int refuse_seal(struct seal_state *sealing, const char *format, ...) TL_PRINTF(2, 3);
static int refuse_seal(struct seal_state *sealing, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(sealing->arena, format, arguments);
    va_end(arguments);
    problem_set(sealing->problem, sealing->arena, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
    return MAPPING_REFUSED;
}

/* Returns: the field number of a path plus one; 0: none. */
static size_t number_of(const struct mapping *mapping, struct slice path)
{
    return (size_t)(uintptr_t)map_get(&mapping->by_number_path, path);
}

/*
 * Appends a number for a path that has none.
 * Returns: the number plus one; 0: no number is left.
 */
static size_t add_number(struct mapping *mapping, struct slice path, bool complete)
{
    if (mapping->number_count >= FIELD_NUMBER_NONE)
        return 0;
    mapping->numbers = arena_grow(&mapping->arena, mapping->numbers, mapping->number_count, &mapping->number_capacity,
                                  sizeof *mapping->numbers);
    mapping->numbers[mapping->number_count] = (struct numbered_field){path, complete, NULL};
    return ++mapping->number_count;
}

bool mapping__mark_incomplete(struct mapping *mapping, struct slice path)
{
    bool found = false;
    REQUIRE(!mapping->sealed);
    for (size_t i = 0; i < mapping->number_count; i++) {
        struct numbered_field *numbered = &mapping->numbers[i];
        bool is_multi = numbered->path.len > path.len && slice_starts_with(numbered->path, path) &&
                        numbered->path.data[path.len] == '.';
        bool is_same = slice_equal(numbered->path, path);
        if (is_same || is_multi)
            numbered->complete = false;
        found |= is_same;
    }
    return found || add_number(mapping, copy_text(&mapping->arena, path), false) != 0;
}

/* Returns: whether a multi-field's parent is complete as far as its number says. */
static bool is_parent_complete(const struct mapping *mapping, const struct mapping_field *field)
{
    size_t slot = field->parent == NULL ? 0 : number_of(mapping, field->parent->path);
    return slot == 0 || mapping->numbers[slot - 1].complete;
}

/* Assigns a field number: the number of its path if the index has one, else a new one. */
static int assign_number(struct seal_state *sealing, struct mapping_field *field)
{
    struct mapping *mapping = sealing->mapping;
    field->number = FIELD_NUMBER_NONE;
    bool is_constant = slice_is(field->type_name, "constant_keyword");
    if (field__is_object(field) || !field->indexed || is_constant)
        return 0;
    size_t slot = number_of(mapping, field->path);
    if (slot == 0) {
        slot = add_number(mapping, field->path, field->complete && is_parent_complete(mapping, field));
        if (slot == 0)
            return refuse_seal(sealing, "Limit of field numbers [%u] has been exceeded", FIELD_NUMBER_NONE);
        map_put(&mapping->by_number_path, field->path, (void *)(uintptr_t)slot);
    }
    struct numbered_field *numbered = &mapping->numbers[slot - 1];
    numbered->complete &= field->complete;
    if (numbered->field == NULL)
        numbered->field = field;
    field->number = (uint16_t)(slot - 1);
    return 0;
}

static int refuse_other_type(struct seal_state *sealing, const struct mapping_field *first,
                             const struct mapping_field *field)
{
    struct slice current = field__is_object(first) ? SLICE_LIT("ObjectMapper") : first->type_name;
    struct slice merged = field__is_object(field) ? SLICE_LIT("ObjectMapper") : field->type_name;
    return refuse_seal(sealing, "mapper [%.*s] of different type, current_type [%.*s], merged_type [%.*s]",
                       SLICE_ARG(field->path), SLICE_ARG(current), SLICE_ARG(merged));
}

static int seal_field(struct seal_state *sealing, struct mapping_field *field, size_t depth);

static int seal_list(struct seal_state *sealing, struct mapping_field *const *list, size_t count, size_t depth)
{
    for (size_t i = 0; i < count; i++) {
        int r = seal_field(sealing, list[i], depth);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Counts and numbers a field and all fields below it, and adds them to the lookup by path. */
static int seal_field(struct seal_state *sealing, struct mapping_field *field, size_t depth)
{
    struct mapping *mapping = sealing->mapping;
    mapping->text_bytes += field__text_bytes(field);
    if (field->parent != NULL) {
        if (++sealing->field_count > mapping->total_fields_max)
            return refuse_seal(sealing, "Limit of total fields [%zu] has been exceeded", mapping->total_fields_max);
        if (field__is_object(field) && depth > mapping->depth_max)
            return refuse_seal(sealing, "Limit of mapping depth [%zu] has been exceeded due to object field [%.*s]",
                               mapping->depth_max, SLICE_ARG(field->path));
        const struct mapping_field *first = map_get(&mapping->by_path, field->path);
        if (first == NULL)
            map_put(&mapping->by_path, field->path, field);
        else if (first->type != field->type)
            return refuse_other_type(sealing, first, field);
        mapping->has_copy_to |= field->copy_to_count > 0;
        int r = assign_number(sealing, field);
        if (r != 0)
            return r;
    }
    int r = seal_list(sealing, field->multi, field->multi_count, depth + 1);
    return r == 0 ? seal_list(sealing, field->children, field->child_count, depth + 1) : r;
}

/* Returns: whether a field can be the path field; sets *delimiter if so. */
static bool can_be_path(const struct mapping_field *field, char *delimiter)
{
    if (field->copy_to_count > 0)
        return false;
    if (field->type == FIELD_PATH) {
        struct slice given = field__parameter(field, "delimiter");
        *delimiter = given.len == 3 ? given.data[1] : '/';
        return true;
    }
    if (field->type == FIELD_TEXT && analyzer_is_path(field->analyzer, delimiter))
        return true;
    for (size_t i = 0; i < field->multi_count && (field->type == FIELD_TEXT || field->type == FIELD_KEYWORD); i++) {
        if (field->multi[i]->type == FIELD_TEXT && analyzer_is_path(field->multi[i]->analyzer, delimiter))
            return true;
    }
    return false;
}

/* Returns: the first field, in order of path, that can be the path field; NULL: none. */
static struct mapping_field *find_path_field(struct mapping_field *field, char *delimiter)
{
    if (field->type == FIELD_NESTED)
        return NULL;
    if (field->type != FIELD_OBJECT)
        return can_be_path(field, delimiter) ? field : NULL;
    for (size_t i = 0; i < field->child_count; i++) {
        struct mapping_field *found = find_path_field(field->children[i], delimiter);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static void mark_in_tree(struct mapping_field *field)
{
    field->in_tree = true;
    for (size_t i = 0; i < field->multi_count; i++)
        field->multi[i]->in_tree = true;
}

/*
 * Returns: whether an index with this path field supports renames (mapping_is_tree): the field is
 *          new, so no document has a value of it yet, and every value will have its entry
 *          unchanged. Field numbers below `known` existed before this change.
 */
static bool begins_tree(const struct mapping_field *field, size_t known)
{
    return (field->type == FIELD_KEYWORD || field->type == FIELD_PATH) && field_has_entries(field) &&
           field->number >= known && field->analyzer == NULL && field->ignore_above == FIELD_IGNORE_ABOVE_NONE;
}

/* Chooses the path field unless the index has one, and sets `in_tree` in every type. */
static void seal_path(struct mapping *mapping, size_t known)
{
    for (size_t i = 0; i < mapping->type_count && mapping->path_name.data == NULL; i++) {
        const struct mapping_field *found = find_path_field(mapping->types[i]->type.root, &mapping->path_delimiter);
        if (found == NULL)
            continue;
        mapping->path_name = found->path;
        mapping->is_tree = begins_tree(found, known);
    }
    if (mapping->path_name.data == NULL)
        return;
    for (size_t i = 0; i < mapping->type_count; i++) {
        struct mapping_field *field = field__find(mapping->types[i]->type.root, mapping->path_name);
        if (field == NULL)
            continue;
        mark_in_tree(field);
        if (mapping->path_field == NULL)
            mapping->path_field = field;
    }
    if (mapping->path_field != NULL)
        (void)can_be_path(mapping->path_field, &mapping->path_delimiter);
}

/* Sets `unmapped` in the objects in which documents may have unmapped values from now on. */
static void mark_unmapped(struct mapping_field *object, bool is_dynamic)
{
    if (object->dynamic != DYNAMIC_INHERIT)
        is_dynamic = object->dynamic != DYNAMIC_FALSE;
    object->unmapped |= !object->enabled || !is_dynamic;
    for (size_t i = 0; i < object->child_count; i++) {
        if (field__is_object(object->children[i]))
            mark_unmapped(object->children[i], is_dynamic);
    }
}

/* Sets `complete` of every field to that of its number, which is common to all types. */
static void share_completeness(struct mapping *mapping, struct mapping_field *field)
{
    if (field->number != FIELD_NUMBER_NONE)
        field->complete = mapping->numbers[field->number].complete;
    for (size_t i = 0; i < field->child_count; i++)
        share_completeness(mapping, field->children[i]);
    for (size_t i = 0; i < field->multi_count; i++)
        share_completeness(mapping, field->multi[i]);
}

int mapping__seal(struct mapping *mapping, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(!mapping->sealed);
    struct seal_state sealing = {mapping, arena, ret_problem, 0};
    size_t known = mapping->number_count;
    mapping->text_bytes = 0;
    for (size_t i = 0; i < known; i++)
        map_put(&mapping->by_number_path, mapping->numbers[i].path, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < mapping->type_count; i++) {
        int r = seal_field(&sealing, mapping->types[i]->type.root, 1);
        if (r != 0)
            return r;
        mark_unmapped(mapping->types[i]->type.root, true);
    }
    for (size_t i = 0; i < mapping->type_count; i++)
        share_completeness(mapping, mapping->types[i]->type.root);
    mapping__seal_path_hierarchies(mapping);
    seal_path(mapping, known);
    mapping->sealed = true;
    return 0;
}

/* --- Field aliases and copy_to -------------------------------------------------------------------- */

/*
 * These checks apply to mappings from clients only: stored mappings may have been written by
 * versions without them.
 */
static int refuse_reference(struct seal_state *sealing, const struct mapping_field *field, struct slice path,
                            const char *reason)
{
    problem_set(sealing->problem, sealing->arena, PROBLEM_MAPPER_PARSING,
                "Invalid [path] value [%.*s] for field alias [%.*s]: %s", SLICE_ARG(path), SLICE_ARG(field->path),
                reason);
    return MAPPING_REFUSED;
}

static struct slice unquoted_json(struct slice json)
{
    bool quoted = json.len >= 2 && json.data[0] == '"';
    return quoted ? slice_make(json.data + 1, json.len - 2) : json;
}

static int check_alias(struct seal_state *sealing, const struct mapping_field *field)
{
    struct slice path = unquoted_json(field__parameter(field, "path"));
    if (path.data == NULL) {
        problem_set(sealing->problem, sealing->arena, PROBLEM_MAPPER_PARSING,
                    "The [path] property must be specified for field [%.*s].", SLICE_ARG(field->path));
        return MAPPING_REFUSED;
    }
    const struct mapping_field *target = map_get(&sealing->mapping->by_path, path);
    if (slice_equal(path, field->path))
        return refuse_reference(sealing, field, path, "an alias cannot refer to itself.");
    if (target != NULL && slice_is(target->type_name, "alias"))
        return refuse_reference(sealing, field, path, "an alias cannot refer to another alias.");
    if (target == NULL || field__is_object(target))
        return refuse_reference(sealing, field, path, "an alias must refer to an existing field in the mappings.");
    return 0;
}

/*
 * Returns: whether the parent of a path is a leaf, so that the path is or would be a multi-field.
 */
static bool is_below_leaf(const struct seal_state *sealing, struct slice path)
{
    size_t end = path.len;
    while (end > 0 && path.data[end - 1] != '.')
        end--;
    const struct mapping_field *parent =
        end > 0 ? map_get(&sealing->mapping->by_path, slice_make(path.data, end - 1)) : NULL;
    return parent != NULL && !field__is_object(parent);
}

static int check_copies(struct seal_state *sealing, const struct mapping_field *field)
{
    for (size_t i = 0; i < field->multi_count; i++) {
        if (field->multi[i]->copy_to_count > 0)
            return refuse_seal(sealing, "[copy_to] may not be used to copy from a multi-field: [%.*s]",
                               SLICE_ARG(field->multi[i]->path));
    }
    for (size_t i = 0; i < field->copy_to_count; i++) {
        const struct mapping_field *target = map_get(&sealing->mapping->by_path, field->copy_to[i]);
        if (is_below_leaf(sealing, field->copy_to[i]))
            return refuse_seal(sealing, "[copy_to] may not be used to copy to a multi-field: [%.*s]",
                               SLICE_ARG(field->copy_to[i]));
        if (target != NULL && field__is_object(target))
            return refuse_seal(sealing, "Cannot copy to field [%.*s] since it is mapped as an object",
                               SLICE_ARG(field->copy_to[i]));
    }
    return 0;
}

static int check_below(struct seal_state *sealing, const struct mapping_field *field)
{
    int r = slice_is(field->type_name, "alias") ? check_alias(sealing, field) : check_copies(sealing, field);
    for (size_t i = 0; i < field->child_count && r == 0; i++)
        r = check_below(sealing, field->children[i]);
    return r;
}

int mapping__check_references(struct mapping *mapping, struct arena *arena, struct problem *ret_problem)
{
    struct seal_state sealing = {mapping, arena, ret_problem, 0};
    int r = 0;
    for (size_t i = 0; i < mapping->type_count && r == 0; i++)
        r = check_below(&sealing, mapping->types[i]->type.root);
    return r;
}

/* --- Lookup --------------------------------------------------------------------------------------- */

const struct mapping_type *mapping_type(const struct mapping *mapping, struct slice name)
{
    if (name.len == 0)
        name = SLICE_LIT("_doc");
    for (size_t i = 0; i < mapping->type_count; i++) {
        if (slice_equal(mapping->types[i]->type.name, name))
            return &mapping->types[i]->type;
    }
    bool typeless = slice_is(name, "_doc");
    return typeless && mapping->type_count == 1 ? &mapping->types[0]->type : NULL;
}

const struct mapping_type *mapping_type_by_number(const struct mapping *mapping, uint16_t number)
{
    return number < mapping->type_count ? &mapping->types[number]->type : NULL;
}

size_t mapping_type_count(const struct mapping *mapping)
{
    return mapping->type_count;
}

size_t mapping_path_count(const struct mapping *mapping)
{
    return mapping->by_path.count;
}

size_t mapping_fields_max(const struct mapping *mapping)
{
    return mapping->total_fields_max;
}

size_t mapping_text_bytes(const struct mapping *mapping)
{
    return mapping->text_bytes;
}

size_t mapping_copied_fields(const struct mapping *mapping)
{
    return mapping_path_count(mapping) + mapping->text_bytes / MAPPING_FIELD_TEXT;
}

const struct mapping_type *mapping_type_at(const struct mapping *mapping, size_t position)
{
    REQUIRE(position < mapping->type_count);
    return &mapping->types[position]->type;
}

const struct mapping_field *mapping_field(const struct mapping *mapping, struct slice path)
{
    const struct mapping_field *field = map_get(&mapping->by_path, path);
    if (field == NULL || !slice_is(field->type_name, "alias"))
        return field;
    struct slice target = field__parameter(field, "path");
    return target.len < 2 ? NULL : map_get(&mapping->by_path, slice_make(target.data + 1, target.len - 2));
}

const struct mapping_field *mapping_field_by_number(const struct mapping *mapping, uint16_t number)
{
    return number < mapping->number_count ? mapping->numbers[number].field : NULL;
}

uint16_t mapping_field_count(const struct mapping *mapping)
{
    return (uint16_t)mapping->number_count;
}

struct match_visit {
    const struct mapping *mapping;
    struct slice pattern;
    mapping_visit *visit;
    void *context;
    size_t count;
};

static void visit_matching(struct match_visit *matching, const struct mapping_field *field)
{
    bool is_leaf = field->parent != NULL && !field__is_object(field);
    /* A path that several types have is visited in the first one only. */
    if (is_leaf && map_get(&matching->mapping->by_path, field->path) == field &&
        json_wildcard(matching->pattern, field->path)) {
        matching->visit(matching->context, field);
        matching->count++;
    }
    for (size_t i = 0; i < field->multi_count; i++)
        visit_matching(matching, field->multi[i]);
    for (size_t i = 0; i < field->child_count; i++)
        visit_matching(matching, field->children[i]);
}

size_t mapping_fields_matching(const struct mapping *mapping, struct slice pattern, mapping_visit *visit, void *context)
{
    struct match_visit matching = {mapping, pattern, visit, context, 0};
    for (size_t i = 0; i < mapping->type_count; i++)
        visit_matching(&matching, mapping->types[i]->type.root);
    return matching.count;
}

bool mapping_is_tree(const struct mapping *mapping)
{
    return mapping->is_tree;
}

const struct mapping_field *mapping_path_field(const struct mapping *mapping)
{
    return mapping->path_field;
}

char mapping_path_delimiter(const struct mapping *mapping)
{
    return mapping->path_delimiter;
}

const struct analyzer *mapping_analyzer(const struct mapping *mapping, struct slice name)
{
    return analysis_find(mapping->analysis, name);
}

int mapping_filter_work(const struct mapping_type *type, struct slice source, struct arena *arena, uint64_t *ret_work)
{
    uint64_t most = MAPPING_FILTER_MAX + MAPPING_FILTER_BYTE * (uint64_t)source.len;
    struct json_doc doc;
    *ret_work = 0;
    if (mapping_shows_whole_source(type) || source.data == NULL || !type->source_enabled)
        return 0;
    int r = json_parse_stored(arena, source, &doc);
    if (r != 0)
        return tl_trace(r);
    *ret_work = json_filter_work(doc.root, type->source_filter, most);
    return *ret_work > most ? MAPPING_REFUSED : 0;
}

int mapping_filter_source(const struct mapping_type *type, struct slice source, enum dialect dialect,
                          struct arena *arena, struct slice *ret_shown)
{
    struct json_doc doc;
    if (mapping_shows_whole_source(type) || source.data == NULL) {
        *ret_shown = source;
        return 0;
    }
    *ret_shown = SLICE_NONE;
    if (!type->source_enabled)
        return 0;
    int r = json_parse_stored(arena, source, &doc);
    if (r != 0)
        return tl_trace(r);
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct json_filter filter = *type->source_filter;
    filter.drops_empty_arrays = true;
    json_filter_source(&buf, doc.root, &filter, dialect);
    *ret_shown = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return 0;
}
