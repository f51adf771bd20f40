/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at what owners have, without a step. */
#ifndef TL_CORE_STATUS_H
#define TL_CORE_STATUS_H

struct command;
struct core;

/* A piece of STATUS_LOCKS (do_status_locks.c). */
void status__locks(struct core *core, struct command *command);
/* STATUS_OVERVIEW (do_status_locks.c). */
void status__glance(struct core *core, struct command *command);

#endif
