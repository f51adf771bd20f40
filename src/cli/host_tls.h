/* SPDX-License-Identifier: Apache-2.0 */
/* The files of TLS between the hosts of a cluster. */
#ifndef TL_CLI_HOST_TLS_H
#define TL_CLI_HOST_TLS_H

#include "base/error.h"

/*
 * Checks as another host does when it connects: a CA in the file `ca` (NULL: one of the system's) has
 * signed the certificate in the file `cert`, which is for the name or address in `address`,
 * HOST:PORT. Does not check its dates, of which src/http warns: a host with an expired certificate
 * still serves.
 *
 * Returns: 0; TL_ERR_IO, with *ret_reason (mem_free) that names the option to change.
 */
int host_tls_check(const char *cert, const char *ca, const char *address, char **ret_reason) TL_MUST_USE;

/*
 * Checks the files by which this host is a client of other hosts: CAs, and a certificate with its key.
 * NULL: not given.
 * Returns: as host_tls_check().
 */
int host_tls_check_client(const char *ca, const char *cert, const char *key, char **ret_reason) TL_MUST_USE;

#endif
