/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of consumers of the changes that earlier versions have saved. */
#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "core/command/command.h"
#include "journal/journal.h"

static struct api_fixture fixture;

static int setup(void **state)
{
    (void)state;
    api_fixture_open(&fixture);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

/* A report as a server of an earlier version has logged it, applied when the next request has been answered. */
static void report_as_earlier(const char *name, const char *body)
{
    struct command *command = command_new(COMMAND_COPY_REPORT, DIALECT_7);
    command->on_done = command_free;
    command->object.name = slice_from(name);
    command->object.body = slice_from(body);
    journal_submit(fixture.journal, command, true);
    api_fixture_expect(&fixture, "PUT", "/_changes/_consumers/next", "{\"target\":\"x\",\"state\":\"ended\"}", 200,
                       "*");
}

static void expect_reported(const char *expected)
{
    api_fixture_expect(&fixture, "GET", "/_changes/_consumers/old?filter_path=consumers.reported_at", NULL, 200,
                       expected);
}

/*
 * They name the time "told". In a cluster that is being updated the later report counts, whichever version logged it.
 */
static void test_time_of_earlier_reports(void **state)
{
    (void)state;
    report_as_earlier("old", "{\"target\":\"x\",\"state\":\"following\",\"told\":5000000}");
    expect_reported("{\"consumers\":[{\"reported_at\":\"1970-01-01T00:00:05.000Z\"}]}");
    report_as_earlier("old", "{\"state\":\"following\",\"reported_at\":7000000}");
    expect_reported("{\"consumers\":[{\"reported_at\":\"1970-01-01T00:00:07.000Z\"}]}");
    report_as_earlier("old", "{\"state\":\"following\",\"told\":9000000}");
    expect_reported("{\"consumers\":[{\"reported_at\":\"1970-01-01T00:00:09.000Z\"}]}");
    api_fixture_expect(&fixture, "GET", "/_cat/copies?h=name,reported.at", NULL, 200, "next *");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_time_of_earlier_reports, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
