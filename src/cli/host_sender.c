/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to other hosts; see host_sender.h. */
#include "cli/host_sender.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/client.h"

enum {
    LOOK_MS = 500,         /* between two looks at calls that may give up */
    CONNECT_SECONDS = 5,   /* a host that is live accepts a connection sooner */
    KEEPALIVE_SECONDS = 5, /* between two probes of a connection that is silent */
    CALLS_MAX = 1024,      /* of clients, under way */
    IDLE_MAX = 64,         /* connections that are kept open for later calls */
};

struct sender {
    struct host_sender ops;
    CURLM *multi;
    struct thread thread;
    pthread_mutex_t lock;
    struct list sent; /* host_call by link, not begun yet */
    bool stopping;
    bool looks;          /* they are asked at once whether they give up */
    struct list running; /* host_call by link; the thread's own, and so are the next */
    size_t client_calls; /* of `running`, without those of the hosts' own */
    uint64_t looked_at;  /* boot clock: when it last asked them whether they give up */
};

/* The thread's, of one call. */
struct transfer {
    struct host_call *call;
    CURL *curl;
    struct curl_slist *headers;
    char *url, *method;
    char error[HOST_CALL_ERROR_BYTES];
};

static char *text_of(struct slice text)
{
    return mem_strdup(text.data, text.len);
}

/* --- One call ----------------------------------------------------------------------------------------------------- */

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    struct host_call *call = context;
    size_t len = size * count;
    struct slice text = slice_make(line, len);
    size_t colon = slice_find_byte(text, ':');
    if (colon == len || call->take_header == NULL)
        return len;
    struct slice value = slice_from_offset(text, colon + 1);
    while (value.len > 0 && (value.data[0] == ' ' || value.data[0] == '\t'))
        value = slice_from_offset(value, 1);
    while (value.len > 0 && strchr(" \t\r\n", value.data[value.len - 1]) != NULL)
        value.len--;
    call->take_header(call, slice_make(line, colon), value);
    return len;
}

static struct curl_slist *header_list(const struct host_call *call)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < call->header_count; i++) {
        char *line = text_of(call->headers[i]);
        list = curl_slist_append(list, line);
        mem_free(line);
    }
    return list;
}

static void set_up(struct transfer *transfer)
{
    struct host_call *call = transfer->call;
    CURL *curl = transfer->curl;
    client_configure(curl, transfer->headers);
    curl_easy_setopt(curl, CURLOPT_URL, transfer->url);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, transfer->method);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(call->timeout_us / TL_MS));
    curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* a replaced file is used */
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_SECONDS);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_SECONDS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, client_collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, call->reply);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, call);
    if (call->body.data != NULL) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body.data);
    }
    if (slice_is(call->method, "HEAD"))
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
}

/* Ends a call that was not begun. */
static void end_unsent(struct host_call *call)
{
    call->status = 0;
    snprintf(call->error, sizeof call->error, "[%d] requests to other hosts are under way, which is the limit",
             CALLS_MAX);
    call->done(call);
}

static void begin_transfer(struct sender *sender, struct host_call *call)
{
    if (!call->is_own && sender->client_calls == CALLS_MAX) {
        end_unsent(call);
        return;
    }
    sender->client_calls += !call->is_own;
    struct transfer *transfer = mem_zalloc(sizeof *transfer);
    struct buf url = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&url, "%s://%.*s%.*s", call->tls ? "https" : "http", SLICE_ARG(call->address), SLICE_ARG(call->target));
    buf_byte(&url, '\0');
    *transfer = (struct transfer){.call = call,
                                  .curl = curl_easy_init(),
                                  .headers = header_list(call),
                                  .url = buf_detach(&url, &(size_t){0}),
                                  .method = text_of(call->method)};
    INSIST(transfer->curl != NULL);
    call->handle = transfer;
    set_up(transfer);
    list_append(&sender->running, &call->link);
    CURLMcode r = curl_multi_add_handle(sender->multi, transfer->curl);
    INSIST(r == CURLM_OK);
}

/* `why` NULL: the reply has come whole. */
static void end_transfer(struct sender *sender, struct transfer *transfer, const char *why)
{
    struct host_call *call = transfer->call;
    long status = 0;
    if (why == NULL)
        curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    else
        snprintf(call->error, sizeof call->error, "%s", why);
    call->status = (int)status;
    curl_multi_remove_handle(sender->multi, transfer->curl);
    curl_easy_cleanup(transfer->curl);
    curl_slist_free_all(transfer->headers);
    mem_free(transfer->url);
    mem_free(transfer->method);
    mem_free(transfer);
    list_remove(&call->link);
    sender->client_calls -= !call->is_own;
    call->done(call);
}

static void end_finished(struct sender *sender)
{
    CURLMsg *message;
    while ((message = curl_multi_info_read(sender->multi, &(int){0})) != NULL) {
        struct transfer *transfer;
        CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        char why[HOST_CALL_ERROR_BYTES];
        snprintf(why, sizeof why, "%s", transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(result));
        client_add_advice(result, transfer->call->tls, "cluster-", NULL, why, sizeof why);
        end_transfer(sender, transfer, result == CURLE_OK ? NULL : why);
    }
}

static void end_given_up(struct sender *sender, bool at_once)
{
    uint64_t now = clock_boot_us();
    if (!at_once && now - sender->looked_at < LOOK_MS * TL_MS)
        return;
    sender->looked_at = now;
    list_for_each_safe(link, following, &sender->running)
    {
        struct host_call *call = list_entry(link, struct host_call, link);
        if (call->gives_up(call))
            end_transfer(sender, call->handle, "it is out of the cluster, or the request has ended");
    }
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

/* Returns: whether the sender stops, with whether all calls are to be asked now whether they give up. */
static bool begin_sent(struct sender *sender, bool *ret_looks)
{
    struct list taken = LIST_INIT(taken);
    pthread_mutex_lock(&sender->lock);
    bool stopping = sender->stopping;
    *ret_looks = sender->looks;
    sender->looks = false;
    while (!list_empty(&sender->sent)) {
        struct list *link = sender->sent.next;
        list_remove(link);
        list_append(&taken, link);
    }
    pthread_mutex_unlock(&sender->lock);
    list_for_each_safe(link, following, &taken)
    {
        list_remove(link);
        begin_transfer(sender, list_entry(link, struct host_call, link));
    }
    return stopping;
}

static void sender_main(void *context)
{
    struct sender *sender = context;
    bool looks;
    while (!begin_sent(sender, &looks)) {
        int running;
        (void)curl_multi_perform(sender->multi, &running);
        end_finished(sender);
        end_given_up(sender, looks);
        /* without a call it sleeps until it is woken */
        (void)curl_multi_poll(sender->multi, NULL, 0, list_empty(&sender->running) ? 3600 * 1000 : LOOK_MS, NULL);
    }
}

static void send_call(void *context, struct host_call *call)
{
    struct sender *sender = context;
    pthread_mutex_lock(&sender->lock);
    list_append(&sender->sent, &call->link);
    (void)curl_multi_wakeup(sender->multi); /* under the lock: after it the call may end, and the sender be closed */
    pthread_mutex_unlock(&sender->lock);
}

static void look_for_calls(void *context)
{
    struct sender *sender = context;
    pthread_mutex_lock(&sender->lock);
    sender->looks = true;
    (void)curl_multi_wakeup(sender->multi);
    pthread_mutex_unlock(&sender->lock);
}

int host_sender_open(struct sender **ret_sender)
{
    struct sender *sender = mem_zalloc(sizeof *sender);
    sender->ops = (struct host_sender){.send = send_call, .look = look_for_calls, .context = sender};
    sender->multi = curl_multi_init();
    (void)curl_multi_setopt(sender->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_MAX);
    list_init(&sender->sent);
    list_init(&sender->running);
    pthread_mutex_init(&sender->lock, NULL);
    if (sender->multi == NULL || thread_start(&sender->thread, "sender", sender_main, sender) != 0) {
        (void)curl_multi_cleanup(sender->multi);
        pthread_mutex_destroy(&sender->lock);
        mem_free(sender);
        return tl_trace(TL_ERR_IO);
    }
    *ret_sender = sender;
    return 0;
}

void host_sender_close(struct sender *sender)
{
    if (sender == NULL)
        return;
    pthread_mutex_lock(&sender->lock);
    sender->stopping = true;
    pthread_mutex_unlock(&sender->lock);
    (void)curl_multi_wakeup(sender->multi);
    thread_join(&sender->thread);
    REQUIRE(list_empty(&sender->running) && list_empty(&sender->sent));
    (void)curl_multi_cleanup(sender->multi);
    pthread_mutex_destroy(&sender->lock);
    mem_free(sender);
}

const struct host_sender *host_sender_ops(struct sender *sender)
{
    return &sender->ops;
}
