/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes the owners for a checkpoint. core/README.md, "Checkpoints", has the format.
 * References to sessions and transactions are their ids; the owner of a waiting request follows
 * from its command.
 */
#include "core/owners/owners_codec.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/cleanup/deferred.h"
#include "core/command/codec.h"
#include "core/command/command.h"
#include "core/documents/action.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"
#include "core/owners/hosts.h"
#include "core/owners/owners_step.h"
#include "core/owners/piece_codec.h"
#include "core/session/deadline.h"
#include "core/session/deadline.h"
#include "core/session/owners.h"
#include "core/session/save_pieces.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/wait/lock_event.h"
#include "core/wait/wait.h"

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static void codec_session(struct sections *sections, struct core *core, struct session *session)
{
    struct codec codec = section_begin(sections, SECTION_SESSION);
    codec_session_fields(&codec, core, session, false);
    section_end(sections, &codec);
}

/* The list of the pieces of all sessions, and their leases. */
static void codec_sessions_in_pieces(struct sections *sections, struct core *core, struct piece_reader *reader)
{
    struct codec codec = section_begin(sections, SECTION_SESSION);
    size_t position = 0;
    struct slice id;
    void *value;

    piece_codec__chunks(&codec, core, PIECE_SESSIONS, reader);
    while (!codec.bad && map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        codec_deadline(&codec, &core->owners->leases, &session->lease);
        codec_require(&codec, !session->terminating || session->lease.at == TL_TS_MAX);
    }
    section_end(sections, &codec);
}

static void codec_waits_in_pieces(struct sections *sections, struct core *core, struct piece_reader *reader)
{
    struct codec codec = section_begin(sections, SECTION_WAIT);
    piece_codec__chunks(&codec, core, PIECE_WAITS, reader);
    section_end(sections, &codec);
}

/*
 * The ids of one list of terminating sessions, in order. `ending`: the list of those with
 * cleanup_pending.
 */
static void codec_terminating_list(struct codec *codec, struct core *core, struct list *sessions, bool cleanup_pending)
{
    struct owners *owners = core->owners;
    size_t count = list_length(sessions);
    struct list *at = sessions->next;

    codec_array(codec, NULL, &count, 0, 1);
    for (size_t i = 0; i < count; i++) {
        struct slice id = SLICE_NONE;
        if (!codec_reads(codec)) {
            id = list_entry(at, struct session, of_terminating)->id;
            at = at->next;
        }
        codec_bytes(codec, &id);
        if (!codec_reads(codec))
            continue;
        struct session *session = owners_session(owners, id);
        codec_require(codec, session != NULL && session->terminating && session->cleanup_pending == cleanup_pending &&
                                 !list_linked(&session->of_terminating));
        if (codec->bad)
            return;
        list_append(sessions, &session->of_terminating);
    }
}

/* Whether each session that a request to close waits for is in a list, so that it is answered. */
static bool closes_are_listed(const struct owners *owners)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&owners->sessions, &position, &id, &value)) {
        const struct session *session = value;
        if (session->close_command != NULL && !list_linked(&session->of_terminating))
            return false;
    }
    return true;
}

static void codec_terminating(struct sections *sections, struct core *core)
{
    struct codec codec = section_begin(sections, SECTION_TERMINATING);

    codec_terminating_list(&codec, core, &core->owners->sessions_to_purge, false);
    if (codec.version >= 5)
        codec_terminating_list(&codec, core, &core->owners->sessions_to_clean, true);
    codec_require(&codec, !codec_reads(&codec) || codec.bad || closes_are_listed(core->owners));
    section_end(sections, &codec);
}

/* --- Transactions ------------------------------------------------------------------------------------------------- */

static void write_one(void *context, struct slice key, struct slice value)
{
    struct codec *codec = context;

    codec_bytes(codec, &key);
    codec_slice(codec, &value);
}

static void read_one(struct codec *codec, struct overlay *overlay, enum store_space space, struct slice *before)
{
    REQUIRE(codec_reads(codec));
    struct slice key = SLICE_NONE, value = SLICE_NONE;

    codec_bytes(codec, &key);
    codec_slice(codec, &value);
    codec_require(codec, codec->bad || ((before->data == NULL || slice_compare(*before, key) < 0) &&
                                        piece_codec__restore_record(overlay, space, key, value)));
    *before = key;
}

/* An overlay, in itself or as a list of its pieces. */
static void codec_overlay(struct codec *codec, struct core *core, struct txn *txn, bool in_pieces)
{
    struct overlay *overlay = txn->overlay;
    if (in_pieces) {
        piece_codec__overlay(codec, core, txn);
        return;
    }

    for (int space = 0; space < SPACE_COUNT; space++) {
        size_t count = codec_reads(codec) ? 0 : overlay_count_in(overlay, (enum store_space)space);
        struct slice before = SLICE_NONE;
        codec_array(codec, NULL, &count, 0, 2);
        if (!codec_reads(codec))
            overlay_each(overlay, (enum store_space)space, write_one, codec);
        for (size_t i = 0; i < count && codec_reads(codec) && !codec->bad; i++)
            read_one(codec, overlay, (enum store_space)space, &before);
    }
    if (codec_reads(codec) && overlay_chunk_count(overlay) > 0)
        save_pieces__touch(core, txn);
}

/* Whose request it is of, and why it is abandoned. */
static void codec_origin(struct codec *codec, struct core *core, struct txn *txn)
{
    bool *const flags[] = {&txn->of_host, &txn->owner.abandoned, &txn->of_write};
    uint64_t host = txn->host;

    codec_flags(codec, flags, codec->version < 16 ? 2 : 3);
    codec_require(codec, !txn->of_host || !txn->of_write);
    if (txn->of_host)
        codec_number(codec, &host);
    codec_require(codec, host <= UINT16_MAX);
    txn->host = codec->bad ? 0 : (uint16_t)host;
    if (txn->owner.abandoned)
        txn->abandon_reason = (enum txn_abandon)codec_enum(codec, txn->abandon_reason, TXN_ABANDON_COUNT);
    codec_require(codec, !txn->owner.abandoned || txn->idle.at == TL_TS_MAX);
    if (codec_reads(codec))
        core->owners->abandoned_count += txn->owner.abandoned;
}

/*
 * Reads the mode, and the flags with the one of a query transaction whose record is not written yet,
 * which is without effect. Versions before 7.
 */
static enum txn_mode read_mode(struct codec *codec, struct txn *txn, bool *ret_has_overlay)
{
    REQUIRE(codec_reads(codec) && codec->version < 7); /* later ones have no query transactions */
    enum txn_mode mode = (enum txn_mode)codec_enum(codec, 0, TXN_MODE_COUNT);
    bool unrecorded = false;
    bool *const flags[] = {&txn->retry, &unrecorded, ret_has_overlay};

    codec_flags(codec, flags, 3);
    codec_require(codec, mode == TXN_QUERY ? !*ret_has_overlay : !unrecorded);
    return mode;
}

/*
 * `in_pieces`: overlays are written as lists of pieces.
 * Returns: TXN_QUERY: the state is of an older version, and the transaction is to be dropped.
 */
static enum txn_mode codec_txn_fields(struct codec *codec, struct core *core, struct txn *txn, bool in_pieces)
{
    bool has_overlay = txn->overlay != NULL;
    bool *const flags[] = {&txn->retry, &has_overlay, &in_pieces};
    uint64_t undo_records = txn->undo_record_count, read_ts = 0;
    enum txn_mode mode = TXN_UPDATE;

    in_pieces = in_pieces && has_overlay && overlay_chunk_count(txn->overlay) > 0;
    if (codec->version < 7)
        mode = read_mode(codec, txn, &has_overlay);
    else
        codec_flags(codec, flags, codec->version < 9 ? 2 : 3);
    codec_require(codec, has_overlay || !in_pieces);
    codec_number(codec, &txn->created);
    if (codec->version < 7)
        codec_number(codec, &read_ts);
    codec_number(codec, &txn->timeout_us);
    codec_number(codec, &undo_records);
    codec_deadline(codec, &core->owners->idles, &txn->idle);
    codec_require(codec, undo_records <= UINT32_MAX);
    txn->undo_record_count = (uint32_t)undo_records;
    if (codec->version >= 6)
        codec_origin(codec, core, txn);
    if (codec_reads(codec) && has_overlay)
        txn->overlay = overlay_new();
    if (has_overlay)
        codec_overlay(codec, core, txn, in_pieces);
    return mode;
}

static struct txn *make_txn(struct codec *codec, struct core *core)
{
    REQUIRE(codec_reads(codec));
    struct slice id = SLICE_NONE, session_id = SLICE_NONE;
    struct session *session = NULL;

    codec_bytes(codec, &id);
    codec_slice(codec, &session_id);
    codec_require(codec, id.len > 0 && owners_txn(core->owners, id) == NULL);
    if (session_id.data != NULL) {
        session = owners_session(core->owners, session_id);
        codec_require(codec, session != NULL && (session->cleanup_pending || !session->terminating));
    }
    return codec->bad ? NULL : txn__make(core, id, session);
}

/*
 * Returns: a query transaction that was read, which is to be dropped when the locks were read, too;
 *          NULL: none.
 */
static struct txn *codec_txn(struct sections *sections, struct core *core, struct txn *txn)
{
    struct codec codec = section_begin(sections, SECTION_TRANSACTION);
    enum txn_mode mode = TXN_UPDATE;

    if (codec_reads(&codec)) {
        txn = make_txn(&codec, core);
    } else {
        struct slice session_id = txn->owner.session == NULL ? SLICE_NONE : txn->owner.session->id;
        codec_bytes(&codec, &txn->id);
        codec_slice(&codec, &session_id);
    }
    if (txn != NULL)
        mode = codec_txn_fields(&codec, core, txn, sections->in_pieces);
    section_end(sections, &codec);
    return mode == TXN_QUERY ? txn : NULL;
}

/* --- Deferred cleanup --------------------------------------------------------------------------------------------- */

static void codec_deferred_fields(struct codec *codec, struct deferred *deferred)
{
    bool *const flags[] = {&deferred->removal, &deferred->set_aside};
    codec_flags(codec, flags, codec->version >= 2 ? 2 : 1);
    codec_number(codec, &deferred->number);
    codec_number(codec, &deferred->ended);
    codec_bytes(codec, &deferred->session);
    codec_bytes(codec, &deferred->name);
    codec_bytes(codec, &deferred->action);
}

enum { DEFERRED_BYTES_MIN = 6 };

static void codec_deferred(struct sections *sections, struct core *core)
{
    struct owners *owners = core->owners;
    struct codec codec = section_begin(sections, SECTION_DEFERRED);
    size_t count = owners->deferred_count;
    uint64_t before = 0, last = owners->last_deferred;

    codec_array(&codec, NULL, &count, 0, DEFERRED_BYTES_MIN);
    if (!codec_reads(&codec))
        list_for_each(link, &owners->deferred) codec_deferred_fields(&codec, list_entry(link, struct deferred, of_all));
    for (size_t i = 0; i < count && codec_reads(&codec); i++) {
        struct deferred deferred = {0};
        codec_deferred_fields(&codec, &deferred);
        codec_require(&codec,
                      deferred.number > before && deferred.number <= last && action_all_valid(deferred.action, 1));
        if (codec.bad)
            break;
        deferred__make(core, &deferred);
        before = deferred.number;
    }
    if (codec.version >= 2)
        cleanup_attempt__codec(&codec, core);
    section_end(sections, &codec);
}

static struct deferred_array collect_deferred(const struct owners *owners, struct arena *arena)
{
    struct deferred_array all = {arena_alloc(arena, (owners->deferred_count + 1) * sizeof(struct deferred *)), 0};

    list_for_each(link, &owners->deferred) all.items[all.count++] = list_entry(link, struct deferred, of_all);
    ENSURE(all.count == owners->deferred_count);
    return all;
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Whether the numbers of all owners are distinct and have been given. */
static bool numbers_are_valid(const struct owners *owners, const struct lock_codec_refs *refs)
{
    uint64_t *numbers = mem_alloc((refs->owner_count + 1) * sizeof *numbers);
    bool sound = true;

    for (size_t i = 0; i < refs->owner_count; i++)
        numbers[i] = refs->owners[i]->number;
    if (refs->owner_count > 1)
        qsort(numbers, refs->owner_count, sizeof *numbers, compare_numbers);
    for (size_t i = 0; i < refs->owner_count; i++)
        sound = sound && numbers[i] <= owners->locks.last_owner && numbers[i] > (i == 0 ? 0 : numbers[i - 1]);
    mem_free(numbers);
    return sound;
}

/*
 * Collects all owners, in the order of the sections, and all requests; some ready waits have none
 * any more.
 */
static struct lock_codec_refs collect_refs(const struct core *core, struct arena *arena)
{
    const struct owners *owners = core->owners;
    size_t waits = owners->wait_chunks.count, position = 0;
    size_t most = owners->sessions.count + owners->txns.count + waits;
    struct lock_codec_refs refs = {
        .owners = arena_alloc(arena, (most + 1) * sizeof(struct lock_owner *)),
        .requests = arena_alloc(arena, (waits + 1) * sizeof(struct lock_request *)),
    };
    struct slice id;
    void *value;

    while (map_next(&owners->sessions, &position, &id, &value))
        refs.owners[refs.owner_count++] = &((struct session *)value)->owner.locks;
    list_for_each(link, &owners->open_txns) refs.owners[refs.owner_count++] =
        &list_entry(link, struct txn, of_all)->owner.locks;
    list_for_each(link, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->write_owner != NULL)
            refs.owners[refs.owner_count++] = wait->owner;
        if (wait->request != NULL)
            refs.requests[refs.request_count++] = wait->request;
    }
    ENSURE(refs.owner_count <= most && refs.request_count <= waits); /* wait_chunks has all waits */
    return refs;
}

static bool is_granted(const struct wait *wait)
{
    return wait->ready_number > 0 || (wait->kept && wait->granted_ts > 0);
}

/*
 * Whether a wait has the lock request `request`. A ready deferred cleanup may have none; the next
 * batch of a write (until == 0) and an ended wait have none.
 */
static bool has_request(const struct wait *wait, struct lock_request *request)
{
    return !wait->ended && request != NULL && lock_request_owner(request) == wait->owner &&
           lock_request_state(request) == (is_granted(wait) ? LOCK_STATE_GRANTED : LOCK_STATE_WAITING);
}

/* Gives each wait the request that was read for it. */
static void assign_requests(struct codec *codec, struct owners *owners, const struct lock_codec_refs *refs)
{
    REQUIRE(codec_reads(codec));
    size_t next = 0;

    for (int pass = 0; pass < 2 && !codec->bad; pass++) { /* the first pass only checks */
        next = 0;
        list_for_each(link, &owners->waits)
        {
            struct wait *wait = list_entry(link, struct wait, of_all);
            struct lock_request *request = next < refs->request_count ? refs->requests[next] : NULL;
            bool has = has_request(wait, request);
            codec_require(codec, has || wait->ended ||
                                     (wait->ready_number > 0 && (wait->deferred != NULL || wait->until == 0)));
            if (!has)
                continue;
            next++;
            if (pass == 0)
                continue;
            wait->request = request;
            lock_request_set_user(request, wait);
        }
        codec_require(codec, next == refs->request_count);
    }
}

static int compare_ready(const void *a, const void *b)
{
    uint64_t x = (*(struct wait *const *)a)->ready_number, y = (*(struct wait *const *)b)->ready_number;

    return (x > y) - (x < y);
}

/* Rebuilds owners->ready in order of ready_number. */
static void rebuild_ready(struct sections *sections, struct owners *owners)
{
    REQUIRE(sections_are_read(sections) && list_empty(&owners->ready));
    struct wait **ready = arena_alloc(sections->arena, (list_length(&owners->waits) + 1) * sizeof *ready);
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
        sections_require(sections, ready[i]->ready_number > (i == 0 ? 0 : ready[i - 1]->ready_number) &&
                                       ready[i]->ready_number <= owners->last_ready);
    }
    owners->ready_count = count;
    sections_require(sections, (count > 0) == (owners->last_ready > 0));
}

static int compare_cancelled(const void *a, const void *b)
{
    uint64_t x = (*(struct wait *const *)a)->cancel_number, y = (*(struct wait *const *)b)->cancel_number;

    return (x > y) - (x < y);
}

/* Rebuilds owners->cancelled in order of cancel_number. */
static void rebuild_cancelled(struct sections *sections, struct owners *owners)
{
    REQUIRE(sections_are_read(sections) && list_empty(&owners->cancelled));
    struct wait **waits = arena_alloc(sections->arena, (list_length(&owners->waits) + 1) * sizeof *waits);
    uint64_t before = 0;
    size_t count = 0;

    list_for_each(link, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->cancelled != WAIT_NOT_CANCELLED)
            waits[count++] = wait;
    }
    if (count > 1)
        qsort(waits, count, sizeof *waits, compare_cancelled);
    for (size_t i = 0; i < count; i++) {
        list_append(&owners->cancelled, &waits[i]->of_cancelled);
        sections_require(sections, waits[i]->cancel_number > before);
        before = waits[i]->cancel_number;
    }
    sections_require(sections, before <= owners->last_cancelled && (count > 0) == (owners->last_cancelled > 0));
}

/* Whether no session whose locks were released has one. */
static bool released_sessions_are_valid(const struct owners *owners)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&owners->sessions, &position, &id, &value)) {
        const struct session *session = value;
        if (session->locks_released && session->owner.locks.hold_count > 0)
            return false;
    }
    return true;
}

/* `waits`: waits are in pieces, with the specs of their requests; NULL: they are not. */
static void codec_locks(struct sections *sections, struct core *core, const struct piece_reader *waits)
{
    struct owners *owners = core->owners;
    struct codec codec = section_begin(sections, SECTION_LOCKS);
    struct arena arena = ARENA_INIT;
    struct lock_codec_refs refs = collect_refs(core, &arena);

    refs.in_pieces = sections->in_pieces;
    refs.read_piece = piece_codec__read;
    refs.context = core;
    refs.without_specs = waits != NULL;
    refs.specs = waits == NULL ? NULL : waits->specs;
    refs.specs_count = waits == NULL ? 0 : waits->spec_count;
    lock_codec_table(&codec, &owners->locks, &refs);
    if (codec_reads(&codec)) {
        codec_require(&codec, codec.bad || (numbers_are_valid(owners, &refs) && released_sessions_are_valid(owners)));
        assign_requests(&codec, owners, &refs);
        if (codec.bad)
            lock_codec_discard(&owners->locks, &refs);
    }
    section_end(sections, &codec);
    arena_deinit(&arena);
}

/* --- Lock events -------------------------------------------------------------------------------------------------- */

static void codec_lock_events(struct sections *sections, struct lock_events *events)
{
    struct codec codec = section_begin(sections, SECTION_LOCK_EVENTS);
    size_t count = events->count;

    codec_size(&codec, &count);
    size_t first = count > LOCK_EVENTS_MAX ? count - LOCK_EVENTS_MAX : 0;
    for (size_t i = first; i < count && !codec.bad; i++) {
        struct lock_event *event = &events->ring[i % LOCK_EVENTS_MAX];
        struct slice lines = slice_make(event->lines, event->lines_len);
        unsigned kind =
            codec_enum(&codec, codec_reads(&codec) ? 0 : lock_event_kind(event->kind), LOCK_EVENT_KIND_COUNT);
        codec_number(&codec, &event->ts);
        codec_bytes(&codec, &lines);
        if (!codec_reads(&codec) || codec.bad)
            continue;
        event->kind = lock_event_kinds[kind];
        event->lines = mem_strdup(lines.data, lines.len);
        event->lines_len = lines.len;
    }
    events->count = count;
    section_end(sections, &codec);
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* The numbers of what follows. */
struct counts {
    size_t sessions, txns, waits;
    bool in_pieces; /* sessions and waits are lists of pieces, each a section */
};

static void codec_counts(struct sections *sections, struct owners *owners, struct counts *counts)
{
    struct codec codec = section_begin(sections, SECTION_OWNERS);

    codec_number(&codec, &owners->leases.last_number);
    codec_number(&codec, &owners->wait_ends.last_number);
    codec_number(&codec, &owners->idles.last_number);
    codec_number(&codec, &owners->last_deferred);
    if (codec.version >= 6)
        codec_number(&codec, &owners->last_ready);
    if (codec.version >= 8)
        codec_number(&codec, &owners->last_cancelled);
    codec_size(&codec, &counts->sessions);
    codec_size(&codec, &counts->txns);
    codec_size(&codec, &counts->waits);
    if (codec.version >= 11)
        codec_bool(&codec, &counts->in_pieces);
    codec_require(&codec, !counts->in_pieces || counts->sessions + counts->waits > 0);
    section_end(sections, &codec);
}

static void write_sessions(struct core *core, struct sections *sections)
{
    struct owners *owners = core->owners;
    size_t position = 0;
    struct slice id;
    void *value;

    while (map_next(&owners->sessions, &position, &id, &value))
        codec_session(sections, core, value);
}

static void write_waits(struct core *core, struct sections *sections)
{
    list_for_each(link, &core->owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        codec_wait(sections, core, &wait, NULL);
    }
}

static void write_all(struct core *core, struct sections *sections, const struct counts *counts)
{
    REQUIRE(!sections_are_read(sections));
    struct owners *owners = core->owners;

    if (counts->in_pieces)
        codec_sessions_in_pieces(sections, core, NULL);
    else
        write_sessions(core, sections);
    codec_terminating(sections, core);
    list_for_each(link, &owners->open_txns)(void) codec_txn(sections, core, list_entry(link, struct txn, of_all));
    codec_deferred(sections, core);
    if (counts->in_pieces)
        codec_waits_in_pieces(sections, core, NULL);
    else
        write_waits(core, sections);
}

/* Query transactions of an older version. */
struct dropped {
    struct txn **txns; /* in the arena of the sections */
    size_t count;
    size_t capacity;
};

static void add_dropped(struct dropped *dropped, struct txn *txn, struct arena *arena)
{
    if (txn == NULL)
        return;
    dropped->txns = arena_grow(arena, dropped->txns, dropped->count, &dropped->capacity, sizeof(*dropped->txns));
    dropped->txns[dropped->count++] = txn;
}

static void read_sessions(struct core *core, struct sections *sections, const struct counts *counts,
                          struct piece_reader *reader)
{
    if (counts->in_pieces)
        codec_sessions_in_pieces(sections, core, reader);
    for (size_t i = 0; i < counts->sessions && !counts->in_pieces && !sections->bad; i++)
        codec_session(sections, core, NULL);
    sections_require(sections, core->owners->sessions.count == counts->sessions);
}

static void read_waits(struct core *core, struct sections *sections, const struct counts *counts,
                       struct piece_reader *reader)
{
    struct wait *wait;

    if (counts->in_pieces)
        codec_waits_in_pieces(sections, core, reader);
    for (size_t i = 0; i < counts->waits && !counts->in_pieces && !sections->bad; i++)
        codec_wait(sections, core, &wait, reader->deferred);
    sections_require(sections, sections->bad || core->owners->wait_chunks.count == counts->waits);
}

static void read_all(struct core *core, struct sections *sections, const struct counts *counts,
                     struct piece_reader *reader, struct dropped *dropped)
{
    REQUIRE(sections_are_read(sections) && core->owners->sessions.count == 0);
    struct owners *owners = core->owners;

    read_sessions(core, sections, counts, reader);
    codec_terminating(sections, core);
    for (size_t i = 0; i < counts->txns && !sections->bad; i++)
        add_dropped(dropped, codec_txn(sections, core, NULL), sections->arena);
    session__find_orphans(core);
    codec_deferred(sections, core);
    struct deferred_array deferred = collect_deferred(owners, sections->arena);
    reader->deferred = &deferred;
    read_waits(core, sections, counts, reader);
    rebuild_ready(sections, owners);
    rebuild_cancelled(sections, owners);
    if (!sections->bad)
        deferred__find_unrequested(core);
}

void owners__codec(struct core *core, struct sections *sections)
{
    struct owners *owners = core->owners;
    struct counts counts = {owners->sessions.count, owners->txns.count, owners->wait_chunks.count, false};
    struct piece_reader reader = {.arena = sections->arena};
    struct dropped dropped = {0};

    REQUIRE(!sections_are_read(sections) || counts.sessions + counts.txns + counts.waits == 0);
    counts.in_pieces = sections->in_pieces && counts.sessions + counts.waits > 0;

    codec_counts(sections, owners, &counts);
    if (sections_are_read(sections))
        read_all(core, sections, &counts, &reader, &dropped);
    else
        write_all(core, sections, &counts);
    codec_locks(sections, core, counts.in_pieces ? &reader : NULL);
    for (size_t i = 0; i < dropped.count && !sections->bad; i++)
        txn__free(core, dropped.txns[i]);
    codec_lock_events(sections, &owners->lock_events);
    if (sections->version >= 4)
        hosts__codec(sections, &owners->hosts);
    if (sections_are_read(sections)) {
        sections_require(sections, sections->bad || piece_codec__check_loaded(core, sections->version));
        sections->in_pieces = owners->pieces.named > 0;
        owners->events_reported = owners->lock_events.count; /* reported before */
        owners__update_budget(core);
    }
}

void owners__discard_loaded(struct core *core)
{
    REQUIRE(!core->open);
    struct owners *owners = core->owners;
    size_t position = 0;
    struct slice id;
    void *value;

    list_for_each(link, &owners->waits) command_free(tl_steal(list_entry(link, struct wait, of_all)->command));
    while (map_next(&owners->sessions, &position, &id, &value))
        command_free(tl_steal(((struct session *)value)->close_command));
}
