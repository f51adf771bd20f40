/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /_metrics: the server's metrics for Prometheus. docs/monitoring.md lists them;
 * src/metrics/README.md has the rules: no request waits for the page, and its cost does not depend
 * on data of clients.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/cluster/cluster_state.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/search/search_service.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "metrics/exposition.h"
#include "metrics/traffic.h"

static void write_metric(struct exposition *page, enum exposition_type type, const char *name, const char *help,
                         uint64_t value)
{
    exposition_family(page, type, name, help);
    exposition_value(page, value);
}

static void write_counter(struct exposition *page, const char *name, const char *help, uint64_t value)
{
    write_metric(page, EXPOSITION_COUNTER, name, help, value);
}

static void write_gauge(struct exposition *page, const char *name, const char *help, uint64_t value)
{
    write_metric(page, EXPOSITION_GAUGE, name, help, value);
}

/* A row of a family whose samples differ in one label. */
static void write_labelled(struct exposition *page, const char *label, const char *is, uint64_t value)
{
    exposition_label(page, label, is);
    exposition_value(page, value);
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

static void label_line(struct exposition *page, size_t line)
{
    static const char *const methods[HTTP_METHOD_COUNT] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "other"};
    enum http_method method;
    const char *pattern = route_of_line(line, &method);
    exposition_label(page, "route", pattern != NULL ? pattern : "none");
    exposition_label(page, "method", methods[method]);
}

static void write_statuses(struct exposition *page, size_t line, const struct traffic_reading *reading)
{
    for (size_t i = 0; i < TRAFFIC_STATUSES; i++) {
        char code[12] = "other";
        if (reading->statuses[i] == 0)
            continue;
        if (traffic_statuses[i] != 0)
            snprintf(code, sizeof code, "%d", traffic_statuses[i]);
        label_line(page, line);
        write_labelled(page, "code", code, reading->statuses[i]);
    }
}

static void write_requests(struct exposition *page, const struct request *request)
{
    const struct traffic *traffic = request->api->traffic;
    struct traffic_reading reading;
    exposition_family(page, EXPOSITION_COUNTER, "tidelock_http_requests",
                      "Requests answered, by route, method and status.");
    for (size_t line = 0; line < route_line_count(); line++)
        if (traffic_read(traffic, line, &reading))
            write_statuses(page, line, &reading);
    exposition_family(page, EXPOSITION_HISTOGRAM, "tidelock_http_request_duration_seconds",
                      "From a request's arrival in whole to its answer, waits for locks included.");
    for (size_t line = 0; line < route_line_count(); line++)
        if (traffic_read(traffic, line, &reading)) {
            label_line(page, line);
            exposition_times(page, &reading.time);
        }
}

static void write_server(struct exposition *page, struct exchange *exchange)
{
    struct server_stats server = {0};
    if (exchange->ops->server == NULL)
        return;
    exchange->ops->server(exchange, &server);
    write_gauge(page, "tidelock_http_connections", "Open connections.", server.connections);
    write_gauge(page, "tidelock_http_connections_limit", "Connections that may be open at once.",
                server.connections_max);
    write_counter(page, "tidelock_http_connections_accepted", "Connections accepted.", server.accepted);
    write_gauge(page, "tidelock_http_requests_in_flight", "Requests that have arrived and are not answered.",
                server.in_flight);
    write_gauge(page, "tidelock_http_streams", "Responses that stay open, as those of attached sessions.",
                server.streams);
    write_counter(page, "tidelock_http_requests_refused",
                  "Requests that were refused before they had a route: malformed, foreign, too large.", server.refused);
}

/* --- Commands and the disk ---------------------------------------------------------------------------------------- */

static void write_journal(struct exposition *page, struct journal *journal)
{
    const struct journal_metrics *values = journal_metrics(journal);
    struct metric_reading groups = {0}, syncs = {0};
    exposition_family(page, EXPOSITION_COUNTER, "tidelock_commands", "Commands applied, by kind.");
    for (int type = 0; type < COMMAND_TYPE_COUNT; type++)
        write_labelled(page, "command", command_name((enum command_type)type), metric_read(&values->commands[type]));
    write_gauge(page, "tidelock_commands_queued", "Commands that wait for their turn (not for locks).",
                metric_read(&values->queued));
    metric_read_histogram(&values->group_sizes, &groups);
    exposition_family(page, EXPOSITION_HISTOGRAM, "tidelock_sync_commands",
                      "Commands that one sync of the disk made durable.");
    exposition_sizes(page, &groups);
    metric_read_histogram(&values->sync_times, &syncs);
    exposition_family(page, EXPOSITION_HISTOGRAM, "tidelock_sync_duration_seconds",
                      "How long a sync of the disk took.");
    exposition_times(page, &syncs);
}

static void write_steps(struct exposition *page, const struct core_metrics *values)
{
    exposition_family(
        page, EXPOSITION_GAUGE, "tidelock_step_work_max",
        "The most work that one step of the core has taken, in units, by kind of its command; 500000 is the bound.");
    for (int type = 0; type < COMMAND_TYPE_COUNT; type++)
        write_labelled(page, "command", command_name((enum command_type)type),
                       metric_read(&values->step_work_max[type]));
    write_counter(page, "tidelock_steps_over_bound", "Steps of the core that have taken more work than the bound.",
                  metric_read(&values->steps_over));
    write_counter(page, "tidelock_steps_undivided",
                  "Steps that have taken more even without an operation that cannot be divided, such as a commit.",
                  metric_read(&values->steps_undivided));
    write_counter(page, "tidelock_checkpoint_pieces",
                  "Pieces of open transactions and locks that were written for checkpoints.",
                  metric_read(&values->pieces_written));
    write_counter(page, "tidelock_checkpoint_piece_bytes", "Bytes of these pieces.", metric_read(&values->piece_bytes));
}

static void write_history(struct exposition *page, struct journal *journal)
{
    exposition_family(page, EXPOSITION_GAUGE, "tidelock_history_oldest_timestamp_seconds",
                      "The oldest timestamp that can be read.");
    exposition_us(page, journal_oldest(journal));
    exposition_family(page, EXPOSITION_GAUGE, "tidelock_history_newest_timestamp_seconds",
                      "The newest timestamp that can be read.");
    exposition_us(page, journal_stable(journal));
    struct journal_clock_steps steps;
    journal_clock_steps(journal, &steps);
    write_counter(page, "tidelock_clock_steps", "How often the machine's clock was set by more than a second.",
                  steps.count);
}

static void write_store(struct exposition *page, const struct request *request)
{
    struct store_stats stats;
    store_stats(request->api->store, &stats);
    exposition_family(page, EXPOSITION_GAUGE, "tidelock_store_disk_bytes",
                      "Bytes of the store on the disk: tables of data, and what its checkpoints keep of the rest.");
    write_labelled(page, "kind", "tables", stats.table_bytes);
    write_labelled(page, "kind", "checkpoints",
                   stats.disk_bytes > stats.table_bytes ? stats.disk_bytes - stats.table_bytes : 0);
    uint64_t free = store_free_bytes(request->api->store);
    if (free != UINT64_MAX)
        write_gauge(page, "tidelock_store_disk_free_bytes", "Bytes free on the file system of the data.", free);
    write_gauge(page, "tidelock_store_writable", "1; 0 while writes are refused because the disk is full.",
                journal_writable(request->api->journal));
    write_gauge(page, "tidelock_store_tables", "Files of tables.", stats.table_count);
    write_gauge(page, "tidelock_store_unflushed_bytes", "Bytes written that are in no table yet.",
                stats.unflushed_bytes);
    write_gauge(page, "tidelock_store_cache_bytes", "Bytes of the block cache.", stats.cache_bytes);
    write_gauge(page, "tidelock_store_cache_limit_bytes", "Limit of the cache (--cache).", stats.cache_bytes_max);
    write_counter(page, "tidelock_store_flushes", "Tables written from memory.", stats.flushes);
    write_counter(page, "tidelock_store_compactions", "Compactions of tables.", stats.compactions);
    exposition_family(page, EXPOSITION_GAUGE, "tidelock_store_jobs_running", "Flushes and compactions at work.");
    write_labelled(page, "job", "flush", stats.flushes_running);
    write_labelled(page, "job", "compaction", stats.compactions_running);
    write_gauge(page, "tidelock_store_compaction_due_bytes", "Bytes that compactions have yet to rewrite, estimated.",
                stats.compaction_due_bytes);
    write_counter(page, "tidelock_store_background_errors", "Failed flushes and compactions.", stats.errors);
    write_gauge(page, "tidelock_store_stopped", "1 while writes wait for flushes or compactions.", stats.stopped);
}

/* --- Locks, sessions, transactions -------------------------------------------------------------------------------- */

static void write_modes(struct exposition *page, const char *name, const char *help, const metric_value *values)
{
    static const char *const names[LOCK_MODE_COUNT] = {"", "shared", "update", "exclusive"};
    exposition_family(page, EXPOSITION_GAUGE, name, help);
    for (int mode = LOCK_S; mode < LOCK_MODE_COUNT; mode++)
        write_labelled(page, "mode", names[mode], metric_read(&values[mode]));
}

static void write_locks(struct exposition *page, const struct core_metrics *values)
{
    static const char *const ends[METRIC_WAIT_END_COUNT] = {"granted", "timeout", "deadlock", "cancelled"};
    write_modes(page, "tidelock_locks_held", "Locks held, by mode.", values->held);
    write_modes(page, "tidelock_locks_wanted", "Locks that requests wait for, by mode.", values->requested);
    write_gauge(page, "tidelock_lock_waiters", "Requests that wait for locks.", metric_read(&values->waiting));
    exposition_family(page, EXPOSITION_HISTOGRAM, "tidelock_lock_wait_duration_seconds",
                      "Waits for locks that are over, by how they ended.");
    for (int how = 0; how < METRIC_WAIT_END_COUNT; how++) {
        struct metric_reading reading = {0};
        metric_read_histogram(&values->waits[how], &reading);
        exposition_label(page, "outcome", ends[how]);
        exposition_times(page, &reading);
    }
    exposition_family(page, EXPOSITION_COUNTER, "tidelock_deadlocks",
                      "Deadlocks, by how they were broken: a request was ended, or a write was requeued.");
    write_labelled(page, "broken_by", "ended", metric_read(&values->deadlocks));
    write_labelled(page, "broken_by", "requeued", metric_read(&values->deadlocks_requeued));
}

static void write_sessions(struct exposition *page, const struct core_metrics *values)
{
    static const char *const ends[METRIC_SESSION_END_COUNT] = {"closed", "expired", "forced", "detached"};
    write_gauge(page, "tidelock_sessions", "Open sessions.", metric_read(&values->sessions));
    write_counter(page, "tidelock_sessions_opened", "Sessions opened.", metric_read(&values->sessions_opened));
    exposition_family(page, EXPOSITION_COUNTER, "tidelock_sessions_ended",
                      "Sessions ended, by how: in order, by their lease, by force, with their connection.");
    for (int how = 0; how < METRIC_SESSION_END_COUNT; how++)
        write_labelled(page, "how", ends[how], metric_read(&values->session_ends[how]));
    write_gauge(page, "tidelock_deferred_actions",
                "Cleanup actions of ended sessions that wait for the release of another owner's lock.",
                metric_read(&values->deferred_actions));
}

static void write_transactions(struct exposition *page, struct journal *journal)
{
    enum { UPDATE, QUERY, MODE_COUNT };
    static const char *const modes[MODE_COUNT] = {"update", "query"};
    static const char *const ends[METRIC_TXN_END_COUNT] = {"committed", "rolled_back", "aborted"};
    const struct core_metrics *core = journal_core_metrics(journal);
    const struct query_txn_metrics *query = journal_query_txn_metrics(journal);
    const metric_value *const begun[MODE_COUNT] = {&core->txns_begun, &query->begun};
    const metric_value *const ended[MODE_COUNT] = {core->txns_ended, query->ended};
    write_gauge(page, "tidelock_transactions", "Open transactions.",
                metric_read(&core->transactions) + metric_read(&query->open));
    exposition_family(page, EXPOSITION_COUNTER, "tidelock_transactions_begun", "Transactions begun, by mode.");
    for (int mode = 0; mode < MODE_COUNT; mode++)
        write_labelled(page, "mode", modes[mode], metric_read(begun[mode]));
    exposition_family(page, EXPOSITION_COUNTER, "tidelock_transactions_ended",
                      "Transactions ended, by mode and outcome: rolled back by their owner, aborted by the server.");
    for (int mode = 0; mode < MODE_COUNT; mode++)
        for (int how = 0; how < METRIC_TXN_END_COUNT; how++) {
            exposition_label(page, "mode", modes[mode]);
            write_labelled(page, "outcome", ends[how], metric_read(&ended[mode][how]));
        }
}

/* --- Indices, memory, the process --------------------------------------------------------------------------------- */

static void write_indices(struct exposition *page, struct request *request)
{
    const struct catalog *catalog = request_catalog(request);
    size_t indices = catalog_index_count(catalog);
    uint64_t documents = 0, values[INDEX_STAT_COUNT] = {0};
    for (size_t i = 0; i < indices; i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        documents += catalog_index_documents(index);
        for (int stat = 0; stat < INDEX_STAT_COUNT; stat++)
            values[stat] += catalog_index_stat(index, (enum index_stat)stat);
    }
    write_gauge(page, "tidelock_indices", "Indices.", indices);
    write_gauge(page, "tidelock_documents", "Documents, of all indices.", documents);
    exposition_family(page, EXPOSITION_GAUGE, "tidelock_index_operations",
                      "Operations on existing indices since the start; those of a deleted index are not included.");
    write_labelled(page, "operation", "indexed", values[INDEX_STAT_INDEXED]);
    write_labelled(page, "operation", "deleted", values[INDEX_STAT_DELETED]);
    write_labelled(page, "operation", "unchanged", values[INDEX_STAT_NOOPS]);
    write_labelled(page, "operation", "got", values[INDEX_STAT_GETS_FOUND]);
    write_labelled(page, "operation", "got_missing", values[INDEX_STAT_GETS_MISSING]);
    write_labelled(page, "operation", "searched", values[INDEX_STAT_SEARCHES]);
}

static void write_memory(struct exposition *page, const struct request *request)
{
    struct budget *budget = request->api->options.budget;
    exposition_family(page, EXPOSITION_GAUGE, "tidelock_memory_bytes",
                      "Memory in use, by use, as far as it is counted separately.");
    for (int kind = 0; kind < BUDGET_KIND_COUNT; kind++)
        write_labelled(page, "use", budget_kind_name((enum budget_kind)kind), budget_tallied((enum budget_kind)kind));
    write_gauge(page, "tidelock_memory_used_bytes", "Memory of the whole process that counts against the limit.",
                budget == NULL ? mem_used() : budget_used(budget));
    if (budget == NULL)
        return;
    write_gauge(page, "tidelock_memory_limit_bytes", "Limit of the memory used (--memory).", budget->limit);
    exposition_family(page, EXPOSITION_COUNTER, "tidelock_memory_refusals",
                      "Requests refused because memory was short, by use.");
    for (int kind = 0; kind < BUDGET_KIND_COUNT; kind++)
        write_labelled(page, "use", budget_kind_name((enum budget_kind)kind),
                       atomic_load_explicit(&budget->refusals[kind], memory_order_relaxed));
}

/* Returns: the bytes of the process in memory, and in address space. */
static void read_sizes(uint64_t *ret_resident, uint64_t *ret_virtual)
{
    FILE *file = fopen("/proc/self/statm", "re");
    uint64_t all = 0, resident = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (file != NULL && fscanf(file, "%" SCNu64 " %" SCNu64, &all, &resident) != 2)
        all = resident = 0;
    if (file != NULL)
        (void)fclose(file);
    *ret_resident = resident * page;
    *ret_virtual = all * page;
}

uint64_t cluster_processor_us(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * TL_SECOND +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* By the names that all programs' libraries for Prometheus have. */
static void write_process(struct exposition *page, const struct request *request)
{
    uint64_t resident, virtual;
    struct rlimit limit = {0};
    read_sizes(&resident, &virtual);
    getrlimit(RLIMIT_NOFILE, &limit);
    exposition_family(page, EXPOSITION_COUNTER, "process_cpu_seconds",
                      "Time of processors that the process has taken.");
    exposition_us(page, cluster_processor_us());
    write_gauge(page, "process_resident_memory_bytes", "Of the process, in memory.", resident);
    write_gauge(page, "process_virtual_memory_bytes", "Of the process, in its address space.", virtual);
    write_gauge(page, "process_open_fds", "Files and sockets that are open.", cluster_open_descriptors());
    write_gauge(page, "process_max_fds", "Files and sockets that may be open.", limit.rlim_cur);
    exposition_family(page, EXPOSITION_GAUGE, "process_start_time_seconds", "When the server started, since 1970.");
    exposition_us(page, request->api->started_us);
}

/* --- The call ----------------------------------------------------------------------------------------------------- */

/* OpenMetrics for clients that accept it by name, as Prometheus does; the older text format for all others. */
static bool wants_open_metrics(struct request *request)
{
    struct slice accept = exchange_header(request->exchange, "Accept");
    static const char name[] = "application/openmetrics-text";
    return accept.len > 0 && memmem(accept.data, accept.len, name, sizeof name - 1) != NULL;
}

static void write_page(struct exposition *page, struct request *request)
{
    struct api *api = request->api;
    exposition_family(page, EXPOSITION_GAUGE, "tidelock_build_info", "1, with the version.");
    exposition_label(page, "version", TIDELOCK_VERSION);
    exposition_value(page, 1);
    write_requests(page, request);
    write_server(page, request->exchange);
    write_journal(page, api->journal);
    write_history(page, api->journal);
    write_store(page, request);
    const struct core_metrics *values = journal_core_metrics(api->journal);
    write_steps(page, values);
    write_locks(page, values);
    write_sessions(page, values);
    write_transactions(page, api->journal);
    write_indices(page, request);
    write_gauge(page, "tidelock_scripts_cached", "Scripts that are compiled and kept for reads.",
                search_service_script_count(api->search_service));
    write_memory(page, request);
    write_process(page, request);
}

int handle_metrics(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    bool open_metrics = wants_open_metrics(request);
    struct exposition page;
    struct buf *text = reply_text(request, 200);
    request->exchange->content_type = open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                   : "text/plain; version=0.0.4; charset=utf-8";
    exposition_begin(&page, text, open_metrics);
    write_page(&page, request);
    exposition_end(&page);
    return REQUEST_DONE;
}
