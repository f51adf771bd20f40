/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unconfirmed grants. README-locks.md, "Undone requests", invariant 9.
 *
 * A hold with unconfirmed grants has, by each of these and by its confirmed lock, a mode and a
 * token. Its own are the strongest mode and the newest token of all of them. So a grant can be
 * confirmed or undone in any order, in constant time.
 */
#include "base/check.h"
#include "base/magic.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"
#include "core/command/command.h"

static const struct lock_spec_ref *spec_of(const struct lock_grant *grant)
{
    return &grant->request->specs[grant - grant->request->grants];
}

/* Adds a lock to a value: the stronger mode, the newer token; auxiliary if both are. */
static struct lock_value value_with(struct lock_value value, struct lock_value other)
{
    if (value.mode == LOCK_NONE)
        return other;
    value.mode = other.mode > value.mode ? other.mode : value.mode;
    value.token = other.token > value.token ? other.token : value.token;
    value.auxiliary &= other.auxiliary;
    return value;
}

struct lock_value lock__confirmed_value(const struct lock_unconfirmed *unconfirmed)
{
    return (struct lock_value){unconfirmed->mode, unconfirmed->token, unconfirmed->auxiliary};
}

struct lock_value lock__unconfirmed_value(const struct lock_unconfirmed *unconfirmed)
{
    struct lock_value value = lock__confirmed_value(unconfirmed);
    if (list_empty(&unconfirmed->grants))
        return value;
    enum lock_mode mode = LOCK_X;
    while (mode > LOCK_NONE && unconfirmed->counts[mode] == 0)
        mode--;
    INSIST(mode != LOCK_NONE); /* each grant has a mode */
    const struct lock_grant *newest = list_entry(unconfirmed->grants.prev, struct lock_grant, link);
    return value_with(value, (struct lock_value){mode, newest->request->token, unconfirmed->plain_count == 0});
}

void lock__grants_open(struct lock_request *request)
{
    REQUIRE(request->grants == NULL && request->state == LOCK_STATE_GRANTED);
    request->grants = mem_zalloc(request->spec_count * sizeof *request->grants);
    for (size_t i = 0; i < request->spec_count; i++)
        request->grants[i].request = request;
}

void lock__grant_add(struct lock_request *request, size_t at, struct lock_hold *hold, struct lock_value before)
{
    struct lock_grant *grant = &request->grants[at];
    REQUIRE(at < request->spec_count && grant->hold == NULL && !request->specs[at].insert_intention);
    struct lock_unconfirmed *unconfirmed = hold->unconfirmed;
    if (unconfirmed == NULL) {
        unconfirmed = hold->unconfirmed = mem_zalloc(sizeof *unconfirmed);
        list_init(&unconfirmed->grants);
        unconfirmed->mode = before.mode;
        unconfirmed->token = before.token;
        unconfirmed->auxiliary = before.auxiliary;
    }
    grant->hold = hold;
    list_append(&unconfirmed->grants, &grant->link);
    unconfirmed->counts[spec_of(grant)->mode]++;
    unconfirmed->plain_count += !spec_of(grant)->auxiliary;
}

void lock__hold_confirm(struct lock_hold *hold, struct lock_value granted)
{
    REQUIRE(granted.mode != LOCK_NONE);
    struct lock_unconfirmed *unconfirmed = hold->unconfirmed;
    if (unconfirmed == NULL)
        return;
    struct lock_value value = value_with(lock__confirmed_value(unconfirmed), granted);
    unconfirmed->mode = value.mode;
    unconfirmed->token = value.token;
    unconfirmed->auxiliary = value.auxiliary;
}

static void unconfirmed_free(struct lock_hold *hold)
{
    mem_free(hold->unconfirmed);
    hold->unconfirmed = NULL;
}

struct lock_value lock__grant_remove(struct lock_grant *grant)
{
    struct lock_hold *hold = grant->hold;
    struct lock_unconfirmed *unconfirmed = hold->unconfirmed;
    const struct lock_spec_ref *spec = spec_of(grant);
    REQUIRE(unconfirmed != NULL && unconfirmed->counts[spec->mode] > 0);
    list_remove(&grant->link);
    grant->hold = NULL;
    unconfirmed->counts[spec->mode]--;
    unconfirmed->plain_count -= !spec->auxiliary;
    struct lock_value value = lock__unconfirmed_value(unconfirmed);
    if (list_empty(&unconfirmed->grants))
        unconfirmed_free(hold);
    return value;
}

void lock__grants_confirm(struct lock_request *request)
{
    for (size_t i = 0; request->grants != NULL && i < request->spec_count; i++) {
        struct lock_grant *grant = &request->grants[i];
        const struct lock_spec_ref *spec = &request->specs[i];
        if (grant->hold == NULL)
            continue;
        lock__hold_confirm(grant->hold, (struct lock_value){spec->mode, request->token, spec->auxiliary});
        (void)lock__grant_remove(grant);
    }
    mem_free(request->grants);
    request->grants = NULL;
}

void lock__hold_forget_grants(struct lock_hold *hold)
{
    if (hold->unconfirmed == NULL)
        return;
    struct list *grants = &hold->unconfirmed->grants;
    while (!list_empty(grants)) {
        struct lock_grant *grant = list_entry(grants->next, struct lock_grant, link);
        list_remove(&grant->link);
        grant->hold = NULL;
    }
    unconfirmed_free(hold);
}

void lock_request_mark_names(struct lock_request *request, bool marked)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_GRANTED);
    for (size_t i = 0; request->grants != NULL && i < request->spec_count; i++)
        if (request->grants[i].hold != NULL && resource_is_name(request->specs[i].resource))
            request->grants[i].hold->unconfirmed->marked = marked;
}

bool lock_table_keeps_name(const struct lock_table *table, const struct lock_owner *owner, const struct lock_spec *spec)
{
    REQUIRE(spec->on.space != RESOURCE_SPACE_TREE);
    const struct resource *name = resource_of_name(&table->resources, spec->on.space, spec->on.index);
    const struct lock_hold *hold = name == NULL ? NULL : lock__hold_find(table, owner, name);
    if (hold == NULL || hold->mode < spec->mode)
        return false;
    const struct lock_unconfirmed *unconfirmed = hold->unconfirmed;
    return unconfirmed == NULL || unconfirmed->marked || unconfirmed->mode >= spec->mode;
}
