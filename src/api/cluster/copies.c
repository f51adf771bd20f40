/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the documents elsewhere: the state that each reports (`tidelock replicate`), and its lag.
 *
 *     PUT /_changes/_consumers/{name} ─▶ COPY_REPORT, in the catalog ─▶ GET /_changes/_consumers, GET /_cat/copies
 *
 * The lag is not reported by the copy, but read from the feed: the changes after its place, and the
 * age of the oldest of them. So it is right for a copy that makes no progress, too, and for one
 * that has ended.
 */
#include <inttypes.h>

#include "api/request/api_internal.h"
#include "api/request/cat_table.h"
#include "api/request/handlers.h"
#include "api/request/instant.h"
#include "api/request/native_body.h"
#include "base/clock.h"
#include "core/catalog/catalog.h"
#include "core/feed/feed.h"
#include "core/feed/feed_read.h"
#include "json/each.h"
#include "json/json.h"

enum {
    LAG_CHANGES_MAX = 10000, /* are counted; more are "more than that" */
    STEPS_OF_CHANGE = 50,
};

/* A copy that reported nothing for longer is gone: it reports every half a minute, at least. */
#define SILENT_US (90 * TL_SECOND)

/* The newest timestamp is old while nothing is written; ages count up to the present. */
static tl_ts present_ts(struct request *request)
{
    tl_ts stable = journal_stable(request->api->journal), clock = clock_wall_us();
    return clock > stable ? clock : stable;
}

/* --- Reports ------------------------------------------------------------------------------------------------------ */

static const struct body_schema copy_form = {
    "a consumer's", "target state place sent refused suspects mended verified_at verified_differences",
    "{\"target\": \"http://es:9200\", \"state\": \"following\", \"place\": 1795440085045274}"};

static const char *const states[] = {"copying", "following", "ended"};

/* Members that are numbers, in the order in which they are shown. */
static const char *const numbers[] = {
    "place", "sent", "refused", "suspects", "mended", "verified_at", "verified_differences"};

static bool is_state(struct slice text)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (slice_is(text, states[i]))
            return true;
    return false;
}

static int read_numbers(struct native_body *body, struct json_writer *writer)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        yyjson_val *value = json_get(body->doc.root, slice_from(numbers[i]));
        if (value == NULL || yyjson_is_null(value))
            continue;
        if (!yyjson_is_uint(value) || yyjson_get_uint(value) > TL_TS_MAX)
            return request_refuse(body->request, PROBLEM_PARSING, "[%s] of %s request must be a whole number",
                                  numbers[i], body->call);
        json_key(writer, numbers[i]);
        json_u64(writer, yyjson_get_uint(value));
    }
    return 0;
}

static int copy_done(struct request *request, struct command *command)
{
    (void)command;
    return reply_acknowledged(request);
}

/* The first report has all members, later ones the changed members. */
static int check_report(struct native_body *body, struct slice target, struct slice state)
{
    struct request *request = body->request;
    bool known = catalog_object(request_catalog(request), CATALOG_COPIES, request_part(request, PART_NAME)) != NULL;
    if (target.data == NULL && !known)
        return native_body_missing(body, "its [target], such as the address of a copy");
    if (state.data != NULL && !is_state(state))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[state] of a consumer's request must be [copying], [following] or [ended], got [%.*s]",
                              SLICE_ARG(state));
    if (state.data == NULL && !known)
        return native_body_missing(body, "its [state]: [copying], [following] or [ended]");
    return 0;
}

static int write_report(struct native_body *body, struct buf *to)
{
    struct slice target = SLICE_NONE, state = SLICE_NONE;
    struct json_writer writer;
    int r = native_body_id(body, "target", &target);
    if (r != 0 || (r = native_body_id(body, "state", &state)) != 0 || (r = check_report(body, target, state)) != 0)
        return r;
    json_writer_init(&writer, to);
    json_begin(&writer, '{');
    if (target.data != NULL) {
        json_key(&writer, "target");
        json_string(&writer, target);
    }
    if (state.data != NULL) { /* reported by the copy itself, not by a verification */
        json_key(&writer, "state");
        json_string(&writer, state);
        json_key(&writer, "reported_at");
        json_u64(&writer, present_ts(body->request));
    }
    r = read_numbers(body, &writer);
    json_end(&writer, '}');
    return r;
}

int handle_copy_report(struct request *request)
{
    struct native_body body;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    int r = native_body_parse(request, &copy_form, &body);
    if (r == 0)
        r = write_report(&body, &text);
    if (r == 0)
        r = request_accept(request);
    if (r == 0) {
        struct command *command = command_new(COMMAND_COPY_REPORT, request->dialect);
        command->object.name = request_part(request, PART_NAME);
        command->object.body = arena_copy(&command->arena, buf_as_slice(&text));
        r = request_submit(request, command, copy_done);
    }
    buf_deinit(&text);
    return r;
}

int handle_copy_forget(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct command *command = command_new(COMMAND_COPY_FORGET, request->dialect);
    command->object.name = request_part(request, PART_NAME);
    return request_submit(request, command, copy_done);
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

/* The reported state of a copy, and its lag. */
struct copy {
    struct slice name;
    yyjson_val *report;
    tl_ts place, reported;
    const char *state; /* as reported; "silent": no report for SILENT_US */
    bool known;        /* the feed reaches back to its place, so the rest is known */
    bool more;         /* than `changes` */
    uint64_t changes, lag_us;
};

/* Returns: 0; fatal codes. */
static int find_lag(struct request *request, struct copy *copy)
{
    struct feed_scan *scan = NULL;
    struct feed_record record;
    tl_ts from, oldest = 0;
    copy->known = copy->place >= request->view.ts;
    if (copy->known || copy->place == 0)
        return 0;
    int r = feed_scan_new(request->api->store, copy->place, request->view.ts, &scan, &from);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    while (!copy->more && (r = feed_scan_next(scan, &record)) == 0) {
        struct slice rest = record.changes;
        struct feed_change change;
        oldest = oldest == 0 ? record.ts : oldest;
        while (copy->changes < LAG_CHANGES_MAX && feed_change_take(&rest, &change))
            copy->changes++;
        copy->more = rest.len > 0 || !account_take(&request->account, STEPS_OF_CHANGE * (1 + copy->changes));
    }
    feed_scan_free(scan);
    copy->known = true;
    tl_ts clock = present_ts(request);
    copy->lag_us = oldest == 0 || clock < oldest ? 0 : clock - oldest;
    return r < 0 ? tl_trace(r) : 0;
}

static int read_copy(struct request *request, const struct catalog_object *object, struct copy *ret_copy)
{
    struct json_doc doc;
    *ret_copy = (struct copy){.name = object->name};
    int r = json_parse_stored(request->arena, object->body, &doc);
    if (r != 0)
        return tl_trace(r < 0 ? r : TL_ERR_CORRUPT);
    ret_copy->report = doc.root;
    ret_copy->place = yyjson_get_uint(json_get_lit(doc.root, "place"));
    /* Earlier versions named it "told", and do so in a cluster whose servers are not all updated yet. */
    uint64_t reported = yyjson_get_uint(json_get_lit(doc.root, "reported_at"));
    uint64_t told = yyjson_get_uint(json_get_lit(doc.root, "told"));
    ret_copy->reported = reported > told ? reported : told;
    ret_copy->state = yyjson_get_str(json_get_lit(doc.root, "state"));
    bool ended = ret_copy->state != NULL && strcmp(ret_copy->state, "ended") == 0;
    if (!ended && ret_copy->reported + SILENT_US < present_ts(request))
        ret_copy->state = "silent";
    return find_lag(request, ret_copy);
}

static void write_copy(struct request *request, const struct copy *copy, struct json_writer *writer)
{
    json_begin(writer, '{');
    json_key(writer, "name");
    json_string(writer, copy->name);
    json_key(writer, "target");
    json_string(writer, json_slice(json_get_lit(copy->report, "target")));
    json_key(writer, "state");
    json_string(writer, slice_from(copy->state));
    json_key(writer, "reported_at");
    json_string(writer, instant_text(request->arena, copy->reported, 3));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        yyjson_val *value = json_get(copy->report, slice_from(numbers[i]));
        if (value == NULL)
            continue;
        json_key(writer, numbers[i]);
        json_u64(writer, yyjson_get_uint(value));
    }
    json_key(writer, "lag_changes");
    if (copy->known)
        json_u64(writer, copy->changes);
    else
        json_null(writer);
    if (copy->more) {
        json_key(writer, "lag_relation");
        json_string(writer, SLICE_LIT("gte"));
    }
    json_key(writer, "lag_ms");
    if (copy->known)
        json_u64(writer, copy->lag_us / TL_MS);
    else
        json_null(writer);
    json_end(writer, '}');
}

static int list_run(struct request *request)
{
    const struct catalog *catalog = request_catalog(request);
    struct slice wanted = request_part(request, PART_NAME);
    struct json_writer writer;
    bool any = wanted.len == 0;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "timestamp");
    json_u64(&writer, request->view.ts);
    json_key(&writer, "consumers");
    json_begin(&writer, '[');
    for (size_t i = 0; i < catalog_object_count(catalog, CATALOG_COPIES); i++) {
        const struct catalog_object *object = catalog_object_at(catalog, CATALOG_COPIES, i);
        struct copy copy;
        if (wanted.len > 0 && !slice_equal(wanted, object->name))
            continue;
        int r = read_copy(request, object, &copy);
        if (r != 0)
            return r;
        write_copy(request, &copy, &writer);
        any = true;
    }
    json_end(&writer, ']');
    json_end(&writer, '}');
    return any ? REQUEST_DONE
               : request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND, "no consumer [%.*s] has reported",
                                SLICE_ARG(wanted));
}

int handle_copies(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    request_set_stable_view(request);
    return request_work_short(request, list_run);
}

static const struct cat_column columns[] = {
    {"name", "n", "name of the copy", false, false},
    {"state", "st", "copying, following, ended, or silent", false, false},
    {"target", "t", "where the copy is", false, false},
    {"lag.ms", "l", "age of the oldest change that it lacks", true, false},
    {"lag.changes", "lc", "changes that it lacks", true, false},
    {"sent", "s", "documents sent by this life of it", true, false},
    {"refused", "r", "documents that the target has refused", true, false},
    {"suspects", "su", "documents of requests without an answer, to be compared", true, false},
    {"verified.differences", "vd", "differences that the last comparison found", true, false},
    {"reported.at", "ra", "time of its last report", false, false},
    {"place", "p", "timestamp up to which it has everything", true, true},
    {"verified.at", "va", "timestamp of the last comparison", true, true},
};

static struct cat_cell number_of(const struct copy *copy, const char *name)
{
    yyjson_val *value = json_get(copy->report, slice_from(name));
    return value == NULL ? (struct cat_cell){0} : cat_number((int64_t)yyjson_get_uint(value));
}

static void add_row(struct request *request, const struct copy *copy, struct cat_table *table)
{
    struct cat_cell *row = cat_table_row(table, request->arena);
    row[0] = cat_text(copy->name);
    row[1] = cat_text(slice_from(copy->state));
    row[2] = cat_text(json_slice(json_get_lit(copy->report, "target")));
    if (copy->known) {
        row[3] = cat_number((int64_t)(copy->lag_us / TL_MS));
        row[4] = cat_number((int64_t)copy->changes);
    }
    row[5] = number_of(copy, "sent");
    row[6] = number_of(copy, "refused");
    row[7] = number_of(copy, "suspects");
    row[8] = number_of(copy, "verified_differences");
    row[9] = cat_text(instant_text(request->arena, copy->reported, 3));
    row[10] = number_of(copy, "place");
    row[11] = number_of(copy, "verified_at");
}

static int table_run(struct request *request)
{
    const struct catalog *catalog = request_catalog(request);
    struct cat_table table;
    cat_table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < catalog_object_count(catalog, CATALOG_COPIES); i++) {
        struct copy copy;
        int r = read_copy(request, catalog_object_at(catalog, CATALOG_COPIES, i), &copy);
        if (r != 0)
            return r;
        add_row(request, &copy, &table);
    }
    return cat_table_reply(request, &table);
}

int handle_cat_copies(struct request *request)
{
    int r = cat_table_begin(request, columns, sizeof columns / sizeof *columns);
    if (r != 0)
        return r;
    request_set_stable_view(request);
    return request_work_short(request, table_run);
}
