/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request: whether everybody reads it alike, and who may ask.
 *
 * *Everybody.* A proxy in front that takes another line for the end of the head, or another number for the length of the
 * body, can be made to pass on as a body what we take for a request. So nothing is guessed: what RFC 9112 does not allow, or
 * allows in two ways, is answered with 400 and the connection closed, before anybody looks at the path. libmicrohttpd 1.x
 * does most of that when it is told to be strict; 0.9 does not, and it tells neither where a line ended nor of a NUL, at which
 * its strings just end. But it cuts the head up in place: over each line break, colon and space it writes zeros, and its names
 * and values are pointers between these. So a head that is as it should be has each string just where the one before it
 * ends: one zero after a method, a path and a name, two (CR, LF) after a value. A bare LF leaves one, a NUL one more, a line
 * that was folded has been copied to elsewhere.
 *
 * *Who may ask.* A page of another site can have a browser send us requests (Origin, Sec-Fetch-Site), or give a name of
 * its own our address and then read the answers, too (Host). See docs/threat-model.md.
 */
#include "http/http_internal.h"

#include <arpa/inet.h>
#include <strings.h>

/* --- What is refused ---------------------------------------------------------------------------------------------- */

/* Returns: where to say why. */
static struct problem *refusal(struct carrier *carrier)
{
    carrier->refusal = arena_zalloc(&carrier->exchange.arena, sizeof *carrier->refusal);
    return carrier->refusal;
}

/* Sets the refusal; false. */
#define refuse(carrier, type, ...) (problem_set(refusal(carrier), &(carrier)->exchange.arena, type, __VA_ARGS__), false)

/* Of one that might be understood in two ways: whatever comes after it on this connection is not believed either. */
#define refuse_form(carrier, ...) \
    ((carrier)->last = true, refuse(carrier, PROBLEM_ILLEGAL_ARGUMENT, "malformed HTTP request: " __VA_ARGS__))

/* --- The form ----------------------------------------------------------------------------------------------------- */

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (!(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z') &&
            (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return text.len > 0;
}

/* Bytes beyond ASCII are let through, as RFC 9110 advises. */
static bool has_control(struct slice text, char but)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c < ' ' || c == 0x7f) && (but == '\0' || c != (unsigned char)but))
            return true;
    }
    return false;
}

static bool is_number(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return text.len > 0;
}

static bool check_line(struct carrier *carrier, const char *method, const char *version)
{
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return refuse_form(carrier, "its version is neither HTTP/1.1 nor HTTP/1.0");
    if (!is_token(slice_from(method)))
        return refuse_form(carrier, "its method has characters that no method may have");
    struct slice target = carrier->target;
    if (target.len == 0 || has_control(target, '\0') || slice_find_byte(target, ' ') < target.len)
        return refuse_form(carrier, "a space or a control character in its path; write it as %%XX");
    if (head_left_to_library())
        return true;
    if (method + strlen(method) + 1 != carrier->target_at || carrier->target_at + target.len + 1 != version)
        return refuse_form(carrier, "its first line has a NUL, or more than one space between its parts");
    const char *end = version + strlen(version);
    if (end[0] != '\0' || end[1] != '\0')
        return refuse_form(carrier, "its first line does not end with CR LF");
    return true;
}

/* The headers that decide something, and how many of each there are. */
enum known { KNOWN_HOST, KNOWN_LENGTH, KNOWN_TRANSFER, KNOWN_TYPE, KNOWN_ORIGIN, KNOWN_SITE, KNOWN_COUNT };

static const char *const known_names[KNOWN_COUNT] = {"Host",         "Content-Length", "Transfer-Encoding",
                                                     "Content-Type", "Origin",         "Sec-Fetch-Site"};

struct headers {
    struct carrier *carrier;
    const char *at; /* where the next name must be; NULL: not looked at */
    struct slice values[KNOWN_COUNT];
    unsigned counts[KNOWN_COUNT];
    bool browser; /* there is one that only browsers send */
    bool proxy;   /* there is one that only proxies add */
};

static bool is_named(struct slice name, const char *wanted)
{
    return name.len == strlen(wanted) && strncasecmp(name.data, wanted, name.len) == 0;
}

static bool begins(struct slice name, const char *wanted)
{
    return name.len >= strlen(wanted) && strncasecmp(name.data, wanted, strlen(wanted)) == 0;
}

static void note(struct headers *headers, struct slice name, struct slice value)
{
    for (int i = 0; i < KNOWN_COUNT; i++)
        if (is_named(name, known_names[i])) {
            headers->values[i] = value;
            headers->counts[i]++;
        }
    headers->browser = headers->browser || begins(name, "Sec-Fetch-") || is_named(name, "Origin");
    headers->proxy = headers->proxy || begins(name, "X-Forwarded-") || is_named(name, "Forwarded") ||
                     is_named(name, "Via") || is_named(name, "X-Real-IP");
}

/* Looks whether the line lies behind the one before, and takes it for the one before. */
static bool follows(struct headers *headers, struct slice name, struct slice value)
{
    if (headers->at == NULL)
        return true;
    if (name.data != headers->at)
        return false;
    for (const char *p = name.data + name.len + 1; p != value.data; p++)
        if (*p != ' ' && *p != '\t') /* ends at a NUL at the latest, as libmicrohttpd did */
            return false;
    headers->at = value.data + value.len + 2;
    return headers->at[-2] == '\0' && headers->at[-1] == '\0';
}

static enum MHD_Result look(void *context, enum MHD_ValueKind kind, const char *key, size_t key_len, const char *text,
                            size_t text_len)
{
    (void)kind;
    struct headers *headers = context;
    struct carrier *carrier = headers->carrier;
    struct slice name = {key, key_len};
    struct slice value = text != NULL ? (struct slice){text, text_len} : SLICE_LIT("");
    if (!is_token(name))
        (void)refuse_form(carrier,
                          "a header's name has characters that no name may have, a space before its colon say");
    else if (text == NULL || !follows(headers, name, value))
        (void)refuse_form(carrier,
                          "header [%.*s], or the line before it, has a NUL, goes on in another line, or does not end "
                          "with CR LF",
                          SLICE_ARG(name));
    else if (has_control(value, '\t'))
        (void)refuse_form(carrier, "header [%.*s] has a control character", SLICE_ARG(name));
    else
        note(headers, name, value);
    return carrier->refusal == NULL ? MHD_YES : MHD_NO;
}

static struct slice trimmed(struct slice text)
{
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* The length of the body, which must be told once and in one way. */
static bool check_length(struct carrier *carrier, struct headers *headers, const char *version)
{
    struct slice transfer = trimmed(headers->values[KNOWN_TRANSFER]);
    if (headers->counts[KNOWN_TRANSFER] > 0 && headers->counts[KNOWN_LENGTH] > 0)
        return refuse_form(carrier, "it has both Content-Length and Transfer-Encoding; send one of them");
    if (headers->counts[KNOWN_TRANSFER] > 0 && strcmp(version, "HTTP/1.1") != 0)
        return refuse_form(carrier, "HTTP/1.0 knows no Transfer-Encoding; send a Content-Length");
    if (headers->counts[KNOWN_TRANSFER] > 0 && !is_named(transfer, "chunked"))
        return refuse_form(carrier, "Transfer-Encoding [%.*s] is not supported; chunked is", SLICE_ARG(transfer));
    if (headers->counts[KNOWN_LENGTH] > 0 && !is_number(trimmed(headers->values[KNOWN_LENGTH])))
        return refuse_form(carrier, "its Content-Length is no number");
    return true;
}

/* To the end of the empty line that ends it. */
static size_t head_bytes(struct carrier *carrier)
{
    return MHD_get_connection_info(carrier->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
}

static bool check_headers(struct carrier *carrier, struct headers *headers, const char *method, const char *version)
{
    (void)MHD_get_connection_values_n(carrier->mhd, MHD_HEADER_KIND, look, headers);
    if (carrier->refusal != NULL)
        return false;
    if (headers->at != NULL && headers->at + 2 != method + head_bytes(carrier))
        return refuse_form(carrier, "its last line does not end with CR LF");
    for (int i = 0; i < KNOWN_COUNT; i++)
        if (headers->counts[i] > 1)
            return refuse_form(carrier, "it has %u headers %s; send one", headers->counts[i], known_names[i]);
    if (headers->counts[KNOWN_HOST] == 0 && strcmp(version, "HTTP/1.1") == 0)
        return refuse_form(carrier, "it has no Host");
    return check_length(carrier, headers, version);
}

/* --- Who asks ----------------------------------------------------------------------------------------------------- */

/* "name", "name:port", "[address]", "[address]:port". Returns: false when it is none of these. */
static bool split_authority(struct slice text, struct slice *ret_name, bool *ret_bracketed)
{
    bool bracketed = text.len > 0 && text.data[0] == '[';
    size_t len = slice_find_byte(text, bracketed ? ']' : ':');
    struct slice name = {text.data, len};
    struct slice rest = slice_from_offset(text, bracketed ? len + 1 : len);
    if (bracketed) {
        if (len == text.len)
            return false;
        name = slice_from_offset(name, 1);
    }
    if (rest.len > 0 && (rest.data[0] != ':' || (rest.len > 1 && !is_number(slice_from_offset(rest, 1)))))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];
        bool letter =
            (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '.' || c == '-' || c == '_';
        if (!letter && !(bracketed && c == ':'))
            return false;
    }
    *ret_name = name;
    *ret_bracketed = bracketed;
    return name.len > 0 && rest.len <= 6;
}

static bool is_address(struct slice name, bool bracketed)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = '\0';
    return inet_pton(bracketed ? AF_INET6 : AF_INET, text, &address) == 1;
}

static bool is_known(const struct http_options *options, struct slice name)
{
    if (name.len > 1 && name.data[name.len - 1] == '.') /* of a name that is complete */
        name.len--;
    if (is_named(name, "localhost"))
        return true;
    for (size_t i = 0; i < options->host_name_count; i++)
        if (is_named(name, options->host_names[i]))
            return true;
    return false;
}

/* A name that is not known might be anybody's that was given our address. */
static bool check_host(struct carrier *carrier, struct slice host)
{
    struct slice name;
    bool bracketed;
    if (!split_authority(host, &name, &bracketed) || (bracketed && !is_address(name, true)))
        return refuse_form(carrier, "its Host is neither a name nor an address, each with a port or without");
    if (is_address(name, bracketed) || is_known(&carrier->http->options, name))
        return true;
    return refuse(carrier, PROBLEM_SECURITY,
                  "host [%.*s] is not known to this server: ask it by its address, or start it with --host-name %.*s",
                  SLICE_ARG(name), SLICE_ARG(name));
}

/* "http://host:port", where the request has it, as for proxies (RFC 9112, section 3.2.2). */
static struct slice authority_of(struct slice uri)
{
    struct slice rest = slice_from_offset(uri, slice_find_byte(uri, ':') + 3);
    size_t len = 0;
    while (len < rest.len && strchr("/?#", rest.data[len]) == NULL)
        len++;
    return slice_make(rest.data, len);
}

static bool is_absolute(struct slice uri)
{
    return begins(uri, "http://") || begins(uri, "https://");
}

static bool is_same_site(struct slice origin, struct slice host)
{
    struct slice authority = is_absolute(origin) ? authority_of(origin) : SLICE_NONE;
    return authority.len > 0 && authority.len == host.len && strncasecmp(authority.data, host.data, host.len) == 0 &&
           authority.data + authority.len == origin.data + origin.len;
}

static bool check_page(struct carrier *carrier, const struct headers *headers)
{
    struct slice origin = trimmed(headers->values[KNOWN_ORIGIN]), site = trimmed(headers->values[KNOWN_SITE]);
    if (headers->counts[KNOWN_ORIGIN] > 0 && !is_same_site(origin, trimmed(headers->values[KNOWN_HOST])))
        return refuse(
            carrier, PROBLEM_SECURITY,
            "origin [%.*s] is another than this server's: pages of other sites may not ask it; have their own "
            "server ask",
            SLICE_ARG(slice_make(origin.data, slice_utf8_valid_prefix(origin))));
    if (headers->counts[KNOWN_SITE] > 0 && !is_named(site, "same-origin") && !is_named(site, "none"))
        return refuse(carrier, PROBLEM_SECURITY,
                      "Sec-Fetch-Site [%.*s]: pages of other sites may not ask this server; have their own server ask",
                      SLICE_ARG(slice_make(site.data, slice_utf8_valid_prefix(site))));
    return true;
}

static bool check_who(struct carrier *carrier, const struct headers *headers)
{
    if (headers->counts[KNOWN_HOST] > 0 && !check_host(carrier, trimmed(headers->values[KNOWN_HOST])))
        return false;
    if (is_absolute(carrier->target) && !check_host(carrier, authority_of(carrier->target)))
        return false;
    return check_page(carrier, headers);
}

bool head_left_to_library(void)
{
    return strncmp(MHD_get_version(), "0.", 2) != 0;
}

bool head_check(struct carrier *carrier, const char *method, const char *version)
{
    struct headers headers = {.carrier = carrier};
    if (!check_line(carrier, method, version))
        return false;
    if (!head_left_to_library())
        headers.at = version + strlen(version) + 2;
    if (!check_headers(carrier, &headers, method, version))
        return false;
    carrier->exchange.local = carrier->connection->loopback && !headers.browser && !headers.proxy;
    return check_who(carrier, &headers);
}
