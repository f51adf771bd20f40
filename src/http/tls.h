/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS credentials: the server's certificate, and the CA that client certificates are checked
 * against. See README.md, "TLS".
 *
 * The files are read as a whole into credentials, which are immutable: a reload replaces them. A
 * connection holds the credentials of its start until it is closed, so its handshake uses one
 * version of the files.
 */
#ifndef TL_HTTP_TLS_H
#define TL_HTTP_TLS_H

#include "base/error.h"

#include <gnutls/gnutls.h>

/* Names of PEM files. Owns: the caller; they outlive the `struct tls` opened with them. */
struct tls_files {
    const char *cert; /* the server's certificate, then intermediate certificates; NULL: no TLS */
    const char *key;  /* private key of `cert`, not encrypted */
    const char *ca;   /* CA of client certificates; NULL: clients need no certificate */
};

struct tls;
struct tls_credentials;

/*
 * Reads the files.
 * Returns: 0; TL_ERR_IO when they cannot be used: *ret_reason has the cause, to be freed by
 * mem_free.
 * Owns: the caller; tls_close(), after all connections have ended.
 */
int tls_open(const struct tls_files *files, struct tls **ret_tls, char **ret_reason) TL_MUST_USE;
/* Frees it; NULL is permitted. */
void tls_close(struct tls *tls);

/*
 * Reads the files again; new connections use their contents. May be called from any thread.
 * Returns: 0; TL_ERR_IO as tls_open(): the former credentials stay in use.
 */
int tls_reload(struct tls *tls, char **ret_reason) TL_MUST_USE;

/*
 * Sets the current credentials of a session before its handshake. With a CA the session requires a
 * client certificate.
 * Returns: the credentials. Owns: the caller; tls_credentials_unref() after the session's end.
 */
struct tls_credentials *tls_begin(struct tls *tls, gnutls_session_t session);
/* NULL is permitted. */
void tls_credentials_unref(struct tls_credentials *credentials);

/* TLS 1.2 and 1.3, with the ciphers of GnuTLS's priority string NORMAL. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

#endif
