/* SPDX-License-Identifier: Apache-2.0 */
/* Error replies of scripts; see script_error.h. */
#include "script/run/script_error.h"

#include "script/run/interp.h"

#define SCRIPT_NAME_UNITS_MAX 256

static struct problem *cause_new(struct arena *arena, const char *name, struct slice reason)
{
    struct problem *cause = arena_zalloc(arena, sizeof *cause);
    cause->type = PROBLEM_SCRIPT;
    cause->name = arena_copy(arena, slice_from(name));
    cause->reason = reason;
    return cause;
}

/* The members of a script_exception that follow its reason. */
struct shown_script {
    struct slice lines[2]; /* of script_stack; data NULL: fewer */
    struct slice script;
    const char *lang;
    int32_t offset, start, end; /* of `position`; offset -1: none */
};

static void set_script_problem(struct arena *arena, struct problem *ret_problem, const char *reason,
                               const struct shown_script *shown, struct slice extra)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&out, extra);
    buf_lit(&out, "\"script_stack\":[");
    for (unsigned i = 0; i < 2 && shown->lines[i].data != NULL; i++) {
        if (i > 0)
            buf_byte(&out, ',');
        buf_json_string(&out, shown->lines[i]);
    }
    buf_lit(&out, "],\"script\":");
    buf_json_string(&out, shown->script);
    buf_printf(&out, ",\"lang\":\"%s\"", shown->lang);
    if (shown->offset >= 0)
        buf_printf(&out, ",\"position\":{\"offset\":%d,\"start\":%d,\"end\":%d}", shown->offset, shown->start,
                   shown->end);
    *ret_problem = (struct problem){.type = PROBLEM_SCRIPT, .reason = arena_copy(arena, slice_from(reason))};
    ret_problem->details = arena_copy(arena, buf_as_slice(&out));
    buf_deinit(&out);
}

static struct slice source_part(struct slice source, const struct shown_script *shown)
{
    return utf8_part(source, (size_t)shown->start, (size_t)shown->end);
}

static struct slice pointer_line(struct arena *arena, int32_t spaces)
{
    return arena_printf(arena, "%*s^---- HERE", spaces, "");
}

/* Quotes 25 code units before and after the offset. */
static void show_around(struct arena *arena, struct slice source, int32_t offset, struct shown_script *shown)
{
    int32_t length = (int32_t)utf8_units(source);
    shown->offset = offset;
    shown->start = offset > 25 ? offset - 25 : 0;
    shown->end = offset + 25 < length ? offset + 25 : length;
    bool cut = shown->start > 0;
    shown->lines[0] = arena_printf(arena, "%s%.*s%s", cut ? "... " : "", SLICE_ARG(source_part(source, shown)),
                                   shown->end < length ? " ..." : "");
    shown->lines[1] = pointer_line(arena, offset - shown->start + (cut ? 4 : 0));
}

static void compile_groovy(const struct compiler *compiler, struct slice name, struct arena *arena,
                           struct problem *ret_problem)
{
    const struct compile_error *error = &compiler->error;
    struct shown_script shown = {.script = name.len > 0 ? name : compiler->source, .lang = "groovy", .offset = -1};
    shown.lines[0] = arena_copy(arena, error->stack);
    struct slice reason = arena_printf(arena, "Error compiling script %.*s", SLICE_ARG(compiler->name));
    struct slice full = arena_printf(arena, "startup failed:\n%.*s\n1 error\n", SLICE_ARG(error->stack));
    set_script_problem(arena, ret_problem, reason.data, &shown, SLICE_NONE);
    ret_problem->caused_by = cause_new(arena, "multiple_compilation_errors_exception", full);
}

void script_error_compile(const struct compiler *compiler, struct slice name, struct arena *arena,
                          struct problem *ret_problem)
{
    const struct compile_error *error = &compiler->error;
    char type[TYPE_NAME_MAX];
    if (compiler->lang == SCRIPT_GROOVY && error->stack.len > 0) {
        compile_groovy(compiler, name, arena, ret_problem);
        return;
    }
    struct shown_script shown = {.script = arena_copy(arena, name.len > 0 ? name : compiler->source),
                                 .lang = script_lang_name(compiler->lang),
                                 .offset = -1};
    if (error->offset >= 0)
        show_around(arena, compiler->source, error->offset, &shown);
    set_script_problem(arena, ret_problem, "compile error", &shown, SLICE_NONE);
    struct slice reason = error->type == CLASS_STACK_OVERFLOW_ERROR ? SLICE_NONE : arena_copy(arena, error->reason);
    ret_problem->caused_by = cause_new(arena, class_error_name(error->type, type), reason);
    if (error->cause != NULL)
        ret_problem->caused_by->caused_by = cause_new(arena, error->cause, SLICE_NONE);
}

#define CAUSES_MAX 20 /* causes reported for one error; a chain of causes may be cyclic */

static struct problem *throwable_problem(struct run *run, const struct throwable *thrown, unsigned depth)
{
    char type[TYPE_NAME_MAX];
    struct slice reason = thrown->message == NULL ? SLICE_NONE : text_slice(run->arena, thrown->message);
    struct problem *cause = cause_new(run->arena, class_error_name((enum class_id)thrown->object.class, type), reason);
    if (thrown->caused_by.len > 0)
        cause->caused_by = cause_new(run->arena, thrown->caused_by.data, SLICE_NONE);
    else if (thrown->cause != NULL && depth < CAUSES_MAX)
        cause->caused_by = throwable_problem(run, thrown->cause, depth + 1);
    return cause;
}

/* Finds the statement that contains the offset. */
static void show_statement(struct run *run, int32_t offset, struct shown_script *shown)
{
    const struct script *script = run->script;
    const struct program *program = &script->program;
    shown->offset = offset;
    shown->start = 0;
    shown->end = (int32_t)utf8_units(script->source);
    for (unsigned i = 0; i < program->start_count; i++) {
        if (program->starts[i] <= offset)
            shown->start = program->starts[i];
        else
            break;
    }
    for (unsigned i = program->start_count; i-- > 0 && program->starts[i] > shown->start;)
        shown->end = program->starts[i];
    shown->lines[0] = source_part(script->source, shown);
    shown->lines[1] = pointer_line(run->arena, offset - shown->start);
}

/* Adds the members that Debug.explain adds to the error. */
static struct slice add_explanation(struct run *run, const struct throwable *thrown)
{
    char painless[TYPE_NAME_MAX] = "null", java[TYPE_NAME_MAX] = "null";
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    if (thrown->object.class != CLASS_PAINLESS_EXPLAIN_ERROR)
        return SLICE_NONE;
    struct value value = thrown->explained;
    struct throwable *pending = run->thrown;
    run->thrown = NULL;
    struct text *shown = value_to_text(run, value);
    run->thrown = pending;
    if (value.kind != VALUE_NULL) {
        type_name(value_type(value), painless);
        type_java_name(value_type(value), java);
        buf_printf(&out, "\"painless_class\":\"%s\",", painless);
        buf_lit(&out, "\"to_string\":");
        buf_json_string(&out, shown == NULL ? SLICE_LIT("") : text_slice(run->arena, shown));
        buf_printf(&out, ",\"java_class\":\"%s\",", java);
    }
    struct slice text = arena_copy(run->arena, buf_as_slice(&out));
    buf_deinit(&out);
    return text;
}

/* Returns: a script's name as in the JVM class: one line of at most 256 code units. */
static struct slice short_name(struct arena *arena, struct slice name)
{
    const char *line_end = memchr(name.data, '\n', name.len);
    struct slice line = line_end == NULL ? name : slice_make(name.data, (size_t)(line_end - name.data));
    const char *ret = line_end == NULL ? NULL : memchr(line.data, '\r', line.len);
    if (ret != NULL)
        line.len = (size_t)(ret - line.data);
    if (utf8_units(line) > SCRIPT_NAME_UNITS_MAX)
        line = utf8_part(line, 0, SCRIPT_NAME_UNITS_MAX);
    return line.len == name.len ? name : arena_printf(arena, "%.*s ...", SLICE_ARG(line));
}

void script_error_run(struct run *run, struct problem *ret_problem)
{
    const struct script *script = run->script;
    const struct throwable *thrown = run->thrown;
    struct slice name = script->name.len > 0 ? script->name : script->source;
    struct shown_script shown = {.script = SLICE_LIT(""), .lang = script_lang_name(script->lang), .offset = -1};
    if (run->groovy) {
        struct slice reason = arena_printf(run->arena, "error evaluating %.*s", SLICE_ARG(name));
        set_script_problem(run->arena, ret_problem, reason.data, &shown, SLICE_NONE);
    } else {
        shown.script = short_name(run->arena, name);
        if (thrown->offset >= 0)
            show_statement(run, (int32_t)thrown->offset, &shown);
        else
            shown.lines[0] = SLICE_LIT("<<< unknown portion of script >>>");
        set_script_problem(run->arena, ret_problem, "runtime error", &shown, add_explanation(run, thrown));
    }
    ret_problem->caused_by = throwable_problem(run, thrown, 0);
}

void script_error_plain(struct run *run, struct problem *ret_problem)
{
    *ret_problem = *throwable_problem(run, run->thrown, 0);
    switch (run->thrown->object.class) {
    case CLASS_ILLEGAL_ARGUMENT_EXCEPTION:
    case CLASS_LIMIT_EXCEEDED: ret_problem->type = PROBLEM_ILLEGAL_ARGUMENT; break;
    case CLASS_NULL_POINTER_EXCEPTION: ret_problem->type = PROBLEM_NULL_POINTER; break;
    default: ret_problem->type = PROBLEM_CLASS_CAST; ret_problem->status = 500;
    }
}
