/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifies a stopped store by a replay: an older backup and the log since then are applied up to the
 * store's checkpoint, and the two stores are compared by the hash chain over all writes and by the
 * digest of the whole state. A difference was caused by something other than a command: a fault of
 * the disk, of the memory, of the program, or a manual change of the directory.
 */
#ifndef TL_CLI_REPLAYED_H
#define TL_CLI_REPLAYED_H

#include "cli/durable.h"
#include "cli/relog.h"

/*
 * Replays into DATA.replayed, which is removed afterwards, compares, and prints the result on
 * standard output. `data`: the directory of `durable`, which is open for reading only. `options`: the
 * backup and the log; the end of the replay is set here. Writes of another build are not compared
 * (journal/README.md, "The hash chain").
 *
 * Returns: 0 if both are equal, 1 if they differ or cannot be compared.
 */
int replayed_compare(const char *data, const struct durable *durable, const struct relog_options *options) TL_MUST_USE;

#endif
