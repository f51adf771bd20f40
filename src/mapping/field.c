/* SPDX-License-Identifier: Apache-2.0 */
/* Fields: types by name, comparison of values, the tree of fields; see field.h. */
#include "mapping/field.h"

#include "base/check.h"
#include "mapping/mapping_internal.h"

#include <math.h>

static const struct {
    const char *name;
    enum field_type type;
} types[] = {
    {"text", FIELD_TEXT},
    {"keyword", FIELD_KEYWORD},
    {"long", FIELD_LONG},
    {"integer", FIELD_INTEGER},
    {"short", FIELD_SHORT},
    {"byte", FIELD_BYTE},
    {"double", FIELD_DOUBLE},
    {"float", FIELD_FLOAT},
    {"half_float", FIELD_HALF_FLOAT},
    {"scaled_float", FIELD_SCALED_FLOAT},
    {"date", FIELD_DATE},
    {"date_nanos", FIELD_DATE},
    {"boolean", FIELD_BOOLEAN},
    {"ip", FIELD_IP},
    {"binary", FIELD_BINARY},
    {"object", FIELD_OBJECT},
    {"nested", FIELD_NESTED},
    {"path", FIELD_PATH},
    {"wildcard", FIELD_KEYWORD},
    {"constant_keyword", FIELD_KEYWORD},
    {"version", FIELD_KEYWORD},
    {"search_as_you_type", FIELD_TEXT},
    {"alias", FIELD_STORED},
    {"annotated_text", FIELD_STORED},
    {"attachment", FIELD_STORED},
    {"completion", FIELD_STORED},
    {"date_range", FIELD_STORED},
    {"dense_vector", FIELD_STORED},
    {"double_range", FIELD_STORED},
    {"flattened", FIELD_STORED},
    {"float_range", FIELD_STORED},
    {"geo_point", FIELD_STORED},
    {"geo_shape", FIELD_STORED},
    {"histogram", FIELD_STORED},
    {"integer_range", FIELD_STORED},
    {"ip_range", FIELD_STORED},
    {"join", FIELD_STORED},
    {"long_range", FIELD_STORED},
    {"murmur3", FIELD_STORED},
    {"percolator", FIELD_STORED},
    {"point", FIELD_STORED},
    {"rank_feature", FIELD_STORED},
    {"rank_features", FIELD_STORED},
    {"shape", FIELD_STORED},
    {"sparse_vector", FIELD_STORED},
    {"token_count", FIELD_STORED},
};

bool field_type__find(struct slice name, enum field_type *ret_type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (slice_is(name, types[i].name)) {
            *ret_type = types[i].type;
            return true;
        }
    }
    return false;
}

/*
 * Elasticsearch's types that would be searched wrongly or not at all. Stores of earlier versions
 * may have such fields; they are kept and rendered, and searches refuse them.
 */
bool field_type__is_unsupported(struct slice name)
{
    static const char *const searched_otherwise[] = {"nested", "version", "constant_keyword"};
    enum field_type type;
    for (size_t i = 0; i < sizeof searched_otherwise / sizeof *searched_otherwise; i++)
        if (slice_is(name, searched_otherwise[i]))
            return true;
    return field_type__find(name, &type) && type == FIELD_STORED && !slice_is(name, "alias");
}

enum field_value_kind field_value_kind(const struct mapping_field *field)
{
    switch (field->type) {
    case FIELD_TEXT:
    case FIELD_KEYWORD:
    case FIELD_PATH:
    case FIELD_IP: return FIELD_VALUE_BYTES;
    case FIELD_LONG:
    case FIELD_INTEGER:
    case FIELD_SHORT:
    case FIELD_BYTE:
    case FIELD_SCALED_FLOAT:
    case FIELD_DATE:
    case FIELD_BOOLEAN: return FIELD_VALUE_I64;
    case FIELD_DOUBLE:
    case FIELD_FLOAT:
    case FIELD_HALF_FLOAT: return FIELD_VALUE_F64;
    default: return FIELD_VALUE_NONE;
    }
}

/* Compares doubles in the order of field_value_compare(). */
static int compare_doubles(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    if (a == b)
        return (signbit(b) != 0) - (signbit(a) != 0);
    return a < b ? -1 : 1;
}

int field_value_compare(const struct field_value *a, const struct field_value *b)
{
    REQUIRE(a->kind == b->kind);
    switch (a->kind) {
    case FIELD_VALUE_I64: return (a->i64 > b->i64) - (a->i64 < b->i64);
    case FIELD_VALUE_F64: return compare_doubles(a->f64, b->f64);
    case FIELD_VALUE_BYTES: return slice_compare(a->bytes, b->bytes);
    default: return 0;
    }
}

struct mapping_field *field__new(struct arena *arena, struct mapping_field *parent, struct slice name, bool is_multi)
{
    struct mapping_field *field = arena_zalloc(arena, sizeof *field);
    field->name = arena_copy(arena, name);
    field->path = field->name;
    if (parent != NULL && parent->path.len > 0)
        field->path = arena_printf(arena, "%.*s.%.*s", SLICE_ARG(parent->path), SLICE_ARG(name));
    field->parent = parent;
    field->number = FIELD_NUMBER_NONE;
    field->complete = !is_multi;
    field->enabled = true;
    field->ignore_above = FIELD_IGNORE_ABOVE_NONE;
    return field;
}

size_t field__text_bytes(const struct mapping_field *field)
{
    size_t bytes = field->path.len;
    for (size_t i = 0; i < field->parameter_count; i++)
        bytes += field->parameters[i].name.len + field->parameters[i].json.len;
    for (size_t i = 0; i < field->copy_to_count; i++)
        bytes += sizeof field->copy_to[i] + field->copy_to[i].len;
    return bytes;
}

/* Returns: the position of the first field in a sorted list whose name is not below `name`. */
static size_t lower_bound(struct mapping_field *const *list, size_t count, struct slice name)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = (low + count) / 2;
        if (slice_compare(list[middle]->name, name) < 0)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

static struct mapping_field *find_in(struct mapping_field *const *list, size_t count, struct slice name)
{
    size_t at = lower_bound(list, count, name);
    return at < count && slice_equal(list[at]->name, name) ? list[at] : NULL;
}

struct mapping_field *field__child(const struct mapping_field *field, struct slice name)
{
    return find_in(field->children, field->child_count, name);
}

struct mapping_field *field__multi(const struct mapping_field *field, struct slice name)
{
    return find_in(field->multi, field->multi_count, name);
}

void field__insert(struct arena *arena, struct mapping_field ***list, size_t *count, struct mapping_field *field)
{
    /* The capacity is implied: the list is reallocated when its count is 0 or a power of two. */
    if ((*count & (*count - 1)) == 0) {
        struct mapping_field **grown = arena_alloc(arena, (*count == 0 ? 1 : *count * 2) * sizeof *grown);
        if (*count > 0)
            memcpy(grown, *list, *count * sizeof *grown);
        *list = grown;
    }
    size_t at = lower_bound(*list, *count, field->name);
    memmove(*list + at + 1, *list + at, (*count - at) * sizeof **list);
    (*list)[at] = field;
    (*count)++;
}

struct mapping_field *field__find(struct mapping_field *root, struct slice path)
{
    struct mapping_field *field = root;
    while (field != NULL && path.data != NULL) {
        size_t end = slice_find_byte(path, '.');
        struct slice name = slice_make(path.data, end);
        field = field__is_object(field) ? field__child(field, name) : field__multi(field, name);
        path = end == path.len ? SLICE_NONE : slice_from_offset(path, end + 1);
    }
    return field;
}
