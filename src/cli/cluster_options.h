/* SPDX-License-Identifier: Apache-2.0 */
/* --cluster and the certificates of a cluster: options of `serve` and `check`. */
#ifndef TL_CLI_CLUSTER_OPTIONS_H
#define TL_CLI_CLUSTER_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

struct cluster_options {
    const char *url; /* etcd's endpoints and the prefix; NULL: no cluster */
    const char *ca, *cert, *key;
};

/* Keys for argp, above those of the subcommands. */
enum { CLUSTER_OPTION_URL = 4096, CLUSTER_OPTION_CA, CLUSTER_OPTION_CERT, CLUSTER_OPTION_KEY };

#define CLUSTER_CA_HELP "The CAs of the certificates of etcd, and of hosts with --tls-cert, as PEM (the system's)"
#define CLUSTER_CERT_HELP "The client certificate for etcd, and for hosts with --tls-ca, as PEM"
#define CLUSTER_KEY_HELP "The private key of --cluster-cert, as PEM"

/* The rows of a table of options that follow its --cluster. */
#define CLUSTER_TLS_OPTIONS(group)                                                  \
    {"cluster-ca", CLUSTER_OPTION_CA, "FILE", 0, CLUSTER_CA_HELP, group},           \
        {"cluster-cert", CLUSTER_OPTION_CERT, "FILE", 0, CLUSTER_CERT_HELP, group}, \
    {                                                                               \
        "cluster-key", CLUSTER_OPTION_KEY, "FILE", 0, CLUSTER_KEY_HELP, group       \
    }

/* Returns: whether `key` is one of those; its value is then set. */
bool cluster_options_set(struct cluster_options *options, int key, const char *text);

/* Returns: whether etcd is called with TLS. */
bool cluster_options_are_tls(const struct cluster_options *options);

/*
 * Refuses a certificate without its key, and the reverse.
 * Returns: whether the options are valid; if not, the error is arguments_error()'s.
 */
bool cluster_options_check_pair(const struct argp_state *state, const struct cluster_options *options);

#endif
