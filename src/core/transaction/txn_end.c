/* SPDX-License-Identifier: Apache-2.0 */
/* How transactions end: rollback, commit, those that are abandoned. See txn_end.h. */
#include "core/transaction/txn_end.h"

#include <stdarg.h>

#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/provisional.h"
#include "core/documents/write.h"
#include "core/feed/feed.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/command_owner.h"
#include "core/session/cost.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/transaction/txn_renames.h"
#include "core/tree/tree_paths.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"
#include "mapping/mapping.h"

/* --- ROLLBACK ----------------------------------------------------------------------------------------------------- */

/* Returns: the outcome of a transaction that ends in the open unit, without the result. */
static struct txn_outcome outcome_of(struct core *core, const struct txn *txn)
{
    REQUIRE(core->open && MAGIC_VALID(txn, TXN_MAGIC));
    return (struct txn_outcome){
        .mode = TXN_UPDATE,
        .created = txn->created,
        .age = txn->owner.locks.age,
        .ended = core->ts,
        .session = txn__session_text(txn, &core->arena),
    };
}

void txn__end_waiting(struct core *core, struct txn *txn, struct slice cause)
{
    struct wait *wait = txn->wait;
    if (wait == NULL)
        return;
    INSIST(MAGIC_VALID(wait, WAIT_MAGIC) && wait->txn == txn);
    bool in_pieces = wait__is_in_pieces(wait); /* its client knows of no transaction */
    txn__end_wait(txn);
    wait->txn = NULL;
    wait__end(core, wait, PROBLEM_TRANSACTION_ABORTED, "%s [%.*s] was rolled back: %.*s",
              in_pieces ? "atomic request" : "transaction", SLICE_ARG(txn->id), SLICE_ARG(cause));
}

static void roll_back(struct core *core, struct txn *txn, bool by_request, struct slice cause)
{
    struct txn_outcome outcome = outcome_of(core, txn);
    outcome.by_request = by_request;
    outcome.cause = cause;
    txn__end_waiting(core, txn, cause);
    txn__check_may_enter(txn, TXN_ENDED);
    if (!txn->of_write || core->command_version < COMMAND_SINCE_NO_OUTCOME)
        txn__put_outcome(core, txn->id, &outcome);
    core__work(core, txn->overlay == NULL ? 0 : overlay_count(txn->overlay) * WORK_LOCK);
    if (by_request)
        cost_charge_work(core, txn__rollback_work(txn));
    txn__free(core, txn);
}

void txn__abort(struct core *core, struct txn *txn, const char *format, ...)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    va_list arguments;
    va_start(arguments, format);
    struct slice cause = arena_vprintf(&core->arena, format, arguments);
    va_end(arguments);
    roll_back(core, txn, false, cause);
}

int core__do_txn_rollback(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TXN_ROLLBACK);
    struct slice id = command->txn.id;
    struct txn *txn = map_get(&core->owners->txns, id);
    struct txn_outcome outcome;
    if (txn != NULL && txn->wait != NULL && wait__is_in_pieces(txn->wait))
        txn = NULL; /* no client has its id */
    if (txn == NULL && command->txn.force)
        txn = txn__by_number(core, id);
    if (txn != NULL && !txn__belongs_to(txn, command->owner.session, &command->arena, &command->problem))
        return 0;
    if (txn != NULL) {
        roll_back(core, txn, true,
                  command->txn.force ? SLICE_LIT("it was ended by force") : SLICE_LIT("its owner asked for it"));
        return 0;
    }
    int r = txn__get_outcome(core, id, &command->arena, &outcome);
    if (r < 0)
        return tl_trace(r);
    if (r != 0 || !outcome.by_request)
        txn__explain_missing(core, id, &command->arena, &command->problem);
    return 0;
}

/* --- COMMIT ------------------------------------------------------------------------------------------------------- */

/*
 * Fills in the name of a document from its key, without a path.
 * Returns: false: its index or type is deleted.
 */
static bool name_document(const struct core *core, struct slice key, struct resource_name *ret_name)
{
    struct resource_name name = {0};
    uint32_t number;
    uint16_t type_number;
    if (!doc_key_parse(key, &number, &type_number, &name.id))
        return false;
    const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
    const struct mapping_type *type = index == NULL ? NULL : mapping_type_by_number(index->mapping, type_number);
    if (type == NULL)
        return false;
    name.index = index->name;
    name.type = type->name;
    *ret_name = name;
    return true;
}

/*
 * As name_document(), with the path that the transaction sees.
 * Returns: 0; 1 its index or type is deleted; fatal codes.
 */
static int name_written(struct core *core, const struct overlay *overlay, struct slice key,
                        struct resource_name *ret_name)
{
    struct resource_name name;
    if (!name_document(core, key, &name))
        return 1;
    int r = write__path_of(core, overlay, name.index, name.type, name.id, &name.path);
    if (r < 0)
        return tl_trace(r);
    *ret_name = name;
    return 0;
}

/* Checks that a command's fencing token covers each document that its transaction has written. */
struct token_check {
    struct core *core;
    const struct owner *owner;
    struct overlay *overlay;
    struct command *command;
    bool stale;
    int r;
};

static void check_written(void *context, struct slice key, struct slice value)
{
    struct token_check *check = context;
    struct resource_name name;
    (void)value;
    core__work(check->core, WORK_LOCK);
    if (check->r < 0 || check->stale)
        return;
    check->r = name_written(check->core, check->overlay, key, &name);
    if (check->r == 0)
        check->stale =
            !command_owner__check_token(check->core, check->command, &name, check->owner, &check->command->problem);
}

/*
 * Checks that the token, if any, is of a held lock that covers everything the transaction has
 * written or renamed.
 * Returns: 0; 1 with the problem in the command; fatal codes.
 */
static int check_token(struct core *core, const struct txn *txn, struct command *command)
{
    struct token_check check = {.core = core, .owner = &txn->owner, .overlay = txn->overlay, .command = command};
    if (command->owner.fencing_token == 0 || txn->overlay == NULL)
        return 0;
    overlay_each(txn->overlay, SPACE_DOCUMENTS, check_written, &check);
    if (check.r < 0)
        return tl_trace(check.r);
    return check.stale ? 1 : txn_renames__check_token(core, command, txn);
}

/* Documents that the transaction may have moved and on which others hold or request locks. */
struct locked_documents {
    struct resource_name *names; /* in the core's arena */
    size_t count;
};

/*
 * Whether a document ends in the lock table with a lock of the transaction. Commands before version 23 leave it where
 * it was if a granted request still refers to it, whose lock is released.
 */
static bool resource_ends_with(const struct core *core, const struct lock_hold *hold)
{
    return lock_hold_is_sole(hold) &&
           (core->command_version < COMMAND_SINCE_MOVES_BOUNDED || hold->resource->refs == 1);
}

static struct locked_documents find_locked(struct core *core, const struct txn *txn)
{
    struct locked_documents documents = {NULL, 0};
    size_t capacity = 0;
    list_for_each(link, &txn->owner.locks.holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        core__work(core, WORK_LOCK);
        lock_holds_prefetch(&txn->owner.locks, link);
        if (hold->mode != LOCK_X || hold->resource->kind != RESOURCE_DOCUMENT || resource_ends_with(core, hold))
            continue;
        documents.names =
            arena_grow(&core->arena, documents.names, documents.count, &capacity, sizeof *documents.names);
        documents.names[documents.count++] = resource_name(hold->resource, &core->arena);
    }
    size_t renamed_count;
    const struct resource_name *renamed = txn_renames__locked_documents(core, txn, &renamed_count);
    for (size_t i = 0; i < renamed_count; i++) {
        documents.names =
            arena_grow(&core->arena, documents.names, documents.count, &capacity, sizeof *documents.names);
        documents.names[documents.count++] = renamed[i];
    }
    return documents;
}

/*
 * Fills in the paths that the documents have in the transaction; drops documents of deleted
 * indices.
 */
static int find_paths(struct core *core, const struct txn *txn, struct locked_documents *documents)
{
    struct tree_paths paths;
    size_t found = 0;
    int r = 0;
    tree_paths_init(&paths);
    for (size_t i = 0; i < documents->count && r == 0; i++) {
        struct resource_name name = documents->names[i];
        const struct catalog_index *index = catalog_index(core->catalog, name.index);
        if (index == NULL || mapping_type(index->mapping, name.type) == NULL)
            continue;
        r = write__path_near(core, txn->overlay, &paths, name.index, name.type, name.id, &name.path);
        documents->names[found++] = name;
    }
    tree_paths_deinit(&paths);
    documents->count = found;
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Gives the lock table the new paths of documents that the transaction has moved, as far as it
 * knows them.
 */
static void move_documents(struct core *core, const struct locked_documents *documents)
{
    struct lock_table *locks = &core->owners->locks;
    REQUIRE(locks->grants_suspended > 0);
    (void)lock_table_relocate_documents(locks, documents->names, documents->count);
}

/*
 * Finds sessions that have ended since the transaction wrote ephemeral documents for them, and
 * counts those of the others.
 */
struct ephemeral_check {
    struct core *core;
    struct slice missing; /* id of a session that has ended, in core->arena */
    struct map more;      /* session id to number of new documents: size_t in core->arena */
};

static void count_ephemeral(void *context, struct slice key, struct slice value)
{
    struct ephemeral_check *check = context;
    struct slice session, document;
    struct store_value before;
    core__work(check->core, WORK_LOCK);
    if (value.data == NULL || !ephemeral__parse(key, &session, &document))
        return;
    core__work(check->core, WORK_READ);
    if (owners_live_session(check->core->owners, session) == NULL)
        check->missing = arena_copy(&check->core->arena, session);
    if (store_get(check->core->store, SPACE_SYSTEM, TL_TS_MAX, key, &before) == 0) {
        store_value_release(&before);
        return;
    }
    size_t *more = map_get(&check->more, session);
    if (more == NULL) {
        more = arena_zalloc(&check->core->arena, sizeof *more);
        map_put(&check->more, session, more);
    }
    (*more)++;
}

/* Returns: why the ephemeral documents cannot be committed, in core->arena; data NULL: they can. */
static struct slice check_ephemeral(struct core *core, const struct txn *txn, enum problem_type *ret_type)
{
    REQUIRE(core->open);
    struct ephemeral_check check = {.core = core, .more = MAP_INIT};
    struct problem problem = {0};
    size_t position = 0;
    struct slice id;
    void *more;
    *ret_type = PROBLEM_TRANSACTION_ABORTED;
    if (txn->overlay != NULL)
        overlay_each(txn->overlay, SPACE_SYSTEM, count_ephemeral, &check);
    while (map_next(&check.more, &position, &id, &more))
        if (session__check_ephemeral_count(core, id, *(const size_t *)more, &core->arena, &problem) != 0)
            break;
    map_deinit(&check.more);
    if (check.missing.data != NULL)
        return arena_printf(&core->arena,
                            core->command_version >= COMMAND_SINCE_PLAIN_TEXTS
                                ? "session [%.*s], the owner of an ephemeral document of the transaction, has ended"
                                : "session [%.*s], with which a document of it was to live, has ended",
                            SLICE_ARG(check.missing));
    if (problem.type != PROBLEM_NONE)
        *ret_type = problem.type;
    return problem.reason;
}

/* Puts what a transaction has written into the open unit, and frees the transaction. */
static int apply_and_free(struct core *core, struct txn *txn, struct txn_outcome *outcome, struct overlay **retired)
{
    struct locked_documents documents = {NULL, 0};
    struct lock_table *locks = &core->owners->locks;
    REQUIRE(*retired == NULL);
    txn__check_may_enter(txn, TXN_ENDED);
    core->indivisible = true; /* all or nothing: transaction_changes_max bounds it */
    if (txn->overlay != NULL) {
        core__work(core, overlay_bytes(txn->overlay) / WORK_BYTES);
        int r = write__commit_overlay(core, txn->overlay, &outcome->changes);
        documents = find_locked(core, txn);
        if (r == 0)
            r = find_paths(core, txn, &documents);
        if (r < 0)
            return tl_trace(r);
    }
    cost_charge_work(core, WORK_RELEASE * (uint64_t)txn->owner.locks.hold_count +
                               WORK_COMMIT * (txn->overlay == NULL ? 0 : (uint64_t)overlay_count(txn->overlay)));
    provisional__commit(core, txn->id, txn->undo_record_count);
    *retired = tl_steal(txn->overlay);
    lock_table_suspend_grants(locks); /* moved documents and released locks take effect together */
    txn__free(core, txn);
    move_documents(core, &documents);
    lock_table_resume_grants(locks);
    return 0;
}

static int commit_txn(struct core *core, struct command *command, struct txn *txn)
{
    struct txn_outcome outcome = outcome_of(core, txn);
    struct slice id = arena_copy(&core->arena, txn->id);
    if (txn->overlay != NULL)
        feed__set_transaction(core, id);
    int r = apply_and_free(core, txn, &outcome, &command->txn.retired);
    if (r < 0)
        return tl_trace(r);
    outcome.committed = true;
    outcome.commit_ts = core->ts;
    command->txn.commit_ts = outcome.commit_ts;
    command->txn.changes = outcome.changes;
    txn__put_outcome(core, id, &outcome);
    return 0;
}

/* Answers a repeated COMMIT from the stored outcome. */
static int repeat_commit(struct core *core, struct command *command)
{
    struct txn_outcome outcome;
    int r = txn__get_outcome(core, command->txn.id, &command->arena, &outcome);
    if (r < 0)
        return tl_trace(r);
    if (r != 0 || !outcome.committed) {
        txn__explain_missing(core, command->txn.id, &command->arena, &command->problem);
        return 0;
    }
    command->txn.commit_ts = outcome.commit_ts;
    command->txn.changes = outcome.changes;
    return 0;
}

int core__do_txn_commit(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TXN_COMMIT);
    if (map_get(&core->owners->txns, command->txn.id) == NULL)
        return repeat_commit(core, command);
    struct txn *txn = txn__find(core, command->txn.id, command->owner.session, &command->arena, &command->problem);
    if (txn == NULL)
        return 0;
    int r = check_token(core, txn, command);
    if (r < 0)
        return tl_trace(r);
    if (r > 0) {
        txn__touch(core, txn);
        return 0;
    }
    enum problem_type type;
    struct slice forbidden = check_ephemeral(core, txn, &type);
    if (forbidden.data != NULL) {
        problem_set(&command->problem, &command->arena, type, "transaction [%.*s] was rolled back: %.*s",
                    SLICE_ARG(txn->id), SLICE_ARG(forbidden));
        txn__abort(core, txn, "%.*s", SLICE_ARG(forbidden));
        return 0;
    }
    return commit_txn(core, command, txn);
}

int txn__commit_write(struct core *core, struct txn *txn, struct command *command)
{
    REQUIRE(core->open && command->type == COMMAND_WRITE);
    struct txn_outcome unused = {0};
    enum problem_type type;
    int r = check_token(core, txn, command);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 1;
    struct slice forbidden = check_ephemeral(core, txn, &type);
    if (forbidden.data != NULL) {
        problem_set(&command->problem, &command->arena, type, "the request was rolled back: %.*s",
                    SLICE_ARG(forbidden));
        return 1;
    }
    r = apply_and_free(core, txn, &unused, &command->write.retired);
    return r < 0 ? tl_trace(r) : 0;
}

static size_t bytes_of_items(const struct write_command *write)
{
    size_t bytes = 0;
    for (size_t i = 0; i < write->item_count; i++)
        bytes += write->items[i].source.len;
    return bytes;
}

/* The writes of a transaction stay in memory until its commit. */
size_t core_bytes_to_write(const struct core *core, const struct command *command)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && core->effects == NULL); /* between steps */
    if (command->type == COMMAND_WRITE)
        return command->owner.transaction.len > 0 ? 0 : bytes_of_items(&command->write);
    if (command->type != COMMAND_TXN_COMMIT)
        return 0;
    const struct txn *txn = map_get(&core->owners->txns, command->txn.id);
    return txn == NULL || txn->overlay == NULL ? 0 : overlay_bytes(txn->overlay);
}

/* --- Abandoned ---------------------------------------------------------------------------------------------------- */

static void abandon_txn(struct core *core, struct txn *txn, enum txn_abandon why)
{
    txn__end_waiting(core, txn, txn__abandon_text(core, txn, why, &core->arena));
    txn__abandon(core, txn, why);
}

void txn__end_idle(struct core *core, struct txn *txn, size_t *left)
{
    REQUIRE(core->open && txn__state(txn) == TXN_OPEN);
    uint64_t cost = txn__rollback_cost(core, txn);
    if (!cost_fits(core, 0, cost)) {
        cost_charge(left, 1);
        cost_charge_work(core, WORK_UNIT + WORK_OWNER);
        txn__abandon(core, txn, TXN_IDLE);
        return;
    }
    cost_charge(left, cost);
    bool fits = core->command_version >= COMMAND_SINCE_ENDS_FIT; /* the next one sees all that it costs */
    cost_charge_work(core, fits ? WRITE_WORK_PER_COST * cost : txn__rollback_work(txn));
    roll_back(core, txn, false, txn__abandon_text(core, txn, TXN_IDLE, &core->arena));
}

void txn__end_victim(struct core *core, struct txn *txn, struct slice cause)
{
    REQUIRE(core->open && MAGIC_VALID(txn, TXN_MAGIC) && txn->wait == NULL);
    uint64_t work = txn__rollback_work(txn);
    if (core->owners->work_left < work) {
        abandon_txn(core, txn, TXN_VICTIM);
        return;
    }
    cost_charge_work(core, work);
    roll_back(core, txn, false, cause);
}

void txn__abandon_host(struct core *core, uint64_t host)
{
    REQUIRE(core->open);
    list_for_each(link, &core->owners->open_txns)
    {
        struct txn *txn = list_entry(link, struct txn, of_all);
        core__work(core, WORK_LOCK);
        if (txn->of_host && txn->host == host && !txn->owner.abandoned)
            abandon_txn(core, txn, TXN_HOST_ENDED);
    }
}

/* Whether it is of an atomic write in pieces that keeps its place: its only request, of which nothing is missing. */
static bool keeps_place(const struct core *core, const struct txn *txn)
{
    return core->command_version >= COMMAND_SINCE_PLACES_OF_PIECES_STAY && txn->of_write && txn->wait != NULL &&
           wait__has_place(txn->wait);
}

void txn__abandon_updates(struct core *core, bool whole)
{
    REQUIRE(core->open);
    list_for_each_safe(link, following, &core->owners->open_txns)
    {
        struct txn *txn = list_entry(link, struct txn, of_all);
        core__work(core, WORK_LOCK);
        if (txn->owner.abandoned || keeps_place(core, txn))
            continue;
        if (whole)
            roll_back(core, txn, false, txn__abandon_text(core, txn, TXN_HOST_CRASHED, &core->arena));
        else
            abandon_txn(core, txn, TXN_HOST_CRASHED);
    }
}

uint64_t txn__next_end_cost(struct core *core)
{
    REQUIRE(!core->open);
    if (core->owners->abandoned_count == 0)
        return 0;
    list_for_each(link, &core->owners->open_txns)
    {
        const struct txn *txn = list_entry(link, struct txn, of_all);
        core__work(core, WORK_LOCK);
        if (txn->owner.abandoned)
            return txn__rollback_cost(core, txn);
    }
    UNREACHABLE();
}

void txn__end_abandoned(struct core *core, size_t *left)
{
    REQUIRE(core->open);
    struct list *txns = &core->owners->open_txns;
    size_t all = *left;
    for (struct list *link = txns->next; link != txns && core->owners->abandoned_count > 0 && *left > 0;) {
        struct txn *txn = list_entry(link, struct txn, of_all);
        link = link->next;
        core__work(core, WORK_LOCK);
        if (!txn->owner.abandoned)
            continue;
        uint64_t cost = txn__rollback_cost(core, txn);
        if (!cost_fits(core, all - *left, cost))
            return;
        cost_charge(left, cost);
        roll_back(core, txn, false, txn__abandon_text(core, txn, txn->abandon_reason, &core->arena));
    }
    ENSURE(*left == 0 || core->owners->abandoned_count == 0);
}
