/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call with too little memory, past its deadline, and with a disconnected client, at each
 * point where the call checks for that.
 *
 * An arena or a buffer that belongs to a request asks the request's guard when it grows
 * (base/budget.h). Here it asks for each growth, however small, and check number k fails, for k =
 * 1, 2, 3 … until the call makes fewer than k checks: the budget refuses the growth, or the account
 * of the call's work has ended. No access may be outside of allocated memory and none may leak (the
 * sanitizers check), each call is answered once, and a refused call has no effect: afterwards the
 * call gets the reply that it gets without any failure. Of a call by query that is refused memory the batches stay
 * that were written before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/unit.h"
#include "calls.h"

#include "base/alloc.h"
#include "base/budget.h"
#include "query/search.h"

enum {
    SIZE = 20, /* of what can be repeated in a call */
    LONG_SIZE = 200,
    QUESTIONS_MAX = 1000000,
};

#define LIMIT ((size_t)1 << 30)

struct fault {
    const char *name;
    enum account_end end;
    bool at_poll; /* not at a growth, but where the account is polled: at each charge */
    bool in_batch; /* also in a later batch of a call by query */
};

static const struct fault faults[] = {
    {"refused", ACCOUNT_RUNNING, false, true},         {"late", ACCOUNT_LATE, false, false},
    {"left", ACCOUNT_ABANDONED, false, false},         {"late at a poll", ACCOUNT_LATE, true, true},
    {"left at a poll", ACCOUNT_ABANDONED, true, true},
};

/* What shows that a call has changed something. */
static const char *const looks[] = {
    "/w/"
    "_search?version=true&size=100&sort=_seq_no&ignore_unavailable=true&filter_path=hits.hits._version,hits.hits.sort",
    "/v/_search?version=true&size=100&ignore_unavailable=true&filter_path=hits.hits._version",
    "/_cat/indices?h=index,docs.count&s=index",
    "/_cat/sessions?h=name",
    "/_cat/transactions?h=mode",
    "/_cat/locks?h=index,path,mode",
    "/_alias",
    "/_mapping",
    "/_template",
    "/_index_template",
    "/_component_template",
    "/_scripts/sw",
    "/_cluster/settings",
};

enum { LOOKS = sizeof looks / sizeof *looks };

struct looked {
    char *at[LOOKS];
};

static struct budget budget;
static size_t failed;

static size_t size_of(const struct call_case *call)
{
    size_t size = getenv("TIDELOCK_TEST_LONG") != NULL ? LONG_SIZE : SIZE;
    return call->size == 0 || call->size > size ? size : call->size;
}

static void arm(const struct fault *fault, uint64_t question)
{
    account_fault.end = budget.fault.end = fault->end;
    atomic_store(&account_fault.happened, false);
    atomic_store(&account_fault.polls_always, fault->at_poll);
    atomic_store(fault->at_poll ? &account_fault.in : &budget.fault.in, question);
}

/* Returns: whether the fault has happened. */
static bool disarm(const struct fault *fault)
{
    atomic_store(&account_fault.polls_always, false);
    return atomic_exchange(fault->at_poll ? &account_fault.in : &budget.fault.in, 0) == 0;
}

static int ask(struct api_fixture *fixture, const char *call, size_t n, struct call_names *names)
{
    return calls_ask_text(fixture, call, n, names, getenv("GROWTH_TRACE") != NULL);
}

static void open_fixture(struct api_fixture *fixture, const char *const *steps, size_t n, struct call_names *names)
{
    *fixture = (struct api_fixture){.budget = &budget};
    *names = (struct call_names){0};
    budget_init(&budget, LIMIT);
    calls_open(fixture, names);
    for (; steps[0] != NULL && steps[1] != NULL; steps++)
        (void)calls_ask_text(fixture, steps[0], n, names, false);
    budget.chunk = 1;
}

static void look(struct api_fixture *fixture, struct looked *ret_looked)
{
    budget.chunk = BUDGET_CHUNK;
    for (size_t i = 0; i < LOOKS; i++)
        (void)api_fixture_ask(fixture, "GET", looks[i], NULL, &ret_looked->at[i]);
}

static void looked_deinit(struct looked *looked)
{
    for (size_t i = 0; i < LOOKS; i++)
        mem_free(looked->at[i]);
}

static int without_faults(const char *const *steps, const char *call, size_t n, struct looked *ret_looked)
{
    struct api_fixture fixture;
    struct call_names names;
    open_fixture(&fixture, steps, n, &names);
    int status = ask(&fixture, call, n, &names);
    look(&fixture, ret_looked);
    call_names_deinit(&names);
    api_fixture_close(&fixture);
    return status;
}

struct trial {
    const struct fault *fault;
    const char *const *steps; /* they end with the call itself, and NULL */
    const char *call;
    size_t n;
    int expected;
    const struct looked *looked;
    bool in_parts; /* changes before the end of the call stay */
};

static void compare(const struct trial *trial, const struct looked *found)
{
    for (size_t i = 0; i < LOOKS; i++)
        if (strcmp(found->at[i], trial->looked->at[i]) != 0) {
            failed++;
            print_error("%.200s, %s: GET %s is %.1000s, not %.1000s\n", trial->call, trial->fault->name, looks[i],
                        found->at[i], trial->looked->at[i]);
        }
}

static void judge(const struct trial *trial, struct api_fixture *fixture, int status, uint64_t question)
{
    struct looked looked;
    if (status != trial->expected) {
        failed++;
        print_error("%.200s, %s: %d at question %llu, %d without\n", trial->call, trial->fault->name, status,
                    (unsigned long long)question, trial->expected);
    }
    look(fixture, &looked);
    if (!trial->in_parts)
        compare(trial, &looked);
    looked_deinit(&looked);
}

/*
 * Returns: the next question to fail. Of polls, of which a call has thousands, all of the first and some of the others.
 */
static uint64_t next_question(const struct fault *fault, uint64_t question)
{
    return question + 1 + (fault->at_poll && getenv("TIDELOCK_TEST_LONG") == NULL ? question / 16 : 0);
}

/*
 * Asks question by question until nothing fails any more. A call that is answered as usual although something failed
 * has done its work: the next one is asked of a new server. Returns: the question with which to continue there; 0: the
 * call asks no more.
 */
static uint64_t try_questions(const struct trial *trial, struct api_fixture *fixture, struct call_names *names,
                              uint64_t question)
{
    for (; question < QUESTIONS_MAX; question = next_question(trial->fault, question)) {
        arm(trial->fault, question);
        int status = ask(fixture, trial->call, trial->n, names);
        bool happened = disarm(trial->fault);
        if (getenv("GROWTH_TRACE") != NULL)
            print_message("%s at %llu: %d\n", trial->fault->name, (unsigned long long)question, status);
        if (happened && status != trial->expected)
            continue;
        judge(trial, fixture, status, question);
        return happened ? next_question(trial->fault, question) : 0;
    }
    fail_msg("%s asks too often", trial->call);
    return 0;
}

static void try_fault(const struct trial *trial)
{
    for (uint64_t question = 1; question != 0;) {
        struct api_fixture fixture;
        struct call_names names;
        open_fixture(&fixture, trial->steps, trial->n, &names);
        question = try_questions(trial, &fixture, &names, question);
        call_names_deinit(&names);
        api_fixture_close(&fixture);
    }
}

static void try_call(const char *handler, const char *const *steps, const char *call, size_t n)
{
    const char *only = getenv("GROWTH_ONLY");
    if (only != NULL && strcmp(only, handler) != 0)
        return;
    struct looked looked;
    int expected = without_faults(steps, call, n, &looked);
    bool batches = strstr(handler, "by_query") != NULL || strcmp(handler, "reindex") == 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct trial trial = {&faults[i], steps, call, n, expected, &looked, faults[i].in_batch && batches};
        try_fault(&trial);
    }
    looked_deinit(&looked);
}

static void test_bodies(void **state)
{
    (void)state;
    failed = 0;
    for (size_t i = 0; i < call_case_count; i++) {
        const struct call_case *call = &call_cases[i];
        const char *steps[CALL_STEPS_MAX + 1] = {NULL};
        size_t count = 0;
        while (count < CALL_STEPS_MAX && call->steps[count] != NULL)
            steps[count] = call->steps[count], count++;
        if (count > 0)
            try_call(call->handler, steps, steps[count - 1], size_of(call));
    }
    assert_int_equal(failed, 0);
}

/* Each row, without a body or with an empty one. */
static void test_paths(void **state)
{
    static const char *const none[] = {NULL};
    (void)state;
    failed = 0;
    for (size_t i = 0; i < call_row_count; i++) {
        struct call_names names = {0};
        struct buf call = BUF_INIT(BUF_UNLIMITED);
        char method[8];
        char *path = calls_path(&call_rows[i], SIZE_MAX, "", &names);
        calls_method(&call_rows[i], method, sizeof method);
        bool with_body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
        buf_printf(&call, "%s %s%s", method, path, with_body ? "\n{}" : "");
        buf_byte(&call, '\0');
        try_call(call_rows[i].handler, none, call.data, 1);
        buf_deinit(&call);
        mem_free(path);
    }
    assert_int_equal(failed, 0);
}

/* --- Scrolls ------------------------------------------------------------------------------------------------------ */

/* Appends the ids of a page, which are numbers. Returns: how many. */
static size_t note_ids(const char *page, struct buf *ids)
{
    static const char member[] = "\"_id\":\"";
    size_t count = 0;
    for (const char *at = page; (at = strstr(at, member)) != NULL; count++) {
        at += sizeof member - 1;
        buf_printf(ids, "%.*s ", (int)strcspn(at, "\""), at);
    }
    return count;
}

static void scroll_id_of(const char *page, char *ret_id, size_t room)
{
    static const char member[] = "\"_scroll_id\":\"";
    const char *at = strstr(page, member);
    assert_non_null(at);
    at += sizeof member - 1;
    snprintf(ret_id, room, "%.*s", (int)strcspn(at, "\""), at);
}

/* Asks for a page; with faults, first so often that each of its questions has failed. Returns: the page. */
static char *next_page(struct api_fixture *fixture, const char *target, const char *body, bool failing)
{
    char *page = NULL;
    for (uint64_t question = 1; failing; question++) {
        atomic_store(&budget.fault.in, question);
        int status = api_fixture_ask(fixture, "POST", target, body, &page);
        if (atomic_exchange(&budget.fault.in, 0) != 0 || status == 200)
            return page;
        mem_free(page);
    }
    assert_int_equal(api_fixture_ask(fixture, "POST", target, body, &page), 200);
    return page;
}

static void put_documents(struct api_fixture *fixture, size_t count)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&body, "{\"index\":{\"_id\":\"%zu\"}}\n{\"n\":%zu}\n", i, i * 7 % count);
        if (i + 1 < count && body.len < 1 << 20)
            continue;
        buf_byte(&body, '\0');
        assert_int_equal(api_fixture_ask(fixture, "POST", "/s/_bulk", body.data, NULL), 200);
        buf_clear(&body);
    }
    buf_deinit(&body);
}

/* Returns: the ids of all pages in order. */
static char *scroll(const char *search, size_t count, bool failing)
{
    struct api_fixture fixture = {.budget = &budget};
    struct buf ids = BUF_INIT(BUF_UNLIMITED);
    char body[256], id[128];
    budget_init(&budget, LIMIT);
    api_fixture_open(&fixture);
    put_documents(&fixture, count);
    budget.chunk = 1;
    char *page = next_page(&fixture, "/s/_search?scroll=1h", search, failing);
    scroll_id_of(page, id, sizeof id);
    snprintf(body, sizeof body, "{\"scroll\":\"1h\",\"scroll_id\":\"%s\"}", id);
    while (note_ids(page, &ids) > 0) {
        mem_free(page);
        page = next_page(&fixture, "/_search/scroll", body, failing);
    }
    mem_free(page);
    api_fixture_close(&fixture);
    buf_byte(&ids, '\0');
    return ids.data;
}

static void compare_scrolls(const char *search, size_t count)
{
    budget.fault.end = ACCOUNT_RUNNING;
    char *expected = scroll(search, count, false), *found = scroll(search, count, true);
    assert_true(strcmp(found, expected) == 0);
    mem_free(expected);
    mem_free(found);
}

/* A page that was refused, or whose client had left, is not lost: a repeated request gets it. */
static void test_pages_of_a_scroll(void **state)
{
    (void)state;
    compare_scrolls("{\"size\":3}", 20);
    compare_scrolls("{\"size\":3,\"sort\":[{\"n\":\"desc\"}]}", 20);
    compare_scrolls("{\"size\":3,\"query\":{\"range\":{\"n\":{\"gte\":4}}}}", 20);
    if (getenv("TIDELOCK_TEST_LONG") != NULL) /* more than a cursor sorts at once */
        compare_scrolls("{\"size\":10000,\"sort\":[{\"n\":\"desc\"}]}", SEARCH_CURSOR_WINDOW + 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_pages_of_a_scroll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
