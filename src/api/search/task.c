/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: their table, their threads, and the calls that look at them. */
#include "api/search/task.h"

#include <math.h>
#include <unistd.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/forward.h"
#include "api/request/name_list.h"
#include "api/request/url.h"
#include "api/search/search_service.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "json/each.h"
#include "mapping/mapping.h"

struct tasks {
    struct api *api;
    pthread_mutex_t lock;
    pthread_cond_t quiet; /* nothing runs any more */
    struct list items;    /* running and done, in order of their beginning */
    struct list works;    /* of requests, which run */
    size_t work_count;
    struct list parked; /* requests that wait for the end of one (struct task_get) */
    uint64_t last_number;
    size_t running;
    size_t kept; /* done ones */
    bool closing;
    unsigned scripts;           /* that tasks run at this time */
    struct list script_waiters; /* tasks that wait to run one; the first is next */
};

/*
 * A request for one task. One that waits for its end is parked, at no thread's cost: as many as
 * there are connections may wait, for as long as they like.
 */
struct task_get {
    struct request *request;
    uint64_t number;
    struct slice node;
    bool wait;
    bool watches; /* the task, which is kept for it */
    int64_t timeout_us;
    uint64_t until_us;
    struct task_shown *work; /* as it was when the request came, for a search that is gone when it ends; NULL: none */
    struct list link;        /* parked; guarded by the tasks' lock */
};

static int get_task(struct request *request);

/*
 * Requires: the lock is held. Resumes the requests that wait for a task (0: none), and those whose
 * timeout has expired or whose client has disconnected.
 */
static void wake_parked(struct tasks *tasks, uint64_t number, uint64_t now_us)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    list_for_each_safe(link, following, &tasks->parked)
    {
        struct task_get *get = list_entry(link, struct task_get, link);
        if (get->number != number && get->until_us > now_us && !atomic_load(&get->request->abandoned))
            continue;
        list_remove(&get->link);
        get->wait = false;
        int pending = request_work_short(get->request, get_task);
        INSIST(pending == REQUEST_PENDING);
    }
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

struct tasks *tasks_new(struct api *api)
{
    struct tasks *tasks = mem_zalloc(sizeof *tasks);
    tl_ts stable = journal_stable(api->journal);
    uint64_t now = clock_wall_us();
    tasks->api = api;
    tasks->last_number = stable > now ? stable : now;
    list_init(&tasks->items);
    list_init(&tasks->works);
    list_init(&tasks->parked);
    list_init(&tasks->script_waiters);
    mutex_init(&tasks->lock);
    pthread_cond_init(&tasks->quiet, NULL);
    return tasks;
}

/* Pinned history and other resources of the work are released as soon as it is done. */
static void release_context(struct task *task)
{
    if (task->free != NULL)
        task->free(task->context);
    task->free = NULL;
}

static void task_free(struct task *task)
{
    release_context(task);
    mem_free((void *)(uintptr_t)task->status.data);
    mem_free((void *)(uintptr_t)task->result.data);
    mem_free((void *)(uintptr_t)task->error.data);
    pthread_cond_destroy(&task->wake);
    arena_deinit(&task->arena);
    mem_free(task);
}

void task_discard(struct task *task)
{
    task_free(task);
}

/*
 * Requires: the lock is held. Its thread wakes from a sleep, the command that it waits for ends its
 * wait for locks, and those that it submits from now on are refused.
 */
static void cancel_task(struct task *task)
{
    REQUIRE(mutex_is_held(&task->tasks->lock));
    atomic_store(&task->cancelled, true);
    journal_cancel_waiter(task->tasks->api->journal, &task->waiter);
    pthread_cond_broadcast(&task->wake);
}

void tasks_stop(struct tasks *tasks, bool all)
{
    pthread_mutex_lock(&tasks->lock);
    tasks->closing = true;
    list_for_each(link, &tasks->items)
    {
        struct task *task = list_entry(link, struct task, link);
        if (task->done || (task->waited_for && !all))
            continue;
        cancel_task(task);
    }
    wake_parked(tasks, 0, UINT64_MAX);
    pthread_mutex_unlock(&tasks->lock);
}

void tasks_beat(struct tasks *tasks, uint64_t now_us)
{
    pthread_mutex_lock(&tasks->lock);
    wake_parked(tasks, 0, now_us);
    pthread_mutex_unlock(&tasks->lock);
}

bool tasks_wait(struct tasks *tasks, uint64_t until)
{
    bool in_time = true;
    pthread_mutex_lock(&tasks->lock);
    while (tasks->running > 0 && in_time)
        in_time = clock_wait(&tasks->quiet, &tasks->lock, until);
    bool none = tasks->running == 0;
    pthread_mutex_unlock(&tasks->lock);
    return none;
}

bool tasks_pause(struct tasks *tasks, uint64_t us)
{
    pthread_mutex_lock(&tasks->lock);
    bool closing = tasks->closing;
    pthread_mutex_unlock(&tasks->lock);
    if (!closing)
        usleep((useconds_t)us);
    return closing;
}

void tasks_free(struct tasks *tasks)
{
    if (tasks == NULL)
        return;
    tasks_stop(tasks, true);
    (void)tasks_wait(tasks, UINT64_MAX);
    list_for_each_safe(link, following, &tasks->items)
    {
        list_remove(link);
        task_free(list_entry(link, struct task, link));
    }
    pthread_cond_destroy(&tasks->quiet);
    pthread_mutex_destroy(&tasks->lock);
    mem_free(tasks);
}

struct task *task_new(struct tasks *tasks, struct request *request, const char *action)
{
    struct task *task = mem_zalloc(sizeof *task);
    struct slice opaque = exchange_header(request->exchange, "X-Opaque-Id");
    task->arena = ARENA_INIT;
    task->tasks = tasks;
    task->action = action;
    task->start_ms = clock_wall_us() / TL_MS;
    task->begun_us = search_clock_us();
    task->requests_per_second = INFINITY;
    if (opaque.data != NULL)
        task->opaque_id = arena_copy(&task->arena, opaque);
    pthread_cond_init(&task->wake, NULL);
    pthread_mutex_lock(&tasks->lock);
    task->number = ++tasks->last_number;
    pthread_mutex_unlock(&tasks->lock);
    return task;
}

/* Requires: the lock is held. Drops the oldest results that no request is reading. */
static void drop_old(struct tasks *tasks)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    list_for_each_safe(link, following, &tasks->items)
    {
        struct task *task = list_entry(link, struct task, link);
        if (tasks->kept <= TASKS_KEPT_MAX)
            return;
        if (!task->done || task->watchers > 0)
            continue;
        list_remove(link);
        tasks->kept--;
        task_free(task);
    }
}

/* Requires: the lock is held. After its end a task shows the time that its stored result has. */
static void end_time(struct task *task)
{
    REQUIRE(mutex_is_held(&task->tasks->lock));
    if (task->ended_us == 0)
        task->ended_us = search_clock_us();
}

static void task_main(void *user)
{
    struct task *task = user;
    struct tasks *tasks = task->tasks;
    bool waited_for = task->waited_for;
    task->run(task);
    release_context(task);
    pthread_mutex_lock(&tasks->lock);
    task->done = true;
    end_time(task);
    wake_parked(tasks, task->number, 0);
    if (waited_for && task->watchers == 0) { /* the answer has gone out: nothing to keep */
        list_remove(&task->link);
        task_free(task);
    } else {
        tasks->kept++;
        drop_old(tasks);
    }
    if (--tasks->running == 0)
        pthread_cond_broadcast(&tasks->quiet);
    pthread_mutex_unlock(&tasks->lock);
}

int task_start(struct task *task, struct arena *arena, struct problem *ret_problem)
{
    struct tasks *tasks = task->tasks;
    pthread_mutex_lock(&tasks->lock);
    bool full = tasks->running >= TASKS_RUNNING_MAX || tasks->closing;
    task->waited_for = task->request != NULL;
    if (!full) {
        tasks->running++;
        list_append(&tasks->items, &task->link);
    }
    pthread_mutex_unlock(&tasks->lock);
    if (full) {
        task_free(task);
        problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED, "more than %d by-query tasks at a time",
                    TASKS_RUNNING_MAX);
        return REQUEST_REFUSED;
    }
    if (thread_start_detached("by-query", task_main, task) == 0)
        return 0;
    pthread_mutex_lock(&tasks->lock);
    tasks->running--;
    list_remove(&task->link);
    pthread_mutex_unlock(&tasks->lock);
    task_free(task);
    return TL_ERR_IO;
}

/* --- Searches of requests ----------------------------------------------------------------------------------------- */

void task_work_begin(struct request *request, struct task_work *work, const char *action, struct slice description)
{
    struct tasks *tasks = search_service_tasks(request->api->search_service);
    *work = (struct task_work){.request = request,
                               .action = action,
                               .description = description,
                               .opaque_id = exchange_header(request->exchange, "X-Opaque-Id"),
                               .start_ms = clock_wall_us() / TL_MS,
                               .begun_us = search_clock_us()};
    pthread_mutex_lock(&tasks->lock);
    work->number = ++tasks->last_number;
    tasks->work_count++;
    list_append(&tasks->works, &work->link);
    pthread_mutex_unlock(&tasks->lock);
}

void task_work_end(struct task_work *work)
{
    if (work->request == NULL)
        return;
    struct tasks *tasks = search_service_tasks(work->request->api->search_service);
    pthread_mutex_lock(&tasks->lock);
    list_remove(&work->link);
    tasks->work_count--;
    wake_parked(tasks, work->number, 0);
    pthread_mutex_unlock(&tasks->lock);
    work->request = NULL;
}

/* --- For the task's thread ---------------------------------------------------------------------------------------- */

static void set_text(struct task *task, struct slice *text, struct slice json)
{
    pthread_mutex_lock(&task->tasks->lock);
    mem_free((void *)(uintptr_t)text->data);
    *text = (struct slice){mem_dup(json.data, json.len), json.len};
    pthread_mutex_unlock(&task->tasks->lock);
}

static void end_task(struct task *task)
{
    pthread_mutex_lock(&task->tasks->lock);
    end_time(task);
    pthread_mutex_unlock(&task->tasks->lock);
}

void task_set_status(struct task *task, struct slice json)
{
    set_text(task, &task->status, json);
}

void task_set_result(struct task *task, struct slice json)
{
    set_text(task, &task->result, json);
    end_task(task);
}

void task_set_error(struct task *task, struct slice json)
{
    set_text(task, &task->error, json);
    end_task(task);
}

double task_requests_per_second(struct task *task)
{
    pthread_mutex_lock(&task->tasks->lock);
    double rate = task->requests_per_second;
    pthread_mutex_unlock(&task->tasks->lock);
    return rate;
}

uint64_t task_sleep(struct task *task, uint64_t us)
{
    int64_t begun = search_clock_us();
    uint64_t limit = us < 3600 * TL_SECOND ? us : 3600 * TL_SECOND;
    pthread_mutex_lock(&task->tasks->lock);
    if (!atomic_load(&task->cancelled))
        (void)clock_wait(&task->wake, &task->tasks->lock, clock_boot_us() + limit);
    pthread_mutex_unlock(&task->tasks->lock);
    return (uint64_t)(search_clock_us() - begun);
}

struct slice task_id(const struct api *api, uint64_t number, struct arena *arena)
{
    return arena_printf(arena, "%s:%llu", api->node_id, (unsigned long long)number);
}

/* --- Scripts ------------------------------------------------------------------------------------------------------ */

/* How long a task runs its scripts ahead of waiting ones, and how often the next of these looks for a place. */
#define SCRIPT_TURN_US (20 * TL_MS)

/* Requires: the lock is held. */
static bool has_script_place(const struct tasks *tasks)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    return tasks->scripts < tasks->api->options.worker_count;
}

/* Requires: the lock is held. Wakes the task that is next, if there is a place for it. */
static void wake_script_waiter(struct tasks *tasks)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    if (has_script_place(tasks) && !list_empty(&tasks->script_waiters))
        pthread_cond_broadcast(&list_entry(tasks->script_waiters.next, struct task, script_link)->wake);
}

/* Requires: the lock is held. Returns: as task_script_begin(). */
static bool wait_for_script(struct task *task, struct account *account)
{
    struct tasks *tasks = task->tasks;
    REQUIRE(mutex_is_held(&tasks->lock));
    bool found;
    list_append(&tasks->script_waiters, &task->script_link);
    for (;;) {
        found = has_script_place(tasks) && tasks->script_waiters.next == &task->script_link;
        if (found || !account_poll(account))
            break;
        (void)clock_wait(&task->wake, &tasks->lock, clock_boot_us() + SCRIPT_TURN_US); /* cancel_task() wakes it */
    }
    list_remove(&task->script_link);
    return found;
}

bool task_script_begin(struct task *task, struct account *account)
{
    REQUIRE(account != NULL);
    struct tasks *tasks = task->tasks;
    pthread_mutex_lock(&tasks->lock);
    bool has_turn = clock_boot_us() < task->script_turn_until_us;
    bool found =
        (has_script_place(tasks) && (has_turn || list_empty(&tasks->script_waiters))) || wait_for_script(task, account);
    if (found && !has_turn)
        task->script_turn_until_us = clock_boot_us() + SCRIPT_TURN_US;
    tasks->scripts += found;
    wake_script_waiter(tasks); /* another place may be free, or the task that was next has left */
    pthread_mutex_unlock(&tasks->lock);
    return found;
}

void task_script_end(struct task *task)
{
    struct tasks *tasks = task->tasks;
    pthread_mutex_lock(&tasks->lock);
    REQUIRE(tasks->scripts > 0);
    tasks->scripts--;
    if (clock_boot_us() >= task->script_turn_until_us)
        wake_script_waiter(tasks);
    pthread_mutex_unlock(&tasks->lock);
}

void task_script_yield(struct task *task)
{
    pthread_mutex_lock(&task->tasks->lock);
    task->script_turn_until_us = 0;
    wake_script_waiter(task->tasks);
    pthread_mutex_unlock(&task->tasks->lock);
}

/* --- Showing ------------------------------------------------------------------------------------------------------ */

static void text_member(struct json_writer *writer, const char *key, struct slice text)
{
    json_key(writer, key);
    json_string(writer, text);
}

/* The visible state of a task, running or done. */
struct task_shown {
    uint64_t number;
    struct slice action;
    struct slice description;
    struct slice status; /* JSON; empty: none */
    uint64_t start_ms;
    uint64_t running_us;
    bool cancellable;
    bool cancelled;
    struct slice opaque_id;
};

static void write_task(const struct api *api, struct json_writer *writer, const struct task_shown *task)
{
    json_begin(writer, '{');
    text_member(writer, "node", slice_from(api->node_id));
    json_key(writer, "id");
    json_u64(writer, task->number);
    text_member(writer, "type", SLICE_LIT("transport"));
    text_member(writer, "action", task->action);
    if (task->status.len > 0) {
        json_key(writer, "status");
        json_raw(writer, task->status);
    }
    if (task->description.data != NULL)
        text_member(writer, "description", task->description);
    json_key(writer, "start_time_in_millis");
    json_u64(writer, task->start_ms);
    json_key(writer, "running_time_in_nanos");
    json_u64(writer, task->running_us * 1000);
    json_key(writer, "cancellable");
    json_bool(writer, task->cancellable);
    if (task->cancelled) { /* 7.10 never has it */
        json_key(writer, "cancelled");
        json_bool(writer, true);
    }
    json_key(writer, "headers");
    json_begin(writer, '{');
    if (task->opaque_id.len > 0)
        text_member(writer, "X-Opaque-Id", task->opaque_id);
    json_end(writer, '}');
    json_end(writer, '}');
}

/* Requires: the lock is held. The result is allocated from `arena`. */
static struct task_shown shown_of(struct task *task, struct arena *arena)
{
    REQUIRE(mutex_is_held(&task->tasks->lock));
    return (struct task_shown){
        .number = task->number,
        .action = slice_from(task->action),
        .description = task->description.data != NULL ? arena_copy(arena, task->description) : SLICE_NONE,
        .status = task->status.len > 0 ? arena_copy(arena, task->status) : SLICE_NONE,
        .start_ms = task->start_ms,
        .running_us = (uint64_t)((task->ended_us != 0 ? task->ended_us : search_clock_us()) - task->begun_us),
        .cancellable = true,
        .cancelled = atomic_load(&task->cancelled),
        .opaque_id = task->opaque_id.data != NULL ? arena_copy(arena, task->opaque_id) : SLICE_NONE};
}

/* The same. */
static struct task_shown shown_of_work(const struct task_work *work, struct arena *arena)
{
    return (struct task_shown){
        .number = work->number,
        .action = slice_from(work->action),
        .description = arena_copy(arena, work->description),
        .start_ms = work->start_ms,
        .running_us = (uint64_t)(search_clock_us() - work->begun_us),
        .cancellable = true,
        .cancelled = atomic_load(&work->request->cancelled),
        .opaque_id = work->opaque_id.data != NULL ? arena_copy(arena, work->opaque_id) : SLICE_NONE};
}

void task_write_record(struct json_writer *writer, struct task *task, const char *member, struct slice json)
{
    struct arena arena = ARENA_INIT;
    pthread_mutex_lock(&task->tasks->lock);
    struct task_shown shown = shown_of(task, &arena);
    pthread_mutex_unlock(&task->tasks->lock);
    json_begin(writer, '{');
    json_key(writer, "completed");
    json_bool(writer, true);
    json_key(writer, "task");
    write_task(task->tasks->api, writer, &shown);
    json_key(writer, member);
    json_raw(writer, json);
    json_end(writer, '}');
    arena_deinit(&arena);
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

static bool wanted_action(struct slice patterns, struct slice action)
{
    return patterns.data == NULL || name_list_has(patterns, action);
}

static bool parse_task_id(struct slice text, struct slice *ret_node, uint64_t *ret_number)
{
    size_t colon = slice_find_byte(text, ':');
    *ret_node = slice_make(text.data, colon);
    return colon < text.len && colon > 0 && slice_to_u64(slice_from_offset(text, colon + 1), ret_number);
}

/* The tasks that have a parent: none here. Returns: 0, *ret_asked: only such are asked for; REQUEST_REFUSED. */
static int read_parent(struct request *request, bool *ret_asked)
{
    struct slice id = request_param(request, "parent_task_id"), node;
    uint64_t number;
    *ret_asked = id.len > 0;
    if (id.len == 0 || parse_task_id(id, &node, &number))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "malformed task id %.*s", SLICE_ARG(id));
}

/* The tasks that run, and (where `self`) the call that asks. */
static size_t collect_tasks(struct request *request, const char *self, struct task_shown **ret_items)
{
    struct tasks *tasks = search_service_tasks(request->api->search_service);
    struct slice actions = request_param(request, "actions"),
                 opaque = exchange_header(request->exchange, "X-Opaque-Id");
    size_t count = 0;
    pthread_mutex_lock(&tasks->lock);
    struct task_shown *items = arena_alloc(request->arena, (tasks->running + tasks->work_count + 2) * sizeof *items);
    list_for_each(link, &tasks->items)
    {
        struct task *task = list_entry(link, struct task, link);
        if (!task->done && wanted_action(actions, slice_from(task->action)))
            items[count++] = shown_of(task, request->arena);
    }
    list_for_each(link, &tasks->works)
    {
        struct task_work *work = list_entry(link, struct task_work, link);
        if (wanted_action(actions, slice_from(work->action)))
            items[count++] = shown_of_work(work, request->arena);
    }
    uint64_t number = ++tasks->last_number;
    pthread_mutex_unlock(&tasks->lock);
    if (self != NULL && wanted_action(actions, slice_from(self)))
        items[count++] = (struct task_shown){.number = number,
                                             .action = slice_from(self),
                                             .description = SLICE_LIT(""),
                                             .start_ms = clock_wall_us() / TL_MS,
                                             .opaque_id = opaque};
    *ret_items = items;
    return count;
}

/* A list of tasks: those of this host, and what other hosts have answered. */
struct task_list {
    struct task_shown *items;
    size_t count;
    struct host_ask *asks;
    size_t ask_count;
};

static void write_own_node(struct request *request, struct json_writer *writer, const struct task_shown *items,
                           size_t count)
{
    static const char *const roles[] = {"data", "ingest", "master"};
    const struct cluster_node *self = nodes_list(request)->self;
    json_key_slice(writer, self->id);
    json_begin(writer, '{');
    text_member(writer, "name", self->name);
    text_member(writer, "transport_address", self->address);
    text_member(writer, "host", node_host(self));
    text_member(writer, "ip", self->address);
    json_key(writer, "roles");
    json_begin(writer, '[');
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        json_string(writer, slice_from(roles[i]));
    json_end(writer, ']');
    json_key(writer, "tasks");
    json_begin(writer, '{');
    for (size_t i = 0; i < count; i++) {
        json_key_slice(writer, task_id(request->api, items[i].number, request->arena));
        write_task(request->api, writer, &items[i]);
    }
    json_end(writer, '}');
    json_end(writer, '}');
}

/* "nodes": {…}, of hosts that have a task to show. */
static void write_by_node(struct request *request, const struct task_list *list, struct json_writer *writer)
{
    size_t at, max;
    yyjson_val *key, *node;
    json_key(writer, "nodes");
    json_begin(writer, '{');
    if (list->count > 0)
        write_own_node(request, writer, list->items, list->count);
    for (size_t i = 0; i < list->ask_count; i++)
        json_obj_foreach (json_get_lit(host_ask_json(request, &list->asks[i]), "nodes"), at, max, key, node) {
            json_key_slice(writer, json_slice(key));
            json_value(writer, node, DIALECT_7);
        }
    json_end(writer, '}');
}

static void write_tasks_of(yyjson_val *node, bool keys, struct json_writer *writer)
{
    size_t at, max;
    yyjson_val *key, *task;
    json_obj_foreach (json_get_lit(node, "tasks"), at, max, key, task) {
        if (keys)
            json_key_slice(writer, json_slice(key));
        json_value(writer, task, DIALECT_7);
    }
}

/* "tasks": […], or with their ids as keys {…}. */
static void write_flat(struct request *request, const struct task_list *list, bool keys, struct json_writer *writer)
{
    size_t at, max;
    yyjson_val *key, *node;
    json_key(writer, "tasks");
    json_begin(writer, keys ? '{' : '[');
    for (size_t i = 0; i < list->count; i++) {
        if (keys)
            json_key_slice(writer, task_id(request->api, list->items[i].number, request->arena));
        write_task(request->api, writer, &list->items[i]);
    }
    for (size_t i = 0; i < list->ask_count; i++)
        json_obj_foreach (json_get_lit(host_ask_json(request, &list->asks[i]), "nodes"), at, max, key, node)
            write_tasks_of(node, keys, writer);
    json_end(writer, keys ? '}' : ']');
}

static int reply_list(struct request *request, const struct task_list *list)
{
    struct slice group = request_param(request, "group_by");
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    host_asks_write_failures(request, "node_failures", list->asks, list->ask_count, &writer);
    if (slice_is(group, "none") || slice_is(group, "parents"))
        write_flat(request, list, slice_is(group, "parents"), &writer);
    else
        write_by_node(request, list, &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int check_group(struct request *request)
{
    struct slice group = request_param(request, "group_by");
    if (group.data == NULL || slice_is(group, "nodes") || slice_is(group, "parents") || slice_is(group, "none"))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "unknown group_by [%.*s]", SLICE_ARG(group));
}

static int reply_tasks(struct request *request, struct task_shown *items, size_t count)
{
    int r = check_group(request);
    return r != 0 ? r : reply_list(request, &(struct task_list){.items = items, .count = count});
}

static int list_asked(struct request *request)
{
    return reply_list(request, request->context);
}

static struct slice named_nodes(const struct request *request)
{
    struct slice nodes = request_param(request, "nodes");
    return nodes.data != NULL ? nodes : request_param(request, "node_id");
}

/* Adds what the other hosts answer to the same call, which is at `path` with `method`. */
static int reply_with_others(struct request *request, struct task_list *list, const char *method, const char *path)
{
    struct slice actions = request_param(request, "actions");
    struct buf target = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&target, "%s?group_by=nodes", path);
    if (actions.data != NULL) {
        buf_lit(&target, "&actions=");
        url_encode(&target, actions);
    }
    list->asks = request_asks(request, named_nodes(request), &list->ask_count);
    for (size_t i = 0; i < list->ask_count; i++) {
        list->asks[i].method = method;
        list->asks[i].target = arena_copy(request->arena, buf_as_slice(&target));
    }
    buf_deinit(&target);
    request->context = list;
    return request_ask_hosts(request, list->asks, list->ask_count, list_asked);
}

int handle_tasks(struct request *request)
{
    struct task_list *list = arena_zalloc(request->arena, sizeof *list);
    bool ignored = false, of_parent;
    int r = request_bool(request, "detailed", &ignored);
    if (r == 0)
        r = request_bool(request, "wait_for_completion", &ignored);
    if (r == 0)
        r = request_accept(request);
    if (r != 0 || (r = check_group(request)) != 0 || (r = read_parent(request, &of_parent)) != 0)
        return r;
    if (of_parent)
        return reply_tasks(request, NULL, 0);
    if (request_is_forwarded(request) || node_is_named(nodes_list(request)->self, named_nodes(request)))
        list->count =
            collect_tasks(request, request_is_forwarded(request) ? NULL : "cluster:monitor/tasks/lists", &list->items);
    return reply_with_others(request, list, "GET", "/_tasks");
}

/* --- One task ----------------------------------------------------------------------------------------------------- */

static bool is_own_node(const struct api *api, struct slice node)
{
    return slice_is(node, api->node_id);
}

/* Returns: 0: the task is this host's, or of none that is there; else as request_forward(). */
static int forward_task(struct request *request, struct slice node)
{
    const struct cluster_node *to = is_own_node(request->api, node) ? NULL : nodes_by_id(nodes_list(request), node);
    return to == NULL ? 0 : request_forward(request, to);
}

static int refuse_missing(struct request *request, struct slice node, uint64_t number)
{
    if (is_own_node(request->api, node))
        return request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND,
                              "task [%.*s:%llu] isn't running and hasn't stored its results", SLICE_ARG(node),
                              (unsigned long long)number);
    return request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND,
                          "task [%.*s:%llu] belongs to the node [%.*s] which isn't part of the cluster and "
                          "there is no record of the task",
                          SLICE_ARG(node), (unsigned long long)number, SLICE_ARG(node));
}

/* Requires: the lock is held. */
static struct task *find_task(struct tasks *tasks, uint64_t number)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    list_for_each(link, &tasks->items)
    {
        struct task *task = list_entry(link, struct task, link);
        if (task->number == number)
            return task;
    }
    return NULL;
}

/* Requires: the lock is held. */
static struct task_work *find_work(struct tasks *tasks, uint64_t number)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    list_for_each(link, &tasks->works)
    {
        struct task_work *work = list_entry(link, struct task_work, link);
        if (work->number == number)
            return work;
    }
    return NULL;
}

static void write_found(struct request *request, const struct task_shown *shown, bool done, struct slice result,
                        struct slice error)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "completed");
    json_bool(&writer, done);
    json_key(&writer, "task");
    write_task(request->api, &writer, shown);
    if (result.len > 0) {
        json_key(&writer, "response");
        json_raw(&writer, result);
    }
    if (error.len > 0) {
        json_key(&writer, "error");
        json_raw(&writer, error);
    }
    json_end(&writer, '}');
}

/* A task whose result is no longer in memory: the document of .tasks is the reply. */
static int reply_stored(struct request *request)
{
    struct task_get *get = request->context;
    const struct catalog_index *index = catalog_index(request_catalog(request), SLICE_LIT(".tasks"));
    const struct mapping_type *type = index != NULL ? mapping_type(index->mapping, SLICE_LIT("_doc")) : NULL;
    struct slice id = arena_printf(request->arena, "%.*s:%llu", SLICE_ARG(get->node), (unsigned long long)get->number);
    struct doc doc;
    if (type == NULL)
        return refuse_missing(request, get->node, get->number);
    int r = doc_get(&request->view, index->number, type->number, id, &doc);
    if (r != 0)
        return r > 0 ? refuse_missing(request, get->node, get->number) : tl_trace(r);
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_raw(&writer, doc.source);
    doc_release(&doc);
    return REQUEST_DONE;
}

/* Requires: the lock is held; the request waits for what runs. */
static int park_request(struct tasks *tasks, struct task_get *get)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    get->until_us = clock_boot_us() + (uint64_t)get->timeout_us;
    list_append(&tasks->parked, &get->link);
    return request_park(get->request);
}

/* Requires: the lock is held. */
static int look_at_task(struct tasks *tasks, struct task_get *get, struct task *task)
{
    REQUIRE(mutex_is_held(&tasks->lock));
    struct request *request = get->request;
    bool waits = get->wait && !task->done && !tasks->closing;
    task->watchers += (unsigned)waits - (unsigned)get->watches; /* it looks at it once more */
    get->watches = waits;
    if (waits)
        return park_request(tasks, get);
    struct task_shown shown = shown_of(task, request->arena);
    write_found(request, &shown, task->done, task->result, task->error);
    return REQUEST_DONE;
}

/* The same for a search: of an ended one only its existence is known. */
static int look_at_work(struct tasks *tasks, struct task_get *get, const struct task_work *work)
{
    struct request *request = get->request;
    if (get->work == NULL) {
        get->work = arena_alloc(request->arena, sizeof *get->work);
        *get->work = shown_of_work(work, request->arena);
    }
    if (work != NULL && get->wait && !tasks->closing)
        return park_request(tasks, get);
    write_found(request, get->work, work == NULL, SLICE_NONE, SLICE_NONE);
    return REQUEST_DONE;
}

static int get_task(struct request *request)
{
    struct task_get *get = request->context;
    struct tasks *tasks = search_service_tasks(request->api->search_service);
    bool ours = is_own_node(request->api, get->node);
    int r = REQUEST_REFUSED;
    pthread_mutex_lock(&tasks->lock);
    struct task *task = ours ? find_task(tasks, get->number) : NULL;
    struct task_work *work = ours && task == NULL ? find_work(tasks, get->number) : NULL;
    if (task != NULL)
        r = look_at_task(tasks, get, task);
    else if (work != NULL || get->work != NULL)
        r = look_at_work(tasks, get, work);
    pthread_mutex_unlock(&tasks->lock);
    return r != REQUEST_REFUSED ? r : request_read(request, NULL, 0, reply_stored);
}

int handle_task_get(struct request *request)
{
    struct task_get *get = arena_zalloc(request->arena, sizeof *get);
    struct slice id = request_part(request, PART_TASK_ID);
    get->timeout_us = 30 * (int64_t)TL_SECOND;
    get->request = request;
    request->context = get;
    int r = request_bool(request, "wait_for_completion", &get->wait);
    if (r == 0)
        r = request_time(request, "timeout", &get->timeout_us);
    if (r == 0)
        r = request_accept(request);
    if (r != 0)
        return r;
    if (!parse_task_id(id, &get->node, &get->number))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "malformed task id %.*s", SLICE_ARG(id));
    if (get->timeout_us < 0)
        get->timeout_us = 0;
    r = forward_task(request, get->node);
    return r != 0 ? r : get_task(request);
}

/* --- Cancelling, rethrottling ------------------------------------------------------------------------------------- */

/*
 * The error of a task's node: the call succeeds, as every call to a set of nodes does, and lists
 * the nodes that failed. A task that has just ended is reported so, so this is no error of the
 * client's.
 */
static int reply_node_failure(struct request *request, struct slice node, uint64_t number, const char *what)
{
    bool ours = is_own_node(request->api, node);
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "node_failures");
    json_begin(&writer, '[');
    json_begin(&writer, '{');
    json_key(&writer, "type");
    json_string(&writer, slice_from("failed_node_exception"));
    json_key(&writer, "reason");
    json_string(&writer, arena_printf(request->arena, "Failed node [%.*s]", SLICE_ARG(node)));
    json_key(&writer, "node_id");
    json_string(&writer, node);
    json_key(&writer, "caused_by");
    json_begin(&writer, '{');
    json_key(&writer, "type");
    json_string(&writer, slice_from(ours ? "resource_not_found_exception" : "no_such_node_exception"));
    json_key(&writer, "reason");
    json_string(&writer, ours ? arena_printf(request->arena, "task [%.*s:%llu] is %s", SLICE_ARG(node),
                                             (unsigned long long)number, what)
                              : arena_printf(request->arena, "No such node [%.*s]", SLICE_ARG(node)));
    if (!ours) {
        json_key(&writer, "node_id");
        json_string(&writer, node);
    }
    json_end(&writer, '}');
    json_end(&writer, '}');
    json_end(&writer, ']');
    json_key(&writer, "nodes");
    json_begin(&writer, '{');
    json_end(&writer, '}');
    json_end(&writer, '}');
    return REQUEST_DONE;
}

int handle_task_cancel(struct request *request)
{
    struct tasks *tasks = search_service_tasks(request->api->search_service);
    struct slice id = request_part(request, PART_TASK_ID), actions = request_param(request, "actions"),
                 node = SLICE_NONE;
    struct task_shown *items;
    uint64_t number = 0;
    bool ignored = false, of_parent;
    size_t count = 0;
    int r = request_bool(request, "wait_for_completion", &ignored);
    if (r == 0)
        r = request_accept(request);
    if (r != 0 || (r = check_group(request)) != 0 || (r = read_parent(request, &of_parent)) != 0)
        return r;
    if (of_parent && id.data == NULL)
        return reply_tasks(request, NULL, 0);
    if (id.data != NULL && !parse_task_id(id, &node, &number))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "malformed task id %.*s", SLICE_ARG(id));
    if (id.data != NULL && (r = forward_task(request, node)) != 0)
        return r;
    bool own = id.data != NULL || request_is_forwarded(request) ||
               node_is_named(nodes_list(request)->self, named_nodes(request));
    pthread_mutex_lock(&tasks->lock);
    items = arena_alloc(request->arena, (tasks->running + tasks->work_count + 1) * sizeof *items);
    list_for_each(link, &tasks->items)
    {
        struct task *task = list_entry(link, struct task, link);
        if (!own || task->done || (id.data != NULL && (task->number != number || !is_own_node(request->api, node))) ||
            !wanted_action(actions, slice_from(task->action)))
            continue;
        cancel_task(task);
        items[count++] = shown_of(task, request->arena);
    }
    list_for_each(link, &tasks->works)
    {
        struct task_work *work = list_entry(link, struct task_work, link);
        if (!own || (id.data != NULL && (work->number != number || !is_own_node(request->api, node))) ||
            !wanted_action(actions, slice_from(work->action)))
            continue;
        atomic_store(&work->request->cancelled, true);
        items[count++] = shown_of_work(work, request->arena);
    }
    pthread_mutex_unlock(&tasks->lock);
    if (id.data != NULL && count == 0)
        return reply_node_failure(request, node, number, "not found");
    if (id.data != NULL)
        return reply_tasks(request, items, count);
    struct task_list *list = arena_zalloc(request->arena, sizeof *list);
    *list = (struct task_list){.items = items, .count = count};
    return reply_with_others(request, list, "POST", "/_tasks/_cancel");
}

int task_read_rate(struct request *request, double *ret_rate)
{
    struct slice text = request_param(request, "requests_per_second");
    double rate;
    if (text.data == NULL)
        return 0;
    bool ok = slice_to_double(text, &rate);
    if (ok && rate == -1)
        rate = INFINITY;
    else if (!ok || !(rate > 0))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.");
    *ret_rate = rate;
    return 0;
}

int handle_task_rethrottle(struct request *request)
{
    struct tasks *tasks = search_service_tasks(request->api->search_service);
    struct slice id = request_part(request, PART_TASK_ID), node;
    struct task_shown *items = arena_zalloc(request->arena, sizeof *items);
    uint64_t number;
    double rate = NAN;
    int r = task_read_rate(request, &rate);
    if (r == 0)
        r = request_accept(request);
    if (r != 0)
        return r;
    if (isnan(rate))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "requests_per_second is a required parameter");
    if (!parse_task_id(id, &node, &number))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "malformed task id %.*s", SLICE_ARG(id));
    if ((r = forward_task(request, node)) != 0)
        return r;
    pthread_mutex_lock(&tasks->lock);
    struct task *task = find_task(tasks, number);
    bool found = task != NULL && !task->done && is_own_node(request->api, node);
    if (found) {
        task->requests_per_second = rate;
        pthread_cond_broadcast(&task->wake);
        *items = shown_of(task, request->arena);
    }
    pthread_mutex_unlock(&tasks->lock);
    if (!found)
        return reply_node_failure(request, node, number, "missing");
    return reply_tasks(request, items, 1);
}
