/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of native calls; see native_body.h. */
#include "api/request/native_body.h"

#include <inttypes.h>

#include "base/suggest.h"
#include "json/each.h"
#include "json/time_value.h"

/* Locks of one request. */
#define LOCK_TARGETS_MAX 100000
#define NAMES_MAX 16

static size_t split_names(const char *list, struct slice *names)
{
    struct slice rest = slice_from(list);
    size_t count = 0;
    while (rest.len > 0 && count < NAMES_MAX) {
        size_t len = slice_find_byte(rest, ' ');
        names[count++] = slice_make(rest.data, len);
        rest = slice_from_offset(rest, len + 1);
    }
    return count;
}

/* ", as in {…}", after the error in a body. */
static struct slice example_of(struct request *request, const struct body_schema *form)
{
    if (form->example == NULL)
        return SLICE_LIT("; it takes none");
    return arena_printf(request->arena, "; such a body is %s", form->example);
}

/*
 * Refuses members of an object that `members` does not list. `what` names the object: "lock
 * request", "[locks]"; `advice` is appended.
 */
static int check_members(struct request *request, yyjson_val *object, const char *what, const char *members,
                         struct slice advice)
{
    size_t i, count, k;
    yyjson_val *key, *value;
    struct slice names[NAMES_MAX];
    size_t name_count = split_names(members, names);
    json_obj_foreach (object, i, count, key, value) {
        for (k = 0; k < name_count && !slice_equal(names[k], json_slice(key)); k++)
            ;
        if (k < name_count)
            continue;
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        suggest_append(&text, " ->", json_slice(key), names, name_count);
        int r = request_refuse(request, PROBLEM_PARSING, "unknown member [%.*s] in %s%.*s%.*s",
                               SLICE_ARG(json_slice(key)), what, SLICE_ARG(buf_as_slice(&text)), SLICE_ARG(advice));
        buf_deinit(&text);
        return r;
    }
    return 0;
}

int native_body_parse(struct request *request, const struct body_schema *form, struct native_body *ret_body)
{
    *ret_body = (struct native_body){.request = request, .form = form, .call = form->call};
    int r = request_json(request, 0, &ret_body->doc);
    if (r != 0)
        return r;
    if (ret_body->doc.root != NULL && !yyjson_is_obj(ret_body->doc.root))
        return request_refuse(request, PROBLEM_PARSING, "the body of %s request must be an object%.*s", form->call,
                              SLICE_ARG(example_of(request, form)));
    return check_members(request, ret_body->doc.root,
                         arena_printf(request->arena, "the body of %s request", form->call).data, form->members,
                         example_of(request, form));
}

int native_body_missing(struct native_body *body, const char *what)
{
    return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT, "%s request must name %s%.*s", body->call, what,
                          SLICE_ARG(example_of(body->request, body->form)));
}

int native_body_text(struct native_body *body, const char *name, struct slice *ret_value)
{
    yyjson_val *value = json_get(body->doc.root, slice_from(name));
    if (value == NULL || yyjson_is_null(value))
        return 0;
    if (!yyjson_is_str(value))
        return request_refuse(body->request, PROBLEM_PARSING, "[%s] of %s request must be a text%.*s", name, body->call,
                              SLICE_ARG(example_of(body->request, body->form)));
    *ret_value = json_slice(value);
    return 0;
}

int native_body_id(struct native_body *body, const char *name, struct slice *ret_id)
{
    struct slice id = SLICE_NONE;
    int r = native_body_text(body, name, &id);
    if (r != 0 || id.data == NULL)
        return r;
    if (id.len == 0)
        return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT, "[%s] of %s request must not be empty", name,
                              body->call);
    *ret_id = id;
    return 0;
}

/* Longer than a century is a mistake. */
#define OWN_TIME_US_MAX ((int64_t)36525 * 86400 * (int64_t)TL_SECOND)

static int refuse_time(struct native_body *body, const char *name, struct slice text, const char *why)
{
    return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT,
                          "failed to parse setting [%s] with value [%.*s] as a time value: %s", name, SLICE_ARG(text),
                          why);
}

int native_body_time(struct native_body *body, const char *name, uint64_t *ret_micros)
{
    int64_t micros;
    struct slice text = SLICE_NONE;
    int r = native_body_text(body, name, &text);
    if (r != 0 || text.data == NULL)
        return r;
    if (time_value_parse(text, slice_from(name), DIALECT_7, body->request->arena, &micros, &body->request->problem) !=
        0)
        return refuse_time(body, name, text, "a whole number and its unit are expected, such as [30s]");
    if (micros >= OWN_TIME_US_MAX)
        return refuse_time(body, name, text, "value is too large");
    if (micros < 0)
        return request_refuse(body->request, PROBLEM_ILLEGAL_ARGUMENT, "[%s] must not be negative", name);
    *ret_micros = (uint64_t)micros;
    return 0;
}

int native_body_ts(struct native_body *body, const char *name, tl_ts *ret_ts)
{
    yyjson_val *value = json_get(body->doc.root, slice_from(name));
    if (value == NULL || yyjson_is_null(value))
        return 0;
    if (!yyjson_is_uint(value) || yyjson_get_uint(value) == 0 || yyjson_get_uint(value) > TL_TS_MAX)
        return request_refuse(body->request, PROBLEM_PARSING,
                              "[%s] of %s request must be a number of microseconds since 1970", name, body->call);
    *ret_ts = yyjson_get_uint(value);
    return 0;
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static int read_mode(struct request *request, yyjson_val *item, enum lock_mode mode_default, enum lock_mode *ret_mode)
{
    struct slice text = json_slice(json_get_lit(item, "mode"));
    if (text.data == NULL && mode_default != LOCK_NONE)
        *ret_mode = mode_default;
    else if (slice_is(text, "exclusive"))
        *ret_mode = LOCK_X;
    else if (slice_is(text, "shared"))
        *ret_mode = LOCK_S;
    else if (slice_is(text, "update"))
        *ret_mode = LOCK_U;
    else if (json_get_lit(item, "mode") == NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "a lock must name its [mode]: [shared], [update] or [exclusive]");
    else
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[mode] of a lock must be [shared], [update] or [exclusive], got [%.*s]",
                              SLICE_ARG(text));
    return 0;
}

/* A name that is null or empty is a mistake: without it the lock would be on something larger than was meant. */
static int read_name(struct request *request, yyjson_val *item, const char *name, struct slice *ret_text)
{
    yyjson_val *value = json_get(item, slice_from(name));
    if (value == NULL)
        return 0;
    if (!yyjson_is_str(value) || yyjson_get_len(value) == 0)
        return request_refuse(request, PROBLEM_PARSING, "[%s] of a lock must be a text that is not empty", name);
    *ret_text = json_slice(value);
    return 0;
}

static const struct slice lock_advice = SLICE_LIT(
    "; a lock is on everything, on an [index], on a directory ([index] and [path]) or on a document ([index] and "
    "[id]), and has a [mode], [shared], [update] or [exclusive]");

static int read_target(struct request *request, yyjson_val *item, enum lock_mode mode_default,
                       struct lock_target *target)
{
    *target = (struct lock_target){LOCK_NONE};
    if (!yyjson_is_obj(item))
        return request_refuse(request, PROBLEM_PARSING, "[locks] must hold objects");
    int r = check_members(request, item, "a lock", "mode index path type id", lock_advice);
    if (r != 0 || (r = read_mode(request, item, mode_default, &target->mode)) != 0 ||
        (r = read_name(request, item, "index", &target->index)) != 0 ||
        (r = read_name(request, item, "path", &target->path)) != 0 ||
        (r = read_name(request, item, "type", &target->type)) != 0 ||
        (r = read_name(request, item, "id", &target->id)) != 0)
        return r;
    if (target->index.len == 0 && (target->path.data != NULL || target->id.data != NULL || target->type.len > 0))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "a lock with [path], [type] or [id] must name its [index]");
    if (target->path.data != NULL && target->id.data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "a lock is on a [path] or on an [id], not on both");
    if (target->type.len > 0 && target->id.data == NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "a lock with a [type] must name the [id]");
    return 0;
}

int native_body_targets(struct native_body *body, enum lock_mode mode_default, struct lock_target **ret_targets,
                        size_t *ret_count)
{
    size_t i, count;
    yyjson_val *item, *locks = json_get_lit(body->doc.root, "locks");
    *ret_targets = NULL;
    *ret_count = 0;
    if (locks == NULL || yyjson_is_null(locks))
        return 0;
    if (!yyjson_is_arr(locks))
        return request_refuse(body->request, PROBLEM_PARSING, "[locks] must be a list%.*s",
                              SLICE_ARG(example_of(body->request, body->form)));
    if (yyjson_arr_size(locks) > LOCK_TARGETS_MAX)
        return request_refuse(body->request, PROBLEM_LIMIT_EXCEEDED, "more than %d locks in a request",
                              LOCK_TARGETS_MAX);
    struct lock_target *targets = arena_alloc(body->request->arena, (yyjson_arr_size(locks) + 1) * sizeof *targets);
    json_arr_foreach (locks, i, count, item) {
        int r = read_target(body->request, item, mode_default, &targets[i]);
        if (r != 0)
            return r;
    }
    *ret_targets = targets;
    *ret_count = yyjson_arr_size(locks);
    return 0;
}

struct slice own_duration(struct arena *arena, uint64_t micros)
{
    if (micros >= TL_SECOND && micros % TL_SECOND == 0)
        return arena_printf(arena, "%" PRIu64 "s", micros / TL_SECOND);
    if (micros >= TL_MS || micros == 0)
        return arena_printf(arena, "%" PRIu64 "ms", micros / TL_MS);
    return arena_printf(arena, "%" PRIu64 "micros", micros);
}
