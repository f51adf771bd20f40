/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _mget: several documents in one request, each found or not or refused by itself.
 */
#include "api/request/broken_body.h"
#include "api/request/dialect.h"
#include "api/documents/doc_read.h"
#include "api/request/handlers.h"
#include "api/request/location.h"
#include "api/request/problem_reply.h"
#include "api/request/request_budget.h"
#include "json/each.h"

/* Documents of one request. */
#define MGET_ITEMS_MAX 100000

/* The items and bytes that may be read on the polling thread, between other requests. */
enum { MGET_INLINE_ITEMS = 200, MGET_INLINE_BYTES = 512 * 1024 };

enum { MGET_ITEM_STEPS = 500 }; /* of the account, in addition to the bytes written */

struct mget {
    struct doc_get_params defaults;
    struct doc_get_params *items;
    size_t count;
    size_t capacity;
    size_t next; /* to be read */
    struct dialect_names names; /* while the items are parsed */
};

/* --- Parsing ------------------------------------------------------------------------------------------------------ */

static int add_query(struct request *request, struct mget *mget, const struct doc_get_params *query)
{
    if (mget->count == MGET_ITEMS_MAX)
        return request_refuse(request, PROBLEM_LIMIT_EXCEEDED, "more than %d documents in a request", MGET_ITEMS_MAX);
    mget->items = arena_grow(request->arena, mget->items, mget->count, &mget->capacity, sizeof *mget->items);
    mget->items[mget->count++] = *query;
    return 0;
}

/* A scalar as text; numbers as they stand. */
static struct slice item_text(struct request *request, yyjson_val *value)
{
    if (yyjson_is_str(value) || yyjson_is_raw(value))
        return json_slice(value);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    json_write(&text, value, request->dialect);
    struct slice kept = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

static int stored_fields_of(struct request *request, yyjson_val *value, struct doc_get_params *query)
{
    size_t i, count;
    yyjson_val *item;
    struct slice *fields = arena_alloc(request->arena, (yyjson_arr_size(value) + 1) * sizeof *fields);
    query->stored_field_count = 0;
    if (yyjson_is_str(value))
        fields[query->stored_field_count++] = json_slice(value);
    json_arr_foreach (value, i, count, item) {
        if (yyjson_is_str(item))
            fields[query->stored_field_count++] = json_slice(item);
    }
    query->stored_fields = fields;
    return 0;
}

static int refuse_at(struct request *request, const struct json_doc *doc, size_t offset, struct slice reason)
{
    size_t line, column;
    location_line(doc, offset, &line, &column);
    int r = request_refuse(request, PROBLEM_PARSING, "%.*s", SLICE_ARG(reason));
    problem_details(&request->problem, request->arena, "\"line\":%zu,\"col\":%zu", line, column);
    return r;
}

/*
 * An item has the dialect that it has as a request of its own: by its type, else by its index. Those of the path
 * settle it where it names none.
 */
static int settle_dialect(struct request *request, yyjson_val *item, struct mget *mget, struct doc_get_params *query)
{
    yyjson_val *given = json_get_lit(item, "_type"), *name = json_get_lit(item, "_index");
    bool has_type = given != NULL && !yyjson_is_null(given) && !yyjson_is_ctn(given);
    struct slice type = has_type ? item_text(request, given) : query->type, index = query->index;
    bool typed = type.len > 0 && !slice_is(type, "_doc");
    if (request->form.compatible_8 || (!typed && (!yyjson_is_str(name) || request->route->form == FORM_TYPED)))
        return 0;
    index = yyjson_is_str(name) ? json_slice(name) : index;
    if (request_resolve_names(request, request->arena, &index) != 0) {
        request->problem = (struct problem){.type = PROBLEM_NONE}; /* reading the item's index refuses it, too */
        return request_budget_refused(request) ? request_budget_refuse(request) : 0;
    }
    return dialect_of_named(request, &mget->names, index, typed ? type : SLICE_NONE, &query->dialect);
}

/* 5.6 ignores a value that is no filter. */
static int read_source(struct request *request, yyjson_val *value, struct doc_get_params *query)
{
    if (!yyjson_is_num(value) && !yyjson_is_raw(value))
        return source_filter_json(request, value, &query->source);
    if (query->dialect == DIALECT_5)
        return 0;
    return request_refuse(request, PROBLEM_PARSE, "illegal type for _source: [%s]", json_token(value));
}

/* An expression that is no date fails its item alone, which then shows it as it is. */
static int read_index(struct request *request, yyjson_val *value, struct doc_get_params *query)
{
    query->index = item_text(request, value);
    query->refused = NULL;
    int r = request_resolve_names(request, request->arena, &query->index);
    if (r != REQUEST_REFUSED || request_budget_refused(request))
        return r;
    struct problem *refused = arena_alloc(request->arena, sizeof *refused);
    *refused = request->problem;
    request->problem = (struct problem){.type = PROBLEM_NONE};
    query->refused = refused;
    return 0;
}

static int read_scalar(struct request *request, struct slice name, yyjson_val *value, struct doc_get_params *query)
{
    bool old = query->dialect == DIALECT_5;
    if (slice_is(name, "_index")) {
        return read_index(request, value, query);
    } else if (slice_is(name, "_type")) {
        query->type = item_text(request, value);
        query->empty_type = query->dialect == DIALECT_7 && yyjson_is_str(value) && query->type.len == 0;
    } else if (slice_is(name, "_id")) {
        query->id = item_text(request, value);
    } else if (slice_is(name, "routing") ||
               (old && (slice_is(name, "_routing") || slice_is(name, "parent") || slice_is(name, "_parent")))) {
        query->routing = item_text(request, value);
    } else if (slice_is(name, "version") || (old && slice_is(name, "_version"))) {
        if (!slice_to_i64(item_text(request, value), &query->version))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "For input string: \"%.*s\"",
                                  SLICE_ARG(item_text(request, value)));
    } else if (slice_is(name, "version_type") ||
               (old && (slice_is(name, "_version_type") || slice_is(name, "_versionType")))) {
        return doc_version_type(request, item_text(request, value), &query->version_type);
    } else if (!old) {
        return request_refuse(request, PROBLEM_PARSE, "failed to parse multi get request. unknown field [%.*s]",
                              SLICE_ARG(name));
    }
    return 0;
}

static int read_member(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                       struct doc_get_params *query)
{
    struct slice name = json_slice(key);
    if (slice_is(name, "_source"))
        return read_source(request, value, query);
    if (slice_is(name, "stored_fields"))
        return stored_fields_of(request, value, query);
    if (slice_is(name, "fields"))
        return refuse_at(request, doc, location_of_member(doc, key),
                         SLICE_LIT("Unsupported field [fields] used, expected [stored_fields] instead"));
    if (yyjson_is_null(value) || yyjson_is_ctn(value))
        return 0;
    return read_scalar(request, name, value, query);
}

static int read_docs(struct request *request, const struct json_doc *doc, yyjson_val *docs, struct mget *mget)
{
    size_t i, count, k, members;
    yyjson_val *item, *key, *value;
    json_arr_foreach (docs, i, count, item) {
        struct doc_get_params query = mget->defaults;
        int r;
        if (!yyjson_is_obj(item))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "docs array element should include an object");
        if ((r = settle_dialect(request, item, mget, &query)) != 0)
            return r;
        json_obj_foreach (item, k, members, key, value) {
            if ((r = read_member(request, doc, key, value, &query)) != 0)
                return r;
        }
        if ((r = add_query(request, mget, &query)) != 0)
            return r;
    }
    return 0;
}

static int read_ids(struct request *request, yyjson_val *ids, struct mget *mget)
{
    const struct doc_get_params *defaults = &mget->defaults;
    bool typed = defaults->type.len > 0 && !slice_is(defaults->type, "_doc");
    enum dialect dialect = typed ? dialect_of_typed_call(request, defaults->index, defaults->type) : defaults->dialect;
    size_t i, count;
    yyjson_val *item;
    json_arr_foreach (ids, i, count, item) {
        struct doc_get_params query = mget->defaults;
        if (yyjson_is_ctn(item) || yyjson_is_null(item))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "ids array element should only contain ids");
        query.id = item_text(request, item);
        query.dialect = dialect;
        int r = add_query(request, mget, &query);
        if (r != 0)
            return r;
    }
    return 0;
}

static int read_top(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                    struct mget *mget)
{
    struct slice name = json_slice(key);
    if (!yyjson_is_arr(value))
        return refuse_at(request, doc, location_of_member(doc, key),
                         arena_printf(request->arena, "unexpected token [%s], expected [FIELD_NAME] or [START_ARRAY]",
                                      json_token(value)));
    if (slice_is(name, "docs"))
        return read_docs(request, doc, value, mget);
    if (slice_is(name, "ids"))
        return read_ids(request, value, mget);
    return refuse_at(request, doc, location_of_member(doc, key),
                     arena_printf(request->arena, "unknown key [%.*s] for a START_ARRAY, expected [docs] or [ids]",
                                  SLICE_ARG(name)));
}

static int read_members(struct request *request, const struct json_doc *doc, struct mget *mget)
{
    size_t i, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(doc->root))
        return refuse_at(
            request, doc, location_of_root(doc),
            arena_printf(request->arena, "unexpected token [%s], expected [START_OBJECT]", json_token(doc->root)));
    json_obj_foreach (doc->root, i, count, key, value) {
        int r = read_top(request, doc, key, value, mget);
        if (r != 0)
            return r;
    }
    return 0;
}

struct mget_read {
    struct request *request;
    struct mget *mget;
};

static int read_broken_mget(void *context, struct json_doc *doc)
{
    struct mget_read *read = context;
    return read_members(read->request, doc, read->mget);
}

/* Refuses a body that is not JSON, as request->problem says. */
static int refuse_broken_mget(struct request *request, struct mget *mget)
{
    struct mget_read read = {request, mget};
    const struct broken_parser parser = {.read = read_broken_mget,
                                         .context = &read,
                                         .arena = request->arena,
                                         .dialect = request->dialect,
                                         .placeless = true};
    return broken_body_refuse(request, request_body(request), &parser, NULL);
}

static int read_body(struct request *request, struct mget *mget)
{
    struct json_doc doc;
    if (request_body(request).len == 0)
        return request_refuse(request, PROBLEM_PARSE, "request body or source parameter is required");
    if (request->dialect == DIALECT_7 && location_is_blank(request_body(request))) {
        request_refuse(request, PROBLEM_PARSING, "unexpected token [null], expected [START_OBJECT]");
        problem_details(&request->problem, request->arena, "\"line\":1,\"col\":0");
        return REQUEST_REFUSED;
    }
    int r = request->dialect == DIALECT_5 ? request_json(request, JSON_DUPLICATES, &doc)
                                          : request_first_json(request, &doc);
    if (r != 0)
        return r == REQUEST_REFUSED ? refuse_broken_mget(request, mget) : r;
    return read_members(request, &doc, mget);
}

static int validate_mget(struct request *request, const struct mget *mget)
{
    struct slice text = SLICE_NONE;
    unsigned problems = 0;
    if (mget->count == 0)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: 1: no documents to get;");
    for (size_t i = 0; i < mget->count; i++) {
        if (mget->items[i].index.data == NULL)
            text = arena_append(request->arena, text, "%u: index is missing for doc %zu;", ++problems, i);
        if (mget->items[i].id.data == NULL)
            text = arena_append(request->arena, text, "%u: id is missing for doc %zu;", ++problems, i);
    }
    return problems == 0
               ? 0
               : request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: %.*s", SLICE_ARG(text));
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static void write_refused(struct request *request, const struct doc_get_params *query, const struct problem *problem)
{
    struct json_writer writer;
    json_writer_init(&writer, &request->exchange->response);
    json_begin(&writer, '{');
    json_key(&writer, "_index");
    json_string(&writer, query->index);
    if (!request->form.compatible_8) {
        json_key(&writer, "_type");
        if (query->type.len > 0)
            json_string(&writer, query->type);
        else
            json_null(&writer);
    }
    json_key(&writer, "_id");
    json_string(&writer, query->id);
    json_key(&writer, "error");
    problem_write(&writer, problem, query->dialect);
    json_end(&writer, '}');
}

/* Writes an item's object. */
static int write_item(struct request *request, struct doc_get_params *query)
{
    struct doc_get_result found;
    struct problem problem;
    if (query->refused != NULL) {
        write_refused(request, query, query->refused);
        return 0;
    }
    int r = REQUEST_REFUSED;
    if (query->id.len == 0 && query->dialect == DIALECT_7)
        problem_set(&problem, request->arena, PROBLEM_ILLEGAL_ARGUMENT, "Ids can't be empty");
    else
        r = doc_find(request, query, &found, &problem);
    if (r == 0) {
        r = doc_write_found(request, query, &found, &request->exchange->response);
        request->found_nothing = request->found_nothing || !found.found;
        if (found.found)
            doc_release(&found.doc);
    } else if (r == REQUEST_REFUSED) {
        write_refused(request, query, &problem);
        r = 0;
    }
    return r;
}

/* What a polling thread does not finish soon, a worker does. */
static int mget_run(struct request *request)
{
    struct mget *mget = request->context;
    struct buf *buf = &request->exchange->response;
    size_t begun = buf->len;
    request->exchange->status = 200;
    for (size_t end = mget->next + MGET_INLINE_ITEMS; mget->next < mget->count; mget->next++) {
        if (request_budget_stops(request, MGET_ITEM_STEPS))
            return request_budget_refuse(request);
        if (!request->on_worker && (mget->next == end || buf->len - begun > MGET_INLINE_BYTES))
            return request_work(request, mget_run);
        buf_slice(buf, mget->next > 0 ? SLICE_LIT(",") : SLICE_LIT("{\"docs\":["));
        int r = write_item(request, &mget->items[mget->next]);
        if (r != 0)
            return r;
    }
    buf_lit(buf, "]}");
    return REQUEST_DONE;
}

int handle_mget(struct request *request)
{
    struct mget *mget = arena_zalloc(request->arena, sizeof *mget);
    int r = doc_read_params(request, &mget->defaults);
    if (r != 0 || (r = request_bool(request, "any_routing", &mget->defaults.any_routing)) != 0 ||
        (r = request_bool(request, "commit_timestamp", &mget->defaults.commit_timestamp)) != 0)
        return r;
    mget->defaults.in_mget = true;
    mget->defaults.index = request_part(request, PART_INDEX);
    mget->defaults.type = request_part(request, PART_TYPE);
    mget->names = DIALECT_NAMES_INIT;
    r = read_body(request, mget);
    dialect_names_deinit(&mget->names);
    if (r != 0 || (r = request_accept(request)) != 0 || (r = validate_mget(request, mget)) != 0)
        return r;
    struct lock_target *targets = NULL;
    size_t target_count = 0;
    if (request->transaction.len > 0) {
        targets = arena_alloc(request->arena, mget->count * sizeof *targets);
        for (size_t i = 0; i < mget->count; i++)
            if (mget->items[i].refused == NULL)
                targets[target_count++] = doc_lock_target(&mget->items[i]);
    }
    request->context = mget;
    return request_read(request, targets, target_count, mget_run);
}
