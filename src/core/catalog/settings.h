/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings: a flat map from dotted keys to text, as Elasticsearch stores and prints them.
 *
 * {"index": {"number_of_shards": 1}} and {"number_of_shards": "1"} are equal: the key
 * "index.number_of_shards" with the text "1". A value is a text or a list of texts; null removes a
 * key.
 */
#ifndef TL_CORE_SETTINGS_H
#define TL_CORE_SETTINGS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "json/json.h"

#define SETTINGS_KEYS_MAX 1000
#define SETTINGS_KEY_BYTES_MAX 1024

struct setting {
    struct slice key;
    struct slice *values; /* one text, or the elements of a list; count 0: null */
    size_t value_count;
    bool list;
};

/* Ordered by key, immutable once built, in the arena of its maker. */
struct settings {
    struct setting *items;
    size_t count;
};

enum { SETTINGS_REFUSED = 1 /* *ret_problem has the reason */ };

/*
 * Flattens an object; NULL and anything else has no settings. Adds `prefix` ("index.") to keys that lack it;
 * empty: keys stay unchanged.
 * Returns: 0; SETTINGS_REFUSED: a value that Elasticsearch does not accept as a setting.
 */
int settings_parse(yyjson_val *json, struct slice prefix, struct arena *arena, struct settings *ret_settings,
                   struct problem *ret_problem) TL_MUST_USE;
/*
 * As settings_parse() without a prefix, of the settings of an index. These are beyond its limits with those that each
 * index has, with the prefix of their keys, and if commands before version 19 merged more. Returns: 0;
 * SETTINGS_REFUSED.
 */
int settings_parse_stored(yyjson_val *json, struct arena *arena, struct settings *ret_settings,
                          struct problem *ret_problem) TL_MUST_USE;

/*
 * Returns: `base` changed by `changes`. A null removes a key, or all keys that its wildcard
 *   matches. With `keep_existing`, keys of `base` are not replaced.
 */
struct settings settings_merge(const struct settings *base, const struct settings *changes, bool keep_existing,
                               struct arena *arena);

/* Memory that settings_apply() has allocated for the settings that it changed last; initially zero. */
struct settings_memory {
    struct setting *items;
    size_t capacity;
};
/*
 * As settings_merge() without `keep_existing`, but changes *io_settings in place, if they are in `memory`. So many
 * changes one after another take time for those settings alone that follow one which is added or removed.
 * Ensures: the items of *io_settings are in `memory`, which is in `arena`.
 * Returns: the number of settings that were moved or copied.
 */
size_t settings_apply(struct settings *io_settings, struct settings_memory *memory, const struct settings *changes,
                      struct arena *arena);

/* Returns: the bytes of all keys and values. */
size_t settings_bytes(const struct settings *settings);
/* Return the setting, or NULL; and its only text, with data NULL if it has none. */
const struct setting *settings_find(const struct settings *settings, struct slice key);
struct slice settings_get(const struct settings *settings, struct slice key);
#define settings_get_lit(settings, literal) settings_get((settings), SLICE_LIT(literal))

/* Adds or replaces a setting with one text. Requires: `key` is not empty. */
void settings_set(struct settings *settings, struct arena *arena, struct slice key, struct slice text);

/*
 * Appends {"index": {"number_of_shards": "1", …}} or, with `flat`, {"index.number_of_shards": "1",
 * …}.
 */
void settings_render(const struct settings *settings, bool flat, struct buf *buf);

#endif
