/* SPDX-License-Identifier: Apache-2.0 */
/* The server's activity, for viewers; see events.h. */
#include "api/page/events.h"

#include <inttypes.h>
#include <pthread.h>

#include "api/request/query_status.h"
#include "api/page/frame.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "json/each.h"

enum {
    ROWS_MAX = 500, /* of locks, of sessions, of transactions */
    FRAME_US =
        334 *
        1000, /* between two frames with rows at least, so that with that of the bar there are four a second, ... */
    REST_TIMES = 20,          /* ... and so many times as long as the answers took */
    SAMPLES = 300,            /* seconds that are kept */
    DISK_SAMPLES = 5,         /* seconds between two checks of the disk */
    BACKLOG_BYTES = 64 << 10, /* a viewer that has so much to read gets no more before it has read it */
    SILENCE_MS = 30 * 1000,   /* one that confirms nothing for so long is gone */
};

enum section { SECTION_LOCKS, SECTION_SESSIONS, SECTION_TRANSACTIONS, SECTION_LOCK_EVENTS, SECTION_COUNT };
static const char *const section_names[SECTION_COUNT] = {"locks", "sessions", "transactions", "events"};

/* The work of one second, and the number of waiters at its end. */
struct sample {
    uint64_t writes, reads, commits, waiters;
};

/* In the request's arena. */
struct viewer {
    struct list link;
    struct request *request;
    bool once;             /* its stream ends after one snapshot */
    bool fresh;            /* it has to have a snapshot first */
    struct slice snapshot; /* with `once`, when it goes; the request's */
};

struct events {
    struct api *api;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct thread thread;
    struct list arrivals; /* viewers that the thread has not seen yet */
    bool stopping, closing;

    /* The thread's. */
    struct list viewers;
    struct frame_section sections[SECTION_COUNT];
    tl_ts ts;               /* of the sections; 0: none has been read */
    uint64_t stamp;         /* of all that may change the rows, as of `ts` */
    uint64_t next_frame_us; /* by clock_boot_us(), as all of these */
    uint64_t next_sample_us;
    struct sample samples[SAMPLES]; /* by sample_count modulo SAMPLES */
    uint64_t sample_count;
    struct sample totals; /* of the last sample, from which the next one counts */
    uint64_t disk_free, disk_bytes;
};

/* --- Samples ------------------------------------------------------------------------------------------------------ */

static uint64_t count_reads(struct events *events)
{
    struct catalog *catalog = journal_catalog(events->api->journal);
    uint64_t reads = 0;
    for (size_t i = 0; i < catalog_index_count(catalog); i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        reads += catalog_index_stat(index, INDEX_STAT_GETS_FOUND) + catalog_index_stat(index, INDEX_STAT_GETS_MISSING) +
                 catalog_index_stat(index, INDEX_STAT_SEARCHES);
    }
    catalog_unref(catalog);
    return reads;
}

/* Totals exclude deleted indices, so a total may decrease. */
static uint64_t increase_of(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void take_sample(struct events *events)
{
    const struct core_metrics *core = journal_core_metrics(events->api->journal);
    const struct journal_metrics *journal = journal_metrics(events->api->journal);
    const struct sample total = {
        metric_read(&journal->commands[COMMAND_WRITE]) + metric_read(&journal->commands[COMMAND_RENAME]),
        count_reads(events), metric_read(&core->txns_ended[TXN_COMMITTED]), metric_read(&core->waiting)};
    const struct sample *before = &events->totals;
    if (events->next_sample_us != 0) /* the first one is only what the next counts from */
        events->samples[events->sample_count++ % SAMPLES] =
            (struct sample){increase_of(total.writes, before->writes), increase_of(total.reads, before->reads),
                            increase_of(total.commits, before->commits), total.waiters};
    events->totals = total;
}

static void write_samples(const struct events *events, bool all, struct buf *to)
{
    uint64_t first = all ? increase_of(events->sample_count, SAMPLES) : increase_of(events->sample_count, 1);
    buf_lit(to, ",\"samples\":[");
    for (uint64_t i = first; i < events->sample_count; i++) {
        const struct sample *sample = &events->samples[i % SAMPLES];
        buf_printf(to, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i > first ? "," : "", sample->writes,
                   sample->reads, sample->commits, sample->waiters);
    }
    buf_byte(to, ']');
}

static void write_number(struct buf *to, const char *name, uint64_t value)
{
    buf_printf(to, ",\"%s\":%" PRIu64, name, value);
}

static void look_at_disk(struct events *events)
{
    struct store_stats stats;
    if (events->disk_bytes != 0 && events->sample_count % DISK_SAMPLES != 0)
        return;
    store_stats(events->api->store, &stats);
    events->disk_bytes = stats.disk_bytes;
    events->disk_free = store_free_bytes(events->api->store);
}

static uint64_t sum_metrics(const metric_value *values, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += metric_read(&values[i]);
    return all;
}

static void write_bar(struct events *events, struct buf *to)
{
    struct api *api = events->api;
    const struct core_metrics *core = journal_core_metrics(api->journal);
    const struct budget *budget = api->options.budget;
    look_at_disk(events);
    buf_printf(to, ",\"bar\":{\"time\":%" PRIu64, clock_wall_us());
    write_number(to, "oldest", journal_oldest(api->journal));
    write_number(to, "newest", journal_stable(api->journal));
    buf_printf(to, ",\"writable\":%s", journal_writable(api->journal) ? "true" : "false");
    write_number(to, "disk_bytes", events->disk_bytes);
    if (events->disk_free != UINT64_MAX)
        write_number(to, "disk_free", events->disk_free);
    write_number(to, "locks", sum_metrics(core->held, LOCK_MODE_COUNT));
    write_number(to, "waiters", metric_read(&core->waiting));
    write_number(to, "sessions", metric_read(&core->sessions));
    write_number(to, "transactions",
                 metric_read(&core->transactions) + metric_read(&journal_query_txn_metrics(api->journal)->open));
    write_number(to, "deferred", metric_read(&core->deferred_actions));
    write_number(to, "deadlocks", metric_read(&core->deadlocks));
    write_number(to, "expired",
                 metric_read(&core->session_ends[SESSION_EXPIRED]) +
                     metric_read(&core->session_ends[SESSION_DETACHED]));
    write_number(to, "memory", budget == NULL ? mem_used() : budget_used((struct budget *)(uintptr_t)budget));
    if (budget != NULL)
        write_number(to, "memory_limit", budget->limit);
    buf_byte(to, '}');
}

static void write_server(const struct events *events, struct buf *to)
{
    const struct api_options *options = &events->api->options;
    buf_lit(to, ",\"server\":{\"name\":");
    buf_json_string(to, options->node_name);
    buf_lit(to, ",\"cluster_name\":");
    buf_json_string(to, options->cluster_name);
    buf_printf(to, ",\"version\":\"%s\",\"started\":%" PRIu64 "}", TIDELOCK_VERSION, events->api->started_us);
}

/* Changes whenever an operation may have changed the rows. Viewers and upkeep do not change it. */
static uint64_t read_stamp(const struct events *events)
{
    static const enum command_type silent[] = {COMMAND_STATUS,   COMMAND_PLACES_WATCH, COMMAND_TICK,
                                               COMMAND_MAINTAIN, COMMAND_MARK,         COMMAND_FEED};
    const struct journal_metrics *journal = journal_metrics(events->api->journal);
    const struct core_metrics *core = journal_core_metrics(events->api->journal);
    const struct query_txn_metrics *query = journal_query_txn_metrics(events->api->journal);
    uint64_t stamp = sum_metrics(journal->commands, COMMAND_TYPE_COUNT);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        stamp -= metric_read(&journal->commands[silent[i]]);
    /* What a tick has ended. */
    stamp += sum_metrics(core->session_ends, METRIC_SESSION_END_COUNT) +
             sum_metrics(core->txns_ended, METRIC_TXN_END_COUNT) + metric_read(&query->begun) +
             sum_metrics(query->ended, METRIC_TXN_END_COUNT);
    for (int how = 0; how < METRIC_WAIT_END_COUNT; how++)
        stamp += sum_metrics(core->waits[how].buckets, METRIC_BOUNDS + 1);
    return stamp + metric_read(&core->deferred_actions);
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static struct command *ask_status(struct events *events, enum status_what what)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = what;
    command->status.rows_max = ROWS_MAX;
    if (what == STATUS_SESSIONS)
        query_status_of_sessions(events->api, &command->arena, &command->status);
    request_ask(events->api, command);
    return command;
}

/*
 * Ends of leases and waits are computed from the present timestamp, which is not the clock that
 * decides on them: they vary by microseconds, and rows would change with each frame. So they are
 * rounded to tenths of a second. The member is recognized by its quotes, which would be escaped
 * within a text of a client.
 */
static void round_remaining(struct buf *text, const char *member)
{
    enum { TREMBLING = 5 }; /* digits */
    size_t len = strlen(member);
    for (size_t at = 0; at + len < text->len; at++) {
        if (memcmp(text->data + at, member, len) != 0)
            continue;
        size_t end = at + len;
        while (end < text->len && text->data[end] >= '0' && text->data[end] <= '9')
            end++;
        if (end - at - len > TREMBLING)
            buf_overwrite(text, end - TREMBLING, "00000", TREMBLING);
        at = end - 1;
    }
}

static void take_locks(const struct command *command, struct frame_section *next)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < command->status.row_count; i++) {
        const struct status_row *row = &command->status.rows[i];
        buf_clear(&text);
        buf_slice(&text, row->name);
        buf_printf(&text, "%s\"holders\":[%.*s],\"waiters\":[%.*s]%s", row->name.len > 0 ? "," : "",
                   SLICE_ARG(row->holders), SLICE_ARG(row->waiters), row->truncated ? ",\"cut\":true" : "");
        round_remaining(&text, ",\"deadline\":");
        frame_add(next, row->key, buf_as_slice(&text));
    }
    buf_deinit(&text);
}

/* An array of objects, each identified by a number; those with an equal number are distinguished by their order. */
static void take_array(struct slice array, const char *number, struct frame_section *next)
{
    struct arena arena = ARENA_INIT;
    struct buf text = BUF_INIT(BUF_UNLIMITED), key = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc;
    size_t i, count;
    uint64_t before = 0, same = 0;
    yyjson_val *item;
    if (json_parse_stored(&arena, array, &doc) == 0)
        json_arr_foreach (doc.root, i, count, item) {
            uint64_t is = yyjson_get_uint(json_get(item, slice_from(number)));
            same = is == before ? same + 1 : 0;
            before = is;
            if (next->count == ROWS_MAX)
                break;
            buf_clear(&text);
            buf_clear(&key);
            buf_u64be(&key, is);
            buf_u64be(&key, same);
            json_write(&text, item, DIALECT_7);
            round_remaining(&text, ",\"expires\":");
            if (text.len > 2)
                frame_add(next, buf_as_slice(&key), slice_make(text.data + 1, text.len - 2));
        }
    buf_deinit(&text);
    buf_deinit(&key);
    arena_deinit(&arena);
}

static void take_list(struct events *events, struct command *command, const char *number, struct frame_section *next)
{
    struct buf array = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&array, "[%.*s", SLICE_ARG(command->status.page));
    if (command->status.what == STATUS_TRANSACTIONS)
        query_status_write_all(events->api, command->status.page.len > 0, &command->arena, &array);
    buf_byte(&array, ']');
    take_array(buf_as_slice(&array), number, next);
    buf_deinit(&array);
}

static void take_lock_events(const struct command *command, struct frame_section *next)
{
    struct slice body = command->status.body; /* {"events":[…]} */
    size_t begin = slice_find_byte(body, '[');
    if (begin < body.len)
        take_array(slice_make(body.data + begin, body.len - begin - 1), "timestamp", next);
}

static void take_section(struct events *events, enum section section, struct command *command,
                         struct frame_section *next)
{
    switch (section) {
    case SECTION_LOCKS: take_locks(command, next); break;
    case SECTION_SESSIONS: take_list(events, command, "session", next); break;
    case SECTION_TRANSACTIONS: take_list(events, command, "transaction", next); break;
    default: take_lock_events(command, next); break;
    }
}

/* Returns: whether the rows are others than before. */
static bool read_rows(struct events *events)
{
    static const enum status_what asked[SECTION_COUNT] = {STATUS_OVERVIEW, STATUS_SESSIONS, STATUS_TRANSACTIONS,
                                                          STATUS_LOCK_EVENTS};
    bool changed = false;
    events->stamp = read_stamp(events);
    events->ts = journal_stable(events->api->journal);
    for (int section = 0; section < SECTION_COUNT; section++) {
        struct frame_section next = {.arena = ARENA_INIT};
        struct command *command = ask_status(events, asked[section]);
        if (command->problem.type == PROBLEM_NONE) { /* it stops, else */
            take_section(events, (enum section)section, command, &next);
            frame_take(&events->sections[section], &next);
        }
        command_free(command);
        frame_section_deinit(&next);
        changed = frame_changed(&events->sections[section]) || changed;
    }
    return changed;
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

static void write_frame(struct events *events, bool all, bool rows, bool bar, struct buf *to)
{
    buf_printf(to, "{%s\"timestamp\":%" PRIu64, all ? "\"snapshot\":true," : "", events->ts);
    if (all)
        write_server(events, to);
    for (int section = 0; section < SECTION_COUNT && (all || rows); section++)
        if (all || frame_changed(&events->sections[section])) {
            buf_printf(to, ",\"%s\":", section_names[section]);
            frame_write(&events->sections[section], all, to);
        }
    if (all || bar) {
        write_bar(events, to);
        write_samples(events, all, to);
    }
    buf_byte(to, '}');
}

static void send_frame(struct request *request, struct slice frame)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&text, "data: %.*s\n\n", SLICE_ARG(frame));
    request->exchange->ops->stream_write(request->exchange, buf_as_slice(&text));
    buf_deinit(&text);
}

static int reply_once(struct request *request)
{
    const struct viewer *viewer = request->context;
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_raw(&writer, viewer->snapshot);
    return REQUEST_DONE;
}

/* Takes it off its list; it is gone. */
static void let_go(struct viewer *viewer, struct slice snapshot)
{
    struct request *request = viewer->request;
    list_remove(&viewer->link);
    if (!viewer->once) {
        request_end_stream(request);
        return;
    }
    viewer->snapshot = arena_copy(request->arena, snapshot);
    int r = request_work_short(request, reply_once);
    INSIST(r == REQUEST_PENDING);
}

/* Sent to all viewers; a snapshot only to those that want one. */
static void show_viewers(struct events *events, bool rows, bool bar)
{
    struct buf change = BUF_INIT(BUF_UNLIMITED), snapshot = BUF_INIT(BUF_UNLIMITED);
    for (struct list *link = events->viewers.next, *after; link != &events->viewers; link = after) {
        struct viewer *viewer = list_entry(link, struct viewer, link);
        struct exchange *exchange = viewer->request->exchange;
        after = link->next;
        if (viewer->fresh && snapshot.len == 0)
            write_frame(events, true, true, true, &snapshot);
        if (viewer->once || atomic_load(&viewer->request->abandoned)) {
            let_go(viewer, buf_as_slice(&snapshot));
            continue;
        }
        if (!viewer->fresh && !rows && !bar)
            continue;
        if (exchange->ops->stream_unsent(exchange) > BACKLOG_BYTES) {
            viewer->fresh = true;
            continue;
        }
        if (!viewer->fresh && change.len == 0)
            write_frame(events, false, rows, bar, &change);
        send_frame(viewer->request, buf_as_slice(viewer->fresh ? &snapshot : &change));
        viewer->fresh = false;
    }
    buf_deinit(&change);
    buf_deinit(&snapshot);
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

/* Whether a new viewer has nothing yet, or the rows may have changed. */
static bool wants_rows(const struct events *events)
{
    bool any_fresh = false;
    list_for_each(link, &events->viewers) any_fresh = any_fresh || list_entry(link, struct viewer, link)->fresh;
    return any_fresh || events->stamp != read_stamp(events);
}

static void watch_second(struct events *events)
{
    uint64_t now = clock_boot_us();
    bool bar = now >= events->next_sample_us, rows = false;
    if (bar) {
        take_sample(events);
        events->next_sample_us = now + TL_SECOND;
    }
    if (list_empty(&events->viewers))
        return;
    if (now >= events->next_frame_us && wants_rows(events)) {
        rows = read_rows(events);
        uint64_t end = clock_boot_us(), rest = REST_TIMES * (end - now);
        events->next_frame_us = end + (rest > FRAME_US ? rest : FRAME_US);
        show_viewers(events, rows, bar);
    } else if (bar) {
        show_viewers(events, false, true);
    }
}

static void end_all(struct events *events)
{
    while (!list_empty(&events->viewers))
        let_go(list_entry(events->viewers.next, struct viewer, link), SLICE_LIT("{}"));
}

/* Returns: when there is something to do next. */
static uint64_t next_look(const struct events *events)
{
    uint64_t frame = clock_boot_us() + FRAME_US;
    if (list_empty(&events->viewers))
        return events->next_sample_us;
    frame = frame > events->next_frame_us ? frame : events->next_frame_us;
    return frame < events->next_sample_us ? frame : events->next_sample_us;
}

static void events_main(void *context)
{
    struct events *events = context;
    pthread_mutex_lock(&events->lock);
    while (!events->closing) {
        bool stopping = events->stopping;
        while (!list_empty(&events->arrivals)) {
            struct list *link = events->arrivals.next;
            list_remove(link);
            list_append(&events->viewers, link);
        }
        pthread_mutex_unlock(&events->lock);
        if (stopping)
            end_all(events);
        else
            watch_second(events);
        uint64_t next = stopping ? clock_boot_us() + TL_SECOND : next_look(events);
        pthread_mutex_lock(&events->lock);
        if (list_empty(&events->arrivals) && events->stopping == stopping && !events->closing)
            (void)clock_wait(&events->wake, &events->lock, next);
    }
    pthread_mutex_unlock(&events->lock);
}

int events_open(struct api *api, struct events **ret_events)
{
    struct events *events = mem_zalloc(sizeof *events);
    events->api = api;
    list_init(&events->arrivals);
    list_init(&events->viewers);
    for (int section = 0; section < SECTION_COUNT; section++)
        events->sections[section].arena = ARENA_INIT;
    pthread_mutex_init(&events->lock, NULL);
    pthread_cond_init(&events->wake, NULL);
    if (thread_start(&events->thread, "events", events_main, events) != 0) {
        pthread_cond_destroy(&events->wake);
        pthread_mutex_destroy(&events->lock);
        mem_free(events);
        return tl_trace(TL_ERR_IO);
    }
    *ret_events = events;
    return 0;
}

void events_stop(struct events *events)
{
    pthread_mutex_lock(&events->lock);
    events->stopping = true;
    pthread_cond_signal(&events->wake);
    pthread_mutex_unlock(&events->lock);
}

void events_close(struct events *events)
{
    if (events == NULL)
        return;
    pthread_mutex_lock(&events->lock);
    events->stopping = events->closing = true;
    pthread_cond_signal(&events->wake);
    pthread_mutex_unlock(&events->lock);
    thread_join(&events->thread);
    INSIST(list_empty(&events->arrivals) && list_empty(&events->viewers));
    for (int section = 0; section < SECTION_COUNT; section++)
        frame_section_deinit(&events->sections[section]);
    pthread_cond_destroy(&events->wake);
    pthread_mutex_destroy(&events->lock);
    mem_free(events);
}

/* --- GET /_events ------------------------------------------------------------------------------------------------- */

static void open_stream(struct request *request)
{
    struct exchange *exchange = request->exchange;
    exchange->status = 200;
    exchange->content_type = "text/event-stream; charset=UTF-8";
    exchange->timestamp = journal_stable(request->api->journal);
    exchange->tcp_user_timeout_ms = SILENCE_MS;
    reply_header(request, "Cache-Control", SLICE_LIT("no-store"));
    request_count(request);
    exchange->ops->stream_open(exchange);
}

/*
 * The stream is opened under the lock, so that it is open when the thread gets to it; nothing that
 * the opening calls takes that.
 */
static int add_viewer(struct events *events, struct viewer *viewer)
{
    struct request *request = viewer->request;
    pthread_mutex_lock(&events->lock);
    bool stopping = events->stopping;
    if (!stopping) {
        int r = request_park(request);
        INSIST(r == REQUEST_PENDING);
        if (!viewer->once)
            open_stream(request);
        list_append(&events->arrivals, &viewer->link);
        pthread_cond_signal(&events->wake);
    }
    pthread_mutex_unlock(&events->lock);
    return stopping ? request_refuse(request, PROBLEM_STOPPING, "the server is stopping") : REQUEST_PENDING;
}

int handle_events(struct request *request)
{
    bool once = false;
    int r = request_bool(request, "once", &once);
    if (r != 0 || (r = request_accept(request)) != 0)
        return r;
    struct viewer *viewer = arena_zalloc(request->arena, sizeof *viewer);
    *viewer = (struct viewer){.request = request, .once = once, .fresh = true};
    request->context = viewer;
    return add_viewer(request->api->events, viewer);
}
