/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins: timestamps from which on history must stay readable. A sorted array with counts; not
 * thread-safe.
 */
#ifndef TL_JOURNAL_PINS_H
#define TL_JOURNAL_PINS_H

#include "base/types.h"

#include <stddef.h>

struct pin {
    tl_ts ts;
    size_t count; /* at least 1 */
};

struct pins {
    struct pin *items; /* in order of timestamp */
    size_t count;
    size_t capacity;
};

#define PINS_INIT ((struct pins){NULL, 0, 0})

/* Frees the array. Requires: every pin was removed. */
void pins_deinit(struct pins *pins);
void pins_add(struct pins *pins, tl_ts ts);
/* Removes one pin. Requires: `ts` is pinned. */
void pins_remove(struct pins *pins, tl_ts ts);
/* Returns: the oldest pinned timestamp; TL_TS_MAX: nothing is pinned. */
tl_ts pins_oldest(const struct pins *pins);

#endif
