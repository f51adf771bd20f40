/* SPDX-License-Identifier: Apache-2.0 */
/* The state of maintenance that is stored. */
#ifndef TL_CORE_MAINTAIN_H
#define TL_CORE_MAINTAIN_H

#include "base/error.h"

struct core;

/* Loads core->purge_horizons from the store. Requires: no unit is open. Returns: 0; fatal codes. */
int purge_horizons__open(struct core *core) TL_MUST_USE;

#endif
