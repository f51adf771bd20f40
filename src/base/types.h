/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalar types of the program, and the number of elements of an array.
 */
#ifndef TL_BASE_TYPES_H
#define TL_BASE_TYPES_H

#include <stdint.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Microseconds since 1970-01-01, at most TL_TS_MAX; strictly increasing over commands. */
typedef uint64_t tl_ts;

#define TL_TS_NONE ((tl_ts)0)
#define TL_TS_MAX (((tl_ts)1 << 53) - 1)
#define TL_MS ((uint64_t)1000) /* microseconds in a millisecond */
#define TL_SECOND ((uint64_t)1000000)

/* Internal ids of sessions and transactions; clients see them as text. */
typedef uint64_t tl_session_id;
typedef uint64_t tl_txn_id;

#endif
