/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets and throwables of a run; see run.h. */
#include "script/value/run.h"

#include "base/account.h"
#include "base/check.h"
#include "script/value/text.h"

#include <stdarg.h>

static void end_steps(struct run *run, enum run_exhausted why)
{
    run->steps_left = run->steps_reserved = 0;
    run->exhausted = run->exhausted == RUN_EXHAUSTED_NOTHING ? why : run->exhausted;
}

bool run_next_slice(struct run *run, uint64_t n)
{
    if (run->exhausted != RUN_EXHAUSTED_NOTHING || run->steps_left + run->steps_reserved < n) {
        end_steps(run, RUN_EXHAUSTED_STEPS);
        return false;
    }
    run_draw(run);
    if (!account_poll(run->account)) {
        end_steps(run, RUN_EXHAUSTED_ACCOUNT);
        return false;
    }
    uint64_t left = run->steps_left + run->steps_reserved - n;
    run->steps_left = left < RUN_SLICE_STEPS ? left : RUN_SLICE_STEPS;
    run->steps_reserved = left - run->steps_left;
    return true;
}

void run_draw(struct run *run)
{
    uint64_t steps = run_steps(run);
    (void)account_take(run->account, (steps - run->steps_reported) * RUN_ACCOUNT_STEPS);
    run->steps_reported = steps;
}

uint64_t run_steps(const struct run *run)
{
    return run->limits->steps_max - run->steps_left - run->steps_reserved;
}

bool run_fail_exhausted(struct run *run)
{
    if (run->thrown != NULL && run->thrown->object.class == CLASS_LIMIT_EXCEEDED)
        return false;
    end_steps(run, RUN_EXHAUSTED_STEPS);
    bool memory = run->exhausted == RUN_EXHAUSTED_MEMORY;
    if (run->exhausted == RUN_EXHAUSTED_ACCOUNT)
        return run_throw(run, CLASS_LIMIT_EXCEEDED, "the request that runs the script has ended");
    unsigned long long bound = memory ? run->limits->memory_bytes_max : run->limits->steps_max;
    return run_throw(
        run, CLASS_LIMIT_EXCEEDED,
        memory ? "the script needs more than %llu bytes of memory" : "the script takes more than %llu steps", bound);
}

/*
 * Allocated memory will be written: charge steps by its size, beyond small allocations that their
 * own step covers.
 */
#define BYTES_PER_UNIT 4

static void work_for(struct run *run, size_t size)
{
    if (size > 128)
        run_work(run, size / BYTES_PER_UNIT);
}

void run_charge(struct run *run, size_t size)
{
    work_for(run, size);
    if (size <= run->memory_left) {
        run->memory_left -= size;
        return;
    }
    run->memory_left = 0;
    run->steps_left = run->steps_reserved = 0;
    run->exhausted = RUN_EXHAUSTED_MEMORY;
}

void *run_alloc(struct run *run, size_t size)
{
    REQUIRE(size <= RUN_SMALL_BYTES);
    run_charge(run, size);
    return arena_alloc(run->arena, size);
}

void *run_alloc_large(struct run *run, size_t size)
{
    if (size <= run->memory_left) {
        run->memory_left -= size;
        work_for(run, size);
        return arena_alloc(run->arena, size);
    }
    run->exhausted = RUN_EXHAUSTED_MEMORY;
    run_fail_exhausted(run);
    return NULL;
}

struct slice run_printf(struct run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice text = arena_vprintf(run->arena, format, arguments);
    va_end(arguments);
    run_charge(run, text.len);
    return text;
}

void *run_object(struct run *run, size_t size, enum class_id id)
{
    struct object *object = run_alloc(run, size);
    memset(object, 0, size);
    object->class = (uint16_t)id;
    return object;
}

bool run_enter(struct run *run, unsigned frames)
{
    if (run->nesting + frames > RUN_NESTING_MAX || stack_here() < run->stack_floor + frames * RUN_FRAME_BYTES)
        return run_throw_null(run, CLASS_STACK_OVERFLOW_ERROR);
    run->nesting += frames;
    return true;
}

bool run_throw_text(struct run *run, enum class_id id, struct text *message)
{
    /* Keep the throwable that ended the run: a later failure while unwinding is its consequence. */
    if (run->thrown != NULL && run->thrown->object.class == CLASS_LIMIT_EXCEEDED)
        return false;
    struct throwable *thrown = arena_zalloc(run->arena, sizeof *thrown);
    thrown->object.class = (uint16_t)id;
    thrown->message = message;
    thrown->offset = -1;
    run_charge(run, sizeof *thrown);
    run->thrown = thrown;
    return false;
}

bool run_throw_null(struct run *run, enum class_id id)
{
    return run_throw_text(run, id, NULL);
}

bool run_throw(struct run *run, enum class_id id, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice message = arena_vprintf(run->arena, format, arguments);
    va_end(arguments);
    run_charge(run, message.len * 3); /* as UTF-8, and as a text */
    return run_throw_text(run, id, text_constant(run->arena, message));
}

bool run_throw_npe(struct run *run, const char *what)
{
    return run_throw(run, CLASS_NULL_POINTER_EXCEPTION, "Cannot invoke \"%s\" because the value is null", what);
}
