/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status reports of a copy to its source, for GET /_changes/_consumers and `tidelock status`.
 * Nothing depends on them: a source that refuses one, as one of an older version does, gets no
 * further ones.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "cli/escape.h"
#include "cli/replica.h"
#include "json/write.h"

#define REPORT_EVERY_US TL_SECOND       /* where something has changed */
#define REPORT_IDLE_US (30 * TL_SECOND) /* the source takes one for gone that is silent for 90 s */
#define REPORT_ANSWER_US (2 * TL_SECOND)

static void put_number(struct json_writer *writer, const char *key, uint64_t value)
{
    json_key(writer, key);
    json_u64(writer, value);
}

static void put_report(struct replica *replica, struct slice body)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct source_report *last = &replica->last_report;
    buf_lit(&path, "/_changes/_consumers/");
    client_escape(&path, slice_from(replica->options->name));
    buf_byte(&path, '\0');
    last->at_us = clock_boot_us();
    if (!source_client_aim(&replica->report_client, REPORT_ANSWER_US))
        return;
    long status = client_request(&replica->report_client, "PUT", path.data, body, REPORT_ANSWER_US);
    last->refuses_reports = status >= 400 && status < 500 && status != 429;
}

static struct source_report report_of(struct replica *replica, tl_ts place)
{
    struct lanes_counts counts = lanes_counts(replica->lanes);
    struct suspects_state suspects = suspects_state(replica->suspects);
    return (struct source_report){.place = place,
                                  .sent = counts.sent,
                                  .refused = counts.refused,
                                  .suspects = suspects.count,
                                  .mended = replica->mended};
}

static bool is_due(const struct source_report *last, const struct source_report *now, const char *state)
{
    uint64_t since = clock_boot_us() - last->at_us;
    bool same = last->place == now->place && last->sent == now->sent && last->refused == now->refused &&
                last->suspects == now->suspects;
    return last->state == NULL || strcmp(last->state, state) != 0 || since >= (same ? REPORT_IDLE_US : REPORT_EVERY_US);
}

void report_status(struct replica *replica, const char *state, tl_ts place)
{
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    struct source_report *last = &replica->last_report, now = report_of(replica, place);
    struct json_writer writer;
    if (last->refuses_reports || !is_due(last, &now, state))
        return;
    now.state = state;
    *last = now;
    json_writer_init(&writer, &body);
    json_begin(&writer, '{');
    json_key(&writer, "target");
    json_string(&writer, slice_from(url_without_password(replica->options->to)));
    json_key(&writer, "state");
    json_string(&writer, slice_from(state));
    if (place > 0)
        put_number(&writer, "place", place);
    put_number(&writer, "sent", now.sent);
    put_number(&writer, "refused", now.refused);
    put_number(&writer, "suspects", now.suspects);
    put_number(&writer, "mended", now.mended);
    json_end(&writer, '}');
    put_report(replica, buf_as_slice(&body));
}

void report_comparison(struct replica *replica, tl_ts as_of, uint64_t differences)
{
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_begin(&writer, '{');
    put_number(&writer, "verified_at", as_of);
    put_number(&writer, "verified_differences", differences);
    json_end(&writer, '}');
    put_report(replica, buf_as_slice(&body));
}
