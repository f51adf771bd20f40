/* SPDX-License-Identifier: Apache-2.0 */
/* The query transactions of a host; see query_txns.h. */
#include "journal/query_txns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/mutex.h"
#include "base/siphash.h"
#include "core/catalog/catalog.h"
#include "core/step/core.h"
#include "journal/times.h"

/* How one has ended; its id follows it. */
struct query_txn_outcome {
    struct list by_end;
    struct slice id;
    uint64_t number;
    uint64_t session;
    tl_ts created;
    tl_ts read_ts;
    tl_ts ended;
    uint64_t ended_clock; /* host's clock */
    enum metric_txn_end end;
    char cause[QUERY_TXN_CAUSE_BYTES];
};

/* A session that has query transactions; its id follows it. */
struct query_txns_session {
    struct slice id;
    struct list txns; /* by of_session */
};

/* How a transaction is to end. */
struct conclusion {
    struct query_txns_now now;
    enum metric_txn_end end;
    const char *cause; /* of a rollback */
};

static struct query_txns_part *part_of(struct query_txns *table, struct slice id)
{
    return &table->parts[siphash_keyed(id) % QUERY_TXNS_PARTS];
}

void query_txns_init(struct query_txns *table, size_t open_max, void (*unpin)(void *context, tl_ts ts), void *context)
{
    REQUIRE(unpin != NULL);
    *table = (struct query_txns){.open_max = open_max, .unpin = unpin, .context = context};
    mutex_init(&table->sessions_lock);
    table->sessions = MAP_INIT;
    atomic_init(&table->next_end, UINT64_MAX);
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++) {
        struct query_txns_part *part = &table->parts[i];
        mutex_init(&part->lock);
        part->open = part->outcomes = MAP_INIT;
        list_init(&part->by_end);
    }
}

/* --- Outcomes ----------------------------------------------------------------------------------------------------- */

static void drop_outcome(struct query_txns_part *part, struct query_txn_outcome *outcome)
{
    REQUIRE(list_linked(&outcome->by_end));
    list_remove(&outcome->by_end);
    REQUIRE(map_remove(&part->outcomes, outcome->id) == outcome);
    mem_free(outcome);
}

static bool is_stale(const struct query_txn_outcome *outcome, uint64_t clock)
{
    return clock > outcome->ended_clock && clock - outcome->ended_clock > CORE_OUTCOME_US;
}

/* Requires: the part's lock. */
static void drop_stale_outcomes(struct query_txns_part *part, uint64_t clock)
{
    REQUIRE(mutex_is_held(&part->lock));
    while (!list_empty(&part->by_end)) {
        struct query_txn_outcome *oldest = list_entry(part->by_end.next, struct query_txn_outcome, by_end);
        if (part->outcomes.count <= QUERY_TXNS_OUTCOMES_MAX / QUERY_TXNS_PARTS && !is_stale(oldest, clock))
            break;
        drop_outcome(part, oldest);
    }
}

/* Requires: the part's lock. */
static void add_outcome(struct query_txns_part *part, const struct query_txn *txn, const struct conclusion *how)
{
    REQUIRE(mutex_is_held(&part->lock) && (how->cause == NULL) == (how->end == TXN_COMMITTED));
    struct query_txn_outcome *outcome = mem_zalloc(sizeof *outcome + txn->id.len);
    char *id = (char *)(outcome + 1);
    memcpy(id, txn->id.data, txn->id.len);
    outcome->id = slice_make(id, txn->id.len);
    outcome->number = txn->number;
    outcome->session = atomic_load_explicit(&txn->session, memory_order_relaxed);
    outcome->created = txn->created;
    outcome->read_ts = txn->read_ts;
    outcome->ended = how->now.ts;
    outcome->ended_clock = how->now.clock;
    outcome->end = how->end;
    if (how->cause != NULL)
        (void)snprintf(outcome->cause, sizeof outcome->cause, "%s", how->cause);
    list_append(&part->by_end, &outcome->by_end);
    INSIST(map_put(&part->outcomes, outcome->id, outcome) == NULL); /* no id is issued twice */
    drop_stale_outcomes(part, how->now.clock);
}

static struct query_txn_info info_of_outcome(const struct query_txn_outcome *outcome, struct arena *arena)
{
    return (struct query_txn_info){
        .id = arena_copy(arena, outcome->id),
        .number = outcome->number,
        .session = outcome->session,
        .created = outcome->created,
        .read_ts = outcome->read_ts,
        .by_id = true,
        .ended = outcome->ended,
        .committed = outcome->end == TXN_COMMITTED,
        .by_request = outcome->end == TXN_ROLLED_BACK,
        .cause = arena_copy(arena, slice_from(outcome->cause)),
    };
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static void add_to_session(struct query_txns *table, struct query_txn *txn)
{
    if (txn->session_id.len == 0)
        return;
    pthread_mutex_lock(&table->sessions_lock);
    struct query_txns_session *session = map_get(&table->sessions, txn->session_id);
    if (session == NULL) {
        session = mem_alloc(sizeof *session + txn->session_id.len);
        char *id = (char *)(session + 1);
        memcpy(id, txn->session_id.data, txn->session_id.len);
        session->id = slice_make(id, txn->session_id.len);
        list_init(&session->txns);
        map_put(&table->sessions, session->id, session);
    }
    list_append(&session->txns, &txn->of_session);
    pthread_mutex_unlock(&table->sessions_lock);
}

/* Requires: sessions_lock; the transaction is linked. */
static void unlink_from_session(struct query_txns *table, struct query_txns_session *session, struct query_txn *txn)
{
    REQUIRE(mutex_is_held(&table->sessions_lock) && session != NULL && list_linked(&txn->of_session));
    list_remove(&txn->of_session);
    if (!list_empty(&session->txns))
        return;
    map_remove(&table->sessions, session->id);
    mem_free(session);
}

static void remove_from_session(struct query_txns *table, struct query_txn *txn)
{
    if (txn->session_id.len == 0)
        return;
    pthread_mutex_lock(&table->sessions_lock);
    if (list_linked(&txn->of_session))
        unlink_from_session(table, map_get(&table->sessions, txn->session_id), txn);
    pthread_mutex_unlock(&table->sessions_lock);
}

/*
 * Removes the oldest transaction of a session from its list.
 * Returns: it; NULL: none is open. Owns: the caller; drop().
 */
static struct query_txn *take_from_session(struct query_txns *table, struct slice id)
{
    pthread_mutex_lock(&table->sessions_lock);
    struct query_txns_session *session = map_get(&table->sessions, id);
    struct query_txn *txn = NULL;
    if (session != NULL) { /* while it is linked the table holds its reference */
        INSIST(!list_empty(&session->txns));
        txn = list_entry(session->txns.next, struct query_txn, of_session);
        atomic_fetch_add_explicit(&txn->references, 1, memory_order_relaxed);
        unlink_from_session(table, session, txn);
    }
    pthread_mutex_unlock(&table->sessions_lock);
    return txn;
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const struct query_txn *txn)
{
    return sizeof *txn + txn->id.len + txn->session_id.len;
}

/* Drops a reference. The last one releases the pin. */
static void drop_txn(struct query_txns *table, struct query_txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    size_t before = atomic_fetch_sub_explicit(&txn->references, 1, memory_order_acq_rel);
    REQUIRE(before > 0);
    if (before > 1)
        return;
    tl_ts pinned = txn->read_ts;
    catalog_unref(atomic_load_explicit(&txn->catalog, memory_order_relaxed));
    budget_tally(BUDGET_TRANSACTIONS, -(ptrdiff_t)bytes_of(txn));
    magic_clear(&txn->magic);
    mem_free(txn);
    table->unpin(table->context, pinned);
}

static struct query_txn *new_txn(struct query_txns *table, const struct query_txn_terms *terms,
                                 struct query_txns_now now)
{
    REQUIRE(terms->id.len > 0);
    struct query_txn *txn = mem_zalloc(sizeof *txn + terms->id.len + terms->session.len);
    char *text = (char *)(txn + 1);
    memcpy(text, terms->id.data, terms->id.len);
    txn->id = slice_make(text, terms->id.len);
    if (terms->session.len > 0)
        memcpy(text + terms->id.len, terms->session.data, terms->session.len);
    txn->session_id = slice_make(text + terms->id.len, terms->session.len);
    txn->magic = QUERY_TXN_MAGIC;
    txn->read_ts = terms->read_ts;
    txn->created = now.ts;
    txn->timeout_us = terms->timeout_us;
    uint64_t last = atomic_load_explicit(&table->last_number, memory_order_relaxed);
    do {
        txn->number = now.ts > last ? now.ts : last + 1;
    } while (!atomic_compare_exchange_weak_explicit(&table->last_number, &last, txn->number, memory_order_relaxed,
                                                    memory_order_relaxed));
    atomic_init(&txn->used_at, now.clock);
    atomic_init(&txn->references, 1);
    budget_tally(BUDGET_TRANSACTIONS, (ptrdiff_t)bytes_of(txn));
    return txn;
}

/*
 * Returns: the earliest value of the host's clock at which the transaction is idle. `used_at` may be
 *          older than the use by the largest step of the clock.
 */
static uint64_t end_of(const struct query_txn *txn, uint64_t used_at)
{
    return used_at + RUN_CLOCK_STALL_US + txn->timeout_us;
}

static void lower_next_end(struct query_txns *table, uint64_t end)
{
    uint64_t next = atomic_load(&table->next_end);
    while (end < next && !atomic_compare_exchange_weak(&table->next_end, &next, end))
        ;
}

/* `held`: the references that the caller holds; any other one but the table's is a reader's. */
static struct query_txn_info info_of(const struct query_txn *txn, size_t held, uint64_t clock)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    uint64_t end = atomic_load_explicit(&txn->used_at, memory_order_relaxed) + txn->timeout_us;
    if (atomic_load_explicit(&txn->references, memory_order_relaxed) > 1 + held)
        end = clock + txn->timeout_us;
    return (struct query_txn_info){
        .id = txn->id,
        .number = txn->number,
        .session = atomic_load_explicit(&txn->session, memory_order_relaxed),
        .created = txn->created,
        .read_ts = txn->read_ts,
        .timeout_us = txn->timeout_us,
        .left_us = end > clock ? end - clock : 0,
        .by_id = true,
    };
}

int query_txns_begin(struct query_txns *table, const struct query_txn_terms *terms, struct query_txns_now now,
                     struct query_txn_info *ret_info)
{
    if (atomic_fetch_add(&table->open_count, 1) >= table->open_max) {
        atomic_fetch_sub(&table->open_count, 1);
        return QUERY_TXNS_FULL;
    }
    struct query_txn *txn = new_txn(table, terms, now);
    struct query_txns_part *part = part_of(table, txn->id);
    *ret_info = info_of(txn, 0, now.clock);
    ret_info->id = terms->id;
    pthread_mutex_lock(&part->lock);
    bool stopped = atomic_load(&table->stopped);
    if (!stopped) {
        add_to_session(table, txn);
        REQUIRE(map_put(&part->open, txn->id, txn) == NULL);
        lower_next_end(table, end_of(txn, now.clock));
    }
    pthread_mutex_unlock(&part->lock);
    if (stopped) {
        atomic_fetch_sub(&table->open_count, 1);
        budget_tally(BUDGET_TRANSACTIONS, -(ptrdiff_t)bytes_of(txn));
        mem_free(txn);
        return QUERY_TXNS_STOPPED;
    }
    metric_add(&table->metrics.begun, 1);
    return 0;
}

void query_txns_set_session(struct query_txns *table, struct slice id, uint64_t session)
{
    REQUIRE(session != 0); /* a transaction without a number is not listed yet */
    struct query_txn *txn = query_txns_use(table, id);
    if (txn == NULL)
        return;
    atomic_store_explicit(&txn->session, session, memory_order_relaxed);
    drop_txn(table, txn);
}

/*
 * Removes an open transaction, with an outcome unless `how` is NULL. leave() must follow, without
 * the lock. Requires: the part's lock.
 */
static void close_txn(struct query_txns_part *part, struct query_txn *txn, const struct conclusion *how)
{
    REQUIRE(mutex_is_held(&part->lock));
    REQUIRE(map_remove(&part->open, txn->id) == txn);
    if (how != NULL)
        add_outcome(part, txn, how);
}

/* Drops the table's reference to a transaction that close_txn() has removed. */
static void drop_closed_txn(struct query_txns *table, struct query_txn *txn, enum metric_txn_end end)
{
    remove_from_session(table, txn);
    REQUIRE(atomic_fetch_sub(&table->open_count, 1) > 0);
    metric_add(&table->metrics.ended[end], 1);
    drop_txn(table, txn);
}

/*
 * Ends the transaction. The caller holds a reference.
 * Returns: false: it has ended before.
 */
static bool conclude_txn(struct query_txns *table, struct query_txn *txn, const struct conclusion *how)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    struct query_txns_part *part = part_of(table, txn->id);
    pthread_mutex_lock(&part->lock);
    bool open = map_get(&part->open, txn->id) == txn;
    if (open)
        close_txn(part, txn, how);
    pthread_mutex_unlock(&part->lock);
    if (open)
        drop_closed_txn(table, txn, how->end);
    return open;
}

void query_txns_discard(struct query_txns *table, struct slice id, struct query_txns_now now)
{
    struct query_txn *txn = query_txns_use(table, id);
    if (txn == NULL)
        return;
    (void)conclude_txn(table, txn, &(struct conclusion){now, TXN_ABORTED, "its session has ended"});
    drop_txn(table, txn);
}

/* --- Uses --------------------------------------------------------------------------------------------------------- */

struct query_txn *query_txns_use(struct query_txns *table, struct slice id)
{
    if (atomic_load_explicit(&table->open_count, memory_order_relaxed) == 0)
        return NULL;
    struct query_txns_part *part = part_of(table, id);
    pthread_mutex_lock(&part->lock);
    struct query_txn *txn = map_get(&part->open, id);
    if (txn != NULL)
        atomic_fetch_add_explicit(&txn->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&part->lock);
    return txn;
}

void query_txns_release(struct query_txns *table, struct query_txn *txn, uint64_t clock)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    atomic_store_explicit(&txn->used_at, clock, memory_order_relaxed);
    drop_txn(table, txn);
}

struct catalog *query_txn_catalog(struct query_txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    struct catalog *catalog = atomic_load_explicit(&txn->catalog, memory_order_acquire);
    return catalog == NULL ? NULL : catalog_ref(catalog);
}

/* Two readers may cache equal catalogs at once; the first one stays. */
void query_txn_cache_catalog(struct query_txn *txn, struct catalog *catalog)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    REQUIRE(catalog != NULL);
    struct catalog *none = NULL;
    struct catalog *kept = catalog_ref(catalog);
    if (!atomic_compare_exchange_strong_explicit(&txn->catalog, &none, kept, memory_order_release,
                                                 memory_order_relaxed))
        catalog_unref(kept);
}

/* --- Ends --------------------------------------------------------------------------------------------------------- */

/*
 * Finds an open transaction by its public number. Takes linear time.
 * Returns: it; NULL: none. Owns: the caller; drop().
 */
static struct query_txn *use_by_number(struct query_txns *table, struct slice text)
{
    uint64_t number;
    if (!slice_to_u64(text, &number))
        return NULL;
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++) {
        struct query_txns_part *part = &table->parts[i];
        size_t position = 0;
        struct slice id;
        void *value = NULL;
        struct query_txn *found = NULL;
        pthread_mutex_lock(&part->lock);
        while (found == NULL && map_next(&part->open, &position, &id, &value))
            if (((struct query_txn *)value)->number == number)
                found = value;
        if (found != NULL)
            atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
        pthread_mutex_unlock(&part->lock);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static enum query_txn_state find_outcome(struct query_txns *table, struct slice id, uint64_t clock, struct arena *arena,
                                         struct query_txn_info *ret_info)
{
    struct query_txns_part *part = part_of(table, id);
    pthread_mutex_lock(&part->lock);
    const struct query_txn_outcome *outcome = map_get(&part->outcomes, id);
    bool found = outcome != NULL && !is_stale(outcome, clock);
    if (found)
        *ret_info = info_of_outcome(outcome, arena);
    pthread_mutex_unlock(&part->lock);
    return found ? QUERY_TXN_ENDED : QUERY_TXN_UNKNOWN;
}

enum query_txn_state query_txns_find(struct query_txns *table, struct slice id, bool or_number,
                                     struct query_txns_now now, struct arena *arena, struct query_txn_info *ret_info)
{
    struct query_txn *txn = query_txns_use(table, id);
    bool by_id = txn != NULL;
    if (txn == NULL && or_number)
        txn = use_by_number(table, id);
    if (txn == NULL)
        return find_outcome(table, id, now.clock, arena, ret_info);
    *ret_info = info_of(txn, 1, now.clock);
    ret_info->id = arena_copy(arena, txn->id);
    ret_info->by_id = by_id;
    drop_txn(table, txn);
    return QUERY_TXN_OPEN;
}

static void refuse_ended(const struct query_txn_info *info, struct arena *arena, struct problem *ret_problem)
{
    if (info->committed)
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_MISSING,
                    "transaction [%.*s] was committed at [%" PRIu64 "]", SLICE_ARG(info->id), info->read_ts);
    else
        problem_set(ret_problem, arena, PROBLEM_TRANSACTION_ABORTED, "transaction [%.*s] was rolled back: %.*s",
                    SLICE_ARG(info->id), SLICE_ARG(info->cause));
}

bool query_txn_check_session(const struct query_txn *txn, struct slice session, struct arena *arena,
                             struct problem *ret_problem)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    bool own = session.len == 0 || slice_equal(session, txn->session_id);
    if (!own)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "transaction [%.*s] does not belong to session [%.*s]", SLICE_ARG(txn->id), SLICE_ARG(session));
    return own;
}

bool query_txns_concerns(const struct command *command)
{
    return command_is(command->type, COMMAND_OWNED) && command->owner.transaction.len > 0 &&
           command->type != COMMAND_UNLOCK;
}

bool query_txns_refuse(struct query_txns *table, struct command *command, struct query_txns_now now)
{
    struct slice id = command->owner.transaction;
    struct query_txn_info info;
    if (!query_txns_concerns(command))
        return false;
    struct query_txn *txn = query_txns_use(table, id);
    if (txn == NULL) {
        bool ended = find_outcome(table, id, now.clock, &command->arena, &info) == QUERY_TXN_ENDED;
        if (ended)
            refuse_ended(&info, &command->arena, &command->problem);
        return ended;
    }
    bool takes_locks = command->type == COMMAND_LOCK || command->type == COMMAND_TXN_LOCK;
    if (query_txn_check_session(txn, command->owner.session, &command->arena, &command->problem))
        problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_READ_ONLY,
                    "transaction [%.*s] is a query transaction: %s", SLICE_ARG(id),
                    takes_locks ? "it takes no locks" : "it reads only");
    drop_txn(table, txn);
    return true;
}

/* Returns: QUERY_TXN_ENDED, with a problem unless the repeated request is to succeed. */
static enum query_txn_state end_again(const struct query_txn_ending *ending, const struct query_txn_info *info,
                                      struct arena *arena, struct problem *ret_problem)
{
    if (ending->commit ? !info->committed : !info->by_request)
        refuse_ended(info, arena, ret_problem);
    return QUERY_TXN_ENDED;
}

enum query_txn_state query_txns_end(struct query_txns *table, const struct query_txn_ending *ending,
                                    struct query_txns_now now, struct arena *arena, struct query_txn_info *ret_info,
                                    struct problem *ret_problem)
{
    REQUIRE(ret_info != NULL && ret_problem != NULL);
    struct conclusion how = {now, ending->commit ? TXN_COMMITTED : TXN_ROLLED_BACK,
                             ending->commit  ? NULL
                             : ending->force ? "it was ended by force"
                                             : "its owner asked for it"};
    struct query_txn *txn = query_txns_use(table, ending->id);
    if (txn == NULL && ending->force)
        txn = use_by_number(table, ending->id);
    if (txn == NULL && find_outcome(table, ending->id, now.clock, arena, ret_info) == QUERY_TXN_UNKNOWN)
        return QUERY_TXN_UNKNOWN;
    if (txn == NULL)
        return end_again(ending, ret_info, arena, ret_problem);
    bool own = query_txn_check_session(txn, ending->session, arena, ret_problem);
    bool ended = own && conclude_txn(table, txn, &how);
    *ret_info = info_of(txn, 1, now.clock);
    ret_info->id = arena_copy(arena, txn->id);
    drop_txn(table, txn);
    if (ended || !own)
        return QUERY_TXN_OPEN;
    /* Another thread has ended it meanwhile. */
    if (find_outcome(table, ret_info->id, now.clock, arena, ret_info) == QUERY_TXN_UNKNOWN)
        return QUERY_TXN_UNKNOWN;
    return end_again(ending, ret_info, arena, ret_problem);
}

void query_txns_end_session(struct query_txns *table, struct slice session, uint64_t number, const char *how,
                            struct query_txns_now now)
{
    REQUIRE(how != NULL);
    char cause[QUERY_TXN_CAUSE_BYTES];
    struct conclusion conclusion = {now, TXN_ABORTED, cause};
    struct query_txn *txn;
    if (atomic_load_explicit(&table->open_count, memory_order_relaxed) == 0)
        return;
    (void)snprintf(cause, sizeof cause, "its session #%" PRIu64 " %s", number, how);
    while ((txn = take_from_session(table, session)) != NULL) {
        (void)conclude_txn(table, txn, &conclusion);
        drop_txn(table, txn);
    }
}

/* --- Idle ones, and the end of the host --------------------------------------------------------------------------- */

/* Transactions that were removed and are to be left; their memory is kept from one part to the next. */
struct removed {
    struct query_txn **items;
    size_t count;
    size_t capacity;
};

static void add_removed(struct removed *removed, struct query_txn *txn)
{
    if (removed->count == removed->capacity) {
        removed->capacity = removed->capacity ? removed->capacity * 2 : 16;
        removed->items = mem_realloc(removed->items, removed->capacity * sizeof *removed->items);
    }
    removed->items[removed->count++] = txn;
}

static void leave_all(struct query_txns *table, struct removed *removed, enum metric_txn_end end)
{
    for (size_t i = 0; i < removed->count; i++)
        drop_closed_txn(table, removed->items[i], end);
    removed->count = 0;
}

/* Adds those that are idle at `barrier_clock`, and records when the next one is. Requires: the part's lock. */
static void find_idle(struct query_txns *table, struct query_txns_part *part, uint64_t barrier_clock,
                      struct query_txns_now now, struct removed *idle)
{
    REQUIRE(mutex_is_held(&part->lock));
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&part->open, &position, &id, &value)) {
        struct query_txn *txn = value;
        bool used = atomic_load_explicit(&txn->references, memory_order_acquire) > 1;
        uint64_t end = end_of(txn, used ? now.clock : atomic_load_explicit(&txn->used_at, memory_order_relaxed));
        if (end <= barrier_clock)
            add_removed(idle, txn);
        else
            lower_next_end(table, end);
    }
}

void query_txns_end_idle(struct query_txns *table, uint64_t barrier_clock, struct query_txns_now now)
{
    char cause[QUERY_TXN_CAUSE_BYTES];
    struct conclusion how = {now, TXN_ABORTED, cause};
    struct removed idle = {0};
    if (atomic_load(&table->next_end) > barrier_clock)
        return;
    atomic_store(&table->next_end, UINT64_MAX); /* before the first look: a begin lowers it, too */
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++) {
        struct query_txns_part *part = &table->parts[i];
        pthread_mutex_lock(&part->lock);
        find_idle(table, part, barrier_clock, now, &idle);
        for (size_t k = 0; k < idle.count; k++) {
            (void)snprintf(cause, sizeof cause, "nothing was done with it for %" PRIu64 " ms",
                           idle.items[k]->timeout_us / TL_MS);
            close_txn(part, idle.items[k], &how);
        }
        pthread_mutex_unlock(&part->lock);
        leave_all(table, &idle, TXN_ABORTED);
    }
    mem_free(idle.items);
}

void query_txns_stop(struct query_txns *table)
{
    struct removed all = {0};
    atomic_store(&table->stopped, true);
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++) {
        struct query_txns_part *part = &table->parts[i];
        size_t position = 0;
        struct slice id;
        void *txn;
        pthread_mutex_lock(&part->lock);
        while (map_next(&part->open, &position, &id, &txn))
            add_removed(&all, txn);
        for (size_t k = 0; k < all.count; k++)
            close_txn(part, all.items[k], NULL);
        pthread_mutex_unlock(&part->lock);
        leave_all(table, &all, TXN_ABORTED);
    }
    mem_free(all.items);
}

void query_txns_deinit(struct query_txns *table)
{
    REQUIRE(table->sessions.count == 0);
    REQUIRE(atomic_load(&table->open_count) == 0);
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++) {
        struct query_txns_part *part = &table->parts[i];
        while (!list_empty(&part->by_end))
            drop_outcome(part, list_entry(part->by_end.next, struct query_txn_outcome, by_end));
        map_deinit(&part->open);
        map_deinit(&part->outcomes);
        pthread_mutex_destroy(&part->lock);
    }
    map_deinit(&table->sessions);
    pthread_mutex_destroy(&table->sessions_lock);
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const struct query_txn_info *)a)->number, y = ((const struct query_txn_info *)b)->number;
    return (x > y) - (x < y);
}

size_t query_txns_list(struct query_txns *table, uint64_t clock, struct arena *arena, struct query_txn_info **ret_infos)
{
    struct query_txn_info *infos = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++) {
        struct query_txns_part *part = &table->parts[i];
        size_t position = 0;
        struct slice id;
        void *value;
        pthread_mutex_lock(&part->lock);
        while (map_next(&part->open, &position, &id, &value)) {
            const struct query_txn *txn = value;
            if (txn->session_id.len > 0 && atomic_load_explicit(&txn->session, memory_order_relaxed) == 0)
                continue; /* its begin is not complete */
            infos = arena_grow(arena, infos, count, &capacity, sizeof *infos);
            infos[count] = info_of(txn, 0, clock);
            infos[count++].id = arena_copy(arena, txn->id);
        }
        pthread_mutex_unlock(&part->lock);
    }
    if (count > 1)
        qsort(infos, count, sizeof *infos, compare_numbers);
    *ret_infos = infos;
    return count;
}
