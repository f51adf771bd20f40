/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: readers on other threads find in their snapshots what the overlay had, while its owner
 * writes, rolls back, makes further snapshots and ends. Method: each round sets all keys that are
 * there to values of the round's number, and adds some; readers take a snapshot, compare, and free
 * it. In the last rounds there are so many that the reclaimer frees most of them, as in a server.
 * For the thread sanitizer, too.
 */
#include "../../lib/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rand.h"
#include "base/reclaim.h"
#include "store/view.h"

enum { READERS = 3, ROUNDS = 60, KEYS_OF_ROUND = 50, KEYS_MAX = 2000, QUEUE = 8 };

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct overlay *snapshots[QUEUE];
    unsigned rounds[QUEUE];
    unsigned count;
    bool ends;
};

struct expected {
    unsigned round;
    size_t count;
};

/* No assertion of cmocka: those are for its own thread. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static unsigned keys_in(unsigned round)
{
    return round * KEYS_OF_ROUND < KEYS_MAX ? round * KEYS_OF_ROUND : KEYS_MAX;
}

static void see(void *context, struct slice key, struct slice value)
{
    struct expected *expected = context;
    uint64_t round = 0;
    require(key.len > 0 && slice_to_u64(value, &round) && round == expected->round);
    expected->count++;
}

static void *read_snapshots(void *context)
{
    struct queue *queue = context;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        while (queue->count == 0 && !queue->ends)
            pthread_cond_wait(&queue->changed, &queue->lock);
        if (queue->count == 0) {
            pthread_mutex_unlock(&queue->lock);
            mem_thread_end();
            return NULL;
        }
        struct overlay *snapshot = queue->snapshots[--queue->count];
        struct expected expected = {queue->rounds[queue->count], 0};
        pthread_cond_broadcast(&queue->changed);
        pthread_mutex_unlock(&queue->lock);
        overlay_each(snapshot, SPACE_DOCUMENTS, see, &expected);
        require(expected.count == keys_in(expected.round) && overlay_count(snapshot) == expected.count);
        overlay_check(snapshot);
        overlay_free(snapshot);
    }
}

static void put_round(struct overlay *overlay, unsigned round, unsigned keys)
{
    for (unsigned i = 0; i < keys; i++) {
        char key[16], value[16];
        snprintf(key, sizeof key, "%u", i * 7919 % KEYS_MAX);
        snprintf(value, sizeof value, "%u", round);
        overlay_put(overlay, SPACE_DOCUMENTS, slice_from(key), slice_from(value));
    }
}

static void test_snapshots_are_read_while_owner_writes(void **state)
{
    (void)state;
    struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t readers[READERS];
    struct overlay *overlay = overlay_new();
    mem_thread_end();
    size_t before = mem_used();
    assert_int_equal(reclaim_begin(), 0);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_snapshots, &queue), 0);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        put_round(overlay, round, keys_in(round));
        pthread_mutex_lock(&queue.lock);
        while (queue.count == QUEUE)
            pthread_cond_wait(&queue.changed, &queue.lock);
        queue.rounds[queue.count] = round;
        queue.snapshots[queue.count++] = overlay_snapshot(overlay);
        pthread_cond_broadcast(&queue.changed);
        pthread_mutex_unlock(&queue.lock);
        struct overlay *kept = overlay_snapshot(overlay);
        size_t savepoint = overlay_savepoint(overlay);
        put_round(overlay, round + 1, keys_in(round + 1)); /* as the next round does */
        if (round % 3 == 0)
            overlay_rollback_to(overlay, savepoint);
        overlay_release_savepoints(overlay);
        overlay_free(kept);
    }
    overlay_free(overlay); /* snapshots are in use */
    pthread_mutex_lock(&queue.lock);
    queue.ends = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    reclaim_end();
    mem_thread_end();
    assert_true(mem_used() < before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_snapshots_are_read_while_owner_writes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
