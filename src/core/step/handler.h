/* SPDX-License-Identifier: Apache-2.0 */
/* What runs a command in a unit. */
#ifndef TL_CORE_HANDLER_H
#define TL_CORE_HANDLER_H

#include "base/error.h"

struct command;
struct core;

enum {
    CORE_WAITS = 1, /* the command is parked with the owners, who complete it later */
};

/*
 * core__do_NAME(): runs a command in the open unit. A refusal is in command->problem.
 * Returns: 0 the command is done; CORE_WAITS; a fatal code.
 */
typedef int core_handler(struct core *core, struct command *command);
#define X(symbol, name, code, member, flags, turns) \
    int core__do_##name(struct core *core, struct command *command) TL_MUST_USE;
#include "core/step/commands.def"
#undef X
/* Runs the handler of the command's row. */
int core__handle(struct core *core, struct command *command) TL_MUST_USE;

#endif
