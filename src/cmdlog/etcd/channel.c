/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a member of etcd; see channel.h. */
#include "cmdlog/etcd/channel.h"

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/big_endian.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmdlog/etcd/transport.h"

enum {
    STREAM_WINDOW = 4 << 20, /* flow-control window of a call, in bytes */
    WINDOW = 64 << 20,       /* of the connection */
    SEND_CHUNK = 128 << 10,  /* bytes of one send() */
    RECEIVE_CHUNK = 256 << 10,
    TEXT_MAX = 512, /* bytes of an error text */
};

struct channel {
    pthread_t thread; /* that opened it */
    struct transport *transport;
    nghttp2_session *session;
    char *authority;
    struct list calls;
    struct buf out; /* frames from nghttp2 to be sent */
    size_t out_sent;
    uint64_t last_received;
    bool closed;
    char error[320];
};

void grpc_frame_begin(struct buf *buf)
{
    REQUIRE(buf->len == 0); /* grpc_frame_end() writes the length at the start */
    buf_append(buf, "\0\0\0\0\0", 5);
}

void grpc_frame_end(struct buf *buf)
{
    REQUIRE(buf->len >= 5 && buf->len - 5 <= UINT32_MAX);
    uint32_t len = (uint32_t)(buf->len - 5);
    char bytes[4];
    big_endian_put_u32(bytes, len);
    buf_overwrite(buf, 1, bytes, sizeof bytes);
}

static bool is_own(const struct channel *channel)
{
    return pthread_equal(channel->thread, pthread_self());
}

static void set_error(struct channel *channel, const char *what)
{
    REQUIRE(what != NULL);
    channel->closed = true;
    if (channel->error[0] == '\0')
        snprintf(channel->error, sizeof channel->error, "%s", what);
}

/* --- Callbacks of nghttp2 ----------------------------------------------------------------------------------------- */

static struct grpc_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Appends the value of grpc-message, in which %XX encodes a byte. */
static void put_text(struct buf *text, struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.data[i];
        if (c == '%' && i + 2 < value.len && hex_digit(value.data[i + 1]) >= 0 && hex_digit(value.data[i + 2]) >= 0) {
            c = (char)(hex_digit(value.data[i + 1]) << 4 | hex_digit(value.data[i + 2]));
            i += 2;
        }
        buf_byte(text, c);
    }
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *context)
{
    struct grpc_call *call = call_of(session, frame->hd.stream_id);
    struct slice what = slice_make(name, name_len), is = slice_make(value, value_len);
    uint64_t number;
    (void)flags;
    (void)context;
    if (call == NULL)
        return 0;
    if (slice_is(what, "grpc-status")) {
        call->has_status = true;
        call->status = slice_to_u64(is, &number) && number < 100 ? (int)number : GRPC_UNKNOWN;
    } else if (slice_is(what, "grpc-message")) {
        put_text(&call->text, is);
    } else if (slice_is(what, ":status") && !slice_is(is, "200")) {
        buf_printf(&call->text, "HTTP status %.*s", SLICE_ARG(is));
    }
    return 0;
}

/* Returns the received bytes to the flow-control window, unless the call is throttled. */
static void update_window(struct grpc_call *call)
{
    REQUIRE(call->channel != NULL);
    nghttp2_session *session = call->channel->session;
    if (call->throttled || call->unconsumed == 0)
        return;
    if (nghttp2_session_consume_stream(session, call->stream, call->unconsumed) != 0)
        set_error(call->channel, "no memory for HTTP/2");
    call->unconsumed = 0;
}

/* Assembles messages from the bytes of a stream. Returns: 0; -1: they are not gRPC. */
static int take_bytes(struct grpc_call *call, struct slice bytes)
{
    while (bytes.len > 0) {
        if (call->prefix_len < sizeof call->prefix) {
            call->prefix[call->prefix_len++] = bytes.data[0];
            bytes = slice_from_offset(bytes, 1);
            if (call->prefix_len < sizeof call->prefix)
                continue;
            struct slice number = slice_make(call->prefix + 1, 4);
            uint32_t len = 0;
            INSIST(slice_take_u32be(&number, &len));
            if (call->prefix[0] != 0 || len > CHANNEL_MESSAGE_MAX)
                return -1;
            call->expected = len;
            buf_clear(&call->message);
            buf_reserve(&call->message, len);
        }
        INSIST(call->message.len <= call->expected);
        size_t lacks = call->expected - call->message.len, now = lacks < bytes.len ? lacks : bytes.len;
        buf_append(&call->message, bytes.data, now);
        bytes = slice_from_offset(bytes, now);
        if (call->message.len == call->expected) {
            call->prefix_len = 0;
            call->on_message(call, &call->message);
        }
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t len,
                   void *context)
{
    struct channel *channel = context;
    struct grpc_call *call = call_of(session, stream);
    REQUIRE(channel->session == session);
    (void)flags;
    if (nghttp2_session_consume_connection(session, len) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (call == NULL)
        return nghttp2_session_consume_stream(session, stream, len) == NGHTTP2_ERR_NOMEM ? NGHTTP2_ERR_CALLBACK_FAILURE
                                                                                         : 0;
    call->unconsumed += len;
    if (take_bytes(call, slice_make(data, len)) != 0) {
        set_error(channel, "an answer is no gRPC");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (call->channel != NULL)
        update_window(call);
    return 0;
}

static void release_call(struct grpc_call *call)
{
    REQUIRE(call->channel != NULL && list_linked(&call->link));
    list_remove(&call->link);
    call->channel = NULL;
    buf_deinit(&call->message);
}

static void end_call(struct grpc_call *call, int status, struct slice text)
{
    REQUIRE(call->on_end != NULL && call->channel != NULL);
    struct buf status_text = call->text;
    call->text = BUF_INIT(TEXT_MAX);
    release_call(call);
    call->on_end(call, status, text.len > 0 ? text : buf_as_slice(&status_text));
    buf_deinit(&status_text);
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
    struct grpc_call *call = call_of(session, stream);
    (void)context;
    if (call == NULL)
        return 0;
    nghttp2_session_set_stream_user_data(session, stream, NULL);
    if (call->has_status)
        end_call(call, call->status, SLICE_NONE);
    else
        end_call(call, CALL_LOST, code == 0 ? SLICE_NONE : slice_from(nghttp2_http2_strerror(code)));
    return 0;
}

static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t len, uint32_t *flags,
                            nghttp2_data_source *source, void *context)
{
    struct grpc_call *call = call_of(session, stream);
    if (call == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* dropped; the stream will be reset */
    INSIST(call->sent <= call->request.len);
    size_t left = call->request.len - call->sent, now = left < len ? left : len;
    (void)source;
    (void)context;
    if (now == 0 && call->is_stream)
        return NGHTTP2_ERR_DEFERRED; /* never resumed: a stream has one request */
    memcpy(buffer, call->request.data + call->sent, now);
    call->sent += now;
    if (grpc_call_is_sent(call) && !call->is_stream)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)now;
}

/* Ends the process, as base/alloc.h does. */
static _Noreturn void out_of_memory(void)
{
    static const char text[] = "tidelock: out of memory\n";
    log_write_before_abort(text, sizeof text - 1);
    abort();
}

static nghttp2_session *new_session(struct channel *channel)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session *session;
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
        out_of_memory();
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    if (nghttp2_session_client_new2(&session, callbacks, channel, option) != 0)
        out_of_memory();
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return session;
}

/* --- The channel -------------------------------------------------------------------------------------------------- */

struct channel *channel_open(struct transport *transport, const char *authority)
{
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW}};
    REQUIRE(transport != NULL && authority != NULL);
    struct channel *channel = mem_zalloc(sizeof *channel);
    channel->thread = pthread_self();
    channel->transport = transport;
    channel->authority = mem_strdup(authority, strlen(authority));
    channel->out = BUF_INIT(BUF_UNLIMITED);
    list_init(&channel->calls);
    channel->session = new_session(channel);
    if (nghttp2_submit_settings(channel->session, NGHTTP2_FLAG_NONE, settings, 2) != 0 ||
        nghttp2_session_set_local_window_size(channel->session, NGHTTP2_FLAG_NONE, 0, WINDOW) != 0)
        set_error(channel, "no memory for HTTP/2");
    return channel;
}

void channel_close(struct channel *channel, const char *why)
{
    if (channel == NULL)
        return;
    /* Callbacks that start other calls must not use this channel. */
    channel->closed = true;
    while (!list_empty(&channel->calls))
        end_call(list_entry(channel->calls.next, struct grpc_call, link), CALL_LOST, slice_from(why));
    nghttp2_session_del(channel->session);
    transport_close(channel->transport);
    buf_deinit(&channel->out);
    mem_free(channel->authority);
    mem_free(channel);
}

static nghttp2_nv make_header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

bool channel_call(struct channel *channel, struct grpc_call *call)
{
    nghttp2_nv headers[] = {
        make_header(":method", "POST"),
        make_header(":scheme", transport_is_tls(channel->transport) ? "https" : "http"),
        make_header(":path", call->path),
        make_header(":authority", channel->authority),
        make_header("te", "trailers"),
        make_header("content-type", "application/grpc"),
        make_header("user-agent", "tidelock"),
        make_header("hasleader", "true"),
    };
    size_t count = sizeof headers / sizeof headers[0] - !call->requires_leader;
    nghttp2_data_provider provider = {.read_callback = read_request};
    REQUIRE(is_own(channel) && call->channel == NULL && call->on_message != NULL && call->on_end != NULL);
    if (channel->closed)
        return false;
    call->sent = call->prefix_len = call->unconsumed = 0;
    call->throttled = call->has_status = false;
    call->status = GRPC_UNKNOWN;
    call->message = BUF_INIT(CHANNEL_MESSAGE_MAX);
    call->text = BUF_INIT(TEXT_MAX);
    call->stream = nghttp2_submit_request(channel->session, NULL, headers, count, &provider, call);
    if (call->stream < 0) {
        set_error(channel, nghttp2_strerror(call->stream));
        return false;
    }
    call->started = clock_boot_us();
    call->channel = channel;
    list_append(&channel->calls, &call->link);
    return true;
}

void channel_drop(struct grpc_call *call)
{
    struct channel *channel = call->channel;
    if (channel == NULL)
        return;
    REQUIRE(is_own(channel));
    nghttp2_session_set_stream_user_data(channel->session, call->stream, NULL);
    if (nghttp2_submit_rst_stream(channel->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL) != 0)
        set_error(channel, "no memory for HTTP/2");
    buf_deinit(&call->text);
    release_call(call);
}

void channel_throttle(struct grpc_call *call, bool throttled)
{
    REQUIRE(call->channel == NULL || is_own(call->channel));
    call->throttled = throttled;
    if (call->channel != NULL)
        update_window(call);
}

int channel_fd(const struct channel *channel)
{
    return transport_fd(channel->transport);
}

short channel_poll_events(struct channel *channel)
{
    REQUIRE(is_own(channel));
    return transport_poll_events(channel->transport,
                                 channel->out.len > channel->out_sent || nghttp2_session_want_write(channel->session));
}

static int take_output(struct channel *channel)
{
    const uint8_t *bytes;
    REQUIRE(is_own(channel) && channel->out_sent == channel->out.len);
    buf_clear(&channel->out);
    channel->out_sent = 0;
    while (channel->out.len < SEND_CHUNK) {
        ssize_t len = nghttp2_session_mem_send(channel->session, &bytes);
        if (len < 0) {
            set_error(channel, nghttp2_strerror((int)len));
            return tl_trace(TL_ERR_IO);
        }
        if (len == 0)
            break;
        buf_append(&channel->out, bytes, (size_t)len);
    }
    return 0;
}

static int write_out(struct channel *channel)
{
    REQUIRE(is_own(channel));
    for (;;) {
        if (channel->out_sent == channel->out.len && take_output(channel) < 0)
            return tl_trace(TL_ERR_IO);
        if (channel->out.len == 0)
            return 0;
        long sent = transport_send(channel->transport, channel->out.data + channel->out_sent,
                                   channel->out.len - channel->out_sent);
        if (sent < 0) {
            set_error(channel, transport_error(channel->transport));
            return tl_trace(TL_ERR_IO);
        }
        if (sent == 0)
            return 0;
        channel->out_sent += (size_t)sent;
        INSIST(channel->out_sent <= channel->out.len);
    }
}

static int read_some(struct channel *channel)
{
    static _Thread_local char bytes[RECEIVE_CHUNK];
    REQUIRE(is_own(channel));
    long received = transport_receive(channel->transport, bytes, sizeof bytes);
    if (received < 0) {
        set_error(channel, transport_error(channel->transport));
        return tl_trace(TL_ERR_IO);
    }
    if (received == 0)
        return 0;
    channel->last_received = clock_boot_us();
    ssize_t taken = nghttp2_session_mem_recv(channel->session, (const uint8_t *)bytes, (size_t)received);
    if (taken < 0) {
        set_error(channel, nghttp2_strerror((int)taken));
        return tl_trace(TL_ERR_IO);
    }
    return 0;
}

static int read_in(struct channel *channel)
{
    int r;
    do
        r = read_some(channel);
    while (r == 0 && transport_has_input(channel->transport));
    return r;
}

int channel_work(struct channel *channel, short events)
{
    int r = 0;
    REQUIRE(is_own(channel));
    if (events & (POLLIN | POLLERR | POLLHUP))
        r = read_in(channel);
    if (r == 0)
        r = write_out(channel);
    if (r == 0 && !nghttp2_session_want_read(channel->session) && !nghttp2_session_want_write(channel->session))
        set_error(channel, "the member ended the connection");
    return channel->closed ? tl_trace(TL_ERR_IO) : r;
}

const char *channel_error(const struct channel *channel)
{
    return channel->error;
}

uint64_t channel_last_received(const struct channel *channel)
{
    return channel->last_received;
}

struct list *channel_calls(struct channel *channel)
{
    return &channel->calls;
}
