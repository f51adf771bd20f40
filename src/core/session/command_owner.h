/* SPDX-License-Identifier: Apache-2.0 */
/* The owner on whose behalf a command runs: its session, and its fencing token. */
#ifndef TL_CORE_COMMAND_OWNER_H
#define TL_CORE_COMMAND_OWNER_H

#include "core/locks/resource.h"
#include "core/command/command.h"

struct core;
struct owner;
struct session;

/*
 * Finds the session that a command names; *ret_session is NULL when it names none.
 * Returns: false, with the command's problem, when there is no such session.
 */
bool command_owner__session(struct core *core, struct command *command, struct session **ret_session);
/*
 * Checks the fencing token of a command for one resource; the only function that checks tokens. A
 * valid token is that of a lock that covers `name` and is held now, by `requester` or by another
 * owner of its session. `requester` is the command's session or transaction; NULL: neither, so no
 * token is valid.
 * Returns: true, also when the command has no token; else false, with *ret_problem in its arena.
 */
bool command_owner__check_token(const struct core *core, struct command *command, const struct resource_name *name,
                                const struct owner *requester, struct problem *ret_problem) TL_MUST_USE;

#endif
