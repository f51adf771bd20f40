/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says of requests; see tell.h. */
#include "api/request/tell.h"

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "base/log.h"

enum { WHO_BYTES = 256, NAME_BYTES_SHOWN = 80, PATH_BYTES_SHOWN = 500 };

static int shown(struct slice text, size_t max)
{
    return (int)(text.len < max ? text.len : max);
}

/* "127.0.0.1:4711, session …, opaque id …", as far as there is any. */
static const char *who(struct request *request, char to[static WHO_BYTES])
{
    struct exchange *exchange = request->exchange;
    struct slice opaque = exchange_header(exchange, "X-Opaque-Id");
    size_t len = 0;
    to[0] = '\0';
    if (exchange->ops->peer != NULL)
        len = exchange->ops->peer(exchange, to, WHO_BYTES);
    if (request->session.len > 0)
        len += (size_t)snprintf(to + len, WHO_BYTES - len, ", session %.*s", shown(request->session, NAME_BYTES_SHOWN),
                                request->session.data);
    if (opaque.len > 0 && len < WHO_BYTES)
        (void)snprintf(to + len, WHO_BYTES - len, ", %.*s", shown(opaque, NAME_BYTES_SHOWN), opaque.data);
    return to;
}

void tell_index(struct request *request, const struct command *command)
{
    char by[WHO_BYTES];
    const char *what = command->type == COMMAND_INDEX_DELETE  ? "deleted"
                       : command->type != COMMAND_INDEX_STATE ? NULL
                       : command->index.close                 ? "closed"
                                                              : "opened";
    if (what != NULL && command->problem.type == PROBLEM_NONE)
        log_info("index [%.*s] %s by %s", SLICE_ARG(command->index.name), what, who(request, by));
}

/* Whether others will ask who did that. */
static bool is_drastic(const struct request *request)
{
    static request_handler *const drastic[] = {
        handle_index_delete,    handle_index_close,          handle_settings_put, handle_template_delete,
        handle_script_delete,   handle_cluster_settings_put, handle_aliases_post, handle_alias_delete,
        handle_delete_by_query, handle_delete_by_query_old};
    for (size_t i = 0; i < sizeof drastic / sizeof *drastic; i++)
        if (request->route->handler == drastic[i])
            return true;
    return request->route->handler == handle_session_close && request_param(request, "force").data != NULL;
}

void tell_request(struct request *request)
{
    char by[WHO_BYTES];
    const struct exchange *exchange = request->exchange;
    bool drastic = request->route != NULL && exchange->status < 300 && is_drastic(request);
    enum log_level level = drastic ? LOG_INFO : LOG_DEBUG;
    if (!log_wants(level))
        return;
    log_line(level, "%.*s %.*s%s%.*s: %d by %s%s%.*s", SLICE_ARG(exchange->method_name),
             shown(exchange->path, PATH_BYTES_SHOWN), exchange->path.data, exchange->query.len > 0 ? "?" : "",
             shown(exchange->query, PATH_BYTES_SHOWN), exchange->query.data, exchange->status, who(request, by),
             exchange->status >= 400 ? ": " : "",
             exchange->status >= 400 ? shown(request->problem.reason, PATH_BYTES_SHOWN) : 0,
             request->problem.reason.data);
}
