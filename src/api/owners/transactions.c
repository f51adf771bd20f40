/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: begin, commit, roll back, look.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/own_body.h"
#include "api/owners/status.h"
#include "api/owners/status_list.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define TIMEOUT_DEFAULT_US (60 * TL_SECOND)

/* --- Begin -------------------------------------------------------------------------------------------------------- */

static int begin_done(struct request *request, struct command *command)
{
    struct json_writer writer;
    reply_begin(request, 201, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "transaction");
    json_string(&writer, command->txn.id);
    json_key(&writer, "number");
    json_u64(&writer, command->txn.number);
    json_key(&writer, "mode");
    json_string(&writer, command->txn.mode == TXN_QUERY ? SLICE_LIT("query") : SLICE_LIT("update"));
    json_key(&writer, "timestamp");
    json_u64(&writer, command->txn.mode == TXN_QUERY ? command->txn.read_ts : command->ts);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int read_mode(struct own_body *body, struct txn_command *txn)
{
    struct slice mode = SLICE_LIT("update");
    int r = own_body_text(body, "mode", &mode);
    if (r != 0)
        return r;
    if (!slice_is(mode, "update") && !slice_is(mode, "query"))
        return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[mode] of a transaction must be [update] or [query], got [%.*s]", SLICE_ARG(mode));
    txn->mode = slice_is(mode, "query") ? TXN_QUERY : TXN_UPDATE;
    if (txn->mode == TXN_UPDATE && txn->read_ts != 0)
        return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "only a transaction with [mode] [query] reads at a [timestamp] of the past");
    return 0;
}

static const struct own_form begin_form = {"a transaction", "mode session timestamp timeout retry_of",
                                           "{\"mode\": \"update\", \"session\": \"ID\", \"timeout\": \"60s\"}, each of "
                                           "them optional, or {\"mode\": \"query\"}"};

int handle_txn_begin(struct request *request)
{
    struct own_body body;
    struct txn_command txn = {.idle_us = TIMEOUT_DEFAULT_US};
    struct slice session = request->session;
    int r = own_body_parse(request, &begin_form, &body);
    if (r != 0 || (r = own_body_id(&body, "session", &session)) != 0 ||
        (r = own_body_ts(&body, "timestamp", &txn.read_ts)) != 0 ||
        (r = own_body_time(&body, "timeout", &txn.idle_us)) != 0 || (r = read_mode(&body, &txn)) != 0 ||
        (r = own_body_id(&body, "retry_of", &txn.retry_of)) != 0 ||
        (txn.read_ts != 0 && (r = request_check_timestamp(request, txn.read_ts)) != 0) ||
        (r = request_accept(request)) != 0)
        return r;
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    txn.id = id_random(&request->api->ids, &command->arena);
    command->txn = txn;
    command->txn.retry_of = arena_copy(&command->arena, txn.retry_of);
    command->owner.session = session;
    return request_submit(request, command, begin_done);
}

/* --- Commit and roll back ----------------------------------------------------------------------------------------- */

static int commit_done(struct request *request, struct command *command)
{
    struct json_writer writer;
    request->exchange->timestamp = command->txn.commit_ts;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "committed");
    json_bool(&writer, true);
    json_key(&writer, "timestamp");
    json_u64(&writer, command->txn.commit_ts);
    json_key(&writer, "changes");
    json_u64(&writer, command->txn.changes);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static const struct own_form commit_form = {"a commit", "", NULL};

int handle_txn_commit(struct request *request)
{
    struct own_body body;
    int r = own_body_parse(request, &commit_form, &body);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = request_part(request, PART_TRANSACTION);
    command->owner.session = request->session;
    command->owner.fencing_token = request->fencing_token;
    return request_submit(request, command, commit_done);
}

static int rollback_done(struct request *request, struct command *command)
{
    struct json_writer writer;
    (void)command;
    reply_begin(request, 200, &writer);
    json_raw(&writer, SLICE_LIT("{\"rolled_back\":true}"));
    return REQUEST_DONE;
}

/* Does not queue behind the transaction's other requests: it is how a request that waits for a lock is given up. */
static const struct own_form rollback_form = {"a rollback", "", NULL};

int handle_txn_rollback(struct request *request)
{
    struct own_body body;
    bool force = false;
    int r = own_body_parse(request, &rollback_form, &body);
    if (r != 0 || (r = request_bool(request, "force", &force)) != 0 || (r = request_accept(request)) != 0)
        return r;
    struct command *command = command_new(COMMAND_TXN_ROLLBACK, DIALECT_7);
    command->txn.id = request_part(request, PART_ID);
    command->txn.force = force;
    command->owner.session = request->session;
    return request_submit(request, command, rollback_done);
}

/* --- Looking ------------------------------------------------------------------------------------------------------ */

int handle_txn_status(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    if (request_part(request, PART_ID).len == 0)
        return status_list_read(request, STATUS_TRANSACTIONS, SLICE_NONE, status_list_reply);
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_TRANSACTIONS;
    command->status.id = request_part(request, PART_ID);
    return request_submit(request, command, status_reply);
}

static const struct cat_column txn_columns[] = {
    {"transaction", "id", "public number of the transaction", false, false},
    {"mode", "m", "update or query", false, false},
    {"state", "st", "active, committed or rolled_back", false, false},
    {"session", "s", "public number of the session it belongs to", false, false},
    {"created", "c", "begin", false, false},
    {"expires", "e", "when it is rolled back unless it is used", false, false},
    {"lock_count", "l,locks", "locks held", true, false},
    {"changes", "ch", "documents changed so far", true, false},
    {"waiting", "w", "whether it waits for a lock", false, false},
};

static int cat_transactions(struct request *request, struct slice body)
{
    size_t i, count;
    yyjson_val *txn;
    struct json_doc doc;
    struct cat_table table;
    int r = json_parse_stored(request->arena, body, &doc);
    if (r != 0)
        return tl_trace(r);
    cat_table_init(&table, txn_columns, COUNT_OF(txn_columns));
    json_arr_foreach (json_get_lit(doc.root, "transactions"), i, count, txn) {
        struct cat_cell *row = cat_table_row(&table, request->arena);
        for (size_t k = 0; k < COUNT_OF(txn_columns); k++)
            row[k] = k == 4 || k == 5 ? status_time_cell(request, txn, txn_columns[k].name)
                                      : status_cell(request, txn, txn_columns[k].name);
    }
    return cat_table_reply(request, &table);
}

int handle_cat_transactions(struct request *request)
{
    int r = request_accept(request);
    if (r != 0 || cat_table_help(request, txn_columns, COUNT_OF(txn_columns)))
        return r;
    return status_list_read(request, STATUS_TRANSACTIONS, SLICE_NONE, cat_transactions);
}
