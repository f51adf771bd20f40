/* SPDX-License-Identifier: Apache-2.0 */
/* The owner on whose behalf a command runs; see command_owner.h. */
#include "core/session/command_owner.h"

#include "base/check.h"
#include "core/session/owners.h"
#include "core/session/owner.h"
#include "core/session/session.h"
#include "core/unit/unit.h"

bool command_owner__session(struct core *core, struct command *command, struct session **ret_session)
{
    *ret_session = NULL;
    if (command->owner.session.len > 0)
        *ret_session = session__find(core, command->owner.session, &command->arena, &command->problem);
    ENSURE(*ret_session == NULL || session__state(*ret_session) == SESSION_LIVE);
    return command->owner.session.len == 0 || *ret_session != NULL;
}

/* Whether the holder of a lock is `requester`, or belongs to the same session. */
static bool is_own(const struct owner *holder, const struct owner *requester)
{
    return requester != NULL &&
           (holder == requester || (requester->session != NULL && holder->session == requester->session));
}

bool command_owner__check_token(const struct core *core, struct command *command, const struct resource_name *name,
                                const struct owner *requester, struct problem *ret_problem)
{
    REQUIRE(name->index.data != NULL || name->id.data == NULL); /* a document is in an index */
    tl_ts token = command->owner.fencing_token;
    struct slice resource_text = name->id.data != NULL ? name->id : name->index;
    struct lock_owner *owner;
    if (token == 0 || (owners_token(core->owners, token, name, &owner) && is_own(owner_of(owner), requester)))
        return true;
    if (core->command_version < COMMAND_SINCE_PLAIN_TEXTS)
        problem_set(ret_problem, &command->arena, PROBLEM_STALE_FENCING_TOKEN,
                    "[%llu] is not the token of a lock that %s and covers [%.*s]", (unsigned long long)token,
                    requester != NULL ? "the one who asks holds now"
                                      : "is held now by a [session] which the request names, too,",
                    SLICE_ARG(resource_text));
    else
        problem_set(ret_problem, &command->arena, PROBLEM_STALE_FENCING_TOKEN,
                    "[%llu] is not the token of a lock that covers [%.*s] and is held %s", (unsigned long long)token,
                    SLICE_ARG(resource_text),
                    requester != NULL ? "by the session or transaction of the request"
                                      : "by a session: the request must name its [session], too");
    return false;
}
