/* SPDX-License-Identifier: Apache-2.0 */
/* The command WRITE, once its locks are there. */
#ifndef TL_CORE_DO_WRITE_H
#define TL_CORE_DO_WRITE_H

#include "core/documents/write.h"
#include "core/step/command.h"

struct core;

/*
 * Runs the items of a WRITE that may run, whose results are there already; `chosen` (NULL: all) says which. Of `how` overlay, ahead,
 * placing and parsed count, the latter where all run. In a transaction `overlay` and `ahead` take what it changes; when it is
 * to be rolled back they are as they were.
 * Returns: 0; fatal codes.
 */
int core__run_write(struct core *core, struct command *command, const bool *chosen,
                    const struct write_run *how) TL_MUST_USE;

#endif
