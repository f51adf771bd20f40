/* SPDX-License-Identifier: Apache-2.0 */
/* Options with which requests and commands name indices; catalog_resolve() applies them. */
#ifndef TL_CORE_CATALOG_OPTIONS_H
#define TL_CORE_CATALOG_OPTIONS_H

#include <stdbool.h>

/* Elasticsearch's options of index expressions. */
struct catalog_options {
    bool ignore_unavailable; /* skip missing and closed indices without an error */
    bool allow_no_indices;   /* allow an expression that resolves to no index */
    bool expand_open;
    bool expand_closed;
    bool expand_hidden;
    /* Nothing is expanded at the client's wish: all are names, of which one alone may be missing */
    bool names_only;
    /* Accept a closed index given by its name: _open, _close, _settings, HEAD */
    bool allow_closed;
    /* Refuse aliases where 7.10 does, and do not match them by wildcards: DELETE */
    bool refuse_aliases;
    /*
     * Skip empty names, and exclusions of names that do not exist. Not encoded: for locks, whose names commands have
     * had without a check.
     */
    bool skip_nameless;
};

#endif
