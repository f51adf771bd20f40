/* SPDX-License-Identifier: Apache-2.0 */
/* How much is logged; see log_settings.h. */
#include "api/cluster/log_settings.h"

#include "base/arena.h"
#include "base/log.h"
#include "core/catalog/catalog.h"
#include "core/catalog/cluster_settings.h"
#include "journal/journal.h"

/* Returns: the level by Elasticsearch's name; LOG_LEVEL_COUNT: the name is unknown. */
static enum log_level level_of(struct slice text)
{
    static const struct {
        const char *name;
        enum log_level level;
    } levels[] = {
        {"trace", LOG_DEBUG}, {"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warn", LOG_WARNING}, {"error", LOG_ERROR}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (slice_is_ignoring_case(text, levels[i].name))
            return levels[i].level;
    return LOG_LEVEL_COUNT;
}

void log_settings_apply(struct journal *journal)
{
    struct arena arena = ARENA_INIT;
    struct catalog *catalog = journal_catalog(journal);
    log_override_level(level_of(cluster_setting(catalog, "logger._root", &arena)));
    catalog_unref(catalog);
    arena_deinit(&arena);
}
