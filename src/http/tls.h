/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS: what the server shows of itself, and whom it believes. See README.md, "TLS".
 *
 * The files are read as a whole into credentials, which are never changed: a reload puts others in their place. A connection holds those that
 * it began with until it ends, so its handshake and its checks are by one state of the files.
 */
#ifndef TL_HTTP_TLS_H
#define TL_HTTP_TLS_H

#include "base/error.h"

#include <gnutls/gnutls.h>

/* Of PEM files; their names are the caller's, and outlive what is opened by them. */
struct tls_files {
    const char *cert; /* the server's certificate and those between it and its CA; NULL: no TLS */
    const char *key;  /* its private key, not encrypted */
    const char *ca;   /* who signs clients' certificates; NULL: clients need none */
};

struct tls;
struct tls_credentials;

/*
 * Returns: 0; TL_ERR_IO when the files are not what they should be, `ret_reason` then says why, to be freed by mem_free.
 * Owns: the caller; tls_close(), when no connection is left.
 */
int tls_open(const struct tls_files *files, struct tls **ret_tls, char **ret_reason) TL_MUST_USE;
void tls_close(struct tls *tls);

/*
 * Reads the files again; connections that begin from now on get what they say. From any thread.
 * Returns: 0; TL_ERR_IO as tls_open(): all stays as it was.
 */
int tls_reload(struct tls *tls, char **ret_reason) TL_MUST_USE;

/*
 * Gives a session that has not begun its handshake the credentials of the moment, and has it ask for what they want.
 * Owns: the caller, what it returns; tls_credentials_unref() after the session's end.
 */
struct tls_credentials *tls_begin(struct tls *tls, gnutls_session_t session);
void tls_credentials_unref(struct tls_credentials *credentials);

/* Protocols and ciphers: TLS 1.2 and 1.3, with the ciphers that GnuTLS takes for normal. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

#endif
