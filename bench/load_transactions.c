/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with transactions. Accounts are documents {"balance": n} with the ids a0, a1, ... */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Query transactions ------------------------------------------------------------------------------------------- */

/* Ten gets inside one query transaction. */
static void query_txn_write(struct load_connection *c, unsigned step)
{
    if (step == 0)
        load_http(c, "POST", "{\"mode\":\"query\"}", "/_transaction");
    else if (step == 11)
        load_http(c, "POST", NULL, "/_transaction/%s/_rollback", c->capture[0]);
    else
        load_http(c, "GET", NULL, "/%s/_doc/f%07" PRIu64 "?transaction=%s", c->load->index, load_draw(c, c->load->ids),
                  c->capture[0]);
}

static enum verdict query_txn_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (!load_succeeded(reply))
        return IS_WRONG;
    if (step == 0 && !load_capture(reply, "\"transaction\":\"", "\"", c->capture[0]))
        return IS_WRONG;
    return GOES_ON;
}

/* --- Transfers between two of --ids accounts ---------------------------------------------------------------------- */

static void draw_accounts(struct load_connection *c)
{
    c->a = load_draw(c, c->load->ids);
    c->b = (c->a + 1 + load_draw(c, c->load->ids - 1)) % c->load->ids;
}

static void transfer_write(struct load_connection *c, unsigned step)
{
    char body[1024];
    if (step == 0) {
        draw_accounts(c);
        snprintf(body, sizeof body, "{\"ids\":[\"a%" PRIu64 "\",\"a%" PRIu64 "\"]}", c->a, c->b);
        load_http(c, "POST", body, "/%s/_mget", c->load->index);
        return;
    }
    long from = atol(c->capture[1]);
    long to = atol(c->capture[3]);
    snprintf(body, sizeof body,
             "{\"index\":{\"_id\":\"a%" PRIu64 "\",\"if_seq_no\":%s,\"if_primary_term\":1}}\n{\"balance\":%ld}\n"
             "{\"index\":{\"_id\":\"a%" PRIu64 "\",\"if_seq_no\":%s,\"if_primary_term\":1}}\n{\"balance\":%ld}\n",
             c->a, c->capture[0], from - 1, c->b, c->capture[2], to + 1);
    load_http(c, "POST", body, "/%s/_bulk?atomic=true", c->load->index);
}

static enum verdict transfer_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (step == 1)
        return reply->status == 409 ? STARTS_OVER : load_succeeded(reply) ? GOES_ON : IS_WRONG;
    if (!load_succeeded(reply) || !load_capture(reply, "\"_seq_no\":", ",}", c->capture[0]) ||
        !load_capture(reply, "\"balance\":", ",}", c->capture[1]))
        return IS_WRONG;
    struct reply second = {200, strstr(reply->body, "\"balance\":") + 1, 0};
    return load_capture(&second, "\"_seq_no\":", ",}", c->capture[2]) &&
                   load_capture(&second, "\"balance\":", ",}", c->capture[3])
               ? GOES_ON
               : IS_WRONG;
}

/* begin, 2 gets, 2 puts, commit */
static void interactive_write(struct load_connection *c, unsigned step)
{
    char body[64];
    switch (step) {
    case 0:
        draw_accounts(c);
        load_http(c, "POST", "{\"timeout\":\"2s\"}", "/_transaction"); /* soon over when the run has ended */
        break;
    case 1:
    case 2:
        load_http(c, "GET", NULL, "/%s/_doc/a%" PRIu64 "?transaction=%s", c->load->index, step == 1 ? c->a : c->b,
                  c->capture[0]);
        break;
    case 3:
    case 4:
        snprintf(body, sizeof body, "{\"balance\":%ld}", atol(c->capture[step - 2]) + (step == 3 ? -1 : 1));
        load_http(c, "PUT", body, "/%s/_doc/a%" PRIu64 "?transaction=%s", c->load->index, step == 3 ? c->a : c->b,
                  c->capture[0]);
        break;
    default: load_http(c, "POST", NULL, "/_transaction/%s/_commit", c->capture[0]);
    }
}

static enum verdict interactive_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (reply->status == 409)
        return STARTS_OVER;
    if (!load_succeeded(reply))
        return IS_WRONG;
    if (step == 0)
        return load_capture(reply, "\"transaction\":\"", "\"", c->capture[0]) ? GOES_ON : IS_WRONG;
    if (step <= 2)
        return load_capture(reply, "\"balance\":", ",}", c->capture[step]) ? GOES_ON : IS_WRONG;
    return GOES_ON;
}

const struct scenario load_transactions[] = {
    {"query-txn", "begin a query transaction, 10 gets, end it", 0, 12, false, query_txn_write, query_txn_read},
    {"transfer", "mget, then _bulk?atomic=true with if_seq_no", 0, 2, false, transfer_write, transfer_read},
    {"interactive", "begin, 2 gets, 2 puts, commit", 0, 6, false, interactive_write, interactive_read},
    {0},
};
