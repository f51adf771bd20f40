/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for something new; see followers.h. */
#include "api/request/followers.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

enum {
    LOOK_US = 1000,        /* between two rounds at least, ... */
    LOOK_EACH_US = 100,    /* ... and more for each that waits */
    BROKEN_US = 1000 * 1000, /* after which one whose connection broke is let go */
};

struct followers {
    struct journal *journal;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct thread thread;
    struct list waiting; /* in the order in which they came */
    size_t count;
    size_t once_count;    /* requests in `waiting` with `once` */
    tl_ts once_seen_min;  /* the lowest `seen` of those; TL_TS_MAX: none */
    size_t state_count;   /* requests in `waiting` with `on_state` */
    uint64_t seen_state;  /* journal_state_version() of the last round */
    uint64_t quiet_until; /* boot clock: until then only requests with `once` are handed on */
    atomic_bool any;      /* whether a request waits; read by the journal's thread */
    bool moved;      /* the stable timestamp has, since the last round */
    bool stopping, closing;
};

/* Runs under the journal's lock: costs one atomic read if no request waits. */
static void stable_moved(void *context)
{
    struct followers *followers = context;
    if (!atomic_load_explicit(&followers->any, memory_order_acquire))
        return;
    pthread_mutex_lock(&followers->lock);
    bool quiet = clock_boot_us() < followers->quiet_until;
    bool others = followers->count > followers->once_count + followers->state_count && !quiet;
    bool state =
        followers->state_count > 0 && !quiet && journal_state_version(followers->journal) != followers->seen_state;
    if (others || state || journal_stable(followers->journal) > followers->once_seen_min) {
        if (!followers->moved)
            pthread_cond_signal(&followers->wake);
        followers->moved = true;
    }
    pthread_mutex_unlock(&followers->lock);
}

static bool is_due(const struct followers *followers, const struct follower *follower, tl_ts stable, uint64_t now)
{
    if (!followers->stopping && !follower->once && now < followers->quiet_until)
        return false;
    bool moved_on = follower->on_state ? followers->seen_state != follower->seen_state : stable > follower->seen;
    return followers->stopping || moved_on || now >= follower->until_us || atomic_load(&follower->request->abandoned);
}

/* Takes out the requests that are due. Returns: when to look again at the latest. Requires: the lock. */
static uint64_t take_due(struct followers *followers, struct list *due)
{
    REQUIRE(mutex_is_held(&followers->lock));
    tl_ts stable = journal_stable(followers->journal);
    uint64_t now = clock_boot_us(), next = now + BROKEN_US;
    if (followers->state_count > 0)
        (void)journal_writable(followers->journal); /* measures free space, which nothing reports */
    followers->seen_state = journal_state_version(followers->journal);
    if (now < followers->quiet_until)
        next = followers->quiet_until;
    followers->once_seen_min = TL_TS_MAX;
    for (struct list *link = followers->waiting.next, *after; link != &followers->waiting; link = after) {
        struct follower *follower = list_entry(link, struct follower, link);
        after = link->next;
        if (is_due(followers, follower, stable, now)) {
            list_remove(link);
            list_append(due, link);
            followers->count--;
            followers->once_count -= follower->once;
            followers->state_count -= follower->on_state;
            continue;
        }
        bool quiet = !follower->once && now < followers->quiet_until;
        if (!quiet && follower->until_us < next)
            next = follower->until_us;
        if (follower->once && follower->seen < followers->once_seen_min)
            followers->once_seen_min = follower->seen;
    }
    atomic_store_explicit(&followers->any, followers->count > 0, memory_order_release);
    return next;
}

/* Returns: whether there was one that may come back. */
static bool hand_on(struct list *due)
{
    bool any = false;
    while (!list_empty(due)) {
        struct follower *follower = list_entry(due->next, struct follower, link);
        list_remove(&follower->link);
        any = any || !follower->once;
        bool is_short = follower->once || follower->on_state;
        int r = is_short ? request_work_short(follower->request, follower->then)
                         : request_work(follower->request, follower->then);
        REQUIRE(r == REQUEST_PENDING);
    }
    return any;
}

/* Requires: the lock. A signal in the meantime is not lost: `moved` is looked at. */
static void wait_for_signal(struct followers *followers)
{
    REQUIRE(mutex_is_held(&followers->lock));
    while (!followers->closing && !followers->stopping && followers->once_count == 0 &&
           clock_wait(&followers->wake, &followers->lock, followers->quiet_until))
        ;
}

static void followers_main(void *context)
{
    struct followers *followers = context;
    pthread_mutex_lock(&followers->lock);
    while (!followers->closing) {
        struct list due = LIST_INIT(due);
        followers->moved = false;
        uint64_t next = take_due(followers, &due);
        size_t count = followers->count;
        if (!list_empty(&due)) {
            pthread_mutex_unlock(&followers->lock);
            bool rests = hand_on(&due);
            pthread_mutex_lock(&followers->lock);
            if (rests)
                followers->quiet_until = clock_boot_us() + LOOK_US + count * LOOK_EACH_US;
            wait_for_signal(followers);
        } else if (!followers->moved && !followers->closing) {
            (void)clock_wait(&followers->wake, &followers->lock, next);
        }
    }
    pthread_mutex_unlock(&followers->lock);
}

int followers_open(struct journal *journal, struct followers **ret_followers)
{
    struct followers *followers = mem_zalloc(sizeof *followers);
    followers->journal = journal;
    list_init(&followers->waiting);
    followers->once_seen_min = TL_TS_MAX;
    mutex_init(&followers->lock);
    pthread_cond_init(&followers->wake, NULL);
    if (thread_start(&followers->thread, "followers", followers_main, followers) != 0) {
        pthread_cond_destroy(&followers->wake);
        pthread_mutex_destroy(&followers->lock);
        mem_free(followers);
        return TL_ERR_IO;
    }
    journal_watch(journal, stable_moved, followers);
    *ret_followers = followers;
    return 0;
}

void followers_stop(struct followers *followers)
{
    pthread_mutex_lock(&followers->lock);
    followers->stopping = true;
    pthread_cond_signal(&followers->wake);
    pthread_mutex_unlock(&followers->lock);
}

void followers_close(struct followers *followers)
{
    if (followers == NULL)
        return;
    journal_watch(followers->journal, NULL, NULL);
    pthread_mutex_lock(&followers->lock);
    INSIST(followers->count == 0);
    followers->closing = true;
    pthread_cond_signal(&followers->wake);
    pthread_mutex_unlock(&followers->lock);
    thread_join(&followers->thread);
    pthread_cond_destroy(&followers->wake);
    pthread_mutex_destroy(&followers->lock);
    mem_free(followers);
}

int followers_wait(struct followers *followers, struct follower *follower)
{
    struct request *request = follower->request;
    int r = REQUEST_DONE;
    pthread_mutex_lock(&followers->lock);
    if (!followers->stopping) {
        r = request_park(request);
        list_append(&followers->waiting, &follower->link);
        followers->count++;
        followers->once_count += follower->once;
        followers->state_count += follower->on_state;
        if (follower->once && follower->seen < followers->once_seen_min)
            followers->once_seen_min = follower->seen;
        atomic_store_explicit(&followers->any, true, memory_order_release);
        followers->moved = true; /* it may have moved before the first look */
        pthread_cond_signal(&followers->wake);
    }
    pthread_mutex_unlock(&followers->lock);
    return r;
}
