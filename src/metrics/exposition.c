/* SPDX-License-Identifier: Apache-2.0 */
/* The text format of Prometheus; see exposition.h. */
#include "metrics/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/types.h"

void exposition_begin(struct exposition *page, struct buf *text, bool open_metrics)
{
    *page = (struct exposition){.text = text, .open_metrics = open_metrics};
}

void exposition_end(struct exposition *page)
{
    if (page->open_metrics)
        buf_lit(page->text, "# EOF\n");
}

/*
 * The family of a counter has the suffix `_total` of its samples in format 0.0.4, not in
 * OpenMetrics.
 */
static const char *family_end(const struct exposition *page)
{
    return page->type == EXPOSITION_COUNTER && !page->open_metrics ? "_total" : "";
}

void exposition_family(struct exposition *page, enum exposition_type type, const char *name, const char *help)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    page->type = type;
    page->name = name;
    buf_printf(page->text, "# HELP %s%s %s\n", name, family_end(page), help);
    buf_printf(page->text, "# TYPE %s%s %s\n", name, family_end(page), types[type]);
}

void exposition_label(struct exposition *page, const char *name, const char *value)
{
    REQUIRE(page->label_count < EXPOSITION_LABELS_MAX);
    page->labels[page->label_count].name = name;
    page->labels[page->label_count++].value = value;
}

/* Escapes backslashes, quotes and line ends. */
static void write_label(struct buf *text, const char *name, const char *value)
{
    buf_printf(text, "%s=\"", name);
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '\n')
            buf_lit(text, "\\n");
        else if (*at == '"' || *at == '\\')
            buf_printf(text, "\\%c", *at);
        else
            buf_byte(text, *at);
    }
    buf_byte(text, '"');
}

/* Writes the name with `end`, the labels, and a label `le` if that is not NULL. */
static void write_head(const struct exposition *page, const char *end, const char *le)
{
    struct buf *text = page->text;
    buf_printf(text, "%s%s", page->name, end);
    if (page->label_count > 0 || le != NULL)
        buf_byte(text, '{');
    for (size_t i = 0; i < page->label_count; i++) {
        if (i > 0)
            buf_byte(text, ',');
        write_label(text, page->labels[i].name, page->labels[i].value);
    }
    if (le != NULL && page->label_count > 0)
        buf_byte(text, ',');
    if (le != NULL)
        write_label(text, "le", le);
    if (page->label_count > 0 || le != NULL)
        buf_byte(text, '}');
    buf_byte(text, ' ');
}

static const char *sample_end(const struct exposition *page)
{
    return page->type == EXPOSITION_COUNTER ? "_total" : "";
}

/* Writes seconds exactly, without trailing zeros. */
static void write_seconds(struct buf *text, uint64_t us)
{
    char places[8];
    buf_printf(text, "%" PRIu64, us / TL_SECOND);
    if (us % TL_SECOND == 0)
        return;
    int len = snprintf(places, sizeof places, "%06" PRIu64, us % TL_SECOND);
    while (places[len - 1] == '0')
        len--;
    buf_printf(text, ".%.*s", len, places);
}

void exposition_value(struct exposition *page, uint64_t value)
{
    write_head(page, sample_end(page), NULL);
    buf_printf(page->text, "%" PRIu64 "\n", value);
    page->label_count = 0;
}

void exposition_us(struct exposition *page, uint64_t us)
{
    write_head(page, sample_end(page), NULL);
    write_seconds(page->text, us);
    buf_byte(page->text, '\n');
    page->label_count = 0;
}

/* Writes a bound into `to`, followed by a NUL. OpenMetrics requires floating-point syntax. */
static void write_bound(const struct exposition *page, uint64_t bound, bool times, struct buf *to)
{
    buf_clear(to);
    if (times)
        write_seconds(to, bound);
    else
        buf_printf(to, "%" PRIu64, bound);
    if (page->open_metrics && (!times || bound % TL_SECOND == 0))
        buf_lit(to, ".0");
    buf_byte(to, '\0');
}

static void write_histogram(struct exposition *page, const struct metric_reading *reading, const uint64_t *bounds,
                            bool times)
{
    struct buf le = BUF_INIT(BUF_UNLIMITED);
    uint64_t count = 0;
    for (size_t i = 0; i < METRIC_BOUNDS; i++) {
        count += reading->buckets[i];
        write_bound(page, bounds[i], times, &le);
        write_head(page, "_bucket", le.data);
        buf_printf(page->text, "%" PRIu64 "\n", count);
    }
    count += reading->buckets[METRIC_BOUNDS];
    write_head(page, "_bucket", "+Inf");
    buf_printf(page->text, "%" PRIu64 "\n", count);
    write_head(page, "_sum", NULL);
    if (times)
        write_seconds(page->text, reading->sum);
    else
        buf_printf(page->text, "%" PRIu64, reading->sum);
    buf_byte(page->text, '\n');
    write_head(page, "_count", NULL);
    buf_printf(page->text, "%" PRIu64 "\n", count);
    page->label_count = 0;
    buf_deinit(&le);
}

void exposition_times(struct exposition *page, const struct metric_reading *reading)
{
    write_histogram(page, reading, metric_times_us, true);
}

void exposition_sizes(struct exposition *page, const struct metric_reading *reading)
{
    write_histogram(page, reading, metric_sizes, false);
}
