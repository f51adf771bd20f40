/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes that cannot come back: with --tombstones a delete is a document {"tidelock_deleted": T}
 * in the target, whose version no target forgets.
 *
 * Readers use the alias with the index's name, whose filter excludes tombstones, over the index
 * INDEX-copy. When no older request can be under way any more, a tombstone is deleted, with the
 * version above its own: a document written there since is newer and remains.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

#define FIELD TOMBSTONE_FIELD
#define LOOK_EVERY_US (60 * TL_SECOND)

enum { SOME = 1000 };

bool tombstone_is(yyjson_val *hit)
{
    yyjson_val *source = yyjson_obj_get(hit, "_source");
    return yyjson_obj_size(source) == 1 && yyjson_obj_get(source, FIELD) != NULL;
}

void tombstone_write(tl_ts version, struct buf *to)
{
    buf_printf(to, "{\"" FIELD "\":%" PRIu64 "}", version);
}

void tombstone_map(yyjson_mut_doc *doc, yyjson_mut_val *mapping)
{
    yyjson_mut_val *fields = yyjson_mut_obj_get(mapping, "properties"), *field = yyjson_mut_obj(doc);
    if (fields == NULL) {
        fields = yyjson_mut_obj(doc);
        yyjson_mut_obj_add_val(doc, mapping, "properties", fields);
    }
    yyjson_mut_obj_add_str(doc, field, "type", "long");
    yyjson_mut_obj_remove_key(fields, FIELD);
    yyjson_mut_obj_add_val(doc, fields, FIELD, field);
}

/* {"bool": {"must": [what an alias has], "must_not": [tombstones]}} */
void tombstone_filter(yyjson_mut_doc *doc, yyjson_mut_val *alias)
{
    yyjson_mut_val *must = yyjson_mut_arr(doc), *must_not = yyjson_mut_arr(doc), *both = yyjson_mut_obj(doc),
                   *filter = yyjson_mut_obj(doc);
    yyjson_mut_val *exists = yyjson_mut_obj(doc), *field = yyjson_mut_obj(doc);
    yyjson_mut_val *before = yyjson_mut_obj_remove_key(alias, "filter");
    if (before != NULL)
        yyjson_mut_arr_append(must, before);
    yyjson_mut_obj_add_str(doc, field, "field", FIELD);
    yyjson_mut_obj_add_val(doc, exists, "exists", field);
    yyjson_mut_arr_append(must_not, exists);
    if (before != NULL)
        yyjson_mut_obj_add_val(doc, both, "must", must);
    yyjson_mut_obj_add_val(doc, both, "must_not", must_not);
    yyjson_mut_obj_add_val(doc, filter, "bool", both);
    yyjson_mut_obj_add_val(doc, alias, "filter", filter);
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

int tombstone_check_name(const struct replica *replica, const char *name)
{
    tl_cleanup(buf_deinit) struct buf longer = BUF_INIT(BUF_UNLIMITED);
    size_t len = strlen(name), end = strlen(TOMBSTONE_COPY);
    bool taken = false;
    if (!replica->options->tombstones)
        return 0;
    buf_printf(&longer, "%s" TOMBSTONE_COPY, name);
    taken = map_get(&replica->indices, buf_as_slice(&longer)) != NULL;
    if (len > end && strcmp(name + len - end, TOMBSTONE_COPY) == 0)
        taken = taken || map_get(&replica->indices, slice_make(name, len - end)) != NULL;
    if (!taken)
        return 0;
    replica_print("with --tombstones the copy of an index is named INDEX" TOMBSTONE_COPY
                  ", and there is one of that name besides %s: leave one out by --index",
                  escape_terminal(name));
    return REPLICA_FAILED;
}

/* --- Their end ---------------------------------------------------------------------------------------------------- */

static void add_delete(const struct target *target, yyjson_val *hit, struct buf *to)
{
    const char *type = yyjson_get_str(yyjson_obj_get(hit, "_type"));
    struct slice routing = replica_text(hit, "_routing");
    uint64_t version = yyjson_get_uint(yyjson_obj_get(hit, "_version"));
    buf_lit(to, "{\"delete\":{\"_id\":");
    buf_json_string(to, replica_text(hit, "_id"));
    if (type != NULL && target->major < 7) {
        buf_lit(to, ",\"_type\":");
        buf_json_string(to, slice_from(type));
    }
    if (routing.data != NULL) {
        buf_lit(to, ",\"routing\":");
        buf_json_string(to, routing);
    }
    buf_printf(to, ",\"version\":%" PRIu64 ",\"version_type\":\"external\"}}\n", version + 1);
}

/* Returns: whether there may be more. */
static bool end_some(struct replica *replica, const char *name, tl_ts before)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED), body = BUF_INIT(BUF_UNLIMITED);
    struct client *client = &replica->target.client;
    size_t i, count;
    yyjson_val *hit;
    buf_byte(&path, '/');
    client_escape(&path, slice_from(name));
    size_t base = path.len;
    buf_lit(&path, "/_search?version=true");
    buf_byte(&path, '\0');
    buf_printf(&body, "{\"size\":%d,\"query\":{\"range\":{\"" FIELD "\":{\"lt\":%" PRIu64 "}}},\"sort\":[\"_doc\"]}",
               SOME, before);
    if (target_ask(&replica->target, "POST", path.data, buf_as_slice(&body)) != 200)
        return false;
    yyjson_val *hits = yyjson_obj_get(yyjson_obj_get(client_json(client), "hits"), "hits");
    buf_clear(&body);
    json_arr_foreach (hits, i, count, hit)
        if (tombstone_is(hit))
            add_delete(&replica->target, hit, &body);
    if (body.len == 0)
        return false;
    buf_truncate(&path, base);
    buf_lit(&path, "/_bulk?refresh=true");
    buf_byte(&path, '\0');
    return target_ask(&replica->target, "POST", path.data, buf_as_slice(&body)) == 200 && count == SOME;
}

void tombstones_end(struct replica *replica)
{
    const struct replica_options *o = replica->options;
    uint64_t now = clock_boot_us();
    size_t at = 0;
    struct slice index;
    void *value;
    uint64_t every = o->tombstone_us / 4 < LOOK_EVERY_US ? o->tombstone_us / 4 : LOOK_EVERY_US;
    if (!o->tombstones || now - replica->tombstones_us < every || clock_wall_us() < o->tombstone_us)
        return;
    while (map_next(&replica->indices, &at, &index, &value)) {
        tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
        buf_slice(&name, index);
        buf_byte(&name, '\0');
        for (size_t i = 0; i < copy_count_names(replica, name.data); i++) {
            tl_cleanup(buf_deinit) struct buf there = BUF_INIT(BUF_UNLIMITED);
            copy_write_name(replica, name.data, i, &there);
            while (!replica_stopping() && end_some(replica, there.data, clock_wall_us() - o->tombstone_us))
                ;
        }
    }
    replica->tombstones_us = clock_boot_us();
}
