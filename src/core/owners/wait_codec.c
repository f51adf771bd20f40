/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec of waiting requests, for checkpoints. The owner and the callbacks of a wait follow from its
 * command; the progress of a bulk is in its results.
 */
#include "base/check.h"
#include "base/magic.h"
#include "core/command/codec.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/command/section.h"
#include "core/documents/result_codec.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"
#include "core/owners/owners_codec.h"
#include "core/owners/owners_step.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"

/* --- Results ------------------------------------------------------------------------------------------------------ */

/* Copies the rest of the input to the command, so that slices read from here on live with it. */
static void retain_texts(struct codec *codec, struct command *command)
{
    REQUIRE(codec_reads(codec));
    codec->in = arena_copy(&command->arena, codec->in);
    codec->arena = &command->arena;
}

/*
 * Whether the items that a write of a transaction has still to run are the last ones, and at least
 * one.
 */
static bool pending_is_valid(const struct wait *wait)
{
    REQUIRE(wait->pending_items != NULL && wait->command->write.item_count > 0);
    const struct write_command *write = &wait->command->write;
    const bool *pending = wait->pending_items;

    for (size_t i = 1; i < write->item_count; i++)
        if (pending[i - 1] && !pending[i])
            return false;
    return pending[write->item_count - 1] || write->atomic; /* else its commit is left */
}

/* Codes what an atomic write in pieces counts. */
static void codec_progress(struct codec *codec, struct write_command *write)
{
    uint64_t attempts = write->attempts;

    codec_number(codec, &write->script_steps);
    if (codec->version >= 15)
        codec_number(codec, &attempts);
    codec_require(codec, attempts <= UINT32_MAX);
    write->attempts = (uint32_t)attempts;
}

/* Checks whether the transaction of a partial write is its own. Transactions of before version 16 do not say so. */
static void codec_transaction(struct codec *codec, const struct wait *wait)
{
    if (codec->bad || wait->txn == NULL || wait->pending_items == NULL)
        return;
    if (codec_reads(codec) && codec->version < 16 && wait__is_in_pieces(wait))
        wait->txn->of_write = true;
    codec_require(codec, wait->txn->of_write == wait__is_in_pieces(wait));
}

/* Codes which items are still to run, and all results, in the command's arena. */
static void codec_results(struct codec *codec, struct wait *wait)
{
    REQUIRE(wait->command->type == COMMAND_WRITE);
    struct write_command *write = &wait->command->write;
    struct arena *arena = &wait->command->arena;
    bool partial = wait->pending_items != NULL;

    codec_bool(codec, &partial);
    codec_require(codec, !partial || ((wait->write_owner != NULL || wait->txn != NULL || wait->ended) &&
                                      (!write->atomic || (codec->version >= 14 && wait->txn != NULL)) &&
                                      write->item_count > 1));
    if (partial && write->atomic)
        codec_progress(codec, write);
    if (codec_reads(codec)) {
        write->results = arena_zalloc(arena, (write->item_count + 1) * sizeof *write->results);
        wait->pending_items = partial ? arena_zalloc(arena, write->item_count + 1) : NULL;
        retain_texts(codec, wait->command);
    }
    if (codec_reads(codec))
        write->result_bytes = 0;
    for (size_t i = 0; i < write->item_count && !codec->bad; i++) {
        if (partial)
            codec_bool(codec, &wait->pending_items[i]);
        result_codec__result(codec, &write->results[i]);
        if (codec_reads(codec) && partial && !wait->pending_items[i])
            write->result_bytes += write_result_bytes(&write->results[i]);
    }
    codec_require(codec, codec->bad || !partial || wait->txn == NULL || pending_is_valid(wait));
    codec_transaction(codec, wait);
}

/* --- Waits -------------------------------------------------------------------------------------------------------- */

static void codec_numbers(struct codec *codec, struct core *core, struct wait *wait, bool ready)
{
    codec_number(codec, &wait->since);
    codec_number(codec, &wait->since_ts);
    codec_number(codec, &wait->until);
    codec_size(codec, &wait->queue_position);
    codec_number(codec, &wait->names_epoch);
    codec_deadline(codec, &core->owners->wait_ends, &wait->deadline);
    codec_require(codec, wait->deadline.at == (ready || wait->until > TL_TS_MAX ? TL_TS_MAX : wait->until));
    codec_require(codec, wait->until > 0 || ready);
}

/* Whether a wait that has not waited for locks may be ready. */
static bool never_waited_is_valid(const struct wait *wait)
{
    return wait->until > 0 || wait->deferred != NULL || wait->pending_items != NULL || wait->ended;
}

/* A loaded wait enters owners->ready when all are read (owners_codec.c). */
static void codec_ready(struct codec *codec, struct wait *wait)
{
    codec_number(codec, &wait->ready_number);
    codec_number(codec, &wait->granted_ts);
    codec_require(codec, wait->ready_number > 0);
    if (!wait->ended)
        return;
    if (codec_reads(codec))
        retain_texts(codec, wait->command);
    result_codec__problem(codec, wait__cause(wait));
    codec_require(codec, wait->cause->type != PROBLEM_NONE);
}

/*
 * Finds the session or transaction of a command; both stay NULL for neither. Only a wait that is
 * cancelled may belong to a terminating session.
 * Returns: false when the command cannot wait there, so that the input is damaged.
 */
static bool find_owner(const struct core *core, const struct command *command, bool cancelled, struct session **session,
                       struct txn **txn)
{
    REQUIRE(*session == NULL && *txn == NULL);
    const struct command_owner *owner = &command->owner;

    if (owners__wait_ops(command) == NULL)
        return false;
    if (owner->transaction.len > 0 && !command_is(command->type, COMMAND_DDL)) {
        *txn = owners_txn(core->owners, owner->transaction);
        return *txn != NULL && txn__state(*txn) == TXN_OPEN && (*txn)->idle.at == TL_TS_MAX;
    }
    if (owner->session.len > 0)
        *session = cancelled ? owners_session(core->owners, owner->session)
                             : owners_live_session(core->owners, owner->session);
    return (*session != NULL) == (owner->session.len > 0) && command->type != COMMAND_TXN_LOCK &&
           (command->type != COMMAND_LOCK || *session != NULL);
}

/*
 * Makes the wait of a command. Returns: NULL if the command cannot wait.
 * Owns: the wait takes the command; the caller keeps it for NULL.
 */
static struct wait *make_wait(struct core *core, struct command *command, bool ended, bool cancelled)
{
    struct session *session = NULL;
    struct txn *txn = NULL;

    if (ended)
        return owners__wait_ops(command) == NULL ? NULL : wait__restore_ended(core, command);
    if (!find_owner(core, command, cancelled, &session, &txn))
        return NULL;
    struct lock_owner *owner = txn != NULL                     ? &txn->owner.locks
                               : command->type == COMMAND_LOCK ? &session->owner.locks
                                                               : NULL;
    return wait__new(core, command, owner, session, txn);
}

static struct wait *read_command(struct codec *codec, struct core *core, bool ended, bool cancelled)
{
    REQUIRE(codec_reads(codec));
    struct command *command;

    codec_command(codec, &command);
    if (command == NULL)
        return NULL;
    struct wait *wait = make_wait(core, command, ended, cancelled);
    if (wait == NULL)
        command_free(command);
    codec_require(codec, wait != NULL);
    return wait;
}

static struct deferred *find_deferred(const struct deferred_array *all, uint64_t number)
{
    size_t low = 0, high = all->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all->items[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->count && all->items[low]->number == number ? all->items[low] : NULL;
}

static struct wait *read_deferred(struct codec *codec, struct core *core, const struct deferred_array *all)
{
    REQUIRE(codec_reads(codec));
    uint64_t number = 0;

    codec_number(codec, &number);
    struct deferred *deferred = find_deferred(all, number);
    codec_require(codec, deferred != NULL && deferred->wait == NULL && !deferred->set_aside);
    if (codec->bad)
        return NULL;
    struct wait *wait = wait__new(core, NULL, NULL, NULL, NULL);
    wait->deferred = deferred;
    deferred->wait = wait;
    return wait;
}

/* Whether CANCEL finds a wait by the number of its command. */
static bool is_named(const struct core *core, const struct wait *wait)
{
    return wait->command != NULL && wait__by_request(core, wait->command->request) == wait;
}

/* Whether a wait is cancelled because of its session exactly if that, or its transaction's, is terminating. */
static bool session_end_is_valid(const struct wait *wait)
{
    const struct session *session = wait->txn != NULL ? wait->txn->owner.session : wait->session;
    bool ends = session != NULL && session->terminating;

    return ends == (wait->cancelled == WAIT_SESSION_ENDED) && (!ends || session->cleanup_pending);
}

/* Whether the place of a wait may be kept. A write with a name has run nothing. */
static bool may_be_kept(const struct codec *codec, const struct wait *wait)
{
    const struct command *command = wait->command;
    if (command->type == COMMAND_LOCK)
        return wait->session != NULL;
    if (command->type != COMMAND_WRITE || codec->version < 21 || command->write.request.id.len == 0)
        return false;
    if (codec->version < 23)
        return wait->write_owner != NULL && wait->pending_items == NULL && wait->cancelled != WAIT_PLACE_KEPT_GONE;
    return (wait->write_owner != NULL || wait__is_in_pieces(wait)) && !wait__has_begun(wait);
}

static void codec_cancelled(struct codec *codec, struct wait *wait)
{
    unsigned count = codec->version < 9    ? WAIT_SESSION_ENDED
                     : codec->version < 19 ? WAIT_PLACE_KEPT
                     : codec->version < 21 ? WAIT_PLACE_KEPT_GONE
                                           : WAIT_CANCEL_COUNT;

    wait->cancelled = (enum wait_cancel)codec_enum(codec, wait->cancelled, count);
    codec_number(codec, &wait->cancel_number);
    codec_require(codec, wait->cancelled != WAIT_NOT_CANCELLED && wait->cancel_number > 0);
    codec_require(codec, !wait__is_to_be_kept(wait) || (may_be_kept(codec, wait) && wait->until != 0));
}

static void codec_kept(struct codec *codec, struct core *core, struct wait *wait)
{
    codec_number(codec, &wait->granted_ts);
    codec_require(codec, may_be_kept(codec, wait));
    if (codec_reads(codec) && !codec->bad) {
        wait->kept = true;
        core->owners->kept_count++;
    }
}

/* Registers the place of a write that was read, the only one by its name. */
static void restore_place(struct codec *codec, struct core *core, struct wait *wait)
{
    if (!wait__has_place(wait) || wait->command->type != COMMAND_WRITE)
        return;
    codec_require(codec, wait__kept_write(core, &wait->command->write.request) == NULL);
    if (!codec->bad)
        wait__note_place(core, wait);
}

/* A wait without its lock request. When reading, *wait becomes the new one; NULL: the codec is bad. */
static void codec_wait_fields(struct codec *codec, struct core *core, struct wait **wait,
                              const struct deferred_array *deferred)
{
    bool reads = codec_reads(codec);
    bool is_deferred = !reads && (*wait)->command == NULL, named = !reads && is_named(core, *wait);
    bool ready = !reads && (*wait)->ready, ended = !reads && (*wait)->ended;
    bool cancelled = !reads && (*wait)->cancelled != WAIT_NOT_CANCELLED;
    bool kept = !reads && (*wait)->kept;
    bool *const flags[] = {&is_deferred, &named, &ready, &ended, &cancelled, &kept};

    codec_flags(codec, flags, codec->version < 6 ? 2 : codec->version < 8 ? 4 : codec->version < 17 ? 5 : 6);
    codec_require(codec, !is_deferred || !named);
    codec_require(codec, !cancelled || (!is_deferred && !ended));
    codec_require(codec, !ended || (ready && !is_deferred && !named));
    codec_require(codec, !kept || (!is_deferred && !named && !ready));
    if (reads)
        *wait = codec->bad    ? NULL
                : is_deferred ? read_deferred(codec, core, deferred)
                              : read_command(codec, core, ended, cancelled);
    else if (is_deferred)
        codec_number(codec, &(*wait)->deferred->number);
    else
        codec_command(codec, &(*wait)->command);
    if (*wait == NULL)
        return;
    if (reads && !ended)
        wait__restore(core, *wait, named);
    codec_numbers(codec, core, *wait, ready);
    if (!is_deferred && (*wait)->command->type == COMMAND_WRITE)
        codec_results(codec, *wait);
    if (ready)
        codec_ready(codec, *wait);
    if (cancelled)
        codec_cancelled(codec, *wait);
    codec_require(codec, !wait__is_to_be_kept(*wait) || !kept);
    codec_require(codec, !wait__is_to_be_kept(*wait) || !ready ||
                             (codec->version >= 23 && (*wait)->command->type == COMMAND_WRITE));
    if (kept)
        codec_kept(codec, core, *wait);
    if (reads && !codec->bad)
        restore_place(codec, core, *wait);
    codec_require(codec, codec->bad || session_end_is_valid(*wait));
    codec_require(codec, codec->bad || never_waited_is_valid(*wait));
    codec_require(codec, codec->bad || !named || (*wait)->command->request != 0);
}

void codec_wait(struct sections *sections, struct core *core, struct wait **wait, const struct deferred_array *deferred)
{
    struct codec codec = section_begin(sections, SECTION_WAIT);
    codec_wait_fields(&codec, core, wait, deferred);
    section_end(sections, &codec);
}

/* --- Waits in pieces ---------------------------------------------------------------------------------------------- */

static void write_in_piece(struct codec *codec, struct core *core, struct wait *wait)
{
    REQUIRE(!codec_reads(codec) && MAGIC_VALID(wait, WAIT_MAGIC));
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct codec part = codec_to(&bytes, codec->version);
    struct slice fields, specs = SLICE_NONE;

    codec_wait_fields(&part, core, &wait, NULL);
    size_t len = bytes.len;
    if (wait->request != NULL && lock_request_state(wait->request) == LOCK_STATE_WAITING) {
        lock_codec_write_specs(&part, wait->request);
        specs = buf_from(&bytes, len);
    }
    fields = slice_make(bytes.data, len);
    codec_bytes(codec, &fields);
    codec_slice(codec, &specs);
    buf_deinit(&bytes);
}

void codec_wait_in_piece(struct codec *codec, struct core *core, struct wait *wait, struct piece_reader *reader)
{
    REQUIRE(codec_reads(codec) == (wait == NULL));
    struct slice fields = SLICE_NONE, specs = SLICE_NONE;

    if (!codec_reads(codec)) {
        write_in_piece(codec, core, wait);
        return;
    }
    codec_bytes(codec, &fields);
    codec_slice(codec, &specs);
    struct codec part = codec_from(fields, reader->arena);
    part.version = codec->version;
    part.bad = codec->bad;
    codec_wait_fields(&part, core, &wait, reader->deferred);
    codec_require(codec, codec_done(&part));
    if (codec->bad || specs.data == NULL)
        return;
    reader->specs =
        arena_grow(reader->arena, reader->specs, reader->spec_count, &reader->spec_capacity, sizeof *reader->specs);
    reader->specs[reader->spec_count++] = arena_copy(reader->arena, specs);
}
