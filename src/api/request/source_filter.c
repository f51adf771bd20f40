/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of `_source` a client wants to see.
 */
#include "api/request/source_filter.h"

#include "api/request/reply.h"
#include "json/each.h"

/* "a,b" as patterns. */
static int patterns_of_text(struct request *request, struct slice text, const struct slice **ret_items,
                            size_t *ret_count)
{
    size_t capacity = 1;
    for (size_t i = 0; i < text.len; i++)
        capacity += text.data[i] == ',';
    if (capacity > JSON_FILTER_PATTERNS_MAX)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "more than %d patterns in [_source]",
                              JSON_FILTER_PATTERNS_MAX);
    struct slice *items = arena_alloc(request->arena, capacity * sizeof *items);
    size_t count = 0;
    while (text.len > 0) {
        size_t len = slice_find_byte(text, ',');
        if (len > JSON_FILTER_PATTERN_BYTES_MAX)
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "a pattern in [_source] is longer than %d bytes",
                                  JSON_FILTER_PATTERN_BYTES_MAX);
        if (len > 0)
            items[count++] = slice_make(text.data, len);
        text = slice_from_offset(text, len + 1);
    }
    *ret_items = items;
    *ret_count = count;
    return 0;
}

static struct slice first_given(struct request *request, const char *name, const char *old_name)
{
    struct slice text = request_param(request, name);
    if (text.data == NULL && request->dialect == DIALECT_5)
        text = request_param(request, old_name);
    return text;
}

int source_filter_params(struct request *request, struct source_filter *ret_filter)
{
    *ret_filter = SOURCE_FILTER_ALL;
    struct json_filter *filter = &ret_filter->filter;
    struct slice source = request_param(request, "_source");
    struct slice includes = first_given(request, "_source_includes", "_source_include");
    struct slice excludes = first_given(request, "_source_excludes", "_source_exclude");
    bool is_word = slice_is(source, "true") || slice_is(source, "false");
    int r = 0;
    ret_filter->given = source.data != NULL || includes.data != NULL || excludes.data != NULL;
    ret_filter->fetch = !slice_is(source, "false");
    if (includes.data == NULL && !is_word)
        includes = source;
    if (includes.data != NULL)
        r = patterns_of_text(request, includes, &filter->includes, &filter->include_count);
    if (r == 0 && excludes.data != NULL)
        r = patterns_of_text(request, excludes, &filter->excludes, &filter->exclude_count);
    return r;
}

/* A pattern or a list of them. */
static int patterns_of_json(struct request *request, yyjson_val *value, const struct slice **ret_items,
                            size_t *ret_count)
{
    size_t i, size, count = 0;
    yyjson_val *item;
    if (yyjson_is_str(value)) {
        struct slice *one = arena_alloc(request->arena, sizeof *one);
        *one = json_slice(value);
        *ret_items = one;
        *ret_count = 1;
        return 0;
    }
    if (!yyjson_is_arr(value) || yyjson_arr_size(value) > JSON_FILTER_PATTERNS_MAX)
        return request_refuse(request, PROBLEM_PARSING,
                              "[_source] must be a boolean, a pattern, or a list of patterns");
    struct slice *items = arena_alloc(request->arena, (yyjson_arr_size(value) + 1) * sizeof *items);
    json_arr_foreach (value, i, size, item) {
        if (!yyjson_is_str(item) || json_slice(item).len > JSON_FILTER_PATTERN_BYTES_MAX)
            return request_refuse(request, PROBLEM_PARSING, "[_source] takes patterns of at most %d bytes",
                                  JSON_FILTER_PATTERN_BYTES_MAX);
        items[count++] = json_slice(item);
    }
    *ret_items = items;
    *ret_count = count;
    return 0;
}

static int members_of_json(struct request *request, yyjson_val *object, struct json_filter *filter)
{
    size_t i, count;
    yyjson_val *key, *member;
    json_obj_foreach (object, i, count, key, member) {
        struct slice name = json_slice(key);
        int r;
        if (slice_is(name, "includes") || slice_is(name, "include"))
            r = patterns_of_json(request, member, &filter->includes, &filter->include_count);
        else if (slice_is(name, "excludes") || slice_is(name, "exclude"))
            r = patterns_of_json(request, member, &filter->excludes, &filter->exclude_count);
        else
            r = request_refuse(request, PROBLEM_PARSING, "Unknown key for a %s in [%.*s].",
                               yyjson_is_arr(member) ? "START_ARRAY" : "VALUE_STRING", SLICE_ARG(name));
        if (r != 0)
            return r;
    }
    return 0;
}

int source_filter_json(struct request *request, yyjson_val *value, struct source_filter *ret_filter)
{
    *ret_filter = SOURCE_FILTER_ALL;
    ret_filter->given = true;
    if (yyjson_is_bool(value)) {
        ret_filter->fetch = yyjson_get_bool(value);
        return 0;
    }
    if (yyjson_is_str(value) && (slice_is(json_slice(value), "false") || slice_is(json_slice(value), "true"))) {
        ret_filter->fetch = slice_is(json_slice(value), "true");
        return 0;
    }
    if (yyjson_is_obj(value))
        return members_of_json(request, value, &ret_filter->filter);
    return patterns_of_json(request, value, &ret_filter->filter.includes, &ret_filter->filter.include_count);
}

int source_filter_write(struct buf *buf, struct slice source, const struct source_filter *filter, struct arena *arena,
                        enum dialect dialect)
{
    if (filter->filter.include_count == 0 && filter->filter.exclude_count == 0) {
        buf_slice(buf, source);
        return 0;
    }
    struct json_doc doc;
    int r = json_parse_stored(arena, source, &doc);
    if (r != 0)
        return tl_trace(r);
    json_filter_source(buf, doc.root, &filter->filter, dialect);
    return 0;
}
