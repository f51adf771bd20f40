/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios for peers that do not speak HTTP's document API: Redis, and etcd's JSON gateway. */
#include "load.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- Redis -------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void redis_argument(struct load_connection *c, size_t count,
                                                                 const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (count > 0)
        c->request_len = (size_t)snprintf(c->request, sizeof c->request, "*%zu\r\n", count);
    c->request_len +=
        (size_t)snprintf(c->request + c->request_len, sizeof c->request - c->request_len, "$%d\r\n%s\r\n", len, text);
}

static void redis_put_write(struct load_connection *c, unsigned step)
{
    (void)step;
    char body[512];
    uint64_t id = load_draw(c, c->load->ids);
    load_document(body, sizeof body, id, c->rng);
    redis_argument(c, 3, "SET");
    redis_argument(c, 0, "f%07" PRIu64, id);
    redis_argument(c, 0, "%s", body);
}

static void redis_get_write(struct load_connection *c, unsigned step)
{
    (void)step;
    redis_argument(c, 2, "GET");
    redis_argument(c, 0, "f%07" PRIu64, load_draw(c, c->load->ids));
}

static void redis_lock_write(struct load_connection *c, unsigned step)
{
    if (step == 0) {
        redis_argument(c, 6, "SET");
        redis_argument(c, 0, "%s-%u-%" PRIu64, c->load->keys, c->number, c->iteration);
        redis_argument(c, 0, "owner-%u", c->number);
        redis_argument(c, 0, "NX");
        redis_argument(c, 0, "PX");
        redis_argument(c, 0, "30000");
    } else {
        redis_argument(c, 5, "EVAL");
        redis_argument(c, 0,
                       "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end");
        redis_argument(c, 0, "1");
        redis_argument(c, 0, "%s-%u-%" PRIu64, c->load->keys, c->number, c->iteration);
        redis_argument(c, 0, "owner-%u", c->number);
    }
}

/* A token in a list: BLPOP waits in order; the first connection puts it there. */
static void redis_one_write(struct load_connection *c, unsigned step)
{
    if (step == 0 && c->number == 0) {
        redis_argument(c, 3, "RPUSH");
        redis_argument(c, 0, "%s", c->load->keys);
        redis_argument(c, 0, "token");
    } else if (step == 0) {
        redis_argument(c, 1, "PING");
    } else if (step == 1) {
        redis_argument(c, 3, "BLPOP");
        redis_argument(c, 0, "%s", c->load->keys);
        redis_argument(c, 0, "60");
    } else {
        redis_argument(c, 3, "RPUSH");
        redis_argument(c, 0, "%s", c->load->keys);
        redis_argument(c, 0, "token");
    }
}

/* --- etcd --------------------------------------------------------------------------------------------------------- */

/* The gateway takes keys and values in base64. */
static const char *base64(const char *text, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = strlen(text);
    char *at = to;
    for (size_t i = 0; i < len; i += 3) {
        uint32_t three = 0;
        for (size_t j = 0; j < 3; j++)
            three = three << 8 | (i + j < len ? (unsigned char)text[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *at++ = i + j <= len ? digits[three >> (18 - 6 * j) & 63] : '=';
    }
    *at = '\0';
    return to;
}

/* A lease a connection; then a key that is put under it if it is not there, and deleted. */
static void etcd_lock_write(struct load_connection *c, unsigned step)
{
    char key[128], coded[192], body[1024];
    snprintf(key, sizeof key, "lock/%s-%u-%" PRIu64, c->load->keys, c->number, c->iteration);
    base64(key, coded);
    if (step == 0) {
        load_http(c, "POST", "{\"TTL\":\"60\"}", "/v3/lease/grant");
    } else if (step == 1) {
        snprintf(body, sizeof body,
                 "{\"compare\":[{\"key\":\"%s\",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
                 "\"success\":[{\"requestPut\":{\"key\":\"%s\",\"value\":\"bw==\",\"lease\":\"%s\"}}]}",
                 coded, coded, c->capture[0]);
        load_http(c, "POST", body, "/v3/kv/txn");
    } else {
        snprintf(body, sizeof body, "{\"key\":\"%s\"}", coded);
        load_http(c, "POST", body, "/v3/kv/deleterange");
    }
}

/* The queue of the lock service; each run uses another lock, since it is held when a run ends. */
static void etcd_one_write(struct load_connection *c, unsigned step)
{
    char coded[192], body[512];
    base64(c->load->keys, coded);
    if (step == 0) {
        load_http(c, "POST", "{\"TTL\":\"60\"}", "/v3/lease/grant");
    } else if (step == 1) {
        snprintf(body, sizeof body, "{\"name\":\"%s\",\"lease\":\"%s\"}", coded, c->capture[0]);
        load_http(c, "POST", body, "/v3/lock/lock");
    } else {
        snprintf(body, sizeof body, "{\"key\":\"%s\"}", c->capture[1]);
        load_http(c, "POST", body, "/v3/lock/unlock");
    }
}

static enum verdict etcd_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (!load_succeeded(reply))
        return IS_WRONG;
    if (step == 0)
        return load_capture(reply, "\"ID\":\"", "\"", c->capture[0]) ? GOES_ON : IS_WRONG;
    return GOES_ON;
}

static enum verdict etcd_lock_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (step == 1 && strstr(reply->body, "\"succeeded\":true") == NULL)
        return IS_WRONG;
    return etcd_read(c, step, reply);
}

static enum verdict etcd_one_read(struct load_connection *c, unsigned step, const struct reply *reply)
{
    if (step == 1 && !load_capture(reply, "\"key\":\"", "\"", c->capture[1]))
        return IS_WRONG;
    return etcd_read(c, step, reply);
}

const struct scenario load_peers[] = {
    {"redis-put", "SET", 0, 1, true, redis_put_write, load_ok},
    {"redis-get", "GET", 0, 1, true, redis_get_write, load_ok},
    {"redis-lock", "SET NX PX, then compare and delete in Lua", 0, 2, true, redis_lock_write, load_ok},
    {"redis-one", "BLPOP of one token, RPUSH", 1, 3, true, redis_one_write, load_ok},
    {"etcd-lock", "put if it is not there, under a lease; delete", 1, 3, false, etcd_lock_write, etcd_lock_read},
    {"etcd-one", "lock and unlock of the lock service", 1, 3, false, etcd_one_write, etcd_one_read},
    {0},
};
