/* SPDX-License-Identifier: Apache-2.0 */
/* The query transactions of this host: the table with the journal's pins, clock and input barrier. */
#include "base/check.h"
#include "base/magic.h"
#include "core/catalog/catalog.h"
#include "journal/journal_internal.h"
#include "store/view.h"

static void unpin_query(void *context, tl_ts ts)
{
    journal_unpin(context, ts);
}

void journal__init_query_txns(struct journal *journal, const struct core_limits *limits)
{
    query_txns_init(&journal->query_txns, limits->transactions_max, unpin_query, journal);
}

static uint64_t host_clock(const struct journal *journal)
{
    return atomic_load_explicit(&journal->host_clock, memory_order_relaxed);
}

static struct query_txns_now now_of(struct journal *journal)
{
    tl_ts stable = journal_stable(journal);
    uint64_t wall = journal__wall(journal);
    return (struct query_txns_now){host_clock(journal), wall > stable ? wall : stable};
}

/* --- Begin -------------------------------------------------------------------------------------------------------- */

/* A worker that sleeps for longer is woken, to see the end of the transaction's idle time. */
static void wake_worker(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
}

int journal_query_txn_begin(struct journal *journal, const struct query_txn_terms *terms, struct arena *arena,
                            struct query_txn_info *ret_info, struct problem *ret_problem)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    struct query_txn_terms pinned = *terms;
    if (terms->timeout_us == 0 || terms->timeout_us > CORE_TXN_IDLE_US_MAX) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[timeout] must be above 0 and at most 24h");
        return JOURNAL_REFUSED;
    }
    if (terms->read_ts == 0)
        pinned.read_ts = journal__pin_stable(journal);
    else if (journal_pin(journal, terms->read_ts) != 0)
        return JOURNAL_TOO_OLD;
    uint64_t next_end = atomic_load(&journal->query_txns.next_end);
    int r = query_txns_begin(&journal->query_txns, &pinned, now_of(journal), ret_info);
    if (r == 0) {
        if (atomic_load(&journal->query_txns.next_end) < next_end)
            wake_worker(journal);
        return 0;
    }
    journal_unpin(journal, pinned.read_ts);
    if (r == QUERY_TXNS_FULL)
        problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED, "[%zu] query transactions are open already",
                    journal->query_txns.open_max);
    else
        problem_set(ret_problem, arena, PROBLEM_STOPPING, "the server is stopping; try again later");
    return JOURNAL_REFUSED;
}

void journal_query_txn_confirm(struct journal *journal, struct slice id, uint64_t session)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    query_txns_set_session(&journal->query_txns, id, session);
}

void journal_query_txn_discard(struct journal *journal, struct slice id)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    query_txns_discard(&journal->query_txns, id, now_of(journal));
}

/* --- Uses --------------------------------------------------------------------------------------------------------- */

struct query_txn *journal_query_txn_use(struct journal *journal, struct slice id)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return query_txns_use(&journal->query_txns, id);
}

void journal_query_txn_release(struct journal *journal, struct query_txn *txn)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    query_txns_release(&journal->query_txns, txn, host_clock(journal));
}

tl_ts journal_query_txn_ts(const struct query_txn *txn)
{
    REQUIRE(MAGIC_VALID(txn, QUERY_TXN_MAGIC));
    return txn->read_ts;
}

int journal_query_txn_catalog(struct journal *journal, struct query_txn *txn, struct catalog **ret_catalog)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    int r = 0;
    *ret_catalog = query_txn_catalog(txn);
    if (*ret_catalog != NULL)
        return 0;
    *ret_catalog = journal_catalog_at(journal, txn->read_ts);
    if (*ret_catalog == NULL)
        r = catalog_load(&(struct view){journal->store, txn->read_ts, NULL}, ret_catalog);
    if (r == 0)
        query_txn_cache_catalog(txn, *ret_catalog);
    return r;
}

int journal_query_txn_check_session(const struct query_txn *txn, struct slice session, struct arena *arena,
                                    struct problem *ret_problem)
{
    return query_txn_check_session(txn, session, arena, ret_problem) ? 0 : JOURNAL_REFUSED;
}

bool journal__refuse_in_query_txn(struct journal *journal, struct command *command)
{
    /* most commands are in no transaction, and need no reading of the clock */
    return query_txns_concerns(command) && query_txns_refuse(&journal->query_txns, command, now_of(journal));
}

/* --- End ---------------------------------------------------------------------------------------------------------- */

int journal_query_txn_end(struct journal *journal, const struct query_txn_ending *ending, struct arena *arena,
                          struct query_txn_info *ret_info, struct problem *ret_problem)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    switch (query_txns_end(&journal->query_txns, ending, now_of(journal), arena, ret_info, ret_problem)) {
    case QUERY_TXN_UNKNOWN: return JOURNAL_UNKNOWN;
    default: return ret_problem->type == PROBLEM_NONE ? 0 : JOURNAL_REFUSED;
    }
}

void journal__session_ended(struct effects *effects, struct slice id, uint64_t number, const char *how)
{
    struct journal *journal = container_of(effects, struct journal, effects);
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC)); /* the effects are this journal's */
    query_txns_end_session(&journal->query_txns, id, number, how, now_of(journal));
}

void journal__end_idle_query_txns(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t barrier_host_clock = journal->barrier_host_clock;
    (void)journal__host_clock(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    if (atomic_load(&journal->query_txns.next_end) <= barrier_host_clock) /* else the clock need not be read */
        query_txns_end_idle(&journal->query_txns, barrier_host_clock, now_of(journal));
}

/* --- Seeing them -------------------------------------------------------------------------------------------------- */

/* As now_of(), with a new reading of the clock: the times that are shown do not depend on its age. */
static struct query_txns_now read_now(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    (void)journal__host_clock(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    return now_of(journal);
}

enum query_txn_state journal_query_txn_find(struct journal *journal, struct slice id, struct arena *arena,
                                            struct query_txn_info *ret_info)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return query_txns_find(&journal->query_txns, id, true, read_now(journal), arena, ret_info);
}

size_t journal_query_txns(struct journal *journal, struct arena *arena, struct query_txn_info **ret_infos)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    return query_txns_list(&journal->query_txns, read_now(journal).clock, arena, ret_infos);
}

const struct query_txn_metrics *journal_query_txn_metrics(struct journal *journal)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    metric_set(&journal->query_txns.metrics.open, atomic_load(&journal->query_txns.open_count));
    return &journal->query_txns.metrics;
}
