/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that wait until this host has applied the log's head; see head_waits.h. */
#include "api/request/head_waits.h"

#include <inttypes.h>
#include <pthread.h>

#include "api/request/api_internal.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

#define WAIT_DEFAULT_US ((int64_t)(10 * TL_SECOND))
#define ATTEMPT_US (100 * TL_MS) /* limit of one wait for the result, so that waits can end meanwhile */
#define RETURN_US (3 * TL_MS)    /* limit of one wait for returning clients */

enum { UNAWAITED = 8 }; /* lookups without a wait for returning clients, after one that was in vain */

struct head_waits {
    struct journal *journal;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct thread thread;
    struct list waiting;    /* head_wait by link: arrived after the newest lookup of the head began */
    size_t waiting_count;   /* in it */
    size_t wake_count;      /* that many wake the thread */
    unsigned unawaited;     /* so many more lookups begin without a wait for returning clients; the thread's */
    bool missed;            /* a miss was recorded after it */
    atomic_bool looking_up; /* because of a miss, a lookup is pending or about to begin */
    bool stopping, closing;
};

/* A request's wait; in its arena. */
struct head_wait {
    struct list link;
    struct request *request;
    request_handler *then;
    int64_t wait_us;
    uint64_t until_us; /* boot clock */
    enum { HEAD_REACHED, HEAD_TIMEOUT, HEAD_STOPPING } outcome;
};

static int wait_over(struct request *request)
{
    struct head_wait *wait = request->head_wait;
    request->head_wait = NULL;
    request_start_timer(request);
    if (wait->outcome == HEAD_REACHED)
        return wait->then(request);
    if (wait->outcome == HEAD_STOPPING)
        return request_refuse_stopping(request);
    return request_refuse(request, PROBLEM_TIMESTAMP_NOT_REACHED,
                          "the newest state of the cluster was not reached within [%" PRId64
                          "ms]; ask again, or with a longer [timeout]",
                          wait->wait_us / (int64_t)TL_MS);
}

static void hand_on(struct list *waits)
{
    while (!list_empty(waits)) {
        struct head_wait *wait = list_entry(waits->next, struct head_wait, link);
        list_remove(&wait->link);
        int r = request_work_short(wait->request, wait_over);
        REQUIRE(r == REQUEST_PENDING);
    }
}

/*
 * Moves the waits of `from` to `to`: all with `reached`, else those that end without. Requires: the lock.
 * Returns: how many.
 */
static size_t take_over(const struct head_waits *waits, bool reached, struct list *from, struct list *to)
{
    REQUIRE(mutex_is_held(&waits->lock));
    uint64_t now = clock_boot_us();
    size_t taken = 0;
    list_for_each_safe(link, following, from)
    {
        struct head_wait *wait = list_entry(link, struct head_wait, link);
        bool late = now >= wait->until_us || atomic_load(&wait->request->abandoned);
        if (!reached && !late && !waits->stopping)
            continue;
        wait->outcome = reached ? HEAD_REACHED : late ? HEAD_TIMEOUT : HEAD_STOPPING;
        list_remove(link);
        list_append(to, link);
        taken++;
    }
    return taken;
}

/* A lookup of the head, the requests that wait for it, and its result. */
struct lookup {
    struct list waits; /* head_wait by link */
    bool missed;       /* a miss was recorded before it */
    bool known;        /* the log has returned it */
    uint64_t head;     /* if `known` */
    size_t served;     /* of `waits`, when it has ended */
    size_t found;      /* requests that waited for the next one then */
};

/* Begins a lookup for all that wait, unless one is pending. Requires: the lock. */
static void begin_lookup(struct head_waits *waits, struct lookup *lookup)
{
    REQUIRE(mutex_is_held(&waits->lock));
    if (!list_empty(&lookup->waits) || lookup->missed)
        return;
    while (!list_empty(&waits->waiting)) {
        struct list *link = waits->waiting.next;
        list_remove(link);
        list_append(&lookup->waits, link);
    }
    waits->waiting_count = 0;
    lookup->missed = waits->missed;
    lookup->known = waits->missed = false;
}

/* Waits a while for the result. Returns: whether this host has applied the head. */
static bool await_lookup(struct head_waits *waits, struct lookup *lookup)
{
    uint64_t until = clock_boot_us() + ATTEMPT_US;
    if (!lookup->known)
        lookup->known = journal_read_head(waits->journal, until, &lookup->head) == 0;
    return lookup->known && journal_await_position(waits->journal, lookup->head, until) == 0;
}

/* Ends the waits that are over. Releases the lock meanwhile. Requires: the lock. */
static void end_waits(struct head_waits *waits, struct lookup *lookup, bool reached)
{
    REQUIRE(mutex_is_held(&waits->lock));
    struct list over = LIST_INIT(over);
    lookup->served = take_over(waits, reached, &lookup->waits, &over);
    waits->waiting_count -= take_over(waits, false, &waits->waiting, &over);
    lookup->found = waits->waiting_count;
    if (reached || waits->stopping)
        lookup->missed = false;
    atomic_store(&waits->looking_up, waits->missed || lookup->missed);
    pthread_mutex_unlock(&waits->lock);
    hand_on(&over);
    pthread_mutex_lock(&waits->lock);
}

/*
 * Waits, before a lookup begins, for the next reads of the clients that the last one served: they are being answered.
 * Otherwise there would be two groups of clients, of which one waits while the other one's lookup is under way, and
 * twice as many lookups, each of which costs all members of the log and this host. The wait is in vain if clients are
 * gone or read rarely, so it is as short as the lookup, and if none came, the next ones begin without it. A single
 * client never waits.
 * `took`: the lookup's time. Requires: the lock.
 */
static void await_returning(struct head_waits *waits, const struct lookup *lookup, uint64_t took)
{
    REQUIRE(mutex_is_held(&waits->lock));
    size_t wanted = lookup->found + lookup->served;
    wanted -= wanted / 8; /* the last ones would delay all others */
    if (waits->unawaited > 0) {
        waits->unawaited--;
        return;
    }
    if (wanted <= 1)
        return;
    uint64_t until = clock_boot_us() + (took < RETURN_US ? took : RETURN_US);
    bool in_time = true;
    waits->wake_count = wanted;
    while (in_time && waits->waiting_count < wanted && !waits->missed && !waits->stopping && !waits->closing)
        in_time = clock_wait(&waits->wake, &waits->lock, until);
    waits->wake_count = 1;
    if (!in_time && waits->waiting_count > 0 && waits->waiting_count == lookup->found)
        waits->unawaited = UNAWAITED;
}

static void head_waits_main(void *context)
{
    struct head_waits *waits = context;
    struct lookup lookup = {.missed = false};
    list_init(&lookup.waits);
    pthread_mutex_lock(&waits->lock);
    while (!waits->closing) {
        begin_lookup(waits, &lookup);
        if (list_empty(&lookup.waits) && !lookup.missed) {
            pthread_cond_wait(&waits->wake, &waits->lock);
            continue;
        }
        uint64_t begun = clock_boot_us();
        pthread_mutex_unlock(&waits->lock);
        bool reached = await_lookup(waits, &lookup);
        pthread_mutex_lock(&waits->lock);
        end_waits(waits, &lookup, reached);
        if (reached)
            await_returning(waits, &lookup, clock_boot_us() - begun);
        else if (!waits->stopping) /* the log may refuse at once */
            (void)clock_wait(&waits->wake, &waits->lock, begun + ATTEMPT_US);
    }
    pthread_mutex_unlock(&waits->lock);
}

int head_waits_open(struct journal *journal, struct head_waits **ret_waits)
{
    struct head_waits *waits = mem_zalloc(sizeof *waits);
    waits->journal = journal;
    list_init(&waits->waiting);
    waits->wake_count = 1;
    mutex_init(&waits->lock);
    pthread_cond_init(&waits->wake, NULL);
    if (thread_start(&waits->thread, "head-waits", head_waits_main, waits) != 0) {
        pthread_cond_destroy(&waits->wake);
        pthread_mutex_destroy(&waits->lock);
        mem_free(waits);
        return TL_ERR_IO;
    }
    *ret_waits = waits;
    return 0;
}

void head_waits_stop(struct head_waits *waits)
{
    if (waits == NULL)
        return;
    pthread_mutex_lock(&waits->lock);
    waits->stopping = true;
    pthread_cond_signal(&waits->wake);
    pthread_mutex_unlock(&waits->lock);
}

void head_waits_close(struct head_waits *waits)
{
    if (waits == NULL)
        return;
    pthread_mutex_lock(&waits->lock);
    INSIST(list_empty(&waits->waiting));
    waits->closing = true;
    pthread_cond_signal(&waits->wake);
    pthread_mutex_unlock(&waits->lock);
    thread_join(&waits->thread);
    pthread_cond_destroy(&waits->wake);
    pthread_mutex_destroy(&waits->lock);
    mem_free(waits);
}

void head_waits_missed(struct head_waits *waits)
{
    if (waits == NULL)
        return;
    pthread_mutex_lock(&waits->lock);
    waits->missed = !waits->stopping;
    atomic_store(&waits->looking_up, waits->missed);
    pthread_cond_signal(&waits->wake);
    pthread_mutex_unlock(&waits->lock);
}

bool head_waits_is_looking_up(struct head_waits *waits)
{
    return waits != NULL && atomic_load(&waits->looking_up);
}

int head_waits_add(struct request *request, request_handler *then)
{
    struct head_waits *waits = request->api->head_waits;
    int64_t wait_us = WAIT_DEFAULT_US;
    int r = request_time(request, "timeout", &wait_us);
    if (r != 0)
        return r;
    struct head_wait *wait = arena_zalloc(request->arena, sizeof *wait);
    wait_us = wait_us < 0 ? 0 : wait_us;
    *wait = (struct head_wait){
        .request = request, .then = then, .wait_us = wait_us, .until_us = clock_boot_us() + (uint64_t)wait_us};
    request->head_wait = wait;
    pthread_mutex_lock(&waits->lock);
    bool stopping = waits->stopping;
    if (!stopping) {
        r = request_park(request);
        list_append(&waits->waiting, &wait->link);
        if (++waits->waiting_count >= waits->wake_count)
            pthread_cond_signal(&waits->wake);
    }
    pthread_mutex_unlock(&waits->lock);
    return stopping ? request_refuse_stopping(request) : r;
}
