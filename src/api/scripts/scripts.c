/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored scripts, and running a script for its value.
 */
#include "api/documents/update_body.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "json/each.h"
#include "script/script.h"

/* --- Stored scripts ----------------------------------------------------------------------------------------------- */

static int script_done(struct request *request, struct command *command)
{
    (void)command;
    return reply_acknowledged(request);
}

/* What a script may be compiled for as it is stored, by the name of the context. */
static const struct script_use {
    const char *name;
    enum script_context context;
    bool known; /* scripts of other contexts are kept as they are */
} script_uses[] = {
    {"update", SCRIPT_FOR_UPDATE, true},
    {"filter", SCRIPT_FOR_FILTER, true},
    {"field", SCRIPT_FOR_FIELD, true},
    {"score", SCRIPT_FOR_SCORE, true},
    {"number_sort", SCRIPT_FOR_NUMBER_SORT, true},
    {"string_sort", SCRIPT_FOR_STRING_SORT, true},
    {"search", SCRIPT_FOR_SCORE, true}, /* up to 6.x */
    {"aggs", SCRIPT_FOR_FIELD, false},
    {"aggregation_selector", SCRIPT_FOR_FIELD, false},
    {"bucket_aggregation", SCRIPT_FOR_FIELD, false},
    {"ingest", SCRIPT_FOR_FIELD, false},
    {"interval", SCRIPT_FOR_FIELD, false},
    {"processor_conditional", SCRIPT_FOR_FIELD, false},
    {"similarity", SCRIPT_FOR_FIELD, false},
    {"similarity_weight", SCRIPT_FOR_FIELD, false},
    {"template", SCRIPT_FOR_FIELD, false},
    {"terms_set", SCRIPT_FOR_FIELD, false},
};

static const struct script_use *script_use_find(struct slice name)
{
    for (size_t i = 0; i < sizeof script_uses / sizeof *script_uses; i++)
        if (slice_is(name, script_uses[i].name))
            return &script_uses[i];
    return NULL;
}

/* The languages of 5.x, which may stand before the id. */
static bool is_script_lang(struct slice name)
{
    static const char *const langs[] = {"painless",   "groovy", "expression", "mustache",
                                        "javascript", "python", "native"};
    for (size_t i = 0; i < sizeof langs / sizeof *langs; i++)
        if (slice_is(name, langs[i]))
            return true;
    return false;
}

/*
 * Two names in the path are a language and an id in 5.x, an id and a context later. The first
 * decides if it is a language, the second if it is a context; a script for `search` is one of 6.x,
 * whose errors are 5.x's.
 */
static void name_script(struct request *request, struct object_command *script)
{
    struct slice first = request_part(request, PART_LANG), second = request_part(request, PART_ID);
    const struct script_use *use = script_use_find(first.len > 0 ? second : request_param(request, "context"));
    script->name = second;
    script->lang = first;
    script->compiles = request->dialect == DIALECT_5;
    script->context = SCRIPT_FOR_ANY;
    if (use == NULL || is_script_lang(first))
        return;
    if (first.len > 0) {
        script->name = first;
        script->lang = SLICE_NONE;
    }
    script->compiles = use->known;
    script->context = use->context;
    request->dialect = slice_is(slice_from(use->name), "search") ? DIALECT_5 : DIALECT_7;
}

/*
 * Refuses what the command would take for another script than was sent: a body that is no object for
 * the empty template, options of another kind for none, and, as 7.10 does, an empty source.
 * Returns: 0, REQUEST_REFUSED.
 */
static int check_stored(struct request *request, yyjson_val *root)
{
    yyjson_val *script = json_get_lit(root, "script");
    yyjson_val *options = json_get_lit(script, "options"), *source = json_get_lit(script, "source");
    if (!yyjson_is_obj(root)) {
        int r = request_refuse(request, PROBLEM_PARSING, "unexpected token [%s], expected [{]", json_token(root));
        problem_details(&request->problem, request->arena, "\"line\":1,\"col\":1");
        return r;
    }
    if (options != NULL && !yyjson_is_obj(options))
        return request_refuse(request, PROBLEM_X_CONTENT_PARSE,
                              "[stored script source] options doesn't support values of type: %s", json_token(options));
    if (request->dialect != DIALECT_5 && yyjson_is_str(source) && yyjson_get_len(source) == 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "source cannot be empty");
    return 0;
}

int handle_script_put(struct request *request)
{
    struct json_doc doc;
    int64_t ignored = 0;
    struct object_command script = {.body = request_body(request)};
    int r = request_time(request, "timeout", &ignored);
    if (r == 0)
        name_script(request, &script);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    if (request_body(request).len == 0)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    if ((r = request_json(request, 0, &doc)) != 0 || (r = check_stored(request, doc.root)) != 0)
        return r;
    struct command *command = command_new(COMMAND_SCRIPT_PUT, request->dialect);
    command->object = script;
    return request_submit(request, command, script_done);
}

int handle_script_delete(struct request *request)
{
    int64_t ignored = 0;
    int r = request_time(request, "timeout", &ignored);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct command *command = command_new(COMMAND_SCRIPT_DELETE, request->dialect);
    command->object.name = request_part(request, PART_ID);
    command->object.lang = request_part(request, PART_LANG);
    return request_submit(request, command, script_done);
}

static void write_script(const struct catalog_object *object, bool by_lang, struct json_writer *writer)
{
    if (by_lang) {
        json_key(writer, "script");
        json_string(writer, object->body);
        return;
    }
    json_key(writer, "script");
    json_begin(writer, '{');
    json_key(writer, "lang");
    json_string(writer, object->lang);
    json_key(writer, "source");
    json_string(writer, object->body);
    if (object->options.len > 0 && !slice_is(object->options, "{}")) {
        json_key(writer, "options");
        json_raw(writer, object->options);
    }
    json_end(writer, '}');
}

int handle_script_get(struct request *request)
{
    struct json_writer writer;
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct slice lang = request_part(request, PART_LANG), id = request_part(request, PART_ID);
    const struct catalog_object *object = catalog_object(request_catalog(request), CATALOG_SCRIPTS, id);
    if (object != NULL && lang.len > 0 && !slice_equal(object->lang, lang))
        object = NULL;
    reply_begin(request, object == NULL ? 404 : 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "_id");
    json_string(&writer, id);
    if (lang.len > 0) {
        json_key(&writer, "lang");
        json_string(&writer, lang);
    }
    json_key(&writer, "found");
    json_bool(&writer, object != NULL);
    if (object != NULL)
        write_script(object, lang.len > 0, &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* --- _scripts/painless/_execute ----------------------------------------------------------------------------------- */

static const char execute_parser[] = "painless_execute_request";

static int read_execute(struct request *request, struct json_doc *doc, struct write_update *script)
{
    size_t i, count;
    yyjson_val *key, *value;
    struct slice context = SLICE_LIT("painless_test");
    json_obj_foreach (doc->root, i, count, key, value) {
        struct slice name = json_slice(key);
        int r = 0;
        if (slice_is(name, "script") && yyjson_is_str(value))
            r = update_wrong_value(request, doc, key, value, execute_parser);
        else if (slice_is(name, "script"))
            r = update_script_parse(request, doc, key, value, execute_parser, DIALECT_7, script);
        else if (slice_is(name, "context"))
            context = json_slice(value);
        else if (slice_is(name, "context_setup") && !yyjson_is_null(value))
            r = request_refuse(
                request, PROBLEM_ILLEGAL_ARGUMENT,
                "[context_setup] is of the contexts [filter] and [score], which are not served: a script runs on its "
                "[params] alone here");
        else if (!slice_is(name, "context_setup"))
            r = update_unknown_field(request, doc, key, execute_parser, SLICE_LIT("script context context_setup"));
        if (r != 0)
            return r;
    }
    if (script->script_source.data == NULL && script->script_id.data == NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Required [script]");
    if (slice_is(context, "painless_test"))
        return 0;
    if (slice_is(context, "filter") || slice_is(context, "score"))
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "the context [%.*s] is not served: a script runs on its [params] alone here, as in [painless_test]",
            SLICE_ARG(context));
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    problem_set(cause, request->arena, PROBLEM_ILLEGAL_ARGUMENT, "unsupported script context name [%.*s]",
                SLICE_ARG(context));
    cause->name = SLICE_LIT("unsupported_operation_exception");
    int r = request_refuse(request, PROBLEM_X_CONTENT_PARSE,
                           "Failed to build [painless_execute_request] after last required field arrived");
    request->problem.caused_by = cause;
    return r;
}

static int execute_run(struct request *request)
{
    const struct write_update *update = request->context;
    struct script_eval value = {
        .params = update->script_params, .account = &request->account, .zones = request_zones(request)};
    struct json_writer writer;
    tl_cleanup(script_unrefp) struct script *script = NULL;
    int r = script_compile(SCRIPT_PAINLESS, SCRIPT_FOR_TEST, update->script_source, SLICE_NONE, &script, request->arena,
                           &request->problem);
    if (r == 0)
        r = script_run_value(script, &request->api->options.script, request->arena, &value, &request->problem);
    if (r != 0)
        return r > 0 ? REQUEST_REFUSED : r;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "result");
    json_string(&writer, value.display);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

int handle_script_execute(struct request *request)
{
    struct write_update *script = arena_zalloc(request->arena, sizeof *script);
    struct json_doc doc;
    if (request_body(request).len == 0)
        return request_refuse(request, PROBLEM_PARSE, "request body or source parameter is required");
    int r = request_json(request, 0, &doc);
    if (r != 0 || (r = read_execute(request, &doc, script)) != 0 || (r = request_accept(request)) != 0)
        return r;
    if (script->script_id.data != NULL)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: only inline scripts are supported;");
    if (script->script_lang.len > 0 && !slice_is(script->script_lang, "painless"))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "script_lang not supported [%.*s]",
                              SLICE_ARG(script->script_lang));
    request->context = script;
    return request_work(request, execute_run);
}
