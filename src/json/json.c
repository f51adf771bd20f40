/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of untrusted JSON; see json.h. */
#include "json/json.h"

#include "base/budget.h"
#include "base/check.h"
#include "json/each.h"
#include "json/name_set.h"
#include "json/scan.h"

/* Elasticsearch detects the format of a body from this many bytes. */
enum { SNIFF_BYTES = 20 };

/*
 * Bytes that are copied (COPY_BLOCK_BYTES) or examined (SCAN_BLOCK_BYTES) between two checks of
 * the account.
 */
enum { COPY_BLOCK_BYTES = 1 << 18, SCAN_BLOCK_BYTES = 1 << 14 };

/*
 * Charges `steps` to the account of the arena's guard, before the work is done.
 * Returns: false if parsing must stop: the account has ended or the guard has refused memory.
 */
static bool may_continue(const struct arena *arena, uint64_t steps)
{
    return arena->guard == NULL || (account_take(arena->guard->account, steps) && !arena->guard->refused);
}

/*
 * Sets the result of a parse that was stopped early. The problem is a placeholder, which no client
 * sees: the owner of the arena reports the actual reason.
 */
static int end_early(struct problem *ret_problem)
{
    *ret_problem = (struct problem){.type = PROBLEM_TASK_CANCELLED, .reason = SLICE_LIT("the request is over")};
    return JSON_INVALID;
}

/* Allocation functions for yyjson; `context` is the arena. Shrinking and freeing do nothing. */
static void *arena_malloc(void *context, size_t size)
{
    return arena_alloc(context, size);
}

static void *arena_realloc(void *context, void *old, size_t old_size, size_t size)
{
    return size <= old_size ? old : arena_regrow(context, old, old_size, size);
}

/*
 * Allocation functions that fail once parsing must stop. yyjson grows the tree of a long text by
 * half about ten times, and each time gives up if the allocation fails.
 */
static void *arena_guarded_malloc(void *context, size_t size)
{
    return may_continue(context, 0) ? arena_alloc(context, size) : NULL;
}

static void *arena_guarded_realloc(void *context, void *old, size_t old_size, size_t size)
{
    return may_continue(context, size) ? arena_realloc(context, old, old_size, size) : NULL;
}

static void arena_ignore_free(void *context, void *pointer)
{
    (void)context;
    (void)pointer;
}

/*
 * Returns: a padded copy of the text, which yyjson may unescape in place. `interruptible`: the
 *          copy is left incomplete if parsing must stop.
 */
static char *padded_copy(struct arena *arena, struct slice text, bool interruptible)
{
    char *copy = arena_alloc(arena, text.len + YYJSON_PADDING_SIZE);
    for (size_t at = 0; at < text.len && (!interruptible || may_continue(arena, COPY_BLOCK_BYTES / 4));
         at += COPY_BLOCK_BYTES)
        memcpy(copy + at, text.data + at, text.len - at < COPY_BLOCK_BYTES ? text.len - at : COPY_BLOCK_BYTES);
    memset(copy + text.len, 0, YYJSON_PADDING_SIZE);
    return copy;
}

/*
 * Parses `copy` in place. `interruptible`: stops early if parsing must stop.
 * Returns: the root; NULL with *ret_error if yyjson refuses the text or was stopped.
 */
static yyjson_val *read_in_place(struct arena *arena, char *copy, size_t len, bool interruptible,
                                 yyjson_read_err *ret_error)
{
    yyjson_alc alc = {interruptible ? arena_guarded_malloc : arena_malloc,
                      interruptible ? arena_guarded_realloc : arena_realloc, arena_ignore_free, arena};
    yyjson_doc *doc = yyjson_read_opts(copy, len, YYJSON_READ_INSITU | YYJSON_READ_BIGNUM_AS_RAW, &alc, ret_error);
    return doc == NULL ? NULL : yyjson_doc_get_root(doc);
}

/*
 * Returns: whether brackets outside of strings nest deeper than the limit; meaningless if parsing
 *          must stop. A level takes at least two bytes, so short texts are not scanned.
 */
static bool is_too_deep(const struct arena *arena, struct slice text)
{
    const size_t limit = json_depth_limit();
    if (text.len <= 2 * limit)
        return false;
    size_t openers = 0;
    if (!may_continue(arena, text.len / 16))
        return false;
    for (size_t i = 0; i < text.len; i++)
        openers += (size_t)((text.data[i] | 0x20) == '{');
    if (openers <= limit)
        return false;
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (i % SCAN_BLOCK_BYTES == 0 && !may_continue(arena, SCAN_BLOCK_BYTES / 4))
            return false;
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

enum {
    SMALL_OBJECT = 12,        /* up to so many members, names are compared pairwise */
    KEY_STEPS = 50,           /* account steps of one lookup in a table larger than the CPU caches */
    SCAN_BLOCK_VALUES = 4096, /* values examined between two checks of the account */
};

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

static bool large_object_repeats(const struct arena *arena, yyjson_val *object)
{
    struct json_name_set names = JSON_NAME_SET_INIT;
    bool repeats = false;
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (object, i, max, key, value) {
        if (!may_continue(arena, KEY_STEPS))
            break;
        if (!json_name_set_add(&names, 0, json_slice(key))) {
            repeats = true;
            break;
        }
    }
    json_name_set_deinit(&names);
    return repeats;
}

/*
 * Returns: whether any object has a duplicate name; meaningless if parsing must stop. Iterates over
 *          all values at once, since yyjson stores them in one array.
 */
static bool has_duplicates(const struct arena *arena, yyjson_val *root)
{
    yyjson_val *end = unsafe_yyjson_get_next(root);
    for (yyjson_val *value = root; value < end; value++) {
        if ((value - root) % SCAN_BLOCK_VALUES == 0 && !may_continue(arena, SCAN_BLOCK_VALUES))
            return false;
        if (!unsafe_yyjson_is_obj(value))
            continue;
        size_t count = unsafe_yyjson_get_len(value);
        if (count <= SMALL_OBJECT ? small_object_repeats(value, count) : large_object_repeats(arena, value))
            return true;
    }
    return false;
}

/* Returns: whether the first bytes look like an object, by Elasticsearch's content detection. */
static bool looks_like_object(struct slice text)
{
    if (slice_starts_with(text, SLICE_LIT("\xef\xbb\xbf")))
        text = slice_from_offset(text, 3);
    if (slice_starts_with(text, SLICE_LIT("---")))
        return true; /* Elasticsearch detects YAML here; the JSON parser then refuses the text */
    for (size_t i = 0; i < text.len && i < SNIFF_BYTES; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == '{')
            return true;
        if (c != ' ' && (c < '\t' || c > '\r'))
            return false;
    }
    return false;
}

/*
 * The slow path, for a text that yyjson or a check above refused: applies Jackson's grammar.
 * Returns: as json_parse(). `interruptible`: stops early if parsing must stop.
 */
static int parse_as_jackson(struct arena *arena, struct slice text, enum dialect dialect, unsigned flags,
                            bool interruptible, struct json_doc *ret_doc, struct problem *ret_problem)
{
    char *copy = padded_copy(arena, text, interruptible);
    struct json_error error;
    struct account *account = interruptible ? budget_account(arena->guard) : NULL;
    if (json_scan(arena, copy, text.len, dialect, flags, account, &error) != 0) {
        if (interruptible && !may_continue(arena, 0))
            return end_early(ret_problem);
        json_error_problem(arena, text, dialect, &error, ret_problem);
        return JSON_INVALID;
    }
    yyjson_read_err refusal;
    yyjson_val *root = read_in_place(arena, copy, text.len, interruptible, &refusal);
    if (interruptible && !may_continue(arena, 0))
        return end_early(ret_problem);
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
    if (text.len > 0 && !is_too_deep(arena, text)) {
        char *copy = padded_copy(arena, text, true);
        yyjson_read_err refusal;
        yyjson_val *root =
            may_continue(arena, text.len / 4) ? read_in_place(arena, copy, text.len, true, &refusal) : NULL;
        if (root != NULL && ((flags & JSON_DUPLICATES) || !has_duplicates(arena, root)) && may_continue(arena, 0)) {
            *ret_doc = (struct json_doc){root, text, copy};
            return 0;
        }
    }
    if (!may_continue(arena, 0))
        return end_early(ret_problem);
    return parse_as_jackson(arena, text, dialect, flags, true, ret_doc, ret_problem);
}

int json_parse_stored(struct arena *arena, struct slice text, struct json_doc *ret_doc)
{
    char *copy = padded_copy(arena, text, false);
    yyjson_read_err refusal;
    yyjson_val *root = text.len == 0 ? NULL : read_in_place(arena, copy, text.len, false, &refusal);
    if (root != NULL) {
        *ret_doc = (struct json_doc){root, text, copy};
        return 0;
    }
    struct problem problem;
    if (parse_as_jackson(arena, text, DIALECT_7, JSON_DUPLICATES, false, ret_doc, &problem) != 0)
        return TL_ERR_CORRUPT;
    return 0;
}

size_t json_value_count(const struct json_doc *doc)
{
    REQUIRE(doc->root != NULL);
    return (size_t)(unsafe_yyjson_get_next(doc->root) - doc->root); /* they are in one array */
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

/* Returns: the offset after the comment that begins at `at`. */
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

/*
 * Returns: the offset after the token at `at`: a string, a bracket, or a run of other characters.
 */
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
    /* yyjson stores names and values in one array, in text order: count tokens up to this one. */
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
    json_arr_foreach (a, i, max, item) {
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
    json_obj_foreach (a, i, max, key, value) {
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

enum json_kind json_kind(yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_STR: return JSON_TEXT;
    case YYJSON_TYPE_BOOL: return JSON_BOOLEAN;
    case YYJSON_TYPE_NULL: return JSON_NULL;
    case YYJSON_TYPE_OBJ: return JSON_OBJECT;
    case YYJSON_TYPE_ARR: return JSON_LIST;
    default: return JSON_NUMBER;
    }
}

const char *json_token(yyjson_val *value)
{
    switch (json_kind(value)) {
    case JSON_TEXT: return "VALUE_STRING";
    case JSON_BOOLEAN: return "VALUE_BOOLEAN";
    case JSON_NULL: return "VALUE_NULL";
    case JSON_OBJECT: return "START_OBJECT";
    case JSON_LIST: return "START_ARRAY";
    default: return "VALUE_NUMBER";
    }
}
