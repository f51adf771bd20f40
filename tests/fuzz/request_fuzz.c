/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any request, through the whole api: paths, escapes, parameters, headers, bulk bodies, bodies of every call.
 *
 * The input is a request as text: "METHOD target", header lines "Name: value", an empty line, and the body. The server
 * lives on from input to input, so that a request may find what an earlier one left, and is made anew now and then.
 * What must hold: every request is answered, or, when its client leaves, settled; with a status that exists.
 */
#include "fuzz.h"

#include <string.h>

#include "../lib/api_fixture.h"
#include "base/alloc.h"
#include "base/check.h"
#include "json/json.h"

#define RUNS_OF_A_SERVER 2000
#define PATIENCE_MS 200 /* before the client leaves */
#define TARGET_BYTES_MAX 8192
#define HEADERS_MAX 6

static struct api_fixture fixture;
static unsigned runs;

/* A request, cut out of the input; NUL-terminated copies. */
struct parts {
    char *text;
    char *method;
    char *target;
    char *names[HEADERS_MAX];
    char *values[HEADERS_MAX];
    size_t header_count;
    struct slice body; /* may hold NUL */
};

static char *take_line(struct slice *rest, char *copy)
{
    size_t len = slice_find_byte(*rest, '\n');
    char *line = copy + (rest->data - copy);
    line[len] = '\0';
    *rest = slice_from_offset(*rest, len + 1);
    return line;
}

static bool cut(const uint8_t *data, size_t size, struct parts *parts)
{
    *parts = (struct parts){.text = mem_alloc(size + 1)};
    memcpy(parts->text, data, size);
    parts->text[size] = '\0';
    struct slice rest = slice_make(parts->text, size);
    parts->method = take_line(&rest, parts->text);
    parts->target = strchr(parts->method, ' ');
    if (parts->target == NULL || strlen(parts->method) > TARGET_BYTES_MAX)
        return false;
    *parts->target++ = '\0';
    while (rest.len > 0) {
        char *line = take_line(&rest, parts->text);
        char *colon = strstr(line, ": ");
        if (*line == '\0')
            break;
        if (colon == NULL || parts->header_count == HEADERS_MAX)
            continue;
        *colon = '\0';
        parts->names[parts->header_count] = line;
        parts->values[parts->header_count++] = colon + 2;
    }
    parts->body = rest;
    return parts->target[0] == '/';
}

/* A response that says it is JSON is JSON. */
static void check_json(const struct exchange *exchange)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct slice text = buf_as_slice(&exchange->response);
    if (text.len > 0 &&
        (exchange->content_type == NULL || strncmp(exchange->content_type, "application/json", 16) == 0))
        MUST(json_parse_stored(&arena, text, &doc) == 0);
    arena_deinit(&arena);
}

static void ask(const struct parts *parts)
{
    struct fixture_exchange *sent = fixture_exchange_new(parts->method, parts->target, NULL);
    if (parts->body.len > 0) {
        sent->exchange.body = parts->body;
        fixture_exchange_header(sent, "Content-Type", "application/json");
    }
    for (size_t i = 0; i < parts->header_count; i++)
        fixture_exchange_header(sent, parts->names[i], parts->values[i]);
    fixture_exchange_start(&fixture, sent);
    if (!fixture_exchange_wait_ms(sent, PATIENCE_MS)) {
        fixture_exchange_break(sent);
        fixture_exchange_wait(sent);
    }
    MUST(sent->exchange.status >= 200 && sent->exchange.status < 600);
    check_json(&sent->exchange);
    fixture_exchange_free(sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parts parts;
    if (runs++ % RUNS_OF_A_SERVER == 0) {
        if (runs > 1)
            api_fixture_close(&fixture);
        api_fixture_open(&fixture);
    }
    if (cut(data, size, &parts))
        ask(&parts);
    mem_free(parts.text);
    return 0;
}
