/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations out of a seed: one generator for each row of commands.def. A row without one is not simulated here (locks,
 * sessions and transactions have a simulator of their own).
 */
#ifndef TL_TESTS_SIM_GEN_H
#define TL_TESTS_SIM_GEN_H

#include "base/rand.h"
#include "core/command/command.h"
#include "model.h"

/* Makes the next operation; the model is looked at, so that demands on versions sometimes hold. */
void gen_op(struct rng *rng, const struct model *model, struct sim_op *op);

/*
 * Has a change of settings change index.gc_deletes, too, at times. By a generator of its own, so
 * that seeds stay what they are.
 */
void gen_gc_deletes(struct rng *rng, struct sim_op *op);

/* Makes the command of an operation. Owns: the caller; command_free(). */
struct command *gen_command(const struct sim_op *op);

/* Appends an operation in words, for a failing seed. */
void gen_describe(const struct sim_op *op, char *text, size_t size);

#endif
