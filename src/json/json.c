/* SPDX-License-Identifier: Apache-2.0 */
/* JSON from outside; see json.h. */
#include "json/json.h"

#include "base/check.h"
#include "json/keys.h"
#include "json/scan.h"

/* Elasticsearch looks at this many bytes to find out what a body is. */
enum { SNIFF_BYTES = 20 };

static void *arena_malloc(void *context, size_t size)
{
    return arena_alloc(context, size);
}

static void *arena_realloc(void *context, void *old, size_t old_size, size_t size)
{
    return size <= old_size ? old : arena_regrow(context, old, old_size, size);
}

static void arena_forget(void *context, void *pointer)
{
    (void)context;
    (void)pointer;
}

/* A copy that yyjson may unescape in place. */
static char *padded_copy(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len + YYJSON_PADDING_SIZE);
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    memset(copy + text.len, 0, YYJSON_PADDING_SIZE);
    return copy;
}

/* Reads `copy` in place. Returns: NULL, with *ret_error, where yyjson does not take it. */
static yyjson_val *read_in_place(struct arena *arena, char *copy, size_t len, yyjson_read_err *ret_error)
{
    yyjson_alc alc = {arena_malloc, arena_realloc, arena_forget, arena};
    yyjson_doc *doc = yyjson_read_opts(copy, len, YYJSON_READ_INSITU | YYJSON_READ_BIGNUM_AS_RAW, &alc, ret_error);
    return doc == NULL ? NULL : yyjson_doc_get_root(doc);
}

/*
 * Returns: whether brackets outside of strings nest deeper than the limit. Each level takes two bytes at
 * least, so short texts need no look.
 */
static bool too_deep(struct slice text)
{
    const size_t limit = json_depth_limit();
    if (text.len <= 2 * limit)
        return false;
    size_t openers = 0;
    for (size_t i = 0; i < text.len; i++)
        openers += (size_t)((text.data[i] | 0x20) == '{');
    if (openers <= limit)
        return false;
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else
                in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > limit)
                return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static bool same_key(yyjson_val *a, yyjson_val *b)
{
    size_t len = unsafe_yyjson_get_len(a);
    return len == unsafe_yyjson_get_len(b) && memcmp(unsafe_yyjson_get_str(a), unsafe_yyjson_get_str(b), len) == 0;
}

static bool small_object_repeats(yyjson_val *object, size_t count)
{
    yyjson_val *key = unsafe_yyjson_get_first(object);
    for (size_t i = 0; i + 1 < count; i++) {
        yyjson_val *other = unsafe_yyjson_get_next(key + 1);
        for (size_t k = i + 1; k < count; k++) {
            if (same_key(key, other))
                return true;
            other = unsafe_yyjson_get_next(other + 1);
        }
        key = unsafe_yyjson_get_next(key + 1);
    }
    return false;
}

static bool large_object_repeats(yyjson_val *object)
{
    struct json_keys keys = JSON_KEYS_INIT;
    bool repeats = false;
    size_t i, max;
    yyjson_val *key, *value;
    yyjson_obj_foreach (object, i, max, key, value) {
        if (!json_keys_add(&keys, 0, json_slice(key))) {
            repeats = true;
            break;
        }
    }
    json_keys_deinit(&keys);
    return repeats;
}

/* Returns: whether any object has a key twice. yyjson keeps all values of a text in one row. */
static bool has_duplicates(yyjson_val *root)
{
    yyjson_val *end = unsafe_yyjson_get_next(root);
    for (yyjson_val *value = root; value < end; value++) {
        if (!unsafe_yyjson_is_obj(value))
            continue;
        size_t count = unsafe_yyjson_get_len(value);
        if (count <= 12 ? small_object_repeats(value, count) : large_object_repeats(value))
            return true;
    }
    return false;
}

/* Returns: whether the first bytes look like an object, the way Elasticsearch guesses at them. */
static bool looks_like_object(struct slice text)
{
    if (slice_starts_with(text, SLICE_LIT("\xef\xbb\xbf")))
        text = slice_from_offset(text, 3);
    if (slice_starts_with(text, SLICE_LIT("---")))
        return true; /* YAML, they think, and let the JSON parser say no */
    for (size_t i = 0; i < text.len && i < SNIFF_BYTES; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == '{')
            return true;
        if (c != ' ' && (c < '\t' || c > '\r'))
            return false;
    }
    return false;
}

/* The slow path: yyjson or a check of ours said no. Finds out what Jackson says; takes what it takes. */
static int parse_as_jackson(struct arena *arena, struct slice text, enum dialect dialect, unsigned flags,
                            struct json_doc *ret_doc, struct problem *ret_problem)
{
    char *copy = padded_copy(arena, text);
    struct json_error error;
    if (json_scan(arena, copy, text.len, dialect, flags, &error) != 0) {
        json_error_problem(arena, text, dialect, &error, ret_problem);
        return JSON_INVALID;
    }
    yyjson_read_err refusal;
    yyjson_val *root = read_in_place(arena, copy, text.len, &refusal);
    if (root == NULL) {
        error = (struct json_error){.message = slice_from(refusal.msg), .line = 1, .column = refusal.pos + 1};
        json_error_problem(arena, text, dialect, &error, ret_problem);
        return JSON_INVALID;
    }
    *ret_doc = (struct json_doc){root, text, copy};
    return 0;
}

int json_parse(struct arena *arena, struct slice text, enum dialect dialect, unsigned flags, struct json_doc *ret_doc,
               struct problem *ret_problem)
{
    if ((flags & JSON_DOCUMENT) && !looks_like_object(text)) {
        problem_set(ret_problem, arena, PROBLEM_NOT_X_CONTENT,
                    "Compressor detection can only be called on some xcontent bytes or compressed xcontent bytes");
        return JSON_INVALID;
    }
    if (text.len > 0 && !too_deep(text)) {
        char *copy = padded_copy(arena, text);
        yyjson_read_err refusal;
        yyjson_val *root = read_in_place(arena, copy, text.len, &refusal);
        if (root != NULL && ((flags & JSON_DUPLICATES) || !has_duplicates(root))) {
            *ret_doc = (struct json_doc){root, text, copy};
            return 0;
        }
    }
    return parse_as_jackson(arena, text, dialect, flags, ret_doc, ret_problem);
}

int json_parse_stored(struct arena *arena, struct slice text, struct json_doc *ret_doc)
{
    char *copy = padded_copy(arena, text);
    yyjson_read_err refusal;
    yyjson_val *root = text.len == 0 ? NULL : read_in_place(arena, copy, text.len, &refusal);
    if (root != NULL) {
        *ret_doc = (struct json_doc){root, text, copy};
        return 0;
    }
    struct problem problem;
    if (parse_as_jackson(arena, text, DIALECT_7, JSON_DUPLICATES, ret_doc, &problem) != 0)
        return TL_ERR_CORRUPT;
    return 0;
}

yyjson_val *json_object_or_empty(yyjson_val *object)
{
    /* The values behind it are where a walk of it would begin. */
    static yyjson_val empty[3] = {{.tag = YYJSON_TYPE_OBJ}};
    return object != NULL ? object : empty;
}

yyjson_val *json_get(yyjson_val *object, struct slice key)
{
    if (!yyjson_is_obj(object))
        return NULL;
    yyjson_val *found = NULL;
    yyjson_val *at = unsafe_yyjson_get_first(object);
    for (size_t left = unsafe_yyjson_get_len(object); left > 0; left--) {
        if (unsafe_yyjson_equals_strn(at, key.data, key.len))
            found = at + 1;
        at = unsafe_yyjson_get_next(at + 1);
    }
    return found;
}

struct slice json_string_raw(const struct json_doc *doc, yyjson_val *value)
{
    REQUIRE(yyjson_is_str(value));
    size_t start = json_offset(doc, value);
    INSIST(start > 0 && start <= doc->source.len);
    size_t end = start;
    while (doc->source.data[end] != '"')
        end += doc->source.data[end] == '\\' ? 2 : 1;
    return slice_make(doc->source.data + start, end - start);
}

/* Returns: the offset behind a comment that begins at `at`. */
static size_t skip_comment(struct slice text, size_t at)
{
    if (text.data[at + 1] == '/') {
        while (at < text.len && text.data[at] != '\n' && text.data[at] != '\r')
            at++;
        return at;
    }
    const char *end = memmem(text.data + at + 2, text.len - at - 2, "*/", 2);
    return end == NULL ? text.len : (size_t)(end - text.data) + 2;
}

/* Returns: the offset behind the token at `at`: a string, a bracket, or a run of other characters. */
static size_t skip_token(struct slice text, size_t at)
{
    char c = text.data[at];
    if (c == '"') {
        for (at++; at < text.len && text.data[at] != '"'; at++)
            at += text.data[at] == '\\';
        return at + 1;
    }
    if (c == '{' || c == '[')
        return at + 1;
    while (at < text.len && strchr(" \t\r\n,:{}[]/\"", text.data[at]) == NULL)
        at++;
    return at;
}

void json_locate(const struct json_doc *doc, yyjson_val *value, size_t *ret_start, size_t *ret_end)
{
    /* yyjson keeps names and values of a text in one row, in order. */
    size_t wanted = (size_t)(value - doc->root);
    size_t seen = 0;
    size_t at = slice_starts_with(doc->source, SLICE_LIT("\xef\xbb\xbf")) ? 3 : 0;
    while (at < doc->source.len) {
        char c = doc->source.data[at];
        if (c == '/' && at + 1 < doc->source.len) {
            at = skip_comment(doc->source, at);
        } else if (c == ' ' || c == ',' || c == ':' || c == '}' || c == ']' || c == '\n' || c == '\r' || c == '\t') {
            at++;
        } else {
            size_t end = skip_token(doc->source, at);
            if (seen++ == wanted) {
                *ret_start = at;
                *ret_end = end;
                return;
            }
            at = end > at ? end : at + 1;
        }
    }
    UNREACHABLE();
}

void json_line_column(struct slice text, size_t offset, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < offset && i < text.len; i++) {
        bool ends = text.data[i] == '\n' || (text.data[i] == '\r' && !(i + 1 < text.len && text.data[i + 1] == '\n'));
        line += ends;
        start = ends ? i + 1 : start;
    }
    *ret_line = line;
    *ret_column = offset - start + 1;
}

static bool numbers_equal(yyjson_val *a, yyjson_val *b)
{
    bool real_a = yyjson_is_real(a);
    if (real_a != yyjson_is_real(b))
        return false;
    if (real_a) {
        double x = unsafe_yyjson_get_real(a);
        double y = unsafe_yyjson_get_real(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    bool negative_a = yyjson_is_sint(a) && unsafe_yyjson_get_sint(a) < 0;
    bool negative_b = yyjson_is_sint(b) && unsafe_yyjson_get_sint(b) < 0;
    return negative_a == negative_b && unsafe_yyjson_get_uint(a) == unsafe_yyjson_get_uint(b);
}

static bool arrays_equal(yyjson_val *a, yyjson_val *b)
{
    if (yyjson_arr_size(a) != yyjson_arr_size(b))
        return false;
    yyjson_val *other = yyjson_arr_get_first(b);
    size_t i, max;
    yyjson_val *item;
    yyjson_arr_foreach (a, i, max, item) {
        if (!json_equal(item, other))
            return false;
        other = unsafe_yyjson_get_next(other);
    }
    return true;
}

static bool objects_equal(yyjson_val *a, yyjson_val *b)
{
    if (yyjson_obj_size(a) != yyjson_obj_size(b))
        return false;
    struct json_members members;
    json_members_init(&members, b);
    bool equal = true;
    size_t i, max;
    yyjson_val *key, *value;
    yyjson_obj_foreach (a, i, max, key, value) {
        yyjson_val *other = json_members_get(&members, json_slice(key));
        equal = other != NULL && json_equal(value, other);
        if (!equal)
            break;
    }
    json_members_deinit(&members);
    return equal;
}

bool json_equal(yyjson_val *a, yyjson_val *b)
{
    yyjson_type type = yyjson_get_type(a);
    if (type != yyjson_get_type(b))
        return false;
    switch (type) {
    case YYJSON_TYPE_OBJ: return objects_equal(a, b);
    case YYJSON_TYPE_ARR: return arrays_equal(a, b);
    case YYJSON_TYPE_NUM: return numbers_equal(a, b);
    case YYJSON_TYPE_BOOL: return yyjson_get_bool(a) == yyjson_get_bool(b);
    case YYJSON_TYPE_STR:
    case YYJSON_TYPE_RAW: return slice_equal(json_slice(a), json_slice(b));
    default: return true;
    }
}
