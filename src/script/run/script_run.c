/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a script: converts inputs to values and results to outputs. See script.h. */
#include "script/script.h"

#include "base/check.h"
#include "script/value/docvalues.h"
#include "script/value/document.h"
#include "script/run/script_error.h"
#include "script/run/interp.h"

static void run_init(struct run *run, const struct script *script, const struct script_limits *limits,
                     struct arena *arena, struct account *account)
{
    limits = limits == NULL ? &script->limits : limits;
    uint64_t slice = account == NULL || limits->steps_max < RUN_SLICE_STEPS ? limits->steps_max : RUN_SLICE_STEPS;
    *run = (struct run){.script = script,
                        .arena = arena,
                        .limits = limits,
                        .steps_left = slice,
                        .steps_reserved = limits->steps_max - slice,
                        .account = account,
                        .memory_left = limits->memory_bytes_max,
                        .stack_floor = stack_floor(),
                        .groovy = script->lang == SCRIPT_GROOVY};
    size_t size = (script->program.cache_count + 1) * sizeof *run->caches;
    run->caches = arena_zalloc(arena, size);
    run_charge(run, size);
}

static struct value text_or_null(struct run *run, struct slice text)
{
    return text.data == NULL ? VALUE_NONE : value_of(text_new(run, text));
}

/*
 * Checks that each bare name is a parameter; a missing one is a compile error that only the run can
 * find.
 */
static int check_bare_names(struct run *run, struct problem *ret_problem)
{
    const struct node *missing = NULL;
    for (const struct node *node = run->script->bare; node != NULL; node = node->c)
        if (dict_find_text(run, run->params, (struct text *)node->value.object) == NULL)
            missing = node;
    if (missing == NULL)
        return 0;
    script__missing_name(run->script, missing->text, run->arena, ret_problem);
    return SCRIPT_FAILED;
}

static bool bind_variable(struct run *run, const char *name, struct value value)
{
    return dict_put_ascii(run, run->binding, name, value);
}

/* Fails if the last operation overdrew a budget and no step followed that would have failed. */
static bool within_bounds(struct run *run)
{
    return run->exhausted == RUN_EXHAUSTED_NOTHING || run_fail_exhausted(run);
}

/*
 * Runs the main function. Painless: `inputs` are its first variables; Groovy reads them as
 * bindings.
 */
static bool run_main(struct run *run, struct value *inputs, unsigned count, struct value *ret)
{
    const struct function *main = run->script->program.main;
    struct frame frame = {.function = main, .iterations_left = FRAME_ITERATIONS_MAX};
    *ret = VALUE_NONE;
    if (!run_enter(run, main->nesting))
        return false;
    frame.slots = interp__stack(run, main->slot_count);
    if (frame.slots == NULL)
        return false;
    if (!run->groovy)
        memcpy(frame.slots, inputs, count * sizeof *inputs);
    enum flow_result flow = interp__exec(run, &frame, main->body, ret);
    run_leave(run, main->nesting);
    return flow != FLOW_THROW && within_bounds(run);
}

/* ctx */

static bool is_by_query(const struct script_update *update)
{
    return update->ctx == SCRIPT_CTX_BY_QUERY || update->ctx == SCRIPT_CTX_BY_QUERY_TYPED;
}

static bool put_update_keys(struct run *run, struct dict *ctx, const struct script_update *update, struct dict *source)
{
    const char *op = update->ctx == SCRIPT_CTX_UPSERT ? "create" : "index";
    bool upsert = update->ctx == SCRIPT_CTX_UPSERT, by_query = is_by_query(update);
    struct value version = update->version < 0 && !by_query ? VALUE_NONE : value_long(update->version);
    bool ok = dict_put_ascii(run, ctx, "_source", value_of(source));
    if (!upsert) {
        ok = ok && dict_put_ascii(run, ctx, "_index", text_or_null(run, update->index)) &&
             dict_put_ascii(run, ctx, "_type", text_or_null(run, update->type)) &&
             dict_put_ascii(run, ctx, "_id", text_or_null(run, update->id)) &&
             dict_put_ascii(run, ctx, "_version", version) &&
             dict_put_ascii(run, ctx, "_routing", text_or_null(run, update->routing));
    }
    if (update->ctx == SCRIPT_CTX_UPDATE_TYPED || update->ctx == SCRIPT_CTX_BY_QUERY_TYPED)
        ok = ok && dict_put_ascii(run, ctx, "_parent", text_or_null(run, update->parent)) &&
             dict_put_ascii(run, ctx, "_timestamp", VALUE_NONE) && dict_put_ascii(run, ctx, "_ttl", VALUE_NONE);
    if (update->ctx == SCRIPT_CTX_UPDATE_TYPED)
        return ok && dict_put_ascii(run, ctx, "_now", value_long(update->now_ms));
    ok = ok && dict_put_ascii(run, ctx, "op",
                              update->op.data == NULL ? value_of(text_new(run, slice_from(op)))
                                                      : text_or_null(run, update->op));
    return ok && (by_query || dict_put_ascii(run, ctx, "_now", value_long(update->now_ms)));
}

static struct dict *make_ctx(struct run *run, const struct script_update *update)
{
    bool stored = update->ctx == SCRIPT_CTX_UPDATE || update->ctx == SCRIPT_CTX_UPDATE_TYPED;
    struct dict *source = document_read(run, update->source, stored ? DOCUMENT_IN_ORDER : DOCUMENT_HASHED), *ctx;
    if (source == NULL)
        return NULL;
    ctx = dict_new(run, CLASS_HASH_MAP);
    return put_update_keys(run, ctx, update, source) && run_step(run, 0) ? ctx : NULL;
}

/*
 * Compares the toString of a value of ctx with its input; null equals absent. *ret_after is the new
 * text, absent for null.
 */
static bool same_text(struct run *run, struct value value, struct slice before, struct slice *ret_after)
{
    struct text *text = value.kind == VALUE_NULL ? NULL : value_to_text(run, value);
    *ret_after = text == NULL ? SLICE_NONE : text_slice(run->arena, text);
    return (ret_after->data == NULL) == (before.data == NULL) && slice_equal(*ret_after, before);
}

static struct value ctx_value(struct run *run, struct dict *ctx, const char *key)
{
    struct map_entry *entry = dict_find_ascii(run, ctx, key);
    return entry == NULL ? VALUE_NONE : entry->value;
}

static void read_meta(struct run *run, struct dict *ctx, struct script_update *update)
{
    struct value version = ctx_value(run, ctx, "_version");
    update->index_changed = !same_text(run, ctx_value(run, ctx, "_index"), update->index, &update->index_after);
    update->type_changed = !same_text(run, ctx_value(run, ctx, "_type"), update->type, &update->type_after);
    update->id_changed = !same_text(run, ctx_value(run, ctx, "_id"), update->id, &update->id_after);
    update->routing_changed = !same_text(run, ctx_value(run, ctx, "_routing"), update->routing, &update->routing_after);
    update->version_after = value_integral(version) ? version.i : -1;
    update->version_changed = update->version_after != (update->version < 0 ? -1 : update->version);
}

/* Returns: the unknown keys of ctx, separated by commas. */
static struct slice invalid_ctx_keys(struct run *run, struct dict *ctx)
{
    static const char *const known[] = {"_source",  "_index",  "_type",      "_id",  "_version",
                                        "_routing", "_parent", "_timestamp", "_ttl", "op"};
    struct slice keys = SLICE_NONE;
    for (struct map_entry *entry = dict_first(ctx); entry != NULL; entry = dict_next(ctx, entry)) {
        struct text *text = value_to_text(run, entry->key);
        struct slice key = text == NULL ? SLICE_NONE : text_slice(run->arena, text);
        bool strange = key.data != NULL;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            strange = strange && !slice_is(key, known[i]);
        if (strange)
            keys = keys.data == NULL ? key : arena_printf(run->arena, "%.*s,%.*s", SLICE_ARG(keys), SLICE_ARG(key));
    }
    return keys;
}

/*
 * Reads the op of a script by query: one of three, in upper or lower case. Returns: 0; SCRIPT_UNFIT
 * for any other.
 */
static int read_op_by_query(struct run *run, struct value op, struct script_update *update, struct problem *ret_problem)
{
    if (op.kind == VALUE_NULL) {
        problem_set(ret_problem, run->arena, PROBLEM_ILLEGAL_ARGUMENT, "Script cleared operation type");
        return SCRIPT_UNFIT;
    }
    update->op_text = text_slice(run->arena, (struct text *)op.object);
    update->op_after = slice_is_ignoring_case(update->op_text, "index")    ? SCRIPT_OP_INDEX
                       : slice_is_ignoring_case(update->op_text, "delete") ? SCRIPT_OP_DELETE
                       : slice_is_ignoring_case(update->op_text, "noop")   ? SCRIPT_OP_NONE
                                                                           : SCRIPT_OP_OTHER;
    return 0;
}

/* Reads the op of an update. A null op is an error in 7.x and means "index" in 5.x. */
static int read_op(struct run *run, struct dict *ctx, struct script_update *update, struct problem *ret_problem)
{
    struct value op = ctx_value(run, ctx, "op");
    static const struct {
        const char *text;
        enum script_op op;
    } ops[] = {{"index", SCRIPT_OP_INDEX},
               {"create", SCRIPT_OP_CREATE},
               {"delete", SCRIPT_OP_DELETE},
               {"none", SCRIPT_OP_NONE},
               {"noop", SCRIPT_OP_NONE}};
    if (op.kind == VALUE_NULL && update->ctx == SCRIPT_CTX_UPDATE_TYPED) {
        update->op_after = SCRIPT_OP_INDEX;
        update->op_text = SLICE_LIT("index");
        return 0;
    }
    if (is_by_query(update) && (op.kind == VALUE_NULL || value_is(op, CLASS_STRING)))
        return read_op_by_query(run, op, update, ret_problem);
    if (!value_is(op, CLASS_STRING)) {
        if (op.kind == VALUE_NULL)
            run_throw_npe(run, "String.hashCode()");
        else
            run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "class %s cannot be cast to class java.lang.String",
                      class_infos[value_type(op) & ((1u << TYPE_DIMS_SHIFT) - 1)].java);
        script_error_plain(run, ret_problem);
        return SCRIPT_UNFIT;
    }
    update->op_text = text_slice(run->arena, (struct text *)op.object);
    update->op_after = SCRIPT_OP_OTHER;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (slice_is(update->op_text, ops[i].text))
            update->op_after = ops[i].op;
    return 0;
}

static int unfit_source(struct run *run, struct value source, struct problem *ret_problem)
{
    char name[TYPE_NAME_MAX];
    if (source.kind == VALUE_NULL) {
        problem_set(ret_problem, run->arena, PROBLEM_MAPPER_PARSING, "failed to parse");
        ret_problem->caused_by = arena_zalloc(run->arena, sizeof *ret_problem->caused_by);
        problem_set(ret_problem->caused_by, run->arena, PROBLEM_NOT_X_CONTENT,
                    "Compressor detection can only be called on some xcontent bytes or compressed xcontent bytes");
        return SCRIPT_UNFIT;
    }
    type_java_name(value_type(source), name);
    run_throw(run, CLASS_CLASS_CAST_EXCEPTION,
              "class %s cannot be cast to class java.util.Map (%s and java.util.Map are in module java.base of loader "
              "'bootstrap')",
              name, name);
    script_error_plain(run, ret_problem);
    return SCRIPT_UNFIT;
}

static int write_source(struct run *run, struct dict *ctx, struct script_update *update, struct problem *ret_problem)
{
    struct value source = ctx_value(run, ctx, "_source");
    bool deletes = update->op_after == SCRIPT_OP_DELETE || update->op_after == SCRIPT_OP_NONE;
    update->source_after = SLICE_NONE;
    if (!value_is_map(source))
        return deletes && source.kind == VALUE_NULL ? 0 : unfit_source(run, source, ret_problem);
    tl_cleanup(buf_deinit) struct buf out = BUF_INIT(run->limits->memory_bytes_max);
    if (!document_write(run, source, &out) || out.overflow || !within_bounds(run)) {
        if (run->thrown == NULL)
            run_fail_exhausted(run);
        script_error_plain(run, ret_problem);
        return SCRIPT_UNFIT;
    }
    update->source_after = arena_copy(run->arena, buf_as_slice(&out));
    return 0;
}

/* Reads ctx after the run, with Elasticsearch's checks in its order. */
static int finish_update(struct run *run, struct dict *ctx, struct script_update *update, struct problem *ret_problem)
{
    struct script_update after = *update;
    if (!document_check_cycles(run, value_of(ctx))) {
        script_error_plain(run, ret_problem);
        return SCRIPT_UNFIT;
    }
    int r = read_op(run, ctx, &after, ret_problem);
    if (r == 0)
        r = write_source(run, ctx, &after, ret_problem);
    if (r != 0)
        return r;
    read_meta(run, ctx, &after);
    if (is_by_query(update))
        after.invalid_ctx_keys = invalid_ctx_keys(run, ctx);
    *update = after;
    return 0;
}

static int run_update(struct run *run, struct script_update *update, struct problem *ret_problem)
{
    struct value ignored;
    run->params = document_read(run, update->params, DOCUMENT_HASHED);
    struct dict *ctx = run->params == NULL ? NULL : make_ctx(run, update);
    if (ctx == NULL) {
        script_error_run(run, ret_problem);
        return SCRIPT_FAILED;
    }
    if (run->script->bare_names && check_bare_names(run, ret_problem) != 0)
        return SCRIPT_FAILED;
    bool ok = true;
    if (run->groovy) {
        run->binding = dict_new(run, CLASS_LINKED_HASH_MAP);
        ok = dict_put_all(run, run->binding, run->params) && bind_variable(run, "ctx", value_of(ctx));
    } else {
        dict_freeze(run->params);
    }
    struct value inputs[2] = {value_of(run->params), value_of(ctx)};
    if (!ok || !run_main(run, inputs, 2, &ignored)) {
        script_error_run(run, ret_problem);
        return SCRIPT_FAILED;
    }
    return finish_update(run, ctx, update, ret_problem);
}

int script_run_update(const struct script *script, const struct script_limits *limits, struct arena *arena,
                      struct script_update *update, struct problem *ret_problem)
{
    REQUIRE(script->context == SCRIPT_FOR_UPDATE && update->ctx < SCRIPT_CTX_COUNT);
    struct run run;
    run_init(&run, script, limits, arena, update->account);
    run.now_ms = update->now_ms;
    run.zones = update->zones;
    run.old_library = update->old_library;
    run.old_formats = update->old_library || update->old_formats;
    int r = run_update(&run, update, ret_problem);
    run_draw(&run);
    update->steps = run_steps(&run);
    update->values = run.values_read;
    update->exhausted = r != 0 && run.exhausted == RUN_EXHAUSTED_STEPS;
    return r;
}

/* Values */

static bool give_inputs(struct run *run, const struct script_eval *value, struct value inputs[3])
{
    struct value doc = doc_new(run, value->doc, value->doc_user);
    inputs[0] = value_of(run->params);
    inputs[1] = doc;
    inputs[2] = value_double(value->score);
    if (value->source.data != NULL) {
        struct dict *source = document_read(run, value->source, DOCUMENT_HASHED);
        if (source == NULL || !dict_put_ascii(run, run->params, "_source", value_of(source)))
            return false;
    }
    if (!run->groovy)
        return true;
    run->binding = dict_new(run, CLASS_LINKED_HASH_MAP);
    bool scored = run->script->context != SCRIPT_FOR_FIELD && run->script->context != SCRIPT_FOR_FILTER;
    return dict_put_all(run, run->binding, run->params) && bind_variable(run, "doc", doc) &&
           (!scored || bind_variable(run, "_score", inputs[2]));
}

/* In 5.x a filter may return a number, and a script for number sort must. */
static bool fit_groovy(struct run *run, struct value *result)
{
    char name[TYPE_NAME_MAX];
    struct text *shown;
    switch (run->script->context) {
    case SCRIPT_FOR_FILTER:
        if (value_number(*result))
            *result = value_boolean(number_to_i64(*result) != 0);
        if (result->kind == VALUE_BOOLEAN || result->kind == VALUE_NULL)
            return true;
        shown = value_to_text(run, *result);
        return shown != NULL &&
               run_throw(run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "Can't handle type [%.*s] in script filter",
                         SLICE_ARG(text_slice(run->arena, shown)));
    case SCRIPT_FOR_NUMBER_SORT:
        if (value_number(*result))
            return true;
        if (result->kind == VALUE_NULL)
            return run_throw_npe(run, "java.lang.Number.doubleValue()");
        type_java_name(value_type(*result), name);
        return run_throw(run, CLASS_CLASS_CAST_EXCEPTION, "class %s cannot be cast to class java.lang.Number", name);
    default: return true;
    }
}

static int finish_value(struct run *run, struct value result, struct script_eval *value, struct problem *ret_problem)
{
    tl_cleanup(buf_deinit) struct buf out = BUF_INIT(run->limits->memory_bytes_max);
    bool fits = !run->groovy || fit_groovy(run, &result);
    struct text *display = fits ? value_to_text(run, result) : NULL;
    bool written = display != NULL && document_check_cycles(run, result) && document_write(run, result, &out);
    bool text_will_do = display != NULL && run->script->context == SCRIPT_FOR_TEST;
    if (!written && !text_will_do) {
        script_error_plain(run, ret_problem);
        return SCRIPT_UNFIT;
    }
    value->display = text_slice(run->arena, display);
    value->json = written ? arena_copy(run->arena, buf_as_slice(&out)) : SLICE_NONE;
    value->boolean = result.kind == VALUE_BOOLEAN && result.i != 0;
    value->number = value_number(result) ? number_to_double(run, result) : 0;
    value->string = value->display;
    return 0;
}

static int run_value(struct run *run, struct script_eval *value, struct problem *ret_problem)
{
    const struct script *script = run->script;
    struct value inputs[3], result;
    run->params = document_read(run, value->params, DOCUMENT_HASHED);
    if (run->params == NULL || !give_inputs(run, value, inputs)) {
        script_error_run(run, ret_problem);
        return SCRIPT_FAILED;
    }
    if (script->bare_names && check_bare_names(run, ret_problem) != 0)
        return SCRIPT_FAILED;
    if (!run_main(run, inputs, script->context == SCRIPT_FOR_TEST ? 1 : 3, &result)) {
        script_error_run(run, ret_problem);
        return SCRIPT_FAILED;
    }
    return finish_value(run, result, value, ret_problem);
}

int script_run_value(const struct script *script, const struct script_limits *limits, struct arena *arena,
                     struct script_eval *value, struct problem *ret_problem)
{
    REQUIRE(script->context != SCRIPT_FOR_UPDATE && script->context != SCRIPT_FOR_ANY);
    struct run run;
    run_init(&run, script, limits, arena, value->account);
    run.zones = value->zones;
    int r = run_value(&run, value, ret_problem);
    run_draw(&run);
    value->steps = run_steps(&run);
    return r;
}
