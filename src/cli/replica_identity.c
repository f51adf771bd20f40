/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which indices of the target a copy writes to, by their uuids; see replica.h, invariant 14. A bulk
 * cannot name the uuid that it expects: it follows an alias, and creates an index that is missing.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"
#include "base/mutex.h"
#include "cli/replica.h"
#include "cli/escape.h"
#include "json/each.h"

enum { NAMES_BYTES_MAX = 3000 /* in a URL, of which Elasticsearch takes 4,096; of more, all indices are asked for */ };

struct identity {
    char uuid[64];
};

struct identities {
    pthread_mutex_t lock;
    struct map indices; /* name to struct identity */
    bool reported;      /* a difference, since an index was created or updated: other lanes find it, too */
};

struct identities *identities_new(void)
{
    struct identities *identities = mem_zalloc(sizeof *identities);
    mutex_init(&identities->lock);
    identities->indices = MAP_INIT;
    return identities;
}

void identities_free(struct identities *identities)
{
    size_t at = 0;
    struct slice name;
    void *identity;
    if (identities == NULL)
        return;
    while (map_next(&identities->indices, &at, &name, &identity))
        mem_free(identity);
    map_deinit(&identities->indices);
    pthread_mutex_destroy(&identities->lock);
    mem_free(identities);
}

void identities_forget(struct identities *identities, const char *name)
{
    pthread_mutex_lock(&identities->lock);
    mem_free(map_remove(&identities->indices, slice_from(name)));
    pthread_mutex_unlock(&identities->lock);
}

bool identities_has(struct identities *identities, struct slice name)
{
    pthread_mutex_lock(&identities->lock);
    bool has = map_get(&identities->indices, name) != NULL;
    pthread_mutex_unlock(&identities->lock);
    return has;
}

/* Returns: the uuid of an index, in the last answer; NULL: it has no index of this name. */
static const char *uuid_in(const struct client *client, const char *name)
{
    yyjson_val *settings = yyjson_obj_get(yyjson_obj_get(client_json(client), name), "settings");
    return yyjson_get_str(yyjson_obj_get(yyjson_obj_get(settings, "index"), "uuid"));
}

#define UUIDS "/_settings?filter_path=*.settings.index.uuid,error.type,error.index"

/*
 * Requires: lock. Reports that the target has no index of a name, or another one, as its answer
 * shows; once. `name` NULL: not known.
 */
static int report_difference(struct identities *identities, const struct client *client, const char *name)
{
    REQUIRE(mutex_is_held(&identities->lock));
    yyjson_val *root = client_json(client), *index = name == NULL ? NULL : yyjson_obj_get(root, name);
    const char *other = yyjson_get_str(json_first_of(root, yyjson_obj_size(root)));
    bool alias = name != NULL && index == NULL && yyjson_obj_size(root) == 1 && strcmp(other, "error") != 0;
    if (!identities->reported && alias)
        replica_print("another program has replaced the target's index %s by an alias of %s", escape_terminal(name),
                      escape_terminal(other));
    else if (!identities->reported)
        replica_print("another program has %s %s%s", index == NULL ? "deleted" : "replaced",
                      name == NULL ? "an index of the target" : "the target's index ",
                      name == NULL ? "" : escape_terminal(name));
    identities->reported = true;
    return REPLICA_REPLACED;
}

static int report_denied(const struct client *client, const char *what, const char *name, long status)
{
    replica_print("the target does not show %s%s%s: %s" FORBIDDEN_ADVICE, what, *name == '\0' ? "" : " ",
                  escape_terminal(name), client_error(client, status));
    return REPLICA_FAILED;
}

int identities_learn(struct identities *identities, struct client *client, const char *name)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct identity *identity;
    buf_byte(&path, '/');
    client_escape(&path, slice_from(name));
    buf_lit(&path, UUIDS);
    buf_byte(&path, '\0');
    long status = replica_ask(client, "target", "GET", path.data, SLICE_NONE);
    if (status == 0)
        return REPLICA_STOPPED;
    if (status == 404) {
        pthread_mutex_lock(&identities->lock);
        int r = report_difference(identities, client, name);
        pthread_mutex_unlock(&identities->lock);
        return r;
    }
    if (replica_is_forbidden(status))
        return report_denied(client, "the uuid of", name, status);
    const char *uuid = uuid_in(client, name);
    if (status != 200 || uuid == NULL || strlen(uuid) >= sizeof identity->uuid)
        return replica_disbelieve("target", "the uuid", name);
    identity = mem_zalloc(sizeof *identity);
    memcpy(identity->uuid, uuid, strlen(uuid));
    pthread_mutex_lock(&identities->lock);
    mem_free(map_put(&identities->indices, slice_from(name), identity));
    identities->reported = false;
    pthread_mutex_unlock(&identities->lock);
    return 0;
}

/* Writes the request for the known indices of `names`, and adds them to `asked`. */
static void write_path(struct identities *identities, const struct map *names, struct map *asked, struct buf *path)
{
    size_t at = 0;
    struct slice name;
    void *value;
    pthread_mutex_lock(&identities->lock);
    while (map_next(names, &at, &name, &value)) {
        struct identity *identity = map_get(&identities->indices, name);
        if (identity == NULL)
            continue;
        buf_byte(path, asked->count == 0 ? '/' : ',');
        client_escape(path, name);
        (void)map_put(asked, name, identity);
    }
    pthread_mutex_unlock(&identities->lock);
    if (path->len > NAMES_BYTES_MAX) {
        buf_clear(path);
        buf_lit(path, "/*" UUIDS "&expand_wildcards=open,closed");
    } else {
        buf_lit(path, UUIDS);
    }
    buf_byte(path, '\0');
}

/*
 * Requires: lock. Compares the target's answer with the known uuids of the indices that were asked
 * for.
 */
static int compare_uuids(struct identities *identities, const struct client *client, const struct map *asked)
{
    REQUIRE(mutex_is_held(&identities->lock));
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    size_t at = 0;
    struct slice name;
    void *value;
    while (map_next(asked, &at, &name, &value)) {
        const struct identity *identity = value;
        buf_clear(&text);
        buf_slice(&text, name);
        buf_byte(&text, '\0');
        const char *uuid = uuid_in(client, text.data);
        if (uuid == NULL || strcmp(uuid, identity->uuid) != 0)
            return report_difference(identities, client, text.data);
    }
    return 0;
}

int identities_check(struct identities *identities, struct client *client, const struct map *names)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct map asked = MAP_INIT;
    int r = 0;
    write_path(identities, names, &asked, &path);
    long status = asked.count == 0 ? 200 : replica_ask(client, "target", "GET", path.data, SLICE_NONE);
    pthread_mutex_lock(&identities->lock);
    if (status == 0)
        r = REPLICA_STOPPED;
    else if (status == 404)
        r = report_difference(identities, client,
                              yyjson_get_str(yyjson_obj_get(yyjson_obj_get(client_json(client), "error"), "index")));
    else if (replica_is_forbidden(status))
        r = report_denied(client, "the uuids of indices", "", status);
    else if (asked.count > 0 && (status != 200 || !yyjson_is_obj(client_json(client))))
        r = replica_disbelieve("target", "the uuids of indices", "");
    else if (asked.count > 0)
        r = compare_uuids(identities, client, &asked);
    pthread_mutex_unlock(&identities->lock);
    map_deinit(&asked);
    return r;
}
