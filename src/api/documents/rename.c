/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /{index}/_rename: what lies at a path, and all below it, lies at another one.
 */
#include "api/documents/doc_write.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/instant.h"
#include "api/request/own_body.h"

/* As long as a write waits for its locks. */
#define RENAME_TIMEOUT_US (10 * TL_SECOND)

static int rename_done(struct request *request, struct command *command)
{
    const struct rename_command *rename = &command->rename;
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    if (command->terms.transaction.len == 0) {
        json_key(&writer, "timestamp");
        json_u64(&writer, command->ts);
    }
    json_key(&writer, "directories");
    json_u64(&writer, rename->directory);
    json_key(&writer, "documents");
    json_u64(&writer, rename->document);
    json_key(&writer, "_seq_no");
    json_i64(&writer, rename->seq_no);
    json_key(&writer, "_primary_term");
    json_u64(&writer, 1);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static const struct own_form rename_form = {"a rename", "from to", "{\"from\": \"/clinton\", \"to\": \"/bill\"}"};

int handle_rename(struct request *request)
{
    struct own_body body;
    struct slice from = SLICE_NONE, to = SLICE_NONE;
    int64_t timeout = RENAME_TIMEOUT_US;
    int r = own_body_parse(request, &rename_form, &body);
    if (r != 0 || (r = own_body_text(&body, "from", &from)) != 0 || (r = own_body_text(&body, "to", &to)) != 0 ||
        (r = request_time(request, "timeout", &timeout)) != 0)
        return r;
    if (from.data == NULL)
        return own_body_missing(&body, "the path to be renamed, [from]");
    if (to.data == NULL)
        return own_body_missing(&body, "the path that it gets, [to]");
    r = request_accept(request);
    if (r != 0)
        return r;
    struct command *command = command_new(COMMAND_RENAME, request->dialect);
    command->terms = request_terms(request, timeout);
    command->rename = (struct rename_command){.index = request_part(request, PART_INDEX), .from = from, .to = to};
    return request_submit(request, command, rename_done);
}
