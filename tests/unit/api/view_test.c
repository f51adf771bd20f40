/* SPDX-License-Identifier: Apache-2.0 */
/* Views of requests that are replaced, and the pins of the views: handlers of the test run in the place of one. */
#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/reply.h"
#include "api/request/request.h"
#include "journal/journal.h"

static struct api_fixture fixture;
static request_handler *handler; /* of GET / */
static struct view views[3];     /* that the handler had, in order */

int __real_handle_info(struct request *request);
int __wrap_handle_info(struct request *request);

int __wrap_handle_info(struct request *request)
{
    return handler != NULL ? handler(request) : __real_handle_info(request);
}

static int setup(void **state)
{
    (void)state;
    handler = NULL;
    api_fixture_open(&fixture);
    return 0;
}

/* Closing the journal fails if anything is pinned. */
static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

/* Writes, so that a later timestamp is stable. On a worker: the journal has threads of its own. */
static void write_document(void)
{
    assert_true(api_fixture_ask(&fixture, "PUT", "/a/_doc/1", "{}", NULL) < 300);
}

static int third(struct request *request)
{
    views[2] = request->view;
    return __real_handle_info(request);
}

static int second(struct request *request)
{
    views[1] = request->view;
    write_document();
    request_set_stable_view(request);
    return request_work(request, third);
}

static int first(struct request *request)
{
    request_set_stable_view(request);
    views[0] = request->view;
    return request_work(request, second);
}

static void test_view_replaced_on_worker_moves_its_pin(void **state)
{
    (void)state;
    write_document();
    handler = first;
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/", NULL, NULL), 200);
    assert_int_equal(views[0].ts, views[1].ts);
    assert_true(views[2].ts > views[1].ts);
}

static int replace_and_reply(struct request *request)
{
    write_document();
    request_set_stable_view(request);
    return __real_handle_info(request);
}

static int work_once(struct request *request)
{
    request_set_stable_view(request);
    return request_work(request, replace_and_reply);
}

static void test_view_replaced_before_reply_leaves_no_pin(void **state)
{
    (void)state;
    write_document();
    handler = work_once;
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/", NULL, NULL), 200);
}

static int look_and_reply(struct request *request)
{
    write_document();
    request_look_again(request);
    views[1] = request->view;
    request_look_away(request);
    return __real_handle_info(request);
}

static int work_and_look(struct request *request)
{
    request_set_stable_view(request);
    views[0] = request->view;
    return request_work(request, look_and_reply);
}

static void test_view_released_and_taken_again_leaves_no_pin(void **state)
{
    (void)state;
    write_document();
    handler = work_and_look;
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/", NULL, NULL), 200);
    assert_true(views[1].ts > views[0].ts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_view_replaced_on_worker_moves_its_pin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_view_replaced_before_reply_leaves_no_pin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_view_released_and_taken_again_leaves_no_pin, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
