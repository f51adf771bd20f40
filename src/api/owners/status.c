/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What COMMAND_STATUS answers.
 */
#include "api/owners/status.h"

#include "api/request/instant.h"
#include "json/each.h"

int status_reply(struct request *request, struct command *command)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_raw(&writer, command->status.body);
    return REQUEST_DONE;
}

struct cat_cell status_cell(struct request *request, yyjson_val *object, const char *name)
{
    yyjson_val *value = json_get(object, slice_from(name));
    (void)request;
    if (yyjson_is_str(value))
        return cat_text(json_slice(value));
    if (yyjson_is_int(value))
        return cat_number(yyjson_get_sint(value));
    if (yyjson_is_bool(value))
        return cat_text(yyjson_get_bool(value) ? SLICE_LIT("true") : SLICE_LIT("false"));
    return (struct cat_cell){CAT_NULL, {NULL, 0}, 0};
}

struct cat_cell status_time_cell(struct request *request, yyjson_val *object, const char *name)
{
    yyjson_val *value = json_get(object, slice_from(name));
    if (!yyjson_is_uint(value))
        return (struct cat_cell){CAT_NULL, {NULL, 0}, 0};
    return cat_text(instant_text(request->arena, yyjson_get_uint(value), 3));
}
