/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that hosts share (cmdlog/cmdlog_shared.h), in memory, for tests of what stands on it: with faults that can be asked for. It keeps all that was
 * ever appended. Leases last as long as they are not ended here.
 */
#ifndef TL_TESTS_LIB_CMDLOG_DOUBLE_H
#define TL_TESTS_LIB_CMDLOG_DOUBLE_H

#include "cmdlog/cmdlog_shared.h"

struct double_medium;

struct double_medium *double_medium_new(void);
/* Requires: no log is open. */
void double_medium_free(struct double_medium *medium);
/* Owns: the caller; cmdlog_close(). */
struct cmdlog *cmdlog_double_open(struct double_medium *medium, const char *name);

/* From now on nothing of this log reaches the medium, nor the other way round; or it does again. */
void cmdlog_double_cut(struct cmdlog *log, bool cut);
/* What is submitted is under way, and comes to nothing before it is let on; a life that ends meanwhile takes it with it. */
void cmdlog_double_hold(struct cmdlog *log, bool hold);
/* Waits until so many entries of this log are held. */
void cmdlog_double_await_held(struct cmdlog *log, int count);
/* The lease of a host is over. */
void double_medium_end_life(struct double_medium *medium, const char *name);
/* Returns: the newest position. */
cmdlog_position double_medium_head(struct double_medium *medium);
/* Appends bytes as nobody's, as one that comes a second time does. */
void double_medium_repeat(struct double_medium *medium, cmdlog_position position);

#endif
