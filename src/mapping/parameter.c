/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of leaf fields: which exist, their defaults, and which may change.
 *
 * One table lists them for all types; a field stores only those that differ from the default. The
 * order of the table is the order in rendering and in lists of conflicts.
 */
#include "base/buf.h"
#include "json/each.h"
#include "mapping/mapping_internal.h"
#include "json/write.h"

#include <stdlib.h>

#define T(type) (1u << FIELD_##type)
#define INTEGERS (T(LONG) | T(INTEGER) | T(SHORT) | T(BYTE))
#define NUMBERS (INTEGERS | T(DOUBLE) | T(FLOAT) | T(HALF_FLOAT) | T(SCALED_FLOAT))
#define STRINGS (T(TEXT) | T(KEYWORD) | T(PATH))
#define SCALARS (NUMBERS | STRINGS | T(DATE) | T(BOOLEAN) | T(IP))

enum parameter_kind { BOOLEAN, COUNT, FLOAT, TEXT, ANY };

enum parameter_change {
    CHANGES,    /* may change */
    FIXED,      /* must not change */
    FIXED_IN_7, /* may change in 5.x only */
};

static const struct mapping_parameter {
    const char *name;
    uint32_t types;
    enum parameter_kind kind;
    const char *otherwise; /* the default as JSON; NULL: absence is the default */
    enum parameter_change change;
    bool values_change; /* a change changes the indexed values of documents */
} parameters[] = {
    {"boost", SCALARS, FLOAT, "1.0", CHANGES, false},
    {"index", SCALARS, BOOLEAN, "true", FIXED, false},
    {"doc_values", SCALARS, BOOLEAN, "true", FIXED, false},
    {"doc_values", T(BINARY), BOOLEAN, "false", FIXED, false},
    {"store", SCALARS | T(BINARY), BOOLEAN, "false", FIXED, false},
    {"index_options", T(TEXT) | T(KEYWORD), TEXT, NULL, FIXED, false},
    {"term_vector", T(TEXT), TEXT, NULL, FIXED, false},
    {"position_increment_gap", T(TEXT), COUNT, NULL, FIXED, false},
    {"scaling_factor", T(SCALED_FLOAT), FLOAT, NULL, FIXED, false},
    {"format", T(DATE), TEXT, "\"" DATE_FORMAT_DEFAULT "\"", FIXED, false},
    {"locale", T(DATE), TEXT, NULL, CHANGES, false},
    {"null_value", NUMBERS | T(KEYWORD) | T(DATE) | T(BOOLEAN) | T(IP), ANY, NULL, FIXED_IN_7, true},
    {"eager_global_ordinals", T(TEXT) | T(KEYWORD), BOOLEAN, "false", CHANGES, false},
    {"ignore_above", T(KEYWORD), COUNT, "2147483647", CHANGES, true},
    {"norms", T(TEXT) | T(KEYWORD), BOOLEAN, NULL, CHANGES, false},
    {"ignore_malformed", NUMBERS | T(DATE) | T(IP), BOOLEAN, "false", CHANGES, true},
    {"coerce", NUMBERS, BOOLEAN, "true", CHANGES, true},
    {"normalizer", T(KEYWORD), TEXT, NULL, FIXED, false},
    {"split_queries_on_whitespace", T(KEYWORD), BOOLEAN, "false", CHANGES, false},
    {"analyzer", T(TEXT), TEXT, "\"default\"", FIXED, false},
    {"search_analyzer", T(TEXT), TEXT, NULL, CHANGES, false},
    {"search_quote_analyzer", T(TEXT), TEXT, NULL, CHANGES, false},
    {"similarity", STRINGS, TEXT, NULL, FIXED, false},
    {"fielddata", T(TEXT), BOOLEAN, "false", CHANGES, false},
    {"fielddata_frequency_filter", T(TEXT), ANY, NULL, CHANGES, false},
    {"index_prefixes", T(TEXT), ANY, NULL, FIXED, false},
    {"index_phrases", T(TEXT), BOOLEAN, "false", FIXED, false},
    {"include_in_all", SCALARS, BOOLEAN, NULL, CHANGES, false},
    {"precision_step", NUMBERS | T(DATE), ANY, NULL, CHANGES, false},
    {"delimiter", T(PATH), TEXT, "\"/\"", FIXED, false},
    {"value", T(KEYWORD), TEXT, NULL, FIXED, false},
    {"meta", SCALARS | T(BINARY), ANY, NULL, CHANGES, false},
};

enum { PARAMETER_COUNT = sizeof parameters / sizeof *parameters };

static const struct mapping_parameter *find_parameter(struct slice name, enum field_type type)
{
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        if ((parameters[i].types & (1u << type)) && slice_is(name, parameters[i].name))
            return &parameters[i];
    }
    return NULL;
}

struct slice field__parameter(const struct mapping_field *field, const char *name)
{
    for (size_t i = 0; i < field->parameter_count; i++) {
        if (slice_is(field->parameters[i].name, name))
            return field->parameters[i].json;
    }
    return SLICE_NONE;
}

/* Returns: the JSON of a parameter or of its default; data NULL if neither exists. */
static struct slice parameter_or_default(const struct mapping_field *field, const struct mapping_parameter *parameter)
{
    struct slice json = field__parameter(field, parameter->name);
    return json.data != NULL ? json : slice_from(parameter->otherwise);
}

static int refuse_boolean(struct merge *merge, struct mapping_field *field, const struct mapping_parameter *parameter,
                          struct slice text)
{
    if (merge->dialect == DIALECT_5)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "Can't parse [%s] value [%.*s] for field [%.*s], expected [true] or [false]",
                               parameter->name, SLICE_ARG(text), SLICE_ARG(field->name));
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                           "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
}

static struct slice java_slice(struct arena *arena, yyjson_val *value)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    java_text(&buf, value);
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

/* Appends a value in canonical form: "true" becomes true, "10" becomes 10. */
static int append_canonical(struct merge *merge, struct mapping_field *field, const struct mapping_parameter *parameter,
                            yyjson_val *value, struct buf *buf)
{
    struct slice text = java_slice(merge->arena, value);
    uint64_t count;
    switch (parameter->kind) {
    case BOOLEAN:
        if (!slice_is(text, "true") && !slice_is(text, "false"))
            return refuse_boolean(merge, field, parameter, text);
        buf_slice(buf, text);
        return 0;
    case COUNT:
        if (!slice_to_u64(text, &count) || count > INT32_MAX)
            return mapping__refuse(merge, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
        buf_u64(buf, count);
        return 0;
    case FLOAT: {
        double number;
        if (!slice_to_double(text, &number))
            return mapping__refuse(merge, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
        json_write_double(buf, number);
        return 0;
    }
    case TEXT: buf_json_string(buf, text); return 0;
    case ANY: json_write(buf, value, merge->dialect); return 0;
    }
    return 0;
}

/* Refuses a definition with unknown parameters; 5.x lists all, 7.x only `name`. */
static int refuse_unknown(struct merge *merge, struct mapping_field *field, yyjson_val *definition, struct slice name)
{
    if (merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                               "unknown parameter [%.*s] on mapper [%.*s] of type [%.*s]", SLICE_ARG(name),
                               SLICE_ARG(field->name), SLICE_ARG(field->type_name));
    struct buf list = BUF_INIT(BUF_UNLIMITED);
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (definition, i, max, key, value) {
        struct slice other = json_slice(key);
        if (slice_is(other, "type") || slice_is(other, "fields") || slice_is(other, "copy_to") ||
            find_parameter(other, field->type) != NULL)
            continue;
        buf_printf(&list, " [%.*s : ", SLICE_ARG(other));
        java_text(&list, value);
        buf_byte(&list, ']');
    }
    int r =
        mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "Mapping definition for [%.*s] has unsupported parameters: %.*s",
                        SLICE_ARG(field->name), SLICE_ARG(buf_as_slice(&list)));
    buf_deinit(&list);
    return r;
}

/* Returns: whether `index` has one of the words of 1.x and 2.x. */
static bool is_index_word(yyjson_val *value)
{
    struct slice text = json_slice(value);
    return slice_is(text, "not_analyzed") || slice_is(text, "analyzed") || slice_is(text, "no");
}

/* Checks a parameter and puts it into its slot, unless it has the default. */
static int put_parameter(struct merge *merge, struct mapping_field *field, const struct mapping_parameter *parameter,
                         yyjson_val *value, struct field_parameter slots[PARAMETER_COUNT])
{
    if (yyjson_is_null(value))
        return 0;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    int r = field__check_parameter(merge, field, parameter->name, value);
    if (r != 0)
        return r;
    if (slice_is(slice_from(parameter->name), "index") && is_index_word(value) && merge->dialect == DIALECT_5)
        buf_slice(&buf, slice_is(json_slice(value), "no") ? SLICE_LIT("false") : SLICE_LIT("true"));
    else
        r = append_canonical(merge, field, parameter, value, &buf);
    /* The default analyzer is stored too if given: a search_analyzer requires an analyzer. */
    bool is_default = parameter->otherwise != NULL && slice_is(buf_as_slice(&buf), parameter->otherwise);
    if (r == 0 && (!is_default || slice_is(slice_from(parameter->name), "analyzer")))
        slots[parameter - parameters] = (struct field_parameter){
            slice_from(parameter->name), arena_copy(&merge->mapping->arena, buf_as_slice(&buf))};
    buf_deinit(&buf);
    return r;
}

/* Returns: whether a member of a definition is not a parameter: the type, and fields it feeds. */
static bool is_structure(struct slice name)
{
    return slice_is(name, "type") || slice_is(name, "fields") || slice_is(name, "copy_to");
}

/* Stores all parameters of a field that is not searched, unchecked. */
static void keep_all(struct merge *merge, struct mapping_field *field, yyjson_val *definition)
{
    struct arena *arena = &merge->mapping->arena;
    struct field_parameter *list = arena_alloc(arena, (yyjson_obj_size(definition) + 1) * sizeof *list);
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (definition, i, max, key, value) {
        struct slice name = json_slice(key);
        if (is_structure(name))
            continue;
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_write(&buf, value, merge->dialect);
        list[field->parameter_count++] =
            (struct field_parameter){arena_copy(arena, name), arena_copy(arena, buf_as_slice(&buf))};
        buf_deinit(&buf);
    }
    field->parameters = list;
}

int field__read_parameters(struct merge *merge, struct mapping_field *field, yyjson_val *definition)
{
    if (field->type == FIELD_STORED) {
        keep_all(merge, field, definition);
        return 0;
    }
    struct field_parameter slots[PARAMETER_COUNT] = {0};
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (definition, i, max, key, value) {
        struct slice name = json_slice(key);
        if (is_structure(name))
            continue;
        const struct mapping_parameter *parameter = find_parameter(name, field->type);
        int r = parameter == NULL ? refuse_unknown(merge, field, definition, name)
                                  : put_parameter(merge, field, parameter, value, slots);
        if (r != 0)
            return r;
    }
    struct field_parameter *list = arena_alloc(&merge->mapping->arena, sizeof slots);
    for (i = 0; i < PARAMETER_COUNT; i++) {
        if (slots[i].name.data != NULL)
            list[field->parameter_count++] = slots[i];
    }
    field->parameters = list;
    return 0;
}

/* Returns: JSON text as errors show it, strings without quotes. */
static struct slice unquoted_json(struct slice json)
{
    if (json.data == NULL)
        return SLICE_LIT("null");
    bool quoted = json.len >= 2 && json.data[0] == '"';
    return quoted ? slice_make(json.data + 1, json.len - 2) : json;
}

/* Returns: whether a parameter of an existing field must not change. */
static bool must_not_change(const struct merge *merge, const struct mapping_parameter *parameter)
{
    return parameter->change == FIXED || (parameter->change == FIXED_IN_7 && merge->dialect == DIALECT_7);
}

/* Appends one conflict in the wording of the dialect. */
static void describe_conflict(struct merge *merge, struct buf *list, const struct mapping_field *field,
                              const struct mapping_parameter *parameter, struct slice old, struct slice new)
{
    if (merge->dialect == DIALECT_7) {
        buf_printf(list, "\n\tCannot update parameter [%s] from [%.*s] to [%.*s]", parameter->name,
                   SLICE_ARG(unquoted_json(old)), SLICE_ARG(unquoted_json(new)));
        return;
    }
    bool is_analyzer = slice_is(slice_from(parameter->name), "analyzer");
    buf_printf(list, "%smapper [%.*s] has different [%s]%s", list->len == 0 ? "" : ", ", SLICE_ARG(field->path),
               parameter->name, is_analyzer ? "" : " values");
}

int field__merge_parameters(struct merge *merge, struct mapping_field *field, const struct mapping_field *from)
{
    struct buf conflicts = BUF_INIT(BUF_UNLIMITED);
    bool values_change = false;
    bool number_unindexed = false;
    for (size_t i = 0; i < PARAMETER_COUNT && field->type != FIELD_STORED; i++) {
        const struct mapping_parameter *parameter = &parameters[i];
        struct slice old = parameter_or_default(field, parameter);
        struct slice new = parameter_or_default(from, parameter);
        if (!(parameter->types & (1u << field->type)) ||
            ((old.data == NULL) == (new.data == NULL) && slice_equal(old, new)))
            continue;
        values_change |= parameter->values_change;
        if (!must_not_change(merge, parameter))
            continue;
        describe_conflict(merge, &conflicts, field, parameter, old, new);
        number_unindexed |=
            slice_is(slice_from(parameter->name), "index") && ((NUMBERS | T(DATE)) & (1u << field->type)) != 0;
    }
    int r = 0;
    if (conflicts.len > 0 && merge->dialect == DIALECT_7) {
        r = mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Mapper for [%.*s] conflicts with existing mapper:%.*s",
                            SLICE_ARG(field->path), SLICE_ARG(buf_as_slice(&conflicts)));
    } else if (conflicts.len > 0) {
        if (number_unindexed)
            buf_printf(&conflicts, ", mapper [%.*s] has different [analyzer]", SLICE_ARG(field->path));
        r = mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                            "Mapper for [%.*s] conflicts with existing mapping in other types:\n[%.*s]",
                            SLICE_ARG(field->path), SLICE_ARG(buf_as_slice(&conflicts)));
    }
    buf_deinit(&conflicts);
    if (r != 0)
        return r;
    field->parameters = from->parameters;
    field->parameter_count = from->parameter_count;
    if (values_change)
        field->complete = false;
    return 0;
}

/* Returns: whether a parameter has the JSON text `json`; `otherwise` if it is not given. */
static bool parameter_is(const struct mapping_field *field, const char *name, const char *json, bool otherwise)
{
    struct slice given = field__parameter(field, name);
    return given.data == NULL ? otherwise : slice_is(given, json);
}

/* Returns: the text of a string parameter; SLICE_NONE if it is not given. */
static struct slice parameter_text(const struct mapping_field *field, const char *name)
{
    struct slice json = field__parameter(field, name);
    return json.data == NULL ? SLICE_NONE : unquoted_json(json);
}

static int resolve_analyzer(struct merge *merge, const struct mapping_field *field, const char *parameter,
                            const struct analyzer **ret_analyzer)
{
    struct slice name = parameter_text(field, parameter);
    if (name.data == NULL)
        return 0;
    *ret_analyzer = analysis_find(merge->mapping->analysis, name);
    if (*ret_analyzer != NULL)
        return 0;
    if (merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "analyzer [%.*s] has not been configured in mappings",
                               SLICE_ARG(name));
    return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "analyzer [%.*s] not found for field [%.*s]", SLICE_ARG(name),
                           SLICE_ARG(field->name));
}

static int resolve_text(struct merge *merge, struct mapping_field *field)
{
    field->analyzer = analysis_find(merge->mapping->analysis, SLICE_LIT("default"));
    if (merge->dialect == DIALECT_5 && !merge->stored && field__parameter(field, "search_analyzer").data != NULL &&
        field__parameter(field, "analyzer").data == NULL)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING,
                               "analyzer on field [%.*s] must be set when search_analyzer is set",
                               SLICE_ARG(field->name));
    int r = resolve_analyzer(merge, field, "analyzer", &field->analyzer);
    field->search_analyzer = field->analyzer;
    if (r == 0)
        r = resolve_analyzer(merge, field, "search_analyzer", &field->search_analyzer);
    field->quote_analyzer = field->search_analyzer;
    return r == 0 ? resolve_analyzer(merge, field, "search_quote_analyzer", &field->quote_analyzer) : r;
}

/* Sets the members for scoring, whose defaults depend on the type. */
static void resolve_scores(struct mapping_field *field)
{
    bool text = field->type == FIELD_TEXT;
    double boost;
    uint64_t gap;
    struct slice options = parameter_text(field, "index_options");
    field->norms = parameter_is(field, "norms", "true", text);
    field->frequencies = options.data == NULL ? text : !slice_is(options, "docs");
    field->positions = text && !slice_is(options, "docs") && !slice_is(options, "freqs");
    field->scored = !slice_is(parameter_text(field, "similarity"), "boolean");
    field->boost = slice_to_double(field__parameter(field, "boost"), &boost) ? boost : 1;
    field->position_gap =
        slice_to_u64(field__parameter(field, "position_increment_gap"), &gap) ? (uint32_t)gap : FIELD_POSITION_GAP;
}

static int resolve_keyword(struct merge *merge, struct mapping_field *field)
{
    uint64_t above;
    field->ignore_above = FIELD_IGNORE_ABOVE_NONE;
    if (slice_to_u64(field__parameter(field, "ignore_above"), &above))
        field->ignore_above = (uint32_t)above;
    if (slice_is(field->type_name, "constant_keyword"))
        field->constant = parameter_text(field, "value");
    struct slice name = parameter_text(field, "normalizer");
    if (name.data == NULL)
        return 0;
    field->analyzer = analysis_find_normalizer(merge->mapping->analysis, name);
    if (field->analyzer == NULL)
        return mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "normalizer [%.*s] not found for field [%.*s]",
                               SLICE_ARG(name), SLICE_ARG(field->name));
    return 0;
}

static int refuse_format(struct merge *merge, const struct mapping_field *field, struct slice pattern)
{
    char bad = '?';
    for (size_t i = 0; i < pattern.len && bad == '?'; i++) {
        if (((pattern.data[i] | 0x20) >= 'a' && (pattern.data[i] | 0x20) <= 'z') &&
            strchr("yuMdDHhkKmsSaEZXxz", pattern.data[i]) == NULL)
            bad = pattern.data[i];
    }
    if (merge->dialect == DIALECT_5)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Invalid format: [%.*s]: Illegal pattern component: %c",
                               SLICE_ARG(pattern), bad);
    struct problem fault;
    date_format_describe_error(&merge->mapping->arena, pattern, &fault);
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Error parsing [format] on field [%.*s]: %.*s",
                           SLICE_ARG(field->name), SLICE_ARG(fault.reason));
}

static int resolve_date(struct merge *merge, struct mapping_field *field)
{
    struct slice pattern = parameter_text(field, "format");
    field->format = date_format_default(merge->mapping->dates);
    if (pattern.data == NULL ||
        date_format_parse(&merge->mapping->arena, pattern, merge->mapping->dates, &field->format) == 0)
        return 0;
    return refuse_format(merge, field, pattern);
}

static int resolve_scaling(struct merge *merge, struct mapping_field *field)
{
    struct slice factor = field__parameter(field, "scaling_factor");
    if (factor.data == NULL && merge->dialect == DIALECT_7)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "Field [scaling_factor] is required");
    if (factor.data == NULL)
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "Field [%.*s] misses required parameter [scaling_factor]", SLICE_ARG(field->name));
    field->scaling_factor = 0;
    if (factor.data[0] != '"')
        (void)slice_to_double(factor, &field->scaling_factor);
    if (!(field->scaling_factor > 0) || factor.data[0] == '"')
        return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT,
                               "[scaling_factor] must be a positive number, got [%.*s]",
                               SLICE_ARG(unquoted_json(factor)));
    return 0;
}

/* Refuses a null_value that is not a valid value of the field. */
static int check_null_value(struct merge *merge, struct mapping_field *field)
{
    struct json_doc doc;
    struct field_value value;
    if (field->null_value.data == NULL || json_parse_stored(merge->arena, field->null_value, &doc) != 0)
        return 0;
    struct problem cause = {0};
    int r = field_value_parse(field, doc.root, merge->dialect, merge->arena, &value, &cause);
    if (r != FIELD_VALUE_REFUSED)
        return 0;
    *merge->problem = cause;
    if (cause.type == PROBLEM_ILLEGAL_ARGUMENT && slice_starts_with(cause.reason, SLICE_LIT("For input string")))
        merge->problem->type = PROBLEM_NUMBER_FORMAT;
    return MAPPING_REFUSED;
}

int field__resolve(struct merge *merge, struct mapping_field *field)
{
    field->indexed = parameter_is(field, "index", "true", true) && field_value_kind(field) != FIELD_VALUE_NONE;
    field->doc_values = parameter_is(field, "doc_values", "true", true);
    field->ignore_malformed = parameter_is(field, "ignore_malformed", "true", false);
    field->coerce = parameter_is(field, "coerce", "true", true);
    field->null_value = field__parameter(field, "null_value");
    field->ignore_above = FIELD_IGNORE_ABOVE_NONE;
    resolve_scores(field);
    int r = 0;
    if (field->type == FIELD_TEXT)
        r = resolve_text(merge, field);
    else if (field->type == FIELD_KEYWORD)
        r = resolve_keyword(merge, field);
    else if (field->type == FIELD_DATE)
        r = resolve_date(merge, field);
    else if (field->type == FIELD_SCALED_FLOAT)
        r = resolve_scaling(merge, field);
    return r == 0 ? check_null_value(merge, field) : r;
}
