/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate that other hosts see; see host_tls.h. */
#include "cli/host_tls.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/arguments.h"
#include "http/reason.h"

static int read_chain(const char *file, gnutls_x509_crt_t **ret_chain, unsigned *ret_count)
{
    gnutls_datum_t text;
    int r = gnutls_load_file(file, &text);
    if (r < 0)
        return r;
    r = gnutls_x509_crt_list_import2(ret_chain, ret_count, &text, GNUTLS_X509_FMT_PEM, 0);
    gnutls_free(text.data);
    return r;
}

/* Returns: GNUTLS_CERT_ flags; 0: it is verified. */
static unsigned verify_chain(gnutls_x509_trust_list_t trusted, gnutls_x509_crt_t *chain, unsigned count, char *name)
{
    gnutls_typed_vdata_st wanted[] = {
        {.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)name},
        {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_SERVER}};
    unsigned status = 0;
    int r = gnutls_x509_trust_list_verify_crt2(trusted, chain, count, wanted, sizeof wanted / sizeof *wanted,
                                               GNUTLS_VERIFY_DISABLE_TIME_CHECKS, &status, NULL);
    return r < 0 ? GNUTLS_CERT_INVALID : status;
}

static int judge_status(unsigned status, const char *cert, const char *ca, const char *name, char **ret_reason)
{
    if (status == 0)
        return 0;
    if (status & GNUTLS_CERT_UNEXPECTED_OWNER)
        return reason_fail(
            ret_reason,
            "--tls-cert %s is not for [%s], by which the other hosts of the cluster reach this one: --advertise "
            "names the host and port that they use, or have the certificate made for it",
            cert, name);
    if (ca == NULL)
        return reason_fail(
            ret_reason,
            "--tls-cert %s is signed by none of this machine's CAs, so the other hosts of the cluster could not "
            "verify it: name the CA of the hosts' certificates by --cluster-ca",
            cert);
    return reason_fail(
        ret_reason,
        "--tls-cert %s is not signed, for use by a server, by a CA in --cluster-ca %s, so the other hosts of "
        "the cluster could not verify it: --cluster-ca names the CA of the hosts' certificates",
        cert, ca);
}

int host_tls_check(const char *cert, const char *ca, const char *address, char **ret_reason)
{
    gnutls_x509_trust_list_t trusted;
    gnutls_x509_crt_t *chain = NULL;
    unsigned count = 0;
    tl_cleanup(mem_freep) char *name = arguments_host_of(address);
    if (gnutls_x509_trust_list_init(&trusted, 0) < 0)
        return reason_fail(ret_reason, "%s", gnutls_strerror(GNUTLS_E_MEMORY_ERROR));
    int r = ca != NULL ? gnutls_x509_trust_list_add_trust_file(trusted, ca, NULL, GNUTLS_X509_FMT_PEM, 0, 0)
                       : gnutls_x509_trust_list_add_system_trust(trusted, 0, 0);
    if (r < 0 && ca != NULL)
        r = reason_fail(ret_reason, "--cluster-ca %s: %s", ca, gnutls_strerror(r));
    else if ((r = read_chain(cert, &chain, &count)) < 0)
        r = reason_fail(ret_reason, "--tls-cert %s: %s", cert, gnutls_strerror(r));
    else
        r = judge_status(verify_chain(trusted, chain, count, name), cert, ca, name, ret_reason);
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    gnutls_x509_trust_list_deinit(trusted, 1);
    return r;
}

int host_tls_check_client(const char *ca, const char *cert, const char *key, char **ret_reason)
{
    gnutls_certificate_credentials_t credentials;
    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        return reason_fail(ret_reason, "%s", gnutls_strerror(GNUTLS_E_MEMORY_ERROR));
    int r = ca == NULL ? 1 : gnutls_certificate_set_x509_trust_file(credentials, ca, GNUTLS_X509_FMT_PEM);
    if (r <= 0)
        r = reason_fail(ret_reason, "--cluster-ca %s: %s", ca,
                        r == 0 ? "it has no certificate in it" : gnutls_strerror(r));
    else if (cert != NULL &&
             (r = gnutls_certificate_set_x509_key_file(credentials, cert, key, GNUTLS_X509_FMT_PEM)) < 0)
        r = reason_fail(ret_reason, "--cluster-cert %s, --cluster-key %s: %s", cert, key, gnutls_strerror(r));
    else
        r = 0;
    gnutls_certificate_free_credentials(credentials);
    return r;
}
