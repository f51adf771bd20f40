/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that Prometheus reads: format 0.0.4, or OpenMetrics 1.0.
 *
 *     exposition_begin(&page, &text, false);
 *     exposition_family(&page, EXPOSITION_COUNTER, "tidelock_commands", "Commands applied, by kind.");
 *     exposition_label(&page, "command", "write");
 *     exposition_value(&page, 12);
 *     exposition_end(&page);
 *
 * A family is named without `_total`, which counters get; a unit is the end of the name, as in `_seconds`. Families come one after
 * another, and all samples of one come together: that is the format's rule, and each is to be begun once.
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
    enum exposition_type type; /* of the family at hand */
    const char *name;          /* its, static */
    struct {
        const char *name;
        const char *value;
    } labels[EXPOSITION_LABELS_MAX]; /* of the next sample */
    size_t label_count;
};

void exposition_begin(struct exposition *page, struct buf *text, bool open_metrics);
void exposition_end(struct exposition *page);

/* Begins a family. Requires: `name` is one, `help` is a line without a backslash. Both live as long as the page. */
void exposition_family(struct exposition *page, enum exposition_type type, const char *name, const char *help);

/* Gives the next sample a label; both live until then. */
void exposition_label(struct exposition *page, const char *name, const char *value);

/* A sample of a counter or a gauge: as it is, or of microseconds, as seconds. */
void exposition_value(struct exposition *page, uint64_t value);
void exposition_us(struct exposition *page, uint64_t us);

/* A sample of a histogram: of times in microseconds, shown as seconds, or of plain numbers. */
void exposition_times(struct exposition *page, const struct metric_reading *reading);
void exposition_sizes(struct exposition *page, const struct metric_reading *reading);

#endif
