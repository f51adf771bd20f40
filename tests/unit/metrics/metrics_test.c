/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: pages contain all counts, of all threads, exactly in both formats.
 * Method: known numbers and pages; concurrent threads, whose sums are compared.
 */
#include "../../lib/unit.h"

#include "metrics/exposition.h"
#include "metrics/traffic.h"

#include <pthread.h>

static void expect_page(bool open_metrics, void (*write)(struct exposition *page), const char *wanted)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct exposition page;
    exposition_begin(&page, &text, open_metrics);
    write(&page);
    exposition_end(&page);
    buf_byte(&text, '\0');
    assert_string_equal(text.data, wanted);
    buf_deinit(&text);
}

static void write_numbers(struct exposition *page)
{
    exposition_family(page, EXPOSITION_COUNTER, "a_seconds", "Of a.");
    exposition_us(page, 1500000);
    exposition_family(page, EXPOSITION_GAUGE, "b", "Of b.");
    exposition_label(page, "x", "quote\" back\\ line\n.");
    exposition_label(page, "y", "");
    exposition_value(page, 18446744073709551615u);
    exposition_us(page, 1);
    exposition_us(page, 3000000);
}

static void test_exposition_writes_counters_and_gauges(void **state)
{
    (void)state;
    expect_page(false, write_numbers,
                "# HELP a_seconds_total Of a.\n# TYPE a_seconds_total counter\na_seconds_total 1.5\n"
                "# HELP b Of b.\n# TYPE b gauge\nb{x=\"quote\\\" back\\\\ line\\n.\",y=\"\"} 18446744073709551615\n"
                "b 0.000001\nb 3\n");
    expect_page(true, write_numbers,
                "# HELP a_seconds Of a.\n# TYPE a_seconds counter\na_seconds_total 1.5\n"
                "# HELP b Of b.\n# TYPE b gauge\nb{x=\"quote\\\" back\\\\ line\\n.\",y=\"\"} 18446744073709551615\n"
                "b 0.000001\nb 3\n# EOF\n");
}

static struct metric_reading reading;

static void write_sizes(struct exposition *page)
{
    exposition_family(page, EXPOSITION_HISTOGRAM, "h", "Of h.");
    exposition_label(page, "x", "1");
    exposition_sizes(page, &reading);
}

/*
 * Bounds are inclusive, larger values are in the last bucket, and printed buckets are cumulative.
 */
static void test_exposition_writes_cumulative_buckets(void **state)
{
    (void)state;
    struct metric_histogram histogram = {0};
    memset(&reading, 0, sizeof reading);
    metric_observe(&histogram, metric_sizes, 0);
    metric_observe(&histogram, metric_sizes, 1);
    metric_observe(&histogram, metric_sizes, 2);
    metric_observe(&histogram, metric_sizes, 3);
    metric_observe(&histogram, metric_sizes, 16385);
    metric_read_histogram(&histogram, &reading);
    expect_page(
        true, write_sizes,
        "# HELP h Of h.\n# TYPE h histogram\n"
        "h_bucket{x=\"1\",le=\"1.0\"} 2\nh_bucket{x=\"1\",le=\"2.0\"} 3\nh_bucket{x=\"1\",le=\"4.0\"} 4\n"
        "h_bucket{x=\"1\",le=\"8.0\"} 4\nh_bucket{x=\"1\",le=\"16.0\"} 4\nh_bucket{x=\"1\",le=\"32.0\"} 4\n"
        "h_bucket{x=\"1\",le=\"64.0\"} 4\nh_bucket{x=\"1\",le=\"128.0\"} 4\nh_bucket{x=\"1\",le=\"256.0\"} 4\n"
        "h_bucket{x=\"1\",le=\"512.0\"} 4\nh_bucket{x=\"1\",le=\"1024.0\"} 4\nh_bucket{x=\"1\",le=\"2048.0\"} 4\n"
        "h_bucket{x=\"1\",le=\"4096.0\"} 4\nh_bucket{x=\"1\",le=\"8192.0\"} 4\n"
        "h_bucket{x=\"1\",le=\"16384.0\"} 4\nh_bucket{x=\"1\",le=\"+Inf\"} 5\nh_sum{x=\"1\"} 16391\nh_count{x=\"1\"} "
        "5\n# EOF\n");
}

enum { THREADS = 20, EACH = 2000, ENDPOINTS = 3 };

static void *count_some(void *context)
{
    struct traffic *traffic = context;
    for (int i = 0; i < EACH; i++)
        traffic_record(traffic, (size_t)(i % 2), i % 4 == 0 ? 404 : i % 4 == 2 ? 777 : 200, (uint64_t)i);
    return NULL;
}

static uint64_t of_status(const struct traffic_reading *found, int status)
{
    for (size_t i = 0; i < TRAFFIC_STATUSES; i++)
        if (traffic_statuses[i] == status)
            return found->statuses[i];
    return 0;
}

static void test_traffic_adds_counts_of_all_threads(void **state)
{
    (void)state;
    struct traffic *traffic = traffic_new(ENDPOINTS);
    struct traffic_reading found;
    pthread_t threads[THREADS];
    uint64_t count = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_some, traffic), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(traffic_read(traffic, 0, &found));
    assert_int_equal(of_status(&found, 404), THREADS * EACH / 4);
    assert_int_equal(of_status(&found, 0), THREADS * EACH / 4); /* 777 is not counted separately */
    assert_true(traffic_read(traffic, 1, &found));
    assert_int_equal(of_status(&found, 200), THREADS * EACH / 2);
    for (size_t i = 0; i <= METRIC_BOUNDS; i++)
        count += found.time.buckets[i];
    assert_int_equal(count, THREADS * EACH / 2);
    assert_int_equal(found.time.sum, (uint64_t)THREADS * EACH * EACH / 4);
    assert_false(traffic_read(traffic, 2, &found));
    assert_int_equal(found.time.sum, 0);
    traffic_free(traffic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exposition_writes_counters_and_gauges),
        cmocka_unit_test(test_exposition_writes_cumulative_buckets),
        cmocka_unit_test(test_traffic_adds_counts_of_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
