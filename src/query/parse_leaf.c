/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the leaf queries on values: term, terms, range, patterns, exists, ids. */
#include "query/parse_leaf.h"

#include "json/each.h"
#include "query/noop_option.h"

#include "json/write.h"

static bool is_common(struct slice option)
{
    return slice_is(option, "boost") || slice_is(option, "_name");
}

static int take_common(struct query_parser *parser, struct slice option, yyjson_val *value, struct query *query)
{
    return slice_is(option, "boost") ? query__take_boost(parser, value, &query->boost) : 0;
}

static int parse_options(struct query_parser *parser, struct slice name, yyjson_val *options, query_take_option *take,
                         struct query *query)
{
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (options, index, count, key, value) {
        struct slice option = json_slice(key);
        if (option.len == 0) /* `take` reserves the empty name for the short form */
            return query__refuse_option(parser, name, option, value);
        int r = is_common(option) && !yyjson_is_ctn(value) ? take_common(parser, option, value, query)
                                                           : take(parser, name, option, value, query);
        if (r != 0)
            return r;
    }
    return 0;
}

static int second_field(struct query_parser *parser, struct slice name, struct slice first, struct slice second,
                        yyjson_val *at)
{
    return query__refuse(parser, at, false, PROBLEM_PARSING,
                         "[%.*s] query doesn't support multiple fields, found [%.*s] and [%.*s]", SLICE_ARG(name),
                         SLICE_ARG(first), SLICE_ARG(second));
}

int query__parse_field(struct query_parser *parser, struct slice name, yyjson_val *body, query_take_option *take,
                       struct query *query)
{
    bool seven = parser->dialect == DIALECT_7;
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        struct slice field = json_slice(key);
        int r;
        bool has_other = is_common(field) && !yyjson_is_ctn(value) && count > 1;
        if (has_other && seven && slice_is(name, "range"))
            return query__refuse_option(parser, name, field, value);
        if (has_other && !seven) { /* 7.x accepts them among the field's options only */
            r = take_common(parser, field, value, query);
        } else if (query->field.data != NULL) {
            return second_field(parser, name, query->field, field, value);
        } else {
            query->field = field;
            r = yyjson_is_obj(value) ? parse_options(parser, name, value, take, query)
                                     : take(parser, name, SLICE_LIT(""), value, query);
        }
        if (r != 0)
            return r;
    }
    return 0;
}

static int refuse_no_field(struct query_parser *parser, yyjson_val *body)
{
    return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT, "field name is null or empty");
}

static int refuse_no_value(struct query_parser *parser, yyjson_val *body)
{
    return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT, "value cannot be null");
}

static const char *const common_names[] = {"boost", "_name"};
static const char *const ids_names[] = {"type", "values", "boost", "_name"};

/*
 * Refuses an unknown option of a leaf query. 7.10 reports the location of its value, which it has
 * already read.
 */
static int refuse_unknown_leaf(struct query_parser *parser, struct slice name, yyjson_val *key, yyjson_val *value,
                               const char *const *known, size_t known_count)
{
    int r = query__refuse_unknown_of(parser, name, key, known, known_count);
    return r == QUERY_REFUSED ? query__wrap_leaf_refusal(parser, parser->dialect == DIALECT_5 ? key : value) : r;
}

/* --- match_all, match_none ---------------------------------------------------------------------------------------- */

int query__parse_match_all(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, slice_is(name, "match_all") ? QUERY_MATCH_ALL : QUERY_MATCH_NONE);
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        if (!is_common(json_slice(key)))
            return refuse_unknown_leaf(parser, name, key, value, common_names, 2);
        int r = take_common(parser, json_slice(key), value, query);
        if (r != 0)
            return r;
    }
    *ret_query = query;
    return 0;
}

/* --- ids, type ---------------------------------------------------------------------------------------------------- */

/* Scalars copied between checks of the account. */
enum { SCALARS_ROW = 4096 };

static int take_scalars(struct query_parser *parser, yyjson_val *value, struct query *query)
{
    size_t count = yyjson_is_arr(value) ? unsafe_yyjson_get_len(value) : 1;
    yyjson_val *item = yyjson_is_arr(value) ? unsafe_yyjson_get_first(value) : value;
    query->values.items = arena_alloc(parser->arena, count * sizeof(yyjson_val *));
    for (size_t i = 0; i < count; i++, item = unsafe_yyjson_get_next(item)) {
        if (i % SCALARS_ROW == 0 && !query__charge(parser, SCALARS_ROW))
            return QUERY_REFUSED;
        if (yyjson_is_ctn(item) || yyjson_is_null(item))
            return query__refuse(parser, item, false, PROBLEM_PARSING, "No value specified for %s query",
                                 query->kind == QUERY_IDS ? "ids" : "terms");
        query->values.items[i] = item;
    }
    query->values.count = count;
    return 0;
}

/* Returns: the first null of an array, or NULL. */
static yyjson_val *first_null(yyjson_val *value)
{
    size_t index, count;
    yyjson_val *item;
    json_arr_foreach (value, index, count, item) {
        if (yyjson_is_null(item))
            return item;
    }
    return NULL;
}

static int refuse_null_id(struct query_parser *parser, yyjson_val *at, struct slice option)
{
    if (parser->dialect == DIALECT_5) {
        query__refuse(parser, at, false, PROBLEM_ILLEGAL_STATE, "expected value but got [VALUE_NULL]");
        return query__wrap_refusal(parser, "ids", option);
    }
    query__refuse(parser, at, false, PROBLEM_ILLEGAL_STATE, "%s", "");
    query__refuse(parser, at, false, PROBLEM_ILLEGAL_STATE, "Can't get text on a VALUE_NULL at %zu:%zu", parser->line,
                  parser->column);
    int r = query__wrap_refusal(parser, "ids", option);
    return r == QUERY_REFUSED ? query__wrap_leaf_refusal(parser, at) : r;
}

static int refuse_ids_object(struct query_parser *parser, yyjson_val *at)
{
    query__refuse(parser, at, false, PROBLEM_ILLEGAL_ARGUMENT, "%s", "");
    if (parser->dialect == DIALECT_5)
        query__refuse(parser, at, false, PROBLEM_ILLEGAL_ARGUMENT,
                      "[ids] values doesn't support values of type: START_OBJECT");
    else
        query__refuse(parser, at, false, PROBLEM_X_CONTENT_PARSE,
                      "[%zu:%zu] [ids] values doesn't support values of type: START_OBJECT", parser->line,
                      parser->column);
    return query__wrap_leaf_refusal(parser, at);
}

int query__parse_ids(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_IDS);
    struct query *types = NULL;
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        struct slice option = json_slice(key);
        int r;
        if (slice_is(option, "values") && first_null(value) != NULL) {
            return refuse_null_id(parser, first_null(value), option);
        } else if (slice_is(option, "values") && yyjson_is_obj(value)) {
            return refuse_ids_object(parser, value);
        } else if (slice_is(option, "values")) {
            r = take_scalars(parser, value, query);
        } else if (slice_is(option, "type") ||
                   (parser->dialect == DIALECT_5 && (slice_is(option, "types") || slice_is(option, "_type")))) {
            types = query__new(parser->arena, QUERY_TYPE);
            r = take_scalars(parser, value, types);
        } else if (is_common(option)) {
            r = take_common(parser, option, value, query);
        } else {
            return refuse_unknown_leaf(parser, name, key, value, ids_names, 4);
        }
        if (r != 0)
            return r;
    }
    *ret_query = types != NULL && types->values.count > 0 ? query_filtered(parser->arena, query, types) : query;
    return 0;
}

int query__parse_type(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    yyjson_val *value = json_get_lit(body, "value");
    if (!yyjson_is_str(value))
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             "[%.*s] type query needs to be provided with a value for the type", SLICE_ARG(name));
    struct query *query = query__new(parser->arena, QUERY_TYPE);
    *ret_query = query;
    return take_scalars(parser, value, query);
}

/* --- exists ------------------------------------------------------------------------------------------------------- */

int query__parse_exists(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_EXISTS);
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r = 0;
        if (slice_is(json_slice(key), "field") && !yyjson_is_ctn(value))
            query->field = query__scalar_text(parser->arena, value);
        else if (is_common(json_slice(key)) && !yyjson_is_ctn(value))
            r = take_common(parser, json_slice(key), value, query);
        else
            r = query__refuse_option(parser, name, json_slice(key), value);
        if (r != 0)
            return r;
    }
    if (query->field.data != NULL && query->field.len == 0)
        return refuse_no_field(parser, body);
    if (query->field.data == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING, "[exists] must be provided with a [field]");
    *ret_query = query;
    return 0;
}

/* --- term, terms -------------------------------------------------------------------------------------------------- */

static int take_term(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                     struct query *query)
{
    bool flag;
    if (slice_is(option, "case_insensitive") && parser->dialect == DIALECT_7)
        return query__take_bool(parser, value, &flag); /* query__parse_term() evaluates it */
    if (option.len > 0 && !slice_is(option, "value") && !slice_is(option, "term"))
        return query__refuse_option(parser, name, option, value);
    if (yyjson_is_arr(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING, "[term] query does not support array of values");
    if (yyjson_is_obj(value))
        return query__refuse_option(parser, name, option, value);
    query->values.items = arena_alloc(parser->arena, sizeof(yyjson_val *));
    query->values.items[0] = value;
    query->values.count = !yyjson_is_null(value);
    return 0;
}

/* Makes a case-insensitive term: a pattern whose special characters are escaped. */
static struct query *in_any_case(struct arena *arena, const struct query *term)
{
    struct slice text = query__scalar_text(arena, term->values.items[0]);
    struct buf escaped = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < text.len; i++) {
        if (byte_is_one_of(text.data[i], "*?\\"))
            buf_byte(&escaped, '\\');
        buf_byte(&escaped, text.data[i]);
    }
    struct query *query = query__new(arena, QUERY_WILDCARD);
    query->boost = term->boost;
    query->field = term->field;
    query->pattern.value = query__text(arena, arena_copy(arena, buf_as_slice(&escaped)));
    query->pattern.case_insensitive = true;
    query->pattern.whole = true;
    buf_deinit(&escaped);
    return query;
}

static bool is_in_any_case(const struct query *term, yyjson_val *body)
{
    yyjson_val *options = json_get(body, term->field);
    yyjson_val *flag = yyjson_is_obj(options) ? json_get_lit(options, "case_insensitive") : NULL;
    return yyjson_is_true(flag) || (yyjson_is_str(flag) && slice_is(json_slice(flag), "true"));
}

int query__parse_term(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_TERM);
    if (yyjson_obj_size(body) == 1 && yyjson_is_null(yyjson_obj_iter_get_val(unsafe_yyjson_get_first(body))))
        return refuse_no_field(parser, body); /* Elasticsearch skips a null together with its field */
    int r = query__parse_field(parser, name, body, take_term, query);
    if (r != 0)
        return r;
    if (query->field.len == 0)
        return refuse_no_field(parser, body);
    if (query->values.count == 0)
        return refuse_no_value(parser, body);
    *ret_query = is_in_any_case(query, body) ? in_any_case(parser->arena, query) : query;
    return 0;
}

static int take_lookup(struct query_parser *parser, yyjson_val *body, struct query *query)
{
    struct terms_lookup *lookup = arena_zalloc(parser->arena, sizeof *lookup);
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        struct slice text = query__scalar_text(parser->arena, value);
        if (slice_is(json_slice(key), "index"))
            lookup->index = text;
        else if (slice_is(json_slice(key), "type"))
            lookup->type = text;
        else if (slice_is(json_slice(key), "id"))
            lookup->id = text;
        else if (slice_is(json_slice(key), "routing"))
            lookup->routing = text;
        else if (slice_is(json_slice(key), "path"))
            lookup->path = text;
        else
            return query__refuse(parser, value, false, PROBLEM_PARSING,
                                 "[terms] query does not support [%.*s] within lookup element",
                                 SLICE_ARG(json_slice(key)));
    }
    const char *missing = lookup->index.data == NULL  ? "index"
                          : lookup->id.data == NULL   ? "id"
                          : lookup->path.data == NULL ? "path"
                                                      : NULL;
    if (missing != NULL)
        return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT,
                             "[terms] query lookup element requires specifying the %s.", missing);
    query->values.lookup = lookup;
    return 0;
}

/* Returns: whether an option is an execution hint of 1.x to 5.x. Such hints are ignored. */
static bool is_hint_of_5(const struct query_parser *parser, struct slice option)
{
    return parser->dialect == DIALECT_5 && (slice_is(option, "execution") || slice_is(option, "_cache"));
}

int query__parse_terms(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_TERMS);
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        struct slice option = json_slice(key);
        int r;
        if (yyjson_is_ctn(value)) {
            if (query->field.data != NULL)
                return query__refuse(parser, value, false, PROBLEM_PARSING,
                                     "[%.*s] query does not support multiple fields", SLICE_ARG(name));
            query->field = option;
            r = yyjson_is_arr(value) ? take_scalars(parser, value, query) : take_lookup(parser, value, query);
        } else if (is_common(option)) {
            r = take_common(parser, option, value, query);
        } else if (is_hint_of_5(parser, option)) {
            r = 0;
        } else {
            r = query__refuse_option(parser, name, option, value);
        }
        if (r != 0)
            return r;
    }
    if (query->field.data == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             "[%.*s] query requires a field name, followed by array of terms or a document "
                             "lookup specification",
                             SLICE_ARG(name));
    *ret_query = query;
    return 0;
}

/* --- prefix, wildcard, regexp, fuzzy ------------------------------------------------------------------------------ */

static bool is_pattern_value(struct slice option)
{
    return option.len == 0 || slice_is(option, "value") || slice_is(option, "prefix") || slice_is(option, "wildcard") ||
           slice_is(option, "term");
}

static int take_pattern(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                        struct query *query)
{
    if (yyjson_is_ctn(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING, "[%.*s] unexpected token [%s] after [%.*s]",
                             SLICE_ARG(name), json_token(value), SLICE_ARG(option.len ? option : query->field));
    if (is_pattern_value(option)) {
        query->pattern.value = yyjson_is_null(value) ? NULL : value;
        return 0;
    }
    if (slice_is(option, "case_insensitive") && !slice_is(name, "fuzzy"))
        return query__take_bool(parser, value, &query->pattern.case_insensitive);
    int idle = query__noop_option(parser, name, option, value);
    if (idle != NOOP_OPTION_UNKNOWN)
        return idle;
    if (!slice_is(name, "fuzzy"))
        return query__refuse_option(parser, name, option, value);
    if (slice_is(option, "fuzziness")) {
        query->pattern.fuzziness = query__scalar_text(parser->arena, value);
        return 0;
    }
    if (slice_is(option, "prefix_length"))
        return query__take_u32(parser, value, &query->pattern.prefix_length);
    if (slice_is(option, "transpositions")) {
        bool flag;
        int r = query__take_bool(parser, value, &flag);
        query->pattern.no_transpositions = r == 0 && !flag;
        return r;
    }
    return query__refuse_option(parser, name, option, value);
}

int query__parse_pattern(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    enum query_kind kind = slice_is(name, "prefix")     ? QUERY_PREFIX
                           : slice_is(name, "wildcard") ? QUERY_WILDCARD
                           : slice_is(name, "regexp")   ? QUERY_REGEXP
                                                        : QUERY_FUZZY;
    struct query *query = query__new(parser->arena, kind);
    int r = query__parse_field(parser, name, body, take_pattern, query);
    if (r != 0)
        return r;
    if (query->field.len == 0)
        return refuse_no_field(parser, body);
    if (query->pattern.value == NULL)
        return refuse_no_value(parser, body);
    *ret_query = query;
    return 0;
}

/* --- range -------------------------------------------------------------------------------------------------------- */

static int take_bound(struct query *query, yyjson_val *value, bool high, int exclusive)
{
    yyjson_val *bound = yyjson_is_null(value) ? NULL : value;
    if (high)
        query->range.high = bound;
    else
        query->range.low = bound;
    if (exclusive >= 0 && high)
        query->range.high_exclusive = exclusive;
    else if (exclusive >= 0)
        query->range.low_exclusive = exclusive;
    return 0;
}

static int take_range_flag(struct query_parser *parser, yyjson_val *value, bool *exclusive)
{
    bool include;
    int r = query__take_bool(parser, value, &include);
    if (r == 0)
        *exclusive = !include;
    return r;
}

/*
 * Checks the name of `relation`. The option only affects range fields, which Tidelock does not
 * have.
 */
static int check_relation(struct query_parser *parser, yyjson_val *value)
{
    static const char *const relations[] = {"intersects", "within", "contains", "disjoint"};
    struct slice text = query__scalar_text(parser->arena, value);
    size_t i = 0;
    while (i < 4 && !slice_is_ignoring_case(text, relations[i]))
        i++;
    if (i == 3)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[range] query does not support relation [%.*s]", SLICE_ARG(text));
    return i < 3 ? 0
                 : query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "%.*s is not a valid relation",
                                 SLICE_ARG(text));
}

static int take_range(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                      struct query *query)
{
    if (option.len == 0)
        return query__refuse_option(parser, name, query->field, value);
    if (yyjson_is_ctn(value))
        return query__refuse_option(parser, name, option, value);
    if (slice_is(option, "from"))
        return take_bound(query, value, false, -1);
    if (slice_is(option, "to"))
        return take_bound(query, value, true, -1);
    if (slice_is(option, "gte") || slice_is(option, "ge") || slice_is(option, "gt"))
        return take_bound(query, value, false, slice_is(option, "gt"));
    if (slice_is(option, "lte") || slice_is(option, "le") || slice_is(option, "lt"))
        return take_bound(query, value, true, slice_is(option, "lt"));
    if (slice_is(option, "include_lower") || slice_is(option, "includeLower"))
        return take_range_flag(parser, value, &query->range.low_exclusive);
    if (slice_is(option, "include_upper") || slice_is(option, "includeUpper"))
        return take_range_flag(parser, value, &query->range.high_exclusive);
    if (slice_is(option, "format"))
        query->range.format = query__scalar_text(parser->arena, value);
    else if (slice_is(option, "time_zone") || slice_is(option, "timeZone"))
        return query__take_zone(parser, value, &query->range.zone);
    else if (slice_is(option, "relation"))
        return check_relation(parser, value);
    else if (!is_hint_of_5(parser, option))
        return query__refuse_option(parser, name, option, value);
    return 0;
}

int query__parse_range(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_RANGE);
    int r = query__parse_field(parser, name, body, take_range, query);
    if (r != 0)
        return r;
    if (query->field.len == 0)
        return refuse_no_field(parser, body);
    *ret_query = query;
    return 0;
}

/* --- script ------------------------------------------------------------------------------------------------------- */

static int take_params(struct query_parser *parser, yyjson_val *value, struct query_script *script)
{
    if (!yyjson_is_obj(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING, "[params] must be an object");
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    json_write(&text, value, parser->dialect);
    script->params = arena_copy(parser->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return 0;
}

static int take_script_member(struct query_parser *parser, struct slice option, yyjson_val *value,
                              struct query_script *script)
{
    struct slice text = query__scalar_text(parser->arena, value);
    if (slice_is(option, "params"))
        return take_params(parser, value, script);
    if (slice_is(option, "source") || slice_is(option, "inline"))
        script->source = text;
    else if (slice_is(option, "id") || slice_is(option, "stored"))
        script->id = text;
    else if (slice_is(option, "file") && parser->dialect == DIALECT_5)
        script->file = text;
    else if (slice_is(option, "lang"))
        script->lang = text;
    else if (!slice_is(option, "options"))
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "[script] unknown field [%.*s]",
                             SLICE_ARG(option));
    return 0;
}

int query__parse_script(struct query_parser *parser, yyjson_val *value, const struct query_script **ret_script)
{
    struct query_script *script = arena_zalloc(parser->arena, sizeof *script);
    *ret_script = script;
    if (yyjson_is_str(value)) {
        script->source = json_slice(value);
        return 0;
    }
    if (!yyjson_is_obj(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING, "[script] unexpected token [%s]",
                             json_token(value));
    size_t index, count;
    yyjson_val *key, *member;
    json_obj_foreach (value, index, count, key, member) {
        int r = take_script_member(parser, json_slice(key), member, script);
        if (r != 0)
            return r;
    }
    if (script->source.data == NULL && script->id.data == NULL && script->file.data == NULL)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT,
                             "must specify either [source] for an inline script or [id] for a stored script");
    return 0;
}

int query__parse_script_query(struct query_parser *parser, struct slice name, yyjson_val *body,
                              struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_SCRIPT);
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r;
        if (slice_is(json_slice(key), "script"))
            r = query__parse_script(parser, value, &query->script);
        else if (is_common(json_slice(key)))
            r = take_common(parser, json_slice(key), value, query);
        else
            r = query__refuse_option(parser, name, json_slice(key), value);
        if (r != 0)
            return r;
    }
    if (query->script == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING, "script must be provided with a [script] query");
    *ret_query = query;
    return 0;
}
