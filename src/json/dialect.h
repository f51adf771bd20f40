/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two generations of Elasticsearch whose replies the server gives.
 *
 * Which one a request gets is decided once, from its form (docs/http-api.md, "Dialects"); everything below
 * only hands it on. Where the two agree, nothing asks.
 */
#ifndef TL_JSON_DIALECT_H
#define TL_JSON_DIALECT_H

enum dialect {
    DIALECT_7, /* typeless paths: as 7.10 answers */
    DIALECT_5, /* typed paths: as 5.6 answers */
    DIALECT_COUNT
};

#endif
