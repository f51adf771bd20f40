/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of a copy's source: which one is asked, and what each must have applied; see replica.h,
 * invariants 11 and 12.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

struct source_host {
    char *url;
    _Atomic bool checked; /* it has shown the source's cluster_uuid */
    _Atomic bool foreign; /* it has shown another one: it is not asked again */
    _Atomic bool odd;     /* it has shown none, which was reported */
};

struct source_hosts {
    struct source_host *hosts;
    size_t count;
    char *uuid;              /* of the source; NULL: not known yet */
    _Atomic size_t current;  /* the number of the host that is asked */
    _Atomic size_t answered; /* the number of the host that answered last */
    _Atomic uint64_t newest; /* timestamp that any host has named */
    _Atomic uint64_t unanswered; /* requests, ever, see source_hosts_unanswered() */
};

struct source_hosts *source_hosts_new(const char *urls)
{
    struct source_hosts *hosts = mem_zalloc(sizeof *hosts);
    size_t most = 1;
    for (const char *at = urls; *at != '\0'; at++)
        most += *at == ',';
    hosts->hosts = mem_zalloc(most * sizeof *hosts->hosts);
    for (struct slice rest = slice_from(urls); rest.len > 0;) {
        size_t len = slice_find_byte(rest, ','), end = len;
        while (end > 0 && rest.data[end - 1] == '/')
            end--;
        if (end > 0)
            hosts->hosts[hosts->count++].url = mem_strdup(rest.data, end);
        rest = slice_from_offset(rest, len + 1);
    }
    return hosts;
}

void source_hosts_free(struct source_hosts *hosts)
{
    if (hosts == NULL)
        return;
    for (size_t i = 0; i < hosts->count; i++)
        mem_free(hosts->hosts[i].url);
    mem_free(hosts->hosts);
    mem_free(hosts->uuid);
    mem_free(hosts);
}

size_t source_hosts_count(const struct source_hosts *hosts)
{
    return hosts->count;
}

const char *source_hosts_url(const struct source_hosts *hosts)
{
    return hosts->hosts[atomic_load(&hosts->current)].url;
}

void source_hosts_set_uuid(struct source_hosts *hosts, const char *uuid)
{
    hosts->uuid = mem_strdup(uuid, strlen(uuid));
    atomic_store(&hosts->hosts[atomic_load(&hosts->current)].checked, true);
}

tl_ts source_hosts_newest(const struct source_hosts *hosts)
{
    return atomic_load(&hosts->newest);
}

uint64_t source_hosts_unanswered(const struct source_hosts *hosts)
{
    return atomic_load(&hosts->unanswered);
}

static void note_timestamp(struct source_hosts *hosts, tl_ts ts)
{
    uint64_t newest = atomic_load(&hosts->newest);
    while (newest < ts && !atomic_compare_exchange_weak(&hosts->newest, &newest, ts)) {
    }
}

void source_hosts_leave(struct source_hosts *hosts, const char *url)
{
    size_t number = atomic_load(&hosts->current), next = number;
    if (strcmp(hosts->hosts[number].url, url) != 0) /* another thread has left it already */
        return;
    do
        next = (next + 1) % hosts->count;
    while (next != number && atomic_load(&hosts->hosts[next].foreign));
    (void)atomic_compare_exchange_strong(&hosts->current, &number, next);
}

/* A request to a host that is asked no more is given up: it may hang as the host does. */
static bool gives_up(const struct client *client)
{
    return replica_gives_up(client) || strcmp(client->url, source_hosts_url(client->context)) != 0;
}

void source_client_init(struct client *client, struct source_hosts *hosts)
{
    client_init(client, source_hosts_url(hosts));
    client->absent_advice = "is a server running? `tidelock serve` starts one, --from names another";
    client->context = hosts;
    client->gives_up = gives_up;
}

/*
 * Returns: the cluster_uuid that the last answer shows; NULL: none. Neither a proxy's page has one
 * nor a server that has not joined a cluster yet, which Elasticsearch shows as "_na_".
 */
static const char *shown_uuid(const struct client *client)
{
    const char *uuid = yyjson_get_str(yyjson_obj_get(client_json(client), "cluster_uuid"));
    return uuid == NULL || *uuid == '\0' || strcmp(uuid, "_na_") == 0 ? NULL : uuid;
}

/*
 * Assumes: the client's URL is the host's. Returns: whether it has shown that it is of the source.
 */
static bool check_host(struct client *client, const struct source_hosts *hosts, struct source_host *host,
                       uint64_t timeout_us)
{
    if (hosts->uuid == NULL || atomic_load(&host->checked))
        return true;
    if (client_request(client, "GET", "/", SLICE_NONE, timeout_us) != 200)
        return false;
    const char *uuid = shown_uuid(client);
    if (uuid == NULL) {
        if (!atomic_exchange(&host->odd, true))
            replica_print("%s does not show which cluster it is of; trying again", url_without_password(host->url));
        return false;
    }
    bool same = strcmp(uuid, hosts->uuid) == 0;
    atomic_store(same ? &host->checked : &host->foreign, true);
    if (!same)
        replica_print("%s is no host of the source, and is not asked again", url_without_password(host->url));
    return same;
}

static void note_answer(struct source_hosts *hosts, const struct client *client)
{
    size_t number = atomic_load(&hosts->current);
    note_timestamp(hosts, client->timestamp);
    if (strcmp(hosts->hosts[number].url, client->url) == 0 && atomic_exchange(&hosts->answered, number) != number)
        replica_print("continuing with the source's host %s", url_without_password(client->url));
}

static bool is_away(const struct client *client, long status)
{
    if (status == 0)
        return !client_is_too_large(client) && !replica_stopping();
    /* A transaction is of one host: as long as that answers, it is asked again. */
    return !client->in_transaction && (status == 502 || status == 503 || status == 504);
}

bool source_client_aim(struct client *client, uint64_t timeout_us)
{
    struct source_hosts *hosts = client->context;
    struct source_host *host = &hosts->hosts[atomic_load(&hosts->current)];
    client->after = 0;
    client_set_url(client, host->url);
    if (check_host(client, hosts, host, timeout_us))
        return true;
    source_hosts_leave(hosts, host->url);
    return false;
}

long source_request(struct client *client, const char *method, const char *path, struct slice body, uint64_t timeout_us)
{
    REQUIRE(client->context != NULL);
    struct source_hosts *hosts = client->context;
    if (!source_client_aim(client, timeout_us))
        return 0;
    client->after = atomic_load(&hosts->newest);
    long status = client_request(client, method, path, body, timeout_us);
    if (status == 0 || (status >= 502 && status <= 504))
        atomic_fetch_add(&hosts->unanswered, 1);
    if (is_away(client, status))
        source_hosts_leave(hosts, client->url);
    else if (status != 0)
        note_answer(hosts, client);
    return status;
}
