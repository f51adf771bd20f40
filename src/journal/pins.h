/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins: timestamps whose history someone still reads. A sorted array with counts; not for two threads at once.
 */
#ifndef TL_JOURNAL_PINS_H
#define TL_JOURNAL_PINS_H

#include "base/types.h"

#include <stddef.h>

struct pin {
    tl_ts ts;
    size_t count; /* never 0 */
};

struct pins {
    struct pin *items; /* in order of timestamp */
    size_t count;
    size_t capacity;
};

#define PINS_INIT ((struct pins){NULL, 0, 0})

/* Requires: every pin was removed. */
void pins_deinit(struct pins *pins);
void pins_add(struct pins *pins, tl_ts ts);
/* Requires: `ts` was added and not removed since. */
void pins_remove(struct pins *pins, tl_ts ts);
/* Returns: the oldest pinned timestamp; TL_TS_MAX without any. */
tl_ts pins_oldest(const struct pins *pins);

#endif
