/* SPDX-License-Identifier: Apache-2.0 */
/* How often what ended sessions left has ended the process; README-locks.md, "What ends the process". */
#ifndef TL_CORE_CLEANUP_ATTEMPT_H
#define TL_CORE_CLEANUP_ATTEMPT_H

#include "base/error.h"
#include "base/slice.h"

struct codec;
struct core;

/* An action that began so often, and took the process with it each time, is run no more. */
enum { CLEANUP_ATTEMPTS_MAX = 2 };

/* Told before and after each thing that a session left is done: core_watch(). */
void cleanup_attempt__begin(const struct core *core, struct slice session, uint64_t kept, uint64_t action);
void cleanup_attempt__end(const struct core *core);

/* Returns: how often it was tried. `kept` is the number of what is kept; 0: it is the `action`-th of `session`. */
unsigned cleanup_attempt__count(const struct core *core, struct slice session, uint64_t kept, uint64_t action);

/* All of a session has been done, or handed on; or what was kept has: nobody asks any more. In the open unit. */
void cleanup_attempt__forget_session(struct core *core, struct slice session);
void cleanup_attempt__forget_deferred(struct core *core, uint64_t kept);

int cleanup_attempt__load_all(struct core *core) TL_MUST_USE;
void cleanup_attempt__free_all(struct core *core);
/* A sum: in whatever order they were loaded. */
uint64_t cleanup_attempt__digest(const struct core *core);
void cleanup_attempt__codec(struct codec *codec, struct core *core);

#endif
