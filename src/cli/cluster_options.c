/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a cluster; see cluster_options.h. */
#include "cli/cluster_options.h"

#include <string.h>

#include "cli/arguments.h"

bool cluster_options_set(struct cluster_options *options, int key, const char *text)
{
    switch (key) {
    case CLUSTER_OPTION_URL: options->url = text; return true;
    case CLUSTER_OPTION_CA: options->ca = text; return true;
    case CLUSTER_OPTION_CERT: options->cert = text; return true;
    case CLUSTER_OPTION_KEY: options->key = text; return true;
    default: return false;
    }
}

bool cluster_options_are_tls(const struct cluster_options *options)
{
    return options->url != NULL && strncmp(options->url, "https://", strlen("https://")) == 0;
}

bool cluster_options_check_pair(const struct argp_state *state, const struct cluster_options *options)
{
    bool valid = (options->cert == NULL) == (options->key == NULL);
    if (!valid)
        arguments_error(state, "--cluster-cert and --cluster-key need each other");
    return valid;
}
