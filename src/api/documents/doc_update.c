/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Update of one document.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/documents/dry_run.h"
#include "api/documents/update_body.h"
#include "core/documents/parse_ahead.h"

/* What the completion needs. In the request's arena. */
struct single_update {
    struct write_options options;
    struct write_item item;
    struct update_body body;
    struct dry_runs runs;
    int32_t retries;
};

/* "fields=a,b" of 5.x; in 7.10 an unknown parameter. */
static void read_fields_param(struct request *request, struct update_body *body)
{
    struct slice text = request_param(request, "fields");
    struct slice *fields = arena_alloc(request->arena, (text.len + 1) * sizeof *fields);
    if (text.data == NULL)
        return;
    body->field_count = 0;
    while (text.len > 0) {
        size_t len = slice_find_byte(text, ',');
        fields[body->field_count++] = slice_make(text.data, len);
        text = slice_from_offset(text, len + 1);
    }
    body->fields = fields;
}

static int update_submit(struct request *request, struct single_update *single, const struct update_ready *ready,
                         struct arena *made);

/* Runs the update of the document as it is, and submits the result. */
static int update_dry_run(struct request *request, struct view view)
{
    struct single_update *single = request->context;
    /* Each run has its own: there may be many. It has no guard: the request is submitted; dry_run_script() reserves. */
    struct arena made = ARENA_INIT;
    struct dry_run run = {.item = &single->item, .view = view, .arena = &made};
    int r = dry_run_script(request, &run);
    request_look_away(request);
    core_overlay_unref(tl_steal(request->overlay)); /* else the write has to copy nodes */
    if (r == 0)
        return update_submit(request, single, &run.ready, &made);
    arena_deinit(&made);
    request->remote_action = "indices:data/write/update[s]";
    return r;
}

/* On a worker. */
static int update_run_outside(struct request *request)
{
    return update_dry_run(request, (struct view){request->api->store, journal_stable(request->api->journal), NULL});
}

/* In a transaction, whose lock on the document keeps the result valid. */
static int update_run_in_transaction(struct request *request)
{
    return update_dry_run(request, request->view);
}

/* By the thread of the completion. */
static int update_read_locked(struct request *request)
{
    return request_work_short(request, update_run_in_transaction);
}

static int update_read(struct request *request)
{
    const struct single_update *single = request->context;
    struct lock_target *target = arena_zalloc(request->arena, sizeof *target);
    *target = (struct lock_target){
        .mode = LOCK_S, .index = single->item.index, .type = single->item.type, .id = single->item.id};
    return request_read_in_transaction(request, target, 1, write_read_wait(single->runs.until_us), update_read_locked);
}

/* The update takes long, or another write came between a dry run and its result. */
static int update_again(struct request *request, struct single_update *single, const struct write_result *result)
{
    if (single->runs.count == 0)
        single->runs = dry_runs_of(single->retries, write_wait_end(&single->options));
    if (!dry_runs_next(&single->runs)) {
        problem_copy(&request->problem, &result->problem, request->arena);
        request->remote_action = "indices:data/write/update[s]";
        return REQUEST_REFUSED;
    }
    return request->transaction.len > 0 ? update_read(request) : request_work_short(request, update_run_outside);
}

static int update_done(struct request *request, struct command *command)
{
    struct single_update *single = request->context;
    const struct write_item *item = &command->write.items[0];
    struct write_result *result = &command->write.results[0];
    if (result->script_long)
        return update_again(request, single, result);
    if (result->outcome == WRITE_FAILED) {
        write_result_problem(request, item, result);
        request->problem = result->problem;
        request->remote_action = "indices:data/write/update[s]";
        return REQUEST_REFUSED;
    }
    struct write_reply_options reply = {.options = &single->options,
                                        .source = &single->body.source,
                                        .fields = single->body.fields,
                                        .field_count = single->body.field_count};
    request->exchange->status = write_result_status(result);
    write_location(request, item, result);
    return write_result_write(request, item, result, &reply, &request->exchange->response);
}

/* `ready`: what a dry run returned, in `made`, which is taken over; NULL: it is for the core to run. */
static int update_submit(struct request *request, struct single_update *single, const struct update_ready *ready,
                         struct arena *made)
{
    struct update_body *body = &single->body;
    body->update.single = true;
    body->update.want_source = body->source.given || body->field_count > 0;
    single->item.update = &body->update;
    single->item.lease = single->options.lease;
    struct command *command = write_command_new(request, &single->options, 1);
    command->write.items[0] = single->item;
    if (ready != NULL) {
        struct write_update *update = arena_alloc(&command->arena, sizeof *update);
        *update = body->update;
        update->ready = *ready;
        if (ready->source.data != NULL)
            update->ready.source = arena_copy(&command->arena, ready->source);
        command->write.items[0].update = update;
        write_item_parse(&command->write.items[0], &command->arena);
        command->owner.timeout_us = write_wait_left(single->runs.until_us);
        arena_deinit(made);
    }
    write_read_ahead(request, command);
    request->context = single;
    return request_submit(request, command, update_done);
}

/* 7.10 takes no versions on updates at all, whatever they are. */
static int refuse_version(struct request *request)
{
    bool asked = request_param(request, "version").data != NULL || request_param(request, "version_type").data != NULL;
    if (request->dialect == DIALECT_5 || !asked)
        return 0;
    return request_refuse(
        request, PROBLEM_ACTION_REQUEST_VALIDATION,
        "Validation Failed: 1: internal versioning can not be used for optimistic concurrency control. "
        "Please use `if_seq_no` and `if_primary_term` instead;");
}

static int read_parameters(struct request *request, struct single_update *single, struct write_params *asked)
{
    bool flag = false;
    int r = refuse_version(request);
    if (r != 0 || (r = write_item_read(request, &single->item, asked)) != 0 ||
        (r = write_options_read(request, &single->options)) != 0 ||
        (r = request_int(request, "retry_on_conflict", &asked->retries)) != 0 ||
        (r = request_bool(request, "doc_as_upsert", &flag)) != 0)
        return r;
    r = update_body_parse(request, request->exchange->body, request->dialect, &single->body);
    if (r != 0)
        return r;
    single->body.update.doc_as_upsert |= flag;
    struct source_filter source;
    if ((r = source_filter_params(request, &source)) != 0)
        return r;
    if (source.given && !(single->body.source.given && request->dialect == DIALECT_7)) /* there the body's counts */
        single->body.source = source;
    read_fields_param(request, &single->body);
    return 0;
}

int handle_doc_update(struct request *request)
{
    struct single_update *single = arena_zalloc(request->arena, sizeof *single);
    struct write_params asked = {0};
    struct validation validation = {.arena = request->arena};
    single->item = WRITE_ITEM_INIT;
    single->item.op = WRITE_UPDATE;
    single->item.update = &single->body.update;
    int r = read_parameters(request, single, &asked);
    if (r != 0)
        return r;
    if (single->body.if_seq_no != SEQ_NO_ANY) {
        single->item.if_seq_no = single->body.if_seq_no;
        single->item.if_primary_term = single->body.if_primary_term;
    }
    if ((r = request_accept(request)) != 0)
        return r;
    write_item_validate(&single->item, &asked, &validation);
    if (single->item.id.len > DOC_ID_BYTES_MAX)
        request->remote_action = "indices:data/write/update[s]"; /* 5.6 finds that out when it writes */
    if ((r = validation_end(&validation, request)) != 0 ||
        (r = write_check_copies(request, &single->options, &single->item, 0)) != 0)
        return r;
    single->retries = asked.retries;
    single->body.update.script_steps = DRY_RUN_STEPS;
    return update_submit(request, single, NULL, NULL);
}
