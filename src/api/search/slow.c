/* SPDX-License-Identifier: Apache-2.0 */
/* Searches that took long; see slow.h. */
#include "api/search/slow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/request/access_log.h"
#include "base/log.h"
#include "core/catalog/catalog.h"
#include "query/search.h"

/* Logged bytes of a body; the log cuts longer lines. */
#define SOURCE_BYTES_LOGGED 1000

/* Elasticsearch's levels of the thresholds, the highest first. */
static const struct level {
    const char *name;
    const char *upper;
    enum log_level ours;
} levels[] = {{"warn", "WARN", LOG_WARNING},
              {"info", "INFO", LOG_INFO},
              {"debug", "DEBUG", LOG_DEBUG},
              {"trace", "TRACE", LOG_DEBUG}};

enum { LEVELS = sizeof levels / sizeof *levels };

/* A time that index_settings.def has accepted. Returns: false: it is absent, or -1, off. */
static bool read_time(struct slice text, uint64_t *ret_us)
{
    static const struct {
        const char *name;
        double us;
    } units[] = {{"nanos", 1e-3}, {"micros", 1}, {"ms", 1e3},    {"s", 1e6},
                 {"m", 60e6},     {"h", 3600e6}, {"d", 86400e6}, {"", 1e3}};
    size_t digits = 0;
    uint64_t number;
    while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    if (text.data == NULL || !slice_to_u64(slice_make(text.data, digits), &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (slice_is(slice_from_offset(text, digits), units[i].name)) {
            *ret_us = (uint64_t)((double)number * units[i].us);
            return true;
        }
    return false;
}

/* Returns: the highest level whose threshold was reached, NULL: none. */
static const struct level *level_of(const struct settings *settings, const char *phase, uint64_t took_us)
{
    struct slice lowest = settings_get(settings, SLICE_LIT("index.search.slowlog.level"));
    char key[80];
    for (int i = 0; i < LEVELS; i++) {
        uint64_t threshold;
        snprintf(key, sizeof key, "index.search.slowlog.threshold.%s.%s", phase, levels[i].name);
        if (read_time(settings_get(settings, slice_from(key)), &threshold) && took_us >= threshold)
            return &levels[i];
        if (lowest.data != NULL && lowest.len == strlen(levels[i].upper) &&
            strncasecmp(lowest.data, levels[i].upper, lowest.len) == 0)
            return NULL;
    }
    return NULL;
}

struct slow_log_entry {
    struct request *request;
    struct slice source;
    uint64_t total;
    uint64_t took_us;
    unsigned shards;
};

static void log_phase(const struct slow_log_entry *entry, const struct catalog_index *index, const char *phase)
{
    const struct level *level = level_of(index->settings, phase, entry->took_us);
    if (level == NULL || !log_is_enabled(level->ours))
        return;
    char client[ACCESS_LOG_CLIENT_BYTES];
    size_t len = entry->source.len < SOURCE_BYTES_LOGGED ? entry->source.len : SOURCE_BYTES_LOGGED;
    log_line(level->ours,
             "index.search.slowlog.%s: [%.*s] took[%.1fms], took_millis[%" PRIu64 "], total_hits[%" PRIu64
             " hits], total_shards[%u], source[%.*s], by %s",
             phase, SLICE_ARG(index->name), (double)entry->took_us / 1e3, entry->took_us / TL_MS, entry->total,
             entry->shards, (int)len, entry->source.data == NULL ? "" : entry->source.data,
             access_log_client(entry->request, client));
}

/* Whether a threshold is set; most indices have none. The settings are sorted by key. */
static bool has_thresholds(const struct settings *settings)
{
    const struct slice prefix = SLICE_LIT("index.search.slowlog.threshold.");
    size_t low = 0, high = settings->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(settings->items[middle].key, prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < settings->count && slice_starts_with(settings->items[low].key, prefix);
}

void slow_search(struct request *request, const struct search_call *call, struct slice source, uint64_t total,
                 int64_t begun_us)
{
    const struct slow_log_entry entry = {request, source, total, (uint64_t)(search_clock_us() - begun_us),
                                         call->shard_count};
    for (size_t i = 0; i < call->context.index_count; i++) {
        const struct search_index *searched = &call->context.indices[i];
        const struct catalog_index *index = catalog_index_by_number(call->catalog, searched->number);
        if (!has_thresholds(index->settings))
            continue;
        log_phase(&entry, index, "query");
        if (*searched->fetched)
            log_phase(&entry, index, "fetch");
    }
}
