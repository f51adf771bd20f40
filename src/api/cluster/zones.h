/* SPDX-License-Identifier: Apache-2.0 */
/* The host's time zones: read from its files, and offered to the log (core/README.md, "Zones"). */
#ifndef TL_API_ZONES_H
#define TL_API_ZONES_H

#include "base/slice.h"

struct journal;

/*
 * Reads a folder of TZif files and hands them to the core, which keeps the newest release that any
 * host has offered. An unreadable folder is logged: the names of zones are unknown then, except
 * those that another host has offered.
 */
void zones_offer(struct journal *journal, struct slice folder);

#endif
