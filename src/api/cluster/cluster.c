/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _cluster and _nodes, as far as clients look at them before they work.
 */
#include <ctype.h>

#include "api/request/api_internal.h"
#include "api/request/consistency.h"
#include "api/request/followers.h"
#include "api/cluster/cluster_state.h"
#include "api/cluster/log_settings.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/name_list.h"
#include "api/search/search_service.h"
#include "base/clock.h"
#include "core/catalog/settings.h"
#include "json/each.h"

/* --- Health ------------------------------------------------------------------------------------------------------- */

#define WAIT_DEFAULT_US ((int64_t)(30 * TL_SECOND))

/* A request's wait; in its arena. */
struct health_wait {
    struct follower follower;
    struct slice status; /* conditions as given; data NULL: none */
    struct slice nodes;
    struct slice active_shards;
};

static bool status_is_reached(const char *status, struct slice wanted)
{
    return wanted.len == 0 || wanted.data[0] == 'r' || wanted.data[0] == 'R' || strcmp(status, "green") == 0 ||
           strncasecmp(wanted.data, status, wanted.len) == 0;
}

/* The forms of "2", ">=2", "ge(2)", "<3"…, and how far from the number the count of nodes may be. */
static const struct nodes_form {
    const char *prefix;
    int low, high;
    size_t end; /* bytes after the number, whichever they are */
} nodes_forms[] = {{">=", INT32_MIN, 0, 0},   {"<=", 0, INT32_MAX, 0},  {">", INT32_MIN, -1, 0},
                   {"<", 1, INT32_MAX, 0},    {"ge(", INT32_MIN, 0, 1}, {"le(", 0, INT32_MAX, 1},
                   {"gt(", INT32_MIN, -1, 1}, {"lt(", 1, INT32_MAX, 1}, {"", 0, 0, 0}};

static const struct nodes_form *nodes_form(struct slice wanted)
{
    const struct nodes_form *form = nodes_forms;
    while (!slice_starts_with(wanted, slice_from(form->prefix)))
        form++; /* the last begins every text */
    return form;
}

/* As Java's Integer.parseInt(). */
static bool read_int(struct slice text, int64_t *ret_value)
{
    return slice_to_i64(text, ret_value) && *ret_value >= INT32_MIN && *ret_value <= INT32_MAX;
}

/* Returns: 0; REQUEST_REFUSED: the condition has no number. */
static int check_nodes(struct request *request, struct slice wanted, bool *ret_reached, size_t nodes)
{
    const struct nodes_form *form = nodes_form(wanted);
    struct slice number = slice_from_offset(wanted, strlen(form->prefix));
    int64_t value, count = (int64_t)nodes;
    *ret_reached = wanted.len == 0;
    if (wanted.len == 0)
        return 0;
    number.len -= number.len < form->end ? number.len : form->end;
    if (!read_int(number, &value))
        return request_refuse(request, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(number));
    *ret_reached = value - count >= form->low && value - count <= form->high;
    return 0;
}

static bool shards_are_reached(const struct cluster_health *health, struct slice wanted)
{
    int64_t value;
    if (slice_is(wanted, "all"))
        return health->unassigned == 0;
    return !read_int(wanted, &value) || value <= health->active;
}

static void write_numbers(struct json_writer *writer, const struct cluster_health *health)
{
    json_key(writer, "active_primary_shards");
    json_u64(writer, health->primaries);
    json_key(writer, "active_shards");
    json_u64(writer, health->active);
    json_key(writer, "relocating_shards");
    json_u64(writer, 0);
    json_key(writer, "initializing_shards");
    json_u64(writer, 0);
    json_key(writer, "unassigned_shards");
    json_u64(writer, health->unassigned);
}

static void write_shard_healths(struct json_writer *writer, const struct cluster_nodes *nodes,
                                const struct catalog_index *index)
{
    json_key(writer, "shards");
    json_begin(writer, '{');
    for (uint32_t shard = 0; shard < index->shard_count; shard++) {
        char name[16];
        snprintf(name, sizeof name, "%u", shard);
        json_key(writer, name);
        json_begin(writer, '{');
        json_key(writer, "status");
        json_string(writer, slice_from(index_health(nodes, index)));
        json_key(writer, "primary_active");
        json_bool(writer, true);
        struct cluster_health all = {.nodes = nodes};
        cluster_health_add(&all, index);
        write_numbers(writer, &(struct cluster_health){.primaries = 1,
                                                       .active = all.active / index->shard_count,
                                                       .unassigned = all.unassigned / index->shard_count});
        json_end(writer, '}');
    }
    json_end(writer, '}');
}

static void write_index_health(struct json_writer *writer, const struct cluster_nodes *nodes,
                               const struct catalog_index *index, bool shards)
{
    struct cluster_health health = {.nodes = nodes};
    cluster_health_add(&health, index);
    json_key_slice(writer, index->name);
    json_begin(writer, '{');
    json_key(writer, "status");
    json_string(writer, slice_from(index_health(nodes, index)));
    json_key(writer, "number_of_shards");
    json_u64(writer, index->shard_count);
    json_key(writer, "number_of_replicas");
    json_u64(writer, index->replica_count);
    write_numbers(writer, &health);
    if (shards)
        write_shard_healths(writer, nodes, index);
    json_end(writer, '}');
}

/* `missing`: an index that was named is not there, which makes it red. */
static void write_health(struct request *request, const struct index_set *set, const struct cluster_health *health,
                         bool missing, bool timed_out)
{
    struct json_writer writer;
    struct slice level = request_param(request, "level");
    reply_begin(request, timed_out ? 408 : 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "cluster_name");
    json_string(&writer, request->api->options.cluster_name);
    json_key(&writer, "status");
    json_string(&writer, missing ? SLICE_LIT("red") : slice_from(cluster_health_status(health)));
    json_key(&writer, "timed_out");
    json_bool(&writer, timed_out);
    json_key(&writer, "number_of_nodes");
    json_u64(&writer, health->nodes->count);
    json_key(&writer, "number_of_data_nodes");
    json_u64(&writer, health->nodes->count);
    write_numbers(&writer, health);
    if (request->form.compatible_8)
        buf_lit(writer.buf, ",\"unassigned_primary_shards\":0");
    buf_slice(writer.buf, SLICE_LIT(",\"delayed_unassigned_shards\":0,\"number_of_pending_tasks\":0,"
                                    "\"number_of_in_flight_fetch\":0,\"task_max_waiting_in_queue_millis\":0"));
    json_key(&writer, "active_shards_percent_as_number");
    json_double(&writer, cluster_health_percent(health));
    if (health->refuses) {
        json_key(&writer, "disk_full");
        json_bool(&writer, true);
    }
    if (slice_is(level, "indices") || slice_is(level, "shards")) {
        json_key(&writer, "indices");
        json_begin(&writer, '{');
        for (size_t i = 0; i < set->count; i++)
            write_index_health(&writer, health->nodes, set->targets[i].index, slice_is(level, "shards"));
        json_end(&writer, '}');
    }
    json_end(&writer, '}');
}

static bool is_status(struct slice word)
{
    static const char *const words[] = {"green", "yellow", "red"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_is_ignoring_case(word, words[i]))
            return true;
    return false;
}

static int refuse_word(struct request *request, const char *format, struct slice word)
{
    char *upper = (char *)(uintptr_t)arena_copy(request->arena, word).data;
    for (size_t i = 0; i < word.len; i++)
        upper[i] = (char)toupper((unsigned char)word.data[i]);
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, format, upper);
}

static bool is_event(struct slice word)
{
    static const char *const words[] = {"immediate", "urgent", "high", "normal", "low", "languid"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_is_ignoring_case(word, words[i]))
            return true;
    return false;
}

/* Checks the conditions, except the number of nodes, which 7.10 reads last. */
static int check_waits(struct request *request, const struct health_wait *wait)
{
    int64_t value;
    bool flag;
    int r = request_bool(request, "local", &flag);
    struct slice event = request_param(request, "wait_for_events"), shards = wait->active_shards;
    if (r != 0)
        return r;
    if (wait->status.data != NULL && !is_status(wait->status))
        return refuse_word(request, "No enum constant org.elasticsearch.cluster.health.ClusterHealthStatus.%s",
                           wait->status);
    if ((r = request_bool(request, "wait_for_no_relocating_shards", &flag)) != 0 ||
        (r = request_bool(request, "wait_for_no_initializing_shards", &flag)) != 0)
        return r;
    if (request_param(request, "wait_for_relocating_shards").data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "wait_for_relocating_shards has been removed, use wait_for_no_relocating_shards "
                              "[true/false] instead");
    if (shards.data != NULL && read_int(shards, &value) && value < 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "shard count cannot be a negative value");
    if (shards.data != NULL && !slice_is(shards, "all") && !read_int(shards, &value)) {
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "cannot parse ActiveShardCount[%.*s]", SLICE_ARG(shards));
        request->problem.caused_by = arena_zalloc(request->arena, sizeof *request->problem.caused_by);
        problem_set(request->problem.caused_by, request->arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                    SLICE_ARG(shards));
        return r;
    }
    if (event.data != NULL && !is_event(event))
        return refuse_word(request, "No enum constant org.elasticsearch.common.Priority.%s", event);
    return 0;
}

/* Whether the path names, other than by a pattern, an index that is not there. */
static bool names_missing_index(struct request *request)
{
    struct slice rest = request_part(request, PART_INDEX);
    while (rest.len > 0) {
        size_t len = slice_find_byte(rest, ',');
        struct slice name = slice_make(rest.data, len);
        bool pattern = slice_find_byte(name, '*') < len || slice_is(name, "_all") || len == 0 || name.data[0] == '-';
        if (!pattern && catalog_index(request_catalog(request), name) == NULL &&
            !catalog_has_alias(request_catalog(request), name))
            return true;
        rest = slice_from_offset(rest, len + 1);
    }
    return false;
}

/* Returns: REQUEST_PENDING; REQUEST_REFUSED: the server stops. */
static int wait_for_change(struct request *request, struct health_wait *wait)
{
    request_look_away(request);
    int r = followers_wait(request->api->followers, &wait->follower);
    return r == REQUEST_PENDING ? r : request_refuse_stopping(request);
}

/*
 * Answers if the conditions are met, or the time is over; else has the request wait for a change. An
 * index that is named and missing is a condition of its own, as in 7.10.
 */
static int answer_or_wait(struct request *request)
{
    struct health_wait *wait = request->context;
    struct arena_mark mark = arena_mark(request->arena);
    struct index_set set;
    bool enough_nodes;
    wait->follower.seen_state = journal_state_version(request->api->journal);
    struct cluster_health health = cluster_health_begin(request);
    int r = index_set_read(request, &catalog_options_every_index, &set);
    if (r != 0 || (r = check_nodes(request, wait->nodes, &enough_nodes, health.nodes->count)) != 0)
        return r;
    for (size_t i = 0; i < set.count; i++)
        cluster_health_add(&health, set.targets[i].index);
    bool missing = names_missing_index(request);
    bool met = enough_nodes && !missing && status_is_reached(cluster_health_status(&health), wait->status) &&
               shards_are_reached(&health, wait->active_shards);
    if (!met && clock_boot_us() < wait->follower.until_us && !atomic_load(&request->abandoned)) {
        arena_rewind(request->arena, mark); /* it may look any number of times */
        return wait_for_change(request, wait);
    }
    write_health(request, &set, &health, missing, !met);
    return REQUEST_DONE;
}

/* The reply is of the present and reads no documents: a host that is out answers, too. */
static int look_again(struct request *request)
{
    request_look_away(request);
    request_start_timer(request);
    return answer_or_wait(request);
}

int handle_cluster_health(struct request *request)
{
    struct health_wait *wait = arena_zalloc(request->arena, sizeof *wait);
    int64_t timeout_us = WAIT_DEFAULT_US;
    *wait = (struct health_wait){.status = request_param(request, "wait_for_status"),
                                 .nodes = request_param(request, "wait_for_nodes"),
                                 .active_shards = request_param(request, "wait_for_active_shards")};
    request->context = wait;
    int r = request_time(request, "timeout", &timeout_us);
    if (r != 0 || (r = check_waits(request, wait)) != 0)
        return r;
    wait->follower = (struct follower){.request = request,
                                       .then = look_again,
                                       .on_state = true,
                                       .until_us = clock_boot_us() + (uint64_t)(timeout_us < 0 ? 0 : timeout_us)};
    return answer_or_wait(request);
}

/* --- Settings ----------------------------------------------------------------------------------------------------- */

static int write_section(struct request *request, yyjson_val *root, const char *name, bool flat,
                         struct json_writer *writer)
{
    struct settings settings = {NULL, 0}, none = {NULL, 0};
    yyjson_val *section = json_get(root, slice_from(name));
    if (yyjson_is_obj(section) &&
        settings_parse(section, SLICE_NONE, request->arena, &settings, &request->problem) != 0)
        return REQUEST_REFUSED;
    settings = settings_merge(&none, &settings, false, request->arena); /* leaves the nulls out */
    json_key(writer, name);
    settings_render(&settings, flat, writer->buf);
    writer->comma = true;
    return 0;
}

static int write_sections(struct request *request, yyjson_val *root, bool flat, struct json_writer *writer)
{
    int r = write_section(request, root, "persistent", flat, writer);
    return r != 0 ? r : write_section(request, root, "transient", flat, writer);
}

int handle_cluster_settings_get(struct request *request)
{
    struct json_writer writer;
    struct json_doc doc = {NULL};
    bool flat = false, defaults = false;
    int64_t ignored = 0;
    int r = request_bool(request, "flat_settings", &flat);
    if (r != 0 || (r = request_bool(request, "include_defaults", &defaults)) != 0 ||
        (r = request_time(request, "timeout", &ignored)) != 0 || (r = request_accept(request)) != 0)
        return r;
    const struct catalog_object *object =
        catalog_object(request_catalog(request), CATALOG_CLUSTER, SLICE_LIT("settings"));
    if (object != NULL && (r = json_parse_stored(request->arena, object->body, &doc)) != 0)
        return tl_trace(r);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    if ((r = write_sections(request, doc.root, flat, &writer)) != 0)
        return r;
    if (defaults) {
        json_key(&writer, "defaults");
        json_raw(&writer, SLICE_LIT("{}"));
    }
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int settings_put_done(struct request *request, struct command *command)
{
    const struct json_doc *doc = request->context;
    struct json_writer writer;
    bool flat = false;
    (void)command;
    log_settings_apply(request->api->journal);
    int r = request_bool(request, "flat_settings", &flat);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "acknowledged");
    json_bool(&writer, true);
    if (r != 0 || (r = write_sections(request, doc->root, flat, &writer)) != 0)
        return r;
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* Other faults of the settings are for the core to find. */
static int check_sections(struct request *request, yyjson_val *root)
{
    static const char *const names[] = {"persistent", "transient"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct settings settings;
        struct problem problem;
        if (settings_parse(json_get(root, slice_from(names[i])), SLICE_LIT(""), request->arena, &settings, &problem) !=
            0)
            continue;
        int r = consistency_check_settings(request, &settings);
        if (r != 0)
            return r;
    }
    return 0;
}

int handle_cluster_settings_put(struct request *request)
{
    struct json_doc *doc = arena_alloc(request->arena, sizeof *doc);
    bool flat = false;
    int64_t ignored = 0;
    int r = request_bool(request, "flat_settings", &flat);
    if (r != 0 || (r = request_time(request, "timeout", &ignored)) != 0 || (r = request_accept(request)) != 0 ||
        (r = request_json(request, 0, doc)) != 0)
        return r;
    if (yyjson_obj_size(json_get_lit(doc->root, "persistent")) +
            yyjson_obj_size(json_get_lit(doc->root, "transient")) ==
        0)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: no settings to update;");
    if ((r = check_sections(request, doc->root)) != 0)
        return r;
    struct command *command = command_new(COMMAND_CLUSTER_SETTINGS_PUT, request->dialect);
    command->object.name = SLICE_LIT("settings");
    command->object.body = request_body(request);
    request->context = doc;
    return request_submit(request, command, settings_put_done);
}

/* --- Nodes -------------------------------------------------------------------------------------------------------- */

/* The metrics of node information, of which only "http" has content here. */
static bool is_info_metric(struct slice name)
{
    static const char *const names[] = {"settings", "os",      "process", "jvm",     "thread_pool",  "transport",
                                        "http",     "plugins", "ingest",  "indices", "aggregations", "_all"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

/* Whether the place of a node's id has metrics in it, as in _nodes/http. */
static bool are_info_metrics(struct slice list)
{
    bool all = list.len > 0 && !slice_is(list, "_all");
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        all = all && is_info_metric(slice_make(list.data, len));
        list = slice_from_offset(list, len + 1);
    }
    return all;
}

static void write_http_info(struct request *request, const struct cluster_node *node, struct json_writer *writer)
{
    json_key(writer, "http");
    json_begin(writer, '{');
    json_key(writer, "bound_address");
    json_begin(writer, '[');
    json_string(writer, node->address);
    json_end(writer, ']');
    json_key(writer, "publish_address");
    json_string(writer, node->address);
    json_key(writer, "max_content_length_in_bytes");
    json_u64(writer, request->api->options.body_bytes_max);
    json_end(writer, '}');
}

static void write_node_info(struct request *request, const struct cluster_node *node, bool http,
                            struct json_writer *writer)
{
    json_key_slice(writer, node->id);
    json_begin(writer, '{');
    cluster_write_node(node, writer);
    json_key(writer, "version");
    json_string(writer, SLICE_LIT("7.10.2"));
    json_key(writer, "build_flavor");
    json_string(writer, SLICE_LIT("default"));
    json_key(writer, "build_type");
    json_string(writer, SLICE_LIT("tar"));
    json_key(writer, "build_hash");
    json_string(writer, SLICE_LIT("747e1cc71def077253878a59143c1f785afa92b9"));
    if (http)
        write_http_info(request, node, writer);
    json_end(writer, '}');
}

int handle_nodes(struct request *request)
{
    struct json_writer writer;
    bool flag = false;
    int64_t ignored = 0;
    int r = request_bool(request, "flat_settings", &flag);
    if (r != 0 || (r = request_time(request, "timeout", &ignored)) != 0 || (r = request_accept(request)) != 0)
        return r;
    const struct cluster_nodes *nodes = nodes_list(request);
    struct slice wanted = request_part(request, PART_NODE_ID), metrics = request_part(request, PART_METRIC);
    if (metrics.data == NULL && are_info_metrics(wanted)) {
        metrics = wanted;
        wanted = SLICE_NONE;
    }
    bool http = name_list_match(metrics, SLICE_LIT("http"));
    size_t count = 0;
    for (size_t i = 0; i < nodes->count; i++)
        count += node_is_named(&nodes->items[i], wanted);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    cluster_write_head(request, count, &writer);
    json_key(&writer, "nodes");
    json_begin(&writer, '{');
    for (size_t i = 0; i < nodes->count; i++)
        if (node_is_named(&nodes->items[i], wanted))
            write_node_info(request, &nodes->items[i], http, &writer);
    json_end(&writer, '}');
    json_end(&writer, '}');
    return REQUEST_DONE;
}
