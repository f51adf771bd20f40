/* SPDX-License-Identifier: Apache-2.0 */
/* Pins; see pins.h. */
#include "journal/pins.h"

#include "base/alloc.h"
#include "base/check.h"

#include <string.h>

void pins_deinit(struct pins *pins)
{
    REQUIRE(pins->count == 0);
    mem_free(pins->items);
    *pins = PINS_INIT;
}

/* Returns: the index of the first pin at or after `ts`. */
static size_t lower_bound(const struct pins *pins, tl_ts ts)
{
    size_t low = 0;
    size_t high = pins->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pins->items[middle].ts < ts)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void pins_add(struct pins *pins, tl_ts ts)
{
    REQUIRE(ts < TL_TS_MAX); /* pins_oldest() of an empty set */
    size_t at = lower_bound(pins, ts);
    if (at < pins->count && pins->items[at].ts == ts) {
        pins->items[at].count++;
        return;
    }
    if (pins->count == pins->capacity) {
        pins->capacity = pins->capacity ? pins->capacity * 2 : 16;
        pins->items = mem_realloc(pins->items, pins->capacity * sizeof *pins->items);
    }
    memmove(&pins->items[at + 1], &pins->items[at], (pins->count - at) * sizeof *pins->items);
    pins->items[at] = (struct pin){ts, 1};
    pins->count++;
    INSIST(at == 0 || pins->items[at - 1].ts < ts);
}

void pins_remove(struct pins *pins, tl_ts ts)
{
    size_t at = lower_bound(pins, ts);
    REQUIRE(at < pins->count && pins->items[at].ts == ts);
    INSIST(pins->items[at].count > 0);
    if (--pins->items[at].count > 0)
        return;
    pins->count--;
    memmove(&pins->items[at], &pins->items[at + 1], (pins->count - at) * sizeof *pins->items);
}

tl_ts pins_oldest(const struct pins *pins)
{
    REQUIRE(pins->count == 0 || pins->items[0].count > 0);
    return pins->count > 0 ? pins->items[0].ts : TL_TS_MAX;
}
