/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a mapping: from a client's request to the next immutable mapping; see mapping.h. */
#include "mapping/mapping_internal.h"
#include "json/each.h"
#include "json/write.h"

#include <stdarg.h>

enum { TYPE_NAME_MAX = 255 };

static int refuse_name(struct arena *arena, struct problem *problem, enum problem_type type, const char *format, ...)
    TL_PRINTF(4, 5);
static int refuse_name(struct arena *arena, struct problem *problem, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    problem_set(problem, arena, type, "%.*s", SLICE_ARG(reason));
    return MAPPING_REFUSED;
}

static int check_type_name(struct slice name, enum dialect dialect, struct arena *arena, struct problem *problem)
{
    static const char forbidden[] = "#,";
    if (slice_is(name, "_doc") && dialect == DIALECT_7)
        return 0;
    if (name.len == 0)
        return refuse_name(arena, problem, PROBLEM_INVALID_TYPE_NAME, "mapping type name is empty");
    if (name.len > TYPE_NAME_MAX)
        return refuse_name(arena, problem, PROBLEM_INVALID_TYPE_NAME,
                           "mapping type name [%.*s] is too long; limit is length %d but was [%zu]", SLICE_ARG(name),
                           TYPE_NAME_MAX, name.len);
    if (name.data[0] == '_' && dialect == DIALECT_5)
        return refuse_name(arena, problem, PROBLEM_INVALID_TYPE_NAME,
                           "Document mapping type name can't start with '_', found: [%.*s]", SLICE_ARG(name));
    if (name.data[0] == '_')
        return refuse_name(arena, problem, PROBLEM_INVALID_TYPE_NAME,
                           "mapping type name [%.*s] can't start with '_' unless it is called [_doc]", SLICE_ARG(name));
    for (size_t i = 0; i < 2; i++) {
        if (slice_find_byte(name, forbidden[i]) < name.len)
            return refuse_name(arena, problem, PROBLEM_INVALID_TYPE_NAME,
                               "mapping type name [%.*s] should not include '%c' in it", SLICE_ARG(name), forbidden[i]);
    }
    if (name.data[0] == '.')
        return refuse_name(arena, problem, PROBLEM_ILLEGAL_ARGUMENT,
                           "mapping type name [%.*s] must not start with a '.'", SLICE_ARG(name));
    return 0;
}

/* Checks whether a mapping may have a type of this name, which it lacks. Returns: 0; MAPPING_REFUSED. */
static int check_new_type(const struct mapping *mapping, struct slice name, enum dialect dialect, struct arena *arena,
                          struct problem *problem)
{
    if (name.len == 0)
        name = SLICE_LIT("_doc");
    if (check_type_name(name, slice_is(name, "_doc") ? DIALECT_7 : dialect, arena, problem) != 0)
        return MAPPING_REFUSED;
    if (mapping->type_count < MAPPING_TYPES_MAX)
        return 0;
    return refuse_name(arena, problem, PROBLEM_ILLEGAL_ARGUMENT, "Limit of types [%d] has been exceeded",
                       MAPPING_TYPES_MAX);
}

/*
 * Returns: the type of this name in an unsealed mapping, added if new; NULL with *problem if the
 *          name is refused.
 */
static struct type_record *find_or_add_type(struct mapping *mapping, struct slice name, enum dialect dialect,
                                            bool *ret_new, struct arena *arena, struct problem *problem)
{
    const struct mapping_type *type = mapping_type(mapping, name);
    *ret_new = type == NULL;
    if (type != NULL)
        return mapping->types[type->number];
    if (check_new_type(mapping, name, dialect, arena, problem) != 0)
        return NULL;
    return mapping__add_type(mapping, name.len == 0 ? SLICE_LIT("_doc") : name);
}

/* Wraps a problem as the creation of an index does: "Failed to parse mapping [t]: …". */
static void wrap_problem(struct problem *problem, struct slice type, struct arena *arena)
{
    struct problem *cause = arena_alloc(arena, sizeof *cause);
    *cause = *problem;
    problem_set(problem, arena, PROBLEM_MAPPER_PARSING, "Failed to parse mapping [%.*s]: %.*s", SLICE_ARG(type),
                SLICE_ARG(cause->reason));
    problem->caused_by = cause;
}

/* Merges the body of one type into an unsealed mapping. Returns: 0; MAPPING_REFUSED. */
static int merge_type(struct mapping *mapping, struct slice name, yyjson_val *body, enum dialect dialect, bool creating,
                      enum field_counting counting, struct arena *arena, struct problem *problem)
{
    bool is_new;
    struct type_record *record = find_or_add_type(mapping, name, dialect, &is_new, arena, problem);
    if (record == NULL)
        return MAPPING_REFUSED;
    record->type.hidden = false;
    struct merge merge = {mapping,
                          record,
                          dialect,
                          arena,
                          problem,
                          .type_is_new = is_new,
                          .counts = counting != FIELDS_COUNTED_LAST,
                          .bounded = counting == FIELDS_BOUNDED || counting == FIELDS_TEXTS_BOUNDED,
                          .texts_bounded = counting == FIELDS_TEXTS_BOUNDED};
    int r = mapping__merge_root(&merge, body);
    if (r != 0 && creating && !merge.too_many)
        wrap_problem(problem, record->type.name, arena);
    return r;
}

/*
 * Completes a change: seals the copy and checks it. *ret_mapping is the copy, which is taken over,
 * or a new reference to `base` if nothing changed.
 * Returns: 0; MAPPING_REFUSED.
 */
static int finish_change(const struct mapping *base, enum field_counting counting, struct mapping **mapping,
                         struct arena *arena, struct mapping **ret_mapping, struct problem *problem)
{
    int r = mapping__seal(*mapping, arena, problem);
    if (r == 0)
        r = mapping__check_references(*mapping, arena, problem);
    if (r != 0)
        return r;
    size_t texts = (*mapping)->text_bytes; /* fields that are changed may have longer parameters */
    if (counting == FIELDS_TEXTS_BOUNDED && texts > MAPPING_TEXT_BYTES_MAX && texts > base->text_bytes)
        return refuse_name(arena, problem, PROBLEM_ILLEGAL_ARGUMENT, MAPPING_TEXTS_EXCEEDED, MAPPING_TEXT_BYTES_MAX);
    struct buf before = BUF_INIT(BUF_UNLIMITED);
    struct buf after = BUF_INIT(BUF_UNLIMITED);
    mapping_encode(base, &before);
    mapping_encode(*mapping, &after);
    bool same = slice_equal(buf_as_slice(&before), buf_as_slice(&after));
    size_t len = after.len;
    buf_deinit(&before);
    buf_deinit(&after);
    if (len > MAPPING_BYTES_MAX)
        return refuse_name(arena, problem, PROBLEM_ILLEGAL_ARGUMENT,
                           "Limit of mapping size [%u] bytes has been exceeded", MAPPING_BYTES_MAX);
    *ret_mapping = same ? mapping_ref(base) : tl_steal(*mapping);
    return 0;
}

/* Returns: the value of {"t": {…}} for the type t, or the body itself if it has another form. */
static yyjson_val *unwrap_type(yyjson_val *body, struct slice name)
{
    if (name.len == 0 || yyjson_obj_size(body) != 1)
        return body;
    yyjson_val *key = unsafe_yyjson_get_first(body);
    return slice_equal(json_slice(key), name) && yyjson_is_obj(key + 1) ? key + 1 : body;
}

int mapping_merge(const struct mapping *base, struct slice type, yyjson_val *body, enum dialect dialect, bool creating,
                  enum field_counting counting, struct arena *arena, struct mapping **ret_mapping,
                  struct problem *ret_problem)
{
    if (!yyjson_is_obj(body) || (yyjson_obj_size(body) == 0 && dialect == DIALECT_5))
        return refuse_name(arena, ret_problem, PROBLEM_MAPPER_PARSING, "malformed mapping no root object found");
    if (type.len == 0 && unwrap_type(body, SLICE_LIT("_doc")) != body)
        return refuse_name(arena, ret_problem, PROBLEM_ILLEGAL_ARGUMENT,
                           "Types cannot be provided in put mapping requests, unless the include_type_name "
                           "parameter is set to true.");
    tl_cleanup(mapping_unrefp) struct mapping *mapping = mapping__copy(base);
    int r = merge_type(mapping, type, unwrap_type(body, type), dialect, creating, counting, arena, ret_problem);
    return r == 0 ? finish_change(base, counting, &mapping, arena, ret_mapping, ret_problem) : r;
}

static bool is_root_parameter(struct slice name)
{
    static const char *const names[] = {
        "dynamic",      "enabled",        "properties",        "dynamic_templates", "dynamic_date_formats",
        "date_formats", "date_detection", "numeric_detection", "include_in_all"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_is(name, names[i]))
            return true;
    }
    return name.len > 0 && name.data[0] == '_';
}

/*
 * Returns: whether the members of "mappings" are types, as before 7.x, although it is not
 * declared.
 */
static bool holds_types(yyjson_val *mappings)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (mappings, i, max, key, value) {
        if (is_root_parameter(json_slice(key)) || !yyjson_is_obj(value))
            return false;
    }
    return yyjson_obj_size(mappings) > 0;
}

static int merge_all_types(struct mapping *mapping, yyjson_val *mappings, enum field_counting counting,
                           struct arena *arena, struct problem *problem)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (mappings, i, max, key, value) {
        if (!yyjson_is_obj(value))
            return refuse_name(arena, problem, PROBLEM_MAPPER_PARSING, "Expected map for type [%.*s]",
                               SLICE_ARG(json_slice(key)));
        int r = merge_type(mapping, json_slice(key), unwrap_type(value, json_slice(key)), DIALECT_5, true, counting,
                           arena, problem);
        if (r != 0)
            return r;
    }
    return 0;
}

int mapping_merge_all(const struct mapping *base, yyjson_val *mappings, enum dialect dialect, bool typed,
                      enum field_counting counting, struct arena *arena, struct mapping **ret_mapping,
                      struct problem *ret_problem)
{
    if (!yyjson_is_obj(mappings))
        return refuse_name(arena, ret_problem, PROBLEM_PARSE, "key [mappings] must be an object");
    if (yyjson_obj_size(mappings) == 0) {
        *ret_mapping = mapping_ref(base);
        return 0;
    }
    bool of_types = typed || dialect == DIALECT_5 || holds_types(mappings);
    if (!of_types && unwrap_type(mappings, SLICE_LIT("_doc")) != mappings)
        return refuse_name(arena, ret_problem, PROBLEM_ILLEGAL_ARGUMENT,
                           "The mapping definition cannot be nested under a type [_doc] unless "
                           "include_type_name is set to true.");
    tl_cleanup(mapping_unrefp) struct mapping *mapping = mapping__copy(base);
    int r = of_types ? merge_all_types(mapping, mappings, counting, arena, ret_problem)
                     : merge_type(mapping, SLICE_NONE, mappings, dialect, true, counting, arena, ret_problem);
    return r == 0 ? finish_change(base, counting, &mapping, arena, ret_mapping, ret_problem) : r;
}

int mapping_ensure_type(const struct mapping *base, struct slice type, bool hidden, enum dialect dialect,
                        struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem)
{
    const struct mapping_type *there = mapping_type(base, type);
    if (there != NULL && (hidden || !there->hidden)) {
        *ret_mapping = mapping_ref(base);
        return 0;
    }
    if (there == NULL && check_new_type(base, type, dialect, arena, ret_problem) != 0)
        return MAPPING_REFUSED; /* before all fields are copied: each item of a bulk may have such a type */
    tl_cleanup(mapping_unrefp) struct mapping *mapping = mapping__copy(base);
    bool is_new;
    struct type_record *record = find_or_add_type(mapping, type, dialect, &is_new, arena, ret_problem);
    if (record == NULL)
        return MAPPING_REFUSED;
    record->type.hidden = hidden;
    return finish_change(base, FIELDS_COUNTED_LAST, &mapping, arena, ret_mapping, ret_problem);
}
