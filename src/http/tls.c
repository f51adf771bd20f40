/* SPDX-License-Identifier: Apache-2.0 */
/* TLS credentials; see tls.h. */
#include "http/tls.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "http/reason.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tls_credentials {
    _Atomic unsigned refs;
    gnutls_certificate_credentials_t x509;
    bool asks; /* requires client certificates */
};

struct tls {
    struct tls_files files;
    pthread_mutex_t lock;
    struct tls_credentials *current; /* under lock */
};

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static int fail_tls(char **ret_reason, const char *option, const char *file, const char *why)
{
    return reason_fail(ret_reason, "--%s %s: %s", option, file, why);
}

static int check_readable(const char *option, const char *file, char **ret_reason)
{
    return access(file, R_OK) == 0 ? 0 : fail_tls(ret_reason, option, file, strerror(errno));
}

static const char *why_no_pair(int code)
{
    switch (code) {
    case GNUTLS_E_CERTIFICATE_KEY_MISMATCH: return "it is not the key of the certificate in --tls-cert";
    case GNUTLS_E_DECRYPTION_FAILED: return "the key is encrypted; the server cannot prompt for its password";
    case GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR:
    case GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE:
    case GNUTLS_E_NO_CERTIFICATE_FOUND:
    case GNUTLS_E_BASE64_DECODING_ERROR:
        return "this file or that of --tls-cert is not PEM, or has no certificate or key in it";
    default: return gnutls_strerror(code);
    }
}

/* Warns of an invalid date. Not an error: some clients accept the certificate nevertheless. */
static void warn_of_dates(struct tls_credentials *credentials, const struct tls_files *files)
{
    gnutls_datum_t raw;
    gnutls_x509_crt_t cert;
    if (gnutls_certificate_get_crt_raw(credentials->x509, 0, 0, &raw) != 0 || gnutls_x509_crt_init(&cert) != 0)
        return;
    if (gnutls_x509_crt_import(cert, &raw, GNUTLS_X509_FMT_DER) == 0) {
        time_t now = time(NULL);
        if (gnutls_x509_crt_get_expiration_time(cert) < now)
            log_warning("--tls-cert %s: the certificate has expired; clients will refuse it", files->cert);
        else if (gnutls_x509_crt_get_activation_time(cert) > now)
            log_warning("--tls-cert %s: the certificate is not valid yet; clients will refuse it", files->cert);
    }
    gnutls_x509_crt_deinit(cert);
}

static int read_pair(struct tls_credentials *credentials, const struct tls_files *files, char **ret_reason)
{
    int r = check_readable("tls-cert", files->cert, ret_reason);
    if (r == 0)
        r = check_readable("tls-key", files->key, ret_reason);
    if (r != 0)
        return r;
    int code =
        gnutls_certificate_set_x509_key_file2(credentials->x509, files->cert, files->key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code < 0)
        return fail_tls(ret_reason, "tls-key", files->key, why_no_pair(code));
    warn_of_dates(credentials, files);
    return 0;
}

static int read_ca(struct tls_credentials *credentials, const struct tls_files *files, char **ret_reason)
{
    int r = check_readable("tls-ca", files->ca, ret_reason);
    if (r != 0)
        return r;
    int count = gnutls_certificate_set_x509_trust_file(credentials->x509, files->ca, GNUTLS_X509_FMT_PEM);
    if (count <= 0)
        return fail_tls(ret_reason, "tls-ca", files->ca,
                        count == 0 ? "there is no certificate in it" : "it is not PEM, or has no certificate in it");
    credentials->asks = true;
    return 0;
}

/* Returns: NULL, with *ret_reason, when the files cannot be used. */
static struct tls_credentials *read_files(const struct tls_files *files, char **ret_reason)
{
    struct tls_credentials *credentials = mem_zalloc(sizeof *credentials);
    credentials->refs = 1;
    int r = gnutls_certificate_allocate_credentials(&credentials->x509);
    INSIST(r == 0);
    r = read_pair(credentials, files, ret_reason);
    if (r == 0 && files->ca != NULL)
        r = read_ca(credentials, files, ret_reason);
    if (r == 0)
        return credentials;
    tls_credentials_unref(credentials);
    return NULL;
}

int tls_open(const struct tls_files *files, struct tls **ret_tls, char **ret_reason)
{
    struct tls_credentials *credentials = read_files(files, ret_reason);
    if (credentials == NULL)
        return TL_ERR_IO;
    struct tls *tls = mem_zalloc(sizeof *tls);
    tls->files = *files;
    tls->current = credentials;
    mutex_init(&tls->lock);
    *ret_tls = tls;
    return 0;
}

void tls_close(struct tls *tls)
{
    if (tls == NULL)
        return;
    tls_credentials_unref(tls->current);
    pthread_mutex_destroy(&tls->lock);
    mem_free(tls);
}

int tls_reload(struct tls *tls, char **ret_reason)
{
    struct tls_credentials *credentials = read_files(&tls->files, ret_reason);
    if (credentials == NULL)
        return TL_ERR_IO;
    pthread_mutex_lock(&tls->lock);
    struct tls_credentials *former = tls->current;
    tls->current = credentials;
    pthread_mutex_unlock(&tls->lock);
    tls_credentials_unref(former);
    return 0;
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

/* Returns: the alert for the verification status of a client certificate. */
static gnutls_alert_description_t alert_of(unsigned status)
{
    if ((status & GNUTLS_CERT_EXPIRED) != 0)
        return GNUTLS_A_CERTIFICATE_EXPIRED;
    if ((status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA)) != 0)
        return GNUTLS_A_UNKNOWN_CA;
    return (status & GNUTLS_CERT_PURPOSE_MISMATCH) != 0 ? GNUTLS_A_UNSUPPORTED_CERTIFICATE : GNUTLS_A_BAD_CERTIFICATE;
}

/*
 * Verifies the client certificate. Called in the handshake; a client without a certificate was
 * refused before (GNUTLS_CERT_REQUIRE). A certificate that restricts its purpose must permit client
 * authentication.
 */
static int verify_client(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (void *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0;
    int r = gnutls_certificate_verify_peers(session, &purpose, 1, &status);
    if (r == 0 && status == 0)
        return 0;
    gnutls_datum_t why = {0};
    if (r == 0)
        (void)gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &why, 0);
    log_debug("a client's certificate is refused: %s", why.data != NULL ? (const char *)why.data : gnutls_strerror(r));
    gnutls_free(why.data);
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, r == 0 ? alert_of(status) : GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
}

struct tls_credentials *tls_begin(struct tls *tls, gnutls_session_t session)
{
    pthread_mutex_lock(&tls->lock);
    struct tls_credentials *credentials = tls->current;
    atomic_fetch_add(&credentials->refs, 1);
    pthread_mutex_unlock(&tls->lock);
    int r = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials->x509);
    INSIST(r == 0);
    if (credentials->asks) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_function(session, verify_client);
    }
    return credentials;
}

void tls_credentials_unref(struct tls_credentials *credentials)
{
    if (credentials == NULL || atomic_fetch_sub(&credentials->refs, 1) > 1)
        return;
    if (credentials->x509 != NULL)
        gnutls_certificate_free_credentials(credentials->x509);
    mem_free(credentials);
}
