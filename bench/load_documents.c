/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with documents: put, get, search, scripted update. */
#include "load.h"

#include <stdio.h>

static void put_write(struct connection *c, unsigned step)
{
    (void)step;
    char body[512];
    uint64_t id = load_draw(c, c->load->ids);
    load_document(body, sizeof body, id, c->rng);
    load_http(c, "PUT", body, "/%s/_doc/f%07" PRIu64, c->load->index, id);
}

static void get_write(struct connection *c, unsigned step)
{
    (void)step;
    load_http(c, "GET", NULL, "/%s/_doc/f%07" PRIu64 "%s", c->load->index, load_draw(c, c->load->ids),
              c->load->argument);
}

static void root_write(struct connection *c, unsigned step)
{
    (void)step;
    load_http(c, "GET", NULL, "%s", c->load->argument[0] ? c->load->argument : "/");
}

static void script_write(struct connection *c, unsigned step)
{
    (void)step;
    load_http(c, "POST", "{\"script\":{\"source\":\"ctx._source.lock_count++\"},\"upsert\":{\"lock_count\":1}}",
              "/%s/_update/c%" PRIu64, c->load->index, load_draw(c, c->load->ids));
}

static void term_write(struct connection *c, unsigned step)
{
    (void)step;
    char body[1024];
    snprintf(body, sizeof body, "{\"query\":{\"term\":{\"name\":\"%s\"}}}",
             c->load->values[load_draw(c, c->load->value_count)]);
    load_http(c, "POST", body, "/%s/_search", c->load->index);
}

const struct scenario load_documents[] = {
    {"root", "GET of --argument PATH, / by default", 0, 1, false, root_write, load_ok},
    {"put", "durable put of 400 bytes at a random id", 0, 1, false, put_write, load_ok},
    {"get", "get of a random id; --argument '?timestamp=T'", 0, 1, false, get_write, load_ok},
    {"script", "_update with ctx._source.lock_count++", 0, 1, false, script_write, load_ok},
    {"term", "term query on the field name; --values FILE names the terms", 0, 1, false, term_write, load_ok},
    {0},
};
