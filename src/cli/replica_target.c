/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a copy: its indices and the place; see replica.h, invariant 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

enum { PAUSE_FIRST_US = 50 * 1000, PAUSE_DOUBLINGS = 6 };

#define ANSWER_US (120 * TL_SECOND)
#define GC_DELETES "1h" /* see replica.h, invariant 7 */
#define GC_DELETES_US (3600 * TL_SECOND)

/* --- Asking ------------------------------------------------------------------------------------------------------- */

bool replica_is_passing(long status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504 || status == 507;
}

bool replica_is_blocked(yyjson_val *error)
{
    const char *type = yyjson_get_str(yyjson_obj_get(error, "type"));
    return type != NULL &&
           (strcmp(type, "cluster_block_exception") == 0 || strcmp(type, "unavailable_shards_exception") == 0 ||
            strcmp(type, "es_rejected_execution_exception") == 0 || strcmp(type, "disk_full_exception") == 0);
}

/*
 * A server says in JSON that a thing does not exist. Another 404 is the page of a proxy that finds
 * no server.
 */
bool replica_is_page(const struct client *client, long status)
{
    return status == 404 && client_json(client) == NULL;
}

bool replica_is_forbidden(long status)
{
    return status == 401 || status == 403;
}

void replica_pause(unsigned tries)
{
    unsigned doublings = tries - 1 < PAUSE_DOUBLINGS ? tries - 1 : PAUSE_DOUBLINGS;
    usleep(PAUSE_FIRST_US << doublings);
}

long replica_ask_while(struct client *client, const char *whom, const char *method, const char *path, struct slice body,
                       bool (*goes_on)(void *context), void *context)
{
    for (unsigned tries = 1;; tries++) {
        long status = client->context != NULL ? source_request(client, method, path, body, ANSWER_US)
                                              : client_request(client, method, path, body, ANSWER_US);
        bool blocked = replica_is_blocked(yyjson_obj_get(client_json(client), "error"));
        bool passing = replica_is_passing(status) || replica_is_page(client, status) || blocked;
        if (!passing || client_is_too_large(client))
            return status;
        if (tries == 1)
            replica_print("%s; waiting for the %s", client_error(client, status), whom);
        if (!goes_on(context))
            return 0;
        replica_pause(tries);
    }
}

static bool client_goes_on(void *context)
{
    return !replica_ends(context);
}

long replica_ask(struct client *client, const char *whom, const char *method, const char *path, struct slice body)
{
    return replica_ask_while(client, whom, method, path, body, client_goes_on, client);
}

int replica_disbelieve(const char *whom, const char *what, const char *name)
{
    replica_print("the response of the %s lacks %s%s%s; does another program or a proxy answer there?", whom, what,
                  *name == '\0' ? "" : " of ", escape_terminal(name));
    return REPLICA_FAILED;
}

long target_ask(struct target *target, const char *method, const char *path, struct slice body)
{
    return replica_ask(&target->client, "target", method, path, body);
}

/* Of an answer whose only member is named by an index: its value. */
static yyjson_val *only_of(const struct client *client)
{
    yyjson_val *root = client_json(client);
    return json_value_of(json_first_of(root, yyjson_obj_size(root)));
}

static int complain_of_target(struct target *target, const char *what, const char *name, long status)
{
    if (status == 0 && !client_is_too_large(&target->client))
        return REPLICA_STOPPED;
    replica_print("%s%s%s: %s%s", what, *name == '\0' ? "" : " ", escape_terminal(name),
                  client_error(&target->client, status), replica_is_forbidden(status) ? FORBIDDEN_ADVICE : "");
    return REPLICA_FAILED;
}

int target_open(struct target *target, const struct replica_options *options)
{
    *target = (struct target){.options = options};
    client_init(&target->client, options->to);
    target->client.absent_advice = "is a server running? --to names another";
    target->client.gives_up = replica_gives_up;
    target->client.body.max = REPLICA_ANSWER_BYTES;
    /* Without an answer --once fails; a copy that follows waits. */
    long status = options->once ? client_request(&target->client, "GET", "/", SLICE_NONE, ANSWER_US)
                                : target_ask(target, "GET", "/", SLICE_NONE);
    if (status == 0 && options->once) {
        replica_print("the target: %s", client_error(&target->client, status));
        return CLIENT_EXIT_ABSENT;
    }
    yyjson_val *version = yyjson_obj_get(client_json(&target->client), "version");
    const char *number = yyjson_get_str(yyjson_obj_get(version, "number"));
    const char *distribution = yyjson_get_str(yyjson_obj_get(version, "distribution"));
    if (status != 200)
        return complain_of_target(target, "the target does not report its version", "", status);
    if (number == NULL) {
        replica_print("the target is no Elasticsearch: GET / has no version.number");
        return REPLICA_FAILED;
    }
    target->major =
        distribution != NULL && strcmp(distribution, "opensearch") == 0 ? 7 : (unsigned)strtoul(number, NULL, 10);
    if (target->major >= 5)
        return 0;
    replica_print("the target is version %s; 5.6 and later can be copied to", escape_terminal(number));
    return REPLICA_FAILED;
}

void target_close(struct target *target)
{
    client_deinit(&target->client);
    untaken_deinit(&target->untaken);
    target_begin_round(target);
}

/* 5.6 takes no name that begins with "_"; from 7 on there are no types. */
const char *target_type(const struct target *target, const char *type)
{
    if (target->major >= 7)
        return NULL;
    return target->major == 5 && strcmp(type, "_doc") == 0 ? "doc" : type;
}

void target_name(const struct target *target, const char *index, const char *type, bool several, struct buf *to)
{
    buf_printf(to, "%s%s", target->options->prefix, index);
    if (several && target->major >= 6)
        buf_printf(to, "-%s", type);
    if (target->options->tombstones)
        buf_lit(to, TOMBSTONE_COPY);
}

/* --- The place ---------------------------------------------------------------------------------------------------- */

static void place_path(const struct target *target, struct buf *to)
{
    const char *type = target_type(target, "_doc");
    buf_printf(to, "/.tidelock-replicate/%s/", type == NULL ? "_doc" : type);
    client_escape(to, slice_from(target->options->name));
}

static const char *index_option(const struct target *target)
{
    return target->options->index == NULL ? "*" : target->options->index;
}

/* Whether a place has another text than `text` under `key`. One of an earlier version may have none. */
static bool has_other(yyjson_val *place, const char *key, const char *text)
{
    yyjson_val *value = yyjson_obj_get(place, key);
    return yyjson_is_str(value) && !yyjson_equals_str(value, text);
}

static void read_suspects(yyjson_val *suspects, struct place *place)
{
    uint64_t until = yyjson_get_uint(yyjson_obj_get(suspects, "until")), now = clock_wall_us();
    if (suspects == NULL)
        return;
    place->suspects = yyjson_get_uint(yyjson_obj_get(suspects, "since"));
    place->whole = yyjson_get_bool(yyjson_obj_get(suspects, "all"));
    place->suspects_left_us = until > now ? until - now : 0;
}

void place_deinit(struct place *place)
{
    mem_free(place->other_index);
    *place = (struct place){0};
}

int target_read_place(struct target *target, const char *source, struct place *ret_place)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    place_path(target, &path);
    buf_byte(&path, '\0');
    place_deinit(ret_place);
    ret_place->clean = true;
    long status = target_ask(target, "GET", path.data, SLICE_NONE);
    if (status == 404)
        return 0;
    if (status != 200)
        return complain_of_target(target, "cannot read the place in the target", "", status);
    yyjson_val *place = yyjson_obj_get(client_json(&target->client), "_source");
    const char *of = yyjson_get_str(yyjson_obj_get(place, "source"));
    if (of == NULL || strcmp(of, source) != 0) {
        replica_print("what the target has under --name %s is a copy of another source (%s); give this "
                      "one another name, and a --prefix",
                      escape_terminal(target->options->name), of == NULL ? "?" : escape_terminal(of));
        return REPLICA_FAILED;
    }
    bool had = yyjson_get_bool(yyjson_obj_get(place, "tombstones"));
    if (had != target->options->tombstones) {
        replica_print("the copy under --name %s was made %s --tombstones: continue so, or give this one "
                      "another name, and a --prefix",
                      escape_terminal(target->options->name), had ? "with" : "without");
        return REPLICA_FAILED;
    }
    tl_ts ts = yyjson_get_uint(yyjson_obj_get(place, "timestamp"));
    if (ts > 0 && has_other(place, "prefix", target->options->prefix)) {
        replica_print("the copy under --name %s was made with --prefix \"%s\": use the same --prefix, or give this one "
                      "another name",
                      escape_terminal(target->options->name),
                      escape_terminal(yyjson_get_str(yyjson_obj_get(place, "prefix"))));
        return REPLICA_FAILED;
    }
    if (has_other(place, "index", index_option(target))) {
        yyjson_val *index = yyjson_obj_get(place, "index");
        ret_place->other_index = mem_strdup(yyjson_get_str(index), yyjson_get_len(index));
    }
    ret_place->ts = ret_place->suspects = ts;
    ret_place->clean = yyjson_get_bool(yyjson_obj_get(place, "clean"));
    ret_place->seen = yyjson_get_uint(yyjson_obj_get(place, "seen"));
    ret_place->restored = yyjson_get_bool(yyjson_obj_get(place, "restored"));
    read_suspects(yyjson_obj_get(place, "suspects"), ret_place);
    return 0;
}

static void write_place(const struct target *target, const char *source, const struct place *place, struct buf *to)
{
    buf_printf(to, "{\"timestamp\":%llu,\"source\":", (unsigned long long)place->ts);
    buf_json_string(to, slice_from(source));
    buf_lit(to, ",\"index\":");
    buf_json_string(to, slice_from(place->other_index == NULL ? index_option(target) : place->other_index));
    buf_lit(to, ",\"prefix\":");
    buf_json_string(to, slice_from(target->options->prefix));
    if (place->clean)
        buf_lit(to, ",\"clean\":true");
    if (place->seen > 0)
        buf_printf(to, ",\"seen\":%llu", (unsigned long long)place->seen);
    if (place->restored)
        buf_lit(to, ",\"restored\":true");
    if (target->options->tombstones)
        buf_lit(to, ",\"tombstones\":true");
    if (place->suspects < place->ts || place->whole)
        buf_printf(to, ",\"suspects\":{\"since\":%llu,\"until\":%llu,\"all\":%s}", (unsigned long long)place->suspects,
                   (unsigned long long)(clock_wall_us() + place->suspects_left_us), place->whole ? "true" : "false");
    buf_byte(to, '}');
}

/* That of the same timestamp may come again, with more about it. */
int target_write_place(struct target *target, const char *source, const struct place *place)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED), body = BUF_INIT(BUF_UNLIMITED);
    place_path(target, &path);
    buf_printf(&path, "?version=%llu&version_type=external_gte", (unsigned long long)place->ts);
    buf_byte(&path, '\0');
    write_place(target, source, place, &body);
    long status = target_ask(target, "PUT", path.data, buf_as_slice(&body));
    if (status == 200 || status == 201)
        return 0;
    if (status != 409)
        return complain_of_target(target, "cannot keep the place in the target", "", status);
    replica_print("the place in the target is a newer one: another copy of this name has run");
    return REPLICA_TAKEN;
}

int target_claim_place(struct target *target, const char *source)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED), body = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(place_deinit) struct place place = {0};
    place_path(target, &path);
    buf_lit(&path, "?op_type=create");
    buf_byte(&path, '\0');
    write_place(target, source, &place, &body);
    long status = target_ask(target, "PUT", path.data, buf_as_slice(&body));
    if (status == 409) /* of an earlier try, or another source's that was faster */
        return target_read_place(target, source, &place);
    return status == 201 ? 0 : complain_of_target(target, "cannot keep the place in the target", "", status);
}

/* --- Indices ------------------------------------------------------------------------------------------------------ */

/*
 * The source's settings that a target gets: the others are specific to the source, or mean
 * something else there.
 */
static const char *const settings_kept[] = {
    "number_of_shards", "number_of_replicas", "analysis",         "max_result_window",
    "max_ngram_diff",   "max_shingle_diff",   "refresh_interval", "mapping"};

static yyjson_mut_val *settings_of(const struct target *target, yyjson_mut_doc *doc, yyjson_val *definition)
{
    yyjson_mut_val *to = yyjson_mut_obj(doc);
    yyjson_val *from = yyjson_obj_get(yyjson_obj_get(definition, "settings"), "index");
    for (size_t i = 0; i < sizeof settings_kept / sizeof *settings_kept; i++) {
        yyjson_val *value = yyjson_obj_get(from, settings_kept[i]);
        if (value != NULL)
            yyjson_mut_obj_add_val(doc, to, settings_kept[i], yyjson_val_mut_copy(doc, value));
    }
    if (!target->options->leave_settings)
        yyjson_mut_obj_add_str(doc, to, "gc_deletes", GC_DELETES);
    return to;
}

static const char *uuid_of(yyjson_val *definition)
{
    const char *uuid =
        yyjson_get_str(yyjson_obj_get(yyjson_obj_get(yyjson_obj_get(definition, "settings"), "index"), "uuid"));
    return uuid == NULL ? "" : uuid;
}

/* Only a Tidelock has directories, and none are renamed in a copy: a path is a keyword there. */
static void rename_types(yyjson_mut_doc *doc, yyjson_mut_val *mapping)
{
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(yyjson_mut_obj_get(mapping, "properties"));
    for (yyjson_mut_val *name; (name = yyjson_mut_obj_iter_next(&members)) != NULL;) {
        yyjson_mut_val *field = yyjson_mut_obj_iter_get_val(name);
        const char *type = yyjson_mut_get_str(yyjson_mut_obj_get(field, "type"));
        if (type != NULL && strcmp(type, "path") == 0)
            yyjson_mut_obj_put(field, yyjson_mut_str(doc, "type"), yyjson_mut_str(doc, "keyword"));
        rename_types(doc, field);
    }
}

/* Types of an index that go into one of the target: all of them, or the one that is named. */
struct portion {
    const char *name;  /* in the target */
    const char *index; /* in the source */
    yyjson_val *definition;
    const char *type;        /* NULL: all */
    yyjson_mut_val *aliases; /* names of those that the copy has put there; NULL: those of the definition */
};

/*
 * Members of a mapping's _meta: the uuid of the source's index, which distinguishes it from a later
 * one of the same name, and its name; the name of the copy that the index belongs to; the name of
 * the target's index, since a clone or a restored snapshot under another name has the same _meta;
 * the names of the aliases that the copy has added, which alone it removes; until the index is
 * complete, a mark (replica.h, invariant 9); and a mark that the copy has closed it, since it opens
 * no index that an operator has closed.
 */
#define META_INDEX "tidelock_index"
#define META_OF "tidelock_of"
#define META_COPY "tidelock_copy"
#define META_NAME "tidelock_name"
#define META_ALIASES "tidelock_aliases"
#define META_PART "tidelock_part"
#define META_CLOSED "tidelock_closed"
/*
 * These members alone, with types or without: the mappings of a target may be larger than an
 * answer.
 */
#define META_PATHS "*.mappings._meta.tidelock_*,*.mappings.*._meta.tidelock_*"

/*
 * Of the index `index` in the target. Where it has tombstones, readers have an alias by its own
 * name.
 */
static yyjson_mut_val *aliases_of(const struct target *target, yyjson_mut_doc *doc, const char *index,
                                  yyjson_val *definition)
{
    yyjson_mut_val *to = yyjson_mut_obj(doc);
    size_t i, count;
    yyjson_val *key, *value;
    json_obj_foreach (yyjson_obj_get(definition, "aliases"), i, count, key, value) {
        tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
        yyjson_mut_val *alias = yyjson_val_mut_copy(doc, value);
        buf_printf(&name, "%s%s", target->options->prefix, yyjson_get_str(key));
        if (target->major < 6) /* has no write indices, and refuses the word */
            (void)yyjson_mut_obj_remove_key(alias, "is_write_index");
        if (target->options->tombstones)
            tombstone_filter(doc, alias);
        yyjson_mut_obj_add(to, yyjson_mut_strncpy(doc, name.data, name.len), alias);
    }
    if (target->options->tombstones) {
        yyjson_mut_val *own = yyjson_mut_obj(doc);
        tombstone_filter(doc, own);
        yyjson_mut_obj_add(to, yyjson_mut_strncpy(doc, index, strlen(index) - strlen(TOMBSTONE_COPY)), own);
    }
    return to;
}

/* Returns: the names of the aliases that the source's definition gives an index, as an array. */
static yyjson_mut_val *alias_names_of(const struct target *target, yyjson_mut_doc *doc, const struct portion *portion)
{
    yyjson_mut_val *names = yyjson_mut_arr(doc);
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(aliases_of(target, doc, portion->name, portion->definition));
    for (yyjson_mut_val *name; (name = yyjson_mut_obj_iter_next(&members)) != NULL;)
        yyjson_mut_arr_add_strcpy(doc, names, yyjson_mut_get_str(name));
    return names;
}

static yyjson_mut_val *meta_of(const struct target *target, yyjson_mut_doc *doc, yyjson_val *mapping,
                               const struct portion *portion, bool part)
{
    yyjson_val *from = yyjson_obj_get(mapping, "_meta");
    yyjson_mut_val *meta = yyjson_is_obj(from) ? yyjson_val_mut_copy(doc, from) : yyjson_mut_obj(doc);
    yyjson_mut_obj_remove_key(meta, META_INDEX);
    yyjson_mut_obj_remove_key(meta, META_OF);
    yyjson_mut_obj_remove_key(meta, META_COPY);
    yyjson_mut_obj_remove_key(meta, META_NAME);
    yyjson_mut_obj_remove_key(meta, META_ALIASES);
    yyjson_mut_obj_remove_key(meta, META_PART);
    yyjson_mut_obj_remove_key(meta, META_CLOSED);
    yyjson_mut_obj_add_strcpy(doc, meta, META_INDEX, uuid_of(portion->definition));
    yyjson_mut_obj_add_strcpy(doc, meta, META_OF, portion->index);
    yyjson_mut_obj_add_strcpy(doc, meta, META_COPY, target->options->name);
    yyjson_mut_obj_add_strcpy(doc, meta, META_NAME, portion->name);
    yyjson_mut_obj_add_val(doc, meta, META_ALIASES,
                           portion->aliases == NULL ? alias_names_of(target, doc, portion)
                                                    : yyjson_mut_val_mut_copy(doc, portion->aliases));
    if (part)
        yyjson_mut_obj_add_bool(doc, meta, META_PART, true);
    return meta;
}

static yyjson_mut_val *mapping_of(const struct target *target, yyjson_mut_doc *doc, yyjson_val *mapping,
                                  const struct portion *portion, bool part)
{
    yyjson_mut_val *to = mapping == NULL ? yyjson_mut_obj(doc) : yyjson_val_mut_copy(doc, mapping);
    rename_types(doc, to);
    if (target->options->tombstones)
        tombstone_map(doc, to);
    yyjson_mut_obj_remove_key(to, "_meta");
    yyjson_mut_obj_add_val(doc, to, "_meta", meta_of(target, doc, mapping, portion, part));
    return to;
}

/* An index of the target. */
struct found {
    bool there;
    bool alias; /* the name is an alias, of this index */
    bool part;
    bool closed;      /* by the copy, or it was about to */
    bool ours;        /* the copy of this name has made it, under this name */
    const char *copy; /* the copy that has made it, in the target's last answer; NULL: none */
    const char *of;   /* the source's index, there too; NULL: an older build has made it */
    /*
     * names of the aliases that the copy has added, there too; NULL: an older build has made it, or
     * no copy
     */
    yyjson_val *aliases;
    char uuid[64];    /* of the source's index; empty: it is no copy */
};

static void read_meta(const struct target *target, const char *name, yyjson_val *mapping, struct found *found)
{
    yyjson_val *meta = yyjson_obj_get(mapping, "_meta");
    const char *uuid = yyjson_get_str(yyjson_obj_get(meta, META_INDEX));
    const char *copy = yyjson_get_str(yyjson_obj_get(meta, META_COPY));
    if (found->copy == NULL)
        found->copy = copy;
    if (found->of == NULL)
        found->of = yyjson_get_str(yyjson_obj_get(meta, META_OF));
    if (found->aliases == NULL)
        found->aliases = yyjson_obj_get(meta, META_ALIASES);
    if (uuid != NULL && found->uuid[0] == '\0')
        snprintf(found->uuid, sizeof found->uuid, "%s", uuid);
    found->part = found->part || yyjson_get_bool(yyjson_obj_get(meta, META_PART));
    found->closed = found->closed || yyjson_get_bool(yyjson_obj_get(meta, META_CLOSED));
    found->ours = found->ours || (yyjson_equals_str(yyjson_obj_get(meta, META_COPY), target->options->name) &&
                                  yyjson_equals_str(yyjson_obj_get(meta, META_NAME), name));
}

/* `mappings`: with types, or the only one. */
static void read_metas(const struct target *target, const char *name, yyjson_val *mappings, struct found *found)
{
    size_t i, count;
    yyjson_val *key, *value;
    read_meta(target, name, mappings, found);
    json_obj_foreach (mappings, i, count, key, value)
        read_meta(target, name, value, found);
}

static int find_index(struct target *target, const char *name, struct found *ret_found)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_byte(&path, '/');
    client_escape(&path, slice_from(name));
    buf_lit(&path, "/_mapping");
    buf_byte(&path, '\0');
    *ret_found = (struct found){0};
    long status = target_ask(target, "GET", path.data, SLICE_NONE);
    ret_found->there = status == 200;
    if (status == 404)
        return 0;
    if (status != 200)
        return complain_of_target(target, "cannot read the mapping of", name, status);
    yyjson_val *answer = client_json(&target->client), *index = json_first_of(answer, yyjson_obj_size(answer));
    yyjson_val *mappings = yyjson_obj_get(json_value_of(index), "mappings");
    if (!yyjson_is_obj(mappings))
        return replica_disbelieve("target", "the mapping", name);
    ret_found->alias = !yyjson_equals_str(index, name);
    read_metas(target, name, mappings, ret_found);
    return 0;
}

/* What goes under "mappings" of a new index: with types, or that of the only one. */
static yyjson_mut_val *mappings_of(const struct target *target, yyjson_mut_doc *doc, const struct portion *portion)
{
    yyjson_val *types = yyjson_obj_get(portion->definition, "mappings");
    yyjson_mut_val *to = yyjson_mut_obj(doc), *only = NULL;
    size_t i, count;
    yyjson_val *key, *value;
    json_obj_foreach (types, i, count, key, value) {
        if (portion->type != NULL && strcmp(yyjson_get_str(key), portion->type) != 0)
            continue;
        only = mapping_of(target, doc, value, portion, true);
        const char *type = target_type(target, yyjson_get_str(key));
        if (type != NULL)
            yyjson_mut_obj_add(to, yyjson_mut_strcpy(doc, type), only);
    }
    if (target->major >= 7)
        return only != NULL ? only : mapping_of(target, doc, NULL, portion, true);
    if (only == NULL)
        yyjson_mut_obj_add(to, yyjson_mut_strcpy(doc, target_type(target, "_doc")),
                           mapping_of(target, doc, NULL, portion, true));
    return to;
}

static int send_json(struct target *target, const char *method, const char *path, yyjson_mut_doc *doc, long *ret_status)
{
    size_t len;
    char *text = yyjson_mut_write(doc, 0, &len);
    *ret_status = target_ask(target, method, path, slice_make(text, len));
    free(text);
    return *ret_status == 0 ? REPLICA_STOPPED : 0;
}

void replica_index_path(const char *name, const char *more, struct buf *to)
{
    buf_byte(to, '/');
    client_escape(to, slice_from(name));
    buf_printf(to, "%s", more);
    buf_byte(to, '\0');
}

/* Whether the target's last answer refuses an alias, since an index has its name. */
static bool is_name_taken(const struct target *target, long status)
{
    return status == 400 && client_has_error(&target->client, "invalid_alias_name_exception");
}

void target_begin_round(struct target *target)
{
    map_deinit(&target->listed.names);
    map_deinit(&target->listed.copies);
    target->listed.names = target->listed.copies = MAP_INIT;
    target->listed.known_names = target->listed.known_copies = false;
}

/* Reads the names of the target's indices, open, closed and hidden ones: they are the keys of its answer. */
static int list_names(struct target *target)
{
    size_t i, count;
    yyjson_val *key, *value;
    if (target->listed.known_names)
        return 0;
    long status = target_ask(target, "GET", "/_alias?expand_wildcards=all", SLICE_NONE);
    if (status != 200)
        return complain_of_target(target, "cannot read the aliases of the target", "", status);
    if (!yyjson_is_obj(client_json(&target->client)))
        return replica_disbelieve("target", "aliases", "");
    json_obj_foreach (client_json(&target->client), i, count, key, value)
        (void)map_put(&target->listed.names, slice_from(yyjson_get_str(key)), target);
    target->listed.known_names = true;
    return 0;
}

/* Reads the names of this copy's open indices that are called as in the source, with the prefix. */
static int list_copies(struct target *target)
{
    size_t i, count, prefix = strlen(target->options->prefix);
    yyjson_val *key, *value;
    if (target->listed.known_copies)
        return 0;
    long status = target_ask(target, "GET", "/_mapping?filter_path=" META_PATHS, SLICE_NONE);
    if (status != 200 && status != 404)
        return complain_of_target(target, "cannot read the mappings of the target", "", status);
    json_obj_foreach (status == 404 ? NULL : client_json(&target->client), i, count, key, value) {
        struct found found = {0};
        const char *name = yyjson_get_str(key);
        read_metas(target, name, yyjson_obj_get(value, "mappings"), &found);
        /* One of several types has another name than its index in the source, which may be there. */
        if (found.ours && found.of != NULL && strlen(name) >= prefix && strcmp(found.of, name + prefix) == 0)
            (void)map_put(&target->listed.copies, slice_from(name), target);
    }
    target->listed.known_copies = true;
    return 0;
}

/*
 * Drops the open copies of indices that the source had under the names of `aliases`. It has none of
 * these names any more, since it has the aliases, but the feed may not have reached their end yet.
 */
static int drop_found_under_aliases(struct target *target, yyjson_mut_val *aliases)
{
    int r = list_copies(target);
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(aliases);
    for (yyjson_mut_val *key; r == 0 && (key = yyjson_mut_obj_iter_next(&members)) != NULL;)
        if (map_get(&target->listed.copies, slice_from(yyjson_mut_get_str(key))) != NULL)
            r = target_drop_index(target, yyjson_mut_get_str(key));
    return r;
}

/*
 * Notes an alias that the target does not take. `status`: of its last answer; 200: that showed an
 * index of its name. `named`: an index may have its name; whose that is is asked for once.
 */
static int refuse_alias(struct target *target, const struct portion *portion, const char *alias, bool named,
                        long status)
{
    tl_cleanup(buf_deinit) struct buf reason = BUF_INIT(BUF_UNLIMITED);
    struct found found = {0};
    bool listed = status == 200;
    size_t prefix = strlen(target->options->prefix);
    if (named && untaken_has_name(&target->untaken, portion->index, portion->name, alias)) {
        untaken_add(&target->untaken, portion->index, portion->name, alias, true, listed, NULL);
        return 0;
    }
    buf_printf(&reason, "%s; it is tried again", client_error(&target->client, status));
    int r = named ? find_index(target, alias, &found) : 0;
    if (r != 0)
        return r;
    named = (found.there && !found.alias) || listed;
    if (named) {
        bool gone = found.ours && found.of != NULL && strcmp(found.of, alias + prefix) == 0;
        buf_clear(&reason);
        buf_printf(&reason,
                   "the target has an index of that name%s; delete that index in the target, and the copy adds the "
                   "alias",
                   gone ? ", which the source no longer has" : "");
    }
    buf_byte(&reason, '\0');
    untaken_add(&target->untaken, portion->index, portion->name, alias, named, listed, reason.data);
    return 0;
}

/*
 * After an alias was refused: makes its name free if the index of that name is one of this copy
 * that the source no longer has, and removes from `aliases` those whose names are still taken. The
 * copy tries these again: see target.untaken.
 */
static int leave_taken(struct target *target, const struct portion *portion, yyjson_mut_val *aliases)
{
    int r = drop_found_under_aliases(target, aliases);
    r = r == 0 ? list_names(target) : r;
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(aliases);
    for (yyjson_mut_val *key; r == 0 && (key = yyjson_mut_obj_iter_next(&members)) != NULL;) {
        const char *alias = yyjson_mut_get_str(key);
        if (map_get(&target->listed.names, slice_from(alias)) == NULL)
            continue;
        r = refuse_alias(target, portion, alias, true, 200);
        (void)yyjson_mut_obj_iter_remove(&members);
    }
    return r;
}

static void add_action(yyjson_mut_doc *doc, yyjson_mut_val *actions, const char *kind, const char *index,
                       yyjson_mut_val *alias, yyjson_mut_val *terms)
{
    yyjson_mut_val *action = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_strcpy(doc, terms, "index", index);
    yyjson_mut_obj_add_val(doc, terms, "alias", alias);
    yyjson_mut_obj_add(action, yyjson_mut_strcpy(doc, kind), terms);
    yyjson_mut_arr_append(actions, action);
}

/* Appends the addition of each alias of an object. */
static void add_actions(yyjson_mut_doc *doc, yyjson_mut_val *actions, const char *index, yyjson_mut_val *aliases)
{
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(aliases);
    for (yyjson_mut_val *name; (name = yyjson_mut_obj_iter_next(&members)) != NULL;)
        add_action(doc, actions, "add", index, yyjson_mut_strcpy(doc, yyjson_mut_get_str(name)),
                   yyjson_mut_val_mut_copy(doc, yyjson_mut_obj_iter_get_val(name)));
}

static bool has_text(yyjson_mut_val *texts, const char *text)
{
    yyjson_mut_arr_iter members = yyjson_mut_arr_iter_with(texts);
    for (yyjson_mut_val *one; (one = yyjson_mut_arr_iter_next(&members)) != NULL;)
        if (yyjson_mut_equals_str(one, text))
            return true;
    return false;
}

/* Whether all changes in an array remove aliases. */
static bool only_removes(yyjson_mut_val *actions)
{
    yyjson_mut_arr_iter each = yyjson_mut_arr_iter_with(actions);
    for (yyjson_mut_val *action; (action = yyjson_mut_arr_iter_next(&each)) != NULL;)
        if (yyjson_mut_obj_get(action, "add") != NULL)
            return false;
    return true;
}

/* Notes a single refused change, whose answer has `status`, to be tried again if it adds an alias. */
static int refuse_action(struct target *target, const struct portion *portion, yyjson_mut_val *action, long status)
{
    yyjson_mut_val *add = yyjson_mut_obj_get(action, "add");
    if (add != NULL)
        return refuse_alias(target, portion, yyjson_mut_get_str(yyjson_mut_obj_get(add, "alias")),
                            is_name_taken(target, status), status);
    replica_print("the target does not remove an alias of %s: %s", escape_terminal(portion->name),
                  client_error(&target->client, status));
    return 0;
}

/*
 * Sends changes of aliases, which Elasticsearch makes all, or none: where they are refused, each
 * half of them, so that one bad alias among thousands costs few requests. *done: cleared if the
 * target is not as one of them wants it.
 */
static int send_in_halves(struct target *target, const struct portion *portion, yyjson_mut_val *actions, bool *done)
{
    size_t i = 0, size = yyjson_mut_arr_size(actions);
    long status;
    if (size == 0)
        return 0;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *sent = yyjson_mut_val_mut_copy(doc, actions);
    yyjson_mut_val *halves[2] = {yyjson_mut_arr(doc), yyjson_mut_arr(doc)};
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "actions", sent);
    int r = send_json(target, "POST", "/_aliases", doc, &status);
    if (r == 0 && status != 200 && !(status == 404 && only_removes(actions))) {
        if (replica_is_forbidden(status)) {
            r = complain_of_target(target, "the target does not take the aliases of", portion->name, status);
        } else if (size == 1) {
            *done = false;
            r = refuse_action(target, portion, yyjson_mut_arr_get_first(actions), status);
        } else {
            yyjson_mut_arr_iter each = yyjson_mut_arr_iter_with(actions);
            for (yyjson_mut_val *action; (action = yyjson_mut_arr_iter_next(&each)) != NULL; i++)
                yyjson_mut_arr_append(halves[i >= size / 2], yyjson_mut_val_mut_copy(doc, action));
            r = send_in_halves(target, portion, halves[0], done);
            r = r == 0 ? send_in_halves(target, portion, halves[1], done) : r;
        }
    }
    yyjson_mut_doc_free(doc);
    return r;
}

/* Adds aliases to an index that was made without them. */
static int add_aliases(struct target *target, const struct portion *portion, yyjson_mut_val *aliases)
{
    bool done = true;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *actions = yyjson_mut_arr(doc);
    add_actions(doc, actions, portion->name, aliases);
    int r = send_in_halves(target, portion, actions, &done);
    yyjson_mut_doc_free(doc);
    return r;
}

/*
 * Whether an alias may be why the target's last answer refuses a new index. Elasticsearch answers
 * 500 if its alias has a write index already. 413: mapping, settings and the filters of all aliases are too large
 * for one request.
 */
static bool may_refuse_alias(const struct target *target, long status)
{
    return status == 400 || status == 413 ||
           (status == 500 && client_has_error(&target->client, "illegal_state_exception"));
}

static int make_index(struct target *target, const struct portion *portion)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    long status;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_val *settings = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_val(doc, settings, "index", settings_of(target, doc, portion->definition));
    yyjson_mut_obj_add_val(doc, root, "settings", settings);
    yyjson_mut_obj_add_val(doc, root, "mappings", mappings_of(target, doc, portion));
    yyjson_mut_val *aliases = aliases_of(target, doc, portion->name, portion->definition);
    yyjson_mut_obj_add_val(doc, root, "aliases", aliases);
    replica_index_path(portion->name, "", &path);
    int r = send_json(target, "PUT", path.data, doc, &status);
    if (r == 0 && is_name_taken(target, status)) {
        r = leave_taken(target, portion, aliases);
        if (r == 0)
            r = send_json(target, "PUT", path.data, doc, &status);
    }
    bool apart = r == 0 && may_refuse_alias(target, status) && yyjson_mut_obj_size(aliases) > 0;
    if (apart) {
        yyjson_mut_obj_remove_key(root, "aliases");
        r = send_json(target, "PUT", path.data, doc, &status);
    }
    if (apart && r == 0 && status == 200)
        r = add_aliases(target, portion, aliases);
    yyjson_mut_doc_free(doc);
    if (r == 0 && status != 200)
        return complain_of_target(target, "the target does not make the index", portion->name, status);
    if (r == 0 && !target->options->quiet)
        replica_print("made the index %s%s", escape_terminal(portion->name),
                      target->options->leave_settings ? "" : ", with index.gc_deletes " GC_DELETES);
    return r;
}

/* Frees `doc`. A refusal of the target is reported only, except for lack of a privilege. */
static int put_mapping(struct target *target, const struct portion *portion, const char *type, yyjson_mut_doc *doc)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    long status;
    type = target_type(target, type);
    replica_index_path(portion->name, "/_mapping", &path);
    buf_chop(&path, 1);
    if (type != NULL)
        buf_printf(&path, "/%s", type);
    buf_byte(&path, '\0');
    int r = send_json(target, "PUT", path.data, doc, &status);
    yyjson_mut_doc_free(doc);
    if (r == 0 && replica_is_forbidden(status))
        return complain_of_target(target, "the target does not take the mapping of", portion->name, status);
    if (r == 0 && status != 200)
        replica_print("the target does not take the mapping of %s: %s", escape_terminal(portion->name),
                      client_error(&target->client, status));
    return r;
}

static yyjson_mut_doc *whole_mapping(const struct target *target, const struct portion *portion, yyjson_val *mapping,
                                     bool part)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(doc, mapping_of(target, doc, mapping, portion, part));
    return doc;
}

static yyjson_mut_doc *only_meta(const struct target *target, const struct portion *portion, yyjson_val *mapping,
                                 bool part)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "_meta", meta_of(target, doc, mapping, portion, part));
    return doc;
}

/*
 * Sends a mapping, made by `what`. A refusal of the target is reported only: documents that need
 * the change are refused then.
 */
static int update_mapping(struct target *target, const struct portion *portion, bool part,
                          yyjson_mut_doc *(*what)(const struct target *target, const struct portion *portion,
                                                  yyjson_val *mapping, bool part))
{
    int r = 0;
    size_t i, count;
    yyjson_val *key, *value, *types = yyjson_obj_get(portion->definition, "mappings");
    if (yyjson_obj_size(types) == 0)
        return put_mapping(target, portion, "_doc", what(target, portion, NULL, part));
    json_obj_foreach (types, i, count, key, value)
        if (r == 0 && (portion->type == NULL || strcmp(yyjson_get_str(key), portion->type) == 0))
            r = put_mapping(target, portion, yyjson_get_str(key), what(target, portion, value, part));
    return r;
}

/*
 * Appends the changes of aliases that make those of the copy equal to the source's: it removes only
 * aliases among `added`, which the copy has added. `wanted`: the source's, of which those that the
 * target has already are removed. *ret_names: those that the copy has added until the changes are
 * made.
 */
static int plan_aliases(struct target *target, const struct portion *portion, yyjson_mut_val *added,
                        yyjson_mut_val *wanted, yyjson_mut_doc *doc, yyjson_mut_val *actions,
                        yyjson_mut_val **ret_names)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    replica_index_path(portion->name, "/_alias", &path);
    long status = target_ask(target, "GET", path.data, SLICE_NONE);
    if (status != 200)
        return complain_of_target(target, "cannot read the aliases of", portion->name, status);
    size_t i, count;
    yyjson_val *key, *value;
    *ret_names = alias_names_of(target, doc, portion);
    json_obj_foreach (yyjson_obj_get(only_of(&target->client), "aliases"), i, count, key, value) {
        const char *name = yyjson_get_str(key);
        yyjson_mut_val *terms = yyjson_mut_obj_get(wanted, name);
        if (terms != NULL && yyjson_mut_equals(terms, yyjson_val_mut_copy(doc, value)))
            (void)yyjson_mut_obj_remove_key(wanted, name);
        if (terms != NULL || !has_text(added, name))
            continue;
        add_action(doc, actions, "remove", portion->name, yyjson_mut_strcpy(doc, name), yyjson_mut_obj(doc));
        yyjson_mut_arr_add_strcpy(doc, *ret_names, name);
    }
    add_actions(doc, actions, portion->name, wanted);
    return 0;
}

/*
 * Returns: how long an index of the target keeps the versions of deletes, which `text` says; its
 * default where it says nothing.
 */
static uint64_t keeps_deletes_us(const char *text)
{
    char *unit = NULL;
    double count = text == NULL ? 60 : strtod(text, &unit);
    uint64_t us = text == NULL || strcmp(unit, "s") == 0 ? TL_SECOND
                  : strcmp(unit, "ms") == 0              ? TL_MS
                  : strcmp(unit, "m") == 0               ? 60 * TL_SECOND
                  : strcmp(unit, "h") == 0               ? 3600 * TL_SECOND
                  : strcmp(unit, "d") == 0               ? 86400 * TL_SECOND
                                                         : 0;
    return count <= 0 || count > 1e6 ? 0 : (uint64_t)(count * (double)us);
}

/* See replica.h, invariant 7: of an index that was there before. */
static int raise_gc_deletes(struct target *target, const char *name)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    if (target->options->leave_settings)
        return 0;
    replica_index_path(name, "/_settings", &path);
    long status = target_ask(target, "GET", path.data, SLICE_NONE);
    if (status != 200)
        return complain_of_target(target, "cannot read the settings of", name, status);
    yyjson_val *settings = yyjson_obj_get(only_of(&target->client), "settings");
    const char *text = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(settings, "index"), "gc_deletes"));
    tl_cleanup(buf_deinit) struct buf was = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&was, "%s", text == NULL ? "60s" : text);
    buf_byte(&was, '\0');
    if (keeps_deletes_us(text) >= GC_DELETES_US)
        return 0;
    status = target_ask(target, "PUT", path.data, SLICE_LIT("{\"index.gc_deletes\":\"" GC_DELETES "\"}"));
    if (status == 0)
        return REPLICA_STOPPED;
    if (status != 200)
        replica_print("cannot raise index.gc_deletes of %s: %s", escape_terminal(name),
                      client_error(&target->client, status));
    else if (!target->options->quiet)
        replica_print("raised index.gc_deletes of %s from %s to " GC_DELETES " (--leave-settings does not)",
                      escape_terminal(name), escape_terminal(was.data));
    return 0;
}

/*
 * Checks that an index of the target is the copy of an earlier index of that name in the source.
 * Returns: 0; REPLICA_FAILED, reported: this copy does not own it (invariant 13).
 */
static int check_earlier(const struct target *target, const struct portion *portion, const struct found *found)
{
    const char *name = portion->name;
    if (found->copy != NULL && strcmp(found->copy, target->options->name) != 0) {
        replica_print("the target's index %s is a copy of another index, which was made under --name %s: give this "
                      "copy a --prefix, or delete that index if that copy is no longer used",
                      escape_terminal(name), escape_terminal(found->copy));
        return REPLICA_FAILED;
    }
    if (!found->ours) {
        replica_print("the target's index %s was made from a copy under another name, as a clone for example: give "
                      "this copy a --prefix, or delete that index",
                      escape_terminal(name));
        return REPLICA_FAILED;
    }
    if (found->of != NULL && strcmp(found->of, portion->index) != 0) {
        replica_print(
            "the target's index %s is the copy of the source's index %s: leave one of the two out by --index, "
            "and copy it under another --name and --prefix",
            escape_terminal(name), escape_terminal(found->of));
        return REPLICA_FAILED;
    }
    return 0;
}

/*
 * Sends the changes of aliases `actions` of `doc`, where one is refused the others: without those
 * whose names indices have, and at last in parts. *ret_done: whether all were made but those that
 * are noted.
 */
static int send_actions(struct target *target, const struct portion *portion, yyjson_mut_doc *doc,
                        yyjson_mut_val *wanted, yyjson_mut_val *actions, bool *ret_done)
{
    long status;
    *ret_done = true;
    int r = send_json(target, "POST", "/_aliases", doc, &status);
    if (r == 0 && is_name_taken(target, status)) {
        r = leave_taken(target, portion, wanted);
        yyjson_mut_arr_iter each = yyjson_mut_arr_iter_with(actions);
        for (yyjson_mut_val *action; (action = yyjson_mut_arr_iter_next(&each)) != NULL;) {
            yyjson_mut_val *add = yyjson_mut_obj_get(action, "add");
            const char *alias = yyjson_mut_get_str(yyjson_mut_obj_get(add, "alias"));
            if (add != NULL && yyjson_mut_obj_get(wanted, alias) == NULL)
                (void)yyjson_mut_arr_iter_remove(&each);
        }
        status = 200;
        if (r == 0 && yyjson_mut_arr_size(actions) > 0)
            r = send_json(target, "POST", "/_aliases", doc, &status);
    }
    if (r != 0 || status == 200)
        return r;
    if (replica_is_forbidden(status))
        return complain_of_target(target, "the target does not take the aliases of", portion->name, status);
    return send_in_halves(target, portion, actions, ret_done);
}

static int drop_earlier(struct target *target, const char *name)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    replica_index_path(name, "", &path);
    replica_print("the index was made anew in the source; so is %s", escape_terminal(name));
    long status = target_ask(target, "DELETE", path.data, SLICE_NONE);
    return status == 200 || status == 404 ? 0 : complain_of_target(target, "cannot delete", name, status);
}

/*
 * Updates an index that is there, in this order: its mapping names aliases before they are added,
 * and until they are removed. Later an alias of that name is an operator's. `part`: it is marked as
 * incomplete.
 */
static int update_index(struct target *target, const struct portion *portion, const struct found *found, bool part)
{
    bool done = true;
    struct portion known = *portion;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *actions = yyjson_mut_arr(doc);
    yyjson_mut_val *added = found->aliases == NULL ? NULL : yyjson_val_mut_copy(doc, found->aliases);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "actions", actions);
    yyjson_mut_val *wanted = aliases_of(target, doc, portion->name, portion->definition);
    int r = plan_aliases(target, portion, added, wanted, doc, actions, &known.aliases);
    bool removes =
        r == 0 && yyjson_mut_arr_size(known.aliases) > yyjson_mut_arr_size(alias_names_of(target, doc, portion));
    if (r == 0)
        r = update_mapping(target, &known, part, whole_mapping);
    if (r == 0)
        r = raise_gc_deletes(target, portion->name);
    if (r == 0 && yyjson_mut_arr_size(actions) > 0)
        r = send_actions(target, portion, doc, wanted, actions, &done);
    yyjson_mut_doc_free(doc);
    return r == 0 && removes && done ? update_mapping(target, portion, part, only_meta) : r;
}

/*
 * Checks whether the copy may have an index that no copy has made: it is empty, or --take-over is
 * given. Returns: 0; REPLICA_FAILED, reported.
 */
static int take_over(struct target *target, const char *name)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    if (target->options->take_over)
        return 0;
    replica_index_path(name, "/_refresh", &path); /* else recent documents are not counted */
    long status = target_ask(target, "POST", path.data, SLICE_LIT(""));
    if (status != 200)
        return complain_of_target(target, "cannot refresh", name, status);
    buf_clear(&path);
    replica_index_path(name, "/_count", &path);
    status = target_ask(target, "GET", path.data, SLICE_NONE);
    yyjson_val *count = yyjson_obj_get(client_json(&target->client), "count");
    if (status != 200)
        return complain_of_target(target, "cannot count the documents of", name, status);
    if (!yyjson_is_uint(count))
        return replica_disbelieve("target", "the number of documents", name);
    if (yyjson_get_uint(count) == 0)
        return 0;
    if (target->identities != NULL && identities_has(target->identities, slice_from(name))) {
        replica_print("the target's index %s was deleted while this copy wrote to it, and exists again with %llu "
                      "documents, from a request of this copy that was under way or from another program: delete that "
                      "index and start the copy again, or start it with --take-over, which deletes from the index "
                      "what the source does not have",
                      escape_terminal(name), (unsigned long long)yyjson_get_uint(count));
        return REPLICA_FAILED;
    }
    replica_print("the target's index %s has %llu documents and was not made by a copy: give this copy a --prefix, "
                  "delete that index, or use --take-over, which deletes from it what the source does not have",
                  escape_terminal(name), (unsigned long long)yyjson_get_uint(count));
    return REPLICA_FAILED;
}

static bool is_unmarked(const struct found *found)
{
    return found->there && found->uuid[0] == '\0';
}

/* Whether it is the copy of another index of the source than the present one. */
static bool is_earlier(const struct portion *portion, const struct found *found)
{
    return found->there && found->uuid[0] != '\0' && strcmp(found->uuid, uuid_of(portion->definition)) != 0;
}

/*
 * The portion's name is an alias, in the target's last answer, which has the mappings of its
 * indices. If this copy has added it to all of them, the source has it no more, since it has an
 * index of that name: it is removed, if `changes`. Returns: 0; REPLICA_FAILED, reported.
 */
static int free_alias(struct target *target, const struct portion *portion, bool changes)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *actions = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "actions", actions);
    bool added = true;
    long status = 200;
    size_t i, count;
    yyjson_val *key, *value;
    json_obj_foreach (client_json(&target->client), i, count, key, value) {
        struct found found = {0};
        const char *name = yyjson_get_str(key);
        read_metas(target, name, yyjson_obj_get(value, "mappings"), &found);
        yyjson_mut_val *names = found.aliases == NULL ? NULL : yyjson_val_mut_copy(doc, found.aliases);
        added = added && found.ours && has_text(names, portion->name);
        add_action(doc, actions, "remove", name, yyjson_mut_strcpy(doc, portion->name), yyjson_mut_obj(doc));
    }
    int r = added && changes ? send_json(target, "POST", "/_aliases", doc, &status) : 0;
    yyjson_mut_doc_free(doc);
    if (!added) {
        replica_print("the target has an alias of the name %s: give this copy a --prefix, or remove the alias",
                      escape_terminal(portion->name));
        return REPLICA_FAILED;
    }
    return r == 0 && status != 200 && status != 404
               ? complain_of_target(target, "the target does not remove the alias", portion->name, status)
               : r;
}

/*
 * Reads what the target has under the portion's name, and checks that the copy may write there
 * (invariant 13). `changes`: an alias of that name that this copy has added is removed. Returns: 0;
 * REPLICA_FAILED, reported.
 */
static int find_portion(struct target *target, const struct portion *portion, bool changes, struct found *ret_found)
{
    int r = find_index(target, portion->name, ret_found);
    if (r != 0)
        return r;
    if (ret_found->alias) {
        *ret_found = (struct found){0};
        return free_alias(target, portion, changes);
    }
    if (is_earlier(portion, ret_found))
        return check_earlier(target, portion, ret_found);
    if (!is_unmarked(ret_found))
        return 0;
    ret_found->aliases = NULL; /* the answer that has them is replaced, and they are not the copy's */
    return take_over(target, portion->name);
}

static int check_portion(struct target *target, const struct portion *portion, enum target_had *had)
{
    struct found found;
    (void)had;
    return find_portion(target, portion, false, &found);
}

/*
 * Opens an index that this copy has closed when the source had it no more: it is there again after a
 * restore of the source, for example. Changes since then are found by copying all of it.
 * *ret_found: its state after that.
 */
static int open_index(struct target *target, const char *name, struct found *ret_found)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    replica_index_path(name, "/_open", &path);
    long status = target_ask(target, "POST", path.data, SLICE_NONE);
    if (status != 200)
        return complain_of_target(target, "cannot open", name, status);
    replica_print("the index is in the source again; %s is opened", escape_terminal(name));
    return find_index(target, name, ret_found);
}

static int put_portion(struct target *target, const struct portion *portion, enum target_had *had)
{
    struct found found;
    int r = find_portion(target, portion, true, &found);
    if (r != 0)
        return r;
    if (is_earlier(portion, &found)) {
        r = drop_earlier(target, portion->name);
        if (r != 0)
            return r;
        found.there = false;
    }
    if (!found.there) {
        *had = *had > TARGET_MADE ? *had : TARGET_MADE;
        return make_index(target, portion);
    }
    bool part = found.part || found.closed || is_unmarked(&found);
    if (found.closed)
        r = open_index(target, portion->name, &found);
    if (r != 0)
        return r;
    if (part)
        *had = TARGET_PART;
    return update_index(target, portion, &found, part);
}

static int end_portion(struct target *target, const struct portion *portion, enum target_had *had)
{
    (void)had;
    return update_mapping(target, portion, false, only_meta);
}

static int each_portion(struct target *target, const char *index, yyjson_val *definition, enum target_had *had,
                        int (*see)(struct target *target, const struct portion *portion, enum target_had *had))
{
    yyjson_val *types = yyjson_obj_get(definition, "mappings");
    bool several = yyjson_obj_size(types) > 1;
    int r = 0;
    size_t i, count;
    yyjson_val *key, *value;
    if (!several || target->major == 5) {
        tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
        target_name(target, index, "", false, &name);
        buf_byte(&name, '\0');
        return see(target, &(struct portion){name.data, index, definition, NULL, NULL}, had);
    }
    json_obj_foreach (types, i, count, key, value) {
        tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
        target_name(target, index, yyjson_get_str(key), true, &name);
        buf_byte(&name, '\0');
        if (r == 0)
            r = see(target, &(struct portion){name.data, index, definition, yyjson_get_str(key), NULL}, had);
    }
    return r;
}

int target_check_index(struct target *target, const char *index, yyjson_val *definition)
{
    enum target_had had = TARGET_WHOLE;
    return each_portion(target, index, definition, &had, check_portion);
}

int target_put_index(struct target *target, const char *index, yyjson_val *definition, enum target_had *ret_had)
{
    *ret_had = TARGET_WHOLE;
    untaken_begin_update(&target->untaken, index);
    int r = each_portion(target, index, definition, ret_had, put_portion);
    if (r == 0)
        untaken_end_update(&target->untaken, index);
    return r;
}

int target_end_index(struct target *target, const char *index, yyjson_val *definition)
{
    enum target_had had = TARGET_WHOLE;
    return each_portion(target, index, definition, &had, end_portion);
}

int target_find_due_aliases(struct target *target, struct map *due)
{
    int r = list_names(target);
    if (r == 0)
        untaken_find_due(&target->untaken, &target->listed.names, due);
    return r;
}

/* The mapping names the aliases already, since the last update of the index. */
static int retry_portion(struct target *target, const struct portion *portion, enum target_had *had)
{
    struct map names = MAP_INIT;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *wanted = aliases_of(target, doc, portion->name, portion->definition),
                   *actions = yyjson_mut_arr(doc);
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(wanted);
    bool done = true;
    (void)had;
    for (yyjson_mut_val *name; (name = yyjson_mut_obj_iter_next(&members)) != NULL;)
        if (!untaken_is_due(&target->untaken, portion->index, portion->name, yyjson_mut_get_str(name)))
            (void)yyjson_mut_obj_iter_remove(&members);
    add_actions(doc, actions, portion->name, wanted);
    (void)map_put(&names, slice_from(portion->name), target);
    int r = target->identities == NULL ? 0 : identities_check(target->identities, &target->client, &names);
    r = r == 0 ? send_in_halves(target, portion, actions, &done) : r;
    map_deinit(&names);
    yyjson_mut_doc_free(doc);
    return r;
}

int target_put_aliases(struct target *target, const char *index, yyjson_val *definition)
{
    enum target_had had = TARGET_WHOLE;
    untaken_begin_retry(&target->untaken, index);
    int r = each_portion(target, index, definition, &had, retry_portion);
    if (r == 0)
        untaken_end_update(&target->untaken, index);
    return r;
}

/*
 * Removes the aliases that the copy has added to an index, before that is closed: a search of an
 * alias fails if one of its indices is closed. `added`: their names.
 */
static int remove_aliases(struct target *target, const char *name, yyjson_val *added)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *actions = yyjson_mut_arr(doc);
    size_t i, count;
    yyjson_val *alias;
    bool done = true;
    json_arr_foreach (added, i, count, alias)
        if (yyjson_is_str(alias))
            add_action(doc, actions, "remove", name, yyjson_mut_strcpy(doc, yyjson_get_str(alias)),
                       yyjson_mut_obj(doc));
    int r = send_in_halves(target, &(struct portion){.name = name}, actions, &done);
    yyjson_mut_doc_free(doc);
    return r;
}

/* Marks an index that is about to be closed. `mappings`: with types, or the only one; copied. */
static int mark_closed(struct target *target, const char *name, yyjson_val *mappings)
{
    yyjson_mut_doc *copied = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *all = yyjson_mut_obj(copied), *key;
    size_t i, count;
    yyjson_val *type, *mapping;
    if (target->major >= 7)
        yyjson_mut_obj_add(all, yyjson_mut_str(copied, "_doc"), yyjson_val_mut_copy(copied, mappings));
    json_obj_foreach (target->major >= 7 ? NULL : mappings, i, count, type, mapping)
        yyjson_mut_obj_add(all, yyjson_val_mut_copy(copied, type), yyjson_val_mut_copy(copied, mapping));
    int r = 0;
    yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(all);
    while (r == 0 && (key = yyjson_mut_obj_iter_next(&members)) != NULL) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_obj_iter_get_val(key), "_meta");
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *root = yyjson_mut_obj(doc),
                       *marked = meta == NULL ? yyjson_mut_obj(doc) : yyjson_mut_val_mut_copy(doc, meta);
        yyjson_mut_doc_set_root(doc, root);
        yyjson_mut_obj_add_bool(doc, marked, META_CLOSED, true);
        yyjson_mut_obj_add_val(doc, root, "_meta", marked);
        r = put_mapping(target, &(struct portion){.name = name}, yyjson_mut_get_str(key), doc);
    }
    yyjson_mut_doc_free(copied);
    return r;
}

/* Prepares an index, which was `found`, to be closed. The target's last answer has its mapping. */
static int prepare_close(struct target *target, const char *name, const struct found *found)
{
    yyjson_doc *answer = tl_steal(target->client.json);
    yyjson_val *root = yyjson_doc_get_root(answer);
    yyjson_val *index = json_value_of(json_first_of(root, yyjson_obj_size(root)));
    int r = found->closed ? 0 : mark_closed(target, name, yyjson_obj_get(index, "mappings"));
    r = r == 0 ? remove_aliases(target, name, found->aliases) : r;
    yyjson_doc_free(answer);
    return r;
}

int target_drop_index(struct target *target, const char *name)
{
    struct found found;
    bool deletes = target->options->delete_indices;
    size_t i, count;
    yyjson_val *alias;
    (void)map_remove(&target->listed.copies, slice_from(name));
    int r = find_index(target, name, &found);
    json_arr_foreach (r == 0 && found.ours ? found.aliases : NULL, i, count, alias)
        if (yyjson_is_str(alias))
            untaken_make_due(&target->untaken, yyjson_get_str(alias));
    if (r == 0 && found.ours && !deletes)
        r = prepare_close(target, name, &found);
    if (r != 0 || !found.ours)
        return r;
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    replica_index_path(name, deletes ? "" : "/_close", &path);
    long status = target_ask(target, deletes ? "DELETE" : "POST", path.data, SLICE_NONE);
    if (status != 200 && status != 404)
        return complain_of_target(target, deletes ? "cannot delete" : "cannot close", name, status);
    if (deletes)
        (void)map_remove(&target->listed.names, slice_from(name));
    if (status == 200)
        replica_print("the index is gone in the source; %s is %s", escape_terminal(name),
                      deletes ? "deleted" : "closed (--delete-indices deletes)");
    return 0;
}

/*
 * Returns: the names of this copy's indices whose index of the source is not in `uuids`, NULL after
 * the last. Owns: the caller.
 */
static char **find_gone(const struct target *target, yyjson_val *all, const struct map *uuids)
{
    char **names = mem_zalloc((yyjson_obj_size(all) + 1) * sizeof *names);
    size_t i, count, found_count = 0;
    yyjson_val *key, *value;
    json_obj_foreach (all, i, count, key, value) {
        struct found found = {0};
        read_metas(target, yyjson_get_str(key), yyjson_obj_get(value, "mappings"), &found);
        if (found.ours && found.uuid[0] != '\0' && map_get(uuids, slice_from(found.uuid)) == NULL)
            names[found_count++] = mem_strdup(yyjson_get_str(key), yyjson_get_len(key));
    }
    return names;
}

int target_drop_gone(struct target *target, const struct map *uuids)
{
    long status = target_ask(target, "GET", "/_mapping?filter_path=" META_PATHS, SLICE_NONE);
    if (status == 404) /* it has no index */
        return 0;
    if (status != 200)
        return complain_of_target(target, "cannot read the mappings of the target", "", status);
    if (!yyjson_is_obj(client_json(&target->client)))
        return replica_disbelieve("target", "mappings", "");
    char **names = find_gone(target, client_json(&target->client), uuids);
    int r = 0;
    for (char **name = names; *name != NULL; name++) {
        r = r == 0 ? target_drop_index(target, *name) : r;
        mem_free(*name);
    }
    mem_free(names);
    return r;
}
