/* SPDX-License-Identifier: Apache-2.0 */
/* TLS to a member of etcd; see tls.h. */
#include "cmdlog/etcd/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"

/* TLS 1.2 and 1.3, which etcd 3.4 and newer have, with GnuTLS's default ciphers. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static int fail_with_option(char **ret_reason, const char *option, const char *file, const char *why)
{
    if (asprintf(ret_reason, "--%s %s: %s", option, file, why) < 0)
        *ret_reason = NULL;
    return tl_trace(TL_ERR_IO);
}

static const char *explain_pair(int code)
{
    switch (code) {
    case GNUTLS_E_CERTIFICATE_KEY_MISMATCH: return "it is not the key of the certificate in --cluster-cert";
    case GNUTLS_E_DECRYPTION_FAILED: return "the key is encrypted; the server needs one without a password";
    case GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR:
    case GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE:
    case GNUTLS_E_NO_CERTIFICATE_FOUND:
    case GNUTLS_E_BASE64_DECODING_ERROR:
        return "this file or that of --cluster-cert is not PEM, or has no certificate or key in it";
    default: return gnutls_strerror(code);
    }
}

static int read_ca(const struct etcd_tls_files *files, gnutls_certificate_credentials_t credentials, char **ret_reason)
{
    if (files->ca == NULL) {
        int count = gnutls_certificate_set_x509_system_trust(credentials);
        return count > 0 ? 0
                         : fail_with_option(ret_reason, "cluster-ca", "FILE",
                                            "it is required: this system has no list of certificate authorities");
    }
    if (access(files->ca, R_OK) != 0)
        return fail_with_option(ret_reason, "cluster-ca", files->ca, strerror(errno));
    if (gnutls_certificate_set_x509_trust_file(credentials, files->ca, GNUTLS_X509_FMT_PEM) <= 0)
        return fail_with_option(ret_reason, "cluster-ca", files->ca, "it is not PEM, or has no certificate in it");
    return 0;
}

static int read_pair(const struct etcd_tls_files *files, gnutls_certificate_credentials_t credentials,
                     char **ret_reason)
{
    if (files->cert == NULL)
        return 0;
    if (access(files->cert, R_OK) != 0)
        return fail_with_option(ret_reason, "cluster-cert", files->cert, strerror(errno));
    if (access(files->key, R_OK) != 0)
        return fail_with_option(ret_reason, "cluster-key", files->key, strerror(errno));
    int code =
        gnutls_certificate_set_x509_key_file2(credentials, files->cert, files->key, GNUTLS_X509_FMT_PEM, NULL, 0);
    return code >= 0 ? 0 : fail_with_option(ret_reason, "cluster-key", files->key, explain_pair(code));
}

int etcd_tls_read(const struct etcd_tls_files *files, gnutls_certificate_credentials_t *ret_credentials,
                  char **ret_reason)
{
    gnutls_certificate_credentials_t credentials;
    REQUIRE((files->cert == NULL) == (files->key == NULL));
    int r = gnutls_certificate_allocate_credentials(&credentials);
    INSIST(r == 0);
    r = read_ca(files, credentials, ret_reason);
    if (r == 0)
        r = read_pair(files, credentials, ret_reason);
    if (r == 0)
        *ret_credentials = credentials;
    else
        gnutls_certificate_free_credentials(credentials);
    return r;
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

gnutls_session_t etcd_tls_session(gnutls_certificate_credentials_t credentials, int fd, const char *host,
                                  struct etcd_tls_verify *verify)
{
    static const gnutls_datum_t http2 = {(unsigned char *)(uintptr_t) "h2", 2};
    gnutls_session_t session;
    /* Without FORCE a certificate of another CA is withheld, and the member says that it got none. */
    int r = gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_FORCE_CLIENT_CERT);
    INSIST(r == 0);
    r = gnutls_priority_set_direct(session, PRIORITIES, NULL);
    INSIST(r == 0);
    r = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    INSIST(r == 0);
    r = gnutls_alpn_set_protocols(session, &http2, 1, 0);
    INSIST(r == 0);
    if (!is_address(host)) { /* RFC 6066, 3: no literal addresses in a server name */
        r = gnutls_server_name_set(session, GNUTLS_NAME_DNS, host, strlen(host));
        INSIST(r == 0);
    }
    *verify = (struct etcd_tls_verify){
        {{.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)(uintptr_t)host},
         {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_SERVER}}};
    gnutls_session_set_verify_cert2(session, verify->data, 2, 0);
    gnutls_transport_set_int(session, fd);
    return session;
}

int etcd_tls_handshake(gnutls_session_t session)
{
    gnutls_datum_t protocol;
    int r = gnutls_handshake(session);
    if (r < 0)
        return gnutls_error_is_fatal(r) ? r : 0;
    if (gnutls_alpn_get_selected_protocol(session, &protocol) != 0)
        return GNUTLS_E_NO_APPLICATION_PROTOCOL;
    return 1;
}

/* --- Errors ------------------------------------------------------------------------------------------------------- */

static void explain_certificate(gnutls_session_t session, const char *host, char *text, size_t size)
{
    unsigned status = gnutls_session_get_verify_cert_status(session);
    gnutls_datum_t why = {0};
    if ((status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA)) != 0) {
        snprintf(text, size,
                 "no known authority signed its certificate; --cluster-ca names the file of the one that did");
    } else if ((status & GNUTLS_CERT_UNEXPECTED_OWNER) != 0) {
        snprintf(text, size, "its certificate is not for [%s]; --cluster needs a name or address that is in it", host);
    } else if ((status & GNUTLS_CERT_EXPIRED) != 0) {
        snprintf(text, size, "its certificate has expired; renew it, or correct the clock of this machine");
    } else if ((status & GNUTLS_CERT_NOT_ACTIVATED) != 0) {
        snprintf(text, size, "its certificate is not valid yet; correct the clock of this machine, or its own");
    } else {
        (void)gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &why, 0);
        snprintf(text, size, "its certificate is refused: %s",
                 why.data != NULL ? (const char *)why.data : "no reason is known");
        gnutls_free(why.data);
    }
}

/* An alert of the member, most of which are about this host's certificate. */
static void explain_alert(gnutls_session_t session, char *text, size_t size)
{
    gnutls_alert_description_t alert = gnutls_alert_get(session);
    const char *name = gnutls_alert_get_name(alert);
    name = name != NULL ? name : "unknown alert";
    switch ((int)alert) {
    case GNUTLS_A_BAD_CERTIFICATE:
    case GNUTLS_A_UNSUPPORTED_CERTIFICATE:
    case GNUTLS_A_CERTIFICATE_EXPIRED:
    case GNUTLS_A_CERTIFICATE_REVOKED:
    case GNUTLS_A_CERTIFICATE_UNKNOWN:
    case GNUTLS_A_UNKNOWN_CA:
    case GNUTLS_A_ACCESS_DENIED:
    case GNUTLS_A_CERTIFICATE_REQUIRED:
        if (gnutls_certificate_get_ours(session) == NULL)
            snprintf(text, size, "it requires a certificate of this host (%s): --cluster-cert, --cluster-key", name);
        else
            snprintf(
                text, size,
                "it refuses the certificate in --cluster-cert (%s), which a CA in etcd's --trusted-ca-file must sign",
                name);
        break;
    default: snprintf(text, size, "it ended the TLS handshake: %s", name);
    }
}

void etcd_tls_explain(gnutls_session_t session, const char *host, int code, char *text, size_t size)
{
    switch (code) {
    case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR: explain_certificate(session, host, text, size); break;
    case GNUTLS_E_FATAL_ALERT_RECEIVED: explain_alert(session, text, size); break;
    case GNUTLS_E_NO_APPLICATION_PROTOCOL:
        snprintf(text, size, "it does not speak HTTP/2 there; --cluster needs etcd's client URLs");
        break;
    case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
    case GNUTLS_E_UNEXPECTED_PACKET:
    case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
        snprintf(text, size, "it does not speak TLS there; http:// in --cluster is for such members");
        break;
    default: snprintf(text, size, "TLS failed: %s", gnutls_strerror(code));
    }
}
