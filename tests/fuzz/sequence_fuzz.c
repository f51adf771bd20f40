/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of requests over several connections, on a server of their own with the store in memory, whose threads have
 * a small stack.
 *
 * The input is requests, each after a line "=N", N the connection: "METHOD target", a body after the line's end up to
 * the next "=". A connection whose last request is not answered yet waits for it briefly, then closes; "=N!" closes at
 * once. `S` in a request is the last session that an answer named, `T` the transaction, `C` the scroll, `P` the point
 * in time, `F` the fencing token: what clients know and bytes that are turned at random do not.
 *
 * Every request gets a valid status, an answer whose type is JSON is JSON, requests of an owner that has ended are
 * refused, and in the end the server still answers: the locks that it lists belong to sessions and transactions that it
 * lists.
 */
#include "fuzz.h"

#include <pthread.h>
#include <string.h>

#include "../lib/api_fixture.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/stack.h"
#include "json/json.h"

/* Twice as much where frames are larger: stack_is_low() keeps STACK_RESERVE_BYTES of it free. */
#define SMALL_STACK_BYTES (STACK_RESERVE_BYTES * (STACK_FACTOR > 1 ? 2 : 4))

enum { CONNECTIONS = 4, REQUESTS_MAX = 40, PATIENCE_MS = 30 };

static const char named[] = "STCPF";
static const char *const keys[] = {"\"session\":\"", "\"transaction\":\"", "\"_scroll_id\":\"", "{\"id\":\"",
                                   "\"fencing_token\":"};

struct play {
    struct api_fixture fixture;
    struct fuzz_connection {
        struct fixture_exchange *sent; /* NULL: none under way */
        char *text;
    } connections[CONNECTIONS];
    char names[sizeof named - 1][256];
};

static void remember(struct play *play, const struct fixture_exchange *sent)
{
    struct slice reply = buf_as_slice(&sent->exchange.response);
    for (size_t i = 0; i < sizeof named - 1; i++) {
        const char *at = reply.len == 0 ? NULL : memmem(reply.data, reply.len, keys[i], strlen(keys[i]));
        if (at == NULL)
            continue;
        at += strlen(keys[i]);
        size_t room = (size_t)(reply.data + reply.len - at), len = 0;
        while (len < room && len < sizeof play->names[i] - 1 && strchr("\",}", at[len]) == NULL)
            len++;
        memcpy(play->names[i], at, len);
        play->names[i][len] = '\0';
    }
}

static void check_answer(const struct exchange *exchange)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct slice text = buf_as_slice(&exchange->response);
    MUST(exchange->status >= 200 && exchange->status < 600);
    if (text.len > 0 &&
        (exchange->content_type == NULL || strncmp(exchange->content_type, "application/json", 16) == 0))
        MUST(json_parse_stored(&arena, text, &doc) == 0);
    arena_deinit(&arena);
}

/* Waits for what a connection asked; where it is not answered, it leaves. */
static void finish(struct play *play, struct fuzz_connection *connection, bool leaves)
{
    struct fixture_exchange *sent = connection->sent;
    if (sent == NULL)
        return;
    if (leaves || !fixture_exchange_wait_ms(sent, PATIENCE_MS)) {
        fixture_exchange_break(sent);
        fixture_exchange_wait(sent);
    }
    if (!sent->closed) {
        check_answer(&sent->exchange);
        remember(play, sent);
    }
    fixture_exchange_free(sent);
    mem_free(connection->text);
    *connection = (struct fuzz_connection){NULL, NULL};
}

/* The request with names in the place of their letters. NUL-terminated. */
static char *expand(const struct play *play, struct slice text)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < text.len; i++) {
        const char *letter = text.data[i] == '`' && i + 2 < text.len && text.data[i + 2] == '`'
                                 ? memchr(named, text.data[i + 1], sizeof named - 1)
                                 : NULL;
        if (letter == NULL) {
            buf_byte(&out, text.data[i] == '\0' ? ' ' : text.data[i]);
            continue;
        }
        buf_slice(&out, slice_from(play->names[letter - named]));
        i += 2;
    }
    buf_byte(&out, '\0');
    return out.data;
}

static void ask(struct play *play, struct fuzz_connection *connection, struct slice text)
{
    connection->text = expand(play, text);
    char *target = strchr(connection->text, ' '), *body = strchr(connection->text, '\n');
    if (target == NULL || target[1] != '/' || (body != NULL && body < target)) {
        mem_free(connection->text);
        connection->text = NULL;
        return;
    }
    *target++ = '\0';
    if (body != NULL)
        *body++ = '\0';
    connection->sent = fixture_exchange_new(connection->text, target, body != NULL && *body != '\0' ? body : NULL);
    fixture_exchange_start(&play->fixture, connection->sent);
}

/* What the server says in the end. */
static void check_end(struct play *play)
{
    static const char *const calls[] = {"/",           "/_lock",   "/_session",      "/_transaction",
                                        "/_cat/locks", "/_search", "/_cluster/state"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct fixture_exchange *sent = fixture_exchange_new("GET", calls[i], NULL);
        fixture_exchange_start(&play->fixture, sent);
        fixture_exchange_wait(sent);
        MUST(sent->exchange.status == 200 || strcmp(calls[i], "/_search") == 0);
        check_answer(&sent->exchange);
        fixture_exchange_free(sent);
    }
}

static void *run(void *context)
{
    struct slice *input = context, rest = *input;
    struct play play = {0};
    api_fixture_open(&play.fixture);
    for (int i = 0; i < REQUESTS_MAX && rest.len > 0; i++) {
        size_t line = slice_find_byte(rest, '\n');
        if (rest.data[0] != '=' || line < 2)
            break;
        struct fuzz_connection *connection = &play.connections[(unsigned char)rest.data[1] % CONNECTIONS];
        finish(&play, connection, line > 2 && rest.data[2] == '!');
        rest = slice_from_offset(rest, line + 1);
        size_t end = 0;
        while (end < rest.len && !(rest.data[end] == '=' && (end == 0 || rest.data[end - 1] == '\n')))
            end++;
        ask(&play, connection, slice_make(rest.data, end));
        rest = slice_from_offset(rest, end);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        finish(&play, &play.connections[i], false);
    check_end(&play);
    api_fixture_close(&play.fixture);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_make(data, size);
    pthread_attr_t attributes;
    pthread_t thread;
    log_set_level(LOG_ERROR);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SMALL_STACK_BYTES);
    pthread_setattr_default_np(&attributes); /* the server's threads, too */
    MUST(pthread_create(&thread, &attributes, run, &input) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return 0;
}
