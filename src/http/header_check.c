/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks request headers: an unambiguous syntax, and a permitted origin.
 *
 * Syntax (request smuggling). If a proxy in front of the server sees the end of a header, or the
 * length of a body, differently, a client can hide a request in the body of another one. Therefore
 * nothing is guessed: syntax that RFC 9112 forbids, or permits in two interpretations, is answered
 * with 400, and the connection is closed before the path is examined.
 *
 * libmicrohttpd 1.x checks most of that in its strict mode. 0.9 does not; nor does it report where
 * a line ended, or a NUL, at which its strings end. However, it tokenizes the header in place: it
 * overwrites line ends, colons and spaces with zeros, and its strings point between them. In a
 * correct header each string starts directly after the end of the previous one: one zero follows a
 * method, a path and a name, and two zeros (CR, LF) follow a value. A bare LF leaves one zero, a
 * NUL one more, and a folded line has been copied to another address.
 *
 * Origin. A page of another site can make a browser send requests to this server (Origin,
 * Sec-Fetch-Site). With DNS rebinding, a name of that site resolves to this server, and the page
 * can read the responses as well (Host). See docs/threat-model.md.
 */
#include "http/http_internal.h"

#include <arpa/inet.h>
#include <strings.h>

/* --- Refusals ----------------------------------------------------------------------------------------------------- */

/* Sets the refusal. Value: false. */
#define refuse(hx, type, ...) (problem_set(http_exchange_refuse(hx), &(hx)->exchange.arena, type, __VA_ARGS__), false)

/*
 * Refuses an ambiguous request. Later bytes on its connection could be ambiguous too: it is closed.
 */
#define refuse_malformed(hx, ...) \
    ((hx)->close_after = true, refuse(hx, PROBLEM_ILLEGAL_ARGUMENT, "malformed HTTP request: " __VA_ARGS__))

/* --- Syntax ------------------------------------------------------------------------------------------------------- */

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

/*
 * Returns: whether there is a control character other than `but` ('\0': no exception). Bytes beyond
 * ASCII are permitted (RFC 9110, section 5.5).
 */
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

static bool check_request_line(struct http_exchange *hx, const char *method, const char *version)
{
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return refuse_malformed(hx, "its version is neither HTTP/1.1 nor HTTP/1.0");
    if (!is_token(slice_from(method)))
        return refuse_malformed(hx, "its method has characters that no method may have");
    struct slice target = hx->target;
    if (target.len == 0 || has_control(target, '\0') || slice_find_byte(target, ' ') < target.len)
        return refuse_malformed(hx, "a space or a control character in its path; write it as %%XX");
    if (header_check_is_delegated())
        return true;
    if (method + strlen(method) + 1 != hx->target_at || hx->target_at + target.len + 1 != version)
        return refuse_malformed(hx, "its first line has a NUL, or more than one space between its parts");
    const char *end = version + strlen(version);
    if (end[0] != '\0' || end[1] != '\0')
        return refuse_malformed(hx, "its first line does not end with CR LF");
    return true;
}

/* The header fields that are examined. */
enum known { KNOWN_HOST, KNOWN_LENGTH, KNOWN_TRANSFER, KNOWN_TYPE, KNOWN_ORIGIN, KNOWN_SITE, KNOWN_COUNT };

static const char *const known_names[KNOWN_COUNT] = {"Host",         "Content-Length", "Transfer-Encoding",
                                                     "Content-Type", "Origin",         "Sec-Fetch-Site"};

struct headers {
    struct http_exchange *hx;
    const char *at; /* required address of the next name; NULL: not checked */
    struct slice values[KNOWN_COUNT];
    unsigned counts[KNOWN_COUNT];
    bool browser; /* a field that only browsers send */
    bool proxy;   /* a field that only proxies add */
};

static bool name_begins(struct slice name, const char *wanted)
{
    return name.len >= strlen(wanted) && strncasecmp(name.data, wanted, strlen(wanted)) == 0;
}

static void record_field(struct headers *headers, struct slice name, struct slice value)
{
    for (int i = 0; i < KNOWN_COUNT; i++)
        if (slice_is_ignoring_case(name, known_names[i])) {
            headers->values[i] = value;
            headers->counts[i]++;
        }
    headers->browser = headers->browser || name_begins(name, "Sec-Fetch-") || slice_is_ignoring_case(name, "Origin");
    headers->proxy = headers->proxy || name_begins(name, "X-Forwarded-") || slice_is_ignoring_case(name, "Forwarded") ||
                     slice_is_ignoring_case(name, "Via") || slice_is_ignoring_case(name, "X-Real-IP");
}

/*
 * Checks that the field starts directly after the previous line; then sets headers->at to its own
 * end.
 */
static bool field_follows(struct headers *headers, struct slice name, struct slice value)
{
    if (headers->at == NULL)
        return true;
    if (name.data != headers->at)
        return false;
    for (const char *p = name.data + name.len + 1; p != value.data; p++)
        if (*p != ' ' && *p != '\t') /* ends at a NUL at the latest, as libmicrohttpd's parser does */
            return false;
    headers->at = value.data + value.len + 2;
    return headers->at[-2] == '\0' && headers->at[-1] == '\0';
}

static enum MHD_Result check_field(void *context, enum MHD_ValueKind kind, const char *key, size_t key_len,
                                   const char *text, size_t text_len)
{
    (void)kind;
    struct headers *headers = context;
    struct http_exchange *hx = headers->hx;
    struct slice name = {key, key_len};
    struct slice value = text != NULL ? (struct slice){text, text_len} : SLICE_LIT("");
    if (!is_token(name))
        (void)refuse_malformed(
            hx, "a header's name has characters that no name may have, such as a space before its colon");
    else if (text == NULL || !field_follows(headers, name, value))
        (void)refuse_malformed(
            hx,
            "header [%.*s], or the line before it, has a NUL, continues on another line, or does not end "
            "with CR LF",
            SLICE_ARG(name));
    else if (has_control(value, '\t'))
        (void)refuse_malformed(hx, "header [%.*s] has a control character", SLICE_ARG(name));
    else
        record_field(headers, name, value);
    return hx->refusal == NULL ? MHD_YES : MHD_NO;
}

static struct slice trimmed_end(struct slice text)
{
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

/* Checks that the length of the body is given once, in one way. */
static bool check_length(struct http_exchange *hx, struct headers *headers, const char *version)
{
    struct slice transfer = trimmed_end(headers->values[KNOWN_TRANSFER]);
    if (headers->counts[KNOWN_TRANSFER] > 0 && headers->counts[KNOWN_LENGTH] > 0)
        return refuse_malformed(hx, "it has both Content-Length and Transfer-Encoding; send one of them");
    if (headers->counts[KNOWN_TRANSFER] > 0 && strcmp(version, "HTTP/1.1") != 0)
        return refuse_malformed(hx, "HTTP/1.0 knows no Transfer-Encoding; send a Content-Length");
    if (headers->counts[KNOWN_TRANSFER] > 0 && !slice_is_ignoring_case(transfer, "chunked"))
        return refuse_malformed(hx, "Transfer-Encoding [%.*s] is not supported; chunked is", SLICE_ARG(transfer));
    if (headers->counts[KNOWN_LENGTH] > 0 && !is_number(trimmed_end(headers->values[KNOWN_LENGTH])))
        return refuse_malformed(hx, "its Content-Length is no number");
    return true;
}

/* Returns: the size of the header, including the empty line that ends it. */
static size_t header_bytes(struct http_exchange *hx)
{
    return MHD_get_connection_info(hx->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
}

static bool check_headers(struct http_exchange *hx, struct headers *headers, const char *method, const char *version)
{
    (void)MHD_get_connection_values_n(hx->mhd, MHD_HEADER_KIND, check_field, headers);
    if (hx->refusal != NULL)
        return false;
    if (headers->at != NULL && headers->at + 2 != method + header_bytes(hx))
        return refuse_malformed(hx, "its last line does not end with CR LF");
    for (int i = 0; i < KNOWN_COUNT; i++)
        if (headers->counts[i] > 1)
            return refuse_malformed(hx, "it has %u headers %s; send one", headers->counts[i], known_names[i]);
    if (headers->counts[KNOWN_HOST] == 0 && strcmp(version, "HTTP/1.1") == 0)
        return refuse_malformed(hx, "it has no Host");
    return check_length(hx, headers, version);
}

/* --- Origin ------------------------------------------------------------------------------------------------------- */

/* Parses "name", "name:port", "[address]", "[address]:port". Returns: false for any other text. */
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

static bool is_own_name(const struct http_options *options, struct slice name)
{
    if (name.len > 1 && name.data[name.len - 1] == '.') /* of a fully qualified name */
        name.len--;
    if (slice_is_ignoring_case(name, "localhost"))
        return true;
    for (size_t i = 0; i < options->host_name_count; i++)
        if (slice_is_ignoring_case(name, options->host_names[i]))
            return true;
    return false;
}

/* Refuses unknown names: another site's name could resolve to this server (DNS rebinding). */
static bool check_host(struct http_exchange *hx, struct slice host)
{
    struct slice name;
    bool bracketed;
    if (!split_authority(host, &name, &bracketed) || (bracketed && !is_address(name, true)))
        return refuse_malformed(hx, "its Host is neither a name nor an address, each with a port or without");
    if (is_address(name, bracketed) || is_own_name(&hx->http->options, name))
        return true;
    return refuse(hx, PROBLEM_SECURITY,
                  "host [%.*s] is not known to this server: ask it by its address, or start it with --host-name %.*s",
                  SLICE_ARG(name), SLICE_ARG(name));
}

/*
 * Returns: the authority of a target in absolute form, as proxies send it (RFC 9112, section
 * 3.2.2).
 */
static struct slice authority_of(struct slice uri)
{
    struct slice rest = slice_from_offset(uri, slice_find_byte(uri, ':') + 3);
    size_t len = 0;
    while (len < rest.len && strchr("/?#", rest.data[len]) == NULL)
        len++;
    return slice_make(rest.data, len);
}

static bool is_absolute_form(struct slice uri)
{
    return name_begins(uri, "http://") || name_begins(uri, "https://");
}

static bool is_same_site(struct slice origin, struct slice host)
{
    struct slice authority = is_absolute_form(origin) ? authority_of(origin) : SLICE_NONE;
    return authority.len > 0 && authority.len == host.len && strncasecmp(authority.data, host.data, host.len) == 0 &&
           authority.data + authority.len == origin.data + origin.len;
}

static bool check_page(struct http_exchange *hx, const struct headers *headers)
{
    struct slice origin = trimmed_end(headers->values[KNOWN_ORIGIN]), site = trimmed_end(headers->values[KNOWN_SITE]);
    if (headers->counts[KNOWN_ORIGIN] > 0 && !is_same_site(origin, trimmed_end(headers->values[KNOWN_HOST])))
        return refuse(
            hx, PROBLEM_SECURITY,
            "origin [%.*s] is another than this server's: pages of other sites may not ask it; have their own "
            "server ask",
            SLICE_ARG(slice_make(origin.data, slice_utf8_valid_prefix(origin))));
    if (headers->counts[KNOWN_SITE] > 0 && !slice_is_ignoring_case(site, "same-origin") &&
        !slice_is_ignoring_case(site, "none"))
        return refuse(hx, PROBLEM_SECURITY,
                      "Sec-Fetch-Site [%.*s]: pages of other sites may not ask this server; have their own server ask",
                      SLICE_ARG(slice_make(site.data, slice_utf8_valid_prefix(site))));
    return true;
}

static bool check_origin(struct http_exchange *hx, const struct headers *headers)
{
    if (headers->counts[KNOWN_HOST] > 0 && !check_host(hx, trimmed_end(headers->values[KNOWN_HOST])))
        return false;
    if (is_absolute_form(hx->target) && !check_host(hx, authority_of(hx->target)))
        return false;
    return check_page(hx, headers);
}

bool header_check_is_delegated(void)
{
    return strncmp(MHD_get_version(), "0.", 2) != 0;
}

bool header_check(struct http_exchange *hx, const char *method, const char *version)
{
    struct headers headers = {.hx = hx};
    if (!check_request_line(hx, method, version))
        return false;
    if (!header_check_is_delegated())
        headers.at = version + strlen(version) + 2;
    if (!check_headers(hx, &headers, method, version))
        return false;
    hx->exchange.local = hx->connection->loopback && !headers.browser && !headers.proxy;
    return check_origin(hx, &headers);
}
