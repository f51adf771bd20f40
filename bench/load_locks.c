/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios with locks: the product's own, and the recipes that build locks out of documents, which any server with
 * Elasticsearch's API can run.
 */
#include "load.h"

#include <stdio.h>

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static void session_write(struct load_connection *c, unsigned step, const char *target, const char *wait)
{
    char body[1024];
    if (step == 0) {
        load_http(c, "POST", "{\"ttl\":\"10m\"}", "/_session");
    } else if (step == 1) {
        snprintf(body, sizeof body,
                 "{\"session\":\"%s\",\"wait\":\"%s\",\"locks\":[{\"mode\":\"exclusive\",\"index\":\"%s\",%s}]}",
                 c->capture[0], wait, c->load->index, target);
        load_http(c, "POST", body, "/_lock");
    } else {
        snprintf(body, sizeof body, "{\"session\":\"%s\"}", c->capture[0]);
        load_http(c, "POST", body, "/_unlock");
    }
}

static void lock_write(struct load_connection *c, unsigned step)
{
    char target[128];
    snprintf(target, sizeof target, "\"id\":\"%s-%u-%" PRIu64 "\"", c->load->keys, c->number, c->iteration);
    session_write(c, step, target, "0s");
}

static void tree_write(struct load_connection *c, unsigned step)
{
    char target[192];
    snprintf(target, sizeof target, "\"path\":\"/clinton/projects/%s/d%u/e%" PRIu64 "/f%" PRIu64 "\"", c->load->keys,
             c->number, c->iteration % 100, c->iteration);
    session_write(c, step, target, "0s");
}

/*
 * One document for all connections; each run uses another one, since the lock is held when a run
 * ends.
 */
static void one_write(struct load_connection *c, unsigned step)
{
    char target[128];
    snprintf(target, sizeof target, "\"id\":\"one-%s\"", c->load->keys);
    session_write(c, step, target, "60s");
}

/* Opens a session, and then does nothing. */
static void idle_write(struct load_connection *c, unsigned step)
{
    session_write(c, 0, "", "");
    if (step == 1)
        c->request_len = 0;
}

static enum verdict session_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (!load_succeeded(reply))
        return IS_WRONG;
    if (step == 0)
        return load_capture(reply, "\"session\":\"", "\"", c->capture[0]) ? GOES_ON : IS_WRONG;
    return GOES_ON;
}

/* --- Recipes ------------------------------------------------------------------------------------------------------ */

/*
 * Locks the whole index by a document that only one connection can create; each run uses another
 * one. A connection that finds the document there tries again.
 */
static void global_write(struct load_connection *c, unsigned step)
{
    load_http(c, step == 0 ? "PUT" : "DELETE", step == 0 ? "{}" : NULL, "/%s/_%s/global-%s", c->load->index,
              step == 0 ? "create" : "doc", c->load->keys);
}

static enum verdict recipe_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    (void)c;
    (void)step;
    return load_succeeded(reply) ? GOES_ON : reply->status == 409 ? TRIES_AGAIN : IS_WRONG;
}

/* A document of its own for each lock: created, deleted. */
static void create_write(struct load_connection *c, unsigned step)
{
    load_http(c, step == 0 ? "PUT" : "DELETE", step == 0 ? "{\"process_id\":1}" : NULL, "/%s/_%s/%s-%u-%" PRIu64,
              c->load->index, step == 0 ? "create" : "doc", c->load->keys, c->number, c->iteration);
}

/* As create_write(), by a scripted upsert, which the holder may repeat. */
static void document_write(struct load_connection *c, unsigned step)
{
    char body[512];
    snprintf(
        body, sizeof body,
        "{\"upsert\":{\"process_id\":%u},\"script\":{\"source\":\"if (ctx._source.process_id != params.process_id) "
        "{ throw new IllegalArgumentException('locked') } ctx.op = 'noop'\",\"params\":{\"process_id\":%u}}}",
        c->number, c->number);
    if (step == 0)
        load_http(c, "POST", body, "/%s/_update/%s-%u-%" PRIu64, c->load->index, c->load->keys, c->number,
                  c->iteration);
    else
        load_http(c, "DELETE", NULL, "/%s/_doc/%s-%u-%" PRIu64, c->load->index, c->load->keys, c->number, c->iteration);
}

/*
 * Locks a subtree: shared locks on its ancestors, counted by scripts, and an exclusive one on its
 * root.
 */
static void subtree_write(struct load_connection *c, unsigned step)
{
    static const char share[] =
        "{\"upsert\":{\"lock_type\":\"shared\",\"lock_count\":1},\"script\":{\"source\":\"if (ctx._source.lock_type == "
        "'exclusive') { throw new IllegalArgumentException('locked') } ctx._source.lock_count++\"}}";
    static const char unshare[] =
        "{\"script\":{\"source\":\"if (--ctx._source.lock_count == 0) { ctx.op = 'delete' }\"}}";
    const char *above = step == 0 || step == 5 ? "%2Fclinton" : "%2Fclinton%2Fprojects";
    if (step == 2 || step == 3)
        load_http(c, step == 2 ? "PUT" : "DELETE", step == 2 ? "{\"lock_type\":\"exclusive\"}" : NULL,
                  "/%s/_%s/%%2Fclinton%%2Fprojects%%2F%s-%u-%" PRIu64, c->load->index, step == 2 ? "create" : "doc",
                  c->load->keys, c->number, c->iteration);
    else
        load_http(c, "POST", step < 2 ? share : unshare, "/%s/_update/%s?retry_on_conflict=100", c->load->index, above);
}

const struct scenario load_locks[] = {
    {"lock", "lock and unlock a document of one's own", 1, 3, false, lock_write, session_read},
    {"lock-tree", "lock and unlock a subtree six levels deep", 1, 3, false, tree_write, session_read},
    {"lock-one", "lock and unlock one document for all, waiting in order", 1, 3, false, one_write, session_read},
    {"idle", "open a session and do nothing", 1, 2, false, idle_write, session_read},
    {"recipe", "document lock: _create, DELETE", 0, 2, false, create_write, load_ok},
    {"recipe-global", "one _create for all who want it, DELETE", 0, 2, false, global_write, recipe_read},
    {"recipe-document", "document lock by a scripted upsert, DELETE", 0, 2, false, document_write, recipe_read},
    {"recipe-tree", "two shared locks counted by scripts, one _create; and back", 0, 6, false, subtree_write,
     recipe_read},
    {0},
};
