/* SPDX-License-Identifier: Apache-2.0 */
/* An overlay's ordered maps, for view.c. */
#ifndef TL_STORE_OVERLAY_INTERNAL_H
#define TL_STORE_OVERLAY_INTERNAL_H

#include "base/buf.h"
#include "base/omap.h"
#include "store/view.h"

/* Returns: the overlay's writes in one space. */
const struct omap *overlay__space(const struct overlay *overlay, enum store_space space);

/* Returns: the value of an entry of that map; data NULL: deleted. */
struct slice overlay__value(const struct omap_entry *entry);

#endif
