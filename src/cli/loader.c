/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk loading over HTTP; see loader.h. */
#include "cli/loader.h"

#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/types.h"
#include "cli/client.h"
#include "json/each.h"

enum {
    RETRY_FIRST_MS = 100,
    RETRY_MAX_MS = 5000,
    REPLY_BYTES_MAX = 64 << 20,
};

/* A request at a time, from being filled to being answered. */
struct job {
    CURL *curl;
    struct buf body;
    struct buf reply;
    size_t count; /* documents */
    unsigned tries;
    uint64_t due_ms; /* when to try again; 0: it is in flight or free */
    bool busy;
};

struct loader {
    struct loader_options options;
    CURLM *multi;
    struct curl_slist *headers;
    char *url;
    struct job *jobs;
    struct job *filling; /* NULL: none */
    struct loader_counts counts;
    char *error;
    bool broken;
};

static uint64_t now_ms(void)
{
    return clock_boot_us() / TL_MS;
}

static void job_init(struct loader *loader, struct job *job)
{
    job->curl = curl_easy_init();
    job->body = BUF_INIT(BUF_UNLIMITED);
    job->reply = BUF_INIT(REPLY_BYTES_MAX);
    client_configure(job->curl, loader->headers);
    curl_easy_setopt(job->curl, CURLOPT_URL, loader->url);
    curl_easy_setopt(job->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(job->curl, CURLOPT_PRIVATE, job);
    curl_easy_setopt(job->curl, CURLOPT_WRITEFUNCTION, client_collect);
    curl_easy_setopt(job->curl, CURLOPT_WRITEDATA, &job->reply);
}

struct loader *loader_new(const struct loader_options *options)
{
    struct loader *loader = mem_zalloc(sizeof *loader);
    loader->options = *options;
    loader->multi = curl_multi_init();
    loader->headers = curl_slist_append(NULL, "Content-Type: application/x-ndjson");
    loader->headers = curl_slist_append(loader->headers, "Expect:");
    struct buf url = BUF_INIT(BUF_UNLIMITED);
    size_t len;
    buf_printf(&url, "%s/", options->url);
    client_escape(&url, slice_from(options->index));
    if (options->type != NULL) {
        buf_byte(&url, '/');
        client_escape(&url, slice_from(options->type));
    }
    buf_lit(&url, "/_bulk?filter_path=errors,items.*.status,items.*.error.reason");
    loader->url = buf_detach(&url, &len);
    loader->jobs = mem_zalloc(options->jobs * sizeof *loader->jobs);
    for (unsigned i = 0; i < options->jobs; i++)
        job_init(loader, &loader->jobs[i]);
    return loader;
}

void loader_free(struct loader *loader)
{
    for (unsigned i = 0; i < loader->options.jobs; i++) {
        struct job *job = &loader->jobs[i];
        curl_multi_remove_handle(loader->multi, job->curl);
        curl_easy_cleanup(job->curl);
        buf_deinit(&job->body);
        buf_deinit(&job->reply);
    }
    curl_multi_cleanup(loader->multi);
    curl_slist_free_all(loader->headers);
    mem_free(loader->jobs);
    mem_free(loader->url);
    mem_free(loader->error);
    mem_free(loader);
}

static void note_error(struct loader *loader, const char *error)
{
    if (loader->error == NULL && error != NULL)
        loader->error = mem_strdup(error, strlen(error));
}

static void send_job(struct loader *loader, struct job *job)
{
    job->busy = true;
    job->due_ms = 0;
    job->tries++;
    buf_clear(&job->reply);
    curl_easy_setopt(job->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)job->body.len);
    curl_easy_setopt(job->curl, CURLOPT_POSTFIELDS, job->body.data);
    curl_multi_add_handle(loader->multi, job->curl);
}

/* Counts what became of each document of an answered batch. */
static void count_items(struct loader *loader, struct job *job, yyjson_val *root)
{
    struct loader_counts *counts = &loader->counts;
    size_t i;
    size_t max;
    yyjson_val *item;
    json_arr_foreach (yyjson_obj_get(root, "items"), i, max, item) {
        yyjson_val *result = yyjson_obj_get(item, loader->options.overwrite ? "index" : "create");
        int status = (int)yyjson_get_int(yyjson_obj_get(result, "status"));
        if (status == 201) {
            counts->created++;
        } else if (status == 200) {
            counts->updated++;
        } else if (status == 409 && !loader->options.overwrite) {
            counts->present++;
        } else {
            counts->failed++;
            note_error(loader, yyjson_get_str(yyjson_obj_get(yyjson_obj_get(result, "error"), "reason")));
        }
    }
    counts->sent += job->count;
}

static void free_job(struct job *job)
{
    buf_clear(&job->body);
    job->count = 0;
    job->tries = 0;
    job->busy = false;
}

/* Tries again later, or gives up. */
static void retry_job(struct loader *loader, struct job *job, const char *why)
{
    if (job->tries >= loader->options.tries) {
        note_error(loader, why);
        loader->broken = true;
        job->busy = false;
        return;
    }
    uint64_t pause = (uint64_t)RETRY_FIRST_MS << (job->tries - 1 < 10 ? job->tries - 1 : 10);
    job->due_ms = now_ms() + (pause < RETRY_MAX_MS ? pause : RETRY_MAX_MS);
}

static void finish_job(struct loader *loader, struct job *job, CURLcode result)
{
    long status = 0;
    curl_easy_getinfo(job->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(loader->multi, job->curl);
    if (result != CURLE_OK) {
        retry_job(loader, job, curl_easy_strerror(result));
        return;
    }
    yyjson_doc *reply = yyjson_read(job->reply.data != NULL ? job->reply.data : "", job->reply.len, 0);
    yyjson_val *root = yyjson_doc_get_root(reply);
    if (status == 200 && yyjson_arr_size(yyjson_obj_get(root, "items")) == job->count) {
        count_items(loader, job, root);
        free_job(job);
    } else if (status == 200) {
        retry_job(loader, job, "the answer to a batch does not name each document of it");
    } else {
        const char *reason = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(root, "error"), "reason"));
        bool passing = status == 429 || status == 502 || status == 503 || status == 504 || status == 507;
        if (!passing)
            job->tries = loader->options.tries;
        retry_job(loader, job, reason != NULL ? reason : "the server refused the batch");
    }
    yyjson_doc_free(reply);
}

/* Processes transfers, for at most `wait_ms`. */
static void pump_transfers(struct loader *loader, int wait_ms)
{
    int running;
    int queued;
    for (unsigned i = 0; i < loader->options.jobs; i++)
        if (loader->jobs[i].due_ms != 0 && loader->jobs[i].due_ms <= now_ms())
            send_job(loader, &loader->jobs[i]);
    curl_multi_perform(loader->multi, &running);
    if (wait_ms > 0)
        curl_multi_poll(loader->multi, NULL, 0, wait_ms, NULL);
    const CURLMsg *message;
    while ((message = curl_multi_info_read(loader->multi, &queued)) != NULL) {
        struct job *job;
        CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &job);
        finish_job(loader, job, result);
    }
}

static struct job *find_free(struct loader *loader)
{
    for (unsigned i = 0; i < loader->options.jobs; i++)
        if (!loader->jobs[i].busy)
            return &loader->jobs[i];
    return NULL;
}

struct buf *loader_begin(struct loader *loader, struct slice id)
{
    while (loader->filling == NULL) {
        loader->filling = find_free(loader);
        if (loader->filling == NULL)
            pump_transfers(loader, 100);
    }
    struct buf *body = &loader->filling->body;
    if (loader->options.overwrite)
        buf_lit(body, "{\"index\":{\"_id\":");
    else
        buf_lit(body, "{\"create\":{\"_id\":");
    buf_json_string(body, id);
    buf_lit(body, "}}\n");
    return body;
}

static int loader_state(const struct loader *loader)
{
    return loader->broken ? TL_ERR_IO : 0;
}

int loader_commit(struct loader *loader)
{
    struct job *job = loader->filling;
    REQUIRE(job != NULL);
    buf_byte(&job->body, '\n');
    job->count++;
    if (job->count >= loader->options.batch_count || job->body.len >= loader->options.batch_bytes) {
        loader->filling = NULL;
        send_job(loader, job);
        pump_transfers(loader, 0);
    }
    return loader_state(loader);
}

int loader_finish(struct loader *loader)
{
    if (loader->filling != NULL && loader->filling->count > 0)
        send_job(loader, loader->filling);
    loader->filling = NULL;
    for (;;) {
        bool busy = false;
        for (unsigned i = 0; i < loader->options.jobs; i++)
            busy = busy || loader->jobs[i].busy;
        if (!busy || loader->broken)
            return loader_state(loader);
        pump_transfers(loader, 100);
    }
}

const struct loader_counts *loader_counts(const struct loader *loader)
{
    return &loader->counts;
}

const char *loader_error(const struct loader *loader)
{
    return loader->error;
}
