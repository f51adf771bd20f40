/* SPDX-License-Identifier: Apache-2.0 */
/* A client of a server; see client.h. */
#include "cli/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "cli/escape.h"
#include "json/each.h"

enum { REPLY_BYTES_MAX = 1 << 30 };

/* The command line's, or the environment's. */
static const char *arg_cacert, *arg_cert, *arg_key;

error_t client_option(int key, const char *text)
{
    switch (key) {
    case CLIENT_OPTION_CACERT: arg_cacert = text; return 0;
    case CLIENT_OPTION_CERT: arg_cert = text; return 0;
    case CLIENT_OPTION_KEY: arg_key = text; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void export_variable(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
}

void client_export(void)
{
    export_variable("TIDELOCK_CACERT", arg_cacert);
    export_variable("TIDELOCK_CERT", arg_cert);
    export_variable("TIDELOCK_KEY", arg_key);
}

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
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (arg_cacert != NULL) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, arg_cacert);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* this one, and none of the system's */
    }
    curl_easy_setopt(curl, CURLOPT_SSLCERT, arg_cert);
    curl_easy_setopt(curl, CURLOPT_SSLKEY, arg_key);
}

/* Of all headers one is looked at. */
static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    static const char name[] = "Tidelock-Timestamp:";
    struct client *client = context;
    if (count > sizeof name && strncasecmp(line, name, sizeof name - 1) == 0)
        client->timestamp = strtoull(line + sizeof name - 1, NULL, 10); /* it ends with CRLF */
    return size * count;
}

void client_set_transaction(struct client *client, const char *id)
{
    struct buf header = BUF_INIT(BUF_UNLIMITED);
    client->in_transaction = id != NULL;
    curl_slist_free_all(client->headers);
    client->headers = curl_slist_append(NULL, "Content-Type: application/json");
    client->headers = curl_slist_append(client->headers, "Expect:");
    if (id != NULL) {
        buf_printf(&header, "Tidelock-Transaction: %s", id);
        buf_byte(&header, '\0');
        client->headers = curl_slist_append(client->headers, header.data);
    }
    client_configure(client->curl, client->headers);
    buf_deinit(&header);
}

/* Returns: the URL without slashes at its end. Owns: the caller. */
static char *copy_url(const char *url)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    return mem_strdup(url, len);
}

void client_set_url(struct client *client, const char *url)
{
    if (strcmp(client->url, url) == 0)
        return;
    mem_free(client->url);
    client->url = copy_url(url);
}

void client_init(struct client *client, const char *url)
{
    *client = (struct client){.url = copy_url(url),
                              .curl = curl_easy_init(),
                              .body = BUF_INIT(REPLY_BYTES_MAX),
                              .option_prefix = "",
                              .absent_advice = "is a server running? `tidelock serve` starts one, --url names another"};
    client_set_transaction(client, NULL);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, client->error);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, client_collect);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &client->body);
    curl_easy_setopt(client->curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(client->curl, CURLOPT_HEADERDATA, client);
}

void client_init_tidelock(struct client *client, const char *url)
{
    client_init(client, url);
    client->of_tidelock = true;
}

void client_deinit(struct client *client)
{
    yyjson_doc_free(client->json);
    buf_deinit(&client->body);
    curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->headers);
    mem_free(client->url);
}

void client_header(struct client *client, const char *name, const char *value)
{
    struct buf line = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&line, "%s: %s", name, value);
    buf_byte(&line, '\0');
    client->headers = curl_slist_append(client->headers, line.data);
    buf_deinit(&line);
}

static void forget_reply(struct client *client)
{
    yyjson_doc_free(client->json);
    client->json = NULL;
    buf_clear(&client->body);
    client->error[0] = '\0';
    client->timestamp = 0;
}

void client_add_advice(CURLcode result, bool tls, const char *option_prefix, const char *absent_advice, char *error,
                       size_t size)
{
    size_t len = strlen(error);
    char *end = error + len;
    bool between_hosts = option_prefix[0] != '\0';
    size -= len;
    switch (result) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        if (absent_advice != NULL)
            snprintf(end, size, "; %s", absent_advice);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        snprintf(end, size, "; --%s names the file with the certificate of the authority that signed the server's",
                 between_hosts ? "cluster-ca" : "cacert");
        break;
    case CURLE_SSL_CONNECT_ERROR:
        if (!between_hosts)
            snprintf(end, size, "; does the server speak TLS there? http:// is for those that do not");
        break;
    case CURLE_RECV_ERROR:
        if (tls && arg_cert == NULL)
            snprintf(end, size, "; a server with --tls-ca wants a certificate: --%scert, --%skey", option_prefix,
                     option_prefix);
        break;
    default: break;
    }
}

/* curl sends a request again by itself when a connection that it used before ends without an answer. */
static int count_attempt(void *context, char *there, char *here, int port_there, int port_here)
{
    struct client *client = context;
    (void)there, (void)here, (void)port_there, (void)port_here;
    client->attempts++;
    return CURL_PREREQFUNC_OK;
}

static int look_whether_to_wait(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct client *client = context;
    (void)a, (void)b, (void)c, (void)d;
    return client->gives_up(client);
}

/* Returns: the headers of the next request. Owns: the caller, where they are not client->headers. */
static struct curl_slist *request_headers(const struct client *client)
{
    struct curl_slist *headers = NULL;
    char line[64];
    if (client->after == 0)
        return client->headers;
    for (const struct curl_slist *header = client->headers; header != NULL; header = header->next)
        headers = curl_slist_append(headers, header->data);
    snprintf(line, sizeof line, "Tidelock-After: %llu", (unsigned long long)client->after);
    return curl_slist_append(headers, line);
}

/* Returns: the status of the reply; 0: it is of another program than client_init_tidelock() requires. */
static long check_sender(struct client *client, long status)
{
    bool is_success = status >= 200 && status < 300;
    if (!is_success || !client->of_tidelock || client->timestamp != 0)
        return status;
    snprintf(client->error, sizeof client->error,
             "another program than Tidelock has answered; --url names the server, without a proxy that answers itself");
    buf_clear(&client->body);
    return 0;
}

bool client_is_too_large(const struct client *client)
{
    return client->body.overflow;
}

long client_request(struct client *client, const char *method, const char *path, struct slice body, uint64_t timeout_us)
{
    CURL *curl = client->curl;
    long status = 0;
    char *url = NULL;
    forget_reply(client);
    client->attempts = 0;
    client->timed_out = false;
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, count_attempt);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, client);
    if (client->gives_up != NULL) {
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_whether_to_wait);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    }
    if (asprintf(&url, "%s%s", client->url, path) < 0)
        return 0;
    struct curl_slist *headers = request_headers(client);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
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
    client->timed_out = result == CURLE_OPERATION_TIMEDOUT;
    long connections = 0;
    curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connections);
    if (result == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    else if (client_is_too_large(client))
        snprintf(client->error, sizeof client->error, "the answer is larger than %zu MB", client->body.max >> 20);
    else
        client_add_advice(result, strncmp(client->url, "https:", 6) == 0, client->option_prefix, client->absent_advice,
                          client->error, sizeof client->error);
    client->connected = client->connected || connections > 0;
    mem_free(url);
    if (headers != client->headers) {
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers);
        curl_slist_free_all(headers);
    }
    status = check_sender(client, status);
    if (client->body.len > 0)
        client->json =
            yyjson_read(client->body.data, client->body.len, client->raw_numbers ? YYJSON_READ_NUMBER_AS_RAW : 0);
    return status;
}

yyjson_val *client_json(const struct client *client)
{
    return yyjson_doc_get_root(client->json);
}

bool client_has_error(const struct client *client, const char *type)
{
    return slice_is(json_slice(yyjson_obj_get(yyjson_obj_get(client_json(client), "error"), "type")), type);
}

const char *client_error(const struct client *client, long status)
{
    if (status == 0)
        return client->error[0] != '\0' ? escape_terminal(client->error) : "no reply";
    yyjson_val *error = yyjson_obj_get(client_json(client), "error");
    const char *reason = yyjson_get_str(yyjson_is_str(error) ? error : yyjson_obj_get(error, "reason"));
    if (reason != NULL)
        return escape_terminal(reason);
    char answer[64];
    snprintf(answer, sizeof answer, "it answers %ld, without a reason", status);
    return escape_terminal(answer);
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
