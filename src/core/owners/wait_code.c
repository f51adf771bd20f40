/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting requests as bytes, for a checkpoint. Whose one is, and what becomes of it, its command says; what it has done already of a
 * bulk are its results.
 */
#include "base/check.h"
#include "core/owners/kept.h"
#include "core/owners/owners.h"
#include "core/owners/owners_code.h"
#include "core/owners/session.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/coder.h"
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

static void code_problem(struct coder *coder, struct problem *problem, int causes)
{
    struct slice symbol = problem->type == PROBLEM_NONE ? SLICE_NONE : slice_from(symbols[problem->type]);
    int64_t status = problem->status;
    bool caused = problem->caused_by != NULL;

    code_slice(coder, &symbol);
    if (coder_reads(coder)) {
        problem->type = symbol_type(symbol);
        coder_demand(coder, (problem->type == PROBLEM_NONE) == (symbol.data == NULL));
    }
    if (symbol.data == NULL)
        return;
    code_signed(coder, &status);
    coder_demand(coder, status >= 0 && status < 1000);
    problem->status = (int)status;
    code_slice(coder, &problem->name);
    code_slice(coder, &problem->reason);
    code_slice(coder, &problem->details);
    code_bool(coder, &caused);
    coder_demand(coder, !caused || causes < CAUSES_MAX);
    if (!caused || coder->bad)
        return;
    if (coder_reads(coder))
        problem->caused_by = arena_zalloc(coder->arena, sizeof *problem->caused_by);
    code_problem(coder, problem->caused_by, causes + 1);
}

static void code_result(struct coder *coder, struct write_result *result)
{
    uint64_t shards = result->shard_count;

    result->outcome = (enum write_outcome)code_enum(coder, result->outcome, WRITE_OUTCOME_COUNT);
    result->conflict = (enum conflict_kind)code_enum(coder, result->conflict, CONFLICT_KIND_COUNT);
    code_bool(coder, &result->script_long);
    if (coder->version >= 5)
        code_bool(coder, &result->postponed);
    code_slice(coder, &result->index);
    code_slice(coder, &result->type);
    code_slice(coder, &result->index_uuid);
    code_number(coder, &shards);
    coder_demand(coder, shards <= UINT32_MAX);
    result->shard_count = (uint32_t)shards;
    code_signed(coder, &result->version);
    code_signed(coder, &result->seq_no);
    code_slice(coder, &result->source);
    code_slice(coder, &result->routing);
    code_problem(coder, &result->problem, 0);
}

/* What is read from here on stays with the command. */
static void keep_texts(struct coder *coder, struct command *command)
{
    coder->in = arena_copy(&command->arena, coder->in);
    coder->arena = &command->arena;
}

/* Which items are left to be run; and all results, in the command's own memory. */
static void code_results(struct coder *coder, struct wait *wait)
{
    struct write_command *write = &wait->command->write;
    struct arena *arena = &wait->command->arena;
    bool partly = wait->left != NULL;

    code_bool(coder, &partly);
    coder_demand(coder, !partly || ((wait->party != NULL || wait->ended) && !write->atomic && write->item_count > 1));
    if (coder_reads(coder)) {
        write->results = arena_zalloc(arena, (write->item_count + 1) * sizeof *write->results);
        wait->left = partly ? arena_zalloc(arena, write->item_count + 1) : NULL;
        keep_texts(coder, wait->command);
    }
    for (size_t i = 0; i < write->item_count && !coder->bad; i++) {
        if (partly)
            code_bool(coder, &wait->left[i]);
        code_result(coder, &write->results[i]);
    }
}

/* --- Waits -------------------------------------------------------------------------------------------------------- */

static void code_numbers(struct coder *coder, struct core *core, struct wait *wait, bool ready)
{
    code_number(coder, &wait->since);
    code_number(coder, &wait->since_ts);
    code_number(coder, &wait->until);
    code_size(coder, &wait->place);
    code_number(coder, &wait->names_epoch);
    code_deadline(coder, &core->owners->wait_ends, &wait->deadline);
    coder_demand(coder, wait->deadline.at == (ready || wait->until > TL_TS_MAX ? TL_TS_MAX : wait->until));
    coder_demand(coder, wait->until > 0 || (ready && wait->kept != NULL));
}

/* Its place among those that are ready is given when all are read. */
static void code_ready(struct coder *coder, struct wait *wait)
{
    code_number(coder, &wait->ready_number);
    code_number(coder, &wait->granted);
    coder_demand(coder, wait->ready_number > 0);
    if (!wait->ended)
        return;
    if (coder_reads(coder))
        keep_texts(coder, wait->command);
    code_problem(coder, wait__cause(wait), 0);
    coder_demand(coder, wait->cause->type != PROBLEM_NONE);
}

/* Finds whose a command is, and whether it can wait there. */
static bool find_parties(const struct core *core, const struct command *command, struct session **session,
                         struct txn **txn)
{
    const struct owner_terms *terms = &command->terms;

    if (owners__turns(command) == NULL)
        return false;
    if (terms->transaction.len > 0 && !command_is(command->type, COMMAND_CHANGES_INDEX)) {
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
        return owners__turns(command) == NULL ? NULL : wait__restore_ended(core, command);
    if (!find_parties(core, command, &session, &txn))
        return NULL;
    struct lock_owner *owner = txn != NULL                     ? &txn->party.owner
                               : command->type == COMMAND_LOCK ? &session->party.owner
                                                               : NULL;
    return wait__new(core, command, owner, session, txn);
}

static struct wait *read_command(struct coder *coder, struct core *core, bool ended)
{
    struct command *command;

    code_command(coder, &command);
    if (command == NULL)
        return NULL;
    struct wait *wait = make(core, command, ended);
    if (wait == NULL)
        command_free(command);
    coder_demand(coder, wait != NULL);
    return wait;
}

static struct kept *find_kept(const struct kept_all *all, uint64_t number)
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

static struct wait *read_kept(struct coder *coder, struct core *core, const struct kept_all *all)
{
    uint64_t number = 0;

    code_number(coder, &number);
    struct kept *kept = find_kept(all, number);
    coder_demand(coder, kept != NULL && kept->wait == NULL);
    if (coder->bad)
        return NULL;
    struct wait *wait = wait__new(core, NULL, NULL, NULL, NULL);
    wait->kept = kept;
    kept->wait = wait;
    return wait;
}

/* Whether CANCEL finds it by the number of its command. */
static bool is_named(const struct core *core, const struct wait *wait)
{
    return wait->command != NULL && wait__requested(core, wait->command->request) == wait;
}

void code_wait(struct sections *sections, struct core *core, struct wait **wait, const struct kept_all *kept)
{
    struct coder coder = section_begin(sections, SECTION_WAIT);
    bool reads = coder_reads(&coder);
    bool is_kept = !reads && (*wait)->command == NULL, named = !reads && is_named(core, *wait);
    bool ready = !reads && (*wait)->ready, ended = !reads && (*wait)->ended;
    bool *const flags[] = {&is_kept, &named, &ready, &ended};

    code_flags(&coder, flags, coder.version < 6 ? 2 : 4);
    coder_demand(&coder, !is_kept || !named);
    coder_demand(&coder, !ended || (ready && !is_kept && !named));
    if (reads)
        *wait = coder.bad ? NULL : is_kept ? read_kept(&coder, core, kept) : read_command(&coder, core, ended);
    else if (is_kept)
        code_number(&coder, &(*wait)->kept->number);
    else
        code_command(&coder, &(*wait)->command);
    if (*wait != NULL) {
        if (reads && !ended)
            wait__restore(core, *wait, named);
        code_numbers(&coder, core, *wait, ready);
        if (!is_kept && (*wait)->command->type == COMMAND_WRITE)
            code_results(&coder, *wait);
        if (ready)
            code_ready(&coder, *wait);
        coder_demand(&coder, coder.bad || !named || (*wait)->command->request != 0);
    }
    section_end(sections, &coder);
}
