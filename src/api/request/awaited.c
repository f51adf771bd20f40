/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a timestamp; see awaited.h. */
#include "api/request/awaited.h"

#include <inttypes.h>

#include "api/request/api_internal.h"
#include "api/request/followers.h"
#include "base/check.h"
#include "base/clock.h"

#define WAIT_DEFAULT_US ((int64_t)(10 * TL_SECOND))

/* A request's wait; in its arena. */
struct awaited {
    struct follower follower;
    tl_ts ts;
    request_handler *then;
    int64_t wait_us;
};

int awaited_read(struct request *request)
{
    struct slice text = exchange_header(request->exchange, "Tidelock-After");
    if (text.data == NULL || (slice_to_u64(text, &request->after) && request->after > 0 && request->after <= TL_TS_MAX))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "[Tidelock-After] must be a timestamp, as [Tidelock-Timestamp] of a response is, got [%.*s]",
                          SLICE_ARG(text));
}

static int wait_over(struct request *request)
{
    struct awaited *awaited = request->awaited;
    tl_ts stable = journal_stable(request->api->journal);
    request->awaited = NULL;
    request_start_timer(request);
    if (stable >= awaited->ts)
        return awaited->then(request);
    if (!atomic_load(&request->abandoned) && clock_boot_us() < awaited->follower.until_us)
        return request_refuse_stopping(request);
    return request_refuse(request, PROBLEM_TIMESTAMP_NOT_REACHED,
                          "timestamp [%" PRIu64 "] was not reached within [%" PRId64
                          "ms]: the newest on this host is [%" PRIu64 "]; ask again, or with a longer [timeout]",
                          awaited->ts, awaited->wait_us / (int64_t)TL_MS, stable);
}

int awaited_timestamp(struct request *request, tl_ts ts, request_handler *then)
{
    int64_t wait_us = WAIT_DEFAULT_US;
    if (ts <= journal_stable(request->api->journal))
        return then(request);
    int r = request_time(request, "timeout", &wait_us);
    if (r != 0)
        return r;
    REQUIRE(request->awaited == NULL);
    struct awaited *awaited = arena_zalloc(request->arena, sizeof *awaited);
    wait_us = wait_us < 0 ? 0 : wait_us;
    *awaited = (struct awaited){.ts = ts, .then = then, .wait_us = wait_us};
    awaited->follower = (struct follower){.request = request,
                                          .then = wait_over,
                                          .seen = ts - 1,
                                          .once = true,
                                          .until_us = clock_boot_us() + (uint64_t)wait_us};
    request->awaited = awaited;
    r = followers_wait(request->api->followers, &awaited->follower);
    return r == REQUEST_PENDING ? r : request_refuse_stopping(request);
}
