/* SPDX-License-Identifier: Apache-2.0 */
/* Command handlers. */
#ifndef TL_CORE_HANDLER_H
#define TL_CORE_HANDLER_H

#include "base/error.h"

struct command;
struct core;

enum {
    CORE_WAITS = 1, /* the command waits for locks; its owner completes it later */
};

/*
 * core__do_NAME(): runs a command in the open unit. If it is refused, command->problem has the
 * reason. Requires: the command has the handler's type.
 * Returns: 0: the command is done; CORE_WAITS; fatal codes.
 */
typedef int core_handler(struct core *core, struct command *command);
#define X(symbol, name, code, member, flags, turns) \
    int core__do_##name(struct core *core, struct command *command) TL_MUST_USE;
#include "core/command/commands.def"
#undef X
/* Runs the handler of the command's type. Returns: as the handler. */
int core__handle(struct core *core, struct command *command) TL_MUST_USE;

#endif
