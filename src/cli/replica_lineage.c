/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the source still has the changes that a copy has seen: one that was restored from a backup
 * has lost the later ones; see replica.h, invariant 15.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/replica.h"
#include "json/each.h"

/* Of the last answer of a feed: the timestamp of its first line; 0: none. */
static tl_ts first_timestamp(const struct client *client)
{
    struct slice text = buf_as_slice(&client->body);
    if (text.len == 0)
        return 0;
    yyjson_doc *line = yyjson_read(text.data, slice_find_byte(text, '\n'), 0);
    tl_ts ts = yyjson_get_uint(yyjson_obj_get(yyjson_doc_get_root(line), "timestamp"));
    yyjson_doc_free(line);
    return ts;
}

/*
 * Whether this copy has reported a place that is not before the change: then the source had it, also
 * where its feed does not reach back to it any more. *ret_has is false if that is unknown.
 */
static int has_report(struct replica *replica, bool *ret_has)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&path, "/_changes/_consumers/");
    client_escape(&path, slice_from(replica->options->name));
    buf_byte(&path, '\0');
    long status = source_ask_present(&replica->source, "GET", path.data, SLICE_NONE);
    if (status != 200 && status != 404)
        return source_complain(&replica->source, "cannot read the copy's status in the source", "", status);
    yyjson_val *reports = yyjson_obj_get(client_json(&replica->source), "consumers");
    yyjson_val *report = yyjson_arr_get_first(reports);
    *ret_has = status == 200 && replica_number(report, "place") >= replica->seen &&
               yyjson_equals_str(yyjson_obj_get(report, "target"), url_without_password(replica->options->to));
    return 0;
}

/*
 * The feed does not show changes of an index that was deleted since. So a change that is missing is
 * no evidence where a report vouches for it. A report of this run does not, since the source may
 * have been restored before it: while the copy follows, only one of a place that the feed does not
 * reach back to counts.
 */
int lineage_check(struct replica *replica, bool unreported)
{
    char path[96];
    bool has = false;
    int r = 0;
    if (replica->seen == 0 || replica->restored)
        return 0;
    long status = source_ask_present(&replica->source, "GET", "/_timestamp", SLICE_NONE);
    if (status != 200)
        return source_complain(&replica->source, "cannot read the source's timestamp", "", status);
    replica->restored = replica->source.timestamp < replica->seen;
    if (replica->restored)
        return 0;
    snprintf(path, sizeof path, "/_changes?since=%" PRIu64 "&limit=1&source=false", replica->seen - 1);
    status = source_ask_since(&replica->source, path, replica->seen);
    if (status != 200 && status != 410)
        return source_complain(&replica->source, "cannot follow the source", "", status);
    has = status == 200 && first_timestamp(&replica->source) == replica->seen;
    if (!has && (unreported || status == 410))
        r = has_report(replica, &has);
    replica->restored = r == 0 && !has;
    return r;
}
