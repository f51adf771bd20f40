/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget: a limit on the memory of the process, so that clients cannot exhaust the host's.
 *
 * It compares the limit with mem_used(), the bytes allocated by mem_alloc(): bodies, parsed
 * requests, unread replies, writes of transactions, locks, waiting requests, scrolls, scripts and
 * everything else. Therefore no allocation can be missed, and no list of holders is needed. The
 * caches of the store have their own limits and are not included. A kind of holder that is to be
 * reported by name keeps a tally in addition (budget_tally()).
 *
 * Code that makes the server hold more memory asks first. Its level decides how full the server may
 * be:
 *
 *  - BUDGET_RETAINED, for memory that outlives the request or is large, is refused first.
 *  - BUDGET_TRANSIENT, for small and short requests, is refused later: beyond 15/16 of the limit
 *    such requests draw from a reserve of their own.
 *  - BUDGET_ESSENTIAL, for requests that free memory (unlocks, ends of sessions, commits), is never
 *    refused while it is small.
 *
 * So a client that fills the server is refused itself, other clients are served, and a full server
 * can be emptied.
 *
 * A guard represents one request. It also has the request's account (account.h), which it polls
 * whenever it is asked: an ended account gets no memory, without being refused. Arenas and buffers
 * with a guard (arena.h, buf.h) ask it whenever they grow by a chunk. A refused buffer overflows. A
 * refused arena allocates nevertheless, so that its users need not check each allocation. The guard
 * records the refusal: loops over a client's input check it, and the request is answered with the
 * refusal.
 *
 * Invariants
 *  1. A request that is refused before its execution has no effect.
 *  2. budget_share(RETAINED) < budget_share(TRANSIENT) < the limit. ESSENTIAL is never refused up
 *     to BUDGET_SMALL bytes. TRANSIENT is refused up to BUDGET_SMALL bytes only when such requests
 *     have drawn all of budget_reserve(). So it is for guards; a request of a small size that adds to
 *     the catalog is refused beyond budget_share(RETAINED) in addition (api/request/catalog_growth.h).
 *     Both hold even when the limit is exceeded, by arenas that allocate after a refusal or by the
 *     core, which does not ask.
 *  3. No result of a command depends on the budget, which differs between hosts. The code that
 *     submits commands asks; the core does not. Where it has to know, for cleanup actions of sessions, the log has the
 *     proposer's answer (core/README.md, "Memory as an input"). Memory that the core holds for an owner has
 *     deterministic limits (core.h).
 *  4. A question costs two loads, and is asked for BUDGET_CHUNK bytes or more, never byte by byte.
 *  5. Tallies are for reports only; no decision depends on them.
 *  6. A refused guard stays refused until it is initialized again, and keeps its first refusal.
 */
#ifndef TL_BASE_BUDGET_H
#define TL_BASE_BUDGET_H

#include <stdatomic.h>

#include "base/account.h"
#include "base/error.h"

enum {
    BUDGET_CHUNK = 64 * 1024, /* smaller allocations are made without a question */
    BUDGET_SMALL = 1 << 20,   /* a request that takes more is large */
    BUDGET_DRAW = 16 * 1024,  /* minimum draw from the reserve; covers bytes taken unasked */
};

/* The smallest permitted limit: twice the memory of an idle server. */
#define BUDGET_LIMIT_MIN ((size_t)32 << 20)

/* The kinds of holders of memory, as reported. */
enum budget_kind {
    BUDGET_REQUESTS,     /* parsed requests, replies, running searches; by guards */
    BUDGET_BODIES,       /* of requests, as received */
    BUDGET_TRANSACTIONS, /* writes of open transactions */
    BUDGET_LOCKS,        /* nodes of the lock tree, holds, waiting requests */
    BUDGET_CONTEXTS,     /* scrolls and points in time, with their searches */
    BUDGET_SCRIPTS,      /* cached compiled scripts */
    BUDGET_ACTIONS,      /* actions that sessions have stored for their end */
    BUDGET_STREAMS,      /* written to streams and not yet sent */
    BUDGET_KIND_COUNT
};

enum budget_level {
    BUDGET_RETAINED,  /* outlives the request, or is large: up to 3/4 of the limit */
    BUDGET_TRANSIENT, /* small and short: up to 15/16, then from the reserve */
    BUDGET_ESSENTIAL, /* frees memory, or is for monitoring: always, while small */
    BUDGET_LEVEL_COUNT
};

/* A fault injected by a test: the `in`-th question from now fails. */
struct budget_fault {
    _Atomic uint64_t in;  /* 0: none, or it has happened */
    enum account_end end; /* the guard's account ends with it; ACCOUNT_RUNNING: the guard is refused */
};

struct budget {
    size_t limit;                                 /* bytes */
    size_t chunk;                                 /* smallest question; BUDGET_CHUNK, smaller in tests */
    _Atomic size_t promised;                      /* promised to guards and not yet taken */
    _Atomic size_t drawn;                         /* from the reserve, by current guards */
    _Atomic uint64_t refusals[BUDGET_KIND_COUNT]; /* since the start */
    struct budget_fault fault;
};

/* Requires: limit >= BUDGET_LIMIT_MIN. */
void budget_init(struct budget *budget, size_t limit);

/* Returns: the number of used bytes up to which a level is granted. */
size_t budget_share(const struct budget *budget, enum budget_level level);

/* Returns: the size of the reserve for BUDGET_TRANSIENT in a full server: 1/16 of the limit. */
size_t budget_reserve(const struct budget *budget);

/* Returns: the bytes allocated by the process and promised to guards. */
size_t budget_used(const struct budget *budget);

/* Returns: whether `bytes` more would be granted now; nothing is counted. `budget` NULL: always. */
bool budget_fits(const struct budget *budget, enum budget_level level, size_t bytes);

/* Adds `bytes` (may be negative) to the tally of a kind. May be called from any thread. */
void budget_tally(enum budget_kind kind, ptrdiff_t bytes);
/* Returns: the tally of a kind, in bytes. */
size_t budget_tallied(enum budget_kind kind);

/* Returns: a static name such as "transactions". */
const char *budget_kind_name(enum budget_kind kind);

/* Returns: a size as Elasticsearch formats it, such as "1.2kb", in `arena`, followed by a NUL. */
struct slice budget_human_size(struct arena *arena, size_t bytes);

/* --- Guards ------------------------------------------------------------------------------------------------------- */

/* All zero: a guard that refuses nothing. Used by one thread at a time. */
struct budget_guard {
    struct budget *budget; /* NULL: nothing is refused */
    enum budget_kind kind;
    enum budget_level level;
    struct account *account; /* of the same request; survives budget_guard_end(); NULL: none */
    size_t taken;            /* bytes granted, promised ones included */
    size_t promised;         /* of `taken`: promised and not yet taken */
    size_t drawn;            /* from the reserve; returned by budget_guard_end() */
    bool refused;            /* invariant 6; the following are set with it */
    size_t wanted;           /* bytes held, with those asked for */
    size_t limit;            /* the limit that `wanted` exceeds */
    size_t asked;            /* bytes asked for */
};

/*
 * Initializes a guard. Beyond BUDGET_SMALL bytes it asks at level BUDGET_RETAINED; one guard gets
 * at most half of the limit. `budget` NULL: it refuses nothing. The caller must call
 * budget_guard_end().
 */
void budget_guard_init(struct budget_guard *guard, struct budget *budget, enum budget_kind kind,
                       enum budget_level level);

/* Returns: the account of a guard; NULL: none. `guard` may be NULL. */
static inline struct account *budget_account(const struct budget_guard *guard)
{
    return guard != NULL ? guard->account : NULL;
}

/* Returns: whether `guard`, which may be NULL, must be asked for so many bytes (invariant 4). */
static inline bool budget_guard_asks(const struct budget_guard *guard, size_t bytes)
{
    return guard != NULL && bytes >= (guard->budget == NULL ? BUDGET_CHUNK : guard->budget->chunk);
}

/*
 * Asks for `bytes` more, to be allocated immediately.
 * Returns: false when refused, now or earlier, or when the account has ended.
 */
bool budget_guard_take(struct budget_guard *guard, size_t bytes);

/*
 * Asks for `bytes` to be allocated gradually: they are reserved for this guard, and later calls of
 * budget_guard_take() use them first. Returns: false when refused, now or earlier.
 */
bool budget_guard_promise(struct budget_guard *guard, size_t bytes);

/*
 * Refuses a guard for bytes of level BUDGET_RETAINED that do not fit with those that others are about to take, which
 * are not in use yet. Requires: guard->budget is not NULL, and it is not refused.
 */
void budget_guard_refuse(struct budget_guard *guard, size_t about_to_take, size_t asked);

/* Releases untaken promises and the draw from the reserve. Afterwards the guard refuses nothing. */
void budget_guard_end(struct budget_guard *guard);

/*
 * Sets Elasticsearch's circuit_breaking_exception, with bytes_wanted, bytes_limit and durability.
 * `what` names the data, such as "the reply of GET /_mget". Requires: guard->refused.
 */
void budget_problem(const struct budget_guard *guard, struct slice what, struct arena *arena,
                    struct problem *ret_problem);

#endif
