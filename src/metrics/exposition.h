/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes metrics in the text format of Prometheus, 0.0.4, or of OpenMetrics 1.0.
 *
 *     exposition_begin(&page, &text, false);
 *     exposition_family(&page, EXPOSITION_COUNTER, "tidelock_commands", "Commands applied, by kind.");
 *     exposition_label(&page, "command", "write");
 *     exposition_value(&page, 12);
 *     exposition_end(&page);
 *
 * The name of a family has no `_total`, which is added for counters. A unit is the suffix of the
 * name, as in `_seconds`. The format requires that all samples of a family are adjacent, so a
 * family is begun once.
 */
#ifndef TL_METRICS_EXPOSITION_H
#define TL_METRICS_EXPOSITION_H

#include "base/buf.h"
#include "metrics/metrics.h"

enum exposition_type { EXPOSITION_COUNTER, EXPOSITION_GAUGE, EXPOSITION_HISTOGRAM };

enum { EXPOSITION_LABELS_MAX = 4 };

struct exposition {
    struct buf *text;
    bool open_metrics;
    enum exposition_type type; /* of the current family */
    const char *name;          /* of the current family; static */
    struct {
        const char *name;
        const char *value;
    } labels[EXPOSITION_LABELS_MAX]; /* of the next sample */
    size_t label_count;
};

/* Starts a page that is appended to `text`. Owns: the caller, `text`. */
void exposition_begin(struct exposition *page, struct buf *text, bool open_metrics);
/* Writes the end of the page. */
void exposition_end(struct exposition *page);

/*
 * Begins a family. Assumes: `name` is a valid metric name, `help` a line without a backslash. Both
 * outlive the page.
 */
void exposition_family(struct exposition *page, enum exposition_type type, const char *name, const char *help);

/* Adds a label to the next sample; `name` and `value` must stay valid until that is written. */
void exposition_label(struct exposition *page, const char *name, const char *value);

/*
 * Write a sample of a counter or a gauge: the value itself, or microseconds converted to seconds.
 */
void exposition_value(struct exposition *page, uint64_t value);
void exposition_us(struct exposition *page, uint64_t us);

/* Write a histogram: of times in microseconds converted to seconds, or of plain numbers. */
void exposition_times(struct exposition *page, const struct metric_reading *reading);
void exposition_sizes(struct exposition *page, const struct metric_reading *reading);

#endif
