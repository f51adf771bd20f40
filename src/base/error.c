/* SPDX-License-Identifier: Apache-2.0 */
/* The error convention; see error.h. */
#include "base/error.h"

#include "base/arena.h"
#include "base/check.h"

#include <stdarg.h>

static const struct {
    int status;
    const char *name;
} rows[PROBLEM_COUNT] = {
    [PROBLEM_NONE] = {200, "none"},
#define X(symbol, status, name) [PROBLEM_##symbol] = {status, name},
#include "base/errors.def"
#undef X
};

const char *error_text(int code)
{
    switch (code) {
    case TL_ERR_IO: return "input/output error";
    case TL_ERR_CORRUPT: return "stored data is corrupt";
    case TL_ERR_NO_SPACE: return "no space left on device";
    case TL_ERR_BUSY: return "in use by another process";
    case TL_ERR_VERSION: return "of a newer format";
    case TL_ERR_STOPPED: return "stopped";
    default: return "unknown error";
    }
}

void problem_set(struct problem *ret_problem, struct arena *arena, enum problem_type type, const char *format, ...)
{
    REQUIRE(type > PROBLEM_NONE && type < PROBLEM_COUNT);
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    *ret_problem = (struct problem){.type = type, .reason = reason};
}

void problem_details(struct problem *problem, struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    problem->details = arena_vprintf(arena, format, arguments);
    va_end(arguments);
}

int problem_status(const struct problem *problem)
{
    return problem->status != 0 ? problem->status : rows[problem->type].status;
}

const char *problem_name(enum problem_type type)
{
    REQUIRE(type >= PROBLEM_NONE && type < PROBLEM_COUNT);
    return rows[type].name;
}

static struct slice copy_text(struct slice text, struct arena *arena)
{
    return text.data == NULL ? SLICE_NONE : arena_copy(arena, text);
}

void problem_copy(struct problem *ret_problem, const struct problem *problem, struct arena *arena)
{
    struct problem copy = *problem;

    copy.name = copy_text(problem->name, arena);
    copy.reason = copy_text(problem->reason, arena);
    copy.details = copy_text(problem->details, arena);
    if (problem->caused_by != NULL) {
        copy.caused_by = arena_alloc(arena, sizeof(*copy.caused_by));
        problem_copy(copy.caused_by, problem->caused_by, arena);
    }
    *ret_problem = copy;
}
