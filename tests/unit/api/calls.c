/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the api; see calls.h. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/unit.h"

#include "base/alloc.h"

#define PATIENCE_MS 20000

/* --- The table ---------------------------------------------------------------------------------------------------- */

const struct call_row call_rows[] = {
#define X(methods, pattern, form, handler, params) {#methods, pattern, #handler, params},
#include "api/request/routes.def"
#undef X
};

const size_t call_row_count = sizeof call_rows / sizeof *call_rows;

/* --- Bodies ------------------------------------------------------------------------------------------------------- */

const struct call_case call_cases[] = {
#define NO_BODY(handler) {#handler, {NULL}, 0, ANSWERED, NULL},
#define GROWS(handler, ...) {#handler, {__VA_ARGS__}, 0, ANSWERED, NULL},
#define GROWS_TO(size, handler, ...) {#handler, {__VA_ARGS__}, size, ANSWERED, NULL},
#define GROWS_REFUSED(handler, ...) {#handler, {__VA_ARGS__}, 0, REFUSED, NULL},
#define GROWS_BY_NATURE(why, handler, ...) {#handler, {__VA_ARGS__}, 0, MULTIPLIES, why},
#include "complexity_cases.def"
};

const size_t call_case_count = sizeof call_cases / sizeof *call_cases;

/* The contents of every server under test. */
static const char *const world[] = {
    "PUT /w\n{\"settings\":{\"number_of_shards\":1},\"aliases\":{\"wa\":{}},\"mappings\":{\"properties\":{"
    "\"k\":{\"type\":\"keyword\"},\"t\":{\"type\":\"text\"},\"d\":{\"type\":\"date\"},\"n\":{\"type\":\"long\"}}}}",
    "PUT /w/_doc/1\n{\"k\":\"one\",\"t\":\"some words\",\"d\":\"2020-01-01\",\"n\":1,\"o\":{\"x\":1}}",
    "PUT /w/_doc/2\n{\"k\":\"two\",\"t\":\"other words\",\"d\":\"2020-01-02\",\"n\":2,\"l\":[1,2,3]}",
    "PUT /v/file/1\n{\"path\":\"/a/b\",\"n\":1}",
    "PUT /_template/tw\n{\"index_patterns\":[\"tw*\"],\"settings\":{\"number_of_replicas\":0}}",
    "PUT /_scripts/sw\n{\"script\":{\"lang\":\"painless\",\"source\":\"ctx._source.n++\"}}",
    "POST /_transaction\n{\"mode\":\"update\",\"timeout\":\"10m\"}",
    "POST /_session\n{\"ttl\":\"1h\",\"name\":\"holder\"}",
    "POST /_lock\n{\"session\":\"`S`\",\"locks\":[{\"mode\":\"exclusive\",\"index\":\"q\",\"path\":\"/a\"}]}",
};

void calls_open(struct api_fixture *fixture, struct call_names *names)
{
    api_fixture_open(fixture);
    for (size_t i = 0; i < sizeof world / sizeof *world; i++)
        if (calls_ask_text(fixture, world[i], 1, names, false) / 100 != 2)
            fail_msg("%s is not taken", world[i]);
}

/* --- Texts that grow ---------------------------------------------------------------------------------------------- */

static void repeat(struct buf *out, const char *text, char mark, size_t n, const struct call_names *names)
{
    size_t times = mark == '~' ? (n + 7) / 8 : n;
    for (size_t i = 0; i < times; i++) {
        if (i > 0 && mark != '^')
            buf_byte(out, ',');
        (void)calls_grow_into(out, text, mark, n, i, names);
    }
}

const char *calls_grow_into(struct buf *out, const char *text, char until, size_t n, size_t i,
                            const struct call_names *names)
{
    for (; *text != until; text++) {
        assert_true(*text != '\0');
        if (*text == '$') {
            buf_printf(out, "%zu", i);
        } else if (*text == '@' || *text == '^' || *text == '~') {
            repeat(out, text + 1, *text, n, names);
            text = strchr(text + 1, *text);
            assert_non_null(text);
        } else if (*text == '`') {
            buf_slice(out, slice_from(names->of[text[1] - 'A'] == NULL ? "none" : names->of[text[1] - 'A']));
            text += 2;
        } else {
            buf_byte(out, *text);
        }
    }
    return text;
}

char *calls_grow(const char *text, size_t n, const struct call_names *names)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    (void)calls_grow_into(&out, text, '\0', n, n, names);
    buf_byte(&out, '\0');
    return out.data;
}

/* --- Paths ------------------------------------------------------------------------------------------------------ */

static void part_value(struct buf *out, const char *part, size_t len, const struct call_names *names)
{
    static const struct {
        const char *part, *value;
    } values[] = {{"index", "w"},       {"type", "file"}, {"id", "1"},         {"name", "wa"},       {"metric", "_all"},
                  {"lang", "painless"}, {"fields", "k"},  {"node_id", "_all"}, {"task_id", "none:1"}};
    if (len == strlen("scroll_id") && strncmp(part, "scroll_id", len) == 0)
        buf_slice(out, slice_from(names->of['C' - 'A'] == NULL ? "c" : names->of['C' - 'A']));
    else if (len == strlen("transaction") && strncmp(part, "transaction", len) == 0)
        buf_slice(out, slice_from(names->of['T' - 'A'] == NULL ? "t" : names->of['T' - 'A']));
    else
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            if (strlen(values[i].part) == len && strncmp(values[i].part, part, len) == 0)
                buf_slice(out, slice_from(values[i].value));
}

char *calls_path(const struct call_row *row, size_t filled, const char *filling, const struct call_names *names)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    size_t part = 0;
    for (const char *at = row->pattern; *at != '\0'; at++) {
        if (*at != '{') {
            buf_byte(&out, *at);
            continue;
        }
        const char *end = strchr(at, '}');
        if (part++ == filled)
            buf_printf(&out, "%s", filling);
        else
            part_value(&out, at + 1, (size_t)(end - at - 1), names);
        at = end;
    }
    buf_byte(&out, '\0');
    return out.data;
}

size_t calls_part_count(const struct call_row *row)
{
    size_t count = 0;
    for (const char *at = row->pattern; *at != '\0'; at++)
        count += *at == '{';
    return count;
}

void calls_method(const struct call_row *row, char *ret_method, size_t room)
{
    snprintf(ret_method, room, "%s", row->methods);
    ret_method[strcspn(ret_method, " ")] = '\0';
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

static void remember(struct call_names *names, char name, const char *reply, const char *key)
{
    const char *at = strstr(reply, key), *end;
    if (at == NULL || (end = strchr(at += strlen(key), '"')) == NULL)
        return;
    mem_free(names->of[name - 'A']);
    names->of[name - 'A'] = mem_strdup(at, (size_t)(end - at));
}

void call_names_deinit(struct call_names *names)
{
    for (size_t i = 0; i < sizeof names->of / sizeof *names->of; i++)
        mem_free(names->of[i]);
}

/* Whether the account of its work has ended it, which is no fault of the call. */
static bool has_ended(const char *reply)
{
    return strstr(reply, "task_cancelled_exception") != NULL || strstr(reply, "timeout_exception") != NULL;
}

/* Returns: the target, allocated; of GET /_cluster/health one that does not wait half a minute for a missing index. */
static char *target_without_wait(const char *target)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&out, "%s", target);
    if (strncmp(target, "/_cluster/health", 16) == 0 && strstr(target, "?timeout=") == NULL)
        buf_printf(&out, "%ctimeout=0s", strchr(target, '?') == NULL ? '?' : '&');
    buf_byte(&out, '\0');
    return out.data;
}

int calls_ask(struct api_fixture *fixture, const char *method, const char *target, const char *body,
              struct call_header header, struct call_names *names, bool traced)
{
    char *sent_target = target_without_wait(target);
    struct fixture_exchange *sent = fixture_exchange_new(method, sent_target, body);
    if (header.name != NULL)
        fixture_exchange_header(sent, header.name, header.value);
    fixture_exchange_start(fixture, sent);
    bool streams =
        strstr(target, "_attach") != NULL || (strncmp(target, "/_events", 8) == 0 && strstr(target, "once") == NULL);
    if (streams || !fixture_exchange_wait_ms(sent, PATIENCE_MS)) {
        fixture_exchange_break(sent);
        fixture_exchange_wait(sent);
    }
    int status = sent->exchange.status;
    buf_byte(&sent->exchange.response, '\0');
    const char *reply = sent->exchange.response.data;
    remember(names, 'S', reply, "\"session\":\"");
    remember(names, 'T', reply, "\"transaction\":\"");
    remember(names, 'C', reply, "\"_scroll_id\":\"");
    remember(names, 'P', reply, "{\"id\":\"");
    if (traced || (status >= 500 && status != 501 && status != 503 && !has_ended(reply)))
        print_message("    %s %.100s: %d %.300s\n", method, target, status, reply);
    fixture_exchange_free(sent);
    mem_free(sent_target);
    return status;
}

int calls_ask_text(struct api_fixture *fixture, const char *text, size_t n, struct call_names *names, bool traced)
{
    char *grown = calls_grow(text, n, names), *target = strchr(grown, ' '), *body = strchr(grown, '\n');
    assert_non_null(target);
    *target++ = '\0';
    if (body != NULL)
        *body++ = '\0';
    int status = calls_ask(fixture, grown, target, body, (struct call_header){0}, names, traced);
    mem_free(grown);
    return status;
}
