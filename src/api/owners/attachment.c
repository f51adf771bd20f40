/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attachments.
 */
#include "api/owners/attachment.h"

#include <inttypes.h>
#include <pthread.h>

#include "api/request/instant.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/command/command.h"

/* How much earlier than its lease runs out a session is kept alive: three times in its ttl. */
#define KEEPALIVES_IN_TTL 3

struct attachment {
    struct list link; /* in attachments->list */
    struct attachments *owner;
    struct request *request;
    struct slice session; /* in the request's arena */
    uint64_t number;
    uint64_t period_us; /* between keepalives */
    uint64_t due_us;    /* by clock_boot_us(): the next one */
    bool busy;          /* a keepalive is under way */
    bool broken;        /* the connection is gone */
};

struct attachments {
    struct journal *journal;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct thread thread;
    struct list list;
    uint64_t last_number;
    unsigned under_way; /* commands submitted and not yet done */
    bool stopping;      /* no more attachments */
    bool closing;       /* the thread ends */
};

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static void command_over(struct attachments *attachments)
{
    pthread_mutex_lock(&attachments->lock);
    attachments->under_way--;
    pthread_cond_broadcast(&attachments->wake);
    pthread_mutex_unlock(&attachments->lock);
}

static void submit_counted(struct attachments *attachments, struct command *command)
{
    pthread_mutex_lock(&attachments->lock);
    attachments->under_way++;
    pthread_mutex_unlock(&attachments->lock);
    journal_submit(attachments->journal, command, false);
}

static void detach_done(struct command *command)
{
    struct attachments *attachments = command->context;
    command_free(command);
    command_over(attachments);
}

/* Submits to the core that the connection broke. */
static void submit_detach(struct attachments *attachments, struct slice session, uint64_t number)
{
    struct command *command = command_new(COMMAND_SESSION_DETACH, DIALECT_7);
    command->session.id = arena_copy(&command->arena, session);
    command->session.attachment = number;
    command->context = attachments;
    command->on_done = detach_done;
    submit_counted(attachments, command);
}

/* --- The end of one ----------------------------------------------------------------------------------------------- */

/* Requires: it is off the list. Assumes: no other thread uses it. */
static void attachment_end(struct attachment *attachment, bool detach)
{
    REQUIRE(!list_linked(&attachment->link));
    if (detach)
        submit_detach(attachment->owner, attachment->session, attachment->number);
    request_end_stream(attachment->request);
    mem_free(attachment);
}

static void attachment_broken(struct exchange *exchange)
{
    struct request *request = exchange->api_context;
    struct attachment *attachment = request->context;
    struct attachments *attachments = attachment->owner;
    pthread_mutex_lock(&attachments->lock);
    bool mine = !attachment->busy && list_linked(&attachment->link);
    attachment->broken = true;
    if (mine)
        list_remove(&attachment->link);
    pthread_mutex_unlock(&attachments->lock);
    if (mine)
        attachment_end(attachment, true);
}

/* --- Keepalives --------------------------------------------------------------------------------------------------- */

static void write_line(struct attachment *attachment, tl_ts now, tl_ts expires_at)
{
    struct buf line = BUF_INIT(BUF_UNLIMITED);
    struct arena arena = ARENA_INIT;
    struct exchange *exchange = attachment->request->exchange;
    buf_lit(&line, "{\"session\":");
    buf_json_string(&line, attachment->session);
    buf_printf(&line, ",\"expires_at\":\"%s\",\"timestamp\":%" PRIu64 "}\n",
               instant_end_text(&arena, now, expires_at).data, now);
    exchange->ops->stream_write(exchange, buf_as_slice(&line));
    arena_deinit(&arena);
    buf_deinit(&line);
}

static void write_problem(struct attachment *attachment, const struct problem *problem)
{
    struct buf line = BUF_INIT(BUF_UNLIMITED);
    struct exchange *exchange = attachment->request->exchange;
    buf_printf(&line, "{\"error\":{\"type\":\"%s\",\"reason\":", problem_name(problem->type));
    buf_json_string(&line, problem->reason);
    buf_printf(&line, "},\"status\":%d}\n", problem_status(problem));
    exchange->ops->stream_write(exchange, buf_as_slice(&line));
    buf_deinit(&line);
}

static void keepalive_done(struct command *command)
{
    struct attachment *attachment = command->context;
    struct attachments *attachments = attachment->owner;
    bool lost = command->problem.type != PROBLEM_NONE;
    if (lost)
        write_problem(attachment, &command->problem);
    else
        write_line(attachment, command->ts, command->session.expires_at);
    command_free(command);

    pthread_mutex_lock(&attachments->lock);
    attachment->busy = false;
    bool broken = attachment->broken;
    bool over = lost || broken || attachments->stopping;
    if (over)
        list_remove(&attachment->link);
    pthread_mutex_unlock(&attachments->lock);
    if (over)
        attachment_end(attachment, broken && !lost);
    command_over(attachments);
}

static void submit_keepalive(struct attachment *attachment)
{
    struct command *command = command_new(COMMAND_SESSION_KEEPALIVE, DIALECT_7);
    command->session.id = arena_copy(&command->arena, attachment->session);
    command->context = attachment;
    command->on_done = keepalive_done;
    submit_counted(attachment->owner, command);
}

/* Marks the attachments that are due as busy. Returns: one of them, or NULL with the time of the next. */
static struct attachment *take_due(struct attachments *attachments, uint64_t now, uint64_t *ret_next)
{
    *ret_next = now + 60 * TL_SECOND;
    list_for_each(link, &attachments->list)
    {
        struct attachment *attachment = list_entry(link, struct attachment, link);
        if (attachment->busy)
            continue;
        if (attachment->due_us <= now) {
            attachment->busy = true;
            attachment->due_us = now + attachment->period_us;
            return attachment;
        }
        if (attachment->due_us < *ret_next)
            *ret_next = attachment->due_us;
    }
    return NULL;
}

/* Requires: the lock, which is given up meanwhile. */
static void renew_leases(struct attachments *attachments, uint64_t *ret_next)
{
    REQUIRE(mutex_is_held(&attachments->lock));
    struct attachment *due;
    while (!attachments->stopping && (due = take_due(attachments, clock_boot_us(), ret_next)) != NULL) {
        pthread_mutex_unlock(&attachments->lock);
        submit_keepalive(due);
        pthread_mutex_lock(&attachments->lock);
    }
}

static void extra_done(struct command *command)
{
    struct attachments *attachments = command->context;
    command_free(command);
    command_over(attachments);
}

/*
 * Also those whose keepalive is under way: it may not have been submitted yet, or have been applied
 * long before it is handed back.
 */
void attachments_beat(struct attachments *attachments)
{
    struct list commands = LIST_INIT(commands);
    uint64_t now = clock_boot_us();
    pthread_mutex_lock(&attachments->lock);
    list_for_each(link, &attachments->list)
    {
        struct attachment *attachment = list_entry(link, struct attachment, link);
        if (attachment->broken || (!attachment->busy && attachment->due_us > now))
            continue;
        struct command *command = command_new(COMMAND_SESSION_KEEPALIVE, DIALECT_7);
        command->session.id = arena_copy(&command->arena, attachment->session);
        command->context = attachments;
        command->on_done = extra_done;
        list_append(&commands, &command->link);
    }
    pthread_mutex_unlock(&attachments->lock);
    while (!list_empty(&commands)) {
        struct command *command = list_entry(commands.next, struct command, link);
        list_remove(&command->link);
        submit_counted(attachments, command);
    }
}

static void attachments_main(void *context)
{
    struct attachments *attachments = context;
    pthread_mutex_lock(&attachments->lock);
    while (!attachments->closing) {
        uint64_t next = clock_boot_us() + TL_SECOND;
        renew_leases(attachments, &next);
        (void)clock_wait(&attachments->wake, &attachments->lock, next);
    }
    pthread_mutex_unlock(&attachments->lock);
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

int attachments_open(struct journal *journal, struct attachments **ret_attachments)
{
    struct attachments *attachments = mem_zalloc(sizeof *attachments);
    attachments->journal = journal;
    list_init(&attachments->list);
    mutex_init(&attachments->lock);
    pthread_cond_init(&attachments->wake, NULL);
    if (thread_start(&attachments->thread, "attachments", attachments_main, attachments) != 0) {
        mem_free(attachments);
        return TL_ERR_IO;
    }
    *ret_attachments = attachments;
    return 0;
}

/* Takes an attachment that is not busy off the list. Returns: NULL if all are busy. */
static struct attachment *take_idle(struct attachments *attachments)
{
    list_for_each(link, &attachments->list)
    {
        struct attachment *attachment = list_entry(link, struct attachment, link);
        if (attachment->busy)
            continue;
        list_remove(&attachment->link);
        return attachment;
    }
    return NULL;
}

void attachments_stop(struct attachments *attachments)
{
    struct attachment *idle;
    pthread_mutex_lock(&attachments->lock);
    attachments->stopping = true;
    while ((idle = take_idle(attachments)) != NULL) {
        pthread_mutex_unlock(&attachments->lock);
        attachment_end(idle, false);
        pthread_mutex_lock(&attachments->lock);
    }
    while (attachments->under_way > 0)
        pthread_cond_wait(&attachments->wake, &attachments->lock);
    pthread_mutex_unlock(&attachments->lock);
}

void attachments_close(struct attachments *attachments)
{
    if (attachments == NULL)
        return;
    attachments_stop(attachments);
    pthread_mutex_lock(&attachments->lock);
    INSIST(list_empty(&attachments->list));
    attachments->closing = true;
    pthread_cond_broadcast(&attachments->wake);
    pthread_mutex_unlock(&attachments->lock);
    thread_join(&attachments->thread);
    pthread_cond_destroy(&attachments->wake);
    pthread_mutex_destroy(&attachments->lock);
    mem_free(attachments);
}

void attachments_look(struct attachments *attachments, struct slice session)
{
    pthread_mutex_lock(&attachments->lock);
    list_for_each(link, &attachments->list)
    {
        struct attachment *attachment = list_entry(link, struct attachment, link);
        if (slice_equal(attachment->session, session))
            attachment->due_us = 0;
    }
    pthread_cond_broadcast(&attachments->wake);
    pthread_mutex_unlock(&attachments->lock);
}

uint64_t attachments_number(struct attachments *attachments)
{
    pthread_mutex_lock(&attachments->lock);
    uint64_t number = ++attachments->last_number;
    pthread_mutex_unlock(&attachments->lock);
    return (uint64_t)journal_host_number(attachments->journal) << HOST_SHIFT | number;
}

int attachments_add(struct attachments *attachments, struct request *request, struct slice session, uint64_t number,
                    tl_ts now, tl_ts expires_at)
{
    struct attachment *attachment = mem_zalloc(sizeof *attachment);
    struct exchange *exchange = request->exchange;
    attachment->owner = attachments;
    attachment->request = request;
    attachment->session = session;
    attachment->number = number;
    attachment->period_us = (expires_at - now) / KEEPALIVES_IN_TTL;
    attachment->due_us = clock_boot_us() + attachment->period_us;
    attachment->busy = true; /* until it has said its first line */
    request->context = attachment;
    exchange->status = 200;
    exchange->timestamp = now;
    exchange->content_type = "application/x-ndjson; charset=UTF-8";
    exchange->on_disconnect = attachment_broken;
    /*
     * A client's host that is gone confirms no line any more: the next one is sent after a period,
     * so the lease has run out then.
     */
    uint64_t tcp_user_timeout_ms = attachment->period_us * (KEEPALIVES_IN_TTL - 1) / TL_MS;
    exchange->tcp_user_timeout_ms = tcp_user_timeout_ms < INT32_MAX ? (uint32_t)tcp_user_timeout_ms : INT32_MAX;

    pthread_mutex_lock(&attachments->lock);
    list_append(&attachments->list, &attachment->link);
    pthread_mutex_unlock(&attachments->lock);
    request_count(request);
    exchange->ops->stream_open(exchange);
    write_line(attachment, now, expires_at);

    pthread_mutex_lock(&attachments->lock);
    attachment->busy = false;
    bool broken = attachment->broken;
    bool over = broken || attachments->stopping;
    if (over)
        list_remove(&attachment->link);
    pthread_cond_broadcast(&attachments->wake);
    pthread_mutex_unlock(&attachments->lock);
    if (over)
        attachment_end(attachment, broken);
    return REQUEST_PENDING;
}
