/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners as bytes, for a checkpoint: core/README.md, "Checkpoints", has the form. Who refers to a session or a transaction
 * names it by its id; whose a waiting request is, its command says.
 */
#include "core/owners/owners_code.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/feed/feed.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"
#include "core/owners/hosts.h"
#include "core/owners/kept.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/owners/story.h"
#include "core/owners/tried.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/coder.h"
#include "core/step/command.h"
#include "core/step/command_code.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "core/tree/tree_record.h"

enum { SESSION_END_COUNT = SESSION_END_DETACHED + 1 };

static struct slice duplicate(struct slice text)
{
    return text.data == NULL ? SLICE_NONE : slice_make(mem_strdup(text.data, text.len), text.len);
}

static size_t length_of(const struct list *head)
{
    size_t count = 0;
    list_for_each(link, head) count++;
    return count;
}

void code_deadline(struct coder *coder, struct deadlines *all, struct deadline *deadline)
{
    bool set = !coder_reads(coder) && deadline->at < TL_TS_MAX;
    uint64_t at = deadline->at, number = deadline->number;

    code_bool(coder, &set);
    if (!set) {
        deadline->at = TL_TS_MAX;
        return;
    }
    code_number(coder, &at);
    code_number(coder, &number);
    if (!coder_reads(coder))
        return;
    coder_demand(coder, at < TL_TS_MAX && number != 0 && number <= all->last_number);
    if (!coder->bad)
        deadline_restore(all, deadline, at, number);
}

void code_command(struct coder *coder, struct command **command)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct slice slice = SLICE_NONE;

    if (coder_reads(coder)) {
        *command = NULL;
        code_bytes(coder, &slice);
        coder_demand(coder, coder->bad || command_decode(slice, command) == 0);
        return;
    }
    command_encode(*command, &bytes);
    slice = buf_as_slice(&bytes);
    code_bytes(coder, &slice);
    buf_deinit(&bytes);
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

/* Bulk actions that can be done one day. */
static bool are_actions(struct slice bytes, size_t exactly)
{
    struct arena arena = ARENA_INIT;
    struct write_item *items;
    size_t count;
    bool sound = action_decode_all(bytes, &arena, &items, &count) == 0 && (exactly == SIZE_MAX || count == exactly);

    arena_deinit(&arena);
    return sound;
}

enum { LIVING_MIN = 3 };

static void code_living(struct coder *coder, struct session *session)
{
    size_t count = session->living_count, sum = 0;

    code_array(coder, NULL, &count, 0, LIVING_MIN);
    if (coder_reads(coder) && count > 0)
        session->living = mem_zalloc(count * sizeof *session->living);
    session->living_count = count;
    for (size_t i = 0; i < count; i++) {
        struct living *living = &session->living[i];
        uint64_t index = living->index, type = living->type;
        code_number(coder, &index);
        code_number(coder, &type);
        code_size(coder, &living->count);
        coder_demand(coder, index <= UINT32_MAX && type <= UINT16_MAX && living->count <= SIZE_MAX - sum);
        living->index = (uint32_t)index;
        living->type = (uint16_t)type;
        sum += living->count;
    }
    if (coder_reads(coder))
        session->ephemeral_count = sum; /* until session__find_gone() has seen which indices are gone */
}

/* How far an end in pieces has come. */
static void code_progress(struct coder *coder, struct session *session)
{
    struct slice reason = buf_as_slice(&session->reason);

    code_number(coder, &session->steps_left);
    code_size(coder, &session->actions_passed);
    code_size(coder, &session->actions_done);
    code_size(coder, &session->actions_kept);
    code_size(coder, &session->actions_aside);
    code_bytes(coder, &reason);
    coder_demand(coder, session->actions_passed <= SESSION_ACTIONS_MAX &&
                            session->actions_done <= session->actions_passed &&
                            session->actions_kept <= session->actions_passed &&
                            session->actions_aside <= session->actions_passed);
    if (coder_reads(coder))
        buf_slice(&session->reason, reason);
}

/* How it ends; nothing where it does not. */
static void code_end(struct coder *coder, struct core *core, struct session *session)
{
    bool leaving = session->leaving, closing = session->closing != NULL;
    bool *const flags[] = {&leaving, &session->over, &closing, &session->ending, &session->acted};
    struct slice story = buf_as_slice(&session->story);

    code_flags(coder, flags, coder->version < 5 ? 3 : 5);
    coder_demand(coder, leaving || (!session->over && !closing && !session->ending));
    coder_demand(coder, !session->over || (!closing && !session->ending));
    coder_demand(coder, session->ending || !session->acted);
    if (coder_reads(coder))
        session->end_noted = session->ending; /* between steps */
    if (!leaving)
        return;
    session->how = (enum session_end)code_enum(coder, session->how, SESSION_END_COUNT);
    code_bytes(coder, &story);
    code_size(coder, &session->removed_count);
    code_size(coder, &session->spared_count);
    if (coder_reads(coder)) {
        session__leaves(core, session);
        buf_slice(&session->story, story);
    }
    if (session->ending)
        code_progress(coder, session);
    if (closing)
        code_command(coder, &session->closing);
    coder_demand(coder, !closing || coder->bad || session->closing->type == COMMAND_SESSION_CLOSE);
}

static struct session *make_session(struct coder *coder, struct core *core)
{
    struct slice id = SLICE_NONE, name = SLICE_NONE;

    code_bytes(coder, &id);
    code_bytes(coder, &name);
    coder_demand(coder, id.len > 0 && owners_session(core->owners, id) == NULL);
    if (coder->bad)
        return NULL;
    struct session *session = session__make(core, id, name, 0, 0);
    map_put(&core->owners->sessions, session->id, session);
    return session;
}

static void code_session_fields(struct coder *coder, struct core *core, struct session *session)
{
    struct slice actions = session->on_expire;

    code_number(coder, &session->ttl_us);
    code_number(coder, &session->created);
    code_number(coder, &session->attachment);
    code_slice(coder, &actions);
    coder_demand(coder, coder->bad || actions.len == 0 || are_actions(actions, SIZE_MAX));
    code_deadline(coder, &core->owners->leases, &session->lease);
    code_living(coder, session);
    if (coder_reads(coder)) {
        session->on_expire = duplicate(actions);
        core->owners->action_bytes += actions.len;
    }
    code_end(coder, core, session);
    coder_demand(coder, !session->leaving || session->lease.at == TL_TS_MAX);
}

static void code_session(struct sections *sections, struct core *core, struct session *session)
{
    struct coder coder = section_begin(sections, SECTION_SESSION);

    if (coder_reads(&coder)) {
        session = make_session(&coder, core);
    } else {
        code_bytes(&coder, &session->id);
        code_bytes(&coder, &session->name);
    }
    if (session != NULL)
        code_session_fields(&coder, core, session);
    section_end(sections, &coder);
}

/* Those whose end goes on, the oldest end first. */
static void code_leaving(struct coder *coder, struct core *core, struct list *sessions, bool ending)
{
    struct owners *owners = core->owners;
    size_t count = length_of(sessions);
    struct list *at = sessions->next;

    code_array(coder, NULL, &count, 0, 1);
    for (size_t i = 0; i < count; i++) {
        struct slice id = SLICE_NONE;
        if (!coder_reads(coder)) {
            id = list_entry(at, struct session, of_leaving)->id;
            at = at->next;
        }
        code_bytes(coder, &id);
        if (!coder_reads(coder))
            continue;
        struct session *session = owners_session(owners, id);
        coder_demand(coder, session != NULL && session->leaving && session->ending == ending &&
                                !list_linked(&session->of_leaving));
        if (coder->bad)
            return;
        list_append(sessions, &session->of_leaving);
    }
}

static void code_all_leaving(struct sections *sections, struct core *core)
{
    struct coder coder = section_begin(sections, SECTION_LEAVING);

    code_leaving(&coder, core, &core->owners->leaving, false);
    if (coder.version >= 5)
        code_leaving(&coder, core, &core->owners->ending, true);
    section_end(sections, &coder);
}

/* --- Transactions ------------------------------------------------------------------------------------------------- */

static void write_one(void *context, struct slice key, struct slice value)
{
    struct coder *coder = context;

    code_bytes(coder, &key);
    code_slice(coder, &value);
}

/* Whether a commit would take it. */
static bool is_written(enum store_space space, struct slice key, struct slice value)
{
    struct slice id;
    uint32_t index;
    uint16_t type;
    struct doc doc;

    if (space == SPACE_FEED) {
        struct feed_change change;
        return value.data != NULL && feed_change_take(&value, &change) && value.len == 0 && change.what == FEED_RENAMED;
    }
    if (space == SPACE_TREE)
        return value.data == NULL || tree_record_is_sound(key, value);
    return space != SPACE_DOCUMENTS ||
           (value.data != NULL && doc_key_parse(key, &index, &type, &id) && doc_decode(value, &doc) == 0);
}

static void read_one(struct coder *coder, struct overlay *overlay, enum store_space space, struct slice *before)
{
    struct slice key = SLICE_NONE, value = SLICE_NONE;

    code_bytes(coder, &key);
    code_slice(coder, &value);
    coder_demand(coder, (before->data == NULL || slice_compare(*before, key) < 0) && is_written(space, key, value));
    if (coder->bad)
        return;
    *before = key;
    if (value.data == NULL)
        overlay_delete(overlay, space, key);
    else
        overlay_put(overlay, space, key, value);
}

static void code_overlay(struct coder *coder, struct overlay *overlay)
{
    for (int space = 0; space < SPACE_COUNT; space++) {
        size_t count = coder_reads(coder) ? 0 : overlay_count_in(overlay, (enum store_space)space);
        struct slice before = SLICE_NONE;
        code_array(coder, NULL, &count, 0, 2);
        if (!coder_reads(coder))
            overlay_each(overlay, (enum store_space)space, write_one, coder);
        for (size_t i = 0; i < count && coder_reads(coder) && !coder->bad; i++)
            read_one(coder, overlay, (enum store_space)space, &before);
    }
}

/* Whose own it is, and why it is going to be rolled back. */
static void code_host(struct coder *coder, struct core *core, struct txn *txn)
{
    bool *const flags[] = {&txn->of_host, &txn->party.abandoned};
    uint64_t host = txn->host;

    code_flags(coder, flags, 2);
    if (txn->of_host)
        code_number(coder, &host);
    coder_demand(coder, host <= UINT16_MAX);
    txn->host = coder->bad ? 0 : (uint16_t)host;
    if (txn->party.abandoned)
        txn->why = (enum txn_abandon)code_enum(coder, txn->why, TXN_ABANDON_COUNT);
    coder_demand(coder, !txn->party.abandoned || txn->idle.at == TL_TS_MAX);
    if (coder_reads(coder))
        core->owners->abandoned_count += txn->party.abandoned;
}

static void code_txn_fields(struct coder *coder, struct core *core, struct txn *txn)
{
    bool unrecorded = list_linked(&txn->unrecorded), wrote = txn->overlay != NULL;
    bool *const flags[] = {&txn->again, &unrecorded, &wrote};
    uint64_t notes = txn->ahead_notes;

    txn->mode = (enum txn_mode)code_enum(coder, txn->mode, TXN_MODE_COUNT);
    code_flags(coder, flags, 3);
    code_number(coder, &txn->created);
    code_number(coder, &txn->read_ts);
    code_number(coder, &txn->timeout_us);
    code_number(coder, &notes);
    code_deadline(coder, &core->owners->idles, &txn->idle);
    coder_demand(coder,
                 notes <= UINT32_MAX && (txn->mode == TXN_QUERY || !unrecorded) && (txn->mode == TXN_UPDATE || !wrote));
    txn->ahead_notes = (uint32_t)notes;
    if (coder->version >= 6)
        code_host(coder, core, txn);
    if (coder_reads(coder) && unrecorded)
        list_append(&core->owners->unrecorded_txns, &txn->unrecorded);
    if (coder_reads(coder) && wrote)
        txn->overlay = overlay_new();
    if (wrote)
        code_overlay(coder, txn->overlay);
}

static struct txn *make_txn(struct coder *coder, struct core *core)
{
    struct slice id = SLICE_NONE, owner = SLICE_NONE;
    struct session *session = NULL;

    code_bytes(coder, &id);
    code_slice(coder, &owner);
    coder_demand(coder, id.len > 0 && owners_txn(core->owners, id) == NULL);
    if (owner.data != NULL) {
        session = owners_session(core->owners, owner);
        coder_demand(coder, session != NULL && (session->ending || !session->leaving));
    }
    return coder->bad ? NULL : txn__make(core, id, session);
}

static void code_txn(struct sections *sections, struct core *core, struct txn *txn)
{
    struct coder coder = section_begin(sections, SECTION_TRANSACTION);

    if (coder_reads(&coder)) {
        txn = make_txn(&coder, core);
    } else {
        struct slice owner = txn->party.session == NULL ? SLICE_NONE : txn->party.session->id;
        code_bytes(&coder, &txn->id);
        code_slice(&coder, &owner);
    }
    if (txn != NULL)
        code_txn_fields(&coder, core, txn);
    section_end(sections, &coder);
}

/* --- What ended sessions left ------------------------------------------------------------------------------------- */

static void code_kept_fields(struct coder *coder, struct kept *kept)
{
    bool *const flags[] = {&kept->removal, &kept->aside};
    code_flags(coder, flags, coder->version >= 2 ? 2 : 1);
    code_number(coder, &kept->number);
    code_number(coder, &kept->ended);
    code_bytes(coder, &kept->session);
    code_bytes(coder, &kept->name);
    code_bytes(coder, &kept->action);
}

enum { KEPT_MIN = 6 };

static void code_kept(struct sections *sections, struct core *core)
{
    struct owners *owners = core->owners;
    struct coder coder = section_begin(sections, SECTION_KEPT);
    size_t count = owners->kept_count;
    uint64_t before = 0, last = owners->last_kept;

    code_array(&coder, NULL, &count, 0, KEPT_MIN);
    if (!coder_reads(&coder))
        list_for_each(link, &owners->kept) code_kept_fields(&coder, list_entry(link, struct kept, of_all));
    for (size_t i = 0; i < count && coder_reads(&coder); i++) {
        struct kept kept = {0};
        code_kept_fields(&coder, &kept);
        coder_demand(&coder, kept.number > before && kept.number <= last && are_actions(kept.action, 1));
        if (coder.bad)
            break;
        kept__make(core, &kept);
        before = kept.number;
    }
    if (coder.version >= 2)
        tried__code(&coder, core);
    section_end(sections, &coder);
}

static struct kept_all gather_kept(const struct owners *owners, struct arena *arena)
{
    struct kept_all all = {arena_alloc(arena, (owners->kept_count + 1) * sizeof(struct kept *)), 0};

    list_for_each(link, &owners->kept) all.items[all.count++] = list_entry(link, struct kept, of_all);
    return all;
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Whether the owners have numbers of their own, such as were given. */
static bool are_numbered(const struct owners *owners, const struct lock_codec_refs *parties)
{
    uint64_t *numbers = mem_alloc((parties->owner_count + 1) * sizeof *numbers);
    bool sound = true;

    for (size_t i = 0; i < parties->owner_count; i++)
        numbers[i] = parties->owners[i]->number;
    if (parties->owner_count > 1)
        qsort(numbers, parties->owner_count, sizeof *numbers, compare_numbers);
    for (size_t i = 0; i < parties->owner_count; i++)
        sound = sound && numbers[i] <= owners->locks.last_owner && numbers[i] > (i == 0 ? 0 : numbers[i - 1]);
    mem_free(numbers);
    return sound;
}

/* All who may hold something, in the order of the sections, and all requests; some that are ready have none any more. */
static struct lock_codec_refs gather(const struct core *core, struct arena *arena)
{
    const struct owners *owners = core->owners;
    size_t waits = length_of(&owners->waits), position = 0;
    size_t most = owners->sessions.count + owners->txns.count + waits;
    struct lock_codec_refs parties = {
        .owners = arena_alloc(arena, (most + 1) * sizeof(struct lock_owner *)),
        .requests = arena_alloc(arena, (waits + 1) * sizeof(struct lock_request *)),
    };
    struct slice id;
    void *value;

    while (map_next(&owners->sessions, &position, &id, &value))
        parties.owners[parties.owner_count++] = &((struct session *)value)->party.owner;
    list_for_each(link, &owners->open_txns) parties.owners[parties.owner_count++] =
        &list_entry(link, struct txn, of_all)->party.owner;
    list_for_each(link, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->party != NULL)
            parties.owners[parties.owner_count++] = wait->owner;
        if (wait->request != NULL)
            parties.requests[parties.request_count++] = wait->request;
    }
    return parties;
}

/* What ended sessions left may be ready without having asked for anything; what has ended asks for nothing. */
static bool asks_for(const struct wait *wait, struct lock_request *request)
{
    return !wait->ended && request != NULL && lock_request_owner(request) == wait->owner &&
           lock_request_state(request) == (wait->ready_number > 0 ? LOCK_STATE_GRANTED : LOCK_STATE_WAITING);
}

/* Gives each wait the request that was read for it. */
static void give_requests(struct coder *coder, struct owners *owners, const struct lock_codec_refs *parties)
{
    size_t next = 0;

    for (int pass = 0; pass < 2 && !coder->bad; pass++) { /* only when all fit is any given away */
        next = 0;
        list_for_each(link, &owners->waits)
        {
            struct wait *wait = list_entry(link, struct wait, of_all);
            struct lock_request *request = next < parties->request_count ? parties->requests[next] : NULL;
            bool asks = asks_for(wait, request);
            coder_demand(coder, asks || wait->ended || (wait->ready_number > 0 && wait->kept != NULL));
            if (!asks)
                continue;
            next++;
            if (pass == 0)
                continue;
            wait->request = request;
            lock_request_set_user(request, wait);
        }
        coder_demand(coder, next == parties->request_count);
    }
}

static int compare_ready(const void *a, const void *b)
{
    uint64_t x = (*(struct wait *const *)a)->ready_number, y = (*(struct wait *const *)b)->ready_number;

    return (x > y) - (x < y);
}

/* Lines up those that are ready. */
static void give_turns(struct sections *sections, struct owners *owners)
{
    struct wait **ready = arena_alloc(sections->arena, (length_of(&owners->waits) + 1) * sizeof *ready);
    size_t count = 0;

    list_for_each(link, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->ready_number > 0)
            ready[count++] = wait;
    }
    if (count > 1)
        qsort(ready, count, sizeof *ready, compare_ready);
    for (size_t i = 0; i < count; i++) {
        ready[i]->ready = true;
        list_append(&owners->ready, &ready[i]->link);
        sections_demand(sections, ready[i]->ready_number > (i == 0 ? 0 : ready[i - 1]->ready_number) &&
                                      ready[i]->ready_number <= owners->last_ready);
    }
    owners->ready_count = count;
    sections_demand(sections, (count > 0) == (owners->last_ready > 0));
}

static void code_locks(struct sections *sections, struct core *core)
{
    struct owners *owners = core->owners;
    struct coder coder = section_begin(sections, SECTION_LOCKS);
    struct arena arena = ARENA_INIT;
    struct lock_codec_refs parties = gather(core, &arena);

    lock_codec_table(&coder, &owners->locks, &parties);
    if (coder_reads(&coder)) {
        coder_demand(&coder, coder.bad || are_numbered(owners, &parties));
        give_requests(&coder, owners, &parties);
        if (coder.bad)
            lock_codec_discard(&owners->locks, &parties);
    }
    section_end(sections, &coder);
    arena_deinit(&arena);
}

/* --- Stories ------------------------------------------------------------------------------------------------------ */

static void code_stories(struct sections *sections, struct stories *stories)
{
    struct coder coder = section_begin(sections, SECTION_STORIES);
    size_t count = stories->count;

    code_size(&coder, &count);
    size_t first = count > STORIES_KEPT ? count - STORIES_KEPT : 0;
    for (size_t i = first; i < count && !coder.bad; i++) {
        struct story *story = &stories->kept[i % STORIES_KEPT];
        struct slice lines = slice_make(story->lines, story->lines_len);
        unsigned kind = code_enum(&coder, coder_reads(&coder) ? 0 : story_kind(story->kind), STORY_KINDS);
        code_number(&coder, &story->ts);
        code_bytes(&coder, &lines);
        if (!coder_reads(&coder) || coder.bad)
            continue;
        story->kind = story_kinds[kind];
        story->lines = mem_strdup(lines.data, lines.len);
        story->lines_len = lines.len;
    }
    stories->count = count;
    section_end(sections, &coder);
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* What stands before the owners. */
struct counts {
    size_t sessions, txns, waits;
};

static void code_counts(struct sections *sections, struct owners *owners, struct counts *counts)
{
    struct coder coder = section_begin(sections, SECTION_OWNERS);

    code_number(&coder, &owners->leases.last_number);
    code_number(&coder, &owners->wait_ends.last_number);
    code_number(&coder, &owners->idles.last_number);
    code_number(&coder, &owners->last_kept);
    if (coder.version >= 6)
        code_number(&coder, &owners->last_ready);
    code_size(&coder, &counts->sessions);
    code_size(&coder, &counts->txns);
    code_size(&coder, &counts->waits);
    section_end(sections, &coder);
}

static void write_all(struct core *core, struct sections *sections)
{
    struct owners *owners = core->owners;
    size_t position = 0;
    struct slice id;
    void *value;

    while (map_next(&owners->sessions, &position, &id, &value))
        code_session(sections, core, value);
    code_all_leaving(sections, core);
    list_for_each(link, &owners->open_txns) code_txn(sections, core, list_entry(link, struct txn, of_all));
    code_kept(sections, core);
    list_for_each(link, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        code_wait(sections, core, &wait, NULL);
    }
}

static void read_all(struct core *core, struct sections *sections, const struct counts *counts)
{
    struct owners *owners = core->owners;
    struct wait *wait;

    for (size_t i = 0; i < counts->sessions && !sections->bad; i++)
        code_session(sections, core, NULL);
    code_all_leaving(sections, core);
    for (size_t i = 0; i < counts->txns && !sections->bad; i++)
        code_txn(sections, core, NULL);
    session__find_gone(core);
    code_kept(sections, core);
    struct kept_all kept = gather_kept(owners, sections->arena);
    for (size_t i = 0; i < counts->waits && !sections->bad; i++)
        code_wait(sections, core, &wait, &kept);
    give_turns(sections, owners);
    if (!sections->bad)
        kept__find_unasked(core);
}

void owners__code(struct core *core, struct sections *sections)
{
    struct owners *owners = core->owners;
    struct counts counts = {owners->sessions.count, owners->txns.count, length_of(&owners->waits)};

    code_counts(sections, owners, &counts);
    if (sections_read(sections))
        read_all(core, sections, &counts);
    else
        write_all(core, sections);
    code_locks(sections, core);
    code_stories(sections, &owners->stories);
    if (sections->version >= 4)
        hosts__code(sections, &owners->hosts);
    if (sections_read(sections)) {
        owners->stories_told = owners->stories.count; /* as news: whoever wrote them has told them */
        owners__tally(core);
    }
}

void owners__abandon(struct core *core)
{
    struct owners *owners = core->owners;
    size_t position = 0;
    struct slice id;
    void *value;

    list_for_each(link, &owners->waits) command_free(tl_steal(list_entry(link, struct wait, of_all)->command));
    while (map_next(&owners->sessions, &position, &id, &value))
        command_free(tl_steal(((struct session *)value)->closing));
}
