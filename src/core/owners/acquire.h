/* SPDX-License-Identifier: Apache-2.0 */
/* How what ended sessions left gets its locks, as other writes do. */
#ifndef TL_CORE_ACQUIRE_H
#define TL_CORE_ACQUIRE_H

#include "core/step/command.h"

struct core;
struct resource_name;
struct session;
struct wait;

/*
 * Runs the one action of `command`, which a session left, as its own write in the open unit. The command must live as long as the
 * unit, since what it wrote is seen through its memory. Who waits is no obstacle.
 * Returns: 0 with its result; 1 somebody else holds what stands against it, and it was not done: an alias in it is replaced by the
 *          index that it stands for now; fatal codes.
 */
int acquire__run_cleanup(struct core *core, struct session *session, struct command *command) TL_MUST_USE;
/* Whether somebody else holds what stands against the removal of a document that lives with a session. */
bool acquire__removal_is_blocked(struct core *core, struct session *session, const struct write_item *removal);
/* The same of a document in the table of locks. */
bool acquire__document_is_blocked(struct core *core, struct session *session, const struct resource_name *document);
/* Asks for the locks of a kept action. Returns: 0 it has them; CORE_WAITS, parked; fatal codes. */
int acquire__request_deferred(struct core *core, struct wait *wait, struct command *command) TL_MUST_USE;
/* The same once it was granted, and runs it. Returns: 0 with its result; CORE_WAITS, it needs others by now, and has none; fatal codes. */
int acquire__resume_deferred(struct core *core, struct wait *wait, struct command *command) TL_MUST_USE;

#endif
