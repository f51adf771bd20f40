/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines about requests; see access_log.h. */
#include "api/request/access_log.h"

#include <stdio.h>
#include <string.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "base/check.h"
#include "base/log.h"

enum {
    NAME_BYTES_SHOWN = 80,
    PATH_BYTES_SHOWN = 500,
    ID_BYTES_MIN = 16,  /* a shorter text is a public number */
    ID_BYTES_SHOWN = 4, /* of a session or a transaction: enough to distinguish them, and no access to it */
};

static int shown_length(struct slice text, size_t max)
{
    return (int)(text.len < max ? text.len : max);
}

/*
 * A reader of the log must not be able to use a client's session: only the begin of an id is
 * shown. Returns: its length.
 */
static size_t id_after(struct slice text, size_t at)
{
    static const char *const before[] = {"/_session/", "/_transaction/", "session=", "transaction="};
    size_t len = 0;
    for (size_t i = 0; i < sizeof before / sizeof *before && len == 0; i++) {
        size_t begin = strlen(before[i]);
        if (at < begin || memcmp(text.data + at - begin, before[i], begin) != 0)
            continue;
        while (at + len < text.len && strchr("/?&", text.data[at + len]) == NULL)
            len++;
    }
    return len;
}

/* Copies a path or a query with shortened ids. Returns: `to`. */
static const char *without_ids(struct slice text, char to[static PATH_BYTES_SHOWN + 8])
{
    size_t len = 0;
    for (size_t i = 0; i < text.len && len < PATH_BYTES_SHOWN;) {
        size_t id = id_after(text, i);
        if (id < ID_BYTES_MIN) {
            to[len++] = text.data[i++];
            continue;
        }
        len += (size_t)snprintf(to + len, ID_BYTES_SHOWN + 4, "%.*s...", ID_BYTES_SHOWN, text.data + i);
        i += id;
    }
    to[len] = '\0';
    return to;
}

const char *access_log_client(struct request *request, char to[static ACCESS_LOG_CLIENT_BYTES])
{
    struct exchange *exchange = request->exchange;
    struct slice opaque = exchange_header(exchange, "X-Opaque-Id");
    size_t len = 0;
    to[0] = '\0';
    if (exchange->ops->peer != NULL)
        len = exchange->ops->peer(exchange, to, ACCESS_LOG_CLIENT_BYTES);
    if (request->session.len > 0)
        len += (size_t)snprintf(to + len, ACCESS_LOG_CLIENT_BYTES - len, ", session %.*s...",
                                shown_length(request->session, ID_BYTES_SHOWN), request->session.data);
    if (opaque.len > 0 && len < ACCESS_LOG_CLIENT_BYTES)
        (void)snprintf(to + len, ACCESS_LOG_CLIENT_BYTES - len, ", %.*s", shown_length(opaque, NAME_BYTES_SHOWN),
                       opaque.data);
    return to;
}

void access_log_index(struct request *request, const struct command *command)
{
    char by[ACCESS_LOG_CLIENT_BYTES];
    const char *what = command->type == COMMAND_INDEX_DELETE  ? "deleted"
                       : command->type != COMMAND_INDEX_STATE ? NULL
                       : command->index.close                 ? "closed"
                                                              : "opened";
    if (what != NULL && command->problem.type == PROBLEM_NONE)
        log_info("index [%.*s] %s by %s", SLICE_ARG(command->index.name), what, access_log_client(request, by));
}

/*
 * Whether the request is one that operators want to attribute: it removed, closed or overruled
 * something.
 */
static bool is_drastic(const struct request *request)
{
    static request_handler *const drastic[] = {
        handle_index_delete,          handle_index_close,      handle_settings_put,    handle_template_delete,
        handle_index_template_delete, handle_component_delete, handle_script_delete,   handle_cluster_settings_put,
        handle_aliases_post,          handle_alias_delete,     handle_delete_by_query, handle_delete_by_query_old};
    for (size_t i = 0; i < sizeof drastic / sizeof *drastic; i++)
        if (request->route->handler == drastic[i])
            return true;
    return request->route->handler == handle_session_close && request_param(request, "force").data != NULL;
}

void access_log_request(struct request *request)
{
    REQUIRE(request->exchange->status != 0);
    char by[ACCESS_LOG_CLIENT_BYTES];
    const struct exchange *exchange = request->exchange;
    bool drastic = request->route != NULL && exchange->status < 300 && is_drastic(request);
    enum log_level level = drastic ? LOG_INFO : LOG_DEBUG;
    if (!log_is_enabled(level))
        return;
    char path[PATH_BYTES_SHOWN + 8], query[PATH_BYTES_SHOWN + 8];
    log_line(level, "%.*s %s%s%s: %d by %s%s%.*s", SLICE_ARG(exchange->method_name), without_ids(exchange->path, path),
             exchange->query.len > 0 ? "?" : "", without_ids(exchange->query, query), exchange->status,
             access_log_client(request, by), exchange->status >= 400 ? ": " : "",
             exchange->status >= 400 ? shown_length(request->problem.reason, PATH_BYTES_SHOWN) : 0,
             request->problem.reason.data);
}
