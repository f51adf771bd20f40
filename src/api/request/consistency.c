/* SPDX-License-Identifier: Apache-2.0 */
/* How far writes must have come, and how new reads must be; see consistency.h. */
#include "api/request/consistency.h"

#include <pthread.h>

#include "api/request/api_internal.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/mutex.h"
#include "core/catalog/catalog.h"
#include "core/catalog/cluster_settings.h"

#define REACH_SETTING "tidelock.distribute_timestamps"
#define READ_SETTING "tidelock.multi_version_concurrency_control"
#define REACH_PARAM "distribute_timestamps"
#define READ_PARAM "multi_version_concurrency_control"

/* The settings as of `catalog`. */
struct consistency {
    struct journal *journal;
    pthread_mutex_t lock;
    struct catalog *catalog; /* referenced; NULL: not read yet */
    enum journal_reach reach;
    bool contemporaneous;
};

static const struct {
    const char *name;
    enum journal_reach reach;
} reaches[] = {{"fast", JOURNAL_REACH_HOST}, {"strict", JOURNAL_REACH_GROUP}, {"cluster", JOURNAL_REACH_CLUSTER}};

struct consistency *consistency_open(struct journal *journal)
{
    struct consistency *consistency = mem_zalloc(sizeof *consistency);
    consistency->journal = journal;
    mutex_init(&consistency->lock);
    return consistency;
}

void consistency_close(struct consistency *consistency)
{
    if (consistency == NULL)
        return;
    catalog_unref(consistency->catalog);
    pthread_mutex_destroy(&consistency->lock);
    mem_free(consistency);
}

static bool find_reach(struct slice name, enum journal_reach *ret_reach)
{
    for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++)
        if (slice_is(name, reaches[i].name)) {
            *ret_reach = reaches[i].reach;
            return true;
        }
    return false;
}

/* Reads the settings again if the catalog has changed. Requires: the lock. */
static void refresh_settings(struct consistency *consistency)
{
    REQUIRE(mutex_is_held(&consistency->lock));
    struct catalog *catalog = journal_catalog(consistency->journal);
    struct arena arena = ARENA_INIT;
    if (catalog == consistency->catalog) {
        catalog_unref(catalog);
        return;
    }
    catalog_unref(consistency->catalog);
    consistency->catalog = catalog;
    consistency->reach = JOURNAL_REACH_GROUP;
    (void)find_reach(cluster_setting(catalog, REACH_SETTING, &arena), &consistency->reach);
    consistency->contemporaneous = cluster_setting_is(catalog, READ_SETTING, "contemporaneous", &arena);
    arena_deinit(&arena);
}

static enum journal_reach default_reach(struct consistency *consistency)
{
    pthread_mutex_lock(&consistency->lock);
    refresh_settings(consistency);
    enum journal_reach reach = consistency->reach;
    pthread_mutex_unlock(&consistency->lock);
    return reach;
}

static bool in_cluster(const struct request *request)
{
    return journal_host_number(request->api->journal) != 0;
}

static int refuse_alone(struct request *request, const char *name)
{
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "[%s] is not supported: this server is in no cluster, and every read sees every acknowledged "
                          "write; leave it out, or start the server with [--cluster]",
                          name);
}

/* Refuses parameters that a transaction, or a named timestamp, would leave without effect. */
static int check_effect(struct request *request, bool reach, bool read)
{
    bool commits = request_part(request, PART_TRANSACTION).len > 0;
    if (reach && request->transaction.len > 0 && !commits)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[" REACH_PARAM "] is not for a write inside a transaction, which others see when it is "
                              "committed: give it with the commit");
    if (read && request->transaction.len > 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "a transaction reads at its own timestamp: [" READ_PARAM "] is not allowed with it");
    if (read && (request_param(request, "timestamp").data != NULL || request_param(request, "as_of").data != NULL))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[timestamp] and [as_of] determine the state that is read: [" READ_PARAM
                              "] is not allowed with them");
    return 0;
}

int consistency_read(struct request *request)
{
    struct slice reach = request_param(request, REACH_PARAM), read = request_param(request, READ_PARAM);
    if (reach.data == NULL && read.data == NULL)
        return 0;
    if (!in_cluster(request))
        return refuse_alone(request, reach.data != NULL ? REACH_PARAM : READ_PARAM);
    request->reach_given = reach.data != NULL;
    if (reach.data != NULL && !find_reach(reach, &request->reach))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[" REACH_PARAM "] must be one of [fast, strict, cluster], got [%.*s]", SLICE_ARG(reach));
    if (slice_is(read, "contemporaneous"))
        request->read_mode = READ_CONTEMPORANEOUS;
    else if (slice_is(read, "nonblocking"))
        request->read_mode = READ_NONBLOCKING;
    else if (read.data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[" READ_PARAM "] must be one of [nonblocking, contemporaneous], got [%.*s]",
                              SLICE_ARG(read));
    return check_effect(request, reach.data != NULL, read.data != NULL);
}

int consistency_check_settings(struct request *request, const struct settings *settings)
{
    static const char *const names[] = {REACH_SETTING, READ_SETTING};
    for (size_t i = 0; i < sizeof names / sizeof *names && !in_cluster(request); i++) {
        const struct setting *setting = settings_find(settings, slice_from(names[i]));
        if (setting != NULL && setting->value_count > 0)
            return refuse_alone(request, names[i]);
    }
    return 0;
}

enum journal_reach consistency_reach(struct request *request)
{
    if (!in_cluster(request))
        return JOURNAL_REACH_HOST;
    return request->reach_given ? request->reach : default_reach(request->api->consistency);
}

bool consistency_is_contemporaneous(struct request *request)
{
    struct consistency *consistency = request->api->consistency;
    if (!in_cluster(request))
        return false;
    if (request->read_mode != READ_DEFAULT)
        return request->read_mode == READ_CONTEMPORANEOUS;
    pthread_mutex_lock(&consistency->lock);
    refresh_settings(consistency);
    bool contemporaneous = consistency->contemporaneous;
    pthread_mutex_unlock(&consistency->lock);
    return contemporaneous;
}

bool consistency_is_fast(struct api *api)
{
    return journal_host_number(api->journal) != 0 && default_reach(api->consistency) == JOURNAL_REACH_HOST;
}
