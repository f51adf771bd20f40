/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: take, release, look.
 */
#include <inttypes.h>

#include "api/request/api_internal.h"
#include "api/request/cat_table.h"
#include "api/request/forward.h"
#include "api/request/handlers.h"
#include "api/request/instant.h"
#include "api/request/native_body.h"
#include "api/owners/lock_list.h"
#include "api/owners/status.h"
#include "api/owners/status_list.h"
#include "base/types.h"
#include "json/each.h"

enum { USUAL_BYTES = 192 }; /* of a command's arena: what one lock of a document takes */

static const char *mode_name(enum lock_mode mode)
{
    return mode == LOCK_X ? "exclusive" : mode == LOCK_U ? "update" : "shared";
}

/* Said only where it is so. */
static void write_missing(struct json_writer *writer, bool index_missing)
{
    if (!index_missing)
        return;
    json_key(writer, "index_missing");
    json_bool(writer, true);
}

static void write_target(struct json_writer *writer, const struct lock_target *target, bool index_missing)
{
    const struct {
        const char *name;
        struct slice text;
    } members[] = {{"index", target->index}, {"path", target->path}, {"type", target->type}, {"id", target->id}};
    json_begin(writer, '{');
    json_key(writer, "mode");
    json_string(writer, slice_from(mode_name(target->mode)));
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (members[i].text.len > 0 || (members[i].text.data != NULL && i != 0 && i != 2)) {
            json_key(writer, members[i].name);
            json_string(writer, members[i].text);
        }
    write_missing(writer, index_missing);
    json_end(writer, '}');
}

/* The session or the transaction that a body or the request itself names. */
static int read_owner(struct native_body *body, struct command_owner *terms)
{
    struct request *request = body->request;
    *terms = (struct command_owner){.session = request->session, .transaction = request->transaction};
    int r = native_body_id(body, "session", &terms->session);
    if (r != 0 || (r = native_body_id(body, "transaction", &terms->transaction)) != 0)
        return r;
    if (terms->session.len == 0 && terms->transaction.len == 0)
        return native_body_missing(body, "its [session]");
    return 0;
}

/* --- POST /_lock -------------------------------------------------------------------------------------------------- */

/* The refusal of a lock that was not granted in time says how long it waited, and how many requests preceded it. */
static int lock_refused(struct request *request, struct command *command)
{
    const struct lock_command *lock = &command->lock;
    struct slice waited = own_duration(request->arena, lock->waited_us);
    request->problem = command->problem;
    if (command->problem.type == PROBLEM_LOCK_WAIT_TIMEOUT)
        problem_details(&request->problem, request->arena, "%.*s,\"waited\":\"%.*s\",\"queue_position\":%zu",
                        SLICE_ARG(command->problem.details), SLICE_ARG(waited), lock->queue_position);
    return REQUEST_REFUSED;
}

static int lock_done(struct request *request, struct command *command)
{
    const struct lock_command *lock = &command->lock;
    struct json_writer writer;
    if (command->problem.type != PROBLEM_NONE)
        return lock_refused(request, command);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "granted");
    json_bool(&writer, true);
    json_key(&writer, "fencing_token");
    json_u64(&writer, lock->fencing_token);
    json_key(&writer, "waited");
    json_string(&writer, own_duration(request->arena, lock->waited_us));
    if (lock->waited_us > 0) {
        json_key(&writer, "queue_position");
        json_u64(&writer, lock->queue_position);
    }
    write_missing(&writer, lock->index_missing != NULL);
    json_key(&writer, "locks");
    json_begin(&writer, '[');
    for (size_t i = 0; i < lock->target_count; i++)
        write_target(&writer, &lock->targets[i], lock->index_missing != NULL && lock->index_missing[i]);
    json_end(&writer, ']');
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* Into the command, texts and all. */
static struct lock_target *copy_targets(struct arena *arena, const struct lock_target *targets, size_t count)
{
    struct lock_target *copy = arena_alloc(arena, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        struct slice *const texts[] = {&copy[i].index, &copy[i].path, &copy[i].type, &copy[i].id};
        copy[i] = targets[i];
        for (size_t k = 0; k < COUNT_OF(texts); k++)
            if (texts[k]->data != NULL)
                *texts[k] = arena_copy(arena, *texts[k]);
    }
    return copy;
}

/*
 * Thousands may wait for one lock: the command has copies of all that it needs, so that the parsed
 * body is not kept meanwhile.
 */
static struct command *lock_command_new(const struct lock_command *lock, const struct command_owner *terms)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    arena_reserve(&command->arena, USUAL_BYTES);
    command->lock = *lock;
    command->owner = *terms;
    if (terms->session.len > 0)
        command->owner.session = arena_copy(&command->arena, terms->session);
    if (terms->transaction.len > 0)
        command->owner.transaction = arena_copy(&command->arena, terms->transaction);
    command->lock.targets = copy_targets(&command->arena, lock->targets, lock->target_count);
    return command;
}

static const struct body_schema lock_form = {"a lock", "session transaction wait locks",
                                             "{\"session\": \"ID\", \"wait\": \"10s\", \"locks\": [{\"mode\": "
                                             "\"exclusive\", \"index\": \"fs\", \"id\": \"1\"}]}, "
                                             "the ID from POST /_session"};

int handle_lock(struct request *request)
{
    struct native_body body;
    struct lock_command lock = {0};
    struct command_owner terms;
    struct arena_mark mark = arena_mark(request->arena);
    int r = native_body_parse(request, &lock_form, &body);
    if (r != 0 || (r = read_owner(&body, &terms)) != 0 ||
        (r = native_body_time(&body, "wait", &terms.timeout_us)) != 0 ||
        (r = native_body_targets(&body, LOCK_NONE, &lock.targets, &lock.target_count)) != 0 ||
        (r = request_accept(request)) != 0 || (r = request_forward_query_txn(request, terms.transaction)) != 0)
        return r;
    if (lock.target_count == 0)
        return native_body_missing(&body, "at least one lock in [locks]");
    struct command *command = lock_command_new(&lock, &terms);
    arena_rewind(request->arena, mark);
    if (terms.timeout_us > 0)
        request->exchange->ops->release_body(request->exchange);
    return request_submit_all(request, command, lock_done);
}

/* --- POST /_unlock ------------------------------------------------------------------------------------------------ */

/* An UNLOCK, which takes several commands if it names many locks. */
struct unlock_request {
    struct divided_targets locks;
    struct command_owner terms;
    uint64_t released; /* so far */
};

static int unlock_done(struct request *request, struct command *command);

static int unlock_next(struct request *request)
{
    const struct unlock_request *unlock = request->context;
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->lock.targets = unlock->locks.targets;
    command->lock.target_count = unlock->locks.named;
    command->owner = unlock->terms;
    return request_submit(request, command, unlock_done);
}

static int unlock_done(struct request *request, struct command *command)
{
    struct unlock_request *unlock = request->context;
    struct json_writer writer;
    unlock->released += command->lock.released;
    if (divided_targets_advance(&unlock->locks, command->lock.done))
        return unlock_next(request);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "released");
    json_u64(&writer, unlock->released);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static const struct body_schema unlock_form = {
    "an unlock", "session transaction locks",
    "{\"session\": \"ID\", \"locks\": [{\"index\": \"fs\", \"id\": \"1\"}]}, without [locks] for all of the session's"};

/*
 * Refuses an empty list and null. A program whose list has become empty would otherwise release all locks of
 * its session, since the command has no targets then.
 */
static int check_unlocked(struct native_body *body)
{
    yyjson_val *locks = json_get_lit(body->doc.root, "locks");
    if (locks == NULL || yyjson_arr_size(locks) > 0 || !(yyjson_is_null(locks) || yyjson_is_arr(locks)))
        return 0;
    return native_body_missing(body, "at least one lock in [locks]");
}

int handle_unlock(struct request *request)
{
    struct native_body body;
    struct unlock_request *unlock = arena_zalloc(request->arena, sizeof *unlock);
    struct lock_target *targets = NULL;
    size_t count = 0;
    int r = native_body_parse(request, &unlock_form, &body);
    if (r != 0 || (r = read_owner(&body, &unlock->terms)) != 0 || (r = check_unlocked(&body)) != 0 ||
        (r = native_body_targets(&body, LOCK_X, &targets, &count)) != 0 || (r = request_accept(request)) != 0 ||
        (r = request_forward_query_txn(request, unlock->terms.transaction)) != 0)
        return r;
    unlock->locks = divided_targets_of(targets, count);
    request->context = unlock;
    return unlock_next(request);
}

/* --- Looking ------------------------------------------------------------------------------------------------------ */

enum { SIZE_MAX_LISTED = 10000 };

static int look_at(struct request *request, lock_list_taker *then)
{
    int32_t size = 0;
    int r = request_int(request, "size", &size);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct lock_list_filter filter = {request_param(request, "index"), request_param(request, "path"), request->view.ts,
                                      (size_t)size};
    if (filter.path.data != NULL && filter.index.len == 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[path] is a directory of an index: name the [index], too");
    if (request_param(request, "size").data != NULL && (size < 1 || size > SIZE_MAX_LISTED))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[size] is the number of resources in a response, from 1 to %d", SIZE_MAX_LISTED);
    return lock_list_read(request, &filter, then);
}

static int inspect_list(struct request *request)
{
    return look_at(request, status_list_reply);
}

int handle_lock_status(struct request *request)
{
    bool past = request_param(request, "as_of").data != NULL || request_param(request, "timestamp").data != NULL;
    return past ? request_read(request, NULL, 0, inspect_list) : inspect_list(request);
}

int handle_lock_events(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_LOCK_EVENTS;
    return request_submit(request, command, status_reply);
}

static const struct cat_column lock_columns[] = {
    {"index", "i",
     "index, empty for the lock on everything; name:a is the name of an index or alias, script:s a stored script",
     false, false},
    {"path", "p", "directory", false, false},
    {"id", "d", "document", false, false},
    {"mode", "m", "shared, update or exclusive", false, false},
    {"state", "st", "held or waiting", false, false},
    {"owner", "o", "session, transaction or write with its public number, or the cleanup of an ended session", false,
     false},
    {"name", "n", "name of the session", false, false},
    {"since", "t", "held or waiting since", false, false},
    {"fencing_token", "ft", "token of the grant", true, false},
};

static struct slice owner_text(struct request *request, yyjson_val *owner)
{
    if (json_get_lit(owner, "cleanup_of") != NULL)
        return arena_printf(request->arena, "cleanup of %.*s",
                            SLICE_ARG(json_slice(json_get_lit(owner, "cleanup_of"))));
    if (json_get_lit(owner, "write") != NULL)
        return arena_printf(request->arena, "write %" PRIu64, yyjson_get_uint(json_get_lit(owner, "write")));
    if (json_get_lit(owner, "transaction") != NULL)
        return arena_printf(request->arena, "transaction %" PRIu64,
                            yyjson_get_uint(json_get_lit(owner, "transaction")));
    return arena_printf(request->arena, "session %" PRIu64, yyjson_get_uint(json_get_lit(owner, "session")));
}

/* Of what names mean: "name:a", "names:*"; no index is called so. */
static struct cat_cell index_cell(struct request *request, yyjson_val *lock)
{
    static const char *const members[] = {"named", "names", "script", "scripts"};
    static const char *const spaces[] = {"name", "names", "script", "scripts"};
    for (size_t i = 0; i < COUNT_OF(spaces); i++) {
        yyjson_val *name = json_get(lock, slice_from(members[i]));
        if (name != NULL)
            return cat_text(arena_printf(request->arena, "%s:%.*s", spaces[i], SLICE_ARG(json_slice(name))));
    }
    return status_cell(request, lock, "index");
}

static void add_lock_rows(struct request *request, yyjson_val *lock, yyjson_val *owners, const char *state,
                          struct cat_table *table)
{
    size_t i, count;
    yyjson_val *owner;
    json_arr_foreach (owners, i, count, owner) {
        struct cat_cell *row = cat_table_row(table, request->arena);
        row[0] = index_cell(request, lock);
        row[1] = status_cell(request, lock, "path");
        row[2] = status_cell(request, lock, "id");
        row[3] = status_cell(request, owner, "mode");
        row[4] = cat_text(slice_from(state));
        row[5] = cat_text(owner_text(request, owner));
        row[6] = status_cell(request, owner, "name");
        row[7] = status_time_cell(request, owner, "since");
        row[8] = status_cell(request, owner, "fencing_token");
    }
}

static int cat_locks_done(struct request *request, struct slice body)
{
    size_t i, count;
    yyjson_val *lock;
    struct json_doc doc;
    struct cat_table table;
    int r = json_parse_stored(request->arena, body, &doc);
    if (r != 0)
        return tl_trace(r);
    cat_table_init(&table, lock_columns, COUNT_OF(lock_columns));
    json_arr_foreach (json_get_lit(doc.root, "locks"), i, count, lock) {
        add_lock_rows(request, lock, json_get_lit(lock, "holders"), "held", &table);
        add_lock_rows(request, lock, json_get_lit(lock, "waiters"), "waiting", &table);
    }
    return cat_table_reply(request, &table);
}

int handle_cat_locks(struct request *request)
{
    int r = request_accept(request);
    if (r != 0 || cat_table_help(request, lock_columns, COUNT_OF(lock_columns)))
        return r;
    return look_at(request, cat_locks_done);
}
