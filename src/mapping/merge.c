/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging a client's mapping into the existing one; see mapping.h.
 *
 * The unsealed copy is modified in place. A change that is not allowed is refused in the wording
 * of the dialect, and the copy is then discarded.
 */
#include "mapping/mapping_internal.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "json/each.h"
#include "json/filter.h"
#include "json/write.h"

static int merge_properties(struct merge *merge, struct mapping_field *parent, yyjson_val *properties);

/* Reads a boolean, "true" or "false". Returns: false for anything else. */
static bool take_boolean(yyjson_val *value, bool *ret_boolean)
{
    struct slice text = json_slice(value);
    if (!yyjson_is_bool(value) && !slice_is(text, "true") && !slice_is(text, "false"))
        return false;
    *ret_boolean = yyjson_is_true(value) || slice_is(text, "true");
    return true;
}

static int merge_dynamic(struct merge *merge, struct mapping_field *object, yyjson_val *value)
{
    bool yes = true;
    if (slice_is(json_slice(value), "strict")) {
        object->dynamic = DYNAMIC_STRICT;
        return 0;
    }
    if (!take_boolean(value, &yes) && merge->dialect == DIALECT_7) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        java_text(&buf, value);
        struct problem *cause = arena_alloc(merge->arena, sizeof *cause);
        problem_set(cause, merge->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Failed to parse value [%.*s] as only [true] or [false] are allowed.",
                    SLICE_ARG(buf_as_slice(&buf)));
        buf_deinit(&buf);
        int r = mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Could not convert [dynamic.dynamic] to boolean");
        merge->problem->caused_by = cause;
        return r;
    }
    object->dynamic = yes ? DYNAMIC_TRUE : DYNAMIC_FALSE;
    return 0;
}

static int merge_enabled(struct merge *merge, struct mapping_field *object, yyjson_val *value, bool is_new)
{
    bool enabled = true;
    if (!take_boolean(value, &enabled))
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "Failed to parse value for [enabled] of field [%.*s]",
                               SLICE_ARG(object->path));
    if (is_new || object->parent == NULL) {
        object->enabled = enabled;
    } else if (enabled != object->enabled && merge->dialect == DIALECT_7) {
        mapping__refuse(merge, PROBLEM_ILLEGAL_STATE,
                        "the [enabled] parameter can't be updated for the object mapping [%.*s]",
                        SLICE_ARG(object->path));
        merge->problem->name = SLICE_LIT("mapper_exception");
        return MAPPING_REFUSED;
    }
    return 0;
}

static int refuse_unsupported(struct merge *merge, struct slice field, yyjson_val *unsupported, struct slice name)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    java_text(&buf, unsupported);
    int r = field.data == NULL
                ? mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                                  "Root mapping definition has unsupported parameters:  [%.*s : %.*s]", SLICE_ARG(name),
                                  SLICE_ARG(buf_as_slice(&buf)))
                : mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                                  "Mapping definition for [%.*s] has unsupported parameters:  [%.*s : %.*s]",
                                  SLICE_ARG(field), SLICE_ARG(name), SLICE_ARG(buf_as_slice(&buf)));
    buf_deinit(&buf);
    return r;
}

/* Sets or removes a flag of a nested object, which is stored for rendering only. */
static void keep_flag(struct merge *merge, struct mapping_field *object, struct slice name, bool value)
{
    struct arena *arena = &merge->mapping->arena;
    struct field_parameter *list = arena_alloc(arena, (object->parameter_count + 1) * sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < object->parameter_count; i++) {
        if (!slice_equal(object->parameters[i].name, name))
            list[count++] = object->parameters[i];
    }
    if (value)
        list[count++] = (struct field_parameter){arena_copy(arena, name), SLICE_LIT("true")};
    object->parameters = list;
    object->parameter_count = count;
}

/* Merges one member of an object's definition. */
static int merge_object_member(struct merge *merge, struct mapping_field *object, struct slice name, yyjson_val *value,
                               bool is_new)
{
    bool flag;
    if (slice_is(name, "type"))
        return 0;
    if (slice_is(name, "dynamic"))
        return merge_dynamic(merge, object, value);
    if (slice_is(name, "enabled"))
        return merge_enabled(merge, object, value, is_new);
    if (slice_is(name, "properties"))
        return merge_properties(merge, object, value);
    if (slice_is(name, "include_in_all"))
        return 0;
    if (object->type == FIELD_NESTED && (slice_is(name, "include_in_parent") || slice_is(name, "include_in_root")) &&
        take_boolean(value, &flag)) {
        keep_flag(merge, object, name, flag);
        return 0;
    }
    return refuse_unsupported(merge, object->name, value, name);
}

int mapping__refuse_object_over_leaf(struct merge *merge, const struct mapping_field *field)
{
    if (merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "can't merge a non object mapping [%.*s] with an object mapping",
                               SLICE_ARG(field->path));
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                           "mapper [%.*s] of different type, current_type [%.*s], merged_type [ObjectMapper]",
                           SLICE_ARG(field->path), SLICE_ARG(field->type_name));
}

int mapping__refuse_leaf_over_object(struct merge *merge, const struct mapping_field *field)
{
    if (merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "can't merge a non object mapping [%.*s] with an object mapping",
                               SLICE_ARG(field->path));
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                           "Can't merge a non object mapping [%.*s] with an object mapping [%.*s]",
                           SLICE_ARG(field->path), SLICE_ARG(field->path));
}

static int refuse_type_change(struct merge *merge, const struct mapping_field *field, struct slice type_name)
{
    if (merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "mapper [%.*s] cannot be changed from type [%.*s] to [%.*s]", SLICE_ARG(field->path),
                               SLICE_ARG(field->type_name), SLICE_ARG(type_name));
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                           "mapper [%.*s] of different type, current_type [%.*s], merged_type [%.*s]",
                           SLICE_ARG(field->path), SLICE_ARG(field->type_name), SLICE_ARG(type_name));
}

static int refuse_nesting_change(struct merge *merge, const struct mapping_field *object)
{
    const char *change = object->type == FIELD_NESTED ? "nested to non-nested" : "non-nested to nested";
    if (merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "cannot change object mapping from %s", change);
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "object mapping [%.*s] can't be changed from %s",
                           SLICE_ARG(object->path), change);
}

/* Counts an added field. Returns: 0; MAPPING_REFUSED, as by mapping__seal(), or since its texts are too long. */
static int count_added(struct merge *merge, const struct mapping_field *field)
{
    size_t max = merge->mapping->total_fields_max;
    merge->mapping->text_bytes += field__text_bytes(field);
    if (merge->counts && ++merge->mapping->added_count > max) {
        merge->too_many = true;
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Limit of total fields [%zu] has been exceeded", max);
    }
    if (!merge->texts_bounded || merge->mapping->text_bytes <= MAPPING_TEXT_BYTES_MAX)
        return 0;
    merge->too_many = true;
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, MAPPING_TEXTS_EXCEEDED, MAPPING_TEXT_BYTES_MAX);
}

static struct mapping_field *add_object(struct merge *merge, struct mapping_field *parent, struct slice name,
                                        enum field_type type)
{
    struct mapping_field *object = field__new(&merge->mapping->arena, parent, name, false);
    object->type = type;
    object->type_name = type == FIELD_NESTED ? SLICE_LIT("nested") : SLICE_LIT("object");
    field__insert(&merge->mapping->arena, &parent->children, &parent->child_count, object);
    return object;
}

int mapping__merge_object(struct merge *merge, struct mapping_field *parent, struct slice name,
                          struct mapping_field **ret_object)
{
    struct mapping_field *object = field__child(parent, name);
    if (object != NULL && !field__is_object(object))
        return mapping__refuse_object_over_leaf(merge, object);
    *ret_object = object != NULL ? object : add_object(merge, parent, name, FIELD_OBJECT);
    return object != NULL ? 0 : count_added(merge, *ret_object);
}

static int merge_object(struct merge *merge, struct mapping_field *parent, struct slice name, enum field_type type,
                        yyjson_val *definition)
{
    struct mapping_field *object = field__child(parent, name);
    bool is_new = object == NULL;
    if (object != NULL && !field__is_object(object))
        return mapping__refuse_object_over_leaf(merge, object);
    if (object != NULL && object->type != type)
        return refuse_nesting_change(merge, object);
    if (is_new)
        object = add_object(merge, parent, name, type);
    if (is_new && count_added(merge, object) != 0)
        return MAPPING_REFUSED;
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (definition, i, max, key, value) {
        int r = merge_object_member(merge, object, json_slice(key), value, is_new);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Returns: the type name; the type `string` of 1.x and 2.x becomes one of its two successors. */
static struct slice successor_of_string(struct slice type_name, yyjson_val *definition)
{
    if (!slice_is(type_name, "string"))
        return type_name;
    struct slice index = json_slice(json_get_lit(definition, "index"));
    return slice_is(index, "not_analyzed") || slice_is(index, "no") ? SLICE_LIT("keyword") : SLICE_LIT("text");
}

static int read_copy_to(struct merge *merge, struct mapping_field *field, yyjson_val *value)
{
    size_t count = yyjson_is_arr(value) ? yyjson_arr_size(value) : value != NULL;
    if (count > MAPPING_TOTAL_FIELDS_MAX)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "copy_to of field [%.*s] has too many targets",
                               SLICE_ARG(field->path));
    field->copy_to = arena_alloc(&merge->mapping->arena, count * sizeof *field->copy_to);
    field->copy_to_count = 0;
    yyjson_val *item = yyjson_is_arr(value) ? yyjson_arr_get_first(value) : value;
    for (size_t i = 0; i < count; i++) {
        struct slice path = json_slice(item);
        if (path.len == 0)
            return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "copy_to of field [%.*s] must name fields",
                                   SLICE_ARG(field->path));
        field->copy_to[field->copy_to_count++] = arena_copy(&merge->mapping->arena, path);
        item = unsafe_yyjson_get_next(item);
    }
    return 0;
}

static struct slice *sorted_targets(const struct mapping_field *field)
{
    struct slice *targets = mem_dup(field->copy_to, field->copy_to_count * sizeof *targets);
    qsort(targets, field->copy_to_count, sizeof *targets, slice_order);
    return targets;
}

/* Returns: whether two fields are copied to the same targets, in any order. */
static bool copies_equal(const struct mapping_field *a, const struct mapping_field *b)
{
    if (a->copy_to_count != b->copy_to_count || a->copy_to_count == 0)
        return a->copy_to_count == b->copy_to_count;
    struct slice *left = sorted_targets(a), *right = sorted_targets(b);
    bool equal = true;
    for (size_t i = 0; equal && i < a->copy_to_count; i++)
        equal = slice_equal(left[i], right[i]);
    mem_free(left);
    mem_free(right);
    return equal;
}

/*
 * Existing documents have values of these targets, or had them, that their entries do not have. A
 * target may not exist yet.
 * Returns: 0; MAPPING_REFUSED.
 */
static int mark_targets_incomplete(struct merge *merge, const struct mapping_field *field)
{
    for (size_t i = 0; i < field->copy_to_count; i++)
        if (!mapping__mark_incomplete(merge->mapping, field->copy_to[i]))
            return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Limit of field numbers [%u] has been exceeded",
                                   FIELD_NUMBER_NONE);
    return 0;
}

static int merge_multi_fields(struct merge *merge, struct mapping_field *field, yyjson_val *fields, bool field_is_new);

/* Returns: whether existing documents may have values of a field that is added to `parent`. */
static bool inside_unmapped(const struct mapping_field *parent)
{
    while (parent != NULL && !parent->unmapped)
        parent = parent->parent;
    return parent != NULL;
}

/* Creates a leaf from its definition; it is not in any list yet. */
static int read_leaf(struct merge *merge, struct mapping_field *parent, struct slice name, bool is_multi,
                     enum field_type type, struct slice type_name, yyjson_val *definition,
                     struct mapping_field **ret_field)
{
    struct mapping_field *field = field__new(&merge->mapping->arena, parent, name, is_multi);
    field->type = type;
    field->type_name = arena_copy(&merge->mapping->arena, type_name);
    field->complete = !merge->incomplete && !inside_unmapped(parent);
    int r = field__read_parameters(merge, field, definition);
    if (r == 0)
        r = read_copy_to(merge, field, json_get_lit(definition, "copy_to"));
    if (r == 0)
        r = field__resolve(merge, field);
    *ret_field = field;
    return r;
}

/* Applies a new definition to an existing leaf. `new` is the leaf made from it. */
static int merge_into_leaf(struct merge *merge, struct mapping_field *field, const struct mapping_field *new,
                           yyjson_val *definition)
{
    if (field->type != new->type || !slice_equal(field->type_name, new->type_name))
        return refuse_type_change(merge, field, new->type_name);
    int r = field__merge_parameters(merge, field, new);
    if (r != 0)
        return r;
    if (!copies_equal(field, new)) {
        r = mark_targets_incomplete(merge, field);
        if (r == 0)
            r = mark_targets_incomplete(merge, new);
        if (r != 0)
            return r;
    }
    field->copy_to = new->copy_to;
    field->copy_to_count = new->copy_to_count;
    r = field__resolve(merge, field);
    return r == 0 ? merge_multi_fields(merge, field, json_get_lit(definition, "fields"), false) : r;
}

static int merge_leaf(struct merge *merge, struct mapping_field *parent, struct slice name, bool is_multi,
                      enum field_type type, struct slice type_name, yyjson_val *definition)
{
    struct mapping_field *old = is_multi ? field__multi(parent, name) : field__child(parent, name);
    struct mapping_field *new;
    int r = read_leaf(merge, parent, name, is_multi, type, type_name, definition, &new);
    if (r != 0)
        return r;
    if (old != NULL && field__is_object(old))
        return mapping__refuse_leaf_over_object(merge, old);
    if (old != NULL)
        return merge_into_leaf(merge, old, new, definition);
    if (!merge->stored && !new->complete && (r = mark_targets_incomplete(merge, new)) != 0)
        return r;
    if (count_added(merge, new) != 0)
        return MAPPING_REFUSED;
    if (is_multi)
        field__insert(&merge->mapping->arena, &parent->multi, &parent->multi_count, new);
    else
        field__insert(&merge->mapping->arena, &parent->children, &parent->child_count, new);
    return merge_multi_fields(merge, new, json_get_lit(definition, "fields"), true);
}

/* Determines the type of a definition and merges it. */
static int merge_definition(struct merge *merge, struct mapping_field *parent, struct slice name, bool is_multi,
                            yyjson_val *definition)
{
    struct slice type_name = json_slice(json_get_lit(definition, "type"));
    bool implied_object = json_get_lit(definition, "properties") != NULL ||
                          (yyjson_obj_size(definition) == 1 && json_get_lit(definition, "enabled") != NULL);
    if (type_name.data == NULL && !implied_object)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "No type specified for field [%.*s]", SLICE_ARG(name));
    if (type_name.data == NULL)
        type_name = SLICE_LIT("object");
    if (merge->dialect == DIALECT_5)
        type_name = successor_of_string(type_name, definition);
    enum field_type type;
    if (!field_type__find(type_name, &type))
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "No handler for type [%.*s] declared on field [%.*s]",
                               SLICE_ARG(type_name), SLICE_ARG(name));
    if (!merge->stored && field_type__is_unsupported(type_name))
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                               "No handler for type [%.*s] declared on field [%.*s]; this server does not search as "
                               "that type does. An [object] with [\"enabled\": false] keeps anything, unsearched",
                               SLICE_ARG(type_name), SLICE_ARG(name));
    bool is_object = type == FIELD_OBJECT || type == FIELD_NESTED;
    bool points = slice_is(type_name, "alias") && !merge->stored;
    if ((is_object || points) && is_multi)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "Type [%.*s] cannot be used in multi field",
                               SLICE_ARG(type_name));
    if (is_object)
        return merge_object(merge, parent, name, type, definition);
    return merge_leaf(merge, parent, name, is_multi, type, type_name, definition);
}

static int merge_multi_fields(struct merge *merge, struct mapping_field *field, yyjson_val *fields, bool field_is_new)
{
    bool before = merge->incomplete;
    /* Existing documents have no entries for a multi-field that is added to an existing field. */
    merge->incomplete |= !field_is_new;
    size_t i, max;
    yyjson_val *key, *value;
    int r = 0;
    json_obj_foreach (fields, i, max, key, value) {
        if (!yyjson_is_obj(value))
            r = mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                                "illegal field [%.*s], only fields can be specified inside fields",
                                SLICE_ARG(json_slice(key)));
        else
            r = merge_definition(merge, field, json_slice(key), true, value);
        if (r != 0)
            break;
    }
    merge->incomplete = before;
    return r;
}

int mapping__merge_property(struct merge *merge, struct mapping_field *parent, struct slice name,
                            yyjson_val *definition)
{
    if (name.len == 0)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "name cannot be empty string");
    if (yyjson_is_arr(definition) && yyjson_arr_size(definition) == 0)
        return 0;
    if (!yyjson_is_obj(definition))
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                               "Expected map for property [fields] on field [%.*s] but got a class java.lang.String",
                               SLICE_ARG(name));
    struct slice rest = name;
    for (size_t end; (end = slice_find_byte(rest, '.')) < rest.len; rest = slice_from_offset(rest, end + 1)) {
        if (end == 0 || end + 1 == rest.len)
            return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "name cannot be empty string");
        int r = mapping__merge_object(merge, parent, slice_make(rest.data, end), &parent);
        if (r != 0)
            return r;
    }
    return merge_definition(merge, parent, rest, false, definition);
}

static bool is_metadata_name(struct slice name)
{
    static const char *const names[] = {"_id",      "_index",  "_type",        "_routing", "_source",
                                        "_version", "_seq_no", "_field_names", "_ignored"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_is(name, names[i]))
            return true;
    }
    return false;
}

static int merge_properties(struct merge *merge, struct mapping_field *parent, yyjson_val *properties)
{
    if (yyjson_is_arr(properties) && yyjson_arr_size(properties) == 0)
        return 0;
    if (!yyjson_is_obj(properties))
        return mapping__refuse(merge, PROBLEM_PARSE, "properties must be a map type");
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (properties, i, max, key, value) {
        struct slice name = json_slice(key);
        int r = 0;
        if (parent->parent == NULL && is_metadata_name(name))
            r = merge->dialect == DIALECT_7
                    ? mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "Field [%.*s] is defined more than once",
                                      SLICE_ARG(name))
                    : mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Field [%.*s] is defined twice in [%.*s]",
                                      SLICE_ARG(name), SLICE_ARG(merge->record->type.name));
        if (r == 0)
            r = mapping__merge_property(merge, parent, name, value);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- The root of a type --------------------------------------------------------------------------- */

/* Returns: a value as JSON text, in the mapping's arena. */
static struct slice keep_json(struct merge *merge, yyjson_val *value)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_write(&buf, value, merge->dialect);
    struct slice kept = arena_copy(&merge->mapping->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return kept;
}

/* Returns: JSON text parsed into the mapping's arena; NULL if it is malformed. */
static yyjson_val *parse_again(struct merge *merge, struct slice json)
{
    struct json_doc doc;
    return json_parse_stored(&merge->mapping->arena, json, &doc) == 0 ? doc.root : NULL;
}

static bool is_routing_required(yyjson_val *routing)
{
    bool required = false;
    return take_boolean(json_get_lit(routing, "required"), &required) && required;
}

static int merge_routing(struct merge *merge, yyjson_val *value, bool is_new)
{
    bool required = is_routing_required(value);
    if (!is_new && required != merge->record->type.routing_required && merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "Mapper for [_routing] conflicts with existing mapper:\n\tCannot update "
                               "parameter [required] from [%s] to [%s]",
                               required ? "false" : "true", required ? "true" : "false");
    merge->record->type.routing_required = required;
    return 0;
}

/* Returns: "[a, b]", as Java prints a list of strings. */
static struct slice list_text(struct merge *merge, const struct slice *items, size_t count)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    buf_byte(&buf, '[');
    for (size_t i = 0; i < count; i++)
        buf_printf(&buf, "%s%.*s", i > 0 ? ", " : "", SLICE_ARG(items[i]));
    buf_byte(&buf, ']');
    struct slice text = arena_copy(merge->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

static int read_source_patterns(struct merge *merge, struct slice name, yyjson_val *list,
                                const struct slice **ret_items, size_t *ret_count)
{
    size_t i, max;
    yyjson_val *item;
    if (merge->stored && !yyjson_is_arr(list))
        return 0; /* written by a version that did not check it: ignored */
    if (!yyjson_is_arr(list) || yyjson_arr_size(list) > JSON_FILTER_PATTERNS_MAX)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                               "[%.*s] of [_source] must be a list of at most %d patterns", SLICE_ARG(name),
                               JSON_FILTER_PATTERNS_MAX);
    struct slice *items = arena_alloc(&merge->mapping->arena, (yyjson_arr_size(list) + 1) * sizeof *items);
    json_arr_foreach (list, i, max, item) {
        if (!yyjson_is_str(item) || json_slice(item).len > JSON_FILTER_PATTERN_BYTES_MAX)
            return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "[%.*s] of [_source] takes texts of at most %d bytes",
                                   SLICE_ARG(name), JSON_FILTER_PATTERN_BYTES_MAX);
        items[i] = arena_copy(&merge->mapping->arena, json_slice(item));
    }
    *ret_items = items;
    *ret_count = max;
    return 0;
}

/* Reads the settings of `_source`. Patterns are allocated in the mapping's arena. */
static int read_source(struct merge *merge, yyjson_val *value, bool *ret_enabled, struct json_filter *ret_filter)
{
    size_t i, max;
    yyjson_val *key, *member;
    *ret_enabled = true;
    *ret_filter = (struct json_filter){NULL};
    if (!yyjson_is_obj(value) && merge->dialect == DIALECT_7 && !merge->stored)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "[_source] must be an object");
    json_obj_foreach (value, i, max, key, member) {
        struct slice name = json_slice(key);
        int r = 0;
        if (slice_is(name, "enabled"))
            (void)take_boolean(member, ret_enabled);
        else if (slice_is(name, "includes"))
            r = read_source_patterns(merge, name, member, &ret_filter->includes, &ret_filter->include_count);
        else if (slice_is(name, "excludes"))
            r = read_source_patterns(merge, name, member, &ret_filter->excludes, &ret_filter->exclude_count);
        else if (merge->dialect == DIALECT_7 && !merge->stored)
            r = mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                                "unknown parameter [%.*s] on mapper [_source] of type [null]", SLICE_ARG(name));
        if (r != 0)
            return r;
    }
    return 0;
}

/* Appends a conflict in the wording of the dialect, if two values differ. */
static void add_source_conflict(struct merge *merge, struct buf *conflicts, const char *name, struct slice from,
                                struct slice to)
{
    if (slice_equal(from, to))
        return;
    if (merge->dialect == DIALECT_7)
        buf_printf(conflicts, "\n\tCannot update parameter [%s] from [%.*s] to [%.*s]", name, SLICE_ARG(from),
                   SLICE_ARG(to));
    else
        buf_printf(conflicts, "%sCannot update %s setting for [_source]", conflicts->len > 0 ? ", " : "", name);
}

/* Refuses a change of `_source`: its settings are fixed when the type is created. */
static int check_source(struct merge *merge, bool enabled, const struct json_filter *filter)
{
    static const struct json_filter all = {NULL};
    const struct mapping_type *type = &merge->record->type;
    const struct json_filter *old = type->source_filter != NULL ? type->source_filter : &all;
    struct buf conflicts = BUF_INIT(BUF_UNLIMITED);
    int r = 0;
    add_source_conflict(merge, &conflicts, "enabled", type->source_enabled ? SLICE_LIT("true") : SLICE_LIT("false"),
                        enabled ? SLICE_LIT("true") : SLICE_LIT("false"));
    add_source_conflict(merge, &conflicts, "includes", list_text(merge, old->includes, old->include_count),
                        list_text(merge, filter->includes, filter->include_count));
    add_source_conflict(merge, &conflicts, "excludes", list_text(merge, old->excludes, old->exclude_count),
                        list_text(merge, filter->excludes, filter->exclude_count));
    if (conflicts.len > 0 && merge->dialect == DIALECT_7)
        r = mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Mapper for [_source] conflicts with existing mapper:%.*s",
                            SLICE_ARG(buf_as_slice(&conflicts)));
    else if (conflicts.len > 0)
        r = mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Can't merge because of conflicts: [%.*s]",
                            SLICE_ARG(buf_as_slice(&conflicts)));
    buf_deinit(&conflicts);
    return r;
}

static int merge_source(struct merge *merge, yyjson_val *value, bool is_new)
{
    struct json_filter *filter = arena_alloc(&merge->mapping->arena, sizeof *filter);
    bool enabled;
    int r = read_source(merge, value, &enabled, filter);
    if (r != 0)
        return r;
    if (!is_new)
        return check_source(merge, enabled, filter);
    bool whole = filter->include_count == 0 && filter->exclude_count == 0;
    merge->record->type.source_enabled = enabled;
    merge->record->type.source_filter = whole ? NULL : filter;
    bool plain = enabled && json_get_lit(value, "includes") == NULL && json_get_lit(value, "excludes") == NULL;
    merge->record->source = plain ? SLICE_NONE : keep_json(merge, value);
    return 0;
}

static int check_template(struct merge *merge, yyjson_val *template)
{
    static const char *const known[] = {"match",         "unmatch", "path_match", "path_unmatch", "match_mapping_type",
                                        "match_pattern", "mapping"};
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (template, i, max, key, value) {
        size_t k = 0;
        while (k < sizeof known / sizeof *known && !slice_is(json_slice(key), known[k]))
            k++;
        if (k == sizeof known / sizeof *known)
            return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Illegal dynamic template parameter: [%.*s]",
                                   SLICE_ARG(json_slice(key)));
        if (slice_is(json_slice(key), "match_pattern") && slice_is(json_slice(value), "regex"))
            return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "match_pattern [regex] is not supported");
    }
    if (!yyjson_is_obj(json_get_lit(template, "mapping")))
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "template must have mapping set");
    return 0;
}

static int merge_templates(struct merge *merge, yyjson_val *templates)
{
    if (!yyjson_is_arr(templates))
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                               "Dynamic template syntax error. An array of named objects is expected.");
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (templates, i, max, item) {
        yyjson_val *name = yyjson_is_obj(item) && yyjson_obj_size(item) == 1 ? unsafe_yyjson_get_first(item) : NULL;
        if (name == NULL || !yyjson_is_obj(name + 1))
            return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "A dynamic template must be defined with a name");
        int r = check_template(merge, name + 1);
        if (r != 0)
            return r;
    }
    merge->record->templates = keep_json(merge, templates);
    if (merge->bounded && merge->record->templates.len > MAPPING_DYNAMIC_TEMPLATES_BYTES_MAX)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "[dynamic_templates] has [%zu] bytes, and at most [%d] here, since each new field is "
                               "compared with all of them",
                               merge->record->templates.len, MAPPING_DYNAMIC_TEMPLATES_BYTES_MAX);
    merge->record->templates_value = parse_again(merge, merge->record->templates);
    return 0;
}

static int merge_date_formats(struct merge *merge, yyjson_val *formats)
{
    size_t i, max;
    yyjson_val *item;
    if (merge->bounded && yyjson_arr_size(formats) > MAPPING_DYNAMIC_FORMATS_MAX)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "[dynamic_date_formats] has [%zu] formats, and at most [%d] here, since each new text "
                               "is compared with all of them",
                               yyjson_arr_size(formats), MAPPING_DYNAMIC_FORMATS_MAX);
    json_arr_foreach (formats, i, max, item) {
        const struct date_format *format;
        if (date_format_parse(merge->arena, json_slice(item), merge->mapping->dates, &format) != 0)
            return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Invalid format: [%.*s]",
                                   SLICE_ARG(json_slice(item)));
    }
    merge->record->date_formats = keep_json(merge, formats);
    merge->record->date_formats_value = parse_again(merge, merge->record->date_formats);
    return 0;
}

static bool is_unconfigurable(struct slice name)
{
    return slice_is(name, "_id") || slice_is(name, "_type") || slice_is(name, "_index") || slice_is(name, "_version");
}

/* Merges one member of the root. */
static int merge_root_member(struct merge *merge, struct slice name, yyjson_val *value, bool is_new)
{
    struct type_record *record = merge->record;
    bool of_5 = merge->dialect == DIALECT_5 || merge->stored;
    if (slice_is(name, "properties"))
        return merge_properties(merge, record->type.root, value);
    if (slice_is(name, "dynamic"))
        return merge_dynamic(merge, record->type.root, value);
    if (slice_is(name, "enabled"))
        return merge_enabled(merge, record->type.root, value, is_new);
    if (slice_is(name, "dynamic_templates"))
        return merge_templates(merge, value);
    if (slice_is(name, "dynamic_date_formats") || slice_is(name, "date_formats"))
        return merge_date_formats(merge, value);
    if (slice_is(name, "_routing"))
        return merge_routing(merge, value, is_new);
    if (slice_is(name, "_source"))
        return merge_source(merge, value, is_new);
    if (slice_is(name, "date_detection") && take_boolean(value, &record->type.date_detection)) {
        record->date_detection_given = true;
    } else if (slice_is(name, "numeric_detection") && take_boolean(value, &record->type.numeric_detection)) {
        record->numeric_detection_given = true;
    } else if (slice_is(name, "_meta")) {
        record->meta = keep_json(merge, value);
    } else if (slice_is(name, "_field_names")) {
        record->field_names = keep_json(merge, value);
    } else if (slice_is(name, "_all") && of_5) {
        record->all = keep_json(merge, value);
    } else if (slice_is(name, "_parent") && of_5) {
        record->parent = keep_json(merge, value);
        record->type.routing_required = true;
    } else if (is_unconfigurable(name)) {
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "%.*s is not configurable", SLICE_ARG(name));
    } else if (!slice_is(name, "include_in_all")) {
        return refuse_unsupported(merge, SLICE_NONE, value, name);
    }
    return 0;
}

int mapping__merge_root(struct merge *merge, yyjson_val *body)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (body, i, max, key, value) {
        int r = merge_root_member(merge, json_slice(key), value, merge->type_is_new);
        if (r != 0)
            return r;
    }
    return 0;
}
