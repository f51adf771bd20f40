/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting requests as bytes, for a checkpoint. Whose one is, and what becomes of it, its command says; what it has done already of a
 * bulk are its results.
 */
#include "base/check.h"
#include "core/owners/deferred.h"
#include "core/owners/owners.h"
#include "core/owners/owners_codec.h"
#include "core/owners/session.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/codec.h"
#include "core/step/command.h"
#include "core/step/section.h"
#include "core/step/unit.h"

/* --- Results ------------------------------------------------------------------------------------------------------ */

/* Problems by their symbols, which stay when rows come and go. */
static const char *const symbols[PROBLEM_COUNT] = {
#define X(symbol, status, name) [PROBLEM_##symbol] = #symbol,
#include "base/errors.def"
#undef X
};

static enum problem_type symbol_type(struct slice symbol)
{
    for (int i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++)
        if (symbols[i] != NULL && slice_is(symbol, symbols[i]))
            return (enum problem_type)i;
    return PROBLEM_NONE;
}

enum { CAUSES_MAX = 16 };

static void code_problem(struct codec *codec, struct problem *problem, int causes)
{
    struct slice symbol = problem->type == PROBLEM_NONE ? SLICE_NONE : slice_from(symbols[problem->type]);
    int64_t status = problem->status;
    bool caused = problem->caused_by != NULL;

    codec_slice(codec, &symbol);
    if (codec_reads(codec)) {
        problem->type = symbol_type(symbol);
        codec_require(codec, (problem->type == PROBLEM_NONE) == (symbol.data == NULL));
    }
    if (symbol.data == NULL)
        return;
    codec_signed(codec, &status);
    codec_require(codec, status >= 0 && status < 1000);
    problem->status = (int)status;
    codec_slice(codec, &problem->name);
    codec_slice(codec, &problem->reason);
    codec_slice(codec, &problem->details);
    codec_bool(codec, &caused);
    codec_require(codec, !caused || causes < CAUSES_MAX);
    if (!caused || codec->bad)
        return;
    if (codec_reads(codec))
        problem->caused_by = arena_zalloc(codec->arena, sizeof *problem->caused_by);
    code_problem(codec, problem->caused_by, causes + 1);
}

static void code_result(struct codec *codec, struct write_result *result)
{
    uint64_t shards = result->shard_count;

    result->outcome = (enum write_outcome)codec_enum(codec, result->outcome, WRITE_OUTCOME_COUNT);
    result->conflict = (enum conflict_kind)codec_enum(codec, result->conflict, CONFLICT_KIND_COUNT);
    codec_bool(codec, &result->script_long);
    if (codec->version >= 5)
        codec_bool(codec, &result->postponed);
    codec_slice(codec, &result->index);
    codec_slice(codec, &result->type);
    codec_slice(codec, &result->index_uuid);
    codec_number(codec, &shards);
    codec_require(codec, shards <= UINT32_MAX);
    result->shard_count = (uint32_t)shards;
    codec_signed(codec, &result->version);
    codec_signed(codec, &result->seq_no);
    codec_slice(codec, &result->source);
    codec_slice(codec, &result->routing);
    code_problem(codec, &result->problem, 0);
}

/* What is read from here on stays with the command. */
static void keep_texts(struct codec *codec, struct command *command)
{
    codec->in = arena_copy(&command->arena, codec->in);
    codec->arena = &command->arena;
}

/* Which items are left to be run; and all results, in the command's own memory. */
static void code_results(struct codec *codec, struct wait *wait)
{
    struct write_command *write = &wait->command->write;
    struct arena *arena = &wait->command->arena;
    bool partly = wait->pending_items != NULL;

    codec_bool(codec, &partly);
    codec_require(codec, !partly || ((wait->write_owner != NULL || wait->ended) && !write->atomic && write->item_count > 1));
    if (codec_reads(codec)) {
        write->results = arena_zalloc(arena, (write->item_count + 1) * sizeof *write->results);
        wait->pending_items = partly ? arena_zalloc(arena, write->item_count + 1) : NULL;
        keep_texts(codec, wait->command);
    }
    for (size_t i = 0; i < write->item_count && !codec->bad; i++) {
        if (partly)
            codec_bool(codec, &wait->pending_items[i]);
        code_result(codec, &write->results[i]);
    }
}

/* --- Waits -------------------------------------------------------------------------------------------------------- */

static void code_numbers(struct codec *codec, struct core *core, struct wait *wait, bool ready)
{
    codec_number(codec, &wait->since);
    codec_number(codec, &wait->since_ts);
    codec_number(codec, &wait->until);
    codec_size(codec, &wait->queue_position);
    codec_number(codec, &wait->names_epoch);
    codec_deadline(codec, &core->owners->wait_ends, &wait->deadline);
    codec_require(codec, wait->deadline.at == (ready || wait->until > TL_TS_MAX ? TL_TS_MAX : wait->until));
    codec_require(codec, wait->until > 0 || (ready && wait->deferred != NULL));
}

/* Its place among those that are ready is given when all are read. */
static void code_ready(struct codec *codec, struct wait *wait)
{
    codec_number(codec, &wait->ready_number);
    codec_number(codec, &wait->granted_ts);
    codec_require(codec, wait->ready_number > 0);
    if (!wait->ended)
        return;
    if (codec_reads(codec))
        keep_texts(codec, wait->command);
    code_problem(codec, wait__cause(wait), 0);
    codec_require(codec, wait->cause->type != PROBLEM_NONE);
}

/* Finds whose a command is, and whether it can wait there. */
static bool find_parties(const struct core *core, const struct command *command, struct session **session,
                         struct txn **txn)
{
    const struct command_owner *terms = &command->owner;

    if (owners__wait_ops(command) == NULL)
        return false;
    if (terms->transaction.len > 0 && !command_is(command->type, COMMAND_DDL)) {
        *txn = owners_txn(core->owners, terms->transaction);
        return *txn != NULL && (*txn)->wait == NULL && (*txn)->idle.at == TL_TS_MAX;
    }
    if (terms->session.len > 0)
        *session = owners_live_session(core->owners, terms->session);
    return (*session != NULL) == (terms->session.len > 0) && command->type != COMMAND_TXN_LOCK &&
           (command->type != COMMAND_LOCK || *session != NULL);
}

/* Makes the wait of a command. Returns: NULL when none can be of it; the command is the caller's then. */
static struct wait *make(struct core *core, struct command *command, bool ended)
{
    struct session *session = NULL;
    struct txn *txn = NULL;

    if (ended)
        return owners__wait_ops(command) == NULL ? NULL : wait__restore_ended(core, command);
    if (!find_parties(core, command, &session, &txn))
        return NULL;
    struct lock_owner *owner = txn != NULL                     ? &txn->owner.locks
                               : command->type == COMMAND_LOCK ? &session->owner.locks
                                                               : NULL;
    return wait__new(core, command, owner, session, txn);
}

static struct wait *read_command(struct codec *codec, struct core *core, bool ended)
{
    struct command *command;

    codec_command(codec, &command);
    if (command == NULL)
        return NULL;
    struct wait *wait = make(core, command, ended);
    if (wait == NULL)
        command_free(command);
    codec_require(codec, wait != NULL);
    return wait;
}

static struct deferred *find_kept(const struct deferred_array *all, uint64_t number)
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

static struct wait *read_kept(struct codec *codec, struct core *core, const struct deferred_array *all)
{
    uint64_t number = 0;

    codec_number(codec, &number);
    struct deferred *kept = find_kept(all, number);
    codec_require(codec, kept != NULL && kept->wait == NULL);
    if (codec->bad)
        return NULL;
    struct wait *wait = wait__new(core, NULL, NULL, NULL, NULL);
    wait->deferred = kept;
    kept->wait = wait;
    return wait;
}

/* Whether CANCEL finds it by the number of its command. */
static bool is_named(const struct core *core, const struct wait *wait)
{
    return wait->command != NULL && wait__by_request(core, wait->command->request) == wait;
}

void codec_wait(struct sections *sections, struct core *core, struct wait **wait, const struct deferred_array *kept)
{
    struct codec codec = section_begin(sections, SECTION_WAIT);
    bool reads = codec_reads(&codec);
    bool is_kept = !reads && (*wait)->command == NULL, named = !reads && is_named(core, *wait);
    bool ready = !reads && (*wait)->ready, ended = !reads && (*wait)->ended;
    bool *const flags[] = {&is_kept, &named, &ready, &ended};

    codec_flags(&codec, flags, codec.version < 6 ? 2 : 4);
    codec_require(&codec, !is_kept || !named);
    codec_require(&codec, !ended || (ready && !is_kept && !named));
    if (reads)
        *wait = codec.bad ? NULL : is_kept ? read_kept(&codec, core, kept) : read_command(&codec, core, ended);
    else if (is_kept)
        codec_number(&codec, &(*wait)->deferred->number);
    else
        codec_command(&codec, &(*wait)->command);
    if (*wait != NULL) {
        if (reads && !ended)
            wait__restore(core, *wait, named);
        code_numbers(&codec, core, *wait, ready);
        if (!is_kept && (*wait)->command->type == COMMAND_WRITE)
            code_results(&codec, *wait);
        if (ready)
            code_ready(&codec, *wait);
        codec_require(&codec, codec.bad || !named || (*wait)->command->request != 0);
    }
    section_end(sections, &codec);
}
