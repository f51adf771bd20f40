/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with documents: put, get, search, scripted update. */
#include "load.h"

#include <stdio.h>

static void put_write(struct load_connection *c, unsigned step)
{
    (void)step;
    char body[512];
    uint64_t id = load_draw(c, c->load->ids);
    load_document(body, sizeof body, id, c->rng);
    load_http(c, "PUT", body, "/%s/_doc/f%07" PRIu64, c->load->index, id);
}

static void get_write(struct load_connection *c, unsigned step)
{
    (void)step;
    load_http(c, "GET", NULL, "/%s/_doc/f%07" PRIu64 "%s", c->load->index, load_draw(c, c->load->ids),
              c->load->argument);
}

static void root_write(struct load_connection *c, unsigned step)
{
    (void)step;
    load_http(c, "GET", NULL, "%s", c->load->argument[0] ? c->load->argument : "/");
}

static void script_write(struct load_connection *c, unsigned step)
{
    (void)step;
    load_http(c, "POST", "{\"script\":{\"source\":\"ctx._source.lock_count++\"},\"upsert\":{\"lock_count\":1}}",
              "/%s/_update/c%" PRIu64, c->load->index, load_draw(c, c->load->ids));
}

static void term_write(struct load_connection *c, unsigned step)
{
    (void)step;
    char body[1024];
    snprintf(body, sizeof body, "{\"query\":{\"term\":{\"name\":\"%s\"}}}",
             c->load->values[load_draw(c, c->load->value_count)]);
    load_http(c, "POST", body, "/%s/_search", c->load->index);
}

/*
 * A directory of one file for each connection, made first; it goes there and back. The first capture says whether it is
 * there.
 */
static void rename_write(struct load_connection *c, unsigned step)
{
    char body[512], names[2][80];
    bool there = c->capture[0][0] != '\0';
    if (step == 0) {
        snprintf(body, sizeof body, "{\"path\":\"/%s%u/f\"}", c->load->keys, c->number);
        load_http(c, "PUT", body, "/%s/_doc/%s%u", c->load->index, c->load->keys, c->number);
        return;
    }
    snprintf(names[0], sizeof names[0], "/%s%u", c->load->keys, c->number);
    snprintf(names[1], sizeof names[1], "/renamed/%s%u", c->load->keys, c->number);
    snprintf(body, sizeof body, "{\"from\":\"%s\",\"to\":\"%s\"}", names[there], names[!there]);
    load_http(c, "POST", body, "/%s/_rename", c->load->index);
}

static enum verdict rename_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (step == 1 && load_succeeded(reply))
        c->capture[0][0] ^= 1;
    return load_ok(c, step, reply);
}

const struct scenario load_documents[] = {
    {"root", "GET of --argument PATH, / by default", 0, 1, false, root_write, load_ok},
    {"put", "durable put of 400 bytes at a random id", 0, 1, false, put_write, load_ok},
    {"get", "get of a random id; --argument '?timestamp=T'", 0, 1, false, get_write, load_ok},
    {"script", "_update with ctx._source.lock_count++", 0, 1, false, script_write, load_ok},
    {"rename", "a rename of a directory of each connection's own", 1, 2, false, rename_write, rename_read},
    {"term", "term query on the field name; --values FILE names the terms", 0, 1, false, term_write, load_ok},
    {0},
};
