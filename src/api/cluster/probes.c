/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes for supervisors and load balancers (docs/monitoring.md, "Probes"). They read two flags: no
 * command, no lock, no disk, and they are answered when memory is short.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"

static int answer_probe(struct request *request, int status, const char *is, const char *reason)
{
    struct json_writer writer;
    reply_begin(request, status, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "status");
    json_string(&writer, slice_from(is));
    if (reason != NULL) {
        json_key(&writer, "reason");
        json_string(&writer, slice_from(reason));
    }
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* It answers: what else could be asked of a process whose only cure is to be started again? */
int handle_health_live(struct request *request)
{
    int r = request_accept(request);
    return r != 0 ? r : answer_probe(request, 200, "live", NULL);
}

/* Whether requests should be sent here. One that is stopping refuses all of them by itself (src/http). */
int handle_health_ready(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    if (journal_writable(request->api->journal))
        return answer_probe(request, 200, "ready", NULL);
    return answer_probe(request, 503, "not ready",
                        "the disk of the data directory is full: writes are refused, reads are served");
}
