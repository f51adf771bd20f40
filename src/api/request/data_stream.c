/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /_data_stream: data streams do not exist here. Client libraries of 8.x and later ask before
 * they write in bulk to a name, and take only a 404 for the answer that it is an index.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "core/catalog/catalog.h"

static bool has_wildcard(struct slice text)
{
    return slice_find_byte(text, '*') < text.len || slice_is(text, "_all");
}

/* The first name of a list that is no pattern. Returns: it, or SLICE_NONE. */
static struct slice first_plain(struct slice names)
{
    while (names.len > 0) {
        size_t comma = slice_find_byte(names, ',');
        struct slice name = slice_make(names.data, comma);
        if (name.len > 0 && !has_wildcard(name))
            return name;
        names = comma < names.len ? slice_from_offset(names, comma + 1) : SLICE_NONE;
    }
    return SLICE_NONE;
}

int handle_data_stream_get(struct request *request)
{
    struct slice name = first_plain(request_part(request, PART_NAME));
    struct json_writer writer;
    int r = request_accept(request);
    if (r != 0)
        return r;
    if (name.len > 0) {
        catalog_problem_missing(request->arena, name, true, request->dialect, &request->problem);
        return REQUEST_REFUSED;
    }
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "data_streams");
    json_begin(&writer, '[');
    json_end(&writer, ']');
    json_end(&writer, '}');
    return REQUEST_DONE;
}
