/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the thread of a connection does not compare hundreds of wildcards of a path with hundreds of indices: others
 * wait for it.
 * Method: the functions that compare are counted on the thread that asks, and on others.
 */
#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/catalog/catalog.h"

enum { INDICES = 200, NAME_BYTES = 200, WILDCARDS = 600 };

static struct api_fixture fixture;
static pthread_t asking;
static atomic_uint resolved_there, resolved_elsewhere;
static atomic_ullong compared;

static void count_call(void)
{
    atomic_fetch_add(pthread_equal(pthread_self(), asking) ? &resolved_there : &resolved_elsewhere, 1);
}

bool __real_json_wildcard(struct slice pattern, struct slice text);
bool __wrap_json_wildcard(struct slice pattern, struct slice text);

bool __wrap_json_wildcard(struct slice pattern, struct slice text)
{
    atomic_fetch_add(&compared, 1);
    return __real_json_wildcard(pattern, text);
}

int __real_catalog_resolve(const struct catalog *catalog, struct slice expression,
                           const struct catalog_options *options, enum dialect dialect, struct arena *arena,
                           struct catalog_target **ret_targets, size_t *ret_count, struct problem *ret_problem);
int __wrap_catalog_resolve(const struct catalog *catalog, struct slice expression,
                           const struct catalog_options *options, enum dialect dialect, struct arena *arena,
                           struct catalog_target **ret_targets, size_t *ret_count, struct problem *ret_problem);

int __wrap_catalog_resolve(const struct catalog *catalog, struct slice expression,
                           const struct catalog_options *options, enum dialect dialect, struct arena *arena,
                           struct catalog_target **ret_targets, size_t *ret_count, struct problem *ret_problem)
{
    count_call();
    return __real_catalog_resolve(catalog, expression, options, dialect, arena, ret_targets, ret_count, ret_problem);
}

struct request;
enum dialect __real_dialect_of_indices(struct request *request, struct slice expression);
enum dialect __wrap_dialect_of_indices(struct request *request, struct slice expression);

enum dialect __wrap_dialect_of_indices(struct request *request, struct slice expression)
{
    count_call();
    return __real_dialect_of_indices(request, expression);
}

static int setup(void **state)
{
    (void)state;
    char target[NAME_BYTES + 16];
    asking = pthread_self();
    api_fixture_open(&fixture);
    for (int i = 0; i < INDICES; i++) {
        memset(target, 'a', sizeof target);
        snprintf(target + 1 + NAME_BYTES, 8, "%03d", i);
        target[0] = '/';
        assert_int_equal(api_fixture_ask(&fixture, "PUT", target, NULL, NULL), 200);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

/* Asks with `count` names in the place of '@'. Returns: the status. */
static int ask(const char *form, size_t count, const char *name, const char *comma)
{
    struct buf target = BUF_INIT(BUF_UNLIMITED);
    const char *at = strchr(form, '@');
    buf_append(&target, form, (size_t)(at - form));
    for (size_t i = 0; i < count; i++)
        buf_printf(&target, "%s%s", i == 0 ? "" : comma, name);
    buf_printf(&target, "%s", at + 1);
    buf_byte(&target, '\0');
    resolved_there = resolved_elsewhere = 0;
    compared = 0;
    int status = api_fixture_ask(&fixture, "GET", target.data, NULL, NULL);
    buf_deinit(&target);
    return status;
}

static const char *const forms[] = {"/@/_search?size=0", "/@/_settings", "/@/_mapping", "/_cat/indices/@",
                                    "/_search?size=0&index=@"};

static void test_many_wildcards_are_a_workers(void **state)
{
    static const char *const names[][2] = {{"*a*b*", ","}, {"*b*", "%2C"}, {"%2Ab%2a", "%2c"}};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            (void)ask(forms[i], WILDCARDS, names[k][0], names[k][1]);
            if (resolved_there > 0 || resolved_elsewhere == 0)
                fail_msg("%s with %s: %u there, %u elsewhere", forms[i], names[k][0], resolved_there,
                         resolved_elsewhere);
        }
}

static void test_few_names_are_resolved_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        assert_int_equal(ask(forms[i], 3, "a*", ","), 200);
        assert_true(resolved_there > 0);
        assert_int_equal(resolved_elsewhere, 0);
    }
    (void)ask("/@/_search?size=0&ignore_unavailable=true", WILDCARDS, "none", ",");
    assert_true(resolved_there > 0);
    assert_int_equal(resolved_elsewhere, 0);
}

/* Comparisons with long names count as more, so fewer are made before the request is refused. */
static void test_comparisons_are_limited(void **state)
{
    const uint64_t looks =
        catalog_looks(CATALOG_WEIGH_REQUEST, SLICE_LIT("*b*"), slice_make((char[NAME_BYTES]){0}, NAME_BYTES));
    (void)state;
    assert_in_range(looks, 6, 10);
    assert_int_equal(ask("/@/_settings", 3000, "*b*", ","), 400);
    assert_in_range(compared, INDICES, 2 * CATALOG_LOOKS_MAX / looks);
    assert_int_equal(ask("/@/_mapping", 3000, "*b*", ","), 400);
    assert_in_range(compared, INDICES, 2 * CATALOG_LOOKS_MAX / looks + INDICES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_wildcards_are_a_workers),
        cmocka_unit_test(test_few_names_are_resolved_at_once),
        cmocka_unit_test(test_comparisons_are_limited),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
