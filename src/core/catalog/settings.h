/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings: a flat map from dotted keys to text, as Elasticsearch keeps and prints them.
 *
 * {"index": {"number_of_shards": 1}} and {"number_of_shards": "1"} are the same thing here: the key
 * "index.number_of_shards" with the text "1". A value is a text or a list of texts; a null takes a key away.
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
    struct slice *values; /* one text, or the elements of a list; none: null */
    size_t value_count;
    bool list;
};

/* In order of key; immutable once built. Lives in the arena it was made in. */
struct settings {
    struct setting *items;
    size_t count;
};

enum { SETTINGS_REFUSED = 1 /* *ret_problem says why */ };

/*
 * Flattens JSON. `prefix` ("index.") is put before keys that lack it; empty: keys are taken as they are.
 * Requires: `json` is an object, or NULL for no settings.
 * Returns: 0; SETTINGS_REFUSED for what Elasticsearch takes for no setting.
 */
int settings_parse(yyjson_val *json, struct slice prefix, struct arena *arena, struct settings *ret_settings,
                   struct problem *ret_problem) TL_MUST_USE;

/* Makes `base` with `changes` laid over it; nulls remove, wildcards in keys of nulls too. */
struct settings settings_merge(const struct settings *base, const struct settings *changes, bool keep_existing,
                               struct arena *arena);

/* Returns: the setting, or NULL; its only text, data NULL where it has none. */
const struct setting *settings_find(const struct settings *settings, struct slice key);
struct slice settings_get(const struct settings *settings, struct slice key);
#define settings_get_lit(settings, literal) settings_get((settings), SLICE_LIT(literal))

/* Adds or replaces one text. */
void settings_set(struct settings *settings, struct arena *arena, struct slice key, struct slice text);

/* Appends {"index": {"number_of_shards": "1", …}} or, flat, {"index.number_of_shards": "1", …}. */
void settings_render(const struct settings *settings, bool flat, struct buf *buf);

#endif
