/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing hits as JSON, with the members in Elasticsearch's order. Without source filtering, the
 * source is copied and not parsed.
 */
#include "query/fetch.h"

#include "json/each.h"
#include "mapping/date.h"
#include "mapping/document.h"
#include "base/number_format.h"
#include "json/filter.h"
#include "query/metadata.h"
#include "query/named.h"
#include "query/sort.h"
#include "script/script.h"
#include "json/path.h"
#include "json/write.h"

#include <inttypes.h>
#include <stdlib.h>

static bool source_enabled(const struct mapping *mapping)
{
    return mapping_type_count(mapping) == 0 || mapping_type_at(mapping, 0)->source_enabled;
}

/* Returns: whether stored_fields names the source, which is returned then even if `_source` is false. */
static bool stores_source(const struct search_request *request)
{
    for (size_t i = 0; i < request->stored_field_count; i++)
        if (slice_is(request->stored_fields[i], "_source"))
            return true;
    return false;
}

int fetcher_init(struct fetcher *fetcher, struct binder *binder, const struct search_request *request,
                 const struct named_list *named)
{
    *fetcher = (struct fetcher){.context = binder->context, .request = request, .index = binder->index, .named = named};
    struct buf name = BUF_INIT(BUF_UNLIMITED);
    buf_json_string(&name, binder->index->name);
    fetcher->index_json = arena_copy(binder->arena, buf_as_slice(&name));
    buf_deinit(&name);
    bool other_fields = request->stored_field_count > 0 || request->script_field_count > 0;
    fetcher->source_allowed = source_enabled(binder->index->mapping);
    fetcher->source = fetcher->source_allowed &&
                      (stores_source(request) || (!request->no_source && (request->source_asked || !other_fields)));
    fetcher->source_whole = request->source.include_count == 0 && request->source.exclude_count == 0;
    fetcher->ids = !request->stored_none;
    fetcher->fields =
        other_fields || request->docvalue_count > 0 || request->field_count > 0 || request->collapse.data != NULL;
    fetcher->scripts = arena_zalloc(binder->arena, (request->script_field_count + 1) * sizeof(struct script *));
    if (request->stored_none && binder->context->dialect == DIALECT_7 &&
        (fetcher->source || request->field_count > 0)) {
        problem_set(binder->problem, binder->arena, PROBLEM_SEARCH,
                    fetcher->source ? "[stored_fields] cannot be disabled if [_source] is requested"
                                    : "[stored_fields] cannot be disabled when using the [fields] option");
        return QUERY_REFUSED;
    }
    for (size_t i = 0; i < request->script_field_count; i++) {
        int r = bind__script(binder, request->script_fields[i].script, SCRIPT_FOR_FIELD, &fetcher->scripts[i]);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

/* State of writing the "fields" of one hit. */
struct fields_writer {
    const struct fetcher *fetcher;
    struct match_doc *match_doc;
    struct buf *buf;
    const struct field_format *format;
    const struct date_format *dates;     /* requested format of the current field; NULL: none */
    const struct number_format *numbers; /* requested format of the current field; NULL: none */
    struct slice name;                   /* of the current field, or its alias */
    mapping_visit *write;                /* called for each field that a pattern matches */
    bool begun;                          /* "fields":{ is written */
    bool in_order;                       /* values are written in the order of the source */
    bool open;                           /* the list of the current field is begun */
    bool values;                         /* a value of the current field is written */
    int result;                          /* 0; QUERY_REFUSED; fatal codes */
};

static void begin_field(struct fields_writer *w, struct slice name)
{
    if (w->begun)
        buf_byte(w->buf, ',');
    else
        buf_lit(w->buf, ",\"fields\":{");
    w->begun = true;
    w->values = false;
    buf_json_string(w->buf, name);
    buf_lit(w->buf, ":[");
}

static void begin_value(struct fields_writer *w)
{
    if (w->values)
        buf_byte(w->buf, ',');
    w->values = true;
}

static void refuse_field(struct fields_writer *w, struct slice reason)
{
    struct match_doc *match_doc = w->match_doc;
    match_doc->problem = arena_zalloc(match_doc->problems, sizeof *match_doc->problem);
    *match_doc->problem =
        (struct problem){.type = PROBLEM_ILLEGAL_ARGUMENT, .reason = arena_copy(match_doc->problems, reason)};
    w->result = QUERY_REFUSED;
}

static bool is_number(const struct mapping_field *field)
{
    enum field_value_kind kind = field_value_kind(field);
    return (kind == FIELD_VALUE_I64 || kind == FIELD_VALUE_F64) && field->type != FIELD_DATE &&
           field->type != FIELD_BOOLEAN;
}

/*
 * Parses the requested format as a date or number format, depending on the field. Returns: false if
 * it is refused.
 */
static bool set_format(struct fields_writer *w, const struct mapping_field *field)
{
    struct arena *arena = &w->match_doc->arena;
    struct slice format = w->format != NULL ? w->format->format : SLICE_NONE, why;
    w->dates = NULL;
    w->numbers = NULL;
    if (format.data == NULL)
        return true;
    (void)account_take(w->match_doc->account, format.len);
    if (field->type == FIELD_DATE) {
        if (date_format_parse(arena, format, DATE_RULES_7_10, &w->dates) == 0)
            return true;
        refuse_field(w, SLICE_NONE);
        date_format_describe_error(w->match_doc->problems, format, w->match_doc->problem);
    } else if (is_number(field)) {
        if (number_format_parse(arena, format, &w->numbers, &why) == 0)
            return true;
        refuse_field(w, why);
    } else {
        refuse_field(w, arena_printf(arena, "Field [%.*s] of type [%.*s] does not support custom formats",
                                     SLICE_ARG(w->name), SLICE_ARG(field->type_name)));
    }
    return false;
}

static void write_date(struct fields_writer *w, const struct mapping_field *field, int64_t millis)
{
    const struct date_format *format = w->dates != NULL        ? w->dates
                                       : field->format != NULL ? field->format
                                                               : date_format_default(DATE_RULES_7_10);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (w->fetcher->context->dialect == DIALECT_5 && w->dates == NULL) {
        buf_i64(w->buf, millis);
        return;
    }
    date_print(&text, format, millis, NULL);
    buf_json_string(w->buf, buf_as_slice(&text));
    buf_deinit(&text);
}

/* Writes a number as a string in the requested format. */
static void write_number(struct fields_writer *w, const struct mapping_field *field, const struct field_value *value)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (value->kind == FIELD_VALUE_F64)
        number_print_double(&text, w->numbers, value->f64);
    else if (field->type == FIELD_SCALED_FLOAT)
        number_print_double(&text, w->numbers, (double)value->i64 / field->scaling_factor);
    else
        number_print_i64(&text, w->numbers, value->i64);
    buf_json_string(w->buf, buf_as_slice(&text));
    buf_deinit(&text);
}

static void write_value(struct fields_writer *w, const struct mapping_field *field, const struct field_value *value)
{
    begin_value(w);
    if (w->numbers != NULL)
        write_number(w, field, value);
    else if (field->type == FIELD_IP)
        query__write_ip(w->buf, value->bytes);
    else if (value->kind == FIELD_VALUE_BYTES)
        buf_json_string(w->buf, value->bytes);
    else if (field->type == FIELD_FLOAT && w->in_order)
        json_float_text(w->buf, (float)value->f64);
    else if (value->kind == FIELD_VALUE_F64)
        json_write_double(w->buf, value->f64);
    else if (field->type == FIELD_DATE)
        write_date(w, field, value->i64);
    else if (field->type == FIELD_BOOLEAN && value->i64 != 0)
        buf_lit(w->buf, "true");
    else if (field->type == FIELD_BOOLEAN)
        buf_lit(w->buf, "false");
    else if (field->type == FIELD_SCALED_FLOAT)
        json_write_double(w->buf, (double)value->i64 / field->scaling_factor);
    else
        buf_i64(w->buf, value->i64);
}

/* Returns: the number of values of a field, in the order of the source; a text is one value. */
static size_t values_in_order(struct fields_writer *w, const struct mapping_field *field,
                              const struct field_value **ret_values)
{
    yyjson_val *root = field->type == FIELD_TEXT ? match_doc_root(w->match_doc) : NULL;
    struct field_value *texts = NULL;
    if (root == NULL)
        return match_doc_field(w->match_doc, field, ret_values);
    size_t count = document_field_texts(w->match_doc->index->mapping, field, root, &w->match_doc->arena, &texts);
    *ret_values = texts;
    return count;
}

/*
 * Adds a field's doc values to its list, typed: in the order of the source, or sorted and without
 * duplicate texts and addresses.
 */
static void add_docvalues(struct fields_writer *w, const struct mapping_field *field)
{
    const struct field_value *values = NULL;
    if (field_value_kind(field) == FIELD_VALUE_NONE || (field->type == FIELD_TEXT && !w->in_order) || w->result != 0 ||
        !set_format(w, field))
        return;
    size_t count = w->in_order ? values_in_order(w, field, &values) : match_doc_sorted(w->match_doc, field, &values);
    if (count > 0 && !w->open) {
        begin_field(w, w->name);
        w->open = true;
    }
    for (size_t i = 0; i < count; i++)
        if (i == 0 || w->in_order || values[i].kind != FIELD_VALUE_BYTES ||
            field_value_compare(&values[i], &values[i - 1]) != 0)
            write_value(w, field, &values[i]);
}

/* Ends the list of the current field, if it is begun. */
static void end_field(struct fields_writer *w)
{
    if (w->open)
        buf_byte(w->buf, ']');
    w->open = false;
}

static void write_docvalues(void *context, const struct mapping_field *field)
{
    struct fields_writer *w = context;
    add_docvalues(w, field);
    end_field(w);
}

/*
 * Charges the account for a pattern that is compared with the names of `count` fields. Returns: false if the account
 * has ended: the hit is discarded.
 */
static bool charge_pattern(const struct match_doc *match_doc, struct slice pattern, size_t count)
{
    return account_take(match_doc->account, count * (4 + pattern.len));
}

static bool has_ended(const struct match_doc *match_doc)
{
    return match_doc->account != NULL && account_ended(match_doc->account);
}

/*
 * Returns: whether one of the `count` patterns of an option names the current field; true also if the account has
 * ended.
 */
static bool is_named(const struct fields_writer *w, const struct field_format *formats, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!charge_pattern(w->match_doc, formats[i].pattern, 1) || json_wildcard(formats[i].pattern, w->name))
            return true;
    }
    return false;
}

/*
 * Writes the doc values of a field of the option `docvalue_fields`, as often as it is named there,
 * each time in that format. The option `fields` takes precedence.
 */
/*
 * Refuses a field without doc values that is asked for by its name; a pattern passes over it. Returns: whether it was.
 */
static bool refuse_without_values(struct fields_writer *w, const struct mapping_field *field)
{
    struct slice pattern = w->format->pattern;
    struct arena *arena = &w->match_doc->arena;
    if (w->fetcher->context->dialect != DIALECT_7 || w->result != 0 || slice_find_byte(pattern, '*') < pattern.len)
        return false;
    if (field->type == FIELD_TEXT && !field_parameter_flag(field, "fielddata", false))
        refuse_field(w, script_doc_refusal(arena, false, field->path));
    else if (!field_parameter_flag(field, "doc_values", !slice_is(field->type_name, "binary")))
        refuse_field(w, arena_printf(arena,
                                     "Can't load fielddata on [%.*s] because fielddata is unsupported on fields of "
                                     "type [%.*s]. Use doc values instead.",
                                     SLICE_ARG(field->path), SLICE_ARG(field->type_name)));
    return w->result != 0;
}

static void write_requested_docvalues(void *context, const struct mapping_field *field)
{
    struct fields_writer *w = context;
    const struct search_request *request = w->fetcher->request;
    size_t at = (size_t)(w->format - request->docvalue_fields);
    if (refuse_without_values(w, field))
        return;
    if (is_named(w, request->docvalue_fields, at) || is_named(w, request->fields, request->field_count))
        return;
    for (size_t i = at; i < request->docvalue_count && !has_ended(w->match_doc); i++) {
        if (!is_named(w, &request->docvalue_fields[i], 1))
            continue;
        w->format = &request->docvalue_fields[i];
        add_docvalues(w, field);
    }
    w->format = &request->docvalue_fields[at];
    end_field(w);
}

static bool write_leaf(void *context, yyjson_val *leaf)
{
    struct fields_writer *w = context;
    if (yyjson_is_null(leaf) || yyjson_is_ctn(leaf))
        return true;
    begin_value(w);
    json_write(w->buf, leaf, w->fetcher->context->dialect);
    return true;
}

static bool has_leaf(void *context, yyjson_val *leaf)
{
    bool *found = context;
    *found = *found || (!yyjson_is_null(leaf) && !yyjson_is_ctn(leaf));
    return !*found;
}

/* Writes the values at a path of the source, unchanged. */
static void write_source_values(struct fields_writer *w, struct slice name, struct slice path)
{
    bool found = false;
    yyjson_val *root = match_doc_root(w->match_doc);
    if (root == NULL)
        return;
    json_path_each(root, path, has_leaf, &found);
    if (!found)
        return;
    begin_field(w, name);
    json_path_each(root, path, write_leaf, w);
    buf_byte(w->buf, ']');
}

/*
 * Returns: whether `fields` shows the indexed values of a field: a text that is a number as a number,
 * null as its null_value, no text longer than ignore_above, and values copied by copy_to.
 */
static bool shows_indexed(const struct mapping_field *field)
{
    switch (field->type) {
    case FIELD_LONG:
    case FIELD_INTEGER:
    case FIELD_SHORT:
    case FIELD_BYTE:
    case FIELD_DOUBLE:
    case FIELD_FLOAT:
    case FIELD_SCALED_FLOAT:
    case FIELD_DATE:
    case FIELD_BOOLEAN:
    case FIELD_IP:
    case FIELD_KEYWORD:
    case FIELD_TEXT: return true;
    default: return false; /* a half_float has fewer digits in the index than 7.10 shows */
    }
}

/*
 * Writes a field of the `fields` option: its indexed values, or those of the source. If several
 * patterns name the field, the last one counts.
 */
static void write_field(void *context, const struct mapping_field *field)
{
    struct fields_writer *w = context;
    const struct search_request *request = w->fetcher->request;
    size_t after = (size_t)(w->format - request->fields) + 1;
    if (field->type == FIELD_OBJECT || field->type == FIELD_NESTED ||
        is_named(w, &request->fields[after], request->field_count - after))
        return;
    if (field->type != FIELD_DATE && w->format->format.data != NULL && w->result == 0)
        refuse_field(w, arena_printf(&w->match_doc->arena, "Field [%.*s] of type [%.*s] doesn't support formats.",
                                     SLICE_ARG(w->name), SLICE_ARG(field->type_name)));
    if (shows_indexed(field))
        write_docvalues(context, field);
    else
        write_source_values(w, w->name, field_source_path(field));
}

static bool is_stored(const struct mapping_field *field)
{
    for (size_t i = 0; i < field->parameter_count; i++) {
        if (slice_is(field->parameters[i].name, "store"))
            return slice_is(field->parameters[i].json, "true") || slice_is(field->parameters[i].json, "\"true\"");
    }
    return false;
}

static void write_stored(void *context, const struct mapping_field *field)
{
    struct fields_writer *w = context;
    if (is_stored(field))
        write_source_values(w, w->name, field_source_path(field));
}

static void write_script_field(struct fields_writer *w, size_t i)
{
    const struct script_field *spec = &w->fetcher->request->script_fields[i];
    struct script_eval value;
    int r =
        match_doc_run_script(w->match_doc, w->fetcher->scripts[i], spec->script->params, 0, SCRIPT_RESULT_JSON, &value);
    if (r != 0) {
        if (spec->ignore_failure && r > 0)
            w->match_doc->problem = NULL;
        else
            w->result = r > 0 ? QUERY_REFUSED : r;
        return;
    }
    struct slice json = value.json;
    if (slice_is(json, "[]")) /* a field without values is left out */
        return;
    begin_field(w, spec->name);
    if (json.len >= 2 && json.data[0] == '[') /* the elements of a list are the values */
        json = (struct slice){json.data + 1, json.len - 2};
    buf_slice(w->buf, json);
    buf_byte(w->buf, ']');
}

/* Writes the value of a metadata field; refuses a field that has no values. */
static void write_metadata(struct fields_writer *w, const struct metadata_field *field)
{
    struct arena *arena = &w->match_doc->arena;
    if (w->result != 0)
        return;
    if (w->format->format.data != NULL) {
        refuse_field(w, arena_printf(arena, "Field [%s] of type [%s] does not support custom formats", field->name,
                                     field->name));
        return;
    }
    if (!metadata_has_values(field)) {
        refuse_field(w, metadata_refusal(arena, field));
        return;
    }
    struct field_value value = metadata_value(field, w->match_doc);
    begin_field(w, slice_from(field->name));
    if (value.kind == FIELD_VALUE_I64)
        buf_i64(w->buf, value.i64);
    else
        buf_json_string(w->buf, value.bytes);
    buf_byte(w->buf, ']');
}

/* Writes the metadata fields that match a name or pattern. 5.x has none. */
static void write_metadata_of(struct fields_writer *w, struct slice pattern)
{
    for (int i = 0; i < METADATA_COUNT && w->fetcher->context->dialect == DIALECT_7; i++) {
        const struct metadata_field *field = metadata_at((enum metadata_number)i);
        if (json_wildcard(pattern, slice_from(field->name)))
            write_metadata(w, field);
    }
}

/*
 * Writes a field matched by a pattern. An alias is resolved to its field, but keeps its own name.
 */
static void write_matching(void *context, const struct mapping_field *field)
{
    struct fields_writer *w = context;
    const struct mapping_field *real = mapping_field(w->fetcher->index->mapping, field->path);
    w->name = field->path;
    if (real != NULL && !has_ended(w->match_doc))
        w->write(w, real);
}

static void each_pattern(struct fields_writer *w, struct slice pattern, mapping_visit *write)
{
    const struct mapping *mapping = w->fetcher->index->mapping;
    const struct mapping_field *field = mapping_field(mapping, pattern);
    bool several = field == NULL && slice_find_byte(pattern, '*') < pattern.len;
    w->name = pattern;
    w->write = write;
    if (!charge_pattern(w->match_doc, pattern, several ? mapping_field_count(mapping) : 1))
        return;
    if (field != NULL)
        write(w, field);
    else if (several)
        mapping_fields_matching(mapping, pattern, write_matching, w);
}

/*
 * Returns: whether the request already returns the field of `collapse`, by one of its field patterns. A field that is
 * not stored is not returned by stored_fields.
 */
static bool returns_collapse(struct fields_writer *w)
{
    const struct search_request *request = w->fetcher->request;
    const struct mapping_field *field = mapping_field(w->fetcher->index->mapping, request->collapse);
    w->name = request->collapse;
    if (is_named(w, request->docvalue_fields, request->docvalue_count) ||
        is_named(w, request->fields, request->field_count))
        return true;
    for (size_t i = 0; i < request->stored_field_count && field != NULL && is_stored(field); i++)
        if (!charge_pattern(w->match_doc, request->stored_fields[i], 1) ||
            json_wildcard(request->stored_fields[i], request->collapse))
            return true;
    return false;
}

static int write_fields(const struct fetcher *fetcher, struct match_doc *match_doc, struct buf *buf)
{
    const struct search_request *request = fetcher->request;
    struct fields_writer w = {.fetcher = fetcher, .match_doc = match_doc, .buf = buf};
    for (size_t i = 0; i < request->stored_field_count; i++)
        each_pattern(&w, request->stored_fields[i], write_stored);
    for (size_t i = 0; i < request->docvalue_count; i++) {
        w.format = &request->docvalue_fields[i];
        each_pattern(&w, w.format->pattern, write_requested_docvalues);
        write_metadata_of(&w, w.format->pattern);
    }
    w.in_order = true;
    for (size_t i = 0; i < request->field_count; i++) {
        w.format = &request->fields[i];
        each_pattern(&w, w.format->pattern, write_field);
    }
    w.in_order = false;
    w.format = NULL;
    if (request->collapse.data != NULL && !returns_collapse(&w))
        each_pattern(&w, request->collapse, write_docvalues);
    for (size_t i = 0; i < request->script_field_count && w.result == 0; i++)
        write_script_field(&w, i);
    if (w.begun)
        buf_byte(buf, '}');
    return w.result;
}

/* --- The hit ------------------------------------------------------------------------------------------------------ */

static void write_head(const struct fetcher *fetcher, const struct match_doc *match_doc, struct buf *buf)
{
    const struct mapping_type *type = mapping_type_by_number(fetcher->index->mapping, match_doc->type);
    buf_lit(buf, "{\"_index\":");
    buf_slice(buf, fetcher->index_json);
    if (!fetcher->context->no_types && (fetcher->ids || fetcher->context->dialect == DIALECT_7)) {
        buf_lit(buf, ",\"_type\":");
        buf_json_string(buf, type != NULL ? type->name : SLICE_LIT("_doc"));
    }
    if (fetcher->ids) {
        buf_lit(buf, ",\"_id\":");
        buf_json_string(buf, match_doc->id);
    }
    if (fetcher->request->version) {
        buf_lit(buf, ",\"_version\":");
        buf_i64(buf, match_doc->doc->version);
    }
    if (fetcher->request->seq_no_primary_term) {
        buf_lit(buf, ",\"_seq_no\":");
        buf_i64(buf, match_doc->doc->seq_no);
        buf_lit(buf, ",\"_primary_term\":1");
    }
    if (fetcher->request->commit_timestamp)
        buf_printf(buf, ",\"_commit_timestamp\":%" PRIu64, match_doc->doc->ts);
}

/*
 * Charges the account for a filter of a source: a search that takes long leaves the thread of its connection, and ends
 * in time. Returns: false if the account has ended.
 */
static bool charge_filter(const struct match_doc *match_doc, yyjson_val *root, const struct json_filter *filter)
{
    return match_doc->account == NULL || account_take(match_doc->account, json_filter_work(root, filter, UINT64_MAX));
}

/* Writes the source filtered by the mapping, and then by the request. */
static int write_filtered(const struct fetcher *fetcher, struct match_doc *match_doc, const struct mapping_type *type,
                          struct buf *buf)
{
    struct slice source = match_doc->doc->source;
    uint64_t work;
    struct arena arena = ARENA_INIT;
    struct slice filtered;
    struct json_doc doc;
    int r = mapping_filter_work(type, source, &arena, &work);
    if (match_doc->account != NULL && !account_take(match_doc->account, work)) {
        arena_deinit(&arena);
        return 0;
    }
    if (r >= 0)
        r = mapping_filter_source(type, source, fetcher->context->dialect, &arena, &filtered);
    if (r == 0)
        r = json_parse_stored(&arena, filtered.data == NULL ? SLICE_LIT("{}") : filtered, &doc);
    if (r == 0)
        json_filter_source(buf, doc.root, &fetcher->request->source, fetcher->context->dialect);
    arena_deinit(&arena);
    return r != 0 ? tl_trace(r) : 0;
}

static int write_source(const struct fetcher *fetcher, struct match_doc *match_doc, struct buf *buf)
{
    const struct mapping_type *type = mapping_type_by_number(fetcher->index->mapping, match_doc->type);
    buf_lit(buf, ",\"_source\":");
    if (fetcher->source_whole && mapping_shows_whole_source(type)) {
        buf_slice(buf, match_doc->doc->source);
        return 0;
    }
    if (!mapping_shows_whole_source(type))
        return write_filtered(fetcher, match_doc, type, buf);
    yyjson_val *root = match_doc_root(match_doc);
    if (root == NULL)
        return tl_trace(match_doc->error);
    if (charge_filter(match_doc, root, &fetcher->request->source))
        json_filter_source(buf, root, &fetcher->request->source, fetcher->context->dialect);
    return 0;
}

static void write_score(struct fetcher *fetcher, float score, struct buf *buf)
{
    if (fetcher->score_len == 0 || fetcher->score != score) {
        size_t begin = buf->len;
        json_write_score(buf, score);
        struct slice text = buf_from(buf, begin);
        fetcher->score = score;
        fetcher->score_len = text.len <= sizeof fetcher->score_text ? text.len : 0;
        if (fetcher->score_len > 0)
            memcpy(fetcher->score_text, text.data, text.len);
        return;
    }
    buf_append(buf, fetcher->score_text, fetcher->score_len);
}

int fetch_hit(struct fetcher *fetcher, struct match_doc *match_doc, const float *score, const struct sort_value *values,
              struct buf *buf)
{
    int r = 0;
    write_head(fetcher, match_doc, buf);
    if (score != NULL) {
        buf_lit(buf, ",\"_score\":");
        write_score(fetcher, *score, buf);
    } else {
        buf_lit(buf, ",\"_score\":null");
    }
    if (match_doc->doc->routing.data != NULL && fetcher->ids) {
        buf_lit(buf, ",\"_routing\":");
        buf_json_string(buf, match_doc->doc->routing);
    }
    if (fetcher->source)
        r = write_source(fetcher, match_doc, buf);
    if (r == 0 && fetcher->fields)
        r = write_fields(fetcher, match_doc, buf);
    if (r == 0 && values != NULL) {
        buf_byte(buf, ',');
        sort_write(buf, fetcher->request->sort, fetcher->request->sort_count, values);
    }
    if (r == 0)
        named_write(fetcher->named, match_doc, buf);
    buf_byte(buf, '}');
    return r;
}
