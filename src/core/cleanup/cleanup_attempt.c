/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts how often the process ended during a cleanup action. README-locks.md, "Actions that
 * crash the process".
 * A count exists only while the action is still to be run, so there is rarely any.
 */
#include "core/cleanup/cleanup_attempt.h"

#include "base/check.h"
#include "base/magic.h"
#include "core/command/codec.h"
#include "core/session/owners.h"
#include "core/step/core.h"
#include "core/unit/unit.h"

struct cleanup_attempt {
    struct list of_all;   /* in owners->cleanup_attempts, in order of their keys */
    uint64_t deferred;    /* number of the deferred cleanup; 0: an action of the session */
    uint64_t action;      /* index into the on_expire of the session; 0 with `deferred` */
    struct slice session; /* mem_free */
    uint64_t count;
};

/* --- The watch ---------------------------------------------------------------------------------------------------- */

void core_watch(struct core *core, const struct core_watch *watch)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC));
    REQUIRE(watch == NULL || (watch->begin != NULL && watch->end != NULL));
    core->watch = watch;
}

void cleanup_attempt__begin(const struct core *core, struct slice session, uint64_t deferred, uint64_t action)
{
    REQUIRE(deferred == 0 || action == 0); /* a deferred cleanup is one action */
    if (core->watch != NULL)
        core->watch->begin(core->watch->context, session, deferred, action);
}

void cleanup_attempt__end(const struct core *core)
{
    if (core->watch != NULL)
        core->watch->end(core->watch->context);
}

/* --- The list ----------------------------------------------------------------------------------------------------- */

static int compare_attempt(const struct cleanup_attempt *attempt, uint64_t deferred, uint64_t action,
                           struct slice session)
{
    if (attempt->deferred != deferred)
        return attempt->deferred < deferred ? -1 : 1;
    if (attempt->action != action)
        return attempt->action < action ? -1 : 1;
    return slice_compare(attempt->session, session);
}

static struct cleanup_attempt *find_attempt(const struct core *core, struct slice session, uint64_t deferred,
                                            uint64_t action)
{
    list_for_each(link, &core->owners->cleanup_attempts)
    {
        struct cleanup_attempt *attempt = list_entry(link, struct cleanup_attempt, of_all);
        if (compare_attempt(attempt, deferred, action, session) == 0)
            return attempt;
    }
    return NULL;
}

static struct cleanup_attempt *make_attempt(struct core *core, struct slice session, uint64_t deferred, uint64_t action)
{
    struct list *before = core->owners->cleanup_attempts.next;
    struct cleanup_attempt *attempt = mem_zalloc(sizeof *attempt);
    while (before != &core->owners->cleanup_attempts &&
           compare_attempt(list_entry(before, struct cleanup_attempt, of_all), deferred, action, session) < 0)
        before = before->next;
    attempt->deferred = deferred;
    attempt->action = action;
    attempt->session = mem_dup_slice(session);
    list_insert_before(before, &attempt->of_all);
    return attempt;
}

static void forget_attempt(struct cleanup_attempt *attempt)
{
    list_remove(&attempt->of_all);
    mem_free((char *)(uintptr_t)attempt->session.data);
    mem_free(attempt);
}

unsigned cleanup_attempt__count(const struct core *core, struct slice session, uint64_t deferred, uint64_t action)
{
    REQUIRE(deferred == 0 || action == 0);
    const struct cleanup_attempt *attempt = find_attempt(core, session, deferred, action);
    return attempt == NULL ? 0 : (unsigned)attempt->count;
}

static uint64_t digest_one(const struct cleanup_attempt *attempt)
{
    const uint64_t numbers[] = {attempt->deferred, attempt->action, attempt->count};
    return slice_hash(slice_make(numbers, sizeof numbers)) + slice_hash(attempt->session);
}

unsigned cleanup_attempt__add(struct core *core, struct slice session, uint64_t deferred, uint64_t action)
{
    REQUIRE(core->open);
    struct cleanup_attempt *attempt = find_attempt(core, session, deferred, action);
    if (attempt == NULL)
        attempt = make_attempt(core, session, deferred, action);
    if (attempt->count < CLEANUP_ATTEMPTS_MAX) {
        attempt->count++;
        core__note_change(core, digest_one(attempt));
    }
    ENSURE(attempt->count > 0 && attempt->count <= CLEANUP_ATTEMPTS_MAX); /* as a checkpoint must have it */
    return (unsigned)attempt->count;
}

static void drop_attempt(struct core *core, struct cleanup_attempt *attempt)
{
    REQUIRE(core->open); /* a change of the state is of a unit */
    core__note_change(core, digest_one(attempt));
    forget_attempt(attempt);
}

void cleanup_attempt__forget_session(struct core *core, struct slice session)
{
    REQUIRE(core->open && session.len > 0);
    list_for_each_safe(link, following, &core->owners->cleanup_attempts)
    {
        struct cleanup_attempt *attempt = list_entry(link, struct cleanup_attempt, of_all);
        if (attempt->deferred == 0 && slice_equal(attempt->session, session))
            drop_attempt(core, attempt);
    }
}

void cleanup_attempt__forget_deferred(struct core *core, uint64_t deferred)
{
    REQUIRE(core->open && deferred > 0);
    list_for_each_safe(link, following, &core->owners->cleanup_attempts)
    {
        struct cleanup_attempt *attempt = list_entry(link, struct cleanup_attempt, of_all);
        if (attempt->deferred == deferred)
            drop_attempt(core, attempt);
    }
}

void cleanup_attempt__restore(struct core *core, struct slice session, uint64_t deferred, uint64_t action,
                              uint64_t count)
{
    REQUIRE(count > 0 && count <= CLEANUP_ATTEMPTS_MAX);
    make_attempt(core, session, deferred, action)->count = count;
}

void cleanup_attempt__free_all(struct core *core)
{
    while (!list_empty(&core->owners->cleanup_attempts))
        forget_attempt(list_entry(core->owners->cleanup_attempts.next, struct cleanup_attempt, of_all));
}

uint64_t cleanup_attempt__digest(const struct core *core)
{
    uint64_t sum = 0;
    list_for_each(link, &core->owners->cleanup_attempts) sum +=
        digest_one(list_entry(link, struct cleanup_attempt, of_all));
    return sum;
}

/* --- Checkpoint --------------------------------------------------------------------------------------------------- */

enum { ATTEMPT_BYTES_MIN = 4 };

static void codec_attempt(struct codec *codec, struct cleanup_attempt *attempt)
{
    codec_number(codec, &attempt->deferred);
    codec_number(codec, &attempt->action);
    codec_bytes(codec, &attempt->session);
    codec_number(codec, &attempt->count);
}

void cleanup_attempt__codec(struct codec *codec, struct core *core)
{
    REQUIRE(!codec_reads(codec) || list_empty(&core->owners->cleanup_attempts));
    struct list *all = &core->owners->cleanup_attempts;
    size_t count = list_length(all);
    codec_array(codec, NULL, &count, 0, ATTEMPT_BYTES_MIN);
    if (!codec_reads(codec))
        list_for_each(link, all) codec_attempt(codec, list_entry(link, struct cleanup_attempt, of_all));
    for (size_t i = 0; i < count && codec_reads(codec) && !codec->bad; i++) {
        struct cleanup_attempt attempt = {0};
        codec_attempt(codec, &attempt);
        const struct cleanup_attempt *last =
            list_empty(all) ? NULL : list_entry(all->prev, struct cleanup_attempt, of_all);
        codec_require(
            codec, attempt.count > 0 && attempt.count <= CLEANUP_ATTEMPTS_MAX &&
                       (last == NULL || compare_attempt(last, attempt.deferred, attempt.action, attempt.session) < 0));
        if (!codec->bad)
            make_attempt(core, attempt.session, attempt.deferred, attempt.action)->count = attempt.count;
    }
}
