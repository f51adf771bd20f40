/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a script: its budgets, what it threw, where its values live.
 *
 * Functions that can throw return false and leave the throwable in `run->thrown`. A passed bound is a throwable that
 * no script can catch. Memory is charged when it is taken; small pieces are always handed out, and a budget that they
 * overdraw ends the run at the next step (invariant 2), so that only sizes a script decides need a check.
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
    int64_t offset;          /* where in the source, in UTF-16 units; -1 until the place is known */
    struct slice caused_by;  /* error name of a cause without a reason, or empty */
    struct throwable *cause; /* what the script named as such; NULL: nothing */
};

enum run_fail_exhausted { RUN_EXHAUSTED_NOTHING, RUN_EXHAUSTED_STEPS, RUN_EXHAUSTED_MEMORY, RUN_EXHAUSTED_ACCOUNT };

struct run {
    const struct script *script;
    struct arena *arena;
    const struct script_limits *limits;
    uint64_t steps_left;                /* of the slice at hand, which without an account is all of them */
    uint64_t steps_kept;                /* for later slices */
    struct account *account;            /* is drawn on and looked at between slices; NULL: none */
    uint64_t steps_drawn;               /* that the account has been told of */
    size_t memory_left;
    unsigned depth;                     /* calls */
    unsigned nesting;                   /* C frames that the current calls may take, see function->nesting */
    uintptr_t stack_floor;              /* of the thread, base/stack.h */
    enum run_fail_exhausted spent;               /* which budget ended the run */
    struct throwable *thrown;           /* NULL while all is well */
    bool groovy;                        /* the dialect of the script */
    struct call_cache *caches;          /* one a call site; what it found last */
    const struct method_rows **methods; /* Groovy: what was looked for, see run_methods; NULL before the first */
    struct value *stack;                /* of locals */
    struct value *stack_next;
    struct value *stack_end;
    const struct node *jump; /* Groovy: a break or continue with a label, on its way */
    int64_t now_ms;
    struct slice zones;      /* the database of time zones; empty: none have names */
    struct recorder *record; /* notes values of an assertion's parts, see power_assert.c; NULL elsewhere */
    struct dict *params;     /* bare names in SCRIPT_DEFAULT and Groovy */
    uint32_t as_object;      /* Groovy: of the call that is about to be made, see struct method_lookup */
    struct dict *binding;    /* Groovy: ctx, params and what the script assigned without declaring */
    script_doc_function *doc;
    void *doc_user;
};

/* A piece of at most this size is handed out without a check. */
#define RUN_SMALL_BYTES ((size_t)4096)

/* Memory of the run. Returns: `size` bytes; requires size <= RUN_SMALL_BYTES. */
void *run_alloc(struct run *run, size_t size) __attribute__((returns_nonnull));

/* The same for any size. Returns: NULL and a throwable when the budget is too small. */
void *run_alloc_large(struct run *run, size_t size);

/* Counts bytes that were taken without asking, at most a few hundred kilobytes at once. */
void run_charge(struct run *run, size_t size);

/* Formatted text in the arena, charged. For numbers and names, not for what a script makes long. */
struct slice run_printf(struct run *run, const char *format, ...) TL_PRINTF(2, 3);

/* An object with its header filled in. */
void *run_object(struct run *run, size_t size, enum class_id id) __attribute__((returns_nonnull));

/* The throwable of a run that is out of steps or memory. Returns: false. */
bool run_fail_exhausted(struct run *run);

/*
 * A run that has an account gets its steps in slices of RUN_SLICE_STEPS, a few milliseconds each, and looks at the account before
 * each. How the slices are cut changes nothing of what a run comes to that nobody ends.
 */
#define RUN_SLICE_STEPS ((uint64_t)1 << 16)

/* Takes `n` steps that the slice at hand has not. Returns: false, and the run is out of them, or ended by its account. */
bool run_next_slice(struct run *run, uint64_t n);

/* The steps taken so far. */
uint64_t run_steps(const struct run *run);

/* Steps of an account that one of a script's is. */
#define RUN_ACCOUNT_STEPS 16u

/* Tells the account of what it has not been told of yet: at the end of a run. */
void run_draw(struct run *run);

/* Counts `n` steps. Returns: false when they are used up. */
static inline bool run_step(struct run *run, uint64_t n)
{
    if (__builtin_expect(run->steps_left < n, 0))
        return run_next_slice(run, n) || run_fail_exhausted(run);
    run->steps_left -= n;
    return true;
}

/*
 * Counts what a function of the library looked at, as far as no element of it took a step: units of texts, digits, bytes.
 * Never fails: a run that has no more steps ends at the next one it takes (run_step), so a single call may overdraw them.
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
 * Guards recursion of C functions over nested values and composed functions. Returns: false, and a stack_overflow_error,
 * when too deep. The count decides; the address only in a thread with less than STACK_BYTES (base/stack.h).
 */
#define RUN_NESTING_MAX 4000u
#define RUN_FRAME_BYTES \
    ((size_t)1024 * STACK_FACTOR) /* that one frame of the count takes at most, of the native stack */
/* Frames of a function of the library that calls another which the script gave it. */
#define RUN_NATIVE_FRAMES 4u
bool run_enter(struct run *run, unsigned frames);
static inline void run_leave(struct run *run, unsigned frames)
{
    run->nesting -= frames;
}

/* Throws; returns false, for `return run_throw(...)`. */
bool run_throw(struct run *run, enum class_id id, const char *format, ...) TL_PRINTF(3, 4);
bool run_throw_null(struct run *run, enum class_id id); /* without a message */
bool run_throw_text(struct run *run, enum class_id id, struct text *message);
/* A null pointer where Java's virtual machine would throw one; its wording there differs from release to release. */
bool run_throw_npe(struct run *run, const char *what);

/* Calls a function value (lambda, closure, method reference, comparator) with arguments. */
bool run_invoke(struct run *run, struct value function, struct value *arguments, unsigned count, struct value *ret);

/* The number of parameters a function value takes; 1 for a closure without a list of them. */
unsigned function_arity(struct value function);

#endif
