/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: begin, commit, roll back, look.
 */
#include "api/request/api_internal.h"
#include "api/request/forward.h"
#include "api/request/handlers.h"
#include "api/request/head_waits.h"
#include "api/request/native_body.h"
#include "api/request/query_status.h"
#include "api/request/request_budget.h"
#include "api/owners/status.h"
#include "api/owners/status_list.h"
#include "base/types.h"
#include "json/each.h"

#define TIMEOUT_DEFAULT_US (60 * TL_SECOND)

/* --- Begin -------------------------------------------------------------------------------------------------------- */

/* The members of the body. */
struct begin {
    bool query;
    struct slice session;
    struct slice retry_of;
    tl_ts read_ts;
    uint64_t timeout_us;
};

static int reply_begun(struct request *request, struct slice id, uint64_t number, bool query, tl_ts ts)
{
    struct json_writer writer;
    reply_begin(request, 201, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "transaction");
    json_string(&writer, id);
    json_key(&writer, "number");
    json_u64(&writer, number);
    json_key(&writer, "mode");
    json_string(&writer, query ? SLICE_LIT("query") : SLICE_LIT("update"));
    json_key(&writer, "timestamp");
    json_u64(&writer, ts);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int begin_done(struct request *request, struct command *command)
{
    return reply_begun(request, command->txn.id, command->txn.number, false, command->ts);
}

static int begin_update(struct request *request, const struct begin *begin)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->txn.id = id_random(&request->api->ids, &command->arena);
    command->txn.idle_us = begin->timeout_us;
    command->txn.retry_of = arena_copy(&command->arena, begin->retry_of);
    command->owner.session = begin->session;
    return request_submit(request, command, begin_done);
}

static int reply_query_begun(struct request *request, const struct query_txn_info *info)
{
    request->exchange->timestamp = info->read_ts;
    return reply_begun(request, info->id, info->number, true, info->read_ts);
}

/* The session that it is to belong to was looked up, and lives. */
static int query_session_found(struct request *request, struct command *command)
{
    const struct query_txn_info *info = request->context;
    if (command->problem.type != PROBLEM_NONE) {
        journal_query_txn_discard(request->api->journal, info->id);
        request->problem = command->problem;
        return REQUEST_REFUSED;
    }
    journal_query_txn_confirm(request->api->journal, info->id, command->status.number);
    return reply_query_begun(request, info);
}

/* The transaction is there before its session is looked up, so that no end of the session is missed. */
static int find_query_session(struct request *request, const struct begin *begin, struct query_txn_info *info)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_SESSION;
    command->status.id = begin->session;
    request->context = info;
    int r = request_submit_all(request, command, query_session_found);
    if (r != REQUEST_PENDING)
        journal_query_txn_discard(request->api->journal, info->id);
    return r;
}

static int begin_query(struct request *request, const struct begin *begin)
{
    struct query_txn_info *info = arena_zalloc(request->arena, sizeof *info);
    struct query_txn_terms terms = {
        .id = id_query_txn(&request->api->ids, journal_host_number(request->api->journal), request->arena),
        .session = begin->session,
        .read_ts = begin->read_ts,
        .timeout_us = begin->timeout_us};
    if (begin->retry_of.len > 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[retry_of] must name an update transaction that was rolled back within the last hour, "
                              "to be retried by another; a transaction with [mode] [query] is not retried");
    int r = journal_query_txn_begin(request->api->journal, &terms, request->arena, info, &request->problem);
    if (r == JOURNAL_TOO_OLD)
        return request_check_timestamp(request, begin->read_ts);
    if (r != 0)
        return REQUEST_REFUSED;
    if (begin->session.len > 0)
        return find_query_session(request, begin, info);
    request_budget_committed(request);
    return reply_query_begun(request, info);
}

/* This host has everything that was acknowledged before the begin. */
static int begin_query_caught_up(struct request *request)
{
    return begin_query(request, request->context);
}

/* Without a timestamp it reads in the cluster's read mode, as a read outside of transactions does. */
static int begin_query_in_mode(struct request *request, const struct begin *begin)
{
    if (begin->read_ts != 0 || !request_must_catch_up(request))
        return begin_query(request, begin);
    struct begin *waiting = arena_alloc(request->arena, sizeof *waiting);
    *waiting = *begin;
    request->context = waiting;
    return head_waits_add(request, begin_query_caught_up);
}

static int read_mode(struct native_body *body, struct begin *begin)
{
    struct slice mode = SLICE_LIT("update");
    int r = native_body_text(body, "mode", &mode);
    if (r != 0)
        return r;
    if (!slice_is(mode, "update") && !slice_is(mode, "query"))
        return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[mode] of a transaction must be [update] or [query], got [%.*s]", SLICE_ARG(mode));
    begin->query = slice_is(mode, "query");
    if (!begin->query && begin->read_ts != 0)
        return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "only a transaction with [mode] [query] reads at a [timestamp] of the past");
    return 0;
}

static const struct body_schema begin_form = {
    "a transaction", "mode session timestamp timeout retry_of",
    "{\"mode\": \"update\", \"session\": \"ID\", \"timeout\": \"60s\"}, each of them optional, "
    "or {\"mode\": \"query\"}"};

int handle_txn_begin(struct request *request)
{
    struct native_body body;
    struct begin begin = {.session = request->session, .timeout_us = TIMEOUT_DEFAULT_US};
    int r = native_body_parse(request, &begin_form, &body);
    if (r != 0 || (r = native_body_id(&body, "session", &begin.session)) != 0 ||
        (r = native_body_ts(&body, "timestamp", &begin.read_ts)) != 0 ||
        (r = native_body_time(&body, "timeout", &begin.timeout_us)) != 0 || (r = read_mode(&body, &begin)) != 0 ||
        (r = native_body_id(&body, "retry_of", &begin.retry_of)) != 0 ||
        (begin.read_ts != 0 && (r = request_check_timestamp(request, begin.read_ts)) != 0) ||
        (r = request_accept(request)) != 0)
        return r;
    return begin.query ? begin_query_in_mode(request, &begin) : begin_update(request, &begin);
}

/* --- Commit and roll back ----------------------------------------------------------------------------------------- */

static int reply_committed(struct request *request, tl_ts ts, uint64_t changes)
{
    struct json_writer writer;
    request->exchange->timestamp = ts;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "committed");
    json_bool(&writer, true);
    json_key(&writer, "timestamp");
    json_u64(&writer, ts);
    json_key(&writer, "changes");
    json_u64(&writer, changes);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int commit_done(struct request *request, struct command *command)
{
    return reply_committed(request, command->txn.commit_ts, command->txn.changes);
}

static int reply_rolled_back(struct request *request)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_raw(&writer, SLICE_LIT("{\"rolled_back\":true}"));
    return REQUEST_DONE;
}

/* Ends a query transaction of this host. Returns: whether the id is of one, with the result in *ret_result. */
static bool end_query(struct request *request, const struct query_txn_ending *ending, int *ret_result)
{
    struct query_txn_info info;
    int r = journal_query_txn_end(request->api->journal, ending, request->arena, &info, &request->problem);
    if (r == JOURNAL_UNKNOWN)
        return false;
    if (r == 0) {
        request_budget_committed(request);
        request->exchange->timestamp = journal_stable(request->api->journal);
    }
    *ret_result = r != 0           ? REQUEST_REFUSED
                  : ending->commit ? reply_committed(request, info.read_ts, 0)
                                   : reply_rolled_back(request);
    return true;
}

static const struct body_schema commit_form = {"a commit", "", NULL};

int handle_txn_commit(struct request *request)
{
    struct native_body body;
    int r = native_body_parse(request, &commit_form, &body);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct query_txn_ending ending = {
        .id = request_part(request, PART_TRANSACTION), .session = request->session, .commit = true};
    if (end_query(request, &ending, &r))
        return r;
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = request_part(request, PART_TRANSACTION);
    command->owner.session = request->session;
    command->owner.fencing_token = request->fencing_token;
    return request_submit(request, command, commit_done);
}

static int rollback_done(struct request *request, struct command *command)
{
    (void)command;
    return reply_rolled_back(request);
}

/* Does not queue after the transaction's other requests: a rollback ends a request that waits for a lock. */
static const struct body_schema rollback_form = {"a rollback", "", NULL};

int handle_txn_rollback(struct request *request)
{
    struct native_body body;
    bool force = false;
    int r = native_body_parse(request, &rollback_form, &body);
    if (r != 0 || (r = request_bool(request, "force", &force)) != 0 || (r = request_accept(request)) != 0 ||
        (r = request_forward_query_txn(request, request_part(request, PART_ID))) != 0)
        return r;
    struct query_txn_ending ending = {
        .id = request_part(request, PART_ID), .session = request->session, .force = force};
    if (end_query(request, &ending, &r))
        return r;
    struct command *command = command_new(COMMAND_TXN_ROLLBACK, DIALECT_7);
    command->txn.id = request_part(request, PART_ID);
    command->txn.force = force;
    command->owner.session = request->session;
    return request_submit(request, command, rollback_done);
}

/* --- Looking ------------------------------------------------------------------------------------------------------ */

/* Answers the status of a query transaction of this host. Returns: whether the id is of one. */
static bool reply_query_status(struct request *request)
{
    struct query_txn_info info;
    struct json_writer writer;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    enum query_txn_state state =
        journal_query_txn_find(request->api->journal, request_part(request, PART_ID), request->arena, &info);
    if (state == QUERY_TXN_UNKNOWN)
        return false;
    query_status_write(request->api, &info, state == QUERY_TXN_ENDED, &text);
    request->exchange->timestamp = journal_stable(request->api->journal);
    reply_begin(request, 200, &writer);
    json_raw(&writer, buf_as_slice(&text));
    buf_deinit(&text);
    return true;
}

int handle_txn_status(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    if (request_part(request, PART_ID).len == 0)
        return status_list_read_transactions(request, status_list_reply);
    if ((r = request_forward_query_txn(request, request_part(request, PART_ID))) != 0)
        return r;
    if (reply_query_status(request))
        return REQUEST_DONE;
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
    {"host", "h", "host of a query transaction in a cluster", false, false},
};
enum { TXN_COLUMN_STATE = 2, TXN_COLUMN_CREATED = 4, TXN_COLUMN_EXPIRES = 5, TXN_COLUMN_HOST = 9 };

/* Adds a row for each host that did not answer: its transactions are unknown. */
static void add_failures(struct request *request, yyjson_val *failures, struct cat_table *table)
{
    size_t i, count;
    yyjson_val *failure;
    json_arr_foreach (failures, i, count, failure) {
        struct slice reason = json_slice(json_get_lit(json_get_lit(failure, "caused_by"), "reason"));
        struct cat_cell *row = cat_table_row(table, request->arena);
        /* "[name][address] cause" */
        struct slice host = slice_make(reason.data + 1, slice_find_byte(reason, ']') - 1);
        row[TXN_COLUMN_STATE] = (struct cat_cell){CAT_TEXT, SLICE_LIT("unknown"), 0};
        row[TXN_COLUMN_HOST] = (struct cat_cell){CAT_TEXT, host, 0};
    }
}

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
            row[k] = k == TXN_COLUMN_CREATED || k == TXN_COLUMN_EXPIRES
                         ? status_time_cell(request, txn, txn_columns[k].name)
                         : status_cell(request, txn, txn_columns[k].name);
    }
    add_failures(request, json_get_lit(doc.root, "node_failures"), &table);
    return cat_table_reply(request, &table);
}

int handle_cat_transactions(struct request *request)
{
    int r = request_accept(request);
    if (r != 0 || cat_table_help(request, txn_columns, COUNT_OF(txn_columns)))
        return r;
    return status_list_read_transactions(request, cat_transactions);
}
