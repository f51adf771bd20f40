/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a copy: documents as they are now; see replica.h, invariants 1 and 2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

enum { GET_MAX = 256 /* documents of one request */ };

#define ANSWER_US (120 * TL_SECOND)

long source_ask(struct client *client, const char *method, const char *path, struct slice body)
{
    return replica_ask(client, "source", method, path, body);
}

/*
 * Whether the last answer is of a state before `least`: the host ignored Tidelock-After, or
 * something between removed it. Within a transaction all answers are of its timestamp. A 404 says
 * of a state, too, that a thing does not exist; a 400 of a Tidelock may be that the timestamp asked
 * for is in its future.
 */
static bool is_older(const struct client *client, long status, tl_ts least)
{
    bool is_state = status == 200 || status == 404 || (status == 400 && client->timestamp > 0);
    return is_state && !client->in_transaction && client->timestamp < least;
}

bool source_leave_lagging(struct client *client, unsigned tries)
{
    if (tries == 1)
        replica_print("%s answers with an older state than was read before; trying again",
                      url_without_password(client->url));
    if (replica_ends(client))
        return false;
    source_hosts_leave(client->context, client->url);
    replica_pause(tries);
    return true;
}

long source_ask_present(struct client *client, const char *method, const char *path, struct slice body)
{
    for (unsigned tries = 1;; tries++) {
        long status = source_ask(client, method, path, body);
        if (!is_older(client, status, client->after))
            return status;
        if (!source_leave_lagging(client, tries))
            return 0;
    }
}

long source_ask_since(struct client *client, const char *path, tl_ts since)
{
    for (unsigned tries = 1;; tries++) {
        long status = source_ask(client, "GET", path, SLICE_NONE);
        if (!is_older(client, status, since))
            return status;
        if (!source_leave_lagging(client, tries))
            return 0;
    }
}

int source_complain(struct client *client, const char *what, const char *name, long status)
{
    if (status == 0 && !client_is_too_large(client))
        return REPLICA_STOPPED;
    replica_print("%s%s%s: %s", what, *name == '\0' ? "" : " ", escape_terminal(name), client_error(client, status));
    return REPLICA_FAILED;
}

bool source_lost_snapshot(const struct replica *replica, const struct client *client)
{
    return replica->snapshot != NULL && (client_has_error(client, "transaction_missing_exception") ||
                                         client_has_error(client, "transaction_aborted_exception"));
}

struct slice replica_text(yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    return yyjson_is_str(value) ? slice_make(yyjson_get_str(value), yyjson_get_len(value)) : SLICE_NONE;
}

uint64_t replica_number(yyjson_val *object, const char *name)
{
    yyjson_val *value = yyjson_obj_get(object, name);
    return yyjson_is_raw(value) ? strtoull(yyjson_get_raw(value), NULL, 10) : yyjson_get_uint(value);
}

bool source_shows_commit(yyjson_val *hit)
{
    return replica_number(hit, "_commit_timestamp") > 0;
}

bool replica_same_routing(struct slice a, struct slice b)
{
    return (a.data == NULL) == (b.data == NULL) && slice_equal(a, b);
}

/*
 * Puts a document, or with `source` NULL its deletion, under a routing. It is dropped if the copy
 * has not created or updated its index in the target: the source's index was created only recently,
 * so the feed reports that, and all of it is copied then.
 */
static void put_document(struct replica *replica, const struct replica_key *key, const char *source, size_t len,
                         tl_ts version, bool vacates)
{
    const struct replica_index *known = map_get(&replica->indices, key->index);
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED), type = BUF_INIT(BUF_UNLIMITED),
                                      to = BUF_INIT(BUF_UNLIMITED), tombstone = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&name, key->index);
    buf_byte(&name, '\0');
    buf_slice(&type, key->type);
    buf_byte(&type, '\0');
    target_name(&replica->target, name.data, type.data, known != NULL && known->several, &to);
    if (!identities_has(replica->identities, buf_as_slice(&to)))
        return;
    if (replica->inheriting)
        suspects_add_inherited(replica->suspects, key, replica->before.suspects, replica->before.suspects_left_us);
    if (source == NULL && replica->options->tombstones)
        tombstone_write(version, &tombstone);
    lanes_put(replica->lanes, &(struct lanes_document){
                                  .index = buf_as_slice(&to),
                                  .type = target_type(&replica->target, type.data),
                                  .id = key->id,
                                  .routing = key->routing,
                                  .source = source != NULL      ? slice_make(source, len)
                                            : tombstone.len > 0 ? buf_as_slice(&tombstone)
                                                                : SLICE_NONE,
                                  .version = version,
                                  .vacates = vacates,
                                  .key = key,
                              });
}

void source_put(struct replica *replica, yyjson_val *hit, bool found, const struct replica_key *key, tl_ts read)
{
    const char *type = yyjson_get_str(yyjson_obj_get(hit, "_type"));
    bool placed = key != NULL && key->placed, vacates = key != NULL && key->vacates;
    /* If the place is only vacated, the document is not sent now: its own version must be above the deletion's. */
    bool by_commit = found && (vacates || !replica->superseding);
    tl_ts version = by_commit ? replica_number(hit, "_commit_timestamp") : read;
    if (found && vacates && version < key->sent_as)
        version = key->sent_as;
    struct replica_key at = {.index = replica_text(hit, "_index"),
                             .type = slice_from(type == NULL ? "_doc" : type),
                             .id = replica_text(hit, "_id"),
                             .routing = replica_text(hit, "_routing"),
                             .placed = true};
    if (found && !vacates) {
        size_t len = 0;
        char *text = yyjson_val_write(yyjson_obj_get(hit, "_source"), YYJSON_WRITE_ALLOW_INF_AND_NAN, &len);
        put_document(replica, &at, text == NULL ? "" : text, len, version, false);
        free(text);
    }
    if (found && (!placed || replica_same_routing(key->routing, at.routing)))
        return;
    at.routing = placed ? key->routing : SLICE_NONE;
    put_document(replica, &at, NULL, 0, version, found);
}

static void add_key(struct buf *body, const struct replica_key *key)
{
    buf_lit(body, "{\"_index\":");
    buf_json_string(body, key->index);
    buf_lit(body, ",\"_type\":");
    buf_json_string(body, key->type);
    buf_lit(body, ",\"_id\":");
    buf_json_string(body, key->id);
    buf_byte(body, '}');
}

/* Of an index that is gone there is nothing to be said: its end comes in the feed. */
static bool is_of_no_index(yyjson_val *document)
{
    const char *type = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(document, "error"), "type"));
    return type != NULL && strcmp(type, "index_not_found_exception") == 0;
}

static int take_documents(struct replica *replica, const struct replica_key *keys, size_t asked)
{
    size_t i, count;
    yyjson_val *document, *documents = yyjson_obj_get(client_json(&replica->source), "docs");
    if (yyjson_arr_size(documents) != asked)
        return replica_disbelieve("source", "documents", "");
    json_arr_foreach (documents, i, count, document) {
        bool found = yyjson_get_bool(yyjson_obj_get(document, "found"));
        if (found && !source_shows_commit(document))
            return replica_disbelieve("source", "documents", "");
        if (yyjson_obj_get(document, "error") == NULL)
            source_put(replica, document, found, &keys[i], replica->source.timestamp);
        else if (!is_of_no_index(document)) {
            char *error = yyjson_val_write(yyjson_obj_get(document, "error"), 0, NULL);
            replica_print("the source does not show a document: %s", escape_terminal(error == NULL ? "" : error));
            free(error);
            return REPLICA_FAILED;
        }
    }
    return lanes_state(replica->lanes);
}

int source_send(struct replica *replica, const struct replica_key *keys, size_t count, tl_ts *ret_read)
{
    size_t most = GET_MAX;
    tl_ts read = TL_TS_MAX;
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    while (count > 0) {
        size_t some = count < most ? count : most;
        buf_clear(&body);
        buf_lit(&body, "{\"docs\":[");
        bool sources = false;
        for (size_t i = 0; i < some; i++) {
            if (i > 0)
                buf_byte(&body, ',');
            add_key(&body, &keys[i]);
            sources = sources || !keys[i].vacates;
        }
        buf_lit(&body, "]}");
        const char *path = sources ? "/_mget?any_routing=true&commit_timestamp=true"
                                   : "/_mget?any_routing=true&commit_timestamp=true&_source=false";
        long status = source_request(&replica->source, "POST", path, buf_as_slice(&body), ANSWER_US);
        if (status == 429 && some > 1) { /* so much at once the server's memory does not hold */
            most = some / 2;
            continue;
        }
        if (replica_is_passing(status) || is_older(&replica->source, status, replica->source.after))
            status = source_ask_present(&replica->source, "POST", path, buf_as_slice(&body));
        if (source_lost_snapshot(replica, &replica->source))
            return REPLICA_ANEW;
        if (status != 200)
            return source_complain(&replica->source, "cannot read documents", "", status);
        int r = take_documents(replica, keys, some);
        if (r != 0)
            return r;
        read = replica->source.timestamp < read ? replica->source.timestamp : read;
        keys += some;
        count -= some;
    }
    if (ret_read != NULL)
        *ret_read = read;
    return 0;
}
