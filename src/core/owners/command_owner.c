/* SPDX-License-Identifier: Apache-2.0 */
/* On whose behalf a command runs: its session, and its fencing token. See command_owner.h. */
#include "core/owners/command_owner.h"

#include "core/owners/owners.h"
#include "core/owners/owner.h"
#include "core/owners/session.h"
#include "core/step/unit.h"

bool command_owner__session(struct core *core, struct command *command, struct session **ret_session)
{
    *ret_session = NULL;
    if (command->owner.session.len > 0)
        *ret_session = session__find(core, command->owner.session, &command->arena, &command->problem);
    return command->owner.session.len == 0 || *ret_session != NULL;
}

/* Whether a lock is of the one who asks: its own, or one of the session that both belong to. */
static bool is_own(const struct owner *holder, const struct owner *who)
{
    return who != NULL && (holder == who || (who->session != NULL && holder->session == who->session));
}

bool command_owner__check_token(const struct core *core, struct command *command, const struct resource_name *name,
                  const struct owner *who, struct problem *ret_problem)
{
    tl_ts token = command->owner.fencing_token;
    struct slice told = name->id.data != NULL ? name->id : name->index;
    struct lock_owner *owner;
    if (token == 0 || (owners_token(core->owners, token, name, &owner) && is_own(owner_of(owner), who)))
        return true;
    problem_set(ret_problem, &command->arena, PROBLEM_STALE_FENCING_TOKEN,
                "[%llu] is not the token of a lock that %s and covers [%.*s]", (unsigned long long)token,
                who != NULL ? "the one who asks holds now" : "is held now by a [session] which the request names, too,",
                SLICE_ARG(told));
    return false;
}
