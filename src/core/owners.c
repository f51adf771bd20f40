/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of a core that has none: no session, no lock, no transaction. Nothing stands against a write, nothing
 * falls due, and commands that would make an owner are refused.
 */
#include "core/core_internal.h"

int owners__open(struct core *core)
{
    core->owners = NULL;
    return 0;
}

void owners__close(struct core *core)
{
    (void)core;
}

void owners__stop(struct core *core)
{
    (void)core;
}

int owners__due(struct core *core, tl_ts now)
{
    (void)core;
    (void)now;
    return 0;
}

tl_ts owners__deadline(const struct core *core)
{
    (void)core;
    return TL_TS_MAX;
}

int owners__resume(struct core *core)
{
    (void)core;
    return 0;
}

bool owners__any(const struct core *core)
{
    (void)core;
    return false;
}

const struct overlay *owners__overlay(const struct core *core, struct slice transaction)
{
    (void)core;
    (void)transaction;
    return NULL;
}

static int not_available(struct command *command)
{
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "[%s] is not available",
                command_name(command->type));
    return 0;
}

int owners__admit_write(struct core *core, struct command *command, const struct write_targets *targets,
                        struct overlay **ret_overlay)
{
    (void)core;
    (void)targets;
    *ret_overlay = NULL;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "sessions and transactions are not available");
    return 0;
}

int owners__check_lease(struct core *core, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    (void)core;
    problem_set(ret_problem, arena, PROBLEM_SESSION_MISSING, "no session [%.*s]", SLICE_ARG(session));
    return 1;
}

int owners__digest(struct core *core, uint64_t *digest)
{
    (void)core;
    (void)digest;
    return 0;
}

void core_overlay_unref(struct overlay *overlay)
{
    overlay_free(overlay);
}

#define NOT_AVAILABLE(name)                                                                                  \
    int core__do_##name(struct core *core, struct command *command)                                          \
    {                                                                                                        \
        (void)core;                                                                                          \
        return not_available(command);                                                                       \
    }

NOT_AVAILABLE(session_open)
NOT_AVAILABLE(session_keepalive)
NOT_AVAILABLE(session_attach)
NOT_AVAILABLE(session_detach)
NOT_AVAILABLE(session_close)
NOT_AVAILABLE(lock)
NOT_AVAILABLE(unlock)
NOT_AVAILABLE(txn_begin)
NOT_AVAILABLE(txn_lock)
NOT_AVAILABLE(txn_commit)
NOT_AVAILABLE(txn_rollback)
NOT_AVAILABLE(status)

int core__do_cancel(struct core *core, struct command *command)
{
    (void)core;
    (void)command;
    return 0;
}

int core__do_restart(struct core *core, struct command *command)
{
    (void)core;
    (void)command;
    return 0;
}
