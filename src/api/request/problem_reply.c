/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From problems to error envelopes.
 */
#include "api/request/problem_reply.h"

#include "api/request/native_path.h"
#include "api/request/url.h"

/*
 * Java's own exceptions, which Elasticsearch does not look through when it names the root cause of an error. Its
 * own are looked through, down to the innermost that is caused by no other of its own.
 */
static bool is_java(const struct problem *problem)
{
    if (problem->name.len > 0)
        return !slice_is(problem->name, "script_exception") && !slice_is(problem->name, "search_exception") &&
               !slice_is(problem->name, "search_context_exception");
    switch (problem->type) {
    case PROBLEM_ACTION_REQUEST_VALIDATION:
    case PROBLEM_ARRAY_INDEX_OUT_OF_BOUNDS:
    case PROBLEM_CLASS_CAST:
    case PROBLEM_ILLEGAL_ARGUMENT:
    case PROBLEM_ILLEGAL_STATE:
    case PROBLEM_JSON_PARSE:
    case PROBLEM_NOT_X_CONTENT:
    case PROBLEM_NULL_POINTER:
    case PROBLEM_NUMBER_FORMAT:
    case PROBLEM_UNSUPPORTED_OPERATION:
    case PROBLEM_X_CONTENT_PARSE: return true;
    default: return false;
    }
}

/*
 * Returns: whether a search failed when the results of its shards were merged. No shard failed, so
 * there are no root causes.
 */
static bool failed_without_shards(const struct problem *problem)
{
    return problem->type == PROBLEM_SEARCH_PHASE_EXECUTION && problem->caused_by != NULL &&
           problem->caused_by->type == PROBLEM_TOO_MANY_BUCKETS;
}

/*
 * Returns: the problem whose members "root_cause" shows. A search_phase_execution_exception is
 * replaced by its shards' errors.
 */
static const struct problem *root_cause(const struct problem *problem)
{
    if (problem->type == PROBLEM_SEARCH_PHASE_EXECUTION && problem->caused_by != NULL)
        return root_cause(problem->caused_by);
    if (is_java(problem)) {
        const struct problem *cause = problem->caused_by;
        bool inner = problem->type == PROBLEM_X_CONTENT_PARSE && cause != NULL &&
                     (cause->type == PROBLEM_X_CONTENT_PARSE || !is_java(cause));
        return inner ? root_cause(cause) : problem; /* the innermost error of the parser, or its cause */
    }
    while (problem->caused_by != NULL && !is_java(problem->caused_by))
        problem = problem->caused_by;
    return problem;
}

/* Texts repeat what the client sent, which need not be UTF-8. */
static void write_text(struct json_writer *writer, struct slice text)
{
    struct arena arena = ARENA_INIT;
    json_string(writer, url_utf8_repair(&arena, text));
    arena_deinit(&arena);
}

static void write_members(struct json_writer *writer, const struct problem *problem)
{
    json_key(writer, "type");
    json_string(writer, problem->name.len > 0 ? problem->name : slice_from(problem_name(problem->type)));
    json_key(writer, "reason");
    if (problem->reason.data == NULL)
        json_null(writer);
    else
        write_text(writer, problem->reason);
    if (problem->details.len > 0) {
        buf_byte(writer->buf, ',');
        buf_slice(writer->buf, problem->details);
    }
}

static void write_causes(struct json_writer *writer, const struct problem *problem);

/*
 * The cause of a failed search is shown among its failed shards already, and then once more where
 * it is Java's own, both as the cause and as the cause of that.
 */
static void write_search_causes(struct json_writer *writer, const struct problem *cause)
{
    if (!is_java(cause) && root_cause(cause) != cause) {
        json_key(writer, "caused_by");
        problem_write_item(writer, root_cause(cause));
        return;
    }
    if (!is_java(cause))
        return;
    for (int i = 0; i < 2; i++) {
        json_key(writer, "caused_by");
        json_begin(writer, '{');
        write_members(writer, cause);
    }
    write_causes(writer, cause);
    json_end(writer, '}');
    json_end(writer, '}');
}

static void write_causes(struct json_writer *writer, const struct problem *problem)
{
    if (problem->caused_by == NULL)
        return;
    if (problem->type == PROBLEM_SEARCH_PHASE_EXECUTION && !failed_without_shards(problem)) {
        write_search_causes(writer, problem->caused_by);
        return;
    }
    json_key(writer, "caused_by");
    json_begin(writer, '{');
    write_members(writer, problem->caused_by);
    write_causes(writer, problem->caused_by);
    json_end(writer, '}');
}

void problem_write_item(struct json_writer *writer, const struct problem *problem)
{
    json_begin(writer, '{');
    write_members(writer, problem);
    write_causes(writer, problem);
    json_end(writer, '}');
}

/* What ?error_trace=true shows in place of a stack of Java. */
static void write_trace(struct json_writer *writer, const struct problem *problem)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&text, "%s[%.*s]", problem_name(problem->type), SLICE_ARG(problem->reason));
    json_key(writer, "stack_trace");
    write_text(writer, buf_as_slice(&text));
    buf_deinit(&text);
}

static void write_remote_cause(struct json_writer *writer, const char *action)
{
    struct buf reason = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&reason, "[tidelock-0][127.0.0.1:9300][%s]", action);
    json_key(writer, "type");
    json_string(writer, SLICE_LIT("remote_transport_exception"));
    json_key(writer, "reason");
    json_string(writer, buf_as_slice(&reason));
    buf_deinit(&reason);
}

static void write_root_cause(struct json_writer *writer, const struct problem *problem, bool trace,
                             const char *remote_action)
{
    json_begin(writer, '{');
    if (remote_action != NULL && is_java(problem))
        write_remote_cause(writer, remote_action);
    else
        write_members(writer, root_cause(problem));
    if (trace)
        write_trace(writer, root_cause(problem));
    json_end(writer, '}');
}

/* `remote_action`: see struct request; NULL for none. */
static void write_with_root_cause(struct json_writer *writer, const struct problem *problem, enum dialect dialect,
                                  bool trace, const char *remote_action)
{
    json_begin(writer, '{');
    json_key(writer, "root_cause");
    json_begin(writer, '[');
    if (!failed_without_shards(problem))
        write_root_cause(writer, problem, trace, remote_action);
    json_end(writer, ']');
    write_members(writer, problem);
    if (dialect != DIALECT_5 ||
        problem->type != PROBLEM_SEARCH_PHASE_EXECUTION) /* where 5.6 is content with the root */
        write_causes(writer, problem);
    if (trace)
        write_trace(writer, problem);
    json_end(writer, '}');
}

void problem_write(struct json_writer *writer, const struct problem *problem, enum dialect dialect)
{
    write_with_root_cause(writer, problem, dialect, false, NULL);
}

/* 5.6 takes a body that is no JSON for a fault of its own. */
static int status_of(const struct problem *problem, enum dialect dialect)
{
    if (problem->type == PROBLEM_JSON_PARSE && problem->status == 0 && dialect == DIALECT_5)
        return 500;
    return problem_status(problem);
}

/*
 * A path segment that was read as the name of an index or a type, and is invalid as such, may be a
 * mistyped or misplaced name of one of our own calls.
 */
static struct problem with_advice(struct request *request, const struct problem *problem)
{
    struct problem advised = *problem;
    if (slice_starts_with(request->parts[PART_INDEX], SLICE_LIT("_")) ||
        slice_starts_with(request->parts[PART_TYPE], SLICE_LIT("_")))
        advised.reason = arena_printf(request->arena, "%.*s%.*s", SLICE_ARG(problem->reason),
                                      SLICE_ARG(native_path_suggest(request)));
    return advised;
}

void problem_reply(struct request *request, const struct problem *refusal)
{
    struct json_writer writer;
    struct problem advised = with_advice(request, refusal);
    const struct problem *problem = &advised;
    int status = status_of(problem, request->dialect);
    request->form.bare = false;
    request->form.filter_path = SLICE_NONE; /* errors are shown whole */
    request->exchange->content_type = NULL;
    reply_begin(request, status, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "error");
    write_with_root_cause(&writer, problem, request->dialect, request->form.error_trace,
                          request->dialect == DIALECT_5 ? request->remote_action : NULL);
    json_key(&writer, "status");
    json_i64(&writer, status);
    json_end(&writer, '}');
}

void problem_reply_text(struct request *request, int status, struct slice text, bool status_member)
{
    struct json_writer writer;
    reply_begin(request, status, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "error");
    write_text(&writer, text);
    if (status_member) {
        json_key(&writer, "status");
        json_i64(&writer, status);
    }
    json_end(&writer, '}');
}

void problem_from_code(struct problem *ret_problem, struct arena *arena, int code)
{
    switch (code) {
    case TL_ERR_NO_SPACE:
        problem_set(ret_problem, arena, PROBLEM_DISK_FULL, "no space left for writing; reads are served");
        break;
    case TL_ERR_STOPPED: problem_set(ret_problem, arena, PROBLEM_STOPPING, "the server is stopping"); break;
    default: problem_set(ret_problem, arena, PROBLEM_ILLEGAL_STATE, "%s", error_text(code)); break;
    }
}
