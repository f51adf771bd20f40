/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: open, keep alive, attach, close, look.
 */
#include "api/request/api_internal.h"
#include "api/owners/attachment.h"
#include "api/documents/bulk_parse.h"
#include "api/request/handlers.h"
#include "api/request/instant.h"
#include "api/request/native_body.h"
#include "api/owners/status.h"
#include "api/owners/status_list.h"
#include "base/types.h"
#include "json/each.h"

#define TTL_DEFAULT_US (30 * TL_SECOND)
#define TTL_MIN_US TL_SECOND
#define TTL_MAX_US (24 * 3600 * TL_SECOND)

/* --- Open --------------------------------------------------------------------------------------------------------- */

static int reply_session(struct request *request, struct command *command, int status)
{
    struct json_writer writer;
    reply_begin(request, status, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "session");
    json_string(&writer, command->session.id);
    if (command->session.number != 0) {
        json_key(&writer, "number");
        json_u64(&writer, command->session.number);
    }
    if (command->session.expires_at > command->ts) {
        json_key(&writer, "ttl");
        json_string(&writer, own_duration(request->arena, command->session.expires_at - command->ts));
    }
    json_key(&writer, "expires_at");
    json_string(&writer, instant_end_text(request->arena, command->ts, command->session.expires_at));
    json_key(&writer, "timestamp");
    json_u64(&writer, command->ts);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int open_done(struct request *request, struct command *command)
{
    return reply_session(request, command, 201);
}

static const char *const action_names[] = {"index", "create", "update", "delete"};

/*
 * Elasticsearch ignores unknown actions. Here they are refused: a client relies on them for the
 * time after its death.
 */
static int check_action(struct request *request, yyjson_val *item, bool *ret_source_follows)
{
    for (size_t i = 0; i < COUNT_OF(action_names); i++)
        if (yyjson_obj_size(item) == 1 && yyjson_obj_get(item, action_names[i]) != NULL) {
            *ret_source_follows = strcmp(action_names[i], "delete") != 0;
            return 0;
        }
    return request_refuse(
        request, PROBLEM_PARSING,
        "[on_expire] must hold objects with one action, [index], [create], [update] or [delete], each but "
        "the last kind followed by its source");
}

/* Bulk actions, written as a list of objects: each action, and after it its source. Makes the text of a bulk body. */
static int actions_text(struct request *request, yyjson_val *list, struct buf *text)
{
    size_t i, count;
    yyjson_val *item;
    bool source_follows = false;
    json_arr_foreach (list, i, count, item) {
        int r = 0;
        if (source_follows && yyjson_is_obj(item))
            source_follows = false;
        else
            r = check_action(request, item, &source_follows);
        if (r != 0)
            return r;
        json_write(text, item, DIALECT_7);
        buf_byte(text, '\n');
    }
    if (source_follows)
        return request_refuse(request, PROBLEM_PARSING, "the last action of [on_expire] has no source");
    return 0;
}

/*
 * Whether no index can ever have the name of an action. One that is not there yet may come to be,
 * or is made by the action.
 */
static bool names_nothing(struct request *request, const struct write_item *item)
{
    const struct catalog *catalog = request_catalog(request);
    return catalog_index(catalog, item->index) == NULL && !catalog_has_alias(catalog, item->index) &&
           catalog_check_index_name(item->index, DIALECT_7, request->arena, &request->problem) != 0;
}

/*
 * An error that a bulk request would report for one action refuses all of them: when they run, no
 * client reads a response.
 */
static int check_actions(struct request *request, const struct bulk *bulk)
{
    for (size_t i = 0; i < bulk->count; i++) {
        if (bulk->actions[i].refused.type != PROBLEM_NONE)
            request->problem = bulk->actions[i].refused;
        else if (!names_nothing(request, &bulk->items[i]))
            continue;
        return REQUEST_REFUSED;
    }
    return 0;
}

static int read_actions(struct native_body *body, struct session_command *session)
{
    struct bulk bulk;
    struct bulk_defaults defaults = {.source = SOURCE_FILTER_ALL};
    yyjson_val *list = json_get_lit(body->doc.root, "on_expire");
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (list == NULL || yyjson_is_null(list))
        return 0;
    if (!yyjson_is_arr(list))
        return request_refuse(body->request, PROBLEM_PARSING,
                              "[on_expire] must be a list of bulk actions and their sources");
    if (yyjson_arr_size(list) == 0)
        return 0;
    int r = actions_text(body->request, list, &text);
    struct slice lines = arena_copy(body->request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    if (r != 0 || (r = bulk_parse(body->request, lines, &defaults, &bulk)) != 0 ||
        (r = bulk_validate(body->request, &bulk)) != 0 || (r = check_actions(body->request, &bulk)) != 0)
        return r;
    session->on_expire = bulk.items;
    session->on_expire_count = bulk.count;
    return 0;
}

static const struct body_schema session_form = {"a session", "ttl name on_expire",
                                                "{\"ttl\": \"30s\", \"name\": \"nightly-rename\", \"on_expire\": "
                                                "[{\"delete\": {\"_index\": \"fs\", \"_id\": \"1\"}}]}, "
                                                "each of them optional"};

int handle_session_open(struct request *request)
{
    struct native_body body;
    struct session_command session = {.ttl_us = TTL_DEFAULT_US};
    int r = native_body_parse(request, &session_form, &body);
    if (r != 0 || (r = native_body_time(&body, "ttl", &session.ttl_us)) != 0 ||
        (r = native_body_text(&body, "name", &session.name)) != 0 || (r = read_actions(&body, &session)) != 0 ||
        (r = request_accept(request)) != 0)
        return r;
    if (session.ttl_us < TTL_MIN_US || session.ttl_us > TTL_MAX_US)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[ttl] must be between 1s and 24h");
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    session.id = id_random(&request->api->ids, &command->arena);
    command->session = session;
    return request_submit(request, command, open_done);
}

/* --- Keep alive and close ----------------------------------------------------------------------------------------- */

static int keepalive_done(struct request *request, struct command *command)
{
    return reply_session(request, command, 200);
}

static const struct body_schema keepalive_form = {"a keepalive", "", NULL};

int handle_session_keepalive(struct request *request)
{
    struct native_body body;
    int r = native_body_parse(request, &keepalive_form, &body);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct command *command = command_new(COMMAND_SESSION_KEEPALIVE, DIALECT_7);
    command->session.id = request_part(request, PART_ID);
    return request_submit(request, command, keepalive_done);
}

static int close_done(struct request *request, struct command *command)
{
    struct json_writer writer;
    attachments_look(request->api->attachments, command->session.id);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "session");
    json_string(&writer, request_part(request, PART_ID));
    json_key(&writer, "ended");
    json_bool(&writer, true);
    json_key(&writer, "timestamp");
    json_u64(&writer, command->ts);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

int handle_session_close(struct request *request)
{
    bool force = false, if_detached = false;
    int r = request_bool(request, "force", &force);
    if (r != 0 || (r = request_bool(request, "if_detached", &if_detached)) != 0 || (r = request_accept(request)) != 0)
        return r;
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
    command->session.id = request_part(request, PART_ID);
    command->session.force = force;
    command->session.if_detached = if_detached;
    return request_submit(request, command, close_done);
}

/* --- Actions that were put aside ---------------------------------------------------------------------------------- */

static int aside_done(struct request *request, struct command *command)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "number");
    json_u64(&writer, command->aside.number);
    json_key(&writer, command->aside.retry ? "tried" : "dropped");
    json_bool(&writer, true);
    json_key(&writer, "timestamp");
    json_u64(&writer, command->ts);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int decide_aside(struct request *request, bool again)
{
    uint64_t number;
    struct slice text = request_part(request, PART_ID);
    int r = 0;
    if (!slice_to_u64(text, &number))
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                           "[%.*s] is not the number of a deferred action: GET /_session lists them under [deferred]",
                           SLICE_ARG(text));
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct command *command = command_new(COMMAND_ASIDE, DIALECT_7);
    command->aside = (struct aside_command){.number = number, .retry = again};
    return request_submit(request, command, aside_done);
}

static const struct body_schema retry_form = {"a retry", "", NULL};

int handle_deferred_retry(struct request *request)
{
    struct native_body body;
    int r = native_body_parse(request, &retry_form, &body);
    return r != 0 ? r : decide_aside(request, true);
}

int handle_deferred_drop(struct request *request)
{
    return decide_aside(request, false);
}

/* --- Attach ------------------------------------------------------------------------------------------------------- */

static int attach_done(struct request *request, struct command *command)
{
    return attachments_add(request->api->attachments, request, request_part(request, PART_ID),
                           command->session.attachment, command->ts, command->session.expires_at);
}

int handle_session_attach(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct command *command = command_new(COMMAND_SESSION_ATTACH, DIALECT_7);
    command->session.id = request_part(request, PART_ID);
    command->session.attachment = attachments_number(request->api->attachments);
    return request_submit(request, command, attach_done);
}

/* --- Looking ------------------------------------------------------------------------------------------------------ */

int handle_session_status(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    return status_list_read(request, STATUS_SESSIONS, request_part(request, PART_ID), status_list_reply);
}

static const struct cat_column session_columns[] = {
    {"session", "id", "public number of the session", false, false},
    {"name", "n", "name given by its holder", false, false},
    {"created", "c", "opened", false, false},
    {"expires", "e", "when its lease runs out", false, false},
    {"attached", "a", "whether a connection keeps it alive", false, false},
    {"lock_count", "l,locks", "locks held", true, false},
    {"waiting_count", "w,waiting", "requests that wait for locks", true, false},
    {"transaction_count", "t,transactions", "open transactions", true, false},
    {"ephemeral_count", "d,documents", "ephemeral documents", true, false},
};

static int cat_sessions(struct request *request, struct slice body)
{
    size_t i, count;
    yyjson_val *session;
    struct json_doc doc;
    struct cat_table table;
    int r = json_parse_stored(request->arena, body, &doc);
    if (r != 0)
        return tl_trace(r);
    cat_table_init(&table, session_columns, COUNT_OF(session_columns));
    json_arr_foreach (json_get_lit(doc.root, "sessions"), i, count, session) {
        struct cat_cell *row = cat_table_row(&table, request->arena);
        for (size_t k = 0; k < COUNT_OF(session_columns); k++)
            row[k] = k == 2 || k == 3 ? status_time_cell(request, session, session_columns[k].name)
                                      : status_cell(request, session, session_columns[k].name);
    }
    return cat_table_reply(request, &table);
}

int handle_cat_sessions(struct request *request)
{
    int r = request_accept(request);
    if (r != 0 || cat_table_help(request, session_columns, COUNT_OF(session_columns)))
        return r;
    return status_list_read(request, STATUS_SESSIONS, SLICE_NONE, cat_sessions);
}
