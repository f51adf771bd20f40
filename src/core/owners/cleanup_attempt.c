/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actions that ended the process. README-locks.md, "What ends the process".
 *
 * A record in SPACE_SYSTEM counts the tries of each: 'Y', number of what is kept, number of the action (u64be both), session; their
 * count (varint). There are as many as the process has died in the middle of an action whose session, or which itself, is still there:
 * none, as a rule.
 */
#include "core/owners/cleanup_attempt.h"

#include "base/check.h"
#include "core/owners/deferred.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/step/codec.h"
#include "core/step/command.h"
#include "core/step/core.h"
#include "core/step/handler.h"
#include "core/step/unit.h"

struct cleanup_attempt {
    struct list of_all; /* in owners->tried, in order of their keys */
    uint64_t kept;
    uint64_t action;
    struct slice session; /* mem_free */
    uint64_t count;
};

/* --- Telling those who watch -------------------------------------------------------------------------------------- */

void core_watch(struct core *core, const struct core_watch *watch)
{
    core->watch = watch;
}

void cleanup_attempt__begin(const struct core *core, struct slice session, uint64_t kept, uint64_t action)
{
    if (core->watch != NULL)
        core->watch->begin(core->watch->context, session, kept, action);
}

void cleanup_attempt__end(const struct core *core)
{
    if (core->watch != NULL)
        core->watch->end(core->watch->context);
}

/* --- Those there are ---------------------------------------------------------------------------------------------- */

static int compare(const struct cleanup_attempt *tried, uint64_t kept, uint64_t action, struct slice session)
{
    if (tried->kept != kept)
        return tried->kept < kept ? -1 : 1;
    if (tried->action != action)
        return tried->action < action ? -1 : 1;
    return slice_compare(tried->session, session);
}

static struct cleanup_attempt *find(const struct core *core, struct slice session, uint64_t kept, uint64_t action)
{
    list_for_each(link, &core->owners->cleanup_attempts)
    {
        struct cleanup_attempt *tried = list_entry(link, struct cleanup_attempt, of_all);
        if (compare(tried, kept, action, session) == 0)
            return tried;
    }
    return NULL;
}

static struct cleanup_attempt *make(struct core *core, struct slice session, uint64_t kept, uint64_t action)
{
    struct list *before = core->owners->cleanup_attempts.next;
    struct cleanup_attempt *tried = mem_zalloc(sizeof *tried);
    while (before != &core->owners->cleanup_attempts &&
           compare(list_entry(before, struct cleanup_attempt, of_all), kept, action, session) < 0)
        before = before->next;
    tried->kept = kept;
    tried->action = action;
    tried->session = slice_make(mem_strdup(session.data, session.len), session.len);
    list_insert_before(before, &tried->of_all);
    return tried;
}

static void forget(struct cleanup_attempt *tried)
{
    list_remove(&tried->of_all);
    mem_free((char *)(uintptr_t)tried->session.data);
    mem_free(tried);
}

unsigned cleanup_attempt__count(const struct core *core, struct slice session, uint64_t kept, uint64_t action)
{
    const struct cleanup_attempt *tried = find(core, session, kept, action);
    return tried == NULL ? 0 : (unsigned)tried->count;
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

static struct slice tried_key(struct buf *buf, const struct cleanup_attempt *tried)
{
    buf_byte(buf, 'Y');
    buf_u64be(buf, tried->kept);
    buf_u64be(buf, tried->action);
    buf_slice(buf, tried->session);
    return buf_as_slice(buf);
}

static void put_record(struct core *core, const struct cleanup_attempt *tried)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED), value = BUF_INIT(BUF_UNLIMITED);
    buf_varint(&value, tried->count);
    store_batch_put(core->batch, SPACE_SYSTEM, tried_key(&key, tried), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
}

static void drop(struct core *core, struct cleanup_attempt *tried)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    store_batch_delete(core->batch, SPACE_SYSTEM, tried_key(&key, tried));
    buf_deinit(&key);
    forget(tried);
}

void cleanup_attempt__forget_session(struct core *core, struct slice session)
{
    list_for_each_safe(link, following, &core->owners->cleanup_attempts)
    {
        struct cleanup_attempt *tried = list_entry(link, struct cleanup_attempt, of_all);
        if (tried->kept == 0 && slice_equal(tried->session, session))
            drop(core, tried);
    }
}

void cleanup_attempt__forget_deferred(struct core *core, uint64_t kept)
{
    list_for_each_safe(link, following, &core->owners->cleanup_attempts)
    {
        struct cleanup_attempt *tried = list_entry(link, struct cleanup_attempt, of_all);
        if (tried->kept == kept)
            drop(core, tried);
    }
}

static int load(void *context, struct slice key, struct slice value)
{
    struct core *core = context;
    uint64_t kept, action, count;
    key = slice_from_offset(key, 1);
    if (!slice_take_u64be(&key, &kept) || !slice_take_u64be(&key, &action) || !slice_take_varint(&value, &count) ||
        count == 0 || count > CLEANUP_ATTEMPTS_MAX)
        return tl_trace(TL_ERR_CORRUPT);
    make(core, key, kept, action)->count = count;
    return 0;
}

int cleanup_attempt__load_all(struct core *core)
{
    return store_each(core->store, SPACE_SYSTEM, TL_TS_MAX, SLICE_LIT("Y"), SLICE_LIT("Z"), load, core);
}

void cleanup_attempt__free_all(struct core *core)
{
    while (!list_empty(&core->owners->cleanup_attempts))
        forget(list_entry(core->owners->cleanup_attempts.next, struct cleanup_attempt, of_all));
}

uint64_t cleanup_attempt__digest(const struct core *core)
{
    uint64_t sum = 0;
    list_for_each(link, &core->owners->cleanup_attempts)
    {
        const struct cleanup_attempt *tried = list_entry(link, struct cleanup_attempt, of_all);
        struct buf key = BUF_INIT(BUF_UNLIMITED);
        sum += slice_hash(tried_key(&key, tried)) + tried->count;
        buf_deinit(&key);
    }
    return sum;
}

/* --- In a checkpoint ---------------------------------------------------------------------------------------------- */

enum { TRIED_MIN = 4 };

static void code_one(struct codec *codec, struct cleanup_attempt *tried)
{
    codec_number(codec, &tried->kept);
    codec_number(codec, &tried->action);
    codec_bytes(codec, &tried->session);
    codec_number(codec, &tried->count);
}

void cleanup_attempt__codec(struct codec *codec, struct core *core)
{
    struct list *all = &core->owners->cleanup_attempts;
    size_t count = 0;
    list_for_each(link, all) count++;
    codec_array(codec, NULL, &count, 0, TRIED_MIN);
    if (!codec_reads(codec))
        list_for_each(link, all) code_one(codec, list_entry(link, struct cleanup_attempt, of_all));
    for (size_t i = 0; i < count && codec_reads(codec) && !codec->bad; i++) {
        struct cleanup_attempt tried = {0};
        code_one(codec, &tried);
        const struct cleanup_attempt *last = list_empty(all) ? NULL : list_entry(all->prev, struct cleanup_attempt, of_all);
        codec_require(codec, tried.count > 0 && tried.count <= CLEANUP_ATTEMPTS_MAX &&
                                (last == NULL || compare(last, tried.kept, tried.action, tried.session) < 0));
        if (!codec->bad)
            make(core, tried.session, tried.kept, tried.action)->count = tried.count;
    }
}

/* --- The commands ------------------------------------------------------------------------------------------------- */

/* Whether there is such a thing to be done still. */
static bool is_there(struct core *core, const struct tried_command *tried)
{
    const struct session *session = owners_session(core->owners, tried->session);
    if (tried->deferred != 0)
        return tried->action == 0 && deferred__find(core, tried->deferred) != NULL &&
               slice_equal(deferred__find(core, tried->deferred)->session, tried->session);
    return session != NULL && session->on_expire.len > 0 && !session->actions_finished &&
           tried->action >= session->actions_processed && tried->action < SESSION_ACTIONS_MAX;
}

/* What is gone was done, or is nobody's any more: another host may say so, or a page that is older than the store. */
int core__do_tried(struct core *core, struct command *command)
{
    const struct tried_command *wanted = &command->tried;
    if (!is_there(core, wanted))
        return 0;
    struct cleanup_attempt *tried = find(core, wanted->session, wanted->deferred, wanted->action);
    if (tried == NULL)
        tried = make(core, wanted->session, wanted->deferred, wanted->action);
    if (tried->count < CLEANUP_ATTEMPTS_MAX) {
        tried->count++;
        put_record(core, tried);
    }
    if (tried->count == CLEANUP_ATTEMPTS_MAX && wanted->deferred != 0)
        deferred__set_aside(core, deferred__find(core, wanted->deferred));
    return 0;
}

/* It is for whoever replays the log: README.md of the journal, "Poison entries". */
int core__do_skip(struct core *core, struct command *command)
{
    (void)core;
    (void)command;
    return 0;
}

/* An operator has looked at what was put aside. */
int core__do_aside(struct core *core, struct command *command)
{
    const struct aside_command *wanted = &command->aside;
    struct deferred *kept = deferred__find(core, wanted->number);
    if (kept == NULL || !kept->set_aside) {
        problem_set(&command->problem, &command->arena, kept == NULL ? PROBLEM_KEPT_MISSING : PROBLEM_ILLEGAL_ARGUMENT,
                    kept == NULL
                        ? "nothing is kept under number [%llu]: GET /_session tells what is, under [kept]"
                        : "what is kept under number [%llu] was not put aside: it is done when the locks on it go",
                    (unsigned long long)wanted->number);
        return 0;
    }
    cleanup_attempt__forget_deferred(core, kept->number);
    if (wanted->retry)
        return deferred__retry(core, kept);
    deferred__drop(core, kept);
    return 0;
}
