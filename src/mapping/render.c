/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings as JSON: for clients in Elasticsearch's form, and for the catalog.
 *
 * The catalog's form embeds that form of each type, and adds what clients do not see:
 *
 *   {"settings": …, "types": [{"name", "mapping", "hidden", "unmapped": [path, …]}, …],
 *    "fields": [[path, complete], …], "path": …, "tree": …, "dates": …}
 *
 * "dates" is absent for DATE_RULES_FIRST.
 */
#include "mapping/mapping_internal.h"
#include "json/each.h"
#include "json/write.h"

static void render_field(struct json_writer *w, const struct mapping_field *field);

static void render_children(struct json_writer *w, const struct mapping_field *object)
{
    json_begin(w, '{');
    for (size_t i = 0; i < object->child_count; i++) {
        json_key_slice(w, object->children[i]->name);
        render_field(w, object->children[i]);
    }
    json_end(w, '}');
}

static void render_dynamic(struct json_writer *w, const struct mapping_field *object)
{
    static const char *const names[] = {NULL, "true", "false", "strict"};
    if (object->dynamic == DYNAMIC_INHERIT)
        return;
    json_key(w, "dynamic");
    json_string(w, slice_from(names[object->dynamic]));
}

static void render_parameters(struct json_writer *w, const struct mapping_field *field)
{
    for (size_t i = 0; i < field->parameter_count; i++) {
        json_key_slice(w, field->parameters[i].name);
        json_raw(w, field->parameters[i].json);
    }
}

/* The type of an object is omitted if the object has properties, as in Elasticsearch. */
static void render_object(struct json_writer *w, const struct mapping_field *object)
{
    if (object->type == FIELD_NESTED || object->child_count == 0 || !object->enabled) {
        json_key(w, "type");
        json_string(w, object->type_name);
    }
    render_parameters(w, object);
    render_dynamic(w, object);
    if (!object->enabled) {
        json_key(w, "enabled");
        json_bool(w, false);
    }
    if (object->child_count > 0) {
        json_key(w, "properties");
        render_children(w, object);
    }
}

static void render_leaf(struct json_writer *w, const struct mapping_field *field)
{
    json_key(w, "type");
    json_string(w, field->type_name);
    if (field->multi_count > 0) {
        json_key(w, "fields");
        json_begin(w, '{');
        for (size_t i = 0; i < field->multi_count; i++) {
            json_key_slice(w, field->multi[i]->name);
            render_field(w, field->multi[i]);
        }
        json_end(w, '}');
    }
    if (field->copy_to_count > 0) {
        json_key(w, "copy_to");
        json_begin(w, '[');
        for (size_t i = 0; i < field->copy_to_count; i++)
            json_string(w, field->copy_to[i]);
        json_end(w, ']');
    }
    render_parameters(w, field);
}

static void render_field(struct json_writer *w, const struct mapping_field *field)
{
    json_begin(w, '{');
    if (field__is_object(field))
        render_object(w, field);
    else
        render_leaf(w, field);
    json_end(w, '}');
}

/* Writes a member from stored JSON text; nothing if it is not given. */
static void render_json(struct json_writer *w, const char *key, struct slice json)
{
    if (json.data == NULL)
        return;
    json_key(w, key);
    json_raw(w, json);
}

static void render_flag(struct json_writer *w, const char *key, bool given, bool value)
{
    if (!given)
        return;
    json_key(w, key);
    json_bool(w, value);
}

static void render_type(struct json_writer *w, const struct type_record *record)
{
    const struct mapping_field *root = record->type.root;
    json_begin(w, '{');
    render_dynamic(w, root);
    if (!root->enabled)
        render_flag(w, "enabled", true, false);
    render_json(w, "_meta", record->meta);
    render_json(w, "_all", record->all);
    render_json(w, "_field_names", record->field_names);
    render_json(w, "_parent", record->parent);
    render_json(w, "_source", record->source);
    if (record->type.routing_required) {
        json_key(w, "_routing");
        json_raw(w, SLICE_LIT("{\"required\":true}"));
    }
    render_json(w, "dynamic_date_formats", record->date_formats);
    render_json(w, "dynamic_templates", record->templates);
    render_flag(w, "date_detection", record->date_detection_given, record->type.date_detection);
    render_flag(w, "numeric_detection", record->numeric_detection_given, record->type.numeric_detection);
    if (root->child_count > 0) {
        json_key(w, "properties");
        render_children(w, root);
    }
    json_end(w, '}');
}

void mapping_render_type(const struct mapping *mapping, const struct mapping_type *type, enum dialect dialect,
                         struct buf *buf)
{
    (void)dialect; /* the form of a type is the same in both generations */
    struct json_writer w;
    json_writer_init(&w, buf);
    render_type(&w, mapping->types[type->number]);
}

void mapping_render(const struct mapping *mapping, enum dialect dialect, bool typed, struct buf *buf)
{
    struct json_writer w;
    json_writer_init(&w, buf);
    if (dialect == DIALECT_7 && !typed && mapping->type_count == 1) {
        render_type(&w, mapping->types[0]);
        return;
    }
    json_begin(&w, '{');
    for (size_t i = 0; i < mapping->type_count; i++) {
        if (mapping->types[i]->type.hidden)
            continue;
        json_key_slice(&w, mapping->types[i]->type.name);
        render_type(&w, mapping->types[i]);
    }
    json_end(&w, '}');
}

void mapping_render_field(const struct mapping_field *field, enum dialect dialect, struct buf *buf)
{
    (void)dialect;
    struct json_writer w;
    json_writer_init(&w, buf);
    json_begin(&w, '{');
    json_key_slice(&w, field->name);
    render_field(&w, field);
    json_end(&w, '}');
}

/* --- The catalog's form --------------------------------------------------------------------------- */

/* Encodes field numbers: the position in the array is the number. */
static void encode_fields(struct json_writer *w, const struct mapping *mapping)
{
    json_key(w, "fields");
    json_begin(w, '[');
    for (size_t i = 0; i < mapping->number_count; i++) {
        json_begin(w, '[');
        json_string(w, mapping->numbers[i].path);
        json_bool(w, mapping->numbers[i].complete);
        json_end(w, ']');
    }
    json_end(w, ']');
}

/* Encodes the paths of all objects that may have unmapped values. */
static void encode_unmapped(struct json_writer *w, const struct mapping_field *object)
{
    if (object->unmapped)
        json_string(w, object->path);
    for (size_t i = 0; i < object->child_count; i++)
        encode_unmapped(w, object->children[i]);
}

void mapping_encode(const struct mapping *mapping, struct buf *buf)
{
    struct json_writer w;
    json_writer_init(&w, buf);
    json_begin(&w, '{');
    if (mapping->settings.len > 0)
        render_json(&w, "settings", mapping->settings);
    json_key(&w, "types");
    json_begin(&w, '[');
    for (size_t i = 0; i < mapping->type_count; i++) {
        json_begin(&w, '{');
        json_key(&w, "name");
        json_string(&w, mapping->types[i]->type.name);
        json_key(&w, "mapping");
        render_type(&w, mapping->types[i]);
        if (mapping->types[i]->type.hidden) {
            json_key(&w, "hidden");
            json_bool(&w, true);
        }
        json_key(&w, "unmapped");
        json_begin(&w, '[');
        encode_unmapped(&w, mapping->types[i]->type.root);
        json_end(&w, ']');
        json_end(&w, '}');
    }
    json_end(&w, ']');
    encode_fields(&w, mapping);
    if (mapping->path_name.data != NULL) {
        json_key(&w, "path");
        json_string(&w, mapping->path_name);
    }
    if (mapping->is_tree) {
        json_key(&w, "tree");
        json_bool(&w, true);
    }
    if (mapping->dates == DATE_RULES_7_10) {
        json_key(&w, "dates");
        json_string(&w, SLICE_LIT("7.10"));
    }
    json_end(&w, '}');
}

/* Decodes field numbers and completeness; must precede decode_types(). */
static bool decode_fields(struct mapping *mapping, yyjson_val *fields)
{
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (fields, i, max, item) {
        struct slice path = json_slice(yyjson_arr_get(item, 0));
        if (path.data == NULL || i >= FIELD_NUMBER_NONE)
            return false;
        mapping->numbers =
            arena_grow(&mapping->arena, mapping->numbers, i, &mapping->number_capacity, sizeof *mapping->numbers);
        mapping->numbers[i] =
            (struct numbered_field){arena_copy(&mapping->arena, path), yyjson_is_true(yyjson_arr_get(item, 1)), NULL};
        mapping->number_count = i + 1;
    }
    return true;
}

static void decode_unmapped(struct mapping_field *root, yyjson_val *paths)
{
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (paths, i, max, item) {
        struct slice path = json_slice(item);
        struct mapping_field *object = path.len == 0 ? root : field__find(root, path);
        if (object != NULL)
            object->unmapped = true;
    }
}

static bool decode_types(struct mapping *mapping, yyjson_val *types, struct arena *arena, struct problem *problem)
{
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (types, i, max, item) {
        struct slice name = json_slice(json_get_lit(item, "name"));
        yyjson_val *body = json_get_lit(item, "mapping");
        if (name.data == NULL || !yyjson_is_obj(body) || i >= MAPPING_TYPES_MAX)
            return false;
        struct type_record *record = mapping__add_type(mapping, name);
        struct merge merge = {mapping, record, DIALECT_7, arena, problem, .type_is_new = true, .stored = true};
        if (mapping__merge_root(&merge, body) != 0)
            return false;
        record->type.hidden = yyjson_is_true(json_get_lit(item, "hidden"));
        decode_unmapped(record->type.root, json_get_lit(item, "unmapped"));
    }
    return true;
}

/*
 * Creates the mapping of the decoded `root`; `empty` has its settings.
 * Returns: 0; TL_ERR_CORRUPT, with *problem set if the types do not fit the settings.
 */
static int decode_on(const struct mapping *empty, yyjson_val *root, struct arena *arena, struct mapping **ret_mapping,
                     struct problem *problem)
{
    tl_cleanup(mapping_unrefp) struct mapping *mapping = mapping__copy(empty);
    struct slice path = json_slice(json_get_lit(root, "path"));
    if (path.data != NULL)
        mapping->path_name = arena_copy(&mapping->arena, path);
    mapping->dates = json_get_lit(root, "dates") == NULL ? DATE_RULES_FIRST : DATE_RULES_7_10;
    mapping->is_tree = path.data != NULL && yyjson_is_true(json_get_lit(root, "tree"));
    if (!decode_fields(mapping, json_get_lit(root, "fields")) ||
        !decode_types(mapping, json_get_lit(root, "types"), arena, problem) ||
        mapping__seal(mapping, arena, problem) != 0)
        return TL_ERR_CORRUPT;
    *ret_mapping = tl_steal(mapping);
    return 0;
}

static int decode_mapping(struct slice bytes, struct arena *arena, struct mapping **ret_mapping)
{
    struct json_doc doc;
    struct problem problem;
    tl_cleanup(mapping_unrefp) struct mapping *empty = NULL;
    if (json_parse_stored(arena, bytes, &doc) != 0 ||
        mapping__new_nested(json_get_lit(doc.root, "settings"), arena, &empty, &problem) != 0)
        return TL_ERR_CORRUPT;
    return decode_on(empty, doc.root, arena, ret_mapping, &problem);
}

int mapping_decode(struct slice bytes, struct mapping **ret_mapping)
{
    struct arena arena = ARENA_INIT;
    int r = decode_mapping(bytes, &arena, ret_mapping);
    arena_deinit(&arena);
    return r;
}

/* --- Change of settings --------------------------------------------------------------------------- */

/*
 * Returns: whether `new` has all members of `old`, recursively and with equal values. NULL has no
 *          members.
 */
static bool contains_all(yyjson_val *old, yyjson_val *new)
{
    size_t i, max;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(old))
        return old == NULL || yyjson_equals(old, new);
    json_obj_foreach (old, i, max, key, value)
        if (!contains_all(value, json_get(new, json_slice(key))))
            return false;
    return true;
}

/* Marks the fields with an analyzer incomplete: their entries have tokens of other analyzers. */
static void mark_incomplete(struct mapping *mapping)
{
    for (size_t i = 0; i < mapping->number_count; i++) {
        const struct mapping_field *field = mapping->numbers[i].field;
        if (field != NULL && field->analyzer != NULL)
            mapping->numbers[i].complete = false;
    }
}

/* Creates the mapping with the types of `base` and the settings of `empty`. */
static int apply_settings(const struct mapping *base, const struct mapping *empty, struct arena *arena,
                          struct mapping **ret_mapping, struct problem *ret_problem)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc, before, after;
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    mapping_encode(base, &buf);
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    before = after = (struct json_doc){0};
    int r = json_parse_stored(arena, text, &doc);
    if (r == 0 && base->settings.len > 0)
        r = json_parse_stored(arena, base->settings, &before);
    if (r == 0 && empty->settings.len > 0)
        r = json_parse_stored(arena, empty->settings, &after);
    if (r != 0)
        return tl_trace(r);
    bool kept = contains_all(json_get_lit(before.root, "analysis"), json_get_lit(after.root, "analysis"));
    if (!kept && base->path_name.data != NULL) {
        problem_set(
            ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
            "the analysis of an index whose field [%.*s] places documents in a tree cannot be changed, only added to",
            SLICE_ARG(base->path_name));
        return MAPPING_REFUSED;
    }
    if (decode_on(empty, doc.root, arena, &mapping, ret_problem) != 0)
        return MAPPING_REFUSED;
    if (!kept) { /* decode again, so that `complete` of fields follows that of their numbers */
        mark_incomplete(mapping);
        return apply_settings(mapping, empty, arena, ret_mapping, ret_problem);
    }
    *ret_mapping = tl_steal(mapping);
    return 0;
}

int mapping_apply_settings(const struct mapping *base, yyjson_val *settings, struct arena *arena,
                           struct mapping **ret_mapping, struct problem *ret_problem)
{
    tl_cleanup(mapping_unrefp) struct mapping *empty = NULL;
    int r = mapping_new(settings, base->dates, arena, &empty, ret_problem);
    if (r == 0 && slice_equal(empty->settings, base->settings))
        *ret_mapping = mapping_ref(base);
    else if (r == 0)
        r = apply_settings(base, empty, arena, ret_mapping, ret_problem);
    return r;
}
