/* SPDX-License-Identifier: Apache-2.0 */
/* How often what ended sessions left has ended the process; README-locks.md, "What ends the process". */
#ifndef TL_CORE_TRIED_H
#define TL_CORE_TRIED_H

#include "base/error.h"
#include "base/slice.h"

struct codec;
struct core;

/* An action that began so often, and took the process with it each time, is run no more. */
enum { TRIES_MAX = 2 };

/* Told before and after each thing that a session left is done: core_watch(). */
void tried__begin(const struct core *core, struct slice session, uint64_t kept, uint64_t action);
void tried__end(const struct core *core);

/* Returns: how often it was tried. `kept` is the number of what is kept; 0: it is the `action`-th of `session`. */
unsigned tried__count(const struct core *core, struct slice session, uint64_t kept, uint64_t action);

/* All of a session has been done, or handed on; or what was kept has: nobody asks any more. In the open unit. */
void tried__forget_session(struct core *core, struct slice session);
void tried__forget_kept(struct core *core, uint64_t kept);

int tried__load_all(struct core *core) TL_MUST_USE;
void tried__free_all(struct core *core);
/* A sum: in whatever order they were loaded. */
uint64_t tried__digest(const struct core *core);
void tried__code(struct codec *codec, struct core *core);

#endif
