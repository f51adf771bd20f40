/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: flattening JSON, merging, rendering. */
#include "core/catalog/settings.h"

#include <stdlib.h>

#include "base/check.h"
#include "json/each.h"
#include "json/write.h"

/* State of the walk over nested JSON. */
struct flattener {
    struct arena *arena;
    struct slice prefix;
    struct settings out;
    size_t capacity;
    bool stored; /* without limits */
    struct problem *problem;
};

static int compare_keys(const void *a, const void *b)
{
    return slice_compare(((const struct setting *)a)->key, ((const struct setting *)b)->key);
}

static struct setting *append_setting(struct settings *settings, struct arena *arena, size_t *capacity)
{
    REQUIRE(settings->count <= *capacity);
    settings->items = arena_grow(arena, settings->items, settings->count, capacity, sizeof(*settings->items));
    struct setting *added = &settings->items[settings->count++];
    *added = (struct setting){0};
    return added;
}

/* Orders positions in an array of settings by key; those of one key by themselves. */
static int compare_places(const void *a, const void *b)
{
    const struct setting *one = *(const struct setting *const *)a, *other = *(const struct setting *const *)b;
    int order = compare_keys(one, other);

    return order != 0 ? order : one < other ? -1 : one > other;
}

/* Sorts by key; of equal keys the last one given remains. */
static void sort_by_key(struct settings *settings, struct arena *arena)
{
    const struct setting **places = arena_alloc(arena, (settings->count + 1) * sizeof(*places));
    struct setting *sorted = arena_alloc(arena, (settings->count + 1) * sizeof(*sorted));
    size_t count = 0;

    for (size_t i = 0; i < settings->count; i++)
        places[i] = &settings->items[i];
    qsort(places, settings->count, sizeof(*places), compare_places); /* stable, since places differ */
    for (size_t i = 0; i < settings->count; i++)
        if (i + 1 == settings->count || !slice_equal(places[i]->key, places[i + 1]->key))
            sorted[count++] = *places[i];
    *settings = (struct settings){sorted, count};
}

static struct slice scalar_text(yyjson_val *value, struct arena *arena)
{
    if (yyjson_is_str(value) || yyjson_is_raw(value))
        return arena_copy(arena, json_slice(value));
    if (yyjson_is_bool(value))
        return yyjson_get_bool(value) ? SLICE_LIT("true") : SLICE_LIT("false");

    struct buf buf = BUF_INIT(64);
    json_write(&buf, value, DIALECT_7);
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

static struct slice full_key(const struct flattener *walk, struct slice path)
{
    if (slice_starts_with(path, walk->prefix))
        return path;
    return arena_printf(walk->arena, "%.*s%.*s", SLICE_ARG(walk->prefix), SLICE_ARG(path));
}

static int refuse_setting(struct flattener *walk, const char *reason, struct slice path)
{
    problem_set(walk->problem, walk->arena, PROBLEM_SETTINGS, "%s [%.*s]", reason, SLICE_ARG(path));
    return SETTINGS_REFUSED;
}

static int flatten_list(struct flattener *walk, struct slice path, yyjson_val *list)
{
    size_t i, max;
    yyjson_val *element;
    struct setting *setting = append_setting(&walk->out, walk->arena, &walk->capacity);

    setting->key = full_key(walk, path);
    setting->list = true;
    setting->values = arena_alloc(walk->arena, (yyjson_arr_size(list) + 1) * sizeof(*setting->values));
    json_arr_foreach (list, i, max, element) {
        if (yyjson_is_ctn(element) || yyjson_is_null(element))
            return refuse_setting(walk, "Failed to load settings: a list of settings may have only texts at", path);
        setting->values[setting->value_count++] = scalar_text(element, walk->arena);
    }
    return 0;
}

static void flatten_scalar(struct flattener *walk, struct slice path, yyjson_val *value)
{
    struct setting *setting = append_setting(&walk->out, walk->arena, &walk->capacity);

    setting->key = full_key(walk, path);
    if (yyjson_is_null(value))
        return;
    setting->values = arena_alloc(walk->arena, sizeof(*setting->values));
    setting->values[0] = scalar_text(value, walk->arena);
    setting->value_count = 1;
}

static int flatten_object(struct flattener *walk, struct slice path, yyjson_val *object)
{
    size_t i, max;
    yyjson_val *key, *value;

    json_obj_foreach (object, i, max, key, value) {
        struct slice name = json_slice(key);
        struct slice full = path.len == 0 ? arena_copy(walk->arena, name)
                                          : arena_printf(walk->arena, "%.*s.%.*s", SLICE_ARG(path), SLICE_ARG(name));
        int r = 0;
        if (!walk->stored && (full.len > SETTINGS_KEY_BYTES_MAX || walk->out.count >= SETTINGS_KEYS_MAX))
            return refuse_setting(walk, "too many settings, or too long a key, at",
                                  slice_make(full.data, full.len < 64 ? full.len : 64));
        if (yyjson_is_obj(value))
            r = flatten_object(walk, full, value);
        else if (yyjson_is_arr(value))
            r = flatten_list(walk, full, value);
        else
            flatten_scalar(walk, full, value);
        if (r != 0)
            return r;
    }
    return 0;
}

static int parse_settings(yyjson_val *json, struct slice prefix, bool stored, struct arena *arena,
                          struct settings *ret_settings, struct problem *ret_problem)
{
    REQUIRE(ret_settings != NULL && ret_problem != NULL);
    struct flattener walk = {.arena = arena, .prefix = prefix, .stored = stored, .problem = ret_problem};
    int r = json == NULL ? 0 : flatten_object(&walk, SLICE_NONE, json);

    if (r != 0)
        return r;
    sort_by_key(&walk.out, arena);
    *ret_settings = walk.out;
    return 0;
}

int settings_parse(yyjson_val *json, struct slice prefix, struct arena *arena, struct settings *ret_settings,
                   struct problem *ret_problem)
{
    return parse_settings(json, prefix, false, arena, ret_settings, ret_problem);
}

int settings_parse_stored(yyjson_val *json, struct arena *arena, struct settings *ret_settings,
                          struct problem *ret_problem)
{
    return parse_settings(json, SLICE_LIT(""), true, arena, ret_settings, ret_problem);
}

/* Returns: whether a change is a null, which removes settings; its key may be a wildcard: "index.routing.*": null. */
static bool is_null(const struct setting *change)
{
    return !change->list && change->value_count == 0;
}

static bool is_removed(const struct settings *wildcards, struct slice key)
{
    for (size_t i = 0; i < wildcards->count; i++) {
        struct slice wildcard = wildcards->items[i].key;
        if (slice_starts_with(key, slice_make(wildcard.data, wildcard.len - 1)))
            return true;
    }
    return false;
}

/* Returns: the nulls with a wildcard. */
static struct settings wildcards_of(const struct settings *changes, struct arena *arena)
{
    struct settings wildcards = {0};
    size_t capacity = 0;

    for (size_t i = 0; i < changes->count; i++) {
        const struct setting *change = &changes->items[i];
        if (is_null(change) && change->key.len > 0 && change->key.data[change->key.len - 1] == '*')
            *append_setting(&wildcards, arena, &capacity) = *change;
    }
    return wildcards;
}

struct settings settings_merge(const struct settings *base, const struct settings *changes, bool keep_existing,
                               struct arena *arena)
{
    struct settings merged = {0}, wildcards = wildcards_of(changes, arena);
    size_t capacity = 0, i = 0, j = 0;

    /* Both are in order of key, which is that of the result. */
    while (i < base->count || j < changes->count) {
        const struct setting *setting = i < base->count ? &base->items[i] : NULL;
        const struct setting *change = j < changes->count ? &changes->items[j] : NULL;
        int order = setting == NULL ? 1 : change == NULL ? -1 : compare_keys(setting, change);
        i += order <= 0;
        j += order >= 0;
        if (order <= 0 && (keep_existing || (order < 0 && !is_removed(&wildcards, setting->key))))
            *append_setting(&merged, arena, &capacity) = *setting;
        else if (order >= 0 && !is_null(change))
            *append_setting(&merged, arena, &capacity) = *change;
    }
    return merged;
}

/* Moves settings into memory for so many more, unless they are in such. Returns: how many it has copied. */
static size_t reserve_settings(struct settings *settings, struct settings_memory *memory, size_t more,
                               struct arena *arena)
{
    if (settings->items == memory->items && settings->count + more <= memory->capacity)
        return 0;
    memory->capacity = 2 * (settings->count + more) + 1;
    memory->items = arena_alloc(arena, memory->capacity * sizeof(*memory->items));
    if (settings->count > 0)
        memcpy(memory->items, settings->items, settings->count * sizeof(*memory->items));
    settings->items = memory->items;
    return settings->count;
}

/* Returns: the position of the first setting whose key is not below this one. */
static size_t position_of(const struct settings *settings, struct slice key)
{
    size_t low = 0, high = settings->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(settings->items[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces the settings [from, to) by `count` others, which the caller sets. Returns: how many it has moved. */
static size_t replace_range(struct settings *settings, size_t from, size_t to, size_t count)
{
    REQUIRE(from <= to && to <= settings->count);
    size_t rest = settings->count - to;

    if (to - from == count)
        return 0;
    memmove(settings->items + from + count, settings->items + to, rest * sizeof(*settings->items));
    settings->count = from + count + rest;
    return rest;
}

static size_t remove_wildcard(struct settings *settings, struct slice prefix)
{
    size_t from = position_of(settings, prefix), to = from;

    while (to < settings->count && slice_starts_with(settings->items[to].key, prefix))
        to++;
    return replace_range(settings, from, to, 0);
}

size_t settings_apply(struct settings *io_settings, struct settings_memory *memory, const struct settings *changes,
                      struct arena *arena)
{
    struct settings wildcards = wildcards_of(changes, arena);
    size_t moved = reserve_settings(io_settings, memory, changes->count, arena);

    for (size_t i = 0; i < wildcards.count; i++)
        moved += remove_wildcard(io_settings, slice_make(wildcards.items[i].key.data, wildcards.items[i].key.len - 1));
    for (size_t i = 0; i < changes->count; i++) {
        const struct setting *change = &changes->items[i];
        size_t at = position_of(io_settings, change->key);
        bool exists = at < io_settings->count && slice_equal(io_settings->items[at].key, change->key);
        moved += replace_range(io_settings, at, at + exists, !is_null(change));
        if (!is_null(change))
            io_settings->items[at] = *change;
    }
    ENSURE(io_settings->items == memory->items && io_settings->count <= memory->capacity);
    return moved;
}

size_t settings_bytes(const struct settings *settings)
{
    size_t bytes = 0;

    for (size_t i = 0; i < settings->count; i++) {
        bytes += settings->items[i].key.len;
        for (size_t j = 0; j < settings->items[i].value_count; j++)
            bytes += settings->items[i].values[j].len + 1;
    }
    return bytes;
}

const struct setting *settings_find(const struct settings *settings, struct slice key)
{
    struct setting key_only = {.key = key};

    if (settings->count == 0)
        return NULL;
    return bsearch(&key_only, settings->items, settings->count, sizeof(key_only), compare_keys);
}

struct slice settings_get(const struct settings *settings, struct slice key)
{
    const struct setting *setting = settings_find(settings, key);

    return setting == NULL || setting->value_count == 0 ? SLICE_NONE : setting->values[0];
}

void settings_set(struct settings *settings, struct arena *arena, struct slice key, struct slice text)
{
    REQUIRE(key.len > 0 && arena != NULL);
    struct slice *value = arena_alloc(arena, sizeof(*value));
    struct setting change = {.key = arena_copy(arena, key), .values = value, .value_count = 1};
    struct settings changes = {&change, 1};

    *value = arena_copy(arena, text);
    *settings = settings_merge(settings, &changes, false, arena);
}

static void write_value(struct json_writer *writer, const struct setting *setting)
{
    if (!setting->list) {
        json_string(writer, setting->value_count == 0 ? SLICE_LIT("") : setting->values[0]);
        return;
    }
    json_begin(writer, '[');
    for (size_t i = 0; i < setting->value_count; i++)
        json_string(writer, setting->values[i]);
    json_end(writer, ']');
}

/* Returns: the next component of a dotted key after `depth` bytes; empty at its end. */
static struct slice next_component(struct slice key, size_t depth)
{
    REQUIRE(depth <= key.len);
    struct slice rest = slice_from_offset(key, depth);
    return slice_make(rest.data, slice_find_byte(rest, '.'));
}

static bool has_group(struct slice key, struct slice group)
{
    return slice_starts_with(key, group) && key.len > group.len && key.data[group.len] == '.';
}

/*
 * Renders items [from, to), which share their first `depth` bytes, as nested objects. A key that is
 * both a setting and a prefix of others ("a" and "a.b") is rendered flat from there, as
 * Elasticsearch does.
 */
static void write_nested(struct json_writer *writer, const struct settings *settings, size_t from, size_t to,
                         size_t depth)
{
    REQUIRE(from <= to && to <= settings->count);
    json_begin(writer, '{');
    while (from < to) {
        struct slice key = settings->items[from].key;
        struct slice name = next_component(key, depth);
        struct slice group = slice_make(key.data, depth + name.len);
        size_t end = from + 1;
        if (group.len == key.len) {
            json_key_slice(writer, name);
            write_value(writer, &settings->items[from]);
            for (; end < to && has_group(settings->items[end].key, group); end++) {
                json_key_slice(writer, slice_from_offset(settings->items[end].key, depth));
                write_value(writer, &settings->items[end]);
            }
        } else {
            while (end < to && has_group(settings->items[end].key, group))
                end++;
            json_key_slice(writer, name);
            write_nested(writer, settings, from, end, depth + name.len + 1);
        }
        from = end;
    }
    json_end(writer, '}');
}

void settings_render(const struct settings *settings, bool flat, struct buf *buf)
{
    struct json_writer writer;

    json_writer_init(&writer, buf);
    if (!flat) {
        write_nested(&writer, settings, 0, settings->count, 0);
        return;
    }
    json_begin(&writer, '{');
    for (size_t i = 0; i < settings->count; i++) {
        json_key_slice(&writer, settings->items[i].key);
        write_value(&writer, &settings->items[i]);
    }
    json_end(&writer, '}');
}
