/* SPDX-License-Identifier: Apache-2.0 */
/* A client of a server; see client.h. */
#include "cli/client.h"

#include <stdio.h>
#include <string.h>

#include "base/types.h"
#include "cli/shown.h"

enum { REPLY_BYTES_MAX = 1 << 30 };

size_t client_collect(char *bytes, size_t size, size_t count, void *buf)
{
    struct buf *to = buf;
    buf_append(to, bytes, size * count);
    return to->overflow ? 0 : size * count;
}

void client_configure(CURL *curl, struct curl_slist *headers)
{
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "tidelock/" TIDELOCK_VERSION);
}

void client_init(struct client *client, const char *url)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    *client = (struct client){.url = mem_strdup(url, len), .curl = curl_easy_init(), .body = BUF_INIT(REPLY_BYTES_MAX)};
    client->headers = curl_slist_append(NULL, "Content-Type: application/json");
    client->headers = curl_slist_append(client->headers, "Expect:");
    client_configure(client->curl, client->headers);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, client->error);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, client_collect);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &client->body);
}

void client_deinit(struct client *client)
{
    yyjson_doc_free(client->json);
    buf_deinit(&client->body);
    curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->headers);
    mem_free(client->url);
}

static void forget_reply(struct client *client)
{
    yyjson_doc_free(client->json);
    client->json = NULL;
    buf_clear(&client->body);
    client->error[0] = '\0';
}

/* Says behind curl's words what a person may do when nothing listens there. */
static void add_advice(struct client *client)
{
    size_t len = strlen(client->error);
    snprintf(client->error + len, sizeof client->error - len,
             "; is a server running? `tidelock serve` starts one, --url names another");
}

long client_request(struct client *client, const char *method, const char *path, struct slice body, uint64_t timeout_us)
{
    CURL *curl = client->curl;
    long status = 0;
    char *url = NULL;
    forget_reply(client);
    if (asprintf(&url, "%s%s", client->url, path) < 0)
        return 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(timeout_us / TL_MS));
    if (body.data != NULL) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data);
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    CURLcode result = curl_easy_perform(curl);
    if (result == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    else if (result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST)
        add_advice(client);
    mem_free(url);
    if (client->body.len > 0)
        client->json = yyjson_read(client->body.data, client->body.len, 0);
    return status;
}

yyjson_val *client_json(const struct client *client)
{
    return yyjson_doc_get_root(client->json);
}

const char *client_error(const struct client *client, long status)
{
    if (status == 0)
        return client->error[0] != '\0' ? shown(client->error) : "no reply";
    yyjson_val *error = yyjson_obj_get(client_json(client), "error");
    const char *reason = yyjson_get_str(yyjson_is_str(error) ? error : yyjson_obj_get(error, "reason"));
    return reason != NULL ? shown(reason) : "the server refused without a reason";
}

void client_escape(struct buf *to, struct slice text)
{
    static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~*,";
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '\0' && strchr(unreserved, text.data[i]) != NULL)
            buf_byte(to, text.data[i]);
        else
            buf_printf(to, "%%%02X", (unsigned char)text.data[i]);
    }
}
