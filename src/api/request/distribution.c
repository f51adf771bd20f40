/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of writes that wait for other hosts; see distribution.h. */
#include "api/request/distribution.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>

#include "api/request/api_internal.h"
#include "api/request/consistency.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"

#define HOLD_US (30 * TL_SECOND)
#define RETRY_US (100 * TL_MS) /* after a question that failed */
/* While an answer is held back: interval at which the hosts' heartbeats are looked at. */
#define LOOK_MS 20
#define IDLE_MS 60000

enum {
    CONNECT_MS = 1000,
    QUESTION_MS = 2000, /* limit of a question; the host may have moved or hang */
    ANSWER_BYTES = 64,
};

struct distribution {
    struct api *api;
    pthread_mutex_t lock;
    pthread_t thread;
    struct list held; /* held_answer by link, in the order in which they came */
    bool closing;
    bool woken;   /* since the thread looked at `held` last */
    CURLM *multi; /* curl_multi_wakeup() is for all threads; all else is the thread's */

    struct list questions; /* by link; owned by the thread */
};

/* An answer that is held back; in its request's arena. */
struct held_answer {
    struct list link;
    struct request *request;
    tl_ts ts;
    enum journal_reach reach;
    uint64_t until_us; /* boot clock */
};

/* What one host is asked. */
struct question {
    struct list link;
    uint16_t number; /* of the host */
    uint64_t life;   /* that was asked */
    CURL *curl;
    struct curl_slist *headers;
    bool pending;
    uint64_t retry_at; /* boot clock */
    char answer[ANSWER_BYTES];
    size_t answer_len;
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

bool distribution_hold(struct request *request)
{
    struct distribution *distribution = request->api->distribution;
    if (distribution == NULL || request->written_ts == 0)
        return false;
    enum journal_reach reach = consistency_reach(request);
    if (journal_has_reached(request->api->journal, request->written_ts, reach))
        return false;
    struct held_answer *held = arena_zalloc(request->arena, sizeof *held);
    *held = (struct held_answer){
        .request = request, .ts = request->written_ts, .reach = reach, .until_us = clock_boot_us() + HOLD_US};
    request->on_worker = false;
    pthread_mutex_lock(&distribution->lock);
    bool wake = !distribution->woken;
    distribution->woken = true;
    list_append(&distribution->held, &held->link);
    pthread_mutex_unlock(&distribution->lock);
    if (wake)
        (void)curl_multi_wakeup(distribution->multi);
    return true;
}

/* Moves the answers that wait for nothing more to `over`. Requires: the lock. */
static void take_over(struct distribution *distribution, struct list *over)
{
    uint64_t now = clock_boot_us();
    list_for_each_safe(link, following, &distribution->held)
    {
        struct held_answer *held = list_entry(link, struct held_answer, link);
        if (now < held->until_us && !journal_has_reached(distribution->api->journal, held->ts, held->reach))
            continue;
        list_remove(link);
        list_append(over, link);
    }
}

static int refuse_unreached(struct request *request, tl_ts ts)
{
    return request_refuse(request, PROBLEM_TIMESTAMP_NOT_REACHED,
                          "this was done, at timestamp [%" PRIu64 "], but not all hosts are known to have it after "
                          "[%us]; a read with that as [Tidelock-After] sees it on any host",
                          ts, (unsigned)(HOLD_US / TL_SECOND));
}

static void send_answers(struct distribution *distribution, struct list *over)
{
    while (!list_empty(over)) {
        struct held_answer *held = list_entry(over->next, struct held_answer, link);
        struct request *request = held->request;
        bool reached = journal_has_reached(distribution->api->journal, held->ts, held->reach);
        list_remove(&held->link);
        request->written_ts = 0;
        request_settle(request, reached ? REQUEST_DONE : refuse_unreached(request, held->ts));
    }
}

/* --- Asking hosts ------------------------------------------------------------------------------------------------- */

static size_t collect(char *bytes, size_t size, size_t count, void *context)
{
    struct question *question = context;
    size_t room = sizeof question->answer - 1 - question->answer_len;
    size_t len = size * count < room ? size * count : room;
    memcpy(question->answer + question->answer_len, bytes, len);
    question->answer_len += len;
    return size * count;
}

static struct question *find_question(struct distribution *distribution, uint16_t number)
{
    list_for_each(link, &distribution->questions)
    {
        struct question *question = list_entry(link, struct question, link);
        if (question->number == number)
            return question;
    }
    struct question *question = mem_zalloc(sizeof *question);
    question->number = number;
    question->curl = curl_easy_init();
    list_append(&distribution->questions, &question->link);
    return question;
}

static void end_question(struct distribution *distribution, struct question *question)
{
    if (question->pending)
        curl_multi_remove_handle(distribution->multi, question->curl);
    curl_slist_free_all(question->headers);
    question->headers = NULL;
    question->pending = false;
}

/* Asks a host for `ts`, unless it is being asked already. */
static void ask(struct distribution *distribution, const struct journal_host *host, tl_ts ts)
{
    struct question *question = find_question(distribution, host->number);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (question->pending || question->curl == NULL || clock_boot_us() < question->retry_at)
        return;
    buf_printf(&text, "http://%.*s/_cluster/hosts/%.*s/_timestamp?life=%" PRIu64 "&cluster_uuid=%s",
               SLICE_ARG(host->address), SLICE_ARG(host->name), host->life, distribution->api->cluster_uuid);
    buf_byte(&text, '\0');
    curl_easy_reset(question->curl);
    curl_easy_setopt(question->curl, CURLOPT_URL, text.data);
    buf_clear(&text);
    buf_printf(&text, "Tidelock-After: %" PRIu64, ts);
    buf_byte(&text, '\0');
    question->headers = curl_slist_append(NULL, text.data);
    buf_deinit(&text);
    curl_easy_setopt(question->curl, CURLOPT_HTTPHEADER, question->headers);
    curl_easy_setopt(question->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(question->curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(question->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(question->curl, CURLOPT_TIMEOUT_MS, (long)QUESTION_MS);
    curl_easy_setopt(question->curl, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(question->curl, CURLOPT_WRITEDATA, question);
    curl_easy_setopt(question->curl, CURLOPT_PRIVATE, question);
    question->answer_len = 0;
    question->life = host->life;
    question->pending = curl_multi_add_handle(distribution->multi, question->curl) == CURLM_OK;
    if (!question->pending)
        end_question(distribution, question);
}

static void ask_behind(struct distribution *distribution, tl_ts ts, enum journal_reach reach)
{
    struct journal_host *hosts;
    if (ts == 0)
        return;
    size_t count = journal_list_behind(distribution->api->journal, ts, reach, &hosts);
    for (size_t i = 0; i < count; i++)
        ask(distribution, &hosts[i], ts);
    mem_free(hosts);
}

static void take_answer(struct distribution *distribution, struct question *question, CURLcode result)
{
    long status = 0;
    uint64_t ts;
    struct slice answer = slice_make(question->answer, question->answer_len);
    curl_easy_getinfo(question->curl, CURLINFO_RESPONSE_CODE, &status);
    end_question(distribution, question);
    if (answer.len > 0 && answer.data[answer.len - 1] == '\n')
        answer.len--;
    if (result == CURLE_OK && status == 200 && slice_to_u64(answer, &ts))
        journal_record_reached(distribution->api->journal, question->number, question->life, ts);
    else
        question->retry_at = clock_boot_us() + RETRY_US;
}

/* Returns: whether a host has answered. */
static bool take_answers(struct distribution *distribution)
{
    int left;
    bool any = false;
    CURLMsg *message;
    (void)curl_multi_perform(distribution->multi, &left);
    while ((message = curl_multi_info_read(distribution->multi, &left)) != NULL) {
        struct question *question;
        CURLcode result = message->data.result;
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&question) != CURLE_OK)
            continue;
        take_answer(distribution, question, result);
        any = true;
    }
    return any;
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

/* The oldest timestamp that an answer of each reach waits for; 0: none. Requires: the lock. */
static void find_oldest(const struct distribution *distribution, tl_ts oldest[JOURNAL_REACH_CLUSTER + 1])
{
    list_for_each(link, &distribution->held)
    {
        const struct held_answer *held = list_entry(link, struct held_answer, link);
        if (oldest[held->reach] == 0 || held->ts < oldest[held->reach])
            oldest[held->reach] = held->ts;
    }
}

static void *distribution_main(void *context)
{
    struct distribution *distribution = context;
    pthread_mutex_lock(&distribution->lock);
    while (!distribution->closing) {
        struct list over = LIST_INIT(over);
        tl_ts oldest[JOURNAL_REACH_CLUSTER + 1] = {0};
        distribution->woken = false;
        take_over(distribution, &over);
        find_oldest(distribution, oldest);
        bool idle = list_empty(&distribution->held);
        pthread_mutex_unlock(&distribution->lock);
        send_answers(distribution, &over);
        ask_behind(distribution, oldest[JOURNAL_REACH_GROUP], JOURNAL_REACH_GROUP);
        ask_behind(distribution, oldest[JOURNAL_REACH_CLUSTER], JOURNAL_REACH_CLUSTER);
        if (!take_answers(distribution))
            (void)curl_multi_poll(distribution->multi, NULL, 0, idle ? IDLE_MS : LOOK_MS, NULL);
        pthread_mutex_lock(&distribution->lock);
    }
    pthread_mutex_unlock(&distribution->lock);
    return NULL;
}

static void free_parts(struct distribution *distribution)
{
    while (!list_empty(&distribution->questions)) {
        struct question *question = list_entry(distribution->questions.next, struct question, link);
        list_remove(&question->link);
        end_question(distribution, question);
        curl_easy_cleanup(question->curl);
        mem_free(question);
    }
    curl_multi_cleanup(distribution->multi);
    pthread_mutex_destroy(&distribution->lock);
    mem_free(distribution);
}

int distribution_open(struct api *api, struct distribution **ret_distribution)
{
    struct distribution *distribution = mem_zalloc(sizeof *distribution);
    distribution->api = api;
    list_init(&distribution->held);
    list_init(&distribution->questions);
    pthread_mutex_init(&distribution->lock, NULL);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        distribution->multi = curl_multi_init();
    if (distribution->multi == NULL ||
        pthread_create(&distribution->thread, NULL, distribution_main, distribution) != 0) {
        free_parts(distribution);
        return TL_ERR_IO;
    }
    *ret_distribution = distribution;
    return 0;
}

void distribution_close(struct distribution *distribution)
{
    if (distribution == NULL)
        return;
    pthread_mutex_lock(&distribution->lock);
    INSIST(list_empty(&distribution->held));
    distribution->closing = true;
    pthread_mutex_unlock(&distribution->lock);
    (void)curl_multi_wakeup(distribution->multi);
    pthread_join(distribution->thread, NULL);
    free_parts(distribution);
}
