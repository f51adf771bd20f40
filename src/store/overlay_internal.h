/* SPDX-License-Identifier: Apache-2.0 */
/* An overlay's ordered maps, for view.c. */
#ifndef TL_STORE_OVERLAY_INTERNAL_H
#define TL_STORE_OVERLAY_INTERNAL_H

#include "store/overlay_map.h"
#include "store/view.h"

/* Returns: the overlay's writes in one space. */
const struct overlay_map *overlay__space(const struct overlay *overlay, enum store_space space);

#endif
