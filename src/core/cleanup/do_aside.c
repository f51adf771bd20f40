/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands TRIED and ASIDE: cleanup actions that ended the process, and those that were set
 * aside. README-locks.md, "Actions that crash the process".
 */
#include "base/check.h"
#include "core/command/command.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/cleanup/deferred.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/wait/wait.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"

/* Whether the action that a TRIED names is still to be run. */
static bool is_pending(struct core *core, const struct tried_command *attempt)
{
    const struct session *session = owners_session(core->owners, attempt->session);
    if (attempt->deferred != 0)
        return attempt->action == 0 && deferred__find(core, attempt->deferred) != NULL &&
               slice_equal(deferred__find(core, attempt->deferred)->session, attempt->session);
    return session != NULL && session->on_expire.len > 0 && !session->actions_finished &&
           attempt->action >= session->actions_processed && attempt->action < SESSION_ACTIONS_MAX;
}

/*
 * Counts one more attempt. An action that no longer exists is ignored: another host may have
 * reported it, or the report is older than the store.
 */
int core__do_tried(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TRIED);
    const struct tried_command *reported = &command->tried;
    if (!is_pending(core, reported))
        return 0;
    unsigned count = cleanup_attempt__add(core, reported->session, reported->deferred, reported->action);
    if (count == CLEANUP_ATTEMPTS_MAX && reported->deferred != 0)
        deferred__set_aside(core, deferred__find(core, reported->deferred));
    return 0;
}

/*
 * Changes nothing in the core; it concerns the replay of the command log: journal/README.md,
 * "Poison entries".
 */
int core__do_skip(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SKIP);
    (void)core;
    (void)command;
    return 0;
}

/* Retries or drops a cleanup that was set aside, on behalf of an operator. */
int core__do_aside(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_ASIDE);
    const struct aside_command *reported = &command->aside;
    struct deferred *deferred = deferred__find(core, reported->number);
    if (deferred == NULL || !deferred->set_aside) {
        problem_set(
            &command->problem, &command->arena, deferred == NULL ? PROBLEM_KEPT_MISSING : PROBLEM_ILLEGAL_ARGUMENT,
            deferred == NULL
                ? "no deferred action has the number [%llu]: [GET /_session] lists those that exist, under [deferred]"
                : "the deferred action [%llu] was not put aside: it runs once the locks on its document are released",
            (unsigned long long)reported->number);
        return 0;
    }
    cleanup_attempt__forget_deferred(core, deferred->number);
    if (reported->retry)
        return deferred__retry(core, deferred);
    deferred__drop(core, deferred);
    return 0;
}
