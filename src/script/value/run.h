/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a script: its budgets, its pending throwable, the memory of its values.
 *
 * A function that throws returns false and leaves the throwable in `run->thrown`. Exceeding a limit is a throwable
 * that no script can catch. Memory is charged when it is allocated. Small allocations always succeed; if they
 * overdraw the budget, the run fails at its next step (invariant 2). So only sizes that a script controls are checked.
 */
#ifndef TL_SCRIPT_RUN_H
#define TL_SCRIPT_RUN_H

#include "base/stack.h"
#include "script/script.h"
#include "script/value/value.h"

struct text;
struct node;
struct function;
struct call_cache;
struct method_rows;

struct throwable {
    struct object object;
    struct text *message;    /* NULL where Java's getMessage() is null */
    struct value explained;  /* of a PAINLESS_EXPLAIN_ERROR */
    int64_t offset;          /* in the source, UTF-16 code units; -1: not set yet */
    struct slice caused_by;  /* error name of a cause without a reason, or empty */
    struct throwable *cause; /* the cause that the script passed; NULL: none */
};

enum run_exhausted { RUN_EXHAUSTED_NOTHING, RUN_EXHAUSTED_STEPS, RUN_EXHAUSTED_MEMORY, RUN_EXHAUSTED_ACCOUNT };

struct run {
    const struct script *script;
    struct arena *arena;
    const struct script_limits *limits;
    uint64_t steps_left;     /* of the current slice; without an account, of the whole run */
    uint64_t steps_reserved; /* for later slices */
    struct account *account; /* charged and polled between slices; NULL: none */
    uint64_t steps_reported; /* already charged to the account */
    size_t memory_left;
    size_t values_read;                 /* of JSON; document_read() */
    unsigned depth;                     /* calls */
    unsigned nesting;                   /* C frames reserved by the current calls, see function->nesting */
    uintptr_t stack_floor;              /* of the thread, base/stack.h */
    enum run_exhausted exhausted;       /* which budget ended the run */
    struct throwable *thrown;           /* NULL: none */
    bool groovy;                        /* the dialect of the script */
    bool old_library;                   /* script_update.old_library */
    bool old_formats;                   /* script_update.old_formats; always with old_library */
    struct call_cache *caches;          /* one per call site: the last method found */
    const struct method_rows **methods; /* Groovy: cache of lookups, see run_methods; NULL before the first */
    struct value *stack;                /* of locals */
    struct value *stack_next;
    struct value *stack_end;
    const struct node *jump; /* Groovy: a labelled break or continue that is unwinding; else NULL */
    int64_t now_ms;
    struct slice zones;      /* time zone database; empty: only offsets are known */
    struct recorder *record; /* collects values of an assertion's subexpressions (power_assert.c); else NULL */
    struct dict *params;     /* bare names in SCRIPT_DEFAULT and Groovy */
    uint32_t as_object;      /* Groovy: of the call that is about to be made, see struct method_lookup */
    struct dict *binding;    /* Groovy: ctx, params and variables assigned without a declaration */
    script_doc_function *doc;
    void *doc_user;
};

/* Allocations of at most this size are not checked against the budget. */
#define RUN_SMALL_BYTES ((size_t)4096)

/* Allocates `size` bytes, valid until the run ends. Requires: size <= RUN_SMALL_BYTES. */
void *run_alloc(struct run *run, size_t size) __attribute__((returns_nonnull));

/* Allocates any size. Returns: NULL with a throwable if the budget is too small. */
void *run_alloc_large(struct run *run, size_t size);

/* Charges bytes that were allocated elsewhere, at most some 100 KiB in one call. */
void run_charge(struct run *run, size_t size);

/*
 * Formats in the arena and charges it. For numbers and names, not for data whose length a script
 * controls.
 */
struct slice run_printf(struct run *run, const char *format, ...) TL_PRINTF(2, 3);

/* Allocates an object of that class; its header is set. */
void *run_object(struct run *run, size_t size, enum class_id id) __attribute__((returns_nonnull));

/* Throws the error of the exhausted budget, which no script can catch. Returns: false. */
bool run_fail_exhausted(struct run *run);

/*
 * A run with an account gets its steps in slices of RUN_SLICE_STEPS, a few milliseconds each, and
 * polls the account before each slice. Slices do not affect the result of a run unless the account
 * ends it.
 */
#define RUN_SLICE_STEPS ((uint64_t)1 << 16)

/*
 * Takes `n` steps, more than the current slice has left. Returns: false if the steps are exhausted
 * or the account has ended.
 */
bool run_next_slice(struct run *run, uint64_t n);

/* Returns: the number of steps taken. */
uint64_t run_steps(const struct run *run);

/* Account steps per script step. */
#define RUN_ACCOUNT_STEPS 16u

/* Charges the account for steps not charged yet. Also called at the end of a run. */
void run_draw(struct run *run);

/* Takes `n` steps. Returns: false with a throwable if they are exhausted. */
static inline bool run_step(struct run *run, uint64_t n)
{
    if (__builtin_expect(run->steps_left < n, 0))
        return run_next_slice(run, n) || run_fail_exhausted(run);
    run->steps_left -= n;
    return true;
}

/*
 * Charges the code units, digits or bytes that a library function read without taking a step for each.
 * Never fails: a run without steps fails at its next run_step, so a single call may exceed the budget.
 */
#define RUN_UNITS_PER_STEP 8
static inline void run_work(struct run *run, size_t units)
{
    uint64_t steps = units / RUN_UNITS_PER_STEP;
    if (__builtin_expect(run->steps_left < steps, 0)) {
        (void)run_next_slice(run, steps);
        return;
    }
    run->steps_left -= steps;
}

/*
 * Reserves `frames` C frames for recursion over nested values and composed functions; undone by run_leave.
 * Returns: false with a stack_overflow_error if too deep. The count decides; the stack address decides only in a thread
 * with less than STACK_BYTES (base/stack.h).
 */
#define RUN_NESTING_MAX 4000u
#define RUN_FRAME_BYTES ((size_t)1024 * STACK_FACTOR) /* native stack per counted frame, at most */
/* Frames of a library function that calls a function passed by the script. */
#define RUN_NATIVE_FRAMES 4u
bool run_enter(struct run *run, unsigned frames);
static inline void run_leave(struct run *run, unsigned frames)
{
    run->nesting -= frames;
}

/* Throws. Returns: false, for `return run_throw(...)`. */
bool run_throw(struct run *run, enum class_id id, const char *format, ...) TL_PRINTF(3, 4);
bool run_throw_null(struct run *run, enum class_id id); /* without message */
bool run_throw_text(struct run *run, enum class_id id, struct text *message);
/*
 * Throws a NullPointerException that Java's JVM itself would throw; its message differs between JVM
 * releases.
 */
bool run_throw_npe(struct run *run, const char *what);

/* Calls a function value (lambda, closure, method reference, comparator) with arguments. */
bool run_invoke(struct run *run, struct value function, struct value *arguments, unsigned count, struct value *ret);

/*
 * Returns: the number of parameters of a function value; 1 for a closure without a parameter list.
 */
unsigned function_arity(struct value function);

#endif
