/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget: how much memory all that clients make the server hold may take together.
 *
 * What counts is what mem_alloc() has given out (mem_used()): bodies, parsed trees, replies that nobody reads, writes of
 * transactions, locks, waiting requests, scrolls, scripts, and whatever nobody has thought of. The store's caches have limits
 * of their own and are not in it. So nobody keeps books about who took what, and nothing can be left out of them; a kind of
 * holder that wants to be shown by name keeps a tally beside (budget_tally()).
 *
 * Whoever is about to make the server hold more asks first. At what filling he is refused depends on his level: what is kept
 * or large is refused first; small requests that are soon over are not, as long as they themselves are not too many: beyond
 * 15/16 of the limit they draw on a reserve of their own; and what gives memory back (unlocks, ends of sessions, commits) is
 * always let in. So one who fills the server up stops himself, not others, and a full server can be relieved.
 *
 * A guard stands for one request, and knows the account of its time (account.h), which is looked at whenever it is asked: one
 * that is over gets nothing more, but has not been refused. Arenas and buffers that have one (arena.h, buf.h) ask it whenever they grow by a chunk. A
 * buffer that is refused overflows; an arena goes on, so that none of its users has to look at each allocation. The guard
 * remembers that it was refused: loops over what a client sent or asked for look at it, and who answers the request answers
 * with the refusal instead.
 *
 * Invariants
 *  1. Who is refused before he began has changed nothing.
 *  2. budget_share(KEEP) < budget_share(SERVE) < the limit. What relieves is never refused BUDGET_SMALL bytes, and what is small
 *     and soon over only when such requests have drawn all of budget_reserve(): however full the server is, or has gone beyond
 *     by what was begun before (an arena goes on, the core asks nobody), others are served and it can be emptied.
 *  3. No result of a command depends on the budget, for it differs from host to host: who submits commands asks, the core does
 *     not. What the core holds for an owner has limits that count, deterministically (core.h).
 *  4. Nobody asks byte by byte: a question costs two loads, and is asked for a chunk (BUDGET_CHUNK) or more.
 *  5. Tallies are for showing; nothing is decided by them.
 *  6. Once a guard is refused it stays so until it is begun anew, and keeps what it was first refused for.
 */
#ifndef TL_BASE_BUDGET_H
#define TL_BASE_BUDGET_H

#include <stdatomic.h>

#include "base/account.h"
#include "base/error.h"

enum {
    BUDGET_CHUNK = 64 * 1024, /* less than this at once is not asked for */
    BUDGET_SMALL = 1 << 20,   /* what a request may take and still count as small */
    BUDGET_DRAW = 16 * 1024,  /* what a request draws from the reserve at least: what it takes without asking */
};

/* The smallest limit: what an idle server holds fits in twice. */
#define BUDGET_LIMIT_MIN ((size_t)32 << 20)

/* Who holds memory, as it is shown. */
enum budget_kind {
    BUDGET_REQUESTS,     /* parsed requests, replies, searches at work; asked for by guards */
    BUDGET_BODIES,       /* of requests, as they came in */
    BUDGET_TRANSACTIONS, /* what open transactions have written */
    BUDGET_LOCKS,        /* places in the tree of locks, holds, requests that wait */
    BUDGET_CONTEXTS,     /* scrolls and points in time, with their requests */
    BUDGET_SCRIPTS,      /* compiled scripts that are kept */
    BUDGET_ACTIONS,      /* what sessions leave for their end */
    BUDGET_STREAMS,      /* sent to streams and not yet read */
    BUDGET_KIND_COUNT
};

enum budget_level {
    BUDGET_RETAINED,    /* is kept beyond the request, or is large: up to 3/4 of the limit */
    BUDGET_TRANSIENT,   /* small and soon over: up to 15/16, then from the reserve */
    BUDGET_ESSENTIAL, /* gives memory back, or lets somebody see how things are: always, while it is small */
    BUDGET_LEVEL_COUNT
};

/*
 * A fault that a test puts in: question number `in` from now on is refused, as by a full server, or, with an `end`, finds the account
 * of its guard ended so. 0: none, or it has happened.
 */
struct budget_fault {
    _Atomic uint64_t in;
    enum account_end end; /* ACCOUNT_RUNNING: the question is refused */
};

struct budget {
    size_t limit;                                 /* bytes */
    size_t chunk;                                 /* what arenas and buffers ask for; BUDGET_CHUNK, less in tests */
    _Atomic size_t promised;                      /* let through, and not yet allocated */
    _Atomic size_t drawn;                         /* from the reserve, by small requests at work */
    _Atomic uint64_t refusals[BUDGET_KIND_COUNT]; /* since the start */
    struct budget_fault fault;
};

/* Requires: limit >= BUDGET_LIMIT_MIN. */
void budget_init(struct budget *budget, size_t limit);

/* The bytes up to which a level is served. */
size_t budget_share(const struct budget *budget, enum budget_level level);

/* What small requests may take together in a full server: a sixteenth of the limit. */
size_t budget_reserve(const struct budget *budget);

/* Bytes held and promised now, by the whole process. */
size_t budget_used(const struct budget *budget);

/* Whether `bytes` more fit. A NULL budget has room for everything. Counts nothing: for whoever asks again soon. */
bool budget_fits(const struct budget *budget, enum budget_level level, size_t bytes);

/* Keeps a tally of what a kind holds: `bytes` more, or less. From any thread; seen by nobody but budget_tallied(). */
void budget_tally(enum budget_kind kind, ptrdiff_t bytes);
size_t budget_tallied(enum budget_kind kind);

/* Returns: a static name such as "transactions". */
const char *budget_kind_name(enum budget_kind kind);

/* A size as Elasticsearch writes it, such as "1.2kb". Returns: in `arena`, with a NUL behind it. */
struct slice budget_human_size(struct arena *arena, size_t bytes);

/* --- Guards ------------------------------------------------------------------------------------------------------- */

/* All zero: nothing is refused. Used by one thread at a time. */
struct budget_guard {
    struct budget *budget; /* NULL: nothing is refused */
    enum budget_kind kind;
    enum budget_level level;
    struct account *account; /* of the same request; NULL: none is kept. Stays when the guard ends */
    size_t taken;    /* what it has been let through with */
    size_t promised; /* of that, what is kept free for it and it has not yet asked for again */
    size_t drawn;    /* from the reserve, until its end */
    bool refused;    /* invariant 6; with the following */
    size_t wanted;   /* what would have been held with what was asked for */
    size_t limit;    /* what it was held against */
    size_t asked;    /* bytes that were asked for */
};

/*
 * Who has taken more than BUDGET_SMALL asks as one that keeps. At most half of the limit is one guard's.
 * Ensures: budget_guard_end() must follow, if it is asked for anything.
 */
void budget_guard_init(struct budget_guard *guard, struct budget *budget, enum budget_kind kind,
                       enum budget_level level);

/* The account of who asks by a guard, which may be NULL. Returns: NULL: none is kept. */
static inline struct account *budget_account(const struct budget_guard *guard)
{
    return guard != NULL ? guard->account : NULL;
}

/* Whether so many bytes are worth a question (invariant 4). `guard` may be NULL: nobody is asked. */
static inline bool budget_guard_asks(const struct budget_guard *guard, size_t bytes)
{
    return guard != NULL && bytes >= (guard->budget == NULL ? BUDGET_CHUNK : guard->budget->chunk);
}

/* Asks for `bytes` more, which are allocated at once. Returns: false: refused, now or before, or the account is over. */
bool budget_guard_take(struct budget_guard *guard, size_t bytes);

/*
 * Asks for `bytes` which will be allocated bit by bit: they are kept free of others. What is then taken is taken from them
 * first. Returns: false: refused.
 */
bool budget_guard_promise(struct budget_guard *guard, size_t bytes);

/* Gives back what was promised and never taken, and what was drawn. The guard refuses nothing from now on. */
void budget_guard_end(struct budget_guard *guard);

/*
 * Says in Elasticsearch's words that there is no room: circuit_breaking_exception with bytes_wanted, bytes_limit, durability.
 * `what` is asked for, such as "the reply of GET /_mget". Requires: guard->refused.
 */
void budget_problem(const struct budget_guard *guard, struct slice what, struct arena *arena,
                    struct problem *ret_problem);

#endif
