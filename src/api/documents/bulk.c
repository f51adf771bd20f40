/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _bulk: many writes in one request, each by itself or, with ?atomic=true, all or none.
 *
 * A large body of writes that are each by themselves goes to the core in pieces, one after the
 * other, so that the writes of others have their turn in between; its reply is written piece by
 * piece too.
 */

#include "api/request/catalog_growth.h"
#include "api/request/api_internal.h"
#include "api/documents/bulk_parse.h"
#include "api/documents/bulk_scripts.h"
#include "api/request/handlers.h"
#include "api/request/problem_reply.h"
#include "api/request/request_budget.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/documents/parse_ahead.h"

/* The result of a piece that is not the last. Distinct from those of enum request_result. */
enum { BULK_CONTINUES = 100 };
enum { COPIES_STEPS = 200 }; /* of an account, to find the siblings of an item */

/* Fewer items, with results of fewer bytes, are replied to on the thread of the completion. */
enum { INLINE_ITEMS_MAX = 100, INLINE_RESULT_BYTES_MAX = 64 << 10 };

/* What a command returned, until a worker has replied to it. */
struct bulk_returned {
    struct arena arena; /* of the command, which has the rest */
    const struct write_result *results;
    struct problem problem;
    bool rolled_back;
};

/* Limits of a request that may be divided. */
struct bulk_limits {
    size_t body_bytes_max;  /* of a request that is one command */
    size_t piece_items_max; /* of one, too */
    size_t piece_bytes_max; /* sources of a piece; SIZE_MAX: no limit */
    bool shares_wait;       /* all pieces share the time to wait for locks */
};

static const struct bulk_limits autocommit_limits = {
    .body_bytes_max = BULK_WHOLE_BYTES_MAX,
    .piece_items_max = BULK_PIECE_ITEMS_MAX,
    .piece_bytes_max = BULK_PIECE_BYTES_MAX,
};
static const struct bulk_limits transaction_limits = {
    .body_bytes_max = SIZE_MAX,
    .piece_items_max = BULK_TRANSACTION_ITEMS_MAX,
    .piece_bytes_max = SIZE_MAX,
    .shares_wait = true,
};

/* What the completion needs. In the request's arena. */
struct bulk_request {
    struct write_options options;
    struct bulk bulk;
    const struct bulk_limits *limits;
    uint64_t started_ms;
    bool atomic;
    bool in_pieces;
    bool failed;  /* an action has */
    size_t begin; /* of the current piece */
    size_t end;
    struct write_result *results; /* of those of its items that the core sees, when it has postponed some; else NULL */
    size_t result_count;
    size_t resubmitted_max; /* number of postponed items in the next command */
    size_t piece_items_max; /* number of items in the next piece */
    struct problem refusal; /* in a transaction: what the items that are left fail with; PROBLEM_NONE: they are run */
    uint64_t until_us;      /* boot clock: until then items of the piece may wait for locks */
    struct bulk_scripts scripts;
    bool owned;             /* free_made() is registered with the request */
    size_t explained;       /* bytes in failed items that describe the holders of their locks */
    struct bulk_returned returned;
};

static uint64_t monotonic_ms(void)
{
    return clock_boot_us() / TL_MS;
}

/* --- Replies ------------------------------------------------------------------------------------------------------ */

static const char *op_name(enum write_op op)
{
    static const char *const names[] = {"index", "create", "update", "delete"};
    return names[op];
}

/* With `current`: a conflict also says which version and number are there, so that all can be tried again at once. */
static void write_failure(struct request *request, const struct write_item *item, struct write_result *result,
                          bool current, struct buf *buf)
{
    struct json_writer writer;
    json_writer_init(&writer, buf);
    write_result_problem(request, item, result);
    json_begin(&writer, '{');
    json_key(&writer, "_index");
    json_string(&writer, result->index.data != NULL ? result->index : item->index);
    if (!request->form.compatible_8) {
        json_key(&writer, "_type");
        json_string(&writer, item->dialect == DIALECT_5 || item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    }
    json_key(&writer, "_id");
    json_string(&writer, item->id);
    json_key(&writer, "status");
    json_i64(&writer, problem_status(&result->problem));
    if (current && result->conflict != CONFLICT_NONE && result->seq_no >= 0) {
        json_key(&writer, "_version");
        json_i64(&writer, result->version);
        json_key(&writer, "_seq_no");
        json_i64(&writer, result->seq_no);
    }
    json_key(&writer, "error");
    problem_write_item(&writer, &result->problem);
    json_end(&writer, '}');
}

static int write_entry(struct request *request, const struct bulk_request *bulk, const struct write_item *item,
                       const struct bulk_action *action, struct write_result *result, bool rolled_back, struct buf *buf)
{
    int r = 0;
    buf_lit(buf, "{\"");
    buf_slice(buf, slice_from(op_name(item->op)));
    buf_lit(buf, "\":");
    if (result->outcome == WRITE_FAILED) {
        write_failure(request, item, result, rolled_back, buf);
    } else {
        struct write_reply_options reply = {.options = &bulk->options,
                                            .source = &action->source,
                                            .fields = action->fields,
                                            .field_count = action->field_count,
                                            .in_bulk = true};
        r = write_result_write(request, item, result, &reply, buf);
    }
    buf_byte(buf, '}');
    return r;
}

/*
 * What became of each action of the piece: the core's results (NULL: it was not asked), between
 * them those that it never saw; where it refused the piece as a whole, that.
 */
static struct write_result *piece_results(struct request *request, const struct bulk_request *bulk,
                                          const struct write_result *results, const struct problem *refusal)
{
    static const struct problem none = {.type = PROBLEM_NONE};
    if (bulk->results != NULL) { /* refused items included */
        results = bulk->results;
        refusal = &none;
    }
    struct write_result *all = arena_zalloc(request->arena, (bulk->end - bulk->begin + 1) * sizeof *all);
    size_t next = 0;
    for (size_t i = bulk->begin; i < bulk->end; i++) {
        struct write_result *result = &all[i - bulk->begin];
        const struct problem *refused = &bulk->bulk.actions[i].refused;
        if (refused->type == PROBLEM_NONE && refusal->type != PROBLEM_NONE)
            refused = refusal;
        if (refused->type != PROBLEM_NONE) {
            result->outcome = WRITE_FAILED;
            result->problem = *refused;
        } else if (results != NULL) {
            *result = results[next++];
        }
    }
    return all;
}

/* All pieces together describe holders in as many bytes as one command may. */
static void bound_explanation(struct bulk_request *bulk, struct problem *problem)
{
    if (problem->type != PROBLEM_LOCK_WAIT_TIMEOUT)
        return;
    if (bulk->explained > WRITE_EXPLAINED_BYTES_MAX) {
        problem->reason = SLICE_LIT(WRITE_LOCK_IS_HELD);
        problem->details = SLICE_NONE;
    }
    bulk->explained += problem->reason.len + problem->details.len;
}

/* Appends the entries of the piece. With `rolled_back` only those that failed. */
static int reply_piece(struct request *request, struct bulk_request *bulk, struct write_result *results,
                       bool rolled_back)
{
    struct buf *buf = &request->exchange->response;
    for (size_t i = bulk->begin; i < bulk->end; i++) {
        struct write_result *result = &results[i - bulk->begin];
        bulk->failed = bulk->failed || result->outcome == WRITE_FAILED;
        if (rolled_back && (result->outcome != WRITE_FAILED || result->postponed))
            continue; /* postponed: what would have become of it is not known */
        if (result->outcome == WRITE_FAILED)
            bound_explanation(bulk, &result->problem);
        if (buf->len > 0)
            buf_byte(buf, ',');
        struct write_item item = write_item_answered(&bulk->bulk.items[i], result);
        int r = write_entry(request, bulk, &item, &bulk->bulk.actions[i], result, rolled_back, buf);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Puts the head before the entries and the end after them: both are known only now. */
static int reply_end(struct request *request, const struct bulk_request *bulk, bool rolled_back)
{
    struct buf *buf = &request->exchange->response;
    struct slice head = arena_printf(request->arena, "{\"took\":%llu,%s\"errors\":%s,%s\"items\":[",
                                     (unsigned long long)(monotonic_ms() - bulk->started_ms),
                                     bulk->bulk.pipeline_named ? "\"ingest_took\":0," : "",
                                     bulk->failed ? "true" : "false", rolled_back ? "\"rolled_back\":true," : "");
    request->exchange->status = rolled_back ? 409 : 200;
    buf_insert(buf, 0, head);
    buf_lit(buf, "]}");
    return REQUEST_DONE;
}

static int bulk_reply(struct request *request, struct bulk_request *bulk, const struct write_result *results,
                      const struct problem *refusal, bool rolled_back)
{
    int r = reply_piece(request, bulk, piece_results(request, bulk, results, refusal), rolled_back);
    return r != 0 ? r : bulk->end == bulk->bulk.count ? reply_end(request, bulk, rolled_back) : BULK_CONTINUES;
}

/* --- What the core never sees ------------------------------------------------------------------------------------- */

static struct slice shard_key(struct request *request, const struct write_item *item)
{
    return arena_printf(request->arena, "%.*s/%u", SLICE_ARG(item->index), write_item_shard(request, item));
}

/* Items that want more copies than there are fail by themselves, those of a shard together. */
static void refuse_copies(struct request *request, const struct bulk_request *bulk)
{
    struct map siblings = MAP_INIT;
    for (size_t i = 0; i < bulk->bulk.count && !request_budget_stops(request, COPIES_STEPS); i++) {
        struct slice key = shard_key(request, &bulk->bulk.items[i]);
        size_t *count = map_get(&siblings, key);
        if (count == NULL)
            map_put(&siblings, key, count = arena_zalloc(request->arena, sizeof *count));
        (*count)++;
    }
    for (size_t i = 0; i < bulk->bulk.count && !request_budget_stops(request, COPIES_STEPS); i++) {
        const struct write_item *item = &bulk->bulk.items[i];
        const size_t *count = map_get(&siblings, shard_key(request, item));
        if (bulk->bulk.actions[i].refused.type == PROBLEM_NONE &&
            write_check_copies(request, &bulk->options, item, *count) != 0)
            bulk->bulk.actions[i].refused = request->problem;
    }
    map_deinit(&siblings);
}

/* --- The request -------------------------------------------------------------------------------------------------- */

/*
 * Adds an item to the name of a command: its hash depends on the positions of all. So a repetition
 * that submits other items of the piece, since other ones are refused, runs nothing again.
 */
static void name_item(struct write_request *named, uint64_t position)
{
    uint64_t hashes[] = {named->hash, position};
    named->hash = slice_hash(slice_make(hashes, sizeof hashes));
}

/*
 * The postponed items of a named request are resubmitted up to the next multiple of this. So the
 * log has each of them at most so often, and once more in the first command. And a command begins
 * at each multiple, whatever the commands before did: a request of which all items failed, as far as it
 * came, is run again by a repetition, which may divide it elsewhere.
 */
enum { NAMED_BLOCK_ITEMS = 32 };

/*
 * Returns: whether a command with postponed items, of which the first is at `first`, ends before
 * `position`.
 */
static bool ends_before(const struct request *request, size_t first, size_t position)
{
    return request->named.id.len > 0 && position / NAMED_BLOCK_ITEMS != first / NAMED_BLOCK_ITEMS;
}

/* Whether a command with postponed items, of which the first of `count` is at `first`, ends before the item. */
static bool ends_at(const struct request *request, const struct bulk_request *bulk, size_t count, size_t first,
                    size_t number)
{
    if (bulk->results == NULL || bulk->atomic || count == 0)
        return false;
    return count == bulk->resubmitted_max || ends_before(request, first, number);
}

/* Whether the request has other commands than the one for the piece, or for its postponed items. */
static bool is_divided(const struct bulk_request *bulk)
{
    return !bulk->atomic && (bulk->begin > 0 || bulk->end < bulk->bulk.count || bulk->results != NULL);
}

/* Whether the result of a dry run is parsed ahead. An atomic request has those of all its items. */
static bool parses_ready(const struct bulk_request *bulk, const struct write_item *item, size_t *io_bytes)
{
    *io_bytes += item->update->ready.source.len;
    return !bulk->atomic || *io_bytes <= BULK_PARSE_BYTES_MAX;
}

/* The items of the piece that the core gets to see, in the command's arena. Returns: how many. */
static size_t items_for_core(struct request *request, struct command *command, const struct bulk_request *bulk,
                             bool parse)
{
    struct write_item *items = arena_alloc(&command->arena, (bulk->end - bulk->begin + 1) * sizeof *items);
    size_t count = 0, seen = 0, first = bulk->begin, ready_bytes = 0;
    command->arena.guard = request->arena->guard; /* the request is asked for while it has not been submitted */
    for (size_t i = bulk->begin; i < bulk->end && !request_budget_refused(request); i++) {
        if (bulk->bulk.actions[i].refused.type != PROBLEM_NONE)
            continue;
        if (bulk->results != NULL && !bulk->results[seen++].postponed)
            continue;
        first = count == 0 ? i : first;
        if (ends_at(request, bulk, count, first, i))
            break;
        items[count] = bulk->bulk.items[i];
        bulk_scripts_limit(request, &bulk->scripts, bulk->bulk.actions[i].run, &command->arena, &items[count]);
        if (items[count].update == NULL ? parse : parses_ready(bulk, &items[count], &ready_bytes))
            write_item_parse(&items[count], &command->arena);
        if (count == 0) /* a piece has one name, whichever of its items are refused */
            command->write.request.part = bulk->results == NULL || bulk->atomic ? bulk->begin : i;
        name_item(&command->write.request, i);
        count++;
    }
    command->arena.guard = NULL;
    command->write.items = items;
    command->write.request.divided = request->named.id.len > 0 && is_divided(bulk);
    return count;
}

static bool continues_wait(const struct bulk_request *bulk)
{
    return bulk->results != NULL || (bulk->limits->shares_wait && bulk->begin > 0);
}

/*
 * Begins the next piece, after the current one. Since items that the core postpones are logged twice,
 * the pieces after that have about as many as it ran, and become larger again. Not those of a named
 * request: its repetition must have the same ones.
 */
static void next_piece(struct request *request, struct bulk_request *bulk)
{
    size_t bytes = 0, more = bulk->piece_items_max + bulk->piece_items_max / 16 + 1;
    size_t most = bulk->limits->piece_items_max, bytes_max = bulk->limits->piece_bytes_max;
    if (bulk->results != NULL)
        return; /* it continues with the postponed items */
    bulk->piece_items_max = request->named.id.len > 0 || more > most ? most : more;
    bulk->begin = bulk->end;
    if (!continues_wait(bulk))
        bulk->until_us = write_wait_end(&bulk->options);
    if (!bulk->in_pieces)
        bulk->end = bulk->bulk.count;
    while (bulk->end < bulk->bulk.count && bulk->end - bulk->begin < bulk->piece_items_max && bytes < bytes_max)
        bytes += bulk->bulk.items[bulk->end++].source.len;
}

static int bulk_done(struct request *request, struct command *command);

/*
 * Fails the postponed items with the refusal in request->problem, and begins to answer the piece.
 * Returns: as bulk_reply().
 */
static int refuse_postponed(struct request *request, struct bulk_request *bulk)
{
    static const struct problem none = {.type = PROBLEM_NONE};
    for (size_t i = 0; i < bulk->result_count; i++)
        if (bulk->results[i].postponed)
            bulk->results[i] = (struct write_result){.outcome = WRITE_FAILED, .problem = request->problem};
    request->problem = none;
    int r = bulk_reply(request, bulk, NULL, &none, false);
    bulk->results = NULL;
    return r;
}

/* Fails all items that have not been begun with the refusal in request->problem. Returns: REQUEST_DONE; fatal codes. */
static int refuse_rest(struct request *request, struct bulk_request *bulk)
{
    struct problem refusal = request->problem;
    int r = bulk->results != NULL ? refuse_postponed(request, bulk) : BULK_CONTINUES;
    request->problem = (struct problem){.type = PROBLEM_NONE};
    if (r != BULK_CONTINUES)
        return r;
    bulk->begin = bulk->end;
    bulk->end = bulk->bulk.count;
    return bulk_reply(request, bulk, NULL, &refusal, false);
}

static void free_made(struct request *request, void *made)
{
    struct bulk_request *bulk = made;
    (void)request;
    bulk_scripts_deinit(&bulk->scripts);
    arena_deinit(&bulk->returned.arena);
}

static void own_made(struct request *request, struct bulk_request *bulk)
{
    if (!bulk->owned)
        request_own(request, free_made, bulk);
    bulk->owned = true;
}

/* Returns: the view that a script outside of the core reads. */
static struct view view_for_scripts(const struct request *request)
{
    if (request->transaction.len > 0)
        return request->view;
    return (struct view){request->api->store, journal_stable(request->api->journal), NULL};
}

/*
 * Runs the scripts that the core has left to others. Returns: 0; REQUEST_REFUSED: the request has ended; fatal codes.
 */
static int run_scripts(struct request *request, struct bulk_request *bulk)
{
    size_t seen = 0;
    int r = 0;
    if (bulk->results == NULL)
        return 0;
    for (size_t i = bulk->begin; i < bulk->end && r == 0; i++) {
        struct bulk_action *action = &bulk->bulk.actions[i];
        if (action->refused.type != PROBLEM_NONE)
            continue;
        struct write_result *result = &bulk->results[seen++];
        if (!result->postponed || !result->script_long || action->run->in_core)
            continue;
        r = request_budget_check_reply(request); /* nor does a guard count what scripts have returned: see below */
        if (r == 0)
            r = bulk_scripts_run(request, &bulk->scripts, action->run, &bulk->bulk.items[i], view_for_scripts(request),
                                 result);
    }
    return r;
}

/* As run_scripts(); frees the snapshot of its transaction, of which the write would have to copy nodes else. */
static int run_scripts_outside(struct request *request, struct bulk_request *bulk)
{
    int r = run_scripts(request, bulk);
    if (request->overlay == NULL && request->view.ts == 0)
        return r;
    request_look_away(request);
    core_overlay_unref(tl_steal(request->overlay));
    return r;
}

/* Whether the sources of a piece are parsed ahead of the core. The bytes of one in a transaction have no limit. */
static bool parses_ahead(const struct request *request, const struct bulk_request *bulk)
{
    bool limited = bulk->in_pieces && bulk->limits->piece_bytes_max < SIZE_MAX;
    return limited || request->exchange->body.len <= BULK_PARSE_BYTES_MAX;
}

/* Submits the command of a piece, if there is memory for the indices and fields that it may make. */
static int submit_command(struct request *request, struct bulk_request *bulk, struct command *command)
{
    bool first = bulk->begin == 0 && bulk->results == NULL;
    if (bulk->atomic || first || catalog_growth_reserve(request, command) == 0)
        return request_submit_all(request, command, bulk_done);
    command_free(command);
    if (bulk->results == NULL)
        bulk->end = bulk->begin; /* nothing of it has been begun */
    return refuse_rest(request, bulk);
}

static int submit_piece(struct request *request)
{
    static const struct problem none = {.type = PROBLEM_NONE};
    struct bulk_request *bulk = request->context;
    if (bulk->refusal.type != PROBLEM_NONE) {
        request->problem = bulk->refusal;
        return refuse_rest(request, bulk);
    }
    int r = run_scripts_outside(request, bulk);
    if (r != 0)
        return r == REQUEST_REFUSED && !bulk->atomic ? refuse_rest(request, bulk) : r;
    r = BULK_CONTINUES;
    while (r == BULK_CONTINUES) {
        /*
         * No guard counts what earlier commands have left: mappings, and their part of the reply,
         * which is as long as their texts and sources are, whatever the body's length.
         */
        if ((bulk->results != NULL || bulk->end > 0) && request_budget_check_reply(request) != 0)
            return bulk->atomic ? REQUEST_REFUSED : refuse_rest(request, bulk);
        next_piece(request, bulk);
        struct command *command = write_command_new(request, &bulk->options, 0);
        if (continues_wait(bulk))
            command->owner.timeout_us = write_wait_left(bulk->until_us);
        command->write.atomic = bulk->atomic;
        command->write.item_count = items_for_core(request, command, bulk, parses_ahead(request, bulk));
        if (command->write.item_count == bulk->end - bulk->begin || (!bulk->atomic && command->write.item_count > 0))
            return submit_command(request, bulk, command);
        command_free(command); /* nothing is left to do, or not all of it can be done */
        if (request_budget_stops(request, (bulk->end - bulk->begin) * COPIES_STEPS))
            return request_budget_refuse(request);
        r = bulk_reply(request, bulk, NULL, &none, bulk->atomic);
        bulk->results = NULL; /* all that was postponed has failed */
    }
    return r;
}

static struct write_result copy_of(struct arena *arena, const struct write_result *result)
{
    struct write_result copy = *result;
    copy.index = arena_copy(arena, result->index);
    copy.type = arena_copy(arena, result->type);
    copy.index_uuid = arena_copy(arena, result->index_uuid);
    copy.source = result->source.data == NULL ? SLICE_NONE : arena_copy(arena, result->source);
    copy.routing = result->routing.data == NULL ? SLICE_NONE : arena_copy(arena, result->routing);
    copy.id = result->id.data == NULL ? SLICE_NONE : arena_copy(arena, result->id);
    if (result->problem.type != PROBLEM_NONE)
        problem_copy(&copy.problem, &result->problem, arena);
    return copy;
}

/* Returns: the first postponed item, if its update takes long or its result is of another document; else NULL. */
static const struct write_item *stopped_item(const struct write_command *write)
{
    for (size_t i = 0; i < write->item_count && write->postponed_count > 0; i++)
        if (write->results[i].postponed)
            return write->results[i].script_long ? &write->items[i] : NULL;
    return NULL;
}

/* Counts the steps of a command's scripts; those of one that was stopped count when it runs outside. */
static void count_steps(struct bulk_request *bulk, const struct write_command *write)
{
    const struct write_item *item = stopped_item(write);
    bool stopped = item != NULL && !item->update->ready.given && !write->results[item - write->items].update_large;
    uint64_t again = stopped ? item->update->script_steps : 0;
    bulk->scripts.steps_taken += write->script_steps - (again < write->script_steps ? again : write->script_steps);
}

/* --- Attempts of an atomic request -------------------------------------------------------------------------------- */

/* Returns: the key of the document of an item. */
static struct slice document_key(const struct write_item *item, const struct write_result *result, struct buf *buf)
{
    buf_clear(buf);
    buf_varint(buf, result->index.len);
    buf_slice(buf, result->index);
    buf_varint(buf, result->type.len);
    buf_slice(buf, result->type);
    buf_slice(buf, item->id);
    return buf_as_slice(buf);
}

/* The run of the script of an action. */
static struct script_run *run_of(struct request *request, struct bulk_request *bulk, struct bulk_action *action)
{
    own_made(request, bulk);
    return bulk_scripts_run_of(request, &bulk->scripts, &action->run, action->asked.retries, bulk->until_us);
}

/*
 * Whether an item of an attempt has failed, whatever becomes of the items whose scripts take long. `any`: there is one
 * before it, whose effect it may need. A conflict is about its own document alone; `unknown`: that is one that such an
 * item writes.
 */
static bool has_failed(const struct write_result *result, bool any, bool unknown)
{
    return result->outcome == WRITE_FAILED && (!any || (result->conflict != CONFLICT_NONE && !unknown));
}

/*
 * Finds the items that failed only since their scripts take long, and postpones them; and those that failed after one
 * of them, since they may need its effect. Scripts for a document that an earlier item writes have to run in the core:
 * bulk_scripts.h. Returns: whether an item has failed otherwise, so that there is no next attempt.
 */
static bool postpone_long(struct request *request, struct bulk_request *bulk, struct write_command *write)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct map written = MAP_INIT; /* sets of documents: those of earlier items, */
    struct map unknown = MAP_INIT; /* and of them those of postponed ones: what these make of them is not known */
    bool failed = false, any = false;
    for (size_t i = 0; i < write->item_count; i++) {
        struct write_result *result = &write->results[i];
        struct slice key = document_key(&write->items[i], result, &buf);
        bool is_written = map_get(&written, key) != NULL, is_unknown = map_get(&unknown, key) != NULL;
        bool is_long = bulk_scripts_takes_long(&write->items[i], result);
        if (is_long || (is_unknown && write->items[i].update != NULL))
            run_of(request, bulk, &bulk->bulk.actions[bulk->begin + i])->in_core = is_written;
        any = any || is_long;
        bool fails = !is_long && has_failed(result, any, is_unknown);
        result->postponed = result->outcome == WRITE_FAILED && !fails;
        failed = failed || fails;
        map_put(&written, key, result);
        if (result->postponed)
            map_put(&unknown, key, result);
    }
    map_deinit(&written);
    map_deinit(&unknown);
    buf_deinit(&buf);
    return failed;
}

/*
 * Keeps which items of an attempt take long, in place of what an attempt before has left. If others have failed, that
 * is the reply: what would become of those that are postponed is not known.
 * Returns: whether there is to be another attempt.
 */
static bool keep_attempt(struct request *request, struct bulk_request *bulk, struct write_command *write)
{
    struct write_result *kept = bulk->results;
    bool any = false;
    bulk->results = NULL;
    for (size_t i = 0; write->rolled_back && i < write->item_count && !any; i++)
        any = write->results[i].script_long;
    if (!any || postpone_long(request, bulk, write))
        return false;
    bulk->results = kept != NULL ? kept : arena_alloc(request->arena, (write->item_count + 1) * sizeof *kept);
    bulk->result_count = write->item_count;
    for (size_t i = 0; i < write->item_count; i++) {
        bulk->results[i] = (struct write_result){.postponed = true};
        if (!bulk_scripts_takes_long(&write->items[i], &write->results[i]))
            continue;
        bulk->results[i] = write->results[i];
        bulk_scripts_stop(bulk->bulk.actions[bulk->begin + i].run, &bulk->results[i]);
    }
    return true;
}

/* --- Pieces of others --------------------------------------------------------------------------------------------- */

/*
 * Keeps a command's result of an item that was postponed before. If it is postponed for its script again, that is run
 * next. Else it is not, even if an earlier command stopped it: only the result of one script is kept, so it would undo
 * that of the item that was stopped last.
 */
static void keep_result(struct request *request, struct bulk_request *bulk, struct bulk_action *action,
                        const struct write_result *from, struct write_result *result)
{
    if (!from->postponed) {
        *result = copy_of(request->arena, from);
    } else if (from->script_long) {
        *result = *from;
        bulk_scripts_stop(run_of(request, bulk, action), result);
    } else {
        result->script_long = false;
    }
}

/* Returns: the number of the next action that the core gets to see. */
static size_t next_seen(const struct bulk_request *bulk, size_t number)
{
    while (bulk->bulk.actions[number].refused.type != PROBLEM_NONE)
        number++;
    return number;
}

/*
 * Keeps the results of a command that postponed items, or that has processed postponed ones.
 * Returns: whether items of the piece are still to be submitted.
 */
static bool keep_results(struct request *request, struct bulk_request *bulk, const struct command *command)
{
    const struct write_command *write = &command->write;
    bool refused = command->problem.type != PROBLEM_NONE;
    size_t next = 0, open = 0, number = bulk->begin;
    count_steps(bulk, write);
    /* A named request is divided at the same items again: NAMED_BLOCK_ITEMS. */
    bulk->resubmitted_max = request->named.id.len > 0 ? SIZE_MAX : write_resubmitted_max(write);
    /* The rest of a piece says nothing about the next one, and neither does a script that takes long. */
    if (write->postponed_count > 0 && bulk->results == NULL && stopped_item(write) == NULL)
        bulk->piece_items_max = (write->item_count - write->postponed_count) / 8 * 7;
    if (bulk->results == NULL && (refused || write->postponed_count == 0))
        return false;
    if (bulk->results == NULL) {
        bulk->results = arena_zalloc(request->arena, (write->item_count + 1) * sizeof *bulk->results);
        bulk->result_count = write->item_count;
        for (size_t i = 0; i < write->item_count; i++)
            bulk->results[i].postponed = true;
    }
    for (size_t i = 0; i < bulk->result_count; i++, number++) {
        struct write_result *result = &bulk->results[i];
        number = next_seen(bulk, number);
        if (!result->postponed)
            continue;
        if (refused) {
            *result = (struct write_result){.outcome = WRITE_FAILED};
            problem_copy(&result->problem, &command->problem, request->arena);
        } else if (next < write->item_count) {
            keep_result(request, bulk, &bulk->bulk.actions[number], &write->results[next], result);
        } else {
            result->script_long = false;
        }
        next++; /* the command may have had only the first ones */
        open += result->postponed;
    }
    return open > 0;
}

/*
 * Whether the transaction of the request was rolled back, also with what earlier commands of the
 * request had done: for a deadlock, or in between.
 */
static bool was_rolled_back(const struct request *request, const struct command *command)
{
    return request->transaction.len > 0 &&
           (command->problem.type == PROBLEM_DEADLOCK_DETECTED || command->problem.type == PROBLEM_TRANSACTION_ABORTED);
}

/*
 * Notes why a transaction takes no more of the request: its command was refused, or ended for a limit of the
 * transaction, which fails all items from there on.
 */
static void note_refusal(struct request *request, struct bulk_request *bulk, const struct command *command)
{
    const struct write_command *write = &command->write;
    const struct problem *problem = &command->problem;
    if (request->transaction.len == 0 || bulk->atomic)
        return;
    if (problem->type == PROBLEM_NONE && write->item_count > 0)
        problem = &write->results[write->item_count - 1].problem;
    if (problem == &command->problem || problem->type == PROBLEM_TRANSACTION_TOO_LARGE)
        problem_copy(&bulk->refusal, problem, request->arena);
}

/* By the thread of the completion. */
static int submit_read(struct request *request)
{
    return request_work_short(request, submit_piece);
}

/*
 * Submits the postponed items on a worker, which first runs the scripts that take long. In a transaction they read
 * through it.
 */
static int submit_later(struct request *request, struct bulk_request *bulk)
{
    struct lock_target *targets = NULL;
    size_t seen = 0, count = 0;
    if (request->transaction.len > 0)
        targets = arena_zalloc(request->arena, (bulk->result_count + 1) * sizeof *targets);
    for (size_t i = bulk->begin; i < bulk->end && targets != NULL; i++) {
        const struct write_item *item = &bulk->bulk.items[i];
        if (bulk->bulk.actions[i].refused.type != PROBLEM_NONE)
            continue;
        const struct write_result *result = &bulk->results[seen++];
        if (result->postponed && result->script_long)
            targets[count++] =
                (struct lock_target){.mode = LOCK_S, .index = item->index, .type = item->type, .id = item->id};
    }
    if (count == 0)
        return request_work_short(request, submit_piece);
    return request_read_in_transaction(request, targets, count, write_read_wait(bulk->until_us), submit_read);
}

static int reply_returned(struct request *request)
{
    struct bulk_request *bulk = request->context;
    struct bulk_returned *returned = &bulk->returned;
    int r = bulk_reply(request, bulk, returned->results, &returned->problem, returned->rolled_back);
    bulk->results = NULL;
    arena_deinit(&returned->arena);
    return r == BULK_CONTINUES ? submit_piece(request) : r;
}

/*
 * Leaves the reply to a worker: others wait for the thread of the completion. The command, which is freed, gives up its
 * arena with the results.
 */
static int reply_later(struct request *request, struct bulk_request *bulk, struct command *command)
{
    bulk->returned =
        (struct bulk_returned){command->arena, command->write.results, command->problem, command->write.rolled_back};
    command->arena = ARENA_INIT;
    own_made(request, bulk);
    return request_work_short(request, reply_returned);
}

/* Whether a reply takes a while. Attachments of a command are freed with it, and are stored in its arena. */
static bool replies_later(const struct bulk_request *bulk, const struct command *command)
{
    return command->release_attached == NULL &&
           (bulk->end < bulk->bulk.count || bulk->end - bulk->begin > INLINE_ITEMS_MAX ||
            command->write.result_bytes > INLINE_RESULT_BYTES_MAX);
}

/*
 * What refuses the first piece as a whole refuses the request; a later one, all that has not been done
 * yet. What rolls the transaction back undoes the pieces before, so that it refuses the request, too.
 */
static int bulk_done(struct request *request, struct command *command)
{
    struct bulk_request *bulk = request->context;
    bool first = bulk->begin == 0 && (bulk->results == NULL || bulk->atomic);
    if (command->problem.type != PROBLEM_NONE && (first || was_rolled_back(request, command))) {
        buf_clear(&request->exchange->response);
        request->problem = command->problem;
        return REQUEST_REFUSED;
    }
    bulk_scripts_explain_limit(&bulk->scripts, command);
    note_refusal(request, bulk, command);
    if (bulk->atomic ? keep_attempt(request, bulk, &command->write) : keep_results(request, bulk, command))
        return submit_later(request, bulk);
    if (command->problem.type != PROBLEM_NONE && bulk->results == NULL)
        bulk->end = bulk->bulk.count;
    if (replies_later(bulk, command))
        return reply_later(request, bulk, command);
    int r = bulk_reply(request, bulk, command->write.results, &command->problem, command->write.rolled_back);
    bulk->results = NULL;
    return r == BULK_CONTINUES ? request_work_short(request, submit_piece) : r;
}

/* Whether the request is too large for one command, and so is divided where it may be. */
static bool is_large(const struct request *request, const struct bulk_request *bulk)
{
    return request->exchange->body.len > bulk->limits->body_bytes_max ||
           bulk->bulk.count > bulk->limits->piece_items_max;
}

static int bulk_submit(struct request *request, struct bulk_request *bulk)
{
    bulk->limits = request->transaction.len > 0 ? &transaction_limits : &autocommit_limits;
    bulk->in_pieces = !bulk->atomic && is_large(request, bulk);
    bulk->failed = false;
    bulk->begin = bulk->end = 0;
    bulk->results = NULL;
    bulk->piece_items_max = bulk->limits->piece_items_max;
    bulk_scripts_init(&bulk->scripts, request, bulk->atomic);
    request->context = bulk;
    return submit_piece(request);
}

static int read_defaults(struct request *request, struct bulk_defaults *defaults, bool *ret_atomic)
{
    *defaults = (struct bulk_defaults){.index = request_part(request, PART_INDEX),
                                       .type = request_part(request, PART_TYPE),
                                       .routing = request_param(request, "routing"),
                                       .pipeline = request_param(request, "pipeline"),
                                       .lease = request_param(request, "lease")};
    if (defaults->type.len == 0)
        defaults->type = request_param(request, "type");
    if (defaults->index.data == NULL)
        defaults->index = request_param(request, "index");
    if (slice_is(defaults->type, "_doc"))
        defaults->type = SLICE_NONE;
    int r = source_filter_params(request, &defaults->source);
    if (r != 0 || (r = request_bool(request, "require_alias", &defaults->require_alias)) != 0)
        return r;
    return request_bool(request, "atomic", ret_atomic);
}

static int bulk_run(struct request *request)
{
    struct bulk_request *bulk = arena_alloc(request->arena, sizeof *bulk);
    struct bulk_defaults defaults;
    *bulk = (struct bulk_request){.started_ms = monotonic_ms()};
    int r = read_defaults(request, &defaults, &bulk->atomic);
    if (r != 0 || (r = write_options_read(request, &bulk->options)) != 0)
        return r;
    if (request->exchange->body.len == 0)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    if ((r = bulk_parse(request, request->exchange->body, &defaults, &bulk->bulk)) != 0 ||
        (r = request_accept(request)) != 0 || (r = bulk_validate(request, &bulk->bulk)) != 0)
        return r;
    if (bulk->options.active_shards == ACTIVE_SHARDS_ALL || bulk->options.active_shards > 1)
        refuse_copies(request, bulk);
    return bulk_submit(request, bulk);
}

int handle_bulk(struct request *request)
{
    return bulk_run(request);
}
