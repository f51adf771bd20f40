/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the log make what there is? A twin is made of an older backup and the log since then, up to the checkpoint that a stopped store stands at, and the
 * two are compared: the chain over all that was ever written, and the digest of the whole state. What differs has come of something that is no command: a
 * fault of the disk, of memory, of a hand in the directory, or of the program.
 */
#ifndef TL_CLI_REPLAYED_H
#define TL_CLI_REPLAYED_H

#include "cli/durable.h"
#include "cli/relog.h"

/*
 * `data`: the directory that `durable` was opened from, to read only; DATA.replayed is made beside it, as large as the backup, and removed. `options`: the backup and the
 * log; how far it goes is set here. Tells on standard output what came of it.
 * Writes of another build are not compared (journal/README.md, "The hash chain"). Returns: 0 where both are equal, 1 where they are not, or that cannot be found out.
 */
int replayed_compare(const char *data, const struct durable *durable, const struct relog_options *options) TL_MUST_USE;

#endif
