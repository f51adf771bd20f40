/* SPDX-License-Identifier: Apache-2.0 */
/* Status of locks, read between steps (core_inspect()). */
#ifndef TL_CORE_STATUS_H
#define TL_CORE_STATUS_H

struct command;
struct core;

/* Fills one page of STATUS_LOCKS (do_status_locks.c). */
void status__locks(struct core *core, struct command *command);
/* Answers STATUS_OVERVIEW (do_status_locks.c). */
void status__overview(struct core *core, struct command *command);

#endif
