/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query transactions read by many threads, and ended concurrently.
 *
 * A read in one returns the state at its timestamp, or the reason of its end, and never the state of another timestamp;
 * the history keeps that timestamp while a read uses it. Made for the thread sanitizer, too.
 */
#include <sched.h>
#include <unistd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "core/catalog/catalog.h"

enum { READERS = 3, TRANSACTIONS = 150, READS_EACH = 20, ID_BYTES = 64 };

/* Copies the text between `begin` and the next '"'. */
static void cut(const char *body, const char *begin, char *ret_text)
{
    const char *at = strstr(body, begin);
    assert_non_null(at);
    at += strlen(begin);
    size_t len = strcspn(at, "\"");
    assert_true(len < ID_BYTES);
    memcpy(ret_text, at, len);
    ret_text[len] = '\0';
}

static void begin_query(struct api_fixture *fixture, char *ret_id)
{
    char *body;
    assert_int_equal(api_fixture_ask(fixture, "POST", "/_transaction", "{\"mode\":\"query\"}", &body), 201);
    cut(body, "\"transaction\":\"", ret_id);
    mem_free(body);
}

static void put(struct api_fixture *fixture, int number)
{
    char text[64];
    snprintf(text, sizeof text, "{\"n\":%d}", number);
    int status = api_fixture_ask(fixture, "PUT", "/fs/_doc/1", text, NULL);
    assert_true(status == 200 || status == 201);
}

static int get(struct api_fixture *fixture, const char *id, char **ret_body)
{
    char target[ID_BYTES + 64];
    snprintf(target, sizeof target, "/fs/_doc/1?transaction=%s", id);
    return api_fixture_ask(fixture, "GET", target, NULL, ret_body);
}

static void end(struct api_fixture *fixture, const char *id, const char *how)
{
    char target[ID_BYTES + 64];
    snprintf(target, sizeof target, "/_transaction/%s/%s", id, how);
    assert_int_equal(api_fixture_ask(fixture, "POST", target, NULL, NULL), 200);
}

/* --- Many at once ------------------------------------------------------------------------------------------------- */

/* The transaction that is or was just open, and the number in the document at its timestamp. */
struct shared {
    struct api_fixture fixture;
    pthread_mutex_t lock;
    char id[ID_BYTES];
    int number;
    atomic_bool done;
    _Atomic unsigned reads; /* of the current transaction, by all readers */
};

static void look(struct shared *shared, char *ret_id, int *ret_number)
{
    pthread_mutex_lock(&shared->lock);
    memcpy(ret_id, shared->id, ID_BYTES);
    *ret_number = shared->number;
    pthread_mutex_unlock(&shared->lock);
}

static void check_read(int status, const char *body, int number)
{
    char expected[64];
    snprintf(expected, sizeof expected, "\"_source\":{\"n\":%d}}", number);
    bool as_it_was = status == 200 && strstr(body, expected) != NULL;
    bool explained = (status == 404 && strstr(body, "was committed at") != NULL) ||
                     (status == 409 && strstr(body, "was rolled back: its owner asked for it") != NULL);
    if (!as_it_was && !explained) {
        fprintf(stderr, "a read of %d: %d %s\n", number, status, body);
        abort();
    }
}

static void *read_on(void *context)
{
    struct shared *shared = context;
    while (!atomic_load(&shared->done)) {
        char id[ID_BYTES];
        char *body;
        int number;
        look(shared, id, &number);
        int status = get(&shared->fixture, id, &body);
        check_read(status, body, number);
        mem_free(body);
        atomic_fetch_add(&shared->reads, 1);
    }
    return NULL;
}

static void next_transaction(struct shared *shared, int number)
{
    char id[ID_BYTES];
    put(&shared->fixture, number);
    begin_query(&shared->fixture, id);
    pthread_mutex_lock(&shared->lock);
    memcpy(shared->id, id, ID_BYTES);
    shared->number = number;
    pthread_mutex_unlock(&shared->lock);
    atomic_store(&shared->reads, 0);
}

static void test_query_txn_ends_during_reads(void **state)
{
    static struct shared shared;
    pthread_t readers[READERS];
    (void)state;
    api_fixture_open(&shared.fixture);
    pthread_mutex_init(&shared.lock, NULL);
    next_transaction(&shared, 0);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, &shared), 0);
    for (int number = 1; number < TRANSACTIONS; number++) {
        char *body;
        while (atomic_load(&shared.reads) < READS_EACH)
            sched_yield();
        put(&shared.fixture, -number); /* which it must not see */
        end(&shared.fixture, shared.id, number % 2 ? "_commit" : "_rollback");
        assert_int_equal(get(&shared.fixture, shared.id, &body), number % 2 ? 404 : 409);
        mem_free(body);
        next_transaction(&shared, number);
    }
    atomic_store(&shared.done, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    end(&shared.fixture, shared.id, "_commit");
    pthread_mutex_destroy(&shared.lock);
    api_fixture_close(&shared.fixture);
}

/* --- Its timestamp ------------------------------------------------------------------------------------------------ */

/* Upkeep, and that of a journal that stops, moves the cut-off as far as it may. */
static void check_history(bool in_use)
{
    struct api_fixture fixture = {.history_us = 1};
    char id[ID_BYTES];
    tl_ts ts = 0;
    api_fixture_open(&fixture);
    put(&fixture, 1);
    begin_query(&fixture, id);
    struct query_txn *query = journal_query_txn_use(fixture.journal, slice_from(id));
    assert_non_null(query);
    ts = journal_query_txn_ts(query);
    end(&fixture, id, "_commit");
    assert_null(journal_query_txn_use(fixture.journal, slice_from(id)));
    put(&fixture, 2);
    if (!in_use)
        journal_query_txn_release(fixture.journal, query);
    /* How far back a microsecond is, is known roughly at first: upkeep has to look a second time. */
    while (!in_use && journal_oldest(fixture.journal) <= ts)
        usleep(5000);
    journal_stop(fixture.journal);
    assert_int_equal(journal_oldest(fixture.journal) <= ts, in_use);
    if (in_use)
        journal_query_txn_release(fixture.journal, query);
    api_fixture_close(&fixture);
}

static void test_history_is_retained_for_open_readers(void **state)
{
    (void)state;
    check_history(true);
    check_history(false);
}

/* One that is found twice has one catalog, also when the server's has changed since. */
static void test_query_txn_uses_catalog_of_its_timestamp(void **state)
{
    struct api_fixture fixture = {0};
    struct catalog *first, *second;
    char id[ID_BYTES];
    (void)state;
    api_fixture_open(&fixture);
    put(&fixture, 1);
    begin_query(&fixture, id);
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/later/_doc/1", "{\"n\":1}", NULL), 201);
    struct query_txn *query = journal_query_txn_use(fixture.journal, slice_from(id));
    assert_int_equal(journal_query_txn_catalog(fixture.journal, query, &first), 0);
    assert_int_equal(journal_query_txn_catalog(fixture.journal, query, &second), 0);
    assert_ptr_equal(first, second);
    assert_null(catalog_index(first, SLICE_LIT("later")));
    assert_non_null(catalog_index(first, SLICE_LIT("fs")));
    catalog_unref(first);
    catalog_unref(second);
    journal_query_txn_release(fixture.journal, query);
    end(&fixture, id, "_rollback");
    api_fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query_txn_ends_during_reads),
        cmocka_unit_test(test_history_is_retained_for_open_readers),
        cmocka_unit_test(test_query_txn_uses_catalog_of_its_timestamp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
