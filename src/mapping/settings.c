/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalization of index settings. Clients send them flat ("index.analysis.analyzer.tree.type"),
 * nested, or mixed, with or without "index.". The result is nested, without "index.", and has only
 * the members `analysis` and `mapping`.
 */
#include "base/buf.h"
#include "json/each.h"
#include "mapping/mapping_internal.h"
#include "json/write.h"

#include <stdlib.h>

/* Returns: the object `name` in `parent`, created if it does not exist. */
static yyjson_mut_val *object_in(yyjson_mut_doc *doc, yyjson_mut_val *parent, struct slice name)
{
    yyjson_mut_val *object = yyjson_mut_obj_getn(parent, name.data, name.len);
    if (yyjson_mut_is_obj(object))
        return object;
    object = yyjson_mut_obj(doc);
    yyjson_mut_obj_put(parent, yyjson_mut_strncpy(doc, name.data, name.len), object);
    return object;
}

/*
 * Adds the settings to `into`, with dotted names split into nested objects up to a maximum depth.
 */
static void nest_settings(yyjson_mut_doc *doc, yyjson_mut_val *into, yyjson_val *settings, size_t depth)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (settings, i, max, key, value) {
        struct slice path = json_slice(key);
        yyjson_mut_val *parent = into;
        size_t end;
        size_t parts = 0;
        while ((end = slice_find_byte(path, '.')) < path.len && parts++ < MAPPING_DEPTH_MAX) {
            if (depth > 0 || parts > 1 || !slice_is(slice_make(path.data, end), "index"))
                parent = object_in(doc, parent, slice_make(path.data, end));
            path = slice_from_offset(path, end + 1);
        }
        if (yyjson_is_obj(value) && depth < MAPPING_DEPTH_MAX) {
            bool is_index = depth == 0 && parts == 0 && slice_is(path, "index");
            nest_settings(doc, is_index ? into : object_in(doc, parent, path), value, depth + 1);
        } else if (!yyjson_is_obj(value)) {
            yyjson_mut_obj_put(parent, yyjson_mut_strncpy(doc, path.data, path.len), yyjson_val_mut_copy(doc, value));
        }
    }
}

yyjson_val *settings__nest(struct arena *arena, yyjson_val *settings)
{
    if (!yyjson_is_obj(settings))
        return NULL;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    nest_settings(doc, root, settings, 0);
    yyjson_mut_val *kept = yyjson_mut_obj(doc);
    static const char *const names[] = {"analysis", "mapping"};
    yyjson_mut_val *sections[2];
    for (size_t i = 0; i < 2; i++) /* all first: `root` cannot be read once one is in `kept` */
        sections[i] = yyjson_mut_obj_get(root, names[i]);
    for (size_t i = 0; i < 2; i++) {
        if (yyjson_mut_is_obj(sections[i]))
            yyjson_mut_obj_add_val(doc, kept, names[i], sections[i]);
    }
    size_t len = 0;
    char *text = yyjson_mut_val_write(kept, 0, &len);
    struct json_doc parsed;
    yyjson_val *nested = NULL;
    if (text != NULL && json_parse_stored(arena, arena_copy(arena, slice_make(text, len)), &parsed) == 0)
        nested = parsed.root;
    free(text);
    yyjson_mut_doc_free(doc);
    return nested;
}
