/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole indices of a copy. The first copy reads all of them, and what defines them, as of one
 * timestamp, from which the feed is followed. An index that is copied later is read as of a
 * scroll's timestamp, after the place from which the feed is followed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

#define ALIASES_EVERY_US (30 * TL_SECOND)

/* --- Known indices ------------------------------------------------------------------------------------------------ */

static void free_index(struct replica_index *index)
{
    for (size_t i = 0; index != NULL && index->types[i] != NULL; i++)
        mem_free(index->types[i]);
    if (index != NULL)
        mem_free(index->types);
    mem_free(index);
}

void copy_forget(struct replica *replica)
{
    size_t at = 0;
    struct slice name;
    void *index;
    while (map_next(&replica->indices, &at, &name, &index))
        free_index(index);
    map_deinit(&replica->indices);
}

static void note_index(struct replica *replica, const char *name, yyjson_val *definition)
{
    yyjson_val *types = yyjson_obj_get(definition, "mappings");
    struct replica_index *index = mem_zalloc(sizeof *index);
    size_t i, count;
    yyjson_val *key, *value;
    index->several = yyjson_obj_size(types) > 1;
    index->types = mem_zalloc((yyjson_obj_size(types) + 1) * sizeof *index->types);
    json_obj_foreach (types, i, count, key, value)
        index->types[i] = mem_strdup(yyjson_get_str(key), yyjson_get_len(key));
    free_index(map_put(&replica->indices, slice_from(name), index));
}

/* The names in the target of what an index is there. */
void copy_write_name(const struct replica *replica, const char *name, size_t at, struct buf *to)
{
    const struct replica_index *index = map_get(&replica->indices, slice_from(name));
    target_name(&replica->target, name, index == NULL || index->types[at] == NULL ? "_doc" : index->types[at],
                index != NULL && index->several, to);
    buf_byte(to, '\0');
}

size_t copy_count_names(const struct replica *replica, const char *name)
{
    const struct replica_index *index = map_get(&replica->indices, slice_from(name));
    size_t count = 0;
    while (index != NULL && index->several && replica->target.major >= 6 && index->types[count] != NULL)
        count++;
    return count == 0 ? 1 : count;
}

static int drop_index(struct replica *replica, const char *name)
{
    int r = lanes_drain(replica->lanes);
    size_t count = copy_count_names(replica, name);
    for (size_t i = 0; r == 0 && i < count; i++) {
        tl_cleanup(buf_deinit) struct buf there = BUF_INIT(BUF_UNLIMITED);
        copy_write_name(replica, name, i, &there);
        identities_forget(replica->identities, there.data);
        r = target_drop_index(&replica->target, there.data);
    }
    free_index(map_remove(&replica->indices, slice_from(name)));
    untaken_forget(&replica->target.untaken, name);
    return r;
}

/* --- Its documents ------------------------------------------------------------------------------------------------ */

/* Appends the next request of a scroll. */
static void next_page(yyjson_val *reply, struct buf *to)
{
    const char *id = yyjson_get_str(yyjson_obj_get(reply, "_scroll_id"));
    buf_clear(to);
    buf_lit(to, "{\"scroll\":\"10m\",\"scroll_id\":");
    buf_json_string(to, slice_from(id == NULL ? "" : id));
    buf_byte(to, '}');
}

static yyjson_val *hits_of(const struct client *client)
{
    return yyjson_obj_get(yyjson_obj_get(client_json(client), "hits"), "hits");
}

/* Of which documents a page is. */
static uint64_t page_hash(yyjson_val *hits)
{
    uint64_t hash = 0;
    size_t i, count;
    yyjson_val *hit;
    json_arr_foreach (hits, i, count, hit) {
        struct slice routing = replica_text(hit, "_routing");
        hash = 31 * hash + siphash_keyed(replica_text(hit, "_id"));
        if (routing.data != NULL)
            hash += 7 * siphash_keyed(routing);
    }
    return hash;
}

/* A number, also where they stay as they are written. */
static bool is_above_zero(yyjson_val *number)
{
    return yyjson_is_raw(number) ? strtoull(yyjson_get_raw(number), NULL, 10) > 0 : yyjson_get_uint(number) > 0;
}

/* Whether the last answer is a page, which has an end; and whether it is of all shards. */
static bool is_page(const struct client *client, int size, bool *ret_partial)
{
    yyjson_val *reply = client_json(client), *hits = hits_of(client), *hit;
    size_t i, count;
    *ret_partial = is_above_zero(yyjson_obj_get(yyjson_obj_get(reply, "_shards"), "failed")) ||
                   yyjson_is_true(yyjson_obj_get(reply, "timed_out"));
    if (!yyjson_is_arr(hits) || yyjson_arr_size(hits) > (size_t)size ||
        !yyjson_is_str(yyjson_obj_get(reply, "_scroll_id")))
        return false;
    json_arr_foreach (hits, i, count, hit) {
        yyjson_val *routing = yyjson_obj_get(hit, "_routing");
        if (!yyjson_is_str(yyjson_obj_get(hit, "_id")) || (routing != NULL && !yyjson_is_str(routing)))
            return false;
    }
    return true;
}

enum walked { WALKED, CUT_OFF, TOO_LARGE };

/* Appends the first request of a walk: path and body. */
static void write_walk(const struct walk *walk, int size, struct buf *path, struct buf *body)
{
    static const char *const sources[] = {[WALK_IDS] = ",\"_source\":false",
                                          [WALK_TOMBSTONES] = ",\"_source\":[\"" TOMBSTONE_FIELD "\"]",
                                          [WALK_SOURCES] = ""};
    replica_index_path(
        walk->index,
        walk->client->context != NULL ? "/_search?scroll=10m&commit_timestamp=true" : "/_search?scroll=10m", path);
    buf_printf(body, "{\"size\":%d,\"sort\":[\"_doc\"]%s%s}", size, sources[walk->what],
               walk->versions ? ",\"version\":true" : "");
}

/* `size`: of its pages. Returns: as copy_walk(). */
static int walk_once(struct walk *walk, int size, enum walked *ret_how)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED), body = BUF_INIT(BUF_UNLIMITED);
    uint64_t last = 0;
    bool partial, begun = false;
    tl_ts version = 0;
    write_walk(walk, size, &path, &body);
    *ret_how = WALKED;
    for (;;) {
        bool present = walk->client->context != NULL && !begun; /* further pages are of the first one's state */
        long status = present ? source_ask_present(walk->client, "POST", path.data, buf_as_slice(&body))
                              : replica_ask(walk->client, walk->whom, "POST", begun ? "/_search/scroll" : path.data,
                                            buf_as_slice(&body));
        if (walk->replica != NULL && source_lost_snapshot(walk->replica, walk->client))
            return REPLICA_ANEW;
        if (status == 404) { /* no such index, or the scroll has expired */
            *ret_how = begun ? CUT_OFF : WALKED;
            return 0;
        }
        if (status == 0 && client_is_too_large(walk->client) && size > 1) {
            *ret_how = TOO_LARGE;
            return 0;
        }
        if (status >= 400 && !begun && size > WALK_HITS) { /* above the index's max_result_window */
            *ret_how = TOO_LARGE;
            return 0;
        }
        if (status != 200)
            return source_complain(walk->client, "cannot read", walk->index, status);
        if (!is_page(walk->client, size, &partial))
            return replica_disbelieve(walk->whom, "documents", walk->index);
        if (partial) {
            *ret_how = CUT_OFF;
            return 0;
        }
        if (!begun)
            version = walk->client->timestamp;
        begun = true;
        yyjson_val *hits = hits_of(walk->client);
        if (yyjson_arr_size(hits) == 0)
            return 0;
        if (last == page_hash(hits)) /* it would have no end */
            return replica_disbelieve(walk->whom, "the next documents", walk->index);
        last = page_hash(hits);
        next_page(client_json(walk->client), &body);
        int r = replica_ends(walk->client) ? REPLICA_STOPPED : walk->visit(walk->context, hits, version);
        if (r != 0)
            return r;
    }
}

int copy_walk(struct walk *walk)
{
    size_t max = walk->client->body.max;
    int size = walk->page == 0 ? WALK_HITS : (int)walk->page, r;
    enum walked how;
    for (unsigned tries = 0;; tries++) {
        if (walk->begin != NULL)
            walk->begin(walk->context);
        walk->client->body.max = size > 1 ? REPLICA_ANSWER_BYTES : REPLICA_DOCUMENT_BYTES;
        r = walk_once(walk, size, &how);
        walk->client->body.max = max;
        if (r != 0 || how == WALKED)
            return r;
        if (how == TOO_LARGE) {
            size = size > WALK_HITS ? WALK_HITS : size > 16 ? size / 16 : 1;
            continue;
        }
        if (tries == 0)
            replica_print("reading %s was cut off by the %s; it begins again", escape_terminal(walk->index),
                          walk->whom);
        if (replica_ends(walk->client))
            return REPLICA_STOPPED;
        replica_pause(tries + 1);
    }
}

static void copy_from_the_beginning(void *context)
{
    struct replica *replica = context;
    replica->progress.done = replica->index_begun;
}

static int copy_hits(void *context, yyjson_val *hits, tl_ts version)
{
    struct replica *replica = context;
    size_t i, count;
    yyjson_val *hit;
    json_arr_foreach (hits, i, count, hit) {
        if (!source_shows_commit(hit))
            return replica_disbelieve("source", "documents", "");
        source_put(replica, hit, true, NULL, version);
    }
    if (replica->superseding)
        replica->index_sent_as = version;
    progress_set(&replica->progress, replica->progress.done + count);
    report_status(replica, "copying", replica->before.ts);
    return lanes_state(replica->lanes);
}

/* `supersedes`: other programs may have written to the target's index. */
static int copy_index(struct replica *replica, const char *name, bool supersedes)
{
    struct walk walk = {.client = &replica->source,
                        .whom = "source",
                        .index = name,
                        .what = WALK_SOURCES,
                        .begin = copy_from_the_beginning,
                        .visit = copy_hits,
                        .replica = replica,
                        .context = replica};
    suspects_set_place(replica->suspects, 0); /* the feed does not name these documents */
    replica->index_begun = replica->progress.done;
    replica->index_sent_as = 0;
    replica->superseding = supersedes;
    int r = copy_walk(&walk);
    replica->superseding = false;
    return r == 0 ? lanes_drain(replica->lanes) : r;
}

/* --- Documents only in the target --------------------------------------------------------------------------------- */

enum { NEWER_PRINTED = 100 };

struct hit_sweep {
    struct replica *replica;
    const char *index;
    const char *type; /* of the source */
    uint64_t newer;
};

/*
 * Counts documents with versions above the source's timestamp, and reports the first ones. The
 * timestamp is read after the versions: another copy of the same source may have written them.
 */
static int report_newer(struct hit_sweep *sweep, yyjson_val *hits)
{
    struct replica *replica = sweep->replica;
    tl_ts present = source_hosts_newest(replica->hosts);
    size_t i, count;
    yyjson_val *hit;
    bool read = false;
    json_arr_foreach (hits, i, count, hit) {
        tl_ts version = yyjson_get_uint(yyjson_obj_get(hit, "_version"));
        if (version > present && !read) {
            long status = source_ask_present(&replica->feed, "GET", "/_timestamp", SLICE_NONE);
            if (status != 200)
                return source_complain(&replica->feed, "cannot read the source's timestamp", "", status);
            present = replica->feed.timestamp;
            read = true;
        }
        if (version <= present)
            continue;
        if (sweep->newer++ < NEWER_PRINTED)
            replica_print("newer  %s/%s", escape_terminal(sweep->index),
                          escape_terminal(yyjson_get_str(yyjson_obj_get(hit, "_id"))));
    }
    return 0;
}

static int sweep_hits(void *context, yyjson_val *hits, tl_ts version)
{
    struct hit_sweep *sweep = context;
    struct replica_key keys[WALK_HITS];
    size_t i, count, some = 0;
    yyjson_val *hit;
    (void)version;
    json_arr_foreach (hits, i, count, hit) {
        if (tombstone_is(hit))
            continue;
        const char *there = yyjson_get_str(yyjson_obj_get(hit, "_type"));
        bool typed = sweep->replica->target.major == 5 && there != NULL && strcmp(there, "doc") != 0;
        /*
         * Another program's version under another routing may be above the commit of the document,
         * which was sent with a version above that.
         */
        keys[some++] = (struct replica_key){.index = slice_from(sweep->index),
                                            .type = slice_from(typed ? there : sweep->type),
                                            .id = replica_text(hit, "_id"),
                                            .routing = replica_text(hit, "_routing"),
                                            .placed = true,
                                            .vacates = true,
                                            .sent_as = sweep->replica->index_sent_as};
    }
    int r = report_newer(sweep, hits);
    return r == 0 ? source_send(sweep->replica, keys, some, NULL) : r;
}

static void begin_sweep(void *context)
{
    struct hit_sweep *sweep = context;
    sweep->newer = 0;
}

/* Documents that the source has no more, or under another routing, are gone there, too. */
static int sweep_portion(struct replica *replica, const char *index, size_t at)
{
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED), path = BUF_INIT(BUF_UNLIMITED);
    const struct replica_index *known = map_get(&replica->indices, slice_from(index));
    struct hit_sweep sweep = {replica, index, known == NULL || known->types[at] == NULL ? "_doc" : known->types[at], 0};
    struct target *target = &replica->target;
    copy_write_name(replica, index, at, &name);
    replica_index_path(name.data, "/_refresh", &path);
    (void)!target_ask(target, "POST", path.data, SLICE_LIT(""));
    int r = copy_walk(&(struct walk){.client = &target->client,
                                     .whom = "target",
                                     .index = name.data,
                                     .what = replica->options->tombstones ? WALK_TOMBSTONES : WALK_IDS,
                                     .versions = true,
                                     .begin = begin_sweep,
                                     .visit = sweep_hits,
                                     .context = &sweep});
    replica->newer += sweep.newer;
    return r;
}

/* Does that in each index of the target that an index of the source is copied to. */
static int sweep_each(struct replica *replica, const char *index)
{
    int r = 0;
    size_t count = copy_count_names(replica, index);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = lanes_drain(replica->lanes);
        r = r == 0 ? sweep_portion(replica, index, i) : r;
    }
    return r;
}

/* --- One index ---------------------------------------------------------------------------------------------------- */

/* Reads the uuids of the indices that an index of the source is copied to. */
static int learn_identities(struct replica *replica, const char *name)
{
    int r = 0;
    size_t count = copy_count_names(replica, name);
    for (size_t i = 0; r == 0 && i < count; i++) {
        tl_cleanup(buf_deinit) struct buf there = BUF_INIT(BUF_UNLIMITED);
        copy_write_name(replica, name, i, &there);
        r = identities_learn(replica->identities, &replica->target.client, there.data);
    }
    return r;
}

/* Whether the target may have documents of an index of the source, by whichever program. */
static bool has_documents(struct replica *replica, const char *name)
{
    struct target *target = &replica->target;
    for (size_t i = 0; i < copy_count_names(replica, name); i++) {
        tl_cleanup(buf_deinit) struct buf there = BUF_INIT(BUF_UNLIMITED), path = BUF_INIT(BUF_UNLIMITED);
        copy_write_name(replica, name, i, &there);
        replica_index_path(there.data, "/_refresh", &path);
        (void)!target_ask(target, "POST", path.data, SLICE_LIT(""));
        buf_clear(&path);
        replica_index_path(there.data, "/_count", &path);
        if (target_ask(target, "GET", path.data, SLICE_NONE) != 200 ||
            replica_number(client_json(&target->client), "count") > 0)
            return true;
    }
    return false;
}

/*
 * Copies an index into one of the target that another program, or this one in a previous life, has
 * made. If it has no documents, the target may still know versions of deleted ones above the
 * commits': then it keeps these, and all is sent again.
 */
static int copy_into(struct replica *replica, const char *name)
{
    bool supersedes = has_documents(replica, name);
    uint64_t kept = lanes_counts(replica->lanes).kept;
    int r = copy_index(replica, name, supersedes);
    if (r == 0 && !supersedes && lanes_counts(replica->lanes).kept > kept) {
        copy_from_the_beginning(replica);
        r = copy_index(replica, name, true);
    }
    return r;
}

/*
 * Drops indices that this run knows and whose names are aliases in a definition of the source: it
 * has them no more, and the target would refuse the aliases. The feed, or a list of the source's
 * indices, may name them later. Copies that only an earlier run knew are dropped when the target
 * refuses an alias.
 */
static int drop_known_under_aliases(struct replica *replica, yyjson_val *definition)
{
    int r = 0;
    size_t i, count;
    yyjson_val *key, *value;
    json_obj_foreach (yyjson_obj_get(definition, "aliases"), i, count, key, value)
        if (r == 0 && map_get(&replica->indices, slice_from(yyjson_get_str(key))) != NULL)
            r = drop_index(replica, yyjson_get_str(key));
    return r;
}

static int see_index(struct replica *replica, struct slice index, enum target_had *ret_had)
{
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED), path = BUF_INIT(BUF_UNLIMITED);
    *ret_had = TARGET_WHOLE;
    buf_slice(&name, index);
    buf_byte(&name, '\0');
    replica_index_path(name.data, "?include_type_name=true", &path);
    struct client definitions; /* numbers as JSON's */
    source_client_init(&definitions, replica->hosts);
    client_set_transaction(&definitions, replica->snapshot);
    long status = source_ask_present(&definitions, "GET", path.data, SLICE_NONE);
    yyjson_val *definition = yyjson_obj_get(client_json(&definitions), name.data);
    const struct replica_index *known = map_get(&replica->indices, index);
    int r;
    if (source_lost_snapshot(replica, &definitions)) {
        r = REPLICA_ANEW;
    } else if (status == 404 || (status == 200 && definition == NULL)) { /* or an alias took the name */
        r = drop_index(replica, name.data);
    } else if (status != 200) {
        r = source_complain(&definitions, "cannot read the index", name.data, status);
    } else {
        bool split = known != NULL && !known->several && replica->target.major >= 6 &&
                     yyjson_obj_size(yyjson_obj_get(definition, "mappings")) > 1;
        r = lanes_drain(replica->lanes); /* requests under way are for the index as it was */
        if (r == 0 && split)
            r = drop_index(replica, name.data);
        note_index(replica, name.data, definition);
        r = r == 0 ? drop_known_under_aliases(replica, definition) : r;
        r = r == 0 ? tombstone_check_name(replica, name.data) : r;
        r = r == 0 ? target_put_index(&replica->target, name.data, definition, ret_had) : r;
        r = r == 0 ? learn_identities(replica, name.data) : r;
    }
    if (r == 0 && *ret_had != TARGET_WHOLE)
        r = *ret_had == TARGET_PART ? copy_into(replica, name.data) : copy_index(replica, name.data, false);
    if (r == 0 && *ret_had == TARGET_PART)
        r = sweep_each(replica, name.data);
    if (r == 0 && *ret_had != TARGET_WHOLE)
        r = target_end_index(&replica->target, name.data, definition);
    client_deinit(&definitions);
    return r;
}

int copy_see_index(struct replica *replica, struct slice index)
{
    enum target_had had;
    return see_index(replica, index, &had);
}

/* Tries the untaken aliases of an index that are due again. */
static int see_aliases(struct replica *replica, struct slice index)
{
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED), path = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&name, index);
    buf_byte(&name, '\0');
    replica_index_path(name.data, "?include_type_name=true", &path);
    struct client definitions;
    source_client_init(&definitions, replica->hosts);
    long status = source_ask_present(&definitions, "GET", path.data, SLICE_NONE);
    yyjson_val *definition = yyjson_obj_get(client_json(&definitions), name.data);
    int r = 0;
    if (status == 200 && definition != NULL)
        r = target_put_aliases(&replica->target, name.data, definition);
    else if (status == 200 || status == 404) /* it is gone */
        untaken_forget(&replica->target.untaken, name.data);
    else
        r = source_complain(&definitions, "cannot read the index", name.data, status);
    client_deinit(&definitions);
    return r;
}

int copy_retry_aliases(struct replica *replica, bool now)
{
    struct untaken *untaken = &replica->target.untaken;
    uint64_t time = clock_boot_us();
    now = now || untaken->unsettled || time - replica->aliases_tried_us >= ALIASES_EVERY_US;
    if (untaken->indices.count == 0 || !now)
        return 0;
    replica->aliases_tried_us = time;
    struct map due = MAP_INIT;
    size_t at = 0;
    struct slice name;
    void *value;
    target_begin_round(&replica->target);
    int r = target_find_due_aliases(&replica->target, &due);
    while (r == 0 && map_next(&due, &at, &name, &value))
        r = see_aliases(replica, name);
    map_deinit(&due);
    return r;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* *ret_names: the names of the source's indices, NULL after the last; the caller's. */
static int list_indices(struct replica *replica, char ***ret_names)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    replica_index_path(replica->options->index == NULL ? "*" : replica->options->index,
                       "/_settings?ignore_unavailable=true&allow_no_indices=true", &path);
    long status = source_ask_present(&replica->source, "GET", path.data, SLICE_NONE);
    *ret_names = NULL;
    if (source_lost_snapshot(replica, &replica->source))
        return REPLICA_ANEW;
    if (status != 200)
        return source_complain(&replica->source, "cannot list the indices of the source", "", status);
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_val *all = client_json(&replica->source);
    *ret_names = mem_zalloc((yyjson_obj_size(all) + 1) * sizeof **ret_names);
    json_obj_foreach (all, i, count, key, value)
        (*ret_names)[i] = mem_strdup(yyjson_get_str(key), yyjson_get_len(key));
    return 0;
}

static uint64_t count_documents(struct replica *replica)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    replica_index_path(replica->options->index == NULL ? "*" : replica->options->index,
                       "/_count?ignore_unavailable=true&allow_no_indices=true", &path);
    long status = source_ask(&replica->source, "GET", path.data, SLICE_NONE);
    const char *count = yyjson_get_raw(yyjson_obj_get(client_json(&replica->source), "count"));
    return status == 200 && count != NULL ? strtoull(count, NULL, 10) : 0;
}

int copy_look(struct replica *replica, char ***ret_names)
{
    struct client definitions;
    int r = list_indices(replica, ret_names);
    source_client_init(&definitions, replica->hosts);
    for (char **name = *ret_names; r == 0 && name != NULL && *name != NULL; name++) {
        tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
        replica_index_path(*name, "?include_type_name=true", &path);
        long status = source_ask_present(&definitions, "GET", path.data, SLICE_NONE);
        if (status == 200)
            note_index(replica, *name, yyjson_obj_get(client_json(&definitions), *name));
        else if (status != 404)
            r = source_complain(&definitions, "cannot read the index", *name, status);
    }
    client_deinit(&definitions);
    return r;
}

/* An index whole: see_index() copies one that the target has not had, or not in whole. */
static int copy_whole(struct replica *replica, const char *name, bool first)
{
    enum target_had had;
    int r = see_index(replica, slice_from(name), &had);
    if (r != 0 || had != TARGET_WHOLE || !first || map_get(&replica->indices, slice_from(name)) == NULL)
        return r;
    r = copy_index(replica, name, true);
    return r == 0 ? sweep_each(replica, name) : r;
}

/* Checks that the copy may write to the target's indices of an index of the source. */
static int check_index(struct replica *replica, const char *name)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct client definitions;
    replica_index_path(name, "?include_type_name=true", &path);
    source_client_init(&definitions, replica->hosts);
    client_set_transaction(&definitions, replica->snapshot);
    long status = source_ask_present(&definitions, "GET", path.data, SLICE_NONE);
    yyjson_val *definition = yyjson_obj_get(client_json(&definitions), name);
    int r = 0;
    if (source_lost_snapshot(replica, &definitions))
        r = REPLICA_ANEW;
    else if (status != 200 && status != 404)
        r = source_complain(&definitions, "cannot read the index", name, status);
    if (r == 0 && definition != NULL) { /* else it was deleted meanwhile */
        note_index(replica, name, definition);
        r = tombstone_check_name(replica, name);
    }
    if (r == 0 && definition != NULL)
        r = target_check_index(&replica->target, name, definition);
    client_deinit(&definitions);
    return r;
}

/*
 * Checks that no two indices of the source need the same one in the target: an index with types may
 * need that of another one's name.
 */
static int check_distinct(struct replica *replica, char **names)
{
    struct map taken = MAP_INIT; /* by the name in the target, the source's index */
    int r = 0;
    for (; r == 0 && *names != NULL; names++) {
        for (size_t i = 0; r == 0 && i < copy_count_names(replica, *names); i++) {
            tl_cleanup(buf_deinit) struct buf there = BUF_INIT(BUF_UNLIMITED);
            copy_write_name(replica, *names, i, &there);
            const char *other = map_put(&taken, slice_from(there.data), *names);
            if (other == NULL)
                continue;
            replica_print("the source's indices %s and %s need the same index %s in the target: leave one of the two "
                          "out by --index, and copy it under another --name and --prefix",
                          escape_terminal(other), escape_terminal(*names), escape_terminal(there.data));
            r = REPLICA_FAILED;
        }
    }
    map_deinit(&taken);
    return r;
}

static int check_all(struct replica *replica, char **names)
{
    int r = 0;
    for (size_t i = 0; r == 0 && names[i] != NULL; i++)
        r = replica_stopping() ? REPLICA_STOPPED : check_index(replica, names[i]);
    return r == 0 ? check_distinct(replica, names) : r;
}

static int copy_each(struct replica *replica, bool first)
{
    char **names;
    int r = list_indices(replica, &names);
    if (r == 0)
        r = check_all(replica, names);
    if (r == 0 && replica->before.ts == 0) /* such a place says that documents may have been sent */
        r = target_claim_place(&replica->target, replica->source_uuid);
    target_begin_round(&replica->target);
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        if (r == 0)
            r = replica_stopping() ? REPLICA_STOPPED : copy_whole(replica, names[i], first);
        mem_free(names[i]);
    }
    mem_free(names);
    r = r == 0 ? copy_retry_aliases(replica, false) : r;
    return r == 0 ? lanes_drain(replica->lanes) : r;
}

int copy_missing(struct replica *replica)
{
    progress_init(&replica->progress, "documents", 0, replica->options->quiet);
    return copy_each(replica, false);
}

/* All of the source's indices count: --index may name fewer than in an earlier run. */
int copy_drop_gone(struct replica *replica)
{
    struct map uuids = MAP_INIT;
    size_t i, count;
    yyjson_val *key, *value;
    long status = source_ask_present(&replica->source, "GET", "/*/_settings?expand_wildcards=all&allow_no_indices=true",
                                     SLICE_NONE);
    if (status != 200)
        return source_complain(&replica->source, "cannot list the indices of the source", "", status);
    bool valid = yyjson_is_obj(client_json(&replica->source));
    json_obj_foreach (client_json(&replica->source), i, count, key, value) {
        yyjson_val *settings = yyjson_obj_get(yyjson_obj_get(value, "settings"), "index");
        const char *uuid = yyjson_get_str(yyjson_obj_get(settings, "uuid"));
        valid = valid && uuid != NULL;
        if (uuid != NULL)
            (void)map_put(&uuids, slice_from(uuid), replica);
    }
    int r = valid ? target_drop_gone(&replica->target, &uuids) : replica_disbelieve("source", "settings", "");
    map_deinit(&uuids);
    return r;
}

/* --- The first copy ----------------------------------------------------------------------------------------------- */

/*
 * Begins the transaction. Its session's end ends it, so it may be idle for as long as a transaction
 * may.
 */
static int open_snapshot(struct replica *replica, tl_ts *ret_ts)
{
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    struct client *client = &replica->feed;
    long status = source_ask_present(client, "GET", "/_changes", SLICE_NONE);
    if (status != 200)
        return source_complain(client, "the source has no feed of changes", "", status);
    buf_printf(&body, "{\"mode\":\"query\",\"timeout\":\"24h\",\"session\":\"%s\"}", guard_session(replica->guard));
    status = source_ask(client, "POST", "/_transaction", buf_as_slice(&body));
    const char *id = yyjson_get_str(yyjson_obj_get(client_json(client), "transaction"));
    yyjson_val *timestamp = yyjson_obj_get(client_json(client), "timestamp");
    if (status != 201)
        return source_complain(client, "the source begins no transaction", "", status);
    if (id == NULL || !yyjson_is_uint(timestamp))
        return replica_disbelieve("source", "a transaction", "");
    replica->snapshot = mem_strdup(id, strlen(id));
    client_set_transaction(&replica->source, id);
    *ret_ts = yyjson_get_uint(timestamp);
    return 0;
}

/* Lets the source forget the history. One that does not answer does so when the session ends. */
static void end_snapshot(struct replica *replica)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    if (replica->snapshot == NULL)
        return;
    buf_printf(&path, "/_transaction/%s/_rollback", replica->snapshot);
    buf_byte(&path, '\0');
    (void)!client_request(&replica->feed, "POST", path.data, SLICE_LIT(""), TL_SECOND);
    client_set_transaction(&replica->source, NULL);
    mem_free(replica->snapshot);
    replica->snapshot = NULL;
}

/* Begins a transaction whose timestamp is not before the newest known one; invariant 12. */
static int begin_snapshot(struct replica *replica, tl_ts *ret_ts)
{
    for (unsigned tries = 1;; tries++) {
        int r = open_snapshot(replica, ret_ts);
        if (r != 0 || *ret_ts >= replica->feed.after)
            return r;
        end_snapshot(replica);
        if (!source_leave_lagging(&replica->feed, tries))
            return REPLICA_STOPPED;
    }
}

int copy_first(struct replica *replica, tl_ts *ret_since)
{
    int r;
    /*
     * An earlier first copy may have requests under way, with states from before the timestamp of
     * this one: the feed after that does not name documents deleted in between.
     */
    if (!replica->before.clean || guard_overlap_until_us(replica->guard) > 0)
        suspects_add_whole(replica->suspects, replica->options->suspect_us);
    do {
        replica->newer = 0;
        r = begin_snapshot(replica, ret_since);
        progress_init(&replica->progress, "documents", r == 0 ? count_documents(replica) : 0, replica->options->quiet);
        r = r == 0 ? copy_each(replica, true) : r;
        end_snapshot(replica);
        if (r == REPLICA_ANEW && !guard_await(replica->guard))
            r = REPLICA_LOST;
        if (r == REPLICA_ANEW)
            replica_print("the source has ended the transaction that the first copy reads in; "
                          "the copy begins anew");
    } while (r == REPLICA_ANEW && !replica_stopping());
    if (r == 0)
        progress_end(&replica->progress);
    return r == REPLICA_ANEW ? REPLICA_STOPPED : r;
}
