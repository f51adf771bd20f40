/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET / and GET /_timestamp: the server's name and version, and the newest timestamp.
 *
 * Clients of Elasticsearch read the version and the tagline before they send anything else, and
 * refuse servers that they do not recognize by them; the member "tidelock" has the real version.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/instant.h"
#include "base/zone.h"

static const char version_7[] = "{\"number\":\"7.10.2\",\"build_flavor\":\"default\",\"build_type\":\"tar\","
                                "\"build_hash\":\"747e1cc71def077253878a59143c1f785afa92b9\","
                                "\"build_date\":\"2021-01-13T00:42:12.435326Z\",\"build_snapshot\":false,"
                                "\"lucene_version\":\"8.7.0\",\"minimum_wire_compatibility_version\":\"6.8.0\","
                                "\"minimum_index_compatibility_version\":\"6.0.0-beta1\"}";

static const char version_8[] = "{\"number\":\"8.0.0\",\"build_flavor\":\"default\",\"build_type\":\"tar\","
                                "\"build_hash\":\"1b6a7ece17463df5ff54a3e1302d825889aa1161\","
                                "\"build_date\":\"2022-02-03T16:47:57.507843096Z\",\"build_snapshot\":false,"
                                "\"lucene_version\":\"9.0.0\",\"minimum_wire_compatibility_version\":\"7.17.0\","
                                "\"minimum_index_compatibility_version\":\"7.0.0\"}";

/*
 * OpenSearch's libraries name themselves, and expect OpenSearch's version. Its 1.x reported 7.10.2
 * to other libraries.
 */
static const char version_opensearch[] =
    "{\"distribution\":\"opensearch\",\"number\":\"2.19.1\",\"build_type\":\"tar\","
    "\"build_hash\":\"unknown\",\"build_date\":\"unknown\",\"build_snapshot\":false,"
    "\"lucene_version\":\"9.12.1\","
    "\"minimum_wire_compatibility_version\":\"7.10.0\","
    "\"minimum_index_compatibility_version\":\"7.0.0\"}";

static const char *version_for(const struct request *request)
{
    struct slice agent = exchange_header(request->exchange, "User-Agent");
    if (agent.len > 0 && strcasestr(agent.data, "opensearch") != NULL)
        return version_opensearch;
    return request->form.compatible_8 ? version_8 : version_7;
}

int handle_info(struct request *request)
{
    struct api *api = request->api;
    struct json_writer writer;
    int r = request_accept(request);
    if (r != 0)
        return r;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "name");
    json_string(&writer, api->options.node_name);
    json_key(&writer, "cluster_name");
    json_string(&writer, api->options.cluster_name);
    json_key(&writer, "cluster_uuid");
    json_string(&writer, slice_from(api->cluster_uuid));
    json_key(&writer, "version");
    json_raw(&writer, slice_from(version_for(request)));
    json_key(&writer, "tagline");
    json_string(&writer, SLICE_LIT("You Know, for Search"));
    json_key(&writer, "tidelock");
    json_begin(&writer, '{');
    json_key(&writer, "version");
    json_string(&writer, SLICE_LIT(TIDELOCK_VERSION));
    json_key(&writer, "time_zones");
    json_string(&writer, zones_version(request_zones(request)));
    json_end(&writer, '}');
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* How the clock of the machine was set, if it was. */
static void write_steps(struct request *request, struct json_writer *writer)
{
    struct journal_clock_steps steps;
    journal_clock_steps(request->api->journal, &steps);
    if (steps.count == 0)
        return;
    json_key(writer, "clock_steps");
    json_begin(writer, '{');
    json_key(writer, "count");
    json_u64(writer, steps.count);
    json_key(writer, "last_ms");
    json_i64(writer, steps.last_us / (int64_t)TL_MS);
    json_end(writer, '}');
}

int handle_timestamp(struct request *request)
{
    struct json_writer writer;
    int r = request_accept(request);
    if (r != 0)
        return r;
    tl_ts now = journal_stable(request->api->journal);
    request->exchange->timestamp = now;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "timestamp");
    json_u64(&writer, now);
    json_key(&writer, "oldest");
    json_u64(&writer, journal_oldest(request->api->journal));
    json_key(&writer, "time");
    json_string(&writer, instant_text(request->arena, now, 6));
    write_steps(request, &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}
