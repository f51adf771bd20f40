/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of writes that wait for other hosts; see distribution.h. */
#include "api/request/distribution.h"

#include <inttypes.h>
#include <pthread.h>

#include "api/request/api_internal.h"
#include "api/request/consistency.h"
#include "api/request/held_answers.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"

#define HOLD_US (30 * TL_SECOND)
#define STOP_US TL_SECOND           /* the same once the server stops */
#define RETRY_US (100 * TL_MS)      /* after a question that failed */
#define QUESTION_US (2 * TL_SECOND) /* limit of a question; the host may have moved or hang */
/* Interval of checks of the hosts' heartbeats while an answer is held back. */
#define LOOK_US (20 * TL_MS)
#define LOOK_ABANDONED_US (500 * TL_MS) /* the same for clients that have left */

enum { ANSWER_BYTES = 64 << 10 }; /* room for an error reply; a timestamp takes 17 */

struct distribution {
    struct api *api;
    const struct host_sender *sender; /* NULL: no host is asked */
    pthread_mutex_t lock;             /* of all below */
    pthread_cond_t wake;
    struct thread thread;
    struct held_answers held;
    struct list questions; /* by link; of hosts that were asked once */
    size_t pending;        /* of `questions`, not answered yet */
    size_t calls;          /* the same, and those whose question_done() runs */
    uint64_t stopped_at;   /* boot clock; 0: the server does not stop */
    bool woken;            /* since the thread began its last look */
    bool closing;
};

/* What one host is asked. While `pending` the sender has it, and the lock protects `pending` only. */
struct question {
    struct list link;
    struct distribution *distribution;
    uint16_t number; /* of the host */
    uint64_t life;   /* that was asked */
    bool pending;
    bool failing;      /* that was logged, of this life */
    uint64_t retry_at; /* boot clock */
    struct buf address, target, after, answer;
    struct slice header;
    struct host_call call;
};

/* --- Holding back ------------------------------------------------------------------------------------------------- */

/*
 * Returns: whether readers see what the command did. Releases, keepalives and writes inside a
 *          transaction concern later commands only, and all hosts order those alike. A granted lock
 *          is seen: its holder reads the protected documents, perhaps on another host, and must
 *          find all writes of earlier holders there, also those that were never acknowledged.
 */
static bool is_seen(const struct command *command)
{
    switch (command->type) {
    case COMMAND_TXN_COMMIT: return true;
    case COMMAND_TXN_BEGIN:
    case COMMAND_PLACES_WATCH:
    case COMMAND_TXN_LOCK:
    case COMMAND_TXN_ROLLBACK:
    case COMMAND_UNLOCK:
    case COMMAND_SESSION_KEEPALIVE:
    case COMMAND_SESSION_ATTACH:
    case COMMAND_SESSION_DETACH:
    case COMMAND_CANCEL: return false;
    default: return !command_is(command->type, COMMAND_UNLOGGED) && command->owner.transaction.len == 0;
    }
}

void distribution_record(struct request *request, const struct command *command)
{
    if (request->api->distribution != NULL && command->ts > request->written_ts && is_seen(command))
        request->written_ts = command->ts;
}

/* Wakes the thread, which then checks all held answers. Requires: the lock. */
static void wake_thread(struct distribution *distribution)
{
    REQUIRE(mutex_is_held(&distribution->lock));
    distribution->woken = true;
    pthread_cond_signal(&distribution->wake);
}

bool distribution_hold(struct request *request)
{
    struct distribution *distribution = request->api->distribution;
    if (distribution == NULL || request->written_ts == 0)
        return false;
    enum journal_reach reach = consistency_reach(request);
    if (journal_has_reached(request->api->journal, request->written_ts, reach))
        return false;
    struct held_answer *answer = arena_zalloc(request->arena, sizeof *answer);
    request->on_worker = false;
    pthread_mutex_lock(&distribution->lock);
    uint64_t hold_us = distribution->stopped_at != 0 ? STOP_US : HOLD_US;
    *answer = (struct held_answer){
        .request = request, .ts = request->written_ts, .reach = reach, .until_us = clock_boot_us() + hold_us};
    if (distribution->pending == 0 || held_answers_empty(&distribution->held)) /* else question_done() asks */
        wake_thread(distribution);
    held_answers_add(&distribution->held, answer);
    pthread_mutex_unlock(&distribution->lock);
    return true;
}

static int refuse_unreached(struct request *request, tl_ts ts)
{
    return request_refuse(request, PROBLEM_TIMESTAMP_NOT_REACHED,
                          "this was done, at timestamp [%" PRIu64 "], but not all hosts are known to have it in time; "
                          "a read with that as [Tidelock-After] sees it on any host",
                          ts);
}

static void settle_answers(struct list *answers, bool reached)
{
    while (!list_empty(answers)) {
        struct held_answer *answer = list_entry(answers->next, struct held_answer, link);
        struct request *request = answer->request;
        list_remove(&answer->link);
        request->written_ts = 0;
        request_finish(request, reached ? REQUEST_DONE : refuse_unreached(request, answer->ts));
    }
}

static void settle_reached(struct distribution *distribution)
{
    struct list reached = LIST_INIT(reached);
    pthread_mutex_lock(&distribution->lock);
    for (enum journal_reach reach = JOURNAL_REACH_GROUP; reach <= JOURNAL_REACH_CLUSTER; reach++)
        if (held_answers_oldest(&distribution->held, reach) != 0)
            held_answers_take_reached(&distribution->held, reach, journal_reached(distribution->api->journal, reach),
                                      &reached);
    pthread_mutex_unlock(&distribution->lock);
    settle_answers(&reached, true);
}

/* --- Asking hosts ------------------------------------------------------------------------------------------------- */

static bool question_gives_up(struct host_call *call)
{
    struct question *question = call->context;
    struct distribution *distribution = question->distribution;
    pthread_mutex_lock(&distribution->lock);
    bool closing = distribution->closing;
    pthread_mutex_unlock(&distribution->lock);
    return closing || !journal_is_live(distribution->api->journal, question->number);
}

/* Requires: the lock. */
static struct question *find_question(struct distribution *distribution, uint16_t number)
{
    REQUIRE(mutex_is_held(&distribution->lock));
    list_for_each(link, &distribution->questions)
    {
        struct question *question = list_entry(link, struct question, link);
        if (question->number == number)
            return question;
    }
    struct question *question = mem_zalloc(sizeof *question);
    question->distribution = distribution;
    question->number = number;
    question->address = question->target = question->after = BUF_INIT(BUF_UNLIMITED);
    question->answer = BUF_INIT(ANSWER_BYTES);
    list_append(&distribution->questions, &question->link);
    return question;
}

static void question_done(struct host_call *call);

/* Requires: the question is not pending; the lock. */
static void fill_in(struct question *question, const struct journal_host *host, tl_ts ts)
{
    REQUIRE(mutex_is_held(&question->distribution->lock) && !question->pending);
    buf_clear(&question->address);
    buf_clear(&question->target);
    buf_clear(&question->after);
    buf_clear(&question->answer);
    buf_slice(&question->address, host->address);
    buf_printf(&question->target, "/_cluster/hosts/%.*s/_timestamp?life=%" PRIu64 "&cluster_uuid=%s",
               SLICE_ARG(host->name), host->life, question->distribution->api->cluster_uuid);
    buf_printf(&question->after, "Tidelock-After: %" PRIu64, ts);
    question->header = buf_as_slice(&question->after);
    if (question->life != host->life)
        question->failing = false;
    question->life = host->life;
    question->call = (struct host_call){.address = buf_as_slice(&question->address),
                                        .tls = host->tls,
                                        .is_own = true,
                                        .timeout_us = QUESTION_US,
                                        .method = SLICE_LIT("GET"),
                                        .target = buf_as_slice(&question->target),
                                        .headers = &question->header,
                                        .header_count = 1,
                                        .reply = &question->answer,
                                        .gives_up = question_gives_up,
                                        .done = question_done,
                                        .context = question};
}

/* Asks a host for `ts`, unless it is being asked already. Requires: the lock. */
static void ask_host(struct distribution *distribution, const struct journal_host *host, tl_ts ts)
{
    REQUIRE(mutex_is_held(&distribution->lock));
    struct question *question = find_question(distribution, host->number);
    if (question->pending || clock_boot_us() < question->retry_at)
        return;
    fill_in(question, host, ts);
    question->pending = true;
    distribution->pending++;
    distribution->calls++;
    distribution->sender->send(distribution->sender->context, &question->call);
}

/* Asks the hosts that the oldest held answers wait for. */
static void ask_lagging(struct distribution *distribution)
{
    if (distribution->sender == NULL)
        return;
    pthread_mutex_lock(&distribution->lock);
    for (enum journal_reach reach = JOURNAL_REACH_GROUP; reach <= JOURNAL_REACH_CLUSTER; reach++) {
        struct journal_host *hosts;
        tl_ts ts = held_answers_oldest(&distribution->held, reach);
        if (ts == 0)
            continue;
        size_t count = journal_list_lagging(distribution->api->journal, ts, reach, &hosts);
        for (size_t i = 0; i < count; i++)
            ask_host(distribution, &hosts[i], ts);
        mem_free(hosts);
    }
    pthread_mutex_unlock(&distribution->lock);
}

/* Logs that a host cannot be asked, once a life, and that it can be asked again. */
static void log_failure(struct question *question, bool closing)
{
    const struct host_call *call = &question->call;
    bool fails = call->status == 0;
    if (fails == question->failing || closing)
        return;
    question->failing = fails;
    if (fails)
        log_warning(
            "the host at %.*s does not report the position up to which it has applied the log; responses of writes "
            "wait for its heartbeats: %s",
            SLICE_ARG(call->address), call->error);
    else
        log_info("the host at %.*s reports the position up to which it has applied the log again",
                 SLICE_ARG(call->address));
}

static void question_done(struct host_call *call)
{
    struct question *question = call->context;
    struct distribution *distribution = question->distribution;
    struct slice answer = buf_as_slice(&question->answer);
    tl_ts ts;
    if (answer.len > 0 && answer.data[answer.len - 1] == '\n')
        answer.len--;
    bool answered = call->status == 200 && slice_to_u64(answer, &ts);
    if (answered)
        journal_record_reached(distribution->api->journal, question->number, question->life, ts);
    pthread_mutex_lock(&distribution->lock);
    log_failure(question, distribution->closing);
    question->retry_at = answered ? 0 : clock_boot_us() + RETRY_US;
    question->pending = false;
    distribution->pending--;
    pthread_mutex_unlock(&distribution->lock);
    settle_reached(distribution);
    ask_lagging(distribution);
    pthread_mutex_lock(&distribution->lock);
    distribution->calls--; /* from the unlock on it may be closed */
    if (distribution->closing)
        wake_thread(distribution);
    pthread_mutex_unlock(&distribution->lock);
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static void settle_unreached(struct distribution *distribution, uint64_t *looked_at)
{
    struct list over = LIST_INIT(over);
    uint64_t now = clock_boot_us();
    pthread_mutex_lock(&distribution->lock);
    held_answers_take_expired(&distribution->held, now, &over);
    if (now - *looked_at >= LOOK_ABANDONED_US) {
        held_answers_take_abandoned(&distribution->held, &over);
        *looked_at = now;
    }
    pthread_mutex_unlock(&distribution->lock);
    settle_answers(&over, false);
}

static void distribution_main(void *context)
{
    struct distribution *distribution = context;
    uint64_t looked_at = 0;
    pthread_mutex_lock(&distribution->lock);
    while (!distribution->closing || distribution->calls > 0) {
        distribution->woken = false;
        pthread_mutex_unlock(&distribution->lock);
        settle_reached(distribution);
        settle_unreached(distribution, &looked_at);
        ask_lagging(distribution);
        pthread_mutex_lock(&distribution->lock);
        if (distribution->woken)
            continue;
        if (!held_answers_empty(&distribution->held))
            (void)clock_wait(&distribution->wake, &distribution->lock, clock_boot_us() + LOOK_US);
        else
            pthread_cond_wait(&distribution->wake, &distribution->lock);
    }
    pthread_mutex_unlock(&distribution->lock);
}

static void free_parts(struct distribution *distribution)
{
    while (!list_empty(&distribution->questions)) {
        struct question *question = list_entry(distribution->questions.next, struct question, link);
        list_remove(&question->link);
        buf_deinit(&question->address);
        buf_deinit(&question->target);
        buf_deinit(&question->after);
        buf_deinit(&question->answer);
        mem_free(question);
    }
    held_answers_deinit(&distribution->held);
    pthread_cond_destroy(&distribution->wake);
    pthread_mutex_destroy(&distribution->lock);
    mem_free(distribution);
}

int distribution_open(struct api *api, struct distribution **ret_distribution)
{
    struct distribution *distribution = mem_zalloc(sizeof *distribution);
    distribution->api = api;
    distribution->sender = api->options.hosts;
    held_answers_init(&distribution->held);
    list_init(&distribution->questions);
    mutex_init(&distribution->lock);
    pthread_cond_init(&distribution->wake, NULL);
    if (thread_start(&distribution->thread, "distribution", distribution_main, distribution) != 0) {
        free_parts(distribution);
        return TL_ERR_IO;
    }
    *ret_distribution = distribution;
    return 0;
}

void distribution_stop(struct distribution *distribution)
{
    if (distribution == NULL)
        return;
    pthread_mutex_lock(&distribution->lock);
    if (distribution->stopped_at == 0) {
        distribution->stopped_at = clock_boot_us();
        held_answers_limit(&distribution->held, distribution->stopped_at + STOP_US);
    }
    pthread_mutex_unlock(&distribution->lock);
}

void distribution_close(struct distribution *distribution)
{
    if (distribution == NULL)
        return;
    pthread_mutex_lock(&distribution->lock);
    INSIST(held_answers_empty(&distribution->held));
    distribution->closing = true;
    wake_thread(distribution);
    pthread_mutex_unlock(&distribution->lock);
    if (distribution->sender != NULL)
        distribution->sender->look(distribution->sender->context);
    thread_join(&distribution->thread);
    free_parts(distribution);
}
