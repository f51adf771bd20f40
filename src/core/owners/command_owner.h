/* SPDX-License-Identifier: Apache-2.0 */
/* On whose behalf a command runs: its session, and the fencing token that it names. */
#ifndef TL_CORE_COMMAND_OWNER_H
#define TL_CORE_COMMAND_OWNER_H

#include "core/locks/resource.h"
#include "core/step/command.h"

struct core;
struct owner;
struct session;

/* Finds the session that a command names; NULL when it names none. Returns: false when there is none such, the problem is the command's. */
bool command_owner__session(struct core *core, struct command *command, struct session **ret_session);
/*
 * Whether the fencing token that a command names, if any, is that of a lock which covers `name` and is held now by `who`: the
 * session or the transaction for which it is asked (NULL: for nobody, who holds nothing), or another of the same session. The one
 * place where tokens are checked. Returns: false with *ret_problem in the command's arena.
 */
bool command_owner__check_token(const struct core *core, struct command *command, const struct resource_name *name,
                  const struct owner *who, struct problem *ret_problem) TL_MUST_USE;

#endif
