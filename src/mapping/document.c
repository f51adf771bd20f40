/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extraction of a document's indexed values; see document.h.
 *
 * The fast path is one walk over the JSON in parallel with the tree of the mapping, which
 * allocates only the list of values. An unmapped field stops it. Then a second walk adds the
 * missing fields to a copy of the mapping, the copy is sealed, and a third walk extracts the
 * values under it.
 */
#include "mapping/document.h"

#include "base/check.h"
#include "json/each.h"
#include "mapping/analysis_internal.h"
#include "mapping/mapping_internal.h"
#include "json/path.h"

#include <stdarg.h>

/* Outcome of a walk, in addition to those of document.h. */
enum {
    WALK_UNKNOWN_FIELD = 2, /* the mapping must grow: dynamic mapping has to add a field */
};

struct document_walk {
    const struct mapping *mapping;
    const struct mapping_type *type;
    struct slice id;
    const struct json_doc *json;
    enum dialect dialect;
    struct arena *arena;
    struct problem *problem;
    struct merge *merge;              /* not NULL: the mapping is unsealed and grows */
    const struct mapping *before;     /* with `merge`: the mapping it was copied from */
    const struct mapping_field *only; /* not NULL: collect only values of this field */
    bool whole_texts;                 /* collect texts, not their tokens */
    bool lenient;                     /* skip values that do not fit the mapping */
    enum document_dates dates;        /* _ALL with `lenient` */
    enum field_counting counting;
    bool copying;                     /* the value comes from copy_to */
    bool is_null_value;               /* the value is the field's null_value, not in the source */
    struct field_value *values;
    size_t count;
    size_t capacity;
    size_t visited;                      /* as document.visited */
    size_t copied;                       /* of that, by multi-fields and copy_to: DOCUMENT_COPIES_MAX */
    size_t filtered;                     /* as document.filtered */
    size_t filtered_paths;               /* bytes that filters of path_hierarchy have read: analyzer_run_bounded() */
    size_t fields_copied;                /* as document.fields_copied */
    bool number_refused;                 /* as document.number_refused */
    yyjson_val *path;                    /* as document.path; NULL: none */
    yyjson_val *lock_path;               /* as document.lock_path; NULL: none */
    size_t paths;                        /* number of values of the path field so far */
    const struct mapping_field *immense; /* field of the first term that is too long; NULL: none */
    struct slice immense_term;
};

static int walk_value(struct document_walk *walk, struct mapping_field *field, yyjson_val *value,
                      struct slice shown_name);

static int refuse_document(struct document_walk *walk, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_document(struct document_walk *walk, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(walk->arena, format, arguments);
    va_end(arguments);
    problem_set(walk->problem, walk->arena, type, "%.*s", SLICE_ARG(reason));
    return DOCUMENT_REFUSED;
}

static int refuse_because(struct document_walk *walk, struct problem *cause, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_because(struct document_walk *walk, struct problem *cause, const char *format, ...)
{
    struct problem *copy = arena_alloc(walk->arena, sizeof *copy);
    *copy = *cause;
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(walk->arena, format, arguments);
    va_end(arguments);
    problem_set(walk->problem, walk->arena, PROBLEM_MAPPER_PARSING, "%.*s", SLICE_ARG(reason));
    walk->problem->caused_by = copy;
    return DOCUMENT_REFUSED;
}

/* Returns: whether the mapping and its copies have limits of bytes: FIELDS_TEXTS_BOUNDED. */
static bool bounds_texts(const struct document_walk *walk)
{
    return walk->counting == FIELDS_TEXTS_BOUNDED || walk->counting == FIELDS_FILTERS_UNBOUNDED;
}

/* Returns: a value as Java prints it. */
static struct slice preview_value(struct document_walk *walk, yyjson_val *value)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    java_text(&buf, value);
    struct slice text = arena_copy(walk->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

/*
 * Refuses a value of a field: "failed to parse field [n] of type [long] in document with id '1'.
 * Preview of field's value: 'abc'".
 */
static int refuse_field(struct document_walk *walk, struct slice path, struct slice type, yyjson_val *value,
                        struct problem *cause)
{
    if (walk->dialect == DIALECT_5)
        return refuse_because(walk, cause, "failed to parse [%.*s]", SLICE_ARG(path));
    struct slice shown = preview_value(walk, value);
    return refuse_because(walk, cause,
                          "failed to parse field [%.*s] of type [%.*s] in document with id '%.*s'. Preview "
                          "of field's value: '%.*s'",
                          SLICE_ARG(path), SLICE_ARG(type), SLICE_ARG(walk->id), SLICE_ARG(shown));
}

/* Refuses a scalar in place of an object. Returns: 0 if the walk is lenient; DOCUMENT_REFUSED. */
static int refuse_scalar(struct document_walk *walk, const struct mapping_field *object, struct slice shown_name)
{
    if (walk->lenient)
        return 0;
    bool is_new = walk->merge != NULL && map_get(&walk->before->by_path, object->path) == NULL;
    if (is_new) {
        mapping__refuse_leaf_over_object(walk->merge, object);
        return DOCUMENT_REFUSED;
    }
    return refuse_document(
        walk, PROBLEM_MAPPER_PARSING,
        "object mapping for [%.*s] tried to parse field [%.*s] as object, but found a concrete value",
        SLICE_ARG(object->path), SLICE_ARG(shown_name));
}

/*
 * Returns: whether values of a field are collected: it has a number, or it is walk->only, in
 *          whatever type of the index.
 */
static bool is_wanted(const struct document_walk *walk, const struct mapping_field *field)
{
    if (walk->only == NULL)
        return field->number != FIELD_NUMBER_NONE;
    return field == walk->only || slice_equal(field->path, walk->only->path);
}

static int add_value(struct document_walk *walk, const struct mapping_field *field, const struct field_value *value)
{
    if (!is_wanted(walk, field))
        return 0;
    if (walk->count == DOCUMENT_VALUES_MAX)
        return walk->lenient ? 0
                             : refuse_document(walk, PROBLEM_ILLEGAL_ARGUMENT,
                                               "Limit of indexed values [%d] of a document has been exceeded",
                                               DOCUMENT_VALUES_MAX);
    walk->values = arena_grow(walk->arena, walk->values, walk->count, &walk->capacity, sizeof *walk->values);
    walk->values[walk->count] = *value;
    walk->values[walk->count++].field = field->number;
    return 0;
}

/*
 * Records the first term that is too long for Lucene's index or doc values. It is refused after the
 * walk, because Elasticsearch reports errors of parsing first.
 */
static void check_term_length(struct document_walk *walk, const struct mapping_field *field, struct slice term)
{
    if (term.len > DOCUMENT_TERM_MAX && walk->immense == NULL && (field->indexed || field->doc_values)) {
        walk->immense = field;
        walk->immense_term = term;
    }
}

/* The state of collecting the tokens of one text. */
struct tokens {
    struct document_walk *walk;
    const struct mapping_field *field;
    size_t left; /* number of tokens that may still be added */
    int r;
};

static bool add_token(void *context, const struct analysis_token *token)
{
    struct tokens *tokens = context;
    struct field_value value = {.kind = FIELD_VALUE_BYTES, .bytes = token->text};
    check_term_length(tokens->walk, tokens->field, token->text);
    tokens->r = add_value(tokens->walk, tokens->field, &value);
    return tokens->r == 0 && --tokens->left > 0;
}

enum {
    VISITED_TEXT_BYTES = 16, /* bytes of a text that count as a visit */
    VISITED_NULL_VALUE = 4,  /* a null_value, which is parsed */
    VISITED_DATE = 4,        /* a date that is parsed, in addition */
    /* Bytes that a token filter reads: */
    FILTERED_ASCII_BYTES = 16,
    FILTERED_BYTES = 4, /* of a text that is not ASCII */
    FILTERED_PATH_BYTES = 16,
};

static int add_text(struct document_walk *walk, const struct mapping_field *field, struct slice text)
{
    if (!is_wanted(walk, field))
        return 0;
    struct tokens tokens = {walk, field, DOCUMENT_TOKENS_MAX, 0};
    bool bounded = walk->counting == FIELDS_TEXTS_BOUNDED && !walk->lenient;
    if (!bounded) {
        analyzer_run(field->analyzer, text, walk->arena, add_token, &tokens);
        return tokens.r;
    }
    size_t before = ANALYSIS_FILTERED_MAX - walk->filtered_paths, left = before;
    bool all = analyzer_run_bounded(field->analyzer, text, walk->arena, &left, add_token, &tokens);
    walk->filtered_paths += before - left;
    walk->filtered += (before - left) / FILTERED_PATH_BYTES;
    return all ? tokens.r
               : refuse_document(
                     walk, PROBLEM_ILLEGAL_ARGUMENT,
                     "Limit of bytes [%zu] that token filters read after [path_hierarchy] in a document has "
                     "been exceeded",
                     ANALYSIS_FILTERED_MAX);
}

/* Returns: whether dates are refused, or ignored, that 7.10 refuses. */
static bool has_strict_dates(const struct document_walk *walk, const struct mapping_field *field)
{
    if (walk->dates == DOCUMENT_DATES_ALL || walk->is_null_value) /* the mapping with its null_value may be older */
        return false;
    return walk->dates == DOCUMENT_DATES_DROPPED || !field->ignore_malformed;
}

/* Returns: the visits of a conversion of a value. */
static size_t visits_of(const struct mapping_field *field, yyjson_val *scalar)
{
    if (!yyjson_is_str(scalar))
        return 1;
    return 1 + unsafe_yyjson_get_len(scalar) / VISITED_TEXT_BYTES + (field->type == FIELD_DATE ? VISITED_DATE : 0);
}

/* Returns: the visits that all filters of a text take but the first, which visits_of() has. */
static size_t filter_visits_of(const struct mapping_field *field, yyjson_val *scalar)
{
    size_t filters = field->analyzer == NULL || !yyjson_is_str(scalar) ? 0 : analyzer_filter_count(field->analyzer);
    if (filters <= 1)
        return 0;
    struct slice text = json_slice(scalar);
    return (filters - 1) * (text.len / (utf8__is_ascii(text) ? FILTERED_ASCII_BYTES : FILTERED_BYTES));
}

/* Counts a conversion for a multi-field or a target of copy_to. Returns: 0; DOCUMENT_REFUSED: it is too many. */
static int count_copy(struct document_walk *walk, const struct mapping_field *field, yyjson_val *scalar)
{
    walk->copied += visits_of(field, scalar);
    if (walk->counting == FIELDS_TEXTS_BOUNDED)
        walk->copied += filter_visits_of(field, scalar);
    bool counts = walk->counting == FIELDS_AND_COPIES_COUNTED || bounds_texts(walk);
    if (!counts || walk->copied <= DOCUMENT_COPIES_MAX + walk->json->source.len / 4)
        return 0;
    return refuse_document(walk, PROBLEM_ILLEGAL_ARGUMENT,
                           "Limit of copies [%zu] of the values of a document, by multi-fields and [copy_to], has been "
                           "exceeded",
                           DOCUMENT_COPIES_MAX);
}

/* Adds the values of one scalar in one field. */
static int index_scalar(struct document_walk *walk, const struct mapping_field *field, yyjson_val *scalar)
{
    struct field_value value;
    struct problem cause = {0};
    walk->visited += visits_of(field, scalar);
    walk->filtered += filter_visits_of(field, scalar);
    int r = field__value(field, scalar, walk->lenient ? NULL : walk->json, walk->dialect, has_strict_dates(walk, field),
                         walk->arena, &value, &cause);
    if (r == FIELD_VALUE_IGNORED)
        return 0;
    bool is_small = field->type == FIELD_INTEGER || field->type == FIELD_SHORT || field->type == FIELD_BYTE;
    walk->number_refused =
        r == FIELD_VALUE_REFUSED && is_small && walk->dialect == DIALECT_7 && cause.type == PROBLEM_NUMBER_FORMAT;
    if (r == FIELD_VALUE_REFUSED)
        return walk->lenient ? 0 : refuse_field(walk, field->path, field->type_name, scalar, &cause);
    if (field->type == FIELD_KEYWORD && !slice_is(field->type_name, "wildcard"))
        check_term_length(walk, field, value.bytes);
    return field->type == FIELD_TEXT && !walk->whole_texts ? add_text(walk, field, value.bytes)
                                                           : add_value(walk, field, &value);
}

/* Adds the values of one scalar in a field and its multi-fields. */
static int index_scalar_all(struct document_walk *walk, const struct mapping_field *field, yyjson_val *scalar)
{
    int r = index_scalar(walk, field, scalar);
    for (size_t i = 0; i < field->multi_count && r == 0; i++) {
        r = count_copy(walk, field->multi[i], scalar);
        if (r == 0)
            r = index_scalar(walk, field->multi[i], scalar);
    }
    return r;
}

/* Returns: whether renames can replace a path: it is a string of valid length in the source. */
static bool fits_tree(struct document_walk *walk, yyjson_val *scalar)
{
    return yyjson_is_str(scalar) && !walk->copying && !walk->is_null_value && yyjson_get_len(scalar) > 0 &&
           yyjson_get_len(scalar) <= DOCUMENT_PATH_MAX;
}

/*
 * Adds a value of the path field. The first text is the lock path; renames can change it if it is
 * the only value (document.path).
 */
static int index_path(struct document_walk *walk, const struct mapping_field *field, yyjson_val *scalar)
{
    bool only_one = walk->paths++ == 0 && walk->only == NULL;
    walk->path = only_one && fits_tree(walk, scalar) ? scalar : NULL;
    if (walk->lock_path == NULL && walk->only == NULL && !walk->copying && yyjson_is_str(scalar))
        walk->lock_path = scalar;
    return index_scalar_all(walk, field, scalar);
}

/*
 * Finds the target field of a copy_to, or adds it if the mapping grows. *ret_target is NULL if the
 * target is not mapped and need not be.
 * Returns: 0; WALK_UNKNOWN_FIELD; DOCUMENT_REFUSED.
 */
static int find_copy_target(struct document_walk *walk, struct slice path, yyjson_val *scalar,
                            struct mapping_field **ret_target)
{
    struct mapping_field *root = walk->type->root;
    *ret_target = field__find(root, path);
    if (*ret_target != NULL || walk->lenient || root->dynamic == DYNAMIC_FALSE)
        return 0;
    if (root->dynamic == DYNAMIC_STRICT)
        return refuse_document(walk, PROBLEM_STRICT_DYNAMIC_MAPPING,
                               "mapping set to strict, dynamic introduction of [%.*s] within [%.*s] is not allowed",
                               SLICE_ARG(path), SLICE_ARG(walk->type->name));
    if (walk->merge == NULL)
        return WALK_UNKNOWN_FIELD;
    struct mapping_field *parent = root;
    struct slice rest = path;
    for (size_t end; (end = slice_find_byte(rest, '.')) < rest.len; rest = slice_from_offset(rest, end + 1)) {
        if (mapping__merge_object(walk->merge, parent, slice_make(rest.data, end), &parent) != 0)
            return DOCUMENT_REFUSED;
    }
    return dynamic__add(walk->merge, parent, rest, scalar, ret_target) != 0 ? DOCUMENT_REFUSED : 0;
}

static int copy_scalar(struct document_walk *walk, const struct mapping_field *field, yyjson_val *scalar)
{
    for (size_t i = 0; i < field->copy_to_count; i++) {
        struct mapping_field *target;
        int r = find_copy_target(walk, field->copy_to[i], scalar, &target);
        if (r != 0)
            return r;
        if (target == NULL || field__is_object(target))
            continue;
        r = count_copy(walk, target, scalar);
        if (r != 0)
            return r;
        walk->copying = true;
        r = target == walk->mapping->path_field ? index_path(walk, target, scalar)
                                                : index_scalar_all(walk, target, scalar);
        walk->copying = false;
        if (r != 0)
            return r;
    }
    return 0;
}

/* Returns: the field's null_value, which replaces a null; NULL if it has none. */
static yyjson_val *replace_null(struct document_walk *walk, const struct mapping_field *field)
{
    struct json_doc doc;
    if (field->null_value.data == NULL)
        return NULL;
    walk->visited += VISITED_NULL_VALUE;
    if (json_parse_stored(walk->arena, field->null_value, &doc) != 0)
        return NULL;
    return doc.root;
}

static bool is_path_field(const struct document_walk *walk, const struct mapping_field *field)
{
    return field->in_tree && slice_equal(field->path, walk->mapping->path_name);
}

static int walk_leaf(struct document_walk *walk, const struct mapping_field *field, yyjson_val *value)
{
    if (field->type == FIELD_STORED || field->type == FIELD_BINARY)
        return 0;
    walk->is_null_value = yyjson_is_null(value);
    if (walk->is_null_value)
        value = replace_null(walk, field);
    if (value == NULL)
        return 0;
    bool is_new = walk->merge != NULL && map_get(&walk->before->by_path, field->path) == NULL;
    if (is_new && yyjson_is_obj(value)) {
        if (walk->dialect == DIALECT_5)
            mapping__refuse_leaf_over_object(walk->merge, field);
        else
            mapping__refuse_object_over_leaf(walk->merge, field);
        return DOCUMENT_REFUSED;
    }
    if (is_new && dynamic__check(walk->merge, field, value) != 0)
        return DOCUMENT_REFUSED;
    int r = is_path_field(walk, field) ? index_path(walk, field, value) : index_scalar_all(walk, field, value);
    return r == 0 && field->copy_to_count > 0 && !yyjson_is_obj(value) ? copy_scalar(walk, field, value) : r;
}

static int walk_object(struct document_walk *walk, struct mapping_field *object, yyjson_val *value);

/*
 * Handles an unmapped value by the `dynamic` setting: adds a field (true), refuses the value
 * (strict) or skips it (false). Null adds no field.
 */
static int walk_unknown(struct document_walk *walk, struct mapping_field *parent, struct slice name, yyjson_val *value,
                        uint8_t dynamic)
{
    if (dynamic == DYNAMIC_STRICT && !walk->lenient)
        return refuse_document(walk, PROBLEM_STRICT_DYNAMIC_MAPPING,
                               "mapping set to strict, dynamic introduction of [%.*s] within [%.*s] is not allowed",
                               SLICE_ARG(name), SLICE_ARG(parent->path.len > 0 ? parent->path : walk->type->name));
    if (dynamic != DYNAMIC_TRUE || walk->lenient || yyjson_is_null(value))
        return 0;
    if (yyjson_is_arr(value)) {
        size_t i, max;
        yyjson_val *item;
        walk->visited += unsafe_yyjson_get_len(value);
        json_arr_foreach (value, i, max, item) {
            struct mapping_field *field = field__child(parent, name);
            int r = field != NULL ? walk_value(walk, field, item, SLICE_LIT("null"))
                                  : walk_unknown(walk, parent, name, item, dynamic);
            if (r != 0)
                return r;
        }
        return 0;
    }
    if (walk->merge == NULL)
        return WALK_UNKNOWN_FIELD;
    struct mapping_field *field;
    if (dynamic__add(walk->merge, parent, name, value, &field) != 0)
        return DOCUMENT_REFUSED;
    return walk_value(walk, field, value, name);
}

/* Returns: the `dynamic` setting that applies in an object: its own or an inherited one. */
static uint8_t dynamic_of(const struct mapping_field *object)
{
    for (; object != NULL; object = object->parent) {
        if (object->dynamic != DYNAMIC_INHERIT)
            return object->dynamic;
    }
    return DYNAMIC_TRUE;
}

static bool is_blank(struct slice part)
{
    for (size_t i = 0; i < part.len; i++) {
        if (part.data[i] != ' ' && part.data[i] != '\t' && part.data[i] != '\n' && part.data[i] != '\r')
            return false;
    }
    return true;
}

/* Refuses empty names, and names with empty parts between dots. */
static int check_name(struct document_walk *walk, struct slice name)
{
    struct problem cause;
    bool dotted = slice_find_byte(name, '.') < name.len;
    bool bad = name.len == 0 || (walk->dialect == DIALECT_5 && is_blank(name));
    struct slice rest = name;
    while (dotted && !bad && rest.len > 0) { /* as in Java's split(), one final dot is ignored */
        size_t end = slice_find_byte(rest, '.');
        bad = is_blank(slice_make(rest.data, end));
        rest = slice_from_offset(rest, end + 1);
    }
    if (!bad)
        return 0;
    if (name.len == 0 && walk->dialect == DIALECT_7)
        problem_set(&cause, walk->arena, PROBLEM_ILLEGAL_ARGUMENT, "field name cannot be an empty string");
    else
        problem_set(&cause, walk->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "object field starting or ending with a [.] makes object resolution ambiguous: [%.*s]",
                    SLICE_ARG(name));
    return refuse_because(walk, &cause, "failed to parse");
}

/*
 * Handles a null under a dotted name that is not mapped: strict refuses it, otherwise it is
 * skipped.
 */
static int walk_null(struct document_walk *walk, struct mapping_field *object, struct slice name)
{
    return dynamic_of(object) != DYNAMIC_STRICT ? 0 : walk_unknown(walk, object, name, NULL, DYNAMIC_STRICT);
}

/* Walks a member whose name has dots or is not mapped, one part of the name at a time. */
static int walk_dotted(struct document_walk *walk, struct mapping_field *object, struct slice name, yyjson_val *value)
{
    int r = walk->lenient ? 0 : check_name(walk, name);
    if (r != 0)
        return r;
    struct slice rest = name;
    struct mapping_field *first = object;
    bool is_null = walk->dialect == DIALECT_7 && yyjson_is_null(value); /* 7.x maps no objects for it */
    for (size_t end; (end = slice_find_byte(rest, '.')) < rest.len && end + 1 < rest.len;
         rest = slice_from_offset(rest, end + 1)) {
        struct slice part = slice_make(rest.data, end);
        struct mapping_field *next = field__child(object, part);
        uint8_t dynamic = dynamic_of(object);
        if (is_null && (next == NULL || !field__is_object(next)))
            return walk_null(walk, first, name);
        if (next == NULL && dynamic == DYNAMIC_TRUE && !walk->lenient) {
            if (walk->merge == NULL)
                return WALK_UNKNOWN_FIELD;
            if (mapping__merge_object(walk->merge, object, part, &next) != 0)
                return DOCUMENT_REFUSED;
        }
        if (next == NULL)
            return walk_unknown(walk, object, part, value, dynamic);
        if (!field__is_object(next)) {
            bool is_new = walk->merge != NULL && map_get(&walk->before->by_path, next->path) == NULL;
            if (is_new)
                mapping__refuse_object_over_leaf(walk->merge, next);
            return is_new ? DOCUMENT_REFUSED
                   : walk->lenient
                       ? 0
                       : refuse_document(walk, PROBLEM_MAPPER_PARSING,
                                         "Could not dynamically add mapping for field [%.*s]. Existing mapping for "
                                         "[%.*s] must be of type object but found [%.*s].",
                                         SLICE_ARG(name), SLICE_ARG(next->path), SLICE_ARG(next->type_name));
        }
        if (!next->enabled)
            return 0;
        object = next;
    }
    if (rest.len > 0 && rest.data[rest.len - 1] == '.')
        rest.len--;
    struct mapping_field *field = field__child(object, rest);
    if (field == NULL && is_null)
        return walk_null(walk, first, name);
    return field != NULL ? walk_value(walk, field, value, rest)
                         : walk_unknown(walk, object, rest, value, dynamic_of(object));
}

/*
 * Refuses metadata names of Elasticsearch in the root. Returns: 0: another name; DOCUMENT_REFUSED.
 */
static int check_metadata_name(struct document_walk *walk, struct slice name, yyjson_val *value)
{
    static const struct {
        const char *name;
        bool in_7, in_5;
    } names[] = {
        {"_id", true, true},       {"_index", true, true},   {"_type", true, true},        {"_routing", true, true},
        {"_source", true, true},   {"_version", true, true}, {"_field_names", true, true}, {"_seq_no", true, false},
        {"_ignored", true, false}, {"_ttl", false, true},    {"_parent", false, true},     {"_all", false, true},
        {"_size", false, true},    {"_uid", false, true},    {"_timestamp", false, true},
    };
    struct problem cause;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!slice_is(name, names[i].name) || !(walk->dialect == DIALECT_7 ? names[i].in_7 : names[i].in_5))
            continue;
        if (walk->dialect == DIALECT_5 && slice_is(name, "_source"))
            return refuse_document(walk, PROBLEM_ILLEGAL_ARGUMENT, "Field [_source] is defined %s in [%.*s]",
                                   yyjson_is_obj(value) ? "both as an object and a field" : "twice",
                                   SLICE_ARG(walk->type->name));
        if (walk->dialect == DIALECT_5 && (slice_is(name, "_version") || slice_is(name, "_field_names")))
            return refuse_document(walk, PROBLEM_MAPPER_PARSING,
                                   "Cannot generate dynamic mappings of type [%.*s] for [%.*s]", SLICE_ARG(name),
                                   SLICE_ARG(name));
        problem_set(&cause, walk->arena, PROBLEM_MAPPER_PARSING,
                    "Field [%.*s] is a metadata field and cannot be added inside a document. Use the index "
                    "API request parameters.",
                    SLICE_ARG(name));
        if (walk->dialect == DIALECT_7)
            return refuse_field(walk, name, name, value, &cause);
        *walk->problem = cause;
        return DOCUMENT_REFUSED;
    }
    return 0;
}

static int walk_member(struct document_walk *walk, struct mapping_field *object, struct slice name, yyjson_val *value)
{
    if (name.len > 0 && name.data[0] == '_' && object->parent == NULL && !walk->lenient) {
        int r = check_metadata_name(walk, name, value);
        if (r != 0)
            return r;
    }
    struct mapping_field *field = field__child(object, name);
    return field != NULL ? walk_value(walk, field, value, name) : walk_dotted(walk, object, name, value);
}

static int walk_object(struct document_walk *walk, struct mapping_field *object, yyjson_val *value)
{
    yyjson_val *key = unsafe_yyjson_get_first(value);
    walk->visited += unsafe_yyjson_get_len(value);
    for (size_t left = unsafe_yyjson_get_len(value); left > 0; left--) {
        int r = walk_member(walk, object, json_slice(key), key + 1);
        if (r != 0)
            return r;
        key = unsafe_yyjson_get_next(key + 1);
    }
    return 0;
}

static int walk_array(struct document_walk *walk, struct mapping_field *field, yyjson_val *array)
{
    yyjson_val *item = unsafe_yyjson_get_first(array);
    walk->visited += unsafe_yyjson_get_len(array);
    for (size_t left = unsafe_yyjson_get_len(array); left > 0; left--) {
        int r = walk_value(walk, field, item, SLICE_LIT("null"));
        if (r != 0)
            return r;
        item = unsafe_yyjson_get_next(item);
    }
    return 0;
}

static int refuse_alias(struct document_walk *walk, const struct mapping_field *field)
{
    struct problem *cause = arena_zalloc(walk->arena, sizeof *cause);
    problem_set(cause, walk->arena, PROBLEM_ILLEGAL_ARGUMENT, "Cannot write to a field alias [%.*s].",
                SLICE_ARG(field->path));
    return refuse_because(walk, cause, "failed to parse");
}

/* Walks a value of a field. `shown_name` is its name in errors: the member's, "null" in arrays. */
static int walk_value(struct document_walk *walk, struct mapping_field *field, yyjson_val *value,
                      struct slice shown_name)
{
    bool is_object = field__is_object(field);
    if (is_object && !field->enabled)
        return 0;
    if (field->type == FIELD_STORED && slice_is(field->type_name, "alias") && !unsafe_yyjson_is_null(value))
        return refuse_alias(walk, field);
    if (unsafe_yyjson_is_arr(value))
        return field->type == FIELD_STORED ? 0 : walk_array(walk, field, value);
    if (!is_object)
        return walk_leaf(walk, field, value);
    if (unsafe_yyjson_is_obj(value))
        return walk_object(walk, field, value);
    return unsafe_yyjson_is_null(value) ? 0 : refuse_scalar(walk, field, shown_name);
}

static int walk_root(struct document_walk *walk)
{
    struct mapping_field *root = walk->type->root;
    return root->enabled && yyjson_is_obj(walk->json->root) ? walk_object(walk, root, walk->json->root) : 0;
}

/* Walks the document with an unsealed copy of the mapping, adds the missing fields and seals it. */
static int grow_mapping(struct document_walk *walk, struct mapping **ret_mapping)
{
    tl_cleanup(mapping_unrefp) struct mapping *mapping = mapping__copy(walk->mapping);
    struct type_record *record = mapping->types[walk->type->number];
    struct merge merge = {mapping,
                          record,
                          walk->dialect,
                          walk->arena,
                          walk->problem,
                          .strict_dates = walk->dates != DOCUMENT_DATES_ALL,
                          .counts = walk->counting != FIELDS_COUNTED_LAST,
                          .texts_bounded = bounds_texts(walk)};
    struct document_walk growing = *walk;
    growing.before = walk->mapping;
    growing.mapping = mapping;
    growing.type = &record->type;
    growing.merge = &merge;
    growing.values = NULL;
    growing.count = growing.capacity = growing.paths = growing.copied = growing.filtered_paths = 0;
    growing.path = growing.lock_path = NULL;
    int r = walk_root(&growing);
    walk->visited = growing.visited;
    walk->filtered = growing.filtered;
    walk->fields_copied = bounds_texts(walk) ? mapping_copied_fields(walk->mapping) : mapping_path_count(walk->mapping);
    INSIST(r != WALK_UNKNOWN_FIELD);
    if (r == 0)
        r = mapping__seal(mapping, walk->arena, walk->problem);
    if (r == 0)
        *ret_mapping = tl_steal(mapping);
    return r == 0 ? 0 : DOCUMENT_REFUSED;
}

/* Number of bytes of a term shown in errors, in the form of Java's Arrays.toString(). */
enum { TERM_BYTES_SHOWN = 30 };

static int refuse_immense(struct document_walk *walk)
{
    struct slice path = walk->immense->path, shown = SLICE_NONE;
    struct problem *cause = arena_zalloc(walk->arena, sizeof *cause);
    if (!walk->immense->indexed)
        return refuse_document(walk, PROBLEM_ILLEGAL_ARGUMENT, "DocValuesField \"%.*s\" is too large, must be <= %d",
                               SLICE_ARG(path), DOCUMENT_TERM_MAX);
    for (size_t i = 0; i < TERM_BYTES_SHOWN; i++)
        shown = arena_append(walk->arena, shown, "%s%d", i == 0 ? "" : ", ", (int8_t)walk->immense_term.data[i]);
    problem_set(cause, walk->arena, PROBLEM_MAX_BYTES_LENGTH_EXCEEDED, "bytes can be at most %d in length; got %zu",
                DOCUMENT_TERM_MAX, walk->immense_term.len);
    int r = refuse_document(walk, PROBLEM_ILLEGAL_ARGUMENT,
                            "Document contains at least one immense term in field=\"%.*s\" "
                            "(whose UTF8 encoding is longer than the max length %d), all of which were skipped.  "
                            "Please correct the analyzer to not produce such terms.  "
                            "The prefix of the first immense term is: '[%.*s]...', original message: %.*s",
                            SLICE_ARG(path), DOCUMENT_TERM_MAX, SLICE_ARG(shown), SLICE_ARG(cause->reason));
    walk->problem->caused_by = cause;
    return r;
}

/* Sets what the caller counts of a document, whether or not it is refused. */
static void set_work(const struct document_walk *walk, struct document *ret_document)
{
    *ret_document = (struct document){.visited = walk->visited,
                                      .filtered = walk->filtered,
                                      .fields_copied = walk->fields_copied,
                                      .number_refused = walk->number_refused};
}

static void set_document(const struct document_walk *walk, struct mapping *update, struct document *ret_document)
{
    *ret_document = (struct document){.json = *walk->json,
                                      .values = walk->values,
                                      .value_count = walk->count,
                                      .visited = walk->visited,
                                      .filtered = walk->filtered,
                                      .fields_copied = walk->fields_copied,
                                      .update = update};
    if (walk->lock_path != NULL)
        ret_document->lock_path = json_slice(walk->lock_path);
    if (walk->path != NULL) {
        ret_document->path = json_slice(walk->path);
        ret_document->path_raw = json_string_raw(walk->json, walk->path);
    }
}

int document_parse_json(const struct mapping *mapping, const struct mapping_type *type, struct slice id,
                        const struct json_doc *json, enum dialect dialect, enum document_dates dates,
                        enum field_counting counting, struct arena *arena, struct document *ret_document,
                        struct problem *ret_problem)
{
    REQUIRE(type == mapping_type_by_number(mapping, type->number));
    if (dialect != DIALECT_7)
        dates = DOCUMENT_DATES_ALL;
    const struct document_walk begin = {.mapping = mapping,
                                        .type = type,
                                        .id = id,
                                        .json = json,
                                        .dialect = dialect,
                                        .dates = dates,
                                        .counting = counting,
                                        .arena = arena,
                                        .problem = ret_problem};
    struct document_walk walk = begin;
    int r = walk_root(&walk);
    tl_cleanup(mapping_unrefp) struct mapping *update = NULL;
    if (r == WALK_UNKNOWN_FIELD) {
        r = grow_mapping(&walk, &update);
        set_work(&walk, ret_document);
        if (r != 0)
            return DOCUMENT_REFUSED;
        walk = begin;
        walk.visited = ret_document->visited;
        walk.filtered = ret_document->filtered;
        walk.fields_copied = ret_document->fields_copied;
        walk.mapping = update;
        walk.type = mapping_type_by_number(update, type->number);
        r = walk_root(&walk);
        INSIST(r != WALK_UNKNOWN_FIELD);
    }
    if (r == 0 && walk.immense != NULL)
        r = refuse_immense(&walk);
    set_work(&walk, ret_document);
    if (r != 0)
        return DOCUMENT_REFUSED;
    set_document(&walk, tl_steal(update), ret_document);
    return 0;
}

int document_parse(const struct mapping *mapping, const struct mapping_type *type, struct slice id, struct slice source,
                   enum dialect dialect, enum document_dates dates, enum field_counting counting, struct arena *arena,
                   struct document *ret_document, struct problem *ret_problem)
{
    REQUIRE(type == mapping_type_by_number(mapping, type->number));
    struct json_doc json;
    struct problem cause;
    unsigned flags = JSON_DOCUMENT | (dialect == DIALECT_5 ? JSON_DUPLICATES : 0);
    *ret_document = (struct document){0};
    if (source.len == 0) {
        problem_set(ret_problem, arena, PROBLEM_MAPPER_PARSING, "failed to parse, document is empty");
        return DOCUMENT_REFUSED;
    }
    if (json_parse(arena, source, dialect, flags, &json, &cause) != 0) {
        struct document_walk walk = {.arena = arena, .problem = ret_problem};
        return refuse_because(&walk, &cause, "failed to parse");
    }
    return document_parse_json(mapping, type, id, &json, dialect, dates, counting, arena, ret_document, ret_problem);
}

int document_parse_stored(const struct mapping *mapping, const struct mapping_type *type, struct slice source,
                          struct arena *arena, struct document *ret_document)
{
    struct json_doc json;
    struct problem ignored;
    int r = json_parse_stored(arena, source, &json);
    if (r != 0)
        return tl_trace(r);
    struct document_walk walk = {
        .mapping = mapping, .type = type, .json = &json, .arena = arena, .problem = &ignored, .lenient = true};
    r = walk_root(&walk);
    INSIST(r == 0);
    set_document(&walk, NULL, ret_document);
    return 0;
}

void document_release(struct document *document)
{
    mapping_unref(document->update);
    document->update = NULL;
}

/* --- The values of one field ---------------------------------------------------------------------- */

/* Adds the values of a leaf in walk->only; called by json_path_each(). */
static bool collect_leaf(void *context, yyjson_val *leaf)
{
    struct document_walk *walk = context;
    if (yyjson_is_null(leaf)) {
        const struct mapping_field *base =
            walk->only->parent != NULL && !field__is_object(walk->only->parent) ? walk->only->parent : walk->only;
        leaf = replace_null(walk, base);
    }
    return leaf == NULL || index_scalar(walk, walk->only, leaf) == 0;
}

static size_t read_field(const struct mapping *mapping, const struct mapping_field *field, bool whole, yyjson_val *root,
                         struct arena *arena, struct field_value **ret_values)
{
    struct json_doc json = {.root = root};
    struct problem ignored;
    struct document_walk walk = {.mapping = mapping,
                                 .json = NULL,
                                 .arena = arena,
                                 .problem = &ignored,
                                 .only = field,
                                 .whole_texts = whole,
                                 .lenient = true};
    *ret_values = NULL;
    if (field_value_kind(field) == FIELD_VALUE_NONE)
        return 0;
    if (field->constant.data != NULL) {
        add_value(&walk, field, &(struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = field->constant});
    } else if (mapping->has_copy_to) {
        walk.json = &json;
        for (size_t i = 0; i < mapping->type_count && walk.count == 0; i++) {
            walk.type = &mapping->types[i]->type;
            walk_root(&walk);
        }
    } else {
        bool is_multi = field->parent != NULL && !field__is_object(field->parent);
        json_path_each(root, is_multi ? field->parent->path : field->path, collect_leaf, &walk);
    }
    *ret_values = walk.values;
    return walk.count;
}

size_t document_field_values(const struct mapping *mapping, const struct mapping_field *field, yyjson_val *root,
                             struct arena *arena, struct field_value **ret_values)
{
    return read_field(mapping, field, false, root, arena, ret_values);
}

size_t document_field_texts(const struct mapping *mapping, const struct mapping_field *field, yyjson_val *root,
                            struct arena *arena, struct field_value **ret_values)
{
    return read_field(mapping, field, true, root, arena, ret_values);
}
