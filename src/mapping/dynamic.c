/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic mapping: the field definition that an unmapped value gets.
 *
 * The first matching dynamic template determines it. Without one the JSON type does; strings are
 * tried as dates and, with numeric_detection, as numbers.
 */
#include "base/check.h"
#include "json/each.h"
#include "mapping/mapping_internal.h"
#include "json/filter.h"
#include "json/write.h"

#include <stdlib.h>

/* The detected type of a value. */
struct detection {
    const char *kind;    /* as in match_mapping_type: "string", "long", "double", … */
    const char *type;    /* the type of the field without a template */
    struct slice format; /* the format of a date; data NULL: the default, or not a date */
};

/* The formats of dynamic_date_formats if the mapping does not define them. */
static const struct slice default_formats[] = {
    {"strict_date_optional_time", 25},
    {"yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis", 45},
};

static size_t count_byte(struct slice text, char byte)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == byte;
    return count;
}

/*
 * Returns: whether a text has a separator, which 7.x requires of detected dates since a plain
 *          number would match a format too; 5.x requires two.
 */
static bool may_be_date(struct slice text, enum dialect dialect)
{
    size_t enough = dialect == DIALECT_5 ? 2 : 1;
    return count_byte(text, ':') >= enough || count_byte(text, '-') >= enough || count_byte(text, '/') >= enough;
}

static struct slice date_pattern_at(const struct merge *merge, size_t i)
{
    yyjson_val *own = merge->record->date_formats_value;
    return own != NULL ? json_slice(yyjson_arr_get(own, i)) : default_formats[i];
}

/* Returns: the format at a position of `count`; NULL: it is invalid. Each is compiled once in a merge. */
static const struct date_format *date_format_at(struct merge *merge, size_t i, size_t count)
{
    REQUIRE(i < count);
    if (merge->date_formats == NULL)
        merge->date_formats = arena_zalloc(merge->arena, count * sizeof *merge->date_formats);
    if (merge->date_formats[i] == NULL &&
        date_format_parse(merge->arena, date_pattern_at(merge, i), merge->mapping->dates, &merge->date_formats[i]) != 0)
        return NULL;
    return merge->date_formats[i];
}

static bool is_date_of(const struct merge *merge, const struct date_format *format, struct slice text)
{
    int64_t ignored;
    return format != NULL && date_parse(format, text, false, &ignored) == 0 &&
           (!merge->strict_dates || date_is_strict(format, text));
}

/* Returns: whether a text is a date; *ret_format is its format, SLICE_NONE for the default. */
static bool detect_date(struct merge *merge, struct slice text, struct slice *ret_format)
{
    yyjson_val *own = merge->record->date_formats_value;
    if (!merge->record->type.date_detection || !may_be_date(text, merge->dialect))
        return false;
    size_t count = own != NULL ? yyjson_arr_size(own) : sizeof default_formats / sizeof *default_formats;
    for (size_t i = 0; i < count; i++)
        if (is_date_of(merge, date_format_at(merge, i, count), text)) {
            *ret_format = own == NULL && i == 0 ? SLICE_NONE : date_pattern_at(merge, i);
            return true;
        }
    return false;
}

/* Returns: "long" or "float" for a text that is a number; else NULL. */
static const char *detect_number(struct slice text)
{
    int64_t integer;
    if (slice_to_i64(text, &integer))
        return "long";
    char copy[64];
    if (text.len == 0 || text.len >= sizeof copy || text.data[0] <= ' ' ||
        count_byte(text, 'x') + count_byte(text, 'X') > 0)
        return NULL;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    char *end;
    (void)strtod(copy, &end);
    bool is_word = (copy[text.len - 1] | 0x20) >= 'a' && (copy[text.len - 1] | 0x20) <= 'z';
    return *end == '\0' && !is_word ? "float" : NULL;
}

static struct detection examine_string(struct merge *merge, struct slice text)
{
    struct slice format = SLICE_NONE;
    if (detect_date(merge, text, &format))
        return (struct detection){"date", "date", format};
    const char *number = merge->record->type.numeric_detection ? detect_number(text) : NULL;
    if (number != NULL)
        return (struct detection){number[0] == 'l' ? "long" : "double", number, SLICE_NONE};
    return (struct detection){"string", "text", SLICE_NONE};
}

/* Returns: whether a value is an integer beyond a long. */
static bool is_big_integer(yyjson_val *value)
{
    if (yyjson_is_uint(value))
        return yyjson_get_uint(value) > INT64_MAX;
    struct slice raw = json_slice(value);
    return yyjson_is_raw(value) && slice_find_byte(raw, '.') == raw.len && slice_find_byte(raw, 'e') == raw.len &&
           slice_find_byte(raw, 'E') == raw.len;
}

static struct detection detect_type(struct merge *merge, yyjson_val *value)
{
    if (yyjson_is_obj(value))
        return (struct detection){"object", "object", SLICE_NONE};
    if (yyjson_is_str(value))
        return examine_string(merge, json_slice(value));
    if (yyjson_is_bool(value))
        return (struct detection){"boolean", "boolean", SLICE_NONE};
    if (yyjson_is_int(value) || is_big_integer(value))
        return (struct detection){"long", "long", SLICE_NONE};
    return (struct detection){"double", "float", SLICE_NONE};
}

/* Returns: whether `text` matches a wildcard pattern, or one of an array of patterns. */
static bool matches_any_pattern(yyjson_val *patterns, struct slice text)
{
    if (!yyjson_is_arr(patterns))
        return json_wildcard(json_slice(patterns), text);
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (patterns, i, max, item) {
        if (json_wildcard(json_slice(item), text))
            return true;
    }
    return false;
}

static bool template_matches(yyjson_val *template, struct slice name, struct slice path, const char *kind)
{
    static const struct {
        const char *member;
        bool of_path;
        bool wanted;
    } rules[] = {
        {"match", false, true}, {"unmatch", false, false}, {"path_match", true, true}, {"path_unmatch", true, false}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        yyjson_val *patterns = json_get(template, slice_from(rules[i].member));
        if (patterns != NULL && matches_any_pattern(patterns, rules[i].of_path ? path : name) != rules[i].wanted)
            return false;
    }
    yyjson_val *wanted = json_get_lit(template, "match_mapping_type");
    return wanted == NULL || matches_any_pattern(wanted, slice_from(kind));
}

/* Returns: the "mapping" of the first template that matches, or NULL. */
static yyjson_val *find_template(struct merge *merge, struct slice name, struct slice path, const char *kind)
{
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (merge->record->templates_value, i, max, item) {
        yyjson_val *template = unsafe_yyjson_get_first(item) + 1;
        if (template_matches(template, name, path, kind))
            return json_get_lit(template, "mapping");
    }
    return NULL;
}

/* Appends a string of a template with {name} and {dynamic_type} replaced. */
static void put_filled(struct buf *buf, struct slice text, struct slice name, const char *type)
{
    struct buf filled = BUF_INIT(BUF_UNLIMITED);
    static const struct slice marks[] = {{"{name}", 6}, {"{dynamic_type}", 14}, {"{dynamicType}", 13}};
    while (text.len > 0) {
        size_t i = 0;
        while (i < 3 && !slice_starts_with(text, marks[i]))
            i++;
        if (i < 3)
            buf_slice(&filled, i == 0 ? name : slice_from(type));
        else
            buf_byte(&filled, text.data[0]);
        text = slice_from_offset(text, i < 3 ? marks[i].len : 1);
    }
    buf_json_string(buf, buf_as_slice(&filled));
    buf_deinit(&filled);
}

/* Appends the mapping of a template as JSON, with placeholders replaced in all its strings. */
static void fill_template(struct buf *buf, yyjson_val *value, struct slice name, const char *type)
{
    size_t i, max;
    yyjson_val *key, *item;
    if (yyjson_is_obj(value)) {
        buf_byte(buf, '{');
        json_obj_foreach (value, i, max, key, item) {
            if (i > 0)
                buf_byte(buf, ',');
            put_filled(buf, json_slice(key), name, type);
            buf_byte(buf, ':');
            fill_template(buf, item, name, type);
        }
        buf_byte(buf, '}');
    } else if (yyjson_is_str(value)) {
        put_filled(buf, json_slice(value), name, type);
    } else {
        json_write(buf, value, DIALECT_7);
    }
}

/* Appends the definition of a field as JSON: from a template (NULL: none) or the detected type. */
static void write_definition(struct buf *buf, yyjson_val *template, struct slice name,
                             const struct detection *detection)
{
    if (template != NULL) {
        bool has_type = json_get_lit(template, "type") != NULL;
        fill_template(buf, template, name, detection->type);
        if (!has_type) {
            buf_chop(buf, 1); /* the closing brace */
            buf_printf(buf, "%s\"type\":\"%s\"}", yyjson_obj_size(template) > 0 ? "," : "", detection->type);
        }
        return;
    }
    buf_printf(buf, "{\"type\":\"%s\"", detection->type);
    if (detection->format.data != NULL) {
        buf_lit(buf, ",\"format\":");
        buf_json_string(buf, detection->format);
    }
    if (strcmp(detection->type, "text") == 0)
        buf_lit(buf, ",\"fields\":{\"keyword\":{\"type\":\"keyword\",\"ignore_above\":256}}");
    buf_byte(buf, '}');
}

static int refuse_big_integer(struct merge *merge)
{
    struct problem *cause = arena_alloc(merge->arena, sizeof *cause);
    problem_set(cause, merge->arena, PROBLEM_ILLEGAL_STATE, "No matching token for number_type [BIG_INTEGER]");
    int r = mapping__refuse(merge, PROBLEM_MAPPER_PARSING, "failed to parse");
    merge->problem->caused_by = cause;
    return r;
}

int dynamic__add(struct merge *merge, struct mapping_field *parent, struct slice name, yyjson_val *value,
                 struct mapping_field **ret_field)
{
    struct detection detection = detect_type(merge, value);
    if (is_big_integer(value) && merge->dialect == DIALECT_5)
        return refuse_big_integer(merge);
    struct slice path = parent->path.len == 0
                            ? name
                            : arena_printf(merge->arena, "%.*s.%.*s", SLICE_ARG(parent->path), SLICE_ARG(name));
    struct buf definition = BUF_INIT(BUF_UNLIMITED);
    write_definition(&definition, find_template(merge, name, path, detection.kind), name, &detection);
    struct json_doc doc;
    int r = json_parse_stored(merge->arena, buf_as_slice(&definition), &doc);
    INSIST(r == 0);
    buf_deinit(&definition);
    /* No document has a value of the field yet, unless an object above it has unmapped values. */
    r = mapping__merge_property(merge, parent, name, doc.root);
    if (r == 0)
        *ret_field = field__child(parent, name);
    return r;
}

int dynamic__check(struct merge *merge, const struct mapping_field *field, yyjson_val *value)
{
    struct detection detection = detect_type(merge, value);
    struct slice path = field->path;
    if (find_template(merge, field->name, path, detection.kind) != NULL || slice_is(field->type_name, detection.type))
        return 0;
    static const char *const defaults[] = {"text", "long", "float", "boolean", "date"};
    bool is_default = false;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        is_default |= slice_is(field->type_name, defaults[i]);
    bool both_numbers = (slice_is(field->type_name, "long") || slice_is(field->type_name, "float")) &&
                        (detection.kind[0] == 'l' || strcmp(detection.kind, "double") == 0);
    if (!is_default || (both_numbers && merge->dialect == DIALECT_5))
        return 0;
    struct slice reason =
        merge->dialect == DIALECT_7
            ? arena_printf(merge->arena, "mapper [%.*s] cannot be changed from type [%.*s] to [%s]", SLICE_ARG(path),
                           SLICE_ARG(field->type_name), detection.type)
            : arena_printf(merge->arena, "mapper [%.*s] of different type, current_type [%.*s], merged_type [%s]",
                           SLICE_ARG(path), SLICE_ARG(field->type_name), detection.type);
    return mapping__refuse(merge, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
}
