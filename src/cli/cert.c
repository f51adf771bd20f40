/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock cert`: a CA of one's own and certificates by it, for a first try of TLS, by GnuTLS.
 *
 * The CA stays once it is made; server and client certificates are made by it, and renewed with
 * --renew. A file is written under a temporary name and then renamed, so a server that reloads it
 * finds the old or the new one; key before certificate. Only their owner can read keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/escape.h"

enum {
    OPTION_DIR = 256,
    OPTION_HOST,
    OPTION_CLIENT,
    OPTION_DAYS,
    OPTION_RENEW,
    CA_DAYS = 3650,
    BACK_SECONDS = 3600, /* clocks of clients may be slow */
    SERIAL_BYTES = 16,
    PEM_BYTES_MAX = 64 * 1024,
};

static const struct argp_option options[] = {
    {"dir", OPTION_DIR, "DIR", 0, "The directory of the files; created if missing (./tidelock-tls)", 1},
    {"host-name", OPTION_HOST, "NAME", 0,
     "A name or address of the server, in addition to localhost, 127.0.0.1 and ::1; repeatable", 1},
    {"client", OPTION_CLIENT, "NAME", 0, "The client's name, and the files NAME.pem and NAME-key.pem (client)", 1},
    {"days", OPTION_DAYS, "N", 0, "Validity of the certificates in days (365); the CA is valid for ten years", 1},
    {"renew", OPTION_RENEW, NULL, 0, "Replace the certificates of server and client, signed by the existing CA", 1},
    {0},
};

struct cert_options {
    const char *dir;
    const char *client;
    const char **hosts;
    size_t host_count;
    unsigned days;
    bool renew;
};

/* It becomes the name of a file. */
static void check_client(const struct argp_state *state, const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@";
    if (*name == '\0' || *name == '.' || name[strspn(name, allowed)] != '\0' || strlen(name) > 64)
        arguments_error(state, "--client: '%s' is not a valid name: up to 64 letters, digits, '-', '_', '.' and '@'",
                        name);
    else if (strcmp(name, "ca") == 0 || strcmp(name, "server") == 0)
        arguments_error(state, "--client: '%s' is the name of another file here", name);
}

static void add_host(const struct argp_state *state, struct cert_options *o, const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    if (*name == '\0' || name[strspn(name, allowed)] != '\0')
        arguments_error(state, "--host-name: '%s' is neither a name nor an address", name);
    o->hosts = mem_realloc(o->hosts, (o->host_count + 1) * sizeof *o->hosts);
    o->hosts[o->host_count++] = name;
}

static error_t parse_cert_option(int key, char *text, struct argp_state *state)
{
    struct cert_options *o = state->input;
    switch (key) {
    case OPTION_DIR: o->dir = text; break;
    case OPTION_HOST: add_host(state, o, text); break;
    case OPTION_CLIENT:
        check_client(state, text);
        o->client = text;
        break;
    case OPTION_DAYS: o->days = (unsigned)arguments_number(state, "days", text, 1, CA_DAYS); break;
    case OPTION_RENEW: o->renew = true; break;
    case ARGP_KEY_ARG:
        arguments_error(state, "'%s' is not an option; --dir names the directory of the files", text);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const char doc[] =
    "Make a CA, and certificates of a server and a client signed by it, for a trial of TLS.\v"
    "With DIR/ca-key.pem one can make certificates that your server and clients trust: protect it. Exit status 0 if "
    "the files exist.\n\n"
    "Examples:\n"
    "  tidelock cert --dir tls\n"
    "  tidelock serve --tls-cert tls/server.pem --tls-key tls/server-key.pem \\\n"
    "      --tls-ca tls/ca.pem\n"
    "  tidelock status --url https://localhost:9200 --cacert tls/ca.pem \\\n"
    "      --cert tls/client.pem --key tls/client-key.pem\n"
    "  tidelock cert --dir tls --renew && kill -HUP SERVER\n";

/* A certificate and its key. */
struct pair {
    gnutls_x509_crt_t cert;
    gnutls_x509_privkey_t key;
};

static void pair_clear(struct pair *pair)
{
    if (pair->cert != NULL)
        gnutls_x509_crt_deinit(pair->cert);
    if (pair->key != NULL)
        gnutls_x509_privkey_deinit(pair->key);
    *pair = (struct pair){0};
}

static bool cert_failed(const char *what, const char *why)
{
    fprintf(stderr, "tidelock cert: %s: %s\n", escape_terminal(what), why);
    return false;
}

static bool gnutls_succeeded(int code)
{
    return code >= 0 || cert_failed("cannot make a certificate", gnutls_strerror(code));
}

/* Owns: the caller; mem_free. */
static char *path_of(const struct cert_options *o, const char *name, const char *end)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    size_t len;
    buf_printf(&path, "%s/%s%s.pem", o->dir, name, end);
    return buf_detach(&path, &len);
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static bool write_whole(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, text, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        len -= (size_t)written;
    }
    return fsync(fd) == 0;
}

static bool write_file(const char *path, const char *text, size_t len, mode_t mode)
{
    char *new_path = NULL;
    if (asprintf(&new_path, "%s.new", path) < 0)
        return cert_failed(path, "no memory");
    (void)unlink(new_path); /* of one that was killed */
    int fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    bool written = fd >= 0 && write_whole(fd, text, len);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (written && rename(new_path, path) != 0) {
        written = false;
        error = errno;
    }
    free(new_path);
    return written || cert_failed(path, strerror(error));
}

static bool write_pair(const struct cert_options *o, const char *name, const struct pair *pair)
{
    tl_cleanup(mem_freep) char *cert_path = path_of(o, name, ""), *key_path = path_of(o, name, "-key");
    gnutls_datum_t key = {0}, cert = {0};
    bool done = gnutls_succeeded(
                    gnutls_x509_privkey_export2_pkcs8(pair->key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &key)) &&
                gnutls_succeeded(gnutls_x509_crt_export2(pair->cert, GNUTLS_X509_FMT_PEM, &cert)) &&
                write_file(key_path, (char *)key.data, key.size, 0600) &&
                write_file(cert_path, (char *)cert.data, cert.size, 0644);
    if (done)
        printf("%s\n%s\n", escape_terminal(cert_path), escape_terminal(key_path));
    gnutls_free(key.data);
    gnutls_free(cert.data);
    return done;
}

static bool import_pair(const char *cert_path, const char *key_path, struct pair *pair)
{
    gnutls_datum_t cert = {0}, key = {0};
    bool done = gnutls_load_file(cert_path, &cert) == 0 && gnutls_load_file(key_path, &key) == 0 &&
                gnutls_x509_crt_init(&pair->cert) == 0 && gnutls_x509_privkey_init(&pair->key) == 0 &&
                gnutls_x509_crt_import(pair->cert, &cert, GNUTLS_X509_FMT_PEM) == 0 &&
                gnutls_x509_privkey_import(pair->key, &key, GNUTLS_X509_FMT_PEM) == 0;
    gnutls_free(cert.data);
    gnutls_free(key.data);
    return done ||
           cert_failed(cert_path,
                       "this or its key cannot be read, or is no PEM; without it there is nothing to sign with");
}

/* --- Certificates ------------------------------------------------------------------------------------------------- */

enum kind { KIND_CA, KIND_SERVER, KIND_CLIENT };

static bool set_serial(gnutls_x509_crt_t cert)
{
    unsigned char serial[SERIAL_BYTES];
    if (!gnutls_succeeded(gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial)))
        return false;
    serial[0] = (unsigned char)((serial[0] & 0x7f) | 1); /* a positive number of this length */
    return gnutls_succeeded(gnutls_x509_crt_set_serial(cert, serial, sizeof serial));
}

static bool add_name(gnutls_x509_crt_t cert, const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, name, address) == 1)
        return gnutls_succeeded(
            gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address, 4, GNUTLS_FSAN_APPEND));
    if (inet_pton(AF_INET6, name, address) == 1)
        return gnutls_succeeded(
            gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address, 16, GNUTLS_FSAN_APPEND));
    return gnutls_succeeded(gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, name, (unsigned)strlen(name),
                                                                 GNUTLS_FSAN_APPEND));
}

static bool set_server(const struct cert_options *o, gnutls_x509_crt_t cert)
{
    bool done = gnutls_succeeded(gnutls_x509_crt_set_key_purpose_oid(cert, GNUTLS_KP_TLS_WWW_SERVER, 0)) &&
                add_name(cert, "localhost") && add_name(cert, "127.0.0.1") && add_name(cert, "::1");
    for (size_t i = 0; done && i < o->host_count; i++)
        done = add_name(cert, o->hosts[i]);
    return done;
}

static bool set_what_for(const struct cert_options *o, enum kind kind, gnutls_x509_crt_t cert)
{
    if (!gnutls_succeeded(gnutls_x509_crt_set_basic_constraints(cert, kind == KIND_CA, kind == KIND_CA ? 0 : -1)) ||
        !gnutls_succeeded(gnutls_x509_crt_set_key_usage(
            cert, kind == KIND_CA ? GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE)))
        return false;
    switch (kind) {
    case KIND_CA: return true;
    case KIND_SERVER: return set_server(o, cert);
    case KIND_CLIENT: return gnutls_succeeded(gnutls_x509_crt_set_key_purpose_oid(cert, GNUTLS_KP_TLS_WWW_CLIENT, 0));
    }
    return false;
}

static bool set_ids(const struct pair *pair, const struct pair *ca)
{
    unsigned char own[64], theirs[64];
    size_t own_len = sizeof own, their_len = sizeof theirs;
    return gnutls_succeeded(gnutls_x509_crt_get_key_id(pair->cert, 0, own, &own_len)) &&
           gnutls_succeeded(gnutls_x509_crt_set_subject_key_id(pair->cert, own, own_len)) &&
           gnutls_succeeded(gnutls_x509_crt_get_key_id(ca->cert, 0, theirs, &their_len)) &&
           gnutls_succeeded(gnutls_x509_crt_set_authority_key_id(pair->cert, theirs, their_len));
}

/* Signed by `ca`, or by itself where that is NULL. */
static bool make_certificate(const struct cert_options *o, enum kind kind, const char *name, const struct pair *ca,
                             struct pair *pair)
{
    time_t now = time(NULL), days = kind == KIND_CA ? CA_DAYS : o->days;
    if (!gnutls_succeeded(gnutls_x509_privkey_init(&pair->key)) ||
        !gnutls_succeeded(gnutls_x509_crt_init(&pair->cert)) ||
        !gnutls_succeeded(gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
                                                       GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0)))
        return false;
    const struct pair *signer = ca != NULL ? ca : pair;
    return gnutls_succeeded(gnutls_x509_crt_set_version(pair->cert, 3)) && set_serial(pair->cert) &&
           gnutls_succeeded(gnutls_x509_crt_set_dn_by_oid(pair->cert, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                          (unsigned)strlen(name))) &&
           gnutls_succeeded(gnutls_x509_crt_set_key(pair->cert, pair->key)) &&
           gnutls_succeeded(gnutls_x509_crt_set_activation_time(pair->cert, now - BACK_SECONDS)) &&
           gnutls_succeeded(gnutls_x509_crt_set_expiration_time(pair->cert, now + days * 86400)) &&
           set_what_for(o, kind, pair->cert) && set_ids(pair, signer) &&
           gnutls_succeeded(gnutls_x509_crt_sign2(pair->cert, signer->cert, signer->key, GNUTLS_DIG_SHA256, 0));
}

/* That which there is, or one that is made. */
static bool get_ca(const struct cert_options *o, struct pair *ca)
{
    tl_cleanup(mem_freep) char *cert_path = path_of(o, "ca", ""), *key_path = path_of(o, "ca", "-key");
    if (access(cert_path, F_OK) == 0)
        return import_pair(cert_path, key_path, ca);
    return make_certificate(o, KIND_CA, "Tidelock CA", NULL, ca) && write_pair(o, "ca", ca);
}

/* An existing file stays, unless --renew is given. */
static bool get_certificate(const struct cert_options *o, enum kind kind, const char *file, const char *name,
                            const struct pair *ca)
{
    tl_cleanup(mem_freep) char *path = path_of(o, file, "");
    struct pair pair = {0};
    if (!o->renew && access(path, F_OK) == 0) {
        /* Otherwise a new --host-name or --days would seem to be in it. */
        fprintf(stderr, "tidelock cert: %s exists, and stays as it is; --renew replaces it\n", path);
        return true;
    }
    bool done = make_certificate(o, kind, name, ca, &pair) && write_pair(o, file, &pair);
    pair_clear(&pair);
    return done;
}

static bool get_all(const struct cert_options *o)
{
    struct pair ca = {0};
    if (mkdir(o->dir, 0700) != 0 && errno != EEXIST)
        return cert_failed(o->dir, strerror(errno));
    bool done = get_ca(o, &ca) &&
                get_certificate(o, KIND_SERVER, "server", o->host_count > 0 ? o->hosts[0] : "localhost", &ca) &&
                get_certificate(o, KIND_CLIENT, o->client, o->client, &ca);
    pair_clear(&ca);
    return done;
}

int command_cert(int argc, char **argv)
{
    static const struct argp argp = {options, parse_cert_option, NULL, doc, NULL, NULL, NULL};
    struct cert_options o = {.dir = "./tidelock-tls", .client = "client", .days = 365};
    arguments_parse(&argp, argc, argv, 0, &o);
    bool done = get_all(&o);
    mem_free(o.hosts);
    return done ? 0 : 1;
}
