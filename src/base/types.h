/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scalars that must not be mixed up.
 */
#ifndef TL_BASE_TYPES_H
#define TL_BASE_TYPES_H

#include <stdint.h>

/* Microseconds since the epoch, strictly increasing from command to command, below 2^53. */
typedef uint64_t tl_ts;

#define TL_TS_NONE ((tl_ts)0)
#define TL_TS_MAX (((tl_ts)1 << 53) - 1)
#define TL_MS ((uint64_t)1000) /* microseconds in a millisecond */
#define TL_SECOND ((uint64_t)1000000)

/* Sessions and transactions have numbers; clients see them as text (core/README.md, "Terms"). */
typedef uint64_t tl_session_id;
typedef uint64_t tl_txn_id;

#endif
