/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: begin, commit, rollback. README-locks.md, "Transactions".
 *
 *     BEGIN ─▶ open ─┬─ COMMIT ────────────────────────▶ committed ────┐ an hour
 *                    └─ ROLLBACK, deadlock, timeout, ──▶ rolled back ──┴─────────▶ purged
 *                       end of session, restart
 *
 * An open transaction is a struct txn: locks in the lock table, writes in an overlay; the store
 * only has a record that it is open. An ended one is only a record of its outcome. One batch
 * replaces the one by the other, together with all writes.
 *
 * Query transactions are not the core's: they belong to a host (journal/query_txns.h).
 */
#include "core/owners/txn.h"

#include <stdarg.h>

#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/provisional.h"
#include "core/documents/write.h"
#include "core/feed/feed.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/command_owner.h"
#include "core/owners/cost.h"
#include "core/owners/do_rename.h"
#include "core/owners/owners.h"
#include "core/owners/save_pieces.h"
#include "core/owners/session.h"
#include "core/owners/wait.h"
#include "core/step/core.h"
#include "core/unit/handler.h"
#include "core/owners/owners_step.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

/* --- States ------------------------------------------------------------------------------------------------------- */

static const struct sm_state states[TXN_STATE_COUNT] = {
    [TXN_OPEN] = {"open", SM_TO(TXN_WAITING) | SM_TO(TXN_ABANDONED) | SM_TO(TXN_ENDED)},
    [TXN_WAITING] = {"waiting", SM_TO(TXN_OPEN)},
    [TXN_ABANDONED] = {"abandoned", SM_TO(TXN_ENDED)},
    [TXN_ENDED] = {"ended", 0},
};

static const struct sm machine = {"transaction", states, TXN_STATE_COUNT};

enum txn_state txn__state(const struct txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    return txn->owner.abandoned ? TXN_ABANDONED : txn->wait != NULL ? TXN_WAITING : TXN_OPEN;
}

void txn__begin_wait(struct txn *txn, struct wait *wait)
{
    SM_CHECK(&machine, txn__state(txn), TXN_WAITING);
    txn->wait = wait;
}

void txn__end_wait(struct txn *txn)
{
    if (txn->wait == NULL)
        return;
    SM_CHECK(&machine, txn__state(txn), TXN_OPEN);
    txn->wait = NULL;
}

/* --- Open transactions -------------------------------------------------------------------------------------------- */

struct txn *txn__make(struct core *core, struct slice id, struct session *session)
{
    struct owners *owners = core->owners;
    REQUIRE(id.len > 0 && map_get(&owners->txns, id) == NULL);
    struct txn *txn = mem_zalloc(sizeof *txn);
    txn->magic = TXN_MAGIC;
    txn->owner = (struct owner){.kind = OWNER_TXN, .session = session};
    lock_owner_init(&owners->locks, &txn->owner.locks, session == NULL ? NULL : &session->owner.locks, &txn->owner);
    txn->id = slice_make(mem_strdup(id.data, id.len), id.len);
    list_append(&owners->open_txns, &txn->of_all);
    if (session != NULL)
        list_append(&session->transactions, &txn->of_session);
    map_put(&owners->txns, txn->id, txn);
    return txn;
}

void txn__free(struct core *core, struct txn *txn)
{
    struct owners *owners = core->owners;
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC) && txn->wait == NULL);
    core__work(core, WORK_OWNER);
    INSIST(owners->abandoned_count >= txn->owner.abandoned);
    deadline_set(&owners->idles, &txn->idle, TL_TS_MAX);
    owners->abandoned_count -= txn->owner.abandoned;
    lock_release_all(&owners->locks, &txn->owner.locks);
    lock_owner_deinit(&txn->owner.locks);
    save_pieces__end(core, txn);
    overlay_free(txn->overlay);
    map_remove(&owners->txns, txn->id);
    list_remove(&txn->of_all);
    if (list_linked(&txn->of_session))
        list_remove(&txn->of_session);
    mem_free((char *)(uintptr_t)txn->id.data);
    magic_clear(&txn->magic);
    mem_free(txn);
}

/*
 * A reader on another thread may still use the overlay: it keeps the old one, and the transaction
 * continues with a copy.
 */
struct overlay *txn__overlay(struct core *core, struct txn *txn)
{
    REQUIRE(txn__state(txn) != TXN_ABANDONED);
    save_pieces__touch(core, txn);
    if (txn->overlay == NULL) {
        txn->overlay = overlay_new();
    } else if (overlay_is_shared(txn->overlay)) {
        struct overlay *copy = overlay_copy(txn->overlay);
        overlay_free(txn->overlay);
        txn->overlay = copy;
    }
    return txn->overlay;
}

void txn__touch(struct core *core, struct txn *txn)
{
    REQUIRE(txn__state(txn) != TXN_ABANDONED);
    deadline_set(&core->owners->idles, &txn->idle, deadline_after(core, txn->timeout_us));
}

static void explain_end(struct slice id, const struct txn_outcome *outcome, struct arena *arena,
                        struct problem *ret_problem)
{
    if (outcome->committed)
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_MISSING, "transaction [%.*s] was committed at [%llu]",
                    SLICE_ARG(id), (unsigned long long)outcome->commit_ts);
    else
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_ABORTED, "transaction [%.*s] was rolled back: %.*s",
                    SLICE_ARG(id), SLICE_ARG(outcome->cause));
}

/* Fills in how a transaction that is not open ended, or that it is unknown. */
static void explain_missing(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem)
{
    struct txn_outcome outcome;
    if (id.len > 0 && txn__get_outcome(core, id, arena, &outcome) == 0)
        explain_end(id, &outcome, arena, ret_problem);
    else
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_MISSING,
                    "no transaction [%.*s]: it ended more than an hour ago, or never was", SLICE_ARG(id));
}

static const char *abandon_text(enum txn_abandon why)
{
    switch (why) {
    case TXN_HOST_ENDED: return "the host that had it for a request was restarted, or was out of the cluster";
    case TXN_HOST_CRASHED: return "the machine of the server went down, and requests of it may be missing";
    case TXN_ABANDON_COUNT: break;
    }
    return "";
}

/*
 * Whether the transaction belongs to `session`; an empty id matches any.
 * Returns: false with *ret_problem.
 */
static bool belongs_to(const struct txn *txn, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    if (session.len == 0 || (txn->owner.session != NULL && slice_equal(txn->owner.session->id, session)))
        return true;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "transaction [%.*s] does not belong to session [%.*s]",
                SLICE_ARG(txn->id), SLICE_ARG(session));
    return false;
}

struct txn *txn__find(struct core *core, struct slice id, struct slice session, struct arena *arena,
                      struct problem *ret_problem)
{
    struct txn *txn = map_get(&core->owners->txns, id);
    if (txn == NULL) {
        explain_missing(core, id, arena, ret_problem);
        return NULL;
    }
    if (!belongs_to(txn, session, arena, ret_problem))
        return NULL;
    if (txn->owner.abandoned) {
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_ABORTED, "transaction [%.*s] was rolled back: %s",
                    SLICE_ARG(id), abandon_text(txn->abandon_reason));
        return NULL;
    }
    if (txn->owner.session != NULL && txn->owner.session->terminating) {
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_ABORTED,
                    "transaction [%.*s] was rolled back: its session #%llu has ended", SLICE_ARG(id),
                    (unsigned long long)session_number(txn->owner.session));
        return NULL;
    }
    if (txn->wait != NULL) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "a request of transaction [%.*s] is under way",
                    SLICE_ARG(id));
        return NULL;
    }
    return txn;
}

struct txn *txn__by_number(const struct core *core, struct slice number)
{
    uint64_t wanted_number;
    if (!slice_to_u64(number, &wanted_number))
        return NULL;
    list_for_each(link, &core->owners->open_txns)
    {
        struct txn *txn = list_entry(link, struct txn, of_all);
        if (txn->owner.locks.number == wanted_number)
            return txn;
    }
    return NULL;
}

/* --- BEGIN -------------------------------------------------------------------------------------------------------- */

/* Finds the transaction that `retry_of` names. Returns: false with the problem in the command. */
static bool find_retried(struct core *core, struct command *command, struct txn_outcome *ret_first)
{
    struct slice id = command->txn.retry_of;
    const struct txn *open = map_get(&core->owners->txns, id);
    *ret_first = (struct txn_outcome){0};
    if (id.len == 0)
        return true;
    int r = open != NULL ? 1 : txn__get_outcome(core, id, &command->arena, ret_first);
    if (open != NULL && open->owner.abandoned) { /* it will be rolled back */
        *ret_first = (struct txn_outcome){.mode = TXN_UPDATE, .age = open->owner.locks.age};
        r = 0;
    }
    if (r == 0 && !ret_first->committed && ret_first->mode == TXN_UPDATE)
        return true;
    problem_set(
        &command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
        "[retry_of] must name an update transaction that was rolled back within the last hour, for another one; "
        "[%.*s] is none",
        SLICE_ARG(id));
    return false;
}

static bool begin_is_valid(struct core *core, struct command *command)
{
    const struct txn_command *request = &command->txn;
    struct txn_outcome outcome;
    if (request->id.len == 0 || map_get(&core->owners->txns, request->id) != NULL ||
        txn__get_outcome(core, request->id, &command->arena, &outcome) == 0)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "there is a transaction [%.*s] already", SLICE_ARG(request->id));
    else if (core->owners->txns.count >= core->limits.transactions_max)
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "[%zu] transactions are open already",
                    core->limits.transactions_max);
    else if (request->idle_us == 0 || request->idle_us > CORE_TXN_IDLE_US_MAX)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "[timeout] must be above 0 and at most 24h");
    return command->problem.type == PROBLEM_NONE;
}

/*
 * Logs of version 4 and older begin query transactions by commands. Such a command only takes a
 * number, so that later owners get those that their clients know; commands in the transaction find
 * none.
 */
static void refuse_query(struct core *core, struct command *command)
{
    struct lock_owner unused;
    lock_owner_init(&core->owners->locks, &unused, NULL, NULL);
    lock_owner_deinit(&unused);
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "query transactions are not begun by commands");
}

int core__do_txn_begin(struct core *core, struct command *command)
{
    struct txn_command *request = &command->txn;
    struct session *session = NULL;
    struct txn_outcome first;
    if (!command_owner__session(core, command, &session) || !begin_is_valid(core, command) ||
        !find_retried(core, command, &first))
        return 0;
    if (request->mode == TXN_QUERY) {
        refuse_query(core, command);
        return 0;
    }
    struct txn *txn = txn__make(core, request->id, session);
    txn->created = core->ts;
    txn->timeout_us = request->idle_us;
    txn->retry = request->retry_of.len > 0;
    txn->of_host = request->of_host;
    txn->host = request->of_host ? (uint16_t)host_of_number(command->request) : 0;
    if (txn->retry)
        txn->owner.locks.age = first.age;
    core__note_change(core, slice_hash(txn->id));
    txn__touch(core, txn);
    metric_add(&core->metrics.txns_begun, 1);
    request->number = txn->owner.locks.number;
    return 0;
}

bool txn__is_open(const struct core *core, struct slice id)
{
    return owners_txn(core->owners, id) != NULL;
}

tl_ts owners__oldest_update(const struct core *core)
{
    const struct list *txns = &core->owners->open_txns;
    return list_empty(txns) ? TL_TS_MAX : list_entry(txns->next, struct txn, of_all)->created;
}

void txn__lock_granted(struct core *core, struct wait *wait)
{
    struct txn_lock_command *lock = &wait->command->txn_lock;
    struct txn *txn = wait->txn;
    lock->read_ts = core->ts;
    lock->overlay = txn->overlay == NULL ? NULL : overlay_ref(txn->overlay);
    txn__touch(core, txn);
}

void core_overlay_unref(struct overlay *overlay)
{
    overlay_free(overlay);
}

/* --- ROLLBACK ----------------------------------------------------------------------------------------------------- */

/* Returns: the outcome of a transaction that ends in the open unit, without the result. */
static struct txn_outcome outcome_of(struct core *core, const struct txn *txn)
{
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
    txn__end_wait(txn);
    wait->txn = NULL;
    wait__end(core, wait, PROBLEM_TRANSACTION_ABORTED, "transaction [%.*s] was rolled back: %.*s", SLICE_ARG(txn->id),
              SLICE_ARG(cause));
}

static void roll_back(struct core *core, struct txn *txn, bool by_request, struct slice cause)
{
    struct txn_outcome outcome = outcome_of(core, txn);
    outcome.by_request = by_request;
    outcome.cause = cause;
    txn__end_waiting(core, txn, cause);
    SM_CHECK(&machine, txn__state(txn), TXN_ENDED);
    txn__put_outcome(core, txn->id, &outcome);
    txn__free(core, txn);
}

void txn__abort(struct core *core, struct txn *txn, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice cause = arena_vprintf(&core->arena, format, arguments);
    va_end(arguments);
    roll_back(core, txn, false, cause);
}

int core__do_txn_rollback(struct core *core, struct command *command)
{
    struct slice id = command->txn.id;
    struct txn *txn = map_get(&core->owners->txns, id);
    struct txn_outcome outcome;
    if (txn == NULL && command->txn.force)
        txn = txn__by_number(core, id);
    if (txn != NULL && !belongs_to(txn, command->owner.session, &command->arena, &command->problem))
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
        explain_missing(core, id, &command->arena, &command->problem);
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
    return check.stale ? 1 : rename__check_token(core, command, txn);
}

/* Documents that the transaction may have moved and on which others hold or request locks. */
struct locked_documents {
    struct resource_name *names; /* in the core's arena */
    size_t count;
};

static struct locked_documents find_locked(struct core *core, const struct txn *txn)
{
    struct locked_documents documents = {NULL, 0};
    size_t capacity = 0;
    list_for_each(link, &txn->owner.locks.holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        core__work(core, WORK_LOCK);
        if (hold->mode != LOCK_X || hold->resource->kind != RESOURCE_DOCUMENT || lock_hold_is_sole(hold))
            continue;
        documents.names =
            arena_grow(&core->arena, documents.names, documents.count, &capacity, sizeof *documents.names);
        documents.names[documents.count++] = resource_name(hold->resource, &core->arena);
    }
    size_t renamed_count;
    const struct resource_name *renamed = rename__locked_documents(core, txn->overlay, &renamed_count);
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
    size_t found = 0;
    int r = 0;
    for (size_t i = 0; i < documents->count && r == 0; i++) {
        struct resource_name name = documents->names[i];
        const struct catalog_index *index = catalog_index(core->catalog, name.index);
        if (index == NULL || mapping_type(index->mapping, name.type) == NULL)
            continue;
        r = write__path_of(core, txn->overlay, name.index, name.type, name.id, &name.path);
        documents->names[found++] = name;
    }
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
    for (size_t i = 0; i < documents->count; i++)
        if (!lock_table_document_is_at(locks, &documents->names[i]))
            lock_table_move_document(locks, &documents->names[i], documents->names[i].path);
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
    if (value.data == NULL || !ephemeral__parse(key, &session, &document))
        return;
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
        return arena_printf(&core->arena, "session [%.*s], with which a document of it was to live, has ended",
                            SLICE_ARG(check.missing));
    if (problem.type != PROBLEM_NONE)
        *ret_type = problem.type;
    return problem.reason;
}

static int commit(struct core *core, struct command *command, struct txn *txn)
{
    struct txn_outcome outcome = outcome_of(core, txn);
    struct locked_documents documents = {NULL, 0};
    struct lock_table *locks = &core->owners->locks;
    SM_CHECK(&machine, txn__state(txn), TXN_ENDED);
    core->indivisible = true; /* all or nothing: transaction_changes_max bounds it */
    outcome.committed = true;
    outcome.commit_ts = core->ts;
    if (txn->overlay != NULL) {
        feed__set_transaction(core, txn->id);
        int r = write__commit_overlay(core, txn->overlay, &outcome.changes);
        documents = find_locked(core, txn);
        if (r == 0)
            r = find_paths(core, txn, &documents);
        if (r < 0)
            return tl_trace(r);
    }
    command->txn.commit_ts = outcome.commit_ts;
    command->txn.changes = outcome.changes;
    provisional__commit(core, txn->id, txn->undo_record_count);
    txn__put_outcome(core, txn->id, &outcome);
    command->txn.retired_overlay = tl_steal(txn->overlay);
    lock_table_suspend_grants(locks); /* moved documents and released locks take effect together */
    txn__free(core, txn);
    move_documents(core, &documents);
    lock_table_resume_grants(locks);
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
        explain_missing(core, command->txn.id, &command->arena, &command->problem);
        return 0;
    }
    command->txn.commit_ts = outcome.commit_ts;
    command->txn.changes = outcome.changes;
    return 0;
}

int core__do_txn_commit(struct core *core, struct command *command)
{
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
    return commit(core, command, txn);
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
    if (command->type == COMMAND_WRITE)
        return command->owner.transaction.len > 0 ? 0 : bytes_of_items(&command->write);
    if (command->type != COMMAND_TXN_COMMIT)
        return 0;
    const struct txn *txn = map_get(&core->owners->txns, command->txn.id);
    return txn == NULL || txn->overlay == NULL ? 0 : overlay_bytes(txn->overlay);
}

/* --- Abandoned ---------------------------------------------------------------------------------------------------- */

static void abandon(struct core *core, struct txn *txn, enum txn_abandon why)
{
    txn__end_waiting(core, txn, slice_from(abandon_text(why)));
    SM_CHECK(&machine, txn__state(txn), TXN_ABANDONED);
    txn->owner.abandoned = true;
    txn->abandon_reason = why;
    core->owners->abandoned_count++;
    deadline_set(&core->owners->idles, &txn->idle, TL_TS_MAX);
}

void txn__abandon_host(struct core *core, uint64_t host)
{
    list_for_each(link, &core->owners->open_txns)
    {
        struct txn *txn = list_entry(link, struct txn, of_all);
        core__work(core, WORK_LOCK);
        if (txn->of_host && txn->host == host && !txn->owner.abandoned)
            abandon(core, txn, TXN_HOST_ENDED);
    }
}

void txn__abandon_updates(struct core *core, bool whole)
{
    list_for_each_safe(link, following, &core->owners->open_txns)
    {
        struct txn *txn = list_entry(link, struct txn, of_all);
        core__work(core, WORK_LOCK);
        if (txn->owner.abandoned)
            continue;
        if (whole)
            txn__abort(core, txn, "%s", abandon_text(TXN_HOST_CRASHED));
        else
            abandon(core, txn, TXN_HOST_CRASHED);
    }
}

void txn__end_abandoned(struct core *core, size_t *left)
{
    struct list *all = &core->owners->open_txns;
    for (struct list *link = all->next; link != all && core->owners->abandoned_count > 0 && *left > 0;) {
        struct txn *txn = list_entry(link, struct txn, of_all);
        link = link->next;
        core__work(core, WORK_LOCK);
        if (!txn->owner.abandoned)
            continue;
        cost_charge(left, 1 + txn->owner.locks.lock_count / LOCKS_PER_COST);
        txn__abort(core, txn, "%s", abandon_text(txn->abandon_reason));
    }
}
