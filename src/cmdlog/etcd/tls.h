/* SPDX-License-Identifier: Apache-2.0 */
/* TLS to a member of etcd (GnuTLS); README.md, "TLS". Never blocks, except to read the files. */
#ifndef TL_CMDLOG_ETCD_TLS_H
#define TL_CMDLOG_ETCD_TLS_H

#include <gnutls/gnutls.h>

#include "base/error.h"

/* Names of PEM files. */
struct etcd_tls_files {
    const char *ca;   /* CAs of the members' certificates; NULL: the system's */
    const char *cert; /* this host's certificate, then intermediate certificates; NULL: none */
    const char *key;  /* private key of `cert`, not encrypted; NULL exactly if `cert` is */
};

/*
 * Reads the files into new credentials. Returns: 0; TL_ERR_IO: they cannot be used, *ret_reason
 * says why (mem_free). Owns: the caller; gnutls_certificate_free_credentials().
 */
int etcd_tls_read(const struct etcd_tls_files *files, gnutls_certificate_credentials_t *ret_credentials,
                  char **ret_reason) TL_MUST_USE;

/* What a session verifies. */
struct etcd_tls_verify {
    gnutls_typed_vdata_st data[2];
};

/*
 * Creates the client's session on a connected socket. Its handshake verifies that the member's
 * certificate is for servers and for `host`, a name or an address, and that one of the CAs signed
 * it. *verify is filled here.
 * Owns: the caller; gnutls_deinit(). `host`, *verify and the credentials outlive the session.
 */
gnutls_session_t etcd_tls_session(gnutls_certificate_credentials_t credentials, int fd, const char *host,
                                  struct etcd_tls_verify *verify);

/*
 * Continues the handshake. Returns: 1: it is complete, and the member speaks HTTP/2; 0: not yet;
 * a negative code of GnuTLS: it failed.
 */
int etcd_tls_handshake(gnutls_session_t session);

/* Writes why a call failed with `code` of GnuTLS, and the remedy, for an operator. */
void etcd_tls_explain(gnutls_session_t session, const char *host, int code, char *text, size_t size);

#endif
