/* SPDX-License-Identifier: Apache-2.0 */
/* Filters for `_source` and `filter_path`; see filter.h. */
#include "json/filter.h"

#include "base/account.h"
#include "base/budget.h"
#include "base/check.h"
#include "json/each.h"
#include "json/name_set.h"
#include "json/write.h"

/* The time of a call of json_wildcard(), as that of so many bytes. */
enum { WILDCARD_CALL_BYTES = 4 };

/* Requires: `piece` fits into `text` at `at`. */
static bool has_at(struct slice text, size_t at, struct slice piece)
{
    return piece.len == 0 || memcmp(text.data + at, piece.data, piece.len) == 0;
}

/*
 * The literals between the stars are searched with memmem, which takes linear time. The first
 * occurrence of each is sufficient: a later one leaves less text for the rest of the pattern.
 */
bool json_wildcard(struct slice pattern, struct slice text)
{
    size_t star = slice_find_byte(pattern, '*'), at = star;
    if (text.len < star || !has_at(text, 0, slice_make(pattern.data, star)))
        return false;
    if (star == pattern.len)
        return text.len == star;
    for (;;) {
        pattern = slice_from_offset(pattern, star + 1);
        star = slice_find_byte(pattern, '*');
        struct slice piece = slice_make(pattern.data, star);
        if (star == pattern.len) /* the last literal must end the text */
            return piece.len <= text.len - at && has_at(text, text.len - piece.len, piece);
        const char *found =
            piece.len == 0 ? text.data + at : memmem(text.data + at, text.len - at, piece.data, piece.len);
        if (found == NULL)
            return false;
        at = (size_t)(found - text.data) + piece.len;
    }
}

size_t json_wildcard_bytes(struct slice pattern, size_t text_len)
{
    size_t star = slice_find_byte(pattern, '*');
    struct slice rest = slice_from_offset(pattern, star < pattern.len ? star + 1 : star);
    bool searches = slice_find_byte(rest, '*') < rest.len; /* for a piece between two stars, in all of the text */
    return WILDCARD_CALL_BYTES + pattern.len + (searches ? text_len : 0);
}

/* Returns: whether a text that begins with `start` can match the pattern. */
static bool may_match(struct slice pattern, struct slice start)
{
    size_t literal = slice_find_byte(pattern, '*');
    size_t common = literal < start.len ? literal : start.len;
    return (common == 0 || memcmp(pattern.data, start.data, common) == 0) &&
           (literal < pattern.len || start.len <= literal);
}

/*
 * `_source` filtering. The walk maintains the path of the current value. For each path it checks
 * whether a pattern matches it, and whether a pattern may match something below it.
 */
struct filter_state {
    struct buf *out;
    struct buf path;
    const struct json_filter *filter;
    enum dialect dialect;
};

/*
 * Charges the account for matching one name against all patterns.
 * Returns: false if the output is no longer needed: the buffer overflowed or the account has ended.
 */
static bool may_continue(const struct buf *out, const struct slice *patterns, size_t count, struct slice name)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += patterns[i].len;
    return !out->overflow && account_take(budget_account(out->guard), 8 + (bytes + count * name.len) / 4);
}

static bool any_matches(const struct slice *patterns, size_t count, struct slice path)
{
    for (size_t i = 0; i < count; i++) {
        if (json_wildcard(patterns[i], path))
            return true;
    }
    return false;
}

/* Returns: whether a pattern may match something below `path`, which is unchanged on return. */
static bool any_reaches_into(const struct slice *patterns, size_t count, struct buf *path)
{
    buf_byte(path, '.');
    bool reaches = false;
    for (size_t i = 0; i < count && !reaches; i++)
        reaches = may_match(patterns[i], buf_as_slice(path));
    buf_chop(path, 1);
    return reaches;
}

static bool filter_object(struct filter_state *f, yyjson_val *object, bool included);
static bool filter_array(struct filter_state *f, yyjson_val *array, bool included);

/*
 * Writes the filtered value at f->path. `included`: an include matches the path or one above it.
 * Returns: false if nothing of the value is left; the caller then truncates the output.
 */
static bool filter_value(struct filter_state *f, yyjson_val *value, bool included)
{
    const struct json_filter *filter = f->filter;
    if (included && !any_reaches_into(filter->excludes, filter->exclude_count, &f->path)) {
        json_write(f->out, value, f->dialect);
        return true;
    }
    if (yyjson_is_obj(value)) {
        if (!included && !any_reaches_into(filter->includes, filter->include_count, &f->path))
            return false;
        return filter_object(f, value, included) || included;
    }
    if (yyjson_is_arr(value))
        return filter_array(f, value, included) || (included && !filter->drops_empty_arrays);
    if (included)
        json_write(f->out, value, f->dialect);
    return included;
}

/* Writes a filtered member. Returns: false, with nothing written, if nothing of it is left. */
static bool filter_member(struct filter_state *f, yyjson_val *key, yyjson_val *value, bool included, bool comma)
{
    const struct json_filter *filter = f->filter;
    struct slice path = buf_as_slice(&f->path);
    included = included || any_matches(filter->includes, filter->include_count, path);
    if (any_matches(filter->excludes, filter->exclude_count, path))
        return false;
    size_t before = f->out->len;
    if (comma)
        buf_byte(f->out, ',');
    buf_json_string(f->out, json_slice(key));
    buf_byte(f->out, ':');
    if (filter_value(f, value, included))
        return true;
    buf_truncate(f->out, before);
    return false;
}

/* Writes a filtered object. Returns: false, with {} written, if no member is left. */
static bool filter_object(struct filter_state *f, yyjson_val *object, bool included)
{
    size_t path_len = f->path.len;
    bool comma = false;
    struct json_members members;
    json_members_init(&members, object);
    size_t i, max;
    yyjson_val *key, *value;
    buf_byte(f->out, '{');
    json_obj_foreach (object, i, max, key, value) {
        if (json_members_get(&members, json_slice(key)) != value)
            continue; /* a later member of this name replaces it */
        if (path_len > 0)
            buf_byte(&f->path, '.');
        buf_slice(&f->path, json_slice(key));
        const struct json_filter *filter = f->filter;
        if (!may_continue(f->out, filter->includes, filter->include_count, buf_as_slice(&f->path)) ||
            !may_continue(f->out, filter->excludes, filter->exclude_count, buf_as_slice(&f->path)))
            break;
        comma |= filter_member(f, key, value, included, comma);
        buf_truncate(&f->path, path_len);
    }
    json_members_deinit(&members);
    buf_byte(f->out, '}');
    return comma;
}

static bool filter_item(struct filter_state *f, yyjson_val *item, bool included)
{
    if (yyjson_is_obj(item))
        return filter_object(f, item, included);
    if (yyjson_is_arr(item))
        return filter_array(f, item, included);
    if (included)
        json_write(f->out, item, f->dialect);
    return included;
}

static bool filter_array(struct filter_state *f, yyjson_val *array, bool included)
{
    bool comma = false;
    size_t i, max;
    yyjson_val *item;
    buf_byte(f->out, '[');
    json_arr_foreach (array, i, max, item) {
        size_t before = f->out->len;
        if (comma)
            buf_byte(f->out, ',');
        if (!may_continue(f->out, NULL, 0, SLICE_NONE))
            break;
        if (filter_item(f, item, included))
            comma = true;
        else
            buf_truncate(f->out, before);
    }
    buf_byte(f->out, ']');
    return comma;
}

/* Adds the work of the values below one, whose path has so many bytes. */
static void add_work(yyjson_val *value, uint64_t path, uint64_t patterns, uint64_t most, uint64_t *work)
{
    size_t i, max;
    yyjson_val *key, *item;
    json_arr_foreach (value, i, max, item) {
        if (*work <= most)
            add_work(item, path, patterns, most, work);
    }
    json_obj_foreach (value, i, max, key, item) {
        uint64_t own = path + 1 + unsafe_yyjson_get_len(key);
        if (*work > most)
            return;
        *work += patterns * (own + JSON_FILTER_NAME_BYTES);
        add_work(item, own, patterns, most, work);
    }
}

uint64_t json_filter_work(yyjson_val *source, const struct json_filter *filter, uint64_t most)
{
    uint64_t work = 0;
    add_work(source, 0, filter->include_count + filter->exclude_count, most, &work);
    return work;
}

void json_filter_source(struct buf *buf, yyjson_val *source, const struct json_filter *filter, enum dialect dialect)
{
    REQUIRE(yyjson_is_obj(source));
    struct filter_state f = {buf, BUF_INIT(BUF_UNLIMITED), filter, dialect};
    filter_object(&f, source, filter->include_count == 0);
    buf_deinit(&f.path);
}

/*
 * `filter_path`, as the simulation of a nondeterministic automaton. Its states are tails of the
 * patterns: the part that is still to be matched at the current depth. The active tails of a depth
 * are a range of one stack and are distinct, so the work for each name is bounded by the length of
 * the patterns.
 */
struct tail {
    struct slice text;
    size_t position; /* of its first byte in the concatenation of all patterns */
};

struct path_filter {
    struct buf *out;
    struct tail *tails;
    size_t count;
    size_t capacity;
    uint64_t *pushed_at; /* by position of the tail: the value of `names` when it was last pushed */
    uint64_t names;      /* number of names visited */
    bool exclude;
    enum dialect dialect;
};

/* Pushes a tail. Returns: false if it was already pushed for the current name. */
static bool push_tail(struct path_filter *f, struct tail tail)
{
    if (f->pushed_at[tail.position] == f->names)
        return false;
    f->pushed_at[tail.position] = f->names;
    if (f->count == f->capacity) {
        f->capacity = f->capacity == 0 ? 32 : f->capacity * 2;
        f->tails = mem_realloc(f->tails, f->capacity * sizeof *f->tails);
    }
    f->tails[f->count++] = tail;
    return true;
}

static struct tail tail_from(struct tail tail, size_t offset)
{
    struct slice text = slice_from_offset(tail.text, offset);
    return (struct tail){text, tail.position + (tail.text.len - text.len)};
}

/* Returns: the first name of a tail. A dot after a backslash is part of the name. */
static struct slice first_name(struct slice tail)
{
    for (size_t i = 0; i < tail.len; i++) {
        if (tail.data[i] == '.' && (i == 0 || tail.data[i - 1] != '\\'))
            return slice_make(tail.data, i);
    }
    return tail;
}

/*
 * Advances one tail over a name and pushes the tails that result.
 * Returns: whether the pattern ends here, so that it matches the whole value.
 */
static bool step_tail(struct path_filter *f, struct tail tail, struct slice name)
{
    struct slice first = first_name(tail.text);
    struct tail rest = tail_from(tail, first.len + 1);
    while (slice_is(first, "**")) { /* it may match this name or no name at all */
        if (rest.text.len == 0)
            return true;
        if (!push_tail(f, tail))
            return false; /* the tail after it was processed with it */
        tail = rest;
        first = first_name(tail.text);
        rest = tail_from(tail, first.len + 1);
    }
    if (!json_wildcard(first, name))
        return false;
    if (rest.text.len == 0 || slice_is(rest.text, "**"))
        return true;
    (void)push_tail(f, rest);
    return false;
}

static bool path_filter_value(struct path_filter *f, yyjson_val *value, size_t begin, size_t end);

/* Writes a member filtered by the tails [begin, end). Returns: whether anything was written. */
static bool path_filter_member(struct path_filter *f, yyjson_val *key, yyjson_val *value, size_t begin, size_t end,
                               bool comma)
{
    size_t before = f->out->len;
    size_t own = f->count;
    bool whole = false;
    f->names++;
    for (size_t i = begin; i < end && !whole && may_continue(f->out, &f->tails[i].text, 1, json_slice(key)); i++)
        whole = step_tail(f, f->tails[i], json_slice(key));
    bool untouched = f->count == own;
    bool written = false;
    if (f->exclude ? !whole : whole || !untouched) {
        if (comma)
            buf_byte(f->out, ',');
        buf_json_string(f->out, json_slice(key));
        buf_byte(f->out, ':');
        if (f->exclude ? untouched : whole) {
            json_write(f->out, value, f->dialect);
            written = true;
        } else {
            written = path_filter_value(f, value, own, f->count);
        }
    }
    if (!written)
        buf_truncate(f->out, before);
    f->count = own;
    return written;
}

/* Writes a value filtered by the tails [begin, end). Returns: false if nothing of it is left. */
static bool path_filter_value(struct path_filter *f, yyjson_val *value, size_t begin, size_t end)
{
    bool is_object = yyjson_is_obj(value);
    if (!is_object && !yyjson_is_arr(value)) {
        if (f->exclude)
            json_write(f->out, value, f->dialect);
        return f->exclude;
    }
    bool comma = false;
    buf_byte(f->out, is_object ? '{' : '[');
    yyjson_val *at = unsafe_yyjson_get_first(value);
    for (size_t left = unsafe_yyjson_get_len(value); left > 0 && may_continue(f->out, NULL, 0, SLICE_NONE); left--) {
        size_t before = f->out->len;
        if (is_object) {
            comma |= path_filter_member(f, at, at + 1, begin, end, comma);
            at++;
        } else {
            if (comma)
                buf_byte(f->out, ',');
            if (path_filter_value(f, at, begin, end))
                comma = true;
            else
                buf_truncate(f->out, before);
        }
        at = unsafe_yyjson_get_next(at);
    }
    buf_byte(f->out, is_object ? '}' : ']');
    return comma;
}

/* Writes a value filtered by the patterns of one kind: includes, or excludes if `exclude`. */
static void run_path_filter(struct buf *buf, yyjson_val *value, const struct slice *patterns, size_t count,
                            bool exclude, enum dialect dialect)
{
    struct path_filter f = {.out = buf, .exclude = exclude, .dialect = dialect, .names = 1};
    size_t positions = 0;
    for (size_t i = 0; i < count; i++)
        positions += patterns[i].len + 1;
    f.pushed_at = mem_zalloc(positions * sizeof *f.pushed_at);
    positions = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_exclude = patterns[i].len > 0 && patterns[i].data[0] == '-';
        if (is_exclude == exclude)
            (void)push_tail(&f, (struct tail){slice_from_offset(patterns[i], exclude), positions});
        positions += patterns[i].len + 1;
    }
    bool scalar = !yyjson_is_obj(value) && !yyjson_is_arr(value);
    size_t before = buf->len;
    if (f.count == 0 || scalar) {
        json_write(buf, value, dialect);
    } else if (!path_filter_value(&f, value, 0, f.count)) {
        buf_truncate(buf, before);
        buf_lit(buf, "{}");
    }
    mem_free(f.tails);
    mem_free(f.pushed_at);
}

static bool has_kind(const struct slice *patterns, size_t count, bool exclude)
{
    for (size_t i = 0; i < count; i++) {
        if ((patterns[i].len > 0 && patterns[i].data[0] == '-') == exclude)
            return true;
    }
    return false;
}

void json_filter_path(struct buf *buf, yyjson_val *value, const struct slice *patterns, size_t count,
                      enum dialect dialect)
{
    bool includes = has_kind(patterns, count, false);
    bool excludes = has_kind(patterns, count, true);
    if (!includes || !excludes) {
        run_path_filter(buf, value, patterns, count, excludes, dialect);
        return;
    }
    /* With both kinds, the output of the excludes is parsed again and filtered by the includes. */
    struct buf left = BUF_INIT(BUF_UNLIMITED);
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    left.guard = buf->guard;
    run_path_filter(&left, value, patterns, count, true, dialect);
    bool whole = may_continue(&left, NULL, 0, SLICE_NONE);
    int r = whole ? json_parse_stored(&arena, buf_as_slice(&left), &doc) : 0;
    INSIST(r == 0);
    if (whole)
        run_path_filter(buf, doc.root, patterns, count, false, dialect);
    else
        buf->overflow = true; /* the intermediate text is incomplete: report the output as cut short */
    arena_deinit(&arena);
    buf_deinit(&left);
}
