/* SPDX-License-Identifier: Apache-2.0 */
/* What a view sees of an overlay beyond view.h: its ordered maps. */
#ifndef TL_STORE_OVERLAY_INTERNAL_H
#define TL_STORE_OVERLAY_INTERNAL_H

#include "base/buf.h"
#include "base/omap.h"
#include "store/view.h"

/* The overlay's writes in one space. */
const struct omap *overlay__space(const struct overlay *overlay, enum store_space space);

/* The value of an entry of it; data NULL: deleted. */
struct slice overlay__value(const struct omap_entry *entry);

#endif
