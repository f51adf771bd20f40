/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a query string.
 */
#include "api/request/params.h"

#include <stdlib.h>

#include "base/suggest.h"
#include "api/request/name_list.h"
#include "api/request/url.h"
#include "json/time_value.h"

/* Parameters that every call accepts and proposes, and those that it accepts only. */
static const char common_names[] = "pretty human error_trace filter_path format +session +transaction "
                                   "+timestamp +as_of +fencing_token";

/* Names of our own are proposed for those that are nearer than this, so that Elasticsearch's are proposed as by it. */
#define OWN_SIMILARITY_MIN 0.75

#define NAMES_MAX 160

/* --- Splitting ---------------------------------------------------------------------------------------------------- */

static int bad_escape(struct arena *arena, struct slice reason, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_BAD_PARAMETER, "java.lang.IllegalArgumentException: %.*s",
                SLICE_ARG(reason));
    ret_problem->caused_by = arena_zalloc(arena, sizeof *ret_problem->caused_by);
    problem_set(ret_problem->caused_by, arena, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
    return PARAMS_REFUSED;
}

static void params_put(struct arena *arena, struct params *params, struct slice name, struct slice value)
{
    for (size_t i = 0; i < params->count; i++)
        if (slice_equal(params->items[i].name, name)) {
            params->items[i].value = value;
            return;
        }
    params->items = arena_grow(arena, params->items, params->count, &params->capacity, sizeof *params->items);
    params->items[params->count++] = (struct param){name, value};
}

/* One piece between '&' or ';'. */
static int params_piece(struct arena *arena, struct slice piece, struct params *params, struct problem *ret_problem)
{
    struct slice reason, name, value = SLICE_LIT("");
    size_t equals = slice_find_byte(piece, '=');
    if (equals == 0 && piece.len > 0) /* "=a=b": the name ends before the second one */
        return params_piece(arena, slice_from_offset(piece, 1), params, ret_problem);
    if (piece.len == 0)
        return 0;
    if (url_decode(arena, slice_make(piece.data, equals), true, &name, &reason) != 0)
        return bad_escape(arena, reason, ret_problem);
    if (equals < piece.len && url_decode(arena, slice_from_offset(piece, equals + 1), true, &value, &reason) != 0)
        return bad_escape(arena, reason, ret_problem);
    if (params->count == PARAMS_MAX) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "more than %d parameters in a request", PARAMS_MAX);
        return PARAMS_REFUSED;
    }
    params_put(arena, params, name, value);
    return 0;
}

int params_parse(struct arena *arena, struct slice query, struct params *ret_params, struct problem *ret_problem)
{
    *ret_params = (struct params){NULL};
    size_t start = 0;
    for (size_t i = 0; i <= query.len && query.len > 0; i++) {
        if (i < query.len && query.data[i] != '&' && query.data[i] != ';')
            continue;
        if (params_piece(arena, slice_make(query.data + start, i - start), ret_params, ret_problem) != 0)
            return PARAMS_REFUSED;
        start = i + 1;
    }
    return 0;
}

struct slice params_get(const struct params *params, const char *name)
{
    for (size_t i = 0; i < params->count; i++)
        if (slice_is(params->items[i].name, name))
            return params->items[i].value;
    return SLICE_NONE;
}

/* --- Typed reading ------------------------------------------------------------------------------------------------ */

int params_bool(const struct params *params, const char *name, enum dialect dialect, struct arena *arena,
                bool *ret_value, struct problem *ret_problem)
{
    static const char *const no[] = {"false", "0", "off", "no", NULL};
    struct slice text = params_get(params, name);
    if (text.data == NULL)
        return 0;
    if (text.len == 0 || slice_is(text, "true")) {
        *ret_value = true;
    } else if (slice_is(text, "false")) {
        *ret_value = false;
    } else if (dialect == DIALECT_5) {
        *ret_value = !slice_is_any(text, no); /* 5.6 takes anything else for true */
    } else {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
        return PARAMS_REFUSED;
    }
    return 0;
}

static int bad_number(const char *kind, const char *name, struct slice text, struct arena *arena,
                      struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "Failed to parse %s parameter [%s] with value [%.*s]",
                kind, name, SLICE_ARG(text));
    ret_problem->caused_by = arena_zalloc(arena, sizeof *ret_problem->caused_by);
    problem_set(ret_problem->caused_by, arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
    return PARAMS_REFUSED;
}

int params_int(const struct params *params, const char *name, struct arena *arena, int32_t *ret_value,
               struct problem *ret_problem)
{
    int64_t value;
    struct slice text = params_get(params, name);
    if (text.data == NULL)
        return 0;
    if (!slice_to_i64(text, &value) || value < INT32_MIN || value > INT32_MAX)
        return bad_number("int", name, text, arena, ret_problem);
    *ret_value = (int32_t)value;
    return 0;
}

int params_long(const struct params *params, const char *name, struct arena *arena, int64_t *ret_value,
                struct problem *ret_problem)
{
    struct slice text = params_get(params, name);
    if (text.data == NULL)
        return 0;
    if (!slice_to_i64(text, ret_value))
        return bad_number("long", name, text, arena, ret_problem);
    return 0;
}

int params_time(const struct params *params, const char *name, enum dialect dialect, struct arena *arena,
                int64_t *ret_value, struct problem *ret_problem)
{
    struct slice text = params_get(params, name);
    if (text.data == NULL)
        return 0;
    return time_value_parse(text, slice_from(name), dialect, arena, ret_value, ret_problem) == 0 ? 0 : PARAMS_REFUSED;
}

/* --- Accepted parameters ------------------------------------------------------------------------------------------ */

enum standing { PROPOSED, SILENT, OWN, BARRED };

/* Takes the next name off a list. Returns: false at its end. */
static bool next_name(const char **list, struct slice *ret_name, enum standing *ret_standing)
{
    const char *at = *list;
    size_t len = 0;
    while (*at == ' ')
        at++;
    *ret_standing = *at == '~' ? SILENT : *at == '+' ? OWN : *at == '-' ? BARRED : PROPOSED;
    at += *ret_standing != PROPOSED;
    while (at[len] != ' ' && at[len] != '\0') /* names are short: strcspn() takes longer to begin */
        len++;
    *ret_name = slice_make(at, len);
    *list = at + len;
    return len > 0;
}

static bool lists_name(const char *list, struct slice wanted, bool barred)
{
    struct slice name;
    enum standing standing;
    while (next_name(&list, &name, &standing))
        if ((standing == BARRED) == barred && slice_equal(name, wanted))
            return true;
    return false;
}

bool params_listed(const char *accepted, const char *name)
{
    return lists_name(accepted, slice_from(name), false);
}

bool params_barred(const char *accepted, const char *name)
{
    return lists_name(accepted, slice_from(name), true);
}

static bool is_given(const struct params *params, struct slice name)
{
    for (size_t i = 0; i < params->count; i++)
        if (slice_equal(params->items[i].name, name))
            return true;
    return false;
}

/* The companions of `q`, which are not read without it. */
static bool only_with_query(struct slice name)
{
    static const char *const names[] = {"df", "analyzer", "analyze_wildcard", "default_operator", "lenient"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

/* The names of a list that may be proposed for `unknown`. */
static size_t collect_names(const struct params *params, struct slice unknown, const char *list, struct slice *names,
                            size_t count)
{
    struct slice name;
    enum standing standing;
    while (count < NAMES_MAX && next_name(&list, &name, &standing)) {
        if (standing == PROPOSED || (standing == SILENT && is_given(params, name)) ||
            (standing == OWN && (is_given(params, name) || suggest_similarity(unknown, name) > OWN_SIMILARITY_MIN)))
            names[count] = name, count += !only_with_query(name) || is_given(params, SLICE_LIT("q"));
    }
    return count;
}

static bool is_known(const struct params *params, struct slice name, const char *accepted)
{
    if (only_with_query(name) && !is_given(params, SLICE_LIT("q")))
        return false;
    return lists_name(accepted, name, false) || lists_name(common_names, name, false);
}

bool params_known(const struct params *params, const char *accepted)
{
    for (size_t i = 0; i < params->count; i++)
        if (!is_known(params, params->items[i].name, accepted))
            return false;
    return true;
}

/* Parameters of a cluster, where they would have no effect. */
static int refuse_misplaced(struct slice unknown, struct arena *arena, struct problem *ret_problem)
{
    bool writes = slice_is(unknown, "distribute_timestamps");
    if (!writes && !slice_is(unknown, "multi_version_concurrency_control"))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "[%.*s] is not supported by this call: it is a parameter of %s", SLICE_ARG(unknown),
                writes ? "calls that change what others read" : "calls that read documents");
    return PARAMS_REFUSED;
}

/*
 * Appends the place or the name that a parameter of another call has here: [wait] is a member of lock
 * requests, and too far from the [timeout] of other calls to be taken for a slip.
 */
static void append_counterpart(struct buf *text, struct slice unknown, const char *accepted, struct slice path)
{
    if (!slice_is(unknown, "wait"))
        return;
    if (slice_is(path, "/_lock"))
        buf_lit(text, " -> it is a member of the body");
    else if (lists_name(accepted, SLICE_LIT("timeout"), false))
        buf_lit(text, " -> did you mean [timeout]?");
}

int params_check(const struct params *params, const char *accepted, struct slice path, struct arena *arena,
                 struct problem *ret_problem)
{
    struct slice unknown[PARAMS_MAX], names[NAMES_MAX];
    size_t unknown_count = 0;
    for (size_t i = 0; i < params->count; i++)
        if (!is_known(params, params->items[i].name, accepted))
            unknown[unknown_count++] = params->items[i].name;
    if (unknown_count == 0)
        return 0;
    qsort(unknown, unknown_count, sizeof *unknown, slice_order);
    if (refuse_misplaced(unknown[0], arena, ret_problem) != 0)
        return PARAMS_REFUSED;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < unknown_count; i++) {
        buf_printf(&text, "%s[%.*s]", i == 0 ? "" : ", ", SLICE_ARG(unknown[i]));
        size_t name_count = collect_names(params, unknown[i], accepted, names, 0);
        name_count = collect_names(params, unknown[i], common_names, names, name_count);
        suggest_append(&text, " ->", unknown[i], names, name_count);
        append_counterpart(&text, unknown[i], accepted, path);
    }
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "request [%.*s] contains unrecognized parameter%s: %.*s",
                SLICE_ARG(path), unknown_count > 1 ? "s" : "", SLICE_ARG(buf_as_slice(&text)));
    buf_deinit(&text);
    return PARAMS_REFUSED;
}
