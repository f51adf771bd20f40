/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two generations of Elasticsearch whose replies the server imitates.
 *
 * The api layer chooses one for each request by its form (docs/http-api.md, "Dialects") and passes
 * it down. Code consults it only where the two generations differ.
 */
#ifndef TL_JSON_DIALECT_H
#define TL_JSON_DIALECT_H

enum dialect {
    DIALECT_7, /* typeless paths; replies as from 7.10 */
    DIALECT_5, /* typed paths; replies as from 5.6 */
    DIALECT_COUNT
};

#endif
